"""What very many results come to, without keeping them: each different outcome is kept once."""

from __future__ import annotations

from typing import Any

from attrs import define, evolve, field, fields

from rubric.exchanges import Failure, Usage
from rubric.findings import Finding, Unjudged
from rubric.gradebooks import Grades, Summary
from rubric.grades import Grade, Ungraded
from rubric.summaries import Frequencies, reasons_of

__all__ = ["Tally"]

_LONG: dict[str, Any] = {"reason": "", "evidence": (), "level": "", "path": (), "parts": (), "votes": (), "text": ""}
"""Fields of findings that are long, and that no summary is about."""


@define(eq=False)
class Tally:
    """Counts results, one after another."""

    _results: list[Grade | Ungraded] = field(factory=list)
    _known: dict[Any, Grade | Ungraded] = field(factory=dict)
    _usage: Usage = Usage()
    _reasons: Frequencies = field(factory=Frequencies)
    _warnings: Frequencies = field(factory=Frequencies)

    def __len__(self) -> int:
        return len(self._results)

    def add(self, result: Grade | Ungraded) -> None:
        """Count *result*."""
        findings = tuple(map(_short, result.findings))
        failures = tuple(Failure(failure.kind, "") for failure in result.failures)
        key = (type(result), result.outcome, findings, failures)
        if key not in self._known:
            self._known[key] = evolve(
                result, findings=findings, failures=failures, usage=Usage(), votes=(), warnings=(), index=None
            )
        self._results.append(self._known[key])
        self._usage += result.usage
        self._reasons.add(reasons_of(result))
        self._warnings.add(result.warnings)

    def summary(self) -> Summary:
        """Return what they come to."""
        summary = Grades(self._results).summary()
        reasons, warnings = self._reasons.most_common(), self._warnings.most_common()
        return evolve(summary, usage=self._usage, reasons=reasons, warnings=warnings)


def _short(finding: Finding) -> Finding:
    changes: dict[str, Any] = {f.name: _LONG[f.name] for f in fields(type(finding)) if f.name in _LONG}
    if isinstance(finding, Unjudged):
        return evolve(finding, failure=Failure(finding.failure.kind, ""), **changes)
    return evolve(finding, **changes)
