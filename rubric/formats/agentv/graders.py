"""
Graders: from a list such as `assert`, `assertions` or `evaluators` to what decides, and how much it counts.

Each type and what decides it are in docs/how-to/from_agentv.md. `not-` before a type, and `negate: true`, turn the
outcome over. Providers are read as models: no address, key or header is taken from a file. All graders of a case
together are its rubric (`group`). What is judged is the grader's `value` (before generation 2: `criteria`,
`rubrics`); without one, and before generation 2 only, what the case says a good answer does.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve, frozen

from rubric import Criterion, DefinitionError, Holds, Judge, Levels, Rubric, Unit, YesNo
from rubric.embed import Answer, Check, Cursor, fields, shorten
from rubric.formats.agentv.checks import CHECKS, read_check, unknown
from rubric.formats.agentv.prompts import Prompt, read_prompt
from rubric.formats.agentv.scope import THRESHOLD, Entry, Scope, Task
from rubric.formats.assertions.table import find_kind
from rubric.formats.includes import is_reference, may_be_read, read_document_at, read_text_at
from rubric.formats.keys import keys_of, words_of
from rubric.formats.model_names import SETTINGS, litellm_name
from rubric.formats.python import python_script
from rubric.formats.rubric_items import are_items, free_name, is_item, read_items
from rubric.values import Script, Unsupported


@frozen
class Grader:
    """
    One grader of a case.

    Args:
        name: Of its own, or its type.
        answer: A rubric for a judge, a nested one for a set, or a check.
        weight: How much it counts among the case's graders.
        gate: The score that it must reach, or the case fails; None: none.
        common: Whether its gate is the case's own threshold.
        judge: Its judge; None: that of the case.
        plain: Whether its rubric can be the case's.
        decides: Whether its own verdict must be a pass where it is the case's only grader, as that of a set.
        variables: Named texts that its prompt shows.
    """

    name: str
    answer: Answer
    weight: float = 1
    gate: float | None = None
    common: bool = False
    judge: Judge | None = None
    plain: bool = False
    decides: bool = False
    variables: Mapping[str, str] = {}


def name_apart(graders: Sequence[Grader]) -> Iterator[Grader]:
    """Yield *graders* with names that differ: the second `llm-rubric` is `llm-rubric-2`."""
    taken = {grader.name for grader in graders}
    seen: set[str] = set()
    for grader in graders:
        name = grader.name if grader.name not in seen else free_name(grader.name, seen | taken)
        seen.add(name)
        yield evolve(grader, name=name)


def as_criterion(grader: Grader) -> Criterion:
    """Return *grader* as a criterion of the case, or of the set that it belongs to."""
    check = isinstance(grader.answer, Check)
    text = str(grader.answer) if check else grader.name
    return Criterion(
        text,
        id=grader.name,
        answer=grader.answer,
        weight=grader.weight,
        required=grader.gate is not None and check,
        min_score=None if check and grader.common else grader.gate and float(grader.gate),
    )


def _without_rubric(grader: Grader) -> Criterion | None:
    """Return the only item of *grader* as a criterion of the case, if it means the same there; else None."""
    rubric = grader.answer
    if not isinstance(rubric, Rubric) or len(rubric.criteria) != 1 or grader.gate is not None:
        return None
    (item,) = rubric.criteria
    bare = Rubric(rubric.name, criteria=[item], threshold=rubric.threshold, binding=binds([item]))
    # A level is held against the threshold, where a gate has no other value, and the case's may differ.
    same = isinstance(item.answer, YesNo) or (isinstance(item.answer, Levels) and not item.required)
    unnamed = item.id in ("rubric-1", grader.name)
    return evolve(item, id=grader.name, weight=grader.weight) if same and unnamed and rubric == bare else None


def binds(criteria: Sequence[Criterion]) -> bool:
    """True if a gate among *criteria* must fail the case too: AgentV documents that it fails the entire eval."""
    return any(
        c.answer.binding if isinstance(c.answer, Rubric) else c.required or c.min_score is not None for c in criteria
    )


def group(graders: Sequence[Grader], task: Task) -> Rubric:
    """Return the rubric of a case: that of its only grader, or one with a criterion for each."""
    borderline = task.borderline if task.borderline and task.borderline <= task.threshold else None
    if len(graders) == 1 and graders[0].plain and isinstance(graders[0].answer, Rubric):
        return evolve(graders[0].answer, threshold=task.threshold, borderline=borderline, binding=False)
    criteria = [_without_rubric(grader) or as_criterion(grader) for grader in name_apart(graders)]
    if len(graders) == 1 and graders[0].decides:
        criteria = [evolve(criteria[0], required=True)]
    # Only a judge can be talked round by an empty answer: where none is asked, the checks decide.
    rubric = Rubric(criteria=criteria, threshold=task.threshold, borderline=borderline)
    return rubric if any(map(asks, criteria)) else evolve(rubric, degenerate="judge")


def asks(criterion: Criterion) -> bool:
    """True if a judge is asked for *criterion*, or for one in its rubric."""
    answer = criterion.answer
    return any(map(asks, answer.judged)) if isinstance(answer, Rubric) else not isinstance(answer, Check)


STEPS, MOST_STEPS = 10, 50
"""How often the judge of an `agent-rubric` may call tools, and the most that a file may allow."""

EMPTY = Unsupported("a grader without anything to judge by")
"""Alone it is none, as in AgentV, and the case's criteria are judged; beside others the case is ungraded."""

ITEMS = ("rubrics", "rubric")
"""Types of items only, before generation 2."""

FREE = ("llm-grader", "llm_grader", "llm_judge", "llm-judge")
"""Types of one judgement, before generation 2; with items they are like the others."""

_OF_JUDGED = keys_of("agentv", "grader", "judged")


def rubric_of(name: str, items: Sequence[Criterion], task: Task, threshold: float | None = None) -> Rubric:
    """Return the rubric of *items*; without a *threshold* of its own, with that of the case."""
    least = task.threshold if threshold is None else threshold
    return Rubric(name, criteria=items, threshold=least, binding=binds(items))


def read_judged(entry: Entry) -> Grader | None:
    """Return the grader without what it counts; None where there is nothing to judge by, which is noted."""
    entry.check_keys(_OF_JUDGED)
    at = entry.at
    if "target" in at and entry.scope.is_current:
        at["target"].error("`target` is not a field of a grader any more; use `provider` instead", key=True)
    said = at.find("prompt") or at["rubric_prompt"]
    prompt = read_prompt(said, entry.scope)
    missing = prompt.missing or ("a transform" if at["transform"].value else "")
    field, judged = _value(entry)
    given = prompt.lost or bool(prompt.missing or prompt.text or prompt.template)
    # Before generation 2 a grader without a prompt judges by the case's criteria.
    alone = entry.kind not in ITEMS and (given or not entry.scope.is_current)
    if judged.value in (None, []) and not alone:
        entry.warn(f"there is nothing to judge by, no `{field}` and no `prompt`: beside other graders it is ungraded")
        return Grader(entry.name, EMPTY)
    if missing:
        return _leave_undecided(entry, f"{entry.kind} with {missing}")
    read = ("max_steps",) if entry.kind == "agent-rubric" else ()
    for unused in (key for key in ("max_steps", "preprocessors") if key in at and key not in read):
        at[unused].once(f"`{unused}` is not used: the judge has no tools, and reads plain text")
    items = _items(entry, judged)
    if items is None and isinstance(judged.value, str) and fields.names_a_file(judged.value):
        judged.error(f"{judged.value!r} looks like the path of a file, and is not text; write its criteria here")
    if items is None and entry.kind in ITEMS:
        entry.warn("AgentV skips a text that is not a list; here it is judged as one criterion")
    return _free(entry, prompt, judged) if items is None else _judge_items(entry, prompt, items)


def _leave_undecided(entry: Entry, why: str) -> Grader:
    entry.warn(f"{why} is not supported: the case is ungraded")
    return Grader(entry.name, Unsupported(why))


def _value(entry: Entry) -> tuple[str, Cursor]:
    """Return the field that holds what is judged, and what it holds."""
    at = entry.at
    if entry.scope.is_current:
        for key in (key for key in ("criteria", "rubrics", "rubric_item") if key in at):
            at[key].error(f"`{key}` is not a field of {entry.kind} any more; use `value` instead", key=True)
        return "value", at["value"]
    found = at.find("criteria", "rubrics", "value")
    if found is not None:
        return found.step, found
    if entry.kind in ITEMS and is_item(at.value):
        return "", at.holding({key: part for key, part in at.value.items() if key not in ("type", "name", "metric")})
    usual = "rubrics" if entry.scope.generation == "agentv-1" else "criteria"
    return usual, at[usual]


def _items(entry: Entry, judged: Cursor) -> list[Criterion] | None:
    """Return the items that a grader judges; None where it is a free text, or free data."""
    at, value = entry.at, judged.value
    if isinstance(value, str) and "score_ranges" in at:
        own = {key: at.value[key] for key in ("score_ranges", "min_score", "operator") if key in at}
        return read_items([at.holding({"outcome": value, **own})], entry.scope)
    if at.parent is not None and at.parent.step == "rubrics":  # inline `rubrics` of a case: they are the list itself
        judged = at.parent.holding(value)
    if is_item(value):
        return read_items([judged], entry.scope)
    if isinstance(value, list) and (are_items(value) or not entry.scope.is_current):
        return read_items([*judged], entry.scope)
    return None


def _judge_items(entry: Entry, prompt: Prompt, items: list[Criterion]) -> Grader | None:
    if prompt.text:
        entry.warn("items say what is judged; a prompt without a {{ variable }} is not used", "prompt")
    if not items:
        return None
    least = None if "score_ranges" in entry.at else entry.least()
    rubric = rubric_of(entry.name, items, entry.task, least)
    return _with_prompt(entry, rubric, prompt, plain=least is None)


def _free(entry: Entry, prompt: Prompt, judged: Cursor) -> Grader | None:
    """Return a grader of one judgement. The judge's own pass flag can fail it; without one the threshold decides."""
    if isinstance(judged.value, bool | int | float):
        judged.text()
        return None
    scope, value, text = entry.scope, judged.value, prompt.text
    if not text and is_reference(value):
        text = (read_text_at(scope.fill(value, judged), judged) or "").strip()
    elif not text and isinstance(value, str):
        text = scope.fill(value.strip(), judged)
    elif not text and value is not None:
        text = json.dumps(scope.fill_all(judged), ensure_ascii=False, indent=2, default=str)
    text = text or entry.task.criteria
    if not text and prompt.template is None and not prompt.lost:
        return _leave_undecided(entry, f"{entry.kind} without criteria")
    return _with_prompt(entry, _single(entry, text or "As the prompt says"), prompt)


def _single(entry: Entry, text: str) -> Rubric:
    """Return the rubric of one judgement, whose flag can fail it."""
    criterion = Criterion(text, id=entry.name, answer=Unit(flag=True), min_score=entry.least())
    return Rubric(entry.name, criteria=[criterion], threshold=entry.task.threshold)


def _with_prompt(entry: Entry, rubric: Rubric, prompt: Prompt, *, plain: bool = True) -> Grader:
    return Grader(entry.name, evolve(rubric, prompt=prompt.template), plain=plain, variables=prompt.variables)


# -- checks ------------------------------------------------------------------------------------------------

_SCRIPTS = ("script", "code", "code-grader", "code_grader", "code_judge", "code-judge")
_OF_ALL, _OF_SCRIPTS = keys_of("agentv", "grader", "all"), keys_of("agentv", "grader", "scripts")


def check_for(entry: Entry) -> Check:
    """Return the check of *entry*: code, a program, a function of the caller's, or one that is not supported."""
    at = entry.at
    if entry.kind in _SCRIPTS:
        return _script(entry)
    if entry.kind == "python" and (function := at.loading.functions.get(str(at["value"].value))):
        return Holds(function)
    if entry.kind == "python" and isinstance(at["value"].value, str):
        entry.check_keys(_OF_ALL | {"value", "threshold", "config"})
        bar = at["threshold"].number() if at.has("threshold") else None
        return python_script(entry.scope.text(at["value"]), threshold=bar)  # its code is inline, as in AgentV
    row = None if entry.kind in CHECKS else find_kind(entry.kind)
    if entry.kind not in CHECKS and (row is None or "agentv" not in row.systems):
        return unknown(entry, (*ITEMS, *FREE, *SETS, "llm-rubric"))
    read, keys = CHECKS[entry.kind] if row is None else (read_check, row.names("agentv"))
    entry.check_keys(_OF_ALL | keys)
    return read(entry)


def _script(entry: Entry) -> Check:
    """Return the program; it is handed `config`, and the fields that AgentV passes through."""
    at = entry.at
    given = at["script"] if "script" in at and "command" not in at else at["command"]
    command = entry.scope.fill_all(given)
    if isinstance(command, str):
        try:
            command = shlex.split(command)
        except ValueError as problem:
            raise DefinitionError("command", f"{problem}; write it as a list") from None
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        message = f"expected the program and its arguments, as a list or a text; got {shorten(repr(given.value))}"
        raise DefinitionError(given.step, message)
    config = at["config"].value
    extra = {str(key): value for key, value in at.value.items() if key not in _OF_ALL and key not in _OF_SCRIPTS}
    extra |= {"config": config} if config is not None and not isinstance(config, Mapping) else config or {}
    folder = entry.scope.text(at["cwd"]) if at.has("cwd") else ""
    if at.loading.trail and at.loading.folder is not None:  # in a file that another includes, paths start at its folder
        folder = str(at.loading.folder / folder)
    limits = {"timeout": at["timeout"].value} if at.has("timeout") else {}
    return Script(command, folder=folder, config=extra, **limits)


# -- judges ------------------------------------------------------------------------------------------------


def read_judge(at: Cursor, scope: Scope) -> Judge | None:
    """Return the judge that a grader, or options, name; None where they name none that is known here."""
    keys = ("model", "provider") if scope.is_current else ("model", "provider", "target")
    named = at.find(*keys)
    if named is None:
        if at.has("temperature"):
            at["temperature"].once("`temperature` is not used: the grader names no model")
        return None
    name = named["id"].value if isinstance(named.value, Mapping) else named.value
    if not isinstance(name, str) or not name:
        named.refuse("the id of a provider, such as openai:gpt-5")
        return None
    settings = {**named.under("config").value, **at.value}
    given = {key: settings[key] for key in SETTINGS if settings.get(key) is not None}
    shown = scope.fill(name, named)
    try:
        if shown in scope.targets.known:
            target = scope.targets.provider_at(named.holding(shown), scope.fill)
            if not target.model:
                why = target.missing or "it is an address"
                named.once(f"{shorten(repr(shown), 60)} cannot judge here: {why}; the judge of the run takes its place")
                return None
            return Judge(
                target.model, **{**{key: target.settings[key] for key in SETTINGS if key in target.settings}, **given}
            )
        return Judge(litellm_name(shown), **given)
    except DefinitionError as problem:
        if problem.field in given:
            named.error(problem)
        else:
            named.warn(f"no model is known as {shorten(name, 60)!r}: the judge of the run takes its place")
        return None


# -- sets --------------------------------------------------------------------------------------------------

SETS = ("assert-set", "composite")
"""The types of sets."""

LISTS = ("assert", "assertions", "evaluators", "graders")
"""Where a set may have its graders."""

_KNOWN = keys_of("agentv", "grader", "set")


def read_set(entry: Entry, children: Sequence[Grader]) -> Grader | None:
    """Return the set *entry* of *children*: an `assert-set` by its threshold, a `composite` by its aggregator."""
    entry.check_keys(_KNOWN)
    if not children:
        entry.warn("there is no grader in it: beside other graders it is ungraded")
        return Grader(entry.name, EMPTY)
    children, own, threshold = [*name_apart(children)], entry.at.find("threshold"), None
    if entry.kind == "composite":
        aggregator, threshold = entry.at["aggregator"], THRESHOLD
        named = isinstance(aggregator.value, Mapping)
        kind = aggregator["type"].value if named else aggregator.value
        if aggregator.value and not (named and kind in ("weighted_average", "threshold")):
            return _leave_undecided(entry, f"composite with the aggregator {shorten(str(kind), 60)}")
        own = aggregator.find("threshold") or own
        children = [_member(child, aggregator, entry) for child in children]
        if kind == "threshold":
            children = [_by_verdict(child) for child in children]
    if own is not None:
        threshold = own.number(0, 1)
    criteria = [as_criterion(child) for child in children]
    judges = {child.judge for child in children}
    if len(judges) > 1:
        entry.warn("its graders name several judges; the case's judge takes them all")
    return Grader(
        entry.name,
        Rubric(entry.name, criteria=criteria, threshold=threshold, binding=binds(criteria)),
        judge=next(iter(judges)) if len(judges) == 1 else None,
        decides=entry.kind != "composite" or own is not None,
        variables={name: text for child in children for name, text in child.variables.items()},
    )


def _member(child: Grader, aggregator: Cursor, entry: Entry) -> Grader:
    """Return *child* of a composite with the weight that the aggregator gives it; its own has no effect there."""
    weights = aggregator.under("weights")
    weight = weights[child.name].number(0) if weights.has(child.name) else 1
    if child.weight not in (1, weight):
        entry.warn(f"a composite has `weights` under `aggregator`; the `weight` of {child.name} itself is not used")
    return evolve(child, weight=1 if weight is None else weight)


def _by_verdict(child: Grader) -> Grader:
    """Return *child* with a score of 1 if it passes, else of 0; AgentV's usual threshold decides, not the case's."""
    answer = child.answer
    if not isinstance(answer, Rubric):
        answer = Rubric(child.name, criteria=[Criterion(str(answer), answer=answer)])
    threshold = answer.threshold if child.decides else THRESHOLD
    return evolve(child, answer=evolve(answer, all_or_nothing=True, threshold=threshold), weight=1)


# -- one grader --------------------------------------------------------------------------------------------

_REMOVED = words_of("agentv", "grader", "removed")
_FUTURE = keys_of("agentv", "grader", "future")


def read_graders(at: Cursor, scope: Scope, task: Task) -> list[Grader]:
    """Return the graders of a list; the texts among them together are one."""
    graders: list[Grader | None] = []
    entries = [*_entries(at)]
    texts = [entry for entry in entries if isinstance(entry.value, str) and entry.value.strip()]
    for entry in entries:
        if texts and entry is texts[0]:
            name, items = "llm-rubric" if scope.is_current else "rubrics", read_items(texts, scope)
            if items:
                graders.append(Grader(name, rubric_of(name, items, task), len(items), plain=True))
        elif isinstance(entry.value, Mapping):
            graders.append(_grader(entry, scope, task))
        elif not isinstance(entry.value, str):
            entry.refuse("a text, or a mapping with `type`")
        elif not entry.value.strip():
            entry.warn("an empty text is not a criterion: beside other graders it is ungraded")
            graders.append(Grader("empty", EMPTY))
    return [grader for grader in graders if grader is not None]


def _entries(at: Cursor) -> Iterator[Cursor]:
    """Yield the graders of a list, those of the templates that it includes among them."""
    for entry in at.listing("a list of graders"):
        if not isinstance(entry.value, Mapping) or entry.value.keys() != {"include"}:
            yield entry
        elif isinstance(name := entry["include"].value, str) and name.strip():
            whole = read_document_at(_template(name.strip(), entry), entry["include"])
            if whole is not None:
                yield from _entries(whole.find("assert", "assertions") or whole)
        else:
            entry["include"].refuse("the name of a template in .agentv/templates, or a path")


def _template(name: str, at: Cursor) -> str:
    """Return the file that `include: name` names: a name alone is one of a template of the project."""
    if name.startswith(".") or "/" in name or "\\" in name:
        return name
    found = [f".agentv/templates/{name}{suffix}" for suffix in (".yaml", ".yml")]
    return next((path for path in found if at.loading.folder and may_be_read(path, at.loading)), found[0])


GOAL = "trajectory:goal-success"


def _read_goal(entry: Entry) -> Grader:
    """Return the judgement of a run by its goal."""
    entry.check_keys(_OF_JUDGED)
    value = entry.scope.fill_all(entry.at["value"])
    goal = value.get("goal") if isinstance(value, Mapping) else value
    if not isinstance(goal, str) or not goal.strip():
        raise DefinitionError("value" if "value" in entry.at else "type", "expected a goal, as text or {goal: text}")
    text = f"By its calls of tools and its answer, the agent has reached this goal: {goal.strip()}"
    return Grader(entry.name, _single(entry, text), plain=True)


def _grader(at: Cursor, scope: Scope, task: Task) -> Grader | None:
    kind = at.value.get("type")
    if kind is None and is_item(at.value) and not scope.is_current:
        kind = ITEMS[0]
    if not isinstance(kind, str) or not kind.removeprefix("not-"):
        at.error("a grader needs a `type`, such as llm-rubric or contains")
        return None
    negate = kind.startswith("not-") != (at.value.get("negate") is True)
    kind = kind.removeprefix("not-")
    if scope.is_current and kind in _REMOVED:
        at["type"].error(f"AgentV has no type {kind!r} any more (unsupported); {_REMOVED[kind]}")
        return None
    if scope.is_current and kind in _FUTURE:
        at["type"].error(f"AgentV does not have promptfoo's type {kind!r} (unsupported); write `type: llm-rubric`")
        return None
    return at.built(_read_entry, at, scope, task, kind, negate=negate)


def _read_entry(at: Cursor, scope: Scope, task: Task, kind: str, *, negate: bool) -> Grader | None:
    own = at.find("metric", "name", "id")
    name = kind if own is None else " ".join(scope.text(own).split()) or kind
    entry = Entry(kind, name, at, scope, task)
    made = _read_kind(entry)
    return None if made is None else _count(made, entry, negate=negate)


def _read_kind(entry: Entry) -> Grader | None:
    """Return the grader without what it counts; None where there is nothing to grade by, which is noted."""
    at = entry.at
    if entry.kind in SETS:
        key = next((key for key in LISTS if key in at), "")
        return read_set(entry, read_graders(_with_config(at[key], entry), entry.scope, entry.task) if key else [])
    if entry.kind == "agent-rubric":
        return _with_tools(read_judged(entry), entry)
    if entry.kind in ("llm-rubric", *ITEMS, *FREE):
        return read_judged(entry)
    if entry.kind == GOAL:
        return _read_goal(entry)
    check = at.spared(check_for, entry)  # one test must not sink the file
    return Grader(entry.name, Unsupported(f"{entry.kind} that cannot be read") if check is None else check)


def _with_config(listed: Cursor, entry: Entry) -> Cursor:
    """Return the graders of a set with its `config`, below their own; those that read none are left as they are."""
    shared, read = entry.at.under("config").value, (*SETS, *_SCRIPTS, "javascript", "not-javascript")
    if not shared or not isinstance(listed.value, list):
        return listed
    return listed.holding([
        {**one, "config": {**shared, **(one.get("config") or {})}}
        if isinstance(one, Mapping) and one.get("type") in read and isinstance(one.get("config") or {}, Mapping)
        else one
        for one in listed.value
    ])  # fmt: skip


def _with_tools(made: Grader | None, entry: Entry) -> Grader | None:
    """Return *made* by a judge that may read what the candidate made, as often as `max_steps` says."""
    if made is None or not isinstance(made.answer, Rubric):
        return made
    steps = entry.at["max_steps"].number(1, MOST_STEPS) if entry.at.has("max_steps") else STEPS
    return made if steps is None else evolve(made, answer=evolve(made.answer, max_steps=int(steps)))


def _count(made: Grader, entry: Entry, *, negate: bool) -> Grader:
    """Return *made* with its weight, its gate and its judge, and turned over where that is wanted."""
    at, answer, judge = entry.at, made.answer, None
    weight = at["weight"].number(0) if at.has("weight") else made.weight
    if at.has("negate"):
        at["negate"].flag()
    gate = entry.gate()
    if negate and isinstance(answer, Rubric):
        answer = evolve(answer, negate=True)
    elif negate:
        answer = Rubric(threshold=None, criteria=[Criterion(str(answer), answer=answer)], negate=True)
    if isinstance(made.answer, Rubric):
        judge = read_judge(at, entry.scope) or made.judge
    else:
        for key in (key for key in ("provider", "target") if at.has(key)):
            entry.warn(f"{entry.kind} is not answered by a judge; `{key}` is not used", key)
    return evolve(
        made,
        answer=answer,
        weight=1 if weight is None else weight,
        gate=gate,
        common=at.value.get("required") is True and entry.least() is None,
        judge=judge,
        plain=made.plain and gate is None and not negate,
    )
