"""Grade many candidates: `grade_many`, a lazy stream of results, and `agrade_many`, for `async for`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from attrs import define, field, frozen

from rubric.engine.grade import JudgeLike, RubricOrEach, annotate, as_rubric, checked_rubrics, judge_or_default, trace
from rubric.engine.pipeline import CONCURRENCY, Options, Pipeline, StoreLike, check_loop
from rubric.engine.progress import OnProgress, Progress
from rubric.engine.shards import Shard
from rubric.engine.sources import Candidates, Source, as_candidate, refuse_column, source_of
from rubric.engine.worker_pool import WorkerPool, reader_of
from rubric.errors import DefinitionError, StoreError
from rubric.internals import background_loop
from rubric.internals.containers import NoTruth
from rubric.internals.guided import guided
from rubric.results.collection import Grades
from rubric.results.result import Grade, Ungraded
from rubric.values.candidates import Candidate
from rubric.values.judges import AnyJudge
from rubric.values.requests import PROGRAMS, Failure, Limiter
from rubric.values.rubrics import Rubric, programs_in

if TYPE_CHECKING:
    from rubric.engine.budget import Budget

Result = Grade | Ungraded
T = TypeVar("T")


@guided
def grade_many(
    candidates: Candidates,
    rubric: RubricOrEach,
    judge: JudgeLike | None = None,
    *,
    concurrency: int = CONCURRENCY,
    ordered: bool = True,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    keep: bool = False,
    progress: bool | OnProgress | None = None,
) -> Grading:
    """
    Grade many *candidates* against *rubric*: a lazy stream of a `Grade` or an `Ungraded` for each.

    Nothing happens before the stream is read, and a slow reader slows the grading down: at most 2 x *concurrency*
    candidates are ahead of the reader, so memory stays flat, and *candidates* may go on for ever. Leaving the loop, by
    `break`, by an error or by Ctrl-C, cancels the requests in flight and waits for them.

    An item that is not a candidate (a missing text, a number) becomes an `Ungraded` that says so: each result has its
    place. An error that *candidates* raise is raised here, after the results of all earlier items.

    Args:
        candidates: An iterable or async iterable of texts, candidates, mappings (`output`, `input`, ...) or paths, a
            column or a frame of pandas or polars, or the path of a folder or of a JSONL, CSV or Parquet file. An
            iterable that is not a list is read in a thread of its own.
        rubric: As for `grade`; or a list of rubrics, one for each candidate, in their order.
        judge: As for `grade`.
        concurrency: How many candidates are graded at once, and how many requests are in flight.
        ordered: Whether results come in the order of the candidates, or as they are completed; `index` is the place.
        columns: Which column of a row holds which field of a candidate, if it has another name, such as
            `{"output": "answer", "input": "question"}`. A column that looks like a field and is not used is refused
            before anything is sent; `{"question": None}` ignores it, and `{"variables": ["topic"]}` keeps a column as
            a variable, for `Grades.by("topic")`.
        store: Keeps every reply, and serves those that it has: a `Store`, or the path of one.
        budget: What may be spent; a candidate that it refuses is ungraded.
        limits: How fast models may be asked: `Limits`.
        keep: Whether each result keeps its transcript, as `exchanges`: about the size of its prompts. A store has them
            all in any case, see `rubric view`.
        progress: True shows it in a notebook's cell or on standard error (a bar on a terminal, else lines), False does
            not, None only in a notebook or on a terminal; or a function that is called with a `Progress` after each
            result.

    Raises:
        DefinitionError: An argument that cannot be graded with, or a budget that cannot hold.
        NoJudgeError: No judge was given, and the environment names none.
        StoreError: The store cannot be opened; or, from the stream, not written to: a reply that cannot be kept is not
            asked for.

    Example:
        >>> for result in grade_many(["We thank you for waiting.", "Go away."], "Says thank you", "offline"):
        ...     print(result.index, result.score)
        0 0.5
        1 0.0
    """
    options = Options(concurrency, store, budget, limits, keep)
    return Grading(_job(candidates, rubric, judge, columns, options, is_async=False), ordered, progress)


@guided
def agrade_many(
    candidates: Candidates,
    rubric: RubricOrEach,
    judge: JudgeLike | None = None,
    *,
    concurrency: int = CONCURRENCY,
    ordered: bool = True,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    keep: bool = False,
    progress: bool | OnProgress | None = None,
) -> AsyncGrading:
    """
    Grade many *candidates* like `grade_many`, on the running event loop.

    Python closes an async iterator some time after its loop was left by `break`. If nothing may be in flight by the
    next line, use `async with agrade_many(...) as stream:` around the loop.
    """
    options = Options(concurrency, store, budget, limits, keep)
    return AsyncGrading(_job(candidates, rubric, judge, columns, options, is_async=True), ordered, progress)


def _job(
    candidates: Candidates,
    rubric: RubricOrEach,
    judge: JudgeLike | None,
    columns: Mapping[str, str | Sequence[str] | None] | None,
    options: Options,
    *,
    is_async: bool,
) -> _Job:
    refuse_column(rubric, candidates)
    checked = checked_rubrics(rubric)
    judges = judge_or_default(judge)
    for name in (n for each in (checked if isinstance(checked, tuple) else [checked]) for n in programs_in(each)):
        if PROGRAMS.get() is None:  # else all other criteria would be paid for, and no candidate graded
            cure = "with rubric.programs.allowing(): grades = grade_many(candidates, rubric, judge).collect()"
            raise DefinitionError("rubric", f"{name} is a program, which starts only where you allow it: {cure}")
    source = source_of(candidates, columns)
    if isinstance(checked, tuple):
        source.check_rubrics(len(checked))
    # On an event loop the budget is checked later, in a thread.
    return _Job(source, checked, judges, options.pipeline(judges, checks_budget=not is_async), options)


def rubric_at(rubrics: Sequence[Rubric], index: int) -> Rubric:
    """Return the rubric of the candidate at *index*; without one nothing more can be graded."""
    if index >= len(rubrics):
        raise DefinitionError(f"candidates[{index}]", f"has no rubric: {len(rubrics)} rubrics were given; add its own")
    return rubrics[index]


@frozen
class _Job:
    """A data set to grade, and how each item of it is graded."""

    source: Source
    rubric: Rubric | tuple[Rubric, ...]
    judge: AnyJudge
    pipeline: Pipeline
    options: Options

    async def grade(self, index: int, item: object) -> Result:
        """Grade *item*; nothing is raised but errors that end the stream."""
        # The first result has among its warnings what columns hold that no judge sees.
        remarks = [] if index else [self.source.remark(item)]
        placed = self.source.at(index, item)
        index, given, columns = placed.index, placed.item, placed.columns
        candidate: Candidate | None = None
        rubric = self.rubric if isinstance(self.rubric, Rubric) else rubric_at(self.rubric, index)
        try:
            if isinstance(given, Path):  # a file may be on a slow disk
                candidate = await asyncio.to_thread(as_candidate, given)
            else:
                candidate = as_candidate(given, columns)
            result = await trace(candidate, rubric, self.judge, self.pipeline.send, keep=bool(self.options.keep))
        except StoreError:  # a reply that cannot be kept ends the stream: it would be paid for again
            raise
        except Exception as error:  # noqa: BLE001 - a condition of the user's own may raise anything
            failure = Failure.of(error)
            if isinstance(error, DefinitionError):
                failure = Failure("bad_request", str(placed.locate(error)))
            result = placed.ungraded(rubric, self.judge, failure, candidate)
        else:
            result = annotate(result, self.pipeline.dispatcher)
        # Set in place, since the result is new and unshared: a copy of twenty fields for the sake of one costs as much
        # as scoring them.
        object.__setattr__(result, "index", index)
        if any(remarks):
            object.__setattr__(result, "warnings", (*result.warnings, *filter(None, remarks)))
        return result


@frozen
class Session:
    """An open pipeline, and what is graded over it; see `session`."""

    rubric: Rubric
    judge: AnyJudge
    pipeline: Pipeline
    options: Options

    async def grade(self, candidate: Candidate, rubric: Rubric) -> Result:
        """Grade *candidate* against *rubric*."""
        graded = await trace(candidate, rubric, self.judge, self.pipeline.send, keep=self.options.keeps)
        return annotate(graded, self.pipeline.dispatcher)

    async def work(self, items: Sequence[Any], work: Callable[[int, Any], Awaitable[T]]) -> list[T]:
        """Return what *work* makes of each place and item, in order, as many at once as candidates are graded."""
        concurrency, done = self.options.concurrency, list[T]()
        pool = WorkerPool(reader_of(items, is_held=True), work, concurrency, concurrency)
        try:
            while due := await pool.take():
                done += due
        finally:
            await pool.aclose()
        return done


@asynccontextmanager
async def session(rubric: Rubric | str | Path, judge: AnyJudge, options: Options) -> AsyncIterator[Session]:
    """Open the pipeline to grade by *judge*, with *rubric* loaded, for functions that grade more than candidates."""
    check_loop()
    given = await asyncio.to_thread(as_rubric, rubric)
    with await asyncio.to_thread(options.pipeline, judge) as opened:
        yield Session(given, judge, opened, options)


@define(eq=False, repr=False)
class _Stream(NoTruth):
    """What the sync and the async stream of results have in common."""

    _truth = "its results: read it, or call .collect()"

    _job: _Job
    _ordered: bool
    _progress: bool | OnProgress | None
    _pool: WorkerPool[Result] | None = None
    _collected: list[Result] = field(factory=list)
    _read: int = 0

    def __repr__(self) -> str:
        state = "not begun; read it with for, or with collect()" if self._pool is None else "begun"
        return f"<{type(self).__name__}: {state}>"

    def _begin(self) -> WorkerPool[Result]:
        if self._pool is not None:
            message = "a stream of results can be read once; call grade_many again, or keep what collect() returns"
            raise RuntimeError(message)
        source, concurrency = self._job.source, self._job.options.concurrency
        reader = reader_of(source.items, is_held=source.is_held)
        self._pool = WorkerPool(reader, self._job.grade, concurrency, concurrency, self._ordered)
        return self._pool

    @property
    def collected(self) -> Grades:
        """
        The results that `collect` has read so far, in the order of the candidates.

        Their `usage` is that of all requests so far, also of those for candidates that have not ended.
        """
        ordered = sorted(self._collected, key=lambda result: -1 if result.index is None else result.index)
        spent = self._job.pipeline.dispatcher.spent.usage
        is_stopped = spent.calls > sum(result.usage.calls for result in ordered)
        return Grades(ordered, end=self.end_mark, spent=spent if is_stopped else None)

    @property
    def end_mark(self) -> str:
        """The last line of a shard's file, for `merge_results`, once all results were read; else ''."""
        job = self._job
        return Shard.end_mark(job.source.given, self._read, job.rubric, job.judge)


@define(eq=False, repr=False)
class Grading(_Stream):
    """
    The stream of results that `grade_many` returns; it can be read once, by `for` or by `collect`.

    Leaving the loop ends it. `close` does so too, and may be called at any time.
    """

    _process: int = field(factory=os.getpid)

    if not TYPE_CHECKING:  # a type checker says so without them

        def __len__(self) -> NoReturn:
            raise TypeError("a stream of results has no length before it is read; write len(grade_many(...).collect())")

        def __getitem__(self, _: object) -> NoReturn:
            raise TypeError("a stream of results is read in order; write grade_many(...).collect()[0]")

    def __iter__(self) -> Iterator[Result]:
        return self._results(self._begin())

    def _results(self, pool: WorkerPool[Result]) -> Iterator[Result]:
        try:
            with Progress.reporting(self._progress, self._job.source.total) as tell:
                while due := background_loop.run(pool.take()):
                    while due:
                        tell(result := due.pop(0))
                        self._read += 1
                        yield result
        finally:
            self.close()

    def collect(self) -> Grades:
        """
        Read the stream to its end and return the results, in the order of the candidates.

        If it does not get there (an interrupt, an error), `collected` has the results that were whole by then.
        """
        try:
            self._collected.extend(self)
        finally:
            self._collected += self.rest()
        return self.collected

    def rest(self) -> list[Result]:
        """Stop, and return the results that are whole and were not read, such as those behind a slow one."""
        self.close()
        return self._pool.rest() if self._pool is not None else []

    def close(self) -> None:
        """Stop: requests in flight are cancelled, and waited for."""
        if self._process != os.getpid():  # the workers are the parent's; a forked child has nothing to stop
            return
        try:
            if self._pool is not None:
                background_loop.run(self._pool.aclose())
        except RuntimeError:  # on the background loop itself, which cannot wait
            if self._pool is not None:
                self._pool.abandon()
        finally:
            self._job.pipeline.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@define(eq=False, repr=False)
class AsyncGrading(_Stream):
    """The stream of results that `agrade_many` returns; it can be read once, by `async for` or by `collect`."""

    def __aiter__(self) -> AsyncIterator[Result]:
        return self._results(self._begin())

    async def _results(self, pool: WorkerPool[Result]) -> AsyncIterator[Result]:
        try:
            if (budget := self._job.options.budget) is not None:
                await asyncio.to_thread(budget.check, self._job.judge)
            with Progress.reporting(self._progress, self._job.source.total) as tell:
                while due := await pool.take():
                    while due:
                        tell(result := due.pop(0))
                        self._read += 1
                        yield result
        finally:
            await self.aclose()

    async def collect(self) -> Grades:
        """Read the stream to its end like `Grading.collect`."""
        try:
            async with self:
                async for result in self:
                    self._collected.append(result)
        finally:
            self._collected += self._pool.rest() if self._pool is not None else []
        return self.collected

    async def aclose(self) -> None:
        """Stop: requests in flight are cancelled, and waited for."""
        if self._pool is not None:
            await self._pool.aclose()
        if self._job.pipeline.own is not None:  # closing a file may take a moment
            await asyncio.to_thread(self._job.pipeline.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()
