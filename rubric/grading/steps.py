"""
Combinators for steps: generators that yield batches of asks, are sent a reply for each, and return a result.

`together` runs several side by side. `as_one` merges asks that differ in their vote alone into one request for as many
choices, so that the prompt is paid for once; a vote that gets no choice that way is asked for by itself.
`programs_first` lets programs answer before models.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from attrs import evolve

from rubric.grading.code_checks import forbidden
from rubric.values.checks import Launcher
from rubric.values.requests import Ask, Failure, Reply, Usage

T = TypeVar("T")
Batch = tuple[Ask, ...]
Got = tuple[Reply | Failure, ...]
Steps = Generator[Batch, Got, T]


def together(members: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run *members* side by side: their asks go out in one batch. Return their results in order."""
    results: dict[int, T] = {}
    replies: dict[int, Got | None] = dict.fromkeys(range(len(members)))
    while replies:
        pending: dict[int, Batch] = {}
        for index, got in replies.items():
            try:
                pending[index] = members[index].send(got)  # type: ignore[arg-type]  # None starts a generator
            except StopIteration as end:
                results[index] = end.value
        if not pending:
            break
        came = iter((yield tuple([ask for batch in pending.values() for ask in batch])))
        replies = {index: tuple(islice(came, len(batch))) for index, batch in pending.items()}
    return [results[index] for index in range(len(members))]


def answering(steps: Steps[T], answer: Callable[[Batch], Steps[Got]]) -> Steps[T]:
    """Run *steps*, with each batch answered by *answer*, which may send it in other batches."""
    got: Got | None = None
    while True:
        try:
            batch = steps.send(got)  # type: ignore[arg-type]  # None starts a generator
        except StopIteration as end:
            result: T = end.value
            return result
        got = yield from answer(batch)


def as_one(steps: Steps[T], notes: list[str]) -> Steps[T]:
    """Run *steps* with asks that differ in their vote alone as one request; *notes* name models that gave fewer."""
    unable: set[int] = set()  # the judges of these models, by identity
    return answering(steps, lambda batch: _send_merged(batch, notes, unable))


def programs_first(steps: Steps[T], *, allowed: bool) -> Steps[T]:
    """
    Run *steps*, with the programs of each batch before its requests, one after another, and each once for all votes.

    So a budget knows their cost before a request is sent. Those that are not *allowed* fail.
    """
    ran: list[tuple[Ask, Reply | Failure]] = []

    def once(ask: Ask, program: Launcher) -> Steps[Reply | Failure]:
        for one, known in ran:
            if one.program is program and one.criteria[0] is ask.criteria[0] and one.about == ask.about:
                return evolve(known, usage=Usage())  # it is paid for already
        (got,) = (yield (ask,)) if allowed else (forbidden(ask.criteria[0], program.scripts),)
        ran.append((ask, got))
        return got

    def answer(batch: Batch) -> Steps[Got]:
        made: list[Reply | Failure | None] = []
        for ask in batch:
            made.append((yield from once(ask, ask.program)) if ask.program else None)  # noqa: PERF401 - a list cannot yield
        rest = tuple([ask for ask in batch if not ask.program])
        came = iter((yield rest) if rest else ())
        return tuple([got or next(came) for got in made])

    return answering(steps, answer)


def _send_merged(batch: Batch, notes: list[str], unable: set[int]) -> Steps[Got]:
    """Send *batch* in as few requests as possible; then, one by one, the asks for which no choice came."""
    groups: list[list[int]] = []
    seen: list[Ask] = []
    for index, ask in enumerate(batch):
        alike = evolve(ask, vote=0, n=1, retries=None)
        if ask.program is None and id(ask.judge) not in unable and alike in seen:
            groups[seen.index(alike)].append(index)
        else:
            groups.append([index])
            seen.append(alike)
    asks = [_request_for([batch[index] for index in group]) for group in groups]
    replies: dict[int, Reply | Failure] = {}
    for ask, group, got in zip(asks, groups, (yield tuple(asks)), strict=True):
        parts = list(_parts(got, [batch[index].n for index in group]))
        replies |= dict(zip(group, parts, strict=False))
        if len(parts) < len(group):
            unable.add(id(ask.judge))
            given = max(1, len(got.choices)) if isinstance(got, Reply) else 0
            note = f"{ask.judge.name} gave {given} of {ask.n} replies in one request"
            note += "; the others were asked for one by one"
            if note not in notes:
                notes.append(note)
    missing = [index for index in range(len(batch)) if index not in replies]
    if missing:
        replies |= dict(zip(missing, (yield tuple([batch[index] for index in missing])), strict=True))
    return tuple([replies[index] for index in range(len(batch))])


def _request_for(asks: Sequence[Ask]) -> Ask:
    if len(asks) == 1:
        return asks[0]
    return evolve(asks[0], n=sum(ask.n for ask in asks), retries=min(ask.retries_left for ask in asks))


def _parts(got: Reply | Failure, sizes: Sequence[int]) -> Iterator[Reply | Failure]:
    """Yield *got* in parts of *sizes* choices, as far as it goes; the first part has the usage of all."""
    if len(sizes) == 1:
        yield got
    elif isinstance(got, Failure):
        yield got
        yield from [evolve(got, usage=Usage()) for _ in sizes[1:]]
    else:
        texts = got.choices or ((got.text or ""),)
        start = 0
        for size in sizes:
            mine = texts[start : start + size]
            if not mine:
                return
            if start == 0:
                yield evolve(got, choices=mine if size > 1 else ())
            else:
                # No vendor says how a further choice ended, so its text alone must tell: one that was cut holds no
                # whole verdict, and a refusal none at all.
                further = Reply(mine[0], usage=Usage(), model=got.model, unsent=got.unsent, remarks=got.remarks)
                yield evolve(further, choices=mine if len(mine) > 1 else ())
            start += size
