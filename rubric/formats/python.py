"""
Python in files of other systems, as programs that the caller must allow: assertions, functions and commands.

An assertion is an expression, a body with its own `return`, or `file://checks.py:function` (by default `get_assert`),
of `output` and `context`. It returns a bool; a number, which passes above 0 or from the threshold; or a mapping with
`pass`, `score` and `reason`. An error that it raises fails it, as in both systems.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from importlib import resources
from typing import Any

from attrs import frozen

from rubric import DefinitionError
from rubric.embed import Cursor, Loading, shorten, thaw
from rubric.formats.includes import LackingFileError, bare, located_file
from rubric.programs.processes import Executable, PythonFunction
from rubric.values import Script

FUNCTION = "get_assert"
"""What a file's function is called unless its name follows a colon."""

_AS_DATA = re.compile(r"\boutput\s*(?:\.(?:get|items|keys|values)\(|\[\s*['\"])|\bin\s+output\.(?:keys|values|items)\b")
_FILE = re.compile(r"(?:file://)?(.+?\.py)(?::([^\W\d]\w*))?")

_WORKER = resources.files("rubric.formats").joinpath("python_assertion.txt").read_text("utf-8")
"""The program that runs an assertion, and says its verdict."""


def named_file(value: str) -> tuple[str, str] | None:
    """Return the file and the function that *value* names, such as `file://checks.py:is_short`; None if it is code."""
    match = _FILE.fullmatch(value.strip())
    if match is None or not (value.strip().startswith("file://") or " " not in value.strip()):
        return None
    return match[1], match[2] or FUNCTION


def python_script(
    value: str, *, source: str = "", threshold: float | None = None, negate: bool = False, config: Any = None
) -> Script:
    """
    Return the program that decides as the Python of *value* does: code, or the name of its file.

    Args:
        source: The text of that file; where it takes the output for data, JSON is read for it.
        threshold: The number from which it passes; None: above 0.
    """
    named = named_file(value)
    given: dict[str, Any] = {"code": value.strip("\n")} if named is None else {"file": named[0], "function": named[1]}
    given |= {"data": True} if _AS_DATA.search(source or value) else {}
    given |= {} if threshold is None else {"threshold": threshold}
    given |= {"negate": True} if negate else {}
    given |= {} if config is None else {"config": config}
    return Script(("python", "-c", _WORKER), config=given)


def is_python(script: Script) -> bool:
    """True if *script* is the program of a Python assertion."""
    return script.command == ("python", "-c", _WORKER)


def python_data(script: Script) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the assertion that `python_script` makes *script* of, and what else only our own format says of it."""
    given = thaw(script.config)
    named = "file" in given
    function = "" if given.get("function", FUNCTION) == FUNCTION else f":{given['function']}"
    value = f"file://{given['file']}{function}" if named else str(given["code"])
    data = {"type": "not-python" if given.get("negate") else "python", "value": value}
    data |= {key: given[key] for key in ("threshold", "config") if key in given}
    told = bool(given.get("data")) and not _AS_DATA.search(value)
    return data, {"data": True} if told else {}


# -- functions and commands --------------------------------------------------------------------------------

_REFERENCE = re.compile(r"(?:file://|python:)?(.+\.py)(?::([^\W\d][\w.]*))?")


def is_python_file(value: Any) -> bool:
    """True if *value* names a Python file, or a function in one: `file://make.py:prompt`."""
    return isinstance(value, str) and " " not in value.strip() and _REFERENCE.fullmatch(value.strip()) is not None


def python_function(value: str, at: Cursor, default: str, *, python: str = "python") -> PythonFunction:
    """Return the function that *value* names, else *default* in its file; it works in the folder of the first file."""
    match = _REFERENCE.fullmatch(value.strip())
    if match is None:
        raise DefinitionError("", f"expected file://NAME.py, or file://NAME.py:function, got {shorten(value, 60)!r}")
    file, folder = _file(match[1], at.loading), _folder(at.loading)
    return PythonFunction(file, match[2] or default, folder, at.loading.environ, python=python)


_PARTS = re.compile(r"[^\s\"']+|\"([^\"]*)\"|'([^']*)'")


def executable(value: str, at: Cursor) -> Executable:
    """Return the command *value*, at the cursor: words, some of them in quotes. No shell reads it."""
    words = [match[1] or match[2] or match[0] for match in _PARTS.finditer(value)]
    if not words:
        raise DefinitionError("", "exec: names no command; write it after the colon")
    return Executable(tuple(words), _folder(at.loading), at.loading.environ)


def python_script_file(value: str, at: Cursor) -> Executable:
    """Return the command that runs the Python file *value*, at the cursor, as a script."""
    return Executable(("python", _file(bare(value), at.loading)), _folder(at.loading), at.loading.environ)


def _file(name: str, loading: Loading) -> str:
    located = located_file(name, loading, code=True)
    if not os.path.isfile(located.real):  # noqa: PTH113 - that of Path may raise
        raise LackingFileError("", f"{shorten(name, 80)!r}: there is no such file")
    return str(located.real)


def _folder(loading: Loading) -> str | None:
    first = loading.first or loading.folder
    return None if first is None else os.path.abspath(first)  # noqa: PTH100 - links stay as they are


@frozen
class PythonTransform:
    """A transform in Python: a *function* of output and context; with *data*, JSON is given to it as data."""

    function: PythonFunction
    reference: str
    data: bool = False

    def run(self, output: Any, context: Mapping[str, Any]) -> Any:
        """Return what the function makes of *output*, None for nothing; one that fails is a `ProgramError`."""
        if self.data and isinstance(output, str) and output.lstrip().startswith(("{", "[")):
            with suppress(ValueError, RecursionError):
                output = json.loads(output)
        return self.function.call(output, dict(context))


def python_transform(value: str, at: Cursor) -> PythonTransform:
    """Return the transform that *value* names, at the cursor: `get_transform`, unless it names another function."""
    function = python_function(value, at, "get_transform")
    with open(function.file, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - as its name is
        source = file.read(1_000_000)
    return PythonTransform(function, value.strip(), _AS_DATA.search(source) is not None)
