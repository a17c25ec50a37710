"""Reading, writing and converting files: `rubric` has `load`, `load_suite` and their kind, this the rest."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
