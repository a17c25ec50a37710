"""A thread that calls one function after another, and that nobody has to wait for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any

__all__ = ["SerialThread"]

_Job = tuple[Future[Any], Callable[[], Any]]


class SerialThread:
    """
    Calls what it is given in one daemon thread, in order.

    The executors of the standard library are waited for when the process ends; a call that hangs would hold it up.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._started = False

    def submit(self, call: Callable[[], Any]) -> Future[Any]:
        """Return the future of what *call* returns; it must not raise."""
        if not self._started:
            self._started = True
            Thread(target=self._work, name=self._name, daemon=True).start()
        future: Future[Any] = Future()
        self._jobs.put((future, call))
        return future

    def _work(self) -> None:
        while True:
            future, call = self._jobs.get()
            if future.set_running_or_notify_cancel():
                future.set_result(call())
            del future, call  # nothing is kept alive while waiting for the next one
