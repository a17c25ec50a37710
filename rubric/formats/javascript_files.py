"""
Programs that read files while a suite is loaded: configurations, and functions that make prompts, variables and tests.

They have of Node's modules `fs` for reading, `path` and `url`. The engine still asks for no file: a program that reads
one which it was not given is stopped, the file is read as `file://` would be, and the program is run again with it.
Assertions and transforms have none of it: they run on what a candidate wrote, which could then choose the file.
"""

from __future__ import annotations

import os
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from rubric import DefinitionError
from rubric.embed import Loading
from rubric.formats.includes import MOST_ENTRIES, SecretFileError, bare, is_secret, locate, located_file, text_of
from rubric.formats.javascript_modules import Bundle
from rubric.programs.javascript import UNDEFINED, Asked, JavaScriptError, Program

MOST_READ = 4_000_000
"""Characters that one program may read, the names in folders included."""

MOST_ANSWERS = 1_000
"""Questions about files that one program may ask."""

_ROUNDS, _SECONDS = 300, 20.0
"""How often, and how long, one call is begun again."""

_NODE = files("rubric.formats").joinpath("javascript_files.js").read_text("utf-8")

_PROVIDED = frozenset(
    name for one in ("fs", "fs/promises", "path", "path/posix", "url") for name in (one, f"node:{one}")
)


@define(eq=False)
class FileProgram:
    """A module that reads files below the base while a suite is loaded; *name* is its exported function, or ''."""

    bundle: Bundle
    name: str = ""
    _answers: dict[tuple[str, str], Any] = field(factory=dict, init=False)
    _read: int = field(default=0, init=False)

    def call(self, *arguments: Any) -> Any:
        """Return what the module's function makes of *arguments*, or the list in its place; raise as `data`."""
        return self._run(arguments, None)

    def shows(self, word: str) -> bool:
        """True if *word* is anywhere in its text."""
        return word in self.bundle.text()

    def data(self, function: str) -> Any:
        """
        Return what the module exports, or what the function returns that it exports, as plain data.

        *function* is the text in the place of each function in it. What it throws is a `ThrownError`, all else a
        `JavaScriptError`.
        """
        return self._run((), function)

    def _run(self, arguments: tuple[Any, ...], function: str | None) -> Any:
        loading, end = self.bundle.loading, time.monotonic() + _SECONDS
        started = loading.first or loading.folder or Path()
        root, cwd = (Path(os.path.realpath(path)).as_posix() for path in (loading.root or started, started))
        for _ in range(_ROUNDS):
            answers = [[f"{kind} {path}", answer] for (kind, path), answer in self._answers.items()]
            # An undeclared variable is undefined to a configuration, which often names several, and stops a function.
            node: dict[str, Any] = {"root": root, "cwd": cwd, "environ": dict(loading.environ), "answers": answers}
            node["whole"] = function is not None
            program = Program(self.bundle.text(_NODE), module=True, name=self.name)
            result = program.call_or_ask(arguments, node, function)
            if not isinstance(result, Asked):
                return None if result is UNDEFINED else result
            for question in result.questions:
                self._answers[question] = self._answer(*question)
            if time.monotonic() > end or len(self._answers) > MOST_ANSWERS:
                break
        raise JavaScriptError(f"it asks for more than {MOST_ANSWERS} files, or takes more than {_SECONDS:g} seconds")

    def _answer(self, kind: str, path: str) -> tuple[str, Any]:
        if kind == "require":
            self.bundle.require(*path.split("\n", 1))
            return "", None
        root = Path(os.path.realpath(self.bundle.loading.root or ""))
        near = evolve(self.bundle.loading, folder=root, base=self.bundle.loading.root, first=None, climbs=False)
        name = os.path.relpath(path, root).replace(os.sep, "/") if "\0" not in path else path
        try:
            return self._looked_up(kind, name, near)
        except SecretFileError as problem:
            if kind == "stat":  # to a program, such a file is not there
                return "ENOENT", None
            raise JavaScriptError(f"it reads {problem.message}") from None
        except (DefinitionError, OSError) as problem:
            raise JavaScriptError(f"it reads {getattr(problem, 'message', problem)}") from None

    def _looked_up(self, kind: str, name: str, near: Loading) -> tuple[str, Any]:
        located = locate("." if name == "." else bare(name), near)
        what = _kind(os.fspath(located.real))
        if not what or what != {"read": "file", "list": "folder"}.get(kind, what):
            return {"": "ENOENT", "folder": "EISDIR"}.get(what, "ENOTDIR"), None
        value: Any = [what, os.path.getsize(located.real)]  # noqa: PTH202 - as the rest here
        if kind == "read":
            value = text_of(located_file(name, near, code=True), near, name)
            self._count(len(value))
        elif kind == "list":
            with os.scandir(located.real) as entries:
                found = sorted((one.name, "link" if one.is_symlink() else _kind(one.path)) for one in entries)
            if len(found) > MOST_ENTRIES:
                raise JavaScriptError(f"it reads a folder with more than {MOST_ENTRIES} files")
            value = [one for one in found if not is_secret(one[0])]
            self._count(sum(len(one) + 8 for one, _ in value))
        return "", value

    def _count(self, taken: int) -> None:
        self._read += taken
        if self._read > MOST_READ:
            raise JavaScriptError(f"it reads more than {MOST_READ} characters")


def _kind(path: str) -> str:
    return "folder" if os.path.isdir(path) else "file" if os.path.isfile(path) else ""  # noqa: PTH112, PTH113


def file_program(name: str, loading: Loading, function: str = "") -> FileProgram:
    """Return the program of the module in the file *name*, which may read files below the base."""
    return FileProgram(Bundle.of(name, loading, _PROVIDED), function)
