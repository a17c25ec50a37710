"""What went wrong, in a line that shows no secret; what a secret is, `rubric.secrets` says."""

from __future__ import annotations

from rubric.secrets import MASK, redact
from rubric.showing import shorten

__all__ = ["MASK", "describe", "redact"]


def describe(error: BaseException) -> str:
    """Return type and text of *error* on one line, redacted."""
    name, text = type(error).__name__, str(error)
    return shorten(redact(f"{name}: {text}" if text else name))
