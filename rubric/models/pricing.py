"""
What tokens cost, as far as can be known without asking a vendor: for costs, plans and budgets.

Prices are those of the list that comes with LiteLLM. It is read as a file where the file says all, since LiteLLM's
import takes seconds. `token_counts` has how many tokens a text has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rubric.models.litellm_library import is_loaded, price_entry
from rubric.models.offline import OFFLINE
from rubric.values.clients import listed_name
from rubric.values.judges import Judge

if TYPE_CHECKING:
    from rubric.values.requests import Usage


# -- the price list ---------------------------------------------------------------------------------------

_LIST = "model_prices_and_context_window_backup.json"
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


def litellm_folder() -> Path:
    """Return where LiteLLM's files are, without its import."""
    spec = find_spec("litellm")
    return Path(str(spec and spec.origin)).parent


@lru_cache(maxsize=256)
def entry_of(name: str) -> Mapping[str, object]:
    """Return the entry of a model in the list's file, by its *name* there; empty if it has none."""
    try:
        content = (litellm_folder() / _LIST).read_bytes()
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
    prices = _prices(model_name(judge), "batches" if in_batch else str(judge.params.get("service_tier") or ""))
    if prices is None:
        return usage
    (sent, written, cached, back), size = prices, usage.prompt_tokens
    fresh = _at(sent, size, 0.0)
    if written and size >= _CACHED_FROM:
        fresh = max(fresh, _at(written, size, 0.0))
    served = usage.cached_tokens * _at(cached, size, fresh) if usage.cached_tokens else 0.0
    there = (size - usage.cached_tokens) * fresh + served
    cost = there + usage.completion_tokens * _at(back, size, 0.0)
    return type(usage)(usage.calls, size, usage.cached_tokens, usage.completion_tokens, cost)  # `evolve` takes 2 µs


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


_GIVEN: ContextVar[Mapping[str, tuple[float, float]]] = ContextVar("prices that are given")


@contextmanager
def priced(rates: Mapping[str, tuple[float, float]]) -> Iterator[None]:
    """Let *rates*, of a token sent and of one received, stand before the list in estimates, by the names of judges."""
    token = _GIVEN.set({**_GIVEN.get({}), **rates})
    try:
        yield
    finally:
        _GIVEN.reset(token)


def price(judge: Judge, /) -> tuple[float, float] | None:
    """Return the prices of a token sent and of one received, in US dollars; None if they are unknown."""
    given = _GIVEN.get({}).get(judge.name)
    if given or judge.model == OFFLINE:
        return given or (0.0, 0.0)
    name = model_name(judge)
    entry = _priced_entry(name) if name else None
    return None if entry is None else (float(entry["input_cost_per_token"]), float(entry["output_cost_per_token"]))


_FROM_FILE = {"anthropic", "deepseek", "fireworks_ai", "gemini", "groq", "mistral", "openai", "openrouter", "xai"}
"""Vendors of whose chat models LiteLLM says what the file says, names and regions apart."""


def _priced_entry(model: str) -> Mapping[str, Any] | None:
    """Return the entry of *model*, if it has prices; a program may have changed those of a LiteLLM that is loaded."""
    entry = entry_for(model)
    is_plain = entry.get("litellm_provider") in _FROM_FILE and entry.get("mode") in ("chat", "responses")
    return entry if is_plain and not is_loaded() and _prices(model, "") else price_entry(model)


def model_name(judge: Judge) -> str:
    """Return the name under which LiteLLM lists the model of *judge*, or of its client; empty if it has none."""
    model = judge.model
    if isinstance(model, str):
        return model if model != OFFLINE else ""
    return listed_name(model if judge.client else getattr(model, "client", model), judge.name)


# -- upper bounds -----------------------------------------------------------------------------------------

_SENT = ("input_cost_per_token", "cache_creation_input_token_cost")
_BACK = ("output_cost_per_token", "output_cost_per_reasoning_token")


def dearest(judge: Judge, sent: int) -> tuple[float, float] | None:
    """
    Return the highest prices of a token sent and of one received, in US dollars; None if they are unknown.

    They are those of a request of *sent* tokens, of its service tier, none of it cached, and all of it written to the
    cache if that costs more.
    """
    if judge.model == OFFLINE or judge.name in _GIVEN.get({}):
        return price(judge)
    name = model_name(judge)
    given = None if not name else _highest_prices(name, str(judge.params.get("service_tier") or ""))
    if given is None:
        return None
    there, back = (max(price for above, price in several if sent >= above) for several in given)
    return there, back


@lru_cache(maxsize=256)
def _highest_prices(model: str, tier: str) -> tuple[Steps, Steps] | None:
    """Return all prices that may be charged for a token sent, and for one received; None if nothing is listed."""
    entry = _priced_entry(model)
    if entry is None:
        return None
    sent, back = (
        tuple(step for name in names for step in (*_steps(entry, name), *_steps(entry, name, tier)))
        for names in (_SENT, _BACK)
    )
    return sent, back
