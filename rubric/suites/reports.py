"""What the run of a suite came to: one `Report`, from which every reporter renders."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from rubric.exchanges import Usage
from rubric.suites.rows import Row, Status
from rubric.validating import one_of

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Deferred", "Report"]

Deferred = Literal["pass", "fail", "error"]
"""What a deferred case counts as: a pass, a fail, or an error (the default)."""

PASSED, FAILED, ERROR = 0, 1, 2


@frozen(repr=False)
class Report:
    """
    What became of every case of a suite.

    Args:
        suite: The suite's name.
        rows: One for each case, in the suite's order.
        deferred: What deferred cases count as.
        warnings: What could not be carried over from the suite's file, each with its place.
        version: Of the library that made it.
        duration: Seconds that the run took.
    """

    suite: str
    rows: tuple[Row, ...] = ()
    deferred: Deferred = field(default="error", validator=one_of("pass", "fail", "error"))
    warnings: tuple[str, ...] = ()
    version: str = ""
    duration: float = 0.0

    @property
    def counts(self) -> dict[Status, int]:
        """How many cases came out each way."""
        found = Counter(row.status for row in self.rows)
        order: tuple[Status, ...] = ("passed", "failed", "ungraded", "deferred")
        return {status: found[status] for status in order}

    @property
    def usage(self) -> Usage:
        """What the whole run used."""
        return sum((row.usage for row in self.rows), Usage())

    @property
    def exit_code(self) -> int:
        """0: every case passed; 1: one failed; 2: one is ungraded or, unless `deferred` says otherwise, deferred."""
        counts = self.counts
        if counts["ungraded"] or (counts["deferred"] and self.deferred == "error"):
            return ERROR
        return FAILED if counts["failed"] or (counts["deferred"] and self.deferred == "fail") else PASSED

    @property
    def passed(self) -> bool:
        """Whether every case passed (or was deferred, where that counts as a pass)."""
        return self.exit_code == PASSED

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, id: str) -> Row:
        """Return the row of the case called *id*."""
        for row in self.rows:
            if row.id == id:
                return row
        raise KeyError(id)

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"<Report {self.suite!r}: {counts or 'no cases'}, {self.usage}>"
