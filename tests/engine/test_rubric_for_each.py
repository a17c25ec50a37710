"""A rubric for each candidate: `grade_many(candidates, [rubric, ...])` and `plan`, over one pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rubric import Candidate, DefinitionError, Judge, Rubric, grade, grade_many, plan
from rubric.engine import Shard

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rubric import Grade, Ungraded

TEXTS = ["Thanks, it comes on Friday.", "It comes on Monday.", "Thanks."]
RUBRICS = [
    Rubric("first").expects("Says Friday", id="day").expects("Says thanks", id="thanks"),
    Rubric("second").expects("Says Monday", id="day"),
    Rubric("third").forbids("Says Friday", id="day"),
]


def by_word(messages: Sequence[dict[str, str]]) -> str:
    """Say yes where the candidate has the last word of the criterion."""
    body, _, asked = messages[-1]["content"].partition("Criterion:\n")
    word = asked.split("\n")[0].split()[-1]
    return f'{{"reason": "seen", "verdict": {str(word.casefold() in body.casefold()).lower()}}}'


def scores(results: Sequence[Grade | Ungraded]) -> list[float | None]:
    return [result.score for result in results]


def test_each_candidate_is_graded_by_its_own_rubric() -> None:
    """The results are those of single grades, each with its rubric, by which it can be told apart."""
    found = grade_many(TEXTS, RUBRICS, by_word).collect()
    assert scores(found) == [grade(t, r, by_word).score for t, r in zip(TEXTS, RUBRICS, strict=True)]
    assert [result.rubric.digest for result in found] == [rubric.digest for rubric in RUBRICS]


def test_rows_of_several_rubrics_name_them() -> None:
    """A row has the digest of its rubric where there is more than one, so that versions are not mixed unseen."""
    assert [row["rubric"] for row in grade_many(TEXTS, RUBRICS, by_word).collect().rows()] == [
        rubric.digest for rubric in RUBRICS
    ]
    assert "rubric" not in grade_many(TEXTS, RUBRICS[0], by_word).collect().rows()[0]


def test_the_figures_of_several_rubrics_say_so() -> None:
    """A summary over versions of a rubric says how many there are: a mean over them is of different questions."""
    assert "3 rubrics" in str(grade_many(TEXTS, RUBRICS, by_word).collect().summary())
    assert "rubrics" not in str(grade_many(TEXTS, RUBRICS[0], by_word).collect().summary())


def test_the_plan_is_that_of_all_pairs() -> None:
    """The plan adds up the calls of each candidate under its rubric."""
    assert plan(TEXTS, RUBRICS, "offline").least == sum(len(rubric.judged) for rubric in RUBRICS)


def test_a_missing_rubric_is_told_before_anything_is_asked() -> None:
    """As many rubrics as candidates, or one; with a generator the candidate without one is named when it comes."""
    with pytest.raises(DefinitionError, match="there are 2 rubrics for 3 candidates; give one for each"):
        grade_many(TEXTS, RUBRICS[:2], by_word)
    with pytest.raises(DefinitionError, match="there are 2 rubrics for 3 candidates"):
        plan(TEXTS, RUBRICS[:2], "offline")
    with pytest.raises(DefinitionError, match=r"candidates\[2\].*2 rubrics were given"):
        grade_many(iter(TEXTS), RUBRICS[:2], by_word).collect()


def test_an_item_without_text_is_ungraded_under_its_own_rubric() -> None:
    """The place counts: the rubrics of later candidates do not move up."""
    found = grade_many([TEXTS[0], None, TEXTS[2]], RUBRICS, by_word).collect()
    assert found[1].score is None
    assert found[1].rubric == RUBRICS[1]
    assert found[2].score == 1


def test_a_shard_takes_the_rubrics_of_the_whole_data_set() -> None:
    """The place in the whole data set decides which rubric a candidate has."""
    whole = scores(grade_many(TEXTS, RUBRICS, by_word).collect())
    parts = [grade_many(Shard(n, 2).of(TEXTS), RUBRICS, by_word).collect() for n in (1, 2)]
    assert {r.index: r.score for part in parts for r in part} == dict(enumerate(whole))


def test_one_store_serves_all_pairs(tmp_path: Path) -> None:
    """A second run asks nothing; a rubric that was edited asks its new criterion alone."""
    calls = []

    def counting(messages: Sequence[dict[str, str]]) -> str:
        calls.append(1)
        return by_word(messages)

    judge = Judge(counting, identity="by-word")
    store = tmp_path / "replies.sqlite"
    grade_many(TEXTS, RUBRICS, judge, store=store).collect()
    grade_many(TEXTS, RUBRICS, judge, store=store).collect()
    assert len(calls) == 4
    edited = [RUBRICS[0].expects("Says bye"), *RUBRICS[1:]]
    grade_many(TEXTS, edited, judge, store=store).collect()
    assert len(calls) == 5


def test_completions_of_one_prompt_share_the_start_of_their_prompts() -> None:
    """With rubrics of their own, all but the tail of the asks of a candidate is the same, byte for byte."""
    candidates = [Candidate(text, input="When does it come?") for text in TEXTS]
    asks = plan(candidates, RUBRICS, "offline").asks
    first, second = (ask.messages[-1].text for ask in asks[:2])
    assert first.partition("Criterion:")[0] == second.partition("Criterion:")[0]
