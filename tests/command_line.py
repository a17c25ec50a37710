"""The command line in this process, and the files of its examples."""

from __future__ import annotations

import sys

import click
from click.testing import CliRunner, Result

from rubric.__main__ import main
from tests.places import ROOT

EXAMPLES = ROOT / "docs" / "examples"
RUBRIC = str(EXAMPLES / "support_reply.yaml")
REPLY = str(EXAMPLES / "reply.txt")

OVER_HTTP = "from rubric.models import registry; registry._litellm = registry._direct"
"""For a process that asks a named model and is not about LiteLLM, whose import takes seconds: ask straight over HTTP."""

COMMAND = [sys.executable, "-c", f"{OVER_HTTP}; from rubric.__main__ import run; run()"]
"""`rubric` in a process of its own, likewise."""


def run(*arguments: str, stdin: str = "") -> Result:
    """Run the command line in this process."""
    result = CliRunner().invoke(main, arguments, input=stdin)
    if not isinstance(result.exception, SystemExit | None):
        raise result.exception
    return result


def commands() -> dict[str, click.Command]:
    """Return every command by its name."""
    with click.Context(main) as context:
        found = {name: main.get_command(context, name) for name in main.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


def choices_of(command: str, name: str) -> tuple[str, ...]:
    """Return the words that the option *name* of *command* takes."""
    (option,) = (param for param in commands()[command].params if param.name == name)
    return tuple(getattr(option.type, "choices"))  # noqa: B009 - only some types have it
