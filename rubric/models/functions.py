"""A judge of one's own: a function, sync or async, from chat messages to the text of the reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping
from contextvars import copy_context
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply, Usage
from rubric.judges import is_async
from rubric.models.redacting import describe
from rubric.models.threads import abandon, submit

if TYPE_CHECKING:
    from rubric.exchanges import Ask
    from rubric.judges import Function

__all__ = ["FunctionModel", "identity"]

_Outcome = tuple[Any, BaseException | None]


class FunctionModel:
    """
    Answers with what *function* returns.

    A sync function is called in a thread of its own, one call after another, in the order of the asks; it need not be
    thread-safe, and it may be a script. With more *threads* it is called side by side in as many. An async one is
    awaited where the asks come from, several at once.
    """

    def __init__(self, function: Function, /, *, threads: int = 1) -> None:
        self._function = function
        self._is_async = is_async(function)
        self._owner = (*identity(function), threads)
        self.threads = threads
        self.busy = 0.0
        """Seconds that calls of a sync function have taken so far."""

    @property
    def is_serial(self) -> bool:
        """Whether calls wait for one another, so many at a time as there are threads; that is no part of an attempt."""
        return not self._is_async

    async def answer(self, ask: Ask, /) -> Reply:
        """
        Return the reply to *ask*; a mapping is taken as JSON.

        Raises:
            ModelError: The function raised, or returned neither text nor a mapping.
        """
        said, error = await (self._on_the_loop(ask) if self._is_async else self._in_a_thread(ask))
        if isinstance(error, Exception):
            raise ModelError(Failure("exception", describe(error))) from error
        if error is not None:
            raise error
        return Reply(_as_text(said), usage=Usage(calls=1, cost=None, unmetered=1))

    # What a function raises is carried as a value: a StopIteration, which a script that has run out raises, can go
    # neither through a future nor out of a coroutine.

    async def _on_the_loop(self, ask: Ask) -> _Outcome:
        return await _awaited(self._function(ask.chat()))

    async def _in_a_thread(self, ask: Ask) -> _Outcome:
        context = copy_context()
        future = submit(self._owner, lambda: context.run(self._outcome, ask), self.threads)
        try:
            said, error = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            abandon(self._owner, future)
            raise
        return await _awaited(said) if isinstance(said, Awaitable) else (said, error)

    def _outcome(self, ask: Ask) -> _Outcome:
        began = perf_counter()
        try:
            return self._function(ask.chat()), None
        except BaseException as error:  # noqa: BLE001
            return None, error
        finally:
            self.busy += perf_counter() - began


async def _awaited(said: Any) -> _Outcome:
    try:
        return await said, None
    except Exception as error:  # noqa: BLE001
        return None, error


def _as_text(said: Any) -> str:
    if isinstance(said, str):
        return said
    if isinstance(said, Mapping):
        return json.dumps(dict(said), ensure_ascii=False, default=str)
    message = f"the function returned {type(said).__name__}; expected the text of a reply, or a mapping for JSON"
    raise ModelError(Failure("bad_response", message, usage=Usage(calls=1, cost=None, unmetered=1)))


def identity(function: Any) -> tuple[int, ...]:
    """Return what tells *function* from others while it is alive: a bound method is another object at each look-up."""
    owner = getattr(function, "__self__", None)
    return (id(function),) if owner is None else (id(owner), id(getattr(function, "__func__", function)))
