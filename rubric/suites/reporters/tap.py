"""
TAP, the Test Anything Protocol: version 14, which readers of version 13 understand too.

A character that a description cannot hold (a number sign starts a directive) is replaced by one that looks like it; the
diagnostics hold the id unchanged.
"""

from __future__ import annotations

import re
from typing import Any

from rubric.embed import cut, line
from rubric.results import Entry, Row
from rubric.suites.report import Report, dump_json

LONGEST = 2_000
"""Characters of a text in the diagnostics."""


def render(report: Report) -> str:
    """Return *report* as TAP: failed, ungraded and (unless they count as a pass) deferred cases are `not ok`."""
    plan = f"1..{len(report)}" if len(report) else "1..0 # SKIP no cases"
    lines = ["TAP version 14", plan]
    for number, row in enumerate(report, 1):
        description = line(row.id, 200).replace("#", "＃").replace("\\", "＼")  # noqa: RUF001 - stand-ins
        description += f" ({row.remark})" if row.remark else ""
        is_skipped = row.status == "deferred" and report.deferred == "pass"
        result = "ok" if row.status == "passed" or is_skipped else "not ok"
        lines.append(f"{result} {number} - {description}{' # SKIP deferred' if is_skipped else ''}")
        lines.append("  ---")  # a YAML block of JSON values, which are YAML too
        for key, value in _diagnostics(row).items():
            if isinstance(value, list):
                lines += [f"  {key}:", *(f"    - {_ascii(dump_json(item))}" for item in value)]
            else:
                lines.append(f"  {key}: {_ascii(dump_json(value))}")
        lines.append("  ...")
    lines += [f"# {line(warning)}" for warning in report.warnings]
    counts = ", ".join(f"{count} {status}" for status, count in report.counts.items())
    return "\n".join([*lines, f"# {counts}; {report.usage}"]) + "\n"


def _diagnostics(row: Row) -> dict[str, Any]:
    """Return the details of a case, without empty ones."""
    data: dict[str, Any] = {
        "id": cut(row.id, LONGEST),
        "status": row.status,
        "message": cut(row.reason, LONGEST),
        "score": row.score,
        "threshold": row.threshold,
        "vacuous": row.vacuous or None,
        "path": line(row.walk, LONGEST),
        "gates": [cut(gate, LONGEST) for gate in row.gates],
        "criteria": [_criterion(entry) for entry in row.entries],
        "at": cut(str(row.place), LONGEST) if row.place else None,
    }
    return {key: value for key, value in data.items() if value not in (None, "", [])}


def _criterion(entry: Entry) -> dict[str, Any]:
    data = {
        "id": cut(entry.id, LONGEST),
        "status": entry.status,
        "contribution": entry.contribution,
        "reason": cut(entry.reason, LONGEST),
    }
    more = {
        "evidence": line(entry.quotes, LONGEST),
        "path": line(entry.walk, LONGEST),
        "parts": [_criterion(part) for part in entry.parts],
    }
    return {**data, **{key: value for key, value in more.items() if value}}


def _ascii(json: str) -> str:
    """Return *json* with escapes that YAML reads as one character each; JSON's surrogate pairs would be two."""

    def escape(match: re.Match[str]) -> str:
        point = ord(match[0])
        return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"  # noqa: PLR2004 - four digits' worth

    return re.sub("[^\x20-\x7e]", escape, json)
