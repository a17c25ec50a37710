"""Criteria of turns: of each, of the worst, of the last, of one by its number, and targets that answer turn by turn."""

from __future__ import annotations

from typing import Any

import pytest

from rubric import (
    Candidate,
    Case,
    Criterion,
    DefinitionError,
    Judge,
    Rubric,
    Suite,
    UngradedError,
    dumps,
    grade,
    loads,
    loads_suite,
    plan,
)
from rubric.testing.scripted_model import ScriptedModel
from tests.servers import Server

CHAT = Candidate(
    "Third answer",
    input="Third?",
    messages=[
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "First answer"},
        {"role": "user", "content": "Second?"},
        {"role": "assistant", "content": "Second answer"},
        {"role": "user", "content": "Third?"},
    ],
)


class Recording:
    """A judge that says whether the graded answer has *word* in it, and keeps what it was shown."""

    def __init__(self, word: str = "Second") -> None:
        self.word, self.seen = word, list[str]()
        self.model = ScriptedModel(self._verdict)

    def _verdict(self, ask: Any) -> Any:
        self.seen.append(ask.chat()[-1]["content"])
        return {"score": float(self.word in ask.candidate), "reason": f"saw {ask.candidate}"}


def judged(on: Any, polarity: Any = "satisfy", candidate: Candidate = CHAT) -> tuple[float, str]:
    rubric = Rubric(criteria=[Criterion("Is it so?", id="a", on=on, answer="unit", polarity=polarity)])
    finding = grade(candidate, rubric, Judge(Recording().model))["a"]
    assert finding.score is not None
    return finding.score, finding.reason


@pytest.mark.parametrize(
    ("on", "score"),
    [
        ("each turn", 1 / 3),
        ("worst turn", 0.0),
        ("last turn", 0.0),
        (1, 0.0),
        (2, 1.0),
        (3, 0.0),
        ("conversation", 0.0),
    ],
)
def test_a_criterion_is_asked_of_the_turns_that_it_names(on: Any, score: float) -> None:
    assert judged(on)[0] == pytest.approx(score)


def test_the_reason_names_each_turn() -> None:
    reason = judged("each turn")[1]
    assert "turn 1 (0.00): saw First answer; turn 2 (1.00): saw Second answer; turn 3" in reason


def test_the_worst_turn_of_an_unwanted_criterion_is_where_it_was_found() -> None:
    assert judged("worst turn", "guard")[0] == 1.0
    assert judged("each turn", "guard")[0] == pytest.approx(1 / 3)


def test_a_judge_of_a_turn_sees_what_came_before_and_nothing_later() -> None:
    recording = Recording()
    grade(CHAT, Rubric(criteria=[Criterion("Is it so?", on=2, answer="unit")]), Judge(recording.model))
    (seen,) = recording.seen
    assert "First answer" in seen
    assert "Second?" in seen
    assert "Third" not in seen


def test_a_turn_that_is_not_there_is_not_judged() -> None:
    rubric = Rubric(criteria=[Criterion("Is it so?", id="a", on=4)])
    with pytest.raises(UngradedError, match="has 3 turns, and no turn 4"):
        grade(CHAT, rubric, "offline")


def test_checks_trees_and_nested_rubrics_are_decided_for_turns_too() -> None:
    inner = Rubric(criteria=[Criterion(check="Second", id="c"), Criterion("Is it so?", answer="unit", id="u")])
    rubric = Rubric(
        criteria=[Criterion(check="answer", id="every", on="worst turn"), Criterion("x", id="n", answer=inner, on=2)]
    )
    result = grade(CHAT, rubric, Judge(Recording().model))
    assert (result["every"].score, result["n"].score) == (1.0, 1.0)


def test_the_plan_counts_each_turn() -> None:
    rubric = Rubric(criteria=[Criterion("A?", on="each turn"), Criterion("B?"), Criterion("C?", on=9)])
    assert plan(CHAT, rubric, "offline").most == 4


def test_the_turn_is_kept_in_files() -> None:
    rubric = Rubric("r", criteria=[Criterion("A?", on="worst turn"), Criterion("B?", on=2)])
    assert loads(dumps(rubric)) == rubric
    with pytest.raises(DefinitionError, match="unknown value 'every turn'"):
        Criterion("A?", on="every turn")  # type: ignore[arg-type]


# -- live targets ------------------------------------------------------------------------------------------


def test_a_target_answers_turn_by_turn() -> None:
    seen: list[list[str]] = []

    def target(case: Case) -> str:
        seen.append([*(m.content for m in case.messages), case.input])
        return f"answer {len(seen)}"

    rubric = Rubric(criteria=[Criterion(check="answer 1", id="one", on=1), Criterion(check="answer 2", id="two")])
    case = Case("a", rubric, messages=[{"role": "system", "content": "S"}], turns=["Q1", "Q2"])
    (row,) = Suite("s", [case]).run("offline", target=target)
    assert row.status == "passed"
    assert seen == [["S", "Q1"], ["S", "Q1", "answer 1", "Q2"]]
    assert (row.input, row.output) == ("Q2", "answer 2")


def test_turns_have_no_input_and_no_output_beside_them() -> None:
    with pytest.raises(DefinitionError, match="output has no place beside them"):
        Case("a", "x", turns=["Q"], output="A")


AGENTV = """
prompts: ["{{ input }}"]
tests:
  - id: sums
    mode: conversation
    aggregation: AGGREGATION
    vars: {input: [{role: system, content: Be exact.}]}
    assert: [{type: contains, value: sixty}]
    turns:
      - {input: What is 15% of 200?, assert: [{type: contains, value: "30"}]}
      - {input: Double it., assert: [{type: contains, value: "60"}, {type: contains, value: wrong}]}
      - input: Thanks.
"""


@pytest.mark.parametrize(("aggregation", "score"), [("mean", 0.5), ("min", 0.0)])
def test_agentv_conversations_are_graded_turn_by_turn(aggregation: str, score: float) -> None:
    """Turn 1 is right, turn 2 half right, the whole wrong: the mean of 1, 0.5 and 0."""
    suite = loads_suite(AGENTV.replace("AGGREGATION", aggregation), "agentv-2")
    assert suite["sums"].turns == ("What is 15% of 200?", "Double it.", "Thanks.")
    answers = iter(["30", "60", "You are welcome"])
    (row,) = suite.run("offline", target=lambda _: next(answers))
    assert row.score == pytest.approx(score)
    assert [entry.id for entry in row.entries] == ["turn-1", "turn-2", "conversation"]


def test_a_model_is_sent_the_turns_before(monkeypatch: pytest.MonkeyPatch) -> None:
    suite = loads_suite(AGENTV.replace("AGGREGATION", "mean"), "agentv-2")
    with Server(respond=lambda _: "30 and 60") as server:
        endpoint = server.at("ok")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", endpoint.openai)
        suite.run("offline", target="openai/gpt-5-mini")
    assert [[m["role"] for m in request.body["messages"]] for request in endpoint.requests] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        ["system", "user", "assistant", "user", "assistant", "user"],
    ]
