"""promptfoo's configurations: read as a `Suite`, and written from one."""

from __future__ import annotations

from rubric.formats.promptfoo.reading import read
from rubric.formats.promptfoo.writing import write

__all__ = ["read", "write"]
