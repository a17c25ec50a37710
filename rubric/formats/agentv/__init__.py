"""AgentV's eval files of generations 1, 1.5 and 2: read as a `Suite`, and written as generation 2."""

from __future__ import annotations

from rubric.formats.agentv.reading import read
from rubric.formats.agentv.writing import write

__all__ = ["read", "write"]
