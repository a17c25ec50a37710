"""One turn of a chat with a model, tool calls included: for targets, which make candidates, and not for judges."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from rubric.errors import ModelError
from rubric.internals import background_loop
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.secrets import values_of
from rubric.models.api_keys import missing_key
from rubric.models.chat_completions import (
    choices_of,
    finish_of,
    read_arguments,
    text_in,
    tool_calls_in,
    usage_of,
)
from rubric.models.failure_kinds import no_vendor
from rubric.models.litellm import complete
from rubric.models.litellm_library import ready, vendor_of
from rubric.models.retry import persist
from rubric.values.chats import at
from rubric.values.requests import MOST_TOKENS, Ask, Failure, Outgoing, Reply, Usage
from rubric.values.runs import Media

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    from rubric.engine.budget import Budget
    from rubric.values.judges import Judge


_CUT = Failure("truncated", "cut at max_tokens")


@define
class Purse:
    """The *budget* that the requests for one candidate pass, and how many have *passed* it."""

    budget: Budget | None = None
    passed: int = 0

    @asynccontextmanager
    async def paying(self, ask: Ask) -> AsyncIterator[Callable[[Turn | Failure], Turn | Failure]]:
        """Yield what commits the outcome of *ask*, and returns it with its cost by the prices of the budget."""
        if self.budget is None:
            yield lambda outcome: outcome
            return
        budget = self.budget
        async with budget(ask) as commit:
            self.passed += 1

            def committed(outcome: Turn | Failure) -> Turn | Failure:
                outcome = evolve(outcome, usage=budget.price_usage(ask.judge, outcome.usage))
                commit(outcome if isinstance(outcome, Failure) else Reply(None, usage=outcome.usage))
                return outcome

            yield committed


_PURSE: ContextVar[Purse] = ContextVar("rubric_purse", default=Purse())  # noqa: B039 - without a budget it is constant


@contextmanager
def paying_from(budget: Budget | None) -> Iterator[Purse]:
    """Let the requests that are made within pass *budget*."""
    token = _PURSE.set(purse := Purse(budget))
    try:
        yield purse
    finally:
        _PURSE.reset(token)


@frozen
class ToolRequest:
    """
    A tool call that the model requests.

    Args:
        id: The result must have the same.
        arguments: JSON text, as the model wrote it: it may be broken.
    """

    id: str
    name: str
    arguments: str = ""

    def parse(self) -> dict[str, Any]:
        """Return the arguments, {} for no text; raise `ValueError` if they are not a JSON object that can be sent."""
        return read_arguments(self.arguments)


@frozen
class Turn:
    """
    The model's turn in a chat: the result of one request.

    Args:
        finish: Why it ended: `stop`, `tool_calls`, `length`, `refusal`, or the vendor's own word.
        usage: Of this request, and of failed attempts before it.
        message: The same as a chat message, to be sent back with the tools' results.
    """

    text: str = ""
    tool_calls: tuple[ToolRequest, ...] = ()
    finish: str = "stop"
    usage: Usage = field(factory=Usage)
    unsent: tuple[str, ...] = ()
    message: dict[str, Any] = field(factory=dict, repr=False, eq=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warning about parameters that the model does not take."""
        names = ", ".join(self.unsent)
        return (f"the model takes no {names}: left out",) if names else ()


def turn_from(response: Any, unsent: tuple[str, ...] = (), secrets: Iterable[str] = ()) -> Turn:
    """Return the turn in *response*, a chat completion; one that is empty, filtered or cut in a call is a failure."""
    usage = usage_of(response)
    choice = choices_of(response, usage, secrets)[0]
    finish, (text, refusal), message = finish_of(choice), text_in(choice, usage), at(choice, "message")
    text, requested = text or refusal, tool_calls_in(message)
    calls = [ToolRequest(call["id"], call["function"]["name"], arguments) for call, arguments in requested]
    if finish == "length" and calls:
        raise ModelError(evolve(_CUT, usage=usage))
    if finish == "content_filter":
        raise ModelError(Failure("refusal", "stopped by a content filter", usage=usage))
    if not text.strip() and not calls:
        nothing = Failure("bad_response", "the reply is empty: neither text nor a request for tools", usage=usage)
        raise ModelError(evolve(_CUT, usage=usage) if finish == "length" else nothing)
    # The message to send back has the fields that vendors need again, and no others.
    again: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        again["tool_calls"] = [call for call, _ in requested]
    if blocks := at(message, "thinking_blocks"):  # Anthropic's, without which it takes no tool results
        again["thinking_blocks"] = blocks
    return Turn(text, tuple(calls), "refusal" if refusal else finish, usage, unsent, again)


@frozen
class ChatModel:
    """A model that chats, with the settings of *judge*, which judges nothing here, and says `max_tokens`."""

    judge: Judge

    def why_not(self) -> str:
        """Return why the model cannot be asked: the environment has no key, or no vendor has its name; else ''."""
        name = self.judge.name
        if names := missing_key(self.judge):
            return f"no key for the model {name!r}: set {names}"
        has_address = {"api_base", "base_url"} & self.judge.params.keys()
        return "" if has_address or vendor_of(name)[1] else f"the target {name!r}: {no_vendor(name)}"

    def ask(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Ask:
        """Return the request that would send *messages* and *tools*, to plan it or to set aside the most it takes."""
        sent, media = list[Outgoing](), list[tuple[str, Media]]()
        for one in messages:
            content = one["content"]
            for block in content if isinstance(content, list) else ():
                if block["type"] == "text":
                    content = block["text"]
                else:
                    media.append(("", Media("image", block["image_url"]["url"])))
            is_text = isinstance(content, str) and "tool_calls" not in one
            sent.append(Outgoing(one["role"], (content if is_text else json.dumps({**one}),)))
        offered, most = json.dumps([*map(dict, tools)]) if tools else "", self.judge.max_tokens or MOST_TOKENS
        return Ask(self.judge, tuple(sent), FrozenMap(), (), max_tokens=most, media=tuple(media), tools=offered)

    async def ready(self) -> str:
        """Load what asks the model, which takes seconds, and return why it cannot be asked; '' if it can."""
        await ready()
        return self.why_not()

    async def say(self, messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> Turn:
        """Return the model's next turn, with the usage of all attempts; *tools* are functions it may want called."""

        judge = self.judge

        def request() -> dict[str, Any]:
            sent = {"model": judge.name, "messages": [*map(dict, messages)], "max_tokens": judge.max_tokens}
            return {**sent, "tools": [*map(dict, tools)]} if tools else sent

        async def sent() -> Turn | Failure:
            try:
                response, unsent = await background_loop.on_background(complete(judge, request))
                return turn_from(response, unsent, values_of(judge.params))
            except ModelError as error:
                return error.failure
            except Exception as error:  # noqa: BLE001 - such as a reply in a new shape
                return Failure.of(error)

        async def once() -> Turn | Failure:
            try:
                await ready()
                async with _PURSE.get().paying(self.ask(messages, tools)) as committed:
                    return committed(await sent())
            except ModelError as error:
                return error.failure

        outcome, spent = await persist(once, judge.retries)
        if isinstance(outcome, Turn):
            spent += outcome.usage
            if outcome.finish != "length":
                return evolve(outcome, usage=spent)
        failure = outcome if isinstance(outcome, Failure) else _CUT
        cure = f"={judge.max_tokens}; give more" if failure.kind == "truncated" else ""
        message = f"the target {judge.name!r}: {failure.message}{cure}"
        raise ModelError(evolve(failure, message=message, usage=spent))
