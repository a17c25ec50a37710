"""The body of a chat completion request, as OpenAI's protocol has it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rubric.errors import ModelError
from rubric.exchanges import Failure
from rubric.models.classifying import words_of
from rubric.models.contents import chat
from rubric.models.endpoints import ADDRESSING
from rubric.models.structured import form_for

if TYPE_CHECKING:
    from rubric.exchanges import Ask
    from rubric.judges import Judge
    from rubric.models.endpoints import Endpoint
    from rubric.models.structured import Form

__all__ = ["ALTERNATIVES", "content_of"]

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
