"""
The verdicts of two sides on one row, and whether a difference is one that `docs/reference/compatibility.md` names.

A row is not graded where it has an error there, or is ungraded or deferred here: both are the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from rubric.results.report_rows import Row
from tests.places import ROOT

PAGE = ROOT / "docs/reference/compatibility.md"
NEAR = 1e-6
"""Scores that are so near are equal."""


@frozen
class Verdict:
    """What one side says of a row: None for *passed* where it is not graded, for the reason *why*."""

    passed: bool | None
    score: float | None = None
    why: str = ""

    def __str__(self) -> str:
        if self.passed is None:
            return f"not graded ({self.why[:110]})"
        score = "" if self.score is None else f" {self.score:.4g}"
        return f"{'pass' if self.passed else 'fail'}{score}" + (f" ({self.why[:80]})" if self.why else "")


def verdict_of(row: Row) -> Verdict:
    """Return the verdict of a row of ours."""
    if row.status in ("ungraded", "deferred"):
        return Verdict(None, None, f"{row.status}: {row.reason}")
    return Verdict(row.status == "passed", row.score, row.reason)


@frozen
class Pair:
    """
    A row on both sides.

    Args:
        kind: What it tries: the type of an assertion, the name of a file.
        what: The row itself, as far as a reader needs it.
        data: The row's data, for rules of the documentation.
    """

    kind: str
    what: str
    theirs: Verdict
    ours: Verdict
    data: Any = None

    @property
    def is_same(self) -> bool:
        """True if both sides say the same."""
        one, other = self.theirs, self.ours
        if one.passed is None or other.passed is None:
            return one.passed is other.passed
        alike = one.score is None or other.score is None or abs(one.score - other.score) < NEAR
        return one.passed is other.passed and alike


@frozen
class Named:
    """A difference that the documentation has: the first cell of its *row*, and the pairs that it is *about*."""

    row: str
    about: Callable[[Pair], bool]


def rows_of_page(system: str) -> set[str]:
    """Return the first cells of the tables of the page that are about *system*, and of those about all."""
    parts = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    own = [part for part in parts if part.startswith(("Everywhere\n", f"{system}\n"))]
    return {line.split("|")[1].strip() for part in own for line in part.splitlines() if line.startswith("|")}


def report(system: str, pairs: Sequence[Pair], named: Sequence[Named]) -> tuple[str, int]:
    """Return the table of *pairs*, their differences, and how many of these the documentation does not name."""
    unknown = [one.row for one in named if one.row not in rows_of_page(system)]
    counts: Counter[str] = Counter()
    told: Counter[str] = Counter()
    silent: list[Pair] = []
    for pair in pairs:
        found = None if pair.is_same else next((one.row for one in named if one.about(pair)), "")
        counts["the same" if found is None else "named" if found else "not named"] += 1
        if found:
            told[found] += 1
        elif found is not None:
            silent.append(pair)
    kinds = {pair.kind.removeprefix("not-") for pair in pairs}
    lines = [f"{len(pairs):,} rows of {len(kinds)} kinds", *(f"  {what}: {n:,}" for what, n in counts.most_common())]
    lines += [f"  named {n:4}  {row}" for row, n in told.most_common()]
    lines += [_shown(pair) for pair in silent]
    lines += [f"the page has no row {row!r}" for row in unknown]
    return "\n".join(lines), len(silent) + len(unknown)


def _shown(pair: Pair) -> str:
    return f"NOT NAMED  {pair.kind}  {pair.what[:260]}\n    there: {pair.theirs}\n    here:  {pair.ours}"
