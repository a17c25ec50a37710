"""
What a document is read with, and the notes of what is wrong with it.

Nothing raises while a foreign document is read: problems go to its `Notes`, which a `Cursor` writes and `Notes.finish`
raises, all at once, each with its line and column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from attrs import define, evolve, field, frozen

from rubric.errors import DefinitionError, LoadError, Problem
from rubric.formats.document import FOR_SUITES, Document, KeyPath, Node, find, plain, show_path
from rubric.formats.files import parse_file, read_text
from rubric.internals.text import shorten


class LackingError(DefinitionError):
    """
    Something that a part of a file needs and the load does not have, such as an environment variable.

    Args:
        lack: What it is, with its cure.
        message: The error, where nothing but the file itself could be left out.
        filter: The filter of a template that it is; a typing error, unless the file brings that filter.
    """

    def __init__(self, lack: str, message: str, *, filter: str = "") -> None:
        super().__init__("", message)
        self.lack = lack
        self.filter = filter


@define
class Library:
    """
    The files that one load has read, shared by a file and all that it includes.

    Args:
        texts: The texts of the files, by their real paths.
        documents: The documents among them.
        taken: Characters handed out so far, a file that is included twice counted twice.
        images: The images among them, as `data:` URLs, by their real paths.
    """

    texts: dict[Path, str] = field(factory=dict)
    documents: dict[Path, Document] = field(factory=dict)
    taken: int = 0
    images: dict[Path, str] = field(factory=dict)

    def read(self, file: Path, base: Path | None) -> None:
        """Read the text of *file*, its real path, which is within *base*."""
        self.texts[file] = read_text(file, base, FOR_SUITES)

    def document(self, file: Path, shown: Path) -> Document | None:
        """Return *file*, which was read and is *shown* so, as a document; None for a suffix that no document has."""
        document = self.documents.get(file) or parse_file(self.texts[file], shown)
        if document is not None:
            self.documents[file] = document
        return document


@frozen
class Loading:
    """
    The folder of a file, and the things that it may see.

    Args:
        folder: Of the file that is being read: relative references start there. None: a text without a file.
        base: Nothing outside of this folder is read. None: the folder itself.
        environ: The environment variables that a file may show, by name; none unless the caller declares some.
            `os.environ` is never asked.
        required: Whether an AgentV criterion that does not say so is a gate. None: as its generation documents it.
        functions: The Python functions that assertions may name. A file cannot bring code of its own.
        filters: The filters of templates that the file brings as code; one that cannot be run raises a `LackingError`.
        trail: The files that led here, the outermost first; a file cannot include one of them.
        first: The folder from which names start before that of the file itself: in promptfoo's files of tests, the
            configuration's.
        climbs: Whether a file is looked for in each folder from *folder* up to *base* too, then in the working folder
            where that is within *base*; a leading slash then means any of these.
        library: The files read so far.
    """

    folder: Path | None = None
    base: Path | None = None
    environ: Mapping[str, str] = field(factory=dict, repr=lambda environ: repr([*environ]))
    required: bool | None = None
    functions: Mapping[str, Callable[..., Any]] = field(factory=dict)
    filters: Mapping[str, Callable[..., Any]] = field(factory=dict)
    trail: tuple[Path, ...] = ()
    first: Path | None = None
    climbs: bool = False
    library: Library = field(factory=Library, eq=False, repr=False)

    @property
    def root(self) -> Path | None:
        """The folder that nothing leaves: *base*, or where that is not given *folder*."""
        return self.base if self.base is not None else self.folder

    def within(self, folder: Path, file: Path) -> Loading:
        """Return the loading for *file* (its real path), in *folder*, which this one includes."""
        return evolve(self, folder=folder, base=self.root, trail=(*self.trail, file))


LONGEST = 400
"""Characters of one message."""


class _Block(list[str]):
    """What is lacking within a block of `Notes.lacking`; a class, since each assertion of a file opens several."""

    def __init__(self, opened: list[_Block], whole: bool) -> None:  # noqa: FBT001 - `lacking` names it
        self.opened, self.whole = opened, whole

    def __enter__(self) -> list[str]:
        self.opened.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.opened.pop()


@define
class Notes:
    """
    The diagnostics of one document: errors, and warnings of features that this library does not have.

    A path is a tuple of keys and indices from the root, such as `("tests", 0, "assert", 2, "type")`.

    Args:
        document: The document.
        errors: What is wrong; shared with the documents that this one includes.
        warnings: What is read otherwise than it says, or not at all; shared likewise.
        loading: What the document is read with.
        faults: The errors that left a part ungraded, each as often as it did; shared likewise.
    """

    FAULT: ClassVar = "a fault: "
    """How what is lacking begins, where a test has an error of its own."""

    document: Document
    errors: list[Problem] = field(factory=list)
    warnings: list[Problem] = field(factory=list)
    loading: Loading = field(factory=Loading)
    faults: list[Problem] = field(factory=list, init=False)
    # Counts errors that were noted before too, so that a reader sees that a value failed again.
    failures: int = field(default=0, init=False)
    # What many cases share is read for each of them, and noted once. A set, since a file can have 50,000 cases.
    _noted: set[Problem | str] = field(factory=set, init=False, repr=False)
    # The open blocks of `lacking`, shared like the lists.
    _lacks: list[_Block] = field(factory=list, init=False, repr=False)

    def of(self, document: Document, loading: Loading) -> Notes:
        """Return the notes of *document*, which this one includes; both note into the same lists."""
        # The same lists and the same set, not copies: an included file may be read for each of 1,000 tests, and its
        # problems are to be raised once, with those of the file that names it.
        inner = Notes(document, self.errors, self.warnings, loading)
        inner._noted, inner._lacks, inner.faults = self._noted, self._lacks, self.faults
        return inner

    def lacking(self, *, whole: bool = False) -> _Block:
        """
        Collect the `LackingError`s that are noted within the block: they are warnings, and what they need is yielded.

        With *whole*, so are all other errors but slips in keys and names: what is wrong with one test leaves the file
        to the others. The caller leaves the part ungraded that the block reads. Outside of any block they are errors of
        the file.
        """
        return _Block(self._lacks, whole)

    def data(self) -> Any:
        """Return the document as plain data; flaws of its nodes are noted as errors."""
        return plain(self.document.root, self.flaw)

    def flaw(self, node: Node, path: KeyPath, message: str) -> None:
        """Note that *node*, at *path*, is wrong."""
        self.failures += 1
        self.add(Problem(self.document.source, *node.place, show_path(path), shorten(message, LONGEST)))

    def add(self, *problems: Problem) -> None:
        """Note errors that have their places already."""
        self._note(self.errors, problems)

    def error(self, path: KeyPath, message: str | DefinitionError) -> None:
        """Note that the value at *path* is wrong."""
        self.tell(*find(self.document.root, path), message)

    def tell(self, node: Node, path: KeyPath, message: str | DefinitionError, *, slip: bool = False) -> None:
        """Note that *node*, at *path*, is wrong; within `lacking`, a `LackingError` is a warning."""
        text = message if isinstance(message, str) else message.text
        block = next((block for block in reversed(self._lacks) if block.whole), None)
        if self._lacks and isinstance(message, LackingError) and message.filter in {"", *self.loading.filters}:
            self.failures += 1
            self._lacks[-1].append(message.lack)
            self.warn(node, path, f"{message.lack}: what needs it is ungraded" if message.filter else message.message)
        elif block is not None and not slip and not isinstance(message, LackingError):
            self.failures += 1
            block.append(f"{self.FAULT}{text}")
            self._fault(Problem(self.document.source, *node.place, show_path(path), shorten(text, LONGEST)))
        else:
            self.flaw(node, path, text)

    def excuse(self, path: KeyPath) -> str:
        """Turn the errors noted below *path* into warnings, and return the first; '' where there is none."""
        below = show_path(path)
        found = [one for one in self.errors if one.path.startswith((f"{below}.", f"{below}["))]
        found = [one for one in found if one.source == self.document.source]
        for one in found:
            self.errors.remove(one)
            self._fault(one)
        return f"{self.FAULT}{found[0].message}" if found else ""

    def _fault(self, problem: Problem) -> None:
        self.faults.append(problem)
        told = evolve(problem, message=shorten(f"its test is ungraded: {problem.message}", LONGEST))
        self._note(self.warnings, [told])

    def warn(self, node: Node, path: KeyPath, message: str) -> None:
        """Note that *node*, at *path*, is read otherwise than it says, or not at all."""
        problem = Problem(self.document.source, *node.place, show_path(path), shorten(message, LONGEST))
        self._note(self.warnings, [problem])

    def _note(self, problems: list[Problem], new: Iterable[Problem]) -> None:
        for problem in new:
            if problem not in self._noted:
                self._noted.add(problem)
                problems.append(problem)

    def is_new(self, message: str) -> bool:
        """True if *message* has not been looked up yet; from then on it is known."""
        known = message in self._noted
        self._noted.add(message)
        return not known

    def finish(self) -> None:
        """Raise all that is wrong, in the order of the file, if anything is."""
        if self.errors:
            raise LoadError(sorted(self.errors, key=lambda problem: (problem.line, problem.column)))
