"""All votes of a jury in one request: the prompt is paid for once, and the votes are votes all the same."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Grade, Judge, Jury, Panel, Rubric, Ungraded
from rubric.driving import Failure, Reply, Usage
from rubric.results.result import Result
from rubric.testing.scripted_model import ScriptedModel, reply_to
from rubric.values.requests import Ask
from tests.drive import drive, planned
from tests.examples import examples
from tests.findings import Sampling, improvised, rubrics

WARM = Rubric().scores("Is it warm?", id="warm")
UNREADABLE = st.sampled_from([0, 0.2, 0.5])
PAID = Usage(calls=1, prompt_tokens=100, completion_tokens=30, cost=0.5)


class Choosing:
    """A script that gives as many choices as it is asked for, up to *most*; each is what *say* says to its vote."""

    def __init__(self, say: Any, most: int = 100) -> None:
        self.say, self.most = say, most

    def __call__(self, ask: Ask) -> Any:
        lines = [self.say(evolve(ask, vote=ask.vote + n, n=1)) for n in range(min(ask.n, self.most))]
        if isinstance(lines[0], Failure):
            return lines[0]
        texts = tuple(line if isinstance(line, str) else reply_to(ask, line) for line in lines)
        return Reply(texts[0], usage=PAID, choices=texts if len(texts) > 1 else ())


def judge_that(*values: float, most: int = 100, **options: Any) -> Judge:
    """Return a judge whose votes are *values*, in as many choices a request as *most*."""
    return Judge(ScriptedModel(Choosing(lambda ask: values[ask.vote], most)), **options)


def asks_of(judge: Any) -> list[tuple[int, int]]:
    """Return the vote and the number of replies of each ask that *judge* got."""
    return [(ask.vote, ask.n) for ask in judge.model.asks]


def scores(result: Result) -> list[float | None]:
    """Return the scores of the votes."""
    return [vote.outcome.score for vote in result.votes]


def test_a_jury_asks_once_for_all_its_votes() -> None:
    """One request, five votes, one bill."""
    judge = judge_that(0.1, 0.3, 0.5, 0.7, 0.9)
    result = drive(WARM, Jury(judge, 5, one_request=True))
    assert isinstance(result, Grade)
    assert (asks_of(judge), scores(result)) == ([(0, 5)], [0.1, 0.3, 0.5, 0.7, 0.9])
    assert (result.usage, result.warnings) == (PAID, ())


def test_votes_that_did_not_come_are_asked_for_one_by_one() -> None:
    """With their own numbers; and whoever reads the grade is told."""
    judge = judge_that(0.1, 0.3, 0.5, 0.7, 0.9, most=2)
    result = drive(WARM, Jury(judge, 5, one_request=True))
    assert asks_of(judge) == [(0, 5), (2, 1), (3, 1), (4, 1)]
    assert scores(result) == [0.1, 0.3, 0.5, 0.7, 0.9]
    assert (result.usage.calls, len(result.warnings)) == (4, 1)
    assert "2 of 5 replies in one request" in result.warnings[0]


def test_a_model_that_gives_one_reply_is_not_asked_for_several_again() -> None:
    """Every further round goes vote by vote."""
    judge = judge_that(0.1, 0.3, 0.5, most=1, per_call=1)
    tree = Rubric().decides("t", by=_deep(3), id="t")
    drive(tree, Jury(judge, 3, one_request=True))
    assert [n for _, n in asks_of(judge)].count(3) == 1


def _deep(levels: int) -> Any:
    from rubric import ask

    return ask(f"q{levels}").yes(1.0).no(_deep(levels - 1) if levels else 0.0)


def test_a_failed_request_fails_every_vote_and_costs_once() -> None:
    """No vote is made up of a failure."""
    judge = Judge(ScriptedModel([Failure("timeout", "gone", usage=PAID)]))
    result = drive(WARM, Jury(judge, 3, one_request=True))
    assert isinstance(result, Ungraded)
    assert (scores(result), result.usage) == ([None] * 3, PAID)


def test_a_choice_that_cannot_be_read_is_repaired_alone() -> None:
    """An empty one, and one that was cut, are not votes; the others stand."""
    said: dict[tuple[int, int], Any] = {(0, 0): 0.8, (1, 0): "", (2, 0): '{"reason": "x", "sco', (3, 0): 0.6}
    judge = Judge(ScriptedModel(Choosing(lambda ask: said.get((ask.vote, ask.repair), 0.2))))
    result = drive(WARM, Jury(judge, 4, one_request=True))
    assert scores(result) == [0.8, 0.2, 0.2, 0.6]
    assert asks_of(judge)[0] == (0, 4)


def test_an_early_stop_asks_for_as_few_as_could_decide_and_then_for_the_rest() -> None:
    """In one request each."""
    judge = judge_that(1.0, 0.0, 1.0)
    drive(WARM, Jury(judge, 3, one_request=True, early_stop=True))
    assert asks_of(judge) == [(0, 2), (2, 1)]


def test_juries_of_juries_and_panels_share_what_is_the_same() -> None:
    """Two requests for a panel of two, whatever the depth."""
    one, two = (judge_that(*[n / 10] * 8) for n in (1, 2))
    nested = Jury(Jury(Panel([one, two]), 2, one_request=True), 2, one_request=True)
    result = drive(WARM, nested)
    assert (asks_of(one), asks_of(two)) == ([(0, 4)], [(0, 4)])  # each script is a model of its own
    assert isinstance(result, Grade)
    assert result.usage.calls == 2


@examples(60)
@given(rubrics(), st.integers(), st.tuples(st.integers(1, 5), st.integers(1, 5)), st.booleans(), UNREADABLE)
def test_one_request_comes_to_the_same_as_many(
    rubric: Rubric, seed: int, sizes: tuple[int, int], early_stop: bool, unreadable: float
) -> None:
    """
    Vote by vote the same findings, in no more calls.

    For any rubric, with replies that cannot be read and are asked for again, and a model that gives fewer choices than
    it is asked for.
    """
    size, most = sizes
    jury = Jury(Judge(ScriptedModel(Sampling(improvised(seed, unreadable=unreadable)))), size, early_stop=early_stop)
    apart = drive(rubric, jury)
    judge = Judge(ScriptedModel(Sampling(improvised(seed, unreadable=unreadable), most)))
    shared = drive(rubric, evolve(jury, judge=judge, one_request=True))
    assert [vote.findings for vote in shared.votes] == [vote.findings for vote in apart.votes]
    assert shared.outcome == apart.outcome
    assert shared.usage.calls <= apart.usage.calls


@examples(40)
@given(rubrics(), st.integers(), st.integers(1, 4), st.integers(1, 5))
def test_a_run_in_one_request_keeps_to_its_plan(rubric: Rubric, seed: int, size: int, most: int) -> None:
    """From one request an ask to one a vote."""
    jury = Jury(Judge(ScriptedModel(Choosing(improvised(seed), most))), size, one_request=True)
    plan, result = planned(rubric, jury), drive(rubric, jury)
    assert plan.least <= result.usage.calls <= plan.most
