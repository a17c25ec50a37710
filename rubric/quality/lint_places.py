"""
Where a remark is, and whether it is waived there.

A reader of files keeps no places of criteria. A criterion is found again by its text, from the start of its case on and
after the criterion before it, so that of two with one text each has its own place.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import attrs
from attrs import evolve, frozen

from rubric import Criterion, DecisionTree, DefinitionError, Rubric
from rubric.embed import Check, fields
from rubric.formats.insertion import Page
from rubric.quality.lint_rules import RULES, Finding

Spot = tuple[int, int]
"""A line and a column, from 1."""

_WAIVER = re.compile(r"#[ \t]*lint:[ \t]*allow[ \t]+([a-z-]+)[ \t]*:?[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)
_HOLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
END = (10**9, 1)


@frozen
class File:
    """The places of each text of a file, with its white space folded; and rule and reason of each waiver, by line."""

    source: str
    spots: Mapping[str, Sequence[Spot]] = {}
    waivers: Mapping[int, tuple[str, str]] = {}

    @classmethod
    def read(cls, path: Path) -> File:
        """
        Return the texts of the file at *path*; none of a file that is neither YAML nor JSON.

        Raises:
            DefinitionError: A waiver names no rule.
        """
        page = Page.read(path)
        if page is None:
            return cls(str(path))
        spots: dict[str, list[Spot]] = {}
        for text, spot in page.texts():
            spots.setdefault(" ".join(text.split()), []).append(spot)
        waivers = {line: (one[1].lower(), one[2]) for line, one in page.comments(_WAIVER)}
        for line, name in ((line, name) for line, (name, _) in waivers.items() if name not in RULES):
            raise DefinitionError(f"{path}:{line}", f"no rule is called {name!r}{fields.suggest(name, RULES)}")
        return cls(str(path), {text: sorted(where) for text, where in spots.items()}, waivers)

    def find(self, text: str, after: Spot, before: Spot) -> Spot | None:
        """Return where *text* is: between *after* and *before*, else anywhere; of a template, where that is."""
        said = " ".join(text.split())
        where = self.spots.get(said) or sorted(
            place for one, some in self.spots.items() if "{{" in one and _fills(said, one) for place in some
        )
        at = bisect_right(where, after)
        return where[at] if at < len(where) and where[at] < before else next(iter(where), None)


def _fills(text: str, template: str) -> bool:
    """True if *text* is *template* with its holes filled in."""
    parts = _HOLE.split(template)
    pattern = "*".join(re.sub(r"[*?[]", r"[\g<0>]", part) for part in parts)
    return len(parts) > 1 and "".join(parts).strip() != "" and fnmatchcase(text, pattern)


@frozen
class Places:
    """
    Where the criteria of a rubric are: in a file, from *start* to *end*, by their texts; else by their path.

    Without a *file* the rubric was built in Python. *criteria* is where they begin, if that is known.
    """

    file: File | None = None
    start: Spot = (1, 1)
    end: Spot = END
    criteria: Spot | None = None
    path: str = ""

    def spots(self, rubric: Rubric) -> list[Spot | None]:
        """Return the place of each criterion of *rubric*; None if it is not found."""
        found: list[Spot | None] = []
        first = self.criteria or self.start
        last = first[0], first[1] - 1
        for criterion in rubric.judged if self.file is not None else ():
            one = next((spot for said in _texts_of(criterion) if (spot := self._find(said, last))), None)
            found.append(one)
            last = one if one is not None and last < one < self.end else last
        return found or [None] * len(rubric.judged)

    def _find(self, said: str, after: Spot) -> Spot | None:
        return None if self.file is None else self.file.find(said, after, self.end)

    def below(self, index: int, spot: Spot | None) -> Places:
        """Return the places of the rubric that is the criterion *index*, which is at *spot*."""
        return evolve(self, path=f"{self.path}criteria[{index}].answer.", start=spot or self.start, criteria=None)

    def spot_of(self, finding: Finding, spot: Spot | None) -> Spot:
        """Return where *finding* is, in a criterion at *spot*: at the text that it names, else there itself."""
        base = at = self.start if len(finding.said) > 1 else spot or self.start
        for step in finding.said:
            named = self._find(step, (at[0], at[1] - 1))
            if named is None or not at <= named < self.end:
                return spot or base
            at = named
        return at

    def show(self, finding: Finding, spot: Spot) -> str:
        """Describe the place of *finding*."""
        if self.file is not None:
            return f"{self.file.source}:{spot[0]}:{spot[1]}"
        whole = self.path.rstrip(".") or "rubric"
        return whole if finding.index is None else f"{self.path}criteria[{finding.index}]"

    def waiver(self, rule: str, rubric: Rubric, criterion: Criterion | None, spots: Sequence[Spot | None]) -> str:
        """
        Return the reason for which *rule* is waived at one of the *spots*, or by *criterion*; empty if it is not.

        Raises:
            DefinitionError: A waiver there has no reason.
        """
        for given in (one.metadata.get("lint") for one in (rubric.judged if criterion is None else [criterion])):
            if isinstance(given, Mapping) and rule in given:
                return _reason(f"metadata.lint.{rule}", given[rule])
        if self.file is None:
            return ""
        for line in sorted({line for spot in spots if spot for line in (spot[0], spot[0] - 1)}):
            name, why = self.file.waivers.get(line, ("", ""))
            if name == rule:
                return _reason(f"{self.file.source}:{line}", why)
        return ""


def _texts_of(criterion: Criterion) -> Iterator[str]:
    """Yield the texts by which *criterion* is known in a file, the surest first."""
    yield criterion.text
    match criterion.answer:
        case DecisionTree() as tree:
            yield tree.question
        case Check() as check:
            for attribute in attrs.fields(type(check)):
                value = getattr(check, attribute.name)
                texts = value if isinstance(value, tuple) else (value,)
                yield from (text for text in texts if isinstance(text, str) and text)
    yield criterion.id


def _reason(where: str, given: object) -> str:
    if isinstance(given, str) and given.strip():
        return given.strip()
    raise DefinitionError(where, "a waiver needs a reason: # lint: allow RULE: why it is meant so")
