"""What tests of your own need: a scripted judge. `rubric.testing.strategies` (needs Hypothesis) builds any rubric."""

from __future__ import annotations

from rubric.testing.scripted_model import Says, ScriptedModel, reply_to

__all__ = ["Says", "ScriptedModel", "reply_to"]
