"""The judge without a model: what it finds, and that it says it in the form that was asked for."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Rubric, prefer
from rubric.internals.frozen_map import FrozenMap
from rubric.models.offline import OfflineModel
from rubric.values.answers import Answer, Choices, Levels, Unit, YesNo
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.requests import Usage
from tests.sendables import ask_of, schema_of

TEXT = {"type": "string"}
SPANS = {"type": "array", "items": TEXT}


def answer(criterion: Criterion, candidate: str, **properties: Any) -> dict[str, Any]:
    """Return the verdict on one criterion, of a form with *properties*."""
    schema = schema_of(nonce=TEXT, reason=TEXT, **properties)
    ask = ask_of(Judge("offline"), criterion, candidate=candidate, schema=schema, quoted=frozenset({criterion.id}))
    return said(ask)


def said(ask: Any) -> dict[str, Any]:
    """Return the reply to *ask* as data."""
    reply: dict[str, Any] = json.loads(asyncio.run(OfflineModel().answer(ask)).text or "")
    return reply


@pytest.mark.parametrize(
    ("text", "candidate", "verdict"),
    [
        ("Cites a help-centre article", "See our help centre: the articles on cites.", True),
        ("Cites a help-centre article", "No idea.", False),
        ("Mentions Größe", "die größe", True),
        ("Is it the one?", "anything", False),
    ],
)
def test_yes_from_half_of_the_words(text: str, candidate: str, verdict: bool) -> None:
    """Half of a criterion's content words make a yes; endings, case and common words do not matter."""
    assert answer(Criterion(text), candidate, verdict={"type": "boolean"})["verdict"] is verdict


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        (YesNo(), "verdict", True),
        (Unit(), "score", 0.5),
        (Levels(), "score", 5),
        (Levels({1: "bad", 5: "good"}), "score", 3),
        (Choices({"cold": 0, "tepid": 0.5, "warm": 1}), "choice", "tepid"),
    ],
)
def test_each_answer_type(kind: Answer, key: str, value: object) -> None:
    """Each answer type gets its own kind of value, at the place of the share of words that were found."""
    assert answer(Criterion("warm greeting", answer=kind), "A warm day.", **{key: {}})[key] == value


def test_the_pass_flag() -> None:
    """Where the judge's own pass flag is asked for, it is given."""
    said = answer(Criterion("warm", answer=Unit(flag=True)), "cold", score={}, **{"pass": {}})
    assert (said["score"], said["pass"]) == (0, False)


def test_a_fact_is_never_contradicted() -> None:
    """Words alone contradict nothing."""
    assert answer(Criterion("Paris is the capital", polarity="contradiction"), "Yes.", verdict={})["verdict"] is True


def test_a_guard_is_found_where_its_words_are() -> None:
    """A guard is judged like any criterion: present where its words are."""
    assert answer(Criterion("promises refund", polarity="guard"), "I promise a refund", verdict={})["verdict"] is True


def test_evidence_is_the_best_sentence_word_for_word() -> None:
    """The evidence is the sentence with most of the words, as it stands in the candidate."""
    candidate = "Hello there.  The refund is 20 euros! Bye."
    assert answer(Criterion("states the refund"), candidate, evidence=SPANS, verdict={})["evidence"] == [
        "The refund is 20 euros!"
    ]


def test_several_criteria() -> None:
    """Several criteria in one ask get one verdict each, by id and in order."""
    item = schema_of(id=TEXT, reason=TEXT, verdict={"type": ["boolean", "number", "string"]})
    schema = schema_of(nonce=TEXT, verdicts={"type": "array", "items": item})
    two = (Criterion("warm"), Criterion("cold", answer=Unit()))
    verdicts = said(ask_of(Judge("offline"), *two, candidate="warm", schema=schema, many=True))["verdicts"]
    assert [(v["id"], v["verdict"]) for v in verdicts] == [("warm", True), ("cold", 0.0)]


KEYS = ("nonce", "reason", "evidence", "verdict", "score", "choice", "pass")


@given(st.lists(st.sampled_from(KEYS), unique=True, min_size=1), st.text(), st.text().filter(str.strip))
def test_no_key_that_was_not_asked_for(keys: list[str], candidate: str, text: str) -> None:
    """The keys are those of the schema, in its order; evidence occurs in the candidate word for word."""
    schema: FrozenMap = schema_of(**dict.fromkeys(keys, TEXT))
    criterion = Criterion(text, id="c")
    ask = ask_of(Judge("offline"), criterion, candidate=candidate, schema=schema, quoted=frozenset({"c"}))
    reply = said(ask)
    assert list(reply) == keys
    assert all(span in candidate for span in reply.get("evidence", []))


def test_it_is_free() -> None:
    """A reply costs nothing, and counts as one call."""
    assert asyncio.run(OfflineModel().answer(ask_of(Judge("offline")))).usage == Usage(calls=1, cost=0.0)


def test_of_a_pair_the_response_with_more_of_the_words_is_better() -> None:
    """In either order, and the other one where the words are unwanted; so a first comparison means something."""
    kind = Rubric("kind").expects("Thanks the customer", id="thanks").forbids("Promises a voucher", id="gift")
    texts = ("We thank you, dear customer.", "We promise a voucher.", "No.")
    found = {(a, b): prefer(texts[a], texts[b], kind, "offline") for a in range(3) for b in range(3)}
    assert {pair: [each.outcome for each in one.criteria] for pair, one in found.items() if pair[0] <= pair[1]} == {
        (0, 0): ["tie", "tie"],
        (0, 1): ["a", "a"],
        (0, 2): ["a", "tie"],
        (1, 1): ["tie", "tie"],
        (1, 2): ["tie", "b"],
        (2, 2): ["tie", "tie"],
    }
    assert found[1, 0].outcome == "b"
