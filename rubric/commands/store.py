"""Commands about a reply store: `store stats`, `store export`, `store verify`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from rubric.commands.options import FORMAT
from rubric.commands.output import REFUSED, Commands, Refusal, print_line, print_result
from rubric.internals.atomic_write import replacing
from rubric.store import audit

FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group(cls=Commands)
def store() -> None:
    """Look into a reply store: what it holds, and whether it is whole. Nothing is changed."""


@store.command()
@FILE
@FORMAT
def stats(file: Path, form: str) -> None:
    """Count calls by state, what they cost, and what was saved."""
    print_result(audit.stats(file), form)


@store.command()
@FILE
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="Left out: standard output.")
def export(file: Path, out: Path | None) -> None:
    """Write every call as a line of JSON, with keys and passwords masked."""
    rows = audit.export(file)
    if out is None:
        for row in rows:
            click.echo(json.dumps(row))
        return
    if out.exists() and file.exists() and out.samefile(file):
        raise Refusal(f"{out}: this is the store itself; name another file")
    with replacing(out) as lines:
        lines.writelines(f"{json.dumps(row)}\n" for row in rows)


@store.command()
@FILE
def verify(file: Path) -> None:
    """Check the file, that every request is that of its key, and that every outcome can be read."""
    problems = audit.verify(file)
    for problem in problems:
        print_line(f"{file}: {problem}", problem=True)
    if problems:
        sys.exit(REFUSED)
    print_line(f"{file}: whole")
