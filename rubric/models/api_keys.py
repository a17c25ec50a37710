"""
The variables of the environment that name an API key, and the judge that each of them stands for.

LiteLLM reads most of them by itself. Where it knows a key by another name only, the key is handed to it with the
call: a judge never holds a key, so none can turn up in its `repr`, and the environment is not written to.

The judge that the environment names, for whoever gives none.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attrs import frozen

from rubric.errors import NoJudgeError
from rubric.values.judges import Judge

if TYPE_CHECKING:
    from collections.abc import Mapping


@frozen
class Vendor:
    """
    A vendor, and how the environment speaks of it.

    Args:
        provider: LiteLLM's name for it: what stands before the slash.
        model: The judge's model; for Azure, which has none of its own, the deployment is put in.
        keys: Variables that each are enough, in the order in which they are looked at.
        deployments: Variables of which one is needed too.
        borrowed: What LiteLLM would not find by itself: its argument, and the variables to take it from.
        native: Variables that LiteLLM reads for these arguments; where one is set, nothing is borrowed.
    """

    provider: str
    model: str
    keys: tuple[str, ...]
    deployments: tuple[str, ...] = ()
    borrowed: tuple[tuple[str, tuple[str, ...]], ...] = ()
    native: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def model_in(self, environ: Mapping[str, str]) -> str | None:
        """Return the name of the model that *environ* has a key for; None without one."""
        if not _first(environ, self.keys):
            return None
        if not self.deployments:
            return self.model
        deployment = _first(environ, self.deployments)
        return self.model.format(deployment=deployment) if deployment else None

    def __str__(self) -> str:
        keys = " or ".join(self.keys)
        return f"{keys} with {' or '.join(self.deployments)}" if self.deployments else keys


VENDORS = (
    Vendor("openai", "openai/gpt-5.6", ("OPENAI_API_KEY",)),
    Vendor("anthropic", "anthropic/claude-sonnet-5-5", ("ANTHROPIC_API_KEY",)),
    Vendor(
        "gemini",
        "gemini/gemini-3.8-flash",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "PALM_API_KEY"),
        borrowed=(("api_key", ("GOOGLE_API_KEY", "PALM_API_KEY")),),
        native=(("api_key", ("GEMINI_API_KEY",)),),
    ),
    Vendor(
        "vertex_ai",
        "vertex_ai/gemini-3.8-flash",
        ("GOOGLE_APPLICATION_CREDENTIALS", "VERTEX_PROJECT_ID", "VERTEXAI_PROJECT"),
        borrowed=(("vertex_project", ("VERTEX_PROJECT_ID",)),),
        native=(("vertex_project", ("VERTEXAI_PROJECT",)),),
    ),
    Vendor("mistral", "mistral/mistral-large-latest", ("MISTRAL_API_KEY",)),
    Vendor(
        "github",
        "github/gpt-4.1",
        ("GITHUB_TOKEN",),
        borrowed=(("api_key", ("GITHUB_TOKEN",)),),
        native=(("api_key", ("GITHUB_API_KEY",)),),
    ),
    Vendor(
        "azure",
        "azure/{deployment}",
        ("AZURE_API_KEY", "AZURE_OPENAI_API_KEY"),
        deployments=("AZURE_OPENAI_DEPLOYMENT_NAME", "AZURE_DEPLOYMENT_NAME"),
        borrowed=(
            ("api_key", ("AZURE_OPENAI_API_KEY",)),
            ("api_base", ("AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_BASE_URL", "AZURE_API_BASE_URL")),
        ),
        native=(("api_key", ("AZURE_API_KEY",)), ("api_base", ("AZURE_API_BASE",))),
    ),
)
"""Whom the environment may name, in the order in which promptfoo asks for them."""


def borrowed(provider: str, given: Mapping[str, object], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """
    Return the arguments that a call to *provider* lacks and *environ* has, under names which LiteLLM does not read.

    Nothing is borrowed for a judge that brings a key or an address of its own: no ambient key goes to a stranger.
    """
    vendor = next((v for v in VENDORS if v.provider == provider), None)
    if vendor is None or {"api_key", "api_base", "base_url"} & given.keys():
        return {}
    native = dict(vendor.native)
    found = {name: _first(environ, names) for name, names in vendor.borrowed if not _first(environ, native[name])}
    return {name: value for name, value in found.items() if value and name not in given}


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def default_judge(environ: Mapping[str, str] = os.environ) -> Judge:
    """
    Return the judge of the first vendor that *environ* has a key for, in promptfoo's order of vendors.

    Raises:
        NoJudgeError: There is none; the message names the variables.
    """
    for vendor in VENDORS:
        if model := vendor.model_in(environ):
            return Judge(model)
    variables = "; ".join(str(vendor) for vendor in VENDORS)
    message = (
        f"no judge was given, and the environment names none. Give one, such as judge='openai/gpt-5.6', or set one of "
        f'these: {variables}. To try things out without a key, say judge="offline" (it counts words, it does not judge)'
    )
    raise NoJudgeError(message)
