"""
Find quotes in a candidate: evidence counts only if its words occur there, and code checks that.

For the comparison runs of white space, typographic quotes and dashes and invisible characters are folded, accents
composed, and ligatures, dots and wide letters written in plain ones; a power or a fraction stays what it is, since 10²
is not 102. Words that do not occur so may stand with Markdown (emphasis, code, links) or be broken at a line's end. No
letter is dropped but those of a link's address. The result is the candidate's own span, with its offsets.

A key is masked in a reply, and not in the candidate: words with a mask are compared with the masked candidate.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter

from attrs import define, evolve, field

from rubric.internals.secrets import MASK, map_offsets, redact
from rubric.values.artefacts import NAMED_STEP
from rubric.values.findings import Evidence

_ESCAPE = re.compile(r"\\u\{[0-9a-f]{1,6}\}")
_PUNCTUATION = str.maketrans(dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„«»", '"') | dict.fromkeys("–—‐‑", "-"))
_BY_ITSELF = r"!-~\xa1-\xaa\xac\xae-\xb4\xb6-\xba\xbc-\u0131\u0134-\u013e\u0141-\u0148\u014a-\u017e\u0180-\u01c3"
_BY_ITSELF += r"\u01cd-\u01f0\u01f4-\u02af\u0410-\u0482\u048a-\u052f"  # Latin without ligatures, and Cyrillic
_BY_ITSELF += r"\u3041-\u3094\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3"  # Japanese, Chinese, Korean

_RUN = re.compile(rf"(?P<same>[{_BY_ITSELF}]+(?: [{_BY_ITSELF}]+)*)|(?P<space>\s+)|(?P<other>.)", re.DOTALL)
"""A stretch that folds to itself, as most of most texts does; white space; or one other character."""

_KINDS = ("wide", "narrow", "compat", "font", "noBreak", "initial", "medial", "final", "isolated")
_ALIKE = frozenset(f"<{kind}>" for kind in _KINDS)
"""Unicode's names for other forms of a letter; `<super>`, `<sub>`, `<fraction>` and the like mean something else."""

_MARKUP = re.compile(r"\n\s*\n|!?\[([^\[\]\n]{1,500})(\]\([^()\s:/#.]*+[:/#.][^()\s]*+\))|\*{1,3}|_{1,3}|`{1,2}")
_BREAK = re.compile(r"(?<![^\W\d_])([^\W\d_]++)([-\u2010\xad][^\S\n]*+\n\s*+)(?=([^\W\d_]++))")
"""A word that a hyphen breaks at the end of a line: between letters, since 10- and 20 are not 1020."""

_FIRST_OF_CJK = "\u2e80"
"""From here on scripts have no spaces, so emphasis stands within words; elsewhere `2*3*4` is not emphasis."""

_LONGEST_CLUSTER = 32
"""The most accents composed with one letter: sorting thousands of them, as a hostile text has, is quadratic."""


def quote(words: str, text: str, where: str = "output") -> Evidence | None:
    """Return the span of *text* that *words* quote, or None if there is none."""
    for said in dict.fromkeys((words, _ESCAPE.sub("", words))):
        plain = _fold(said).text.strip()
        if (span := _folded(text).span(plain)) is None:
            within, of_words = _gaps(text, plain), _gaps(said, plain)
            if within or of_words:
                span = _folded(text, within).span(_fold(said, of_words).text.strip())
        if span is not None:
            return Evidence(text[span[0] : span[1]], *span, where)
    masked = redact(text) if MASK in words else text
    if masked == text or (found := quote(words, masked, where)) is None:
        return None
    move, places = map_offsets(text, masked), range(len(text) + 1)
    start = bisect_left(places, found.start or 0, key=lambda at: move(at)[0])
    end = bisect_right(places, found.end or 0, key=lambda at: move(at)[1]) - 1
    return Evidence(text[start:end], start, end, where)


def quote_step(words: str, run: str, places: Sequence[tuple[str, int, int]]) -> Evidence | None:
    """Return the span that *words* quote within one step of *run*, at the *places* that are the candidate's own."""
    if named := NAMED_STEP.match(words):
        for step, start, end in places:
            found = quote(words[named.end() :], run[start:end], f"step {step}") if step == named[1] else None
            if found is not None:
                return found
    found = quote(words, _own_part(run, tuple(places)), "run")
    if found is None or found.start is None or found.end is None:
        return None
    step, start, _ = places[bisect_right(places, found.start, key=itemgetter(1)) - 1]
    return evolve(found, start=found.start - start, end=found.end - start, where=f"step {step}" if step else "run")


@lru_cache(maxsize=4)
def _own_part(run: str, places: tuple[tuple[str, int, int], ...]) -> str:
    """Return *run* with blanks around its *places*, so that no quote goes over the end of one."""
    parts, at = list[str](), 0
    for _, start, end in places:
        parts += ["\uffff" * (start - at), run[start:end]]
        at = end
    return "".join(parts)


def occurs_in(words: str, text: str) -> bool:
    """True if *words* occur in *text*; white space, escapes, letters beyond ASCII and masked words do not matter."""
    within, at = _squeezed_text(text), 0
    for part in words.split(MASK):
        wanted = _squeeze(part)
        at = within.find(wanted, at)
        if at < 0:
            return False
        at += len(wanted)
    return True


def _squeeze(text: str) -> str:
    return re.sub(r"[^!-\[\]-~]", "", _ESCAPE.sub("", text).translate(_PUNCTUATION))


_squeezed_text = lru_cache(maxsize=4)(_squeeze)


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
        if len(last) < _LONGEST_CLUSTER and (unicodedata.combining(char[0]) or len(composed) == len(last)):
            self.add(composed, began, start + 1)
        else:
            self.add(last, began, start)
            self.add(char, start, start + 1)

    def span(self, wanted: str) -> tuple[int, int] | None:
        """Return the first place of *wanted*, which has letters, that cuts none of them from its accents."""
        at = self.text.find(wanted) if any(map(str.isalnum, wanted)) else -1
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


def _fold(text: str, gaps: tuple[tuple[int, int], ...] = ()) -> _Folded:
    """Return *text* as it is compared, without what stands in *gaps*."""
    folded, start = _Folded(), 0
    for end, following in (*gaps, (len(text), 0)):
        _add_folded(folded, text, start, end)
        start = following
    folded.text = "".join(folded.parts)
    folded.parts.clear()
    return folded


def _add_folded(folded: _Folded, text: str, first: int, last: int) -> None:
    for run in _RUN.finditer(text, first, last):
        start, end = run.span()
        if run.lastgroup == "same":
            folded.add(run[0], start, -1)
        elif run.lastgroup == "space":
            if folded.parts and folded.parts[-1] != " ":
                folded.add(" ", start, end)
        elif unicodedata.category(run[0]) not in ("Cf", "Cc", "Cs"):
            char = _plain(run[0])
            is_accent = unicodedata.category(char[0])[0] == "M" or "\u1160" <= char <= "\u11ff"  # a vowel of Hangul
            if is_accent and folded.parts and folded.parts[-1] != " ":
                folded.add_accent(char, start)
            else:
                folded.add(char, start, end)


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    """Return *char* in plain letters, if it is another form of them."""
    is_alike = unicodedata.decomposition(char).partition(" ")[0] in _ALIKE
    plain = unicodedata.normalize("NFKC" if is_alike else "NFC", char)
    return char if plain.startswith(" ") else plain.translate(_PUNCTUATION)  # an acute accent on a space


def _gaps(text: str, wanted: str) -> tuple[tuple[int, int], ...]:
    """Return where *text* has Markdown, and breaks within words that *wanted* has whole."""
    found, opened = list[tuple[int, int]](), dict[str, tuple[int, int]]()
    for mark in _MARKUP.finditer(text):
        start, end = mark.span()
        if mark[2]:
            if _is_apart(text, start - 1, start + 1) and _is_apart(text, end, mark.end(1) - 1):
                found += [(start, mark.start(1)), mark.span(2)]
        elif mark[0][0] == "\n":
            opened.clear()  # emphasis ends with its paragraph
        elif mark[0] in opened and not text[start - 1].isspace() and _is_apart(text, end, start - 1):
            found += [opened.pop(mark[0]), (start, end)]
        elif not text[end : end + 1].isspace() and _is_apart(text, start - 1, end):
            opened[mark[0]] = start, end
    whole = {*re.findall(r"[^\W\d_]+", wanted), *re.findall(r"\b(?=([^\W\d_]+-[^\W\d_]+))", wanted)}
    for broken in _BREAK.finditer(text):
        before, after = (unicodedata.normalize("NFKC", half) for half in broken.group(1, 3))
        if f"{before}{after}" in whole:
            found.append(broken.span(2))
        elif f"{before}-{after}" in whole:
            found.append((broken.start(2) + 1, broken.end(2)))
    return tuple(sorted(found))


def _is_apart(text: str, outside: int, inside: int) -> bool:
    """True if a mark between the places *outside* and *inside* does not stand within a word or a product."""
    beyond = text[outside : outside + 1] if outside >= 0 else ""
    return not beyond.isalnum() or beyond >= _FIRST_OF_CJK or text[inside : inside + 1] >= _FIRST_OF_CJK


_folded = lru_cache(maxsize=4)(_fold)
