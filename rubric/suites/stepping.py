"""One run of an agent, step by step: a turn of the model, the calls that it wants, their results, until it has done."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from attrs import define, field

from rubric.candidates import Message, ToolCall
from rubric.errors import ModelError
from rubric.exchanges import Failure, FailureKind, Usage
from rubric.models.completions import clean
from rubric.models.redacting import describe
from rubric.suites.chats import left_out, say
from rubric.suites.targets import Response
from rubric.suites.toolboxes import Held, Toolbox

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from contextlib import AbstractAsyncContextManager

    from rubric.models.chatting import ToolRequest, Turn
    from rubric.suites.agents import AgentTarget
    from rubric.suites.cases import Case
    from rubric.suites.connections import Connection
    from rubric.suites.servers import Server

__all__ = ["Run", "whole"]


async def whole(coroutine: Coroutine[Any, Any, str | Failure]) -> str | Failure:
    """Await *coroutine* in a task of its own, cancelled once at most: a second time would cut its cleaning up."""
    task = asyncio.create_task(coroutine)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():  # and not by us: a session does that to its task when its transport breaks down
            return Failure("transport", "the session with an MCP server broke down")
        task.cancel()
        await asyncio.wait([task])
        raise


@define
class Run:
    """One run of an agent: what was said and called so far, and what that used."""

    target: AgentTarget
    messages: list[dict[str, Any]]
    usage: Usage = field(factory=Usage)
    calls: list[ToolCall] = field(factory=list)
    said: list[Message] = field(factory=list)
    warnings: dict[str, None] = field(factory=dict)
    _deadline: float = 0.0
    _is_asking: bool = False

    async def through(self, servers: dict[str, Server]) -> str | Failure:
        """Connect to *servers*, run, and leave them; return the final reply, or why there is none."""
        self._deadline = asyncio.get_running_loop().time() + self.target.timeout
        try:
            async with AsyncExitStack() as stack:
                connections = [await stack.enter_async_context(self._connect(*item)) for item in servers.items()]
                return await self._outcome(Toolbox.of(connections))
        except ConnectionError as error:
            return self._ended("transport", str(error))

    def _connect(self, name: str, server: Server) -> AbstractAsyncContextManager[Connection]:
        from rubric.suites.connections import connect  # noqa: PLC0415 - an extra

        left = max(0.0, self._deadline - asyncio.get_running_loop().time())
        return connect(name, server, start=min(self.target.start_timeout, left), tool=self.target.tool_timeout)

    async def _outcome(self, box: Toolbox) -> str | Failure:
        """Return the final reply or the failure: raised, it would come out of the sessions in a group."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._steps(box)
        except ModelError as error:
            self.usage += error.failure.usage
            return error.failure
        except TimeoutError:
            return self._ended("timeout", f"the run did not end within {self.target.timeout:g} seconds")
        except ConnectionError as error:
            return self._ended("transport", str(error))
        except Exception as error:  # noqa: BLE001 - whatever it was, it is a typed failure
            return self._ended("exception", describe(error))

    def _ended(self, kind: FailureKind, message: str) -> Failure:
        """Return the failure of a run that was ended from outside, where a request may have been under way."""
        if self._is_asking:
            self.usage += Usage(calls=1, cost=None, unmetered=1)
        return Failure(kind, message, in_doubt=self._is_asking)

    async def _steps(self, box: Toolbox) -> str | Failure:
        turn = await self._turn(box)
        for _ in range(self.target.max_steps - 1):
            if not turn.tool_calls:
                break
            await self._follow(turn, box)
            turn = await self._turn(box)
        if not turn.tool_calls:
            return turn.text
        names = ", ".join(dict.fromkeys(request.name for request in turn.tool_calls))
        message = f"the run did not end within {self.target.max_steps} turns; the model still wanted: {names}"
        return Failure("truncated", message)

    async def _turn(self, box: Toolbox) -> Turn:
        self._is_asking = True
        turn = await say(self.target.asked, self.messages, box.offered())
        self._is_asking = False
        self.usage += turn.usage
        self.warnings |= dict.fromkeys(left_out(turn))
        return turn

    async def _follow(self, turn: Turn, box: Toolbox) -> None:
        self.messages.append(turn.message)
        if turn.text.strip():
            self.said.append(Message("assistant", turn.text))
        for request in turn.tool_calls:
            result = await self._call(request, box)
            self.messages.append({"role": "tool", "tool_call_id": request.id, "content": result})

    async def _call(self, request: ToolRequest, box: Toolbox) -> str:
        """Carry out *request*, keep it with its result, and return that as the model is told it."""
        held = box.tools.get(request.name)
        name = held.tool.name if held else request.name.strip() or "(no name)"
        arguments: dict[str, Any] = {}
        try:
            arguments = request.parsed()
        except ValueError as problem:
            result = _error(f"the arguments are no JSON object ({problem}): {request.arguments}")
        else:
            result = await self._result(held, arguments) if held else _error(box.unknown(request.name))
        result = self._cut(clean(result) or "", name)
        self.calls.append(ToolCall(name, arguments=arguments, result=result))
        return result

    async def _result(self, held: Held, arguments: dict[str, Any]) -> str:
        result = await held.connection.call(held.tool.name, arguments)
        return _error(result.text) if result.failed else result.text

    def _cut(self, result: str, name: str) -> str:
        over = len(result) - self.target.longest_result
        if over <= 0:
            return result
        self.warnings[f"a result of {name!r} was cut to {self.target.longest_result} characters"] = None
        return f"{result[: self.target.longest_result]} [cut: {over} more characters]"

    def response(self, case: Case, output: str) -> Response:
        """
        Return *output* as the response to *case*.

        The conversation is the case's, and what the agent said between its calls; the results stand with the calls.
        """
        messages = [*case.messages]
        if self.said:
            asked = Message("user", case.input)
            messages += [*([asked] if case.input and messages[-1:] != [asked] else []), *self.said]
        candidate = case.responding(output, tool_calls=self.calls, messages=messages)
        return Response(candidate, self.usage, tuple(self.warnings))


def _error(text: str) -> str:
    return text if text.lower().startswith("error") else f"error: {text}"
