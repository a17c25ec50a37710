"""The plan of a run: for each case the source of its candidate, its judge, calls, tokens and cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, frozen

from rubric import Candidate, Criterion, Rubric
from rubric import plan as plan_grade
from rubric.embed import Listed, Presented, Table, clean, counted, describe, shorten
from rubric.engine import Plan
from rubric.engine.grade import plan_asks
from rubric.programs import programs_in
from rubric.suites.assignment import Assigned, assign, is_cell_of_judges, share
from rubric.suites.case_rows import row_id
from rubric.suites.cases import Case
from rubric.suites.missing_judges import unsupported_graders
from rubric.suites.output_choice import OutputChoice, SelectBest, choices_of, question
from rubric.suites.repetition import RUN
from rubric.suites.targets.base import DeferError, TargetLike
from rubric.suites.targets.models import opening
from rubric.suites.targets.providers import PROVIDERS, Providers, as_target, model_for
from rubric.values import AnyJudge, RunMetrics

if TYPE_CHECKING:
    from rubric.suites.suite import Suite


Source = Literal["fixed response", "live target", "none"]

STAND_IN = "The response is not there yet. " * 64
"""The planned response of a live target: about 2,000 characters."""

NO_RESPONSE = "no response, and no target to ask for one (--target MODEL or --outputs FILE; target= in code)"


@frozen
class CasePlan:
    """
    The plan of one case.

    Args:
        id: The case's, with its cell in a matrix.
        rubric: Grades the candidate.
        source: Of the candidate.
        judge: Its name; empty if code decides everything.
        plan: Calls, tokens and cost of its judges; of a deferred case, those that it would have otherwise.
        answering: The same of the model that answers it; nothing where something else does, or no one.
        deferred: Why the case would be deferred; empty if it would not.
        scripts: The programs among its criteria, which run only if scripts are allowed.
        unsupported: The graders among its criteria that this library does not have: with one, the case is ungraded.
    """

    id: str
    rubric: Rubric
    source: Source
    judge: str
    plan: Plan
    answering: Plan
    deferred: str = ""
    scripts: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON-able data, without the messages."""
        texts = ({"id": c.id, "text": c.text, "answer": describe(c)} for c in self.rubric.judged)
        cleaned = ({name: clean(said) for name, said in each.items()} for each in texts)
        criteria = [{**each, "weight": c.weight} for each, c in zip(cleaned, self.rubric.judged, strict=True)]
        asked = {"rubric": clean(self.rubric.name), "threshold": self.rubric.threshold, "criteria": criteria}
        named = {"id": self.id, **asked, "candidate": self.source, "judge": self.judge, "deferred": self.deferred}
        lists = {"scripts": [*self.scripts], "unsupported": [*self.unsupported]}
        return {**named, **lists, **_figures(self.whole)}

    @property
    def whole(self) -> Plan:
        """The plan of its answer and of its judges."""
        return Plan.total([self.answering, self.plan])


def _figures(plan: Plan) -> dict[str, Any]:
    return {name: value for name, value in plan.to_dict().items() if name in ("calls", "prompt_tokens", "cost")}


@frozen(repr=False)
class SuitePlan(Presented, Listed[CasePlan]):
    """The plan of a suite's run, case by case; nothing has been sent or run."""

    _kind = "case"
    _items = "cases"

    suite: str
    cases: tuple[CasePlan, ...] = ()

    @property
    def total(self) -> Plan:
        """The sum of all cases."""
        return Plan.total(case.whole for case in self.cases)

    @property
    def calls(self) -> int:
        """The projected calls: answers of models, and criteria times votes, if no tree and no jury ends early."""
        return self.total.most

    @property
    def cost(self) -> tuple[float, float] | None:
        """In US dollars, at least and at most; None if a price is unknown."""
        return self.total.cost

    @property
    def deferred(self) -> tuple[str, ...]:
        """The ids of the cases that would be deferred now."""
        return tuple(case.id for case in self.cases if case.deferred)

    @property
    def sentence(self) -> str:
        """How many cases there are, the calls and what they cost; nothing has been sent."""
        lost = sum(bool(case.plan.unjudged or case.unsupported) and not case.deferred for case in self.cases)
        cases = counted(len(self.cases), "case") + (f", {len(self.deferred):,} deferred" if self.deferred else "")
        cases += f", {lost:,} certain to be ungraded" if lost else ""
        calls = self.total.line().removeprefix("Plan: ")
        return f"{clean(self.suite) or 'suite'}: {cases}, {calls}; nothing has been sent"

    def remarks(self) -> list[str]:
        """The reasons that several cases share for being deferred."""
        counts = Counter(case.deferred for case in self.cases if case.deferred)
        return [f"{times:,} cases are deferred: {why}" for why, times in counts.items() if times > 1]

    def tables(self) -> list[Table]:
        """Each case in a row."""
        counts = Counter(case.deferred for case in self.cases)
        alone = [case.deferred * (counts[case.deferred] == 1) for case in self.cases]
        rows = [*map(_line, self.cases, alone)]
        return [("", ("case", "candidate", "judge", "calls", "cost at most", "remark"), rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON-able data, without the messages, which are in `plan.asks` of each case."""
        return {"suite": self.suite, **_figures(self.total), "cases": [case.to_dict() for case in self.cases]}


def _line(case: CasePlan, why: str) -> tuple[str, ...]:
    plan = case.whole
    calls = f"{plan.most}" if plan.least == plan.most else f"{plan.least} to {plan.most}"
    cost = "unknown" if plan.cost is None else f"${plan.cost[1]:.4f}"
    parts = [f"deferred: {why}" if why else "deferred"] if case.deferred else []
    parts += [f"ungraded: {said}" for said in case.plan.unjudged]
    parts += [f"ungraded: no grader here for {', '.join(case.unsupported)}"] if case.unsupported else []
    remark = "; ".join([*parts, *(f"runs {script}, if scripts are allowed" for script in case.scripts)])
    return case.id, case.source, case.judge, calls, cost, remark


def plan_suite(suite: Suite, judge: AnyJudge | None = None, *, target: TargetLike | None = None) -> SuitePlan:
    """Plan the run of *suite*, with *judge* and *target* as for `Suite.run`."""
    live = None if target is None else as_target(target)
    suite = suite.expanded(live)
    assigned = [assign(case, judge, suite.judge) for case in suite.cases]
    found = [_plan(case, own, live) for case, own in zip(suite.cases, assigned, strict=True)]
    for index, plan in plan_choices(suite.cases, assigned).items():
        one, name = found[index], clean(assigned[index].name(found[index].rubric))
        found[index] = evolve(one, plan=Plan.total([one.plan, plan]), judge=name if plan.asks else one.judge)
    return SuitePlan(suite.name, tuple(found))


def comparison_groups(cases: Sequence[Case]) -> dict[tuple[int, ...], tuple[str, ...]]:
    """
    Return the places of the cases of each test whose outputs are compared, apart for each run and each judge.

    With each come the ids of the cases of the test that are not in this run: finished outputs may lack runs of some.
    """
    tests: dict[Any, dict[Any, dict[str, int]]] = {}
    for index, case in enumerate(cases):
        for _, function in choices_of(case.rubric)[:1]:
            judge, run = case.cell.get("model") if is_cell_of_judges(case) else None, case.cell.get(RUN)
            id_ = case.id if run is None else case.id.rpartition(f" [{RUN} ")[0]
            tests.setdefault((function.test, judge), {}).setdefault(run, {})[id_] = index
    groups: dict[tuple[int, ...], tuple[str, ...]] = {}
    for runs in tests.values():
        ids = dict.fromkeys(id_ for run in runs.values() for id_ in run)
        groups |= {tuple(run.values()): tuple(id_ for id_ in ids if id_ not in run) for run in runs.values()}
    return groups


def plan_choices(cases: Sequence[Case], assigned: Sequence[Assigned]) -> dict[int, Plan]:
    """Return the plan of the judges who compare the outputs of a test, by the place of its first case."""
    found: dict[int, Plan] = {}
    for group, lacking in comparison_groups(cases).items():
        first = group[0]
        candidates = [cases[index].candidate or _stand_in(cases[index]) for index in group]
        plans = [
            plan_choice(candidates, criterion, function, assigned[first])
            for criterion, function in choices_of(cases[first].rubric)
            if len(group) > 1 and not lacking and not assigned[first].missing
        ]
        if plans:
            found[first] = Plan.total(plans)
    return found


def plan_choice(
    candidates: Sequence[Candidate], criterion: Criterion, function: OutputChoice, assigned: Assigned
) -> Plan:
    """Plan the comparison of *candidates* by *criterion*; it takes a request only where a judge decides it."""
    if not isinstance(function, SelectBest):
        return Plan.total([])
    candidate, rubric = question(function, candidates)
    judge = assigned.others.get(criterion.id, assigned.judge)
    return evolve(plan_grade(candidate, rubric, judge), remarks=())


def _plan(case: Case, assigned: Assigned, target: object) -> CasePlan:
    """Plan *case*."""
    answering = plan_answer(case, target)
    plan = plan_case(case, assigned, case.candidate, answering)
    plan = evolve(plan, unpriced=()) if assigned.missing else plan  # no judge is named whose price could be given
    model = None if case.output is not None else model_for(target, case)
    lacking = "" if model is None else model.chat.why_not()
    live: Source = "none" if target is None else "live target"
    return CasePlan(
        clean(row_id(case)),
        case.rubric,
        "fixed response" if case.output is not None else live,
        clean(assigned.name(case.rubric)) if plan.asks and not assigned.missing else "",
        plan,
        answering,
        clean(lacking or why_deferred(case, assigned, case.candidate, target)),
        tuple(map(clean, dict.fromkeys(programs_in(case.rubric)))),
        tuple(dict.fromkeys(clean(shorten(check.type, 200)) for check in unsupported_graders(case.rubric))),
    )


def plan_answer(case: Case, target: object) -> Plan:
    """Plan the requests with which *target* answers *case*, as far as it is a model; calls of tools are not known."""
    model = None if case.output is not None else model_for(target, case)
    if model is None:
        return Plan.total([])
    said: list[Any] = [case.exchanged([STAND_IN] * number) for number in range(len(case.turns))]
    turns = [evolve(case, input=t.input, messages=before, turns=()) for t, before in zip(case.turns, said, strict=True)]
    try:
        return plan_asks(model.chat.ask(opening(one, model.system)) for one in turns or [case])
    except DeferError:  # it asks nothing
        return Plan.total([])


def why_deferred(case: Case, assigned: Assigned, candidate: Candidate | None, target: object) -> str:
    """Return why *case* is deferred: it has no candidate, or no judge that can be asked; empty if it is not."""
    if candidate is None and target is None:
        ends = case.messages[-1:]
        is_answered = bool(ends) and ends[0].role == "assistant"
        said = "; its messages end with an answer, which is its output if it is graded: give it as output" * is_answered
        return f"{NO_RESPONSE}{said}" + f"; --target {PROVIDERS} asks those of its file" * bool(case.providers)
    if candidate is None and isinstance(target, Providers) and (why := target.why_not(case)):
        return why
    if candidate is not None and (lacks := case.lacks(candidate)):
        return lacks
    return assigned.why_not(case.rubric, candidate)


def plan_case(case: Case, assigned: Assigned, candidate: Candidate | None, answering: Plan | None = None) -> Plan:
    """
    Plan the grading of *candidate*; without one, of about 2,000 characters for which every condition holds.

    Args:
        answering: The plan of the model that makes the candidate, by which it is known what its run will tell.
    """
    rubric = case.rubric if candidate is not None else _unconditional(case.rubric)
    graded = candidate if candidate is not None else _stand_in(case)
    if candidate is None:
        model = answering is not None and answering.asks
        cost, rest = (None if answering and answering.unpriced else 0.0), (None if model else 0.0)
        graded = evolve(graded, metrics=RunMetrics(latency=0.0, tokens=0, calls=1, cost=cost, perplexity=rest))
    plans = (plan_grade(graded, share(rubric, ids), judge) for judge, ids in assigned.groups(rubric))
    return evolve(Plan.total(plans), remarks=())  # those on a rubric are for its author


def _stand_in(case: Case) -> Candidate:
    return case.conversing([STAND_IN] * len(case.turns)) if case.turns else case.responding(STAND_IN)


def _unconditional(rubric: Rubric) -> Rubric:
    """Return *rubric* without conditions."""
    criteria = []
    for criterion in rubric.criteria:
        answer = criterion.answer
        inner = _unconditional(answer) if isinstance(answer, Rubric) else answer
        criteria.append(evolve(criterion, when=None, answer=inner))
    return evolve(rubric, criteria=criteria)
