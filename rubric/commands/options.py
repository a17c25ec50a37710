"""The options that several commands share, and checks of options."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from rubric.errors import DefinitionError
from rubric.formats.registry import format_names

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*given: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that adds all options *given*."""

    def decorate(command: Command) -> Command:
        for option in reversed(given):
            command = option(command)
        return command

    return decorate


class Name(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """
    One of the names that *known* returns, which may include those of plug-ins.

    `click.Choice` wants them when the commands are imported; *known* is asked when help is shown or a name is refused.
    """

    name = "name"

    def __init__(self, known: Callable[[], Sequence[str]], find: Callable[[str], object]) -> None:
        self._known, self._find = known, find

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002 - as click calls it
        return f"[{'|'.join(self._known())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            self._find(value)
        except DefinitionError as problem:
            self.fail(problem.message, param, ctx)
        return value


TEXT = click.File(encoding="utf-8")
FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="Print for people, or for machines."
)

FROM = options(
    click.option("--from", "source", type=click.Choice(format_names()), help="Read the files as this format."),
    click.option("--env", "names", multiple=True, metavar="NAME", help="Let {{ env.NAME }} show this variable."),
    click.option(
        "--base",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        help="Let files include from this folder instead of their own.",
    ),
)

PATH = click.Path(path_type=Path)
STORE = click.option("--store", type=PATH, metavar="FILE", help="Keep every reply in FILE, and answer from it.")


def _as_judge(_: click.Context, __: click.Parameter, models: Sequence[str]) -> str | list[str] | None:
    """Return several models as a panel; None is the environment's judge."""
    return [*models] if len(models) > 1 else next(iter(models), None)


JUDGE = click.option(
    "--judge", "-j", multiple=True, callback=_as_judge, metavar="MODEL", help="Judge by this model; several: a panel."
)
THRESHOLD = click.option("--threshold", "-t", type=float, help="Pass from this score in 0..1, not the rubric's.")

GRADING = options(
    JUDGE,
    THRESHOLD,
    click.option("--input", "question", type=TEXT, metavar="FILE", help="Read what the candidate answers."),
    click.option("--reference", type=TEXT, metavar="FILE", help="Read a reference answer."),
    click.option("--target", metavar="MODEL", help="Answer cases without a response with this model."),
    click.option(
        "--server",
        "servers",
        multiple=True,
        metavar="NAME=COMMAND",
        help="Give the target an MCP server: a command, or an address.",
    ),
    FROM,
    FORMAT,
)


def declared(names: Sequence[str]) -> dict[str, str]:
    """Return the variables *names* of the environment; refuse one that it does not have."""
    for name in names:
        if name not in os.environ:
            raise click.UsageError(f"--env {name}: there is no such variable in the environment; set it")
    return {name: os.environ[name] for name in names}


def refuse_folder(out: Path) -> None:
    """Refuse `--out` if it names a folder."""
    if out.is_dir():
        raise click.UsageError(f"--out {out} is a folder; name a file in it")


def refuse_given(names: Collection[str], why: str) -> None:
    """Refuse the options *names*, which would do nothing here, if the command line gives one."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} {why}")


def columns_of(given: Sequence[str]) -> dict[str, str | None]:
    """Return the column of each field, from `FIELD=COLUMN`; `COLUMN=` skips a column."""
    named: dict[str, str | None] = {}
    for text in given:
        name, sign, column = text.partition("=")
        if not name or not sign:
            raise click.UsageError(
                f"--column {text}: expected FIELD=COLUMN, such as output=answer; question= passes over"
            )
        if name in named:
            raise click.UsageError(f"--column {text}: {name} is given twice; give it once")
        named[name] = column or None
    return named
