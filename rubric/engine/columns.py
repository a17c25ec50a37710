"""
Which column of a row holds which field of a candidate, and which columns look as if they held one.

A column counts under the name of its field, unless `columns={"output": "answer"}` says otherwise. A question or a
reference answer that is silently ignored costs as much, and the verdict is made without it. So a column with the name
that a field has in other systems is refused until it is named, or ignored by `columns={"question": None}`. A column may
lie in another: `outputs.answer` is the answer of rows such as LangSmith's, `{"outputs": {"answer": "..."}}`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import combinations, product
from typing import Any, ClassVar

from attrs import field, fields, frozen

from rubric.errors import DefinitionError, Wording
from rubric.internals.fields import as_map, is_missing, nearest, refuse, suggest
from rubric.internals.fields import frozen as freeze_map
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guesses import argument_for
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate

FIELDS = (*(one.alias or one.name for one in fields(Candidate) if one.eq), "messages", "tool_calls")
_NEAR = 0.85
_OPPOSITES = [{*pair.split()} for pair in ("old new", "before after", "left right", "chosen rejected", "a b", "1 2")]

_CALLED = tomllib.loads(files("rubric.engine").joinpath("columns.toml").read_text("utf-8"))
"""What each field is called elsewhere; a name of two fields is meant for the first that is free."""


def _plain(name: str) -> str:
    """Return *name* without case and separators: `Ground Truth`, `ground-truth` and `groundTruth` are one."""
    return "".join(char for char in name.casefold() if char.isalnum())


_MEANS: dict[str, tuple[str, ...]] = {}
for _field, _names in _CALLED.items():
    for _name in map(_plain, _names.split()):
        _MEANS[_name] = (*_MEANS.get(_name, ()), _field)

_OWN = {_plain(name): name for name in FIELDS if name not in ("key", "group")}  # no judge sees these two


@lru_cache(maxsize=2**18)  # called for each column of each row; bounded, since rows of JSON may have any keys
def _likely_fields(name: str) -> tuple[str, ...]:
    """Return the fields that a column called *name* may be meant for, the likeliest first."""
    plain = _plain(name)
    near = nearest(plain, _OWN, _NEAR) or [own for own in _OWN if sorted(own) == sorted(plain)]
    long = [e for e in _MEANS if plain.isalpha() and abs(len(e) - len(plain)) <= 1 and len(e) > 4]  # noqa: PLR2004
    slips = nearest(plain, long, _NEAR)
    return _MEANS.get(plain) or tuple(_OWN[own] for own in near) or _MEANS.get([*slips, ""][0], ())


@frozen
class Columns:
    """
    Which columns of a row hold the fields of a candidate.

    Args:
        named: The column of each field that has another name; None for a column that is ignored. `variables` may have
            several, each a variable of its own name: `columns={"variables": ["topic", "tier"]}`.
        file: The path of the file whose rows they are, for messages.

    Raises:
        DefinitionError: A key that is not a field, or a column that is not a name.
    """

    _of: ClassVar[str] = "candidate"
    _fields: ClassVar[tuple[str, ...]] = FIELDS
    _needed: ClassVar[tuple[str, ...]] = ("output",)

    named: FrozenMap = field(factory=FrozenMap, converter=freeze_map)
    file: str = field(default="", kw_only=True, eq=False)

    def __attrs_post_init__(self) -> None:
        value: Mapping[Any, Any] = self.named
        as_map("columns", value, f"a mapping such as {{{self._needed[0]!r}: 'answer', 'input': 'question'}}")
        for name, column in value.items():
            if column is None and name in self._needed:
                raise DefinitionError(f"columns.{name}", f"a {self._of} has one; name its column")
            several = column if name == "variables" and isinstance(column, tuple) else [column]
            if column is not None and not (several and all(isinstance(each, str) for each in several)):
                many = ", or several in a list" if name == "variables" else ""
                expected = f"the name of a column{many}, or None to pass over a column of this name"
                raise refuse(f"columns.{name}", column, expected)
            if column is not None and name not in self._fields:
                said = f"is not a field of a {self._of}"
                raise DefinitionError(f"columns.{name}", Wording(said, self._meant(name, value)))

    def _meant(self, name: object, value: Mapping[Any, Any]) -> Wording | str:
        """Return the columns that were meant by those of *value*, whose key *name* is no field."""
        wrong = [str(key) for key, column in value.items() if column is not None and key not in self._fields]
        meant = {key: argument_for("Candidate", key, self._fields) or [*self.means(key), ""][0] for key in wrong}
        said = {meant.get(key) or key: of for key, of in value.items()}
        if value[name] in self._fields:
            turned = {column: key for key, column in value.items() if key in wrong and column in self._fields}
            fitting = {key: column for key, column in value.items() if key not in wrong}
            way = Wording("; it is the other way round: ", columns=fitting | turned)
            is_both = meant[str(name)] == value[name]  # `id=key` may as well be the column `key`, for the key
            return Wording(way, f", or, where the column is called {value[name]!r}, ", columns=said) if is_both else way
        if not (field := meant[str(name)]):
            own = [key for key in wrong if value[key] == key and not meant[key]]  # columns by their own names
            fitting = {key: column for key, column in value.items() if key not in own}
            given = value.get("variables") or ()
            together = [*([given] if isinstance(given, str) else given), *own]
            if name in own and "variables" in self._fields:
                return Wording("; a column to group by is a variable: ", columns=fitting | {"variables": together})
            return suggest(str(name), self._fields)
        return Wording(f"; it is {field!r}: ", columns=said)

    def means(self, name: str) -> tuple[str, ...]:
        """Return the fields that a column called *name* may be meant for, the likeliest first; () for one of others."""
        outer, dot, last = name.partition(".")
        if dot and (around := self.means(outer)):  # `inputs.context` is the context, and `reference.answer` no answer
            within = self.means(last)
            return around if not within or {around[0], within[0]} & {"reference"} or within[0] == "output" else within
        means = _likely_fields(name)
        return tuple(one for one in means if one in self._fields) if means and means[0] in self._fields else ()

    def row(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the fields that *row* has; a column that looks like one and is not used is refused."""
        for name, means in self._likely_columns(row):
            said = f"is not a field of a {self._of}; did you mean {means[0]!r}?"
            raise DefinitionError(name, Wording(said, self._cure(" Name it, ", means[0], name)))
        columns = {name: self.named.get(name, name) for name in self._fields}
        if "variables" in self.named:
            columns["variables"] = None
        fields = {name: row[column] for name, column in columns.items() if column is not None and column in row}
        paths = {name: _cell(row, column) for name, column in columns.items() if column and "." in column}
        fields |= {name: cell for name, cell in paths.items() if cell is not _ABSENT} | self._variables(row)
        return {name: cell if isinstance(cell, str) else with_lists(cell) for name, cell in fields.items()}

    def names_in(self, rows: Iterable[Mapping[Any, Any]]) -> list[Any]:
        """Return the columns of *rows*, in order: where one that looks like a text holds several, those in it."""
        return [*dict.fromkeys(path for row in rows for name, cell in row.items() for path in self._paths(name, cell))]

    def _paths(self, name: Any, cell: Any) -> Iterator[Any]:
        used = {*self._used(), *self.named}
        is_path = any(each.startswith(f"{name}.") for each in used)
        is_text = name not in (*self._fields, *used) and isinstance(name, str) and {*self.means(name)[:1]} & _TEXTS
        if isinstance(cell, Mapping) and cell and (is_path or is_text):
            for key in cell:
                yield from self._paths(f"{name}.{key}", cell[key])
        else:
            yield name

    def _variables(self, row: Mapping[Any, Any]) -> dict[str, Any]:
        """Return the variables that *row* has in named columns: one that holds them all, or one for each of them."""
        named = self.named.get("variables") or ()
        if isinstance(named, str) and isinstance(whole := _cell(row, named), Mapping):
            return {"variables": whole}
        cells = {name: _cell(row, name) for name in ([named] if isinstance(named, str) else named)}
        held = {name: None if is_missing(cell) else cell for name, cell in cells.items() if cell is not _ABSENT}
        for name, value in held.items():
            if isinstance(value, str) and value.lstrip().startswith("{"):
                why = f"column {name!r} holds {shorten(value, 40)!r}, a mapping as text; give rows with mappings, or"
                raise DefinitionError("columns.variables", f"{why} a column for each variable")
        return {"variables": held} if held else {}

    def _used(self) -> set[str]:
        """Return the columns that are named for a field."""
        return {name for each in self.named.values() if each for name in ([each] if isinstance(each, str) else each)}

    def check(self, names: Iterable[object], *, one: bool = False) -> None:
        """
        Refuse rows with the columns *names*, or *one* mapping with these keys, all at once.

        A column that is named must be there, and one that looks like a field must be used.
        """
        there = [name for name in names if isinstance(name, str)]
        if not self.named and {"verdict", "findings", "judge_digest"}.issubset(there):  # as `Grades.to_jsonl` writes
            said = "these rows are results of an earlier run; give the rows that were graded"
            raise DefinitionError("candidate" if one else "candidates", f"{said}; the command view shows results")
        for name, of in self.named.items():
            for column in () if of is None else (of,) if isinstance(of, str) else of:
                if column in there:
                    continue
                raise DefinitionError(f"columns.{name}", f"there is no column {column!r}{suggest(column, there)}")
        unused = dict(self._likely_columns(there))
        if unused:
            raise DefinitionError("candidate" if one else "columns", self._refusal(unused, there, one=one))

    def remark(self, rows: Iterable[object]) -> str:
        """Return a remark on columns of *rows* that hold texts and that no field takes; '' if there is none."""
        if not (found := self._texts(rows)):
            return ""
        field = "context" if "input" in self.named else "input"
        said = f"column {found[0]!r} holds" if len(found) == 1 else f"columns {', '.join(map(repr, found))} hold"
        return Wording(f"the {said} texts that no judge sees; ", self._cure("name its field, ", field, found[0]))

    def _texts(self, rows: Iterable[object], *, mostly: bool = True) -> list[str]:
        """Return the columns of *rows*, in order, that no field takes, and that hold prose *mostly*, or once at all."""
        count: dict[str, list[int]] = {}  # of all texts in a column, and of those that are prose
        for row in rows:
            for name, value in row.items() if isinstance(row, Mapping) else ():
                if isinstance(name, str) and name not in (*self._fields, *self.named, *self._used()) and value:
                    cells = count.setdefault(name, [0, 0])
                    cells[0], cells[1] = cells[0] + 1, cells[1] + _is_prose(value)
        return [name for name, (cells, prose) in count.items() if (2 * prose > cells if mostly else prose)]

    def _cure(self, said: str, field: str, column: str) -> Wording:
        """Return what takes *column* for *field*, or passes it over."""
        takes, ignores = ({**self.named, **more} for more in ({field: column}, {column: None}))
        return Wording(Wording(said, columns=takes), ", or pass it over: ", columns=ignores)

    def _refusal(self, unused: Mapping[str, tuple[str, ...]], there: Sequence[str], *, one: bool) -> Wording:
        cure = self._with(unused, there)
        single = len(unused) == 1
        said = f"looks like a field of a {self._of} and is" if single else f"look like fields of a {self._of} and are"
        if one:
            taken = {**{name: name for name in FIELDS if name in there}, **{k: v for k, v in cure.items() if v}}
            cells = {name: "][".join(map(repr, column.split("."))) for name, column in taken.items()}
            line = ", ".join(f"{name!r}: row[{cell}]" for name, cell in cells.items())
            return Wording(f"{', '.join(map(repr, unused))} {said} not used; write {{{line}}} for such a row")
        lacking = "" if {*self._needed, "messages"} & {*there, *cure} else "; name the column of the output too"
        why = (
            f"{', '.join(map(repr, unused))} {said} not used; say which field {'it' if single else 'each'} is, such as "
        )
        passed = Wording(Wording(why, columns=cure), ", or pass it over: ", columns=dict.fromkeys([*unused][:1]))
        return Wording(passed, f"{lacking} (there are: {', '.join(there)})")

    def check_output(self, names: Collection[str], rows: Iterable[object]) -> None:
        """Refuse the columns *names* if none holds what is graded; those with texts in *rows* may be meant."""
        if {self.named.get(name, name) for name in ("output", "messages", "run")}.isdisjoint(names):
            seen = [*rows]
            lists = [n for n in names if any(isinstance(row, Mapping) and isinstance(row.get(n), list) for row in seen)]
            meant = (self._texts(seen) or lists or [*names])[:3]  # of a list, the error says how it becomes a text
            ways = tuple(Wording(columns={**self.named, "output": name}) for name in meant)
            said = Wording("no column holds the text that is graded; name it: ", ways)
            raise DefinitionError("columns", Wording(said, f" (there are: {', '.join(names)})"))

    def _likely_columns(self, names: Iterable[object]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the columns that look like a field and are neither used nor ignored, with the fields they may be."""
        used = {*self._used(), *self.named}
        used |= {name.partition(".")[0] for name in used}
        for name in names:
            outer = name.partition(".")[0] if isinstance(name, str) else name
            is_used = outer in self._fields or name in used or outer in used
            if isinstance(name, str) and not is_used and (means := self.means(name)):
                yield name, means

    def _with(self, unused: Mapping[str, tuple[str, ...]], there: Iterable[str]) -> dict[str, str | None]:
        """Return the `columns=` that uses each of *unused* for a field that is free, and ignores the others."""
        given: dict[str, str | None] = dict(self.named)
        for name, means in sorted(unused.items(), key=lambda each: len(each[1])):  # first those that have no choice
            free = [one for one in means if one not in given and one not in there]
            given |= {free[0]: name} if free else {name: None}
        return {name: given[name] for name in (*self._fields, *given) if name in given}


_TEXTS, _ABSENT = frozenset({"output", "input", "reference", "context"}), object()


def _cell(row: object, column: str) -> Any:
    """Return what *row* has in *column*, which may be a path into it; `_ABSENT` if it has none."""
    if not isinstance(row, Mapping) or column in row:
        return row[column] if isinstance(row, Mapping) else _ABSENT
    outer, dot, last = column.partition(".")
    return _cell(row.get(outer), last) if dot else _ABSENT


def with_lists(cell: Any) -> Any:
    """Return *cell* with each array in it as a list: frames of pandas hold lists so."""
    cell = cell.tolist() if hasattr(cell, "tolist") else cell
    if isinstance(cell, dict):
        return {key: with_lists(value) for key, value in cell.items()}
    return [*map(with_lists, cell)] if isinstance(cell, list) else cell


def _is_prose(value: object) -> bool:
    """True for a text of several words, unlike ids, names and groups; Chinese and Japanese part no words."""
    few = 3
    return isinstance(value, str) and (len(value.split()) >= few or sum(char >= "\u2e80" for char in value) > 2 * few)


OWN_NAMES = Columns()
"""Each field has its own name."""


def _words_of(name: str) -> set[str]:
    """Return the words in *name*, such as `gpt4_output`, `replyOld` or `answer-a`."""
    return {word.casefold() for word in re.findall(r"\d+|[A-Z]?[^\W\d_A-Z]+|[A-Z]+", name)}


@frozen
class PairColumns(Columns):
    """
    Which columns of a row hold the two candidates of a pair, and what both have in common.

    Where a side is not there, two columns of texts are proposed if their names have more words in common than those of
    any other two: `reply_old` and `reply_new`. One with a word for a shared field, as `question_text`, is no side.
    """

    _of = "pair"
    _fields = ("a", "b", "input", "reference", "context", "key", "group", "model_a", "model_b")
    _needed = ("a", "b")

    def check_output(self, names: Collection[str], rows: Iterable[object]) -> None:
        """Refuse the columns *names* if a side is not there; two with texts in *rows* may clearly be meant."""
        sides = [self.named.get(side, side) for side in self._needed]
        if sides[0] == sides[1]:
            raise DefinitionError("columns.b", f"both sides are the column {sides[0]!r}; name the other one")
        if not (lacking := [side for side in sides if side not in names]):
            return
        texts = self._texts(rows, mostly=False)  # "Done." is a reply, too, and the names say which two are meant
        shared = {name: {word for word in (name, *_words_of(name)) if self.means(word)} for name in texts}
        free = [name for name in texts if all(sum(w in each for each in shared.values()) > 1 for w in shared[name])]
        given = product(*([side] if side in names else free for side in sides))
        words = {way: [*map(_words_of, way)] for way in (given if len(lacking) == 1 else combinations(free, 2))}
        alike = {way: len(one & other) or (one | other in _OPPOSITES) for way, (one, other) in words.items()}
        best = [way for way in alike if alike[way] == max(alike.values()) > 0]
        columns: Any = None
        if len(best) == 1:
            more = self._with(dict(self._likely_columns(names)), names)
            columns = {"a": "", "b": "", **more, **dict(zip("ab", best[0], strict=True))}
        why = f"there is no column {' or '.join(map(repr, lacking))}; name both sides, a and b, with "
        raise DefinitionError("columns", Wording(why, Wording(columns=columns), f" (there are: {', '.join(names)})"))
