"""Which checks exclude one another, and which imply one another: what `lint` says of checks by code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeGuard

from rubric import Calls, Candidate, Contains, ContainsAll, Criterion, EndsWith, Equals, Holds, StartsWith, Trajectory
from rubric.embed import Check, Decided, decide
from rubric.results import Scored
from rubric.values import RunRule, RunRules, Script, Similar, Unsupported, Within

Placed = tuple[int, Criterion]
"""A criterion, with its number before it."""


class _Parts:
    """Checks for a part of a text, as a tree of their letters."""

    # Looking one text up takes as long whatever their number is, so a rubric of 800 checks needs no 320,000
    # comparisons.

    def __init__(self, checks: Iterable[Placed]) -> None:
        self._trees: dict[bool, dict[str, Any]] = {}
        self._longest = 0
        for placed in checks:
            if isinstance(check := placed[1].answer, Contains):
                node = self._trees.setdefault(check.ignore_case, {})
                text = check.text.casefold() if check.ignore_case else check.text
                self._longest = max(self._longest, len(text))
                for letter in text:
                    node = node.setdefault(letter, {})
                node.setdefault("", []).append(placed)  # no letter is empty

    def within(self, texts: Sequence[str]) -> list[Placed]:
        """Return the checks that every output which contains all of *texts* meets, in their order."""
        found: dict[int, Placed] = {}
        for ignores_case, tree in self._trees.items():
            for text in (text.casefold() if ignores_case else text for text in texts):
                for start in range(len(text)):
                    node = tree
                    for letter in text[start : start + self._longest]:
                        if letter not in node:
                            break
                        node = node[letter]
                        found |= {placed[0]: placed for placed in node.get("", ())}
        return [found[place] for place in sorted(found)]


def excluding(checks: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """
    Yield pairs of *checks*, all of which must hold, that no text meets both of; the later one is the second.

    Of several that exclude one another, each later one is told beside one of the others.
    """
    wanted = [placed for placed in checks if not placed[1].is_unwanted]
    found: dict[tuple[int, int], tuple[Placed, Placed]] = {}
    for one, other in [*_against_whole(checks, wanted), *_against_parts(checks, wanted), *_against_ends(wanted)]:
        first, second = sorted((one, other), key=lambda placed: placed[0])
        found[second[0], first[0]] = first, second
    yield from (found[places] for places in sorted(found))


def _against_whole(checks: Sequence[Placed], wanted: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """Yield the first check for a whole text with each that the text fails."""
    for first in wanted:
        whole = first[1].answer
        if isinstance(whole, Equals) and not whole.ignore_case:
            for placed in checks:
                check = placed[1].answer
                if placed[0] != first[0] and is_of_text(check) and meets(check, whole.text) == placed[1].is_unwanted:
                    yield first, placed
            return


def _against_parts(checks: Sequence[Placed], wanted: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """Yield each check whose texts hold what another one forbids."""
    forbidden = _Parts(placed for placed in checks if placed[1].is_unwanted)
    for one in wanted:
        yield from ((one, other) for other in forbidden.within(_required_texts(one[1].answer)))


def _against_ends(wanted: Sequence[Placed]) -> Iterator[tuple[Placed, Placed]]:
    """Yield each check for a beginning, or an end, with the longest one so far if they do not fit."""
    for kind in (StartsWith, EndsWith):
        longest: tuple[Placed, str] | None = None
        for placed in wanted:
            check = placed[1].answer
            if not isinstance(check, kind) or check.ignore_case:
                continue
            text = check.text if kind is StartsWith else check.text[::-1]
            if longest is not None and not (text.startswith(longest[1]) or longest[1].startswith(text)):
                yield longest[0], placed
            elif longest is None or len(text) > len(longest[1]):
                longest = placed, text


def implications(checks: Sequence[Placed]) -> Iterator[tuple[Placed, list[Placed]]]:
    """Yield each of *checks* with the others that every output which meets it meets too."""
    parts = _Parts(checks)
    for placed in checks:
        answer = placed[1].answer
        whole = (answer.text,) if isinstance(answer, Equals) and not answer.ignore_case else ()
        if weaker := [one for one in parts.within(whole or _required_texts(answer)) if one[1].answer != answer]:
            yield placed, weaker


def is_of_text(answer: object) -> TypeGuard[Check]:
    """True if *answer* is a check of the output's text alone."""
    return isinstance(answer, Check) and not isinstance(
        answer, Holds | Script | Unsupported | Decided | Calls | Trajectory | RunRule | RunRules | Within | Similar
    )


def finding_of(check: Check, text: str) -> Scored:
    """Return what *check*, one of the text alone, finds of *text*."""
    finding = decide(Criterion("check", id="check", answer=check), Candidate(text))
    assert isinstance(finding, Scored)  # noqa: S101 - no such check is left undecided
    return finding


def meets(check: Check, text: str) -> bool:
    """True if *text* meets *check*."""
    return finding_of(check, text).score == 1


def _required_texts(answer: object) -> tuple[str, ...]:
    """Return texts that every output that meets *answer* contains, in the letters that it asks for."""
    match answer:
        case Contains(ignore_case=False) | StartsWith(ignore_case=False) | EndsWith(ignore_case=False):
            return (answer.text,)
        case ContainsAll(ignore_case=False):
            return answer.texts
    return ()
