"""
Chat completions, in OpenAI's protocol: the body of a request, and the one parser of what comes back.

Vendors and servers of the protocol differ in where things are and in their names. All of that is in the tables of this
module. A quirk of a request (the name of a limit, a parameter that a model refuses) belongs to the first half, a quirk
of a response (another `finish_reason`, another place for cached tokens) to the second.

Judges are held to the form of their reply by `response_format`. A server that refuses it, with an error that mentions
it, is sent the next lower form at once: the first that it may take, the schema, JSON mode, nothing. Likewise one that
gives fewer replies a request (`n`) than a jury has votes. What it takes is remembered by model and address, as long as
the process lives.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from rubric.errors import ModelError
from rubric.internals.frozen_map import Memo, thaw
from rubric.internals.secrets import redact, redact_given
from rubric.models.failure_kinds import error_in, words_of
from rubric.models.http_bodies import parse
from rubric.values.chats import at
from rubric.values.requests import MOST_CALLS, MOST_TOKENS, Failure, Reply, TokenLogprob, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rubric.values.judges import Judge
    from rubric.values.requests import Ask


# -- requests: the form of the reply ----------------------------------------------------------------------

Form = Literal["exact", "bounded", "schema", "json", "nothing"]
_LOWER: dict[Form, Form] = {"exact": "schema", "bounded": "schema", "schema": "json", "json": "nothing"}
_REFUSALS = frozenset({400, 404, 415, 422, 500, 501})  # 500: Ollama, of a schema that it cannot convert

_BOUNDS: dict[str, dict[str, Any]] = {
    "nonce": {"pattern": "^[a-z2-7]{16}$"},
    "evidence": {"maxItems": 20},
    "score": {"minimum": 0, "maximum": 1},
}
"""The bounds of keys that are the same for all asks of a kind."""

# Domains, by their end, whose servers get a schema that is the same for all criteria of a kind. They keep what they
# make of it, some for 24 hours after minutes of work; and gateways among them mend replies by the schema, which could
# put a nonce beside a candidate's words.
_VENDORS: dict[str, str] = {
    "ai": "cerebras cohere fireworks mistral moonshot novita openrouter perplexity sambanova together x z",
    "cn": "moonshot",
    "co": "baseten huggingface",
    "com": "aliyuncs amazonaws anthropic azure cohere databricks deepinfra deepseek googleapis groq nvidia openai",
    "io": "minimax",
    "us": "azure",
    "xyz": "together",
}

_ABOUT_THE_FORM = re.compile(
    r"response[ _]?(?:json[ _]?)?(?:format|schema)|json[ _]?(?:schema|object|mode)|\bschemas?\b|structured[ _]?output"
    r"|guided|grammar|output[ _]?(?:format|config)|tool[ _]?(?:choice|use)",
    re.IGNORECASE,
)

_ABOUT_REPLIES = re.compile(r"(?<![\w])(?:n|best_of|candidate_?count)(?!\w)|(?:multiple|one) candidate", re.IGNORECASE)

_learnt: dict[tuple[str, str], Form] = {}
_most: dict[tuple[str, str], int] = {}
_server: Memo[Judge, [], tuple[str, str]] = Memo(
    lambda judge: (
        judge.name,
        str(judge.params.get("api_base") or judge.params.get("base_url") or getattr(judge.model, "identity", "")),
    )
)


@lru_cache(maxsize=256)
def first_form(address: str) -> Form:
    """Return the form that the server at *address* is asked for first, as docs/how-to/choose_judges.md has it."""
    # `exact` for servers that compile the schema of each request, `bounded` for OpenAI, which keeps it and enforces
    # ranges, `schema` for vendors that refuse bounds or enforce a part of them.
    host = (urlsplit(address).hostname or "").lower()
    if host == "api.openai.com":
        return "bounded"
    *_, name, end = ["", "", *host.split(".")]
    return "schema" if name in _VENDORS.get(end, "").split() else "exact"


def form_for(ask: Ask, first: Form) -> Form:
    """Return the form that the reply to *ask* is held to: *first*, unless it has none or its server has refused it."""
    form = _learnt.get(_server(ask.judge), first) if _learnt else first
    # OpenAI takes no bounds for models that were fine-tuned.
    is_loose = not ask.exact or (form == "bounded" and ask.judge.name.removeprefix("openai/").startswith("ft:"))
    return "schema" if is_loose and form in ("exact", "bounded") else form


def replies_for(ask: Ask) -> int:
    """Return how many replies are asked for in the request of *ask*: as many as it wants, and as its server gives."""
    return min(ask.n, _most.get(_server(ask.judge), ask.n)) if _most else ask.n


def relax(ask: Ask, sent: int, form: Form, failure: Failure) -> Failure:
    """Return *failure* as one to be sent again at once, if the server takes fewer replies than *sent*, or no *form*."""
    if failure.kind not in ("bad_request", "overloaded") or failure.status not in _REFUSALS:
        return failure
    server = _server(ask.judge)
    if sent > 1 and _ABOUT_REPLIES.search(failure.message):
        # The most that it gives, where it says so: "must be between 1 <= value <= 2, but got 3".
        told = [int(number) for number in re.findall(r"\d{1,3}(?![\w.])", failure.message)]
        most = max((number for number in told if 0 < number < sent), default=1)
        _most[server] = min(most, _most.get(server, most))
        return evolve(failure, again=True)
    if form == "nothing" or not _ABOUT_THE_FORM.search(failure.message):
        return failure
    if _learnt.get(server, form) == form:  # several requests in flight are refused alike: one step down for all of them
        _learnt[server] = _LOWER[form]
    return evolve(failure, again=True)


def response_format(form: Form, ask: Ask) -> dict[str, Any]:
    """Return the parameter that asks for *form*, as a dict; empty for `nothing`."""
    if form == "nothing":
        return {}
    if form == "json":
        return {"response_format": {"type": "json_object"}}
    schema = json.loads(ask.exact_schema()) if form == "exact" else thaw(ask.schema)
    if form == "bounded":
        listed = schema["properties"].get("verdicts")
        keys = (listed["items"] if listed else schema)["properties"]
        for name in _BOUNDS.keys() & keys:
            if name != "score" or "number" in keys[name]["type"]:  # a level has a range of its own
                keys[name].update(_BOUNDS[name])
    named = {"name": "verdict", "strict": True, "schema": schema}
    return {"response_format": {"type": "json_schema", "json_schema": named}}


thinking: set[tuple[str, str]] = set()
"""The models, each at its address, that have been seen to think."""


def with_room(ask: Ask) -> Ask:
    """Return *ask* with room for thoughts, if its model is among those `thinking`: a limit would cut it each time."""
    if ask.judge.max_tokens or ask.max_tokens >= MOST_TOKENS or _server(ask.judge) not in thinking:
        return ask
    return evolve(ask, max_tokens=MOST_TOKENS)


# -- requests: messages and body --------------------------------------------------------------------------

CALL = "/chat/completions"
"""The path of the call, below a server's base address."""

ADDRESSING = frozenset({"api_base", "base_url", "api_key", "organization", "extra_headers", "extra_body"})
"""The parameters of a judge that do not go into the request's body as they are."""

ALTERNATIVES = 20
"""How many of the likeliest tokens are asked for in each place: the most that OpenAI gives."""

_REASONING = re.compile(r"(?:o\d|gpt-(?:[5-9]|\d\d))(?!.*chat)")
_SAMPLING = frozenset({"temperature", "top_p", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty"})
_SCHEMALESS = re.compile(r"gpt-3|gpt-4(?:$|-turbo|-32k|-\d{4}|-vision)|chatgpt-")
_MOST_TEMPLATES = 2048  # one a criterion; a few hundred bytes each
_LONGEST_KEPT = 2**16  # characters


def chat(ask: Ask, *, cache_control: bool = False) -> list[dict[str, Any]]:
    """
    Return the messages of *ask* as its `chat` does; *cache_control* marks the ends of what asks share.

    Anthropic's prefix cache needs the marks and takes four; others find the same prefixes by themselves.
    """
    messages = ask.chat()
    shared, *tail = ask.messages[-1].parts
    if not (cache_control and tail):
        return messages
    prompted = len(ask.messages)
    before, last, turns = messages[: prompted - 1], messages[prompted - 1], messages[prompted:]
    images = last["content"][:-1] if ask.media else []
    cuts = (0, *ask.messages[-1].cuts, len(shared))
    texts = [{"type": "text", "text": shared[start:end]} for start, end in pairwise(cuts)]
    marked = [{**text, "cache_control": {"type": "ephemeral"}} for text in texts]
    return [*before, {**last, "content": [*images, *marked, {"type": "text", "text": "".join(tail)}]}, *turns]


@frozen(eq=False)
class Endpoint:
    """Where the requests of a judge go: the *url* of the call itself, and the *headers* with the key."""

    url: str = field(repr=redact)
    model: str
    headers: dict[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    is_openai: bool
    # By the schema's identity, since its hash takes longer than the rest. A template holds its schema, so no other
    # schema can get that id while the entry is there.
    templates: dict[tuple[object, ...], _Template] = field(factory=dict, init=False, repr=False)


@frozen(eq=False)
class _Template:
    """The body of a request without its messages, which go between *head* and *tail*; without a tail it is whole."""

    head: str
    tail: str | None
    unsent: tuple[str, ...]
    schema: Mapping[str, Any]


class Body(NamedTuple):
    """The body of a request: its *content*, the parameters *unsent* that its model does not take, and what it asks."""

    content: bytes
    unsent: tuple[str, ...]
    replies: int
    form: Form


def body_of(ask: Ask, endpoint: Endpoint) -> Body:
    """Return the body of the request for *ask*."""
    # OpenAI's reasoning models take no sampling parameters unless they are told not to reason, and its oldest models no
    # schema. Models of others get all parameters. `extra_body` overrides the rest; None in it takes a parameter away.
    form, replies = _form_of(ask, endpoint), replies_for(ask)
    key = (id(ask.schema), ask.max_tokens, replies, form, ask.tools, ask.steps > 0)
    template = endpoint.templates.get(key)
    if template is None:
        if len(endpoint.templates) >= _MOST_TEMPLATES:
            endpoint.templates.clear()
        template = endpoint.templates[key] = _template(ask, endpoint, form, replies)
    head, tail, exact = template.head, template.tail, ask.exact_schema() if form == "exact" else _GAP
    if tail is None:
        return Body(head.replace(_GAP, exact).encode(), template.unsent, replies, form)
    tail = tail.replace(_GAP, exact)  # the messages come before it, so no text of theirs is taken for the gap
    return Body(f"{head}{_messages(ask)}{tail}".encode(), template.unsent, replies, form)


def _form_of(ask: Ask, endpoint: Endpoint) -> Form:
    """Return how the server is asked to hold the model to the reply's form; `nothing` if the user's body says it."""
    extra = ask.judge.params.get("extra_body") or ()
    if not ask.schema or ask.steps or _SCHEMALESS.match(endpoint.model) or "response_format" in extra:
        return "nothing"
    return form_for(ask, first_form(endpoint.url))


def _messages(ask: Ask) -> str:
    """Return the messages as JSON; the first part of each, which many asks share, is encoded once."""
    if ask.media or ask.turns:
        return _dumps(ask.chat())
    messages = []
    for message in ask.messages:
        shared, *rest = message.parts
        text = _kept(shared) if len(shared) < _LONGEST_KEPT else _text(shared)
        messages.append(f'{{"role":"{message.role}","content":"{text}{"".join(map(_text, rest))}"}}')
    return f"[{','.join(messages)}]"


def _text(text: str) -> str:
    return json.dumps(text)[1:-1]


_GAP = json.dumps("\x03")  # of the schema of an ask, in a template
_kept = lru_cache(maxsize=128)(_text)  # more candidates than are in flight at a time; 8 MB at most


def _template(ask: Ask, endpoint: Endpoint, form: Form, replies: int) -> _Template:
    extra = ask.judge.params.get("extra_body") or {}
    is_reasoning = _REASONING.match(endpoint.model) is not None
    # OpenAI has renamed the limit on a reply's tokens, and others have followed in part.
    limit = "max_completion_tokens" if endpoint.is_openai or is_reasoning else "max_tokens"
    form_of_reply = response_format(form, evolve(ask, exact=_GAP) if form == "exact" else ask)
    body = {"model": endpoint.model, "messages": [], limit: ask.max_tokens, **form_of_reply}
    body |= {"n": replies} if replies > 1 else {}
    body |= ask.offered()
    wanted, unsent = wanted_params(ask.judge), tuple[str, ...]()
    if is_reasoning and wanted.get("reasoning_effort") != "none":
        unsent = tuple(name for name in wanted if name in _SAMPLING)
    body |= {name: value for name, value in wanted.items() if name not in ADDRESSING.union(unsent)}
    if ask.schema and not ask.steps and "response_format" not in {*body, *extra}:
        unsent = (*unsent, "response_format")
    sent = {name: value for name, value in {**body, **extra}.items() if not (name in extra and value is None)}
    try:
        text = _dumps(sent)
    except (TypeError, ValueError, RecursionError) as error:
        said = words_of(str(error), endpoint.secrets)
        raise ModelError(Failure("bad_request", f"the request cannot be written as JSON: {said}")) from None
    if "messages" in extra:
        return _Template(text, None, unsent, ask.schema)
    # No text can match, since quotes within a text are escaped; the first match is ours, since only the name of the
    # model comes before it.
    head, _, tail = text.partition('"messages":[]')
    return _Template(f'{head}"messages":', tail, unsent, ask.schema)


def wanted_params(judge: Judge) -> dict[str, Any]:
    """Return the parameters that *judge* wants for each request, whether its model takes them or not."""
    alternatives = {"logprobs": True, "top_logprobs": ALTERNATIVES} if judge.logprobs else {}
    given = {"temperature": judge.temperature, "seed": judge.seed, **alternatives, **judge.params}
    return {name: value for name, value in given.items() if value is not None}


def _dumps(value: object) -> str:
    return json.dumps(value, default=_plain, allow_nan=False, separators=(",", ":"))


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


# -- responses --------------------------------------------------------------------------------------------

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
"""Why a reply ended, in lower case: the vendors' words, and ours. Other words stay as they are."""

_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_THOUGHT_FIELDS = ("reasoning_content", "reasoning", "thinking", "thinking_blocks")

_CACHED = (
    ("prompt_tokens_details", "cached_tokens"),  # OpenAI, Azure, xAI, Groq, Mistral, Qwen, vLLM, OpenRouter
    ("input_tokens_details", "cached_tokens"),  # the Responses API
    ("prompt_cache_hit_tokens", ""),  # DeepSeek
    ("cached_tokens", ""),  # Moonshot, Together
    ("cache_read_input_tokens", ""),  # Anthropic
)
_SENT = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")

_MOST_TOKENS = 10**9  # of which no reply has so many; arithmetic with a number of 4,000 digits raises


def reply_from(
    response: Any,
    unsent: tuple[str, ...] = (),
    secrets: Iterable[str] = (),
    price: Callable[[Usage], Usage] = lambda usage: usage,
    remarks: tuple[str, ...] = (),
    *,
    ask: Ask | None = None,
) -> Reply:
    """
    Return the reply that *response* to *ask* holds: a body, its plain data, or an object of LiteLLM's of that form.

    A refusal, in the model's own words or by a filter, ends as `refusal`; a text that was cut, as `length`. *price*
    adds the cost to a usage. The failure where it holds none keeps the usage.
    """
    if isinstance(response, bytes):
        body, response = response, parse(response, secrets)
        if not isinstance(response, dict):
            said = words_of(body[:1000].decode("utf-8", "replace"), secrets)
            raise ModelError(Failure("bad_response", f"what came back is not a chat completion: {said}"))
    usage = price(usage_of(response))
    choices = choices_of(response, usage, secrets)
    choice = choices[0]
    if ask is not None and _has_thought(response, choice):
        thinking.add(_server(ask.judge))
    texts = [tuple(part and redact_given(part, secrets) for part in text_in(each, usage)) for each in choices]
    (text, refusal), finish, model = texts[0], finish_of(choice), at(response, "model")
    if ask is not None and ask.steps and (wanted := redact_given(_tool_message(at(choice, "message"), text), secrets)):
        named = model if isinstance(model, str) else ""
        return Reply(text, "tool_calls", "", usage, named, unsent, remarks=remarks, wanted=wanted)
    if refusal or finish == "content_filter":
        finish, refusal = "refusal", refusal or "stopped by a content filter"
    elif finish != "length" and not any((each or "").strip() for each, _ in texts):
        thought = ", nothing but reasoning" if _has_thought(response, choice) else ""
        raise ModelError(Failure("bad_response", f"the reply is empty (finish: {finish}{thought})", usage=usage))
    several = tuple(each or "" for each, _ in texts) if len(texts) > 1 else ()
    model = model if isinstance(model, str) else ""
    id = str(at(response, "id") or "")
    return Reply(text, finish, refusal or "", usage, model, unsent, _logprobs(choice), several, remarks, id=id)


def _has_thought(response: Any, choice: Any) -> bool:
    message, details = at(choice, "message"), at(at(response, "usage"), "completion_tokens_details")
    get = message.get if isinstance(message, dict) else partial(at, message)
    if any(map(get, _THOUGHT_FIELDS)) or (details is not None and _count(at(details, "reasoning_tokens"))):
        return True
    text = at(message, "content")
    return isinstance(text, str) and text.lstrip()[:6].lower() == "<think"


def _tool_message(message: Any, text: str | None) -> str:
    """Return the message that asks for tools, as it is sent back; empty where it asks for none."""
    calls = [call for call, _ in tool_calls_in(message)[:MOST_CALLS]]
    said = {"role": "assistant", "content": text or None, "tool_calls": calls}
    return json.dumps(said, default=str) if calls else ""


def tool_calls_in(message: Any) -> list[tuple[dict[str, Any], str]]:
    """Return the calls of tools in *message* as they are sent back, each with its arguments as the model wrote them."""
    requested, found = at(message, "tool_calls"), list[tuple[dict[str, Any], str]]()
    for number, request in enumerate(requested if isinstance(requested, list) else (), 1):
        function = at(request, "function")
        name, arguments = (clean(at(function, part)) or "" for part in ("name", "arguments"))
        call: dict[str, Any] = {"id": str(at(request, "id") or f"call_{number}"), "type": "function"}
        call["function"] = {"name": name, "arguments": _as_object(arguments)}
        if signed := at(request, "provider_specific_fields"):  # Gemini's signatures of its thoughts
            call["provider_specific_fields"] = signed
        found.append((call, arguments))
    return found


def _as_object(arguments: str) -> str:
    """Return *arguments* if they are a JSON object; LiteLLM and vendors refuse anything else that is sent back."""
    try:
        read_arguments(arguments)
    except ValueError:
        return "{}"
    return arguments if arguments.strip() else "{}"


def read_arguments(text: str) -> dict[str, Any]:
    """Return the arguments in *text*, {} for no text; raise `ValueError` if they are not a JSON object to be sent."""
    try:
        value = json.loads(text) if text.strip() else {}
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")  # noqa: TRY004 - one error for all
    return value


def choices_of(response: Any, usage: Usage, secrets: Iterable[str] = ()) -> list[Any]:
    """Return the choices of *response*; without any, raise `ModelError` with the *usage*."""
    choices = at(response, "choices")
    messages = [at(choice, "message") for choice in choices] if isinstance(choices, list) else []
    good = bool(messages) and all(isinstance(each, dict) or hasattr(each, "content") for each in messages)
    error = at(response, "error") or at(response, "errors") or (_further(choices[0], "error") if good else None)
    if not error and not good and any(at(response, name) for name in ("message", "msg", "detail")):
        error = response
    if error:
        failure = error_in(error, secrets)
        raise ModelError(failure if usage.unmetered else evolve(failure, usage=usage))
    if not good:
        said = "the reply has no choices" if not choices else "what came back is not a chat completion"
        raise ModelError(Failure("bad_response", said, usage=usage))
    if (finish := finish_of(choices[0])) == "error":
        raise ModelError(Failure("bad_response", f"the server broke the reply off (finish: {finish})", usage=usage))
    return list(choices)


def text_in(choice: Any, usage: Usage) -> tuple[str | None, str]:
    """Return the text of *choice*, None if it has none, and the model's words of refusal; raise with the *usage*."""
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
                message = f"a part of the reply is not text: {kind!r}"[:100]
                raise ModelError(Failure("bad_response", message, usage=usage))
        content = "".join(texts) if texts else None
    if content is not None and not isinstance(content, str):
        raise ModelError(Failure("bad_response", f"the reply's content is a {type(content).__name__}", usage=usage))
    return clean(content), next((said for refusal in refusals if (said := clean(refusal))), "")


def _further(value: Any, name: str) -> Any:
    """Return the value under *name*, a field that OpenAI does not have: LiteLLM may have put it aside."""
    aside = at(value, "provider_specific_fields")
    return (aside and at(aside, name)) or at(value, name)


def clean(content: Any) -> str | None:
    """Return *content* as text that can be encoded: a lone surrogate becomes the replacement character."""
    if not isinstance(content, str):
        return None
    return content if content.isascii() else content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def finish_of(choice: Any) -> str:
    """Return why *choice* ended; the vendor's own word decides if a gateway, or LiteLLM, has replaced it by `stop`."""
    finish = _finish(at(choice, "finish_reason"))
    return _finish(_further(choice, "native_finish_reason")) if finish == "stop" else finish


def _finish(word: Any) -> str:
    return _FINISHES.get(word.lower(), word) if isinstance(word, str) and word else "stop"


def usage_of(response: Any) -> Usage:
    """Return the usage in *response*; unmetered if there is none. The cost is LiteLLM's, or unknown."""
    said = at(response, "usage")
    sent, back = _count(at(said, "prompt_tokens")), _count(at(said, "completion_tokens"))
    if not sent and not back:  # the names of Anthropic, who counts cached tokens apart, and of the Responses API
        sent, back = sum(_count(at(said, name)) for name in _SENT), _count(at(said, "output_tokens"))
    if not sent and not back:
        return Usage(calls=1, cost=None, unmetered=1)
    cached = 0
    for name, inner in _CACHED:
        value = at(said, name)
        if value and (cached := _count(at(value, inner) if inner else value)):
            break
    hidden = None if isinstance(response, dict) else at(response, "_hidden_params")
    return Usage(1, sent, min(cached, sent), back, at(hidden, "response_cost"))


def _count(value: Any) -> int:
    """Return *value* as a number of tokens: 0 if it cannot be believed."""
    if type(value) is not int:  # most are
        try:
            value = 0 if value is None or isinstance(value, bool) else int(value)
        except (TypeError, ValueError, OverflowError):
            return 0
    return value if 0 < value <= _MOST_TOKENS else 0


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
        raise ValueError("no token, or no probability")
    return token, min(logprob, 0.0)
