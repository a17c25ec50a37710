"""
The library at a terminal and in CI: the script `rubric`, and `python -m rubric`.

Each command is one call of the public API. Its exit code states the result:

    0   the candidate, or every case, passed; the files are valid
    1   one failed
    2   something could not be graded, or an input is wrong
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` puts the current folder first: a `yaml.py` there would run in place of the library. No script does so.
    sys.path.pop(0)

import io

import click

from rubric.commands.files import convert, diff, print_schema, validate
from rubric.commands.generate import generate
from rubric.commands.grade import grade, plan
from rubric.commands.grade_many import grade_many, merge
from rubric.commands.label import label
from rubric.commands.output import Commands
from rubric.commands.prefer import prefer
from rubric.commands.quality import align, check, explain, lint, probe
from rubric.commands.setup import completion, init
from rubric.commands.store import store
from rubric.commands.trust import agree, compare, estimate, thresholds
from rubric.commands.view import view


@click.group("rubric", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rubric-grade")
def main() -> None:
    """
    Grade text against a rubric, with any LLM as the judge.

    Exit codes: 0 passed, 1 failed, 2 could not be graded or bad input.
    """


COMMANDS = (
    agree,
    align,
    check,
    compare,
    completion,
    convert,
    diff,
    estimate,
    explain,
    generate,
    grade,
    grade_many,
    init,
    label,
    lint,
    merge,
    plan,
    prefer,
    probe,
    print_schema,
    store,
    thresholds,
    validate,
    view,
)

for command in COMMANDS:
    main.add_command(command)


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape, and not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    main()


if __name__ == "__main__":
    run()
