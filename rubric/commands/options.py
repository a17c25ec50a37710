"""The options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from rubric.errors import DefinitionError
from rubric.formats.registry import FORMATS

Command = TypeVar("Command", bound=Callable[..., Any])


def options(*given: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Return one decorator that adds the options *given*."""

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
        """Return what help shows for the value."""
        return f"[{'|'.join(self._known())}]"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return *value* if it is found."""
        try:
            self._find(value)
        except DefinitionError as problem:
            self.fail(problem.message, param, ctx)
        return value


TEXT = click.File(encoding="utf-8")
FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="For people, or for machines."
)

FROM = options(
    click.option("--from", "source", type=click.Choice(FORMATS), help="The format, where a file does not say."),
    click.option("--env", "names", multiple=True, metavar="NAME", help="A variable that {{ env.NAME }} may show."),
    click.option(
        "--base",
        type=click.Path(exists=True, file_okay=False),
        metavar="FOLDER",
        help="What a file includes must be in here; left out: in its own folder.",
    ),
)

JUDGE = click.option("--judge", "-j", "judges", multiple=True, metavar="MODEL", help="Who judges; several are a panel.")
THRESHOLD = click.option("--threshold", "-t", type=float, help="Pass from this score in 0..1 instead of the rubric's.")

GRADING = options(
    JUDGE,
    THRESHOLD,
    click.option("--input", "question", type=TEXT, metavar="FILE", help="What the candidate answers."),
    click.option("--reference", type=TEXT, metavar="FILE", help="A reference answer."),
    click.option("--target", metavar="MODEL", help="Who answers the cases that have no response."),
    click.option(
        "--server",
        "servers",
        multiple=True,
        metavar="NAME=COMMAND",
        help="An MCP server for the target to work with: a command, or the address of one.",
    ),
    FROM,
    FORMAT,
)


def declared(names: Sequence[str]) -> dict[str, str]:
    """Return the variables called *names*; one that the environment does not have is refused."""
    for name in names:
        if name not in os.environ:
            raise click.UsageError(f"--env {name}: there is no such variable in the environment; set it")
    return {name: os.environ[name] for name in names}


def refuse_given(names: Collection[str], why: str) -> None:
    """Refuse the call if the command line gives one of the options *names*, which would do nothing here."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{option.opts[0]} {why}")


def columns_of(given: Sequence[str]) -> dict[str, str | None]:
    """Return which column holds which field, as `FIELD=COLUMN` says; `COLUMN=` passes a column over."""
    named: dict[str, str | None] = {}
    for said in given:
        name, sign, column = said.partition("=")
        if not name or not sign:
            raise click.UsageError(
                f"--column {said}: expected FIELD=COLUMN, such as output=answer; question= passes over"
            )
        if name in named:
            raise click.UsageError(f"--column {said}: {name} is given twice; give it once")
        named[name] = column or None
    return named


def judge_of(models: Sequence[str]) -> str | list[str] | None:
    """Return what *models* name: None leaves it to the environment, several are a panel."""
    if len(models) > 1:
        return [*models]
    return models[0] if models else None
