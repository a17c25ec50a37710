"""One turn of a chat with a model, tool calls included: for targets, which make candidates, and not for judges."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

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
from rubric.models.retry import attempt
from rubric.values.chats import at
from rubric.values.requests import MOST_TOKENS, Ask, Failure, Limiter, Outgoing, Reply, Usage
from rubric.values.runs import Media

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rubric.values.judges import Judge


_CUT = Failure("truncated", "cut at max_tokens")


PAYING: ContextVar[tuple[Limiter | None, Callable[[Judge, Usage], Usage]]] = ContextVar(
    "rubric_paying", default=(None, lambda _, usage: usage)
)
"""What each request of a target passes, such as a budget, and its usage at agreed prices; a run sets them."""


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
            sent.append(Outgoing(one["role"], (str(content) if is_text else json.dumps({**one}),)))
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

        turns = list[Turn]()

        async def answer(_: Ask) -> Reply:
            response, unsent = await background_loop.on_background(complete(judge, request))
            turns.append(turn_from(response, unsent, values_of(judge.params)))
            return Reply(turns[-1].text, usage=turns[-1].usage)

        limiter, price = PAYING.get()
        model: Any = SimpleNamespace(answer=answer, ready=ready, is_punctual=True)  # LiteLLM keeps the deadline
        outcome = await attempt(model, self.ask(messages, tools), limiter=limiter)
        spent = price(judge, outcome.usage)
        if isinstance(outcome, Reply) and turns[-1].finish != "length":
            return evolve(turns[-1], usage=spent)
        failure = outcome if isinstance(outcome, Failure) else _CUT
        cure = f"={judge.max_tokens}; give more" if failure.kind == "truncated" else ""
        message = f"the target {judge.name!r}: {failure.message}{cure}"
        raise ModelError(evolve(failure, message=message, judge="", usage=spent))
