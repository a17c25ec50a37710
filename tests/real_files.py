"""The suites of the collected files, each of which is read once, though several modules of tests look at it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from rubric.errors import LoadError
from rubric.formats.suites import load_suite
from rubric.suites.suite import Suite


@cache
def suite_or_error(file: Path) -> Suite | LoadError:
    """Return what the default call reads *file* as, or why it is refused."""
    try:
        return load_suite(file)
    except LoadError as error:
        return error
