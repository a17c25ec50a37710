"""
Drift: has the judge changed since a baseline was saved, or have people?

Candidates that are in both are compared with themselves, which shows small changes; others only on average. The
p-values are corrected for their number (Holm), so that an unchanged judge is called changed as rarely as was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from attrs import field, frozen
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from rubric import DefinitionError
from rubric.embed import NoTruth, Presented, Table, fields, replacing
from rubric.formats.yaml import to_yaml
from rubric.trust.inference import Codes, Contrast, compact, holm, paired, unpaired
from rubric.trust.ratings import Ratings, items_of

_ENOUGH = 10
"""Candidates in both from which they are compared with themselves."""

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
        """Write it to *path* as YAML, below the *figures* that people read."""
        data = {**figures, "judge": self.judge, "digest": self.digest, "items": self.items, "groups": self.groups}
        with replacing(fspath(path)) as file:
            file.write(to_yaml(_plain(data)))


@frozen
class Change(NoTruth):
    """
    One figure then and now.

    Args:
        criterion: The id; empty for the whole.
        what: `the judge`, `people`, or `distance`: how far the judge is from people.
        before: Its mean then.
        now: Its mean now.
        interval: Where the true change lies, with 95 % confidence.
        p: The probability of such a change if there is none, after Holm's correction.
        candidates: How many were compared with themselves; None where they are others.
    """

    _truth = ".p"

    criterion: str
    what: str
    before: float
    now: float
    interval: tuple[float, float]
    p: float
    candidates: int | None


@frozen(repr=False)
class Drift(Presented):
    """
    What `agreement(...).against(saved)` returns.

    Args:
        changes: Each figure then and now.
        risk: How often an unchanged judge is called changed.
        notes: What is different by name: the model, the rubric.
    """

    _truth = ".changed"

    changes: tuple[Change, ...]
    risk: float
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[Change, ...]:
        """The changes that chance does not explain."""
        return tuple(change for change in self.changes if change.p <= self.risk)

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
            return f"No change is shown in {len(self.changes)} figures."
        lead = min(self.shown, key=lambda change: change.p)
        name = f" on {lead.criterion}" if lead.criterion else ""
        what = {"distance": "The judge's distance from people"}.get(lead.what, lead.what.capitalize())
        verb = "have" if lead.what == "people" else "has"
        return f"{what} {verb} changed{name}: from {lead.before:.3f} to {lead.now:.3f}."

    def remarks(self) -> list[str]:
        """What is different by name."""
        return list(self.notes)

    def tables(self) -> list[Table]:
        """Each figure in a row."""
        head = ("criterion", "what", "then", "now", "change", "p (Holm)", "same candidates")
        rows: list[tuple[object, ...]] = [
            (
                c.criterion or "the whole",
                c.what,
                c.before,
                c.now,
                f"{c.interval[0]:+.3f} to {c.interval[1]:+.3f}",
                c.p,
                "–" if c.candidates is None else c.candidates,
            )
            for c in self.changes
        ]
        return [("", head, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        return {**super().to_dict(), "changed": self.changed, "exit_code": self.exit_code}


def drift(now: Baseline, saved: Baseline | str | PathLike[str], risk: float = 0.05) -> Drift:
    """
    Return how *now* differs from what was *saved*.

    Raises:
        DefinitionError: The file is no baseline, or no criterion is in both.
    """
    fields.check_number("risk", risk, 1e-6, 0.5)
    before = saved if isinstance(saved, Baseline) else Baseline.of(read(saved))
    mine, theirs = now.items, before.items
    found: list[tuple[str, str, float, float, Contrast, int | None]] = []
    for criterion in mine:
        if criterion not in theirs:
            continue
        for what, read_one in _FIGURES:
            a, b = _values(mine[criterion], read_one), _values(theirs[criterion], read_one)
            both = [name for name in a if name in b]
            if len(both) >= _ENOUGH:
                x, z = (np.array([side[name] for name in both]) for side in (a, b))
                contrast, count = paired(x - z, now.groups_of(both)), len(both)
            else:
                x, z = np.array([*a.values()]), np.array([*b.values()])
                among = now.groups_of([*a]), before.groups_of([*b])
                contrast, count = (unpaired(x, z, *among) if min(len(x), len(z)) > 1 else None), None
            if contrast is not None:
                found.append((criterion, what, float(z.mean()), float(x.mean()), contrast, count))
    if not found:
        raise DefinitionError("saved", "no criterion is in both, so nothing can be compared")
    adjusted = holm([one[4].p for one in found])
    changes = [
        Change(criterion, what, then, after, contrast.interval, p, count)
        for (criterion, what, then, after, contrast, count), p in zip(found, adjusted, strict=True)
    ]
    notes = []
    for name, was, is_now in (("judge", before.judge, now.judge), ("rubric", before.digest, now.digest)):
        if was != is_now:
            notes.append(f"The {name} is another: {was} then, {is_now} now.")
    return Drift(tuple(changes), risk, tuple(notes))


def _off(judge: float | None, people: float | None) -> float | None:
    return None if judge is None or people is None else abs(judge - people)


_FIGURES = (
    ("the judge", lambda judge, _: judge),
    ("people", lambda _, people: people),
    ("distance", _off),
)


def _values(items: Pairs, read_one: Any) -> dict[str, float]:
    found = ((name, read_one(*said)) for name, said in items.items())
    return {name: float(value) for name, value in found if value is not None}


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
        raise DefinitionError(
            str(file), f"expected a saved {wanted}, got {found or type(data).__name__}; write one with .dump(path)"
        )
    return dict(data)


def _plain(value: Any) -> Any:
    """Return *value* as YAML holds it: lists for tuples, plain numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value
