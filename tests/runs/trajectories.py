"""Documents in ATIF, and runs, as they may be: for laws on reading and writing."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rubric.values.runs import Media, Message, Run, State, SubRun, ToolCall

_words = st.sampled_from(["", "a", "Where is A1?", "élan ☃", "two\nlines", '{"a": 1}'])
_said = st.sampled_from(["a", "Where is A1?", "two\nlines"])
_json = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | _words, lambda inner: st.lists(inner, max_size=2))
_extra = st.dictionaries(st.sampled_from(["k", "score", "status"]), _json, max_size=2)
_TIMES = st.sampled_from(["2026-11-25T19:00:00Z", "2026-11-25T19:00:01.5+01:00"])


def _some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


_image = st.fixed_dictionaries(
    {"media_type": st.just("image/png"), "path": st.sampled_from(["images/1.png", "https://example.org/x.png"])}
)
_audio = _some(
    {"media_type": st.just("audio/mpeg"), "path": st.just("audio/1.mp3")}, {"duration_sec": st.sampled_from([1.5])}
)
_part = (
    st.fixed_dictionaries({"type": st.just("text"), "text": _words})
    | st.fixed_dictionaries({"type": st.just("image"), "source": _image})
    | st.fixed_dictionaries({"type": st.just("audio"), "source": _audio})
)
_content = _words | st.lists(_part, max_size=3)
_metrics = _some(
    {},
    {
        "prompt_tokens": st.integers(0, 99),
        "completion_token_ids": st.lists(st.integers(0, 9), max_size=2),
        "logprobs": st.lists(st.sampled_from([-0.5, -0.1]), max_size=2),
        "cost_usd": st.sampled_from([0.01]),
        "extra": _extra,
    },
)


@st.composite
def _step(draw: Any, number: int, subs: list[str]) -> Any:
    source = draw(st.sampled_from(["agent", "agent", "user", "system"]))
    step = draw(
        _some({"message": _content}, {"timestamp": _TIMES, "extra": _extra, "is_copied_context": st.booleans()})
    )
    step |= {"step_id": number, "source": source}
    ids: list[str] = []
    if source == "agent":
        step |= draw(
            _some(
                {},
                {
                    "model_name": _said,
                    "reasoning_effort": st.sampled_from(["low", 0.5]),
                    "reasoning_content": _words,
                    "metrics": _metrics,
                    "llm_call_count": st.integers(1, 3),
                },
            )
        )
        ids = [f"c{number}.{index}" for index in range(draw(st.integers(0, 3)))]
        if ids or draw(st.booleans()):
            call = _some({"function_name": _said, "arguments": _extra}, {"extra": _extra})
            step["tool_calls"] = [{"tool_call_id": id_, **draw(call)} for id_ in ids]
    if source != "user" and draw(st.booleans()):
        step["observation"] = {"results": [draw(_result(ids, subs)) for _ in range(draw(st.integers(0, 3)))]}
    return step


@st.composite
def _result(draw: Any, ids: list[str], subs: list[str]) -> Any:
    result = draw(_some({}, {"content": st.none() | _content, "extra": _extra}))
    if ids and draw(st.booleans()):
        result["source_call_id"] = draw(st.sampled_from(ids))
    if draw(st.integers(0, 3)) == 0:
        refs = []
        for _ in range(draw(st.integers(1, 2))):
            ref = draw(_some({}, {"session_id": _said, "extra": _extra}))
            by_id = subs and draw(st.booleans())
            ref |= {"trajectory_id": draw(st.sampled_from(subs))} if by_id else {"trajectory_path": "sub.json"}
            refs.append(ref)
        result["subagent_trajectory_ref"] = refs
    return result


@st.composite
def documents(draw: Any, depth: int = 1) -> Any:
    """Return ATIF documents that Harbor's models take, sub-agents included."""
    subs = [f"sub-{index}" for index in range(draw(st.integers(0, 2)) if depth else 0)]
    optional = {
        "session_id": _said,
        "notes": _words,
        "extra": _extra,
        "continued_trajectory_ref": _said,
        "final_metrics": _some({}, {"total_steps": st.integers(0, 9), "total_cost_usd": st.sampled_from([0.5])}),
    }
    agent = _some({"name": _said, "version": _said}, {"model_name": _said, "extra": _extra})
    document = draw(_some({"agent": agent}, optional))
    document["steps"] = [draw(_step(number + 1, subs)) for number in range(draw(st.integers(1, 4)))]
    if subs:
        document["subagent_trajectories"] = [{**draw(documents(depth - 1)), "trajectory_id": id_} for id_ in subs]
    return {"schema_version": "ATIF-v1.8", **document}


_kinds = st.sampled_from(["image", "audio"])
_media = st.lists(
    st.builds(Media, _kinds, st.just("images/1.png"), name=_words)
    | st.builds(Media, st.just("video"), st.just("https://example.org/v.mp4"), name=_words),
    max_size=2,
)
_message = st.builds(
    Message,
    st.sampled_from(["user", "assistant", "system", "developer", "tool"]),
    _said,
    media=_media,
    name=_words,
    to=_words,
) | st.builds(Message, st.just("assistant"), _said, reference=_words, reasoning=_words, time=_TIMES)
_call = st.builds(
    ToolCall,
    _said,
    arguments=_extra,
    result=st.none() | _said,
    error=_words,
    agent=_words,
    time=_TIMES | st.just(""),
    duration=st.sampled_from([None, 1.5]),
    media=st.lists(st.builds(Media, _kinds, st.just("images/1.png")), max_size=1),
)
_flat = _message | _call | st.builds(State, _extra)


def runs(depth: int = 1) -> st.SearchStrategy[Run]:
    """Return runs as other readers make them: without metadata."""
    event: Any = _flat
    if depth:
        event = event | st.builds(SubRun, _said, runs(depth - 1), task=_words, result=_words)
    events = st.lists(event, min_size=1, max_size=6)
    return st.builds(Run, events, agent=_words, model=st.sampled_from(["", "m"]), complete=st.booleans())
