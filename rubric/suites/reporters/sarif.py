"""
SARIF 2.1.0, the OASIS standard for results of static analysis, as code scanning reads it.

The rules are criteria. A result is a criterion that kept a case from passing, at the place where the case was written;
a note tells of a pass that is vacuous.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING, Any

from rubric.suites.reporters.excerpts import line, shown
from rubric.suites.reporters.issues import Issue, address, issues
from rubric.suites.reporters.records import written

if TYPE_CHECKING:
    from rubric.suites.cases import Place
    from rubric.suites.reports import Report

__all__ = ["render"]

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
TOOL = "rubric"


def render(report: Report) -> str:
    """Return *report* as a SARIF log of one run."""
    found = issues(report)
    names = _named(found)
    log = {"$schema": SCHEMA, "version": VERSION, "runs": [_run(report, found, names)]}
    return written(log, indent=2) + "\n"


def _run(report: Report, found: list[Issue], names: dict[tuple[str, str], str]) -> dict[str, Any]:
    index = {name: n for n, name in enumerate(names.values())}
    driver: dict[str, Any] = {"name": TOOL, "rules": [_rule(name, key[1]) for key, name in names.items()]}
    if report.version:
        driver["version"] = shown(report.version)
    results = [_result(issue, names[_key(issue)], index[names[_key(issue)]]) for issue in found]
    return {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{TOOL}/{line(report.suite, 200)}"},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": results,
    }


def _invocation(report: Report) -> dict[str, Any]:
    """Return how the run went: `executionSuccessful` says that every case was graded, not that it passed."""
    data: dict[str, Any] = {"executionSuccessful": not report.counts["ungraded"], "exitCode": report.exit_code}
    notes = [{"level": "warning", "message": {"text": line(warning)}} for warning in report.warnings]
    return {**data, "toolConfigurationNotifications": notes} if notes else data


def _key(issue: Issue) -> tuple[str, str]:
    """Return what makes a rule: its name, and the text that is judged."""
    text = issue.entry.text if issue.entry is not None else "The case as a whole."
    return issue.rule, text


def _named(found: list[Issue]) -> dict[tuple[str, str], str]:
    """Return the rules' names: two of the same name get the beginning of a hash of their text."""
    keys = list(dict.fromkeys(_key(issue) for issue in found))
    times = Counter(name for name, _ in keys)
    return {key: key[0] if times[key[0]] == 1 else f"{key[0]}/{_digest(key[1])}" for key in keys}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _rule(name: str, text: str) -> dict[str, Any]:
    full = line(text, 1000) or name
    return {"id": name, "shortDescription": {"text": line(text, 120) or name}, "fullDescription": {"text": full}}


def _result(issue: Issue, rule: str, index: int) -> dict[str, Any]:
    location: dict[str, Any] = {"logicalLocations": [{"name": line(issue.row.id, 200), "kind": "test"}]}
    if issue.row.place:
        location["physicalLocation"] = _physical(issue.row.place)
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": issue.level,
        "message": {"text": issue.message},
        "locations": [location],
        "partialFingerprints": {"rubric/v1": issue.fingerprint},
        "properties": _properties(issue),
    }


def _physical(place: Place) -> dict[str, Any]:
    region = {"startLine": max(place.line, 1), "startColumn": max(place.column, 1)}
    return {"artifactLocation": {"uri": address(place.source)}, "region": region}


def _properties(issue: Issue) -> dict[str, Any]:
    row, entry = issue.row, issue.entry
    data: dict[str, Any] = {"status": row.status, "score": row.score, "threshold": row.threshold}
    data |= {"vacuous": True} if row.vacuous else {}
    if entry is not None:
        data |= {"criterion": entry.status, "contribution": entry.contribution, "gated": entry.gated}
    return data
