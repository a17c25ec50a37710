"""
Labels: what people say about candidates, read from a file, a frame or a mapping.

A label belongs to a candidate by its key, or by its place among the candidates, and to a criterion or, without one, to
the whole verdict. Its value is what the judge could have said too: a point of the criterion's scale, a name of an
option, yes or no. It is checked against the criterion when it is compared with grades, since only they know the rubric.
"""

from __future__ import annotations

import math
import re
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

_NAMED = r"(?:(?:, )?(?:columns|criteria|raters)=(?:\{.*?\}|\[.*?\]))+"
"""The arguments in a message that a call takes together."""

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
        column: The column that all values were read from, where it is not called `value`.

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
    column: str = field(default="", eq=False)

    def __attrs_post_init__(self) -> None:
        named = Counter((row.key, row.criterion, row.rater) for row in self.rows)
        if twice := [name for name, count in named.items() if count > 1]:
            row = [row for row in self.rows if (row.key, row.criterion, row.rater) == twice[0]][1]
            said = f"{row.rater or 'the one rater'} labels {row.criterion or 'the whole'} of {row.key!r} twice"
            cure = f"keep one, or name each rater: from attrs import evolve; {_JOINED}"
            raise DefinitionError(row.place or "labels", f"{said}; {cure}")

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
        are_verdicts = all(_word(label) in SAID for label in self if not label.criterion)  # of the whole; else scores
        for label in self:
            value, word = str(label.value), _word(label)
            if isinstance(label.value, bool) or (are_verdicts and not label.criterion):
                value = (("fail", "pass") if word in OUTCOMES else ("no", "yes"))[SAID[word]]
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
        cls,
        path: str | PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        raters: Iterable[str] = (),
        criteria: Iterable[str] = (),
    ) -> Labels:
        """
        Read a file with a label a row, or a wide table with a column a rater or a criterion.

        Its columns are `key` or `index`, `value`, and where there are any `criterion`, `rater`, `weight`, `judge_seen`,
        `reason`.

        Args:
            path: A file of rows of any kind that `grade_many` reads: CSV, TSV, JSON, JSON lines, Parquet or Excel.
            columns: The column of each field that has another name, such as `{"key": "id", "value": "label"}`.
            raters: Of a wide table: the columns that hold what each rater says; empty cells are not labels. Of a table
                with a column of values: the name of its one rater.
            criteria: The same of criteria: the columns that hold what is said of each, named by the ids of the rubric;
                or the id of the one that all values are of.

        Raises:
            DefinitionError: The file is of another kind, a column is missing, or a row has no value.
        """
        file = fields.as_path("path", path)
        return cls(*_of_rows(rows_in("path", file), dict(columns or {}), file.name, _wide(raters, criteria)))

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        columns: Mapping[str, str] | None = None,
        raters: Iterable[str] = (),
        criteria: Iterable[str] = (),
    ) -> Labels:
        """
        Return the labels in *frame*, with columns, raters and criteria as for `read`; a missing value is not a label.

        Raises:
            DefinitionError: A column is missing.
        """
        if not hasattr(frame, "columns"):
            raise fields.refuse("frame", frame, "a frame; a column is Labels(dict(enumerate(column)), by='index')")
        rows = frame.to_dicts() if hasattr(frame, "to_dicts") else frame.to_dict("records")  # as polars has it
        records = ((f"labels[{n}]", row) for n, row in enumerate(rows))
        return cls(*_of_rows(records, dict(columns or {}), "labels", _wide(raters, criteria)))

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


def _word(label: Label) -> str:
    return str(label.value).strip().casefold()


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
            said = re.sub(_NAMED, lambda found: f"Labels.{call}, {found[0]})", error.message)
            raise DefinitionError(error.field, said) from None
    if is_series:
        is_named = isinstance(next(iter(value.keys()), 0), str)  # by what its index has
        line = "labels.to_dict()" if is_named else "Labels(dict(enumerate(labels)), by='index')"
        raise DefinitionError("labels", f"a column is read by its index; write {line}")
    by_place = " (by place, write from rubric.trust import Labels; Labels(dict(enumerate(labels)), by='index'))"
    cure = by_place if isinstance(value, list | tuple) or hasattr(value, "tolist") else ""
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
    rows: Iterable[tuple[str, Mapping[str, Any]]], columns: dict[str, str], source: str, wide: _Wide
) -> tuple[list[Label], Literal["key", "index"], bool, str]:
    """Return the labels in *rows*, each with its place, as `Labels` takes them."""
    _check_names(columns)
    held = {name: columns.get(name, name) for name in _FIELDS}
    given, labels = [*rows], list[Label]()
    if odd := next(((place, row) for place, row in given if not isinstance(row, Mapping)), None):
        raise fields.refuse(*odd, 'an object such as {"key": "a", "value": true}')
    first = given[0][1] if given else {}
    alone = _of_all(wide, held, first)
    wide = {name: of for name, of in wide.items() if of and name not in alone}
    is_placed = "index" in columns and "key" not in columns  # whatever else the rows have
    by: Literal["key", "index"] = "key" if not given or (held["key"] in first and not is_placed) else "index"
    if given:
        _check_columns(held, by, [row for _, row in given], source, wide)
    spread = [(name, column) for name, of in wide.items() for column in of]
    for place, row in given:
        for name, column in spread or [("value", held["value"])]:
            if _is_missing(value := row.get(column)):
                continue
            key = row.get(held[by])
            if _is_missing(key):
                raise DefinitionError(f"{place}.{by}", "expected the name of a candidate, got nothing")
            own = {each: _plain(row.get(held[each])) for each in ("criterion", "rater", "reason", "judge_seen")}
            own |= alone | {name: column}
            said = _value(value, f"{place}.{column if spread else name}"), own["criterion"], own["rater"]
            weight, seen = _weight(row.get(held["weight"]), place), own["judge_seen"].casefold() in _SEEN
            labels.append(Label(_plain(key), *said, weight, place, seen, own["reason"]))
    return labels, by, False, "" if spread or held["value"] == "value" else held["value"]


def _check_names(columns: Mapping[str, Any]) -> None:
    for name, column in columns.items():
        if name not in _FIELDS:
            raise DefinitionError(f"columns.{name}", f"is not a field of a label{fields.suggest(name, _FIELDS)}")
        if isinstance(column, list | tuple | set) and name in ("value", "rater", "criterion"):
            of = "raters" if name == "rater" else "criteria"
            said = Wording("several columns have a name of their own; write ", **{of: [*column]})
            raise DefinitionError(f"columns.{name}", said)
        if not isinstance(column, str | int):
            raise fields.refuse(f"columns.{name}", column, "the name of a column")


_Wide = dict[str, tuple[str, ...]]
"""The names of raters and of criteria that are columns, or stand for all values, by the field of a label."""


def _wide(raters: Iterable[str], criteria: Iterable[str]) -> _Wide:
    what = "names of columns, such as {}".format
    people = fields.as_tuple("raters", raters, str, what('["ann", "bob"]'))
    return {"rater": people, "criterion": fields.as_tuple("criteria", criteria, str, what('["clarity", "tone"]'))}


def _of_all(wide: _Wide, held: Mapping[str, str], row: Mapping[str, Any]) -> dict[str, str]:
    """Return the rater and the criterion that all values are of; none where they are columns, or near one."""
    values, found = {held["value"]} & row.keys(), {}
    for name, of in wide.items():
        apart = {each for other, names in wide.items() if other != name for each in names} & row.keys()
        is_one = len(of) == 1 and held[name] not in row and values | apart and of[0] not in row.keys() - values
        if is_one and (of[0] in values or "did you mean" not in fields.suggest(of[0], map(str, row))):
            found[name] = of[0]
    return found


def _check_wide(held: Mapping[str, str], row: Mapping[str, Any], source: str, wide: _Wide) -> None:
    if len(wide) > 1:
        why = "a table has columns of one kind: of raters or of criteria; name one of the two"
        raise DefinitionError("criteria", why)
    for name, of in wide.items():
        many = "raters" if name == "rater" else "criteria"
        for idle in (name, "value"):
            if held[idle] != idle:
                why = f"is not read where {many} name the columns; leave out one of the two"
                raise DefinitionError(f"columns.{idle}", why)
        if name in row:
            why = f"there is a column {name!r} too, which says of what each row is"
            raise DefinitionError(many, f"{why}; leave out {many}")
        for each in of:
            if each not in row:
                raise DefinitionError(source, f"there is no column {each!r}{fields.suggest(each, map(str, row))}")


def _check_columns(
    held: Mapping[str, str], by: str, rows: Sequence[Mapping[str, Any]], source: str, wide: _Wide
) -> None:
    row = rows[0]
    _check_wide(held, row, source, wide)
    wanted = [name for name in (by, *(() if wide else ("value",))) if held[name] not in row]
    free = [str(column) for column in row if column not in held.values()]
    columns = {name: column for name, column in held.items() if column != name and column in row}
    lacking = ["key" if name == "index" else name for name in wanted]
    told = [each for each in free if _is_said(each, rows) and each.lower() not in _CALLED["key"]]
    for is_known, name in product((True, False), lacking):  # by its name, or else the first that may be one
        spare = [each for each in free if len(str(row[each])) <= _LONGEST_KEY]
        spare = sorted(free, key=lambda each: each not in told) if name == "value" else spare
        likely = next((column for column in spare if not is_known or column.lower() in _CALLED[name]), None)
        if likely is not None and name not in columns:
            columns[name] = free.pop(free.index(likely))
    if wanted:
        named = ["key or index" if name == "index" else name for name in wanted]
        it = f"it {named[0].split()[0]}" if len(named) == 1 else "them key and value"
        call = f"call {it} in the file"
        cures = [Wording("name it: ", columns=columns)] if {*lacking} <= columns.keys() else []
        several = [each for each in told if each in [*free, columns.get("value")]]
        if len(several) > 1 and "value" in wanted and columns["value"].lower() not in _CALLED["value"]:
            cures = [*_ways(several, columns, row, held)]
        why = f"expected a column {' and a column '.join(named)}, and there is none; "
        placed = "; if they are in the order of the results, add a column index, from 0" if "index" in wanted else ""
        raise DefinitionError(source, Wording(why, (*cures, call), f" (there are: {', '.join(map(str, row))}){placed}"))


def _ways(
    several: Sequence[str], columns: Mapping[str, str], row: Mapping[str, Any], held: Mapping[str, str]
) -> Iterator[Wording]:
    """Yield how *several* columns of what may be labels are read: as criteria, as people, or one of them alone."""
    what, others = " and ".join(map(repr, several)), {n: c for n, c in columns.items() if n != "value"}
    for name, many, said in (("criterion", "criteria", "criteria"), ("rater", "raters", "people")):
        if held[name] not in row:
            keyed = [Wording(columns=others), ", "] if others else []
            yield Wording(f"if {what} are {said}: ", *keyed, **{many: [*several]})
            what = "they"
    yield Wording("if one alone is the label of the whole: ", columns=columns)


def _is_said(column: str, rows: Sequence[Mapping[str, Any]]) -> bool:
    """True if a *column* has numbers, or words for verdicts, in all cells that are not empty, and in one at least."""
    cells = [cell for row in rows if not _is_missing(cell := row.get(column))]
    return bool(cells) and all(str(cell).strip().casefold() in SAID or number_in(cell) is not None for cell in cells)


def number_in(value: Any) -> float | None:
    """Return *value* as a finite number; None for anything else."""
    with suppress(TypeError, ValueError):
        return number if math.isfinite(number := float(value)) else None
    return None


def _plain(value: Any) -> str:
    if _is_missing(value):
        return ""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if whole else str(value).strip()


def _weight(value: Any, place: str) -> float:
    weight = 1.0 if _is_missing(value) else number_in(value)
    if weight is None or weight <= 0:
        raise DefinitionError(f"{place}.weight", f"expected a number above 0, got {shorten(repr(value))}")
    return weight


def _is_missing(value: Any) -> bool:
    return fields.is_missing(value) or value == ""
