"""The keys of AgentV's files and their parts, by the table in `keys.toml`."""

from __future__ import annotations

import tomllib
from importlib import resources

_TABLE = tomllib.loads(resources.files("rubric.formats.agentv").joinpath("keys.toml").read_text("utf-8"))


def keys_of(part: str, which: str = "read") -> frozenset[str]:
    """Return the keys of a *part* of a file, *which* the table has under this name."""
    return frozenset(_TABLE[part][which].split())
