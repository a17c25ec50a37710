"""Runs in ATIF, read and written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, cast

import pytest
from attrs import evolve
from hypothesis import given

from rubric import DefinitionError, call
from rubric import runs as logs
from rubric.internals.frozen_map import FrozenMap
from rubric.runs.atif import read_atif, write_atif
from rubric.runs.formats import candidate_of_run
from rubric.values.runs import Media, Message, Run, State, SubRun, ToolCall
from tests.examples import examples
from tests.runs.trajectories import documents, runs


def bare(run: Run) -> Run:
    """Return *run* without metadata, in which a reader keeps what else its file says."""

    def plain(event: Any) -> Any:
        return evolve(event, metadata={}, **({"run": bare(event.run)} if isinstance(event, SubRun) else {}))

    return Run(map(plain, run.events), agent=run.agent, model=run.model, complete=run.complete)


@pytest.mark.long
@examples(40)
@given(documents())
def test_documents_come_back(document: dict[str, Any]) -> None:
    """A document that is read and written is equal to what it was, in every field."""
    assert write_atif(read_atif(document)) == document


@examples(40)
@given(runs())
def test_runs_come_back(run: Run) -> None:
    """A run of any other format that is written and read has the same events in the same order."""
    assert bare(read_atif(write_atif(run))) == run


def test_agents_without_a_name_and_tools_with_one_come_back() -> None:
    """ATIF wants a name, which no rule takes for that of an agent: of sub-agents, what started them has it."""
    edited = ToolCall("edit")
    sub = SubRun("coder", Run([edited]))
    said: list[Any] = [edited, Message("tool", "closed", name="shop"), Message("assistant", ""), edited, sub]
    run = bare(read_atif(json.loads(json.dumps(write_atif(Run(said))))))
    assert run == Run(said)
    assert call("edit", agent="coder").never().judge(run).breaches[0].step == "5.1"


SEARCH = {"tool_call_id": "c1", "function_name": "search", "arguments": {"q": "GOOGL"}}
ASKED: dict[str, Any] = {"step_id": 1, "source": "user", "message": "What is GOOGL at?"}
SAID = {"step_id": 2, "source": "agent", "message": "I look.", "tool_calls": [SEARCH]}
AGENT = {"name": "harbor-agent", "version": "1.0.0", "model_name": "m"}


def document(*steps: dict[str, Any], version: str = "ATIF-v1.7", **fields: Any) -> dict[str, Any]:
    return {"schema_version": version, "agent": AGENT, "steps": [*steps], **fields}


def test_what_a_step_says_has_its_place() -> None:
    """Words, thoughts, time, calls with their results, failures and media are fields; the rest is metadata."""
    picture = {"type": "image", "source": {"media_type": "image/png", "path": "images/1.png"}}
    found = [{"source_call_id": "c1", "content": [{"type": "text", "text": "185"}, picture]}, {"content": "closed"}]
    step = {**SAID, "reasoning_content": "Hm.", "timestamp": "2026-11-25T19:00:00Z", "metrics": {"cost_usd": 0.1}}
    run = read_atif(document(ASKED, {**step, "observation": {"results": found}}))
    asked, said, call, seen = cast("tuple[Any, ...]", run.events)
    assert (run.agent, run.model, asked) == (
        "harbor-agent",
        "m",
        Message("user", ASKED["message"], metadata=FrozenMap({"step": ASKED})),
    )
    assert (said.role, said.content, said.reasoning, said.time) == (
        "assistant",
        "I look.",
        "Hm.",
        "2026-11-25T19:00:00Z",
    )
    assert said.metadata["step"]["metrics"] == {"cost_usd": 0.1}
    assert (call.name, call.arguments, call.result) == ("search", {"q": "GOOGL"}, "185")
    assert call.media == (Media("image", "images/1.png"),)
    assert (seen.role, seen.content) == ("tool", "closed")


@pytest.mark.parametrize(
    ("extra", "error"),
    [
        ({"is_error": True}, "no such file"),
        ({"tool_result_is_error": True}, "no such file"),
        ({"status": "error"}, "no such file"),
        ({"error": "Errno 2"}, "Errno 2"),
        ({"is_error": False, "status": "completed"}, ""),
    ],
)
def test_a_failed_call_has_an_error(extra: dict[str, Any], error: str) -> None:
    """The marks of the tools that write ATIF are read, and the document comes back."""
    result = {"source_call_id": "c1", "content": "no such file", "extra": extra}
    given = document(ASKED, {**SAID, "observation": {"results": [result]}})
    (*_, call) = read_atif(given).events
    assert isinstance(call, ToolCall)
    assert call.error == error
    assert write_atif(read_atif(given)) == given


def test_sub_agents_are_runs_of_their_own() -> None:
    """One that is embedded has its events at the call that started it; one in a file is read, or known to be missing."""
    sub = document({"step_id": 1, "source": "agent", "message": "Yes."}, trajectory_id="law")
    refs = [{"trajectory_id": "law"}, {"trajectory_path": "sub.json"}, {"trajectory_path": "gone.json"}]
    result = {"source_call_id": "c1", "subagent_trajectory_ref": refs}
    given = document(ASKED, {**SAID, "observation": {"results": [result]}}, subagent_trajectories=[sub])
    beside = Run([Message("assistant", "No.")], agent="other")
    run = read_atif(given, {"sub.json": beside}.get)
    law, other, gone = (event for event in run.events if isinstance(event, SubRun))
    assert [step for step, _ in run.steps()] == ["1", "2", "3", "4", "4.1", "5", "5.1", "6"]
    assert [each.agent for each in (law, other, gone)] == ["harbor-agent", "other", "gone.json"]
    assert (len(law.run.events), other.run, gone.run) == (1, beside, Run())
    assert write_atif(run) == given


def test_what_was_changed_is_written() -> None:
    """Another text, another result and an event between two steps are in the document, with new numbers."""
    given = document(ASKED, {**SAID, "observation": {"results": [{"source_call_id": "c1", "content": "185"}]}})
    asked, said, call = cast("tuple[Message, Message, ToolCall]", read_atif(given).events)
    run = Run([asked, State({"open": True}), evolve(said, content="Wait."), evolve(call, result={"price": 185})])
    state, step = write_atif(run)["steps"][1:]
    assert state["extra"] == {"rubric": {"state": {"open": True}}}
    assert (step["step_id"], step["message"]) == (3, "Wait.")
    assert step["observation"]["results"][0]["content"] == '{"price": 185}'


def test_a_part_that_is_not_read_is_named() -> None:
    """It stays in the file, and no judge is shown it: a type that ATIF has not, or a picture without a place."""
    parts = [{"type": "video", "source": {"path": "v.mp4"}}, {"type": "image", "source": {"data": "aGk="}}]
    given = document({**ASKED, "message": [*parts, {"type": "text", "text": "Hi"}]})
    run = read_atif(given)
    assert [one[-6:] for one in candidate_of_run(run).remarks] == ["video'", "image'"]
    assert write_atif(run) == given


def test_a_run_that_is_cut_short_says_so() -> None:
    """One that is continued in another file is not complete; what another format says of it is written."""
    given = document(ASKED, continued_trajectory_ref="cont.json")
    assert not read_atif(given).complete
    assert write_atif(read_atif(given)) == given
    cut = Run([Message("user", "Hello")], complete=False)
    assert not read_atif(write_atif(cut)).complete


def test_a_version_that_cannot_hold_a_run_is_raised() -> None:
    """The version that was read is kept; a run with a recording, which 1.8 brought, is of the newest."""
    run = read_atif(document(ASKED, version="ATIF-v1.2"))
    heard = Message("user", "Listen.", media=(Media("audio", "a.mp3"),))
    assert write_atif(run)["schema_version"] == "ATIF-v1.2"
    assert write_atif(evolve(run, events=[*run.events, heard]))["schema_version"] == "ATIF-v1.8"


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        ({"schema_version": "ATIF-v1.8", "agent": AGENT}, "steps"),
        (document({"step_id": 1, "source": "user"}), r"steps\[0\]"),
        (document({**SAID, "tool_calls": [{**SEARCH, "arguments": "GOOGL"}]}), r"steps\[0\].tool_calls\[0\].arguments"),
        (document(ASKED, subagent_trajectories=[{"steps": 1}]), r"subagent_trajectories\[0\].steps"),
    ],
)
def test_what_is_no_trajectory_is_refused(broken: dict[str, Any], place: str) -> None:
    """The error has the place in the document."""
    with pytest.raises(DefinitionError, match=place):
        read_atif(broken)


def test_a_run_without_events_is_not_written() -> None:
    """ATIF asks for a step at least."""
    with pytest.raises(DefinitionError, match="has no events"):
        write_atif(Run())


def test_a_trajectory_of_another_tool_comes_back() -> None:
    """What atif-make has made of a log of Inspect's is read and written back, equal."""
    given = json.loads((Path(__file__).parent / "data" / "trajectory.json").read_text())
    run = read_atif(given)
    assert [type(each).__name__ for each in run.events[:3]] == ["Message", "Message", "ToolCall"]
    assert write_atif(run) == given


def test_what_json_has_not_is_refused_or_escaped(tmp_path: Path) -> None:
    """A number such as NaN is told before the file is there; half of a surrogate pair is written by its escape."""
    with pytest.raises(DefinitionError, match="a number that JSON has not: inf or nan"):
        logs.write(Run([ToolCall("a", arguments={"x": math.inf})]), tmp_path / "run.json")
    assert not (tmp_path / "run.json").exists()
    logs.write(Run([Message("assistant", "a \ud800 b")]), tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_bytes())["steps"][0]["message"] == "a \ud800 b"
