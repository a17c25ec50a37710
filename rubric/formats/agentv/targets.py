"""
The targets of a project: names such as `llm` or `grader`, which the files of AgentV give to models and agents.

Where each generation defines them is in docs/how-to/from_agentv.md. A list may be in a file of its own, `providers:
file://providers.yaml`. `defaults.provider` and `defaults.grader` name the ones that a file does not; a target of
generation 1 names its own grader (`judge_target`, `grader_target`). A name becomes LiteLLM's where the definition says
enough. Endpoints, keys and headers are never read, and an agent is a program, which is not run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from rubric.embed import Cursor, shorten
from rubric.formats.includes import follow, may_be_read, read_document_at
from rubric.formats.keys import keys_of
from rubric.formats.providers import read_provider
from rubric.suites.providers import Provider
from rubric.suites.suite import Suite

CONFIG = ".agentv/config.yaml"
"""The settings of a project."""

_FILES = (CONFIG, ".agentv/providers.yaml", ".agentv/targets.yaml")
_LISTS = ("providers", "targets")
_AGENTS, _ABOUT = keys_of("agentv", "target", "agents"), keys_of("agentv", "target", "about")


_SPELLED = {"max_output_tokens": "max_tokens", "thinking": "reasoning_effort"}
_DEEPEST = 8
_GRADERS = ("grader_target", "judge_target")


@frozen
class Targets:
    """The targets that a file can name."""

    known: Mapping[str, Cursor] = field(factory=dict)
    provider: str = ""
    grader: str = ""

    def provider_at(self, at: Cursor, fill: Callable[[str, Cursor], str]) -> Provider:
        """Return what the cursor, a name or a definition, names to answer; one that cannot be asked says why."""
        with at.notes.lacking() as lacks:
            made = self._find(at, fill)
        return Provider(made.name, missing=lacks[0]) if lacks else made

    def _find(self, at: Cursor, fill: Callable[[str, Cursor], str]) -> Provider:
        name = at.value
        for _ in range(_DEEPEST):
            definition = self.known.get(name) if isinstance(name, str) else at
            if definition is None:
                break
            name = definition.value.get("use_target") if isinstance(definition.value, Mapping) else None
            if name is None:
                return _provider(definition, fill)
            name = fill(str(name), definition)
        model = read_provider(at, lambda text: fill(text, at))
        unknown = isinstance(at.value, str) and model.missing and not any(sign in at.value for sign in ":/")
        where = f"it is defined neither in the file nor in {', '.join(_FILES)}"
        return (
            Provider(model.name, missing=f"{shorten(repr(at.value), 60)} is not a model; {where}") if unknown else model
        )

    def grader_of(self, named: str) -> str:
        """Return the grader of the target *named*; the project's where it has none of its own."""
        at = self.known.get(named)
        own = at.find(*_GRADERS) if at is not None and isinstance(at.value, Mapping) else None
        return str(own.value) if own is not None else self.grader


def _provider(at: Cursor, fill: Callable[[str, Cursor], str]) -> Provider:
    """Return the provider of the definition at the cursor."""
    if not isinstance(at.value, Mapping) or not at.value.keys() & {"id", "provider"}:
        return read_provider(at, lambda text: fill(text, at))
    data = at.value
    settings = {**data, **at.under("config").value}
    system = str(data.get("provider") or data.get("id") or "").removeprefix("agentv:")
    name = _label(data) or system
    if system.partition(":")[0] in _AGENTS or system.partition(":")[2] in _AGENTS:
        missing = f"{name!r} is the agent {system!r}, a program, which is not run; give a function or finished outputs"
        return Provider(name, missing=missing)
    model = next((settings[key] for key in ("model", "deployment", "deployment_name") if settings.get(key)), None)
    if model is None:
        return read_provider(at.holding({**data, "id": system}), lambda text: fill(text, at))
    sent = {_SPELLED.get(str(key), str(key)): value for key, value in settings.items() if key not in _ABOUT}
    if system == "azure":  # where a deployment is, LiteLLM knows by its own variables
        sent = {key: value for key, value in sent.items() if key != "endpoint"}
    with at.notes.lacking() as lacks:
        shown = fill(str(model), at)
        # A vendor may be in the model's name too: `openrouter` and `z-ai/glm-4.7`.
        id_ = system if ":" in system or "/" in system else f"{system}:{shown}"
    if lacks:
        return Provider(name, missing=lacks[0])
    return read_provider(at.holding({"id": id_, "label": name, "config": sent}), lambda text: text)


def _label(data: Mapping[Any, Any]) -> str:
    keys = ("label", "name", "id") if "provider" in data else ("label", "name")
    return next((str(data[key]) for key in keys if isinstance(data.get(key), str) and data[key]), "")


def read_targets(whole: Cursor) -> Targets:
    """Return the targets that the file at the cursor defines, and those of its project."""
    there = [name for name in _FILES if whole.loading.folder is not None and may_be_read(name, whole.loading)]
    files = [at for name in there if (at := read_document_at(name, whole, lacking=whole.warn)) is not None]
    known: dict[str, Cursor] = {}
    for holder in (whole, *files):
        for definition in _definitions(holder):
            known.setdefault(_label(definition.value) or str(definition.value.get("id")), definition)
    defaults = [_follow(holder["defaults"]) for holder in (whole, *files) if isinstance(holder.value, Mapping)]

    def default_of(key: str) -> str:
        return next((str(at[key].value) for at in defaults if at.has(key)), "")

    usual = "default" if "default" in known else ""
    return Targets(known, default_of("provider") or default_of("target") or usual, default_of("grader"))


def _definitions(holder: Cursor) -> Iterator[Cursor]:
    lists = [holder] if isinstance(holder.value, list) else [_follow(holder[key]) for key in _LISTS if holder.has(key)]
    for listed in lists if isinstance(holder.value, list | Mapping) else ():
        for entry in listed if isinstance(listed.value, list) else ():
            if isinstance(entry.value, Mapping) and (_label(entry.value) or isinstance(entry.value.get("id"), str)):
                yield entry


def _follow(at: Cursor) -> Cursor:
    """Return what is at the cursor, or in the file that it names."""
    return follow(at, at.warn) or at.holding(None)


_LACKING = re.compile(r"environment variable '(\w+)'")
_SECRET = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)


def lacking_variables(suite: Suite, environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """
    Return the variables that the targets of the project of *suite* name and the load lacked: what *environ* has of
    them, and how to give each of the others.

    Names of models and of targets are not secrets; a variable whose name says that it holds one is left alone.
    """
    told = [str(problem) for problem in suite.warnings if ".agentv" in problem.source]
    told += [provider.missing for case in suite for provider in case.providers]
    names = sorted({name for text in told for name in _LACKING.findall(text)})
    found = {name: environ[name] for name in names if name in environ and not _SECRET.search(name)}
    return found, {n: f"--env {n}" if n in environ else f"{n}=..." for n in names if n not in found}
