"""What `align` returns: the rubric, and for each kind of edit the best change with what it is worth."""

from __future__ import annotations

from typing import Any, Literal

from attrs import asdict, field, frozen

from rubric import Rubric
from rubric.driving import Usage
from rubric.embed import NoTruth, Presented, Table, counted

Kind = Literal["threshold", "weights", "anchors", "texts"]


@frozen
class Proposal(NoTruth):
    """
    One changed rubric, and its *agreement* with the labels that it was chosen by.

    With a *fold*, it was made without the labels of that fold, and the agreement is with these.
    """

    _truth = ".agreement"

    change: str
    agreement: float
    rubric: Rubric = field(repr=False)
    fold: int | None = None
    usage: Usage = Usage()


@frozen
class Edit(NoTruth):
    """
    The best change of one kind. An agreement is a share of verdicts, or 1 less the mean distance of scores in 0..1.

    Args:
        kind: `threshold`, `weights`, `anchors` or `texts`.
        change: The change; empty if none looks better than the rubric as it is.
        accepted: Whether it is shown to agree with people more.
        before: The agreement of the rubric before it.
        apparent: Its agreement on the labels that it was chosen by, which is too high on average.
        honest: Its agreement on candidates that it was not chosen by.
        p: The probability of such a gain, or a larger one, if there is none.
        missing: How many labels more would show the gain in four of five such samples; 0 if it is shown; None if there
            is no gain to show.
        proposals: All changes that were tried, each with its cost.
        why: Why there is no change, where that is not for want of a better one.
    """

    _truth = ".accepted"

    kind: Kind
    change: str
    accepted: bool
    before: float
    apparent: float
    honest: float
    p: float
    missing: int | None
    proposals: tuple[Proposal, ...] = field(repr=False)
    why: str = ""

    @property
    def usage(self) -> Usage:
        """What it took."""
        return Usage.total(proposal.usage for proposal in self.proposals)

    @property
    def calls(self) -> int:
        """The calls that it took."""
        return self.usage.calls


@frozen(repr=False)
class Alignment(Presented):
    """
    What `align` returns.

    Args:
        rubric: The rubric with the accepted edits; the old one if there are none. `dump(rubric, path)` changes the file
            where it differs, and keeps its comments.
        edits: One for each kind, in the order in which they were tried.
        n: The labels that were used.
        baseline: The agreement of the old rubric.
        constant: The agreement of the best judge that always says the same.
        risk: How often a rubric that cannot gain is changed.
        measure: What agrees: `verdicts` or `scores`.
        ungraded: The labelled candidates that are left out, since the judge failed.
        notes: What is not as the figures assume.
    """

    _truth = ".accepted"

    rubric: Rubric = field(repr=False)
    edits: tuple[Edit, ...]
    n: int
    baseline: float
    constant: float
    risk: float
    measure: Literal["verdicts", "scores"] = "verdicts"
    ungraded: int = 0
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[Edit, ...]:
        """The accepted edits."""
        return tuple(edit for edit in self.edits if edit.accepted)

    @property
    def usage(self) -> Usage:
        """What all edits took."""
        return Usage.total(edit.usage for edit in self.edits)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        shown = f"{self.n:,} labels"
        took = f"; {self.usage.calls:,} calls" if self.usage.calls else ""
        if not self.accepted:
            so_far = f"the rubric, which agrees with {self.baseline:.0%} of {shown}"
            return f"No edit is shown to be better than {so_far}{took}."
        changes = "; ".join(edit.change for edit in self.accepted)
        last = self.accepted[-1]
        gain = f"agreement rises from {self.baseline:.0%} to {last.honest:.0%} of {shown}, cross-fitted"
        return f"{changes}: {gain}{took}."

    def remarks(self) -> list[str]:
        """What to know before the rubric is changed."""
        some = [edit for edit in self.edits if not edit.accepted and edit.missing]
        of_scores = ["Agreement is 1 less the mean distance of scores, in 0..1."] if self.measure == "scores" else []
        left_out = f"{counted(self.ungraded, 'labelled candidate')} without a grade left out."
        return [
            *of_scores,
            *([left_out] if self.ungraded else []),
            f"A judge that always says the same agrees with {self.constant:.0%}.",
            *(
                f"{e.change or e.kind}: some {counted(e.missing or 0, 'label')} more may show whether it is better."
                for e in some
            ),
            *(f"{e.kind}: {e.why}." for e in self.edits if e.why),
            *self.notes,
        ]

    def tables(self) -> list[Table]:
        """Each kind of edit in a row."""
        head = ("edit", "best change", "before", "apparent", "honest", "p", "calls", "accepted")
        rows: list[tuple[object, ...]] = [
            (e.kind, e.change or "–", e.before, e.apparent, e.honest, e.p, e.calls, "yes" if e.accepted else "no")
            for e in self.edits
        ]
        return [("Agreement with people", head, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data; a rubric is named by its digest."""
        kept: dict[str, Any] = asdict(self, filter=lambda attribute, _: attribute.name not in ("rubric", "proposals"))
        for shown, edit in zip(kept["edits"], self.edits, strict=True):
            shown["calls"], shown["cost"] = edit.calls, edit.usage.cost
            shown["proposals"] = [
                {
                    "change": one.change,
                    "agreement": one.agreement,
                    "fold": one.fold,
                    "calls": one.usage.calls,
                    "cost": one.usage.cost,
                    "digest": one.rubric.digest,
                }
                for one in edit.proposals
            ]
        return {"kind": "alignment", "sentence": self.sentence, **kept, "digest": self.rubric.digest}
