"""The reply store: one SQLite file that caches replies and resumes runs."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
