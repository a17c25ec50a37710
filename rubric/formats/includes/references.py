"""
Which file a reference names, and whether it may be read: only what is below the base, links resolved.

What leaves the base is refused before the disk is asked, so that no message tells what exists elsewhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from attrs import define, frozen

from rubric.errors import DefinitionError
from rubric.formats.includes.loading import Loading
from rubric.showing import shorten

__all__ = ["Located", "bare", "expand", "is_code", "is_pattern", "locate", "quoted"]

LONGEST = 1000
"""Characters of one reference."""
MOST_MATCHES = 256
"""Files that one pattern may match."""
MOST_ENTRIES = 20_000
"""Entries of folders that are looked at for one pattern."""


@frozen
class Located:
    """A file that may be read: the *real* path, links resolved, and the path that messages show."""

    real: Path
    shown: Path


def bare(reference: str) -> str:
    """Return *reference* without its `file://`; a `DefinitionError` says what no reference holds."""
    text = reference.strip()
    name = text.removeprefix("file://")
    for fits, message in _REFUSED:
        if fits(name):
            raise DefinitionError("", f"{quoted(reference)}: {message}")
    return name


def quoted(reference: str) -> str:
    """Return *reference* as messages show it."""
    return shorten(repr(reference), 120)


_CODE = re.compile(r"\.(?:[cm]?[jt]sx?|py|rb|go|sh|bash|ps1|bat|cmd|exe|lua|php|pl|wasm)(?::\w+)?$", re.IGNORECASE)


def is_code(name: str) -> bool:
    """Tell whether *name* is that of a program, or of a function in one (`checks.py:grade`)."""
    return _CODE.search(name) is not None


_SHELL = re.compile(r"\$|%\w+%")
_ENCODED = re.compile("%[0-9A-Fa-f]{2}")

_REFUSED = (
    (lambda name: len(name) > LONGEST, f"the name of a file has at most {LONGEST} characters"),
    (lambda name: not name.isprintable(), "the name of a file holds no control or invisible characters; retype it"),
    (lambda name: not name.strip("./ "), "this names no file; write the file's path from here"),
    (lambda name: "{{" in name or "{%" in name, "variables cannot stand in the name of a file; write it out"),
    (lambda name: "\\" in name, "write / between folders, not a backslash"),
    (_ENCODED.search, "percent-encoding is not read; write the name as it is"),
    (_SHELL.search, "write a declared environment variable as {{ env.NAME }}"),
    (lambda name: name.startswith("//"), "another machine's files are not read; name a file below the base"),
    (lambda name: name.startswith("~"), "home folders are not read; name a file below the base"),
    (
        lambda name: ":" in name and not is_code(name),
        "only files are read: file:// and the path from here, without a colon",
    ),
)


def is_pattern(name: str) -> bool:
    """Tell whether *name* stands for several files."""
    return any(letter in name for letter in "*?[")


def locate(name: str, loading: Loading) -> Located:
    """
    Return the file that *name* (a path from the folder of *loading*) leads to, whether or not it is there.

    Raises:
        DefinitionError: It may not be read.
    """
    root, folder = _folders(loading)
    relative = _below(name, root, folder, loading)
    _refuse_secrets(relative, name)
    real = _real(root / relative, name)
    if not real.is_relative_to(root):
        raise DefinitionError("", f"{quoted(name)}: {_outside(loading)}")
    _refuse_secrets(real.relative_to(root), name)
    if real.parts[:2] in _MACHINE:
        raise DefinitionError("", f"{quoted(name)}: this belongs to the machine and is not read; name another file")
    return Located(real, (loading.root or root) / relative)


_MACHINE = {("/", "proc"), ("/", "sys"), ("/", "dev")}


def _folders(loading: Loading) -> tuple[Path, Path]:
    """Return the real base and the real folder."""
    if loading.root is None or loading.folder is None:
        message = "a text that stands in no file names none; load it from a file, or give the folder (base=...)"
        raise DefinitionError("", message)
    return Path(os.path.realpath(loading.root)), Path(os.path.realpath(loading.folder))


def _below(name: str, root: Path, folder: Path, loading: Loading) -> Path:
    """Return the path from *root* of what *name* says, without asking the disk."""
    found = Path(os.path.normpath(folder / name))
    given = Path(os.path.abspath(loading.root or root))  # noqa: PTH100  # resolve() would ask the disk
    for top in (root, given):
        if found.is_relative_to(top):
            return found.relative_to(top)
    raise DefinitionError("", f"{quoted(name)}: {_outside(loading)}")


def _outside(loading: Loading) -> str:
    return f"this is outside of {loading.root}, and nothing outside of it is read; move the file, or give a wider base="


def _real(path: Path, name: str) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # a loop of links was a RuntimeError until 3.13
        raise DefinitionError("", f"{quoted(name)}: the links of this file lead nowhere; name another") from None


_SECRET = re.compile(
    r"\.env(?:\..*|rc)?|\.(?:git|hg|svn|ssh|aws|gnupg|kube|docker|azure)|\.(?:netrc|npmrc|pypirc|pgpass|htpasswd)"
    r"|.*\.(?:pem|key|p12|pfx|keystore)|id_(?:rsa|dsa|ecdsa|ed25519)|credentials(?:\.json)?",
    re.IGNORECASE,
)


def _refuse_secrets(relative: Path, name: str) -> None:
    if any(_SECRET.fullmatch(part) for part in relative.parts):
        message = f"{quoted(name)}: files of this name hold secrets and are not read; name another file"
        raise DefinitionError("", message)


def expand(name: str, loading: Loading) -> list[str]:
    """
    Return the names that the pattern *name* matches, sorted; links to folders are not followed, `**` is any depth.

    Raises:
        DefinitionError: It may not be read, matches nothing, or too much.
    """
    root, folder = _folders(loading)
    parts = _below(name, root, folder, loading).parts
    steps = [step for step, before in zip(parts, ("", *parts), strict=False) if (step, before) != ("**", "**")]
    try:
        paths = {*_Search().walk(root, tuple(steps))}
    except RecursionError:
        raise DefinitionError("", f"{quoted(name)}: the folders here nest too deep; name them") from None
    found = sorted(os.path.relpath(path, folder).replace(os.sep, "/") for path in paths)
    if not found:
        raise DefinitionError("", f"{quoted(name)}: no file matches this; check the pattern")
    if len(found) > MOST_MATCHES:
        raise DefinitionError("", f"{quoted(name)}: more than {MOST_MATCHES} files match this; narrow the pattern")
    return found


@define
class _Search:
    """Looks for files, at no more than so many entries."""

    entries: int = 0

    def walk(self, folder: Path, steps: tuple[str, ...]) -> Iterator[Path]:
        """Yield the files below *folder* that *steps* match."""
        if not steps:
            return
        if not is_pattern(steps[0]):
            yield from self._into(folder / steps[0], steps[1:])
            return
        if steps[0] == "**":
            yield from self.walk(folder, steps[1:])
        for entry in self._entries(folder):
            yield from self._take(Path(entry.path), steps, is_folder=entry.is_dir(follow_symlinks=False))

    def _into(self, path: Path, steps: tuple[str, ...]) -> Iterator[Path]:
        if not steps:
            if os.path.lexists(path):
                yield path
        elif os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  # those of Path may raise
            yield from self.walk(path, steps)

    def _take(self, path: Path, steps: tuple[str, ...], *, is_folder: bool) -> Iterator[Path]:
        if path.name.startswith(".") and not steps[0].startswith("."):
            return
        if steps[0] == "**":
            yield from self.walk(path, steps) if is_folder else ()
        elif fnmatchcase(path.name, steps[0]):
            yield from self.walk(path, steps[1:]) if is_folder else [path] * (len(steps) == 1)

    def _entries(self, folder: Path) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return []
        self.entries += len(found) + 1
        if self.entries > MOST_ENTRIES:
            message = f"a pattern looks at no more than {MOST_ENTRIES} files; narrow it"
            raise DefinitionError("", message)
        return found
