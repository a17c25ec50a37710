"""mcptest: its rubric evals as suites, and suites as its files."""

from __future__ import annotations

from rubric.formats.mcptest.presets import PRESETS, preset
from rubric.formats.mcptest.reading import read
from rubric.formats.mcptest.writing import write

__all__ = ["PRESETS", "preset", "read", "write"]
