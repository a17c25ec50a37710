"""The commands `view`, of kept runs, a store, a report or results in pages that load nothing, and those of a store."""

from __future__ import annotations

import getpass
import json
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from rubric import DefinitionError, Grades, Rubric, RubricError, load, load_suite
from rubric.commands.file_arguments import WrongLineError, holds_results, kind_of, rubric_of
from rubric.commands.kept_runs import folder_of_runs, kept_runs, last_runs
from rubric.commands.local_server import LocalServer, Page
from rubric.commands.options import JUDGE, PATH, refuse_given, refuse_inputs, take
from rubric.commands.output import REFUSED, Command, Commands, Refusal, print_line, print_result
from rubric.embed import read_json, replacing
from rubric.formats.projects import is_rubric
from rubric.labelling.drawing import Draw
from rubric.labelling.sheet import Answer, Sheet
from rubric.runs import is_run
from rubric.store import export as exported_calls
from rubric.store import stats as stats_of
from rubric.store import verify as problems_in
from rubric.suites import Report
from rubric.suites.report import dump_json
from rubric.suites.report import summary as figures_of
from rubric.suites.reporters.registry import reporter_for
from rubric.view import html, store_page
from rubric.view.page import results_page
from rubric.view.suite_page import render


def page_of(file: Path, rubrics: Sequence[Path] = (), judge: Any = None) -> Page:
    """
    Return what shows *file*, by its content: a store, a report in JSON, or lines of results.

    Results do not hold their rubrics, which the files *rubrics* do, nor a *judge* that is more than a model.
    """
    if not file.is_file():
        raise Refusal(f"{file}: there is no such file")
    with file.open("rb") as opened:
        start = opened.read(16)
    if not start.startswith(_SQLITE) and holds_results(file):
        results = results_of(file, rubrics, judge)
        summary = results.summary()
        return lambda _: results_page(results, summary, file.name)
    if rubrics or judge is not None:
        raise Refusal(f"{file}: --rubric and --judge are for lines of results, and this file holds no result")
    if start.startswith(_SQLITE):
        store_page.search(file, store_page.Query())
        return lambda fields: store_page.page(file, _query(fields))
    try:
        read_json(file.read_bytes())
    except (ValueError, RecursionError):
        message = "expected what --store FILE, `grade SUITE --out report.json` or `grade-many --out FILE` has written"
        raise Refusal(f"{file}: {message}") from None
    report = Report.load(file)
    return lambda _: render(report)


_SQLITE = b"SQLite format 3"


def results_of(file: Path, paths: Sequence[Path], judge: Any) -> Grades:
    """Return the results in *file*, under the rubrics in *paths*."""
    if not paths:
        raise Refusal(f"{file}: results name their rubric by its digest alone; add --rubric FILE, a rubric or a suite")
    return Grades.read_jsonl(file, rubrics_in_files(paths), judge)


def rubrics_in_files(paths: Sequence[Path]) -> list[Rubric]:
    """Return the rubrics in *paths*, each a rubric or a suite."""
    found: list[Rubric] = []
    for path in paths:
        found += [load(path)] if is_rubric(path) else [case.rubric for case in load_suite(path).cases]
    return [*{rubric.digest: rubric for rubric in found}.values()]


def write(file: Path, out: Path, rubrics: Sequence[Path], judge: Any) -> None:
    """Write what is in *file*, a report, results or the folder of a kept run, in the form that ends the name *out*."""
    reporter_for(out)
    file = file / "report.json" if file.is_dir() else file
    if not file.is_file():
        raise Refusal(f"{file}: there is no such file; a folder is that of one run, such as in .rubric/runs")
    refuse_inputs(out, [file])
    if not holds_results(file):
        refuse_given({"rubrics", "judge"}, "is for lines of results, and this file holds none")
        Report.load(file).write(out)
    elif out.suffix.lower() in (".html", ".htm"):
        results_of(file, rubrics, judge).report(out)
    else:
        Report.of(results_of(file, rubrics, judge), file.stem).write(out)
    print_line(f"wrote {out}", problem=True)


def _query(fields: dict[str, str]) -> store_page.Query:
    start = fields.get("start", "")
    is_number = start.isascii() and start.isdigit() and len(start) < 10  # noqa: PLR2004
    return store_page.Query(fields.get("q", ""), fields.get("state", ""), int(start) if is_number else 0)


def listing(folder: Path) -> tuple[Page, Callable[[Any], None]]:
    """Return what lists the runs and files in *folder*, each a link to its page, and what keeps a label of a run."""

    def page(fields: dict[str, str]) -> str:
        lines: list[tuple[str, str, str, dict[str, Any], bool]] = []
        for path, about in kept_runs(folder):
            if path.name == fields.get("run"):
                return _page_of_a_run(path, about, fields.get("calls", ""))
            lines.append((path.name, about["name"], about.get("started", ""), about.get("summary", {}), True))
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            with suppress(RubricError, Refusal):
                shown = page_of(path)
                if path.name == fields.get("run"):
                    return shown(fields)
                when = datetime.fromtimestamp(path.stat().st_mtime).astimezone().isoformat(timespec="seconds")
                figures = figures_of(Report.load(path)) if path.suffix == ".json" else {}
                lines.append((path.name, path.name, when, figures, False))
        return html.page(str(folder), html.render("runs.html", folder=str(folder), runs=lines))

    def save(data: Any) -> None:
        run = data.get("run") if isinstance(data, dict) else None
        path = next((each for each, _ in kept_runs(folder) if each.name == run), None)
        if path is None:
            raise DefinitionError("run", "there is no such run")
        sheet = _sheet(path, Report.load(path / "report.json"))
        answer = Answer.of({**data, "rater": getpass.getuser()}, {"": frozenset({"pass", "fail"})})
        if answer.name not in sheet.draw.places:
            raise DefinitionError("name", "there is no such candidate in this run")
        sheet.add([answer])

    return page, save


def _page_of_a_run(path: Path, about: Mapping[str, Any], asked: str) -> str:
    """Return the page of a kept run, which takes labels, or the data of the calls about the row that is *asked* for."""
    report = Report.load(path / "report.json")
    store = Path(about.get("store", ""))
    for row in report if store.is_file() else ():
        if row.id == asked:
            return store_page.calls_page(store, row)
    sheet, user = _sheet(path, report), getpass.getuser()
    mine = (each for each in sheet.read() if not each.criterion and each.rater == user)
    labels = {each.name: [each.value, each.reason, each.judge_seen] for each in mine}
    draw = [[item.place, item.name] for item in sheet.draw.items]
    said = dump_json([path.name, labels, draw, "ended" not in about, store.is_file()]).replace("<", "\\u003c")
    script = f"const [RUN, LABELS, DRAW, IS_LIVE, HAS_CALLS] = {said};\n{html.file('label_run.js')}"
    return render(report, more_script=script, sources="connect-src 'self'")


def _sheet(path: Path, report: Report) -> Sheet:
    return Sheet(path / "labels.csv", Draw.of([row.id for row in report]))


def check_rubrics(
    file: Path, rubrics: Sequence[Path], why: str = "results name their rubric by its digest alone"
) -> None:
    """Refuse the results in *file* without *rubrics*; one of their digest is looked for beside them, and here."""
    if rubrics or kind_of(str(file)) != "results":
        return
    message = f"{file}: {why}; add --rubric FILE, a rubric or a suite"
    if path := rubric_of(str(file)):
        raise WrongLineError(message, {"rubrics": ("--rubric", path)})
    raise click.UsageError(message)


def _check(context: click.Context) -> None:
    file = context.params["results"]
    if file is not None and file.suffix == ".json" and is_run(file):
        message = f"{file} is a run of an agent, or a chat, which is graded by a rubric"
        raise click.UsageError(f"{message}, such as rubric grade rubric.yaml {shlex.quote(str(file))}")
    if file is not None:
        check_rubrics(file, context.params["rubrics"])


@click.command(cls=Command, check=_check)
@click.argument("results", type=PATH, required=False, metavar="[FILE]")
@take(f"rubrics out {JUDGE} port no_browser")
def view(
    results: Path | None, rubrics: Sequence[Path], out: Path | None, judge: Any, port: int, *, no_browser: bool
) -> None:
    """
    Show kept runs, a store, a report or results, or write them.

    Without FILE, or for a folder, list what is in it; on the page of a kept run, labels can be given. FILE is a store
    (every request to a judge with its messages and its raw reply), a report in JSON, or the results of `grade-many
    --out`; these need --rubric, and --judge where it was a panel. All can be searched. Only this machine and this user
    can open the address; nothing but labels is written. With --out, no page is served: a report, results or a kept run,
    else the last one, are written as a page, a table, or a report for CI.
    """
    if out is not None:
        refuse_given({"port", "no_browser"}, "is for a page that is served, and --out writes a file")
        write(results or last_runs(1)[0], out, rubrics, judge)
        return
    file = results or folder_of_runs()
    if file is None:
        raise click.UsageError("RUBRIC_RUNS is empty, so no runs are kept; name a file or a folder")
    is_folder = file.is_dir() or file == folder_of_runs()
    page, save = listing(file) if is_folder else (page_of(file, rubrics, judge), None)
    LocalServer(page, port, save).run(str(file), no_browser=no_browser)


# -- stores -------------------------------------------------------------------------------------------------

_STORE = click.argument("store", type=PATH, metavar="FILE")


@click.group(cls=Commands)
def store() -> None:
    """Inspect a reply store without changing it."""


@store.command()
@_STORE
@take("form")
def stats(store: Path, form: str) -> None:
    """Count calls by state, their cost, and the cost saved."""
    print_result(stats_of(store), form)


@store.command()
@_STORE
@take("out")
def export(store: Path, out: Path | None) -> None:
    """Write every call as a line of JSON, with keys and passwords masked."""
    rows = exported_calls(store)
    if out is None:
        for row in rows:
            click.echo(json.dumps(row))
        return
    refuse_inputs(out, [store])
    with replacing(out) as lines:
        lines.writelines(f"{json.dumps(row)}\n" for row in rows)


@store.command()
@_STORE
def verify(store: Path) -> None:
    """Check the file: every request must match its key, and every reply must be readable."""
    problems = problems_in(store)
    for problem in problems:
        print_line(f"{store}: {problem}", problem=True)
    if problems:
        sys.exit(REFUSED)
    print_line(f"{store}: whole")
