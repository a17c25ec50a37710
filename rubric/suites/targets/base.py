"""
Targets: where the candidate of a case comes from if it has no fixed response.

A target is a Python function of your own, sync or async, or any object with a method `respond`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, TypeAlias, runtime_checkable

from attrs import evolve, field, frozen

from rubric import Candidate, RubricError
from rubric.driving import Usage
from rubric.embed import guided, source_of
from rubric.suites.cases import Case, answering


class DeferError(RubricError):
    """There is no candidate to judge, for a reason outside of the candidate: no key, no server."""


@guided
@frozen
class Response:
    """
    A candidate that a target made, and its usage.

    Args:
        candidate: It is graded.
        usage: Of all requests that the target sent for it; part of what the case costs.
        warnings: For the row of the case, about how the candidate was made.
    """

    candidate: Candidate
    usage: Usage = field(factory=Usage)
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, made: Candidate | Response, /) -> Response:
        """Return *made* as a response; a bare candidate has no known usage."""
        return made if isinstance(made, Response) else cls(made)


def with_metrics(response: Response, latency: float) -> Candidate:
    """Return the candidate of *response* with what its run took; what it says of that itself is kept."""
    candidate, usage = response.candidate, response.usage
    known: dict[str, Any] = {"latency": latency}
    if usage.calls:
        known |= {"cost": usage.cost, "calls": usage.calls}
    if usage.calls and not usage.unmetered:
        known["tokens"] = usage.prompt_tokens + usage.completion_tokens
    given = {name: value for name in known if (value := getattr(candidate.metrics, name)) is not None}
    return evolve(candidate, metrics=evolve(candidate.metrics, **known | given))


@runtime_checkable
class Target(Protocol):
    """
    Makes candidates.

    It raises `DeferError` where it cannot try, and `ModelError`, with the usage, where it tried and failed. A runner
    passes its result through `Response.of`, which takes both forms.
    """

    async def respond(self, case: Case, /) -> Candidate | Response:
        """Return the candidate for *case*, with its usage where that is known."""
        ...


Answer: TypeAlias = str | Candidate | Response

Answering = Callable[[Case], Answer | Awaitable[Answer]]
"""A function as a target: from a `Case` to the text of the response, a whole `Candidate`, or a `Response`."""

TargetLike = Target | Answering | str
"""Anything that `as_target` takes: a `Target`, a function, or the name of a model."""

_MOST_THREADS = 64


class FunctionTarget:
    """
    Makes candidates with *function*, which is called with the `Case`.

    A text that it returns is the response; the rest of the candidate is the case's. A sync function runs in worker
    threads, for several cases at once, so it must be thread-safe; it cannot be interrupted. What an async one returns
    is awaited on the loop of the run.
    """

    def __init__(self, function: Answering, /) -> None:
        self._function = function
        self._threads = ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="rubric-target")

    def __repr__(self) -> str:
        return f"FunctionTarget({getattr(self._function, '__name__', type(self._function).__name__)})"

    async def respond(self, case: Case, /) -> Candidate | Response:
        """
        Return the candidate that the function makes for *case*.

        Raises:
            TypeError: The function returned neither a text nor a `Candidate` nor a `Response`.
            Exception: Any that the function raised.
        """
        token = answering.set(True)
        try:
            said = await self._in_a_thread(case)
            if isinstance(said, Awaitable):
                said = await said
        finally:
            answering.reset(token)
        if hasattr(type(said), "model_dump"):  # an SDK's response
            made = source_of([]).candidate(said)
            return case.responding(made.output, **({"tool_calls": made.tool_calls} if made.tool_calls else {}))
        if isinstance(said, str):
            return case.responding(said)
        if not isinstance(said, Candidate | Response):
            raise TypeError(f"{self!r} returned {type(said).__name__}; expected the text of a response, or a Candidate")
        return said

    async def _in_a_thread(self, case: Case) -> Any:
        def outcome() -> tuple[Any, BaseException | None]:
            # An exception is handed over as a value: a future refuses a StopIteration, and the run would hang.
            try:
                return self._function(case), None
            except BaseException as error:  # noqa: BLE001
                return None, error

        loop = asyncio.get_running_loop()
        said, error = await loop.run_in_executor(self._threads, copy_context().run, outcome)
        if isinstance(error, StopIteration):
            message = f"{self!r} raised StopIteration: {error}"
            raise RuntimeError(message) from error  # noqa: TRY004 - as a coroutine would say it
        if error is not None:
            raise error
        return said
