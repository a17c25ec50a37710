"""From what stands in a judge to the model that answers."""

from __future__ import annotations

import asyncio
import gc
import sys
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from rubric.models import registry
from rubric.models.litellm import LiteLLMModel, _sendable
from rubric.models.offline import OfflineModel
from rubric.models.registry import FunctionModel, model_of
from rubric.store.cache_key import request_of
from rubric.store.store import Store
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Reply
from tests.models.test_processes import in_child
from tests.sendables import KEY, ask_of
from tests.storing import carried

if TYPE_CHECKING:
    from pathlib import Path


class Own:
    """A model of one's own."""

    async def answer(self, ask: Ask, /) -> Reply:
        return Reply("")


class Judges:
    """An object whose method judges."""

    def judge(self, messages: list[dict[str, Any]]) -> str:
        return ""


@pytest.mark.parametrize(("name", "kind"), [("offline", OfflineModel), ("openai/gpt-5.6", LiteLLMModel)])
def test_names(name: str, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name `offline` is the judge without a model; every other name, with a key, is LiteLLM's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert type(model_of(Judge(name))) is kind


def test_a_model_is_itself() -> None:
    """A model of one's own answers for itself."""
    own = Own()
    assert model_of(Judge(own)) is own


def test_a_function_always_gets_the_same_model() -> None:
    """Two judges with the same function share its thread, also where the function is a method."""
    judges = Judges()
    one, other = model_of(Judge(judges.judge)), model_of(Judge(judges.judge, timeout=1))
    assert isinstance(one, FunctionModel)
    assert one is other


def test_methods_of_different_objects_are_different() -> None:
    """The same method of two objects is two judges."""
    assert model_of(Judge(Judges().judge)) is not model_of(Judge(Judges().judge))


def test_the_memory_is_bounded() -> None:
    """A thousand functions that come and go are not all kept."""
    for _ in range(1_000):
        model_of(Judge(lambda messages: ""))
    gc.collect()
    assert len(registry._functions) <= 256


def test_nothing_of_a_judge_outlives_it(tmp_path: Path) -> None:
    """Once a judge and its function are gone, so are its settings and its key; also where its replies are kept."""

    def gone() -> list[weakref.ref[Any]]:
        def judge(messages: list[dict[str, Any]]) -> str:
            return "hello"

        mine = Judge(judge, identity="v1")
        named = Judge("openai/gpt-4o-mini", temperature=0, params={"api_key": KEY})
        assert _sendable(named)[0]["api_key"] == KEY
        with Store(tmp_path / "s.db", in_doubt="hold") as store:
            reply = asyncio.run(carried(store, ask_of(mine)))
            assert isinstance(reply, Reply)
            assert reply.text == "hello"
        request_of(ask_of(named))
        return [weakref.ref(each) for each in (judge, mine, named)]

    left = gone()
    gc.collect()
    assert [ref() for ref in left] == [None, None, None]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_functions_work_after_a_fork() -> None:
    """A function that was called before a fork is called after it too, in the child."""
    script = """
import warnings
warnings.simplefilter("ignore")
from rubric.values.judges import Judge
from rubric.models.registry import model_of
from tests.sendables import ask_of

def hello(messages):
    return "hello"

def call():
    return asyncio.run(model_of(Judge(hello)).answer(ask_of(Judge(hello)))).text

call()
child = os.fork()
assert call() == "hello"
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    assert in_child(script) == (0, "", "")
