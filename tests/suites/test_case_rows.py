"""From a grade to a row: complete, redacted, and with quotes that stand where they say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Criterion, Grade, Judge, Jury, Panel, Rubric, ToolCall, Ungraded, ask, grade
from rubric.driving import Failure
from rubric.errors import UngradedError
from rubric.internals.secrets import MASK, clean, map_offsets, whole
from rubric.results.report_rows import Row
from rubric.suites.case_rows import RowBuilder, row_id
from rubric.suites.cases import Case
from rubric.suites.targets.base import Response
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.values.places import Place
from tests.rows import each_row
from tests.suite_help import GOOD, TWO, one, saying

KEY = "sk-0123456789abcdef"


def result_of(case: Case, judge: Judge | Jury | Panel) -> Grade | Ungraded:
    """Return what the candidate of *case* comes to."""
    assert case.candidate is not None
    try:
        return grade(case.candidate, case.rubric, judge)
    except UngradedError as error:
        return error.result


def recorded(judge: Judge | Jury | Panel, rubric: Rubric = TWO, output: str = GOOD) -> Row:
    """Return the row of a case with *output*."""
    case = Case("a", rubric, output=output)
    return RowBuilder().row(case, result_of(case, judge))


def test_a_row_holds_the_case_and_its_grade() -> None:
    """Everything that a reporter shows."""
    case = Case(
        "a",
        TWO,
        output=GOOD,
        input="What is new?",
        tool_calls=[ToolCall("read", arguments={"path": "x"}, result="y"), ToolCall("stop")],
        tags=["news"],
        place=Place("f.yaml", 3, 5),
    )
    result = result_of(case, saying(version=Says(True, "it does"), warm=False))
    row = RowBuilder().row(case, result)
    assert (row.id, row.status, row.score, row.verdict, row.shown) == ("a", "failed", 0.5, "fail", "0.50")
    assert (row.threshold, row.bounds, row.rubric, row.judge) == (0.7, (0.5, 0.5), "two", "ScriptedModel")
    assert (row.input, row.output) == ("What is new?", GOOD)
    assert row.run[1:3] == ('[2] call read({"path": "x"}) -> y', "[3] call stop()")
    assert (row.tags, row.place, row.usage.calls, row.result) == (("news",), Place("f.yaml", 3, 5), 2, result)
    first, second = row.entries
    assert (first.id, first.text, first.status, first.value) == ("version", "Names a version", "scored", "yes")
    assert (first.reason, first.answer, first.contribution) == ("it does", "yes or no", 1.0)
    assert (second.score, second.contribution, second.gated) == (0.0, 0.0, False)


WHY = [
    (TWO, {"version": True, "warm": True}, ""),
    (TWO, {"version": True, "warm": False}, "the score 0.500 is below the threshold 0.7"),
    (TWO.strictly(), {"version": True, "warm": False}, "the score 0.500 is not perfect, and the rubric is strict"),
    (
        TWO.revising("warm", required=True).passing_at(0.5),
        {"version": True, "warm": Says(False, "cold")},
        "'warm' failed it (cold)",
    ),
    (TWO.passing_at(None), {"version": True, "warm": Says(False, "cold")}, "'warm' failed it (cold)"),
    (Rubric("bad", text="x", negate=True), {"overall": 0.9}, "it meets 'bad', which it must not"),
]


@each_row(("rubric", "verdicts", "why"), WHY)
def test_the_reason_says_why_it_failed(rubric: Rubric, verdicts: dict[str, object], why: str) -> None:
    """In a sentence; a plain pass has none."""
    assert recorded(saying(**verdicts), rubric).reason == why


def test_the_votes_of_a_jury_are_in_the_row_and_its_entries() -> None:
    """Numbered, since they have the same name."""
    votes = iter([True, True, False])
    row = recorded(Jury(ScriptedModel(lambda ask: next(votes)), 3, 1), Rubric().expects("Is good", id="good"))
    assert [(v.judge, v.score, v.verdict) for v in row.votes] == [
        ("ScriptedModel #1", 1.0, "pass"),
        ("ScriptedModel #2", 1.0, "pass"),
        ("ScriptedModel #3", 0.0, "fail"),
    ]
    assert [(e.judge, e.score, e.contribution) for e in row.entries[0].votes] == [
        ("ScriptedModel #1", 1.0, 1.0),
        ("ScriptedModel #2", 1.0, 1.0),
        ("ScriptedModel #3", 0.0, 0.0),
    ]
    assert row.reason.startswith("2 of 3 votes pass")


def test_members_of_a_panel_keep_their_names() -> None:
    """And a member that failed is ungraded."""

    def nice(messages: object) -> str:
        return '{"reason": "", "verdict": true}'

    def broken(messages: object) -> str:
        raise ValueError

    row = recorded(Panel([nice, broken]), Rubric().expects("Is good", id="good"))
    assert [(v.judge, v.passed, v.verdict) for v in row.votes] == [("nice", True, "pass"), ("broken", None, "ungraded")]
    assert [e.status for e in row.entries[0].votes] == ["scored", "unjudged"]
    assert (row.status, row.score, row.verdict, row.shown) == ("ungraded", None, "", "")


def test_nested_rubrics_and_trees_are_told_to_the_end() -> None:
    """Parts with their own contributions and gates; walks with every step."""
    inner = Rubric("inner", criteria=[Criterion("x", id="x"), Criterion("y", id="y", polarity="guard", weight=2)])
    rubric = Rubric().includes(inner, id="inner").decides("t", by=ask("Is it?").yes(1).no(0.5), id="t")
    row = recorded(saying(x=True, y=True, t=1.0), rubric)
    nested, tree = row.entries
    assert [(e.id, e.contribution, e.gated) for e in nested.parts] == [("x", 1.0, False), ("y", 0.0, True)]
    assert [(s.question, s.yes) for s in tree.path] == [("Is it?", True)]
    assert (tree.score, tree.value) == (1.0, "")
    alone = recorded(saying(overall=0.2), Rubric.deciding(ask("Is it?").yes(1).no(0.5)))
    assert [s.yes for s in alone.path] == [False]


def test_a_case_that_came_to_nothing_has_a_row() -> None:
    """Every criterion is unjudged, for the same reason."""
    case = Case("a", TWO, output=GOOD)
    row = RowBuilder().row(case, Failure("timeout", "the target was too slow"))
    assert (row.status, row.bounds, row.judge) == ("ungraded", (0.0, 1.0), "")
    assert [e.status for e in row.entries] == ["unjudged", "unjudged"]
    assert "too slow" in row.reason


def test_the_id_tells_cells_apart() -> None:
    """Coordinates that the id does not name itself are added to it."""
    assert row_id(Case("a", TWO)) == "a"
    assert row_id(Case("a", TWO, cell={"model": "gpt", "prompt": "p"})) == "a [model=gpt, prompt=p]"
    assert row_id(Case("a gpt", TWO, cell={"model": "gpt"})) == "a gpt"
    assert row_id(Case("a [prompt 1]", TWO, cell={"prompt": "Say it."})) == "a [prompt 1]"


# -- what must not be shown ------------------------------------------------------------------------------


def test_no_text_of_a_row_has_a_secret_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever wrote it: the candidate, the judge, the file, the environment."""
    monkeypatch.setenv("MY_TOKEN", "correct-horse-battery")
    secrets = f"{KEY} and correct-horse-battery"
    case = Case(
        "a",
        Rubric(secrets, criteria=[Criterion(f"Hides {secrets}", id="hides", evidence=True)]),
        input=secrets,
        output=f"Here: {secrets}.",
        tool_calls=[ToolCall("read", arguments={"key": KEY}, result=secrets)],
        tags=[secrets],
        cell={"k": secrets},
    )
    judge = saying(hides=Says(True, f"it shows {secrets}", evidence=(f"Here: {secrets}",)))
    rows = [
        RowBuilder().row(case, result_of(case, judge)),
        RowBuilder().row(case, result_of(case, Jury(judge, 2))),
        RowBuilder().row(case, result_of(case, Judge(ScriptedModel([f"no verdict, {secrets}"] * 2)))),
        RowBuilder().row(case, Failure("exception", secrets)),
        RowBuilder().deferred_row(case, secrets),
    ]
    for row in rows:
        assert MASK in row.output
        assert KEY not in repr(row)
        assert "correct-horse" not in repr(row)


def test_half_a_key_at_a_cut_is_not_shown() -> None:
    """Texts are masked before they are shortened."""
    long = "x" * 290 + " " + KEY
    rubric = TWO.revising("warm", required=True)
    reason = recorded(saying(version=True, warm=Says(False, long)), rubric).reason
    assert "sk-" not in reason
    said = recorded(Judge(ScriptedModel(["x" * 115 + " " + KEY] * 4))).reason
    assert "sk-" not in said


def test_half_surrogates_are_replaced_and_control_characters_stay() -> None:
    """Each by one character, so that offsets hold."""
    row = recorded(saying(version=Says(True, "beep \x07"), warm=True), output=GOOD + "\ud800\x1b[31m")
    assert row.output == GOOD + "\ufffd\x1b[31m"
    assert row.entries[0].reason == "beep \x07"
    repr(row.entries).encode()


QUOTES = ["added per-tenant", KEY, f"limits {KEY}", f"{KEY} were", "were added", "The 2.3.0"]


@each_row("quote", QUOTES)
def test_quotes_stand_in_the_rows_output_where_they_say(quote: str) -> None:
    """Also before, after, across and within what was masked."""
    output = f"The 2.3.0 added per-tenant limits {KEY} were added \ud800 last."
    rubric = Rubric(criteria=[Criterion("x", id="x", evidence=True)])
    row = recorded(saying(x=Says(True, evidence=(quote,))), rubric, output)
    (evidence,) = row.entries[0].evidence
    assert evidence.verified
    assert row.output[evidence.start : evidence.end] == evidence.text == quote.replace(KEY, MASK)
    assert row.status == "passed"


def test_quotes_from_elsewhere_keep_their_place() -> None:
    """What was not found, or stands in the run, is masked and no more."""
    rubric = Rubric(criteria=[Criterion("x", id="x", evidence=True)])
    case = Case("a", rubric, output=GOOD, tool_calls=[ToolCall("read", result=f"x is {KEY}")])
    row = RowBuilder().row(case, result_of(case, saying(x=Says(True, evidence=(f"x is {KEY}", "not there at all")))))
    run, lost = row.entries[0].evidence
    assert (run.where, run.text, run.verified) == ("step 1", f"x is {MASK}", True)
    assert (lost.text, lost.verified) == ("not there at all", False)


PIECES = st.lists(st.sampled_from(["a", "b c", KEY, "\ud800", "x" * 9, " "]), max_size=8)


@given(PIECES, st.data())
def test_an_offset_moves_to_the_same_character(pieces: list[str], data: st.DataObject) -> None:
    """What is kept keeps its characters; what is masked moves to the ends of the mask."""
    before = whole(" ".join(pieces))
    after = clean(before)
    move = map_offsets(before, after)
    start = data.draw(st.integers(0, len(before)))
    end = data.draw(st.integers(start, len(before)))
    span = after[move(start)[0] : move(end)[1]]
    assert move(0)[0] == 0
    assert move(len(before))[1] == len(after)
    assert "sk-" not in span
    assert span.replace(MASK, "") in before or MASK in span
    if KEY not in before:
        assert span == before[start:end]


def test_the_whole_result_is_kept_beside_the_row() -> None:
    """For whoever runs the suite in Python: to rescore it, say."""
    row = one().run(saying(version=True, warm=False))["a"]
    assert isinstance(row.result, Grade)
    assert row.result.rescore(threshold=0.5).passed is True


def test_a_candidate_of_a_target_goes_before_the_cases_own() -> None:
    """What was graded is what is shown."""
    case = Case("a", TWO)
    candidate = Candidate(GOOD, input="And?")
    row = RowBuilder().row(
        case, grade(candidate, TWO, saying(version=True, warm=True)), Response(candidate), judge="somebody"
    )
    assert (row.output, row.input, row.judge) == (GOOD, "And?", "somebody")
