"""A page of user code without a cast, for pyright and mypy: what people write has types, and is never only `Any`."""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from rubric import (
    Candidate,
    Contains,
    Criterion,
    DecisionTree,
    Grade,
    Grades,
    Judge,
    Jury,
    Panel,
    Rubric,
    ScoreRange,
    Ungraded,
    agrade,
    ask,
    evaluate,
    grade,
    grade_many,
)
from rubric.values import AnyJudge


def urgent(candidate: Candidate) -> bool:
    return "urgent" in candidate and len(candidate.output) < 1_000


short = Rubric("support reply", ["Answers the question", Criterion("Is polite", weight=2), {"text": "Is warm"}])
alone = Rubric(["Answers the question"])

support_reply = (
    Rubric("support reply")
    .requires("Answers the question", evidence=True)
    .expects("Cites an article", weight=2, id="cites", when=urgent)
    .scores("Is warm", min_score=0.5)
    .rates("Is clear", 1, 5, id="clear")
    .rates("Is short", range(1, 6))
    .rates("Is usable", {0: "no way in", 5: "with effort", 10: "at once"})
    .rates("Is complete", ScoreRange(0, 10))
    .chooses("Which tone?", ["cold", "neutral", "warm"])
    .chooses("Which style?", {"formal": 0, "plain": 1})
    .forbids("Promises a refund", required=True)
    .checks("ticket")
    .checks(Contains("#"), "Names the ticket", weight=0.5)
    .checks(urgent, id="urgent")
    .decides("Escalates", ask("Is it urgent?").yes(1.0).no(0.0))
    .decides(DecisionTree("Is it angry?", 0.0, 1.0), id="angry")
    .includes(short, weight=2)
    .passing_at("80%")
)
criteria = [
    Criterion("Is clear", levels=(1, 5)),
    Criterion("Is warm", answer=ScoreRange(0, 10)),
    Criterion("Which tone?", choices={"cold": 0, "warm": 1}),
    Criterion("Has a ticket", check="ticket"),
    Criterion("Escalates", tree=ask("Is it urgent?").yes(1.0).no(0.0)),
    Criterion("Is plain", answer="unit", anchors=[{"response": "Hello.", "score": 1}]),
]
whole = support_reply + criteria[0]
judge = Judge("openai/gpt-5", api_base="http://localhost:8000/v1", api_key="...", temperature=0)
judges: list[AnyJudge] = [Jury(judge, 3), Panel("openai/gpt-5", judge, aggregate="median"), judge]

assert_type(support_reply, Rubric)
assert_type(whole, Rubric)
assert_type(whole.ids, tuple[str, ...])
assert_type(whole["clear"], Criterion)
assert_type(Rubric.load("rubric.yaml"), Rubric)


def once(text: str) -> str:
    result = grade(text, support_reply, judge, input="Where is my refund?", reference="It is on its way.")
    assert_type(result, Grade)
    assert_type(result.score, float)
    return "\n".join(f"{finding.id} {finding.score} {finding.reason}" for finding in result)


def several(path: Path) -> dict[str, float | None]:
    grades = grade_many(path, support_reply, "offline", columns={"output": "answer"}).collect()
    assert_type(grades, Grades)
    grades.to_jsonl(path.with_suffix(".results.jsonl"))
    figures = {"count": len(grades.to_pandas()), "mean": grades.mean, "pass rate": grades.pass_rate}
    return figures | {result.key: result.score for result in grades}


def perhaps(text: str) -> float:
    result = evaluate({"output": text, "input": "Where?"}, alone, judges[0])
    assert_type(result, Grade | Ungraded)
    low, _ = result.bounds
    return result.score if result.score is not None else low


async def later(text: str) -> bool:
    return (await agrade(text, alone, judge)).passed
