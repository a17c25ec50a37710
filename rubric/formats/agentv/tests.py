"""
One test, as AgentV calls it: from its fields to a `Case`; and what the tests of a file share.

What a test says in its own words of a good answer (`criteria`, `expected_outcome`) is what a grader without criteria of
its own judges by; where there are others, it is `Case.context`, which the judge is shown beside the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as Folder
from typing import Any

from attrs import evolve, frozen

from rubric.formats.agentv.graders import read_graders, read_judge
from rubric.formats.agentv.judged_graders import Grader, grouped, read_prompt, renamed
from rubric.formats.agentv.messages import Asked, Template, read_asked, read_calls, read_text
from rubric.formats.agentv.scope import GRADERS, THRESHOLD, Scope, Task, as_text
from rubric.formats.cursor import Cursor
from rubric.formats.includes import is_reference, read_document_at
from rubric.formats.rubric_items import unknown_field
from rubric.internals.fields import misspelt, suggest
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.values.checks import NOTHING, Unsupported
from rubric.values.judges import Judge
from rubric.values.rubrics import Rubric

BORDERLINE = 0.6
"""Where the borderline band of generation 1 begins."""

_CRITERIA = ("criteria", "expected_outcome", "outcome")
_INPUTS = ("input", "input_messages", "prompt")
_REFERENCES = ("expected_output", "expected_messages", "reference_answer")
_OUTPUTS = ("output", "answer", "actual_output")
_KEPT = ("conversation_id", "dataset", "suite", "description", "name")

_UNUSED = frozenset(
    {"environment", "workspace", "providers", "provider", "target", "targets", "trials", "repeat", "extensions",
     "hooks", "preprocessors", "depends_on", "window_size", "mode", "aggregation", "on_turn_failure", "run",
     "evaluate_options", "note"}
)  # fmt: skip

_KNOWN = frozenset(
    {"id", "vars", "assert", "assertions", "graders", "evaluators", "rubrics", "execution", "options", "threshold",
     "metadata", "tags", "tool_calls", "file_changes", "turns", "input_files", "assert_scoring_function",
     *_CRITERIA, *_INPUTS, *_REFERENCES, *_OUTPUTS, *_KEPT}
)  # fmt: skip

_ELSEWHERE = dict.fromkeys(
    ("type", "value", "metric", "weight", "required", "min_score", "negate"), "it belongs to a grader, under `assert`"
) | dict.fromkeys(("default_test", "tests", "refs"), "it belongs to the file, not to a test")
_BESIDE = dict.fromkeys(("vars", "assert", "threshold"), "it belongs to the test")
_OPTIONS = frozenset(
    {"provider", "target", "model", "transform", "rubric_prompt", "temperature", "max_tokens", "seed", "repeat"}
)
_EXECUTION = frozenset({"assert", "assertions", "graders", "evaluators", "skip_defaults", "threshold"})


_REF = "ref://"
_CONFIG = ".agentv/config.yaml"
_DEEPEST = 8


def mapping_at(at: Cursor, key: str) -> Mapping[Any, Any]:
    """Return the mapping at *key*; an empty one where anything else is there."""
    found = at[key].value
    return found if isinstance(found, Mapping) else {}


@frozen
class Defaults:
    """What the tests of a file share: the fields of the file (*suite*), and those of its `default_test`."""

    suite: Cursor
    test: Cursor
    scope: Scope

    @property
    def options(self) -> Cursor:
        """The options of `default_test`."""
        options = self.test["options"]
        return options if isinstance(options.value, Mapping) else options.holding({})

    def judge(self) -> Judge | None:
        """Return the judge of tests that name none."""
        return read_judge(self.options, self.scope)


def entries_of(at: Cursor) -> list[Cursor]:
    """Return the lists of graders that a test, or a file, has; inline rubrics come first."""
    rubrics, execution = at["rubrics"], at["execution"]
    inline = [rubrics.holding([{"type": "rubric", "rubrics": rubrics.value}])] if rubrics.value else []
    return [*inline, *(part[key] for part in (at, execution) for key in GRADERS if part.has(key))]


def read_defaults(whole: Cursor, scope: Scope) -> Defaults:
    """Return what the tests of a whole file share."""
    default = whole["default_test"]
    defaults = Defaults(whole, default, scope)
    if isinstance(default.value, str):
        return evolve(defaults, test=_included(default, whole, scope) or default.holding({}))
    if default.value is not None and not isinstance(default.value, Mapping):
        default.refuse("the fields of a test, `file://...` or `ref://...`")
    return defaults if isinstance(default.value, Mapping) else evolve(defaults, test=default.holding({}))


def _included(at: Cursor, whole: Cursor, scope: Scope) -> Cursor | None:
    reference = _resolved(at, whole, scope)
    test = None if reference is None else read_document_at(reference, at)
    if test is not None and not isinstance(test.value, Mapping):
        test.error("expected the fields of a test: `options`, `vars`, `assert`, `threshold`")
        return None
    return test


def _resolved(at: Cursor, whole: Cursor, scope: Scope) -> str | None:
    """Return the file that *at* names, by the names of a project where it uses one."""
    names = {**_project(at), **mapping_at(whole, "refs")}
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
            hint = suggest(name, names) if names else f"; write it under `refs` in {_CONFIG}"
            at.error(f"no reference is called {name!r}{hint}")
            return None
    at.error("the references lead from one to another without end")
    return None


def _project(at: Cursor) -> Mapping[Any, Any]:
    """Return the references of the project's configuration; none where it has no such file."""
    root = at.loading.root
    if root is None or not Folder(root, _CONFIG).is_file():
        return {}
    config = read_document_at(_CONFIG, at, evolve(at.loading, folder=root))
    return {} if config is None else mapping_at(config, "refs")


@frozen
class Test:
    """One test: its fields and where they are, what it is read with, and its number in the suite, from 1."""

    __test__ = False

    at: Cursor
    scope: Scope
    number: int

    def under(self, key: str) -> Cursor:
        """Return the mapping at *key*; an empty one, with an error noted, for anything else."""
        found = self.at[key]
        if found.value is not None and not isinstance(found.value, Mapping):
            found.refuse("a mapping")
        return found if isinstance(found.value, Mapping) else found.holding({})

    @property
    def skips_defaults(self) -> bool:
        """True if the file's own input and graders are not this test's."""
        return mapping_at(self.at, "execution").get("skip_defaults") is True


def read_case(test: Test, defaults: Defaults, template: Template | None, *, several: bool) -> Case | None:
    """
    Return *test* as a case; None, with errors noted, where it is none.

    Args:
        test: The test.
        defaults: The fields that it shares with the others.
        template: How its variables become the input.
        several: Whether there are other templates, so that the case says which one it is.
    """
    own = test.under("vars")
    variables = {str(key): value for key, value in {**mapping_at(defaults.test, "vars"), **own.value}.items()}
    test = evolve(test, scope=test.scope.seeing(variables, own))
    check_keys(test.at)
    test.under("execution")
    task = _task(test, defaults)
    graders, asked = _graders(test, defaults, task), _asked(test, defaults, template)
    label = template.label if template is not None and several else ""
    return test.at.built(_case, test, task, graders, asked, label)


def _case(test: Test, task: Task, graders: list[Grader], asked: Asked, label: str) -> Case:
    at, scope = test.at, test.scope
    rubric = grouped(graders, task)
    judge = read_judge(test.under("options"), scope)
    alone = len(graders) == 1 and graders[0].plain
    output = at.find(*_OUTPUTS)
    id_ = _id(test)
    return Case(
        f"{id_} [{label}]" if label else id_,
        rubric,
        input=asked[0],
        messages=asked[1],
        output=None if output is None else read_text(output, scope),
        reference=read_text(at.find(*_REFERENCES) or _variable(test, "expected_output"), scope),
        context=""
        if alone and any(criterion.text == task.criteria for criterion in rubric.criteria)
        else task.criteria,
        tool_calls=read_calls(at["tool_calls"]),
        file_changes=scope.text(at["file_changes"]) if at.has("file_changes") else "",
        variables=_variables(test, graders),
        judge=graders[0].judge or judge if alone else judge,
        judges={} if alone else {g.name: g.judge for g in renamed(graders) if g.judge is not None},
        cell={"prompt": label} if label else {},
        tags=_tags(test),
        metadata=_metadata(test),
        place=at.place,
    )


def check_keys(at: Cursor) -> None:
    """Note the keys of a test, or of `default_test`, that are none of a test's."""
    for key in at.value:
        if key in _UNUSED:
            at[key].once(f"`{key}` of a test is not used: it is about how answers are made")
        elif key not in _KNOWN:
            unknown_field(at[key], "a test has no such field", _KNOWN, _ELSEWHERE)
    for outer, known in (("execution", _EXECUTION), ("options", _OPTIONS)):
        for key in mapping_at(at, outer):
            if key in known:
                continue
            if misspelt(key, known) or key in _BESIDE:
                unknown_field(at[outer][key], "", known, _BESIDE)
            else:
                at[outer][key].once(f"`{outer}.{key}` of a test is not used")


def _id(test: Test) -> str:
    value = test.at.value.get("id", test.at.value.get("name"))
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    said = "" if value is None else test.scope.text(test.at["id"].holding(value)).strip()
    return said or f"test-{test.number}"


def _task(test: Test, defaults: Defaults) -> Task:
    said = test.at.first(*_CRITERIA)
    said = said.holding(said.value.strip()) if isinstance(said.value, str) else said
    return Task(
        threshold=_threshold(test, defaults),
        criteria=read_text(said, test.scope),
        borderline=BORDERLINE if test.scope.generation == "agentv-1" else None,
    )


def _threshold(test: Test, defaults: Defaults) -> float:
    """Return where the case passes: as the test says, or the default test, or the file, or AgentV."""
    holders = (part for at in (test.at, defaults.test, defaults.suite) for part in (at, at["execution"]))
    own = next((part["threshold"] for part in holders if part.has("threshold")), None)
    value = None if own is None else own.number(0, 1)
    return THRESHOLD if value is None else value


def _graders(test: Test, defaults: Defaults, task: Task) -> list[Grader]:
    """Return the test's graders, then those of the file; without any, one judgement by the test's criteria."""
    holders = [test.at] if test.skips_defaults else [test.at, defaults.suite, defaults.test]
    entries = (entry for holder in holders for entry in entries_of(holder))
    graders = [grader for entry in entries for grader in read_graders(entry, test.scope, task)]
    graders = [_with_default_prompt(grader, defaults) for grader in graders]
    if not graders and not test.at.notes.errors:
        graders = [_by_criteria(test, task)]
    return [*graders, *_unsupported(test, defaults)] or [Grader("nothing", NOTHING)]


def _by_criteria(test: Test, task: Task) -> Grader:
    if task.criteria:
        grader = test.at.holding([{"type": "llm-rubric", "value": task.criteria}])
        return read_graders(grader, test.scope, task)[0]
    test.at.warn("there is nothing to grade by: no grader and no criteria; the case is ungraded")
    return Grader("nothing", NOTHING)


def _with_default_prompt(grader: Grader, defaults: Defaults) -> Grader:
    """Return *grader* with the prompt that the file gives to all judges, unless it has its own."""
    default = defaults.options.find("rubric_prompt")
    if default is None or not isinstance(grader.answer, Rubric) or grader.answer.prompt:
        return grader
    prompt = read_prompt(default, defaults.scope)
    if prompt.template is None:
        return grader
    return evolve(grader, answer=_prompted(grader.answer, prompt.template), variables=prompt.variables)


def _prompted(rubric: Rubric, template: str) -> Rubric:
    if not any(isinstance(c.answer, Rubric) for c in rubric.criteria):
        return evolve(rubric, prompt=rubric.prompt or template)
    inner = [
        evolve(c, answer=_prompted(c.answer, template)) if isinstance(c.answer, Rubric) else c for c in rubric.criteria
    ]
    return evolve(rubric, criteria=inner)


def _unsupported(test: Test, defaults: Defaults) -> Iterator[Grader]:
    """Yield what would have to be done before the graders are right, and is not: the case is ungraded."""
    if test.at.has("turns"):
        test.at["turns"].warn("turns that are graded one by one are not supported", key=True)
        yield Grader("turns", Unsupported("turns that are graded one by one"))
    if any(options.has("transform") for options in (defaults.options, test.under("options"))):
        test.at["options"].once("a `transform` of the answer is not supported: cases are ungraded")
        yield Grader("transform", Unsupported("a transform of the answer"))


def _asked(test: Test, defaults: Defaults, template: Template | None) -> Asked:
    asked = test.at.find(*_INPUTS) or _variable(test, "input")
    if template is not None and "input" not in test.at:
        asked = test.at["vars"].holding(template.asks(test.scope))
    skipped = test.skips_defaults
    parts = [] if skipped else [defaults.suite["input"].holding(defaults.suite[key].value) for key in _INPUTS[:2]]
    files = [test.at["input_files"].value, None if skipped else defaults.suite["input_files"].value]
    blocks = [{"type": "file", "value": name} for names in files for name in (names or [])]
    if blocks and isinstance(asked.value, str):
        asked = asked.holding([*blocks, {"type": "text", "value": asked.value}])
    return read_asked([*parts, asked], test.scope)


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
