"""
Fill prompts: Markdown files beside this module, and templates of the user's own.

A slot is `{{ name }}`. Values are put in once and never searched for slots, so no candidate can act as a template.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, cast, get_args

from rubric.errors import DefinitionError
from rubric.internals.fields import suggest
from rubric.internals.text import shorten
from rubric.values.requests import Outgoing, Role

_SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")


@lru_cache
def text(name: str) -> str:
    """Return the prompt file *name*, without the line break at its end."""
    return files("rubric.prompts").joinpath(f"{name}.md").read_text(encoding="utf-8").rstrip("\n")


def fill(template: str, slots: Mapping[str, str]) -> str:
    """Return *template* with each slot replaced by its value; a slot without one is refused."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in slots:
            raise DefinitionError("prompt", f"unknown slot {{{{ {name} }}}}{suggest(name, slots)}")
        return slots[name]

    return _SLOT.sub(value, template)


SLOTS = (
    "candidate", "output", "input", "reference", "context", "conversation", "tool_calls", "file_changes", "guidelines",
    "criterion", "rubric", "reply",
)  # fmt: skip
"""The names of the slots that every template has; a candidate's variables are slots too."""

_OTHER_SLOT = re.compile(
    rf"(?<!\{{)\{{\s*({'|'.join(SLOTS)})\s*\}}(?!\}})|\$\{{?({'|'.join(SLOTS)})\b\}}?|%\(({'|'.join(SLOTS)})\)s"
    rf"|\[\[\s*({'|'.join(SLOTS)})\s*\]\]|<%=?\s*({'|'.join(SLOTS)})\s*%>"
)
"""A slot as other template languages write it: it would be sent as it is."""


@lru_cache(maxsize=256)
def check_slots(template: str) -> None:
    """Refuse a *template* with a slot in another form, such as `{candidate}`: the judge would not be shown it."""
    if found := _OTHER_SLOT.search(template):
        name = next(filter(None, found.groups()))
        raise DefinitionError("prompt", f"{found[0]} would be sent as it is; a slot is written {{{{ {name} }}}}")


@lru_cache(maxsize=256)  # a template serves many candidates
def slots_in(template: str) -> frozenset[str]:
    """Return the names of the slots of *template*."""
    return frozenset(_SLOT.findall(template))


def fill_chat(template: str, slots: Mapping[str, str]) -> tuple[Outgoing, ...]:
    """Return the messages of a user's template: a JSON list, each text filled by itself, or one user message."""
    try:
        messages = json.loads(template) if template.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        messages = None
    if messages is None:
        return (Outgoing("user", (fill(template, slots),)),)
    if not messages:
        raise DefinitionError("prompt", "expected at least one message, got an empty list")
    # All are checked before any is filled.
    chat = [_as_message(index, message) for index, message in enumerate(messages)]
    return tuple(Outgoing(role, (fill(content, slots),)) for role, content in chat)


def _as_message(index: int, message: Any) -> tuple[Role, str]:
    role, content = (message.get("role"), message.get("content")) if isinstance(message, dict) else (None, None)
    if role not in get_args(Role) or not isinstance(content, str):
        allowed = "{'role': 'system' | 'user' | 'assistant', 'content': text}"
        raise DefinitionError(f"prompt[{index}]", f"expected {allowed}, got {shorten(repr(message))}")
    return cast("Role", role), content
