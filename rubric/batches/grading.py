"""
Grade through a vendor's batch API: `grade_in_batches`, at half the price, for those who can wait a day.

All asks that the flows have ready go out together as files, round by round, and a round may take as long as the vendor
likes. The batches that were sent are listed in a small JSON file. Run again with the same arguments after a crash, a
Ctrl-C or a reboot, and the same batches are waited for and read; nothing is sent twice. Each batch is listed *before*
it is created, with a mark by which it is found at the vendor's if the process died before the vendor's answer.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import warnings
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import define, evolve, field

from rubric import Budget, DefinitionError, Grades, Judge, ModelError, Rubric, Store, Ungraded
from rubric.batches import openai
from rubric.batches.openai import BatchState, Line
from rubric.driving import Ask, Failure, Reply, Usage, adrive, flow, together
from rubric.embed import (
    JudgeLike,
    StoreLike,
    Transport,
    as_rubric,
    fields,
    guided,
    judge_or_default,
    replacing,
    source_of,
)
from rubric.engine import Candidates, Shard
from rubric.models.later_replies import Service
from rubric.values import AnyJudge

Outcome = Reply | Failure
Commit = Callable[[Outcome | None], object]
Wanted = Mapping[str, tuple[Line, Ask]]
"""Requests by their keys: the line of a batch's file, and the ask that it was made of."""

MOST_LINES = 50_000
"""The most requests that the vendor takes in one batch."""

_MOST_BYTES = 150_000_000
_AT_ONCE = 256
"""Asks that a store is asked for at once."""


@guided
async def agrade_in_batches(
    candidates: Candidates,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None,
    path: str | os.PathLike[str],
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    size: int = MOST_LINES,
    poll: float = 60.0,
) -> Grades:
    """Grade *candidates* like `grade_in_batches`, on the running event loop."""
    fields.check_count("size", size)
    fields.check_number("poll", poll, 0, 86_400)
    file = fields.as_path("path", path)
    checked, judges = as_rubric(rubric), _in_batches(judge_or_default(judge))
    source = source_of(candidates, columns)
    every = [item async for item in source.items] if isinstance(source.items, AsyncIterable) else source.items
    placed = [source.at(index, item) for index, item in enumerate(every)]
    flows, lost = [], dict[int, Ungraded]()
    for one in placed:
        try:
            flows.append(flow(one.candidate, checked, judges, ahead=False))
        except DefinitionError as error:
            lost[one.index] = one.ungraded(checked, judges, Failure("bad_request", str(error)))
    if budget is not None:
        await asyncio.to_thread(budget.check, judges)
    with ExitStack() as opened:
        kept = store if store is None or isinstance(store, Store) else opened.enter_context(Store(store))
        # Gated, though nothing is sent that way: a process that dies during a look-up leaves nothing in doubt.
        past = None if kept is None else partial(kept.transport, limited=True)
        rounds = _Rounds(BatchList.read(file), past, budget, size, poll)
        made = iter(await adrive(together(flows), together=rounds.answer_all))
    grades = [lost[one.index] if one.index in lost else evolve(next(made), index=one.index) for one in placed]
    return Grades(grades, end=Shard.end_mark(source.given, len(grades), checked, judges))


@guided(waits_for=agrade_in_batches)
def grade_in_batches(*args: Any, **named: Any) -> Any:
    """
    Grade *candidates* through the vendor's batch API, and return their results in order.

    All that can be asked at once goes out as files, round by round; re-asks of unreadable replies and the next
    questions of trees are rounds of their own (`Judge(speculate=True)` asks all questions of a tree in one). A round
    takes as long as the vendor likes, a day at most. Early stops are off: votes that wait for votes wait for days.

    The batches that were sent are listed at *path*. After a crash, a Ctrl-C or a reboot, call it again with the same
    arguments: it waits for the same batches and reads them, and nothing is sent twice. A request without an answer (its
    batch expired, or was cancelled) is ungraded, costs nothing, and is sent again by the next call.

    Args:
        candidates: As for `grade_many`; all of them are read at once, and one that is none is ungraded.
        rubric: As for `grade`.
        judge: As for `grade`, with models of OpenAI's alone, or of servers of its batches that
            `params={"api_base": ...}` names. They are asked straight over HTTP, also without `via="http"`.
        path: A file of your own for each run; it holds no text and no key.
        columns: Which column of a row holds which field of a candidate, as for `grade_many`.
        store: Serves the replies that it has, and keeps each new one as soon as it is read: a `Store`, or the path of
            one.
        budget: What may be spent; at the ordinary price, with the longest reply, until the cost is known. A request
            that does not fit is sent in a later round, which a warning tells beforehand, or refused.
        size: The most requests a batch: fewer, where the vendor's queue has no room for as many.
        poll: Seconds between two looks at a batch.

    Raises:
        DefinitionError: An argument that cannot be graded with, a judge without batches, or a budget that cannot hold.
        NoJudgeError: No judge was given, and the environment names none.
        StoreError: The store cannot be opened, or not written to.
    """
    return agrade_in_batches(*args, **named)


@guided
async def acancel_batches(path: str | os.PathLike[str], judge: JudgeLike | None = None) -> int:
    """Cancel batches like `cancel_batches`, on the running event loop."""
    known = BatchList.read(fields.as_path("path", path))
    places = {Service(one).place: one for one in _in_batches(judge_or_default(judge)).single_judges()}
    cancelled = 0
    for sent in known.sent:
        for one in places.values():
            batch = sent.id or await openai.find(one, sent.mark)
            cancelled += bool(batch) and await openai.cancel(one, batch)
    return cancelled


@guided(waits_for=acancel_batches)
def cancel_batches(*args: Any, **named: Any) -> Any:
    """
    Cancel the batches in flight that `grade_in_batches` has listed at *path*, and return their number.

    Requests that were answered by then are paid for, and the next run reads their replies; it sends the others again.

    Args:
        judge: As it was for `grade_in_batches`: its keys and addresses are those that the batches were sent with.

    Raises:
        DefinitionError: *path* holds something else.
        ModelError: The vendor gives no answer.
    """
    return acancel_batches(*args, **named)


def _in_batches(judge: AnyJudge) -> AnyJudge:
    """Return *judge* without early stops; raise `DefinitionError` if one of its judges has no batches."""
    for one in judge.single_judges():
        _check_has_batches(one)
    return judge.without_early_stop()


def _check_has_batches(judge: Judge) -> None:
    if not Service(judge).speaks_openai:
        raise DefinitionError("judge", f"{judge.name!r} has no batches here; name a model of OpenAI's")


# -- the list of batches ---------------------------------------------------------------------------------

_FORMAT = 1


@define
class Sent:
    """A batch that was sent: the *mark* it is found by, its *id* once that is known, the *keys* of its requests."""

    mark: str
    id: str
    keys: list[str]


@define
class BatchList:
    """The batches that were *sent*, in order, as they are listed in the file at *path*."""

    path: Path
    sent: list[Sent] = field(factory=list)

    @classmethod
    def read(cls, path: Path) -> BatchList:
        """Return the list at *path*; an empty one if there is no such file yet."""
        wrong = DefinitionError("path", f"{path} is not a list of batches; name another file")
        try:
            data = json.loads(path.read_text("utf-8"))
            found = [Sent(str(one["mark"]), str(one["id"]), list(one["keys"])) for one in data["batches"]]
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise wrong from None
        if data.get("format") != _FORMAT:
            raise wrong
        return cls(path, found)

    def write(self) -> None:
        """Replace the file as a whole, so that there is no half of it."""
        batches = [{"mark": one.mark, "id": one.id, "keys": one.keys} for one in self.sent if one.keys]
        with replacing(self.path) as file:
            json.dump({"format": _FORMAT, "batches": batches}, file)

    def forget(self, keys: Iterable[str]) -> None:
        """Strike out *keys*, which got no reply, so that they are sent again."""
        gone = {*keys}
        if not gone:
            return
        for one in self.sent:
            one.keys = [key for key in one.keys if key not in gone]
        self.sent = [one for one in self.sent if one.keys]
        self.write()


# -- rounds ----------------------------------------------------------------------------------------------

# Of a kind that was not sent, so the store drops its claim.
_MISS = Failure("replay", "it is not in the store, and goes into a batch")


@define
class _Rounds:
    """
    Answers rounds of asks by batches.

    Args:
        known: The batches that were sent; one run at a time may use the file.
        past: Puts a store in front of a transport, as `Store.transport` does; None for no store.
        budget: A request that does not fit beside the others waits until they are through, and is then refused if it
            still does not. A request that an earlier run has sent is charged like the rest, and never refused.
        answers: The outcomes of this run, by key.
    """

    known: BatchList
    past: Callable[[Transport], Transport] | None
    budget: Budget | None
    size: int
    poll: float
    answers: dict[str, Outcome] = field(factory=dict)
    is_told: bool = False

    async def answer_all(self, _: Transport, batch: Sequence[Ask]) -> Sequence[Outcome]:
        """Return the outcomes of the asks of *batch*, one round; to be the `together` of `adrive`."""
        lines = [_line(ask) for ask in batch]
        wanted = {line.key: (line, ask) for line, ask in zip(lines, batch, strict=True) if isinstance(line, Line)}
        await self._pass_store(wanted, {})
        await self._adopt(self._open(wanted))
        earlier = await self._receive(self._open(wanted))
        if self.budget is not None:  # the process that had reserved the money for these is gone
            for key, outcome in earlier.items():
                await self.budget.charge_for(wanted[key][1], outcome)
        while fresh := self._open(wanted):
            await self._wave(fresh)
        return self._in_order(batch, lines)

    def _open(self, wanted: Wanted) -> dict[str, tuple[Line, Ask]]:
        return {key: pair for key, pair in wanted.items() if key not in self.answers}

    def _in_order(self, batch: Sequence[Ask], lines: Sequence[Line | Failure]) -> Sequence[Outcome]:
        """Return the answers in the order of the asks; asks that are equal to the byte were paid for once."""
        served: set[str] = set()
        outcomes: list[Outcome] = []
        for ask, line in zip(batch, lines, strict=True):
            answer = line if isinstance(line, Failure) else self.answers[line.key]
            if isinstance(line, Line):
                answer = evolve(answer, usage=Usage()) if line.key in served else answer
                served.add(line.key)
            outcomes.append(evolve(answer, judge=ask.judge.name) if isinstance(answer, Failure) else answer)
        return outcomes

    async def _pass_store(self, wanted: Wanted, found: Mapping[str, Outcome]) -> None:
        """Have the store keep the outcomes *found*, and take the replies to others of *wanted* that it has."""
        if (past := self.past) is None:
            return

        async def look(key: str, ask: Ask) -> None:
            async def send(_: Ask) -> Outcome:
                return found.get(key, _MISS)

            outcome = await past(send)(ask)
            if not (isinstance(outcome, Failure) and outcome.message == _MISS.message):
                self.answers[key] = outcome

        await _each(look(key, ask) for key, (_, ask) in self._open(wanted).items())

    async def _adopt(self, wanted: Wanted) -> None:
        """Recover batches created just before a crash; forget those that never existed, so they are sent again."""
        for one in [one for one in self.known.sent if not one.id]:
            judge = next((wanted[key][1].judge for key in one.keys if key in wanted), None)
            if judge is None:
                continue
            batch = await Service(judge).persist(partial(openai.find, judge, one.mark))
            if isinstance(batch, Failure):
                self.answers |= dict.fromkeys(one.keys, batch)
            elif batch:
                one.id = batch
                self.known.write()
            else:
                self.known.forget(one.keys)

    async def _wave(self, fresh: Wanted) -> None:
        """Send as much of *fresh* as the budget allows at once, and wait for it; refuse the rest if nothing fits."""
        async with AsyncExitStack() as held:
            commits = await self._admit(held, fresh)
            wave = {key: fresh[key] for key in commits}
            found: dict[str, Outcome] = {}
            try:
                for judge, lines in _in_files(wave.values(), self.size):
                    await self._send(judge, lines)
                found = await self._receive(wave)
            finally:
                # Requests that were sent and have no answer yet are not committed, so they are charged in full.
                sent = {key for one in self.known.sent for key in one.keys}
                for key, commit in commits.items():
                    if commit is not None and (key in found or key not in sent):
                        commit(found.get(key))
        if any(isinstance(outcome, Reply) for outcome in found.values()):
            for key, outcome in found.items():
                # The vendor's queue had no room for these; the replies may have made some, so they are sent again.
                if isinstance(outcome, Failure) and (outcome.kind, outcome.usage) == ("rate_limited", openai.FREE):
                    del self.answers[key]

    async def _admit(self, held: AsyncExitStack, fresh: Wanted) -> dict[str, Commit | None]:
        """Return the requests that fit, each with its commit; if none does, the refusals are the answers."""
        if self.budget is None:
            return dict.fromkeys(fresh)
        commits: dict[str, Commit | None] = {}
        refused: dict[str, Outcome] = {}
        for key, (_, ask) in fresh.items():
            try:
                commits[key] = await held.enter_async_context(self.budget.at_once(ask))
            except ModelError as error:
                refused[key] = error.failure
        if not commits:
            self.answers |= refused
        elif refused and self.budget.left.calls != 0 and not self.is_told:  # without calls left, they are refused
            self.is_told = True
            warnings.warn(await self._rounds_of(fresh, self.budget, len(commits)), stacklevel=2)
        return commits

    async def _rounds_of(self, fresh: Wanted, budget: Budget, most: int) -> str:
        """Return how many rounds the requests *fresh* take if *most* fit into one, and what makes them fewer."""
        asks = [ask for _, ask in fresh.values()]
        cures = ["give the judge max_tokens=300"] if any(ask.max_tokens > 300 for ask in asks) else []  # noqa: PLR2004
        if budget.cost is not None:
            dear = (budget.spent.cost or 0) + sum([(await budget.claim(ask)).most.pico for ask in asks]) / 10**12
            cures.append(f"write budget=Budget(cost={math.ceil(100 * dear) / 100})")
        said = f"{budget!r} holds {most:,} of {len(asks):,} requests at once, each with the tokens of its longest reply"
        rounds = f"that is {math.ceil(len(asks) / most):,} rounds or more, of a day at most each"
        return f"{said}; {rounds}; for fewer, {', or '.join(cures) or 'write a larger budget'}"

    async def _send(self, judge: Judge, lines: Sequence[Line]) -> None:
        one = Sent(uuid4().hex, "", [line.key for line in lines])
        self.known.sent.append(one)
        self.known.write()  # first: if the process dies before its creation is confirmed, the mark finds the batch
        # Sent again only while there can be no batch yet: a second one would be paid for as well.
        made = await Service(judge).persist(partial(openai.create, judge, lines, one.mark), resends=False)
        if isinstance(made, Failure):
            self.answers |= dict.fromkeys(one.keys, made)
            if not made.in_doubt:
                self.known.forget(one.keys)
        else:
            one.id = made
            self.known.write()

    async def _receive(self, wanted: Wanted) -> dict[str, Outcome]:
        """Wait for all batches with requests that are *wanted*, and return their outcomes."""
        received: dict[str, Outcome] = {}
        for batch in [*self.known.sent]:
            mine = {key: wanted[key] for key in batch.keys if key in wanted and key not in self.answers}
            if not (mine and batch.id):
                continue
            judge = next(iter(mine.values()))[1].judge
            outcomes = await _outcomes(judge, batch.id, {key: line for key, (line, _) in mine.items()}, self.poll)
            if isinstance(outcomes, Failure):  # the vendor gives no answer: another run will ask
                self.answers |= dict.fromkeys(mine, outcomes)
                continue
            await self._pass_store(mine, outcomes)  # first: the store keeps them before anything is made of them
            self.answers |= outcomes
            self.known.forget(key for key, outcome in outcomes.items() if isinstance(outcome, Failure))
            received |= outcomes
        return received


async def _each(several: Iterable[Awaitable[None]]) -> None:
    """Await *several*, some at a time; raise the first error once the others beside it are through."""
    waiting = iter(several)
    while some := [*islice(waiting, _AT_ONCE)]:
        for outcome in await asyncio.gather(*some, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome


# -- the vendor ------------------------------------------------------------------------------------------


def _line(ask: Ask) -> Line | Failure:
    _check_has_batches(ask.judge)
    try:
        return openai.line_of(ask)
    except ModelError as error:
        return error.failure


def _in_files(wanted: Iterable[tuple[Line, Ask]], size: int) -> Iterator[tuple[Judge, list[Line]]]:
    """Yield the lines of one file each: of one judge, and no more than *size* or than a vendor takes."""
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


async def _outcomes(judge: Judge, batch: str, lines: Mapping[str, Line], poll: float) -> dict[str, Outcome] | Failure:
    """Wait until *batch* is over, and return the outcome of each of its *lines*; a failure if the vendor is silent."""
    service, look = Service(judge), partial(openai.state, judge, batch)
    while isinstance(state := await service.persist(look), BatchState) and not state.is_over:  # noqa: ASYNC110 - remote
        await asyncio.sleep(poll)
    if isinstance(state, Failure):
        return state
    answered: dict[str, Outcome] = {}
    for name in state.files:
        replies = await service.persist(partial(openai.replies, judge, name, lines))
        if isinstance(replies, Failure):
            return replies
        answered |= replies
    lost = state.failure_of(batch)
    return {key: answered.get(key, lost) for key in lines}
