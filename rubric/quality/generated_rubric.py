"""What is generated: a rubric with what is known of each of its criteria, and the rubrics of a suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from rubric import Criterion, DefinitionError, Rubric
from rubric.driving import Failure, Usage
from rubric.embed import Listed, NoTruth, Presented, Statistic, Table, counted, few_groups, percent, write_text
from rubric.quality.contrast import KEPT, SHOWN, Discrimination, Status
from rubric.quality.suite_drafts import Sheet
from rubric.suites.suite import Suite

_CHANCE, _YES = 0.5, ("no", "yes")


@frozen
class GeneratedCriterion(NoTruth):
    """
    One criterion that was written, kept or not.

    Args:
        criterion: The criterion.
        status: Why it stays (`tells apart`, `too few`, `untested`), or does not (`alike`, `reversed`, `chance`,
            `duplicate`, `refused`); see `rubric.quality.contrast.discrimination`.
        why: The same in a sentence.
        discrimination: How often it tells pairs apart; None where it was not tried.
    """

    _truth = ".kept"

    criterion: Criterion
    status: Status
    why: str
    discrimination: Discrimination | None = None

    @property
    def id(self) -> str:
        """The criterion's id."""
        return self.criterion.id

    @property
    def kept(self) -> bool:
        """True if the rubric has it."""
        return self.status in KEPT

    @property
    def shown(self) -> bool | None:
        """True if it is shown, at p <= 0.05, to tell answers apart; None where that could not be told."""
        found = self.discrimination
        return None if not self.kept or found is None or found.p > SHOWN else True

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        found = self.discrimination
        counts = {} if found is None else {n: getattr(found, n) for n in ("wins", "losses", "ties", "p")}
        told = {"id": self.id, "text": self.criterion.text, "kept": self.kept, "shown": self.shown}
        return {**told, "status": self.status, "why": self.why, **counts}


@frozen(repr=False)
class Generation(Presented, Listed[GeneratedCriterion]):
    """
    What `generate` returns: the rubric, and what is known of each criterion that was written.

    Args:
        rubric: The criteria that stay, with `reviewed=False` and their provenance; None if none stays.
        criteria: All that were written, in their order; by id, `generation["cites"]`.
        pairs: How many pairs were given.
        accuracy: How often the rubric ranks the preferred answer of a held-out pair above the rejected one (a tie
            counts half), with its 95 % interval; None if no pair could be held out.
        p: The chance of ranking as many right by coin flips: the one-sided sign test, by unit; None likewise.
        held_out: How many pairs were held out and judged.
        ties: How many of them the rubric scores alike.
        unjudged: How many pairs have an answer that was not judged, such as by a budget that was spent.
        usage: All requests for it; what a store serves costs nothing.
        failures: Why some were not judged, each reason once.
    """

    _truth = ".ok"

    rubric: Rubric | None
    criteria: tuple[GeneratedCriterion, ...]
    pairs: int = 0
    accuracy: Statistic | None = None
    p: float | None = None
    held_out: int = 0
    ties: int = 0
    unjudged: int = 0
    usage: Usage = Usage()
    failures: tuple[str, ...] = ()
    groups: int = field(default=0, repr=False)
    units: int = field(default=0, repr=False)

    @property
    def kept(self) -> tuple[GeneratedCriterion, ...]:
        """The criteria that stay."""
        return tuple(one for one in self.criteria if one.kept)

    @property
    def dropped(self) -> tuple[GeneratedCriterion, ...]:
        """The criteria that do not stay, each with its reason."""
        return tuple(one for one in self.criteria if not one.kept)

    @property
    def ok(self) -> bool | None:
        """
        True if the rubric is shown, at p <= 0.05, to rank held-out pairs better than chance; False if not.

        None where that could not be told: without pairs, or with too few. Five pairs, all ranked right, are enough.
        """
        if self.rubric is None:
            return False
        if self.accuracy is None or self.accuracy.value is None:
            return None
        if self.accuracy.value <= _CHANCE:
            return False
        return True if self.p is not None and self.p <= SHOWN else None

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        kept, n = len(self.kept), len(self.criteria)
        if self.rubric is None:
            return f"None of the {n} criteria tells preferred from rejected answers, so there is no rubric."
        stay = f"{kept} of {n} criteria stay"
        if not self.pairs:
            return f"{stay}; without preferred and rejected answers, nothing shows that they tell answers apart."
        if self.accuracy is None or self.accuracy.value is None:
            return f"{stay}; {counted(self.pairs, 'pair')} cannot tell whether the rubric ranks new answers right."
        shown = percent(self.accuracy.value, self.accuracy.interval)
        doubt = {True: "", None: ", which could be chance", False: ", no better than chance"}[self.ok]
        held = counted(self.held_out, "held-out pair")
        return f"{stay}; the rubric ranks {held} right in {shown}{doubt}."

    def remarks(self) -> list[str]:
        """What to know before the rubric is used."""
        told = []
        doubtful = [repr(one.id) for one in self.kept if self.pairs and one.shown is None]
        if doubtful:
            told.append(f"not shown to tell answers apart, for lack of pairs: {', '.join(doubtful)}")
        if self.units < self.pairs:
            units = "one" if self.units == 1 else f"{self.units:,}"
            told.append(f"pairs of one task, of one group or with an answer in common count as one: {units} in all")
        if self.ties:
            told.append(f"{counted(self.ties, 'held-out pair')} scored alike, each counted as half right")
        if self.unjudged:
            why = f" ({'; '.join(self.failures)})" if self.failures else ""
            cure = "nothing is lost: the same call with the same store asks for the rest alone"
            told.append(f"{counted(self.unjudged, 'pair')} not judged{why}; {cure}")
        if self.accuracy is not None and self.groups and (few := few_groups(self.groups)):
            told.append(few)
        if self.rubric is not None:
            told.append("read the criteria before you use them, then write `reviewed: true`")
        cost = "at an unknown price" if self.usage.cost is None else f"${self.usage.cost:.4f}"
        return [*told, f"{counted(self.usage.calls, 'call')}, {cost}"]

    def tables(self) -> list[Table]:
        """Each criterion in a row."""
        if not any(one.discrimination is not None for one in self):
            return [("", ("criterion", "kept", "why"), [(one.id, _YES[one.kept], one.why) for one in self])]
        none = Discrimination(0, 0, 0, 1.0, "untested")
        told = [(one, none if one.discrimination is None else one.discrimination) for one in self]
        rows = [(one.id, _YES[one.kept], d.wins, d.losses, d.ties, one.why) for one, d in told]
        return [("", ("criterion", "kept", "preferred", "rejected", "alike", "why"), rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        accuracy = None if self.accuracy is None else {"value": self.accuracy.value, "interval": self.accuracy.interval}
        rubric = None if self.rubric is None else self.rubric.to_dict()
        figures = {name: getattr(self, name) for name in ("pairs", "held_out", "p", "ties", "unjudged")}
        told: dict[str, Any] = {"kind": "generation", "sentence": self.sentence, "ok": self.ok, "rubric": rubric}
        told |= {"criteria": [one.to_dict() for one in self.criteria], **figures, "accuracy": accuracy}
        return told | {"calls": self.usage.calls, "cost": self.usage.cost, "failures": [*self.failures]}


@frozen(repr=False)
class Generations(Presented):
    """
    What `generate_many` returns: a `Generation` for each case without criteria.

    Args:
        made: What was generated, by case id.
        failures: Why nothing was, by case id.
        kept: The ids of the cases that have criteria of their own.
        suite: The suite with the rubrics; None where a file was given.
        sheet: The file; None where a suite was given.
    """

    _truth = ".made"

    made: Mapping[str, Generation]
    failures: Mapping[str, Failure]
    kept: tuple[str, ...] = ()
    suite: Suite | None = None
    sheet: Sheet | None = None

    @property
    def usage(self) -> Usage:
        """All requests for it."""
        return Usage.total(one.usage for one in self.made.values())

    @property
    def rubrics(self) -> dict[str, Rubric]:
        """The rubrics by case id."""
        return {id_: one.rubric for id_, one in self.made.items() if one.rubric is not None}

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        failed = f"; nothing could be generated for {counted(len(self.failures), 'case')}" if self.failures else ""
        kept = f", {counted(len(self.kept), 'case')} kept as they are" if self.kept else ""
        return f"Criteria for {counted(len(self.rubrics), 'case')}{kept}{failed}."

    def remarks(self) -> list[str]:
        """Why some cases have no criteria."""
        return [f"{id_}: {failure}" for id_, failure in self.failures.items()]

    def tables(self) -> list[Table]:
        """Each case in a row."""
        rows = [
            (id_, len(one.kept), "; ".join(f"{c.id}: {c.why}" for c in one.dropped)) for id_, one in self.made.items()
        ]
        return [("", ("case", "criteria", "dropped"), rows)] if rows else []

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        cases = {id_: one.to_dict() for id_, one in self.made.items()}
        failures = {id_: str(failure) for id_, failure in self.failures.items()}
        head = {"kind": "generations", "sentence": self.sentence}
        return {**head, "cases": cases, "failures": failures, "kept": [*self.kept]}

    def save(self, path: str | Path | None = None, **options: Any) -> None:
        """
        Write the rubrics into the file of the suite, or a copy of it at *path*; all else in it stays, comments too.

        Args:
            path: The file; None: the one that the suite is from.
            options: As for `load_suite`, with which the result is checked.

        Raises:
            DefinitionError: A suite was given, and no file; dump its `suite`.
        """
        if self.sheet is None:
            why = "no file was given to generate_many; write dump_suite(generations.suite, ...)"
            raise DefinitionError("path", why)
        text = self.sheet.fill(self.rubrics)
        # A native case without a rubric is not a case: those that failed must not keep the others from being written.
        missing = {slot.id: Rubric(criteria=["unknown"]) for slot in self.sheet.slots}
        self.sheet.check(self.sheet.fill(missing | self.rubrics), **options)
        write_text(self.sheet.path if path is None else Path(path), text)
