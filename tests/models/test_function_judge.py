"""A function of the candidate and a criterion is a judge, by one adapter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate, Criterion, DefinitionError, Rubric, ask, evaluate, grade, judge_function
from rubric.errors import ModelError
from rubric.quality import generate

EVERY = (
    Rubric("every kind")
    .expects("a", id="yes")
    .scores("b", id="unit")
    .rates("c", 1, 5, id="levels")
    .chooses("d", {"cold": 0, "warm": 1}, id="choice")
    .decides(ask("e").yes(ask("f").yes(1.0).no(0.2)).no(0.0), id="tree")
)
SAID: dict[str, Any] = {"yes": True, "unit": 0.25, "levels": 4, "choice": "warm", "tree": 0.7}


def by_id(_: Candidate, criterion: Criterion) -> Any:
    return SAID.get(criterion.id, True), f"said of {criterion.id}"


@pytest.mark.parametrize("per_call", [1, "all"])
def test_a_function_decides_every_kind_of_answer(per_call: Any) -> None:
    """One function gives all five answer types, for one or all criteria per call, at no cost."""
    import attrs

    result = grade("x", EVERY, attrs.evolve(judge_function(by_id), per_call=per_call))
    assert {f.id: f.score for f in result} == {"yes": 1, "unit": 0.25, "levels": 0.75, "choice": 1, "tree": 1}
    assert result["unit"].reason == "said of unit"
    assert result.usage.cost == 0


def test_a_function_may_be_async_and_sees_the_whole_candidate() -> None:
    """A coroutine function works and can read the candidate's input."""

    async def answered(candidate: Candidate, _: Criterion) -> bool:
        return candidate.input in candidate.output

    assert grade("42, you asked 6*7", Rubric(["a"]), judge_function(answered), input="6*7").passed
    assert not grade("no", Rubric(["a"]), judge_function(answered), input="6*7").passed


@pytest.mark.parametrize("said", ["perhaps", 2.5, None, float("nan"), object()])
def test_what_is_no_decision_leaves_the_criterion_unjudged(said: Any) -> None:
    """Texts, numbers off the scale, None and NaN give no score."""
    result = evaluate("x", Rubric(["a"]), judge_function(lambda candidate, criterion: said))
    assert result.score is None


def test_a_function_that_raises_leaves_the_criterion_unjudged() -> None:
    """The explanation has the type and the message of the exception."""

    def faulty(candidate: Candidate, criterion: Criterion) -> bool:
        raise ValueError("no idea")

    assert "ValueError: no idea" in evaluate("x", Rubric(["a"]), judge_function(faulty)).explain()


@pytest.mark.parametrize("judge", [lambda prompt: prompt.upper(), lambda prompt: "no " + prompt], ids=["method", "sum"])
def test_a_judge_that_takes_its_messages_for_a_text_is_told_where_the_text_is(judge: Any) -> None:
    """Python's error speaks of a list alone."""
    assert "the last text is messages[-1]['content']" in evaluate("x", Rubric(["a"]), judge).explain()


def test_the_store_tells_two_functions_apart(tmp_path: Path) -> None:
    """Two identities never share a reply, and one identity is asked once."""
    store = tmp_path / "replies.db"
    calls: list[str] = []

    def good(candidate: Candidate, criterion: Criterion) -> bool:
        calls.append(criterion.id)
        return True

    def bad(candidate: Candidate, criterion: Criterion) -> bool:
        return False

    for _ in range(2):
        assert grade("x", Rubric(["a"]), judge_function(good, identity="good"), store=store).passed
        assert not grade("x", Rubric(["a"]), judge_function(bad, identity="bad"), store=store).passed
    assert calls == ["a"]


def test_a_function_of_other_arguments_is_refused() -> None:
    """The error shows the signature to write."""
    with pytest.raises(DefinitionError, match="def decide"):
        judge_function(lambda messages: "yes")  # type: ignore[arg-type,misc]
    with pytest.raises(DefinitionError, match="function"):
        judge_function("x")  # type: ignore[arg-type]


def test_a_function_of_the_criterion_first_is_refused_with_the_line_that_turns_it() -> None:
    """It would judge the words of the criterion."""

    def judge(criterion: Any, text: Any) -> bool:
        return text == "All done." and bool(criterion)

    with pytest.raises(DefinitionError) as refused:
        judge_function(judge)
    line = str(refused.value).partition("write ")[2]
    assert line == "judge_function(lambda candidate, criterion: judge(criterion, candidate.output))"
    turned = eval(line, {"judge_function": judge_function, "judge": judge})  # noqa: S307 - as it is printed
    assert grade("All done.", Rubric("r", ["Is short"]), turned).passed


def test_a_mapping_is_not_a_decision() -> None:
    """The failure says what to return."""
    said: Any = {"verdict": True}
    result = evaluate("All done.", Rubric("r", ["Is short"]), judge_function(lambda _, __: said))
    assert "a pair with the reason: (True, " in result.failures[0].message


def test_a_rubric_that_requires_quotes_is_ungraded_and_never_scores_zero_for_lack_of_them() -> None:
    """The failure says that a function gives no quotes and names the criterion."""
    judge = judge_function(lambda candidate, criterion: True)
    result = evaluate("x", Rubric(["a"]).with_evidence(), judge)
    assert result.score is None
    assert "a function gives no quotes, and 'a' requires evidence" in str(result.failures[0])


def test_a_reply_without_any_object_is_not_called_a_copy_of_the_candidate() -> None:
    """The message for a bare "yes" does not speak of a copy; it says what a function that decides is written as."""
    (failure, *_) = evaluate("x", Rubric(["a"]), lambda messages: "yes").failures
    assert failure.kind == "unreadable"
    assert "copy" not in failure.message
    assert "judge_function(" in failure.message


def test_a_function_that_decides_is_not_asked_to_write() -> None:
    """`generate` wants a text of its judge."""
    with pytest.raises(ModelError, match="decides criteria and cannot write; give a model"):
        generate("Says when", judge_function(lambda candidate, criterion: True))


def test_a_function_of_a_text_is_not_given_messages() -> None:
    """By its annotation; the line that is printed gives it the whole prompt."""

    def mentions(prompt: str) -> dict[str, Any]:
        return {"verdict": "refund" in prompt, "reasoning": "looked"}

    rubric = Rubric("r").expects("Is polite")
    with pytest.raises(DefinitionError, match="is given messages, and mentions\\(\\) takes a text") as refused:
        grade("Your refund", rubric, mentions)  # type: ignore[arg-type]  # which is what it is about
    line = str(refused.value).rpartition("; write ")[2]
    assert grade("Your refund", rubric, eval(line, {"mentions": mentions})).passed  # noqa: S307 - as it is printed
