"""
The plain form of results: what JSON holds, written from the fields of each noun and read by their types.

A finding has its `kind` beside its fields, and every key is the name of a field. So a new field of a finding is a line
in `rubric.values.findings`: it is written, and files from before it are read with its default. A `Record` is a result
that was read without its rubric.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from math import isfinite
from pathlib import Path
from sys import float_info
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from attrs import NOTHING, evolve, field, fields, frozen, has

from rubric.errors import DefinitionError
from rubric.internals.containers import NoTruth
from rubric.internals.fields import misspelt, suggest
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.row_files import check_finite, rows_in
from rubric.internals.secrets import mask_settings, redact
from rubric.internals.text import shorten
from rubric.scoring.outcomes import Verdict
from rubric.values.digest import labelled_place
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.judges import Judge
from rubric.values.requests import NOT_KEPT, Failure, Usage

if TYPE_CHECKING:
    from rubric.results.result import Result

T = TypeVar("T")
Kind = Literal["scored", "not_applicable", "abstained", "unjudged"]

KINDS: dict[type, Kind] = {
    Scored: "scored",
    NotApplicable: "not_applicable",
    Abstained: "abstained",
    Unjudged: "unjudged",
}

UNWRITTEN = {"unwritten": True}
"""The metadata of a field that is not in the plain form."""

_MOST_PROBLEMS, _LONGEST_VARIABLE = 10, 200


class Plain:
    """Gives a value its plain form: JSON-able data of its fields, and the reader of that."""

    __slots__ = ()
    _remark: ClassVar[str] = ""
    """Begins the message of an error."""

    def to_dict(self) -> dict[str, Any]:
        """Return the value as plain JSON-able data."""
        data: dict[str, Any] = plain(self)
        return data

    @classmethod
    def from_dict(cls, data: Any, source: str = "data") -> Self:
        """
        Return the value in *data*, which `to_dict` made.

        Raises:
            DefinitionError: The data has another form; the message names *source* and lists what is wrong.
        """
        return read(cls, data, source, cls._remark)


@frozen(kw_only=True)
class Record(NoTruth, Plain):
    """
    A result as `to_dict` writes it, without its rubric and its judge; its other fields are those of `Result`.

    Args:
        rubric: The rubric's name; *digest* is of all that it asks.
        judge: The judge's name; *judge_digest* is of its settings too.
        chosen_by: The labels that chose the rubric or the judge.
        variables: Those of the candidate that results are grouped by: numbers and texts of up to 200 characters, with
            secrets masked.
    """

    _remark = "no result that to_dict made: "

    key: str = ""
    group: str = ""
    variables: FrozenMap = FrozenMap()
    tags: tuple[str, ...] = ()
    rubric: str = ""
    digest: str = ""
    judge: str = ""
    judge_digest: str = ""
    chosen_by: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    score: float | None
    verdict: Verdict | None
    passed: bool | None
    bounds: tuple[float, float] = (0.0, 1.0)
    coverage: float = 0.0
    gates: tuple[str, ...] = ()
    vacuous: bool = False
    degenerate: str = ""
    findings: tuple[Finding, ...]
    votes: tuple[Record, ...] = ()
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = NOT_KEPT
    index: int | None = None
    contributions: FrozenMap = field(default=FrozenMap(), metadata=UNWRITTEN)  # each stands in its finding

    @classmethod
    def of(cls, result: Result) -> Record:
        """Return the record of *result*, without its place among others."""
        return cls(
            rubric=result.rubric.name,
            digest=result.rubric.digest,
            judge=result.judge.name if isinstance(result.judge, Judge) else repr(result.judge),
            judge_digest=result.judge.digest,
            variables=_grouping(result.variables),
            votes=tuple(map(cls.of, result.votes)),
            **{name: getattr(result.outcome, name) for name in _OF_OUTCOME},
            **{name: getattr(result, name) for name in _OF_RESULT},
        )

    place_of = staticmethod(labelled_place)

    @staticmethod
    def data_in(field: str, path: Path) -> Iterator[dict[str, Any]]:
        """
        Yield the data of each result in the file of lines at *path*, without marks of shards.

        Raises:
            DefinitionError: There is no such file, or a line holds no result; *field* is the argument that names it.
        """
        for where, data in rows_in(field, path, ".jsonl"):
            if isinstance(data, dict) and "end_of_shard" in data:
                continue
            if not isinstance(data, dict) or not {"findings", "score", "passed", "verdict"} <= data.keys():
                raise DefinitionError(where, "is not a result; `grade-many --out` and to_jsonl write them")
            yield data

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON-able data."""
        data = super().to_dict()
        for finding in data["findings"]:
            finding["contribution"] = self.contributions.get(finding["id"])
        data["votes"] = [vote.to_dict() for vote in self.votes]
        return {name: value for name, value in data.items() if value or name not in _NAMES}


_OF_OUTCOME = ("score", "verdict", "passed", "gates", "vacuous")
_OF_ANY = ("key", "group", "chosen_by", "models", "bounds", "coverage", "degenerate", "findings", "failures")
_OF_RESULT = (*_OF_ANY, "tags", "warnings", "usage", "contributions")
_NAMES = {"index", "key", "group", "variables", "tags", "chosen_by"}


def _grouping(variables: FrozenMap) -> FrozenMap:
    """Return those of *variables* by which results are grouped, masked: a long text is material, and stays out."""
    said = {name: value for name, v in variables.items() if isinstance(value := plain(v), str | int | float)}
    return FrozenMap(mask_settings({name: v for name, v in said.items() if len(str(v)) <= _LONGEST_VARIABLE}))


# -- writing ---------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Return *value*, a noun with all that it holds, as plain JSON-able data; an object of a user's becomes text."""
    kind: Any = type(value)
    if kind in (str, bool, int, NoneType) or (kind is float and isfinite(value)):
        return value
    if kind is tuple or kind is list:
        return [plain(item) for item in value]
    if has(kind):
        # The contribution of a part or a vote is not known.
        head: dict[str, Any] = {"kind": KINDS[kind], "contribution": None} if kind in KINDS else {}
        return head | {name: plain(getattr(value, name)) for name in _readers(kind)[0] if name not in head}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple | list | set | frozenset) else str(value)


# -- reading ---------------------------------------------------------------------------------------------

Reader = Callable[[Any], Any]


class _Problems(Exception):  # noqa: N818 - it never leaves this module
    """What is wrong: a list of pairs, a path from where this is raised and a message."""


def read(noun: type[T], data: object, source: str, remark: str = "") -> T:
    """
    Return the *noun* in plain *data*, of which nothing is converted and nothing left out.

    Args:
        remark: Begins the message of an error.

    Raises:
        DefinitionError: The data has another form; the message lists what is wrong in *source*.
    """
    try:
        hint: Any = noun
        found: T = _reader(hint)(data)
    except _Problems as caught:
        wrong = [f"{path.removeprefix('.')}: {why}".removeprefix(": ") for path, why in caught.args[0]]
        rest = [f"and {len(wrong) - _MOST_PROBLEMS} more"] if len(wrong) > _MOST_PROBLEMS else []
        raise DefinitionError(source, remark + "; ".join([*wrong[:_MOST_PROBLEMS], *rest])) from None
    return found


@cache
def _reader(hint: Any) -> Reader:
    """Return the function that reads what the type *hint* names, and raises `_Problems` for all else."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if {*KINDS} == {*options}:
        return _finding
    others = [each for each in options if each is not NoneType and (has(each) or get_origin(each) or each is FrozenMap)]
    if not others:
        return _scalar(options)
    only = _reader_of(others[0])
    return (lambda data: None if data is None else only(data)) if NoneType in options else only


def _reader_of(hint: Any) -> Reader:
    if hint is Record:
        return _record
    if has(hint):
        return partial(_noun, hint)
    if hint is FrozenMap:
        return _free_map
    allowed = get_args(hint)
    if get_origin(hint) is Literal:
        return lambda data: data if data in allowed else _wrong(f"one of {', '.join(allowed)}", data)
    return partial(_items, _reader(allowed[0]), None if allowed[-1] is Ellipsis else len(allowed))


def _wrong(allowed: str, data: Any) -> NoReturn:
    _refuse(f"expected {allowed}, got {shorten(redact(repr(data)), 80)}")


def _mapping(data: Any) -> Any:
    return data if isinstance(data, (dict, Mapping)) else _wrong("a mapping", data)  # a dict is seen faster


def _free_map(data: Any) -> FrozenMap:
    try:
        check_finite("", _mapping(data))
    except DefinitionError as problem:
        _refuse(str(problem))
    return FrozenMap(data)


def _scalar(kinds: tuple[type, ...]) -> Reader:
    taken = (*kinds, int) if float in kinds else kinds  # a number may be whole, and a bool is not a number

    def scalar(data: Any) -> Any:
        kind = type(data)
        if kind not in taken and (kind is bool or not isinstance(data, taken)):
            _wrong(" or ".join(_WORDS[each] for each in kinds), data)
        if isinstance(data, float | int) and not abs(data) <= float_info.max:  # also NaN
            _refuse("expected a finite number that a float holds, got another")
        return data

    return scalar


_WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", NoneType: "null"}


def _items(item: Reader, count: int | None, data: Any) -> tuple[Any, ...]:
    if not isinstance(data, list | tuple) or count not in (None, len(data)):
        _wrong("a list" if count is None else f"a list of {count}", data)
    return tuple(_each(enumerate(data), dict.fromkeys(range(len(data)), item)).values()) if data else ()


def _each(pairs: Iterable[tuple[Any, Any]], readers: Mapping[Any, Reader]) -> dict[Any, Any]:
    """Return what the reader of each key makes of its value, by key; the problems of all are raised together."""
    found: dict[Any, Any] = {}
    wrong: list[tuple[str, str]] = []
    for key, value in pairs:
        try:
            found[key] = readers[key](value) if key in readers else _refuse(f"unknown key{suggest(str(key), readers)}")
        except _Problems as caught:
            path = f"[{key}]" if isinstance(key, int) else f".{key}"
            wrong += [(f"{path}{rest}", why) for rest, why in caught.args[0]]
    if wrong:
        raise _Problems(wrong)
    return found


def _noun(noun: type, data: Any) -> Any:
    """Return the *noun* in *data*; a field without a key has its default."""
    hint: Any = noun
    readers, required = _readers(hint)
    given = _mapping(data)
    if noun is Record:  # people add columns of their own to the lines of a file; a misspelt key is refused
        given = {key: value for key, value in given.items() if key in readers or misspelt(str(key), [*readers])}
    if missing := [name for name in required if name not in given]:
        given = {**given, **dict.fromkeys(missing)}
        readers = {**readers, **dict.fromkeys(missing, lambda _: _refuse("it is missing"))}
    found = _each(given.items(), readers)
    if noun in KINDS:
        del found["kind"]
        found.pop("contribution", None)
    return noun(**found)


def _refuse(why: str) -> NoReturn:
    raise _Problems([("", why)])


@cache
def _readers(noun: Any) -> tuple[dict[str, Reader], list[str]]:
    """Return the reader of each field of *noun* by its key, and the keys that it must have."""
    hints = get_type_hints(noun, localns={"Grade": object, "Ungraded": object})  # of `Row.result`, which is left out
    written = [each for each in fields(noun) if UNWRITTEN.keys().isdisjoint(each.metadata)]
    required = [each.name for each in written if each.default is NOTHING]
    return (_BESIDE if noun in KINDS else {}) | {each.name: _reader(hints[each.name]) for each in written}, required


def _finding(data: Any) -> Any:
    kind = _mapping(data).get("kind")
    reader = _NAMED.get(kind) if isinstance(kind, str) else None
    return reader(data) if reader else _each([("kind", kind)], {"kind": partial(_wrong, f"one of {', '.join(_NAMED)}")})


def _record(data: Any) -> Record:
    record: Record = _noun(Record, data)
    known = {each["id"]: each.get("contribution") for each in data["findings"]}
    return evolve(record, contributions=FrozenMap({id_: value for id_, value in known.items() if value is not None}))


_BESIDE: dict[str, Reader] = {"kind": _scalar((str,)), "contribution": _scalar((float, NoneType))}
_NAMED: dict[Any, Reader] = {word: partial(_noun, kind) for kind, word in KINDS.items()}
