"""How a score is shown to people. The score itself stays in 0..1."""

from __future__ import annotations

from bisect import bisect_right

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.showing import Shown
from rubric.validating import number

__all__ = ["Boolean", "Letter", "Likert", "Scale", "UnitScale"]


class Scale:
    """The parent of the four ways to show a score."""

    __slots__ = ()

    def show(self, score: float, *, passed: bool) -> str:
        """Return *score* (0..1) as people read it."""
        raise NotImplementedError


@frozen(repr=False)
class UnitScale(Scale, Shown):
    """The score with two decimals: `0.80`."""

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        """Return *score* with two decimals."""
        return f"{score:.2f}"


@frozen(repr=False)
class Likert(Scale, Shown):
    """A band of numbers: 0..1 becomes *low*..*high*, with one decimal: `4.0/5`."""

    _positional = ("low", "high")

    low: float = field(default=1, validator=number(-1e9, 1e9))
    high: float = field(default=5, validator=number(-1e9, 1e9))

    def __attrs_post_init__(self) -> None:
        if self.low >= self.high:
            raise DefinitionError("high", f"a Likert scale runs upwards, not from {self.low:g} to {self.high:g}")

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        """Return *score* on the band, with its end: `4.0/5`."""
        return f"{self.low + score * (self.high - self.low):.1f}/{self.high:g}"


@frozen(repr=False)
class Boolean(Scale, Shown):
    """`pass` or `fail`."""

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        """Return `pass` or `fail`."""
        return "pass" if passed else "fail"


@frozen(repr=False)
class Letter(Scale, Shown):
    """A letter: A from 0.9, B from 0.8, C from 0.7, D from 0.6, else F."""

    def show(self, score: float, *, passed: bool) -> str:  # noqa: ARG002
        """Return the letter of *score*."""
        return "FDCBA"[bisect_right((0.6, 0.7, 0.8, 0.9), score + 1e-9)]
