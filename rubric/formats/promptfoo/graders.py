"""
Assertion types with a reader of their own: limits of a run, similarity, calls of tools, and model graders by name.

docs/how-to/from_promptfoo.md says what a judge is asked for each. The words are this library's own; what each asks, its
score and its threshold are promptfoo's. promptfoo takes several calls for some, and embeddings for `answer-relevance`.

`GRADERS` is their table; `assertions` reads `llm-rubric`, `javascript`, sets, and the types that code decides.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from attrs import evolve, field, frozen

from rubric import Choice, Choices, Criterion, DefinitionError, Holds, Levels, Rubric, Unit, YesNo
from rubric.embed import Answer, Cursor, FrozenMap, Kind, LackingError, shorten
from rubric.formats.assertions import forms
from rubric.formats.assertions.table import KINDS, find_kind
from rubric.formats.assertions.text_metrics import SEVERAL, THRESHOLDS
from rubric.formats.assertions.texts import KNOWN, LISTS, UnsupportedPatternError, as_schema, with_spaces
from rubric.formats.assertions.tool_calls import SOURCES, ValidCalls, schemas_of
from rubric.formats.includes import follow, is_code, is_reference
from rubric.formats.javascript import JavaScript, inline, tell_engine
from rubric.formats.keys import words_of
from rubric.formats.model_names import embedding_name
from rubric.formats.promptfoo import texts
from rubric.formats.promptfoo.parts import Assertion, as_assertion, cure_of, judge_of, placeholder
from rubric.formats.promptfoo.texts import Context, OverOutputs, Slots, UnsupportedPromptError
from rubric.formats.templates.render import names_in
from rubric.suites.output_choice import MaxScore, SelectBest
from rubric.values import Similar

Reader = Callable[[Cursor, Context, str], Assertion | None]

# -- what code decides ---------------------------------------------------------------------------------------

LIMITS = ("latency", "cost", "perplexity")
_TEXTS = frozenset({*THRESHOLDS, "finish-reason"})
"""Types whose value is text: data is written as JSON for them."""


def read_check(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the check at the cursor, of the type *kind*, which `find_kind` has; None where an error was noted."""
    bare = kind.removeprefix("not-")
    row = find_kind(bare)
    if row is None or "promptfoo" not in row.systems:
        known = "" if bare in KNOWN or ":" in bare else "promptfoo has no such type either; "
        return placeholder(kind, texts.as_text(at.value.get("value")), at, f"{known}{cure_of(kind)}")
    if bare in LIMITS and not at.has("threshold"):
        return placeholder(f"{kind} without a threshold, which records a figure and decides nothing", "", at)
    given: dict[str, Any] = {"any": True} if kind.startswith("not-") else {}
    for key in (key for key in row.names("promptfoo") if at.has(key)):
        try:
            given[key] = _read_value(at, key, context, bare)
        except UnsupportedPromptError as why:
            return placeholder(f"{kind} with a value that is {shorten(str(why), 80)}", "", at)
    if None in given.values():
        return None
    if lack := _lacking(bare, row, given.get("value")):
        return placeholder(f"{kind}{lack}", "", at)
    try:
        if bare.endswith("-json") and given.get("value"):
            as_schema(given["value"])
    except DefinitionError as flaw:  # in promptfoo, it fails in the run
        return placeholder(f"{kind} with a value that is not a schema: {shorten(flaw.message, 120)}", "", at)
    try:
        is_pattern = bare == "regex" and isinstance(given.get("value"), str)
        check = at.built(row.read, given | ({"value": with_spaces(given["value"])} if is_pattern else {}))
    except UnsupportedPatternError:
        tell_engine(at)
        code = f"new RegExp({json.dumps(texts.as_text(given['value']))}).test(output)"
        check = Holds(JavaScript(code, inline(code)))
    return None if check is None else as_assertion(at, check, kind)


def _lacking(bare: str, row: Kind, value: Any) -> str:
    if cure := row.lacks():
        return f", which needs {'a library' if bare.endswith('sql') else 'libraries'} ({cure})"
    database = value.get("databaseType") if bare.endswith("sql") and isinstance(value, dict) else None
    known = database is None or str(database).lower() in forms.DIALECTS
    return "" if known else f" of {shorten(str(database), 40)}, whose SQL is not known here"


def _read_value(at: Cursor, key: str, context: Context, bare: str) -> Any:
    """Return the value of a *key* of the assertion at the cursor; None where an error was noted."""
    if key == "threshold":
        return at[key].number(written=True)
    if key != "value":
        return at[key].value
    if bare in _TEXTS:
        values = _values(at, context, several=bare in SEVERAL, empty=bare in THRESHOLDS)
        return values if values is None or bare in SEVERAL else values[0]
    if bare in LISTS and isinstance(at.value["value"], str):  # a list in a template has its items with commas between
        joined = {
            k: ",".join(map(texts.as_text, v)) if isinstance(v, list) else v for k, v in context.slots.variables.items()
        }
        context = evolve(context, slots=Slots(joined))
    content = texts.value_of(at["value"], context)
    return None if content is None else content.value


# -- similarity of meaning ---------------------------------------------------------------------------------


_SIMILAR = ("similar", "similar:cosine", "similar:dot", "similar:euclidean")


def similar(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the similarity, of the type *kind*, at the cursor; None where an error was noted."""
    values = _values(at, context, several=True)
    bar = at["threshold"].number(written=True) if at.has("threshold") else 0.75
    if values is None or bar is None:
        return None
    try:
        model = _embedder(at.find("provider") or context.provider)
    except DefinitionError as problem:
        return placeholder(f"{kind} with the provider {problem.message}", "", at)
    options = {"measure": kind.partition(":")[2] or "cosine"} | ({} if model is None else {"model": model})
    check = at.built(Similar, values, threshold=bar, **options)
    if check is None:
        return None
    return as_assertion(at, check, kind)


def _embedder(at: Cursor | None) -> str | None:
    """Return the embedding model that a provider names, None where it names none; an unknown vendor is refused."""
    if at is None:
        return None
    if isinstance(at.value, dict):
        inner = at.find("embedding", "id")
        return None if inner is None or inner.value == at.value else _embedder(inner)
    return embedding_name(at.value) if isinstance(at.value, str) else None


# -- comparisons of the outputs of a test -----------------------------------------------------------------------


def select_best(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the choice of the best output by a judge, at the cursor; None where an error was noted."""
    if kind.startswith("not-"):
        return placeholder(f"{kind}: there is only {kind.removeprefix('not-')}", "", at)
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
        return placeholder(f"{kind} with {why}", "", at)
    except DefinitionError as problem:
        return placeholder(f"{kind} with a rubricPrompt that is not a template", problem.message, at)
    if values is None or (prompt is not None and template is None and shown is None):
        return None
    if prompt is not None and "outputs" not in names and "output" not in names:
        # The judge would pick without having seen them.
        return placeholder(f"{kind} with a rubricPrompt that does not show {{{{ outputs }}}}", "", at)
    judge = judge_of(at.find("provider") or context.provider)
    check = Holds(SelectBest(context.test, values[0], template, shown))
    return Assertion(str(check), check, kind=kind, judges=frozenset({judge}))


_PLAIN_OUTPUTS = re.compile(r"\{\{-?\s*outputs\s*-?\}\}")
_OF_OUTPUTS = {"outputs": "output", "criteria": "rubric"}


def max_score(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the choice of the best output by its other assertions, at the cursor; None where an error was noted."""
    if kind.startswith("not-"):
        return placeholder(f"{kind}: there is only {kind.removeprefix('not-')}", "", at)
    options = texts.values_in(at["value"], "options of max-score (a mapping)")
    at["value"].reads(frozenset({"method", "weights", "threshold"})) if options else None
    method = options["method"].value if "method" in options else "average"
    if method not in ("average", "sum"):
        options["method"].error(f"expected average or sum, got {shorten(repr(method), 40)}")
        return None
    bar = options["threshold"].number() if "threshold" in options else None
    given = options.get("weights")
    weights = {} if given is None else texts.values_in(given, "weights by assertion type (a mapping)")
    numbers = {name: one.number(0) for name, one in weights.items()}
    if None in numbers.values() or ("threshold" in options and bar is None):
        return None
    check = Holds(MaxScore(context.test, FrozenMap(numbers), method == "sum", bar))
    return Assertion(kind, check, kind=kind)


# -- calls of tools ----------------------------------------------------------------------------------------


def valid_calls(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the check of the calls against the provider's tools, of the type *kind*, at the cursor."""
    bare = kind.removeprefix("not-")
    listed = [context.tools[key] for key in SOURCES[bare] if key in context.tools]
    if not listed:
        return placeholder(f"{kind} without the {' or '.join(SOURCES[bare])} of a provider", "", at)
    schemas: dict[str, Any] = {}
    for tools in listed:
        try:
            is_lost = is_reference(tools.value) and (is_code(tools.value) or tools.loading.root is None)
            whole = None if is_lost else follow(tools, tools.warn)
            if whole is not None and isinstance(whole.value, list):  # servers have no schemas, and may show their keys
                whole = whole.holding([t for t in whole.value if not isinstance(t, dict) or t.get("type") != "mcp"])
            content = None if whole is None else texts.content_of(whole, context)
            if content is None:
                return placeholder(f"{kind} with tools that cannot be read", "", at)
            schemas |= schemas_of(content.value)
        except (UnsupportedPromptError, DefinitionError) as problem:
            return placeholder(f"{kind} with tools that cannot be read", str(problem), at)
    return as_assertion(at, Holds(ValidCalls(bare, schemas)), kind)


# -- model graders by name ---------------------------------------------------------------------------------


@frozen
class ModelGrader:
    """
    A model grader that a type names: the *text* that the judge is asked, with `{value}` in it, and its *answer*.

    Args:
        threshold: From where it passes, unless the assertion says so; None: the answer decides.
        needs: What it cannot do without: `value`, `context`.
        several: Whether a list of values is as many criteria.
        fixed: Whether a threshold of the assertion's own has no effect.
    """

    text: str
    answer: Answer
    threshold: float | None = None
    needs: tuple[str, ...] = field(default=(), converter=tuple)
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


_ANSWERS: dict[str, Answer] = {
    "unit": Unit(), "flag": Unit(flag=True), "yes_no": YesNo(), "levels": Levels(), "categories": _categories({}),
}  # fmt: skip
_TABLE = tomllib.loads(resources.files("rubric.formats.promptfoo").joinpath("model_graders.toml").read_text("utf-8"))
_GRADERS = {kind: ModelGrader(**{**row, "answer": _ANSWERS[row["answer"]]}) for kind, row in _TABLE.items()}
MODEL_GRADERS = {**_GRADERS, "model-graded-factuality": _GRADERS["factuality"]}
"""The model graders by type, without `not-`."""

_ALIASES = words_of("promptfoo", "slots", "aliases")
"""What promptfoo calls the slots of these graders' own prompts, and the slots of ours."""

_MOST_SHOWN = 120


def read_model_grader(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the model grader at the cursor, of the type *kind*; None where an error was noted."""
    bare = kind.removeprefix("not-")
    grader = MODEL_GRADERS[bare]
    try:
        template = _own_prompt(at, context, grader)
    except UnsupportedPromptError as why:
        return placeholder(f"{kind} {why}", "", at)
    if template is None:
        return None
    values = [""]
    if "value" in grader.needs:
        texts = _values(at, context, several=grader.several)
        if texts is None:
            return None
        values = texts
    bar = at["threshold"].number(0, written=True) if at.has("threshold") and not grader.fixed else grader.threshold
    scores = context.factuality
    answer = grader.answer
    if grader is MODEL_GRADERS["factuality"] and scores:
        scale = at.built(_categories, scores)
        if scale is None:
            return None
        answer, bar = scale, min((choice.score for choice in scale.choices if choice.score > 0), default=1.0)
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
    """Return the assertion that `read_model_grader` reads as *rubric*, without an own prompt, or None."""
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
    """Return the prompt that *grader* is asked with in place of ours, '' for ours; None where an error was noted."""
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
        content = None if value.value is None else texts.value_of(value, context)
    except UnsupportedPromptError:
        content = None
    if content is None or content.value in ([], {}) or (content.value == "" and not empty):
        message = f"{at.value['type']} needs a text; write it as `value`"
        # What shows nothing here may show something to another run, so it is not a flaw of the file.
        lack = f"a value that shows nothing ({shorten(texts.as_text(value.value), 60)})"
        at.error(LackingError(lack, message) if value.value else message)
        return None
    given = [*content] if several and isinstance(content.value, list) else [content]
    found = [one.words() if isinstance(one.value, str) and not empty else texts.as_text(one.value) for one in given]
    return None if None in found else [one for one in found if one is not None]


BAR, _TRANSFORMED, _NONE = frozenset({"threshold"}), frozenset({"contextTransform"}), frozenset[str]()

GRADERS: dict[str, tuple[Reader, frozenset[str]]] = {
    **{name: (read_check, row.names("promptfoo")) for name, row in KINDS.items() if "promptfoo" in row.systems},
    **dict.fromkeys(_SIMILAR, (similar, BAR)),
    "select-best": (select_best, _NONE),
    "max-score": (max_score, _NONE),
    **dict.fromkeys(SOURCES, (valid_calls, _NONE)),
    **{
        name: (read_model_grader, (_NONE if one.fixed else BAR) | (_TRANSFORMED if "context" in one.needs else _NONE))
        for name, one in MODEL_GRADERS.items()
    },
}
"""The readers of assertion types, without `not-`, and the keys that they read besides those of all assertions."""

NEED_VALUE = frozenset({
    *(name for name, row in KINDS.items() if "promptfoo" in row.systems and "value" in row.needs()),
    *(name for name, grader in MODEL_GRADERS.items() if "value" in grader.needs),
    *_SIMILAR, "select-best",
})  # fmt: skip
"""The types that say nothing without a value: promptfoo reads such an assertion, and fails its test."""
