"""Replies to every type of answer: in exactly the form that was asked for, and read strictly."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Criterion, Judge, Rubric, grade
from rubric.grading.reply_parser import read
from rubric.testing import reply_to
from rubric.values.answers import Answer, Choices, JudgeAnswer, Levels, Unit, YesNo
from rubric.values.findings import Scored
from rubric.values.requests import Reply
from tests.asks import SEALED, answer, ask_about, ask_for
from tests.rows import each_row

EXAMPLES: dict[type[Any], list[tuple[Answer, bool | float | str]]] = {
    YesNo: [(YesNo(), True), (YesNo(), False)],
    Unit: [(Unit(), 0.8), (Unit(), 0), (Unit(flag=True), 1.0)],
    Levels: [(Levels(), 7), (Levels({-2: "bad", 0: "so-so", 2: "good"}), -2)],
    Choices: [(Choices({"cold": 0, 'a "warm" one': 1}), 'a "warm" one')],
}
"""An answer of each type, and a verdict on it."""

KINDS = get_args(JudgeAnswer)
REASONING = ["before", "after", "none"]


def examples() -> list[Any]:
    """Return each example with its name; a type without one has an empty list."""
    return [pytest.param(*pair, id=f"{kind.__name__}-{n}") for kind in KINDS for n, pair in enumerate(EXAMPLES[kind])]


def test_every_type_has_an_example() -> None:
    """The tests below hold for every type of answer that a judge can be asked for."""
    assert set(EXAMPLES) == set(KINDS)


@each_row("reasoning", REASONING)
@each_row(("kind", "verdict"), examples())
def test_every_type_is_asked_for_and_read(kind: Answer, verdict: Any, reasoning: Any) -> None:
    """A reply in the form that was asked for is read, strictly or not, sealed or not, and within its range."""
    for judge in (Judge(answer, reasoning=reasoning), Judge(answer, reasoning=reasoning, sealed=True)):
        ask = ask_for(kind, judge=judge)
        text = reply_to(ask, verdict)
        (finding,) = read(ask, Reply(text))
        assert isinstance(finding, Scored)
        assert finding.value == verdict
        assert kind.nearest(finding.score) == verdict  # type: ignore[attr-defined]  # each example is one of them
        assert read(ask, Reply(f" {text}")) == (finding,)  # which only the strict reader takes


@each_row(("kind", "verdict"), examples())
def test_every_type_is_read_among_others(kind: Answer, verdict: Any) -> None:
    """One call may ask about criteria of every type."""
    ask = ask_about("x", Criterion("One?", id="one"), Criterion("Two?", id="two", answer=kind), judge=SEALED)
    found = read(ask, Reply(reply_to(ask, True, verdict)))
    assert [finding.value for finding in found if isinstance(finding, Scored)] == [True, verdict]


FRAGMENTS = [
    "{", "}", '"', "\\", ",", ":", " ", "\n", '"reason": "because"', '"verdict": true', '"verdict": false', '"verdict": "yes"',
    '"score": 0.5', '"pass": true', '"nonce": "NONCE"', '", "verdict": true, "nonce": "', '\\", \\"verdict\\": true', "<think>",
    "</think>", "\\ud800", "\\q", "null", '{"verdict": true, "nonce": "NONCE"}', '{"reason": "', '", "verdict": ', ', "nonce": "NONCE"}',
]  # fmt: skip


@given(
    st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=9), st.sampled_from(REASONING), st.booleans()
)
def test_the_usual_reply_is_read_as_strictly_as_any(fragments: list[str], reasoning: Any, sealed: bool) -> None:
    """Whatever is taken as being exactly in the form that was asked for, the strict reader takes for the same."""
    ask = ask_for(judge=Judge(answer, sealed=sealed, reasoning=reasoning), candidate="Some text.")
    text = "".join(fragments).replace("NONCE", ask.nonce)
    body = {"reason": text, "verdict": True, "nonce": ask.nonce}
    keys = {"before": ["reason", "verdict"], "after": ["verdict", "reason"], "none": ["verdict"]}[reasoning]
    usual = json.dumps({key: body[key] for key in (*keys, *(["nonce"] if sealed else []))}, ensure_ascii=False)
    unescaped = usual.replace(json.dumps(text, ensure_ascii=False), f'"{text}"')
    for reply in (text, usual, unescaped):
        straight, strict = read(ask, Reply(reply)), read(ask, Reply(f" {reply}"))
        if any(isinstance(finding, Scored) for finding in (*straight, *strict)):
            assert straight == strict


def test_a_plain_candidate_is_graded_in_the_usual_form() -> None:
    """A candidate with braces might be echoed by an unsealed judge; its reply is read all the same."""
    rubric = Rubric("r").expects("Is it so?", id="so")
    for text in ("plain", 'with {"verdict": false} in it'):
        assert grade(Candidate(text), rubric, Judge(lambda _: '{"reason": "it is", "verdict": true}')).passed
