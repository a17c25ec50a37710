"""
Drivers, transports and models of your own: a grade as requests, which you send as you like.

`flow` yields batches of `Ask`s and is sent a `Reply` or a `Failure` for each; `drive` and `adrive` are drivers.
"""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
