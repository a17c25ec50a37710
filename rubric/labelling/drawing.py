"""
The order in which people label: at random, so that those labelled first are a random sample, wherever people stop.

What the judge is unsure of once came first, with weights. In all worlds tried, the estimates from such labels were 3 to
12 % wider than from as many random ones: the estimator knows what the judge says of every candidate.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property

from attrs import frozen


@frozen
class Drawn:
    """One candidate in the order of labelling: its key or place as its *name*, and its *place*, from 0."""

    name: str
    place: int


@frozen
class Draw:
    """All candidates in the order of labelling, named *by* `key` or `index`."""

    items: tuple[Drawn, ...]
    by: str = "key"

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The place of each name in the order."""
        return {item.name: n for n, item in enumerate(self.items)}

    @classmethod
    def of(cls, given: Sequence[str] | Mapping[int, str]) -> Draw:
        """Return the draw of candidates with these keys, by place, by chance from the names: always the same one."""
        keys = given if isinstance(given, Mapping) else dict(enumerate(given))
        usable = len({*keys.values()}) == len(keys) and all(key and key == key.strip() for key in keys.values())
        drawn = (Drawn(key if usable else str(place), place) for place, key in keys.items())
        # What only the name determines, and nobody foresees.
        items = sorted(drawn, key=lambda item: hashlib.sha256(item.name.encode("utf-8", "surrogatepass")).digest())
        return cls(tuple(items), "key" if usable else "index")
