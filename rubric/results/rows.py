"""
Results as plain data with all secrets masked: a `Row` a result, an `Entry` a criterion. Reports and cards show them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import line
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
        status: `scored`, `not applicable`, `abstained` or `unjudged`.
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
    status: Literal["scored", "not applicable", "abstained", "unjudged"]
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


@frozen
class Vote(NoTruth):
    """The result of one member of a jury or a panel."""

    judge: str
    score: float | None
    passed: bool | None
    verdict: str = ""


@frozen
class Row(NoTruth):
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
        run: The candidate's tool calls, a line each.
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
    result: Grade | Ungraded | None = field(default=None, eq=False, repr=False)


# -- descriptions --------------------------------------------------------------------------------------------


def below(score: float, mark: float, digits: int = 2) -> str:
    """Format a *score* below *mark* with as many decimals as show that it is below, at least *digits*."""
    texts = (f"{score:.{more}f}" for more in range(digits, 17))
    return next((text for text in texts if float(text) < mark), repr(score))


VACUOUS = "vacuous: nothing applied"
"""The remark on a pass to which no criterion applied, so that it does not look like a judged 1.00."""


def quotes(evidence: Iterable[Evidence], limit: int = 120) -> str:
    """Return the quotes on one line; quotes that are not in the candidate are marked."""
    return " ".join(f"“{line(e.text, limit)}”{'' if e.verified else ' (not found)'}" for e in evidence)


def walk(path: Iterable[Step], limit: int = 120) -> str:
    """Return a walk down a tree on one line."""
    return " → ".join(f"{line(step.question, limit)} {'yes' if step.yes else 'no'}" for step in path)


def proof(entry: Entry, path: Iterable[Step] = (), limit: int = 600) -> str:
    """Return the quotes of *entry* and its walk on one line, without a walk that is the case's own *path*."""
    steps = walk(entry.path) if entry.path != path else ""
    return " · ".join(line(text, limit) for text in (quotes(entry.evidence), steps) if text)


def result_of(entry: Entry) -> str:
    """Return the contribution of *entry*, or the word for why there is none."""
    return entry.status if entry.contribution is None else f"{entry.contribution:.2f}"


def figure(entry: Entry) -> str:
    """Return the result of *entry* in a word or a number, for a column."""
    nothing = entry.parts and all(part.status == "not applicable" for part in entry.parts)
    return f"{result_of(entry)}, vacuous" if nothing else result_of(entry)


def verdict(entry: Entry) -> str:
    """Return the result of *entry*, and whether it failed the grade."""
    return f"{figure(entry)}, gate failed" if entry.gated else figure(entry)


def score_of(row: Row, between: str) -> str:
    """Return the score on its scale; for an ungraded case, its bounds with *between* in the middle; or nothing."""
    if row.score is not None:
        return line(row.shown, 40) or f"{row.score:.2f}"
    return f"{row.bounds[0]:.2f}{between}{row.bounds[1]:.2f}" if row.status == "ungraded" else ""


def score_of_vote(vote: Vote) -> str:
    """Return the score of *vote*, or that it has none."""
    return "no score" if vote.score is None else f"{vote.score:.2f}"


def label(id: str, text: str, limit: int = 160) -> str:
    """Return the *id* of a criterion on one line, with its *text* if the id is not made of that."""
    name = line(id, 80)
    return name if not text or text == id or slug(text) == id else f"{name}: {line(text, limit)}"


def flat(entries: Iterable[Entry], within: str = "") -> Iterator[tuple[str, Entry]]:
    """Yield each entry, then those of its nested rubric, with the ids from the top: `style/greets`."""
    for entry in entries:
        name = f"{within}/{line(entry.id, 80)}" if within else line(entry.id, 80)
        yield name, entry
        yield from flat(entry.parts, name)


def short(row: Row, entry: Entry) -> bool:
    """True if *entry* failed the grade, or contributes less than the whole grade has to reach."""
    if entry.gated:
        return True
    enough = 1.0 if row.threshold is None else row.threshold
    return entry.contribution is not None and bool(entry.weight) and entry.contribution < enough - TOLERANCE
