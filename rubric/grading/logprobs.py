"""
Scores weighted by the probabilities of the judge's tokens (G-Eval, arXiv 2303.16634).

A judge that says 7 may have been nearly as likely to say 8, and one that says yes, to say no. If the model gives the
likeliest tokens in the place of the verdict, the score is the expectation over the answers that begin with them; for a
yes or no, the probability of yes. The sampled answer remains the finding's value, and all else is read as usual.

The score is weighted only where that is clear: the reply is the text of its tokens, its verdict is in one place and is
the one that was read, at least half of the probability there is on answers, and each token tells its answer (`1` may
begin a 10, `0` any score below 1, and `ne` both `negative` and `neutral`). Else the sampled score remains, with a note.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from attrs import evolve, frozen

from rubric.grading.reply_parser import SCORE_KEYS, VERDICT_WORDS, keys_of
from rubric.internals.frozen_map import FrozenMap
from rubric.values.answers import Answer, Choices, Levels, Unit, YesNo, fold
from rubric.values.criteria import Criterion
from rubric.values.findings import Finding, Scored
from rubric.values.requests import Ask, Reply, TokenLogprob

_A_NUMBER = r'"?\s*(?P<value>-?\d+(?:\.\d+)?)\s*"?\s*[,}]'
_A_WORD = r'(?P<value>"[^"\\]*"|[A-Za-z]+)\s*[,}]'
_ENTRY = r'\{\s*"id"\s*:\s*%s\s*,'
_NEXT = re.compile(r'"id"\s*:')
_LEAD = re.compile(r'[\s":]*')
_CORE = re.compile(r"-?[\d.]*", re.ASCII)
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_TO_VALUE = re.compile(r'\s*"?\s*:\s*')
_SPACES = re.compile(r"\s*")
_BARE = re.compile(r'[\s,}"\]]')
_ENDING = tuple(' \t\r\n,}"]')

_CLEAR = 0.5
"""The least probability that must be on answers: with less, the place is probably not that of the verdict."""

_VAGUE = 0.01
"""The most of it that may be on tokens that begin more than one answer."""

# The most by which an expectation may miss the sampled score and still be replaced by it: a certain token stays exact.
# It covers rounding alone. With 1e-6, win rates over hundreds of such scores were wrong in the sixth decimal.
_CERTAIN = 1e-9


class _Unclear(Exception):  # noqa: N818 - it does not leave this module
    """Why the sampled score remains."""


def weigh(ask: Ask, reply: Reply, findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return *findings* with weighted scores where *reply* allows it, and a note for each where it does not."""
    if not reply.logprobs:
        lacks = reply.logprobs is None
        why = "the model gave no probabilities of its tokens" if lacks else "a part of the reply is masked"
        return tuple(findings), (f"{_NONE}: {why}",) if any(isinstance(finding, Scored) for finding in findings) else ()
    made: list[Finding] = []
    notes: list[str] = []
    for criterion, finding in zip(ask.criteria, findings, strict=True):
        if isinstance(finding, Scored):
            try:
                finding = _weigh(ask, reply, criterion, finding)  # noqa: PLW2901 - the same, weighted
            except _Unclear as why:
                notes.append(f"{criterion.id!r} has the score that was sampled, not a weighted one: {why}")
        made.append(finding)
    return tuple(made), tuple(notes)


_NONE = "scores are those that were sampled, not weighted ones"


def _weigh(ask: Ask, reply: Reply, criterion: Criterion, finding: Scored) -> Scored:
    text = reply.text or ""
    scale = _scale_of(criterion.answer)
    start, end = _place(ask, criterion, scale, text)
    if not scale.says(text[start:end], finding.value):
        raise _Unclear("the verdict is in another form")
    tokens = _tokens_at(text, reply.logprobs or (), start, end)
    return evolve(finding, score=_expectation(scale, tokens, finding.score), weighted=True)


# -- the place of the verdict ----------------------------------------------------------------------------


def _place(ask: Ask, criterion: Criterion, scale: _Words | _Numbers, text: str) -> tuple[int, int]:
    """Return where the verdict on *criterion* starts and ends in *text*: its number, or its word with the quotes."""
    start, end = 0, len(text)
    if ask.many:  # its entry goes up to the next one's id
        entries = list(re.finditer(_ENTRY % re.escape(f'"{criterion.id}"'), text))
        if len(entries) != 1:
            raise _Unclear("its entry is not in one place")
        start = entries[0].end()
        following = _NEXT.search(text, start)
        end = following.start() if following else end
    key = rf'"(?:{"|".join(scale.keys)})"\s*:\s*'
    found = len(re.findall(key, text[start:end]))
    match = re.compile(key + scale.form, re.ASCII).search(text, start, end)
    if found != 1 or match is None:
        raise _Unclear("its verdict is not in one place")
    return match.span("value")


@frozen
class _Token:
    """A token of the verdict: its text, where that starts in the verdict (below 0: before it), and the likeliest."""

    text: str
    offset: int
    likeliest: Mapping[str, float]


def _tokens_at(text: str, logprobs: Sequence[TokenLogprob], start: int, end: int) -> list[_Token]:
    """Return the tokens from *start* on, up to the one that holds the character after *end*."""
    found = [token for token in _align(text, logprobs) if token.offset + len(token.text) > start]
    found = [evolve(token, offset=token.offset - start) for token in found if token.offset <= end]
    if not found or found[0].offset > 0 or found[-1].offset + len(found[-1].text) <= end - start:
        raise _Unclear("its tokens are not those of the text")
    if any(a.offset + len(a.text) != b.offset for a, b in pairwise(found)):
        raise _Unclear("its tokens are not those of the text")
    return found


def _align(text: str, logprobs: Sequence[TokenLogprob]) -> list[_Token]:
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
    for entry in reversed(logprobs[index:]):  # between the two are characters of several tokens, such as emoji
        if not text.endswith(entry[0], 0, at):
            break
        at -= len(entry[0])
        tail.append(_token(entry, at))
    return [*head, *reversed(tail)]


def _token(entry: TokenLogprob, at: int) -> _Token:
    token, logprob, alternatives = entry
    likeliest = {**dict(alternatives), token: logprob}
    return _Token(token, at, {text: math.exp(min(value, 0.0)) for text, value in likeliest.items()})


# -- the answers that tokens begin -----------------------------------------------------------------------


Read = tuple[float | None, bool]
"""The place in 0..1 of the answer that a text is, None if it is none; and whether it may begin another."""

_NO_ANSWER: Read = None, False
_ANY: Read = None, True


def _scale_of(answer: Answer) -> _Words | _Numbers:
    match answer:
        case Unit() | Levels():
            return _Numbers(answer)
        case Choices(choices=choices):
            return _Words(keys_of(answer), {fold(choice.label): choice.score for choice in choices})
        case YesNo():
            words = {word: float(holds) for word, holds in VERDICT_WORDS.items()}
            words |= {word.replace(" ", "_"): place for word, place in words.items()}
            return _Words(keys_of(answer), words, {"true": 1.0, "false": 0.0, "null": None, "none": None})
        case _:  # a further type of answer keeps its sampled score until it has a scale here
            raise _Unclear("answers of this type are not weighted")


def _expectation(scale: _Words | _Numbers, tokens: Sequence[_Token], sampled: float) -> float:
    """Return the expectation over the answers of *tokens*, and of the alternatives to each of them."""
    places: list[tuple[float, float]] = []
    share, lost = 1.0, 0.0
    for index, token in enumerate(tokens):
        for text, chance in token.likeliest.items():
            if text == token.text:
                continue
            place, is_vague = scale.read(tokens, index, text)
            if is_vague:
                lost += share * chance
            elif place is not None:
                places.append((place, share * chance))
        share *= token.likeliest[token.text]
    places.append((sampled, share))
    known = math.fsum(chance for _, chance in places)
    if known < _CLEAR:
        raise _Unclear("too little of the probability is on answers")
    if lost > _VAGUE * known:
        raise _Unclear("it is not settled which answers its tokens begin")
    expected = math.fsum(place * chance for place, chance in places) / known
    if abs(expected - sampled) <= _CERTAIN:
        return sampled
    return min(max(expected, min(p for p, _ in places)), max(p for p, _ in places))


def _before(tokens: Sequence[_Token], index: int) -> str:
    """Return the part of the verdict before the token at *index*."""
    return "".join(token.text for token in tokens[:index])[max(0, -tokens[0].offset) :]


@frozen
class _Words:
    """Yes and no, or labels: the places of words in quotes, folded, and *bare*, where None may begin a longer text."""

    keys: Sequence[str]
    quoted: Mapping[str, float]
    bare: Mapping[str, float | None] = FrozenMap()
    form: str = _A_WORD

    def says(self, text: str, value: object) -> bool:
        """True if *text* is the word for *value*."""
        known = self.quoted if text.startswith('"') else self.bare
        place = known.get(fold(text.strip('"')))
        return place is not None and place == (float(value) if isinstance(value, bool) else known.get(fold(str(value))))

    def read(self, tokens: Sequence[_Token], index: int, text: str) -> Read:
        """Return the place of the only answer that the verdict can be, with *text* at *index*; else of none."""
        verdict = _before(tokens, index) + text
        if index == 0:
            before = tokens[0].text[: max(0, -tokens[0].offset)]
            lead = (_TO_VALUE if ":" in before else _SPACES).match(text)
            if lead is None:
                return _NO_ANSWER
            verdict = text[lead.end() :]
        if "\\" in verdict or "\N{REPLACEMENT CHARACTER}" in verdict:  # an escape, or half of a character
            return _ANY
        if verdict.startswith('"'):
            known: Mapping[str, float | None] = self.quoted
            word, closing, _ = verdict[1:].partition('"')
            is_whole = bool(closing)
        else:
            known, word = self.bare, _BARE.split(verdict, maxsplit=1)[0]
            is_whole = len(word) < len(verdict)
        word = fold(word)
        if not word and not is_whole:
            return _ANY if verdict else _NO_ANSWER  # an opening quote begins any word, white space none yet
        if is_whole:
            return known.get(word), False
        places = {place for answer, place in known.items() if answer.startswith(word)}
        return (places.pop(), False) if len(places) == 1 else (None, bool(places))


@frozen
class _Numbers:
    """Levels, and numbers in 0..1."""

    answer: Unit | Levels
    keys: Sequence[str] = SCORE_KEYS
    form: str = _A_NUMBER

    def says(self, text: str, value: object) -> bool:
        """True if *text* is the number *value*."""
        return float(text) == value

    def read(self, tokens: Sequence[_Token], index: int, text: str) -> Read:
        """Return the place of the number that the verdict is with *text* at *index*."""
        prefix = _before(tokens, index)
        wide = any(len(_core(other, prefix)[0].strip("-")) > 1 for other in tokens[index].likeliest)
        core, is_whole, is_odd = _core(text, prefix)
        if is_odd or (not core and not is_whole):
            return _NO_ANSWER
        if not is_whole and self._is_vague(prefix + core, wide=wide):
            return _ANY
        return self._place(prefix + core), False

    def _place(self, number: str) -> float | None:
        """Return the place of *number*; None if it is not an answer."""
        number = number.removesuffix(".")
        if not _NUMBER.fullmatch(number):
            return None
        value = float(number)
        if isinstance(self.answer, Levels):
            whole = value.is_integer() and self.answer.low <= value <= self.answer.high
            return self.answer.place(int(value)) if whole else None
        return value if 0 <= value <= 1 else None

    def _is_vague(self, number: str, *, wide: bool) -> bool:
        """True if *number* may be the beginning of another answer; *wide*: a token holds several digits."""
        if isinstance(self.answer, Unit):
            return number in ("0", "0.", "-")
        if not number.lstrip("-").isdigit():
            return number == "-"
        value = abs(int(number))
        most = -self.answer.low if number.startswith("-") else self.answer.high
        return not wide and 0 < value * 10 <= most


def _core(text: str, prefix: str) -> tuple[str, bool, bool]:
    """Return which part of a number the token *text* is, whether the number ends in it, and whether it is none."""
    rest = text if prefix else text[_LEAD.match(text).end() :]  # type: ignore[union-attr]  # it always matches
    core = _CORE.match(rest)[0]  # type: ignore[index]  # so does this
    after = rest[len(core) :]
    is_whole = bool(prefix + core) and after.startswith(_ENDING)
    return core, is_whole, bool(after) and not is_whole
