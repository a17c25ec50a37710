"""What tokens cost and how many a text has, as far as can be known without asking anybody: for plans and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric.models.litellm import library, listed, vendor_of
from rubric.models.offline import OFFLINE

if TYPE_CHECKING:
    from rubric.judges import Judge

__all__ = ["count_tokens", "has_own_tokeniser", "price"]

_OPENAI = ("openai", "azure")
_CHARACTERS_A_TOKEN = 4


def price(judge: Judge, /) -> tuple[float, float] | None:
    """Return what *judge* takes for a token sent and one that comes back, in US dollars; None if that is unknown."""
    if judge.model == OFFLINE:
        return 0.0, 0.0
    return _listed(judge.model) if isinstance(judge.model, str) else None


def _listed(model: str) -> tuple[float, float] | None:
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
    return vendor_of(model)[1] in _OPENAI
