"""
Runs of agents in the formats of other tools: `read` one, `write` one in ATIF.

`grade`, `grade_many` and the command line take the same files. `__init__.pyi` has the public names; each is
imported when it is first used.
"""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
