"""
How far can a judge be moved? `probe` grades candidates before and after attacks that should move no verdict.

An attack that is aimed at a criterion is graded by that criterion alone, whose request is the same byte for byte where
a judge is asked one criterion a call; other judges are asked all criteria, as they always are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from rubric import Candidate, Cascade, Criterion, DefinitionError, Grade, Judge, Rubric, Ungraded, grade_many, plan
from rubric.driving import Usage
from rubric.embed import TOLERANCE, Check, JudgeLike, as_rubric, fields, guided, judge_or_default, source_of
from rubric.engine import Candidates, Plan
from rubric.quality.attacks import FLOOR, Attack, attacks_of
from rubric.quality.probes import Moved, Probe, Worst, with_p
from rubric.values import AnyJudge

Result = Grade | Ungraded

_EVEN, _ROOM = 0.5, 0.25


@frozen
class _Shot:
    """One candidate under one attack (None: before all), and the criteria that it is about."""

    attack: Attack | None
    at: int
    candidate: Candidate
    rubric: Rubric
    criteria: tuple[Criterion, ...]


@guided
def probe(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    candidates: Candidates = (),
    *,
    attacks: Sequence[str | Attack] | str | None = None,
    most: float | None = None,
    **options: Any,
) -> Probe:
    """
    Find the attacks that move a judge's verdicts: twenty edits of each candidate that should move none.

    It grades every candidate once as it is and once under each attack; `plan_probe` says beforehand what that takes.
    At most 5 % of probes of a judge that no attack moves show one, over the whole table.

    Args:
        rubric: As for `grade`.
        judge: As for `grade`.
        candidates: As for `grade_many`: answers like those that will be graded, some bad and some good.
        attacks: The names of some of `rubric.quality.ATTACKS`, or attacks of your own; None makes all.
        most: The share of candidates, in 0..1, that no attack may move as it must not: decides the `exit_code`.
        options: What `grade_many` takes besides: `store`, `budget`, `limits`, `concurrency`, `progress`. What a budget
            refuses is left out, and counted.

    Raises:
        DefinitionError: There are no candidates, an attack is unknown, or code decides every criterion.
    """
    fields.check_number("most", 0.0 if most is None else most, 0, 1)
    shots, by = _prepared(rubric, judge, candidates, attacks)
    texts, rubrics = [shot.candidate for shot in shots], [shot.rubric for shot in shots]
    results = grade_many(texts, rubrics, by, **{"progress": False, **options}).collect()
    pairs = [*zip(shots, results, strict=True)]
    before = {shot.at: result for shot, result in pairs if shot.attack is None}
    readings: dict[str, list[_Reading]] = {}
    for shot, result in pairs:
        if shot.attack is not None:
            for criterion in shot.criteria:
                was, now = (each.contributions.get(criterion.id) for each in (before[shot.at], result))
                told = shot.candidate.output, result[criterion.id].reason
                readings.setdefault(criterion.id, []).append(_Reading(shot.attack, shot.at, was, now, *told))
    cells = [cell for id_, some in readings.items() for cell in _cells(id_, some)]
    idle = {attack.name: 0 for attack in attacks_of(attacks)}.keys() - {cell.attack for cell in cells}
    notes = [f"There was nothing to change for {', '.join(map(repr, sorted(idle)))}."] if idle else []
    usage = Usage.total(result.usage for result in results)
    return Probe(with_p(cells), _floor(pairs), by.name, len(before), usage, most, tuple(notes))


@guided
def plan_probe(
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    candidates: Candidates = (),
    *,
    attacks: Sequence[str | Attack] | str | None = None,
) -> Plan:
    """Return what `probe` would take, of the same arguments: calls, tokens and cost. Nothing is sent."""
    shots, by = _prepared(rubric, judge, candidates, attacks)
    return plan([shot.candidate for shot in shots], [shot.rubric for shot in shots], by)


def _prepared(rubric: Any, judge: Any, candidates: Any, attacks: Any) -> tuple[list[_Shot], AnyJudge]:
    given, by = as_rubric(rubric), judge_or_default(judge).without_early_stop()  # it would spare different votes
    texts = all_of(candidates)
    judged = tuple(criterion for criterion in given.judged if not isinstance(criterion.answer, Check))
    if not judged:
        raise DefinitionError("rubric", "code decides every criterion, and no judge can be moved; try lint(rubric)")
    is_alone = _asks_one_by_one(by)
    shots = [_Shot(None, at, candidate, given, judged) for at, candidate in enumerate(texts)]
    for attack in attacks_of(attacks):
        about = tuple(criterion for criterion in judged if attack.applies(criterion))
        parts = [(criterion,) for criterion in about] if attack.aimed else [about] if about else []
        for at, candidate in enumerate(texts):
            for part in parts:
                if (text := attack.of(candidate.output, part[0])) is not None:
                    by_rubric = _alone(given, part[0]) if attack.aimed and is_alone else given
                    shots.append(_Shot(attack, at, evolve(candidate, output=text), by_rubric, part))
    return shots, by


def all_of(candidates: Any) -> list[Candidate]:
    """Return all *candidates*, of any source that `grade_many` takes and that is not async."""
    source = source_of(candidates)
    if isinstance(source.items, AsyncIterable):
        raise fields.refuse("candidates", candidates, "an iterable that is not async, or the path of a file")
    if not (texts := [source.at(index, item).candidate for index, item in enumerate(source.items)]):
        raise DefinitionError("candidates", "there are none; give answers like those that will be graded, 60 or more")
    return texts


def _asks_one_by_one(judge: AnyJudge) -> bool:
    """True if what *judge* is asked of a criterion does not depend on the others of the rubric."""
    if isinstance(judge, Judge):
        return judge.per_call == 1
    return not isinstance(judge, Cascade) and all(map(_asks_one_by_one, judge.members))


def _alone(rubric: Rubric, criterion: Criterion) -> Rubric:
    """Return *rubric* with *criterion* alone; the same object each time, so that it is prepared once."""
    if not rubric.criteria:
        return rubric
    weight = criterion.weight or 1  # one without weight cannot grade alone
    return rubric.derive(
        ("alone", criterion.id), lambda: evolve(rubric, criteria=[evolve(criterion, weight=weight)], tests=())
    )


@frozen
class _Reading:
    """What a criterion contributes for one candidate before and after an attack; None without a verdict."""

    attack: Attack
    at: int
    was: float | None
    now: float | None
    text: str
    reason: str


def _cells(id_: str, readings: Sequence[_Reading]) -> list[Moved]:
    """
    Return what each attack does to the criterion *id_*.

    A verdict can move up where there is room: those of the other attacks are low. They do not depend on the two that
    are compared, so the sign test of these candidates alone is exact, and the judge's slips on others do not blur it.
    """
    held = [one for one in readings if one.now is not None and one.attack.kind != "loss"]
    counts, totals = Counter(one.at for one in held), dict[int, float]()
    for one in held:
        totals[one.at] = totals.get(one.at, 0.0) + (one.now or 0.0)
    cells = []
    by_attack: dict[str, list[_Reading]] = {}
    for one in readings:
        by_attack.setdefault(one.attack.name, []).append(one)
    for mine in by_attack.values():
        attack = mine[0].attack
        gains: list[tuple[float, float, _Reading]] = []
        for one in mine:
            if one.was is not None and one.now is not None:
                own, total = (1, totals[one.at] - one.now) if attack.kind != "loss" else (0, totals.get(one.at, 0.0))
                others = counts[one.at] - own
                gains.append((one.now - one.was, total / others if others else _EVEN, one))
        up, down = (sum(sign * gain > TOLERANCE for gain, _, _ in gains) for sign in (1, -1))
        tests = []
        for sign in (1, -1) if attack.kind == "same" else (1,):
            moved = [sign * gain for gain, level, _ in gains if sign * (level - _EVEN) <= _ROOM]
            tests.append((sum(each > TOLERANCE for each in moved), sum(abs(each) > TOLERANCE for each in moved)))
        worst = None
        if up:
            best = max(gains, key=lambda each: each[0])[2]
            worst = Worst(best.at, best.was or 0.0, best.now or 0.0, best.text, best.reason)
        lost = len(mine) - len(gains)
        cells.append(Moved(attack.name, attack.kind, id_, up, down, len(gains), lost, tuple(tests), worst=worst))
    return cells


def _floor(pairs: Sequence[tuple[_Shot, Result]]) -> tuple[int, int] | None:
    """Return how many different null answers pass, and how many were judged; None if they were not tried."""
    nulls = {
        (shot.candidate.output, shot.candidate.input): result
        for shot, result in pairs
        if shot.attack is not None and shot.attack.name == FLOOR
    }
    decided = [result.passed for result in nulls.values() if result.passed is not None]
    return (sum(decided), len(decided)) if nulls else None
