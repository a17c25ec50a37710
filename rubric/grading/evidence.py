"""
Find quotes in a candidate: evidence counts only if its words occur there, and code checks that.

For the comparison runs of white space, typographic quotes and dashes and invisible characters are folded, and accents
composed. The result is the candidate's own span, with its offsets.

A key is masked in a reply, and not in the candidate: words with a mask are compared with the masked candidate.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from functools import lru_cache

from attrs import define, field

from rubric.internals.secrets import MASK, moved, redact
from rubric.values.findings import Evidence

_ESCAPE = re.compile(r"\\u\{[0-9a-f]{1,6}\}")
_PUNCTUATION = str.maketrans(dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„«»", '"') | dict.fromkeys("–—‐‑", "-"))
_BY_ITSELF = r"!-~\xa1-\xaa\xac\xae-\xba\xbc-\u02af\u0410-\u0482\u048a-\u052f"  # Latin and Cyrillic
_BY_ITSELF += r"\u3041-\u3094\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"  # Japanese, Chinese, Korean

_RUN = re.compile(rf"(?P<same>[{_BY_ITSELF}]+(?: [{_BY_ITSELF}]+)*)|(?P<space>\s+)|(?P<other>.)", re.DOTALL)
"""A stretch that folds to itself, as most of most texts does; white space; or one other character."""

_LONGEST_CLUSTER = 32
"""The most accents composed with one letter: sorting thousands of them, as a hostile text has, is quadratic."""


def quote(words: str, text: str, where: str = "output") -> Evidence | None:
    """Return the span of *text* that *words* quote, or None if there is none."""
    for said in dict.fromkeys((words, _ESCAPE.sub("", words))):
        wanted = _fold(said).text.strip()
        if any(c.isalnum() for c in wanted) and (span := _folded(text).span(wanted)):
            return Evidence(text[span[0] : span[1]], *span, where)
    masked = redact(text) if MASK in words else text
    if masked == text or (found := quote(words, masked, where)) is None:
        return None
    move, places = moved(text, masked), range(len(text) + 1)
    start = bisect_left(places, found.start or 0, key=lambda at: move(at)[0])
    end = bisect_right(places, found.end or 0, key=lambda at: move(at)[1]) - 1
    return Evidence(text[start:end], start, end, where)


def occurs_in(words: str, text: str) -> bool:
    """True if *words* occur in *text*; white space, escapes, letters beyond ASCII and masked words do not matter."""
    within, at = _squeezed_text(text), 0
    for part in words.split(MASK):
        wanted = _squeezed(part)
        at = within.find(wanted, at)
        if at < 0:
            return False
        at += len(wanted)
    return True


def _squeezed(text: str) -> str:
    return re.sub(r"[^!-\[\]-~]", "", _ESCAPE.sub("", text).translate(_PUNCTUATION))


_squeezed_text = lru_cache(maxsize=4)(_squeezed)


@define
class _Folded:
    """A folded text, and the place in the source of each of its stretches."""

    parts: list[str] = field(factory=list)
    length: int = 0
    offsets: array[int] = field(factory=lambda: array("q"))
    starts: array[int] = field(factory=lambda: array("q"))
    ends: array[int] = field(factory=lambda: array("q"))
    text: str = ""

    def add(self, part: str, start: int, end: int) -> None:
        """Add *part*, the fold of the source from *start* to *end*; an *end* of -1 means letter for letter."""
        self.parts.append(part)
        self.offsets.append(self.length)
        self.starts.append(start)
        self.ends.append(end)
        self.length += len(part)

    def add_accent(self, char: str, start: int) -> None:
        """Add *char*; an accent or a vowel of Hangul is composed with the letter before it."""
        last, began = self.parts.pop(), self.starts.pop()
        self.length, end = self.offsets.pop(), self.ends.pop()
        if end < 0 and len(last) > 1:  # only the last letter with its accents is taken back
            self.add(last[:-1], began, -1)
            last, began = last[-1], began + len(last) - 1
        composed = unicodedata.normalize("NFC", last + char)
        if len(last) < _LONGEST_CLUSTER and (unicodedata.combining(char) or len(composed) == len(last)):
            self.add(composed, began, start + 1)
        else:
            self.add(last, began, start)
            self.add(char, start, start + 1)

    def span(self, wanted: str) -> tuple[int, int] | None:
        """Return the first place of *wanted* in the source that cuts no letter from its accents."""
        at = self.text.find(wanted)
        while at >= 0:
            end = at + len(wanted)
            if self._is_edge(at) and self._is_edge(end):
                return self._source(at)[0], self._source(end - 1)[1]
            at = self.text.find(wanted, at + 1)
        return None

    def _is_edge(self, at: int) -> bool:
        if at == self.length:
            return True
        index = bisect_right(self.offsets, at) - 1
        return self.ends[index] < 0 or self.offsets[index] == at

    def _source(self, at: int) -> tuple[int, int]:
        index = bisect_right(self.offsets, at) - 1
        if self.ends[index] >= 0:
            return self.starts[index], self.ends[index]
        start = self.starts[index] + at - self.offsets[index]
        return start, start + 1


def _fold(text: str) -> _Folded:
    folded = _Folded()
    for run in _RUN.finditer(text):
        start, end = run.span()
        if run.lastgroup == "same":
            folded.add(run[0], start, -1)
        elif run.lastgroup == "space":
            if folded.parts and folded.parts[-1] != " ":
                folded.add(" ", start, end)
        elif (category := unicodedata.category(run[0])) not in ("Cf", "Cc", "Cs"):
            is_accent = category[0] == "M" or "\u1160" <= run[0] <= "\u11ff"  # or a vowel of Hangul
            if is_accent and folded.parts and folded.parts[-1] != " ":
                folded.add_accent(run[0], start)
            else:
                folded.add(unicodedata.normalize("NFC", run[0]).translate(_PUNCTUATION), start, end)
    folded.text = "".join(folded.parts)
    folded.parts.clear()
    return folded


_folded = lru_cache(maxsize=4)(_fold)
