"""
A `Suite` as an AgentV file of generation 2, with a sentence for each thing that it cannot hold.

Texts that AgentV would take for templates are put between `{% raw %}` and `{% endraw %}`.
"""

from __future__ import annotations

from typing import Any

from attrs import define, field, fields

from rubric.errors import DefinitionError
from rubric.formats.agentv.messages import write_asked
from rubric.formats.agentv.quoting import quoted
from rubric.formats.agentv.scopes import THRESHOLD
from rubric.formats.agentv.stating import Losses, state_rubric
from rubric.formats.providers import provider_id
from rubric.judges import Bench, Judge
from rubric.mappings import thaw
from rubric.suites.cases import Case
from rubric.suites.suites import Suite

__all__ = ["write"]

KEPT = ("description", "version", "author", "license", "tags", "metadata", "governance", "requires")
"""Free data of a suite that has a place in a file."""

_LOST = {
    "output": "a fixed response",
    "tool_calls": "the tool calls of a fixed response",
    "file_changes": "the file changes of a fixed response",
    "server": "an MCP server",
    "cell": "its place in a matrix",
}
_SETTINGS = ("temperature", "max_tokens", "seed")
_TAKEN = ("input", "expected_output")


def write(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """
    Return *suite* as the plain data of an AgentV file, and what it cannot hold: a sentence each.

    Read again, it is the same suite, but for what the sentences name.
    """
    writer = Writer()
    data: dict[str, Any] = {"name": suite.name} if suite.name else {}
    for key, value in thaw(suite.metadata).items():
        if key in KEPT:
            data[key] = value
        else:
            writer.lost.append(f"suite: metadata {key!r}: an AgentV file has no place for it")
    if provider := writer.provider(suite.judge, "suite", "judge"):
        data["default_test"] = {"options": {"provider": provider}}
    data["tests"] = [test for case in suite if (test := writer.test(case)) is not None]
    return data, writer.lost


@define
class Writer:
    """Writes cases, and keeps what is *lost*."""

    lost: list[str] = field(factory=list)

    def test(self, case: Case) -> dict[str, Any] | None:
        """Return *case* as a test; None, with the loss noted, where nothing is left to grade it by."""
        losses = Losses(case.id, self.lost)
        for name, what in _LOST.items():
            if getattr(case, name) != fields(type(case)).__getattribute__(name).default and getattr(case, name):
                losses.add(name, f"AgentV's tests do not have {what}")
        judges = {id_: self.provider(judge, f"case {case.id!r}", f"judges.{id_}") for id_, judge in case.judges.items()}
        graders = state_rubric(case.rubric, judges, losses)
        if not graders:
            losses.add("rubric", "nothing is left of it to grade by, so the test is left out")
            return None
        threshold = THRESHOLD if case.rubric.threshold is None else case.rubric.threshold
        row = {
            "id": quoted(case.id),
            "criteria": self._context(case, losses),
            "input": self._asked(case, losses),
            "expected_output": quoted(case.reference),
            "vars": self._variables(case, losses),
            "threshold": None if threshold == THRESHOLD else threshold,
            "options": self._options(case),
            "assert": graders,
            "tags": [quoted(tag) for tag in case.tags],
            "metadata": thaw(case.metadata),
        }
        return {key: value for key, value in row.items() if value not in (None, "", [], {})}

    def provider(self, judge: Bench | None, where: str, name: str) -> Any:
        """Return the id of a judge's provider, with the settings that a file may have; None if it has none."""
        if judge is None:
            return None
        if not isinstance(judge, Judge) or not isinstance(judge.model, str):
            self.lost.append(f"{where}: {name}: AgentV's judge is one model, not {type(judge).__name__}")
            return None
        try:
            id_ = provider_id(judge.model)
        except DefinitionError:
            self.lost.append(f"{where}: {name}: the model {judge.model!r} has no provider id")
            return None
        config = {key: getattr(judge, key) for key in _SETTINGS if getattr(judge, key) != getattr(_PLAIN, key)}
        if judge != Judge(judge.model, **config):
            self.lost.append(f"{where}: {name}: a file says nothing of a judge but {', '.join(_SETTINGS)}")
        return {"id": id_, "config": config} if config else id_

    def _options(self, case: Case) -> dict[str, Any]:
        provider = self.provider(case.judge, f"case {case.id!r}", "judge")
        return {"provider": provider} if provider else {}

    def _context(self, case: Case, losses: Losses) -> str:
        if case.context and any(criterion.text == case.context for criterion in case.rubric.criteria):
            losses.add("context", "the rubric says the same, and is shown once")
            return ""
        return quoted(case.context)

    def _asked(self, case: Case, losses: Losses) -> Any:
        if case.messages and case.input:
            losses.add("input", "it is written as the last message")
        elif len(case.messages) == 1 and case.messages[0].role == "user":
            losses.add("messages", "a lone message of the user's is read as the input")
        asked = write_asked(case.input, case.messages)
        if isinstance(asked, str):
            return quoted(asked)
        return [{**message, "content": quoted(message["content"])} for message in asked]

    def _variables(self, case: Case, losses: Losses) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in thaw(case.variables).items():
            if name.startswith("vars."):
                continue
            if name in _TAKEN or not isinstance(value, str):
                losses.add(f"variables.{name}", "AgentV's variables of this name are something else, or it is no text")
            else:
                found[name] = quoted(value)
        return found


_PLAIN = Judge("offline")
