"""
The segments of a long run: consecutive steps, each segment with the last steps of the one before it.

A segment is a part of the run, with the numbers that its steps have in the whole. A step that is too long for one is
cut, and its pieces are segments of their own. So no segment exceeds its size, and nothing is left out. A token is taken
as three bytes, which is near for code and JSON, and too many for English.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve

from rubric.internals.frozen_map import thaw
from rubric.internals.text import as_json
from rubric.values.numbered import call_text, numbered_steps
from rubric.values.run_parts import RunPart
from rubric.values.runs import Event, Message, Run, State, SubRun

_BYTES_A_TOKEN = 3
_OVERLAP = 20
"""A segment repeats the end of the one before it, up to this part of its size."""

_FRAME = 64  # bytes of a step's number, of names, and of a line's end


def segments_of(run: Run, tokens: int) -> dict[str, Run]:
    """Return the segments of *run*, of about *tokens* each, by their names; one if it all fits."""
    return dict(_cut(run, _BYTES_A_TOKEN * tokens))


def _cut(run: Run, most: int) -> Iterator[tuple[str, Run]]:
    held: list[tuple[Event, int]] = []
    for number, event in enumerate(run.events, run.first):
        size = _size(event)
        if held and sum(length for _, length in held) + size > most:
            yield _part(run, number - len(held), held)
            held = _tail(held, min(most // _OVERLAP, most - size))
        if size <= most:
            held.append((event, size))
            continue
        pieces = [*_pieces(event, most)]
        for place, piece in enumerate(pieces, 1):
            name = f"step {number}, part {place} of {len(pieces)}"
            yield name, evolve(run, events=[piece], first=number)
    if held:
        yield _part(run, run.first + len(run.events) - len(held), held)


def _part(run: Run, first: int, held: list[tuple[Event, int]]) -> tuple[str, Run]:
    name = f"steps {first} to {first + len(held) - 1}" if len(held) > 1 else f"step {first}"
    return name, evolve(run, events=[event for event, _ in held], first=first)


def _tail(held: list[tuple[Event, int]], most: int) -> list[tuple[Event, int]]:
    """Return the last events of *held*, at most all but the first, that fit into *most* bytes."""
    start = len(held)
    while start > 1 and held[start - 1][1] <= most:
        start -= 1
        most -= held[start][1]
    return held[start:]


def _size(event: Event) -> int:
    steps = numbered_steps(RunPart(Run([event]), None, None))
    return sum(_FRAME + len(one.text.encode("utf-8", "surrogatepass")) for one in steps)


def _pieces(event: Event, most: int) -> Iterator[Event]:
    """Yield *event* in pieces that fit into *most* bytes, each with the last words of the one before it."""
    match event:
        case SubRun():
            most -= _size(evolve(event, task="", run=Run(), result=""))
            yield from (evolve(event, task=task, run=Run(), result="") for task in _texts(event.task, most))
            yield from (evolve(event, task="", run=part, result="") for _, part in _cut(event.run, most))
            yield from (evolve(event, task="", run=Run(), result=said) for said in _texts(event.result, most))
        case Message():
            yield from (evolve(event, content=content) for content in _texts(event.content, most - 2 * _FRAME))
        case State():
            text = as_json(thaw(event.values))
            yield from (evolve(event, values={"part": part}) for part in _texts(text, most - 2 * _FRAME))
        case _:
            text = call_text(event)
            yield from (evolve(event, arguments={}, error="", result=part) for part in _texts(text, most - 2 * _FRAME))


def _texts(text: str, most: int) -> Iterator[str]:
    """Yield *text* in overlapping parts of at most *most* bytes, as it is shown: line breaks are indented."""
    size = len(text.encode("utf-8", "surrogatepass")) + 4 * sum(map(text.count, _BREAKS))
    if size <= most or len(text) < _SHORTEST:
        yield from [text] if text else []
        return
    middle, lap = len(text) // 2, min(len(text) // 4, max(most, 0) // (2 * _OVERLAP))
    yield from _texts(text[: middle + lap], most)
    yield from _texts(text[middle - lap :], most)


_BREAKS = "\n\r\u2028\u2029"
_SHORTEST = 64  # characters: also within sub-agents of sub-agents of ...
