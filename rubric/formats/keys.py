"""
The keys of promptfoo's and AgentV's files and their parts, types of assertions, and cures of what is not graded.

They are data, in the file `keys.toml` beside the readers of each system.
"""

from __future__ import annotations

import re
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
    return frozenset(table_of(system)[part][which].split())


@cache
def part_of(system: str, part: str) -> dict[str, Any]:
    """Return the keys of a *part* of a *system*'s files, and what is said of others, as `Cursor.reads` takes them."""
    row = table_of(system)[part]
    sentences = ("fates", "elsewhere", "once")
    told: dict[str, Any] = {which: words_of(system, part, which) for which in sentences if which in row}
    said: dict[str, Any] = {which: row[which] for which in ("unread", "idle") if which in row}
    quiet = keys_of(system, part, "quiet") if "quiet" in row else frozenset[str]()
    return {"known": keys_of(system, part), "quiet": quiet, **told, **said}


def words_of(system: str, part: str, which: str) -> dict[str, str]:
    """
    Return by key what the table *which* of a *part* says of it: a sentence with {} for the key, or another word.

    A key such as `@options` stands for all that are read of the part of this name.
    """
    table, found = table_of(system), dict[str, str]()
    for said, keys in table[part][which].items():
        spread = re.sub(r"@(\w+)", lambda named: table[named[1]]["read"], keys)
        found |= {key: said.replace("{}", key) for key in spread.split()}
    return found
