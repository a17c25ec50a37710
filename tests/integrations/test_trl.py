"""The reward function for TRL, called as TRL's trainers call one."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import re
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Budget, Candidate, DefinitionError, Rubric
from rubric.integrations.mapping import Grader
from rubric.integrations.trl import default_candidate, rubric_reward
from rubric.rewards import Audit
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


def test_a_completion_that_is_not_there_has_no_reward() -> None:
    """None is not text, as in all adapters; an empty text is one."""
    found, logged = rewards([GOOD, None, ""], ["q"] * 3)
    assert found == [1.0, None, 0.0]
    assert logged["polite/ungraded"] == pytest.approx(1 / 3)


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


def reward_of(
    texts: list[str], prompts: list[Any], *, judge: Any, columns: Any = None, **options: Any
) -> tuple[Any, Any]:
    """Return the rewards of a batch by *judge*, and what is logged."""
    logged: dict[str, Any] = {}
    reward = rubric_reward(judge=judge, name="r", **options)
    log = {"log_extra": logged.__setitem__, "log_metric": logged.__setitem__}
    return asyncio.run(reward(prompts=prompts, completions=texts, **log, **(columns or {}))), logged


def by_word(messages: Any) -> str:
    """Say yes where the candidate has the last word of the criterion."""
    body, _, asked = messages[-1]["content"].partition("Criterion:\n")
    word = asked.splitlines()[0].split()[-1]
    return f'{{"reason": "seen", "verdict": {str(word.casefold() in body.casefold()).lower()}}}'


PER_PROMPT = {
    "rubric": [[{"criterion": "Says Friday", "points": 3}, {"criterion": "Says thanks", "points": 1}]] * 2
    + ["1. Says Paris [Hard Rule]"]
}


def test_each_prompt_has_its_own_rubric() -> None:
    """The column is read as data sets publish it, and each row logs the digest of the rubric that gave its reward."""
    texts, prompts = ["It is Friday", "thanks", "Paris!"], ["When?", "When?", "Where?"]
    found, logged = reward_of(texts, prompts, judge=by_word, columns=PER_PROMPT, rubrics="rubric")
    assert found == [0.75, 0.25, 1]
    assert logged["r/rubric"][0] == logged["r/rubric"][1] != logged["r/rubric"][2]


def test_a_broken_cell_is_told_with_its_row_and_prompt() -> None:
    """The step fails where the cell stands, and not somewhere in a batch of hundreds."""
    columns = {"own": ["Is kind and short", ""]}
    with pytest.raises(DefinitionError, match=r"row 1, 'Why\?': rubrics: the cell is empty"):
        reward_of(["So.", "Because."], ["How?", "Why?"], judge=by_word, columns=columns, rubrics="own")


@pytest.mark.parametrize(("prompts", "texts"), [(["p"], ["a", "b"]), (["p", "q"], ["a"])])
def test_prompts_and_completions_are_of_one_length(prompts: list[str], texts: list[str]) -> None:
    """The error has both numbers."""
    with pytest.raises(DefinitionError, match=f"'prompts' has {len(prompts)} values for {len(texts)} completions"):
        reward_of(texts, prompts, judge=by_word, rubric="Says a word")


@pytest.mark.parametrize("seconds", ["60", -1, 0])
def test_a_deadline_is_a_number_of_seconds(seconds: object) -> None:
    """What is not a time to grade in is refused where the reward is made."""
    with pytest.raises(DefinitionError, match="deadline: expected a finite number above 0"):
        rubric_reward("Is kind and short", "offline", deadline=seconds)  # type: ignore[arg-type]


def test_a_failed_gate_earns_less_than_a_right_answer() -> None:
    """The reward is at most `gated`, 0 by default; 1 takes the score as it is."""
    rubric = Rubric().expects("Says Friday", weight=2).requires("Says tested")
    for gated, first in ({}, 0), ({"gated": 0.2}, 0.2), ({"gated": 1}, 2 / 3):
        found, _ = reward_of(["Friday", "tested"], ["p", "p"], judge=by_word, rubric=rubric.passing_at(0.3), **gated)
        assert found == pytest.approx([first, 1 / 3])


def test_an_audit_without_a_judge_is_refused_where_it_is_given() -> None:
    """Not at the first step; so is what is not an audit."""
    for audit in (Audit(), "x"):
        with pytest.raises(DefinitionError, match="audit: expected an Audit with a second judge"):
            rubric_reward("Is kind and short", "offline", audit=audit)  # type: ignore[arg-type]


def test_a_column_has_a_value_for_each_completion() -> None:
    """One that is shorter is told with both numbers."""
    with pytest.raises(DefinitionError, match="'own' has 1 values for 2 completions"):
        reward_of(["a", "b"], ["p", "q"], judge=by_word, columns={"own": ["Is kind and short"]}, rubrics="own")


def test_an_audit_does_not_hold_the_group_up() -> None:
    """The second judge has what is left of the deadline; a step that it cannot finish is not audited."""
    audit = Audit(never)
    reward = rubric_reward("Is kind and short", by_word, deadline=0.3, audit=audit)
    assert asyncio.run(reward(prompts=["p"], completions=["Friday"])) != [None]
    assert audit.step == 0


async def never(_: Any) -> str:
    """Answer no question."""
    await asyncio.sleep(60)
    return ""


def test_a_spent_budget_is_told_once() -> None:
    """A model that earns nothing and one that is not graded look alike in TRL's logs."""
    with judging() as judge, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        reward = rubric_reward(POLITE, judge, budget=Budget(calls=1))
        for _ in range(2):
            assert None in asyncio.run(reward(prompts=["When?"] * 2, completions=[GOOD, BAD]))
    (said,) = [str(each.message) for each in told]
    assert re.match(
        r"polite: not sent: over the budget of 1 calls: 1 are spent; .* than <Budget: .*; 0 calls left>$", said
    )


def test_a_cost_of_a_judge_without_a_price_is_refused_where_the_reward_is_made() -> None:
    """Not at the first step, when the trainer has loaded; so is it by every adapter."""
    with pytest.raises(DefinitionError, match=r"budget: the price of '.*' is not known"):
        rubric_reward(POLITE, lambda _: "", budget=Budget(cost=1))
    with pytest.raises(DefinitionError, match=r"budget: the price of '.*' is not known"):
        Grader(POLITE, lambda _: "", {"budget": Budget(cost=1)})


def test_two_versions_of_a_rubric_share_no_baseline() -> None:
    """Two rubrics for one prompt in a batch are refused; so is a column together with one rubric."""
    with pytest.raises(DefinitionError, match="has two rubrics in one batch"):
        reward_of(["a", "b"], ["When?"] * 2, judge=by_word, columns={"rubric": ["Says a", "Says b"]}, rubrics="rubric")
    with pytest.raises(DefinitionError, match="give one"):
        rubric_reward(POLITE, rubrics="rubric")
    with pytest.raises(DefinitionError, match="no column 'rubrics'"):
        reward_of(["a"], ["p"], judge=by_word, columns=PER_PROMPT, rubrics="rubrics")


def test_what_is_late_has_no_reward_and_is_counted() -> None:
    """A group does not wait for one judgement beyond the deadline."""

    async def slow(messages: Any) -> str:
        if "slow" in messages[-1]["content"]:
            await asyncio.sleep(60)
        return by_word(messages)

    found, logged = reward_of(["Friday", "slow Friday"], ["a", "b"], judge=slow, rubric="Says Friday", deadline=3)
    assert found[1] is None
    assert (logged["r/late"], logged["r/ungraded"]) == (0.5, 1.0 if found[0] is None else 0.5)


def test_dropout_leaves_the_same_criteria_out_of_a_group() -> None:
    """A step has one smaller rubric for all completions, drawn by the seed and the step."""
    rubric = Rubric().expects("Says a").expects("Says b").expects("Says c").expects("Says d")
    state = SimpleNamespace(global_step=3)
    given = {"judge": by_word, "rubric": rubric, "dropout": 0.5, "columns": {"trainer_state": state}}
    _, logged = reward_of(["a", "b"], ["p", "q"], seed=1, **given)
    assert len({*logged["r/rubric"]}) == 1
    assert logged["r/rubric"] == reward_of(["a", "b"], ["p", "q"], seed=1, **given)[1]["r/rubric"]
    assert len({reward_of(["a"], ["p"], seed=seed, **given)[1]["r/rubric"][0] for seed in range(6)}) > 1


def test_an_audit_warns_of_a_hacked_reward() -> None:
    """The second judge grades one completion of each prompt, and its evidence is a metric."""
    audit = Audit(lambda _: '{"reason": "no", "verdict": false}', allowed=0.1, per_step=4)
    reward = rubric_reward(Rubric("r").expects("Says a"), by_word, audit=audit)
    texts, prompts = ["a"] * 8, [str(n % 4) for n in range(8)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(9):
            asyncio.run(reward(prompts=prompts, completions=texts))
    assert audit.alarms
    assert "Alarm at step" in str(told[0].message)


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


@pytest.mark.filterwarnings("ignore")
def test_a_real_trainer_takes_a_rubric_for_each_prompt_and_an_audit(tmp_path: Path) -> None:
    """GRPO runs two steps with the rubrics of a column, and the audit has counted both."""
    reason = "trl is not installed; `nox -s integrations` has it"
    trl = pytest.importorskip("trl", reason=reason)
    datasets = pytest.importorskip("datasets", reason=reason)
    audit = Audit(by_word, allowed=0.1, path=tmp_path / "audits.sqlite")
    rubrics = ["1. Says Friday\n2. Says arrive", "1. Says When"]
    reward = rubric_reward(judge=by_word, rubrics="rubric", name="own", audit=audit)
    model, tokenizer = tiny_model()
    sizes = {"per_device_train_batch_size": 8, "num_generations": 4, "max_completion_length": 6, "max_steps": 2}
    logs = {
        "logging_steps": 1,
        "log_completions": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
    }
    trainer = trl.GRPOTrainer(
        model,
        reward_funcs=reward,
        args=trl.GRPOConfig(output_dir=str(tmp_path), use_cpu=True, bf16=False, **sizes, **logs),
        train_dataset=datasets.Dataset.from_dict({"prompt": ["When does it", "arrive on"] * 4, "rubric": rubrics * 4}),
        processing_class=tokenizer,
    )
    trainer.train()
    logged = trainer.state.log_history[0]
    assert logged["own/ungraded"] == logged["own/late"] == 0
    assert logged["rewards/own/mean"] == pytest.approx(logged["reward"])
    assert len({*trainer._logs["extra"]["own/rubric"]}) == 2
    assert audit.step == 2


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


def test_the_name_of_a_column_is_not_graded_as_a_text() -> None:
    """One word may be a column or a text; the error has both lines."""
    with pytest.raises(DefinitionError, match=r'write rubrics="rubric"; for a text of one word, Rubric\.of'):
        rubric_reward("rubric")
