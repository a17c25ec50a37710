"""What a grade consists of: findings, rows, summaries, and the differences between rubrics."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
