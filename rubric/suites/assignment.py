"""
Which judge grades a case, and whether it can be asked.

docs/how-to/suites.md has where a judge is looked for. Where criteria have different judges, each judge grades its own,
and the findings are scored together.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from rubric import Candidate, Criterion, Grade, Judge, Jury, NoJudgeError, Rubric, Ungraded
from rubric.driving import Usage, adrive, flow
from rubric.embed import Check, Finding, Transport, judge_or_default, side_by_side
from rubric.models.api_keys import why_keyless
from rubric.models.registry import EnvironmentModel
from rubric.programs.processes import is_allowed
from rubric.results.result import merge
from rubric.suites.cases import Case
from rubric.values import AnyJudge


def _refuse_to_answer(_: Any) -> str:
    raise AssertionError


NO_JUDGE = Judge(_refuse_to_answer)
"""The judge where code decides everything, or where there is no judge."""


@frozen
class Assigned:
    """The *judge* of a case (`NO_JUDGE` where it is *missing*, for that reason), and *others* of single criteria."""

    judge: AnyJudge
    others: Mapping[str, Judge] = field(factory=dict)
    missing: str = ""

    def groups(self, rubric: Rubric) -> list[tuple[AnyJudge, list[str]]]:
        """Return each judge with the ids of its criteria, in the rubric's order; `judge` first."""
        if not self.others:
            return [(self.judge, [criterion.id for criterion in rubric.judged])] if rubric.judged else []
        found: dict[int, tuple[AnyJudge, list[str]]] = {id(self.judge): (self.judge, [])}
        for criterion in rubric.judged:
            judge = self.others.get(criterion.id, self.judge)
            found.setdefault(id(judge), (judge, []))[1].append(criterion.id)
        return [pair for pair in found.values() if pair[1]]

    def name(self, rubric: Rubric) -> str:
        """Return the names of the judges; if there are several, with the criteria of each."""
        groups = self.groups(rubric)
        if len(groups) == 1:
            return groups[0][0].name
        return "; ".join(f"{judge.name} ({', '.join(ids)})" for judge, ids in groups)

    def why_not(self, rubric: Rubric, candidate: Candidate | None) -> str:
        """Return why a judge of *candidate* cannot be asked; empty if all can, or if none has to be."""
        groups = [
            (judge, ids)
            for judge, ids in self.groups(rubric)  # functions and the offline model need no key
            if self.missing
            or any(isinstance(m := each.model, str) and m != "offline" for each in judge.single_judges())
        ]
        if not groups:
            return ""
        wanted = {criterion.id for criterion in criteria_to_judge(rubric, candidate)}
        for judge, ids in groups:
            if wanted.intersection(ids):
                reason = self.missing if judge is self.judge and self.missing else why_keyless(judge)
                if reason:
                    return reason
        return ""


def assign(case: Case, given: AnyJudge | None, of_suite: AnyJudge | None) -> Assigned:
    """Return the judges of *case*; *given* is the caller's."""
    judge, missing, jury = case.judge, "", None
    if isinstance(judge, Jury) and isinstance(judge.judge, Judge) and isinstance(judge.judge.model, EnvironmentModel):
        jury = judge  # it names no model: any other judge becomes its member
    if given is not None:
        if not is_cell_of_judges(case):
            return Assigned(given if jury is None else evolve(jury, judge=given))
        if all(each.model == "offline" for each in given.single_judges()):
            cure = "it is asked without a judge for the run, or under another one"
            return Assigned(NO_JUDGE, missing=f"the cell's own judge would be asked over the network: {cure}")
    if judge is None or jury is not None:
        try:
            member = judge_or_default(of_suite)
            judge = member if jury is None else evolve(jury, judge=member)
        except NoJudgeError as error:
            judge = NO_JUDGE
            missing = error.text.render(lambda name, value: f"--{name} {value} ({name}={value!r} in code)")
    return Assigned(judge, dict(case.judges), missing)


def is_cell_of_judges(case: Case) -> bool:
    """True if the cell of *case* varies the judge."""
    model = case.cell.get("model")
    if case.judge is None or not isinstance(model, str):
        return False
    named = model == repr(case.judge)  # the name of a jury or a panel
    return named or any(_without_vendor(judge.name) == _without_vendor(model) for judge in case.judge.single_judges())


def _without_vendor(model: str) -> str:
    """Return the last part of *model*: the vendor has several spellings."""
    return model.replace(":", "/").rpartition("/")[2]


def criteria_to_judge(rubric: Rubric, candidate: Candidate | None) -> Iterator[Criterion]:
    """Yield the criteria of *rubric* that need a judge for *candidate*; without one, every condition holds."""
    if candidate is not None and rubric.degenerate != "judge" and candidate.degenerate:
        return
    yield from (criterion for criterion in rubric.judged if _needs_a_judge(criterion, candidate))


def _needs_a_judge(criterion: Criterion, candidate: Candidate | None) -> bool:
    if candidate is not None and not criterion.applies_to(candidate):
        return False
    if isinstance(criterion.answer, Rubric):
        return any(_needs_a_judge(inner, candidate) for inner in criterion.answer.judged)
    return not isinstance(criterion.answer, Check)


async def grade_parts(candidate: Candidate, rubric: Rubric, assigned: Assigned, carry: Transport) -> Grade | Ungraded:
    """Grade *candidate*, each criterion by the judge that it is *assigned* to; all findings are scored together."""

    def by(judge: AnyJudge, mine: Rubric) -> Coroutine[Any, Any, Grade | Ungraded]:
        return adrive(flow(candidate, mine, judge, programs=is_allowed()), carry)

    groups = assigned.groups(rubric)
    if len(groups) <= 1 or (rubric.degenerate != "judge" and candidate.degenerate):
        return await by(groups[0][0] if groups else assigned.judge, rubric)
    results = await side_by_side([by(judge.without_early_stop(), share(rubric, ids)) for judge, ids in groups])
    others = {finding.id: finding for result in results[1:] for finding in result.findings}
    return evolve(
        merge(rubric, groups[0][0], results[0], others),
        usage=sum((result.usage for result in results), Usage()),
        failures=tuple(failure for result in results for failure in result.failures),
        warnings=tuple(dict.fromkeys(warning for result in results for warning in result.warnings)),
        models=tuple(sorted({model for result in results for model in result.models})),
    )


def share(rubric: Rubric, ids: Sequence[str]) -> Rubric:
    """Return *rubric* with only the criteria *ids*, for their findings; its outcome means nothing."""
    if len(ids) == len(rubric.judged):
        return rubric
    kept = [criterion for criterion in rubric.criteria if criterion.id in ids]
    if not any(criterion.weight for criterion in kept):  # a rubric of weightless criteria is refused
        kept = [evolve(criterion, weight=1) for criterion in kept]
    return evolve(rubric, criteria=kept, aggregation="weighted_average")  # by points, penalties alone are refused


def with_findings(rubric: Rubric, own: Grade | Ungraded, found: Sequence[Finding]) -> Grade | Ungraded:
    """Return *own* with the findings *found* in their places, scored by *rubric*; what it took stays."""
    result = merge(rubric, own.judge, own, {finding.id: finding for finding in found})
    return evolve(result, usage=own.usage, failures=own.failures, warnings=own.warnings, models=own.models)
