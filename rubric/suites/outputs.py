"""
Finished outputs: replies that were made elsewhere, each for its case; docs/how-to/suites.md says how they are matched.

What has no partner is listed in the warnings of the suite, on both sides. A run that failed, as promptfoo and AgentV
mark it, is not a reply: an error may be in the place of its output.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unicodedata import normalize

from attrs import evolve, field, fields_dict, frozen

from rubric import Candidate, DefinitionError, Holds, Rubric, RubricError
from rubric.embed import Check, candidate_of, fields, is_chat, rows_in, shorten, source_of, thaw
from rubric.errors import Problem
from rubric.suites.answer_files import with_answer_files
from rubric.suites.cases import Case
from rubric.suites.providers import text_of
from rubric.suites.repetition import RUN, run_id
from rubric.suites.slots import fill_slots
from rubric.values import RunMetrics, Unsupported, Within
from rubric.values.chats import candidate_of_chat, listed

if TYPE_CHECKING:
    from rubric.suites.suite import Suite

_IDS = ("id", "case", "case_id", "test_id", "testId", "eval_id", "evalId")
_OUTPUTS = (
    "output", "response", "answer", "actual_output", "candidate_answer", "candidateAnswer", "completion", "generation",
    "text",
)  # fmt: skip
_BESIDE = ("input", "reference", "context", "file_changes")
_COLUMNS = source_of([]).columns
_MOST_LISTED = 20
_LIMITED, _UNSAID = ("latency", "cost", "tokens"), " (the replies do not say it)"
_RUN = f" [{RUN} "
_EXPECTED = 'expected rows such as {"id": "refund", "output": "..."}, or results of promptfoo or AgentV'


@frozen
class Reply:
    """
    One finished output: the *candidate* in it, and what tells which case it belongs to.

    Args:
        candidate: None where there is no output, for the reason *why*.
        cell: The target and the prompt that it comes from, as far as they are named.
        names: All names of those.
        transformed: Whether its system has applied the transforms of the file already.
        own: Whether it is a row of a report of ours, whose output is what a target gave.
        asked: The prompt as it was sent.
        column: The `testIdx` and `promptIdx` of promptfoo's results.
        test: The description of the test there, or how it begins.
        plain: Those of its variables that are texts of their own: no template, and no name of a file.
    """

    where: str
    candidate: Candidate | None
    why: str = ""
    id: str = ""
    variables: Mapping[str, str] | None = None
    cell: Mapping[str, str] = field(factory=dict)
    names: frozenset[str] = field(factory=frozenset)
    transformed: bool = False
    own: bool = False
    asked: str = ""
    column: tuple[Any, Any] | None = None
    test: str = ""
    plain: Mapping[str, str] = field(factory=dict)


def answer_cases(
    suite: Suite, replies: str | PathLike[str] | Iterable[Any], /, *, wanted: Callable[[Case], bool] = lambda _: True
) -> Suite:
    """Return *suite* with *replies* as its outputs, see `Suite.answered`; cases not *wanted* are not told of."""
    if isinstance(replies, str | PathLike):
        read = rows_in("outputs", Path(replies), broken=partial(Reply, "", None))
        source, rows = str(replies), [with_answer_files(row, Path(replies).parent) for _, row in read]
    elif isinstance(replies, Mapping) or hasattr(replies, "columns"):
        # Going through it would give its keys, or the names of its columns.
        cure = "[{'id': id, 'output': text} for id, text in replies.items()]"
        cure = cure if isinstance(replies, Mapping) else "its rows, such as frame.to_dict('records')"
        raise DefinitionError("outputs", f"expected a list of replies, got a {type(replies).__name__}; pass {cure}")
    elif isinstance(replies, bytes | set | frozenset) or not isinstance(replies, Iterable):
        raise fields.refuse("outputs", replies, "a list of replies, or a file")
    else:
        source, rows = "replies", [*replies]
    if not rows:
        raise DefinitionError("outputs", f"{source}: there are no replies in it; {_EXPECTED}")
    found = [_reply(f"{source}[{number}]", row) for number, row in enumerate(rows)]
    if not any(reply.candidate is not None or reply.id or reply.variables is not None for reply in found):
        message = f"{source}: none of its {len(found)} rows has an output ({found[0].why}); {_EXPECTED}"
        raise DefinitionError("outputs", message)
    matched, lost, lost_of = _match(suite.cases, found)
    if not any(reply.candidate is not None for several in matched.values() for reply in several):
        why = next((f"; {one}" for several in (lost, *lost_of.values()) for one in several), "")
        message = f"{source}: none of {len(found)} replies belongs to one of the {len(suite)} cases{why}"
        raise DefinitionError("outputs", message)
    cases: list[Case] = []
    noted = dict[str, str]()
    for index, case in enumerate(suite.cases):
        told = lost_of[index]
        several = [_of_turns(case, _of_provider(case, reply, told), told) for reply in matched.get(index, [])]
        cases += (made := _with_replies(case, several, noted if wanted(case) else {}))
        if not any(reply.candidate is not None for reply in several):
            kept = "" if several or case.output is None else ": its own response is graded"
            told.append(f"no reply for the case {shorten(case.id, 80)!r}{kept}")
        if any(map(wanted, (case, *made))):
            lost += told
    lost[:0] = [f"{why} (first: {where})" for why, where in noted.items()]
    lost[_MOST_LISTED:] = [f"and {len(lost) - _MOST_LISTED} more without a partner"] if len(lost) > _MOST_LISTED else []
    return evolve(suite, cases=cases, warnings=(*suite.warnings, *(Problem(source, 0, 0, "", why) for why in lost)))


def _with_known_limits(rubric: Rubric, metrics: RunMetrics) -> Rubric:
    """Return *rubric* with an unsupported check for each limit of what *metrics* do not say, which may be skipped."""
    criteria = []
    for criterion in rubric.criteria:
        limit = criterion.answer if isinstance(criterion.answer, Within) else None
        named = [n for n in _LIMITED if getattr(limit, n, None) is not None and getattr(metrics, n) is None]
        unsaid = Unsupported(f"{' and '.join(named)}{_UNSAID}", cure="ask a live target, whose run is measured")
        criteria.append(evolve(criterion, answer=unsaid) if named else criterion)
    return evolve(rubric, criteria=criteria) if criteria != [*rubric.criteria] else rubric


def _reply(where: str, row: Any) -> Reply:
    if isinstance(row, Reply):  # of a row that cannot be read
        return evolve(row, where=where)
    if isinstance(row, str):
        return Reply(where, Candidate(row))
    if not isinstance(row, Mapping):
        return Reply(where, None, f"expected a text or an object with an output, got {type(row).__name__}")
    if isinstance(row.get("vars"), Mapping) and ("response" in row or "promptIdx" in row):
        return _of_promptfoo(where, row)
    id_ = next((_id(row[key]) for key in _IDS if row.get(key) not in (None, "")), "")
    means = (key for key in row if _COLUMNS.means(str(key))[:1] == ("output",))  # such as `reply`
    named = next((key for key in (*_OUTPUTS, *means) if row.get(key) is not None), "")
    said = row.get(named)
    own = row.get("vars") if isinstance(row.get("vars"), Mapping) and not id_ else None
    variables = None if own is None else _as_texts(own)
    target = row.get("target") or (None if own is None else row.get("provider"))
    cell = {"target": text_of(_at(target, "name") or target)} if target else {}
    prompt = row.get("prompt") or ""
    asked = text_of(_at(prompt, "raw") or _at(prompt, "label") or prompt)
    cell |= {"prompt": asked} if own is not None and asked else {}
    own_row = "entries" in row and "status" in row
    reply = Reply(where, None, "", id_, variables, cell, frozenset({*cell.values(), asked}), asked=asked, own=own_row)
    if said is None or "execution_error" in (row.get("execution_status"), row.get("executionStatus")):
        why = (
            text_of(row["error"])
            if row.get("error")
            else f"no output; expected a column {', '.join(_OUTPUTS)} or the like"
        )
        return evolve(reply, why=why, own=False)
    if own_row and (row.get("run") or not said):
        why = "a report tells the calls of a run in words alone" if row.get("run") else "its target gave no output"
        return evolve(reply, why=why)
    messages = row.get("messages") or []
    used = {named, *_IDS, "vars", "target", "metrics", "messages", "tool_calls", *(["prompt"] if own else [])}
    beside = {} if own_row else {name: row[name] for name in row if row[name] and name not in used}
    given = _answer_of(messages, said, beside)
    if isinstance(given, str):
        return evolve(reply, why=given, own=False)
    calls = row.get("tool_calls")
    given = evolve(given, metrics=_metrics(row))
    return evolve(reply, candidate=evolve(given, tool_calls=calls) if calls else given)


def _beside(row: Mapping[str, Any], made: Candidate) -> Candidate:
    """Return *made* with the fields that *row* has under names that mean one alone; other such columns are remarks."""
    found: dict[str, Any] = {}
    told = [*made.remarks]
    for name in sorted(row, key=lambda name: name not in _BESIDE):
        means = (name,) if name in _BESIDE else _COLUMNS.means(name)
        is_text = isinstance(row[name], str) or (means == ("context",) and isinstance(row[name], list))
        if len(means) == 1 and is_text and {*means} <= {*_BESIDE} - found.keys():
            found[means[0]] = row[name]
        elif means and name != "input":  # AgentV's results repeat it as a chat
            told.append(f"no judge sees the column {name!r}; rename it {' or '.join(means)}, or make it a text")
    return evolve(made, remarks=told, **{name: found[name] for name in found if not getattr(made, name)})


def _answer_of(messages: Any, said: Any, beside: Mapping[str, Any]) -> Candidate | str:
    """Return what was *said* after *messages*, with the columns *beside*, as a candidate, or why it is none."""
    if messages and not is_chat(messages):
        return "its `messages` are not a chat; expected a list of {role, content}, or none"
    try:
        made = candidate_of_chat(messages, output=said) if messages and isinstance(said, str) else _candidate_of(said)
        return _beside(beside, made)
    except DefinitionError as problem:
        return str(problem)


def _id(value: Any) -> str:
    return normalize("NFC", str(value))


_OF_CHATS = frozenset({"messages", "choices", "generations", "message"})


def _candidate_of(output: Any) -> Candidate:
    """Return *output* as a candidate: data of its own, and no chat, is JSON as a whole, as promptfoo compares it."""
    chat = isinstance(output, Mapping) and (_OF_CHATS & output.keys() or is_chat([output]))
    plain = isinstance(output, list) and not any(isinstance(one, Mapping) for one in output)
    if plain or (isinstance(output, Mapping) and not chat):
        return Candidate(json.dumps(output, ensure_ascii=False, separators=(",", ":"), default=str))
    if why := (made := candidate_of(output)).unanswered:
        raise DefinitionError("output", why)
    return made


def _at(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


_MEASURED = {
    "latency": (("latencyMs", 0.001), ("duration_ms", 0.001), ("durationMs", 0.001)),
    "cost": (("cost", 1), ("cost_usd", 1), ("costUsd", 1)),
    "tokens": (("tokenUsage", 1), ("token_usage", 1)),
}
"""What results say of a run, and how much of a unit of ours theirs is."""


def _metrics(row: Mapping[str, Any]) -> RunMetrics:
    """Return what a run took, as its results say it; a reply from a cache took nothing that is known."""
    own = row.get("metrics")
    if isinstance(own, Mapping) and own.keys() <= fields_dict(RunMetrics).keys():
        return RunMetrics(**own)
    response = row.get("response")
    reason = _at(response, "finishReason")
    finish = reason if isinstance(reason, str) else ""
    if _at(response, "cached"):
        return RunMetrics(finish_reason=finish)
    found: dict[str, Any] = {}
    for name, keys in _MEASURED.items():
        for key, unit in keys:
            value = row.get(key) or (response.get(key) if isinstance(response, Mapping) else None)
            if isinstance(value, Mapping):
                parts = [n for k in ("input", "output") if isinstance(n := value.get(k), int)]
                value = value.get("total") or sum(parts)
            if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
                found.setdefault(name, value * unit)
    return RunMetrics(**found, finish_reason=finish)


def _of_promptfoo(where: str, row: Mapping[str, Any]) -> Reply:
    variables = _as_texts({key: value for key, value in row["vars"].items() if not key.startswith("_")})
    provider, prompt = row.get("provider"), row.get("prompt")
    said = {
        "target": [_at(provider, "label"), _at(provider, "id"), provider if isinstance(provider, str) else None],
        "prompt": [_at(prompt, "label"), _at(prompt, "raw") if row.get("promptIdx") is None else None],
    }
    named = {what: [str(name) for name in names if name] for what, names in said.items()}
    belongs: dict[str, Any] = {
        "variables": variables,
        "cell": {what: names[0] for what, names in named.items() if names},
        "names": frozenset(name for names in named.values() for name in names),
        "asked": text_of(_at(prompt, "raw") or ""),
        "test": " ".join(text_of(_at(row.get("testCase"), "description") or "").split())[:80],
        "column": (row["testIdx"], row.get("promptIdx")) if isinstance(row.get("testIdx"), int) else None,
        "plain": {
            name: variables[name]
            for name, value in row["vars"].items()
            if isinstance(value, str) and name in variables and not value.startswith("file://") and "{" not in value
        },
    }
    response = row.get("response")
    output = _at(response, "output") if isinstance(response, Mapping) else response
    if output is None or row.get("failureReason") == _PROVIDER_FAILED:
        why = text_of(_at(response, "error") or row.get("error") or "no output")
        return Reply(where, None, why, **belongs)
    return Reply(where, evolve(_candidate_of(output), metrics=_metrics(row)), transformed=True, **belongs)


_PROVIDER_FAILED = 2
"""promptfoo's word for a run that failed; 1 is a failed assertion."""


def _as_texts(variables: Mapping[str, Any]) -> dict[str, str]:
    return {str(key): text_of(value).strip() for key, value in variables.items()}


def _match(
    cases: tuple[Case, ...], replies: list[Reply]
) -> tuple[dict[int, list[Reply]], list[str], dict[int, list[str]]]:
    """Return the replies to each case, and sentences on those without a case, and without an output."""
    ids = [_id(case.id) for case in cases]
    by_id = {id_: index for index, id_ in enumerate(ids)}
    below, by_variables = _below(ids), _ByVariables.of(cases)
    matched: dict[int, list[Reply]] = defaultdict(list)
    lost: list[str] = []
    lost_of: dict[int, list[str]] = defaultdict(list)
    by_column, tests = _by_column(cases, replies), defaultdict[Any, set[int]](set)
    for (test, _), place in by_column.items():
        tests[test].add(place)
    is_ordered = not any(reply.id or reply.variables is not None for reply in replies)
    if is_ordered and len(replies) != len(cases):
        message = f"{len(replies)} replies without ids or variables for {len(cases)} cases cannot be matched by order"
        one = f'{{"id": {json.dumps(cases[0].id, ensure_ascii=False)}, "output": "..."}}' if cases else _EXPECTED
        raise DefinitionError("outputs", f"{replies[0].where}: {message}; give each the id of its case, such as {one}")
    for number, reply in enumerate(replies):
        if is_ordered:
            fitting = [number]
        elif reply.id:
            exact = by_id.get(reply.id, by_id.get(reply.id.rpartition(_RUN)[0]) if reply.own else None)
            fitting = [exact] if exact is not None else _of_cell(below.get(reply.id, []), cases, reply)
        elif (found := by_column.get(reply.column)) is not None and not _differs(cases[found], reply):
            others = (*tests[(reply.column or (None,))[0]], *by_variables.fitting(reply.variables))
            fitting = [_of_column(found, others, cases, reply)]
        else:
            fitting = _of_cell(by_variables.fitting(reply.variables), cases, reply)
        said = shorten(reply.id or text_of(reply.variables), 80)
        if reply.candidate is None:
            (lost_of[fitting[0]] if fitting else lost).append(f"{reply.where}: {shorten(reply.why, 160)}")
        if len(fitting) == 1:
            matched[fitting[0]].append(reply)
        elif reply.candidate is not None:
            lost.append(f"{reply.where}: {_why_not_one(fitting, cases, reply)} for {said}; {_cure(fitting, cases)}")
    return matched, lost, lost_of


def _cure(fitting: Sequence[int], cases: Sequence[Case]) -> str:
    """Say what a reply needs that belongs to one of the cases *fitting*, or to none."""
    if not fitting:
        return "give the id of its case"
    cure = f'give the id of its case, such as "id": {json.dumps(cases[fitting[0]].id, ensure_ascii=False)}'
    labels = [*dict.fromkeys(cases[n].cell.get("prompt") for n in fitting)]
    said = f', or the prompt that it answers, such as "prompt": {json.dumps(labels[0], ensure_ascii=False)}'
    return cure + said if len(labels) > 1 else cure


def _by_column(cases: Sequence[Case], replies: Sequence[Reply]) -> dict[Any, int]:
    """Return the places of cases by their columns in promptfoo's results; nothing, where these are of other tests."""
    found: dict[Any, int] = {column: place for place, case in enumerate(cases) for column in case.columns}
    there = {reply.column[0] for reply in replies if reply.column is not None}
    return found if there == {test for test, _ in found} else {}  # a filtered run counts the tests that it keeps


def _of_column(place: int, others: Iterable[int], cases: Sequence[Case], reply: Reply) -> int:
    """Return the one of *others* that fits *reply*, where the case at *place* does not: globs come in any order."""
    own = cases[place]
    provider = own.cell.get("provider")
    those = [] if _fits(own, reply) else {n for n in others if cases[n].cell.get("provider") == provider}
    fitting = [n for n in those if _fits(cases[n], reply)]
    return fitting[0] if len(fitting) == 1 else place


def _fits(case: Case, reply: Reply) -> bool:
    """True if *case* has the description, the variables and the prompt of *reply*."""
    same = case.id.startswith(reply.test) and case.variables.keys() == (reply.variables or {}).keys()
    return same and not _differs(case, reply) and ("prompt" not in case.cell or _asks(case, reply.asked))


def _differs(case: Case, reply: Reply) -> bool:
    """True if a variable of *reply* has another text than in *case*."""
    known = {name: text_of(value).strip() for name, value in case.variables.items()}
    return any(known.get(name, text) != text for name, text in reply.plain.items())


def _why_not_one(fitting: list[int], cases: tuple[Case, ...], reply: Reply) -> str:
    """Say that no case, or more than one, fits *reply*, and by what."""
    if fitting:
        return f"{len(fitting)} cases ({', '.join(repr(shorten(cases[n].id, 60)) for n in fitting[:2])}, ...)"
    if reply.id or reply.variables is None:
        return "no case"
    missing = {name for case in cases for name in case.variables} - reply.variables.keys()
    return f"no case (the cases also have the variables {', '.join(sorted(missing))})" if missing else "no case"


def _below(ids: Sequence[str]) -> dict[str, list[int]]:
    """Return the places of the cells of each id that has some: `a / b` and `a / c` are cells of `a`."""
    found: dict[str, list[int]] = defaultdict(list)
    for place, id_ in enumerate(ids):
        end = id_.find(" / ")
        while end >= 0:
            found[id_[:end]].append(place)
            end = id_.find(" / ", end + 1)
    return found


@frozen
class _ByVariables:
    """The places of cases by the names of their variables, then by their texts."""

    places: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]]

    @classmethod
    def of(cls, cases: Iterable[Case]) -> _ByVariables:
        found: dict[tuple[str, ...], dict[tuple[str, ...], list[int]]] = {}
        for place, case in enumerate(cases):
            own = _as_texts(thaw(case.variables))
            names = tuple(sorted(own))
            found.setdefault(names, {}).setdefault(tuple(own[name] for name in names), []).append(place)
        return cls(found)

    def fitting(self, given: Mapping[str, str] | None) -> list[int]:
        """Return where *given* has the variables of a case; promptfoo adds some of its own, where there are any."""
        return sorted(
            place
            for names, texts in self.places.items()
            if given is not None and (names or not given) and given.keys() >= {*names}
            for place in texts.get(tuple(given[name] for name in names), ())
        )


def _of_cell(found: list[int], cases: tuple[Case, ...], reply: Reply) -> list[int]:
    """Return the places among *found* whose cell has the names that *reply* has; without cells, all of them."""
    found = [n for n in found if _may_answer(cases[n], reply)]
    if len(found) < 2:  # noqa: PLR2004
        return found
    in_cell = [n for n in found if cases[n].cell and all(str(v) in reply.names for v in cases[n].cell.values())]
    said = ([n for n in found if text and _asks(cases[n], text)] for text in (reply.asked, *reply.names))
    found = in_cell or next(filter(None, said), found)
    # A case with more of the variables is the closer one: another may have a part of them.
    most = max(len(cases[n].variables) for n in found)
    return [n for n in found if len(cases[n].variables) == most]


def _asks(case: Case, prompt: str) -> bool:
    """True if *prompt*, a text or a chat as JSON, is what *case* asks, or the template of that."""

    def fill(text: str) -> str:
        return str(fill_slots(text, case.variables)).strip()

    if not case.messages:
        return fill(prompt) == case.input.strip()
    chat = listed(prompt)
    sent = [(message.role, message.content.strip()) for message in case.messages]
    sent += [("user", case.input)] if case.input and sent[-1:] != [("user", case.input)] else []
    return is_chat(chat) and [(_at(one, "role"), fill(text_of(_at(one, "content")))) for one in chat] == sent


def _may_answer(case: Case, reply: Reply) -> bool:
    """True unless *reply* is that of another provider than the one of *case*."""
    own = case.cell.get("provider")
    return own is None or "target" not in reply.cell or any(_alike(str(own), name) for name in reply.names)


def _alike(one: str, other: str) -> bool:
    """True if two names of a provider are the same but for a kind, as `openai:chat:gpt-5` and `openai:gpt-5`."""
    ends = {(name.partition(":")[0], name.rpartition(":")[2]) for name in (one, other)}
    return one == other or (":" in one and ":" in other and len(ends) == 1)


def _with_replies(case: Case, replies: list[Reply], noted: dict[str, str]) -> list[Case]:
    """Return *case* with each of *replies*: a cell for each target and prompt, in which several replies are runs."""
    named = ("target", "prompt")
    apart = [name for name in named if len({reply.cell.get(name, "") for reply in replies}) > 1]
    cells: dict[tuple[str, ...], list[Case]] = defaultdict(list)
    for reply in replies:
        cell = {name: reply.cell.get(name, "") for name in apart}
        told = ", ".join(f"{name}={shorten(value, 60)}" for name, value in cell.items())
        variant = evolve(case, id=f"{case.id} [{told}]", cell={**case.cell, **cell}) if told else case
        cells[tuple(cell.values())].append(_with(variant, reply, noted))
    made = []
    for own in cells.values():
        if len(own) == 1:
            made += own
        else:
            made += [evolve(run, id=run_id(run, n), cell={**run.cell, RUN: n}) for n, run in enumerate(own, 1)]
    return made or [case]


def _answers(case: Case, candidate: Candidate) -> list[str]:
    """Return the answers to the turns of *case* in the conversation that *candidate* is; none where they differ."""
    asked = [message.content for message in candidate.messages if message.role == "user"]
    asked += [candidate.input] if candidate.input else []
    said = [message.content for message in candidate.messages if message.role == "assistant"]
    wanted = [turn.input for turn in case.turns]
    return [*said, candidate.output][-len(wanted) :] if asked[-len(wanted) :] == wanted else []


def _of_provider(case: Case, reply: Reply, lost: list[str]) -> Reply:
    """Return *reply* after the transform of the provider of *case*; without its candidate where that fails."""
    provider = case.providers[0] if len(case.providers) == 1 else None
    if provider is None or provider.transform is None or reply.transformed or reply.own or reply.candidate is None:
        return reply
    try:
        output = provider.transform_output(reply.candidate.output, case.variables, case.input)
    except RubricError as problem:
        why = f"the transform of the provider {shorten(provider.name, 60)!r}: {shorten(str(problem), 160)}"
        lost.append(f"{reply.where}: {why}")
        return evolve(reply, candidate=None, why=why)
    return evolve(reply, candidate=evolve(reply.candidate, output=output))


def _of_turns(case: Case, reply: Reply, lost: list[str]) -> Reply:
    """Return *reply*; without its candidate, told in *lost*, where it does not answer each of the turns of *case*."""
    if not case.turns or reply.candidate is None or len(_answers(case, reply.candidate)) == len(case.turns):
        return reply
    why = f"it is not the conversation of the {len(case.turns)} turns of its case; give its messages as the output"
    lost.append(f"{reply.where}: {why}")
    return evolve(reply, candidate=None, why=why)


def _with(case: Case, reply: Reply, noted: dict[str, str]) -> Case:
    candidate = reply.candidate
    if candidate is None:
        return evolve(case, output=None, runs=1)
    if case.turns:
        said = case.conversing(_answers(case, candidate))
        case = evolve(case, turns=(), input=said.input, messages=said.messages, reference=said.reference)
        candidate = evolve(candidate, messages=())
    given, metrics = candidate.given(), case.metrics if candidate.metrics == RunMetrics() else candidate.metrics
    ran: dict[str, Any] = {"messages": (*case.messages, *given.get("messages", ()))}
    ran["tool_calls"] = given.get("tool_calls") or case.tool_calls
    if "run" in given:  # it has calls among its messages
        run = candidate.run
        ran = {"run": evolve(run, events=(*case.messages, *run.events)), "messages": (), "tool_calls": ()}
    told = [*candidate.remarks]
    for name in _BESIDE:
        own, value = getattr(case, name) or (name == "input" and (case.messages or ran.get("run"))), given.get(name, "")
        if not own:
            ran[name] = value
        elif value and isinstance(own, str) and value.split() != own.split():
            told.append(f"its {name} is not that of its case, which judges see")
    rubric = _with_known_limits(_after_transforms(case.rubric) if reply.transformed else case.rubric, metrics)
    made = evolve(case, rubric=rubric, output=candidate.output, **ran, metrics=metrics, runs=1)
    told += [why] if (why := made.lacks(made.candidate or candidate)) else []
    unsaid = {each.answer.type for each in rubric.criteria if isinstance(each.answer, Unsupported)}
    cure = "--unsupported skip (unsupported_as) leaves these checks out"
    told += [f"checks limit what is unknown, {type_}; {cure}" for type_ in sorted(unsaid) if type_.endswith(_UNSAID)]
    for why in told:
        noted.setdefault(why, reply.where)
    return made


def _after_transforms(rubric: Rubric) -> Rubric:
    """Return *rubric* for an output to which the transforms of the test were applied; those of its parts remain."""
    criteria = []
    for criterion in rubric.criteria:
        on, answer = criterion.on, criterion.answer
        if callable(remainder := getattr(on, "remainder", None)):
            on = remainder() or "conversation"
        if isinstance(answer, Rubric):
            answer = _after_transforms(answer)
        elif isinstance(answer, Holds) and callable(remainder := getattr(answer.function, "remainder", None)):
            left: Any = remainder()
            answer = cast("Any", left if isinstance(left, Check) else Holds(left))
        criteria.append(evolve(criterion, on=on, answer=answer))
    return evolve(rubric, criteria=criteria) if criteria else rubric
