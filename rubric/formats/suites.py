"""Suites as files, in the native format and in those of other systems."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import attrs
from attrs import evolve, frozen

from rubric.embed import NOTHING, Cursor, Loading, Notes, Wording, fields, guided, read_text, shorten, write_text
from rubric.errors import DefinitionError, DumpError, LoadError
from rubric.formats.conversion_losses import as_averaged
from rubric.formats.document import FOR_SUITES, Document, Listing, load_error, plain
from rubric.formats.files import LANGUAGES, WHOLE, Language, given_text, is_document, parse, rows_of_json
from rubric.formats.includes import expand_at, follow
from rubric.formats.json import to_json
from rubric.formats.native.suite import as_suite_data, read_suite
from rubric.formats.notes import Library
from rubric.formats.projects import around, project_of
from rubric.formats.registry import Guess, case_files, find_format, format_names, formats, recognise
from rubric.formats.rubrics import unknown_suffix
from rubric.formats.yaml import to_yaml
from rubric.internals.guesses import argument_for, table
from rubric.programs import allowing
from rubric.results.rubric_diff import diff
from rubric.suites.cases import Case
from rubric.suites.histories import conclude
from rubric.suites.suite import Suite
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from os import PathLike


# -- reading -----------------------------------------------------------------------------------------------


@guided
def load_suite(
    path: str | PathLike[str],
    /,
    format: str | None = None,
    *,
    base: str | PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    required: bool | None = None,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    allow_scripts: bool = False,
) -> Suite:
    """
    Return the suite in the file at *path*; `suite.format` names its format.

    `suite.warnings` has the features of the file that the library lacks, each with its place. A grader that the library
    lacks leaves its case ungraded.

    Args:
        path: A YAML, JSON, JSONL or CSV file; or one of another kind, or a folder, that a format has for its own.
        format: One of `rubric.formats.registry.format_names()`; None: the file is recognised by its content.
        base: The folder that the file, and all files that it includes, must be in; None: the project that the file
            belongs to (see `rubric.formats.projects.project_of`), from which it may include, or its own folder.
        environ: The variables that `{{ env.NAME }}` in the file may show. The process's own are never shown.
        required: Whether an AgentV criterion that does not say so is a gate; None: as its generation documents it;
            True: as AgentV's code takes it.
        functions: The Python functions that assertions of the type `python` may name, or AgentV's by their type.
        allow_scripts: Whether to run the programs that make prompts, variables and tests of a promptfoo file. They
            run with your rights, and see the variables in *environ*. Those that grade need the leave of the run too.

    Raises:
        LoadError: With all problems of the file, each with its line and column.
    """
    file = fields.as_path("path", path)
    if file.is_dir():
        file = next((file / name for one in formats().values() if one.folder and (name := one.folder(file))), file)
    loading = Loading(
        folder=file.parent,
        base=project_of(file) if base is None else Path(base),
        environ=dict(environ or {}),
        required=required,
        functions=dict(functions or {}),
    )
    document = _document(file, None if base is None else Path(base), loading)
    with allowing(when=allow_scripts):
        suite = _read(document, format, loading, file.stem)
    bare = find_format(suite.format).bare if file.suffix.lower() in _TABLES else ""
    if bare and all(criterion.answer == NOTHING for case in suite for criterion in case.rubric.judged):
        raise load_error(str(file), WHOLE, _ungradable_table(file, bare))
    return evolve(suite, source=str(file))


_TABLES = (".csv", ".jsonl", ".ndjson")


_RUBRICS = {"rubric", "rubrics", "criteria"}  # columns of rows with a rubric each


def _ungradable_table(file: Path, what: str) -> str:
    """Return the reason why a table that no suite is made of is refused, with the call that grades its rows."""
    cure = f"such as rubric grade-many rubric.yaml {shlex.quote(str(file))}"
    return f"this table holds {what}, and is not a suite; each row is graded by another command, {cure}"


def _with_rubrics(file: str, rows: Any) -> str:
    """Return how the *rows* of a *file* are graded by the rubric that each has; '' if the first has none."""
    row = rows[0] if rows and isinstance(rows[0], dict) else {}
    own = [key for key in row if key.casefold() in _RUBRICS and row[key]]
    pairs = ((argument_for("Candidate", key, ("output", "input", "reference", "key")), key) for key in row)
    columns = {field: key for field, key in pairs if field}
    return "".join(table()["rows"]["rubric"].format(file=file, own=key, columns=columns) for key in own[:1])


@guided
def loads_suite(text: str, /, format: str | None = None, *, source: str = "<string>", **options: Any) -> Suite:
    """
    Return the suite in *text* (YAML or JSON); it includes no files.

    Args:
        text: The document.
        format: As for `load_suite`.
        source: The name of the file in problems.
        options: `environ`, `required` and `functions`, as for `load_suite`.
    """
    return _read(parse(given_text(text, "load_suite"), source, limits=FOR_SUITES), format, Loading(**options), "suite")


def _document(file: Path, base: Path | None, loading: Loading) -> Document:
    suffix = file.suffix.lower()
    text = read_text(file, base, FOR_SUITES) if suffix in LANGUAGES or file.exists() or not file.parent.is_dir() else ""
    if suffix in (".jsonl", ".ndjson"):
        return Document(str(file), Listing(1, 1, parts=[*rows_of_json(text, str(file))]))
    if suffix in LANGUAGES:
        document = parse(text, str(file), LANGUAGES[suffix], FOR_SUITES)
        for known in formats().values():
            if known.refusal is not None and (why := known.refusal(file, plain(document.root))):
                raise load_error(str(file), WHOLE, why)
        return document
    for known in formats().values():
        if suffix in known.suffixes and known.translate is not None:
            try:
                return parse(known.translate(file, text, loading), str(file), limits=FOR_SUITES)
            except DefinitionError as problem:
                raise load_error(str(file), WHOLE, problem.message) from None
    if is_document(str(file)):
        raise load_error("path", WHOLE, "this is the text of a suite, and no path; write loads_suite(text)")
    message = f"the suffix is {file.suffix!r}; a suite is a .yaml, .yml, .json, .jsonl or .csv"
    raise load_error(str(file), WHOLE, message)


def _read(document: Document, format_: str | None, loading: Loading, name: str) -> Suite:
    guess = _guess(document, loading) if format_ is None else Guess(find_format(format_).name, "")
    known = find_format(guess.format)
    notes = Notes(document)
    try:
        suite = known.reader()(notes, loading, *known.options)
        if known.own:  # which may be empty and without a name, as a suite in code may be
            return suite
        if not suite.cases and not notes.errors:
            notes.error((), f"there is nothing in it to grade: a suite of {known.name} without cases")
        notes.finish()
    except LoadError as error:
        remark = f"{document.source}: read as {guess.format}, since {guess.why}; if it is another, name one with "
        remark = Wording(remark, format=None)
        is_certain = known.own and "'suite'" in guess.why  # a key that no other format has
        raise LoadError(error.problems, guess.format, remark if guess.why and not is_certain else "") from None
    except Exception as error:
        if known.own:
            raise
        why = shorten(f"the reader of {known.name} raised {type(error).__name__}: {error}")
        raise load_error(document.source, WHOLE, why) from error
    return evolve(suite, name=suite.name or name, source=document.source, warnings=tuple(notes.warnings))


def _guess(document: Document, loading: Loading) -> Guess:
    """Return the format of *document*, recognised by its content and that of the case files that it names."""
    data = plain(document.root)
    if cases := [*_include(document, loading, [*case_files(data)])]:
        own = data["tests"] if isinstance(data["tests"], list) else []
        data = {**data, "tests": [*own, *cases]}
    file = Path(document.source)
    guess = recognise(data, file.name, document.schema, around(file) if loading.folder is not None else frozenset())
    if guess.rivals:
        message = f"this may be of two systems, which would grade it otherwise: {guess.why}; name one with "
        message = Wording(message, tuple(Wording(format=rival) for rival in guess.rivals))
        raise load_error(document.source, document.root.place, message)
    if not guess.format and file.suffix.lower() in _TABLES:
        what, remark = "rows of no known format", _with_rubrics(document.source, data)
        said = f"this table holds {what}, with a rubric each" if remark else _ungradable_table(file, what)
        raise LoadError(load_error(document.source, document.root.place, said).problems, remark=remark)
    if not guess.format:
        message = f"this is not a suite of a known format: {guess.why}; name one with "
        message = Wording(Wording(message, format=None), f": {', '.join(format_names())}")
        raise load_error(document.source, document.root.place, message)
    return guess


MOST_LOOKED_INTO = 8
"""Case files that are read to recognise the file that names them."""


def _include(document: Document, loading: Loading, names: list[str]) -> Iterator[Any]:
    """Yield the cases in the files called *names*, looked for as in any format; its reader reports problems."""
    root = Cursor.of(Notes(document), evolve(loading, library=Library(), climbs=True))
    files = (one for name in names for one in expand_at(root.holding(name)))
    for file in islice(files, MOST_LOOKED_INTO):
        if file.value.lower().endswith((".csv", ".tsv")):  # whose columns are variables, and may have any name
            continue
        found = follow(file)
        data = None if found is None else found.value
        if isinstance(data, dict):
            data = data.get("tests", [data])
        yield from data if isinstance(data, list) else ()


# -- writing -----------------------------------------------------------------------------------------------


@frozen
class Converted:
    """
    A suite in the spelling of another format.

    Args:
        format: The format.
        data: The content of the file, as plain data.
        dropped: The losses, a sentence each.
    """

    format: str
    data: dict[str, Any]
    dropped: tuple[str, ...] = ()

    def __str__(self) -> str:
        return to_yaml(self.data)

    def dump(self, path: str | PathLike[str], /) -> None:
        """Write it to the file at *path*, as JSON where that ends in `.json`, else as YAML."""
        file = fields.as_path("path", path)
        write_text(file, to_json(self.data) if file.suffix.lower() == ".json" else str(self))


@guided
def convert(suite: Suite, format: str = "native", /) -> Converted:
    """
    Return *suite* in another *format*, `native`, `promptfoo` or a plug-in's, with a list of what is lost.

    What is written is read again, as a file of that format: a case that is another one then, and of which no loss is
    told, is told as well.

    Raises:
        DefinitionError: Another format.
        DumpError: It has a value that no file can hold, such as a function; or nothing is left to grade by.
    """
    _check_suite(suite)
    write = formats()[format].writer() if format in formats() else None
    if write is None:
        written = [known.name for known in formats().values() if known.write]
        raise DefinitionError("format", f"cannot write {format!r}{fields.suggest(format, written)}")
    suite = conclude(suite)
    data, lost = write(suite)
    if not suite.cases:
        return Converted(format, data, tuple(lost))
    if recognise(data).format != format:
        data = {**formats()[format].mark, **data}
    return Converted(format, data, (*lost, *_untold(suite, _again(data, format, lost), lost)))


def _again(data: dict[str, Any], format: str, lost: Sequence[str]) -> Suite:
    """Return the suite in *data*, read as a file would be."""
    try:
        text = to_json(data)
    except (TypeError, ValueError) as problem:
        cure = "use texts, finite numbers, booleans, lists and mappings"
        raise DumpError(f"the suite cannot be written as {format}: {problem}; {cure}") from None
    try:
        return loads_suite(text, format, source=f"<{format}>")
    except LoadError as error:
        why = f"nothing is left of it to grade by: {'; '.join(lost)}" if lost else str(error.problems[0])
        raise DumpError(f"the suite cannot be written as {format}: {shorten(why, 1000)}") from None


_APART = frozenset({"rubric", "place", "columns", "providers", "history", "unasked"})
"""The fields of a case that are compared by themselves, or that files do not hold."""


def _untold(before: Suite, after: Suite, lost: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each case of *before* that is another one in *after*, and whose difference nothing tells."""
    names = [field.name for field in attrs.fields(Case) if field.name not in _APART]
    known, in_order = {case.id: case for case in after}, len(after) == len(before)
    for index, case in enumerate(before):
        again = known.get(case.id) or (after.cases[index] if in_order else None)
        told = [sentence for sentence in lost if repr(case.id) in sentence]
        if again is None:
            if not told:
                yield f"case {case.id!r}: it is left out"
            continue
        left = [name for name in names if getattr(case, name) != getattr(again, name)]
        left = [name for name in left if not any(name in sentence for sentence in told)]
        of_rubric = [sentence for sentence in told if not any(f" {name}" in sentence for name in names)]
        changed = [
            one.id for one in diff(as_averaged(case.rubric), as_averaged(again.rubric)) if one.affects != "people"
        ]
        if of_rubric:  # what is told of criteria may be all of them; a field of the whole must be named
            whole = {field.name for field in attrs.fields(Rubric)} - {"criteria"}
            changed = [id_ for id_ in changed if id_ in whole and not any(id_ in sentence for sentence in of_rubric)]
        left += [f"rubric: {id_}" for id_ in changed]
        if left:
            yield f"case {case.id!r}: {shorten(', '.join(left), 300)} would be read otherwise"


def _check_suite(suite: object) -> None:
    if not isinstance(suite, Suite):
        raise fields.refuse("suite", suite, "a Suite (a rubric is for dumps)")


@guided
def dumps_suite(suite: Suite, /, *, language: Literal["yaml", "json"] = "yaml") -> str:
    """
    Return *suite* as text in the native format: `loads_suite(dumps_suite(suite)) == suite`, but for its format's name.

    Raises:
        DumpError: It has a value that no file can hold, such as a function.
    """
    _check_suite(suite)
    suite = conclude(suite)
    fields.check_name("language", language, ("yaml", "json"))
    data = as_suite_data(suite)
    text = to_json(data) if language == "json" else to_yaml(data)
    try:
        again = read_suite(parse(text, "<dump>", language, FOR_SUITES))
    except LoadError as error:
        large = "; keep large images in files, named as file:// in the suite" * any(case.images for case in suite.cases)
        raise DumpError(f"the suite {suite.name!r} cannot be written: {error.problems[0].message}{large}") from None
    if again != evolve(suite, format="native"):
        msg = f"the suite {suite.name!r} holds what {language} cannot say, such as half surrogates that would join"
        raise DumpError(msg)
    return text


@guided
def dump_suite(suite: Suite, path: str | PathLike[str], /) -> None:
    """Write *suite* to the file at *path* in the native format; the file is replaced as a whole."""
    file = fields.as_path("path", path)
    language: Language | None = LANGUAGES.get(file.suffix.lower())
    if language is None:
        raise DumpError(str(unknown_suffix(file)))
    write_text(file, dumps_suite(suite, language=language))
