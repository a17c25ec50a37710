"""Commands about files: `validate`, `convert`, `schema`."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import click
from attrs import asdict, define, field

from rubric.commands.options import FORMAT, FROM, declared, refuse_given
from rubric.commands.printing import print_json, print_line, print_markdown, print_text
from rubric.commands.refusing import REFUSED, Command, as_options
from rubric.errors import LoadError, Problem
from rubric.formats import load
from rubric.formats import schema as rubric_schema
from rubric.formats.files import write_text
from rubric.formats.suites import convert as convert_suite
from rubric.formats.suites import format_of, is_rubric, load_suite, suite_schema
from rubric.rubrics import Rubric
from rubric.showing import table
from rubric.suites.suites import Suite

__all__ = ["convert", "schema", "validate"]

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".csv")


@define
class Checked:
    """What was found in one file: its format, how much is in it, and what is wrong."""

    file: str
    format: str = ""
    cases: int = 0
    rubrics: int = 0
    criteria: int = 0
    problems: list[Problem] = field(factory=list)
    warnings: list[Problem] = field(factory=list)


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@click.option("--summary", is_flag=True, help="Count files, cases, rubrics, warnings and problems, format by format.")
@FROM
@FORMAT
def validate(
    files: Sequence[str], form: str, source: str | None, names: Sequence[str], base: str | None, *, summary: bool
) -> None:
    """
    Tell all that is wrong with files of rubrics and suites.

    Each problem and each warning stands on a line of its own, with its place in the file. A folder stands for all
    files in it.
    """
    if form == "json":
        refuse_given({"summary"}, "is a table for people; with --format json, count the entries")
    found = [_check(file, source, names, base) for file in _all_files(files)]
    if form == "json":
        print_json([_as_data(checked) for checked in found])
    elif summary:
        print_markdown(_summary(found))
    else:
        for checked in found:
            _tell(checked)
    if any(checked.problems for checked in found):
        sys.exit(REFUSED)


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@click.option("--to", "form", type=click.Choice(["native", "promptfoo", "agentv-2", "mcptest"]), default="native")
@click.option("--out", type=click.Path(), metavar="FILE", help="Where to write it; left out: standard output.")
@FROM
def convert(
    file: str, form: str, out: str | None, source: str | None, names: Sequence[str], *, base: str | None
) -> None:
    """
    Write a suite in another format.

    What that format cannot hold is told on standard error, a line each.
    """
    suite = load_suite(file, source, base=base, environ=declared(names))
    converted = convert_suite(suite, form)
    for line in (*map(str, suite.warnings if form != "native" else ()), *converted.dropped):
        print_line(f"dropped: {line}", problem=True)
    if out is None:
        print_text(str(converted))
    else:
        write_text(Path(out), str(converted))


@click.command(cls=Command)
@click.argument("what", type=click.Choice(["rubric", "suite"]), default="rubric")
def schema(what: Literal["rubric", "suite"]) -> None:
    """
    Print the JSON Schema of rubric files, or of suite files.

    Editors that know it complete keys and mark mistakes.
    """
    print_json(suite_schema() if what == "suite" else rubric_schema())


def _all_files(given: Sequence[str]) -> Iterator[str]:
    for name in given:
        path = Path(name)
        if path.is_dir():
            yield from (str(file) for file in sorted(path.rglob("*")) if _may_be_ours(file))
        else:
            yield name


def _may_be_ours(file: Path) -> bool:
    """Say whether a file in a folder is worth a look; a table is one of tests only where it says what is expected."""
    suffix = file.suffix.lower()
    if suffix != ".csv":
        return suffix in SUFFIXES
    with file.open(encoding="utf-8", errors="replace") as lines:
        return "__expected" in lines.readline(10_000)


def _check(file: str, source: str | None, names: Sequence[str], base: str | None) -> Checked:
    try:
        if source is None and is_rubric(file):
            return _of_rubric(file, load(file, base=base))
        return _of_suite(file, load_suite(file, source, base=base, environ=declared(names)))
    except LoadError as error:
        return Checked(file, source or format_of(file), problems=list(error.problems))


def _of_rubric(file: str, rubric: Rubric) -> Checked:
    checked = Checked(file, "rubric", 0, 1 + len(_nested(rubric)), len(rubric.judged))
    if not rubric.judged:
        checked.problems.append(Problem(file, 1, 1, "criteria", "there is nothing to grade by; write one"))
    return checked


def _of_suite(file: str, suite: Suite) -> Checked:
    rubrics = [inner for case in suite for inner in (case.rubric, *_nested(case.rubric))]
    criteria = sum(len(rubric.judged) for rubric in rubrics)
    return Checked(file, suite.format, len(suite), len(rubrics), criteria, warnings=list(suite.warnings))


def _nested(rubric: Rubric) -> list[Rubric]:
    inner = [criterion.answer for criterion in rubric.criteria if isinstance(criterion.answer, Rubric)]
    return [*inner, *(deeper for one in inner for deeper in _nested(one))]


def _as_data(checked: Checked) -> dict[str, Any]:
    data = asdict(checked)
    return {"file": data.pop("file"), "valid": not checked.problems, **data}


def _tell(checked: Checked) -> None:
    for warning in checked.warnings:
        print_line(f"warning: {warning}", problem=True)
    for problem in checked.problems:
        print_line(as_options(str(problem)), problem=True)
    if not checked.problems:
        print_line(f"{checked.file}: valid")


_COLUMNS = ("format", "files", "valid", "cases", "rubrics", "criteria", "warnings", "problems")


def _summary(found: Sequence[Checked]) -> str:
    by_format: dict[str, list[Checked]] = defaultdict(list)
    for checked in found:
        by_format[checked.format or "unknown"].append(checked)
    rows = [_row(name, by_format[name]) for name in sorted(by_format)]
    return table(_COLUMNS, [*rows, _row("all", found)])


def _row(name: str, group: Sequence[Checked]) -> tuple[str, ...]:
    counts = (
        len(group),
        sum(not checked.problems for checked in group),
        *(sum(getattr(checked, column) for checked in group) for column in ("cases", "rubrics", "criteria")),
        *(sum(len(getattr(checked, column)) for checked in group) for column in ("warnings", "problems")),
    )
    return (name, *(str(count) for count in counts))
