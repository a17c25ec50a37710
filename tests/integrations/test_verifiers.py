"""The recipe for verifiers: the module that its page shows, found and run by verifiers itself."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from rubric import dump
from tests.harnesses import BAD, GOOD, KEY, ODD, POLITE, harness, respond
from tests.places import ROOT
from tests.servers import Endpoint, Server, prompt_of

harness("verifiers")
PAGE = ROOT / "docs" / "integrations" / "verifiers.md"
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Yield an endpoint of the judging server, with the module of the page in place."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "rubric_verifiers.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "rubric_verifiers", raising=False)
    monkeypatch.setenv("JUDGE_KEY", KEY)
    dump(POLITE, tmp_path / "polite.yaml")
    monkeypatch.chdir(tmp_path)
    with Server(respond=respond) as server:
        yield server.at("ok")


def traces(endpoint: Endpoint, texts: list[str], **options: Any) -> list[Any]:
    """Return the traces of rollouts that say *texts*, scored by a task with the judge in its config."""
    import verifiers.v1 as vf
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask

    entry = {
        "id": "rubric-verifiers",
        "name": "polite",
        "rubric": "polite.yaml",
        "model": "gpt-4o-mini",
        "base_url": endpoint.openai,
        "api_key_var": "JUDGE_KEY",
        **options,
    }
    call = {"id": "1", "name": "orders", "arguments": '{"id": 7}'}
    made = []
    for text in texts:
        messages = [
            vf.UserMessage(content="When?"),
            vf.AssistantMessage(content=None, tool_calls=[call]),
            vf.ToolMessage(tool_call_id="1", content="paid"),
            vf.AssistantMessage(content=text),
        ]
        parents = [None, *range(len(messages) - 1)]
        nodes = [
            MessageNode(parent=parent, message=message, sampled=message.role == "assistant")
            for parent, message in zip(parents, messages, strict=True)
        ]
        task: Any = vf.Task(vf.TaskData(prompt="When?"), vf.TaskConfig(judges=[entry]))
        agent = AgentInfo(config=vf.AgentConfig())
        trace: Any = vf.Trace(task=TraceTask(type="Task", data=task.data), agent=agent, nodes=nodes)
        with suppress(vf.TaskError):
            asyncio.run(task.score(trace))
        made.append(trace)
    return made


def test_a_reward_a_low_reward_and_none(endpoint: Endpoint) -> None:
    """An ungraded rollout has no reward and raises; its reasons, usage and metric are in the trace all the same."""
    good, bad, odd = traces(endpoint, [GOOD, BAD, ODD])
    assert (good.reward, bad.reward, odd.rewards) == (1, 0.25, {"polite": None})
    assert bad.metrics == {"polite/ungraded": 0, "polite/polite": 1, "polite/day": 0}
    assert odd.metrics == {"polite/ungraded": 1}
    assert "✗ Names a day" in bad.info["rubric"]["polite"]["reason"]
    assert "not graded" in odd.info["rubric"]["polite"]["reason"]
    assert good.info["rubric"]["polite"]["digest"] == POLITE.digest
    assert all(trace.extra_usage[0].prompt_tokens > 0 for trace in (good, bad, odd))
    json.dumps([trace.info for trace in (good, bad, odd)], allow_nan=False)


def test_the_conversation_and_the_reference_are_judged(endpoint: Endpoint) -> None:
    """The candidate is the last reply, after the prompt and the calls; the sampling of the config is the judge's."""
    (trace,) = traces(endpoint, [GOOD], sampling={"temperature": 0.5, "top_p": 0.9})
    sent = endpoint.requests[0].body
    assert (sent["temperature"], sent["top_p"], sent["model"]) == (0.5, 0.9, "gpt-4o-mini")
    prompt = prompt_of(sent)
    assert all(part in prompt for part in (GOOD, "When?", "orders", "paid"))
    assert trace.reward == 1
