"""The commands `agree`, `estimate`, `thresholds`, `compare` and `prefer`: how far verdicts can be trusted."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from rubric import DefinitionError, Grades, LoadError, Rubric, dump, load, prefer_many
from rubric.commands.file_arguments import TRIAL, WrongLineError, file_table, first_row, holds_results, is_report
from rubric.commands.kept_runs import last_runs
from rubric.commands.messages import in_options
from rubric.commands.named_columns import columns_of, wide_of
from rubric.commands.options import JUDGE, PATH, PAYING, calls_of, refuse_given, take
from rubric.commands.output import Command, Refusal, print_json, print_line, print_result
from rubric.commands.running import FIRST, describe_plan
from rubric.commands.view import check_rubrics, results_of, rubrics_in_files
from rubric.commands.wrong_lines import meant
from rubric.commands.wrong_options import TYPED
from rubric.embed import Wording, counted, replacing
from rubric.suites import Report
from rubric.trust.pairwise.preference import pairs_of, plan_pairs

FINE, WORSE = 0, 1


def from_extra(module: str, name: str) -> Any:
    """Return the function *name* of *module*; its libraries are an extra, without which other commands run."""
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        raise Refusal(str(error)) from error


def _judged(results: Path, rubrics: Sequence[Path]) -> Any:
    """Return *results* as they are, or read with their *rubrics*."""
    as_judged = from_extra("rubric.trust.ratings", "as_judged")
    return as_judged(results, rubrics=rubrics_in_files(rubrics)) if rubrics else results


@contextmanager
def _naming_rubrics(results: Path, rubrics: Sequence[Path]) -> Iterator[None]:
    """Answer a label that *results* alone cannot read with the line that names their rubric."""
    try:
        yield
    except DefinitionError as problem:
        why, is_found, _ = problem.message.partition(import_module("rubric.trust.ratings").NEEDS_RUBRIC)
        if is_found:
            check_rubrics(results, rubrics, f"{problem.field}: {why}")
        raise


def _labels(file: Path, given: dict[str, Any]) -> Any:
    """Return the labels in *file*, by the options that read them, which are taken out of those that are *given*."""
    wide = wide_of(given)
    try:
        return from_extra("rubric.trust", "Labels").read(file, columns=columns_of(given.pop("columns")), **wide)
    except DefinitionError as problem:
        if problem.field in wide:
            named = {"criterion": ("--criterion", *wide["criteria"])} if "criterion" in given else {}
            change = {"WITHOUT": [problem.field], **(named if len(wide["criteria"]) == 1 else {})}
            raise WrongLineError(f"--{problem}", change) from problem
        parts, context = getattr(problem.message, "parts", []), click.get_current_context()
        ways = [way for part in parts if isinstance(part, tuple) for way in part if isinstance(way, Wording)]
        if len(ways) == 1 or not ways:
            raise
        said, typed = [f"{problem.field}: {parts[0]}".rstrip("; ")], [*context.meta[TYPED]]
        for way in ways:  # each is a line of its own, since a column is read in one way
            in_options(DefinitionError("", way), cure=(cure := dict[str, list[str]]()))
            said.append(f"{str(way).partition(': ')[0]}, {meant('', context, typed=typed, change=cure)}")
        raise Refusal("\n".join(said)) from problem


def keep(rubric: Rubric, file: Path, what: str, *, write: bool) -> None:
    """Write *rubric* into its *file*, if `--write` says so, and say *what* was written, or how it would be."""
    if write and what:
        dump(rubric, file)
    said = f"wrote {what} into {file}" if write else f"to write {what} into {file}, add --write"
    print_line(said if what else f"nothing is accepted, so {file} stays as it is", problem=True)


def _check_baseline(_: click.Context, __: click.Parameter, out: Path | None) -> Path | None:
    if out is None or out.suffix.lower() in (".yaml", ".yml", ".json"):
        return out
    data = shlex.quote(str(out.with_suffix(".yaml")))
    said = f"it is data for --against, and ends in .yaml, .yml or .json: --out {data}"
    change = {"WITHOUT": ["out"], ">": [str(out.with_suffix(".txt"))]}
    raise WrongLineError(f"--out {out}: {said}; for people it is printed", change)


def _check_keys(context: click.Context) -> None:
    """Refuse, in a line that is tried, labels by key of results that have none, in the words of `agreement`."""
    results, labels = context.params["results"], context.params["others"]
    if not context.meta.get(TRIAL) or labels is None or "findings" not in (first := first_row(results, ".jsonl")):
        return
    named = [each[4:] for each in context.params["columns"] if each[:4] == "key="]
    key = str(first_row(labels).get([*named, "key"][0], ""))
    if key and first.get("key") is None:
        placed = "if these are places from 0, call their column index; else " * key.isdigit()
        cure = f"{placed}grade with them, such as rubric grade-many rubric.yaml answers.jsonl --column key=id"
        said = f"the candidates have no keys, and labels are by key ({key!r}, ...); {cure} --out results.jsonl"
        raise click.UsageError(said)


@click.command(cls=Command, check=_check_keys)
@click.argument("results", type=PATH)
@click.argument("others", type=PATH, required=False)
@take("out against risk with_seen every disagreements columns criteria raters rubrics form", out=_check_baseline)
def agree(results: Path, others: Path | None, *, out: Path | None, against: Any, form: str, **given: Any) -> None:
    """
    Measure how far a judge agrees with people or another judge.

    RESULTS is what `grade-many --out` wrote. OTHERS are labels (CSV or JSON lines with key or index, value, criterion,
    rater) or the results of another judge; without them the votes of a jury are compared, or the people in labels.

    Exit codes: 0 measured, 1 changed since the baseline, 2 bad input.
    """
    if against is None:
        refuse_given({"risk"}, "is for a comparison; name the baseline with --against FILE")
    judges: Any = _judged(results, given["rubrics"])
    if others is None and results.is_file() and not (results.suffix == ".jsonl" and holds_results(results)):
        judges = _labels(results, given)
    with_seen = given["with_seen"]
    said: Any = None
    are_labels = others is not None and not (others.is_file() and holds_results(others))
    if with_seen and not are_labels:
        raise click.UsageError("--with-seen is for labels; name their file after the results")
    if others is not None:
        said = _labels(others, given) if are_labels else from_extra("rubric.trust.ratings", "as_judged")(others)
    with _naming_rubrics(results, given["rubrics"]):
        found = from_extra("rubric.trust", "agreement")(judges, said.with_seen if with_seen else said)
    shown = found.disagreements if given["disagreements"] else found.detailed if given["every"] else found
    drift = None if against is None else found.against(against, risk=given["risk"])
    if form == "json" and drift is not None:
        print_json({**shown.to_dict(), "drift": drift.to_dict()})
    else:
        for each in (shown, drift) if drift is not None else (shown,):
            print_result(each, form)
    if out is not None:
        found.dump(out)
    sys.exit(FINE if drift is None else drift.exit_code)


@click.command(cls=Command)
@click.argument("results", type=PATH)
@click.argument("labels", type=PATH)
@take("criterion how least columns criteria raters rubrics form")
def estimate(results: Path, labels: Path, *, least: float | None, form: str, **how: Any) -> None:
    """
    Estimate what people would say of all, from some labels.

    RESULTS is what `grade-many --out` wrote; LABELS is a CSV or JSON lines with key or index, value, criterion, rater.
    The labelled candidates must be a random sample, or carry weights.

    Exit codes: 0 estimated, 1 below --min, 2 bad input, or no estimate.
    """
    people, rubrics = _labels(labels, how), how.pop("rubrics")
    with _naming_rubrics(results, rubrics):
        found = from_extra("rubric.trust", "estimate")(_judged(results, rubrics), people, **how)
    print_result(found, form)
    if found.value is None:
        raise Refusal(found.sentence)
    sys.exit(WORSE if least is not None and found.interval[1] < least else FINE)


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.argument("results", type=PATH)
@click.argument("labels", type=PATH)
@take(f"aim at columns criteria raters {JUDGE} passes_from write form")
def thresholds(file: Path, results: Path, labels: Path, *, judge: Any, form: str, **given: Any) -> None:
    """
    Choose a threshold by labels of people.

    FILE is the rubric, RESULTS is what `grade-many --out` wrote under it, LABELS say whether each candidate should
    pass, or have scores for --passes-from. Where a panel graded, name its members by --judge.

    Exit codes: 0 chosen, 2 bad input.
    """
    rubric, write, passes_from = load(file), given.pop("write"), given.pop("passes_from")
    before = [rubric.passing_at(each) for each in rubric.provenance.get("thresholds", ())]  # of what --write replaced
    grades = Grades.read_jsonl(results, [rubric, *before], judge).rescore(rubric)
    found = from_extra("rubric.trust", "thresholds")(grades, _labels(labels, given), passes_from=passes_from)
    found = found.best(**given)
    print_result(found, form)
    keep(found.rubric, file, f"the threshold {found.threshold:g}", write=write)


def _either(file: Path, rubrics: Sequence[Path], judge: Any) -> Grades:
    """Return the results in *file* by *judge*, or by the one that they name: a panel is compared with one judge."""
    try:
        return results_of(file, rubrics, judge)
    except LoadError as problem:
        try:
            return results_of(file, rubrics, None)
        except LoadError:
            raise problem from None


def _check(context: click.Context) -> None:
    """Refuse runs in another order, an old one that is named twice, groups of one, and a page without its rubric."""
    new, old, by, baseline = (context.params[name] for name in ("new", "old", "by", "baseline"))
    if by in ("id", "key"):
        raise WrongLineError("runs are paired by key, else by place; --by shows groups", {"WITHOUT": ("by",)})
    if baseline is not None and (new is None or old is not None):
        cure = "such as rubric compare new.jsonl --baseline old.jsonl"
        raise click.UsageError(f"--baseline names the old run beside one new run, {cure}")
    if by is not None and new is not None and is_report(new):
        said = f"{new} is a report; groups are of results, as kept runs have them, such as rubric compare --by {by}"
        raise WrongLineError(said, {"WITHOUT": ("by",)})
    if new is not None and old is not None and new.exists() and old.exists() and _is_turned(new, old):
        typed = [word for word in context.meta[TYPED] if Path(word) != old]
        line = shlex.join(["rubric", "compare", *typed, "--baseline", str(old)])
        said = f"the new run comes first, and by its name {new} is the older one (if not, such as {line})"
        raise WrongLineError(said, {"ARGUMENTS": [str(old), str(new)]})
    if new is not None and context.params["out"] is not None:
        check_rubrics(new, context.params["rubrics"])


def _is_turned(new: Path, old: Path) -> bool:
    """True if the names say that the run *old* is the newer one; the times of files may be those of a download."""
    words, others = (re.findall(r"[a-z]+|\d+", str(file).lower()) for file in (new, old))
    before, after = ({*file_table()["ages"][age].split()} for age in ("old", "new"))
    own = ({*words} - {*others}, {*others} - {*words})
    ages: list[Any] = [bool(after & each) - bool(before & each) for each in own]
    if ages[0] == ages[1] and re.sub(r"\d+", "0", str(new)) == re.sub(r"\d+", "0", str(old)):  # as of v1 and v2
        ages = [[int(word) for word in each if word.isdigit()] for each in (words, others)]
    return bool(ages[0] < ages[1])


@click.command(cls=Command, check=_check)
@click.argument("new", type=PATH, required=False)
@click.argument("old", type=PATH, required=False)
@take(f"baseline labels by out rubrics {JUDGE} form")
def compare(new: Path | None, old: Path | None, *, by: str | None, out: Path | None, judge: Any, **given: Any) -> None:
    """
    Compare two runs over the same candidates.

    NEW and OLD are what `grade-many --out` wrote, reports of suites in JSON, or folders of kept runs, paired by key,
    else by place; without them, the last two kept runs of the same files. Where the names say that OLD is the newer
    one, they are refused. --by is for a column that grade-many --by has kept. For the page, lines of results need
    --rubric, and --judge where it was a panel.

    Exit codes: 0 no worse, 1 the pass rate or the score, of all or of a group, is worse and chance does not explain it,
    2 bad input, or a case of a report is no longer graded.
    """
    labels, rubrics, of, old = given["labels"], given["rubrics"], "", old or given["baseline"]
    if new is None:
        new, old = (folder / "results.jsonl" for folder in last_runs(2))
        of = f", runs of {shlex.join(json.loads((new.parent / 'run.json').read_bytes())['files'])}"
    if old is None:
        raise click.UsageError(f"name two runs, such as rubric compare {new} old.jsonl; or none, for the last two kept")
    new, old = (each / "results.jsonl" if each.is_dir() else each for each in (new, old))
    if out is None and (rubrics or judge is not None):
        raise Refusal("--rubric and --judge are for the page of both runs; name its file with --out page.html")
    is_json, names = given["form"] == "json", {"new": str(new), "old": str(old)}
    if not is_json:
        print_line(f"new: {new}, old: {old}{of}")
    if by is None and not holds_results(new) and not holds_results(old):
        report, earlier = Report.load(new), Report.load(old)
        if out is not None:
            report.write(out, against=earlier)
        found = report.compare(earlier)
        code = found.exit_code
    else:
        if out is not None:
            people = from_extra("rubric.trust", "Labels").read(labels[0]) if labels else None
            first, second = (_either(file, rubrics, judge) for file in (new, old))
            first.report(out, against=second, labels=people)
        found = from_extra("rubric.trust", "compare")(new, old, labels, by=by)
        worse = [one for one in found if one.id in ("pass rate", "score") and one.interval[1] < 0]
        worse += [c for group in found.groups.values() for c in group if c.is_shown and c.difference < 0]
        code = WORSE if worse else FINE
    if out is not None:
        print_line(f"wrote {out}", problem=True)
    if is_json:
        print_json({"files": names, **found.to_dict()})
    else:
        print_result(found, given["form"])
    sys.exit(code)


# -- pairs --------------------------------------------------------------------------------------------------


def _check_sides(context: click.Context) -> None:
    """Refuse files as the sides: they are columns of one file."""
    for column in columns_of(context.params["columns"]).values():
        if isinstance(column, str) and Path(column).is_file():
            said = f"{column} is a file, and the sides a and b are columns of one file, which has a pair in each line"
            raise click.UsageError(said)


@click.command(cls=Command, check=_check_sides)
@click.argument("pairs", type=PATH)
@click.argument("rubric", type=PATH)
@take(f"{JUDGE} one_order least columns out {PAYING} form")
def prefer(pairs: Path, rubric: Path, *, judge: Any, columns: Sequence[str], out: Path | None, **given: Any) -> None:
    """
    Say which of two is better, for each pair in a file.

    PAIRS is JSON lines or CSV with a and b and, if known, input, reference, context, key, group, model_a, model_b.

    The win rate is that of a, or of the system that is named first; for --min, have the new one there.

    Exit codes: 0 all pairs judged, 1 the win rate is below --min, 2 bad input, or a pair without a verdict.
    """
    both, loaded = not given["one_order"], load(rubric)
    rows, remark = pairs_of(pairs, columns_of(columns))
    planned = plan_pairs(rows[:FIRST], loaded, judge, both_orders=both)
    times = len(rows) / max(1, min(len(rows), FIRST))
    print_line(f"{pairs}: {counted(len(rows), 'pair')}, {describe_plan(planned, times)}", problem=True)
    if remark:
        print_line(f"warning: {in_options(DefinitionError('', remark))}", problem=True)
    found = prefer_many(rows, loaded, judge, both_orders=both, **calls_of(given))
    if out is not None:
        with replacing(out) as file:
            file.writelines(json.dumps(one.to_dict(), ensure_ascii=False) + "\n" for one in found)
    print_result(found, given["form"])
    if missing := found.counts["unjudged"]:
        raise Refusal(f"{missing} of {len(found)} pairs have no verdict")
    interval = found.win_rate().interval
    sys.exit(WORSE if given["least"] is not None and interval and interval[1] < given["least"] else FINE)
