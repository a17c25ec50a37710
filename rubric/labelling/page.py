"""
The page on which people label: a candidate beside the questions of the rubric, with the judge's verdict behind a key.

All texts of others are escaped into `<template>` elements, which the script copies: it makes no markup of texts.
Served, it sends each answer to where it came from; as a file of its own, it keeps them in the browser and exports them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from attrs import field, frozen

from rubric.grading.code_checks import applies
from rubric.internals.secrets import clean
from rubric.internals.text import cut
from rubric.labelling.drawing import Draw, Drawn
from rubric.labelling.questions import Option, Question, questions_of
from rubric.labelling.sheet import Answer
from rubric.rendering import charts, html
from rubric.rendering.html import Html, join, tag, text
from rubric.results.cards import inside, sentence
from rubric.results.row_builder import RowBuilder
from rubric.results.rows import Entry, Row
from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric, describe
from rubric.values.trees import DecisionTree

LONGEST = 200_000
"""Characters of a text of a candidate."""

Results = Mapping[str, Sequence[Mapping[str, Any]]]
"""What each file of results says of a candidate, by its name."""


@frozen(eq=False)
class LabelPage:
    """
    A page of some candidates to label.

    Args:
        rubric: Its criteria are asked.
        draw: The order of all candidates.
        candidates: The first of them in that order, which are on the page.
        results: What judges said.
        title: The name of the data.
    """

    rubric: Rubric
    draw: Draw
    candidates: Sequence[Candidate]
    results: Results = field(factory=dict)
    title: str = "Labels"
    questions: tuple[Question, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "questions", questions_of(self.rubric))

    @property
    def allowed(self) -> dict[str, frozenset[str] | None]:
        """The values that each question takes, by criterion."""
        return {question.criterion: question.values for question in self.questions}

    def html(self, answers: Iterable[Answer] = (), mode: Literal["server", "file"] = "server") -> str:
        """Return the page, on which *answers* have been given already."""
        shown = self.draw.items[: len(self.candidates)]
        pairs = [*zip(shown, self.candidates, strict=True)]
        data = {
            "mode": mode,
            "id": f"{self.rubric.digest} {self.title}",
            "by": self.draw.by,
            "questions": [self._of_question(question) for question in self.questions],
            "items": [self._of_item(item, candidate) for item, candidate in pairs],
            "after": self.draw.items[len(shown)].priority if len(shown) < len(self.draw.items) else None,
            "answers": [
                [each.name, each.rater, each.criterion, each.value, each.reason, each.judge_seen] for each in answers
            ],
        }
        said = Html(json.dumps(data, ensure_ascii=True).replace("<", "\\u003c"))
        templates = [
            tag("template", *parts, id=f"{kind}-{n}")
            for n, (item, candidate) in enumerate(pairs)
            for kind, parts in (("item", _candidate(candidate)), ("judge", [*self._judges(item, n)]))
            if parts
        ]
        return html.page(
            f"Label {self.title}",
            self._start(),
            self._desk(mode),
            *templates,
            tag("script", said, type="application/json", id="data"),
            more_style=_file("page.css"),
            script=_file("page.js"),
            sources="img-src data:" + ("; connect-src 'self'" if mode == "server" else ""),
        )

    # -- data for the script -------------------------------------------------------------------------------

    def _of_question(self, question: Question) -> dict[str, Any]:
        options = [[option.value, option.key] for option in question.options]
        return {"criterion": question.criterion, "options": options, "bounds": question.bounds}

    def _of_item(self, item: Drawn, candidate: Candidate) -> dict[str, Any]:
        skipped = [
            n
            for n, question in enumerate(self.questions)
            if question.source is not None and not _applies(question.source, candidate)
        ]
        return {"name": item.name, "size": item.size, "priority": item.priority, "skipped": skipped}

    # -- parts of the page ---------------------------------------------------------------------------------

    def _start(self) -> Html:
        name = tag("input", type="text", id="rater", autocomplete="off", spellcheck="false", maxlength="200")
        form = tag(
            "form",
            tag("label", "Your name ", name, for_="rater"),
            tag("button", "Begin", class_="button main"),
            tag("span", id="raters"),
            class_="start",
            id="name",
        )
        facts = html.facts(("candidates", f"{len(self.candidates):,}"), ("questions each", len(self.questions)))
        below = tag("p", "The judge’s verdicts are hidden. Your answers are kept as you give them.", class_="soft")
        head = html.header(f"Label {self.title}", title=self.rubric.name or "rubric")
        return tag("div", html.card(head, facts, below, form, _keys(), self._rules()), id="start")

    def _rules(self) -> Html | None:
        said = clean(self.rubric.guidelines) if self.rubric.guidelines else ""
        return html.fold("Guidelines", html.candidate(cut(said, LONGEST)), is_open=True) if said else None

    def _desk(self, mode: str) -> Html:
        buttons = [_button("back", "←", "Back"), _button("next", "→", "Next"), _button("open", "u", "First open")]
        more = [_button("judge", "j", "Judge")] if self.results else []
        if mode == "file":
            more.append(tag("button", "Export labels.csv", type="button", id="export", class_="button main"))
        bar = tag(
            "nav",
            tag("strong", id="where"),
            tag("progress", id="progress", max="1", value="0", aria_label="Labelled"),
            tag("span", id="count", class_="soft num"),
            tag("span", *buttons, *more, class_="buttons"),
            tag("span", id="state", class_="state", role="status", aria_live="polite"),
            class_="bar-top",
        )
        form = tag("section", html.section("Questions"), *(_fieldset(q, n) for n, q in enumerate(self.questions)))
        judge = tag("div", id="verdict", hidden=True)
        left = tag("div", tag("div", id="stage"), judge, class_="left")
        right = tag("div", form, self._rules(), _keys(), class_="ask")
        return tag("div", bar, tag("div", left, right, class_="desk"), id="desk", hidden=True)

    def _judges(self, item: Drawn, place: int) -> Iterator[Html]:
        for number, result in enumerate(self.results.get(item.name, ())):
            row = _row(result, self.rubric)
            badge = html.badge(row.verdict or "ungraded", row.verdict or "ungraded")
            head = html.header(sentence(row), badge, title=f"Judge: {clean(str(result.get('judge', '')))}")
            yield html.card(head, inside(row, f"j{place}-{number}", self.rubric), kind=row.status)


def _keys() -> Html:
    """Return a line on the keys."""
    return tag("p", *(tag("span", tag("kbd", key), f" {what}") for key, what in _KEYS), class_="keys soft")


_KEYS = (
    ("y/n/p/f/0–9", "answer"),
    ("c", "cannot tell"),
    ("⌫", "take back"),
    ("↑↓", "question"),
    ("r", "reason"),
    ("Enter", "next candidate"),
    ("←→", "look back and forth"),
    ("u", "first open"),
)


def _button(id: str, key: str, words: str) -> Html:
    return tag("button", tag("kbd", key), f" {words}", type="button", id=id, class_="button")


@cache
def _file(name: str) -> str:
    return files("rubric.labelling").joinpath(name).read_text("utf-8")


def _applies(criterion: Criterion, candidate: Candidate) -> bool:
    try:
        return applies(criterion.when, candidate)
    except Exception:  # noqa: BLE001 - a user's function; a person can say that it does not apply
        return True


def _fieldset(question: Question, number: int) -> Html:
    criterion = question.source
    gate = criterion is not None and (criterion.required or criterion.min_score is not None)
    below: list[object] = [tag("p", question.hint, class_="how")] if question.hint else []
    if question.texts:
        below.append(
            tag("dl", *(join((tag("dt", key), tag("dd", text(said)))) for key, said in question.texts), class_="levels")
        )
    if criterion is not None and isinstance(criterion.answer, DecisionTree):
        below.append(html.fold("The tree", charts.tree(criterion.answer)))
    if criterion is not None and isinstance(criterion.answer, Rubric):
        inner = [tag("li", text(each.text)) for each in criterion.answer.judged]
        below.append(html.fold(f"Its {len(inner)} criteria", tag("ul", *inner)))
    if criterion is not None and criterion.anchors:
        lines = [(f"{each.score:g}", cut(each.response, html.LONGEST), each.reason) for each in criterion.anchors]
        below.append(html.fold(f"{len(lines)} examples", html.table(("score", "response", "reason"), lines)))
    is_keyed = any(option.key != option.name for option in question.options)
    options = [_option(option, n, is_keyed=is_keyed) for n, option in enumerate(question.options)]
    if question.layout == "field":
        low, high = question.bounds
        options.append(tag("input", type="number", class_="number", min=low, max=high, step=1, aria_label="Number"))
        options.append(tag("span", f"{low} to {high}", class_="soft"))
    unsure = tag("button", tag("kbd", "c"), " cannot tell", type="button", class_="option unsure", role="radio")
    why = tag("button", tag("kbd", "r"), " reason", type="button", class_="button why-button")
    more = tag("span", unsure, why, class_="more")
    reason = tag("textarea", rows="2", placeholder="Reason", aria_label="Reason", class_="reason", maxlength="5000")
    return tag(
        "fieldset",
        tag("legend", text(question.text, class_="what"), " ", html.badge("gate", "gate") if gate else None),
        *below,
        tag("div", *options, more, class_=f"options {question.layout}", role="radiogroup"),
        reason,
        class_="question",
        id=f"q{number}",
    )


def _option(option: Option, number: int, *, is_keyed: bool) -> Html:
    shown = tag("kbd", option.key) if is_keyed and option.key else None
    said = tag("span", text(option.text), class_="soft") if option.text else None
    words = tag("b", text(option.name))
    return tag("button", shown, words, said, type="button", class_="option", role="radio", data_n=number)


def _candidate(candidate: Candidate) -> list[Html]:
    """Return all that belongs to *candidate*, the text to judge among it."""
    fields = RowBuilder().of_candidate(candidate)
    asked = clean("\n\n".join(f"{m.role}: {m.content}" for m in candidate.messages))
    parts = (
        ("Input", clean(candidate.input), ""),
        ("Conversation", asked, ""),
        ("Context", clean(candidate.context), ""),
        ("Reference", clean(candidate.reference), ""),
        ("Candidate", fields["output"], "main"),
        ("Tool calls", "\n".join(fields["run"]), ""),
        ("File changes", clean(candidate.file_changes), ""),
    )
    shown = [
        tag("div", html.section(name, html.candidate(cut(said, LONGEST))), class_=kind or None)
        for name, said, kind in parts
        if said or kind
    ]
    if candidate.images:
        shown.append(html.section("Images", *map(_image, candidate.images)))
    return shown


def _image(address: str) -> Html:
    """Return an image that is in the data; of another, its address, since the page loads nothing."""
    if address.startswith("data:"):
        return tag("img", src=Html(html.escape(address)), alt="An image of the candidate")
    return text(address)


def _row(result: Mapping[str, Any], rubric: Rubric) -> Row:
    """Return what a file of results says as a row, without the candidate, which is beside it."""
    found = {finding["id"]: finding for finding in result["findings"]}
    score = result["score"]
    low, high = result.get("bounds") or (0.0, 1.0)
    return Row(
        "",
        "ungraded" if score is None else "passed" if result["passed"] else "failed",
        score,
        result["verdict"] or "",
        shown="" if score is None else f"{score:.2f}",
        threshold=rubric.threshold,
        bounds=(low, high),
        entries=tuple(_entry(each, found[each.id], result) for each in rubric.judged if each.id in found),
        gates=tuple(result.get("gates", ())),
        vacuous=result.get("vacuous", False),
    )


def _entry(criterion: Criterion, finding: Mapping[str, Any], result: Mapping[str, Any]) -> Entry:
    value = finding.get("value")
    said = ("yes" if value else "no") if isinstance(value, bool) else "" if value is None else str(value)
    failure = finding.get("failure") or {}
    return Entry(
        criterion.id,
        clean(str(criterion.text)),
        finding["kind"].replace("_", " "),
        finding.get("score"),
        finding.get("contribution"),
        criterion.weight,
        describe(criterion),
        clean(said),
        clean(str(finding.get("level", ""))),
        criterion.id in result.get("gates", ()),
        clean(str(finding.get("reason") or failure.get("message", ""))),
    )
