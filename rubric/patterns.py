"""Regular expressions whose search time is linear in the text, so that no rubric file can hang a grader."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rubric.errors import DefinitionError

if TYPE_CHECKING:
    from attrs import Attribute

LONGEST_PATTERN = 1_000
LONGEST_TEXT = 1_000_000
_MOST_REPEATED = 500
"""How many instructions the counts of a pattern may add: a search can take this many steps a character."""

_COUNT = re.compile(r"(?<!\\)\{\d+(?:,\d*)?\}")


def pattern(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but regular expressions in RE2 syntax: no look-around, no back-references, no far counts."""
    check_pattern(attribute.name, value)


def check_pattern(field: str, pattern: object) -> None:
    """Refuse all but regular expressions in RE2 syntax, for *field*."""
    if not isinstance(pattern, str) or not pattern:
        raise DefinitionError(field, f"expected a regular expression, got {pattern!r}")
    if len(pattern) > LONGEST_PATTERN:
        raise DefinitionError(field, f"a pattern has at most {LONGEST_PATTERN} characters, this one {len(pattern)}")
    try:
        _compiled(pattern)
    except ValueError as problem:
        message = (
            f"{pattern!r} is not a pattern that RE2 takes ({problem}); "
            "it has no look-around and no back-references, and its \\w and \\d are ASCII (use \\p{L}, \\p{N})"
        )
        raise DefinitionError(field, message) from None
    if _size(pattern) - _size(_COUNT.sub("", pattern)) > _MOST_REPEATED:
        raise DefinitionError(field, f"{pattern!r} repeats too much; count to 100 or so, or use * and +")


def _size(pattern: str) -> int:
    """Return the size of *pattern* as a program over bytes, where a class of letters is one instruction or few."""
    try:
        return int(_compiled(pattern.encode()).programsize)
    except ValueError:  # without its counts, or over bytes, it is no pattern
        return 0


def matches(pattern: str, text: str) -> bool:
    """Say whether *pattern* is found anywhere in the first million characters of *text*."""
    clean = text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
    return _compiled(pattern).search(clean) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str | bytes) -> Any:
    import re2  # noqa: PLC0415 - a compiled extension that most rubrics never need

    options = re2.Options()
    options.log_errors = False
    if isinstance(pattern, bytes):
        options.encoding = re2.Options.Encoding.LATIN1
    options.never_capture = True  # groups would cost a slower engine, and nobody reads them
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        detail = problem.args[0] if problem.args else ""
        raise ValueError(detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)) from None
