"""A chat completion reads alike, whatever its dialect, as plain data and as LiteLLM hands it on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from attrs import evolve

from rubric.errors import ModelError
from rubric.models.chat_completions import reply_from
from rubric.models.chat_turns import turn_from
from rubric.models.registry import model_of
from rubric.models.retry import attempt
from rubric.values.requests import Failure, FailureKind, Reply, Usage
from tests.rows import each_row
from tests.sendables import RECENT, openai_ask
from tests.servers import Server


def completion(
    message: dict[str, Any] | None = None,
    choice: dict[str, Any] | None = None,
    usage: dict[str, Any] | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return a chat completion that says yes, with changes to its parts."""
    said = {"role": "assistant", "content": "yes"} | (message or {})
    used = {"prompt_tokens": 2000, "completion_tokens": 5, "total_tokens": 2005} | (usage or {})
    only = {"index": 0, "message": said, "finish_reason": "stop"} | (choice or {})
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m-1", "choices": [only], "usage": used}
    return body | changes


def both(server: Server, said: Any) -> list[Reply | Failure]:
    """Return what comes of *said* straight and through LiteLLM, in one attempt each."""
    outcomes = []
    for via in ("http", "litellm"):
        ask = openai_ask(server.saying(said), via=via, retries=0, timeout=30)
        outcomes.append(asyncio.run(attempt(model_of(ask.judge), ask)))
    return outcomes


ENDS = {
    "stop": ("stop", "eos", "eos_token", "end_turn", "stop_sequence", "STOP", "COMPLETE", "", None, 7),
    "length": ("length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length", "compaction"),
    "refusal": ("content_filter", "SAFETY", "RECITATION", "refusal", "content_filtered", "ERROR_TOXIC", "sensitive"),
    "tool_calls": ("tool_calls", "tool_use"),
    "weird": ("weird",),
}

CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    f"{said}": ({"finish_reason": said}, end) for end, several in ENDS.items() for said in several
} | {
    "native MAX_TOKENS": ({"native_finish_reason": "MAX_TOKENS"}, "length"),
    "native SAFETY": ({"native_finish_reason": "SAFETY"}, "refusal"),
    "native completed": ({"native_finish_reason": "completed"}, "stop"),
    "native length, said so": ({"finish_reason": "length", "native_finish_reason": "MAX_TOKENS"}, "length"),
}


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM knows fewer words")
@pytest.mark.parametrize(("choice", "end"), CHOICES.values(), ids=CHOICES)
def test_an_end_reads_alike_on_both_ways(server: Server, choice: dict[str, Any], end: str) -> None:
    """Why a reply ended is told in one word, whatever the vendor's is, and whoever has translated it before."""
    ours, theirs = both(server, completion(choice=choice))
    assert isinstance(ours, Reply)
    assert isinstance(theirs, Reply)
    assert (ours.finish, ours.refusal) == (theirs.finish, theirs.refusal)
    assert ours.finish == end


CACHED: dict[str, dict[str, Any]] = {
    "OpenAI": {"prompt_tokens_details": {"cached_tokens": 1024}},
    "DeepSeek": {"prompt_cache_hit_tokens": 1024, "prompt_cache_miss_tokens": 976},
    "DeepSeek, with details": {"prompt_tokens_details": {"audio_tokens": 0}, "prompt_cache_hit_tokens": 1024},
    "Moonshot": {"cached_tokens": 1024},
    "Anthropic": {"cache_read_input_tokens": 1024, "cache_creation_input_tokens": 0},
    "Responses": {"input_tokens_details": {"cached_tokens": 1024}},
    "null details": {"prompt_tokens_details": None, "cached_tokens": 1024},
    "empty details": {"prompt_tokens_details": {}, "cached_tokens": 1024},
}

ODD_COUNTS: dict[str, tuple[dict[str, Any], tuple[int, int, int]]] = {
    "more cached than sent": ({"prompt_tokens_details": {"cached_tokens": 9999}}, (2000, 2000, 5)),
    "fewer than none": ({"prompt_tokens_details": {"cached_tokens": -5}}, (2000, 0, 5)),
    "text": ({"prompt_tokens": "2000"}, (2000, 0, 5)),
    "decimals": ({"prompt_tokens": 2000.0}, (2000, 0, 5)),
    "negative": ({"prompt_tokens": -7}, (0, 0, 5)),
    "too many to be true": ({"prompt_tokens": 10**18}, (0, 0, 5)),
}


@pytest.mark.parametrize(
    ("usage", "counts"),
    [*((usage, (2000, 1024, 5)) for usage in CACHED.values()), *ODD_COUNTS.values()],
    ids=[*CACHED, *ODD_COUNTS],
)
def test_tokens_read_alike_on_both_ways(server: Server, usage: dict[str, Any], counts: tuple[int, int, int]) -> None:
    """Cached tokens are found in every vendor's place, and no count that cannot be is believed."""
    used = [outcome.usage for outcome in both(server, completion(usage=usage))]
    assert [(u.prompt_tokens, u.cached_tokens, u.completion_tokens) for u in used] == [counts, counts]


SAID: dict[str, dict[str, Any]] = {
    "refusal": {"content": None, "refusal": "no"},
    "refusal beside text": {"refusal": "no"},
    "reasoning_content": {"reasoning_content": "hm"},
    "reasoning": {"reasoning": "hm"},
    "nothing but reasoning": {"content": None, "reasoning_content": "hm"},
    "a lone surrogate": {"content": "\ud800x"},
}


@pytest.mark.parametrize("message", SAID.values(), ids=SAID)
def test_a_message_reads_alike_on_both_ways(server: Server, message: dict[str, Any]) -> None:
    """Text, refusals and thoughts are told apart in the same way."""
    ours, theirs = (evolve(outcome, usage=Usage()) for outcome in both(server, completion(message)))
    assert ours == theirs


def test_choices_and_probabilities_read_alike_on_both_ways(server: Server) -> None:
    """Several choices keep their order, and the first one's tokens their probabilities."""
    token = {"token": "8", "logprob": -0.1, "bytes": None}
    logprobs = {"content": [{**token, "top_logprobs": [token, {**token, "token": "7", "logprob": -2.5}]}]}
    says = [{"role": "assistant", "content": text} for text in ("8", None, "7")]
    choices = [{"index": n, "message": said, "finish_reason": "stop"} for n, said in enumerate(says)]
    choices[0]["logprobs"] = logprobs
    ours, theirs = (evolve(outcome, usage=Usage()) for outcome in both(server, completion(choices=choices)))
    assert ours == theirs
    assert isinstance(ours, Reply)
    assert ours.choices == ("8", "", "7")


BROKEN_OFF: dict[str, tuple[dict[str, Any], FailureKind]] = {
    "error": ({"finish_reason": "error"}, "bad_response"),
    "abort": ({"finish_reason": "abort"}, "bad_response"),
    "OpenRouter's, a number": ({"finish_reason": "error", "error": {"code": 502, "message": "gone"}}, "overloaded"),
    "OpenRouter's, a text": ({"finish_reason": "error", "error": {"code": "429", "message": "slow"}}, "rate_limited"),
}


@pytest.mark.skipif(not RECENT, reason="an older LiteLLM drops fields that are not OpenAI's")
@pytest.mark.parametrize(("choice", "kind"), BROKEN_OFF.values(), ids=BROKEN_OFF)
def test_a_reply_that_the_server_broke_off_is_none(server: Server, choice: dict[str, Any], kind: FailureKind) -> None:
    """Half a reply is not read as a whole one; what it has cost stays known."""
    ours, theirs = both(server, completion(choice=choice))
    assert isinstance(ours, Failure)
    assert isinstance(theirs, Failure)
    assert (ours.kind, ours.usage.prompt_tokens) == (theirs.kind, theirs.usage.prompt_tokens) == (kind, 2000)


PARTS: dict[str, tuple[list[Any], str | None, str]] = {
    "two texts": ([{"type": "text", "text": "ye"}, {"type": "text", "text": "s"}], "yes", "stop"),
    "a thought": ([{"type": "thinking", "thinking": [{"text": "hm"}]}, {"type": "text", "text": "yes"}], "yes", "stop"),
    "bare text": (["yes"], "yes", "stop"),
    "a refusal": ([{"type": "refusal", "refusal": "no"}], None, "refusal"),
}


@pytest.mark.parametrize(("parts", "text", "finish"), PARTS.values(), ids=PARTS)
def test_a_content_in_parts_is_their_text(parts: list[Any], text: str | None, finish: str) -> None:
    """The parts that are text are the reply; thoughts are not, and a refusal is one."""
    reply = reply_from(completion({"content": parts}))
    assert (reply.text, reply.finish) == (text, finish)


ODD: dict[str, dict[str, Any]] = {
    **{f"content: {name}": completion({"content": parts}) for name, (parts, _, _) in PARTS.items()},
    "content: an object": completion({"content": {"verdict": True}}),
    "no role": completion(choice={"message": {"content": "yes"}}),
    "odd tool calls": completion({"tool_calls": "x", "annotations": "x"}),
    "odd usage": completion(usage={"completion_tokens_details": {"reasoning_tokens": "x"}}),
    "no usage": completion() | {"usage": [1]},
    "odd probabilities": completion(choice={"logprobs": {"content": "x"}}),
    "an end that is none": completion(choice={"finish_reason": ["stop"]}),
    "choices without messages": completion(choices=[{"index": 0, "text": "yes"}]),
    "an error in words, beside choices": completion(error="broken"),
}


@pytest.mark.parametrize("said", ODD.values(), ids=ODD)
def test_what_litellm_takes_for_no_completion_reads_alike_on_both_ways(server: Server, said: Any) -> None:
    """One parser reads it: text, end and tokens, and the kind of a failure with what it has cost."""
    ours, theirs = (evolve(each, usage=evolve(each.usage, cost=None)) for each in both(server, said))
    assert ours == theirs


def test_a_part_that_is_no_text_is_a_bad_response() -> None:
    """An image in a reply is nothing that could be read."""
    with pytest.raises(ModelError, match="image_url"):
        reply_from(completion({"content": [{"type": "image_url", "image_url": {"url": "x"}}]}))


ERRORS: dict[str, tuple[dict[str, Any], FailureKind]] = {
    "number": ({"error": {"code": 429}}, "rate_limited"),
    "digits": ({"error": {"code": "429"}}, "rate_limited"),
    "digits and words": ({"error": {"code": "503 Service Unavailable"}}, "overloaded"),
    "decimals": ({"error": {"code": 429.0}}, "rate_limited"),
    "word": ({"error": {"code": "rate_limit_exceeded"}}, "rate_limited"),
    "type": ({"error": {"type": "authentication_error", "code": None}}, "auth"),
    "Google's status": ({"error": {"status": "UNAVAILABLE"}}, "overloaded"),
    "status": ({"error": {"status": 401}}, "auth"),
    "status_code": ({"error": {"status_code": "402"}}, "quota"),
    "quota": ({"error": {"code": "insufficient_quota", "message": "empty"}}, "quota"),
    "context": ({"error": {"code": "context_length_exceeded", "message": "long"}}, "context_window"),
    "a list": ({"error": [{"code": 429}]}, "rate_limited"),
    "errors": ({"errors": [{"code": 429}]}, "rate_limited"),
    "at the top": ({"object": "error", "message": "not found", "code": 404}, "bad_request"),
    "beside choices": (completion(error={"code": 429}), "rate_limited"),
    "text alone": ({"error": "busy"}, "bad_response"),
    "a detail": ({"detail": "Not Found"}, "bad_response"),
    "5,000 digits": ({"error": {"code": "9" * 5000}}, "bad_response"),
    "digits of another script": ({"error": {"code": "\u0664\u0662\u0669"}}, "bad_response"),
    "a status of no error": ({"error": {"code": 200}}, "bad_response"),
}


@each_row(("said", "kind"), ERRORS.values(), ids=ERRORS)
def test_an_error_in_a_200_has_its_kind(said: dict[str, Any], kind: FailureKind) -> None:
    """A status that a gateway hands on in the body counts as one, in whatever form it is written."""
    with pytest.raises(ModelError) as caught:
        reply_from(said)
    assert caught.value.failure.kind == kind


@pytest.mark.parametrize("said", [said for said, _ in ERRORS.values()], ids=ERRORS)
def test_an_error_in_a_200_is_the_same_on_both_ways(server: Server, said: dict[str, Any]) -> None:
    """It has its kind and its price, whatever LiteLLM makes of it."""
    ours, theirs = both(server, said)
    assert isinstance(ours, Failure)
    assert isinstance(theirs, Failure)
    assert (ours.kind, ours.usage) == (theirs.kind, evolve(theirs.usage, cost=ours.usage.cost))


@pytest.mark.parametrize("calls", [7, "x", {"a": 1}])
def test_odd_requests_for_tools_are_none(calls: Any) -> None:
    """What is not a list of requests for tools asks for none."""
    assert turn_from(completion({"tool_calls": calls})).tool_calls == ()


def test_a_turn_in_plain_data_is_read_as_litellms_objects_are() -> None:
    """A request for tools is found in plain data, too."""
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"x": 1}'}}
    turn = turn_from(completion({"content": None, "tool_calls": [call]}, {"finish_reason": "tool_use"}))
    assert (turn.finish, turn.tool_calls[0].name, turn.tool_calls[0].parse()) == ("tool_calls", "look", {"x": 1})
    assert turn.message["tool_calls"] == [call]


def test_a_judge_with_tools_and_a_target_send_the_same_back(server: Server) -> None:
    """Gemini refuses the results of tools without the signature of its thoughts."""
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    call |= {"provider_specific_fields": {"thought_signature": "QQ=="}}
    response = completion({"content": None, "tool_calls": [call]}, {"finish_reason": "tool_use"})
    ask = evolve(openai_ask(server.saying(response), via="http"), steps=1)
    assert json.loads(reply_from(response, ask=ask).wanted)["tool_calls"] == [call]
    assert turn_from(response).message["tool_calls"] == [call]


@pytest.mark.parametrize("logprob", [10**400, "much", None, [], float("nan")])
def test_a_probability_that_is_no_number_is_none(logprob: Any) -> None:
    """Whatever stands in the place of a probability, the reply stands."""
    content = [{"token": "8", "logprob": logprob, "top_logprobs": []}]
    assert reply_from(completion(choice={"logprobs": {"content": content}})).logprobs is None


def test_nothing_is_likelier_than_certain() -> None:
    """A logarithm above 0 would be a probability above 1."""
    content = [{"token": "8", "logprob": 1e300, "top_logprobs": []}]
    assert reply_from(completion(choice={"logprobs": {"content": content}})).logprobs == (("8", 0.0, ()),)
