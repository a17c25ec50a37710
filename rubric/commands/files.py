"""The commands about files: `validate`, `convert`, `diff`, `schema`, and `init`, which writes some to start from."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import click
from attrs import asdict, define, field

from rubric import DefinitionError, LoadError, Rubric, Suite, dump, dumps, load, load_suite, loads_suite, presets
from rubric import convert as convert_suite
from rubric import diff as rubric_diff
from rubric.commands import options, output
from rubric.commands.file_arguments import SUCH_AS, WrongLineError, first_row, holds_results, is_report, kind_of
from rubric.commands.messages import in_options
from rubric.commands.named_columns import columns_of
from rubric.commands.trust import from_extra
from rubric.embed import NOTHING, counted, fields, shorten, write_text
from rubric.errors import Problem
from rubric.formats import Converted
from rubric.formats import schema as json_schema
from rubric.formats.projects import around, is_rubric, project_of
from rubric.formats.registry import recognise, written_names
from rubric.suites.missing_judges import unsupported_graders

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".csv")


@define
class Checked:
    """
    The findings in one file: its format, its size, and its problems.

    Args:
        ungradable: How many of its cases would end ungraded with any judge.
        empty: How many of these assert nothing.
        lacking: The graders of the others that this library does not have.
        remark: Why it was read in this format, if it has problems.
        base: The folder that it may include files from, where that is not its own.
    """

    file: str
    format: str = ""
    cases: int = 0
    problems: list[Problem] = field(factory=list)
    warnings: list[Problem] = field(factory=list)
    ungradable: int = 0
    empty: int = 0
    lacking: list[str] = field(factory=list)
    remark: str = ""
    base: str = ""

    @property
    def sound(self) -> bool:
        """True if it is valid, and all of it can be graded here."""
        return not self.problems and not self.ungradable

    def count(self, rubrics: Iterable[Rubric]) -> None:
        """Count those of *rubrics*, one for each case, that cannot be graded."""
        for rubric in rubrics:
            found = [*unsupported_graders(rubric)] if rubric.judged else [NOTHING]
            self.ungradable += bool(found)
            self.empty += NOTHING in found
            self.lacking += [one.type for one in found if one != NOTHING and one.type not in self.lacking]

    @property
    def verdict(self) -> str:
        """The line on the file: that it is valid, which part cannot be graded, and the format that it was read in."""
        total = counted(self.cases or 1, "case")
        parts = ["valid"]
        if held := self.ungradable - self.empty:
            verb, names = "holds" if held == 1 else "hold", shorten(", ".join(self.lacking), 200)
            parts.append(f"{held} of {total} {verb} graders that do not run here ({names})")
        if self.empty:
            parts.append(f"{self.empty} of {total} {'asserts' if self.empty == 1 else 'assert'} nothing")
        read = "a rubric" if self.format == "rubric" else f"{self.format}, {counted(self.cases, 'case')}"
        wider = [f"it may include files below {self.base}"] if self.base else []
        return "; ".join([*parts, f"read as {read}", *wider])


@click.command(cls=output.Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@options.take(f"{options.FROM} form")
def validate(files: Sequence[str], form: str, source: str | None, names: Sequence[str], base: str | None) -> None:
    """
    Check files of rubrics and suites, and list all problems.

    Each problem and each warning is a line with its place in the file. The line of a valid file names its format, and
    the cases that cannot be graded here. For a folder, check all files in it.
    """
    found = [_check(file, source, names, base) for file in rubric_files(files)]
    if form == "json":
        output.print_json([{"file": one.file, "valid": not one.problems, **asdict(one)} for one in found])
    else:
        for checked in found:
            for warning in checked.warnings:
                output.print_line(f"warning: {in_options(warning)}", problem=True)
            if checked.problems:
                output.print_line(in_options(LoadError(checked.problems, remark=checked.remark)), problem=True)
            if not checked.problems:
                output.print_line(f"{checked.file}: {checked.verdict}")
    if not all(checked.sound for checked in found):
        sys.exit(output.REFUSED)


def _check_written(name: str) -> None:
    is_file = Path(name).suffix and name not in written_names()
    if is_file or name in ("json", "yaml", "yml"):
        said = f"--to {name} is not a format; the file to write, which is JSON or YAML by its ending, has an option"
        raise WrongLineError(said, {"form": (), "out": ("--out", name if is_file else f"converted.{name}")})
    if name not in written_names():
        tables = "; a table of results is made in Python: grades.to_csv(path)" if name in ("csv", "tsv", "xlsx") else ""
        raise DefinitionError("to", f"unknown format {name!r}{fields.suggest(name, written_names())}{tables}")


def _check_form(context: click.Context) -> None:
    """Refuse the name of a format as that of the file to write."""
    file, out = Path(context.params["file"]), context.params["out"]
    if file.is_dir():
        first = next(rubric_files([str(file)]), str(file / "rubric.yaml"))
        said = f"{file} is a folder, and each file is converted by itself, such as rubric convert {shlex.quote(first)}"
        raise click.UsageError(f"{said}, and what is wrong in all is told by rubric validate {file}")
    if out in ("json", "yaml", "yml"):
        raise WrongLineError(f"--out {out} is no file", {"out": ("--out", f"converted.{out}")})
    if out in written_names():
        raise WrongLineError(f"{out} is a format, which has an option", {"out": (), "form": ("--to", out)})


@click.command(cls=output.Command, check=_check_form)
@click.argument("file", type=click.Path())
@options.take(f"form out {options.FROM}", form=options.Name(written_names, _check_written))
def convert(file: str, *, form: str, out: str | None, source: str | None, names: Sequence[str], base: Any) -> None:
    """
    Write a suite in another format, or a rubric as YAML or JSON.

    The parts that this format cannot hold are listed on standard error, after the warnings of the file itself.

    Exit codes: 0 written, 2 the file cannot be read or written.
    """
    if form == "native" and source is None and is_rubric(file):  # which stays one
        rubric = load(file, base=base)
        dump(rubric, out) if out is not None else output.print_text(dumps(rubric))
        return
    suite = load_suite(file, source, base=base, environ=options.read_environment(names))
    converted = convert_suite(suite, form)
    if changed := _count_changes(suite, converted):
        said = f"this conversion can change verdicts: {changed} of {len(suite)} cases are graded by other rules"
        output.print_line(said, problem=True)
    warned = [*map(str, suite.warnings)]  # of the file that was read: they are no losses of this conversion
    for line in dict.fromkeys([*warned, *converted.dropped]):
        output.print_line(f"{'warning' if line in warned else 'dropped'}: {line}", problem=True)
    if out is None:
        output.print_text(str(converted))
    else:
        converted.dump(out)


def _count_changes(suite: Suite, converted: Converted) -> int:
    """Return how many cases of *suite* are left out, or have another rubric than before."""
    if not converted.dropped:
        return 0
    after = loads_suite(str(converted), converted.format).cases
    known, in_order = {case.id: case for case in after}, len(after) == len(suite)
    pairs = [(case, known.get(case.id) or (after[n] if in_order else None)) for n, case in enumerate(suite)]
    return sum(
        again is None or any(change.affects != "people" for change in rubric_diff(case.rubric, again.rubric))
        for case, again in pairs
    )


@click.command("schema", cls=output.Command)
@click.argument("what", type=click.Choice(["rubric", "suite"]), default="rubric")
def schema(what: Literal["rubric", "suite"]) -> None:
    """
    Print the JSON Schema of rubric files, or of suite files.

    Editors that know it complete keys and mark mistakes.
    """
    output.print_json(json_schema(what))


SAME, DIFFERENT = 0, 1


def _check_kind(context: click.Context) -> None:
    """Refuse results, which another command compares."""
    before, after = context.params["before"], context.params["after"]
    if Path(before).is_file() and (is_report(Path(before)) or holds_results(Path(before))):
        change = {"COMMAND": ["compare"], "ARGUMENTS": [after, before]}
        said = "another command compares runs, and ends with 1 for what chance does not explain"
        gate = f"rubric grade suite.yaml --judge offline --baseline {shlex.quote(str(before))} --largest-drop 0"
        said += f"; for any drop, and graded anew, {gate} --min-pass-rate 0" * is_report(Path(before))
        raise WrongLineError(f"{before} holds results; {said}", change)
    if all(Path(file).suffix in SUFFIXES[:2] and kind_of(str(file)) == "*" for file in (before, after)):
        shown = " ".join(f"<(rubric convert {shlex.quote(str(file))})" for file in (before, after))
        raise click.UsageError(f"diff compares rubrics, and suites are compared as text, such as diff {shown}")


@click.command(cls=output.Command, check=_check_kind)
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@options.take(f"candidates columns {options.JUDGE} {options.PAYING} form")
def diff(
    before: str, after: str, *, candidates: Path | None, columns: Sequence[str], judge: Any, form: str, **given: Any
) -> None:
    """
    Compare two rubrics, for the judge and for the score.

    A change for the score is free: results can be rescored. A change for the judge needs new calls.

    Exit codes: 0 they ask and score alike, or of candidates: no shift is shown; 1 they differ, or one is shown; 2 bad
    input, or no candidate could be graded by both.
    """
    if candidates is not None:
        shifts = from_extra("rubric.quality", "shifts")
        names = columns_of(columns)
        moved = shifts(load(before), load(after), judge, str(candidates), columns=names, **options.calls_of(given))
        output.print_result(moved, form)
        sys.exit(output.REFUSED if not moved[""].n else DIFFERENT if moved.significant else SAME)
    options.refuse_given({"judge", "columns", "prices", *given}, "is for --candidates; without it no judge is asked")
    found = rubric_diff(load(before), load(after))
    output.print_result(found, form)
    sys.exit(DIFFERENT if len(found) else SAME)


def rubric_files(given: Sequence[str]) -> Iterator[str]:
    """Yield the files *given*; of a folder, all that may hold a rubric or a suite, but none in a hidden folder."""
    for name in given:
        if Path(name).is_dir():
            for file in sorted(Path(name).rglob("*")):  # not in `.rubric`, which holds kept runs, `.git` or `.venv`
                is_hidden = any(part.startswith(".") for part in file.relative_to(name).parent.parts)
                yield from [str(file)] if not is_hidden and _may_be_a_suite(file) else ()
        else:
            yield name


def _may_be_a_suite(file: Path) -> bool:
    """True if a file in a folder may hold a rubric or a suite: a CSV has a column `__expected`, JSON lines a format."""
    suffix = file.suffix.lower()
    if suffix == ".jsonl":  # rows, or results; a broken line is told
        row = first_row(file)
        return bool(recognise([row], file.name, "", around(file)).format if row else file.stat().st_size)
    if suffix != ".csv":
        return suffix in SUFFIXES and not is_report(file)
    with file.open(encoding="utf-8", errors="replace") as lines:
        return "__expected" in lines.readline(10_000)


def _check(file: str, source: str | None, names: Sequence[str], base: str | None) -> Checked:
    try:
        if source is None and is_rubric(file):
            rubric = load(file, base=base)
            checked = Checked(file, "rubric")
            checked.count([rubric])
            nothing = () if rubric.judged else ("criteria", "there is nothing to grade by; write one")
        else:
            suite = load_suite(file, source, base=base, environ=options.read_environment(names))
            checked = Checked(file, suite.format, len(suite), warnings=list(suite.warnings))
            checked.count(case.rubric for case in suite)
            root = project_of(Path(file)) if base is None else Path(base)
            checked.base = "" if os.path.abspath(root) == os.path.abspath(Path(file).parent) else str(root)  # noqa: PTH100
            nothing = () if suite.cases else ("cases", "there are no cases in it; write one")
    except LoadError as error:
        return Checked(file, source or error.format, problems=list(error.problems), remark=error.remark)
    if nothing:
        checked.problems.append(Problem(file, 1, 1, *nothing))
    return checked


# -- files to start from ------------------------------------------------------------------------------------

PROGRAM = "rubric"

STARTERS = ("rubric.yaml", "suite.yaml")
"""The files that `init` writes: copies of those in `rubric/commands/starters`."""


_REPLY = "Thanks, dear customer: your parcel arrives on Friday. Next step: quote ticket #4471."


def _check_new_folder(context: click.Context) -> None:
    folder = context.params["folder"]
    if folder.suffix in (".yaml", ".yml", ".json") or folder.is_file():
        raise WrongLineError(f"{folder} is a file; name a folder", {"ARGUMENTS": [str(folder.with_suffix(""))]})
    if taken := [str(folder / name) for name in STARTERS if (folder / name).exists()]:
        change = {"ARGUMENTS": [str(folder / "rubrics")], **SUCH_AS}
        raise WrongLineError(f"{' and '.join(taken)} exist already; name another folder", change)


@click.command(cls=output.Command, check=_check_new_folder)
@click.argument("folder", type=options.PATH, default=Path(), required=False)
@options.take("preset", preset=options.Name(lambda: presets.NAMES, presets.text_of))
def init(folder: Path, preset: str | None) -> None:
    """
    Write a rubric and a suite to start from.

    Both are commented, and run at once without a key. A file that exists is never overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in STARTERS:
        write_text(folder / name, _text_of(name, preset))
    rubric, suite = (folder / name for name in STARTERS)
    output.print_line(f"wrote {rubric} and {suite}")
    output.print_line("try them without a key, with a judge that only compares words:")
    output.print_line(f"  {PROGRAM} grade {suite} --judge offline")
    if preset is not None:
        output.print_line("with a real judge, the cases with the tag must-pass pass, and those with must-fail fail")
        return
    output.print_line(f'  echo "{_REPLY}" | {PROGRAM} grade {rubric} - --judge offline')


def _text_of(name: str, preset: str | None) -> str:
    """Return the text of a starting file: of *preset* its rubric, or its suite of examples."""
    if preset is None:
        return resources.files("rubric.commands").joinpath("starters", name).read_text("utf-8")
    return presets.text_of(preset) if name == STARTERS[1] else dumps(presets.examples(preset)[0].rubric)
