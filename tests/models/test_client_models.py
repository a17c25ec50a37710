"""Client objects that users hold, as judges: real clients over real sockets where they are installed."""

from __future__ import annotations

import asyncio
import gc
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve

from rubric import (
    Budget,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Rubric,
    Ungraded,
    UngradedError,
    agrade_many,
    evaluate,
    grade,
    grade_many,
    model,
)
from rubric.driving import Failure
from rubric.models.pricing import with_cost
from rubric.models.registry import model_of
from rubric.models.retry import attempt
from rubric.values.clients import client_identity
from tests.sendables import ask_of
from tests.servers import Endpoint, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [  # the clients are the user's, who closes them; some of these libraries warn of their own doings
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

POLITE = Rubric("polite").expects("Is polite").expects("Names a day")
NAME = "gpt-4o-mini"
KEY = "sk-test-0123456789abcdef"


@pytest.fixture(autouse=True, scope="module")
def spared() -> None:
    """Spare the garbage collector what earlier modules have left: each collection here took a quarter of a second."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Collect the clients that a test made while its own filters hold, and not during another test."""
    yield
    gc.collect()


def openai(endpoint: Endpoint) -> Any:
    """Return OpenAI's client with a model's name."""
    from openai import OpenAI

    return model(OpenAI(base_url=endpoint.openai, api_key=KEY), NAME)


def async_openai(endpoint: Endpoint) -> Any:
    """Return OpenAI's async client with a model's name."""
    from openai import AsyncOpenAI

    return model(AsyncOpenAI(base_url=endpoint.openai, api_key=KEY), NAME)


def anthropic(endpoint: Endpoint) -> Any:
    """Return Anthropic's client with a model's name."""
    from anthropic import Anthropic

    return model(Anthropic(base_url=endpoint.anthropic, api_key=KEY), NAME)


def async_anthropic(endpoint: Endpoint) -> Any:
    """Return Anthropic's async client with a model's name."""
    from anthropic import AsyncAnthropic

    return model(AsyncAnthropic(base_url=endpoint.anthropic, api_key=KEY), NAME)


def langchain_openai(endpoint: Endpoint) -> Any:
    """Return a chat model of LangChain's, which names its model."""
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(model=NAME, base_url=endpoint.openai, api_key=KEY)


def langchain_anthropic(endpoint: Endpoint) -> Any:
    """Return a chat model of LangChain's for Anthropic."""
    from langchain_anthropic import ChatAnthropic

    return ChatAnthropic(model=NAME, base_url=endpoint.anthropic, api_key=KEY)


def inspect_ai(endpoint: Endpoint) -> Any:
    """Return a model of Inspect's."""
    from inspect_ai.model import get_model

    return get_model(f"openai/{NAME}", base_url=endpoint.openai, api_key=KEY, memoize=False)


def dspy(endpoint: Endpoint) -> Any:
    """Return an LM of DSPy's."""
    from dspy import LM

    return LM(f"openai/{NAME}", api_base=endpoint.openai, api_key=KEY)


CLIENTS = {
    "openai": openai,
    "openai async": async_openai,
    "anthropic": anthropic,
    "anthropic async": async_anthropic,
    "langchain_openai": langchain_openai,
    "langchain_anthropic": langchain_anthropic,
    "inspect_ai": inspect_ai,
    "dspy": dspy,
}


@pytest.fixture(params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Callable[[Endpoint], Any]:
    """Return what makes a client for an endpoint."""
    package = request.param.split()[0]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed; `nox -s integrations` runs this test with it")
    return CLIENTS[request.param]


@pytest.fixture
def server() -> Iterator[Server]:
    """Yield a server of both protocols."""
    with Server() as running:
        yield running


def test_a_client_grades(client: Callable[[Endpoint], Any], server: Server) -> None:
    """Given as the judge, it is sent each criterion once, and its tokens are counted."""
    endpoint = server.at("ok")
    result = grade("Your refund arrives on Friday.", POLITE, client(endpoint))
    assert (result.score, result.usage.calls, len(endpoint.requests)) == (1, 2, 2)
    assert result.usage.prompt_tokens > 0
    assert result.usage.completion_tokens > 0
    assert result.judge.is_sealed()  # type: ignore[union-attr]  # it is one judge
    assert {request.body["model"] for request in endpoint.requests} == {NAME}


def test_many_candidates_go_side_by_side(client: Callable[[Endpoint], Any], server: Server) -> None:
    """Sync clients are called in threads, async ones in the loop of the caller."""

    async def main() -> list[Grade | Ungraded]:
        judge = Judge(client(server.at("ok")))
        return [result async for result in agrade_many([f"Text {n}" for n in range(12)], POLITE, judge, progress=False)]

    assert all(isinstance(result, Grade) for result in asyncio.run(main()))


@pytest.mark.parametrize(
    ("behaviour", "kind"),
    [("401", "auth"), ("429-after", "rate_limited"), ("503", "overloaded"), ("400", "bad_request")],
)
def test_an_error_has_the_kind_of_its_status(
    client: Callable[[Endpoint], Any], server: Server, behaviour: str, kind: str
) -> None:
    """By the status, in the server's words; an attempt sends once, but by Inspect, whose provider's client retries."""
    endpoint = server.at(behaviour)
    judge = Judge(client(endpoint), retries=0)
    outcome = asyncio.run(attempt(model_of(judge), ask_of(judge)))
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind, outcome
    assert KEY not in str(outcome)
    assert "Future" not in str(outcome)
    assert outcome.retry_after == (0.05 if behaviour == "429-after" else None)
    assert len(endpoint.requests) == (1 if kind in ("auth", "bad_request") or "inspect" not in str(client) else 3)


def test_a_cut_reply_is_truncated(client: Callable[[Endpoint], Any], server: Server) -> None:
    """A reply that ended at the limit is not a verdict; it is asked again with more tokens."""
    endpoint = server.at("length")
    with pytest.raises(UngradedError) as caught:
        grade("Hello.", Rubric().expects("Is polite"), Judge(client(endpoint), repairs=0))
    assert {failure.kind for failure in caught.value.result.failures} == {"truncated"}


@pytest.mark.parametrize("behaviour", ["refusal", "content-filter", "filtered-away"])
def test_a_refusal_is_one_with_its_tokens(
    client: Callable[[Endpoint], Any], server: Server, behaviour: str, request: pytest.FixtureRequest
) -> None:
    """In the model's words or by a filter; it is paid for, and not tried again."""
    named = request.node.callspec.params["client"]
    if behaviour != "refusal" and "anthropic" in named:
        pytest.skip("Anthropic has no such reply")
    endpoint = server.at(behaviour)
    result = evaluate("Hello.", Rubric().expects("Is polite"), Judge(client(endpoint), retries=2))
    assert isinstance(result, Ungraded)
    assert {failure.kind for failure in result.failures} == {"refusal"}
    assert (result.usage.calls, len(endpoint.requests)) == (1, 1)
    assert result.usage.prompt_tokens > 0


def test_a_client_has_the_price_of_its_model(
    client: Callable[[Endpoint], Any], server: Server, request: pytest.FixtureRequest
) -> None:
    """The cost is that of LiteLLM's list, as of a judge that is the name of the model, and a budget takes it."""
    if "anthropic" in request.node.callspec.params["client"]:
        pytest.skip("the model of these tests is OpenAI's")
    budget = Budget(cost=1)
    result = grade("Hello.", POLITE, client(server.at("ok")), budget=budget)
    usage = result.usage
    cost = with_cost(Judge(f"openai/{NAME}"), evolve(usage, cost=None)).cost
    assert usage.cost == pytest.approx(cost)
    assert budget.spent.cost == pytest.approx(cost)


@pytest.mark.parametrize("wrap", ["bind", "with_retry", "both"])
def test_a_bound_model_of_langchain_is_its_model(server: Server, wrap: str) -> None:
    """What `bind` adds is sent; the retries of `with_retry` are left out, since `Judge(retries=...)` counts them."""
    pytest.importorskip("langchain_openai", reason="it is not installed; `nox -s integrations` has it")
    down, well = server.at("503"), server.at("ok")

    def bound(endpoint: Endpoint) -> Any:
        chat = langchain_openai(endpoint)
        chat = chat.with_retry() if wrap != "bind" else chat
        return chat.bind(top_p=0.5) if wrap != "with_retry" else chat

    result = grade("Hello.", POLITE, bound(well))
    assert (result.score, result.judge.name) == (1, NAME)
    assert {request.body.get("top_p") for request in well.requests} == {None if wrap == "with_retry" else 0.5}
    evaluate("Hello.", Rubric().expects("Is polite"), Judge(bound(down), retries=0))
    assert len(down.requests) == 1
    ids = {client_identity(each, NAME) for each in (bound(well), langchain_openai(well))}
    assert len(ids) == (1 if wrap == "with_retry" else 2)


def test_a_store_answers_a_new_client_of_the_same_model(
    client: Callable[[Endpoint], Any], server: Server, tmp_path: Path
) -> None:
    """The key has the model's name and address, not the client itself, so a second run asks nobody."""
    endpoint = server.at("ok")
    for _ in range(2):
        assert grade("Hello.", POLITE, client(endpoint), store=tmp_path / "replies.db").score == 1
        assert len(endpoint.requests) == 2


def test_votes_of_a_jury_are_calls_of_their_own(client: Callable[[Endpoint], Any], server: Server) -> None:
    """A client's own cache does not answer for three jurors."""
    endpoint = server.at("ok")
    grade("Hello.", Rubric().expects("Is polite"), Jury(Judge(client(endpoint)), 3))
    assert len(endpoint.requests) == 3


# -- engines that need a GPU to be worth installing: objects with their classes' names ---------------------


def engine_of(package: str, name: str, **members: Any) -> Any:
    """Return an object whose class is called *name*, in *package*."""
    return type(name, (), {"__module__": f"{package}.entrypoints", **members})()


def verdict(chat: list[dict[str, Any]]) -> str:
    """Answer yes with the nonce that *chat* asks for."""
    from tests.servers import say_yes

    return say_yes({"messages": chat})


def test_a_pipeline_gets_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """All asks that wait are one call of a transformers pipeline."""
    batches: list[int] = []

    def run(_: object, chats: list[Any], **options: Any) -> list[list[dict[str, str]]]:
        batches.append(len(chats))
        assert options["return_full_text"] is False
        return [[{"generated_text": verdict(chat)}] for chat in chats]

    local = SimpleNamespace(name_or_path="org/small")
    pipe = engine_of("transformers", "TextGenerationPipeline", model=local, __call__=run)
    grades = grade_many([f"Text {n}" for n in range(20)], POLITE, pipe, progress=False).collect()
    assert not grades.ungraded
    assert sum(batches) == 40
    assert len(batches) < 20
    assert grades.usage.cost == 0
    assert Judge(pipe).name == "org/small"


def test_a_failed_batch_fails_each_of_its_asks() -> None:
    """What an engine raises is the failure of every ask that was in the batch, and of no other."""

    def run(_: object, chats: list[Any], **__: Any) -> list[Any]:
        msg = "out of memory"
        raise RuntimeError(msg)

    local = SimpleNamespace(name_or_path="org/small")
    pipe = engine_of("transformers", "TextGenerationPipeline", model=local, __call__=run)
    with pytest.raises(UngradedError, match="out of memory") as caught:
        grade("Hello.", POLITE, Judge(pipe, retries=0))
    assert len(caught.value.result.failures) == 2


# -- what is refused --------------------------------------------------------------------------------------


def test_a_client_without_a_name_is_refused_with_the_cure() -> None:
    """An OpenAI client asks any model: its name must be given."""
    from openai import OpenAI

    cure = r": OpenAI names no model; rubric\.model\(client, 'the name of a model'\) does$"
    with pytest.raises(DefinitionError, match=cure):
        Judge(OpenAI(api_key=KEY))
    with pytest.raises(DefinitionError, match=cure):  # with the other arguments as they are
        Judge(OpenAI(api_key=KEY), repairs=0)
    with pytest.raises(DefinitionError, match=cure):
        model(OpenAI(api_key=KEY))


@pytest.mark.parametrize("value", [object(), 7, {"model": "x"}])
def test_an_unknown_object_is_refused_with_the_cure(value: object) -> None:
    """The error names what can be a judge."""
    with pytest.raises(DefinitionError, match="an OpenAI or Anthropic client"):
        model(value)
    with pytest.raises(DefinitionError, match="an OpenAI or Anthropic client"):
        Judge(value)  # type: ignore[arg-type]  # that is the point


def test_recognising_a_client_imports_nothing() -> None:
    """A judge of another kind is made without looking for packages."""
    before = {*sys.modules}
    Judge("openai/gpt-5.6")
    assert not {"anthropic", "langchain_core", "inspect_ai", "dspy", "transformers"} & ({*sys.modules} - before)


def test_replies_of_two_names_at_one_client_are_told_apart() -> None:
    """The key of a stored reply holds the model's name and its address."""
    from openai import OpenAI

    client = OpenAI(api_key=KEY, base_url="http://localhost:1/v1")
    assert model(client, "a").identity != model(client, "b").identity
    assert KEY not in model(client, "a").identity
