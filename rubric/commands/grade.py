"""
The commands `grade` and `plan`, for one candidate or for suites.

Everything that can be refused (options, files, the baseline, the reporter) is refused before a call is paid for.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click
from attrs import evolve, frozen

from rubric import Candidate, LoadError, RubricError, Suite, UngradedError, load, load_suite
from rubric import grade as grade_candidate
from rubric import plan as plan_calls
from rubric.commands import options
from rubric.commands.file_arguments import MISSING, TRIAL, Change, WrongLineError
from rubric.commands.messages import was_given
from rubric.commands.named_columns import columns_of
from rubric.commands.options import refuse_given
from rubric.commands.output import Command, print_json, print_line, print_markdown, print_result, tell_rate
from rubric.commands.running import SUITES_ONLY, RunOptions, pick_cases
from rubric.embed import JudgeLike, Wording, cell, clean, counted, fields, one_candidate, read_json
from rubric.engine.sources import holds_many
from rubric.formats.agentv.targets import lacking_variables
from rubric.formats.projects import is_rubric
from rubric.programs import allowing
from rubric.runs import is_run, refuse_log
from rubric.suites import Providers, baseline
from rubric.suites.missing_judges import Otherwise
from rubric.suites.outputs import answer_cases
from rubric.suites.suite import is_wanted
from rubric.suites.targets.providers import PROVIDERS
from rubric.view.rubrics import rules

if TYPE_CHECKING:
    from rubric import Rubric
    from rubric.suites import Target


PASSED, FAILED = 0, 1
BESIDE = {"question", "reference", "context"}
"""The options with what belongs to one candidate."""
NOTHING = "none"
"""The name of the target that asks nothing."""


@frozen
class Inputs:
    """The options of both commands: what is graded, and by which judge."""

    judge: JudgeLike | None
    threshold: float | None
    unsupported: Otherwise | None
    question: IO[str] | None
    reference: IO[str] | None
    context: IO[str] | None
    target: str | None
    hosts: tuple[str, ...]
    outputs: str | None
    servers: Sequence[str]
    source: str | None
    names: Sequence[str]
    base: str | None
    patterns: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    allow_scripts: bool = False

    def is_for_candidate(self, files: Sequence[str]) -> bool:
        """
        Return whether *files* are a rubric and a candidate; if so, refuse the options of suites, else those of it.

        With a target, a rubric alone is a suite of one case.
        """
        is_suite = self.source is not None or len(files) > 2 or not is_rubric(files[0])  # noqa: PLR2004
        if is_suite or (len(files) == 1 and self.target is not None):
            refuse_given(BESIDE, "is for one candidate; a row of --outputs rows.jsonl has it, too")
            return False
        of_suites = SUITES_ONLY | {"target", "hosts", "outputs", "servers", "names", "unsupported"}
        if was_given("min_pass_rate"):
            least = f"{click.get_current_context().params['min_pass_rate']:g}"
            change = {"min_pass_rate": (), "threshold": ("--threshold", least)}
            raise WrongLineError("--min-pass-rate is a share of many; one candidate passes from a threshold", change)
        cure = "votes are a jury in a suite, or in Python, such as judge: {jury: {judge: openai/gpt-5, size: 3}}"
        refuse_given({"repeat"}, f"has no use for one candidate; {cure}")
        refuse_given({"verbose"}, "has no use for one candidate, which is printed whole")
        if len(files) == 1 or not holds_many(Path(files[1])):
            if was_given("outs"):
                raise click.UsageError("--out has no use for one candidate, whose result is printed")
            refuse_given(of_suites, "has no use for one candidate")
        refuse_given({*of_suites, "outs"}, "is for suites")
        self._refuse_rows(files)
        return True

    def _refuse_rows(self, files: Sequence[str]) -> None:
        """Refuse a file of rows in the place of a text beside the candidate in *files*."""
        for option, stream in {"question": self.question, "reference": self.reference, "context": self.context}.items():
            if stream is not None and stream is not sys.stdin and holds_many(Path(stream.name)):
                many = ("grade-many",) * (click.get_current_context().command.name == "grade")
                change: Change = {option: (), "ARGUMENTS": (*files, stream.name), "COMMAND": many}
                message = f"{stream.name} holds rows, which are graded with what is beside them"
                raise WrongLineError(message, change if len(files) == 1 else {})

    def refuse_alone(self, rubric: str) -> NoReturn:
        """Refuse a *rubric* without a candidate, and without what answers."""
        if self.question is not None:
            message = "--input is the question, and what answers it, the candidate, comes second"
            raise WrongLineError(message, {"ARGUMENTS": [rubric, self.question.name], "question": ()})
        message = f"{rubric} is a rubric; name a --target that answers, or the file of the candidate: - is piped"
        raise WrongLineError(message, {"ARGUMENTS": [rubric, "-"]})

    def refuse_idle(self, suites: Sequence[Suite]) -> None:
        """Refuse a target that is a program, or has nothing to answer, since all cases of *suites* have an output."""
        cases = [case for suite in suites for case in suite]
        if self.target is not None and Path(self.target).is_file():
            cure = "what a program answers is read from a file, such as --outputs replies.jsonl"
            raise click.UsageError(f"--target {self.target}: a target is a model; {cure}")
        is_asked = self.target not in (None, NOTHING) and not self.servers
        if is_asked and cases and all(case.candidate is not None for case in cases):
            message = f"--target {self.target} has nothing to answer, since each case has an output: take those out"
            raise WrongLineError(message, {"WITHOUT": ("target",)})

    def rubric(self, file: str) -> Rubric:
        rubric = load(file, base=self.base)
        return rubric if self.threshold is None else rubric.passing_at(self.threshold)

    def suite(self, file: str) -> Suite:
        read = partial(load_suite, file, self.source, base=self.base, allow_scripts=self.allow_scripts)
        suite = read(environ=(environ := options.read_environment(self.names)))
        own, others = lacking_variables(suite, os.environ) if self.asks_providers else ({}, {})
        if own:
            suite = read(environ={**own, **environ})
        for name, way in others.items():
            command = [click.get_current_context().command_path, shlex.quote(file)]
            whole = " ".join([*command, way] if way.startswith("-") else [way, *command])
            print_line(f"{file}: its targets name the variable {name}, such as {whole}", problem=True)
        if suite.format != "native":
            print_line(f"{file}: read as {suite.format}", problem=True)
        if self.outputs is not None:
            chosen = self.patterns, self.excluded
            suite = answer_cases(suite, self.outputs, wanted=lambda case: is_wanted(case.id, case.tags, *chosen))
            for warning in suite.warnings:
                if warning.source == self.outputs:
                    print_line(str(warning), problem=True)
        if self.unsupported is not None:  # also what the outputs leave unknown
            suite = suite.unsupported_as(self.unsupported)
        if self.threshold is None:
            return suite
        return evolve(suite, cases=[evolve(c, rubric=c.rubric.passing_at(self.threshold)) for c in suite])

    def suites(self, files: Sequence[str]) -> list[Suite]:
        """Return the suites in *files*; all are read before any is run, and a `LoadError` has all problems."""
        found: list[Suite] = []
        errors: list[LoadError] = []
        for file in files:
            try:
                found.append(self.suite(file))
            except LoadError as error:
                errors.append(error)
        if errors:
            problems = [problem for error in errors for problem in error.problems]
            raise LoadError(problems, remark=Wording.of_lines(error.remark for error in errors))
        return found

    def candidate(self, file: str | None, rubric: str) -> Candidate:
        """Return the candidate whose text, or whose run, is in *file*; without one, a stand-in."""
        as_text = f"as one text, give it at standard input: - < {shlex.quote(file or '')}"
        if file is not None and holds_many(Path(file)):
            raise click.UsageError(f"{file} holds {'many candidates' if Path(file).is_dir() else f'rows; {as_text}'}")
        if file is not None and is_run(file):
            return one_candidate(Path(file), **self.read_beside())
        if file is not None and file != "-" and not Path(file).exists():
            if Path(file).suffix and " " not in file:
                raise click.UsageError(f"{file}: {MISSING}")
            raise WrongLineError(f"{file}: {MISSING}; a text is piped", {"ARGUMENTS": [rubric, "-"], "TEXT": [file]})
        output: IO[str] | None = None if file is None else options.TEXT.convert(file, None, click.get_current_context())
        piped = [stream for stream in (output, self.question, self.reference, self.context) if stream is sys.stdin]
        if len(piped) > 1:
            raise click.UsageError("standard input (-) is given for two things, and can be read once; name a file")
        text = "(the candidate)" if output is None else options.read_stream(output)
        refuse_log("", text, str(file))
        if file == "-" and _are_rows(text):
            raise click.UsageError("these are rows; rows are a file, such as rubric grade-many rubric.yaml rows.jsonl")
        if file and Path(file).suffix in (".yaml", ".yml") and re.search(r"(?m)^(suite|cases|criteria):", text):
            alone = {} if is_rubric(file) else {"ARGUMENTS": [file]}
            raise WrongLineError(f"{file} is a rubric or a suite; {as_text}; a suite is graded alone", alone)
        return Candidate(text, **self.read_beside())

    def read_beside(self) -> dict[str, Any]:
        """Return what is given beside the candidate."""
        given = {"input": self.question, "reference": self.reference, "context": self.context}
        return {name: options.read_stream(stream) for name, stream in given.items()}

    @property
    def asks_providers(self) -> bool:
        """True if the models that a file names answer its cases: by request, or since no option says what does."""
        return self.target == PROVIDERS or (self.target is None and self.outputs is None and not self.servers)

    def target_of(self, suite: Suite) -> str | Target | None:
        """Return the target for the cases of *suite* without a response: a model, or an agent with MCP servers."""
        if self.hosts and not self.asks_providers:
            raise click.UsageError("--allow-host is for --target providers, which asks what the file names")
        if self.servers and self.target in (None, NOTHING, PROVIDERS):
            raise click.UsageError("--server needs a target that works with it; name one with --target MODEL")
        if self.asks_providers:
            return Providers(self.hosts) if self.target or any(case.providers for case in suite) else None
        if self.target is None or not self.servers:
            return None if self.target == NOTHING else self.target
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


def _are_rows(text: str) -> bool:
    """True if *text* is lines of JSON with the same keys: rows, and no answer of one."""
    lines = [line for line in text.splitlines() if line.strip()][:2]
    with suppress(ValueError):
        rows = [read_json(line) for line in lines if line.lstrip().startswith("{")]
        return len(rows) == 2 and rows[0].keys() == rows[1].keys()  # noqa: PLR2004 - the first two tell
    return False


def _check(context: click.Context) -> None:
    """Refuse, in a line that is tried, what the command refuses once it has read its first file."""
    if not context.meta.get(TRIAL) or not Path(context.params["files"][0]).exists():
        return
    inputs = Inputs(**fields.fields_in(Inputs, context.params))
    files = _rubric_first(context.params["files"])
    is_for_candidate = inputs.is_for_candidate(files)
    if context.command.name == "grade" and not is_for_candidate:
        RunOptions.of(context.params).check_outs()
        with suppress(RubricError):  # told when it runs, but for patterns that are one
            if inputs.patterns or inputs.excluded:
                suites = [load_suite(file, inputs.source, base=inputs.base) for file in files]
                pick_cases(suites, files, inputs.patterns, inputs.excluded)
    elif context.command.name == "grade" and len(files) == 1:
        inputs.refuse_alone(files[0])


def _rubric_first(files: Sequence[str]) -> Sequence[str]:
    """Return *files* with the rubric first, where there are a run and the file that it is graded against."""
    return files[::-1] if len(files) == 2 and is_run(files[0]) and not is_run(files[1]) else files  # noqa: PLR2004


@click.command(cls=Command, check=_check)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@options.take(f"{options.GRADING} patterns excluded columns allow_scripts prices color")
def plan(files: Sequence[str], form: str, columns: Sequence[str], **given: Any) -> None:
    """
    Count calls, tokens and dollars; send nothing.

    FILE is a rubric, with or without the file of a candidate, a text or a run (without, a stand-in of two words is
    counted), or of many candidates, as for `grade-many`; or FILE... are suites.
    """
    inputs, files = Inputs(**given), _rubric_first(files)
    is_for_candidate = inputs.is_for_candidate(files)
    are_many = is_for_candidate and len(files) > 1 and holds_many(Path(files[1]))
    if are_many:
        refuse_given(BESIDE, "is for one candidate; those of a file have their own")
    else:
        refuse_given({"columns"}, "is for a file of many candidates")
    if is_for_candidate:
        file, rubric = files[1] if files[1:] else None, inputs.rubric(files[0])
        candidate = Path(files[1]) if are_many else inputs.candidate(file, files[0])
        with allowing(when=inputs.allow_scripts):
            planned = plan_calls(candidate, rubric, inputs.judge, columns=columns_of(columns) or None)
        if form == "table" and not are_many:
            print_markdown(as_markdown(rubric))
        print_result(planned, form, quiet=are_many)
        options.check_prices([planned])
        return
    suites, _ = pick_cases(inputs.suites(files), files, inputs.patterns, inputs.excluded)
    with allowing(when=inputs.allow_scripts):
        plans = [suite.plan(inputs.judge, target=inputs.target_of(suite)) for suite in suites]
    options.check_prices(one.total for one in plans)
    if form == "json":
        print_json(plans[0].to_dict() if len(plans) == 1 else [one.to_dict() for one in plans])
        return
    for one in plans:
        firsts = {case.rubric: case.id for case in reversed(one.cases)}
        shown = [as_markdown(rubric, id_) for rubric, id_ in reversed(firsts.items())]
        print_markdown("\n\n".join([one._repr_markdown_(), *shown]))


@click.command(cls=Command, check=_check)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))
@options.take(f"{options.GRADING} store replay {options.RUNNING} concurrency quiet color")
def grade(files: Sequence[str], **given: Any) -> None:
    """
    Grade a text against a rubric, or every case of suites.

    FILE... are a rubric and the file of a candidate, which is a text (- is standard input) or an agent's run, such as
    one in ATIF; or suites, of any of the formats that `validate` knows.
    """
    running, inputs = RunOptions.of(given), Inputs(**fields.fields_in(Inputs, given))
    files = _rubric_first(files)
    if inputs.is_for_candidate(files):
        rubric = inputs.rubric(files[0])
        if len(files) == 1:
            inputs.refuse_alone(files[0])
        candidate = inputs.candidate(files[1], files[0])
        how: dict[str, Any] = {"store": options.store_of(running.store), "budget": options.budget_of(None, None)}
        how |= {} if given["concurrency"] is None else {"concurrency": given["concurrency"]}
        try:
            with allowing(when=inputs.allow_scripts):
                result = grade_candidate(candidate, rubric, inputs.judge, **how)
        except UngradedError as problem:
            running.keep_one(problem.result, candidate, files)
            print_result(problem.result, running.form, quiet=running.quiet)
            raise
        running.keep_one(result, candidate, files)
        print_result(result, running.form, quiet=running.quiet)
        sys.exit(PASSED if result.passed else FAILED)
    earlier = running.earlier()
    suites, kept = pick_cases(inputs.suites(files), files, running.patterns, running.excluded)
    inputs.refuse_idle(suites)
    report = running.run_all(suites, kept, inputs.judge, inputs.target_of)
    allowed = {"largest_drop": running.largest_drop, "risk": running.risk}
    comparison = None if earlier is None else baseline.compare(report, earlier, **allowed)
    least = running.min_pass_rate
    code = report.exit_code if least is None else report.exit_code_at(least)
    code = code if comparison is None else max(code, comparison.exit_code)
    running.write(report, comparison, passed=code == PASSED)
    if least is not None:
        tell_rate(report.counts["passed"], report.counts["failed"], least)
    elif comparison is not None and comparison.passed and report.exit_code > report.exit_code_at(0):
        failed, graded = report.counts["failed"], report.counts["passed"] + report.counts["failed"]
        cure = "; --min-pass-rate 0 leaves the exit code to the comparison"
        print_line(f"{failed} of {counted(graded, 'graded case')} fail, as without a baseline{cure}", problem=True)
    sys.exit(code)


def as_markdown(rubric: Rubric, case: str = "") -> str:
    """Return *rubric* as Markdown, under its name or that of its first *case*, with the rules that it sets."""
    shown = evolve(rubric, name=rubric.name or case)._repr_markdown_()
    return clean("\n\n".join([shown, *filter(None, [cell(", ".join(rules(rubric)))])]))
