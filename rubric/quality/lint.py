"""
Look for what is wrong with a rubric, a suite or a file, without a judge: `lint(x)`.

A remark can be waived, with a reason: in a file by a comment on its line, or on the line above, in code by the
metadata of the criterion:

    # lint: allow no-effect: shown to reviewers only
    metadata={"lint": {"no-effect": "shown to reviewers only"}}
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, overload

from attrs import asdict, evolve, frozen

from rubric.errors import DefinitionError
from rubric.formats.document import FOR_SUITES, Branch, Node, Scalar
from rubric.formats.files import parse, read_text
from rubric.formats.rubrics import LANGUAGES, load
from rubric.formats.suites import is_rubric, load_suite
from rubric.internals.fields import as_path, refuse, suggest
from rubric.internals.text import cell, table
from rubric.quality.lint_rules import RULES, Finding, Level, Subject
from rubric.rendering import html
from rubric.rendering.html import Html
from rubric.suites.suite import Suite
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

_WAIVER = re.compile(r"#\s*lint:\s*allow\s+([a-z-]+)\s*:?\s*(.*)$", re.IGNORECASE)


@frozen
class Remark:
    """
    One thing that is wrong.

    Args:
        rule: The name of the rule, such as `no-effect`.
        level: `error` (it follows from how answers are scored), `warning` (the text says so), or `hint` (it may be so).
        place: `file:line:column`, or the path in the rubric or suite, such as `criteria[2]`.
        criterion: The id of the criterion; empty for the whole rubric.
        message: What is wrong, and the consequence.
        cure: What to do.
        waived: The reason that the file or the criterion gives for leaving it so; empty where it does not.
    """

    rule: str
    level: Level
    place: str
    criterion: str
    message: str
    cure: str
    waived: str = ""

    def __str__(self) -> str:
        name = f"{self.criterion!r}: " if self.criterion else ""
        return f"{self.place}: {self.level}: {name}{self.message}; {self.cure} [{self.rule}]"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds."""
        return asdict(self)


@frozen(repr=False)
class Remarks(Sequence[Remark]):
    """
    What `lint` found: a sequence of remarks in the order of the file.

    Args:
        remarks: Those that count.
        waived: Those that the file or a criterion waives, each with its reason.
        rubrics: How many rubrics were looked at.
    """

    remarks: tuple[Remark, ...] = ()
    waived: tuple[Remark, ...] = ()
    rubrics: int = 1

    @overload
    def __getitem__(self, at: int) -> Remark: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Remark]: ...
    def __getitem__(self, at: int | slice) -> Remark | Sequence[Remark]:
        return self.remarks[at]

    def __len__(self) -> int:
        return len(self.remarks)

    def of(self, level: Level) -> tuple[Remark, ...]:
        """Return the remarks of one *level*."""
        return tuple(remark for remark in self.remarks if remark.level == level)

    @property
    def ok(self) -> bool:
        """True without errors and warnings; hints fail nothing."""
        return all(remark.level == "hint" for remark in self.remarks)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        looked = f"{self.rubrics:,} rubric{'s' if self.rubrics != 1 else ''}"
        counts = [(len(self.of(level)), level) for level in ("error", "warning", "hint")]
        told = [f"{n} {level}{'s' if n != 1 else ''}" for n, level in counts if n]
        waived = f", {len(self.waived)} waived" if self.waived else ""
        return f"{', '.join(told) or 'Nothing wrong'} in {looked}{waived}."

    def __repr__(self) -> str:
        return f"<Remarks: {self.sentence}>"

    def __str__(self) -> str:
        return "\n".join((self.sentence, *map(str, self.remarks)))

    def _repr_html_(self) -> str:
        waived = None
        if self.waived:
            lines = [(*_shown(remark)[:3], remark.waived) for remark in self.waived]
            waived = html.fold(f"{len(lines):,} waived", html.table(("level", "place", "criterion", "why"), lines))
        head = html.header(self.sentence, *([] if self.remarks else [html.badge("clean", "passed")]), title="lint")
        rows = [_shown(remark) for remark in self.remarks]
        drawn = html.table(("level", "place", "criterion", "remark"), rows) if rows else None
        return html.fragment(html.card(head, drawn, waived))

    def _repr_markdown_(self) -> str:
        rows = [(r.place, r.level, r.rule, r.criterion, f"{r.message}; {r.cure}") for r in self.remarks]
        head = ("place", "level", "rule", "criterion", "remark")
        return f"{cell(self.sentence)}" + (f"\n\n{table(head, rows)}" if rows else "")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds."""
        return {
            "sentence": self.sentence,
            "ok": self.ok,
            "remarks": [remark.to_dict() for remark in self.remarks],
            "waived": [remark.to_dict() for remark in self.waived],
        }

    def plot(self) -> Any:
        """Return how many remarks each rule made, in the colour of its level, as an Altair chart."""
        from rubric.rendering.plots import bars  # noqa: PLC0415 - charts need an extra

        counts = Counter((remark.rule, remark.level) for remark in self.remarks)
        rows = [{"name": rule, "which": level, "value": count} for (rule, level), count in counts.items()]
        return bars(rows, "remarks", self.sentence, _COLOURS)


_COLOURS = {"error": "#c62828", "warning": "#f9a825", "hint": "#607d8b"}
_KINDS: dict[Level, str] = {"error": "failed", "warning": "ungraded", "hint": "deferred"}


def _shown(remark: Remark) -> tuple[Html, Html, Html, Html]:
    """Return *remark* as the cells of a row: its level, its place, its criterion, and what to do."""
    said = html.text(f"{remark.message[:1].upper()}{remark.message[1:]}; {remark.cure}.")
    rule = html.tag("div", html.text(remark.rule, html.NAME, class_="mono"), class_="how")
    return (
        html.badge(remark.level, _KINDS[remark.level]),
        html.text(remark.place, html.NAME, class_="mono"),
        html.text(remark.criterion, html.NAME),
        html.join((said, rule)),
    )


def lint(x: Rubric | Suite | str | PathLike[str], /, *, hints: bool = False, base: str | Path | None = None) -> Remarks:
    """
    Look for what is wrong with *x*: a rubric, a suite, or the path of a file with one of them.

    A rubric that several cases share is looked at once, but for what depends on the case.

    Args:
        x: A `Rubric`, a `Suite`, or a path.
        hints: Whether remarks that may be wrong are shown too.
        base: Of a file: the folder that it and its includes must be in, as for `load_suite`.

    Raises:
        DefinitionError: *x* is none of these.
        LoadError: The file cannot be read.
    """
    match x:
        case Rubric():
            found, rubrics = [*_look(Subject.of(x), hints=hints, place=_Places())], 1
        case Suite():
            found, rubrics = _look_at_suite(x, _Places(), hints=hints)
        case str() | PathLike():
            file = as_path("x", x)
            places = _Places.of(file)
            if is_rubric(file):
                found, rubrics = [*_look(Subject.of(load(file, base=base)), hints=hints, place=places)], 1
            else:
                found, rubrics = _look_at_suite(load_suite(file, base=base), places, hints=hints)
        case _:
            raise refuse("x", x, "a Rubric, a Suite, or the path of a file with one of them")
    kept = dict.fromkeys(found)  # a rubric that is written once, and used by many cases, is told of once
    counting = tuple(remark for remark in kept if not remark.waived)
    return Remarks(counting, tuple(remark for remark in kept if remark.waived), rubrics)


def _look_at_suite(suite: Suite, places: _Places, *, hints: bool) -> tuple[list[Remark], int]:
    found: list[Remark] = []
    seen: dict[str, int] = {}
    for index, case in enumerate(suite.cases):
        first = seen.setdefault(case.rubric.digest, index)
        subject = Subject.of(case.rubric, case)
        start = case.place.line if case.place is not None else 1
        own = places.under(f"cases[{index}].rubric" if not places.lines else "", start)
        of_case = [*_look(subject, hints=hints, place=own)]
        if first != index and not places.lines:  # told of at the first case that has it
            of_case = [remark for remark in of_case if remark.rule in ("reference-fails", "question-passes")]
        found += of_case
    return found, len(seen)


def _look(subject: Subject, *, hints: bool, place: _Places) -> Iterator[Remark]:
    rubric = subject.rubric
    for rule in RULES.values():
        if rule.level == "hint" and not hints:
            continue
        for finding in rule.look(subject):
            criterion = None if finding.index is None else rubric.judged[finding.index]
            remark = Remark(
                rule.name,
                rule.level,
                place.show(finding, criterion),
                "" if criterion is None else criterion.id,
                finding.message,
                finding.cure,
            )
            yield evolve(remark, waived=place.waiver(rule.name, criterion, rubric))
    for index, criterion in enumerate(rubric.judged):
        if isinstance(criterion.answer, Rubric):
            below = place.under(f"{place.path}criteria[{index}].answer" if not place.lines else "", place.start)
            yield from _look(subject.below(criterion, criterion.answer), hints=hints, place=below)


# -- places and waivers ----------------------------------------------------------------------------------


@frozen
class _Places:
    """
    Where a criterion is: by its text in a file, else by its path.

    Args:
        source: The name of the file.
        lines: The lines of the file; empty without one.
        texts: The places of each text of the file, in its order.
        start: The line on which the case begins.
        path: The path of the rubric, without a file.
    """

    source: str = ""
    lines: tuple[str, ...] = ()
    texts: Mapping[str, tuple[tuple[int, int], ...]] = {}
    start: int = 1
    path: str = ""

    @classmethod
    def of(cls, file: Path) -> _Places:
        language = LANGUAGES.get(file.suffix.lower())
        if language is None:
            return cls(str(file), ("",))
        text = read_text(file, None, FOR_SUITES)
        places: dict[str, list[tuple[int, int]]] = {}
        for node in _scalars(parse(text, str(file), language, FOR_SUITES).root):
            if isinstance(node.value, str):
                places.setdefault(node.value.strip(), []).append(node.place)
        return cls(str(file), tuple(text.split("\n")), {said: tuple(where) for said, where in places.items()})

    def under(self, path: str, start: int) -> _Places:
        return evolve(self, path=f"{path}." if path else "", start=start)

    def _line(self, criterion: Criterion | None) -> tuple[int, int]:
        """Return the line and the column of *criterion*: of its text or its id, from the start of its case on."""
        for said in () if criterion is None else (criterion.text.strip(), criterion.id):
            later = [place for place in self.texts.get(said, ()) if place[0] >= self.start]
            if later or self.texts.get(said):
                return (later or self.texts[said])[0]
        return self.start, 1

    def show(self, finding: Finding, criterion: Criterion | None) -> str:
        if self.lines:
            line, column = self._line(criterion)
            return f"{self.source}:{line}:{column}"
        return (
            f"{self.path}criteria[{finding.index}]" if finding.index is not None else self.path.rstrip(".") or "rubric"
        )

    def waiver(self, rule: str, criterion: Criterion | None, rubric: Rubric) -> str:
        """Return the reason for which *rule* is waived here; empty if it is not."""
        whole = criterion is None and rubric.judged
        given = [c.metadata.get("lint") for c in (rubric.judged if whole else [criterion]) if c is not None]
        for waived in given:
            if isinstance(waived, Mapping) and rule in waived:
                return _reason(f"metadata.lint.{rule}", waived[rule])
        line = self._line(criterion)[0]
        for number in (line, line - 1):
            if 0 < number <= len(self.lines) and (found := _WAIVER.search(self.lines[number - 1])):
                name = found[1].lower()
                if name not in RULES:
                    raise DefinitionError(
                        f"{self.source}:{number}", f"no rule is called {name!r}{suggest(name, RULES)}"
                    )
                if name == rule:
                    return _reason(f"{self.source}:{number}", found[2])
        return ""


def _reason(where: str, given: object) -> str:
    if isinstance(given, str) and given.strip():
        return given.strip()
    raise DefinitionError(where, "a waiver needs a reason: # lint: allow RULE: why it is meant so")


def _scalars(node: Node) -> Iterator[Scalar]:
    waiting = [node]
    while waiting:  # not recursive: a file may nest deeper than Python's stack allows
        one = waiting.pop()
        if isinstance(one, Scalar):
            yield one
        elif isinstance(one, Branch):
            waiting.extend(reversed(one.parts))
