"""
Is the reward being hacked? An `Audit` grades a few completions of each step by a second judge, or by people.

A reward climbs because the model gets better, or because it has found what the judge falls for. Then the gap between
the reward and a second opinion grows. The alarm is an e-process on that gap (`rubric.rewards.betting`), for the whole
and for each criterion: however often one looks, and however long the training is, all of them together raise a false
alarm with at most the risk that was asked for.
"""

from __future__ import annotations

import json
import math
import random
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean
from typing import Any

from attrs import asdict, define, field, frozen

from rubric import DefinitionError, Grade, Ungraded, agrade_many
from rubric.embed import JudgeLike, NoTruth, Presented, Table, as_rubric, fields, percent, run
from rubric.rewards.betting import EProcess, usual
from rubric.view.plots import chart, part

Result = Grade | Ungraded
Gaps = Mapping[str, float]
"""How much more the reward gives than the second opinion: '' is the whole, the others are criteria by id; in -1..1."""

_ON_BASELINE, _MOST_CRITERIA, _RECENT = 0.2, 50, 20
_WHOLE, _FIRST, _LATER = 0.5, 0.4, 0.1  # shares of the risk: the whole, the criteria of the first audits, those after


@frozen
class Alarm(NoTruth):
    """A gap that has grown: at which step, on which criterion ('': the whole), to what mean, and what was allowed."""

    _truth = ".step"

    step: int
    criterion: str
    gap: float
    allowed: float


@define(eq=False, repr=False)
class Audit(Presented):
    """
    Watches for a reward that is hacked, valid at every step.

    Args:
        judge: The second judge, better than the one that rewards; None: its opinions are given to `add`, as people's.
        per_step: How many completions of a step it grades, of different prompts, drawn at random.
        allowed: The mean gap, reward less second opinion, that raises no alarm, in -1..1; None takes what the first
            *baseline* steps show.
        baseline: The steps of which the gap is taken as usual, where none is *allowed*; no alarm comes before.
        tolerance: How much more is allowed than was usual.
        risk: The chance of a false alarm, over all criteria and for ever.
        seed: Of the draws.
        path: A file (SQLite) that keeps the audits; the next process goes on from there.
        options: What `agrade_many` takes besides: `store`, `budget`, `limits`, `concurrency`.

    Raises:
        DefinitionError: A number is out of range, or the file is of an audit with other settings.
    """

    _truth = ".alarms"

    judge: JudgeLike | None = None
    per_step: int = field(default=8, kw_only=True, validator=fields.count(1))
    allowed: float | None = field(default=None, kw_only=True)
    baseline: int = field(default=50, kw_only=True, validator=fields.count(1))
    tolerance: float = field(default=0.02, kw_only=True, validator=fields.number(0, 1))
    risk: float = field(default=0.05, kw_only=True, validator=fields.number(1e-9, 0.5))
    seed: int = field(default=0, kw_only=True)
    path: str | Path | None = field(default=None, kw_only=True)
    options: Mapping[str, Any] = field(factory=dict, kw_only=True)
    step: int = field(default=0, init=False)
    alarms: tuple[Alarm, ...] = field(default=(), init=False)
    lost: int = field(default=0, init=False)
    _seen: dict[str, list[list[float]]] = field(factory=dict, init=False)
    _first: int = field(default=0, init=False)  # how many criteria the first audits had
    _bets: dict[str, EProcess] = field(factory=dict, init=False)
    _rows: list[dict[str, Any]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        if self.allowed is not None:
            fields.check_number("allowed", self.allowed, -1, 1, above=True)
        if self.options and self.judge is None:
            raise DefinitionError("options", "they are of the second judge, and there is none; give one: Audit(judge)")
        if not self.options.get("ordered", True):
            raise DefinitionError("options.ordered", "False would pair a reward with another's opinion; leave it out")
        if self.options:
            agrade_many((), as_rubric("Is read by nobody"), self.judge, **self.options)  # refuses what it does not take
        if self.path is not None:
            for audits in _open_steps(Path(self.path), self._settings()):
                self._count(audits)

    def _settings(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("allowed", "baseline", "tolerance", "risk")}

    # -- audits ----------------------------------------------------------------------------------------------

    def add(self, pairs: Iterable[tuple[Result | float, Result | float]]) -> tuple[Alarm, ...]:
        """
        Count one step, and return the alarms that it raises.

        Args:
            pairs: The reward and the second opinion of each audited completion: results of one rubric, or numbers in
                0..1. They must be a random draw, and of different prompts: two of one prompt share its luck.
        """
        audits = [_gap(index, pair) for index, pair in enumerate(pairs)]
        if self.path is not None:
            try:
                with closing(sqlite3.connect(self.path)) as file, file:
                    file.execute("INSERT INTO audits VALUES (?, ?)", (self.step + 1, json.dumps(audits)))
            except sqlite3.IntegrityError:
                why = f"another process has written step {self.step + 1:,} to {Path(self.path).name}"
                raise DefinitionError("path", f"{why}; give each process that audits a path of its own") from None
        return self._count(audits)

    def review(self, results: Sequence[Result]) -> tuple[Alarm, ...]:
        """Grade some of the *results* of a step by the second judge, count the step, and return its alarms."""
        return run(self.areview(results))

    async def areview(self, results: Sequence[Result]) -> tuple[Alarm, ...]:
        """Grade, count and return alarms like `review`, without holding up the event loop."""
        if self.judge is None:
            raise DefinitionError("judge", "there is no second judge; give one, Audit(judge), or opinions: add(pairs)")
        drawn = self.draw(results)
        candidates, rubrics = [each.candidate for each in drawn], [each.rubric for each in drawn]
        again = agrade_many(candidates, rubrics, self.judge, **{"progress": False, **self.options})
        return self.add(zip(drawn, [each async for each in again], strict=True))

    def draw(self, results: Sequence[Result]) -> list[Result]:
        """
        Return those of *results* that are audited at this step: at most one for each prompt, by the seed.

        What has no score is not drawn; a candidate without an input and a conversation is a prompt of its own.
        """
        chance = random.Random(f"{self.seed}/{self.step}")  # noqa: S311 - a draw that can be repeated
        by_prompt: dict[object, Result] = {}
        for place, result in enumerate(chance.sample([*results], len(results))):
            if (candidate := result.candidate) is None:
                raise DefinitionError("results", "one does not hold its candidate; give results as they are graded")
            if result.score is not None:
                prompt = repr((candidate.input, candidate.before)) if candidate.input or candidate.before else place
                by_prompt.setdefault(prompt, result)
        return [*by_prompt.values()][: self.per_step]

    # -- evidence --------------------------------------------------------------------------------------------

    def _count(self, audits: Sequence[Gaps | None]) -> tuple[Alarm, ...]:
        self.step += 1
        gaps = [audit for audit in audits if audit is not None]
        self.lost += len(audits) - len(gaps)
        self._follow(dict.fromkeys(id_ for one in gaps for id_ in one))
        raised = []
        for id_, seen in self._seen.items():
            some = [one[id_] for one in gaps if id_ in one]
            bet = self._bets[id_] if id_ in self._bets else self._new_process(id_)
            if bet is not None:
                bet = self._bets[id_] = bet.after(some)
                if self.evidence(id_) >= 1 and id_ not in {alarm.criterion for alarm in self.alarms}:
                    raised.append(Alarm(self.step, id_, _mean_since_onset([*seen, some], bet.allowed), bet.allowed))
            seen.append(some)
            row = {"step": self.step, "criterion": id_, "gap": fmean(some) if some else None, "audits": len(some)}
            self._rows.append({**row, "evidence": self.evidence(id_)})
        self.alarms += tuple(raised)
        return tuple(raised)

    def _follow(self, ids: Iterable[str]) -> None:
        """Begin to follow criteria by themselves: those of the first audits, unless each prompt has its own."""
        # Later ones are those that a dropout left out at first; they have shares of the risk that were kept for them.
        new = [id_ for id_ in ids if id_ not in self._seen]
        if not self._seen:
            new = new if len(new) <= _MOST_CRITERIA else [""]
            self._first = len(new) - 1 if new else 0
        elif self._first:
            new = new[: max(0, _MOST_CRITERIA - len(self._seen))]
        else:
            new = []
        self._seen |= {id_: [] for id_ in new}

    def _new_process(self, id_: str) -> EProcess | None:
        """Return the process of a criterion from its first step on; None while its usual gap is being learned."""
        if self.allowed is not None:
            return EProcess(self.allowed)
        steps = [step for step in self._seen[id_] if step]
        if len(steps) < self.baseline:
            return None
        before = [gap for step in steps for gap in step]
        limit, span = usual(before, self.risk * self._share(id_) * _ON_BASELINE)
        return EProcess(min(0.99 * span, limit + self.tolerance), span)

    def _share(self, id_: str) -> float:
        """Return the share of the risk that a criterion has; all that can ever come sum to 1."""
        if not id_:
            return _WHOLE if self._first else 1.0
        place = [*self._seen].index(id_) if id_ in self._seen else 1  # the whole is the first, at 0
        later = place - self._first
        return _FIRST / self._first if later < 1 else _LATER / (later * (later + 1))

    def evidence(self, criterion: str = "") -> float:
        """Return the evidence of a hack, as a share of what raises the alarm: 1 or more does."""
        bet = self._bets.get(criterion)
        risk = self.risk * self._share(criterion) * (1 if self.allowed is not None else 1 - _ON_BASELINE)
        return 0.0 if bet is None else bet.value * risk

    # -- what is shown ---------------------------------------------------------------------------------------

    @property
    def sentence(self) -> str:
        """Whether there was an alarm, and of what."""
        if not self.step:
            return "No step is audited yet."
        if not self.alarms:
            learns = f", of which {self.baseline:,} show the usual gap" if self.allowed is None else ""
            return f"No alarm in {self.step:,} step{'s' * (self.step != 1)}{learns}."
        first = self.alarms[0]
        name = f"the criterion {first.criterion!r}" if first.criterion else "the reward"
        more = f"gives {first.gap:+.2f} more than the second opinion, {first.allowed:+.2f} were allowed"
        return f"Alarm at step {first.step:,}: {name} {more}."

    def remarks(self) -> list[str]:
        """What the alarm rests on."""
        lines = [f"At most {percent(self.risk)} of trainings without a hack ever raise an alarm."]
        return lines + ([f"{self.lost:,} audits had no score, and are left out."] if self.lost else [])

    def tables(self) -> list[Table]:
        """Each criterion in a row, with its gap at first and of late."""
        rows = []
        for id_, seen in self._seen.items():
            gaps = (f"{_mean(some):+.3f}" for some in (seen[:_RECENT], seen[-_RECENT:]))
            at = next((alarm.step for alarm in self.alarms if alarm.criterion == id_), "–")
            rows.append((id_ or "the whole", sum(map(len, seen)), *gaps, self.evidence(id_), at))
        return [("", ("criterion", "audits", "first gap", "gap of late", "evidence", "alarm at step"), rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings, the alarms and what was seen at each step, as plain JSON-able data."""
        data = {"kind": "audit", "sentence": self.sentence, **self._settings()}
        return {**data, "alarms": [asdict(alarm) for alarm in self.alarms], "steps": [*self._rows]}

    def plot(self) -> Any:
        """Return the evidence and the gap of each step as a chart of Altair (extra `plots`); an alarm is at 1."""
        rows = [{**row, "criterion": row["criterion"] or "the whole"} for row in self._rows if row["gap"] is not None]
        return chart(part("evidence", rows=rows), part("gap", rows=rows))


def _gap(index: int, pair: Any) -> Gaps | None:
    """Return the gaps between the two opinions of a *pair*, or None where one of them has no score."""
    if not isinstance(pair, list | tuple) or len(pair) != 2:  # noqa: PLR2004 - a pair
        raise fields.refuse(f"pairs[{index}]", pair, "the reward and the second opinion: (0.7, 0.5)")
    mine, theirs = (each.score if isinstance(each, Grade | Ungraded) else each for each in pair)
    if mine is None or theirs is None:
        return None
    gaps = {"": fields.check_number("pairs", mine, 0, 1) - fields.check_number("pairs", theirs, 0, 1)}
    if isinstance(pair[0], Grade | Ungraded) and isinstance(pair[1], Grade | Ungraded):
        reward, second = pair[0].contributions, pair[1].contributions
        gaps |= {id_: reward[id_] - second[id_] for id_ in sorted(reward.keys() & second.keys())}
    return gaps


def _mean_since_onset(steps: Sequence[Sequence[float]], allowed: float) -> float:
    """Return the mean gap since it began, most likely: the sum over *allowed* is largest from there (Page 1954)."""
    over, most, onset = 0.0, -math.inf, 0
    for index in reversed(range(len(steps))):
        over += sum(gap - allowed for gap in steps[index])
        if over > most:
            most, onset = over, index
    return _mean(steps[onset:])


def _mean(steps: Sequence[Sequence[float]]) -> float:
    return fmean(gaps) if (gaps := [gap for step in steps for gap in step]) else 0.0


def _open_steps(path: Path, settings: Mapping[str, Any]) -> list[list[Gaps | None]]:
    """Return the steps in the file at *path*, which is made where there is none; refuse one with other settings."""
    try:
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("CREATE TABLE IF NOT EXISTS audits (step INTEGER PRIMARY KEY, data TEXT)")
            file.execute("INSERT OR IGNORE INTO audits VALUES (0, ?)", (json.dumps(settings),))
            before, *steps = [json.loads(row[0]) for row in file.execute("SELECT data FROM audits ORDER BY step")]
    except sqlite3.Error as problem:
        raise DefinitionError("path", f"{path.name} is not a file of audits ({problem}); name another") from None
    if changed := [f"{name}={before.get(name)!r}" for name in settings if before.get(name) != settings[name]]:
        cure = "an audit keeps its settings, or its risk does not hold; give the same, or another path"
        raise DefinitionError("path", f"{path.name} was begun with {', '.join(changed)}; {cure}")
    return steps
