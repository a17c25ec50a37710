"""A report for people at a terminal: a line for each case, and below it why it passed or did not."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Literal

from attrs import frozen
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from rubric.embed import counted, line
from rubric.results import Entry, Row
from rubric.suites.report import Report
from rubric.view.grid import Grid, grid_of

_COLUMN = 24
"""Characters that a column of answers takes at least."""

WIDTH = 100
"""Characters a line where the output is not a terminal."""

_MARKS: dict[str, tuple[str, str]] = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "ungraded": ("?", "yellow"),
    "deferred": ("-", "cyan"),
}


def render(report: Report, *, width: int = WIDTH, colour: bool = False) -> str:
    """Return *report* as text in lines of at most *width* characters, without colour unless *colour* is set."""
    text = io.StringIO()
    console = Console(
        file=text, width=width, force_terminal=colour, color_system="standard" if colour else None, legacy_windows=False
    )
    _print(report, console)
    return text.getvalue()


def show(report: Report, file: IO[str] | None = None) -> None:
    """Print *report* to *file* (standard output); in colour, and as wide as it is, where that is a terminal."""
    console = Console(file=file)
    _print(report, console if console.is_terminal else Console(file=file, width=WIDTH))


def _print(report: Report, console: Console) -> None:
    console.print(layout(report), highlight=False, markup=False, emoji=False)


Detail = Literal["totals", "failures", "verbose"]
"""The totals alone; the criteria that are not met in cases that did not pass; or all criteria, with their texts."""


def layout(report: Report, detail: Detail = "failures") -> Group:
    """Return *report* as what a console of rich prints, in this *detail*."""
    return Group(*_blocks(report, detail))


def _blocks(report: Report, detail: Detail) -> Iterator[RenderableType]:
    if detail != "totals":
        yield Text(line(report.suite) or "rubric", style="bold")
        yield ""
        if grid := grid_of(report):
            yield _Answers(grid)
            yield ""
        yield from _rows(report, verbose=detail == "verbose")
        places: dict[str, list[str]] = {}
        for warning in report.warnings:
            places.setdefault(_PLACE.sub("", warning), []).append(warning)
        for first, *others in places.values():  # one that stands at many tests is told once
            more = f" (and at {counted(len(others), 'other place')})" if others else ""
            yield Text(f"warning: {line(first)}{more}", style="yellow")
        yield "" if len(report) else "no cases"
    totals = Text()
    for status, count in report.counts.items():
        if count:
            totals.append(f"{count} {status}", style=_MARKS[status][1]).append(", ")
    yield totals.append(f"{report.usage}, {report.duration:.1f} s")
    if report.counts["deferred"]:
        yield Text(f"deferred cases count as {report.deferred}", style="cyan")


@frozen
class _Answers:
    """The beginning of each answer with its verdict, a column a prompt or target; one below the other where narrow."""

    grid: Grid

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        columns, narrow = self.grid.columns, options.max_width < _COLUMN * (1 + len(self.grid.columns))
        table = Table(line(self.grid.corner, 80), *(line(column, 80) for column in columns))
        for name, found in self.grid.lines.items():
            cells = [[_answer(row) for _, row in found.get(column, ())] for column in columns]
            table.add_row(Text(line(name, 200)), *(Text("\n").join(each) for each in cells))
            if narrow:
                yield Text(line(name, 200), style="bold")
                pairs = zip(columns, cells, strict=True)
                yield from (Text(f"  {line(column, 80)}: ") + text for column, texts in pairs for text in texts)
        if not narrow:
            yield table


_PLACE = re.compile(r"^.*?:\d+:\d+: (?:\S+: )?")
"""The place of a warning, before its message."""


def _answer(row: Row) -> Text:
    mark, style = _MARKS[row.status]
    return Text(f"{mark} {row.figure('..')} ", style=style).append(line(row.output, 60), style="default")


def _rows(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    """Yield the lines of each case. A reason that several cases share is told once, with their number."""
    times = Counter(map(_common_reason, report))
    told: set[str] = set()
    for row in report:
        mark, style = _MARKS[row.status]
        words = [row.figure(".."), row.would]
        if row.score is not None or row.status != "ungraded":
            words += ["borderline"] if row.verdict == "borderline" else []
            words.append(row.remark)
        head = Text(f"{mark} {row.status:<8}", style=style)
        head.append(f"  {', '.join(filter(None, words)):<8}", style="bold")
        yield head.append(f"  {line(row.id, 200)}", style="default")
        if row.output and (row.status == "passed" or verbose):
            yield Padding(Text(f"answer: {line(row.output, 2_000 if verbose else 72)}"), (0, 0, 0, 4), expand=False)
        common = _common_reason(row)
        if common and times[common] > 1 and not verbose:
            if common not in told:
                told.add(common)
                yield Padding(f"{times[common]} cases: {line(common)}", (0, 0, 0, 4), expand=False)
            continue
        details = [*((1, Text(text)) for text in _why(row))]
        for entry in row.entries:
            details += _entry(row, entry, verbose=verbose)
        details += [(1, Text(f"warning: {line(warning)}", style="yellow")) for warning in row.warnings]
        if row.output and row.status != "passed" and not verbose:
            details.append((1, Text(f"answer: {line(row.output, 400)}")))
        for depth, text in details:
            yield Padding(text, (0, 0, 0, 2 + 2 * depth), expand=False)


def _common_reason(row: Row) -> str:
    """Return why nothing of *row* was judged, if that is one reason, which its criteria say as well; else nothing."""
    if row.status not in ("ungraded", "deferred"):
        return ""
    if row.status == "deferred" or not row.entries:
        return row.reason
    reasons = {entry.reason for entry in row.entries}
    return reasons.pop() if len(reasons) == 1 and all(entry.status == "unjudged" for entry in row.entries) else ""


def _why(row: Row) -> Iterator[str]:
    if row.shortfall:
        yield f"scored {row.shortfall}, needs {row.threshold:.2f}"
    if row.gates:
        yield f"gates that failed: {', '.join(line(gate, 80) for gate in row.gates)}"
    if row.reason:
        yield line(row.reason)
    if row.path:
        yield line(row.walk, 1000)
    for vote in row.votes:
        yield f"{line(vote.judge, 80)}: {vote.figure} {line(vote.verdict, 40)}"


def _entry(row: Row, entry: Entry, depth: int = 2, *, verbose: bool = False) -> Iterator[tuple[int, Text]]:
    """Yield a criterion's line, its reason and nested criteria; of a failed case, met ones only if *verbose*."""
    kept = row.status == "passed" or entry.status in ("abstained", "unjudged") or row.falls_short(entry)
    if (entry.status == "not_applicable" or not kept) and not verbose:
        return
    style = "red" if entry.gated else "yellow" if entry.status == "unjudged" else ""
    ends = "".join(f"  {words}" for words in (entry.lack, "gate failed" if entry.gated else "") if words)
    yield depth, Text(f"{entry.figure}  {entry.label(1000 if verbose else 160)}{ends}", style=style)
    if entry.reason:
        yield depth + 2, Text(line(entry.reason), style="dim")
    if proven := entry.proof(row, 1000):
        yield depth + 2, Text(proven, style="dim")
    for part in entry.parts:
        yield from _entry(row, part, depth + 1, verbose=verbose)
