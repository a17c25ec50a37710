"""The recorded pieces of YAML: what another loader makes of them is read as it was meant, or refused with a place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from rubric.errors import LoadError
from rubric.formats.agentv import reader as agentv
from rubric.formats.cursor import Loading, Notes
from rubric.formats.document import FOR_SUITES
from rubric.formats.files import parse
from rubric.formats.mcptest import reader as mcptest
from rubric.formats.promptfoo import reader as promptfoo
from rubric.suites.suite import Suite

FILE = Path(__file__).parents[2] / "shared" / "upstream_cases.json"
ALL: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []
PIECES = [case for case in ALL if case["format"] == "yaml-load"]

pytestmark = pytest.mark.skipif(not PIECES, reason="the recorded pieces of YAML are not beside this checkout")

ELEVEN = re.compile(r":[ ]+(yes|no|on|off|y|n)[ ]*$", re.IGNORECASE | re.MULTILINE)
"""A text that is a boolean to loaders of YAML 1.1."""

Read = Callable[[Notes, Loading], Suite]

CRITERION = "criteria: [{name: a, description: A}]\n"
EVAL = "evals:\n  - name: a\n    prompt: p\n    response: r\n    rubric:\n"
ITEM = "tests:\n  - id: a\n    input: q\n    assert:\n      - type: llm-rubric\n        value:\n          - id: a\n"
ASSERTION = "tests:\n  - assert:\n      - type: llm-rubric\n"

FRAMES: dict[str, tuple[Read, str, int]] = {
    "tree": (mcptest.read, EVAL, 6),
    "criteria": (mcptest.read, EVAL, 6),
    "threshold": (mcptest.read, EVAL + indent(CRITERION, " " * 6), 6),
    "strict": (mcptest.read, EVAL + indent(CRITERION, " " * 6), 6),
    "scale": (mcptest.read, EVAL + indent(CRITERION, " " * 6), 6),
    "score_ranges": (agentv.read, ITEM, 12),
    "outcome": (agentv.read, ITEM, 12),
    "value": (promptfoo.read, ASSERTION, 8),
}
"""For the first key of a piece: whose files have it, the lines that stand before it there, and how far it is indented."""


TEXTS = ("score_ranges", "criteria", "outcome", "value")
"""The first keys of pieces that hold texts."""


def first_key(piece: str) -> str:
    """Return the key that a piece starts with."""
    return piece.partition(":")[0].strip()


def loaded(piece: str) -> None:
    """Read *piece*, alone and where it belongs; a `LoadError` if it says nothing that can be used."""
    parse(piece, "piece.yaml", limits=FOR_SUITES)
    if first_key(piece) not in FRAMES:
        return
    read, frame, depth = FRAMES[first_key(piece)]
    notes = Notes(parse(frame + indent(piece, " " * depth), "file.yaml", limits=FOR_SUITES))
    read(notes, Loading())
    notes.finish()


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in PIECES])
def test_a_piece_of_yaml_is_read_as_meant_or_refused(case: dict[str, Any]) -> None:
    """Keys that YAML 1.1 changes are taken, as are its booleans, which are texts in 1.2; what is ambiguous is refused."""
    if case["expected"].get("error") is None or (ELEVEN.search(case["rubric"]) and first_key(case["rubric"]) in TEXTS):
        loaded(case["rubric"])
        return
    with pytest.raises(LoadError) as caught:
        loaded(case["rubric"])
    assert all(problem.line and problem.column for problem in caught.value.problems)
