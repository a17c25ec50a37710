"""Names of models, from other systems to LiteLLM and back."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.errors import DefinitionError
from rubric.formats.model_names import LITELLM, VENDORS, embedding_name, litellm_name, provider_id
from rubric.models.litellm_library import library
from tests.places import SHARED
from tests.rows import each_row

NAMES = {
    "openai:gpt-5": "openai/gpt-5",
    "openai:chat:gpt-4.1-mini": "openai/gpt-4.1-mini",
    "openai:responses:gpt-5-codex": "openai/gpt-5-codex",
    "openai:completion:gpt-3.5-turbo-instruct": "openai/gpt-3.5-turbo-instruct",
    "openai:chat:meta/llama-2-70b-chat": "openai/meta/llama-2-70b-chat",
    "OpenAI:gpt-5": "openai/gpt-5",
    "anthropic:messages:claude-sonnet-4-5": "anthropic/claude-sonnet-4-5",
    "anthropic:claude-sonnet-4-5": "anthropic/claude-sonnet-4-5",
    "google:gemini-2.5-pro": "gemini/gemini-2.5-pro",
    "vertex:gemini-2.5-pro": "vertex_ai/gemini-2.5-pro",
    "azure:chat:my-deployment": "azure/my-deployment",
    "azureopenai:chat:my-deployment": "azure/my-deployment",
    "bedrock:us.anthropic.claude-3-5-sonnet-20241022-v2:0": "bedrock/us.anthropic.claude-3-5-sonnet-20241022-v2:0",
    "bedrock:converse:x": "bedrock/x",
    "bedrock:arn:aws:bedrock:us-east-1:1:application-inference-profile/p": (
        "bedrock/arn:aws:bedrock:us-east-1:1:application-inference-profile/p"
    ),
    "mistral:mistral-large-latest": "mistral/mistral-large-latest",
    "ollama:chat:llama3:8b": "ollama_chat/llama3:8b",
    "ollama:llama3:8b": "ollama/llama3:8b",
    "xai:grok-4": "xai/grok-4",
    "groq:llama-3.3-70b": "groq/llama-3.3-70b",
    "openrouter:mistralai/mixtral-8x7b-instruct": "openrouter/mistralai/mixtral-8x7b-instruct",
    "deepseek:deepseek-chat": "deepseek/deepseek-chat",
    "cohere:command-r-plus": "cohere_chat/command-r-plus",
    "togetherai:meta-llama/x": "together_ai/meta-llama/x",
    "fireworks:accounts/a/models/x": "fireworks_ai/accounts/a/models/x",
    "perplexity:sonar": "perplexity/sonar",
    "cerebras:llama3.1-8b": "cerebras/llama3.1-8b",
    "github:gpt-4o": "github/gpt-4o",
    "huggingface:text-generation:x/y": "huggingface/x/y",
    "replicate:meta/llama-2-7b-chat": "replicate/meta/llama-2-7b-chat",
    "databricks:x": "databricks/x",
    "hyperbolic:x/y": "hyperbolic/x/y",
    "lambdalabs:chat:x": "lambda_ai/x",
    "docker:ai/x": "docker_model_runner/ai/x",
    "litellm:gemini/x": "gemini/x",
    "gemini:x": "gemini/x",
    "claude-sonnet-4-5": "anthropic/claude-sonnet-4-5",
    "gpt-5": "openai/gpt-5",
    "o3": "openai/o3",
    "o4-mini": "openai/o4-mini",
    "gemini-2.5-pro": "gemini/gemini-2.5-pro",
    "mistral-large-latest": "mistral/mistral-large-latest",
    "grok-4": "xai/grok-4",
    "openai/gpt-5": "openai/gpt-5",
    "ollama/llama3:8b": "ollama/llama3:8b",
    "bedrock/anthropic.claude-v2:1": "bedrock/anthropic.claude-v2:1",
    "offline": "offline",
}


@each_row(("provider", "model"), NAMES.items())
def test_known_names(provider: str, model: str) -> None:
    """Documented names of models, bare names and LiteLLM's own are understood."""
    assert litellm_name(provider) == model
    assert litellm_name(f" {provider}\n") == model


WRONG = {
    "": "one word",
    "gpt 5": "one word",
    "gpt-5\x00": "one word",
    "x" * 600: "one word",
    "openai": "as in openai:MODEL",
    "openai:": "name the model too",
    "openai:chat": "name the model too",
    "openai:chat:": "name the model too",
    "openai/": "",
    "opnai:gpt-5": "did you mean 'openai'?",
    "opnai/gpt-5": "did you mean 'openai'?",
    "truefoundry:openai-main/gpt-5": "write VENDOR/MODEL",
    "my-model": "put its vendor before it",
    "openai:embedding:text-embedding-3-large": "not a model that answers in text",
    "openai:realtime:gpt-realtime": "not a model that answers in text",
    "anthropic:claude-agent-sdk": "not a model that answers in text",
    "file://provider.py:call_api": "programs and addresses",
    "python:provider.py": "programs and addresses",
    "exec:./run.sh": "programs and addresses",
    "https://example.com/v1": "programs and addresses",
    "echo:x": "programs and addresses",
}


@each_row("provider", WRONG)
def test_wrong_names(provider: str) -> None:
    """What is not a model is told so, with what to write instead."""
    with pytest.raises(DefinitionError) as caught:
        litellm_name(provider)
    assert caught.value.field == "provider"
    assert WRONG[provider] in caught.value.message


@each_row(
    ("provider", "model"),
    [
        ("openai:embedding:text-embedding-3-large", "openai/text-embedding-3-large"),
        ("bedrock:embeddings:amazon.titan-embed-text-v2:0", "bedrock/amazon.titan-embed-text-v2:0"),
        ("voyage:voyage-3", "voyage/voyage-3"),
        ("huggingface:sentence-similarity:x/y", "huggingface/x/y"),
        ("huggingface:feature-extraction:x/y", "huggingface/x/y"),
        ("adaline:openai:embedding:text-embedding-3-large", "openai/text-embedding-3-large"),
        ("openai:gpt-5", None),
    ],
)
def test_models_of_embeddings(provider: str, model: str | None) -> None:
    """promptfoo says the kind of a model after its vendor, and may say a gateway before it."""
    assert embedding_name(provider) == model


@each_row("vendor", sorted(LITELLM))
def test_there_and_back(vendor: str) -> None:
    """A LiteLLM name comes back from what promptfoo calls it."""
    model = f"{vendor}/some-model:1"
    assert litellm_name(provider_id(model)) == model


@each_row(
    ("model", "provider"),
    [
        ("openai/gpt-5", "openai:gpt-5"),
        ("gpt-5", "openai:gpt-5"),
        ("anthropic/claude-sonnet-4-5", "anthropic:messages:claude-sonnet-4-5"),
        ("gemini/gemini-2.5-pro", "google:gemini-2.5-pro"),
        ("azure/d", "azure:chat:d"),
        ("ollama_chat/llama3", "ollama:chat:llama3"),
        ("vertex_ai/x", "vertex:x"),
        ("sagemaker/x", "litellm:sagemaker/x"),
        ("offline", "offline"),
    ],
)
def test_promptfoo_names(model: str, provider: str) -> None:
    """LiteLLM names are written as promptfoo documents them."""
    assert provider_id(model) == provider


@given(st.text(":/ abc-\x00é", max_size=20))
def test_any_name(name: str) -> None:
    """Any text is a name that stays the same when it is read again, or is refused."""
    try:
        model = litellm_name(name)
    except DefinitionError:
        return
    assert litellm_name(model) == model


def test_vendors_are_litellms() -> None:
    """LiteLLM has every vendor that is named here."""
    litellm = library()
    known = {vendor.value for vendor in litellm.LlmProviders}
    assert set(VENDORS.values()) <= known
    assert litellm.get_llm_provider(litellm_name("docker:ai/x"))[1] == "docker_model_runner"


def corpus() -> list[str]:
    """Return the providers of the collected promptfoo files."""
    texts = [path.read_text("utf-8", "replace") for path in SHARED.glob("corpus/promptfoo/**/*.y*ml")]
    found = re.compile(r"^\s*(?:-\s*)?(?:provider|id):\s*['\"]?([\w.-]+:[^\s'\"]+)", re.MULTILINE)
    return sorted({name for text in texts for name in found.findall(text)})


@pytest.mark.skipif(not SHARED.is_dir(), reason="the collected files are not there")
def test_corpus() -> None:
    """Every provider of the collected files is understood, or refused in words; the great vendors are understood."""
    great = ("openai:", "anthropic:", "google:", "bedrock:", "mistral:", "xai:", "openrouter:", "groq:", "replicate:")
    for name in corpus():
        said = outcome(name)
        assert "/" in said
        assert not name.startswith(great) or not said.startswith("refused") or "answers in text" in said


def outcome(name: str) -> str:
    """Return what LiteLLM calls the model *name*, or how it is refused."""
    try:
        return litellm_name(name)
    except DefinitionError as error:
        return f"refused/{error.message}"
