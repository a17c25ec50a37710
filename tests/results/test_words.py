"""The words of results: each says once what happened, in cards, in texts and in reports alike."""

from __future__ import annotations

import json
import re
import warnings
from html import unescape
from typing import Any

import pytest

from rubric import (
    Candidate,
    Cascade,
    Contains,
    Criterion,
    Grade,
    Judge,
    Jury,
    Panel,
    Rubric,
    Ungraded,
    Unit,
    ask,
    evaluate,
    grade,
    grade_many,
    judge_function,
)  # fmt: skip
from rubric.embed import RowBuilder
from rubric.results import Counts
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.values import RunMetrics, Within
from tests.rows import each_row


def judge(**said: Any) -> Judge:
    return Judge(ScriptedModel(said))


def card(result: Grade | Ungraded) -> str:
    """Return the texts of the card of *result* on one line."""
    drawn = re.sub(r"<style>.*?</style>", "", result._repr_html_(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", drawn)).split())


def test_a_check_says_what_it_looks_for_once() -> None:
    """Its text names it; the kind of answer and the reason do not repeat it."""
    result = evaluate("Hello", Rubric().checks(Contains("ticket #")), "offline")
    assert card(result).count("contains 'ticket #'") == 1
    assert "✗ contains 'ticket #': no" in str(result)
    assert result._repr_markdown_().count("ticket #") == 0  # the id is made of it: contains-ticket


def test_a_limit_names_its_unit_and_rounds() -> None:
    """Seconds, dollars and counts, with the limit that was kept or broken."""
    took = Candidate("Hi", metrics=RunMetrics(latency=0.00352491, cost=0.01234, tokens=120))
    result = evaluate(took, Rubric().checks(Within(latency=3, cost=0.001, tokens=100)), "offline")
    assert (
        result[0].reason == "latency 0.00352 s, at most 3 s; cost $0.01234, more than $0.001; tokens 120, more than 100"
    )


def test_the_verdict_of_a_card_stands_in_its_sentence_alone() -> None:
    """No chip repeats it."""
    passed = card(evaluate("Hi", Rubric().expects("Is warm", id="warm"), judge(warm=True)))
    assert passed.startswith("Passes with 1.00, needs 0.70. Criteria")
    failed = card(evaluate("Hi", Rubric().expects("Is warm", id="warm"), judge(warm=None)))
    assert "ungraded" not in failed.partition("Criteria")[0]


def test_without_a_threshold_the_judges_own_verdict_decides() -> None:
    """It is said of a grade in words, without a number to compare with."""
    rubric = Rubric(threshold=None, criteria=[Criterion("Is warm", id="warm", answer=Unit(flag=True))])
    result = evaluate("Hi", rubric, judge(warm=Says(0.9, flag=True)))
    assert "Passes with 0.90, by the judge's own verdict." in card(result)
    assert str(result).splitlines()[0] == "pass, 0.90, by the judge's own verdict"


def test_a_nested_rubric_says_what_it_fell_short_of() -> None:
    """Its reason names the criteria that are not met, as its verdict alone says nothing."""
    inner = Rubric("style").expects("Greets", id="greets").expects("Signs", id="signs")
    result = evaluate("Hi", Rubric().includes(inner), judge(greets=True, signs=False))
    assert result["style"].reason == "fail, 1 of 2 met in full; not in full: Signs"
    whole = evaluate("Hi", Rubric().includes(inner), judge(greets=True, signs=True))
    assert whole["style"].reason == "pass, 2 of 2 met in full"


def test_a_negated_rubric_says_what_was_found_in_it() -> None:
    """A pass does not read as one that fell short: what is not there is what was wanted."""
    inner = Rubric("style", negate=True).expects("Greets", id="greets").expects("Signs", id="signs")
    none = evaluate("Hi", Rubric().includes(inner), judge(greets=False, signs=False))
    assert none["style"].reason == "pass, 0 of 2 unwanted met"
    one = evaluate("Hi", Rubric().includes(inner), judge(greets=True, signs=True))
    assert one["style"].reason == "fail, 2 of 2 unwanted met: Greets, Signs"


@pytest.mark.parametrize(
    ("how", "needs"),
    [
        (lambda judges: Panel(judges, aggregate="majority"), "needs more than half of the votes"),
        (lambda judges: Panel(judges, aggregate="majority", consensus=0.6), "needs 2 of 3 votes"),
        (lambda judges: Jury(Judge(ScriptedModel([0.8, 0.7, 0.18])), 3), "needs 2 of 3 votes"),
        (Panel, "needs 0.60"),
    ],
    ids=["majority", "consensus", "jury", "mean"],
)
def test_what_votes_decide_is_measured_by_votes(how: Any, needs: str) -> None:
    """A majority passes below the threshold of the score, so the threshold is not what it needs."""
    judges = [judge(warm=score) for score in (0.8, 0.7, 0.18)]
    result = evaluate("Hi", Rubric(threshold=0.6).scores("Is warm", id="warm"), how(judges))
    assert str(result).splitlines()[0].endswith(f"0.56, {needs}")
    assert f"with 0.56, {needs}" in card(result)
    assert needs in result._repr_markdown_()


def test_judges_who_disagree_are_each_quoted() -> None:
    """The line says how many say what, and why; the author is told by a judge who found fault."""
    panel = Panel([judge(warm=True, price=True), judge(warm=True, price=False), judge(warm=False, price=False)])
    result = grade("Hi", Rubric(threshold=0).expects("Is warm", id="warm").forbids("Names a price", id="price"), panel)
    assert "~ Is warm (0.67): 1 of 3 say no: " in str(result)
    assert "; 2 of 3 say yes: " in str(result)
    numbers = Panel([judge(warm=0.2), judge(warm=0.9)])
    shown = str(evaluate("Hi", Rubric().scores("Is warm", id="warm"), numbers))
    assert "1 of 2 say 0.20: " in shown
    assert "1 of 2 say 0.90: " in shown


def test_a_tree_says_which_way_was_taken() -> None:
    """The explanation and the words for the author name each question with its answer, and why the last has its own."""
    tree = ask("Names a day?").yes(ask("Is the day right?").yes(1.0).no(0.3)).no(0.0)
    replies = ['{"reason": "Friday", "verdict": true}', '{"reason": "it is Monday", "verdict": false}']
    result = grade("On Friday.", Rubric("day", tree=tree), Judge(ScriptedModel(replies), sealed=False))
    walk = "Names a day? yes → Is the day right? no: it is Monday"
    assert result.explain() == f"~ Names a day? (0.30): {walk}"
    assert result.feedback() == f"- Not fully met: Names a day? ({walk})"


@pytest.mark.parametrize(
    ("options", "fails"),
    [
        ({}, True),
        ({"weight": 0}, False),
        ({"weight": 0, "required": True}, True),
        ({"weight": 0, "min_score": 0.5}, True),
    ],
)
def test_a_lack_of_a_quote_is_told_and_fails_what_counts(options: dict[str, Any], fails: bool) -> None:
    """A criterion of weight 0 that is no gate is shown alone; summary and advice name the lack, not the verdict."""
    rubric = Rubric(threshold=0.5).expects("Is warm", weight=3).adding(Criterion("Is backed", evidence=True, **options))
    said = {"reason": "so", "evidence": ["made up"], "verdict": True}
    found, counts = grade_many(["a", "b"], rubric, lambda _: json.dumps(said)).collect(), Counts()
    for one in found:
        counts.add(one)
        assert isinstance(one, Grade)
        assert one.passed is not fails
        assert one.feedback() == "- Not counted, its quote is not in the candidate: Is backed (so)"
    for summary in (found.summary(), counts.summary()):
        assert ("'is-backed': 2 failed for lack of a quote" in str(summary)) is fails


def test_the_author_is_told_by_a_judge_who_found_fault() -> None:
    """Of a wish that is the lowest score, of what must not hold the highest."""
    one, other = Says(True, "it greets"), Says(False, "no greeting")
    panel = Panel([judge(warm=one, rude=one), judge(warm=one, rude=other), judge(warm=other, rude=other)])
    told = grade("Hi", Rubric(threshold=0).expects("Is warm", id="warm").forbids("Is rude", id="rude"), panel)
    assert "Is warm (no greeting)" in told.feedback()
    assert "Is rude (it greets)" in told.feedback()


@pytest.mark.parametrize("kind", ["rubric", "criterion"])
def test_a_panel_without_one_of_its_votes_names_the_quorum(kind: Any) -> None:
    """The call that grades by the others is printed, and works."""
    down = Judge(ScriptedModel([None]))
    judges, rubric = [judge(warm=True), judge(warm=True), down], Rubric().expects("Is warm", id="warm")
    result = evaluate("Hi", rubric, Panel(judges, level=kind))
    assert "2 of 3 votes were given; Panel(..., quorum=2) grades by these" in str(result)
    assert grade("Hi", rubric, Panel(judges, level=kind, quorum=2)).passed


def test_a_cascade_is_measured_as_the_judge_that_decided() -> None:
    """The second judge is alone, so the threshold counts."""
    rule = Cascade(judge(warm=0.5), judge(warm=0.9), when="fails")
    result = evaluate("Hi", Rubric(threshold=0.6).scores("Is warm", id="warm"), rule)
    assert str(result).splitlines()[0] == "pass, 0.90, needs 0.60"


def test_a_penalty_says_that_it_was_found_and_what_it_takes_off() -> None:
    """Its contribution of 0.00 would read as a score."""
    rubric = Rubric().expects("Is warm", id="warm").penalizes("Rambles", points=2, id="rambles").by_points()
    found = evaluate("Hi", rubric, judge(warm=True, rambles=True))
    assert "✗ Rambles (found, -2)" in str(found)
    assert "found, -2" in card(found)
    entry = RowBuilder().of(found).entries[1]
    assert (entry.figure, entry.contribution) == ("found, -2", 0.0)
    clean = evaluate("Hi", rubric, judge(warm=True, rambles=False))
    assert RowBuilder().of(clean).entries[1].figure == "not found"


@pytest.mark.parametrize(
    ("evidence", "said"), [((), "no quote from the candidate"), (("Bye",), "its quote is not in the candidate")]
)
def test_a_gate_that_fails_for_its_quote_says_so(evidence: tuple[str, ...], said: str) -> None:
    """The answer was yes: without the quote, nobody would see why the gate failed."""
    rubric = Rubric().requires("Is warm", id="warm", evidence=True)
    model = Judge(ScriptedModel({"warm": Says(True, evidence=evidence)}), repairs=0)
    result = evaluate("Hi there", rubric, model)
    if isinstance(result, Grade):
        for words in (str(result), card(result), result._repr_markdown_()):
            assert said in words


def test_a_bar_that_a_gate_failed_is_not_red_beyond_the_threshold() -> None:
    """Its colour would contradict its length; the gate is named beside it."""
    rubric = Rubric(threshold=0.5).requires("Is warm", id="warm").expects("Is a", id="a").expects("Is b", id="b")
    drawn = evaluate("Hi", rubric, judge(warm=False, a=True, b=True))._repr_html_()
    lead = drawn.partition('class="lead"')[2].partition("</svg>")[0]
    assert 'class="ungraded"' in lead
    assert 'class="failed"' not in lead


def test_a_judge_of_a_panel_that_gave_no_vote_is_named_wherever_people_look() -> None:
    """The quorum lets the others decide: the votes are counted without it, and a tie is said."""

    def broken(_: object) -> str:
        raise RuntimeError("503 model is down")

    rubric = Rubric("x").expects("Thanks", id="thanks")
    yes, no = (Judge(ScriptedModel({"thanks": met})) for met in (True, False))
    panel = Panel([yes, no, Judge(broken)], aggregate="majority", quorum=2)
    result = grade("Thank you", rubric, panel)
    assert "1 of 2 votes pass (a tie, 1 judge gave none)" in str(result)
    (warning,) = result.warnings
    assert re.match("no vote of .*503 model is down", warning)
    assert f"2 × {warning}" in str(grade_many(["Thank you"] * 2, rubric, panel).collect())
    assert not grade("Thank you", rubric, Panel([yes, yes], aggregate="majority")).warnings


@each_row(
    ("said", "line", "result"),
    [
        (False, "✓ Promises a gift (not found): 1.00 (no)", "1.00 (not found)"),
        (True, "✗ Promises a gift (found), gate failed: 0.00 (yes)", "0.00 (found)"),
    ],
)
def test_a_guard_says_whether_it_was_found(said: bool, line: str, result: str) -> None:
    """A mark beside its text alone would say the opposite, in `explain` and in the tables of reports."""
    grade_ = grade("Hello", Rubric("r").forbids("Promises a gift"), lambda _: json.dumps({"verdict": said}))
    assert grade_.explain() == line
    assert RowBuilder().of(grade_).entries[0].result == result


def test_a_penalty_that_takes_nothing_off_was_not_found() -> None:
    """It has a mark like all that is well."""
    rubric = Rubric("r").penalizes("Is rude", points=1).expects("Greets").by_points()
    result = grade("Hello", rubric, judge_function(lambda _, criterion: criterion.id == "greets"))
    assert result.explain().startswith("✓ Is rude (not found): ")


@each_row(("said", "meant"), [("failed", "fail"), ("passed", "pass"), ("Success", "pass"), ("error", "ungraded")])
def test_a_verdict_that_is_compared_with_a_word_for_another_warns(said: str, meant: str) -> None:
    """It is never equal, and the warning has the word that is."""
    verdict: str = grade("Hello", Rubric("r").checks("a"), "offline").verdict
    with pytest.warns(UserWarning, match=f"no verdict is '{said}'; write verdict == '{meant}'"):
        assert verdict != said


def test_a_verdict_is_a_text_like_any_other() -> None:
    """Compared with verdicts, and with words that mean none, it says nothing; it is hashed, stored and sent as text."""
    verdict: str = grade("Hello", Rubric("r").checks("a"), "offline").verdict
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (verdict == "fail", verdict != "pass", verdict in ("C", "I"), {"fail": 1}[verdict]) == (
            True,
            True,
            False,
            1,
        )
        assert verdict.__reduce__() == (str, ("fail",))
        assert json.dumps(verdict) == '"fail"'


LEVELS = {1: "None", 2: "A topic, no thesis", 3: "Vague", 4: "Clear"}
ESSAY = Rubric("essay").rates("Thesis", LEVELS, id="thesis").chooses("Which tone?", {"cold": 0, "warm": 1}, id="tone")


@pytest.mark.parametrize(
    ("criterion", "said", "words", "advice"),
    [
        (
            ESSAY["thesis"],
            2,
            "2: A topic, no thesis",
            '2 of 1..4, "A topic, no thesis"; better: 3, "Vague" (as scripted)',
        ),
        (ESSAY["thesis"], 1, "1: None", '1 of 1..4, "None"; better: 2, "A topic, no thesis" (as scripted)'),
        (ESSAY["thesis"], 4, "4: Clear", ""),
        (ESSAY["tone"], Says("cold"), "cold", '"cold"; better: "warm" (as scripted)'),
        (ESSAY["tone"], Says("warm"), "warm", ""),
        (Criterion("Is clear", levels=(1, 5)), 3, "3", "3 of 1..5 (as scripted)"),
        (
            Criterion("Is clear", levels={0: "no way in", 10: "at once"}),
            7,
            "7: between 0 (no way in) and 10 (at once)",
            '7 of 0..10, "between 0 (no way in) and 10 (at once)"; better: 10, "at once" (as scripted)',
        ),
        (
            Criterion("Is clear", levels={"0-3": "poor", "4-6": "fair", "7-10": "good"}),
            2,
            "2: poor",
            '2 of 0..10, "poor"; better: 4-6, "fair" (as scripted)',
        ),
        (
            Criterion("Is rude", polarity="guard", levels={0: "no", 1: "a bit", 2: "very"}),
            2,
            "2: very",
            '2 of 0..2, "very"; better: 1, "a bit" (as scripted)',
        ),
    ],
)
def test_the_level_that_was_given_is_told_with_its_words(criterion: Any, said: Any, words: str, advice: str) -> None:
    """Text and Markdown say the level or the choice; the author is told it too, and the next better one."""
    result = grade("Hi", Rubric("essay", criteria=[criterion]), judge(**{criterion.id: said}))
    assert f"{words})" in str(result)
    assert f"({words})" in result.to_markdown()
    assert result.feedback().partition(f"{criterion.text}: ")[2] == advice


def test_judges_who_disagree_are_quoted_with_their_levels() -> None:
    """The level that each says stands in the line, and the author is told the lowest."""
    judges = [
        judge(thesis=2, tone=Says("cold")),
        judge(thesis=1, tone=Says("warm")),
        judge(thesis=1, tone=Says("warm")),
    ]
    result = grade("Hi", ESSAY, Panel(judges))
    assert "2 of 3 say 1: None: as scripted; 1 of 3 say 2: A topic, no thesis: as scripted" in str(result)
    assert '1 of 1..4, "None"; better: 2, "A topic, no thesis"' in result.feedback()
    assert "1 of 3 say cold" in str(result)
    assert "1.00 (2: " not in result.to_markdown()
    assert "(2: A topic, no thesis) as scripted" in result.to_markdown()
