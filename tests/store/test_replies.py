"""What the store serves, what it keeps for audit alone, and what it asks again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, get_args

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Grade, Judge, Rubric, Ungraded
from rubric.driving import adrive, flow, pipeline
from rubric.errors import DefinitionError
from rubric.store.audit import export, stats
from rubric.store.database import dump, load
from rubric.store.store import Store
from rubric.testing.scripted_model import reply_to
from rubric.values.requests import Ask, Failure, FailureKind, Reply, Usage
from tests.rows import each_row
from tests.storing import PAID, POLITE, Counted, graded, states, told


def test_what_was_answered_is_not_asked_again(file: Path) -> None:
    """A second run, in another session, says the same and sends nothing."""
    model = Counted()
    with Store(file) as store:
        first = graded(store, Judge(model))
    with Store(file) as store:
        second = graded(store, Judge(model))
    assert len(model.asks) == 1
    assert told(first) == told(second)


def test_a_hit_is_never_counted_as_spend(file: Path) -> None:
    """What it once cost stays in the file (E7)."""
    with Store(file) as store:
        first, second = graded(store, Judge(Counted())), graded(store, Judge(Counted()))
        assert first.usage == PAID
        assert second.usage == Usage()
        assert store.tally.hits == 1
        assert store.tally.saved == PAID
    assert stats(file).cost == PAID.cost
    assert (stats(file).saved_calls, stats(file).saved_cost) == (1, PAID.cost)


@pytest.mark.parametrize(
    ("candidate", "rubric", "judge"),
    [
        ("Good evening!", POLITE, Judge(Counted())),
        ("Good morning!", Rubric("polite").expects("Is short"), Judge(Counted())),
        ("Good morning!", POLITE, Judge(Counted(identity="another"))),
        ("Good morning!", POLITE.guided_by("Be strict."), Judge(Counted())),
        ("Good morning!", POLITE, Judge(Counted(), params={"reasoning_effort": "high"})),
    ],
    ids=["candidate", "criterion", "model", "guidelines", "effort"],
)
def test_another_question_is_not_answered_from_the_store(
    file: Path, candidate: str, rubric: Rubric, judge: Judge
) -> None:
    """New submissions, a new text, another model or effort: each is asked (E9)."""
    with Store(file) as store:
        graded(store, Judge(Counted()))
        graded(store, judge, candidate, rubric)
    assert isinstance(judge.model, Counted)
    assert len(judge.model.asks) == 1


def test_each_vote_of_a_jury_is_a_reply_of_its_own(file: Path) -> None:
    """Three votes are three calls, and none on the next run."""
    from rubric import Jury

    model = Counted()
    with Store(file) as store:
        for _ in range(2):
            graded(store, Jury(Judge(model), 3))  # type: ignore[arg-type]
    assert len(model.asks) == 3


@pytest.mark.parametrize("kind", ["auth", "rate_limited", "overloaded", "refusal", "bad_request", "exception"])
def test_a_failure_is_kept_for_audit_and_tried_again(file: Path, kind: FailureKind) -> None:
    """What failed last night is asked this morning, and only that (E10)."""
    with Store(file) as store:
        failed = graded(store, Judge(Counted(lambda _: Failure(kind, "no")), retries=0))
        again = graded(store, Judge(Counted()))
    assert isinstance(failed, Ungraded)
    assert isinstance(again, Grade)
    assert states(file) == {"failed": 1, "done": 1}


def test_a_reply_that_says_nothing_is_never_served_as_an_answer(file: Path) -> None:
    """It is kept for audit, and where grading ended with it, the question is asked again."""
    with Store(file) as store:
        assert isinstance(graded(store, Judge(Counted(lambda _: "well"), repairs=0)), Ungraded)
        assert isinstance(graded(store, Judge(Counted(), repairs=0)), Grade)
    assert states(file) == {"unreadable": 1, "done": 1}


def mumbling(ask: Ask) -> str:
    """Answer the first ask with nothing that can be read, the re-ask with a verdict."""
    return reply_to(ask, True) if ask.repair else "well"


def test_a_repaired_answer_is_free_the_next_time(file: Path) -> None:
    """The unreadable reply is handed on as what it is, grading asks again, and the store has the answer to that."""
    model = Counted(mumbling)
    with Store(file) as store:
        first = graded(store, Judge(model))
        second = graded(store, Judge(model))
    assert len(model.asks) == 2
    assert isinstance(second, Grade)
    assert second.usage == Usage()
    assert told(first) == told(second)


def test_only_the_last_of_the_repairs_is_asked_again(file: Path) -> None:
    """A judge that mumbled to the end gets one more chance a run."""
    model = Counted(lambda _: "well")
    with Store(file) as store:
        graded(store, Judge(model, repairs=2))
        graded(store, Judge(model, repairs=2))
    assert [ask.repair for ask in model.asks] == [0, 1, 2, 2]


def test_a_reply_of_which_some_is_read_is_served(file: Path) -> None:
    """Of two verdicts in one reply one is missing: what was read is not paid for again."""
    rubric = Rubric("polite").expects("Is polite", id="polite").expects("Is short", id="short")

    def half(ask: Ask) -> str:
        whole = json.loads(reply_to(ask, *[True for _ in ask.criteria])) if ask.many else None
        if whole is None or ask.repair:
            return reply_to(ask, *[True for _ in ask.criteria])
        return json.dumps(whole | {"verdicts": whole["verdicts"][:1]})

    model = Counted(half)
    with Store(file) as store:
        first = graded(store, Judge(model, per_call="all"), rubric=rubric)
        second = graded(store, Judge(model, per_call="all"), rubric=rubric)
    assert isinstance(second, Grade)
    assert told(first) == told(second)
    assert len(model.asks) == 2


def test_replay_sends_nothing(file: Path) -> None:
    """What is in the file is served, what is not is a failure that names the file."""
    model = Counted()
    with Store(file) as store:
        recorded = graded(store, Judge(model))
    with Store(file, mode="replay") as store:
        assert told(graded(store, Judge(model))) == told(recorded)
        missing = graded(store, Judge(model), "Good evening!")
    assert isinstance(missing, Ungraded)
    assert [failure.kind for failure in missing.failures] == ["replay"]
    assert str(file) in missing.failures[0].message
    assert len(model.asks) == 1


@pytest.mark.parametrize("recorded", ["http://proxy.test/v1", ""])
def test_a_replay_at_another_address_says_so(file: Path, monkeypatch: pytest.MonkeyPatch, recorded: str) -> None:
    """A proxy when it was recorded and none in CI, or the other way round: with the address, all is served."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    judge, other = Judge("openai/gpt-4o-mini"), "" if recorded else "http://proxy.test/v1"

    def record(ask: Ask) -> Reply:
        return Reply(reply_to(ask, True), usage=PAID)

    async def graded_by(mode: Any, address: str) -> Grade | Ungraded:
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        with Store(file, mode=mode) as store, pipeline(record, store=store) as way:
            return await adrive(flow(Candidate("Thank you."), POLITE, judge), way.send)

    assert isinstance(asyncio.run(graded_by("read-write", recorded)), Grade)
    missed = asyncio.run(graded_by("replay", other))
    assert isinstance(missed, Ungraded)
    assert "from another address; give the one that was recorded" in missed.failures[0].message
    assert isinstance(asyncio.run(graded_by("replay", recorded)), Grade)


def test_replay_comes_to_what_was_recorded_failures_included(file: Path) -> None:
    """A run with a broken answer, a repair and a refusal is the same run again, without a judge."""

    def say(ask: Ask) -> str | Failure:
        if "short" in ask.criteria[0].id:
            return Failure("refusal", "I would rather not")
        return mumbling(ask)

    rubric = POLITE.expects("Is short", id="short")
    with Store(file) as store:
        recorded = graded(store, Judge(Counted(say)), rubric=rubric)
    silent = Counted()
    with Store(file, mode="replay") as store:
        replayed = graded(store, Judge(silent), rubric=rubric)
    assert told(recorded) == told(replayed)
    assert replayed.usage == Usage()
    assert not silent.asks


def test_refresh_asks_again_once_and_replaces(file: Path) -> None:
    """The old answer stays for audit, the new one is served from now on."""
    with Store(file) as store:
        graded(store, Judge(Counted()))
    fresh = Counted(lambda _: False)
    with Store(file, mode="refresh") as store:
        again, then = graded(store, Judge(fresh)), graded(store, Judge(fresh))
    with Store(file) as store:
        last = graded(store, Judge(Counted()))
    assert len(fresh.asks) == 1
    assert [again.score, then.score, last.score] == [0, 0, 0]
    assert states(file) == {"replaced": 1, "done": 1}


def test_a_refresh_that_fails_leaves_the_old_answer(file: Path) -> None:
    """A bad night of the vendor's loses nothing."""
    with Store(file) as store:
        graded(store, Judge(Counted()))
    with Store(file, mode="refresh") as store:
        assert isinstance(graded(store, Judge(Counted(lambda _: Failure("auth", "no")))), Ungraded)
    silent = Counted()
    with Store(file) as store:
        assert isinstance(graded(store, Judge(silent)), Grade)
    assert not silent.asks


def test_a_call_that_timed_out_is_sent_again_with_retry(file: Path) -> None:
    """It may be paid for twice, and the store says how often that may have been."""
    lost = Failure("timeout", "too slow", in_doubt=True)
    with Store(file) as store:
        graded(store, Judge(Counted(lambda _: lost), retries=0))
        assert isinstance(graded(store, Judge(Counted())), Grade)
        assert store.tally.resent == 1
    assert states(file) == {"resent": 1, "done": 1}


def test_a_call_that_timed_out_is_held_with_hold(file: Path) -> None:
    """It is sent once: not by a retry of the same run, and not by the next run."""
    model = Counted(lambda _: Failure("timeout", "too slow", in_doubt=True))
    with Store(file, in_doubt="hold") as store:
        first = graded(store, Judge(model, retries=2))
        second = graded(store, Judge(model, retries=2))
        assert store.tally.held == 1
    assert len(model.asks) == 1
    assert [failure.kind for failure in first.failures] == ["timeout"]
    assert [failure.kind for failure in second.failures] == ["in_doubt"]


def test_hold_still_retries_what_was_turned_away(file: Path) -> None:
    """A request that came back with a 429 has not been paid for."""
    turned_away = [True, True]

    def say(_: Ask) -> Failure | bool:
        return Failure("rate_limited", "slowly") if turned_away and turned_away.pop() else True

    model = Counted(say)
    with Store(file, in_doubt="hold") as store:
        result = graded(store, Judge(model, retries=2))
    assert isinstance(result, Grade)
    assert result.usage.calls == 3


def test_what_was_never_sent_leaves_nothing(file: Path) -> None:
    """A call that the budget refused is neither a failure of the vendor's nor in doubt."""
    with Store(file) as store:
        graded(store, Judge(Counted(lambda _: Failure("budget", "there is nothing left"))))
    assert states(file) == {}


@pytest.mark.parametrize(("name", "value"), [("mode", "reed"), ("in_doubt", "ask")])
def test_an_unknown_mode_is_refused(file: Path, name: str, value: str) -> None:
    """A slip of the pen is not a mode."""
    with pytest.raises(DefinitionError, match=name):
        Store(file, **{name: value})  # type: ignore[arg-type]


texts = st.text(st.characters(), max_size=20)
numbers = st.integers(0, 10**9)
usages = st.builds(Usage, numbers, numbers, numbers, numbers, st.none() | st.floats(0, 1e6), numbers)
tokens = st.tuples(texts, st.floats(-99, 0), st.lists(st.tuples(texts, st.floats(-99, 0)), max_size=2).map(tuple))
replies = st.builds(
    Reply,
    st.none() | texts,
    finish=texts,
    refusal=texts,
    usage=usages,
    model=texts,
    unsent=st.lists(texts, max_size=2).map(tuple),
    logprobs=st.none() | st.lists(tokens, max_size=2).map(tuple),
    choices=st.lists(texts, max_size=2).map(tuple),
)
failures = st.builds(
    Failure,
    st.sampled_from(get_args(FailureKind)),
    texts,
    usage=usages,
    retry_after=st.none() | st.floats(0, 100),
    status=st.none() | st.integers(100, 599),
    in_doubt=st.booleans(),
)


@given(replies | failures)
def test_an_outcome_is_the_same_when_it_is_read_back(outcome: Reply | Failure) -> None:
    """Half surrogates, probabilities and unknown prices too."""
    assert load(dump(outcome)) == outcome


@each_row("text", ["", "{", "[]", "7", "{}", '{"reply": {}}', '{"failure": {"kind": "bored"}}'])
def test_what_is_no_outcome_is_told(text: str) -> None:
    """Anything but an outcome is a ValueError, whatever is wrong with it."""
    with pytest.raises(ValueError, match="no reply"):
        load(text)


def test_an_export_has_no_secret_in_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that a candidate holds, nor one that a judge echoes."""
    key = "sk-0123456789abcdefghijklmnop"
    said = Reply(f"My key is {key}. I will say no more.", usage=PAID)
    with Store(file) as store:
        graded(store, Judge(Counted(lambda _: said)), f"Mine is {key}")
    lines = json.dumps(list(export(file)))
    assert key not in lines
    assert "I will say no more" in lines
    assert PAID.cost is not None
    assert json.loads(lines)[0]["reply"]["usage"]["cost"] == PAID.cost


def test_a_vote_among_choices_that_can_be_read_is_an_answer(file: Path) -> None:
    """Of several replies in one request the first says nothing, the second does: it is kept as answered."""
    from rubric.store.database import kind_of

    model = Counted()
    with Store(file) as store:
        graded(store, Judge(model))
    (ask,) = model.asks
    good = reply_to(ask, True)
    assert kind_of(ask, Reply("well", choices=("well", good))) is None
    assert kind_of(ask, Reply("well", choices=("well", "hm"))) == "unreadable"
    assert kind_of(ask, evolve(Reply(good), finish="length")) == "truncated"
    assert kind_of(ask, Reply(None, refusal="no")) == "refusal"


def test_candidates_that_are_the_same_are_paid_for_once(file: Path) -> None:
    """A data set with the same answer twice costs one call."""
    model = Counted()
    with Store(file) as store:
        for _ in range(2):
            graded(store, Judge(model), Candidate("Good morning!"))
    assert len(model.asks) == 1
