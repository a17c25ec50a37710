"""Runs suites for the command `grade`: what can be refused is refused before anything is paid for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from attrs import evolve, frozen
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from rubric.commands.options import options
from rubric.commands.printing import print_line, print_markdown, print_text
from rubric.commands.refusing import INTERRUPTED, Refusal
from rubric.errors import DefinitionError
from rubric.exchanges import Failure
from rubric.suites.recording import row_id, row_of, ungraded
from rubric.suites.reporters import REPORTERS, reporter_for
from rubric.suites.reporters.pretty import show
from rubric.suites.reports import Deferred, Report
from rubric.suites.rows import Row
from rubric.suites.suites import Suite
from rubric.validating import check_number

__all__ = ["RUNNING", "SUITES_ONLY", "Running", "joined"]

DEFERRED = ["pass", "fail", "error"]
RUNNING = options(
    click.option("--reporter", type=click.Choice(sorted(REPORTERS)), help="How a suite's report is written."),
    click.option("--out", type=click.Path(), metavar="FILE", help="Where it goes; the ending names a reporter."),
    click.option("--max-cost", type=float, metavar="DOLLARS", help="What the judges of all suites may cost."),
    click.option("--store", type=click.Path(), metavar="FILE", help="Keeps every reply, and serves what it has."),
    click.option("--deferred", type=click.Choice(DEFERRED), default="error", help="What cases count as that wait."),
    click.option("--allow-scripts", is_flag=True, help="Run the programs that a suite names as graders."),
    click.option("--baseline", type=click.Path(), metavar="FILE", help="An earlier report (json) to compare with."),
    click.option("--largest-drop", type=float, metavar="D", help="How far a score may fall below the baseline's."),
)

SUITES_ONLY = frozenset({"reporter", "out", "max_cost", "deferred", "allow_scripts", "baseline", "largest_drop"})
"""The options above, by their names in code."""


@frozen
class Running:
    """How suites are run, and what becomes of the report."""

    reporter: str | None
    out: str | None
    max_cost: float | None
    deferred: Deferred
    allow_scripts: bool
    baseline: str | None
    largest_drop: float | None
    store: str | None
    form: str

    def earlier(self) -> Report | None:
        """
        Return the report to compare with, after a look at all that would fail once the run is paid for.

        Raises:
            RubricError: A reporter that is not there, or a baseline that holds no report.
            click.ClickException: Options that do not go together, or a file that cannot be used.
        """
        self._check_output()
        if self.baseline is None:
            if self.largest_drop is not None:
                raise click.UsageError(
                    "--largest-drop is for a comparison; name the earlier report with --baseline FILE"
                )
            return None
        if self.largest_drop is not None:
            check_number("largest_drop", self.largest_drop, 0, 1)
        try:
            return Report.load(self.baseline)
        except OSError as problem:
            raise Refusal(f"{self.baseline}: this baseline cannot be read: {problem.strerror}") from problem

    def _check_output(self) -> None:
        if self.out is not None and Path(self.out).is_dir():
            raise click.UsageError(f"--out {self.out} is a folder; name a file in it")
        if self.out is not None and self.reporter is None:
            reporter_for(self.out)
        if self.out is None and self.form == "json" and self.reporter not in (None, "json"):
            raise click.UsageError(f"--format json and --reporter {self.reporter} cannot both be printed; give one")

    def run(self, suites: Sequence[Suite], files: Sequence[str], judge: Any, target: Any) -> Report:
        """
        Run *suites* one after another, within one budget, and return one report.

        Interrupted, it tells what is known: the cases that were not through are ungraded.
        """
        reports: list[Report] = []
        for suite in suites:
            done: list[Row] = []
            try:
                with _progress(suite, done) as on_row:
                    report = suite.run(
                        judge,
                        target=target,
                        deferred=self.deferred,
                        allow_scripts=self.allow_scripts,
                        max_cost=self._left(reports),
                        store=self.store,
                        on_row=on_row,
                    )
            except KeyboardInterrupt:
                print_line(
                    f"interrupted: {len(done)} of {len(suite)} cases of {suite.name!r} were through", problem=True
                )
                self.tell(joined([*reports, _partial(suite, done, self.deferred)], files[: len(reports) + 1]))
                raise SystemExit(INTERRUPTED) from None
            reports.append(report)
        return joined(reports, files)

    def _left(self, reports: Sequence[Report]) -> float | None:
        spent = sum(report.usage.cost or 0.0 for report in reports)
        return None if self.max_cost is None else max(0.0, self.max_cost - spent)

    def tell(self, report: Report) -> None:
        """Print *report*, and write it to the file that was named."""
        printed = "json" if self.form == "json" else "pretty" if self.out is not None else self.reporter or "pretty"
        if printed == "pretty" and sys.stdout.isatty():
            show(report)
        else:
            print_text(report.render(printed))
        if self.out is not None:
            try:
                report.write(self.out, self.reporter)
            except OSError as problem:
                raise Refusal(f"--out {self.out}: this cannot be written: {problem.strerror}") from problem

    def compared(self, report: Report, earlier: Report) -> int:
        """Print *report* beside an *earlier* one (apart from what machines read), and return the exit code."""
        comparison = report.against(earlier, largest_drop=self.largest_drop)
        for_machines = self.form == "json" or (self.out is None and self.reporter not in (None, "pretty"))
        print_markdown(comparison._repr_markdown_(), problem=for_machines)
        return comparison.exit_code


@contextmanager
def _progress(suite: Suite, done: list[Row]) -> Iterator[Any]:
    """Collect rows in *done*, and count them on standard error where that is a terminal."""
    console = Console(stderr=True)
    columns = (MofNCompleteColumn(), "cases", TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(suite))

        def on_row(row: Row) -> None:
            done.append(row)
            progress.advance(task)

        yield on_row


def _partial(suite: Suite, done: Sequence[Row], deferred: Deferred) -> Report:
    """Return what is known of a run that was interrupted."""
    through = {row.id: row for row in done}
    stopped = Failure("exception", "the run was interrupted before this case was through")
    rows = [through.get(row_id(case), row_of(case, ungraded(case, stopped))) for case in suite]
    return Report(suite.name, tuple(rows), deferred, tuple(map(str, suite.warnings)), version("rubric-grade"))


def joined(reports: Sequence[Report], files: Sequence[str]) -> Report:
    """Return *reports* as one; where there are several, each id is led by the file that its case is from."""
    if len(reports) == 1:
        return reports[0]
    names = _names(files)
    pairs = zip(reports, names, strict=True)
    rows = [evolve(row, id=f"{name}: {row.id}") for report, name in pairs for row in report]
    return evolve(
        reports[0],
        suite=", ".join(report.suite for report in reports),
        rows=tuple(rows),
        warnings=tuple(warning for report in reports for warning in report.warnings),
        duration=sum(report.duration for report in reports),
    )


def _names(files: Sequence[str]) -> list[str]:
    """Return a name for each of *files*: without folder and ending, if that tells them apart."""
    if len(set(map(str, map(Path, files)))) < len(files):
        raise DefinitionError("FILE", "one file is given twice; its cases could not be told apart")
    stems = [Path(file).stem for file in files]
    return stems if len(set(stems)) == len(stems) else [*files]
