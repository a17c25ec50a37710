"""Help for tests of your own: a scripted judge. `rubric.testing.strategies` (needs Hypothesis) draws any rubric."""

from __future__ import annotations

from rubric.testing.scripted_model import Says, ScriptedModel, reply_to

__all__ = ["Says", "ScriptedModel", "reply_to"]
