"""The columns that options name: how they are read, and which ones a line needs for its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click

from rubric import RubricError
from rubric.commands.file_arguments import WrongLineError, first_row, kind_of
from rubric.commands.messages import in_options
from rubric.commands.wrong_options import Unit, changed_units, label_column
from rubric.embed import source_of

ID = re.compile(r"(?i)(.*[_ .-])?(u?id|uuid)")
"""The name of a column that has keys, where none is named."""

_FIELDS = ("output", "input", "reference", "context", "key")


def columns_of(given: Sequence[str]) -> dict[str, str | Sequence[str] | None]:
    """Return the column of each field, from `FIELD=COLUMN`; `COLUMN=` skips one; `variables` has several."""
    named: dict[str, str | Sequence[str] | None] = {}
    kept: list[str] = []
    for text in given:
        name, sign, column = text.partition("=")
        if not name or not sign:
            raise click.UsageError(
                f"--column {text}: expected FIELD=COLUMN, as output=answer, or value=verdict of labels"
            )
        if name == "variables" and column:
            kept.append(column)
            named[name] = kept
            continue
        if name in named and name in (many := {"value": "criteria", "criterion": "criteria", "rater": "raters"}):
            several = [
                word
                for each in given
                if each.partition("=")[0] == name
                for word in (f"--{many[name]}", each.partition("=")[2])
            ]
            others = [word for each in given if each.partition("=")[0] != name for word in ("--column", each)]
            said = f"--column {text}: {name} is given twice, and several columns have an option of their own"
            raise WrongLineError(said, {"columns": others, many[name]: several})
        if name in named:
            raise click.UsageError(f"--column {text}: {name} is given twice; give it once")
        named[name] = column or None
    return named


def with_columns(command: click.Command, files: Sequence[str], units: list[Unit], typed: Collection[str]) -> list[Unit]:
    """Return *units* with options that name the columns of candidates or labels in *files*, if *typed* ones do not."""
    if command.name in {"agree", "estimate", "thresholds"}:
        bare = [unit for unit in units if unit[0] == "columns" and "=" not in unit[1][-1]]
        units = [(unit[0], ["--column", f"value={unit[1][-1]}"]) if unit in bare else unit for unit in units]
        held = first_row(Path(files[-1])) if files else {}
        units = [
            (unit[0], [label_column(command, word, held) for word in unit[1]]) if unit[0] == "columns" else unit
            for unit in units
        ]
        given = _columns_in(units)
        is_read = files[1:] and kind_of(files[-1]) == "*"
        labels = import_module("rubric.trust").Labels if is_read else None  # its libraries are an extra
        wide = {many: _given(units, many) for many in ("criteria", "raters")}
        found = (
            _named_by(command, given, lambda columns: labels.read(files[-1], columns=columns, **wide))
            if labels
            else given
        )
        return units if found == given or {*given} - {*found} else _replaced(units, found)
    if command.name in {"grade-many", "label", "plan", "probe"} and "rubric" in map(kind_of, files[:2]) and files[1:]:
        return _columns_of(command, Path(files[command.name != "label"]), units, typed)
    return units


def _columns_of(command: click.Command, data: Path, units: list[Unit], typed: Collection[str]) -> list[Unit]:
    """Return *units* with options that name the columns of *data*, and its keys, where *typed* ones do not name all."""
    given = _columns_in(units)
    parts = [part for each in given for part in (each.split(",") if each.count("=") == each.count(",") + 1 else [each])]
    parts = [re.sub(rf"^({'|'.join(_FIELDS)}):|:({'|'.join(_FIELDS)})$", r"\1=\2", part) for part in parts]
    outs = [words[-1] for name, words in units if name in ("out", "outs") and not Path(words[-1]).suffix]
    if outs and outs[-1] in first_row(data):
        parts, units = [*parts, f"output={outs[-1]}"], [unit for unit in units if unit[0] not in ("out", "outs")]

    def read(columns: Mapping[str, Any]) -> None:
        next(iter(cast("Iterable[Any]", source_of(data, columns).items)), None)

    found = _named_by(command, [each for each in parts if "=" in each], read)
    bare = [each for each in parts if "=" not in each and not any(one.endswith(f"={each}") for one in found)]
    found = [*found, *(f"output={each}" for each in bare)]
    ids = [name for name in first_row(data) if ID.fullmatch(name)] if command.name in ("grade-many", "label") else []
    named = {word.removeprefix("--column=") for word in typed}
    is_keyed = any(each.startswith("key=") for each in found) or "key" in first_row(data)
    found += [f"key={name}" for name in ids[:1] if not {*found} <= named and not is_keyed]
    return units if found == given else _replaced(units, found)


def _named_by(command: click.Command, named: list[str], read: Callable[[dict[str, Any]], object]) -> list[str]:
    """Return the columns *named*, or those that the options of *command* must name so that a file can be *read*."""
    with suppress(click.UsageError, OSError, ValueError, ImportError, TypeError):
        try:
            read(columns_of(named))
        except RubricError as problem:
            cure: dict[str, list[str]] = {}
            in_options(problem, command, cure)
            return named if {"criteria", "raters"} & cure.keys() else cure.get("columns", [])[1::2] or named
    return named


def _columns_in(units: Sequence[Unit]) -> list[str]:
    typed = [word for name, words in units if name == "columns" for word in words]
    return [word.removeprefix("--column=") for word in typed if word != "--column"]


def _given(units: Sequence[Unit], name: str) -> list[str]:
    """Return the values of the option *name*, each apart, where commas join several."""
    return [each for of, words in units if of == name for each in words[-1].removeprefix(f"--{name}=").split(",")]


def _replaced(units: Sequence[Unit], found: Sequence[str]) -> list[Unit]:
    return changed_units(units, {"columns": [word for each in found for word in ("--column", each)]})
