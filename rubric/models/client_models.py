"""
Models behind clients that users hold, which docs/integrations/clients.md lists: what each is sent and replies.

Retries of the client are switched off where it has a switch, since `Judge(retries=...)` counts them; Inspect's OpenAI
provider keeps the two of its client. Sync clients are called in threads, several at once; a pipeline runs one batch at
a time, since it is not thread-safe.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from attrs import define, evolve, field

from rubric.errors import DefinitionError, ModelError
from rubric.internals.frozen_map import thaw
from rubric.internals.guided import guided
from rubric.internals.secrets import redact
from rubric.internals.text import shorten
from rubric.models.chat_completions import Form, first_form, form_for, relax, replies_for, reply_from, response_format
from rubric.models.failure_kinds import failure_of
from rubric.models.pricing import with_cost
from rubric.models.threads import in_thread
from rubric.values import clients
from rubric.values.clients import CLIENTS, ClientKind, client_kind, takes_limit
from rubric.values.requests import Ask, Failure, Reply, Usage

_THREADS = 8
"""How many calls of a sync client run at once."""

_GATHERING = 0.005
"""Seconds in which asks for a batch are gathered: the asks of one candidate are sent within a few milliseconds."""

_LARGEST_BATCH = 256


@guided
def model(client: object, name: str | None = None, /) -> ClientModel:
    """
    Return the model behind a client object, to be used as `Judge(model)` or as the judge itself.

    A client whose type names the model (all but OpenAI's and Anthropic's) may be given as the judge directly.

    Args:
        client: An OpenAI or Anthropic client, a LangChain chat model, an Inspect `Model`, a `dspy.LM`, or a
            text-generation pipeline of transformers.
        name: The model's name; None takes the client's own.

    Raises:
        DefinitionError: *client* is none of these, or neither it nor *name* names a model.

    Example:
        >>> from openai import OpenAI
        >>> from rubric import Judge, model
        >>> Judge(model(OpenAI(api_key="sk-..."), "gpt-5.6")).name
        'gpt-5.6'
    """
    kind = client_kind(client)
    if kind is None:
        found = shorten(redact(repr(client)), 100)
        raise DefinitionError("client", f"got {found}; expected {CLIENTS}; or write a function from messages to text")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise DefinitionError("name", f"got {name!r}; expected the name of a model")
    named = name or clients.client_model_name(client)
    if not named:
        cure = "rubric.model(client, 'the name of a model')"
        raise DefinitionError("name", f"{type(client).__name__} names no model; {cure} does")
    return ClientModel(client, named, kind)


@define(eq=False, repr=False)
class ClientModel:
    """A client and the name of its model; see `model`. With *own_retries* Inspect's retries stay on."""

    client: Any
    name: str
    kind: ClientKind
    own_retries: bool = False
    _batches: dict[asyncio.AbstractEventLoop, _Batch] = field(factory=dict, init=False)

    is_llm = True
    """Verdicts are sealed, as those of a model that has a name."""

    def __repr__(self) -> str:
        return f"rubric.model({type(self.client).__name__}(...), {self.name!r})"

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def identity(self) -> str:
        """What tells its replies from those of other models, for the key of stored replies."""
        return clients.client_identity(self.client, self.name)

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask*: one attempt."""
        sent = replies_for(ask), _form_of(self, ask)
        try:
            return await _ANSWERS[self.kind](self, ask)
        except (ModelError, asyncio.CancelledError):
            raise
        except Exception as raised:
            # Inspect's last attempt is the cause of tenacity's error, whose own words are an address in memory.
            wrapped = type(raised).__name__ == "RetryError" and raised.__cause__ is not None
            error: Any = raised.__cause__ if wrapped else raised
            # OpenAI's `parse`, which LangChain calls, raises them for a reply that was cut or filtered, and paid for.
            if type(error).__name__ in ("LengthFinishReasonError", "ContentFilterFinishReasonError"):
                said = getattr(error, "completion", None) or error.response.json()
                return reply_from(said, price=partial(with_cost, ask.judge))
            response = getattr(error, "response", None)
            status = getattr(response, "status_code", None) or getattr(error, "status", None)  # DSPy's errors say it
            wait = getattr(error, "retry_after", None)
            headers = getattr(response, "headers", None) or ({} if wait is None else {"retry-after": str(wait)})
            # A body that is not JSON is a text: OpenAI's client, from 3.57 on, leaves it out of the error's own words.
            body = getattr(error, "body", None)
            said = body if isinstance(body, str) else json.dumps(body, default=str) if isinstance(body, dict) else ""
            answer = (status, headers, said) if isinstance(status, int) else None
            secret = getattr(self.client, "api_key", None)
            secrets = [secret] if isinstance(secret, str) and secret else []
            failure = failure_of(error, secrets, answer)
            raise ModelError(relax(ask, *sent, failure) if self.kind == "openai" else failure) from raised

    async def call(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Return what *function*, a method of the client, returns; that of a sync client is called in a thread."""
        # By the class: the methods are wrapped, so that no look at them tells whether they are async.
        if any(base.__name__.startswith("Async") for base in type(self.client).__mro__):
            return await function(*args, **options)
        return await in_thread((id(self.client),), lambda: function(*args, **options), _THREADS)

    async def answer_in_batch(self, ask: Ask, run: Callable[[Sequence[Ask]], Sequence[Reply]]) -> Reply:
        """Return the reply to *ask* from *run*, which is given all asks that are waiting at the time."""
        loop = asyncio.get_running_loop()
        batch = self._batches.get(loop)
        if batch is None:
            for ended in [each for each in self._batches if each.is_closed()]:
                del self._batches[ended]
            batch = self._batches[loop] = _Batch((id(self.client),), run)
        return await batch.add(ask)


@define(eq=False)
class _Batch:
    """The asks that wait for one model in one event loop; they are run together, one batch at a time."""

    _owner: tuple[int, ...]
    _run: Callable[[Sequence[Ask]], Sequence[Reply]]
    _waiting: list[tuple[Ask, asyncio.Future[Reply]]] = field(factory=list)
    _task: asyncio.Task[None] | None = None

    async def add(self, ask: Ask) -> Reply:
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, future))
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        return await future

    async def _work(self) -> None:
        await asyncio.sleep(_GATHERING)
        while self._waiting:
            judge = self._waiting[0][0].judge  # one judge a batch, since the settings are the judge's
            alike = [each for each in self._waiting if each[0].judge is judge][:_LARGEST_BATCH]
            self._waiting = [each for each in self._waiting if each not in alike]
            taken = [(ask, future) for ask, future in alike if not future.done()]  # the others were cancelled
            asks = [ask for ask, _ in taken]
            try:
                replies = await in_thread(self._owner, partial(self._run, asks), 1) if asks else []
            except Exception as error:  # noqa: BLE001 - it is the failure of each ask of the batch
                for _, future in taken:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), reply in zip(taken, replies, strict=True):
                if not future.done():
                    future.set_result(reply)
        self._task = None


# -- what each kind of client is sent ---------------------------------------------------------------------


def _settings(ask: Ask, **names: str) -> dict[str, Any]:
    """Return the judge's settings under the names that a client has for them; what it has no name for is left out."""
    judge = ask.judge
    given = {"temperature": judge.temperature, "seed": judge.seed, "max_tokens": ask.max_tokens}
    found = {names[name]: value for name, value in given.items() if name in names and value is not None}
    return {**found, **thaw(judge.params)}


def _unsent(ask: Ask, *names: str) -> tuple[str, ...]:
    """Return the settings of the judge that a client does not take: those among *names* that are given."""
    values = {"temperature": ask.judge.temperature, "seed": ask.judge.seed, "response_format": ask.schema or None}
    return tuple(name for name in names if values.get(name) is not None)


def _form_of(model: ClientModel, ask: Ask) -> Form:
    """Return how a client of OpenAI's is asked to hold the model to the form of the reply to *ask*."""
    is_held = model.kind == "openai" and ask.schema
    return form_for(ask, first_form(str(model.client.base_url))) if is_held else "nothing"


async def _openai(model: ClientModel, ask: Ask) -> Reply:
    client = model.client.with_options(max_retries=0, timeout=ask.judge.timeout)
    body = _settings(ask, temperature="temperature", seed="seed", max_tokens="max_completion_tokens")
    form = _form_of(model, ask)
    body |= response_format(form, ask)
    if (replies := replies_for(ask)) > 1:
        body["n"] = replies
    if ask.judge.logprobs:
        body |= {"logprobs": True, "top_logprobs": 20}
    response = await model.call(client.chat.completions.create, model=model.name, messages=ask.chat(), **body)
    return reply_from(
        response,
        _unsent(ask, "response_format") if form == "nothing" else (),
        price=partial(with_cost, ask.judge),
        ask=ask,
    )


async def _anthropic(model: ClientModel, ask: Ask) -> Reply:
    client = model.client.with_options(max_retries=0, timeout=ask.judge.timeout)
    body = _settings(ask, temperature="temperature", max_tokens="max_tokens")
    system = "\n\n".join(message.text for message in ask.messages if message.role == "system")
    chat = [_as_anthropic(message) for message in ask.chat() if message["role"] != "system"]
    if system:
        body["system"] = system
    response = await model.call(client.messages.create, model=model.name, messages=chat, **body)
    data = response.model_dump()
    choice = {"message": {"content": data.get("content")}, "finish_reason": data.get("stop_reason")}
    return reply_from(
        {**data, "choices": [choice]}, _unsent(ask, "seed", "response_format"), price=partial(with_cost, ask.judge)
    )


def _as_anthropic(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    if isinstance(content, str):
        return message
    return {**message, "content": [_block(block) for block in content]}


def _block(block: dict[str, Any]) -> dict[str, Any]:
    if block.get("type") != "image_url":
        return block
    url = block["image_url"]["url"]
    if url.startswith("data:"):
        kind, _, data = url.removeprefix("data:").partition(";base64,")
        return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}
    return {"type": "image", "source": {"type": "url", "url": url}}


async def _langchain(model: ClientModel, ask: Ask) -> Reply:
    takes_schema = clients.is_from(model.client, "langchain_openai")
    options = response_format("schema", ask) if takes_schema and ask.schema else {}
    limit = {"max_tokens": "max_tokens"} if takes_limit(model.client) else {}
    settings = _settings(ask, temperature="temperature", **limit)
    message = await _without_retries(model.client).ainvoke(ask.chat(), **options, **settings)
    said, used = message.response_metadata or {}, message.usage_metadata or {}
    details = used.get("input_token_details") or {}
    choice = {
        "message": {"content": message.content, "refusal": (message.additional_kwargs or {}).get("refusal")},
        "finish_reason": said.get("finish_reason") or said.get("stop_reason"),
    }
    usage = {
        "prompt_tokens": used.get("input_tokens"),
        "completion_tokens": used.get("output_tokens"),
        "prompt_tokens_details": {"cached_tokens": details.get("cache_read")},
    }
    data = {"choices": [choice], "usage": usage, "model": said.get("model_name") or said.get("model")}
    unsent = _unsent(ask, "seed", *(() if options else ("response_format",)))
    return reply_from(data, unsent, price=partial(with_cost, ask.judge))


def _without_retries(client: Any) -> Any:
    """Return *client* without the retries of its SDK and of LangChain's `with_retry`; what `bind` adds is kept."""
    inner = getattr(client, "bound", None)
    if inner is None:
        # The clients of OpenAI's SDK are fields of the chat model; Anthropic's is a cached property, so no field.
        if (sdk := getattr(client, "root_async_client", None)) is not None:
            once = sdk.with_options(max_retries=0)
            return client.model_copy(update={"root_async_client": once, "async_client": once.chat.completions})
        if clients.is_from(client, "langchain_anthropic"):
            once = client._async_client.with_options(max_retries=0)  # noqa: SLF001 - it has no public name
            return client.model_copy(update={"_async_client": once})
        return client
    bound = _without_retries(inner)
    return bound if type(client).__name__ == "RunnableRetry" else client.model_copy(update={"bound": bound})


async def _inspect(model: ClientModel, ask: Ask) -> Reply:
    inspect_model = import_module("inspect_ai.model")
    kinds = {
        "system": inspect_model.ChatMessageSystem,
        "user": inspect_model.ChatMessageUser,
        "assistant": inspect_model.ChatMessageAssistant,
    }
    messages = [kinds[each["role"]](content=_as_inspect(inspect_model, each["content"])) for each in ask.chat()]
    settings = {} if model.own_retries else {"max_retries": 0}
    settings |= _settings(ask, temperature="temperature", seed="seed", max_tokens="max_tokens")
    if ask.schema:
        schema = import_module("inspect_ai.util").JSONSchema.model_validate(thaw(ask.schema))
        settings["response_schema"] = inspect_model.ResponseSchema(name="verdict", json_schema=schema, strict=True)
    output = await model.client.generate(messages, config=inspect_model.GenerateConfig(**settings))
    if output.error:
        raise ModelError(Failure("overloaded", redact(str(output.error))))
    return _from_inspect(output, ask)


def _as_inspect(inspect_model: Any, content: Any) -> Any:
    if isinstance(content, str):
        return content
    return [
        inspect_model.ContentImage(image=block["image_url"]["url"])
        if block.get("type") == "image_url"
        else inspect_model.ContentText(text=block["text"])
        for block in content
    ]


def _from_inspect(output: Any, ask: Ask) -> Reply:
    """Return the reply in a `ModelOutput` of Inspect; its usage counts cached tokens apart."""
    used = output.usage
    usage = {}
    if used is not None:
        cached = used.input_tokens_cache_read or 0
        sent = used.input_tokens + cached + (used.input_tokens_cache_write or 0)
        usage = {"prompt_tokens": sent, "completion_tokens": used.output_tokens, "cached_tokens": cached}
    choices = []
    for choice in output.choices:
        content, text = choice.message.content, choice.message.text
        is_refused = not isinstance(content, str) and any(getattr(part, "refusal", None) for part in content)
        message = {"content": None, "refusal": text} if is_refused else {"content": text}
        choices.append({"message": message, "finish_reason": choice.stop_reason})
    reply = reply_from({"choices": choices, "usage": usage, "model": output.model}, price=partial(with_cost, ask.judge))
    cost = getattr(used, "total_cost", None)
    return reply if cost is None else evolve(reply, usage=evolve(reply.usage, cost=float(cost)))


async def _dspy(model: ClientModel, ask: Ask) -> Reply:
    options = _settings(ask, temperature="temperature", seed="seed", max_tokens="max_tokens")
    if ask.schema:
        options |= response_format("schema", ask)
    # Its cache would give the votes of a jury the same reply; ours is the store.
    client = model.client.copy(cache=False, num_retries=0)
    try:
        execution = import_module("dspy.clients.execution")
    except ImportError:  # before 3.4, whose `aforward` returns LiteLLM's response
        response = await client.aforward(messages=ask.chat(), **options)
        return reply_from(response, price=partial(with_cost, ask.judge))
    # What `aforward` does, since it leaves out how a reply ended and the words of a refusal.
    prepared = partial(execution.prepare, client, None, ask.chat(), options, asynchronous=True, direct=True)
    result = await execution.aexecute(client, await asyncio.to_thread(prepared))
    response = result.provider_response()
    if result.responses:
        choices = [_dspy_choice(*each) for each in zip(response["choices"], result.responses, strict=True)]
        response = {**response, "choices": choices}
    return reply_from(response, price=partial(with_cost, ask.judge))


def _dspy_choice(choice: Mapping[str, Any], response: Any) -> dict[str, Any]:
    """Return *choice* with what DSPy's *response* says beyond it: how it ended, and a refusal."""
    refusal = "".join(part.text for part in response.message.parts if part.type == "refusal")
    message = {**choice["message"], "refusal": refusal or None}
    return {**choice, "message": message, "finish_reason": response.finish_reason}


async def _transformers(model: ClientModel, ask: Ask) -> Reply:
    def run(asks: Sequence[Ask]) -> Sequence[Reply]:
        options = _settings(asks[0])
        if asks[0].judge.temperature is not None:
            hot = asks[0].judge.temperature > 0
            options |= {"do_sample": hot} | ({"temperature": asks[0].judge.temperature} if hot else {})
        longest = max(each.max_tokens for each in asks)
        made = model.client([each.chat() for each in asks], max_new_tokens=longest, return_full_text=False, **options)
        return [_from_transformers(each, ask) for each, ask in zip(made, asks, strict=True)]

    return await model.answer_in_batch(ask, run)


def _from_transformers(made: Any, ask: Ask) -> Reply:
    said = made[0]["generated_text"]
    text = said if isinstance(said, str) else said[-1]["content"]
    # The model runs here, so a call costs nothing; the pipeline does not count tokens.
    usage = Usage(calls=1, cost=0.0, unmetered=1)
    return Reply(text, usage=usage, unsent=_unsent(ask, "seed", "response_format"))


_ANSWERS: Mapping[ClientKind, Callable[[ClientModel, Ask], Awaitable[Reply]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "langchain": _langchain,
    "inspect": _inspect,
    "dspy": _dspy,
    "transformers": _transformers,
}
