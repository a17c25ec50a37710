"""Rewards of models in training: a rubric for each prompt, and an audit of whether the reward is hacked."""

from __future__ import annotations

from rubric.internals.lazy_names import attach

__getattr__, __dir__ = attach(__name__, __file__)
