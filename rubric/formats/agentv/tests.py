"""
One test, as AgentV calls it: from its fields to a `Case`; and what the tests of a file share.

What a test says in its own words of a good answer (`criteria`, `expected_outcome`) is what a grader without criteria of
its own judges by; where there are others, it is `Case.context`, which the judge is shown beside the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from attrs import evolve, frozen

from rubric import Criterion, Judge, Message, Rubric
from rubric.embed import NOTHING, Cursor, candidate_of, fields, is_chat, shorten
from rubric.formats.agentv.graders import EMPTY, Grader, group, name_apart, read_graders, read_judge
from rubric.formats.agentv.messages import Asked, Template, read_asked, read_calls, read_text
from rubric.formats.agentv.prompts import read_prompt
from rubric.formats.agentv.scope import THRESHOLD, Scope, Task, as_text
from rubric.formats.agentv.targets import CONFIG
from rubric.formats.images import Attached
from rubric.formats.includes import describe_search, follow, is_reference, may_be_read, read_document_at, read_text_at
from rubric.formats.keys import part_of
from rubric.formats.providers import runs_of
from rubric.formats.recognition import GRADERS
from rubric.suites.cases import Case, Turn
from rubric.suites.providers import Provider
from rubric.values import Unsupported

BORDERLINE = 0.6
"""Where the borderline band of generation 1 begins."""

_CRITERIA = ("criteria", "expected_outcome", "outcome")
_INPUTS = ("input", "input_messages", "prompt")
_REFERENCES = ("expected_output", "expected_messages", "reference_answer")
_OUTPUTS = ("output", "answer", "actual_output")
_KEPT = ("conversation_id", "dataset", "suite", "description", "name")

_REF = "ref://"
_DEEPEST = 8


@frozen
class Defaults:
    """What the tests of a file share: the fields of the file (*suite*), and those of its `default_test`."""

    suite: Cursor
    test: Cursor
    scope: Scope


def _entries(at: Cursor) -> list[Cursor]:
    """Return the lists of graders that a test, or a file, has; inline rubrics come first."""
    rubrics, execution = at["rubrics"], at["execution"]
    inline = [rubrics.holding([{"type": "rubric", "rubrics": rubrics.value}])] if rubrics.value else []
    return [*inline, *(part[key] for part in (at, execution) for key in GRADERS if part.has(key))]


def read_defaults(whole: Cursor, scope: Scope) -> Defaults:
    """Return what the tests of a whole file share."""
    default = whole["default_test"]
    test: Cursor | None = default
    if isinstance(default.value, str):
        reference = _resolve(default, whole, scope)
        test = None if reference is None else read_document_at(reference, default)
        if test is not None and not isinstance(test.value, Mapping):
            test.error("expected the fields of a test: `options`, `vars`, `assert`, `threshold`")
            test = None
    elif default.value is not None and not isinstance(default.value, Mapping):
        default.refuse("the fields of a test, `file://...` or `ref://...`")
    return Defaults(whole, test if test is not None and isinstance(test.value, Mapping) else default.holding({}), scope)


def _resolve(at: Cursor, whole: Cursor, scope: Scope) -> str | None:
    """Return the file that *at* names, by the names of a project where it uses one."""
    names = whole.under("refs").value
    if at.loading.folder is not None and may_be_read(CONFIG, at.loading):
        config = read_document_at(CONFIG, at)
        names = names if config is None else {**config.under("refs").value, **names}
    value = at.value
    for _ in range(_DEEPEST):
        value = scope.fill(value.strip(), at)
        if not value.startswith(_REF):
            if is_reference(value):
                return value
            at.error(f"expected `file://...` or `ref://...`, got {shorten(repr(value))}")
            return None
        name = value.removeprefix(_REF)
        value = names.get(name)
        if not isinstance(value, str):
            where = f" ({describe_search(at.loading)})" if at.loading.folder is not None else ""
            hint = fields.suggest(name, names) if names else f"; write it under `refs` in {CONFIG}{where}"
            at.error(f"no reference is called {name!r}{hint}")
            return None
    at.error("the references lead from one to another without end")
    return None


@frozen
class Test:
    """One test: its fields and where they are, what it is read with, and its number in the suite, from 1."""

    __test__ = False

    at: Cursor
    scope: Scope
    number: int

    def under(self, key: str) -> Cursor:
        """Return the mapping at *key*; an empty one, with an error noted, for anything else."""
        if self.at.has(key):
            self.at[key].mapping()
        return self.at.under(key)

    @property
    def skips_defaults(self) -> bool:
        """True if the file's own input and graders are not this test's."""
        return self.at.under("execution")["skip_defaults"].value is True


def read_case(test: Test, defaults: Defaults, template: Template | None, *, several: bool) -> Case | None:
    """Return *test* as a case; None, with errors noted, where it is none."""
    own = test.under("vars")
    variables = {str(key): value for key, value in {**defaults.test.under("vars").value, **own.value}.items()}
    label = template.label if template is not None and several else ""
    with test.at.notes.lacking() as lacks:
        test = evolve(test, scope=test.scope.seeing(variables, own))
        check_keys(test.at)
        test.under("execution")
        task = _task(test, defaults)
        graders, attached = _graders(test, defaults, task), Attached()
        seeing = evolve(test, scope=evolve(test.scope, attached=attached))
        asked, output = _find_asked(seeing, defaults, template), _output(seeing, graders)
        if attached.lacks:
            graders.append(Grader("image", Unsupported(attached.lacks)))
        if template is not None and template.missing:
            graders.append(Grader("prompt", Unsupported(template.missing)))
        case = test.at.built(_case, test, task, graders, asked, output, label=label)
    if case is None:
        return None
    if lacks:
        case = _case(test, task, [*graders, Grader("environment", Unsupported(lacks[0]))], asked, output, label=label)
    return evolve(case, images=attached.found, runs=_runs(test, defaults), providers=_providers(test, defaults, asked))


def _case(test: Test, task: Task, graders: list[Grader], asked: Asked, output: str | None, *, label: str) -> Case:
    at, scope = test.at, test.scope
    turns = _turns(test)
    messages = (Message("user", asked[0]),) if turns and asked[0] else asked[1]
    answered = sum(message.role == "assistant" for message in messages)
    reference = read_text(at.find(*_REFERENCES) or _variable(test, "expected_output"), scope)
    beside = ""
    if turns and reference:  # the judges of the last turn are shown it, and so this turn's own as a guideline
        beside, turns[-1] = turns[-1].reference, evolve(turns[-1], reference="")
    judges: dict[str, Judge] = {}
    if turns:
        rubric, judges = _of_conversation(test, task, graders, answered, beside)
    else:
        rubric = group(graders, task)
    judge = read_judge(test.under("options"), scope)
    alone = len(graders) == 1 and graders[0].plain and not turns
    said = alone and any(criterion.text == task.criteria for criterion in rubric.criteria)
    id_ = _id(test)
    return Case(
        f"{id_} [{label}]" if label else id_,
        rubric,
        input="" if turns else asked[0],
        messages=messages,
        turns=turns,
        output=output,
        reference=reference,
        context="" if said else task.criteria,
        tool_calls=read_calls(at["tool_calls"]),
        file_changes=scope.text(at["file_changes"]) if at.has("file_changes") else "",
        variables=_variables(test, graders),
        judge=graders[0].judge or judge if alone else judge,
        judges=judges if alone or turns else {g.name: g.judge for g in name_apart(graders) if g.judge is not None},
        cell={"prompt": label} if label else {},
        tags=_tags(test),
        metadata=_metadata(test),
        place=at.place,
    )


def _output(test: Test, graders: list[Grader]) -> str | None:
    """Return the answer; of a chat only what the assistant said. Without one a grader leaves the case ungraded."""
    found = test.at.find(*_OUTPUTS)
    if found is None:
        return None
    if not is_chat(found.value) or not all("role" in one for one in found.value):
        return read_text(found, test.scope)
    if why := candidate_of(found.value).unanswered:
        found.warn(f"it {why.partition(';')[0]}; the case is ungraded")
        graders.append(Grader("output", Unsupported("an output without an answer of the assistant")))
        return None
    own = [one for one in found.value if one["role"] == "assistant"]
    if len(own) < len(found.value):
        found.once("of a chat as `output` only what the assistant said is graded; put the rest into `input`")
    return read_text(found.holding(own), test.scope)


_OF_A_TURN = frozenset({"input", "assert", "assertions", "expected_output"})
_AGGREGATIONS = ("mean", "min")
_OF_EXECUTION = "before generation 2 AgentV reads over this `threshold`; write it under `execution`"
_REFERENCE = "A reference answer to this turn:\n"
"""Begins the guidelines of the last turn, where the case has another reference."""

_WHOLE = "the conversation as a whole"
"""The text of the criterion that has the graders of a whole conversation; its id is `conversation`."""


def _turns(test: Test) -> list[Turn]:
    """Return what the user says in each turn of a conversation, with the reference for the answer."""
    at = test.at["turns"]
    said = [turn for turn in at if isinstance(turn.value, Mapping)] if isinstance(at.value, list) else []
    return [
        Turn(read_text(turn["input"], test.scope), reference=read_text(turn["expected_output"], test.scope))
        for turn in said
        if turn.value.get("input")
    ]


def _of_conversation(
    test: Test, task: Task, graders: list[Grader], answered: int, beside: str
) -> tuple[Rubric, dict[str, Judge]]:
    """
    Return the rubric of a conversation, and its judges: a criterion for each turn with graders, one for the whole.

    The turns follow those that the input has *answered* already; *beside* is a reference of the last one alone.

    The score is their mean, or the least of them. AgentV gives a turn without graders a score of 1; here it has none.
    """
    criteria, judges = [], dict[str, Judge]()

    def add(text: str, id_: str, rubric: Rubric, own: list[Grader], on: int | Literal["conversation"]) -> None:
        criteria.append(Criterion(text, id=id_, answer=rubric, on=on))
        named = {grader.judge for grader in own if isinstance(grader.answer, Rubric)}
        if len(named) > 1:
            test.at["turns"].once(f"the graders of {text} name several judges; the case's judge takes them all")
        elif judge := next(iter(named), None):
            judges[id_] = judge

    for number, turn in enumerate(test.at["turns"].listing("a list of turns, each with `input`"), 1):
        if not turn.mapping("a turn (a mapping with `input`)") or not turn.needs("input"):
            continue
        for key in turn.value.keys() - _OF_A_TURN:
            turn[key].once(f"`{key}` of a turn is not used")
        own = [grader for key in GRADERS if turn.has(key) for grader in read_graders(turn[key], test.scope, task)]
        if own:
            rubric = group(own, task)
            if beside and number == len(test.at["turns"].value):
                rubric = evolve(rubric, guidelines=f"{_REFERENCE}{beside}")
            add(f"turn {number}", f"turn-{number}", rubric, own, answered + number)
    whole = [grader for grader in graders if grader.answer != NOTHING]
    if whole or not criteria:
        add(_WHOLE, "conversation", group(whole or graders, task), whole, "conversation")
    return Rubric(criteria=criteria, threshold=task.threshold, aggregation=_aggregation(test)), judges


def _aggregation(test: Test) -> Literal["min", "weighted_average"]:
    how = test.at.value.get("aggregation", "mean")
    if how not in _AGGREGATIONS:
        test.at["aggregation"].error(f"expected one of {', '.join(_AGGREGATIONS)}, got {shorten(repr(how), 40)}")
    if test.at.value.get("on_turn_failure") == "stop":
        test.at["on_turn_failure"].once("`on_turn_failure: stop` is not used: all turns are asked, and then graded")
    return "min" if how == "min" else "weighted_average"


def _runs(test: Test, defaults: Defaults) -> int:
    """Return how often AgentV asks for this test; the names are those of its generations."""
    own = [test.at["repeat"], test.under("options")["repeat"], test.at["trials"], test.under("execution")["trials"]]
    suite = defaults.suite
    shared = [suite.under("evaluate_options")["repeat"], suite["trials"], suite.under("execution")["trials"]]
    return runs_of(*(at.value for at in (*own, defaults.test.under("options")["repeat"], *shared)))


def _providers(test: Test, defaults: Defaults, asked: Asked) -> list[Provider]:
    """Return what the test, or else the file or its project, names to answer it."""
    text = asked[0] or as_text([{"role": message.role, "content": message.content} for message in asked[1]])
    scope = evolve(test.scope, variables={**test.scope.variables, "prompt": text})
    for at in (test.at, test.under("execution"), defaults.suite, defaults.suite["execution"]):
        for key in ("provider", "providers", "target", "targets"):
            if at.has(key):
                named = follow(at[key], at[key].warn) or at[key]
                each = [*named] if isinstance(named.value, list) else [named]
                return [scope.targets.provider_at(one, scope.fill) for one in each]
    usual = test.at.holding(scope.targets.provider)
    return [scope.targets.provider_at(usual, scope.fill)] if usual.value else []


def check_keys(at: Cursor) -> None:
    """Note the keys of a test, or of `default_test`, that are none of a test's."""
    at.reads(**part_of("agentv", "test"))
    for part in ("execution", "options"):
        at[part].reads(**part_of("agentv", part))


def _id(test: Test) -> str:
    value = test.at.value.get("id", test.at.value.get("name"))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    said = "" if value is None else test.scope.text(test.at["id"].holding(value)).strip()
    return said or f"test-{test.number}"


def _task(test: Test, defaults: Defaults) -> Task:
    said = test.at.first(*_CRITERIA)
    said = said.holding(said.value.strip()) if isinstance(said.value, str) else said
    holders = [part for at in (test.at, defaults.test, defaults.suite) for part in (at["execution"], at)]
    if not test.scope.is_current and "assert" not in defaults.suite:  # a file of generation 2 beside rows has `assert`
        for part in (part for part in holders[1::2] if part.has("threshold")):
            part["threshold"].once(_OF_EXECUTION)
        holders = holders[::2]
    own = next((part["threshold"] for part in holders if part.has("threshold")), None)
    threshold = None if own is None else own.number(0, 1)
    return Task(
        threshold=THRESHOLD if threshold is None else threshold,
        criteria=read_text(said, test.scope),
        borderline=BORDERLINE if test.scope.generation == "agentv-1" else None,
    )


def _graders(test: Test, defaults: Defaults, task: Task) -> list[Grader]:
    """Return the test's graders, then those of the file; without any, one judgement by the test's criteria."""
    holders = [test.at] if test.skips_defaults else [test.at, defaults.suite, defaults.test]
    entries = (entry for holder in holders for entry in _entries(holder))
    graders = [grader for entry in entries for grader in read_graders(entry, test.scope, task)]
    if all(grader.answer == EMPTY for grader in graders):
        graders = []
    graders = [_with_default_prompt(grader, defaults) for grader in graders]
    if not graders and not test.at.notes.errors and task.criteria:
        graders = read_graders(test.at.holding([{"type": "llm-rubric", "value": task.criteria}]), test.scope, task)
    elif not graders and not test.at.notes.errors and not _turns(test):
        test.at.warn("there is nothing to grade by: no grader and no criteria; the case is ungraded")
        graders = [Grader("nothing", NOTHING)]
    return [*graders, *_find_unsupported(test, defaults)] or [Grader("nothing", NOTHING)]


def _with_default_prompt(grader: Grader, defaults: Defaults) -> Grader:
    """Return *grader* with the prompt that the file gives to all judges, unless it has its own."""
    default = defaults.test.under("options").find("rubric_prompt")
    if default is None or not isinstance(grader.answer, Rubric) or grader.answer.prompt:
        return grader
    prompt = read_prompt(default, defaults.scope)
    if prompt.missing:
        return evolve(grader, answer=Unsupported(f"a rubric_prompt: {prompt.missing}"))
    if prompt.template is None:
        return grader
    return evolve(grader, answer=_with_template(grader.answer, prompt.template), variables=prompt.variables)


def _with_template(rubric: Rubric, template: str) -> Rubric:
    if not any(isinstance(c.answer, Rubric) for c in rubric.criteria):
        return evolve(rubric, prompt=rubric.prompt or template)
    inner = [
        evolve(c, answer=_with_template(c.answer, template)) if isinstance(c.answer, Rubric) else c
        for c in rubric.criteria
    ]
    return evolve(rubric, criteria=inner)


def _find_unsupported(test: Test, defaults: Defaults) -> Iterator[Grader]:
    """Yield what would have to be done before the graders are right, and is not: the case is ungraded."""
    if test.at.has("turns") and not _turns(test):
        test.at["turns"].warn("there are no turns in it: a list of turns, each with `input`", key=True)
        yield Grader("turns", Unsupported("a conversation without turns"))
    if any(options.has("transform") for options in (defaults.test.under("options"), test.under("options"))):
        test.at["options"].once("a `transform` of the answer is not supported: cases are ungraded")
        yield Grader("transform", Unsupported("a transform of the answer"))


def _find_asked(test: Test, defaults: Defaults, template: Template | None) -> Asked:
    asked = test.at.find(*_INPUTS) or _variable(test, "input")
    if template is not None and "input" not in test.at:
        asked = test.at["vars"].holding(template.asks(test.scope))
    skipped = test.skips_defaults
    parts = [] if skipped else [defaults.suite["input"].holding(defaults.suite[key].value) for key in _INPUTS[:2]]
    files = [test.at["input_files"].value, None if skipped else defaults.suite["input_files"].value]
    names = [name for listed in files for name in (listed or [])]
    if asked.value is None and template is None and (task := _task_file(test, names)):
        asked = test.at.holding(read_text_at(task, test.at, lacking=test.at.warn))
        names = [name for name in names if name != task]
    blocks = [{"type": "file", "value": name} for name in names]
    if blocks and isinstance(asked.value, str):
        asked = asked.holding([*blocks, {"type": "text", "value": asked.value}])
    return read_asked([*parts, asked], test.scope)


_TASK = "PROMPT.md"


def _task_file(test: Test, names: list[Any]) -> str:
    """Return the file that asks a test without an input: PROMPT.md among its files, or beside the file; else ''."""
    listed = next((name for name in names if isinstance(name, str) and PurePosixPath(name).name == _TASK), "")
    folder = test.at.loading.folder
    return listed or (_TASK if folder is not None and (folder / _TASK).is_file() else "")


def _variable(test: Test, name: str) -> Cursor:
    return test.at["vars"][name].holding(test.scope.variables.get(name))


def _variables(test: Test, graders: list[Grader]) -> dict[str, str]:
    """Return the named texts that prompts may show: the test's variables, but for its input and reference."""
    own = {k: as_text(v) for k, v in test.scope.variables.items() if k not in ("input", "expected_output")}
    metadata = {"vars.metadata": as_text(_metadata(test)), "vars.metadata_json": as_text(_metadata(test))}
    shown = {name: metadata.get(name, text) for grader in graders for name, text in grader.variables.items()}
    return {**own, **shown}


def _metadata(test: Test) -> dict[str, Any]:
    kept = {key: test.at.value[key] for key in _KEPT if key in test.at}
    if "id" not in test.at:
        kept.pop("name", None)
    return {**kept, **{str(key): value for key, value in test.under("metadata").value.items()}}


def _tags(test: Test) -> list[str]:
    value = test.at.value.get("tags") or []
    if isinstance(value, Mapping):
        value = [f"{name}: {as_text(said)}" for name, said in value.items()]
    tags = test.at["tags"].holding([value] if isinstance(value, str) else value)
    return [test.scope.text(tag) for tag in tags.listing("a list of texts")]
