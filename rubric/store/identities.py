"""
What tells one model from another, so that no answer of the one is served for the other.

A name is enough for a model of a vendor, together with its address, which is kept as a digest. A function is told by
where it is defined, its code and the plain values that it closes over; an object by its class and those of its
attributes that are text. Either may say it itself, with an attribute `identity` that is a text.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Mapping
from types import CodeType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rubric.judges import Judge
from rubric.models.credentials import borrowed

__all__ = ["ADDRESSES", "digest", "endpoint_of", "identity_of", "is_secret"]

_SECRET = re.compile(
    r"(?:^|[-_])(?:keys?|token|secret|passw(?:or)?d|credentials?|auth|authorization|cookie)$", re.IGNORECASE
)
ADDRESSES = ("api_base", "base_url", "base", "api_url", "endpoint")
"""Settings that are addresses, the first of them first: they may hold passwords, and are kept as digests."""

_PLAIN = (str, bytes, int, float, bool, type(None))


def digest(text: str) -> str:
    """Return the SHA-256 of *text*, in 64 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_secret(name: str) -> bool:
    """Say whether a setting called *name* holds a secret: `api_key` and `aws_session_token`, not `stop_token_ids`."""
    return bool(_SECRET.search(name))


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


def _place(model: Any) -> str:
    named = model if hasattr(model, "__qualname__") else type(model)
    return f"{named.__module__}.{named.__qualname__}"


def _inside(model: Any) -> object:
    """Return what *model* is made of, as plain values alone: nothing in it has an address in memory."""
    if isinstance(model, functools.partial):
        return (identity_of(model.func), _plain(model.args), _plain(model.keywords))
    if hasattr(model, "__func__"):
        return (_inside(model.__func__), _texts(model.__self__))
    if hasattr(model, "__code__"):
        cells = [_content(cell) for cell in model.__closure__ or ()]
        return (_code(model.__code__), _plain(model.__defaults__), _plain(model.__kwdefaults__), cells)
    return _texts(model)


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
    found = [(name, getattr(owner, name, None)) for name in names if not is_secret(name)]
    return [(name, value) for name, value in found if isinstance(value, str)]


def _plain(value: Any) -> object:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, Mapping):
        return sorted((str(key), repr(_plain(item))) for key, item in value.items() if not is_secret(str(key)))
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(repr(_plain(item)) for item in value)
    return identity_of(value) if callable(value) and hasattr(value, "__qualname__") else _place(value)
