"""What code decides about a candidate: its checks, and criteria that do not apply."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, assert_never

from attrs import evolve

from rubric.internals.fields import plain_number
from rubric.internals.frozen_map import thaw
from rubric.internals.text import shorten
from rubric.values import checks
from rubric.values.candidates import Candidate
from rubric.values.checks import Check
from rubric.values.closed_unions import AnyCheck
from rubric.values.criteria import Criterion
from rubric.values.findings import Evidence, Finding, NotApplicable, Scored, Unjudged
from rubric.values.matching import matches_name, misfit
from rubric.values.requests import Failure, FailureKind
from rubric.values.run_rules import RunRule, RunRules
from rubric.values.runs import Run, State

TURNS = ("each turn", "worst turn")
_OF_ANSWERS = ("conversation", *TURNS, "last turn")


def is_of_view(criterion: Criterion) -> bool:
    """True if `on` makes another text of a candidate than its answers: a condition is then one on the whole."""
    return not isinstance(criterion.on, int) and criterion.on not in _OF_ANSWERS


def inapplicable(criterion: Criterion, candidate: Candidate) -> Finding | None:
    """Return the finding of *criterion* if its condition does not hold, or raises; None if it applies."""
    try:
        if not criterion.applies_to(candidate):
            return NotApplicable(criterion.id, "its condition does not hold")
    except Exception as error:  # noqa: BLE001 - a condition of the user's own may raise anything
        return _as_unjudged(criterion, "exception", f"its condition raised {type(error).__name__}: {error}")
    return None


def decide(criterion: Criterion, candidate: Candidate) -> Finding | None:
    """Return the finding of *criterion* if code decides it; None if a judge must."""
    finding, answer = inapplicable(criterion, candidate), criterion.answer
    if finding is not None or not isinstance(answer, Check) or isinstance(answer, checks.Similar):  # by embeddings
        return finding
    return settle(criterion, answer, candidate)


def settle(criterion: Criterion, check: Check, candidate: Candidate) -> Finding:  # noqa: C901, PLR0912 - a case for each check
    """Return the finding of *criterion*, whose answer is *check*; Unjudged if the check cannot be decided."""
    match check:
        case checks.Decided():
            return Scored(criterion.id, check.score, check.score, check.reason, flag=check.passed)
        case checks.Holds():
            return _ask_function(criterion, check, candidate)
        case checks.Unsupported(otherwise="skip"):
            return NotApplicable(criterion.id, f"{check.type} is not supported; skipped as asked")
        case checks.Unsupported(otherwise="fail"):
            return Scored(criterion.id, 0.0, 0, f"{check.type} is not supported; failed as asked")
        case checks.Unsupported() if check == checks.NOTHING:
            return _as_unjudged(criterion, "unsupported", "nothing is asserted, so there is nothing to grade by")
        case checks.Unsupported():
            lack = check.type if " with a fault: " in check.type else f"{check.type} is not supported"
            return _as_unjudged(criterion, "unsupported", f"{lack}; {check.cure}" if check.cure else lack)
        case checks.Similar():
            return _as_unjudged(criterion, "unsupported", f"{check}: only a criterion itself can ask for embeddings")
        case checks.Script():
            return Unjudged(criterion.id, forbidden(criterion, check.scripts))
        case RunRule() | RunRules():
            return _check_rule(criterion, check, candidate)
        case checks.Calls():
            return _check_rule(criterion, check.rule, candidate)
        case checks.Trajectory() | checks.Within() if _may_change(check, candidate):
            return _as_unjudged(criterion, "unsupported", f"{check}: unknown, since the log lacks a part of the run")
        case checks.Within():
            return _check_limits(criterion, check, candidate)
        case _:
            met, why = meets(check, candidate)
            return Scored(criterion.id, float(met), met, why)


def forbidden(criterion: Criterion, programs: Sequence[str]) -> Failure:
    """Return why *criterion* is not judged where its *programs* may not run."""
    cure = "allow_scripts=True in a suite's run (--allow-scripts), or `with rubric.programs.allowing():`"
    why = f"{', '.join(programs)} runs only where programs are allowed: {cure}"
    return Failure("unsupported", shorten(why), criterion=criterion.id)


def _ask_function(criterion: Criterion, check: checks.Holds, candidate: Candidate) -> Finding:
    try:
        said: object = check.function(candidate)
    except Exception as error:  # noqa: BLE001 - a function of the user's own may raise anything
        as_text = "'Candidate'" in str(error) and not isinstance(error, AttributeError)
        cure = "; it is given the candidate, whose text is candidate.output" if as_text else ""
        return _as_unjudged(criterion, "exception", f"{check} raised {type(error).__name__}: {error}{cure}")
    if isinstance(said, Failure):
        return _as_unjudged(criterion, said.kind, said.message)
    if isinstance(said, checks.Decided):
        return settle(criterion, said, candidate)
    found, why = said if isinstance(said, tuple) and len(said) == 2 else (said, "")  # noqa: PLR2004
    score = plain_number(found)
    if not isinstance(score, bool | int | float) or not 0 <= score <= 1 or not isinstance(why, str):
        allowed = "a bool, a score from 0 to 1, or a pair of one with a reason"
        return _as_unjudged(criterion, "exception", f"{check} returned {said!r}, expected {allowed}")
    reason = why or f"{check}: {('yes' if score else 'no') if isinstance(score, bool) else f'{score:g}'}"
    return Scored(criterion.id, float(score), score, reason)


def _check_limits(criterion: Criterion, check: checks.Within, candidate: Candidate) -> Finding:
    took = {"tool_calls": len(candidate.tool_calls)}
    took |= {n: value for n in check.limits if (value := getattr(candidate.metrics, n, None)) is not None}
    if unknown := [name for name in check.limits if name not in took]:
        cure = "let a live target answer, whose run is measured, or give the response with its `metrics`"
        if unknown == ["cost"] and candidate.metrics.calls:  # a target was measured
            cure = "give the price of its model: --price MODEL=IN,OUT, in Python Budget(prices={'MODEL': (IN, OUT)})"
        return _as_unjudged(criterion, "unsupported", f"the {' and '.join(unknown)} of the run is not known; {cure}")
    kept = {name: took[name] <= limit for name, limit in check.limits.items()}
    said = [
        f"{name} {checks.with_unit(name, took[name], shortly=kept[name])}, {'at most' if kept[name] else 'more than'} "
        f"{checks.with_unit(name, limit)}"
        for name, limit in check.limits.items()
    ]
    return Scored(criterion.id, sum(kept.values()) / len(kept), all(kept.values()), "; ".join(said))


_MOST_QUOTED = 20
"""Steps that are evidence of a broken rule; the reason counts the rest."""


def _check_rule(criterion: Criterion, check: RunRule | RunRules, candidate: Candidate) -> Finding:
    """Return the finding of *criterion*, a rule over the run; what must not be is not there if it is so vacuously."""
    since, before = (candidate.part.since, candidate.part.before) if candidate.part else (0, "")
    verdict = check.judge(_with_files(candidate), since, before)
    if verdict.met is None:
        return _as_unjudged(criterion, "unsupported", verdict.reason)
    met = verdict.met and not (verdict.vacuous and criterion.is_unwanted)
    steps = [one for one in verdict.breaches[:_MOST_QUOTED] if one.event]
    evidence = tuple(Evidence(one.text, 0, len(one.text), f"step {one.step}") for one in steps)
    return Scored(criterion.id, float(met), met, verdict.reason, evidence)


def _may_change(check: checks.Trajectory | checks.Within, candidate: Candidate) -> bool:
    """True if calls that the log of a run that was cut short lacks could change what *check* says."""
    from rubric.values.run_verdicts import is_complete  # noqa: PLC0415 - importing the library needs none of it

    if is_complete(candidate.run):
        return False
    names = [call.name for call in candidate.tool_calls]
    if isinstance(check, checks.Within):
        return check.tool_calls is not None and len(names) <= check.tool_calls
    if check.order == "exact":
        return len(names) <= len(check.tools) and all(map(matches_name, check.tools, names))
    return not check.followed_by(names)


def _with_files(candidate: Candidate) -> Run:
    """Return the run of *candidate*, with its files and changes as the state after it."""
    after = {f"file:{name}": text for name, text in candidate.files.items()}
    after |= {"file_changes": candidate.file_changes} if candidate.file_changes else {}
    run = candidate.run
    return evolve(run, events=(*run.events, State(after))) if after else run


def _as_unjudged(criterion: Criterion, kind: FailureKind, why: str) -> Unjudged:
    return Unjudged(criterion.id, Failure(kind, shorten(why), criterion=criterion.id))


def meets(check: Check, candidate: Candidate) -> tuple[bool, str]:  # noqa: C901, PLR0912 - a case for each check
    """Return whether *candidate* passes *check*, and why or why not."""
    if not isinstance(check, AnyCheck):
        raise TypeError(f"{type(check).__name__} is not a check that this library knows")
    fold = str.casefold if getattr(check, "ignore_case", False) else str
    found = fold(candidate.output)
    match check:
        case checks.Contains(text=text):
            met = fold(text) in found
        case checks.ContainsAny(texts=texts):
            met = any(fold(text) in found for text in texts)
        case checks.ContainsAll(texts=texts):
            met = all(fold(text) in found for text in texts)
        case checks.StartsWith(text=text):
            met = found.startswith(fold(text))
        case checks.EndsWith(text=text):
            met = found.endswith(fold(text))
        case checks.Equals(text=text):
            met = found.strip() == fold(text).strip()
        case checks.Matches():
            met = check.found_in(candidate.output)
        case checks.IsJSON():
            _, problem = _parse_json(candidate.output)
            return not problem, problem or "is JSON"
        case checks.FitsSchema(schema=schema):
            value, problem = _parse_json(candidate.output)
            if problem:
                return False, problem
            problem = misfit(thaw(schema), value)
            return not problem, f"does not fit the schema at {problem}" if problem else "fits the schema"
        case checks.Calls():
            met = check.rule.judge(candidate.run).met is True
        case checks.Trajectory():
            met = check.followed_by(call.name for call in candidate.tool_calls)
        case (
            checks.Decided()
            | checks.Holds()
            | RunRule()
            | RunRules()
            | checks.Unsupported()
            | checks.Script()
            | checks.Within()
            | checks.Similar()
        ):
            raise TypeError(f"{type(check).__name__} is not decided by the candidate alone")
        case never:
            assert_never(never)
    return met, f"{check}: {'yes' if met else 'no'}"


def _parse_json(text: str) -> tuple[Any, str]:
    """Return *text* read as JSON, and why it is none; '' if it is."""
    try:
        return json.loads(text, parse_constant=_no_constant, parse_int=_integer), ""
    except RecursionError:
        return None, "is not JSON: it is nested too deeply to be read"
    except ValueError as problem:
        return None, f"is not JSON: {shorten(str(problem), 120)}"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _integer(digits: str) -> int | float:
    """Read numbers of thousands of digits as floats: Python reads them in quadratic time, and then refuses them."""
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


_MOST_DIGITS = 1_000
