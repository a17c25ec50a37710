"""
Labels: what people say about candidates, read from a file, a frame or a mapping.

A label belongs to a candidate by its key, or by its place among the candidates, and to a criterion or, without one, to
the whole verdict. Its value is what the judge could have said too: a point of the criterion's scale, a name of an
option, yes or no. It is checked against the criterion when it is compared with grades, since only they know the rubric.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import product
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

from attrs import evolve, field, frozen

from rubric import DefinitionError
from rubric.embed import NoTruth, Wording, counted, fields, guided, rows_in, shorten
from rubric.results import Record
from rubric.view.cards import name_of_result

if TYPE_CHECKING:
    import pandas as pd

Value = bool | float | str

_CALLED = {
    "key": ("id", "case", "case_id", "candidate", "item", "name", "uid", "sample", "row"),
    "value": ("label", "labels", "verdict", "score", "grade", "rating", "human", "gold", "passed", "pass"),
}
"""What the columns of labels are called elsewhere, for the cure of a missing one."""

OUTCOMES: dict[str, bool] = {
    **dict.fromkeys(("pass", "passed", "met", "satisfied", "good", "accepted", "ok"), True),
    **dict.fromkeys(("fail", "failed", "unmet", "not met", "unsatisfied", "bad", "rejected", "borderline"), False),
    **dict.fromkeys(("nok", "not ok"), False),
}
SAID: dict[str, bool] = {
    **OUTCOMES,
    **dict.fromkeys(("yes", "true", "y", "1", "1.0"), True),
    **dict.fromkeys(("no", "false", "n", "0", "0.0"), False),
}
"""Words for a yes and a no: of the whole, and of any criterion."""

_JOINED = "Labels([evolve(row, rater=who) for who, rows in {'ann': a, 'bob': b}.items() for row in rows])"

_LONGEST_KEY = 40  # of a candidate; a longer one is a text
_SEEN = {"yes", "true", "1"}

_FIELDS = ("key", "index", "rater", "criterion", "value", "weight", "judge_seen", "reason")


@guided
@frozen
class Label(NoTruth):
    """
    One label.

    Args:
        key: The key of the candidate, or its place from 0.
        value: A point of the criterion's scale, the name of an option, or a verdict.
        criterion: The id of the criterion; empty for the whole.
        rater: The person; empty where there is one.
        weight: How many candidates it represents, where some were more likely to be drawn for labelling than others.
        place: Where it was written, for errors.
        judge_seen: True if the person had looked at the judge's verdict; figures leave such a label out, unless
            `Labels.with_seen` is given.
        reason: Why, in the person's words; the writer of `align` is shown it.
    """

    _truth = ".value"

    key: str
    value: Value
    criterion: str = ""
    rater: str = ""
    weight: float = 1.0
    place: str = ""
    judge_seen: bool = False
    reason: str = ""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "weight", fields.check_number("weight", self.weight, 0, above=True))


def _as_rows(given: Iterable[Label] | Mapping[Any, Any]) -> tuple[Label, ...]:
    wanted = "a mapping such as {key: value} (by place, write Labels(dict(enumerate(values)), by='index')), or Label "
    wanted += "rows; a file is for Labels.read(path), a frame for Labels.from_pandas(frame)"
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise fields.refuse("labels", given, wanted)
    rows = tuple(_of_mapping(given) if isinstance(given, Mapping) else given)
    for row in rows:
        if not isinstance(row, Label):
            raise fields.refuse("labels", row, wanted)
    return rows


@guided
@frozen(repr=False)
class Labels(NoTruth):
    """
    Many labels, as they were given.

    Args:
        rows: Labels; or a mapping from the key of a candidate to a value, to a list of values (one a rater), or to a
            mapping from criteria to either.
        by: `key`: the keys are those of candidates. `index`: they are places among the candidates, from 0. None: keys,
            where the results that they are compared with have any, else places.
        counts_seen: True to count labels with `judge_seen` too; figures then say so.

    Raises:
        DefinitionError: A value is not a label, or a rater labels the same thing twice.

    Example:
        >>> len(Labels({"a": True, "b": {"clarity": [7, 8]}}))
        3
    """

    _truth = "its length: len(labels)"

    rows: tuple[Label, ...] = field(converter=_as_rows)
    by: Literal["key", "index"] | None = None
    counts_seen: bool = False

    def __attrs_post_init__(self) -> None:
        named = Counter((row.key, row.criterion, row.rater) for row in self.rows)
        if twice := [name for name, count in named.items() if count > 1]:
            row = [row for row in self.rows if (row.key, row.criterion, row.rater) == twice[0]][1]
            said = f"{row.rater or 'the one rater'} labels {row.criterion or 'the whole'} of {row.key!r} twice"
            raise DefinitionError(
                row.place or "labels", f"{said}; keep one, or name each rater: from attrs import evolve; {_JOINED}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.rows)

    def __repr__(self) -> str:
        if not self.rows:
            return "<Labels: none>"
        criteria = ", ".join(name or "the whole" for name in self.criteria)
        keys = counted(len({row.key for row in self}), "candidate")
        return f"<Labels: {counted(len(self), 'label')} of {keys}, {criteria}>"

    @property
    def criteria(self) -> tuple[str, ...]:
        """The criteria that are labelled, the whole as an empty text, in the order in which they first come."""
        return tuple(dict.fromkeys(row.criterion for row in self.rows))

    @property
    def raters(self) -> tuple[str, ...]:
        """The raters, in the order in which they first come."""
        return tuple(dict.fromkeys(row.rater for row in self.rows))

    @property
    def with_seen(self) -> Labels:
        """The same labels, of which those given after a look at the verdict count too: they flatter a judge."""
        return evolve(self, counts_seen=True)

    def replace(self, values: Mapping[Any, Value]) -> Labels:
        """Return the same labels with other words for these *values*, such as `{"gut": "pass"}`."""
        return evolve(self, rows=[evolve(row, value=values.get(row.value, row.value)) for row in self])

    def counts(self, label: Label) -> bool:
        """True if figures count *label*, one of these."""
        return self.counts_seen or not label.judge_seen

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that tell these labels from others, in whatever order they stand."""
        rows = sorted(repr((row.key, row.criterion, row.rater, row.value)) for row in self)
        return sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def rows_by_name(self, keys: Sequence[str], places: Sequence[int]) -> tuple[dict[str, list[int]], str]:
        """Return the rows of candidates with *keys* and *places* by the names of labels, and what these are by."""
        by = self.by or ("key" if any(keys) else "index")
        rows: dict[str, list[int]] = {}
        for row, name in enumerate(keys if by == "key" else map(str, places)):
            rows.setdefault(name, []).append(row)
        return rows, by

    def said_of(self, grades: Any) -> dict[str, dict[str, str]]:
        """Return what is said of each candidate, by the name of its row and the criterion, for `grades.report`."""
        places = [n if each.index is None else each.index for n, each in enumerate(grades)]
        rows, _ = self.rows_by_name([each.key for each in grades], places)
        found: dict[str, dict[str, str]] = {}
        for label in self:
            value = ("no", "yes")[label.value] if isinstance(label.value, bool) else str(label.value)
            who = ": ".join(filter(None, (label.rater, label.reason)))
            for row in rows.get(label.key, ()):
                said = found.setdefault(name_of_result(grades[row], row), {})
                words = filter(None, (said.get(label.criterion), f"{value} ({who})" if who else value))
                said[label.criterion] = "; ".join(words)
        if not found:
            raise DefinitionError("labels", "none is of one of these candidates")
        return found

    @property
    def places(self) -> tuple[str, ...]:
        """8 hexadecimal digits for the candidate and the criterion of each label."""
        return tuple(Record.place_of(row.key, row.criterion) for row in self)

    @classmethod
    def read(
        cls, path: str | PathLike[str], *, columns: Mapping[str, str] | None = None, raters: Iterable[str] = ()
    ) -> Labels:
        """
        Read a file with a label a row, or a wide table with a column a rater.

        Its columns are `key` or `index`, `value`, and where there are any `criterion`, `rater`, `weight`, `judge_seen`,
        `reason`.

        Args:
            path: A file of rows of any kind that `grade_many` reads: CSV, TSV, JSON, JSON lines, Parquet or Excel.
            columns: The column of each field that has another name, such as `{"key": "id", "value": "label"}`.
            raters: Of a wide table: the columns that hold what each rater says; empty cells are not labels. Of a table
                with a column of values: the name of its one rater.

        Raises:
            DefinitionError: The file is of another kind, a column is missing, or a row has no value.
        """
        file = fields.as_path("path", path)
        return cls(*_of_rows(rows_in("path", file), dict(columns or {}), file.name, _as_raters(raters)))

    @classmethod
    def from_pandas(
        cls, frame: pd.DataFrame, *, columns: Mapping[str, str] | None = None, raters: Iterable[str] = ()
    ) -> Labels:
        """
        Return the labels in *frame*, with columns and raters as for `read`; a missing value is not a label.

        Raises:
            DefinitionError: A column is missing.
        """
        if not hasattr(frame, "columns"):
            raise fields.refuse("frame", frame, "a frame; a column is Labels(dict(enumerate(column)), by='index')")
        rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")  # as polars has it
        records = ((f"labels[{n}]", row) for n, row in enumerate(rows))
        return cls(*_of_rows(records, dict(columns or {}), "labels", _as_raters(raters)))

    @classmethod
    def by_rater(cls, given: Mapping[Any, Mapping[str, Any]], criterion: str = "") -> Labels:
        """
        Return the labels in a mapping `{key: {rater: value}}`, of the whole or of one *criterion*.

        Example:
            >>> Labels.by_rater({"a": {"ann": True, "bob": False}}).raters
            ('ann', 'bob')
        """
        rows = []
        for key, said in given.items():
            if not isinstance(said, Mapping):
                raise fields.refuse(f"labels[{key!r}]", said, 'what each rater says, such as {"ann": True}')
            for rater, value in said.items():
                place = f"labels[{key!r}][{rater!r}]"
                if not _is_missing(value):
                    rows.append(Label(_name(key, place), _value(value, place), criterion, str(rater), place=place))
        return cls(rows)


def as_labels(value: Any) -> Labels:
    """Return *value* as labels; a mapping is made into them, and a path is read."""
    if isinstance(value, Labels):
        return value
    if isinstance(value, Mapping):
        return Labels(value)
    is_series = hasattr(value, "to_dict") and hasattr(value, "keys")  # of pandas, as a frame is
    is_frame = is_series and hasattr(value, "columns")
    if is_frame or isinstance(value, str | PathLike):
        call = "from_pandas(labels" if is_frame else f"read({str(value)!r}"
        try:
            return Labels.from_pandas(cast("pd.DataFrame", value)) if is_frame else Labels.read(value)
        except DefinitionError as error:  # here no columns are named
            said = error.message
            if isinstance(said, Wording):
                said = said.render(lambda name, given: f"Labels.{call}, {name}={given!r})")
            raise DefinitionError(error.field, said) from None
    if is_series:
        is_named = isinstance(next(iter(value.keys()), 0), str)  # by what its index has
        line = "labels.to_dict()" if is_named else "Labels(dict(enumerate(labels)), by='index')"
        raise DefinitionError("labels", f"a column is read by its index; write {line}")
    cure = (
        " (by place, write from rubric.trust import Labels; Labels(dict(enumerate(labels)), by='index'))"
        if isinstance(value, list | tuple) or hasattr(value, "tolist")
        else ""
    )
    raise fields.refuse("labels", value, f"Labels, a mapping such as {{key: value}}{cure}, or the path of a file")


# -- mappings ----------------------------------------------------------------------------------------------


def _of_mapping(given: Mapping[Any, Any]) -> Iterator[Label]:
    for key, said in given.items():
        name = _name(key, f"labels[{key!r}]")
        for criterion, value in said.items() if isinstance(said, Mapping) else (("", said),):
            place = f"labels[{key!r}]" + (f"[{criterion!r}]" if criterion else "")
            several = isinstance(value, Sequence) and not isinstance(value, str)
            for nth, each in enumerate(value if several else [value], 1):
                if each is not None and each != "":  # as an empty cell of a file
                    yield Label(name, _value(each, place), str(criterion), str(nth) if several else "", place=place)


def _name(key: object, place: str) -> str:
    if isinstance(key, bool) or not (isinstance(key, str) or hasattr(key, "__index__")):
        raise DefinitionError(place, f"expected the key of a candidate, or its place, got {shorten(repr(key))}")
    return str(key)


def _value(value: Any, place: str) -> Value:
    """Return *value* as plain Python has it; NumPy's scalars are the numbers that they are."""
    item = getattr(value, "item", None)
    plain = item() if callable(item) and not isinstance(value, str) else value
    if isinstance(plain, float) and math.isnan(plain):
        raise DefinitionError(place, "expected a number, a text or a verdict, got NaN; leave out what is not labelled")
    if not isinstance(plain, bool | int | float | str):
        raise DefinitionError(place, f"expected a number, a text or a verdict, got {shorten(repr(value))}")
    return plain


# -- rows --------------------------------------------------------------------------------------------------


def _of_rows(
    rows: Iterable[tuple[str, Mapping[str, Any]]], columns: dict[str, str], source: str, raters: Sequence[str]
) -> tuple[list[Label], Literal["key", "index"]]:
    """Return the labels in *rows*, each with its place, and whether they are by key or by index."""
    for name in columns:
        if name not in _FIELDS:
            raise DefinitionError(f"columns.{name}", f"is not a field of a label{fields.suggest(name, _FIELDS)}")
    held, alone = {name: columns.get(name, name) for name in _FIELDS}, ""
    labels: list[Label] = []
    by: Literal["key", "index"] = "key"
    for nth, (place, row) in enumerate(rows):
        if not isinstance(row, Mapping):
            raise fields.refuse(place, row, 'an object such as {"key": "a", "value": true}')
        if not nth:
            alone = _one_rater(raters, held, row)
            raters = () if alone else raters
            is_placed = "index" in columns and "key" not in columns  # whatever else the rows have
            by = "key" if held["key"] in row and not is_placed else "index"
            _check_columns(held, by, row, source, raters)
        cells: dict[str, tuple[Any, Any]] = {rater: (rater, row.get(rater)) for rater in raters}
        for column, (rater, value) in (
            cells or {"value": (alone or row.get(held["rater"]), row.get(held["value"]))}
        ).items():
            if _is_missing(value):
                continue
            key = row.get(held[by])
            if _is_missing(key):
                raise DefinitionError(f"{place}.{by}", "expected the name of a candidate, got nothing")
            said = _plain(key), _value(value, f"{place}.{column}"), _plain(row.get(held["criterion"])), _plain(rater)
            weight, reason = _weight(row.get(held["weight"]), place), _plain(row.get(held["reason"]))
            seen = _plain(row.get(held["judge_seen"])).casefold() in _SEEN
            labels.append(Label(*said, weight, place, seen, reason))
    return labels, by


def _as_raters(given: Iterable[str]) -> tuple[str, ...]:
    return fields.as_tuple("raters", given, str, 'names of columns, such as ["ann", "bob"]')


def _one_rater(raters: Sequence[str], held: Mapping[str, str], row: Mapping[str, Any]) -> str:
    """Return the name of the rater of all values; empty where raters are columns, also with an error in writing."""
    is_one = len(raters) == 1 and held["value"] in row and not {raters[0], held["rater"]} & row.keys()
    return raters[0] if is_one and "did you mean" not in fields.suggest(raters[0], map(str, row)) else ""


def _check_columns(
    held: Mapping[str, str], by: str, row: Mapping[str, Any], source: str, raters: Sequence[str]
) -> None:
    if raters and (idle := [name for name in ("rater", "value") if held[name] != name]):
        why = "is not read where raters name the columns; leave out one of the two"
        raise DefinitionError(f"columns.{idle[0]}", why)
    for rater in raters:
        if rater not in row:
            raise DefinitionError(source, f"there is no column {rater!r}{fields.suggest(rater, map(str, row))}")
    wanted = [name for name in (by, *(() if raters else ("value",))) if held[name] not in row]
    free = [str(column) for column in row if column not in held.values()]
    columns = {name: column for name, column in held.items() if column != name and column in row}
    lacking = ["key" if name == "index" else name for name in wanted]
    for is_known, name in product((True, False), lacking):  # by its name, or else the first that may be one
        spare = [each for each in free if len(str(row[each])) <= _LONGEST_KEY]
        spare = sorted(free, key=lambda each: not _is_said(row[each])) if name == "value" else spare
        likely = next((column for column in spare if not is_known or column.lower() in _CALLED[name]), None)
        if likely is not None and name not in columns:
            columns[name] = free.pop(free.index(likely))
    if wanted:
        named = ["key or index" if name == "index" else name for name in wanted]
        it = f"it {named[0].split()[0]}" if len(named) == 1 else "them key and value"
        call = f"call {it} in the file"
        cures = (Wording("name it: ", columns=columns), call) if {*lacking} <= columns.keys() else (call,)
        why = f"expected a column {' and a column '.join(named)}, and there is none; "
        placed = "; if they are in the order of the results, add a column index, from 0" if "index" in wanted else ""
        raise DefinitionError(source, Wording(why, cures, f" (there are: {', '.join(map(str, row))}){placed}"))


def _is_said(value: Any) -> bool:
    """True if *value* is a number, or a word for a verdict."""
    with suppress(ValueError):
        return math.isfinite(float(value))
    return str(value).strip().casefold() in SAID


def _plain(value: Any) -> str:
    if _is_missing(value):
        return ""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value).strip()


def _weight(value: Any, place: str) -> float:
    if _is_missing(value):
        return 1.0
    with suppress(TypeError, ValueError):
        if 0 < (weight := float(value)) < math.inf:
            return weight
    raise DefinitionError(f"{place}.weight", f"expected a number above 0, got {shorten(repr(value))}")


def _is_missing(value: Any) -> bool:
    return fields.is_missing(value) or value == ""
