"""Contrastive generation: criteria that tell preferred from rejected answers stay, and rank pairs they have not seen."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from rubric import Anchor, Budget, Candidate, Case, DefinitionError, Judge, dumps, grade, loads
from rubric.quality import Generation, generate
from rubric.quality.contrast import KEPT, discrimination, held_out, pair_wins, screen, sign_test
from rubric.testing import ScriptedModel
from rubric.values.requests import Ask, Failure
from tests.command_line import OVER_HTTP
from tests.places import ROOT
from tests.preferred_pairs import CRITERIA, pairs_of_marks, write_or_judge
from tests.rows import each_row
from tests.servers import Endpoint, openai_serving


def says(text: str, answer: str) -> bool:
    return text[text.index("[") : text.index("]") + 1] in answer


def scripted(*drafts: Sequence[dict[str, Any]], judge: Callable[[str, str], Any] = says) -> ScriptedModel:
    """Return a model that writes *drafts* in turn, and judges by the marks."""
    waiting = [*drafts]

    def line(ask: Ask) -> Any:
        if not ask.criteria:
            return {"criteria": waiting.pop(0) if len(waiting) > 1 else waiting[0]}
        text = ask.criteria[0].text
        return judge(text, ask.messages[-1].text.rpartition(text)[0])

    return ScriptedModel(line)


def generated(pairs: Any, *drafts: Sequence[dict[str, Any]], **more: Any) -> Generation:
    return generate(
        "Says when which sum comes back", Judge(scripted(*drafts or (CRITERIA[:4],))), preferred=pairs, **more
    )


# -- what stays -------------------------------------------------------------------------------------------


def test_useless_and_reversed_criteria_are_dropped() -> None:
    """The rubric keeps what tells apart, and each dropped criterion says why."""
    made = generated(pairs_of_marks(12))
    assert {one.id: one.status for one in made} == {
        "names-date": "tells apart",
        "names-sum": "tells apart",
        "is-polite": "alike",
        "is-short": "reversed",
    }
    assert made.rubric is not None
    assert made.rubric.ids == ("names-date", "names-sum")
    assert made["is-short"].why == "it prefers the rejected answer in 12 of the 12 pairs that it tells apart"
    assert made["is-polite"].why == "it answers both alike in all 12 pairs"


def test_a_reversed_criterion_is_not_turned_over() -> None:
    """A criterion that prefers rejected answers is dropped and never becomes a guard."""
    made = generated(pairs_of_marks(12))
    assert made.rubric is not None
    assert all(c.polarity == "satisfy" and c.id != "is-short" for c in made.rubric)


def test_the_rubric_is_proved_on_pairs_that_the_writer_has_not_seen() -> None:
    """Six pairs are in the prompt, and the six others give the accuracy."""
    pairs = pairs_of_marks(12)
    model = scripted(CRITERIA[:4])
    made = generate("Says when", Judge(model), preferred=pairs)
    said = model.asks[0].messages[1].text
    seen = [a in said or b in said for a, b in pairs]
    assert (sum(seen), made.held_out) == (6, 6)
    assert made.accuracy is not None
    assert (made.accuracy.value, made.ok) == (1.0, True)
    assert made.sentence == "2 of 4 criteria stay; the rubric ranks 6 held-out pairs right in 100 % (54 to 100)."


def test_the_order_of_the_pairs_changes_nothing() -> None:
    """The split follows from the pairs' content."""
    pairs = pairs_of_marks(11)
    one, other = generated(pairs), generated(pairs[::-1])
    assert one.to_dict() == other.to_dict()


def test_a_guard_and_a_level_tell_apart_by_what_they_contribute() -> None:
    """Guards, levels and penalties are compared by contribution, and a penalty makes points."""
    draft: list[dict[str, Any]] = [
        {"id": "short", "text": "Leaves out what was asked [r]", "polarity": "guard"},
        {"id": "detail", "text": "Says it in detail [d]", "answer": "levels", "levels": [
            {"score": 1, "text": "hints at it"}, {"score": 3, "text": "says all"}]},
        {"id": "fault", "text": "Uses filler words [r]", "polarity": "penalty"},
    ]  # fmt: skip

    def judge(text: str, answer: str) -> Any:
        met = says(text, answer)
        return (3 if met else 1) if "detail" in text else met

    made = generate("Says when", Judge(scripted(draft, judge=judge)), preferred=pairs_of_marks(8))
    assert [one.status for one in made] == ["tells apart"] * 3
    assert made.rubric is not None
    assert (made.rubric.aggregation, made.accuracy and made.accuracy.value) == ("points", 1.0)
    assert loads(made.rubric.to_yaml()) == made.rubric


def test_criteria_that_always_answer_alike_within_each_side_are_duplicates() -> None:
    """Duplicates need enough answers a side that coincidence is excluded."""
    pairs = [(f"a{i} [d]{'[s]' if i % 2 else ''}", f"b{i} {'[s]' if i % 3 == 0 else ''}") for i in range(12)]
    twice = [CRITERIA[0], CRITERIA[1], {"id": "amount", "text": "Tells how much money it is [s]"}]
    made = generated(pairs, twice)
    assert made["amount"].status != "duplicate"  # twelve answers a side may coincide, or both are chance
    pairs = [(f"a{i} [d]{'[s]' if i % 4 else ''}", f"b{i} {'[s]' if i % 6 == 0 else ''}") for i in range(24)]
    assert [one.status for one in generated(pairs, twice)] == ["tells apart", "tells apart", "duplicate"]


def test_good_criteria_that_only_share_the_preference_are_no_duplicates() -> None:
    """Two criteria that both follow the preference perfectly are both kept."""
    pairs = [(f"a{i} [d][s]", f"b{i}") for i in range(20)]
    assert [one.status for one in generated(pairs, CRITERIA[:3])][:2] == ["tells apart"] * 2


def test_no_rubric_is_made_of_criteria_that_tell_nothing() -> None:
    """The result has no rubric, is not ok, and says why."""
    made = generated(pairs_of_marks(6), [*CRITERIA[2:4], {"id": "kind", "text": "Greets the customer [p]"}])
    assert (made.rubric, made.ok) == (None, False)
    assert made.sentence == "None of the 3 criteria tells preferred from rejected answers, so there is no rubric."


# -- few pairs --------------------------------------------------------------------------------------------


def test_one_pair_proves_nothing_and_says_so() -> None:
    """The accuracy is None, and a remark names the lack of pairs."""
    made = generated(pairs_of_marks(1))
    assert (made.accuracy, made.ok, made.held_out) == (None, None, 0)
    assert made["names-date"].status == "too few"
    assert made["names-date"].shown is None
    assert "1 pair cannot tell whether the rubric ranks new answers right" in made.sentence
    assert any("not shown to tell answers apart, for lack of pairs" in remark for remark in made.remarks())


def test_few_pairs_may_be_ranked_right_by_chance() -> None:
    """Two of two right leaves `ok` undecided."""
    made = generated(pairs_of_marks(4))
    assert made.accuracy is not None
    assert (made.held_out, made.accuracy.value, made.ok) == (2, 1.0, None)
    assert made.sentence.endswith("which could be chance.")


def test_without_pairs_nothing_is_claimed() -> None:
    """All criteria are untested, and the sentence says that nothing shows their worth."""
    made = generated(None)
    assert (made.ok, made.usage.calls, {one.status for one in made}) == (None, 1, {"untested"})
    assert made.sentence.startswith("4 of 4 criteria stay; without preferred and rejected answers, nothing shows")


def test_pairs_that_share_an_answer_or_a_group_count_as_one() -> None:
    """Dependent pairs are one observation for the split and for the sign test."""
    shared = [("the one good [d]", f"bad {i}") for i in range(6)]
    made = generated(shared)
    assert (made.held_out, made["names-date"].status) == (0, "too few")
    grouped = [{"chosen": a, "rejected": b, "group": "g"} for a, b in pairs_of_marks(6)]
    assert generated(grouped)["names-date"].discrimination == discrimination([1.0] * 6, [0] * 6)


def test_pairs_of_one_of_several_tasks_count_as_one_unless_they_have_groups() -> None:
    """Pairs of one prompt are one group, unless there is only one prompt or groups are given."""
    pairs = pairs_of_marks(12)
    rows = [{"prompt": f"Q{i % 3}", "chosen": a, "rejected": b} for i, (a, b) in enumerate(pairs)]
    made = generated(rows)
    assert (made.held_out, made.ok, made["names-date"].why) == (
        4,
        None,
        "it prefers the preferred answer in 3 of the 3 groups that it tells apart; too few to show it",
    )
    told = "pairs of one task, of one group or with an answer in common count as one: 3 in all"
    assert told in made.remarks()
    assert generated([row | {"prompt": "Q"} for row in rows]).held_out == 6  # new answers to the only task are meant
    assert generated([row | {"group": str(i)} for i, row in enumerate(rows)]).held_out == 6


# -- by brute force ---------------------------------------------------------------------------------------


def status_by_hand(differences: list[float]) -> str:
    """Return the status by counting all sequences of coin flips."""
    signs = [1 if d > 1e-9 else -1 if d < -1e-9 else 0 for d in differences if not math.isnan(d)]
    wins, told = signs.count(1), len([s for s in signs if s])
    if not signs:
        return "untested"
    if not told:
        return "alike"
    if wins < told - wins:
        return "reversed"
    as_many = sum(math.comb(told, k) for k in range(wins, told + 1))
    if Fraction(as_many, 2**told) <= Fraction(1, 4):
        return "tells apart"
    return "too few" if (wins, told) == (1, 1) else "chance"


@given(st.lists(st.sampled_from([1.0, 0.5, 0.0, -0.25, -1.0, math.nan]), max_size=14))
def test_a_status_follows_from_counting_coin_flips(differences: list[float]) -> None:
    """The status equals the one that a plain count of wins and losses gives."""
    found = discrimination(differences, range(len(differences)))
    assert found.status == status_by_hand(differences)


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_the_exact_binomial_one(wins: int, losses: int) -> None:
    """The probability is SciPy's survival function of the binomial distribution."""
    assert sign_test(wins, losses) == pytest.approx(float(stats.binom.sf(wins - 1, wins + losses, 0.5)), rel=1e-12)


@given(st.integers(2, 9), st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_held_out_ranking_is_that_of_brute_force(n: int, k: int, chance: Any) -> None:
    """Each fold is ranked by the criteria that the pairs before it have kept."""
    table = np.array([[[chance.choice([0.0, 0.5, 1.0]) for _ in "ab"] for _ in range(n)] for _ in range(k)])
    weights = [chance.choice([1, 2, 3]) for _ in range(k)]
    seen = chance.randint(1, n)

    def scores(kept: Sequence[int]) -> Any:
        return (sum(weights[c] * table[c] for c in kept) / sum(weights[c] for c in kept)).tolist()

    found = held_out(table.tolist(), range(n), seen, scores)
    sizes = [(n - seen) // 5 + (fold < (n - seen) % 5) for fold in range(5)]
    starts = [seen + sum(sizes[:fold]) for fold in range(5) for _ in range(sizes[fold])]
    for pair in range(seen, n):
        before = starts[pair - seen]
        chosen = screen(table[:, :before].tolist(), range(before))
        kept = [c for c in range(k) if chosen[c].status in KEPT]
        better = sum(Fraction(weights[c]) * Fraction(table[c, pair, 0]) for c in kept)
        worse = sum(Fraction(weights[c]) * Fraction(table[c, pair, 1]) for c in kept)
        assert found[pair] == (0.5 if better == worse else float(better > worse))
    assert np.isnan(found[:seen]).all()


def test_the_accuracy_is_that_of_the_scores_of_the_grades() -> None:
    """Grading the unseen pairs with the final rubric gives the same accuracy."""
    pairs = pairs_of_marks(30, seed=3)
    made = generated(pairs, CRITERIA[:4])
    assert made.rubric is not None
    judge, said = Judge(scripted(CRITERIA)), scripted(CRITERIA[:4])
    generate("Says when which sum comes back", Judge(said), preferred=pairs)
    unseen = [(a, b) for a, b in pairs if a not in said.asks[0].messages[1].text]
    rubric = evolve(made.rubric, reviewed=True)
    right = [grade(a, rubric, judge).score > grade(b, rubric, judge).score for a, b in unseen]
    assert made.accuracy is not None
    assert (made.held_out, made.accuracy.value) == (len(unseen), sum(right) / len(unseen))


def mean_of(table: Any, kept: Sequence[int]) -> Any:
    return table[[*kept]].mean(axis=0).tolist()


def test_coin_flips_stay_rarely_and_prove_nothing() -> None:
    """At 60 pairs."""
    chance = np.random.default_rng(7)
    groups, stays, shown, ranks = range(60), 0, 0, []
    for _ in range(300):
        table = chance.integers(0, 2, size=(3, 60, 2)).astype(float)
        stays += sum(one.status in KEPT for one in screen(table.tolist(), groups))
        found = held_out(table.tolist(), groups, 8, partial(mean_of, table))
        shown += discrimination([one - 0.5 for one in found], groups).p <= 0.05
        ranks.append(float(np.nanmean(found)))
    assert stays / 900 < 0.25
    assert shown / 300 < 0.05
    assert abs(float(np.mean(ranks)) - 0.5) < 0.02


def test_ties_count_half_and_unjudged_pairs_are_left_out() -> None:
    """A tie ranks as 0.5, and a missing score as NaN."""
    scores = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [math.nan, 0.0]])
    assert np.array_equal(pair_wins(scores.tolist()), [1.0, 0.5, 0.0, math.nan], equal_nan=True)


# -- what it costs ----------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Endpoint]:
    with openai_serving(write_or_judge) as endpoint:
        yield endpoint


def test_a_second_call_with_the_store_costs_nothing(server: Endpoint, tmp_path: Path) -> None:
    """The second generation sends no request and gives the same rubric."""
    pairs, store = pairs_of_marks(6), tmp_path / "r.db"
    first = generate("Says when", "openai/gpt-4o", preferred=pairs, store=store)
    assert first.rubric is not None
    assert (first.rubric.ids, first.usage.calls) == (("names-date", "names-sum"), 1 + 12 * 4)
    again = generate("Says when", "openai/gpt-4o", preferred=pairs, store=store)
    assert (again.rubric, again.usage.calls, len(server.requests)) == (first.rubric, 0, 49)


def test_what_a_budget_refuses_is_left_undone_and_nothing_is_lost(server: Endpoint, tmp_path: Path) -> None:
    """The stored replies count, so a second run pays for the missing calls alone."""
    pairs, store = pairs_of_marks(6), tmp_path / "r.db"
    some = generate("Says when", "openai/gpt-4o", preferred=pairs, store=store, budget=Budget(calls=20))
    assert (some.usage.calls, some.rubric is not None, some.unjudged > 0) == (20, True, True)
    assert any("not judged" in remark and "budget" in remark for remark in some.remarks())
    whole = generate("Says when", "openai/gpt-4o", preferred=pairs, store=store)
    assert (whole.usage.calls, whole.unjudged, len(server.requests)) == (29, 0, 49)


def test_another_model_may_write() -> None:
    """The writer gets one request without criteria, and the judge all the others."""
    judge, writer = scripted([]), scripted(CRITERIA[:4])
    generate("Says when", Judge(judge), preferred=pairs_of_marks(3), writer=Judge(writer))
    assert (len(writer.asks), len(judge.asks), all(ask.criteria for ask in judge.asks)) == (1, 24, True)


def test_an_answer_in_several_pairs_is_graded_once() -> None:
    """Three different answers cost three times four calls."""
    model = scripted(CRITERIA[:4])
    generate("Says when", Judge(model), preferred=[("good [d]", "bad"), ("good [d]", "worse [r]")])
    assert len(model.asks) == 1 + 3 * 4


def test_failures_of_the_judge_are_no_answers() -> None:
    """A judge that refuses leaves every criterion untested."""
    model = scripted(CRITERIA[:4], judge=lambda *_: Failure("refusal", "no"))
    made = generate("Says when", Judge(model), preferred=pairs_of_marks(4))
    assert ({one.status for one in made}, made.accuracy, made.unjudged) == ({"untested"}, None, 4)


# -- the pairs --------------------------------------------------------------------------------------------


def test_pairs_are_read_from_files_and_mappings(tmp_path: Path) -> None:
    """Rows of a file, mappings and chats give the same pairs."""
    file = tmp_path / "pairs.jsonl"
    rows = [{"prompt": f"Q{i}", "chosen": a, "rejected": b} for i, (a, b) in enumerate(pairs_of_marks(4))]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert generated(file).to_dict() == generated(rows).to_dict()
    chats = [
        {"chosen": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": a}],
         "rejected": [{"role": "user", "content": "Q"}, {"role": "assistant", "content": b}]}
        for a, b in pairs_of_marks(4)
    ]  # fmt: skip
    model = scripted(CRITERIA[:4])
    assert generate(judge=Judge(model), preferred=chats).pairs == 4
    assert "better" in model.asks[0].messages[1].text


@each_row(
    ("preferred", "message"),
    [
        ("a.jsonl", "there is no file 'a.jsonl'"),
        ([("a", "b", "c")], r"preferred\[0\]"),
        ([("x y", "b z"), {"chosen": "a b"}], r"preferred\[1\].*chosen and rejected, got the keys 'chosen'"),
        ([("same text", "same text")], "both answers are the same"),
        ([], "expected a pair at least, got none"),
        ([("reply.txt", "b z")], "looks like the path of a file"),
        (Path("pairs.docx"), "jsonl"),
    ],
)
def test_what_is_no_pair_is_refused(preferred: Any, message: str) -> None:
    """The error names the place of the pair and what was expected there."""
    with pytest.raises(DefinitionError, match=message):
        generated(preferred)


def test_answers_are_graded_with_the_task_and_the_reference_of_the_case() -> None:
    """Each request shows the case's input, and the rubric has the case's id as its name."""
    case = Case("refund", "Says when", input="When do I get it?", reference="On Friday.", context="Policy 7")
    model = scripted(CRITERIA[:4])
    made = generate(case, Judge(model), preferred=pairs_of_marks(3))
    assert all("When do I get it?" in ask.messages[-1].text for ask in model.asks)
    assert made.rubric is not None
    assert made.rubric.name == "refund"


def test_pairs_hold_candidates_with_their_own_task() -> None:
    """Candidates with inputs of their own are compared like plain texts."""
    pairs = [(Candidate(a, input=f"Q{i}"), Candidate(b, input=f"Q{i}")) for i, (a, b) in enumerate(pairs_of_marks(4))]
    made = generated(pairs)
    assert made.rubric is not None
    assert made["names-date"].discrimination is not None


# -- without the extra ------------------------------------------------------------------------------------


def test_criteria_are_generated_and_proved_without_numpy(tmp_path: Path) -> None:
    """Functions and command work where NumPy and SciPy cannot be imported."""
    (tmp_path / "pairs.jsonl").write_text(
        "".join(json.dumps({"chosen": a, "rejected": b}) + "\n" for a, b in pairs_of_marks(12))
    )
    code = f"""
import os, sys
sys.modules["numpy"] = sys.modules["scipy"] = None
{OVER_HTTP}
from click.testing import CliRunner
import rubric, rubric.__main__
from tests.preferred_pairs import pairs_of_marks, write_or_judge
from tests.servers import Server
with Server(respond=write_or_judge) as running:
    os.environ |= dict(OPENAI_API_KEY="k", OPENAI_BASE_URL=running.at("ok").openai)
    print(rubric.quality.generate("Says when", "openai/gpt-4o").rubric.ids)
    print(rubric.quality.generate("Says when", "openai/gpt-4o", preferred=pairs_of_marks(12)).ok)
    suite = rubric.Suite("s", [rubric.Case("a", "Says when", input="When?")])
    print(rubric.quality.generate_many(suite, "openai/gpt-4o").rubrics["a"].ids)
    arguments = ["generate", "--outcome", "Says when", "--judge", "openai/gpt-4o", "--pairs", "pairs.jsonl"]
    print(CliRunner().invoke(rubric.__main__.main, arguments).exit_code)
"""
    paths = {"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=paths, check=False
    )
    assert done.returncode == 0, done.stderr
    every = "('names-date', 'names-sum', 'is-polite', 'is-short')"
    assert done.stdout.splitlines() == [every, "True", every, "0"]


# -- how it is shown --------------------------------------------------------------------------------------


def test_a_generation_is_shown_as_text_markdown_card_and_data() -> None:
    """All four forms tell the same result, and its truth value is refused."""
    made = generated(pairs_of_marks(12))
    assert str(made).startswith(made.sentence)
    assert made._repr_markdown_().startswith("**2 of 4 criteria stay")
    assert "is-short" in made._repr_html_()
    data = json.loads(json.dumps(made.to_dict()))
    assert (data["held_out"], data["accuracy"]["value"], data["calls"], data["ok"]) == (6, 1.0, 97, True)
    assert [one["kept"] for one in data["criteria"]] == [True, True, False, False]
    with pytest.raises(TypeError, match="ok"):
        bool(made)


def test_a_generation_given_as_a_rubric_is_told_from_one() -> None:
    """`grade` names the attribute that holds the rubric."""
    with pytest.raises(DefinitionError, match=r"generation\.rubric"):
        grade("Hello!", generated(None), "offline")  # type: ignore[arg-type]


def test_scored_answers_among_the_sources_are_examples() -> None:
    """An anchor reaches the writer with its score."""
    model = scripted(CRITERIA[:4])
    generate(judge=Judge(model), sources=[Anchor("No idea.", 0), "Refunds take five days."])
    said = model.asks[0].messages[1].text
    assert "scored 0 of 1" in said
    assert "Refunds take five days." in said


def test_pairs_that_the_rubric_tells_apart_become_its_tests() -> None:
    """The shortest three; each passes with the judge that graded, and texts that a reader of files acts on are none."""
    made = generated(pairs_of_marks(12))
    assert made.rubric is not None
    assert [test.passes for test in made.rubric.tests] == [True, False] * 3
    assert "better" in made.rubric.tests[0].candidate.output
    assert loads(dumps(made.rubric)).tests == made.rubric.tests
    hostile = [(f"{good} {{{{ env.KEY }}}}", bad) for good, bad in pairs_of_marks(12)]
    again = generated(hostile)
    assert again.rubric is not None
    assert again.rubric.tests == ()
