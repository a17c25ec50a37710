"""
What a reply is kept under: everything that determines it, and nothing else.

The model and its address, the messages, the schema, the images, the parameters, the longest reply, which vote and which
re-ask it is; also any field that asks and judges may be given later, unless it is named here as one that makes no
difference. Keys, tokens and passwords are left out. The mark and the nonce in the messages are derived from the texts
themselves, so the same ask has the same key in every process and on every day.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from rubric.exchanges import Ask
from rubric.judges import Judge
from rubric.mappings import Memo
from rubric.secrets import is_secret, redact
from rubric.showing import default_of
from rubric.store.identities import ADDRESSES, digest, endpoint_of, identity_of

__all__ = ["key_of", "request_of"]

_SAID_ELSEWHERE = frozenset({"judge", "messages", "retries", "resends"})
_READING = frozenset({"criteria", "nonce", "abstainable", "quoted", "candidate", "run", "many", "flagless"})
"""Fields of an ask that are in its messages already, or that only its reading depends on."""

_HANDLING = frozenset(
    {
        "model",
        "params",
        "max_tokens",  # the ask's own counts
        "timeout",
        "retries",
        "per_call",  # these are in the messages
        "prompt",
        "repairs",
        "sealed",
        "reasoning",
        "speculate",
        "threads",
    }
)
"""Fields of a judge that are in the messages of its asks, or that do not reach the vendor."""

_HIDDEN = frozenset({"headers", "extra_headers", "default_headers", *ADDRESSES})
"""Parameters that may have a key or a password in them; the first address stands in the key as the endpoint."""


def request_of(ask: Ask) -> str:
    """Return all that determines the reply to *ask*, as JSON in one form: what is kept, and what the key is made of."""
    judge = ask.judge
    named = isinstance(judge.model, str)
    said = {
        "model": judge.name,
        "identity": "" if named else identity_of(judge.model),
        "endpoint": endpoint_of(judge) if named else "",
        "messages": [[message.role, message.text] for message in ask.messages],
        **_given(ask, _ASKED),
        **_settings(judge),
    }
    kept = {name: value for name, value in said.items() if value != ""}
    return json.dumps(kept, sort_keys=True, separators=(",", ":"), default=_written)


def key_of(request: str) -> str:
    """Return the key of a *request*: its SHA-256."""
    return digest(request)


def _defaults(kind: type[Ask | Judge], skipped: frozenset[str]) -> tuple[tuple[str, Any], ...]:
    """Return the fields of *kind* that count, with what they are by default: new ones change no key until given."""
    fields = [f for f in attrs.fields(kind) if f.name not in skipped]
    return tuple((f.name, default_of(f, None)) for f in fields)


_ASKED = _defaults(Ask, _SAID_ELSEWHERE | _READING)
_SET = _defaults(Judge, _HANDLING)


def _given(value: Ask | Judge, fields: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
    return {name: it for name, default in fields if (it := getattr(value, name)) != default}


@Memo  # there are many asks to one judge
def _settings(judge: Judge) -> dict[str, Any]:
    """Return what *judge* sets."""
    given = {
        name: digest(str(it))[:16] if name in ADDRESSES else _plain(it) for name, it in _given(judge, _SET).items()
    }
    params = _params(judge.params)
    return given | ({"params": params} if params else {})


def _written(value: Any) -> Any:
    """Return what JSON has no form for as something that it has one for."""
    return dict(value) if isinstance(value, Mapping) else _plain(value)


def _params(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without secrets and the address; of headers and what may be one no more than a digest."""
    address = next((name for name in ADDRESSES if params.get(name)), "")
    shown = _without_secrets({name: value for name, value in params.items() if name != address})
    return {name: _digested(value) if name in _HIDDEN else _plain(value) for name, value in shown.items()}


def _digested(value: Any) -> str:
    return digest(json.dumps(_plain(value), sort_keys=True))[:16]


_SAME_REPLY = re.compile(r"(?:cache|public)_keys?$|cost_per_\w*token$")
"""Names of parameters that change what a reply costs, or how it is found, and not what it says."""


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {str(name): item for name, item in value.items() if not is_secret(str(name))}
        return {name: _without_secrets(item) for name, item in kept.items() if not _SAME_REPLY.search(name)}
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in value]
    # Two texts that differ in what is masked are still two; that of another process's environment is no part of a key.
    safe = redact(value, environ={}) if isinstance(value, str) else value
    return value if safe == value else f"{safe} #{digest(value)[:16]}"


def _plain(value: Any) -> Any:
    """Return *value* as what JSON has one form for; 1.0 is 1, as it is for judges."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=str)
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    return value if isinstance(value, str | int | bool | None) else identity_of(value)
