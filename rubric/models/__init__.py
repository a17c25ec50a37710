"""Models: what answers an ask. Each imports what it needs on its first call."""

from __future__ import annotations

from rubric.models.ceilings import worst_cost
from rubric.models.defaults import default_judge
from rubric.models.functions import FunctionModel
from rubric.models.litellm import LiteLLMModel
from rubric.models.offline import OfflineModel
from rubric.models.prices import count_tokens, price
from rubric.models.resolving import model_of

__all__ = [
    "FunctionModel",
    "LiteLLMModel",
    "OfflineModel",
    "count_tokens",
    "default_judge",
    "model_of",
    "price",
    "worst_cost",
]
