"""
JUnit XML, as CI systems read it.

There is no standard; this is the common core: a failure for a failed case, an error for an ungraded one, and for a
deferred one what the report counts it as. The score is among the properties of a case. The criteria are in its failure
or error, and among the properties of a pass, which has neither.
"""

# junitparser was tried: it takes as many lines (its test cases know no file and line), writes by lxml where that is
# installed, overwrites the duration of the run with the sum of its cases', and needs 2.5 times the CPU.

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from rubric.embed import cut, line, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rubric.results import Entry, Row
    from rubric.suites.report import Report


LONGEST = 20_000
"""Characters of a candidate, or of a reason, that are shown."""

_DEFERRED = {"pass": "skipped", "fail": "failure", "error": "error"}


def render(report: Report) -> str:
    """Return *report* as XML, with characters that XML cannot hold as escapes."""
    outcomes = [outcome(report, row) for row in report]
    counts = {f"{name}s": str(outcomes.count(name)) for name in ("failure", "error")}
    taken = f"{max(report.duration, 0):.3f}"
    head = {"name": line(report.suite) or "rubric", "tests": str(len(report)), **counts, "time": taken}
    root = ET.Element("testsuites", head)
    suite = ET.SubElement(root, "testsuite", {**head, "skipped": str(outcomes.count("skipped"))})
    _properties(suite, _of_run(report))
    suite.extend(_case(report, row) for row in report)
    ET.indent(root)
    return f"<?xml version='1.0' encoding='utf-8'?>\n{ET.tostring(root, encoding='unicode')}\n"


def outcome(report: Report, row: Row) -> str:
    """Return the name of the element for the status of *row*; empty for a pass."""
    names = {"passed": "", "failed": "failure", "ungraded": "error", "deferred": _DEFERRED[report.deferred]}
    return names[row.status]


def _of_run(report: Report) -> Iterator[tuple[str, str]]:
    usage = report.usage
    yield "rubric.version", report.version
    yield "rubric.calls", str(usage.calls)
    yield "rubric.prompt_tokens", str(usage.prompt_tokens)
    yield "rubric.completion_tokens", str(usage.completion_tokens)
    yield "rubric.cost_usd", "" if usage.cost is None else f"{usage.cost:.6f}"
    for number, warning in enumerate(report.warnings, 1):
        yield f"rubric.warning.{number}", line(warning)


def _case(report: Report, row: Row) -> ET.Element:
    name = {"name": line(row.id), "classname": line(row.rubric or report.suite) or "rubric"}
    place = {"file": shown(row.place.source), "line": str(max(row.place.line, 1))} if row.place else {}
    case = ET.Element("testcase", name | place)
    _properties(case, _of_case(row))
    if kind := outcome(report, row):
        result = ET.SubElement(case, kind, {"message": line(row.reason) or row.status, "type": row.status})
        criteria = (f"{name}: {_line(row, entry)}" for name, entry in row.all_entries())
        path = f"path: {line(row.walk, 1000)}" if row.path else ""
        more = filter(None, (row.remark, path))
        result.text = "\n".join([shown(cut(row.reason, LONGEST)), *criteria, *more])
    ET.SubElement(case, "system-out").text = shown(cut(row.output, LONGEST))
    return case


def _properties(parent: ET.Element, values: Iterable[tuple[str, str]]) -> None:
    holder = ET.SubElement(parent, "properties")
    for name, value in values:
        if value:
            ET.SubElement(holder, "property", {"name": shown(name), "value": shown(value)})


def _of_case(row: Row) -> Iterator[tuple[str, str]]:
    yield "status", row.status
    yield "score", "" if row.score is None else f"{row.score:.6g}"
    yield "threshold", "" if row.threshold is None else f"{row.threshold:.6g}"
    yield "verdict", row.verdict
    yield "shown", row.shown
    yield "vacuous", row.remark
    yield "judge", row.judge
    yield "tags", ", ".join(row.tags)
    for key, value in row.cell.items():
        yield f"cell.{line(key)}", line(str(value))
    if row.status == "passed":
        yield "path", line(row.walk, 1000)
        for name, entry in row.all_entries():
            yield f"criterion.{name}", _line(row, entry)


def _line(row: Row, entry: Entry) -> str:
    return " · ".join(filter(None, (entry.verdict, line(entry.reason), entry.proof(row))))
