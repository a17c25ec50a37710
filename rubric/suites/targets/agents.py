"""
An agent as the target of a suite: a model that works with the tools of MCP servers until it has a final reply.

A run that our own bounds ended is no candidate: graded, it would fail for something that the rubric does not ask about.
So it is a failure, and the case is ungraded. A run that ended by itself is graded, whatever its tools returned;
docs/how-to/suites.md has each event.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import AsyncExitStack
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from attrs import define, evolve, field, frozen

from rubric import Message, ModelError, ToolCall
from rubric.driving import Failure, Usage
from rubric.embed import FrozenMap, clean, fields, guided, on_background, thaw
from rubric.suites.cases import Case
from rubric.suites.targets.base import DeferError, Response
from rubric.suites.targets.mcp_servers import Server, as_servers
from rubric.suites.targets.models import AskedModel, missing_server, opening

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp import Tool

    from rubric.models.chat_turns import ToolRequest
    from rubric.suites.targets.mcp_sessions import Connection


T = TypeVar("T")

_LONGEST_NAME = 64


@frozen
class ServerTool:
    connection: Connection
    tool: Tool


Tools = dict[str, ServerTool]
"""Tools by the names of the functions that a model is offered."""


def tools_of(connections: Iterable[Connection]) -> Tools:
    """
    Return the tools of several servers by names that a model can tell apart.

    A function has the name of its tool; if two servers have a tool of one name, the server's name goes before it. Any
    character that vendors do not take in a name (they take letters, digits, `_` and `-`, 64 in all) becomes `_`.
    """
    found = [ServerTool(connection, tool) for connection in connections for tool in connection.tools]
    often = Counter(_valid(one.tool.name) for one in found)
    tools: Tools = {}
    for one in found:
        name = _valid(one.tool.name)
        tools[_free(name if often[name] == 1 else _valid(f"{one.connection.name}__{name}"), tools)] = one
    return tools


def _as_function(name: str, tool: Tool) -> dict[str, Any]:
    """Return *tool* as a function in the form of OpenAI's chat API."""
    parameters = {"type": "object", "properties": {}, **tool.input_schema}
    function = {"name": name, "description": tool.description or tool.title or "", "parameters": parameters}
    return {"type": "function", "function": function}


def _valid(name: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    return (name if re.match(r"[A-Za-z_]", name) else f"_{name}")[:_LONGEST_NAME]


def _free(name: str, taken: Mapping[str, object]) -> str:
    free, number = name, 2
    while free in taken:
        ending = f"_{number}"
        free, number = f"{name[: _LONGEST_NAME - len(ending)]}{ending}", number + 1
    return free


async def whole(coroutine: Coroutine[Any, Any, T]) -> T | Failure:
    """Await *coroutine* in a task that is cancelled at most once: a second time would interrupt its clean-up."""
    task = asyncio.create_task(coroutine)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.cancelled():  # by the SDK, not by us: a session cancels its own task when its transport breaks down
            return Failure("transport", "the session with an MCP server broke down")
        task.cancel()
        await asyncio.wait([task])
        raise


@define
class Run:
    """One run of an agent, turn by turn: the messages and the calls so far, and their usage."""

    target: AgentTarget
    case: Case
    messages: list[dict[str, Any]]
    usage: Usage = field(factory=Usage)
    said: list[Message | ToolCall] = field(factory=list)
    warnings: dict[str, None] = field(factory=dict)
    _deadline: float = 0.0
    _is_asking: bool = False

    async def through(self, servers: dict[str, Server]) -> str | Failure:
        """Connect to *servers*, run, and disconnect; return the final reply, or the failure."""
        self._deadline = asyncio.get_running_loop().time() + self.target.timeout
        try:
            async with AsyncExitStack() as stack:
                connections = [await stack.enter_async_context(self._connect(*item)) for item in servers.items()]
                return await self._outcome(tools_of(connections))
        except ConnectionError as error:
            return self._failure("transport", str(error))

    def _connect(self, name: str, server: Server) -> AbstractAsyncContextManager[Connection]:
        from rubric.suites.targets.mcp_sessions import connect  # noqa: PLC0415 - an extra

        left = max(0.0, self._deadline - asyncio.get_running_loop().time())
        return connect(name, server, start=min(self.target.start_timeout, left), tool=self.target.tool_timeout)

    async def _outcome(self, tools: Tools) -> str | Failure:
        """Return the final reply or the failure, which the sessions' task groups would wrap if it were raised."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._steps(tools)
        except ModelError as error:
            self.usage += error.failure.usage
            return error.failure
        except TimeoutError:
            return self._failure("timeout", f"the run did not end within {self.target.timeout:g} seconds")
        except ConnectionError as error:
            return self._failure("transport", str(error))
        except Exception as error:  # noqa: BLE001 - any error becomes a typed failure
            return self._failure("exception", Failure.of(error).message)

    def _failure(self, kind: Literal["transport", "timeout", "exception"], message: str) -> Failure:
        """Return the failure of a run that was ended from outside; a request may have been in flight."""
        if self._is_asking:
            self.usage += Usage(calls=1, cost=None, unmetered=1)
        return Failure(kind, message, in_doubt=self._is_asking)

    async def _result(self, name: str, tools: Tools) -> str | Failure:
        """Return what the tool *name* returns for the arguments of the case; an error of its is not a candidate."""
        known = next((one for one in tools.values() if one.tool.name == name), None)
        if known is None:
            names = (one.tool.name for one in tools.values())
            return Failure("bad_request", f"there is no tool {name!r}{fields.suggest(name, names)}")
        arguments = thaw(self.case.metadata.get("args")) or {}
        result = await known.connection.call(name, arguments)
        self.said.append(ToolCall(name, arguments=arguments, result=result.text))
        return Failure("exception", f"the tool {name!r} failed: {result.text}") if result.failed else result.text

    async def _steps(self, tools: Tools) -> str | Failure:
        if name := _tool_of(self.case):
            return await self._result(name, tools)
        offered = [_as_function(name, each.tool) for name, each in tools.items()]
        wanted: Sequence[ToolRequest] = ()
        for _ in range(self.target.max_steps):
            self.messages += [await self._call(request, tools) for request in wanted]
            self._is_asking = True
            turn = await self.target.chat.say(self.messages, offered)
            self._is_asking = False
            self.usage += turn.usage
            self.warnings |= dict.fromkeys(turn.warnings)
            if not turn.tool_calls:
                return turn.text
            self.messages.append(turn.message)
            if turn.text.strip():
                self.said.append(Message("assistant", turn.text))
            wanted = turn.tool_calls
        names = ", ".join(dict.fromkeys(request.name for request in wanted))
        message = f"the run did not end within {self.target.max_steps} turns; the model still wanted: {names}"
        return Failure("truncated", message)

    async def _call(self, request: ToolRequest, tools: Tools) -> dict[str, Any]:
        """Call the tool of *request*, keep the call, and return the message with its result for the model."""
        known = tools.get(request.name)
        name = known.tool.name if known else request.name.strip() or "(no name)"
        arguments: dict[str, Any] = {}
        try:
            arguments = request.parse()
        except ValueError as problem:
            text = _error(f"the arguments are not a JSON object ({problem}): {request.arguments}")
        else:
            if known is None:
                text = _error(f"there is no tool {request.name!r}{fields.suggest(request.name, tools)}")
            else:
                result = await known.connection.call(known.tool.name, arguments)
                text = _error(result.text) if result.failed else result.text
        most = self.target.longest_result
        if len(text) > most:
            self.warnings[f"a result of {name!r} was cut to {most} characters"] = None
            text = f"{text[:most]} [cut: {len(text) - most} more characters]"
        message = {"role": "tool", "tool_call_id": request.id, "content": clean(text)}
        self.said.append(ToolCall(name, arguments=arguments, result=message["content"]))
        return message

    def response(self, output: str) -> Response:
        """
        Return *output* as the response to the case.

        Its run is the case's conversation, then the agent's words and calls in their order.
        """
        case = self.case
        messages: list[Any] = [*case.messages]
        if self.said:
            asked = Message("user", case.input)
            messages += [*([asked] if case.input and messages[-1:] != [asked] else []), *self.said]
        candidate = case.responding(output, messages=messages)
        return Response(candidate, self.usage, tuple(self.warnings))


_RESULTS = ("result", "result.content", "result.content[0].text")


def _tool_of(case: Case) -> str:
    """Return the name of the tool whose result *case* grades; '' for a case that asks a model something."""
    name, part = case.metadata.get("tool"), case.metadata.get("target", _RESULTS[0])
    if case.input or case.messages or case.images or not isinstance(name, str):
        return ""
    if part not in _RESULTS:
        raise DeferError(f"the case {case.id!r} grades {part!r} of a tool's result; known: {', '.join(_RESULTS)}")
    return name


def _error(text: str) -> str:
    return text if text.lower().startswith("error") else f"error: {text}"


CURE = "an agent with MCP servers needs the MCP SDK, 2.2 or later: pip install 'rubric-grade[mcp]'"


@guided
@frozen(repr=False)
class AgentTarget(AskedModel):
    """
    A model that answers the cases of a suite with the help of MCP servers.

    For each case it connects to the server that the case names, or to all if it names none, and offers the model their
    tools. The candidate holds the final reply, and the calls with their results, under the names that the servers give
    their tools. The servers' processes and connections have ended before the candidate is returned.

    A case that asks nothing, and whose metadata names a `tool` (and its `args`), as a test under `tools:` in mcptest's
    files does, has the result of that tool as its candidate. No model is asked for it.

    Args:
        model: A LiteLLM name, such as `"openai/gpt-5.6"`.
        servers: By name. Only code gives them: a file names a server, and never says how to start or reach one.
        system: A system prompt that goes first.
        max_steps: The most turns of the model, the final reply included.
        timeout: Seconds for the whole run, from the first connection to the final reply.
        start_timeout: Seconds for a server until it has listed its tools.
        tool_timeout: Seconds for one call of a tool.
        turn_timeout: Seconds for one attempt at one turn of the model.
        longest_result: Characters of a tool's result; a longer one is cut, with a mark.
        temperature: As the vendor reads it; None sends none.
        max_tokens: The longest turn.
        retries: How often a turn is sent again after a transient failure.
        params: Further parameters for the vendor, as LiteLLM names them.

    Raises:
        ImportError: The MCP SDK is not installed.
    """

    _positional = ("model", "servers")
    _attempt = "turn_timeout"

    servers: FrozenMap = field(factory=FrozenMap, converter=as_servers)
    max_steps: int = field(default=10, kw_only=True, validator=fields.count(1))
    timeout: float = field(default=120.0, kw_only=True, validator=fields.number(0, 86_400, above=True))
    start_timeout: float = field(default=60.0, kw_only=True, validator=fields.number(0, 86_400, above=True))
    tool_timeout: float = field(default=30.0, kw_only=True, validator=fields.number(0, 86_400, above=True))
    turn_timeout: float = field(default=60.0, kw_only=True)
    longest_result: int = field(default=20_000, kw_only=True, validator=fields.count(1))

    def __attrs_post_init__(self) -> None:
        AskedModel.__attrs_post_init__(self)
        if self.servers and not (find_spec("mcp") and find_spec("mcp_types")):
            raise ImportError(CURE, name="mcp")

    async def respond(self, case: Case, /) -> Response:
        """
        Return the agent's response to *case*; cancelled, it ends what it started and waits for that.

        Raises:
            DeferError: The environment has no key for the model, a server is not there, or the case asks nothing.
            ModelError: The run did not come to a final reply.
        """
        servers = self._servers(case)
        messages = [] if _tool_of(case) else opening(case, self.system)
        if messages:
            await self.ready()
        if servers:
            try:  # an extra, and its import takes a while
                await asyncio.to_thread(import_module, "rubric.suites.targets.mcp_sessions")
            except ImportError as error:
                raise ImportError(f"{CURE} ({error})", name="mcp") from error
        run = Run(self, case, messages)
        outcome = await on_background(whole(run.through(servers)))
        if isinstance(outcome, Failure):
            raise ModelError(evolve(outcome, usage=run.usage))
        return run.response(outcome)

    def _servers(self, case: Case) -> dict[str, Server]:
        if not case.server:
            return dict(self.servers)
        if case.server not in self.servers:
            raise DeferError(missing_server(case, self.servers))
        return {case.server: self.servers[case.server]}
