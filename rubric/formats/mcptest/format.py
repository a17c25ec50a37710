"""mcptest's format of suites: how a file is recognised and read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rubric.embed import SURE, Format
from rubric.formats import recognition as rules
from rubric.formats.recognition import HINT, LIKELY, STRONG, Evidence, Seen

_OF_ANY_DATA = frozenset({"cases", "metadata"})
"""Keys of suites of ours that hold data of any names; no file of mcptest has its matchers under them."""


def _servers(seen: Seen) -> str:
    """MCP servers have names; the `servers` of an OpenAPI description are a list."""
    servers = seen.keys.get("servers")
    inner = [*servers.values()] if isinstance(servers, Mapping) else []
    fits = inner and all(isinstance(server, Mapping) and server.keys() & {"command", "url"} for server in inner)
    return "it names MCP servers" if fits else ""


def _expectations(seen: Seen) -> Iterator[Any]:
    """Yield what mcptest's tests expect: a path, and a mapping of matchers."""
    found = rules.mappings_in(seen.keys, _OF_ANY_DATA)
    return (one for one in found if isinstance(one.get("target"), str) and isinstance(one.get("matcher"), Mapping))


_EVIDENCE: Evidence = (
    (SURE, rules.schema_has("mcptest")),
    (STRONG, rules.lists("evals", "rubric")),
    (
        STRONG,
        rules.in_any(
            lambda seen: rules.mappings_in(seen.keys, _OF_ANY_DATA),
            "it has the matcher",
            ("llm-judge", "llm-jury", "eval.rubric"),
        ),
    ),
    (STRONG, rules.finds("what it expects has a target and a matcher", _expectations)),
    (LIKELY, lambda seen: rules.has("evals")(seen) if not rules.lists_skills(seen) else ""),
    (LIKELY, rules.has("rubrics", kind=Mapping)),
    (LIKELY, rules.name_fits("*mcptest*.y*ml")),
    (HINT, _servers),
)

MCPTEST = Format("mcptest", "rubric.formats.mcptest.reader:read", evidence=_EVIDENCE)
