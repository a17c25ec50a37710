"""
YAML 1.2 as a document, and plain data as YAML that reads as if written by hand.

A parser yields events and no step from the text to the nodes recurses, so that the `Builder` refuses deep nesting,
alias bombs and merge bombs as they grow. The events come from libyaml, which is a hundred times faster than ruamel's
parser in Python; that parser reads the texts that libyaml refuses, those about which the two disagree, and all where
there is no libyaml. libyaml's composer is not used: it recurses in C and has no limits, so a file of 50,000 brackets
would overflow the stack of the process.

An alias is refused in rubric files; in suites, whose authors use them, the repeated nodes count towards the limits
each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from rubric.errors import LoadError
from rubric.formats.document import (
    FOR_RUBRICS,
    MERGING,
    Builder,
    Limits,
    Listing,
    Mapping,
    Node,
    Scalar,
    kind_of,
    load_error,
    read_scalar,
    too_deep,
)
from rubric.internals.guesses import table
from rubric.internals.secrets import redact
from rubric.internals.text import shorten

try:
    from yaml._yaml import CParser
    from yaml.error import YAMLError as QuickError
except ImportError:  # pragma: no cover - PyYAML was built without libyaml
    CParser, QuickError = None, YAMLError

# -- reading ------------------------------------------------------------------------------------------------


def parse_yaml(text: str, source: str, limits: Limits = FOR_RUBRICS) -> Node | None:
    """Return the root node of *text*, None where it is empty; a `LoadError` says where it is not YAML."""
    if found := _UNFIT.search(text):
        before = text[: found.start()]
        place = before.count("\n") + 1, len(before) - before.rfind("\n")
        raise load_error(source, place, f"the character {found[0]!r} cannot stand in YAML; escape it in double quotes")
    if CParser is not None and not _DISPUTED.search(text):
        try:
            return _build(text, _quick_events(text), Builder(source, limits))
        except QuickError as problem:  # the parser in Python words it, or reads a feature of YAML 1.2 alone
            mark = getattr(problem, "problem_mark", None)
            if mark is not None and "nesting depth" in str(problem):  # where that parser takes hours
                raise too_deep(source, _place(mark)) from None
    builder = Builder(source, limits)
    place = (1, 1)

    def events() -> Iterator[Any]:
        nonlocal place
        for event in YAML(typ="safe", pure=True).parse(text):
            place = _place(event.start_mark)
            yield event

    try:
        return _build(text, events(), builder)
    except LoadError:
        raise
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        why = shorten(", ".join(str(part) for part in (problem.context, problem.problem) if part))
        why += next((f"; {cure}" for sign, cure in table()["yaml"].items() if sign in why), "")
        raise load_error(source, _place(mark) if mark else place, f"this is not YAML: {why}") from None
    except (YAMLError, ValueError, OverflowError, IndexError, AttributeError, TypeError, AssertionError) as problem:
        why = str(problem) or type(problem).__name__
        raise load_error(source, place, f"this is not YAML: {why}") from None


_UNFIT = re.compile("[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""The characters that YAML refuses, and three line ends that YAML 1.2 lacks but ruamel turns to spaces."""

# Text that libyaml, a parser of YAML 1.1, may read otherwise than YAML 1.2; found by comparing both.
# No alternative scans beyond the next character that is not a space, so that a search takes linear time.
_DISPUTED = re.compile(
    r"[\t\ufeff]"  # tabs as separation; a mark in the text, which takes a column or none
    r"|\r(?!\n)"  # a line end, or a character
    r"|[|>][-+\d]{0,2} *(?:#|\r?\n(?:\r?\n)* +\r?\n|\r?\n(?: *\r?\n)*(?:---|\.\.\.|[#%]))"  # odd heads of blocks
    r"|:[,\]}]"  # an empty value, or a part of the text
)


_AFTER_NAMES = frozenset(("", " ", "\n", ",", "]", "}"))


def _quick_events(text: str) -> Iterator[Any]:
    """
    Yield the events of *text* as libyaml finds them; raise `QuickError` for mistakes and for what needs the parser in
    Python: a tag, a directive, an anchor with letters that libyaml does not allow (it reads `&a:b` as `&a` and a text).
    """
    following = CParser(text).get_event  # pyright: ignore[reportOptionalCall] - `parse_yaml` has looked
    while (event := following()) is not None:
        names = event.__dict__
        if (anchor := names.get("anchor")) is not None:
            end = event.start_mark.index + 1 + len(anchor)
            if text[end : end + 1] not in _AFTER_NAMES:
                raise QuickError
        if names.get("tag") is not None or names.get("version") or names.get("tags"):
            raise QuickError
        yield event


def _build(text: str, events: Iterator[Any], builder: Builder) -> Node | None:
    """Build the document *text* of its *events*; the classes of both parsers have the same names."""
    named: dict[str, Node] = {}
    before: Any = None
    for event in events:
        kind = type(event).__name__
        if kind == "ScalarEvent" and event.anchor is None and event.tag is None:  # nearly all of them
            scalar = _scalar(event, builder) if event.value or event.style else _nothing(event, before, text, builder)
            builder.add(_mark(scalar, event, text))
        elif kind in _NODES:
            place = _place(event.start_mark)
            flaw = _flaw(event, aliases=builder.limits.aliases)
            node: Node
            if kind != "ScalarEvent":
                node = (Mapping if kind == "MappingStartEvent" else Listing)(*place, flaw=flaw)
            else:
                node = Scalar(*place, value=None, flaw=flaw) if flaw else _mark(_scalar(event, builder), event, text)
            if event.anchor is not None and not flaw:
                named[str(event.anchor)] = node
            builder.add(node)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            closed = builder.close()
            if builder.limits.aliases and isinstance(closed, Mapping):
                _merge(builder, closed)
        elif kind == "AliasEvent":
            _repeat(builder, event, named)
        elif kind == "DocumentStartEvent":
            _check_start(builder, event)
        before = event
    return builder.root


_NODES = ("ScalarEvent", "MappingStartEvent", "SequenceStartEvent")


def _scalar(event: Any, builder: Builder) -> Scalar:
    mark, text = event.start_mark, event.value
    if event.style == '"' and not text.isascii():  # as `json.dumps` writes an emoji
        text = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    if event.style or not event.implicit[0]:
        return Scalar(mark.line + 1, mark.column + 1, value=text)
    value, flaw = read_scalar(text, dates=builder.limits.aliases)
    return Scalar(mark.line + 1, mark.column + 1, value=value, flaw=flaw)


_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_HIDDEN = re.compile(r"[ \t]+(#[^\s#]\S*)")


def _mark(node: Scalar, event: Any, text: str) -> Scalar:
    """Return *node*, marked as cut if it is a text without quotes that a comment such as `#5` follows."""
    if not event.style and " " in event.value and (comment := _HIDDEN.match(text, event.end_mark.index)):
        cure = "quote the whole text, or put a space behind the #"
        node.cut = f"{shorten(comment[1], 40)!r} is a comment, by which this text is cut; {cure}"
    return node


_COLON = re.compile(" *:")


def _nothing(event: Any, before: Any, text: str, builder: Builder) -> Scalar:
    """Return the node of a value that was left out: it is missing behind the colon of its key, the event *before*."""
    if builder.root is None:
        return Scalar(1, 1, value=None)
    if (key := builder.key) is None:
        return Scalar(*_place(event.start_mark), value=None)
    if isinstance(key, Scalar) and (colon := _COLON.match(text, before.end_mark.index)):
        line, column = _place(before.end_mark)  # the mark of *event* is up to the next key, as the parser has it
        return Scalar(line, column + len(colon[0]), value=None)
    return Scalar(*key.place, value=None)


def _repeat(builder: Builder, event: Any, named: dict[str, Node]) -> None:
    alias = shorten(str(event.anchor), 40)
    if not builder.limits.aliases:
        flaw = f"aliases (*{alias}) are not read; write it out"
    elif str(event.anchor) not in named:
        flaw = f"no anchor &{alias} is above this alias; write it out"
    elif builder.repeat(named[str(event.anchor)]):
        return
    else:
        flaw = f"the alias *{alias} is within what it repeats; write it out"
    builder.add(Scalar(*_place(event.start_mark), value=None, flaw=flaw))


def _merge(builder: Builder, node: Mapping) -> None:
    """Replace each merge key (<<) of *node* by the keys that it merges and *node* does not have itself."""
    keys = node.parts[::2]
    if all(key.flaw != MERGING for key in keys):
        return
    kept: list[Node] = []
    merged: list[Mapping] = []
    for key, value in node.pairs():
        sources = value.parts if isinstance(value, Listing) else [value]
        mappings = [source for source in sources if isinstance(source, Mapping)]
        if key.flaw == MERGING and len(mappings) == len(sources):
            merged += mappings
        else:
            kept += (key, value)
    own = {key.value for key in keys if isinstance(key, Scalar)}
    node.parts[:] = kept
    for source in merged:
        for name, value in source.pairs():
            if isinstance(name, Scalar) and name.value not in own:
                own.add(name.value)
                builder.adopt(node, name, value)


def _check_start(builder: Builder, event: Any) -> None:
    place = _place(event.start_mark)
    if builder.root is not None:
        raise load_error(builder.source, place, "a second document starts here; a file holds one")
    if event.version is not None and tuple(event.version) != (1, 2):
        version = ".".join(map(str, event.version))
        why = f"%YAML {shorten(version)} is not read, only YAML 1.2; take the line out"
        raise load_error(builder.source, place, why)
    if event.tags:
        raise load_error(builder.source, place, "%TAG is not read; take the line out")


def _flaw(event: Any, *, aliases: bool) -> str:
    if event.anchor is not None and not aliases:
        return f"anchors (&{shorten(str(event.anchor), 40)}) are not read; take it out, and write out what repeats it"
    return f"tags ({shorten(str(event.tag), 60)}) are not read; take it out" if event.tag is not None else ""


def _place(mark: Any) -> tuple[int, int]:
    return mark.line + 1, mark.column + 1


# -- writing ------------------------------------------------------------------------------------------------

WIDTH = 110
"""Characters of a line, at most, for a mapping or a list to be written on it."""

_CRITERION_WIDTH = 90
"""The same, for a criterion with a check or an answer that is a mapping; other criteria with mappings are blocks."""


def to_yaml(data: dict[str, Any]) -> str:
    """Return *data*, plain data, as YAML 1.2."""
    lines: list[str] = []
    _write_block(data, (), "", lines)
    return "\n".join(lines or ["{}"]) + "\n"


def _write_block(data: dict[Any, Any] | list[Any], path: tuple[Any, ...], indent: str, lines: list[str]) -> None:
    if isinstance(data, list):
        for index, item in enumerate(data):
            _write_item("-", item, (*path, index), indent, lines)
        return
    for key, value in data.items():
        at = (*path, key)
        if not _is_simple_key(key):
            lines.append(f"{indent}? {_key(key)}")
            _write_item(":", value, at, indent, lines)
        elif not isinstance(value, dict | list) or not value or fits_a_line(value, at):
            lines.append(f"{indent}{_key(key)}: {on_a_line(value, indent)}")
        else:
            lines.append(f"{indent}{_key(key)}:")
            _write_block(value, at, f"{indent}  ", lines)


def _write_item(mark: str, value: Any, path: tuple[Any, ...], indent: str, lines: list[str]) -> None:
    """Append the lines of *value*, the first of them behind the *mark*."""
    if not isinstance(value, dict | list) or not value or fits_a_line(value, path):
        lines.append(f"{indent}{mark} {on_a_line(value, indent)}")
        return
    first, inner = len(lines), f"{indent}  "
    _write_block(value, path, inner if isinstance(value, dict) else f"{inner}  ", lines)
    lines[first] = f"{indent}{mark} {lines[first].removeprefix(inner)}"


LONGEST_LINE = 600
"""The longest line of YAML that an error proposes."""


def short_line(data: Any) -> str:
    """Return *data* on one line, for an error; '' if that is too long, or would repeat a secret."""
    line = on_a_line(data)
    return line if len(line) <= LONGEST_LINE and redact(line) == line else ""


def on_a_line(data: Any, indent: str | None = None) -> str:
    """Return *data* on one line; a text of several lines is a block where an *indent* is given."""
    match data:
        case dict():
            pairs = [
                f"{_key(key)}: {on_a_line(value)}" if _is_simple_key(key) else f"? {_key(key)} : {on_a_line(value)}"
                for key, value in data.items()
            ]
            return "{" + ", ".join(pairs) + "}"
        case list():
            return "[" + ", ".join(map(on_a_line, data)) + "]"
        case str():
            match style_of(data, inline=indent is None):
                case "|":
                    rows = data.removesuffix("\n").split("\n")
                    block = [f"{indent}  {row}" if row else "" for row in rows]
                    return "\n".join(["|" if data.endswith("\n") else "|-", *block])
                case '"':
                    return f'"{_ESCAPED.sub(_escape, data)}"'
                case "'":
                    return "'" + data.replace("'", "''") + "'"
                case _:
                    return data
        case None | bool():
            return _WORDS[data]
        case _:
            return repr(data)


_WORDS = {None: "null", True: "true", False: "false"}


def _key(key: Any) -> str:
    return key if key in ("yes", "no") else on_a_line(key)


_LONGEST_KEY = 122
"""Characters of a key in front of a plain colon."""


def _is_simple_key(key: Any) -> bool:
    return not isinstance(key, str) or (len(key) <= _LONGEST_KEY and not _BREAKS.search(key))


_BREAKS = re.compile("[\n\x85\u2028\u2029]")


def fits_a_line(data: Any, path: tuple[Any, ...]) -> bool:
    """True if the list or mapping *data*, which is at *path*, is written on one line."""
    if path[-1] == "criteria" or not _is_simple(data):
        return False
    inner = {key for key, value in data.items() if isinstance(value, dict | list)} if isinstance(data, dict) else set()
    is_criterion = path[-2:-1] == ("criteria",)
    if is_criterion and inner and (len(data) == 1 or inner - {"check", "answer"}):
        return False
    key = len(path[-1]) + 2 if isinstance(path[-1], str) else 0
    return 2 * len(path) + key + len(on_a_line(data)) <= (_CRITERION_WIDTH if is_criterion and inner else WIDTH)


def _is_simple(data: Any) -> bool:
    """True if *data* reads well on one line: no text of several lines in it, and at most one inner mapping."""
    match data:
        case dict():
            inner = [value for value in data.values() if isinstance(value, dict | list)]
            return "criteria" not in data and len(inner) <= 1 and all(map(_is_simple, data.values()))
        case list():
            return not any(isinstance(item, dict | list) for item in data) and all(map(_is_simple, data))
        case _:
            return "\n" not in str(data)


_OLD_WORDS = re.compile(
    r"y|n|yes|no|on|off|\d[\d_]*(:[0-5]?\d)+(\.\d*)?|\d+-\d+|\d[\d.]*_[\d_.]*(e[-+]?\d+)?|0[box][\da-f_]+",
    re.IGNORECASE | re.ASCII,
)
"""The booleans and numbers of YAML 1.1, and ranges, which look like a number."""

_MARKED = re.compile(r":(?=\s|$)|\s#")
_MARKED_INLINE = re.compile(r"[,\[\]{}:]|\s#")


def style_of(text: str, *, inline: bool) -> str:
    """Return how *text* is written: bare (''), within `'` or `"`, or as a block of lines (`|`)."""
    marks = _MARKED_INLINE if inline else _MARKED
    bare = text[:1].isalnum() and text.isprintable() and not text.endswith(" ") and not marks.search(text)
    if bare and kind_of(text) == "str" and not _OLD_WORDS.fullmatch(text):
        return ""
    if not inline and "\n" in text:
        lines = text.removesuffix("\n").split("\n")
        framed = len(lines) > 1 and lines[0] and lines[-1] and not lines[0].startswith(" ")
        if framed and all(line.isprintable() and line == line.rstrip() for line in lines):
            return "|"
    return "'" if "\\" in text and text.isprintable() else '"'


_ESCAPED = re.compile('["\\\\\ufeff]|[^ -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')


_LETTERS = dict(zip('\0\a\b\t\n\v\f\r\x1b"\\\x85\u2028\u2029', '0abtnvfre"\\NLP', strict=True))


def _escape(found: re.Match[str]) -> str:
    number, letter = ord(found[0]), _LETTERS.get(found[0])
    return f"\\{letter}" if letter else f"\\x{number:02X}" if number < 0x100 else f"\\u{number:04X}"  # noqa: PLR2004
