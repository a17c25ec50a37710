"""The run of suites: what is checked and printed before the first call, the run itself, and the report of it."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from attrs import evolve, frozen

from rubric import Candidate, Case, DefinitionError, Grade, Grades, Suite, Ungraded
from rubric.commands import output
from rubric.commands.file_arguments import WrongLineError
from rubric.commands.kept_runs import Keeper, last_runs
from rubric.commands.messages import was_given
from rubric.commands.options import RUNNING, TO_RUN, budget_of, names_in, refuse_given, store_of
from rubric.commands.output import Refusal
from rubric.commands.wrong_options import as_python
from rubric.driving import Failure
from rubric.embed import clean, counted, fields, shorten
from rubric.engine import SPENT, Plan
from rubric.results import Row
from rubric.suites import Comparison, Report, flips, pass_rates
from rubric.suites.case_rows import RowBuilder, row_id
from rubric.suites.repetition import repeat_case
from rubric.suites.report import Deferred
from rubric.suites.reporters import github, markdown
from rubric.suites.reporters.registry import reporter_for
from rubric.suites.reporters.terminal import Detail, layout
from rubric.suites.suite import fits, is_wanted
from rubric.values import AnyJudge, as_judge

FIRST = 20
"""Candidates from which a head projects, and results after which it is told that none of them is a grade."""
NO_GRADE = f"none of {FIRST} results is a grade"
_PLANNED = 200
"""Cases of a suite from which the line before the first call projects, at least; they are spread over all of it."""


@frozen
class RunOptions:
    """The options for the run of suites and for the report."""

    reporter: str | None
    outs: tuple[Path, ...]
    max_cost: float | None
    baseline: str | None
    largest_drop: float | None
    risk: float | None
    min_pass_rate: float | None
    patterns: tuple[str, ...]
    excluded: tuple[str, ...]
    verbose: bool
    quiet: bool
    store: Path | None
    form: str
    by: str | None
    keep: bool
    rerun: str | None
    run: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> RunOptions:
        """Return the options for the run among all that are *given* to a command."""
        run = {name: given[name] for name in names_in(TO_RUN)}
        if given["concurrency"] is not None:
            run["concurrency"] = given["concurrency"]
        return cls(**fields.fields_in(cls, {**given, "run": run}))

    @property
    def printed(self) -> str:
        """The name of the reporter that prints the report."""
        if self.form == "json":
            return "json"
        return "pretty" if self.outs and self.reporter != github.NAME else self.reporter or "pretty"

    @property
    def is_for_machines(self) -> bool:
        """True if programs read what is printed; remarks for people then go to standard error."""
        return self.printed != "pretty"

    def earlier(self) -> Report | None:
        """Check all that would otherwise fail after the run is paid for, and return the report to compare with."""
        self.check_outs()
        if self.verbose and (self.quiet or self.is_for_machines):
            other = "--quiet" if self.quiet else f"the form {self.printed!r}"
            raise click.UsageError(f"--verbose is for the report that people read, and not for {other}; give one")
        self._check_comparison()
        if self.baseline is None:
            return None
        try:
            earlier = Report.load(self.baseline)
        except OSError as problem:
            cure = f"; a first run writes it, with --out {self.baseline}" * isinstance(problem, FileNotFoundError)
            raise Refusal(f"{self.baseline}: this baseline cannot be read: {problem.strerror}{cure}") from problem
        chosen = self.patterns, self.excluded
        kept = tuple(row for row in earlier if is_wanted(row.id.rpartition(": ")[2], row.tags, *chosen))
        return evolve(earlier, rows=kept)

    def _check_comparison(self) -> None:
        for name, given in (("--largest-drop", self.largest_drop), ("--risk", self.risk)):
            if given is not None and self.baseline is None:
                raise click.UsageError(f"{name} is for a comparison; name the earlier report with --baseline FILE")
        if self.largest_drop is not None and self.risk is not None:
            raise click.UsageError("--largest-drop allows a drop of any cause, --risk one by chance; give one of them")

    def check_outs(self) -> None:
        """Refuse files that have no form, or cannot be written."""
        if self.form == "json" and self.reporter not in (None, "json") and not self._is_form_of_file:
            raise click.UsageError(f"--format json and --reporter {self.reporter} cannot both be printed; give one")
        if len(self.outs) > 1 and self.reporter not in (None, github.NAME):
            message = f"--reporter {self.reporter} cannot be the form of {len(self.outs)} files: their endings name it"
            raise click.UsageError(f"{message}; leave --reporter out")
        if len({out.resolve() for out in self.outs}) < len(self.outs):
            raise click.UsageError("--out names one file twice; give each report a file of its own")
        for out in self.outs:
            if not self._is_form_of_file:
                reporter_for(out)

    @property
    def _is_form_of_file(self) -> bool:
        """True if `--reporter` names the form of the one file; annotations for GitHub have to be printed."""
        return len(self.outs) == 1 and self.reporter not in (None, github.NAME)

    def run_all(
        self, suites: Sequence[Suite], files: Sequence[str], judge: Any, target_of: Callable[[Suite], Any]
    ) -> Report:
        """
        Run *suites* one after another, within one budget, each with its target, and return one report.

        An interrupted run writes its report too; the cases that were not finished are ungraded.
        """
        reports: list[Report] = []
        # Expanded here too, so that what is counted is what is run.
        targets = [target_of(suite) for suite in suites]
        plans = (suite.plan(judge, target=target).total for suite, target in zip(suites, targets, strict=True))
        budget = budget_of(self.max_cost, None, plans if was_given("prices") else ())
        expanded = [suite.expanded(to, self.run["runs"]) for suite, to in zip(suites, targets, strict=True)]
        if self.by not in (None, "group", "key", "verdict", "rubric", "judge"):  # before anything is paid
            Report("", tuple(_unfinished(case) for suite in expanded for case in suite)).grades.by(self.by)
        by = None if judge is None else as_judge(judge)
        earlier, asked = self._cases_to_rerun(expanded, files, by)
        name = ", ".join(suite.name for suite in suites) or "suite"
        keeper = Keeper.of(name, files, keep=self.keep, store=self.store)
        if earlier is not None:
            keeper.carry(last_runs(1, files)[0], (case.id for suite in asked for case in suite))
        if not self.quiet:
            for suite, target in zip(suites if earlier is None else asked, targets, strict=True):
                output.print_line(self._head(suite, judge, target), problem=True)
        given = {**self.run, "runs": None, "budget": budget, "store": store_of(self.store)}
        for suite, target in zip(asked, targets, strict=True):
            done: list[Row] = []
            began = time.monotonic()
            total = len(suite) * self.run["repeat"]
            try:
                with output.progress(total, "cases", quiet=self.quiet) as advance:

                    def on_row(row: Row, done: list[Row] = done, advance: Callable[[], None] = advance) -> None:
                        done.append(row)
                        keeper.add(row)
                        advance()
                        if len(done) == FIRST and all(each.status == "ungraded" and each.usage.calls for each in done):
                            said = f"{', '.join(files)}: {NO_GRADE}: {row.reason}; Ctrl-C ends the run with a report"
                            output.print_line(f"{said}, and --fail-fast would have ended it", problem=True)

                    report = suite.run(judge, target=target, on_row=on_row, **given)
            except KeyboardInterrupt:
                said = f"interrupted: {len(done)} of {total} cases of {suite.name!r} were finished; {SPENT}"
                output.print_line(said, problem=True)
                partial = self._partial_report(suite, done, said, time.monotonic() - began)
                stopped = self._whole([*reports, partial], files, earlier)
                keeper.end(stopped)
                self.write(stopped)
                raise SystemExit(output.INTERRUPTED) from None
            reports.append(report)
            if self.run["fail_fast"] and report.exit_code:
                break
        report = self._whole(reports, files, earlier)
        keeper.end(report)
        return report

    def _whole(self, reports: Sequence[Report], files: Sequence[str], earlier: Report | None) -> Report:
        """Return *reports* as one, with the other rows of an *earlier* one; it counts all calls, so theirs are told."""
        report = join_reports(reports, files)
        if earlier is not None and not self.quiet:
            output.print_line(f"of this run: {report.usage}", problem=True)
        return within(earlier, report)

    def keep_one(self, result: Grade | Ungraded, candidate: Candidate, files: Sequence[str]) -> None:
        """Keep the *result* of one candidate as a run."""
        keeper = Keeper.of(result.rubric.name or Path(files[0]).stem, files, keep=self.keep, store=self.store)
        keeper.add(RowBuilder().of(result, candidate.key or Path(files[1]).name, candidate))
        keeper.end()

    def _cases_to_rerun(
        self, suites: Sequence[Suite], files: Sequence[str], judge: AnyJudge | None
    ) -> tuple[Report | None, list[Suite]]:
        """Return the last kept report of *files* and the cases that `--rerun` asks again for; else all cases."""
        if self.rerun is None:
            return None, [*suites]
        refuse_given({"by"}, "is for whole runs; leave out --rerun")
        earlier = Report.load(last_runs(1, files)[0] / "report.json")
        wanted = {_case_of(row) for row in earlier if row.status == self.rerun}
        if not wanted:
            raise Refusal(f"--rerun {self.rerun}: no case of the last run is {self.rerun}")
        names = [""] if len(files) == 1 else [f"{name}: " for name in names_of(files)]
        rows = {_case_of(row): row for row in earlier}
        times = max(Counter(map(_case_of, earlier)).values(), default=1)
        if times != self.run["repeat"]:
            raise Refusal(f"--rerun {self.rerun}: the last run graded each case {times} times; give --repeat {times}")
        cases = {
            f"{name}{row_id(case)}": (case, judge or case.judge or suite.judge)
            for name, suite in zip(names, suites, strict=True)
            for case in suite
        }
        for id_ in {**rows, **cases}:
            case, by = cases.get(id_, (None, None))
            change = "" if id_ in wanted and case is not None else _change(case, by, rows.get(id_))
            if change:
                raise Refusal(f"--rerun {self.rerun}: {id_!r} {change}; run the files without --rerun")
        return earlier, [
            evolve(suite, cases=[case for case in suite if f"{name}{row_id(case)}" in wanted])
            for name, suite in zip(names, suites, strict=True)
        ]

    def _head(self, suite: Suite, judge: Any, target: Any) -> str:
        """Return a line that says before the first call what the run of *suite* will take."""
        step = max(1, len(suite) // _PLANNED)  # planning all of a large suite would take longer than its first cases
        sample = evolve(suite, cases=suite.cases[::step])
        plan = sample.plan(judge, target=target)
        repeat: int = self.run["repeat"]
        share = len(suite) / len(sample) if len(sample) else 1
        names = sorted({case.judge for case in plan if case.judge})
        ready = [case for case in plan if not case.deferred]
        answering = [ask.judge.name for case in ready for ask in case.answering.asks]
        called = f"asked again of {suite.name or 'suite'}" if self.rerun else suite.name or "suite"
        parts = [f"{called}: {counted(len(suite), 'case')}{f' {repeat} times' if repeat > 1 else ''}"]
        waiting = f"{'about ' if share != 1 else ''}{round(len(plan.deferred) * share):,} deferred"
        parts += [waiting] if plan.deferred else []
        judging = [case.plan for case in ready] * repeat
        parts.append(describe_plan(Plan.total([*judging, *(case.answering for case in ready)]), share))
        parts += [f"answered by {', '.join(dict.fromkeys(answering))}"] if answering else []
        parts += [f"judged by {', '.join(names)}"] if names else []
        parts += [f"replies in {self.store} are not paid for again"] if self.store and self.store.exists() else []
        return ", ".join(parts)

    def _partial_report(self, suite: Suite, done: Sequence[Row], said: str, duration: float) -> Report:
        finished = {row.id: row for row in done}
        cases = [one for case in suite for one in repeat_case(case, self.run["repeat"])]
        rows = [finished[id_] if (id_ := row_id(case)) in finished else _unfinished(case) for case in cases]
        deferred: Deferred = self.run["deferred"]
        warnings, by = (*map(str, suite.warnings), said), version("rubric-grade")
        return Report(suite.name, tuple(rows), deferred, warnings, by, duration=duration)

    def write(self, report: Report, comparison: Comparison | None = None, *, passed: bool | None = None) -> None:
        """
        Print *report*, and write it to each `--out`.

        In Markdown, the *comparison* with a baseline comes first, and the mark says whether the run has *passed*.
        """
        lead = "" if comparison is None else f"{markdown.without_links(comparison._repr_markdown_())}\n\n"
        if self.printed == "pretty":
            detail: Detail = "verbose" if self.verbose else "totals" if self.quiet else "failures"
            output.print_styled(layout(report, detail))
        else:
            as_markdown = partial(markdown.render, report, lead, passed=passed)
            output.print_text(as_markdown() if self.printed == "md" else report.render(self.printed))
        if self.printed == github.NAME and (summary := os.environ.get("GITHUB_STEP_SUMMARY")):
            if _is_stdout(Path(summary)):
                cure = "the page is written by itself, without >>; --reporter md >> is the page alone"
                output.print_line(f"annotations are not read from $GITHUB_STEP_SUMMARY: {cure}", problem=True)
            with _writing(f"GITHUB_STEP_SUMMARY={summary}"), Path(summary).open("a", encoding="utf-8") as file:
                file.write(github.render_summary(report, lead, passed=passed))
        for out in self.outs:
            form = self.reporter if self._is_form_of_file and self.reporter else reporter_for(out).name
            with _writing(f"--out {out}"):
                report.write(out, form)
                if form == "md":
                    out.write_text(markdown.render(report, lead, passed=passed), encoding="utf-8", newline="\n")
        for shown in (*([flips(report)] if self.run["repeat"] > 1 else ()), pass_rates(report)):
            if len(shown) and not self.quiet:
                output.print_markdown(shown._repr_markdown_(), problem=self.is_for_machines)
        if self.by is not None:
            output.print_line(f"all: {report.grades.summary().line}", problem=self.is_for_machines)
            print_groups(report.grades, self.by, problem=self.is_for_machines)
        if comparison is not None and self.printed != "md":  # machines read the report on standard output
            output.print_markdown(comparison._repr_markdown_(), problem=self.is_for_machines)


def _is_stdout(file: Path) -> bool:
    """True if what is printed is written to *file*."""
    with suppress(OSError, ValueError, AttributeError):  # as of a test's
        return os.path.samestat(os.fstat(sys.stdout.fileno()), file.stat())
    return False


def _unfinished(case: Case) -> Row:
    return RowBuilder().row(case, Failure("exception", "the run was interrupted before this case was finished"))


SUITES_ONLY = names_in(RUNNING) - {"keep", "allow_scripts"}
"""The options that one candidate has no use for."""


@contextmanager
def _writing(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise Refusal(f"{name}: this cannot be written: {problem.strerror}") from problem


def pick_cases(
    suites: Sequence[Suite], files: Sequence[str], patterns: Sequence[str], excluded: Sequence[str]
) -> tuple[list[Suite], list[str]]:
    """Return the suites with the cases that fit one of *patterns* and none of *excluded*, and their files."""
    if not patterns and not excluded:
        return [*suites], [*files]
    cases = [case for suite in suites for case in suite]
    for name, option, given in (("patterns", "--filter", patterns), ("excluded", "--exclude", excluded)):
        if not given or any(fits(given, case.id, case.tags) for case in cases):
            continue
        said = f"no case fits {', '.join(map(repr, given))}"
        parts = [part for pattern in given for part in re.split(r" or |\|+|,", pattern)]
        apart = [part.rpartition("::")[2].strip() for part in parts]
        if apart != [*given] and all(any(fits([part], case.id, case.tags) for case in cases) for part in apart):
            change = {name: [word for part in apart for word in (option, part)]}
            raise WrongLineError(f"{option}: {said}; each pattern is an option of its own", change)
        tags = dict.fromkeys(tag for case in cases for tag in case.tags)
        for kind, found in (("cases", [case.id for case in cases]), ("tags", [*tags])):
            said += f"; the {kind} are {shorten(', '.join(found), 300)}" if found else ""
        said += "; a pattern is a part of an id, or a tag" + as_python(
            click.get_current_context(), name, " ".join(given)
        )
        raise DefinitionError(option, said)
    kept = {id(case): case for case in cases if is_wanted(case.id, case.tags, patterns, excluded)}
    if not kept:
        raise DefinitionError("--exclude", f"it leaves no case: each one fits {' or '.join(map(repr, excluded))}")
    left = [evolve(suite, cases=[case for case in suite if id(case) in kept]) for suite in suites]
    return [each for each in left if each.cases], [file for file, each in zip(files, left, strict=True) if each.cases]


def print_groups(results: Grades, by: str, *, problem: bool = False) -> None:
    """Print a line of figures for each group of *results*."""
    for value, group in results.by(by).items():
        output.print_line(f"{by} {value}: {group.summary().line}", problem=problem)


def describe_plan(plan: Plan, times: float = 1) -> str:
    """Return calls and cost of *plan* in a few words: `4 to 6 calls, at most $0.0120`; of more *times*, an estimate."""
    if not plan.most:
        return "no calls"
    least, most, about = round(plan.least * times), round(plan.most * times), "about " if times != 1 else ""
    calls = f"{about}{least:,} to {counted(most, 'call')}" if least != most else f"{about}{counted(most, 'call')}"
    if plan.cost is None:
        return f"{calls}, cost unknown"
    if not plan.cost[1]:
        return f"{calls}, free of charge"
    usual = f"about ${(plan.cost_at(plan.usual_tokens) or 0) * times:,.4f} at {plan.usual_tokens} tokens a reply"
    return f"{calls}, at most {about}${plan.cost[1] * times:,.4f}, {usual}"


def within(earlier: Report | None, report: Report) -> Report:
    """Return *report* with the rows of an *earlier* one that were not asked again for."""
    if earlier is None:
        return report
    rows = {row.id: row for row in (*earlier, *report)}
    return evolve(report, rows=tuple(rows.values()))


def _case_of(row: Row) -> str:
    """Return the id of the case of *row*, which one of several runs of it may be."""
    return re.sub(r" \[repeat \d+\]$", "", row.id)


def _change(case: Case | None, judge: AnyJudge | None, row: Row | None) -> str:
    """Return how *case* differs from its *row* of an earlier run, which would stand for it; '' if it does not."""
    if case is None or row is None:
        return "was not in the last run" if row is None else "is not in the files any more"
    given = {"input": case.input, "output": row.output if case.output is None else case.output}
    changed = [name for name, said in given.items() if getattr(row, name) != clean(said)]
    before = {(entry.id, entry.text, entry.weight) for entry in row.entries}
    asked = {(each.id, clean(each.text), each.weight) for each in case.rubric.criteria}
    changed += ["rubric"] if row.entries and (not asked <= before or row.threshold != case.rubric.threshold) else []
    changed += ["judge"] if row.judge and judge is not None and row.judge != judge.name else []
    return f"has another {' and another '.join(changed)} than in the last run" if changed else ""


def names_of(files: Sequence[str]) -> Sequence[str]:
    """Return what the ids of the cases of each of several *files* start with."""
    if len(set(map(str, map(Path, files)))) < len(files):
        raise DefinitionError("FILE", "one file is given twice; its cases would have the same ids")
    stems = [Path(file).stem for file in files]
    return stems if len(set(stems)) == len(stems) else files


def join_reports(reports: Sequence[Report], files: Sequence[str]) -> Report:
    """
    Return *reports* as one; if there are several *files*, each id starts with the file of its case.

    That is its name without folder and ending, if these names differ. The last files may have no report.
    """
    if len(files) == 1:
        return reports[0]
    pairs = [*zip(names_of(files), reports, strict=False)]
    missing = len(files) - len(reports)
    return evolve(
        reports[0],
        suite=", ".join(report.suite for report in reports),
        rows=tuple(evolve(row, id=f"{name}: {row.id}") for name, rows in pairs for row in rows),
        warnings=(
            *(warning for report in reports for warning in report.warnings),
            *([f"the run stopped early: {missing} of {len(files)} files were not run"] if missing else []),
        ),
        duration=sum(report.duration for report in reports),
    )
