"""mcptest: its rubric evals as suites, and suites as its files."""

from __future__ import annotations

from rubric.formats.mcptest.presets import PRESETS, preset
from rubric.formats.mcptest.reading import read
from rubric.formats.mcptest.writing import write

__all__ = ["DEVIATIONS", "PRESETS", "preset", "read", "write"]

DEVIATIONS = {
    "a run without a key, a response or a server": (
        "mcptest reports it as passed; here it is deferred, and counts as an error unless the caller says otherwise, "
        "since nothing was graded"
    ),
    "a threshold of a criterion that is neither required nor a guard": (
        "it gates nothing, as the documentation says of gates alone, and a warning says so"
    ),
    "evidence": "the quote must occur in the candidate (white space folded); mcptest only asks for one",
    "the words of the presets": "mcptest documents one line for each; the criteria here are the library's own",
    "an llm-jury of different models whose quorum is not a majority": (
        "a panel decides by majority, so the case stays ungraded, with a warning"
    ),
    "an empty or punctuation-only response": "it fails without a call; mcptest's documentation does not single it out",
    "gates under a panel's mean or median": (
        "more than half of the members must find them passed, since a gate is not averaged away"
    ),
    "a jury without a model": (
        "the model of the environment is looked up when the jury is asked; without a key it is ungraded, not deferred"
    ),
    "matchers of tools and agents": "their rubrics become cases without an output; no tool is called for them",
    "a panel or jury in which a judge fails": "the case is ungraded where the missing vote could decide",
}
"""Where this library does not do what mcptest does, and why."""
