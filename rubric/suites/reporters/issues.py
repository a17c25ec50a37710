"""
Reports for tools that list issues: SARIF 2.1.0 for code scanning, and GitLab's code quality.

An issue is a criterion that kept a case from passing, at the place where the case was written; a note marks a vacuous
pass. SARIF, the OASIS standard for results of static analysis, calls the criteria rules. GitLab shows issues in merge
requests, and recognises an issue by its fingerprint.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path, PurePath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from attrs import frozen

from rubric.suites.report import Entry, Row, Status, written
from rubric.suites.reporters.rendering import VACUOUS, line, short, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.suites.cases import Place
    from rubric.suites.report import Deferred, Report


Level = Literal["error", "warning", "note"]
_DEFERRED: dict[Deferred, Level] = {"pass": "note", "fail": "error", "error": "warning"}


@frozen
class Issue:
    """
    A criterion that kept a case from passing, or a pass without any criterion that applied.

    Args:
        row: The case.
        entry: The criterion; None for the case as a whole.
        rule: The rubric's name and the criterion's id, the same in every run.
        level: `error` if it failed, `warning` if it could not be judged, else `note`.
        message: What happened, in a sentence or two.
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
    seen: Counter[str] = Counter()
    return [_issue(report, row, entry, seen) for row in report for entry in _causes(row)]


def _causes(row: Row) -> Iterator[Entry | None]:
    """Yield the criteria that kept *row* from passing; None if no single one did, or if nobody judged the pass."""
    if row.status == "passed":
        yield from [None] if row.vacuous else []
        return
    wrong = [entry for entry in row.entries if row.status != "deferred" and _is_cause(row, entry)]
    yield from wrong
    if not wrong:
        yield None


def _is_cause(row: Row, entry: Entry) -> bool:
    if row.status == "ungraded":
        return entry.status in ("unjudged", "abstained") or entry.gated
    return short(row, entry)


def _issue(report: Report, row: Row, entry: Entry | None, seen: Counter[str]) -> Issue:
    rule = "/".join(part for part in (row.rubric, entry.id if entry is not None else "") if part)
    key = "\x1f".join((report.suite, row.id, row.rubric, entry.id if entry is not None else ""))
    seen[key] += 1
    digest = hashlib.sha256(f"{key}\x1f{seen[key]}".encode("utf-8", "surrogatepass")).hexdigest()
    return Issue(row, entry, line(rule, 200) or "case", _level(report, row), message_of(row, entry), digest)


def _level(report: Report, row: Row) -> Level:
    if row.status == "deferred":
        return _DEFERRED[report.deferred]
    levels: dict[Status, Level] = {"passed": "note", "failed": "error"}
    return levels.get(row.status, "warning")


def message_of(row: Row, entry: Entry | None) -> str:
    """Return what happened: the case, the criterion, its result and the reason."""
    if entry is None:
        why = line(row.reason) or ("" if row.vacuous else "No reason was given.")
        status = f"{row.status}, {VACUOUS}" if row.vacuous else row.status
        return f"{line(row.id, 200)}: {status}. {why}".rstrip()
    result = entry.status if entry.contribution is None else f"{entry.contribution:.2f}"
    gate = ", and fails the grade" if entry.gated else ""
    reason = line(entry.reason) or "No reason was given."
    return f"{line(row.id, 200)}: {line(entry.text, 200) or line(entry.id)}: {result}{gate}. {reason}"


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
    """Describe the run: `executionSuccessful` says that every case was graded, not that it passed."""
    data: dict[str, Any] = {"executionSuccessful": not report.counts["ungraded"], "exitCode": report.exit_code}
    notes = [{"level": "warning", "message": {"text": line(warning)}} for warning in report.warnings]
    return {**data, "toolConfigurationNotifications": notes} if notes else data


def _key(issue: Issue) -> tuple[str, str]:
    """Return the identity of a rule: its name, and the text of the criterion."""
    text = issue.entry.text if issue.entry is not None else "The case as a whole."
    return issue.rule, text


def _named(found: list[Issue]) -> dict[tuple[str, str], str]:
    """Return the names of the rules: rules of one name get the start of a hash of their text."""
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


# -- GitLab ----------------------------------------------------------------------------------------------

NOWHERE = "rubric"
"""The path of a case that was written in no file; the format requires one."""


def render_gitlab(report: Report) -> str:
    """Return *report* as a code quality report."""
    return written([_gitlab_issue(issue) for issue in issues(report)], indent=2) + "\n"


def _gitlab_issue(issue: Issue) -> dict[str, Any]:
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
    """Return the severity: a failed gate is above a low score, and both are above a criterion without a verdict."""
    if issue.level == "error":
        return "critical" if issue.entry is not None and issue.entry.gated else "major"
    return "minor" if issue.level == "warning" else "info"


def _relative(source: str) -> str:
    """Return *source* without a leading `./`, which GitLab does not take."""
    return near(source).replace("\\", "/").removeprefix("./") or NOWHERE
