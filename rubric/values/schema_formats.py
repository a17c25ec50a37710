"""
The formats of JSON Schema, such as `date` and `email`, as promptfoo's validator (ajv-formats) has them, by their RFCs.

A format that is not here is an annotation, as the specification has it: nothing is checked.
"""

from __future__ import annotations

import re
from datetime import date
from functools import cache
from ipaddress import ip_address

_DAY = r"(\d{4}-\d\d-\d\d)"
_TIME = r"(?:(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d|23:59:60)(?:\.\d+)?"
_ZONE = r"(?:z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)"
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_MAILBOX = r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+"
_HOST, _NUMBERS = rf"(?:{_LABEL}\.)+[a-z]{{2,}}", r"(?:\d{1,3}\.){3}\d{1,3}"
_ADDRESS = r"(?:[\w.~:/?\[\]@!$&'()*+,;=-]|%[0-9a-f]{2})*"  # RFC 3986
_SLOT = r"[\w.%]+(?::\d{1,4}|\*)?"  # of a template, RFC 6570
_POINTER = r"(?:/(?:[^~/]|~[01])*)*"

_TEXTS = {
    "date": _DAY,
    "time": rf"{_TIME}{_ZONE}",
    "iso-time": rf"{_TIME}{_ZONE}?",
    "date-time": rf"{_DAY}[t\s]{_TIME}{_ZONE}",
    "iso-date-time": rf"{_DAY}[t\s]{_TIME}{_ZONE}?",
    "duration": r"P(?=.)(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?=\d)(?:\d+H)?(?:\d+M)?(?:\d+S)?)?)",
    "uuid": r"(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    "email": rf"{_MAILBOX}(?:\.{_MAILBOX})*@(?:{_LABEL}\.)+{_LABEL}",
    "hostname": rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*\.?",
    "ipv4": r"[\d.]+",
    "ipv6": r"[\da-f:.]*:[\da-f:.]*",
    "uri": rf"[a-z][a-z0-9+.-]*:{_ADDRESS}(?:#{_ADDRESS})?",
    "uri-reference": rf"{_ADDRESS}(?:#{_ADDRESS})?",
    "uri-template": rf"(?:[^\x00-\x20\"'<>%\\^`{{|}}]|%[0-9a-f]{{2}}|\{{[+#./;?&=,!@|]?{_SLOT}(?:,{_SLOT})*\}})*",
    "url": rf"(?:https?|ftp)://(?:[^\s/@]*@)?(?:{_HOST}|{_NUMBERS})(?::\d{{2,5}})?(?:[/?#]\S*)?",
    "json-pointer": _POINTER,
    "json-pointer-uri-fragment": rf"#{_POINTER}",
    "relative-json-pointer": rf"(?:0|[1-9]\d*)(?:#|{_POINTER})",
    "byte": r"(?:[a-z0-9+/]{4})*(?:[a-z0-9+/]{2}==|[a-z0-9+/]{3}=)?",
    "regex": r"[\s\S]{0,1000}",
}
_BITS = {"int32": 31, "int64": 63}
FORMATS = frozenset({*_TEXTS, *_BITS, "float", "double", "password", "binary"})
"""The names that are known; the last four are taken by any value."""


def fits(name: str, value: object) -> bool:
    """True unless *value* lacks the format *name*; a format of texts asks nothing of numbers, and the other way."""
    if name in _BITS and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value).is_integer() and -(2 ** _BITS[name]) <= value < 2 ** _BITS[name]
    if name not in _TEXTS or not isinstance(value, str):
        return True
    found = _pattern_of(name).fullmatch(value)
    try:
        if found and name == "regex":
            re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", value))
        elif found and (name.startswith("ipv") or found.groups()):
            (date.fromisoformat if found.groups() else ip_address)(found[found.re.groups])
    except (ValueError, re.error, RecursionError, OverflowError):
        return False
    return found is not None


@cache  # `re` keeps 512 patterns, which a suite with other ones pushes out
def _pattern_of(name: str) -> re.Pattern[str]:
    return re.compile(_TEXTS[name], re.ASCII | (re.NOFLAG if name == "duration" else re.IGNORECASE))
