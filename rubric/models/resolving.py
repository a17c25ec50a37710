"""From what stands in a judge to the model that answers."""

from __future__ import annotations

import os
from collections import OrderedDict
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any

from rubric.judges import Model
from rubric.models.functions import FunctionModel
from rubric.models.litellm import LiteLLMModel
from rubric.models.offline import OFFLINE, OfflineModel

if TYPE_CHECKING:
    from rubric.judges import Function, Judge

__all__ = ["model_of"]

_KEPT = 256

_offline, _litellm = OfflineModel(), LiteLLMModel()
_lock = Lock()
_functions: OrderedDict[tuple[int, ...], tuple[Any, FunctionModel]] = OrderedDict()


def model_of(judge: Judge, /) -> Model:
    """Return the model that answers for *judge*; the same function always gets the same one, and so one thread."""
    model = judge.model
    if isinstance(model, str):
        return _direct() if judge.via == "http" else _offline if model == OFFLINE else _litellm
    return model if isinstance(model, Model) else _of_function(model)


@cache
def _direct() -> Model:
    from rubric.models.openai_http import OpenAIHTTPModel  # noqa: PLC0415 - it brings aiohttp, for those who ask for it

    return OpenAIHTTPModel()


def _of_function(function: Function) -> FunctionModel:
    # By identity: functions that compare equal may still be two. The function is kept, so its id is not used again.
    key = _identity(function)
    with _lock:
        _, model = _functions.pop(key, None) or (function, FunctionModel(function))
        _functions[key] = (function, model)
        if len(_functions) > _KEPT:
            _functions.popitem(last=False)
    return model


def _identity(function: Any) -> tuple[int, ...]:
    """Return what tells *function* from others; a bound method is another object each time that it is looked up."""
    owner = getattr(function, "__self__", None)
    return (id(function),) if owner is None else (id(owner), id(getattr(function, "__func__", function)))


def _forget_after_fork() -> None:
    """Drop the models of functions: their threads are not in this process."""
    global _lock  # noqa: PLW0603
    _lock = Lock()
    _functions.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
