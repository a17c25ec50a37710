"""The formats of the library itself; each stands in its package, with the rules by which it is recognised."""

from __future__ import annotations

OWN = {
    "native": "rubric.formats.native.format:NATIVE",
    "promptfoo": "rubric.formats.promptfoo.format:PROMPTFOO",
    "agentv-1": "rubric.formats.agentv.format:FIRST",
    "agentv-1.5": "rubric.formats.agentv.format:BETWEEN",
    "agentv-2": "rubric.formats.agentv.format:CURRENT",
    "mcptest": "rubric.formats.mcptest.format:MCPTEST",
}
"""For each format, the `Format`, as `module:name`."""
