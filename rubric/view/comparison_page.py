"""
Two runs over the same candidates as one page: what broke, what was fixed, each criterion, and both texts and verdicts.

The same page shows two judges on one set of texts. Candidates pair by name, as `rubric.trust.compare` pairs them, and
the intervals are those of the same paired mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rubric import DefinitionError, diff
from rubric.embed import counted, paired_mean, shorten
from rubric.results import Row
from rubric.view import html
from rubric.view.page import page
from rubric.view.run_data import NOBODY, RunData

_CHANGES = {
    ("passed", "failed"): ("broken", "first alone passes"),
    ("failed", "passed"): ("fixed", "second alone passes"),
    ("failed", "failed"): ("still failing", "both fail"),
    ("passed", "passed"): ("still passing", "both pass"),
}
"""What became of a verdict: of two runs, and of two judges of the same texts."""

_MOST_CHANGES = 5


def comparison_page(new: Iterable[Row], old: Iterable[Row], title: str = "", people: Mapping[str, Any] = NOBODY) -> str:
    """Return two runs as a page, with what *people* say of each row; refuse runs that share no candidate."""
    before, after = by_name(old), by_name(new)
    both = [name for name in after if name in before]
    if not both:
        said = f"{next(iter(after), ('nothing', 0))[0]!r}, ... and {next(iter(before), ('nothing', 0))[0]!r}, ..."
        cure = "give both runs the same keys, Candidate(..., key=...), or report each by itself"
        raise DefinitionError("against", f"no candidate is in both runs: {said}; {cure}")
    pairs = [(after[name], before[name]) for name in both]
    judges = _judges(after.values()), _judges(before.values())
    is_judges = judges[0] != judges[1] and all(a.output == b.output for a, b in pairs)
    data, rows = RunData(people=people), list[dict[str, Any]]()
    for name, row in after.items():
        if (was := before.get(name)) is None:
            rows.append(data.of(row) | {"change": "new alone"})
        else:
            change = _CHANGES.get((was.status, row.status), ("other", "other"))[is_judges]
            rows.append(data.of(row) | {"change": change, "before": data.of(was)})
    rows += [data.of(row) | {"change": "old alone"} for name, row in before.items() if name not in after]
    counts = Counter(row["change"] for row in rows)
    bar = _bar(counts)
    names = [f"first ({judges[1]})", f"second ({judges[0]})"] if is_judges else ["old", "new"]
    shifts = _shifts(pairs)
    most = max((abs(end) for each in shifts if each["new"] != each["old"] for end in each["interval"]), default=0) or 1
    return page(
        title or pairs[0][0].rubric or "rubric",
        _headline(counts, judges, is_judges=is_judges),
        {"criteria": data.criteria, "rows": rows, "names": names, **({"judges": True} if is_judges else {})},
        passed=not bar["failed"],
        counts=bar,
        figures=[("pairs", f"{len(pairs):,}")],
        remarks=[html.notice(words) for words in _remarks(pairs, judges, is_judges=is_judges)],
        above=[html.render("differences.html", shifts=shifts, most=most, is_judges=is_judges)],
        failed="Where they disagree, first" if is_judges else "What changed, first",
    )


def _bar(counts: Counter[str]) -> dict[str, int]:
    """Return how much of the bar at the top is for the better, for the worse (or judges apart), and unchanged."""
    fixed, broken = counts["fixed"], counts["broken"] + counts["first alone passes"] + counts["second alone passes"]
    return {"passed": fixed, "failed": broken, "rest": counts.total() - fixed - broken}


def _headline(counts: Counter[str], judges: tuple[str, str], *, is_judges: bool) -> str:
    if not is_judges:
        return f"{counts['broken']:,} broken, {counts['fixed']:,} fixed, {counts['still failing']:,} still failing"
    same = counts["both pass"] + counts["both fail"]
    split = counts["first alone passes"] + counts["second alone passes"]
    return f"{judges[1]} and {judges[0]} agree on {same:,} of {same + split:,} verdicts"


def by_name(rows: Iterable[Row]) -> dict[tuple[str, int], Row]:
    """Return the rows by name; rows of one name are numbered, and pair up in order."""
    seen, found = Counter[str](), dict[tuple[str, int], Row]()
    for row in rows:
        found[row.id, seen[row.id]] = row
        seen[row.id] += 1
    return found


def _judges(rows: Iterable[Row]) -> str:
    names = sorted({row.judge for row in rows if row.judge})
    return shorten(", ".join(names), 80)


def _remarks(pairs: Sequence[tuple[Row, Row]], judges: tuple[str, str], *, is_judges: bool) -> list[str]:
    """Return what else differs between the runs: the rubric, the judge, the texts."""
    said = []
    new, old = (
        {row.result.rubric: None for row in side if row.result is not None} for side in zip(*pairs, strict=True)
    )
    if len(new) == len(old) == 1 and (changes := [*diff(*old, *new)]):
        parts = ((change.id, change.before or "–", change.after or "–") for change in changes[:_MOST_CHANGES])
        lines = [shorten(f"{id_}: {before} → {after}", 200) for id_, before, after in parts]
        more = [f"and {len(changes) - _MOST_CHANGES} more"] if len(changes) > _MOST_CHANGES else []
        said.append("\n".join([f"The rubric is another: {counted(len(changes), 'change')}.", *lines, *more]))
    if judges[0] != judges[1] and not is_judges:
        said.append(f"The judge is another: {judges[0] or 'none'}; before, {judges[1] or 'none'}.")
    if moved := sum(a.output != b.output for a, b in pairs):
        said.append(f"{moved:,} of {len(pairs):,} texts are others than before.")
    return said


def _shifts(pairs: Sequence[tuple[Row, Row]]) -> list[dict[str, Any]]:
    """Return how far the pass rate, the score and each criterion moved over the pairs that have both."""
    values: dict[tuple[str, str], list[tuple[Row, float, float]]] = {("pass rate", ""): [], ("score", ""): []}
    for new, old in pairs:
        if new.score is not None and old.score is not None:
            values["pass rate", ""].append((new, new.status == "passed", old.status == "passed"))
            values["score", ""].append((new, new.score, old.score))
        was = {entry.id: entry.contribution for entry in old.entries}
        for entry in new.entries:
            if entry.contribution is not None and was.get(entry.id) is not None:
                values.setdefault((entry.text, entry.id), []).append((new, entry.contribution, was[entry.id] or 0.0))
    return [shift for (name, id_), each in values.items() if (shift := _shift(name, id_, each))]


def _shift(name: str, id_: str, values: Sequence[tuple[Row, float, float]]) -> dict[str, Any]:
    clusters = [row.result.cluster if row.result is not None else ("key", row.id) for row, _, _ in values]
    groups = [number if cluster is None else cluster for number, cluster in enumerate(clusters)]
    mean = paired_mean([float(new) - float(old) for _, new, old in values], groups)
    if mean is None:
        return {}
    low, high = max(mean.interval()[0], -1.0), min(mean.interval()[1], 1.0)
    n = len(values)
    old, new = sum(each[2] for each in values) / n, sum(each[1] for each in values) / n
    said = sentence_of(name, new - old, (low, high), n, is_shown=low > 0 or high < 0)
    return {"name": name, "id": id_, "pairs": n, "old": old, "new": new, "interval": (low, high), "sentence": said}


def sentence_of(name: str, difference: float, interval: tuple[float, float], pairs: int, *, is_shown: bool) -> str:
    """Return how far the figure with this *name* moved, and whether chance explains it, in a sentence."""
    said = f"{difference:+.3f} ({interval[0]:+.3f} to {interval[1]:+.3f})"
    if difference == 0:
        return f"The {name} is the same over {pairs:,} pairs: {said}."
    judged = "chance does not explain it" if is_shown else "that may be noise"
    return f"The {name} went {'up' if difference > 0 else 'down'} by {said} over {pairs:,} pairs: {judged}."
