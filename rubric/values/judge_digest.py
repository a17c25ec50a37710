"""The digest of a judge: a short text that says whether two judges are asked alike, and so may answer alike."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from rubric.internals.fields import shown_fields
from rubric.internals.frozen_map import Memo, thaw
from rubric.internals.secrets import masked
from rubric.values.judges import AnyJudge, Cascade, Judge, Jury, Panel


def judge_digest(judge: AnyJudge) -> str:
    """
    Return 16 hexadecimal digits of what *judge* is asked with: another one may answer differently.

    Keys, addresses and what concerns the transport alone (timeout, retries, threads) do not count.
    """
    return _digest(judge)


_TRANSPORT = frozenset({"timeout", "retries", "threads", "prime", "via", "params", "model"})
_ADDRESSES = frozenset({"api_base", "base_url", "api_version"})


def _told(value: Any) -> Any:
    if isinstance(value, Judge):
        params = {name: each for name, each in masked(thaw(value.params)).items() if name not in _ADDRESSES}
        fields = {f.name: _told(getattr(value, f.name)) for f in shown_fields(value) if f.name not in _TRANSPORT}
        return {"model": value.name, **fields, **({"params": params} if params else {})}
    if isinstance(value, Jury | Panel | Cascade):
        return [type(value).__name__, {f.name: _told(getattr(value, f.name)) for f in shown_fields(value)}]
    if isinstance(value, tuple):
        return [_told(each) for each in value]
    return getattr(value, "__qualname__", value)


def _digest_of(judge: AnyJudge) -> str:
    plain = json.dumps(_told(judge), sort_keys=True, default=str)
    return sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


# Once for each judge: every result names it.
_digest: Memo[AnyJudge, [], str] = Memo(_digest_of)
