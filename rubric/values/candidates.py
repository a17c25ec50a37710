"""Candidates: an answer, a chat or an agent's run to grade, with its context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import Shown, as_map, as_tuple, names_a_file, refuse, refuse_path, string, text
from rubric.internals.frozen_map import FrozenMap, freeze
from rubric.internals.guided import GuidedType, guided_class

T = TypeVar("T")


def as_arguments(value: Mapping[str, Any]) -> FrozenMap:
    return as_map("arguments", value)


@frozen(repr=False)
class ToolCall(Shown):
    """One call of a tool in the candidate's run: its *name*, *arguments* and *result*."""

    name: str = field(validator=text)
    arguments: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=as_arguments)
    result: Any = field(default=None, kw_only=True, converter=freeze)


@frozen(repr=False)
class Message(Shown):
    """One message of a chat that belongs to the candidate."""

    role: str = field(validator=text)
    content: str = field(validator=string)


def _all_of(kind: type[T], field: str, values: Any) -> tuple[T, ...]:
    """Return *values* as a tuple of *kind*, with each mapping in it made into one."""
    if type(values) is tuple and not values:
        return values
    if not isinstance(values, str | Mapping) and isinstance(values, Iterable):
        values = [*values]
        for index, value in enumerate(values):
            try:
                values[index] = kind(**value) if isinstance(value, Mapping) else value
            except TypeError as problem:
                raise DefinitionError(f"{field}[{index}]", f"{kind.__name__}: {problem}") from None
    return as_tuple(field, values, kind, kind.__name__)


def as_calls(value: Iterable[ToolCall | Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    return _all_of(ToolCall, "tool_calls", value)


def as_messages(value: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    return _all_of(Message, "messages", value)


def _as_images(value: Iterable[str]) -> tuple[str, ...]:
    images = as_tuple("images", value, str, "texts")
    for index, image in enumerate(images):
        if not image.startswith(("data:image/", "https://")):
            raise DefinitionError(f"images[{index}]", "expected a data:image/... or https://... address")
    return images


def _as_name(field: str, value: Any) -> str:
    """Return *value*, a text or a whole number, as a text; columns of frames with gaps hold such numbers as floats."""
    if isinstance(value, str):
        return value
    whole = getattr(value, "__index__", None)
    if whole is None and isinstance(value, float) and value.is_integer():
        whole = value.__int__
    if whole is None or isinstance(value, bool):
        raise refuse(field, value, "a text or a whole number")
    return str(whole())


def _as_key(value: str | int) -> str:
    return _as_name("key", value)


def _as_group(value: str | int) -> str:
    return _as_name("group", value)


def _as_variables(value: Mapping[str, Any]) -> FrozenMap:
    return as_map("variables", value)


@guided_class
@frozen(repr=False)
class Candidate(Shown, metaclass=GuidedType):
    """
    The answer, chat or run to grade. Where there is only an output, a plain text will do.

    Args:
        output: The text that is graded.
        input: The question or task that it answers.
        reference: A reference answer, for the judge to compare with.
        messages: The conversation before the output.
        tool_calls: The tools that the run called, in order.
        file_changes: The changes of the run to files, as a unified diff.
        context: Material on which the answer should rest.
        variables: Named texts for custom prompts.
        images: `data:image/...` or `https://...` addresses, attached for judges that see.
        key: Its name in the data set, such as the id of its row. Results carry it, and labels and other runs are
            matched by it. Candidates of one key are one group. No judge sees it.
        group: The name of the candidates that belong together, such as the answers to one prompt. Results carry it, and
            intervals treat a group as one draw. No judge sees it.
    """

    output: str = field(validator=string)
    input: str = field(default="", kw_only=True, validator=string)
    reference: str = field(default="", kw_only=True, validator=string)
    messages: tuple[Message, ...] = field(default=(), kw_only=True, converter=as_messages)
    tool_calls: tuple[ToolCall, ...] = field(default=(), kw_only=True, converter=as_calls)
    file_changes: str = field(default="", kw_only=True, validator=string)
    context: str = field(default="", kw_only=True, validator=string)
    variables: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=_as_variables)
    images: tuple[str, ...] = field(default=(), kw_only=True, converter=_as_images)
    key: str = field(default="", kw_only=True, converter=_as_key)
    group: str = field(default="", kw_only=True, converter=_as_group)

    def __contains__(self, text: object) -> bool:
        """True if *text* occurs in the output, so that a check may be `lambda candidate: "ticket" in candidate`."""
        return isinstance(text, str) and text in self.output

    @classmethod
    def of(cls, value: Candidate | str, /) -> Candidate:
        """Return *value* as a candidate; a text is its output."""
        if isinstance(value, Candidate):
            return value
        if isinstance(value, str):
            return cls(value)
        raise DefinitionError("candidate", f"expected a text or a Candidate, got {type(value).__name__}")


def of_text(field: str, text: str) -> Candidate:
    """Return *text*, given as *field*, as a candidate; the path of a file is refused, not graded as text."""
    # Checked here, since the text is in the message twice, and may have megabytes.
    if names_a_file(text):
        cure = f"give Path({text!r}) to have the file read, or Candidate({text!r}) to grade these words"
        refuse_path(field, text, cure)
    return Candidate(text)
