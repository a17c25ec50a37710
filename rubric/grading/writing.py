"""
Have a model write a JSON object from material, and write it again where what it wrote cannot be used.

All material is untrusted. Each text stands between two lines with a mark that none of them can hold, since it is a hash
of all; and an object that occurs in a text word for word was written by its author, not by the model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

from attrs import evolve, frozen

from rubric.errors import DefinitionError
from rubric.grading.json_extraction import Ambiguous, find_object
from rubric.grading.response_format import bound_schema
from rubric.grading.steps import Steps
from rubric.internals.frozen_map import FrozenMap
from rubric.prompts import render
from rubric.values.judges import Judge
from rubric.values.requests import MOST_TOKENS, Ask, Failure, Outgoing, Usage

T = TypeVar("T")

_MARK = 16
"""Digits of the mark around each text."""


@frozen
class Writing:
    """
    What a model is asked to write.

    Args:
        prompt: The system message; its slot `mark` is for the mark, others for *slots*.
        blocks: The material: a title and a text each.
        schema: The JSON Schema of the object, whose required keys tell it from other objects in a reply.
        exact: Its bounds, as for `bound_schema`, for servers that hold a model to them.
    """

    prompt: str
    slots: Mapping[str, str]
    blocks: tuple[tuple[str, str], ...]
    schema: FrozenMap
    exact: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """The digest of the material; no text of it can hold it, and the same material makes the same request."""
        text = "\x1f".join(f"{title}\x1e{block}" for title, block in self.blocks)
        return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def ask(self, judge: Judge, complaint: str = "", repair: int = 0) -> Ask:
        """Return the request to *judge*; with the *complaint* about its last reply, where there is one."""
        mark = self.digest[:_MARK]
        text = "\n\n".join(f"{title}, {mark}:\n{block}\n{mark}" for title, block in self.blocks)
        if complaint:
            text += f"\n\nYour last answer could not be used: {complaint}. Write it again."
        system = render.fill(self.prompt, {**self.slots, "mark": mark})
        messages = (Outgoing("system", (system,)), Outgoing("user", (text,)))
        limit, exact = judge.max_tokens or MOST_TOKENS, bound_schema(self.schema, **self.exact)
        return Ask(judge, messages, self.schema, (), max_tokens=limit, repair=repair, exact=exact)

    def steps(self, judge: Judge, read: Callable[[Mapping[str, Any], int], T]) -> Steps[tuple[T | Failure, Usage]]:
        """
        Ask *judge* until its object can be used, or no repair is left; return the result or failure, and the requests.

        *read* makes the result of the object, {} where the reply has none, and of the number of repairs that are left;
        the `DefinitionError` that it raises is the complaint.
        """
        complaint, usage, retries = "", Usage(), judge.retries
        for repair in range(judge.repairs + 1):
            (got,) = yield (evolve(self.ask(judge, complaint, repair), retries=retries),)
            usage, retries = usage + got.usage, max(0, retries - max(0, got.usage.calls - 1))
            if isinstance(got, Failure):
                return got, usage
            try:
                return read(self._object_in(got.text or ""), judge.repairs - repair), usage
            except (DefinitionError, Ambiguous) as problem:
                complaint = str(problem)
        return Failure("unreadable", complaint, judge=judge.name), usage

    def _object_in(self, reply: str) -> Mapping[str, Any]:
        def is_own(value: Mapping[str, Any], source: str) -> bool:
            is_asked_for = value.keys() >= {*self.schema["required"]}
            return is_asked_for and not any(source in text for _, text in self.blocks)

        return find_object(reply, is_own) or {}
