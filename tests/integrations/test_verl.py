"""The recipe for verl: the files that its page shows, called as verl's reward manager and its trainer call them."""

from __future__ import annotations

import asyncio
import importlib.util
import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from tests.harnesses import BAD, DOWN, GOOD, ODD, POLITE, REFUSED, harness, judging, judging_at
from tests.places import ROOT
from tests.servers import prompt_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore")

PAGE = ROOT / "docs" / "integrations" / "verl.md"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return the folder with the files that the page shows."""
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        (tmp_path / code.split(maxsplit=2)[1]).write_text(code)
    return tmp_path


def loaded(path: Path) -> Any:
    """Return the module in the file at *path*, for `POLITE`."""
    spec = importlib.util.spec_from_file_location("custom_module", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.POLITE = POLITE
    return module


def test_an_ungraded_completion_is_marked(files: Path) -> None:
    """It has a number that no grade has, as has a criterion that was not judged; a store answers a second run."""
    recipe, texts = loaded(files / "reward.py"), [GOOD, BAD, ODD, REFUSED, DOWN]
    recipe.aevaluate, asked = partial(recipe.aevaluate, store=files / "replies.db"), []
    with judging_at() as (recipe.JUDGE, endpoint):
        for _ in range(2):
            rewards = [asyncio.run(recipe.compute_score("replies", text, None, {})) for text in texts]
            assert [each["score"] for each in rewards] == [1, 0.25, -1, -1, -1]
            assert [each["ungraded"] for each in rewards] == [0, 0, 1, 1, 1]
            assert [each["polite/day"] for each in rewards] == [1, 0, -1, -1, -1]
            assert all(type(value) is float for each in rewards for value in each.values())
            prompts = [prompt_of(each.body) for each in endpoint.requests]
            asked.append(sum(GOOD in each or BAD in each for each in prompts))
    assert asked == [4, 4]


@pytest.fixture
def estimator(files: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the estimator of the page, as verl finds it by its name."""
    harness("verl")
    from verl.trainer.ppo import core_algos

    monkeypatch.setattr(core_algos, "ADV_ESTIMATOR_REGISTRY", dict(core_algos.ADV_ESTIMATOR_REGISTRY))
    loaded(files / "graded_grpo.py")
    return core_algos.get_adv_estimator_fn("graded_grpo")


def batch_of(texts: list[str]) -> Any:
    """Return a batch of verl's, of one prompt; each response is one token: the place of the text."""
    import numpy as np
    import torch
    from verl import DataProto

    count = len(texts)
    tensors = {
        "prompts": torch.zeros(count, 1, dtype=torch.long),
        "responses": torch.tensor([[place, 0] for place in range(count)]),
        "attention_mask": torch.tensor([[1, 1, 0]] * count),
        "response_mask": torch.tensor([[1, 0]] * count),
    }
    plain = {
        "data_source": np.array(["replies"] * count, dtype=object),
        "reward_model": np.array([{"ground_truth": "Friday"}] * count, dtype=object),
        "extra_info": np.array([{"question": "When?"} for _ in texts], dtype=object),
        "uid": np.array(["a"] * count, dtype=object),
    }
    return DataProto.from_dict(tensors=tensors, non_tensors=plain)


@pytest.mark.usefixtures("estimator")
def test_advantages_are_those_of_the_graded_completions(files: Path) -> None:
    """By verl's reward manager and its trainer: an ungraded completion has none, and does not move the others'."""
    import torch
    from omegaconf import OmegaConf
    from verl.trainer.ppo.ray_trainer import compute_advantage
    from verl.trainer.ppo.reward import load_reward_manager

    texts = [GOOD, BAD, ODD, DOWN]

    class Tokenizer:
        def decode(self, ids: Any, **_: Any) -> str:
            return texts[int(ids[0])]

    with judging() as judge:
        code = (files / "reward.py").read_text().partition("\nreward = ")[0]
        setting = "from tests.harnesses import POLITE\nfrom rubric import Judge\n"
        setting += f"JUDGE = Judge({judge.model!r}, repairs=0, retries=0, via='http', params={dict(judge.params)!r})\n"
        (files / "set.py").write_text(f"{code}\n{setting}")
        custom = {"path": str(files / "set.py"), "name": "compute_score"}
        manager = {"source": "register", "name": "naive"}
        config = OmegaConf.create({"reward": {"custom_reward_function": custom, "reward_manager": manager}})

        async def rewards(batch: Any) -> list[Any]:
            made = load_reward_manager(config, Tokenizer())
            return [await made.run_single(batch[place : place + 1]) for place in range(len(texts))]

        batch = batch_of(texts)
        found = asyncio.run(rewards(batch))
    scores = [each["reward_score"] for each in found]
    assert scores == [1, 0.25, -1, -1]
    batch.batch["token_level_rewards"] = torch.tensor([[score, 0.0] for score in scores])
    settings = OmegaConf.create({"norm_adv_by_std_in_grpo": False})
    done = compute_advantage(batch, adv_estimator="graded_grpo", config=settings)
    assert done.batch["advantages"].tolist() == [[0.375, 0], [-0.375, 0], [0, 0], [0, 0]]


def test_a_group_with_one_grade_teaches_nothing_and_a_step_without_one_stops(estimator: Any) -> None:
    """A score alone is compared with nothing; and no reward is made up for a batch without a grade."""
    import numpy as np
    import torch

    index, mask = np.array(["a", "a", "b", "b"]), torch.ones(4, 1)
    advantages, _ = estimator(
        token_level_rewards=torch.tensor([[1.0], [-1], [1], [0]]), response_mask=mask, index=index
    )
    assert advantages[:2].tolist() == [[0], [0]]
    assert advantages[2] == pytest.approx(0.7071, abs=1e-3)
    with pytest.raises(RuntimeError, match="no completion of this step was graded"):
        estimator(token_level_rewards=-mask, response_mask=mask, index=index)
