"""
The keys of promptfoo's and AgentV's files and their parts, types of assertions, and cures of what is not graded.

They are data, in the file `keys.toml` beside the readers of each system.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import Any


@cache
def table_of(system: str) -> dict[str, dict[str, Any]]:
    """Return the table of a *system*, the name of the package of its readers."""
    return tomllib.loads(resources.files(f"rubric.formats.{system}").joinpath("keys.toml").read_text("utf-8"))


def keys_of(system: str, part: str, which: str = "read") -> frozenset[str]:
    """Return the keys of a *part* of a file, *which* the table of a *system* has under this name."""
    return frozenset(table_of(system)[part].get(which, "").split())


@cache
def part_of(system: str, part: str) -> dict[str, Any]:
    """Return the keys of a *part* of a *system*'s files, and what is said of others, as `Cursor.reads` takes them."""
    row = table_of(system)[part]
    told = {which: words_of(system, part, which) for which in ("fates", "elsewhere", "once") if which in row}
    said = {which: row[which] for which in ("unread", "idle") if which in row}
    return {"known": keys_of(system, part), "quiet": keys_of(system, part, "quiet"), **told, **said}


def words_of(system: str, part: str, which: str) -> dict[str, str]:
    """Return by key what the table *which* of a *part* says of it: a sentence with {} for the key, or another word."""
    table = table_of(system)[part][which]
    return {key: said.replace("{}", key) for said, keys in table.items() for key in keys.split()}
