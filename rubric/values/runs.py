"""
Runs of agents: what was said, called, handed on and changed, in the order in which it happened.

An event is a `Message`, a `ToolCall`, a `SubRun` or a `State`. Its step is its place: `3` is the third event of a run,
`3.2` the second event of the run of the sub-agent that the third event started. A judge, evidence, rules, pages and
plain data name an event by its step.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, get_args

from attrs import Attribute, field, frozen

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.fields import Shown, refuse
from rubric.internals.frozen_map import FrozenMap, freeze
from rubric.internals.guided import guided_class

MediaKind = Literal["image", "audio", "video", "document"]
LOST_CALL: Final = "lost_call"
"""The key in the metadata of a tool's message whose call the log lacks: its id, or ''."""

MEDIA_KINDS: Final[tuple[MediaKind, ...]] = get_args(MediaKind)


_metadata = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)
_seconds = fields.optional(fields.number(0, float("inf")))


@guided_class
@frozen(repr=False)
class Media(Shown):
    """
    A picture, a recording, a film or a document in a run.

    Args:
        kind: `image`, `audio`, `video` or `document`.
        address: A `data:` URL with its content in base 64, an `https://` address, or the name under which a log keeps
            it. A judge is shown the first two; of the third, that it was there.
        name: Such as that of its file.
    """

    kind: MediaKind = field(validator=fields.one_of(*MEDIA_KINDS))
    address: str = field(validator=fields.text)
    name: str = field(default="", kw_only=True, validator=fields.string)


_ADDRESS = re.compile(r"https://[^\s/?#]")
_DATA = re.compile(r"data:image/[\w.+-]+(?:;[^,]*)?;base64,[A-Za-z0-9+/_-]")
_ENDS = re.compile(r"[\sA-Za-z0-9+/_-]*[\s=]*")


def is_address(image: str) -> bool:
    """True if *image* is an `https://` address with a host, or a `data:` URL of an image in base 64."""
    if not image.startswith("data:"):
        return _ADDRESS.match(image) is not None
    start = image.find(",") + 1
    # Both ends are looked at: images have megabytes, and are checked in each candidate.
    ends = image[start : start + 60], image[max(start, len(image) - 60) :]
    return _DATA.match(image) is not None and all(map(_ENDS.fullmatch, ends))


def part_of(media: Media) -> dict[str, Any] | None:
    """Return *media* as a part of a message, as OpenAI's protocol and LiteLLM have it; None if it is elsewhere."""
    address, is_data = media.address, media.address.startswith("data:")
    head, _, data = address.partition(",")
    if not (is_data and data) and not (_ADDRESS.match(address) and media.kind != "audio"):
        return None
    if media.kind == "audio":
        form = head.removeprefix("data:").partition(";")[0].rpartition("/")[2]
        form = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "": "wav"}.get(form, form)
        return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
    if media.kind == "document":
        name = {"filename": media.name or "document.pdf"} if is_data else {}
        return {"type": "file", "file": {"file_data" if is_data else "file_id": address, **name}}
    kind = f"{media.kind}_url"
    return {"type": kind, kind: {"url": address}}


def _as_media(value: Iterable[Media]) -> tuple[Media, ...]:
    return fields.as_tuple("media", value, Media, "Media")


_media = field(default=(), kw_only=True, converter=_as_media)


@guided_class
@frozen(repr=False)
class Message(Shown):
    """
    What somebody said.

    Args:
        role: Who said it: `user`, `assistant`, `system`, or another role that the harness has.
        reference: Of an answer of the assistant: a reference answer, which a judge of this turn is shown.
        name: Of the speaker, where several have one role; of a sub-agent, its name.
        to: To whom it was said, where that is not the other side of the chat.
        media: What was shown with it.
        reasoning: What the model thought before it said so. No judge is shown it.
        time: When, as ISO 8601.
        metadata: What else the log has. No judge is shown it.
    """

    role: str = field(validator=fields.text)
    content: str = field(validator=fields.string)
    reference: str = field(default="", kw_only=True, validator=fields.string)
    name: str = field(default="", kw_only=True, validator=fields.string)
    to: str = field(default="", kw_only=True, validator=fields.string)
    media: tuple[Media, ...] = _media
    reasoning: str = field(default="", kw_only=True, validator=fields.string)
    time: str = field(default="", kw_only=True, validator=fields.string)
    metadata: FrozenMap = _metadata

    def __attrs_post_init__(self) -> None:
        if meant := {"human": "user", "ai": "assistant"}.get(self.role):
            raise DefinitionError("role", f"a run has the role {meant!r}, got {self.role!r}; write role={meant!r}")
        if self.reference and self.role != "assistant":
            message = f"only an answer of the assistant has a reference, and this message is of the role {self.role!r}"
            raise DefinitionError("reference", message)


@guided_class
@frozen(repr=False)
class ToolCall(Shown):
    """
    One call of a tool: its *name*, *arguments*, and what came back.

    Args:
        result: What the tool returned; None if that is not known.
        error: Why it failed; empty if it did not. A call that failed may have a result too.
        media: What it returned besides, such as a screenshot.
        agent: The name of the agent that called it, where there are several.
        time: When it was called, as ISO 8601.
        duration: Seconds until it returned.
        metadata: What else the log has, such as the call's own id. No judge is shown it.
    """

    name: str = field(validator=fields.text)
    arguments: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)
    result: Any = field(default=None, kw_only=True, converter=freeze)
    error: str = field(default="", kw_only=True, validator=fields.string)
    media: tuple[Media, ...] = _media
    agent: str = field(default="", kw_only=True, validator=fields.string)
    time: str = field(default="", kw_only=True, validator=fields.string)
    duration: float | None = field(default=None, kw_only=True, validator=_seconds)
    metadata: FrozenMap = _metadata


@guided_class
@frozen(repr=False)
class State(Shown):
    """
    The state of the environment at this place of the run, by name: `State({"balance": 20})`.

    The first one of a run is the state before it, the last one the state after it. One may name a part of the values;
    the others are as they were.
    """

    values: FrozenMap = field(converter=fields.frozen, validator=fields.mapping)
    time: str = field(default="", kw_only=True, validator=fields.string)
    metadata: FrozenMap = _metadata


def _is_run(_: Any, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, Run):
        raise refuse(attribute.name, value, "a Run")


@guided_class
@frozen(repr=False)
class SubRun(Shown):
    """
    The run of a sub-agent that was started here.

    Args:
        agent: Its name.
        run: What it did.
        task: What it was asked to do.
        result: What it handed back.
    """

    agent: str = field(validator=fields.text)
    run: Run = field(validator=_is_run)
    task: str = field(default="", kw_only=True, validator=fields.string)
    result: str = field(default="", kw_only=True, validator=fields.string)
    metadata: FrozenMap = _metadata


Event = Message | ToolCall | State | SubRun
"""Whatever happens in a run."""


def _as_events(value: Iterable[Event]) -> tuple[Event, ...]:
    return fields.as_tuple("events", value, Event, "a Message, ToolCall, State or SubRun")  # type: ignore[arg-type]


@guided_class
@frozen(repr=False)
class Run(Shown):
    """
    What an agent did, in order.

    Args:
        events: In the order in which they happened.
        agent: The name of the agent.
        model: The name of its model.
        complete: False if the log ends before the run did. Then no rule is kept by what is not there.
        first: The number of its first event; of a part of a longer run, the number that it has there.
        metadata: What else the log has. No judge is shown it.
    """

    events: tuple[Event, ...] = field(default=(), converter=_as_events)
    agent: str = field(default="", kw_only=True, validator=fields.string)
    model: str = field(default="", kw_only=True, validator=fields.string)
    complete: bool = field(default=True, kw_only=True, validator=fields.flag)
    first: int = field(default=1, kw_only=True, validator=fields.count(1))
    metadata: FrozenMap = _metadata

    def steps(self, before: str = "") -> Iterator[tuple[str, Event]]:
        """Yield each event with its step, those of sub-agents after the event that started them."""
        for number, event in enumerate(self.events, self.first):
            step = f"{before}{number}"
            yield step, event
            if type(event) is SubRun:
                yield from event.run.steps(f"{step}.")
