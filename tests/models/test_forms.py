"""How tight a schema each server is sent, what is sent where it is refused, and how long a reply may be."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from attrs import evolve

from rubric import Candidate, Grade, Judge, Rubric, Store, evaluate, grade, plan
from rubric.grading.flow import flow
from rubric.models.chat_completions import first_form, form_for, response_format, with_room
from rubric.models.litellm import _first_schema
from rubric.values.requests import MOST_TOKENS, Ask, Reply
from tests.rows import each_row
from tests.servers import Server, Status

RUBRIC = (
    Rubric("r", abstain="exclude")
    .expects("Is polite", id="polite")
    .scores("Is warm", id="warm")
    .rates("Is clear", {0: "no", 10: "yes"}, id="clear")
    .chooses("Which tone?", {'the "quoted" one': 0, "warm\nand long": 1}, id="tone")
    .requires("Names a day", id="day", evidence=True)
)
GOOD: dict[str, tuple[str, list[Any], list[Any]]] = {
    "polite": ("verdict", [True, False, None], ["yes", 1, 0.5]),
    "warm": ("score", [0, 0.55, 1, None], [10, -1, 0.123456, "0.5", True]),
    "clear": ("score", [0, 7, 10, None], [11, -1, 2.5, "7"]),
    "tone": ("choice", ['the "quoted" one', "warm\nand long", None], ["warm", "the quoted one", ""]),
    "day": ("verdict", [True, None], ["Monday"]),
}


def asks_of(rubric: Rubric = RUBRIC, **options: Any) -> tuple[Ask, ...]:
    """Return the first asks about a candidate, of a judge with *options*."""
    return next(flow(Candidate("Your refund arrives on Monday."), rubric, Judge("m", **options), ahead=False))


def accepts(schema: Any, value: Any) -> bool:
    """True if *value* fits *schema*, in which the order of keys says nothing."""
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def verdict_for(ask: Ask, **changes: Any) -> dict[str, Any]:
    """Return a good verdict on the criterion of *ask*, with *changes*."""
    key, good, _ = GOOD[ask.criteria[0].id]
    evidence = {"evidence": ["on Monday"]} if ask.quoted else {}
    return {"reason": "It does.", **evidence, key: good[0], "nonce": ask.nonce, **changes}


@pytest.mark.parametrize("reasoning", ["before", "after"])
def test_the_schema_of_an_ask_has_its_values_and_its_nonce_alone(reasoning: Any) -> None:
    """Labels, ranges and null where the rubric lets a judge abstain; any other value, key or nonce is refused."""
    for ask in asks_of(reasoning=reasoning):
        schema = json.loads(ask.exact_schema())
        key, good, bad = GOOD[ask.criteria[0].id]
        for value in good:
            assert accepts(schema, verdict_for(ask, **{key: value})), (key, value)
        for value in bad:
            assert not accepts(schema, verdict_for(ask, **{key: value})), (key, value)
        assert not accepts(schema, verdict_for(ask, nonce="another"))
        assert not accepts(schema, verdict_for(ask, passed=True))
        assert [*schema["properties"]][-1] == "nonce"


def test_texts_and_lists_have_an_end() -> None:
    """A reason, a quote and a list of quotes that go on are refused: a small model does not end them by itself."""
    (ask,) = asks_of(Rubric().requires("Names a day", id="day", evidence=True))
    schema = json.loads(ask.exact_schema())
    assert not accepts(schema, verdict_for(ask, reason="x" * 401))
    assert not accepts(schema, verdict_for(ask, evidence=["x" * 301]))
    assert not accepts(schema, verdict_for(ask, evidence=["x"] * 4))


def test_a_list_has_a_place_for_each_criterion() -> None:
    """In the order that was asked, each with its own values: no other id, none twice, and none too many."""
    (ask,) = asks_of(per_call="all")
    schema = json.loads(ask.exact_schema())
    each = dict(zip(GOOD, asks_of(), strict=True))
    good = []
    for name, single in each.items():
        quotes = {"evidence": ["on Monday"] if name == "day" else []}
        said = {key: value for key, value in verdict_for(single).items() if key in ("reason", "evidence")}
        good.append({"id": name, **said, **quotes, "verdict": GOOD[name][1][0], "nonce": ask.nonce})
    assert accepts(schema, {"verdicts": good})
    assert not accepts(schema, {"verdicts": good[:-1]})
    assert not accepts(schema, {"verdicts": [*good, good[0]]})
    assert not accepts(schema, {"verdicts": [good[1], good[0], *good[2:]]})


def test_no_label_is_taken_for_the_place_of_the_nonce() -> None:
    """A label and an id that read like that place stay as they are."""
    odd = '"nonce":{"const":""}'
    (ask,) = asks_of(Rubric().chooses("Which?", {odd: 1, "other": 0}, id="tone"))
    assert json.loads(ask.exact_schema())["properties"]["choice"]["enum"] == [odd, "other"]


@each_row(
    ("address", "form"),
    [
        ("http://localhost:8080/v1", "exact"),
        ("http://10.0.0.7:8000/v1", "exact"),
        ("http://[::1]:8000/v1", "exact"),
        ("https://models.example.org/v1", "exact"),
        ("https://notopenrouter.example/v1", "exact"),
        ("https://api.openai.com/v1", "bounded"),
        ("https://eu.api.openai.com/v1", "schema"),
        ("https://mine.openai.azure.com/openai/v1", "schema"),
        ("https://openrouter.ai/api/v1", "schema"),
        ("https://API.GROQ.COM/openai/v1", "schema"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "schema"),
    ],
)
def test_the_address_decides_what_is_sent_first(address: str, form: str) -> None:
    """Vendors that keep what they make of a schema get one that is the same for all criteria of a kind."""
    assert first_form(address) == form


@pytest.mark.parametrize(
    ("model", "form"),
    [
        ("openai/gpt-5.6", "bounded"),
        ("ollama/llama3", "exact"),
        ("hosted_vllm/qwen", "exact"),
        ("lm_studio/x", "exact"),
        ("anthropic/claude-sonnet-4-5", "schema"),
        ("openrouter/qwen/qwen3", "schema"),
    ],
)
def test_litellms_name_of_the_vendor_decides_too(model: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its address does."""
    for name in ("OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    assert _first_schema(Judge(model), "schema") == form
    assert _first_schema(Judge(model), "json") == "json"


def test_an_address_of_the_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name of OpenAI's is a local server's where `OPENAI_BASE_URL` says so; an address of the judge's goes first."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:8000/v1")
    assert _first_schema(Judge("openai/mine"), "schema") == "exact"
    assert _first_schema(Judge("openai/mine", api_base="https://api.openai.com/v1"), "schema") == "bounded"


def test_openai_gets_the_bounds_of_a_kind() -> None:
    """The same for all its asks: a nonce by pattern, a score by range; fine-tuned models are sent none."""
    warm, clear = (asks_of()[n] for n in (1, 2))
    sent = response_format("bounded", warm)["response_format"]["json_schema"]["schema"]["properties"]
    assert sent["nonce"] == {"type": "string", "pattern": "^[a-z2-7]{16}$"}
    assert (sent["score"]["minimum"], sent["score"]["maximum"]) == (0, 1)
    assert (
        "maximum"
        not in response_format("bounded", clear)["response_format"]["json_schema"]["schema"]["properties"]["score"]
    )
    many = asks_of(per_call="all")[0]
    items = response_format("bounded", many)["response_format"]["json_schema"]["schema"]["properties"]["verdicts"][
        "items"
    ]
    assert items["properties"]["evidence"]["maxItems"] == 20
    assert form_for(evolve(warm, judge=Judge("openai/ft:gpt-4o:org::1")), "bounded") == "schema"
    assert form_for(evolve(warm, exact=""), "exact") == "schema"


REFUSALS = {
    "llama.cpp": (400, "failed to parse grammar"),
    "vllm": (400, "The provided JSON schema contains features not supported by xgrammar."),
    "ollama": (500, "invalid JSON schema in format"),
    "openai": (400, "Invalid schema for response_format 'verdict': In context=(), 'prefixItems' is not permitted."),
}


@each_row("name", [*REFUSALS])
@each_row("via", ["http", "litellm"])
def test_a_refused_schema_is_followed_by_the_constant_one(name: str, via: str) -> None:
    """One step at a time, at once, remembered; the grades are the same, and none of it is a retry."""
    status, words = REFUSALS[name]
    refusal = Status(status, "invalid_request_error", words)
    with Server() as server:
        server.refuse = lambda body: refusal if "const" in json.dumps(body.get("response_format")) else None
        endpoint = server.at("ok")
        model = f"openai/refuses-{name}"
        judge = Judge(model, via=endpoint.openai) if via == "http" else Judge(model, api_base=endpoint.openai)
        judge = evolve(judge, retries=0, params={**judge.params, "api_key": "key-of-the-test"})
        results = [evaluate(f"Hello {n}", Rubric().expects("Is polite"), judge) for n in range(3)]
    assert all(isinstance(result, Grade) for result in results)
    sent = [request.body["response_format"]["json_schema"]["schema"] for request in endpoint.requests]
    assert ["const" in json.dumps(schema) for schema in sent] == [True, False, False, False]


def test_a_stored_reply_serves_whatever_schema_its_server_took(tmp_path: Any) -> None:
    """What a server takes is found out by asking, so it is not a part of the key: nothing is paid for twice."""
    with Server() as server, Store(tmp_path / "replies.db") as store:
        endpoint = server.at("ok")
        refusal = Status(400, "invalid_request_error", "bad schema")
        server.refuse = lambda body: refusal if "const" in json.dumps(body.get("response_format")) else None
        judge = Judge("stored", via=endpoint.openai)
        grade("Hello", Rubric().expects("Is polite"), judge, store=store)
        asked = len(endpoint.requests)
        grade("Hello", Rubric().expects("Is polite"), evolve(judge, timeout=7), store=store)
    assert len(endpoint.requests) == asked == 2


# -- how long a reply may be ------------------------------------------------------------------------------


def test_a_verdict_has_a_length() -> None:
    """By the type of its answer, and by what goes with it; never more than the limit of all replies."""
    lengths = {ask.criteria[0].id: ask.max_tokens for ask in asks_of()}
    assert lengths["polite"] == lengths["clear"] == 520
    assert lengths["tone"] == 520 + len('the "quoted" one')
    assert lengths["day"] == 970
    assert {ask.max_tokens for ask in asks_of(reasoning="none")} >= {320}
    assert asks_of(per_call="all")[0].max_tokens > 2000
    many = Rubric(criteria=[f"Says {n}" for n in range(100)])
    assert asks_of(many, per_call="all")[0].max_tokens == MOST_TOKENS


def test_a_limit_of_the_users_own_is_kept() -> None:
    """For each ask, and twice as many where it was cut."""
    assert {ask.max_tokens for ask in asks_of(max_tokens=77)} == {77}


@each_row(
    "model",
    [
        "openai/gpt-5.6",
        "o3",
        "openai/gpt-oss-20b",
        "deepseek/deepseek-reasoner",
        "qwen3:8b",
        "Qwen/Qwen3-8B",
        "gemini/gemini-2.5-flash",
        "deepseek-r1:7b",
        "ollama/qwq",
        "zai/glm-4.6",
        "xai/grok-4",
        "kimi-k2-thinking",
        "magistral-small",
    ],
)
def test_models_that_think_have_room_for_it(model: str) -> None:
    """Their thoughts count as tokens of the reply; models that do not think have the length of a verdict."""
    assert Judge(model).may_think
    (ask,) = next(flow(Candidate("Hello"), Rubric().expects("Is polite"), Judge(model)))
    assert ask.max_tokens == MOST_TOKENS


@each_row(
    "model",
    [
        "openai/gpt-4o-mini",
        "gpt-5-chat-latest",
        "smollm2",
        "anthropic/claude-sonnet-4-5",
        "mistral/mistral-large",
        "llama3.1:8b",
        "turbo3",
    ],
)
def test_other_models_have_not(model: str) -> None:
    """Unless a parameter makes them think."""
    assert not Judge(model).may_think
    assert Judge(model, params={"thinking": {"type": "enabled", "budget_tokens": 2000}}).may_think


def test_free_texts_and_prompts_of_ones_own_have_the_longest_limit() -> None:
    """Nothing is known of their length."""
    scored = Rubric().scores("Is warm")
    judges = [Judge("m", reader="rating", sealed=False), Judge("m", prompt="{{ output }} {{ criterion }} {{ reply }}")]
    assert {next(flow(Candidate("Hello"), scored, judge))[0].max_tokens for judge in judges} == {MOST_TOKENS}


def test_a_cut_reply_is_asked_once_more_with_the_longest_limit() -> None:
    """And then it is ungraded, as the judge's repairs say."""
    steps = flow(Candidate("Hello"), Rubric().expects("Is polite"), Judge("m"))
    (first,) = next(steps)
    (again,) = steps.send([Reply('{"reason": "it', finish="length")])
    assert (first.max_tokens, again.max_tokens) == (520, MOST_TOKENS)
    with pytest.raises(StopIteration) as end:
        steps.send([Reply('{"reason": "it', finish="length")])
    assert [failure.kind for failure in end.value.value.failures] == ["truncated"] * 2


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "reasoning_content": "Well, "},
        {"content": "<think>Well, "},
        {"content": "", "reasoning": "Hm"},
    ],
    ids=["field", "tag", "other field"],
)
def test_a_model_that_is_seen_to_think_has_room_from_then_on(message: dict[str, Any]) -> None:
    """It is cut once: its next request has the longest limit, and so has what a budget sets aside for it."""
    said = {
        "choices": [{"message": message, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 9},
    }
    with Server() as server:
        endpoint = server.saying(said)
        judge = Judge(f"muses-{len(json.dumps(message))}", via=endpoint.openai, repairs=0)
        for text in ("Hello", "Goodbye"):
            evaluate(text, Rubric().expects("Is polite"), judge)
        evaluate("Bye", Rubric().expects("Is polite"), evolve(judge, max_tokens=50))
    assert [request.body["max_tokens"] for request in endpoint.requests] == [520, MOST_TOKENS, 50]
    (ask,) = next(flow(Candidate("Bye"), Rubric().expects("Is polite"), judge))
    assert with_room(ask).max_tokens == MOST_TOKENS


def test_a_plan_reserves_the_length_of_the_verdict() -> None:
    """Not that of the longest reply there is: at most 520 tokens back for a yes or no."""
    polite = Rubric().expects("Is polite")
    short, long = (plan("Hello", polite, Judge("openai/gpt-4o-mini", max_tokens=most)).cost for most in (None, 4096))
    assert short is not None
    assert long is not None
    assert long[1] - short[1] == pytest.approx((4096 - 520) * 0.6e-6)


def test_a_wide_range_is_given_by_its_ends() -> None:
    """A list of a million whole numbers would be longer than the prompt."""
    for rubric, also in ((Rubric(), []), (Rubric(abstain="exclude"), [None])):
        (ask,) = asks_of(rubric.rates("How many?", {0: "none", 10**6: "all"}, id="clear"))
        assert len(ask.exact) < 500
        schema = json.loads(ask.exact_schema())
        assert all(accepts(schema, {"reason": "few", "score": n, "nonce": ask.nonce}) for n in (0, 10**6, *also))
        assert not any(accepts(schema, {"reason": "few", "score": n, "nonce": ask.nonce}) for n in (-1, 10**6 + 1, "x"))


def test_many_labels_are_all_there() -> None:
    """A menu is never shortened, however long it is."""
    (ask,) = asks_of(Rubric().chooses("Which?", {f"label {n}": n / 200 for n in range(200)}, id="tone"))
    assert len(json.loads(ask.exact_schema())["properties"]["choice"]["enum"]) == 200
