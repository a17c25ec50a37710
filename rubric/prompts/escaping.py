"""What a stranger's text may hide: invisible characters are shown escaped, and flagged."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_JOINER = "\u200d"
_VARIATION = "\ufe0f"
_PLAIN = {"\n", "\r", "\t"}
_SPECIAL = re.compile(r"<\|[a-z_]{2,40}\|>|\[/?INST\]|<</?SYS>>|</?s>", re.IGNORECASE)
_SUSPECT = re.compile("[^\\t\\n\\r\\x20-\\x7e\\xa0-\\xac\\xae-\\u02ff]")
"""What may have to be escaped: everything but printable ASCII and Latin letters, so that most texts are passed at once."""


def visible(text: str) -> tuple[str, tuple[str, ...]]:
    """
    Return *text* with its invisible characters as `\\u{...}`, and a warning for each kind of thing that was found.

    Escaped are tags, zero-width and bidi controls, control characters, private use, lone surrogates and variation
    selectors; not what belongs to an emoji sequence, or joins the letters of a script that is written with joiners.
    """
    found: Counter[str] = Counter()

    def escape(match: re.Match[str]) -> str:
        char = match[0]
        if not _is_hidden(char, text, match.start()):
            return char
        found[f"U+{ord(char):04X}"] += 1
        return f"\\u{{{ord(char):x}}}"

    shown = _SUSPECT.sub(escape, text)
    warnings = []
    if found:
        names = ", ".join(f"{count} × {name}" for name, count in found.most_common(5))
        warnings.append(f"the candidate has invisible characters, shown to the judge as escapes: {names}")
    if match := _SPECIAL.search(text):
        warnings.append(f"the candidate has a chat-template token: {match[0]}")
    return shown, tuple(warnings)


def _is_hidden(char: str, text: str, at: int) -> bool:
    category = unicodedata.category(char)
    if char in _PLAIN:
        return False
    if category in ("Cc", "Co", "Cs", "Cn"):
        return True
    if _is_selector(char):
        return not (char in "\ufe0e\ufe0f" and at > 0 and _is_pictorial(text[at - 1]))
    if category != "Cf":
        return False
    if char in ("\u200c", _JOINER):
        return not _joins(text, at)
    return True


def _is_selector(char: str) -> bool:
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def _is_pictorial(char: str) -> bool:
    return unicodedata.category(char) in ("So", "Sk", "Po", "Sm") or char.isdigit() or char in "#*\u200d"


def _joins(text: str, at: int) -> bool:
    """Say whether the joiner at *at* stands where scripts and emoji need one: between two such characters."""
    before = text[at - 1] if at else ""
    if before == _VARIATION and at > 1:
        before = text[at - 2]
    after = text[at + 1] if at + 1 < len(text) else ""
    if not before or not after:
        return False
    if _is_pictorial(before) and _is_pictorial(after):
        return True
    return _needs_joiners(before) and _needs_joiners(after)


def _needs_joiners(char: str) -> bool:
    """Arabic, Syriac, Indic and their neighbours are written with joiners; Latin, Greek, Cyrillic and Han are not."""
    point = ord(char)
    return 0x0600 <= point <= 0x1AFF or 0xA800 <= point <= 0xABFF or 0xFB50 <= point <= 0xFDFF or 0xFE70 <= point <= 0xFEFC
