"""The reward function for TRL, called as TRL's trainers call one."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Candidate, DefinitionError
from rubric.integrations.trl import default_candidate, rubric_reward
from tests.harnesses import BAD, GOOD, ODD, POLITE, judging

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = {"answer": ["Friday"] * 3, "trainer_state": object()}


def rewards(completions: list[Any], prompts: list[Any], **options: Any) -> tuple[list[float | None], dict[str, Any]]:
    """Return what the function gives for a batch, and what it logs."""
    logged: dict[str, Any] = {}
    with judging() as judge:
        reward = rubric_reward(POLITE, judge, **options)
        assert inspect.iscoroutinefunction(reward)  # or TRL would not await it
        found = asyncio.run(
            reward(
                prompts=prompts,
                completions=completions,
                completion_ids=[[1]] * 3,
                log_extra=logged.__setitem__,
                log_metric=logged.__setitem__,
                **COLUMNS,
            )
        )
    return found, logged


def test_an_ungraded_completion_has_no_reward() -> None:
    """None, which TRL leaves out; its share is a metric, and each criterion a column."""
    found, logged = rewards([GOOD, BAD, ODD], ["When?"] * 3)
    assert found == [1, 0.25, None]
    assert logged["polite/ungraded"] == pytest.approx(1 / 3)
    assert logged["polite/day"][:2] == [1, 0]


def test_conversations_are_rewarded_alike() -> None:
    """Prompts and completions may be lists of messages."""
    prompts = [[{"role": "user", "content": "When?"}]] * 3
    completions = [[{"role": "assistant", "content": text}] for text in (GOOD, BAD, ODD)]
    assert rewards(completions, prompts)[0] == [1, 0.25, None]


def test_a_conversation_keeps_its_messages_and_its_tool_calls() -> None:
    """The last message is the candidate, what was said before it the conversation."""
    call = {"id": "1", "function": {"name": "orders", "arguments": '{"id": 7}'}}
    prompt = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "When?"}]
    completion = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "paid"},
        {"role": "assistant", "content": GOOD},
    ]
    candidate = default_candidate(prompt, completion, "Friday")
    assert (candidate.output, candidate.input, candidate.reference) == (GOOD, "When?", "Friday")
    assert [message.content for message in candidate.messages] == ["Be kind."]
    assert [(each.name, each.result) for each in candidate.tool_calls] == [("orders", "paid")]


def test_a_column_of_references_must_be_there() -> None:
    """A misspelt column is an error that lists the columns, not a run without references."""
    with pytest.raises(DefinitionError, match="no column 'answers'; its columns are: answer, trainer_state"):
        rewards([GOOD, BAD, ODD], ["When?"] * 3, reference="answers")
    assert rewards([GOOD, BAD, ODD], ["When?"] * 3, reference="answer")[0] == [1, 0.25, None]


@pytest.mark.filterwarnings("ignore")
def test_a_step_of_a_real_trainer(tmp_path: Path) -> None:
    """GRPO leaves the ungraded completion out of the mean reward, and logs its share and a column a criterion."""
    reason = "trl is not installed; `nox -s integrations` has it"
    trl = pytest.importorskip("trl", reason=reason)
    datasets = pytest.importorskip("datasets", reason=reason)
    texts = itertools.cycle([GOOD, BAD, ODD, GOOD])  # a model of chance says nothing that can be judged
    with judging() as judge:
        reward = rubric_reward(POLITE, judge, candidate=lambda prompt, completion, reference: Candidate(next(texts)))
        model, tokenizer = tiny_model()
        trainer = trl.GRPOTrainer(
            model,
            reward_funcs=reward,
            args=trl.GRPOConfig(
                output_dir=str(tmp_path),
                max_steps=1,
                per_device_train_batch_size=4,
                num_generations=4,
                max_completion_length=4,
                logging_steps=1,
                log_completions=True,
                report_to="none",
                save_strategy="no",
                use_cpu=True,
                bf16=False,
                disable_tqdm=True,
            ),
            train_dataset=datasets.Dataset.from_dict({"prompt": ["When does it arrive"] * 4}),
            processing_class=tokenizer,
        )
        trainer.train()
    logged = trainer.state.log_history[0]
    assert logged["rewards/polite/mean"] == logged["reward"] == pytest.approx((1 + 0.25 + 1) / 3)
    assert logged["polite/ungraded"] == 0.25
    assert [*trainer._logs["extra"]["polite/day"]] == [1, 0, None, 1]


def tiny_model() -> tuple[Any, Any]:
    """Return a language model of a few thousand weights, and its tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    words = ["<pad>", "<end>", "<unk>", *["When", "does", "it", "arrive", "on", "Friday"]]
    special = {"pad_token": words[0], "eos_token": words[1], "unk_token": words[2]}
    made = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, words[2]))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=made, **special)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    config = Qwen2Config(vocab_size=len(words), pad_token_id=0, eos_token_id=1, **sizes, **heads)
    return Qwen2ForCausalLM(config), tokenizer
