"""Similarity by embeddings: by functions and by LiteLLM, in files, in plans, in the store and in budgets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric import (
    Budget,
    Case,
    Criterion,
    Grade,
    Judge,
    Jury,
    LoadError,
    Rubric,
    Store,
    Suite,
    Ungraded,
    load_suite,
    plan,
)
from rubric.engine.grade import evaluate
from rubric.formats import DumpError
from rubric.formats.suites import dumps_suite, loads_suite
from rubric.values import Similar
from rubric.values.findings import Unjudged
from tests.command_line import run
from tests.rows import each_row
from tests.servers import Server

VECTORS = {"Hola": [1.0, 0.0], "Hi": [0.8, 0.6], "Rock": [0.0, 1.0], "Nothing": [0.0, 0.0], "Far": [4.0, 4.0]}


def embed(texts: list[str]) -> list[list[float]]:
    return [VECTORS[text] for text in texts]


def graded(output: str, check: Similar) -> Any:
    result = evaluate(output, Rubric(criteria=[Criterion("Alike", id="c", answer=check)], threshold=None), "offline")
    assert isinstance(result, Grade), result
    return result.passed, round(result.score, 4)


# promptfoo: a similarity passes from the threshold and a distance up to it; a distance d scores 1 / (1 + d).
@each_row(
    ("output", "texts", "options", "outcome"),
    [
        ("Hi", "Hola", {}, (True, 0.8)),
        ("Hi", "Hola", {"threshold": 0.9}, (False, 0.8)),
        ("Hi", "Hola", {"threshold": 0.8}, (True, 0.8)),
        ("Hi", ["Rock", "Hola"], {}, (True, 0.8)),
        ("Far", "Hola", {"measure": "dot", "threshold": 3}, (True, 1)),
        ("Hi", "Hola", {"measure": "dot"}, (True, 0.8)),
        ("Rock", "Hola", {"measure": "euclidean", "threshold": 1.5}, (True, 0.4142)),
        ("Rock", "Hola", {"measure": "euclidean"}, (False, 0.4142)),
        ("Hola", "Hola", {"measure": "euclidean", "threshold": 0}, (True, 1)),
        ("Nothing", "Hola", {}, (False, 0)),
    ],
)
def test_the_nearest_text_counts(output: str, texts: Any, options: dict[str, Any], outcome: tuple[bool, float]) -> None:
    """Cosine, dot product and Euclidean distance, each with its own meaning of a threshold."""
    assert graded(output, Similar(texts, model=embed, **options)) == outcome


@each_row("said", [[[1.0]], [[1.0], [1.0, 2.0]], [[float("nan")], [1.0]], "no", 7, [[], []]])
def test_what_are_no_vectors_leaves_the_criterion_unjudged(said: Any) -> None:
    """It is never a score of 0."""
    found = evaluate(
        "Hi", Rubric(criteria=[Criterion("x", id="c", answer=Similar("Hola", model=lambda _: said))]), "offline"
    )
    assert isinstance(found, Ungraded)
    assert isinstance(found["c"], Unjudged)
    assert "vector" in found["c"].failure.message


def test_a_function_that_raises_is_a_failure_with_its_message() -> None:
    """As of a judge."""
    found = evaluate("Hi", Rubric(criteria=[Criterion("x", answer=Similar("a", model=lambda _: 1 / 0))]), "offline")
    assert "division by zero" in str(found)


def served(texts_of: list[list[str]]) -> bytes:
    vectors = [VECTORS[text] for texts in texts_of for text in texts]
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    whole = {
        "object": "list",
        "model": "text-embedding-3-large",
        "data": data,
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
    }
    return json.dumps(whole).encode()


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Any:
    with Server() as server:
        endpoint = server.saying(served([["Hi", "Hola"]]))
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_API_BASE", f"{endpoint.root}/v1")
        yield endpoint


RUBRIC = Rubric(criteria=[Criterion("Alike", id="c", answer=Similar("Hola"))])
EMBEDDING = Judge("offline", embedder="openai/text-embedding-3-large")


def test_litellm_embeds_once_and_the_store_keeps_the_vectors(openai: Any, tmp_path: Path) -> None:
    """One request holds the output and the texts; its cost is known, and a second run costs nothing."""
    with Store(tmp_path / "store.db") as store:
        first = evaluate("Hi", RUBRIC, EMBEDDING, store=store)
        again = evaluate("Hi", RUBRIC, EMBEDDING, store=store)
    assert isinstance(first, Grade), first
    assert (first.passed, round(first.score, 4)) == (True, 0.8)
    assert again.outcome == first.outcome
    assert first.usage.cost == pytest.approx(9 * 1.3e-7)
    (request,) = openai.requests
    assert request.body["input"] == ["Hi", "Hola"]
    assert request.path.endswith("/embeddings")


def test_a_budget_holds_back_what_it_cannot_pay(openai: Any) -> None:
    """An embedding is a call like others."""
    found = evaluate("Hi", RUBRIC, EMBEDDING, budget=Budget(calls=0))
    assert isinstance(found, Ungraded)
    assert not openai.requests


def test_a_plan_counts_the_call() -> None:
    """With its price, which is of the tokens sent."""
    planned = plan("Hi", RUBRIC, EMBEDDING)
    assert (planned.least, planned.most) == (1, 1)
    assert planned.cost is not None
    assert 0 < planned.cost[1] < 0.01


def test_without_a_key_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = evaluate("Hi", RUBRIC, EMBEDDING)
    assert isinstance(found, Ungraded)
    assert "OPENAI_API_KEY" in str(found)


def answer_of(assertion: dict[str, Any], **options: Any) -> Any:
    (case,) = loads_suite(json.dumps({"tests": [{"assert": [assertion], "options": options}]}), "promptfoo")
    return case.rubric.judged[0].answer


@each_row(
    ("assertion", "check"),
    [
        ({"type": "similar", "value": "a"}, Similar("a")),
        ({"type": "similar", "value": ["a", "b"], "threshold": 0.9}, Similar(["a", "b"], threshold=0.9)),
        ({"type": "similar:dot", "value": "a"}, Similar("a", measure="dot")),
        ({"type": "similar:euclidean", "value": "a", "threshold": 2}, Similar("a", measure="euclidean", threshold=2)),
        (
            {"type": "similar", "value": "a", "provider": "mistral:embedding:mistral-embed"},
            Similar("a", model="mistral/mistral-embed"),
        ),
        ({"type": "similar", "value": "a", "provider": "openai:gpt-5"}, Similar("a")),
    ],
)
def test_similar_of_promptfoo(assertion: dict[str, Any], check: Similar) -> None:
    """A provider that writes embeds nothing, so promptfoo's default does."""
    assert answer_of(assertion) == check


def test_the_embedding_provider_of_a_test_is_taken() -> None:
    """Beside the one for texts."""
    provider = {"text": "openai:gpt-5", "embedding": {"id": "openai:embedding:text-embedding-3-small"}}
    assert answer_of({"type": "similar", "value": "a"}, provider=provider).model == "openai/text-embedding-3-small"


def test_not_similar_passes_where_no_text_is_near() -> None:
    """The verdict is turned over, and its score is 1 less the similarity."""
    (case,) = loads_suite(
        json.dumps({"tests": [{"assert": [{"type": "not-similar", "value": ["Hola", "Hi"]}]}]}), "promptfoo"
    )
    (criterion,) = case.rubric.criteria
    rubric = Rubric(criteria=[Criterion("x", answer=Similar(["Hola", "Nothing"], model=embed))], negate=True)
    assert case.rubric.negate
    assert isinstance(criterion.answer, Similar)
    result = evaluate("Rock", rubric, "offline")
    assert isinstance(result, Grade)
    assert (result.passed, result.score) == (True, 1)


def test_juries_ask_for_embeddings_once(openai: Any, tmp_path: Path) -> None:
    """All votes share them, where there is a store."""
    with Store(tmp_path / "store.db") as store:
        result = evaluate("Hi", RUBRIC, Jury(EMBEDDING, 3, early_stop=False), store=store)
    assert result.passed
    assert len(openai.requests) == 1


# -- whom a file has asked ---------------------------------------------------------------------------------

FILE = """\
suite: alike
cases:
  - id: one
    output: Hi
    rubric: {criteria: [{id: c, text: Alike, check: {similar: {texts: [Hola], model: openai/text-embedding-3-small}}}]}
"""


def test_a_file_has_nobody_asked_for_embeddings(openai: Any, tmp_path: Path) -> None:
    """With a key in the environment, and under any judge, the case is ungraded and names what to give."""
    path = tmp_path / "suite.yaml"
    path.write_text(FILE)
    for judge in ("offline", lambda _: '{"verdict": true}'):
        (row,) = load_suite(path).run(judge)
        assert row.status == "ungraded"
        assert "Judge(..., embedder='openai/text-embedding-3-small')" in row.reason
        assert "--judge MODEL --embedder openai/text-embedding-3-small" in row.reason
    assert not openai.requests


def test_the_run_names_the_model_for_embeddings(openai: Any, tmp_path: Path) -> None:
    """The judge's embedder is asked, whatever model the file proposes; a terminal has an option for it."""
    path = tmp_path / "suite.yaml"
    path.write_text(FILE)
    (row,) = load_suite(path).run(EMBEDDING)
    assert row.status == "passed"
    done = run("grade", str(path), "--judge", "offline", "--embedder", "openai/text-embedding-3-large")
    assert done.exit_code == 0, done.output
    assert [request.body["model"] for request in openai.requests] == ["text-embedding-3-large"] * 2


def test_a_function_makes_the_embeddings_of_a_file() -> None:
    """An embedder may be a function: nothing leaves the machine."""
    (row,) = loads_suite(FILE).run(Judge("offline", embedder=embed))
    assert row.status == "passed"


def test_an_embedder_without_a_judge_is_refused(tmp_path: Path) -> None:
    """It belongs to the judge of the run, and the file's own judges have none."""
    (tmp_path / "suite.yaml").write_text(FILE)
    done = run("grade", str(tmp_path / "suite.yaml"), "--embedder", "openai/text-embedding-3-large")
    assert done.exit_code == 2
    assert "--judge MODEL" in done.stderr


def test_no_file_sets_an_embedder() -> None:
    """Neither is it read from a judge in a file, nor written into one."""
    with pytest.raises(LoadError, match="embedder"):
        loads_suite(FILE.replace("cases:", "judge: {model: openai/gpt-5, embedder: openai/e}\ncases:"))
    with pytest.raises(DumpError, match="embedder"):
        dumps_suite(Suite("s", [Case(id="c", output="Hi", rubric=RUBRIC)], judge=EMBEDDING))


def test_a_plan_counts_no_call_without_an_embedder() -> None:
    """As nothing would be sent."""
    assert plan("Hi", RUBRIC, "offline").most == 0


def test_an_embedder_is_part_of_what_a_judge_is() -> None:
    """Another model may find other texts alike, so the digest differs; that of a judge without one is as before."""
    assert EMBEDDING.digest != Judge("offline").digest
    assert Judge("offline", embedder=embed).digest == Judge("offline", embedder=embed).digest
