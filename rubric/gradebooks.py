"""Many results together: what they come to, as a table, and under another rule."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, overload

from attrs import asdict, evolve, field, frozen

from rubric.displays import headline, verdict
from rubric.exchanges import Usage
from rubric.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.grades import Grade, Ungraded
from rubric.grading.estimating import Interval, mean_interval, share_interval
from rubric.judges import Judge
from rubric.rubrics import Rubric
from rubric.showing import cell, table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

__all__ = ["CriterionSummary", "Grades", "Summary"]

_MOST_ROWS = 20


@frozen
class CriterionSummary:
    """
    What many results say of one criterion.

    Args:
        id: The criterion's.
        scored: How many have a score for it.
        mean: The mean of what it contributes, in 0..1 with 1 as good; None if there is no score.
        not_applicable: How many it did not apply to.
        abstained: Of how many the judge could not tell.
        unjudged: How many have no verdict.
        gated: How many it failed as a gate.
    """

    id: str
    scored: int = 0
    mean: float | None = None
    not_applicable: int = 0
    abstained: int = 0
    unjudged: int = 0
    gated: int = 0


@frozen(repr=False)
class Summary:
    """
    What many results come to.

    Args:
        results: How many there are.
        passed: How many pass.
        failed: How many do not, borderline ones included.
        ungraded: How many are no grade; they count in none of the rates.
        pass_rate: The share of the grades that pass; None if there is no grade.
        pass_interval: Where the true share lies, with 95 % confidence (Wilson).
        pass_bounds: The share of all results, if what is ungraded failed, and if it passed.
        mean: The mean score of the grades; None if there is no grade.
        mean_interval: Where the true mean lies, with 95 % confidence (Student's t, within 0..1); None below two grades.
        criteria: Each criterion, in the rubric's order.
        failures: How often each kind of failure made a result ungraded.
        usage: What all results used.
    """

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

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON-able data."""
        return asdict(self)

    def __str__(self) -> str:
        graded = self.passed + self.failed
        parts = [f"{self.results:,} results: {self.passed:,} of {graded:,} grades pass"]
        if self.pass_rate is not None:
            parts.append(f"{_with_interval(self.pass_rate, self.pass_interval, percent=True)}")
        if self.mean is not None:
            parts.append(f"mean {_with_interval(self.mean, self.mean_interval)}")
        if self.ungraded:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.failures.items())
            parts.append(f"{self.ungraded:,} ungraded{f' ({kinds})' if kinds else ''}")
        return "; ".join([*parts, str(self.usage)])

    def __repr__(self) -> str:
        return f"<Summary: {self}>"

    def _repr_markdown_(self) -> str:
        head = ("criterion", "scored", "mean", "not applicable", "abstained", "unjudged", "gate failed")
        rows = [
            (
                c.id,
                c.scored,
                "" if c.mean is None else f"{c.mean:.3f}",
                c.not_applicable,
                c.abstained,
                c.unjudged,
                c.gated,
            )
            for c in self.criteria
        ]
        return f"{cell(self)}\n\n{table(head, rows)}"


def _with_interval(value: float, interval: Interval | None, *, percent: bool = False) -> str:
    form = ".1%" if percent else ".3f"
    return f"{value:{form}}" + ("" if interval is None else f" ({interval[0]:{form}} to {interval[1]:{form}})")


def _as_results(value: Iterable[Grade | Ungraded]) -> tuple[Grade | Ungraded, ...]:
    return tuple(value)


@frozen(repr=False)
class Grades(Sequence[Grade | Ungraded]):
    """
    Many results: a sequence that does not change, in the order of the candidates.

    Slices and `filter` give `Grades` again.

    Args:
        results: The results.
    """

    results: tuple[Grade | Ungraded, ...] = field(default=(), converter=_as_results)

    @overload
    def __getitem__(self, at: int) -> Grade | Ungraded: ...
    @overload
    def __getitem__(self, at: slice) -> Grades: ...
    def __getitem__(self, at: int | slice) -> Grade | Ungraded | Grades:
        """Return the result at a place; for a slice, the results there as `Grades`."""
        return Grades(self.results[at]) if isinstance(at, slice) else self.results[at]

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Grade | Ungraded]:
        return iter(self.results)

    def __repr__(self) -> str:
        return f"<Grades: {self.summary()}>"

    def _repr_markdown_(self) -> str:
        rows = [(_place(result, n), verdict(result), headline(result)) for n, result in enumerate(self[:_MOST_ROWS])]
        more = f"\n\nand {len(self) - _MOST_ROWS:,} more" if len(self) > _MOST_ROWS else ""
        return f"{self.summary()._repr_markdown_()}\n\n{table(('index', 'verdict', 'result'), rows)}{more}"

    @property
    def ungraded(self) -> Grades:
        """The results that are no grade."""
        return self.filter(lambda result: isinstance(result, Ungraded))

    @property
    def graded(self) -> Grades:
        """The results that are a grade."""
        return self.filter(lambda result: isinstance(result, Grade))

    @property
    def passed(self) -> Grades:
        """The grades that pass."""
        return self.filter(_passes)

    @property
    def failed(self) -> Grades:
        """The grades that do not pass, borderline ones included."""
        return self.filter(lambda result: isinstance(result, Grade) and not result.passed)

    @property
    def usage(self) -> Usage:
        """What all of them used."""
        return sum((result.usage for result in self.results), Usage())

    def filter(self, keep: Callable[[Grade | Ungraded], object], /) -> Grades:
        """Return those that *keep* is true of."""
        return Grades(result for result in self.results if keep(result))

    def rescore(self, rubric: Rubric | None = None, *, judge: Any = None, **rule: Any) -> Grades:
        """
        Return what the same findings come to under another rule: no calls; see `Grade.rescore`.

        Raises:
            DefinitionError: The criteria are others, or the votes do not fit.
        """
        any_votes = any(not isinstance(result.judge, Judge) for result in self.results)

        def rescored(result: Grade | Ungraded) -> Grade | Ungraded:
            by = None if any_votes and isinstance(result.judge, Judge) else judge  # what was no candidate has no votes
            return evolve(result.rescore(rubric, judge=by, **rule), index=result.index)

        return Grades(rescored(result) for result in self.results)

    def summary(self) -> Summary:
        """Return what they come to: counts, rates with intervals, each criterion, and what was used."""
        scores = [result.score for result in self.results if isinstance(result, Grade)]
        passed = sum(map(_passes, self.results))
        kinds = Counter(kind for result in self.results if isinstance(result, Ungraded) for kind in _kinds(result))
        missing = len(self) - len(scores)
        return Summary(
            len(self),
            passed,
            len(scores) - passed,
            missing,
            passed / len(scores) if scores else None,
            share_interval(passed, len(scores)),
            (passed / len(self), (passed + missing) / len(self)) if self.results else None,
            fmean(scores) if scores else None,
            mean_interval(scores),
            _criteria(self.results),
            dict(kinds.most_common()),
            self.usage,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return a flat row a result: its score and verdict, `criterion.<id>` for each contribution, what it used."""
        ids = list(dict.fromkeys(finding.id for result in self.results for finding in result.findings))
        return [_row(result, n, ids) for n, result in enumerate(self.results)]

    def to_pandas(self) -> pd.DataFrame:
        """Return the `rows` as a frame of pandas (extra `pandas`)."""
        import pandas as pd  # noqa: PLC0415 - an extra

        return pd.DataFrame(self.rows())

    def to_polars(self) -> pl.DataFrame:
        """Return the `rows` as a frame of polars (extra `polars`)."""
        import polars as pl  # noqa: PLC0415 - an extra

        return pl.DataFrame(self.rows(), infer_schema_length=None)

    def to_jsonl(self, path: str | Path | None = None) -> str:
        """
        Return each result with all of its findings as a line of JSON.

        Args:
            path: A file to write the lines to, instead of returning them; an old one is replaced.
        """
        if path is None:
            return "".join(self._lines())
        with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(self._lines())
        return ""

    def _lines(self) -> Iterator[str]:
        for n, result in enumerate(self.results):
            data = {"index": _place(result, n), **result.to_dict()}
            yield json.dumps(data, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def _passes(result: Grade | Ungraded) -> bool:
    return isinstance(result, Grade) and result.passed


def _place(result: Grade | Ungraded, otherwise: int) -> int:
    return otherwise if result.index is None else result.index


def _kinds(result: Ungraded) -> list[str]:
    """Return the kinds of failure that left a criterion without a verdict; without one, what went wrong at all."""
    missing: list[str] = [finding.failure.kind for finding in result.findings if isinstance(finding, Unjudged)]
    return list(dict.fromkeys(missing or [failure.kind for failure in result.failures] or ["abstained"]))


def _row(result: Grade | Ungraded, n: int, ids: Sequence[str]) -> dict[str, Any]:
    low, high = result.bounds
    kinds = ", ".join(_kinds(result)) if isinstance(result, Ungraded) else None
    return {
        "index": _place(result, n),
        "score": result.outcome.score,
        "passed": result.passed,
        "verdict": verdict(result),
        "low": low,
        "high": high,
        "coverage": result.coverage,
        "gates": ", ".join(result.outcome.gates),
        **{f"criterion.{id_}": result.contributions.get(id_) for id_ in ids},
        "failures": kinds,
        "calls": result.usage.calls,
        "prompt_tokens": result.usage.prompt_tokens,
        "cached_tokens": result.usage.cached_tokens,
        "completion_tokens": result.usage.completion_tokens,
        "cost": result.usage.cost,
    }


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
    """What has been seen of one criterion."""

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
        return CriterionSummary(id, self.kinds[Scored], mean, *counts)
