"""Commands that grade, and that count before grading: `grade`, `plan`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

from rubric.candidates import Candidate
from rubric.commands.options import GRADING, TEXT, declared, judge_of, options
from rubric.commands.printing import print_json, print_markdown, print_text
from rubric.commands.refusing import Refusal
from rubric.errors import UngradedError
from rubric.formats import load
from rubric.formats.suites import is_rubric, load_suite
from rubric.suites.reporters import REPORTERS
from rubric.suites.reports import Report
from rubric.suites.suites import Suite
from rubric.verbs import grade as grade_candidate
from rubric.verbs import plan as plan_calls

if TYPE_CHECKING:
    from rubric.grades import Grade, Ungraded
    from rubric.rubrics import Rubric
    from rubric.suites.targets import Target

__all__ = ["grade", "plan"]

PASSED, FAILED = 0, 1

STAND_IN = "(the candidate)"
"""What is planned with where no candidate is given."""

DEFERRED = ["pass", "fail", "error"]
RUNNING = options(
    click.option("--reporter", type=click.Choice(sorted(REPORTERS)), help="How a suite's report is written."),
    click.option("--out", type=click.Path(), metavar="FILE", help="Where it goes; the ending names a reporter."),
    click.option("--max-cost", type=float, metavar="DOLLARS", help="What the judges of a suite may cost."),
    click.option("--deferred", type=click.Choice(DEFERRED), default="error", help="What cases count as that wait."),
    click.option("--allow-scripts", is_flag=True, help="Run the programs that a suite names as graders."),
    click.option("--baseline", type=click.Path(), metavar="FILE", help="An earlier report (json) to compare with."),
    click.option("--largest-drop", type=float, metavar="D", help="How far a score may fall below the baseline's."),
)


@frozen
class Given:
    """What the options of both commands say."""

    judges: Sequence[str]
    threshold: float | None
    question: IO[str] | None
    reference: IO[str] | None
    target: str | None
    servers: Sequence[str]
    source: str | None
    names: Sequence[str]

    def rubric(self, file: str) -> Rubric:
        """Return the rubric in *file*."""
        rubric = load(file)
        return rubric if self.threshold is None else rubric.passing_at(self.threshold)

    def suite(self, file: str) -> Suite:
        """Return the suite in *file*."""
        suite = load_suite(file, self.source, environ=declared(self.names))
        if self.threshold is None:
            return suite
        return evolve(suite, cases=[evolve(c, rubric=c.rubric.passing_at(self.threshold)) for c in suite])

    def candidate(self, output: IO[str] | None) -> Candidate:
        """Return the candidate whose text is *output*."""
        text = STAND_IN if output is None else _read(output)
        return Candidate(text, input=_read(self.question), reference=_read(self.reference))

    def answerer(self) -> str | Target | None:
        """Return who answers the cases without a response: a model, or an agent with MCP servers."""
        if not self.servers:
            return self.target
        if self.target is None:
            raise click.UsageError("--server is for a target that works with it; name one with --target MODEL")
        from rubric.suites.agents import AgentTarget  # noqa: PLC0415 - needs an extra

        return AgentTarget(self.target, dict(_server(server) for server in self.servers))


def _server(said: str) -> tuple[str, Any]:
    from rubric.suites.servers import HTTPServer, StdioServer  # noqa: PLC0415 - as above

    name, _, address = said.partition("=")
    if not name or not address.strip():
        raise click.UsageError(f"--server {said}: expected NAME=COMMAND or NAME=https://...")
    if address.startswith(("http://", "https://")):
        return name, HTTPServer(address)
    command, *arguments = shlex.split(address)
    return name, StdioServer(command, arguments)


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@GRADING
def plan(files: Sequence[str], form: str, **given: Any) -> None:
    """
    Count calls, tokens and dollars; send nothing.

    FILE is a rubric, with or without the file of a candidate after it (a stand-in of two words is counted), or
    FILE... are suites.
    """
    said = Given(**given)
    if _is_candidate(files, said):
        candidate = said.candidate(_open(files[1]) if files[1:] else None)
        planned: Any = plan_calls(candidate, said.rubric(files[0]), judge_of(said.judges))
        print_json(planned.to_dict()) if form == "json" else print_markdown(planned._repr_markdown_())
        return
    plans = [said.suite(file).plan(judge_of(said.judges), target=said.answerer()) for file in files]
    if form == "json":
        print_json(plans[0].to_dict() if len(plans) == 1 else [one.to_dict() for one in plans])
    else:
        for one in plans:
            print_markdown(one._repr_markdown_())


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@GRADING
@RUNNING
def grade(files: Sequence[str], form: str, reporter: str | None, out: str | None, **given: Any) -> None:
    """
    Grade a text against a rubric, or every case of suites.

    FILE is a rubric, followed by the file of a candidate (- is standard input); or FILE... are suites, of any of the
    formats that `validate` knows.
    """
    running = {name: given.pop(name) for name in ("max_cost", "deferred", "allow_scripts")}
    baseline, drop = given.pop("baseline"), given.pop("largest_drop")
    said = Given(**given)
    if _is_candidate(files, said):
        sys.exit(_grade_candidate(files, said, form))
    answerer = said.answerer()
    reports = [said.suite(file).run(judge_of(said.judges), target=answerer, **running) for file in files]
    report = reports[0] if len(reports) == 1 else joined(reports, files)
    if out is not None:
        report.write(out, reporter)
    print_text(report.render("pretty" if out is not None else reporter or ("json" if form == "json" else "pretty")))
    code = report.exit_code
    if baseline is not None:
        comparison = report.against(baseline, largest_drop=drop)
        print_markdown(comparison._repr_markdown_())
        code = max(code, comparison.exit_code)
    sys.exit(code)


def _is_candidate(files: Sequence[str], said: Given) -> bool:
    """Say whether *files* are a rubric and a candidate; a rubric alone may also be a suite of one case for a target."""
    if said.source is not None or len(files) > 2 or not is_rubric(files[0]):  # noqa: PLR2004
        return False
    return len(files) > 1 or said.target is None


def _grade_candidate(files: Sequence[str], said: Given, form: str) -> int:
    if len(files) == 1:
        message = f"{files[0]} is a rubric; name the file of the candidate too, or a --target that answers"
        raise click.UsageError(message)
    output = _open(files[1])
    rubric = said.rubric(files[0])
    try:
        result = grade_candidate(said.candidate(output), rubric, judge_of(said.judges))
    except UngradedError as problem:
        _print_result(problem.result, form)
        raise
    _print_result(result, form)
    return PASSED if result.passed else FAILED


def joined(reports: Sequence[Report], files: Sequence[str]) -> Report:
    """Return *reports* as one; each id is led by the file that its case is from."""
    pairs = zip(reports, files, strict=True)
    rows = [evolve(row, id=f"{Path(file).stem}: {row.id}") for report, file in pairs for row in report]
    return evolve(
        reports[0],
        suite=", ".join(report.suite for report in reports),
        rows=tuple(rows),
        warnings=tuple(warning for report in reports for warning in report.warnings),
        duration=sum(report.duration for report in reports),
    )


def _open(file: str) -> IO[str]:
    opened: IO[str] = TEXT.convert(file, None, click.get_current_context())
    return opened


def _read(stream: IO[str] | None) -> str:
    if stream is None:
        return ""
    try:
        return stream.read()
    except UnicodeDecodeError as problem:
        message = f"{stream.name}: not UTF-8 text ({problem.reason} at byte {problem.start})"
        raise Refusal(message) from problem


def _print_result(result: Grade | Ungraded, form: str) -> None:
    if form == "json":
        print_json(result.to_dict())
    else:
        print_markdown(result._repr_markdown_())
