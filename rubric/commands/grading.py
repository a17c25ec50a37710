"""Commands that grade, and that count before grading: `grade`, `plan`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

from rubric.candidates import Candidate
from rubric.commands.options import GRADING, TEXT, declared, judge_of, refuse_given
from rubric.commands.printing import print_json, print_line, print_markdown
from rubric.commands.refusing import Command, Refusal
from rubric.commands.suites import RUNNING, SUITES_ONLY, Running
from rubric.errors import LoadError, Problem, UngradedError
from rubric.formats import load
from rubric.formats.suites import is_rubric, load_suite
from rubric.suites.suites import Suite
from rubric.verbs import grade as grade_candidate
from rubric.verbs import plan as plan_calls

if TYPE_CHECKING:
    from rubric.grades import Grade, Ungraded
    from rubric.rubrics import Rubric
    from rubric.suites.targets import Target

__all__ = ["grade", "plan"]

PASSED, FAILED = 0, 1

ANSWERING = frozenset({"target", "servers", "names"})
ABOUT_A_CANDIDATE = frozenset({"question", "reference"})
OF_CASES = "is for one candidate; the cases of a suite have their own"

STAND_IN = "(the candidate)"
"""What is planned with where no candidate is given."""


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
    base: str | None

    def rubric(self, file: str) -> Rubric:
        """Return the rubric in *file*."""
        rubric = load(file, base=self.base)
        return rubric if self.threshold is None else rubric.passing_at(self.threshold)

    def suite(self, file: str) -> Suite:
        """Return the suite in *file*."""
        suite = load_suite(file, self.source, base=self.base, environ=declared(self.names))
        if suite.format != "native":
            print_line(f"{file}: read as {suite.format}", problem=True)
        if self.threshold is None:
            return suite
        return evolve(suite, cases=[evolve(c, rubric=c.rubric.passing_at(self.threshold)) for c in suite])

    def suites(self, files: Sequence[str]) -> list[Suite]:
        """
        Return the suites in *files*, all of which are read before any of them is run.

        Raises:
            LoadError: All that is wrong with any of them.
        """
        found: list[Suite] = []
        problems: list[Problem] = []
        remarks: list[str] = []
        for file in files:
            try:
                found.append(self.suite(file))
            except LoadError as error:
                problems += error.problems
                remarks += [error.remark] if error.remark else []
        if problems:
            raise LoadError(problems, remark="\n".join(remarks))
        return found

    def candidate(self, output: IO[str] | None) -> Candidate:
        """Return the candidate whose text is *output*."""
        piped = [stream for stream in (output, self.question, self.reference) if stream is sys.stdin]
        if len(piped) > 1:
            raise click.UsageError("standard input (-) is given for two things, and can be read once; name a file")
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


@click.command(cls=Command)
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
        refuse_given(ANSWERING, "is for suites; here is one rubric and one candidate")
        candidate = said.candidate(_open(files[1]) if files[1:] else None)
        planned: Any = plan_calls(candidate, said.rubric(files[0]), judge_of(said.judges))
        print_json(planned.to_dict()) if form == "json" else print_markdown(planned._repr_markdown_())
        return
    refuse_given(ABOUT_A_CANDIDATE, OF_CASES)
    plans = [suite.plan(judge_of(said.judges), target=said.answerer()) for suite in said.suites(files)]
    if form == "json":
        print_json(plans[0].to_dict() if len(plans) == 1 else [one.to_dict() for one in plans])
    else:
        for one in plans:
            print_markdown(one._repr_markdown_())


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@GRADING
@RUNNING
def grade(files: Sequence[str], form: str, store: str | None, **given: Any) -> None:
    """
    Grade a text against a rubric, or every case of suites.

    FILE is a rubric, followed by the file of a candidate (- is standard input); or FILE... are suites, of any of the
    formats that `validate` knows.
    """
    running = Running(form=form, store=store, **{name: given.pop(name) for name in SUITES_ONLY})
    said = Given(**given)
    if _is_candidate(files, said):
        refuse_given(SUITES_ONLY | ANSWERING, "is for suites; here is one rubric and one candidate")
        sys.exit(_grade_candidate(files, said, form, store))
    refuse_given(ABOUT_A_CANDIDATE, OF_CASES)
    earlier = running.earlier()
    report = running.run(said.suites(files), files, judge_of(said.judges), said.answerer())
    running.tell(report)
    code = report.exit_code
    sys.exit(code if earlier is None else max(code, running.compared(report, earlier)))


def _is_candidate(files: Sequence[str], said: Given) -> bool:
    """Say whether *files* are a rubric and a candidate; a rubric alone may also be a suite of one case for a target."""
    if said.source is not None or len(files) > 2 or not is_rubric(files[0]):  # noqa: PLR2004
        return False
    return len(files) > 1 or said.target is None


def _grade_candidate(files: Sequence[str], said: Given, form: str, store: str | None) -> int:
    rubric = said.rubric(files[0])
    if len(files) == 1:
        message = f"{files[0]} is a rubric; name the file of the candidate too, or a --target that answers"
        raise click.UsageError(message)
    output = _open(files[1])
    try:
        result = grade_candidate(said.candidate(output), rubric, judge_of(said.judges), store=store)
    except UngradedError as problem:
        _print_result(problem.result, form)
        raise
    _print_result(result, form)
    return PASSED if result.passed else FAILED


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
