"""Runs of suites: targets that are tested, reports, plans, comparisons, and how steady the results are."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
