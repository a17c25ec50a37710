"""
The library at a terminal and in CI: each command is one call of the public API, and its exit code says what came of it.

    0   the candidate, or every case, passed; the files are valid
    1   one failed
    2   something could not be graded, or something that was given is wrong
"""

from __future__ import annotations

import click

from rubric.commands.files import convert, schema, validate
from rubric.commands.grading import grade, plan
from rubric.commands.many import grade_many, merge
from rubric.commands.refusing import Commands
from rubric.commands.store import store

__all__ = ["main"]


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rubric-grade")
def main() -> None:
    """
    Grade text against a rubric, with any LLM as the judge.

    Exit codes: 0 passed, 1 failed, 2 could not be graded or bad input.
    """


for command in (validate, plan, grade, grade_many, merge, convert, schema, store):
    main.add_command(command)
