"""Replace a file as a whole: a reader finds the old text or the new one."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO


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
