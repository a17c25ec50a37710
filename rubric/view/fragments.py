"""Fragments for notebooks: the one module of `rubric.view` that the kernel reaches, when something is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

from rubric import DecisionTree, Grade, Grades, Rubric, Ungraded
from rubric.embed import Presented, RowBuilder
from rubric.engine import Plan, Progress
from rubric.results import Summary
from rubric.view import html, plots
from rubric.view.cards import card, cards, sentence, summary_card
from rubric.view.comparison_page import comparison_page
from rubric.view.page import results_page, rows_of_results
from rubric.view.rubrics import rubric_card, tree_card

_MOST_ASKS = 40


@singledispatch
def fragment_of(value: Any) -> str:
    """Return *value* as HTML for the output of a notebook's cell."""
    raise TypeError(f"rubric.view does not draw {type(value).__name__}")


def page_of(results: Grades, title: str, against: Grades | None, people: Mapping[str, Mapping[str, str]]) -> str:
    """Return *results* as a page, or what changed *against* earlier ones, with what *people* say of each row."""
    if against is not None:
        return comparison_page(rows_of_results(results), rows_of_results(against), title, people)
    return results_page(results, results.summary(), title, people)


def chart_of(results: Grades, others: Iterable[Any]) -> Any:
    """Return the scores of *results* and their criteria as a chart, with those of *others* below."""
    marks = {result.rubric.threshold for result in results}
    at = [(mark, f"threshold {mark:g}") for mark in marks if mark is not None and len(marks) == 1]
    known = [{"score": each.score, "verdict": str(each.verdict)} for each in results if each.score is not None]
    colors = {name: color for name, color in plots.VERDICTS.items() if any(each["verdict"] == name for each in known)}
    rows = [plots.row_of(c.text or c.id, c.mean, c.interval) for c in results.summary().criteria if c.mean is not None]
    scores = plots.part("scores", at, rows=known, names=[*colors], colors=[*colors.values()])
    means = plots.forest(rows, "mean of each criterion, with its 95 % interval", whole=True)
    return plots.chart(scores, means, below=[other.plot() for other in others])


def chart_of_one(result: Grade | Ungraded) -> Any:
    """Return the score of each criterion of *result* as a chart, with the range of its votes."""
    row = RowBuilder().of(result)
    rows = []
    for entry in row.entries:
        votes = [vote.contribution for vote in entry.votes if vote.contribution is not None]
        between = (min(votes), max(votes)) if votes else None
        rows.append(plots.row_of(entry.text or entry.id, entry.contribution, between))
    marks = [] if row.threshold is None else [(row.threshold, f"threshold {row.threshold:g}")]
    return plots.chart(plots.forest(rows, "score, and what votes lie between", marks, whole=True), title=sentence(row))


def _card_of(result: Presented) -> str:
    body: list[object] = []
    for (title, head, texts), (_, _, rows) in zip(result.plain_tables(), result.tables(), strict=True):
        figures = [n for n in range(len(head)) if any(isinstance(row[n], int | float) for row in rows)]
        drawn = html.table(head, texts, figures=figures)
        body.append(html.section(title, drawn) if title else drawn)
    body += [html.notice(remark) for remark in result.remarks()]
    return html.fragment(html.card(html.header(result.sentence, title=type(result).__name__), *body))


def _progress(state: Progress) -> str:
    total = state.total or (state.done if state.ended else 0)  # without one, a bar is drawn as if the run went on
    share = {"value": state.done, "max": total} if total else {}
    return str(html.tag("div", html.tag("progress", **share), f" {state}"))


fragment_of.register(Rubric, lambda rubric: html.fragment(rubric_card(rubric)))
fragment_of.register(DecisionTree, lambda tree: html.fragment(tree_card(tree)))
fragment_of.register(Grade | Ungraded, card)
fragment_of.register(Grades, lambda results: cards(results, results.summary()))
fragment_of.register(Summary, lambda summary: html.fragment(summary_card(summary)))
fragment_of.register(
    Plan, lambda plan: html.fragment(html.render("plan.html", plan=plan, said=f"{repr(plan)[7:-1]}.", most=_MOST_ASKS))
)
fragment_of.register(Progress, _progress)
fragment_of.register(Presented, _card_of)
