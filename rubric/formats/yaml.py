"""
From plain data to text: YAML that reads as if written by hand, or JSON.

YAML 1.2 as a document, built from the events of ruamel's pure parser.

Nothing recursive stands between the text and the nodes, and nothing is constructed. In rubric files an alias is
refused where it stands; in suites, whose authors use them, what it repeats counts towards the limits each time. So deep
nesting, alias bombs and merge bombs have nothing to work on.
"""

from __future__ import annotations

import re
import sys
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import Emitter
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString

from rubric.errors import LoadError
from rubric.formats.document import (
    FOR_RUBRICS,
    MERGING,
    Growing,
    Limits,
    Listing,
    Mapping,
    Node,
    Scalar,
    is_text,
    read_scalar,
    refused,
)
from rubric.internals.text import shorten

WIDTH = 100
"""Characters that a mapping or a list may take to stand on one line."""


def to_yaml(data: Any) -> str:
    """Return *data* as YAML 1.2."""
    return print_yaml(editor(), styled(data, ()))


def editor() -> YAML:
    """Return ruamel's round-trip mode, which keeps comments, order and quotes."""
    yaml = YAML(typ="rt", pure=True)
    yaml.Emitter = _Emitter
    yaml.Representer = _Representer
    yaml.preserve_quotes = True
    yaml.width = sys.maxsize
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


class _Emitter(Emitter):
    """Starts a new line after a flow mapping or list with a comment, where ruamel may run on into the next item."""

    def expect_flow_mapping_key(self) -> None:
        ends = isinstance(self.event, MappingEndEvent)
        super().expect_flow_mapping_key()
        self.no_newline = False if ends else self.no_newline

    def expect_flow_sequence_item(self) -> None:
        ends = isinstance(self.event, SequenceEndEvent)
        super().expect_flow_sequence_item()
        self.no_newline = False if ends else self.no_newline


class _Representer(RoundTripRepresenter):
    """Writes nothing as `null`, since a key without a value looks like a slip."""

    def represent_nothing(self, _: None) -> Any:
        return self.represent_scalar("tag:yaml.org,2002:null", "null")


_Representer.add_representer(type(None), _Representer.represent_nothing)


def print_yaml(yaml: YAML, data: Any) -> str:
    """Return *data* as *yaml* prints it."""
    stream = StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def styled(data: Any, path: tuple[Any, ...], *, inline: bool = False) -> Any:
    """Return *data*, which stands at *path*, in the style in which one would write it; *inline* within one line."""
    if not isinstance(data, dict | list):
        return _styled_text(data, inline=inline)
    inline = inline or (bool(path) and _fits_a_line(data, path))
    block: CommentedMap | CommentedSeq
    if isinstance(data, dict):
        pairs = ((_styled_key(key), styled(value, (*path, key), inline=inline)) for key, value in data.items())
        block = CommentedMap(pairs)
    else:
        block = CommentedSeq(styled(value, (*path, index), inline=inline) for index, value in enumerate(data))
    if inline:
        block.fa.set_flow_style()
    return block


def _fits_a_line(data: Any, path: tuple[Any, ...]) -> bool:
    if path[-1] == "criteria" or not _is_simple(data):
        return False
    is_criterion = path[-2:-1] == ("criteria",) and isinstance(data, dict)
    if is_criterion and any(isinstance(value, dict | list) for value in data.values()):
        return False
    return 2 * len(path) + len(str(data)) <= WIDTH


def _is_simple(data: Any) -> bool:
    """Say whether *data* reads well on one line: nothing of more than one line in it, and at most one inner mapping."""
    match data:
        case dict():
            inner = [value for value in data.values() if isinstance(value, dict | list)]
            return "criteria" not in data and len(inner) <= 1 and all(map(_is_simple, data.values()))
        case list():
            return not any(isinstance(item, dict | list) for item in data) and all(map(_is_simple, data))
        case _:
            return "\n" not in str(data)


_OLD_WORDS = re.compile(r"y|n|yes|no|on|off|\d[\d_]*(:[0-5]?\d)+(\.\d*)?|\d+-\d+", re.IGNORECASE | re.ASCII)
"""What YAML 1.1 takes for a boolean or a number; and ranges, which look like one."""

_MARKED = re.compile(r":(?=\s|$)|\s#")
_MARKED_INLINE = re.compile(r"[,\[\]{}:]|\s#")


def _styled_key(key: Any) -> Any:
    return key if key in ("yes", "no") or not isinstance(key, str) else _styled_text(key, inline=True)


def _styled_text(value: Any, *, inline: bool) -> Any:
    """Return *value*, where it is text, with its style: bare, in quotes, or as a block of lines."""
    if not isinstance(value, str) or _is_bare(value, inline=inline):
        return value
    if not inline and _is_block(value):
        return LiteralScalarString(value)
    if "\\" in value and value.isprintable():
        return SingleQuotedScalarString(value)
    return DoubleQuotedScalarString(value)


def _is_bare(text: str, *, inline: bool) -> bool:
    marks = _MARKED_INLINE if inline else _MARKED
    words = text[:1].isalnum() and text.isprintable() and not text.endswith(" ") and not marks.search(text)
    return words and is_text(text) and not _OLD_WORDS.fullmatch(text)


def _is_block(text: str) -> bool:
    lines = text.removesuffix("\n").split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    return plain and len(lines) > 1 and bool(lines[0]) and bool(lines[-1]) and not lines[0].startswith(" ")


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
