"""promptfoo's model graders by name: what a judge is asked, how each is scored, and from where it passes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric import Candidate, Grade, Judge
from rubric.engine.grade import evaluate
from rubric.formats.suites import loads_suite
from rubric.suites.cases import Case
from rubric.testing import ScriptedModel
from rubric.values.checks import Unsupported
from tests.rows import each_row


def case_of(assertion: dict[str, Any], **test: Any) -> Case:
    data = {"prompts": ["{{q}}"], "tests": [{"vars": {"q": "What is the capital?"}, "assert": [assertion], **test}]}
    (case,) = loads_suite(json.dumps(data), "promptfoo")
    return case


def graded(assertion: dict[str, Any], *replies: dict[str, Any], output: str = "An answer", **test: Any) -> Any:
    """Return whether it passed, its score, and what the judge was asked."""
    model, case = ScriptedModel([json.dumps({"reason": "r", **reply}) for reply in replies]), case_of(assertion, **test)
    candidate = Candidate(output, input=case.input, context=case.context, variables=case.variables)
    result = evaluate(candidate, case.rubric, Judge(model, sealed=False))
    assert isinstance(result, Grade), result
    asked = "\n".join(message["content"] for ask in model.asks for message in ask.chat())
    return result.passed, round(result.score, 4), asked


# -- factuality: the scores of `buildFactualityResult` --------------------------------------------------------


@pytest.mark.parametrize(("category", "passed"), [("A", True), ("B", True), ("C", True), ("D", False), ("E", True)])
def test_factuality_fails_only_where_the_answers_disagree(category: str, passed: bool) -> None:
    """Categories A, B, C and E have a score of 1, D one of 0; the letter may come as `category`, as promptfoo has it."""
    found = graded({"type": "factuality", "value": "Sacramento is it"}, {"category": category})
    assert found[:2] == (passed, float(passed))
    assert "Sacramento is it" in found[2]


@pytest.mark.parametrize(("category", "score", "passed"), [("A", 0.5, True), ("B", 0, False), ("C", 1, True)])
def test_the_scores_of_factuality_are_options_of_the_test(category: str, score: float, passed: bool) -> None:
    """Any score above 0 passes."""
    options = {"factuality": {"subset": 0.5, "superset": 0}}
    found = graded({"type": "model-graded-factuality", "value": "x"}, {"choice": category}, options=options)
    assert found[:2] == (passed, score)


def test_a_negated_grader_is_turned_over() -> None:
    """`not-factuality` passes where the answers disagree."""
    assert graded({"type": "not-factuality", "value": "x"}, {"category": "D"})[:2] == (True, 1)


PROMPT = '[{"role": "system", "content": "Respond with {\\"category\\": \\"A/B/C/D/E\\"}."}, {"role": "user", "content": "Expert: {{ideal}} Submitted: {{completion}}"}]'


def test_a_prompt_of_its_own_shows_promptfoos_names() -> None:
    """`ideal`, `completion` and `input` are slots of ours."""
    found = graded({"type": "factuality", "value": "Sacramento", "rubricPrompt": PROMPT}, {"category": "C"})
    assert found[0]
    assert "Expert: Sacramento Submitted: An answer" in found[2]


@pytest.mark.parametrize(("category", "passed"), [("C", True), ("D", False)])
def test_a_rubric_whose_prompt_asks_for_a_category_is_answered_by_category(category: str, passed: bool) -> None:
    """As on the page of `llm-rubric`, under other languages; promptfoo itself passes whatever the category is."""
    prompt = PROMPT.replace("{{ideal}}", "{{rubric}}").replace("{{completion}}", "{{output}}")
    found = graded({"type": "llm-rubric", "value": "Sacramento", "rubricPrompt": prompt}, {"category": category})
    assert found[0] is passed


# -- the others ---------------------------------------------------------------------------------------------


@each_row(
    ("assertion", "replies", "outcome"),
    [
        ({"type": "model-graded-closedqa", "value": "Is short"}, [{"verdict": True}], (True, 1)),
        ({"type": "model-graded-closedqa", "value": "Is short"}, [{"verdict": False}], (False, 0)),
        # promptfoo's tests of g-eval: a score of 8 passes the default of 0.7, and a list has the mean of its scores
        ({"type": "g-eval", "value": "Coherence"}, [{"score": 8}], (True, 0.8)),
        ({"type": "g-eval", "value": "Coherence"}, [{"score": 6}], (False, 0.6)),
        ({"type": "g-eval", "value": ["Coherence", "Brevity"], "threshold": 0.7}, [{"score": 8}, {"score": 6}], (True, 0.7)),
        ({"type": "g-eval", "value": ["a", "b"], "threshold": 0.8}, [{"score": 8}, {"score": 6}], (False, 0.7)),
        ({"type": "not-g-eval", "value": "Rudeness"}, [{"score": 2}], (True, 0.8)),
        ({"type": "answer-relevance", "threshold": 0.7}, [{"score": 0.7}], (True, 0.7)),
        ({"type": "answer-relevance", "threshold": 0.7}, [{"score": 0.6}], (False, 0.6)),
        ({"type": "answer-relevance"}, [{"score": 0.4}], (False, 0.4)),  # from 0.5, where there is no threshold
        ({"type": "conversation-relevance"}, [{"score": 0.4}], (False, 0.4)),
        ({"type": "is-refusal"}, [{"verdict": True}], (True, 1)),
        ({"type": "not-is-refusal"}, [{"verdict": False}], (True, 1)),
        ({"type": "trajectory:goal-success", "value": "Books a table"}, [{"score": 1, "pass": True}], (True, 1)),
    ],
)  # fmt: skip
def test_a_named_grader_scores_and_passes_as_upstream(
    assertion: dict[str, Any], replies: list[dict[str, Any]], outcome: tuple[bool, float]
) -> None:
    """One call for each criterion, from the threshold that promptfoo takes where the file has none."""
    assert graded(assertion, *replies)[:2] == outcome


@pytest.mark.parametrize(
    ("kind", "share", "passed"),
    [("context-recall", 0.5, False), ("context-relevance", 0.75, True), ("context-faithfulness", 0.7, True)],
)
def test_context_graders_show_the_variable_context(kind: str, share: float, passed: bool) -> None:
    """It is data for the judge, as the material that the answer should rest on."""
    variables = {"q": "Which?", "context": "Sacramento is the capital.\nIt is in California."}
    found = graded({"type": kind, "value": "Sacramento", "threshold": 0.7}, {"score": share}, vars=variables)
    assert found[:2] == (passed, share)
    assert "Sacramento is the capital.\nIt is in California." in found[2]


def test_a_context_grader_without_a_context_says_what_it_lacks() -> None:
    """promptfoo ends with an error; here its case is ungraded."""
    answer = case_of({"type": "context-faithfulness"}).rubric.judged[0].answer
    assert answer == Unsupported("context-faithfulness without a context among its vars")


def test_an_empty_answer_is_shown_to_the_judge_of_refusals() -> None:
    """For promptfoo it is a refusal; a rubric would fail it unseen."""
    assert graded({"type": "is-refusal"}, {"verdict": True}, output="")[:2] == (True, 1)


@pytest.mark.parametrize("kind", ["factuality", "g-eval", "model-graded-closedqa", "context-recall"])
def test_a_grader_without_a_value_is_not_asked(kind: str) -> None:
    """It would compare with nothing: its case is ungraded without a value, and an empty one is an error."""
    case = case_of({"type": kind}, vars={"context": "c"})
    assert case.rubric.criteria[0].answer == Unsupported(f"{kind} without a value", cure="correct its value")
    with pytest.raises(ValueError, match=f"{kind} needs a text"):
        case_of({"type": kind, "value": ""}, vars={"context": "c"})


def test_the_provider_of_a_named_grader_is_its_judge() -> None:
    """As of `llm-rubric`."""
    judge = case_of({"type": "factuality", "value": "x", "provider": "openai:gpt-5"}).judge
    assert isinstance(judge, Judge)
    assert judge.model == "openai/gpt-5"


@pytest.mark.parametrize(
    ("assertion", "status", "score"),
    [
        ({"type": "classifier", "value": "kind", "threshold": 0.8}, "passed", 0.9),
        ({"type": "classifier", "value": "kind"}, "failed", 0.9),
        ({"type": "not-classifier", "value": "kind", "threshold": 0.5}, "failed", 0.1),
        ({"type": "not-classifier", "value": "rude", "threshold": 0.5}, "passed", 0.9),
        ({"type": "pi", "value": "kind"}, "passed", 0.9),
        ({"type": "search-rubric", "value": "rude", "threshold": 0.5}, "failed", 0.1),
        ({"type": "contains", "value": "zzz"}, "failed", 0.0),
    ],
)
def test_a_function_of_the_caller_decides_a_type_that_is_not_here(
    assertion: dict[str, Any], status: str, score: float
) -> None:
    """It is shown the candidate and the value, and passes from promptfoo's threshold on; types that are here stay."""

    def share(candidate: Candidate, label: str) -> float:
        return {"kind": 0.9, "rude": 0.1}[label] if "thanks" in candidate.output else 0.0

    data = {"prompts": ["x"], "tests": [{"providerOutput": "thanks", "assert": [assertion]}]}
    functions = dict.fromkeys(("classifier", "pi", "search-rubric", "contains"), share)
    (row,) = loads_suite(json.dumps(data), "promptfoo", functions=functions).run("offline")
    assert row.status == status
    assert row.score == pytest.approx(score)
