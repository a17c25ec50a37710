"""The scorer for Inspect, in real evaluations of Inspect's, offline."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Budget, DefinitionError, Judge, Jury, judge_function, model
from tests.harnesses import BAD, DOWN, GOOD, KEY, ODD, POLITE, REFUSED, harness, judging_at, respond
from tests.places import ROOT
from tests.servers import Endpoint, Server, prompt_of

inspect_ai = harness("inspect_ai", "inspect-ai")
pytestmark = pytest.mark.filterwarnings("ignore")  # Inspect's own, and its clients'

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """Yield an endpoint of the judging server."""
    with Server(respond=respond) as server:
        yield server.at("ok")


def run(
    folder: Path, endpoint: Endpoint, roles: int = 1, texts: Sequence[str] = (GOOD, BAD, ODD), **options: Any
) -> Any:
    """Return the log of an evaluation of completions that say *texts*; Inspect sends nothing again."""
    from inspect_ai import Task
    from inspect_ai import eval as run_eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, get_model
    from inspect_ai.solver import solver

    from rubric.integrations.inspect_ai import rubric_scorer

    @solver  # type: ignore[untyped-decorator]  # Inspect may not be installed
    def fixed() -> Any:
        async def solve(state: Any, _: Any) -> Any:
            state.output = ModelOutput.from_content("mock", state.metadata["say"])
            state.messages.append(state.output.message)
            return state

        return solve

    samples = [Sample(input="When?", target="Friday", metadata={"say": text}) for text in texts]
    judges = [
        get_model("openai/gpt-4o-mini", base_url=endpoint.openai, api_key=KEY, memoize=False) for _ in range(roles)
    ]
    task = Task(dataset=samples, solver=fixed(), scorer=rubric_scorer(POLITE, **options))
    roles_of: dict[str, Any] = {"grader": judges[0] if roles == 1 else judges}
    settings: dict[str, Any] = {"display": "none", "log_dir": str(folder), "max_retries": 0}
    (log,) = run_eval(task, model="mockllm/model", model_roles=roles_of, **settings)
    assert log.status == "success", log.error
    return log


def test_an_ungraded_sample_is_unscored_and_left_out_of_the_mean(tmp_path: Path, endpoint: Endpoint) -> None:
    """Inspect's mean is that of the graded samples."""
    log = run(tmp_path, endpoint)
    (scores,) = log.results.scores
    assert scores.metrics["mean"].value == (1 + 0.25) / 2
    assert (scores.scored_samples, scores.unscored_samples) == (2, 1)
    good, bad, odd = [sample.scores["rubric_scorer"] for sample in log.samples]
    assert (good.value, bad.value, odd.reason) == (1, 0.25, "grader_failed")
    assert "✗ Names a day" in bad.explanation
    assert "could be 0.000 to 1.000" in odd.explanation


def test_an_inspect_without_reasons_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An Inspect older than 0.3.261 would fail at the first ungraded sample, when the others have been paid for."""
    monkeypatch.delattr("inspect_ai.scorer.ScoreReason")
    monkeypatch.delitem(sys.modules, "rubric.integrations.inspect_ai", raising=False)
    with pytest.raises(ImportError, match=r"needs inspect-ai>=0\.3\.261: pip install -U inspect-ai$"):
        importlib.import_module("rubric.integrations.inspect_ai")


def test_inspect_s_command_finds_the_task_of_the_page(tmp_path: Path, endpoint: Endpoint) -> None:
    """`inspect eval` runs the file that the page shows, and the model of the role judges."""
    page = (ROOT / "docs" / "integrations" / "inspect_ai.md").read_text("utf-8")
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "task.py").write_text(shown, "utf-8")
    model = "openai-api/local/gpt-4o-mini"
    command = [sys.executable, "-m", "inspect_ai", "eval", "task.py", "--model", model, "--display", "plain"]
    done = subprocess.run(
        [*command, "--model-role", f"grader={model}"],
        cwd=tmp_path,
        env={**os.environ, "LOCAL_BASE_URL": endpoint.openai, "LOCAL_API_KEY": KEY},
        capture_output=True,
        text=True,
        check=False,
    )
    assert re.search(r"rubric_scorer\s+mean\s+0\.000", done.stdout), done.stdout + done.stderr
    assert "Names a day" in prompt_of(endpoint.requests[-1].body)


def test_the_log_holds_reasons_digest_yaml_and_usage(tmp_path: Path, endpoint: Endpoint) -> None:
    """What the log has says which rubric was used, in full, and the role's usage counts the judge's calls."""
    log = run(tmp_path, endpoint)
    metadata = log.samples[0].scores["rubric_scorer"].metadata
    assert metadata["rubric"]["digest"] == POLITE.digest
    assert metadata["rubric_yaml"].startswith("rubric: polite")
    assert log.stats.model_usage["openai/gpt-4o-mini"].total_tokens > 0
    sent = endpoint.requests[0].body
    assert sent["response_format"]["json_schema"]["strict"]


def test_a_role_of_several_models_is_a_panel(tmp_path: Path, endpoint: Endpoint) -> None:
    """Each model of the role judges."""
    log = run(tmp_path, endpoint, roles=2)
    votes = log.samples[0].scores["rubric_scorer"].metadata["rubric"]["votes"]
    assert len(votes) == 2


def test_a_judge_brings_its_settings(tmp_path: Path, endpoint: Endpoint) -> None:
    """The name of a role stands for its model, in a jury as well."""
    log = run(tmp_path, endpoint, judge=Jury("grader", 3))
    assert len(log.samples[0].scores["rubric_scorer"].metadata["rubric"]["votes"]) == 3


def test_a_judge_may_be_a_function_or_an_address(tmp_path: Path, endpoint: Endpoint) -> None:
    """What is not a model of Inspect's is asked as anywhere else; each sample has its result."""
    from openai import AsyncOpenAI

    by_code = judge_function(lambda candidate, criterion: criterion.id == "polite" or GOOD in candidate.output)
    by_http = Judge("openai/gpt-4o-mini", via=endpoint.openai, params={"api_key": KEY}, repairs=0)
    by_client = model(AsyncOpenAI(base_url=endpoint.openai, api_key=KEY), "gpt-4o-mini")
    for judge, odd in ((by_code, 0.25), (by_http, None), (Judge(by_client, repairs=0), None)):
        log = run(tmp_path, endpoint, judge=judge)
        values = [sample.scores["rubric_scorer"].value for sample in log.samples]
        assert values[:2] == [1, 0.25]
        assert odd is None or values[2] == odd
        assert log.results.scores[0].unscored_samples == (odd is None)


def test_a_judge_may_be_the_name_of_a_model(tmp_path: Path, endpoint: Endpoint) -> None:
    """A text is a model of Inspect's, or a role's; beside `model=` it is refused."""
    from rubric.integrations.inspect_ai import rubric_scorer

    assert run(tmp_path, endpoint, judge="grader").results.scores[0].metrics["mean"].value == (1 + 0.25) / 2
    with pytest.raises(DefinitionError, match="model: has no effect beside judge="):
        rubric_scorer(POLITE, model="openai/gpt-4o-mini", judge="grader")
    for given in ({"judge": "grader"}, {"model": "openai/gpt-4o-mini"}):
        with pytest.raises(DefinitionError, match=f"model_role: has no effect beside {next(iter(given))}="):
            rubric_scorer(POLITE, model_role="critic", **given)
    with pytest.raises(DefinitionError, match="expected a LiteLLM model name"):
        rubric_scorer(POLITE, judge=7)


@pytest.mark.parametrize("stored", [False, True])
def test_five_cases_have_scores_and_reasons(tmp_path: Path, stored: bool) -> None:
    """By Inspect's model alone and by the library's pipeline; with a store a second run asks for failures alone."""
    options: dict[str, Any] = {"store": tmp_path / "replies.db"} if stored else {}
    texts, judge, asked = (GOOD, BAD, ODD, REFUSED, DOWN), Judge("grader", retries=0, repairs=0), []
    with judging_at() as (_, endpoint):
        for _ in range(2):
            log = run(tmp_path, endpoint, texts=texts, judge=judge, **options)
            scores = [sample.scores["rubric_scorer"] for sample in log.samples]
            assert [each.value for each in scores[:2]] == [1, 0.25]
            assert [each.reason for each in scores] == [None, None, *["grader_failed"] * 3]
            for score, word in zip(scores[2:], ("unreadable", "refusal", "overloaded: HTTP 503"), strict=True):
                assert word in score.explanation
            prompts = [prompt_of(each.body) for each in endpoint.requests]
            asked.append(sum(GOOD in each or BAD in each for each in prompts))
    assert asked == ([4, 4] if stored else [4, 8])


def test_a_store_answers_the_second_run(tmp_path: Path, endpoint: Endpoint) -> None:
    """With a store of ours the graded samples cost nothing again; a spent budget leaves them unscored."""
    run(tmp_path, endpoint, store=tmp_path / "replies.db")
    first = sum(ODD not in prompt_of(each.body) for each in endpoint.requests)
    log = run(tmp_path, endpoint, store=tmp_path / "replies.db")
    assert sum(ODD not in prompt_of(each.body) for each in endpoint.requests) == first > 0
    assert log.results.scores[0].metrics["mean"].value == (1 + 0.25) / 2
    spent = run(tmp_path, endpoint, budget=Budget(calls=0))
    assert spent.results.scores[0].unscored_samples == 3


def test_it_works_under_trio(tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Inspect's trio backend the flow is driven by Inspect's own `collect`."""
    monkeypatch.setenv("INSPECT_ASYNC_BACKEND", "trio")
    log = run(tmp_path, endpoint)
    assert log.results.scores[0].unscored_samples == 1


def test_its_cache_answers_the_second_run(tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prompts are the same in each run, so Inspect's cache serves them."""
    from inspect_ai.model import GenerateConfig, get_model

    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "mockllm/model")
    config = GenerateConfig(cache=True)
    model = get_model("openai/gpt-4o-mini", base_url=endpoint.openai, api_key=KEY, config=config, memoize=False)
    run(tmp_path, endpoint, model=model)
    first = len(endpoint.requests)
    run(tmp_path, endpoint, model=model)
    again = len(endpoint.requests) - first
    assert again <= 4  # of the odd reply, which is asked again, and whatever Inspect does not cache
