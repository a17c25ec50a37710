"""
API keys in the environment: the default judge that each selects, and which one a judge lacks.

LiteLLM reads most of the variables by itself. If it knows a key under another name only, the key is passed with the
call: a judge never holds a key, so none can appear in its `repr`, and the environment is not changed.

A vendor with another variable for its key belongs into `api_keys.toml`: among its vendors, or else among its keys.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from attrs import frozen

from rubric.errors import ModelError, NoJudgeError, Wording
from rubric.internals.frozen_map import FrozenMap
from rubric.models.litellm_library import is_loaded, library, vendor_of
from rubric.models.offline import OFFLINE
from rubric.values.judges import AnyJudge, Judge, Panel
from rubric.values.requests import Failure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@frozen
class Vendor:
    """
    A vendor, and its variables in the environment.

    Args:
        model: Of the default judge; for Azure, which has no models of its own, with a place for the deployment.
        keys: Variables of which each is enough, in order of precedence.
        deployments: Variables of which one is needed, too.
        borrowed: Arguments that LiteLLM may not find by itself: each with the variable that it reads, and with those
            to take the argument from if that one is not set.
    """

    provider: str
    model: str
    keys: tuple[str, ...]
    deployments: tuple[str, ...] = ()
    borrowed: tuple[tuple[str, ...], ...] = ()

    def model_in(self, environ: Mapping[str, str]) -> str | None:
        """Return the model's name if *environ* has a key for it; None if not."""
        if not _first(environ, self.keys):
            return None
        if not self.deployments:
            return self.model
        deployment = _first(environ, self.deployments)
        return self.model.format(deployment=deployment) if deployment else None

    def __str__(self) -> str:
        keys = " or ".join(self.keys)
        return f"{keys} with {' or '.join(self.deployments)}" if self.deployments else keys


@cache
def _data() -> Mapping[str, Any]:
    """Return the tables of vendors; a judge that is a function needs none, so that importing the library reads none."""
    import tomllib  # noqa: PLC0415 - for the same reason

    return FrozenMap(tomllib.loads(files("rubric.models").joinpath("api_keys.toml").read_text("utf-8")))


@cache
def vendors() -> Mapping[str, Vendor]:
    """Return the vendors with a default judge by LiteLLM's name, in promptfoo's order."""
    return {provider: Vendor(provider, **each) for provider, each in _data()["vendors"].items()}


def borrow_arguments(
    provider: str, given: Mapping[str, object], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the arguments for a call to *provider* that *environ* has under names which LiteLLM does not read."""
    # Nothing is borrowed for a judge with a key or an address of its own: no key of the environment goes to an address
    # that was given in code.
    vendor = vendors().get(provider)
    if vendor is None or {"api_key", "api_base", "base_url"} & given.keys():
        return {}
    found = {name: _first(environ, others) for name, native, *others in vendor.borrowed if not environ.get(native)}
    return {name: value for name, value in found.items() if value and name not in given}


def _first(environ: Mapping[str, str], names: Iterable[str]) -> str:
    return next((environ[name] for name in names if environ.get(name)), "")


def default_judge(environ: Mapping[str, str] = os.environ) -> Judge:
    """Return the judge of the first vendor that *environ* has a key for, in promptfoo's order of vendors."""
    for vendor in vendors().values():
        if model := vendor.model_in(environ):
            return Judge(model)
    variables = "; ".join(str(vendor) for vendor in vendors().values())
    said = "no judge was given, and the environment names none. Give one, such as "
    offline = Wording(". To try things out without a key, say ", judge="offline")
    counts = Wording(offline, " (it counts words, it does not judge)")
    raise NoJudgeError(Wording(Wording(said, judge="openai/gpt-5.6"), f", or set one of these: {variables}", (counts,)))


_BRINGS_ITS_OWN = frozenset({"api_key", "api_base", "base_url", "azure_ad_token"})
_OWN_NAMES = frozenset({"openai", "anthropic", "gemini", "mistral", "github"})


def _is_own_name(prefix: str) -> bool:
    """True if a name before the slash is LiteLLM's of that vendor. (Some of `azure/...` are another vendor's to it.)"""
    return prefix in _OWN_NAMES or prefix in _data()["keys"]


def missing_key(judge: Judge, environ: Mapping[str, str] = os.environ) -> str:
    """Return the variables of which *judge* needs one, joined by "or"; empty if none is known to be missing."""
    if _BRINGS_ITS_OWN & judge.params.keys():
        return ""
    prefix = judge.name.partition("/")[0]
    # LiteLLM takes seconds to import: well-known vendors are looked up without it.
    provider = prefix if _is_own_name(prefix) and "/" in judge.name else vendor_of(judge.name)[1]
    if provider in _data()["keys"]:
        names = [_data()["keys"][provider]]
    elif (vendor := vendors().get(provider)) is None:
        missing = library().validate_environment(model=judge.name)["missing_keys"]
        names = [name for name in missing if name.endswith("_API_KEY")]
    else:
        known = dict.fromkeys((*vendor.keys, *(native for _, native, *_ in vendor.borrowed)))
        names = [name for name in known if name.endswith(("_API_KEY", "_TOKEN"))]
    instead = _data()["instead"].get(provider, ())
    if borrow_arguments(provider, judge.params, environ).get("api_key") or any(
        environ.get(n) for n in (*names, *instead)
    ):
        return ""
    return " or ".join(names)


def surely_missing_key(judge: Judge) -> str:
    """
    Return the variables of which *judge* certainly needs one, as `missing_key` does; empty if that cannot be known.

    Before LiteLLM's import only well-known vendors can be told, and none if that import reads a `.env` file.
    """
    if is_loaded():
        may_differ = not _is_own_name(vendor_of(judge.name)[1]) or _set_in_code(judge.name)
    else:
        prefix, slash, _ = judge.name.partition("/")
        may_load_keys = "litellm" in sys.modules or os.environ.get("LITELLM_MODE", "PRODUCTION") != "PRODUCTION"
        may_differ = may_load_keys or not slash or not _is_own_name(prefix)
    return "" if may_differ else missing_key(judge)


def require_key(judge: Judge) -> None:
    """Raise `ModelError` if *judge* certainly lacks its key: nothing is sent without one."""
    if variables := surely_missing_key(judge):
        raise ModelError(Failure("auth", f"no key for {judge.name}: set {variables}"))


# -- juries and panels --------------------------------------------------------------------------------------


def why_keyless(judge: AnyJudge, environ: Mapping[str, str] = os.environ) -> str:
    """Return a message about the API key that *judge* lacks; empty if none is known to be missing."""
    if isinstance(judge, Judge):
        model = judge.model
        if not isinstance(model, str) or model == OFFLINE or _set_in_code(model):
            return ""
        variables = missing_key(judge, environ)
        return f"no key for the judge {model!r}: set {variables}" if variables else ""
    reasons = [why_keyless(member, environ) for member in judge.members]
    enough = judge.quorum if isinstance(judge, Panel) and judge.quorum is not None else len(reasons)
    return "" if reasons.count("") >= enough else "; ".join(dict.fromkeys(filter(None, reasons)))


def _set_in_code(model: str) -> bool:
    """True if the program itself has given LiteLLM a key for *model*, or a server or a vault of its own."""
    if "litellm" not in sys.modules:  # to import it takes seconds
        return False
    litellm, provider = library(), vendor_of(model)[1]
    keys = ("api_key", f"{provider}_key", f"{provider.replace('_', '')}_api_key")
    return any(getattr(litellm, name, None) for name in (*keys, "api_base", "secret_manager_client"))
