"""
A `Suite` as an AgentV file of generation 2, with a sentence for each thing that the file cannot hold.

A rubric becomes the graders of a test, and their items. Texts that AgentV would take for templates are put between
`{% raw %}` and `{% endraw %}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, cast

from attrs import evolve, frozen

from rubric import Criterion, Judge, Levels, Matches, Rubric, Unit, YesNo
from rubric.embed import Answer, Check, thaw
from rubric.formats.agentv.graders import MOST_STEPS, Grader, asks, binds, renamed
from rubric.formats.agentv.prompts import write_prompt
from rubric.formats.agentv.scope import THRESHOLD, quoted
from rubric.formats.assertions.table import said_of
from rubric.formats.assertions.texts import without_spaces
from rubric.formats.json_values import each_text
from rubric.formats.losses import Held, Losses, averaged, provider_of, without
from rubric.formats.model_names import SETTINGS
from rubric.formats.python import is_python
from rubric.formats.rubric_items import HIGHEST
from rubric.suites.cases import Case
from rubric.suites.scripts import unsupported_of
from rubric.suites.suite import Suite
from rubric.values import Script, Unsupported

_SECONDS = 60


def write_check(check: Check, *, negated: bool = False) -> dict[str, Any] | None:
    """
    Return the assertion that is *check*, *negated* by its grader or not; None where AgentV has none like it.
    """
    if isinstance(check, Script) and not is_python(check):
        row: dict[str, Any] = {"type": "script", "command": [quoted(word) for word in check.command]}
        row |= {"cwd": quoted(check.folder)} if check.folder else {}
        row |= {"timeout": check.timeout} if check.timeout != _SECONDS else {}
        return row | ({"config": thaw(check.config)} if check.config else {})
    said = said_of(check, negated=negated)
    if said is None or "agentv" not in said.systems:
        return None
    row = {key: each_text(value, quoted) for key, value in said.data.items()}
    if isinstance(check, Matches):
        flags = _FLAGS.match(check.pattern)  # a pattern of JavaScript has none in it
        plain = quoted(without_spaces(check.pattern[flags.end() if flags else 0 :]))
        row |= {"value": plain, "flags": flags[1]} if flags else {"value": plain}
    return row


_FLAGS = re.compile(r"\(\?(i?m?s?)\)(?=.)", re.DOTALL)


KIND = "llm-rubric"
_OPERATORS = ("correctness", "contradiction")

KEPT = ("description", "version", "author", "license", "tags", "metadata", "governance", "requires")
"""Free data of a suite that has a place in a file."""

_HOLDS = {
    Case: Held(
        {"id", "rubric", "input", "reference", "messages", "images", "context", "variables", "judge", "judges", "tags",
         "metadata", "place", "columns", "providers", "unasked"},
        {
            "output": "AgentV's tests do not have a fixed response",
            "tool_calls": "AgentV's tests do not have the tool calls of a fixed response",
            "file_changes": "AgentV's tests do not have the file changes of a fixed response",
            "metrics": "AgentV's tests do not have the metrics of a fixed response",
            "server": "AgentV's tests do not have an MCP server",
            "cell": "AgentV's tests do not have a place in a matrix",
        },
    ),
    Rubric: Held(
        {"name", "criteria", "text", "tree", "threshold", "prompt", "negate", "binding", "max_steps", "degenerate"},
        {"": "AgentV's rubrics have no such field"},
    ),
    Criterion: Held(
        {"text", "id", "answer", "weight", "required", "min_score", "polarity"},
        {"": "AgentV's criteria have no such field"},
    ),
    Judge: Held({"model", *SETTINGS}, {"": f"a file configures of a judge only {', '.join(SETTINGS)}"}),
}  # fmt: skip


@frozen
class Writing:
    """The threshold of a case, and the losses, which its graders are written with."""

    threshold: float
    losses: Losses


def write_rubric(rubric: Rubric, judges: Mapping[str, Any], losses: Losses) -> list[Any]:
    """
    Return the graders of *rubric*, of a case; *judges* are provider ids by criterion.

    The list is empty, with the reasons noted, where AgentV can hold nothing of it.
    """
    held = _held(rubric, losses)
    if held is None:
        return []
    if rubric.negate:
        losses.add("rubric.negate", "AgentV turns over single graders, not tests; as it is, it would say the opposite")
        return []
    if rubric.degenerate != ("fail" if any(map(asks, rubric.judged)) else "judge"):
        losses.add("rubric.degenerate", "AgentV's judges do not see an empty answer, and its checks do")
    writing = Writing(THRESHOLD if rubric.threshold is None else rubric.threshold, losses)
    if rubric.threshold is None:
        losses.add("rubric.threshold", f"AgentV asks for a score; {THRESHOLD} is written for the judge's own flag")
    if _is_judged(held) and not any(judges.values()):
        return _alone(held, writing)
    losses.fields(averaged(rubric), "rubric.")
    held = _gathered(held, judges, writing.threshold, losses, "rubric")
    for name in ("name", "prompt", "binding"):
        if getattr(held, name) != getattr(Rubric(), name):
            losses.add(f"rubric.{name}", "a test with several graders has none of its own")
    return _graders(held.criteria, judges, writing)


# -- what can be held --------------------------------------------------------------------------------------


def _held(rubric: Rubric, losses: Losses) -> Rubric | None:
    """Return *rubric* without the criteria that AgentV cannot hold; None if nothing is left that counts."""
    kept = []
    for criterion in rubric.judged:
        inner = _held(criterion.answer, losses) if isinstance(criterion.answer, Rubric) else None
        if why := _why(criterion, inner):
            losses.add(criterion.id, f"{why}; it is left out")
        elif criterion.polarity == "guard":
            kept.append(_turned_over(criterion, rubric))
            losses.add(f"{criterion.id}.polarity", "the guard is written as a required grader that is turned over")
        else:
            kept.append(criterion if inner is None else evolve(criterion, answer=inner))
    if not any(criterion.weight for criterion in kept):
        return None
    return evolve(rubric, criteria=kept) if rubric.criteria else rubric


def _why(criterion: Criterion, inner: Rubric | None) -> str:
    """Return why AgentV cannot hold *criterion*, of whose nested rubric it can hold *inner*; empty if it can."""
    answer = criterion.answer
    if criterion.polarity == "penalty":
        return "AgentV has no penalties, which take points off"
    if criterion.polarity == "guard" and isinstance(answer, Rubric):
        return "AgentV has no guards that are rubrics"
    match answer:
        case Rubric():
            return "" if inner is not None else "nothing is left of it to grade by"
        case Unsupported():
            return f"what the grader {answer.type!r} says is not kept"
        case Check():
            return "" if write_check(answer) else f"AgentV has no check like {type(answer).__name__}"
        case Levels():
            fits = answer.ranges and (answer.low, answer.high) == (0, HIGHEST)
            return "" if fits else f"AgentV's bands run from 0 to {HIGHEST}, with a text each"
        case YesNo() | Unit():
            return ""
        case _:
            return f"AgentV's judges give no answer like {type(answer).__name__}"


def _turned_over(guard: Criterion, rubric: Rubric) -> Criterion:
    """Return a *guard* of *rubric* as a nested rubric that is turned over, and must meet the score of the guard."""
    least = rubric.gate_of(guard) or 1.0
    if isinstance(check := guard.answer, Check):
        inner = Rubric(threshold=None, criteria=[Criterion(str(check), answer=check)], negate=True)
        return evolve(guard, text=guard.id, answer=inner, polarity="satisfy", required=False, min_score=least)
    item = evolve(guard, polarity="satisfy", required=False, min_score=None, weight=1)
    inner = Rubric(guard.id, criteria=[item], threshold=least, prompt=rubric.prompt, negate=True)
    return Criterion(guard.id, id=guard.id, answer=inner, weight=guard.weight, min_score=least)


def _gathered(rubric: Rubric, judges: Mapping[str, Any], threshold: float, losses: Losses, where: str) -> Rubric:
    """
    Return *rubric* with nested rubrics in the place of the criteria that a judge answers by themselves.

    Beside checks and sets AgentV has items in a grader, and no items. Those without a judge of their own are one
    grader, which weighs as much as they do together, so that the score stays what it is.
    """
    bare = [c for c in rubric.judged if not isinstance(c.answer, Check | Rubric)]
    together = [c for c in bare if not isinstance(c.answer, Unit) and not judges.get(c.id)]
    if not bare:
        return rubric
    criteria: list[Criterion] = []
    for criterion in rubric.judged:
        if criterion not in bare:
            criteria.append(criterion)
        elif criterion not in together or len(together) == 1:
            criteria.append(_grading([criterion], criterion.id, rubric.prompt, threshold))
        elif criterion is together[0]:
            taken = {other.id for other in rubric.judged if other not in together}
            id_ = next(name for n in count(1) if (name := KIND if n == 1 else f"{KIND}-{n}") not in taken)
            criteria.append(_grading(together, id_, rubric.prompt, threshold))
    losses.add(f"{where}.criteria", "those that a judge answers are written, whole, as graders and items of graders")
    return evolve(rubric, text="", criteria=criteria, prompt=None)


def _grading(criteria: Sequence[Criterion], id: str, prompt: str | None, threshold: float) -> Criterion:
    """Return *criteria*, items or one judgement, as a nested rubric that weighs as much as they do together."""
    weight = sum(criterion.weight for criterion in criteria)
    if not weight or len(criteria) == 1:  # a grader's criteria must count in it
        criteria = [evolve(criterion, weight=1) for criterion in criteria]
    (first, *_) = criteria
    gate = None
    if isinstance(first.answer, Unit):  # a judgement has no gate of its own, its grader has
        gate = (first.min_score or threshold or None) if first.required or first.min_score else None
        criteria = [evolve(first, required=False, min_score=None)]
    inner = Rubric(id, criteria=criteria, threshold=threshold, prompt=prompt, binding=binds(criteria))
    return Criterion(id, id=id, answer=inner, weight=weight, min_score=gate)


def _is_judged(rubric: Rubric) -> bool:
    """True if *rubric* is one grader that a judge answers: items, or one judgement."""
    answers = [criterion.answer for criterion in rubric.judged]
    return all(isinstance(a, YesNo | Levels) for a in answers) or (len(answers) == 1 and isinstance(answers[0], Unit))


def _alone(rubric: Rubric, writing: Writing) -> list[Any]:
    writing.losses.fields(averaged(rubric), "rubric.")
    if rubric.binding:
        writing.losses.add("rubric.binding", "it has no effect on the rubric of a case")
    texts = [Criterion(c.text, id=f"rubric-{n}", required=True) for n, c in enumerate(rubric.criteria, 1)]
    if rubric.name == KIND and rubric.prompt is None and not rubric.max_steps and texts == [*rubric.criteria]:
        return [quoted(criterion.text) for criterion in rubric.criteria]
    return [_judged(rubric, rubric.name or KIND, None, writing)]


# -- graders ---------------------------------------------------------------------------------------------


def _graders(criteria: Sequence[Criterion], judges: Mapping[str, Any], writing: Writing) -> list[Any]:
    written = []
    for criterion, name in zip(criteria, _names(criteria), strict=True):
        row, provider = _grader(criterion, name, writing), judges.get(criterion.id)
        written.append({**row, "provider": provider} if provider else row)
    return written


def _names(criteria: Sequence[Criterion]) -> list[str]:
    """Return the names of the graders: their own, where reading them makes the same ids of those."""
    own = []
    for criterion in criteria:
        answer = criterion.answer
        if isinstance(answer, Check):
            own.append(str((write_check(answer) or {})["type"]))
        else:
            own.append((answer.name if isinstance(answer, Rubric) else "") or criterion.id)
    ids = [criterion.id for criterion in criteria]
    return own if [grader.name for grader in renamed([Grader(name, YesNo()) for name in own])] == ids else ids


def _grader(criterion: Criterion, name: str, writing: Writing) -> dict[str, Any]:
    """Return one criterion of a case's rubric, a check or a nested rubric, as a grader."""
    losses, answer = writing.losses, criterion.answer
    if name != _called(name):
        losses.add(f"{name}.id", f"it is read as {_called(name)!r}")
    row = _nested_or_check(criterion, name, writing)
    text = criterion.id if isinstance(answer, Rubric) else str(answer)
    if criterion.text != text:
        losses.add(f"{criterion.id}.text", "AgentV's graders have names, and no texts")
    if criterion.polarity != "satisfy":
        losses.add(f"{criterion.id}.polarity", "AgentV's graders have none; items do")
    losses.fields(criterion, f"{criterion.id}.")
    if criterion.weight != 1:
        row["weight"] = criterion.weight
    return row | _gate(criterion, row, writing)


def _gate(criterion: Criterion, row: Mapping[str, Any], writing: Writing) -> dict[str, Any]:
    if criterion.min_score is None:
        if criterion.required and isinstance(criterion.answer, Rubric):
            writing.losses.add(f"{criterion.id}.required", "it gates at the case's threshold, not at its rubric's own")
        return {"required": True} if criterion.required else {}
    judged = "value" in row and row["type"] == KIND
    if judged and row.get("min_score", writing.threshold) != criterion.min_score:
        writing.losses.add(f"{criterion.id}.min_score", "AgentV has one value for a grader's own pass and its gate")
    plain = judged and criterion.min_score == writing.threshold and "min_score" not in row
    return {"required": True} if plain else {"required": True, "min_score": criterion.min_score}


def _nested_or_check(criterion: Criterion, name: str, writing: Writing) -> dict[str, Any]:
    answer = criterion.answer
    if not isinstance(answer, Rubric):
        return _check(answer, name)
    only = answer.criteria[0].answer if len(answer.criteria) == 1 else None
    if isinstance(only, Check) and answer == Rubric(
        threshold=None, criteria=[Criterion(str(only), answer=only)], negate=True
    ):  # no more than one check, turned over
        return {**_check(only, name, negated=True), "negate": True}
    writing.losses.fields(averaged(answer), f"{criterion.id}.")
    row = _judged(answer, name, criterion.id, writing) if _is_judged(answer) else _set(answer, name, writing)
    return {**row, "negate": True} if answer.negate else row


def _check(answer: Answer, name: str, *, negated: bool = False) -> dict[str, Any]:
    row = write_check(cast("Check", answer), negated=negated) or {}
    return row if row["type"] == name else {"metric": quoted(name), **row}


def _set(rubric: Rubric, name: str, writing: Writing) -> dict[str, Any]:
    row: dict[str, Any] = {} if name == "assert-set" else {"metric": quoted(name)}
    row["type"] = "assert-set"
    rubric = _gathered(rubric, {}, 1.0 if rubric.threshold is None else rubric.threshold, writing.losses, name)
    if rubric.name != _called(name):
        writing.losses.add(f"{name}.name", f"the rubric {rubric.name!r} is called {_called(name)!r}")
    if rubric.threshold is not None:
        row["threshold"] = rubric.threshold
    if rubric.prompt is not None:
        writing.losses.add(f"{name}.prompt", "a set has none of its own")
    if rubric.binding != binds(rubric.criteria):
        writing.losses.add(f"{name}.binding", "a gate in a grader always fails the case")
    return {**row, "assert": _graders(rubric.criteria, {}, writing)}


def _judged(rubric: Rubric, name: str, within: str | None, writing: Writing) -> dict[str, Any]:
    """Return a rubric of items, or of one judgement; *within* is its id among several graders, None for one alone."""
    (first, *others) = rubric.judged
    single = isinstance(first.answer, Unit) and not others
    called = _called(first.id if single else name)
    if called != rubric.name:
        writing.losses.add(f"{name}.name", f"the rubric {rubric.name!r} is called {called!r}")
    row: dict[str, Any] = {"type": KIND} if called == KIND else {"metric": quoted(called), "type": KIND}
    if rubric.max_steps:  # a judge with tools
        row = {"metric": quoted(called), "type": "agent-rubric", "max_steps": min(rubric.max_steps, MOST_STEPS)}
        if rubric.max_steps > MOST_STEPS:
            writing.losses.add(f"{name}.max_steps", f"AgentV allows {MOST_STEPS} at most")
    if rubric.prompt is not None and (prompt := write_prompt(rubric.prompt)) is not None:
        row["prompt"] = prompt
    elif rubric.prompt is not None:
        writing.losses.add(f"{name}.prompt", "it shows what AgentV's prompts do not")
    if single:
        return row | _judgement(rubric, first, writing)
    row["value"] = [_item(criterion, writing) for criterion in rubric.criteria]
    if within is not None and rubric.threshold != writing.threshold:
        if rubric.threshold:
            row["min_score"] = rubric.threshold
        else:
            writing.losses.add(f"{name}.threshold", f"items pass from a score above 0, here {writing.threshold:g}")
    if within is not None and rubric.binding != binds(rubric.criteria):
        writing.losses.add(f"{name}.binding", "a gate in a grader always fails the case")
    return row


def _called(name: str) -> str:
    """Return *name* as it is read: white space between words is one space."""
    return " ".join(name.split()) or KIND


def _judgement(rubric: Rubric, criterion: Criterion, writing: Writing) -> dict[str, Any]:
    plain = evolve(criterion, text="plain", id="plain", min_score=None) == Criterion("plain", answer=Unit(flag=True))
    if rubric.text or not plain or rubric.threshold not in (writing.threshold, None):
        writing.losses.add(criterion.id, "AgentV's judge has a pass flag beside its score, one threshold and no more")
    gate = {} if criterion.min_score is None else {"min_score": criterion.min_score}
    return {"value": quoted(criterion.text), **gate}


# -- items -----------------------------------------------------------------------------------------------


def _item(criterion: Criterion, writing: Writing) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": quoted(criterion.id),
        "outcome": quoted(criterion.text),
        "required": criterion.required,
    }
    if criterion.weight != 1:
        row["weight"] = criterion.weight
    if criterion.min_score is not None:
        row["min_score"] = criterion.min_score
    if criterion.polarity in _OPERATORS:
        row["operator"] = criterion.polarity
    if isinstance(criterion.answer, Levels):
        if criterion.answer.has_between:
            why = "AgentV reads anchors as bands: a text holds up to the next one"
            writing.losses.add(f"{criterion.id}.levels", why)
        row["score_ranges"] = {band.low: quoted(band.text) for band in criterion.answer.ranges}
    writing.losses.fields(criterion, f"{criterion.id}.")
    return row


_TAKEN = ("input", "expected_output")


def write(suite: Suite) -> tuple[dict[str, Any], list[str]]:
    """
    Return *suite* as the plain data of an AgentV file, and what it cannot hold: a sentence each.

    Read again, it is the same suite, but for what the sentences name.
    """
    losses = Losses(_HOLDS, "{}: {}{}", whose="suite")
    return file_of(suite, losses), losses.sentences


def file_of(suite: Suite, losses: Losses) -> dict[str, Any]:
    """Return *suite* as the plain data of a file, with what it cannot hold added to *losses*."""
    data: dict[str, Any] = {"name": suite.name} if suite.name else {}
    for key, value in thaw(suite.metadata).items():
        if key in KEPT:
            data[key] = value
        else:
            losses.add(f"metadata {key!r}", "an AgentV file has no place for it")
    if provider := provider_of(suite.judge, losses):
        data["default_test"] = {"options": {"provider": provider}}
    tests = [_test(case, losses.of(f"case {case.id!r}")) for case in suite]
    data["tests"] = [test for test in tests if test is not None]
    return data


def _test(case: Case, losses: Losses) -> dict[str, Any] | None:
    """Return *case* as a test; None, with the loss noted, where nothing is left to grade it by."""
    if (lost := next((one for one in unsupported_of(case.rubric) if one.otherwise != "skip"), None)) is not None:
        losses.add("rubric", without(lost))
        return None
    if case.turns:
        losses.add("turns", "conversations are read from AgentV's files and not written, so the test is left out")
        return None
    losses.fields(case)
    judges = {id_: provider_of(judge, losses, f"judges.{id_}") for id_, judge in case.judges.items()}
    graders = write_rubric(case.rubric, judges, losses)
    if not graders:
        losses.add("rubric", "nothing is left of it to grade by, so the test is left out")
        return None
    threshold = THRESHOLD if case.rubric.threshold is None else case.rubric.threshold
    provider = provider_of(case.judge, losses)
    context = case.context
    if context and any(criterion.text == context for criterion in case.rubric.criteria):
        losses.add("context", "the rubric says the same, and is shown once")
        context = ""
    row = {
        "id": quoted(case.id),
        "criteria": quoted(context),
        "input": _asked(case, losses),
        "expected_output": quoted(case.reference),
        "vars": _variables(case, losses),
        "threshold": None if threshold == THRESHOLD else threshold,
        "options": {"provider": provider} if provider else {},
        "assert": graders,
        "tags": [quoted(tag) for tag in case.tags],
        "metadata": thaw(case.metadata),
    }
    return {key: value for key, value in row.items() if value not in (None, "", [], {})}


def _asked(case: Case, losses: Losses) -> Any:
    if case.messages and case.input:
        losses.add("input", "it is written as the last message")
    elif len(case.messages) == 1 and case.messages[0].role == "user":
        losses.add("messages", "a lone message of the user's is read as the input")
    chat: list[dict[str, Any]] = [{"role": m.role, "content": quoted(m.content)} for m in case.messages]
    if not chat and not case.images:
        return quoted(case.input)
    if case.input or not chat:
        chat.append({"role": "user", "content": quoted(case.input)})
    if case.images:
        last = next((message for message in reversed(chat) if message["role"] == "user"), None)
        if last is None:
            losses.add("images", "there is no message of the user to hold them")
        else:
            text = [{"type": "text", "value": last["content"]}] if last["content"] else []
            last["content"] = [*({"type": "image", "value": image} for image in case.images), *text]
    return chat


def _variables(case: Case, losses: Losses) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in thaw(case.variables).items():
        if name.startswith("vars."):
            continue
        if name in _TAKEN or not isinstance(value, str):
            losses.add(f"variables.{name}", "AgentV's variables of this name are something else, or it is no text")
        else:
            found[name] = quoted(value)
    return found
