"""Suites in the native format: cases, each with its rubric; named rubrics are written once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import evolve

from rubric.errors import DefinitionError, DumpError, LoadError
from rubric.formats import fields
from rubric.formats.document import Document, KeyPath, Mapping, find, plain
from rubric.formats.fields import WRITERS, Gathering, SeveralError
from rubric.formats.files import parse_file
from rubric.formats.native.judge import read_any_judge, read_judges, refuse_named_judges, refuse_votes
from rubric.formats.native.meant import are_rows, tell
from rubric.formats.native.meant_cases import THRESHOLDS, meant_case, under_meant_keys
from rubric.formats.native.rubric import loading_of, meant_row, read_images, read_rubric, reading_from
from rubric.formats.native.runs import read_call, read_message, read_metrics, read_run
from rubric.formats.native.sharing import fill_shared, refuse_unfilled, share, spread, with_variables
from rubric.formats.notes import Loading, Notes
from rubric.formats.yaml import on_a_line, short_line
from rubric.internals.fields import names_a_file, nearest, suggest
from rubric.suites.cases import Case, Turn
from rubric.suites.slots import SLOT, fill_slots, texts_in
from rubric.suites.suite import Suite
from rubric.values.criteria import refuse_metric
from rubric.values.places import Place
from rubric.values.rubric_tests import is_reference
from rubric.values.rubrics import Rubric, is_ready


def read_suite(document: Document, loading: Loading | None = None) -> Suite:
    """Return the suite in a native *document*; with *loading*, images may be `file://` names."""
    with reading_from(loading or Loading()):
        suite = fields.read_as(_read_suite, document)
    cases, (_, origin) = [], spread(plain(document.root))
    for index, case in zip(origin, suite.cases, strict=True):
        node, _ = find(document.root, ("cases", index))
        cases.append(evolve(case, place=Place(document.source, *node.place)))
    return evolve(suite, cases=cases, source=document.source)


def read(notes: Notes, loading: Loading) -> Suite:
    """Return a native suite; a rubric by itself is a suite of one case, whose candidate a target produces."""
    document = notes.document
    if is_suite(document):
        return read_suite(document, loading)
    with reading_from(evolve(loading, base=None)):
        rubric = fields.read_as(read_rubric, document)
    name = "suite" if loading.folder is None else Path(document.source).stem
    return Suite(rubric.name or name, [Case(name, rubric, place=Place(document.source))], source=document.source)


def is_suite(document: Document) -> bool:
    """True if a native *document* is a suite, not a rubric."""
    keys = document.root.named if isinstance(document.root, Mapping) else {}
    return bool({"suite", "cases"} & {*keys})


def as_suite_data(suite: Suite) -> dict[str, Any]:
    """
    Return *suite* as plain data in the spelling of files.

    Raises:
        DumpError: It has a value that no file can hold.
    """
    data: dict[str, Any] = share(fields.write(evolve(suite, format="native", warnings=())))
    return data


def _read_suite(data: Any) -> Suite:
    try:
        return _read_typed(fields.as_dict(data, "a suite (a mapping with cases)"))
    except (DefinitionError, SeveralError) as error:
        raise SeveralError(under_meant_keys(fields.problems_of(error), data, _read_typed)) from None


def _read_typed(data: dict[Any, Any]) -> Suite:
    given, origin = spread(data)
    named = cases if isinstance(cases := given.get("cases"), dict) else {}
    are_cases = bool(named) and all(isinstance(each, dict) for each in named.values())
    if are_cases and (line := short_line([{"id": str(name), **case} for name, case in named.items()])):
        raise DefinitionError("cases", f"expected a list of cases, got a mapping; write cases: {line}")
    _refuse_rows(cases)
    refuse_named_judges(given)
    refuse_votes(given)
    try:
        return _read_written_out(given)
    except SeveralError as error:
        found = dict[int, list[tuple[KeyPath, DefinitionError]]]()
        rest = list[tuple[KeyPath, DefinitionError]]()
        for path, problem in error.problems:
            match path:
                case ("cases", place, *steps):
                    found.setdefault(origin[place], []).append((("cases", origin[place], *steps), problem))
                case _:
                    rest.append((path, problem))
        own = [_tell(problems, data, data["cases"][index]) for index, problems in found.items()]
        raise SeveralError([*rest, *(each for problems in own for each in problems)]) from None


def _refuse_rows(cases: Any) -> None:
    """Refuse *cases* that are a mapping with the name of a table, with the command that grades its rows."""
    given = {**cases} if isinstance(cases, dict) else {}
    keys = [key for key, value in given.items() if isinstance(value, str) and names_a_file(value)]
    if len(keys) != 1:
        return
    file, columns = given.pop(keys[0]), given.pop("columns", {})
    rows = columns.items() if isinstance(columns, dict) else ()
    named = {"key" if field == "id" else field: name for field, name in rows}
    options = [f"--column {field}={name}" for field, name in named.items() if field != name]
    options += [f"--limit {given.pop('limit')}"] if type(given.get("limit")) is int else []
    how = "" if given else " ".join(["", *options])
    said = f"expected a list of cases, got {file!r}; such as rubric grade-many rubric.yaml {file}{how}"
    raise DefinitionError("cases", f"{said}, where the rubric has a file of its own")


def _tell(problems: list[Any], data: dict[Any, Any], case: Any) -> list[Any]:
    """Return the *problems* of a *case* of the suite in *data*, with the case that was meant."""

    def read(one: Any) -> None:
        try:
            _read_written_out(spread({**data, "cases": [one]})[0])
        except SeveralError as error:
            if any(path[:1] == ("cases",) for path, _ in error.problems):  # the rest is told by itself
                raise

    keys, defaults = [*fields.KEYS[Case].values()], data.get("defaults")
    shared = data.get("rubric", defaults.get("rubric") if isinstance(defaults, dict) else None)
    whole = None if shared is None else _whole_of(shared, data.get("rubrics"))
    is_filled = not any("unknown slot" in error.message for _, error in problems)
    slots = [] if is_filled else [name for text in texts_in(whole) for name in SLOT.findall(text)]
    return tell(problems, case, lambda one: meant_case(one, read, keys, meant_row, whole, slots=slots)) or problems


def _read_written_out(data: Any) -> Suite:
    given = dict(data)
    named, default = given.pop("rubrics", {}), given.pop("rubric", None)
    gathering = Gathering()
    with gathering.at("rubrics"):
        every = fields.as_dict(_by_name(named), "a mapping from names to rubrics")
        named = {name: _readable(gathering, rubric, "rubrics", name) for name, rubric in every.items()}
    named = named if isinstance(named, dict) else {}
    shared = default
    with gathering.at("rubric"):
        _refuse_name(default, named)
    if default is not None and not _is_reference(default):
        default = _readable(gathering, default, "rubric")
    with gathering.at():
        _refuse_threshold(given, default, named)
    if isinstance(given.get("cases"), list):
        cases = given["cases"] = [*given["cases"]]
        first: dict[str, int] = {}
        for index, written in enumerate(cases):
            if isinstance(written, dict):
                case = {**written}
                with gathering.at("cases", index, "id"):
                    _check_new(case.get("id"), index, first)
                with gathering.at("cases", index, "rubric"):
                    _refuse_name(case.get("rubric"), named)
                with gathering.at("cases", index):
                    _refuse_threshold(case, case.get("rubric", default), named)
                rubric: Any = "unknown"  # where its reference is wrong, so that the rest of the case is read
                with gathering.at("cases", index):
                    rubric = _rubric_of(case, named, default, shared)
                is_named = _is_reference(case.get("rubric", shared))
                with gathering.at("cases", index):
                    refuse_unfilled(case | {"rubric": rubric if is_named else case.get("rubric")})
                with gathering.at("cases", index, "rubric"):
                    rubric = _follow(rubric)
                held = {} if rubric is None else {"rubric": with_variables(rubric, case.get("variables", {}))}
                cases[index] = {"id": f"case-{index + 1}", **case, **held}
    with gathering.at():
        suite = _read_fields(given)
    gathering.finish()
    return suite


def _by_name(named: Any) -> Any:
    """Return rubrics by their names; refuse a list of such with the mapping."""
    rows = named if are_rows(named) else []
    keys = [next((each[key] for key in ("rubric", "name", "id") if key in each), None) for each in rows]
    if not keys or None in keys:
        return named
    held = [{key: value for key, value in each.items() if key not in ("rubric", "name", "id")} for each in rows]
    line = short_line({"rubrics": dict(zip(keys, held, strict=True))})[1:-1]
    raise DefinitionError("", f"rubrics have names; write {line or 'name: {...}'}")


def _readable(gathering: Gathering, rubric: Any, *place: Any) -> Any:
    """Return *rubric* if it can be read; else one that can, so that its problems are told once, at its *place*."""
    with gathering.at(*place):
        rubric = _follow(rubric)
        _read_any_rubric(with_variables(rubric, {}))
        return rubric
    return "unknown"


def _follow(rubric: Any) -> Any:
    """Return *rubric*, or what the file holds that it names as `file://support.yaml`; any other path is refused."""
    if not isinstance(rubric, str) or not _is_path(rubric):
        return rubric
    as_text = f"rubric: {{text: {json.dumps(rubric, ensure_ascii=False)}}}"
    if not is_reference(rubric):
        cures = f"write rubric: file://{rubric}, or, to ask by this text, {as_text}"
        raise DefinitionError("", f"{rubric!r} looks like the path of a file, and is not text; {cures}")
    text, shown = _read_named(rubric, f"; or, to ask by this text, write {as_text}")
    try:
        document = parse_file(text, shown)
        if document is None:  # a Markdown file, say, which is a free-form rubric
            return {"text": text.strip()}
        fields.read_as(lambda data: _read_any_rubric(with_variables(data, {})), document)
    except LoadError as error:
        raise DefinitionError("", "; ".join(map(str, error.problems))) from None
    return plain(document.root)


def _read_named(reference: str, otherwise: str = "") -> tuple[str, Path]:
    """Return the text of the file that *reference* names, and the path that messages show."""
    loading = loading_of()
    if loading.folder is None:
        cures = f"save it and call load_suite('suite.yaml'){otherwise}"
        raise DefinitionError("", f"{reference!r} is looked for beside the suite's file, and there is none; {cures}")
    from rubric.formats.includes import bare, located_file, text_of  # noqa: PLC0415 - few suites need templates

    name = bare(reference)
    file = located_file(name, loading)
    return text_of(file, loading, name), file.shown


def _read_text(data: Any) -> Any:
    """Return *data*, a text or several, with the texts of the files that it names as `file://answer.md`."""
    if isinstance(data, list):
        return [_read_text(each) for each in data]
    if isinstance(data, str) and is_reference(data):
        return _read_named(data)[0]
    folder = loading_of().folder
    if isinstance(data, str) and data == data.strip() and names_a_file(data) and folder and (folder / data).is_file():
        cures = f"for what it holds, or, for its name, with a blank behind it: {json.dumps(data + ' ')}"
        raise DefinitionError("", f"{data!r} is a file beside the suite; write file://{data} {cures}")
    return data


def _is_path(text: str) -> bool:
    return is_reference(text) or names_a_file(text)


def _is_word(text: str) -> bool:
    return len(text.split()) == 1


def _is_reference(rubric: Any) -> bool:
    return isinstance(rubric, dict) and [*rubric] == ["ref"]


def _check_new(id_: Any, index: int, first: dict[str, int]) -> None:
    """Refuse an id that an earlier case has, beside all other problems of the file."""
    if isinstance(id_, str) and first.setdefault(id_, index) != index:
        raise DefinitionError("", f"the id {id_!r} belongs to cases[{first[id_]}] already; give one of them another")


def _rubric_of(case: dict[str, Any], named: dict[Any, Any], default: Any, shared: Any) -> Any:
    """
    Return the rubric of *case*, or the *default*, with its slots filled; `{ref: name}` is one of those *named*.

    *shared* is the default as it was written: what a file has is taken as it is.
    """
    rubric = case.get("rubric", default)
    if not _is_reference(rubric):
        is_own = "rubric" in case or rubric is None or (isinstance(shared, str) and _is_path(shared))
        return rubric if is_own else fill_shared("rubric", rubric, case.get("variables", {}), case)
    name, known = rubric["ref"], [str(key) for key in named]
    found = named.get(name) if isinstance(name, str) else None
    if found is None:
        hint = suggest(str(name), known) if known else ", which is missing or empty"
        raise DefinitionError("rubric.ref", f"no rubric {name!r} under `rubrics`{hint}")
    return fill_slots(found, case.get("variables")) or "unknown"  # an empty one is refused where it is named


def _refuse_name(rubric: Any, named: Any) -> None:
    """Refuse a text that is the name of a shared rubric, or one word beside them: the judge would be asked the name."""
    if isinstance(rubric, dict) and len(rubric) == 1 and rubric.keys() & {"name", "rubric", "$ref", "use"}:
        rubric = str(*rubric.values()).rpartition("/")[2]
        rubric = rubric if rubric in named else None
    if isinstance(rubric, list) and len(rubric) > 1 and all(isinstance(each, str) and each in named for each in rubric):
        one = on_a_line({"rubric": {"ref": rubric[0]}})[1:-1]
        wholes = [_whole_of(named[each], named) for each in rubric]
        rows = [row for each in wholes for row in each.get("criteria", [each.get("text")])]
        are_lists = all([*each] in (["criteria"], ["text"]) for each in wholes)
        every = short_line({"rubric": rows})[1:-1] if are_lists else ""
        cures = f"write {one}, or, for all of them, {every or 'one rubric with the criteria of each'}"
        raise DefinitionError("", f"these are names under `rubrics`, and a case has one of them; {cures}")
    if isinstance(rubric, str) and is_ready(rubric) and not named:
        cure = f"such as rubric init --preset {rubric}, which writes a file that a case names: file://rubric.yaml"
        raise DefinitionError("", f"{rubric!r} is the name of a ready rubric; {cure}; to ask by this word, [{rubric}]")
    if not isinstance(rubric, str) or not named:
        return
    if rubric in named or (_is_word(rubric) and not _is_path(rubric)):
        name = rubric if rubric in named else [*nearest(rubric, [*map(str, named)]), *map(str, named)][0]
        refers, asks = (json.dumps(each, ensure_ascii=False) for each in (name, rubric))
        said = "a rubric" if rubric in named else "no rubric"
        cures = f"write rubric: {{ref: {refers}}}, or, to ask by this text, rubric: [{asks}]"
        raise DefinitionError("", f"{rubric!r} is {said} under `rubrics`; {cures}")


def _whole_of(rubric: Any, named: Any) -> dict[str, Any]:
    """Return *rubric*, or that of those *named* to which it refers, as a mapping; {} if it is none."""
    held = rubric
    if _is_reference(rubric):
        held = named.get(rubric["ref"]) if isinstance(named, dict) and isinstance(rubric["ref"], str) else None
    return {"text": held} if isinstance(held, str) else {"criteria": held} if isinstance(held, list) else held or {}


def _refuse_threshold(data: dict[str, Any], rubric: Any, named: dict[Any, Any]) -> None:
    """Refuse a threshold beside a *rubric*, which is to have it, with the rubric that is meant; it leaves *data*."""
    name = rubric["ref"] if _is_reference(rubric) else None
    whole = _whole_of(rubric, named)
    key = next((each for each in THRESHOLDS if each in data), "")
    if not key or not whole:
        return
    if _is_path(str(whole.get("text", ""))):
        raise fields.WrongKeyError(key, f"unknown key; the threshold is the rubric's; write it in {whole['text']}")
    own = {"threshold": data.pop(key), **{name: each for name, each in whole.items() if name != "threshold"}}
    line = short_line({"rubrics": {name: own}} if name else {"rubric": own})[1:-1] or "threshold: 0.8 there"
    raise fields.WrongKeyError(key, f"unknown key; the threshold is the rubric's; write {line}")


def _read_any_rubric(data: Any) -> Rubric:
    if isinstance(data, str):
        refuse_metric("", data, f"rubric: {{text: {data}}}")
        return Rubric.of(data)
    if isinstance(data, list):
        return fields.read_within(data, "criteria", read_rubric)
    return read_rubric(fields.as_dict(data, "a rubric: a text, a list of criteria, or a mapping"))


_read_turn = fields.reader_of(Turn)
_read_case = fields.reader_of(
    Case,
    rubric=_read_any_rubric,
    input=_read_text,
    output=_read_text,
    reference=_read_text,
    context=_read_text,
    messages=lambda data: fields.read_all(data, "message", read_message),
    tool_calls=lambda data: fields.read_all(data, "tool call", read_call),
    run=read_run,
    metrics=read_metrics,
    turns=lambda data: fields.read_all(data, "turn", lambda turn: _read_turn(turn) if isinstance(turn, dict) else turn),
    images=read_images,
    judge=read_any_judge,
    judges=read_judges,
    place=None,
    providers=None,
    history=None,
    unasked=None,
    columns=None,
)

_read_fields = fields.reader_of(
    Suite,
    {"name": "suite"},
    ("rubric", "rubrics", "defaults", "matrix"),
    cases=lambda data: fields.read_all(data, "case", _read_case),
    judge=read_any_judge,
    format=None,
    source=None,
    warnings=None,
)


def _write_case(case: Case) -> Any:
    if case.history is not None:
        cure = "give it the responses first: suite.answered(replies)"
        message = f"case {case.id!r}: its input shows the responses of earlier cases, which no file holds; {cure}"
        raise DumpError(message)
    case = evolve(case, place=None, columns=(), providers=(), unasked="")
    data = fields.fields_of(case, first=("id", "input", "output"), last=("rubric",))
    text = case.rubric.text
    if case.rubric == Rubric.of(text or "x") and not _is_path(text) and not _is_word(text):
        data["rubric"] = case.rubric.text
    return data


def write_suite(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """Return *suite* as plain data; and that no models answer it by themselves, and what its loader warned of."""
    asked = ["its providers are dropped; name what answers: --target MODEL"] if any(c.providers for c in suite) else []
    return as_suite_data(suite), [*asked, *map(str, suite.warnings)]


def _write_suite(suite: Suite) -> Any:
    data = fields.fields_of(evolve(suite, source=""), first=("name",), last=("cases",))
    return {"suite": suite.name, **data, "cases": data.get("cases", [])}


WRITERS |= {
    Case: _write_case,
    Suite: _write_suite,
    Turn: lambda turn: fields.fields_of(turn) if turn.reference else turn.input,
}
