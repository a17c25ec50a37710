"""
An agent as the target of a suite: a model that works with the tools of MCP servers until it has a final reply.

| what happens                                         | what comes of it                                          |
|------------------------------------------------------|-----------------------------------------------------------|
| no key; a server that is unknown, dead, unreachable  | `DeferError`: nobody has tried                            |
| a tool fails                                         | its error is the result; the run goes on                  |
| a tool hangs                                         | after `tool_timeout` an error is the result; it goes on   |
| an unknown tool, arguments that are no JSON object   | the model is told so, as the result; it goes on           |
| a server goes away in the middle                     | `ModelError`, transport: the answer would not be its own  |
| the model wants tools for ever                       | `ModelError`, truncated, after `max_steps` turns          |
| the run takes too long                               | `ModelError`, timeout, after `timeout` seconds            |

A run that our own bounds ended is no candidate: graded, it would fail for what the rubric does not ask about. So it is
a failure, and the case is ungraded. A run that ended by itself is graded, whatever its tools said.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from importlib.util import find_spec

from attrs import evolve, field, frozen

from rubric import loops
from rubric.errors import ModelError
from rubric.exchanges import Failure
from rubric.judges import Judge
from rubric.mappings import FrozenMap
from rubric.secrets import masked
from rubric.showing import Shown
from rubric.suites.cases import Case
from rubric.suites.chats import as_params, asked_of, opening, ready_to_ask
from rubric.suites.servers import Server, as_servers
from rubric.suites.stepping import Run, whole
from rubric.suites.targets import DeferError, Response
from rubric.validating import count, number, string

__all__ = ["AgentTarget"]

_CURE = "an agent with MCP servers needs the MCP SDK, 2.2 or later: pip install rubric-grade[mcp]"


@frozen(repr=False)
class AgentTarget(Shown):
    """
    A model that answers the cases of a suite with the help of MCP servers.

    For each case it connects to the server that the case names, or to all where it names none, and offers the model
    their tools. The candidate holds the final reply, and the calls with their results; a tool is called there as its
    server calls it. The servers' processes and connections have ended when the candidate is there.

    Args:
        model: A LiteLLM name, such as `"openai/gpt-5.6"`.
        servers: By name. Only code gives them: a file names a server, and never says how to start or reach one.
        system: A system prompt that goes first.
        max_steps: How many turns the model has at most, the final reply included.
        timeout: Seconds for the whole run, from the first connection to the final reply.
        start_timeout: Seconds for a server until it has listed its tools.
        tool_timeout: Seconds for one call of a tool.
        turn_timeout: Seconds for one attempt at one turn of the model.
        longest_result: Characters of a tool's result; what is longer is cut, with a mark.
        temperature: As the vendor reads it; None sends none.
        max_tokens: The longest turn.
        retries: How many further attempts a turn gets that failed in passing.
        params: Further parameters for the vendor, as LiteLLM names them.

    Raises:
        ImportError: The MCP SDK is not installed.
    """

    _positional = ("model", "servers")

    model: str = field()
    servers: FrozenMap = field(factory=FrozenMap, converter=as_servers)
    system: str = field(default="", kw_only=True, validator=string)
    max_steps: int = field(default=10, kw_only=True, validator=count(1))
    timeout: float = field(default=120.0, kw_only=True, validator=number(0, 86_400, above=True))
    start_timeout: float = field(default=60.0, kw_only=True, validator=number(0, 86_400, above=True))
    tool_timeout: float = field(default=30.0, kw_only=True, validator=number(0, 86_400, above=True))
    turn_timeout: float = field(default=60.0, kw_only=True)
    longest_result: int = field(default=20_000, kw_only=True, validator=count(1))
    temperature: float | None = field(default=None, kw_only=True)
    max_tokens: int = field(default=4096, kw_only=True)
    retries: int = field(default=2, kw_only=True)
    params: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=as_params)

    def __attrs_post_init__(self) -> None:
        _ = self.asked  # refuses what cannot be asked
        if self.servers and not (find_spec("mcp") and find_spec("mcp_types")):
            raise ImportError(_CURE, name="mcp")

    def __repr__(self) -> str:
        return Shown.__repr__(evolve(self, params=masked(self.params)))

    @property
    def asked(self) -> Judge:
        """The model and its settings, in the form that models are asked in; it judges nothing here."""
        return asked_of(
            self.model,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            timeout=self.turn_timeout,
            retries=self.retries,
            params=self.params,
        )

    async def respond(self, case: Case, /) -> Response:
        """
        Return what the agent makes of *case*; cancelled, it ends what it started and waits for that.

        Raises:
            DeferError: The environment has no key for the model, a server is not there, or the case asks nothing.
            ModelError: The run did not come to a final reply.
        """
        messages, servers = opening(case, self.system), self._servers(case)
        await ready_to_ask(self.asked)
        if servers:
            await asyncio.to_thread(_import)
        run = Run(self, messages)
        outcome = await loops.on_background(whole(run.through(servers)))
        if isinstance(outcome, Failure):
            raise ModelError(evolve(outcome, usage=run.usage))
        return run.response(case, outcome)

    def _servers(self, case: Case) -> dict[str, Server]:
        if not case.server:
            return dict(self.servers)
        if case.server not in self.servers:
            known = ", ".join(repr(name) for name in self.servers) or "none"
            raise DeferError(f"the case {case.id!r} names the MCP server {case.server!r}; known: {known}")
        return {case.server: self.servers[case.server]}


def _import() -> None:
    try:
        import_module("rubric.suites.connections")  # an extra, and it takes a while
    except ImportError as error:
        raise ImportError(f"{_CURE} ({error})", name="mcp") from error
