"""Results from plain data: what `to_dict` and `to_jsonl` made comes back whole, with the rubric and the judge given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import evolve

from rubric.errors import DefinitionError
from rubric.internals.fields import refuse
from rubric.internals.row_files import check_finite, rows_in
from rubric.internals.text import shorten
from rubric.results.result import Grade, Ungraded, conclude, conclude_votes, degenerate
from rubric.values.findings import Abstained, Evidence, Finding, NotApplicable, Scored, Step, Unjudged
from rubric.values.judge_digest import judge_digest
from rubric.values.judges import NOBODY, AnyJudge, Judge, as_judge, members_of
from rubric.values.requests import Failure, Usage
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from rubric.results.result import JudgeOf


def result_lines(field: str, path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and the data of each result in the file of lines at *path*, without marks of shards."""
    for where, data in rows_in(field, path, ".jsonl"):
        if isinstance(data, dict) and "end_of_shard" in data:
            continue
        if not isinstance(data, dict) or not {"findings", "score", "passed", "verdict"} <= data.keys():
            raise DefinitionError(where, "is no result; `grade-many --out` and to_jsonl write them")
        yield where, data


def restored(
    data: Mapping[str, Any], rubric: Rubric | Iterable[Rubric], judge: JudgeOf | None = None
) -> Grade | Ungraded:
    """Return the result in *data*; see `Result.from_dict`."""
    if not isinstance(data, Mapping):
        raise refuse("data", data, "a mapping that to_dict returned")
    check_finite("data", data)
    try:
        found = _rubric_of(data["digest"], [rubric] if isinstance(rubric, Rubric) else [*rubric])
        by = _judge_of(data, judge)
        result = _result(data, found, by)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, DefinitionError):
            raise
        why = f"no result that to_dict made: {type(problem).__name__}: {shorten(str(problem))}"
        raise DefinitionError("data", why) from None
    if result.outcome.score != data["score"]:
        why = f"its score was {data['score']}, and its findings give {result.outcome.score}"
        raise DefinitionError("data", f"{why}; it was changed, or scored by other rules of another version")
    return result


def _rubric_of(digest: str, rubrics: Sequence[Rubric]) -> Rubric:
    for rubric in rubrics:
        if rubric.digest == digest:
            return rubric
    others = ", ".join(rubric.digest for rubric in rubrics) or "none"
    raise DefinitionError("rubric", f"the result is of the rubric {digest}, and given is {others}; give that rubric")


def _judge_of(data: Mapping[str, Any], judge: JudgeOf | None) -> AnyJudge:
    digest = data["judge_digest"]
    if digest == judge_digest(NOBODY):  # of an item that was no candidate
        return NOBODY
    given = data["judge"] if judge is None else judge
    by = as_judge(given)
    if judge_digest(by) != digest:
        said = shorten(data["judge"])
        raise DefinitionError("judge", f"the result is by another judge, {said} ({digest}); give that one as judge=...")
    return by


# -- reading ---------------------------------------------------------------------------------------------


def _result(data: Mapping[str, Any], rubric: Rubric, judge: AnyJudge) -> Grade | Ungraded:
    findings = tuple(_finding(each) for each in data["findings"])
    if [finding.id for finding in findings] != [criterion.id for criterion in rubric.judged]:
        raise ValueError("its findings are not those of its rubric")
    known: dict[str, Any] = {
        "usage": _usage(data.get("usage", {})),  # lines of `grade-many` have none
        "failures": tuple(_failure(each) for each in data["failures"]),
        "warnings": tuple(data["warnings"]),
        "models": tuple(data["models"]),
    }
    names = ("index", "key", "group")
    of = {name: data[name] for name in names if name in data}
    if data["degenerate"]:
        return evolve(degenerate(rubric, judge, data["degenerate"]), **known, **of)
    if isinstance(judge, Judge):
        return evolve(conclude(rubric, judge, findings, **known), **of)
    members = members_of(judge)
    votes = [_result(vote, rubric, member) for vote, member in zip(data["votes"], members, strict=False)]
    return evolve(conclude_votes(rubric, judge, votes), findings=findings, **known, **of)


def _finding(data: Mapping[str, Any]) -> Finding:
    votes = tuple(_finding(vote) for vote in data["votes"])
    match data["kind"]:
        case "not_applicable":
            return NotApplicable(data["id"], data["reason"], votes)
        case "abstained":
            return Abstained(data["id"], data["reason"], votes)
        case "unjudged":
            return Unjudged(
                data["id"],
                _failure(data["failure"]),
                data["text"],
                data["low"],
                data["high"],
                **_walk(data),
                votes=votes,
            )
        case "scored":
            known = {name: data[name] for name in ("id", "score", "value", "reason", "flag", "level", "weighted")}
            evidence = tuple(Evidence(**quote) for quote in data["evidence"])
            return Scored(**known, evidence=evidence, **_walk(data), votes=votes)
        case other:
            raise ValueError(f"an unknown kind of finding, {other!r}")


def _walk(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"path": tuple(Step(**s) for s in data["path"]), "parts": tuple(_finding(part) for part in data["parts"])}


def _failure(data: Mapping[str, Any]) -> Failure:
    return Failure(**{**data, "usage": _usage(data.get("usage", {}))})


def _usage(data: Mapping[str, Any]) -> Usage:
    return Usage(**data)
