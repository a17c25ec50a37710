"""What must not be shown: keys and tokens, whether we know their values or only their shapes."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from rubric.showing import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["describe", "hide", "redact"]

MASK = "[secret]"
_SHORTEST = 8

_SHAPES = re.compile(
    r"""
      -----BEGIN\ [A-Z\ ]*PRIVATE\ KEY-----.*?(?:-----END\ [A-Z\ ]*PRIVATE\ KEY-----|\Z)
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*                       # a JSON web token
    | \b(?:sk|pk|rk)[-_][\w*.-]{8,}
    | \b(?:gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|gsk_|hf_|AIza|ya29\.)[\w-]{8,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{12,}
    | (?<=://)[^\s/@:]+:[^\s/@]+(?=@)                         # user and password in an address
    | (?i:(?<=bearer\ )|(?<=basic\ )|(?<=api[-_]key=)|(?<=apikey=)|(?<=api-key:\ ))[\w.~+/=-]{8,}
    """,
    re.VERBOSE | re.DOTALL,
)

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


def redact(text: str, secrets: Iterable[str] = (), environ: Mapping[str, str] = os.environ) -> str:
    """Return *text* with *secrets*, secret values of *environ*, and whatever looks like a key, masked."""
    ambient = (value for name, value in environ.items() if _SECRET_NAME.search(name))
    known = {value for value in (*secrets, *ambient) if len(value) >= _SHORTEST}
    for value in sorted(known, key=len, reverse=True):
        text = text.replace(value, MASK)
    return _SHAPES.sub(MASK, text)


def hide(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return *settings* with `***` for the values of those whose names tell that they are secret; headers are."""
    return {name: "***" if _SECRET_NAME.search(name) or "headers" in name else it for name, it in settings.items()}


def describe(error: BaseException) -> str:
    """Return type and text of *error* on one line, redacted."""
    name, text = type(error).__name__, str(error)
    return shorten(redact(f"{name}: {text}" if text else name))
