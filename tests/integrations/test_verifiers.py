"""The judge plug-in for verifiers, found and run by verifiers itself."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from rubric import dump
from tests.harnesses import BAD, DOWN, GOOD, KEY, ODD, POLITE, REFUSED, harness, judging_at
from tests.servers import Endpoint, prompt_of

harness("verifiers")
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Yield an endpoint of the judging server, with the top-level module that the wheel has in place."""
    import rubric.integrations.verifiers

    path = rubric.integrations.verifiers.__file__
    spec = importlib.util.spec_from_file_location("rubric_verifiers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "rubric_verifiers", module)
    spec.loader.exec_module(module)
    monkeypatch.setenv("JUDGE_KEY", KEY)
    with judging_at() as (_, endpoint):
        yield endpoint


def traces(endpoint: Endpoint, folder: Path, texts: list[str], **options: Any) -> list[Any]:
    """Return the traces of rollouts that say *texts*, scored by a task with the judge in its config."""
    import verifiers.v1 as vf
    from verifiers.v1.graph import MessageNode
    from verifiers.v1.trace import AgentInfo, TraceTask

    dump(POLITE, folder / "polite.yaml")
    entry = {
        "id": "rubric-verifiers",
        "name": "polite",
        "rubric": str(folder / "polite.yaml"),
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


def test_a_reward_a_low_reward_and_none(tmp_path: Path, endpoint: Endpoint) -> None:
    """An ungraded rollout has no reward and raises; its reasons, usage and metric are in the trace all the same."""
    good, bad, odd = traces(endpoint, tmp_path, [GOOD, BAD, ODD])
    assert (good.reward, bad.reward, odd.rewards) == (1, 0.25, {"polite": None})
    assert bad.metrics == {"polite/ungraded": 0, "polite/polite": 1, "polite/day": 0}
    assert odd.metrics == {"polite/ungraded": 1}
    assert "✗ Names a day" in bad.info["rubric"]["polite"]["reason"]
    assert "not graded" in odd.info["rubric"]["polite"]["reason"]
    assert good.info["rubric"]["polite"]["digest"] == POLITE.digest
    assert all(trace.extra_usage[0].prompt_tokens > 0 for trace in (good, bad, odd))
    json.dumps([trace.info for trace in (good, bad, odd)], allow_nan=False)


def test_five_cases_and_a_second_run_that_asks_for_failures_alone(tmp_path: Path, endpoint: Endpoint) -> None:
    """Only what was judged has a reward; each failure has its reason; with a store a second run asks for no other."""
    texts, asked = [GOOD, BAD, ODD, REFUSED, DOWN], []
    for _ in range(2):
        made = traces(endpoint, tmp_path, texts, store=str(tmp_path / "replies.db"))
        assert [each.reward for each in made[:2]] == [1, 0.25]
        assert [each.rewards["polite"] for each in made[2:]] == [None] * 3
        for trace, word in zip(made[2:], ("unreadable", "refusal", "overloaded: HTTP 503"), strict=True):
            assert word in trace.info["rubric"]["polite"]["reason"]
        prompts = [prompt_of(each.body) for each in endpoint.requests]
        asked.append(sum(GOOD in each or BAD in each for each in prompts))
    assert asked == [4, 4]


def test_the_conversation_and_its_tool_calls_are_judged(tmp_path: Path, endpoint: Endpoint) -> None:
    """The candidate is the last reply; the sampling of the config is the judge's."""
    from rubric.integrations.verifiers import default_candidate

    (trace,) = traces(endpoint, tmp_path, [GOOD], sampling={"temperature": 0.5, "top_p": 0.9})
    candidate = default_candidate(trace.task.data, trace)
    assert (candidate.output, candidate.input, candidate.messages) == (GOOD, "When?", ())
    assert [(call.name, dict(call.arguments), call.result) for call in candidate.tool_calls] == [
        ("orders", {"id": 7}, "paid")
    ]
    sent = endpoint.requests[0].body
    assert (sent["temperature"], sent["top_p"], sent["model"]) == (0.5, 0.9, "gpt-4o-mini")
    with pytest.raises(AttributeError, match="no field 'answers'"):
        default_candidate(trace.task.data, trace, "answers")


def test_a_prompt_without_an_effect_is_refused(tmp_path: Path) -> None:
    """verifiers' own judges have a template in a file; a rubric has its own."""
    from rubric.integrations.verifiers import RubricJudge, RubricJudgeConfig

    (tmp_path / "prompt.txt").write_text("Grade it.")
    with pytest.raises(ValueError, match="no effect"):
        RubricJudge(RubricJudgeConfig(rubric="Is polite", prompt=tmp_path / "prompt.txt"))


def test_each_task_may_have_a_rubric_of_its_own() -> None:
    """`rubric_field` names the field with it; one of both ways is given."""
    from types import SimpleNamespace

    from rubric import DefinitionError
    from rubric.integrations.verifiers import RubricJudge, RubricJudgeConfig

    judge = RubricJudge(RubricJudgeConfig(rubric_field="rubrics"))
    one = judge.rubric_for(SimpleNamespace(rubrics='["Names a day"]'))
    assert [criterion.text for criterion in one] == ["Names a day"]
    for neither in ({}, {"rubric": "Is polite", "rubric_field": "rubrics"}):
        with pytest.raises(DefinitionError, match="not both"):
            RubricJudge(RubricJudgeConfig(**neither))
