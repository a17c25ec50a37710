"""
Reports for tools that list issues: SARIF 2.1.0 for code scanning, and GitLab's code quality.

An issue is a criterion that kept a case from passing, at the place where the case was written; a note marks a vacuous
pass. SARIF, the OASIS standard for results of static analysis, calls the criteria rules. GitLab shows issues in merge
requests, and recognises an issue by its fingerprint.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any, Literal
from urllib.parse import quote

from attrs import frozen

from rubric.embed import line, shown
from rubric.results import Entry, Row
from rubric.suites.report import Deferred, Report, dump_json

Level = Literal["error", "warning", "note"]
_DEFERRED: dict[Deferred, Level] = {"pass": "note", "fail": "error", "error": "warning"}


@frozen
class Issue:
    """
    A criterion that kept a case from passing, or a pass without any criterion that applied.

    Args:
        entry: The criterion; None for the case as a whole.
        rule: The rubric's name and the criterion's id, the same in every run.
        level: `error` if it failed, `warning` if it could not be judged, else `note`.
        fingerprint: The same for the same case and criterion in every run, and unique in the report.
    """

    row: Row
    entry: Entry | None
    rule: str
    level: Level
    message: str
    fingerprint: str


def issues(report: Report) -> list[Issue]:
    """Return the issues of *report*, in the order of its rows."""
    levels: dict[str, Level] = {"passed": "note", "failed": "error", "ungraded": "warning"}
    levels["deferred"] = _DEFERRED[report.deferred]
    seen: Counter[str] = Counter()
    found: list[Issue] = []
    for row in report:
        for entry in _causes(row):
            id_ = entry.id if entry is not None else ""
            rule = line("/".join(filter(None, (row.rubric, id_))), 200) or "case"
            key = f"{report.suite}\x1f{row.id}\x1f{row.rubric}\x1f{id_}"
            seen[key] += 1
            fingerprint = _digest(f"{key}\x1f{seen[key]}")
            found.append(Issue(row, entry, rule, levels[row.status], message_of(row, entry), fingerprint))
    return found


def _causes(row: Row) -> Iterator[Entry | None]:
    """Yield the criteria that kept *row* from passing; None if no single one did, or for a vacuous pass."""
    if row.status == "passed":
        yield from [None] if row.vacuous else []
        return
    wrong: list[Entry] = []
    if row.status == "failed":
        wrong = [entry for entry in row.entries if row.falls_short(entry)]
    elif row.status == "ungraded":
        wrong = [entry for entry in row.entries if entry.status in ("unjudged", "abstained") or entry.gated]
    yield from wrong or (None,)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def message_of(row: Row, entry: Entry | None) -> str:
    """Return what happened: the case, the criterion, its result and the reason."""
    name = line(row.id, 200)
    if entry is None:
        why = line(row.reason) or ("" if row.vacuous else "No reason was given.")
        status = ", ".join(filter(None, (row.status, row.remark)))
        return f"{name}: {status}. {why}".rstrip()
    gate = ", and fails the grade" if entry.gated else ""
    reason = line(entry.reason) or "No reason was given."
    return f"{name}: {line(entry.text, 200) or line(entry.id)}: {entry.result}{gate}. {reason}"


def near(source: str) -> str:
    """Return the file name *source* relative to the working folder, if it is inside: readers know no other folder."""
    path = Path(source)
    try:
        return str(path.relative_to(Path.cwd())) if path.is_absolute() else source
    except (OSError, ValueError):  # it is elsewhere, or the working folder has been deleted
        return source


def address(source: str) -> str:
    """Return the file name *source* as a relative URI reference, or as a `file:` one where it is absolute."""
    source = near(source)
    drive = PureWindowsPath(source).drive
    posix = (PureWindowsPath(source) if drive else PurePath(source)).as_posix()
    path = quote(posix.encode("utf-8", "surrogatepass"), safe="/:" if drive else "/~")
    if drive:
        return f"file:///{path}"
    return f"file://{path}" if path.startswith("/") else path


# -- SARIF -----------------------------------------------------------------------------------------------

VERSION = "2.1.0"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
TOOL = "rubric"


def render_sarif(report: Report) -> str:
    """Return *report* as a SARIF log of one run."""
    found = issues(report)
    # A rule is its name and the text of the criterion: rules of one name get the start of a hash of their text.
    keys = list(dict.fromkeys(map(_rule_of, found)))
    times = Counter(name for name, _ in keys)
    names = {key: key[0] if times[key[0]] == 1 else f"{key[0]}/{_digest(key[1])[:8]}" for key in keys}
    places = {name: n for n, name in enumerate(names.values())}
    driver: dict[str, Any] = {"name": TOOL, "rules": [_describe(name, text) for (_, text), name in names.items()]}
    if report.version:
        driver["version"] = shown(report.version)
    # `executionSuccessful` says that every case was graded, not that it passed.
    invocation: dict[str, Any] = {"executionSuccessful": not report.counts["ungraded"], "exitCode": report.exit_code}
    if report.warnings:
        notes = [{"level": "warning", "message": {"text": line(warning)}} for warning in report.warnings]
        invocation["toolConfigurationNotifications"] = notes
    run = {
        "tool": {"driver": driver},
        "automationDetails": {"id": f"{TOOL}/{line(report.suite, 200)}"},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(issue, names[_rule_of(issue)], places[names[_rule_of(issue)]]) for issue in found],
    }
    return dump_json({"$schema": SCHEMA, "version": VERSION, "runs": [run]}, indent=2) + "\n"


def _rule_of(issue: Issue) -> tuple[str, str]:
    return issue.rule, issue.entry.text if issue.entry is not None else "The case as a whole."


def _describe(name: str, text: str) -> dict[str, Any]:
    full = line(text, 1000) or name
    return {"id": name, "shortDescription": {"text": line(text, 120) or name}, "fullDescription": {"text": full}}


def _result(issue: Issue, rule: str, index: int) -> dict[str, Any]:
    row, entry, place = issue.row, issue.entry, issue.row.place
    location: dict[str, Any] = {"logicalLocations": [{"name": line(row.id, 200), "kind": "test"}]}
    if place:
        region = {"startLine": max(place.line, 1), "startColumn": max(place.column, 1)}
        location["physicalLocation"] = {"artifactLocation": {"uri": address(place.source)}, "region": region}
    properties: dict[str, Any] = {"status": row.status, "score": row.score, "threshold": row.threshold}
    if row.vacuous:
        properties["vacuous"] = True
    if entry is not None:
        properties |= {"criterion": entry.status, "contribution": entry.contribution, "gated": entry.gated}
    return {
        "ruleId": rule,
        "ruleIndex": index,
        "level": issue.level,
        "message": {"text": issue.message},
        "locations": [location],
        "partialFingerprints": {"rubric/v1": issue.fingerprint},
        "properties": properties,
    }


# -- GitLab ----------------------------------------------------------------------------------------------

NOWHERE = "rubric"
"""The path of a case that was written in no file; the format requires one."""


def render_gitlab(report: Report) -> str:
    """Return *report* as a code quality report."""
    return dump_json([_gitlab_issue(issue) for issue in issues(report)], indent=2) + "\n"


def _gitlab_issue(issue: Issue) -> dict[str, Any]:
    place = issue.row.place
    # A failed gate is above a low score, and both are above a criterion without a verdict.
    severity = {"error": "major", "warning": "minor", "note": "info"}[issue.level]
    if issue.level == "error" and issue.entry is not None and issue.entry.gated:
        severity = "critical"
    path = near(place.source).replace("\\", "/").removeprefix("./") if place else ""  # GitLab takes no leading `./`
    return {
        "description": issue.message,
        "check_name": issue.rule,
        "fingerprint": issue.fingerprint,
        "severity": severity,
        "location": {"path": shown(path or NOWHERE), "lines": {"begin": max(place.line, 1) if place else 1}},
    }
