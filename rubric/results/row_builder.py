"""
From a result to a row: plain data for reports and cards.

Every text is masked before it enters a row: no row holds a key, a password or half a surrogate. Quotes move with the
text around them, so that `row.output[start:end]` is the quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from rubric.internals.secrets import clean, moved, whole
from rubric.internals.text import shorten
from rubric.results.plain import KINDS, Record
from rubric.results.rows import Entry, Row, Vote, below
from rubric.scoring.aggregation import Outcome, outcome
from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.findings import Evidence, Finding, Scored, Step, Unjudged
from rubric.values.numbered import numbered
from rubric.values.rubrics import Rubric, describe

if TYPE_CHECKING:
    from rubric.results.result import Grade, Ungraded


@frozen(eq=False)
class RowBuilder:
    """
    Builds the rows of many results.

    It masks a text that many of them share, such as a criterion's, once.
    """

    # Both caches end with the builder. A secret that enters the environment meanwhile is masked in everything that is
    # produced later (outputs, reasons), but not in a text of a rubric that was masked before.
    _labels: dict[str, str] = field(factory=dict, init=False)
    # By `id()`, since hashing a criterion costs more than masking it; the value keeps the criterion alive, or another
    # criterion could get its number.
    _criteria: dict[int, tuple[Criterion, str, str, str]] = field(factory=dict, init=False)

    def of(self, result: Grade | Ungraded, id: str = "", candidate: Candidate | None = None, **more: Any) -> Row:
        """
        Return *result* as a row.

        Args:
            id: The row's; left empty, the candidate's key or the place of the result.
            candidate: The graded candidate; None: the result's own, if it kept one.
            more: Further fields of the row, which replace those that the result gives.
        """
        candidate = candidate or result.candidate or Candidate("")
        output = _Output(candidate.output)
        score, verdict = result.outcome.score, result.outcome.verdict
        where = "" if result.index is None else f"#{result.index}"
        fields: dict[str, Any] = {
            **self.of_candidate(candidate, output),
            "id": clean(id or result.key or where or result.rubric.name or "result"),
            "rubric": self._label(result.rubric.name),
            "threshold": result.rubric.threshold,
            "status": "ungraded" if score is None else "passed" if result.outcome.worst.passed else "failed",
            "score": score,
            "verdict": verdict or "",
            "shown": "" if score is None else result.rubric.scale.show(score, passed=result.outcome.worst.passed),
            "bounds": result.bounds,
            "judge": self._label(result.judge.name) if result.usage.calls else "",  # code alone takes no calls
            "entries": self._entries(result.rubric, result, result.findings, output),
            "votes": tuple(
                Vote(self._label(name), vote.outcome.score, vote.passed, vote.outcome.verdict or "ungraded")
                for name, vote in zip(_names(result.votes), result.votes, strict=True)
            ),
            "gates": tuple(map(self._label, result.outcome.gates)),
            "path": self._steps(result.path),
            "warnings": tuple(map(clean, result.warnings)),
            "usage": result.usage,
            "vacuous": result.outcome.vacuous,
            "result": result,
            **more,
        }
        if "reason" not in fields:
            has_passed = score is not None and result.outcome.worst.passed
            fields["reason"] = "" if has_passed else clean(_why(result))
        return Row(**fields)

    def of_record(self, data: object, rubric: Rubric) -> Row:
        """Return the result of *rubric* that `to_dict` wrote as *data*, as a row without its candidate."""
        record = Record.from_dict(data, "results")
        found = {finding.id: finding for finding in record.findings}
        return Row(
            "",
            "ungraded" if record.score is None else "passed" if record.passed else "failed",
            record.score,
            record.verdict or "",
            shown="" if record.score is None else f"{record.score:.2f}",
            threshold=rubric.threshold,
            bounds=record.bounds,
            entries=tuple(self.entry(each, found[each.id], record) for each in rubric.judged if each.id in found),
            gates=record.gates,
            vacuous=record.vacuous,
        )

    def of_candidate(self, candidate: Candidate, output: _Output | None = None) -> dict[str, Any]:
        """Return the fields of a row that show *candidate*."""
        run = numbered(candidate.part) if candidate.part else ()
        text = clean(candidate.output) if output is None else output.text
        return {"input": clean(candidate.input), "output": text, "run": tuple(clean(step.text) for step in run)}

    def _label(self, text: str) -> str:
        """Return *text* of the suite or of a judge, masked."""
        if text not in self._labels:
            self._labels[text] = clean(text)
        return self._labels[text]

    def _entries(
        self, rubric: Rubric, result: Grade | Ungraded, findings: Sequence[Finding], output: _Output
    ) -> tuple[Entry, ...]:
        """Return an entry for each criterion, which holds those of the votes; *findings* are the result's."""
        own = self._of_rubric(rubric, findings, result.outcome, output)
        if not result.votes:
            return own
        ballots = [
            (self._label(name), self._entries(rubric, vote, vote.findings, output))
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
        return tuple(self.entry(criterion, finding, result, output) for criterion, finding in pairs)

    def entry(
        self, criterion: Criterion, finding: Finding, result: Outcome | Record, output: _Output | None = None
    ) -> Entry:
        """Return the entry of *criterion*; without the *output*, it has no quotes and no parts."""
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
                "evidence": () if output is None else tuple(map(output.quoted, finding.evidence)),
            }
        if isinstance(finding, Scored | Unjudged):
            more["path"] = self._steps(finding.path)
            inner = criterion.answer
            if isinstance(inner, Rubric) and finding.parts and output is not None:
                more["parts"] = self._of_rubric(inner, finding.parts, outcome(inner, finding.parts), output)
        if isinstance(finding, Unjudged):  # the failure, without the name of its own criterion
            own = finding.failure.criterion == finding.id
            reason = clean(str(evolve(finding.failure, criterion="") if own else finding.failure))
        else:
            reason = finding.reason
        return Entry(
            id_,
            text,
            KINDS[type(finding)],
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
        return tuple(evolve(step, question=self._label(step.question)) for step in path)


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
            return evidence
        start, end = self._moved(evidence.start)[0], self._moved(evidence.end)[1]
        return evolve(evidence, text=self.text[start:end], start=start, end=end)


def _names(votes: Sequence[Grade | Ungraded]) -> list[str]:
    """Return the name of the judge of each vote; equal names are numbered."""
    names = [vote.judge.name for vote in votes]
    return [f"{name} #{names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _why(result: Any) -> str:
    """Return why *result*, which is no pass, is none."""
    if result.outcome.score is None:
        head, *lines = result.explain().splitlines()
        return shorten(f"{head}: {'; '.join(line.strip() for line in lines)}", 1_000)
    if result.degenerate:
        return f"the candidate {result.degenerate}"
    rubric, score = result.rubric, result.outcome.score
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
