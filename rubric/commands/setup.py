"""The command to begin with: `init`, which writes files to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from rubric import dumps, presets
from rubric.commands.file_arguments import WrongLineError
from rubric.commands.options import PATH, Name, take
from rubric.commands.output import Command, Refusal, print_line
from rubric.embed import write_text

PROGRAM = "rubric"

STARTERS = ("rubric.yaml", "suite.yaml")
"""The files that `init` writes: copies of those in `rubric/commands/starters`."""


_REPLY = "Thanks, dear customer: your parcel arrives on Friday. Next step: quote ticket #4471."


def _check(context: click.Context) -> None:
    folder = context.params["folder"]
    if folder.suffix in (".yaml", ".yml", ".json") or folder.is_file():
        raise WrongLineError(f"{folder} is a file; name a folder", {"ARGUMENTS": [str(folder.with_suffix(""))]})


@click.command(cls=Command, check=_check)
@click.argument("folder", type=PATH, default=Path(), required=False)
@take("preset", preset=Name(lambda: presets.NAMES, presets.text_of))
def init(folder: Path, preset: str | None) -> None:
    """
    Write a rubric and a suite to start from.

    Both are commented, and run at once without a key. A file that exists is never overwritten.
    """
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
