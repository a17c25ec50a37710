"""Runs a suite: makes the candidates that are not there yet, has each case judged, and reports a row a case."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from rubric.engine.budget import Budget
from rubric.engine.pipeline import CONCURRENCY, Pipeline, StoreLike, pipeline
from rubric.errors import DefinitionError, ModelError, StoreError
from rubric.internals.fields import check_count, check_number
from rubric.internals.secrets import clean, describe
from rubric.suites.assignment import Assigned, assign, graded, side_by_side
from rubric.suites.cases import Case
from rubric.suites.report import Deferred, Report, Row
from rubric.suites.row_builder import deferred_row, row_of, ungraded
from rubric.suites.scripts import Settled, can_be_judged, restored, settled
from rubric.suites.suite_plan import plan_case, why_deferred
from rubric.suites.targets.base import DeferError, Response, Target, TargetLike
from rubric.suites.targets.models import as_target
from rubric.values.candidates import Candidate
from rubric.values.judges import AnyJudge, as_judge
from rubric.values.requests import Failure, Limiter, Usage

if TYPE_CHECKING:
    from rubric.suites.suite import Suite

OnRow = Callable[[Row], object]
"""Is called with each row as soon as its case is through, on the loop of the run."""


async def run_suite(
    suite: Suite,
    judge: Any = None,
    *,
    target: TargetLike | None = None,
    deferred: Deferred = "error",
    allow_scripts: bool = False,
    concurrency: int = 8,
    max_cost: float | None = None,
    store: StoreLike | None = None,
    limits: Limiter | None = None,
    on_row: OnRow | None = None,
) -> Report:
    """
    Run *suite* and return the report, with its rows in the order of the cases; see `Suite.run`.

    Cancelled, it cancels the cases that are under way and waits for them.
    """
    report = Report(clean(suite.name), deferred=deferred, version=version("rubric-grade"))
    check_count("concurrency", concurrency)
    began = time.monotonic()
    if max_cost is not None:
        check_number("max_cost", max_cost, 0, float("inf"))
    bench = None if judge is None else as_judge(judge)
    making = None if target is None else as_target(target)
    asked = None if max_cost is None else Budget(cost=max_cost)
    with pipeline(concurrency=max(CONCURRENCY, concurrency), store=store, budget=asked, limits=limits) as way:
        run = Run(suite, bench, making, allow_scripts, way, asked, Budget(cost=max_cost))
        rows = await run.rows(await asyncio.to_thread(run.prospects), concurrency, on_row)
    warnings = tuple(clean(str(said)) for said in (*suite.warnings, *way.dispatcher.remarks()))
    return evolve(report, rows=rows, warnings=warnings, duration=time.monotonic() - began)


@frozen
class Prospect:
    """
    What is known of a *case* before it starts.

    Args:
        assigned: Who judges it.
        deferred: Why it is deferred; empty if it is not.
        worst: The most that judging it is planned to cost; None if a price is unknown, 0 where there is no budget.
        failure: Why it cannot be graded, if that is known already.
    """

    case: Case
    assigned: Assigned
    deferred: str = ""
    worst: float | None = 0.0
    failure: Failure | None = None


@frozen
class Run:
    """
    One run of a *suite*, with the *judge* and the *target* that the caller has given.

    Args:
        route: How asks get to the judges.
        asked: The budget that every request passes on it; None for none.
        budget: The same for whole cases, by what is planned: better none of a case than a part of it.
    """

    suite: Suite
    judge: AnyJudge | None
    target: Target | None
    allow_scripts: bool
    route: Pipeline
    asked: Budget | None
    budget: Budget

    def prospects(self) -> list[Prospect]:
        """
        Return what is known of each case beforehand. It may load LiteLLM, so it belongs into a thread.

        Raises:
            DefinitionError: There is a budget, and a judge without a known price.
        """
        found = [self._prospect(case) for case in self.suite.cases]
        for prospect in found:
            if prospect.worst is None:
                for bench, _ in prospect.assigned.groups(prospect.case.rubric):
                    self.budget.check(bench, name="max_cost", cure="leave max_cost out")
        return found

    def _prospect(self, case: Case) -> Prospect:
        assigned = assign(case, self.judge, self.suite.judge)
        try:
            deferred = why_deferred(case, assigned, has_target=self.target is not None)
            worst = 0.0 if deferred else self._worst(case, assigned, case.candidate)
        except Exception as error:  # noqa: BLE001 - a condition of the user's own may raise anything
            return Prospect(case, assigned, failure=_failure_of(error))
        return Prospect(case, assigned, deferred, worst)

    def _worst(self, case: Case, assigned: Assigned, candidate: Candidate | None) -> float | None:
        if self.budget.cost is None:
            return 0.0
        cost = plan_case(case, assigned, candidate).cost
        return None if cost is None else cost[1]

    async def rows(self, prospects: Sequence[Prospect], concurrency: int, on_row: OnRow | None) -> tuple[Row, ...]:
        """Return a row a case, in order; so many cases at once as *concurrency* says."""
        done: dict[int, Row] = {}
        waiting = iter(enumerate(prospects))

        async def work() -> None:
            for index, prospect in waiting:
                done[index] = await self.row(prospect)
                if on_row is not None:
                    on_row(done[index])

        await side_by_side(work() for _ in range(min(concurrency, len(prospects))))
        return tuple(done[index] for index in range(len(done)))

    async def row(self, prospect: Prospect) -> Row:
        """Return what becomes of a case; nothing is raised but what ends the run."""
        case = prospect.case
        try:
            response = await self._response(prospect)
        except DeferError as reason:
            return deferred_row(case, str(reason))
        except Exception as error:  # noqa: BLE001 - a target of the user's own may raise anything
            failure = _failure_of(error)
            self._charge(failure.usage, self.budget, self.asked)
            return row_of(case, ungraded(case, failure))
        try:
            row = await self._judged(prospect, response.candidate)
        except StoreError:  # what cannot be kept ends the run: it would be paid for again
            raise
        except Exception as error:  # noqa: BLE001 - as may a condition
            row = row_of(case, ungraded(case, _failure_of(error)), response.candidate)
        warnings = (*(clean(warning) for warning in response.warnings), *row.warnings)
        return evolve(row, usage=response.usage + row.usage, warnings=warnings)

    async def _response(self, prospect: Prospect) -> Response:
        """Return what is to be judged, if there is somebody to judge it and money to pay for it."""
        if prospect.failure is not None:
            raise ModelError(prospect.failure)
        if prospect.deferred:
            raise DeferError(prospect.deferred)
        case = prospect.case
        if case.candidate is not None:
            return Response(case.candidate)
        if not can_be_judged(case.rubric, allow_scripts=self.allow_scripts):
            raise ModelError(Failure("unsupported", _HOPELESS))
        self.budget.refuse_beyond(prospect.worst or 0.0)
        assert self.target is not None  # noqa: S101 - else the case is deferred
        response = Response.of(await self.target.respond(case))
        self._charge(response.usage, self.budget, self.asked)
        if isinstance(response.candidate, Candidate):
            return response
        message = f"{self.target!r} returned {type(response.candidate).__name__}, expected a Candidate"
        raise TypeError(message)

    def _charge(self, usage: Usage, *budgets: Budget | None) -> None:
        """Charge what was spent by others than judges, whom no budget holds back."""
        for budget in budgets:
            if budget is not None:
                budget.charge(usage)

    async def _judged(self, prospect: Prospect, candidate: Candidate) -> Row:
        case, assigned = prospect.case, prospect.assigned
        worst = prospect.worst
        if case.candidate is None and self.budget.cost is not None:  # now that it is known
            worst = await asyncio.to_thread(self._worst, case, assigned, candidate)
        async with self.budget.holding(worst or 0.0) as settle:
            found = await settled(case, candidate) if self.allow_scripts else Settled(case.rubric)
            self._charge(found.usage, self.asked)
            result = restored(await graded(candidate, found.rubric, assigned, self.route.send), case.rubric)
            usage = result.usage + found.usage
            settle(usage)
        return evolve(row_of(case, result, candidate, judge=assigned.name(case.rubric)), usage=usage)


_HOPELESS = (
    "nothing in the rubric can be judged (graders that this library does not have, or scripts that are not allowed), "
    "so the target was not asked"
)


def _failure_of(error: Exception) -> Failure:
    if isinstance(error, ModelError):
        return error.failure
    return Failure("bad_request" if isinstance(error, DefinitionError) else "exception", describe(error))
