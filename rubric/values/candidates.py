"""Candidates: an answer, a chat or an agent's run to grade, with its context."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, cast

from attrs import Attribute, evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.fields import Shown, refuse
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guided import guided_class
from rubric.internals.text import shorten
from rubric.values.artefacts import artefacts_of
from rubric.values.run_parts import RunPart, answer_of, place_in_run
from rubric.values.runs import Event, Message, Run, State, SubRun, ToolCall, is_address

_NONE = FrozenMap()
_amount = fields.optional(fields.number(0, float("inf")))


@frozen(repr=False)
class RunMetrics(Shown):
    """
    What a run took to answer, as far as that is known; a target's run is measured.

    Args:
        latency: Seconds from the request to the response.
        cost: In US dollars.
        tokens: Sent and received, cached ones included.
        calls: Requests to models.
        perplexity: Of the output, by the model that wrote it.
        finish_reason: Why the model stopped, as the vendor says: `stop`, `length`, `tool_calls`, `content_filter`.
    """

    latency: float | None = field(default=None, kw_only=True, validator=_amount)
    cost: float | None = field(default=None, kw_only=True, validator=_amount)
    tokens: int | None = field(default=None, kw_only=True, validator=_amount)
    calls: int | None = field(default=None, kw_only=True, validator=_amount)
    perplexity: float | None = field(default=None, kw_only=True, validator=_amount)
    finish_reason: str = field(default="", kw_only=True, validator=fields.string)


def as_metrics(value: RunMetrics | Mapping[str, Any]) -> RunMetrics:
    if isinstance(value, RunMetrics):
        return value
    try:
        return RunMetrics(**value)
    except TypeError:
        allowed = "RunMetrics, or a mapping with latency, cost, tokens, calls, perplexity or finish_reason"
        raise refuse("metrics", value, allowed) from None
    except DefinitionError as problem:
        raise DefinitionError(f"metrics.{problem.field}", problem.message) from None


def event_kind(data: Mapping[Any, Any]) -> type[Any]:
    """Return the kind of event that *data* has the fields of."""
    kinds = {"role": Message, "name": ToolCall, "values": State, "run": SubRun}
    return next((kind for key, kind in kinds.items() if key in data), Message)


def _all_of(kinds: Any, field: str, values: Any, allowed: str) -> tuple[Any, ...]:
    """Return *values* as a tuple of *kinds*, with each mapping in it made into one."""
    if type(values) is tuple and not values:
        return values
    if not isinstance(values, str | Mapping) and isinstance(values, Iterable):
        values = [*values]
        for index, value in enumerate(values):
            if isinstance(value, Mapping):
                kind = kinds if isinstance(kinds, type) else event_kind(value)
                try:
                    values[index] = kind(**value)
                except TypeError as problem:
                    raise DefinitionError(f"{field}[{index}]", f"{kind.__name__}: {problem}") from None
    return fields.as_tuple(field, values, kinds, allowed)


def as_calls(value: Iterable[ToolCall | Mapping[str, Any]]) -> tuple[ToolCall, ...]:
    return _all_of(ToolCall, "tool_calls", value, "ToolCall")


def as_messages(value: Iterable[Message | Mapping[str, Any]]) -> tuple[Message, ...]:
    return _all_of(Message, "messages", value, "Message")


def as_events(value: Iterable[Event | Mapping[str, Any]]) -> tuple[Event, ...]:
    """Return the messages of a candidate, among which its calls, states and sub-runs may stand in their order."""
    return _all_of(Event, "messages", value, "Messages, ToolCalls, States or SubRuns")


def as_context(value: Any) -> Any:
    """Return the texts of several documents, also of LangChain's and OpenAI's, as one; any other *value* as it is."""
    if not isinstance(value := value.tolist() if hasattr(value, "tolist") else value, list | tuple):
        return value
    of = ("page_content", "text", "content")  # a message of a chat has a role too
    held = [v if isinstance(v, Mapping) else {key: getattr(v, key, None) for key in (*of, "role")} for v in value]
    found = [[h[key] for key in of if isinstance(h.get(key), str) and not h.get("role")] for h in held]
    texts: list[Any] = [words[0] if words else each for words, each in zip(found, value, strict=True)]
    return "\n\n".join(texts) if all(isinstance(each, str) for each in texts) else value


def as_images(value: Iterable[str]) -> tuple[str, ...]:
    images = fields.as_tuple("images", value, str, "texts")
    for index, image in enumerate(images):
        if not is_address(image):
            found = shorten(repr(image), 60)
            raise DefinitionError(
                f"images[{index}]",
                "expected a data:image/...;base64,... or https://host/... address (in a suite file also file://...), "
                f"got {found}",
            )
    return images


def _as_name(value: str | int) -> str:
    """Return a whole number as a text; columns of frames with gaps hold such numbers as floats."""
    if isinstance(value, str | bool):
        return value  # type: ignore[return-value]  # `_name` refuses all but texts
    given: Any = value
    is_whole = hasattr(given, "__index__") or (isinstance(given, float) and given.is_integer())
    return str(int(given)) if is_whole else cast("str", given)


def _name(_: Any, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise refuse(attribute.name, value, "a text or a whole number")


def as_files(value: Mapping[str, Any]) -> FrozenMap:
    if value is _NONE:
        return _NONE
    files = fields.as_map("files", value)
    for name, content in files.items():
        if not isinstance(content, str):
            raise refuse(f"files[{name!r}]", content, "the text of the file; files_in(folder) reads a folder")
    return files


@guided_class
@frozen(repr=False, init=False)
class Candidate(Shown):
    """
    The answer, chat or run to grade. Where there is only an output, a plain text will do.

    What an agent did has one order: `Candidate(run=Run([Message("user", "..."), ToolCall("refund"), ...]))`. Messages
    and tool calls are views of that.

    Args:
        output: The text that is graded; without it, the last text of the assistant in the run. Of a run without such an
            answer, only rules over it, functions and views of it (`on="tools"`) are judged. An empty text is an answer.
        input: The question or task that it answers; by default what the user said last.
        reference: A reference answer, for the judge to compare with.
        messages: In place of *run*: the conversation before the input and the output, among which calls may stand in
            their order. An answer at its end that is the output itself is not counted twice; its reference becomes that
            of the output. As an attribute: the messages before the output, without the input if that is the last one.
        tool_calls: In place of *run*: the calls for the output, in order; they stand after all messages. As an
            attribute: all calls of the run, those of sub-agents included.
        run: All that happened, in order, with the output.
        file_changes: The changes of the run to files, as a unified diff.
        files: The texts of the files that the run made, by their paths, such as `files_in(folder)`. Judges see the
            paths; a rubric with `max_steps` lets them read.
        context: Material on which the answer should rest: a text, or the texts of several documents.
        variables: Named texts for custom prompts.
        images: `data:image/...` or `https://...` addresses, attached for judges that see.
        metrics: What the run took: latency, cost, tokens. No judge sees it.
        key: Its name in the data set, such as the id of its row. Results carry it, and labels and other runs are
            matched by it. Candidates of one key are one group. No judge sees it.
        group: The name of the candidates that belong together, such as the answers to one prompt. Results carry it, and
            intervals treat a group as one draw. No judge sees it.
        remarks: What its reader left out, such as the pictures of a chat. Results have it among their warnings.

    Raises:
        DefinitionError: There is neither an output nor a run; or messages or tool calls are given beside a run.
    """

    output: str = field(validator=fields.string)
    input: str = field(default="", kw_only=True, validator=fields.string)
    reference: str = field(default="", kw_only=True, validator=fields.string)
    part: RunPart | None = field(default=None, kw_only=True, alias="run")
    file_changes: str = field(default="", kw_only=True, validator=fields.string)
    files: FrozenMap = field(default=_NONE, kw_only=True, converter=as_files)
    context: str = field(default="", kw_only=True, converter=as_context, validator=fields.string)
    variables: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)
    images: tuple[str, ...] = field(default=(), kw_only=True, converter=as_images)
    metrics: RunMetrics = field(default=RunMetrics(), kw_only=True, converter=as_metrics)
    key: str = field(default="", kw_only=True, converter=_as_name, validator=_name)
    group: str = field(default="", kw_only=True, converter=_as_name, validator=_name)
    remarks: tuple[str, ...] = field(default=(), kw_only=True, eq=False, repr=False, converter=tuple)

    def __init__(
        self,
        output: str | None = None,
        *,
        input: str = "",
        reference: str = "",
        messages: Iterable[Event | Mapping[str, Any]] | None = None,
        tool_calls: Iterable[ToolCall | Mapping[str, Any]] | None = None,
        run: Run | RunPart | None = None,
        file_changes: str = "",
        files: Mapping[str, Any] = _NONE,
        context: str | Sequence[Any] = "",
        variables: Mapping[str, Any] = FrozenMap(),
        images: Iterable[str] = (),
        metrics: RunMetrics | Mapping[str, Any] = RunMetrics(),
        key: str | int = "",
        group: str | int = "",
        remarks: Iterable[str] = (),
    ) -> None:
        is_text = isinstance(input, str) and (output is None or isinstance(output, str))
        if is_text and (run is not None or messages is not None or tool_calls is not None or output is None):
            said = None if messages is None else as_events(messages)
            called = None if tool_calls is None else as_calls(tool_calls)
            if output is None and isinstance(run, Run) and (found := answer_of(run))[0] is not None:
                cut = "" if run.complete else "the log ends before the run did, so the answer may lack its end"
                remarks = dict.fromkeys((*remarks, *filter(None, (found[1], cut))))
            output, input, reference, run = place_in_run(output, input, reference, run, messages=said, calls=called)
        made_by_attrs: Any = self.__attrs_init__  # pyright: ignore[reportAttributeAccessIssue]
        made_by_attrs(  # not by a mapping of them: each grade makes a candidate
            output,
            input=input,
            reference=reference,
            run=run,
            file_changes=file_changes,
            files=files,
            context=context,
            variables=variables,
            images=images,
            metrics=metrics,
            key=key,
            group=group,
            remarks=remarks,
        )

    @property
    def run(self) -> Run:
        """All that happened, in order, with the input and the output at their places."""
        if self.part is not None:
            return self.part.run if self.part.end is None else evolve(self.part.run, events=self.part.events)
        asked = [Message("user", self.input)] if self.input else []
        said = [Message("assistant", self.output, reference=self.reference)] if self.output else []
        return Run([*asked, *said])

    @property
    def before(self) -> tuple[Event, ...]:
        """All that happened before the output."""
        answered = self.part.answered if self.part else int(bool(self.input)) if self.output else None
        return self.part.events[:answered] if self.part else self.run.events[:answered]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages before the output, without the input if that is the last of them."""
        return self.part.messages if self.part else ()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the run in order, those of sub-agents after the event that started them."""
        return self.part.tool_calls if self.part else ()

    def given(self) -> dict[str, Any]:
        """Return the arguments that make this candidate: with lists of messages and calls where they say it all."""
        found = {f.alias or f.name: getattr(self, f.name) for f in fields.shown_fields(self)}
        if "run" not in found or self.part is None:  # the first holds too where its making failed
            return found
        del found["run"]
        if self.part.lacks_answer:
            return {name: value for name, value in found.items() if name != "output"} | {"run": self.part.run}
        lists: dict[str, Any] = {"messages": self.messages, "tool_calls": self.tool_calls}
        lists = {name: value for name, value in lists.items() if value}
        try:
            is_whole = Candidate(**found, **lists).part == self.part
        except DefinitionError:
            is_whole = False
        return {**found, **lists} if is_whole else {**found, "run": self.part.run}

    def __repr__(self) -> str:
        given = self.given()
        output = [repr(given.pop("output"))] if "output" in given else []
        named = [f"{name}={fields.thaw_plain(value)!r}" for name, value in given.items()]
        return f"Candidate({', '.join([*output, *named])})"

    @property
    def unanswered(self) -> str:
        """Why the run has no answer, so that nothing that reads one is judged; '' if it has one, or there is no run."""
        lacks = self.part is not None and self.part.lacks_answer and self.part.chosen is None
        return f"has no answer: {answer_of(self.run)[1]}" if lacks else ""

    @property
    def degenerate(self) -> str:
        """Why the candidate has no content, such as `is empty`; '' if it has some, or is a run without an answer."""
        done = self.part.events[self.part.since :] if self.part else ()
        has_done = any(not isinstance(each, Message) or each.media for each in done)
        if has_done or self.file_changes or self.images or self.unanswered:
            return ""
        output = self.output
        start = output[:_START].encode("utf-8", "ignore")
        if len(start.translate(None, _NO_LETTERS)) >= _LONGEST_OPENER:  # as in most candidates; nothing is folded
            return ""
        words = _letters(output)
        if words:
            return "is an opener without content (a master key)" if words in _master_keys() else ""
        seen = [c for c in output if c not in _BLANKS]
        if any(_is_symbol(c) for c in seen):  # emoji and + can be an answer, punctuation cannot
            return ""
        if any(unicodedata.category(c)[0] in "PS" for c in seen):
            return "has only punctuation"
        answered = any(message.role == "assistant" and message.content.strip() for message in self.messages)
        is_cut = self.part is not None and not self.part.run.complete
        return UNANSWERED if answered or is_cut else "is empty"

    @property
    def artefacts(self) -> dict[str, str]:
        """All that a judge with tools may read, by name: files, the diff, and long results of tools."""
        results = {
            f"tool_result_{number}_{call.name}.txt": call.result
            for number, call in enumerate(self.tool_calls, 1)
            if isinstance(call.result, str) and call.result
        }
        return artefacts_of(self.files, self.file_changes, results)

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


_SAID = re.compile(r'"role"\s*:\s*"(?:user|assistant|system|tool|model|developer|human|ai)"')
_HELD = re.compile(r'"(?:content|parts|tool_calls)"\s*:')
"""What a message has in JSON, also of a log that is cut off: who speaks, and what is said or called."""


def is_log(text: str) -> bool:
    """True if *text* begins as JSON does and has messages by their roles: it is the log of a run, and no answer."""
    return text[:_START].lstrip()[:1] in ("[", "{") and bool(_SAID.search(text) and _HELD.search(text))


def of_text(field: str, text: str) -> Candidate:
    """Return *text*, given as *field*, as a candidate; the path of a file is refused, not graded as text."""
    # Checked here, since the text is in the message twice, and may have megabytes.
    if fields.names_a_file(text):
        cure = f"give Path({text!r}) to have the file read, or Candidate({text!r}) to grade these words"
        fields.refuse_path(field, text, cure)
    return Candidate(text)


# -- candidates without content --------------------------------------------------------------------------
# Some should reach no judge: empty ones, and "master keys" that make judges say yes (arXiv 2507.08794).

_LONGEST_OPENER = 100
"""Letters; a text with more of them has content."""

_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"
"""Invisible characters that Unicode has as letters or symbols."""


UNANSWERED = "is a conversation without a last answer"
"""Its earlier answers have content, or its log ends before the run did: it is never a fail without a judge."""


_START = 400
_NO_LETTERS = bytes(code for code in range(256) if code > 127 or not chr(code).isalnum())  # noqa: PLR2004 - ASCII


def _letters(text: str) -> str:
    """Return the first letters and digits of *text*: no case, accents, spaces, punctuation or invisible characters."""
    found = ""
    for part in (text[:_START], text):  # a long text nearly always has enough letters in its first part
        plain = unicodedata.normalize("NFKD", part).casefold()
        found = "".join(islice((c for c in plain if c.isalnum() and c not in _BLANKS), _LONGEST_OPENER))
        if len(found) == _LONGEST_OPENER:
            break
    return found


@cache
def _master_keys() -> frozenset[str]:
    """Return the openers in `openers.txt`, reduced by `_letters`."""
    from importlib.resources import files  # noqa: PLC0415 - building a candidate needs none

    lines = files("rubric.values").joinpath("openers.txt").read_text("utf-8").splitlines()
    return frozenset(_letters(line) for line in lines if line and not line.startswith("#"))


def _is_symbol(char: str) -> bool:
    """True for symbols and emoji; these by code point too, since this Python may be older than an emoji."""
    drawn = unicodedata.category(char) in ("So", "Sm", "Sc") or "\U0001f000" <= char <= "\U0001faff"
    return drawn and char not in "|~"
