"""mcptest files: forms of rubrics, thresholds, judges, matrices, matchers, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rubric import (
    Criterion,
    DecisionTree,
    Judge,
    Jury,
    Likert,
    LoadError,
    Panel,
    Rubric,
    UngradedError,
    Unit,
    When,
    grade,
)
from rubric.formats.files import parse
from rubric.formats.mcptest import rubrics as rubrics_module
from rubric.formats.mcptest.reader import read
from rubric.formats.mcptest.rubrics import presets
from rubric.formats.notes import Loading, Notes
from rubric.formats.suites import load_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values import Boolean, Leaf, Letter, UnitScale
from tests.judging import JudgeLike
from tests.rows import each_row
from tests.servers import openai_serving

HEAD = "evals:\n  - name: one\n    prompt: What changed?\n    response: It changed.\n"


def loaded(text: str) -> tuple[Suite, list[str]]:
    """Return the suite of *text* and the warnings; a `LoadError` if something is wrong."""
    notes = Notes(parse(text, "e.yml"))
    suite = read(notes, Loading())
    notes.finish()
    return suite, [str(problem) for problem in notes.warnings]


def of_eval(keys: str, before: str = "") -> Case:
    """Return the case of one eval with *keys*, without warnings."""
    suite, warnings = loaded(before + HEAD + keys)
    assert warnings == []
    return suite.cases[0]


def problems(text: str) -> list[str]:
    """Return what is wrong with *text*."""
    with pytest.raises(LoadError) as caught:
        loaded(text)
    return [str(problem) for problem in caught.value.problems]


def refused(keys: str, before: str = "") -> str:
    """Return the problems of an eval with *keys*."""
    return "\n".join(problems(before + HEAD + keys))


ONE = "    rubric:\n      criteria: [{name: a, description: A%s}]\n"


# -- rubrics -----------------------------------------------------------------------------------------------


def test_an_eval_is_a_case_with_its_prompt_response_server_and_place() -> None:
    """The judge is left to the caller and the environment."""
    case = of_eval("    server: docs\n    rubric: Names the version.\n")
    assert case == Case(
        "one", Rubric.of("Names the version."), input="What changed?", output="It changed.", server="docs"
    )
    assert str(case.place) == "e.yml:2:5"


def test_an_eval_without_a_response_waits_for_a_live_target() -> None:
    """There is no candidate yet."""
    suite, _ = loaded("evals: [{name: a, prompt: Do it, rubric: Done}, {name: b, prompt: Do, response: , rubric: D}]")
    assert [case.candidate for case in suite] == [None, None]


def test_an_empty_response_is_a_response() -> None:
    """It is graded, and fails, without a live target."""
    suite, _ = loaded('evals: [{name: a, prompt: Do it, response: "", rubric: Done}]')
    assert suite.cases[0].output == ""


@each_row(
    ("keys", "criterion"),
    [
        ("", Criterion("A", id="a", answer=Unit())),
        (", weight: 0.5", Criterion("A", id="a", answer=Unit(), weight=0.5)),
        (", required: true", Criterion("A", id="a", answer=Unit(), required=True)),
        (", required: true, threshold: 0.9", Criterion("A", id="a", answer=Unit(), required=True, min_score=0.9)),
        (", guard: true", Criterion("A", id="a", answer=Unit(), polarity="guard")),
        (", guard: true, threshold: 0.9", Criterion("A", id="a", answer=Unit(), polarity="guard", min_score=0.9)),
        (", when: {contains: error}", Criterion("A", id="a", answer=Unit(), when=When(contains="error"))),
        (", when: {regex: 'err.r'}", Criterion("A", id="a", answer=Unit(), when=When(regex="err.r"))),
    ],
)
def test_a_criterion_is_judged_in_the_unit_interval(keys: str, criterion: Criterion) -> None:
    """Each key of a criterion has its field."""
    assert of_eval(ONE % keys).rubric.criteria == (criterion,)


@each_row(
    ("keys", "what"),
    [
        ("strict: true", {"strict": True}),
        ("require_evidence: true", {"evidence": True}),
        ("aggregation: worst", {"aggregation": "min"}),
        ("aggregation: min", {"aggregation": "min"}),
        ("aggregation: weighted_average", {"aggregation": "weighted_average"}),
        ("threshold: 0", {"threshold": 0}),
        ("scale: unit", {"scale": UnitScale()}),
        ("scale: boolean", {"scale": Boolean()}),
        ("scale: letter", {"scale": Letter()}),
        ("scale: {likert: {min: 0, max: 10}}", {"scale": Likert(0, 10)}),
    ],
)
def test_the_options_of_a_rubric(keys: str, what: dict[str, object]) -> None:
    """Each key of a rubric has its field."""
    rubric = of_eval(f"    rubric:\n      {keys}\n      criteria: [{{name: a, description: A}}]\n").rubric
    assert {name: getattr(rubric, name) for name in what} == what


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("true", "false"), ('"yes"', '"no"')])
def test_the_branches_of_a_tree_may_be_the_booleans_that_old_yaml_made_of_them(yes: str, no: str) -> None:
    """A file that went through YAML 1.1 has true and false."""
    tree = f"{{ask: Q, {yes}: {{score: 1.0}}, {no}: {{ask: R, {yes}: {{score: 0.4, reason: r}}, {no}: {{score: 0}}}}}}"
    expected = DecisionTree("Q", yes=1, no=DecisionTree("R", yes=Leaf(0.4, reason="r"), no=0))
    assert of_eval(f"    rubric: {{threshold: 0.5, tree: {tree}}}\n").rubric == Rubric(tree=expected, threshold=0.5)


NAMED = "rubrics:\n  shared: {threshold: 0.6, criteria: [{name: a, description: A}]}\n  plain: Is good\n"


@each_row(
    ("keys", "threshold"),
    [
        ("    rubric: {ref: shared}\n", 0.6),
        ("    rubric: {ref: shared, threshold: 0.8}\n", 0.8),
        ("    rubric: {ref: shared, threshold: 0.8}\n    threshold: 0.9\n", 0.9),
        ("    rubric: {ref: plain}\n", 0.7),
        ("    rubric: {ref: plain}\n    threshold: 0\n", 0),
        ("    rubric: Good\n    threshold: 1\n", 1),
    ],
)
def test_the_nearest_threshold_wins(keys: str, threshold: float) -> None:
    """Of the eval, else inline, else of the named rubric, else 0.7."""
    assert of_eval(keys, NAMED).rubric.threshold == threshold


def test_a_reference_may_make_a_rubric_strict() -> None:
    """And nothing else but its threshold."""
    assert of_eval("    rubric: {ref: shared, strict: true}\n", NAMED).rubric.strict is True


@pytest.mark.parametrize("name", [*presets()])
def test_a_preset_is_a_rubric_of_several_criteria(name: str) -> None:
    """They are judged in 0..1, at least one of them is a gate, and it has answers that must pass and must fail."""
    rubric = of_eval(f"    rubric: {{preset: {name}}}\n").rubric
    assert rubric == presets()[name]
    assert (rubric.name, len(rubric.criteria), rubric.threshold) == (name, 3, 0.7)
    assert all(criterion.answer == Unit() for criterion in rubric.criteria)
    assert any(criterion.required for criterion in rubric.criteria)
    examples = load_suite(Path(rubrics_module.__file__).with_name("presets.yaml"))
    assert {tag for case in examples if case.rubric == rubric for tag in case.tags} == {"must-pass", "must-fail"}


def test_a_preset_takes_criteria_at_its_end_and_another_threshold() -> None:
    """The preset's own come first."""
    rubric = of_eval(
        "    rubric:\n      preset: safety\n      threshold: 0.9\n      strict: true\n"
        "      criteria: [{name: brief, description: B}]\n"
    ).rubric
    assert [criterion.id for criterion in rubric.criteria] == ["declines-harm", "keeps-private", "helps", "brief"]
    assert (rubric.threshold, rubric.strict) == (0.9, True)


def test_an_unknown_preset_says_which_is_near() -> None:
    """As an unknown reference does."""
    with pytest.raises(LoadError, match="did you mean 'safety'"):
        of_eval("    rubric: {preset: safty}\n")


# -- what is noted -----------------------------------------------------------------------------------------


@each_row(
    ("keys", "said"),
    [
        ("    rubirc: T\n    rubric: T\n", "e.yml:5:5: evals[0].rubirc: unknown key; did you mean 'rubric'?"),
        (ONE % ", wieght: 2", "criteria[0].wieght: unknown key; did you mean 'weight'?"),
        (ONE % ", weight: '2'", "criteria[0].weight: expected a finite number from 0, got '2'; take the quotes off"),
        (ONE % ", weight: -1", "criteria[0].weight: expected a finite number from 0"),
        (ONE % ", required: 0.7", "criteria[0].required: expected true or false"),
        (ONE % ", guard: 'yes'", "criteria[0].guard: expected true or false"),
        (ONE % ", required: true, threshold: 1.5", "criteria[0].threshold: expected a finite number from 0 to 1"),
        (ONE % ", weight: ", "criteria[0].weight: expected a value, got nothing"),
        (ONE % ", when: {tool_called: x}", "when.tool_called: unknown key"),
        (ONE % ", when: {regex: '('}", "when.regex: "),
        (ONE % ", examples: [{response: r, score: 2}]", "examples[0].score: expected a finite number from 0 to 1"),
        (ONE % ", examples: [{respnse: r, score: 1}]", "did you mean 'response'"),
        ("    rubric: {criteria: [A]}\n", "rubric.criteria[0]: expected a criterion (a mapping with name"),
        ("    rubric: 5\n", "rubric: expected a text, or a mapping"),
        ("    rubric: ' '\n", "rubric: expected text, got an empty one"),
        ("    rubric: {text: T}\n", "rubric.text: unknown key"),
        ("    rubric: {criteria: []}\n", "nothing to grade by"),
        ("    rubric: {tree: {ask: Q, yes: {score: 1}, no: {score: 2}}}\n", "tree.no.score: expected a finite number"),
        ("    rubric: {tree: {ask: Q, yes: 1, no: {score: 0}}}\n", "tree.yes: expected a leaf"),
        ("    rubric: {tree: {ask: Q, yes: {score: 1, next: 2}, no: {score: 0}}}\n", "tree.yes.next: unknown key"),
        ("    rubric: {tree: {yes: {score: 1}, no: {score: 0}}}\n", "the key 'ask' is missing"),
        ("    rubric: {preset: safety, scale: letter}\n", "only threshold and strict and criteria may stand beside"),
        ("    rubric: {preset: safety, criteria: [{name: helps, description: S}]}\n", "belongs to the preset already"),
        ("    rubric: {preset: 3}\n", "there is no preset 3"),
        ("    rubric: {ref: nope}\n", "there is no rubric 'nope'; the file has none under `rubrics`"),
        ("    rubric: T\n    threshold: high\n", "evals[0].threshold: expected a finite number from 0 to 1"),
        ("    rubric: T\n    threshold:\n", "evals[0].threshold: expected a number from 0 to 1, got nothing"),
        ("    rubric: T\n    judge: {jury: {size: 0}}\n", "judge.jury.size: expected a whole number of at least 1"),
        ("    rubric: T\n    judge: {jury: {sise: 3}}\n", "did you mean 'size'"),
        ("    rubric: T\n    judge: {model: [a]}\n", "judge.model: "),
        ("    rubric: T\n    judge: {model: 'nosuch:vendor'}\n", "judge.model: "),
        ("    rubric: T\n    judge: {panel: [a], aggregate: most}\n", "judge.aggregate: unknown value 'most'"),
        ("    rubric: T\n    judge: {model: a, aggregate: mean}\n", "judge.aggregate: this belongs to a panel"),
        ("    rubric: T\n    matrix: {}\n", "matrix: a matrix has models, prompts or both"),
        ("    rubric: T\n    matrix: {models: []}\n", "matrix.models: expected at least one"),
        ("    rubric: T\n    matrix: {models: [a, a]}\n", "matrix.models[1]: this stands in the list already"),
        ("    rubric: T\n    matrix: {prompts: [1]}\n", "matrix.prompts[0]: expected text, got 1"),
        ("    rubric: T\n    judge: {panel: [a]}\n    matrix: {models: [b]}\n", "vary the judge, and a panel names"),
        ("", "evals[0]: the key 'rubric' is missing"),
    ],
)
def test_a_problem_says_where_it_is_and_what_is_allowed(keys: str, said: str) -> None:
    """Whatever else it leads to."""
    assert said in refused(keys)


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    """An eval with a wrong rubric has its other keys checked too."""
    found = problems(
        "rubrics: {r: {ref: q}}\n"
        "evals:\n  - name: 5\n    promt: P\n    rubric: {criteria: [{name: a}], strict: 1, scale: stars}\n"
    )
    assert [re.sub(r"^e.yml:\d+:\d+: ", "", problem).partition(":")[0] for problem in found] == [
        "rubrics.r.ref",
        "evals[0]",
        "evals[0].name",
        "evals[0].promt",
        "evals[0].rubric.criteria[0]",
        "evals[0].rubric.strict",
        "evals[0].rubric.scale",
    ]


def test_a_name_that_stands_twice_is_refused_at_the_second() -> None:
    """The message names the line of the first."""
    (found,) = problems("evals:\n  - {name: a, prompt: P, rubric: T}\n  - {name: a, prompt: Q, rubric: T}\n")
    assert found.startswith("e.yml:3:12: evals[1].name: the name 'a' belongs to what line 2 starts already")


def test_a_block_that_is_nearly_evals_is_a_slip() -> None:
    """Anything else that is not about rubrics is left out with a warning."""
    assert "did you mean 'evals'" in problems("eval: []\n")[0]
    _, warnings = loaded("servers: {a: {}}\nsecurity: {x: 1}\nevals: []\n")
    assert [": ".join(warning.split(": ")[:2]) for warning in warnings] == [
        "e.yml:1:1: servers",
        "e.yml:2:1: security",
    ]


def test_a_threshold_that_gates_nothing_is_told() -> None:
    """It is neither dropped in silence nor made a gate."""
    suite, warnings = loaded(HEAD + ONE % ", threshold: 0.9")
    assert suite.cases[0].rubric.criteria == (Criterion("A", id="a", answer=Unit()),)
    assert "criteria[0].threshold: a threshold of its own counts only where a criterion gates" in warnings[0]


def test_an_eval_without_a_name_gets_one_and_is_told() -> None:
    """It is called by its place."""
    suite, (warning,) = loaded("evals: [{prompt: P, rubric: T}]")
    assert (suite.cases[0].id, "no name" in warning) == ("eval 1", True)


def test_a_criterion_needs_a_name() -> None:
    """It is reported by its name, and gates are told by it."""
    assert "criteria[0]: the key 'name' is missing; add it" in refused("    rubric: {criteria: [{description: A}]}\n")


def test_a_file_that_is_no_mapping_is_refused() -> None:
    """With what is wanted."""
    assert problems("- a\n") == ["e.yml:1:1: expected a mapping with evals, got a list"]


# -- judges and matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("block", "judge"),
    [
        ("{model: claude-sonnet-4-5}", Judge("claude-sonnet-4-5")),
        ("{model: 'anthropic:messages:claude-sonnet-4-5'}", Judge("anthropic/claude-sonnet-4-5")),
        ("{model: m, jury: {size: 3, consensus: 0.66}}", Jury(Judge("m"), 3, 0.66)),
        ("{panel: [a, b]}", Panel(["a", "b"])),
        ("{panel: [a, b], aggregate: majority, tie_break: pass}", Panel(["a", "b"], aggregate="majority", tie_break="pass")),
    ],
)  # fmt: skip
def test_who_judges(block: str, judge: Judge | Jury | Panel) -> None:
    """A model, the same model several times, or several models."""
    assert of_eval(f"    rubric: T\n    judge: {block}\n").judge == judge


def test_a_panel_leaves_a_model_beside_it_out_and_says_so() -> None:
    """The members have names of their own."""
    suite, (warning,) = loaded(HEAD + "    rubric: T\n    judge: {model: m, panel: [a, b]}\n")
    assert suite.cases[0].judge == Panel(["a", "b"])
    assert "judge.model: a panel names its own models" in warning


JURY = "    rubric: Names the version.\n    judge: {jury: {size: 2}}\n"


def test_a_jury_without_a_model_is_not_graded_without_a_key() -> None:
    """The file loads; the lack of a key is a failure that names the variables, and no verdict."""
    case = of_eval(JURY)
    assert case.candidate is not None
    with pytest.raises(UngradedError, match="the environment names none") as caught:
        grade(case.candidate, case.rubric, case.judge)
    assert {failure.kind for failure in caught.value.result.failures} == {"auth"}


def test_a_jury_without_a_model_asks_the_one_of_the_environment() -> None:
    """It is looked up when the jury is asked, and each vote is a call."""
    case = of_eval(JURY)
    assert case.candidate is not None
    with openai_serving(JudgeLike({}, otherwise=0.9)) as endpoint:
        result = grade(case.candidate, case.rubric, case.judge)
    assert (result.score, len(endpoint.requests)) == (0.9, 2)


def test_a_matrix_has_a_case_for_each_cell() -> None:
    """Models vary the judge, prompts what is answered; the names tell the coordinates."""
    keys = "    rubric: T\n    judge: {jury: {size: 3}}\n    matrix: {models: [a, b], prompts: [P, Q]}\n"
    suite, _ = loaded(HEAD + keys)
    assert [(case.id, case.input, dict(case.cell)) for case in suite] == [
        ("one [a, prompt 1]", "P", {"model": "a", "prompt": "P"}),
        ("one [a, prompt 2]", "Q", {"model": "a", "prompt": "Q"}),
        ("one [b, prompt 1]", "P", {"model": "b", "prompt": "P"}),
        ("one [b, prompt 2]", "Q", {"model": "b", "prompt": "Q"}),
    ]
    assert [case.judge for case in suite] == [Jury("a"), Jury("a"), Jury("b"), Jury("b")]


@pytest.mark.parametrize(("axis", "count"), [("models: [a, b, c]", 3), ("prompts: [P, Q]", 2)])
def test_a_matrix_of_one_axis(axis: str, count: int) -> None:
    """The other coordinate is not there."""
    suite, _ = loaded(HEAD + f"    rubric: T\n    matrix: {{{axis}}}\n")
    assert [len(case.cell) for case in suite] == [1] * count


def test_a_name_that_stands_twice_is_told_beside_all_other_problems() -> None:
    """Also where the eval or the criterion of that name has a mistake of its own."""
    text = (
        "evals:\n- {name: e, prompt: p, rubric: T}\n- {name: e, prompt: p, rubric: T, threshold: 3}\n"
        "- {name: f, prompt: p, rubric: {criteria: [{name: b, description: D, weight: -1}, {name: b, description: D}]}}\n"
    )
    found = problems(text)
    assert len(found) == 4
    assert sum("belongs to" in problem for problem in found) == 2


# -- matchers ----------------------------------------------------------------------------------------------

TOOLS = (
    "tools:\n  - name: t\n    server: s\n    tool: x\n    expect:\n      - target: result\n        matcher:\n          "
)


def test_an_llm_judge_matcher_is_a_case_that_waits_for_its_text() -> None:
    """The call of the tool is kept as metadata."""
    suite, _ = loaded(TOOLS + "llm-judge: {rubric: T, threshold: 0.8, model: m}\n")
    (case,) = suite.cases
    expected = Case("t", Rubric.of("T", threshold=0.8), judge="m", server="s", metadata={"tool": "x", "target": "result"})  # fmt: skip
    assert case == expected


@pytest.mark.parametrize(
    ("jurors", "judge"),
    [
        ("jurors: [a, a, a], quorum: 0.67", Jury("a", 3, 0.67)),
        ("jurors: [a, b, c]", Panel(["a", "b", "c"], aggregate="majority")),
        ("jurors: [{model: a}, {model: b}], quorum: 0.5", Panel(["a", "b"], aggregate="majority", tie_break="pass")),
        ("jurors: [a, b], quorum: 1.0", Panel(["a", "b"], aggregate="majority")),
    ],
)
def test_an_llm_jury_matcher_is_a_jury_or_a_majority(jurors: str, judge: Jury | Panel) -> None:
    """What the quorum asks for is a count of passing votes."""
    suite, _ = loaded(TOOLS + f"llm-jury: {{rubric: T, {jurors}}}\n")
    assert suite.cases[0].judge == judge


def test_a_quorum_that_is_no_majority_is_the_consensus_of_the_panel() -> None:
    """All of three, or one of three: each juror votes, and the share that passes decides."""
    suite, warnings = loaded(TOOLS + "llm-jury: {rubric: T, quorum: 1.0, jurors: [a, b, c]}\n")
    assert suite.cases[0].judge == Panel(["a", "b", "c"], aggregate="majority", consensus=1.0)
    assert not any("quorum" in warning for warning in warnings)
    suite, _ = loaded(TOOLS + "llm-jury: {rubric: T, quorum: 0.33, jurors: [a, b, c]}\n")
    assert suite.cases[0].judge == Panel(["a", "b", "c"], aggregate="majority", consensus=0.33)


def test_the_rubric_of_an_agents_test_is_like_that_of_an_eval() -> None:
    """With a prompt, and named rubrics; two in one test are numbered."""
    text = NAMED + (
        "agents:\n  - name: a\n    prompt: P\n    expect:\n"
        "      - eval.rubric: {ref: shared}\n      - eval.rubric: {rubric: T, threshold: 0.9, judge: {model: m}}\n"
    )
    suite, _ = loaded(text)
    assert [(case.id, case.input, case.rubric.threshold) for case in suite] == [
        ("a [eval.rubric 1]", "P", 0.6),
        ("a [eval.rubric 2]", "P", 0.9),
    ]
