"""
Assertion types that code decides, such as `contains` and `is-json`: from type and value to a check, and back.

They are promptfoo's, and AgentV has most of them. `assertion_of` reads an assertion that is one text, as in the
`__expected` columns of a CSV file: `contains: hello`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

from attrs import field, frozen
from attrs.converters import optional

from rubric import (
    Candidate,
    Contains,
    ContainsAll,
    ContainsAny,
    DefinitionError,
    EndsWith,
    Equals,
    FitsSchema,
    Holds,
    IsJSON,
    LoadError,
    Matches,
    StartsWith,
)
from rubric.embed import Check, Cursor, FrozenMap, fields, shorten
from rubric.formats.json_values import javascript_number, json_objects
from rubric.formats.keys import keys_of


def as_text(value: Any) -> str:
    """Return *value*, a text or a number, as text; whole numbers have no decimals, as in JavaScript."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return javascript_number(value)
    if not isinstance(value, str) or value == "":
        cured = f'; quote it: "{str(value).lower()}"' if isinstance(value, bool) else ""
        problem = fields.refuse("value", value, "a text that is not empty, or a number")
        raise DefinitionError("value", problem.message + cured)
    return value


def _as_texts(value: Any) -> list[str]:
    if isinstance(value, str):
        value = _split(value)
    if not isinstance(value, list) or not value:
        raise fields.refuse("value", value, "a list of texts, or one text with commas")
    return [as_text(part) for part in value]


_PART = re.compile(r'[\s,]*(?:"((?:[^"\\]|\\.|"")*)"\s*(?=,|\Z)|([^\s",][^,]*))', re.DOTALL)


def _split(text: str) -> list[str]:
    """Return the parts of a *text* with commas, as promptfoo divides it: some in quotes, and none empty."""
    parts, end = [], 0
    while part := _PART.match(text, end):
        quoted, plain = part.groups()
        parts.append(plain.strip() if quoted is None else re.sub(r'\\(["\\])|""', lambda two: two[1] or '"', quoted))
        end = part.end()
    if text[end:].strip(", \t\r\n"):
        raise fields.refuse("value", text, "texts with commas between them, each quote of which is closed")
    return parts


def yaml_of(text: str) -> Any:
    """Return what *text* is as YAML; None where it is none. A mapping has the keys that JSON has."""
    try:
        found = Cursor.parse(text, "value").value
    except LoadError:
        return None
    return {str(key): part for key, part in found.items()} if isinstance(found, dict) else found


def as_schema(value: Any) -> FitsSchema:
    """Return the check by the JSON Schema that *value* is: a mapping, or JSON or YAML as text."""
    if isinstance(value, str):
        value = yaml_of(value)
    if not isinstance(value, Mapping):
        raise fields.refuse("value", value, "a JSON Schema: a mapping, or JSON or YAML as text")
    check = FitsSchema(value)
    for name in check.unknown_formats:
        raise DefinitionError(
            "value", f"{shorten(repr(name), 60)} is not a format of JSON Schema that is known; leave it out"
        )
    return check


def _equals(value: Any) -> Check:
    if value == "":
        return Matches(r"^\s*$")
    if isinstance(value, bool):
        value = "true" if value else "false"
    # Lists and mappings are compared with the JSON that the output is, texts as texts.
    return FitsSchema({"const": value}) if isinstance(value, list | Mapping) else Equals(as_text(value))


class UnsupportedPatternError(Exception):
    """A regular expression of JavaScript that RE2 does not take; the text names it."""


_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|u([0-9A-Fa-f]{4})|c([A-Za-z])|(.))|(\[\^\])", re.DOTALL)


_SPACES = r"\s\v\p{Z}\x{FEFF}"
_OTHERS = (
    r"\x00-\x08\x0e-\x1f!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}"
    r"\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}"
)
_SPACE = re.compile(r"\\([sS])|\\.|(\[)|(\])", re.DOTALL)


def with_spaces(pattern: str) -> str:
    """Return *pattern*, of JavaScript, with RE2's words for `\\s` and `\\S`: a no-break space is a space there."""
    within = False

    def show(found: re.Match[str]) -> str:
        nonlocal within
        letter, opens, closes = found.groups()
        within = bool(opens) or (within and not closes)
        if letter is None:
            return found[0]
        if within:
            return _SPACES if letter == "s" else _OTHERS
        return f"[{_SPACES}]" if letter == "s" else f"[^{_SPACES}]"

    return _SPACE.sub(show, pattern)


def without_spaces(pattern: str) -> str:
    """Return *pattern* as it was before `with_spaces`."""
    found = pattern.replace(f"[{_SPACES}]", r"\s").replace(f"[^{_SPACES}]", r"\S")
    return found.replace(_SPACES, r"\s").replace(_OTHERS, r"\S")


def as_re2(pattern: str) -> str:
    """
    Return *pattern*, of JavaScript, as RE2 writes it: `\\u00A0` is `\\x{00A0}`, and `[^]` is any character.

    Raises:
        UnsupportedPatternError: It is one of JavaScript that has none in RE2, such as a look-behind.
        DefinitionError: It is not a pattern.
    """

    def escape(found: re.Match[str]) -> str:
        braced, plain, control, other, anything = found.groups()
        if anything:
            return r"[\s\S]"
        if control:
            return f"\\x{ord(control) % 32:02x}"
        code = braced or plain
        return f"\\x{{{code}}}" if code else "/" if other == "/" else found[0]

    written = _ESCAPE.sub(escape, pattern)
    try:
        return Matches(written).pattern
    except DefinitionError:
        with suppress(re.error, RecursionError, OverflowError):
            re.compile(re.sub(r"\(\?<(?![=!])", "(?P<", re.sub(r"\\[xpP]\{\w+\}", "x", written)))
            raise UnsupportedPatternError(shorten(pattern, 60)) from None
        raise


DETERMINISTIC: Mapping[str, Callable[[Any], Check]] = {
    "contains": lambda value: Contains(as_text(value)),
    "icontains": lambda value: Contains(as_text(value), ignore_case=True),
    "contains-any": lambda value: ContainsAny(_as_texts(value)),
    "contains-all": lambda value: ContainsAll(_as_texts(value)),
    "icontains-any": lambda value: ContainsAny(_as_texts(value), ignore_case=True),
    "icontains-all": lambda value: ContainsAll(_as_texts(value), ignore_case=True),
    "equals": _equals,
    "regex": lambda value: Matches(as_re2(as_text(value))),
    "starts-with": lambda value: StartsWith(as_text(value)),
    "ends-with": lambda value: EndsWith(as_text(value)),
    # As in promptfoo, a schema of `false` or an empty one asks for no more than JSON.
    "is-json": lambda value: as_schema(value) if value else IsJSON(),
    "contains-json": lambda value: Holds(ContainsJSON(as_schema(value).schema if value else None)),
}
"""The assertion types that code decides, each with the function that makes a check of its value."""


@frozen
class ContainsJSON:
    """A function for `Holds`: the output has a JSON object in it that fits *schema*, if there is one."""

    schema: FrozenMap | None = field(default=None, converter=optional(FrozenMap))

    @property
    def __name__(self) -> str:
        return "contains JSON" if self.schema is None else "contains JSON that fits the schema"

    def __call__(self, candidate: Candidate) -> bool:
        """True if it holds for *candidate*."""
        found = json_objects(candidate.output, yaml_of)
        return any(self._check is None or not self._check.misfit(value) for value in found)

    @cached_property
    def _check(self) -> FitsSchema | None:
        return None if self.schema is None else FitsSchema(self.schema)


KNOWN = keys_of("promptfoo", "types", "known")
"""The assertion types that promptfoo documents, without `not-`."""

_IN_TEXTS = KNOWN - keys_of("promptfoo", "types", "never_short") | keys_of("promptfoo", "types", "traced")
_TYPES = "|".join(sorted(map(re.escape, _IN_TEXTS), key=len, reverse=True))
_SHORT = re.compile(rf"(not-)?({_TYPES})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)
_PREFIXES = {
    **dict.fromkeys(("grade:", "llm-rubric:"), "llm-rubric"),
    **dict.fromkeys(("javascript:", "fn:", "eval:"), "javascript"),
}
_CODE = re.compile(r"file://.*(?:(\.py)(?=:|\Z)|\.[cm]?[jt]s(?=:|\Z))", re.DOTALL)
LISTS = frozenset({"contains-all", "contains-any", "icontains-all", "icontains-any"})


_WITH_THRESHOLD = keys_of("promptfoo", "types", "threshold")
"""The types of which promptfoo reads a threshold in a text."""


def assertion_of(text: str) -> dict[str, Any]:
    """
    Return the assertion that is *text*: `type: value`, `type(threshold): value`, or the text to be equal to.

    As in promptfoo, what follows `grade:` and `llm-rubric:` is not trimmed, and other types than those of
    `_WITH_THRESHOLD` have no threshold; of `similar` it is 0.8 where the text has none, of the others 0.75.
    """
    for prefix, type_ in _PREFIXES.items():
        if text.startswith(prefix):
            return {"type": type_, "value": text[len(prefix) :]}
    if (code := _CODE.match(text)) is not None:
        return {"type": "python" if code[1] else "javascript", "value": text}
    match = _SHORT.fullmatch(text)
    if match is None:
        return {"type": "equals", "value": text}
    negation, kind, threshold, value = match.groups()
    made: dict[str, Any] = {"type": f"{negation or ''}{kind}"}
    if value is not None and value.strip():
        made["value"] = value.strip()
        if kind in LISTS:
            with suppress(DefinitionError):  # of a quote that is not closed, which leaves its case ungraded
                made["value"] = _split(value)
    if kind in _WITH_THRESHOLD:
        made["threshold"] = (0.8 if kind == "similar" else 0.75) if threshold is None else float(threshold)
    return made
