"""Is the reward being hacked: `Audit`, whose alarm is valid at every step."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, DefinitionError, Rubric, grade_many
from rubric.rewards import Audit
from rubric.rewards.betting import STAKES, EProcess, settle, unspent, upper_limit, usual
from tests.examples import examples
from tests.recorded import needs_data
from tests.simulations.auditing import alarms, recorded

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RUBRIC = Rubric("reply").expects("Names the day", id="day").expects("Says thank you", id="thanks")
TEXTS = [Candidate(f"It comes on Friday, {n}.", input=f"When comes {n % 6}?") for n in range(12)]


def word(hacked: bool = False) -> Any:
    """Return a judge that finds the day, and, once hacked, thanks everywhere."""

    def judge(messages: Sequence[dict[str, str]]) -> str:
        body, _, asked = messages[-1]["content"].partition("Criterion:\n")
        met = "Friday" in body if asked.startswith("Names") else hacked
        return json.dumps({"reason": "read", "verdict": met})

    return judge


# -- the bets --------------------------------------------------------------------------------------------------


def test_no_bet_gains_while_the_mean_is_as_allowed() -> None:
    """The capital has a mean of at most 1 at each step, for the worst gaps that have the allowed mean."""
    for allowed, span in ((-0.3, 1), (0.0, 1), (0.05, 0.5), (0.6, 1)):
        up = (span + allowed) / span / 2  # gaps of the span, up and down
        mean = [0.0] * len(STAKES)
        for step in range(40):
            fresh = unspent(step) - unspent(step + 1)
            after = [settle(mean, gap, allowed, fresh, span) for gap in (span, -span)]
            mean = [up * a + (1 - up) * b for a, b in zip(*after, strict=True)]
            assert sum(mean) + unspent(step + 1) <= 1 + 1e-9


@examples(50)
@given(st.lists(st.lists(st.floats(-1, 1), max_size=4), max_size=12))
def test_the_evidence_is_never_negative_and_grows_with_the_gap(steps: list[list[float]]) -> None:
    """Larger gaps give no less evidence; the share that was not staked is kept."""
    low, high = EProcess(0.1), EProcess(0.1)
    for gaps in steps:
        low, high = low.after(gaps), high.after([min(1.0, gap + 0.2) for gap in gaps])
        assert unspent(low.steps) <= low.value <= high.value * (1 + 1e-9)


def test_the_usual_gap_has_an_upper_limit_that_holds() -> None:
    """In 200 samples of 60 gaps, the limit is below the mean as rarely as was asked, and close to it."""
    chance = np.random.default_rng(30)
    limits = [upper_limit((chance.binomial(4, 0.5, 60) / 4 - 0.5).tolist(), 0.1) for _ in range(40)]
    assert sum(limit < 0 for limit in limits) <= 8
    assert float(np.mean(limits)) < 0.15


def test_gaps_of_many_criteria_have_a_narrow_span() -> None:
    """Means that hardly go beyond 0.5 are bet on within it; verdicts, whose gaps are -1, 0 and 1, are not."""
    fine = [(n % 9 - 4) / 10 for n in range(200)]
    assert usual(fine, 0.05)[1] == 0.5
    assert usual([*fine, 0.9], 0.05)[1] == 0.5
    assert usual([*fine, *[0.9] * 10], 0.05)[1] == 1
    assert usual([0.0] * 199 + [1.0], 0.05)[1] == 1
    assert EProcess(0.1, 0.5).after([0.9]).value == EProcess(0.1, 0.5).after([0.5]).value


def test_simulated_audits_alarm_rarely_and_in_time() -> None:
    """Of 200 runs at the edge of what is allowed few alarm in 300 steps; a hack of 22 points is found soon."""
    edge = 0.1
    quiet = alarms(np.random.default_rng(30), 200, 300, hack=0, ramp=0, allowed=edge, share=1.0)
    assert (quiet > 0).mean() <= 0.05
    found = alarms(np.random.default_rng(31), 40, 240, hack=0.22, ramp=0, allowed=edge)
    assert (found > 100).all()
    assert np.quantile(found, 0.9) <= 200


@needs_data
def test_audits_of_recorded_judges_alarm_rarely_and_in_time() -> None:
    """Models that rated stories, against people and each other: no alarm, and 22 points are found within 100 steps."""
    for _, draw in recorded():
        quiet = alarms(np.random.default_rng(32), 50, 200, hack=0, ramp=0, allowed=None, draw=draw)
        assert (quiet > 0).mean() <= 0.05
        found = alarms(np.random.default_rng(33), 50, 250, hack=0.22, ramp=100, allowed=None, draw=draw)
        assert (found > 100).all()
        assert np.quantile(found, 0.9) <= 200


# -- the audit -------------------------------------------------------------------------------------------------


def test_the_alarm_names_what_is_hacked() -> None:
    """A second judge that is not fooled shows which criterion is; the whole is told too."""
    audit = Audit(word(), allowed=0.1, per_step=4)
    for _ in range(20):
        audit.review(grade_many(TEXTS, RUBRIC, word(hacked=True)).collect())
        if audit.alarms:
            break
    assert audit.alarms[0].criterion == "thanks"
    assert audit.alarms[0].gap == 1
    assert "the criterion 'thanks' gives +1.00 more" in audit.sentence
    assert audit.evidence("day") < 1 < audit.evidence("thanks")


def test_the_usual_gap_is_learned_and_is_no_alarm() -> None:
    """A judge that always gives more is usual; no alarm comes while the gap stays, one when it grows."""
    audit = Audit(baseline=20, tolerance=0.02)
    for _ in range(60):
        audit.add([(0.7, 0.5), (0.5, 0.5)] * 4)
    assert not audit.alarms
    while not audit.alarms:
        audit.add([(0.9, 0.5), (0.7, 0.5)] * 4)
    assert 60 < audit.step < 90


def test_one_completion_of_a_prompt_is_drawn() -> None:
    """Two of a prompt share its luck, so each audited completion is of another one; a seed repeats the draw."""
    results = grade_many(TEXTS, RUBRIC, word()).collect()
    drawn = Audit(word(), per_step=8, seed=1).draw(results)
    assert len({one.candidate.input for one in drawn if one.candidate}) == len(drawn) == 6
    assert drawn == Audit(word(), per_step=8, seed=1).draw(results)
    assert len(Audit(word(), per_step=2).draw(results)) == 2


def test_what_is_ungraded_is_left_out_and_counted() -> None:
    """An audit without a score says nothing of the gap."""
    audit = Audit(lambda _: "?", allowed=0.1)
    audit.review(grade_many(TEXTS, RUBRIC, word()).collect())
    assert (audit.lost, audit.step, audit.alarms) == (6, 1, ())


def test_an_ungraded_reward_is_not_drawn() -> None:
    """The second judge is not paid for an opinion that has nothing beside it."""
    results = grade_many(TEXTS, RUBRIC, lambda _: "?").collect()
    assert Audit(word()).draw(results) == []


def test_candidates_without_a_prompt_are_no_twins() -> None:
    """A text alone shares its luck with no other, so as many are drawn as a step may have."""
    results = grade_many([f"It comes on Friday, {n}." for n in range(20)], RUBRIC, word()).collect()
    assert len(Audit(word(), per_step=8).draw(results)) == 8


def test_a_criterion_that_comes_later_is_followed_too() -> None:
    """A dropout can leave a criterion out of the first step: its hack is found, and all shares of the risk sum to 1."""
    audit = Audit(word(), allowed=0.1, per_step=4)
    audit.review(grade_many(TEXTS, Rubric("reply").expects("Names the day", id="day"), word()).collect())
    while not audit.alarms and audit.step < 40:
        audit.review(grade_many(TEXTS, RUBRIC, word(hacked=True)).collect())
    assert "thanks" in {alarm.criterion for alarm in audit.alarms}
    many = Audit(allowed=0.1)
    many._follow(["", "a", "b"])
    many._follow([f"c{n}" for n in range(100)])
    assert sum(map(many._share, many._seen)) <= 1
    assert len(many._seen) == 50


def test_the_gap_of_an_alarm_is_that_since_it_began() -> None:
    """Steps before the hack, and those that showed what is usual, are not in its mean."""
    audit = Audit(baseline=2)
    for step in range(30):
        audit.add([(1.0 if step > 4 else 0.5, 0.5)] * 8)
    assert audit.alarms[0].gap == 0.5


def test_a_file_keeps_the_audits_over_processes(tmp_path: Path) -> None:
    """A second process goes on where the first one was stopped, with the same evidence."""
    path = tmp_path / "audits.sqlite"
    first, whole = Audit(allowed=0.1, path=path), Audit(allowed=0.1)
    ungraded = grade_many(TEXTS[:1], RUBRIC, lambda _: "?").collect()[0]
    first.add([(ungraded, 0.5)])
    whole.add([(ungraded, 0.5)])
    steps = [[(0.6, 0.5), (0.8, 0.5)]] * 3
    for step in steps:
        first.add(step)
    again = Audit(allowed=0.1, path=path)
    assert (again.step, again.lost) == (4, 1)
    for step in steps * 2:
        whole.add(step)
    for step in steps:
        again.add(step)
    assert math.isclose(again.evidence(), whole.evidence())
    assert again.alarms == whole.alarms
    with pytest.raises(DefinitionError, match=r"was begun with allowed=0\.1"):
        Audit(allowed=0.2, path=path)


def test_what_cannot_be_audited_is_refused(tmp_path: Path) -> None:
    """No second judge, no number, or a file of something else."""
    with pytest.raises(DefinitionError, match="there is no second judge"):
        Audit().review(grade_many(TEXTS, RUBRIC, word()).collect())
    with pytest.raises(DefinitionError, match="pairs"):
        Audit(allowed=0).add([(7, 1)])
    with pytest.raises(DefinitionError, match=r"pairs\[0\]: expected the reward and the second opinion"):
        Audit().add([0.3, 0.5])  # type: ignore[list-item]
    with pytest.raises(DefinitionError, match="allowed: expected a finite number above -1 to 1"):
        Audit(allowed=-1)
    with pytest.raises(DefinitionError, match="did you mean 'store'"):
        Audit(word(), options={"stor": "replies.db"})
    with pytest.raises(DefinitionError, match="would pair a reward with another's opinion"):
        Audit(word(), options={"ordered": False})
    with pytest.raises(DefinitionError, match="options: they are of the second judge"):
        Audit(options={"store": "replies.db"})
    (tmp_path / "notes.txt").write_text("no database " * 100)
    with pytest.raises(DefinitionError, match="is not a file of audits"):
        Audit(path=tmp_path / "notes.txt")


def test_two_processes_on_one_file_are_refused(tmp_path: Path) -> None:
    """Whoever comes second is told which step is there, and what to do."""
    first, second = (Audit(path=tmp_path / "audits.sqlite") for _ in range(2))
    first.add([(0.5, 0.5)])
    with pytest.raises(DefinitionError, match="another process has written step 1 to audits"):
        second.add([(0.5, 0.5)])


def test_it_is_shown_as_text_as_data_and_as_a_chart() -> None:
    """The steps are in the data and in the chart, the table has a row for each criterion."""
    audit = Audit(word(), allowed=0.1)
    assert audit.sentence == "No step is audited yet."
    audit.review(grade_many(TEXTS, RUBRIC, word()).collect())
    assert "the whole" in str(audit)
    assert [row["criterion"] for row in audit.to_dict()["steps"]] == ["", "day", "thanks"]
    json.dumps(audit.to_dict())
    assert audit.plot().to_dict()["vconcat"]
