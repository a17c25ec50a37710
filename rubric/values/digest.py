"""Digests: short texts that say whether two rubrics ask and score alike, and whether two judges are asked alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import attrs

from rubric.internals.fields import Shown, default_of, shown_fields
from rubric.internals.frozen_map import Memo

_SHOWN_ALONE = frozenset({"name", "scale", "tags", "metadata", "tests", "reviewed", "provenance"})
"""Fields that neither the judge nor the score depends on."""

_DIGITS = 16


def digest_of(value: object) -> str:
    """Return 16 hexadecimal digits of what *value*, a rubric, asks; fields with their defaults do not count."""
    plain = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def labelled_place(key: str, criterion: str) -> str:
    """Return 8 hexadecimal digits of what people label: a *criterion* of the candidate *key*, or the whole as ""."""
    return hashlib.sha256(repr((key, criterion)).encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _plain(value: Any) -> Any:
    if attrs.has(type(value)):
        given = {f.name: getattr(value, f.name) for f in attrs.fields(type(value)) if f.eq}
        told = {
            f.name: _plain(given[f.name])
            for f in attrs.fields(type(value))
            if f.name in given and f.name not in _SHOWN_ALONE and given[f.name] != default_of(f, value)
        }
        return [type(value).__name__, told]
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(item)] for key, item in value.items()]  # in order: the judge reads it in order
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, AbstractSet):
        return sorted(str(_plain(item)) for item in value)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # a rubric with 1.0 equals one with 1
    if value is None or isinstance(value, str | int | float):
        return value
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"


# -- judges ------------------------------------------------------------------------------------------------


class Digested(Shown):
    """A judge, or several, with a digest."""

    @property
    def digest(self) -> str:
        """
        16 hexadecimal digits of what it is asked with: a judge with another digest may answer differently.

        Keys, addresses and what concerns the transport alone (timeout, retries, threads) do not count.
        """
        return _digest(self)

    def _settings(self) -> Any:
        return [type(self).__name__, {f.name: settings_of(getattr(self, f.name)) for f in shown_fields(self)}]


def settings_of(value: Any) -> Any:
    """Return the *value* of a field of a judge as plain data."""
    if isinstance(value, Digested):
        return value._settings()  # noqa: SLF001 - of this class
    if isinstance(value, tuple):
        return [settings_of(each) for each in value]
    return getattr(value, "__qualname__", value)


def _digest_of(judge: Digested) -> str:
    plain = json.dumps(settings_of(judge), sort_keys=True, default=str)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


# Once for each judge: every result names it.
_digest: Memo[Digested, [], str] = Memo(_digest_of)
