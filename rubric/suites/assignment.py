"""
Who judges a case, and whether they can be asked at all.

| given                                                     | who judges                                    |
|-----------------------------------------------------------|-----------------------------------------------|
| the case is a cell of a matrix over judges                | the judge of the cell                         |
| the caller names a judge                                  | that one, all criteria; in a jury, where the  |
|                                                           | case's jury names no model                    |
| the case names one                                        | that one; single criteria by `Case.judges`    |
| the suite names one                                       | that one; single criteria by `Case.judges`    |
| none of these                                             | the judge that the environment has a key for  |

Grading a candidate whose criteria are not all judged by the same judge.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from rubric.engine.pipeline import adrive
from rubric.errors import NoJudgeError
from rubric.grading.code_checks import applies, why_degenerate
from rubric.grading.flow import flow
from rubric.models.api_keys import default_judge, missing_key
from rubric.models.litellm_library import library, vendor_of
from rubric.models.offline import OFFLINE
from rubric.models.registry import EnvironmentModel
from rubric.results.result import Grade, Ungraded, conclude, conclude_votes
from rubric.suites.cases import Case
from rubric.values.candidates import Candidate
from rubric.values.checks import Check
from rubric.values.criteria import Criterion
from rubric.values.findings import Finding
from rubric.values.judges import AnyJudge, Cascade, Judge, Jury, Panel, judges_of, members_of, unhurried
from rubric.values.requests import Transport, Usage
from rubric.values.rubrics import Rubric


def code(_: Any) -> str:
    """Stand in for a judge where code decides everything; it is never asked."""
    raise AssertionError


NOBODY = Judge(code)
"""Who judges where there is nothing to ask, or nobody."""


@frozen
class Assigned:
    """
    Who judges a case.

    Args:
        bench: Who judges it; `NOBODY` where there is no one.
        others: Who judges single criteria instead, by id.
        missing: Why there is no one; empty where there is.
    """

    bench: AnyJudge
    others: Mapping[str, Judge] = field(factory=dict)
    missing: str = ""

    def groups(self, rubric: Rubric) -> list[tuple[AnyJudge, list[str]]]:
        """Return each of those who judge, with the ids of their criteria in the rubric's order; `bench` first."""
        found: list[tuple[AnyJudge, list[str]]] = [(self.bench, [])]
        for criterion in rubric.judged:
            judge = self.others.get(criterion.id, self.bench)
            mine = next((ids for bench, ids in found if bench is judge), None)
            if mine is None:
                found.append((judge, [criterion.id]))
            else:
                mine.append(criterion.id)
        return [(bench, ids) for bench, ids in found if ids]

    def name(self, rubric: Rubric) -> str:
        """Return who judges, in words; with the criteria of each where there are several."""
        groups = self.groups(rubric)
        if len(groups) == 1:
            return name_of(groups[0][0])
        return "; ".join(f"{name_of(bench)} ({', '.join(ids)})" for bench, ids in groups)

    def why_not(self, rubric: Rubric, candidate: Candidate | None) -> str:
        """Return why those who would be asked about *candidate* cannot be; empty if they can, or nobody is asked."""
        wanted = {criterion.id for criterion in asked(rubric, candidate)}
        for bench, ids in self.groups(rubric):
            if wanted.intersection(ids):
                reason = self.missing if bench is self.bench and self.missing else without_key(bench)
                if reason:
                    return reason
        return ""


def assign(case: Case, given: AnyJudge | None, of_suite: AnyJudge | None) -> Assigned:
    """Return who judges *case*, where the caller has *given* a judge or not."""
    if given is not None and not _is_cell_of_judges(case):
        return Assigned(_seated(case.judge, given))
    bench, missing = case.judge, ""
    if bench is None or _is_open(bench):
        try:
            bench = _seated(bench, of_suite or default_judge())
        except NoJudgeError as error:
            bench, missing = NOBODY, str(error)
    return Assigned(bench, dict(case.judges), missing)


def _is_open(bench: AnyJudge | None) -> bool:
    """Say whether *bench* is a jury of whoever judges."""
    return (
        isinstance(bench, Jury) and isinstance(bench.judge, Judge) and isinstance(bench.judge.model, EnvironmentModel)
    )


def _seated(bench: AnyJudge | None, who: AnyJudge) -> AnyJudge:
    """Return the jury *bench* with *who* in it, where it names no model; else *who*."""
    return evolve(bench, judge=who) if isinstance(bench, Jury) and _is_open(bench) else who


def _is_cell_of_judges(case: Case) -> bool:
    """Say whether the case's own judge is what its cell is about."""
    model = case.cell.get("model")
    if case.judge is None or not isinstance(model, str):
        return False
    named = model == repr(case.judge)  # as a jury or a panel is called
    return named or any(_bare(judge.name) == _bare(model) for judge in judges_of(case.judge))


def _bare(model: str) -> str:
    """Return the last part of *model*: its vendor may be written in several ways."""
    return model.replace(":", "/").rpartition("/")[2]


def name_of(bench: AnyJudge) -> str:
    """Return who *bench* is, in a few words."""
    match bench:
        case Judge():
            return bench.name
        case Jury():
            return f"jury of {bench.size}: {name_of(bench.judge)}"
        case Panel():
            return f"panel: {', '.join(name_of(member) for member in bench.judges)}"
        case Cascade():
            return f"cascade: {name_of(bench.first)}, then {name_of(bench.then)}"


def asked(rubric: Rubric, candidate: Candidate | None) -> Iterator[Criterion]:
    """
    Yield the criteria of *rubric* for which a judge is asked about *candidate*.

    Without a candidate, every condition is taken to hold.
    """
    if candidate is not None and rubric.degenerate != "judge" and why_degenerate(candidate):
        return
    for criterion in rubric.judged:
        if _needs_a_judge(criterion, candidate):
            yield criterion


def _needs_a_judge(criterion: Criterion, candidate: Candidate | None) -> bool:
    if candidate is not None and not applies(criterion.when, candidate):
        return False
    if isinstance(criterion.answer, Rubric):
        return any(_needs_a_judge(inner, candidate) for inner in criterion.answer.judged)
    return not isinstance(criterion.answer, Check)


def without_key(bench: AnyJudge, environ: Mapping[str, str] = os.environ) -> str:
    """
    Return which API key *bench* lacks to be asked, in words; empty if none is known to be missing.

    A panel can do without members as far as its quorum allows; a cascade needs both of its judges.
    """
    match bench:
        case Judge():
            return _keyless(bench, environ)
        case Jury():
            return without_key(bench.judge, environ)
        case Panel():
            reasons = [without_key(member, environ) for member in bench.judges]
            able = reasons.count("")
            enough = len(reasons) if bench.quorum is None else bench.quorum
            return "" if able >= enough else "; ".join(dict.fromkeys(filter(None, reasons)))
        case Cascade():
            reasons = [without_key(member, environ) for member in (bench.first, bench.then)]
            return "; ".join(dict.fromkeys(filter(None, reasons)))


def _keyless(judge: Judge, environ: Mapping[str, str]) -> str:
    if not isinstance(judge.model, str) or judge.model == OFFLINE or _set_in_code(judge.model):
        return ""
    variables = missing_key(judge, environ)
    return f"no key for the judge {judge.model!r}: set {variables}" if variables else ""


def _set_in_code(model: str) -> bool:
    """Say whether the program has handed LiteLLM a key for *model* itself."""
    if "litellm" not in sys.modules:  # to import it takes seconds
        return False
    litellm, provider = library(), vendor_of(model)[1]
    return any(getattr(litellm, name, None) for name in ("api_key", f"{provider}_key"))


T = TypeVar("T")


async def graded(candidate: Candidate, rubric: Rubric, assigned: Assigned, carry: Transport) -> Grade | Ungraded:
    """
    Return what *candidate* comes to, with each criterion judged by the one whom it is *assigned* to.

    Where several judge, each grades its own criteria, and the findings are scored together. With a jury or a panel
    among them, what the others found counts in each of its votes.
    """
    groups = assigned.groups(rubric)
    said_nothing = rubric.degenerate != "judge" and why_degenerate(candidate)
    if said_nothing or len(groups) <= 1:
        return await adrive(flow(candidate, rubric, groups[0][0] if groups else assigned.bench), carry)
    results = await side_by_side(
        adrive(flow(candidate, share(rubric, ids), unhurried(bench)), carry) for bench, ids in groups
    )
    others = {finding.id: finding for result in results[1:] for finding in result.findings}
    merged = _merged(rubric, groups[0][0], results[0], others)
    return evolve(
        merged,
        usage=sum((result.usage for result in results), Usage()),
        failures=tuple(failure for result in results for failure in result.failures),
        warnings=_unique(warning for result in results for warning in result.warnings),
    )


async def side_by_side(jobs: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Return what all *jobs* come to; the first error cancels the others, waits for them, and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]


def share(rubric: Rubric, ids: Sequence[str]) -> Rubric:
    """Return *rubric* with the criteria called *ids* alone; its outcome means nothing, its findings do."""
    if len(ids) == len(rubric.judged):
        return rubric
    kept = [criterion for criterion in rubric.criteria if criterion.id in ids]
    if not any(criterion.weight for criterion in kept):  # no rubric may consist of what does not count
        kept = [evolve(criterion, weight=1) for criterion in kept]
    return evolve(rubric, criteria=kept)


def _merged(rubric: Rubric, bench: AnyJudge, own: Grade | Ungraded, others: Mapping[str, Finding]) -> Grade | Ungraded:
    """Return what the findings of *bench* come to together with those of the *others*: in every vote, if it votes."""
    if not isinstance(bench, Judge):
        pairs = zip(members_of(bench), own.votes, strict=False)  # a cascade may not have asked its second
        return conclude_votes(rubric, bench, [_merged(rubric, member, vote, others) for member, vote in pairs])
    found = {**others, **{finding.id: finding for finding in own.findings}}
    findings = [found[criterion.id] for criterion in rubric.judged]
    return conclude(rubric, bench, findings, usage=own.usage, failures=own.failures, warnings=own.warnings)


def _unique(warnings: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(warnings))
