"""
The verb for those who can wait a day: `grade_in_batches`, at half the price.

Calls to a vendor's batch API, again where that may help, until it is known what came of a batch.

What was sent to a vendor's batch API, in a small JSON file: so nothing is sent again after a crash or a reboot.

A batch is written down before it is created, with a mark by which it is found if nobody lived to hear its id.

Drives flows through a vendor's batch API: all that they ask goes out round by round, as files, at half the price.

A round may take as long as the vendor likes, a day at most. What was sent is kept in a small JSON file: run again with
the same flows after a crash, a Ctrl-C or a reboot, and the same batches are waited for and read, without being sent
again.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from attrs import define, evolve, field

from rubric.engine.budget import Budget
from rubric.engine.grade import JudgeLike, as_rubric, judge_or_default
from rubric.engine.pipeline import StoreLike
from rubric.engine.shards import end_mark
from rubric.engine.sources import Candidates, Placed, Source, candidate_at, source_of
from rubric.errors import DefinitionError, ModelError
from rubric.grading.flow import flow
from rubric.grading.steps import Batch, Got, Steps, T, together
from rubric.internals import background_loop
from rubric.internals.atomic_write import replacing
from rubric.internals.fields import as_path, check_count, check_number
from rubric.models import openai_batches
from rubric.models.openai_batches import BatchState, Line, has_batches
from rubric.models.retry import persist
from rubric.results.collection import Grades
from rubric.store.cache_key import fingerprint
from rubric.store.store import Store
from rubric.values.judges import AnyJudge, Judge, judges_of, unhurried
from rubric.values.requests import Ask, Commit, Failure, Reply, Transport, Usage, commit_nothing
from rubric.values.rubrics import Rubric

V = TypeVar("V")

MOST_LINES = 50_000
"""The most requests that the vendor takes in one batch."""

_MOST_BYTES = 150_000_000


def in_files(wanted: Iterable[tuple[Line, Ask]], size: int) -> Iterator[tuple[Judge, list[Line]]]:
    """Yield what goes into one file each: of one judge, and no more than *size* or than a vendor takes."""
    by_judge: dict[int, tuple[Judge, list[Line]]] = {}
    for line, ask in wanted:
        by_judge.setdefault(id(ask.judge), (ask.judge, []))[1].append(line)
    for judge, every in by_judge.values():
        part: list[Line] = []
        length = 0
        for line in every:
            if part and (len(part) >= min(size, MOST_LINES) or length + len(line.body) > _MOST_BYTES):
                yield judge, part
                part, length = [], 0
            part.append(line)
            length += len(line.body) + 1
        yield judge, part


async def created(judge: Judge, lines: Sequence[Line], mark: str) -> str | Failure:
    """Create a batch of *lines*, and return its id; it is tried again as long as there can be none yet."""

    async def once() -> str | Failure:
        try:
            return await openai_batches.create(judge, lines, mark)
        except ModelError as error:
            if error.failure.in_doubt:
                raise
            return error.failure

    try:
        made, _ = await persist(once, judge.retries)
    except ModelError as error:
        return error.failure
    return made


async def found(judge: Judge, mark: str) -> str | Failure:
    """Return the id of the batch with *mark*; an empty text if the vendor has none."""
    return await _tried(judge, partial(openai_batches.find, judge, mark))


async def answers(
    judge: Judge, batch: str, lines: Mapping[str, Line], poll: float
) -> dict[str, Reply | Failure] | Failure:
    """
    Wait until *batch* is over, and return what came of each of its *lines*, by key; a failure where nobody says.

    Args:
        poll: Seconds between two looks at it.
    """
    state = await _over(judge, batch, poll)
    if isinstance(state, Failure):
        return state
    answered: dict[str, Reply | Failure] = {}
    for name in state.files:
        came = await _tried(judge, partial(openai_batches.replies, judge, name, lines))
        if isinstance(came, Failure):
            return came
        answered |= came
    lost = state.lost(batch)
    return {key: answered.get(key, lost) for key in lines}


async def _over(judge: Judge, batch: str, poll: float) -> BatchState | Failure:
    while True:
        state = await _tried(judge, partial(openai_batches.state, judge, batch))
        if isinstance(state, Failure) or state.is_over:
            return state
        await asyncio.sleep(poll)


async def _tried(judge: Judge, once: Callable[[], Awaitable[V]]) -> V | Failure:
    async def caught() -> V | Failure:
        try:
            return await once()
        except ModelError as error:
            return error.failure

    outcome, _ = await persist(caught, judge.retries)
    return outcome


_FORMAT = 1


@define
class Sent:
    """A batch that was sent: the *mark* it is found by, its *id* once that is known, the *keys* of its requests."""

    mark: str
    id: str
    keys: list[str]


@define
class BatchList:
    """
    The batches that were sent, and are in the file at *path*.

    Args:
        sent: In the order in which they were.
    """

    path: Path
    sent: list[Sent] = field(factory=list)

    @classmethod
    def read(cls, path: Path) -> BatchList:
        """
        Return what *path* holds; nothing, if there is no such file yet.

        Raises:
            DefinitionError: It holds something else.
        """
        try:
            data = json.loads(path.read_text("utf-8"))
            found = [Sent(str(one["mark"]), str(one["id"]), list(one["keys"])) for one in data["batches"]]
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise _no_list(path) from None
        if data.get("format") != _FORMAT:
            raise _no_list(path)
        return cls(path, found)

    def write(self) -> None:
        """Replace the file as a whole, so that there is no half of it."""
        batches = [{"mark": one.mark, "id": one.id, "keys": one.keys} for one in self.sent if one.keys]
        with replacing(self.path) as file:
            json.dump({"format": _FORMAT, "batches": batches}, file)

    def keys(self) -> set[str]:
        """Return the keys of all requests that were sent."""
        return {key for one in self.sent for key in one.keys}

    def forget(self, keys: Iterable[str]) -> None:
        """Strike out *keys*, which got no reply, so that they are sent again."""
        gone = {*keys}
        if not gone:
            return
        for one in self.sent:
            one.keys = [key for key in one.keys if key not in gone]
        self.sent = [one for one in self.sent if one.keys]
        self.write()


def _no_list(path: Path) -> DefinitionError:
    return DefinitionError("path", f"{path} is no list of batches; name another file")


_AT_ONCE = 256  # asks that a store is asked for
_MISSED = "it is not in the store, and goes into a batch"
Outcome = Reply | Failure

Past = Callable[[Transport], Transport]
"""Puts a store in front of whatever carries asks, as `Store.carry` does."""


async def run_in_batches(
    steps: Steps[T],
    path: str | os.PathLike[str],
    *,
    past: Past | None = None,
    budget: Budget | None = None,
    size: int = MOST_LINES,
    poll: float = 60.0,
) -> T:
    """
    Return what *steps* come to, with each batch of asks answered by batches of the vendor's.

    Args:
        path: Where it is written down which batches were sent. One run at a time may use it.
        past: A store that is asked first, and that keeps each answer as soon as it has been read.
        budget: What may be spent. What does not fit beside the rest waits until that is through, and is then refused if
            it still does not. What an earlier run has sent is charged like the rest, and never refused.
        size: The most requests a batch.
        poll: Seconds between two looks at a batch.

    Raises:
        DefinitionError: A judge has no batches, or *path* holds something else.
        StoreError: The store cannot be written to.
    """
    rounds = _Rounds(BatchList.read(Path(path)), past, budget, size, poll)
    got: Got | None = None
    try:
        while True:
            got = await rounds.answered(next(steps) if got is None else steps.send(got))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


async def cancelled_in(path: str | os.PathLike[str], judges: Iterable[Judge]) -> int:
    """
    Cancel what is under way of the batches in *path*, and return how many that are.

    Args:
        judges: Whose addresses and keys the batches were sent with; each address is asked once.

    Raises:
        DefinitionError: *path* holds something else.
        ModelError: The vendor does not say.
    """
    places = {openai_batches.place_of(judge): judge for judge in judges}
    cancelled = 0
    for one in BatchList.read(Path(path)).sent:
        for judge in places.values():
            batch = one.id or await openai_batches.find(judge, one.mark)
            cancelled += bool(batch) and await openai_batches.cancel(judge, batch)
    return cancelled


Wanted = Mapping[str, tuple[Line, Ask]]


@define
class _Rounds:
    known: BatchList
    past: Past | None
    budget: Budget | None
    size: int
    poll: float
    answers: dict[str, Outcome] = field(factory=dict)

    async def answered(self, batch: Batch) -> Got:
        """Return what came of the asks of *batch*."""
        lines = [_line(ask) for ask in batch]
        wanted = {line.key: (line, ask) for line, ask in zip(lines, batch, strict=True) if isinstance(line, Line)}
        if self.past is not None:
            await self._recall(self.past, wanted)
        await self._adopt(self._open(wanted))
        await self._resume(self._open(wanted))
        while fresh := self._open(wanted):
            await self._wave(fresh)
        return self._got(batch, lines)

    def _open(self, wanted: Wanted) -> dict[str, tuple[Line, Ask]]:
        return {key: pair for key, pair in wanted.items() if key not in self.answers}

    # -- the store -----------------------------------------------------------------------------------------

    async def _recall(self, past: Past, wanted: Wanted) -> None:
        """Take from the store what it has."""

        async def miss(_: Ask) -> Outcome:
            return Failure("replay", _MISSED)  # of a kind of what is not sent: so the store lets go of it

        async def look(key: str, ask: Ask) -> None:
            outcome = await past(miss)(ask)
            if not (isinstance(outcome, Failure) and outcome.message == _MISSED):
                self.answers[key] = outcome

        await _each(look(key, ask) for key, (_, ask) in self._open(wanted).items())

    async def _keep(self, wanted: Wanted, found: Mapping[str, Outcome]) -> None:
        """Have the store keep what was *found*, before anybody uses it."""
        if self.past is None:
            return

        async def keep(past: Past, ask: Ask, outcome: Outcome) -> None:
            async def came(_: Ask) -> Outcome:
                return outcome

            await past(came)(ask)

        await _each(keep(self.past, wanted[key][1], outcome) for key, outcome in found.items())

    # -- what an earlier run has sent ----------------------------------------------------------------------

    async def _adopt(self, wanted: Wanted) -> None:
        """Look for batches whose ids nobody lived to hear; what was not created is forgotten, and so sent again."""
        for one in [one for one in self.known.sent if not one.id]:
            judge = next((wanted[key][1].judge for key in one.keys if key in wanted), None)
            if judge is None:
                continue
            batch = await found(judge, one.mark)
            if isinstance(batch, Failure):
                self.answers |= dict.fromkeys(one.keys, batch)
            elif batch:
                one.id = batch
                self.known.write()
            else:
                self.known.forget(one.keys)

    async def _resume(self, wanted: Wanted) -> None:
        """Wait for what was sent before, and charge it: it was set aside by whoever is gone."""
        found = await self._received(wanted)
        if self.budget is None:
            return
        for key, outcome in found.items():
            await self.budget.charge_for(wanted[key][1], outcome)

    # -- what is sent now ----------------------------------------------------------------------------------

    async def _wave(self, fresh: Wanted) -> None:
        """Send as much of *fresh* as the budget allows at once, and wait for it; answer what it never will."""
        async with AsyncExitStack() as held:
            settles = await self._admitted(held, fresh)
            wave = {key: fresh[key] for key in settles}
            found: dict[str, Outcome] = {}
            try:
                for judge, lines in in_files(wave.values(), self.size):
                    await self._send(judge, lines)
                found = await self._received(wave)
            finally:
                self._settle(settles, found)
        self._queue_again(found)

    def _settle(self, settles: Mapping[str, Commit], found: Mapping[str, Outcome]) -> None:
        """Tell the budget what came; of what was sent, and has no answer yet, nothing: so all of it is charged."""
        sent = self.known.keys()
        for key, settle in settles.items():
            if key in found or key not in sent:
                settle(found.get(key))

    async def _admitted(self, held: AsyncExitStack, fresh: Wanted) -> dict[str, Commit]:
        """Return those that fit, with whom to tell what came; where none does, their refusals are their answers."""
        if self.budget is None:
            return dict.fromkeys(fresh, commit_nothing)
        settles: dict[str, Commit] = {}
        refused: dict[str, Outcome] = {}
        for key, (_, ask) in fresh.items():
            try:
                settles[key] = await held.enter_async_context(self.budget.at_once(ask))
            except ModelError as error:
                refused[key] = error.failure
        if not settles:
            self.answers |= refused
        return settles

    async def _send(self, judge: Judge, lines: Sequence[Line]) -> None:
        one = Sent(uuid4().hex, "", [line.key for line in lines])
        self.known.sent.append(one)
        self.known.write()
        made = await created(judge, lines, one.mark)
        if isinstance(made, Failure):
            self.answers |= dict.fromkeys(one.keys, made)
            if not made.in_doubt:
                self.known.forget(one.keys)
        else:
            one.id = made
            self.known.write()

    async def _received(self, wanted: Wanted) -> dict[str, Outcome]:
        """Wait for all batches with something *wanted*, and return what they answer to it."""
        found: dict[str, Outcome] = {}
        for one in [*self.known.sent]:
            mine = {key: wanted[key] for key in one.keys if key in wanted and key not in self.answers}
            if mine and one.id:
                found |= await self._receive(one, mine)
        return found

    async def _receive(self, one: Sent, mine: Wanted) -> dict[str, Outcome]:
        """Wait until *one* is over, and keep what it answers."""
        judge = next(iter(mine.values()))[1].judge
        came = await answers(judge, one.id, {key: line for key, (line, _) in mine.items()}, self.poll)
        if isinstance(came, Failure):  # nobody says how it stands: another run will ask
            self.answers |= dict.fromkeys(mine, came)
            return {}
        await self._keep(mine, came)
        self.answers |= came
        self.known.forget(key for key, outcome in came.items() if isinstance(outcome, Failure))
        return came

    def _queue_again(self, found: Mapping[str, Outcome]) -> None:
        """Send again what the vendor's queue had no room for, if others were answered meanwhile and have made some."""
        if any(isinstance(outcome, Reply) for outcome in found.values()):
            for key, outcome in found.items():
                if isinstance(outcome, Failure) and openai_batches.is_queue_full(outcome):
                    del self.answers[key]

    def _got(self, batch: Batch, lines: Sequence[Line | Failure]) -> Got:
        """Return the answers in the order of the asks; asks that are the same to the byte were paid for once."""
        served: set[str] = set()
        got: list[Outcome] = []
        for ask, line in zip(batch, lines, strict=True):
            answer = line if isinstance(line, Failure) else self.answers[line.key]
            paid = isinstance(line, Failure) or line.key not in served
            answer = answer if paid else evolve(answer, usage=Usage())
            got.append(evolve(answer, judge=ask.judge.name) if isinstance(answer, Failure) else answer)
            served |= set() if isinstance(line, Failure) else {line.key}
        return tuple(got)


def _line(ask: Ask) -> Line | Failure:
    if not openai_batches.has_batches(ask.judge):
        raise DefinitionError("judge", f"{ask.judge.name!r} has no batches here; name a model of OpenAI's")
    try:
        return openai_batches.line_of(ask)
    except ModelError as error:
        return error.failure


async def _each(several: Iterable[Awaitable[None]]) -> None:
    """Await *several*, some at a time; raise what the first of them raises once the others beside it are through."""
    waiting = iter(several)
    while some := [*islice(waiting, _AT_ONCE)]:
        for came in await asyncio.gather(*some, return_exceptions=True):
            if isinstance(came, BaseException):
                raise came


def grade_in_batches(
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    size: int = MOST_LINES,
    poll: float = 60.0,
) -> Grades:
    """
    Grade *candidates* through the vendor's batch API, and return their results in order.

    All that can be asked at once goes out as files, round by round; re-asks of unreadable replies and the next
    questions of trees are rounds of their own (`Judge(speculate=True)` asks all questions of a tree in one). A round
    takes as long as the vendor likes, a day at most. Early stops are off: votes that wait for votes wait for days.

    Which batches were sent is kept at *path*. After a crash, a Ctrl-C or a reboot, call it again with the same
    arguments: it waits for the same batches and reads them, and nothing is sent twice. What came to nothing (a batch
    that expired, or was cancelled) is ungraded, costs nothing, and is sent again by the next call.

    Args:
        candidates: As for `grade_many`; all of them are read at once, and one that is none is an error.
        rubric: As for `grade`.
        judge: As for `grade`, with models of OpenAI's alone, or of servers of its batches that
            `params={"api_base": ...}` names. They are asked straight over HTTP, also without `via="http"`.
        path: A file of your own for each run; it holds no text and no key.
        columns: Which column of a row holds which field of a candidate, as for `grade_many`.
        store: Serves what it has, and keeps each answer as soon as it is read: a `Store`, or the path of one.
        budget: What may be spent; at the ordinary price until it is known what it took. What does not fit is sent in a
            later round, or refused.
        size: The most requests a batch: fewer, where the vendor's queue has no room for as many.
        poll: Seconds between two looks at a batch.

    Raises:
        DefinitionError: An argument that cannot be graded with, a judge without batches, or a budget that cannot hold.
        NoJudgeError: No judge was given, and the environment names none.
        StoreError: The store cannot be opened, or not written to.
    """
    return background_loop.run(
        agrade_in_batches(
            candidates, rubric, judge, path, columns=columns, store=store, budget=budget, size=size, poll=poll
        )
    )


async def agrade_in_batches(
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | None] | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    size: int = MOST_LINES,
    poll: float = 60.0,
) -> Grades:
    """Grade *candidates* like `grade_in_batches`, on the running event loop."""
    _check(size, poll)
    file = as_path("path", path)
    graded, bench = as_rubric(rubric), _in_batches(judge_or_default(judge))
    source = source_of(candidates, columns)
    placed = await _read(source)
    flows = [flow(candidate_at(one.index, one), graded, bench, ahead=False) for one in placed]
    if budget is not None:
        await asyncio.to_thread(budget.check, bench)
    with ExitStack() as opened:
        kept = store if store is None or isinstance(store, Store) else opened.enter_context(Store(store))
        # Gated, though nothing is sent that way: who dies while looking something up leaves nothing in doubt.
        past = None if kept is None else partial(kept.carry, gated=True)
        results = await run_in_batches(together(flows), file, past=past, budget=budget, size=size, poll=poll)
    grades = [evolve(result, index=one.index) for one, result in zip(placed, results, strict=True)]
    return Grades(grades, end=end_mark(source.given, len(grades), lambda: (fingerprint(graded), fingerprint(bench))))


def cancel_batches(path: str | os.PathLike[str], judge: JudgeLike | None = None) -> int:
    """
    Cancel what is under way of the batches that `grade_in_batches` has written down at *path*, and return their number.

    What was answered by then is paid for, and the next run reads it; the rest it sends again.

    Args:
        judge: As it was for `grade_in_batches`: whose keys and addresses the batches were sent with.

    Raises:
        DefinitionError: *path* holds something else.
        ModelError: The vendor does not say.
    """
    return background_loop.run(acancel_batches(path, judge))


async def acancel_batches(path: str | os.PathLike[str], judge: JudgeLike | None = None) -> int:
    """Cancel batches like `cancel_batches`, on the running event loop."""
    return await cancelled_in(as_path("path", path), judges_of(_in_batches(judge_or_default(judge))))


def _check(size: object, poll: object) -> None:
    check_count("size", size)
    check_number("poll", poll, 0, 86_400)


def _in_batches(bench: AnyJudge) -> AnyJudge:
    """Return *bench* as it votes in batches; raise `DefinitionError` if one of its judges has none."""
    for judge in judges_of(bench):
        if not has_batches(judge):
            raise DefinitionError("judge", f"{judge.name!r} has no batches here; name a model of OpenAI's")
    return unhurried(bench)


async def _read(source: Source) -> list[Placed]:
    items = source.items
    every = [item async for item in items] if isinstance(items, AsyncIterable) else [*items]
    return [Placed.at(index, item, source.columns) for index, item in enumerate(every)]
