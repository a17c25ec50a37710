"""Counts of tokens and prices from LiteLLM's files are those of LiteLLM itself, and take no import of it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rubric import Judge
from rubric.models import pricing
from rubric.models.litellm_library import library, vendor_of
from rubric.models.token_counts import count_tokens, encoding_of, is_exact
from tests.rows import each_row

TEXT = "The refund – “arrives” on Friday.\n\n  def f(x):\n\treturn {'a': 1}  日本語 🎉 <|endoftext|> " + "x" * 50
_LITELLM = find_spec("litellm")  # to import it takes seconds, in each process that collects the tests
assert _LITELLM is not None
assert _LITELLM.origin is not None
LIST = json.loads(Path(_LITELLM.origin).with_name("model_prices_and_context_window_backup.json").read_text("utf-8"))
CHATS = [name for name, entry in LIST.items() if entry.get("mode") in ("chat", "responses")]
SAMPLE = [name for name in CHATS if LIST[name]["litellm_provider"] in pricing._FROM_FILE][::40] + CHATS[::150]
"""All of them take minutes, since the file is read for each; all were compared with LiteLLM 1.110."""


@each_row(
    "model",
    [
        "openai/gpt-5-mini", "gpt-5-mini", "gpt-4", "openai/gpt-4-turbo", "gpt-3.5-turbo", "azure/gpt-4.1", "azure/eu/gpt-4o",
        "openai/o3", "ft:gpt-4o-mini:acme::x", "ft:gpt-4.1-2025-04-14", "anthropic/claude-sonnet-4-5",
        "claude-sonnet-4-5", "gemini/gemini-2.5-flash", "groq/llama-3.3-70b-versatile", "openrouter/openai/gpt-4o",
        "mistral/mistral-large-latest", "deepseek/deepseek-chat", "ollama/llama3", "somebody/unlisted", "unlisted",
    ],
)  # fmt: skip
@each_row("text", ["", TEXT, 30 * TEXT], ids=["none", "short", "long"])
def test_a_count_is_that_of_litellm(model: str, text: str) -> None:
    """Of each vendor's models, listed or not, short and in several parts."""
    tokeniser = vendor_of(model)[0] if vendor_of(model)[1] in ("openai", "azure") else "gpt-4o"
    assert count_tokens(Judge(model), text) == library().token_counter(model=tokeniser, text=text)


def test_what_has_an_exact_count_is_what_litellm_takes_for_openais() -> None:
    """Of chat models in the list: it is exact by its name, or by its entry where the name has no vendor."""
    expected = {name for name in SAMPLE if vendor_of(name)[1] in ("openai", "azure")}
    assert {name for name in SAMPLE if is_exact(name)} == expected


def test_a_price_from_the_file_is_that_of_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of chat models in the list, many of which the file answers for, in all steps and tiers."""
    theirs = {name: (pricing.price(Judge(name)), *highest(name)) for name in SAMPLE}
    monkeypatch.setattr(pricing, "is_loaded", lambda: False)
    ours = {name: (pricing.price(Judge(name)), *highest(name)) for name in SAMPLE}
    assert ours == theirs
    assert sum(prices[0] is not None for prices in ours.values()) > len(SAMPLE) / 2


def highest(name: str) -> tuple[object, ...]:
    """Return the dearest prices of *name* for short and long prompts, in both tiers."""
    judges = Judge(name), Judge(name, params={"service_tier": "priority"})
    pricing._highest_prices.cache_clear()
    return tuple(pricing.dearest(judge, sent) for judge in judges for sent in (1, 500_000))


def test_a_plan_and_a_budget_import_no_litellm() -> None:
    """
    With listed models of usual vendors, also where a prompt is long: the import would take seconds, in silence.

    Nor does a budget with the price of a model that no list has.
    """
    code = """
import asyncio, sys
from rubric import Budget, Candidate, Judge, Limits, Rubric, plan
from rubric.driving import flow
from rubric.models.windows import refusal
for model in ("openai/gpt-5-mini", "anthropic/claude-sonnet-4-5", "gemini/gemini-2.5-flash"):
    judge = Judge(model, via="http")
    assert plan(["Hello"], Rubric(["It greets"]), judge).cost
    ask = next(flow(Candidate("Hello"), Rubric(["It greets"]), judge))[0]
    for budget in (Budget(tokens=10_000), Budget(cost=1.0), Budget(cost=1.0, prices={model: (1, 2)})):
        budget.check(judge)
        assert asyncio.run(budget.claim(ask)).most.tokens > 100
    assert asyncio.run(refusal(ask, 10)) is not None
for name, via in (("openai/m-a", "http"), ("my-model", "http://127.0.0.1:9/v1"), ("azure/ours", "http")):
    judge = Judge(name, via=via, params={} if via != "http" else {"api_base": "http://127.0.0.1:9/v1"})
    ask = next(flow(Candidate("Hello"), Rubric(["It greets"]), judge))[0]
    budget = Budget(cost=1.0, prices={name: (1, 2)})
    budget.check(judge)
    assert asyncio.run(budget.claim(ask)).most.pico > 0
assert "litellm" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_an_encoding_whose_file_is_not_there_is_left_to_litellm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is downloaded: a LiteLLM that keeps its files elsewhere counts by itself."""
    monkeypatch.setattr(Path, "is_file", lambda _: False)
    assert encoding_of.__wrapped__("openai/gpt-5-mini") is None
