"""
What tells one model from another, so that no answer of the one is served for the other.

A name is enough for a model of a vendor, together with its address, which is kept as a digest. A function is told by
where it is defined, its code, what it closes over and the texts that it has from its module; an object by its class and
those of its attributes that are text. What a function closes over counts as it is when it is first asked, so that one
that keeps a log or a count stays the same. Either may say it itself, with an attribute `identity` that is a text.

What a reply is kept under: everything that determines it, and nothing else.

The model and its address, the messages, the schema, the images, the parameters, the longest reply, which vote and which
re-ask it is; also any field that asks and judges may be given later, unless it is named here as one that makes no
difference. Keys, tokens and passwords are left out. The mark and the nonce in the messages are derived from the texts
themselves, so the same ask has the same key in every process and on every day.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from threading import RLock
from types import CodeType
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

import attrs

from rubric.internals.fields import default_of
from rubric.internals.frozen_map import Memo
from rubric.internals.secrets import is_secret, names_a_login, redact
from rubric.models.api_keys import borrowed
from rubric.values.judges import Judge
from rubric.values.requests import Ask

ADDRESSES = ("api_base", "base_url", "base", "api_url", "endpoint")
"""Settings that are addresses, the first of them first: they may hold passwords, and are kept as digests."""

_PLAIN = (str, bytes, int, float, bool, type(None))

_first: WeakKeyDictionary[Any, object] = WeakKeyDictionary()
"""What functions close over, as it was when they were first asked."""

_looking = RLock()


def digest(text: str) -> str:
    """Return the SHA-256 of *text*, in 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def endpoint_of(judge: Judge, environ: Mapping[str, str] = os.environ) -> str:
    """
    Return a digest of the address that requests of *judge* go to; empty for the vendor's own.

    The address is the judge's, or else what the environment names for the vendor (`OPENAI_API_BASE` and the like).
    A user or a password in it counts as no part of it.
    """
    address = next((str(judge.params[name]) for name in ADDRESSES if judge.params.get(name)), "")
    address = address or _ambient(judge, environ)
    return digest(_bare(address))[:16] if address else ""


def _ambient(judge: Judge, environ: Mapping[str, str]) -> str:
    vendor, _, model = judge.name.partition("/")
    provider = vendor if model and judge.via == "litellm" else "openai"
    names = [f"{provider.upper()}_{last}" for last in ("BASE_URL", "API_BASE")]
    found = next((environ[name] for name in names if environ.get(name)), "")
    return found or borrowed(provider, judge.params, environ).get("api_base", "")


def _bare(address: str) -> str:
    try:
        parts = urlsplit(address)
    except ValueError:
        return address
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), parts.query, ""))


def identity_of(model: Any) -> str:
    """Return what tells *model*, a function or an object, from others; it holds no secret."""
    told = getattr(model, "identity", None)
    if isinstance(told, str):
        return told
    return f"{_place(model)}#{digest(repr(_inside(model)))[:16]}"


def fingerprint(value: object) -> str:
    """
    Return a short digest of a rubric or a bench, the same in every process: what results were graded with.

    Of judges, addresses and secrets do not count, nor how long they are waited for: each machine may have its own.
    """
    return digest(json.dumps(_parts(value), sort_keys=True))[:16]


def _parts(value: Any) -> object:
    if isinstance(value, Mapping):
        return {str(name): _parts(item) for name, item in value.items() if not _is_local(str(name))}
    if attrs.has(type(value)):
        given = {field.name: getattr(value, field.name) for field in attrs.fields(type(value)) if field.eq}
        return [type(value).__qualname__, _parts(given)]
    if isinstance(value, list | tuple):
        return [_parts(item) for item in value]
    return _plain_identity(value) if isinstance(value, str | int | float | None) else str(_plain_identity(value))


def _is_local(name: str) -> bool:
    return name in ADDRESSES or name in ("timeout", "retries", "threads") or "headers" in name or is_secret(name)


def _place(model: Any) -> str:
    named = model if hasattr(model, "__qualname__") else type(model)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def _inside(model: Any) -> object:
    """Return what *model* is made of, as plain values alone: nothing in it has an address in memory."""
    if isinstance(model, functools.partial):
        return (identity_of(model.func), _at_first(model, _arguments))
    if hasattr(model, "__func__"):
        return (_inside(model.__func__), _texts(model.__self__))
    if hasattr(model, "__code__"):
        return (_at_first(model, _closed_over), _from_module(model))
    return _texts(model)


def _at_first(function: Any, look: Callable[[Any], object]) -> object:
    """Return what a *look* at *function* has shown when it was first taken."""
    with _looking:  # so that no other thread comes upon half of it
        if function not in _first:
            _first[function] = None  # one that closes over itself is told without itself
            _first[function] = look(function)
        return _first[function]


def _arguments(partial: functools.partial[Any]) -> object:
    return (_plain_identity(partial.args), _plain_identity(partial.keywords))


def _closed_over(function: Any) -> object:
    code, closure = function.__code__, function.__closure__ or ()
    cells = [_content(cell) for name, cell in zip(code.co_freevars, closure, strict=True) if not names_a_login(name)]
    return (_code(code), _plain_identity(function.__defaults__), _plain_identity(function.__kwdefaults__), cells)


def _from_module(function: Any) -> list[tuple[str, str]]:
    """Return the texts that *function* finds in its module now: the name of a model, a template."""
    found = {name: function.__globals__.get(name) for name in _names(function.__code__) if not names_a_login(name)}
    return sorted((name, value) for name, value in found.items() if isinstance(value, str) and not _is_dunder(name))


@Memo
def _names(code: CodeType) -> frozenset[str]:
    inner = (_names(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return frozenset(code.co_names).union(*inner)


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _content(cell: Any) -> object:
    try:
        return _plain_identity(cell.cell_contents)
    except ValueError:  # it is empty still
        return None


def _code(code: CodeType) -> object:
    constants = [_code(c) if isinstance(c, CodeType) else _plain_identity(c) for c in code.co_consts]
    return (hashlib.sha256(code.co_code).hexdigest(), code.co_names, constants)


def _texts(owner: Any) -> list[tuple[str, str]]:
    names = sorted({*getattr(owner, "__dict__", ()), *getattr(owner, "__slots__", ())})
    found = [(name, getattr(owner, name, None)) for name in names if not names_a_login(name)]
    return [(name, value) for name, value in found if isinstance(value, str)]


def _plain_identity(value: Any) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return sorted(
            (str(key), repr(_plain_identity(item))) for key, item in value.items() if not names_a_login(str(key))
        )
    if isinstance(value, list | tuple):
        return [_plain_identity(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(_plain_identity(item)) for item in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, type) or not (callable(value) and hasattr(value, "__qualname__")):
        return (_place(value), () if isinstance(value, type) else _texts(value))
    return identity_of(value)


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
        "prime",
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
