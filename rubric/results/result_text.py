"""Show results: a table for people, words for authors and for errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from attrs import evolve

from rubric.internals.text import cell, shorten, table, visible
from rubric.results.report_rows import (
    WOULD,
    count_votes,
    label,
    lack_of,
    needs_of,
    penalty_words,
    points_off,
    reason_of,
    walk_of,
)
from rubric.scoring.outcomes import TOLERANCE
from rubric.values.answers import Choices, Levels
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Unjudged
from rubric.values.judges import Judge, Jury, Panel
from rubric.values.requests import Failure, Usage

if TYPE_CHECKING:
    from rubric.results.result import Grade, Result, Ungraded


_MOST = 10


def as_table(result: Result) -> str:
    """Return *result* as Markdown: the verdict, a row a criterion, the votes, the walk down a tree, the warnings."""
    score, _, used = headline(result).rpartition(" · ")
    named = "".join(f" · *{cell(shorten(name, 80))}*" for name in (result.rubric.name, result.key) if name)
    parts = [
        f"**{verdict(result)}** · {cell(score)}, {needs_of(result)} · {cell(used)}{named}",
        table(_HEAD, rows(result)),
    ]
    if result.votes:
        names = [vote.judge.name if isinstance(vote.judge, Judge) else repr(vote.judge) for vote in result.votes]
        members = [(name, verdict(vote), headline(vote)) for name, vote in zip(names, result.votes, strict=True)]
        parts.append(table(("vote", "verdict", "result"), members))
    if result.path:
        parts.append(" → ".join(f"{cell(s.question)} **{'yes' if s.yes else 'no'}**" for s in result.path))
    parts += [f"- {cell(warning)}" for warning in result.warnings]
    return "\n\n".join(parts)


def as_text(result: Result) -> str:
    """Return *result* in plain text: the verdict and the score, a line a criterion with its reason, the votes."""
    name = f"{shorten(result.rubric.name, 80)}: " if result.rubric.name else ""
    lines = [f"{name}{verdict(result)}, {headline(result).split(' · ')[0]}, {needs_of(result)}"]
    lines += [f"  {line}" for line in result.explain().splitlines()[result.outcome.score is None :]]
    if result.votes:
        lines.append(f"  {count_votes(result)}")
    lines += [f"  warning: {shorten(warning, 300)}" for warning in result.warnings]
    return visible("\n".join([*lines, f"  {result.usage}"]))[0]


_HEAD = ("criterion", "weight", "verdict", "reason", "evidence")


def rows(result: Result) -> list[tuple[str, ...]]:
    """Return a row a criterion: its id and text, the weight, the verdict, the reason, the evidence."""
    lines: list[tuple[str, ...]] = []
    for criterion, f in zip(result.rubric.judged, result.findings, strict=True):
        said = "gate failed" if f.id in result.outcome.gates else ""
        words = _verdict_words(f, result.contributions.get(f.id), criterion)
        words = ", ".join(filter(None, (words, said, lack_of(result.rubric, criterion, f))))
        votes = "; ".join(f"{_verdict_words(vote, None)} {_reason(vote)}".strip() for vote in f.votes)
        said = f"{len(f.votes)} votes: {votes}" if f.votes else _reason(f, criterion)
        lines.append((label(f.id, str(criterion.text)), f"{criterion.weight:g}", words, said, _quotes(f)))
    return lines


def verdict(result: Result) -> str:
    """Return `pass`, `borderline`, `fail` or `ungraded`."""
    return result.outcome.verdict or "ungraded"


def headline(result: Result) -> str:
    """Return score and usage of *result* in one line."""
    outcome, low, high = result.outcome, *result.bounds
    if outcome.score is None:
        return f"{low:.2f} to {high:.2f}, {WOULD[outcome.passed]} · {result.usage}"
    words = [result.rubric.scale.show(outcome.score, passed=outcome.worst.passed)]
    words += [f"gated by {', '.join(outcome.gates)}"] if outcome.gates else []
    words += ["nothing applied"] if outcome.vacuous else []
    words += [f"the candidate {result.degenerate}"] if result.degenerate else []
    return f"{', '.join(words)} · {result.usage}"


def advice(result: Grade) -> str:
    """Return a line for each criterion that is not fully met, for the candidate's author."""
    lines = []
    for criterion, finding in zip(result.rubric.judged, result.findings, strict=True):
        if result.contributions.get(finding.id) not in (None, 1):
            lack = lack_of(result.rubric, criterion, finding)
            what = f"Not counted, {lack}" if lack else _ADVICE.get(criterion.polarity, "Not fully met")
            votes = [vote for vote in finding.votes if isinstance(vote, Scored)]
            worst = (max if criterion.is_unwanted else min)(votes, key=lambda vote: vote.score, default=finding)
            where = _rung(criterion, worst)
            said = f"{criterion.text}{where and f': {where}'} ({_why(worst) or 'no reason given'})"
            lines.append(f"- {what.format(criterion.weight)}: {said}")
    return visible("\n".join(lines))[0]


def _rung(criterion: Criterion, finding: Finding) -> str:
    """Return the level or the choice of *finding*, and the next better one; nothing of other answers."""
    answer, sign, value = criterion.answer, -1 if criterion.is_unwanted else 1, getattr(finding, "value", None)
    if value is None or not isinstance(answer, Levels | Choices):
        return ""
    if isinstance(answer, Choices):
        here, rungs = f'"{value}"', [(choice.score, f'"{choice.label}"') for choice in answer.choices]
    else:
        here = f"{value} of {answer.low}..{answer.high}" + f', "{getattr(finding, "level", "")}"'.replace(', ""', "")
        bands = ((band.low if sign > 0 else band.high, band) for band in answer.ranges if band.text)
        rungs = [(answer.place(end), f'{band}, "{band.text}"') for end, band in bands]
    better = [(sign * score, words) for score, words in rungs if sign * score > sign * (finding.score or 0) + TOLERANCE]
    return f"{here}; better: {min(better)[1]}" if better else here


_MARKS = {True: "✓", False: "✗"}


def explanation_of_grade(result: Grade) -> str:
    """Return a line a criterion, with a mark, its text and the reason; the verdict alone where nothing was judged."""
    if result.degenerate:
        return f"{result.verdict}: the candidate {result.degenerate}"
    pairs = zip(result.rubric.judged, result.findings, strict=True)
    return "\n".join(_line(result, criterion, finding) for criterion, finding in pairs)


def _line(result: Grade, criterion: Criterion, finding: Finding) -> str:
    contribution, gated = result.contributions.get(finding.id), finding.id in result.outcome.gates
    met = contribution is not None and not gated and contribution == 1
    partly = contribution is not None and 0 < contribution < 1
    mark = "–" if contribution is None else "~" if partly and not gated else _MARKS[met]
    points = points_off(criterion, contribution)
    share = penalty_words(points, contribution) if points else f"{contribution:.2f}" if partly else ""
    if criterion.is_unwanted and not share and contribution is not None:  # a mark alone would say that it holds
        share = f"{'not ' * (contribution == 1)}found"
    share = ", ".join(filter(None, (share, _answer(finding) if isinstance(criterion.answer, Levels | Choices) else "")))
    share = share and f" ({share})"
    lack = lack_of(result.rubric, criterion, finding)
    gate = "".join(f", {words}" for words in ("gate failed" if gated else "", lack) if words)
    said = _split(finding) or _why(finding, criterion) or _verdict_words(finding, contribution, criterion)
    return f"{mark} {shorten(criterion.text, 200)}{share}{gate}: {said}"


def _split(finding: Finding) -> str:
    """Return what the judges say who disagree: the least and the most, how many of all say so, and a reason of each."""
    by_score: dict[float, list[Scored]] = {}
    for vote in finding.votes:
        if isinstance(vote, Scored):
            by_score.setdefault(vote.score, []).append(vote)
    told = []
    for end in sorted({min(by_score), max(by_score)}) if len(by_score) > 1 else ():
        first = by_score[end][0]
        verdict = _answer(first) if isinstance(first.value, bool | str) or first.level else f"{end:.2f}"
        count = f"{len(by_score[end])} of {len(finding.votes)}"
        told.append(f"{count} say {verdict}: {_reason(first) or 'no reason given'}")
    return "; ".join(told)


def explanation(result: Ungraded) -> str:
    """Describe what could not be judged, why, and what the score could have been."""
    low, high = result.bounds
    missing = [f for f in result.findings if isinstance(f, Unjudged)]
    lines = _failures_of(missing) or [str(failure) for failure in dict.fromkeys(result.failures)]
    lines = lines or ["of every criterion that applies, the judge said that it cannot tell"]
    head = f"not graded: the score could be {low:.3f} to {high:.3f} ({result.coverage:.0%} of the weight was judged)"
    rest = [f"  and {len(lines) - _MOST} more"] if len(lines) > _MOST else []
    answered = sum(vote.outcome.score is not None for vote in result.votes)
    if 0 < answered < len(result.votes) and isinstance(result.judge, Jury | Panel):
        name = type(result.judge).__name__
        given = f"{answered} of {len(result.votes)} votes were given"
        rest.append(f"  {given}; {name}(..., quorum={answered}) grades by these")
    return visible("\n".join([head, *(f"  {line}" for line in lines[:_MOST]), *rest]))[0]


def _failures_of(missing: Sequence[Unjudged]) -> list[str]:
    """Return a line for each failure; one that several criteria share is told once, with their number and ids."""
    groups: dict[object, list[Unjudged]] = {}
    for finding in missing:
        alike = evolve(finding.failure, criterion="", usage=Usage())
        groups.setdefault((alike, finding.text), []).append(finding)
    lines = []
    for first, *others in groups.values():
        if others:
            ids = shorten(", ".join(finding.id for finding in (first, *others)), 120)
            lines.append(f"{1 + len(others)} criteria ({ids}), {_failure_line(first.failure, first.text, '')}")
        else:
            lines.append(_failure_line(first.failure, first.text, first.failure.criterion or first.id))
    return lines


def _failure_line(failure: Failure, text: str, criterion: str) -> str:
    shown = str(evolve(failure, criterion=criterion))
    if '"nonce"' in shown and text.lstrip().startswith("{") and '"nonce"' not in text:
        shown += "; a model that never returns it is asked without, less safely, by Judge(..., sealed=False)"
    return f"{shown}; it said: {shorten(text, 120)!r}" if text else shown


def _verdict_words(finding: Finding, contribution: float | None, criterion: Criterion | None = None) -> str:
    match finding:
        case NotApplicable():
            return "not applicable"
        case Abstained():
            return "cannot tell"
        case Unjudged():
            return f"unjudged ({finding.failure.kind})"
        case Scored(value=value):
            said = "" if value is None else f" ({_answer(finding)})"
            number = "" if contribution is None else f"{contribution:.2f}"
            if criterion is not None and (points := points_off(criterion, contribution)) is not None:
                number, said = penalty_words(points, contribution), ""
            return f"{number}{said}"
        case never:
            assert_never(never)


def _answer(finding: Finding) -> str:
    """Return the answer itself, of a level with its words: `yes`, `0.8`, `warm`, `2: a topic, no thesis`."""
    said = getattr(finding, "value", None)
    said = {True: "yes", False: "no"}[said] if isinstance(said, bool) else "" if said is None else f"{said}"
    return shorten(": ".join(filter(None, (said, getattr(finding, "level", "")))), 200)


def _reason(finding: Finding, criterion: Criterion | None = None) -> str:
    text = finding.failure.message if isinstance(finding, Unjudged) else finding.reason
    text = text if criterion is None or isinstance(finding, Unjudged) else reason_of(criterion, finding)
    return shorten(text, 300)


def _why(finding: Finding, criterion: Criterion | None = None) -> str:
    """Return the reason, after the questions of a tree that were asked, with their answers."""
    walk = walk_of(finding.path) if isinstance(finding, Scored) else ""
    return shorten(": ".join(filter(None, (walk, _reason(finding, criterion)))), 300)


def _quotes(finding: Finding) -> str:
    evidence = finding.evidence if isinstance(finding, Scored) else ()
    return " ".join(f"“{shorten(e.text, 120)}”{'' if e.verified else ' (not found)'}" for e in evidence)


_ADVICE = {"guard": "Must not hold", "penalty": "Should not hold, takes off up to {:g}"}
