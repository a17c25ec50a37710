"""
Graders that compare a run's calls of tools with the tools' schemas: promptfoo's `is-valid-openai-tools-call`.

| type | the calls | the tools |
|---|---|---|
| `is-valid-openai-tools-call` | `tool_calls`, of the candidate or in an output that is JSON | `tools` of the provider |
| `is-valid-openai-function-call` | `function_call` in an output that is JSON | `functions` of the provider |
| `is-valid-function-call` | either | both |

It holds if there is a call, and each names a tool that there is, with arguments that fit the tool's JSON Schema. An
output in which MCP servers' results are shown holds unless one is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import field, frozen

from rubric.errors import DefinitionError
from rubric.internals.fields import refuse
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.text import shorten
from rubric.values.candidates import Candidate
from rubric.values.matching import check_schema, misfit

SOURCES = {
    "is-valid-openai-tools-call": ("tools",),
    "is-valid-openai-function-call": ("functions",),
    "is-valid-function-call": ("tools", "functions"),
}
"""The types that are read here, and the keys of a provider's configuration that list what can be called."""

_RESULT, _ERROR = "MCP Tool Result", "MCP Tool Error"
"""What promptfoo writes into an output before the results of MCP servers."""


@frozen
class ValidCalls:
    """
    A function for `Holds`: the candidate calls tools, by their names and within their schemas.

    Args:
        kind: One of `SOURCES`.
        schemas: The JSON Schema of each tool's arguments, by its name.
    """

    kind: str
    schemas: FrozenMap = field(converter=FrozenMap)

    @property
    def __name__(self) -> str:
        return shorten(f"{self.kind}: {', '.join(self.schemas)}", 80)

    def __call__(self, candidate: Candidate) -> tuple[bool, str]:
        """Return whether it holds for *candidate*, and why not."""
        calls = [*_calls(candidate, SOURCES[self.kind])]
        if not calls and "tools" in SOURCES[self.kind] and (_ERROR in candidate.output or _RESULT in candidate.output):
            failed = _ERROR in candidate.output
            return not failed, "a call of an MCP server failed" if failed else "the calls of MCP servers have results"
        wrong = next((why for call in calls if (why := self._wrong(call))), "")
        return bool(calls) and not wrong, wrong or (f"{len(calls)} valid" if calls else "nothing is called")

    def _wrong(self, call: Any) -> str:
        """Return why *call* is not valid; '' if it is."""
        name, arguments = (call.get("name"), call.get("arguments")) if isinstance(call, Mapping) else (None, None)
        if not isinstance(name, str):
            return f"no call: {shorten(repr(call), 100)}"
        if name not in self.schemas:
            return f"there is no tool {shorten(name, 60)!r}"
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments)
            except (ValueError, RecursionError):
                return f"the arguments of {shorten(name, 60)} are no JSON"
        why = misfit(thaw(self.schemas[name]), arguments)
        return f"{shorten(name, 60)}: {why}" if why else ""


def _calls(candidate: Candidate, sources: tuple[str, ...]) -> Iterator[Any]:
    """Yield the calls of *candidate*: those that were recorded, else those in an output that is JSON."""
    if "tools" in sources and candidate.tool_calls:
        yield from ({"name": call.name, "arguments": thaw(call.arguments)} for call in candidate.tool_calls)
        return
    try:
        output = json.loads(candidate.output)
    except (ValueError, RecursionError):
        return
    if isinstance(output, dict) and "functions" in sources and ("function_call" in output or "name" in output):
        yield output.get("function_call", output)
    elif "tools" in sources:
        calls = output.get("tool_calls") if isinstance(output, dict) else output
        for call in calls if isinstance(calls, list) else ():
            yield call.get("function", call) if isinstance(call, dict) else call


def schemas_of(tools: Any) -> dict[str, Mapping[str, Any]]:
    """
    Return the schemas of *tools*, a list as OpenAI or Anthropic has it, by the tools' names.

    A tool without a name, such as an MCP server, has none; one without a schema takes any arguments.

    Raises:
        DefinitionError: It is no list of tools, or a schema is none; its field is `tools`.
    """
    if not isinstance(tools, list) or not all(isinstance(tool, Mapping) for tool in tools):
        raise refuse("tools", tools, "a list of tools")
    found: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        if declared := {"functionDeclarations", "function_declarations"} & tool.keys():
            cure = "give them in OpenAI's form: {type: function, function: {name, parameters}}"
            raise DefinitionError(
                "tools", f"Google's {declared.pop()} are not read, as their types are its own; {cure}"
            )
        one = tool["function"] if isinstance(tool.get("function"), Mapping) else tool
        if isinstance(one.get("name"), str):
            schema = one.get("parameters", one.get("input_schema", {}))
            if not isinstance(schema, Mapping):
                raise refuse("tools", schema, "a JSON Schema (a mapping)")
            check_schema("tools", schema)
            found[one["name"]] = schema
    return found
