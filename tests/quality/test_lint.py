"""What is wrong with a rubric, found without a judge: every rule on what it is for, and on what it must leave alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rubric
from rubric import (
    Anchor,
    Case,
    Contains,
    Criterion,
    DefinitionError,
    Equals,
    Rubric,
    ScoreRange,
    StartsWith,
    Suite,
    ask,
    dumps,
    grade,
    lint,
    loads,
)
from rubric.__main__ import main
from tests.places import ROOT, SHARED
from tests.rows import each_row

R = Rubric("r", threshold=0.6)

WRONG: dict[str, list[Rubric]] = {
    "never-fails": [Rubric("r", threshold=0).expects("Cites a law"), Rubric("r").chooses("Tone", {"warm": 0.8, "kind": 1})],
    "never-passes": [Rubric("r", threshold=0.9).chooses("Tone", {"cold": 0, "kind": 0.8})],
    "no-effect": [Rubric("r", threshold=0.8).requires("Names the date").expects("Warm", weight=3).expects("Has a number", weight=0.5)],
    "gate-never-fires": [R.expects("b").chooses("Tone", {"ok": 0.7, "kind": 1}, min_score=0.5)],
    "gate-always-fires": [R.expects("b").chooses("Tone", {"cold": 0, "ok": 0.4}, required=True)],
    "vacuous-pass": [R.expects("Cites a law", when=lambda _: True)],
    "same-leaves": [Rubric.deciding(ask("Is it short?").yes(ask("Is it kind?").yes(1).no(1)).no(0))],
    "asked-twice": [Rubric.deciding(ask("Is it short?").yes(ask("is it  short").yes(1).no(0.2)).no(0))],
    "checks-exclude": [
        R.checks(Equals("yes"), required=True).checks(Contains("because"), required=True),
        R.checks(Contains("a price of 5"), required=True).checks(Contains("price"), polarity="guard"),
        R.checks(StartsWith("Dear"), required=True).checks(StartsWith("Hello"), required=True),
    ],
    "anchor-off-scale": [
        R.expects("Kind", anchors=[Anchor("Hi", 0.5)]),
        R.rates("Clear", ScoreRange(1, 5), anchors=[Anchor("Hi", 0.6)]),
    ],
    "own-scale": [
        R.expects("Score 1-5 where 5 is perfect"),
        R.scores("Rate the reply on a scale of 1 to 10."),
        R.expects("Is it kind? Give a score out of 10."),
        R.scores("How kind is it?\nScoring:\n1: rude\n3: neutral\n5: kind"),
        Rubric.of("Rate the tone from 0 to 100."),
        R.rates("Rate it from 0 to 10", ScoreRange(1, 5)),
        R.scores("Evaluate the reply on:\n1. Accuracy (0-10)\n2. Tone (0-10)"),
        R.expects("Assess it:\n- Evidence (1-5): are claims supported?\n- Clarity (1-5): is it plain?"),
        R.scores("Is it kind?\nScore 1: rude\nScore 3: neutral\nScore 5: kind"),
        R.scores("After your explanation, please rate the response on a scale of 1 to 10."),
        R.scores("Be objective. Rate the response on a scale from one to ten."),
        R.scores("Evaluate the output on a scale of **0 to 5** and explain."),
        R.scores("Score how modern it looks,\nfrom the first page on, on a 0-10 scale."),
        R.expects("Rate from 1 (bad) to 10 (good)"),
        R.expects("Is it kind? (score 1-5)"),
        R.expects("Use a 1-5 scale to grade the tone"),
        R.expects("How friendly is the tone? (out of 10)"),
        R.expects("回答の丁寧さを1から5で評価してください"),
        R.scores("正確さを5段階で評価する"),
        R.scores("10点満点で採点してください"),
        R.expects("请按1-5分评分"),
        R.scores("评价语气,满分10分"),
        R.expects("Clarity (1-5)"),
        R.expects("Tone and style (0-10 points)"),
        R.expects("Clarity /10"),
        R.expects("Is it clear? 0-5 points"),
        R.expects("Give 0-5 points for clarity"),
        R.expects("How clear is it, on a scale of 1 to 7?"),
        R.expects("Politeness on a 5-point Likert scale"),
        R.expects("Clarity (1 = bad, 5 = good)"),
        R.scores("1 (worst) to 5 (best)"),
        R.expects("五段階で評価"),
        R.expects("清晰度\uff081-5分\uff09"),
        R.expects("满分一百分"),
    ],
    "scale-upside-down": [
        R.rates("Is clear", {1: "perfect", 5: "unusable"}),
        R.rates("Is clear", {0: "Excellent: a newcomer could act on it", 5: "so so", 10: "Useless"}),
        R.chooses("Tone", {"Good": 0, "so so": 0.5, "Rude": 1}),
        R.rates("明確さ", {1: "優れた回答", 5: "劣る回答"}),
        R.rates("清晰", {1: "完美", 5: "很差"}),
    ],
    "own-format": [
        R.expects("The reply is kind. Output PASS if so, otherwise FAIL."),
        R.scores('Is it kind? Return JSON: {"score": 0.5}'),
        R.expects('Is it kind? Answer only "yes" or "no".'),
        R.expects("Is it kind? Return pass=true or pass=false."),
        R.expects('Respond with only "PASS" or "BLOCK".'),
        R.expects("Compare the two texts and respond with ONLY 'pass' or 'fail'."),
        R.expects("Is it polite? You must reply yes or no."),
        R.expects("Is it short? Reply with ONLY a single number."),
        R.expects("Is it short? Return JSON with a verdict."),
    ],
    "guard-prescribes": [
        R.forbids("Should not mention a price"),
        R.forbids("The response must not mention a price"),
        R.forbids("Never promises a refund"),
        R.forbids("You must not lie"),
        Rubric("r").expects("Kind").penalizes("Avoid jargon").by_points(),
        Rubric("r", negate=True).expects("Should not mention a price"),
    ],
    "duplicate": [
        R.expects("Cites the law.").expects("cites a law", id="again"),
        R.expects("Cites the law").forbids("cites the law!", id="again"),
        R.checks(Contains("law")).checks(Contains("law"), id="again"),
        R.checks(Contains("the law")).checks(Contains("law")),
    ],
    "opposites": [
        R.requires("Mentions a price").requires("Does not mention a price"),
        R.requires("The reply cites a source").requires("It cites no source"),
        Rubric("r").expects("Is short").expects("The answer is not short").strictly(),
        R.requires("Is under 100 words").requires("Has more than 200 words"),
        R.requires("Is between 5 and 10 sentences").requires("Is it no longer than four sentences?"),
    ],
    "left-over": [
        R.expects("Names the price. TODO: which one?"),
        R.expects("TBD"),
        R.expects("TODO: say what is judged"), R.expects("Mentions [your product name here]"),
        R.expects("Says that it arrives on {{ day }}"),
        R.expects("Follows the policy of ${REGION}"),
    ],
    "evidence-elsewhere": [R.expects("b").includes(Rubric("tone", ["Is polite", "Is warm"])).with_evidence()],
    "weight-left-out": [R.expects("a", weight=0.3).expects("b", weight=0.4).expects("c")],
}  # fmt: skip

RIGHT: list[Rubric] = [
    R.scores("Rate the tone from 0 to 1"),
    R.scores("Score of 0.5: a smile. Score of 1.0: laughter."),
    R.expects("Responds with a proper haiku (5-7-5 syllables)"),
    R.expects("Gives 3 to 5 examples"),
    R.expects("Says that the hotel has a rating of 4 out of 5"),
    R.expects("Rates each film on a scale of 1 to 5"),
    R.expects("The years 1990-1995 are covered"),
    R.expects("Covers:\n1. The war (1914-1918)\n2. The peace (1919-1920)"),
    R.expects("Evaluate whether it lists:\n- The first part (pages 1-2)\n- The second part (pages 3-4)"),
    R.scores("Score 1 if it names the cause, score 0 otherwise."),
    R.scores("Score 1 if it names 2-3 causes, else 0"),
    R.expects("Score the essay's use of 1-5 citations"),
    R.expects("Says that the final score was 2-1"),
    R.expects("Grade level is 6-8"),
    R.expects("Asks the user to rate the film on a scale of 1 to 5"),
    R.expects('The reply is {"score": 3, "reason": "late"}'),
    R.expects("Return JSON"),
    R.expects('The assistant replies with only "YES" when the box is ticked'),
    R.expects('Keeps the comment "TODO: refactor" as it was'),
    R.expects("Contains no placeholders such as [your name]"),
    R.expects("Replaces [insert date] by the date of the meeting"),
    R.forbids("Never answers the question"),
    R.forbids("Cannot be understood without the manual"),
    R.forbids("Content that should not be shared is shared"),
    R.forbids("Steps the user should not skip are missing"),
    R.expects("Uses C").expects("Uses C++", id="cpp"),
    R.expects("x > 5", id="above").expects("x < 5", id="below"),
    R.expects("The sky is blue").adding(Criterion("The sky is blue", id="against", polarity="contradiction")),
    R.expects("Cites a law", when=lambda _: True)
    .expects("Cites a law", id="b", weight=2, when=lambda _: False)
    .expects("c"),
    R.expects("a", weight=0.5).expects("b", weight=0.5).expects("c"),
    R.scores("Score 0-1. 1 means that every step can be taken as written."),
    R.expects("FAIL if only blogs are cited.\nPASS example: Moo, The Letter to the Romans, 1996."),
    R.expects("Sets passed=true in the returned object"),
    Rubric("r", negate=True).forbids("Never promises a refund"),
    R.rates("Rate it from 1 to 5", ScoreRange(1, 5)),
    R.expects("The program prints JSON"),
    R.expects("Returns the user to the home page"),
    R.expects("Answers no more than was asked"),
    R.expects("Scores at least 8 (out of 10) in the test"),
    R.expects("The film got 8 (out of 10)"),
    R.expects("Summarises chapters (1-5)"),
    R.expects("Covers week (1-5)"),
    R.expects("1 to 3 points are made for each side"),
    R.expects("Rates films on a scale of 1 to 5"),
    R.expects("Lists the first steps (0-5)."),
    R.expects("Says that it was built in 5 /10 of the time"),
    R.expects("Names the team that won 3 out of 5"),
    R.expects("会议持续1到5分钟"),
    R.expects("10から15分で読める"),
    R.requires("Is under 100 words").requires("Has at least 50 words", id="some"),
    R.requires("Is under 100 words").requires("Has more than 200 characters"),
    R.expects("3〜5文で書かれている"),
    R.expects("1〜5の商品を評価している"),
    R.expects("第1から3章を要約する"),
    R.expects("人口在1到5万之间"),
    R.expects("正确列出1-5号选手"),
    R.requires("Mentions a price").expects("Does not mention a price", id="other"),
    R.requires("Promises a refund").requires("Does not promise an upgrade"),
    R.requires("Mentions a price", when=lambda _: True).requires("Does not mention a price", id="other").expects("c"),
    R.forbids("Mentions a price"),
    R.forbids("Promises never to call again"),
    R.expects("Should not mention a price"),
    R.expects("Cites the law").expects("Cites the case"),
    R.checks(Contains("law")).checks(Contains("court")),
    R.expects("Keeps the list of TODO items"),
    R.expects("a", weight=1).expects("b", weight=2).expects("c", weight=0.5),
    R.expects("Kind", anchors=[Anchor("Hi", 1)]),
    R.chooses("Tone", {"cold": 0, "ok": 0.6, "kind": 1}, anchors=[Anchor("Hi", 0.6)]),
    R.requires("Cites a law").expects("b", weight=0),
    R.expects("b").chooses("Tone", {"cold": 0, "kind": 1}, min_score=0.5),
    R.expects("a", when=lambda _: True).expects("b"),
    Rubric.deciding(ask("Is it short?").yes(ask("Is it kind?").yes(1).no(0.5)).no(0)),
    Rubric.of("Is the reply kind and correct?"),
]


@each_row(("rule", "rubric"), [(rule, rubric) for rule, some in WRONG.items() for rubric in some])
def test_each_rule_finds_what_it_is_for(rule: str, rubric: Rubric) -> None:
    """Each wrong rubric gets its rule's remark, with a message and a cure."""
    found = lint(rubric)
    also = {"gate-never-fires": ["no-effect"], "gate-always-fires": ["never-passes"]}.get(rule, [])
    assert [remark.rule for remark in found] == [*also, rule]
    assert found[0].message
    assert found[0].cure
    assert not found.ok


@each_row("rubric", RIGHT, ids=[f"{n}-{rubric.judged[0].id}" for n, rubric in enumerate(RIGHT)])
def test_clean_rubrics_have_no_remarks(rubric: Rubric) -> None:
    """Rubrics near to a mistake that are right get no remark."""
    assert [str(remark) for remark in lint(rubric)] == []


@pytest.mark.parametrize(
    ("rule", "cure"),
    [
        ("no-effect", "raise its weight, make it required, or give it a weight of 0 to show it only"),
        ("guard-prescribes", "as in 'Mentions a price', or expect its absence: 'Mentions no price'"),
        ("weight-left-out", "give it a weight of 0.3"),
    ],
)
def test_the_cure_for_a_file_has_no_call(rule: str, cure: str, tmp_path: Path) -> None:
    """It is said in words that hold for a file and for code."""
    file = tmp_path / "rubric.yaml"
    file.write_text(dumps(WRONG[rule][0]))
    assert cure in next(one.cure for one in lint(file, hints=True) if one.rule == rule)


def test_a_check_that_is_asked_twice_is_told_of_once() -> None:
    """Of three equal checks each later one has one remark, letter case aside."""
    rubric = R.checks(Contains("law"), id="first").checks(Contains("LAW", ignore_case=True), id="any")
    found = lint(rubric.checks(Contains("law"), id="again"))
    assert [(one.rule, one.criterion) for one in found] == [("duplicate", "again"), ("duplicate", "first")]


@each_row(
    ("text", "is_step"),
    [
        ("Check whether the facts in 'actual output' contradict any facts in 'expected output'", True),
        ("1. Determine if the tone is harsh", True),
        ("You should also heavily penalize omission of detail", True),
        ("Checks whether the customer has more questions", False),
        ("Penalizes nobody", False),
        ("Says whether the shop is open", False),
    ],
)
def test_a_step_of_another_system_is_no_statement(text: str, is_step: bool) -> None:
    """A yes to it may mean that a fault was found."""
    found = lint(R.expects(text), hints=True)
    assert [remark.rule for remark in found] == ["orders-the-judge"] * is_step
    assert all("good answer does, as in" in each.cure and "a bad one does: " in each.cure for each in found)
    assert lint(R.scores(text), hints=True).ok


def test_hints_are_shown_on_request_and_fail_nothing() -> None:
    """Vague texts are hints only, and a result with hints is ok."""
    vague = R.expects("The response is helpful and correct").forbids("Does not cite a law")
    assert not lint(vague)
    found = lint(vague, hints=True)
    assert [remark.rule for remark in found] == ["says-nothing", "guard-states-absence"]
    assert found.ok


@each_row(
    "text",
    [
        "Has at most 100 words",
        "The response is under 200 words long.",
        "Contains the word 'refund'",
        'The answer mentions the phrase "thank you"',
        "It is no more than three sentences",
        "Contains an ISO date",
        "Is valid JSON",
        "Agent returns valid JSON",
        "Is the answer between 50 and 100 words?",
        "The summary is 100 words or fewer",
        "The reply must not exceed 280 characters",
        "Isn't longer than 3 paragraphs",
        "Answer in at most 50 words",
        'Starts with "Dear"',
        "Does the answer mention 'refund'?",
        "Never uses the word 'cheap'",
        'Contains the words "yes" or "no"',
        "Gives the date as YYYY-MM-DD",
        "The date is written in ISO 8601 format",
        "Ends with a question mark",
        "Contains no exclamation marks",
        "Contains a URL",
        "Is all lowercase",
        "回答は100文字以内",
        "回答不超过100字",
    ],
)
def test_what_code_counts_without_error_is_hinted_at(text: str) -> None:
    """A length, an exact wording or a form, if the text asks for nothing else."""
    assert [one.rule for one in lint(R.expects(text).expects("Cites a law", id="other"), hints=True)] == [
        "code-decides"
    ]
    for more in (f"{text} and is polite", f"Explains why it {text.lower()}"):
        assert not lint(R.expects(more, id="a").expects("Cites a law", id="other"), hints=True)


@each_row(
    ("text", "kept", "broken"),
    [
        ("Is at most 3 words long", "a b c", "a b c d"),
        ("Has more than two lines", "a\nb\nc", "a\nb"),
        ("Has fewer than 1,000 characters", "a", "a" * 1000),
        ("Contains the word 'Paris'", "In Paris.", "In Rome."),
        ('Starts with the phrase "Dear"', "Dear Ada", "Ada, dear"),
        ("Ends with the text 'Bye'", "Bye", "Bye, Ada"),
        ("Is valid JSON", "[1]", "[1"),
        ("Contains an ISO date", "On 2026-01-02.", "On Friday."),
        ("Is between two and 3 words", "a b c", "a"),
        ("Does not exceed 3 words", "a b c", "a b c d"),
        ("Is 3 words or more", "a b c", "a b"),
        ("Never mentions 'Rome'", "In Paris.", "In Rome."),
        ("Mentions 'Rome' and 'Paris'", "Paris, Rome", "Rome"),
        ("Is exactly 'Rome'", "Rome", "In Rome"),
        ("Ends with a question mark", "Why?", "Why? So."),
        ("Contains no exclamation marks", "Why?", "Why!"),
        ("Is all lowercase", "why", "Why"),
        ("回答は3文字以内", "東京都", "東京都区"),
    ],
)
def test_the_code_that_is_hinted_at_asks_what_the_text_asks(text: str, kept: str, broken: str) -> None:
    """The number, the comparison, the unit and the words are those of the criterion; the call is run as it is printed."""
    (hint,) = lint(R.expects(text).expects("Cites a law", id="other"), hints=True)
    known: dict[str, Any] = {"R": Rubric("r")}
    exec("from rubric import Contains, ContainsAll, EndsWith, Equals, IsJSON, Matches, StartsWith", known)  # noqa: S102
    made = eval(f"R.{hint.cure.removeprefix('use ')}", known)  # noqa: S307 - the line as it is printed
    assert [rubric.grade(said, made, "offline").passed for said in (kept, broken)] == [True, False]


def test_a_scale_that_never_counts_in_full_is_hinted_at() -> None:
    """Of options and trees: the best answer below 1, the worst above 0."""
    found = lint(R.chooses("Tone", {"cold": 0.2, "kind": 0.9}).expects("Cites a law"), hints=True)
    assert [one.message for one in found if one.rule == "ends-unreached"] == [
        "the best answer scores 0.9 and the worst answer scores 0.2, so that it never counts in full"
    ]
    assert not lint(R.chooses("Tone", {"cold": 0, "kind": 1}).rates("Clear", (1, 5)), hints=True)


def test_a_case_whose_reference_fails_its_own_check_is_found() -> None:
    """The remark names the criterion's place within the case."""
    suite = Suite("s", cases=[Case("c", rubric=R.checks(Contains("July")), input="When?", reference="In June.")])
    assert [(one.rule, one.place) for one in lint(suite)] == [("reference-fails", "cases[0].rubric.criteria[0]")]


def test_a_negated_check_that_the_reference_does_not_meet_is_right() -> None:
    """Negation and guards invert what a reference must meet."""
    checked = Rubric("no competitor", negate=True).checks(Contains("Acme"))
    outer = Rubric("r").includes(checked).includes(checked, id="only", polarity="guard")
    wrong, right = (Case(id_, rubric=one, reference="Ours is best.") for id_, one in (("w", outer), ("r", checked)))
    assert not lint(Suite("s", cases=[right]))
    found = lint(Suite("s", cases=[wrong]))
    assert [one.place for one in found if one.rule == "reference-fails"] == [
        "cases[0].rubric.criteria[1].answer.criteria[0]"
    ]


def test_an_output_that_repeats_the_question_and_passes_is_hinted_at() -> None:
    """A check that the input already meets is a hint."""
    suite = Suite("s", cases=[Case("c", rubric=R.checks(Contains("Paris")), input="Is Paris big?")])
    assert [one.rule for one in lint(suite, hints=True)] == ["question-passes"]


def test_a_rubric_that_cases_share_is_told_of_once() -> None:
    """One rubric in two cases gets one remark and counts as one."""
    bad = R.expects("Score 1-5 where 5 is perfect")
    found = lint(Suite("s", cases=[Case("a", rubric=bad, input="x"), Case("b", rubric=bad, input="y")]))
    assert (len(found), found.rubrics) == (1, 1)


def test_a_rubric_within_a_rubric_is_looked_at() -> None:
    """The place leads into the nested rubric."""
    inner = Rubric("inner").expects("Score 1-5 where 5 is perfect")
    found = lint(R.includes(inner))
    assert [(one.rule, one.place) for one in found] == [("own-scale", "criteria[0].answer.criteria[0]")]


FILE = """\
rubric: reply
threshold: 0.8
criteria:
  - Names the date
  - text: Warm
    weight: 3
  # lint: allow no-effect: shown to reviewers only
  - text: Has a number
    weight: 0.5
  - text: Score 1-5 where 5 is perfect
    weight: 0
"""


def test_a_remark_names_the_line_of_its_criterion(tmp_path: Path) -> None:
    """The place is file, line and column."""
    file = tmp_path / "reply.yaml"
    file.write_text(FILE.replace("# lint: allow", "# we allow"))
    assert [(one.rule, one.place) for one in lint(file)] == [
        ("no-effect", f"{file}:8:11"),
        ("own-scale", f"{file}:10:11"),
    ]


TWINS = """\
rubric: Warm
threshold: 1
criteria:
  - Warm
  - {id: again, text: Warm}
  - text: Kind
    anchors:
      - {response: Hi there, score: 0.5}
      - {response: Hello, score: 1}
tests:
  - {reply: Hello, passes: true}
"""


def test_each_of_two_like_texts_has_its_own_place_and_an_example_too(tmp_path: Path) -> None:
    """Equal criteria and anchors each point at their own line."""
    file = tmp_path / "reply.yaml"
    file.write_text(TWINS)
    assert [(one.rule, one.place.removeprefix(f"{file}:")) for one in lint(file)] == [
        ("anchor-off-scale", "8:20"),
        ("test-is-anchor", "11:13"),
        ("duplicate", "5:23"),
    ]


def test_what_is_wrong_with_the_whole_rubric_is_told_of_at_its_threshold(tmp_path: Path) -> None:
    """A rubric that never fails is reported at `threshold`."""
    file = tmp_path / "reply.yaml"
    file.write_text("rubric: r\nthreshold: 0\ncriteria: [Warm]\n")
    assert [(one.rule, one.place) for one in lint(file)] == [("never-fails", f"{file}:2:1")]


PROMPTFOO = """\
prompts: ["{{q}}"]
providers: [echo]
defaultTest:
  assert:
    - {type: llm-rubric, value: "Is {{q}} answered? Score 1-5."}
tests:
  - vars: {q: Paris}
    assert:
      - {type: contains, value: law}
      - {type: contains, value: law}
  - vars: {q: Rome}
    assert:
      - {type: not-llm-rubric, value: Must not mention a price}
"""


def test_the_places_in_a_suite_are_those_of_each_case(tmp_path: Path) -> None:
    """Every remark points into its own test of the file."""
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(PROMPTFOO)
    found = {(one.rule, one.place.removeprefix(f"{file}:")) for one in lint(file)}
    assert found == {("own-scale", "5:33"), ("duplicate", "10:33"), ("guard-prescribes", "13:39")}


def test_a_text_that_looks_like_a_waiver_is_none(tmp_path: Path) -> None:
    """Only a comment waives; quoted text and block text do not."""
    file = tmp_path / "reply.yaml"
    said = "Score 1-5. # lint: allow own-scale: quoted"
    block = f"    text: |\n      {said}\n    # lint: allow left-over: after a block\n  - 'TODO: write'\n"
    file.write_text(f'rubric: r\nthreshold: 0.5\ncriteria:\n  - "{said}"\n  - id: b\n{block}')
    found = lint(file)
    assert [one.rule for one in found] == ["own-scale", "own-scale", "duplicate"]
    assert [one.rule for one in found.waived] == ["left-over"]


def test_a_comment_waives_a_remark_with_a_reason(tmp_path: Path) -> None:
    """The waived remark is listed with its reason."""
    file = tmp_path / "reply.yaml"
    file.write_text(FILE)
    found = lint(file)
    assert [one.rule for one in found] == ["own-scale"]
    assert [(one.rule, one.waived) for one in found.waived] == [("no-effect", "shown to reviewers only")]


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("# lint: allow no-effect", "a waiver needs a reason"),
        ("# lint: allow no-efect: so", "did you mean 'no-effect'"),
    ],
)
def test_a_waiver_without_a_reason_or_a_rule_is_refused(tmp_path: Path, comment: str, message: str) -> None:
    """The error asks for the reason or names the nearest rule."""
    file = tmp_path / "reply.yaml"
    file.write_text(FILE.replace("# lint: allow no-effect: shown to reviewers only", comment))
    with pytest.raises(DefinitionError, match=message):
        lint(file)


def test_metadata_waives_a_remark_in_code() -> None:
    """`metadata["lint"]` waives as a comment does."""
    waived: dict[str, Any] = {"lint": {"own-scale": "the people who label use it too"}}
    found = lint(R.expects("Score 1-5 where 5 is perfect", metadata=waived))
    assert not found
    assert len(found.waived) == 1


def test_what_is_no_rubric_is_refused() -> None:
    """A number is a definition error that says what lint takes."""
    with pytest.raises(DefinitionError, match="expected a Rubric, a Suite, or the path"):
        lint(3)  # type: ignore[arg-type]


def test_remarks_are_plain_data_for_json() -> None:
    """Sentence and rules survive JSON."""
    data = json.loads(json.dumps(lint(R.expects("TODO: write this")).to_dict()))
    assert data["sentence"] == "1 warning in 1 rubric."
    assert data["remarks"][0]["rule"] == "left-over"


def test_the_command_exits_with_1_where_something_is_wrong_and_2_where_a_file_cannot_be_read(tmp_path: Path) -> None:
    """A clean file ends with 0, and each warning has its place."""
    good, bad, broken = (tmp_path / name for name in ("good.yaml", "bad.yaml", "broken.yaml"))
    good.write_text("rubric: r\ncriteria: [Cites a law]\n")
    bad.write_text(FILE)
    broken.write_text("rubric: [")
    run = CliRunner()
    assert run.invoke(main, ["lint", str(good)]).exit_code == 0
    said = run.invoke(main, ["lint", str(good), str(bad)])
    assert said.exit_code == 1
    assert f"{bad}:10:11: warning: 'score-1-5-where-5-is-perfect': the text asks for a score of 1 to 5" in said.output
    assert run.invoke(main, ["lint", str(broken), str(good)]).exit_code == 2


def test_the_command_explains_what_decides(tmp_path: Path) -> None:
    """`explain` prints the sentence, or the shares as JSON."""
    file = tmp_path / "reply.yaml"
    file.write_text("rubric: r\nthreshold: 0.9\ncriteria: [Cites a law, Names the date]\n")
    assert "Passes only if all 2 hold." in CliRunner().invoke(main, ["explain", str(file)]).output
    said = CliRunner().invoke(main, ["explain", str(file), "--format", "json"]).output
    assert [one["share"] for one in json.loads(said)[0]["criteria"]] == [0.5, 0.5]


def test_files_that_people_published_have_only_remarks_that_are_right() -> None:
    """A published file with a scale in its text gets that one remark."""
    if not SHARED.is_dir():
        pytest.skip("the published files are kept outside of the project")
    file = SHARED / "trees" / "promptfoo-examples" / "multiple-translations" / "promptfooconfig.yaml"
    assert {remark.rule for remark in lint(file)} == {"own-scale"}


def built_by(page: str) -> Rubric:
    """Return the rubric that the first example of a page builds."""
    example = re.search(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    assert example
    namespace: dict[str, Any] = {}
    exec(example[1], namespace)  # noqa: S102 - our own page
    rubric = namespace["support_reply"]
    assert isinstance(rubric, Rubric)
    return rubric


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_first_example_of_a_page_passes(page: str) -> None:
    """The rubric that the page builds is clean."""
    assert lint(built_by(page)).ok


FILES = [
    file
    for folder in ("docs/examples", "rubric/presets", "rubric/commands/starters")
    for file in sorted((ROOT / folder).glob("*.yaml"))
]


@each_row("file", FILES, ids=lambda file: file.name)
def test_the_files_that_we_ship_pass(file: Path) -> None:
    """Every rubric file of the package is clean."""
    assert lint(file).ok


def test_the_files_that_pages_show_pass() -> None:
    """Every rubric in YAML on a page of the documentation is clean."""
    shown = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    texts = [
        text for page in shown for text in re.findall(r"```yaml\n(rubric:.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    assert len(texts) > 1
    assert [remark for text in texts for remark in lint(loads(text))] == []


@each_row("part", ["score the a ", "please then and ", "1 - ", "\n", "1 (a) ", "judge the response ", "a, "])
def test_a_text_that_repeats_itself_is_read_to_its_end(part: str) -> None:
    """A pattern that tried all ways to divide it would not return."""
    long = Criterion("score it " + part * 20_000)
    assert isinstance(lint(Rubric(criteria=[long, "Is polite"])).to_dict(), dict)


@each_row(
    "wrong",
    [R.expects("Is polite").penalizes("Uses jargon"), R.expects("Is polite", weight=0)],
    ids=["a penalty in a mean", "no weight"],
)
def test_a_rubric_that_cannot_grade_is_refused_as_by_grade(wrong: Rubric) -> None:
    """It is not clean: `lint` and `dumps` raise what `grade` raises, with the cure in Python."""
    said = []
    for refuses in (lambda: grade("a", wrong, "offline"), lambda: lint(wrong), lambda: dumps(wrong)):
        with pytest.raises(DefinitionError) as caught:
            refuses()
        said.append(str(caught.value))
    assert len({*said}) == 1
