"""Reading and writing the files themselves: bounded, never hanging, never half written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rubric.errors import DumpError, LoadError
from rubric.formats.growing import FOR_RUBRICS, Limits, refused
from rubric.formats.parsing import too_large
from rubric.replacing import replacing

__all__ = ["read_text", "write_text"]


def read_text(path: Path, base: Path | None = None, limits: Limits = FOR_RUBRICS) -> str:
    """
    Return the text of the file at *path*, which must be within *base* where that is given.

    Raises:
        LoadError: There is no such file, it is no plain file (a folder, a pipe, a device), it leaves *base*, it is too
            large, or it is not UTF-8.
    """
    source = str(path)
    try:
        return _decode(_read(_within(path, base), source, limits), source)
    except LoadError:
        raise
    except (OSError, ValueError, RuntimeError) as problem:  # a loop of links was a RuntimeError until 3.13
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise refused(source, (1, 1), f"this file cannot be read: {reason}") from None


def _within(path: Path, base: Path | None) -> Path:
    found = path.resolve(strict=True)
    if base is not None and not found.is_relative_to(base.resolve()):
        raise refused(str(path), (1, 1), f"this file is outside of {base}; move it there")
    return found


_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def _read(path: Path, source: str, limits: Limits) -> bytes:
    handle = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise refused(source, (1, 1), "this is no file (but a folder, a pipe or a device); name a file")
    with os.fdopen(handle, "rb") as file:
        data = file.read(limits.largest + 4)
    if len(data.removeprefix(b"\xef\xbb\xbf")) > limits.largest:
        raise too_large(source, limits)
    return data


def _decode(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        before = problem.object[: problem.start]
        start = before.rfind(b"\n") + 1
        place = before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1
        message = f"the byte 0x{problem.object[problem.start]:02x} is not UTF-8; save the file as UTF-8"
        raise refused(source, place, message) from None


def write_text(path: Path, text: str) -> None:
    """
    Put *text* into the file at *path*: whoever reads it finds the old text or the new one, whole.

    Raises:
        DumpError: What stands there is no plain file.
        OSError: It cannot be written.
    """
    if path.exists() and not path.is_file():
        msg = f"{path.resolve()} is not a file that can be written; choose another name"
        raise DumpError(msg)
    with replacing(path) as file:
        file.write(text)
