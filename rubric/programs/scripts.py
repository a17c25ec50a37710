"""
Programs that grade: `Script` criteria, and functions that start programs, run for `flow` where the caller allows it.

docs/how-to/suites.md has what a script reads and writes. Anything else (an exit code other than 0, a deadline, a score
outside of 0 to 1) is a failure and never a score, and so is a bare exit code: a program that crashed has one, too.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from attrs import field, frozen

from rubric import Candidate
from rubric.driving import Ask, Failure, Reply, Usage
from rubric.embed import Decided, FrozenMap, clean, shorten
from rubric.programs.processes import program_error, run_program
from rubric.values import Script
from rubric.values.requests import PROGRAMS

MAX_STDOUT = 1 << 20
"""Bytes; a script that writes more is stopped."""

_LONGEST_REASON = 2_000


@contextmanager
def allowing(*, when: bool = True, **told: Any) -> Iterator[None]:
    """
    Let programs start within the block, in the tasks and threads that it starts too; *when* false, let none.

    They run with the rights of this process, and a file that names them may come from others.

    Args:
        told: What scripts are told of a case; see `Runner`.

    Example:
        >>> from rubric import Rubric, evaluate
        >>> from rubric.programs import allowing
        >>> from rubric.values import Script
        >>> script = Script(["python", "-c", "print('{\\"pass\\": true}')"])
        >>> with allowing():
        ...     print(evaluate("Hello", Rubric().checks(script), "offline").score)
        1.0
    """
    token = PROGRAMS.set(Runner(**told).answer if when else None)
    try:
        yield
    finally:
        PROGRAMS.reset(token)


@frozen
class Runner:
    """Runs the programs that a grading asks for: scripts work in *folder*, and are told *criteria* and *metadata*."""

    folder: Path = Path()
    criteria: str = ""
    metadata: FrozenMap = field(factory=FrozenMap)

    async def answer(self, ask: Ask) -> Reply | Failure:
        """Run the program of *ask* on its candidate: a script as a process, a function in a thread, which it blocks."""
        program, candidate = cast("Any", ask.program), cast("Candidate", ask.about)
        try:
            if isinstance(program, Script):
                return await self.run(program, candidate, self.criteria or ask.criteria[0].text)
            return Reply(None, usage=Usage(), made=await asyncio.to_thread(program, candidate))
        except Exception as error:  # noqa: BLE001 - a function may raise anything
            why = f"{', '.join(program.scripts)} raised {type(error).__name__}: {error}"
            return Failure("exception", shorten(why), criterion=ask.criteria[0].id)

    async def run(self, script: Script, candidate: Candidate, criteria: str) -> Reply:
        """Return the verdict of *script* on *candidate*, judged by *criteria*, and its cost."""
        payload = self._payload(script, candidate, criteria)
        given = json.dumps(payload, default=lambda one: dict(one) if isinstance(one, Mapping) else str(one)).encode()
        folder = self.folder / script.folder
        where = str(folder) if script.folder or folder.is_dir() else None
        return _read(await run_program(script.command, given, folder=where, seconds=script.timeout, most=MAX_STDOUT))

    def _payload(self, script: Script, candidate: Candidate, criteria: str) -> dict[str, Any]:
        """Return the object that *script* reads on standard input."""
        counts = Counter(call.name for call in candidate.tool_calls)
        asked = [{"role": m.role, "content": m.content} for m in candidate.messages]
        if candidate.input and not any(m["content"] == candidate.input for m in asked):
            asked.append({"role": "user", "content": candidate.input})
        calls = [{"tool": c.name, "input": c.arguments, "output": c.result} for c in candidate.tool_calls]
        expected = [{"role": "assistant", "content": candidate.reference}] if candidate.reference else []
        return {
            "input": asked,
            "input_files": [],
            "output": candidate.output,
            "expected_output": expected,
            "messages": [{"role": "assistant", "content": candidate.output, "tool_calls": calls}],
            "criteria": criteria,
            "question": candidate.input,
            "reference_answer": candidate.reference,
            "file_changes": candidate.file_changes or None,
            "trace_summary": {"event_count": counts.total(), "tool_calls": dict(counts), "error_count": 0},
            "context": candidate.context,
            "variables": candidate.variables,
            "metadata": self.metadata,
            "config": script.config,
        }


# -- its output ------------------------------------------------------------------------------------------


def _read(written: bytes) -> Reply:
    """Return the verdict in what a script has *written*, and its cost."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        data = json.loads(written.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        shown = shorten(clean(written.decode(errors="replace")), 120)
        raise program_error(f"expected one JSON object on standard output, got {shown!r} ({error})") from None
    if not isinstance(data, dict):
        raise program_error(f"expected a JSON object on standard output, got {type(data).__name__}")
    cost = data.get("cost_usd")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        cost = 0.0
    passed = _own_verdict(data) if data.get("decides") is True else None
    verdict = Decided(_score(data), reason=_reason(data), passed=passed)
    return Reply(None, usage=Usage(cost=float(cost)), made=verdict)


def _score(data: Mapping[str, Any]) -> float:
    if "score" not in data:
        passed = _own_verdict(data)
        if passed is None:
            raise program_error("expected a 'score' from 0 to 1 on standard output, got none")
        return float(passed)
    score = data["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise program_error(f"expected a score from 0 to 1, got {shorten(clean(repr(score)), 60)}")
    return float(score)


_VERDICTS = {"pass": True, "passed": True, "fail": False, "failed": False}


def _own_verdict(data: Mapping[str, Any]) -> bool | None:
    """Return whether it says that the candidate passed; None if it does not say."""
    said = next((data[key] for key in ("pass", "passed", "verdict") if data.get(key) is not None), None)
    if isinstance(said, str):
        return _VERDICTS.get(said.strip().lower())
    return said if isinstance(said, bool) else None


def _reason(data: Mapping[str, Any]) -> str:
    given = [data[key] for key in ("reason", "reasoning", "explanation") if isinstance(data.get(key), str)]
    lists = {key: data[key] for key in ("checks", "assertions", "misses") if isinstance(data.get(key), list)}
    misses = [str(miss) for miss in lists.get("misses", ())]
    checks = [each for each in (*lists.get("checks", ()), *lists.get("assertions", ())) if isinstance(each, Mapping)]
    failed = [check for check in checks if _own_verdict(check) is False]
    misses += [": ".join(str(check[key]) for key in ("text", "reason") if check.get(key)) for check in failed]
    parts = [*given[:1], *(f"failed: {miss}" for miss in misses if miss.strip())]
    passed = None if data.get("decides") is True else _own_verdict(data)
    if passed is not None and "score" in data and data["score"] == float(not passed):
        parts.append(f"contradictory: the script itself says {'pass' if passed else 'fail'}")
    return shorten("; ".join(part for part in parts if part.strip()), _LONGEST_REASON)
