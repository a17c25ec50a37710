"""
Files that a file names: `file://rubric.md`, `tests/*.yaml`, `cases.csv`.

Only files below the base are read, with links resolved, and code is never run. What leaves the base is refused before
the disk is asked, so that no message tells what exists elsewhere. Every refusal is noted where the reference is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from attrs import define, frozen

from rubric import DefinitionError, LoadError
from rubric.embed import Cursor, Loading, Wording, shorten
from rubric.formats.files import read_bytes
from rubric.formats.templates.environment import show_environment

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
    """Return *reference* without its `file://`; a `DefinitionError` names a part that no reference may have."""
    text = reference.strip()
    name = text.removeprefix("file://")
    for fits, message in _REFUSED:
        if fits(name):
            raise _refusal(reference, message)
    return name


def quote(reference: str) -> str:
    """Return *reference* as messages show it."""
    return shorten(repr(reference), 120)


def _refusal(reference: str, why: str) -> DefinitionError:
    return DefinitionError("", f"{quote(reference)}: {why}")


_CODE = re.compile(r"\.(?:[cm]?[jt]sx?|py|rb|go|sh|bash|ps1|bat|cmd|exe|lua|php|pl|wasm)(?::[\w.]+)?$", re.IGNORECASE)


def is_code(name: str) -> bool:
    """True if *name* is that of a program, or of a function in one (`checks.py:grade`)."""
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
    """True if *name* is a pattern for several files."""
    return any(letter in name for letter in "*?[")


def locate(name: str, loading: Loading) -> Located:
    """Return the file of *name*, in the first of the folders that has it; one that may not be read is refused."""
    found: Located | None = None
    refused: DefinitionError | None = None
    for path, folder in _candidates(name, loading):
        try:
            located = _within(path, folder, name, loading)
        except _OutsideError as error:  # nothing is asked about it; another folder may have the file
            refused = refused or error
            continue
        if os.path.exists(located.real):  # noqa: PTH110  # that of Path may raise
            return located
        found = found or located
    if found is None:
        assert refused is not None  # noqa: S101 - there is at least one folder
        raise refused
    return found


def may_be_read(name: str, loading: Loading, is_there: Callable[[Path], bool] = os.path.isfile) -> bool:
    """True if *name* is that of a file that *is_there*, and that may be read; `Path` has tests that may raise."""
    try:
        return is_there(locate(bare(name), loading).real)
    except DefinitionError:
        return False


def is_outside(name: str, loading: Loading) -> bool:
    """True if *name* leads out of the base, which a load refuses rather than leaving a case ungraded."""
    try:
        locate(bare(name), loading)
    except _OutsideError:
        return True
    except DefinitionError:
        pass
    return False


class LackingFileError(DefinitionError):
    """A file is not there, is not text, or is outside of the base."""


class _OutsideError(LackingFileError):
    """The file is outside of the base."""


class _UnmatchedError(DefinitionError):
    """A pattern matches no file."""


def _candidates(name: str, loading: Loading) -> Iterator[tuple[str, Path]]:
    """Yield each path that *name* may be, and the folder from which it starts."""
    root, folder = _folders(loading)
    if not loading.climbs or not name.startswith("/"):
        yield from ((name, start) for start in _starts(root, folder, loading))
        return
    if Path(name).is_relative_to(root) or Path(name).is_relative_to(os.path.abspath(loading.root or root)):  # noqa: PTH100
        yield name, folder
    yield from ((name.lstrip("/"), start) for start in _starts(root, folder, loading))


def _starts(root: Path, folder: Path, loading: Loading) -> list[Path]:
    """Return the folders from which the names of files start."""
    if not loading.climbs:
        first = folder if loading.first is None else Path(os.path.realpath(loading.first))
        return [*dict.fromkeys([first, folder])]
    above = [parent for parent in folder.parents if parent.is_relative_to(root)]
    here = Path(os.path.realpath(os.curdir))
    return [*dict.fromkeys([folder, *above, *([here] if here.is_relative_to(root) else ())])]


def _within(path: str, folder: Path, name: str, loading: Loading) -> Located:
    root, _ = _folders(loading)
    relative = _below(path, root, folder, loading)
    # Looked at twice: the name as it is written, and where its links lead: `notes.txt` may be a link to `.env`.
    _refuse_secrets(relative, name)
    try:
        real = (root / relative).resolve()
    except (OSError, ValueError, RuntimeError):  # a loop of links was a RuntimeError until 3.13
        raise _refusal(name, "the links of this file lead nowhere; name another") from None
    if not real.is_relative_to(root):
        raise _outside(name, loading)
    _refuse_secrets(real.relative_to(root), name)
    if real.parts[:2] in _MACHINE:
        raise _refusal(name, "this belongs to the machine and is not read; name another file")
    return Located(real, (loading.root or root) / relative)


_MACHINE = {("/", "proc"), ("/", "sys"), ("/", "dev")}


def _outside(name: str, loading: Loading) -> _OutsideError:
    base = os.path.abspath(loading.root or "")  # noqa: PTH100  # "." tells nobody which folder is meant
    why = f"{quote(name)}: this is outside of {base}, and nothing outside of it is read"
    return _OutsideError("", Wording(why, "; move the file, or give a wider ", base=None))


def from_here(name: str, loading: Loading) -> str:
    """Return the path to the file *name* from the folder of the file that names it."""
    return os.path.relpath(locate(name, loading).real, _folders(loading)[1]).replace(os.sep, "/")


def describe_search(loading: Loading) -> str:
    """Return the folders in which files are looked for, in words."""
    root, folder = _folders(loading)
    where = shorten(str(loading.folder), 120)
    starts = _starts(root, folder, loading)
    if not loading.climbs and len(starts) > 1:
        return f"which starts at {shorten(str(loading.first), 120)}, or at {where}"
    if not loading.climbs or folder == root:
        return f"which starts at {where}"
    return f"looked for in {where}, and in each folder above it up to {shorten(os.path.abspath(root), 120)}"  # noqa: PTH100


def _folders(loading: Loading) -> tuple[Path, Path]:
    if loading.root is None or loading.folder is None:
        message = "a text that stands in no file names none; load it from a file, or give the folder (base=...)"
        raise DefinitionError("", message)
    return Path(os.path.realpath(loading.root)), Path(os.path.realpath(loading.folder))


def _below(name: str, root: Path, folder: Path, loading: Loading) -> Path:
    """Return the path of *name* from *root*, without asking the disk."""
    found = Path(os.path.normpath(folder / name))
    given = Path(os.path.abspath(loading.root or root))  # noqa: PTH100  # resolve() would ask the disk
    for top in (root, given):
        if found.is_relative_to(top):
            return found.relative_to(top)
    raise _outside(name, loading)


_SECRET = re.compile(
    r"\.env(?:\..*|rc)?|\.(?:git|hg|svn|ssh|aws|gnupg|kube|docker|azure|gcloud|terraform)"
    r"|\.(?:netrc|npmrc|yarnrc(?:\.yml)?|pypirc|pgpass|htpasswd|git-credentials|dockercfg|vault-token|boto|s3cfg)"
    r"|.*\.(?:pem|key|p12|pfx|jks|keystore|kdbx|ppk|tfstate|tfvars|env)|id_(?:rsa|dsa|ecdsa|ed25519)"
    r"|credentials(?:\.json)?|secrets?\.(?:json|ya?ml|toml|ini)|service[-_]account[\w.-]*\.json",
    re.IGNORECASE,
)


def _refuse_secrets(relative: Path, name: str) -> None:
    if any(is_secret(part) for part in relative.parts):
        raise SecretFileError("", f"{quote(name)}: files of this name hold secrets and are not read; name another file")


def is_secret(name: str) -> bool:
    """True if files and folders of this *name* hold secrets, such as `.env` and `.git`."""
    return _SECRET.fullmatch(name) is not None


class SecretFileError(DefinitionError):
    """Files of this name hold secrets."""


def expand(name: str, loading: Loading) -> list[str]:
    """Return the names that the pattern *name* matches, sorted; refuse none, and too many. No links are followed."""
    root, folder = _folders(loading)
    found: list[str] = []
    refused: DefinitionError | None = None
    for path, start in _candidates(name, loading):
        try:
            parts = _below(path, root, start, loading).parts
        except _OutsideError as error:
            refused = refused or error
            continue
        steps = [step for step, before in zip(parts, ("", *parts), strict=False) if (step, before) != ("**", "**")]
        try:
            paths = {*_Search().walk(root, tuple(steps))}
        except RecursionError:
            raise _refusal(name, "the folders here nest too deep; name them") from None
        first = _starts(root, folder, loading)[0]
        found = sorted(os.path.relpath(path, first).replace(os.sep, "/") for path in paths)
        if found:
            break
    if not found:
        raise refused or _UnmatchedError("", f"{quote(name)}: no file matches this; check the pattern")
    if len(found) > MOST_MATCHES:
        raise _refusal(name, f"more than {MOST_MATCHES} files match this; narrow the pattern")
    return found


@define
class _Search:
    """Search for files that looks at no more than `MOST_ENTRIES` entries."""

    entries: int = 0

    def walk(self, folder: Path, steps: tuple[str, ...]) -> Iterator[Path]:
        """Yield the files below *folder* that *steps* match."""
        if not steps:
            return
        first, *rest = steps
        if not is_pattern(first):
            path = folder / first
            if not rest:
                if os.path.lexists(path):
                    yield path
            elif os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114  # those of Path may raise
                yield from self.walk(path, tuple(rest))
            return
        if first == "**":
            yield from self.walk(folder, tuple(rest))
        for entry in self._entries(folder):
            yield from self._take(Path(entry.path), steps, is_folder=entry.is_dir(follow_symlinks=False))

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
            raise DefinitionError("", f"a pattern looks at no more than {MOST_ENTRIES} files; narrow it")
        return found


DEEPEST = 8
"""Files that include one another."""

MOST_FILES = 256
"""Different files that one load reads, besides the first."""

MOST_CHARACTERS = 16 * 1024 * 1024
"""Characters that one load takes from them, a file that is named twice counted twice."""

T = TypeVar("T")


def is_reference(value: object) -> bool:
    """True if *value* names a file: a text that starts with `file://`."""
    return isinstance(value, str) and value.lstrip()[:7].lower() == "file://"


def expand_at(at: Cursor, folders: tuple[str, ...] = ()) -> list[Cursor]:
    """
    Return a cursor for each `file://` that the name at the cursor is short for: itself, or what a pattern matches.

    The files are sorted. A pattern (`*`, `?` and `**`) that matches nothing is noted as an error.

    Args:
        folders: The patterns of the files that a folder is short for, the first that matches any; none: a folder is no
            name of files.
    """

    def work(name: str) -> list[str]:
        if is_pattern(name):
            return expand(name, at.loading)
        if folders and not is_code(name) and may_be_read(name, at.loading, os.path.isdir):
            return _in_folder(name, folders, at.loading)
        return [at.value]

    found = read_at(at.value, at, work) or []
    return [at.holding(name if is_reference(name) else f"file://{name}") for name in found]


def _in_folder(name: str, patterns: tuple[str, ...], loading: Loading) -> list[str]:
    for pattern in patterns:
        with suppress(_UnmatchedError):
            return expand(f"{name.rstrip('/')}/{pattern}", loading)
    raise _refusal(name, f"there is no file in this folder that matches {' or '.join(patterns)}; name the files")


def read_text_at(
    reference: str, at: Cursor, *, code: bool = False, lacking: Callable[[str], object] | None = None
) -> str | None:
    """
    Return the text of the file that *reference* names; None, and an error noted at the cursor, where that cannot be.

    Args:
        code: Whether the file may be a program: it is material to be shown, and not run either.
        lacking: Is told why there is no such file, or no text in it, within the base; then that is not an error.
    """
    return read_at(
        reference, at, lambda name: text_of(located_file(name, at.loading, code=code), at.loading, name), lacking
    )


def follow(at: Cursor, lacking: Callable[[str], object] | None = None) -> Cursor | None:
    """Return the document that the cursor names, if that is a reference, else itself; None if it cannot be read."""
    return read_document_at(at.value, at, lacking) if is_reference(at.value) else at


def read_document_at(reference: str, at: Cursor, lacking: Callable[[str], object] | None = None) -> Cursor | None:
    """Return the root of the document of *reference*, whose notes join the cursor's; *lacking*: see `read_text_at`."""
    how = at.loading

    def work(name: str) -> Cursor:
        located = located_file(name, how)
        # By real paths: a link, or `./a.yaml` beside `a.yaml`, would make a circle look like a line.
        if located.real in how.trail:
            raise _refusal(name, "this file includes itself, by way of others; break the circle")
        if len(how.trail) >= DEEPEST:
            raise _refusal(name, f"files include one another more than {DEEPEST} deep; make it flatter")
        if not text_of(located, how, name).strip():
            raise _refusal(name, "there is nothing in this file")
        document = how.library.document(located.real, located.shown)
        if document is None:
            raise _refusal(name, "expected a .yaml, .json, .jsonl or .csv file")
        return Cursor.of(at.notes.of(document, how.within(located.shown.parent, located.real)))

    return read_at(reference, at, work, lacking)


def read_file_at(
    reference: str, at: Cursor, documents: tuple[str, ...], lacking: Callable[[str], object] | None = None
) -> Cursor | None:
    """Return the root of the document of *reference*, of one of *documents*, else its text; None where neither is."""
    if reference.strip().lower().endswith(documents):
        return read_document_at(reference, at, lacking)
    text = read_text_at(reference, at, lacking=lacking)
    return None if text is None else at.holding(text)


def read_at(
    reference: str,
    at: Cursor,
    work: Callable[[str], T],
    lacking: Callable[[str], object] | None = None,
) -> T | None:
    """Return what *work* makes of the name in *reference*; None where it errs. *lacking* is that of `read_text_at`."""
    notes, before = at.notes, at.notes.failures
    shown = show_environment(reference, at)
    if notes.failures > before:
        return None
    try:
        return work(bare(shown))
    except DefinitionError as error:
        if lacking is not None and isinstance(error, LackingFileError):
            lacking(error.message)
        else:
            at.error(error)
    except LoadError as error:
        notes.add(*error.problems)
    return None


def located_file(name: str, loading: Loading, *, code: bool = False) -> Located:
    """Return the one file that *name* leads to, there or not; a pattern, or without *code* a program, is refused."""
    if is_code(name) and not code:
        raise _refusal(name, "code in files is not run; give the function to the loader (functions={name: function})")
    if is_pattern(name):
        raise _refusal(name, "one file is read here, not those that match a pattern; name it")
    return locate(name, loading)


def unread(name: str, located: Located, loading: Loading, error: LoadError) -> DefinitionError:
    """Return (not raise) the error that the file *located* could not be read."""
    missing = f"there is no such file; check its path, {describe_search(loading)}"
    there = os.path.exists(located.real)  # noqa: PTH110  # that of Path may raise
    why = error.problems[0].message if there else missing
    return LackingFileError("", f"{quote(name)}: {why}")


def bytes_of(located: Located, loading: Loading, name: str, most: int) -> bytes:
    """Return the first *most* bytes of the file *located*, which *name* led to."""
    try:
        return read_bytes(located.real, loading.root, most)
    except LoadError as error:
        raise unread(name, located, loading, error) from None


def text_of(located: Located, loading: Loading, name: str) -> str:
    """Return the text of the file *located*, which *name* led to, or raise a `DefinitionError` with why not."""
    library = loading.library
    if located.real not in library.texts:
        if len(library.texts) >= MOST_FILES:
            raise _refusal(name, f"at most {MOST_FILES} files are read for one; put some together")
        try:
            library.read(located.real, loading.root)
        except LoadError as error:
            raise unread(name, located, loading, error) from None
    text = library.texts[located.real]
    # Each use counts, though the file is read once: a thousand references to one large file make a thousand copies.
    # The 64 are for empty files, which would count for nothing however often they are named.
    library.taken += len(text) + 64
    if library.taken > MOST_CHARACTERS:
        raise _refusal(name, f"what is included comes to more than {MOST_CHARACTERS} characters; include less")
    return text
