"""From a case and its result to a row of the report, see `rubric.results.report_rows`."""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from rubric import Grade, Ungraded, embed
from rubric.driving import Failure
from rubric.embed import FrozenMap, clean, shorten
from rubric.results import Row
from rubric.suites.assignment import NO_JUDGE
from rubric.suites.cases import Case
from rubric.suites.missing_judges import skipped_types
from rubric.suites.targets.base import Response

_LONGEST_COORDINATE = 40


def row_id(case: Case) -> str:
    """Return the id of *case*, with the coordinates of its cell in brackets unless the id names one of them."""
    if case.id.endswith("]") or any(str(value) in case.id for value in case.cell.values()):
        return case.id
    coordinates = [f"{name}={shorten(clean(str(value)), _LONGEST_COORDINATE)}" for name, value in case.cell.items()]
    return f"{case.id} [{', '.join(coordinates)}]" if coordinates else case.id


@frozen(eq=False)
class RowBuilder(embed.RowBuilder):
    """Builds the rows of one run."""

    def row(
        self,
        case: Case,
        result: Grade | Ungraded | Failure,
        response: Response | None = None,
        *,
        judge: str | None = None,
    ) -> Row:
        """
        Return the row of *case*; without a *response*, its own was graded, and without a *judge*, by that of *result*.

        A failure is that of the whole case: no criterion was judged. The usage of the target is added to that of the
        judges.
        """
        response = response or Response(case.candidate or case.responding(""))
        if isinstance(result, Failure):
            result = Ungraded.of(case.rubric, NO_JUDGE, result)
        more: dict[str, Any] = self._of_case(case)
        if result.judge is NO_JUDGE:
            more["judge"] = ""
            if isinstance(result, Ungraded) and result.failures:  # one reason for all criteria
                more["reason"] = clean(f"not graded: {result.failures[0].message}")
        elif judge is not None and result.usage.calls:
            more["judge"] = self._label(judge)
        more["usage"] = response.usage + result.usage
        skipped = skipped_types(case.rubric)
        share = f"skipped as asked: {', '.join(skipped)}; {result.coverage:.0%} of the weight was judged"
        more["warnings"] = tuple(map(clean, (*response.warnings, *result.warnings, *([share] if skipped else []))))
        graded = response.candidate
        variables = {**case.cell, **graded.variables}  # groups of results are told by both
        result = evolve(result, key=graded.key, group=graded.group, variables=FrozenMap(variables), tags=case.tags)
        return self.of(result, row_id(case), graded, **more)

    def deferred_row(self, case: Case, reason: str) -> Row:
        """Return the row of a *case* without a candidate or without a judge, for this *reason*."""
        shown = self.of_candidate(case.candidate or case.responding(""))
        fields = {"rubric": self._label(case.rubric.name), "threshold": case.rubric.threshold, **self._of_case(case)}
        return Row(clean(row_id(case)), status="deferred", reason=clean(reason), **shown, **fields)

    def _of_case(self, case: Case) -> dict[str, Any]:
        """Return the fields of a row that are the case's alone."""
        cell = {clean(name): clean(v) if isinstance(v, str) else v for name, v in case.cell.items()}
        return {"cell": FrozenMap(cell), "tags": tuple(map(self._label, case.tags)), "place": case.place}
