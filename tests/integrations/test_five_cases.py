"""Five cases in each harness: a pass, a fail, an unreadable reply, a refusal and a 503; and a second run from a store."""

from __future__ import annotations

import asyncio
import importlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from rubric import Budget, DefinitionError, RubricError, UngradedError, load_suite
from tests.harnesses import BAD, DOWN, GOOD, ODD, POLITE, REFUSED, harness, judging_at
from tests.places import ROOT
from tests.rewardkit_tasks import Task, toml
from tests.servers import prompt_of

pytestmark = pytest.mark.filterwarnings("ignore")

Scored = tuple[float | None, str]
Ways = tuple[Callable[[str], Scored], Callable[[str], Scored] | None]
"""Scores a text, with the reason: by the harness's sync way, and by its async one if it has one."""


def braintrust(judge: Any, options: dict[str, Any]) -> Ways:
    """The scorer, as Braintrust calls it."""
    from rubric.integrations.braintrust import RubricScorer

    scorer = RubricScorer(POLITE, judge, **options)

    def read(score: Any) -> Scored:
        return score.score, score.metadata["reason"]

    return lambda text: read(scorer.eval(text)), lambda text: read(asyncio.run(scorer.eval_async(text)))


def deepeval(judge: Any, options: dict[str, Any]) -> Ways:
    """The metric, measured; a copy of it, as deepeval makes one for each test case."""
    from deepeval.metrics.utils import copy_metrics
    from deepeval.test_case import LLMTestCase

    from rubric.integrations.deepeval import RubricMetric

    (metric,) = copy_metrics([RubricMetric(POLITE, judge, **options)])

    def scored(measure: Callable[[Any], Any], text: str) -> Scored:
        try:
            return measure(LLMTestCase(input="When?", actual_output=text)), metric.reason
        except UngradedError:
            return metric.score, metric.error

    return lambda text: scored(metric.measure, text), lambda text: scored(
        lambda case: asyncio.run(metric.a_measure(case)), text
    )


def pydantic_evals(judge: Any, options: dict[str, Any]) -> Ways:
    """An evaluation of one case."""
    from pydantic_evals import Case, Dataset

    from rubric.integrations.pydantic_evals import RubricEvaluator

    dataset_of = Dataset[str, str, Any]
    evaluators = [RubricEvaluator(POLITE, judge, **options)]

    def scored(text: str) -> Scored:
        report = dataset_of(name="replies", cases=[Case(inputs=text)], evaluators=evaluators).evaluate_sync(
            lambda said: said, progress=False
        )
        (case,) = report.cases
        assert "rubric.prompt_tokens" in case.metrics  # of ungraded cases as well
        if case.evaluator_failures:
            return None, case.evaluator_failures[0].error_message
        score = case.scores["rubric.score"]
        return score.value, score.reason

    return scored, None


def langsmith(judge: Any, options: dict[str, Any]) -> Ways:
    """Both evaluators; the first feedback is that on the rubric."""
    from rubric.integrations.langsmith import arubric_evaluator, rubric_evaluator

    sync, later = rubric_evaluator(POLITE, judge, **options), arubric_evaluator(POLITE, judge, **options)

    def read(feedback: Any) -> Scored:
        return feedback[0]["score"], feedback[0]["comment"]

    return lambda text: read(sync(outputs=text)), lambda text: read(asyncio.run(later(outputs=text)))


def mlflow(judge: Any, options: dict[str, Any]) -> Ways:
    """The scorer, as MLflow runs it."""
    from rubric.integrations.mlflow import rubric_scorer

    scorer = rubric_scorer(POLITE, judge, **options)

    def scored(text: str) -> Scored:
        feedback = scorer.run(inputs={"q": "When?"}, outputs=text)
        return feedback.value, feedback.rationale

    return scored, None


def phoenix(judge: Any, options: dict[str, Any]) -> Ways:
    """The evaluator of a row."""
    from rubric.integrations.phoenix import RubricEvaluator

    evaluator = RubricEvaluator(POLITE, judge, **options)

    def read(scores: Any) -> Scored:
        return scores[0].score, scores[0].explanation

    return (
        lambda text: read(evaluator.evaluate({"output": text})),
        lambda text: read(asyncio.run(evaluator.async_evaluate({"output": text}))),
    )


def promptfoo(judge: Any, options: dict[str, Any]) -> Ways:
    """The assertion, by promptfoo's protocol: its 0 of an ungraded output has no named score."""
    from rubric.integrations.promptfoo import rubric_assert

    assertion = rubric_assert(POLITE, judge, **options)

    def scored(text: str) -> Scored:
        result = assertion(text, {"prompt": "When?", "vars": {}})
        return result.get("namedScores", {}).get("polite"), result["reason"]

    return scored, None


def dspy(judge: Any, options: dict[str, Any]) -> Ways:
    """The metric, called with an example and a prediction."""
    from dspy import Example, Prediction

    from rubric.integrations.dspy import rubric_metric

    metric = rubric_metric(POLITE, judge, **options)

    def scored(text: str) -> Scored:
        try:
            said = metric(Example(question="When?").with_inputs("question"), Prediction(answer=text))
        except UngradedError as error:
            return None, str(error)
        return said.score, said.feedback

    return scored, None


def langchain(judge: Any, options: dict[str, Any]) -> Ways:
    """The runnable."""
    from rubric.integrations.langchain import rubric_runnable

    runnable = rubric_runnable(POLITE, judge, **options)

    def read(said: Mapping[str, Any]) -> Scored:
        return said["score"], said["reason"]

    return lambda text: read(runnable.invoke(text)), lambda text: read(asyncio.run(runnable.ainvoke(text)))


def datasets(judge: Any, options: dict[str, Any]) -> Ways:
    """The function for `Dataset.map`, on a row."""
    from rubric.integrations.datasets import arubric_map, rubric_map

    sync, later = rubric_map(POLITE, judge, **options), arubric_map(POLITE, judge, **options)

    def read(row: Mapping[str, Any]) -> Scored:
        return row["rubric.score"], row["rubric.reason"]

    return lambda text: read(sync({"output": text})), lambda text: read(asyncio.run(later({"output": text})))


def lm_eval(judge: Any, options: dict[str, Any]) -> Ways:
    """The function that reads a document's response."""
    from rubric.integrations.lm_eval import rubric_metrics

    process = rubric_metrics(POLITE, judge, **options)["process_results"]

    def scored(text: str) -> Scored:
        said = process({}, [text])
        return said["polite"], said["polite_result"]["reason"]

    return scored, None


def trl(judge: Any, options: dict[str, Any]) -> Ways:
    """The reward function, which is async."""
    from rubric.integrations.trl import rubric_reward

    reward = rubric_reward(POLITE, judge, **options)

    def scored(text: str) -> Scored:
        (score,) = asyncio.run(reward(["When?"], [text]))
        return score, "ungraded has no reason in TRL" if score is None else ""

    return scored, None


def recipe(name: str) -> dict[str, Any]:
    """Return what the blocks of the page *name* define."""
    page = (ROOT / "docs" / "integrations" / f"{name}.md").read_text("utf-8")
    names: dict[str, Any] = {}
    exec("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), names)  # noqa: S102 - ours
    return names


def langfuse(judge: Any, options: dict[str, Any]) -> Ways:
    """The evaluator of the recipe, in an experiment."""
    names = recipe("langfuse")
    names["grader"] = names["Grader"](POLITE, judge, options, candidate=names["default_candidate"])

    def scored(text: str) -> Scored:
        found = names["Langfuse"](tracing_enabled=False).run_experiment(
            name="replies", data=[{"input": "When?"}], task=lambda **_: text, evaluators=[names["polite"]]
        )
        said = {each.name: each for each in found.item_results[0].evaluations}
        return said["polite"].value if "polite" in said else None, said["polite.verdict"].comment

    return scored, None


def opik(judge: Any, options: dict[str, Any]) -> Ways:
    """The metric of the recipe, by both of its ways."""
    metric = recipe("opik")["RubricMetric"](POLITE, judge, **options)

    def read(said: Any) -> Scored:
        return None if said.scoring_failed else said.value, said.reason

    return lambda text: read(metric.score(text)), lambda text: read(asyncio.run(metric.ascore(text)))


def adk(judge: Any, options: dict[str, Any]) -> Ways:
    """The evaluator of the recipe, on an invocation, which has no place for a reason."""
    names = recipe("adk")
    evaluator, types = names["RubricEvaluator"](POLITE, judge, **options), names["types"]

    def scored(text: str) -> Scored:
        said = types.Content(role="model", parts=[types.Part(text=text)])
        asked = types.Content(role="user", parts=[types.Part(text="When?")])
        turn = names["Invocation"](user_content=asked, final_response=said)
        (row,) = asyncio.run(evaluator.evaluate_invocations([turn])).per_invocation_results
        return row.score, "ungraded" if row.eval_status.name == "NOT_EVALUATED" else ""

    return scored, None


def evaluate(judge: Any, options: dict[str, Any]) -> Ways:
    """The metric of the recipe, on one row, which has no place for a reason."""
    metric = recipe("evaluate")["RubricScore"]()
    metric.rubric, metric.judge, metric.options = POLITE, judge, options

    def scored(text: str) -> Scored:
        found = metric.compute(predictions=[text], references=["Friday"])
        return found["polite"], "ungraded" if found["ungraded"] else ""

    return scored, None


EACH = '[judge]\njudge = "openai/gpt-4o-mini"\nfiles = ["reply.md"]\nmode = "individual"\n'


def harbor(judge: Any, options: dict[str, Any]) -> Ways:
    """A task of Reward Kit's, and the file that Harbor reads; where none is written, the error says why."""

    def scored(text: str) -> Scored:
        with TemporaryDirectory() as folder:
            files = {"judge.toml": toml("Is polite", "Names a day | weight = 3.0", judge=EACH)}
            tests, app = Task(files, {}, {}, {"reply.md": text}).write(Path(folder))
            suite = load_suite(tests, base=Path(folder), environ={"WORKSPACE": str(app)})
            report = suite.run(judge, **options)
            try:
                return json.loads(report.render("harbor"))["reward"], ""
            except RubricError as error:
                return None, str(error)

    return scored, None


HARNESSES = {
    braintrust: "autoevals",
    deepeval: "deepeval",
    pydantic_evals: "pydantic_evals",
    langsmith: "langsmith",
    mlflow: "mlflow",
    phoenix: "phoenix.evals",
    promptfoo: "",
    dspy: "dspy",
    langchain: "langchain_core",
    datasets: "datasets",
    lm_eval: "lm_eval",
    trl: "",
    langfuse: "langfuse",
    opik: "opik",
    adk: "google.adk",
    evaluate: "evaluate",
    harbor: "",
}
"""The ways of a harness, and the module without which they cannot be run; Inspect has tests of its own."""


@pytest.fixture(params=HARNESSES, ids=lambda each: each.__name__)
def ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ways]:
    """Return the function of one harness; skip where it is not installed."""
    monkeypatch.setenv("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")
    if module := HARNESSES[request.param]:
        harness(module, module.partition(".")[0])
    made: Callable[..., Ways] = request.param
    return made


def test_five_cases_and_a_second_run_that_asks_nobody(ways: Callable[..., Ways], tmp_path: Path) -> None:
    """Only what was judged has a score; each failure has a reason; with a store a second run pays for failures alone."""
    expected = {GOOD: 1, BAD: 0.25, ODD: None, REFUSED: None, DOWN: None}
    for number in (0, 1):
        with judging_at() as (judge, endpoint):
            path, asked = tmp_path / f"{number}.db", []
            for _ in range(2):
                score = ways(judge, {"store": path})[number]
                if score is None:
                    return
                found = {text: score(text) for text in expected}
                assert {text: each[0] for text, each in found.items()} == expected
                assert all(
                    "ungraded" in found[text][1] or "not graded" in found[text][1] for text in (ODD, REFUSED, DOWN)
                )
                prompts = [prompt_of(each.body) for each in endpoint.requests]
                asked.append(sum(GOOD in each or BAD in each for each in prompts))
        assert asked[0] > 0
        assert asked[1] == asked[0]


def test_a_budget_holds_and_an_unknown_option_is_an_error_at_once(ways: Callable[..., Ways]) -> None:
    """A spent budget leaves a case ungraded, without a call; a misspelt option is not left for the first case."""
    with judging_at() as (judge, endpoint):
        if ways not in (promptfoo, harbor):  # which have a process for each case, and take no budget
            score = ways(judge, {"budget": Budget(calls=0)})[0]
            assert score is not None
            assert score(GOOD)[0] is None
            assert not endpoint.requests
        with pytest.raises((DefinitionError, TypeError), match="stroe"):
            _try(ways, judge, {"stroe": "x.db"})


def _try(ways: Callable[..., Ways], judge: Any, options: dict[str, Any]) -> None:
    score = ways(judge, options)[0]
    if ways in (evaluate, harbor) and score is not None:  # whose options are read with the first rows
        score(GOOD)


PRIVATE = {
    "autoevals:Scorer": ("_run_eval_sync", "_run_eval_async", "_name"),
    "phoenix.evals:Evaluator": ("_evaluate", "_async_evaluate"),
    "phoenix.evals.exceptions:PhoenixException": ("__init__",),
    "deepeval.metrics.utils:copy_metrics": ("__call__",),
    "dspy:BaseLM": ("copy", "aforward"),
    "verifiers.v1.clients.base:build_async_openai": ("__call__",),
    "langchain_core.runnables:RunnableBinding": ("model_fields",),
}
"""The names in harnesses that the adapters use and that no page of theirs promises."""


@pytest.mark.parametrize("place", PRIVATE)
def test_what_is_private_in_a_harness_is_still_there(place: str) -> None:
    """An adapter would break when one of these names moves."""
    module, _, name = place.partition(":")
    pytest.importorskip(module.partition(".")[0], reason=f"{module} is not installed; `nox -s integrations` has it")
    found = getattr(importlib.import_module(module), name)
    assert all(hasattr(found, each) for each in PRIVATE[place])
