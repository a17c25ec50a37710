"""
What code decides of a criterion without a call: a length, a wording or a form, read from its text.

All of the text must say it: "Has at most 100 words" is a length; "Has at most 100 words and is polite" is for a judge.
"""

from __future__ import annotations

import re
from math import inf

from attrs import frozen

from rubric.quality.lint_texts import PATTERNS, WORDS

_LONGEST = 160
"""The letters of the longest text that is read: a longer one asks for more than a length or a wording."""


# -- lengths ---------------------------------------------------------------------------------------------

_OPPOSITE = {"<=": ">", "<": ">=", ">=": "<", ">": "<="}
_MEASURES = {"word": "len(c.output.split())", "character": "len(c.output)", "line": "len(c.output.splitlines())"}


@frozen
class Length:
    """A length that a text asks for: *low* to *high* of a *unit* such as "word", and *wanted*, that in Python."""

    unit: str
    low: float
    high: float
    wanted: str

    @classmethod
    def of(cls, unit: str, sign: str, count: int) -> Length:
        """Return the length that is *sign*, such as "<=", than *count*."""
        low, high = {"<=": (0.0, count), "<": (0, count - 1), ">=": (count, inf), ">": (count + 1, inf)}.get(
            sign, (count, count)
        )
        return cls(unit, low, high, f"{_MEASURES.get(unit, unit)} {sign} {count}")


def length_in(text: str) -> Length | None:
    """Return the length that *text* asks for, if that is all it asks for."""
    said, denies = _predicate(text)
    if match := PATTERNS["length"].fullmatch(said):
        return _length_of(match.groupdict(), denies=denies)
    if not denies and (match := PATTERNS["cjk_length"].fullmatch(text.strip())) and (match["before"] or match["after"]):
        sign = WORDS["cjk_bound"].get(match["before"] or match["after"], "<=")
        return Length.of("character", sign, int(match["count"]))
    return None


def _predicate(text: str) -> tuple[str, bool]:
    """Return what *text* says of the candidate, and whether it is denied; "" for a long text."""
    said = text.strip().rstrip(".?").rstrip()
    if len(said) > _LONGEST:
        return "", False
    about = PATTERNS["about"].match(said)
    assert about is not None  # noqa: S101 - every part of the pattern may be missing
    return said[about.end() :], bool(about["not"])


def _length_of(given: dict[str, str | None], *, denies: bool) -> Length | None:
    unit = (given["unit"] or "").lower().split()[0]
    if given["low"] and given["high"]:
        low, high = _count(given["low"]), _count(given["high"])
        outside = denies or low >= high or given["exceeds"] or given["after"] not in (None, "long", "in length")
        return None if outside else Length(unit, low, high, f"{low} <= {_MEASURES.get(unit, unit)} <= {high}")
    count = _count(given["count"] or given["bare"] or "")
    after = " ".join((given["after"] or "").lower().split())
    sign: str | None = ">" if given["exceeds"] else WORDS["bound_after"].get(after)
    if given["bound"]:
        sign = WORDS["bound"][" ".join(given["bound"].lower().split())]
    if sign and denies:
        sign = _OPPOSITE.get(sign)
    return None if sign is None else Length.of(unit, sign, count)


def _count(said: str) -> int:
    return int(WORDS["count"].get(said.lower()) or said.replace(",", ""))


# -- wordings and forms ----------------------------------------------------------------------------------


def by_code(text: str) -> str | None:
    """Return the call that adds *text* as a check by code, if all of it is a length, a wording or a form."""
    if length := length_in(text):
        return f"checks(lambda c: {length.wanted})" if length.unit in _MEASURES else f"checks(count_{length.unit}s)"
    said, denies = _predicate(text)
    if (match := PATTERNS["wording"].fullmatch(said)) and (check := _wording(match, denies=denies)):
        return f"checks({check})"
    if match := PATTERNS["mark"].fullmatch(said):
        mark, ends = WORDS["marks"][match["mark"].lower()], match["verb"].lower().startswith("end")
        if ends and match["no"].lower() in ("a", "an") and not denies:
            return f"checks(EndsWith({mark!r}))"
        return None if ends or match["no"].lower() != "no" or denies else f"checks(lambda c: {mark!r} not in c.output)"
    if (match := PATTERNS["form"].fullmatch(said)) and not denies:
        form = match["form"].lower()
        return f"checks({next(check for word, check in WORDS['forms'].items() if word in form)})"
    return None


def _wording(match: re.Match[str], *, denies: bool) -> str | None:
    texts = PATTERNS["quoted"].findall(match["texts"])
    verb, alternatives = match["verb"].lower(), (match["joint"] or "").lower() == "or"
    kind = next((kind for start, kind in WORDS["kinds"].items() if verb.startswith(start)), "Contains")
    if kind != "Contains":
        return f"{kind}({texts[0]!r})" if len(texts) == 1 and not denies else None
    if denies:
        return f"lambda c: {texts[0]!r} not in c.output" if len(texts) == 1 else None
    return f"Contains({texts[0]!r})" if len(texts) == 1 else f"Contains{'Any' if alternatives else 'All'}({texts!r})"
