"""
Drives flows through a vendor's batch API: all that they ask goes out round by round, as files, at half the price.

A round may take as long as the vendor likes, a day at most. What was sent is kept in a small JSON file: run again with
the same flows after a crash, a Ctrl-C or a reboot, and the same batches are waited for and read, without being sent
again. A batch is written down before it is created, with a mark by which it is found if nobody lived to hear its id.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from attrs import define, evolve, field

from rubric.candidates import Candidate
from rubric.drivers.attempts import persist
from rubric.errors import DefinitionError, ModelError
from rubric.exchanges import Ask, Failure, Reply, Usage
from rubric.grades import Grade, Ungraded
from rubric.grading.batching import Batch, Got, Steps, T, together
from rubric.grading.flow import flow
from rubric.grading.voting import unhurried
from rubric.judges import Bench, Judge
from rubric.models import openai_batches as vendor
from rubric.models.openai_batches import BatchState, Line
from rubric.rubrics import Rubric

__all__ = ["grade_in_batches", "run_in_batches"]

_MOST_LINES = 50_000
_MOST_BYTES = 150_000_000
_FORMAT = 1


async def grade_in_batches(
    candidates: Iterable[Candidate | str], rubric: Rubric, judge: Bench, path: str | os.PathLike[str], **options: Any
) -> list[Grade | Ungraded]:
    """
    Grade *candidates* through the vendor's batches, all at once, and return their results in order.

    Early stops are off: votes that wait for votes would wait for days. For the same reason trees are walked in as few
    rounds with `Judge(speculate=True)`, and nothing is sent ahead for a prefix cache.

    Args:
        path: Where it is written down which batches were sent, as for `run_in_batches`.
        options: As for `run_in_batches`.
    """
    bench = unhurried(judge)
    flows = [flow(Candidate.of(candidate), rubric, bench, ahead=False) for candidate in candidates]
    return await run_in_batches(together(flows), path, **options)


async def run_in_batches(
    steps: Steps[T],
    path: str | os.PathLike[str],
    *,
    poll: float = 60.0,
    sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
) -> T:
    """
    Return what *steps* come to, with each batch of asks answered by batches of the vendor's.

    Args:
        path: Where it is written down which batches were sent. One run at a time may use it.
        poll: Seconds between two looks at a batch.
        sleep: Awaited between them, with the seconds.

    Raises:
        DefinitionError: A judge is none of OpenAI's, or *path* holds something else.
    """
    rounds = _Rounds(_Ledger.read(Path(path)), poll, sleep)
    got: Got | None = None
    try:
        while True:
            got = await rounds.answered(next(steps) if got is None else steps.send(got))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        steps.close()


# -- what was sent -----------------------------------------------------------------------------------------


@define
class _Sent:
    """A batch that was sent: the *mark* it is found by, its *id* once that is known, the *keys* of its requests."""

    mark: str
    id: str
    keys: list[str]


@define
class _Ledger:
    path: Path
    sent: list[_Sent] = field(factory=list)

    @classmethod
    def read(cls, path: Path) -> _Ledger:
        """Return what *path* holds; nothing, if there is no such file yet."""
        try:
            data = json.loads(path.read_text("utf-8"))
            found = [_Sent(one["mark"], one["id"], one["keys"]) for one in data["batches"]]
        except FileNotFoundError:
            return cls(path)
        except (ValueError, KeyError, TypeError):
            raise _no_list(path) from None
        if data.get("format") != _FORMAT:
            raise _no_list(path)
        return cls(path, found)

    def write(self) -> None:
        """Replace the file as a whole, so that there is no half of it."""
        batches = [{"mark": one.mark, "id": one.id, "keys": one.keys} for one in self.sent if one.keys]
        new = self.path.with_name(f"{self.path.name}.new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, "batches": batches}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)

    def holds(self, key: str) -> bool:
        """Say whether the request called *key* was sent."""
        return any(key in one.keys for one in self.sent)

    def forget(self, keys: Iterable[str]) -> None:
        """Strike out *keys*, which got no reply, so that another run sends them again."""
        gone = {*keys}
        for one in self.sent:
            one.keys = [key for key in one.keys if key not in gone]
        self.sent = [one for one in self.sent if one.keys]
        self.write()


def _no_list(path: Path) -> DefinitionError:
    return DefinitionError("path", f"{path} is no list of batches; name another file")


# -- round by round ----------------------------------------------------------------------------------------


@define
class _Rounds:
    ledger: _Ledger
    poll: float
    sleep: Callable[[float], Awaitable[Any]]
    answers: dict[str, Reply | Failure] = field(factory=dict)

    async def answered(self, batch: Batch) -> Got:
        """Return what came of the asks of *batch*."""
        lines = [self._line(ask) for ask in batch]
        wanted = {line.key: (line, ask.judge) for line, ask in zip(lines, batch, strict=True) if isinstance(line, Line)}
        await self._adopt(wanted)
        fresh = [pair for key, pair in wanted.items() if not self.ledger.holds(key) and key not in self.answers]
        for judge, part in _files(fresh):
            await self._send(judge, part)
        for one in [*self.ledger.sent]:
            mine = {key: wanted[key] for key in one.keys if key in wanted and key not in self.answers}
            if mine and one.id:
                await self._receive(one, mine)
        return self._got(batch, lines)

    def _line(self, ask: Ask) -> Line | Failure:
        if not vendor.has_batches(ask.judge):
            raise DefinitionError("judge", f"{ask.judge.name!r} has no batches here; name a model of OpenAI's")
        try:
            return vendor.line_of(ask)
        except ModelError as error:
            return error.failure

    async def _adopt(self, wanted: Mapping[str, tuple[Line, Judge]]) -> None:
        """Look for batches whose ids nobody lived to hear; what was not created is forgotten, and so sent again."""
        for one in [one for one in self.ledger.sent if not one.id]:
            judge = next((wanted[key][1] for key in one.keys if key in wanted), None)
            if judge is None:
                continue
            found = await self._tried(judge, partial(vendor.find, judge, one.mark))
            if isinstance(found, Failure):
                self.answers |= dict.fromkeys(one.keys, found)
            elif found:
                one.id = found
                self.ledger.write()
            else:
                self.ledger.forget(one.keys)

    async def _send(self, judge: Judge, lines: Sequence[Line]) -> None:
        one = _Sent(uuid4().hex, "", [line.key for line in lines])
        self.ledger.sent.append(one)
        self.ledger.write()
        try:
            one.id = await vendor.create(judge, lines, one.mark)
            self.ledger.write()
        except ModelError as error:
            self.answers |= dict.fromkeys(one.keys, error.failure)
            if not error.failure.in_doubt:
                self.ledger.forget(one.keys)

    async def _receive(self, one: _Sent, wanted: Mapping[str, tuple[Line, Judge]]) -> None:
        """Wait until *one* is over, and keep what it answers."""
        judge = next(iter(wanted.values()))[1]
        state = await self._over(judge, one.id)
        if isinstance(state, Failure):  # nobody says how it stands: another run will ask
            self.answers |= dict.fromkeys(wanted, state)
            return
        found: dict[str, Reply | Failure] = {}
        lines = {key: line for key, (line, _) in wanted.items()}
        for name in state.files:
            came = await self._tried(judge, partial(vendor.replies, judge, name, lines))
            if isinstance(came, Failure):
                self.answers |= dict.fromkeys(wanted, came)
                return
            found |= came
        lost = Failure("bad_response", f"the batch {one.id} is {state.status} without an answer. {state.wrong}".strip())
        self.answers |= {key: found.get(key, lost) for key in wanted}
        self.ledger.forget(key for key in wanted if isinstance(self.answers[key], Failure))

    async def _over(self, judge: Judge, batch: str) -> BatchState | Failure:
        while True:
            state = await self._tried(judge, partial(vendor.state, judge, batch))
            if isinstance(state, Failure) or state.is_over:
                return state
            await self.sleep(self.poll)

    async def _tried(self, judge: Judge, once: Callable[[], Awaitable[T]]) -> T | Failure:
        async def caught() -> T | Failure:
            try:
                return await once()
            except ModelError as error:
                return error.failure

        outcome, _ = await persist(caught, judge.retries, sleep=self.sleep)
        return outcome

    def _got(self, batch: Batch, lines: Sequence[Line | Failure]) -> Got:
        """Return the answers in the order of the asks; asks that are the same to the byte were paid for once."""
        served: set[str] = set()
        got: list[Reply | Failure] = []
        for ask, line in zip(batch, lines, strict=True):
            answer = line if isinstance(line, Failure) else self.answers[line.key]
            paid = isinstance(line, Failure) or line.key not in served
            answer = answer if paid else evolve(answer, usage=Usage())
            got.append(evolve(answer, judge=ask.judge.name) if isinstance(answer, Failure) else answer)
            served |= set() if isinstance(line, Failure) else {line.key}
        return tuple(got)


def _files(lines: Iterable[tuple[Line, Judge]]) -> Iterator[tuple[Judge, list[Line]]]:
    """Yield what goes into one file each: of one judge, and no more than a vendor takes."""
    by_judge: dict[int, tuple[Judge, list[Line]]] = {}
    for line, judge in lines:
        by_judge.setdefault(id(judge), (judge, []))[1].append(line)
    for judge, every in by_judge.values():
        part: list[Line] = []
        size = 0
        for line in every:
            if part and (len(part) == _MOST_LINES or size + len(line.body) > _MOST_BYTES):
                yield judge, part
                part, size = [], 0
            part.append(line)
            size += len(line.body) + 1
        yield judge, part
