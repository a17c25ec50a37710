"""
Prompts of graders: a text, a template with AgentV's variables, a list of messages, or the name of a file with one.

A `prompt` that shows one of AgentV's variables replaces the whole prompt; any other text replaces what is judged. The
form of the reply, which AgentV sends as a message of its own, is put at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from attrs import frozen

from rubric.embed import Cursor, shorten
from rubric.formats.agentv.scope import SLOT, Scope, as_json_list
from rubric.formats.includes import is_code, is_reference, read_text_at
from rubric.formats.keys import table_of

SLOTS = {name: slot for slot, names in table_of("agentv")["slots"].items() for name in names.split()}
"""AgentV's variables, those of generation 1 included, and the slots of `Rubric.prompt` that hold the same."""

REPLY = "\n\n{{ reply }}"
_ANSWER = "\n\n[[ ## answer ## ]]\n{{ output }}"
"""How a prompt that shows no answer shows it: under the heading that AgentV's own prompt has."""

_FILE = re.compile(r"[\w./\\ -]*\.(?:md|markdown|txt|prompt|j2|njk|json|ya?ml)", re.IGNORECASE)
_ANSWERS = frozenset({"output", "reference"})


@frozen
class Prompt:
    """
    What a grader's `prompt` says.

    Args:
        text: What is to be judged, where the prompt says just that.
        template: For `Rubric.prompt`; None where the prompt is a mere text.
        variables: Named texts that the template shows.
        missing: What is lacking to show the prompt, such as its file. The case is ungraded.
        lost: Whether it could not be read; the error is noted.
    """

    text: str = ""
    template: str | None = None
    variables: Mapping[str, str] = {}
    missing: str = ""
    lost: bool = False


def read_prompt(at: Cursor, scope: Scope) -> Prompt:
    """Return what a grader's prompt says: a text, a template, or the name of a file with one of these."""
    value = at.value
    if value is None:
        return Prompt()
    if isinstance(value, Mapping) and not value.keys().isdisjoint(("command", "script")):
        return Prompt(missing="a prompt that a program writes")
    if _is_chat(value):
        return _translate(json.dumps(value, ensure_ascii=False), at, scope)
    if not isinstance(value, str):
        at.refuse("a text, a list of messages, `file://...` or {command: [...]}")
        return Prompt(lost=True)
    if not is_file(value):
        is_template = any(match[1] in SLOTS or match[1].startswith("metadata") for match in SLOT.finditer(value))
        return _translate(value, at, scope) if is_template else Prompt(scope.fill(value, at).strip())
    name = scope.fill(value, at).strip()
    text, missing = prompt_in(name, at)
    if text is None:
        return Prompt(missing=missing, lost=not missing)
    if _ANSWERS.isdisjoint(SLOTS.get(match[1]) for match in SLOT.finditer(text)):
        at.warn("the file shows no answer, and AgentV skips it; here {{ output }} is added to its end")
        text = f"{text.rstrip()}{_ANSWER}"
    return _translate(text, at, scope)


def prompt_in(name: str, at: Cursor) -> tuple[str | None, str]:
    """Return the prompt in the file *name*; None, and what is missing ('' where an error was noted), if it has none."""
    if is_code(name):
        return None, "a prompt that a program writes"
    before = at.notes.failures
    text = read_text_at(name, at, lacking=at.warn)
    lost = at.notes.failures > before
    return text, "" if lost else f"a prompt in a file ({shorten(name, 80)}) that is not within reach"


def is_file(text: str) -> bool:
    """True if *text*, a prompt, is taken for the name of a file."""
    return is_reference(text) or _FILE.fullmatch(text.strip()) is not None


def _translate(text: str, at: Cursor, scope: Scope) -> Prompt:
    """Return the prompt of *text*, a template or a JSON list of messages, with the form of the reply at its end."""
    variables: dict[str, str] = {}

    def slot(match: re.Match[str]) -> str:
        name = match[1]
        if name in SLOTS:
            return f"{{{{ {SLOTS[name]} }}}}"
        found = scope.look_up(name)
        if found is None:
            at.warn(f"{match[0]} is not a variable of a prompt; it is left as it is")
            found = match[0]
        name = f"vars.{name.removeprefix('vars.')}"
        variables[name] = found
        return f"{{{{ {name} }}}}"

    template = SLOT.sub(slot, text)
    chat = as_json_list(template)
    if chat is None or not _is_chat(chat):
        return Prompt(template=template.rstrip() + REPLY, variables=variables)
    chat = [*chat[:-1], {**chat[-1], "content": chat[-1]["content"] + REPLY}]
    return Prompt(template=json.dumps(chat, ensure_ascii=False), variables=variables)


def _is_chat(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(part, Mapping) and isinstance(part.get("content"), str) and "role" in part for part in value)
    )
