"""
The most tokens and the most money that one request may take, for what must hold before it leaves.

Tokenisers other than OpenAI's are not to be had, so what is counted for other models is taken to be half as much again,
and all that is not ASCII to be a token a byte.

What tokens cost and how many a text has, as far as can be known without asking anybody: for plans and budgets.
"""

from __future__ import annotations

import asyncio
import json
from functools import lru_cache
from typing import TYPE_CHECKING

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.models.litellm import LiteLLMModel, library, listed, vendor_of
from rubric.models.offline import OFFLINE
from rubric.models.price_list import Steps, steps
from rubric.values.judges import Judge

if TYPE_CHECKING:
    from rubric.values.requests import Ask


_OPENAI_PROVIDERS = ("openai", "azure")
_CHARACTERS_A_TOKEN = 4


def price(judge: Judge, /) -> tuple[float, float] | None:
    """Return what *judge* takes for a token sent and one that comes back, in US dollars; None if that is unknown."""
    if judge.model == OFFLINE:
        return 0.0, 0.0
    return _typical_prices(judge.model) if isinstance(judge.model, str) else None


def _typical_prices(model: str) -> tuple[float, float] | None:
    info = listed(model)
    return None if info is None else (float(info["input_cost_per_token"]), float(info["output_cost_per_token"]))


def count_tokens(judge: Judge, text: str, /) -> int:
    """
    Return about how many tokens *text* has for *judge*: exact for OpenAI's models, near for others.

    Only tokenisers that come with LiteLLM are used; some that it would choose by name are downloads.
    """
    if judge.model == OFFLINE or not isinstance(judge.model, str):
        return -(-len(text) // _CHARACTERS_A_TOKEN)
    tokeniser = vendor_of(judge.model)[0] if has_own_tokeniser(judge.model) else "gpt-4o"
    return int(library().token_counter(model=tokeniser, text=text))


def has_own_tokeniser(model: str) -> bool:
    """Say whether the tokeniser of *model* comes with LiteLLM, so that its tokens are counted exactly."""
    return vendor_of(model)[1] in _OPENAI_PROVIDERS


_SENT = ("input_cost_per_token", "cache_creation_input_token_cost")
_BACK = ("output_cost_per_token", "output_cost_per_reasoning_token")
_A_REQUEST = 64  # what frames a chat
_A_TOOL = 600  # some vendors take a schema as a tool, with a prompt of their own about tools
_A_MESSAGE = 8
_AN_IMAGE = 50_000  # the most that is known is gpt-4o-mini's
_LARGE = 50_000  # characters that take some milliseconds

_warm: set[str] = set()
"""Models whose tokeniser is loaded."""


async def most_tokens(ask: Ask) -> tuple[int, int]:
    """Return how many tokens *ask* sends and may bring back, at most; the loop is not held up."""
    model = ask.judge.model
    if not isinstance(model, str) or model == OFFLINE:
        return _most("", ask)
    await LiteLLMModel().ready()
    if model in _warm and sum(len(part) for message in ask.messages for part in message.parts) < _LARGE:
        return _most(model, ask)
    most = await asyncio.to_thread(_most, model, ask)
    _warm.add(model)
    return most


def worst_cost(ask: Ask) -> float | None:
    """
    Return the most that *ask* may cost in US dollars, with the longest reply; None if the price is unknown.

    It loads LiteLLM, and may take a while over a long text.
    """
    model = ask.judge.model
    sent, back = _most(model if isinstance(model, str) and model != OFFLINE else "", ask)
    rates = dearest(ask.judge, sent)
    return None if rates is None else sent * rates[0] + back * rates[1]


def _most(model: str, ask: Ask) -> tuple[int, int]:
    sent = sum(_bound(model, part) for message in ask.messages for part in message.parts) + _schema(model, ask.schema)
    sent += _A_REQUEST + _A_MESSAGE * len(ask.messages) + _AN_IMAGE * len(ask.images)
    return sent, ask.max_tokens * ask.n


@lru_cache(maxsize=64)
def _schema(model: str, schema: FrozenMap) -> int:
    if not schema:
        return 0
    return _bound(model, json.dumps(thaw(schema))) + (0 if _is_exact(model) else _A_TOOL)


@lru_cache(maxsize=64)  # what asks about one candidate share is counted once
def _bound(model: str, text: str) -> int:
    """Return a number of tokens that *text* does not exceed."""
    size = len(text.encode("utf-8", "surrogatepass"))
    counted = count_tokens(Judge(model or OFFLINE), text)
    if not _is_exact(model):
        counted += counted // 2 + (size - len(text)) + 1
    return min(counted, size)


def _is_exact(model: str) -> bool:
    return bool(model) and has_own_tokeniser(model)


def dearest(judge: Judge, sent: int) -> tuple[float, float] | None:
    """
    Return the most that *judge* takes for a token sent and one that comes back, in US dollars; None if that is unknown.

    It is the price of a request of so many tokens *sent*, of its service tier, none of it cached and all written to the
    cache where that costs more. LiteLLM must be there (see `LiteLLMModel.ready`).
    """
    if judge.model == OFFLINE:
        return 0.0, 0.0
    if not isinstance(judge.model, str):
        return None
    tier = str(judge.params.get("service_tier") or "")
    given = _highest_prices(judge.model, tier)
    return None if given is None else (_highest(given[0], sent), _highest(given[1], sent))


@lru_cache(maxsize=256)
def _highest_prices(model: str, tier: str) -> tuple[Steps, Steps] | None:
    """Return every price that may be taken for a token sent, and for one that comes back; None if nothing is listed."""
    entry = listed(model)
    if entry is None:
        return None
    sent, back = (
        tuple(step for name in names for step in (*steps(entry, name), *steps(entry, name, tier)))
        for names in (_SENT, _BACK)
    )
    return sent, back


def _highest(several: Steps, sent: int) -> float:
    return max(price for above, price in several if sent >= above)
