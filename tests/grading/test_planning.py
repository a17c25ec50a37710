"""What a plan says before anything is sent holds of what is then sent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rubric import Candidate, Contains, DefinitionError, Judge, Jury, Panel, Rubric, ask, plan
from rubric.grading.planning import Plan, plan_one
from tests.drive import REPLY, planned

PLAIN = Rubric().expects("Is it good?", id="a")


def steps(plan: Plan) -> tuple[int, int, int]:
    """Return the calls at least, at most, and if every reply had to be repaired."""
    return plan.least, plan.most, plan.ceiling


def test_a_criterion_is_a_call() -> None:
    """And a re-ask of each is possible."""
    assert steps(planned(PLAIN.expects("b"), Judge("offline"))) == (2, 2, 4)


def test_a_jury_multiplies_and_may_stop_early() -> None:
    """Criteria times size; with an early stop at least as many as can decide."""
    two = PLAIN.expects("b")
    assert steps(planned(two, Jury("offline", 3))) == (6, 6, 12)
    assert steps(planned(two, Jury("offline", 3, early_stop=True))) == (4, 6, 12)


def test_a_tree_takes_from_its_shortest_to_its_longest_walk() -> None:
    """Every question of it is in the plan."""
    tree = ask("1").yes(ask("2").yes(1).no(ask("3").yes(1).no(0))).no(0)
    plan = planned(Rubric.deciding(tree), Judge("offline"))
    assert (steps(plan), len(plan.asks)) == ((1, 3, 6), 3)


def test_what_needs_no_call_is_free() -> None:
    """Checks, criteria that do not apply, and everything for a degenerate candidate."""
    rubric = PLAIN.checks(Contains("x"), id="c").expects("w", id="w", when=lambda _: False)
    assert planned(rubric, Judge("offline")).free == ("c", "w")
    assert steps(planned(rubric, Judge("offline"), "...")) == (0, 0, 0)


def test_how_early_a_panel_can_stop_depends_on_the_threshold() -> None:
    """One 0 of three rules out a mean of 0.7, but not one of 0.5."""
    rule = Panel(["offline"] * 3, early_stop=True)
    assert planned(PLAIN, rule).least == 1
    assert planned(PLAIN.passing_at(0.5), rule).least == 2


def test_a_plan_can_be_printed_as_json() -> None:
    """With the exact messages."""
    data = json.loads(json.dumps(planned(PLAIN, Judge("offline")).to_dict()))
    assert data["asks"][0]["criteria"] == ["a"]
    assert REPLY in data["asks"][0]["messages"][1]["content"]


def test_an_unknown_price_makes_the_cost_unknown() -> None:
    """It is not taken for 0."""
    plan = plan_one(Candidate(REPLY), PLAIN, Judge("offline"), count=lambda _, __: 1, price=lambda _: None)
    assert (plan.cost, "cost unknown" in repr(plan)) == (None, True)


def test_a_plan_names_the_judges_without_a_price_and_why_its_costs_are_far_apart() -> None:
    """A model that thinks has replies of any length: the way to bound them is printed, and works."""
    two = plan("Hello.", PLAIN, ["openai/gpt-4o-mini", Judge("openai/none-such")])
    told = re.search(r"cost unknown \(no price of openai/none-such is known; write (prices=.*), in dollars", repr(two))
    assert told is not None
    assert "prices=" not in two._repr_markdown_()  # the command line has no such option
    given = eval(f"dict({told[1]})")  # noqa: S307 - a cure that is printed works
    assert plan("Hello.", PLAIN, ["openai/gpt-4o-mini", Judge("openai/none-such")], **given).cost is not None
    thinker = plan("Hello.", PLAIN, Judge("openai/gpt-5.6"))
    assert "to replies of 4,096 tokens each; bound these by Judge(..., max_tokens=...)" in repr(thinker)
    assert "bound these" not in repr(plan("Hello. " * 2_000, PLAIN, Judge("openai/gpt-5.6", max_tokens=300)))


def test_plans_add_up() -> None:
    """The plan of several candidates is the sum of theirs."""
    plan = planned(PLAIN, Judge("offline"))
    assert steps(Plan.total([plan, plan])) == (2, 2, 4)
    assert Plan.total([plan]) == plan
    assert Plan.total([]) == Plan()


def test_a_plan_takes_what_a_run_takes(tmp_path: Path) -> None:
    """Rows, frames and files are planned as they are graded; a text that looks like one text's file is refused."""
    file = tmp_path / "replies.jsonl"
    file.write_text('{"output": "Good morning!"}\n"Go away."\n', encoding="utf-8")
    rows = [{"output": "Good morning!"}, "Go away."]
    assert plan(file, "Is polite", "offline") == plan(rows, "Is polite", "offline")
    assert steps(plan("Good morning!", "Is polite", "offline")) == (1, 1, 2)
    assert plan(str(file), "Is polite", "offline") == plan(file, "Is polite", "offline")  # as grade_many takes it
    with pytest.raises(DefinitionError, match=r"there is no file.*nowhere\.csv"):
        plan("nowhere.csv", "Is polite", "offline")
    with pytest.raises(DefinitionError, match="looks like the path of a file"):
        plan("reply.txt", "Is polite", "offline")
    assert "1 of 2 rows hold no candidate and are left out: candidates[1]: expected a text" in repr(
        plan(["Hi.", None], "Is polite", "offline")
    )


def test_a_word_that_names_a_folder_is_not_planned_as_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`grade_many` reads the folder; each of the two lines that are printed says which is meant."""
    monkeypatch.chdir(tmp_path)
    Path("code").mkdir()
    for name in ("a.txt", "b.txt"):
        Path("code", name).write_text("Thanks.", encoding="utf-8")
    for given in ("code", str(tmp_path / "code")):
        with pytest.raises(DefinitionError, match=r"write Path\(.*code'\) to have it read, or Candidate\(.*code'\)"):
            plan(given, "Is polite", "offline")
    assert plan(Path("code"), "Is polite", "offline").most == 2
    assert plan(Candidate("code"), "Is polite", "offline").most == 1
    assert plan("words", "Is polite", "offline").most == 1


def test_a_plan_says_what_usual_replies_cost() -> None:
    """Between both ends, by a share of the longest reply that can be worked out by hand."""
    told = plan("We thank you.", PLAIN, Judge("openai/gpt-5-mini", max_tokens=4_000))
    assert told.cost is not None
    low, high = told.cost
    middle = told.cost_at(150)
    assert middle == pytest.approx(low + (high - low) * 150 / 4_000)
    assert f"about ${middle:.4f} at 150 tokens a reply" in repr(told)


def test_a_reference_that_the_rubric_speaks_of_is_missed_as_a_context_is() -> None:
    """One remark names the field; a candidate that has one is told nothing."""
    rubric = Rubric("r", ["Agrees with the reference answer"])
    assert "give it as `reference`" in plan("Friday", rubric, "offline").remarks[0]
    assert not plan(Candidate("Friday", reference="On Friday"), rubric, "offline").remarks


def test_a_plan_takes_the_prices_that_a_budget_takes() -> None:
    """They count for the model that is not listed; what is known of a panel is said without them."""
    dear, listed = "anthropic/claude-of-next-year", "openai/gpt-4o-mini"
    known, panel = plan("A text", "Is polite", listed), plan("A text", "Is polite", [listed, dear])
    assert (panel.cost, panel.priced, panel.unpriced) == (None, known.cost, (dear,))
    assert f"(no price of {dear} is known; write prices={{{dear!r}: " in repr(panel)
    assert f"); $0.0000 to $0.0005 of {listed}" in repr(panel)
    one = plan("A text", "Is polite", dear, prices={dear: (10, 100)})
    assert one.cost is not None
    tokens, longest = one.prompt_tokens[0], one.asks[0].max_tokens
    assert one.cost[0] == pytest.approx(tokens * 10 / 1e6)
    assert one.cost[1] >= (tokens * 10 + longest * 100) / 1e6
    both = plan("A text", "Is polite", [listed, dear], prices={dear: (10, 100)})
    assert both.cost == both.priced
    assert both.cost == pytest.approx([a + b for a, b in zip(known.cost or (), one.cost, strict=True)])


def test_a_price_without_effect_is_refused() -> None:
    """It is of a model that no judge has, most often a name that is misspelt."""
    with pytest.raises(DefinitionError, match=r"prices.openai/gpt-4o: no judge has this model; .*openai/gpt-4o-mini"):
        plan("A text", "Is polite", "openai/gpt-4o-mini", prices={"openai/gpt-4o": (1, 2)})
    with pytest.raises(DefinitionError, match=r"prices\.offline: expected two prices"):
        plan("A text", "Is polite", "offline", prices={"offline": 1})  # type: ignore[dict-item]


def test_a_plan_takes_one_mapping_as_a_grade_does() -> None:
    """To ask what it costs needs no other form than to grade."""
    row = {"output": "Friday", "input": "When?", "context": ["On Friday."]}
    assert plan(row, "Is polite", "offline") == plan([row], "Is polite", "offline")
