"""The tests themselves: what holds for each of them."""

from __future__ import annotations

import ast
from itertools import chain
from typing import TYPE_CHECKING

from tests.places import ROOT
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = sorted((ROOT / "tests").rglob("test_*.py"))


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the test functions of the module at *path*."""
    module = ast.parse(path.read_text(encoding="utf-8"))
    classes = [node.body for node in module.body if isinstance(node, ast.ClassDef)]
    for node in chain(module.body, *classes):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node


@each_row("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "tests")))
def test_each_test_states_the_behaviour_that_it_shows(path: Path) -> None:
    """Every test function has a docstring that is a whole sentence."""
    stated = {test.name: (ast.get_docstring(test) or "").strip() for test in functions_of(path)}
    assert [name for name, sentence in stated.items() if not sentence.endswith((".", "?", "!"))] == []
