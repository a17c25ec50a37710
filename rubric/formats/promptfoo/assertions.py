"""
The assertions of one test, as a rubric.

One assertion is the rubric itself. Several are its criteria: without a threshold of the test all must pass; with one
the weighted mean decides alone, so each judged one is a rubric of its own, whose failing flag fails that one only.

Code decides most assertions (`read_check`), a judge decides `llm-rubric` (`judged`). The provider of a grader becomes a
`Judge`; a file never says where a judge is, nor how to log in there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from attrs import evolve, field, frozen

from rubric import Candidate, Criterion, DefinitionError, Holds, Judge, Rubric, Unit
from rubric.embed import NOTHING, Check, Cursor, FrozenMap, fields, shorten, thaw
from rubric.formats.assertions.table import find_kind
from rubric.formats.assertions.texts import KNOWN
from rubric.formats.assertions.tool_calls import SOURCES
from rubric.formats.images import Attached
from rubric.formats.includes import from_here, is_reference, read_text_at
from rubric.formats.javascript import JavaScript, Transform, Transformed, inline, tell_engine
from rubric.formats.javascript_modules import program_at, program_of_file
from rubric.formats.keys import keys_of, part_of, table_of
from rubric.formats.promptfoo import texts
from rubric.formats.promptfoo.graders import BAR, GRADERS, NEED_VALUE, read_check
from rubric.formats.promptfoo.parts import Assertion, as_assertion, judge_of, lacking, placeholder
from rubric.formats.promptfoo.tests import assertions_of
from rubric.formats.promptfoo.texts import Context, UnsupportedPromptError
from rubric.formats.python import PythonTransform, is_python_file, named_file, python_script, python_transform
from rubric.formats.rubric_items import ItemScope, free_name, read_items
from rubric.programs.javascript import Program
from rubric.suites.output_choice import MaxScore, OutputChoice
from rubric.values import Script, Similar, Unsupported


def read_javascript(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the `javascript` (or `not-javascript`: *kind*) at the cursor; None where an error was noted."""
    bar = at["threshold"].number(written=True) if at.has("threshold") else None
    source = texts.as_text(at.value.get("value"))
    program = program_of(at["value"], context, kind)
    if isinstance(program, str):
        return placeholder(program, source, at)
    config = FrozenMap(at.value["config"]) if isinstance(at.value.get("config"), dict) else None
    function = JavaScript(
        source, program, context.slots.variables, config, threshold=bar, negate=kind.startswith("not-")
    )
    return Assertion(function.__name__, Holds(function), kind=kind)


def read_python(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the `python` (or `not-python`: *kind*) at the cursor: a function of the caller's, or a program."""
    bar = at["threshold"].number(written=True) if at.has("threshold") else None
    if (check := _function(at, "python")) is not None:
        return as_assertion(at, check, kind, bar)
    value = at.value.get("value")
    if not isinstance(value, str) or not value.strip():
        return placeholder(f"{kind} without code", "", at)
    source, named = value, named_file(value)
    if named is not None:
        before = at.notes.failures
        text = read_text_at(f"file://{named[0]}", at["value"], code=True, lacking=at["value"].warn)
        if text is None:
            lacking = "may not be read" if at.notes.failures > before else "is not within reach"
            return placeholder(f"{kind} by a file that {lacking}", value, at)
        source, value = text, f"file://{from_here(named[0], at.loading)}:{named[1]}"
    else:
        try:
            source = value = texts.fill_slots(at["value"], value, context.slots.variables)
        except DefinitionError as problem:
            return placeholder(f"{kind} that is not a template: {problem.message}", "", at)
    config = at.value["config"] if isinstance(at.value.get("config"), dict) else None
    script = python_script(value, source=source, threshold=bar, negate=kind.startswith("not-"), config=config)
    return Assertion(shorten(f"{kind}: {' '.join(value.split())}", 80), script, kind=kind)


def program_of(at: Cursor, context: Context, kind: str) -> Program | str:
    """Return the program that the cursor holds or names; where there is none, what this library lacks to run it."""
    value = at.value
    if not isinstance(value, str) or not value.strip():
        return f"{kind} without code"
    tell_engine(at)
    is_file = is_reference(value)
    try:
        if is_file:
            return program_at(value, at, program_of_file)
        return inline(texts.fill_slots(at, value, context.slots.variables))
    except DefinitionError as problem:
        return f"{kind} {'by' if is_file else 'that is not a template:'} {problem.message}"


def transform_of(at: Cursor, context: Context, kind: str) -> Program | PythonTransform | str:
    """Return the transform that the cursor holds or names, in JavaScript or Python; or what is lacking, as above."""
    if not is_reference(at.value) or not is_python_file(at.value):
        return program_of(at, context, kind)
    try:
        return python_transform(at.value, at)
    except DefinitionError as problem:
        at.warn(problem.message)
        return f"{kind} by a file that is not within reach"


def _apply_transforms(assertion: Assertion, at: Cursor, context: Context, kind: str) -> Assertion:
    """Return *made* of what the test's transforms, then the assertion's own, make of the output."""
    programs, shared = [*context.transforms], len(context.transforms)
    asked = isinstance(assertion.answer, Rubric) and kind.removeprefix("not-").startswith("context-")
    of_context = at["contextTransform"] if asked and at.has("contextTransform") else None
    found: dict[str, Program | PythonTransform] = {}
    for name, source in (("transform", at.find("transform")), ("contextTransform", of_context)):
        if source is not None:
            program = transform_of(source, context, name)
            if isinstance(program, str):
                return placeholder(program, "", at)
            found[name] = program
    programs += [found["transform"]] if "transform" in found else []
    if not (programs or found) or isinstance(assertion.answer, Unsupported):
        return assertion
    images = () if assertion.on is None else assertion.on.images
    whole = Transform(tuple(programs), context.slots.variables, shared, found.get("contextTransform"), images)
    checked = None if _compares(assertion) else _checked_after(assertion.answer, whole)
    return evolve(assertion, on=whole, plain=False) if checked is None else evolve(assertion, answer=checked)


def _checked_after(answer: Check | Rubric, transform: Transform) -> Check | Rubric | None:
    """Return *answer* after a *transform*, where code alone decides: what that made may be data; else None."""
    if isinstance(answer, Check):
        return None if isinstance(answer, Similar | Script) else Holds(Transformed(answer, transform))
    parts = [_checked_after(c.answer, transform) if isinstance(c.answer, Check) else None for c in answer.criteria]
    if not parts or None in parts:
        return None
    criteria = [evolve(c, answer=part) for c, part in zip(answer.criteria, parts, strict=True) if part is not None]
    return evolve(answer, criteria=criteria)


def _function(at: Cursor, kind: str) -> Check | None:
    """Return the check by the function that a `python` assertion names, if the caller gave one of that name."""
    value = at.value.get("value")
    if kind != "python" or not isinstance(value, str):
        return None
    path, _, name = value.removeprefix("file://").partition(":")
    names = (value, name, PurePosixPath(path).stem) if value.startswith("file://") else (value.strip(),)
    for known in names:
        if known in at.loading.functions:
            return Holds(at.loading.functions[known])
    return None


_RUBRIC_SLOT = re.compile(r"\{\{\s*rubric\s*\}\}")
_WITHOUT_VALUE = "as the rubric prompt says"
"""The text of a rubric that has a prompt of its own, and no other text."""


def read_llm_rubric(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the `llm-rubric` (or `not-llm-rubric`: *kind*) at the cursor; None where an error was noted."""
    provider, prompt = at.find("provider") or context.provider, at.find("rubricPrompt") or context.prompt
    judge = judge_of(provider)
    if prompt is None and not at.has("value"):
        return placeholder(f"{kind} without a value", "", at)
    images = Attached()
    try:
        template = None if prompt is None else texts.template_of(prompt, context.slots, images)
        content = _rubric_text(at, context, has_prompt=prompt is not None)
    except UnsupportedPromptError as why:
        return placeholder(f"{kind} with {why}", "", at)
    if images.lacks:
        return placeholder(f"{kind} with {images.lacks}", "", at)
    bar = at["threshold"].number(written=True) if at.has("threshold") else None
    if template is not None and at.value.get("value") is None:  # promptfoo shows nothing in its place
        template = _RUBRIC_SLOT.sub("", template)
    if content is None or (prompt is not None and template is None) or (at.has("threshold") and bar is None):
        return None
    if bar is not None and bar > 1:  # promptfoo takes it, and fails whatever is answered
        return placeholder(f"{kind} with a threshold of {bar:g}, above every score; write one from 0 to 1", "", at)
    rubric = (at.find("threshold") or at).built(_rubric, content, bar, template, negate=kind.startswith("not-"))
    if rubric is None or not (rubric.text or rubric.criteria):
        return None  # why it has no items has been noted
    words = content.value if isinstance(content.value, str) else ", ".join(c.text for c in rubric.criteria)
    text, judges = f"not: {words}" if rubric.negate else words, frozenset({judge})
    plain = bar is None and template is None and isinstance(content.value, str) and not rubric.negate
    seen = Transform((), images=tuple(images.found)) if images.found else None
    return Assertion(text, rubric, kind=kind, judges=judges, plain=plain, on=seen)


STEPS = 10
"""How often the judge of an `agent-rubric` may call tools."""


def looking(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the `agent-rubric` (or `not-agent-rubric`: *kind*) at the cursor: its judge reads, and runs nothing."""
    provider = at.find("provider")
    id_ = provider.value.get("id") if provider is not None and isinstance(provider.value, dict) else None
    named = provider.value if provider is not None and isinstance(provider.value, str) else id_
    if provider is not None and named in keys_of("promptfoo", "agents", "runtimes"):
        provider.warn(f"{named} is not run: the judge reads the files, the diff and the results of the candidate's run")
        at = at.holding({key: value for key, value in at.value.items() if key != "provider"})
    made = read_llm_rubric(at, context, kind)
    if made is None or not isinstance(made.answer, Rubric):
        return made
    return evolve(made, answer=evolve(made.answer, max_steps=STEPS), plain=False)


_SEARCHES = re.compile(r"perplexity/(?!r1)|.*-search-(?:preview|api)\b")
"""The models that search the web for each answer, by LiteLLM's names."""


def read_search(at: Cursor, context: Context, kind: str) -> Assertion | None:
    """Return the `search-rubric` (or `not-search-rubric`: *kind*) at the cursor, if its own grader searches the web."""
    judge = judge_of(at.find("provider") or context.provider)
    searches = judge is not None and _SEARCHES.match(judge.name)
    return read_llm_rubric(at, context, kind) if searches else placeholder(kind, "", at)


def _rubric(content: Cursor, bar: float | None, template: str | None, *, negate: bool) -> Rubric:
    options: dict[str, Any] = {"threshold": bar, "prompt": template}
    if negate:
        options |= {"negate": True, "degenerate": "judge"}
    if isinstance(content.value, list):  # as in AgentV, each text or mapping has a verdict of its own
        return Rubric(criteria=read_items([*content], ItemScope(required=content.loading.required)), **options)
    menu = texts.categories_of(template)
    if menu is not None:
        options["threshold"] = 0.5 if bar is None else bar
        return Rubric(criteria=[Criterion(content.value, id="overall", answer=menu)], **options)
    if bar is None:
        return Rubric(text=content.value, **options)
    return Rubric(criteria=[Criterion(content.value, id="overall", answer=Unit(flag=True))], **options)


def _rubric_text(at: Cursor, context: Context, *, has_prompt: bool) -> Cursor | None:
    """Return the rendered text of a rubric, or the list of its criteria; None if it was noted that there is none."""
    value = at["value"]
    if value.value is None and has_prompt:
        return value.holding(_WITHOUT_VALUE)
    content = texts.value_of(value, context)
    if content is None:
        return None
    if isinstance(content.value, dict):
        return content.holding(texts.compact(content.value))
    if not isinstance(content.value, str | list) or not content.value or not str(content.value).strip():
        value.error(f"a rubric needs text: expected a text or a list of them, got {shorten(repr(value.value), 60)}")
        return None
    return content


_DEEPEST = 10
_KEYS = part_of("promptfoo", "assertion")
_OF_SETS = {"assert": "only a set has assertions of its own: `type: assert-set`"}


@frozen
class Graded:
    """A *rubric*, its *judge*, and the *judges* of single criteria by id."""

    rubric: Rubric
    judge: Judge | None = None
    judges: dict[str, Judge] = field(factory=dict)


def read_assertions(
    asserts: Sequence[Cursor], context: Context, threshold: Cursor | None, place: Cursor, more: Sequence[Assertion] = ()
) -> Graded | None:
    """Return the rubric of *asserts*, and of *more* that the test at *place* lacks; None where an error was noted."""
    made = [made for at in asserts if (made := _read(at, context)) is not None]
    if len(made) < len(asserts):
        return None
    with place.notes.lacking(whole=True) as lacks:
        bar = None if threshold is None else _bar(threshold)
        if made and not any(one.weight for one in made):
            place.error("the weights of its assertions sum to 0, so that any answer would pass; give one a weight")
    made, bar = ([lacking("a test", lacks, place)], None) if lacks else ([*made, *more], bar)
    if not made:
        place.warn("this test asserts nothing, so it stays ungraded; give it an `assert`")
        made = [Assertion("nothing is asserted", NOTHING, kind="no assertions")]
    single = made[0]
    alone = len(made) == 1 and single.weight == 1 and bar is None and not single.tags and single.on is None
    if alone and isinstance(single.answer, Rubric):
        return Graded(single.answer, judge=next(iter(single.judges), None))
    rubric = (threshold or place).built(_together, made, bar)
    if rubric is None:
        return None
    everyone = frozenset(judge for one in made for judge in one.judges)
    if len(everyone) == 1:
        return Graded(rubric, judge=next(iter(everyone)))
    judges: dict[str, Judge] = {}
    for criterion, one in zip(rubric.criteria, made, strict=True):
        if len(one.judges) > 1 and one.place is not None:
            one.place.warn("the assertions of a set have one grader; the first one's is taken")
        judge = next((judge for judge in one.judges if judge is not None), None)
        if judge is not None:
            judges[criterion.id] = judge
    return Graded(rubric, judges=judges)


def _bar(threshold: Cursor) -> float | None:
    bar = threshold.number(written=True)
    if bar is not None and not 0 <= bar <= 1:
        threshold.error(f"expected a number from 0 to 1, got {bar:g}")
    return bar


@lru_cache(maxsize=1_000)  # the same few in all tests of a file
def _id_of(name: str) -> str:
    """Return the id of a criterion that is called *name*."""
    return Criterion(name).id


def _together(made: Sequence[Assertion], bar: float | None) -> Rubric:
    """Return the rubric of several assertions; without a threshold a flag that fails may fail the whole."""
    criteria: dict[str, Criterion] = {}
    rated = any(one.weight and not _compares(one) for one in made)
    for one in made:
        id_ = free_name(_id_of(one.tags[0] if one.tags else one.kind), criteria)
        answer = Unit(flag=True) if bar is None and one.weight and one.plain else one.answer
        asked: dict[str, Any] = {} if one.on is None else {"on": one.on}
        if _compares(one):  # it fails the others, and changes no score but where it is all that is asserted
            asked |= {"min_score": 1.0}
        weight = float(not rated) if _compares(one) else one.weight
        criteria[id_] = Criterion(one.text, answer=answer, id=id_, weight=weight, tags=one.tags, **asked)
    kinds = {id_: one.kind for id_, one in zip(criteria, made, strict=True) if not _compares(one)}
    criteria = {id_: _with_weights(criterion, kinds) for id_, criterion in criteria.items()}
    # An empty output is left to the checks where no judge is asked: only a judge can be talked round by nothing.
    judged = any(one.judges for one in made)
    return Rubric(criteria=[*criteria.values()], threshold=bar, degenerate="fail" if judged else "judge")


def _compares(one: Assertion) -> bool:
    return isinstance(one.answer, Holds) and isinstance(one.answer.function, OutputChoice)


def _with_weights(criterion: Criterion, kinds: Mapping[str, str]) -> Criterion:
    """Return *criterion* with the weights of its `max-score`, from those of types to those of criteria."""
    function = criterion.answer.function if isinstance(criterion.answer, Holds) else None
    if not isinstance(function, MaxScore):
        return criterion
    weights = {id_: function.weights.get(kind, 1.0) for id_, kind in kinds.items()}
    return evolve(criterion, answer=Holds(evolve(function, weights=weights)))


# -- one assertion ---------------------------------------------------------------------------------------


def _read(at: Cursor, context: Context, depth: int = 0) -> Assertion | None:
    made, weight = None, None
    with at.notes.lacking(whole=True) as lacks:
        resolved = _resolve(at)
        if resolved is not None and resolved.mapping("an assertion (a mapping)"):
            if depth > _DEEPEST:
                resolved.error(f"sets of assertions nest more than {_DEEPEST} deep; make them flatter")
                return None
            made = _of_type(resolved, context, depth)
            weight = resolved["weight"].number(0, written=True) if resolved.has("weight") else 1
    if lacks:
        return lacking(str(at.value.get("type")) if isinstance(at.value, dict) else "an assertion", lacks, at)
    if resolved is None or made is None or weight is None:
        return None
    with resolved.notes.lacking():  # a name is no reason to leave anything ungraded
        metric = texts.content_of(resolved["metric"], context) if isinstance(resolved["metric"].value, str) else None
    tags = () if metric is None or not str(metric.value).strip() else (str(metric.value),)
    return evolve(made, weight=weight, tags=tags, place=resolved)


def _resolve(at: Cursor) -> Cursor | None:
    """Follow a `$ref` within the file; keys beside it win over those that it names."""
    for _ in range(_DEEPEST):
        if not isinstance(at.value, dict) or "$ref" not in at.value:
            return at
        target = _target(at)
        if target is None or not target.mapping("an assertion (a mapping)"):
            return None
        own = {key: value for key, value in at.value.items() if key != "$ref"}
        at = target.holding({**target.value, **own})
    at.error("these references lead in a circle")
    return None


def _target(at: Cursor) -> Cursor | None:
    reference = at.value["$ref"]
    steps = reference.removeprefix("#/").split("/") if isinstance(reference, str) else []
    if not steps or not reference.startswith("#/"):
        at.error(f"expected a reference such as #/assertionTemplates/name, got {shorten(repr(reference), 60)}")
        return None
    target = at.root
    for step in steps:
        if not target.has(step):
            at.error(f"there is no {step!r} at {shorten(reference, 80)} in this file")
            return None
        target = target[step]
    return target


@frozen
class _Given:
    """The caller's *function* for a type that is not here: it is shown the candidate and the assertion's value."""

    kind: str
    function: Callable[[Candidate, Any], Any]
    value: FrozenMap

    @property
    def __name__(self) -> str:
        return shorten(f"{self.kind}: {self.value['value']}", 80)

    def __call__(self, candidate: Candidate) -> Any:
        return self.function(candidate, thaw(self.value)["value"])


_BARS = {"classifier": 1.0, "pi": 0.5}
"""promptfoo's thresholds, where an assertion has none."""


def _of_type(at: Cursor, context: Context, depth: int) -> Assertion | None:
    kind = at.value.get("type")
    if kind == "assert-set" or (kind is None and at.has("assert")):
        return _set(at, context, depth)
    if not isinstance(kind, str) or not kind.strip():
        at.reads(**_KEYS | {"known": _KEYS["known"] | BAR})
        at.error("an assertion has a type, such as llm-rubric or contains")
        return None
    bare = kind.removeprefix("not-")
    if near := "" if bare in at.loading.functions else _misspelt(kind):
        at["type"].error(f"unknown type {kind!r}; did you mean {near!r}?", slip=True)
        return None
    if kind != bare and bare in _TURNED_HERE:
        at["type"].warn(f"promptfoo reads over the not- of {kind}; here it turns the outcome over")
    row = None if bare in READERS else find_kind(bare)
    read, known = READERS.get(bare, (read_check, BAR if row is None else row.names("promptfoo")))
    fates = _KEYS["fates"] | {"threshold": f"promptfoo reads no threshold of {bare}, so it is not used; take it out"}
    fates = {key: fate for key, fate in fates.items() if key not in known}
    given = at.loading.functions.get(bare) if row is None and (bare not in READERS or bare == "search-rubric") else None
    if given is not None:
        check = Holds(_Given(kind, given, FrozenMap({"value": at.value.get("value")})))
        bar = at["threshold"].number(written=True) if at.has("threshold") else _BARS.get(bare)
        return as_assertion(at, check, kind, bar)
    at.reads(_KEYS["known"] | known, fates, _KEYS["elsewhere"] | _OF_SETS, _KEYS["quiet"])
    if bare in NEED_VALUE and not at.has("value"):
        return placeholder(f"{kind} without a value", "", at)
    made = read(at, context, kind)
    return None if made is None else _apply_transforms(made, at, context, kind)


# The readers of assertion types, without `not-`, and the keys that they read besides those of all assertions.
# A reader takes the assertion, its test, and its type as the file has it. Types that are not here are unsupported.
READERS: dict[str, tuple[Callable[[Cursor, Context, str], Assertion | None], frozenset[str]]] = {
    "llm-rubric": (read_llm_rubric, BAR),
    "agent-rubric": (looking, BAR),
    "search-rubric": (read_search, BAR),
    "javascript": (read_javascript, BAR | {"config"}),
    "python": (read_python, BAR | {"config"}),
    **GRADERS,
}


_TURNED_HERE = frozenset({"factuality", "model-graded-factuality", "model-graded-closedqa", *SOURCES})
"""Types whose `not-` has no effect in promptfoo."""

_TURNED = re.compile(r"\Anot[-_ ]?", re.IGNORECASE)


def _misspelt(kind: str) -> str:
    bare = kind.removeprefix("not-")
    if bare in KNOWN or ":" in bare or find_kind(bare) is not None:
        return ""
    plain = _TURNED.sub("", kind)
    near = next((name for name, words in table_of("promptfoo")["meant"].items() if plain.lower() in words.split()), "")
    near = near or fields.misspelt(plain, KNOWN)
    return f"not-{near}" if near and _TURNED.match(kind) else near


def _set(at: Cursor, context: Context, depth: int) -> Assertion | None:
    at.reads(**_KEYS | {"known": _KEYS["known"] | BAR | {"assert"}})
    children = assertions_of(at["assert"])
    if not children:
        at.error("a set of assertions has at least one; give it an `assert`")
        return None
    made = [made for child in children if (made := _read(child, context, depth + 1)) is not None]
    bar = at["threshold"].number(written=True) if at.has("threshold") else None
    if len(made) < len(children) or (at.has("threshold") and bar is None):
        return None
    if len(made) == 1 and bar is None and made[0].weight and not made[0].tags:
        return evolve(made[0], weight=1)
    rubric = at.built(_together, made, bar)
    if rubric is None:
        return None
    words = at.value.get("description") or ", ".join(one.text for one in made)
    everyone = frozenset(judge for one in made for judge in one.judges)
    return Assertion(shorten(str(words)), rubric, kind="assert-set", judges=everyone)
