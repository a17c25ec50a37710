"""
From a judge to the model that answers for it (`model_of`), and the models that are functions of the user's.

An async function is awaited on the caller's loop; a sync one is called in threads of its own (see `threads`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Mapping
from functools import cache, partial
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakValueDictionary

from attrs import evolve, frozen

from rubric.errors import ModelError, NoJudgeError
from rubric.models.api_keys import default_judge, require_key, surely_missing_key
from rubric.models.offline import OFFLINE, OfflineModel
from rubric.models.retry import Deadline
from rubric.models.threads import outcome_of, submit
from rubric.values.clients import DECIDES
from rubric.values.judges import Model, is_async
from rubric.values.requests import RETRIED, Failure, Reply, Usage

if TYPE_CHECKING:
    from rubric.values.judges import Function, Judge
    from rubric.values.requests import Ask


_USED = Usage(calls=1, cost=None, unmetered=1)


def _failure_of(error: Exception) -> Failure:
    """Return the failure of a function that raised *error*: one that may pass, as a client's, is tried again."""
    from rubric.models.failure_kinds import failure_of  # noqa: PLC0415 - needed for errors alone

    said, passing = Failure.of(error).message, failure_of(error)
    if isinstance(error, TypeError | AttributeError) and "list" in said:  # it may have taken the messages for a text
        said = f"{said}; it is given messages, of which the last text is messages[-1]['content']"
    return evolve(passing, message=said) if passing.kind in RETRIED - {"bad_response"} else Failure("exception", said)


class FunctionModel:
    """
    Answers with the result of *function*.

    A sync function is called in a thread of its own, one call after another, in the order of the asks; it need not be
    thread-safe, and it may be a script. With more *threads*, as many calls run at once. An async function is awaited on
    the caller's loop, several calls at once.
    """

    def __init__(self, function: Function, /, *, threads: int = 1) -> None:
        self._function = function
        self._is_async = is_async(function)
        self._owner = (*identity(function), threads)
        self.threads = threads
        self.busy = 0.0
        """Seconds that calls of a sync function have taken so far."""
        self.pace = 1.0
        """Seconds that a call of it takes of late; at first it counts as slow."""

    @property
    def is_serial(self) -> bool:
        """Whether calls wait for a thread; that is not part of an attempt."""
        return not self._is_async

    is_punctual = is_serial
    """The deadline of a call in a thread begins with the call: it may wait behind short ones."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask*; raise `ModelError` if the function raises, or returns no text and no mapping."""
        arguments: Any = [message.text for message in ask.messages] if ask.embeds else ask.chat()
        if self._is_async:
            try:
                said = await self._function(arguments)  # type: ignore[misc]  # an async function's
            except Exception as error:
                raise ModelError(_failure_of(error)) from error
        else:
            said = await self._said_in_thread(ask, arguments)
        if ask.embeds:
            return Reply(_as_vectors(said), usage=_USED)
        if not isinstance(said, str) and isinstance(said, Mapping):
            said = json.dumps(dict(said), ensure_ascii=False, default=str)
        if not isinstance(said, str):
            cure = "its text is said.choices[0].message.content" if hasattr(said, "choices") else DECIDES
            wanted = "expected the text of a reply, or a mapping for JSON"
            message = f"the function returned {type(said).__name__}; {wanted}; {cure}"
            raise ModelError(Failure("bad_response", message, usage=_USED))
        return Reply(said, usage=_USED)

    async def _said_in_thread(self, ask: Ask, arguments: Any) -> Any:
        job = submit(self._owner, partial(self._call, arguments), self.threads)
        with Deadline(ask.judge.timeout, job):
            said, error = await outcome_of(self._owner, job)
            if not isinstance(said, str) and isinstance(said, Awaitable):
                try:
                    return await said
                except Exception as problem:  # noqa: BLE001 - it becomes a failure, as that of a call does
                    error = problem
        if isinstance(error, Exception):
            raise ModelError(_failure_of(error)) from error
        if error is not None:
            raise error
        return said

    def _call(self, arguments: Any) -> Any:
        began = perf_counter()
        try:
            return self._function(arguments)
        finally:
            seconds = perf_counter() - began
            self.busy += seconds
            self.pace += (seconds - self.pace) / 8


def _as_vectors(said: Any) -> str:
    try:
        return json.dumps([[float(number) for number in vector] for vector in said])
    except (TypeError, ValueError):
        message = f"the function returned {type(said).__name__}; expected a vector of numbers for each text"
        raise ModelError(Failure("bad_response", message, usage=_USED)) from None


def identity(function: Any) -> tuple[int, ...]:
    """Return the identity of *function* while it is alive: a bound method is another object at each look-up."""
    owner = getattr(function, "__self__", None)
    return (id(function),) if owner is None else (id(owner), id(getattr(function, "__func__", function)))


class KeylessModel:
    """Fails for want of a key, before LiteLLM's import; if there is a key by then, it answers."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask* if its judge has a key by now; raise `ModelError` if not."""
        require_key(ask.judge)
        return await _litellm().answer(ask)

    is_punctual = True


_offline, _keyless = OfflineModel(), KeylessModel()
_lock = Lock()

_clients: WeakValueDictionary[tuple[str, int], Any] = WeakValueDictionary()
"""The models of clients that are in use, by identity: a model keeps its client alive, so no id is used twice."""

_functions: WeakValueDictionary[tuple[int, ...], FunctionModel] = WeakValueDictionary()
"""The models of functions that are in use, by identity: a model keeps its function alive, so no id is used twice."""


def model_of(judge: Judge, /) -> Model:
    """Return the model that answers for *judge*; all judges of a function share one, and so its thread."""
    model = judge.model
    if isinstance(model, str):
        if judge.via == "http":
            return _direct()
        return _offline if model == OFFLINE else _keyless if surely_missing_key(judge) else _litellm()
    if judge.is_function:  # the judge keeps this; asking the protocol each time would take a tenth of a grade
        return _of_function(cast("Function", model), judge.threads)
    return model if isinstance(model, Model) else _of_client(model)


@cache
def _litellm() -> Model:
    from rubric.models.litellm import LiteLLMModel  # noqa: PLC0415 - for those who ask it

    return LiteLLMModel()


@cache
def _direct() -> Model:
    from rubric.models.openai_http import OpenAIHTTPModel  # noqa: PLC0415 - it brings aiohttp, for those who ask for it

    return OpenAIHTTPModel()


def _of_client(client: Any) -> Model:
    from rubric.models.client_models import model  # noqa: PLC0415 - most users hold no client

    key = ("client", id(client))
    with _lock:
        found: Model = _clients.setdefault(key, model(client))
    return found


def _of_function(function: Function, threads: int) -> FunctionModel:
    # By identity: functions that compare equal may still be two. Under the lock: two models of one function would have
    # a thread each, and a function need not be thread-safe.
    key = (*identity(function), threads)
    with _lock:
        return _functions.setdefault(key, FunctionModel(function, threads=threads))


def _renew_lock() -> None:
    """Replace the lock in a forked child: a thread that is not there may have held it."""
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@frozen
class EnvironmentModel:
    """The judge of a jury whose file names no model; outside of a suite's run, the default judge."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the default judge's reply to *ask*."""
        try:
            model = default_judge().model
        except NoJudgeError as problem:
            raise ModelError(Failure("auth", str(problem))) from None
        judge = evolve(ask.judge, model=model)
        return await model_of(judge).answer(evolve(ask, judge=judge))
