"""
Prompts of a grader's own, as templates for `Rubric.prompt`.

A text that shows one of AgentV's variables replaces the whole prompt; any other text replaces what is to be judged.
The form of the reply, which AgentV sends as a message of its own, is put at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import frozen

from rubric.formats.agentv.scopes import Scope
from rubric.formats.documents import Path
from rubric.formats.includes.including import is_reference, read_text_at
from rubric.showing import shorten

__all__ = ["REPLY", "SLOTS", "Prompt", "read_prompt", "state_prompt"]

SLOTS: dict[str, str] = {
    "input": "input",
    "question": "input",
    "output": "output",
    "answer": "output",
    "candidate_answer": "output",
    "expected_output": "reference",
    "reference_answer": "reference",
    "criteria": "rubric",
    "expected_outcome": "rubric",
    "outcome": "rubric",
    "rubric": "rubric",
    "rubrics": "rubric",
    "rubrics_json": "rubric",
    "file_changes": "file_changes",
    "tool_calls": "tool_calls",
}
"""AgentV's variables, those of generation 1 included, and the slots of `Rubric.prompt` that hold the same."""

REPLY = "\n\n{{ reply }}"
_SLOT = re.compile(r"\{\{\s*([^\W\d]\w*(?:\.\w+)*)\s*\}\}")
_FILE = re.compile(r"[\w./\\ -]*\.(?:md|markdown|txt|prompt|j2|njk|json|ya?ml)", re.IGNORECASE)
_REFERENCE = "expected_output"
_ANSWERS = frozenset({"output", "reference"})


@frozen
class Prompt:
    """
    What a grader's `prompt` says.

    Args:
        text: What is to be judged, where the prompt says just that.
        template: For `Rubric.prompt`; None where the prompt is a mere text.
        variables: Named texts that the template shows.
        program: Whether a program is to write the prompt, which is not supported.
        lost: Whether it could not be read; the error is noted.
    """

    text: str = ""
    template: str | None = None
    variables: Mapping[str, str] = {}
    program: bool = False
    lost: bool = False


def read_prompt(value: Any, scope: Scope, path: Path) -> Prompt:
    """Return what *value* says: a text, a template, or the name of a file with one of these."""
    if value is None:
        return Prompt()
    if isinstance(value, Mapping) and not value.keys().isdisjoint(("command", "script")):
        return Prompt(program=True)
    if _is_chat(value):
        return _translated(json.dumps(value, ensure_ascii=False), scope, path)
    if not isinstance(value, str):
        allowed = "a text, a list of messages, `file://...` or {command: [...]}"
        scope.error(path, f"expected {allowed}; got {shorten(repr(value))}")
        return Prompt(lost=True)
    if is_reference(value) or _FILE.fullmatch(value.strip()):
        return _from_file(value, scope, path)
    return _translated(value, scope, path) if _shows_a_variable(value) else Prompt(scope.fill(value, path).strip())


def _from_file(reference: str, scope: Scope, path: Path) -> Prompt:
    text = read_text_at(scope.fill(reference, path).strip(), scope.loading, scope.notes, path)
    if text is None:
        return Prompt(lost=True)
    shown = {SLOTS.get(match[1]) for match in _SLOT.finditer(text)}
    if shown.isdisjoint(_ANSWERS):
        scope.error(path, "the file shows no answer; put {{ output }} or {{ expected_output }} in it")
        return Prompt(lost=True)
    return _translated(text, scope, path)


def _shows_a_variable(text: str) -> bool:
    return any(match[1] in SLOTS or match[1].startswith("metadata") for match in _SLOT.finditer(text))


def _translated(text: str, scope: Scope, path: Path) -> Prompt:
    variables: dict[str, str] = {}

    def slot(match: re.Match[str]) -> str:
        name = match[1]
        if name in SLOTS:
            return f"{{{{ {SLOTS[name]} }}}}"
        found = scope.look_up(name)
        if found is None:
            scope.warn(path, f"{match[0]} is no variable of a prompt; it is left as it stands")
            found = match[0]
        name = f"vars.{name.removeprefix('vars.')}"
        variables[name] = found
        return f"{{{{ {name} }}}}"

    return Prompt(template=_with_reply(_SLOT.sub(slot, text)), variables=variables)


def _with_reply(template: str) -> str:
    """Return *template*, a text or a JSON list of messages, with the form of the reply at its end."""
    chat = _parsed(template)
    if chat is None:
        return template.rstrip() + REPLY
    return json.dumps([*chat[:-1], {**chat[-1], "content": chat[-1]["content"] + REPLY}], ensure_ascii=False)


def _parsed(template: str) -> list[dict[str, str]] | None:
    if not template.lstrip().startswith("["):
        return None
    try:
        found = json.loads(template)
    except (ValueError, RecursionError):
        return None
    return found if _is_chat(found) else None


def _is_chat(value: object) -> bool:
    """Say whether *value* is a list of messages, each with a text."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(part, Mapping) and isinstance(part.get("content"), str) and "role" in part for part in value)
    )


def state_prompt(template: str) -> str | None:
    """Return *template*, of a rubric, as AgentV's prompt; None where it shows what AgentV's prompts do not."""
    if not template.endswith(REPLY):
        return None
    body = template.removesuffix(REPLY)
    names = {slot: name for name, slot in reversed(SLOTS.items())} | {"rubric": "criteria", "reference": _REFERENCE}

    def variable(match: re.Match[str]) -> str:
        name = match[1].removeprefix("vars.") if match[1].startswith("vars.") else names.get(match[1], "")
        return f"{{{{ {name} }}}}"

    stated = _SLOT.sub(variable, body)
    return stated if "{{  }}" not in stated and _shows_a_variable(stated) and stated == stated.rstrip() else None
