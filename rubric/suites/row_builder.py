"""
From a case and its result to a row of the report.

Every text is masked before it enters a row: no row holds a key, a password or half a surrogate. Quotes move with the
text around them, so that `row.output[start:end]` is the quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, Literal

from attrs import evolve, field, frozen

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.secrets import clean, moved, whole
from rubric.internals.text import as_json, shorten
from rubric.results.result import Grade, Ungraded
from rubric.scoring.aggregation import Outcome, outcome, unknown
from rubric.suites.assignment import NO_JUDGE, name_of
from rubric.suites.cases import Case
from rubric.suites.report import Entry, Row, Vote, below
from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Evidence, Finding, NotApplicable, Scored, Step, Unjudged
from rubric.values.requests import Failure, Usage
from rubric.values.rubrics import Rubric, describe

_LONGEST_COORDINATE = 40

_STATUS: dict[type, Literal["scored", "not applicable", "abstained", "unjudged"]] = {
    Scored: "scored",
    NotApplicable: "not applicable",
    Abstained: "abstained",
    Unjudged: "unjudged",
}


def row_id(case: Case) -> str:
    """Return the id of *case*, with the coordinates of its cell in brackets unless the id names one of them."""
    if case.id.endswith("]") or any(str(value) in case.id for value in case.cell.values()):
        return case.id
    coordinates = [f"{name}={shorten(clean(str(value)), _LONGEST_COORDINATE)}" for name, value in case.cell.items()]
    return f"{case.id} [{', '.join(coordinates)}]" if coordinates else case.id


def ungraded(case: Case, failure: Failure) -> Ungraded:
    """Return the result of a *case* of which no criterion was judged, because of *failure*."""
    missing = tuple(Unjudged(criterion.id, failure) for criterion in case.rubric.judged)
    return Ungraded(case.rubric, NO_JUDGE, missing, unknown(case.rubric), usage=failure.usage, failures=(failure,))


@frozen(eq=False)
class RowBuilder:
    """
    Builds the rows of one run.

    It masks a text that many cases share, such as a criterion's, once a run.
    """

    # Both caches end with the run. A secret that enters the environment during a run is masked in everything that the
    # run produces (outputs, reasons), but not in a text of the suite that was masked before.
    _labels: dict[str, str] = field(factory=dict, init=False)
    # By `id()`, since hashing a criterion costs more than masking it; the value keeps the criterion alive, or another
    # criterion could get its number.
    _criteria: dict[int, tuple[Criterion, str, str, str]] = field(factory=dict, init=False)

    def row(
        self,
        case: Case,
        result: Grade | Ungraded,
        candidate: Candidate | None = None,
        *,
        judge: str | None = None,
        spent: Usage | None = None,
        warnings: Iterable[str] = (),
    ) -> Row:
        """
        Return the row of *case*; without a *candidate*, its own was graded, and without a *judge*, that of *result*.

        The usage of the target and of scripts (*spent*) is added to that of the judges; *warnings* are the target's.
        """
        candidate = candidate or case.candidate or case.responding("")
        output = _Output(candidate.output)
        findings = tuple(map(_masked, result.findings))
        grade = result if isinstance(result, Grade) else None
        was_judged = result.usage.calls > 0 and result.judge is not NO_JUDGE  # code alone takes no calls
        return Row(
            **self._of_case(case, candidate, output),
            status="ungraded" if grade is None else "passed" if grade.passed else "failed",
            score=None if grade is None else grade.score,
            verdict="" if grade is None else grade.verdict,
            shown="" if grade is None else grade.shown,
            bounds=result.bounds,
            reason="" if grade is not None and grade.passed else clean(_why(evolve(result, findings=findings))),
            judge=self._label(name_of(result.judge) if judge is None else judge) if was_judged else "",
            entries=self._entries(case.rubric, result, findings, output),
            votes=tuple(
                Vote(self._label(name), vote.outcome.score, vote.passed, vote.outcome.verdict or "ungraded")
                for name, vote in zip(_names(result.votes), result.votes, strict=True)
            ),
            gates=tuple(map(self._label, result.outcome.gates)),
            path=self._steps(result.path),
            warnings=tuple(map(clean, (*warnings, *result.warnings))),
            usage=result.usage if spent is None else spent + result.usage,
            vacuous=result.outcome.vacuous,
            result=result,
        )

    def deferred(self, case: Case, reason: str) -> Row:
        """Return the row of a *case* without a candidate or without a judge, for this *reason*."""
        candidate = case.candidate or case.responding("")
        return Row(**self._of_case(case, candidate, _Output(candidate.output)), status="deferred", reason=clean(reason))

    def _of_case(self, case: Case, candidate: Candidate, output: _Output) -> dict[str, Any]:
        """Return the fields of a row that do not depend on the result."""
        asked = candidate.input or "\n".join(f"{m.role}: {m.content}" for m in candidate.messages)
        calls = []
        for call in candidate.tool_calls:
            result = call.result if isinstance(call.result, str) else as_json(thaw(call.result))
            returned = "" if call.result is None else f" → {result}"
            calls.append(clean(f"{call.name}({as_json(thaw(call.arguments))}){returned}"))
        cell = {clean(name): clean(v) if isinstance(v, str) else v for name, v in case.cell.items()}
        return {
            "id": clean(row_id(case)),
            "threshold": case.rubric.threshold,
            "rubric": self._label(case.rubric.name),
            "input": clean(asked) if asked else "",
            "output": output.text,
            "run": tuple(calls),
            "cell": FrozenMap(cell),
            "tags": tuple(map(self._label, case.tags)),
            "place": case.place,
        }

    def _label(self, text: str) -> str:
        """Return *text* of the suite or of a judge, masked."""
        if text not in self._labels:
            self._labels[text] = clean(text)
        return self._labels[text]

    def _entries(
        self, rubric: Rubric, result: Grade | Ungraded, findings: Sequence[Finding], output: _Output
    ) -> tuple[Entry, ...]:
        """Return an entry for each criterion, which holds those of the votes; *findings* are the result's, masked."""
        own = self._of_rubric(rubric, findings, result.outcome, output)
        if not result.votes:
            return own
        ballots = [
            (self._label(name), self._entries(rubric, vote, tuple(map(_masked, vote.findings)), output))
            for name, vote in zip(_names(result.votes), result.votes, strict=True)
        ]
        return tuple(
            evolve(entry, votes=tuple(evolve(ballot[n], judge=name) for name, ballot in ballots))
            for n, entry in enumerate(own)
        )

    def _of_rubric(
        self, rubric: Rubric, findings: Sequence[Finding], result: Outcome, output: _Output
    ) -> tuple[Entry, ...]:
        pairs = zip(rubric.judged, findings, strict=True)
        return tuple(self._entry(criterion, finding, result, output) for criterion, finding in pairs)

    def _entry(self, criterion: Criterion, finding: Finding, result: Outcome, output: _Output) -> Entry:
        id_, text, answer = self._criterion(criterion)
        more: dict[str, Any] = {}
        if isinstance(finding, Scored):
            value = finding.value
            if isinstance(value, bool):
                value = "yes" if value else "no"
            elif isinstance(value, int | float):
                value = f"{value:g}"
            more |= {
                "score": finding.score,
                "value": self._label(value or ""),
                "level": self._label(finding.level),
                "evidence": tuple(map(output.quoted, finding.evidence)),
            }
        if isinstance(finding, Scored | Unjudged):
            more["path"] = self._steps(finding.path)
            inner = criterion.answer
            if isinstance(inner, Rubric) and finding.parts:
                more["parts"] = self._of_rubric(inner, finding.parts, outcome(inner, finding.parts), output)
        if isinstance(finding, Unjudged):  # the failure, without the name of its own criterion
            own = finding.failure.criterion == finding.id
            reason = clean(str(evolve(finding.failure, criterion="") if own else finding.failure))
        else:
            reason = finding.reason
        return Entry(
            id_,
            text,
            _STATUS[type(finding)],
            contribution=result.contributions.get(criterion.id),
            weight=criterion.weight,
            answer=answer,
            gated=criterion.id in result.gates,
            reason=reason,
            **more,
        )

    def _criterion(self, criterion: Criterion) -> tuple[str, str, str]:
        """Return the id, the text and the kind of answer of *criterion*, masked."""
        known = self._criteria.get(id(criterion))
        if known is None:
            id_, text, answer = map(self._label, (criterion.id, criterion.text, describe(criterion)))
            known = self._criteria[id(criterion)] = (criterion, id_, text, answer)
        return known[1:]

    def _steps(self, path: Iterable[Step]) -> tuple[Step, ...]:
        return tuple(evolve(step, question=self._label(step.question), reason=clean(step.reason)) for step in path)


class _Output:
    """The text of a candidate, masked, and where quotes lie in it."""

    def __init__(self, text: str) -> None:
        self._unmasked = text
        self.text = clean(text)

    @cached_property
    def _moved(self) -> Any:
        return moved(whole(self._unmasked), self.text)

    def quoted(self, evidence: Evidence) -> Evidence:
        """Return *evidence* with its text and its place in the masked text."""
        if evidence.start is None or evidence.end is None or evidence.where != "output":
            return evolve(evidence, text=clean(evidence.text))
        start, end = self._moved(evidence.start)[0], self._moved(evidence.end)[1]
        return evolve(evidence, text=self.text[start:end], start=start, end=end)


def _masked(finding: Finding) -> Finding:
    """Return *finding* with its texts masked, before any of them is cut: half a key does not look like one."""
    changes: dict[str, Any] = {}
    if isinstance(finding, Unjudged):
        changes["failure"] = evolve(finding.failure, message=clean(finding.failure.message))
        changes["text"] = clean(finding.text)
    elif (reason := clean(finding.reason)) != finding.reason:
        changes["reason"] = reason
    if isinstance(finding, Scored | Unjudged) and finding.parts:
        changes["parts"] = tuple(map(_masked, finding.parts))
    return evolve(finding, **changes) if changes else finding


def _names(votes: Sequence[Grade | Ungraded]) -> list[str]:
    """Return the name of the judge of each vote; equal names are numbered."""
    names = [name_of(vote.judge) for vote in votes]
    return [f"{name} #{names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _why(result: Grade | Ungraded) -> str:
    """Return why *result*, which is no pass, is none."""
    if isinstance(result, Ungraded):
        if result.judge is NO_JUDGE and result.failures:  # one reason for all criteria
            return f"not graded: {result.failures[0].message}"
        head, *lines = result.explain().splitlines()
        return shorten(f"{head}: {'; '.join(line.strip() for line in lines)}", 1_000)
    if result.degenerate:
        return f"the candidate {result.degenerate}"
    rubric, score = result.rubric, result.score
    if rubric.negate:
        return f"it meets {rubric.name or 'the rubric'!r}, which it must not"
    reasons = []
    for id_ in result.gates:
        finding = result[id_]
        said = shorten(finding.reason, 300) if isinstance(finding, Scored) else ""
        reasons.append(f"{id_!r} failed it ({said})" if said else f"{id_!r} failed it")
    if result.votes:
        reasons.append(f"{sum(vote.passed is True for vote in result.votes)} of {len(result.votes)} votes passed")
    if rubric.strict and score < 1:
        reasons.append(f"the score {below(score, 1, 3)} is not perfect, and the rubric is strict")
    elif rubric.threshold is not None and score < rubric.threshold:
        reasons.append(f"the score {below(score, rubric.threshold, 3)} is below the threshold {rubric.threshold:g}")
    return "; ".join(reasons) or shorten(result.feedback() or "the judge did not pass it", 600)
