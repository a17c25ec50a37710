"""Grading in vendors' batches, at half the price: the answers come within a day."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
