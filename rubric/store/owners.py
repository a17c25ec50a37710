"""
Who else writes to the file, and whether they are still there.

A write-ahead log is shared by processes of one machine alone. Where both are in one space of process ids, an id that is
gone tells at once; elsewhere a session counts as gone when its beat has not changed for ten seconds of our own clock,
so that a clock that is set changes nothing.
"""

from __future__ import annotations

import os
import socket
import time
from functools import cache
from pathlib import Path

from attrs import frozen

__all__ = ["BEAT", "Owner", "Watch", "here"]

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
