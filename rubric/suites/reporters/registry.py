"""
Reporters: one report, in the form that its reader wants.

Each is a module with a function `render` from a `Report` to text, and is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import suggest
from rubric.internals.frozen_map import FrozenMap

if TYPE_CHECKING:
    from os import PathLike

    from rubric.suites.report import Report


@frozen
class Reporter:
    """
    One form of a report.

    Args:
        name: What it is asked for by.
        module: The module that renders it.
        endings: The endings of file names that stand for it.
        about: What it is for.
        function: The function of the module that takes a report and returns text.
    """

    name: str
    module: str
    endings: tuple[str, ...]
    about: str
    function: str = "render"

    def render(self, report: Report) -> str:
        """Return *report* in this form."""
        text: str = getattr(import_module(f"rubric.suites.reporters.{self.module}"), self.function)(report)
        return text


_ALL = (
    Reporter("pretty", "terminal", (".txt",), "for people at a terminal"),
    Reporter("json", "json", (".json",), "everything, for programs and for baselines"),
    Reporter("ndjson", "json", (".ndjson", ".jsonl"), "a line of JSON for each case, and a summary", "render_lines"),
    Reporter("junit", "junit", (".xml",), "for CI systems that show tests"),
    Reporter("tap", "tap", (".tap",), "the Test Anything Protocol, version 14"),
    Reporter("md", "markdown", (".md", ".markdown"), "for job summaries and comments"),
    Reporter("html", "html", (".html", ".htm"), "one page that holds all it needs, for people"),
    Reporter("sarif", "sarif", (".sarif", ".sarif.json"), "SARIF 2.1.0, for code scanning"),
    Reporter("gitlab", "gitlab", ("gl-code-quality-report.json", ".codequality.json"), "GitLab's code quality widget"),
)

REPORTERS = FrozenMap({each.name: each for each in _ALL})
"""Every reporter by its name."""


def reporter(name: str) -> Reporter:
    """
    Return the reporter called *name*.

    Raises:
        DefinitionError: There is none of that name.
    """
    if name not in REPORTERS:
        message = f"expected one of {', '.join(REPORTERS)}, got {name!r}{suggest(str(name), list(REPORTERS))}"
        raise DefinitionError("reporter", message)
    found: Reporter = REPORTERS[name]
    return found


def reporter_for(path: str | PathLike[str]) -> Reporter:
    """
    Return the reporter that the ending of *path* stands for; the longest ending decides.

    Raises:
        DefinitionError: The ending stands for none.
    """
    name = PurePath(path).name.lower()
    fitting = [(len(ending), each) for each in _ALL for ending in each.endings if name.endswith(ending)]
    if not fitting:
        known = ", ".join(ending for each in _ALL for ending in each.endings)
        message = f"the ending of {name!r} stands for none; end it in one of {known}, or name the reporter"
        raise DefinitionError("reporter", message)
    return max(fitting, key=lambda pair: pair[0])[1]
