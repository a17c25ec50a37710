"""A judge that no request can reach is asked no more, and no panel that needs it pays for the other votes."""

from __future__ import annotations

from typing import Any

import pytest

from rubric import Candidate, Grade, Grades, Judge, Panel, Rubric, grade_many
from rubric.engine.breaker import Breaker
from rubric.values.requests import Failure
from tests.sendables import ask_of
from tests.servers import Endpoint, Server

RUBRIC = Rubric("polite", criteria=["Is polite", "Says when", "Is short"])
ROWS = [Candidate(f"Thank you, number {number}.") for number in range(40)]
ONE_AT_A_TIME = 1


def judge_at(endpoint: Endpoint, **given: Any) -> Judge:
    """Return a judge whose model is at *endpoint*."""
    return Judge("some-model", via=endpoint.openai, retries=0, repairs=0, **given)


def graded(judge: Any, rows: list[Candidate] = ROWS) -> Grades:
    """Grade *rows*, one request after the other."""
    return grade_many(rows, RUBRIC, judge, concurrency=ONE_AT_A_TIME, progress=False).collect()


@pytest.mark.parametrize("behaviour", ["401", "403", "404", "400", "quota"])
def test_what_fails_alike_for_three_candidates_is_not_sent_again(server: Server, behaviour: str) -> None:
    """The results say why, nothing is charged, and each has its failure."""
    endpoint = server.at(behaviour)
    found = graded(judge_at(endpoint))
    assert len(endpoint.requests) <= 3 * len(RUBRIC.criteria)
    assert len(found.ungraded) == len(ROWS)
    last = found[-1].failures[0]
    assert last.message.startswith("not sent, since the requests about 3 candidates failed alike: HTTP 4")
    assert (last.judge, found[-1].usage.calls) == ("some-model", 0)


@pytest.mark.parametrize("behaviour", ["context", "policy", "500", "503", "408"])
def test_what_may_be_of_the_candidate_or_pass_is_sent_for_each(server: Server, behaviour: str) -> None:
    """A long prompt, a filter and a server that is down say nothing of the next candidate."""
    endpoint = server.at(behaviour)
    graded(judge_at(endpoint), ROWS[:8])
    assert len(endpoint.requests) >= 8


def test_a_judge_that_has_replied_is_asked_on_unless_the_account_is_empty(server: Server) -> None:
    """A gateway may refuse the text of one candidate with 403; money is out for all."""
    blocked, empty = server.at("ok", "403"), server.at("ok", "quota")
    assert len(graded(judge_at(blocked)).ungraded) == len(ROWS)
    assert len(blocked.requests) >= len(ROWS)
    graded(judge_at(empty))
    assert len(empty.requests) <= 4 * len(RUBRIC.criteria)


def test_many_criteria_of_one_candidate_are_no_three_candidates(server: Server) -> None:
    """A firewall that refuses one text closes nothing for the next one."""
    endpoint = server.at(*["403"] * 6, "ok")
    found = graded(judge_at(endpoint), ROWS[:6])
    assert [isinstance(result, Grade) for result in found] == [False, False, True, True, True, True]


def test_a_panel_that_needs_each_vote_pays_for_none_when_one_is_lost(server: Server) -> None:
    """The message has the cure, which works."""
    good, bad = server.at("ok"), server.at("404")
    panel = Panel(judge_at(good), judge_at(bad))
    found = graded(panel)
    assert len(good.requests) <= 3 * len(RUBRIC.criteria)
    said = [failure.message for failure in found[-1].failures if "each vote is needed" in failure.message]
    assert said
    assert said[0].endswith("and each vote is needed; Panel([...], quorum=...) grades by the others")
    with_quorum = graded(Panel(judge_at(good), judge_at(bad), quorum=1))
    assert not with_quorum.ungraded
    assert len(bad.requests) <= 6 * len(RUBRIC.criteria)


def test_after_a_minute_one_request_is_tried_again() -> None:
    """A key that was mended in the meantime is found."""
    seconds = [0.0]
    breaker = Breaker(clock=lambda: seconds[0])
    judge = Judge("any", sealed=False)
    for number in range(3):
        ask = ask_of(judge, shared=f"Text {number}")
        assert breaker.refusal(ask) is None
        breaker.note(ask, Failure("auth", "no", status=401), has_replied=False)
    assert breaker.refusal(ask) is not None
    seconds[0] = 61.0
    assert breaker.refusal(ask) is None
