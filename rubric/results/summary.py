"""Summarise many results: counts, rates and means with their intervals, each criterion, and the usage."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

from attrs import asdict, field, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.text import cell, shorten, table
from rubric.results.result import Grade, Ungraded
from rubric.scoring.intervals import Interval, mean_interval, share_interval
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.requests import Usage

_MOST_SHOWN, _LONGEST_SHOWN = 3, 240


@frozen
class CriterionSummary(NoTruth):
    """
    One criterion over many results.

    Args:
        id: The criterion's.
        scored: The number of results with a score for it.
        mean: The mean contribution, in 0..1 with 1 as good; None if there is no score.
        interval: Where the true mean lies, with 95 % confidence: Wilson's where each contribution is 0 or 1, as of yes
            and no, else Student's, within 0..1. None if there is no score, or for Student's fewer than two.
        not_applicable: The number of results to which it does not apply.
        abstained: The number of results of which the judge could not tell.
        unjudged: The number of results without a verdict on it.
        gated: The number of results that it failed as a gate.
    """

    _truth = ".mean"

    id: str
    scored: int = 0
    mean: float | None = None
    interval: Interval | None = None
    not_applicable: int = 0
    abstained: int = 0
    unjudged: int = 0
    gated: int = 0


@frozen(repr=False)
class Summary(NoTruth):
    """
    Counts, rates and means of many results.

    Args:
        results: The number of results.
        passed: The number of grades that pass.
        failed: The number of grades that do not, borderline ones included.
        ungraded: The number of results that are no grade; they count in none of the rates.
        pass_rate: The share of the grades that pass; None if there is no grade.
        pass_interval: Where the true share lies, with 95 % confidence (Wilson).
        pass_bounds: The share of all results that pass, at least and at most, whatever the missing verdicts are.
        mean: The mean score of the grades; None if there is no grade.
        mean_interval: Where the true mean lies, with 95 % confidence (Student's t, within 0..1); None below two grades.
        criteria: Each criterion, in the rubric's order.
        failures: How often each kind of failure made a result ungraded.
        usage: The usage of all results.
        reasons: How often each failure made a result ungraded, described, the commonest first. Those that differ only
            in numbers and quotations are one, shown as it came first.
        warnings: The number of results with each warning, likewise.
    """

    _truth = ".pass_rate"

    results: int
    passed: int
    failed: int
    ungraded: int
    pass_rate: float | None
    pass_interval: Interval | None
    pass_bounds: Interval | None
    mean: float | None
    mean_interval: Interval | None
    criteria: tuple[CriterionSummary, ...]
    failures: dict[str, int] = field(hash=False)
    usage: Usage
    reasons: dict[str, int] = field(factory=dict, hash=False)
    warnings: dict[str, int] = field(factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON-able data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self._head(), *(f"  {name:<9}  {said}" for name, said in self._facts().items())]
        table = ["", _columns(_HEAD, self._rows())] if self.criteria else []
        return "\n".join([*lines, *table, *(f"\n{remark}" for remark in self._remarks())])

    def __repr__(self) -> str:
        return f"<Summary: {self.line}>"

    def _repr_markdown_(self) -> str:
        facts = [f"- {name}: {cell(said)}" for name, said in self._facts().items()]
        remarks = [f"\n{cell(remark)}" for remark in self._remarks()]
        return "\n".join([f"**{cell(self._head())}**", "", *facts, "", table(_HEAD, self._rows()), *remarks])

    @property
    def line(self) -> str:
        """All but the criteria, in one line."""
        facts = {name: said for name, said in self._facts().items() if name != "used"}
        return "; ".join([self._head(), *(f"{name} {said}" for name, said in facts.items()), _used(self.usage)])

    def _head(self) -> str:
        return f"{self.results:,} results: {self.passed:,} of {self.passed + self.failed:,} grades pass"

    def _facts(self) -> dict[str, str]:
        facts = {
            "pass rate": _with_interval(self.pass_rate, self.pass_interval, "{:.1%}"),
            "mean": _with_interval(self.mean, self.mean_interval, "{:.3f}"),
        }
        if self.ungraded:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.failures.items())
            low, high = self.pass_bounds or (0.0, 1.0)
            facts["ungraded"] = f"{self.ungraded:,} ({kinds}), so {low:.1%} to {high:.1%} of all pass"
        return {name: said for name, said in facts.items() if said} | {"used": _used(self.usage)}

    def _remarks(self) -> list[str]:
        """Return the reasons of ungraded results and the warnings, a line each, the commonest first."""
        told = ((f"{self.ungraded:,} ungraded", self.reasons), ("warnings", self.warnings))
        return [f"{name}: {_commonest(counts)}" for name, counts in told if counts]

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (
                criterion.id,
                criterion.scored,
                _with_interval(criterion.mean, criterion.interval, "{:.3f}"),
                criterion.not_applicable,
                criterion.abstained,
                criterion.unjudged,
                criterion.gated,
            )
            for criterion in self.criteria
        ]


def _commonest(counts: dict[str, int]) -> str:
    shown = [f"{count:,} × {shorten(said, _LONGEST_SHOWN)}" for said, count in [*counts.items()][:_MOST_SHOWN]]
    more = [f"and {len(counts) - _MOST_SHOWN} others"] if len(counts) > _MOST_SHOWN else []
    return "; ".join([*shown, *more])


_HEAD = ("criterion", "scored", "mean", "not applicable", "abstained", "unjudged", "gate failed")


def _used(usage: Usage) -> str:
    cost = "cost unknown" if usage.cost is None else f"${usage.cost:,.4f}"
    cached = f" ({usage.cached_tokens:,} of them cached)" if usage.cached_tokens else ""
    return f"{usage.calls:,} calls, {usage.prompt_tokens:,}{cached} + {usage.completion_tokens:,} tokens, {cost}"


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    if value is None:
        return ""
    return form.format(value) + ("" if interval is None else f" ({' to '.join(map(form.format, interval))})")


def _columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table of plain text: the first column to the left, the others to the right."""
    cells = [list(head), *([str(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        [first.ljust(width) for first, width in zip(line[:1], widths, strict=False)]
        + [each.rjust(width) for each, width in zip(line[1:], widths[1:], strict=True)]
        for line in cells
    ]
    return "\n".join(f"  {'  '.join(line)}".rstrip() for line in lines)


@frozen
class Frequencies:
    """Counts texts; those that differ in numbers and quotations alone are one. At most a thousand are told apart."""

    _counts: dict[str, list[Any]] = field(factory=dict)

    def add(self, texts: Iterable[str]) -> None:
        """Count each of *texts*, which all are of one result, once."""
        for key, said in {_VARYING.sub("#", text): text for text in reversed([*texts])}.items():
            if key in self._counts or len(self._counts) < _MOST_KEPT:
                self._counts.setdefault(key, [said, 0])[1] += 1

    def most_common(self) -> dict[str, int]:
        """Return how often each came, the commonest first."""
        return dict(sorted(map(tuple, self._counts.values()), key=lambda each: -each[1]))


_VARYING = re.compile(r"""\d+|(?<!\w)'[^']*'(?!\w)|"[^"]*"|“[^”]*”""")
_MOST_KEPT = 1_000


def reasons_of(result: Grade | Ungraded) -> list[str]:
    """Describe the failures that left a criterion of *result* without a verdict; nothing for a grade."""
    if isinstance(result, Grade):
        return []
    missing = [finding.failure for finding in result.findings if isinstance(finding, Unjudged)]
    said = [f"{failure.kind}: {failure.message}" for failure in missing or result.failures]
    return said or ["abstained: of every criterion that applies, the judge said that it cannot tell"]


def summarise(results: Sequence[Grade | Ungraded]) -> Summary:
    """Return the summary of *results*."""
    reasons, warnings = Frequencies(), Frequencies()
    for result in results:
        reasons.add(reasons_of(result))
        warnings.add(result.warnings)
    scores = [result.score for result in results if isinstance(result, Grade)]
    passed = sum(isinstance(result, Grade) and result.passed for result in results)
    kinds = Counter(kind for result in results if isinstance(result, Ungraded) for kind in kinds_of(result))
    return Summary(
        len(results),
        passed,
        len(scores) - passed,
        len(results) - len(scores),
        passed / len(scores) if scores else None,
        share_interval(passed, len(scores)),
        _pass_bounds(results),
        fmean(scores) if scores else None,
        mean_interval(scores),
        _criteria(results),
        dict(kinds.most_common()),
        Usage.total(result.usage for result in results),
        reasons.most_common(),
        warnings.most_common(),
    )


def _pass_bounds(results: Sequence[Grade | Ungraded]) -> Interval | None:
    surely = sum(result.passed is True for result in results)
    perhaps = sum(result.passed is not False for result in results)
    return (surely / len(results), perhaps / len(results)) if results else None


def kinds_of(result: Ungraded) -> list[str]:
    """Return the kinds of failure that left a criterion without a verdict; without one, what went wrong at all."""
    missing: list[str] = [finding.failure.kind for finding in result.findings if isinstance(finding, Unjudged)]
    return list(dict.fromkeys(missing or [failure.kind for failure in result.failures] or ["abstained"]))


def _criteria(results: Iterable[Grade | Ungraded]) -> tuple[CriterionSummary, ...]:
    tallies: dict[str, _Tally] = {}
    for result in results:
        gates = result.outcome.gates
        for finding in result.findings:
            tally = tallies.setdefault(finding.id, _Tally())
            tally.add(finding, result.contributions.get(finding.id), gated=finding.id in gates)
    return tuple(tally.summary(id_) for id_, tally in tallies.items())


@frozen
class _Tally:
    """The counts of one criterion so far."""

    kinds: Counter[type] = field(factory=Counter)
    contributions: list[float] = field(factory=list)
    gates: list[bool] = field(factory=list)

    def add(self, finding: Finding, contribution: float | None, *, gated: bool) -> None:
        self.kinds[type(finding)] += 1
        self.gates.append(gated)
        if contribution is not None and isinstance(finding, Scored):
            self.contributions.append(contribution)

    def summary(self, id: str) -> CriterionSummary:
        counts = (self.kinds[NotApplicable], self.kinds[Abstained], self.kinds[Unjudged], sum(self.gates))
        mean = fmean(self.contributions) if self.contributions else None
        return CriterionSummary(id, self.kinds[Scored], mean, self._interval(), *counts)

    def _interval(self) -> Interval | None:
        if all(value in (0, 1) for value in self.contributions):
            return share_interval(round(sum(self.contributions)), len(self.contributions))
        return mean_interval(self.contributions)
