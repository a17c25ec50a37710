"""
Many results together: summarised, filtered, as a table or a frame, and under another rule.

Frames are made by pandas and polars themselves: narwhals would turn the missing verdict of an ungraded candidate into
False, since its booleans on pandas know no missing value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NoReturn, overload

from attrs import evolve, field, frozen

from rubric.errors import CallError, DefinitionError, LoadError, Problem
from rubric.internals.fields import as_found, as_path, refuse, suggest
from rubric.internals.guided import Guided, GuidedABC, guided_class
from rubric.internals.notebooks import as_html, draw, notebook
from rubric.internals.row_files import Broken, csv_text, rows_in
from rubric.internals.text import shorten, table, visible
from rubric.results.plain_data import Record
from rubric.results.restoring import restore, rubrics_of
from rubric.results.result import Grade, JudgeOf, Ungraded
from rubric.results.result_text import headline, verdict
from rubric.results.summary import Summary, digests_of, failures_of, kinds_of, summarise
from rubric.values.answers import Choices, Levels, UnitScale
from rubric.values.findings import Finding
from rubric.values.judges import Cascade, Judge, Jury, Panel
from rubric.values.requests import Usage
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    import polars as pl


_MOST_ROWS, _MOST_LISTED = 40, 10


def _as_results(value: Iterable[Grade | Ungraded]) -> tuple[Grade | Ungraded, ...]:
    if isinstance(value, Grade | Ungraded):  # it can be iterated as well, for its findings
        raise refuse("results", value, "a list of results, such as Grades([grade])")
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise refuse("results", value, "a list of results; those of a file are Grades.read_jsonl(path, rubric)")
    results = tuple(value)
    for index, result in enumerate(results):
        if not isinstance(result, Grade | Ungraded):
            raise refuse(f"results[{index}]", result, "a Grade or an Ungraded, as grade_many gives them")
    return results


_GROUPED_BY = ("tag", "group", "key", "verdict", "rubric", "judge", "member")

_NO_VALUE = "(none)"
"""The group of results without a value."""


_VARIABLE = "Candidate('the reply', variables={'topic': 'refunds'}), or of rows columns={'variables': ['topic']}"


def places_by(
    results: Sequence[Grade | Ungraded | Record], by: str | Callable[[Any], object], cure: str = _VARIABLE
) -> dict[str, list[int]]:
    """
    Return the places of *results*, or of records, that share each value of *by*, as in `Grades.by`.

    Raises:
        DefinitionError: No result has it; the *cure* says how results get it.
    """
    if isinstance(by, list | tuple):
        several = f"; for all of them, a function: lambda result: tuple(result.variables[name] for name in {[*by]})"
        raise refuse("by", by, f"one name{f', such as {by[0]!r}' if by else ''}{several if len(by) > 1 else ''}")
    places: dict[str, list[int]] = {}
    for place, result in enumerate(results):
        for value in _values_of(result, by):
            places.setdefault(value, []).append(place)
    if places or not results:
        return places
    if known := {name for result in results for name in result.variables}:
        others = sorted(one for one in {*_GROUPED_BY, *known} if one != by)
        raise DefinitionError("by", f"no result has {shorten(repr(by), 80)}{suggest(str(by), others)}")
    named = "tag, group, key, verdict, rubric, judge, member, a variable of the candidates or a function of a result"
    raise refuse("by", by, f"{named}; no result here has it: {cure}")


def _values_of(result: Grade | Ungraded | Record, by: str | Callable[[Any], object]) -> Sequence[str]:
    variables = result.variables
    if by == "tag" and "tag" not in variables:
        return result.tags
    said = (
        getattr(result, str(by), None) if by in _GROUPED_BY else {f.id: f.value for f in result.findings}.get(str(by))
    )
    found = by(result) if callable(by) else variables.get(by, said)
    name = getattr(found, "name", found)
    return [] if name is None or name == "" else [str(name)]


def _votes_of(results: Sequence[Grade | Ungraded]) -> dict[str, Grades]:
    """Return the votes of each member, by its name: with its number where others have the same."""
    found: dict[str, list[Grade | Ungraded]] = {}
    for result in results:
        names = [vote.judge.name for vote in result.votes]
        about = {name: getattr(result, name) for name in ("index", "key", "group", "variables", "tags", "candidate")}
        for n, (name, vote) in enumerate(zip(names, result.votes, strict=True), 1):
            found.setdefault(name if names.count(name) == 1 else f"{name} {n}", []).append(evolve(vote, **about))
        if not names:  # it was refused before a judge was asked
            found.setdefault(_NO_VALUE, []).append(result)
    return Groups({name: Grades(votes) for name, votes in found.items()})


class Groups(dict[str, "Grades"]):
    """The results of each group, by its name: a dict that says how a figure of each is had."""

    def __getattr__(self, name: str) -> NoReturn:
        each = (
            f"; write {{group: each.{name} for group, each in grades.by('topic').items()}}"
            if hasattr(Grades, name)
            else ""
        )
        raise AttributeError(f"these are the results of each group{each}", name=name, obj=self)


class Figure(Guided, float):
    """A number that may be called as well: `grades.mean` and, as in pandas, `grades.mean()`."""

    def __call__(self, axis: object = None, dtype: None = None, out: None = None) -> float:  # noqa: ARG002 - NumPy's
        if isinstance(axis, str):
            raise CallError("criterion", f"it is of all criteria; write grades.summary()[{axis!r}].mean")
        return float(self)


@guided_class
@frozen(repr=False)
class Grades(Guided, Sequence[Grade | Ungraded], metaclass=GuidedABC):
    """
    Many results: a sequence that does not change, in the order of the candidates.

    Slices and `filter` give `Grades` again, and several become one by `Grades([*some, *others])`. Printed, or on a
    line of its own in a notebook, it shows its summary, and the results themselves if they are ten at most.
    """

    results: tuple[Grade | Ungraded, ...] = field(default=(), converter=_as_results)
    _end: str = field(default="", kw_only=True, eq=False, alias="end")  # the last line of a whole shard's file
    _spent: Usage | None = field(default=None, kw_only=True, eq=False, alias="spent")  # of a run that was stopped

    @overload
    def __getitem__(self, at: int) -> Grade | Ungraded: ...
    @overload
    def __getitem__(self, at: slice) -> Grades: ...
    def __getitem__(self, at: int | slice) -> Grade | Ungraded | Grades:
        if not isinstance(at, slice) and (hasattr(at, "__len__") or not hasattr(at, "__index__")):
            found = f"{as_found(at)} is not a place among {len(self)}"
            raise TypeError(f"results are in the order of their candidates, so {found}; {self._text_cure(at)}")
        return Grades(self.results[at]) if isinstance(at, slice) else self.results[at]

    def _text_cure(self, at: object) -> str:
        """Return the expression for `grades[at]`: of the result with that key, of columns, or for a condition."""
        condition = "a condition is a function, such as grades.filter(lambda g: g.passed)"
        if not isinstance(at, str):
            is_columns = isinstance(at, list) and all(isinstance(each, str) for each in at)
            return f"write grades.to_pandas()[{at!r}]" if is_columns else condition
        if any(result.key == at for result in self.results):
            return f"write grades.by('key')[{at!r}][0]"
        if at in self._ids():
            return f"each result has its own: [g[{at!r}] for g in grades]"
        is_variable = any(at in result.variables for result in self.results)
        if is_variable or hasattr(Grade, at):
            return f"write [g.{f'variables[{at!r}]' if is_variable else at} for g in grades]; {condition}"
        from rubric.internals.guesses import item_cure  # noqa: PLC0415 - needed for errors alone

        return item_cure(self, at)[2:] or "give one: [0]"

    def __len__(self) -> int:
        return len(self.results)

    def __iter__(self) -> Iterator[Grade | Ungraded]:
        return iter(self.results)

    def __add__(self, others: Grades) -> Grades:
        """Return these results and then *others*."""
        return Grades([*self, *others]) if isinstance(others, Grades) else NotImplemented

    def __call__(self, *_: object) -> NoReturn:
        raise CallError("grades", "results are a value, not a call; leave the brackets out: grades.passed or .failed")

    def count(self, value: object) -> int:
        """Return how often *value* is among the results."""
        return sum(result is value or result == value for result in self.results)

    def __repr__(self) -> str:
        return f"<Grades: {self.summary().line}>"

    def __str__(self) -> str:
        return self._listing() if 0 < len(self) <= _MOST_LISTED else str(self.summary())

    _repr_html_ = as_html

    def to_markdown(self) -> str:
        """Return the summary as Markdown, with a row for each of the first forty results."""
        rows = []
        for n, result in enumerate(self[:_MOST_ROWS]):
            why = f" · {shorten(_why(result), 120)}" if isinstance(result, Ungraded) else ""
            rows.append((_place(result, n), verdict(result), headline(result) + why))
        more = f"\n\n{len(self) - _MOST_ROWS:,} more: report(path)" if len(self) > _MOST_ROWS else ""
        return f"{self.summary().to_markdown()}\n\n{table(('index', 'verdict', 'result'), rows)}{more}"

    _repr_markdown_ = to_markdown

    @property
    def ungraded(self) -> Grades:
        """The results that are not grades."""
        return self.filter(lambda result: isinstance(result, Ungraded))

    @property
    def graded(self) -> Grades:
        """The results that are a grade."""
        return self.filter(lambda result: isinstance(result, Grade))

    @property
    def passed(self) -> Grades:
        """The grades that pass."""
        return self.filter(lambda result: isinstance(result, Grade) and result.passed)

    @property
    def failed(self) -> Grades:
        """The grades that do not pass, borderline ones included."""
        return self.filter(lambda result: isinstance(result, Grade) and not result.passed)

    @property
    def mean(self) -> Figure | None:
        """The mean score of the grades, in 0..1; None if there is no grade. The `summary` has its interval."""
        scores = [result.score for result in self.results if isinstance(result, Grade)]
        return Figure(fmean(scores)) if scores else None

    @property
    def pass_rate(self) -> Figure | None:
        """The share of the grades that pass, in 0..1; None if there is no grade. The `summary` has its interval."""
        passed = [result.passed for result in self.results if isinstance(result, Grade)]
        return Figure(fmean(passed)) if passed else None

    @property
    def usage(self) -> Usage:
        """The usage of all results; of a run that was stopped, of all its requests."""
        return self._spent or Usage.total(result.usage for result in self.results)

    def filter(self, keep: Callable[[Any], object], /) -> Grades:
        """
        Return the results for which *keep* is true.

        As in a data frame, a comparison with a score that is missing is not true: `lambda r: r.score < 0.5` leaves
        ungraded results out.
        """

        if not callable(keep):
            said = isinstance(keep, str) and hasattr(Grade, keep)
            raise refuse("keep", keep, f"a function of a result, such as lambda g: g.{keep if said else 'score > 0.5'}")

        def is_kept(result: Grade | Ungraded) -> object:
            try:
                return keep(result)
            except TypeError:
                if isinstance(result, Grade):
                    raise
                return False

        return Grades(result for result in self.results if is_kept(result))

    def sort(self, by: str | Callable[[Any], Any] = "score", /, *, descending: bool = False) -> Grades:
        """
        Return the results in the order of *by*, the lowest first; those without a value, such as ungraded ones, last.

        Args:
            by: A column of `rows`, such as `score` or `cost`; the id of a criterion; or a function of a result.
            descending: Whether the highest comes first.

        Raises:
            DefinitionError: There is no such column.
        """
        if callable(by):
            values = [by(result) for result in self.results]
        else:
            names = [*_types(self._names(), self._ids())]
            column = by if by in names else f"criterion.{by}"
            if column not in names:
                allowed = [name.removeprefix("criterion.") for name in names if not name.startswith("reason.")]
                raise DefinitionError("by", f"expected a column or a criterion, got {by!r}{suggest(str(by), allowed)}")
            values = [row[column] for row in self.rows()]
        known = [n for n, value in enumerate(values) if value is not None]
        known.sort(key=lambda n: values[n], reverse=descending)
        missing = [n for n, value in enumerate(values) if value is None]
        return Grades(self.results[n] for n in (*known, *missing))

    def worst(self, count: int = 10, /) -> Grades:
        """Return the *count* worst grades, those that fail first, then by score. Ungraded ones are not grades."""
        if not isinstance(count, int) or count < 1:
            raise refuse("count", count, "a number of results, from 1")
        return Grades(sorted(self.graded, key=lambda result: (bool(result.passed), result.outcome.score))[:count])

    def by(self, what: str | Callable[[Any], object], /) -> dict[str, Grades]:
        """
        Return the results of each value of *what* they share; a result with several tags is under each of them.

        Args:
            what: `tag` (of a suite's cases), `group`, `key`, `verdict`, `rubric`, `judge`, the name of a variable of
                the candidates, the id of a criterion (by its answer), or a function of a result. Results without a
                value are under `(none)`. `member` gives the votes of each member of a jury, a panel or a cascade, as
                results of the candidates.

        Raises:
            DefinitionError: No result has it.
        """
        if what == "member" and any(result.votes for result in self.results):
            return _votes_of(self.results)
        groups = places_by(self.results, what)
        if without := sorted({*range(len(self))}.difference(*groups.values())):
            groups[_NO_VALUE] = [*groups.get(_NO_VALUE, ()), *without]
        return Groups({value: Grades(self.results[place] for place in places) for value, places in groups.items()})

    def rescore(
        self, rubric: Rubric | None = None, *, judge: Jury | Panel | Cascade | None = None, **rule: Any
    ) -> Grades:
        """
        Return the `Grade.rescore` of each: no calls; usage is what the findings cost.

        Raises:
            DefinitionError: The criteria are others, or the votes do not fit.
        """
        any_votes = any(not isinstance(result.judge, Judge) for result in self.results)

        def rescore(result: Grade | Ungraded) -> Grade | Ungraded:
            by = None if any_votes and isinstance(result.judge, Judge) else judge  # a refused item has no votes
            return result.rescore(rubric, judge=by, **rule)

        return Grades(rescore(result) for result in self.results)

    def show(self, most: int = 50) -> None:
        """Show the summary and the first *most* results, with why each fell short: in a notebook a card, else text."""
        if (display := notebook()) is not None:
            display.display(self)
            return
        print(self._listing(most))  # noqa: T201 - it is what the caller asked for

    def _listing(self, most: int = _MOST_LISTED) -> str:
        """Return the summary and the first *most* results, with why each fell short."""
        lines = [str(self.summary()), ""]
        for n, result in enumerate(self[:most]):
            head, *details = str(result).splitlines()[:-1]
            lines += [f"{result.key or f'#{_place(result, n)}'}: {head}"]
            details = [line for line in details if not (line.startswith("  warning: ") and line in lines)]  # told once
            lines += [line for line in details if not line.startswith("  ✓")]
        lines += [f"and {len(self) - most:,} more"] if len(self) > most else []
        return visible("\n".join(lines))[0]

    def plot(self, *others: Any) -> alt.VConcatChart:
        """
        Return the scores as a histogram and the criteria with their intervals, as a chart of Altair (extra `plots`).

        Args:
            others: Results whose charts are shown below, such as `thresholds(grades, labels)`.

        Raises:
            ImportError: Altair is not installed.
        """
        for other in others:
            if not hasattr(other, "plot"):
                raise refuse(
                    "others", other, "results with a chart, as thresholds(grades, labels); alone, write grades.plot()"
                )
        chart: alt.VConcatChart = draw("chart_of", self, others)
        return chart

    def report(self, path: str | Path, *, title: str = "", against: Grades | None = None, labels: Any = None) -> Path:
        """
        Write all results to *path* as one HTML page, and return the path.

        The page shows rates, what failed first, why some results are ungraded, each criterion with its interval, and a
        table of all results, to search, filter and sort, with one beside it. It is one file, loads nothing, and runs
        its own script alone.

        Args:
            path: The file; missing folders are made, and an old file is replaced.
            title: The page's; the names of the rubrics if left empty.
            against: An earlier run over the same candidates, or the results of another judge, paired by key, else by
                place. The page then shows what changed: both verdicts with their reasons, and the texts with their
                differences marked.
            labels: `rubric.trust.Labels`, which are shown beside what the judge says, and found where they differ; of
                two judges, with which of them people side.

        Raises:
            DefinitionError: *path* is not a path of a page: it ends in neither `.html` nor `.htm`; no candidate is in
                both runs; or no label is of a candidate.
            OSError: The file cannot be written.
        """
        file = as_path("path", path)
        if file.suffix.lower() not in (".html", ".htm"):
            cure = "to_jsonl(path) writes lines of JSON, to_pandas() has to_csv and the like, and the reports of "
            cure += f"suites are its too: from rubric.suites import Report; Report.of(grades).write({str(path)!r})"
            raise DefinitionError("path", f"expected a file that ends in .html, got {str(path)!r}; {cure}")
        if against is not None and not isinstance(against, Grades):
            raise refuse("against", against, "Grades, such as another run over the same candidates")
        if labels is not None and not hasattr(labels, "said_of"):
            raise refuse("labels", labels, 'Labels, such as Labels.read("labels.csv")')
        page = draw("page_of", self, title, against, {} if labels is None else labels.said_of(self))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page, encoding="utf-8", newline="\n")
        return file

    def summary(self) -> Summary:
        """Return counts, rates with intervals, each criterion, and the usage."""
        summary = summarise(self.results)
        return summary.of_stopped(self._spent) if self._spent else summary

    def rows(self) -> list[dict[str, Any]]:
        """
        Return a flat row a result, all with the same keys, in this order:

        - `index`: the place of the candidate, from 0;
        - `key`, `group`: the candidate's; None if it has none, and left out if no candidate has;
        - `variable.` and a name: each variable of the candidates, as text; None where one has none;
        - `rubric`: the digest of its rubric; left out where all have one;
        - `shown`: the score on the rubric's scale, such as `4.0/5`; left out where all rubrics show it in 0..1;
        - `input`, `output`: the candidate's; None if it has none, or was not kept;
        - `score`: in 0..1; None if ungraded;
        - `passed`: a bool; None if ungraded, unless what is missing cannot change it;
        - `verdict`: `pass`, `borderline`, `fail` or `ungraded`;
        - `low`, `high`: the lowest and the highest score that is still possible;
        - `coverage`: the share of the weight that was judged;
        - `gates`: the ids of the criteria that failed the grade, with commas between them;
        - `criterion.` and an id: what each criterion contributes, in 0..1 with 1 as good; None if nothing; behind it,
          of levels and choices alone, `value.` and the id, the number or the label, and of levels `level.` and the id,
          the words; None if nothing;
        - `failures`: the kinds of failure that left it ungraded, with commas between them; None for a grade;
        - `why`: a description of the first of these failures; None for a grade;
        - `calls`, `prompt_tokens`, `cached_tokens`, `completion_tokens`: what was used;
        - `cost`: in US dollars; None if it is unknown;
        - `reason.` and an id: the judge's reason for each criterion, or why there is no verdict.
        """
        names, ids = self._names(), self._ids()
        return [_row(result, n, names, ids) for n, result in enumerate(self.results)]

    def to_pandas(self) -> pd.DataFrame:
        """Return the `rows` as a frame of pandas (extra `pandas`), with the same types whatever is in them."""
        try:
            import pandas as pd  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise _without("pandas") from error
        types = _types(self._names(), self._ids())
        named = {int: "int64", float: "float64", bool: "boolean", str: "string"}
        frame = pd.DataFrame(self.rows(), columns=[*types])
        return frame.astype({name: named[kind] for name, kind in types.items()})

    def to_polars(self) -> pl.DataFrame:
        """Return the `rows` as a frame of polars (extra `polars`), with the same types whatever is in them."""
        try:
            import polars as pl  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise _without("polars") from error
        named: dict[type, Any] = {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}
        types = _types(self._names(), self._ids())
        return pl.DataFrame(self.rows(), {name: named[kind] for name, kind in types.items()})

    def _names(self) -> list[str]:
        named = [name for name in ("key", "group") if any(getattr(result, name) for result in self.results)]
        variables = dict.fromkeys(f"variable.{name}" for result in self.results for name in result.variables)
        has_scale = any(result.rubric.scale != UnitScale() for result in self.results)
        several = len(digests_of(self.results)) > 1
        return [*named, *variables, *(["rubric"] if several else []), *(["shown"] if has_scale else [])]

    def _ids(self) -> dict[str, list[str]]:
        """Return the ids of all criteria, each with its columns; levels and choices have those of the answer too."""
        found: dict[str, list[str]] = {}
        for rubric in {id(result.rubric): result.rubric for result in self.results}.values():
            for each in rubric.judged:
                answer = each.answer
                count = 1 + isinstance(answer, Levels | Choices) + (isinstance(answer, Levels) and bool(answer.texts))
                columns = [f"{name}.{each.id}" for name in ("criterion", "value", "level")[:count]]
                found[each.id] = max(found.get(each.id, []), columns, key=len)
        return found

    @overload
    def to_jsonl(self, path: None = None) -> str: ...
    @overload
    def to_jsonl(self, path: str | Path) -> None: ...
    def to_jsonl(self, path: str | Path | None = None) -> str | None:
        """
        Return each result with all of its findings as a line of JSON: its `index`, and what its `to_dict` returns.

        `read_jsonl` reads the lines; they name the rubric and the judge by their digests, and do not hold them. The
        results of a whole `Shard`, as they come from grading it, end with a mark for `merge_results`.

        Args:
            path: A file to write the lines to, instead of returning them; an old one is replaced.
        """
        if path is None:
            return "".join(self._lines())
        with Path(path).open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines(self._lines())
        return None

    @classmethod
    def read_jsonl(cls, path: str | Path, rubric: Rubric | Iterable[Rubric], judge: JudgeOf | None = None) -> Grades:
        """
        Return the results in the file at *path*, which `to_jsonl` wrote: equal to those that it was given.

        Args:
            path: Of the file.
            rubric: The rubric, or several where the file has results of more than one.
            judge: The judge; None for the one that is recorded, which can be asked where it was a model name alone. A
                jury, a panel or a cascade is given.

        Raises:
            LoadError: A line is not a result, or of another rubric or judge; it names the line.
        """
        file, rubrics = as_path("path", path), rubrics_of(rubric)
        results, end = [], ""
        for where, data in rows_in("path", file, ".jsonl", broken=Broken):
            try:
                if isinstance(data, Broken):
                    raise DefinitionError("", data.why)
                if isinstance(data, Mapping) and "end_of_shard" in data:
                    end = json.dumps(data) + "\n"
                else:
                    results.append(restore(data, rubrics, judge))
            except (ValueError, TypeError, RecursionError) as problem:
                number = int(where.rpartition(":")[2])
                raise LoadError([Problem(str(file), number, 1, "", str(problem))]) from None
        return cls(results, end=end)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as plain JSON-able data, under `results`; `from_dict` reads it."""
        return {"results": [self._data(result, n) for n, result in enumerate(self.results)]}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], rubric: Rubric | Iterable[Rubric], judge: JudgeOf | None = None
    ) -> Grades:
        """Return the results in *data*, which `to_dict` made; the rest is as for `read_jsonl`."""
        if not isinstance(data, Mapping) or not isinstance(data.get("results"), list):
            raise refuse("data", data, "a mapping that Grades.to_dict returned")
        rubrics = rubrics_of(rubric)
        records = [Record.from_dict(each, f"data.results[{n}]") for n, each in enumerate(data["results"])]
        return cls(restore(record, rubrics, judge) for record in records)

    @overload
    def to_csv(self, path: None = None) -> str: ...
    @overload
    def to_csv(self, path: str | Path) -> None: ...
    def to_csv(self, path: str | Path | None = None) -> str | None:
        """
        Return the `rows` as CSV, under their names; what is None is empty.

        A text that a spreadsheet would run as a formula has a `'` before it.

        Args:
            path: A file to write to, instead of returning the text; an old one is replaced.
        """
        names = [*_types(self._names(), self._ids())]
        text = csv_text([names, *([row[name] for name in names] for row in self.rows())])
        if path is None:
            return text
        as_path("path", path).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        return None

    @staticmethod
    def _data(result: Grade | Ungraded, n: int) -> dict[str, Any]:
        return {"index": _place(result, n), **result.to_dict()}

    def _lines(self) -> Iterator[str]:
        for n, result in enumerate(self.results):
            data = self._data(result, n)
            yield json.dumps(data, ensure_ascii=False, allow_nan=False, default=str) + "\n"
        if self._end:
            yield self._end


def _without(extra: str) -> ImportError:
    return ImportError(f"to_{extra} takes {extra}: pip install 'rubric-grade[{extra}]'", name=extra)


def _place(result: Grade | Ungraded, otherwise: int) -> int:
    return otherwise if result.index is None else result.index


def _why(result: Ungraded) -> str:
    failures = failures_of(result)
    return f"{failures[0].kind}: {failures[0].message}" if failures else "the judge could tell nothing"


def _types(names: Iterable[str], ids: Mapping[str, list[str]]) -> dict[str, type]:
    """Return what a row holds under each key; any of it but the counts may be None."""
    named = {"index": int, **dict.fromkeys((*names, "input", "output"), str)}
    before = {"score": float, "passed": bool, "verdict": str, "low": float, "high": float}
    counts = dict.fromkeys(("calls", "prompt_tokens", "cached_tokens", "completion_tokens"), int)
    judged = {name: float if name.startswith("criterion.") else str for each in ids.values() for name in each}
    after = {"failures": str, "why": str, **counts, "cost": float, **{f"reason.{id_}": str for id_ in ids}}
    return {**named, **before, "coverage": float, "gates": str, **judged, **after}


def _row(result: Grade | Ungraded, n: int, names: Sequence[str], ids: Mapping[str, list[str]]) -> dict[str, Any]:
    low, high = result.bounds
    ungraded, shown = (None, result.shown) if isinstance(result, Grade) else (result, "")
    found = {finding.id: finding for finding in result.findings}
    named = {"key": result.key, "group": result.group, "rubric": result.rubric.digest if "rubric" in names else ""}
    named |= {"shown": shown} | {
        f"variable.{name}": str(value) for name, value in result.variables.items() if value is not None
    }
    return {
        "index": _place(result, n),
        **{name: named.get(name) or None for name in names},
        **{name: getattr(result.candidate, name, "") or None for name in ("input", "output")},
        "score": result.outcome.score,
        "passed": result.passed,
        "verdict": verdict(result),
        "low": low,
        "high": high,
        "coverage": result.coverage,
        "gates": ", ".join(result.outcome.gates),
        **{name: _cell(result.contributions, found, name) for each in ids.values() for name in each},
        "failures": None if ungraded is None else ", ".join(kinds_of(ungraded)),
        "why": None if ungraded is None else _why(ungraded),
        "calls": result.usage.calls,
        "prompt_tokens": result.usage.prompt_tokens,
        "cached_tokens": result.usage.cached_tokens,
        "completion_tokens": result.usage.completion_tokens,
        "cost": result.usage.cost,
        **{f"reason.{id_}": getattr(found.get(id_), "reason", None) for id_ in ids},
    }


def _cell(contributions: Mapping[str, float | None], found: Mapping[str, Finding], name: str) -> float | str | None:
    """Return the cell of the column *name*: what a criterion contributes, or the value or the level that was said."""
    kind, _, id_ = name.partition(".")
    said = contributions.get(id_) if kind == "criterion" else getattr(found.get(id_), kind, None)
    return said if kind == "criterion" else None if said in (None, "") else str(said)
