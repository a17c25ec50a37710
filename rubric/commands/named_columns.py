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
from rubric.commands.wrong_options import Unit, changed_units, label_column, values_of
from rubric.embed import source_of

ID = re.compile(r"(?i)(.*[_ .-])?(u?id|uuid)")
"""The name of a column that has keys, where none is named."""

_FIELDS = ("output", "input", "reference", "context", "key")


def columns_of(given: Sequence[str]) -> dict[str, str | Sequence[str] | None]:
    """Return the column of each field, from `FIELD=COLUMN`; `COLUMN=` skips one; `variables` has several."""
    named: dict[str, str | Sequence[str] | None] = {}
    for text in given:
        name, sign, column = text.partition("=")
        if not name or not sign:
            form = "expected FIELD=COLUMN, as output=answer, or value=verdict of labels"
            raise click.UsageError(f"--column {text}: {form}")
        if name == "variables" and column:
            named[name] = [*(named.get(name) or ()), column]
            continue
        said = f"--column {text}: {name} is given twice"
        if name in named and name in (many := {"value": "criteria", "criterion": "criteria", "rater": "raters"}):
            pairs = [each.partition("=") for each in given]
            several = [word for of, _, value in pairs if of == name for word in (f"--{many[name]}", value)]
            others = [word for each in pairs if each[0] != name for word in ("--column", "".join(each))]
            change = {"columns": others, many[name]: several}
            raise WrongLineError(f"{said}, and several columns have an option of their own", change)
        if name in named:
            raise click.UsageError(f"{said}; give it once")
        named[name] = column or None
    return named


def wide_of(given: dict[str, Any]) -> dict[str, list[str]]:
    """Return the raters and the criteria of labels that are *given*, and take them out of it."""
    return {name: [one for each in given.pop(name) for one in each.split(",")] for name in ("raters", "criteria")}


def with_columns(command: click.Command, files: Sequence[str], units: list[Unit], typed: Collection[str]) -> list[Unit]:
    """Return *units* with options that name the columns of candidates or labels in *files*, if *typed* ones do not."""
    if command.name in {"agree", "estimate", "thresholds"}:
        bare = [unit for unit in units if unit[0] == "columns" and "=" not in unit[1][-1]]
        units = [(unit[0], ["--column", f"value={unit[1][-1]}"]) if unit in bare else unit for unit in units]
        held = first_row(Path(files[-1])) if files else {}
        columns = values_of(units, "columns")
        given = [label_column(command, each, held) for each in columns]
        units = units if given == columns else _replaced(units, given)
        if not (files[1:] and kind_of(files[-1]) == "*"):
            return units
        labels = import_module("rubric.trust").Labels  # its libraries are an extra
        wide = wide_of({many: values_of(units, many) for many in ("criteria", "raters")})
        found = _named_by(command, given, lambda columns: labels.read(files[-1], columns=columns, **wide))
        return units if found == given or {*given} - {*found} else _replaced(units, found)
    if command.name in {"grade-many", "label", "plan", "probe"} and "rubric" in map(kind_of, files[:2]) and files[1:]:
        return _columns_of(command, Path(files[command.name != "label"]), units, typed)
    return units


def _columns_of(command: click.Command, data: Path, units: list[Unit], typed: Collection[str]) -> list[Unit]:
    """Return *units* with options that name the columns of *data*, and its keys, where *typed* ones do not name all."""
    given = values_of(units, "columns")
    parts = [part for each in given for part in (each.split(",") if each.count("=") == each.count(",") + 1 else [each])]
    parts = [re.sub(rf"^({'|'.join(_FIELDS)}):|:({'|'.join(_FIELDS)})$", r"\1=\2", part) for part in parts]
    outs = [each for name in ("out", "outs") for each in values_of(units, name) if not Path(each).suffix]
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


def _replaced(units: Sequence[Unit], found: Sequence[str]) -> list[Unit]:
    return changed_units(units, {"columns": [word for each in found for word in ("--column", each)]})
