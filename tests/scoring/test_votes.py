"""Juries and panels: what votes come to, when they are decided, and how findings are pooled."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise, product
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Criterion, DefinitionError, Grade, Judge, Jury, Panel, Rubric, Ungraded, ask
from rubric.driving import Failure
from rubric.results import Scored
from rubric.scoring.outcomes import Extreme, Outcome, median, unknown
from rubric.scoring.votes import fewest_votes, is_decided, tally
from rubric.testing.scripted_model import Line, Says, ScriptedModel
from rubric.values.judges import passes_needed
from tests.drive import drive
from tests.examples import examples
from tests.findings import GONE, improvised, rubrics
from tests.rows import each_row

WHOLE = Rubric.of("Is it good?")
PLAIN = Rubric().expects("Is it good?", id="a")


def says(*lines: Line, **options: Any) -> Judge:
    """Return a judge that says *lines* in turn."""
    return Judge(ScriptedModel(lines), **options)


def calls(judge: Judge) -> int:
    """Return how often *judge* was asked."""
    assert isinstance(judge.model, ScriptedModel)
    return len(judge.model.asks)


def panel(*lines: Line, **rule: Any) -> Panel:
    """Return a panel whose members say one line each."""
    return Panel([says(line) for line in lines], **rule)


def vote(score: float, *, passed: bool | None = None, gated: bool = False) -> Outcome:
    """Return a vote of *score*; without *passed*, 0.7 passes."""
    passes = (score >= 0.7 and not gated) if passed is None else passed
    extreme = Extreme(score, passes, gated)
    return Outcome(extreme, extreme, score, "pass" if passes else "fail")


# -- juries ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("consensus", "passed"), [(0.5, True), (0.66, True), (0.67, True), (0.68, False), (1.0, False)]
)
def test_a_jury_passes_when_the_passing_share_meets_the_consensus(consensus: float, passed: bool) -> None:
    """Two of three meet 0.66 and also 0.67: counts are compared, not fractions."""
    result = drive(WHOLE, Jury(says(0.8, 0.9, 0.2), 3, consensus))
    assert result.passed is passed


def test_the_score_of_a_jury_is_the_mean_and_its_usage_the_sum() -> None:
    """Also where the verdict goes by consensus: 0.633 passes."""
    result = drive(WHOLE, Jury(says(0.8, 0.9, 0.2), 3, 0.66))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(1.9 / 3)
    assert (result.passed, result.usage.calls, len(result.votes)) == (True, 3, 3)


@each_row(
    ("consensus", "votes", "needed"),
    [(0.5, 2, 1), (0.5, 3, 2), (0.33, 3, 1), (0.34, 3, 2), (0.1, 30, 3), (0.6, 5, 3), (1, 9, 9), (0.001, 4, 1)],
)
def test_passes_needed_counts_votes(consensus: float, votes: int, needed: int) -> None:
    """A consensus that is written with two decimals means the count that it rounds."""
    assert passes_needed(consensus, votes) == needed


@given(st.floats(0, 1, exclude_min=True), st.integers(1, 50))
def test_some_vote_is_always_needed_and_never_more_than_there_are(consensus: float, votes: int) -> None:
    """And what is needed is at most a hundredth of the votes less than the consensus."""
    needed = passes_needed(consensus, votes)
    assert 1 <= needed <= votes
    assert consensus - 0.0051 <= needed / votes


ALONE: list[Callable[[Judge], Jury | Panel]] = [
    lambda judge: Jury(judge, 1),
    lambda judge: Panel([judge], aggregate="majority"),
    lambda judge: Panel([judge], level="criterion"),
]


@examples(100)
@given(rubrics(), st.integers())
def test_a_jury_of_one_is_its_judge(rubric: Rubric, seed: int) -> None:
    """Same score, verdict, gates, bounds, contributions and calls."""
    alone = drive(rubric, Judge(ScriptedModel(improvised(seed, failing=0.1))))
    for bench in ALONE:
        judged = drive(rubric, bench(Judge(ScriptedModel(improvised(seed, failing=0.1)))))
        assert (judged.bounds, judged.passed, judged.usage) == (alone.bounds, alone.passed, alone.usage)
        assert (judged.outcome.score, judged.outcome.verdict) == (alone.outcome.score, alone.outcome.verdict)
        assert (judged.findings, judged.contributions) == (alone.findings, alone.contributions)


# -- panels ------------------------------------------------------------------------------------------------


@each_row(
    ("aggregate", "lines", "score", "passed"),
    [
        ("mean", (0.9, 0.8, 0.1), 0.6, False),
        ("mean", (0.9, 0.5), 0.7, True),
        ("median", (0.9, 0.8, 0.1), 0.6, True),
        ("median", (0.9, 0.6, 0.8, 0.5), 0.7, True),
        ("median", (0.9, 0.59, 0.8, 0.5), 0.6975, False),
        ("majority", (0.7, 0.7, 0.0), 1.4 / 3, True),
        ("majority", (0.9, 0.69, 0.69), 0.76, False),
    ],
)
def test_a_panel_decides_by_its_aggregate_and_reports_the_mean(
    aggregate: Any, lines: tuple[float, ...], score: float, passed: bool
) -> None:
    """Mean and median are compared with the threshold; a majority counts verdicts."""
    result = drive(WHOLE, panel(*lines, aggregate=aggregate))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(score)
    assert result.passed is passed


@each_row(
    ("consensus", "weights", "passed"),
    [
        (0.33, None, True),
        (0.67, None, True),
        (0.67, (2, 2, 2), True),
        (1, None, False),
        (0.5, (1, 1, 3), False),
        (0.4, (1, 1, 3), True),
    ],
)
def test_a_consensus_says_how_many_members_must_pass(consensus: float, weights: Any, passed: bool) -> None:
    """Two of three pass, the third does not; with weights that differ their share counts."""
    result = drive(WHOLE, panel(0.9, 0.8, 0.1, aggregate="majority", consensus=consensus, weights=weights))
    assert result.passed is passed
    assert result.score == pytest.approx(0.4 if weights == (1, 1, 3) else 0.6)


@pytest.mark.parametrize(
    "options",
    [{}, {"aggregate": "majority", "tie_break": "pass"}, {"aggregate": "majority", "level": "criterion"}],
)
def test_a_consensus_is_refused_where_it_would_do_nothing(options: Any) -> None:
    """Of a mean, beside a tie break, and where findings are pooled."""
    with pytest.raises(DefinitionError, match=r"keep one|it is for"):
        Panel(["a", "b"], consensus=0.5, **options)


@pytest.mark.parametrize(("tie_break", "passed"), [("fail", False), ("pass", True)])
def test_a_tied_majority_is_broken_as_the_panel_says(tie_break: Any, passed: bool) -> None:
    """An even split fails unless it is said to pass."""
    result = drive(WHOLE, panel(0.9, 0.5, aggregate="majority", tie_break=tie_break))
    assert result.passed is passed


def test_weights_count_in_means_medians_and_majorities() -> None:
    """A member that weighs more than all others decides."""
    for aggregate in ("mean", "median", "majority"):
        assert drive(WHOLE, panel(1.0, 0.0, 0.0, aggregate=aggregate, weights=[8, 1, 1])).passed is True
        assert drive(WHOLE, panel(0.0, 1.0, 1.0, aggregate=aggregate, weights=[8, 1, 1])).passed is False


def test_a_median_is_exact_for_any_weights() -> None:
    """Weights whose sum is beyond all floats have a median like others."""
    assert median([0.1, 0.9, 0.9], [1e308] * 3) == 0.9
    assert median([0.1, 0.9], [5e-324, 5e-324]) == 0.5


def test_a_gate_is_not_averaged_away() -> None:
    """A mean of 0.8 does not pass where half of the members find a gate failed."""
    rubric = Rubric().requires("a", id="a").scores("b", weight=9, id="b")
    split = Panel([Judge(ScriptedModel({"a": held, "b": 1.0})) for held in (True, False)])
    result = drive(rubric, split)
    assert isinstance(result, Grade)
    assert (result.score, result.passed, result.gates) == (0.95, False, ("a",))


def test_the_verdicts_of_a_majority_include_gates() -> None:
    """One member gated, one not: a tie, and so a fail."""
    rubric = Rubric().scores("a", required=True, id="a").scores("b", weight=9, id="b")
    members = [Judge(ScriptedModel({"a": a, "b": 1.0})) for a in (0.6, 0.9)]
    result = drive(rubric, Panel(members, aggregate="majority"))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(0.975)
    assert result.passed is False


def test_a_panel_may_have_juries() -> None:
    """Each member grades by itself, then the panel decides."""
    result = drive(WHOLE, Panel([Jury(says(0.9, 0.8, 0.1), 3), says(0.9)], aggregate="majority"))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(0.75)
    assert (result.passed, [v.passed for v in result.votes]) == (True, [True, True])


def test_a_jury_may_be_of_panels() -> None:
    """Each vote is the verdict of a whole panel, and no two votes are the same ask."""
    judges = [Judge(ScriptedModel(lambda _: True)), Judge(ScriptedModel(lambda _: False))]
    result = drive(PLAIN, Jury(Panel(judges, aggregate="majority", tie_break="pass"), 2))
    assert isinstance(result, Grade)
    assert (result.score, result.passed) == (0.5, True)
    assert isinstance(judges[0].model, ScriptedModel)
    assert sorted(ask.vote for ask in judges[0].model.asks) == [0, 1]  # each script is a model of its own


def test_juries_of_juries_number_their_votes_apart() -> None:
    """Four votes, four numbers: a store never gives one of them the reply to another."""
    judge = Judge(ScriptedModel(lambda _: True))
    drive(PLAIN, Jury(Jury(judge, 2), 2))
    assert isinstance(judge.model, ScriptedModel)
    assert sorted(ask.vote for ask in judge.model.asks) == [0, 1, 2, 3]


# -- by criterion ------------------------------------------------------------------------------------------


def test_a_panel_by_criterion_pools_findings_and_scores_once() -> None:
    """Each criterion has its majority, though no member finds both of them met."""
    rubric = PLAIN.expects("b", id="b").strictly()
    verdicts = [(True, True), (True, False), (False, True)]
    members = [Judge(ScriptedModel({"a": a, "b": b})) for a, b in verdicts]
    assert drive(rubric, Panel(members, aggregate="majority")).passed is False
    result = drive(rubric, Panel(members, aggregate="majority", level="criterion"))
    assert isinstance(result, Grade)
    assert (result.score, result.passed) == (1.0, True)
    assert [v.score for v in result["a"].votes if isinstance(v, Scored)] == [1.0, 1.0, 0.0]


@pytest.mark.parametrize(("tie_break", "present"), [("fail", 1.0), ("pass", 0.0)])
def test_a_tie_on_a_guard_leans_against_the_candidate(tie_break: Any, present: float) -> None:
    """To fail a tie is to find what must not hold present."""
    rubric = Rubric().forbids("a", id="a")
    result = drive(rubric, panel(True, False, aggregate="majority", tie_break=tie_break, level="criterion"))
    assert isinstance(result["a"], Scored)
    assert result["a"].score == present


def test_pooled_evidence_comes_from_the_votes_that_have_it() -> None:
    """A vote without a quote counts as unmet; the others' quotes stand."""
    rubric = PLAIN.with_evidence()
    lines = (Says(True, evidence=("2.3.0",)), Says(True), Says(True, evidence=("release",)))
    result = drive(rubric, panel(*lines, aggregate="majority", level="criterion"))
    assert isinstance(result["a"], Scored)
    assert (result["a"].score, [e.text for e in result["a"].evidence]) == (1.0, ["2.3.0", "release"])


def test_nested_findings_are_pooled_part_by_part() -> None:
    """With parts that do not apply among them; and what is pooled has votes at every level."""
    inner = Rubric("inner").expects("x", id="x").expects("y", id="y", when=lambda _: False)
    rubric = Rubric().includes(inner, id="n").expects("z", id="z")
    members = [Judge(ScriptedModel({"x": x, "z": True})) for x in (True, False, True)]
    result = drive(rubric, Panel(members, aggregate="majority", level="criterion"))
    assert isinstance(result, Grade)
    assert isinstance(result["n"], Scored)
    assert [type(part).__name__ for part in result["n"].parts] == ["Scored", "NotApplicable"]
    assert result.score == 1.0


def test_abstentions_are_no_votes() -> None:
    """A criterion that one member scored has that score; one that all abstain from is abstained."""
    rubric = PLAIN.scores("b", id="b").abstaining("exclude")
    members = [Judge(ScriptedModel({"a": a, "b": None})) for a in (None, True)]
    result = drive(rubric, Panel(members, level="criterion"))
    assert isinstance(result, Grade)
    assert (result.score, type(result["b"]).__name__) == (1.0, "Abstained")


@each_row("aggregate", ["mean", "median", "majority"])
@each_row("last", [0.0, 0.4, 1.0])
def test_bounds_of_pooled_findings_hold_whatever_the_dead_vote_would_say(aggregate: Any, last: float) -> None:
    """Pooled by the same rule as the scores: a majority of one, none and a missing vote may be either."""
    rubric = Rubric().scores("a", id="a")
    dead = drive(rubric, panel(1.0, 0.0, GONE, aggregate=aggregate, level="criterion"))
    alive = drive(rubric, panel(1.0, 0.0, last, aggregate=aggregate, level="criterion"))
    assert isinstance(alive, Grade)
    assert dead.bounds[0] <= alive.score <= dead.bounds[1]
    assert dead.passed in (None, alive.passed)


# -- votes that come to nothing ----------------------------------------------------------------------------


def test_a_dead_panel_is_ungraded() -> None:
    """E16: two members of three with bad keys are not a unanimous pass."""
    bad = Failure("auth", "the key is wrong")
    result = drive(PLAIN, panel(True, bad, bad, aggregate="majority"))
    assert isinstance(result, Ungraded)
    assert ([f.kind for f in result.failures], result.passed) == (["auth", "auth"], None)


def test_what_the_dead_cannot_change_is_said_although_ungraded() -> None:
    """Two of three pass: the verdict would be a pass, and yet the missing vote is a failure."""
    result = drive(PLAIN, panel(True, True, GONE, aggregate="majority"))
    assert isinstance(result, Ungraded)
    assert result.bounds == pytest.approx((2 / 3, 1.0))
    assert result.passed is True


def test_a_quorum_leaves_the_dead_out() -> None:
    """Two of three have voted, two are enough: they decide, and the failure is kept."""
    result = drive(PLAIN, panel(True, GONE, True, aggregate="majority", quorum=2))
    assert isinstance(result, Grade)
    assert (result.score, result.passed, len(result.failures)) == (1.0, True, 1)


def test_below_the_quorum_the_result_is_ungraded() -> None:
    """A dead panel is not a panel that found nothing."""
    assert isinstance(drive(PLAIN, panel(True, GONE, GONE, quorum=2)), Ungraded)


def test_the_weights_of_the_dead_go_with_them() -> None:
    """Those who are left keep theirs."""
    result = drive(WHOLE, panel(1.0, GONE, 0.0, weights=[3, 90, 1], quorum=2))
    assert isinstance(result, Grade)
    assert result.score == 0.75


def test_a_dead_vote_in_a_jury_that_may_stop_early_ends() -> None:
    """When all votes are cast there is nothing to wait for, decided or not."""
    assert isinstance(drive(PLAIN, Jury(says(True, GONE, False), 3, early_stop=True)), Ungraded)
    assert isinstance(drive(PLAIN, Jury(says(GONE, GONE, GONE), 3, quorum=1, early_stop=True)), Ungraded)


@pytest.mark.parametrize("aggregate", ["mean", "median", "majority"])
def test_a_guard_that_one_of_three_flags_follows_the_aggregate(aggregate: Any) -> None:
    """
    E17: one flag of three leaves a contribution of 2/3, below the threshold of 0.7, so a mean fails.

    A median and a majority go with the two who found it clean. The score shows the flag in every case.
    """
    result = drive(Rubric().forbids("harm", id="h"), panel(True, False, False, aggregate=aggregate))
    assert isinstance(result, Grade)
    assert result.score == pytest.approx(2 / 3)
    assert result.passed is (aggregate != "mean")


@each_row("flags", [(True, True, False), (True, True, True)])
@each_row(
    "rule", [{"aggregate": a, "level": v} for a in ("mean", "median", "majority") for v in ("rubric", "criterion")]
)
def test_no_aggregate_makes_a_majoritys_flag_a_clean_pass(rule: Any, flags: tuple[bool, ...]) -> None:
    """E17: what two or three of three find present fails, beside a criterion of any weight."""
    rubric = Rubric(threshold=0.1).forbids("harm", id="h").expects("helps", weight=99, id="b")
    result = drive(rubric, Panel([Judge(ScriptedModel({"h": flag, "b": True})) for flag in flags], **rule))
    assert (result.passed, result.outcome.gates) == (False, ("h",))


def test_nothing_that_applies_is_a_vacuous_pass_for_a_panel_too() -> None:
    """Of a negated rubric as well, and under any aggregate: there was nothing to turn over."""
    rubric = Rubric(negate=True, threshold=0).expects("a", when=lambda _: False)
    for rule in (panel(True, True), panel(True, True, aggregate="majority"), Jury(says(True), 2)):
        result = drive(rubric, rule)
        assert isinstance(result, Grade)
        assert (result.passed, result.vacuous, result.usage.calls) == (True, True, 0)


# -- stopping early ----------------------------------------------------------------------------------------


@cache
def _decided(rule: Jury, passes: int, fails: int) -> bool:
    return is_decided(rule, PLAIN, [vote(1.0)] * passes + [vote(0.0)] * fails)


@cache
def _ahead(rule: Jury, passes: int, fails: int) -> int:
    return fewest_votes(rule, PLAIN, [vote(1.0)] * passes + [vote(0.0)] * fails)


def _stopped(rule: Jury, sequence: tuple[bool, ...]) -> int:
    """Return how many votes of *sequence* are cast."""
    cast = 0
    while not _decided(rule, sum(sequence[:cast]), cast - sum(sequence[:cast])):
        cast += _ahead(rule, sum(sequence[:cast]), cast - sum(sequence[:cast]))
    return cast


@each_row("size", range(1, 10))
def test_an_early_stop_never_changes_a_verdict_nor_adds_a_call(size: int) -> None:
    """All sequences of passes and fails, under every consensus that matters; and it stops at the first chance."""
    for needed in range(1, size + 1):
        rule = Jury("offline", size, needed / size, early_stop=True)
        for sequence in product((True, False), repeat=size):
            cast = _stopped(rule, sequence)
            passes, fails = sum(sequence[:cast]), cast - sum(sequence[:cast])
            assert cast <= size
            assert (passes >= needed) is (sum(sequence) >= needed)
            assert passes == needed or fails == size - needed + 1


def test_a_jury_that_is_decided_asks_no_more() -> None:
    """Two passes of three are enough."""
    judge = says(True, True, True)
    drive(PLAIN, Jury(judge, 3, early_stop=True))
    assert calls(judge) == 2


def test_a_weighted_panel_that_stops_early_has_its_findings() -> None:
    """Pooled from the votes that were cast, by their weights."""
    result = drive(WHOLE, panel(1.0, 0.9, 0.0, aggregate="majority", weights=[1, 3, 1], early_stop=True))
    assert isinstance(result["overall"], Scored)
    assert (len(result.votes), result["overall"].score) == (2, 0.925)


def test_a_negated_panel_does_not_stop_before_it_is_decided() -> None:
    """Votes that were not cast are turned over with the rest."""
    judges = [says(True), says(True), says(True)]
    result = drive(evolve(PLAIN, negate=True), Panel(judges, early_stop=True))
    assert isinstance(result, Grade)
    assert (result.score, result.passed) == (0.0, False)


def test_a_jury_stops_only_when_borderline_is_settled_too() -> None:
    """Two votes of 0.65 fail by themselves, but the third tells whether the fail is borderline."""
    rubric = WHOLE.borderline_at(0.6)
    early = drive(rubric, Jury(says(0.65, 0.65, 0.0), 3, early_stop=True))
    whole = drive(rubric, Jury(says(0.65, 0.65, 0.0), 3))
    assert early.outcome.verdict == whole.outcome.verdict == "fail"


def test_a_gate_within_a_negated_jury_does_not_unsettle_the_verdict() -> None:
    """Turned over, a failed gate speaks for the candidate: it makes no fail worse."""
    rubric = Rubric(negate=True, threshold=0.3, borderline=0.15).requires("a")
    early, whole = (drive(rubric, Jury(says(True, False, False), 3, 1.0, early_stop=e)) for e in (True, False))
    assert early.outcome.verdict == whole.outcome.verdict == "borderline"


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans(), st.booleans()), max_size=6), st.booleans(), st.data())
def test_the_bounds_of_a_tally_shrink_as_votes_come(
    votes: list[tuple[float, bool, bool]], negate: bool, data: st.DataObject
) -> None:
    """And what has been settled stays so."""
    rubric = Rubric(negate=negate).scores("a")
    size = max(1, len(votes))
    aggregate: Any = data.draw(st.sampled_from(["mean", "median", "majority"]))
    rule = Panel(["offline"] * size, aggregate=aggregate)
    outcomes = [vote(score, passed=passed, gated=gated and passed == negate) for score, passed, gated in votes]
    steps = [tally(rule, rubric, outcomes[:n]) for n in range(len(outcomes) + 1)]
    for before, after in pairwise(steps):
        assert before.passed in (None, after.passed)
        if after.score is None:
            assert before.bounds[0] - 1e-12 <= after.bounds[0] <= after.bounds[1] <= before.bounds[1] + 1e-12


def test_a_vote_that_was_not_cast_is_as_wide_as_can_be() -> None:
    """Nothing is known of it; a negated gate would be for the candidate."""
    plain, negated = unknown(PLAIN), unknown(evolve(PLAIN, negate=True))
    assert plain.bounds == negated.bounds == (0.0, 1.0)
    assert (plain.worst.gated, negated.worst.gated) == (True, False)


def test_a_tree_may_be_voted_on() -> None:
    """The walk that is shown is the one of a vote that came to the reported leaf."""
    rubric = Rubric().decides("t", by=ask("q").yes(1.0).no(0.0), id="t")
    result = drive(rubric, panel(0.9, 0.1, 0.8, aggregate="majority", level="criterion"))
    assert isinstance(result["t"], Scored)
    assert (result["t"].score, [s.yes for s in result["t"].path]) == (1.0, [True])


def test_a_criterion_that_is_pooled_by_mean_keeps_no_single_value() -> None:
    """0.5 is nobody's answer."""
    result = drive(Rubric(criteria=[Criterion("a", id="a")]), panel(True, False, level="criterion"))
    assert isinstance(result["a"], Scored)
    assert (result["a"].score, result["a"].value) == (0.5, None)
