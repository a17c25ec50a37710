"""What an edit of a rubric moves: `shifts`, with planted shifts."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rubric import Budget, Candidate, DefinitionError, Judge, Rubric, Store
from rubric.quality import plan_shifts, shifts
from rubric.quality.probing import RISK, adjust, sign_tails

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

BEFORE = Rubric("help", threshold=0.5).expects("Answers the question", id="answers")
AFTER = BEFORE.revising("answers", text="Answers the question in plain words")
OF_GROUPS = [
    Candidate(f"{'It' if n % 2 else 'We'} answered {'plainly' if group == 'en' else 'elsewhere'} {n}.", group=group)
    for group in ("en", "de", "fr")
    for n in range(24)
]


def judging(noise: float = 0.0, seed: int = 3) -> Callable[[Sequence[dict[str, str]]], Any]:
    """Return a judge that takes "It" for an answer; asked for plain words, it takes only those for one."""
    chance = random.Random(seed)

    def judge(messages: Sequence[dict[str, str]]) -> Any:
        text = messages[-1]["content"]
        met = "It answered" in text
        if "plain words" in text:
            met = met and "plainly" in text
        return {"reason": "read", "verdict": met != (chance.random() < noise)}

    return judge


def test_rows_of_other_columns_are_taken_and_those_without_an_answer_are_left_out() -> None:
    """`columns` is that of `grade_many`; what is left out, and what failed most often, is among the remarks."""
    rows = [{"answer": "It answered plainly.", "topic": "a"}, {"answer": None, "topic": "a"}]
    named = {"output": "answer", "group": "topic"}
    assert plan_shifts(BEFORE, AFTER, judging(), rows, columns=named).most == 2
    found = shifts(BEFORE, AFTER, judging(), rows, columns=named)
    assert (found[""].n, found[""].lost) == (1, 0)
    assert "1 of 2 rows hold no candidate and are left out: candidates[1].output" in str(found)


def test_the_group_that_an_edit_shifts_is_named() -> None:
    """An edit that moves nothing in one group is shown to shift the other two."""
    found = shifts(BEFORE, AFTER, judging(), OF_GROUPS)
    assert [(row.id, row.up, row.down, row.n) for row in found] == [
        ("", 0, 24, 72), ("en", 0, 0, 24), ("de", 0, 12, 24), ("fr", 0, 12, 24),
    ]  # fmt: skip
    assert [row.id for row in found.significant] == ["", "de", "fr"]
    assert found["de"].shift == pytest.approx(-0.5)
    assert found["de"].interval is not None
    assert found["de"].interval[1] < 0
    assert sum(a.passed is not b.passed for a, b in found.pairs) == 24
    assert "shown to shift: all, 'de', 'fr'" in found.sentence
    assert "de " in str(found)


def test_shifts_that_cancel_on_the_whole_are_seen_by_group() -> None:
    """An edit with the same pass rate before and after is shown to lift one group and to lower another."""

    def judge(messages: Sequence[dict[str, str]]) -> Any:
        text = messages[-1]["content"]
        return {"reason": "read", "verdict": ("elsewhere" if "plain words" in text else "plainly") in text}

    found = shifts(BEFORE, AFTER, judge, OF_GROUPS[:48])
    assert (found[""].up, found[""].down, found[""].shift, found[""].p) == (24, 24, 0.0, 1.0)
    assert {row.id for row in found.significant} == {"en", "de"}


def test_the_p_values_are_those_of_the_exact_sign_test() -> None:
    """Twelve verdicts that move one way have 2 / 2**12 alone; a row without moves costs the others nothing."""
    found = shifts(BEFORE, AFTER, judging(), [each for each in OF_GROUPS if each.group != "fr"])
    assert found[""].p == pytest.approx(found["de"].p) == pytest.approx(4 / 2**12)
    assert found["en"].p == 1
    alone = shifts(BEFORE, AFTER, judging(), [Candidate(each.output) for each in OF_GROUPS if each.group == "de"])
    assert [row.p for row in alone] == [pytest.approx(2 / 2**12)]


def test_an_edit_of_the_score_takes_no_second_call(tmp_path: Path) -> None:
    """Thresholds and weights score the same findings again; a plan says the same."""
    two = BEFORE.expects("Is short", id="short")
    stricter = two.revising("short", weight=9)
    assert plan_shifts(two, stricter, judging(), OF_GROUPS).most == 144
    assert shifts(two, stricter, judging(), OF_GROUPS).usage.calls == 144
    edited = two.revising("answers", text="Answers the question in plain words")
    assert plan_shifts(two, edited, judging(), OF_GROUPS).most == 288
    with Store(tmp_path / "replies.sqlite") as store:
        assert (
            shifts(two, edited, Judge(judging(), identity="v1"), OF_GROUPS, store=store).usage.calls == 48 * 3
        )  # two groups have the same texts


def test_what_a_budget_refuses_is_left_out_and_counted() -> None:
    """Candidates without a grade by one of the rubrics move nothing."""
    found = shifts(BEFORE, AFTER, judging(), OF_GROUPS, budget=Budget(calls=40), concurrency=1)
    assert (found[""].n, found[""].lost) == (20, 52)
    assert "52 candidates without a grade" in str(found)
    nothing = shifts(BEFORE, AFTER, judging(), OF_GROUPS, budget=Budget(calls=1), concurrency=1)
    assert nothing.sentence == "No candidate was graded by both rubrics."
    assert nothing[""].shift is None


def test_rubrics_that_do_not_differ_and_no_candidates_are_refused() -> None:
    """Nothing can move where a judge is asked the same and scored alike."""
    with pytest.raises(DefinitionError, match="b: asks and scores as a does"):
        shifts(BEFORE, BEFORE, judging(), OF_GROUPS)
    with pytest.raises(DefinitionError, match="candidates: there are none"):
        shifts(BEFORE, AFTER, judging(), [])


def test_simulated_edits_alarm_at_most_as_often_as_promised_and_find_a_shift_of_one_group() -> None:
    """Of noise alone at most 5 % of edits show a row; a shift of 25 points in one of eight groups of 60 is found."""
    chance, alarms, hits = np.random.default_rng(30), 0, 0
    for planted in (False, True):
        for _ in range(400):
            truth = chance.random((8, 60)) < 0.5
            after = truth & ~((np.arange(8)[:, None] == 3) & planted & (chance.random((8, 60)) < 0.5))
            a, b = (each ^ (chance.random((8, 60)) < 0.04) for each in (truth, after))
            up, down = (b & ~a).sum(1), (a & ~b).sum(1)
            rows = [(int(up.sum()), int(down.sum())), *zip(up.tolist(), down.tolist(), strict=True)]
            ps = adjust([(count, sign_tails(sum(row))) for row in rows for count in row])
            alarms += not planted and min(ps) <= RISK
            hits += planted and min(ps[8:10]) <= RISK
    assert alarms <= 0.05 * 400
    assert hits >= 0.9 * 400
