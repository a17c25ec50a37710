"""The verbs for many candidates: `grade_many`, a lazy stream of results, and `agrade_many`, for `async for`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Self

from attrs import define, evolve, field, frozen

from rubric.engine.budget import Budget
from rubric.engine.grade import JudgeLike, as_bench, as_rubric, remarked
from rubric.engine.pipeline import Pipeline, StoreLike, route, run
from rubric.engine.progress import OnProgress, reporting
from rubric.engine.shards import end_mark
from rubric.engine.sources import Candidates, Placed, Source, as_candidate, located, source_of
from rubric.engine.worker_pool import Stream, pulling
from rubric.errors import DefinitionError, StoreError
from rubric.grading.flow import check, flow
from rubric.internals import background_loop
from rubric.internals.containers import NoTruth
from rubric.internals.secrets import describe
from rubric.results.collection import Grades
from rubric.results.result import Grade, Ungraded
from rubric.scoring.outcomes import unknown
from rubric.store.cache_key import fingerprint
from rubric.values.findings import Unjudged
from rubric.values.judges import AnyJudge, Judge
from rubric.values.requests import Failure, Limiter
from rubric.values.rubrics import Rubric

Result = Grade | Ungraded
CONCURRENCY = 64


def grade_many(
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    concurrency: int = CONCURRENCY,
    ordered: bool = True,
    columns: Mapping[str, str | None] | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    progress: bool | OnProgress | None = None,
) -> Grading:
    """
    Grade many *candidates* against *rubric*: a lazy stream of a `Grade` or an `Ungraded` for each.

    Nothing happens before the stream is read, and what reads it slowly slows the grading down: at most 2 x
    *concurrency* candidates are ahead of the reader, so memory stays flat, and *candidates* may have no end. Leaving
    the loop, by `break` or by an error or by Ctrl-C, stops what is under way and waits for it.

    What is no candidate (a missing text, a number) becomes an `Ungraded` that says so, so each result has its place.
    An error that *candidates* raise themselves comes out once all that was taken before it has been handed out.

    Args:
        candidates: An iterable or async iterable of texts, candidates, mappings (`output`, `input`, ...) or `Path`s of
            texts, a column or a frame of pandas or polars, or the path of a JSONL, CSV or Parquet file; see
            `rubric.engine.sources`. An iterable that is no list is gone through in a thread of its own.
        rubric: As for `grade`.
        judge: As for `grade`.
        concurrency: How many candidates are graded, and how many requests are under way, at once.
        ordered: Whether results come in the order of the candidates, or as they are completed; `index` tells the place.
        columns: Which column of a row holds which field of a candidate, where it has another name, such as
            `{"output": "answer", "input": "question"}`. A column that looks like a field and is not used is refused
            before anything is sent; `{"question": None}` passes it over.
        store: Keeps every reply, and serves what it has: a `Store`, or the path of one.
        budget: What may be spent; what it refuses is ungraded.
        limits: How fast models may be asked: `Limits`.
        progress: True shows it on standard error (a bar on a terminal, else lines), False does not, None only on a
            terminal; or a function that is called with a `Progress` after each result.

    Raises:
        DefinitionError: An argument that cannot be graded with, or a budget that cannot hold.
        NoJudgeError: No judge was given, and the environment names none.
        StoreError: The store cannot be opened; or, from the stream, not written to: what cannot be kept is not sent.

    Example:
        >>> for result in grade_many(["We thank you for waiting.", "Go away."], "Says thank you", "offline"):
        ...     print(result.index, result.score)
        0 0.5
        1 0.0
    """
    graded, bench = _checked(rubric, judge)
    source = source_of(candidates, columns)
    way = route(concurrency=concurrency, store=store, budget=budget, limits=limits, bench=bench)
    return Grading(_Job(source, graded, bench, way, concurrency, ordered, progress))


def agrade_many(
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    concurrency: int = CONCURRENCY,
    ordered: bool = True,
    columns: Mapping[str, str | None] | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    progress: bool | OnProgress | None = None,
) -> AsyncGrading:
    """
    Grade many *candidates* like `grade_many`, on the running event loop.

    Python closes an async iterator some time after its loop was left by `break`. Where nothing may be under way by the
    next line, use `async with agrade_many(...) as stream:` around the loop.
    """
    graded, bench = _checked(rubric, judge)
    source = source_of(candidates, columns)
    way = route(concurrency=concurrency, store=store, budget=budget, limits=limits)
    return AsyncGrading(_Job(source, graded, bench, way, concurrency, ordered, progress), budget)


def _checked(rubric: Rubric | str | Path, judge: JudgeLike | None) -> tuple[Rubric, AnyJudge]:
    graded = as_rubric(rubric)
    check(graded)
    return graded, as_bench(judge)


@frozen
class _Job:
    """What is to be graded, and how."""

    source: Source
    rubric: Rubric
    bench: AnyJudge
    route: Pipeline
    concurrency: int
    ordered: bool
    progress: bool | OnProgress | None

    def stream(self) -> Stream[Result]:
        pull = pulling(self.source.items, is_held=self.source.is_held)
        return Stream(pull, self.grade, self.concurrency, self.concurrency, self.ordered)

    def end_mark(self, results: int) -> str:
        """Return the last line of the file of a shard; '' for what is none, or has more than so many results."""
        return end_mark(self.source.given, results, lambda: (fingerprint(self.rubric), fingerprint(self.bench)))

    async def grade(self, index: int, item: object) -> Result:
        """Return what *item* comes to; nothing is raised but what ends the stream."""
        placed = Placed.at(index, item, self.source.columns)
        index = placed.index
        try:
            if isinstance(placed.item, Path):  # a file may be on a slow disk
                placed = evolve(placed, item=await asyncio.to_thread(as_candidate, placed.item))
            result = await run(flow(placed.candidate, self.rubric, self.bench), carry=self.route.carry)
        except StoreError:  # what cannot be kept ends the stream: it would be paid for again
            raise
        except Exception as error:  # noqa: BLE001 - a condition of the user's own may raise anything
            return self._ungraded(index, error)
        return evolve(remarked(result, self.route.room), index=index)

    def _ungraded(self, index: int, error: Exception) -> Ungraded:
        failure = Failure("exception", describe(error))
        if isinstance(error, DefinitionError):
            failure = Failure("bad_request", str(located(index, error)))
        missing = tuple(Unjudged(criterion.id, failure) for criterion in self.rubric.judged)
        return Ungraded(self.rubric, _NOBODY, missing, unknown(self.rubric), failures=(failure,), index=index)


def _nobody(_: object) -> str:
    """Stand in for the judge of what is no candidate; it is never asked."""
    raise AssertionError


_NOBODY = Judge(_nobody)
_READ = "its results: read it, or call .collect()"


@define(eq=False, repr=False)
class Grading(NoTruth):
    """
    What `grade_many` returns: a stream of results that can be read once, by `for` or by `collect`.

    Leaving the loop ends it. `close` does so too, and may be called at any time.
    """

    _truth = _READ

    _job: _Job
    _stream: Stream[Result] | None = None
    _collected: list[Result] = field(factory=list)
    _read: int = 0
    _process: int = field(factory=os.getpid)

    def __repr__(self) -> str:
        return f"<Grading: {_state(self._stream)}>"

    def __iter__(self) -> Iterator[Result]:
        if self._stream is not None:
            raise RuntimeError(_ONCE)
        self._stream = self._job.stream()
        return self._results(self._stream)

    def _results(self, stream: Stream[Result]) -> Iterator[Result]:
        try:
            with reporting(self._job.progress, self._job.source.total) as tell:
                while due := background_loop.run(stream.take()):
                    for result in due:
                        tell(result)
                        self._read += 1
                        yield result
        finally:
            self.close()

    def collect(self) -> Grades:
        """
        Read the stream to its end and return the results, in the order of the candidates.

        If it does not get there (an interrupt, an error), `collected` has what it got.
        """
        self._collected.extend(self)
        return self.collected

    @property
    def collected(self) -> Grades:
        """What `collect` has read so far, in the order of the candidates."""
        return _in_order(self._collected, self.end_mark)

    @property
    def end_mark(self) -> str:
        """
        The last line of a shard's file of results, once all of them have been read, else ''.

        `Grades.to_jsonl` writes it; whoever writes the lines otherwise writes it after them, for `merge_results`.
        """
        return self._job.end_mark(self._read)

    def close(self) -> None:
        """Stop: what is under way is cancelled, and waited for."""
        if self._process != os.getpid():  # a child has nothing to stop
            return
        try:
            if self._stream is not None:
                self._stop(self._stream)
        finally:
            self._job.route.close()

    @staticmethod
    def _stop(stream: Stream[Result]) -> None:
        closing = stream.aclose()
        try:
            background_loop.run(closing)
        except RuntimeError:  # on the background loop itself, which cannot wait
            stream.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@define(eq=False, repr=False)
class AsyncGrading(NoTruth):
    """What `agrade_many` returns: a stream of results that can be read once, by `async for` or by `collect`."""

    _truth = _READ

    _job: _Job
    _budget: Budget | None = None
    _stream: Stream[Result] | None = None
    _collected: list[Result] = field(factory=list)
    _read: int = 0

    def __repr__(self) -> str:
        return f"<AsyncGrading: {_state(self._stream)}>"

    def __aiter__(self) -> AsyncIterator[Result]:
        if self._stream is not None:
            raise RuntimeError(_ONCE)
        self._stream = self._job.stream()
        return self._results(self._stream)

    async def _results(self, stream: Stream[Result]) -> AsyncIterator[Result]:
        try:
            if self._budget is not None:
                await asyncio.to_thread(self._budget.check, self._job.bench)
            with reporting(self._job.progress, self._job.source.total) as tell:
                while due := await stream.take():
                    for result in due:
                        tell(result)
                        self._read += 1
                        yield result
        finally:
            await self.aclose()

    async def collect(self) -> Grades:
        """Read the stream to its end like `Grading.collect`."""
        async with self:
            async for result in self:
                self._collected.append(result)
        return self.collected

    @property
    def collected(self) -> Grades:
        """What `collect` has read so far, in the order of the candidates."""
        return _in_order(self._collected, self.end_mark)

    @property
    def end_mark(self) -> str:
        """
        The last line of a shard's file of results, once all of them have been read, else ''.

        `Grades.to_jsonl` writes it; whoever writes the lines otherwise writes it after them, for `merge_results`.
        """
        return self._job.end_mark(self._read)

    async def aclose(self) -> None:
        """Stop: what is under way is cancelled, and waited for."""
        if self._stream is not None:
            await self._stream.aclose()
        if self._job.route.own is not None:  # to close a file may take a moment
            await asyncio.to_thread(self._job.route.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _state(stream: Stream[Result] | None) -> str:
    return "not begun; read it with for, or with collect()" if stream is None else "begun"


def _in_order(results: list[Result], end: str) -> Grades:
    return Grades(sorted(results, key=lambda result: -1 if result.index is None else result.index), end=end)


_ONCE = "a stream of results can be read once; call grade_many again, or keep what collect() returns"
