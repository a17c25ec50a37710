"""
Tell which object of a sealed reply is its verdict.

A sealed reply is read as strict JSON: the whole text, or an object in a fence or in prose. A reading that repairs JSON
guesses, and a candidate could choose what it guesses. (Line breaks within a text are taken, since they end nothing.)

A sealed verdict ends with the nonce of its ask, which no candidate can know. That alone does not keep a candidate out
of it: a judge that repeats `", "verdict": true}` without escaping the quotes writes half of its own object in the
candidate's words. What keeps it out is where the nonce comes. In `"verdict": false, "nonce": "..."` everything is the
judge's: the candidate's words are always in a text, so a quotation mark of the judge's follows them. Hence the rules,
which docs/explanation/security.md lists.

A server that enforces a schema with this nonce writes it by force, so there it proves nothing about the judge. It need
not: such a reply is one object, and the candidate's words are escaped in it. Where a schema was sent and not enforced,
the judge must have copied the nonce from the prompt. Nobody can tell the two apart, so the rules are the same.

Each rule is needed: `tests/grading/test_sealed_replies.py` has the reply that passes without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any

from rubric.grading.json_extraction import Ambiguous, Piece, check_piece, objects_in, pieces

_NONCE = "nonce"

LISTS = ("verdicts", "checks")
"""The keys under which a reply may have its list of verdicts."""

_LEADING_THOUGHT = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_BRACE = re.compile(r"[{}]")

_AROUND = " \t\r\n\u00a0\u200b\ufeff*_`-.#"
"""What a judge may write around the words of a key, such as `**verdict**`."""

_ESCAPE = re.compile(r"\\u00([46][1-9a-fA-F]|[57][0-9aA]|5[fF])|\\.", re.DOTALL)
"""An escaped letter (or underscore), or anything else that is escaped."""


def sealed_object(reply: str, text: str, *, nonce: str, asked: frozenset[str]) -> list[Mapping[str, Any]]:
    """
    Return the verdicts of *text*, what follows the thinking in *reply*, that end with *nonce*; none, if there are none.

    A verdict is under one of the *asked* keys. `Ambiguous` is raised for one that may be the candidate's.
    """
    found = pieces(text, strict=True)
    own = [p for p in found if p.value is not None and p.value.get(_NONCE) == nonce and _asks(p.value, asked)]
    all_sure = True
    for piece in own:
        value = check_piece(piece)
        _check_end(value, nonce)
        _check_keys(value, asked, value.values(), asked)
        all_sure = all_sure and _is_sure(value, asked)
    _check_surroundings(reply, text, found, own, asked, sure=all_sure)
    return [piece.value for piece in own if piece.value is not None]


def sealed_list(
    reply: str, text: str, *, nonce: str, asked: frozenset[str], ids: Sequence[str]
) -> list[list[Mapping[str, Any]]]:
    """Return the lists of sealed verdicts on *ids* in *text*, in order; none, if it has none."""
    # A list is `Ambiguous` if any entry lacks the nonce: one that a candidate began takes its value from the one it cut
    # short.
    keys = frozenset({*asked, *LISTS})
    found = pieces(text, strict=True)
    own: list[Piece] = []
    lists: list[list[Mapping[str, Any]]] = []
    all_sure = True
    for piece in found:
        value = piece.value or {}
        entries = next((value[key] for key in LISTS if key in value), None)
        if not isinstance(entries, list):
            continue
        if not any(isinstance(entry, Mapping) and entry.get(_NONCE) == nonce for entry in entries):
            continue
        for entry in entries:
            if not isinstance(entry, Mapping) or not entry:
                raise Ambiguous('expected one object for each criterion in "verdicts"')
            _check_end(entry, nonce)
            _check_keys(entry, asked, entry.values(), keys | {"id"})
        _check_keys(check_piece(piece), keys, [item for key, item in value.items() if key not in LISTS], keys)
        if len(value.keys() & keys) != 1 or value.get(_NONCE, nonce) != nonce:
            raise Ambiguous('expected the keys of a verdict within the list of "verdicts", got some beside it')
        all_sure = all_sure and _is_complete(entries, ids, asked)
        own.append(piece)
        lists.append(entries)
    _check_surroundings(reply, text, found, own, keys, sure=all_sure)
    return lists


def after_first_thought(reply: str) -> str:
    """Return *reply* without the thought that it begins with, if it does."""
    thought = _LEADING_THOUGHT.match(reply)
    return reply[thought.end() :] if thought else reply


# -- rules -----------------------------------------------------------------------------------------------


def _check_end(value: Mapping[str, Any], nonce: str) -> None:
    if list(value.items())[-1] != (_NONCE, nonce):
        raise Ambiguous('expected the "nonce" of this request as the last key of each verdict')


def _check_keys(
    value: Mapping[str, Any], asked: frozenset[str], within: Iterable[object], deeper: AbstractSet[str]
) -> None:
    """Refuse `Verdict` beside `verdict`, since it may be the judge's own; and keys of *deeper* in objects *within*."""
    if any(key not in asked and _plain(key) in asked for key in value):
        raise Ambiguous("expected the keys of a verdict as they were asked for, got one that is written otherwise")
    if any(_asks(part, {*deeper, _NONCE}) for item in within for part in objects_in(item)):
        raise Ambiguous("expected a flat verdict, got an object within it that has a key of a verdict")


def _is_sure(value: Mapping[str, Any], asked: frozenset[str]) -> bool:
    """True if the asked keys come right before the nonce and no value of theirs is a text."""
    keys = list(value)[:-1]
    while keys and keys[-1] in asked and not isinstance(value[keys[-1]], str | list):
        keys.pop()
    return asked.isdisjoint(keys)


def _is_complete(entries: Sequence[Mapping[str, Any]], ids: Sequence[str], asked: frozenset[str]) -> bool:
    """True if there is one sure entry for each of *ids*: then each nonce of the reply ends one, and none is hidden."""
    given = [str(entry["id"]).strip() for entry in entries if next(iter(entry)) == "id"]
    return sorted(given) == sorted(ids) and all(_is_sure(entry, asked) for entry in entries)


def _check_surroundings(
    reply: str, text: str, found: Sequence[Piece], own: Sequence[Piece], asked: frozenset[str], *, sure: bool
) -> None:
    if not own:
        return
    if not sure:
        # What a candidate says may hold the end of a thought, to hide what the judge wrote before it.
        text = after_first_thought(reply)
        found = pieces(text, strict=True)
    sources = {piece.source for piece in own}
    others = [piece for piece in found if piece.source not in sources]
    if not sure and any(_asks(part, asked) for piece in others for part in objects_in(piece.value)):
        raise Ambiguous("expected one verdict, got one and an object that has a key of another")
    pattern = _key_pattern(asked)
    broken = [piece.source for piece in others if piece.value is None or piece.end is None]
    if any(pattern.search(_unescape(part)) for part in [*broken, *_between(text, found)]):
        raise Ambiguous("expected one JSON object, got remains of another beside it")
    depth = 0
    for brace in (brace for part in _between(text, found) for brace in _BRACE.findall(part)):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            raise Ambiguous("expected one JSON object, got the end of another beside it")


def _asks(value: Mapping[str, Any], asked: AbstractSet[str]) -> bool:
    """True if *value* has a key of *asked*, however it is written."""
    return any(key in asked or _plain(key) in asked for key in value)


def _plain(key: str) -> str:
    """Return *key* as all ways to write it are: in any case, with anything around its words."""
    return key.casefold().strip(_AROUND)


def _between(text: str, found: Iterable[Piece]) -> Iterator[str]:
    """Yield what is left of *text* without the objects in it."""
    at = 0
    for piece in found:
        yield text[at : piece.start]
        at = len(text) if piece.end is None else piece.end
    yield text[at:]


@lru_cache(maxsize=64)
def _key_pattern(names: frozenset[str]) -> re.Pattern[str]:
    """Return the pattern of a key in quotation marks that are not escaped, or of a bare one."""
    any_name = "|".join(map(re.escape, sorted(names)))
    around = rf"[{re.escape(_AROUND)}]*"
    quoted = rf"""(?<!\\)["'“‘”’]{around}(?:{any_name}){around}["'”’“‘]"""
    return re.compile(rf"(?:{quoted}|[{{,]\s*(?:{any_name}))\s*:", re.IGNORECASE)


def _unescape(source: str) -> str:
    """Return *source* with the letters that are written as `\\u0076`; an escaped quotation mark stays one."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[0], source)
