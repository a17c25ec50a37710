"""
The order in which people label: what tells most comes first, and weights keep estimates unbiased.

Priority sampling (N. Duffield, C. Lund and M. Thorup, J. ACM 54(6), 2007): a candidate's priority is chance over size,
and the lowest come first. Whenever people stop, those before the next priority t were drawn with probability
min(1, size t), and each represents the inverse of that many candidates. The size mixes an equal share for all with a
share by how unsure the judge is, as T. Zrnic and E. J. Candès propose (arXiv 2403.03208): every candidate may be drawn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import Any

from attrs import field, frozen

RANDOM_SHARE = 0.3
"""The share of the draw in which every candidate is as likely as any other."""


@frozen
class Drawn:
    """
    One candidate in the order of labelling.

    Args:
        name: Its key, or its place in the data.
        place: Its place in the data, from 0.
        size: How likely it is drawn, 1 on average.
        priority: Its place in the order: the lowest is labelled first.
    """

    name: str
    place: int
    size: float
    priority: float


@frozen
class Draw:
    """
    All candidates, in the order in which they are labelled.

    Args:
        items: The first to be labelled first.
        by: `key` or `index`: what the names are.
    """

    items: tuple[Drawn, ...]
    by: str = "key"
    places: Mapping[str, int] = field(init=False, repr=False, eq=False)
    """The place of each name in the order."""

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "places", {item.name: n for n, item in enumerate(self.items)})

    @classmethod
    def of(cls, keys: Sequence[str], doubts: Sequence[float] = ()) -> Draw:
        """
        Return the draw of the candidates with these *keys*.

        It is the same each time: chance comes from the names. Where keys are missing or repeated, names are places.

        Args:
            doubts: How unsure the judge is of each, in 0..1; empty for a draw at random.
        """
        usable = len({*keys}) == len(keys) and all(key and key == key.strip() for key in keys)
        names = keys if usable else [*map(str, range(len(keys)))]
        mean = fmean(doubts) if doubts else 0.0
        items = []
        for place, name in enumerate(names):
            size = RANDOM_SHARE + (1 - RANDOM_SHARE) * doubts[place] / mean if mean else 1.0
            items.append(Drawn(name, place, size, _chance(name) / size))
        items.sort(key=lambda item: item.priority)
        return cls(tuple(items), "key" if usable else "index")

    def reached(self, names: Iterable[str]) -> int:
        """Return how far people came who labelled the candidates *names*: the number of candidates up to the last."""
        return max((self.places[name] + 1 for name in names if name in self.places), default=0)

    def weights(self, reached: int) -> dict[str, float]:
        """Return how many candidates each of the first *reached* represents."""
        after = self.items[reached].priority if reached < len(self.items) else math.inf
        return {item.name: 1 / min(1.0, item.size * after) for item in self.items[:reached]}


def _chance(name: str) -> float:
    """Return a number in 0..1, without its ends, that only *name* determines."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:6]) + 0.5) / 2**48


def doubt_of(results: Sequence[Mapping[str, Any]]) -> float:
    """
    Return how unsure the judges are of one candidate, in 0..1: the mean over the criteria.

    Several verdicts (of a jury, or of several files) are as unsure as they differ: 1 where half say yes. A single score
    is as unsure as it is near the middle. What could not be judged is unsure.

    Args:
        results: What each file says of it, as `Grade.to_dict` has it; none if no file does.
    """
    said: dict[str, list[float | None]] = {}
    for result in results:
        for member in result.get("votes") or (result,):
            for finding in member["findings"]:
                if finding["kind"] != "not_applicable":
                    said.setdefault(finding["id"], []).append(finding.get("score"))
    return fmean(map(_doubt, said.values())) if said else 1.0


def _doubt(scores: Sequence[float | None]) -> float:
    known = [score for score in scores if score is not None]
    if len(known) < len(scores):
        return 1.0
    if len(known) > 1:
        return min(1.0, 2 * pstdev(known))
    return 2 * math.sqrt(max(0.0, known[0] * (1 - known[0])))
