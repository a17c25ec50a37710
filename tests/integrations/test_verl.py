"""The recipe for verl: the function that its page shows, loaded from a file and called as verl's batch manager does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

from tests.harnesses import BAD, GOOD, ODD, POLITE, judging
from tests.places import ROOT

PAGE = ROOT / "docs" / "integrations" / "verl.md"


@pytest.fixture
def recipe(tmp_path: Path) -> Any:
    """Return the module that the page shows."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "reward.py").write_text(code)
    spec = importlib.util.spec_from_file_location("custom_module", tmp_path / "reward.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.POLITE = POLITE
    return module


def scored(recipe: Any, texts: list[str], groups: list[int]) -> list[dict[str, float]]:
    """Return the rewards of *texts*, each of a prompt in *groups*."""
    infos = [{"index": group} for group in groups]
    found: list[dict[str, float]] = recipe.compute_score(["replies"] * len(texts), texts, [None] * len(texts), infos)
    return found


def test_an_ungraded_completion_has_the_mean_of_its_group(recipe: Any) -> None:
    """So its advantage is 0 and the mean is that of the graded ones; it is marked."""
    with judging() as recipe.JUDGE:
        rewards = scored(recipe, [GOOD, BAD, ODD, GOOD], [0, 0, 0, 1])
    assert [each["score"] for each in rewards] == [1, 0.25, (1 + 0.25) / 2, 1]
    assert [each["ungraded"] for each in rewards] == [0, 0, 1, 0]
    assert [each["polite/day"] for each in rewards] == [1, 0, -1, 1]
    assert all(type(value) is float for each in rewards for value in each.values())


def test_training_stops_where_nothing_was_graded(recipe: Any) -> None:
    """No reward is made up for a batch without a grade."""
    with judging() as recipe.JUDGE, pytest.raises(RuntimeError, match="not graded"):
        scored(recipe, [ODD], [0])
