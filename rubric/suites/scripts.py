"""
What scripts decide is put into the rubric before it is graded, nested rubrics included.

Graders that are programs: a `Script` criterion, run as a process of its own (AgentV's script and code graders).

The program reads one JSON object on standard input: `input` and `expected_output` (lists of messages), `output` (the
response), `messages` (the response as a message, with its tool calls), `criteria`, `question`, `reference_answer`,
`input_files`, `file_changes`, `trace_summary`, `context`, `variables`, `metadata`, `config`.

It writes one JSON object to standard output:

| key                                       | meaning                                                        |
|-------------------------------------------|----------------------------------------------------------------|
| `score`                                   | a number from 0 to 1                                           |
| `pass`, `passed`, `verdict`               | stands for a score of 1 or 0 where there is no `score`         |
| `reason`, `reasoning`, `explanation`      | why                                                            |
| `checks`, `assertions`, `hits`, `misses`  | what was looked at; what failed is added to the reason         |
| `cost_usd`                                | what it spent, added to the usage                              |

Whatever else happens (another exit code than 0, a deadline, an output that is no such object, a score outside of
0 to 1) is a failure and never a score. AgentV also reads a bare exit code as a verdict; here that is a failure too,
since a program that crashed has one as well.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen

from rubric.errors import RubricError
from rubric.grading.code_checks import applies, why_degenerate
from rubric.internals.frozen_map import thaw
from rubric.internals.secrets import redact
from rubric.internals.text import shorten
from rubric.results.result import Grade, Ungraded
from rubric.suites.cases import Case
from rubric.values.candidates import Candidate
from rubric.values.checks import Decided, Holds, Script, Unsupported
from rubric.values.criteria import Criterion
from rubric.values.requests import Usage
from rubric.values.rubrics import Rubric

MOST_BYTES = 1 << 20
"""Of standard output."""

MOST_COMPLAINT = 1 << 14
"""Bytes of standard error that are kept."""

PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT", "PATHEXT")
"""The variables of the environment that a script sees: no keys, no home."""

_SECONDS_TO_END = 5.0
_LONGEST_REASON = 2_000


class ScriptError(RubricError):
    """A script that did not say what its grader says; the message has no secrets in it."""


@frozen
class Said:
    """What a script said: its verdict, and what it spent."""

    verdict: Decided
    usage: Usage = Usage()


async def run_script(script: Script, case: Case, candidate: Candidate, criteria: str) -> Said:
    """
    Return what *script* says of *candidate*.

    It runs without a shell, in a process group of its own that ends with it. Cancelled, it is ended too.

    Args:
        criteria: What is to be judged, in words.

    Raises:
        ScriptError: It could not be started, broke its deadline, failed, or said nothing that can be read.
    """
    given = json.dumps(payload(script, case, candidate, criteria), default=str).encode()
    written, complaint, code = await _run(script, _folder(script, case), given)
    if code:
        ended = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise _error(f"{ended}{': ' if complaint.strip() else ''}{complaint}")
    return _read(written)


def _folder(script: Script, case: Case) -> str | None:
    """Return where *script* runs: its folder, told from that of the file; None is where we run ourselves."""
    beside = Path(case.place.source).parent if case.place is not None else Path()
    if script.folder:
        return str(beside / script.folder)
    return str(beside) if beside.is_dir() else None


def _error(message: str) -> ScriptError:
    return ScriptError(shorten(redact(message), 400))


# -- what it is given ------------------------------------------------------------------------------------


def payload(script: Script, case: Case, candidate: Candidate, criteria: str) -> dict[str, Any]:
    """Return what *script* reads on standard input."""
    asked = [{"role": m.role, "content": m.content} for m in candidate.messages]
    if candidate.input and not any(m["content"] == candidate.input for m in asked):
        asked.append({"role": "user", "content": candidate.input})
    calls = [{"tool": c.name, "input": thaw(c.arguments), "output": thaw(c.result)} for c in candidate.tool_calls]
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
        "trace_summary": _summary(candidate),
        "context": candidate.context,
        "variables": thaw(candidate.variables),
        "metadata": thaw(case.metadata),
        "config": thaw(script.config),
    }


def _summary(candidate: Candidate) -> dict[str, Any]:
    counts = Counter(call.name for call in candidate.tool_calls)
    return {"event_count": counts.total(), "tool_calls": dict(counts), "error_count": 0}


# -- how it is run ---------------------------------------------------------------------------------------


async def _run(script: Script, folder: str | None, given: bytes) -> tuple[bytes, str, int]:
    """Return standard output, the start of standard error, and the exit code."""
    talk = await _start(script, folder)
    try:
        async with asyncio.timeout(script.timeout):
            talk.hand_over(given)
            await talk.over.wait()
        await talk.listen_out()
    except TimeoutError:
        raise _error(f"did not end within {script.timeout:g} seconds, and was stopped") from None
    finally:
        await talk.end()
    if len(talk.written) > MOST_BYTES:
        raise _error(f"wrote more than {MOST_BYTES >> 10} KiB, and was stopped")
    return bytes(talk.written), talk.complaint.decode(errors="replace"), talk.code


async def _start(script: Script, folder: str | None) -> _Talk:
    environ = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    try:
        _, talk = await asyncio.get_running_loop().subprocess_exec(
            _Talk, *script.command, cwd=folder, env=environ, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise _error(f"could not be started: {error}") from None
    return talk


class _Talk(asyncio.SubprocessProtocol):
    """What goes to and fro between us and a script; `over` when it has ended, or written too much."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.complaint = bytearray()
        self.over = asyncio.Event()
        self._speaking = {1, 2}
        self._ended = False
        self._silent = asyncio.Event()
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._input = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept, most = (self.written, MOST_BYTES + 1) if fd == 1 else (self.complaint, MOST_COMPLAINT)
        kept += data[: most - len(kept)]
        if len(self.written) > MOST_BYTES:
            self.over.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - a pipe may break
        self._speaking.discard(fd)
        if not self._speaking:
            self._silent.set()

    def process_exited(self) -> None:
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._gone.set()

    @property
    def code(self) -> int:
        """The exit code; negative is the signal that ended it."""
        code = self._transport.get_returncode()
        return -signal.SIGKILL if code is None else code

    def hand_over(self, given: bytes) -> None:
        """Write *given* to standard input, and close it. A script need not read."""
        self._input.write(given)
        self._input.write_eof()

    async def listen_out(self) -> None:
        """Take in what is still in the pipes, and end what the script has left running."""
        self._end_group()
        await _soon(self._silent)

    async def end(self) -> None:
        """End the script, and whatever it has started, and close the pipes."""
        self._end_group()
        if self._input.get_write_buffer_size():  # else closing would wait for somebody to read it
            self._input.abort()
        self._transport.close()
        await _soon(self._gone)

    def _end_group(self) -> None:
        if hasattr(os, "killpg") and not self._ended:  # once: later the number may be another's
            self._ended = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)


async def _soon(event: asyncio.Event) -> None:
    """Wait for *event*, though not for long: what has left the group may hold the pipes open."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await event.wait()


# -- what it says ----------------------------------------------------------------------------------------


def _read(written: bytes) -> Said:
    try:
        data = json.loads(written.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        shown = shorten(redact(written.decode(errors="replace")), 120)
        raise _error(f"expected one JSON object on standard output, got {shown!r} ({error})") from None
    if not isinstance(data, dict):
        raise _error(f"expected a JSON object on standard output, got {type(data).__name__}")
    return Said(Decided(_score(data), reason=_reason(data)), _usage(data))


def _refuse_constant(name: str) -> Any:
    message = f"{name} is not JSON"
    raise ValueError(message)


def _score(data: Mapping[str, Any]) -> float:
    if "score" not in data:
        passed = _own_verdict(data)
        if passed is None:
            raise _error("expected a 'score' from 0 to 1 in what it said; there is none")
        return float(passed)
    score = data["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise _error(f"expected a score from 0 to 1, got {shorten(redact(repr(score)), 60)}")
    return float(score)


_YES, _NO = {"pass", "passed"}, {"fail", "failed"}


def _own_verdict(data: Mapping[str, Any]) -> bool | None:
    """Return what it says of passing, where it says so."""
    said = next((data[key] for key in ("pass", "passed", "verdict") if data.get(key) is not None), None)
    if isinstance(said, str):
        word = said.strip().lower()
        return True if word in _YES else False if word in _NO else None
    return said if isinstance(said, bool) else None


def _reason(data: Mapping[str, Any]) -> str:
    given = [data[key] for key in ("reason", "reasoning", "explanation") if isinstance(data.get(key), str)]
    parts = [*given[:1], *_looked_at(data)]
    passed = _own_verdict(data)
    if passed is not None and "score" in data and data["score"] == float(not passed):
        parts.append(f"contradictory: the script itself says {'pass' if passed else 'fail'}")
    return shorten("; ".join(part for part in parts if part.strip()), _LONGEST_REASON)


def _looked_at(data: Mapping[str, Any]) -> list[str]:
    checks = [check for check in [*_listed(data, "checks"), *_listed(data, "assertions")] if isinstance(check, Mapping)]
    failed = [check for check in checks if _own_verdict(check) is False]
    misses = [str(miss) for miss in _listed(data, "misses")]
    misses += [": ".join(str(check[key]) for key in ("text", "reason") if check.get(key)) for check in failed]
    return [f"failed: {miss}" for miss in misses if miss.strip()]


def _listed(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []


def _usage(data: Mapping[str, Any]) -> Usage:
    cost = data.get("cost_usd")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        return Usage()
    return Usage(cost=float(cost))


CriterionPath = tuple[str, ...]
"""The ids from the rubric down to one of its criteria."""


@frozen
class Decisions:
    """A rubric in which no script is left to be run, and what the scripts spent."""

    rubric: Rubric
    usage: Usage = Usage()


def scripts_of(rubric: Rubric, path: CriterionPath = ()) -> Iterator[tuple[CriterionPath, Criterion]]:
    """Yield every criterion of *rubric* that a script decides, with where it stands."""
    for criterion in rubric.criteria:
        here = (*path, criterion.id)
        if isinstance(criterion.answer, Script):
            yield here, criterion
        elif isinstance(criterion.answer, Rubric):
            yield from scripts_of(criterion.answer, here)


def unsupported_of(rubric: Rubric) -> Iterator[Unsupported]:
    """Yield the graders in *rubric* that this library does not have, nested rubrics included."""
    for criterion in rubric.criteria:
        if isinstance(criterion.answer, Unsupported):
            yield criterion.answer
        elif isinstance(criterion.answer, Rubric):
            yield from unsupported_of(criterion.answer)


def can_be_judged(rubric: Rubric, *, allow_scripts: bool) -> bool:
    """Say whether there is anything in *rubric* that could be judged; else a candidate would be made for nothing."""

    def possible(criterion: Criterion) -> bool:
        match criterion.answer:
            case Rubric() as inner:
                return can_be_judged(inner, allow_scripts=allow_scripts)
            case Script():
                return allow_scripts
            case answer:
                return not isinstance(answer, Unsupported)

    return any(possible(criterion) for criterion in rubric.judged)


async def run_scripts(case: Case, candidate: Candidate) -> Decisions:
    """
    Run the scripts of the case's rubric that apply to *candidate*, one after another.

    A script that failed leaves its criterion unjudged, with the failure.
    """
    if case.rubric.degenerate != "judge" and why_degenerate(candidate):
        return Decisions(case.rubric)
    made: dict[CriterionPath, Decided | Holds] = {}
    usage = Usage()
    for path, criterion in scripts_of(case.rubric):
        if not _applies(case.rubric, path, candidate):
            continue
        assert isinstance(criterion.answer, Script)  # noqa: S101 - as scripts_of says
        try:
            said = await run_script(criterion.answer, case, candidate, _criteria(case, criterion))
        except ScriptError as error:
            made[path] = _failing(criterion.answer, error)
        else:
            made[path] = said.verdict
            usage += said.usage
    return Decisions(_replaced(case.rubric, made) if made else case.rubric, usage)


def _criteria(case: Case, criterion: Criterion) -> str:
    """Return what is to be judged, in words: what the case says of it (to AgentV, its context), or the criterion."""
    given = case.metadata.get("criteria")
    return given if isinstance(given, str) and given else case.context or criterion.text


def _applies(rubric: Rubric, path: CriterionPath, candidate: Candidate) -> bool:
    criterion = rubric[path[0]]
    if not applies(criterion.when, candidate):
        return False
    return len(path) == 1 or not isinstance(criterion.answer, Rubric) or _applies(criterion.answer, path[1:], candidate)


def _failing(script: Script, error: ScriptError) -> Holds:
    def fail(_: Candidate) -> bool:
        raise error

    fail.__name__ = str(script)
    return Holds(fail)


def _replaced(rubric: Rubric, made: Mapping[CriterionPath, Decided | Holds], path: CriterionPath = ()) -> Rubric:
    def replace(criterion: Criterion) -> Criterion:
        here = (*path, criterion.id)
        if here in made:
            return evolve(criterion, answer=made[here])
        if isinstance(criterion.answer, Rubric):
            return evolve(criterion, answer=_replaced(criterion.answer, made, here))
        return criterion

    return evolve(rubric, criteria=[replace(criterion) for criterion in rubric.criteria])


def restored(result: Grade | Ungraded, rubric: Rubric) -> Grade | Ungraded:
    """Return *result* with *rubric*, as it stands in the suite, so that it can be rescored under it."""
    if result.rubric is rubric:
        return result
    return evolve(result, rubric=rubric, votes=tuple(restored(vote, rubric) for vote in result.votes))
