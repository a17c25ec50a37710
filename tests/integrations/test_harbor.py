"""The real Reward Kit and this library on the same folders, before the same local judge."""

from __future__ import annotations

import contextlib
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest

from rubric import load_suite
from tests.harnesses import harness
from tests.rewardkit_tasks import TASKS, BothWays, Task, toml
from tests.servers import openai_serving

rewardkit = harness("rewardkit", "harbor-rewardkit (Python 3.12 or later)")
pytestmark = pytest.mark.filterwarnings("ignore")

if TYPE_CHECKING:
    from pathlib import Path


def both(task: Task, folder: Path, judge: Any) -> tuple[dict[str, float], dict[str, float] | str]:
    """Return the rewards that Reward Kit writes, and ours, or why there are none."""
    tests, app = task.write(folder)
    with contextlib.chdir(app), openai_serving(judge()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = rewardkit.run(tests, workspace=app, output=folder / "theirs.json")
    with openai_serving(judge()):
        suite = load_suite(tests, base=folder, environ={"WORKSPACE": str(app)}, allow_scripts=True)
        report = suite.run(allow_scripts=True)
    assert json.loads((folder / "theirs.json").read_text()) == theirs
    try:
        return theirs, json.loads(report.render("harbor"))
    except Exception as error:  # noqa: BLE001 - it is what is looked at
        return theirs, str(error)


@pytest.mark.parametrize("name", TASKS)
def test_the_rewards_are_the_same(name: str, tmp_path: Path) -> None:
    """Twenty-nine folders: every kind of criterion, aggregation and layout, and checks in Python."""
    theirs, ours = both(TASKS[name], tmp_path, lambda: BothWays(TASKS[name].answers))
    assert ours == theirs == TASKS[name].rewards


@pytest.mark.parametrize(
    ("criterion", "said", "theirs"),
    [("a", "maybe", 0.0), ('a | type = "likert"', 9, 1.0), ('a | type = "numeric"', -3, 0.0)],
)
def test_an_answer_off_the_scale_is_no_verdict_here(criterion: str, said: Any, theirs: float, tmp_path: Path) -> None:
    """Reward Kit cuts it to the scale, and takes any word but yes for a no; here nothing is written."""
    task = Task({"judge.toml": toml(criterion)}, {}, {})
    found, ours = both(task, tmp_path, lambda: BothWays({"a": said}))
    assert found == {"reward": theirs}
    assert "nothing is written" in str(ours)
