"""The run of a suite: makes missing candidates, grades each case, and reports a row for each."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Container, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from rubric import Budget, Candidate, Criterion, DefinitionError, Judge, Message, ModelError, Rubric, ToolCall
from rubric.driving import Ask, Failure, Pipeline, Usage, pipeline
from rubric.embed import CONCURRENCY, NOTHING, Finding, Limiter, StoreLike, Transport, clean, fields, side_by_side
from rubric.engine import Plan
from rubric.engine.grade import in_span
from rubric.errors import UnreviewedWarning
from rubric.grading.candidate_parts import asked_parts
from rubric.models.chat_turns import PAYING
from rubric.programs import allowing, programs_in
from rubric.programs.processes import is_allowed
from rubric.results import Row, Scored, Unjudged
from rubric.store import StoreError
from rubric.suites import output_choice
from rubric.suites.assignment import Assigned, assign, grade_parts, with_findings
from rubric.suites.case_rows import RowBuilder
from rubric.suites.cases import Case
from rubric.suites.histories import Conversations, chains
from rubric.suites.missing_judges import can_be_judged, unsupported_graders
from rubric.suites.output_choice import MaxScore, SelectBest
from rubric.suites.repetition import repeat_case, with_key
from rubric.suites.report import Deferred, Report
from rubric.suites.suite_plan import comparison_groups, plan_answer, plan_case, plan_choice, plan_choices, why_deferred
from rubric.suites.targets.base import DeferError, Response, Target, TargetLike, with_metrics
from rubric.suites.targets.models import AskedModel
from rubric.suites.targets.providers import as_target
from rubric.values import AnyJudge, as_judge

if TYPE_CHECKING:
    from rubric import Grade, Ungraded
    from rubric.suites.suite import Suite

OnRow = Callable[[Row], object]
"""Called with each row as soon as its case is finished, on the loop of the run."""


async def run_suite(
    suite: Suite,
    judge: Any = None,
    *,
    target: TargetLike | None = None,
    deferred: Deferred = "error",
    allow_scripts: bool = False,
    concurrency: int = 8,
    budget: Budget | None = None,
    store: StoreLike | None = None,
    limits: Limiter | None = None,
    repeat: int = 1,
    runs: int | None = None,
    fail_fast: bool = False,
    on_row: OnRow | None = None,
) -> Report:
    """
    Run *suite* and return the report, with its rows in the order of the cases; see `Suite.run`.

    A cancelled run cancels the cases in flight and waits for them, so that no process, connection or reservation of a
    budget outlives it. Replies that have arrived are in the store; there is no report.
    """
    report = Report(clean(suite.name), deferred=deferred, version=version("rubric-grade"))
    fields.check_count("concurrency", concurrency)
    fields.check_count("repeat", repeat)
    began = time.monotonic()
    if budget is not None and not isinstance(budget, Budget):
        raise fields.refuse("budget", budget, "a Budget, such as Budget(cost=5)")
    # Two accounts of the rest: each case sets its planned cost aside in one, and each request its own in the other.
    left = None if budget is None else budget.left.cost
    cases = None if budget is None or left is None else Budget(cost=left, prices=budget.prices)
    given = None if judge is None else as_judge(judge)
    maker = None if target is None else as_target(target)
    suite = suite.expanded(maker, runs)
    with (
        allowing(when=allow_scripts),
        nullcontext() if budget is None else budget.priced(budget.prices),
        pipeline(concurrency=max(CONCURRENCY, concurrency), store=store, budget=budget, limits=limits) as opened,
    ):
        run = Run(suite, given, maker, opened, budget, cases, repeat)
        # It may load LiteLLM, which takes seconds: not on the event loop.
        prepared = await asyncio.to_thread(run.prepare)
        for one in prepared:
            for by, _ in one.assigned.groups(one.case.rubric):
                opened.check(by)
        last = {"failed", "ungraded", *(() if deferred == "pass" else ("deferred",))} if fail_fast else ()
        rows = await run.rows(prepared, concurrency, on_row, last)
    notes: list[object] = [*suite.warnings, *opened.dispatcher.remarks()]
    if raw := dict.fromkeys(case.id for case in suite if not case.rubric.is_reviewed):
        notes.append(UnreviewedWarning.of([*raw]))
    if missing := len(suite) * repeat - len(rows):
        notes.append(f"the run stopped early: {missing} of {len(suite) * repeat} cases were not run")
    warnings = tuple(clean(str(note)) for note in notes)
    return evolve(report, rows=rows, warnings=warnings, duration=time.monotonic() - began)


@frozen(eq=False)
class Prepared:
    """
    A *case* with what can be found out before it starts: its judges, its fixed candidate, or why it is *deferred*.

    Args:
        worst: The most that judging it is planned to cost; None if a price is unknown, 0 without a budget.
        answering: The plan of its answer; nothing if that is unknown, or without a budget.
        failure: Why it cannot be graded, if that is known already.
    """

    case: Case
    assigned: Assigned
    candidate: Candidate | None = None
    deferred: str = ""
    worst: float | None = 0.0
    answering: Plan = field(factory=Plan)
    failure: Failure | None = None


@frozen(eq=False)
class Half:
    """The result of a case by all but the criteria that compare it with others, and what its row needs besides."""

    prepared: Prepared
    result: Grade | Ungraded
    response: Response
    number: int


@frozen(eq=False)
class Run:
    """
    One run of a *suite*, with the *judge* and the *target* of the caller.

    Args:
        pipeline: Sends asks to the judges.
        requests: The budget that every request passes in the pipeline; None without a limit.
        cases: The same budget for whole cases, by their planned cost: a case that would run out of money halfway is not
            started, since half a case is paid for and worth nothing.
        repeat: How many times each candidate is graded.
    """

    suite: Suite
    judge: AnyJudge | None
    target: Target | None
    pipeline: Pipeline
    requests: Budget | None
    cases: Budget | None
    repeat: int = 1
    builder: RowBuilder = field(factory=RowBuilder, init=False)
    halves: dict[str, Half] = field(factory=dict, init=False)
    conversations: Conversations = field(factory=Conversations, init=False)

    def prepare(self) -> list[Prepared]:
        """Prepare each case: find its judges and its planned cost, or why it cannot be graded."""
        plans = [self._prepare(case) for case in self.suite.cases]
        if self.cases is not None:
            for index, plan in plan_choices(self.suite.cases, [each.assigned for each in plans]).items():
                own, more = plans[index].worst, plan.cost
                worst = None if own is None or more is None else own + more[1]
                plans[index] = evolve(plans[index], worst=worst)
            for each in plans:
                for judge, _ in each.assigned.groups(each.case.rubric) if each.worst is None else ():
                    self.cases.check(judge)
                for ask in each.answering.asks if each.answering.cost is None else ():
                    self.cases.check(ask.judge)
        return plans

    def _prepare(self, case: Case) -> Prepared:
        assigned, candidate = assign(case, self.judge, self.suite.judge), case.candidate
        try:
            deferred = why_deferred(case, assigned, candidate, self.target)
            worst = 0.0 if deferred else self._worst(case, assigned, candidate)
            answer = Plan() if deferred or self.cases is None else plan_answer(case, self.target)
        except Exception as error:  # noqa: BLE001 - a condition of the user's own may raise anything
            return Prepared(case, assigned, candidate, failure=_failure_of(error))
        return Prepared(case, assigned, candidate, deferred, worst, answer)

    def _worst(self, case: Case, assigned: Assigned, candidate: Candidate | None) -> float | None:
        if self.cases is None:
            return 0.0
        cost = plan_case(case, assigned, candidate).cost
        return None if cost is None else cost[1]

    async def rows(
        self, prepared: Sequence[Prepared], concurrency: int, on_row: OnRow | None, last: Container[str]
    ) -> tuple[Row, ...]:
        """
        Return the rows in order, of at most *concurrency* cases in flight.

        No further case starts once a row has a status of *last*. Cases in flight are finished: they are being paid for.
        The cases of one conversation are run one after another.
        """
        done: dict[int, list[Row]] = {}
        waiting = iter(chains(one.case for one in prepared))  # the workers take turns at it
        is_over = False
        lacking = comparison_groups([one.case for one in prepared])
        group_of = {index: group for group in lacking for index in group}
        finished: set[int] = set()

        def tell(rows: Iterable[Row]) -> bool:
            nonlocal is_over
            for row in rows:
                if on_row is not None:
                    on_row(row)
                is_over = is_over or row.status in last
            return is_over

        async def work() -> None:
            for index in (index for chain in waiting for index in chain):
                rows, group = done.setdefault(index, []), group_of.get(index)
                async for row in self.rows_of(self._continue(prepared[index])):
                    rows.append(row)
                    if group is None and tell([row]):
                        return
                finished.add(index)
                if group is not None and finished.issuperset(group):  # the last of its test: now all can be compared
                    cells = [done[other] for other in group]
                    await self._compare(cells, lacking[group])
                    if tell(row for cell in cells for row in cell):
                        return

        await side_by_side([work() for _ in range(min(concurrency, len(prepared)))])
        return tuple(row for index in sorted(done) for row in done[index])

    async def _compare(self, cells: Sequence[list[Row]], lacking: Sequence[str]) -> None:
        """Decide comparing criteria by repetition, never without an output that is *lacking*: it may be the best."""
        for number in range(max(map(len, cells), default=0)):
            those = [rows for rows in cells if rows[number : number + 1]]
            known = [(rows, self.halves[rows[number].id]) for rows in those if rows[number].id in self.halves]
            awaited = [*lacking, *(rows[number].id for rows in those if rows[number].status == "deferred")]
            if len(known) < 2 and not awaited:  # noqa: PLR2004 - one output is compared with none
                continue
            halves = [half for _, half in known]
            waiting = output_choice.incomplete(awaited, len(those) + len(lacking)) if awaited else None
            found: list[list[Finding]] = [[] for _ in known]
            usage = Usage()
            for criterion, function in output_choice.choices_of(halves[0].prepared.case.rubric) if halves else ():
                best, told, cost = (waiting, "", Usage()) if waiting else await self._best(criterion, function, halves)
                told += f"; {len(known)} of {len(those)} outputs took part" if len(known) < len(those) else ""
                usage += cost
                for place, findings in enumerate(found):
                    findings.append(output_choice.verdict(criterion, best, place, told))
            for (rows, half), findings in zip(known, found, strict=True):
                case, response = half.prepared.case, evolve(half.response, usage=half.response.usage + usage)
                usage = Usage()  # one request for all of them
                result, judge = with_findings(case.rubric, half.result, findings), half.prepared.assigned
                rows[number] = self.builder.row(case, result, response, judge=judge.name(case.rubric))

    async def _best(
        self, criterion: Criterion, function: SelectBest | MaxScore, halves: Sequence[Half]
    ) -> tuple[int | Failure | None, str, Usage]:
        """Return the place of the best output by *criterion*, the reason, and what the judge took."""
        try:
            if isinstance(function, MaxScore):
                return *output_choice.highest(function, [half.result for half in halves]), Usage()
            assigned, number = halves[0].prepared.assigned, halves[0].number
            judge = assigned.others.get(criterion.id, assigned.judge)
            if assigned.missing and judge is assigned.judge:
                return Failure("auth", assigned.missing), "", Usage()
            candidates = [half.response.candidate for half in halves]
            if callable(criterion.on):
                parts = [await asyncio.to_thread(asked_parts, criterion, candidate) for candidate in candidates]
                if lost := [part for part in parts if isinstance(part, Unjudged)]:  # their transform failed
                    return lost[0].failure, "", Usage()
                candidates = [seen for part in parts if not isinstance(part, Unjudged) for seen in part.values()]
            one = Assigned(judge)
            candidate, rubric = output_choice.question(function, candidates)
            cost = None
            if self.cases is not None:
                cost = (await asyncio.to_thread(plan_choice, candidates, criterion, function, assigned)).cost
            async with self._holding(cost[1] if cost else 0.0) as commit:
                result = await grade_parts(candidate, rubric, one, self._transport(one, rubric, number))
                commit(result.usage)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - as of any other judgement
            return _failure_of(error), "", Usage()
        reason = next((found.reason for found in result.findings if isinstance(found, Scored)), "")
        return output_choice.picked_output(result), reason, result.usage

    def _continue(self, prepared: Prepared) -> Prepared:
        """Return a case with the responses of the earlier ones of its conversation in its input."""
        if prepared.deferred or prepared.failure is not None:
            return prepared
        try:
            case = self.conversations.continue_case(prepared.case)
        except DeferError as reason:
            return evolve(prepared, deferred=str(reason))
        except Exception as error:  # noqa: BLE001 - a template may raise anything
            return evolve(prepared, failure=_failure_of(error))
        return evolve(prepared, case=case, candidate=case.candidate)

    async def rows_of(self, prepared: Prepared) -> AsyncIterator[Row]:
        """Yield the row of each repetition of a case; only an error that ends the run is raised."""
        repetitions = [*repeat_case(prepared.case, self.repeat)]
        try:
            response = await self._response(prepared)
            self.conversations.take(prepared.case, response.candidate.output)
        except DeferError as reason:
            self.conversations.take(prepared.case, reason)
            for case in repetitions:
                yield self.builder.deferred_row(case, str(reason))
            return
        except Exception as error:  # noqa: BLE001 - a target of the user's own may raise anything
            failure = _failure_of(error)
            self.conversations.take(prepared.case, error)
            had = error.candidate if isinstance(error, _BrokenError) else prepared.candidate
            missing = with_key(had or prepared.case.responding(""), prepared.case)
            for case in repetitions:
                yield self.builder.row(case, failure, Response(missing))
                failure = evolve(failure, usage=Usage())  # the target was asked once
            return
        for number, case in enumerate(repetitions):
            yield await self._row(evolve(prepared, case=case), response, number)
            response = evolve(response, usage=Usage())  # as above

    async def _row(self, prepared: Prepared, response: Response, number: int) -> Row:
        case = prepared.case
        try:
            return await self._judge(prepared, response, number)
        except StoreError:  # a reply that cannot be stored ends the run: the next run would pay for it again
            raise
        except Exception as error:  # noqa: BLE001 - as may a condition
            return self.builder.row(case, _failure_of(error), response)

    async def _response(self, prepared: Prepared) -> Response:
        """Return the response to judge, if a judge can be asked and the budget has room."""
        if prepared.failure is not None:
            raise ModelError(prepared.failure)
        case, makes = prepared.case, self.target is not None and prepared.candidate is None
        # Another case of its conversation may continue its response.
        if makes and case.history is None and not can_be_judged(case.rubric):
            raise ModelError(Failure("unsupported", _hopeless(case.rubric)))
        if prepared.deferred:
            raise DeferError(prepared.deferred)
        if prepared.candidate is not None:
            return Response(with_key(prepared.candidate, case))
        assert self.target is not None  # noqa: S101 - else the case is deferred
        answering = (prepared.answering.cost or (0.0, 0.0))[1]
        if self.cases is not None:
            self.cases.refuse_beyond((prepared.worst or 0.0) + answering)
        async with self._holding(answering) as commit:
            if isinstance(self.target, AskedModel) and (case.input or case.messages or case.images or case.turns):
                await self.target.chat.ready()  # loading a client is no part of what the answer took
            usage, began = Usage(), time.perf_counter()
            try:
                response = await self._ask(self.target, case)
                latency, usage = time.perf_counter() - began, response.usage
            except Exception as error:
                usage = _failure_of(error).usage
                raise
            finally:
                self.pipeline.dispatcher.spent.add(usage)
                commit(usage)
        return evolve(response, candidate=with_key(with_metrics(response, latency), case))

    async def _ask(self, target: Target, case: Case) -> Response:
        """Return the response of *target*: requests of a model pass the budget, and a function says what it took."""
        respond, budget, passed = _conversation if case.turns else _response, self.requests, list[Ask]()
        if budget is None:
            return await respond(target, case)
        budget.refuse_beyond()

        def passing(ask: Ask) -> Any:
            passed.append(ask)
            return budget(ask)

        token = PAYING.set((passing, budget.price_usage))
        usage = Usage()
        try:
            usage = (response := await respond(target, case)).usage
        except Exception as error:
            usage = _failure_of(error).usage
            raise
        finally:
            PAYING.reset(token)
            if usage.calls > len(passed) or not passed:
                budget.charge(usage)
        return response

    async def _judge(self, prepared: Prepared, response: Response, number: int) -> Row:
        case, assigned, candidate = prepared.case, prepared.assigned, response.candidate
        if lacks := case.lacks(candidate):
            raise DefinitionError("", lacks)
        worst = prepared.worst
        if prepared.candidate is None and self.cases is not None:  # only now is the candidate known, and so the cost
            worst = await asyncio.to_thread(self._worst, case, assigned, candidate)
        async with self._holding(worst or 0.0) as commit:
            send = self._transport(assigned, case.rubric, number)
            with allowing(when=is_allowed(), **_script_context(case)):
                result = await in_span(case.rubric, grade_parts(candidate, case.rubric, assigned, send))
            commit(result.usage)
        row = self.builder.row(case, result, response, judge=assigned.name(case.rubric))
        if output_choice.choices_of(case.rubric) and not result.degenerate:
            self.halves[row.id] = Half(prepared, result, response, number)
        return row

    def _holding(self, cost: float) -> AbstractAsyncContextManager[Callable[[Usage], object]]:
        """Set the *cost* of a case aside while it runs; what is entered takes what it has used."""
        return nullcontext(lambda _: None) if self.cases is None else self.cases.holding(cost)

    def _transport(self, assigned: Assigned, rubric: Rubric, number: int) -> Transport:
        """Return what sends repetition *number*, with votes numbered on: the store keeps a reply by its vote."""
        if not number:
            return self.pipeline.send
        before = number * max((_votes(judge) for judge, _ in assigned.groups(rubric)), default=1)
        return lambda ask: self.pipeline.send(evolve(ask, vote=ask.vote + before))


async def _response(target: Target, case: Case) -> Response:
    response = Response.of(await target.respond(case))
    if isinstance(response.candidate, Candidate):
        return response
    message = f"{target!r} returned {type(response.candidate).__name__}, expected a Candidate"
    raise TypeError(message)


class _BrokenError(ModelError):
    """A conversation that ended before its last turn, with the *candidate* as far as there is one."""

    def __init__(self, failure: Failure, candidate: Candidate) -> None:
        super().__init__(failure)
        self.candidate = candidate


async def _conversation(target: Target, case: Case) -> Response:
    """Return the conversation of *target* with the user of *case*: each turn continues all those before it."""
    answers: list[str] = []
    calls: list[tuple[ToolCall, ...]] = []  # for each of the answers
    usage, notes = Usage(), dict[str, None]()
    for number, asked in enumerate(case.turns, 1):
        said: Any = case.exchanged(answers)
        turn = evolve(case, input=asked.input, reference="", messages=said, turns=())
        try:
            response = await _response(target, turn)
        except Exception as error:  # a target of the user's own may raise anything
            if isinstance(error, DeferError) and number == 1:
                raise
            failure = _failure_of(error)
            failure = evolve(failure, message=f"turn {number}: {failure.message}", usage=usage + failure.usage)
            said = (*case.exchanged(answers, calls), Message("user", asked.input))
            raise _BrokenError(failure, case.responding("", messages=said, tool_calls=())) from None
        answers.append(response.candidate.output)
        calls.append(response.candidate.tool_calls)
        usage += response.usage
        notes |= dict.fromkeys(response.warnings)
    return Response(case.conversing(answers, calls), usage, tuple(notes))


def _votes(judge: AnyJudge) -> int:
    """Return how many single judges vote in *judge*, however they are nested."""
    return 1 if isinstance(judge, Judge) else sum(map(_votes, judge.members))


def _script_context(case: Case) -> dict[str, Any]:
    """Return what scripts are told of *case*: they judge by a text of it (for AgentV, its criteria), if it has one."""
    criteria = case.metadata.get("criteria")
    return {
        "folder": Path(case.place.source).parent if case.place is not None else Path(),
        "criteria": criteria if isinstance(criteria, str) and criteria else case.context,
        "metadata": case.metadata,
    }


def _hopeless(rubric: Rubric) -> str:
    """Return why nothing in *rubric* can be judged, and what would change that."""
    lacking = [*dict.fromkeys(unsupported_graders(rubric))]
    cures = [f"{one.type}: {one.cure}" for one in lacking if one.cure]
    cures += ["nothing is asserted: give it an assertion or a rubric"] if NOTHING in lacking else []
    cures += ["allow_scripts=True runs its scripts"] if any(programs_in(rubric)) else []
    what = "graders that this library does not have, or scripts that are not allowed"
    return "; ".join([f"nothing in the rubric can be judged ({what}), so the target was not asked", *cures])


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, ModelError):
        return error.failure
    failure = Failure.of(error)
    return evolve(failure, kind="bad_request") if isinstance(error, DefinitionError) else failure
