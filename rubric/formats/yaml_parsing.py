"""
YAML 1.2 as a document, built from the events of ruamel's pure parser.

Nothing recursive stands between the text and the nodes, and nothing is constructed. In rubric files an alias is
refused where it stands; in suites, whose authors use them, what it repeats counts towards the limits each time. So deep
nesting, alias bombs and merge bombs have nothing to work on.
"""

from __future__ import annotations

import re
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from rubric.errors import LoadError
from rubric.formats.documents import Listing, Mapping, Node, Scalar
from rubric.formats.growing import FOR_RUBRICS, Growing, Limits, refused
from rubric.formats.scalars import MERGING, read_scalar
from rubric.showing import shorten

__all__ = ["parse_yaml"]


def parse_yaml(text: str, source: str, limits: Limits = FOR_RUBRICS) -> Node | None:
    """Return the root node of *text*, None where it is empty; a `LoadError` says where it is no YAML."""
    _check_characters(text, source)
    growing, named = Growing(source, limits), dict[str, Node]()
    place = (1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            place = _place(event.start_mark)
            _take(growing, event, place, named)
    except LoadError:
        raise
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        raise refused(source, _place(mark) if mark else place, f"this is not YAML: {_words(problem)}") from None
    except (YAMLError, ValueError, OverflowError, IndexError, AttributeError, TypeError, AssertionError) as problem:
        why = str(problem) or type(problem).__name__
        raise refused(source, place, f"this is not YAML: {why}") from None
    return growing.root


_UNFIT = re.compile("[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What YAML refuses, and three line ends that are none in YAML 1.2 but that ruamel turns to spaces."""


def _check_characters(text: str, source: str) -> None:
    if found := _UNFIT.search(text):
        before = text[: found.start()]
        place = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise refused(source, place, f"the character {found[0]!r} cannot stand in YAML; escape it in double quotes")


def _take(growing: Growing, event: Any, place: tuple[int, int], named: dict[str, Node]) -> None:
    match event:
        case DocumentStartEvent():
            _check_start(growing, event, place)
        case AliasEvent():
            _repeat(growing, event, place, named)
        case NodeEvent():
            node = _node(event, place, aliases=growing.limits.aliases)
            if event.anchor is not None and not node.flaw:
                named[str(event.anchor)] = node
            growing.add(node)
        case CollectionEndEvent():
            node = growing.close()
            if growing.limits.aliases and isinstance(node, Mapping):
                _merge(growing, node)


def _node(event: Any, place: tuple[int, int], *, aliases: bool) -> Node:
    flaw = _flaw(event, aliases=aliases)
    match event:
        case MappingStartEvent():
            return Mapping(*place, flaw=flaw)
        case SequenceStartEvent():
            return Listing(*place, flaw=flaw)
        case _:
            return _scalar(event, place, flaw)


def _repeat(growing: Growing, event: AliasEvent, place: tuple[int, int], named: dict[str, Node]) -> None:
    alias = _name(event)
    if not growing.limits.aliases:
        flaw = f"aliases (*{alias}) are not read; write it out"
    elif str(event.anchor) not in named:
        flaw = f"no anchor &{alias} stands above this alias; write it out"
    elif growing.repeat(named[str(event.anchor)]):
        return
    else:
        flaw = f"the alias *{alias} stands within what it repeats; write it out"
    growing.add(Scalar(*place, value=None, flaw=flaw))


def _merge(growing: Growing, node: Mapping) -> None:
    """Put in place of each merge key (<<) what it merges, as far as *node* has no such key itself."""
    pairs = list(node.pairs())
    merging = [value for key, value in pairs if _is_merge(key, value)]
    if not merging:
        return
    node.parts[:] = [part for key, value in pairs if not _is_merge(key, value) for part in (key, value)]
    own = {key.value for key, _ in pairs if isinstance(key, Scalar)}
    for source in (source for value in merging for source in _sources(value)):
        for name, value in source.pairs():
            if isinstance(name, Scalar) and name.value not in own:
                own.add(name.value)
                growing.adopt(node, name, value)


def _is_merge(key: Node, value: Node) -> bool:
    return key.flaw == MERGING and all(isinstance(source, Mapping) for source in _sources(value))


def _sources(value: Node) -> list[Any]:
    return value.parts if isinstance(value, Listing) else [value]


def _check_start(growing: Growing, event: DocumentStartEvent, place: tuple[int, int]) -> None:
    if growing.root is not None:
        raise refused(growing.source, place, "a second document starts here; a file holds one")
    if event.version is not None and tuple(event.version) != (1, 2):
        version = ".".join(map(str, event.version))
        raise refused(growing.source, place, f"%YAML {shorten(version)} is not read, only YAML 1.2; take the line out")
    if event.tags:
        raise refused(growing.source, place, "%TAG is not read; take the line out")


def _scalar(event: ScalarEvent, place: tuple[int, int], flaw: str) -> Scalar:
    if flaw:
        return Scalar(*place, value=None, flaw=flaw)
    if event.style is not None or not event.implicit[0]:
        return Scalar(*place, value=event.value)
    value, flaw = read_scalar(event.value)
    return Scalar(*place, value=value, flaw=flaw)


def _flaw(event: NodeEvent, *, aliases: bool) -> str:
    if event.anchor is not None and not aliases:
        return f"anchors (&{_name(event)}) are not read; take it out, and write out what repeats it"
    tag = getattr(event, "tag", None)
    return f"tags ({shorten(str(tag), 60)}) are not read; take it out" if tag is not None else ""


def _name(event: NodeEvent) -> str:
    return shorten(str(event.anchor), 40)


def _place(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _words(problem: MarkedYAMLError) -> str:
    said = shorten(", ".join(str(part) for part in (problem.context, problem.problem) if part))
    return f"{said}; {_QUOTE_IT}" if any(sign in said for sign in _UNQUOTED) else said


_UNQUOTED = ("mapping values are not allowed", "but found '<scalar>'")
"""What the parser says where a text that has a colon and quotes of its own stands without quotes around all of it."""
_QUOTE_IT = "if this is in a text with a colon or quotes in it, quote all of it: 'asks: \"why?\" at once'"
