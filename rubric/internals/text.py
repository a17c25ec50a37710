"""
Show texts to people: shortened, as cells of Markdown, and with everything invisible escaped.

A candidate is untrusted text, and may hide words from people that a judge reads. So invisible characters are escaped,
and warned of, except where people write them: joiners and variation selectors within emoji, the flags of England,
Scotland and Wales (the only tag sequences in use), joiners in scripts that are spelt with them, and zero-width spaces
in scripts without spaces. Direction marks are escaped in every script: they change the order that people see, and not
the one that a judge reads.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

_FLAGS = "|".join(
    "🏴" + name.translate({ord(c): 0xE0000 + ord(c) for c in name}) for name in ("gbeng", "gbsct", "gbwls")
)
_COMMON = "\\t\\n\\r\\x20-\\x7e\\xa0-\\xac\\xae-\\u02ff\\u0410-\\u044f\\u3041-\\u30ff\\u4e00-\\u9fff\\uac00-\\ud7a3"

_SUSPECT = f"(?:{_FLAGS})\U000e007f|[^{_COMMON}]"
"""Characters that may have to be escaped. Without the common ones, most texts pass in one search."""

_MARKER = r"(?i)<[|\uff5c][\w▁]{2,40}[|\uff5c]>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|</?s>|<[be]os>"

_compiled = cache(re.compile)  # on first use: building a rubric imports this module, and needs neither pattern

_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # letters, by their category

_DRAWN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2")  # format signs of Arabic

_NEVER = "[\ufdd0-\ufdef\ufff0-\uffff\U000e0000-\U0010ffff]"
"""Points that never get a character. Other unassigned ones may be this year's emoji, in a newer Unicode."""

_ZWSP, _ZWNJ, _ZWJ = "\u200b", "\u200c", "\u200d"
_TEXT_STYLE, _EMOJI_STYLE, _KEYCAP = "\ufe0e", "\ufe0f", "\u20e3"

_VIRAMA = 9  # the combining class of the signs that silence a vowel; a joiner after one says how to draw it


def visible(text: str) -> tuple[str, tuple[str, ...]]:
    """
    Return *text* with its invisible characters as `\\u{...}`, and a warning for each kind that was found.

    Escaped are tags, zero-width characters and direction marks, control characters, private use, half surrogates,
    blank letters and variation selectors, each where it does not belong.
    """
    found: Counter[str] = Counter()

    def escape(match: re.Match[str]) -> str:
        char = match[0]
        if len(char) > 1 or not _is_hidden(char, text, match.start()):
            return char
        found[f"U+{ord(char):04X}"] += 1
        return f"\\u{{{ord(char):x}}}"

    suspects = {*_compiled(_SUSPECT).findall(text)}  # a few, in a text of any length
    styles = any("\ufe00" <= char <= _EMOJI_STYLE or char >= "\U000e0000" for char in suspects)
    may_hide = styles or any(char in _BLANKS or unicodedata.category(char[0])[0] == "C" for char in suspects)
    shown = _compiled(_SUSPECT).sub(escape, text) if may_hide else text
    warnings = []
    if found:
        names = ", ".join(f"{count} × {name}" for name, count in found.most_common(5))
        warnings.append(f"the candidate has invisible characters, shown to the judge as escapes: {names}")
    if match := _compiled(_MARKER).search(text):
        warnings.append(f"the candidate has a chat-template token: {match[0]}")
    return shown, tuple(warnings)


def _is_hidden(char: str, text: str, at: int) -> bool:
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    match unicodedata.category(char):
        case "Cc" | "Co" | "Cs":
            return True
        case "Cn":
            return re.match(_NEVER, char) is not None
        case "Cf":
            return char not in _DRAWN and not _belongs(char, text, at)
        case "Mn" if "\ufe00" <= char <= _EMOJI_STYLE or "\U000e0100" <= char <= "\U000e01ef":
            is_key = bool(before) and before in "0123456789#*"
            takes_style = after == _KEYCAP if is_key else _is_pictorial(before)
            return not takes_style or char not in (_TEXT_STYLE, _EMOJI_STYLE)
        case _:
            return char in _BLANKS


def _belongs(char: str, text: str, at: int) -> bool:
    """True if emoji or a script need the format character at *at*."""
    before, after = text[at - 1 : at], text[at + 1 : at + 2]
    if char == _ZWSP:
        return _is_unspaced(before) and _is_unspaced(after)
    if char not in (_ZWNJ, _ZWJ) or not before:
        return False
    is_arabic = "\u0600" <= before <= "\u08ff" and _is_letter(before)
    if unicodedata.combining(before) == _VIRAMA or (char == _ZWJ and is_arabic):
        return True
    if char == _ZWJ and _is_pictorial(after):
        return _is_pictorial(text[at - 2 : at - 1] if before == _EMOJI_STYLE else before)
    return _is_letter(before) and _is_letter(after) and (_is_joined(before) or _is_joined(after))


def _is_pictorial(char: str) -> bool:
    if not char or char < "\xa9":
        return False
    return (
        "\U0001f000" <= char <= "\U0001faff"
        or char in "\u203c\u2049\u2139\u3030\u303d"
        or unicodedata.category(char) in ("So", "Sm")
    )


def _is_letter(char: str) -> bool:
    return bool(char) and unicodedata.category(char)[0] in "LMN" and char not in _BLANKS


def _is_joined(char: str) -> bool:
    """Arabic, Syriac, Indic and their neighbours are written with joiners; Latin, Greek, Cyrillic and Han are not."""
    return "\u0600" <= char <= "\u1aff" or "\ua800" <= char <= "\uabff" or "\ufb50" <= char <= "\ufefc"


def _is_unspaced(char: str) -> bool:
    """True if *char* is of a script without spaces: Thai, Lao, Burmese, Khmer."""
    return "\u0e00" <= char <= "\u0eff" or "\u1000" <= char <= "\u109f" or "\u1780" <= char <= "\u17ff"


_LOOK_ALIKES = str.maketrans(
    "авсԁеғгһніјӏкмпоԛрѕтуүѵԝхзбчαβϲεηικνορτυχωγζɑɡıʟɪᴀʙᴄᴅᴇꜰɢʜᴊᴋᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
    "abcdefrhhijlkmnoqpstyyvwx364abcenikvoptuxwyzagiliabcdefghjkmnoprstuvwyz",
)
"""Letters of Cyrillic, Greek and phonetic alphabets that look like Latin ones or digits, in lower case."""

_AS_ONE = bytes.maketrans(bytes(range(65, 91)) + b"01iI|", bytes(range(97, 123)) + b"ollll")
_NOT_PLAIN = bytes({*range(256)} - {*b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789|"})
_WITHIN_WORDS = r"\\u\{[0-9a-f]{1,6}\}|<[^<>]{1,80}>|&#?\w{1,10};"


def skeleton(text: str) -> bytes:
    """
    Return what a reader makes out of *text*: its letters and digits, in one case, with look-alikes as one.

    White space, punctuation, accents, tags and invisible characters are left out. The name and the idea are those of
    Unicode Technical Standard 39, without its whole table.
    """
    if "\\u{" in text or "<" in text or "&" in text:
        text = _compiled(_WITHIN_WORDS).sub("", text)
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text).casefold().translate(_LOOK_ALIKES)
    return text.encode("ascii", "ignore").translate(_AS_ONE, _NOT_PLAIN)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; cells are escaped, so that no cell can leave its place."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    lines += [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


_ESCAPES = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|~$"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def cell(value: object) -> str:
    """Return *value* as the text of one Markdown cell, with invisible characters as escapes."""
    return "" if value is None else visible(" ".join(str(value).split()))[0].translate(_ESCAPES)


def columns(lines: Sequence[Sequence[str]], align: Callable[[str, int], str] = str.ljust) -> str:
    """Return *lines* of cells as a table of plain text: the first column to the left, the others by *align*."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    aligned = ([first.ljust(widths[0]), *map(align, others, widths[1:])] for first, *others in lines)
    return "\n".join(f"  {'  '.join(cells)}".rstrip() for cells in aligned)


def shorten(text: str, limit: int = 200) -> str:
    """Return *text* on one line, cut to *limit* characters, with invisible characters as escapes."""
    line = visible(" ".join(text.split())[: limit + 1])[0]
    whole = text if line == text else line  # the same object: a message of an error keeps its parts
    return whole if len(line) <= limit else f"{line[: limit - 1]}…"


def shown(text: str) -> str:
    r"""Return *text* with invisible and invalid characters as `\u{...}`; lines end in a line feed alone."""
    return visible(text.replace("\r\n", "\n"))[0].replace("\r", "\\u{d}")


def cut(text: str, limit: int) -> str:
    """Return *text*; if it is longer than *limit* characters, its start and its end with a mark between them."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters are left out here …]\n{text[-half:]}"


def line(text: str, limit: int = 300) -> str:
    """Return *text* on one line of at most *limit* characters, with invisible characters as escapes."""
    words = " ".join(text[: 4 * limit].split())
    whole = len(text) <= 4 * limit and len(words) <= limit
    return shown(words if whole else f"{words[: limit - 1]}…")


def counted(number: int, noun: str) -> str:
    """Return *number* with its *noun*: `1 case`, `2 cases`, `1 criterion`, `2 criteria`."""
    several = "criteria" if noun == "criterion" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"


def as_json(value: Any) -> str:
    """Return *value* as JSON on one line, with its keys in order; values that JSON does not know as text."""
    import json  # noqa: PLC0415 - building a rubric needs none

    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are not text, or that cannot be sorted
        return str(value)
