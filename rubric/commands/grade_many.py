"""The commands `grade-many`, for the many candidates of a file, and `merge`, for the results of shards."""

from __future__ import annotations

import json
import shlex
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from heapq import merge as merge_sorted
from itertools import islice
from pathlib import Path
from typing import IO, Any, Literal, cast

import click
from attrs import evolve, field, frozen

from rubric import Candidate, DefinitionError, Grade, Grades, Limits, Rubric, Ungraded, load
from rubric import grade_many as grade_candidates
from rubric import plan as plan_calls
from rubric.commands import options, output
from rubric.commands.file_arguments import MISSING, SUCH_AS, TEXTS, WrongLineError, first_row, holds_results, is_report
from rubric.commands.kept_runs import Keeper, candidate_digest, last_runs
from rubric.commands.messages import in_options
from rubric.commands.named_columns import ID, columns_of
from rubric.commands.options import refuse_given
from rubric.commands.output import INTERRUPTED, REFUSED, Command, Refusal, print_line, print_result, tell_rate
from rubric.commands.running import FIRST, NO_GRADE, describe_plan, print_groups
from rubric.embed import CONCURRENCY, Check, JudgeLike, RowBuilder, counted, fields, shorten, source_of
from rubric.engine import SPENT, Shard, merge_results
from rubric.programs import allowing
from rubric.results import Counts, Summary
from rubric.suites import Report
from rubric.suites.reporters import markdown
from rubric.suites.reporters.registry import reporter_for
from rubric.suites.slots import SLOT

GRADED, BELOW = 0, 1

_NAMED = 10
"""Candidates that do not pass and are named below the summary."""


_PAGES = (".html", ".htm")
_ALLOWED = {"allow_scripts": ("--allow-scripts",)}


@frozen
class _Noted:
    """What a run has made of its results so far; messages name its file as it is *called*."""

    called: str
    keeper: Keeper
    keeps: bool  # all results, which a report, or groups, need
    kept: list[Grade | Ungraded] = field(factory=list)
    counts: Counts = field(factory=Counts)
    short: list[str] = field(factory=list)  # why the first that do not pass do not
    rows: RowBuilder = field(factory=RowBuilder)

    def add(self, result: Grade | Ungraded, file: IO[bytes] | None) -> None:
        """Write *result* to the *file*, count it, and say so if calls gave no grade so far."""
        if file is not None:
            file.write(line_of(result))
        self.counts.add(result)
        if not result.passed and len(self.short) < _NAMED:
            why = shorten(self.rows.of(result).reason, 200)
            self.short.append(f"  {shorten(result.key or f'#{result.index}', 80)}: {why}")
        if len(self.counts) == FIRST and (now := self.counts.summary()).ungraded == FIRST and now.usage.calls:
            said = f"{self.called}: {NO_GRADE}: {next(iter(now.reasons))}; Ctrl-C ends the run"
            print_line(f"{said}, and --limit {FIRST} grades no more than these", problem=True)
        if self.keeper.folder is not None:
            self.keeper.add(self.rows.of(result))
        if self.keeps:
            self.kept.append(result)


@frozen
class Inputs:
    """The options of `grade-many`."""

    candidates: tuple[Path, ...]
    out: Path | None
    store: Path | None
    in_doubt: Literal["retry", "hold"]
    max_cost: float | None
    max_calls: int | None
    rpm: int | None
    tpm: int | None
    concurrency: int | None
    shard: Shard | None
    limit: int | None
    columns: Sequence[str]
    quiet: bool
    rerun: str | None = None
    keep: bool = True
    report: tuple[Path, ...] = ()
    by: str | None = None
    min_pass_rate: float | None = None
    allow_scripts: bool = False

    @property
    def source(self) -> Any:
        """What `grade_many` takes: the file or folder, or several files; one text is a file of several."""
        is_one = len(self.candidates) == 1 and self.candidates[0].suffix.lower() not in TEXTS
        return self.candidates[0] if is_one else self.candidates

    @property
    def called(self) -> str:
        """The file or the folder, or how many files there are."""
        return str(self.candidates[0]) if len(self.candidates) == 1 else counted(len(self.candidates), "file")

    def check(self, rubric: Path) -> None:
        """Refuse to overwrite a file that is read, or results that would have to be paid for again."""
        for report in self.report:
            reporter_for(report)
        if self.store is None:
            refuse_given({"in_doubt"}, options.NO_STORE)
        if self.rerun is not None:
            refuse_given({"shard", "limit"}, "has no effect with --rerun, which asks for some candidates of all")
        if self.shard is not None:
            refuse_given({"limit"}, "has no effect with --shard; take one of more shards")
        if str(self.out) == "-":
            raise click.UsageError("--out -: results go to a file, and the summary to standard output; name a .jsonl")
        if self.out is None or not self.out.exists():
            return
        options.refuse_inputs(self.out, (rubric, *self.candidates, self.store))
        if self.store is None and self.rerun is None:
            message = f"--out {self.out} exists, and without --store its grades would be paid for again"
            raise click.UsageError(f"{message}; name another file, or delete it")

    def run(self, name: Path, rubric: Rubric, judge: JudgeLike | None) -> tuple[Summary, str, Grades]:
        """Grade all candidates, write the results, and return their summary, with a line on those that do not pass."""
        columns, store = columns_of(self.columns), options.store_of(self.store, in_doubt=self.in_doubt)
        self._refuse_slots(rubric, columns)
        if rubric.starts_programs and not self.allow_scripts:
            raise WrongLineError(f"{name} starts programs, with the rights of this process", _ALLOWED)
        given, done = self._to_ask(name, rubric, judge, columns)
        self._refuse_other_results(columns)
        if not self.quiet:
            source = source_of(self.source, columns) if self.rerun is None else source_of(given)
            print_line(self._head(rubric, judge, source), problem=True)
        began, files = time.monotonic(), [name, *self.candidates]
        keeper = Keeper.of(rubric.name or "grades", files, keep=self.keep, store=self.store)
        noted = _Noted(self.called, keeper, keeps=bool(self.report) or self.by is not None)
        try:
            with (
                allowing(when=self.allow_scripts),
                grade_candidates(
                    given,
                    rubric,
                    judge,
                    columns=columns if given is self.source else None,
                    concurrency=self.concurrency or CONCURRENCY,
                    store=store,
                    budget=options.budget_of(self.max_cost, self.max_calls),
                    limits=Limits(rpm=self.rpm, tpm=self.tpm) if self.rpm or self.tpm else None,
                    progress=not self.quiet,
                ) as stream,
                nullcontext() if self.out is None else _open_results(self.out) as file,
            ):
                try:
                    for result in merge_sorted(done, stream, key=lambda result: result.index or 0):
                        noted.add(result, file)
                except KeyboardInterrupt:
                    for result in stream.rest():  # whole, and behind one that is not
                        noted.add(result, file)
                    raise
                if file is not None:  # only a run that comes here has written all results
                    file.write(stream.end_mark.encode())
        except KeyboardInterrupt:
            self._tell_stopped(noted.counts)
            keeper.end()
            raise SystemExit(INTERRUPTED) from None
        keeper.end()
        for report in self.report:
            self._write_report(report, rubric.name or self.called, noted.kept, time.monotonic() - began)
        summary, short = noted.counts.summary(), noted.short
        others = [f"  and {more:,} more"] if (more := summary.results - summary.passed - len(short)) else []
        head = "not passed:" if keeper.folder is None else "not passed; `rubric view` shows all:"
        return summary, "\n".join([head, *short, *others]) if short else "", Grades(noted.kept)

    def _refuse_slots(self, rubric: Rubric, columns: Mapping[str, Any]) -> None:
        """Refuse a check in which a column of the rows seems to stand: its braces would be searched for."""
        named = {*columns, *map(str, columns.values())}
        for criterion in rubric.criteria:
            for slot in SLOT.finditer(repr(criterion.answer) if isinstance(criterion.answer, Check) else ""):
                if slot[1] in named or any(slot[1] in first_row(file) for file in self.candidates):
                    said = f"{slot[0]} in the check {criterion.id!r} shows no column: one rubric grades all rows"
                    case = f"cases: [{{output: a reply, variables: {{{slot[1]}: a text}}}}]"
                    cures = f"a text of each row's own is a variable of a case, in a suite, such as {case}"
                    braces = rf"for the braces themselves, check: {{matches: '\{{\{{{slot[1]}\}}\}}'}}"
                    raise Refusal(f"{said}; {cures}; {braces}")

    def _refuse_other_results(self, columns: dict[str, str | Sequence[str] | None]) -> None:
        """Refuse to write over results that are not of this run: the key of the first is that of no candidate."""
        key = None if self.out is None or self.rerun is not None else first_row(self.out, ".jsonl").get("key")
        source = source_of(self.source, columns)

        def is_it(index: int, item: object) -> bool:
            with suppress(DefinitionError):  # a row that cannot be read is reported when its turn comes
                return source.at(index, item).candidate.key == key
            return False

        items = cast("Iterable[Any]", source.items)
        if key is not None and not any(is_it(index, item) for index, item in enumerate(items)):
            message = f"--out {self.out} has results of other candidates, such as {key!r}"
            raise Refusal(f"{message}; name another file, or delete it")

    def _tell_stopped(self, counts: Counts) -> None:
        """Print what was graded before Ctrl-C, and what the next run does."""
        summary = counts.summary().of_stopped(SPENT.usage)
        cure = "the next run begins anew: only --store FILE keeps what has been paid for"
        if self.store is not None:
            cure = f"run the same command again to go on: what {self.store} has is not paid for again"
            cure += ", but the ungraded are asked again" * bool(summary.ungraded)
            cure += ", and --max-cost counts anew" * (self.max_cost is not None)
        if summary.results and not self.quiet:
            output.print_markdown(summary._repr_markdown_(), problem=True)
        print_line(f"interrupted: {len(counts):,} candidates were finished; {SPENT}; {cure}", problem=True)

    def _write_report(self, file: Path, name: str, results: Sequence[Grade | Ungraded], duration: float) -> None:
        """Write *results* in the form that the ending of *file* selects: the page of many, or a reporter of suites."""
        if file.suffix.lower() in _PAGES:
            Grades(results).report(file)
        else:
            report = Report.of(results, name, duration=duration)
            report.write(file)
            if self.min_pass_rate is not None and reporter_for(file).name == "md":
                passed = report.exit_code_at(self.min_pass_rate) == 0
                file.write_text(markdown.render(report, passed=passed), encoding="utf-8", newline="\n")
        print_line(f"report: {file}", problem=True)

    def _to_ask(
        self, name: Path, rubric: Rubric, judge: Any, columns: dict[str, str | Sequence[str] | None]
    ) -> tuple[Any, list[Grade | Ungraded]]:
        """Return the candidates to grade, and with `--rerun` what the last run says of all others."""
        if self.rerun is None and self.limit is None:
            return self.source if self.shard is None else self.shard.of(self.source, columns=columns), []
        source = source_of(self.source, columns)
        places = [source.at(n, item) for n, item in enumerate(islice(cast("Iterable[Any]", source.items), self.limit))]
        if self.rerun is None:
            return places, []
        last = last_runs(1, [name, *self.candidates])[0] / "results.jsonl"
        done: dict[int, Grade | Ungraded] = {}
        with last.open(encoding="utf-8") as lines:
            digests = {each["index"]: each.get("candidate") for each in map(json.loads, lines)}
        for result in Grades.read_jsonl(last, rubric, judge):
            n = result.index or 0
            try:
                candidate = places[n].candidate if n < len(places) else Candidate("")
            except DefinitionError:  # a row that cannot be read is ungraded again
                continue
            status = "ungraded" if result.score is None else "passed" if result.passed else "failed"
            is_there = n < len(places) and (candidate.key or f"#{n}") == result.key
            is_other = status != self.rerun and digests[n] != candidate_digest(candidate)  # one that is asked again may
            if is_other or not is_there:
                what = "has changed" if is_there else "is not in its place"
                said = f"candidate {n} of the last run, {result.key!r}, {what}; run the file without --rerun"
                raise Refusal(f"{self.called}: {said}")
            if status != self.rerun:
                done[n] = evolve(result, candidate=candidate, key=candidate.key)
        if len(done) == len(places):
            raise Refusal(f"--rerun {self.rerun}: no candidate of the last run is {self.rerun}")
        return [place for place in places if place.index not in done], [done[n] for n in sorted(done)]

    def _head(self, rubric: Rubric, judge: JudgeLike | None, source: Any) -> str:
        """Return a line that says before the first call what the run will take, projected from the first candidates."""
        first, wrong, ids = list[Candidate](), list[DefinitionError](), list[str]()
        with suppress(Exception):  # a row that cannot be read is reported when its turn comes
            for index, item in enumerate(islice(cast("Iterable[Any]", source.items), FIRST)):  # never async
                ids += [name for name in item if ID.fullmatch(name)] if isinstance(item, Mapping) else ()
                try:
                    first.append(source.at(index, item).candidate)
                except DefinitionError as error:
                    wrong.append(error)
        if ids and first and not any(each.key for each in first):
            print_line(f"results have no keys; those in a column are named, as --column key={ids[0]}", problem=True)
        if wrong:
            told = f"{len(wrong)} of the first {len(first) + len(wrong)} are no candidates: {in_options(wrong[0])}"
            print_line(f"{self.called}: {told}", problem=True)
        planned, seen = plan_calls(first, rubric, judge), len(first) + len(wrong)
        total = None if self.shard is not None else source.total
        total = min(total, self.limit) if total and self.limit else total
        called = self.called if self.rerun is None else f"asked again of {self.called}"
        if total and first:
            return f"{called}: {counted(total, 'candidate')}, {describe_plan(planned, total / seen)}"
        return f"{called}: the first {seen} take {describe_plan(planned)}"


_TABLES = (".csv", ".tsv", ".xlsx", ".parquet", ".xls")


def _check_out(_: click.Context, __: click.Parameter, out: Path | None) -> Path | None:
    """Refuse a file that is no place for results, which are lines of JSON."""
    if out is None or (kind := out.suffix.lower()) not in (*_PAGES, ".xml", ".md", *_TABLES):
        return out
    said = f"--out {out}: results are lines of JSON"
    file = out.with_suffix(".csv") if kind in _TABLES else out
    raise WrongLineError(f"{said}, and a report is another option", {"out": (), "report": ("--report", str(file))})


def _check(context: click.Context) -> None:
    Inputs(**fields.fields_in(Inputs, context.params)).check(context.params["rubric"])


@click.command("grade-many", cls=Command, check=_check)
@click.argument("rubric", type=options.PATH)
@click.argument("candidates", nargs=-1, required=True, metavar="CANDIDATES...", type=options.PATH)
@options.take(
    f"{options.JUDGE} threshold out report by keep rerun store replay in_doubt max_cost max_calls prices rpm tpm "
    "concurrency shard limit columns allow_scripts min_pass_rate form quiet color",
    out=_check_out,
    shard=lambda _, __, text: None if text is None else Shard.parse(text),
)
def grade_many(rubric: Path, judge: JudgeLike | None, threshold: float | None, form: str, **given: Any) -> None:
    """
    Grade every candidate of a file against a rubric.

    CANDIDATES is a file of JSON lines (a text, or an object with `output`, `input`, ... each), JSON, CSV or Parquet, or
    a log of Inspect, promptfoo, LangSmith or Braintrust. Several files, or a folder, are such tables one after another,
    or a candidate each: a text, or an agent's run. The summary goes to standard output, progress to standard error.

    Exit codes: 0 all were graded, 1 fewer pass than --min-pass-rate, 2 some could not be graded, 130 interrupted.
    """
    if (by := given["by"]) not in (None, "group", "key", "verdict", "judge"):
        given["columns"] = [*dict.fromkeys([*given["columns"], f"variables={by}"])]
    inputs = Inputs(**given)
    loaded = load(rubric)
    summary, short, results = inputs.run(rubric, loaded if threshold is None else loaded.passing_at(threshold), judge)
    told = {in_options(DefinitionError("", said)): count for said, count in summary.warnings.items()}
    print_result(evolve(summary, warnings=told), form, quiet=inputs.quiet)
    if inputs.by is not None:
        print_groups(results, inputs.by, problem=form == "json")
    if short and form != "json" and not inputs.quiet:
        print_line(short)
    if not summary.results and inputs.shard is None:
        raise Refusal(f"{inputs.called}: there is no candidate in it")
    if summary.ungraded:
        if inputs.quiet:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in summary.failures.items())
            print_line(f"{summary.ungraded:,} ungraded ({kinds})", problem=True)
        sys.exit(REFUSED)
    least = inputs.min_pass_rate
    is_below = least is not None and tell_rate(summary.passed, summary.failed, least)
    sys.exit(BELOW if is_below else GRADED)


def _open_results(out: Path) -> IO[bytes]:
    """Open the file of results: a written line is in it a moment later, even if this process is killed."""
    file = out.open("wb")

    def flush_often() -> None:  # a flush for each line would compete with the event loop a thousand times a second
        told = False
        with suppress(ValueError):  # of a closed file
            while True:
                time.sleep(0.1)
                try:
                    file.flush()
                except OSError as problem:  # the lines are still in the buffer; writing more, or closing, raises again
                    if not told:
                        print_line(f"warning: --out {out}: {problem.strerror}; its last lines wait", problem=True)
                    told = True

    threading.Thread(target=flush_often, daemon=True).start()
    return file


def line_of(result: Grade | Ungraded) -> bytes:
    """Return *result* as a line of JSON without usage, which is none for a reply from the store."""
    data = {"index": result.index, **_without_usage(result.to_dict())}
    line = json.dumps(data, ensure_ascii=False, allow_nan=False, default=str)
    return f"{line}\n".encode(errors="backslashreplace")


def _without_usage(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _without_usage(value) for name, value in data.items() if name != "usage"}
    return [_without_usage(value) for value in data] if isinstance(data, list | tuple) else data


def _check_parts(context: click.Context) -> None:
    """Refuse files that are not there; without --out, the only one of them is what is to be written."""
    parts: Sequence[Path] = context.params["parts"]
    absent = [str(part) for part in parts if not part.exists()]
    if context.params["out"] is None and len(absent) == 1 and len(parts) > 2:  # noqa: PLR2004 - two to merge
        change = {"ARGUMENTS": [str(part) for part in parts if part.exists()], "out": ("--out", *absent)}
        raise WrongLineError("the file to write is an option", change)
    if absent:
        raise WrongLineError(f"{absent[0]}: {MISSING}", {})
    if reports := [str(part) for part in parts if is_report(part)]:
        cure = "those of several jobs stay files of their own, such as --out junit-1.xml, of which CI reads all"
        raise click.UsageError(f"{reports[0]} is a report of a suite, and merge takes results of grade-many; {cure}")
    rows = [first_row(part, ".jsonl") for part in parts]
    if others := [str(part) for part, row in zip(parts, rows, strict=True) if row and not holds_results(part)]:
        rest = [str(part) for part in parts if str(part) not in others]
        change = {"ARGUMENTS": rest, "without": others} if len(rest) > 1 else {}
        raise WrongLineError(f"{others[0]} holds no results", change)
    if sum(row.get("index") == 0 for row in rows) > 1 and any("findings" in row and "key" not in row for row in rows):
        line = """jq -nc '[inputs | .key = "\\(input_filename):\\(.index)"] | to_entries[] | .value + {index: .key}'"""
        cure = f"{line} {shlex.join(map(str, parts))} > {shlex.quote(str(context.params['out'] or 'all.jsonl'))}"
        raise click.UsageError(f"results of several runs are told apart by keys, which these lack, such as {cure}")
    if context.params["out"] is None:
        raise WrongLineError("Missing option '--out'", {"out": ("--out", "all.jsonl"), **SUCH_AS})


@click.command(cls=Command, check=_check_parts)
@click.argument("parts", nargs=-1, required=True, metavar="RESULTS...", type=options.PATH)
@options.take("out")
def merge(parts: Sequence[Path], out: Path) -> None:
    """
    Put the results of all shards into one file.

    They are in the order of the candidates. No file is written if a result is missing or doubled, or if a shard is of
    another data set, rubric, judge or number of shards. Results of several runs, each with a key of its own, follow one
    another.
    """
    options.refuse_inputs(out, parts)
    print_line(f"{out}: {merge_results(parts, out):,} results")
