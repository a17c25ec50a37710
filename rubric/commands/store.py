"""Commands about a reply store: `store stats`, `store export`, `store verify`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from rubric.commands.options import FORMAT
from rubric.commands.output import REFUSED, Commands, Refusal, print_json, print_line, print_markdown
from rubric.internals.atomic_write import replacing
from rubric.store import audit

FILE = click.argument("file", type=click.Path(path_type=Path))


@click.group(cls=Commands)
def store() -> None:
    """Inspect a reply store: count, export or verify its calls. Nothing is changed."""


@store.command()
@FILE
@FORMAT
def stats(file: Path, form: str) -> None:
    """Count calls by state, their cost, and the savings."""
    found = audit.stats(file)
    print_json(found.to_dict()) if form == "json" else print_markdown(found._repr_markdown_())


@store.command()
@FILE
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Where to write; standard output by default."
)
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
    """Check that the file is whole, each request the one of its key, and each reply readable."""
    problems = audit.verify(file)
    for problem in problems:
        print_line(f"{file}: {problem}", problem=True)
    if problems:
        sys.exit(REFUSED)
    print_line(f"{file}: whole")
