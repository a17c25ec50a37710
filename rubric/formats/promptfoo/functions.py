"""
Functions in files, by which promptfoo's files make prompts, variables and tests.

Those in JavaScript run in the embedded engine (extra `javascript`), those in Python in a process of their own and only
where the caller allows it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rubric.errors import DefinitionError, RubricError
from rubric.formats.cursor import Cursor, LackingError
from rubric.formats.javascript_files import FileProgram, file_program
from rubric.formats.javascript_modules import is_javascript_file, program_at
from rubric.formats.python import is_python_file, python_function
from rubric.internals.javascript import EXTRA, UNDEFINED, Program, is_installed
from rubric.internals.programs import CURE, PythonFunction, is_allowed
from rubric.internals.text import shorten


def why_not(value: Any) -> str:
    """Return why the function that *value* names is not called here, with the cure; empty if it can and may be."""
    if is_javascript_file(value):
        return "" if is_installed() else f"it needs an engine ({EXTRA})"
    if is_python_file(value):
        return "" if is_allowed() else f"it is a program of the file: {CURE}"
    return "only JavaScript, TypeScript and Python are run"


def filter_at(name: str, at: Cursor) -> Callable[..., Any]:
    """
    Return the filter *name* of templates, whose file the cursor names; one that fails raises a `LackingError`.

    It reads no files: a template may give it what a candidate wrote.
    """
    function: Program | str | None = None
    why = "only JavaScript and TypeScript are run"
    if at.loading.root is None:
        why = "it is in a file, and a text names none; load it from a file, or give the folder (base=...)"
    elif is_javascript_file(at.value) and not (why := why_not(at.value)):
        function = program_at(at.value, at)
        why = function if isinstance(function, str) else ""

    def apply(*given: Any) -> Any:
        failure = why
        if isinstance(function, Program):
            try:
                made = function.call(*given)
            except RubricError as problem:
                failure = f"which failed ({shorten(str(problem), 160)})"
            else:
                return None if made is UNDEFINED else made
        lack = f"the filter {name!r} of nunjucksFilters: {failure}"
        raise LackingError(lack, lack)

    return apply


def may_call(value: Any) -> bool:
    """True if *value* names a function that can be called here, and may be."""
    return not why_not(value)


def function_at(value: str, at: Cursor, default: str) -> FileProgram | PythonFunction:
    """
    Return the function that *value* names, at the cursor; in Python *default*, where it names the file alone.

    Raises:
        DefinitionError: The file is not there or may not be read, or the module cannot start.
    """
    if not is_javascript_file(value):
        return python_function(value, at, default)
    program = program_at(value, at, file_program)
    if not isinstance(program, FileProgram):
        raise DefinitionError("", str(program))
    return program
