"""
The formats of JSON Schema, such as `date` and `email`: what a text (or a number, of `int32`) must be to have one.

They are those of promptfoo's validator (ajv-formats), by the RFCs that JSON Schema names. A format that is not here is
an annotation, as the specification has it: nothing is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any

_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.\d+)?(z|[+-]\d\d(?::?\d\d)?)?", re.IGNORECASE)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_MAILBOX = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_PERIOD = r"(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?"
_CHARACTERS = r"(?:[\w.~:/?\[\]@!$&'()*+,;=-]|%[0-9a-f]{2})*"  # of an address (RFC 3986)
_SLOT = r"[\w.%]+(?::\d{1,4}|\*)?"  # of a template (RFC 6570)
_HOST, _NUMBERS = rf"(?:{_LABEL}\.)+[a-z]{{2,}}", r"(?:\d{1,3}\.){3}\d{1,3}"
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"

_LONGEST = 1_000
"""Characters of a pattern: the texts come from strangers."""

_SHAPES = {
    "uuid": r"(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    "email": rf"{_MAILBOX}(?:\.{_MAILBOX})*@(?:{_LABEL}\.)+{_LABEL}",
    "hostname": rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?",
    "uri": rf"[a-z][a-z0-9+.-]*:{_CHARACTERS}(?:#{_CHARACTERS})?",
    "uri-reference": rf"{_CHARACTERS}(?:#{_CHARACTERS})?",
    "uri-template": rf"(?:[^\x00-\x20\"'<>%\\^`{{|}}]|%[0-9a-f]{{2}}|\{{[+#./;?&=,!@|]?{_SLOT}(?:,{_SLOT})*\}})*",
    "url": rf"(?:https?|ftp)://(?:[^\s/@]*@)?(?:{_HOST}|{_NUMBERS})(?::\d{{2,5}})?(?:[/?#]\S*)?",
    "duration": rf"P(?=.)(?:\d+W|{_PERIOD})",
    "json-pointer": _POINTER,
    "json-pointer-uri-fragment": rf"#{_POINTER}",
    "relative-json-pointer": rf"(?:0|[1-9]\d*)(?:#|{_POINTER})",
    "byte": r"(?:[a-z0-9+/]{4})*(?:[a-z0-9+/]{2}==|[a-z0-9+/]{3}=)?",
}  # fmt: skip


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_time(text: str, *, zone: bool = True) -> bool:
    found = _TIME.fullmatch(text)
    if found is None or (zone and not found[4]):
        return False
    hour, minute, second = (int(found[n]) for n in (1, 2, 3))
    shift = [int(part) for part in re.findall(r"\d\d", found[4] or "")]
    hours, minutes = (*shift, 0, 0)[:2]
    if hours > 23 or minutes > 59:  # noqa: PLR2004
        return False
    # A leap second is the last of a day of UTC, which other zones see at another hour.
    past = (hours * 60 + minutes) * (-1 if "-" in (found[4] or "") else 1)
    is_last = (hour * 60 + minute - past) % 1440 == 1439  # noqa: PLR2004
    return hour < 24 and minute < 60 and second < 60 + is_last  # noqa: PLR2004


def _is_moment(text: str, *, zone: bool = True) -> bool:
    day, _, time = text.replace("t", "T").replace(" ", "T").partition("T")
    return _is_date(day) and _is_time(time, zone=zone)


def _is_address(kind: type[IPv4Address | IPv6Address], text: str) -> bool:
    try:
        kind(text)
    except AddressValueError:
        return False
    return "%" not in text


def _is_pattern(text: str) -> bool:
    try:
        return len(text) <= _LONGEST and bool(re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", text)))
    except (re.error, RecursionError, OverflowError):
        return False


def _shape(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII | (re.NOFLAG if pattern.startswith("P") else re.IGNORECASE))
    return lambda text: compiled.fullmatch(text) is not None


@cache
def _texts() -> dict[str, Callable[[str], bool]]:
    return {
        **{name: _shape(pattern) for name, pattern in _SHAPES.items()},
        "date": _is_date,
        "time": _is_time,
        "date-time": _is_moment,
        "iso-time": lambda text: _is_time(text, zone=False),
        "iso-date-time": lambda text: _is_moment(text, zone=False),
        "ipv4": lambda text: _is_address(IPv4Address, text),
        "ipv6": lambda text: _is_address(IPv6Address, text),
        "regex": _is_pattern,
    }


_WHOLE = {"int32": 31, "int64": 63}
FORMATS = frozenset({
    *_SHAPES, "date", "time", "date-time", "iso-time", "iso-date-time", "ipv4", "ipv6", "regex",
    *_WHOLE, "float", "double", "password", "binary",
})  # fmt: skip
"""The names that are known; the last four are taken by any value."""


@cache
def checker() -> Any:
    """Return the checker of formats for `jsonschema`."""
    from jsonschema import FormatChecker  # noqa: PLC0415 - heavy, and few rubrics need it

    found = FormatChecker(formats=())
    for name, fits in _texts().items():
        found.checks(name)(lambda value, fits=fits: not isinstance(value, str) or fits(value))
    for name, bits in _WHOLE.items():
        found.checks(name)(lambda value, bits=bits: not _is_number(value) or _is_whole(value, bits))
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: float, bits: int) -> bool:
    return value == int(value) and -(2**bits) <= value < 2**bits
