"""
What the cases of a file share: `default_test`, suite-level graders and input, and the references of a project.

One test, as AgentV calls it: from its fields to a `Case`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path as Folder
from typing import Any

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError, LoadError
from rubric.formats.agentv.graders import read_graders, read_judge
from rubric.formats.agentv.judged_graders import Grader, grouped, read_prompt, renamed
from rubric.formats.agentv.messages import Asked, Template, read_asked, read_calls, read_text
from rubric.formats.agentv.scope import GRADERS, THRESHOLD, Scope, Task, as_text
from rubric.formats.document import KeyPath
from rubric.formats.includes import is_reference, read_document_at
from rubric.internals.fields import misspelt, suggest
from rubric.internals.text import shorten
from rubric.suites.cases import Case
from rubric.values.checks import NOTHING, Unsupported
from rubric.values.judges import Judge
from rubric.values.rubrics import Rubric

_REF = "ref://"
_CONFIG = ".agentv/config.yaml"
_DEEPEST = 8

Entries = tuple[Any, Scope, KeyPath]
"""A list of graders, and where it stands."""


@frozen
class Defaults:
    """
    What the cases of a file share.

    Args:
        test: The fields of `default_test`, and where they stand.
        suite: The fields of the file itself, and where they stand.
        prompts: How the cases' variables become a prompt (generation 2).
    """

    suite: Mapping[Any, Any]
    scope: Scope
    test: Mapping[Any, Any] = field(factory=dict)
    test_scope: Scope | None = None
    test_path: KeyPath = ()

    @property
    def variables(self) -> Mapping[str, Any]:
        """The variables that every case has."""
        found = self.test.get("vars")
        return found if isinstance(found, Mapping) else {}

    @property
    def options(self) -> Mapping[Any, Any]:
        """The options of `default_test`."""
        found = self.test.get("options")
        return found if isinstance(found, Mapping) else {}

    def judge(self) -> Judge | None:
        """Return who judges where a case names nobody."""
        if self.test_scope is None:
            return None
        return read_judge(self.options, self.test_scope, (*self.test_path, "options"))

    def graders(self, variables: Mapping[str, Any]) -> list[Entries]:
        """Return the graders that every case gets after its own, with the *variables* of a case."""
        found = [(value, evolve(self.scope, variables=variables), path) for value, path in entries_of(self.suite)]
        if self.test_scope is not None:
            scope = evolve(self.test_scope, variables=variables)
            found += [(value, scope, (*self.test_path, *path)) for value, path in entries_of(self.test)]
        return found


def entries_of(part: Mapping[Any, Any]) -> list[tuple[Any, KeyPath]]:
    """Return the lists of graders that a case, or a file, has, each with its path; inline rubrics come first."""
    execution = part.get("execution")
    nested = execution if isinstance(execution, Mapping) else {}
    places = [(part, (key,)) for key in GRADERS] + [(nested, ("execution", key)) for key in GRADERS]
    inline = [([{"type": "rubric", "rubrics": part["rubrics"]}], ("rubrics",))] if part.get("rubrics") else []
    return [*inline, *((place[path[-1]], path) for place, path in places if place.get(path[-1]) is not None)]


def read_defaults(data: Mapping[Any, Any], scope: Scope) -> Defaults:
    """Return what the cases of *data*, a whole file, share."""
    defaults = Defaults(data, scope)
    value = data.get("default_test")
    if value is None:
        return defaults
    if isinstance(value, str):
        return _included(value, defaults, scope)
    if isinstance(value, Mapping):
        return evolve(defaults, test=value, test_scope=scope, test_path=("default_test",))
    message = f"expected the fields of a test, `file://...` or `ref://...`; got {shorten(repr(value))}"
    scope.error(("default_test",), message)
    return defaults


def _included(value: str, defaults: Defaults, scope: Scope) -> Defaults:
    path: KeyPath = ("default_test",)
    reference = _resolved(value, defaults.suite, scope, path)
    if reference is None:
        return defaults
    included = read_document_at(reference, scope.loading, scope.notes, path)
    if included is None:
        return defaults
    notes, loading = included
    test = notes.data()
    if not isinstance(test, Mapping):
        notes.error((), "expected the fields of a test: `options`, `vars`, `assert`, `threshold`")
        return defaults
    return evolve(defaults, test=test, test_scope=evolve(scope, notes=notes, loading=loading))


def _resolved(value: str, data: Mapping[Any, Any], scope: Scope, path: KeyPath) -> str | None:
    """Return *value* with the names of a project followed to the file that they stand for."""
    names = {**_project(scope), **(data["refs"] if isinstance(data.get("refs"), Mapping) else {})}
    for _ in range(_DEEPEST):
        value = scope.fill(value.strip(), path)
        if not value.startswith(_REF):
            if is_reference(value):
                return value
            scope.error(path, f"expected `file://...` or `ref://...`, got {shorten(repr(value))}")
            return None
        name = value.removeprefix(_REF)
        found = names.get(name)
        if not isinstance(found, str):
            hint = suggest(name, names) if names else f"; write it under `refs` in {_CONFIG}"
            scope.error(path, f"no reference is called {name!r}{hint}")
            return None
        value = found
    scope.error(path, "the references lead from one to another without end")
    return None


def _project(scope: Scope) -> dict[str, Any]:
    """Return the references of the project's configuration; none where it has no such file."""
    root = scope.loading.root
    if root is None or not Folder(root, _CONFIG).is_file():
        return {}
    loading = evolve(scope.loading, folder=root)
    try:
        included = read_document_at(_CONFIG, loading, scope.notes, ("default_test",))
    except LoadError as problem:
        scope.error(("default_test",), str(problem))
        return {}
    data = None if included is None else included[0].data()
    refs = data.get("refs") if isinstance(data, Mapping) else None
    return dict(refs) if isinstance(refs, Mapping) else {}


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


@frozen
class Test:
    """The fields of one test, where they stand, and its number in the suite, from 1."""

    __test__ = False

    fields: Mapping[Any, Any]
    scope: Scope
    path: KeyPath
    number: int

    def first(self, keys: tuple[str, ...]) -> tuple[Any, KeyPath]:
        """Return the first of *keys* that is given, with its path; None where none is."""
        key = next((key for key in keys if self.fields.get(key) is not None), keys[0])
        return self.fields.get(key), (*self.path, key)

    def under(self, key: str) -> Mapping[Any, Any]:
        """Return what stands under *key*, a mapping; an empty one, with an error noted, for all else."""
        value = self.fields.get(key)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self.scope.error((*self.path, key), f"expected a mapping, got {shorten(repr(value))}")
        return {}


def read_case(test: Test, defaults: Defaults, template: Template | None, *, several: bool) -> Case | None:
    """
    Return *test* as a case; None, with errors noted, where it is none.

    Args:
        test: What is read.
        defaults: What it shares with the others.
        template: How its variables become what is asked.
        several: Whether there are other templates, so that the case says which one it is.
    """
    variables = {**defaults.variables, **test.under("vars")}
    test = evolve(test, scope=test.scope.seeing({str(k): v for k, v in variables.items()}, (*test.path, "vars")))
    check_keys(test.fields, test.scope, test.path)
    task = _task(test, defaults)
    graders, asked = _graders(test, defaults, task), _asked(test, defaults, template)
    label = template.label if template is not None and several else ""
    try:
        return _built(test, task, graders, judge=_judge(test), asked=asked, label=label)
    except DefinitionError as problem:
        test.scope.error(test.path, problem)
        return None


def _built(test: Test, task: Task, graders: list[Grader], *, judge: Judge | None, asked: Asked, label: str) -> Case:
    scope = test.scope
    rubric = grouped(graders, task)
    alone = len(graders) == 1 and graders[0].plain
    output, there = test.first(_OUTPUTS)
    id_ = _id(test)
    return Case(
        f"{id_} [{label}]" if label else id_,
        rubric,
        input=asked[0],
        messages=asked[1],
        output=None if output is None else read_text(output, scope, there),
        reference=_reference(test),
        context="" if alone and _says(rubric, task.criteria) else task.criteria,
        tool_calls=read_calls(test.fields.get("tool_calls"), scope, (*test.path, "tool_calls")),
        file_changes=_text(test, "file_changes"),
        variables=_variables(test, graders),
        judge=graders[0].judge or judge if alone else judge,
        judges={} if alone else {g.name: g.judge for g in renamed(graders) if g.judge is not None},
        cell={"prompt": label} if label else {},
        tags=_tags(test),
        metadata=_metadata(test),
        place=scope.notes.place(test.path),
    )


def _says(rubric: Rubric, text: str) -> bool:
    return any(criterion.text == text for criterion in rubric.criteria)


def check_keys(fields: Mapping[Any, Any], scope: Scope, path: KeyPath) -> None:
    """Note the keys of a test (its *fields*, at *path*), or of `default_test`, that are none of a test's."""
    for key in fields:
        if key in _UNUSED:
            scope.once((*path, key), f"`{key}` of a test is not used: it is about how answers are made")
        elif key not in _KNOWN:
            scope.unknown((*path, key), "a test has no such field", _KNOWN, _ELSEWHERE)
    for outer, known in (("execution", _EXECUTION), ("options", _OPTIONS)):
        inner = fields.get(outer)
        for key in inner if isinstance(inner, Mapping) else ():
            if key in known:
                continue
            if misspelt(key, known) or key in _BESIDE:
                scope.unknown((*path, outer, key), "", known, _BESIDE)
            else:
                scope.once((*path, outer, key), f"`{outer}.{key}` of a test is not used")


def _id(test: Test) -> str:
    value = test.fields.get("id", test.fields.get("name"))
    if value is None:
        return f"test-{test.number}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return test.scope.text(value, (*test.path, "id")).strip() or f"test-{test.number}"


def _task(test: Test, defaults: Defaults) -> Task:
    value, path = test.first(_CRITERIA)
    return Task(
        threshold=_threshold(test, defaults),
        criteria=read_text(value.strip() if isinstance(value, str) else value, test.scope, path),
        borderline=BORDERLINE if test.scope.generation == "agentv-1" else None,
    )


def _threshold(test: Test, defaults: Defaults) -> float:
    """Return where the case passes: as the test says, or the default test, or the file, or AgentV."""
    places: list[tuple[Mapping[Any, Any], Scope, KeyPath]] = [(test.fields, test.scope, test.path)]
    if defaults.test_scope is not None:
        places.append((defaults.test, defaults.test_scope, defaults.test_path))
    for part, scope, path in [*places, (defaults.suite, defaults.scope, ())]:
        execution = part.get("execution")
        nested = execution if isinstance(execution, Mapping) else {}
        for found, where in ((part, path), (nested, (*path, "execution"))):
            if found.get("threshold") is not None:
                value = scope.number(found["threshold"], (*where, "threshold"), high=1)
                return THRESHOLD if value is None else value
    return THRESHOLD


def _graders(test: Test, defaults: Defaults, task: Task) -> list[Grader]:
    """Return the test's graders, then those of the file; without any, one judgement by the test's criteria."""
    scope = test.scope
    entries = [(value, scope, (*test.path, *path)) for value, path in entries_of(test.fields)]
    if test.under("execution").get("skip_defaults") is not True:
        entries += defaults.graders(scope.variables)
    graders = [grader for value, where, path in entries for grader in read_graders(value, where, path, task)]
    graders = [_with_default_prompt(grader, defaults) for grader in graders]
    if not graders and not scope.notes.errors:
        graders = [_by_criteria(test, task)]
    return [*graders, *_unsupported(test, defaults)] or [Grader("nothing", NOTHING, test.path)]


def _by_criteria(test: Test, task: Task) -> Grader:
    if task.criteria:
        made = read_graders([{"type": "llm-rubric", "value": task.criteria}], test.scope, test.path, task)
        return made[0]
    test.scope.warn(test.path, "there is nothing to grade by: no grader and no criteria; the case is ungraded")
    return Grader("nothing", NOTHING, test.path)


def _with_default_prompt(grader: Grader, defaults: Defaults) -> Grader:
    """Return *grader* with the prompt that the file gives to all judges, unless it has its own."""
    value = defaults.options.get("rubric_prompt")
    if value is None or defaults.test_scope is None or not isinstance(grader.answer, Rubric) or grader.answer.prompt:
        return grader
    path = (*defaults.test_path, "options", "rubric_prompt")
    prompt = read_prompt(value, defaults.test_scope, path)
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
    if test.fields.get("turns") is not None:
        test.scope.warn((*test.path, "turns"), "turns that are graded one by one are not supported", key=True)
        yield Grader("turns", Unsupported("turns that are graded one by one"), test.path)
    if any(options.get("transform") is not None for options in (defaults.options, test.under("options"))):
        test.scope.once((*test.path, "options"), "a `transform` of the answer is not supported: cases are ungraded")
        yield Grader("transform", Unsupported("a transform of the answer"), test.path)


def _judge(test: Test) -> Judge | None:
    return read_judge(test.under("options"), test.scope, (*test.path, "options"))


def _asked(test: Test, defaults: Defaults, template: Template | None) -> Asked:
    value, path = test.first(_INPUTS)
    scope = test.scope
    if template is not None and "input" not in test.fields:
        value, path = template.asks(scope), (*test.path, "vars")
    elif value is None:
        value, path = scope.variables.get("input"), (*test.path, "vars", "input")
    skipped = test.under("execution").get("skip_defaults") is True
    parts = [(defaults.suite.get(key), ("input",)) for key in ("input", "input_messages") if not skipped]
    files = [test.fields.get("input_files"), None if skipped else defaults.suite.get("input_files")]
    blocks = [{"type": "file", "value": name} for names in files for name in (names or [])]
    if blocks and isinstance(value, str):
        value = [*blocks, {"type": "text", "value": value}]
    return read_asked([*parts, (value, path)], scope)


def _reference(test: Test) -> str:
    value, path = test.first(_REFERENCES)
    if value is None:
        value, path = test.scope.variables.get("expected_output"), (*test.path, "vars", "expected_output")
    return read_text(value, test.scope, path)


def _text(test: Test, key: str) -> str:
    value = test.fields.get(key)
    return "" if value is None else test.scope.text(value, (*test.path, key))


def _variables(test: Test, graders: list[Grader]) -> dict[str, str]:
    """Return the named texts that prompts may show: the test's variables, but for what is asked and expected."""
    own = {k: as_text(v) for k, v in test.scope.variables.items() if k not in ("input", "expected_output")}
    metadata = {"vars.metadata": as_text(_metadata(test)), "vars.metadata_json": as_text(_metadata(test))}
    shown = {name: metadata.get(name, text) for grader in graders for name, text in grader.variables.items()}
    return {**own, **shown}


def _metadata(test: Test) -> dict[str, Any]:
    kept = {key: test.fields[key] for key in _KEPT if key in test.fields}
    if "id" not in test.fields:
        kept.pop("name", None)
    return {**kept, **{str(key): value for key, value in test.under("metadata").items()}}


def _tags(test: Test) -> list[str]:
    value = test.fields.get("tags") or []
    if isinstance(value, Mapping):
        value = [f"{name}: {as_text(said)}" for name, said in value.items()]
    if isinstance(value, str):
        value = [value]
    return [test.scope.text(tag, (*test.path, "tags", index)) for index, tag in enumerate(value)]
