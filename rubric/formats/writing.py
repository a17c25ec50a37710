"""From plain data to text: YAML that reads as if written by hand, or JSON."""

from __future__ import annotations

import json
import re
import sys
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.emitter import Emitter
from ruamel.yaml.events import MappingEndEvent, SequenceEndEvent
from ruamel.yaml.representer import RoundTripRepresenter
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString, SingleQuotedScalarString

from rubric.formats.scalars import is_text

__all__ = ["editor", "print_yaml", "styled", "to_json", "to_yaml"]

WIDTH = 100
"""Characters that a mapping or a list may take to stand on one line."""


def to_json(data: Any) -> str:
    """Return *data* as JSON, readable; only what UTF-8 cannot hold is escaped."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, indent=2)
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


_SURROGATE = re.compile("[\ud800-\udfff]")


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
