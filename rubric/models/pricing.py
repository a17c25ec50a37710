"""
What tokens cost and how many a text has, as far as can be known without asking a vendor: for costs, plans and budgets.

Prices are those of the list that comes with LiteLLM. There are two ways to it:

- The cost of a call whose tokens are known (`with_cost`) takes the list as a file. The direct path needs it after each
  reply, and importing LiteLLM for it would take seconds.
- Estimates (`price`) and upper bounds (`worst_cost`, `dearest`) need LiteLLM in any case, for its tokenisers.

Bounds hold before a request leaves. Tokenisers come for OpenAI's models alone; for other models the count is taken half
as much again, and all that is not ASCII as a token a byte.
"""

from __future__ import annotations

import asyncio
import json
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.models.litellm_library import library, price_entry, ready, vendor_of
from rubric.models.offline import OFFLINE
from rubric.values.clients import listed_name
from rubric.values.judges import Judge

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.values.requests import Ask, Usage


# -- the price list ---------------------------------------------------------------------------------------

_LIST = "model_prices_and_context_window_backup.json"
_BATCHES = "batches"
_LONGEST = 65_536  # bytes of the entry of one model; some two thousand are usual
_CACHED_FROM = 1_024  # tokens: no shorter prompt is written to a cache

Steps = tuple[tuple[int, float], ...]
"""Prices of a token in US dollars, each with the number of tokens sent above which it holds, in ascending order."""


def _steps(entry: Mapping[str, object], name: str, tier: str = "") -> Steps:
    """Return the prices that *entry* has under *name*: of the *tier* if it has them, else the ordinary ones."""
    found: dict[int, float] = {}
    for last in dict.fromkeys(("", f"_{tier}" if tier else "")):
        form = re.compile(rf"{name}(?:_above_(\d+)k_tokens)?{re.escape(last)}")
        for key, value in entry.items():
            if isinstance(value, int | float) and (match := form.fullmatch(key)):
                found[1000 * int(match[1] or 0)] = float(value)
    return tuple(sorted(found.items()))


@lru_cache(maxsize=256)
def entry_of(name: str) -> Mapping[str, object]:
    """Return the entry of a model in the list's file, by its *name* there; empty if it has none."""
    try:
        spec = find_spec("litellm")
        content = (Path(str(spec and spec.origin)).parent / _LIST).read_bytes()
        # Parsing all two megabytes would block the loop.
        match = re.search(rb"%s\s*:\s*(?=\{)" % re.escape(json.dumps(name).encode()), content)
        found = content[match.end() : match.end() + _LONGEST].decode("utf-8", "replace") if match else "{}"
        entry: Mapping[str, object] = json.JSONDecoder().raw_decode(found)[0]
    except (OSError, ValueError):  # another release may keep it elsewhere
        return {}
    return entry


@lru_cache(maxsize=256)
def entry_for(model: str) -> Mapping[str, object]:
    """Return what the list says of *model*; the name there may lack its vendor's."""
    vendor, _, name = model.partition("/")
    if (entry := entry_of(model)) or not name:
        return entry
    found = entry_of(name)
    return found if str(found.get("litellm_provider")).startswith(vendor) else {}


@lru_cache(maxsize=256)
def _prices(model: str, tier: str) -> tuple[Steps, Steps, Steps, Steps] | None:
    """Return the prices of a token sent, written to the cache, served by it, and received; None if not listed."""
    entry = entry_for(model)
    if "/" not in model and entry.get("litellm_provider") != "openai":
        return None
    names = ("input_cost_per_token", "cache_creation_input_token_cost", "cache_read_input_token_cost")
    sent, written, cached, back = (_steps(entry, name, tier) for name in (*names, "output_cost_per_token"))
    return (sent, written, cached, back) if 0 in dict(sent) and 0 in dict(back) else None


# -- the cost of a call -----------------------------------------------------------------------------------


def with_cost(judge: Judge, usage: Usage, *, in_batch: bool = False) -> Usage:
    """
    Return *usage* with its cost, if it has none, its tokens are known, and the model is listed.

    Cached tokens, and those *in_batch*, have prices of their own. If writing to the cache costs more, all other tokens
    of a prompt that is long enough are charged as written.
    """
    if usage.cost is not None or usage.unmetered or not usage.calls:
        return usage
    prices = _prices(model_name(judge), _BATCHES if in_batch else str(judge.params.get("service_tier") or ""))
    if prices is None:
        return usage
    (sent, written, cached, back), size = prices, usage.prompt_tokens
    fresh = _at(sent, size, 0.0)
    if written and size >= _CACHED_FROM:
        fresh = max(fresh, _at(written, size, 0.0))
    served = usage.cached_tokens * _at(cached, size, fresh) if usage.cached_tokens else 0.0
    there = (size - usage.cached_tokens) * fresh + served
    return evolve(usage, cost=there + usage.completion_tokens * _at(back, size, 0.0))


def is_simply_priced(judge: Judge) -> bool:
    """
    True if `with_cost` and LiteLLM agree: the cost depends on tokens sent, cached and received alone, or is unknown.

    A program may have changed LiteLLM's list (`litellm.register_model`); the file does not have that.
    """
    prices, theirs = _prices(judge.name, ""), price(judge)
    if prices is None or theirs is None:
        return prices is None and theirs is None
    sent, written, _, back = prices
    return not written and theirs == (sent[0][1], back[0][1])


def _at(several: Steps, size: int, otherwise: float) -> float:
    """Return the price for *size* tokens sent; *otherwise* if none is listed for so few."""
    return next((price for above, price in reversed(several) if size > above or not above), otherwise)


# -- estimates --------------------------------------------------------------------------------------------

_OPENAI_PROVIDERS = ("openai", "azure")
_CHARACTERS_A_TOKEN = 4


def price(judge: Judge, /) -> tuple[float, float] | None:
    """Return the prices of a token sent and of one received, in US dollars; None if they are unknown."""
    if judge.model == OFFLINE:
        return 0.0, 0.0
    name = model_name(judge)
    entry = price_entry(name) if name else None
    return None if entry is None else (float(entry["input_cost_per_token"]), float(entry["output_cost_per_token"]))


def count_tokens(judge: Judge, text: str, /) -> int:
    """Return about how many tokens *text* has for *judge*, by a tokeniser of LiteLLM's; none is downloaded."""
    if not (model := model_name(judge)):
        return -(-len(text) // _CHARACTERS_A_TOKEN)
    tokeniser = vendor_of(model)[0] if is_exact(model) else "gpt-4o"
    return int(library().token_counter(model=tokeniser, text=text))


def model_name(judge: Judge) -> str:
    """Return the name under which LiteLLM lists the model of *judge*, or of its client; empty if it has none."""
    model = judge.model
    if isinstance(model, str):
        return model if model != OFFLINE else ""
    return listed_name(model if judge.client else getattr(model, "client", model), judge.name)


def is_exact(model: str) -> bool:
    """True if the tokeniser of *model* comes with LiteLLM, so that its tokens are counted exactly."""
    return bool(model) and vendor_of(model)[1] in _OPENAI_PROVIDERS


# -- upper bounds -----------------------------------------------------------------------------------------

_SENT = ("input_cost_per_token", "cache_creation_input_token_cost")
_BACK = ("output_cost_per_token", "output_cost_per_reasoning_token")
_A_REQUEST = 64  # the frame of a chat
_NONCE = 32  # a text of 16 letters and digits, or its pattern
_A_TOOL = 600  # some vendors take a schema as a tool, with a prompt of their own about tools
_BOUNDS = 48  # of keys, which OpenAI is sent
_A_MESSAGE = 8
_AN_IMAGE = 50_000  # the most that is known is gpt-4o-mini's
_LARGE = 50_000  # characters that take some milliseconds

_warm: set[str] = set()
"""Models whose tokeniser is loaded."""


async def most_tokens(ask: Ask) -> tuple[int, int]:
    """Return how many tokens *ask* sends and may receive, at most; long counts run in a thread."""
    model = model_name(ask.judge)
    if not model:
        return _most("", ask)
    await ready()
    parts = [part for message in ask.messages for part in message.parts]
    if model in _warm and sum(map(len, (*parts, *ask.turns))) < _LARGE:
        return _most(model, ask)
    most = await asyncio.to_thread(_most, model, ask)
    _warm.add(model)
    return most


def worst_cost(ask: Ask, more: int = 0, rates: Mapping[str, tuple[float, float]] = FrozenMap()) -> float | None:
    """
    Return the most that *ask*, with *more* tokens, may cost in US dollars; None if unknown. It loads LiteLLM.

    *rates* of a token sent and of one received, by the names of models, go before those that LiteLLM knows.
    """
    sent, back = _most(model_name(ask.judge), ask)
    sent += more
    found = rates.get(ask.judge.name) or dearest(ask.judge, sent)
    return None if found is None else sent * found[0] + back * found[1]


def _most(model: str, ask: Ask) -> tuple[int, int]:
    sent = sum(_bound(model, part) for message in ask.messages for part in message.parts) + max(
        _schema(model, ask.schema), _exact(model, ask.exact)
    )
    sent += sum(_bound(model, turn) + _A_MESSAGE for turn in ask.turns)
    sent += _bound(model, ask.tools) + _A_TOOL if ask.tools else 0
    sent += _A_REQUEST + _A_MESSAGE * len(ask.messages)
    sent += sum(_AN_IMAGE if media.kind == "image" else _AN_IMAGE + len(media.address) for _, media in ask.media)
    return sent, ask.max_tokens * ask.n


@lru_cache(maxsize=64)
def _schema(model: str, schema: FrozenMap) -> int:
    if not schema:
        return 0
    return _bound(model, json.dumps(thaw(schema))) + _BOUNDS + (0 if is_exact(model) else _A_TOOL)


@lru_cache(maxsize=1024)  # one a criterion
def _exact(model: str, schema: str) -> int:
    return _bound(model, json.dumps(json.loads(schema))) + _NONCE if schema else 0  # with the spaces that clients write


@lru_cache(maxsize=64)  # the part that all asks about a candidate share is counted once
def _bound(model: str, text: str) -> int:
    """Return a number of tokens that *text* does not exceed."""
    size = len(text.encode("utf-8", "surrogatepass"))
    counted = count_tokens(Judge(model or OFFLINE), text)
    if not is_exact(model):
        counted += counted // 2 + (size - len(text)) + 1
    return min(counted, size)


def dearest(judge: Judge, sent: int) -> tuple[float, float] | None:
    """
    Return the highest prices of a token sent and of one received, in US dollars; None if they are unknown.

    They are those of a request of *sent* tokens, of its service tier, none of it cached, and all of it written to the
    cache if that costs more. LiteLLM must be imported (see `litellm_library.ready`).
    """
    if judge.model == OFFLINE:
        return 0.0, 0.0
    name = model_name(judge)
    given = None if not name else _highest_prices(name, str(judge.params.get("service_tier") or ""))
    if given is None:
        return None
    there, back = (max(price for above, price in several if sent >= above) for several in given)
    return there, back


@lru_cache(maxsize=256)
def _highest_prices(model: str, tier: str) -> tuple[Steps, Steps] | None:
    """Return all prices that may be charged for a token sent, and for one received; None if nothing is listed."""
    entry = price_entry(model)
    if entry is None:
        return None
    sent, back = (
        tuple(step for name in names for step in (*_steps(entry, name), *_steps(entry, name, tier)))
        for names in (_SENT, _BACK)
    )
    return sent, back
