"""Suites in the native format: cases, each with its rubric; named rubrics are written once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.formats.cursor import Loading, Notes
from rubric.formats.document import Document, Mapping, find
from rubric.formats.fields import WRITERS, Gathering, as_dict, fields_of, read_all, read_free, reader_of, write
from rubric.formats.native.judge import read_any_judge, read_judges
from rubric.formats.native.rubric import read_rubric
from rubric.formats.problems import read_as
from rubric.internals.fields import suggest
from rubric.suites.cases import Case, Place
from rubric.suites.suite import Suite
from rubric.values.candidates import Message, ToolCall
from rubric.values.rubrics import Rubric

NAMED, DEFAULT = "rubrics", "rubric"
"""The keys of a suite that are not its own fields: rubrics by name, and the one of cases that have none."""

UNKNOWN = "unknown"
"""Stands in for a rubric that is referred to and is not there, so that the rest of its case is still looked at."""


def read_suite(document: Document) -> Suite:
    """
    Return the suite that a native *document* says.

    Raises:
        LoadError: All that is wrong with it.
    """
    suite = read_as(_read_suite, document)
    cases = [evolve(case, place=_place(document, index)) for index, case in enumerate(suite.cases)]
    return evolve(suite, cases=cases, source=document.source)


def read(notes: Notes, loading: Loading) -> Suite:
    """Return a native suite; a rubric by itself is a suite of one case, whose candidate a target produces."""
    document = notes.document
    if is_suite(document):
        return read_suite(document)
    rubric = read_as(read_rubric, document)
    name = "suite" if loading.folder is None else Path(document.source).stem
    return Suite(rubric.name or name, [Case(name, rubric, place=Place(document.source))], source=document.source)


def is_suite(document: Document) -> bool:
    """True if a native *document* is a suite, not a rubric."""
    keys = document.root.named if isinstance(document.root, Mapping) else {}
    return bool({"suite", "cases"} & {*keys})


def _place(document: Document, index: int) -> Place:
    node, _ = find(document.root, ("cases", index))
    return Place(document.source, node.line, node.column)


def as_suite_data(suite: Suite) -> dict[str, Any]:
    """
    Return *suite* as plain data in the spelling of files.

    Raises:
        DumpError: It holds what no file can say.
    """
    data: dict[str, Any] = write(evolve(suite, format="native", warnings=()))
    return data


def _read_suite(data: Any) -> Suite:
    given = dict(as_dict(data, "a suite (a mapping with cases)"))
    named, default = given.pop(NAMED, {}), given.pop(DEFAULT, None)
    gathering = Gathering()
    with gathering.at(NAMED):
        _read_named(named)
    if isinstance(given.get("cases"), list) and isinstance(named, dict):
        with gathering.at("cases"):
            _check_references(given["cases"], named)
        given["cases"] = [_whole(index, case, named, default) for index, case in enumerate(given["cases"])]
    with gathering.at():
        suite = _read_fields(given)
    gathering.finish()
    return suite


def _read_named(named: Any) -> None:
    gathering = Gathering()
    for name, rubric in as_dict(named, "a mapping from names to rubrics").items():
        with gathering.at(name):
            _read_any_rubric(rubric)
    gathering.finish()


def _check_references(cases: list[Any], named: dict[Any, Any]) -> None:
    """Refuse each `{ref: name}` of *cases* that names no rubric."""
    gathering = Gathering()
    for index, case in enumerate(cases):
        with gathering.at(index):
            if _refers(case) and _named(case, named) is None:
                name, known = case["rubric"]["ref"], [str(name) for name in named]
                hint = suggest(str(name), known) if known else ", which is missing or empty"
                raise DefinitionError("rubric.ref", f"no rubric {name!r} under `rubrics`{hint}")
    gathering.finish()


def _refers(case: Any) -> bool:
    rubric = case.get("rubric") if isinstance(case, dict) else None
    return isinstance(rubric, dict) and [*rubric] == ["ref"]


def _named(case: dict[str, Any], named: dict[Any, Any]) -> Any:
    name = case["rubric"]["ref"]
    return named.get(name) if isinstance(name, str) else None


def _whole(index: int, case: Any, named: dict[Any, Any], default: Any) -> Any:
    """Return *case* with its rubric, the *default* where it has none, and with an id where it has none."""
    if not isinstance(case, dict):
        return case
    rubric = case.get("rubric", default)
    if _refers(case):
        rubric = _named(case, named) or UNKNOWN
    whole = {"id": f"case-{index + 1}", **case}
    return whole if rubric is None else {**whole, "rubric": rubric}


def _read_any_rubric(data: Any) -> Rubric:
    if isinstance(data, str):
        return Rubric.of(data)
    if isinstance(data, list):
        return read_rubric({"criteria": data})
    return read_rubric(as_dict(data, "a rubric: a text, a list of criteria, or a mapping"))


_read_message = reader_of(Message)
_read_call = reader_of(ToolCall, arguments=read_free)

_read_case = reader_of(
    Case,
    rubric=_read_any_rubric,
    messages=lambda data: read_all(data, "message", _read_message),
    tool_calls=lambda data: read_all(data, "toolcall", _read_call),
    variables=read_free,
    judge=read_any_judge,
    judges=read_judges,
    cell=read_free,
    metadata=read_free,
    place=None,
)

_read_fields = reader_of(
    Suite,
    {"name": "suite"},
    cases=lambda data: read_all(data, "case", _read_case),
    judge=read_any_judge,
    metadata=read_free,
    format=None,
    source=None,
    warnings=None,
)


def _write_case(case: Case) -> Any:
    data = fields_of(evolve(case, place=None), first=("id", "input", "output"), last=("rubric",))
    if case.rubric == Rubric.of(case.rubric.text or "x"):
        data["rubric"] = case.rubric.text
    return data


def write_suite(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """Return *suite* as plain data, and what its first format said that the library does not do."""
    return as_suite_data(suite), [f"{problem}" for problem in suite.warnings]


def _write_suite(suite: Suite) -> Any:
    data = fields_of(evolve(suite, source=""), first=("name",), last=("cases",))
    return {"suite": suite.name, **data, "cases": data.get("cases", [])}


WRITERS[Case] = _write_case
WRITERS[Suite] = _write_suite
WRITERS[Message] = fields_of
WRITERS[ToolCall] = fields_of
