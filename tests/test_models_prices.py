"""Prices and token counts, without asking anybody."""

from __future__ import annotations

import pytest

from rubric.judges import Judge
from rubric.models import count_tokens, price

MODELS = ["openai/gpt-4o-mini", "anthropic/claude-sonnet-5-5", "replicate/meta-llama-3", "cohere/command-r", "nobody"]


def test_a_listed_model_has_a_price() -> None:
    """A model that is listed has a price for either direction."""
    listed = price(Judge("openai/gpt-4o-mini"))
    assert listed is not None
    assert 0 < listed[0] < listed[1]


@pytest.mark.parametrize("model", ["openai/nobody-knows-me", "nobody"])
def test_an_unlisted_model_has_none(model: str) -> None:
    """The price of an unlisted model is None, not 0."""
    assert price(Judge(model)) is None


def test_offline_is_free() -> None:
    """The judge without a model costs nothing."""
    assert price(Judge("offline")) == (0.0, 0.0)


@pytest.mark.parametrize("model", [*MODELS, "offline"])
def test_tokens_are_counted_without_a_download(model: str) -> None:
    """Every model's tokens are counted at home, near enough to a quarter of the characters."""
    assert 50 <= count_tokens(Judge(model), "hello world " * 33) <= 132


def test_special_tokens_are_text() -> None:
    """A text that looks like a tokeniser's own marks is counted like any other."""
    assert count_tokens(Judge("openai/gpt-4o-mini"), "<|endoftext|>") > 0


def test_the_empty_text() -> None:
    """An empty text has no tokens."""
    assert count_tokens(Judge("offline"), "") == 0


def test_a_function_has_no_price_and_its_tokens_are_estimated() -> None:
    """Of a judge of the user's own nothing is known, so nothing is claimed, and LiteLLM is not asked."""

    def judge(_: object) -> str:
        return "yes"

    assert price(Judge(judge)) is None
    assert count_tokens(Judge(judge), "four" * 10) == 10
