"""The runnable for LangChain, in real chains of LangChain's."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rubric import Candidate, DefinitionError
from tests.harnesses import BAD, GOOD, ODD, POLITE, harness, judging

harness("langchain_core", "langchain-core")
pytestmark = pytest.mark.filterwarnings("ignore")

TEXTS = [GOOD, BAD, ODD]


def test_every_way_to_call_it_gives_the_same() -> None:
    """One run has a pass, a fail and an ungraded input, in each of six ways."""
    from rubric.integrations.langchain import rubric_runnable

    with judging() as judge:
        grader = rubric_runnable(POLITE, judge)

        async def each_way() -> list[list[dict[str, Any]]]:
            streamed = [await anext(grader.astream(text)) for text in TEXTS]
            return [await grader.abatch(TEXTS), [await grader.ainvoke(text) for text in TEXTS], streamed]

        ways = [[grader.invoke(text) for text in TEXTS], grader.batch(TEXTS, {"max_concurrency": 2})]
        ways += [[next(iter(grader.stream(text))) for text in TEXTS], *asyncio.run(each_way())]
    for good, bad, odd in ways:
        assert [(each["score"], each["passed"]) for each in (good, bad, odd)] == [
            (1, True),
            (0.25, False),
            (None, None),
        ]
        assert (odd["verdict"], bad["criteria"]) == ("ungraded", {"polite": 1, "day": 0})
        assert "✗ Names a day" in bad["reason"]
        assert "not graded" in odd["reason"]
        assert good["rubric"]["digest"] == POLITE.digest
    json.dumps(ways, allow_nan=False)


def test_a_chain_grades_what_its_model_says_and_traces_it() -> None:
    """The trace has the result as plain data, under the rubric's name, with the config's tags."""
    from langchain_core.language_models import FakeListChatModel
    from langchain_core.runnables import RunnablePassthrough
    from langchain_core.tracers.run_collector import RunCollectorCallbackHandler

    from rubric.integrations.langchain import rubric_runnable

    runs = RunCollectorCallbackHandler()
    with judging() as judge:
        answer = FakeListChatModel(responses=[GOOD])
        grader = rubric_runnable(POLITE, judge, columns={"input": "question", "output": "answer"})
        chain = {"question": RunnablePassthrough(), "answer": answer} | grader
        result = chain.invoke("When?", {"callbacks": [runs], "tags": ["nightly"]})
    assert (result["score"], result["verdict"]) == (1, "pass")
    (run,) = [each for each in runs.traced_runs[0].child_runs if each.name == "polite"]
    assert run.outputs["rubric"]["digest"] == POLITE.digest
    assert "nightly" in runs.traced_runs[0].tags


def test_messages_and_tool_calls_are_kept() -> None:
    """A state of LangGraph's, a list of messages and a message in a mapping are read as chats."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.prompts import ChatPromptTemplate

    from rubric.integrations.langchain import default_candidate

    call = {"name": "orders", "args": {"id": 7}, "id": "1"}
    chat = [
        HumanMessage("When?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("paid", tool_call_id="1"),
        AIMessage(GOOD),
    ]
    prompt = ChatPromptTemplate.from_messages([("user", "When?"), ("ai", GOOD)]).invoke({})
    for value in (chat, {"messages": chat}, {"input": "When?", "output": chat}):
        candidate = default_candidate(value)
        assert (candidate.input, candidate.output) == ("When?", GOOD)
        assert [(each.name, dict(each.arguments), each.result) for each in candidate.tool_calls] == [
            ("orders", {"id": 7}, "paid")
        ]
    assert (default_candidate(prompt).input, default_candidate(AIMessage(GOOD)).output) == ("When?", GOOD)


def test_a_key_that_looks_like_a_field_is_refused_until_it_is_named() -> None:
    """A question that is silently ignored would change the verdict."""
    from rubric.integrations.langchain import rubric_runnable

    with pytest.raises(DefinitionError, match=r"columns=\{'input': 'question'\}"):
        rubric_runnable(POLITE, "offline").invoke({"question": "When?", "output": GOOD})
    with pytest.raises(DefinitionError, match="leave one of them out"):
        rubric_runnable(POLITE, "offline", columns={"input": "q"}, candidate=Candidate)
