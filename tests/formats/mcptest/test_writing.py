"""Suites as mcptest files: what they hold comes back the same, and what they cannot hold is told."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Anchor, Contains, Criterion, DecisionTree, Judge, Jury, Message, Panel, Rubric, Unit, When
from rubric.formats.cursor import Loading, Notes
from rubric.formats.files import parse
from rubric.formats.json import to_json
from rubric.formats.mcptest.reader import read
from rubric.formats.mcptest.writer import write
from rubric.formats.yaml import to_yaml
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.testing import strategies
from tests.examples import examples

HELD = Rubric.of("Is good")


def again(suite: Suite, spell: Any = to_yaml) -> Suite:
    """Return *suite* as it comes back from its mcptest file."""
    data, _ = write(suite)
    notes = Notes(parse(spell(data), "e.yml"))
    found = read(notes, Loading())
    notes.finish()
    return found


def dropped(case: Case) -> list[str]:
    """Return what is lost of *case*, without its name."""
    _, sentences = write(Suite(cases=[case]))
    return [sentence.removeprefix(f"case {case.id!r}: ") for sentence in sentences]


# -- what comes back the same ------------------------------------------------------------------------------

_whens = st.one_of(
    st.none(), st.builds(When, contains=strategies.texts()), st.builds(When, regex=st.sampled_from(["a+", "no"]))
)


@st.composite
def _criteria(draw: st.DrawFn) -> Criterion:
    gate: dict[str, Any] = draw(st.sampled_from([{}, {"required": True}, {"polarity": "guard"}]))
    floor = draw(st.one_of(st.none(), st.floats(0.01, 1))) if gate else None
    scores: st.SearchStrategy[float | bool] = st.booleans() if "polarity" in gate else strategies.scores
    anchors = draw(st.lists(st.builds(Anchor, strategies.texts(), scores), max_size=2))
    return Criterion(
        draw(strategies.texts()),
        id=draw(strategies.ids),
        answer=Unit(),
        weight=draw(strategies.numbers),
        when=draw(_whens),
        anchors=anchors,
        min_score=floor,
        **gate,
    )


@st.composite
def _rubrics(draw: st.DrawFn) -> Rubric:
    options: dict[str, Any] = {"threshold": draw(strategies.scores), "name": draw(st.sampled_from(["", "r", "no"]))}
    kind = draw(st.sampled_from(["criteria", "text", "tree"]))
    if kind == "text":
        return Rubric(text=draw(strategies.texts()), **options)
    options |= {"strict": draw(st.booleans()), "evidence": draw(st.booleans()), "scale": draw(strategies.scales)}
    if kind == "tree":
        return strategies.built(Rubric, tree=draw(strategies.trees), **options)
    criteria = draw(st.lists(_criteria(), min_size=1, max_size=3, unique_by=lambda c: c.id))
    return Rubric(criteria=criteria, aggregation=draw(st.sampled_from(["weighted_average", "min"])), **options)


_models = st.sampled_from(["m", "openai/gpt-5.6", "openrouter/a/b:free", "claude-sonnet-4-5"])
_benches = st.one_of(
    st.none(),
    _models.map(Judge),
    st.builds(Jury, _models.map(Judge), st.integers(1, 5), st.floats(0.1, 1)),
    st.builds(
        lambda names, aggregate, tie: strategies.built(Panel, names, aggregate=aggregate, tie_break=tie),
        st.lists(_models, min_size=1, max_size=3),
        st.sampled_from(["mean", "median", "majority"]),
        st.sampled_from(["fail", "pass"]),
    ),
)
_cases = st.builds(
    Case,
    strategies.ids,
    _rubrics(),
    input=strategies.any_texts(),
    output=st.one_of(st.none(), strategies.any_texts()),
    judge=_benches,
    server=strategies.any_texts(),
)
_suites = st.lists(_cases, max_size=3, unique_by=lambda case: case.id).map(lambda cases: Suite(cases=cases))


@given(_suites, st.sampled_from([to_yaml, to_json]))
@examples(50)
def test_what_mcptest_can_hold_comes_back_the_same(suite: Suite, spell: Any) -> None:
    """Cases, rubrics, judges: only a name that two rubrics have is lost."""
    first: dict[str, Rubric] = {}
    for case in suite:
        first.setdefault(case.rubric.name, case.rubric)
    unnamed = [case if _is_like(case.rubric, first) else _nameless(case) for case in suite]
    assert again(suite, spell).cases == tuple(unnamed)


def _is_like(rubric: Rubric, first: dict[str, Rubric]) -> bool:
    known = first[rubric.name]
    return not rubric.name or evolve(known, threshold=rubric.threshold, strict=rubric.strict) == rubric


def _nameless(case: Case) -> Case:
    return evolve(case, rubric=evolve(case.rubric, name=""))


@given(strategies.rubrics(depth=1))
@examples(40)
def test_any_suite_can_be_written_and_what_is_written_can_be_read(rubric: Rubric) -> None:
    """A second writing of what came back loses nothing more."""
    data, sentences = write(Suite(cases=[Case("c", rubric, input="P")]))
    back = again(Suite(cases=[Case("c", rubric, input="P")]))
    assert all(sentence.startswith("case 'c': ") for sentence in sentences)
    assert write(back) == (data, [])


@pytest.mark.parametrize("axes", ["models: [a, b], prompts: [P, Q]", "models: [a, b]", "prompts: [P, Q]"])
@pytest.mark.parametrize("judge", ["", "judge: {jury: {size: 3, consensus: 1}}, "])
def test_the_cells_of_a_matrix_become_a_matrix_again(axes: str, judge: str) -> None:
    """One eval, and the same cases from it; the neighbours stay what they are."""
    text = (
        "evals:\n  - {name: before, prompt: P, rubric: T}\n"
        f"  - {{name: one, prompt: P, rubric: T, {judge}matrix: {{{axes}}}}}\n"
        "  - {name: after, prompt: P, rubric: T}\n"
    )
    suite = read(Notes(parse(text, "e.yml")), Loading())
    data, sentences = write(suite)
    assert (len(data["evals"]), sentences) == (3, [])
    assert again(suite).cases == suite.cases


def test_half_a_matrix_is_written_case_by_case() -> None:
    """A cell may be a matrix of its own; where its label does not fit that, a sentence says so."""
    text = "evals: [{name: one, prompt: P, rubric: T, matrix: {models: [a, b], prompts: [P, Q]}}]"
    suite = read(Notes(parse(text, "e.yml")), Loading())
    half = suite.only(*[case.id for case in suite][:3])
    data, (sentence,) = write(half)
    assert [eval_["name"] for eval_ in data["evals"]] == ["one", "one [a, prompt 2]", "one"]
    assert [case.id for case in again(half)] == [case.id for case in half]
    assert sentence.startswith("case 'one [a, prompt 2]': cell is left out")


def test_a_rubric_with_a_name_is_written_once() -> None:
    """The other cases refer to it, with the threshold of their own."""
    rubric = Rubric("shared", criteria=[Criterion("A", id="a", answer=Unit())])
    cases = [Case("one", rubric, output="x"), Case("two", rubric.passing_at(0.9).strictly(), output="x")]
    data, sentences = write(Suite(cases=cases))
    assert data["rubrics"] == {"shared": {"criteria": [{"name": "a", "description": "A"}]}}
    assert [eval_["rubric"] for eval_ in data["evals"]] == [
        {"ref": "shared"},
        {"ref": "shared", "threshold": 0.9, "strict": True},
    ]
    assert sentences == []


def test_the_judge_of_the_suite_is_written_on_each_eval() -> None:
    """An mcptest file has none for all; a case's own judge stays."""
    suite = Suite(cases=[Case("a", HELD, output="x"), Case("b", HELD, output="x", judge="own")], judge="all")
    data, _ = write(suite)
    assert [eval_["judge"] for eval_ in data["evals"]] == [{"model": "all"}, {"model": "own"}]


def test_a_floor_of_its_own_makes_a_criterion_required() -> None:
    """In mcptest a threshold gates only where the criterion does: the meaning is kept."""
    rubric = Rubric(criteria=[Criterion("A", id="a", answer=Unit(), min_score=0.9)])
    (eval_,) = write(Suite(cases=[Case("c", rubric, output="x")]))[0]["evals"]
    assert eval_["rubric"]["criteria"] == [{"name": "a", "description": "A", "required": True, "threshold": 0.9}]


# -- what is lost ------------------------------------------------------------------------------------------


def _of(criterion: Criterion) -> Case:
    return Case("c", Rubric(criteria=[Criterion("B", id="b", answer=Unit()), criterion]), output="x")


@pytest.mark.parametrize(
    ("case", "lost"),
    [
        (Case("c", HELD, output="x", reference="r", tags=["t"]), ["reference is left out", "tags is left out"]),
        (Case("c", HELD, messages=[Message("user", "P")]), ["messages is left out"]),
        (Case("c", HELD, output="x", metadata={"a": 1}), ["metadata is left out"]),
        (Case("c", HELD, output="x", judge=Judge("m", temperature=0)), ["judge: temperature is left out"]),
        (Case("c", HELD, output="x", judge=Judge(repr)), ["judge is left out; an mcptest file cannot name the model"]),
        (Case("c", HELD, output="x", judge=Judge("a:b")), ["judge is left out; an mcptest file cannot name the model"]),
        (Case("c", HELD, output="x", judge=Jury("m", 3, early_stop=True)), ["jury: early_stop is left out"]),
        (Case("c", HELD, output="x", judge=Jury(Panel(["m"]), 3)), ["judge is left out; mcptest has no juries of"]),
        (Case("c", HELD, output="x", judge=Panel([Jury("m")])), ["judge is left out; a panel names its models"]),
        (Case("c", HELD, output="x", judge=Panel(["m"], quorum=1)), ["panel: quorum is left out"]),
        (Case("c", evolve(HELD, negate=True), output="x"), ["rubric: negate is left out"]),
        (Case("c", HELD.passing_at(None), output="x"), ["rubric: threshold: null is left out; mcptest's rubrics pass"]),
        (_of(Criterion("A", id="a")), ["criterion 'a': its kind of answer is left out"]),
        (_of(Criterion("A", id="a", answer=Contains("x"))), ["criterion 'a': the criterion is left out"]),
        (_of(Criterion("A", id="a", answer=DecisionTree("Q", yes=1, no=0))), ["criterion 'a': the criterion is left"]),
        (_of(Criterion("A", id="a", answer=Unit(), polarity="contradiction")), ["criterion 'a': the polarity contra"]),
        (_of(Criterion("A", id="a", answer=Unit(), evidence=True)), ["criterion 'a': evidence is left out"]),
        (_of(Criterion("A", id="a", answer=Unit(), when=When(tool_called="t"))), ["criterion 'a': when is left out"]),
        (
            _of(Criterion("A", id="a", answer=Unit(), anchors=[Anchor("r", 1, reason="so")])),
            ["criterion 'a': the reason of an example is left out"],
        ),
        (
            Case("c", Rubric(criteria=[Criterion("A", id="a", answer=Contains("x"))]), output="x"),
            ["criterion 'a': the criterion is left out", "it is left out; mcptest can judge nothing"],
        ),
    ],
)  # fmt: skip
def test_what_has_no_place_is_told_with_its_case_and_field(case: Case, lost: list[str]) -> None:
    """A sentence each, and no more."""
    found = dropped(case)
    assert len(found) == len(lost)
    assert all(sentence.startswith(start) for sentence, start in zip(found, lost, strict=True))


def test_a_text_that_has_to_be_strict_becomes_a_criterion() -> None:
    """mcptest's texts stand alone; the options belong to criteria."""
    data, (sentence,) = write(Suite(cases=[Case("c", HELD.strictly(), output="x")]))
    assert data["evals"][0]["rubric"] == {
        "strict": True,
        "criteria": [{"name": "overall", "description": "Is good"}],
    }
    assert "is written as one criterion" in sentence


def test_a_rubric_that_is_turned_over_is_never_written_as_its_opposite() -> None:
    """Mcptest turns nothing over, so the case is left out, and told."""
    data, lost = write(Suite("s", [Case("c", evolve(HELD, negate=True), output="x")]))
    assert (data["evals"], len(lost)) == ([], 1)
