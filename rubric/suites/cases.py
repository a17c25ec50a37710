"""
A case: one row of a suite, with a candidate (or the input that a target answers) and a rubric.

In a matrix, a case is copied for each cell, that is for each combination of judges and prompts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from itertools import product
from typing import Any

from attrs import Attribute, converters, evolve, field, frozen

from rubric import Candidate, DefinitionError, Judge, Message, Rubric, Run, ToolCall
from rubric.embed import FrozenMap, fields, guided
from rubric.suites.providers import Provider
from rubric.suites.slots import check_slots, fill_slots
from rubric.values import AnyJudge, Event, Place, RunMetrics, as_judge, candidates, rubric_of

answering: ContextVar[bool] = ContextVar("answering", default=False)
"""True while a function answers as a target: a case in its text was meant as what the case asks."""


def _as_providers(value: Iterable[Provider]) -> tuple[Provider, ...]:
    return fields.as_tuple("providers", value, Provider, "providers")


def _as_judges(value: Mapping[str, Any]) -> FrozenMap:
    return FrozenMap({name: as_judge(judge) for name, judge in fields.as_map("judges", value).items()})


@frozen(repr=False)
class Turn(fields.Shown):
    """What the user says in one turn of a conversation, and a reference for the answer to it."""

    _positional = ("input",)

    input: str = field(validator=fields.text)
    reference: str = field(default="", kw_only=True, validator=fields.string)


def _as_turns(value: Iterable[str | Turn | Mapping[str, Any]]) -> tuple[Turn, ...]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise fields.refuse("turns", value, "a list of what the user says, or of mappings with input and reference")
    turns = []
    for index, turn in enumerate(value):
        try:
            turns.append(Turn(**turn) if isinstance(turn, Mapping) else turn if isinstance(turn, Turn) else Turn(turn))
        except TypeError:
            raise fields.refuse(f"turns[{index}]", turn, "a text, or a mapping with input and reference") from None
        except DefinitionError as problem:
            at = f".{problem.field}" if isinstance(turn, Mapping) else ""
            raise DefinitionError(f"turns[{index}]{at}", problem.message) from None
    return tuple(turns)


def _names_a_case(case: object, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, Rubric):
        raise DefinitionError("id", "expected a text, got a Rubric; the id is first: Case('refund', rubric)")
    fields.identifier(case, attribute, value)


@frozen
class History:
    """
    The place of a case in a conversation of several.

    Args:
        conversation: What the cases of one conversation have in common, and no others of the suite. Runs, and cells of
            a matrix, are conversations of their own.
        turn: The number of the case in it, from 1.
        shown: Makes the case of those before it; None where its input does not show them.
    """

    conversation: str
    turn: int
    shown: Callable[[Case, Sequence[Case]], Case] | None = field(default=None, eq=False, repr=False)


_OF_BOTH: tuple[str, ...] = (
    "input", "reference", "messages", "tool_calls", "run", "file_changes", "files", "metrics", "context", "variables",
    "images",
)  # fmt: skip
"""The fields of a case that its candidate has too."""


@guided
@frozen(repr=False)
class Case(fields.Shown):
    """
    One row of a suite.

    Args:
        id: Unique in its suite. The candidate has it as its key, so labels and other runs are matched by it.
        rubric: Grades the candidate; a text is a free-form rubric.
        input: The prompt of the candidate; a live target is sent this, or *messages*.
        output: A fixed response. None: the answer that *run* ends with, or else a live target makes the candidate.
        reference: A reference answer, for the judge.
        messages: The conversation before the output; a live target continues it.
        tool_calls: Of a fixed response.
        run: Of a fixed response, in place of messages and tool calls: all that happened, in order.
        file_changes: Of a fixed response, as a unified diff.
        files: Of a fixed response: the texts of the files that the run made, by their paths.
        metrics: Of a fixed response: what the run took. A target's run is measured.
        context: Material that the answer should be based on: a text, or the texts of several documents.
        variables: Named texts for prompts.
        images: Of the task: `data:image/...` or `https://...` addresses. A live target that is a model is sent them
            with the last message of the user; judges see them.
        judge: Of this case, in place of the suite's.
        judges: Of single criteria, by id, in place of *judge*.
        server: The name of the MCP server that an agent works with.
        turns: What the user says, turn by turn, after *messages*; a live target answers each turn, and the conversation
            is the candidate. In place of *input*. A mapping with `input` and `reference` adds a reference answer for
            the judges of this turn. The last turn's is that of the case.
        runs: How many candidates a live target makes, each graded as a case of its own.
        providers: The models and addresses that the file names to answer it; only `target="providers"` asks them.
        history: Its place in a conversation of several cases, where its input shows the responses of those before.
        needs: The fields that its candidate must have, such as `reference`; without them no judge is asked.
        unasked: Why a file gives it no input, for the row that a live target then defers.
        cell: The coordinates in a matrix, such as `{"model": ..., "prompt": ...}`.
        tags: Free labels.
        metadata: Free data of the caller's; the judge never sees it.
        place: The place in a file where it was written, for reports.
        columns: Where promptfoo's results have its outputs: pairs of `testIdx` and `promptIdx`.
    """

    _positional = ("id", "rubric")

    id: str = field(validator=_names_a_case)
    rubric: Rubric = field(converter=rubric_of)
    input: str = field(default="", kw_only=True, validator=fields.string)
    output: str | None = field(default=None, kw_only=True, validator=fields.optional(fields.string))
    reference: str = field(default="", kw_only=True, validator=fields.string)
    messages: tuple[Message, ...] = field(default=(), kw_only=True, converter=candidates.as_messages)
    tool_calls: tuple[ToolCall, ...] = field(default=(), kw_only=True, converter=candidates.as_calls)
    run: Run | None = field(default=None, kw_only=True)
    file_changes: str = field(default="", kw_only=True, validator=fields.string)
    files: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=candidates.as_files)
    metrics: RunMetrics = field(default=RunMetrics(), kw_only=True, converter=candidates.as_metrics)
    context: str = field(default="", kw_only=True, converter=candidates.as_context, validator=fields.string)
    variables: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=fields.frozen, validator=fields.mapping)
    images: tuple[str, ...] = field(default=(), kw_only=True, converter=candidates.as_images)
    judge: AnyJudge | None = field(default=None, kw_only=True, converter=converters.optional(as_judge))
    judges: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_judges)
    server: str = field(default="", kw_only=True, validator=fields.string)
    turns: tuple[Turn, ...] = field(default=(), kw_only=True, converter=_as_turns)
    runs: int = field(default=1, kw_only=True, validator=fields.count(1))
    cell: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=fields.frozen, validator=fields.mapping)
    tags: tuple[str, ...] = field(default=(), kw_only=True, converter=fields.listed, validator=fields.texts)
    metadata: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=fields.frozen, validator=fields.mapping)
    needs: tuple[str, ...] = field(default=(), kw_only=True, converter=fields.listed, validator=fields.texts)
    place: Place | None = field(default=None, kw_only=True, eq=False, repr=False)
    columns: tuple[tuple[int, int], ...] = field(default=(), kw_only=True, eq=False, repr=False)
    providers: tuple[Provider, ...] = field(default=(), kw_only=True, converter=_as_providers, eq=False, repr=False)
    history: History | None = field(default=None, kw_only=True, eq=False, repr=False)
    unasked: str = field(default="", kw_only=True, validator=fields.string, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self.rubric.check_weights()
        if self.run is not None and self.output is None and not (made := Candidate(run=self.run)).unanswered:
            object.__setattr__(self, "output", made.output)  # as at any door for a run
        for name in self.needs:
            fields.check_name("needs", name, _OF_BOTH)
        for name, judge in self.judges.items():
            if name not in self.rubric:
                raise DefinitionError("judges", f"no criterion {name!r} in the rubric of the case {self.id!r}")
            if not isinstance(judge, Judge):
                raise DefinitionError("judges", f"expected one judge for {name!r}, got {type(judge).__name__}")
        if self.turns and (self.input or self.output is not None):
            other = "input" if self.input else "output"
            message = f"turns are answered one by one, so {other} has no place beside them; write it into messages"
            raise DefinitionError("turns", message)
        if self.reference and self.turns and self.turns[-1].reference:
            message = "the reference of the last turn is that of the case too, which has another; keep one of them"
            raise DefinitionError("reference", message)
        # Raises what the candidate would raise, at the place of the case.
        _ = self.conversing([""] * len(self.turns)) if self.turns else self.responding(self.output or "")

    def responding(self, output: str, **changes: Any) -> Candidate:
        """Return the candidate with *output* for this case, and its id as key; *changes* replace the case's."""
        return Candidate(output, **{"key": self.id, **{name: getattr(self, name) for name in _OF_BOTH}, **changes})

    def exchanged(self, answers: Sequence[str], calls: Sequence[Sequence[ToolCall]] = ()) -> tuple[Event, ...]:
        """Return the messages of the case, and its turns with their *answers* and *calls* as far as there are any."""
        said: list[Event] = [*self.messages]
        for number, (turn, answer) in enumerate(zip(self.turns, answers, strict=False)):
            called = calls[number] if number < len(calls) else ()
            said += [Message("user", turn.input), *called, Message("assistant", answer, reference=turn.reference)]
        return tuple(said)

    def conversing(self, answers: Sequence[str], calls: Sequence[Sequence[ToolCall]] = ()) -> Candidate:
        """Return the candidate of a conversation: *answers*, and *calls* for each of them, one a turn."""
        last, before = self.turns[-1], self.exchanged(answers[:-1], calls)
        known: dict[str, Any] = {"input": last.input, "messages": before, "reference": last.reference or self.reference}
        if any(calls):
            known["tool_calls"] = calls[-1]
        return self.responding(answers[-1], **known)

    def lacks(self, candidate: Candidate) -> str:
        """Return why *candidate* is not judged: it has not all that the case needs; '' if it has."""
        lacking = [f"no {name}" for name in self.needs if not getattr(candidate, name)]
        return f"it has {' and '.join(lacking)}, which its rubric needs" if lacking else ""

    @property
    def candidate(self) -> Candidate | None:
        """The fixed candidate; None if a live target makes it."""
        return None if self.output is None else self.responding(self.output)

    def answered(self, output: str) -> Case:
        """Return the case with *output* as its fixed response."""
        return evolve(self, output=output)

    def __format__(self, form: str) -> str:
        if answering.get():
            said = "a target gets the whole case, with its rubric; what it is asked is case.input"
            warnings.warn(f"f'{{case}}' has all its fields: {said}", stacklevel=2)
        return super().__format__(form)


def cells(case: Case, judges: Sequence[tuple[str, AnyJudge]] = (), prompts: Sequence[str] = ()) -> Iterator[Case]:
    """Yield *case* once for each cell: each named judge with each input of *prompts*. An axis may be empty."""
    judge_axis: list[tuple[str, AnyJudge] | None] = [*judges] or [None]
    texts = {**({"input": case.input} if case.input else {}), **case.variables}
    for n, prompt in enumerate(prompts):
        said = "braces of the text itself come from a variable"
        check_slots(prompt, texts, f"prompts[{n}]", lambda _, meant: repr(meant), said)
    prompt_axis = [*enumerate(prompts, 1)] or [(0, "")]
    for judge, (number, prompt) in product(judge_axis, prompt_axis):
        label: list[str] = []
        changes: dict[str, Any] = {"cell": case.cell}
        if judge:
            label.append(judge[0])
            changes |= {"judge": judge[1], "cell": {**case.cell, "model": judge[0]}}
        if number:  # 0: there is no such axis
            label.append(f"prompt {number}")
            cell = {**changes["cell"], "prompt": prompt}
            changes |= {"input": fill_slots(prompt, texts), "history": None, "cell": cell}
        yield evolve(case, id=f"{case.id} [{', '.join(label)}]", **changes)
