"""Published figures of pairwise judges and of ratings in prose, from the raw completions."""

from __future__ import annotations

import json
import re
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from rubric import Grades, Judge, Rubric, grade_many, prefer_many
from rubric.trust import Preferences, agreement, trusted
from rubric.trust.coefficients import cohen
from tests.recorded import DATA, expected, lines, needs_data

pytestmark = needs_data

BETTER = Rubric().expects("Follows the instruction", id="better")


def replayed(replies: list[str], **options: Any) -> Judge:
    """Return a judge that says *replies*, one a call, in order."""
    said = iter(replies)
    return Judge(lambda _: next(said), repairs=0, **options)


def llmbar(judge: str, kind: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the items of LLMBar Natural, and what a judge said of each."""
    items = {row["idx"]: row for row in lines("llmbar", "items.jsonl")}
    rows = [row for row in lines("llmbar", f"{kind}.jsonl") if row["judge"] == judge]
    return [items[row["idx"]] for row in rows], rows


def figures(orders: list[tuple[Any, ...]], right: list[str]) -> dict[str, Any]:
    """Return the figures as the study has them, of the winners by both orders and the right one."""
    counts = [sum(pair[n] == side for pair, side in zip(orders, right, strict=True)) for n in (0, 1)]
    both = sum(pair == (side, side) for pair, side in zip(orders, right, strict=True))
    codes = np.array([[side == "a" for side in pair] for pair in orders], dtype=float)  # without a verdict: not `a`
    return {
        "correct_False": counts[0], "correct_True": counts[1], "correct_average": sum(counts) / 2, "correct_both": both,
        "equal": sum(first == second for first, second in orders), "kappa_agreement": cohen(*codes.T).value,
    }  # fmt: skip


def published(name: str) -> dict[str, Any]:
    """Return the figures of a judge in the study; of 100 pairs, so that a percentage is a count."""
    return {
        key: pytest.approx(value if isinstance(value, float) else float(re.split(r"[ %]", value)[0]))
        for key, value in expected("llmbar")[name].items()
    }


def preferences(judge: str, kind: str) -> tuple[Preferences, list[str]]:
    """Return what a judge preferred, read with the patterns of the study, and what is better."""
    items, rows = llmbar(judge, kind)
    steps = json.loads((DATA / "llmbar" / "configs.json").read_text("utf-8"))[f"{judge}|{kind}"]["steps"]
    replies = [reply for row in rows for reply in row["rounds"][0]["completions"]]
    by = replayed(replies, reader=steps[0]["parsing"])
    found = prefer_many(items, BETTER, by, columns={"a": "output_1", "b": "output_2"}, concurrency=1)
    return found, ["ab"[row["label"] - 1] for row in items]


@pytest.mark.parametrize("kind", ["CoT", "Vanilla_NoRules"])
@pytest.mark.parametrize("judge", ["GPT-4", "ChatGPT"])
def test_llmbar_preferences(judge: str, kind: str) -> None:
    """Accuracy by each order, by both, positional agreement and its kappa, with the patterns of the study."""
    found, right = preferences(judge, kind)
    assert figures([one.orders for one in found], right) == published(f"{judge}|{kind}")


@pytest.mark.parametrize(("judge", "kept", "wrong"), [("GPT-4", 0.97, 5), ("ChatGPT", 0.68, 5)])
def test_preferences_of_a_recorded_judge_that_people_share(judge: str, kept: float, wrong: int) -> None:
    """What both orders say can be kept at an error of 15 %; at 10 % a hundred labels are too few."""
    found, right = preferences(judge, "Vanilla_NoRules")
    sure, strict = (trusted(found, dict(enumerate(right)), error=error) for error in (0.15, 0.1))
    assert (sure.kept, sure.wrong, strict.kept) == (kept, wrong, 0)


@pytest.mark.parametrize("judge", ["GPT-4", "ChatGPT"])
def test_llmbar_ratings(judge: str) -> None:
    """The same from a rating of each output; a tie is right in one order and wrong in the other."""
    items, rows = llmbar(judge, "Rating")
    outputs = [{"output": item[f"output_{n}"], "input": item["input"]} for item in items for n in (1, 2)]
    by = replayed([row[f"score_{n}"] for row in rows for n in (1, 2)], reader="rating")
    scores = [
        one.score or 0.0 for one in grade_many(outputs, Rubric().rates("Good", (0, 10), id="good"), by, concurrency=1)
    ]
    pairs = zip(scores[::2], scores[1::2], strict=True)
    orders = [("b", "a") if a == b else ("a", "a") if a > b else ("b", "b") for a, b in pairs]
    assert figures(orders, ["ab"[row["label"] - 1] for row in items]) == published(f"{judge}|Rating")


@pytest.mark.long
def test_prometheus_jury() -> None:
    """Three samples of GPT-4, read from prose: their correlations, ICC, alpha and how often they agree."""
    rows, said = lines("prometheus_gpt4_jury", "vicuna.jsonl.gz"), expected("prometheus_gpt4_jury")
    rubric, texts = Rubric().rates("Good", (1, 5), id="good"), [row["prompt"][-2000:] for row in rows]
    votes = [
        Grades(
            grade_many(texts, rubric, replayed([row["completions"][n] for row in rows], reader="rating"), concurrency=1)
        )
        for n in range(3)
    ]
    pairs = [agreement(votes[a], votes[b])["good"]["pearson"].value for a, b in ((0, 1), (0, 2), (1, 2))]
    assert sorted(round(value or 0.0, 4) for value in pairs) == sorted(said["pairwise_pearson"])
    levels = [[vote["good"].value for vote in three] for three in zip(*votes, strict=True)]
    assert fmean(len({*three}) == 1 for three in levels) == pytest.approx(said["unanimous"], abs=5e-5)


@pytest.mark.long
def test_wildbench_scores() -> None:
    """The mean score of a model, and the adjusted one, from the judge's JSON in prose."""
    rows, said = lines("wildbench", "gpt-4o-2024-05-13__gemma-2b-it.jsonl.gz"), expected("wildbench")["gemma-2b-it"]
    rubric, by = Rubric().rates("Good", (1, 10), id="good"), replayed([row["completion"] for row in rows])
    found = [*grade_many([row["task"] for row in rows], rubric, by, concurrency=1)]
    mean = 1 + 9 * fmean(one.score or 0.0 for one in found)
    assert len(found) == said["total"]
    assert [mean, (mean - 5) * 2] == pytest.approx([said["score"], said["adjusted_score"]])


@pytest.mark.long
def test_pandalm_judges_by_preference() -> None:
    """What the judges of PandaLM say, in one order; what they garbled is not a verdict."""
    rows, names = lines("pandalm", "testset.jsonl"), {"0": "tie", "Tie": "tie", "1": "1", "2": "2"}
    for judge, counts in {"pandalm-7b": (433, 459, 107, 0), "gpt-3.5-turbo": (460, 476, 38, 25)}.items():
        replies = [str(row["judges"][judge]["result"]) for row in rows]
        by = replayed([json.dumps({"choice": names.get(reply, reply)}) for reply in replies])
        pairs = [(str(row["response1"]), str(row["response2"])) for row in rows]
        found = prefer_many(pairs, BETTER, by, both_orders=False, concurrency=1)
        assert tuple(found.counts[name] for name in ("a", "b", "tie", "unjudged")) == counts
