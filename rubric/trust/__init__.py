"""Can the judge be trusted: labels, agreement, calibration, estimates, comparisons, preferences."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
