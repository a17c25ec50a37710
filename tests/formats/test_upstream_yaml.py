"""The recorded pieces of YAML: what another loader makes of them is read as it was meant, or refused with a place."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from rubric import LoadError, load_suite
from tests.places import SHARED

FILE = SHARED / "upstream_cases.json"
ALL: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else []
PIECES = [case for case in ALL if case["format"] == "yaml-load"]

pytestmark = pytest.mark.skipif(not PIECES, reason="the recorded pieces of YAML are not beside this checkout")

ELEVEN = re.compile(r":[ ]+(yes|no|on|off|y|n)[ ]*$", re.IGNORECASE | re.MULTILINE)
"""A text that is a boolean to loaders of YAML 1.1."""

CRITERION = "criteria: [{name: a, description: A}]\n"
EVAL = "evals:\n  - name: a\n    prompt: p\n    response: r\n    rubric:\n"
ITEM = "tests:\n  - id: a\n    input: q\n    assert:\n      - type: llm-rubric\n        value:\n          - id: a\n"
ASSERTION = "tests:\n  - assert:\n      - type: llm-rubric\n"

FRAMES: dict[str, tuple[str, str, int]] = {
    "tree": ("evals.mcptest.yml", EVAL, 6),
    "criteria": ("evals.mcptest.yml", EVAL, 6),
    "threshold": ("evals.mcptest.yml", EVAL + indent(CRITERION, " " * 6), 6),
    "strict": ("evals.mcptest.yml", EVAL + indent(CRITERION, " " * 6), 6),
    "scale": ("evals.mcptest.yml", EVAL + indent(CRITERION, " " * 6), 6),
    "score_ranges": ("it.eval.yaml", ITEM, 12),
    "outcome": ("it.eval.yaml", ITEM, 12),
    "value": ("promptfooconfig.yaml", ASSERTION, 8),
}
"""For the first key of a piece: the name of a file that has it, the lines that stand before it there, and how far it is indented."""


TEXTS = ("score_ranges", "criteria", "outcome", "value")
"""The first keys of pieces that hold texts."""


def first_key(piece: str) -> str:
    """Return the key that a piece starts with."""
    return piece.partition(":")[0].strip()


def loaded(piece: str, folder: Path) -> None:
    """Load a file with *piece* where it belongs, by the default call."""
    name, frame, depth = FRAMES[first_key(piece)]
    (folder / name).write_text(frame + indent(piece, " " * depth), encoding="utf-8")
    load_suite(folder / name)


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in PIECES])
def test_a_piece_of_yaml_is_read_as_meant_or_refused(case: dict[str, Any], tmp_path: Path) -> None:
    """Keys that YAML 1.1 changes are taken, as are its booleans, which are texts in 1.2; what is ambiguous is refused."""
    if case["expected"].get("error") is None or (ELEVEN.search(case["rubric"]) and first_key(case["rubric"]) in TEXTS):
        loaded(case["rubric"], tmp_path)
        return
    with pytest.raises(LoadError) as caught:
        loaded(case["rubric"], tmp_path)
    assert all(problem.line and problem.column for problem in caught.value.problems)
