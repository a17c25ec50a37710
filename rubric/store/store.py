"""
The reply store: serve what was answered before, send the rest once, and keep every reply.

A stored reply is read in the event loop, without a hop to another thread. A request that is not stored waits for the
writer thread twice:

1. **claim** and **sent**: the call is recorded as sent before the request leaves, once the budget and the limits have
   let it through. While it waits for those it is claimed, so that no other process sends the same.
2. **done**: the reply is recorded before anybody uses it.

Tasks of one event loop that ask for the same share one request, which is cancelled when no task waits for it any more.
Other loops and processes look again until the reply is there, or its session is dead. A request that was cancelled is
in doubt, like one that was in flight at a crash: the vendor may have carried it out.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack, closing, nullcontext, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

from attrs import define, evolve

from rubric.errors import DefinitionError, ModelError, StoreError
from rubric.internals.fields import as_path, refuse
from rubric.internals.guided import Guided, guided_init
from rubric.store.cache_key import Request, request_of
from rubric.store.database import (
    Busy,
    Claim,
    Database,
    Doubtful,
    InDoubt,
    Mode,
    Served,
    Tally,
    Yours,
    free,
    is_unsent,
    kind_of,
)
from rubric.store.schema import PATIENCE, as_store_error, connect, connect_beside, connect_to_read, explain, transaction
from rubric.store.writer_thread import Task, WriterThread
from rubric.values.requests import UNSENT, Ask, Commit, Failure, Limiter, Reply, Transport, commit_nothing

Result = Reply | Failure

# -- one call ----------------------------------------------------------------------------------------------


@define(eq=False)
class InFlight:
    """
    One call, from its claim to its end, as the database records it.

    Args:
        goes_on: As for `Database.look`.
        is_new: Whether the request was free when it was looked up.
        is_limited: Whether it passes limits, after which `leave` records that it is sent.
        leaves: Whether it may leave: a claim that is not made yet is then recorded as sent at once.
        has_left: Whether it may have reached the model, as far as is known.
        was_sent: Whether it has left before.
        is_lost: Whether it may not leave: another session has it.
    """

    database: Database
    writer: WriterThread
    request: Request
    goes_on: bool
    is_new: bool
    is_limited: bool
    leaves: bool = False
    claimed: Task[Claim] | None = None
    has_left: bool = False
    was_sent: bool = False
    is_over: bool = False
    is_lost: bool = False
    _timer: asyncio.TimerHandle | None = None

    def __attrs_post_init__(self) -> None:
        if self.is_limited and self.is_new:
            # Most requests get their turn at once: they are claimed and sent in one transaction. One that waits for the
            # limits is claimed meanwhile, lest another process waits for the same and both pay.
            self._timer = asyncio.get_running_loop().call_later(0.1, self._claim_early)

    def claim(self) -> Task[Claim]:
        """Have the writer thread make the claim, unless it does already."""
        if self.claimed is None:
            self._cancel_timer()
            self.claimed = self.writer.write(
                # `leaves` is read when this runs: a request that gets its turn before then is recorded as sent.
                lambda database: database.claim(
                    self.request, goes_on=self.goes_on, leaves=self.leaves, is_new=self.is_new
                )
            )
        return self.claimed

    def _claim_early(self) -> None:
        with suppress(StoreError):  # the store is closed: `leave` raises it for the task that waits
            self.claim()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    async def leave(self) -> None:
        """Record that the request leaves; it may, once this has returned."""
        if self.has_left:
            return
        # Committed before the request leaves. A crash in between leaves a call in doubt that was never sent; the other
        # way round, it would leave one that was paid for and not recorded.
        self.leaves = True
        claim = await self.claim()
        if isinstance(claim, Yours):
            is_recorded = claim.is_sent and not self.was_sent
            if is_recorded or await self.writer.write(lambda database: database.leave(claim.id)):
                self.note_sent(claim)
                return
        self.is_lost = True
        why = "not sent: this process gave no sign for so long that another one has taken the call over"
        raise ModelError(Failure("in_doubt", why))

    def note_sent(self, claim: Yours) -> None:
        """Count the request as sent, the first time."""
        if not self.was_sent:
            self.database.count(sent=1, resent=claim.is_resent)
        self.has_left = self.was_sent = True

    def turn_away(self, result: Result | None) -> None:
        """Record it if the server turned the request away: it is not in doubt while it waits to be retried."""
        if self.is_limited and isinstance(result, Failure) and not result.in_doubt:
            self._post(Database.stay)
            self.has_left = False

    async def finish(self, claim: Yours, ask: Ask, result: Result) -> None:
        """Record *result*; it may be used once this has returned."""
        kept, kind = result, kind_of(ask, result)
        if isinstance(result, Failure) and result.kind in UNSENT and self.has_left:
            kept = evolve(result, in_doubt=True)  # held back after an attempt that may have been paid for
        self.note_sent(claim)  # a vendor's batch answers requests that did not leave through here
        await self.writer.write(lambda database: database.finish(claim.id, self.request, kept, kind), is_kept=True)
        self.is_over = True

    def give_up(self) -> None:
        """Record that no task waits for the call any more. This does not wait: the next claim comes after it."""
        self._cancel_timer()
        if not self.is_over and self.claimed is not None:
            self.is_over = True
            with suppress(StoreError):  # it is closed: then what this session had sent is in doubt anyway
                self._post(Database.doubt if self.has_left else Database.drop)

    def _post(self, change: Callable[[Database, int], None]) -> None:
        def run(database: Database) -> None:
            # The result of the task, not of the future: the claim may be made in this very transaction, and the loop
            # that would deliver it may be gone.
            claim = None if self.claimed is None else self.claimed.result
            if isinstance(claim, Yours):
                change(database, claim.id)

        self.writer.post(run)


in_flight: ContextVar[InFlight | None] = ContextVar("in_flight", default=None)
"""The call that the running task sends: a limiter gets the ask alone, and equal asks may be in flight in two loops."""


@define(eq=False)
class _Passage(AbstractAsyncContextManager[Commit]):
    """Passes *inner*, and then records that the call leaves. Written out, since every request goes through it."""

    inner: AbstractAsyncContextManager[Commit]
    call: InFlight | None = None
    inner_commit: Commit = commit_nothing

    async def __aenter__(self) -> Commit:
        self.inner_commit = commit = await self.inner.__aenter__()
        self.call = in_flight.get()
        if self.call is None:
            return commit
        try:
            await self.call.leave()
        except BaseException as error:
            commit(None)  # nothing was sent: the budget and the limits get it back
            await self.inner.__aexit__(type(error), error, error.__traceback__)
            raise
        return self._commit

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self.inner.__aexit__(kind, error, trace)

    def _commit(self, result: Result | None) -> None:
        if self.call is not None:
            self.call.turn_away(result)
        self.inner_commit(result)


# -- one open file -----------------------------------------------------------------------------------------

_FIRST_LOOK, _SLOWEST_LOOK = 0.02, 0.5
"""Seconds between two looks at a request that another loop or session has in flight."""


@define(eq=False)
class SharedRequest:
    """
    A request that the tasks of one event loop share.

    Args:
        calls: The calls made for it so far; the last one may be in flight.
        is_paid: Whether a task has got the reply with its usage; the others get it for free.
        is_given_up: Whether it was cancelled, and may not be joined though its task has not ended yet.
    """

    task: asyncio.Task[Result]
    calls: list[InFlight]
    waiting: int = 0
    is_paid: bool = False
    is_given_up: bool = False

    async def join(self) -> Result:
        """Return the reply or failure; cancel the request if this task was the last to wait."""
        self.waiting += 1
        try:
            result = await asyncio.shield(self.task)
        finally:
            self.waiting -= 1
            if not self.waiting and not self.task.done():
                self.is_given_up = True
                self.task.cancel()
                await asyncio.wait([self.task])
        was_paid, self.is_paid = self.is_paid, True
        return free(result) if was_paid else result


@define(eq=False)
class OpenFile:
    """The file as one process has it open, without a writer for a replay; requests in flight by loop and key."""

    path: Path
    database: Database
    writer: WriterThread | None
    shared: dict[tuple[int, str], SharedRequest]

    @classmethod
    def open(cls, path: Path, mode: Mode, in_doubt: InDoubt, patience: float) -> Self:
        """Open *path*, and make it if there is none, unless it is to be replayed."""
        shared: dict[tuple[int, str], SharedRequest] = {}
        if mode == "replay":
            return cls(path, Database(connect_to_read(path, patience), None, mode, in_doubt), None, shared)
        with ExitStack() as opened:  # a damaged file fails late, and an open connection locks it on Windows
            connection = opened.enter_context(closing(connect(path, patience)))
            beside = opened.enter_context(closing(connect_beside(path)))
            database = Database(beside, connection, mode, in_doubt)
            with explain(path), transaction(connection):
                database.begin()
            opened.pop_all()
        return cls(path, database, WriterThread(path, database, lambda: bool(shared)), shared)

    def close(self) -> None:
        """Write pending changes, and close the file."""
        (self.writer or self.database).close()

    async def answer(self, ask: Ask, inner: Transport, *, is_limited: bool) -> Result:
        """Return the stored reply to *ask*, or else that of *inner*."""
        if ask.embeds and ask.judge.identified_by is None:  # vectors of a function are computed again
            return await inner(ask)
        request = request_of(ask)
        if self.writer is None:
            with explain(self.path):
                recorded = self.database.recall(request)
            if recorded is not None:
                return self._serve(recorded)
            message = f"{self.path} has no reply to this ask; record it with mode='read-write' (without --replay)"
            if self.database.is_elsewhere(request):
                message = f"{self.path} has the reply to this ask from another address; give the one that was recorded"
            return _with_place(Failure("replay", message), ask)
        # By the loop too, since a task can be awaited in its own loop alone. An id is no proof: that of a loop that is
        # gone may be given to another one.
        loop = asyncio.get_running_loop()
        place = (id(loop), request.key)
        shared = self.shared.get(place)
        if shared is None or shared.is_given_up or shared.task.done() or shared.task.get_loop() is not loop:
            try:
                found = self.database.look(request, goes_on=_goes_on(ask))
            except Exception as error:  # damage to the file can raise anything
                raise as_store_error(self.path, error) from error
            if isinstance(found, Served):
                return self._serve(found)
            calls: list[InFlight] = []
            fetched = self._fetch(ask, request, inner, calls, is_limited=is_limited, waits=found is not None)
            shared = self.shared[place] = SharedRequest(loop.create_task(fetched), calls)
            shared.task.add_done_callback(lambda task: self._land(place, task))
        return await shared.join()

    def _serve(self, served: Served) -> Result:
        self.database.count(hit=served.result.usage)
        return free(served.result)

    async def _fetch(
        self, ask: Ask, request: Request, inner: Transport, calls: list[InFlight], *, is_limited: bool, waits: bool
    ) -> Result:
        """
        Return the reply to *ask*: of *inner*, or of another session that sends the same.

        Args:
            calls: Gets each call that is made.
            waits: Whether to wait for the claim first. Where another session has the request in flight, it would
                otherwise take a place in the limits, and a part of the budget, from one that can be sent.
        """
        assert self.writer is not None  # noqa: S101 - a replay fetches nothing
        pause = _FIRST_LOOK
        while True:
            call = InFlight(self.database, self.writer, request, _goes_on(ask), not waits, is_limited)
            call.leaves = not is_limited
            calls.append(call)
            result = await self._send(ask, inner, call, waits=waits or not is_limited)
            if result is not None:
                return result
            waits = True
            match await call.claim():
                case Served() as served:
                    return self._serve(served)
                case Doubtful(sent_at):
                    self.database.count(held=1)
                    when = datetime.fromtimestamp(sent_at, UTC).isoformat(sep=" ", timespec="seconds")
                    message = f"it was sent at {when}, and may have been paid for; its reply is lost"
                    return _with_place(Failure("in_doubt", message, in_doubt=True), ask)
                case Busy():
                    self._clear_wrecks()
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, _SLOWEST_LOOK)

    async def _send(self, ask: Ask, inner: Transport, call: InFlight, *, waits: bool) -> Result | None:
        """Return the reply of *inner*, once it is stored; None if *call* is not ours to send."""
        try:
            if waits:
                claim = await call.claim()
                if not isinstance(claim, Yours):
                    return None
                if not call.is_limited:
                    call.note_sent(claim)
            in_flight.set(call)  # this task has a context of its own
            result = await inner(ask if self.database.in_doubt == "retry" else evolve(ask, resends=False))
            if call.claimed is None and is_unsent(result):  # another session does not know of it either
                call.give_up()
                return result
            claim = await call.claim()
        except BaseException:
            # A request that has left is in doubt: the vendor may carry it out, though it is cancelled here.
            call.give_up()
            raise
        if not isinstance(claim, Yours):
            return None
        if is_unsent(result):
            call.has_left = False
            call.give_up()
            return None if call.is_lost else result
        await call.finish(claim, ask, result)
        return result

    def _land(self, place: tuple[int, str], task: asyncio.Task[Result]) -> None:
        if not task.cancelled():
            task.exception()  # retrieved, so that asyncio does not log it: the tasks that wait get it
        shared = self.shared.get(place)
        if shared is not None and shared.task is task:
            del self.shared[place]

    def _clear_wrecks(self) -> None:
        """Give up what was in flight on loops that are closed: they will never end it, and this session seems alive."""
        for place, shared in [*self.shared.items()]:
            if shared.task.get_loop().is_closed() and self.shared.pop(place, None) is shared:
                for call in shared.calls:
                    call.give_up()


def _goes_on(ask: Ask) -> bool:
    return ask.repair < ask.judge.repairs


def _with_place(failure: Failure, ask: Ask) -> Failure:
    return evolve(failure, judge=ask.judge.name, criterion=ask.criteria[0].id if len(ask.criteria) == 1 else "")


# -- the store ---------------------------------------------------------------------------------------------

_orphans: list[OpenFile] = []
"""What forked children have inherited. Closed there, or collected, SQLite would write to the file of the parent."""


@guided_init
class Store(Guided):
    """
    A file of replies: cached replies are reused, and only missing ones are requested.

    The file is the cache, the resume after a crash, the recording for CI and the audit trail. Several processes of one
    machine may share it. A pickled store opens the file again in the process that gets it.

    Args:
        path: Of the file. It is made if there is none; its folder is not.
        mode: `read-write`; `replay`: send nothing, and fail with the kind `replay` for what is not in the file;
            `refresh`: ask everything again once, and replace what is stored.
        in_doubt: Whether to send a request again that had been sent when a process died, or that timed out: `retry`
            does, and pays twice for at most those in flight; `hold` does not, and fails with the kind `in_doubt`.
        patience: Seconds to wait for another process that keeps the file locked.

    Raises:
        StoreError: The file cannot be opened, or is not a store.
        DefinitionError: No path, or an unknown mode or policy.

    Example:
        >>> import asyncio, tempfile
        >>> from rubric import Candidate, Judge, Rubric, Store
        >>> from rubric.driving import flow
        >>> from rubric.engine.pipeline import Dispatcher, adrive
        >>> polite = Rubric("polite").expects("Is polite")
        >>> def graded(store):
        ...     steps = flow(Candidate("Good morning!"), polite, Judge("offline"))
        ...     return asyncio.run(adrive(steps, store.transport(Dispatcher().send)))
        >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/replies.db") as store:
        ...     first, second = graded(store), graded(store)
        ...     first.usage.calls, second.usage.calls, first.score == second.score
        (1, 0, True)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mode: Mode = "read-write",
        in_doubt: InDoubt = "retry",
        patience: float = PATIENCE,
    ) -> None:
        self.path = as_path("path", path)
        if str(self.path) == ":memory:":
            raise refuse("path", path, "the path of a file, which outlives the process, such as 'replies.db'")
        if mode not in get_args(Mode):
            raise refuse("mode", mode, "one of 'read-write', 'replay', 'refresh'")
        if in_doubt not in get_args(InDoubt):
            raise refuse("in_doubt", in_doubt, "'retry' or 'hold'")
        if mode == "replay" and in_doubt != "retry":
            raise DefinitionError("in_doubt", "a replay sends nothing, so nothing is in doubt; leave it out")
        self.mode: Mode = mode
        self.in_doubt: InDoubt = in_doubt
        self.patience = patience
        self._open()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, mode={self.mode!r}, in_doubt={self.in_doubt!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(Store, str(self.path), mode=self.mode, in_doubt=self.in_doubt, patience=self.patience), ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Write pending changes, and close the file; requests still in flight are in doubt."""
        if self._process == os.getpid():
            self._finalizer()

    @property
    def tally(self) -> Tally:
        """Hits, requests and savings since it was opened."""
        return self._file.database.tally

    def transport(self, inner: Transport, *, limited: bool = False) -> Transport:
        """
        Return a `Transport` that serves stored replies, and sends everything else through *inner*.

        It raises a `StoreError` where the file cannot be written to: a request that cannot be recorded is not sent.

        Args:
            inner: Sends an ask to its model.
            limited: Whether each request that *inner* sends passes `limiter`. Then a request that still waits for its
                turn when a process dies is not in doubt, since it has not left.
        """

        async def carry(ask: Ask) -> Result:
            self._follow_fork()
            return await self._file.answer(ask, inner, is_limited=limited)

        return carry

    def limiter(self, inner: Limiter | None = None) -> Limiter:
        """Return a limiter for `transport(..., limited=True)` that records each request that *inner* lets through."""

        def passing(ask: Ask) -> AbstractAsyncContextManager[Commit]:
            return _Passage(nullcontext(commit_nothing) if inner is None else inner(ask))

        return passing

    def _open(self) -> None:
        self._process = os.getpid()
        self._file = OpenFile.open(self.path, self.mode, self.in_doubt, self.patience)
        # Bound to the file, not to the store, which could otherwise never be collected.
        self._finalizer = weakref.finalize(self, self._file.close)

    def _follow_fork(self) -> None:
        """Open the file again in a forked child: neither the thread nor the connections work there."""
        if self._process != os.getpid():
            self._finalizer.detach()
            _orphans.append(self._file)
            self._open()
