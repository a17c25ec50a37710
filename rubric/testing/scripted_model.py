"""A model that answers from a script, for tests of code that grades."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast
from uuid import uuid4

from attrs import field, frozen

from rubric import ModelError
from rubric.driving import Ask, Failure, Reply, Usage
from rubric.embed import fields
from rubric.values.readers import write_reply


@frozen
class Says:
    """
    One verdict: a *value* (True, 0.8, 7, `"warm"`, or None for "cannot tell"), and what goes with it.

    Args:
        reason: The judge's reason.
        evidence: Its quotes.
        flag: Its own pass flag, for criteria that ask for one.
    """

    value: bool | float | str | None
    reason: str = "as scripted"
    evidence: tuple[str, ...] = field(default=(), converter=fields.listed, validator=fields.texts)
    flag: bool | None = None


Line = Says | bool | float | str | Mapping[str, Any] | Reply | Failure | None
"""A line of a script: a verdict, a value, raw text, an object to send as JSON, a whole reply, or a failure."""


class ScriptedModel:
    """
    A model that answers from a script, and keeps the asks that it gets in `asks`.

    Args:
        script: Lines in the order of the asks; or lines by criterion id, used for every ask; or a function from the ask
            to a line. Text is sent unchanged; a verdict is sent in the form that the ask wants, with its nonce. After
            the last line of a list, asks fail.

    Example:
        >>> from rubric import Judge, Rubric, grade
        >>> judge = Judge(ScriptedModel({"is-polite": True, "warmth": 0.5}))
        >>> rubric = Rubric().expects("Is polite").scores("Warm", id="warmth")
        >>> grade("Good morning!", rubric, judge).score
        0.75
    """

    def __init__(self, script: Iterable[Line] | Mapping[str, Line] | Callable[[Ask], Line]) -> None:
        self.asks: list[Ask] = []
        self.identity = f"script {uuid4()}"  # for a store: another script, or the same in another run, is another judge
        self._script: Any = script
        if not callable(script):
            self._script = dict(script) if isinstance(script, Mapping) else deque(script)

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the next line as a reply; raise `ModelError` for a failure."""
        self.asks.append(ask)
        match self._line(ask):
            case Failure() as failure:
                raise ModelError(failure)
            case Reply() as reply:
                return reply
            case str() as text:
                pass
            case Mapping() as data:
                text = json.dumps(_seal(ask, data))
            case line:
                text = reply_to(ask, line)
        return Reply(text, usage=Usage(calls=1, cost=0.0))

    def _line(self, ask: Ask) -> Line:
        line: Line
        if callable(self._script):
            return cast("Line", self._script(ask))
        if isinstance(self._script, deque):
            line = self._script.popleft() if self._script else Failure("exception", "the script has run out")
        elif missing := [c.id for c in ask.criteria if c.id not in self._script]:
            line = Failure("exception", f"the script has no line for {missing[0]!r}")
        else:
            lines = [self._script[c.id] for c in ask.criteria]
            line = reply_to(ask, *lines) if ask.many else lines[0]
        return line


def reply_to(ask: Ask, *lines: Line) -> str:
    """Return the text of a good reply to *ask*: one verdict for each of its criteria."""
    verdicts = [line if isinstance(line, Says) else Says(line) for line in lines]  # type: ignore[arg-type]  # raw lines have been sent
    if ask.judge.reader is not None:
        return write_reply(ask.judge.reader, verdicts[0].value, verdicts[0].reason)
    entries = [_entry(ask, index, said) for index, said in enumerate(verdicts)]
    body: dict[str, Any] = {"verdicts": entries} if ask.many else entries[0]
    return json.dumps(body, ensure_ascii=False)


def _seal(ask: Ask, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return *line* with the ask's nonce at the end of each verdict, where it names none itself."""
    if not ask.nonce or "nonce" in line:
        return dict(line)
    if isinstance(line.get("verdicts"), list):
        return {**line, "verdicts": [_seal(ask, e) if isinstance(e, Mapping) else e for e in line["verdicts"]]}
    return {**line, "nonce": ask.nonce}


def _entry(ask: Ask, index: int, said: Says) -> dict[str, Any]:
    properties = ask.schema["properties"]
    keys = properties["verdicts"]["items"]["properties"] if ask.many else properties
    known = {
        "id": ask.criteria[index].id,
        "reason": said.reason,
        "evidence": list(said.evidence),
        "pass": said.value is not False if said.flag is None else said.flag,
        "nonce": ask.nonce,
    }
    return {key: known.get(key, said.value) for key in keys}
