"""From what stands in a judge to the model that answers."""

from __future__ import annotations

import os
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from rubric.judges import Model
from rubric.models.functions import FunctionModel, identity
from rubric.models.litellm import LiteLLMModel
from rubric.models.offline import OFFLINE, OfflineModel

if TYPE_CHECKING:
    from rubric.judges import Function, Judge

__all__ = ["model_of"]

_offline, _litellm = OfflineModel(), LiteLLMModel()
_lock = Lock()
_functions: WeakValueDictionary[tuple[int, ...], FunctionModel] = WeakValueDictionary()
"""The models of functions that are in use, by identity: a model keeps its function alive, so no id is used twice."""


def model_of(judge: Judge, /) -> Model:
    """Return the model that answers for *judge*; a function has one for all who use it at a time, and so one thread."""
    model = judge.model
    if isinstance(model, str):
        return _direct() if judge.via == "http" else _offline if model == OFFLINE else _litellm
    return model if isinstance(model, Model) else _of_function(model, judge.threads)


@cache
def _direct() -> Model:
    from rubric.models.openai_http import OpenAIHTTPModel  # noqa: PLC0415 - it brings aiohttp, for those who ask for it

    return OpenAIHTTPModel()


def _of_function(function: Function, threads: int) -> FunctionModel:
    # By identity: functions that compare equal may still be two.
    key = (*identity(function), threads)
    with _lock:
        return _functions.setdefault(key, FunctionModel(function, threads=threads))


def _renew_lock() -> None:
    """Replace the lock in a forked child: a thread that is not there may have held it."""
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
