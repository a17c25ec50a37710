"""The commands about the quality of rubrics: `lint`, `explain`, `check` and `align`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from attrs import evolve

from rubric import Case, DefinitionError, Grade, Grades, LoadError, Ungraded, influence, load, load_suite
from rubric import check as run_tests
from rubric import lint as lint_file
from rubric.commands import options, output
from rubric.commands.file_arguments import first_row
from rubric.commands.files import rubric_files
from rubric.commands.messages import in_options
from rubric.commands.named_columns import columns_of, wide_of
from rubric.commands.output import Command, Refusal
from rubric.commands.trust import from_extra, keep
from rubric.commands.wrong_lines import meant
from rubric.embed import cell, source_of
from rubric.formats.projects import is_rubric
from rubric.quality import Influences, Remarks
from rubric.quality.attacks import ATTACKS


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())
@options.take("hints form")
def lint(files: Sequence[str], form: str, *, hints: bool) -> None:
    """
    Find faults in rubrics and suites, without a judge.

    Exit codes: 0 nothing is wrong, 1 errors or warnings, 2 a file cannot be read. A comment waives a remark on its
    line, or on the line below: "# lint: allow RULE: why".
    """
    found: dict[str, Remarks] = {}
    unreadable = False
    for file in rubric_files(files):
        try:
            found[file] = lint_file(file, hints=hints)
        except LoadError as error:
            unreadable = True
            for problem in error.problems:
                output.print_line(str(problem), problem=True)
    if form == "json":
        output.print_json([{"file": file, **remarks.to_dict()} for file, remarks in found.items()])
    else:
        for file, remarks in found.items():
            for remark in remarks:
                output.print_line(str(remark))
            output.print_line(f"{file}: {remarks.sentence}")
    is_sound = all(remarks.ok for remarks in found.values())
    sys.exit(output.REFUSED if unreadable else 0 if is_sound else 1)


@click.command(cls=Command)
@click.argument("file", type=click.Path())
@options.take("form")
def explain(file: str, form: str) -> None:
    """
    Show how often each criterion of a rubric decides.

    In a suite, each rubric is explained once, at its first case.
    """
    found = [*_influences(file)]
    if form == "json":
        output.print_json([{"case": case, **one.to_dict()} for case, one in found])
    else:
        output.print_text("\n\n".join(f"{case}: {one}" if case else str(one) for case, one in found))


def _influences(file: str) -> Iterator[tuple[str, Influences]]:
    if is_rubric(file):
        yield "", influence(load(file))
        return
    seen: set[str] = set()
    for case in load_suite(file).cases:
        if case.rubric.judged and case.rubric.digest not in seen:
            seen.add(case.rubric.digest)
            yield case.id, influence(case.rubric)


@click.command(cls=Command)
@click.argument("file", type=options.PATH)
@options.take(f"{options.JUDGE} {options.PAYING} repeats form")
def check(file: Path, judge: Any, repeats: int, form: str, **given: Any) -> None:
    """
    Run the tests of a rubric.

    They are replies, with what a good judge says of them; see `tests` in the file. In a suite, the tests of each rubric
    are run once, under its first case. With a store that has all replies, nothing is called.

    Exit codes: 0 all tests passed, 1 one failed, 2 one could not be judged, or bad input.
    """
    calls = options.calls_of(given)
    if is_rubric(file):
        if not (rubric := load(file)).tests:
            cure = f"what is wrong without any is told by another command, such as rubric lint {shlex.quote(str(file))}"
            raise click.UsageError(f"{file} has no tests, such as tests: [{{reply: Thank you, passes: true}}]; {cure}")
        found = run_tests(rubric, judge, repeats, **calls)
        output.print_result(found, form)
        sys.exit(found.exit_code)
    trials = {case.id: run_tests(case.rubric, by, repeats, **calls) for case, by in _cases_with_tests(file, judge)}
    if form == "json":
        output.print_json([{"case": case, **one.to_dict()} for case, one in trials.items()])
    else:
        for case, one in trials.items():
            output.print_markdown(f"{cell(case)}: {one._repr_markdown_()}")
    codes = {one.exit_code for one in trials.values()}
    sys.exit(1 if 1 in codes else max(codes))


def _cases_with_tests(file: Path, judge: Any) -> list[tuple[Case, Any]]:
    """Return the first case of each rubric of a suite that has tests, with the judge of these."""
    suite = load_suite(file)
    first = {(case.rubric.digest, case.rubric.tests): case for case in reversed(suite.cases) if case.rubric.tests}
    if not first:
        raise Refusal(f"{file} is a suite, and none of its rubrics has tests; add `tests` to a rubric")
    return [(case, judge or case.judge or suite.judge) for case in reversed(first.values())]


@click.command(cls=Command)
@click.argument("file", type=options.PATH)
@click.argument("candidates", type=options.PATH)
@options.take(
    f"{options.JUDGE} attacks most only_plan columns {options.PAYING} form",
    attacks=click.Choice([each.name for each in ATTACKS]),
)
def probe(file: Path, candidates: Path, *, judge: Any, only_plan: bool, columns: Any, form: str, **given: Any) -> None:
    """
    Find out how far a judge can be moved: by claims, fake verdicts, padding.

    FILE is a rubric, CANDIDATES are answers as for grade-many, 60 or more. Each is graded as it is and under each
    attack.

    Exit codes: 0 no attack is shown to move a verdict, 1 one is (or surely breaks --most), 2 nothing could be compared.
    """
    calls = {} if only_plan else {"most": given["most"], **options.calls_of(given)}
    ask = from_extra("rubric.quality", "plan_probe" if only_plan else "probe")
    attacks = given["attacks"] or None
    found = ask(file, judge, str(candidates), attacks=attacks, columns=columns_of(columns), **calls)
    if only_plan:
        output.print_result(found, "table", quiet=True)
        options.check_prices([found])
        return
    output.print_result(found, form)
    sys.exit(found.exit_code)


@click.command(cls=Command)
@click.argument("file", type=options.PATH)
@click.argument("results", type=options.PATH)
@click.argument("labels", type=options.PATH)
@options.take(f"edits risk writer candidates columns criteria raters {options.JUDGE} {options.PAYING} write form")
def align(file: Path, results: Path, labels: Path, *, edits: Any, candidates: Path | None, **given: Any) -> None:
    """
    Fit a rubric to labels of people.

    FILE is the rubric, RESULTS is what `grade-many --out` wrote under it, and LABELS is a CSV or JSON lines with key or
    index, and value: verdicts or scores of people. A --column is of LABELS or of CANDIDATES, as its field is; one of a
    key is of each of them that has it. Without --edit, threshold and weights are tried, which calls nothing. `--edit
    anchors` shows the judge labelled candidates, `--edit texts` has a writer write; both grade the candidates anew.

    Exit codes: 0 measured, 2 bad input.
    """
    if candidates is None and (called := {*edits} - {"threshold", "weights"}):
        why = f"--edit {min(called)} grades the candidates anew, and RESULTS has none"
        raise click.UsageError(f"{why}; name their file: --candidates FILE")
    if candidates is None:
        options.refuse_given({"prices"}, "is for --candidates FILE")
    rubric = load(file)
    grades = Grades.read_jsonl(results, rubric, given["judge"])
    columns, others = _columns_of_each(columns_of(given["columns"]), labels, candidates)
    right, cure = others, dict[str, list[str]]()  # the columns of the file that the problem is not of
    try:
        people = from_extra("rubric.trust", "Labels").read(labels, columns=columns, **wide_of(given))
        right = columns
        grades = grades if candidates is None else _with_candidates(grades, candidates, others)
    except DefinitionError as problem:
        said, named = in_options(problem, cure=cure), [f"{name}={column}" for name, column in right.items()]
        named = [*dict.fromkeys([*cure.get("columns", [])[1::2], *named])]
        change = cure | ({"columns": [w for each in named for w in ("--column", each)]} if "columns" in cure else {})
        raise Refusal(meant(said, click.get_current_context(), change=change)) from problem
    calls = {"writer": given["writer"], "risk": given["risk"], **options.calls_of(given)}
    tried = edits or ("threshold", "weights")
    found = from_extra("rubric.quality", "align")(rubric, grades, people, tried, **calls)
    output.print_result(found, given["form"])
    keep(found.rubric, file, " and ".join(each.kind for each in found.accepted), write=given["write"])


_OF_LABELS = {"index", "value", "criterion", "rater", "weight", "judge_seen", "reason"}
"""The fields of labels that no candidate has."""


def _columns_of_each(named: Mapping[str, Any], labels: Path, candidates: Path | None) -> list[dict[str, Any]]:
    """Return the columns *named* of the labels, and those of the candidates; `key` is of each file that has it."""
    keyed = [file for file in (labels, candidates) if file and named.get("key") in first_row(file)] or [labels]
    return [
        {name: column for name, column in named.items() if (file in keyed if name == "key" else name in own)}
        for file, own in ((labels, _OF_LABELS if candidates else named), (candidates, {*named} - _OF_LABELS))
    ]


def _with_candidates(grades: Grades, path: Path, columns: Mapping[str, Any]) -> Grades:
    """Return *grades* with the candidates that the file at *path* holds, by their places."""
    held, _ = source_of(path, columns).read_all()
    out: list[Grade | Ungraded] = []
    for place, result in enumerate(grades):
        at = place if result.index is None else result.index
        if at not in held and result.score is not None:  # a row that holds none was not graded either
            raise Refusal(f"{path} has no candidate {at}, which the results are of")
        candidate = held.get(at)
        if candidate is not None and result.key and candidate.key != result.key:
            cure = "" if candidate.key else "; name the column of keys, such as --column key=id"
            raise Refusal(f"{path}: candidate {at} has the key {candidate.key!r}, the result {result.key!r}{cure}")
        out.append(evolve(result, candidate=candidate))
    return Grades(out)
