"""
Results as cards: one picture of a result, in notebooks, in reports of suites and in those of data sets.

A card is drawn from a `Row`, so a result that was read from a report looks like one that was just graded. With the
result itself at hand, its decision trees are drawn whole.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.internals.secrets import clean
from rubric.internals.text import cut, shorten
from rubric.rendering import charts, html
from rubric.rendering.html import Html, join, tag, text
from rubric.results.quotes import LONGEST_OUTPUT, numbered, pieces
from rubric.results.row_builder import RowBuilder
from rubric.results.rows import Entry, Row, figure, score_of, score_of_vote, short
from rubric.scoring.aggregation import TOLERANCE
from rubric.values.requests import Failure
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rubric.results.summary import Summary
    from rubric.values.findings import Evidence, Step
    from rubric.values.requests import Exchange, Reply


LONGEST_INPUT = 4_000

EXCERPT, LONGEST_LINE = 600, 300
"""Characters of a candidate and of a criterion with its reason, where rows are shown in brief."""

MOST_ROWS = 20
"""Results that the card of many shows."""

VERDICTS = ("pass", "borderline", "fail", "ungraded")


# -- one result ------------------------------------------------------------------------------------------


def card(result: Any) -> str:
    """Return the card of a `Grade` or an `Ungraded`, for a notebook."""
    row = RowBuilder().of(result)
    if row.score is not None and not (result.degenerate or result.rubric.negate):
        row = evolve(row, reason="")  # the sentence and the criteria say it
    elif row.reason.startswith("not graded: the score could be"):  # so does the sentence
        row = evolve(row, reason=row.reason.partition("): ")[2] or row.reason)
    names = [row.rubric, result.key or ("" if result.index is None else f"#{result.index}")]
    badges = [html.badge(row.verdict or "ungraded", row.verdict or "ungraded")]
    head = html.header(sentence(row), *badges, title=" · ".join(filter(None, names)))
    body = inside(row, anchor_of([row]), result.rubric)
    return html.fragment(html.card(head, lead(row), body, transcript(result.exchanges), kind=row.status))


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
    said, end = (clean(each) for each in reply)
    title = join((html.badge(end, "ungraded") if end else None, text(f"{judge} · {about}", html.NAME)), " ")
    shown = [html.section(str(m["role"]), html.candidate(cut(_content(m), LONGEST_OUTPUT))) for m in messages]
    return html.fold(title, *shown, html.section("reply", html.candidate(cut(said, LONGEST_OUTPUT))))


def _content(message: Mapping[str, Any]) -> str:
    """Return the text of *message*; of blocks, those of text."""
    content = message.get("content", "")
    if isinstance(content, str):
        return clean(content)
    return clean("\n".join(block.get("text") or f"[{block.get('type')}]" for block in content))


def sentence(row: Row) -> str:
    """Return the result of *row* in a sentence."""
    needs = "" if row.threshold is None else f", needs {row.threshold:.2f}"
    gates = f"; failed by {', '.join(map(repr, row.gates))}" if row.gates else ""
    if row.vacuous:
        return "Passes: nothing applied."
    if row.score is not None:
        verb = {"pass": "Passes", "borderline": "Fails, borderline,"}.get(row.verdict, "Fails")
        return f"{verb} with {score_of(row, '')}{needs}{gates}."
    if row.status == "deferred":
        return "Not graded yet."
    low, high = row.bounds
    sure = {True: "it would pass", False: "it would fail"}
    would = sure.get(getattr(row.result, "passed", None), "undecided")  # type: ignore[arg-type]
    return f"Not graded: the score could be {low:.2f} to {high:.2f}{needs} ({would})."


def lead(row: Row) -> Html | None:
    """Return the bar of the whole result: the score and the threshold, or the band of what the score could be."""
    if row.status == "deferred":
        return None
    return tag("div", _bar(row), class_="lead")


def _bar(row: Row) -> Html:
    if row.score is not None:
        return html.bar(row.score, mark=row.threshold, kind=row.status)
    return html.band(row.bounds[0], None, row.bounds[1], mark=row.threshold)


def inside(row: Row, anchor: str, rubric: Rubric | None = None) -> Html:
    """
    Return all there is to a result: why, the criteria and the votes, and the candidate with the quotes marked.

    Args:
        anchor: Begins the ids of quotes: unique on a page.
        rubric: As for the result; None where it is not known.
    """
    marks = numbered(row.output, row.entries)
    judged = []
    if row.votes:
        judged.append(html.section(f"Votes: {_passing(row)}", _ballots(row)))
    if row.path and row.path not in [entry.path for entry in row.entries]:
        judged.append(html.section("Path", _steps(row.path)))
    if row.entries:
        judged.append(html.section("Criteria", _criteria(row.entries, row, marks, anchor, rubric)))
    beside = []
    if row.input:
        beside.append(html.section("Input", html.candidate(cut(row.input, LONGEST_INPUT))))
    if row.output:
        beside.append(html.section("Candidate", html.candidate(_marked(row, marks, anchor))))
    if row.run:
        beside.append(html.section("Tool calls", html.candidate("\n".join(cut(c, html.LONGEST) for c in row.run))))
    columns = [tag("section", *some) for some in (judged, beside) if some]
    return tag(
        "div",
        html.notice(row.reason, row.status) if row.reason else None,
        *(html.notice(warning) for warning in row.warnings),
        tag("div", *columns, class_="two" if len(columns) > 1 else "two one"),
        _meta(row),
        class_="inside",
    )


def _meta(row: Row) -> Html:
    place = None if row.place is None else text(str(row.place), class_="mono")
    said = [
        text(f"rubric: {row.rubric}", html.NAME) if row.rubric else None,
        text(f"judge: {row.judge}", html.NAME) if row.judge else None,
        tag("span", row.usage) if row.usage.calls else None,
    ]
    return tag("p", *said, place, class_="meta num")


def _marked(row: Row, marks: Mapping[Evidence, int], anchor: str) -> Html:
    parts: list[object] = []
    for piece in pieces(row.output, marks):
        if piece.left_out:
            parts.append(tag("span", f"{piece.left_out:,} characters are left out here", class_="gap"))
        elif piece.quoted:
            numbers = [tag("a", n, id=f"{anchor}-q{n}") for n in piece.numbers]
            parts.append(tag("mark", piece.text, *numbers))
        else:
            parts.append(piece.text)
    return join(parts)


def _passing(row: Row) -> str:
    return f"{sum(vote.passed is True for vote in row.votes)} of {len(row.votes)} pass"


def _ballots(row: Row) -> Html:
    lines = []
    for vote in row.votes:
        kind = "passed" if vote.passed else "failed"
        bar = html.bar(vote.score, mark=row.threshold, kind=kind) if vote.score is not None else None
        verdict = html.badge(vote.verdict, _word(vote.verdict)) if vote.verdict else ""
        lines.append((text(vote.judge, html.NAME), bar, tag("span", score_of_vote(vote), class_="num"), verdict))
    return _votes(lines)


def _votes(lines: Iterable[Sequence[object]]) -> Html:
    body = (tag("tr", *(tag("td", cell) for cell in line)) for line in lines)
    return tag("table", tag("tbody", *body), class_="votes")


def _word(verdict: str) -> str:
    return verdict if verdict in VERDICTS else "plain"


def _criteria(
    entries: Sequence[Entry], row: Row, marks: Mapping[Evidence, int], anchor: str, rubric: Rubric | None
) -> Html:
    criteria = rubric.judged if rubric is not None and len(rubric.judged) == len(entries) else [None] * len(entries)
    items = []
    for entry, criterion in zip(entries, criteria, strict=True):
        answer = None if criterion is None else criterion.answer
        sign, kind, word, fill = _look(entry, row)
        below: list[object] = []
        if entry.path:
            below.append(charts.tree(answer, entry.path) if isinstance(answer, DecisionTree) else None)
            below.append(_steps(entry.path))
        if entry.parts:
            below.append(_criteria(entry.parts, row, marks, anchor, answer if isinstance(answer, Rubric) else None))
        if entry.votes:
            below.append(_opinions(entry, marks, anchor))
        bar = html.bar(entry.contribution, kind=fill) if entry.contribution is not None else tag("span")
        value = text(entry.value, html.NAME) if entry.value else None
        said = figure(entry) if entry.contribution is not None else word
        items.append(
            tag(
                "li",
                tag("span", sign, class_=f"icon {kind}", title=word),
                tag("div", _what(entry), *(() if entry.votes else _quoted(entry, marks, anchor))),
                bar,
                tag(
                    "div",
                    said,
                    None if value is None else tag("small", value),
                    class_="value" if entry.contribution is not None else "value word",
                ),
                tag("div", *below, class_="below") if below else None,
            )
        )
    return tag("ul", *items, class_="criteria")


def _what(entry: Entry) -> Html:
    gate = join((" ", html.badge("gate failed", "gate"))) if entry.gated else None
    how = [text(entry.id, html.NAME, class_="mono")]
    how += [text(entry.answer)] if entry.answer else []
    how += [tag("span", f"weight {entry.weight:g}")] if entry.weight != 1 else []
    how += [join(("level ", text(f"“{entry.level}”")))] if entry.level else []
    agreed = _agreement(entry)
    how += [agreed] if agreed is not None else []
    reason = tag("p", cut(entry.reason, html.LONGEST), class_="why t") if entry.reason and not entry.votes else None
    return join(
        (
            tag("div", text(entry.text, class_="what"), gate),
            tag("div", join(how, " · "), class_="how"),
            reason,
        )
    )


def _look(entry: Entry, row: Row) -> tuple[str, str, str, str]:
    """Return how *entry* is marked: the sign and the kind of its icon, the word for it, the colour of its bar."""
    if entry.contribution is None:
        open_ = {"unjudged": ("!", "open", "unjudged", ""), "abstained": ("?", "none", "cannot tell", "")}
        return open_.get(entry.status, ("–", "none", entry.status, ""))
    if not entry.contribution or entry.gated:
        return "✕", "unmet", "not met", "failed"
    if entry.contribution < 1 - TOLERANCE:
        return "~", "part", "met in part", "ungraded" if short(row, entry) else "passed"
    return "✓", "met", "met", "passed"


def _quoted(entry: Entry, marks: Mapping[Evidence, int], anchor: str) -> Iterator[Html]:
    for quote in entry.evidence:
        where: Html | None = None
        if number := marks.get(quote):
            where = tag("a", f"[{number}]", href=f"#{anchor}-q{number}")
        elif not quote.verified:
            where = tag("span", "not found in the candidate")
        elif quote.where != "output":
            where = tag("span", "in the ", text(quote.where, html.NAME), class_="soft")
        kind = "quote" if quote.verified else "quote missing"
        yield tag("blockquote", text(f"“{cut(quote.text, html.LONGEST)}”", html.LONGEST + 99), " ", where, class_=kind)


def _agreement(entry: Entry) -> Html | None:
    """Return how many of the votes agree: `2 of 3 met`, or the spread of scores between."""
    known = [vote.contribution for vote in entry.votes if vote.contribution is not None]
    if not known:
        return None
    if all(value in (0, 1) for value in known):
        met = sum(value == 1 for value in known)
        said = f"{met} of {len(entry.votes)} votes: met"
    else:
        said = f"{len(entry.votes)} votes, {min(known):.2f} to {max(known):.2f}"
    return join((said, html.badge("the judges disagree", "borderline")), " ") if _disagrees(entry) else Html(said)


def _disagrees(entry: Entry) -> bool:
    """True if votes lie on both sides of the middle."""
    known = [vote.contribution for vote in entry.votes if vote.contribution is not None]
    return bool(known) and min(known) < 0.5 <= max(known)  # noqa: PLR2004


def _opinions(entry: Entry, marks: Mapping[Evidence, int], anchor: str) -> Html:
    lines = []
    for vote in entry.votes:
        bar = html.bar(vote.contribution) if vote.contribution is not None else None
        value = tag("span", figure(vote), f" ({vote.value})" if vote.value else None, class_="num")
        reason = cut(vote.reason, html.LONGEST)
        words = tag("span", reason, class_="soft t")
        lines.append((text(vote.judge, html.NAME), bar, value, join((words, *_quoted(vote, marks, anchor)))))
    return html.fold(f"{len(lines)} votes and their reasons", _votes(lines), is_open=_disagrees(entry))


def _steps(path: Iterable[Step]) -> Html:
    items = []
    for step in path:
        answer = "yes" if step.yes else "no"
        reason = tag("p", cut(step.reason, html.LONGEST), class_="why t") if step.reason else None
        score = tag("span", f"{step.score:.2f}", class_="soft num")
        items.append(tag("li", text(step.question), " ", tag("b", answer), " ", score, reason, class_=answer))
    return tag("ol", *items, class_="path")


# -- many results ----------------------------------------------------------------------------------------


def case(
    row: Row,
    anchor: str,
    *,
    is_open: bool = False,
    kinds: str = "",
    rubric: Rubric | None = None,
    is_brief: bool = False,
) -> Html:
    """
    Return *row* as a line with its status, score and bar, which unfolds its card.

    Args:
        anchor: Its id on the page.
        is_open: Whether it is unfolded from the start.
        kinds: Further classes, which buttons of a page select.
        rubric: Draws its trees.
        is_brief: Whether it unfolds a few lines and no card, which would be too much for ten thousand rows.
    """
    labels = [f"{name}: {value}" for name, value in row.cell.items()] + list(row.tags)
    tags = tag("span", *map(html.badge, labels), class_="tags") if labels else None
    excerpt = tag("span", shorten(row.output, 160), class_="excerpt") if row.output and row.place is None else None
    summary = tag(
        "summary",
        tag("span", tag("span", row.status, class_=f"badge {row.status}")),
        tag("span", text(row.id, html.NAME, class_="id"), excerpt, tags),
        _bar(row) if row.status != "deferred" else tag("span"),
        tag("span", score_of(row, "–") or "–", class_="score"),
    )
    words = [html.badge(row.verdict, _word(row.verdict))] if row.verdict else []
    if row.score is not None:
        needs = "the judge decides" if row.threshold is None else f"needs {row.threshold:.3g}"
        words.append(tag("span", f"{row.score:.3f}, {needs}", class_="soft num"))
    words += [html.badge(f"gate: {gate}", "gate") for gate in row.gates]
    words += [html.badge("vacuous: nothing applied")] if row.vacuous else []
    said = tag("p", join(words, " "), class_="verdict") if words else None
    named = f"case {row.status} {kinds}".rstrip()
    body = _in_brief(row) if is_brief else join((said, inside(row, anchor, rubric)))
    return tag("details", summary, body, class_=named, id=anchor, open=is_open)


def _in_brief(row: Row) -> Html:
    """Return why, a line a criterion, and an excerpt of the candidate."""
    lines = []
    for entry in row.entries:
        sign, _, word, _ = _look(entry, row)
        said = word if entry.contribution is None else figure(entry)
        lines.append(tag("li", shorten(f"{sign} {said} · {entry.text}: {entry.reason}", LONGEST_LINE)))
    reason = html.notice(row.reason, row.status) if row.reason else None
    excerpt = html.candidate(cut(row.output, EXCERPT)) if row.output else None
    return tag("div", reason, tag("ul", *lines), excerpt, class_="inside brief t")


def summary_card(summary: Summary, *more: object, title: str = "") -> Html:
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
        html.header(f"{said}.", *badges, title=title),
        html.facts(*figures_of(summary)),
        charts.shares(counts) if summary.results else None,
        *remarks(summary),
        measured(summary),
        *more,
    )


def figures_of(summary: Summary) -> list[tuple[str, object]]:
    """Return the figures of many results, each with its name."""
    figures: list[tuple[str, object]] = [("results", f"{summary.results:,}")]
    if summary.mean is not None:
        figures.append(("mean score", _between(f"{summary.mean:.3f}", summary.mean_interval, "{:.3f}")))
    figures.append(("calls", f"{summary.usage.calls:,}"))
    cost = summary.usage.cost
    figures.append(("cost", "unknown" if cost is None else f"${cost:,.4f}"))
    return figures


def _between(value: str, interval: tuple[float, float] | None, form: str) -> str:
    return value if interval is None else f"{value} ({form.format(interval[0])} to {form.format(interval[1])})"


def remarks(summary: Summary) -> Iterator[Html]:
    """Yield why results are ungraded, and the warnings, the commonest first."""
    if summary.pass_bounds is not None and summary.ungraded:
        low, high = summary.pass_bounds
        lines = [f"{count:,} × {shorten(why, 300)}" for why, count in summary.reasons.items()][:5]
        head = f"{summary.ungraded:,} ungraded, so {low:.1%} to {high:.1%} of all pass:"
        yield html.notice("\n".join((head, *lines)), "ungraded")
    for warning, count in [*summary.warnings.items()][:3]:
        yield html.notice(f"{count:,} × {shorten(warning, 300)}")


def measured(summary: Summary) -> Html | None:
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
        rows.append((name, one.mean, one.interval, ", ".join(said)))
    return html.section("Criteria: mean and 95 % interval", charts.intervals(rows))


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
    return html.section("Scores", charts.histogram(scores, mark=marks.pop() if len(marks) == 1 else None))


def cards(results: Sequence[Any], summary: Summary) -> str:
    """Return the card of many results, for a notebook: the summary, a histogram, and the first results to unfold."""
    build, some = RowBuilder(), results[:MOST_ROWS]
    rows = [build.of(result, name_of_result(result, n)) for n, result in enumerate(some)]
    anchor = anchor_of(rows)
    lines = [case(row, f"{anchor}-{n}", rubric=some[n].rubric) for n, row in enumerate(rows)]
    more = len(results) - len(rows)
    rest = tag("p", f'and {more:,} more: .report("page.html") shows all', class_="soft") if more > 0 else None
    shown = html.section("Results", *lines, rest) if lines else None
    return html.fragment(summary_card(summary, histogram(results), shown))


def name_of_result(result: Any, place: int) -> str:
    """Return the caller's key of *result*, or its place."""
    return result.key or f"#{place if result.index is None else result.index}"


def anchor_of(rows: Sequence[Row]) -> str:
    """Return the start of the ids of *rows*: the same for the same rows, and another for others in one notebook."""
    said = repr([(row.id, row.output, row.score, row.judge) for row in rows])
    return f"r{zlib.crc32(said.encode(errors='replace')):08x}"
