"""
What is in the file, and each change to it; one thread uses it, a transaction at a time.

What came of a call, to JSON and back; and what it is worth: an answer, an unreadable reply, or a failure.

Who else writes to the file, and whether they are still there.

A write-ahead log is shared by processes of one machine alone. Where both are in one space of process ids, an id that is
gone tells at once; elsewhere a session counts as gone when its beat has not changed for ten seconds of our own clock,
so that a clock that is set changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import sqlite3
import time
import zlib
from functools import cache
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, field, frozen
from cattrs import Converter

from rubric.grading.reply_parser import read
from rubric.values.findings import Unjudged
from rubric.values.requests import REASKED, UNSENT, Ask, Failure, FailureKind, Reply, Usage


@cache
def _converter() -> Converter:
    return Converter(detailed_validation=False)


def dump(outcome: Reply | Failure, key: str = "") -> str:
    """Return *outcome*, of the request of *key*, as JSON with a checksum over both."""
    what = "reply" if isinstance(outcome, Reply) else "failure"
    body = json.dumps({what: _converter().unstructure(outcome)}, separators=(",", ":"), default=str)
    return f"{body[:-1]}{_MARK}{_checksum(body, key)}{_END}"


def load(text: str, key: str = "") -> Reply | Failure:
    """
    Return the outcome in *text*, of the request of *key*.

    Raises:
        ValueError: There is none in it, or it is not what was written.
    """
    data = unpacked(text, key)
    try:
        if "reply" in data:
            return _converter().structure(data["reply"], Reply)
        return _converter().structure(data["failure"], Failure)
    except Exception as error:  # cattrs raises groups, and whatever the values raise
        raise ValueError(f"no reply and no failure: {type(error).__name__}") from error


def unpacked(text: str, key: str) -> dict[str, Any]:
    """
    Return the plain data in *text*, of the request of *key*; its checksum is looked at, and left out.

    Outcomes that an older version has written have none. SQLite itself does not see that a byte of a value has changed.

    Raises:
        ValueError: It is no outcome, or not what was written.
    """
    body, mark, rest = text.rpartition(_MARK)
    if mark:
        text = body + "}"
        if rest != _checksum(text, key) + _END:
            raise ValueError("it is not what was written")
    try:
        data: dict[str, Any] = json.loads(text)
        (_,) = data.keys() & {"reply", "failure"}
        (_,) = data
    except Exception as error:  # any text at all may have come of damage
        raise ValueError(f"no reply and no failure: {type(error).__name__}") from error
    return data


_MARK, _END = ',"sum":"', '"}'


def _checksum(body: str, key: str) -> str:
    return hashlib.sha256(f"{key}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def free(outcome: Reply | Failure) -> Reply | Failure:
    """Return *outcome* as one that is served again: it costs nothing, and is no call."""
    return evolve(outcome, usage=Usage())


def never_left(outcome: Reply | Failure) -> bool:
    """Say whether *outcome* is of a call that was held back (a limit, a budget): there is nothing to keep of it."""
    if isinstance(outcome, Reply) or outcome.usage.calls:
        return False
    return outcome.kind in UNSENT or not outcome.in_doubt


def kind_of(ask: Ask, outcome: Reply | Failure) -> FailureKind | None:
    """
    Return why *outcome* says nothing about any criterion of *ask*; None for an answer.

    Reading is pure: what is unreadable today is so whenever it is read.
    """
    if isinstance(outcome, Failure):
        return outcome.kind
    choices = [outcome, *(evolve(outcome, text=text, finish="stop") for text in outcome.choices[1:])]
    findings = [finding for choice in choices for finding in read(ask, choice)]
    kinds: list[FailureKind | None] = [
        finding.failure.kind if isinstance(finding, Unjudged) else None for finding in findings
    ]
    if None in kinds:
        return None
    again: list[FailureKind | None] = [kind for kind in kinds if kind in REASKED]
    return (again or kinds)[0]


BEAT = 1.0
"""Seconds between two beats of a session that has calls under way."""

_SILENCE = 10.0
"""Seconds without a beat after which a session counts as gone."""


@frozen
class Owner:
    """A session: the process that opened the store, and the last that was heard of it."""

    id: int
    host: str
    pid: int
    beat: int
    is_open: bool


@cache
def here() -> str:
    """Return what names the space of process ids that this process is in."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


class Watch:
    """Tells which sessions are still there, from what it has seen of them so far."""

    def __init__(self, own: int) -> None:
        self._own = own
        self._heard: dict[int, tuple[int, float]] = {}

    def is_there(self, owner: Owner) -> bool:
        """Say whether *owner* may still bring what it has sent for."""
        if owner.id == self._own:
            return True
        if not owner.is_open or _is_gone(owner):
            return False
        beat, since = self._heard.get(owner.id, (-1, 0.0))
        now = time.monotonic()
        if beat != owner.beat:
            self._heard[owner.id] = (owner.beat, now)
            return True
        return now - since < _SILENCE


def _is_gone(owner: Owner) -> bool:
    if os.name != "posix" or owner.host != here():
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it is there, and somebody else's
        return False
    return _is_defunct(owner.pid)


def _is_defunct(pid: int) -> bool:
    """Say whether process *pid* has ended, and its parent has not asked how yet."""
    try:
        said = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return said.rpartition(")")[2].split()[:1] in (["Z"], ["X"])


Mode = Literal["read-write", "replay", "refresh"]
InDoubt = Literal["retry", "hold"]

_SQUEEZE = 1
"""How hard requests are compressed: prompts shrink to a third at once, and little further."""


@frozen
class Tally:
    """
    What a store has been good for since it was opened.

    Args:
        hits: Asks that were served from it.
        sent: Asks that were sent.
        resent: Of these, how many had been sent before, by somebody who is gone: they may have been paid for twice.
        held: Asks that were not sent because they had been, by somebody who is gone.
        saved: What the hits had used when they were sent.
    """

    hits: int = 0
    sent: int = 0
    resent: int = 0
    held: int = 0
    saved: Usage = Usage()


@frozen
class Wanted:
    """
    A request that somebody has.

    Args:
        key: Of the request.
        text: The request.
        model: The model's name.
        goes_on: Whether grading asks again, as another ask, if the reply turns out to say nothing.
        leaves: Whether it leaves at once; otherwise its departure is told later.
    """

    key: str
    text: str = field(repr=False)
    model: str
    goes_on: bool
    leaves: bool


@frozen
class Kept:
    """It has been answered before, or has failed in a way that grading goes on from."""

    outcome: Reply | Failure


@frozen
class Yours:
    """Nobody else has it: send it, and tell call *id* what came."""

    id: int


@frozen
class Busy:
    """Somebody else has sent for it; look again in a moment."""


@frozen
class Doubtful:
    """It was sent at *sent_at* (seconds since 1970), and nobody will know what came of it."""

    sent_at: float


Answer = Kept | Yours | Busy | Doubtful


@frozen
class Call:
    """One row: a call, and whoever made it."""

    id: int
    state: str
    kind: str | None
    sent_at: float | None
    outcome: str | None
    owner: Owner


_CALL = """
SELECT calls.id, state, kind, sent_at, outcome, sessions.id, host, pid, beat, is_open
FROM calls JOIN requests ON requests.id = calls.request JOIN sessions ON sessions.id = calls.session
WHERE requests.key = ?
"""


class Database:
    """
    One session's view of the store.

    Args:
        connection: To the file.
        mode: What the session is for.
        in_doubt: What becomes of calls whose sender is gone.
    """

    def __init__(self, connection: sqlite3.Connection, mode: Mode, in_doubt: InDoubt) -> None:
        self.connection = connection
        self.mode = mode
        self.in_doubt = in_doubt
        self.session = 0
        self.tally = Tally()
        self._watch = Watch(0)

    def begin(self) -> None:
        """Enter this session."""
        row = (here(), os.getpid(), self.mode, time.time())
        self.session = self._insert("INSERT INTO sessions (host, pid, mode, started_at) VALUES (?, ?, ?, ?)", row)
        self._watch = Watch(self.session)

    def end(self) -> None:
        """Tell that this session sends nothing any more."""
        self.beat()
        self.connection.execute("UPDATE sessions SET is_open = 0 WHERE id = ?", (self.session,))

    def beat(self) -> None:
        """Tell that this session is still there, and what it has saved so far."""
        self.connection.execute(
            "UPDATE sessions SET beat = beat + 1, hits = ?, saved_calls = ?, saved_cost = ? WHERE id = ?",
            (self.tally.hits, self.tally.saved.calls, self.tally.saved.cost, self.session),
        )

    def look(self, wanted: Wanted) -> Answer | None:
        """Return what is kept for *wanted*; None where that would take writing."""
        done = self._call(wanted.key, "AND state = 'done'")
        if done is not None and self._counts(done):
            return self._served(done, wanted.key)
        return None

    def recall(self, wanted: Wanted) -> Kept | None:
        """Return what came of *wanted* when it was recorded, failures too; None if it was not."""
        done = self._call(wanted.key, "AND state = 'done'")
        last = done or self._call(wanted.key, "AND state IN ('unreadable', 'failed') ORDER BY calls.id DESC LIMIT 1")
        return None if last is None else self._served(last, wanted.key)

    def claim(self, wanted: Wanted) -> Answer:
        """Return what is kept for *wanted*, or who is to send it."""
        kept = self.look(wanted)
        if kept is not None:
            return kept
        way = self._call(wanted.key, "AND state IN ('claimed', 'sent', 'in_doubt')")
        if way is None:
            return self._passed(wanted) or self._enter(wanted)
        if way.state != "in_doubt" and self._watch.is_there(way.owner):
            return Busy()
        return self._succeed(way, wanted)

    def leave(self, call: int) -> bool:
        """
        Tell that *call* is about to be sent, for the first time or again after it was turned away.

        It returns whether it may be: not if another session took this one to be gone, and has taken the call over.
        """
        self._count(call)
        sent = "UPDATE calls SET state = 'sent', sent_at = ? WHERE id = ? AND state IN ('claimed', 'sent')"
        return self.connection.execute(sent, (time.time(), call)).rowcount > 0

    def stay(self, call: int) -> None:
        """Tell that what was sent for *call* was turned away; it may be sent again."""
        self.connection.execute("UPDATE calls SET state = 'claimed' WHERE id = ? AND state = 'sent'", (call,))

    def finish(self, call: int, outcome: Reply | Failure, kind: FailureKind | None) -> None:
        """
        Keep what came of *call*.

        Args:
            kind: Why it says nothing; None for an answer.
        """
        self._count(call)  # what a batch has brought never told when it left
        asked = "SELECT key FROM calls JOIN requests ON requests.id = calls.request WHERE calls.id = ?"
        (key,) = self.connection.execute(asked, (call,)).fetchone() or ("",)
        state = _state(outcome, kind)
        if state == "done":
            self.connection.execute(
                "UPDATE calls SET state = 'replaced' WHERE state = 'done' AND request = "
                "(SELECT request FROM calls WHERE id = ?)",
                (call,),
            )
        # One that somebody has taken over, and sent again, is theirs to doubt.
        kept = "resent" if state == "in_doubt" else ""
        self.connection.execute(
            "UPDATE calls SET state = iif(state = ?, state, ?), kind = ?, ended_at = ?, outcome = ? WHERE id = ?",
            (kept, state, kind, time.time(), dump(outcome, key), call),
        )

    def _count(self, call: int) -> None:
        """Count *call* as sent, if it has not been."""
        first = self.connection.execute("SELECT sent_at IS NULL FROM calls WHERE id = ?", (call,)).fetchone()
        if first == (1,):
            self.tally = evolve(self.tally, sent=self.tally.sent + 1)
            self.connection.execute("UPDATE calls SET sent_at = ? WHERE id = ?", (time.time(), call))

    def drop(self, call: int) -> None:
        """Forget *call*: it was never sent."""
        self.connection.execute("DELETE FROM calls WHERE id = ? AND state IN ('claimed', 'sent')", (call,))

    def doubt(self, call: int) -> None:
        """Tell that nobody waits for *call* any more, and that it had been sent."""
        self.connection.execute(
            "UPDATE calls SET state = 'in_doubt', ended_at = ? WHERE id = ? AND state IN ('claimed', 'sent')",
            (time.time(), call),
        )

    def _counts(self, call: Call) -> bool:
        """Say whether *call* is good enough for this session: a refreshing one takes none but its own."""
        return self.mode != "refresh" or call.owner.id == self.session

    def _served(self, call: Call, key: str) -> Kept:
        outcome = load(call.outcome or "", key)
        known = evolve(outcome.usage, cost=outcome.usage.cost or 0.0)
        self.tally = evolve(self.tally, hits=self.tally.hits + 1, saved=self.tally.saved + known)
        return Kept(outcome)

    def _passed(self, wanted: Wanted) -> Kept | None:
        """Return what said nothing the last time, where grading goes on from that to an ask that may be kept too."""
        if not wanted.goes_on:
            return None
        last = self._call(wanted.key, "AND state IN ('unreadable', 'failed') ORDER BY calls.id DESC LIMIT 1")
        if last is None or last.kind not in REASKED or not self._counts(last):
            return None
        return self._served(last, wanted.key)

    def _succeed(self, call: Call, wanted: Wanted) -> Answer:
        """Return what is to be done about *call*, whose sender is gone."""
        if call.state == "claimed":
            self.drop(call.id)
            return self._enter(wanted)
        if self.in_doubt == "hold":
            self.tally = evolve(self.tally, held=self.tally.held + 1)
            return Doubtful(call.sent_at or 0.0)
        self.tally = evolve(self.tally, resent=self.tally.resent + 1)
        self.connection.execute("UPDATE calls SET state = 'resent' WHERE id = ?", (call.id,))
        return self._enter(wanted)

    def _enter(self, wanted: Wanted) -> Yours:
        found = self.connection.execute("SELECT id FROM requests WHERE key = ?", (wanted.key,)).fetchone()
        request = found[0] if found else self._request(wanted)
        self.tally = evolve(self.tally, sent=self.tally.sent + wanted.leaves)
        state, sent_at = ("sent", time.time()) if wanted.leaves else ("claimed", None)
        row = (request, self.session, state, sent_at)
        return Yours(self._insert("INSERT INTO calls (request, session, state, sent_at) VALUES (?, ?, ?, ?)", row))

    def _request(self, wanted: Wanted) -> int:
        row = (wanted.key, wanted.model, zlib.compress(wanted.text.encode(), _SQUEEZE))
        return self._insert("INSERT INTO requests (key, model, text) VALUES (?, ?, ?)", row)

    def _insert(self, statement: str, row: tuple[object, ...]) -> int:
        number = self.connection.execute(statement, row).lastrowid
        assert number is not None  # noqa: S101 - an insert has one
        return number

    def _call(self, key: str, which: str) -> Call | None:
        row = self.connection.execute(_CALL + which, (key,)).fetchone()
        if row is None:
            return None
        id_, state, kind, sent_at, outcome, owner, host, pid, beat, is_open = row
        return Call(id_, state, kind, sent_at, outcome, Owner(owner, host, pid, beat, bool(is_open)))


def _state(outcome: Reply | Failure, kind: FailureKind | None) -> str:
    if kind is None:
        return "done"
    if isinstance(outcome, Failure):
        return "in_doubt" if outcome.in_doubt else "failed"
    return "unreadable"
