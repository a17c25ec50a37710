"""Results from plain data: what `to_dict` and `to_jsonl` made comes back whole, with the rubric and the judge given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.internals.text import shorten
from rubric.results.plain_data import Record
from rubric.results.result import Grade, Ungraded, conclude, conclude_votes, degenerate
from rubric.values.judges import AnyJudge, Judge, RecordedJudge, as_judge
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from rubric.results.result import JudgeOf


def restore(
    data: Mapping[str, Any] | Record, rubric: Rubric | Iterable[Rubric], judge: JudgeOf | None = None
) -> Grade | Ungraded:
    """Return the result in *data*; see `Result.from_dict`."""
    record = data if isinstance(data, Record) else Record.from_dict(data)
    found = _rubric_of(record.digest, rubrics_of(rubric))
    result = _result(record, found, _judge_of(record, judge))
    if result.outcome.score != record.score:
        why = f"its score was {record.score}, and its findings give {result.outcome.score}"
        raise DefinitionError("data", f"{why}; it was changed, or scored by other rules of another version")
    return result


def rubrics_of(rubric: Rubric | Iterable[Rubric]) -> list[Rubric]:
    """Return one *rubric* or several as a list; a path is refused with the line that reads it."""
    several = [rubric] if isinstance(rubric, Rubric | str | PathLike) else [*rubric]
    for each in several:
        if not isinstance(each, Rubric):
            cure = f"; write load({str(each)!r})" if isinstance(each, str | PathLike) else ""
            raise DefinitionError("rubric", f"expected a Rubric, or several, got {each!r}{cure}")
    return several


def _rubric_of(digest: str, rubrics: Sequence[Rubric]) -> Rubric:
    for rubric in rubrics:
        if rubric.digest == digest:
            return rubric
    others = ", ".join(rubric.digest for rubric in rubrics) or "none"
    again = "rubric grade-many rubric.yaml data.csv --out results.jsonl; the same --store pays nothing twice"
    cure = f"give that rubric, or grade anew, such as {again}; write grades.rescore(new) if only its scoring is new"
    raise DefinitionError("rubric", f"the result is of the rubric {digest}, and given is {others}; {cure}")


def _judge_of(record: Record, judge: JudgeOf | None) -> AnyJudge:
    digest = record.judge_digest
    if judge is None and not record.votes:
        named = Judge(record.judge or "unknown")
        return named if named.digest == digest else RecordedJudge(record.judge, digest)
    by = as_judge(record.judge if judge is None else judge)
    if by.digest != digest and record.judge != "_nobody":  # so files of earlier days name that of an invalid row
        said = shorten(record.judge)
        raise DefinitionError("judge", f"the result is by another judge, {said} ({digest}); give that one as judge=...")
    return by


def _result(record: Record, rubric: Rubric, judge: AnyJudge) -> Grade | Ungraded:
    if [finding.id for finding in record.findings] != [criterion.id for criterion in rubric.judged]:
        raise DefinitionError("data.findings", "they are not those of its rubric")
    known = {name: getattr(record, name) for name in ("usage", "failures", "warnings", "models")}
    of = {name: getattr(record, name) for name in ("index", "key", "group", "variables", "tags")}
    if record.degenerate:
        return evolve(degenerate(rubric, judge, record.degenerate), **known, **of)
    if isinstance(judge, Judge):
        return evolve(conclude(rubric, judge, record.findings, **known), **of)
    members = judge.members
    votes = [_result(vote, rubric, member) for vote, member in zip(record.votes, members, strict=False)]
    return evolve(conclude_votes(rubric, judge, votes), findings=record.findings, **known, **of)
