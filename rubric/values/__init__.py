"""The nouns of rubrics, judges and candidates that are rarely typed; `rubric` has the others."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
