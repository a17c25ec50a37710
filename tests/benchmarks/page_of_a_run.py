"""Measure the page of 10,000 results in a real browser: `python -m tests.benchmarks.page_of_a_run [COUNT]`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.browsers import Tab, browsing
from tests.view.runs import large

MEASURES = {
    "search": "page.change({q: 'voucher'})",
    "search in reasons": "page.change({q: 'reason:voucher refund'})",
    "filter by answer": "page.change({...nothing(), answers: [['cites', 'falls short']]})",
    "filter by verdict": "page.change({...nothing(), show: 'failed'})",
    "sort by a criterion": "page.change({...nothing(), sort: 'c2'})",
    "sort by name": "page.change({...nothing(), sort: '-id'})",
    "open": "page.change(nothing()), page.open(500)",
}


def main(count: int) -> None:
    """Print sizes and times."""
    grades = large(count)
    with TemporaryDirectory() as folder, browsing(Path(folder)) as browser:
        start = time.perf_counter()
        path = grades.report(Path(folder, "page.html"))
        print(f"{count:,} results: written in {time.perf_counter() - start:.1f} s, {path.stat().st_size / 1e6:.1f} MB")
        tab = browser.open(path.as_uri())
        tab.until("document.documentElement.dataset.ready !== undefined")
        print(
            f"first picture after {tab.run('performance.getEntriesByName(`first-contentful-paint`)[0].startTime'):.0f} ms"
        )
        print(f"table after {tab.run('performance.getEntriesByName(`table`)[0].startTime'):.0f} ms")
        tab.run("new Promise((done) => setTimeout(done, 3000))")  # the words of the search are made meanwhile
        tab.ask("Performance.enable", timeDomain="threadTicks")
        for name, script in MEASURES.items():
            tab.run("page.change({...nothing(), show: 'passed', sort: '-score'})")
            wall, cpu = _measured(tab, script)
            print(f"{name}: {wall:.0f} ms, {cpu:.0f} ms of CPU, {tab.run('page.table.rows.length'):,} rows")


def _measured(tab: Tab, script: str) -> tuple[float, float]:
    """Return the time until *script* has run and the page is laid out, and the CPU until the picture is there."""
    before = _cpu(tab)
    wall = tab.run(f"((t) => ({script}, document.body.offsetHeight, performance.now() - t))(performance.now())")
    tab.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return wall, _cpu(tab) - before


def _cpu(tab: Tab) -> float:
    metrics = {each["name"]: each["value"] for each in tab.ask("Performance.getMetrics")["metrics"]}
    return 1000 * float(metrics["TaskDuration"])


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
