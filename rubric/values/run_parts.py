"""
Which part of a run a candidate is: where its input and its output stand among the events.

A candidate is made of a run, or of lists: its messages, then the input, its tool calls, and the output. `attrs.evolve`
gives a candidate its own part back, with what changes: so another output takes the place of the old one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile
from typing import TypeGuard

from attrs import evolve, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import refuse
from rubric.internals.text import shorten
from rubric.values.runs import Event, Message, Run, State, ToolCall


@frozen
class RunPart:
    """
    The part of a run that a candidate is.

    Args:
        asked: The index of the event that is the input; None if nobody asked it in the run.
        answered: The index of the event that is the output; None if the run has no answer.
        since: The index of the event with which the turn of the output begins.
        end: The index of the first event that is not shown, since it came later; None if there is none.
        chosen: The steps that the output is made of, where it is not an event; None if it is one.
        before: The step of the sub-agent whose run it is, with a full stop.
        is_window: Whether only the beginning and the last steps are shown of a long run.
        lacks_answer: Whether the run was given alone and has no answer; else an empty output is one.
    """

    run: Run
    asked: int | None
    answered: int | None
    since: int = 0
    end: int | None = None
    chosen: frozenset[str] | None = None
    before: str = ""
    is_window: bool = False
    lacks_answer: bool = False

    @property
    def events(self) -> tuple[Event, ...]:
        """What is shown of the run."""
        return self.run.events[: self.end]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages before the output, without the input if that is the last of them."""
        said = [n for n, each in enumerate(self.events[: self.answered]) if isinstance(each, Message)]
        if said and said[-1] == self.asked:
            said.pop()
        return tuple(each for n in said if isinstance(each := self.run.events[n], Message))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of this turn in order, those of sub-agents after the event that started them."""
        run = evolve(self.run, events=self.events[self.since :])
        return tuple(each for _, each in run.steps() if isinstance(each, ToolCall))

    def text_at(self, place: int | None) -> str:
        """Return what the message at *place* says."""
        event = None if place is None else self.run.events[place]
        return event.content if isinstance(event, Message) else ""

    def says(self, output: str | None, asked: str, reference: str) -> bool:
        """True if these texts are those of the run."""
        answer = None if self.answered is None else self.run.events[self.answered]
        said = (answer.content, answer.reference) if isinstance(answer, Message) else (output, reference)
        is_said = self.answered is not None or not output
        is_same = said == (output, reference) and (self.asked is None or asked == self.text_at(self.asked))
        return self.chosen is not None or (is_said and is_same)

    def last_message(self, role: str, end: int | None = None) -> int | None:
        """Return the index of the last message of *role* before *end*."""
        events = self.run.events[:end]
        return next((n for n in reversed(range(len(events))) if _is_of(events[n], role)), None)


def _is_of(event: Event, role: str) -> TypeGuard[Message]:
    return isinstance(event, Message) and event.role == role


def _lone_question(messages: Sequence[Event] | None, asked: str) -> str | None:
    """Return the question where *messages* hold no more than that; None where they hold more."""
    if not messages:
        return asked
    question = asked or getattr(messages[0], "content", "")
    return question if len(messages) == 1 and question and messages[0] == Message("user", question) else None


def is_done(event: Event) -> bool:
    """True if the agent said or did *event*."""
    return event.role in ("assistant", "refusal") if isinstance(event, Message) else not isinstance(event, State)


def answer_of(run: Run) -> tuple[int | None, str]:
    """
    Return the index of the answer of *run*, and a remark if something follows it; None, and why, if it has none.

    The answer is the last text of the assistant. It is none if a call after it did not come back, or if the agent went
    on after somebody else's message: "Let me look." or an answer to an earlier question never stands in for one.
    """
    kept = [(n, each) for n, each in enumerate(run.events) if not isinstance(each, State)]
    at = next((n for n, each in reversed(kept) if _is_of(each, "assistant") and each.content.strip()), None)
    after = [each for n, each in kept if at is None or n > at]
    number, last = kept[-1] if kept else (0, Message("nobody", ""))
    end = f"{last.role}: {last.content.strip() or '(no text)'}" if isinstance(last, Message) else "a sub-agent"
    end = f"[{run.first + number}] {shorten(f'call {last.name}' if isinstance(last, ToolCall) else end, 60)}"
    is_open = any((c.result, c.error, c.media) == (None, "", ()) for c in after if isinstance(c, ToolCall))
    is_open = is_open or any(_is_of(each, "tool") for each in after)  # a result whose call is not there
    if at is None or is_open or any(map(is_done, dropwhile(is_done, after))):
        is_act = any(not isinstance(each, Message) or each.media for _, each in kept)
        cure = 'Candidate("", run=run), or a row {"output": "", "messages": [...]}, is graded without one'
        cure = cure if is_act else 'Rubric(..., degenerate="judge") has a judge read all that has no content, this too'
        return None, f"the run ends without an answer of the assistant, with {end}; {cure}"
    cure = 'Candidate("the text", run=run), or a row {"output": "the text", "messages": [...]}, has another text graded'
    if not all(_is_of(each, "refusal") for each in after):
        return at, f"the run ends with {end}; the last text of the assistant is graded, step {run.first + at}; {cure}"
    is_second = any(_is_of(m, "assistant") and m.content.strip() for m in [each for n, each in kept if n < at][-1:])
    said = f"the assistant ends with two messages in a row, and the last is graded, step {run.first + at}; {cure}"
    return at, said if is_second else ""


def place_in_run(
    output: str | None,
    asked: str,
    reference: str,
    run: Run | RunPart | None,
    *,
    messages: Sequence[Event] | None,
    calls: Sequence[ToolCall] | None,
) -> tuple[str, str, str, RunPart | None]:
    """Return the output, the input and the reference of a candidate, and its part of a run; None for a mere answer."""
    if isinstance(run, RunPart) and messages is None and calls is None and run.says(output, asked, reference):
        return str(output), asked, reference, run
    if run is None and not calls and output is not None:  # as in most cases of suites
        lone = _lone_question(messages, asked)
        if lone is not None:
            return output, lone, reference, None
    part = _part(output, asked, run, messages, calls)
    part = evolve(part, lacks_answer=True) if isinstance(run, RunPart) and run.lacks_answer else part
    events, at = [*part.events], part.answered
    before = events[at - 1] if at and isinstance(run, RunPart) and part.text_at(at) != output else None
    if output is None:
        output = part.text_at(at)
        if not output.strip() and not (isinstance(run, Run) and (events or run.metadata)):
            given = messages or isinstance(run, Run)
            raise DefinitionError("output", f"is not there: {answer_of(part.run)[1]}" if given else _MISSING)
        part = evolve(part, lacks_answer=at is None)
    elif at and before is not None and _is_of(before, "assistant") and before.content.strip() == output.strip():
        del events[at]  # the output became what was said just before it
        part = evolve(part, answered=at - 1)
    if part.answered is None and output and part.chosen is None:
        part = evolve(part, answered=len(events), lacks_answer=False)
        events.append(Message("assistant", output))
    if part.answered is not None and isinstance(answer := events[part.answered], Message):
        reference = reference if isinstance(run, RunPart) else reference or answer.reference
        events[part.answered] = evolve(answer, content=output, reference=reference)
    if part.asked is not None and isinstance(question := events[part.asked], Message):
        asked = asked or question.content
        events[part.asked] = evolve(question, content=asked)
    mere = [*([Message("user", asked)] if asked else []), Message("assistant", output, reference=reference)]
    whole = evolve(part.run, events=events)
    is_mere = part.chosen is None and not part.lacks_answer and (part.asked is None) == (not asked)
    is_mere = is_mere and whole == Run(mere if output else mere[:-1])
    return output, asked, reference, None if is_mere else evolve(part, run=whole, end=None)


_MISSING = 'is missing: Candidate("the text to grade"), or Candidate(run=Run([...])) with what the agent said and did'
_ORDER = "give run=Run([...]), with its events in their order"


def _part(
    output: str | None,
    asked: str,
    run: Run | RunPart | None,
    messages: Sequence[Event] | None,
    calls: Sequence[ToolCall] | None,
) -> RunPart:
    if isinstance(run, RunPart):
        return run if messages is None and calls is None else _relist(run, messages, calls, output, asked)
    if run is None:
        return _part_of_lists(messages or (), calls or (), output, asked)
    if not isinstance(run, Run):
        raise refuse("run", run, "a Run")
    if messages or calls:
        raise DefinitionError("messages" if messages else "tool_calls", f"there is a run, which holds them; {_ORDER}")
    return _part_of_run(run, output, asked)


def _part_of_run(run: Run, output: str | None, asked: str) -> RunPart:
    """Return where *output* and the input *asked* stand in *run*; an output that is not there will follow it."""
    part = RunPart(run, None, None)
    answer, remark = answer_of(run)
    answered = part.last_message("assistant") if answer is None else answer
    after = [] if answered is None or answer is not None else run.events[answered + 1 :]
    is_same = output is not None and part.text_at(answered).strip() == output.strip()
    if output is None:
        answered = answer
    elif output and not is_same and answer is not None and not remark:
        words = shorten(repr(part.text_at(answer)), 60)
        raise DefinitionError(
            "output",
            f"the run ends with another answer, {words}: give Candidate(run=run) to grade that one, or this one as its "
            'last event, Candidate(run=Run([*run.events, Message("assistant", output)]))',
        )
    elif not is_same or any(isinstance(each, Message) and each.role != "refusal" for each in after):
        answered = None  # the run is graded without an answer, or with one that follows it
    question = part.last_message("user", answered)
    if asked and question is None:  # it was asked before all but instructions
        first = (n for n, each in enumerate(run.events) if not isinstance(each, State) and not _is_of(each, "system"))
        question = next(first, 0)
        run = evolve(run, events=(*run.events[:question], Message("user", asked), *run.events[question:]))
        answered = None if answered is None else answered + 1
    elif asked and part.text_at(question) != asked:
        question = None
    return RunPart(run, question, answered)


def _part_of_lists(messages: Sequence[Event], calls: Sequence[ToolCall], output: str | None, asked: str) -> RunPart:
    """Return the part of a candidate of lists; an answer at the end of *messages* may be the *output* itself."""
    part = RunPart(Run(messages), None, None)
    answer, question = list[Event](), part.last_message("user")
    # With another question as the input, which follows the messages, the same words are the answer before it.
    if messages and _is_of(messages[-1], "assistant") and asked in ("", part.text_at(question)):
        words = part.text_at(len(messages) - 1).strip()
        if output is None or words == output.strip() != "":
            *messages, last = messages
            answer = [last]
    after = messages[len(messages) if question is None else question + 1 :]
    was_asked = any(isinstance(each, ToolCall) for each in after) or not any(
        isinstance(each, Message) for each in after
    )
    if asked and not (was_asked and part.text_at(question) == asked):
        messages = [*messages, Message("user", asked)]
    before = Run([*messages, *calls])
    asked_at = RunPart(before, None, None).last_message("user")
    return RunPart(Run([*before.events, *answer]), asked_at, len(before.events) if answer else None)


def _relist(
    part: RunPart, messages: Sequence[Event] | None, calls: Sequence[ToolCall] | None, output: str | None, asked: str
) -> RunPart:
    """Return *part* with other messages or calls, where it is plain in which order they stand to the rest."""
    if not messages and not calls:
        dropped = (*([Message] if messages is not None else []), *([ToolCall] if calls is not None else []))
        ends = (part.asked, part.answered)  # they stay
        kept = [n for n, each in enumerate(part.run.events) if n in ends or not isinstance(each, dropped)]
        events = [part.run.events[n] for n in kept]
        asked_at, answered_at = (None if n is None else kept.index(n) for n in ends)
        return RunPart(evolve(part.run, events=events), asked_at, answered_at)
    own = _part_of_lists(part.messages, part.tool_calls, "", part.text_at(part.asked)).run.events
    if (messages is None or calls is None) and own != part.run.events[: part.answered]:
        name = "tool_calls" if messages is None else "messages"
        raise DefinitionError(name, f"its messages and calls stand in one order; {_ORDER}")
    messages, calls = part.messages if messages is None else messages, part.tool_calls if calls is None else calls
    return _part_of_lists(messages, calls, output, asked)
