"""
What the text of a criterion asks of the judge: a scale, a form of the reply, or the opposite of what it counts.

Each function takes a text and returns what it found, or nothing. A criterion speaks of the candidate and an instruction
speaks to the judge; only the second is looked for, by the verb that begins its sentence: "Score it 1-5" is one, "Scores
each film 1-5" is none.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files
from typing import Any


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("rubric.quality").joinpath(name).read_text("utf-8"))


_TABLES = _read("lint_patterns.toml")
WORDS: dict[str, dict[str, Any]] = _TABLES["words"]


def _patterns() -> tuple[dict[str, re.Pattern[str]], dict[str, list[re.Pattern[str]]]]:
    """Return the expressions of `lint_patterns.toml`, single ones and lists, each with its parts in their places."""
    parts = dict[str, str]()

    def fill(text: str) -> str:
        return re.sub(r"\{\{(\w+)\}\}", lambda at: parts[at[1]], "".join(map(str.lstrip, text.splitlines())))

    for name, words in _TABLES["words"].items():
        parts[name] = "|".join(sorted(words, key=len, reverse=True)).replace(" ", r"\s+")
    for name, text in _TABLES["parts"].items():
        parts[name] = fill(text)
    several = {name: [re.compile(fill(text)) for text in texts] for name, texts in _TABLES["several"].items()}
    return {name: re.compile(fill(text)) for name, text in _TABLES["one"].items()}, several


PATTERNS, _SEVERAL = _patterns()

# -- praise ----------------------------------------------------------------------------------------------

_LISTS = _read("lint_words.toml")
_PRAISE, _BLAME = (frozenset(_LISTS[which].split()) for which in ("praise", "blame"))
"""Words that mean the same in every criterion; "no", "complete" and "always" depend on what is judged."""
_PRAISE_CJK, _BLAME_CJK = (tuple(_LISTS[which].split()) for which in ("praise_cjk", "blame_cjk"))


def praises(text: str) -> bool | None:
    """Return True if the first word of *text* is praise, False if it is blame, None if it is neither."""
    if text.lstrip().startswith((*_PRAISE_CJK, *_BLAME_CJK)):
        return text.lstrip().startswith(_PRAISE_CJK)
    first = next(iter(re.findall(r"[^\W\d_]+", text.casefold())), "")
    return True if first in _PRAISE else False if first in _BLAME else None


# -- scales ----------------------------------------------------------------------------------------------

_MOST, _MOST_READ = 1000, 2500
"""The highest end of a scale: what is higher is a year or an amount; and the letters that are read."""


def _squeeze(text: str) -> str:
    """Return the first part of *text* with each run of white space as one, so that no pattern takes long."""
    return re.sub(r"[^\S\n]+", " ", re.sub(r"\n\s*", "\n", text[: 2 * _MOST_READ]))[:_MOST_READ]


def scale_in(text: str) -> tuple[float, float] | None:
    """Return the scale that *text* tells the judge to use."""
    said = PATTERNS["in_words"].sub(
        lambda at: f"{WORDS['numbers'][at[1].lower()]} to {WORDS['numbers'][at[3].lower()]}",
        re.sub(r"\*\*|__", "", _squeeze(text)),
    )
    said = PATTERNS["numeral"].sub(lambda at: str(WORDS["numerals"][at[1] or at[2]]), said)
    if not re.search(r"\d", said):
        return None
    for pattern in (*_SEVERAL["bare"], *_SEVERAL["cjk"]):
        if match := pattern.search(said):
            ends = {name: float(end) for name, end in match.groupdict().items() if end}
            low, high = ends.get("low", 1.0 if "steps" in ends else 0.0), [*ends.values()][-1]
            if low <= 1 < high <= _MOST:
                return low, high
    if not (PATTERNS["of_scores"].search(said) or PATTERNS["judges"].match(said)):
        return None
    for pattern in _SEVERAL["scales"]:
        for match in pattern.finditer(said):
            given = match.groupdict()
            low, high = (0.0, float(given["of"])) if given.get("of") else (float(given["low"]), float(given["high"]))
            if (low, high) == (0, 1) or (low <= 1 and low + 1 < high <= _MOST):
                return low, high
    return _scale_in(said)


def _scale_in(text: str) -> tuple[float, float] | None:
    """Return the scale that the points of a list in *text* have, or are."""
    scales = PATTERNS["listed_scale"].findall(text)
    if (
        len(scales) > 1
        and len({*scales}) == 1
        and (PATTERNS["of_scores"].search(text) or PATTERNS["judges"].match(text))
    ):
        low, high = map(float, scales[0])
        if low < high:
            return low, high
    listed = sorted({int(number) for number in PATTERNS["listed_score"].findall(text)})
    if len(listed) > 1 and listed[0] <= 1 < listed[-1] and PATTERNS["of_scores"].search(text):
        return float(listed[0]), float(listed[-1])
    return None


def format_in(text: str) -> str:
    """Return the words with which *text* tells the judge how to reply."""
    said = _squeeze(text)
    for pattern in _SEVERAL["formats"]:
        if found := pattern.search(said):
            return found[0].strip(" .:;!?-*\n")
    found = PATTERNS["keys"].search(said)
    return found[0].strip(" ,") if found and PATTERNS["asks"].search(said) else ""


def prescribes(text: str) -> bool:
    """True if *text* says what should not be, rather than what would be wrong."""
    said = text.strip()
    return bool(PATTERNS["prescribes"].search(said)) and not PATTERNS["open_pronoun"].match(said)


_DENIES = frozenset("not no never doesn't don't isn't aren't without".split())  # noqa: SIM905 - read as a text
_SMALL = _DENIES | {"any", "some", "does", "do"}


def thing_and_side(text: str) -> tuple[tuple[str, ...], bool]:
    """Return the words of *text* without "not" and verbs' endings, and whether it denies them."""
    said = normal(PATTERNS["subject"].sub("", text.strip())).split()
    words = [word for word in said if word not in _SMALL]
    if words:
        words[0] = re.sub(r"(?<=[^s])s$", "", words[0])
    return tuple(words), not _DENIES.isdisjoint(said[:4])


def left_over_in(text: str) -> str:
    """Return the place of *text* that was to be filled in; a text about such places has none."""
    said = _squeeze(text)
    found = PATTERNS["left_over"].search(said) or (
        None if PATTERNS["of_blanks"].search(said) else PATTERNS["blank"].search(said)
    )
    return found[0].strip(" .!?;\n") if found else ""


_EDGES = ".,:;!?\"'()[]“”‘’*`…"


def normal(text: str) -> str:
    """Return the words of *text* for comparison: without case, articles and the punctuation around them."""
    words = (word.strip(_EDGES) for word in text.casefold().replace("’", "'").split())
    return " ".join(word for word in words if word and word not in ("a", "an", "the"))


_GENERIC = frozenset(files("rubric.quality").joinpath("generic_words.txt").read_text("utf-8").split())


def says_nothing(text: str) -> bool:
    """True if all words of *text* fit every task."""
    words = normal(text).split()
    return bool(words) and _GENERIC.issuperset(words)
