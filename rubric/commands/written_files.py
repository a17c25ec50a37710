"""The files that options of commands write, where a folder is named, or one is not there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import click

from rubric.commands.file_arguments import TRIAL, Change, WrongLineError, file_table
from rubric.suites.reporters.registry import reporter, reporter_names


def written_by(command: click.Command, name: str, form: str = "") -> tuple[str, bool]:
    """Return the file that the option *name* of *command* writes, in a *form*, if any, and if it makes its folder."""
    for kind in ("alone", "report"):
        names = file_table()[kind]
        if file := names.get(f"{command.name} {name}", names.get(name)):
            endings = reporter(form).endings if name == "outs" and form in reporter_names() else ()
            ending = next(iter(endings), "")
            return (f"{Path(file).stem}{ending}" if ending[:1] == "." else ending or file), kind == "report"
    return "", False


def in_folder(value: str, name: str) -> str:
    """Return the file *name* in the folder *value*; *value* itself where it is none, or *name* is ''."""
    return str(Path(value, name)) if name and value and (value[-1] in "/\\" or Path(value).is_dir()) else value


def folder_first(file: str) -> Change:
    """Return the change that makes the folder of *file* before the line; {} where it is there."""
    folder = str(Path(file).parent)
    return {} if Path(folder).is_dir() else {"FIRST": [shlex.join(["mkdir", "-p", folder])]}


def check_written(context: click.Context) -> None:
    """
    Refuse a file that would be written where no folder is, or whose name has another ending than it needs.

    Raises:
        WrongLineError: It has the line that makes the folder, or the name.
    """
    for option in context.command.params:
        name, makes_folder = written_by(context.command, option.name or "")
        endings, _, told = file_table()["endings"].get(f"{context.command.name} {option.name}", "").partition(": ")
        given: Any = context.params.get(option.name or "") if name else None
        for value in given if isinstance(given, tuple) else [given] * (given is not None):
            if endings and Path(value).suffix.lower() not in endings.split():
                named = str(Path(value).with_suffix(endings.split()[0]))
                raise WrongLineError(f"{option.opts[0]} {value}: {told}", {option.name or "": (option.opts[0], named)})
            if not (makes_folder or context.meta.get(TRIAL)) and (change := folder_first(str(value))):
                said = f"{option.opts[0]} {value}: there is no folder {Path(value).parent}"
                if re.match(r"\w{2,}:/", str(value)):  # an address
                    raise WrongLineError(f"{said}; name a file in one that is there", {})
                raise WrongLineError(said, change)
