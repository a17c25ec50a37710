"""Summarise many results: counts, rates and means with their intervals, each criterion, and the usage."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from attrs import asdict, define, evolve, field, fields, frozen

from rubric.internals.containers import Listed, NoTruth
from rubric.internals.notebooks import as_html
from rubric.internals.text import cell, columns, counted, shorten, table
from rubric.results.report_rows import lack_of
from rubric.results.result import Grade, Ungraded
from rubric.scoring.intervals import Interval, few_groups, mean_interval, share_interval
from rubric.values.findings import Abstained, Evidence, Finding, NotApplicable, Scored, Unjudged
from rubric.values.requests import NOT_KEPT, Failure, Usage
from rubric.values.run_rules import RunRule, RunRules

_MOST_SHOWN, _LONGEST_SHOWN = 3, 240


@frozen
class CriterionSummary(NoTruth):
    """
    One criterion over many results.

    Args:
        id: The criterion's.
        scored: The number of results with a score for it.
        mean: The mean contribution, in 0..1 with 1 as good; None if there is no score.
        interval: Where the true mean lies, with 95 % confidence: that of a share where each contribution is 0 or 1, as
            of yes and no, else Student's, within 0..1; by group where candidates have groups. None without a score,
            and for Student's fewer than two.
        bounds: The mean over all results to which it applies, at least and at most, whatever those that have no score
            for it would say.
        not_applicable: The number of results to which it does not apply.
        abstained: The number of results of which the judge could not tell.
        unjudged: The number of results without a verdict on it.
        gated: The number of results that it failed as a gate.
        text: The criterion's.
        vacuous: The number of results whose run has nothing that a rule over runs, or a part of it, speaks of.
        lacks: The events that none of the runs has, where all of them are so: often a tool under another name.
        unquoted: The number of results that it failed for lack of a quote; they are among *gated*.
    """

    _truth = ".mean"

    id: str
    scored: int = 0
    mean: float | None = None
    interval: Interval | None = None
    bounds: Interval | None = None
    not_applicable: int = 0
    abstained: int = 0
    unjudged: int = 0
    gated: int = 0
    text: str = ""
    vacuous: int = 0
    lacks: str = ""
    unquoted: int = 0


@frozen(repr=False)
class Summary(NoTruth, Listed[CriterionSummary]):
    """
    Counts, rates and means of many results; each criterion is taken by its id: `summary["polite"].mean`.

    Args:
        results: The number of results.
        passed: The number of grades that pass.
        failed: The number of grades that do not, borderline ones included.
        ungraded: The number of results that are not grades; they count in none of the rates.
        pass_rate: The share of the grades that pass; None if there is no grade.
        pass_interval: Where the true share lies, with 95 % confidence (Agresti and Coull).
        pass_bounds: The share of all results that pass, at least and at most, whatever the missing verdicts are.
        mean: The mean score of the grades; None if there is no grade.
        mean_interval: Where the true mean lies, with 95 % confidence (Student's t, within 0..1); None below two grades.
        mean_bounds: The mean score of all results, at least and at most, whatever the missing verdicts are.
        criteria: Each criterion, in the rubric's order.
        failures: How often each kind of failure made a result ungraded.
        usage: The usage of all results, and of requests for candidates without one.
        reasons: How often each failure made a result ungraded, described, the commonest first. Those that differ only
            in numbers and quotations are one, shown as it came first.
        warnings: The number of results with each warning, likewise.
        groups: The number of groups, where candidates have groups or share keys: intervals are by group then. None
            where each result is by itself.
        rubrics: The number of rubrics, versions of one included: a mean over several is of different questions.
        tools: The tools that runs call of which a rule was kept vacuously.
        unfinished: The calls in *usage* for candidates without a result: the run was stopped.
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
    mean_bounds: Interval | None
    criteria: tuple[CriterionSummary, ...]
    failures: dict[str, int] = field(hash=False)
    usage: Usage
    reasons: dict[str, int] = field(factory=dict, hash=False)
    warnings: dict[str, int] = field(factory=dict, hash=False)
    groups: int | None = None
    rubrics: int = 1
    tools: tuple[str, ...] = ()
    unfinished: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain JSON-able data."""
        return asdict(self)

    def __str__(self) -> str:
        lines = [self._head(), *(f"  {name:<9}  {said}" for name, said in self._facts().items())]
        rows = [_HEAD, *([str(value) for value in row] for row in self._rows())]
        table = ["", columns(rows, str.rjust)] if self.criteria else []
        return "\n".join([*lines, *table, *(f"\n{remark}" for remark in self._remarks())])

    def __repr__(self) -> str:
        return f"<Summary: {self.line}>"

    _repr_html_ = as_html

    def to_markdown(self) -> str:
        """Return the summary as Markdown."""
        facts = [f"- {name}: {cell(said)}" for name, said in self._facts().items()]
        remarks = [f"\n{cell(remark)}" for remark in self._remarks()]
        return "\n".join([f"**{cell(self._head())}**", "", *facts, "", table(_HEAD, self._rows()), *remarks])

    _repr_markdown_ = to_markdown

    @property
    def line(self) -> str:
        """All but the criteria, in one line."""
        facts = {name: said for name, said in self._facts().items() if name != "used"}
        return "; ".join([self._head(), *(f"{name} {said}" for name, said in facts.items()), self._used()])

    def of_stopped(self, usage: Usage) -> Summary:
        """Return the summary of a run that was stopped, with the *usage* of all its requests."""
        return evolve(self, usage=usage, unfinished=usage.calls - self.usage.calls)

    def _used(self) -> str:
        is_kept = self.usage != NOT_KEPT
        said = str(self.usage) if is_kept else "unknown, since the file of the results does not have it"
        return said + f", {self.unfinished:,} of the calls for candidates that did not end" * bool(self.unfinished)

    def _head(self) -> str:
        return f"{counted(self.results, 'result')}: {self.passed:,} of {self.passed + self.failed:,} grades pass"

    def _facts(self) -> dict[str, str]:
        facts = {
            "pass rate": _with_interval(self.pass_rate, self.pass_interval, "{:.1%}"),
            "mean": _with_interval(self.mean, self.mean_interval, "{:.3f}"),
        }
        if self.ungraded:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in self.failures.items())
            low, high = self.pass_bounds or (0.0, 1.0)
            least, most = self.mean_bounds or (0.0, 1.0)
            of_all = f"{low:.1%} to {high:.1%} of all pass, mean {least:.3f} to {most:.3f}"
            facts["ungraded"] = f"{self.ungraded:,} ({kinds}), left out of the rates: {of_all}"
        if self.groups is not None:
            facts["groups"] = f"{self.groups:,}, and intervals are by group"
        if self.rubrics > 1:
            facts["of"] = f"{self.rubrics:,} rubrics; criteria are matched by their ids"
        return {name: said for name, said in facts.items() if said} | {"used": self._used()}

    def _remarks(self) -> list[str]:
        """Return the reasons of ungraded results and the warnings, a line each, the commonest first."""
        remarks = []
        if few := few_groups(self.groups or 0):
            remarks.append(few)
        for name, counts in ((f"{self.ungraded:,} ungraded", self.reasons), ("warnings", self.warnings)):
            longest = _LONGEST_SHOWN * (_MOST_SHOWN if len(counts) == 1 else 1)  # one alone has room for its whole cure
            said = [f"{count:,} × {shorten(text, longest)}" for text, count in counts.items()][:_MOST_SHOWN]
            said += [f"and {len(counts) - _MOST_SHOWN} others"] if len(counts) > _MOST_SHOWN else []
            remarks += [f"{name}: {'; '.join(said)}"] if said else []
        remarks += [f"{c.id!r}: {c.unquoted:,} failed for lack of a quote" for c in self.criteria if c.unquoted]
        called = f"; the runs call {shorten(', '.join(self.tools), _LONGEST_SHOWN)}" if self.tools else ""
        return remarks + [
            f"{c.id!r} was kept vacuously in {c.vacuous:,} of {c.scored:,}, since there is no {c.lacks}{called}"
            for c in self.criteria
            if c.lacks
        ]

    def _rows(self) -> list[tuple[object, ...]]:
        means = (f"{_with_interval(c.mean, c.interval, '{:.3f}')}{_of_all(c)}" for c in self.criteria)
        return [
            (c.id, c.scored, mean.removeprefix("; "), c.not_applicable, c.abstained, c.unjudged, c.gated)
            for c, mean in zip(self.criteria, means, strict=True)
        ]


_HEAD = ("criterion", "scored", "mean", "not applicable", "abstained", "unjudged", "gate failed")


def _with_interval(value: float | None, interval: Interval | None, form: str) -> str:
    if value is None:
        return ""
    return form.format(value) + ("" if interval is None else f" ({' to '.join(map(form.format, interval))})")


def _of_all(criterion: CriterionSummary) -> str:
    """Return the bounds of the mean where results are left out of it, and how many are vacuous."""
    vacuous = f"; {criterion.vacuous:,} vacuous" if criterion.vacuous else ""
    if not criterion.abstained + criterion.unjudged or criterion.bounds is None:
        return vacuous
    low, high = criterion.bounds
    return f"; of all {low:.3f} to {high:.3f}{vacuous}"


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
    said = [f"{failure.kind}: {failure.message}" for failure in failures_of(result)]
    return said or ["abstained: of every criterion that applies, the judge said that it cannot tell"]


def summarise(
    results: Sequence[Grade | Ungraded], clusters: Sequence[Hashable] | None = None, tools: Iterable[str] | None = None
) -> Summary:
    """Return the summary of *results*; *clusters* and *tools* are theirs, where the results do not name them."""
    named = clusters or [result.cluster for result in results]
    groups = [number if name is None else name for number, name in enumerate(named)]  # without a name, one by itself
    reasons, warnings = Frequencies(), Frequencies()
    for result in results:
        reasons.add(reasons_of(result))
        warnings.add(result.warnings)
    graded = [(result, group) for result, group in zip(results, groups, strict=True) if isinstance(result, Grade)]
    scores, verdicts = [result.score for result, _ in graded], [float(result.passed) for result, _ in graded]
    among = [group for _, group in graded]
    passed, count = sum(result.passed for result, _ in graded), len(results)
    surely = sum(result.passed is True for result in results)
    perhaps = sum(result.passed is not False for result in results)
    kinds = Counter(kind for result in results if isinstance(result, Ungraded) for kind in kinds_of(result))
    lowest, highest = (fmean(result.bounds[end] for result in results) if results else 0.0 for end in (0, 1))
    distinct = len({*groups})
    return Summary(
        count,
        passed,
        len(graded) - passed,
        count - len(graded),
        passed / len(graded) if graded else None,
        share_interval(passed, len(graded)) if len({*among}) == len(graded) else mean_interval(verdicts, among),
        (surely / count, perhaps / count) if results else None,
        fmean(scores) if scores else None,
        mean_interval(scores, among),
        (lowest, highest) if results else None,
        tuple(_criteria(results, groups)),
        dict(kinds.most_common()),
        Usage.total(result.usage for result in results),
        reasons.most_common(),
        warnings.most_common(),
        distinct if distinct < count else None,
        max(1, len(digests_of(results))),
        tuple(sorted({tool for result in results for tool in _tools_of(result)} if tools is None else tools)),
    )


_VACUOUS = re.compile(r"kept vacuously, since there is no (.+?)(?=; |$)")  # as `run_verdicts` writes it


def _lacks(finding: Finding) -> list[str]:
    """Return the events that a rule speaks of and the run has none of, if that is why it was kept."""
    return _VACUOUS.findall(finding.reason) if isinstance(finding, Scored) and "vacuously" in finding.reason else []


def _tools_of(result: Grade | Ungraded) -> Iterator[str]:
    """Yield the tools that the run of *result* calls, if one of its rules was kept vacuously."""
    if result.candidate is not None and any(map(_lacks, result.findings)):
        yield from (call.name for call in result.candidate.tool_calls)


def digests_of(results: Iterable[Grade | Ungraded]) -> set[str]:
    """Return the digests of the rubrics of *results*."""
    rubrics = {id(result.rubric): result.rubric for result in results}  # most share one object: its digest is slow
    return {rubric.digest for rubric in rubrics.values()}


def kinds_of(result: Ungraded) -> list[str]:
    """Return the kinds of the failures that left *result* ungraded, each once."""
    return list(dict.fromkeys(failure.kind for failure in failures_of(result))) or ["abstained"]


def failures_of(result: Ungraded) -> Sequence[Failure]:
    """Return the failures that left a criterion without a verdict; without one, all that went wrong."""
    missing = [finding.failure for finding in result.findings if isinstance(finding, Unjudged)]
    return missing or result.failures


def _criteria(results: Sequence[Grade | Ungraded], groups: Sequence[Hashable]) -> Iterator[CriterionSummary]:
    kinds: defaultdict[str, Counter[type]] = defaultdict(Counter)
    contributions: defaultdict[str, list[float]] = defaultdict(list)
    among: defaultdict[str, list[Hashable]] = defaultdict(list)
    gated, unquoted = Counter[str](), Counter[str]()
    texts: dict[str, str] = {}
    lacking: defaultdict[str, list[list[str]]] = defaultdict(list)
    rules: set[str] = set()
    for result, group in zip(results, groups, strict=True):
        gated.update(result.outcome.gates)
        texts |= {criterion.id: criterion.text for criterion in result.rubric.judged if criterion.id not in texts}
        rules |= {each.id for each in result.rubric.judged if isinstance(each.answer, RunRule | RunRules)}
        for criterion, finding in zip(result.rubric.judged, result.findings, strict=True):
            is_gate = finding.id in result.outcome.gates
            unquoted[finding.id] += is_gate and bool(lack_of(result.rubric, criterion, finding))
            if finding.id in rules and (lacks := _lacks(finding)):
                lacking[finding.id].append(lacks)
            kinds[finding.id][type(finding)] += 1
            contribution = result.contributions.get(finding.id)
            if contribution is not None and isinstance(finding, Scored):
                contributions[finding.id].append(contribution)
                among[finding.id].append(group)
    for id_, count in kinds.items():
        values, missing = contributions[id_], count[Abstained] + count[Unjudged]
        is_one = len(values) == 1 and values[0] in (0, 1)
        interval = share_interval(round(values[0]), 1) if is_one else mean_interval(values, among[id_])
        total, n = sum(values), len(values) + missing
        bounds = (total / n, (total + missing) / n) if n else None
        others = (count[NotApplicable], count[Abstained], count[Unjudged], gated[id_])
        mean = fmean(values) if values else None
        vacuous = lacking[id_]
        common = [each for each in vacuous[0] if all(each in one for one in vacuous)] if vacuous else []
        never = " and no ".join(common) if len(vacuous) == count[Scored] else ""
        more = (texts.get(id_, ""), len(vacuous), never, unquoted[id_])
        yield CriterionSummary(id_, count[Scored], mean, interval, bounds, *others, *more)


# -- very many -----------------------------------------------------------------------------------------------

_LONG: dict[str, Any] = {"reason": "", "evidence": (), "level": "", "path": (), "parts": (), "votes": (), "text": ""}
"""Fields of findings that are long, and that no summary reads."""


@define(eq=False)
class Counts:
    """
    Counts very many results without keeping them, such as those of `grade_many` as they come; see `Summary`.

    Results that differ only in texts and usage are one: each different outcome is kept once.
    """

    _results: list[Grade | Ungraded] = field(factory=list)
    _clusters: list[Hashable] = field(factory=list)
    _known: dict[Any, Grade | Ungraded] = field(factory=dict)
    _usage: Usage = Usage()
    _reasons: Frequencies = field(factory=Frequencies)
    _warnings: Frequencies = field(factory=Frequencies)
    _tools: set[str] = field(factory=set)

    def __len__(self) -> int:
        return len(self._results)

    def add(self, result: Grade | Ungraded) -> None:
        """Count *result*."""
        findings = tuple(map(_short, result.findings))
        failures = tuple(Failure(failure.kind, "") for failure in result.failures)
        key = (type(result), id(result.rubric), result.outcome, findings, failures)
        if key not in self._known:
            unnamed = {"index": None, "key": "", "group": "", "candidate": None, "exchanges": ()}
            bare: dict[str, Any] = {"usage": Usage(), "votes": (), "warnings": (), **unnamed}
            self._known[key] = evolve(result, findings=findings, failures=failures, **bare)
        self._results.append(self._known[key])
        self._clusters.append(result.cluster)
        self._usage += result.usage
        self._reasons.add(reasons_of(result))
        self._warnings.add(result.warnings)
        self._tools.update(_tools_of(result))

    def summary(self) -> Summary:
        """Return what `Grades.summary` returns of all that were counted."""
        summary = summarise(self._results, self._clusters, self._tools)
        reasons, warnings = self._reasons.most_common(), self._warnings.most_common()
        return evolve(summary, usage=self._usage, reasons=reasons, warnings=warnings)


def _short(finding: Finding) -> Finding:
    changes: dict[str, Any] = {f.name: _LONG[f.name] for f in fields(type(finding)) if f.name in _LONG}
    if isinstance(finding, Scored) and (finding.votes or any(quote.verified for quote in finding.evidence)):
        changes["evidence"] = (Evidence("", 0),)  # else it would count as one that lacks a quote
    if _lacks(finding):  # all that a summary reads of the reason
        changes["reason"] = "; ".join(match[0] for match in _VACUOUS.finditer(finding.reason or ""))
    if isinstance(finding, Unjudged):
        changes["failure"] = Failure(finding.failure.kind, "")
    return evolve(finding, **changes)
