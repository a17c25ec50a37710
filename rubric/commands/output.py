"""
The output of commands: JSON for machines, tables for people, and nothing in it that can steer a terminal.

A command that cannot go on prints one message on standard error and ends with the exit code 2.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.text import Text

from rubric import Grade, RubricError, Ungraded
from rubric.commands.file_arguments import WrongLineError, check_files, is_report, kind_of
from rubric.commands.messages import in_options
from rubric.commands.written_files import check_written, folder_first, in_folder, written_by
from rubric.commands.wrong_lines import meant, once, with_own
from rubric.commands.wrong_options import TYPED, meant_in
from rubric.driving import Usage
from rubric.embed import TOLERANCE, plugins, shown
from rubric.engine import SPENT
from rubric.internals.guesses import word_cure
from rubric.quality import UnreviewedWarning

if TYPE_CHECKING:
    from rich.console import RenderableType

UNWRAPPED = 100_000
"""Characters a line where the output is not a terminal: programs, and logs that wrap by themselves, get whole lines."""


def console(*, problem: bool = False) -> Console:
    """Return what prints to standard output, or a *problem* to standard error, as `--color` says."""
    stream = (sys.stderr if problem else sys.stdout) or StringIO()  # a stream that was closed takes nothing
    context = click.get_current_context(silent=True)
    color = None if context is None else context.color
    return Console(
        file=stream,
        width=None if stream.isatty() else UNWRAPPED,
        force_terminal=color,
        no_color=True if color is False else None,
        legacy_windows=False if color else None,
    )


def print_styled(item: RenderableType, *, problem: bool = False) -> None:
    """Print *item*: as wide as the terminal is, else in whole lines without blanks at their ends."""
    target = console(problem=problem)
    if target.file.isatty():
        target.print(item, highlight=False, markup=False, emoji=False)
        return
    with target.capture() as captured:
        target.print(item, highlight=False, markup=False, emoji=False)
    target.file.write("\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")


@contextmanager
def progress(total: int, unit: str, *, quiet: bool = False) -> Iterator[Callable[[], None]]:
    """Count up to *total* on standard error, if that is a terminal; what is yielded counts one more."""
    bar = Progress(
        MofNCompleteColumn(),
        unit,
        TimeElapsedColumn(),
        console=console(problem=True),
        transient=True,
        disable=quiet or not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda: bar.advance(task)


def print_json(data: Any) -> None:
    click.echo(json.dumps(data, indent=2, allow_nan=False))


def print_result(result: Any, form: str, *, quiet: bool = False) -> None:
    """Print *result*, a grade, a plan or figures, in the *form* of `--format`; if *quiet*, its first line alone."""
    if form == "json":
        print_json(result.to_dict())
        return
    text, out = result._repr_markdown_(), console()
    if form == "md":
        print_text(shown(text))
        return
    widest = max((len(line) for line in text.splitlines() if line.startswith("|")), default=0)
    if out.file.isatty() and widest > out.width and isinstance(result, Grade | Ungraded) and not quiet:
        print_styled(Text(shown(str(result))))  # the cells of a table would wrap
    else:
        print_markdown(text.partition("\n")[0] if quiet else text)


def print_markdown(text: str, *, problem: bool = False) -> None:
    """Print Markdown *text* as a terminal shows it; a *problem* goes to standard error."""
    print_styled(Markdown(shown(text)), problem=problem)


def print_line(text: str, *, problem: bool = False) -> None:
    """Print one line; a *problem* goes to standard error."""
    click.echo(shown(text), err=problem)


def tell_rate(passed: int, failed: int, least: float) -> bool:
    """Return whether a smaller share than *least* passes, and say so."""
    if passed >= least * (passed + failed) - TOLERANCE:
        return False
    print_line(f"{passed / (passed + failed):.1%} pass, fewer than --min-pass-rate {least:g}", problem=True)
    return True


def print_text(text: str) -> None:
    """Print *text* unchanged: a reporter has escaped it for its readers, and they may be machines."""
    click.echo(text, nl=not text.endswith("\n"))


REFUSED = 2
INTERRUPTED = 130


class Refusal(click.ClickException):
    """A command cannot go on: the message goes to standard error, as one block, with the exit code 2."""

    exit_code = REFUSED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, without anything that could steer a terminal."""
        click.echo(shown(self.message), file=file, err=True)


class _OneVoice(click.Command):
    """Tells a wrong call in one line that names the help, also an option given twice; click would take the last."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _in_one_voice(self):
            return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = [*args]
        try:
            return self._parse(ctx, args)
        except click.UsageError as problem:
            ctx.close()  # click leaves the files of other options open
            problem.ctx = problem.ctx or ctx
            raise

    def _parse(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the arguments that are left, once nothing is refused that click would pass over."""
        values, _, given = self.make_parser(ctx).parse_args(args=[*args])
        for option in given:
            found = values.get(option.name or "")
            found = found if isinstance(found, list) else [found]
            if any(str(each)[:2] == "--" for each in found):
                raise click.BadOptionUsage(option.opts[0], f"Option {option.opts[0]!r} requires an argument", ctx)
            name, makes_folder = written_by(self, option.name or "", values.get("reporter") or "")
            written = {str(each): in_folder(str(each), name) for each in found}
            if folder := next((each for each, file in written.items() if file != each), ""):
                change = {option.name or "": [word for each in written.values() for word in (option.opts[0], each)]}
                said = f"{option.opts[0]} {folder} is a folder; a file is written in it"
                raise WrongLineError(said, {**change, **({} if makes_folder else folder_first(written[folder]))})
        for option, times in Counter(given).items():
            if times > 1 and isinstance(option, click.Option) and not (option.multiple or option.is_flag):
                message = f"{option.opts[0]} is given {times} times, and takes one value; give it once"
                problem = WrongLineError(message, once(ctx, option, args))
                problem.ctx = ctx
                raise problem
        return super().parse_args(ctx, args)


@cache
def groups() -> dict[str, dict[str, dict[str, Any]]]:
    """Return the rows of `options.toml`, by their keys, in the groups of `--help`."""
    return tomllib.loads(files("rubric.commands").joinpath("options.toml").read_text("utf-8"))


class Command(_OneVoice):
    """
    A command whose help has its options in groups.

    *check* refuses what was typed, before the command runs and before a line is printed that has it.
    """

    def __init__(self, *args: Any, check: Callable[[click.Context], None] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._check = check

    def check(self, ctx: click.Context) -> None:
        """Refuse what was typed, in *ctx*, if the command would."""
        check_files(ctx)
        check_written(ctx)
        if self._check is not None:
            self._check(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options in groups, those that belong together under one head."""
        title_of = {key.split()[0]: title for title, rows in groups().items() for key in rows}
        given = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for title in groups():
            records = [param.get_help_record(ctx) for param in given if title_of.get(param.name, "Options") == title]
            if shown_here := [*filter(None, records)]:
                with formatter.section(title):
                    formatter.write_dl(shown_here)

    def invoke(self, ctx: click.Context) -> Any:
        if unread := _unread(ctx):
            names, (option, value) = ", ".join(unread), next(iter(unread.values()))
            print_line(f"not read: {names}; options are typed, such as {option} {value}", problem=True)
        with _in_one_voice(self):
            self.check(ctx)
            return super().invoke(ctx)


def _unread(ctx: click.Context) -> dict[str, tuple[str, object]]:
    """Return settings that look like options of the command and are not read: variables, or a table of a project."""
    table, found = dict[str, Any](), dict[str, tuple[str, object]]()
    with suppress(OSError, ValueError, KeyError):
        table = {**tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["tool"]["rubric"]}
    options = {each.opts[0][2:]: each for each in ctx.command.params if each.opts[0][:2] == "--"}
    own, named = [f"--{each}" for each in options], dict[str, str]()
    for name in {each for each in os.environ if each[:7] == "RUBRIC_"} - {"RUBRIC_RUNS"}:  # where runs are kept
        word = f"--{name[7:].lower().replace('_', '-')}"
        named[meant_in(word_cure("options", ctx.command.name or "", word, own)) or word] = name
    for name, each in options.items():
        variable, key = named.get(f"--{name}", ""), name if name in table else name.replace("-", "_")
        if ctx.get_parameter_source(each.name or "") is ParameterSource.COMMANDLINE:
            continue
        if variable:
            found[variable] = f"--{name}", os.environ[variable]
        if key in table:
            found["[tool.rubric] in pyproject.toml"] = f"--{name}", table[key]
    return found


@contextmanager
def _in_one_voice(command: click.Command) -> Iterator[None]:
    """Turn a wrong call of *command*, or a `RubricError` in it, into a refusal."""
    try:
        yield
    except RubricError as problem:
        cure: dict[str, list[str]] = {}
        said = in_options(problem, command, cure)
        raise Refusal(meant(said, click.get_current_context(silent=True), change=cure)) from problem
    except ImportError as problem:
        if "pip install" not in str(problem):  # ours says which extra is lacking
            raise
        raise Refusal(str(problem)) from problem
    except click.exceptions.NoArgsIsHelpError:
        raise
    except click.UsageError as problem:
        said = "" if isinstance(problem, click.NoSuchOption) else problem.format_message().rstrip(".")
        context = problem.ctx or click.get_current_context(silent=True)
        said = meant(said, context, change=getattr(problem, "change", None)) or problem.format_message().rstrip(".")
        path = "" if context is None else f"; see {context.command_path} --help"
        raise Refusal(f"{said}{path}") from problem


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print warnings of ours as lines, without a place in the source."""
    with warnings.catch_warnings():
        showwarning = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **options: Any) -> None:
            if issubclass(category, UnreviewedWarning | plugins.PluginWarning):
                print_line(f"warning: {message}", problem=True)
            else:
                showwarning(message, category, *place, **options)

        warnings.showwarning = show
        yield


def _so_far() -> str:
    """Return what requests have taken before a command ended early; '' if none was sent."""
    return f"; until then {SPENT}" if SPENT.usage.calls or SPENT.in_flight else ""


class Commands(_OneVoice, click.Group):
    """
    Commands that turn output which cannot be written into a refusal without a traceback.

    *homes* has the module of each in `rubric.commands`, imported for its own commands alone: all take a second.
    """

    command_class = Command

    def __init__(self, *args: Any, homes: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._homes = homes or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted({*self._homes, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if (home := self._homes.get(cmd_name)) and cmd_name not in self.commands:
            self.add_command(getattr(import_module(f"rubric.commands.{home}"), cmd_name.replace("-", "_")))
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that *args* name; an unknown one comes with the one that was meant."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            begun = [name for name in names if name.startswith(args[0]) and len(args[0]) > 2]  # noqa: PLR2004
            held = "results" if is_report(Path(*args[1:2])) else kind_of(*args[1:2])
            cure = word_cure("commands", held, args[0], names) or f"; there are {', '.join(names)}"
            cure = f"; did you mean {begun[0]!r}?" if len(begun) == 1 else cure
            said, found = f"no such command {args[0]!r}{cure}", self.get_command(ctx, meant_in(cure))
            if kind := kind_of(args[0]) or "*" * ("." in args[0]):
                first = "stats" if ctx.parent is not None else "view" if kind == "results" else "grade"
                said = f"no such command {args[0]!r}; the command comes first, one of {', '.join(names)}"
                found, args = self.get_command(ctx, first), ["", *args]
            elif args[1:] and not kind and (own := self.get_command(ctx, args[1])) and not Path(args[1]).exists():
                said = f"{args[0]} is named twice" if args[0] == ctx.info_name else f"no such command {args[0]!r}"
                line = f"; write {ctx.command_path} {args[1]} --help" if args[0] == "help" else ""
                said, found, args = said + line, None if line else own, args[1:]
            elif found and not isinstance(found, Commands) and args[1:] and not kind_of(args[1]) and args[1][:1] != "-":
                is_value = any(args[1] in getattr(each.type, "choices", ()) for each in found.params)
                cure = word_cure("commands", "", args[1], names)  # as in `test run suite.yaml`
                if cure and not meant_in(cure) and not is_value:  # as in `runs rm`
                    cure = with_own(cure, args[2:], args)
                    raise click.UsageError(f"no such command {' '.join(args[:2])!r}{cure}", ctx)
                is_command = bool(meant_in(cure)) and not is_value
                args = [args[0], *args[1 + is_command :]]
            if isinstance(found, Commands) and args[1:]:
                try:
                    found.resolve_command(click.Context(found, ctx, found.name), args[1:])
                except click.UsageError as problem:
                    raise click.UsageError(f"{said} {problem.format_message()}", ctx) from None
            said = with_own(said, args[1:], args) if found is None else meant(said, ctx, found, args[1:])
            raise click.UsageError(said, ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        if sys.stdout is None:
            raise Refusal("the output cannot be written: standard output is closed; write >/dev/null to drop it")
        SPENT.usage, SPENT.in_flight = Usage(), 0  # of a test that calls several commands
        try:
            try:
                with _in_one_voice(self), _warnings_as_lines():
                    result = super().invoke(ctx)
            except SystemExit:
                sys.stdout.flush()
                raise
            sys.stdout.flush()
        except OSError as problem:
            # The rest of the output is discarded: the interpreter's last flush would fail again.
            if sys.__stdout__ is not None and sys.stdout is sys.__stdout__:
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
            raise Refusal(f"the output cannot be written: {problem.strerror or problem}") from problem
        except KeyboardInterrupt as problem:
            print_line(f"interrupted{problem}{_so_far()}", problem=True)
            ctx.exit(INTERRUPTED)
        except Refusal as problem:
            said = _so_far() if isinstance(problem.__cause__, RubricError) else ""
            raise Refusal(problem.message + said) from problem.__cause__
        return result
