"""Combinators for steps: generators that yield batches of asks, are sent batches of what came back, and return."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import islice
from typing import Any, TypeVar

from rubric.exchanges import Ask, Failure, Reply

T = TypeVar("T")

Batch = tuple[Ask, ...]
Got = tuple[Reply | Failure, ...]
Steps = Generator[Batch, Got, T]

LONG_PREFIX = 4_096
"""Characters, about 1,024 tokens: no vendor caches a shorter prefix."""

_FEW = 2


def together(members: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run *members* side by side: their asks go out in one batch, in order. Return their results, in order."""
    results: dict[int, T] = {}
    pending: dict[int, Batch] = {}
    for index, member in enumerate(members):
        _advance(member, index, None, results, pending)
    while pending:
        waiting = dict(pending)
        got = iter((yield tuple(ask for batch in waiting.values() for ask in batch)))
        pending.clear()
        for index, batch in waiting.items():
            _advance(members[index], index, tuple(islice(got, len(batch))), results, pending)
    return [results[index] for index in range(len(members))]


def _advance(member: Steps[T], index: int, got: Got | None, results: dict[int, T], pending: dict[int, Batch]) -> None:
    try:
        pending[index] = next(member) if got is None else member.send(got)
    except StopIteration as end:
        results[index] = end.value


def leading(steps: Steps[T]) -> Steps[T]:
    """
    Run *steps*, and where more than two asks share a long prefix that has not been sent yet, send one of them ahead.

    Once its answer is there, the vendor can serve the prefix of the others from its cache.
    """
    sent: set[Any] = set()
    got: Got | None = None
    try:
        while True:
            batch = next(steps) if got is None else steps.send(got)
            got = yield from _staged(batch, sent)
    except StopIteration as end:
        result: T = end.value
        return result


def _staged(batch: Batch, sent: set[Any]) -> Steps[Got]:
    prefixes = [_prefix(ask) for ask in batch]
    counts = {p: prefixes.count(p) for p in set(prefixes) if p is not None}
    fresh = [p for p, count in counts.items() if count > _FEW and p not in sent]
    first = sorted(prefixes.index(p) for p in fresh)
    sent.update(counts)
    if not first:
        return (yield batch)
    rest = [index for index in range(len(batch)) if index not in first]
    came: dict[int, Reply | Failure] = dict(zip(first, (yield tuple(batch[i] for i in first)), strict=True))
    came |= dict(zip(rest, (yield tuple(batch[i] for i in rest)), strict=True))
    return tuple(came[index] for index in range(len(batch)))


def _prefix(ask: Ask) -> tuple[object, ...] | None:
    """Return what identifies the prefix that *ask* shares with others; None for one that is too short to cache."""
    if len(ask.messages[-1].parts) == 1:
        return None
    shared = (*ask.messages[:-1], ask.messages[-1].parts[0])
    long = sum(len(m.text) for m in ask.messages[:-1]) + len(ask.messages[-1].parts[0]) >= LONG_PREFIX
    return (ask.judge.name, shared) if long else None
