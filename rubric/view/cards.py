"""
Results as cards: one picture of a result, in notebooks, in reports of suites and in those of data sets.

A card is drawn from a `Row`, so a result that was read from a report looks like one that was just graded. With the
result itself at hand, its decision trees are drawn whole.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import Factory, evolve, field, frozen

from rubric import DecisionTree, Rubric
from rubric.driving import Exchange, Failure, Reply
from rubric.embed import TOLERANCE, RowBuilder, clean, few_groups, shorten
from rubric.results import Entry, Evidence, Row, Step, Summary
from rubric.view import html
from rubric.view.html import Html, join, tag, text
from rubric.view.quotes import number_quotes, pieces

MOST_ROWS = 40
"""Results that the card of many shows."""


# -- one result ------------------------------------------------------------------------------------------


def card(result: Any) -> str:
    """Return the card of a `Grade` or an `Ungraded`, for a notebook."""
    row = RowBuilder().of(result)
    if row.score is not None and not (result.degenerate or result.rubric.negate):
        row = evolve(row, reason="")  # the sentence and the criteria say it
    elif row.reason.startswith("not graded: the score could be"):  # so does the sentence
        row = evolve(row, reason=row.reason.partition("): ")[2] or row.reason)
    names = [row.rubric, result.key or ("" if result.index is None else f"#{result.index}")]
    head = html.header(sentence(row), title=" · ".join(filter(None, names)))
    shown = Shown(row, anchor_of([row]), result.rubric)
    lead, body = tag("div", shown.bar, class_="lead"), draw("inside", shown)
    return html.fragment(html.card(head, lead, body, transcript(result.exchanges), kind=row.status))


def transcript(exchanges: Sequence[Exchange]) -> Html | None:
    """Return the requests of a result, each with its messages and its raw reply behind a line; None without any."""
    if not exchanges:
        return None
    lines = [exchange(one.judge, ", ".join(one.criteria), one.messages, reply_of(one.outcome)) for one in exchanges]
    return html.fold(f"Transcript: {len(lines)} requests", *lines)


def reply_of(outcome: Reply | Failure) -> tuple[str, str]:
    """Return the raw text of a reply, and how it ended; of a failure, its description."""
    if isinstance(outcome, Failure):
        return outcome.message, outcome.kind
    return outcome.text or outcome.refusal, "" if outcome.finish == "stop" else outcome.finish


def exchange(judge: str, about: str, messages: Sequence[Mapping[str, Any]], reply: tuple[str, str]) -> Html:
    """Return one request as a line that unfolds its messages and the raw *reply*, a text and how it ended."""
    return draw("exchange", judge, about, [(str(m["role"]), content_of(m)) for m in messages], *map(clean, reply))


def content_of(message: Mapping[str, Any]) -> str:
    """Return the text of *message*; of blocks, those of text."""
    content = message.get("content", "")
    if isinstance(content, str):
        return clean(content)
    return clean("\n".join(block.get("text") or f"[{block.get('type')}]" for block in content))


def sentence(row: Row) -> str:
    """Return the result of *row* in a sentence."""
    needs = f", {needs_of_row(row)}" if needs_of_row(row) else ""
    gates = f"; failed by {', '.join(map(repr, row.gates))}" if row.gates else ""
    if row.vacuous:
        return "Passes: nothing applied."
    if row.score is not None:
        verb = {"pass": "Passes", "borderline": "Fails, borderline,"}.get(row.verdict, "Fails")
        return f"{verb} with {row.figure('')}{needs}{gates}."
    if row.status == "deferred":
        return "Not graded yet."
    low, high = row.bounds
    sure = {True: "it would pass", False: "it would fail"}
    would = sure.get(getattr(row.result, "passed", None), "undecided")  # type: ignore[arg-type]
    return f"Not graded: the score could be {low:.2f} to {high:.2f}{needs} ({would})."


def needs_of_row(row: Row) -> str:
    """Return what *row* is measured by; a row that was read from an earlier report has a threshold alone."""
    return row.needs or ("" if row.threshold is None else f"needs {row.threshold:.2f}")


@frozen(eq=False)
class Shown:
    """A row for the templates: its words, signs and colours. Its *anchor*, an id, is unique on a page."""

    row: Row
    anchor: str
    rubric: Rubric | None = None
    marks: Mapping[Evidence, int] = field(
        init=False, default=Factory(lambda self: number_quotes(self.row.output, self.row.entries), takes_self=True)
    )

    @property
    def bar(self) -> Html | None:
        """The score and the threshold, or the band of what the score could be."""
        row = self.row
        if row.status == "deferred":
            return None
        if row.score is not None:
            is_enough = row.threshold is not None and row.score >= row.threshold - TOLERANCE
            kind = "ungraded" if is_enough and row.status == "failed" else row.status  # what failed it stands beside it
            return html.bar(row.score, mark=row.threshold, kind=kind)
        return html.band(row.bounds[0], None, row.bounds[1], mark=row.threshold)

    @property
    def needs(self) -> str:
        """What the score is measured by."""
        return needs_of_row(self.row) or "by the judge's own verdict"

    @property
    def path(self) -> Sequence[Step]:
        """The walk down a tree, where no criterion shows it."""
        return () if self.row.path in [entry.path for entry in self.row.entries] else self.row.path

    def look(self, entry: Entry) -> tuple[str, str, str, str]:
        """Return how *entry* is marked: the sign and the kind of its icon, the word for it, the colour of its bar."""
        if entry.contribution is None:
            open_ = {"unjudged": ("!", "open", "unjudged", ""), "abstained": ("?", "none", "cannot tell", "")}
            return open_.get(entry.status, ("–", "none", entry.result, ""))
        if not entry.contribution or entry.gated:
            return "✕", "unmet", "not met", "failed"
        if entry.contribution < 1 - TOLERANCE:
            return "~", "part", "met in part", "ungraded" if self.row.falls_short(entry) else "passed"
        return "✓", "met", "met", "passed"


def _entries_with_answers(entries: Sequence[Entry], rubric: object) -> Iterator[tuple[Entry, object, Html | None]]:
    """Yield each entry with the answer of its criterion, where *rubric* is known, and its walk down a tree drawn."""
    judged = rubric.judged if isinstance(rubric, Rubric) else ()
    answers = [each.answer for each in judged] if len(judged) == len(entries) else [None] * len(entries)
    for entry, answer in zip(entries, answers, strict=True):
        drawn = html.tree(answer, entry.path) if entry.path and isinstance(answer, DecisionTree) else None
        yield entry, answer, drawn


def _agreement(entry: Entry) -> str:
    """Return how many of the votes agree: `2 of 3 met`, or the spread of scores between."""
    known = [vote.contribution for vote in entry.votes if vote.contribution is not None]
    if known and all(value in (0, 1) for value in known):
        return f"{sum(value == 1 for value in known)} of {len(entry.votes)} votes: met"
    return f"{len(entry.votes)} votes, {min(known):.2f} to {max(known):.2f}" if known else ""


def _disagrees(entry: Entry) -> bool:
    """True if votes lie on both sides of the middle."""
    known = [vote.contribution for vote in entry.votes if vote.contribution is not None]
    return bool(known) and min(known) < 0.5 <= max(known)  # noqa: PLR2004


def draw(macro: str, *values: object) -> Html:
    """
    Return what a *macro* of `cards.html` makes of *values*.

    Of a `Shown`, `case` is a line with its status, score and bar, which unfolds what is `inside`: why, the criteria and
    the votes, and the candidate with the quotes marked.
    """
    return Html(getattr(html.macros("cards.html", *_WORDS), macro)(*values))


_WORDS = (_agreement, _disagrees, _entries_with_answers, pieces, shorten)


# -- many results ----------------------------------------------------------------------------------------


def summary_card(summary: Summary, *more: object) -> Html:
    """Return counts, rates and each criterion of many results as a card, followed by *more*."""
    graded = summary.passed + summary.failed
    said = f"{summary.passed:,} of {graded:,} grades pass" if graded else "Nothing was graded"
    badges: list[Html] = []
    if summary.pass_rate is not None:
        badges.append(html.badge(_between(f"{summary.pass_rate:.1%}", summary.pass_interval, "{:.1%}"), "plain"))
    if summary.ungraded:
        badges.append(html.badge(f"{summary.ungraded:,} ungraded", "ungraded"))
    counts = {"passed": summary.passed, "failed": summary.failed, "ungraded": summary.ungraded}
    return html.card(
        html.header(f"{said}.", *badges),
        html.facts(*figures_of(summary)),
        html.shares(counts) if summary.results else None,
        *remarks(summary),
        criteria_bars(summary),
        *more,
    )


def figures_of(summary: Summary) -> list[tuple[str, object]]:
    """Return the figures of many results, each with its name."""
    figures: list[tuple[str, object]] = [("results", f"{summary.results:,}")]
    if summary.mean is not None:
        figures.append(("mean score", _between(f"{summary.mean:.3f}", summary.mean_interval, "{:.3f}")))
    if summary.groups is not None:
        figures.append(("groups; intervals are by group", f"{summary.groups:,}"))
    figures.append(("calls", f"{summary.usage.calls:,}"))
    cost = summary.usage.cost
    figures.append(("cost", "unknown" if cost is None else f"${cost:,.4f}"))
    return figures


def _between(value: str, interval: tuple[float, float] | None, form: str) -> str:
    return value if interval is None else f"{value} ({form.format(interval[0])} to {form.format(interval[1])})"


def remarks(summary: Summary) -> Iterator[Html]:
    """Yield whether groups are few, why results are ungraded, and the warnings, the commonest first."""
    if few := few_groups(summary.groups or 0):
        yield html.notice(few)
    if summary.pass_bounds is not None and summary.ungraded:
        low, high = summary.pass_bounds
        lines = [f"{count:,} × {shorten(why, 300)}" for why, count in summary.reasons.items()][:5]
        head = f"{summary.ungraded:,} ungraded, so {low:.1%} to {high:.1%} of all pass:"
        yield html.notice("\n".join((head, *lines)), "ungraded")
    for warning, count in [*summary.warnings.items()][:3]:
        yield html.notice(f"{count:,} × {shorten(warning, 300)}")


def criteria_bars(summary: Summary) -> Html | None:
    """Return a bar with an interval for each criterion."""
    if not summary.criteria:
        return None
    rows = []
    for one in summary.criteria:
        counts = (("not applicable", one.not_applicable), ("cannot tell", one.abstained), ("unjudged", one.unjudged))
        said = [f"{one.scored:,} scored", *(f"{count:,} {name}" for name, count in counts if count)]
        said += [f"{one.gated:,} gates failed"] if one.gated else []
        low, high = (f"{bound:.2f}" for bound in one.bounds or (0.0, 0.0))
        said += [f"of all {low} to {high}"] if low != high else []
        name = join((text(one.text or one.id), tag("div", text(one.id, html.NAME, class_="mono"), class_="how")))
        value, (start, end) = one.mean, one.interval or (one.mean or 0.0, one.mean or 0.0)
        drawn = "" if value is None else html.band(start, value, end, kind="plain")
        between = "" if one.interval is None else f"{start:.2f} to {end:.2f}"
        rows.append((name, drawn, "–" if value is None else f"{value:.2f}", between, ", ".join(said)))
    shown = html.table(("criterion", "", "mean", "interval", ""), rows, figures=(2, 3))
    return html.section("Criteria: mean and 95 % interval", shown)


def histogram(results: Iterable[Any]) -> Html | None:
    """Return a histogram of the scores of results or rows, with the threshold if it is one; None without a score."""
    scores: dict[str, list[float]] = {"failed": [], "passed": []}
    marks = set()
    for result in results:
        is_row = isinstance(result, Row)
        score = result.score if is_row else result.outcome.score
        marks.add(result.threshold if is_row else result.rubric.threshold)
        if score is not None:
            passed = result.status == "passed" if is_row else result.outcome.worst.passed
            scores["passed" if passed else "failed"].append(score)
    if not any(scores.values()):
        return None
    return html.section("Scores", draw_scores(scores, mark=marks.pop() if len(marks) == 1 else None))


_BINS = 20


def draw_scores(scores: Mapping[str, Sequence[float]], *, mark: float | None = None) -> Html:
    """Return a histogram of *scores* in 0..1, of each kind in its colour, in twenty bins, with a line at *mark*."""
    counts = {kind: Counter(min(int(s * _BINS + 1e-9), _BINS - 1) for s in given) for kind, given in scores.items()}
    tallest = max((sum(c[b] for c in counts.values()) for b in range(_BINS)), default=0)
    bars = []
    for place in range(_BINS):
        top = 100.0
        for kind, count in counts.items():
            if height := count[place] / (tallest or 1) * 100:
                top -= height
                said = f"{place / _BINS:.2f} to {(place + 1) / _BINS:.2f}: {count[place]:,} {kind}"
                bars.append({"kind": kind, "place": place, "top": top, "height": height, "said": said})
    said = "histogram of scores: " + ", ".join(f"{len(given):,} {kind}" for kind, given in scores.items())
    return html.render("histogram.html", bars=bars, tallest=tallest, mark=mark, said=said)


def cards(results: Sequence[Any], summary: Summary) -> str:
    """Return the card of many results, for a notebook: the summary, a histogram, and the first results to unfold."""
    build, some = RowBuilder(), results[:MOST_ROWS]
    rows = [build.of(result, name_of_result(result, n)) for n, result in enumerate(some)]
    anchor = anchor_of(rows)
    lines: list[object] = [_answers(rows, anchor)] if rows else []
    lines += [draw("case", Shown(row, f"{anchor}-{n}", some[n].rubric)) for n, row in enumerate(rows)]
    more = len(results) - len(rows)
    rest = tag("p", f'{more:,} more: report("page.html")', class_="soft") if more > 0 else None
    shown = html.section("Results", *lines, rest) if lines else None
    return html.fragment(summary_card(summary, histogram(results), shown))


def _answers(rows: Sequence[Row], anchor: str) -> Html:
    """Return a table with a line for each of *rows*, and for each criterion a column with its mark and its answer."""
    columns = [*dict.fromkeys(entry.id for row in rows for entry in row.entries)]
    lines = []
    for row in rows:
        at, entries = Shown(row, anchor), {entry.id: entry for entry in row.entries}
        cells = [
            text(f"{at.look(one)[0]} {shorten(one.level or one.value or one.result, 20)}" if one is not None else "")
            for one in map(entries.get, columns)
        ]
        verdict = html.badge(row.verdict.strip("–") or row.status, row.status)
        lines.append((text(row.id, html.NAME), verdict, row.figure("–") or "–", *cells))
    return html.table(("result", "verdict", "score", *(text(name, html.NAME) for name in columns)), lines, figures=(2,))


def name_of_result(result: Any, place: int) -> str:
    """Return the caller's key of *result*, or its place."""
    return result.key or f"#{place if result.index is None else result.index}"


def anchor_of(rows: Sequence[Row]) -> str:
    """Return the start of the ids of *rows*: the same for the same rows, and another for others in one notebook."""
    said = repr([(row.id, row.output, row.score, row.judge) for row in rows])
    return f"r{zlib.crc32(said.encode(errors='replace')):08x}"
