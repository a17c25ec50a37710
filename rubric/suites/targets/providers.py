"""
Targets by name, and the providers that a file names as targets of its cases.

`target="providers"` is the caller's leave to ask the models of the file; an address needs the leave for its host too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from rubric import DefinitionError, ModelError
from rubric.driving import Failure, Usage
from rubric.embed import clean, fields, shorten, thaw
from rubric.programs.javascript import UNDEFINED, JavaScriptError, Program, ThrownError
from rubric.programs.processes import CURE, Executable, ProgramError, PythonFunction, is_allowed
from rubric.suites.cases import Case
from rubric.suites.providers import Provider, text_of
from rubric.suites.targets.base import DeferError, FunctionTarget, Response, Target, TargetLike
from rubric.suites.targets.http import fetch_answer, prompt_of
from rubric.suites.targets.models import AskedModel, ModelTarget

if TYPE_CHECKING:
    from rubric.suites.suite import Suite

PROVIDERS = "providers"
"""The name of the target that asks what the file names."""


def as_target(value: TargetLike, /) -> Target:
    """
    Return *value* as a target: a text is the name of a model, or `providers`; a function becomes a `FunctionTarget`.

    Raises:
        DefinitionError: It is none of these.
    """
    if isinstance(value, str):
        made: Target = Providers() if value == PROVIDERS else ModelTarget(value)
        return made
    if isinstance(value, Target) and not isinstance(value, type):
        return value
    if not callable(value) or isinstance(value, type):
        raise fields.refuse("target", value, "a Target, a function from a Case to a text, or the name of a model")
    return FunctionTarget(value)


def _as_hosts(value: Iterable[str]) -> tuple[str, ...]:
    hosts = fields.as_tuple("hosts", value, str, "texts")
    for index, host in enumerate(hosts):
        if not host or "/" in host or any(sign.isspace() for sign in host):
            raise DefinitionError(f"hosts[{index}]", f"expected a host such as api.example.com, got {host!r}")
    return tuple(host.lower() for host in hosts)


@frozen(repr=False)
class Providers(fields.Shown):
    """
    The models and addresses that the file of a suite names, each for its own cases; `target="providers"` is short.

    A model is asked by its LiteLLM name with the file's settings, never with an endpoint or a key of the file. An
    address is asked only if its host is among *hosts*: a file that others wrote could name any address that this
    machine can reach. A program (Python, or a command) is run only where scripts are allowed.

    Args:
        hosts: Hosts that may be asked, such as `"api.example.com"` or `"localhost:8000"`; without a port, any port.
    """

    _positional = ("hosts",)

    hosts: tuple[str, ...] = field(default=(), converter=_as_hosts)

    def why_not(self, case: Case) -> str:
        """Return why nothing can be asked for *case*; empty if its provider can."""
        provider = next(iter(case.providers), None)
        if provider is None:
            return "its file names no provider for it, and target='providers' asks no other"
        if case.unasked and not case.input and not case.messages:
            return f"the case asks nothing: {case.unasked}"
        if provider.missing:
            return f"the provider {shorten(provider.name, 80)!r}: {provider.missing}"
        programs = (provider.program, provider.transform)
        if not is_allowed() and any(isinstance(one, PythonFunction | Executable) for one in programs):
            return f"the provider {shorten(provider.name, 80)!r} is a program of the file: {CURE}"
        host = "" if provider.request is None else provider.request.host
        if host and host not in self.hosts and re.sub(r":\d+$", "", host) not in self.hosts:
            cure = f"allow it with --allow-host {host}, or in code with Providers([{host!r}])"
            return f"the host {host!r} is named by the file; {cure}"
        return ""

    async def respond(self, case: Case, /) -> Response:
        """
        Return the answer of the provider of *case*.

        Raises:
            DeferError: It cannot be asked.
            ModelError: It did not answer.
        """
        if why := self.why_not(case):
            raise DeferError(why)
        provider = case.providers[0]
        found: Any = None
        if provider.program is not None:
            response = await _call(provider, case)
        elif provider.request is not None:
            found, usage = await fetch_answer(provider.request)
            response = Response(case.responding(text_of(found)), usage)
        else:
            response = await _model_of(provider).respond(case)
        if provider.transform is not None:
            given = response.candidate.output if found is None else found  # data stays data
            response = await _transform(response, given, provider.transform, case)
        where = "; no file sets an address: the environment does, such as OPENAI_BASE_URL"
        named = where * bool({"apiBaseUrl", "apiHost"}.intersection(provider.unsent))
        notes = [f"{', '.join(provider.unsent)} of the provider was not sent{named}"] if provider.unsent else []
        return evolve(response, warnings=(*response.warnings, *notes))


def _model_of(provider: Provider) -> ModelTarget:
    own = {name: value for name, value in provider.settings.items() if name in ("temperature", "max_tokens")}
    rest = {name: value for name, value in provider.settings.items() if name not in own}
    return ModelTarget(provider.model, params=rest, **own)


def model_for(target: object, case: Case) -> AskedModel | None:
    """Return the model that *target* asks for *case*; None where something else answers, or nothing can be asked."""
    if not isinstance(target, Providers):
        return target if isinstance(target, AskedModel) else None
    provider = next((one for one in case.providers[:1] if one.model and not target.why_not(case)), None)
    return None if provider is None else _model_of(provider)


async def _transform(response: Response, output: Any, transform: Program | PythonFunction, case: Case) -> Response:
    context = {"vars": thaw(case.variables), "prompt": {"raw": case.input}}
    try:
        if isinstance(transform, PythonFunction):
            answer = await transform.acall(output, context)
        else:
            answer = transform.run(output, context)
    except (JavaScriptError, ThrownError, ProgramError) as problem:
        message = f"the provider's transform: {problem}"
        raise ModelError(Failure("bad_response", message, usage=response.usage)) from None
    if answer is UNDEFINED or answer is None:
        message = "the provider's transform returned nothing"
        raise ModelError(Failure("bad_response", message, usage=response.usage))
    return evolve(response, candidate=evolve(response.candidate, output=text_of(answer)))


async def _call(provider: Provider, case: Case) -> Response:
    """Return what the program of *provider* prints, or promptfoo's `{output, error, tokenUsage, cost}`."""
    assert provider.program is not None  # noqa: S101 - as asked before
    prompt, name = prompt_of(case), shorten(provider.name, 80)
    variables = {**thaw(case.variables), **thaw(provider.variables)}
    context = {"vars": variables, "prompt": {"raw": prompt, "label": case.cell.get("prompt", prompt)}}
    try:
        said = await provider.program.acall(prompt, thaw(provider.settings), {**context, "test": {"vars": variables}})
    except ProgramError as problem:
        raise ModelError(Failure("exception", f"the provider {name!r}: {problem}")) from None
    if isinstance(provider.program, Executable):
        return Response(case.responding(said))
    answer = said if isinstance(said, dict) else {}
    usage = _usage(answer)
    if answer.get("error"):
        why = shorten(clean(text_of(answer["error"])), 300)
        raise ModelError(Failure("exception", f"the provider {name!r} returned an error: {why}", usage=usage))
    if answer.get("output") is None:
        what = f"expected a mapping with output or error, got {shorten(clean(repr(said)), 120)}"
        raise ModelError(Failure("bad_response", f"the provider {name!r}: {what}", usage=usage))
    return Response(case.responding(text_of(answer["output"])), usage)


def _usage(said: Mapping[str, Any]) -> Usage:
    given, cost = said.get("tokenUsage"), fields.plain_number(said.get("cost"))
    tokens = {key: n for key, n in (given if isinstance(given, dict) else {}).items() if isinstance(n, int) and n >= 0}
    return Usage(
        calls=1,
        prompt_tokens=tokens.get("prompt", tokens.get("total", 0)),
        completion_tokens=tokens.get("completion", 0),
        cost=cost if isinstance(cost, int | float) and cost >= 0 else None,
        unmetered=int(not tokens),
    )


def over_providers(suite: Suite, target: object) -> Suite:
    """Return *suite* with a cell for each provider of a case that has several, if *target* asks providers."""
    if not isinstance(target, Providers) or all(len(case.providers) <= 1 for case in suite.cases):
        return suite
    return evolve(suite, cases=[cell for case in suite.cases for cell in _cells(case)])


def _cells(case: Case) -> Iterable[Case]:
    if len(case.providers) <= 1 or case.output is not None:
        return [case]
    names = [provider.name for provider in case.providers]
    label = names if len({*names}) == len(names) else [f"{name} #{n}" for n, name in enumerate(names, 1)]
    return [
        evolve(case, id=f"{case.id} / {name}", providers=(provider,), cell={**case.cell, "provider": name})
        for name, provider in zip(label, case.providers, strict=True)
    ]
