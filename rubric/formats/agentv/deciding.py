"""Graders that code or a program decides; and those that nobody here can decide."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from rubric.checks import Check, Holds, Script, Unsupported
from rubric.errors import DefinitionError
from rubric.formats.agentv.entries import Entry
from rubric.formats.assertions import check_of
from rubric.showing import shorten

__all__ = ["check_for"]

_SCRIPTS = ("script", "code", "code-grader", "code_grader", "code_judge", "code-judge")
_OF_ALL = frozenset(
    {"type", "name", "metric", "id", "description", "weight", "required", "min_score", "negate", "provider", "target"}
)
_OF_SCRIPTS = frozenset({"command", "script", "cwd", "timeout", "config"})


def check_for(entry: Entry) -> Check:
    """
    Return what decides *entry*: code, a program, a function of the caller's, or nobody.

    Raises:
        DefinitionError: A value that the type cannot have.
    """
    if entry.kind in _SCRIPTS:
        return _script(entry)
    if entry.kind == "python" and (function := _function(entry)):
        return function
    value = entry.scope.filled(entry.get("value"), entry.at("value"))
    if entry.kind == "regex" and isinstance(value, str) and entry.get("flags"):
        value = f"{_flags(entry.get('flags'))}{value}"
    check = check_of(entry.kind, value)
    if check is None:
        entry.warn(f"{shorten(repr(entry.kind), 60)} is not supported: cases that have it are ungraded", "type")
        return Unsupported(entry.kind)
    entry.check_keys(_OF_ALL | {"value", "flags"})
    return check


def _flags(flags: Any) -> str:
    """Return the flags of a JavaScript pattern as RE2 writes them; `g`, `u` and `y` make no difference to a test."""
    if not isinstance(flags, str) or set(flags) - set("imsguy"):
        raise DefinitionError("flags", f"expected some of the letters i, m, s; got {shorten(repr(flags))}")
    known = "".join(flag for flag in "ims" if flag in flags)
    return f"(?{known})" if known else ""


def _function(entry: Entry) -> Check | None:
    value = entry.get("value")
    function = entry.scope.loading.functions.get(value) if isinstance(value, str) else None
    return None if function is None else Holds(function)


def _script(entry: Entry) -> Check:
    key = next((key for key in ("command", "script") if key in entry.fields), "command")
    command = _words(entry.scope.filled(entry.get(key), entry.at(key)))
    if not command:
        message = f"expected the program and its arguments, as a list or a text; got {shorten(repr(entry.get(key)))}"
        raise DefinitionError(key, message)
    timeout = entry.get("timeout")
    limits = {} if timeout is None else {"timeout": timeout}
    return Script(command, folder=_folder(entry), config=_config(entry), **limits)


def _config(entry: Entry) -> dict[str, Any]:
    """Return what the program is handed: `config`, and the fields that AgentV passes through."""
    extra = {str(key): value for key, value in entry.fields.items() if key not in _OF_ALL and key not in _OF_SCRIPTS}
    config = entry.get("config")
    if config is None or isinstance(config, Mapping):
        return {**extra, **(config or {})}
    return {**extra, "config": config}


def _words(command: Any) -> list[str]:
    if isinstance(command, str):
        try:
            return shlex.split(command)
        except ValueError as problem:
            raise DefinitionError("command", f"{problem}; write it as a list") from None
    return command if isinstance(command, list) and all(isinstance(word, str) for word in command) else []


def _folder(entry: Entry) -> str:
    """Return where a script runs: for a file that another one includes, told from that file's folder."""
    loading = entry.scope.loading
    folder = "" if entry.get("cwd") is None else entry.scope.text(entry.get("cwd"), entry.at("cwd"))
    if not loading.trail or loading.folder is None:
        return folder
    return str(loading.folder / folder)
