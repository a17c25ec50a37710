"""Who grades: a provider of promptfoo's as a `Judge`. A file never says where a judge is, nor how to log in there."""

from __future__ import annotations

import re
from typing import Any

from rubric.errors import DefinitionError
from rubric.formats.promptfoo.parts import Part
from rubric.formats.providers import litellm_name
from rubric.judges import Judge
from rubric.secrets import is_secret

__all__ = ["judge_of"]

_TAKEN = {
    "temperature": "temperature",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "seed": "seed",
}
_OTHER_KINDS = frozenset({"text", "embedding", "classification", "moderation"})
"""Kinds of providers beside each other; those that give no text grade nothing here."""
_PLACE = re.compile(r"header|url|host|endpoint|auth|base", re.IGNORECASE)


def judge_of(part: Part | None) -> Judge | None:
    """Return the judge that *part* names, or None; what no judge can be is noted."""
    if part is None or part.value is None:
        return None
    if isinstance(part.value, str):
        return _judge(part, part.value, {})
    if not isinstance(part.value, dict):
        part.error("expected a provider: a text such as openai:gpt-5, or a mapping with an id")
        return None
    if part.has("id"):
        return _with_config(part)
    if part.has("text"):
        return judge_of(part.at("text"))
    if part.value.keys() <= {"config", "label"} | _OTHER_KINDS:
        part.warn("this provider has no id, so it is not used; write `id: openai:gpt-5`")
        return None
    if len(part.value) == 1:
        return _keyed(part)
    part.error("this provider has no id; write `id: openai:gpt-5`")
    return None


def _keyed(part: Part) -> Judge | None:
    """Read `openai:gpt-5: {config: ...}`."""
    ((id_, inner),) = part.items()
    whole = inner.value if isinstance(inner.value, dict) else {}
    return judge_of(part.holding({**whole, "id": id_}))


def _with_config(part: Part) -> Judge | None:
    id_ = part.at("id").text("the id of a provider")
    settings: dict[str, Any] = {}
    config = part.find("config")
    if config is not None and config.mapping("the configuration of a provider"):
        for name, setting in config.items():
            _take(name, setting, settings)
    part.unknown_keys(frozenset({"id", "config", "label"}), _OTHER_KINDS, {})
    return None if id_ is None else _judge(part, id_, settings)


def _take(name: str, setting: Part, settings: dict[str, Any]) -> None:
    if name in _TAKEN:
        settings[_TAKEN[name]] = setting.value
    elif is_secret(name) or _PLACE.search(name):
        setting.warn(f"{name} is not used: no file says where a judge is, or with which key; use the environment")
    else:
        known = _TAKEN if name.islower() else ()  # maxTokens is another vendor's own word
        what = f"{name} is not used; of a grader's configuration, temperature, max_tokens and seed are"
        setting.notes.unknown(setting.path, what, known)


def _judge(part: Part, id_: str, settings: dict[str, Any]) -> Judge | None:
    try:
        return Judge(litellm_name(id_), **settings)
    except DefinitionError as problem:
        part.error(f"as a grader, {problem}" if problem.field else str(problem))
        return None
