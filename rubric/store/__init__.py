"""The reply store: one SQLite file that caches replies and resumes runs."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, _homes = attach(__name__, __file__, renamed={})
__all__ = list(_homes)
