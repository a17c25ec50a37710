"""
The formats: how a file is recognised, which function reads it, which one writes it.

A package of yours adds a format with an entry point of the group `rubric.formats` that names a `Format`. It is
recognised, read, written and offered by the command line like those of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.formats import recognition
from rubric.formats.agentv.scope import THRESHOLD, generation_of
from rubric.formats.recognition import HINT, STRONG, Evidence, Seen, shared_words
from rubric.internals.fields import suggest
from rubric.suites.suite import Suite

GROUP = "rubric.formats"
"""The group of entry points in which packages register formats."""

Read = Callable[..., Suite]
Write = Callable[[Suite], tuple[dict[str, Any], list[str]]]


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
    """

    name: str
    read: Read | str
    write: Write | str | None = None
    evidence: Evidence = ()
    version: Callable[[Any], str] | None = None
    options: tuple[str, ...] = ()
    mark: Mapping[str, Any] = field(factory=dict)

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


_HERE = "rubric.formats"
_PROMPTFOO = f"{_HERE}.promptfoo.reader:read", f"{_HERE}.promptfoo.writer:write"
_THRESHOLD = {"threshold": THRESHOLD}
_AGENTV = f"{_HERE}.agentv.reader:read", f"{_HERE}.agentv.writer:write"

_WRITTEN, _METRICS = f"{_HERE}.benchmarks.writers:write", f"{_HERE}.frameworks.writers:write"

_OWN = (
    Format("native", f"{_HERE}.native.suite:read", f"{_HERE}.native.suite:write_suite", recognition.NATIVE),
    Format(
        "promptfoo", *_PROMPTFOO, recognition.PROMPTFOO, mark={"$schema": "https://promptfoo.dev/config-schema.json"}
    ),
    Format("agentv-1", _AGENTV[0], options=("agentv-1",)),
    Format("agentv-1.5", _AGENTV[0], options=("agentv-1.5",)),
    Format("agentv-2", *_AGENTV, recognition.AGENTV, generation_of, ("agentv-2",), {"default_test": _THRESHOLD}),
    Format("mcptest", f"{_HERE}.mcptest.reader:read", f"{_HERE}.mcptest.writer:write", recognition.MCPTEST),
    Format("autorubric", f"{_HERE}.benchmarks.autorubric:read", f"{_WRITTEN}_autorubric", recognition.AUTORUBRIC),
    Format("healthbench", f"{_HERE}.benchmarks.healthbench:read", f"{_WRITTEN}_healthbench", recognition.HEALTHBENCH),
    Format("paperbench", f"{_HERE}.benchmarks.paperbench:read", f"{_WRITTEN}_paperbench", recognition.PAPERBENCH),
    Format("adk", f"{_HERE}.frameworks.adk:read", f"{_METRICS}_adk", recognition.ADK),
    Format("deepeval", f"{_HERE}.frameworks.deepeval:read", f"{_METRICS}_deepeval", recognition.DEEPEVAL),
    Format("mlflow", f"{_HERE}.frameworks.mlflow:read", f"{_METRICS}_mlflow", recognition.MLFLOW),
    Format("ragas", f"{_HERE}.frameworks.ragas:read", f"{_METRICS}_ragas", recognition.RAGAS),
    Format("verifiers", f"{_HERE}.frameworks.verifiers:read", f"{_METRICS}_verifiers", recognition.VERIFIERS),
)

FORMATS = tuple(format.name for format in _OWN)
"""The formats of the library itself."""


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: point.name))


def format_names() -> tuple[str, ...]:
    """Return the names of all formats, without importing what other packages register."""
    return tuple(dict.fromkeys((*FORMATS, *(point.name for point in _entry_points()))))


def written_names() -> tuple[str, ...]:
    """Return the names of the formats that can be written, and of all that other packages register."""
    own = (format.name for format in _OWN if format.write)
    return tuple(dict.fromkeys((*own, *(point.name for point in _entry_points()))))


@cache
def formats() -> dict[str, Format]:
    """
    Return all formats by their names, those of other packages too.

    Raises:
        DefinitionError: A package registers something else than a new format.
    """
    found = {format.name: format for format in _OWN}
    for point in _entry_points():
        try:
            added = point.load()
        except Exception as problem:
            raise _unfit(point, f"cannot be imported: {problem}") from problem
        if not isinstance(added, Format):
            raise _unfit(point, "is not a rubric.formats.registry.Format")
        if point.name in found or added.name != point.name:
            raise _unfit(point, f"is a second {point.name!r}" if point.name in found else f"is called {added.name!r}")
        found[point.name] = added
    return found


def _unfit(point: EntryPoint, why: str) -> DefinitionError:
    package = point.dist.name if point.dist else "a package"
    return DefinitionError("format", f"{point.value}, the format {point.name!r} of {package}, {why}; mend or remove it")


def format_called(name: str) -> Format:
    """
    Return the format called *name*.

    Raises:
        DefinitionError: There is none.
    """
    if name not in formats():
        raise DefinitionError("format", f"unknown format {name!r}{suggest(name, formats())}")
    return formats()[name]


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
        around: The names around it that tell what kind of project it is in; see `rubric.formats.files.around`.
    """
    seen = Seen(data, name, schema, around)
    fits = []
    for known in formats().values():
        if reasons := [(weight, why) for weight, rule in known.evidence if (why := rule(seen))]:
            strongest, why = max(reasons, key=lambda reason: reason[0])
            name = known.version(data) if known.version else known.name
            fits.append(_Fit(name, sum(weight for weight, _ in reasons), strongest, why))
    if not fits:
        return Guess("", _described(data))
    best, *others = sorted(fits, key=lambda fit: -fit.weight)
    # A name, tags or ids are no evidence by themselves: a workflow, a manifest and an OpenAPI description have them.
    is_agentv = best.name in FORMATS and best.name.startswith("agentv-")
    if is_agentv and best.strongest == HINT and not shared_words(seen):
        return Guess("", _described(data))
    for rival in others:
        plain = min(best.strongest, rival.strongest) >= STRONG
        if rival.weight == best.weight or (plain and rival.weight * 2 > best.weight):
            return Guess("", f"{best.name} ({best.why}), and {rival.name} ({rival.why})", (best.name, rival.name))
    return Guess(best.name, best.why)


@frozen
class _Fit:
    """A format that fits: its version, the weight of its evidence, and the strongest piece with its weight."""

    name: str
    weight: float
    strongest: float
    why: str


def case_files(data: Any) -> Iterator[str]:
    """Yield the names of the files whose cases *data*, the content of a file, has for its own."""
    tests = data.get("tests") if isinstance(data, Mapping) else None
    yield from (item for item in (tests if isinstance(tests, list) else [tests]) if isinstance(item, str))


def _described(data: Any) -> str:
    if isinstance(data, Mapping):
        return f"its keys are {', '.join(str(key) for key in data)}" if data else "it is an empty mapping"
    return "it is a list of things of no known kind" if isinstance(data, list) else "it is neither mapping nor list"
