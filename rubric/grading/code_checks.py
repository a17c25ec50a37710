"""
What code decides about a candidate: checks, and whether a criterion applies.

Candidates that no judge should see: empty ones, and "master keys" that make judges say yes (arXiv 2507.08794).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from inspect import isawaitable
from itertools import islice
from typing import Any

from rubric.internals.fields import plain_number
from rubric.internals.frozen_map import thaw
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate
from rubric.values.checks import (
    NOTHING,
    Calls,
    Check,
    Contains,
    ContainsAll,
    ContainsAny,
    Decided,
    EndsWith,
    Equals,
    FitsSchema,
    Holds,
    IsJSON,
    Matches,
    Script,
    StartsWith,
    Unsupported,
)
from rubric.values.criteria import Criterion, When
from rubric.values.findings import Finding, NotApplicable, Scored, Unjudged
from rubric.values.matching import matches, misfit
from rubric.values.requests import Failure, FailureKind


def applies(when: When | None, candidate: Candidate) -> bool:
    """Say whether a criterion with *when* applies to *candidate*."""
    if when is None:
        return True
    if when.contains is not None:
        return when.contains in candidate.output
    if when.regex is not None:
        return matches(when.regex, candidate.output)
    if when.tool_called is not None:
        return any(call.name == when.tool_called for call in candidate.tool_calls)
    assert when.holds is not None  # noqa: S101 - a condition is one of the four
    said = when.holds(candidate)
    if isawaitable(said):
        getattr(said, "close", bool)()  # or it would complain that nobody awaited it
        msg = f"the condition {getattr(when.holds, '__name__', when.holds)!r} is async; give one that returns a bool"
        raise TypeError(msg)
    return bool(said)


def settled(criterion: Criterion, candidate: Candidate) -> Finding | None:
    """Return what code finds of *criterion* by itself; None where a judge is to be asked."""
    try:
        if not applies(criterion.when, candidate):
            return NotApplicable(criterion.id, "its condition does not hold")
    except Exception as error:  # noqa: BLE001 - a condition of the user's own may raise anything
        return _undecided(criterion, "exception", f"its condition raised {type(error).__name__}: {error}")
    return settle(criterion, criterion.answer, candidate) if isinstance(criterion.answer, Check) else None


def settle(criterion: Criterion, check: Check, candidate: Candidate) -> Finding:
    """Return what code finds of *criterion*, whose answer is *check*; what it cannot decide is unjudged."""
    match check:
        case Decided():
            return Scored(criterion.id, check.score, check.score, check.reason)
        case Holds():
            return _consult(criterion, check, candidate)
        case Unsupported() if check == NOTHING:
            return _undecided(criterion, "unsupported", "nothing is asserted, so there is nothing to grade by")
        case Unsupported():
            return _undecided(criterion, "unsupported", f"{check.type}: this library has no such grader")
        case Script():
            return _undecided(criterion, "unsupported", f"{check} runs only in a suite's run with allow_scripts=True")
        case _:
            holds, why = decide(check, candidate)
            return Scored(criterion.id, float(holds), holds, why)


def _undecided(criterion: Criterion, kind: FailureKind, why: str) -> Unjudged:
    return Unjudged(criterion.id, Failure(kind, shorten(why), criterion=criterion.id))


def _consult(criterion: Criterion, check: Holds, candidate: Candidate) -> Finding:
    try:
        said: object = check.function(candidate)
    except Exception as error:  # noqa: BLE001 - a function of the user's own may raise anything
        return _undecided(criterion, "exception", f"{check} raised {type(error).__name__}: {error}")
    found, why = said if isinstance(said, tuple) and len(said) == 2 else (said, "")  # noqa: PLR2004
    score = plain_number(found)
    if not isinstance(score, bool | int | float) or not 0 <= score <= 1 or not isinstance(why, str):
        allowed = "a bool, a score from 0 to 1, or a pair of one with a reason"
        return _undecided(criterion, "exception", f"{check} returned {said!r}, expected {allowed}")
    reason = why or f"{check}: {('yes' if score else 'no') if isinstance(score, bool) else f'{score:g}'}"
    return Scored(criterion.id, float(score), score, reason)


def decide(check: Check, candidate: Candidate) -> tuple[bool, str]:
    """Return whether *candidate* passes *check*, and why or why not."""
    match check:
        case Matches():
            holds = matches(check.pattern, candidate.output)
        case IsJSON():
            return _is_json(candidate.output)
        case FitsSchema():
            return _fits(thaw(check.schema), candidate.output)
        case Calls():
            mine = [call for call in candidate.tool_calls if call.name == check.name]
            holds = any(_covers(call.arguments, check.arguments) for call in mine)
        case _:
            holds = _reads(check, candidate.output)
    return holds, f"{check}: {'yes' if holds else 'no'}"


def _reads(check: Check, output: str) -> bool:
    """Return whether *output* has the text of *check* where it should be."""
    fold = str.casefold if getattr(check, "ignore_case", False) else str
    found = fold(output)
    match check:
        case Contains():
            return fold(check.text) in found
        case ContainsAny():
            return any(fold(text) in found for text in check.texts)
        case ContainsAll():
            return all(fold(text) in found for text in check.texts)
        case StartsWith():
            return found.startswith(fold(check.text))
        case EndsWith():
            return found.endswith(fold(check.text))
        case Equals():
            return found.strip() == fold(check.text).strip()
        case _:
            msg = f"{type(check).__name__} is no check that this library knows"
            raise TypeError(msg)


def _covers(given: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in given and given[name] == value for name, value in wanted.items())


def _is_json(text: str) -> tuple[bool, str]:
    try:
        _parse(text)
    except RecursionError:
        return False, "is not JSON: it is nested too deeply to be read"
    except ValueError as problem:
        return False, f"is not JSON: {shorten(str(problem), 120)}"
    return True, "is JSON"


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant, parse_int=_integer)


def _no_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


def _integer(digits: str) -> int | float:
    """Read numbers of thousands of digits as floats: Python takes its time for them, and then refuses them."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


_MOST_DIGITS = 1_000


def _fits(schema: Any, text: str) -> tuple[bool, str]:
    holds, why = _is_json(text)
    if not holds:
        return False, why
    problem = misfit(schema, _parse(text))
    return not problem, f"does not fit the schema at {problem}" if problem else "fits the schema"


_OPENERS = (
    # English
    "answer", "final answer", "here is my answer", "here is the answer", "here is the solution", "here's my solution",
    "let me solve this problem step by step", "let me think", "let me think step by step", "let's solve this",
    "let's solve this problem step by step", "let's solve this step by step", "let's think step by step",
    "let us solve this problem step by step", "reasoning", "solution", "the answer is", "the final answer is",
    "the solution is", "thinking process", "thought process",
    # German, French, Spanish, Italian, Portuguese
    "denkprozess", "die antwort lautet", "lass uns dieses problem schritt für schritt lösen", "lösung",
    "processus de réflexion", "résolvons ce problème étape par étape", "réponse", "solution finale",
    "proceso de pensamiento", "resolvamos este problema paso a paso", "respuesta", "solución",
    "processo di pensiero", "risolviamo questo problema passo dopo passo", "risposta", "soluzione",
    "processo de pensamento", "resposta", "solução", "vamos resolver este problema passo a passo",
    # Russian, Japanese, Chinese, Korean, Hindi, Arabic
    "давайте решим эту задачу шаг за шагом", "решение", "ход мыслей",
    "かいせつ", "解", "解説", "解答", "ステップバイステップで考えましょう",
    "思考过程", "答案", "让我们一步一步地解决这个问题", "让我们逐步解决这个问题",
    "풀이", "해설", "समाधान", "الحل",
)  # fmt: skip

_LONGEST_OPENER = 100
"""Letters; whatever has more of them says something."""

_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol, by their category, of which nothing is to be seen."""


def why_degenerate(candidate: Candidate) -> str:
    """Return why *candidate* says nothing, such as "is empty"; an empty text if it says something."""
    if candidate.tool_calls or candidate.file_changes or candidate.images:
        return ""
    output = candidate.output
    start = output[:_START].encode("utf-8", "ignore")
    if len(start.translate(None, _NO_LETTERS)) >= _LONGEST_OPENER:  # as in most candidates: no need to fold anything
        return ""
    words = _letters(output)
    if not words:
        return _without_letters(output)
    return "is an opener without content (a master key)" if words in MASTER_KEYS else ""


_START = 400
_NO_LETTERS = bytes(code for code in range(256) if code > 127 or not chr(code).isalnum())  # noqa: PLR2004 - ASCII


def _letters(text: str) -> str:
    """Return the first letters and digits of *text*: no case, accents, spaces, punctuation or invisible characters."""
    found = ""
    for part in (text[:_START], text):  # a long text nearly always has enough letters in its first part
        plain = unicodedata.normalize("NFKD", part).casefold()
        found = "".join(islice((c for c in plain if c.isalnum() and c not in _BLANKS), _LONGEST_OPENER))
        if len(found) == _LONGEST_OPENER:
            break
    return found


MASTER_KEYS = frozenset(map(_letters, _OPENERS))
"""Openers without content, as `_letters` leaves them."""


def _without_letters(text: str) -> str:
    """Symbols such as emoji and + can be an answer; punctuation and white space cannot."""
    seen = [c for c in text if c not in _BLANKS]
    if any(_is_symbol(c) for c in seen):
        return ""
    return "has only punctuation" if any(unicodedata.category(c)[0] in "PS" for c in seen) else "is empty"


def _is_symbol(char: str) -> bool:
    """Emoji count by their place too: a Python does not know those that are younger than itself."""
    drawn = unicodedata.category(char) in ("So", "Sm", "Sc") or "\U0001f000" <= char <= "\U0001faff"
    return drawn and char not in "|~"
