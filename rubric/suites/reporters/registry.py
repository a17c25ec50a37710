"""
Reporters: functions from a `Report` to text, each imported when it is first used.

Other distributions register theirs as entry points in the group `rubric.reporters`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from os import PathLike
from pathlib import PurePath
from typing import Any

from attrs import frozen

from rubric import DefinitionError
from rubric.driving import Failure
from rubric.embed import FrozenMap, fields, plugins
from rubric.suites.report import Report

GROUP = "rubric.reporters"
"""The group of entry points."""


@frozen
class Reporter:
    """
    One form of a report.

    Args:
        name: What users call it.
        function: From a `Report` to text; ours are given as `module:function`, and imported when they are used.
        endings: The file endings that select it.
        source: The distribution of a plug-in; empty for a reporter of ours.
    """

    name: str
    function: Callable[[Report], Any] | str
    endings: tuple[str, ...]
    source: str = ""

    def render(self, report: Report) -> str:
        """Return *report* in this form; a `DefinitionError` names a plug-in that failed or returned no text."""
        try:
            function = self.function
            if isinstance(function, str):
                module, _, name = function.partition(":")
                function = getattr(import_module(f".{module}", "rubric.suites.reporters"), name)
            text = function(report)
        except Exception as error:
            if not self.source:
                raise
            raise DefinitionError(
                "reporter", f"{self.name!r} of {self.source} failed: {Failure.of(error).message}"
            ) from error
        if not isinstance(text, str):
            message = f"{self.name!r} of {self.source} returned {type(text).__name__}, expected text"
            raise DefinitionError("reporter", message)
        return text


_OURS = (
    Reporter("pretty", "terminal:render", (".txt",)),
    Reporter("json", "json:render", (".json",)),
    Reporter("ndjson", "json:render_lines", (".ndjson", ".jsonl")),
    Reporter("junit", "junit:render", (".xml",)),
    Reporter("tap", "tap:render", (".tap",)),
    Reporter("csv", "csv:render", (".csv",)),
    Reporter("md", "markdown:render", (".md", ".markdown")),
    Reporter("html", "..view.suite_page:render", (".html", ".htm")),
    Reporter("sarif", "issues:render_sarif", (".sarif", ".sarif.json")),
    Reporter("github", "github:render", ()),
    Reporter("harbor", "harbor:render", ("reward.json",)),
    Reporter("gitlab", "issues:render_gitlab", ("gl-code-quality-report.json", ".codequality.json")),
)

REPORTERS = FrozenMap({each.name: each for each in _OURS})
"""The reporters of this library by name."""


def reporter_names() -> tuple[str, ...]:
    """Return the names of all reporters: ours, then those of other distributions."""
    return (*REPORTERS, *(name for name in plugins.names(GROUP) if name not in REPORTERS))


def reporter(name: str) -> Reporter:
    """
    Return the reporter called *name*; no plug-in replaces one of ours.

    Raises:
        DefinitionError: There is none of that name, or a plug-in cannot be loaded.
    """
    if name in REPORTERS:
        found: Reporter = REPORTERS[name]
        return found
    plugin = plugins.load(GROUP, str(name), "reporter") if name else None
    if plugin is None:
        raise DefinitionError("reporter", f"unknown reporter {name!r}{fields.suggest(str(name), reporter_names())}")
    if not callable(plugin.value):
        message = f"{name!r} of {plugin.source} is {type(plugin.value).__name__}, expected a function of a report"
        raise DefinitionError("reporter", message)
    return Reporter(name, plugin.value, (f".{name}",), plugin.source)


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
    others = [each for each in plugins.names(GROUP) if each not in REPORTERS]
    for each in others:
        if name.endswith(f".{each.lower()}"):
            return reporter(each)
    known = ", ".join([*(ending for each in _OURS for ending in each.endings), *(f".{each}" for each in others)])
    message = f"the ending of {name!r} names no reporter; end it in one of {known}, or name the reporter"
    raise DefinitionError("reporter", message)
