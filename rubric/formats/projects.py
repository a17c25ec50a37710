"""The project of a file: what it may include by default, and what tells there which system's it is."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from rubric.embed import Cursor
from rubric.formats.registry import find_format, formats, recognise

if TYPE_CHECKING:
    from os import PathLike

_MARKS = ("package.json", "pyproject.toml")
_INSTALLED = frozenset({"node_modules", "site-packages", "dist-packages"})


def project_of(file: Path) -> Path:
    """
    Return the folder from which *file* may include others by default: the project that it belongs to.

    That is the nearest folder around it with a `.git`; else the nearest with (another file than itself) `package.json`,
    `pyproject.toml` or a mark of a format, such as `promptfooconfig.yaml`; else its own folder. The search ends below
    the home folder, the top of the file system and folders that everybody may write to: a stray `package.json` there
    must not open all of it to a downloaded file. An installed package is a project of its own.
    """
    folder = Path(os.path.abspath(file.parent))  # noqa: PTH100  # resolve() would follow links out of the project
    nearest = None
    for parent in (folder, *folder.parents):
        if _belongs_to_many(parent):
            break
        if os.path.lexists(parent / ".git"):
            nearest = parent
            break
        marks = [name for name in (*_MARKS, *_marks()) if parent / name != folder / file.name]
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
    return frozenset(name for name in _marks() if any(os.path.lexists(one / name) for one in folders))


def _belongs_to_many(folder: Path) -> bool:
    """True for a home folder, a folder above one, and one that everybody may write to, such as `/tmp`."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  # Path.home() raises where there is none
    try:
        everybody = os.name != "nt" and folder.stat().st_mode & stat.S_IWOTH
    except OSError:
        return True
    return bool(everybody) or folder.parent == folder or (home.is_absolute() and home.is_relative_to(folder))


def _marks() -> list[str]:
    return [mark for known in formats().values() for mark in known.marks]


def is_rubric(path: str | PathLike[str], /) -> bool:
    """
    True if the file at *path* holds one native rubric, or nothing that any format knows, and not a suite.

    Raises:
        LoadError: It cannot be read.
    """
    file = Path(path)
    if file.suffix.lower() not in (".yaml", ".yml", ".json"):
        return False
    root = Cursor.read(file)
    guess = recognise(root.value, file.name, root.notes.document.schema, around(file))
    is_own = find_format(guess.format).own if guess.format else not guess.rivals
    return is_own and "suite" not in root and "cases" not in root
