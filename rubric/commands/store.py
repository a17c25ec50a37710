"""The commands about a reply store: `store stats`, `store export` and `store verify`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from rubric.commands.options import PATH, refuse_inputs, take
from rubric.commands.output import REFUSED, Commands, print_line, print_result
from rubric.embed import replacing
from rubric.store import export as exported_calls
from rubric.store import stats as stats_of
from rubric.store import verify as problems_in

FILE = click.argument("store", type=PATH, metavar="FILE")


@click.group(cls=Commands)
def store() -> None:
    """Inspect a reply store without changing it."""


@store.command()
@FILE
@take("form")
def stats(store: Path, form: str) -> None:
    """Count calls by state, their cost, and the cost saved."""
    print_result(stats_of(store), form)


@store.command()
@FILE
@take("out")
def export(store: Path, out: Path | None) -> None:
    """Write every call as a line of JSON, with keys and passwords masked."""
    rows = exported_calls(store)
    if out is None:
        for row in rows:
            click.echo(json.dumps(row))
        return
    refuse_inputs(out, [store])
    with replacing(out) as lines:
        lines.writelines(f"{json.dumps(row)}\n" for row in rows)


@store.command()
@FILE
def verify(store: Path) -> None:
    """Check the file: every request must match its key, and every reply must be readable."""
    problems = problems_in(store)
    for problem in problems:
        print_line(f"{store}: {problem}", problem=True)
    if problems:
        sys.exit(REFUSED)
    print_line(f"{store}: whole")
