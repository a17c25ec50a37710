"""
Client objects that may be judges, recognised by the module and the name of a class that they derive from.

Nothing is imported for that. `models.client_models` asks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rubric.internals.secrets import names_a_login

ClientKind = Literal["openai", "anthropic", "langchain", "inspect", "dspy", "transformers"]

_KINDS: Mapping[tuple[str, str], ClientKind] = {
    ("openai", "OpenAI"): "openai",
    ("openai", "AsyncOpenAI"): "openai",
    ("anthropic", "Anthropic"): "anthropic",
    ("anthropic", "AsyncAnthropic"): "anthropic",
    ("langchain_core", "BaseChatModel"): "langchain",
    ("inspect_ai", "Model"): "inspect",
    ("dspy", "BaseLM"): "dspy",
    ("transformers", "TextGenerationPipeline"): "transformers",
}
"""The package and the class, or one of its bases. Azure's clients derive from OpenAI's, Bedrock's from Anthropic's."""

_NAMES: Mapping[ClientKind, tuple[str, ...]] = {
    "openai": (),
    "anthropic": (),
    "langchain": ("model_name", "model", "model_id"),
    "inspect": ("name",),
    "dspy": ("model",),
    "transformers": ("model.name_or_path", "model.config.name_or_path"),
}
"""The attributes in which a client names its model."""

_SET_THERE: Mapping[ClientKind, tuple[str, ...]] = {
    "anthropic": ("seed",),
    "langchain": ("seed", "max_tokens"),
    "transformers": ("seed",),
}
"""The settings of a judge that a client takes from nobody but its own constructor, if it has them."""


def is_from(value: object, *packages: str) -> bool:
    """True if the client *value*, or the model that is bound in it, derives from a class of one of *packages*."""
    return any(base.__module__.startswith(packages) for base in type(bound_in(value)).__mro__)


def takes_limit(value: object) -> bool:
    """True if *value*, a LangChain model, takes `max_tokens` with a call; most have names of their own for it."""
    return is_from(value, "langchain_openai", "langchain_anthropic")


def bound_in(value: object) -> object:
    """Return the LangChain model in *value*, if that is what `bind` or `with_retry` return, else *value*."""
    while any(base.__name__ == "RunnableBindingBase" for base in type(value).__mro__):
        value = value.bound  # type: ignore[attr-defined]
    return value


def set_there(value: object) -> tuple[str, ...]:
    """Return the settings of a judge that client *value* is not given with a call."""
    kind = client_kind(value)
    names = _SET_THERE.get(kind, ()) if kind else ()
    return tuple(name for name in names if name != "max_tokens" or not takes_limit(value))


CLIENTS = (
    "an OpenAI or Anthropic client with the name of a model, a LangChain chat model, an Inspect Model, a dspy.LM, "
    "or a transformers text-generation pipeline"
)
"""The kinds of clients, for error messages."""


DECIDES = "a function that decides by itself is judge_function(lambda candidate, criterion: True)"
"""The cure for a function whose results are verdicts, not texts."""


def client_kind(value: object) -> ClientKind | None:
    """Return the kind of client that *value* is; None if it is none."""
    for base in type(bound_in(value)).__mro__:
        if kind := _KINDS.get((base.__module__.partition(".")[0], base.__name__)):
            return kind
    return None


def client_model_name(value: object) -> str:
    """Return the name of the model that client *value* names; empty if it names none."""
    kind = client_kind(value)
    for path in _NAMES[kind] if kind else ():
        found = bound_in(value)
        for step in path.split("."):
            found = getattr(found, step, None)
        if isinstance(found, str) and found:
            return found
    return ""


def client_identity(value: object, name: str) -> str:
    """Return what tells replies of client *value* to *name* from others: kind, model, address, plain settings."""
    kind = client_kind(value)
    named = f"{kind} {name} {getattr(value, 'base_url', '')}".rstrip()
    if kind in ("openai", "anthropic"):  # all settings of a request are the judge's
        return named
    given = dict(vars(bound_in(value)))
    while value is not bound_in(value):
        given.update({f"bound {key}": each for key, each in value.kwargs.items()})  # type: ignore[attr-defined]
        value = value.bound  # type: ignore[attr-defined]
    settings = {key: each for key, each in given.items() if isinstance(each, _PLAIN) and not names_a_login(key)}
    return f"{named} {sorted(settings.items())}"


def listed_name(value: object, name: str) -> str:
    """Return the name under which LiteLLM lists the model *name* of client *value*; empty if that is not known."""
    kind, cls = client_kind(value), type(bound_in(value)).__name__
    if kind == "dspy":
        return name
    if kind == "inspect":
        return str(value).replace("google/", "gemini/", 1)
    if kind == "transformers" or any(host in cls for host in ("Bedrock", "Vertex", "Foundry")):
        return ""
    vendors = [vendor for vendor in ("anthropic", "openai") if kind == vendor or is_from(value, f"langchain_{vendor}")]
    return f"{'azure' if 'Azure' in cls else vendors[0]}/{name}" if vendors else ""


_PLAIN = (str, int, float, bool, type(None))
