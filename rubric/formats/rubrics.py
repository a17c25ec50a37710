"""Rubric files: `load`, `loads`, `dump`, `dumps`, and the JSON Schema that editors complete from."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import evolve
from ruamel.yaml.error import YAMLError

from rubric.errors import DefinitionError, DumpError, LoadError, Problem
from rubric.formats.document import FOR_RUBRICS
from rubric.formats.document import Mapping as Branches
from rubric.formats.editing import edit
from rubric.formats.fields import read_as
from rubric.formats.files import LANGUAGES, WHOLE, Language, given_text, is_document, parse, read_text, write_text
from rubric.formats.json import to_json
from rubric.formats.native.rubric import as_data, read_rubric, reading_from
from rubric.formats.native.suite import is_suite
from rubric.formats.notes import Loading
from rubric.formats.yaml import to_yaml
from rubric.internals.fields import as_path, check_name, refuse
from rubric.internals.frozen_map import thaw
from rubric.internals.guided import guided
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from os import PathLike


_OF_SUITES = {"prompts", "providers", "scenarios", "evals", "evalcases", "targets", "defaultTest"}
"""Keys of suites of other tools, which no rubric has."""


@guided
def load(path: str | PathLike[str], /, *, base: str | PathLike[str] | None = None) -> Rubric:
    """
    Return the rubric in the file at *path*.

    Args:
        path: Ends in `.yaml`, `.yml` or `.json`.
        base: The folder that the file must be in, links followed; None: anywhere.

    Raises:
        DefinitionError: *path* is not a path.
        LoadError: With all problems of the file, each with its line and column.
    """
    file = as_path("path", path)
    language = LANGUAGES.get(file.suffix.lower())
    if language is None:
        raise LoadError([unknown_suffix(file)])
    within = None if base is None else Path(base)
    return _load(read_text(file, within, FOR_RUBRICS), str(file), language, file.parent, within)


@guided
def loads(text: str, /, *, source: str = "<string>") -> Rubric:
    """
    Return the rubric in *text* (YAML 1.2 or JSON).

    Args:
        text: The document.
        source: The name of the file in problems.

    Raises:
        DefinitionError: *text* is not text, or looks like the path of a file.
        LoadError: With all problems of the text, each with its line and column.
    """
    return _load(given_text(text, "load"), source, "yaml")


def _load(text: str, source: str, language: Language, folder: Path | None = None, base: Path | None = None) -> Rubric:
    """Return the rubric in *text*; the replies of tests that are files are read from its *folder*."""
    document = parse(text, source, language)
    at, message = document.root, ""
    keys = at.named.keys() if isinstance(at, Branches) else set[str]()
    if is_suite(document) or keys >= {"name", "evaluation_params"}:  # deepeval's metrics have these
        message = "this is a suite, with cases"
    elif (foreign := sorted(keys & _OF_SUITES)) and not keys & {"criteria", "text", "tree"}:
        message = f"this is a suite of another tool: it has the key {foreign[0]!r}"
    if message:
        message += "; load_suite(path) reads it, and `rubric grade` grades it, or rows by it: --outputs rows.jsonl"
        raise LoadError([Problem(source, at.line, at.column, "", message)])
    with reading_from(Loading(folder, base)):
        return read_as(read_rubric, document)


def of_data(data: Mapping[str, Any], /) -> Rubric:
    """
    Return the rubric in *data*, plain data as a file would hold it: mappings, lists, texts and numbers.

    Raises:
        DefinitionError: *data* is not a mapping, or JSON has no form for a value in it.
        LoadError: With all problems of the data, each with its path.
    """
    if not isinstance(data, Mapping):
        raise refuse("data", data, "a mapping such as {'rubric': '...', 'criteria': [...]}; a text is for loads()")
    try:
        text = json.dumps(thaw(data))  # of NaN, as an empty cell of a frame is, the reader says where it stands
    except (TypeError, ValueError) as problem:
        raise DefinitionError("data", f"a file cannot hold this: {problem}") from None
    try:
        return _load(text, "<data>", "json")
    except LoadError as error:  # lines of a text that nobody wrote would mislead
        raise LoadError([evolve(problem, source="data", line=0, column=0) for problem in error.problems]) from None


def to_data(rubric: Rubric, /) -> dict[str, Any]:
    """Return *rubric* as plain data: what `of_data` reads, and a file holds. It raises what `dumps` raises."""
    found: dict[str, Any] = json.loads(dumps(rubric, format="json"))
    return found


@guided
def dumps(rubric: Rubric, /, *, format: Literal["yaml", "json"] = "yaml") -> str:
    """
    Return *rubric* as text: `loads(dumps(rubric)) == rubric`.

    Raises:
        DefinitionError: It is not a rubric, or one that `grade` refuses, or *format* is another.
        DumpError: It has a value that no file can hold, such as a function as a `when`, or exceeds the limits of files.
    """
    _check_is_rubric(rubric)
    check_name("format", format, ("yaml", "json"))
    rubric.check_weights()
    try:
        data = as_data(rubric)
        text = to_json(data) if format == "json" else to_yaml(data)
    except RecursionError:
        raise DumpError("this rubric nests too deep for a file; take the rubrics within it apart") from None
    try:
        again = _load(text, "<dump>", format)
    except LoadError as error:
        problem = error.problems[0]
        shown = evolve(problem, line=0, source=rubric.name).text
        raise DumpError(f"this rubric is more than a file can hold: {shown}") from None
    if again != rubric:
        changed = next((c.id for c, d in zip(rubric.criteria, again.criteria, strict=False) if c != d), rubric.name)
        raise DumpError(f"{changed!r} holds what {format} cannot say, such as half surrogates that would join")
    return text


@guided
def dump(rubric: Rubric, path: str | PathLike[str], /) -> None:
    """
    Write *rubric* to the file at *path*.

    A YAML file that exists is edited in place, and keeps its comments, its order and its quotes wherever nothing
    changes. The file is replaced as a whole: nobody ever reads half of it.

    Raises:
        DumpError: It has a value that no file can hold, or *path* is a YAML file that is not a rubric.
    """
    _check_is_rubric(rubric)
    file = as_path("path", path)
    language = LANGUAGES.get(file.suffix.lower())
    if language is None:
        raise DumpError(str(unknown_suffix(file)))
    text = _edit(file, rubric) if language == "yaml" and file.is_file() else None
    write_text(file, dumps(rubric, format=language) if text is None else text)


def _check_is_rubric(value: object) -> None:
    if not isinstance(value, Rubric):
        raise refuse("rubric", value, "a Rubric (a suite is for dumps_suite)")


def _edit(file: Path, rubric: Rubric) -> str | None:
    """Return the text of *file* changed to say *rubric*; None where it must be written anew."""
    try:
        text = read_text(file, None, FOR_RUBRICS)
        old = _load(text, str(file), "yaml", file.parent) if text.strip() else Rubric()
    except LoadError as error:  # a file that is not a rubric is never overwritten
        msg = f"{file} exists and is not a rubric file; mend it or remove it first ({error.problems[0]})"
        raise DumpError(msg) from None
    try:
        new_text = text if old == rubric else edit(text, as_data(old), as_data(rubric))
        return new_text if _load(new_text, str(file), "yaml", file.parent) == rubric else None
    except (LoadError, YAMLError, RecursionError):
        return None


def unknown_suffix(file: Path) -> Problem:
    if is_document(str(file)):
        return Problem("path", *WHOLE, "", "this is the text of a rubric, and no path; write loads(text)")
    return Problem(str(file), *WHOLE, "", f"the suffix is {file.suffix!r}; name the file .yaml, .yml or .json")


def schema(of: Literal["rubric", "suite"] = "rubric", /) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of rubric files, or of the native files of suites."""
    from rubric.formats.assertions.table import assertion_schema  # noqa: PLC0415 - it brings code that few rubrics need

    check_name("of", of, ("rubric", "suite"))
    found: dict[str, Any] = json.loads(files("rubric.formats").joinpath(f"{of}.schema.json").read_text("utf-8"))
    if of == "suite":
        return {**found, "$defs": {**schema()["$defs"], **found["$defs"]}}
    found["$defs"]["check"]["anyOf"][1]["properties"]["assertion"] |= copy.deepcopy(assertion_schema())
    return found
