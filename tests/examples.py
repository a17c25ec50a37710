"""How many examples a property tries where each takes longer than most."""

from __future__ import annotations

from hypothesis import settings

USUAL = 200
"""Examples of a property in a whole run, as the profile `ci` has them."""

LEAST = 5


def examples(count: int) -> settings:
    """Try *count* examples in a whole run, and as many fewer or more as the profile says."""
    return settings(max_examples=max(min(count, LEAST), count * settings().max_examples // USUAL))
