"""Who judges: AgentV's provider ids, as models. No address, key or header is taken from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rubric.errors import DefinitionError
from rubric.formats.agentv.scopes import Scope
from rubric.formats.documents import Path
from rubric.formats.providers import litellm_name
from rubric.judges import Judge
from rubric.showing import shorten

__all__ = ["read_judge"]

_KEYS = ("provider", "target", "model")
_PARAMETERS = ("temperature", "max_tokens", "seed")


def read_judge(entry: Mapping[Any, Any], scope: Scope, path: Path) -> Judge | None:
    """
    Return whom *entry* (a grader, or options) names as its judge; None where it names nobody that is known here.

    A name may be one of a target that is defined elsewhere: that is a warning.
    """
    named = [key for key in _KEYS if entry.get(key) is not None and not (key == "target" and scope.is_current)]
    if not named:
        if entry.get("temperature") is not None:
            scope.once((*path, "temperature"), "`temperature` is not used: the grader names no model")
        return None
    key = named[-1] if "model" in named else named[0]
    value = entry[key]
    config = value.get("config") if isinstance(value, Mapping) else {}
    name = value.get("id") if isinstance(value, Mapping) else value
    if not isinstance(name, str) or not name:
        scope.error((*path, key), f"expected the id of a provider, such as openai:gpt-5; got {shorten(repr(value))}")
        return None
    return _judge(name, {**(config or {}), **entry}, scope, (*path, key))


def _judge(name: str, settings: Mapping[Any, Any], scope: Scope, path: Path) -> Judge | None:
    given = {key: settings[key] for key in _PARAMETERS if settings.get(key) is not None}
    try:
        return Judge(litellm_name(scope.fill(name, path)), **given)
    except DefinitionError as problem:
        if problem.field in given:
            scope.error(path, problem)
        else:
            message = f"no model is known as {shorten(name, 60)!r}: the judge of the run takes its place"
            scope.warn(path, message)
        return None
