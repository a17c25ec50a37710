"""What the run of a suite came to: one `Report`, from which every reporter renders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from rubric.containers import Listed, NoTruth
from rubric.exchanges import Usage
from rubric.suites.rows import Row, Status
from rubric.validating import as_path, one_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from rubric.suites.comparing import Comparison

__all__ = ["Deferred", "Report"]

Deferred = Literal["pass", "fail", "error"]
"""What a deferred case counts as: a pass, a fail, or an error (the default)."""

PASSED, FAILED, ERROR = 0, 1, 2


@frozen(repr=False)
class Report(NoTruth, Listed[Row]):
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

    _noun = "case"

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
        """
        0: every case passed; 1: one failed; 2: there is none, or one is ungraded.

        Deferred cases count as `deferred` says: by default as 2.
        """
        counts = self.counts
        if not self.rows or counts["ungraded"] or (counts["deferred"] and self.deferred == "error"):
            return ERROR
        return FAILED if counts["failed"] or (counts["deferred"] and self.deferred == "fail") else PASSED

    @property
    def passed(self) -> bool:
        """Whether there are cases, and every one passed (or was deferred, where that counts as a pass)."""
        return self.exit_code == PASSED

    @property
    def _listed(self) -> Sequence[Row]:
        return self.rows

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"<Report {self.suite!r}: {counts or 'no cases'}, {self.usage}>"

    def _repr_markdown_(self) -> str:
        return self.render("md")

    # -- reporters: each is imported when it is first used -------------------------------------------------

    def render(self, reporter: str = "pretty") -> str:
        """
        Return the report as text.

        Args:
            reporter: `pretty`, `json`, `ndjson`, `junit`, `tap`, `md`, `html`, `sarif` or `gitlab`.

        Raises:
            DefinitionError: There is no such reporter.
        """
        from rubric.suites import reporters  # noqa: PLC0415 - reporters import reports

        return reporters.reporter(reporter).render(self)

    def write(self, path: str | PathLike[str], reporter: str | None = None) -> Path:
        """
        Write the report to the file *path*, in UTF-8, and return its path.

        Args:
            path: The file; folders that are missing are made.
            reporter: As for `render`; None lets the ending of *path* decide.

        Raises:
            DefinitionError: There is no such reporter, or the ending stands for none.
            OSError: The file cannot be written.
        """
        from rubric.suites import reporters  # noqa: PLC0415 - as above

        file = as_path("path", path)
        chosen = reporters.reporter_for(path) if reporter is None else reporters.reporter(reporter)
        text = chosen.render(self)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        return file

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON-able data, under a versioned schema; `Row.result` is left out."""
        from rubric.suites.reporters import records  # noqa: PLC0415 - as above

        return records.to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """
        Return the report of which `to_dict` made *data*.

        Raises:
            DefinitionError: Data of another kind; the message lists what is wrong.
        """
        from rubric.suites.reporters import records  # noqa: PLC0415 - as above

        return records.from_dict(data)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Report:
        """
        Return the report that was written to *path* by the reporter `json`.

        Raises:
            DefinitionError: The file holds none; the message lists what is wrong.
            OSError: The file cannot be read.
        """
        from rubric.suites.reporters import records  # noqa: PLC0415 - as above

        return records.loads(as_path("path", path).read_bytes(), str(path))

    # -- baselines -----------------------------------------------------------------------------------------

    def against(self, baseline: Report | str | PathLike[str], *, largest_drop: float | None = None) -> Comparison:
        """
        Return this report beside a *baseline*: what became better or worse, and whether it is no worse than allowed.

        Args:
            baseline: An earlier report, or the file that holds it.
            largest_drop: How far the score of a case, and the mean of the cases, may fall, in 0..1. None sets no limit;
                a case that passed and no longer does is a step back either way.

        Raises:
            DefinitionError: The file holds no report.
        """
        from rubric.suites.comparing import compare  # noqa: PLC0415 - as above

        earlier = baseline if isinstance(baseline, Report) else Report.load(baseline)
        return compare(self, earlier, largest_drop=largest_drop)
