"""All questions of a tree at once: more calls, fewer rounds, the same walk."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Grade, Judge, Jury, ModelError, Rubric, ask
from rubric.driving import Failure, flow
from rubric.results import Scored
from rubric.testing.scripted_model import ScriptedModel
from tests.drive import REPLY, carry, drive, planned
from tests.examples import examples
from tests.findings import improvised, rubrics, trees

TREE = ask("1").yes(ask("2").yes(1.0).no(ask("3").yes(0.8).no(0.2))).no(0.0)


def judge_of(script: Any, *, speculate: bool) -> Judge:
    """Return a judge that asks ahead, or not."""
    return Judge(ScriptedModel(script), speculate=speculate)


def rounds(rubric: Rubric, judge: Judge) -> int:
    """Return after how many batches of asks the grade is there."""
    steps = flow(Candidate(REPLY), rubric, judge)
    count, got = 0, None
    try:
        while True:
            batch = steps.send(got) if got is not None else next(steps)
            count, got = count + 1, tuple(carry(one) for one in batch)
    except (StopIteration, ModelError):
        return count


def test_all_questions_go_out_at_once() -> None:
    """One round instead of three, and the walk is the one that the answers lead down."""
    judge = Judge(ScriptedModel(lambda one: float(one.criteria[0].text != "2")), speculate=True)
    rubric = Rubric.deciding(TREE)
    result = drive(rubric, judge)
    assert isinstance(result["overall"], Scored)
    assert ([step.question for step in result.path], result["overall"].score) == (["1", "2", "3"], 0.8)
    assert rounds(rubric, judge) == 1


@examples(40)
@given(rubrics(), st.integers(), st.sampled_from([0, 0, 0.2]), st.sampled_from([0, 0, 0.2]))
def test_asking_ahead_never_changes_a_finding(rubric: Rubric, seed: int, failing: float, unreadable: float) -> None:
    """For any rubric, with failures and unreadable replies: the same findings, and the same failures told."""
    script = improvised(seed, failing=failing, unreadable=unreadable)
    lazy, ahead = (drive(rubric, judge_of(script, speculate=s)) for s in (False, True))
    assert (ahead.findings, ahead.outcome) == (lazy.findings, lazy.outcome)
    assert sorted(map(str, ahead.failures)) == sorted(map(str, lazy.failures))
    assert ahead.warnings == lazy.warnings


@examples(40)
@given(trees("t", 3), st.integers())
def test_it_takes_more_calls_and_fewer_rounds(tree: Any, seed: int) -> None:
    """One round for any tree, and a call for each of its questions."""
    rubric = Rubric.deciding(tree)
    judge = judge_of(improvised(seed), speculate=True)
    lazy = drive(rubric, judge_of(improvised(seed), speculate=False))
    assert rounds(rubric, judge) == 1
    assert lazy.usage.calls <= drive(rubric, judge).usage.calls == len([*tree.nodes()])


def test_a_failure_beside_the_walk_does_not_matter() -> None:
    """It is paid for, and not told; on the walk it leaves the grade open like ever."""
    gone = Failure("timeout", "gone")
    judge = judge_of(lambda one: gone if one.criteria[0].text == "3" else 1.0, speculate=True)
    beside = drive(Rubric.deciding(TREE), judge)
    assert isinstance(beside, Grade)
    assert (beside.score, beside.failures) == (1.0, ())


def test_a_plan_of_asking_ahead_says_so() -> None:
    """Every question is asked, neither more nor fewer."""
    rubric = Rubric.deciding(TREE)
    lazy, ahead = (planned(rubric, Judge("offline", speculate=s)) for s in (False, True))
    assert ((lazy.least, lazy.most), (ahead.least, ahead.most, ahead.ceiling)) == ((1, 3), (3, 3, 6))
    assert planned(rubric, Jury(Judge("offline", speculate=True), 2)).least == 6
