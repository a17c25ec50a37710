"""Texts as they are written: what would be taken for a template, or for the name of a file, is marked as raw."""

from __future__ import annotations

import re

from rubric.formats.includes.including import is_reference
from rubric.formats.templates import is_template

__all__ = ["quoted", "unquoted"]

_RAW = re.compile(r"\{%\s*raw\s*%\}((?:(?!\{%-?\s*endraw).)*)\{%\s*endraw\s*%\}", re.DOTALL)


def quoted(text: str) -> str:
    """Return *text* so that it is read as it is; `unquoted` gives it back."""
    plain = text == text.strip() and not is_template(text) and not is_reference(text) and "${{" not in text
    return text if plain or "endraw" in text else f"{{% raw %}}{text}{{% endraw %}}"


def unquoted(text: str) -> str | None:
    """Return what stands between the marks, where all of *text* does; else None."""
    match = _RAW.fullmatch(text)
    return None if match is None else match[1]
