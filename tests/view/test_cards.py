"""Cards of results in notebooks, and pages of many: what they show, and that nothing in them runs."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Candidate,
    Contains,
    Criterion,
    DefinitionError,
    Grade,
    Grades,
    Judge,
    Jury,
    Panel,
    Rubric,
    Ungraded,
    ask,
    check,
    evaluate,
    grade_many,
    influence,
    lint,
    plan,
)
from rubric.driving import Failure
from rubric.embed import RowBuilder
from rubric.quality.lint import Remark, Remarks
from rubric.quality.lint_rules import RULES
from rubric.suites import Report
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.testing import ScriptedModel
from rubric.testing.scripted_model import Says
from rubric.view import html
from tests.browsers import Browser, Seen
from tests.drive import drive
from tests.examples import examples
from tests.findings import improvised, rubrics
from tests.reports import NASTY, PAYLOADS, REPORT
from tests.reports import hostile as hostile_report

if TYPE_CHECKING:
    from pathlib import Path

REPLY = Candidate("Your parcel is in Oslo.", input="Where is it?", key="ticket-7")
RUBRIC = (
    Rubric("support", evidence=True)
    .requires("Says where the parcel is", id="place")
    .expects("Cites an article", weight=2, id="cites")
    .passing_at(0.8)
)
TREE = Rubric.deciding(ask("Did it call?").yes(ask("Is it warm?").yes(1.0).no(0.4)).no(0.0))


def says(place: bool | None = True, cites: bool | None = False, reason: str = "because") -> Judge:
    quote = (REPLY.output[15:22],)
    lines: dict[str, Any] = {
        "place": Says(place, reason=reason, evidence=quote),
        "cites": Says(cites, reason=reason, evidence=quote)
        if cites is not None
        else Failure("refusal", "it would not"),
    }
    return Judge(ScriptedModel(lines), retries=0, repairs=0)


def seen(value: Any) -> Seen:
    return Seen(value._repr_html_())


# -- one result ------------------------------------------------------------------------------------------


def test_a_grade_shows_texts_weights_gates_threshold_candidate_and_key() -> None:
    """The card of a failed grade names everything that decided it."""
    text = seen(evaluate(REPLY, RUBRIC, says(place=False))).text
    for words in ("support · ticket-7", "Fails with 0.00, needs 0.80; failed by", "Says where the parcel is", "required",
                  "gate failed", "weight 2", "Where is it?", "Your parcel is", "because"):  # fmt: skip
        assert words in text


def test_evidence_is_marked_in_the_candidate() -> None:
    """The quote is one mark, to which the criterion links."""
    page = seen(evaluate(REPLY, RUBRIC, says()))
    assert len([tag for tag, _ in page.tags if tag == "mark"]) == 1
    (link,) = {attrs["href"] for tag, attrs in page.tags if tag == "a" and "href" in attrs}
    assert (link or "")[1:] in {attrs.get("id") for _, attrs in page.tags}


def test_the_votes_of_a_panel_are_counted_with_each_reason() -> None:
    """The card counts the votes, and only those that differ are unfolded."""
    judges = [says(cites=True, reason="one"), says(cites=True, reason="two"), says(reason="three")]
    page = seen(evaluate(REPLY, RUBRIC, Panel(judges, level="criterion", aggregate="majority")))
    for words in ("2 of 3 votes: met", "the judges disagree", "Votes: 2 of 3 pass", "one", "two", "three"):
        assert words in page.text
    folds = page.named("fold")
    assert ["open" in attrs for attrs in folds] == [False, True]  # only the votes that differ


def test_what_is_ungraded_shows_a_band_and_never_a_score() -> None:
    """The card shows the bounds, the threshold and the failure."""
    result = evaluate(REPLY, RUBRIC, says(cites=None))
    assert isinstance(result, Ungraded)
    page = seen(result)
    assert "Not graded: the score could be 0.33 to 1.00, needs 0.80 (undecided)." in page.text
    assert "it would not" in page.text
    assert len(page.named("may")) == 1


def test_the_tree_of_a_rubric_is_drawn_with_the_path_walked() -> None:
    """The walked questions and the leaf are marked, with the judge's reason."""
    result = evaluate(REPLY, TREE, Judge(ScriptedModel([0.9, Says(0.1, reason="It is curt.")])))
    page = seen(result)
    assert len(page.named("walked")) == 3
    assert "It is curt." in page.text


def test_a_result_in_plain_text_has_verdict_reasons_and_votes() -> None:
    """The first line is the verdict with its score; criteria and votes follow."""
    grade = evaluate(REPLY, RUBRIC, Panel([says(), says(cites=True)]))
    lines = str(grade).splitlines()
    assert lines[0] == "support: fail, 0.67, needs 0.80"
    assert lines[1] == "  ✓ Says where the parcel is: because"
    assert "  1 of 2 votes pass" in lines
    assert str(evaluate(REPLY, RUBRIC, says(cites=None))).startswith("support: ungraded, 0.33 to 1.00, undecided")


def test_markdown_is_what_a_notebook_falls_back_to() -> None:
    """`to_markdown` and the notebook's form agree for grades, collections and summaries."""
    grade = evaluate(REPLY, RUBRIC, says())
    assert grade.to_markdown() == grade._repr_markdown_()
    grades = Grades([grade])
    assert grades.to_markdown() == grades._repr_markdown_()
    assert grades.summary().to_markdown() == grades.summary()._repr_markdown_()


# -- transcripts -----------------------------------------------------------------------------------------


def test_a_kept_transcript_has_messages_replies_and_usage_by_criterion() -> None:
    """Each exchange has its criterion, messages, reply, usage and judge."""
    result = evaluate(REPLY, RUBRIC, says(), keep=True)
    assert [one.criteria for one in result.exchanges] == [("place",), ("cites",)]
    first = result.exchanges[0]
    assert "Your parcel is in Oslo." in first.messages[-1]["content"]
    assert '"verdict": true' in (first.text or "")
    assert (first.usage.calls, first.judge) == (1, "ScriptedModel")
    page = seen(result)
    assert "Transcript: 2 requests" in page.text
    assert '"verdict": true' in page.text


def test_repairs_votes_and_failures_are_in_the_transcript() -> None:
    """Garbled replies and failures are kept beside the ones that counted."""
    garbled = Judge(ScriptedModel(["what?", Says(True), Failure("refusal", "no"), Says(True)]), repairs=1, retries=0)
    plain = Rubric().expects("a").expects("b")
    result = evaluate("x y", plain, Panel([garbled, says()]), keep=True)
    texts = [one.text for one in result.exchanges if one.judge == "ScriptedModel"]
    assert "what?" in texts
    assert len(result.exchanges) > 3
    assert any(isinstance(one.outcome, Failure) for one in result.exchanges)


def test_a_store_keeps_the_transcript_unless_told_otherwise(tmp_path: Path) -> None:
    """One grade with a store keeps it, many grades need `keep=True`, and other values are refused."""
    assert len(evaluate(REPLY, RUBRIC, "offline", store=tmp_path / "s").exchanges) == 2
    assert not evaluate(REPLY, RUBRIC, "offline", store=tmp_path / "s", keep=False).exchanges
    assert not evaluate(REPLY, RUBRIC, "offline").exchanges
    (kept,) = grade_many([REPLY], RUBRIC, "offline", keep=True)
    assert len(kept.rescore(threshold=0.1).exchanges) == 2
    (bare,) = grade_many([REPLY], RUBRIC, "offline", store=tmp_path / "s")
    assert not bare.exchanges
    with pytest.raises(DefinitionError, match="keep: expected True, False, or None"):
        evaluate(REPLY, RUBRIC, "offline", keep="yes")  # type: ignore[arg-type]


# -- values ----------------------------------------------------------------------------------------------


def test_a_rubric_shows_criteria_gates_weights_trees_and_examples() -> None:
    """The card of a rubric also has guidelines, anchors and nested criteria."""
    from rubric import Anchor

    warm = Criterion("Is warm", anchors=[Anchor("Dear Ada", 1.0)], min_score=0.5)
    inner = Rubric("style").expects("No slang")
    whole = (
        evolve(RUBRIC, guidelines="Be kind.")
        .adding(warm)
        .decides("escalation", by=ask("Due?").yes(1).no(0))
        .includes(inner)
    )
    page = seen(whole)
    for words in (
        "5 criteria, pass at 0.8.",
        "Cites an article",
        "Dear Ada",
        "Be kind.",
        "Due?",
        "No slang",
        "evidence asked for",
    ):
        assert words in page.text
    assert len(page.named("gate")) == 2
    assert "2 leaves" in seen(ask("Due?").yes(1.0).no(0.0)).text


def test_a_plan_folds_the_exact_messages() -> None:
    """Each request is a fold with its text, under a line that nothing was sent."""
    planned = plan(REPLY, RUBRIC, says())
    page = seen(planned)
    assert len(page.named("fold")) == 2
    assert "Your parcel is in Oslo." in page.text
    assert "nothing has been sent" in page.text


def test_reports_and_comparisons_show_cards() -> None:
    """A report has a card per case, and a comparison counts the unchanged ones."""
    assert len(seen(REPORT).named("case")) == 4
    assert "3 same" in seen(REPORT.against(evolve(REPORT, rows=REPORT.rows[1:]))).text


def test_an_influence_shows_its_share_beside_the_weight() -> None:
    """Each criterion has a row, with its weight and whether it can matter."""
    page = seen(influence(RUBRIC))
    for words in ("decides", "weight", "can matter", RUBRIC.ids[0]):
        assert words in page.text


def test_remarks_show_level_place_and_cure_and_what_is_waived() -> None:
    """A clean rubric says so, and waived remarks stand in a table of their own with their reasons."""
    rubric = Rubric("r").expects("Score 1-5 how polite it is", id="polite")
    page = seen(lint(rubric))
    for words in ("1 warning in 1 rubric.", "criteria[0]", "own-scale", "the text asks for a score"):
        assert words in page.text
    allowed = {"lint": {"own-scale": "as agreed"}}
    waived = seen(lint(evolve(rubric, criteria=[evolve(rubric.criteria[0], metadata=allowed)])))
    assert "as agreed" in waived.text
    assert "Nothing wrong in 1 rubric, 1 waived." in waived.text


def test_the_plan_of_a_suite_shows_each_case_and_what_is_deferred() -> None:
    """Each case says where its response comes from."""
    suite = Suite("s", [Case("a", RUBRIC, output="x"), Case("b", RUBRIC)])
    page = seen(suite.plan(says()))
    for words in ("2 cases, 1 deferred, 4 calls", "nothing has been sent", "fixed response", "no response, and no"):
        assert words in page.text


def test_the_tests_of_a_rubric_show_what_is_not_as_expected() -> None:
    """Each test has a row with its status and what was not as expected."""
    rubric = RUBRIC.tested_by("In Oslo. " * 20, passes=True).tested_by("Gone.", fails=["place"])
    page = seen(check(evolve(rubric, evidence=False), Judge(ScriptedModel(lambda ask: "Oslo" in ask.candidate))))
    assert "2 of 2 tests passed" in page.text
    assert page.text.count("passed") == 3  # the sentence, and each test
    failing = seen(check(evolve(rubric, evidence=False), Judge(ScriptedModel(lambda _: False))))
    assert "the grade does not pass" in failing.text


def test_a_long_table_shows_the_first_rows_and_how_many_more() -> None:
    """The table ends at its limit with a count of the rest."""
    page = seen(Suite("s", [Case(str(n), RUBRIC, output="x") for n in range(html.MOST_ROWS + 7)]).plan(says()))
    assert len([tag for tag, _ in page.tags if tag == "tr"]) == html.MOST_ROWS + 1
    assert "and 7 more" in page.text


# -- many ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def grades() -> Grades:
    judges = [says(place=n != 1, cites=[True, False, None][n % 3]) for n in range(30)]
    return Grades(evaluate(evolve(REPLY, key=f"k{n}"), RUBRIC, judge) for n, judge in enumerate(judges))


def test_many_results_show_rates_scores_criteria_and_why_some_are_ungraded(grades: Grades) -> None:
    """The card of a collection counts each kind of failure once."""
    page = seen(grades)
    for words in (
        "10 of 20 grades pass.",
        "10 ungraded",
        "10 × refusal: it would not",
        "Cites an article",
    ):
        assert words in page.text
    assert len(page.named("case")) == 30
    many = seen(Grades([*grades, *grades]))
    assert len(many.named("case")) == 40
    assert '20 more: report("page.html")' in many.text
    assert page.named("chart")
    assert "10 of 20 grades pass." in seen(grades.summary()).text
    assert "Nothing was graded." in seen(Grades()).text


def test_a_report_that_is_no_page_is_refused(grades: Grades, tmp_path: Path) -> None:
    """The error says that the file ends in .html."""
    with pytest.raises(DefinitionError, match=r"ends in \.html"):
        grades.report(tmp_path / "page.csv")
    with pytest.raises(
        DefinitionError,
        match=r"from rubric\.suites import Report; Report\.of\(grades\)\.write\('run\.md'\)",
    ):
        grades.report("run.md")
    assert "| case | result |" in Report.of(grades).write(tmp_path / "run.md").read_text()


def test_results_are_shown_in_a_terminal_with_why_they_fell_short(
    grades: Grades, capsys: pytest.CaptureFixture[str]
) -> None:
    """`show` prints the first results with their unmet criteria and counts the rest."""
    grades.show(5)
    shown = capsys.readouterr().out
    assert "k4: support: fail, 0.33, needs 0.80\n  ✗ Cites an article: because" in shown
    assert "and 25 more" in shown


def test_results_are_plotted_by_altair(grades: Grades) -> None:
    """The scores with the threshold stand above the criteria with their figures, and other charts below."""
    drawn = grades.plot().to_dict()
    assert len(drawn["vconcat"]) == 2
    assert "threshold 0.8" in str(drawn)
    assert len(grades.plot(grades).to_dict()["vconcat"]) == 3
    one = str(grades[0].plot().to_dict())
    assert all(criterion.text in one for criterion in grades[0].rubric.criteria)
    assert "threshold 0.8" in one


@given(rubrics(), st.integers(), st.sampled_from([0, 0.3]))
@examples(30)
def test_any_result_has_a_card_of_the_same_few_tags(rubric: Rubric, seed: int, failing: float) -> None:
    """No rubric, panel or failure adds a tag, and every form can be shown."""
    panel = Panel([Jury(Judge(ScriptedModel(improvised((seed, n), failing=failing))), 2) for n in range(2)])
    result = drive(rubric, panel)
    page = seen(Grades([result]))
    assert {tag for tag, _ in page.tags} <= usual_tags()
    assert len(page.named("case")) == 1
    assert len(seen(result).named("card")) == 1
    assert seen(rubric).named("card")
    assert str(result)
    assert result.to_markdown()


@cache
def usual_tags() -> frozenset[str]:
    return frozenset(tag for card in hostile("plain") for tag, _ in Seen(card).tags) | {"a", "mark", "blockquote", "ol"}


# -- attacks ---------------------------------------------------------------------------------------------


def hostile(words: str) -> list[str]:
    """Return the cards of everything, with *words* in every text."""
    said = f"x {words}"
    rubric = evolve(RUBRIC.revising("cites", text=said), name=said, guidelines=said)
    rubric = rubric.decides(said, by=ask(said).yes(1, words or "x").no(0), id="tree")
    lines = {
        "place": Says(True, reason=said, evidence=(said,)),
        "cites": Says(False, reason=said),
        "tree": Says(1.0, reason=said),
    }
    candidate = Candidate(f"{words} {said}", input=said, key=said)
    grade = evaluate(candidate, rubric, Panel([Judge(ScriptedModel(lines)), Judge(ScriptedModel(lines))]), keep=True)
    failing = evaluate(
        candidate, rubric, Judge(ScriptedModel({"place": Failure("refusal", said)}), retries=0, repairs=0)
    )
    assert isinstance(grade, Grade)
    results = Grades([grade, failing])
    values: list[Any] = [grade, failing, results, results.summary(), rubric, plan(candidate, rubric, "offline")]
    report = hostile_report(words)
    rubric = rubric.tested_by(candidate, fails=["cites"])
    suite = Suite(said, [Case("c", rubric, output=said, judge=says()), Case("d", rubric, tags=[said])])
    judge = Judge(ScriptedModel(lambda _: Failure("refusal", said)), retries=0)
    values += [influence(rubric), lint(rubric, hints=True), suite.plan("offline"), check(rubric, judge, repeats=2)]
    waived = {"lint": dict.fromkeys(RULES, said)}
    values.append(lint(evolve(rubric, criteria=[evolve(c, metadata=waived) for c in rubric.criteria]), hints=True))
    values.append(Remarks((Remark(said, "error", said, said, said, said),), (Remark(said, "hint", *[said] * 5),)))
    values += [report, report.against(evolve(report, rows=(evolve(report.rows[0], score=0.1),)))]
    return [value._repr_html_() for value in values]


def test_attacks_in_every_text_of_every_card_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """Hostile texts add no tag and no event handler to any card."""
    cards = [card for words in (*PAYLOADS, " ".join(NASTY)) for card in hostile(words)]
    page = browser.made_of(f"<!DOCTYPE html><title>mine</title>{''.join(cards)}", tmp_path)
    assert page.title == "mine"
    assert {tag for tag, _ in page.tags} <= usual_tags() | {"html", "head", "body", "title"}
    assert not [name for _, attrs in page.tags for name in attrs if name.startswith("on")]


def test_attacks_in_a_page_of_results_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """Hostile names, texts and reasons add no script and no image to a report."""
    lines = {"place": Says(True, reason=PAYLOADS[0]), "cites": Says(True, reason=PAYLOADS[1])}
    candidates = [Candidate(words, input=words, key=words) for words in PAYLOADS]
    rubric = evolve(RUBRIC.revising("cites", text=PAYLOADS[3]), name=PAYLOADS[2], evidence=False)
    results = Grades([evaluate(each, rubric, Judge(ScriptedModel(lines))) for each in candidates])
    page = browser.made_of(results.report(tmp_path / "r.html").read_text("utf-8"), tmp_path)
    assert page.title.startswith(PAYLOADS[2])
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2  # the data, and our own
    assert len(page.named("case")) == len(PAYLOADS)


def test_the_style_reaches_nothing_outside_of_a_card() -> None:
    """Each rule of the style sheet is limited to the class of our cards."""
    for line in html.file(html.STYLE).splitlines():
        if line[:1] not in (" ", "}", "/", "") and "{" in line:
            assert ".rubric {" in line


def test_a_gate_that_a_panel_failed_says_why_by_a_vote_that_failed_it() -> None:
    """The reason is that of the judge who found it, not that of the first one."""
    rubric = Rubric("r", threshold=0.7).requires("Is kind", id="kind").expects("Is short", id="short")
    said = [
        {"kind": Says(kind, reason=why), "short": True} for kind, why in ((True, "it greets"), (False, "it insults"))
    ]
    panel = Panel([Judge(ScriptedModel(each)) for each in said], level="criterion")
    row = RowBuilder().of(evaluate("Hello", rubric, panel))
    assert row.reason.startswith("'kind' failed it (it insults)")


def test_grades_in_a_notebook_have_a_column_a_criterion() -> None:
    """Each answer stands with its mark, so that it is told by more than a colour; the other results are counted."""
    rubric = Rubric(
        "r", [Criterion("Is warm", id="warm"), Criterion("Says Friday", id="day", answer=Contains("Friday"))]
    )
    texts = ["Is warm on Friday", "Cold", *(f"Is warm {n}" for n in range(39))]
    shown = grade_many(texts, rubric, "offline").collect()._repr_html_()
    for said in (">warm<", ">day<", "✓ yes", "✕ no", "1 more: report"):
        assert said in shown
