"""Replace a file as a whole: a reader finds the old text or the new one, and writers take turns."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def replacing(path: str | Path, errors: str = "strict") -> Iterator[TextIO]:
    """
    Open a UTF-8 file to write, which replaces the one at *path* when the block ends.

    If the block raises, the old file stays and nothing is left of the new one. A pipe or a device cannot be replaced,
    and is written to directly.

    Args:
        errors: How text is written that UTF-8 has no bytes for, as for `open`.

    Raises:
        OSError: The file cannot be written.
    """
    target = Path(path).resolve()
    mode = target.stat().st_mode if target.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        with target.open("w", encoding="utf-8", errors=errors, newline="\n") as file:
            yield file
        return
    fresh = target.with_name(f".{target.name[:80]}.{secrets.token_hex(4)}.tmp")
    try:
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        with os.fdopen(handle, "w", encoding="utf-8", errors=errors, newline="\n") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # before the rename: a power cut could keep the new name without its text
        if mode is not None:
            fresh.chmod(stat.S_IMODE(mode))
        fresh.replace(target)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """
    Hold the lock on the file at *path*, for which other threads and processes wait.

    The system holds it on a hidden file beside the real one, which is replaced meanwhile. A process that is killed
    leaves no lock, and the hidden file goes with its last holder.

    Raises:
        OSError: The folder cannot be written to, or its file system has no locks.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name[:80]}.lock")
    while True:
        with beside.open("ab") as file:
            _wait_for(file.fileno())
            with suppress(FileNotFoundError):  # a holder before may have removed it: others would lock a new file
                if os.path.samestat(os.fstat(file.fileno()), beside.stat()):
                    try:
                        yield
                    finally:
                        with suppress(OSError):  # on Windows, where others have it open
                            beside.unlink()
                    return


def _wait_for(handle: int) -> None:
    """Wait until no other process holds the lock on the open file *handle*, and take it."""
    if sys.platform == "win32":
        while True:
            with suppress(OSError):  # it gives up after ten seconds
                msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
                return
    else:
        fcntl.flock(handle, fcntl.LOCK_EX)
