"""
Scores weighted by the probabilities of the judge's tokens (G-Eval, arXiv 2303.16634).

A judge that says 7 may have been about to say 8 nearly as surely. Where the model gives the likeliest tokens in the
verdict's place, the score is the expectation over the answers that they stand for. The sampled answer stays the
finding's value; which answers were allowed, and everything else, is read as ever.

It is done only where it is clear: the reply is the text of its tokens, its verdict stands in one place and is the one
that was read, at least half of the probability there lies on answers, and it is settled which answers these are (the
token `1` may begin a 10, and a `0` any score below 1). Else the sampled score stands, and a note says why.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise

from attrs import evolve, frozen

from rubric.answers import Levels, Unit
from rubric.criteria import Criterion
from rubric.exchanges import Ask, Reply, TokenLogprob
from rubric.findings import Finding, Scored

__all__ = ["weigh"]

_KEY = r'"(?:score|rating|verdict)"\s*:\s*'
_VALUE = re.compile(_KEY + r'"?\s*(-?\d+(?:\.\d+)?)\s*"?\s*[,}]', re.ASCII)
_ENTRY = r'\{\s*"id"\s*:\s*%s\s*,'
_NEXT = re.compile(r'"id"\s*:')
_LEAD = re.compile(r'[\s":]*')
_CORE = re.compile(r"-?[\d.]*", re.ASCII)
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_ENDING = tuple(' \t\r\n,}"]')

_CLEAR = 0.5
"""The least probability that must lie on answers: with less, the place is not what it seems."""

_VAGUE = 0.01
"""The most of it that may lie on beginnings of answers that nobody knows the end of."""

_CERTAIN = 1e-6
"""What an expectation may differ from the sampled score and still be that score: a certain token stays exact."""


class _Unclear(Exception):  # noqa: N818 - it does not leave this module
    """Why the sampled score stands."""


def weigh(ask: Ask, reply: Reply, findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return *findings* with weighted scores where *reply* allows it, and a note for each where it does not."""
    if not reply.logprobs:
        return tuple(findings), (_NONE,) if any(map(_is_weighed, ask.criteria, findings)) else ()
    made: list[Finding] = []
    notes: list[str] = []
    for criterion, finding in zip(ask.criteria, findings, strict=True):
        if isinstance(finding, Scored) and _is_weighed(criterion, finding):
            try:
                finding = _weighted(ask, reply, criterion, finding)  # noqa: PLW2901 - the same, weighted
            except _Unclear as why:
                notes.append(f"{criterion.id!r} has the score that was sampled, not a weighted one: {why}")
        made.append(finding)
    return tuple(made), tuple(notes)


_NONE = "scores are those that were sampled, not weighted ones: the model gave no probabilities of its tokens"


def _is_weighed(criterion: Criterion, finding: Finding) -> bool:
    return isinstance(finding, Scored) and isinstance(criterion.answer, Unit | Levels)


def _weighted(ask: Ask, reply: Reply, criterion: Criterion, finding: Scored) -> Scored:
    text, logprobs = reply.text or "", reply.logprobs or ()
    start, end = _place(ask, criterion, text)
    if float(text[start:end]) != finding.value:
        raise _Unclear("the verdict stands in another form")
    answer = criterion.answer
    assert isinstance(answer, Unit | Levels)  # noqa: S101 - others are not weighed
    tokens = _tokens_at(text, logprobs, start, end)
    return evolve(finding, score=_expected(_Scale(answer), tokens, finding.score), weighted=True)


# -- where the verdict stands ----------------------------------------------------------------------------


def _place(ask: Ask, criterion: Criterion, text: str) -> tuple[int, int]:
    """Return where the number of the verdict on *criterion* starts and ends in *text*."""
    start, end = _entry(criterion.id, text) if ask.many else (0, len(text))
    keys = len(re.findall(_KEY, text[start:end]))
    match = _VALUE.search(text, start, end)
    if keys != 1 or match is None:
        raise _Unclear("its verdict does not stand in one place")
    return match.span(1)


def _entry(id_: str, text: str) -> tuple[int, int]:
    """Return where the entry of the criterion called *id_* starts and ends, up to the next one's id."""
    found = list(re.finditer(_ENTRY % re.escape(f'"{id_}"'), text))
    if len(found) != 1:
        raise _Unclear("its entry does not stand in one place")
    start = found[0].end()
    following = _NEXT.search(text, start)
    return start, following.start() if following else len(text)


@frozen
class _Token:
    """A token of the verdict: its text, where that starts in the number (below 0: before it), and the likeliest."""

    text: str
    offset: int
    likeliest: tuple[tuple[str, float], ...]


def _tokens_at(text: str, logprobs: Sequence[TokenLogprob], start: int, end: int) -> list[_Token]:
    """Return the tokens from *start* on, up to the one that holds the character after *end*."""
    found = [token for token in _aligned(text, logprobs) if token.offset + len(token.text) > start]
    found = [evolve(token, offset=token.offset - start) for token in found if token.offset <= end]
    if not found or found[0].offset > 0 or found[-1].offset + len(found[-1].text) <= end - start:
        raise _Unclear("its tokens are not those of the text")
    if any(a.offset + len(a.text) != b.offset for a, b in pairwise(found)):
        raise _Unclear("its tokens are not those of the text")
    return found


def _aligned(text: str, logprobs: Sequence[TokenLogprob]) -> list[_Token]:
    """Return the tokens with their places in *text*: from its start, and from its end, as far as they agree with it."""
    head: list[_Token] = []
    at, index = 0, 0
    while index < len(logprobs) and text.startswith(logprobs[index][0], at):
        head.append(_token(logprobs[index], at))
        at += len(logprobs[index][0])
        index += 1
    if at == len(text):
        return head
    tail: list[_Token] = []
    at = len(text)
    for entry in reversed(logprobs[index:]):  # characters in several tokens, such as emoji, stand between the two
        if not text.endswith(entry[0], 0, at):
            break
        at -= len(entry[0])
        tail.append(_token(entry, at))
    return [*head, *reversed(tail)]


def _token(entry: TokenLogprob, at: int) -> _Token:
    token, logprob, alternatives = entry
    likeliest = {**dict(alternatives), token: logprob}
    return _Token(token, at, tuple((text, math.exp(min(value, 0.0))) for text, value in likeliest.items()))


# -- what the tokens stand for ---------------------------------------------------------------------------


@frozen
class _Scale:
    """Which numbers are answers, and their place in 0..1."""

    answer: Unit | Levels

    def place(self, number: str) -> float | None:
        """Return the place of *number*; None if it is no answer."""
        number = number.removesuffix(".")
        if not _NUMBER.fullmatch(number):
            return None
        value = float(number)
        if isinstance(self.answer, Levels):
            whole = value.is_integer() and self.answer.low <= value <= self.answer.high
            return self.answer.place(int(value)) if whole else None
        return value if 0 <= value <= 1 else None

    def is_vague(self, number: str, *, wide: bool) -> bool:
        """Say whether *number* may be the beginning of another answer; *wide*: a token holds several digits."""
        if isinstance(self.answer, Unit):
            return number in ("0", "0.", "-")
        if not number.lstrip("-").isdigit():
            return number == "-"
        value = abs(int(number))
        most = -self.answer.low if number.startswith("-") else self.answer.high
        return not wide and 0 < value * 10 <= most


def _expected(scale: _Scale, tokens: Sequence[_Token], sampled: float) -> float:
    """Return the expectation over the answers that *tokens*, or others in the place of one of them, stand for."""
    places: list[tuple[float, float]] = []
    share, lost = 1.0, 0.0
    for index, token in enumerate(tokens):
        prefix = _number_before(tokens, index)
        wide = any(len(_core(text, prefix)[0].strip("-")) > 1 for text, _ in token.likeliest)
        for text, chance in token.likeliest:
            if text == token.text:
                continue
            core, is_whole, is_odd = _core(text, prefix)
            number = prefix + core
            if is_odd or (not core and not is_whole):
                continue
            if not is_whole and scale.is_vague(number, wide=wide):
                lost += share * chance
            elif (place := scale.place(number)) is not None:
                places.append((place, share * chance))
        share *= dict(token.likeliest)[token.text]
    places.append((sampled, share))
    return _mean(places, lost, sampled)


def _number_before(tokens: Sequence[_Token], index: int) -> str:
    """Return what stands of the number before the token at *index*."""
    return "".join(token.text for token in tokens[:index])[max(0, -tokens[0].offset) :]


def _core(text: str, prefix: str) -> tuple[str, bool, bool]:
    """Return which part of a number the token *text* is, whether the number ends in it, and whether it is none."""
    rest = text if prefix else text[_LEAD.match(text).end() :]  # type: ignore[union-attr]  # it always matches
    core = _CORE.match(rest)[0]  # type: ignore[index]  # so does this
    after = rest[len(core) :]
    is_whole = bool(prefix + core) and after.startswith(_ENDING)
    return core, is_whole, bool(after) and not is_whole


def _mean(places: Sequence[tuple[float, float]], lost: float, sampled: float) -> float:
    known = math.fsum(chance for _, chance in places)
    if known < _CLEAR:
        raise _Unclear("too little of the probability lies on answers")
    if lost > _VAGUE * known:
        raise _Unclear("it is not settled which answers its tokens begin")
    expected = math.fsum(place * chance for place, chance in places) / known
    if abs(expected - sampled) <= _CERTAIN:
        return sampled
    return min(max(expected, min(p for p, _ in places)), max(p for p, _ in places))
