"""The commands to begin with: `init`, which writes files to start from, and `completion`, for the shell."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from rubric import dumps, presets
from rubric.commands.options import PATH, Name
from rubric.commands.output import Command, Refusal, print_line
from rubric.embed import write_text

PROGRAMS = ("rubric", "rubric-grade")
"""The console scripts."""

PROGRAM = PROGRAMS[0]

STARTERS = ("rubric.yaml", "suite.yaml")
"""The files that `init` writes: copies of those in `rubric/commands/starters`."""


_REPLY = "Thanks, dear customer: your parcel arrives on Friday. Next step: quote ticket #4471."


@click.command(cls=Command)
@click.argument("folder", type=PATH, default=Path(), required=False)
@click.option("--preset", type=Name(lambda: presets.NAMES, presets.text_of), help="Start from this ready rubric.")
def init(folder: Path, preset: str | None) -> None:
    """
    Write a rubric and a suite to start from.

    Both are commented, and run at once without a key. A file that exists is never overwritten.
    """
    if folder.exists() and not folder.is_dir():
        raise Refusal(f"{folder} is a file; name a folder")
    taken = [str(folder / name) for name in STARTERS if (folder / name).exists()]
    if taken:
        raise Refusal(f"{' and '.join(taken)} exist already; name another folder: {PROGRAM} init FOLDER")
    folder.mkdir(parents=True, exist_ok=True)
    for name in STARTERS:
        write_text(folder / name, _text_of(name, preset))
    rubric, suite = (folder / name for name in STARTERS)
    print_line(f"wrote {rubric} and {suite}")
    print_line("try them without a key, with a judge that only compares words:")
    print_line(f"  {PROGRAM} grade {suite} --judge offline")
    if preset is not None:
        print_line("with a real judge, the cases with the tag must-pass pass, and those with must-fail fail")
        return
    print_line(f'  echo "{_REPLY}" | {PROGRAM} grade {rubric} - --judge offline')


def _text_of(name: str, preset: str | None) -> str:
    """Return the text of a starting file: of *preset* its rubric, or its suite of examples."""
    if preset is None:
        return files("rubric.commands").joinpath("starters", name).read_text("utf-8")
    return presets.text_of(preset) if name == STARTERS[1] else dumps(presets.examples(preset)[0].rubric)


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """
    Print the code for completion in a shell.

    It completes commands, options and files. Have the shell run it when it starts: put `eval "$(rubric completion
    bash)"` into ~/.bashrc, the same with zsh into ~/.zshrc, or `rubric completion fish | source` into
    ~/.config/fish/config.fish.
    """
    root = context.find_root()
    program = root.info_name if root.info_name in PROGRAMS else PROGRAM
    found = get_completion_class(shell)
    assert found is not None  # noqa: S101 - click has all three
    variable = f"_{program}_COMPLETE".replace("-", "_").upper()
    click.echo(found(root.command, {}, program, variable).source())
