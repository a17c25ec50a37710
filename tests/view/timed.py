"""
Write a page of 1,000 candidates and one of two runs, with ten tasks on them: `python -m tests.view.timed FOLDER`.

Somebody who has never seen the pages does the tasks with a stopwatch; each should take 20 seconds at most. `tasks.md`
has the questions, `answers.md` what is right, found in the results and not on the page.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric import Grades
from rubric.view.page import rows_of_results
from rubric.view.run_data import alone
from tests.view.runs import run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric import Grade, Ungraded

COUNT = 1_000
PLANTED = (211, 468, 912)
"""Places, from which the next failing candidate is one of the three whose reason names a customs form."""


def earlier() -> Grades:
    """Return the run of the first page: three of its reasons name a customs form."""
    results = [*run(COUNT)]
    for start in PLANTED:
        number = next(n for n, each in enumerate(results[start:], start) if each.score is not None and not each.passed)
        findings = tuple(
            evolve(each, score=0.0, evidence=(), reason="The customs form that the question is about is not named.")
            if each.id == "cites" else each
            for each in results[number].findings
        )  # fmt: skip
        results[number] = evolve(
            evolve(results[number], findings=findings).rescore(), candidate=results[number].candidate
        )
    return Grades(results)


def later(before: Grades) -> Grades:
    """Return the second run: a third of the texts is new, and judged anew."""
    again = run(COUNT, seed=2, better=-0.2)
    return Grades(b if n % 3 == 0 else a for n, (a, b) in enumerate(zip(before, again, strict=True)))


def tasks(old: Grades, new: Grades) -> Iterator[tuple[str, str]]:
    """Yield each task with its answer."""
    rows = [*rows_of_results(old)]
    cost: Counter[str] = Counter()
    for row in rows:
        cost.update(row.entries[n].id for n in alone(row))
    (lead, count), *_ = cost.most_common(1)
    yield (
        "run.html: which criterion alone costs the most passes, and how many candidates would pass with it met?",
        (f"`{lead}`, {count}"),
    )
    yield (
        "run.html: name the three failures that have the word customs in a reason.",
        ", ".join(each.key for each in old if "customs" in str(each["cites"].reason)),
    )
    split = [each.key for each, row in zip(old, rows, strict=True) if _is_split(row)]
    yield "run.html: on how many candidates do judges disagree? Name two of them.", f"{len(split)}: {', '.join(split)}"
    yield (
        "run.html: how many candidates are ungraded, and which criterion has no verdict there?",
        (f"{sum(each.score is None for each in old)}, `cites`"),
    )
    found = [each for each in old if each.group == "day 3" and each.score is not None and not each.passed]
    yield "run.html: how many candidates of the group `day 3` fail?", f"{len(found)}"
    lowest = min(each.score for each in old if each.score is not None)
    worst = [each.key for each in old if each.score == lowest]
    yield "run.html: which candidate has the lowest score, and what is the score?", f"{', '.join(worst)}: {lowest:.2f}"
    quoted = next(each for each in old[400:] if "refund" in each.gates and len(each["cites"].evidence) == 2)
    yield (
        f"run.html: {quoted.key}: which gates failed, and what are the two quotes for the criterion `cites`?",
        (f"{', '.join(quoted.gates)}; {' / '.join(e.text for e in quoted['cites'].evidence)}"),
    )
    pairs = [(a, b) for a, b in zip(new, old, strict=True) if a.score is not None and b.score is not None]
    broken = [(a, b) for a, b in pairs if b.passed and not a.passed]
    yield (
        "two.html: how many candidates broke since the last run? Name one.",
        (f"{len(broken)}: {', '.join(a.key for a, _ in broken)}"),
    )
    shift = {c: sum(_value(a, c) - _value(b, c) for a, b in pairs) / len(pairs) for c in old[0].rubric.ids}
    down = min(shift, key=lambda c: shift[c])
    yield (
        "two.html: which criterion went down the most, and does its interval leave out 0?",
        f"`{down}`, {shift[down]:+.2f}",
    )
    one, was = next((a, b) for a, b in broken if _value(a, "answers") != _value(b, "answers"))
    yield (
        f"two.html: {one.key}: the answer to which criteria changed, and what is the new reason for `answers`?",
        (f"{', '.join(c for c in one.rubric.ids if _value(one, c) != _value(was, c))}; {one['answers'].reason}"),
    )


def _value(result: Grade | Ungraded, criterion: str) -> float:
    return result.contributions[criterion] or 0.0


def _is_split(row: Any) -> bool:
    """True if the votes on *row*, or on one of its criteria, lie on both sides."""
    known = [[vote.contribution for vote in entry.votes if vote.contribution is not None] for entry in row.entries]
    verdicts = {vote.verdict for vote in row.votes if vote.verdict != "ungraded"}
    return len(verdicts) > 1 or any(len(each) > 1 and min(each) < 0.5 <= max(each) for each in known)


def main(folder: Path) -> None:
    """Write both pages, the tasks and the answers, and print where."""
    folder.mkdir(parents=True, exist_ok=True)
    old = earlier()
    new = later(old)
    old.report(folder / "run.html", title="Monday's replies")
    new.report(folder / "two.html", title="Tuesday's replies", against=old)
    found = [*tasks(old, new)]
    for name, column in (("tasks.md", 0), ("answers.md", 1)):
        lines = [f"{n}. {each[column]}\n" for n, each in enumerate(found, 1)]
        (folder / name).write_text("".join(lines), "utf-8")
        sys.stdout.write(f"{folder / name}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
