"""
Reporters: functions from a `Report` to text, each imported when it is first used.

Other distributions register theirs as entry points in the group `rubric.reporters`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import suggest
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.plugins import load_plugin, plugin_names
from rubric.internals.secrets import describe

if TYPE_CHECKING:
    from os import PathLike

    from rubric.suites.report import Report

GROUP = "rubric.reporters"
"""The group of entry points."""


@frozen
class Reporter:
    """
    One form of a report.

    Args:
        name: What users call it.
        module: The module of ours that has its function; empty for a plug-in.
        endings: The file endings that select it.
        about: What it is for.
        function: The name of the function in *module*.
        plugin: The function of a plug-in.
        source: The distribution of a plug-in.
    """

    name: str
    module: str
    endings: tuple[str, ...]
    about: str
    function: str = "render"
    plugin: Callable[[Report], Any] | None = None
    source: str = ""

    def render(self, report: Report) -> str:
        """
        Return *report* in this form.

        Raises:
            DefinitionError: A plug-in failed, or returned no text.
        """
        if self.plugin is None:
            text: str = getattr(import_module(f"rubric.suites.reporters.{self.module}"), self.function)(report)
            return text
        try:
            made = self.plugin(report)
        except Exception as error:
            message = f"{self.name!r} of {self.source} failed: {describe(error)}"
            raise DefinitionError("reporter", message) from error
        if not isinstance(made, str):
            message = f"{self.name!r} of {self.source} returned {type(made).__name__}, expected text"
            raise DefinitionError("reporter", message)
        return made


_OURS = (
    Reporter("pretty", "terminal", (".txt",), "for people at a terminal"),
    Reporter("json", "json", (".json",), "everything, for programs and for baselines"),
    Reporter("ndjson", "json", (".ndjson", ".jsonl"), "a line of JSON for each case, and a summary", "render_lines"),
    Reporter("junit", "junit", (".xml",), "for CI systems that show tests"),
    Reporter("tap", "tap", (".tap",), "the Test Anything Protocol, version 14"),
    Reporter("md", "markdown", (".md", ".markdown"), "for job summaries and comments"),
    Reporter("html", "html", (".html", ".htm"), "one page that holds all it needs, for people"),
    Reporter("sarif", "issues", (".sarif", ".sarif.json"), "SARIF 2.1.0, for code scanning"),
    Reporter(
        "gitlab",
        "issues",
        ("gl-code-quality-report.json", ".codequality.json"),
        "GitLab's code quality widget",
        "render_gitlab",
    ),
)

REPORTERS = FrozenMap({each.name: each for each in _OURS})
"""The reporters of this library by name."""


def reporter_names() -> tuple[str, ...]:
    """Return the names of all reporters: ours, then those of other distributions."""
    return (*REPORTERS, *(name for name in plugin_names(GROUP) if name not in REPORTERS))


def reporter(name: str) -> Reporter:
    """
    Return the reporter called *name*; no plug-in replaces one of ours.

    Raises:
        DefinitionError: There is none of that name, or a plug-in cannot be loaded.
    """
    if name in REPORTERS:
        found: Reporter = REPORTERS[name]
        return found
    plugin = load_plugin(GROUP, str(name), "reporter") if name else None
    if plugin is None:
        known = reporter_names()
        message = f"expected one of {', '.join(known)}, got {name!r}{suggest(str(name), list(known))}"
        raise DefinitionError("reporter", message)
    if not callable(plugin.value):
        message = f"{name!r} of {plugin.source} is {type(plugin.value).__name__}, expected a function of a report"
        raise DefinitionError("reporter", message)
    return Reporter(name, "", (f".{name}",), f"from {plugin.source}", plugin=plugin.value, source=plugin.source)


def reporter_for(path: str | PathLike[str]) -> Reporter:
    """
    Return the reporter that the ending of *path* selects: the longest of ours, or the name of a plug-in.

    Raises:
        DefinitionError: The ending selects none, or a plug-in cannot be loaded.
    """
    name = PurePath(path).name.lower()
    fitting = [(len(ending), each) for each in _OURS for ending in each.endings if name.endswith(ending)]
    if fitting:
        return max(fitting, key=lambda pair: pair[0])[1]
    plugins = [each for each in plugin_names(GROUP) if each not in REPORTERS]
    for each in plugins:
        if name.endswith(f".{each.lower()}"):
            return reporter(each)
    known = ", ".join([*(ending for each in _OURS for ending in each.endings), *(f".{each}" for each in plugins)])
    message = f"the ending of {name!r} names no reporter; end it in one of {known}, or name the reporter"
    raise DefinitionError("reporter", message)
