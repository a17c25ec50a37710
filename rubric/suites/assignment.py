"""
Which judge grades a case, and whether it can be asked.

| given                                                     | judge                                         |
|-----------------------------------------------------------|-----------------------------------------------|
| the case is a cell of a matrix over judges                | the judge of the cell; none where the caller  |
|                                                           | names `offline`, under which nothing is sent  |
| the caller names a judge                                  | that one, for all criteria; in a jury, where  |
|                                                           | the case's jury names no model                |
| the case names one                                        | that one; single criteria by `Case.judges`    |
| the suite names one                                       | that one; single criteria by `Case.judges`    |
| none of these                                             | the judge that the environment has a key for  |

Where criteria have different judges, each judge grades its own, and the findings are scored together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from rubric import Candidate, Cascade, Criterion, Grade, Judge, Jury, NoJudgeError, Panel, Rubric, Ungraded
from rubric.driving import Usage, adrive, flow
from rubric.embed import Check, Finding, Transport
from rubric.engine.pipeline import side_by_side
from rubric.grading.code_checks import applies
from rubric.models.api_keys import default_judge, missing_key
from rubric.models.litellm_library import library, vendor_of
from rubric.models.offline import OFFLINE
from rubric.models.registry import EnvironmentModel
from rubric.programs.processes import is_allowed
from rubric.results.result import conclude, conclude_votes, models_of
from rubric.suites.cases import Case
from rubric.values import AnyJudge
from rubric.values.candidates import why_degenerate


def _never_asked(_: Any) -> str:
    raise AssertionError


NO_JUDGE = Judge(_never_asked)
"""The judge where code decides everything, or where there is no judge."""


@frozen
class Assigned:
    """
    The judges of a case.

    Args:
        judge: Of all criteria but those of *others*; `NO_JUDGE` where there is none.
        others: Of single criteria, by id.
        missing: Why there is no judge; empty if there is one.
    """

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
        groups = [(judge, ids) for judge, ids in self.groups(rubric) if self.missing or _may_lack_a_key(judge)]
        if not groups:
            return ""
        wanted = {criterion.id for criterion in asked(rubric, candidate)}
        for judge, ids in groups:
            if wanted.intersection(ids):
                reason = self.missing if judge is self.judge and self.missing else without_key(judge)
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
        if all(each.model == OFFLINE for each in given.single_judges()):
            cure = "it is asked without a judge for the run, or under another one"
            return Assigned(NO_JUDGE, missing=f"the cell's own judge would be asked over the network: {cure}")
    if judge is None or jury is not None:
        try:
            member = of_suite or default_judge()
            judge = member if jury is None else evolve(jury, judge=member)
        except NoJudgeError as error:
            judge, missing = NO_JUDGE, str(error)
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


def asked(rubric: Rubric, candidate: Candidate | None) -> Iterator[Criterion]:
    """Yield the criteria of *rubric* that need a judge for *candidate*; without one, every condition holds."""
    if candidate is not None and rubric.degenerate != "judge" and why_degenerate(candidate):
        return
    yield from (criterion for criterion in rubric.judged if _needs_a_judge(criterion, candidate))


def _needs_a_judge(criterion: Criterion, candidate: Candidate | None) -> bool:
    if candidate is not None and not applies(criterion.when, candidate):
        return False
    if isinstance(criterion.answer, Rubric):
        return any(_needs_a_judge(inner, candidate) for inner in criterion.answer.judged)
    return not isinstance(criterion.answer, Check)


def without_key(judge: AnyJudge, environ: Mapping[str, str] = os.environ) -> str:
    """
    Return a message about the API key that *judge* lacks; empty if none is known to be missing.

    A panel can lose members as far as its quorum allows; a cascade needs both of its judges.
    """
    match judge:
        case Judge():
            model = judge.model
            if not isinstance(model, str) or model == OFFLINE or _set_in_code(model):
                return ""
            variables = missing_key(judge, environ)
            return f"no key for the judge {model!r}: set {variables}" if variables else ""
        case Jury():
            return without_key(judge.judge, environ)
        case Panel():
            reasons = [without_key(member, environ) for member in judge.judges]
            able = reasons.count("")
            enough = len(reasons) if judge.quorum is None else judge.quorum
            return "" if able >= enough else "; ".join(dict.fromkeys(filter(None, reasons)))
        case Cascade():
            reasons = [without_key(member, environ) for member in (judge.first, judge.then)]
            return "; ".join(dict.fromkeys(filter(None, reasons)))


def _may_lack_a_key(judge: AnyJudge) -> bool:
    """True if a model of *judge* is a vendor's: functions and the offline model need no key."""
    return any(isinstance(each.model, str) and each.model != OFFLINE for each in judge.single_judges())


def _set_in_code(model: str) -> bool:
    """True if the program itself has given LiteLLM a key for *model*."""
    if "litellm" not in sys.modules:  # to import it takes seconds
        return False
    litellm, provider = library(), vendor_of(model)[1]
    return any(getattr(litellm, name, None) for name in ("api_key", f"{provider}_key"))


async def graded(candidate: Candidate, rubric: Rubric, assigned: Assigned, carry: Transport) -> Grade | Ungraded:
    """
    Grade *candidate*, each criterion by the judge that it is *assigned* to.

    Several judges grade their own criteria side by side, and all findings are scored together. In each vote of a jury
    or a panel among them, the findings of the other judges count too.
    """

    def by(judge: AnyJudge, mine: Rubric) -> Coroutine[Any, Any, Grade | Ungraded]:
        return adrive(flow(candidate, mine, judge, programs=is_allowed()), carry)

    groups = assigned.groups(rubric)
    if len(groups) <= 1 or (rubric.degenerate != "judge" and why_degenerate(candidate)):
        return await by(groups[0][0] if groups else assigned.judge, rubric)
    results = await side_by_side([by(judge.without_early_stop(), share(rubric, ids)) for judge, ids in groups])
    others = {finding.id: finding for result in results[1:] for finding in result.findings}
    merged = merged_with(rubric, groups[0][0], results[0], others)
    return evolve(
        merged,
        usage=sum((result.usage for result in results), Usage()),
        failures=tuple(failure for result in results for failure in result.failures),
        warnings=tuple(dict.fromkeys(warning for result in results for warning in result.warnings)),
        models=models_of(results),
    )


def share(rubric: Rubric, ids: Sequence[str]) -> Rubric:
    """Return *rubric* with only the criteria *ids*, for their findings; its outcome means nothing."""
    if len(ids) == len(rubric.judged):
        return rubric
    kept = [criterion for criterion in rubric.criteria if criterion.id in ids]
    if not any(criterion.weight for criterion in kept):  # a rubric of weightless criteria is refused
        kept = [evolve(criterion, weight=1) for criterion in kept]
    return evolve(rubric, criteria=kept)


def merged_with(
    rubric: Rubric, judge: AnyJudge, own: Grade | Ungraded, others: Mapping[str, Finding]
) -> Grade | Ungraded:
    """Score the findings of *judge* with those of *others* in their places; if it votes, in every vote."""
    if not isinstance(judge, Judge):
        pairs = zip(judge.members, own.votes, strict=False)  # a cascade may not have asked its second judge
        return conclude_votes(rubric, judge, [merged_with(rubric, member, vote, others) for member, vote in pairs])
    found = {**{finding.id: finding for finding in own.findings}, **others}
    findings = [found[criterion.id] for criterion in rubric.judged]
    return conclude(
        rubric, judge, findings, usage=own.usage, failures=own.failures, warnings=own.warnings, models=own.models
    )
