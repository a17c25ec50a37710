"""The judge that the environment names, and the keys that LiteLLM would not find."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.errors import NoJudgeError
from rubric.models.api_keys import _OWN_NAMES, _data, borrow_arguments, default_judge, missing_key, vendors
from rubric.models.litellm import LiteLLMModel
from rubric.models.litellm_library import library, vendor_of
from rubric.models.pricing import price
from rubric.models.registry import model_of
from rubric.models.retry import attempt
from rubric.values.judges import Judge
from rubric.values.requests import Failure, Reply
from tests.rows import each_row
from tests.sendables import RECENT, ask_of
from tests.servers import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rubric.values.judges import Model

VENDORS = [*vendors().values()]
DEPLOYMENT = {"AZURE_DEPLOYMENT_NAME": "mine"}


@each_row(
    ("variable", "model"),
    [
        ("OPENAI_API_KEY", "openai/gpt-5.6"),
        ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5-5"),
        ("GEMINI_API_KEY", "gemini/gemini-3.8-flash"),
        ("GOOGLE_API_KEY", "gemini/gemini-3.8-flash"),
        ("PALM_API_KEY", "gemini/gemini-3.8-flash"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "vertex_ai/gemini-3.8-flash"),
        ("VERTEX_PROJECT_ID", "vertex_ai/gemini-3.8-flash"),
        ("VERTEXAI_PROJECT", "vertex_ai/gemini-3.8-flash"),
        ("MISTRAL_API_KEY", "mistral/mistral-large-latest"),
        ("GITHUB_TOKEN", "github/gpt-4.1"),
        ("AZURE_API_KEY", "azure/mine"),
        ("AZURE_OPENAI_API_KEY", "azure/mine"),
    ],
)
def test_one_variable_is_enough(variable: str, model: str) -> None:
    """Each variable names its vendor's model; Azure needs a deployment too."""
    assert default_judge({variable: "secret-value", **DEPLOYMENT}) == Judge(model)


@given(st.lists(st.sampled_from(VENDORS), min_size=1, unique=True))
def test_the_order_of_vendors(given_keys: Sequence[object]) -> None:
    """Of several vendors with a key the first in the table judges, whatever the order of the variables."""
    first = next(vendor for vendor in VENDORS if vendor in given_keys)
    environ = {vendor.keys[0]: "secret" for vendor in VENDORS if vendor in given_keys} | DEPLOYMENT
    assert default_judge(environ).name == first.model_in(environ)


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": ""}, {"AZURE_API_KEY": "secret"}, DEPLOYMENT])
def test_no_judge(environ: dict[str, str]) -> None:
    """Without a key the error names the variables, and the judge that needs none."""
    with pytest.raises(NoJudgeError) as caught:
        default_judge(environ)
    message = str(caught.value)
    assert all(key in message for vendor in VENDORS for key in (*vendor.keys, *vendor.deployments))
    assert "judge='offline'" in message


def test_the_key_is_not_in_the_judge() -> None:
    """A judge from the environment does not hold the key."""
    assert "secret-value" not in repr(default_judge({"GITHUB_TOKEN": "secret-value"}))


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM does not know the models")
@each_row("vendor", [vendor for vendor in VENDORS if not vendor.deployments], ids=str)
def test_the_models_are_known(vendor: object) -> None:
    """LiteLLM places each model with its vendor and knows what it costs."""
    model, provider = vendor.model, vendor.provider  # type: ignore[attr-defined]
    assert vendor_of(model)[1] == provider
    assert price(Judge(model)) is not None


@each_row(
    ("provider", "environ", "expected"),
    [
        ("gemini", {"PALM_API_KEY": "k"}, {"api_key": "k"}),
        ("gemini", {"GEMINI_API_KEY": "own", "PALM_API_KEY": "k"}, {}),
        ("github", {"GITHUB_TOKEN": "k"}, {"api_key": "k"}),
        ("vertex_ai", {"VERTEX_PROJECT_ID": "p"}, {"vertex_project": "p"}),
        ("azure", {"AZURE_OPENAI_API_KEY": "k", "AZURE_OPENAI_ENDPOINT": "e"}, {"api_key": "k", "api_base": "e"}),
        ("openai", {"OPENAI_API_KEY": "k"}, {}),
        ("", {"GITHUB_TOKEN": "k"}, {}),
    ],
)
def test_what_is_borrowed(provider: str, environ: dict[str, str], expected: dict[str, str]) -> None:
    """Only what LiteLLM would not find by itself is handed to it."""
    assert borrow_arguments(provider, {}, environ) == expected


@pytest.mark.parametrize("given", ["api_key", "api_base", "base_url"])
def test_nothing_is_borrowed_for_a_strangers_address(given: str) -> None:
    """A judge with a key or an address of its own gets no ambient key."""
    assert borrow_arguments("github", {given: "x"}, {"GITHUB_TOKEN": "k"}) == {}


def test_a_borrowed_key_reaches_the_vendor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key under a name that LiteLLM does not read is sent with the request."""
    with Server() as server:
        endpoint = server.at("ok")
        monkeypatch.setenv("GITHUB_TOKEN", "ghp_borrowed0123")
        monkeypatch.setenv("GITHUB_API_BASE", endpoint.openai)
        reply = asyncio.run(attempt(LiteLLMModel(), ask_of(Judge("github/gpt-4.1", timeout=30, retries=0))))
    assert isinstance(reply, Reply), reply
    assert endpoint.requests[0].headers["authorization"] == "Bearer ghp_borrowed0123"


@pytest.mark.parametrize(
    "model", ["openai/gpt-4o", "gpt-4o", "anthropic/claude-sonnet-5-5", "groq/llama-3.1-8b-instant"]
)
@pytest.mark.parametrize("of", [model_of, lambda _: LiteLLMModel()], ids=["chosen", "litellm"])
def test_without_a_key_nothing_is_sent_whatever_was_loaded(
    model: str, of: Callable[[Judge], Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after LiteLLM's import, and for names without a vendor: one failure, which names the variable, no retry."""
    library()
    with Server() as server:
        endpoint = server.at("ok")
        for vendor in ("OPENAI", "ANTHROPIC", "GROQ"):
            monkeypatch.delenv(f"{vendor}_API_KEY", raising=False)
            monkeypatch.setenv(f"{vendor}_API_BASE", endpoint.openai)
        judge = Judge(model, timeout=5)
        found = asyncio.run(attempt(of(judge), ask_of(judge)))
    assert isinstance(found, Failure)
    assert (found.kind, found.message) == ("auth", f"no key for {model}: set {missing_key(judge, {})}")
    assert endpoint.requests == []


@pytest.mark.parametrize("name", ["api_key", "openai_key"])
def test_a_key_that_code_gave_litellm_is_a_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one in the environment, the request goes out with the program's own."""
    with Server() as server:
        endpoint = server.at("ok")
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        monkeypatch.setenv("OPENAI_API_BASE", endpoint.openai)
        monkeypatch.setattr(library(), name, "sk-of-the-program")
        judge = Judge("openai/gpt-4o", timeout=30, retries=0)
        reply = asyncio.run(attempt(model_of(judge), ask_of(judge)))
    assert isinstance(reply, Reply), reply
    assert endpoint.requests[0].headers["authorization"] == "Bearer sk-of-the-program"


@each_row("vendor", sorted({*_OWN_NAMES, *_data()["keys"]}))
def test_vendors_that_are_known_without_litellm_are_known_to_it(vendor: str) -> None:
    """The name before the slash is LiteLLM's, and so is the variable, where it names one."""
    judge = Judge(f"{vendor}/some-model")
    assert vendor_of(judge.name) == ("some-model", vendor)
    theirs = library().validate_environment(model=judge.name)["missing_keys"]
    assert {*theirs} <= {*missing_key(judge, {}).split(" or ")}
