"""
What a call has cost whose tokens are known, by the price list that comes with LiteLLM.

The list is read as a file: to import LiteLLM for it would take seconds, and the memory that the direct path saves.
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

    from rubric.exchanges import Usage
    from rubric.judges import Judge

__all__ = ["priced"]

_LIST = "model_prices_and_context_window_backup.json"
_OPENAI = "openai/"
_BATCHES = "batches"
_LONGEST = 65_536  # bytes of what is listed of one model; some two thousand are usual
_CACHED_FROM = 1_024  # tokens: no shorter prompt is written to a cache


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
    """US dollars a token, each with the thousands of tokens sent above which it holds, dearest last."""

    sent: tuple[tuple[int, float], ...]
    written: tuple[tuple[int, float], ...]
    cached: tuple[tuple[int, float], ...]
    back: tuple[tuple[int, float], ...]

    def cost(self, usage: Usage) -> float:
        size = usage.prompt_tokens
        fresh = _at(self.sent, size)
        if self.written and size >= _CACHED_FROM:
            fresh = max(fresh, _at(self.written, size))
        cached = _at(self.cached, size) if self.cached else fresh
        there = (size - usage.cached_tokens) * fresh + usage.cached_tokens * cached
        return there + usage.completion_tokens * _at(self.back, size)


def _at(steps: tuple[tuple[int, float], ...], size: int) -> float:
    return [price for above, price in steps if size > 1000 * above or not above][-1]


@lru_cache(maxsize=256)
def _listed(model: str, tier: str) -> _Prices | None:
    info = _entry(model)
    if info is None:
        return None
    names = ("input_cost_per_token", "cache_creation_input_token_cost", "cache_read_input_token_cost")
    sent, written, cached, back = (_steps(info, name, tier) for name in (*names, "output_cost_per_token"))
    return _Prices(sent, written, cached, back) if sent and back else None


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


def _steps(info: Mapping[str, object], name: str, tier: str) -> tuple[tuple[int, float], ...]:
    """Return what stands under *name*: of the *tier* where that is listed, else of the ordinary one."""
    above = sorted(int(key.split("_above_")[1].split("k_")[0]) for key in info if key.startswith(f"{name}_above_"))
    found: dict[int, object] = {}
    for thousands in (0, *above):
        key = f"{name}_above_{thousands}k_tokens" if thousands else name
        found[thousands] = info.get(f"{key}_{tier}", info.get(key)) if tier else info.get(key)
    return tuple((thousands, float(price)) for thousands, price in found.items() if isinstance(price, int | float))
