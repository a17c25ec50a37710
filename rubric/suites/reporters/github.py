"""
A report for GitHub Actions: an annotation for each issue, as workflow commands, and a summary of the step.

GitHub reads a line that starts with `::` as a command, so no text of a candidate or a judge starts a line here, and in
a command `%` and line ends are escaped, in its properties also `:` and `,`
(https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
"""

from __future__ import annotations

from rubric.embed import line, shown
from rubric.suites.report import Report
from rubric.suites.reporters import markdown
from rubric.suites.reporters.issues import Issue, issues, near

NAME = "github"

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}

_LARGEST_SUMMARY = 250_000
"""Characters of a summary, of four bytes at most: GitHub shows none above 1 MiB, and other steps may write to it."""


def render(report: Report) -> str:
    """
    Return *report* as workflow commands, the errors first, and the counts in the last line.

    GitHub shows ten annotations of a kind for each step; the summary has all of them.
    """
    found = sorted(issues(report), key=lambda issue: [*_COMMANDS].index(issue.level))
    lines = [*map(_annotation, found)]
    lines += [f"::warning title=rubric::{_escape(line(warning, 1_000))}" for warning in report.warnings]
    return "".join(f"{text}\n" for text in [*lines, report.tally])


def _annotation(issue: Issue) -> str:
    place, properties = issue.row.place, {}
    if place is not None:
        path = near(place.source).replace("\\", "/").removeprefix("./")
        properties = {"file": shown(path), "line": str(max(place.line, 1)), "col": str(max(place.column, 1))}
    properties["title"] = issue.rule
    head = ",".join(f"{name}={_escape(value, in_property=True)}" for name, value in properties.items())
    return f"::{_COMMANDS[issue.level]} {head}::{_escape(issue.message)}"


def _escape(text: str, *, in_property: bool = False) -> str:
    """Return *text* as the data of a command, or as one of its properties."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_property else text


def render_summary(report: Report, lead: str = "", *, passed: bool | None = None) -> str:
    """Return *report* as the Markdown of a step's summary after the text *lead*, cut to what GitHub shows."""
    return f"{markdown.render(report, lead, largest=_LARGEST_SUMMARY, passed=passed).rstrip()}\n\n"
