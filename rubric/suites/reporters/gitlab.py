"""
GitLab's code quality report: a JSON list of issues, each with a place and a fingerprint.

GitLab shows it in merge requests, and knows an issue again by its fingerprint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric.suites.report import written
from rubric.suites.reporters.rendering import shown
from rubric.suites.reporters.sarif import Issue, issues, near

if TYPE_CHECKING:
    from rubric.suites.report import Report


NOWHERE = "rubric"
"""The path of a case that was written in no file; the format wants one."""


def render(report: Report) -> str:
    """Return *report* as a code quality report."""
    return written([_entry(issue) for issue in issues(report)], indent=2) + "\n"


def _entry(issue: Issue) -> dict[str, Any]:
    place = issue.row.place
    return {
        "description": issue.message,
        "check_name": issue.rule,
        "fingerprint": issue.fingerprint,
        "severity": _severity(issue),
        "location": {
            "path": shown(_relative(place.source)) if place else NOWHERE,
            "lines": {"begin": max(place.line, 1) if place else 1},
        },
    }


def _severity(issue: Issue) -> str:
    """Return how bad it is: a failed gate outweighs a low score, and both what could not be judged."""
    if issue.level == "error":
        return "critical" if issue.entry is not None and issue.entry.gated else "major"
    return "minor" if issue.level == "warning" else "info"


def _relative(source: str) -> str:
    """Return *source* without what GitLab does not take at its start."""
    return near(source).replace("\\", "/").removeprefix("./") or NOWHERE
