"""The digest of a judge: a short text that says whether two judges are asked alike, and so may answer alike."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from rubric.internals.fields import Shown, shown_fields
from rubric.internals.frozen_map import Memo


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
    return sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Once for each judge: every result names it.
_digest: Memo[Digested, [], str] = Memo(_digest_of)
