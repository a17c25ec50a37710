"""
Find the JSON objects in a text.

Only outermost objects count: an object within another one, whole or broken, is not an answer. The standard library
reads strict JSON, and a sealed reply is read no other way. Elsewhere near-JSON (single quotes, Python's constants,
trailing commas) is read by its tokens, and json-repair reads the rest: an object in which it would have to guess a key
or a value is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from attrs import frozen

_MOST_OBJECTS = 1_000
_MOST_KEYS = 200
_MOST_REPAIRS = 20
_LONGEST_REPAIR = 20_000
_DEEPEST = 64

_OPENING = re.compile(r"""\{\s*(?:"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|[“‘][^”’]{0,80}[”’]|\w++)\s*:""", re.DOTALL)
"""A brace and a key: the beginning of an object, and not a brace in prose."""

_MARKS = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}"]', re.DOTALL)
_PYTHON_MARKS = re.compile(r""""(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|[{}"']""", re.DOTALL)


class Ambiguous(Exception):  # noqa: N818 - it says what is wrong, it is caught at once
    """An object that was asked for and has more than one meaning: a key twice, a guess, a cut end."""


@frozen
class Piece:
    """
    An outermost object of a text.

    Args:
        end: Where it ends; None if it has no end and hides all that follows.
        value: Its content; None if it cannot be read.
    """

    start: int
    end: int | None
    source: str
    value: Mapping[str, Any] | None
    is_repaired: bool = False


def pieces(text: str, *, strict: bool) -> list[Piece]:
    """Return the outermost objects of *text*, in order, at most a thousand; *strict*: near-JSON has no content."""
    whole = _strict(text) if text.startswith("{") and text.endswith("}") else None
    if whole and not isinstance(whole, _Doubled) and not any(isinstance(item, dict | list) for item in whole.values()):
        return [Piece(0, len(text), text, whole)]  # flat, as most replies are
    found: list[Piece] = []
    repairs = 0
    for start, end in _spans(text):
        if len(found) == _MOST_OBJECTS:
            raise Ambiguous(f"expected one JSON object, got more than {_MOST_OBJECTS}")
        source = text[start:end]
        if strict:
            value = _strict(source)
            piece = Piece(start, end, source, value if value is None or _is_shallow(value) else None)
        else:
            piece = _piece(source, start, end, repair=repairs < _MOST_REPAIRS)
        repairs += piece.is_repaired
        found.append(piece)
    return found


def find_objects(text: str, accept: Callable[[Mapping[str, Any], str], bool]) -> list[tuple[Mapping[str, Any], str]]:
    """Return the outermost objects in *text* that *accept* takes, each with its source, if each has one meaning."""
    found = [p for p in pieces(text, strict=False) if p.value is not None and accept(p.value, p.source)]
    return [(check_piece(piece), piece.source) for piece in found]


def find_object(text: str, accept: Callable[[Mapping[str, Any], str], bool]) -> Mapping[str, Any] | None:
    """Return the only object in *text* that *accept* takes; None if there is none. Two that differ are `Ambiguous`."""
    values = [value for value, _ in find_objects(text, accept)]
    if any(value != values[0] for value in values):
        raise Ambiguous("expected one JSON object with the keys that were asked for, got several that differ")
    return values[0] if values else None


def check_piece(piece: Piece) -> Mapping[str, Any]:
    """Return the content of *piece*; `Ambiguous` with a key twice, a value that is a guess, or no end."""
    value = piece.value or {}
    if piece.end is None:
        raise Ambiguous("expected a whole JSON object, got one that is cut")
    if any(isinstance(part, _Doubled) for part in objects_in(value)):
        raise Ambiguous("expected each key once, got one of them twice in one JSON object")
    if piece.is_repaired and not _is_faithful(piece.source, value):
        raise Ambiguous("expected JSON, got something near it that can be read in more than one way")
    return value


def object_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each outermost object of *text*."""
    return [(start, end) for start, end in _spans(text) if end is not None]


# -- where ---------------------------------------------------------------------------------------------


def _spans(text: str) -> Iterator[tuple[int, int | None]]:
    """Yield the start and end of each outermost object; one without an end hides all that follows."""
    at: int | None = 0
    python = True
    while at is not None and (opening := _OPENING.search(text, at)):
        start = opening.start()
        at = _end(text, start, _PYTHON_MARKS) if python and opening[0].lstrip("{ \t\r\n").startswith("'") else None
        if at is None:
            python = python and "'" not in opening[0]  # one such failure is enough: each reads the text to its end
            at = _end(text, start, _MARKS)
        yield start, at


def _end(text: str, start: int, marks: re.Pattern[str]) -> int | None:
    """Return the end of the object at *start*: its closing brace, outside of quotes; None if there is none."""
    depth = 0
    for mark in marks.finditer(text, start):
        if mark[0] in ('"', "'"):
            return None
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.end()
    return None


# -- what ----------------------------------------------------------------------------------------------


def _piece(source: str, start: int, end: int | None, *, repair: bool) -> Piece:
    value = _strict(source)
    if value is None:
        value = _by_tokens(source)
    is_repaired = value is None and repair
    if is_repaired and len(source) <= _LONGEST_REPAIR:
        from json_repair import loads  # noqa: PLC0415 - only broken replies pay for it

        with suppress(Exception):  # it raises AssertionError and others on what it does not expect
            guess = loads(source)  # it does not tell a guess from a reading, see `_is_faithful`
            value = guess if isinstance(guess, dict) else None
    return Piece(start, end, source, value if value is None or _is_shallow(value) else None, is_repaired)


class _Doubled(dict[str, Any]):
    """An object with a key that occurs twice."""


def _pair(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Doubled(pairs)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 40 else float(digits)  # noqa: PLR2004 - beyond any score, and slow to read


_DECODER = json.JSONDecoder(object_pairs_hook=_pair, parse_int=_integer, strict=False)


def _strict(piece: str) -> dict[str, Any] | None:
    """Return *piece* read as JSON, with control characters allowed in texts; None if it is not JSON."""
    try:
        value, end = _DECODER.raw_decode(piece)
    except (ValueError, RecursionError):
        return None
    return value if end == len(piece) else None


def _is_shallow(value: object, levels: int = _DEEPEST) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)


def objects_in(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield all objects of *value*: itself, if it is one, and those within."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_in(item)


# -- near-JSON ------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""(?P<double>"(?:[^"\\]++|\\.)*+") | (?P<single>'(?:[^'\\]++|\\.)*+') | (?P<comma>,(?=\s*[}\]]))
    | (?P<other>[{}\[\]:,] | -?\d+(?:\.\d+)?(?:[eE][-+]?\d+)? | \s+) | (?P<word>\w+)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)

_CONSTANTS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false", "null": "null"}
_DOUBLED = {"\\'": "'", '"': '\\"'}
_QUOTES_WITHIN = re.compile(r"""\\'|\\.|\"""", re.DOTALL)


def _by_tokens(source: str) -> dict[str, Any] | None:
    """
    Return *source* as JSON with single quotes, Python's constants or trailing commas; None if it has anything else.

    Comments, triple quotes and texts side by side are left out on purpose: with them, a quoted candidate could hide
    what the judge wrote after it.
    """
    made: list[str] = []
    at = 0
    while at < len(source):
        token = _TOKEN.match(source, at)
        if token is None:
            return None
        at = token.end()
        match token.lastgroup:
            case "single":
                made.append(f'"{_QUOTES_WITHIN.sub(lambda m: _DOUBLED.get(m[0], m[0]), token[0][1:-1])}"')
            case "comma":
                pass
            case "word" if token[0] in _CONSTANTS:
                made.append(_CONSTANTS[token[0]])
            case "word":
                return None
            case _:
                made.append(token[0])
    return _strict("".join(made))


def _is_faithful(piece: str, value: Mapping[str, Any]) -> bool:
    """True if each key is in *piece* as often as in *value*, and each plain value is there in full."""
    given = [(str(key), item) for part in objects_in(value) for key, item in part.items()]
    items: dict[str, list[object]] = {key: [] for key, _ in given}
    for key, item in given:
        items[key].append(item)
    return len(items) <= _MOST_KEYS and all(_has(piece, key, values) for key, values in items.items())


_KEY = r"""(?:["'“”‘’]%(name)s["'“”‘’]|[{,]\s*%(name)s)\s*:\s*"""
_AFTER = r"""\s*(?:[,}\]]|//|\#|(?=["'“\w]+\s*:))"""

_PLAIN = re.compile(
    r"""(?: "(?:[^"\\]++|\\.)*+" | '(?:[^'\\]++|\\.)*+' | [“‘][^”’]*[”’]      # a text
    | [-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)? | [a-zA-Z_]\w* | \d+\s*/\s*\d+ )   # a number, a word, 8/10
    """
    + _AFTER,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


_CLOSING = re.compile(r"""["']\s*[,}]""")


def _has(piece: str, key: str, values: list[object]) -> bool:
    """True if *key* is in *piece* once for each of its *values*, with nothing left over after a plain one."""
    places = [match.end() for match in re.finditer(_KEY % {"name": re.escape(key)}, piece)]
    if len(places) != len(values):
        return False
    for at, value in zip(places, values, strict=True):
        if isinstance(value, dict | list) or _PLAIN.match(piece, at):
            continue
        quoted = isinstance(value, str) and piece.startswith(value, at + 1) and piece[at] in "\"'"
        if not quoted or not _CLOSING.match(piece, at + 1 + len(str(value))):
            return False
    return True
