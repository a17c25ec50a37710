"""
Assertion types with a reader of their own: what limits a run.

`GRADERS` is their table; `assertions` reads `llm-rubric`, `javascript`, sets, and the types that code decides.
"""

from __future__ import annotations

from collections.abc import Callable

from rubric.formats.cursor import Cursor
from rubric.formats.promptfoo.parts import Assertion, thresholded, unsupported
from rubric.formats.promptfoo.texts import Context
from rubric.values.checks import Within

Reader = Callable[[Cursor, Context, str], Assertion | None]

# -- what a run took ---------------------------------------------------------------------------------------

_LIMITS = {"latency": ("latency", 1000), "cost": ("cost", 1), "perplexity": ("perplexity", 1)}
"""The limit that each type sets, and how many of the file's units make one of ours: a latency is in milliseconds."""


def limited(at: Cursor, context: Context, kind: str) -> Assertion | None:  # noqa: ARG001 - as all readers
    """Return the limit on the run, *kind*, at the cursor; None where an error was noted."""
    name, units = _LIMITS[kind.removeprefix("not-")]
    if not at.has("threshold"):
        return unsupported(f"{kind} without a threshold, which records a figure and decides nothing", "", at)
    limit = at["threshold"].number(0)
    if limit is None:
        return None
    plain = at.holding({key: value for key, value in at.value.items() if key != "threshold"})
    return thresholded(plain, Within(**{name: limit / units}), kind)


GRADERS: dict[str, tuple[Reader, frozenset[str]]] = {name: (limited, frozenset()) for name in _LIMITS}
"""The readers of assertion types, without `not-`, and the keys that they read besides those of all assertions."""
