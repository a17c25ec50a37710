"""Cards of rubrics and decision trees, for notebooks: answers, weights, gates, guidelines, and trees drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric import Rubric
from rubric.embed import cut, describe
from rubric.values import UnitScale
from rubric.view import charts, html
from rubric.view.html import Html, join, tag, text

if TYPE_CHECKING:
    from rubric import Criterion, DecisionTree

_LONGEST = 20_000


def rubric_card(rubric: Rubric, summary: str = "") -> Html:
    """Return the card of *rubric*, led by its *summary*."""
    summary = summary or describe(rubric)
    counts = "points" if rubric.aggregation == "points" else "weight"
    rows = [_row(criterion) for criterion in rubric.judged]
    badges = [html.badge(words) for words in rules(rubric)]
    head = html.header(f"{summary[:1].upper()}{summary[1:]}.", *badges, title=rubric.name or "rubric")
    table = html.table(("criterion", "answer", counts), rows, figures=(2,)) if rows else None
    below = [html.fold("Guidelines", html.candidate(cut(rubric.guidelines, _LONGEST)))] if rubric.guidelines else []
    for criterion in rubric.judged:
        inner: Any = criterion.answer
        if isinstance(inner, Rubric):
            said = f"{len(inner.judged)} criteria"
            below.append(html.fold(join(("In ", text(criterion.id))), rubric_card(inner, said)))
    return html.card(head, table, *below)


def rules(rubric: Rubric) -> list[str]:
    """Return the rules of *rubric* beside its threshold that are not those by default, in a few words each."""
    flags = {"strict": rubric.strict, "evidence asked for": rubric.evidence, "must not hold": rubric.negate}
    said = [words for words, holds in flags.items() if holds]
    said += [f"aggregation: {rubric.aggregation}"] if rubric.aggregation != "weighted_average" else []
    said += [f"borderline from {rubric.borderline:g}"] if rubric.borderline is not None else []
    said += [f"shown as {rubric.scale!r}"] if rubric.scale != UnitScale() else []
    return said


def _row(criterion: Criterion) -> tuple[Html, Html, str]:
    sign = "-" if criterion.polarity == "penalty" else ""
    gate = criterion.required or criterion.min_score is not None or criterion.polarity == "guard"
    badge = html.badge("gate", "gate") if gate else None
    named: list[object] = [tag("div", text(criterion.text, class_="what"), " ", badge)]
    named.append(tag("div", text(criterion.id, html.NAME, class_="mono"), class_="how"))
    if criterion.when is not None:
        named.append(tag("div", "only when ", text(repr(criterion.when), html.NAME), class_="how"))
    named.append(examples(criterion))
    answer = [text(describe(criterion))]
    if hasattr(criterion.answer, "question"):
        answer = [charts.tree(criterion.answer)]
    return join(named), join(answer), f"{sign}{criterion.weight:g}"


def examples(criterion: Criterion) -> Html | None:
    """Return the examples of *criterion* behind a line; None without any."""
    lines = [(f"{a.score:g}", cut(a.response, html.LONGEST), a.reason) for a in criterion.anchors]
    return html.fold(f"{len(lines)} examples", html.table(("score", "response", "reason"), lines)) if lines else None


def tree_card(tree: DecisionTree) -> Html:
    """Return the card of a decision tree."""
    leaves = sum(1 for _ in tree.leaves())
    said = f"{tree.shortest} to {tree.depth} questions" if tree.shortest != tree.depth else f"{tree.depth} questions"
    return html.card(html.header(f"A decision tree: {said}, {leaves} leaves."), charts.tree(tree))
