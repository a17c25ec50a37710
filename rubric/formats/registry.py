"""
The formats: how a file is recognised, which function reads it, which one writes it.

A package of yours adds a format with an entry point of the group `rubric.formats` that names a `Format`. It is
recognised, read, written and offered by the command line like those of the library.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from attrs import field, frozen

from rubric import DefinitionError, Rubric
from rubric.embed import Loading, clean, fields, plugins
from rubric.formats.built_in import OWN
from rubric.formats.recognition import GRADERS, HINT, STRONG, Evidence, Rule, Seen
from rubric.suites.suite import Suite

GROUP = "rubric.formats"
"""The group of entry points in which packages register formats."""

Read = Callable[..., Suite]
Write = Callable[[Suite], tuple[dict[str, Any], list[str]]]


def has_graders(case: Mapping[str, Any]) -> list[Any]:
    """Return what grades *case*, itself or under its `execution`."""
    execution = case.get("execution")
    parts = [case, execution if isinstance(execution, dict) else {}]
    return [part[key] for part in parts for key in (*GRADERS, "rubrics") if part.get(key)]


@frozen
class Drafts:
    """
    How criteria are drafted into a file of a format.

    Args:
        key: Of a case, under which they are written.
        write: From a rubric to the value of *key*.
        outcomes: The keys of a case that say in words what is expected.
        keeps: Whether a case has criteria already.
    """

    key: str
    write: Callable[[Rubric], Any]
    outcomes: tuple[str, ...] = ()
    keeps: Callable[[Mapping[str, Any]], object] = has_graders


@frozen
class Format:
    """
    A format of suites.

    Args:
        name: What `format=` calls it.
        read: Takes the `Notes` of a document, the `Loading` and the *options*, and returns the suite. It notes each
            problem at its path instead of raising. Given as `module:function`, it is imported when it is first needed.
        write: Takes a suite, and returns the content of a file and a sentence for each thing that is lost; None: the
            format is only read.
        evidence: The rules by which a file is recognised, with their weights.
        version: For a format of several versions, the function that returns the name of that in which data is written.
        options: Further arguments of *read*.
        mark: Keys that `convert` adds where nothing else in a file tells its format.
        suffixes: Of files that are of this format alone, besides YAML, JSON and JSONL.
        translate: Makes YAML or JSON of such a file, of its path, its text and the `Loading`. It raises a
            `DefinitionError` for a file of which none can be made.
        folder: Takes a folder, and returns the name of the file that stands for it as a suite, which need not be there;
            "" for a folder of another kind.
        marks: Names of files and folders that only projects of the system have.
        beside: A rule that holds too for a file of the format for which nothing but hints speaks.
        refusal: Returns why a file of the system, by its path and data, is not a suite; '' for any other.
        bare: What a table of no assertions at all holds, for its error; '': it is a suite.
        own: Whether it is the library's own: its reader raises by itself, and a suite may be empty.
        drafts: How criteria are drafted into its files, if they are.
    """

    name: str
    read: Read | str
    write: Write | str | None = None
    evidence: Evidence = ()
    version: Callable[[Any], str] | None = None
    options: tuple[str, ...] = ()
    mark: Mapping[str, Any] = field(factory=dict)
    suffixes: tuple[str, ...] = field(default=(), kw_only=True)
    translate: Callable[[Path, str, Loading], str] | None = field(default=None, kw_only=True)
    folder: Callable[[Path], str] | None = field(default=None, kw_only=True)
    marks: tuple[str, ...] = field(default=(), kw_only=True)
    beside: Rule | None = field(default=None, kw_only=True)
    refusal: Callable[[Path, Any], str] | None = field(default=None, kw_only=True)
    bare: str = field(default="", kw_only=True)
    own: bool = field(default=False, kw_only=True)
    drafts: Drafts | None = field(default=None, kw_only=True)

    def reader(self) -> Read:
        """Return the function that reads the format."""
        return cast("Read", _function(self.read))

    def writer(self) -> Write | None:
        """Return the function that writes the format, if there is one."""
        return cast("Write | None", _function(self.write))


def _function(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    module, _, name = given.partition(":")
    return getattr(import_module(module), name)


@cache
def format_names() -> tuple[str, ...]:
    """Return the names of all formats, without importing them."""
    return tuple(dict.fromkeys((*OWN, *plugins.names(GROUP))))


def written_names() -> tuple[str, ...]:
    """Return the names of the formats that can be written, those of other packages too."""
    return tuple(name for name, format in formats().items() if format.write)


@cache
def formats() -> dict[str, Format]:
    """Return all formats by their names, those of other packages too; a warning tells of one that is left out."""
    return {name: _function(format) for name, format in OWN.items()} | plugins.load_all(GROUP, _registered)


def _registered(name: str) -> Format:
    plugin = plugins.load(GROUP, name, "format")
    if plugin is None or not isinstance(plugin.value, Format) or name in OWN or plugin.value.name != name:
        message = f"{name!r} of {plugin and plugin.source} is not a new Format of that name; uninstall it"
        raise DefinitionError("format", message)
    return plugin.value


def find_format(name: str) -> Format:
    """
    Return the format called *name*.

    Raises:
        DefinitionError: No format has this name, or a package registers something else than a new format.
    """
    if name in formats():
        return formats()[name]
    if name in format_names():
        return _registered(name)
    raise DefinitionError("format", f"unknown format {name!r}{fields.suggest(name, formats())}")


# -- recognition ----------------------------------------------------------------------------------------------


@frozen
class Guess:
    """The *format* of data (empty: none, or two), *why*, and the *rivals* that fit as well."""

    format: str
    why: str
    rivals: tuple[str, ...] = ()


def recognise(data: Any, name: str = "", schema: str = "", around: frozenset[str] = frozenset()) -> Guess:
    """
    Return the format of *data*, the plain content of a file, with that of the case files that it names put in.

    Args:
        data: What the file holds; see `case_files`.
        name: Of the file, such as `promptfooconfig.yaml`.
        schema: The address of the schema that a comment at its head names.
        around: The names around it that tell what kind of project it is in; see `rubric.formats.projects.around`.
    """
    seen = Seen(data, name, schema, around)
    fits = list[_Fit]()
    for known in formats().values():
        try:
            reasons = [(weight, why) for weight, rule in known.evidence if (why := rule(seen))]
            name = known.version(seen.data) if known.version and reasons else known.name
        except Exception as error:  # noqa: BLE001 - a rule of another package's may raise anything
            message = f"the format {known.name!r} is left out: a rule of its evidence raised {clean(repr(error))}"
            warnings.warn(message, plugins.PluginWarning, stacklevel=2)
            continue
        if reasons:
            strongest, why = max(reasons, key=lambda reason: reason[0])
            fits.append(_Fit(name, sum(weight for weight, _ in reasons), strongest, why, known.beside))
    if not fits:
        return Guess("", _describe(data))
    best, *others = sorted(fits, key=lambda fit: -fit.weight)
    if best.strongest == HINT and best.beside is not None and not best.beside(seen):
        return Guess("", _describe(data))
    for rival in others:
        plain = min(best.strongest, rival.strongest) >= STRONG
        if rival.weight == best.weight or (plain and rival.weight * 2 > best.weight):
            return Guess("", f"{best.name} ({best.why}), and {rival.name} ({rival.why})", (best.name, rival.name))
    return Guess(best.name, best.why)


@frozen
class _Fit:
    """A format that fits: its version, the weight of its evidence, the strongest piece, and what is needed beside."""

    name: str
    weight: float
    strongest: float
    why: str
    beside: Rule | None = None


def case_files(data: Any) -> Iterator[str]:
    """Yield the names of the files whose cases *data*, the content of a file, has for its own."""
    tests = data.get("tests") if isinstance(data, Mapping) else None
    yield from (item for item in (tests if isinstance(tests, list) else [tests]) if isinstance(item, str))


def _describe(data: Any) -> str:
    if isinstance(data, Mapping):
        return f"its keys are {', '.join(str(key) for key in data)}" if data else "it is an empty mapping"
    return "it is a list of things of no known kind" if isinstance(data, list) else "it is neither mapping nor list"
