"""
Names of models: how other systems write them (`openai:chat:gpt-5`), and how LiteLLM does (`openai/gpt-5`).

The vendors are those that promptfoo documents and LiteLLM calls; `vendors.toml` beside this file lists them.
"""

from __future__ import annotations

import re
import tomllib
from importlib import resources

from rubric import DefinitionError
from rubric.embed import fields, shorten

_TABLE = tomllib.loads(resources.files("rubric.formats").joinpath("vendors.toml").read_text("utf-8"))
_SAME, _KINDS, _OTHER_KINDS, _PROGRAMS = (_TABLE[key].split() for key in ("same", "kinds", "other_kinds", "programs"))

VENDORS: dict[str, str] = {name: name for name in _SAME} | _TABLE["spoken"]
"""LiteLLM's names of the vendors that others write before a colon; a vendor's LiteLLM name is taken there too."""

LITELLM = {*VENDORS.values(), *_TABLE["litellm"].split()}
"""Vendors as LiteLLM calls them, before a slash."""

SETTINGS = ("temperature", "max_tokens", "seed")
"""The settings of a model that promptfoo's and AgentV's files may give: none that says where it is, or logs in."""

_EMBEDS = frozenset({"embedding", "embeddings", "feature-extraction", "sentence-similarity"})


def litellm_name(provider: str) -> str:
    """Return LiteLLM's name, with the vendor, of the model that another system calls *provider*, or refuse it."""
    name = provider.strip()
    if name == "offline":
        return name
    if not name or len(name) > 500 or re.search(r"\s", name) or not name.isprintable():  # noqa: PLR2004
        raise _refusal(provider, "a model is named by one word, such as openai:gpt-5 or openai/gpt-5")
    separator = re.search("[:/]", name)
    if separator is None:
        return _of_bare(name)
    vendor, model = name[: separator.start()], name[separator.end() :]
    if separator[0] == ":":
        return _of_colon(name, vendor.lower(), model)
    if vendor not in LITELLM or not model.strip("/"):
        hint = fields.suggest(vendor, sorted(LITELLM))
        raise _refusal(name, f"LiteLLM is not known to have a vendor {vendor!r}{_near(hint)}")
    return name


def embedding_name(provider: str) -> str | None:
    """Return LiteLLM's name of the embedding model that another system calls *provider*; None if it is none."""
    provider = provider.strip().removeprefix("adaline:")  # a gateway; a similarity is of one model alone
    vendor, _, rest = provider.partition(":")
    kind, colon, model = rest.partition(":")
    if vendor == "voyage":  # it has no other models
        return f"{vendor}/{rest}"
    if kind in _EMBEDS and colon:
        return litellm_name(f"{vendor}:{model}")
    return litellm_name(provider) if "embed" in rest else None


def _refusal(provider: str, why: str) -> DefinitionError:
    return DefinitionError("provider", f"{shorten(repr(provider), 120)}: {why}")


def _of_bare(name: str) -> str:
    for pattern, vendor in _TABLE["bare"].items():
        if re.match(pattern, name):
            return f"{vendor}/{name}"
    if name.lower() in VENDORS or name in LITELLM:
        raise _refusal(name, f"name the model of this vendor too, as in {name}:MODEL")
    raise _refusal(name, "no model is known by this name alone; put its vendor before it, as in openai:gpt-5")


def _of_colon(name: str, vendor: str, model: str) -> str:
    if vendor in _PROGRAMS:
        raise _refusal(name, "programs and addresses do not judge here; name a model, or give the judge in code")
    if vendor == "litellm":
        return litellm_name(_without_kind(name, model)[1])
    spoken = VENDORS.get(vendor, vendor if vendor in LITELLM else "")
    if not spoken:
        raise _refusal(name, f"unknown vendor {vendor!r}{_near(fields.suggest(vendor, sorted(VENDORS)))}")
    kind, rest = _without_kind(name, model)
    if not rest:
        raise _refusal(name, f"name the model too, as in {vendor}:MODEL")
    return f"{'ollama_chat' if (spoken, kind) == ('ollama', 'chat') else spoken}/{rest}"


def _without_kind(name: str, model: str) -> tuple[str, str]:
    """Return the kind of API before the model, if any, and the model."""
    kind, colon, rest = model.partition(":")
    if kind in _OTHER_KINDS:
        raise _refusal(name, f"{kind!r} is not a model that answers in text; name a chat model")
    return (kind, rest) if kind in _KINDS and (colon or not rest) else ("", model)


def _near(hint: str) -> str:
    """Return *hint*, or where no name is near how to name a model at all."""
    return hint if "did you mean" in hint else "; write VENDOR/MODEL as LiteLLM does, or give the judge in code"


_IDS: dict[str, str] = {spoken: vendor for vendor, spoken in reversed(VENDORS.items())} | _TABLE["ids"]


def provider_id(model: str) -> str:
    """Return promptfoo's name of the model that LiteLLM calls *model*: `openai:gpt-5` for `openai/gpt-5`."""
    known = litellm_name(model)
    vendor, slash, name = known.partition("/")
    if not slash:
        return known
    return f"{_IDS[vendor]}:{name}" if vendor in _IDS else f"litellm:{known}"
