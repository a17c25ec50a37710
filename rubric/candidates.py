"""What is graded: an answer, a chat or an agent's run, with what belongs to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.mappings import FrozenMap
from rubric.showing import Shown
from rubric.validating import as_tuple, string, text

__all__ = ["Candidate", "Message", "ToolCall"]


def _as_value(value: Any) -> Any:
    return FrozenMap({"value": value})["value"]


@frozen(repr=False)
class ToolCall(Shown):
    """One call of a tool in the candidate's run: its *name*, *arguments* and *result*."""

    _positional = ("name",)

    name: str = field(validator=text)
    arguments: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=FrozenMap)
    result: Any = field(default=None, kw_only=True, converter=_as_value)


@frozen(repr=False)
class Message(Shown):
    """One message of a chat that belongs to the candidate."""

    _positional = ("role", "content")

    role: str = field(validator=text)
    content: str = field(validator=string)


def _as_calls(value: Iterable[ToolCall | Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    calls = (ToolCall(**v) if isinstance(v, Mapping) else v for v in value) if not isinstance(value, str) else value
    return as_tuple("tool_calls", calls, ToolCall, "ToolCall")


def _as_messages(value: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    messages = (Message(**v) if isinstance(v, Mapping) else v for v in value) if not isinstance(value, str) else value
    return as_tuple("messages", messages, Message, "Message")


def _as_images(value: Iterable[str]) -> tuple[str, ...]:
    images = as_tuple("images", value, str, "texts")
    for index, image in enumerate(images):
        if not image.startswith(("data:image/", "https://")):
            raise DefinitionError(f"images[{index}]", "expected a data:image/... or https://... address")
    return images


@frozen(repr=False)
class Candidate(Shown):
    """
    What is graded. A plain text does where there is nothing but the output.

    Args:
        output: The text that is graded.
        input: What it answers: the question, the task.
        reference: A reference answer, for the judge to compare with.
        messages: The conversation before the output.
        tool_calls: The tools that the run called, in order.
        file_changes: What the run changed in files, as a unified diff.
        context: Material that the answer should rest on.
        variables: Named texts for custom prompts.
        images: `data:image/...` or `https://...` addresses, attached for judges that see.
    """

    _positional = ("output",)

    output: str = field(validator=string)
    input: str = field(default="", kw_only=True, validator=string)
    reference: str = field(default="", kw_only=True, validator=string)
    messages: tuple[Message, ...] = field(default=(), kw_only=True, converter=_as_messages)
    tool_calls: tuple[ToolCall, ...] = field(default=(), kw_only=True, converter=_as_calls)
    file_changes: str = field(default="", kw_only=True, validator=string)
    context: str = field(default="", kw_only=True, validator=string)
    variables: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=FrozenMap)
    images: tuple[str, ...] = field(default=(), kw_only=True, converter=_as_images)

    @classmethod
    def of(cls, value: Candidate | str, /) -> Candidate:
        """Return *value* as a candidate; a text is its output."""
        if isinstance(value, cls | str):
            return value if isinstance(value, cls) else cls(value)
        raise DefinitionError("candidate", f"expected a text or a Candidate, got {type(value).__name__}")
