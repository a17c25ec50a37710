"""How much of what is random a run tries: a little in each, which is always the same, and a lot in `nox -s properties`."""

from __future__ import annotations

from hypothesis import settings

USUAL = 200
"""The examples to which the counts below belong; the profile `ci` has fewer, and `long` has more."""

LEAST = 5


def rounds(count: int) -> int:
    """Return how often a loop over random cases goes round: *count* times, or as many fewer or more as the profile says."""
    return max(min(count, LEAST), count * settings().max_examples // USUAL)


def examples(count: int) -> settings:
    """Try *count* examples of a property, or as many fewer or more as the profile says."""
    return settings(max_examples=rounds(count))
