"""
Hypothesis strategies: any rubric and any suite that can be built and written to a file. They need Hypothesis.

Strategies that draw from others have those made once, outside of the drawing: a new one is checked, and its filters'
code is parsed, at its first draw, which took more than half of the time of a law over suites.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from attrs import evolve
from hypothesis import strategies as st

from rubric import (
    Anchor,
    Calls,
    Candidate,
    Cascade,
    Choice,
    Choices,
    Contains,
    ContainsAll,
    ContainsAny,
    Criterion,
    DecisionTree,
    DefinitionError,
    EndsWith,
    Equals,
    FitsSchema,
    IsJSON,
    Judge,
    Jury,
    Levels,
    Likert,
    Matches,
    Message,
    Panel,
    Rubric,
    ScoreRange,
    StartsWith,
    ToolCall,
    Trajectory,
    Unit,
    When,
    YesNo,
    call,
    said,
    state,
)
from rubric.embed import Answer
from rubric.formats import schema
from rubric.suites.cases import Case, Turn
from rubric.suites.suite import Suite
from rubric.values import Boolean, Leaf, Letter, RubricTest, RunMetrics, Script, Similar, UnitScale, Unsupported, Within
from rubric.values.criteria import names_a_metric

T = TypeVar("T")

AWKWARD = (
    "no", "yes", "y", "on", "Off", "null", "Null", "~", "true", "FALSE", "1", "1.0", "-3", "+1", "017",
    "0o17", "0x1F", "0b1", "1_000", "1e5", ".5", "-.inf", ".NaN", "NaN", "_", "-_", "._", "1:30:45",
    "2024-01-01", "2024-01-01T10:00:00Z", "0..10", "7-10", "<<", "=", "-", "- a", "? a", "a: b", ": a", "a:",
    "#", "a #b", "&a", "*a", "!a", "!!str a", "%YAML 1.1", "@a", "`a", "|", ">", "'", '"', "''", '"a"', "\\",
    "\\n", "[", "]", "{", "}", ",", "a, b", "{a: b}", "---", "...", "--- a", " a", "a ", "\ta", "a\t", "a\tb",
    "a\n", "\na", "a\nb", "a\n\nb\n", "a\n\n", " a\nb", "a\n b", "a \nb", "a\r\nb", "a\rb", "a\n\tb",
    "a\n# b", "# a\nb", "- a\n- b", "---\na", "a\n...\nb", "a\x85b", "a\u2028b", "a\u2029b", "\ufeffa",
    "a\ufeff", "a\x00b", "a\x07b", "a\x1bb", "a\x7fb", "a\x9bb", "\ud800a", "a\udfffb", "\U0001f600",
    "e\u0301", "\u202ea", "\u200ba", "a\xa0b", "\xa0a", "a\u3000", "\ufffe", "\uffff", "\U0010ffff",
    "criteria", "text", "is_json", "a" * 130, "a b " * 50,
)  # fmt: skip
"""Texts that writers and readers of YAML have got wrong."""

extreme_numbers = st.sampled_from([1e-300, 1e300, 5e-324, 10**300, 0.1, 1e16])
numbers = st.one_of(st.integers(1, 10**6), st.floats(1e-9, 1e9), extreme_numbers)
scores = st.one_of(st.sampled_from([0, 1, 0.0, 1.0, 0.5, 0.6]), st.floats(0, 1))


def _unjoined(text: str) -> bool:
    """True if no two half surrogates in *text* would join in JSON."""
    return not any("\ud800" <= a <= "\udbff" and "\udc00" <= b <= "\udfff" for a, b in pairwise(text))


@cache
def any_texts(max_size: int = 30) -> st.SearchStrategy[str]:
    """Return texts of all kinds, the empty one too: words, odd Unicode, and texts that YAML takes for other values."""
    odd = st.text(st.characters(), max_size=max_size).filter(_unjoined)
    words = st.text(string.ascii_lowercase + " ,.'\n", max_size=max_size)
    return st.one_of(words, st.sampled_from(AWKWARD), odd)


@cache
def texts(max_size: int = 30) -> st.SearchStrategy[str]:
    """Return texts with something in them that are no names of metrics, which no criterion asks by."""
    return any_texts(max_size).filter(lambda text: text.strip() != "" and not names_a_metric(text))


def takes(kind: Callable[..., object], *given: Any, **options: Any) -> bool:
    """True if a *kind* can be built of these arguments."""
    try:
        kind(*given, **options)
    except DefinitionError:
        return False
    return True


ids = texts().filter(lambda text: takes(Criterion, "Is it so?", id=text))

plain_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), any_texts()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(any_texts(), inner, max_size=3)),
    max_leaves=6,
)

free_maps = st.dictionaries(any_texts(), plain_values, max_size=3)
patterns = st.sampled_from(["a+", r"\d{4}-\d{2}", r"(?i)sorry|cannot", r"\p{L}", "'", '"\\n"', "no", "[a-z]: #", "\n"])


_lengths = st.lists(st.integers(1, 5), max_size=5)
_starts = st.one_of(st.sampled_from([0, 1, -5]), st.integers(-(2**52), 2**52))
_gaps = st.integers(0, 3)


@st.composite
def levels(draw: st.DrawFn) -> Levels:
    """Return levels: bands and anchors, anywhere on the number line; or a plain scale."""
    lengths = draw(_lengths)
    before = 0
    low = draw(_starts)
    bands = []
    for length in lengths:
        if before == 1:  # behind an anchor there may be a gap
            low += draw(_gaps)
        before = length
        bands.append(ScoreRange(low, low + length - 1, draw(texts())))
        low += length
    return Levels(bands) if sum(lengths) > 1 else Levels(ScoreRange(low, low + 7))


choice = st.builds(Choice, texts(), scores, text=st.one_of(st.just(""), any_texts()))
choice_lists = st.lists(choice, min_size=2, max_size=4).filter(lambda found: takes(Choices, found)).map(Choices)
leaves = st.builds(Leaf, scores, reason=st.one_of(st.just(""), any_texts()))
trees: st.SearchStrategy[Any] = st.recursive(
    leaves, lambda branch: st.builds(DecisionTree, texts(), yes=branch, no=branch), max_leaves=8
).filter(lambda tree: isinstance(tree, DecisionTree))

schemas = st.fixed_dictionaries(
    {"type": st.sampled_from(["object", "string", ["object", "null"]])},
    optional={
        "title": any_texts(),
        "const": plain_values,
        "examples": st.lists(plain_values, max_size=2),
        "properties": st.dictionaries(any_texts(), st.sampled_from([True, {"type": "integer"}]), max_size=2),
    },
)

_OF_A_TEXT = (Contains, StartsWith, EndsWith, Equals)
text_lists = st.lists(texts(), min_size=1, max_size=3)
checks = st.one_of(
    *(st.builds(kind, texts(), ignore_case=st.booleans()) for kind in _OF_A_TEXT),
    *(st.builds(kind, text_lists, ignore_case=st.booleans()) for kind in (ContainsAny, ContainsAll)),
    st.builds(Matches, patterns),
    st.just(IsJSON()),
    st.builds(FitsSchema, schemas),
    st.builds(Calls, texts(), arguments=free_maps),
    st.builds(Trajectory, text_lists, order=st.sampled_from(["in_order", "exact"])),
    st.builds(lambda name, other: call(name).needs(other, same="a=b").until(said(other)), texts(), texts()),
    st.builds(lambda name, value: call(name).at_most(2) & state(name, value).at_end(), texts(), plain_values),
    st.builds(Similar, text_lists, threshold=scores, measure=st.sampled_from(["cosine", "dot", "euclidean"])),
    st.builds(Within, latency=st.floats(0, 60), cost=st.one_of(st.none(), st.floats(0, 1))),
    st.builds(Script, text_lists, config=free_maps),
    st.builds(Unsupported, texts()),
)

anchors = st.builds(Anchor, texts(), scores, reason=any_texts())
whens = st.one_of(
    st.builds(When, contains=texts(), negated=st.booleans()),
    st.builds(When, regex=patterns),
    st.builds(When, tool_called=texts()),
)
_FORMS = schema()["$defs"]
_KEYS = _FORMS["criterion"]["anyOf"][1]["properties"]
abstentions = st.one_of(st.sampled_from(_FORMS["abstain"]["anyOf"][0]["enum"]), scores)
_either = st.booleans()
flat_answers: st.SearchStrategy[Answer] = st.one_of(
    st.just(YesNo()), st.builds(Unit, flag=st.booleans()), levels(), choice_lists, trees, checks
)


_criterion_options = st.fixed_dictionaries(
    {},
    optional={
        "id": ids,
        "polarity": st.sampled_from(_KEYS["polarity"]["enum"]),
        "weight": st.one_of(numbers, st.just(0)),
        "required": st.booleans(),
        "min_score": st.one_of(st.none(), st.floats(0, 1, exclude_min=True)),
        "when": whens,
        "anchors": st.lists(anchors, max_size=2),
        "evidence": st.sampled_from([None, True, False]),
        "abstain": st.one_of(st.none(), abstentions),
        "on": st.one_of(st.sampled_from(_KEYS["on"]["anyOf"][0]["enum"]), st.integers(1, 9)),
        "tags": st.lists(any_texts(), max_size=2),
        "metadata": free_maps,
    },
)


@st.composite
def criteria(draw: st.DrawFn, answers: st.SearchStrategy[Answer] = flat_answers) -> Criterion:
    """Return a criterion; most of its fields are as by default, as people leave them."""
    answer = draw(answers)
    text = draw(texts()) if draw(_either) else "Is it so?" if isinstance(answer, YesNo | Rubric) else str(answer)
    options: dict[str, Any] = draw(_criterion_options)
    is_fault = options.get("polarity") in ("guard", "penalty")  # whose anchors say whether it is there
    shown = [evolve(a, score=bool(a.score) if is_fault else float(a.score)) for a in options.pop("anchors", ())]
    return built(Criterion, text, answer=answer, anchors=shown, **options)


def _some(**options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return arguments, any of which may be left out."""
    return st.fixed_dictionaries({}, optional=options)


def built(kind: Callable[..., T], *given: Any, **options: Any) -> T:
    """Return a *kind* with *options*, without those that have no effect beside the others."""
    while True:
        try:
            return kind(*given, **options)
        except DefinitionError as problem:
            options.pop(problem.field.partition("[")[0])


scales: st.SearchStrategy[UnitScale | Boolean | Letter | Likert] = st.one_of(
    st.sampled_from([UnitScale(), Boolean(), Letter(), Likert(), Likert(0, 10)]),
    st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: Likert(pair[0], pair[0] + pair[1])),
)


@cache
def _words(max_size: int = 30) -> st.SearchStrategy[str]:
    """Return texts that are not refused as the path of a file."""
    return any_texts(max_size).filter(lambda text: takes(Rubric, guidelines=text))


_rubric_options = _some(
    threshold=scores,
    strict=st.booleans(),
    evidence=st.booleans(),
    abstain=abstentions,
    guidelines=_words(100),
    scale=scales,
    prompt=st.one_of(st.none(), _words()),
    negate=st.booleans(),
    degenerate=st.sampled_from(["fail", "judge", "error"]),
    binding=st.booleans(),
    all_or_nothing=st.booleans(),
    max_steps=st.integers(0, 20),
    reviewed=st.booleans(),
    provenance=free_maps,
)


_outcomes = _some(passes=_either, score=st.tuples(scores, scores).map(sorted))
_replies = st.one_of(_words(), st.builds(Candidate, any_texts(), input=any_texts()))


@st.composite
def tests_of(draw: st.DrawFn, rubric: Rubric) -> RubricTest:
    """Return a test of *rubric*: of its verdict, its score or its first criterion."""
    first = rubric.judged[:1]
    options = draw(_outcomes)
    if first and "passes" not in options:
        options |= {"fails": [first[0].id]}
    said = draw(_either)
    if first and isinstance(first[0].answer, YesNo):
        options |= {"expects": {first[0].id: said}}
    return RubricTest(draw(_replies), **(options or {"passes": True}))


_counts = st.integers(0, 2)


@st.composite
def rubrics(draw: st.DrawFn, *, depth: int = 1) -> Rubric:
    """
    Return any rubric: criteria of every answer type, rubrics *depth* deep, one text, one tree, or none of them.

    It may have tests.
    """
    rubric = draw(_untested(depth))
    tests = [draw(tests_of(rubric)) for _ in range(draw(_counts))]
    return evolve(rubric, tests=tests) if tests else rubric


_kinds = st.sampled_from(["criteria", "criteria", "criteria", "text", "tree"])
_combinations: dict[bool, st.SearchStrategy[Any]] = {
    True: st.sampled_from(["weighted_average", "min"]),  # all that counts is a penalty
    False: st.sampled_from(["weighted_average", "min", "points"]),
}


@cache
def _lists_of_criteria(depth: int) -> st.SearchStrategy[list[Criterion]]:
    answers = st.one_of(flat_answers, rubrics(depth=depth - 1)) if depth else flat_answers
    return st.lists(criteria(answers), max_size=4, unique_by=lambda c: c.id)


@cache
@st.composite
def _untested(draw: st.DrawFn, depth: int) -> Rubric:
    kind = draw(_kinds)
    options = draw(_rubric_options)
    borderline = options.get("threshold", 0.7) if draw(_either) else None
    name = draw(any_texts())
    if kind == "text":
        return built(Rubric, name, text=draw(texts()), borderline=borderline, **options)
    if kind == "tree":
        return built(Rubric, name, tree=draw(trees), borderline=borderline, **options)
    held = draw(_lists_of_criteria(depth))
    if not any(c.weight for c in held):  # what grades nothing is not written down
        held = [evolve(c, weight=1) for c in held]
    if held and all(isinstance(c.answer, Rubric) for c in held):  # which have these settings themselves
        own = {"evidence", "abstain", "guidelines", "prompt", "max_steps"}
        options = {key: value for key, value in options.items() if key not in own}
    signs = {c.polarity == "penalty" for c in held if c.weight}
    aggregation: Any = "points" if len(signs) > 1 else draw(_combinations[True in signs])
    if all(isinstance(c.answer, YesNo) and c.polarity != "penalty" for c in held) and draw(_either):
        return Rubric(name, criteria=held, aggregation=aggregation, **{**options, "threshold": None})
    return Rubric(name, criteria=held, aggregation=aggregation, borderline=borderline, **options)


models = st.sampled_from(["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5", "offline"])

_free_text = st.builds(
    Judge,
    models,
    sealed=st.sampled_from([False]),
    reader=st.sampled_from(["rating", {"yes": "^Yes", "no": r"\bNo\b"}, {"2": "two|2"}]),
)

single_judges = _free_text | st.builds(
    Judge,
    models,
    temperature=st.one_of(st.none(), st.floats(0, 2)),
    seed=st.one_of(st.none(), st.integers(0, 9)),
    per_call=st.sampled_from([1, 3, "all"]),
    reasoning=st.sampled_from(["before", "after", "none"]),
    logprobs=st.booleans(),
    speculate=st.booleans(),
    prime=st.booleans(),
    context=st.none() | st.integers(1, 2_000_000),
    segment_tokens=st.none() | st.integers(1_000, 2_000_000),
)

any_judges: st.SearchStrategy[Any] = st.recursive(
    single_judges,
    lambda members: st.one_of(
        st.builds(Jury, members, st.integers(1, 5), st.sampled_from([0.5, 0.67, 1]), one_request=st.booleans()),
        st.builds(Cascade, members, members, st.sampled_from(["fails", "borderline", "ungraded", (0.4, 0.8), (0, 1)])),
        st.builds(Panel, st.lists(members, min_size=1, max_size=3), aggregate=st.sampled_from(["mean", "majority"])),
    ),
    max_leaves=3,
)

calls = st.builds(ToolCall, texts(), arguments=free_maps, result=plain_values)


_case_options = _some(
    input=any_texts(),
    output=any_texts(),
    reference=any_texts(),
    messages=st.lists(st.builds(Message, texts(), any_texts()), max_size=2),
    tool_calls=st.lists(calls, max_size=2),
    metrics=st.builds(RunMetrics, latency=st.floats(0, 60), tokens=st.one_of(st.none(), st.integers(0, 9))),
    context=any_texts(),
    variables=free_maps,
    images=st.lists(st.just("https://example.com/a.png"), max_size=2),
    judge=any_judges,
    server=any_texts(),
    runs=st.integers(1, 9),
    turns=st.lists(st.one_of(texts(), st.builds(Turn, texts(), reference=any_texts())), max_size=2),
    cell=free_maps,
    tags=st.lists(any_texts(), max_size=2),
    metadata=free_maps,
)


@st.composite
def cases(draw: st.DrawFn, graded: st.SearchStrategy[Rubric]) -> Case:
    """Return a case that is graded against one of *graded*; most of its fields are as by default."""
    options = draw(_case_options)
    rubric = draw(graded)
    if options.get("turns"):
        options.pop("reference", None)
    if options.get("input") or "output" in options:
        options.pop("turns", None)
    options["judges"] = {c.id: draw(single_judges) for c in rubric.judged[:1] if draw(_either)}
    return Case(draw(ids), rubric, **options)


def suites(graded: st.SearchStrategy[Rubric] | None = None) -> st.SearchStrategy[Suite]:
    """Return suites of up to three cases, graded against *graded*: any rubrics, if it is not given."""
    held = st.lists(cases(rubrics() if graded is None else graded), max_size=3, unique_by=lambda case: case.id)
    return st.builds(Suite, any_texts(), held, judge=st.one_of(st.none(), any_judges), metadata=free_maps)
