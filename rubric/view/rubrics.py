"""Cards of rubrics and decision trees, for notebooks: answers, weights, gates, guidelines, and trees drawn."""

from __future__ import annotations

from rubric import Criterion, DecisionTree, Rubric
from rubric.embed import cut, describe
from rubric.values import UnitScale
from rubric.view import html
from rubric.view.html import Html


def rubric_card(rubric: Rubric, summary: str = "") -> Html:
    """Return the card of *rubric*, led by its *summary*."""
    inner = [(one.id, one.answer) for one in rubric.judged if isinstance(one.answer, Rubric)]
    return html.render(
        "rubric.html",
        rubric=rubric,
        said=summary or describe(rubric),
        badges=[html.badge(words) for words in rules(rubric)],
        nested=[(id_, rubric_card(answer, f"{len(answer.judged)} criteria")) for id_, answer in inner],
        **{each.__name__: each for each in (describe, examples, repr)},
    )


def rules(rubric: Rubric) -> list[str]:
    """Return the rules of *rubric* beside its threshold that are not those by default, in a few words each."""
    flags = {"strict": rubric.strict, "evidence asked for": rubric.evidence, "must not hold": rubric.negate}
    said = [words for words, holds in flags.items() if holds]
    said += [f"aggregation: {rubric.aggregation}"] if rubric.aggregation != "weighted_average" else []
    said += [f"borderline from {rubric.borderline:g}"] if rubric.borderline is not None else []
    said += [f"shown as {rubric.scale!r}"] if rubric.scale != UnitScale() else []
    return said


def examples(criterion: Criterion) -> Html | None:
    """Return the examples of *criterion* behind a line; None without any."""
    lines = [(f"{a.score:g}", cut(a.response, html.LONGEST), a.reason) for a in criterion.anchors]
    return html.fold(f"{len(lines)} examples", html.table(("score", "response", "reason"), lines)) if lines else None


def tree_card(tree: DecisionTree) -> Html:
    """Return the card of a decision tree."""
    leaves = sum(1 for _ in tree.leaves())
    said = f"{tree.shortest} to {tree.depth} questions" if tree.shortest != tree.depth else f"{tree.depth} questions"
    return html.card(html.header(f"A decision tree: {said}, {leaves} leaves."), html.tree(tree))
