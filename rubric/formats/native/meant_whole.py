"""The law of a line that is printed as the one that was meant: it has each text, number and name that was typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from rubric.formats.fields import KEYS
from rubric.internals.guesses import table

_TOKEN = re.compile(r"(?a)\d+(?:\.\d+)?|[^\W\d_]+")
_KIND = 3  # words of a text that may name a kind, such as `at least 3`
_MOST = 60  # numbers of a line that may be the ends of a scale


def has_all(typed: object, line: str) -> bool:
    """True if the *line* has all that was *typed*: a word may name a kind, a number may be on another scale."""
    given = [re.sub(r"\{\{.*?\}\}", " ", str(each)) for each in _parts(typed)]  # of a slot, a line may have words
    tokens = {token.lower() for token in _TOKEN.findall(re.sub(r"\\+", " ", line))}
    numbers = {float(token) for token in tokens if token[0].isdigit()}
    for low, high in re.findall(r"(?a)(\d{1,3})\.\.(\d{1,3})", line):
        numbers |= {*map(float, range(int(low), int(high)))}
    followed = {each for each in _names(typed) if given.count(each) > 1} | _kinds()  # such as nodes of a tree
    for each in {*given} - followed:
        words = _TOKEN.findall(re.sub("([a-z])([A-Z])", r"\1 \2", each).lower())
        known = tokens | _kinds() if len(words) <= _KIND else tokens
        if not all(
            _is_in(float(word), numbers) if word[0].isdigit() else {word, word.removesuffix("s")} & known
            for word in words
        ):
            return False
    return True


def _parts(data: object) -> Iterator[object]:
    """Yield the keys and the values in *data*, but for truths: those become fields."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield key
            yield from _parts(value)
    elif isinstance(data, list):
        for each in data:
            yield from _parts(each)
    elif data is not None and not isinstance(data, bool):
        yield data


def _is_in(number: float, numbers: set[float]) -> bool:
    """True if *number* is among *numbers*, also as a share of a scale or of a hundred, or as the first beyond."""
    ends = [each for each in numbers if each % 1 == 0][:_MOST]
    shares = {round((number - low) / (high - low), 4) for low in ends for high in ends if low <= number <= high != low}
    return bool({number, number + 1, number - 1, number / 100, *shares} & numbers) or number == 0


def _names(data: object) -> Iterator[str]:
    """Yield the keys in *data*."""
    if isinstance(data, dict | list):
        yield from map(str, data if isinstance(data, dict) else ())
        for each in data.values() if isinstance(data, dict) else data:
            yield from _names(each)


@cache
def _kinds() -> frozenset[str]:
    """Return the words for keys and kinds, for which a line has other ones."""
    owners = ("Criterion", "DecisionTree", "Message", "ToolCall", "Anchor", "Choice", "Leaf", "ScoreRange", "every")
    arguments = [table()["arguments"].get(owner, {}) for owner in owners]
    sections = [*table()["keys"].values(), *table()["named"].values(), table()["metrics"], *arguments]
    templates: Any = table()["templates"]
    sections += [row["keys"] for row in templates]
    sections += [table()["numbers"], table()["called"], {"": " ".join(table()["checks"])}]
    cures = [(cure, words) for section in sections for cure, words in section.items()]
    said = " ".join(f"{'' if ' ' in cure else cure} {words}" for cure, words in cures)
    own = " ".join(name for names in KEYS.values() for name in names.values())
    words = [*map(str.lower, _TOKEN.findall(f"{said} {own}")), *said.split()]
    return frozenset(word for word in words if not word[0].isdigit())
