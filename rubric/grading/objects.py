"""
Finds the JSON objects in a text.

Only outermost objects count: what stands within another object, whole or broken, is no answer. The punctuation of a
broken object is repaired; where a repair would have to guess a key or a value, the object is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MOST_OBJECTS = 1_000
_MOST_KEYS = 200
_MOST_REPAIRS = 20
_LONGEST_REPAIR = 20_000
_DEEPEST = 64

_OPENING = re.compile(r"""\{\s*(?:"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[“‘][^”’]{0,80}[”’]|\w++)\s*:""", re.DOTALL)
"""A brace and a key: how an object begins, and a brace in prose does not."""

_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}"]', re.DOTALL)
_PYTHON_MARKS = re.compile(r""""(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|[{}"']""", re.DOTALL)

Found = tuple[Mapping[str, Any], str]
"""An object, and its source text."""


class Ambiguous(Exception):  # noqa: N818 - it says what is wrong, it is caught at once
    """An object that was asked for and says more than one thing: a key twice, a guess, a cut end."""


def find_objects(text: str, accept: Callable[[Mapping[str, Any], str], bool]) -> list[Found]:
    """
    Return the outermost objects in *text* that *accept* takes, in order.

    Raises:
        Ambiguous: *accept* takes an object with a key twice, with a value that is a guess, or without an end.
    """
    if (whole := _whole(text)) is not None:
        return [(whole, text)] if accept(whole, text) else []
    found: list[Found] = []
    repairs = 0
    for count, (start, end) in enumerate(_pieces(text)):
        if count == _MOST_OBJECTS:
            raise Ambiguous(f"expected one JSON object, got more than {_MOST_OBJECTS}")
        piece = text[start:end]
        value = strict = _strict(piece)
        if strict is None and repairs < _MOST_REPAIRS:
            repairs += 1
            value = _repaired(piece)
        if value is not None and _is_shallow(value) and accept(value, piece):
            _check(value, piece, whole=end is not None, repaired=strict is None)
            found.append((value, piece))
    return found


def _whole(text: str) -> Mapping[str, Any] | None:
    """Return *text* if it is one JSON object, flat and without doubled keys, as most replies are; else None."""
    value = _strict(text) if text.startswith("{") and text.endswith("}") else None
    if not value or isinstance(value, _Doubled):
        return None
    return None if any(isinstance(item, dict | list) for item in value.values()) else value


def object_spans(text: str) -> list[tuple[int, int]]:
    """Return where the outermost objects of *text* start and end."""
    return [(start, end) for start, end in _pieces(text) if end is not None]


# -- where ---------------------------------------------------------------------------------------------


def _pieces(text: str) -> Iterator[tuple[int, int | None]]:
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
    """Return the end of the object at *start*: the brace that closes it, outside of quotes. None: there is none."""
    depth = 0
    for mark in marks.finditer(text, start):
        if mark[0] in ('"', "'"):
            return None
        depth += {"{": 1, "}": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.end()
    return None


# -- what ----------------------------------------------------------------------------------------------


class _Doubled(dict[str, Any]):
    """An object in which a key stands twice."""


def _paired(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else _Doubled(pairs)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < 40 else float(digits)  # noqa: PLR2004 - beyond any score, and slow to read


_DECODER = json.JSONDecoder(object_pairs_hook=_paired, parse_int=_integer, strict=False)


def _strict(piece: str) -> dict[str, Any] | None:
    """Return *piece* as JSON has it, but for control characters in its texts; None if it is no JSON."""
    try:
        value, end = _DECODER.raw_decode(piece)
    except (ValueError, RecursionError):
        return None
    return value if end == len(piece) else None


def _is_shallow(value: object, levels: int = _DEEPEST) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)


def _check(value: Mapping[str, Any], piece: str, *, whole: bool, repaired: bool) -> None:
    if not whole:
        raise Ambiguous("expected a whole JSON object, got one that is cut")
    if any(isinstance(part, _Doubled) for part in _objects_in(value)):
        raise Ambiguous("expected each key once, got one of them twice in one JSON object")
    if repaired and not _is_faithful(piece, value):
        raise Ambiguous("expected JSON, got something near it that can be read in more than one way")


def _objects_in(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects_in(item)


# -- repairs -------------------------------------------------------------------------------------------


def _repaired(piece: str) -> dict[str, Any] | None:
    """Return what json-repair makes of *piece*. It guesses without saying so; see `_is_faithful`."""
    if len(piece) > _LONGEST_REPAIR:
        return None
    from json_repair import loads  # noqa: PLC0415 - only broken replies pay for it

    try:
        value = loads(piece)
    except (ValueError, RecursionError, TypeError, AttributeError, IndexError):
        return None
    return value if isinstance(value, dict) else None


def _is_faithful(piece: str, value: Mapping[str, Any]) -> bool:
    """Say whether each key stands in *piece* as often as in *value*, and each plain value there in full."""
    given = [(str(key), item) for part in _objects_in(value) for key, item in part.items()]
    items: dict[str, list[object]] = {key: [] for key, _ in given}
    for key, item in given:
        items[key].append(item)
    return len(items) <= _MOST_KEYS and all(_stand(piece, key, values) for key, values in items.items())


_KEY = r"""(?:["'“”‘’]%(name)s["'“”‘’]|[{,]\s*%(name)s)\s*:\s*"""
_AFTER = r"""\s*(?:[,}\]]|//|\#|(?=["'“\w]+\s*:))"""
_PLAIN = re.compile(
    r"""(?: "(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+' | [“‘][^”’]*[”’]      # a text
    | [-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)? | [a-zA-Z_]\w* | \d+\s*/\s*\d+ )   # a number, a word, 8/10
    """
    + _AFTER,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


def _stand(piece: str, key: str, values: list[object]) -> bool:
    """Say whether *key* stands in *piece* once for each of its *values*, with nothing left over after a plain one."""
    places = [match.end() for match in re.finditer(_KEY % {"name": re.escape(key)}, piece)]
    if len(places) != len(values):
        return False
    return all(isinstance(v, dict | list) or _is_plain(piece, at, v) for at, v in zip(places, values, strict=True))


def _is_plain(piece: str, at: int, value: object) -> bool:
    if _PLAIN.match(piece, at):
        return True
    quoted = isinstance(value, str) and piece.startswith(value, at + 1) and piece[at] in "\"'"
    return quoted and re.compile(r"""["']\s*[,}]""").match(piece, at + 1 + len(str(value))) is not None
