"""
What tells one model from another, so that no answer of the one is served for the other.

A name is enough for a model of a vendor, together with its address, which is kept as a digest. A function is told by
where it is defined, its code, what it closes over and the texts that it has from its module; an object by its class and
those of its attributes that are text. What a function closes over counts as it is when it is first asked, so that one
that keeps a log or a count stays the same. Either may say it itself, with an attribute `identity` that is a text.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from threading import RLock
from types import CodeType
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from weakref import WeakKeyDictionary

import attrs

from rubric.judges import Judge
from rubric.mappings import Memo
from rubric.models.credentials import borrowed
from rubric.secrets import is_secret, names_a_login

__all__ = ["ADDRESSES", "digest", "endpoint_of", "fingerprint", "identity_of"]

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
    return _plain(value) if isinstance(value, str | int | float | None) else str(_plain(value))


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
    return (_plain(partial.args), _plain(partial.keywords))


def _closed_over(function: Any) -> object:
    code, closure = function.__code__, function.__closure__ or ()
    cells = [_content(cell) for name, cell in zip(code.co_freevars, closure, strict=True) if not names_a_login(name)]
    return (_code(code), _plain(function.__defaults__), _plain(function.__kwdefaults__), cells)


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
        return _plain(cell.cell_contents)
    except ValueError:  # it is empty still
        return None


def _code(code: CodeType) -> object:
    constants = [_code(c) if isinstance(c, CodeType) else _plain(c) for c in code.co_consts]
    return (hashlib.sha256(code.co_code).hexdigest(), code.co_names, constants)


def _texts(owner: Any) -> list[tuple[str, str]]:
    names = sorted({*getattr(owner, "__dict__", ()), *getattr(owner, "__slots__", ())})
    found = [(name, getattr(owner, name, None)) for name in names if not names_a_login(name)]
    return [(name, value) for name, value in found if isinstance(value, str)]


def _plain(value: Any) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return sorted((str(key), repr(_plain(item))) for key, item in value.items() if not names_a_login(str(key)))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(_plain(item)) for item in value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, type) or not (callable(value) and hasattr(value, "__qualname__")):
        return (_place(value), () if isinstance(value, type) else _texts(value))
    return identity_of(value)
