"""
YAML 1.2 as a document, built from the events of ruamel's pure parser.

Nothing recursive stands between the text and the nodes, nothing is constructed, and an alias is refused where
it stands: deep nesting, alias bombs and merge bombs have nothing to work on.
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
from rubric.formats.growing import Growing, refused
from rubric.formats.scalars import read_scalar
from rubric.showing import shorten

__all__ = ["parse_yaml"]


def parse_yaml(text: str, source: str) -> Node | None:
    """Return the root node of *text*, None where it is empty; a `LoadError` says where it is no YAML."""
    _check_characters(text, source)
    growing = Growing(source)
    place = (1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            place = _place(event.start_mark)
            _take(growing, event, place)
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


def _take(growing: Growing, event: Any, place: tuple[int, int]) -> None:
    match event:
        case DocumentStartEvent():
            _check_start(growing, event, place)
        case MappingStartEvent():
            growing.add(Mapping(*place, flaw=_flaw(event)))
        case SequenceStartEvent():
            growing.add(Listing(*place, flaw=_flaw(event)))
        case ScalarEvent():
            growing.add(_scalar(event, place))
        case AliasEvent():
            growing.add(Scalar(*place, value=None, flaw=f"aliases (*{_name(event)}) are not read; write it out"))
        case CollectionEndEvent():
            growing.close()


def _check_start(growing: Growing, event: DocumentStartEvent, place: tuple[int, int]) -> None:
    if growing.root is not None:
        raise refused(growing.source, place, "a second document starts here; a file holds one")
    if event.version is not None and tuple(event.version) != (1, 2):
        version = ".".join(map(str, event.version))
        raise refused(growing.source, place, f"%YAML {shorten(version)} is not read, only YAML 1.2; take the line out")
    if event.tags:
        raise refused(growing.source, place, "%TAG is not read; take the line out")


def _scalar(event: ScalarEvent, place: tuple[int, int]) -> Scalar:
    if flaw := _flaw(event):
        return Scalar(*place, value=None, flaw=flaw)
    if event.style is not None or not event.implicit[0]:
        return Scalar(*place, value=event.value)
    value, flaw = read_scalar(event.value)
    return Scalar(*place, value=value, flaw=flaw)


def _flaw(event: NodeEvent) -> str:
    if event.anchor is not None:
        return f"anchors (&{_name(event)}) are not read; take it out, and write out what repeats it"
    tag = getattr(event, "tag", None)
    return f"tags ({shorten(str(tag), 60)}) are not read; take it out" if tag is not None else ""


def _name(event: NodeEvent) -> str:
    return shorten(str(event.anchor), 40)


def _place(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


def _words(problem: MarkedYAMLError) -> str:
    return shorten(", ".join(str(part) for part in (problem.context, problem.problem) if part))
