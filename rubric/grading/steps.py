"""
Combinators for steps: generators that yield batches of asks, are sent batches of what came back, and return.

Several votes in one request: asks that differ in nothing but their vote go out as one, for as many replies.

The prompt is paid for once. A vote for which no reply came that way is asked for by itself.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from rubric.values.requests import Ask, Failure, Reply, Usage

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
    if not ask.judge.prime or len(ask.messages[-1].parts) == 1:
        return None
    shared = (*ask.messages[:-1], ask.messages[-1].parts[0])
    long = sum(len(m.text) for m in ask.messages[:-1]) + len(ask.messages[-1].parts[0]) >= LONG_PREFIX
    return (ask.judge.name, shared) if long else None


@frozen
class _Sharing:
    """
    What is known of the models on the way.

    Args:
        notes: What a person should know.
        unable: The judges, by identity, whose models gave fewer replies than were asked for.
    """

    notes: list[str]
    unable: set[int] = field(factory=set)

    def joined(self, batch: Batch) -> list[list[int]]:
        """Return which asks of *batch* go out together, each group by its indices."""
        groups: list[list[int]] = []
        seen: list[Ask] = []
        for index, ask in enumerate(batch):
            alike = evolve(ask, vote=0, n=1, retries=None)
            if id(ask.judge) not in self.unable and alike in seen:
                groups[seen.index(alike)].append(index)
            else:
                groups.append([index])
                seen.append(alike)
        return groups

    def fall_short(self, ask: Ask, came: int) -> None:
        """Note that the model of *ask* gave *came* replies, fewer than it was asked for."""
        self.unable.add(id(ask.judge))
        note = f"{ask.judge.name} gave {came} of {ask.n} replies in one request; the others were asked for one by one"
        if note not in self.notes:
            self.notes.append(note)


def as_one(members: Sequence[Steps[T]], notes: list[str]) -> Steps[list[T]]:
    """
    Run *members* side by side like `together`, with asks that differ in their vote alone as one request.

    Args:
        notes: Gets a line for each model that gave fewer replies than it was asked for.
    """
    sharing = _Sharing(notes)
    steps = together(members)
    got: Got | None = None
    while True:
        try:
            batch = next(steps) if got is None else steps.send(got)
        except StopIteration as end:
            results: list[T] = end.value
            return results
        got = yield from _exchanged(batch, sharing)


def _exchanged(batch: Batch, sharing: _Sharing) -> Steps[Got]:
    """Send *batch* in as few requests as may be; then, one by one, what did not come that way."""
    groups = sharing.joined(batch)
    asks = [_whole([batch[index] for index in group]) for group in groups]
    came: dict[int, Reply | Failure] = {}
    for ask, group, got in zip(asks, groups, (yield tuple(asks)), strict=True):
        parts = _parts(got, [batch[index].n for index in group])
        came |= dict(zip(group, parts, strict=False))
        if len(parts) < len(group):
            sharing.fall_short(ask, _given(got))
    missing = [index for index in range(len(batch)) if index not in came]
    if missing:
        came |= dict(zip(missing, (yield tuple(batch[index] for index in missing)), strict=True))
    return tuple(came[index] for index in range(len(batch)))


def _whole(asks: Sequence[Ask]) -> Ask:
    if len(asks) == 1:
        return asks[0]
    return evolve(asks[0], n=sum(ask.n for ask in asks), retries=min(ask.retries_left for ask in asks))


def _given(got: Reply | Failure) -> int:
    return max(1, len(got.choices)) if isinstance(got, Reply) else 0


def _parts(got: Reply | Failure, sizes: Sequence[int]) -> list[Reply | Failure]:
    """Return *got* in parts of *sizes* replies, as far as it goes; what was paid stands in the first."""
    if len(sizes) == 1:
        return [got]
    if isinstance(got, Failure):  # nobody got anything
        return [got, *[evolve(got, usage=Usage()) for _ in sizes[1:]]]
    return list(_replies(got, sizes))


def _replies(reply: Reply, sizes: Iterable[int]) -> Iterator[Reply]:
    texts = reply.choices or ((reply.text or ""),)
    start = 0
    for size in sizes:
        mine = texts[start : start + size]
        if not mine:
            return
        yield _one_of(reply, mine) if start else evolve(reply, choices=mine if size > 1 else ())
        start += size


def _one_of(reply: Reply, texts: tuple[str, ...]) -> Reply:
    """
    Return the reply that a further choice is: nobody says how it ended, so its text alone must tell.

    A text that was cut holds no whole verdict, and a refusal none at all.
    """
    told = Reply(texts[0], usage=Usage(), model=reply.model, unsent=reply.unsent, remarks=reply.remarks)
    return evolve(told, choices=texts) if texts[1:] else told
