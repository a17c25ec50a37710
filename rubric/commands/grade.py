"""
The commands `grade` and `plan`, for one candidate or for suites.

Everything that can be refused (options, files, the baseline, the reporter) is refused before a call is paid for.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, get_args

import click
from attrs import evolve, fields, frozen
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from rubric.commands.options import (
    GRADING,
    PATH,
    STORE,
    TEXT,
    Name,
    declared,
    options,
    refuse_folder,
    refuse_given,
)
from rubric.commands.output import (
    INTERRUPTED,
    Command,
    Refusal,
    print_json,
    print_line,
    print_markdown,
    print_result,
    print_text,
)
from rubric.engine.grade import grade as grade_candidate
from rubric.engine.grade import plan as plan_calls
from rubric.errors import DefinitionError, LoadError, UngradedError
from rubric.formats.rubrics import load
from rubric.formats.suites import is_rubric, load_suite
from rubric.internals.fields import check_number
from rubric.results.rows import Row
from rubric.suites.report import Deferred, Report
from rubric.suites.reporters.registry import reporter, reporter_for, reporter_names
from rubric.suites.reporters.terminal import show
from rubric.suites.row_builder import RowBuilder, row_id, ungraded
from rubric.suites.suite import Suite
from rubric.values.candidates import Candidate
from rubric.values.requests import Failure

if TYPE_CHECKING:
    from rubric.suites.targets.base import Target
    from rubric.values.rubrics import Rubric


RUNNING = options(
    click.option("--reporter", type=Name(reporter_names, reporter), help="Write a suite's report in this form."),
    click.option("--out", type=PATH, metavar="FILE", help="Write the report here; the ending names a reporter."),
    click.option("--max-cost", type=float, metavar="DOLLARS", help="Spend no more on the judges of all suites."),
    STORE,
    click.option("--deferred", type=click.Choice(get_args(Deferred)), default="error", help="Count deferred cases so."),
    click.option("--allow-scripts", is_flag=True, help="Run the programs that a suite names as graders."),
    click.option("--baseline", type=click.Path(), metavar="FILE", help="Compare with an earlier report (json)."),
    click.option("--largest-drop", type=float, metavar="D", help="Fail if a score falls by more."),
    click.option(
        "--risk", type=float, metavar="R", help="Fail only if chance does not explain a drop; R false alarms."
    ),
)


@frozen
class RunOptions:
    """The options for the run of suites and for the report."""

    reporter: str | None
    out: Path | None
    max_cost: float | None
    deferred: Deferred
    allow_scripts: bool
    baseline: str | None
    largest_drop: float | None
    risk: float | None
    store: Path | None
    form: str

    def earlier(self) -> Report | None:
        """
        Check all that would otherwise fail after the run is paid for, and return the report to compare with.

        Raises:
            RubricError: There is no such reporter, or the baseline holds no report.
            click.ClickException: Options contradict each other, or a file cannot be used.
        """
        if self.out is not None:
            refuse_folder(self.out)
            if self.reporter is None:
                reporter_for(self.out)
        elif self.form == "json" and self.reporter not in (None, "json"):
            raise click.UsageError(f"--format json and --reporter {self.reporter} cannot both be printed; give one")
        self._check_comparison()
        if self.baseline is None:
            return None
        try:
            return Report.load(self.baseline)
        except OSError as problem:
            raise Refusal(f"{self.baseline}: this baseline cannot be read: {problem.strerror}") from problem

    def _check_comparison(self) -> None:
        for name, given in (("--largest-drop", self.largest_drop), ("--risk", self.risk)):
            if given is not None and self.baseline is None:
                raise click.UsageError(f"{name} is for a comparison; name the earlier report with --baseline FILE")
        if self.largest_drop is not None and self.risk is not None:
            raise click.UsageError("--largest-drop allows a drop of any cause, --risk one by chance; give one of them")
        if self.risk is not None:
            check_number("risk", self.risk, 1e-6, 0.5)
        if self.largest_drop is not None:
            check_number("largest_drop", self.largest_drop, 0, 1)

    def run(self, suites: Sequence[Suite], files: Sequence[str], judge: Any, target: Any) -> Report:
        """
        Run *suites* one after another, within one budget, and return one report.

        An interrupted run writes its report too; the cases that were not finished are ungraded.
        """
        reports: list[Report] = []
        for suite in suites:
            done: list[Row] = []
            spent = sum(report.usage.cost or 0.0 for report in reports)
            try:
                with _progress(suite, done) as on_row:
                    report = suite.run(
                        judge,
                        target=target,
                        deferred=self.deferred,
                        allow_scripts=self.allow_scripts,
                        max_cost=None if self.max_cost is None else max(0.0, self.max_cost - spent),
                        store=self.store,
                        on_row=on_row,
                    )
            except KeyboardInterrupt:
                print_line(
                    f"interrupted: {len(done)} of {len(suite)} cases of {suite.name!r} were finished", problem=True
                )
                self.write(joined([*reports, _interrupted(suite, done, self.deferred)], files[: len(reports) + 1]))
                raise SystemExit(INTERRUPTED) from None
            reports.append(report)
        return joined(reports, files)

    def write(self, report: Report) -> None:
        """Print *report*, and write it to `--out`."""
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

    def compare(self, report: Report, earlier: Report) -> int:
        """
        Compare *report* with an *earlier* one, print the comparison, and return its exit code.

        It goes to standard error if machines read the report on standard output.
        """
        allowed = report.against(earlier, largest_drop=self.largest_drop)
        comparison = allowed if self.risk is None else report.compare(earlier, risk=self.risk)
        for_machines = self.form == "json" or (self.out is None and self.reporter not in (None, "pretty"))
        print_markdown(comparison._repr_markdown_(), problem=for_machines)
        return comparison.exit_code


SUITES_ONLY = frozenset(each.name for each in fields(RunOptions)) - {"store", "form"}
"""The options that one candidate has no use for."""


@contextmanager
def _progress(suite: Suite, done: list[Row]) -> Iterator[Any]:
    """Collect rows in *done*, and count them on standard error if that is a terminal."""
    console = Console(stderr=True)
    columns = (MofNCompleteColumn(), "cases", TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(suite))

        def on_row(row: Row) -> None:
            done.append(row)
            progress.advance(task)

        yield on_row


def _interrupted(suite: Suite, done: Sequence[Row], deferred: Deferred) -> Report:
    finished = {row.id: row for row in done}
    stopped = Failure("exception", "the run was interrupted before this case was finished")
    builder = RowBuilder()
    rows = [finished.get(row_id(case), builder.row(case, ungraded(case, stopped))) for case in suite]
    return Report(suite.name, tuple(rows), deferred, tuple(map(str, suite.warnings)), version("rubric-grade"))


def joined(reports: Sequence[Report], files: Sequence[str]) -> Report:
    """
    Return *reports* as one; if there are several, each id starts with the file of its case.

    That is its name without folder and ending, if these names differ.
    """
    if len(reports) == 1:
        return reports[0]
    if len(set(map(str, map(Path, files)))) < len(files):
        raise DefinitionError("FILE", "one file is given twice; its cases would have the same ids")
    stems = [Path(file).stem for file in files]
    pairs = zip(reports, stems if len(set(stems)) == len(stems) else files, strict=True)
    return evolve(
        reports[0],
        suite=", ".join(report.suite for report in reports),
        rows=tuple(evolve(row, id=f"{name}: {row.id}") for report, name in pairs for row in report),
        warnings=tuple(warning for report in reports for warning in report.warnings),
        duration=sum(report.duration for report in reports),
    )


PASSED, FAILED = 0, 1


@frozen
class Inputs:
    """The options of both commands: what is graded, and by which judge."""

    judge: str | list[str] | None
    threshold: float | None
    question: IO[str] | None
    reference: IO[str] | None
    target: str | None
    servers: Sequence[str]
    source: str | None
    names: Sequence[str]
    base: str | None

    def is_for_candidate(self, files: Sequence[str]) -> bool:
        """
        Return whether *files* are a rubric and a candidate; if so, refuse the options of suites, else those of it.

        With a target, a rubric alone is a suite of one case.
        """
        is_suite = self.source is not None or len(files) > 2 or not is_rubric(files[0])  # noqa: PLR2004
        if is_suite or (len(files) == 1 and self.target is not None):
            refuse_given({"question", "reference"}, "is for one candidate; the cases of a suite have their own")
            return False
        of_suites = SUITES_ONLY | {"target", "servers", "names"}
        refuse_given(of_suites, "is for suites; here is one rubric and one candidate")
        return True

    def rubric(self, file: str) -> Rubric:
        rubric = load(file, base=self.base)
        return rubric if self.threshold is None else rubric.passing_at(self.threshold)

    def suite(self, file: str) -> Suite:
        suite = load_suite(file, self.source, base=self.base, environ=declared(self.names))
        if suite.format != "native":
            print_line(f"{file}: read as {suite.format}", problem=True)
        if self.threshold is None:
            return suite
        return evolve(suite, cases=[evolve(c, rubric=c.rubric.passing_at(self.threshold)) for c in suite])

    def suites(self, files: Sequence[str]) -> list[Suite]:
        """
        Return the suites in *files*; all are read before any is run.

        Raises:
            LoadError: With the problems of all files.
        """
        found: list[Suite] = []
        errors: list[LoadError] = []
        for file in files:
            try:
                found.append(self.suite(file))
            except LoadError as error:
                errors.append(error)
        if errors:
            problems = [problem for error in errors for problem in error.problems]
            raise LoadError(problems, remark="\n".join(error.remark for error in errors if error.remark))
        return found

    def candidate(self, file: str | None) -> Candidate:
        """Return the candidate whose text is in *file*; without one, a stand-in."""
        context = click.get_current_context()
        output: IO[str] | None = None if file is None else TEXT.convert(file, None, context)
        piped = [stream for stream in (output, self.question, self.reference) if stream is sys.stdin]
        if len(piped) > 1:
            raise click.UsageError("standard input (-) is given for two things, and can be read once; name a file")
        text = "(the candidate)" if output is None else _read(output)
        return Candidate(text, input=_read(self.question), reference=_read(self.reference))

    def target_of_cases(self) -> str | Target | None:
        """Return the target for cases without a response: a model, or an agent with MCP servers."""
        if not self.servers:
            return self.target
        if self.target is None:
            raise click.UsageError("--server needs a target that works with it; name one with --target MODEL")
        from rubric.suites.targets.agents import AgentTarget  # noqa: PLC0415 - needs an extra
        from rubric.suites.targets.mcp_servers import HTTPServer, StdioServer  # noqa: PLC0415 - as above

        servers: dict[str, Any] = {}
        for text in self.servers:
            name, _, address = text.partition("=")
            if not name or not address.strip():
                raise click.UsageError(f"--server {text}: expected NAME=COMMAND or NAME=https://...")
            if address.startswith(("http://", "https://")):
                servers[name] = HTTPServer(address)
            else:
                command, *arguments = shlex.split(address)
                servers[name] = StdioServer(command, arguments)
        return AgentTarget(self.target, servers)


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@GRADING
def plan(files: Sequence[str], form: str, **given: Any) -> None:
    """
    Count calls, tokens and dollars; send nothing.

    FILE is a rubric, with or without the file of a candidate after it (without, a stand-in of two words is counted),
    or FILE... are suites.
    """
    inputs = Inputs(**given)
    if inputs.is_for_candidate(files):
        candidate = inputs.candidate(files[1] if files[1:] else None)
        print_result(plan_calls(candidate, inputs.rubric(files[0]), inputs.judge), form)
        return
    plans = [suite.plan(inputs.judge, target=inputs.target_of_cases()) for suite in inputs.suites(files)]
    if form == "json":
        print_json(plans[0].to_dict() if len(plans) == 1 else [one.to_dict() for one in plans])
    else:
        for one in plans:
            print_result(one, form)


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@GRADING
@RUNNING
def grade(files: Sequence[str], form: str, store: Path | None, **given: Any) -> None:
    """
    Grade a text against a rubric, or every case of suites.

    FILE is a rubric, followed by the file of a candidate (- is standard input); or FILE... are suites, of any of the
    formats that `validate` knows.
    """
    running = RunOptions(form=form, store=store, **{name: given.pop(name) for name in SUITES_ONLY})
    inputs = Inputs(**given)
    if inputs.is_for_candidate(files):
        rubric = inputs.rubric(files[0])
        if len(files) == 1:
            message = f"{files[0]} is a rubric; name the file of the candidate too, or a --target that answers"
            raise click.UsageError(message)
        try:
            result = grade_candidate(inputs.candidate(files[1]), rubric, inputs.judge, store=store)
        except UngradedError as problem:
            print_result(problem.result, form)
            raise
        print_result(result, form)
        sys.exit(PASSED if result.passed else FAILED)
    earlier = running.earlier()
    report = running.run(inputs.suites(files), files, inputs.judge, inputs.target_of_cases())
    running.write(report)
    code = report.exit_code
    sys.exit(code if earlier is None else max(code, running.compare(report, earlier)))


def _read(stream: IO[str] | None) -> str:
    if stream is None:
        return ""
    try:
        return stream.read()
    except UnicodeDecodeError as problem:
        raise Refusal(f"{stream.name}: not UTF-8 text ({problem.reason} at byte {problem.start})") from problem
