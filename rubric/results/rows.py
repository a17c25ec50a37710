"""
Results as plain data with all secrets masked: a `Row` a result, an `Entry` a criterion. Reports and cards show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import line
from rubric.results.plain import UNWRITTEN, Kind, Plain
from rubric.scoring.aggregation import TOLERANCE
from rubric.values.criteria import slug
from rubric.values.findings import Evidence, Step
from rubric.values.places import Place
from rubric.values.requests import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rubric.results.result import Grade, Ungraded


Status = Literal["passed", "failed", "ungraded", "deferred"]


@frozen
class Entry(NoTruth):
    """
    One criterion of a case.

    Args:
        id: The criterion's.
        text: What was to be judged.
        status: `scored`, `not_applicable`, `abstained` or `unjudged`: the kind of its finding.
        score: The judge's answer in 0..1; None unless scored.
        contribution: What it adds to the mean, in 0..1 with 1 as good; None while it is not known.
        weight: How much it counts.
        answer: A description of its answers: `yes or no`, `0..10, required`.
        value: The answer itself, as text: `yes`, `7`, `warm`; of a guard and a penalty, whether it was found.
        level: What a level means, see `Scored`.
        gated: True if it failed the grade.
        reason: The judge's reason, or why there is no verdict.
        evidence: The quotes.
        path: The walk, for a tree.
        parts: The entries of a nested rubric.
        votes: The entries of the members of a jury or a panel.
        judge: The voter; empty if it is no vote.
    """

    _truth = ".contribution"

    id: str
    text: str
    status: Kind
    score: float | None = None
    contribution: float | None = None
    weight: float = 1
    answer: str = ""
    value: str = ""
    level: str = ""
    gated: bool = False
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    path: tuple[Step, ...] = ()
    parts: tuple[Entry, ...] = ()
    votes: tuple[Entry, ...] = ()
    judge: str = ""

    @property
    def result(self) -> str:
        """The contribution, or the word for why there is none."""
        return self.status.replace("_", " ") if self.contribution is None else f"{self.contribution:.2f}"

    @property
    def figure(self) -> str:
        """The result in a word or a number, for a column."""
        nothing = self.parts and all(part.status == "not_applicable" for part in self.parts)
        return f"{self.result}, vacuous" if nothing else self.result

    @property
    def verdict(self) -> str:
        """The result, and whether it failed the grade."""
        return f"{self.figure}, gate failed" if self.gated else self.figure

    @property
    def quotes(self) -> str:
        """The quotes on one line; those that are not in the candidate are marked."""
        return " ".join(f"“{line(e.text, 120)}”{'' if e.verified else ' (not found)'}" for e in self.evidence)

    @property
    def walk(self) -> str:
        """The walk down its tree, on one line."""
        return _walk(self.path)

    def proof(self, row: Row, limit: int = 600) -> str:
        """Return the quotes and the walk on one line, without a walk that is also that of the whole *row*."""
        steps = self.walk if self.path != row.path else ""
        return " · ".join(line(text, limit) for text in (self.quotes, steps) if text)

    def label(self, limit: int = 160) -> str:
        """Return the id on one line, with the text if the id is not made of that."""
        return label(self.id, self.text, limit)


@frozen
class Vote(NoTruth):
    """The result of one member of a jury or a panel."""

    judge: str
    score: float | None
    passed: bool | None
    verdict: str = ""

    @property
    def figure(self) -> str:
        """The score, or that there is none."""
        return "no score" if self.score is None else f"{self.score:.2f}"


@frozen
class Row(NoTruth, Plain):
    """
    The result of one case, as plain data.

    Args:
        id: The case's, with its cell in a matrix.
        status: `passed`; `failed`; `ungraded` (something could not be judged); `deferred` (it had no candidate or no
            judge).
        score: In 0..1; None without a grade.
        verdict: `pass`, `borderline` or `fail`; empty without a grade.
        shown: The score on the rubric's scale, for people.
        threshold: What the score had to meet; None where the judge's own pass flag decided.
        bounds: The lowest and the highest score that the findings allow.
        reason: Why it failed, is ungraded or deferred, in a sentence or two; empty for a plain pass.
        rubric: The rubric's name.
        judge: The name of the judge.
        input: What the candidate answers.
        output: The candidate's text; empty if there was none.
        run: The steps of the candidate's run, each as a judge is shown it.
        entries: One for each criterion.
        votes: The results of the members of a jury or a panel.
        gates: The ids of the criteria that failed the grade whatever the mean is.
        path: The walk, where the rubric is one tree.
        warnings: For people.
        usage: Of judges, target and scripts.
        cell: The coordinates in a matrix.
        tags: The case's labels.
        place: Where the case was written.
        vacuous: True if no criterion applied.
        result: The whole result; it is not written to files, and None in a report that was read from one.
    """

    _truth = '.status == "passed"'

    id: str
    status: Status
    score: float | None = None
    verdict: str = ""
    shown: str = ""
    threshold: float | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    reason: str = ""
    rubric: str = ""
    judge: str = ""
    input: str = ""
    output: str = ""
    run: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    votes: tuple[Vote, ...] = ()
    gates: tuple[str, ...] = ()
    path: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    cell: FrozenMap = FrozenMap()
    tags: tuple[str, ...] = ()
    place: Place | None = None
    vacuous: bool = False
    result: Grade | Ungraded | None = field(default=None, eq=False, repr=False, metadata=UNWRITTEN)

    @property
    def remark(self) -> str:
        """What a pass says to which no criterion applied, so that it does not look like a judged 1.00; or nothing."""
        return "vacuous: nothing applied" if self.vacuous else ""

    @property
    def walk(self) -> str:
        """The walk down the rubric's tree, on one line."""
        return _walk(self.path)

    def figure(self, between: str) -> str:
        """Return the score on its scale; for an ungraded case, its bounds with *between* in the middle; or nothing."""
        if self.score is not None:
            return line(self.shown, 40) or f"{self.score:.2f}"
        return f"{self.bounds[0]:.2f}{between}{self.bounds[1]:.2f}" if self.status == "ungraded" else ""

    @property
    def shortfall(self) -> str:
        """The score with as many decimals as show that it is below the threshold; empty if it is not."""
        if self.score is None or self.threshold is None or self.score >= self.threshold:
            return ""
        return below(self.score, self.threshold)

    def all_entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield each entry, then those of its nested rubric, with the ids from the top: `style/greets`."""
        return _flat(self.entries)

    def falls_short(self, entry: Entry) -> bool:
        """True if *entry* failed the grade, or contributes less than the whole grade has to reach."""
        if entry.gated:
            return True
        enough = 1.0 if self.threshold is None else self.threshold
        return entry.contribution is not None and bool(entry.weight) and entry.contribution < enough - TOLERANCE


def below(score: float, mark: float, digits: int = 2) -> str:
    """Format a *score* below *mark* with as many decimals as show that it is below, at least *digits*."""
    texts = (f"{score:.{more}f}" for more in range(digits, 17))
    return next((text for text in texts if float(text) < mark), repr(score))


def label(id: str, text: str, limit: int = 160) -> str:
    """Return the *id* of a criterion on one line, with its *text* if the id is not made of that."""
    name = line(id, 80)
    return name if not text or text == id or slug(text) == id else f"{name}: {line(text, limit)}"


def _walk(path: Iterable[Step]) -> str:
    return " → ".join(f"{line(step.question, 120)} {'yes' if step.yes else 'no'}" for step in path)


def _flat(entries: Iterable[Entry], within: str = "") -> Iterator[tuple[str, Entry]]:
    for entry in entries:
        name = f"{within}/{line(entry.id, 80)}" if within else line(entry.id, 80)
        yield name, entry
        yield from _flat(entry.parts, name)
