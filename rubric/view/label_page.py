"""
The HTML of the page on which people label: a candidate beside the questions, with the verdict behind a key.

All texts of others are escaped into `<template>` elements, which the script copies: it makes no markup of texts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rubric import DecisionTree, Rubric
from rubric.embed import RowBuilder, clean, cut
from rubric.view import html
from rubric.view.cards import Shown, draw, sentence
from rubric.view.html import Html, join
from rubric.view.rubrics import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rubric import Candidate
    from rubric.labelling.drawing import Drawn
    from rubric.labelling.page import LabelPage
    from rubric.labelling.questions import Question

LONGEST = 200_000
"""Characters of a text of a candidate."""


def render(page: LabelPage, data: Mapping[str, Any], mode: str) -> str:
    """Return *page*, whose script reads *data*."""
    title = f"Label {page.title}"
    templates = [
        (f"{kind}-{n}", join(parts))
        for n, (item, candidate) in enumerate(zip(page.draw.items, page.candidates, strict=False))
        for kind, parts in (("item", _candidate(candidate)), ("judge", [*_judges(page, item, n)]))
        if parts
    ]
    body = html.render(
        "label_page.html",
        page=page,
        mode=mode,
        title=title,
        head=html.header(title, title=page.rubric.name or "rubric"),
        facts=html.facts(("candidates", f"{len(page.candidates):,}"), ("questions each", len(page.questions))),
        guidelines=cut(clean(page.rubric.guidelines), LONGEST),
        questions=[(question, _question(question)) for question in page.questions],
        templates=templates,
        data=Html(json.dumps(data, ensure_ascii=True).replace("<", "\\u003c")),
    )
    return html.page(
        title,
        body,
        more_style=html.file("label_page.css"),
        script=html.file("label_page.js"),
        sources="img-src data:" + ("; connect-src 'self'" if mode == "server" else ""),
    )


def _judges(page: LabelPage, item: Drawn, place: int) -> Iterator[Html]:
    for number, result in enumerate(page.results.get(item.name, ())):
        row = RowBuilder().of_record(result, page.rubric)
        badge = html.badge(row.verdict or "ungraded", row.verdict or "ungraded")
        head = html.header(sentence(row), badge, title=f"Judge: {clean(str(result.get('judge', '')))}")
        shown = Shown(row, f"j{place}-{number}", page.rubric)
        yield html.card(head, draw("inside", shown), kind=row.status)


def _question(question: Question) -> dict[str, Any]:
    """Return what the template asks of the criterion of *question*."""
    criterion = question.source
    answer = None if criterion is None else criterion.answer
    return {
        "gate": criterion is not None and (criterion.required or criterion.min_score is not None),
        "tree": html.tree(answer) if isinstance(answer, DecisionTree) else None,
        "inner": answer.judged if isinstance(answer, Rubric) else (),
        "examples": () if criterion is None else examples(criterion),
        "is_keyed": any(option.key != option.name for option in question.options),
    }


def _candidate(candidate: Candidate) -> list[Html]:
    """Return all that belongs to *candidate*, the text to judge among it; the page loads no image of elsewhere."""
    fields = RowBuilder().of_candidate(candidate)
    parts = (
        ("Input", fields["input"], ""),
        ("Context", clean(candidate.context), ""),
        ("Reference", clean(candidate.reference), ""),
        ("Candidate", fields["output"], "main"),
        ("Run", "\n".join(fields["run"]), ""),
        ("File changes", clean(candidate.file_changes), ""),
    )
    return [html.render("label_candidate.html", parts=parts, images=candidate.images, longest=LONGEST)]
