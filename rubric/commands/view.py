"""The command `view`: a store, a report or results in the browser, read-only, in pages that load nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from rubric import Grades, Rubric, load, load_suite
from rubric.commands.local_server import NO_BROWSER, PORT, LocalServer, Page
from rubric.commands.options import JUDGE, PATH, holds_results
from rubric.commands.output import Command, Refusal
from rubric.embed import read_json
from rubric.formats.projects import is_rubric
from rubric.suites import Report
from rubric.view import store_page
from rubric.view.page import results_page
from rubric.view.suite_page import render


def page_of(file: Path, rubrics: Sequence[Path] = (), judge: Any = None) -> Page:
    """
    Return what shows *file*, by its content: a store, a report in JSON, or lines of results.

    Args:
        file: The file.
        rubrics: Files with the rubrics of results, which do not hold them; suites give those of their cases.
        judge: The judge of results, where it was not one model alone.

    Raises:
        RubricError: It is none of these, or results are of other rubrics or another judge.
    """
    if not file.is_file():
        raise Refusal(f"{file}: there is no such file")
    with file.open("rb") as opened:
        start = opened.read(16)
    if not start.startswith(_SQLITE) and holds_results(file):
        return _results(file, rubrics, judge)
    if rubrics or judge is not None:
        raise Refusal(f"{file}: --rubric and --judge are for lines of results, and this file holds no result")
    if start.startswith(_SQLITE):
        store_page.search(file, store_page.Query())
        return lambda fields: store_page.page(file, _query(fields))
    try:
        read_json(file.read_bytes())
    except (ValueError, RecursionError):
        cure = "a store is what --store FILE writes, a report what `grade SUITE --out report.json` does"
        message = (
            f"expected a store, or the report of a suite in JSON, or lines of results of `grade-many --out`; {cure}"
        )
        raise Refusal(f"{file}: {message}") from None
    report = Report.load(file)
    return lambda _: render(report)


_SQLITE = b"SQLite format 3"


def _results(file: Path, paths: Sequence[Path], judge: Any) -> Page:
    """Return what shows the results in *file*, under the rubrics in *paths*."""
    if not paths:
        raise Refusal(f"{file}: results name their rubric by its digest alone; add --rubric FILE, a rubric or a suite")
    rubrics: list[Rubric] = []
    for path in paths:
        rubrics += [load(path)] if is_rubric(path) else [case.rubric for case in load_suite(path).cases]
    results = Grades.read_jsonl(file, {rubric.digest: rubric for rubric in rubrics}.values(), judge)
    summary = results.summary()
    return lambda _: results_page(results, summary, file.name)


def _query(fields: dict[str, str]) -> store_page.Query:
    start = fields.get("start", "")
    is_number = start.isascii() and start.isdigit() and len(start) < 10  # noqa: PLR2004
    return store_page.Query(fields.get("q", ""), fields.get("state", ""), int(start) if is_number else 0)


@click.command(cls=Command)
@click.argument("file", type=PATH)
@click.option("--rubric", "rubrics", type=PATH, multiple=True, metavar="FILE", help="The rubric, or suite, of results.")
@JUDGE
@PORT
@NO_BROWSER
def view(file: Path, rubrics: tuple[Path, ...], judge: Any, port: int, *, no_browser: bool) -> None:
    """
    Show a store, a report or results in the browser.

    FILE is a store (every request to a judge with its messages and its raw reply), a report in JSON, or the results of
    `grade-many --out`; these need --rubric, and --judge where it was a panel. All can be searched. Only this machine
    and this user can open the address, and nothing is changed.
    """
    LocalServer(page_of(file, rubrics, judge), port).run(str(file), no_browser=no_browser)
