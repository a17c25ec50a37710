"""
Drift: has the judge changed since a baseline was saved, or have people?

Candidates that are in both are compared with themselves, which shows small changes; others only on average. The
p-values are corrected for their number (Holm), so that an unchanged judge is called changed as rarely as was asked.
Where the labels are the same, people are not compared; where all is graded, neither is the share that is not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from operator import methodcaller
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rubric import DefinitionError
from rubric.embed import NoTruth, Presented, Table, fields, replacing
from rubric.formats.yaml import to_yaml
from rubric.trust.assumptions import beside_holm, sentences
from rubric.trust.differences import CriterionDifference
from rubric.trust.inference import Codes, Floats, compact, holm, paired_contrast, unpaired_contrast
from rubric.trust.ratings import Ratings, items_of

_ENOUGH = 10
"""Candidates in both from which they are compared with themselves."""

ENDINGS = (".yaml", ".yml", ".json")
"""Of the files that hold what is compared with."""

_STORED = (
    "These results took 0 calls: replies from a store are those of the judge of then, and no change can show in them; "
    "grade without a store, or with store=Store(path, mode='refresh')."
)
_UNGRADED = "the share left ungraded"

Pairs = dict[str, list[float | None]]
"""What the judge and people said of each candidate, by its name."""


@frozen(eq=False)
class Baseline(NoTruth):
    """
    What a judge and people said, to compare later runs with.

    Args:
        judge: The judge's name.
        digest: The rubric's.
        items: By criterion and by the name of a candidate, what the judge said (None without a verdict), and people.
        groups: The number of the group of each candidate; empty where there are no groups.
    """

    _truth = ".items"

    judge: str
    digest: str
    items: Mapping[str, Pairs]
    groups: Mapping[str, int] = field(factory=dict)

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Baseline:
        """Return the baseline in what `read` returned."""
        return cls(str(data["judge"]), str(data["digest"]), data["items"], data.get("groups") or {})

    @classmethod
    def of_ratings(cls, judge: str, digest: str, ratings: Sequence[Ratings]) -> Baseline:
        """Return what the *judge* and people said of all that is labelled."""
        items, groups = {}, dict[str, int]()
        for one in ratings:
            named = items_of(one)
            items[one.criterion] = {name: said for name, said, _ in named}
            groups |= {name: group for name, _, group in named} if one.grouped else {}
        return cls(judge, digest, items, groups)

    def groups_of(self, names: Sequence[str]) -> Codes | None:
        """Return the number of the group of each of the candidates *names*; None where there are no groups."""
        if not self.groups:
            return None
        places = (self.groups.get(name, -1 - n) for n, name in enumerate(names))  # one without a group is its own
        return compact(np.array([*places], dtype=np.intp))

    def dump(self, path: str | PathLike[str], figures: Mapping[str, Any]) -> None:
        """Write it to *path* as YAML or JSON, by its ending, below the *figures* that people read."""
        file, named = fields.as_path("path", path), figures["kind"]
        if (ending := file.suffix.lower()) not in ENDINGS:
            pages = {".md": f"{named}._repr_markdown_()", ".html": f"{named}._repr_html_()"}
            shown = pages.get(ending, f"str({named})")
            cure = f"write {named}.dump({str(file.with_suffix('.yaml'))!r})"
            page = f"; for people, write from pathlib import Path; Path({str(file)!r}).write_text({shown}, 'utf-8')"
            why = f"it is data, to compare with, and ends in {', '.join(ENDINGS)}"
            raise DefinitionError("path", f"{why}; {cure}{page}")
        data = {**figures, "judge": self.judge, "digest": self.digest, "items": self.items, "groups": self.groups}
        with replacing(file) as out:
            plain = json.loads(json.dumps(data, default=methodcaller("item")))  # numpy's numbers as plain ones
            out.write(json.dumps(plain, indent=1) if ending == ".json" else to_yaml(plain))


@frozen(repr=False)
class Drift(Presented):
    """
    What `agreement(...).against(saved)` returns.

    Args:
        changes: Each figure then (`old`) and now (`new`); `n` is 0 where the candidates are others.
        risk: How often an unchanged judge is called changed.
        notes: What is different by name: the model, the rubric.
        right: How often the judge says what people say, over all criteria with verdicts together, on the candidates
            and the labels that are in both: which of two judges is better is one question, so its p is as it is. None
            without such verdicts on ten candidates.
    """

    _truth = ".changed"

    changes: tuple[CriterionDifference, ...]
    risk: float
    notes: tuple[str, ...] = ()
    right: CriterionDifference | None = None

    @property
    def shown(self) -> tuple[CriterionDifference, ...]:
        """The changes that chance does not explain."""
        return tuple(change for change in self.changes if change.adjusted <= self.risk)

    @property
    def changed(self) -> bool:
        """True if there is one."""
        return bool(self.shown)

    @property
    def exit_code(self) -> int:
        """0: no change is shown; 1: one is."""
        return int(self.changed)

    @property
    def sentence(self) -> str:
        """A description of the main figure."""
        if not self.changed:
            apart = [c for c in self.changes if not c.interval[0] <= 0 <= c.interval[1]]
            alone = (f"{c.id} moved by {c.row('')[4]} ({c.row('')[5]}, p {c.adjusted:.3f} corrected)" for c in apart)
            said = f"No change is shown in {len(self.changes)} figures, corrected for their number"
            return (f"{said}; alone, {', '.join(alone)}." if apart else f"{said}.") + self._of_right
        lead = min(self.shown, key=lambda change: change.adjusted)
        verb = "have" if lead.id.startswith("people") else "has"
        return (
            f"{lead.id[0].upper()}{lead.id[1:]} {verb} changed: from {lead.old:.3f} to {lead.new:.3f}.{self._of_right}"
        )

    @property
    def _of_right(self) -> str:
        """A sentence on the one test of which is right more often; empty where it shows nothing."""
        if (one := self.right) is None or one.adjusted > self.risk:
            return ""
        how = "more" if one.difference > 0 else "less"
        return (
            f" By one test, the judge is right {how} often now: {one.old:.3f} then, {one.new:.3f} now (p {one.p:.3f})."
        )

    def remarks(self) -> list[str]:
        """What is different by name."""
        return list(self.notes)

    def tables(self) -> list[Table]:
        """Each figure in a row."""
        head = ("figure", "then", "now", "change", "p (Holm)", "same candidates")

        def row(c: CriterionDifference) -> tuple[object, ...]:
            return c.id, c.old, c.new, f"{c.interval[0]:+.3f} to {c.interval[1]:+.3f}", c.adjusted, c.n or "–"

        alone = (*head[:4], "p", head[5])
        right = [] if self.right is None else [("Which is right more often: one test", alone, [row(self.right)])]
        return [("", head, [*map(row, self.changes)]), *right]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        return {**super().to_dict(), "changed": self.changed, "exit_code": self.exit_code}


def drift(now: Baseline, saved: Baseline | str | PathLike[str], risk: float = 0.05, calls: int | None = None) -> Drift:
    """
    Return how *now* differs from what was *saved*; the judge was asked *calls* times for it, if that is known.

    Raises:
        DefinitionError: The file is not a baseline, or no criterion is in both.
    """
    fields.check_number("risk", risk, 1e-6, 0.5)
    before = saved if isinstance(saved, Baseline) else Baseline.of(read(saved))
    mine, theirs = now.items, before.items
    found: list[CriterionDifference] = []
    for criterion in mine:
        if criterion not in theirs:
            continue
        for what in ("the judge", "people", "the judge's distance from people", _UNGRADED):
            a, b = _values(mine[criterion], what), _values(theirs[criterion], what)
            both = [name for name in a if name in b]
            if (what == "people" and a == b) or (what == _UNGRADED and not any((*a.values(), *b.values()))):
                continue  # they cannot have changed, and would weigh in the correction
            if len(both) >= _ENOUGH:
                x, z = (np.array([side[name] for name in both]) for side in (a, b))
                one, count = paired_contrast(x - z, now.groups_of(both)), len(both)
            else:
                x, z = np.array([*a.values()]), np.array([*b.values()])
                among = now.groups_of([*a]), before.groups_of([*b])
                one, count = (unpaired_contrast(x, z, *among) if min(len(x), len(z)) > 1 else None), 0
            if one is not None:
                named = f"{what} on {criterion}" if criterion else what
                made = CriterionDifference.of(named, count, x, z, one)
                found.append(_moved(made, both, z - x if "distance" in what else x - z) if count else made)
    if not found:
        why = "fewer than two candidates, or groups, are labelled" if mine.keys() & theirs.keys() else "no criterion is"
        raise DefinitionError("saved", f"{why} in both, so nothing can be compared")
    changes = [evolve(one, adjusted=p) for one, p in zip(found, holm([one.p for one in found]), strict=True)]
    names = (("judge", before.judge, now.judge), ("rubric", before.digest, now.digest))
    notes = [f"The {name} is another: {was} then, {is_now} now." for name, was, is_now in names if was != is_now]
    notes += [_STORED] if calls == 0 else []
    notes += sentences(beside_holm([(one.id, one.interval, one.adjusted) for one in changes], risk))
    return Drift(tuple(changes), risk, tuple(notes), _right(now, before))


def _right(now: Baseline, before: Baseline) -> CriterionDifference | None:
    """Return how much more often the judge is right *now* than *before*, over all criteria with verdicts together."""
    both = [name for name in now.items if name in before.items]
    criteria, rows = set[str](), list[tuple[str, float, float]]()
    for criterion in [name for name in both if name] or both:  # the whole follows from the criteria
        mine, theirs = now.items[criterion], before.items[criterion]
        pairs = [(name, mine[name], theirs[name]) for name in mine if name in theirs]
        pairs = [pair for pair in pairs if pair[1][1] == pair[2][1] and None not in (*pair[1], *pair[2])]
        if pairs and all(value in (0, 1) for _, new, old in pairs for value in (*new, *old)):
            criteria.add(criterion)
            rows += [(name, float(a == b), float(c == d)) for name, (a, b), (c, d) in pairs]
    names, x, z = zip(*rows, strict=True) if rows else ((), (), ())
    if len({*names}) < _ENOUGH:
        return None
    groups = now.groups_of(names)  # verdicts on one candidate are not independent
    groups = np.unique(names, return_inverse=True)[1].astype(np.intp) if groups is None else groups
    one = paired_contrast(np.array(x) - np.array(z), groups)
    named = f"right, over {len(criteria)} criteria" if len(criteria) > 1 else "right"
    if one is None:
        return None
    found = CriterionDifference.of(named, len({*names}), np.array(x), np.array(z), one)
    return _moved(found, names, np.array(x) - np.array(z))


def _moved(found: CriterionDifference, names: Sequence[str], gains: Floats) -> CriterionDifference:
    """Return *found* with the candidates, of these *names*, that are worse and better, by what each *gains*."""
    worse, better = (tuple(dict.fromkeys(np.array(names)[rows].tolist())) for rows in (gains < 0, gains > 0))
    return evolve(found, worse=worse, better=better)


def _values(items: Pairs, figure: str) -> dict[str, float]:
    """Return one *figure* of each candidate that has it."""
    if figure == _UNGRADED:
        return {name: float(said[0] is None) for name, said in items.items()}
    if figure in ("the judge", "people"):
        sides = {name: said[figure == "people"] for name, said in items.items()}
        return {name: float(value) for name, value in sides.items() if value is not None}
    return {name: abs(a - b) for name, (a, b) in items.items() if a is not None and b is not None}


# -- files -------------------------------------------------------------------------------------------------


def read(path: str | PathLike[str], kind: str = "") -> dict[str, Any]:
    """
    Return what `dump` wrote to *path*.

    Raises:
        DefinitionError: The file holds something else.
    """
    file = Path(path)
    wanted = kind or "agreement or calibration"
    try:
        data = YAML(typ="safe", pure=True).load(file.read_text("utf-8"))
    except OSError as problem:
        raise DefinitionError(str(file), f"cannot be read: {problem.strerror}") from None
    except (YAMLError, ValueError, RecursionError) as problem:
        raise DefinitionError(str(file), f"expected a saved {wanted}, got no YAML: {str(problem)[:200]}") from None
    found = data.get("kind") if isinstance(data, dict) else None
    if found not in ((kind,) if kind else ("agreement", "calibration")) or not isinstance(data.get("items"), dict):
        what = found or type(data).__name__
        raise DefinitionError(str(file), f"expected a saved {wanted}, got {what}; write one with .dump(path)")
    return dict(data)
