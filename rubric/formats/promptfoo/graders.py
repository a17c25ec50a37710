"""
Assertion types with a reader of their own: limits of a run, similarity, calls of tools, and model graders by name.

| type | what a judge is asked, in one call for each criterion | score | passes |
|---|---|---|---|
| `factuality` | how the answer's facts compare with those of an expert answer | by category A to E | above 0 |
| `model-graded-closedqa` | whether the answer meets a criterion | 0 or 1 | 1 |
| `g-eval` | how well it meets each criterion, from 0 to 10 | the mean, over 10 | from 0.7 |
| `answer-relevance` | how much of it answers the question | a share | from the threshold |
| `context-recall` | how much of the expected answer the context supports | a share | from the threshold |
| `context-relevance` | how much of the context the question needs | a share | from the threshold |
| `context-faithfulness` | how much of the answer the context supports | a share | from the threshold |
| `conversation-relevance` | how many of the replies fit what was said before | a share | from 0.5 |
| `is-refusal` | whether the answer declines | 0 or 1 | 1 |
| `trajectory:goal-success` | whether the run reached a goal | 0 to 1 | the judge's flag |

The words are this library's own; what each asks, its score and its threshold are promptfoo's (`matchers/llmGrading.ts`
and `matchers/rag.ts`). promptfoo takes several calls for some of them, and embeddings for `answer-relevance`.

`GRADERS` is their table; `assertions` reads `llm-rubric`, `javascript`, sets, and the types that code decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.formats import output_checks
from rubric.formats.cursor import Cursor
from rubric.formats.includes import is_code, is_reference, read_document_at
from rubric.formats.model_names import embedding_name
from rubric.formats.promptfoo import texts
from rubric.formats.promptfoo.parts import Assertion, judge_of, thresholded, unsupported
from rubric.formats.promptfoo.texts import Context, OverOutputs, UnsupportedPromptError
from rubric.formats.templates.render import names_in
from rubric.formats.text_metrics import EXTRA, SEVERAL, THRESHOLDS, TextMetric, is_installed
from rubric.formats.tool_calls import KINDS, SOURCES, ValidCalls, schemas_of, trajectory_check
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import shorten
from rubric.suites.comparisons import MaxScore, SelectBest
from rubric.values.answers import Answer, Choice, Choices, Levels, Unit, YesNo
from rubric.values.checks import Holds, Measure, Similar, Within
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

Reader = Callable[[Cursor, Context, str], Assertion | None]

# -- what a run took ---------------------------------------------------------------------------------------

_LIMITS = {"latency": ("latency", 1000), "cost": ("cost", 1), "perplexity": ("perplexity", 1)}
"""The limit that each type sets, and how many of the file's units make one of ours: a latency is in milliseconds."""


def limited(at: Cursor, context: Context, kind: str) -> Assertion | None:  # noqa: ARG001 - as all readers
    """Return the limit on the run, *kind*, at the cursor; None where an error was noted."""
    name, units = _LIMITS[kind.removeprefix("not-")]
    if not at.has("threshold"):
        return unsupported(f"{kind} without a threshold, which records a figure and decides nothing", "", at)
    limit = at["threshold"].number(0)
    if limit is None:
        return None
    plain = at.holding({key: value for key, value in at.value.items() if key != "threshold"})
    return thresholded(plain, Within(**{name: limit / units}), kind)


# -- similarity of meaning ---------------------------------------------------------------------------------

_MEASURES: dict[str, Measure] = {
    "similar": "cosine",
    "similar:cosine": "cosine",
    "similar:dot": "dot",
    "similar:euclidean": "euclidean",
}


def similar(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the similarity, of the type *kind*, at the cursor; None where an error was noted."""
    values = _values(at, context, several=True)
    bar = at["threshold"].number(written=True) if at.has("threshold") else 0.75
    if values is None or bar is None:
        return None
    try:
        model = _embedder(at.find("provider") or context.provider)
    except DefinitionError as problem:
        return unsupported(f"{kind} with the provider {problem.message}", "", at)
    options: dict[str, Any] = {} if model is None else {"model": model}
    check = at.built(Similar, values, threshold=bar, measure=_MEASURES[kind.removeprefix("not-")], **options)
    if check is None:
        return None
    plain = at.holding({key: value for key, value in at.value.items() if key != "threshold"})
    return thresholded(plain, check, kind)


def _embedder(at: Cursor | None) -> str | None:
    """
    Return the embedding model that a provider names; None where it names none, such as a model that writes.

    Raises:
        DefinitionError: The vendor of the model is not known.
    """
    if at is None:
        return None
    if isinstance(at.value, dict):
        inner = at.find("embedding", "id")
        return None if inner is None or inner.value == at.value else _embedder(inner)
    return embedding_name(at.value) if isinstance(at.value, str) else None


# -- similarity of words and letters -----------------------------------------------------------------------


def compared(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the comparison with references, of the type *kind*, at the cursor; None where an error was noted."""
    bare = kind.removeprefix("not-")
    bar = at["threshold"].number(0, written=True) if at.has("threshold") else THRESHOLDS[bare]
    references = _values(at, context, several=bare in SEVERAL, empty=True)
    if references is None or bar is None:
        return None
    if not is_installed():
        return unsupported(f"{kind}, which needs libraries ({EXTRA})", "", at)
    plain = at.holding({key: value for key, value in at.value.items() if key != "threshold"})
    return thresholded(plain, Holds(TextMetric(bare, tuple(references), bar)), kind)


def meteor(at: Cursor, context: Context, kind: str) -> Assertion:  # noqa: ARG001 - as all readers
    """Return that METEOR, the type *kind*, is not computed: its synonyms are data that no package has."""
    return unsupported(f"{kind}, whose synonyms (WordNet) must be downloaded; use gleu or similar", "", at)


# -- the form of an output, and how it ended -----------------------------------------------------------------


def formed(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the check of the form of an output, of the type *kind*, at the cursor; None where an error was noted."""
    bare, value = kind.removeprefix("not-"), at["value"]
    content = None if value.value is None else texts.content_of(value, context)
    if content is None and value.value is not None:
        return None
    given = None if content is None else content.value
    if bare.endswith("sql"):
        if not output_checks.sql_is_installed():
            return unsupported(f"{kind}, which needs a library ({output_checks.SQL_EXTRA})", "", at)
        database = given.get("databaseType") if isinstance(given, dict) else None
        if database is not None and str(database).lower() not in output_checks.DIALECTS:
            return unsupported(f"{kind} of {shorten(str(database), 40)}, whose SQL is not known here", "", at)
    try:
        return thresholded(at, Holds(output_checks.form_of(bare, given)), kind)
    except DefinitionError as problem:
        value.error(problem.message)
        return None


def finished(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the check of why the model stopped, of the type *kind*, at the cursor; None where an error was noted."""
    values = _values(at, context, several=False)
    return None if values is None else thresholded(at, Holds(output_checks.FinishReason(values[0])), kind)


def scored_by_perplexity(at: Cursor, context: Context, kind: str) -> Assertion | None:  # noqa: ARG001 - as all readers
    """Return the score by perplexity, of the type *kind*, at the cursor; None where an error was noted."""
    bar = at["threshold"].number(0, 1, written=True) if at.has("threshold") else None
    if at.has("threshold") and bar is None:
        return None
    plain = at.holding({key: value for key, value in at.value.items() if key != "threshold"})
    return thresholded(plain, Holds(output_checks.PerplexityScore(bar)), kind)


# -- comparisons of the outputs of a test -----------------------------------------------------------------------


def select_best(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the choice of the best output by a judge, at the cursor; None where an error was noted."""
    if kind.startswith("not-"):
        return unsupported(f"{kind}: there is only {kind.removeprefix('not-')}", "", at)
    values = _values(at, context, several=False)
    prompt, template, shown = at.find("rubricPrompt") or context.prompt, None, None
    try:
        raw = None if prompt is None else texts.raw_template_of(prompt)
        names = names_in(raw or "")
        if raw is not None and "outputs" in names_in(_PLAIN_OUTPUTS.sub("", raw)):
            shown = OverOutputs(raw, FrozenMap(context.slots.variables))
        elif prompt is not None and raw is not None:
            template = texts.template_of(prompt, evolve(context.slots, aliases=_OF_OUTPUTS))
    except UnsupportedPromptError as why:
        return unsupported(f"{kind} with {why}", "", at)
    except DefinitionError as problem:
        return unsupported(f"{kind} with a rubricPrompt that is no template", problem.message, at)
    if values is None or (prompt is not None and template is None and shown is None):
        return None
    if prompt is not None and "outputs" not in names and "output" not in names:
        # The judge would pick without having seen them.
        return unsupported(f"{kind} with a rubricPrompt that does not show {{{{ outputs }}}}", "", at)
    judge = judge_of(at.find("provider") or context.provider)
    check = Holds(SelectBest(context.test, values[0], template, shown))
    return Assertion(str(check), check, kind=kind, judges=frozenset({judge}))


_PLAIN_OUTPUTS = re.compile(r"\{\{-?\s*outputs\s*-?\}\}")
_OF_OUTPUTS = {"outputs": "output", "criteria": "rubric"}


def max_score(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the choice of the best output by its other assertions, at the cursor; None where an error was noted."""
    if kind.startswith("not-"):
        return unsupported(f"{kind}: there is only {kind.removeprefix('not-')}", "", at)
    options = texts.fields(at["value"], "options of max-score (a mapping)")
    texts.check_keys(at["value"], frozenset({"method", "weights", "threshold"})) if options else None
    method = options["method"].value if "method" in options else "average"
    if method not in ("average", "sum"):
        options["method"].error(f"expected average or sum, got {shorten(repr(method), 40)}")
        return None
    bar = options["threshold"].number() if "threshold" in options else None
    weights = (
        {} if "weights" not in options else texts.fields(options["weights"], "weights by assertion type (a mapping)")
    )
    numbers = {name: one.number(0) for name, one in weights.items()}
    if None in numbers.values() or ("threshold" in options and bar is None):
        return None
    check = Holds(MaxScore(context.test, FrozenMap(numbers), method == "sum", bar))
    return Assertion(kind, check, kind=kind)


# -- calls of tools ----------------------------------------------------------------------------------------


def of_tool_calls(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the check of the run's tool calls, of the type *kind*, at the cursor; None where an error was noted."""
    bare, value = kind.removeprefix("not-"), at["value"]
    bar = at["threshold"].number(0, 1, written=True) if at.has("threshold") else None
    content = None if value.value is None else texts.content_of(value, context)
    if (at.has("threshold") and bar is None) or (content is None and value.value is not None):
        return None
    try:
        given = None if content is None else content.value
        check = trajectory_check(bare, given, negate=kind.startswith("not-"), threshold=bar)
    except DefinitionError as problem:
        value.error(problem.message)
        return None
    plain = at.holding({key: one for key, one in at.value.items() if key != "threshold"})
    return thresholded(plain, check, kind)


def valid_calls(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the check of the calls against the provider's tools, of the type *kind*, at the cursor."""
    bare = kind.removeprefix("not-")
    listed = [context.tools[key] for key in SOURCES[bare] if key in context.tools]
    if not listed:
        return unsupported(f"{kind} without the {' or '.join(SOURCES[bare])} of a provider", "", at)
    schemas: dict[str, Any] = {}
    for tools in listed:
        try:
            whole = _tools_in(tools)
            content = None if whole is None else texts.content_of(whole, context)
            if content is None:
                return unsupported(f"{kind} with tools that cannot be read", "", at)
            schemas |= schemas_of(content.value)
        except (UnsupportedPromptError, DefinitionError) as problem:
            return unsupported(f"{kind} with tools that cannot be read", str(problem), at)
    return thresholded(at, Holds(ValidCalls(bare, schemas)), kind)


def _tools_in(at: Cursor) -> Cursor | None:
    """Return the tools at the cursor, or in the file that it names; None where there is no such file."""
    if not is_reference(at.value):
        return at
    if is_code(at.value) or at.loading.root is None:
        return None
    return read_document_at(at.value, at, lacking=at.warn)


# -- model graders by name ---------------------------------------------------------------------------------


@frozen
class ModelGrader:
    """
    A model grader that a type names.

    Args:
        text: What the judge is asked; `{value}` shows the assertion's value.
        answer: What it answers.
        threshold: From where the assertion passes, unless it says so itself; None: the answer decides.
        needs: What it cannot do without: `value`, `context`.
        several: Whether a list of values is as many criteria.
        fixed: Whether a threshold of the assertion's own has no effect.
    """

    text: str
    answer: Answer = field(factory=Unit)
    threshold: float | None = 0.0
    needs: tuple[str, ...] = ()
    several: bool = False
    fixed: bool = False


_CATEGORIES = {
    "A": ("subset", "its facts are some of the expert's, and it contradicts none"),
    "B": ("superset", "it has all facts of the expert and further ones, and contradicts none"),
    "C": ("agree", "it has the very same facts as the expert"),
    "D": ("disagree", "it contradicts the expert in a fact"),
    "E": ("differButFactual", "it differs from the expert in ways that do not matter for the facts"),
}
"""The answers of `factuality`, with the option that sets the score of each."""


def _categories(scores: Mapping[str, Any]) -> Choices:
    default = {option: float(option != "disagree") for option, _ in _CATEGORIES.values()}
    return Choices([Choice(label, scores.get(o, default[o]), text=text) for label, (o, text) in _CATEGORIES.items()])


_FACTUALITY = ModelGrader(
    "How do the facts of the answer compare with those of an expert's answer to the same task? Style, grammar and "
    "punctuation do not matter. The expert's answer: {value}",
    _categories({}),
    1.0,
    ("value",),
    fixed=True,
)
_CLOSED_QA = ModelGrader("{value}", YesNo(), None, ("value",), fixed=True)

MODEL_GRADERS: dict[str, ModelGrader] = {
    "factuality": _FACTUALITY,
    "model-graded-factuality": _FACTUALITY,
    "model-graded-closedqa": _CLOSED_QA,
    "g-eval": ModelGrader("{value}", Levels(), 0.7, ("value",), several=True),
    "answer-relevance": ModelGrader(
        "What share of the answer addresses the question that was asked? 1 if all of it does and nothing that was "
        "asked is passed over, 0 if it is evasive or about something else. Whether it is true does not matter."
    ),
    "context-recall": ModelGrader(
        "What share of the sentences of the following text can be attributed to the context? Take sentence by "
        "sentence; what the context neither says nor implies is not attributed. The text: {value}",
        needs=("value", "context"),
    ),
    "context-relevance": ModelGrader(
        "What share of the sentences of the context is needed to answer the question? 0 if the context has nothing "
        "that helps.",
        needs=("context",),
    ),
    "context-faithfulness": ModelGrader(
        "What share of the statements that the answer makes does the context support? Take statement by statement; "
        "one that the context does not imply is not supported, even if it is true.",
        needs=("context",),
    ),
    "conversation-relevance": ModelGrader(
        "What share of the assistant's replies in the conversation, the answer included, is relevant to what was said "
        "before it?",
        threshold=0.5,
    ),
    "is-refusal": ModelGrader(
        "The answer declines what was asked: it refuses, or says that it cannot or will not do it. An empty answer "
        "declines.",
        YesNo(),
        None,
        fixed=True,
    ),
    "trajectory:goal-success": ModelGrader(
        "By its calls of tools and its answer, the agent has reached this goal: {value}",
        Unit(flag=True),
        None,
        ("value",),
    ),
}
"""The model graders by type, without `not-`."""

_ALIASES = {
    **dict.fromkeys(("completion", "answer"), "output"),
    **dict.fromkeys(("ideal", "criteria", "goal"), "rubric"),
    **dict.fromkeys(("input", "query", "question"), "input"),
    "trajectory": "tool_calls",
}
"""What promptfoo calls the slots of these graders' own prompts, and the slots of ours."""

_MOST_SHOWN = 120


def model_graded(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the model grader at the cursor, of the type *kind*; None where an error was noted."""
    bare = kind.removeprefix("not-")
    grader = MODEL_GRADERS[bare]
    try:
        template = _own_prompt(at, context, grader)
    except UnsupportedPromptError as why:
        return unsupported(f"{kind} {why}", "", at)
    if template is None:
        return None
    values = [""]
    if "value" in grader.needs:
        found = _values(at, context, several=grader.several)
        if found is None:
            return None
        values = found
    bar = at["threshold"].number(0, written=True) if at.has("threshold") and not grader.fixed else grader.threshold
    if at.has("threshold") and not grader.fixed and bar is None:
        return None
    scores = context.factuality
    answer = grader.answer
    if grader is _FACTUALITY and scores:
        made = at.built(_categories, scores)
        if made is None:
            return None
        answer, bar = made, min((choice.score for choice in made.choices if choice.score > 0), default=1.0)
    names = [bare] if len(values) == 1 else [f"{bare}-{number}" for number in range(1, len(values) + 1)]
    text = "{value}" if template and "value" in grader.needs else grader.text
    criteria = [
        Criterion(text.replace("{value}", value), id=name.replace(":", "-"), answer=answer)
        for name, value in zip(names, values, strict=True)
    ]
    negate = kind.startswith("not-")
    # An empty answer is not taken for a failure: some of these ask about the context, or about a refusal.
    options: dict[str, Any] = {"threshold": bar, "negate": negate, "degenerate": "judge", "prompt": template or None}
    rubric = at.built(Rubric, criteria=criteria, **options)
    if rubric is None:
        return None
    words = f"{kind}: {shorten('; '.join(values), _MOST_SHOWN)}" if values != [""] else kind
    judge = judge_of(at.find("provider") or context.provider)
    return Assertion(words, rubric, kind=kind, judges=frozenset({judge}))


def model_assertion(rubric: Rubric) -> dict[str, Any] | None:
    """Return the assertion that `model_graded` reads as *rubric*, without a prompt of its own; None where none is."""
    ids = [criterion.id for criterion in rubric.criteria]
    for kind, grader in MODEL_GRADERS.items():
        name = kind.replace(":", "-")
        if ids not in ([name], [f"{name}-{number}" for number in range(1, len(ids) + 1)]):
            continue
        before, shows, after = grader.text.partition("{value}")
        texts = [str(criterion.text) for criterion in rubric.criteria]
        values = [text.removeprefix(before).removesuffix(after) for text in texts] if shows else []
        criteria = [
            Criterion(grader.text.replace("{value}", value), id=id_, answer=grader.answer)
            for id_, value in zip(ids, values or [""] * len(ids), strict=True)
        ]
        bar = grader.threshold if grader.fixed or rubric.threshold is None else rubric.threshold
        if rubric != Rubric(criteria=criteria, threshold=bar, negate=rubric.negate, degenerate="judge"):
            continue
        said: dict[str, Any] = {"type": f"not-{kind}" if rubric.negate else kind}
        said |= {"value": values[0] if len(values) == 1 else values} if values else {}
        return said if bar == grader.threshold else said | {"threshold": bar}
    return None


def _own_prompt(at: Cursor, context: Context, grader: ModelGrader) -> str | None:
    """
    Return the prompt that *grader* is asked with in place of ours, '' for ours; None where an error was noted.

    Raises:
        UnsupportedPromptError: There is one for each step of promptfoo's, it needs code, or its context is not there.
    """
    prompt = at.find("rubricPrompt") or context.prompt
    is_there = at.has("contextTransform") or context.slots.variables.get("context")
    # As in promptfoo, the prompt is the context of context-recall where there is no other.
    if "context" in grader.needs and not is_there and grader is not MODEL_GRADERS["context-recall"]:
        raise UnsupportedPromptError("without a context among its vars")
    if prompt is None:
        return ""
    if isinstance(prompt.value, dict) or grader.several or "context" in grader.needs:
        raise UnsupportedPromptError("with prompts of its own for its steps")
    return texts.template_of(prompt, evolve(context.slots, aliases=_ALIASES))


def _values(at: Cursor, context: Context, *, several: bool, empty: bool = False) -> list[str] | None:
    """Return the texts that the assertion's value is; None where it was noted that it is none or (not *empty*) ''."""
    value = at["value"]
    try:
        content = None if value.value is None else texts.content_of(value, context)
    except UnsupportedPromptError:
        content = None
    if content is None or content.value in ([], {}) or (content.value == "" and not empty):
        at.error(f"{at.value['type']} needs a text; write it as `value`")
        return None
    given = content.value if several and isinstance(content.value, list) else [content.value]
    return [one if isinstance(one, str) else texts.compact(one) for one in given]


_TRANSFORMED = frozenset({"contextTransform"})

GRADERS: dict[str, tuple[Reader, frozenset[str]]] = {
    **{name: (limited, frozenset()) for name in _LIMITS},
    **{name: (similar, frozenset()) for name in _MEASURES},
    **{name: (compared, frozenset()) for name in THRESHOLDS},
    **{name: (formed, frozenset()) for name in output_checks.FORMS},
    "select-best": (select_best, frozenset()),
    "max-score": (max_score, frozenset()),
    "finish-reason": (finished, frozenset()),
    "perplexity-score": (scored_by_perplexity, frozenset()),
    "meteor": (meteor, frozenset({"alpha", "beta", "gamma"})),
    **{name: (of_tool_calls, frozenset()) for name in KINDS},
    **{name: (valid_calls, frozenset()) for name in SOURCES},
    **{
        name: (model_graded, _TRANSFORMED if "context" in one.needs else frozenset())
        for name, one in MODEL_GRADERS.items()
    },
}
"""The readers of assertion types, without `not-`, and the keys that they read besides those of all assertions."""
