"""The reply store as it is used: opened, put in front of whatever carries asks, and closed."""

from __future__ import annotations

import os
import weakref
from types import TracebackType
from typing import Self, get_args

from rubric.drivers.attempts import Gate
from rubric.drivers.carrying import Carry
from rubric.errors import DefinitionError
from rubric.exchanges import Ask, Failure, Reply
from rubric.store.carrying import Flight, Keeping
from rubric.store.clerks import Clerk
from rubric.store.departures import departing
from rubric.store.ledgers import InDoubt, Ledger, Mode, Tally
from rubric.store.schema import connect, connect_to_read, explained, written
from rubric.validating import as_path, refuse

__all__ = ["Store", "Tally"]

_PATIENCE = 30.0
_orphans: list[object] = []


class Store:
    """
    A file of replies: what has been answered is served from it, free of charge; what has not is sent, and kept.

    That one file is the cache, the resume after a crash, the recording for CI and the audit trail. Several processes of
    one machine may share it. It can be sent to another process, which opens the file for itself.

    Args:
        path: Of the file; it is made if there is none, its folder is not.
        mode: `read-write`; `replay`: nothing is sent, and what is not in the file is a failure of the kind `replay`;
            `refresh`: everything is asked again once, and replaces what was kept.
        in_doubt: What becomes of calls that had been sent when a process died, or that timed out: `retry` sends them
            again, and at most those that were in flight are paid for twice; `hold` never pays twice, and makes them
            failures of the kind `in_doubt`.
        patience: Seconds to wait for another process that keeps the file locked.

    Raises:
        StoreError: The file cannot be opened, or is something else.
        DefinitionError: No path, or a mode or a policy that there is not.

    Example:
        >>> import asyncio, tempfile
        >>> from rubric import Candidate, Judge, Rubric, flow
        >>> from rubric.drivers.running import Room, run
        >>> from rubric.store import Store
        >>> polite = Rubric("polite").expects("Is polite")
        >>> def graded(store):
        ...     steps = flow(Candidate("Good morning!"), polite, Judge("offline"))
        ...     return asyncio.run(run(steps, carry=store.carry(Room().carry)))
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
        patience: float = _PATIENCE,
    ) -> None:
        self.path = as_path("path", path)
        if str(self.path) == ":memory:":
            raise refuse("path", path, "the path of a file, which is what outlives a process")
        if mode not in get_args(Mode):
            raise refuse("mode", mode, "one of 'read-write', 'replay', 'refresh'")
        if in_doubt not in get_args(InDoubt):
            raise refuse("in_doubt", in_doubt, "'retry' or 'hold'")
        if mode == "replay" and in_doubt != "retry":
            raise DefinitionError("in_doubt", "a replay sends nothing, so nothing comes into doubt; take it out")
        self.mode: Mode = mode
        self.in_doubt: InDoubt = in_doubt
        self.patience = patience
        self._open()

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, mode={self.mode!r}, in_doubt={self.in_doubt!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (str(self.path), self.mode, self.in_doubt, self.patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is left, and close the file; what is under way then is in doubt."""
        if self._process == os.getpid():
            self._finalizer()

    @property
    def tally(self) -> Tally:
        """What it has been good for since it was opened."""
        return self._ledger.tally

    def carry(self, inner: Carry, *, gated: bool = False) -> Carry:
        """
        Return a `Carry` that asks this store first, and *inner* for what is not in it.

        Args:
            inner: Takes an ask to whoever answers it.
            gated: Whether every request that *inner* sends passes `gate`. Then what still waits for its turn when a
                process dies is not in doubt: only what has left is.

        The carry raises `StoreError` where the file cannot be written to: what could not be kept is not sent.
        """

        async def carried(ask: Ask) -> Reply | Failure:
            self._follow_fork()
            keeping = Keeping(
                self._clerk, inner, self.in_doubt, self.mode == "replay", gated, str(self.path), self._flights
            )
            return await keeping.carry(ask)

        return carried

    def gate(self, inner: Gate | None = None) -> Gate:
        """Return a gate that records each departure of what `carry(..., gated=True)` carries, after *inner*."""
        return departing(inner)

    def _open(self) -> None:
        self._process = os.getpid()
        self._flights: dict[tuple[int, str], Flight] = {}
        reads = self.mode == "replay"
        connection = (connect_to_read if reads else connect)(self.path, self.patience)
        self._ledger = Ledger(connection, self.mode, self.in_doubt)
        if not reads:
            with explained(self.path), written(connection):
                self._ledger.begin()
        flights = self._flights
        self._clerk = Clerk(self.path, self._ledger, lambda: bool(flights))
        self._finalizer = weakref.finalize(self, self._clerk.close)

    def _follow_fork(self) -> None:
        """Open the file again in a forked child: neither the thread nor the connection is for this process."""
        if self._process != os.getpid():
            self._finalizer.detach()
            _orphans.append((self._ledger, self._clerk))
            self._open()


def _reopened(path: str, mode: Mode, in_doubt: InDoubt, patience: float) -> Store:
    return Store(path, mode=mode, in_doubt=in_doubt, patience=patience)
