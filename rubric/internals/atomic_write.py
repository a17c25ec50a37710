"""Files that are replaced as a whole: whoever reads one finds the old text or the new one, never half of it."""

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
    Open a file of UTF-8 to write, which takes the place of the one at *path* at the end; until then that one stays.

    If anything is raised meanwhile, nothing is left of the new one. What is no plain file (a pipe, a device) is written
    to as it is.

    Args:
        errors: What becomes of text that UTF-8 has no bytes for, as for `open`.

    Raises:
        OSError: It cannot be written.
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
            os.fsync(file.fileno())
        if mode is not None:
            fresh.chmod(stat.S_IMODE(mode))
        fresh.replace(target)
    except BaseException:
        with suppress(OSError):
            fresh.unlink()
        raise
