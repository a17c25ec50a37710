"""
From a case and what it came to, to a row of the report.

Every text is made safe before it enters a row (`rubric.suites.masking`). Quotes are moved along, so that
`row.output[start:end]` is the quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import evolve

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.secrets import clean, moved, whole
from rubric.internals.text import as_json, shorten
from rubric.results.result import Grade, Ungraded
from rubric.scoring.outcomes import Outcome, outcome, unknown
from rubric.suites.assignment import NOBODY, name_of
from rubric.suites.cases import Case
from rubric.suites.report import Entry, Row, Status, Vote, below
from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Evidence, Finding, NotApplicable, Scored, Step, Unjudged
from rubric.values.requests import Failure
from rubric.values.rubrics import Rubric, describe

_MOST_OF_A_CELL = 40


def row_of(
    case: Case, result: Grade | Ungraded, candidate: Candidate | None = None, *, judge: str | None = None
) -> Row:
    """
    Return the row of *case*.

    Args:
        result: What it came to.
        candidate: What was graded, where it is not the case's own.
        judge: Who judged, in words; None leaves that to the result.
    """
    candidate = candidate or case.candidate or case.responding("")
    maker = _Maker(case.rubric, candidate.output)
    return evolve(
        _frame(case, candidate),
        status=_status(result),
        score=result.score if isinstance(result, Grade) else None,
        verdict=result.verdict if isinstance(result, Grade) else "",
        shown=result.shown if isinstance(result, Grade) else "",
        bounds=result.bounds,
        reason=_why(_safe(result)),
        judge=clean((name_of(result.judge) if judge is None else judge) if _was_judged(result) else ""),
        entries=maker.entries(result),
        votes=_votes(result),
        gates=tuple(clean(gate) for gate in result.outcome.gates),
        path=_steps(result.path),
        warnings=tuple(clean(warning) for warning in result.warnings),
        usage=result.usage,
        vacuous=result.outcome.vacuous,
        result=result,
    )


def deferred_row(case: Case, reason: str) -> Row:
    """Return the row of a *case* of which there was nothing to judge, or nobody to judge it."""
    return evolve(_frame(case, case.candidate or case.responding("")), status="deferred", reason=clean(reason))


def ungraded(case: Case, failure: Failure) -> Ungraded:
    """Return the result of a *case* that came to nothing before a criterion was judged, because of *failure*."""
    missing = tuple(Unjudged(criterion.id, failure) for criterion in case.rubric.judged)
    return Ungraded(case.rubric, NOBODY, missing, unknown(case.rubric), usage=failure.usage, failures=(failure,))


def row_id(case: Case) -> str:
    """Return the case's id; with the coordinates of its cell, if it names none itself: in brackets, or by value."""
    if case.id.endswith("]") or any(str(value) in case.id for value in case.cell.values()):
        return case.id
    coordinates = [f"{name}={shorten(clean(str(value)), _MOST_OF_A_CELL)}" for name, value in case.cell.items()]
    return f"{case.id} [{', '.join(coordinates)}]" if coordinates else case.id


def _frame(case: Case, candidate: Candidate) -> Row:
    """Return what the row says of the case itself."""
    return Row(
        clean(row_id(case)),
        "deferred",
        threshold=case.rubric.threshold,
        rubric=clean(case.rubric.name),
        input=clean(_input(candidate)),
        output=clean(candidate.output),
        run=tuple(clean(f"{c.name}({as_json(thaw(c.arguments))}){_result(c.result)}") for c in candidate.tool_calls),
        cell=_clean_map(case.cell),
        tags=tuple(clean(tag) for tag in case.tags),
        place=case.place,
    )


def _input(candidate: Candidate) -> str:
    return candidate.input or "\n".join(f"{m.role}: {m.content}" for m in candidate.messages)


def _result(value: Any) -> str:
    return "" if value is None else f" → {value if isinstance(value, str) else as_json(thaw(value))}"


def _clean_map(values: Mapping[str, Any]) -> FrozenMap:
    return FrozenMap({clean(name): clean(v) if isinstance(v, str) else v for name, v in values.items()})


def _status(result: Grade | Ungraded) -> Status:
    if isinstance(result, Grade):
        return "passed" if result.passed else "failed"
    return "ungraded"


def _was_judged(result: Grade | Ungraded) -> bool:
    """Say whether a judge was asked: code alone takes no calls, and a target's are not a judge's."""
    return result.usage.calls > 0 and result.judge is not NOBODY


# -- why -------------------------------------------------------------------------------------------------


def _safe(result: Grade | Ungraded) -> Grade | Ungraded:
    """Return *result* with its texts made safe: before any of them is cut, since half a key is not known for one."""
    return evolve(result, findings=tuple(_safe_finding(finding) for finding in result.findings))


def _safe_finding(finding: Finding) -> Finding:
    if isinstance(finding, Unjudged):
        failure = evolve(finding.failure, message=clean(finding.failure.message))
        return evolve(finding, failure=failure, text=clean(finding.text))
    return evolve(finding, reason=clean(finding.reason))


def _why(result: Grade | Ungraded) -> str:
    return clean(_why_failed(result) if isinstance(result, Grade) else _why_ungraded(result))


def _why_ungraded(result: Ungraded) -> str:
    if result.judge is NOBODY and result.failures:  # one reason for all criteria
        return f"not graded: {result.failures[0].message}"
    head, *lines = result.explain().splitlines()
    return shorten(f"{head}: {'; '.join(line.strip() for line in lines)}", 1_000)


def _why_failed(result: Grade) -> str:
    if result.passed:
        return ""
    if result.degenerate:
        return f"the candidate {result.degenerate}"
    if result.rubric.negate:
        return f"it meets {result.rubric.name or 'the rubric'!r}, which it must not"
    reasons = [*_gates(result), *_counts(result), *_mean(result)]
    return "; ".join(reasons) or _advice(result)


def _gates(result: Grade) -> list[str]:
    return [f"{id_!r} failed it{_because(result[id_])}" for id_ in result.gates]


def _because(finding: Finding) -> str:
    said = shorten(finding.reason, 300) if isinstance(finding, Scored) else ""
    return f" ({said})" if said else ""


def _counts(result: Grade) -> list[str]:
    if not result.votes:
        return []
    passed = sum(vote.passed is True for vote in result.votes)
    return [f"{passed} of {len(result.votes)} votes passed"]


def _mean(result: Grade) -> list[str]:
    rubric = result.rubric
    if rubric.strict and result.score < 1:
        return [f"the score {below(result.score, 1, 3)} is not perfect, and the rubric is strict"]
    if rubric.threshold is not None and result.score < rubric.threshold:
        return [f"the score {below(result.score, rubric.threshold, 3)} is below the threshold {rubric.threshold:g}"]
    return []


def _advice(result: Grade) -> str:
    return shorten(result.feedback() or "the judge did not pass it", 600)


# -- criteria and votes ----------------------------------------------------------------------------------


def _votes(result: Grade | Ungraded) -> tuple[Vote, ...]:
    names = _names(result.votes)
    return tuple(
        Vote(clean(name), vote.outcome.score, vote.passed, vote.outcome.verdict or "ungraded")
        for name, vote in zip(names, result.votes, strict=True)
    )


def _names(votes: Sequence[Grade | Ungraded]) -> list[str]:
    """Return who cast each of *votes*; votes of the same name are numbered."""
    names = [name_of(vote.judge) for vote in votes]
    return [f"{name} #{names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _steps(path: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(evolve(step, question=clean(step.question), reason=clean(step.reason)) for step in path)


_STATUS: dict[type, Literal["scored", "not applicable", "abstained", "unjudged"]] = {
    Scored: "scored",
    NotApplicable: "not applicable",
    Abstained: "abstained",
    Unjudged: "unjudged",
}


class _Maker:
    """Makes the entries of one case: *rubric* as the suite has it, and the *output* that is quoted."""

    def __init__(self, rubric: Rubric, output: str) -> None:
        self._rubric = rubric
        self._output = clean(output)
        self._moved = moved(whole(output), self._output)

    def entries(self, result: Grade | Ungraded) -> tuple[Entry, ...]:
        """Return an entry a criterion, with those of the votes in them."""
        own = self._of_rubric(self._rubric, result.findings, result.outcome)
        ballots = [(name, self.entries(vote)) for name, vote in zip(_names(result.votes), result.votes, strict=True)]
        return tuple(
            evolve(entry, votes=tuple(evolve(ballot[n], judge=clean(name)) for name, ballot in ballots))
            for n, entry in enumerate(own)
        )

    def _of_rubric(self, rubric: Rubric, findings: Sequence[Finding], came_to: Outcome) -> list[Entry]:
        return [self._entry(c, finding, came_to) for c, finding in zip(rubric.judged, findings, strict=True)]

    def _entry(self, criterion: Criterion, finding: Finding, came_to: Outcome) -> Entry:
        entry = Entry(
            clean(criterion.id),
            clean(criterion.text),
            _STATUS[type(finding)],
            contribution=came_to.contributions.get(criterion.id),
            weight=criterion.weight,
            answer=clean(describe(criterion)),
            gated=criterion.id in came_to.gates,
            reason=clean(_why_unjudged(finding) if isinstance(finding, Unjudged) else finding.reason),
        )
        if isinstance(finding, Scored):
            entry = evolve(
                entry,
                score=finding.score,
                value=clean(_as_text(finding.value)),
                level=clean(finding.level),
                evidence=tuple(self._quoted(evidence) for evidence in finding.evidence),
            )
        if isinstance(finding, Scored | Unjudged):
            entry = evolve(entry, path=_steps(finding.path), parts=self._parts(criterion, finding))
        return entry

    def _parts(self, criterion: Criterion, finding: Scored | Unjudged) -> tuple[Entry, ...]:
        if not isinstance(criterion.answer, Rubric) or not finding.parts:
            return ()
        return tuple(self._of_rubric(criterion.answer, finding.parts, outcome(criterion.answer, finding.parts)))

    def _quoted(self, evidence: Evidence) -> Evidence:
        """Return *evidence* as it stands in the row's output."""
        if evidence.start is None or evidence.end is None or evidence.where != "output":
            return evolve(evidence, text=clean(evidence.text))
        start, end = self._moved(evidence.start)[0], self._moved(evidence.end)[1]
        return evolve(evidence, text=self._output[start:end], start=start, end=end)


def _why_unjudged(finding: Unjudged) -> str:
    """Return the failure in words; that it is about its own criterion goes without saying."""
    own = finding.failure.criterion == finding.id
    return str(evolve(finding.failure, criterion="") if own else finding.failure)


def _as_text(value: bool | float | str | None) -> str:  # noqa: FBT001
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else value if isinstance(value, str) else f"{value:g}"
