"""Files: read within bounds and without hanging, parsed as YAML 1.2 or JSON, written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Literal

from rubric.errors import DefinitionError, DumpError, LoadError
from rubric.formats.document import FOR_RUBRICS, Document, Limits, refused
from rubric.formats.json import parse_json
from rubric.formats.yaml import parse_yaml
from rubric.internals.atomic_write import replacing
from rubric.internals.fields import refuse_path
from rubric.internals.text import shorten

Language = Literal["yaml", "json"]

WHOLE = (0, 0)
"""The place of a problem of the file as a whole, which no line has."""

_MARKS = (".agentv", "package.json", "pyproject.toml")
CONFIGS = tuple(f"promptfooconfig.{suffix}" for suffix in ("yaml", "yml", "json", "js", "cjs", "mjs", "ts"))
"""How promptfoo calls its configuration."""

_INSTALLED = frozenset({"node_modules", "site-packages", "dist-packages"})


def project_of(file: Path) -> Path:
    """
    Return the folder from which *file* may include others by default: the project that it belongs to.

    That is the nearest folder around it with a `.git`; else the nearest with `.agentv`, `package.json`,
    `pyproject.toml` or (another file than itself) `promptfooconfig.*`; else its own folder. The search ends below the
    home folder, the top of the file system and folders that everybody may write to: a stray `package.json` there must
    not open all of it to a downloaded file. An installed package is a project of its own.
    """
    folder = Path(os.path.abspath(file.parent))  # noqa: PTH100  # resolve() would follow links out of the project
    nearest = None
    for parent in (folder, *folder.parents):
        if _belongs_to_many(parent):
            break
        if os.path.lexists(parent / ".git"):
            nearest = parent
            break
        marks = [*_MARKS, *(name for name in CONFIGS if parent / name != folder / file.name)]
        if nearest is None and any(os.path.lexists(parent / mark) for mark in marks):
            nearest = parent
        if parent.parent.name in _INSTALLED:
            break
    if nearest is None or nearest == folder:
        return file.parent
    return nearest if file.is_absolute() else Path(os.path.relpath(nearest))


def around(file: Path) -> frozenset[str]:
    """Return the names in the folder of *file*, and above it in its project, that tell which system's it is."""
    root, folder = Path(os.path.abspath(project_of(file))), Path(os.path.abspath(file.parent))  # noqa: PTH100
    folders = [parent for parent in (folder, *folder.parents) if parent.is_relative_to(root)]
    return frozenset(name for name in (*CONFIGS, ".agentv") if any(os.path.lexists(one / name) for one in folders))


def _belongs_to_many(folder: Path) -> bool:
    """True for a home folder, a folder above one, and one that everybody may write to, such as `/tmp`."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    try:
        everybody = os.name != "nt" and folder.stat().st_mode & stat.S_IWOTH
    except OSError:
        return True
    return bool(everybody) or folder.parent == folder or (home.is_absolute() and home.is_relative_to(folder))


def parse(text: str, source: str, language: Language = "yaml", limits: Limits = FOR_RUBRICS) -> Document:
    """
    Return *text* as a document.

    JSON within YAML is read as JSON: the escapes of a pair of surrogates are one character in JSON, and two in YAML.

    Raises:
        LoadError: It is no YAML (or JSON), it holds nothing, or it is beyond the limits.
    """
    if len(text) > limits.largest or len(text.encode("utf-8", "surrogatepass")) > limits.largest:
        raise too_large(source, limits)
    text = text.removeprefix("\ufeff")
    parser = parse_json if language == "json" or _is_json(text) else parse_yaml
    root = parser(text, source, limits)
    if root is None:
        raise refused(source, (1, 1), "there is nothing in it; a rubric has `criteria`, `text` or `tree`")
    named = _SCHEMA.search(text[:_HEAD])
    return Document(source, root, named[1] if named else "")


_SCHEMA = re.compile(r"^#\s*yaml-language-server:\s*\$schema=(\S+)", re.MULTILINE)

_HEAD = 2_000
"""Characters in which editors look for the schema of a file."""


def given_text(text: object, load: str) -> str:
    """
    Return *text*, given as the text of a document; *load* names the function that takes a path.

    Raises:
        DefinitionError: It is no text, or the path of a file.
    """
    if isinstance(text, str):
        refuse_path("text", text, f"give {load}({text!r}) to have the file read")
        return text
    match text:
        case bytes() | bytearray():
            cure = "; decode it: data.decode()"
        case PurePath():
            cure = f"; give {load}({str(text)!r})"
        case Mapping() | list():
            cure = "; give json.dumps(data), which is read as well"
        case _:
            cure = ""
    raise DefinitionError("text", f"expected the text of a document, got {shorten(repr(text))}{cure}")


def too_large(source: str, limits: Limits) -> LoadError:
    return refused(source, WHOLE, f"a file has at most {limits.largest // 1024} KiB; split it")


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError:
        return True  # the parser of JSON refuses it at once
    except ValueError:
        return False
    return True


def read_text(path: Path, base: Path | None = None, limits: Limits = FOR_RUBRICS) -> str:
    """
    Return the text of the file at *path*, which must be within *base* where that is given.

    Raises:
        LoadError: There is no such file, it is no plain file (a folder, a pipe, a device), it leaves *base*, it is too
            large, or it is not UTF-8.
    """
    source = str(path)
    data = read_bytes(path, base, limits.largest + 4)
    if len(data.removeprefix(b"\xef\xbb\xbf")) > limits.largest:
        raise too_large(source, limits)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        before = problem.object[: problem.start]
        start = before.rfind(b"\n") + 1
        place = before.count(b"\n") + 1, len(before[start:].decode("utf-8", "replace")) + 1
        message = f"the byte 0x{problem.object[problem.start]:02x} is not UTF-8; save the file as UTF-8"
        raise refused(source, place, message) from None


def read_bytes(path: Path, base: Path | None, most: int) -> bytes:
    """
    Return the first *most* bytes of the file at *path*, which must be within *base* where that is given.

    Raises:
        LoadError: There is no such file, it is no plain file (a folder, a pipe, a device), or it leaves *base*.
    """
    source = str(path)
    try:
        found = path.resolve(strict=True)
        if base is not None and not found.is_relative_to(base.resolve()):
            raise refused(source, WHOLE, f"this file is outside of {base}; move it there")
        handle = os.open(found, _FLAGS)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise refused(source, WHOLE, _no_file(found, base))
        with os.fdopen(handle, "rb") as file:
            return file.read(most)
    except LoadError:
        raise
    except (OSError, ValueError, RuntimeError) as problem:  # a loop of links was a RuntimeError until 3.13
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise refused(source, WHOLE, f"this file cannot be read: {reason}") from None


def _no_file(path: Path, base: Path | None) -> str:
    """Return why *path* is not read; of a folder that the user named, with the files in it that may be meant."""
    names: list[str] = []
    if base is None and path.is_dir():
        names = sorted(one.name for one in path.iterdir() if one.suffix in (".yaml", ".yml", ".json"))
    if not names:
        return "this is no file (but a folder, a pipe or a device); name a file"
    more = f" (and {len(names) - _SHOWN} more)" * (len(names) > _SHOWN)
    return f"this is no file but a folder; name one in it: {', '.join(names[:_SHOWN])}{more}"


_SHOWN = 5


# Without O_NONBLOCK, opening a pipe that nobody writes to would hang.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


def write_text(path: Path, text: str) -> None:
    """
    Put *text* into the file at *path*; a reader finds the old text or the new one, whole.

    Raises:
        DumpError: *path* is something else than a plain file.
        OSError: It cannot be written.
    """
    if path.exists() and not path.is_file():
        raise DumpError(f"{path.resolve()} is not a file that can be written; choose another name")
    with replacing(path) as file:
        file.write(text)
