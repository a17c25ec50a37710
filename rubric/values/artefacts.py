"""
What a judge with tools may look at: the files that a run made, its diff, and the results of its tools.

All of it is a snapshot: texts by name, in memory. A tool looks a name up and opens nothing, so no path, link or `..`
leads anywhere else, and nothing that a judge or a candidate says is carried out. The names and digests of the texts
are in the prompt, so that a reply is kept for exactly these texts.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import define, field, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import as_path
from rubric.internals.frozen_map import FrozenMap, Memo
from rubric.internals.secrets import MASK, redact
from rubric.internals.text import shorten
from rubric.values.numbered import numbered_steps

if TYPE_CHECKING:
    from rubric.values.candidates import Candidate

MOST_FILES, MOST_BYTES, LONGEST_FILE = 2_000, 20_000_000, 2_000_000
"""Files of a snapshot, bytes of all of them, and bytes of one."""

LONGEST_RESULT = 16_000
"""Characters of one result of a tool; a longer one is cut, with a mark."""

_SKIPPED = frozenset({".git", ".hg", "node_modules", "__pycache__", ".venv"})


def files_in(folder: str | os.PathLike[str], /) -> FrozenMap:
    """
    Return the text files in *folder* by their paths within it: `Candidate(answer, files=files_in("run"))`.

    Links are not followed, and neither binary files nor those of version control and installed packages are read. A
    file with a secret in its name (`.env`, a key) is left out.

    Raises:
        DefinitionError: It is not a folder, or holds more than 2,000 files, a file of 2 MB or 20 MB in all.
    """
    root = as_path("folder", folder)
    if not root.is_dir() or root.is_symlink():
        raise DefinitionError("folder", f"{root} is not a folder; name the folder of what the run made")
    found = Snapshot()
    for place, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED)
        for name in sorted(names):
            path = Path(place, name)
            if path.is_symlink() or not path.is_file() or found.hides(name):
                continue
            if why := found.why_full(path.stat().st_size):
                raise DefinitionError("folder", f"{path}: {why}; name a smaller folder")
            content = path.read_bytes()
            if b"\0" not in content:
                found.texts[path.relative_to(root).as_posix()] = content.decode("utf-8", "replace")
    return FrozenMap(found.texts)


@define
class Snapshot:
    """The *texts* of files, by name, within the bounds of a snapshot."""

    most: ClassVar[int] = MOST_FILES
    texts: dict[str, str] = field(factory=dict)
    _size: int = 0

    def why_full(self, length: int) -> str:
        """Take *length* bytes for a file, and return why it does not fit; '' if it does."""
        if len(self.texts) < self.most and self._size + length <= MOST_BYTES and length <= LONGEST_FILE:
            self._size += length
            return ""
        return f"a snapshot has at most {MOST_FILES:,} files, {LONGEST_FILE:,} bytes a file and {MOST_BYTES:,} in all"

    @staticmethod
    def hides(name: str) -> bool:
        """True if a file called *name* holds secrets, and so is left out."""
        return _HIDDEN.search(name) is not None


_HIDDEN = re.compile(r"^\.env|\.(?:pem|key|p12|pfx)$|^id_(?:rsa|ed25519|ecdsa)|^\.netrc$|^\.npmrc$|^\.pypirc$")


def artefacts_of(files: Mapping[str, Any], file_changes: str, results: Mapping[str, str]) -> dict[str, str]:
    """Return all that can be looked at, by name: *files*, the diff, and the *results* of tools."""
    return {**results, **({"changes.diff": file_changes} if file_changes else {}), **files}


def listing(texts: Mapping[str, str]) -> str:
    """Return a line for each of *texts*: its name, its lines and its digest."""
    from hashlib import sha256  # noqa: PLC0415 - building a rubric needs none

    lines = []
    for name, text in sorted(texts.items()):
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        lines.append(f"{name} ({len(text.splitlines())} lines, {digest})")
    return "\n".join(lines)


SEGMENT = "(a part of a run, which is shown above)"
"""The output of a candidate that is a segment of a run."""


@Memo
def steps_of(candidate: Candidate) -> dict[str, str]:
    """Return the texts of the steps of its run, by their numbers; kept with it, since tools look many times."""
    return {one.step: one.text for one in numbered_steps(candidate.part)} if candidate.part else {}


def material_of(candidate: Candidate, *, steps: bool) -> Material:
    """Return what of *candidate* can be read: its run by *steps*, or the results of its tools by names of their own."""
    if not steps or candidate.part is None:
        return Material(candidate.artefacts)
    foreign = frozenset(one.step for one in numbered_steps(candidate.part) if not one.is_own)
    return Material(artefacts_of(candidate.files, candidate.file_changes, {}), steps_of(candidate), foreign)


@cache
def tools_for(*, files: bool, steps: bool) -> str:
    """Return the tools that read, as JSON in the form that chat APIs take. None of them does anything else."""
    from importlib.resources import files as files_of  # noqa: PLC0415 - for judges with tools alone

    tools = json.loads(files_of("rubric.values").joinpath("tools.json").read_text("utf-8"))
    return json.dumps([*(tools["files"] if files else ()), *(tools["steps"] if steps else ()), *tools["both"]])


@frozen
class Material:
    """
    What a judge with tools may read.

    Args:
        foreign: The numbers of steps that others than the candidate took: no evidence for what it did.
    """

    files: Mapping[str, str]
    steps: Mapping[str, str] = FrozenMap()
    foreign: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.files or self.steps)

    def find_source(self, words: str) -> tuple[str, str] | None:
        """Return the text that *words* name as its source (`path: ...`, `step 12: ...`), and what they say of it."""
        if (step := NAMED_STEP.match(words)) and step[1] in self.steps:
            return f"step {step[1]}", words[step.end() :]
        name = next((name for name in sorted(self.files, key=len, reverse=True) if words.startswith(f"{name}:")), None)
        return None if name is None else (name, re.sub(r"\A(?:\d+:)?\s*", "", words[len(name) + 1 :]))

    def quotable(self, name: str) -> str:
        """Return the text of the source *name* as far as it is evidence for what the candidate did."""
        number = name.removeprefix("step ")
        return (
            self.files.get(name, "") if number not in self.steps else self.steps[number] * (number not in self.foreign)
        )

    def look(self, name: str, arguments: str) -> str:
        """Return the result of the tool *name*; what is wrong with the call is the result as well."""
        try:
            given = json.loads(arguments) if arguments.strip() else {}
            given = given if isinstance(given, dict) else {}
            result = self._result(name, given)
        except (ValueError, RecursionError):
            return "error: the arguments are not a JSON object"
        offset = given.get("offset", 0) if name == "read_steps" else 0
        skipped = offset if isinstance(offset, int) and offset > 0 else 0
        shown = result[skipped : skipped + LONGEST_RESULT]
        if skipped + len(shown) >= len(result):
            return shown
        more = f"offset {skipped + len(shown)}" if name == "read_steps" else "a later line"
        return f"{shown}\n[cut; read on from {more}]"

    def _result(self, name: str, given: Mapping[str, Any]) -> str:
        path = str(given.get("path", "")).removeprefix("./")
        if name == "list_files":
            return listing(self.files)
        if name in ("list_steps", "read_steps") and self.steps:
            return self._of_steps(name, str(given.get("first", "")), str(given.get("last", "")))
        if path and path not in self.files:
            return f"error: there is no file {path[:200]!r}; list_files names them all"
        if name == "read_file":
            start = given.get("start_line", 1)
            first = start if isinstance(start, int) and start > 0 else 1
            return "\n".join(self.files[path].splitlines()[first - 1 :]) if path else "error: name a file as `path`"
        if name == "search":
            wanted, found = str(given.get("text", "")), list[str]()
            texts = {path: self.files[path]} if path else dict(sorted(self.files.items()))
            texts = texts if path else {**{f"step {n}": text for n, text in self.steps.items()}, **texts}
            seen = redact if MASK in wanted else str  # a key is masked in a judge's words
            for each, text in texts.items():
                lines = enumerate(text.splitlines(), 1) if wanted and wanted in seen(text) else ()
                found += [f"{each}:{number}: {_around(wanted, line)}" for number, line in lines if wanted in seen(line)]
            return "\n".join(found[:200]) or "nothing was found"
        return f"error: there is no tool {name[:80]!r}"

    def _of_steps(self, name: str, first: str, last: str) -> str:
        numbers = [*self.steps]
        for number in filter(None, (first, last)):
            if number not in self.steps:
                return f"error: there is no step {number[:40]!r}; they go from {numbers[0]} to {numbers[-1]}"
        start = numbers.index(first) if first else 0
        if name == "list_steps":
            return "\n".join(shorten(self.steps[number], 100) for number in numbers[start : start + 400])
        end = numbers.index(last) if last else start
        return "\n".join(self.steps[number] for number in numbers[start : end + 1])


def _around(wanted: str, line: str) -> str:
    """Return *line*, or 300 characters of it with *wanted* among them."""
    start = max(0, line.find(wanted) + len(wanted) - 200) if len(line) > _EXCERPT else 0
    return line[start : start + _EXCERPT]


_EXCERPT = 300
NAMED_STEP = re.compile(r"(?i)\[?(?:step )?(\d+(?:\.\d+)*)(?:\]:?|:)(?:\d+:)?\s*")
"""How a quote names the step that it is from: `step 12: words`, or `[12] words` as the list has it."""
