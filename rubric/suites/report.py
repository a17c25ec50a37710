"""
The report of a run: a `Row` for each case, as plain data with all secrets masked, from which every reporter renders.

`Report.to_dict` and `Report.from_dict` are its versioned form: for other programs, and for baselines.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from attrs import asdict, field, frozen

from rubric import DefinitionError, Grade, Grades, Ungraded
from rubric.driving import Usage
from rubric.embed import TOLERANCE, Listed, NoTruth, RowBuilder, Status, fields, guided, read_json, shorten
from rubric.results import Plain, Row

if TYPE_CHECKING:
    from rubric.suites.baseline import Comparison


Deferred = Literal["pass", "fail", "error"]
"""What a deferred case counts as: a pass, a fail, or an error (the default)."""

PASSED, FAILED, ERROR = 0, 1, 2


@guided
@frozen(repr=False)
class Report(NoTruth, Listed[Row], Plain):
    """
    The results of every case of a suite.

    Args:
        suite: The suite's name.
        rows: One for each case, in the suite's order.
        deferred: What deferred cases count as.
        warnings: What the suite's file says and the run did not do, each with its place.
        version: Of the library that made it.
        duration: Seconds that the run took.
    """

    _kind = "case"
    _items = "rows"

    suite: str
    rows: tuple[Row, ...] = ()
    deferred: Deferred = field(default="error", validator=fields.one_of("pass", "fail", "error"))
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
        """The usage of the whole run."""
        return sum((row.usage for row in self.rows), Usage())

    @property
    def grades(self) -> Grades:
        """
        The results of all cases but the deferred ones; the key of each is the id of its case.

        Raises:
            DefinitionError: The report was read from a file, which holds no whole results.
        """
        held = [row for row in self.rows if row.status != "deferred"]
        results = [row.result for row in held if row.result is not None]
        if len(results) < len(held):
            cure = (
                "write them beside it after the run, report.grades.to_jsonl(path), and read them by Grades.read_jsonl"
            )
            raise DefinitionError("grades", f"a report from a file holds no whole results; {cure}")
        return Grades(results)

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

    def exit_code_at(self, min_pass_rate: float) -> int:
        """
        Return `exit_code` where it is enough that a share of the graded cases passes.

        Args:
            min_pass_rate: The smallest share, 0 to 1. What is ungraded or deferred counts as before.
        """
        fields.check_number("min_pass_rate", min_pass_rate, 0, 1)
        counts = self.counts
        is_enough = counts["passed"] >= min_pass_rate * (counts["passed"] + counts["failed"]) - TOLERANCE
        waits = counts["deferred"] and self.deferred == "fail"
        return PASSED if is_enough and not waits and self.exit_code == FAILED else self.exit_code

    @property
    def passed(self) -> bool:
        """True if there are cases, and every one passed (or was deferred, if that counts as a pass)."""
        return self.exit_code == PASSED

    @property
    def tally(self) -> str:
        """The counts without zeros, such as `3 passed, 1 failed`."""
        return ", ".join(f"{count} {status}" for status, count in self.counts.items() if count) or "no cases"

    def __repr__(self) -> str:
        return f"<Report {self.suite!r}: {self.tally}, {self.usage}>"

    def __str__(self) -> str:
        return self.render().strip()

    def _repr_html_(self) -> str:
        from rubric.view.suite_page import card  # noqa: PLC0415 - only notebooks need it

        return card(self)

    def _repr_markdown_(self) -> str:
        return self.render("md")

    def render(self, reporter: str = "pretty") -> str:
        """
        Return the report as text.

        Args:
            reporter: `pretty`, `json`, `ndjson`, `csv`, `junit`, `tap`, `md`, `html`, `sarif`, `github`, `gitlab`, or
                one that another distribution registers in the entry points `rubric.reporters`.

        Raises:
            DefinitionError: There is no such reporter, or one of another distribution is broken.
        """
        from rubric.suites.reporters import registry  # noqa: PLC0415 - each reporter is imported on first use

        return registry.reporter(reporter).render(self)

    def write(self, path: str | PathLike[str], reporter: str | None = None, *, against: Report | None = None) -> Path:
        """
        Write the report to the file *path*, in UTF-8, and return its path.

        Args:
            path: The file; missing folders are made.
            reporter: As for `render`; None selects one by the ending of *path*.
            against: An earlier report: the page (`.html`) then shows what changed.

        Raises:
            DefinitionError: There is no such reporter, or none for this ending; or *against* is given without a page,
                or shares no case.
            OSError: The file cannot be written.
        """
        from rubric.suites.reporters import registry  # noqa: PLC0415 - as above

        file = fields.as_path("path", path)
        chosen = registry.reporter_for(path) if reporter is None else registry.reporter(reporter)
        if against is None:
            text = chosen.render(self)
        elif chosen.name == "html":
            from rubric.view.comparison_page import comparison_page  # noqa: PLC0415 - as above

            text = comparison_page(self.rows, against.rows, self.suite)
        else:
            message = f"only a page shows two reports, and {str(path)!r} is none: end it in .html"
            raise DefinitionError("against", f"{message}; report.against(earlier) has the changes as a value")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        return file

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON-able data, under a versioned schema; `Row.result` is left out."""
        return {"schema": SCHEMA, "summary": summary(self), **super().to_dict()}

    @classmethod
    def of(cls, results: Iterable[Grade | Ungraded], name: str = "", *, duration: float = 0.0) -> Self:
        """Return the report of *results* of no suite, such as `Grades`: `Report.of(grades).write("run.md")`."""
        return cls(name, tuple(map(RowBuilder().of, results)), duration=duration)

    @classmethod
    def from_dict(cls, data: Any, source: str = "the report") -> Self:
        """
        Return the report that `to_dict` turned into *data*; its rows have no `result`.

        Args:
            source: Where the data is from, for errors.

        Raises:
            DefinitionError: The data has another form; the message lists what is wrong.
        """
        found = data.get("schema") if isinstance(data, dict) else data
        if found not in (SCHEMA, *_EARLIER):
            message = f"expected data with the schema {SCHEMA!r}, got {shorten(repr(found), 80)}"
            raise DefinitionError(source, f"{message}; write it with the reporter 'json'")
        body = {key: value for key, value in data.items() if key not in ("schema", "summary")}
        return super().from_dict(body, source)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Report:
        """
        Return the report that the reporter `json` wrote to *path*.

        Raises:
            DefinitionError: The file holds no report; the message lists what is wrong.
            OSError: The file cannot be read.
        """
        try:
            data = read_json(fields.as_path("path", path).read_bytes())
        except (ValueError, RecursionError) as problem:
            message = f"expected a report in JSON, as `grade SUITE --out report.json` writes it: {problem}"
            raise DefinitionError(str(path), message) from None
        return cls.from_dict(data, str(path))

    def against(self, baseline: Report | str | PathLike[str], *, largest_drop: float | None = None) -> Comparison:
        """
        Compare this report with a *baseline*: what is better or worse, and whether it is no worse than allowed.

        Args:
            baseline: An earlier report, or the file that holds it.
            largest_drop: How far the score of a case, and the mean of the cases, may fall, in 0..1. None sets no limit;
                a case that passed and no longer does is a step back either way.

        Raises:
            DefinitionError: The file holds no report.
        """
        from rubric.suites.baseline import compare  # noqa: PLC0415 - as above

        return compare(self, _report_of(baseline), largest_drop=largest_drop)

    def compare(self, baseline: Report | str | PathLike[str], *, risk: float = 0.05) -> Comparison:
        """
        Compare this report with a *baseline*, and fail only where chance does not explain a drop.

        A judge that is asked twice differs from itself in a few cases. `against` fails for one of them; this fails if
        the interval of the drop, over the cases that both runs graded, lies above 0. The comparison states its power,
        since few cases show only large drops.

        Args:
            baseline: As for `against`.
            risk: How often a comparison with an unchanged system may fail, in 0..0.5.
        """
        from rubric.suites.baseline import compare  # noqa: PLC0415 - as above

        return compare(self, _report_of(baseline), risk=risk)


def _report_of(baseline: Report | str | PathLike[str]) -> Report:
    return baseline if isinstance(baseline, Report) else Report.load(baseline)


# -- plain data ------------------------------------------------------------------------------------------

SCHEMA = "rubric-report/4"
"""The version of the form. A number after the slash that is higher than this one is a form that readers must learn."""
_EARLIER = ("rubric-report/3", "rubric-report/2")  # keys that came later have their defaults


def summary(report: Report) -> dict[str, Any]:
    """Return the result of the whole *report* as plain data."""
    from rubric.suites.repetition import flips, pass_rates  # noqa: PLC0415 - most reports have one run of each case

    rates, found = pass_rates(report), flips(report)
    whole = Grades([row.result for row in report if row.result is not None]).summary()
    figures = () if whole.mean is None else ("pass_rate", "pass_interval", "mean", "mean_interval")
    return {
        "passed": report.passed,
        "exit_code": report.exit_code,
        "cases": len(report),
        "counts": dict(report.counts),
        "usage": asdict(report.usage),
        **{name: getattr(whole, name) for name in figures},
        **(found.to_dict() if len(found) else {}),
        **(rates.to_dict() if len(rates) else {}),
    }


_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


def dump_json(data: Any, *, indent: int | None = None) -> str:
    """Return *data* as JSON that any reader takes: it can be encoded, and its only line ends are those of *indent*."""
    text = json.dumps(data, ensure_ascii=False, indent=indent, allow_nan=False, default=str)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
