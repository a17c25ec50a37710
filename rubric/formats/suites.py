"""Suites as files, in the native format and in those of other systems."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve, frozen

from rubric.errors import DefinitionError, DumpError, LoadError, Problem
from rubric.formats.cases import as_suite_data, read_suite
from rubric.formats.documents import Document, Listing, Node, Scalar, plain
from rubric.formats.documents import Mapping as MappingNode
from rubric.formats.files import read_text, write_text
from rubric.formats.growing import FOR_SUITES, refused
from rubric.formats.includes.loading import Loading
from rubric.formats.json_parsing import parse_json
from rubric.formats.native import LANGUAGES, schema, unknown_suffix
from rubric.formats.notes import Notes
from rubric.formats.parsing import Language, given_text, parse
from rubric.formats.problems import read_as
from rubric.formats.recognising import FORMATS, recognise
from rubric.formats.writing import to_json, to_yaml
from rubric.rubrics import Rubric
from rubric.suites.cases import Case, Place
from rubric.suites.suites import Suite
from rubric.validating import as_path, check_name, refuse, suggest

if TYPE_CHECKING:
    from os import PathLike

__all__ = [
    "Converted",
    "convert",
    "dump_suite",
    "dumps_suite",
    "format_of",
    "is_rubric",
    "load_suite",
    "loads_suite",
    "suite_schema",
]

_READERS = {
    "promptfoo": "rubric.formats.promptfoo",
    "agentv-1": "rubric.formats.agentv",
    "agentv-1.5": "rubric.formats.agentv",
    "agentv-2": "rubric.formats.agentv",
    "mcptest": "rubric.formats.mcptest",
    "autorubric": "rubric.formats.peers.autorubric",
    "healthbench": "rubric.formats.peers.healthbench",
    "paperbench": "rubric.formats.peers.paperbench",
}
_WRITERS = {name: _READERS[name] for name in ("promptfoo", "agentv-2", "mcptest")}

Write = Callable[[Suite], tuple[dict[str, Any], list[str]]]


# -- reading -----------------------------------------------------------------------------------------------


def load_suite(
    path: str | PathLike[str],
    /,
    format: str | None = None,
    *,
    base: str | PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    required: bool | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Suite:
    """
    Return the suite in the file at *path*.

    What the file says and the library does not do stands in `suite.warnings`, each with its place; a grader that it
    does not have leaves its case ungraded.

    Args:
        path: A YAML, JSON, JSONL or CSV file.
        format: One of `rubric.formats.recognising.FORMATS`; None: recognised by its keys.
        base: The folder that the file, and whatever it includes, must be in; None: the folder of the file.
        environ: The variables that `{{ env.NAME }}` in the file may show. The process's own are never shown.
        required: Whether an AgentV criterion that does not say so is a gate; None: as its generation documents it;
            True: as AgentV's code takes it.
        functions: The Python functions that assertions of the type `python` may name.

    Raises:
        LoadError: All that is wrong with the file, each problem with its line and column.
    """
    file = as_path("path", path)
    document = _document(file, None if base is None else Path(base))
    loading = Loading(
        folder=file.parent,
        base=file.parent if base is None else Path(base),
        environ=dict(environ or {}),
        required=required,
        functions=dict(functions or {}),
    )
    return evolve(_read(document, format, loading, file.stem), source=str(file))


def is_rubric(path: str | PathLike[str], /) -> bool:
    """
    Say whether the file at *path* holds one native rubric, or nothing that any format knows, and not a suite.

    Raises:
        LoadError: It cannot be read.
    """
    file = Path(path)
    if file.suffix.lower() not in LANGUAGES:
        return False
    document = _document(file, None)
    return not _is_suite(document) and recognise(plain(document.root, lambda *_: None)).format in ("", "native")


def format_of(path: str | PathLike[str], /) -> str:
    """Return the format that the file at *path* seems to be in; empty where it cannot be told."""
    try:
        document = _document(Path(path), None)
    except LoadError:
        return ""
    return recognise(plain(document.root, lambda *_: None)).format


def _is_suite(document: Document) -> bool:
    keys = document.root.named if isinstance(document.root, MappingNode) else {}
    return bool({"suite", "cases"} & {*keys})


def loads_suite(text: str, /, format: str | None = None, *, source: str = "<string>", **options: Any) -> Suite:
    """
    Return the suite that *text* (YAML or JSON) says; it includes no files.

    Args:
        text: The document.
        format: As for `load_suite`.
        source: What problems name as the file.
        options: `environ`, `required` and `functions`, as for `load_suite`.
    """
    return _read(parse(given_text(text, "load_suite"), source, limits=FOR_SUITES), format, Loading(**options), "suite")


def _document(file: Path, base: Path | None) -> Document:
    text = read_text(file, base, FOR_SUITES)
    match file.suffix.lower():
        case ".jsonl" | ".ndjson":
            return Document(str(file), _rows(text, str(file)))
        case ".csv":
            return Document(str(file), _table(file))
        case suffix if suffix in LANGUAGES:
            return parse(text, str(file), LANGUAGES[suffix], FOR_SUITES)
        case _:
            raise LoadError([_unknown_kind(file)])


def _unknown_kind(file: Path) -> Problem:
    message = f"the suffix {file.suffix!r} is unknown; name the file .yaml, .yml, .json, .jsonl or .csv"
    return Problem(str(file), 1, 1, "", message)


def _table(file: Path) -> Node:
    """Return the promptfoo configuration whose tests are the rows of *file*."""
    return MappingNode(1, 1, parts=[Scalar(1, 1, value="tests"), Scalar(1, 1, value=f"file://{file.name}")])


def _rows(text: str, source: str) -> Listing:
    rows: list[Node] = []
    for number, line in enumerate(text.split("\n"), 1):
        row = parse_json(line, source, FOR_SUITES, number) if line.strip() else None
        rows += [row] if row is not None else []
    return Listing(1, 1, parts=rows)


def _read(document: Document, format_: str | None, loading: Loading, name: str) -> Suite:
    chosen = _checked(format_) or _recognised(document)
    if chosen == "native":
        return _read_native(document, name)
    notes = Notes(document)
    reader = import_module(_READERS[chosen])
    generation = (chosen,) if chosen.startswith("agentv-") and format_ else ()
    suite: Suite = reader.read(notes, loading, *generation)
    notes.finish()
    return evolve(suite, name=suite.name or name, source=document.source, warnings=tuple(notes.warnings))


def _checked(format_: str | None) -> str:
    if format_ is not None and format_ not in FORMATS:
        raise DefinitionError("format", f"unknown format {format_!r}{suggest(format_, FORMATS)}")
    return format_ or ""


def _recognised(document: Document) -> str:
    guess = recognise(plain(document.root, lambda *_: None))
    if not guess.format:
        message = f"this is no suite of a known format: {guess.why}; name one with format=: {', '.join(FORMATS)}"
        raise refused(document.source, document.root.place, message)
    return guess.format


def _read_native(document: Document, name: str) -> Suite:
    """Return a native suite; a rubric by itself is a suite of one case, whose candidate is to come from a target."""
    if _is_suite(document):
        return read_suite(document)
    rubric = read_as(Rubric, document)
    return Suite(rubric.name or name, [Case(name, rubric, place=Place(document.source))], source=document.source)


# -- writing -----------------------------------------------------------------------------------------------


@frozen
class Converted:
    """
    A suite in the spelling of another format.

    Args:
        format: The format.
        data: The content of the file, as plain data.
        dropped: What that format cannot hold, a sentence each.
    """

    format: str
    data: dict[str, Any]
    dropped: tuple[str, ...] = ()

    def __str__(self) -> str:
        return to_yaml(self.data)


def convert(suite: Suite, format: str = "native", /) -> Converted:
    """
    Return *suite* in another *format*: `native`, `promptfoo`, `agentv-2` or `mcptest`, with what was dropped.

    Raises:
        DefinitionError: Another format.
        DumpError: It holds what no file can say, such as a function.
    """
    _check_suite(suite)
    if format == "native":
        dropped = tuple(f"{problem}" for problem in suite.warnings)
        return Converted(format, as_suite_data(suite), dropped)
    if format not in _WRITERS:
        raise DefinitionError("format", f"cannot write {format!r}{suggest(format, ['native', *_WRITERS])}")
    write: Write = import_module(_WRITERS[format]).write
    data, lost = write(suite)
    return Converted(format, data, tuple(lost))


def _check_suite(suite: object) -> None:
    if not isinstance(suite, Suite):
        raise refuse("suite", suite, "a Suite (a rubric is for dumps)")


def dumps_suite(suite: Suite, /, *, language: Literal["yaml", "json"] = "yaml") -> str:
    """
    Return *suite* as text in the native format: `loads_suite(dumps_suite(suite)) == suite`, but for its format's name.

    Raises:
        DumpError: It holds what no file can say, such as a function.
    """
    _check_suite(suite)
    check_name("language", language, ("yaml", "json"))
    data = as_suite_data(suite)
    text = to_json(data) if language == "json" else to_yaml(data)
    again = read_suite(parse(text, "<dump>", language, FOR_SUITES))
    if again != evolve(suite, format="native"):
        msg = f"the suite {suite.name!r} holds what {language} cannot say, such as half surrogates that would join"
        raise DumpError(msg)
    return text


def dump_suite(suite: Suite, path: str | PathLike[str], /) -> None:
    """Write *suite* to the file at *path* in the native format; the file is replaced as a whole."""
    file = as_path("path", path)
    language: Language | None = LANGUAGES.get(file.suffix.lower())
    if language is None:
        raise DumpError(str(unknown_suffix(file)))
    write_text(file, dumps_suite(suite, language=language))


def suite_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of native suite files."""
    text = files("rubric.formats").joinpath("suite.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return {**found, "$defs": {**schema()["$defs"], **found["$defs"]}}
