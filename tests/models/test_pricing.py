"""Prices and token counts, without asking anybody."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rubric import grade
from rubric.engine.budget import Budget
from rubric.errors import DefinitionError
from rubric.models.litellm_library import library
from rubric.models.pricing import price, with_cost
from rubric.models.token_counts import count_tokens
from rubric.values.judges import Judge
from rubric.values.requests import Usage
from tests.rows import each_row
from tests.sendables import RECENT
from tests.servers import Server

MODELS = ["openai/gpt-4o-mini", "anthropic/claude-sonnet-5-5", "replicate/meta-llama-3", "cohere/command-r", "nobody"]


def test_a_listed_model_has_a_price() -> None:
    """A model that is listed has a price for either direction."""
    listed = price(Judge("openai/gpt-4o-mini"))
    assert listed is not None
    assert 0 < listed[0] < listed[1]


@pytest.mark.parametrize(
    "model", ["openai/nobody-knows-me", "nobody", "openai/gpt-5.6-mini", "anthropic/claude-nonsense-5", "openai/gpt-0"]
)
def test_an_unlisted_model_has_none(model: str) -> None:
    """The price of an unlisted model is None, not the 0 that LiteLLM makes up for names that look like a vendor's."""
    assert price(Judge(model)) is None
    with pytest.raises(DefinitionError, match="price"):
        Budget(cost=1).check(Judge(model))


@pytest.mark.parametrize(("name", "is_known"), [("gpt-4o-mini", True), ("gpt-5.6-mini", False)])
def test_what_an_unlisted_model_has_cost_is_unknown(name: str, is_known: bool) -> None:
    """Through LiteLLM, too: a reply without a price does not count as free."""
    with Server() as server:
        params = {"api_base": server.at("ok").openai, "api_key": "sk-test"}
        usage = grade("Good morning!", "Is polite", Judge(f"openai/{name}", params=params)).usage
    assert (usage.cost is not None) == is_known


def test_offline_is_free() -> None:
    """The judge without a model costs nothing."""
    assert price(Judge("offline")) == (0.0, 0.0)


@each_row("model", [*MODELS, "offline"])
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


LISTED = ["openai/gpt-4o-mini", "openai/gpt-4.1", "gpt-4o", "openai/o3", "openai/gpt-5.6"]


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM lists other prices")
@each_row("model", LISTED)
@each_row("tier", [None, "flex", "priority"])
def test_what_a_call_has_cost_is_what_litellm_makes_of_it(model: str, tier: str | None) -> None:
    """Of prompts with and without a part from the cache, short and long; short ones are not written to a cache."""
    judge = Judge(model, params={"service_tier": tier} if tier else {}, via="http")
    name = model.removeprefix("openai/")
    for sent, cached in ((500, 0), (900, 128), (300_000, 0), (400_000, 399_000)):
        usage = Usage(1, sent, cached, 300, None)
        details = {"cached_tokens": cached}
        said = {"prompt_tokens": sent, "completion_tokens": 300, "total_tokens": sent + 300}
        there, back = library().cost_per_token(
            model=name,
            custom_llm_provider="openai",
            usage_object=library().Usage(**said, prompt_tokens_details=details),
            service_tier=tier,
        )
        cost = with_cost(judge, usage).cost
        assert cost is not None
        if sent >= 1024 and model == "openai/gpt-5.6":  # it may have been written to the cache, which costs more
            assert (there + back) * 0.999 <= cost <= (there + back) * 1.3
        else:
            assert cost == pytest.approx(there + back)


def test_a_batch_is_half_the_price() -> None:
    """As the list has it."""
    usage = Usage(1, 1000, 0, 100, None)
    judge = Judge("openai/gpt-4o-mini")
    whole, half = with_cost(judge, usage).cost, with_cost(judge, usage, in_batch=True).cost
    assert whole is not None
    assert half == pytest.approx(whole / 2)


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM lists other prices")
def test_a_reply_through_a_gateway_is_priced_whatever_prices_are_listed_beside_the_usual_ones() -> None:
    """Claude's entry has one for what stays cached for an hour; the reply has been paid for, and must not be lost."""
    with Server() as server:
        judge = Judge("vertex_ai/claude-sonnet-4-5", via=server.at("ok").openai, params={"api_key": "sk-test"})
        result = grade("Good morning!", "Is polite", judge)
    assert result.usage.calls == 1
    assert result.usage.cost


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM lists other prices")
def test_a_price_that_is_listed_for_long_prompts_alone_leaves_short_ones_as_they_are() -> None:
    """Gemini's entry has one for what is written to the cache, from 200,000 tokens on."""
    judge = Judge("vertex_ai/gemini-3.1-pro-preview")
    there = with_cost(judge, Usage(1, 2000, 0, 0, None)).cost
    assert there == pytest.approx(2000 * price(judge)[0])  # type: ignore[index]  # it is listed


@pytest.mark.parametrize("model", ["openai/nobody-knows-me", "anthropic/nobody", "claude-sonnet-4-5"])
def test_what_is_not_listed_has_no_cost(model: str) -> None:
    """Nor what is another vendor's under a bare name; and what has been said stays."""
    usage = Usage(1, 1000, 0, 100, None)
    assert with_cost(Judge(model), usage) == usage
    assert with_cost(Judge("openai/gpt-4o-mini"), Usage(1, 0, 0, 0, None, 1)).cost is None
    assert with_cost(Judge("openai/gpt-4o-mini"), Usage(1, 10, 0, 1, 0.5)).cost == 0.5


def test_prices_of_the_direct_path_do_not_load_litellm() -> None:
    """It takes seconds, which is what that path saves."""
    code = """
import sys
from rubric import Judge
from rubric.values.requests import Usage
from rubric.models.pricing import with_cost
assert with_cost(Judge("openai/gpt-4o-mini"), Usage(1, 10, 0, 1, None)).cost
assert "litellm" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
