"""What is to be known of a report, one issue a criterion: what SARIF and GitLab's code quality are made of."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path, PurePath, PureWindowsPath
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from attrs import frozen

from rubric.suites.reporters.excerpts import VACUOUS, line
from rubric.suites.rows import Entry, Row, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.suites.reports import Deferred, Report

__all__ = ["Issue", "issues", "short"]

Level = Literal["error", "warning", "note"]
TOLERANCE = 1e-9

_DEFERRED: dict[Deferred, Level] = {"pass": "note", "fail": "error", "error": "warning"}


@frozen
class Issue:
    """
    One thing that kept a case from passing; or that nothing applied to it, so that its pass was judged by nobody.

    Args:
        row: The case.
        entry: The criterion; None where the case as a whole is the matter.
        rule: What it is called, the same in every run: the rubric's name and the criterion's id.
        level: `error` for what failed, `warning` for what could not be judged, `note` for what is only to be known.
        message: What happened, in a sentence or two.
        fingerprint: The same for the same case and criterion in every run, and of no other issue of the report.
    """

    row: Row
    entry: Entry | None
    rule: str
    level: Level
    message: str
    fingerprint: str


def issues(report: Report) -> list[Issue]:
    """Return what is to be known, in the order of the rows."""
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


def short(row: Row, entry: Entry) -> bool:
    """Say whether *entry* failed the grade, or contributes less than the whole grade has to reach."""
    if entry.gated:
        return True
    enough = 1.0 if row.threshold is None else row.threshold
    return entry.contribution is not None and bool(entry.weight) and entry.contribution < enough - TOLERANCE


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
    """Return what happened: the case, the criterion, what it came to and why."""
    if entry is None:
        why = line(row.reason) or ("" if row.vacuous else "No reason was given.")
        status = f"{row.status}, {VACUOUS}" if row.vacuous else row.status
        return f"{line(row.id, 200)}: {status}. {why}".rstrip()
    came_to = entry.status if entry.contribution is None else f"{entry.contribution:.2f}"
    gate = ", and fails the grade" if entry.gated else ""
    reason = line(entry.reason) or "No reason was given."
    return f"{line(row.id, 200)}: {line(entry.text, 200) or line(entry.id)}: {came_to}{gate}. {reason}"


def near(source: str) -> str:
    """Return the file name *source* as it is from the working folder, if it lies in that; readers know no other."""
    path = Path(source)
    try:
        return str(path.relative_to(Path.cwd())) if path.is_absolute() else source
    except (OSError, ValueError):  # it lies elsewhere, or there is no working folder any more
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
