"""
Read and change the file: the codec of replies, the liveness of sessions, and every query.

The file is changed by the writer thread alone, in transactions; it is looked up by any thread, beside the writer.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import sqlite3
import threading
import time
import zlib
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, frozen
from cattrs import Converter
from cattrs.gen import make_dict_unstructure_fn, override

from rubric.grading.reply_parser import holds, read
from rubric.store.cache_key import Request, key_at
from rubric.values.findings import Unjudged
from rubric.values.requests import REASKED, UNSENT, Ask, Failure, FailureKind, Reply, Usage

# -- the codec ---------------------------------------------------------------------------------------------


@cache
def _converter() -> Converter:
    converter = Converter(detailed_validation=False, omit_if_default=True)
    # The statistics sum the usage in SQL, where a default that is left out would count as nothing.
    usage = make_dict_unstructure_fn(
        Reply, converter, _cattrs_omit_if_default=True, usage=override(omit_if_default=False)
    )
    converter.register_unstructure_hook(Reply, usage)
    return converter


_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode
_MARK, _END = ',"sum":"', '"}'


def dump(result: Reply | Failure, key: str = "") -> str:
    """Return *result*, of the request of *key*, as JSON with a checksum over both; omit defaults."""
    name = "reply" if isinstance(result, Reply) else "failure"
    body = _encode({name: _converter().unstructure(result)})
    return f"{body[:-1]}{_MARK}{_checksum(body, key)}{_END}"


def load(text: str, key: str = "") -> Reply | Failure:
    """Return the reply or failure in *text*, of the request of *key*; raise `ValueError` if it was not written so."""
    data = unpack(text, key)
    try:
        if "reply" in data:
            return _converter().structure(data["reply"], Reply)
        return _converter().structure(data["failure"], Failure)
    except Exception as error:  # cattrs raises groups, and the values raise errors of their own
        raise ValueError(f"no reply and no failure: {type(error).__name__}") from error


def unpack(text: str, key: str) -> dict[str, Any]:
    """
    Check the checksum of *text*, of the request of *key*; return its data, or raise `ValueError`.

    SQLite does not notice a byte of a value that has changed, or a row under another key. Rows of early versions have
    no checksum, and are taken as they are.
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
    except Exception as error:  # a damaged file may hold any text
        raise ValueError(f"no reply and no failure: {type(error).__name__}") from error
    return data


def _checksum(body: str, key: str) -> str:
    return hashlib.sha256(f"{key}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def free(result: Reply | Failure) -> Reply | Failure:
    """Return *result* as a cache hit: no call, and no cost."""
    return evolve(result, usage=Usage())


def is_unsent(result: Reply | Failure) -> bool:
    """True if *result* is of a request that a limit or a budget held back, so that there is nothing to keep."""
    if isinstance(result, Reply) or result.usage.calls:
        return False
    return result.kind in UNSENT or not result.in_doubt


def kind_of(ask: Ask, result: Reply | Failure) -> FailureKind | None:
    """Return why *result* says nothing about any criterion of *ask*; None for an answer. It will always say that."""
    if isinstance(result, Failure):
        return result.kind
    if result.wanted:  # a call of tools
        return None
    if not ask.criteria:  # the draft of a rubric
        return None if holds(ask, result) else "unreadable"
    choices = [result, *(evolve(result, text=text, finish="stop") for text in result.choices[1:])]
    kinds: list[FailureKind] = []
    for finding in chain.from_iterable(read(ask, choice) for choice in choices):
        if not isinstance(finding, Unjudged):
            return None
        kinds.append(finding.failure.kind)
    kinds.sort(key=lambda kind: kind not in REASKED)  # stable: those that a re-ask may cure come first
    return kinds[0]


# -- sessions ----------------------------------------------------------------------------------------------
#
# Every open store is a session. When a process dies, others may take over its calls; this is how they learn of it. An
# OS lock for each session would not do: a process that is stopped keeps its lock for ever, while its heartbeat stops,
# and every killed session would leave a lock file behind. Process ids tell at once, but only within one space of
# process ids, so not between containers; heartbeats tell everywhere, after ten seconds.

HEARTBEAT = 1.0
"""Seconds between two heartbeats of a session with requests in flight."""

_SILENCE = 10.0
"""Seconds without a heartbeat after which a session counts as dead. By our own monotonic clock, which is never set."""


@frozen
class Session:
    """A process that has opened the store, and its last heartbeat."""

    id: int
    host: str
    pid: int
    heartbeat: int
    is_open: bool


@cache
def here() -> str:
    """Return the name of the space of process ids that this process is in."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return socket.gethostname()


class Liveness:
    """Decides which sessions are alive, from the heartbeats seen so far."""

    def __init__(self, own: int) -> None:
        self._own = own
        self._seen: dict[int, tuple[int, float]] = {}

    def is_alive(self, session: Session) -> bool:
        """True if *session* may still bring the reply to a request it has sent."""
        if session.id == self._own:
            return True
        if not session.is_open or _has_ended(session):
            return False
        heartbeat, since = self._seen.get(session.id, (-1, 0.0))
        now = time.monotonic()
        if heartbeat != session.heartbeat:
            self._seen[session.id] = (session.heartbeat, now)
            return True
        return now - since < _SILENCE


def _has_ended(session: Session) -> bool:
    if os.name != "posix" or session.host != here():
        return False
    try:
        os.kill(session.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # it exists, and belongs to another user
        return False
    try:
        status = Path(f"/proc/{session.pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[:1] in (["Z"], ["X"])  # it ended, and its parent has not waited for it


# -- queries -----------------------------------------------------------------------------------------------

Mode = Literal["read-write", "replay", "refresh"]
InDoubt = Literal["retry", "hold"]


@frozen
class Tally:
    """
    What a store has done since it was opened.

    Args:
        hits: Asks that were served from it.
        sent: Asks that were sent.
        resent: Of these, how many a dead session had sent before: they may have been paid for twice.
        held: Asks that were not sent, because a dead session had sent them.
        saved: The usage that the hits once cost.
    """

    hits: int = 0
    sent: int = 0
    resent: int = 0
    held: int = 0
    saved: Usage = Usage()


@frozen
class Served:
    """It was answered before, or failed in a way that grading goes on from."""

    result: Reply | Failure


@frozen
class Yours:
    """The request is free: send it, and finish call *id*. *is_sent*: the call is recorded as sent already."""

    id: int
    is_sent: bool
    is_resent: bool = False


@frozen
class Busy:
    """Another task or session has sent it; look again in a moment."""


@frozen
class Doubtful:
    """It was sent at *sent_at* (seconds since 1970), and its reply is lost."""

    sent_at: float


Claim = Served | Yours | Busy | Doubtful

# The conditions are those of the partial indexes in the schema, to the letter: otherwise SQLite would scan the table.
_CALL = "SELECT id, state, kind, sent_at, result, session FROM calls WHERE key = ?1 AND "
_DONE, _IN_FLIGHT = "state = 'done'", "state IN ('claimed', 'sent', 'in_doubt')"
_UNANSWERED = f"SELECT * FROM ({_CALL}state IN ('unreadable', 'failed') ORDER BY id DESC LIMIT 1)"  # noqa: S608
_FIND = f"{_CALL}{_DONE} UNION ALL {_CALL}{_IN_FLIGHT} UNION ALL {_UNANSWERED}"
_RECORDED = f"{_CALL}{_DONE} UNION ALL {_UNANSWERED}"

_ENTER = f"""
INSERT INTO calls (key, model, skeleton, shared, nonce, session, state, sent_at) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
WHERE NOT EXISTS (SELECT 1 FROM calls WHERE key = ?1 AND {_DONE} AND (session = ?6 OR NOT ?9))
ON CONFLICT (key) WHERE {_IN_FLIGHT} DO NOTHING
"""  # noqa: S608 - made of constants

_REPLACE = "UPDATE calls SET state = 'replaced' WHERE state = 'done' AND key = (SELECT key FROM calls WHERE id = ?)"

_FINISH = """
UPDATE calls SET state = iif(state = ?1, state, ?2), kind = ?3, sent_at = coalesce(sent_at, ?4), ended_at = ?4,
result = ?5 WHERE id = ?6
"""

_MOST_TEXTS = 256


@frozen
class _Call:
    id: int
    state: str
    kind: FailureKind | None
    sent_at: float | None
    result: str | None
    session: int


class Database:
    """
    One session's view of the file.

    Args:
        reader: For lookups, beside the writer; any thread may use it, one at a time.
        writer: For claims and changes, in the writer thread alone; None for a session that only reads.
        in_doubt: Whether calls of dead sessions are sent again.
    """

    def __init__(
        self, reader: sqlite3.Connection, writer: sqlite3.Connection | None, mode: Mode, in_doubt: InDoubt
    ) -> None:
        self.mode = mode
        self.in_doubt = in_doubt
        self.session = 0
        self.tally = Tally()
        self._reader = reader
        self._writer = writer
        self._liveness = Liveness(0)
        self._text_ids: dict[str, int] = {}
        # Several event loops, each in its thread, share one reader and one tally.
        self._lock = threading.Lock()

    @property
    def connection(self) -> sqlite3.Connection:
        assert self._writer is not None  # noqa: S101 - a session that only reads has no writer thread
        return self._writer

    def count(self, *, sent: int = 0, resent: int = 0, held: int = 0, hit: Usage | None = None) -> None:
        """Add to the tally: requests, or a hit that once cost so much."""
        with self._lock:
            now, saved = self.tally, self.tally.saved
            if hit is not None:
                saved += hit if hit.cost is not None else evolve(hit, cost=0.0)
            hits = now.hits + (hit is not None)
            self.tally = Tally(hits, now.sent + sent, now.resent + resent, now.held + held, saved)

    def close(self) -> None:
        """Close the file; the writer last, since the last connection moves the log into the file."""
        with self._lock:
            self._reader.close()
        if self._writer is not None:
            self._writer.close()

    # -- lookups, in any thread --

    def look(self, request: Request, *, goes_on: bool) -> Served | Busy | None:
        """
        Return the stored answer to *request*; `Busy` if only a claim can tell more, None if it is free.

        *goes_on*: grading asks again, as another ask, if the reply says nothing.
        """
        with self._lock:
            try:
                found = self._find(self._reader, request, goes_on=goes_on)
            except sqlite3.OperationalError:  # locked: the writer thread waits for it, an event loop must not
                return Busy()
        return Busy() if isinstance(found, _Call) else found

    def recall(self, request: Request) -> Served | None:
        """Return the recorded answer to *request*, or else its last failure; None if there is neither."""
        with self._lock:
            row = self._reader.execute(_RECORDED, (bytes.fromhex(request.key),)).fetchone()
        return None if row is None else Served(load(_Call(*row).result or "", request.key))

    def is_elsewhere(self, request: Request) -> bool:
        """True if the same request was recorded at another address."""
        query = "SELECT body FROM texts WHERE id IN (SELECT skeleton FROM calls WHERE model = ?) LIMIT 256"
        with self._lock:
            bodies = self._reader.execute(query, (request.model,)).fetchall()
        texts = [zlib.decompress(body).decode("utf-8", "surrogatepass") for (body,) in bodies]
        found = {"", *(each for text in texts for each in re.findall(r'"endpoint":"(\w+)"', text))}
        return any(self.recall(evolve(request, key=key_at(request, each))) for each in found)

    def _find(self, connection: sqlite3.Connection, request: Request, *, goes_on: bool) -> Served | _Call | None:
        """Return the stored answer, or else the call that is in flight."""
        for row in connection.execute(_FIND, (bytes.fromhex(request.key),)):  # a hit ends the query at its first row
            call = _Call(*row)
            if call.state in ("claimed", "sent", "in_doubt"):
                return call
            # A refreshing session serves only what it has asked for itself.
            counts = self.mode != "refresh" or call.session == self.session
            if counts and (call.state == "done" or (goes_on and call.kind in REASKED)):
                return Served(load(call.result or "", request.key))
        return None

    # -- the session, in the writer thread --

    def begin(self) -> None:
        """Open this session."""
        row = (here(), os.getpid(), self.mode, time.time())
        self.session = self._insert("INSERT INTO sessions (host, pid, mode, started_at) VALUES (?, ?, ?, ?)", row)
        self._liveness = Liveness(self.session)

    def end(self) -> None:
        """Close this session: it sends nothing any more."""
        self.beat()
        self.connection.execute("UPDATE sessions SET is_open = 0 WHERE id = ?", (self.session,))

    def beat(self) -> None:
        """Record a heartbeat, and the savings so far."""
        tally = self.tally
        self.connection.execute(
            "UPDATE sessions SET heartbeat = heartbeat + 1, hits = ?, saved_calls = ?, saved_cost = ? WHERE id = ?",
            (tally.hits, tally.saved.calls, tally.saved.cost, self.session),
        )

    def forget(self) -> None:
        """Forget the ids of texts: a transaction that was rolled back may have given them out."""
        self._text_ids.clear()

    # -- calls, in the writer thread --

    def claim(self, request: Request, *, goes_on: bool, leaves: bool, is_new: bool = False) -> Claim:
        """
        Claim *request* for this session, unless it is answered or another session has it; *leaves*: sent at once.

        *is_new*: it was free a moment ago, and so most likely is now. *goes_on* is as for `look`.
        """
        if is_new and (claim := self._enter(request, leaves=leaves)) is not None:
            return claim
        found = self._find(self.connection, request, goes_on=goes_on)
        if isinstance(found, Served):
            return found
        if found is not None and found.state != "in_doubt":
            query = "SELECT id, host, pid, heartbeat, is_open FROM sessions WHERE id = ?"
            if self._liveness.is_alive(Session(*self.connection.execute(query, (found.session,)).fetchone())):
                return Busy()
        # It is free, held by a dead session, or in doubt.
        is_resent = found is not None and found.state != "claimed"
        if found is not None and is_resent and self.in_doubt == "hold":
            return Doubtful(found.sent_at or 0.0)
        if found is not None:
            change = "UPDATE calls SET state = 'resent' WHERE id = ?" if is_resent else "DELETE FROM calls WHERE id = ?"
            self.connection.execute(change, (found.id,))
        claim = self._enter(request, leaves=leaves)
        assert claim is not None  # noqa: S101 - nothing is in its way any more
        return evolve(claim, is_resent=is_resent)

    def leave(self, call: int) -> bool:
        """Record that *call* is sent, and return whether it may be: not if another session has taken it over."""
        sent = "UPDATE calls SET state = 'sent', sent_at = ? WHERE id = ? AND state IN ('claimed', 'sent')"
        return self.connection.execute(sent, (time.time(), call)).rowcount > 0

    def stay(self, call: int) -> None:
        """Record that the server turned *call* away; it may be sent again."""
        self.connection.execute("UPDATE calls SET state = 'claimed' WHERE id = ? AND state = 'sent'", (call,))

    def finish(self, call: int, request: Request, result: Reply | Failure, kind: FailureKind | None) -> None:
        """Store the *result* of *call*; *kind* is why it says nothing, None for an answer."""
        state = "done" if kind is None else "unreadable"
        if kind is not None and isinstance(result, Failure):
            state = "in_doubt" if result.in_doubt else "failed"
        # A call that another session has taken over and sent again is no longer in doubt here, but there.
        kept = "resent" if state == "in_doubt" else ""
        row = (kept, state, kind, time.time(), dump(result, request.key), call)
        try:
            self.connection.execute(_FINISH, row)
        except sqlite3.IntegrityError:
            # There is an answer already: this is a refresh, or a session that was taken for dead has come back.
            self.connection.execute(_REPLACE, (call,))
            self.connection.execute(_FINISH, row)

    def drop(self, call: int) -> None:
        """Forget *call*: it was never sent."""
        self.connection.execute("DELETE FROM calls WHERE id = ? AND state IN ('claimed', 'sent')", (call,))

    def doubt(self, call: int) -> None:
        """Record that *call* was sent, and that no task waits for its reply any more."""
        self.connection.execute(
            "UPDATE calls SET state = 'in_doubt', ended_at = ? WHERE id = ? AND state IN ('claimed', 'sent')",
            (time.time(), call),
        )

    def _enter(self, request: Request, *, leaves: bool) -> Yours | None:
        """Insert a call; None if the request is answered or in flight."""
        state, sent_at = ("sent", time.time()) if leaves else ("claimed", None)
        skeleton, shared = self._text(request.skeleton), self._text(request.shared) if request.shared else None
        row = (bytes.fromhex(request.key), request.model, skeleton, shared, request.nonce, self.session, state, sent_at)
        done = self.connection.execute(_ENTER, (*row, self.mode == "refresh"))
        return Yours(done.lastrowid or 0, leaves) if done.rowcount else None

    def _text(self, text: str) -> int:
        """Return the id of *text*, which is stored once."""
        known = self._text_ids.get(text)
        if known is None:
            data = text.encode("utf-8", "surrogatepass")
            place = hashlib.sha256(data).digest()
            row = self.connection.execute("SELECT id FROM texts WHERE digest = ?", (place,)).fetchone()
            statement = "INSERT INTO texts (digest, body) VALUES (?, ?)"
            known = row[0] if row else self._insert(statement, (place, zlib.compress(data)))
            if len(self._text_ids) >= _MOST_TEXTS:
                self._text_ids.clear()
            self._text_ids[text] = known
        return known

    def _insert(self, statement: str, row: tuple[object, ...]) -> int:
        number = self.connection.execute(statement, row).lastrowid
        assert number is not None  # noqa: S101 - an insert has one
        return number
