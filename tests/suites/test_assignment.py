"""Who judges a case of a suite, and what becomes of it when nobody can be asked."""

from __future__ import annotations

import re
from typing import Any

import pytest
from attrs import evolve

from rubric import (
    Budget,
    Contains,
    Criterion,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Panel,
    Rubric,
    Ungraded,
    grade,
)
from rubric.models.api_keys import why_keyless
from rubric.models.registry import EnvironmentModel
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.trust import compare
from tests.rows import each_row
from tests.suite_help import GOOD, TWO, asks_of, one, saying

THREE = TWO.expects("Is short", id="short")


def judges() -> tuple[Judge, Judge, Judge]:
    """Return three judges that all say yes."""
    return tuple(saying(version=True, warm=True, short=True) for _ in range(3))  # type: ignore[return-value]


def test_the_callers_judge_goes_before_the_cases_and_the_suites() -> None:
    """All criteria are the caller's judge's, those with a judge of their own too."""
    mine, its, suites = judges()
    suite = Suite("s", [Case("a", TWO, output=GOOD, judge=its, judges={"warm": its})], judge=suites)
    suite.run(mine)
    assert [len(asks_of(judge)) for judge in (mine, its, suites)] == [2, 0, 0]


def test_the_cases_judge_goes_before_the_suites() -> None:
    """Each case is judged by its own, if it has one."""
    _, its, suites = judges()
    Suite("s", [Case("a", TWO, output=GOOD, judge=its), Case("b", TWO, output=GOOD)], judge=suites).run()
    assert [len(asks_of(judge)) for judge in (its, suites)] == [2, 2]


class Named(ScriptedModel):
    """A scripted model with a name like a vendor's."""

    def __init__(self, name: str) -> None:
        super().__init__({"version": True, "warm": True})
        self.__name__ = name


@pytest.mark.parametrize("written", ["gpt-9", "openai/gpt-9", "openai:chat:gpt-9"])
def test_in_a_matrix_over_judges_each_cell_keeps_its_own(written: str) -> None:
    """The cell is the point of it; however the vendor is written."""
    mine, cell = saying(version=True, warm=True), Judge(Named("openai/gpt-9"))
    Suite("s", [Case("a [gpt-9]", TWO, output=GOOD, judge=Jury(cell, 2), cell={"model": written})]).run(mine)
    assert [len(asks_of(judge)) for judge in (mine, cell)] == [0, 4]


@pytest.mark.parametrize("cell", [{"model": "claude"}, {"prompt": "gpt-9"}, {"model": 9}])
def test_in_any_other_matrix_the_callers_judge_judges(cell: dict[str, Any]) -> None:
    """A matrix over candidates' models or prompts says nothing of the judge."""
    mine, its = saying(version=True, warm=True), Judge(Named("openai/gpt-9"))
    Suite("s", [Case("a", TWO, output=GOOD, judge=its, cell=cell)]).run(mine)
    assert [len(asks_of(judge)) for judge in (mine, its)] == [2, 0]


# -- criteria with judges of their own -------------------------------------------------------------------


def test_single_criteria_are_judged_by_their_own_judges() -> None:
    """Each judge is asked its own, and all findings make one grade."""
    first, second, third = judges()
    row = one(THREE, judge=first, judges={"warm": second, "short": third}).run()["a"]
    assert [asks_of(judge) for judge in (first, second, third)] == [[["version"]], [["warm"]], [["short"]]]
    assert (row.status, row.score, row.usage.calls) == ("passed", 1.0, 3)
    assert [entry.id for entry in row.entries] == ["version", "warm", "short"]
    assert row.judge.count("ScriptedModel") == 3


def test_weights_and_gates_hold_across_judges() -> None:
    """A gate of one judge fails what another passes; the mean counts all weights."""
    rubric = Rubric(criteria=[Criterion("a", id="a", weight=3), Criterion("b", id="b", required=True)])
    row = one(rubric, judge=saying(a=True), judges={"b": saying(b=False)}).run()["a"]
    assert (row.status, row.score, row.gates) == ("failed", 0.75, ("b",))
    assert row.reason.startswith("'b' failed it")


def test_a_share_that_counts_for_nothing_is_judged_all_the_same() -> None:
    """A judge's criteria may all have the weight 0."""
    rubric = Rubric(criteria=[Criterion("a", id="a"), Criterion("b", id="b", weight=0)])
    row = one(rubric, judge=saying(a=True), judges={"b": saying(b=False)}).run()["a"]
    assert (row.score, [entry.weight for entry in row.entries]) == (1.0, [1, 0])


def test_a_share_of_penalties_alone_is_judged_all_the_same() -> None:
    """By points, a rubric without a criterion that earns some is refused; the share of a judge is none."""
    rubric = Rubric(criteria=[Criterion("a", id="a"), Criterion("b", id="b", polarity="penalty")], aggregation="points")
    suite = one(rubric, judge=saying(a=True), judges={"b": saying(b=False)})
    assert suite.plan().calls == 2
    assert suite.run()["a"].score == 1.0


@pytest.mark.parametrize("early_stop", [True, False])
def test_what_others_found_counts_in_every_vote_of_a_jury(*, early_stop: bool) -> None:
    """Two of three votes need the other judge's criterion; without it all would fail."""
    votes = iter([True, False, True])
    jury = Jury(ScriptedModel(lambda ask: next(votes)), 3, early_stop=early_stop)
    suite = one(TWO.passing_at(0.8), judge=jury, judges={"warm": saying(warm=True)})
    row = suite.run()["a"]
    assert [vote.score for vote in row.votes] == [1.0, 0.5, 1.0]
    assert (row.status, row.usage.calls) == ("passed", 4)
    assert row.score == pytest.approx(2.5 / 3)


def test_a_split_case_comes_out_like_an_undivided_one() -> None:
    """The same verdicts give the same grade, whoever gave them."""
    verdicts = {"version": True, "warm": False, "short": Says(True, "brief")}
    undivided = grade(GOOD, THREE, saying(**verdicts))
    result = one(THREE, judge=saying(**verdicts), judges={"short": saying(**verdicts)}).run()["a"].result
    assert isinstance(result, Grade)
    assert (result.findings, result.outcome) == (undivided.findings, undivided.outcome)
    assert result.rescore(threshold=0.5).passed is True


def test_a_judge_that_fails_on_its_share_leaves_the_case_ungraded() -> None:
    """What the others found is kept."""
    row = one(judge=saying(version=True), judges={"warm": saying()}).run()["a"]
    assert [entry.status for entry in row.entries] == ["scored", "unjudged"]
    assert isinstance(row.result, Ungraded)
    assert row.bounds == (0.5, 1.0)


def test_all_criteria_may_have_judges_of_their_own() -> None:
    """Then the case's judge, even one that is missing, is not needed."""
    first, second, _ = judges()
    row = one(judges={"version": first, "warm": second}).run()["a"]
    assert (row.status, row.usage.calls) == ("passed", 2)


def test_one_text_may_be_judged_by_another() -> None:
    """A free-form rubric has one criterion, called overall."""
    row = one("Is good", judges={"overall": saying(overall=0.9)}).run()["a"]
    assert (row.status, row.score) == ("passed", 0.9)


# -- nobody to ask ---------------------------------------------------------------------------------------


def test_without_any_judge_a_case_is_deferred() -> None:
    """No key, no judge: the reason names the variables."""
    row = one().run()["a"]
    assert (row.status, row.usage.calls) == ("deferred", 0)
    assert "OPENAI_API_KEY" in row.reason


def test_a_key_in_the_environment_names_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for `grade`."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    assert one().plan()["a"].judge.startswith("openai/")


MISSING = [
    ("openai/gpt-4o-mini", "OPENAI_API_KEY"),
    ("gpt-4o-mini", "OPENAI_API_KEY"),
    ("anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
    ("gemini/gemini-2.5-flash", "GEMINI_API_KEY"),
    ("groq/llama-3.3-70b-versatile", "GROQ_API_KEY"),
    (Jury("openai/gpt-4o-mini", 2), "OPENAI_API_KEY"),
    (Panel(["offline", "mistral/mistral-large-latest"]), "MISTRAL_API_KEY"),
]


@each_row(("judge", "variable"), MISSING)
def test_a_judge_without_its_key_defers(judge: Any, variable: str) -> None:
    """Before a target is asked for a candidate that nobody could judge."""
    suite = one(output=None)
    row = suite.run(judge, target=lambda case: pytest.fail("was asked"))["a"]
    assert row.status == "deferred"
    assert variable in row.reason


THERE = [
    "offline",
    "ollama_chat/llama3",
    "vertex_ai/gemini-2.5-flash",
    "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0",
    "hosted_vllm/mine",
    Judge("openai/gpt-4o-mini", params={"api_key": "sk-test"}),
    Judge("openai/gpt-4o-mini", params={"api_base": "http://127.0.0.1:9/v1"}),
    Judge(lambda messages: "{}"),
    Panel(["offline", "openai/gpt-4o-mini"], quorum=1),
]


@each_row("judge", THERE)
def test_a_judge_that_may_have_another_way_in_is_asked(judge: Any) -> None:
    """No key of which we know is missing: a key of its own, no key at all, or a panel that does without."""
    assert why_keyless(Panel([judge])) == "" if not isinstance(judge, Panel) else why_keyless(judge) == ""


def test_a_key_that_the_program_gave_litellm_is_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only the environment has keys."""
    import litellm

    judge = Judge("openai/gpt-4o-mini")
    assert why_keyless(judge)
    monkeypatch.setattr(litellm, "openai_key", "sk-0123456789abcdef")
    assert why_keyless(judge) == ""


def test_only_those_who_would_be_asked_need_a_key() -> None:
    """Criteria that code decides, or that do not apply, ask nobody."""
    keyless = Judge("openai/gpt-4o-mini")
    rubric = Rubric(criteria=[Criterion("c", id="c", answer=Contains("2.3.0"))]).expects("x", id="x", when=_never)
    nested = Rubric().includes(rubric, id="inner")
    assert [one(r, judge=keyless).run()["a"].status for r in (rubric, nested)] == ["passed", "passed"]
    assert one(TWO.checks(Contains("2.3.0")), judge=keyless).run()["a"].status == "deferred"
    assert one(TWO, judge=keyless, output="...").run()["a"].status == "failed"


def _never(_: Any) -> bool:
    return False


def test_a_judge_is_named_in_words() -> None:
    """Juries and panels say whom they are made of."""
    bench = Panel([Jury("offline", 3), "openai/gpt-9"])
    assert bench.name == "panel: jury of 3: offline, openai/gpt-9"
    assert [judge.name for judge in bench.single_judges()] == ["offline", "openai/gpt-9"]


# -- budgets ---------------------------------------------------------------------------------------------


def test_a_budget_for_a_judge_without_a_price_is_refused() -> None:
    """A cap that cannot hold would be none."""
    judge = saying(version=True, warm=True)
    with pytest.raises(DefinitionError, match="budget: the price of 'ScriptedModel' is not known"):
        one().run(judge, budget=Budget(cost=1))
    assert asks_of(judge) == []


def test_a_budget_for_what_costs_nothing_holds() -> None:
    """The offline judge is free, and so is what is deferred."""
    suite = Suite("s", [Case("a", TWO, output=GOOD), Case("b", TWO)])
    report = suite.run("offline", budget=Budget(cost=0))
    assert [row.status for row in report][1] == "deferred"
    assert report["a"].status in ("passed", "failed")


def test_a_jury_that_names_no_model_is_one_of_whoever_judges() -> None:
    """The caller's judge, else the suite's, sits in it; without either, and without a key, the case waits."""
    jury = Jury(Judge(EnvironmentModel()), 3)
    suite = Suite("x", [Case("a", Rubric().expects("Is polite"), output="Is polite", judge=jury)])
    assert suite.run("offline")["a"].usage.calls == 3
    assert evolve(suite, judge="offline").run()["a"].usage.calls == 3
    assert suite.run()["a"].status == "deferred"


def test_a_matrix_has_a_case_a_judge_and_a_prompt() -> None:
    """Each cell keeps its own judge, is asked its own prompt, and is called by its coordinates."""
    jury = Jury("offline", 3)
    suite = Suite("x", [Case("a", "Is polite", output="Is polite")])
    cells = suite.matrix(judges=["offline", jury], prompts=["Hi", "Ho"])
    assert [case.id for case in cells] == [
        "a [offline, prompt 1]", "a [offline, prompt 2]", f"a [{jury!r}, prompt 1]", f"a [{jury!r}, prompt 2]",
    ]  # fmt: skip
    assert [case.input for case in cells] == ["Hi", "Ho", "Hi", "Ho"]
    assert cells.cases[3].cell == {"model": repr(jury), "prompt": "Ho"}
    assert [row.usage.calls for row in cells.run("no-vendor/no-model")] == [1, 1, 3, 3]


@each_row(
    ("prompt", "shown"),
    [
        ("Answer: {{ question }}", "Answer: Why?"),
        ("{{question}} {{ n }} {{ input }}", "Why? 7 Hi"),
        ("{{ qestion }}", "unknown slot {{ qestion }}; write '{{ question }}'"),
        ("{{ other }}", "unknown slot {{ other }}; variables of the case: input, question, n"),
        ("To {question}", "{question} would stay as it is: a slot is {{ name }}; write 'To {{ question }}'"),
        ("${input}", "write '{{ input }}'"),
        ("{{ question | upper }}", "write '{{ question }}'"),
        ('{"a": 1}', '{"a": 1}'),
    ],
)
def test_a_prompt_of_a_matrix_shows_the_variables_of_the_case_and_its_input(prompt: str, shown: str) -> None:
    """A slot is filled as in a file, and one that names no variable is refused with the text that is meant."""
    suite = Suite("x", [Case("a", "Is polite", input="Hi", variables={"question": "Why?", "n": 7})])
    if "{{" in shown:
        with pytest.raises(DefinitionError, match=f"^{re.escape('prompts[0]: ')}.*{re.escape(shown)}"):
            suite.matrix(prompts=[prompt])
        return
    (cell,) = suite.matrix(prompts=[prompt])
    assert (cell.input, cell.cell["prompt"]) == (shown, prompt)


def test_cells_of_a_matrix_are_grouped_by_their_axes_and_compared() -> None:
    """The pairs of two halves are told by the line of the error, as it is printed."""
    cases = [Case(id_, "Is polite", output="Is polite", variables={"n": id_}) for id_ in ("a", "b")]
    grades = Suite("x", cases).matrix(judges=["offline"], prompts=["Hi {{ n }}", "Ho"]).run().grades
    halves = grades.by("prompt")
    assert [*halves] == ["Hi {{ n }}", "Ho"]
    assert [*grades.by("model")] == ["offline"]
    assert [*grades.by("n")] == ["a", "b"]
    new, old = halves.values()
    with pytest.raises(DefinitionError, match="no candidate is in both runs") as caught:
        compare(new, old)
    names = {"new": new, "old": old}
    exec(caught.value.message.partition("; the cells of a matrix: ")[2], names)  # noqa: S102 - a cure that is printed
    assert (len(names["new"]), {each.key for each in names["new"]}) == (2, {"a", "b"})
    assert compare(names["new"], names["old"]).criteria[0].n == 2
    others: Any = [evolve(each, key="z") for each in old]
    with pytest.raises(DefinitionError, match=r"no candidate is in both runs: 'a \[.*', \.\.\. and 'z', \.\.\.$"):
        compare(new, others)


def test_cells_that_could_not_be_told_apart_are_refused() -> None:
    """Two judges of one name."""
    with pytest.raises(DefinitionError, match="is used twice"):
        Suite("x", [Case("a", "Is polite")]).matrix(judges=["offline", Judge("offline", per_call="all")])


def test_a_matrix_without_axes_is_refused() -> None:
    """There is nothing to compare."""
    with pytest.raises(DefinitionError, match="judges, prompts or both"):
        Suite("x", [Case("a", "Is polite")]).matrix()
