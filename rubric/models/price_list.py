"""
The price list that comes with LiteLLM: how its entries are read, and what a call has cost whose tokens are known.

For that the list is read as a file: to import LiteLLM for it would take seconds, and the memory that the direct path
saves. What a call may cost at most, and about what it will, is in `pricing`.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.values.judges import Judge
    from rubric.values.requests import Usage

_LIST = "model_prices_and_context_window_backup.json"
_OPENAI = "openai/"
_BATCHES = "batches"
_LONGEST = 65_536  # bytes of what is listed of one model; some two thousand are usual
_CACHED_FROM = 1_024  # tokens: no shorter prompt is written to a cache

Steps = tuple[tuple[int, float], ...]
"""Prices a token in US dollars, each with the number of tokens sent above which it holds, from the lowest number up."""


def steps(entry: Mapping[str, object], name: str, tier: str = "") -> Steps:
    """Return the prices that *entry* has under *name*: of the *tier* where it has them, else the ordinary ones."""
    found: dict[int, float] = {}
    for last in dict.fromkeys(("", f"_{tier}" if tier else "")):
        form = re.compile(rf"{name}(?:_above_(\d+)k_tokens)?{re.escape(last)}")
        for key, value in entry.items():
            if isinstance(value, int | float) and (match := form.fullmatch(key)):
                found[1000 * int(match[1] or 0)] = float(value)
    return tuple(sorted(found.items()))


def priced(judge: Judge, usage: Usage, *, in_batch: bool = False) -> Usage:
    """
    Return *usage* with its cost, where nobody has said it, the tokens are known, and the model is listed.

    Tokens that the vendor's cache has served are taken at its price; where it costs more to write to the cache, all
    others of a prompt that is long enough are taken to have been written.

    Args:
        in_batch: Whether it was asked in a batch, which has prices of its own.
    """
    if usage.cost is not None or usage.unmetered or not usage.calls or not isinstance(judge.model, str):
        return usage
    tier = _BATCHES if in_batch else str(judge.params.get("service_tier") or "")
    listed = _listed(judge.model, tier)
    return usage if listed is None else evolve(usage, cost=listed.cost(usage))


@frozen
class _Prices:
    """What a token costs that is sent, that is written to the cache, that the cache serves, and that comes back."""

    sent: Steps
    written: Steps
    cached: Steps
    back: Steps

    def cost(self, usage: Usage) -> float:
        size = usage.prompt_tokens
        fresh = _at(self.sent, size, 0.0)
        if size >= _CACHED_FROM:
            fresh = max(fresh, _at(self.written, size, 0.0))
        cached = _at(self.cached, size, fresh)
        there = (size - usage.cached_tokens) * fresh + usage.cached_tokens * cached
        return there + usage.completion_tokens * _at(self.back, size, 0.0)


def _at(several: Steps, size: int, otherwise: float) -> float:
    """Return the price that holds for *size* tokens sent; *otherwise* where none is listed for so few."""
    return [otherwise, *(price for above, price in several if size > above or not above)][-1]


@lru_cache(maxsize=256)
def _listed(model: str, tier: str) -> _Prices | None:
    entry = _entry(model)
    if entry is None:
        return None
    names = ("input_cost_per_token", "cache_creation_input_token_cost", "cache_read_input_token_cost")
    sent, written, cached, back = (steps(entry, name, tier) for name in (*names, "output_cost_per_token"))
    return _Prices(sent, written, cached, back) if 0 in dict(sent) and 0 in dict(back) else None


def _entry(model: str) -> Mapping[str, object] | None:
    """Return what is listed of *model*; a name without a vendor's is one of OpenAI's."""
    name = model.removeprefix(_OPENAI)
    try:
        spec = find_spec("litellm")
        found = _found((Path(str(spec and spec.origin)).parent / _LIST).read_bytes(), name)
    except (OSError, ValueError):  # another release may keep it elsewhere
        return None
    return found if "/" in name or found.get("litellm_provider") == "openai" else None


def _found(content: bytes, name: str) -> Mapping[str, object]:
    """Return the object that stands under *name* in *content*; to read all of it would hold up a loop."""
    match = re.search(rb"%s\s*:\s*(?=\{)" % re.escape(json.dumps(name).encode()), content)
    if match is None:
        return {}
    entry = content[match.end() : match.end() + _LONGEST].decode("utf-8", "replace")
    found: Mapping[str, object] = json.JSONDecoder().raw_decode(entry)[0]
    return found
