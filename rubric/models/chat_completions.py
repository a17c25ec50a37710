"""
The one parser of a chat completion: plain data, or LiteLLM's objects of the same form, to a reply.

Vendors and servers of OpenAI's protocol differ in where things stand and in what they are called. All of that is in the
tables of this module, so that a payload reads alike whether it came straight or through LiteLLM.

The messages of an ask in the form that chat APIs take, with the marks that some vendors want.

From the body of a chat completion, which a stranger's server wrote, to a reply or a typed failure.

The body of a chat completion request, as OpenAI's protocol has it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from rubric.errors import ModelError
from rubric.internals.secrets import redact
from rubric.models.failures import words_of
from rubric.models.http_bodies import error_in, parsed
from rubric.models.structured_output import form_for
from rubric.values.requests import Failure, Reply, TokenLogprob, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rubric.models.structured_output import Form
    from rubric.values.judges import Judge
    from rubric.values.requests import Ask


_FINISHES = {
    word: finish
    for finish, words in {
        "stop": "stop eos eos_token end_turn stop_sequence complete completed finish_reason_unspecified",
        "length": "length max_tokens max_output_tokens max_length model_length compaction "
        "model_context_window_exceeded",
        "content_filter": "content_filter content_filtered refusal safety recitation language other blocklist "
        "prohibited_content spii sensitive error_toxic guardrail_intervened escalation no_image image_safety "
        "image_prohibited_content image_recitation image_other",
        "tool_calls": "tool_calls tool_call tool_use",
        "error": "error abort aborted network_error insufficient_system_resource malformed_response",
    }.items()
    for word in words.split()
}
"""Why a reply ended, in lower case: what vendors call it, and what it is called here. Other words stay as they are."""

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_blocks")

_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI, Azure, xAI, Groq, Mistral, Qwen, vLLM, OpenRouter
    ("input_tokens_details", "cached_tokens"),  # the Responses API
    ("prompt_cache_hit_tokens",),  # DeepSeek
    ("cached_tokens",),  # Moonshot, Together
    ("cache_read_input_tokens",),  # Anthropic
)

_MOST_TOKENS = 10**9  # of which no reply has so many; arithmetic with a number of 4,000 digits raises


def reply_from(response: Any, unsent: tuple[str, ...] = (), secrets: Iterable[str] = ()) -> Reply:
    """
    Return the reply that *response* holds.

    A refusal, in the model's own words or by a filter, ends as `refusal`; a text that was cut, as `length`.

    Args:
        unsent: The parameters that were left out of the request.
        secrets: What must not be shown in a failure.

    Raises:
        ModelError: It holds none; the failure keeps the usage.
    """
    usage, choice = usage_of(response), choice_of(response, secrets)
    texts = [said_in(each, usage) for each in at(response, "choices")]
    (text, refusal), finish, model = texts[0], finish_of(choice), at(response, "model")
    if refusal or finish == "content_filter":
        finish, refusal = "refusal", refusal or "stopped by a content filter"
    elif finish != "length" and not any((each or "").strip() for each, _ in texts):
        thought = ", nothing but reasoning" if any(at(at(choice, "message"), name) for name in _THOUGHT_FIELDS) else ""
        raise ModelError(Failure("bad_response", f"the reply is empty (finish: {finish}{thought})", usage=usage))
    several = tuple(each or "" for each, _ in texts) if len(texts) > 1 else ()
    model = model if isinstance(model, str) else ""
    return Reply(text, finish, refusal, usage, model, unsent, _logprobs(choice), several)


def at(value: Any, name: str) -> Any:
    """Return what *value*, an object of JSON or of LiteLLM's, has under *name*; None if nothing."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)


def choice_of(response: Any, secrets: Iterable[str] = ()) -> Any:
    """
    Return the first choice of *response*.

    Raises:
        ModelError: It has none; there is an error instead, or beside it; or the server broke the reply off.
    """
    choices, usage = at(response, "choices"), usage_of(response)
    good = isinstance(choices, list) and bool(choices) and all(_is_choice(choice) for choice in choices)
    error = at(response, "error") or at(response, "errors") or (_further(choices[0], "error") if good else None)
    if not error and not good and any(at(response, name) for name in ("message", "msg", "detail")):
        error = response
    if error:
        failure = error_in(error, secrets)
        raise ModelError(failure if usage.unmetered else evolve(failure, usage=usage))
    if not good:
        said = "the reply has no choices" if not choices else "what came back is no chat completion"
        raise ModelError(Failure("bad_response", said, usage=usage))
    if (finish := finish_of(choices[0])) == "error":
        raise ModelError(Failure("bad_response", f"the server broke the reply off (finish: {finish})", usage=usage))
    return choices[0]


def _is_choice(choice: Any) -> bool:
    message = at(choice, "message")
    return isinstance(message, dict) or hasattr(message, "content")


def said_in(choice: Any, usage: Usage) -> tuple[str | None, str]:
    """
    Return the text of *choice*, None where it has none, and what the model said instead of answering.

    Raises:
        ModelError: Its content is neither text nor parts that hold some; *usage* goes with the failure.
    """
    message = at(choice, "message")
    content, refusals = at(message, "content"), [_further(message, "refusal")]
    if isinstance(content, list):
        texts: list[str] = []
        for part in content:
            kind, text = at(part, "type"), part if isinstance(part, str) else at(part, "text")
            if kind == "refusal":
                refusals.append(at(part, "refusal"))
            elif isinstance(text, str) and kind not in _THOUGHTS:
                texts.append(text)
            elif kind not in _THOUGHTS:
                raise ModelError(
                    Failure("bad_response", f"a part of the reply is no text: {kind!r}"[:100], usage=usage)
                )
        content = "".join(texts) if texts else None
    if content is not None and not isinstance(content, str):
        raise ModelError(Failure("bad_response", f"the reply's content is a {type(content).__name__}", usage=usage))
    return clean(content), next((said for refusal in refusals if (said := clean(refusal))), "")


def _further(value: Any, name: str) -> Any:
    """Return what *value* has under *name*, a field that is not OpenAI's: LiteLLM may have put it aside."""
    return at(at(value, "provider_specific_fields"), name) or at(value, name)


def clean(content: Any) -> str | None:
    """Return *content* as text that can be encoded: a lone surrogate becomes the replacement character."""
    if not isinstance(content, str):
        return None
    return content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def finish_of(choice: Any) -> str:
    """Return why *choice* ended; the vendor's own word decides where a gateway, or LiteLLM, has made a `stop` of it."""
    finish = _finish(at(choice, "finish_reason"))
    return _finish(_further(choice, "native_finish_reason")) if finish == "stop" else finish


def _finish(word: Any) -> str:
    return _FINISHES.get(word.lower(), word) if isinstance(word, str) and word else "stop"


def usage_of(response: Any) -> Usage:
    """Return what *response* says that was used; unmetered if it says nothing. The cost is LiteLLM's, else unknown."""
    said = at(response, "usage")
    sent, back = (_count(at(said, name)) for name in ("prompt_tokens", "completion_tokens"))
    if not sent and not back:  # the names of Anthropic, who counts apart what the cache has, and of the Responses API
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        sent, back = sum(_count(at(said, name)) for name in names), _count(at(said, "output_tokens"))
    if not sent and not back:
        return Usage(calls=1, cost=None, unmetered=1)
    cached = next((count for path in _CACHED if (count := _count(_along(said, path)))), 0)
    hidden = at(response, "_hidden_params") if not isinstance(response, dict) else None
    return Usage(1, sent, min(cached, sent), back, at(hidden, "response_cost"))


def _along(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = at(value, name)
    return value


def _count(value: Any) -> int:
    """Return *value* as a number of tokens: 0 where it is none that can be believed."""
    try:
        count = 0 if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return count if 0 < count <= _MOST_TOKENS else 0


def _logprobs(choice: Any) -> tuple[TokenLogprob, ...] | None:
    """Return the tokens of *choice* with their probabilities; None unless all are there: half of them would mislead."""
    tokens = at(at(choice, "logprobs"), "content")
    if not isinstance(tokens, list):
        return None
    try:
        return tuple((*_token(each), tuple(map(_token, at(each, "top_logprobs") or ()))) for each in tokens) or None
    except (TypeError, ValueError, OverflowError):
        return None


def _token(said: Any) -> tuple[str, float]:
    token, logprob = clean(at(said, "token")), float(at(said, "logprob"))
    if token is None or math.isnan(logprob):
        msg = "no token, or no probability"
        raise ValueError(msg)
    return token, min(logprob, 0.0)


def chat(ask: Ask, *, cache_control: bool = False) -> list[dict[str, Any]]:
    """
    Return the messages of *ask* as its `chat` does, with marks where they are wanted.

    Args:
        cache_control: Mark the end of what all asks about one candidate share, for vendors whose prefix cache wants
            to be told (Anthropic). Others find the same prefix by themselves.
    """
    messages = ask.chat()
    shared, *tail = ask.messages[-1].parts
    if not (cache_control and tail):
        return messages
    *before, last = messages
    images = last["content"][:-1] if ask.images else []
    marked = {"type": "text", "text": shared, "cache_control": {"type": "ephemeral"}}
    return [*before, {**last, "content": [*images, marked, {"type": "text", "text": "".join(tail)}]}]


ADDRESSING = frozenset({"api_base", "base_url", "api_key", "organization", "extra_headers", "extra_body"})
"""The parameters of a judge that do not go into the request's body as they are."""

_CALL = "/chat/completions"


@frozen
class Endpoint:
    """
    Where a request goes.

    Args:
        url: Of the call itself.
        model: The model's name there.
        headers: What goes with each request; the key is in it.
        secrets: What must not be shown.
        is_openai: Whether it is OpenAI's own.
    """

    url: str = field(repr=redact)
    model: str
    headers: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    is_openai: bool


def reply_in(body: bytes, unsent: tuple[str, ...] = (), secrets: Iterable[str] = ()) -> Reply:
    """
    Return the reply that *body*, of an answer with status 200, holds, as `completions` reads it.

    Args:
        unsent: The parameters that were left out of the request.
        secrets: What must not be shown in a failure.

    Raises:
        ModelError: It holds none; the failure keeps the usage.
    """
    data = parsed(body, secrets)
    if not isinstance(data, dict):
        said = words_of(body[:1000].decode("utf-8", "replace"), secrets)
        raise ModelError(Failure("bad_response", f"what came back is no chat completion: {said}"))
    return reply_from(data, unsent, secrets)


ALTERNATIVES = 20
"""How many of the likeliest tokens are asked for in each place: the most that OpenAI gives."""

_REASONING = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d))(?!.*chat)")
_SAMPLING = frozenset({"temperature", "top_p", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty"})
_SCHEMALESS = re.compile(r"gpt-3|gpt-4(?:$|-turbo|-32k|-\d{4}|-vision)|chatgpt-")


def content_of(ask: Ask, endpoint: Endpoint) -> tuple[bytes, tuple[str, ...]]:
    """
    Return the body of the request for *ask*, and the names of parameters that its model does not take.

    OpenAI's reasoning models take no sampling parameters unless they are told not to reason, and its oldest ones no
    schema. Of models of others nothing is known, and all is sent. `extra_body` goes over what is here; None takes away.

    Raises:
        ModelError: A parameter is no JSON.
    """
    try:
        body, unsent = _body(ask, endpoint)
        return json.dumps(body, default=_plain, allow_nan=False, separators=(",", ":")).encode(), unsent
    except (TypeError, ValueError, RecursionError) as error:
        said = words_of(str(error), endpoint.secrets)
        raise ModelError(Failure("bad_request", f"the request cannot be written as JSON: {said}")) from None


def form_of(ask: Ask, endpoint: Endpoint) -> Form:
    """Return how the server is asked to hold the model to the reply's form; `nothing` where the user says it."""
    own = "response_format" in (ask.judge.params.get("extra_body") or {})
    if not ask.schema or own or _SCHEMALESS.match(endpoint.model):
        return "nothing"
    return form_for(ask.judge, "schema")


def _body(ask: Ask, endpoint: Endpoint) -> tuple[dict[str, Any], tuple[str, ...]]:
    body: dict[str, Any] = {"model": endpoint.model, "messages": chat(ask)}
    body[_limit_name(endpoint)] = ask.max_tokens
    form = form_of(ask, endpoint)
    if form == "schema":
        schema = {"name": "verdict", "strict": True, "schema": ask.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif form == "json":
        body["response_format"] = {"type": "json_object"}
    if ask.n > 1:
        body["n"] = ask.n
    wanted = _wanted(ask.judge)
    unsent = _unsent(wanted, endpoint.model)
    body |= {name: value for name, value in wanted.items() if name not in unsent}
    extra = ask.judge.params.get("extra_body") or {}
    if ask.schema and "response_format" not in {*body, *extra}:
        unsent = (*unsent, "response_format")
    return {name: value for name, value in {**body, **extra}.items() if not (name in extra and value is None)}, unsent


def _limit_name(endpoint: Endpoint) -> str:
    """Return what the length of a reply is called: OpenAI has renamed it, and others have followed in part."""
    return "max_completion_tokens" if endpoint.is_openai or _REASONING.match(endpoint.model) else "max_tokens"


def _wanted(judge: Judge) -> dict[str, Any]:
    given = {"temperature": judge.temperature, "seed": judge.seed}
    if judge.logprobs:
        given |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
    given |= {name: value for name, value in judge.params.items() if name not in ADDRESSING}
    return {name: value for name, value in given.items() if value is not None}


def _unsent(wanted: Mapping[str, Any], model: str) -> tuple[str, ...]:
    if not _REASONING.match(model) or wanted.get("reasoning_effort") == "none":
        return ()
    return tuple(name for name in wanted if name in _SAMPLING)


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    msg = f"{type(value).__name__} is not JSON"
    raise TypeError(msg)
