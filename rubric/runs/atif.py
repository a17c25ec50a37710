"""
Runs in the Agent Trajectory Interchange Format (ATIF) 1.0 to 1.8, which Harbor defines: read, and written.

docs/reference/run_formats.md has what each field becomes. The first event of a step has the whole step in its metadata,
and the run what else the document has: so what was read, and not changed, is written as it was. What a run has and ATIF
has no field for is under `extra.rubric`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from mimetypes import guess_type
from typing import Any, Final

from attrs import evolve

from rubric.embed import FrozenMap, shorten, thaw
from rubric.errors import DefinitionError
from rubric.values.runs import LOST_CALL, Event, Media, Message, Run, State, SubRun, ToolCall

VERSIONS: Final = tuple(f"ATIF-v1.{minor}" for minor in range(9))
_SOURCES: Final = {"assistant": "agent", "user": "user", "system": "system"}
_ROLES: Final = {source: role for role, source in _SOURCES.items()}
_MAPPED: Final = ("source", "message", "timestamp", "reasoning_content", "tool_calls", "observation")
_OWN: Final = "rubric"
_MEDIA: Final = {"image": "image/png", "audio": "audio/wav"}

Fetch = Callable[[str], Run | None]
"""Reads the run of a sub-agent from the file that a reference names; None where it is not there."""


# -- reading ----------------------------------------------------------------------------------------------


def read_atif(document: Mapping[str, Any], fetch: Fetch = lambda _: None) -> Run:
    """Return the run in an ATIF *document*; *fetch* reads the sub-agents' runs in other files."""
    held = dict(document)
    version = str(held.get("schema_version", VERSIONS[-1]))
    if not version.startswith("ATIF-v1."):
        raise DefinitionError("schema_version", f"expected {VERSIONS[0]} to {VERSIONS[-1]}, got {shorten(version)!r}")
    agent = dict(_a(Mapping, "agent", held.pop("agent", {})))
    steps = _a(list | tuple, "steps", held.pop("steps", None))
    subs: dict[str, Run] = {}
    for index, sub in enumerate(held.pop("subagent_trajectories", None) or ()):
        try:
            subs[str(sub.get("trajectory_id") or index)] = read_atif(sub, fetch)
        except DefinitionError as problem:
            raise DefinitionError(f"subagent_trajectories[{index}].{problem.field}", problem.message) from None

    def resolve(ref: Mapping[str, Any]) -> Run:
        id_, path = ref.get("trajectory_id"), ref.get("trajectory_path")
        return subs.get(str(id_)) or (fetch(path) if path else None) or Run()

    events: list[Event] = []
    for index, step in enumerate(steps):
        events += _events(_a(Mapping, f"steps[{index}]", step), f"steps[{index}]", resolve)
    told = {each.metadata["ref"].get("trajectory_id") for each in events if isinstance(each, SubRun)}
    events += [
        SubRun(run.agent or id_, run, metadata=FrozenMap({"ref": {}})) for id_, run in subs.items() if id_ not in told
    ]
    own = _own(held)
    newer = () if version in VERSIONS else (f"{version} is newer than {VERSIONS[-1]}: fields that it has added",)
    left = [*_unread_in(steps), *newer]
    kept = {**own.get("metadata", {}), **held, "agent": agent, "subagent_trajectories": [*subs]}
    kept |= {"left_out": left} if left else {}
    return Run(
        events,
        agent=str(own.get("agent", agent.get("name") or "")),
        model=str(agent.get("model_name") or ""),
        complete=own.get("complete", not held.get("continued_trajectory_ref")),
        metadata=FrozenMap(kept),
    )


def _a(kind: Any, place: str, value: Any) -> Any:
    if not isinstance(value, kind):
        expected = "an object" if kind is Mapping else "an array"
        raise DefinitionError(place, f"expected {expected}, as ATIF has it, got {type(value).__name__}")
    return value


def _events(step: Mapping[str, Any], at: str, resolve: Callable[[Mapping[str, Any]], Run]) -> list[Event]:
    if "source" not in step or "message" not in step:
        raise DefinitionError(at, "a step of ATIF has a source and a message, and here is none")
    own, time = _own(step), str(step.get("timestamp") or "")
    calls, results = step.get("tool_calls") or (), [*((step.get("observation") or {}).get("results") or ())]
    text, media = _content(step["message"], own)
    events: list[Event] = []
    if "state" in own:
        events.append(State(own["state"], time=time))
    elif not (text == "" and not media and (calls or "frame" in own)):
        role = own.get("role") or _ROLES.get(step["source"], str(step["source"]))
        told = {name: own[name] for name in ("name", "to", "reference") if name in own}
        thought = own.get("reasoning") or step.get("reasoning_content") or ""
        events.append(Message(role, text, media=media, reasoning=thought, time=time, **told))
    for index, call in enumerate(calls):
        of_call = [each for each in results if each.get("source_call_id") == call.get("tool_call_id") is not None]
        result = of_call[0] if of_call else {}
        results = [each for each in results if each is not result]
        events += [_call(call, result, f"{at}.tool_calls[{index}]", "" if events else time), *_subs(result, resolve)]
    for result in results:
        subs = _subs(result, resolve)
        said, shown = _content(result.get("content"), _own(result))
        lost = FrozenMap({LOST_CALL: str(id_)} if (id_ := result.get("source_call_id")) is not None else {})
        is_empty = subs and not said and not shown
        events += [*([] if is_empty else [Message("tool", said, media=shown, metadata=lost)]), *subs]
    events[0] = evolve(events[0], metadata=FrozenMap({**events[0].metadata, "step": step}))
    return events


def _call(call: Mapping[str, Any], result: Mapping[str, Any], at: str, time: str) -> ToolCall:
    own = _own(call)
    content = result.get("content")
    said, media = _content(content, own)
    fields: dict[str, Any] = {"time": time, "media": media}
    fields |= {name: own[name] for name in ("agent", "time", "duration") if name in own}
    fields["result"] = said if isinstance(content, str) else said or None
    if not isinstance(name := call.get("function_name"), str) or not name:
        raise DefinitionError(f"{at}.function_name", f"expected the name of a tool, got {name!r}")
    arguments = _a(Mapping, f"{at}.arguments", call.get("arguments") or {})
    return ToolCall(name, arguments=arguments, **fields | _error(result.get("extra"), said))


def _error(extra: Any, said: str) -> dict[str, Any]:
    """Return the error of a call, by the marks that the writers of ATIF leave in the *extra* of its result."""
    if not isinstance(extra, Mapping):
        return {}
    if isinstance(told := extra.get("error"), str) and told:
        return {"error": told}
    marks = (extra.get(name) for name in ("is_error", "tool_result_is_error", "error"))
    return {"error": said or "it failed", "result": None} if any(marks) or extra.get("status") == "error" else {}


def _subs(result: Mapping[str, Any], resolve: Callable[[Mapping[str, Any]], Run]) -> list[Event]:
    found: list[Event] = []
    for ref in result.get("subagent_trajectory_ref") or ():
        run, own = resolve(ref), _own(ref)
        named = (own.get("agent"), run.agent, *map(ref.get, ("trajectory_id", "trajectory_path", "session_id")))
        told = {name: own[name] for name in ("task", "result") if name in own}
        agent = next((str(name) for name in named if name), "sub-agent")
        found.append(SubRun(agent, run, metadata=FrozenMap({"ref": ref}), **told))
    return found


def _own(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what `write_atif` has put into the extra of *fields*."""
    extra = fields.get("extra")
    own = extra.get(_OWN) if isinstance(extra, Mapping) else None
    return own if isinstance(own, Mapping) else {}


def _content(value: Any, own: Mapping[str, Any]) -> tuple[str, tuple[Media, ...]]:
    """Return the text and the media of a message or a result."""
    if isinstance(value, str) or value is None:
        return value or "", tuple(Media(**each) for each in own.get("media", ()))
    parts = [part for part in value if isinstance(part, Mapping)]
    text = "\n".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
    sources = [(part["type"], part.get("source")) for part in parts if part.get("type") in _MEDIA]
    return text, tuple(Media(kind, s["path"]) for kind, s in sources if isinstance(s, Mapping) and s.get("path"))


def _all_parts(steps: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parts of all messages and results in *steps*."""
    results = [each for step in steps for each in (step.get("observation") or {}).get("results") or ()]
    contents = [*(step["message"] for step in steps), *(each.get("content") for each in results)]
    parts = (part for content in contents if isinstance(content, list | tuple) for part in content)
    return [part for part in parts if isinstance(part, Mapping)]


def _unread_in(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a remark for each type of part in *steps* that is neither text nor media with a place."""
    others = (part for part in _all_parts(steps) if not isinstance(part.get("text"), str))
    unread = dict.fromkeys(part.get("type") for part in others if not _content([part], {})[1])
    return [f"left out of the chat, and not shown to the judge: parts of the type {kind!r}" for kind in unread]


# -- writing ----------------------------------------------------------------------------------------------


def write_atif(run: Run) -> dict[str, Any]:
    """
    Return *run*, which has events, as an ATIF document: of the version that it was read from, or of the newest.

    Results that are not texts are written as JSON; videos and documents, which ATIF has no parts for, into `extra`.
    """
    if not run.events:
        raise DefinitionError("run", "has no events, and a trajectory of ATIF has one step or more")
    held = thaw(run.metadata)
    order, agent = held.pop("subagent_trajectories", ()), held.pop("agent", {})
    if "schema_version" in held:  # else another reader's
        held.pop("left_out", None)
    agent |= {"name": run.agent or "unknown", "version": agent.get("version", "unknown")}
    agent |= {"model_name": run.model} if run.model else {}
    writer = _Steps()
    writer.take(run.events)
    is_own = "schema_version" in held  # else another reader's metadata, of which ATIF has no fields
    own = {} if is_own or not held else {"metadata": held}
    held = held if is_own else {}
    if run.complete != _own(held).get("complete", not held.get("continued_trajectory_ref")):
        own["complete"] = run.complete
    if not run.agent:  # ATIF wants a name; a sub-agent's own stands with what started it
        own["agent"] = ""
    held = _with_own(held, own)
    steps = [{**step, "step_id": number} for number, step in enumerate(writer.steps, 1)]
    document = {"schema_version": VERSIONS[-1], **held, "agent": agent, "steps": steps}
    ids = sorted(writer.embedded, key=lambda id_: order.index(id_) if id_ in order else len(order))
    if ids:
        document["subagent_trajectories"] = [{**write_atif(writer.embedded[id_]), "trajectory_id": id_} for id_ in ids]
    if document["schema_version"] not in VERSIONS or document["schema_version"] < _least(document):
        document["schema_version"] = VERSIONS[-1]
    return document


def _least(document: Mapping[str, Any]) -> str:
    """Return the oldest version that has the parts of *document*."""
    if "subagent_trajectories" in document:
        return VERSIONS[7]
    kinds = {part.get("type") for part in _all_parts(document["steps"])}
    return VERSIONS[8 if "audio" in kinds else 6 if kinds else 0]


class _Steps:
    """The steps of a document: those that were read as they were, others made of events."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.embedded: dict[str, Run] = {}
        self._is_open = False
        """Whether the last step was made here, so that what follows may join it."""

    def take(self, events: Sequence[Event]) -> None:
        place = 0
        while place < len(events):
            step = events[place].metadata.get("step")
            runs = (each.run for each in events[place:] if isinstance(each, SubRun))
            same = [] if step is None else _events(step, "", lambda _, runs=runs: next(runs, Run()))  # type: ignore[misc]
            if same and same == [*events[place : place + len(same)]]:
                self.steps.append(thaw(step))
                self._is_open = False
                for each in (one for one in same if isinstance(one, SubRun) and one.run.events):
                    if id_ := each.metadata["ref"].get("trajectory_id"):
                        self.embedded[id_] = each.run
                place += len(same)
            else:
                self._add(events[place])
                place += 1

    def _add(self, event: Event) -> None:
        rest = {k: v for k, v in thaw(event.metadata.get("step", {})).items() if k not in _MAPPED}
        rest |= {"timestamp": event.time} if not isinstance(event, SubRun) and event.time else {}
        match event:
            case Message(role="tool", name="", to="") if self._is_open:
                self._result({"content": _parts(event.content, event.media)}, event)
            case Message():
                own = {name: value for name in ("name", "to", "reference") if (value := getattr(event, name))}
                source = _SOURCES.get(event.role, "system")
                own |= {} if event.role in _SOURCES else {"role": event.role}
                own |= {} if source == "agent" or not event.reasoning else {"reasoning": event.reasoning}
                rest |= {"reasoning_content": event.reasoning} if source == "agent" and event.reasoning else {}
                message = _parts(event.content, event.media)
                self._step(_with_own({"source": source, "message": message, **rest}, own | _others(event)))
            case ToolCall():
                self._call(event, rest)
            case State():
                self._step(_with_own({"source": "system", "message": "", **rest}, {"state": thaw(event.values)}))
                self._is_open = False
            case SubRun():
                self._sub(event)

    def _step(self, step: dict[str, Any]) -> None:
        self.steps.append(step)
        self._is_open = True

    def _call(self, event: ToolCall, rest: dict[str, Any]) -> None:
        last = self.steps[-1] if self._is_open else {}
        own = {name: value for name in ("agent", "duration") if (value := getattr(event, name))} | _others(event)
        if last.get("source") != "agent" or not last["message"] or "tool_calls" in last or "observation" in last:
            self._step({"source": "agent", "message": "", **rest})
        elif event.time:
            own["time"] = event.time
        id_ = f"call_{1 + sum(len(step.get('tool_calls') or ()) for step in self.steps)}"
        call = {"tool_call_id": id_, "function_name": event.name, "arguments": thaw(event.arguments)}
        self.steps[-1]["tool_calls"] = [_with_own(call, own)]
        if event.result is None and not event.error and not event.media:
            return
        said = event.error if event.result is None else _as_text(event.result)
        extra = {"is_error": True} if event.result is None else {"error": event.error}
        result = {"source_call_id": id_, "content": _parts(said, event.media)}
        self._result({**result, **({"extra": extra} if event.error else {})}, event)

    def _result(self, result: dict[str, Any], event: Event) -> None:
        if isinstance(event, Message) and (own := _others(event)):
            result = _with_own(result, own)
        if not self._is_open:
            self._step(_with_own({"source": "system", "message": ""}, {"frame": True}))
        observation = self.steps[-1].setdefault("observation", {"results": []})
        observation["results"].append(result)

    def _sub(self, event: SubRun) -> None:
        ref = thaw(event.metadata.get("ref"))
        id_ = (ref or {}).get("trajectory_id") or event.run.metadata.get("trajectory_id")
        if event.run.events and not (ref or {}).get("trajectory_path"):
            id_ = str(id_ or f"{event.agent}-{len(self.embedded) + 1}")
            self.embedded[id_] = event.run
        if ref == {}:  # it was in the document, and nothing told of it
            return
        own = {name: value for name in ("task", "result") if (value := getattr(event, name))}
        own |= {} if event.agent == event.run.agent else {"agent": event.agent}
        ref = {"trajectory_id": id_ or event.agent} if ref is None else ref
        self._result({"subagent_trajectory_ref": [_with_own(ref, own)]}, event)


def _with_own(fields: dict[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    return {**fields, "extra": {**(fields.get("extra") or {}), _OWN: {**_own(fields), **own}}} if own else fields


def _others(event: Message | ToolCall) -> dict[str, Any]:
    """Return the media of *event* if some are not parts of ATIF's, which has pictures and recordings without names."""
    told = [{"kind": each.kind, "address": each.address, "name": each.name} for each in event.media]
    return {} if _are_parts(event.media) else {"media": told}


def _are_parts(media: Iterable[Media]) -> bool:
    return all(each.kind in _MEDIA and not each.name for each in media)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False, default=str)


def _parts(text: str, media: Sequence[Media]) -> Any:
    if not media or not _are_parts(media):
        return text
    said = [{"type": "text", "text": text}] if text else []
    return [*said, *({"type": m.kind, "source": {"media_type": _type(m), "path": m.address}} for m in media)]


def _type(media: Media) -> str:
    """Return the media type of *media*, by its address; its kind's commonest where that does not say."""
    found = guess_type(media.address, strict=False)[0] or ""
    return found if found.startswith(media.kind) else _MEDIA[media.kind]
