"""
The library at a terminal and in CI: each command is one call of the public API, and its exit code says what came of it.

    0   the candidate passed; the files are valid
    1   the candidate failed
    2   it could not be graded, or something that was given is wrong
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click
from attrs import asdict
from rich.console import Console
from rich.markdown import Markdown

from rubric.candidates import Candidate
from rubric.errors import LoadError, Problem, RubricError, UngradedError
from rubric.formats import load
from rubric.formats import schema as published_schema
from rubric.prompts.escaping import visible
from rubric.verbs import grade as grade_candidate
from rubric.verbs import plan as plan_calls

if TYPE_CHECKING:
    from rubric.grades import Grade, Ungraded
    from rubric.rubrics import Rubric

PASSED, FAILED, REFUSED = 0, 1, 2
INTERRUPTED = 130

WIDTH = 100
"""Characters a line where the output is no terminal."""

STAND_IN = "(the candidate)"
"""What is planned with where no candidate is given."""

Command = TypeVar("Command", bound=Callable[..., Any])


class Refusal(click.ClickException):
    """What the commands cannot go on with: told on standard error, as one block, with the exit code 2."""

    exit_code = REFUSED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, without anything that could steer a terminal."""
        click.echo(visible(self.message)[0], file=file, err=True)


class Commands(click.Group):
    """Commands whose `RubricError`s are refusals, not tracebacks."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RubricError as problem:
            raise Refusal(str(problem)) from problem
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def _options(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


TEXT = click.File(encoding="utf-8")
FORMAT = click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="For people, or for machines."
)
GRADING = _options(
    click.option("--judge", "-j", "judges", multiple=True, metavar="MODEL", help="Who judges; several are a panel."),
    click.option("--threshold", "-t", type=float, help="Pass from this score in 0..1 instead of the rubric's."),
    click.option("--input", "question", type=TEXT, metavar="FILE", help="What the candidate answers."),
    click.option("--reference", type=TEXT, metavar="FILE", help="A reference answer."),
    FORMAT,
)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rubric-grade")
def main() -> None:
    """
    Grade text against a rubric, with any LLM as the judge.

    Exit codes: 0 passed, 1 failed, 2 could not be graded or bad input.
    """


@main.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@FORMAT
def validate(files: Sequence[str], form: str) -> None:
    """
    Tell all that is wrong with rubric files.

    Each problem stands on a line of its own, with its place in the file.
    """
    reports = [_report(file) for file in files]
    if form == "json":
        _print_json(reports)
    else:
        for report in reports:
            _tell(report)
    if not all(report["valid"] for report in reports):
        sys.exit(REFUSED)


@main.command()
@click.argument("file", type=click.Path())
@click.argument("candidate", type=TEXT, required=False)
@GRADING
def plan(file: str, candidate: IO[str] | None, judges: Sequence[str], form: str, **given: Any) -> None:
    """
    Count calls, tokens and dollars; send nothing.

    Without a CANDIDATE, a stand-in of two words is counted.
    """
    rubric = _rubric(file, given.pop("threshold"))
    planned = plan_calls(_candidate(candidate, **given), rubric, _judge(judges))
    if form == "json":
        _print_json(planned.to_dict())
    else:
        _print_markdown(planned._repr_markdown_())


@main.command()
@click.argument("file", type=click.Path())
@click.argument("candidate", type=TEXT)
@GRADING
def grade(file: str, candidate: IO[str], judges: Sequence[str], form: str, **given: Any) -> None:
    """
    Grade a text against a rubric.

    FILE holds the rubric, CANDIDATE the text; - is standard input.
    """
    rubric = _rubric(file, given.pop("threshold"))
    try:
        result = grade_candidate(_candidate(candidate, **given), rubric, _judge(judges))
    except UngradedError as problem:
        _print_result(problem.result, form)
        raise
    _print_result(result, form)
    sys.exit(PASSED if result.passed else FAILED)


@main.command()
def schema() -> None:
    """
    Print the JSON Schema of rubric files.

    Editors that know it complete keys and mark mistakes.
    """
    _print_json(published_schema())


def _rubric(file: str, threshold: float | None) -> Rubric:
    rubric = load(file)
    return rubric if threshold is None else rubric.passing_at(threshold)


def _judge(models: Sequence[str]) -> str | list[str] | None:
    """Return what *models* name: None leaves it to the environment, several are a panel."""
    if len(models) > 1:
        return [*models]
    return models[0] if models else None


def _candidate(output: IO[str] | None, *, question: IO[str] | None, reference: IO[str] | None) -> Candidate:
    text = STAND_IN if output is None else _read(output)
    return Candidate(text, input=_read(question), reference=_read(reference))


def _read(stream: IO[str] | None) -> str:
    if stream is None:
        return ""
    try:
        return stream.read()
    except UnicodeDecodeError as problem:
        message = f"{stream.name}: not UTF-8 text ({problem.reason} at byte {problem.start})"
        raise Refusal(message) from problem


def _report(file: str) -> dict[str, Any]:
    try:
        load(file)
    except LoadError as error:
        return {"file": file, "valid": False, "problems": [asdict(problem) for problem in error.problems]}
    return {"file": file, "valid": True, "problems": []}


def _tell(report: dict[str, Any]) -> None:
    if report["valid"]:
        click.echo(visible(f"{report['file']}: valid")[0])
    for problem in report["problems"]:
        click.echo(visible(str(Problem(**problem)))[0], err=True)


def _print_result(result: Grade | Ungraded, form: str) -> None:
    if form == "json":
        _print_json(result.to_dict())
    else:
        _print_markdown(result._repr_markdown_())


def _print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, allow_nan=False))


def _print_markdown(text: str) -> None:
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    console.print(Markdown(visible(text)[0]))
