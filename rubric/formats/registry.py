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
from typing import Any

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.formats import recognition
from rubric.formats.agentv.scope import generation_of
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
        options: What *read* takes beside the document.
    """

    name: str
    read: Read | str
    write: Write | str | None = None
    evidence: Evidence = ()
    version: Callable[[Any], str] | None = None
    options: tuple[str, ...] = ()

    def reader(self) -> Read:
        """Return the function that reads the format."""
        read: Read = _function(self.read)
        return read

    def writer(self) -> Write | None:
        """Return the function that writes the format, if there is one."""
        write: Write | None = _function(self.write)
        return write


def _function(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    module, _, name = given.partition(":")
    return getattr(import_module(module), name)


_AGENTV, _BENCHMARKS = "rubric.formats.agentv.reader:read", "rubric.formats.benchmarks"

_OWN = (
    Format("native", "rubric.formats.native.suite:read", "rubric.formats.native.suite:write_suite", recognition.NATIVE),
    Format(
        "promptfoo",
        "rubric.formats.promptfoo.reader:read",
        "rubric.formats.promptfoo.writer:write",
        recognition.PROMPTFOO,
    ),
    Format("agentv-1", _AGENTV, options=("agentv-1",)),
    Format("agentv-1.5", _AGENTV, options=("agentv-1.5",)),
    Format(
        "agentv-2",
        _AGENTV,
        "rubric.formats.agentv.writer:write",
        recognition.AGENTV,
        version=generation_of,
        options=("agentv-2",),
    ),
    Format("mcptest", "rubric.formats.mcptest.reader:read", "rubric.formats.mcptest.writer:write", recognition.MCPTEST),
    Format("autorubric", f"{_BENCHMARKS}.autorubric:read", evidence=recognition.AUTORUBRIC),
    Format("healthbench", f"{_BENCHMARKS}.healthbench:read", evidence=recognition.HEALTHBENCH),
    Format("paperbench", f"{_BENCHMARKS}.paperbench:read", evidence=recognition.PAPERBENCH),
)

FORMATS = tuple(format.name for format in _OWN)
"""The formats of the library itself."""


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(sorted(entry_points(group=GROUP), key=lambda point: point.name))


def format_names() -> tuple[str, ...]:
    """Return the names of all formats, without importing what other packages register."""
    return tuple(dict.fromkeys((*FORMATS, *(point.name for point in _entry_points()))))


@cache
def formats() -> dict[str, Format]:
    """
    Return all formats by their names, those of other packages too.

    Raises:
        DefinitionError: A package registers something else than a new format.
    """
    found = {format.name: format for format in _OWN}
    for point in _entry_points():
        added = _loaded(point)
        if point.name in found or added.name != point.name:
            raise _unfit(point, f"is a second {point.name!r}" if point.name in found else f"is called {added.name!r}")
        found[point.name] = added
    return found


def _loaded(point: EntryPoint) -> Format:
    try:
        added = point.load()
    except Exception as problem:
        raise _unfit(point, f"cannot be imported: {problem}") from problem
    if not isinstance(added, Format):
        raise _unfit(point, "is not a rubric.formats.registry.Format")
    return added


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
    """The *format* that data seems to be in (empty: none, or two), *why*, and the *rivals* that fit as well."""

    format: str
    why: str
    rivals: tuple[str, ...] = ()


def recognise(data: Any, name: str = "", schema: str = "") -> Guess:
    """
    Return the format of *data*, the plain content of a file, with that of the case files that it names put in.

    Args:
        data: What the file holds; see `case_files`.
        name: Of the file, such as `promptfooconfig.yaml`.
        schema: The address of the schema that a comment at its head names.
    """
    seen = Seen(data, name, schema)
    found = {
        known: [(weight, why) for weight, rule in known.evidence if (why := rule(seen))] for known in formats().values()
    }
    reasons = {known: why for known, why in found.items() if why}
    ranked = sorted(reasons, key=lambda known: -_weight(reasons[known]))
    # A name, tags or ids are no evidence by themselves: a workflow, a manifest and an OpenAPI description have them.
    hinted = ranked and ranked[0].name == "agentv-2" and all(weight == HINT for weight, _ in reasons[ranked[0]])
    if not ranked or (hinted and not shared_words(seen)):
        return Guess("", _keys_in_words(data))
    best, *others = ranked
    named, why = _version(best, data), _best(reasons[best])
    rival = next((other for other in others if _fit_both(reasons[best], reasons[other])), None)
    if rival is None:
        return Guess(named, why)
    other = _version(rival, data)
    return Guess("", f"{named} ({why}), and {other} ({_best(reasons[rival])})", (named, other))


Reasons = list[tuple[int, str]]


def _version(format: Format, data: Any) -> str:
    return format.version(data) if format.version else format.name


def _weight(reasons: Reasons) -> int:
    return sum(weight for weight, _ in reasons)


def _best(reasons: Reasons) -> str:
    return max(reasons, key=lambda reason: reason[0])[1]


def _fit_both(first: Reasons, second: Reasons) -> bool:
    """True if two formats fit: they weigh the same, or each has plain evidence and neither has twice the other's."""
    plain = all(max(weight for weight, _ in reasons) >= STRONG for reasons in (first, second))
    return _weight(first) == _weight(second) or (plain and _weight(second) * 2 > _weight(first))


def case_files(data: Any) -> Iterator[str]:
    """Yield the names of the files whose cases *data*, the content of a file, has for its own."""
    tests = data.get("tests") if isinstance(data, Mapping) else None
    yield from (item for item in (tests if isinstance(tests, list) else [tests]) if isinstance(item, str))


def _keys_in_words(data: Any) -> str:
    if isinstance(data, Mapping):
        return f"its keys are {', '.join(str(key) for key in data)}" if data else "it is an empty mapping"
    return "it is a list of things of no known kind" if isinstance(data, list) else "it is neither mapping nor list"
