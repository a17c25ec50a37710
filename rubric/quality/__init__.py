"""Is the rubric any good: generation, alignment with labels, statistics of items, and all results of such checks."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
