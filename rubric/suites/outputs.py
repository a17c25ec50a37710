"""
Finished outputs: replies that were made elsewhere, each for its case.

| rows                                                        | matched by                                       |
|-------------------------------------------------------------|--------------------------------------------------|
| objects with `id` (or `case`, `case_id`, `test_id`)          | the id of the case                               |
| promptfoo's results (`-o results.json` or `.jsonl`)         | the variables, the provider and the prompt       |
| AgentV's results (`test_id`, `output`)                      | the id of the case, and the target where several |
| texts, or objects with an output alone                      | their order, if there are as many as cases       |

Several replies to one case are its runs. What has no partner is listed in the warnings of the suite, on both sides.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attrs import evolve, field, frozen

from rubric.engine.logs import Broken, candidate_of, rows_of
from rubric.engine.sources import json_lines
from rubric.errors import DefinitionError, Problem
from rubric.internals.frozen_map import thaw
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.suites.repetition import RUN, run_id
from rubric.values.candidates import Candidate
from rubric.values.chats import at, text_of
from rubric.values.checks import Check, Holds
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from rubric.suites.suite import Suite

_IDS = ("id", "case", "case_id", "test_id", "testId", "eval_id", "evalId")
_OUTPUTS = ("output", "response", "answer", "candidate_answer", "candidateAnswer", "completion", "generation", "text")
_MOST_LISTED = 20


@frozen
class Reply:
    """
    One finished output: the *candidate* in it, and what tells which case it belongs to.

    It is *transformed* where its system has applied the transforms of the file already.
    """

    where: str
    candidate: Candidate | None
    why: str = ""
    id: str = ""
    variables: Mapping[str, str] | None = None
    names: frozenset[str] = field(factory=frozenset)
    transformed: bool = False


def answered(suite: Suite, replies: str | PathLike[str] | Iterable[Any], /) -> Suite:
    """
    Return *suite* with *replies* as the outputs of its cases; see `Suite.answered`.

    Raises:
        DefinitionError: Nothing in it belongs to a case of the suite.
    """
    source, rows = _read(Path(replies)) if isinstance(replies, str | PathLike) else ("replies", [*replies])
    found = [_reply(f"{source}[{number}]", row) for number, row in enumerate(rows)]
    matched, lost = _matched(suite.cases, found)
    if not matched:
        why = f"; {lost[0]}" if lost else ""
        message = f"{source}: none of {len(found)} replies belongs to one of the {len(suite)} cases{why}"
        raise DefinitionError("outputs", message)
    cases: list[Case] = []
    for index, case in enumerate(suite.cases):
        several = matched.get(index, [])
        cases += _answered(case, several)
        if not several and case.output is None:
            lost.append(f"no reply for the case {shorten(case.id, 80)!r}")
    lost[_MOST_LISTED:] = [f"and {len(lost) - _MOST_LISTED} more without a partner"] if len(lost) > _MOST_LISTED else []
    return evolve(suite, cases=cases, warnings=(*suite.warnings, *(Problem(source, 0, 0, "", why) for why in lost)))


def _read(path: Path) -> tuple[str, list[Any]]:
    match path.suffix.lower():
        case ".jsonl" | ".ndjson":
            return str(path), [*json_lines(path)]
        case ".json":
            return str(path), rows_of(path)
        case ".csv" | ".tsv":
            separator = "," if path.suffix.lower() == ".csv" else "\t"
            with path.open(encoding="utf-8-sig", newline="") as file:
                return str(path), [*csv.DictReader(file, delimiter=separator)]
        case suffix:
            message = f"expected a file of replies (.jsonl, .json, .csv or .tsv), got {suffix or 'no ending'}"
            message = f"{path.name}: {message}"
            raise DefinitionError("outputs", message)


def _reply(where: str, row: Any) -> Reply:
    if isinstance(row, Broken):
        return Reply(where, None, row.why)
    if isinstance(row, str):
        return Reply(where, Candidate(row))
    if not isinstance(row, Mapping):
        return Reply(where, None, f"expected a text or an object with an output, got {type(row).__name__}")
    if isinstance(row.get("vars"), Mapping) and ("response" in row or "promptIdx" in row):
        return _of_promptfoo(where, row)
    id_ = next((str(row[key]) for key in _IDS if row.get(key) not in (None, "")), "")
    said = next((row[key] for key in _OUTPUTS if row.get(key) is not None), None)
    if said is None:
        why = text_of(row["error"]) if row.get("error") else f"no output; expected one of {', '.join(_OUTPUTS)}"
        return Reply(where, None, why, id_)
    target = row.get("target")
    names = frozenset({text_of(at(target, "name") or target)} if target else ())
    candidate = candidate_of(said)
    if calls := row.get("tool_calls"):
        candidate = evolve(candidate, tool_calls=calls)
    variables = row.get("vars") if isinstance(row.get("vars"), Mapping) and not id_ else None
    return Reply(where, candidate, "", id_, None if variables is None else _as_texts(variables), names)


def _of_promptfoo(where: str, row: Mapping[str, Any]) -> Reply:
    variables = _as_texts({key: value for key, value in row["vars"].items() if not key.startswith("_")})
    provider, prompt = row.get("provider"), row.get("prompt")
    names = {at(provider, "label"), at(provider, "id"), provider if isinstance(provider, str) else None}
    names |= {at(prompt, "label")}
    response = row.get("response")
    output = at(response, "output") if isinstance(response, Mapping) else response
    named = frozenset(str(name) for name in names if name)
    if output is None:
        why = text_of(at(response, "error") or row.get("error") or "no output")
        return Reply(where, None, why, variables=variables, names=named)
    return Reply(where, candidate_of(output), variables=variables, names=named, transformed=True)


def _as_texts(variables: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): text_of(value).strip() for key, value in variables.items()}


def _matched(cases: tuple[Case, ...], replies: list[Reply]) -> tuple[dict[int, list[Reply]], list[str]]:
    """Return the replies to each case, by its place, and a sentence for each reply without one."""
    by_id = {case.id: index for index, case in enumerate(cases)}
    shown = [_as_texts(thaw(case.variables)) for case in cases]
    matched: dict[int, list[Reply]] = defaultdict(list)
    lost: list[str] = []
    is_ordered = not any(reply.id or reply.variables is not None for reply in replies)
    if is_ordered and len(replies) != len(cases):
        message = f"{len(replies)} replies without ids or variables for {len(cases)} cases cannot be matched by order"
        raise DefinitionError("outputs", f"{message}; give each an id")
    for number, reply in enumerate(replies):
        if is_ordered:
            fitting = [number]
        elif reply.id:
            exact = by_id.get(reply.id)
            cells = [n for n, case in enumerate(cases) if case.id.startswith(f"{reply.id} / ")]
            fitting = [exact] if exact is not None else _of_cell(cells, cases, reply)
        else:
            fitting = _of_cell([n for n, own in enumerate(shown) if _fits(own, reply.variables)], cases, reply)
        said = shorten(reply.id or text_of(reply.variables), 80)
        if reply.candidate is None:
            lost.append(f"{reply.where}: {shorten(reply.why, 160)}")
        elif len(fitting) == 1:
            matched[fitting[0]].append(reply)
        else:
            what = "no case" if not fitting else f"{len(fitting)} cases"
            lost.append(f"{reply.where}: {what} for {said}")
    return matched, lost


def _fits(own: Mapping[str, str], given: Mapping[str, str] | None) -> bool:
    """True if *given* has the variables of a case; promptfoo adds some of its own to them."""
    return given is not None and all(given.get(name) == text for name, text in own.items())


def _of_cell(found: list[int], cases: tuple[Case, ...], reply: Reply) -> list[int]:
    """Return the places among *found* whose cell has the names that *reply* has; without cells, all of them."""
    if len(found) < 2:  # noqa: PLR2004
        return found
    in_cell = [n for n in found if cases[n].cell and all(str(v) in reply.names for v in cases[n].cell.values())]
    if in_cell:
        found = in_cell
    # A case with more of the variables is the closer one: another may have a part of them.
    most = max(len(cases[n].variables) for n in found)
    return [n for n in found if len(cases[n].variables) == most]


def _answered(case: Case, replies: list[Reply]) -> list[Case]:
    made = [
        evolve(
            case,
            rubric=_after_transforms(case.rubric) if reply.transformed else case.rubric,
            output=reply.candidate.output,
            messages=(*case.messages, *reply.candidate.messages),
            tool_calls=reply.candidate.tool_calls or case.tool_calls,
            runs=1,
        )
        for reply in replies
        if reply.candidate is not None
    ]
    if len(made) < 2:  # noqa: PLR2004
        return made or [case]
    return [evolve(one, id=run_id(case, n), cell={**case.cell, RUN: n}) for n, one in enumerate(made, 1)]


def _after_transforms(rubric: Rubric) -> Rubric:
    """Return *rubric* for an output to which the transforms of the test were applied; those of its parts remain."""
    criteria = []
    for criterion in rubric.criteria:
        on, answer = criterion.on, criterion.answer
        if callable(finished := getattr(on, "finished", None)):
            on = finished() or "conversation"
        if isinstance(answer, Rubric):
            answer = _after_transforms(answer)
        elif isinstance(answer, Holds) and callable(finished := getattr(answer.function, "finished", None)):
            left: Any = finished()
            answer = cast("Any", left if isinstance(left, Check) else Holds(left))
        criteria.append(evolve(criterion, on=on, answer=answer))
    return evolve(rubric, criteria=criteria) if criteria else rubric
