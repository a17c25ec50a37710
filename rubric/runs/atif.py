"""
Runs in the Agent Trajectory Interchange Format (ATIF) 1.0 to 1.8, which Harbor defines: read, and written.

| in the file                                        | here                                                          |
|----------------------------------------------------|---------------------------------------------------------------|
| a step's `message`, of the `source` agent          | a `Message` of the assistant; none where it is '' beside calls|
| `tool_calls`, and the `results` of that id         | a `ToolCall` with its result                                  |
| a result without a call                            | a `Message` of the role `tool`                                |
| `subagent_trajectory_ref`                          | a `SubRun`; without events where its file is not there        |
| `extra.is_error`, `.error`, `.status` of a result  | the call's error                                              |
| parts with a `source`                              | `Media`                                                       |
| every other field                                  | `metadata` of the event, or of the run                        |

So a run that was read is written as it was. What a run has and ATIF has no field for is under `extra.rubric`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from rubric.errors import DefinitionError
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.values.runs import Event, Media, Message, Run, State, SubRun, ToolCall

VERSIONS: Final = tuple(f"ATIF-v1.{minor}" for minor in range(9))
_ROLES: Final = {"agent": "assistant"}
_SOURCES: Final = {"assistant": "agent", "user": "user", "system": "system"}
_MAPPED: Final = ("source", "message", "timestamp", "reasoning_content", "tool_calls", "observation")
_OWN: Final = "rubric"
_MEDIA: Final = {"image": "image/png", "audio": "audio/wav"}

Fetch = Callable[[str], Run | None]
"""Reads the run of a sub-agent from the file that a reference names; None where it is not there."""


# -- reading ----------------------------------------------------------------------------------------------


def read_atif(document: Mapping[str, Any], fetch: Fetch = lambda _: None) -> Run:
    """
    Return the run in an ATIF *document*.

    Args:
        fetch: Reads the sub-agents' runs in other files.

    Raises:
        DefinitionError: A part that ATIF requires is not there, or is of another type.
    """
    held = dict(document)
    agent = dict(_a(Mapping, "agent", held.pop("agent", {})))
    steps = _a(list | tuple, "steps", held.pop("steps", None))
    subs: dict[str, Run] = {}
    for index, sub in enumerate(held.pop("subagent_trajectories", None) or ()):
        try:
            subs[str(sub.get("trajectory_id") or f"{index + 1}")] = read_atif(sub, fetch)
        except DefinitionError as problem:
            raise DefinitionError(f"subagent_trajectories[{index}].{problem.field}", problem.message) from None
    if subs:
        held["subagent_trajectories"] = [*subs]
    named: dict[str, Any] = {"agent": str(agent.pop("name", "")), "model": agent.pop("model_name", None) or ""}
    events: list[Event] = []
    for index, step in enumerate(steps):
        events += _events(_a(Mapping, f"steps[{index}]", step), f"steps[{index}]", {"": fetch, **subs})
    told = {each.metadata.get("ref", {}).get("trajectory_id") for each in events if isinstance(each, SubRun)}
    for id_, run in subs.items():
        if id_ not in told:
            events.append(SubRun(run.agent or id_, run, metadata=FrozenMap({"ref": None})))
    held, own = _without_own(held)
    is_whole = own.get("complete", not held.get("continued_trajectory_ref"))
    return Run(events, **named, complete=is_whole, metadata=FrozenMap({**held, "agent": agent}))


def _a(kind: Any, place: str, value: Any) -> Any:
    if not isinstance(value, kind):
        expected = "an object" if kind is Mapping else "an array" if kind == list | tuple else "a text"
        raise DefinitionError(place, f"expected {expected}, as ATIF has it, got {type(value).__name__}")
    return value


def _events(step: Mapping[str, Any], at: str, subs: Mapping[str, Any]) -> Iterator[Event]:
    if "source" not in step or "message" not in step:
        raise DefinitionError(at, "a step of ATIF has a source and a message, and here is none")
    number = {"step_id": step.get("step_id")}
    rest, own = _without_own({name: value for name, value in step.items() if name not in _MAPPED})
    text, media, kept = _content("message", step["message"])
    if "state" in own:
        yield State(own["state"], time=step.get("timestamp") or "", metadata=FrozenMap({**rest, **kept}))
        return
    observation = step.get("observation") or {}
    results = list(observation.get("results") or ())
    calls = list(step.get("tool_calls") or ())
    rest |= kept | {name: step[name] for name in ("tool_calls", "observation") if name in step and not step[name]}
    if extra := {name: value for name, value in observation.items() if name != "results" or not value}:
        rest["observation"] = extra
    thought = step.get("reasoning_content")
    if calls and text == "" and not media and not kept:
        rest |= {name: step[name] for name in ("reasoning_content",) if name in step}
        first = {"time": step.get("timestamp") or "", "metadata": {"step": rest}}
    elif "frame" in own:
        first = {}
    else:
        named = {"name", "to", "reference"} & {*own}
        yield Message(
            own.get("role") or _ROLES.get(step["source"], str(step["source"])),
            text,
            media=_own_media(own) or media,
            reasoning=thought or "",
            time=step.get("timestamp") or "",
            metadata=FrozenMap({**rest, **({"reasoning_content": thought} if thought == "" else {})}),
            **{name: own[name] for name in named},
        )
        first = {}
    ids = [call.get("tool_call_id") for call in calls]
    of_calls: dict[Any, Any] = {}
    alone = [each for each in results if each.get("source_call_id") not in ids or _second(each, of_calls)]
    natural = [*(of_calls[id_] for id_ in ids if id_ in of_calls), *alone]
    if [id(each) for each in natural] != [id(each) for each in results]:
        number["results"] = [each.get("source_call_id") for each in results]
    for index, call in enumerate(calls):
        result = of_calls.get(ids[index])
        yield _call(call, result, f"{at}.tool_calls[{index}]", number, first)
        yield from _subs(result or {}, {"step_id": number["step_id"]}, subs)
        number, first = {"step_id": number["step_id"]}, {}
    for result in alone:
        rest = {name: value for name, value in result.items() if name not in ("content", "subagent_trajectory_ref")}
        if result.get("content") is None and result.get("subagent_trajectory_ref"):
            rest |= {"content": None} if "content" in result else {}
            yield from _subs(result, number, subs, {"result": rest})
        else:
            said, shown, kept = _content("content", result.get("content", ""))
            more = {} if "content" in result else {"without": "content"}
            held = FrozenMap({**number, "result": {**rest, **kept, **more}})
            yield Message("tool", said, media=shown, metadata=held)
            yield from _subs(result, {"step_id": number["step_id"]}, subs)
        number = {"step_id": number["step_id"]}


def _second(result: Any, of_calls: dict[Any, Any]) -> bool:
    """Keep *result* with its call; True if that has one already."""
    return of_calls.setdefault(result["source_call_id"], result) is not result


def _call(call: Any, result: Any, at: str, number: Mapping[str, Any], first: Mapping[str, Any]) -> ToolCall:
    rest, own = _without_own({k: v for k, v in call.items() if k not in ("function_name", "arguments")})
    fields = {name: own[name] for name in ("agent", "time", "duration") if name in own}
    metadata = {**number, **rest, **first.get("metadata", {})}
    if result is not None:
        said, media, kept = _content("content", result.get("content"))
        mapped = ("content", "source_call_id", "subagent_trajectory_ref")
        kept = kept if "content" in result else {"without": "content"}
        metadata["result"] = {name: value for name, value in result.items() if name not in mapped} | kept
        value = said if isinstance(result.get("content"), str) else said or None
        fields |= {"result": value, "media": _own_media(own) or media} | _error(result.get("extra"), value)
    return ToolCall(
        str(call.get("function_name") or "tool"),
        arguments=_a(Mapping, f"{at}.arguments", call.get("arguments") or {}),
        metadata=FrozenMap(metadata),
        **({"time": first["time"]} if first else {}) | fields,
    )


def _error(extra: Any, said: str | None) -> dict[str, Any]:
    """Return the error of a call, by the marks that the writers of ATIF leave in the *extra* of its result."""
    if not isinstance(extra, Mapping):
        return {}
    if isinstance(told := extra.get("error"), str) and told:
        return {"error": told}
    marks = (extra.get(name) for name in ("is_error", "tool_result_is_error", "error"))
    return {"error": said or "it failed", "result": None} if any(marks) or extra.get("status") == "error" else {}


def _subs(
    result: Mapping[str, Any], number: Mapping[str, Any], subs: Mapping[str, Any], more: Mapping[str, Any] | None = None
) -> Iterator[SubRun]:
    for ref in result.get("subagent_trajectory_ref") or ():
        path = ref.get("trajectory_path")
        run = subs.get(ref.get("trajectory_id") or "no id") or (subs[""](path) if path else None) or Run()
        rest, own = _without_own(ref)
        agent = own.get("agent") or run.agent or str(ref.get("trajectory_id") or path or ref.get("session_id"))
        told = {name: own[name] for name in ("task", "result") if name in own}
        yield SubRun(agent, run, **told, metadata=FrozenMap({**number, "ref": rest, **(more or {})}))
        more = {}


def _without_own(fields: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return *fields* without what `write_atif` has put into their extra, and that."""
    extra = fields.get("extra")
    if not isinstance(extra, Mapping) or not isinstance(own := extra.get(_OWN), Mapping):
        return dict(fields), {}
    left = {name: value for name, value in extra.items() if name != _OWN}
    return {**{k: v for k, v in fields.items() if k != "extra"}, **({"extra": left} if left else {})}, own


def _own_media(own: Mapping[str, Any]) -> tuple[Media, ...]:
    return tuple(Media(**each) for each in own.get("media", ()))


def _content(name: str, value: Any) -> tuple[str, tuple[Media, ...], dict[str, Any]]:
    """Return the text of a message or a result, its media, and under *name* its parts, for they have an order."""
    if isinstance(value, str):
        return value, (), {}
    parts = [part for part in value or () if isinstance(part, Mapping)]
    text = "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
    media = tuple(
        Media(part["type"], part["source"]["path"])
        for part in parts
        if part.get("type") in _MEDIA and isinstance(part.get("source"), Mapping) and part["source"].get("path")
    )
    return text, media, {name: value}


# -- writing ----------------------------------------------------------------------------------------------


def write_atif(run: Run) -> dict[str, Any]:
    """
    Return *run* as an ATIF document: of the version that it was read from, if that can hold it, else of the newest.

    Results that are no texts are written as JSON; videos and documents, which ATIF has no parts for, into `extra`.

    Raises:
        DefinitionError: It has no events; a trajectory has one step or more.
    """
    if not run.events:
        raise DefinitionError("run", "has no events, and a trajectory of ATIF has one step or more")
    held = thaw(run.metadata)
    agent, order = held.pop("agent", {}), held.pop("subagent_trajectories", ())
    agent = {"name": run.agent or "unknown", "version": "unknown", **agent}
    if run.model:
        agent["model_name"] = run.model
    writer = _Steps()
    for event in run.events:
        writer.add(event)
    embedded = sorted(writer.embedded, key=lambda id_: order.index(id_) if id_ in order else len(order))
    is_told = run.complete == (not held.get("continued_trajectory_ref"))
    held = _with_own(held, {} if is_told else {"complete": run.complete})
    document = {"schema_version": VERSIONS[-1], **held, "agent": agent, "steps": writer.finished()}
    if embedded:
        subs = [write_atif(writer.embedded[id_]) for id_ in embedded]
        document["subagent_trajectories"] = [
            {**sub, "trajectory_id": id_} for id_, sub in zip(embedded, subs, strict=True)
        ]
    if document["schema_version"] not in VERSIONS or document["schema_version"] < _least(document):
        document["schema_version"] = VERSIONS[-1]
    return document


def _least(document: Mapping[str, Any]) -> str:
    """Return the oldest version that has the parts of *document*."""
    if "subagent_trajectories" in document:
        return VERSIONS[7]
    texts = [step["message"] for step in document["steps"]]
    results = [step.get("observation", {}).get("results", ()) for step in document["steps"] if step.get("observation")]
    texts += [result.get("content") for listed in results for result in listed]
    kinds = {part.get("type") for text in texts if isinstance(text, list) for part in text}
    return VERSIONS[8 if "audio" in kinds else 6 if kinds else 0]


class _Steps:
    """The steps of a document, which are made of events: a message, its calls, and what came back."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.embedded: dict[str, Run] = {}
        self._ids: Any = None
        self._orders: dict[int, list[Any]] = {}

    def finished(self) -> list[dict[str, Any]]:
        for index, order in self._orders.items():
            results = self.steps[index]["observation"]["results"]
            self.steps[index]["observation"]["results"] = [
                results.pop(next((i for i, each in enumerate(results) if each.get("source_call_id") == id_), 0))
                for id_ in order
            ] + results
        return [{**step, "step_id": number} for number, step in enumerate(self.steps, 1)]

    def add(self, event: Event) -> None:
        held = thaw(event.metadata)
        number, order = held.pop("step_id", None), held.pop("results", None)
        is_more = bool(self.steps) and number is not None and number == self._ids
        match event:
            case Message(role="tool") if self.steps or "result" in held:
                result = held.pop("result", {})
                content = _parts(event.content, event.media, result.pop("content", event.content))
                is_silent = bool(result.pop("without", "")) and not content
                self._result({**result, **({} if is_silent else {"content": content})}, number)
            case Message():
                self._message(event, {**held, **({} if number is None else {"step_id": number})}, number)
            case ToolCall():
                self._call(event, held, number, is_more=is_more)
            case State():
                own = {"state": thaw(event.values)}
                self._step(_with_own({"source": "system", "message": "", **_time(event), **held}, own), number)
            case SubRun():
                self._sub(event, held, number)
        if order is not None:
            self._orders[len(self.steps) - 1] = order

    def _step(self, step: dict[str, Any], number: Any) -> None:
        self.steps.append(step)
        self._ids = number

    def _message(self, event: Message, held: dict[str, Any], number: Any) -> None:
        own = {name: value for name in ("name", "to", "reference") if (value := getattr(event, name))}
        if event.role not in _SOURCES:
            own["role"] = event.role
        own |= _others(event)
        message = _parts(event.content, event.media, held.pop("message", event.content))
        step = {"source": _SOURCES.get(event.role, "system"), "message": message, **_time(event), **held}
        if event.reasoning:
            if step["source"] == "agent":
                step["reasoning_content"] = event.reasoning
            else:
                own["reasoning"] = event.reasoning
        self._step(_with_own(step, own), number)

    def _call(self, event: ToolCall, held: dict[str, Any], number: Any, *, is_more: bool) -> None:
        step, result = held.pop("step", None), held.pop("result", None)
        last = self.steps[-1] if self.steps else {}
        joins = is_more or (number is None and last.get("source") == "agent" and not last.get("tool_calls"))
        if step is not None or not joins or (not is_more and last.get("observation")):
            self._step({"source": "agent", "message": "", **_time(event), **(step or {})}, number)
        id_ = held.pop("tool_call_id", None) or f"call_{sum(len(s.get('tool_calls') or ()) for s in self.steps) + 1}"
        own = {name: value for name in ("agent", "duration") if (value := getattr(event, name))}
        if event.time and step is None and number is None:
            own["time"] = event.time
        own |= _others(event)
        call = {"tool_call_id": id_, "function_name": event.name, "arguments": thaw(event.arguments), **held}
        self.steps[-1]["tool_calls"] = [*(self.steps[-1].get("tool_calls") or ()), _with_own(call, own)]
        if result is None and event.result is None and not event.error and not event.media:
            return
        result = result or {}
        is_silent = bool(result.pop("without", ""))
        content: Any = event.error or None if event.result is None else _as_text(event.result)
        if event.error and not result.get("extra"):
            result["extra"] = {"is_error": True} if event.result is None else {"error": event.error}
        content = _parts(content or "", event.media, result.pop("content", content))
        said = {} if is_silent and not content else {"content": content}
        self._result({"source_call_id": id_, **said, **result}, number, of_call=True)

    def _result(self, result: dict[str, Any], number: Any, *, of_call: bool = False) -> None:
        is_other = number is not None and number != self._ids
        if not of_call and (not self.steps or is_other or "state" in _without_own(self.steps[-1])[1]):
            self._step(_with_own({"source": "system", "message": ""}, {"frame": True}), number)
        observation = self.steps[-1].get("observation") or {}
        self.steps[-1]["observation"] = {**observation, "results": [*observation.get("results", ()), result]}

    def _sub(self, event: SubRun, held: dict[str, Any], number: Any) -> None:
        ref, result = held.pop("ref", {}), held.pop("result", None)
        id_ = (ref or {}).get("trajectory_id") or event.run.metadata.get("trajectory_id")
        is_there = bool(event.run.events)
        if is_there and not (ref or {}).get("trajectory_path"):
            id_ = str(id_ or f"{event.agent}-{len(self.embedded) + 1}")
            self.embedded[id_] = event.run
        elif is_there and id_:
            self.embedded[str(id_)] = event.run
        if ref is None:  # it was in the document, and nothing told of it
            return
        own = {name: value for name in ("task", "result") if (value := getattr(event, name))}
        if event.agent not in (event.run.agent, id_, ref.get("trajectory_path"), ref.get("session_id")):
            own["agent"] = event.agent
        ref = _with_own({**({"trajectory_id": id_} if id_ else {}), **ref} or {"trajectory_id": event.agent}, own)
        if result is not None or number is None:
            self._result({**(result or {}), "subagent_trajectory_ref": [ref]}, number)
        else:
            last = self.steps[-1]["observation"]["results"][-1]
            last["subagent_trajectory_ref"] = [*last.get("subagent_trajectory_ref", ()), ref]


def _with_own(fields: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, "extra": {**(fields.get("extra") or {}), _OWN: dict(own)}} if own else fields


def _others(event: Message | ToolCall) -> dict[str, Any]:
    """Return the media of *event* if some are no parts of ATIF's, which has pictures and recordings without names."""
    is_plain = all(each.kind in _MEDIA and not each.name for each in event.media)
    told = [{"kind": each.kind, "address": each.address, "name": each.name} for each in event.media]
    return {} if is_plain else {"media": told}


def _time(event: Message | ToolCall | State) -> dict[str, str]:
    return {"timestamp": event.time} if event.time else {}


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False, default=str)


def _parts(text: str, media: Iterable[Media], held: Any) -> Any:
    """Return *text* and *media* as content: the parts *held* from reading if they say the same."""
    if not isinstance(held, str) and _content("", held)[:2] == (text, tuple(media)):
        return held
    shown = [each for each in media if each.kind in _MEDIA]
    said = [{"type": "text", "text": text}] if text else []
    sources = ({"media_type": _type(each), "path": each.address} for each in shown)
    return [*said, *({"type": m.kind, "source": s} for m, s in zip(shown, sources, strict=True))] if shown else text


_TYPES: Final = {
    "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif", "webp": "image/webp", "mp3": "audio/mpeg",
    "m4a": "audio/mp4", "mp4": "audio/mp4", "aac": "audio/aac", "ogg": "audio/ogg", "flac": "audio/flac",
    "webm": "audio/webm", "aiff": "audio/aiff",
}  # fmt: skip


def _type(media: Media) -> str:
    """Return the media type of *media*, by its address; its kind's commonest where that does not say."""
    if media.address.startswith("data:"):
        return media.address[5:].partition(";")[0]
    found = _TYPES.get(media.address.rpartition(".")[2].lower(), "")
    return found if found.startswith(media.kind) else _MEDIA[media.kind]
