"""What commands print: JSON for machines, tables for people; nothing in it can steer a terminal."""

from __future__ import annotations

import json
import sys
from typing import Any

import click
from rich.console import Console
from rich.markdown import Markdown

from rubric.prompts.escaping import visible

__all__ = ["print_json", "print_line", "print_markdown", "print_text"]

WIDTH = 100
"""Characters a line where the output is no terminal."""


def print_json(data: Any) -> None:
    """Print *data* as JSON."""
    click.echo(json.dumps(data, indent=2, allow_nan=False))


def print_markdown(text: str, *, problem: bool = False) -> None:
    """Print Markdown *text* as a terminal shows it; a *problem* goes to standard error."""
    stream = sys.stderr if problem else sys.stdout
    console = Console(file=stream, width=None if stream.isatty() else WIDTH)
    console.print(Markdown(visible(text)[0]))


def print_line(text: str, *, problem: bool = False) -> None:
    """Print one line; a *problem* goes to standard error."""
    click.echo(visible(text)[0], err=problem)


def print_text(text: str) -> None:
    """Print *text* as it is: it has been made for its readers, and machines may be among them."""
    click.echo(text, nl=not text.endswith("\n"))
