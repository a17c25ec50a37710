"""
Look for what is wrong with a rubric, a suite or a file, without a judge: `lint(x)`.

A remark can be waived, with a reason: in a file by a comment on its line, or on the line above, in code by the
metadata of the criterion:

    # lint: allow no-effect: shown to reviewers only
    metadata={"lint": {"no-effect": "shown to reviewers only"}}
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, get_args, overload

from attrs import asdict, frozen

from rubric import Rubric, load, load_suite
from rubric.embed import Presented, Table, counted, fields, guided, shown
from rubric.formats.projects import is_rubric
from rubric.quality.lint_places import END, File, Places
from rubric.quality.lint_rules import OF_CASES, RULES, Level, Subject
from rubric.suites.suite import Suite


@frozen
class Remark(fields.Shown):
    """
    One thing that is wrong.

    Args:
        rule: The name of the rule, such as `no-effect`.
        level: `error` (it follows from how answers are scored), `warning` (the text says so), or `hint` (it may be so).
        place: `file:line:column`, or the path in the rubric or suite, such as `criteria[2]`.
        criterion: The id of the criterion; empty for the whole rubric.
        message: What is wrong, and the consequence.
        cure: What to do.
        waived: The reason that the file or the criterion gives for leaving it so; empty where it does not.
    """

    rule: str
    level: Level
    place: str
    criterion: str
    message: str
    cure: str
    waived: str = ""

    def __str__(self) -> str:
        name = f"{self.criterion!r}: " if self.criterion else ""
        return shown(f"{self.place}: {self.level}: {name}{self.message}; {self.cure} [{self.rule}]")

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds."""
        return asdict(self)


@frozen(repr=False)
class Remarks(Presented, Sequence[Remark]):
    """
    What `lint` found: a sequence of remarks in the order of the file.

    Args:
        remarks: Those that count.
        waived: Those that the file or a criterion waives, each with its reason.
        rubrics: How many rubrics were looked at.
    """

    _remarks: tuple[Remark, ...] = ()
    waived: tuple[Remark, ...] = ()
    rubrics: int = 1

    @overload
    def __getitem__(self, at: int) -> Remark: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Remark]: ...
    def __getitem__(self, at: int | slice) -> Remark | Sequence[Remark]:
        return self._remarks[at]

    def __len__(self) -> int:
        return len(self._remarks)

    def of(self, level: Level) -> tuple[Remark, ...]:
        """Return the remarks of one *level*."""
        return tuple(remark for remark in self._remarks if remark.level == level)

    @property
    def ok(self) -> bool:
        """True without errors and warnings; hints fail nothing."""
        return all(remark.level == "hint" for remark in self._remarks)

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        looked = counted(self.rubrics, "rubric")
        told = [counted(len(some), level) for level in get_args(Level) if (some := self.of(level))]
        waived = f", {len(self.waived)} waived" if self.waived else ""
        return f"{', '.join(told) or 'Nothing wrong'} in {looked}{waived}."

    def __bool__(self) -> bool:  # type: ignore[override]  # a list of remarks is true where there is one
        return bool(self._remarks)

    def __str__(self) -> str:
        return "\n".join((self.sentence, *map(str, self._remarks)))

    def tables(self) -> list[Table]:
        """The remarks, each in a row; then those that are waived, with the reasons."""
        rows = [(r.place, r.level, r.rule, r.criterion, f"{r.message}; {r.cure}") for r in self._remarks]
        waived = [(r.place, r.level, r.rule, r.criterion, r.waived) for r in self.waived]
        head = ("place", "level", "rule", "criterion")
        told: list[Table] = [("", (*head, "remark"), [*rows])] if rows else []
        return [*told, ("Waived", (*head, "reason"), [*waived])] if waived else told

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data that JSON holds."""
        remarks, waived = ([remark.to_dict() for remark in some] for some in (self._remarks, self.waived))
        return {"sentence": self.sentence, "ok": self.ok, "remarks": remarks, "waived": waived}


@guided
def lint(x: Rubric | Suite | str | PathLike[str], /, *, hints: bool = False, base: str | Path | None = None) -> Remarks:
    """
    Look for what is wrong with *x*: a rubric, a suite, or the path of a file with one of them.

    A rubric that several cases share is looked at once, but for what depends on the case.

    Args:
        x: A `Rubric`, a `Suite`, or a path.
        hints: Whether remarks that may be wrong are shown too.
        base: Of a file: the folder that it and its includes must be in, as for `load_suite`.

    Raises:
        DefinitionError: *x* is none of these, or a rubric that `grade` refuses.
        LoadError: The file cannot be read.
    """
    match x:
        case Rubric():
            x.check_weights()  # as it is where it is graded; files and cases are checked where they are read
            found, rubrics = [*_look(Subject(x), Places(), hints=hints)], 1
        case Suite():
            found, rubrics = _look_at_suite(x, None, hints=hints)
        case str() | PathLike():
            path = fields.as_path("x", x)
            file = File.read(path)
            if is_rubric(path):
                start = file.find("criteria", (1, 0), END) or (1, 1)
                places = Places(file, criteria=start)
                found, rubrics = [*_look(Subject(load(path, base=base)), places, hints=hints)], 1
            else:
                found, rubrics = _look_at_suite(load_suite(path, base=base), file, hints=hints)
        case _:
            raise fields.refuse("x", x, "a Rubric, a Suite, or the path of a file with one of them")
    kept = dict.fromkeys(found)  # a rubric that is written once, and used by many cases, is told of once
    counting = tuple(remark for remark in kept if not remark.waived)
    return Remarks(counting, tuple(remark for remark in kept if remark.waived), rubrics)


def _look_at_suite(suite: Suite, file: File | None, *, hints: bool) -> tuple[list[Remark], int]:
    found: list[Remark] = []
    seen: dict[str, int] = {}
    files = {} if file is None else {file.source: file}
    starts = sorted({(one.place.source, one.place.line, one.place.column) for one in suite.cases if one.place})
    for index, case in enumerate(suite.cases):
        first = seen.setdefault(case.rubric.digest, index)
        places = Places(path=f"cases[{index}].rubric.")
        if file is not None:
            at = case.place
            source, *start = ("", 1, 1) if at is None else (at.source, at.line, at.column)
            if source and source not in files and Path(source).is_file():
                files[source] = File.read(Path(source))
            after = bisect_right(starts, (source, *start))
            end = starts[after][1:] if after < len(starts) and starts[after][0] == source else END
            places = Places(files.get(source, file), start=(start[0], start[1]), end=end)
        of_case = [*_look(Subject(case.rubric, case), places, hints=hints)]
        if first != index and file is None:  # told of at the first case that has it
            of_case = [remark for remark in of_case if remark.rule in OF_CASES]
        found += of_case
    return found, len(seen)


def _look(subject: Subject, places: Places, *, hints: bool) -> Iterator[Remark]:
    rubric = subject.rubric
    spots = places.spots(rubric)
    for rule in RULES.values():
        if rule.level == "hint" and not hints:
            continue
        for finding in rule.look(subject):
            index = finding.index
            criterion, spot = (None, None) if index is None else (rubric.judged[index], spots[index])
            at = places.spot_of(finding, spot)
            waived = places.waiver(rule.name, rubric, criterion, (spot or places.start, at))
            id_, said = "" if criterion is None else criterion.id, (finding.message, finding.cure)
            yield Remark(rule.name, rule.level, places.show(finding, at), id_, *said, waived)
    for index, criterion in enumerate(rubric.judged):
        if isinstance(criterion.answer, Rubric):
            below = places.below(index, spots[index])
            yield from _look(subject.below(criterion, criterion.answer), below, hints=hints)
