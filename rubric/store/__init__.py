"""The reply store: what has been paid for is kept in one SQLite file, and is not paid for again."""

from __future__ import annotations

from rubric.store.auditing import Problem, Stats, export, stats, verify
from rubric.store.stores import Store, Tally

__all__ = ["Problem", "Stats", "Store", "Tally", "export", "stats", "verify"]
