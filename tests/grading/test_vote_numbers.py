"""Who casts which vote: no reply that a store keeps may stand for two."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Judge, Jury, Panel, Rubric
from rubric.driving import flow
from rubric.engine.pipeline import Dispatcher, adrive
from rubric.grading.prompting import compose, shared_prompt
from rubric.scoring.votes import Voter, number_votes
from rubric.store.cache_key import request_of
from rubric.store.store import Store
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import AnyJudge, Cascade
from tests.examples import examples
from tests.judging import JudgeLike
from tests.sendables import KEY
from tests.servers import Server
from tests.strategies import built

POLITE = Rubric().expects("Is polite", id="polite")
TEXT = Candidate("Good morning!")


def lone() -> st.SearchStrategy[AnyJudge]:
    """Return judges some of which are one model to a store: other keys, other time-outs, other objects of a class."""
    models: list[Any] = ["a/b", "offline", ScriptedModel([True]), ScriptedModel([False]), lambda _: "yes", lambda _: ""]
    params = st.sampled_from([{}, {"api_key": "one"}, {"api_key": "two"}, {"top_p": 0.5}])
    return st.builds(
        built,
        st.just(Judge),
        st.sampled_from(models),
        temperature=st.sampled_from([None, 0.0, 1.0]),
        timeout=st.sampled_from([1.0, 2.0]),
        reasoning=st.sampled_from(["before", "none"]),
        identity=st.sampled_from(["v1", "v2"]),  # which a name does not take
        params=params,
    )


def grouping(inner: st.SearchStrategy[AnyJudge]) -> st.SearchStrategy[AnyJudge]:
    """Return benches of *inner* ones."""
    return st.one_of(
        st.builds(Jury, inner, st.integers(1, 3)),
        st.builds(Panel, st.lists(inner, min_size=1, max_size=3)),
        st.builds(Cascade, inner, inner, st.just("fails")),
    )


benches = st.recursive(lone(), grouping, max_leaves=5)


def votes(voter: Voter) -> Iterator[tuple[Judge, int]]:
    """Yield the single judges of *voter* with their votes, in order."""
    if isinstance(voter.judge, Judge):
        yield voter.judge, voter.vote
    for member in voter.members:
        yield from votes(member)


def numbers(bench: AnyJudge) -> list[int]:
    """Return the numbers of the votes of *bench*."""
    return [vote for _, vote in votes(number_votes(bench))]


@examples(100)
@given(benches)
def test_no_two_judges_of_a_bench_have_the_same_ask(bench: AnyJudge) -> None:
    """Whatever a store makes of their models, parameters and keys."""
    about = shared_prompt(TEXT, POLITE)
    asks = [compose(about, POLITE, judge, POLITE.judged, vote=vote) for judge, vote in votes(number_votes(bench))]
    keys = Counter(request_of(ask).key for ask in asks)
    assert set(keys.values()) == {1}


@examples(100)
@given(benches)
def test_votes_do_not_depend_on_whether_a_bench_stops_early(bench: AnyJudge) -> None:
    """So whoever lets it run to its end the next time is served what was asked before."""

    def stopping(one: AnyJudge) -> AnyJudge:
        match one:
            case Jury():
                return evolve(one, judge=stopping(one.judge), early_stop=True)
            case Panel():
                return evolve(one, judges=[stopping(member) for member in one.judges], early_stop=True)
            case Cascade():
                return evolve(one, first=stopping(one.first), then=stopping(one.then))
        return one

    assert numbers(bench) == numbers(stopping(bench))


@given(lone(), st.integers(1, 5), st.integers(1, 5))
def test_a_judge_alone_is_the_first_of_its_jury(judge: Judge, size: int, deep: int) -> None:
    """And juries count on, so what one vote was asked is there for a larger jury."""
    assert numbers(judge) == [0]
    assert numbers(Jury(Jury(judge, size), deep)) == [*range(size * deep)]


PANELS: list[tuple[str, Any, int]] = [
    ("the same twice", lambda j: Panel([j, j]), 2),
    ("a jury and its judge", lambda j: Panel([Jury(j, 3), j]), 4),
    ("another time-out", lambda j: Panel([j, evolve(j, timeout=5)]), 2),
    ("a cascade", lambda j: Cascade(j, j, when=lambda _: True), 2),
    ("a cascade of juries", lambda j: Cascade(Jury(j, 2), Jury(j, 3), when=lambda _: True), 5),
    ("in one request", lambda j: Jury(Panel([j, j]), 2, one_request=True), 1),
]


@pytest.mark.parametrize(("bench", "requests"), [each[1:] for each in PANELS], ids=[each[0] for each in PANELS])
def test_each_vote_is_a_request_of_its_own_and_none_the_next_time(tmp_path: Path, bench: Any, requests: int) -> None:
    """Over a socket, past a real store."""
    with Server(respond=JudgeLike({"Is polite": True})) as server:
        endpoint = server.at("ok")
        judge = Judge("openai/made-up", params={"api_base": endpoint.openai, "api_key": KEY}, via="http")
        for _ in range(2):
            with Store(tmp_path / "replies.db") as store:
                carry = store.transport(Dispatcher(limiter=store.limiter()).send, limited=True)
                result = asyncio.run(adrive(flow(TEXT, POLITE, bench(judge)), carry))
            assert result.passed
            assert len(endpoint.requests) == requests
