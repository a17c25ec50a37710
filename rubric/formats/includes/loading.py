"""What a file of another system is read with: where it stands, and what it may see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from rubric.formats.documents import Document

__all__ = ["Library", "Loading"]


@define
class Library:
    """
    What one load has read, shared by a file and all that it includes.

    Args:
        texts: The texts of the files, by their real paths.
        documents: The documents among them.
        taken: Characters handed out so far, a file that is included twice counted twice.
    """

    texts: dict[Path, str] = field(factory=dict)
    documents: dict[Path, Document] = field(factory=dict)
    taken: int = 0


@frozen
class Loading:
    """
    Where a file stands, and what it may see.

    Args:
        folder: Of the file that is being read: relative references start there. None: text that stands in no file.
        base: Nothing outside of this folder is read. None: the folder itself.
        environ: The environment variables that a file may show, by name; none unless the caller declares some.
            `os.environ` is never asked.
        required: Whether an AgentV criterion that does not say so is a gate. None: as its generation documents it.
        functions: The Python functions that assertions may name. A file cannot bring code of its own.
        trail: The files that led here, the outermost first; a file cannot include one of them.
        library: What has been read so far.
    """

    folder: Path | None = None
    base: Path | None = None
    environ: Mapping[str, str] = field(factory=dict, repr=lambda environ: repr([*environ]))
    required: bool | None = None
    functions: Mapping[str, Callable[..., Any]] = field(factory=dict)
    trail: tuple[Path, ...] = ()
    library: Library = field(factory=Library, eq=False, repr=False)

    @property
    def root(self) -> Path | None:
        """The folder that nothing leaves: *base*, or where that is not given *folder*."""
        return self.base if self.base is not None else self.folder

    def within(self, folder: Path, file: Path) -> Loading:
        """Return the loading for *file* (its real path), which this one includes and which stands in *folder*."""
        return evolve(self, folder=folder, base=self.root, trail=(*self.trail, file))
