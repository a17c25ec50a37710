"""Scores weighted by the probabilities of the judge's tokens, and when the sampled score stands."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rubric import Choices, Criterion, Grade, Judge, Jury, Levels, Panel, Rubric, Unit, YesNo
from rubric.driving import Reply
from rubric.grading.logprobs import weigh
from rubric.grading.reply_parser import read
from rubric.results import Scored
from rubric.testing.scripted_model import ScriptedModel, reply_to
from rubric.values.answers import Answer
from rubric.values.findings import Finding
from rubric.values.requests import Ask, TokenLogprob
from tests.asks import ask_about, ask_for
from tests.drive import drive
from tests.rows import each_row

Token = str | tuple[str, Mapping[str, float]]
"""A token that is certain, or one with the probabilities of the likeliest in its place."""

TEN = Levels()
HEAD = '{"reason": "ok", "score": '


def logged(token: Token) -> TokenLogprob:
    """Return *token* as a vendor gives it."""
    text, chances = (token, {token: 1.0}) if isinstance(token, str) else token
    likeliest = tuple((other, math.log(chance) if chance else -9999.0) for other, chance in chances.items())
    return text, dict(likeliest).get(text, -20.0), likeliest


def reply_of(*tokens: Token, text: str | None = None) -> Reply:
    """Return the reply that *tokens* are; with another *text* they are not its."""
    said = "".join(token if isinstance(token, str) else token[0] for token in tokens)
    return Reply(said if text is None else text, logprobs=tuple(map(logged, tokens)))


def weighed(answer: Answer, *tokens: Token, text: str | None = None) -> tuple[Finding, tuple[str, ...]]:
    """Return what *tokens* come to for a criterion with *answer*, and the notes."""
    ask, reply = ask_for(answer), reply_of(*tokens, text=text)
    (finding,), notes = weigh(ask, reply, read(ask, reply))
    return finding, notes


def seven(**chances: float) -> Token:
    """Return the token of a 7, with the *chances* of others, as `_8=0.3`."""
    return "7", {name.lstrip("_"): chance for name, chance in chances.items()}


@each_row(
    ("answer", "tokens", "score"),
    [
        (TEN, [HEAD, seven(_7=0.6, _8=0.4), "}"], 0.74),
        (TEN, ['{"score":', (" 7", {" 7": 0.5, " 9": 0.5}), "}"], 0.8),
        (TEN, ['{"score', '":', (" 7}", {" 7}": 0.5, " 5}": 0.5})], 0.6),
        (TEN, ['{"score": "', seven(_7=0.5, _3=0.5), '"}'], 0.5),
        (TEN, [HEAD, seven(_7=0.5, _8=0.25, high=0.25), "}"], (0.7 * 0.5 + 0.8 * 0.25) / 0.75),
        (TEN, [HEAD, seven(_7=0.5, _11=0.25, _8=0.25), "}"], (0.7 * 0.5 + 0.8 * 0.25) / 0.75),
        (TEN, [HEAD, seven(_7=0.5, _10=0.25, _1=0.25), "}"], 0.7 * 0.5 + 0.25 + 0.025),
        (TEN, [HEAD, "1", ("0", {"0": 0.5, "}": 0.5}), "}"], 0.55),
        (Levels({1: "a", 5: "b"}), [HEAD, ("4", {"4": 0.5, "5": 0.5}), "}"], 0.875),
        (Unit(), [HEAD, "0", ".", ("8", {"8": 0.5, "9": 0.5}), "}"], 0.85),
        (Unit(), [HEAD, "0", ".", ("8", {"8": 0.5, "85": 0.5}), "}"], 0.825),
        (Unit(), [HEAD, "0", (".", {".": 0.5, "}": 0.5}), "8", "}"], 0.4),
        (Unit(), [HEAD, ("0", {"0": 0.5, "1": 0.5}), ".", "8", "}"], 0.9),
        (Unit(flag=True), [HEAD, "0.", ("8", {"8": 0.5, "9": 0.5}), ', "pass": true}'], 0.85),
        (TEN, ['{"reason": "', "\\ud83d", "\\ude00", " \U0001f600", '", "score": ', seven(_7=0.5, _9=0.5), "}"], 0.8),
    ],
)
def test_the_score_is_the_expectation(answer: Answer, tokens: list[Token], score: float) -> None:
    """Over the answers in the verdict's place; the sampled one stays the value, and the finding says so."""
    finding, notes = weighed(answer, *tokens)
    assert isinstance(finding, Scored)
    assert notes == ()
    assert finding.weighted
    assert finding.score == pytest.approx(score)
    assert finding.value == float(re.findall(r'score": ?"?([\d.]+)', _text(tokens))[0])


def _text(tokens: Sequence[Token]) -> str:
    return "".join(token if isinstance(token, str) else token[0] for token in tokens)


def test_characters_in_several_tokens_do_not_hide_the_verdict() -> None:
    """An emoji comes in pieces that are not text: what follows is found from the end."""
    text = '{"reason": "fine \U0001f600", "score": 7}'
    tokens: list[Token] = ['{"reason": "fine ', "\\xf0\\x9f", "\\x98\\x80", '", "score": ', seven(_7=0.5, _9=0.5), "}"]
    finding, notes = weighed(TEN, *tokens, text=text)
    assert isinstance(finding, Scored)
    assert notes == ()
    assert finding.score == pytest.approx(0.8)


@each_row(
    ("answer", "tokens", "why"),
    [
        (TEN, ['{"score": 3} {"score": 3', "}"], "one place"),
        (TEN, ['Draft: "score": 5. {"score": ', seven(_7=0.5, _8=0.5), "}"], "one place"),
        (TEN, ['{"score": "7/10"', "}"], "one place"),
        (TEN, ["{'score': 7", "}"], "one place"),
        (TEN, [HEAD, seven(_7=0.4, high=0.6), "}"], "too little"),
        (TEN, [HEAD, seven(_7=0.6, _1=0.4), "}"], "not settled"),
        (Unit(), [HEAD, ("1", {"1": 0.6, "0": 0.4}), "}"], "not settled"),
        (Unit(), [HEAD, "0", ("}", {"}": 0.6, ".": 0.4})], "not settled"),
        (Unit(), ['{"verdict": true', "}"], "one place"),
    ],
)
def test_what_is_not_clear_leaves_the_sampled_score(answer: Answer, tokens: list[Token], why: str) -> None:
    """And a note says why; the verdict itself is the one that was read."""
    ask, reply = ask_for(answer), reply_of(*tokens)
    read_ = read(ask, reply)
    assert isinstance(read_[0], Scored)
    findings, notes = weigh(ask, reply, read_)
    assert (findings, len(notes)) == (read_, 1)
    assert why in notes[0]


def test_tokens_that_are_not_the_text_say_nothing() -> None:
    """Those of another reply, or half of them."""
    for tokens in ([HEAD, seven(_7=0.5, _8=0.5)], ["x", "y"], [seven(_7=0.5, _8=0.5)]):
        finding, notes = weighed(TEN, *tokens, text=HEAD + "7}")
        assert isinstance(finding, Scored)
        assert (finding.score, finding.weighted) == (0.7, False)
        assert "not those of the text" in notes[0]


YES_NO = '{"reason": "ok", "verdict": '
PICK = '{"reason": "ok", "choice": '
TONE = Choices({"hostile": 0, "neutral": 0.5, "negative": 0.25, "warm": 1})
GOOD = Choices({"good": 0.5, "good enough": 1, "bad": 0})


def of(text: str, *others: tuple[str, float]) -> Token:
    """Return the token *text*, with the chances of *others*; what is left is its own."""
    return text, {text: 1 - sum(chance for _, chance in others), **dict(others)}


@each_row(
    ("answer", "tokens", "value", "score"),
    [
        (YesNo(), [YES_NO, of("true", ("false", 0.2)), "}"], True, 0.8),
        (YesNo(), [YES_NO, of("false", ("true", 0.2)), "}"], False, 0.2),
        (YesNo(), ['{"verdict":', of(" true", (" false", 0.3)), "}"], True, 0.7),
        (YesNo(), ['{"verdict', of('": true', ('": false', 0.3)), "}"], True, 0.7),
        (YesNo(), [YES_NO, of("true}", ("false}", 0.3))], True, 0.7),
        (YesNo(), [YES_NO, of("tr", ("fal", 0.3)), "ue", "}"], True, 0.7),
        (YesNo(), [YES_NO, "t", of("rue", ("RUE", 0.4)), "}"], True, 1.0),
        (YesNo(), [YES_NO, '"', of("Yes", ("no", 0.2), ("NO", 0.2), ("not", 0.1)), '"}'], True, 0.5),
        (YesNo(), [YES_NO, of('"yes', ("false", 0.25), (" true", 0.25)), '"}'], True, 0.75),
        (YesNo(), [YES_NO, of("true", ("null", 0.2), (" maybe", 0.2), ("false", 0.2)), "}"], True, 2 / 3),
        (YesNo(), [YES_NO, '"', of("not", ("met", 0.5)), "_met", '"}'], False, 0.5),
        (TONE, [PICK, '"', of("warm", ("hostile", 0.2), ("h", 0.2)), '"}'], "warm", 0.6),
        (TONE, [PICK, of('"warm', ('"hostile', 0.25)), '"', "}"], "warm", 0.75),
        (TONE, [PICK, '"', of("ne", ("warm", 0.2)), of("utral", ("gative", 0.5)), '"}'], "neutral", 0.5),
        (TONE, [PICK, '"', of("Warm", ("WARM", 0.2), ("Hostile", 0.2)), '"}'], "warm", 0.8),
        (GOOD, [PICK, '"', of("good", ("bad", 0.2)), of('"}', (" enough", 0.5))], "good", 0.6),
        (GOOD, [PICK, '"', "good", of(" enough", ('"}', 0.25)), '"}'], "good enough", 0.875),
        (GOOD, [PICK, '"', of("good", ('bad"', 0.25), ('good"', 0.25)), '"}'], "good", 0.375),
        (Choices({"no": 0.5, "none": 0.5, "yes": 1}), [PICK, '"', of("yes", ("no", 0.5)), '"}'], "yes", 0.75),
    ],
)
def test_yes_or_no_and_choices_are_weighed_too(
    answer: Answer, tokens: list[Token], value: object, score: float
) -> None:
    """By the probability of yes, or of each label, however they are cut into tokens; the sampled one stays the value."""
    finding, notes = weighed(answer, *tokens)
    assert isinstance(finding, Scored)
    assert notes == ()
    assert (finding.value, finding.weighted) == (value, True)
    assert finding.score == pytest.approx(score)


@each_row(
    ("answer", "tokens", "why"),
    [
        (TONE, [PICK, '"', of("warm", ("ne", 0.2)), '"}'], "not settled"),
        (GOOD, [PICK, '"', of("bad", ("good", 0.2)), '"}'], "not settled"),
        (YesNo(), [YES_NO, of("true", ('"', 0.2)), "}"], "not settled"),
        (TONE, [PICK, '"', of("warm", ("\N{REPLACEMENT CHARACTER}", 0.2)), '"}'], "not settled"),
        (YesNo(), [YES_NO, of("true", ("null", 0.6)), "}"], "too little"),
        (TONE, [PICK, '"', of("warm", ("cool", 0.6)), '"}'], "too little"),
        (YesNo(), ['{"verdict": true, "passed": true', "}"], "one place"),
        (YesNo(), ["{'verdict': 'yes'", "}"], "one place"),
        (Choices({"a\\b": 0, "c": 1}), ['{"choice": "a\\\\b"', "}"], "one place"),
    ],
)
def test_words_that_tokens_do_not_tell_apart_leave_the_sampled_verdict(
    answer: Answer, tokens: list[Token], why: str
) -> None:
    """Labels that begin alike, a quote that may begin any word, an answer that is none: a note says why."""
    ask, reply = ask_for(answer), reply_of(*tokens)
    before = read(ask, reply)
    findings, notes = weigh(ask, reply, before)
    assert (findings, len(notes)) == (before, 1)
    assert why in notes[0]


def test_of_several_verdicts_in_a_reply_each_has_its_tokens() -> None:
    """Found by the id that begins its entry; one that cannot be told apart keeps its score."""
    ask = ask_about("x", *[Criterion(id_, id=id_, answer=TEN) for id_ in "abc"])
    head = '{"verdicts": [{"verdict": 7, "id": "c"}, {"id": "a", "verdict": '
    middle = '}, {"id": "b", "verdict": '
    reply = reply_of(head, seven(_7=0.5, _9=0.5), middle, seven(_7=0.5, _5=0.5), "}]}")
    findings, notes = weigh(ask, reply, read(ask, reply))
    assert [f.score for f in findings if isinstance(f, Scored)] == pytest.approx([0.8, 0.6, 0.7])
    assert len(notes) == 1
    assert "'c'" in notes[0]


# -- laws --------------------------------------------------------------------------------------------------

chances = st.dictionaries(st.sampled_from([str(n) for n in range(-3, 15)] + ["x", " ", "}", "7}"]), st.floats(0, 1))


@given(chances, st.integers(0, 10), st.floats(0.01, 1))
def test_the_expectation_lies_within_the_range_of_what_was_likely(
    others: dict[str, float], level: int, own: float
) -> None:
    """Never beyond the scale, nor beyond the least and the greatest answer that had a chance."""
    token: Token = (str(level), {**others, str(level): own})
    finding, _ = weighed(TEN, HEAD, token, "}")
    assert isinstance(finding, Scored)
    likely = [level, *(int(text.rstrip("}")) for text in others if text.rstrip("}").lstrip("-").isdigit())]
    within = [n / 10 for n in likely if 0 <= n <= 10]
    assert min(within) <= finding.score <= max(within)
    assert finding.value == level


@given(st.sampled_from([TEN, Levels({1: "a", 7: "b"}), Unit()]), st.data())
def test_a_certain_token_gives_exactly_the_sampled_score(answer: Any, data: st.DataObject) -> None:
    """However the text is cut into tokens, and with others that have next to no chance."""
    number = data.draw(
        st.sampled_from(["0", "1", "0.5", "0.85", "1.0"] if isinstance(answer, Unit) else ["1", "3", "7"])
    )
    text = f"{HEAD}{number}}}"
    cuts = data.draw(st.sets(st.integers(1, len(text) - 1)))
    edges = [0, *sorted(cuts), len(text)]
    noise = data.draw(st.dictionaries(st.sampled_from(["2", "0.1", "x", "9"]), st.floats(0, 1e-11)))
    parts = [text[a:b] for a, b in pairwise(edges)]
    finding, _ = weighed(answer, *[(part, {**noise, part: 1.0}) for part in parts])
    ask = ask_for(answer)
    assert isinstance(finding, Scored)
    assert finding.score == read(ask, Reply(text))[0].score


@given(st.text(max_size=40), st.lists(st.tuples(st.text(max_size=5), st.floats(-50, 5)), max_size=12))
def test_no_tokens_whatever_break_a_reading(tail: str, tokens: list[tuple[str, float]]) -> None:
    """A vendor may send anything; the score stays in 0..1, and the value is the one that was read."""
    ask = ask_for(TEN)
    logprobs = tuple((text, logprob, tuple(tokens)) for text, logprob in tokens)
    reply = Reply(HEAD + "7}" + tail, logprobs=logprobs)
    before = read(ask, reply)
    assume(isinstance(before[0], Scored))
    (finding,), _ = weigh(ask, reply, before)
    assert isinstance(finding, Scored)
    assert 0 <= finding.score <= 1
    assert finding.value == 7


# -- in a grade --------------------------------------------------------------------------------------------


def _weighing(ask: Ask) -> Reply:
    text = reply_to(ask, 7)
    head, _, tail = text.rpartition("7")
    return reply_of(head, seven(_7=0.5, _9=0.5), tail)


CLEAR = Rubric().rates("Clear?", id="clear")


def test_a_judge_with_logprobs_gives_weighted_scores() -> None:
    """The grade's score is the expectation; without the option the tokens are not looked at."""
    weighted, sampled = (drive(CLEAR, Judge(ScriptedModel(_weighing), logprobs=on)) for on in (True, False))
    assert isinstance(weighted, Grade)
    assert isinstance(sampled, Grade)
    assert sampled.score == 0.7
    assert weighted.score == pytest.approx(0.8)
    assert json.loads(json.dumps(weighted.to_dict()))["findings"][0]["weighted"] is True


def test_a_model_without_probabilities_is_told_of_once() -> None:
    """The sampled scores stand, and one warning says so."""
    rubric = CLEAR.scores("Warm?", id="warm")
    result = drive(rubric, Judge(ScriptedModel({"clear": 7, "warm": 0.5}), logprobs=True))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(0.6)
    assert [("no probabilities" in warning) for warning in result.warnings] == [True]
    yes = drive(Rubric().expects("a"), Judge(ScriptedModel([True]), logprobs=True))
    assert yes.warnings == result.warnings


def test_pooled_scores_say_whether_they_are_weighted() -> None:
    """As the finding does whose score they are."""
    judge = Judge(ScriptedModel(_weighing), logprobs=True)
    for bench in (Jury(judge, 2), Panel([judge, judge], level="criterion")):
        finding = drive(CLEAR, bench)["clear"]
        assert isinstance(finding, Scored)
        assert finding.weighted
        assert finding.score == pytest.approx(0.8)


def _surely(*answers: tuple[str, float]) -> ScriptedModel:
    """Return a model that says yes or no with these probabilities, one answer after the other."""

    def say(said: tuple[str, float]) -> Reply:
        text, chance = said
        other = {"true": "false", "false": "true"}[text]
        return reply_of('{"reason": "", "evidence": [], "verdict": ', (text, {text: chance, other: 1 - chance}), "}")

    return ScriptedModel([*map(say, answers)])


def test_a_weighted_yes_gates_by_its_probability_and_decides_by_itself() -> None:
    """As the share of yes among many votes: below the gate value the gate fails; without a threshold, yes is yes."""
    gate = Rubric().requires("a", id="a")
    likely, unlikely = (drive(gate, Judge(_surely(("true", p)), logprobs=True)) for p in (0.8, 0.6))
    assert isinstance(likely, Grade)
    assert isinstance(unlikely, Grade)
    assert likely.score == pytest.approx(0.8)
    assert likely.passed
    assert (unlikely.passed, unlikely.gates) == (False, ("a",))
    own = gate.passing_at(None)
    assert drive(own, Judge(_surely(("true", 0.8)), logprobs=True)).passed
    assert not drive(own, Judge(_surely(("false", 0.8)), logprobs=True)).passed
    members = [Judge(_surely(("true", p)), logprobs=True) for p in (0.8, 0.9)]
    assert drive(own, Panel(members, level="criterion")).passed


def test_a_weighted_no_needs_no_quote() -> None:
    """The judge wrote "no", and has nothing to show; alone, or in a pool."""
    rubric = Rubric(evidence=True).expects("a", id="a")
    judges = [Judge(_surely(("false", p)), logprobs=True) for p in (0.9, 0.8)]
    for bench, score in (
        (Judge(_surely(("false", 0.9)), logprobs=True), 0.1),
        (Panel(judges, level="criterion"), 0.15),
    ):
        result = drive(rubric, bench)
        assert isinstance(result, Grade)
        assert result.score == pytest.approx(score)
        assert result.gates == ()


def test_little_probability_moves_the_score_a_little() -> None:
    """A ten millionth counts: sums over many scores would be off."""
    finding, _ = weighed(TEN, HEAD, ("7", {"7": 1 - 1e-7, "9": 1e-7}), "}")
    assert isinstance(finding, Scored)
    assert finding.score == pytest.approx(0.7 + 0.2e-7, abs=1e-12)
    assert finding.score != 0.7
