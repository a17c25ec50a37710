"""
Graders that are programs: a `Script` criterion, run as a process of its own (AgentV's script and code graders).

The scripts of a rubric run before it is graded, and their verdicts take their place in it.

A script reads one JSON object on standard input: `input` and `expected_output` (lists of messages), `output` (the
response), `messages` (the response as a message, with its tool calls), `criteria`, `question`, `reference_answer`,
`input_files`, `file_changes`, `trace_summary`, `context`, `variables`, `metadata`, `config`.

It writes one JSON object to standard output:

| key                                       | meaning                                                        |
|-------------------------------------------|----------------------------------------------------------------|
| `score`                                   | a number from 0 to 1                                           |
| `pass`, `passed`, `verdict`               | a score of 1 or 0 if there is no `score`                       |
| `decides`                                 | true: `pass` is the verdict, whatever the score                |
| `reason`, `reasoning`, `explanation`      | why                                                            |
| `checks`, `assertions`, `hits`, `misses`  | single findings; those that failed are added to the reason     |
| `cost_usd`                                | its cost, added to the usage                                   |

Anything else (an exit code other than 0, a deadline, an output that is no such object, a score outside of 0 to 1) is a
failure and never a score. AgentV also reads a bare exit code as a verdict; here that is a failure too, since a program
that crashed has one as well.

A suite is a file, and files come from others, so no script runs unless the caller allows it: it runs with the rights of
this process. It sees no keys, since it gets only a few variables of the environment.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from attrs import evolve, frozen

from rubric.grading.code_checks import applies, settle
from rubric.grading.turns import asked_parts, over_parts
from rubric.internals.frozen_map import thaw
from rubric.internals.programs import ProgramError, allowing, program_error, run_program
from rubric.internals.secrets import redact
from rubric.internals.text import shorten
from rubric.results.result import Grade, Ungraded
from rubric.suites.cases import Case
from rubric.values.candidates import Candidate, why_degenerate
from rubric.values.checks import NOTHING, Decided, Holds, Otherwise, Script, Unsupported
from rubric.values.criteria import Criterion
from rubric.values.findings import Finding, Scored, Unjudged
from rubric.values.requests import Usage
from rubric.values.rubrics import Rubric

MAX_STDOUT = 1 << 20
"""Bytes; a script that writes more is stopped."""

_LONGEST_REASON = 2_000


@frozen
class ScriptResult:
    """The verdict of a script, and its usage."""

    verdict: Decided
    usage: Usage = Usage()


async def run_script(script: Script, case: Case, candidate: Candidate, criteria: str) -> ScriptResult:
    """
    Return the verdict of *script* on *candidate*.

    It runs without a shell, in a process group of its own that ends with it, also when it is cancelled.

    Args:
        criteria: The text of what it judges.

    Raises:
        ProgramError: It did not start, ran too long, failed, or wrote no verdict.
    """
    beside = Path(case.place.source).parent if case.place is not None else Path()
    folder = str(beside / script.folder) if script.folder else str(beside) if beside.is_dir() else None
    given = json.dumps(payload(script, case, candidate, criteria), default=str).encode()
    with allowing():
        return _read(await run_program(script.command, given, folder=folder, seconds=script.timeout, most=MAX_STDOUT))


def payload(script: Script, case: Case, candidate: Candidate, criteria: str) -> dict[str, Any]:
    """Return the object that *script* reads on standard input."""
    counts = Counter(call.name for call in candidate.tool_calls)
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
        "trace_summary": {"event_count": counts.total(), "tool_calls": dict(counts), "error_count": 0},
        "context": candidate.context,
        "variables": thaw(candidate.variables),
        "metadata": thaw(case.metadata),
        "config": thaw(script.config),
    }


# -- its output ------------------------------------------------------------------------------------------


def _read(written: bytes) -> ScriptResult:
    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    try:
        data = json.loads(written.decode(), parse_constant=refuse)
    except (ValueError, RecursionError) as error:
        shown = shorten(redact(written.decode(errors="replace")), 120)
        raise program_error(f"expected one JSON object on standard output, got {shown!r} ({error})") from None
    if not isinstance(data, dict):
        raise program_error(f"expected a JSON object on standard output, got {type(data).__name__}")
    cost = data.get("cost_usd")
    if isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < math.inf:
        cost = 0.0
    passed = _own_verdict(data) if data.get("decides") is True else None
    return ScriptResult(Decided(_score(data), reason=_reason(data), passed=passed), Usage(cost=float(cost)))


def _score(data: Mapping[str, Any]) -> float:
    if "score" not in data:
        passed = _own_verdict(data)
        if passed is None:
            raise program_error("expected a 'score' from 0 to 1 on standard output, got none")
        return float(passed)
    score = data["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1:
        raise program_error(f"expected a score from 0 to 1, got {shorten(redact(repr(score)), 60)}")
    return float(score)


_YES, _NO = {"pass", "passed"}, {"fail", "failed"}


def _own_verdict(data: Mapping[str, Any]) -> bool | None:
    """Return whether it says that the candidate passed; None if it does not say."""
    said = next((data[key] for key in ("pass", "passed", "verdict") if data.get(key) is not None), None)
    if isinstance(said, str):
        word = said.strip().lower()
        return True if word in _YES else False if word in _NO else None
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


# -- the scripts of a rubric -----------------------------------------------------------------------------


@frozen
class Decisions:
    """A rubric whose scripts have been replaced by their verdicts, and the usage of these scripts."""

    rubric: Rubric
    usage: Usage = Usage()


def _criteria_of(rubric: Rubric) -> Iterator[Criterion]:
    """Yield every criterion that is answered by no rubric; those of nested rubrics too."""
    for criterion in rubric.criteria:
        if isinstance(criterion.answer, Rubric):
            yield from _criteria_of(criterion.answer)
        else:
            yield criterion


def scripts_of(rubric: Rubric) -> list[Script]:
    """Return the scripts that decide criteria of *rubric*; those of nested rubrics too."""
    return [each.answer for each in _criteria_of(rubric) if isinstance(each.answer, Script)]


def programs_of(criterion: Criterion) -> list[str]:
    """Return the programs by which a file changes the output before *criterion* is asked, such as a transform."""
    return [*_of_function(criterion.on), *_of_function(getattr(criterion.answer, "function", None))]


def _of_function(function: object) -> Sequence[str]:
    return cast("Sequence[str]", getattr(function, "scripts", ()))


def scripts_in(rubric: Rubric) -> list[str]:
    """Return the names of all programs that grading by *rubric* starts where that is allowed."""
    programs = [name for criterion in _every(rubric) for name in programs_of(criterion)]
    return [*dict.fromkeys([*map(str, scripts_of(rubric)), *programs])]


def _every(rubric: Rubric) -> Iterator[Criterion]:
    for criterion in rubric.criteria:
        yield criterion
        if isinstance(criterion.answer, Rubric):
            yield from _every(criterion.answer)


def unsupported_of(rubric: Rubric) -> Iterator[Unsupported]:
    """Yield the graders in *rubric* that this library does not have; those of nested rubrics too."""
    return (each.answer for each in _criteria_of(rubric) if isinstance(each.answer, Unsupported))


def treating_unsupported(rubric: Rubric, otherwise: Otherwise) -> Rubric:
    """
    Return *rubric* with its unsupported graders skipped, failed or ungraded.

    A rubric of which nothing would be left keeps its graders: if it skipped all of them, it would pass vacuously. The
    same holds within it: a nested rubric of which nothing is left, or one that turns its outcome over, is itself
    skipped or failed.
    """
    criteria = [_treated(criterion, otherwise) for criterion in rubric.criteria]
    if otherwise == "skip" and all(isinstance(criterion.answer, Unsupported) for criterion in criteria):
        return rubric
    return evolve(rubric, criteria=criteria) if criteria != [*rubric.criteria] else rubric


def _treated(criterion: Criterion, otherwise: Otherwise) -> Criterion:
    answer = criterion.answer
    if isinstance(answer, Unsupported) and answer != NOTHING:
        return evolve(criterion, answer=evolve(answer, otherwise=otherwise))
    if not isinstance(answer, Rubric) or not (lacking := [*unsupported_of(answer)]) or NOTHING in lacking:
        return criterion
    if all(isinstance(inner.answer, Unsupported) for inner in _criteria_of(answer)) or answer.negate:
        types = ", ".join(dict.fromkeys(one.type for one in lacking))
        return evolve(criterion, answer=Unsupported(types, otherwise=otherwise), min_score=None)
    return evolve(criterion, answer=treating_unsupported(answer, otherwise))


def skipped_of(rubric: Rubric) -> list[str]:
    """Return the types of the graders in *rubric* that the caller has skipped, each once."""
    return [*dict.fromkeys(one.type for one in unsupported_of(rubric) if one.otherwise == "skip")]


def can_be_judged(rubric: Rubric, *, allow_scripts: bool) -> bool:
    """True if anything in *rubric* can be judged; else a target would be paid for a candidate in vain."""

    def possible(criterion: Criterion) -> bool:
        if not allow_scripts and programs_of(criterion):
            return False
        match criterion.answer:
            case Rubric() as inner:
                return can_be_judged(inner, allow_scripts=allow_scripts)
            case Script():
                return allow_scripts
            case answer:
                return not isinstance(answer, Unsupported) or answer.otherwise == "fail"

    return any(possible(criterion) for criterion in rubric.judged)


async def run_scripts(case: Case, candidate: Candidate) -> Decisions:
    """
    Run the scripts of the case's rubric that apply to *candidate*, one after another.

    A script that failed leaves its criterion unjudged, with the failure.
    """
    if not scripts_in(case.rubric) or (case.rubric.degenerate != "judge" and why_degenerate(candidate)):
        return Decisions(case.rubric)
    # A script judges by a text of the case (for AgentV, its criteria or its context), or by that of the criterion.
    criteria = case.metadata.get("criteria")
    stated = criteria if isinstance(criteria, str) and criteria else case.context
    usage = Usage()

    async def decided(criterion: Criterion, candidate: Candidate) -> Criterion:
        nonlocal usage
        if programs_of(criterion):
            criterion = await asyncio.to_thread(_settled, criterion, candidate)
        answer = criterion.answer
        has_scripts = isinstance(answer, Script) or (isinstance(answer, Rubric) and bool(scripts_of(answer)))
        if not has_scripts or not applies(criterion.when, candidate):
            return criterion
        parts = {"": candidate} if criterion.on == "conversation" else asked_parts(criterion, candidate)
        if isinstance(parts, Unjudged):  # and so it will be when it is graded
            return criterion
        if isinstance(answer, Rubric):
            if len(parts) > 1:
                error = program_error(
                    f"is not run for each turn within the rubric {criterion.id!r}; ask it of one turn"
                )
                return _each_failing(criterion, error)
            (part,) = parts.values()
            inner = [await decided(each, part) for each in answer.criteria]
            return evolve(criterion, answer=evolve(answer, criteria=inner))
        assert isinstance(answer, Script)  # noqa: S101 - as just asked
        found: dict[str, Finding] = {}
        try:
            for name, part in parts.items():
                result = await run_script(answer, case, part, stated or criterion.text)
                usage += result.usage
                found[name] = settle(criterion, result.verdict, part)
        except ProgramError as error:
            return evolve(criterion, answer=_failing(answer, error), on="conversation")
        whole = over_parts(case.rubric, criterion, found)
        assert isinstance(whole, Scored)  # noqa: S101 - each of them is
        return evolve(criterion, answer=Decided(whole.score, reason=whole.reason, passed=whole.flag), on="conversation")

    rubric = evolve(case.rubric, criteria=[await decided(each, candidate) for each in case.rubric.criteria])
    return Decisions(rubric, usage)


def _settled(criterion: Criterion, candidate: Candidate) -> Criterion:
    """Return *criterion* with what its programs make of *candidate* in the place of these."""
    if _of_function(criterion.on):
        criterion = evolve(criterion, on=cast("Any", criterion.on).settled(candidate))
    if isinstance(criterion.answer, Holds) and _of_function(criterion.answer.function):
        function = cast("Any", criterion.answer.function).settled(candidate)
        criterion = evolve(criterion, answer=Holds(function))
    return criterion


def _each_failing(criterion: Criterion, error: ProgramError) -> Criterion:
    """Return *criterion* with each script in it raising *error*."""
    match criterion.answer:
        case Script() as script:
            return evolve(criterion, answer=_failing(script, error))
        case Rubric() as inner:
            criteria = [_each_failing(each, error) for each in inner.criteria]
            return evolve(criterion, answer=evolve(inner, criteria=criteria))
        case _:
            return criterion


def _failing(script: Script, error: ProgramError) -> Holds:
    """Return a check that raises *error*, so that grading reports it as it reports any check that fails."""

    def fail(_: Candidate) -> bool:
        raise error

    fail.__name__ = str(script)
    return Holds(fail)


def restored(result: Grade | Ungraded, rubric: Rubric) -> Grade | Ungraded:
    """Return *result* with *rubric* as the suite has it, so that it can be rescored under it."""
    if result.rubric is rubric:
        return result
    return evolve(result, rubric=rubric, votes=tuple(restored(vote, rubric) for vote in result.votes))
