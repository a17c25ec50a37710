"""Regular expressions whose search time is linear in the text, so that no rubric file can hang a grader."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rubric.errors import DefinitionError

if TYPE_CHECKING:
    from attrs import Attribute

LONGEST_PATTERN = 1_000
LONGEST_TEXT = 1_000_000


def pattern(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but regular expressions in RE2 syntax: no look-around, no back-references, no counts over 1,000."""
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


def matches(pattern: str, text: str) -> bool:
    """Say whether *pattern* is found anywhere in the first million characters of *text*."""
    clean = text[:LONGEST_TEXT].encode("utf-8", "replace").decode("utf-8")
    return _compiled(pattern).search(clean) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    import re2  # noqa: PLC0415 - a compiled extension that most rubrics never need

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        detail = problem.args[0] if problem.args else ""
        raise ValueError(detail.decode("utf-8", "replace") if isinstance(detail, bytes) else str(detail)) from None
