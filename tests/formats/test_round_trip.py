"""What is written reads back as the same rubric, and reads as if written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.errors import DumpError
from rubric.formats.rubrics import dumps, load, loads
from rubric.values.answers import Answer, Levels, ScoreRange, Unit
from rubric.values.checks import Contains, FitsSchema, IsJSON
from rubric.values.criteria import Criterion, When
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree, Leaf, ask
from tests.examples import examples
from tests.places import ROOT
from tests.rows import each_row
from tests.strategies import any_texts, rubrics

EVERYTHING = ROOT / "tests" / "files" / "everything.yaml"
EXAMPLE = """\
rubric: support reply
threshold: 0.8
criteria:
  - Answers the question that was asked
  - {id: cites, text: Cites a help-centre article, weight: 2, evidence: true}
  - {id: refund, text: Promises a refund the policy does not grant, polarity: guard}
  - id: clarity
    text: A newcomer could act on it
    levels: {0: no way in, 5: with effort, 10: at once}
"""


def test_example_is_what_it_says() -> None:
    """The example of the documentation means what it reads like."""
    expected = (
        Rubric("support reply")
        .expects("Answers the question that was asked")
        .expects("Cites a help-centre article", id="cites", weight=2, evidence=True)
        .forbids("Promises a refund the policy does not grant", id="refund")
        .rates("A newcomer could act on it", {0: "no way in", 5: "with effort", 10: "at once"}, id="clarity")
        .passing_at(0.8)
    )
    assert expected == loads(EXAMPLE)


def test_example_is_written_as_it_was() -> None:
    """A rubric is written as one would write it by hand."""
    assert dumps(loads(EXAMPLE)) == EXAMPLE


@examples(100)
@given(rubrics())
def test_yaml_round_trip(rubric: Rubric) -> None:
    """Any rubric reads back from its YAML as itself."""
    assert loads(dumps(rubric)) == rubric


@examples(100)
@given(rubrics())
def test_json_round_trip(rubric: Rubric) -> None:
    """Any rubric reads back from its JSON as itself."""
    assert loads(dumps(rubric, format="json")) == rubric


@examples(100)
@given(rubrics(depth=3))
def test_nested_round_trip(rubric: Rubric) -> None:
    """Rubrics within rubrics within rubrics read back as themselves."""
    assert loads(dumps(rubric)) == rubric


@given(any_texts(200))
def test_text_stays_text(name: str) -> None:
    """Any text reads back as that text, whatever else it looks like."""
    assert loads(dumps(Rubric(name, text="a"))).name == name


@examples(100)
@given(rubrics())
def test_writing_is_stable(rubric: Rubric) -> None:
    """What was written and read is written the same again."""
    text = dumps(rubric)
    assert dumps(loads(text)) == text


def test_everything_round_trips() -> None:
    """A file that uses all of the format reads back as itself."""
    rubric = load(EVERYTHING)
    assert loads(dumps(rubric)) == rubric


@each_row(
    "text",
    ['{"text": "\\ud83d\\ude00"}', 'text: "\\ud83d\\ude00"', 'text: "\\uD83D\\uDE00"'],
)
def test_pairs_join(text: str) -> None:
    """A pair of escaped surrogates is one character, as `json.dumps` writes it."""
    assert loads(text).text == "\U0001f600"
    keys = loads('criteria: [{text: "\\ud83d\\ude00 \\ud83d", metadata: {"\\ud83d\\ude00": "a"}}]').criteria[0]
    assert (keys.text, [*keys.metadata]) == ("\U0001f600 \ud83d", ["\U0001f600"])


def test_json_with_tabs() -> None:
    """JSON may be indented with tabs, which YAML would refuse."""
    assert loads('{\n\t"text":\t"a"\n}') == Rubric.of("a")


def test_defaults_are_left_out() -> None:
    """What is as by default is not written."""
    assert dumps(Rubric(criteria=["Is it so?"])) == "criteria:\n  - Is it so?\n"


def test_ids_that_differ_are_written() -> None:
    """An id is written if it is not made of the text."""
    rubric = Rubric(criteria=[Criterion("a b", id="a-b"), Criterion("c", id="other")])
    assert dumps(rubric) == "criteria:\n  - a b\n  - {id: other, text: c}\n"


def test_empty_rubric() -> None:
    """A rubric without criteria, a start for the verbs, can be written and read."""
    assert dumps(Rubric("x")) == "rubric: x\ncriteria: []\n"
    assert loads("rubric: x\ncriteria: []") == Rubric("x")


def test_judge_decides() -> None:
    """No threshold is written as null."""
    rubric = Rubric.of("a", threshold=None)
    assert "threshold: null" in dumps(rubric)
    assert loads(dumps(rubric)) == rubric


def test_long_text_in_lines() -> None:
    """A text of several lines is written as a block."""
    assert dumps(Rubric.of("One.\n\nTwo: #2\n")) == "text: |\n  One.\n\n  Two: #2\n"


@each_row(
    ("written", "answer"),
    [
        ("answer: yes_no", None),
        ("answer: unit", Unit()),
        ("answer: {unit: {}}", Unit()),
        ("answer: {unit: {flag: true}}", Unit(flag=True)),
        ("levels: 0..10", Levels()),
        ("levels: 1..5", Levels(ScoreRange(1, 5))),
        ("levels: {1: a, 2: b}", Levels({1: "a", 2: "b"})),
        ('levels: {1: a, "2-3": b}', Levels([ScoreRange(1, 1, "a"), ScoreRange(2, 3, "b")])),
        ("levels: {1.0: a, 2: b}", Levels({1: "a", 2: "b"})),
        ("levels: [{score_range: [0, 4], text: a}, {score_range: [5, 9], text: b}]", Levels({"0-4": "a", "5-9": "b"})),
        ("levels: {0: a, 5: b}", Levels(ScoreRange(0, 0, "a"), ScoreRange(5, 5, "b"))),
        ("levels: {0-3: a, 4: b, 10: c}", Levels({"0-3": "a", 4: "b", 10: "c"})),
        ("tree: {ask: q, yes: 1, no: {score: 0.5, reason: r}}", ask("q").yes(1).no(0.5, "r")),
        ("tree: {ask: q, true: 1, false: 0}", ask("q").yes(1).no(0)),
        ("check: is_json", IsJSON()),
        ("check: {contains: {text: x}}", Contains("x")),
        ("check: {fits_schema: {type: object}}", FitsSchema({"type": "object"})),
    ],
)
def test_answers(written: str, answer: Answer | None) -> None:
    """Each spelling of an answer means that answer."""
    expected = Criterion("t") if answer is None else Criterion("t", answer=answer)
    assert loads(f"criteria: [{{text: t, {written}}}]").criteria == (expected,)


def test_check_needs_no_text() -> None:
    """A check says itself what it checks."""
    rubric = Rubric(criteria=[Criterion("contains 'x'", answer=Contains("x"))])
    assert dumps(rubric) == "criteria:\n  - check: {contains: x}\n"
    assert loads(dumps(rubric)) == rubric


def test_included_rubric_needs_no_text() -> None:
    """A rubric within another is called by its own name."""
    rubric = Rubric().includes(Rubric("style", criteria=["a"]))
    assert loads("criteria: [{rubric: {rubric: style, criteria: [a]}}]") == rubric


def test_worst_is_min() -> None:
    """The worst contribution has two names."""
    assert loads("{aggregation: worst, criteria: [a]}").aggregation == "min"


def test_yaml_of_one_version() -> None:
    """The directive of YAML 1.2 changes nothing."""
    assert loads("%YAML 1.2\n---\ntext: a\n") == Rubric.of("a")


def deep_tree(depth: int) -> DecisionTree:
    """Return a tree of *depth* questions, one below the other."""
    tree: DecisionTree | Leaf = Leaf(1)
    for number in range(depth):
        tree = DecisionTree(f"{number}?", yes=tree, no=0)
    assert isinstance(tree, DecisionTree)
    return tree


def nested(depth: int) -> Rubric:
    """Return the deepest tree, within *depth* rubrics."""
    rubric = Rubric.deciding(deep_tree(64))
    for _ in range(depth):
        rubric = Rubric(criteria=[Criterion("inner", answer=rubric)])
    return rubric


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_deepest_tree(format: Any) -> None:
    """The deepest tree there is reads back as itself, also within twenty rubrics."""
    rubric = nested(20)
    assert loads(dumps(rubric, format=format)) == rubric


@pytest.mark.parametrize("depth", [22, 300])
def test_too_deep_to_write(depth: int) -> None:
    """Rubrics that nest beyond the limit of files are refused when they are written."""
    with pytest.raises(DumpError, match="nest"):
        dumps(nested(depth))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"when": lambda _: True}, "Python function"),
        ({"metadata": {"a": float("nan")}}, "nan cannot be written"),
        ({"metadata": {"a": {1, 2}}}, "cannot be written"),
        ({"metadata": {"a": b"x"}}, "cannot be written"),
        ({"metadata": {1: "x"}}, "the key 1 cannot be written"),
    ],
)
def test_what_cannot_be_written(options: Any, why: str) -> None:
    """What no file can say is refused when it is written, with the name of the criterion."""
    with pytest.raises(DumpError, match=f"criterion 'culprit': .*{why}"):
        dumps(Rubric(criteria=["a", Criterion("t", id="culprit", **options)]))


def test_function_within_an_included_rubric() -> None:
    """The criterion that is named is the innermost."""
    inner = Rubric(criteria=[Criterion("t", id="culprit", when=When(holds=lambda _: True))])
    with pytest.raises(DumpError, match="criterion 'culprit'"):
        dumps(Rubric().includes(inner))


def test_halves_that_would_join() -> None:
    """Half surrogates of which a file would make one character cannot be written; a character can."""
    rubric = Rubric(criteria=[Criterion("\ud83d\ude00", id="culprit")])
    for form in ("yaml", "json"):
        with pytest.raises(DumpError, match=f"'culprit' holds what {form} cannot say"):
            dumps(rubric, format=form)
        whole = Rubric(criteria=[Criterion("\U0001f600", id="culprit")])
        assert loads(dumps(whole, format=form)) == whole


def test_too_large_to_write() -> None:
    """A rubric larger than files may be is refused when it is written."""
    with pytest.raises(DumpError, match="512 KiB"):
        dumps(Rubric(criteria=[f"{number} {'x' * 100_000}" for number in range(6)]))


@given(st.data())
def test_key_order_does_not_matter(data: st.DataObject) -> None:
    """A mapping says the same in any order."""
    lines = EXAMPLE.splitlines(keepends=True)
    parts = data.draw(st.permutations([lines[0], lines[1], "".join(lines[2:])]))
    assert loads("".join(parts)) == loads(EXAMPLE)
