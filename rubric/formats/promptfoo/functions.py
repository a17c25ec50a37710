"""
Functions in files, by which promptfoo's files make prompts, variables and tests.

Those in JavaScript run in the embedded engine (extra `javascript`), those in Python in a process of their own and only
where the caller allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rubric import DefinitionError, RubricError
from rubric.embed import Cursor, LackingError, shorten
from rubric.formats.javascript_files import FileProgram, file_program
from rubric.formats.javascript_modules import is_javascript_file, program_at, program_of_file
from rubric.formats.python import is_python_file, python_function
from rubric.programs.javascript import EXTRA, UNDEFINED, Program, is_installed
from rubric.programs.processes import CURE, PythonFunction, is_allowed


def why_not(value: Any, *, command: bool = False) -> str:
    """Return why the function, or the *command*, in *value* is not called, with the cure; '' if it can and may be."""
    if is_javascript_file(value):
        return "" if is_installed() else f"it needs an engine ({EXTRA})"
    if command or is_python_file(value):
        return "" if is_allowed() else f"it is a program of the file: {CURE}"
    return "only JavaScript, TypeScript and Python are run"


def filter_at(name: str, at: Cursor) -> Callable[..., Any]:
    """Return the filter *name* in the file at the cursor. It reads no files: a candidate's text may reach it."""
    function: Program | None = None
    why = "it is in a file, and a text names none; load it from a file, or give the folder (base=...)"
    if at.loading.root is not None and not (why := why_not(at.value)):
        try:
            function = program_at(at.value, at, program_of_file)
        except DefinitionError as problem:
            why = problem.message

    def apply(*given: Any) -> Any:
        failure = why
        if function is not None:
            try:
                made = function.call(*given)
            except RubricError as problem:
                failure = f"which failed ({shorten(str(problem), 160)})"
            else:
                return None if made is UNDEFINED else made
        lack = f"the filter {name!r} of nunjucksFilters: {failure}"
        raise LackingError(lack, lack)

    return apply


def call_at(value: str, at: Cursor, default: str, *given: Any) -> tuple[Any, str]:
    """Return what the function that *value* names makes of *given*, and why it makes nothing; see `function_at`."""
    try:
        return function_at(value, at, default).call(*given), ""
    except RubricError as problem:
        return None, str(problem)


def function_at(value: str, at: Cursor, default: str) -> FileProgram | PythonFunction:
    """Return the function that *value* names, at the cursor, or refuse it; in Python *default* is its usual name."""
    if is_javascript_file(value):
        return program_at(value, at, file_program)
    return python_function(value, at, default)
