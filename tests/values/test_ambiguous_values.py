"""Values that could mean two things are refused, with the lines that work; each of these lines is run."""

from __future__ import annotations

import ast
import json
import math
import re
from typing import Any

import pytest

import rubric as rubric_module
from rubric import (
    Anchor,
    Choices,
    Criterion,
    DefinitionError,
    Grade,
    Judge,
    Levels,
    LoadError,
    Panel,
    Rubric,
    ScoreRange,
    Ungraded,
    Unit,
    dumps,
    evaluate,
    judge_function,
    loads,
    loads_suite,
)
from rubric.internals.guesses import table
from rubric.values.criteria import _METRICS
from tests.rows import each_row

untyped: Any = rubric_module
R = Rubric("r")
YES = '{"verdict": true}'


def saying(said: Any) -> Any:
    """Return a judge function that says *said*."""
    return lambda candidate, criterion: said


def refusal(make: Any) -> str:
    """Return the message with which *make* is refused."""
    with pytest.raises(DefinitionError) as error:
        make()
    return str(error.value)


# -- labels without scores ---------------------------------------------------------------------------------

LABELS = [["A", "B", "C", "D", "F"], ["met", "partially met", "not met"], ["never", "sometimes", "always"], ["x", "y"]]
DOORS: dict[str, Any] = {
    "chooses": lambda labels: R.chooses("Which?", labels),
    "choices": lambda labels: Criterion("Which?", choices=labels),
    "answer": lambda labels: Criterion("Which?", answer=labels),
    "Choices": lambda labels: Criterion("Which?", answer=Choices(labels)),
    "revised": lambda labels: R.chooses("Which?", labels, weight=0, id="k").revising("k", weight=1),
    "a gate": lambda labels: R.chooses("Which?", labels, weight=0, required=True),
    "a guard": lambda labels: R.chooses("Which?", labels, weight=0, polarity="guard"),
}


@each_row("door", DOORS)
@each_row("labels", LABELS, ids=str)
def test_labels_alone_are_refused_with_their_scores_in_both_orders(labels: list[str], door: str) -> None:
    """Which end is the best cannot be known; both mappings of the message are choices."""
    message = refusal(lambda: DOORS[door](labels))
    first, last, every = map(ast.literal_eval, re.findall(r"\{.*?\}", message))
    assert {*every.values()} == {1}  # to record the label alone
    assert (first[labels[0]], first[labels[-1]]) == (1, 0)
    assert (last[labels[0]], last[labels[-1]]) == (0, 1)
    for scores in (first, last):
        assert isinstance(R.chooses("Which?", scores), Rubric)


def test_labels_of_weight_0_are_recorded_and_score_nothing() -> None:
    """In code, in files and back."""
    rubric = R.expects("Is polite").chooses("Which form?", ["letter", "note"], weight=0, id="form")
    assert loads(dumps(rubric)) == rubric
    assert eval(repr(rubric.criteria[1].answer), {"Choices": Choices}) == rubric.criteria[1].answer  # noqa: S307
    for label in ("letter", "note"):
        said = {"choice": label, "verdict": True}
        result = evaluate(
            "some words",
            rubric,
            lambda m, said=said: json.dumps(
                {"choice": said["choice"]} if '"choice"' in m[-1]["content"] else {"verdict": True}
            ),
        )
        assert (result.score, result["form"].value) == (1, label)


def test_labels_alone_in_a_file_are_refused_at_their_place() -> None:
    """The message is that of code."""
    with pytest.raises(Exception, match="labels alone have no scores; write"):
        loads("rubric: r\ncriteria:\n  - {text: Which?, choices: [cold, warm]}\n")


# -- numbers that could be two things ------------------------------------------------------------------------


@pytest.mark.parametrize("score", [1])
def test_an_anchor_that_could_be_a_level_is_refused(score: int) -> None:
    """Both lines of the message are anchors: the level's place, and the best score."""
    message = refusal(lambda: Criterion("k", levels=(1, 5), anchors=[Anchor("meh", score)]))
    lines = re.findall(r"Anchor\('meh', [\d.]+\)", message)
    assert lines == ["Anchor('meh', 0.0)", "Anchor('meh', 1.0)"]
    for line in lines:
        anchor = eval(line, {"Anchor": Anchor})  # noqa: S307
        assert Criterion("k", levels=(1, 5), anchors=[anchor]).anchors == (anchor,)
    assert Criterion("k", levels=(0, 10), anchors=[Anchor("meh", 0)]).anchors[0].score == 0


def test_anchors_of_levels_come_back_from_a_file() -> None:
    """A 1.0 stays one, since 1 would be refused."""
    rubric = R.rates("k", 1, 5, anchors=[Anchor("meh", 1.0), Anchor("well", 0.0)])
    assert loads(dumps(rubric)) == rubric


@pytest.mark.parametrize("polarity", ["guard", "penalty"])
def test_an_anchor_of_a_fault_says_whether_it_is_there(polarity: Any) -> None:
    """A number could say how good the response is; True and False cannot."""
    message = refusal(lambda: Criterion("Is rude", polarity=polarity, anchors=[Anchor("Go away.", 0)]))
    lines = re.findall(r"Anchor\('Go away.', \w+\)", message)
    assert len(lines) == 2
    for line in lines:
        criterion = Criterion("Is rude", polarity=polarity, anchors=[eval(line, {"Anchor": Anchor})])  # noqa: S307
        rubric = Rubric("r", [criterion])
        assert loads(dumps(rubric)) == rubric


def test_what_a_function_says_is_not_turned_into_something_else() -> None:
    """A score for a yes or no, and a share for levels, are unjudged with what to return."""
    yes_no, levels = R.expects("k", id="k"), R.rates("k", 1, 5, id="k")
    for rubric, said, cure in [
        (yes_no, 0.5, "return True or False"),
        (yes_no, 0.9, "scores\\(text\\)"),
        (yes_no, 7, "return True or False"),
        (levels, 1.0, "return a whole number of the levels: 5 for the best"),
        (levels, 0.8, "whole number"),
    ]:
        result = evaluate("some words", rubric, judge_function(saying(said)))
        assert isinstance(result, Ungraded)
        assert re.search(cure, result.failures[0].message)
    for rubric, said, score in [
        (yes_no, 1, 1), (yes_no, 0.0, 0), (yes_no, True, 1), (levels, 1, 0), (levels, 5, 1), (levels, 4.0, 0.75),
        (R.rates("k", 0, 10, id="k"), 0.0, 0), (R.scores("k", id="k"), 0.5, 0.5),
    ]:  # fmt: skip
        result = evaluate("some words", rubric, judge_function(saying(said)))
        assert isinstance(result, Grade)
        assert result["k"].score == score


@pytest.mark.parametrize("said", [None, 1, "no", []], ids=repr)
def test_a_condition_that_is_no_bool_leaves_the_criterion_unjudged(said: Any) -> None:
    """A missing return would make everything not applicable, and a pass."""
    result = evaluate("some words here", R.expects("K", when=lambda c: said), lambda m: YES)
    assert isinstance(result, Ungraded)
    assert "return True or False" in result.findings[0].reason


@pytest.mark.parametrize("rule", ["mean", "median", "majority"])
def test_a_rule_is_not_taken_for_a_member_of_a_panel(rule: Any) -> None:
    """The message has the keyword."""
    message = refusal(lambda: Panel(["a", "b"], rule))
    assert f"write Panel([...], aggregate={rule!r})" in message
    assert Panel(["a", "b"], aggregate=rule).aggregate == rule


@each_row(
    ("make", "said"),
    [
        (lambda: untyped.Criterion("k", levels={}), "levels with their texts"),
        (lambda: untyped.Criterion("k", levels=[]), "levels with their texts"),
        (lambda: R.rates("k", {}), "levels with their texts"),
        (lambda: R.rates("k", 0, 1), r"expects\(text\), for any number from 0 to 1 scores\(text\)"),
        (lambda: untyped.values.Similar("x", threshold=80), "write 0.8"),
        (lambda: untyped.values.Similar("x", threshold=-7), "from -1 to 1"),
        (lambda: untyped.Grades("abc"), "a list of results"),
        (lambda: untyped.Grades([1]), "a Grade or an Ungraded"),
        (lambda: untyped.Grades({"a": 1}), "a list of results"),
        (lambda: untyped.engine.merge_results([], "out.jsonl"), "at least one"),
        (lambda: untyped.grade_many(["x"], R.expects("k"), "offline", ordered="no"), "expected True or False, got 'no'"),
        (lambda: untyped.grade_many(["x"], R.expects("k"), "offline", keep=1), "expected True or False, got 1"),
        (lambda: untyped.lint(R.expects("k"), hints="yes"), "expected True or False"),
    ],
    ids=map(str, range(13)),
)  # fmt: skip
def test_what_was_taken_for_something_else_is_refused(make: Any, said: str) -> None:
    """Each of these was taken, and did something that nobody meant."""
    assert re.search(said, refusal(make))


def test_levels_without_ends_are_still_0_to_10() -> None:
    """Nothing at all means the plain scale."""
    assert R.rates("k").criteria[0].answer == Levels() == Levels(ScoreRange(0, 10))


# -- prompts -------------------------------------------------------------------------------------------------


@each_row(
    "prompt",
    [
        "Grade {candidate} by {criterion}", "Grade {{ candidate }} by {criterion}", "$output", "${output}", "%(output)s",
        "[[output]] {{ criterion }}", "<%= output %>", '[{"role": "user", "content": "Grade {output}"}]',
    ],
)  # fmt: skip
@each_row("of", ["judge", "rubric"])
def test_a_prompt_with_slots_in_another_form_is_refused(prompt: str, of: str) -> None:
    """It would be paid for without the candidate or the criterion in it; nothing is asked."""
    asked: list[Any] = []

    def judge(messages: Any) -> str:
        asked.append(messages)
        return YES

    rubric = R.expects("K") if of == "judge" else Rubric("r", ["K"], prompt=prompt)
    by = Judge(judge, prompt=prompt) if of == "judge" else judge
    message = refusal(lambda: evaluate("some words here", rubric, by))
    assert re.search(r"\{\{ \w+ \}\}", message)
    assert asked == []


def test_braces_of_json_in_a_prompt_are_no_slots() -> None:
    """The form of a reply may be shown as it is."""
    prompt = 'Grade {{ candidate }} by {{ criterion }}: {"verdict": true} or {"output": 1}, {reason}'
    assert evaluate("some words here", R.expects("K"), Judge(lambda m: YES, prompt=prompt)).score == 1


# -- settings of clients ---------------------------------------------------------------------------------------


def test_a_setting_that_a_client_is_not_given_is_refused() -> None:
    """With what to do instead: LangChain's models have limits of their own names."""

    class BaseChatModel:
        model_name = "m"

    BaseChatModel.__module__ = "langchain_core.language_models"

    class ChatElse(BaseChatModel):
        pass

    class ChatOpenAI(BaseChatModel):
        pass

    ChatOpenAI.__module__ = "langchain_openai.chat_models"
    assert "ChatElse(max_tokens=...)" in refusal(lambda: untyped.Judge(ChatElse(), max_tokens=500))
    assert "ChatElse(seed=...)" in refusal(lambda: untyped.Judge(ChatElse(), seed=1))
    assert untyped.Judge(ChatOpenAI(), max_tokens=500).max_tokens == 500
    assert untyped.Judge(ChatElse()).max_tokens == Judge("offline").max_tokens


def test_a_score_of_a_unit_is_kept() -> None:
    """A float for a score in 0..1 is what it is."""
    assert (
        evaluate("some words", Rubric("r", [Criterion("k", answer=Unit())]), judge_function(lambda c, k: 0.25)).score
        == 0.25
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_criteria_is_refused_with_the_line_that_takes_its_rows(library: str) -> None:
    """Its iterator yields the names of the columns, and each became a criterion."""
    frame = pytest.importorskip(library).DataFrame({"text": ["Is polite", "Names a day"], "weight": [1, 2]})
    with pytest.raises(DefinitionError, match="criteria: a frame gives its rows: write ") as caught:
        Rubric("reply", frame)
    line = str(caught.value).rpartition("criteria=")[2]
    criteria = eval(line, {"frame": frame})  # noqa: S307 - a line of our own
    assert Rubric("reply", criteria) == Rubric("reply").expects("Is polite").expects("Names a day", weight=2)
    assert Rubric("reply", frame["text"]).ids == ("is-polite", "names-a-day")


@pytest.mark.parametrize("empty", ["None", "nan", "NaT", "NA"])
@pytest.mark.parametrize("name", ["weight", "required", "tags"])
def test_an_empty_cell_of_a_frame_is_told_as_one_with_the_line_that_leaves_it_out(name: str, empty: str) -> None:
    """The line leaves out every kind of empty cell, and no other."""
    pandas = pytest.importorskip("pandas")
    cells = {"None": None, "nan": math.nan, "NaT": pandas.NaT, "NA": pandas.NA}
    full, others = {"text": "Names a day", "weight": 2, "tags": ["a", "b"], "required": False}, [*cells.values()]
    rows = [full, {"text": "Is polite", name: cells[empty]}]
    with pytest.raises(DefinitionError, match=rf"criteria\[1\]\.{name}: the cell is empty; leave it out: ") as caught:
        Rubric("reply", rows)
    line = str(caught.value).rpartition("leave it out: ")[2]
    rows = [dict(zip(["id", "min_score", "polarity", "evidence"], others, strict=True)) | row for row in rows]
    criteria = [eval(line, {"row": row}) for row in rows]  # noqa: S307 - a line of our own
    assert Rubric("reply", criteria) == Rubric("reply", [full, "Is polite"])


@pytest.mark.parametrize("row", [{"text": math.nan}, {"text": None, "weight": 2}, {"weight": 2}])
def test_a_row_without_a_text_is_told_with_the_line_that_leaves_the_row_out(row: dict[str, Any]) -> None:
    """To leave out the cell alone gave a criterion without a text, which was refused in other words."""
    rows = [{"text": "Is polite", "weight": 2}, row]
    with pytest.raises(DefinitionError, match=r"criteria\[1\]\.text: there is no text; leave ") as caught:
        Rubric("reply", rows)
    line = str(caught.value).rpartition("leave the row out: ")[2]
    assert Rubric("reply", eval(line, {"rows": rows})).ids == ("is-polite",)  # noqa: S307 - a line of our own


@each_row(
    ("name", "meant"),
    [
        ("faithfulness", "States nothing that the context does not support"),
        ("answer_relevancy", "Addresses the question that was asked"),
        ("is_polite", "Is polite"),
        ("Faithfulness", "States nothing that the context does not support"),
        ("HALLUCINATION", "States nothing that the context does not support"),
        ("AnswerRelevancyMetric", "Addresses the question that was asked"),
        ("AnswerRelevancy", "Addresses the question that was asked"),
        ("Answer_Relevancy", "Addresses the question that was asked"),
        ("PolitenessMetric", "Politeness"),
        ("toxicity_metric", "Insults, threatens or demeans nobody"),
        ("Toxicity", "Insults, threatens or demeans nobody"),
        ("coherence", "Each sentence follows from those before it"),
        ("Summarization", "Says what matters of the context, and nothing else"),
        ("GEval", "Agrees with the reference"),
        ("LLMContextRecall", "The context holds what the answer needs"),
        ("IsPolite", "Is polite"),
    ],
)
def test_the_name_of_a_metric_is_no_criterion(name: str, meant: str) -> None:
    """It asks nothing; the error has the sentence that does, and the line that asks by the name all the same."""
    doors: list[tuple[Any, str]] = [
        (R.expects, f"R.adding(Criterion({name!r}))"),
        (lambda text: Rubric("r", [text]), f"Rubric('r', [Criterion({name!r})])"),
        (lambda text: loads(f'criteria: ["{text}"]'), f"loads('criteria: [{{text: {name}}}]')"),
    ]
    for make, asked in doors:
        with pytest.raises((DefinitionError, LoadError), match=f'write "{meant}"; or, to ask by this name, ') as caught:
            make(name)
        assert re.search(r"(write rubric\.adding\(|write |)(Criterion\(|\{text: )", str(caught.value))
        assert make(meant).criteria[-1].text == meant
        made = eval(asked, {"R": R, "Rubric": Rubric, "Criterion": Criterion, "loads": loads})  # noqa: S307
        assert loads(dumps(made)) == made


@each_row("text", ["Polite", "polite", "JSON", "URLs", "Well-written", "Warm"])
def test_a_word_that_is_no_metric_is_a_criterion(text: str) -> None:
    """A word may ask enough."""
    assert R.expects(text).criteria[-1].text == text


def test_the_name_of_a_metric_is_no_rubric_of_a_case() -> None:
    """Nor is it one of a candidate."""
    with pytest.raises(LoadError, match=r"or, to ask by this name, rubric: \{text: bias\}"):
        loads_suite("suite: s\ncases: [{output: a, rubric: bias}]")
    with pytest.raises(DefinitionError, match=r"write Rubric\.of\('toxicity'\)"):
        evaluate("a", "toxicity", "offline")
    assert loads_suite("suite: s\ncases: [{output: a, rubric: {text: bias}}]")[0].rubric.text == "bias"


def test_each_metric_of_one_word_has_its_sentence_in_the_table() -> None:
    """The words are known without the table, which is loaded for errors alone."""
    words = {word for each in table()["metrics"].values() for word in each.split()}
    assert words >= _METRICS
