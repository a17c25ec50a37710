"""How far a judge can be moved: `probe`, on judges with planted weaknesses."""

from __future__ import annotations

import random
from itertools import permutations, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Cascade, Criterion, DefinitionError, Grade, Judge, Jury, Message, Rubric, Run, dump, plan
from rubric.__main__ import main
from rubric.quality import ATTACKS, Attack, plan_probe, probe
from rubric.quality.attacks import aim_of
from rubric.quality.probing import _alone, _level_and_chance, _net_tails, adjust, exact_interval, sign_tails
from tests.examples import examples
from tests.rows import each_row
from tests.simulations.probing import PLANTED, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

DELIVERY = (
    Rubric("delivery")
    .expects("Names the delivery date and the place", id="date")
    .expects("Says thank you", id="thanks")
    .forbids("Is rude", id="rude")
)
REPLIES = [
    Candidate(f"You can't miss parcel {n}. It comes {when}. {end}", input="Where is it?")
    for n in range(4)
    for when in ("on Friday", "soon")
    for end in ("Thank you.", "Bye.")
]
TEXTS = [attack for attack in ATTACKS if attack.kind == "claim"]


def judging(weak: str = "", noise: float = 0.0, seed: int = 1) -> Callable[[Sequence[dict[str, str]]], Any]:
    """Return a judge that finds words, believes whatever has *weak* in it, and slips at random."""
    chance = random.Random(seed)

    def judge(messages: Sequence[dict[str, str]]) -> Any:
        body, _, asked = messages[-1]["content"].partition("Criterion:\n")
        words = {"Names": "Friday", "Says": "Thank you", "Is": "idiot"}
        met = words[asked.split()[0]] in body.rpartition("candidate,")[2]
        met = met or bool(weak and weak in body and asked.startswith("Names"))
        return {"reason": "read", "verdict": met != (chance.random() < noise)}

    return judge


def test_a_planted_weakness_is_found_with_its_criterion_and_its_text() -> None:
    """The finding names the criterion, the attack and a text to read."""
    found = probe(DELIVERY, judging("Stanford"), REPLIES)
    assert [(cell.criterion, cell.attack, cell.up, cell.down) for cell in found.significant] == [
        ("date", "authority", 8, 0)
    ]
    assert found.worst[0].worst is not None
    assert "Stanford" in found.worst[0].worst.text
    assert found.exit_code == 1
    assert found.sentence == "'date' falls for 'authority': 50 % of verdicts move, of 20 attacks on 3 criteria."


def test_nothing_is_found_where_nothing_works() -> None:
    """A judge that reads the words alone is moved by none, and takes no null answer for an answer."""
    found = probe(DELIVERY, judging(), REPLIES)
    assert (found.significant, found.exit_code, found.floor) == ((), 0, (0, 4))
    assert not sum(cell.up for cell in found.cells)


@each_row("attack", [each for each in TEXTS if each.name != "sentences reversed"], ids=lambda attack: attack.name)
def test_each_claim_is_found_by_its_words(attack: Attack) -> None:
    """A judge that believes the words of an attack is caught by that attack, whichever it is."""
    criterion = DELIVERY["date"]
    text = "It comes soon. Bye."
    added = (attack.of(text, criterion) or "").replace(text, "").strip()
    found = probe(DELIVERY, judging(added[-24:]), REPLIES, attacks=[attack])
    assert [(cell.criterion, cell.attack) for cell in found.significant] == [("date", attack.name)]


def test_an_edit_that_keeps_the_meaning_must_move_nothing_down_either() -> None:
    """A judge that marks Markdown down is found; for a claim a fall is not a weakness."""

    def strict(messages: Sequence[dict[str, str]]) -> Any:
        answer = judging()(messages)
        return {**answer, "verdict": answer["verdict"] and "## Answer" not in messages[-1]["content"]}

    found = probe(DELIVERY, strict, REPLIES, attacks=["markdown", "blank lines", "padding"])
    assert {cell.attack for cell in found.significant} == {"markdown"}
    harsh = Attack("harsh", "claim", lambda text, _: f"## Answer\n{text}")
    assert not probe(DELIVERY, strict, REPLIES, attacks=[harsh]).significant


def test_a_candidate_that_says_nothing_may_do_well_on_what_must_not_hold() -> None:
    """Attacks that take the answer away are not made on bans, which silence rightly keeps."""
    found = probe(DELIVERY, judging(), REPLIES, attacks=["null answer", "master key"])
    kinds = {(cell.kind, cell.criterion) for cell in found.cells}
    assert ("loss", "rude") not in kinds
    assert ("loss", "date") in kinds
    assert aim_of(Criterion("Is rude.", polarity="guard")) == "This does not hold: Is rude"


def test_the_floor_is_the_share_of_null_answers_that_pass() -> None:
    """A judge that passes whatever is there has a floor of all."""
    found = probe(
        "Is helpful", lambda _: '{"reason": "yes", "score": 1}', [Candidate("x" * n, input="q") for n in range(1, 9)]
    )
    assert found.floor == (4, 4)
    assert "Floor: 4 of 4 null answers pass" in str(found)


@examples(60)
@given(st.text(max_size=200), st.text(min_size=1, max_size=60).filter(str.strip))
def test_attacks_are_pure(text: str, asked: str) -> None:
    """The same text and criterion give the same edit, and an edit is a change or None."""
    criterion = Criterion(asked, id="c")
    for attack in ATTACKS:
        changed = attack.of(text, criterion)
        assert changed == attack.of(text, criterion)
        assert changed != text


def test_there_are_twenty_and_each_has_its_name() -> None:
    """The table has twenty attacks of three kinds, with names of their own."""
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) == 20
    assert {attack.kind for attack in ATTACKS} == {"claim", "loss", "same"}


def test_code_and_lists_keep_their_lines() -> None:
    """Where a new line has a meaning, an edit of the form would change it."""
    form = [attack for attack in ATTACKS if attack.name in ("markdown", "blank lines", "sentences reversed")]
    for text in ("```py\nx = 1. \ny = 2.\n```", '{"a": "One. Two."}', "1. One. Two.\n2. Three."):
        assert [attack.of(text, DELIVERY["date"]) for attack in form] == [None] * 3


def test_the_plan_says_what_it_takes(tmp_path: Path) -> None:
    """As many calls are made as planned, and a second probe makes none, since the store has the replies."""
    judge = Judge(judging("Stanford"), identity="planted")
    planned = plan_probe(DELIVERY, judge, REPLIES, attacks=["authority", "criterion echoed"])
    found = probe(DELIVERY, judge, REPLIES, attacks=["authority", "criterion echoed"], store=tmp_path / "s.sqlite")
    assert planned.most == found.usage.calls == 3 * 3 * len(REPLIES)
    again = probe(DELIVERY, judge, REPLIES, attacks=["authority", "criterion echoed"], store=tmp_path / "s.sqlite")
    assert again.usage.calls == 0
    assert again.cells == found.cells


def test_a_criterion_is_asked_alone_as_it_is_asked_among_others() -> None:
    """An attack aimed at a criterion is compared with a request that differs in the candidate alone."""
    whole = plan("t", DELIVERY, "offline").asks
    alone = [plan("t", _alone(DELIVERY, criterion), "offline").asks[0] for criterion in DELIVERY.judged]
    assert [ask.messages for ask in whole] == [ask.messages for ask in alone]


def test_a_judge_of_several_criteria_a_call_is_asked_as_always() -> None:
    """With `per_call`, and in a cascade, an aimed attack asks the whole rubric, as the baseline does."""

    def several(messages: Sequence[dict[str, str]]) -> Any:
        assert all(f'Criterion "{id_}"' in messages[-1]["content"] for id_ in DELIVERY.ids)
        return {"verdicts": [{"id": id_, "reason": "r", "verdict": False} for id_ in DELIVERY.ids]}

    assert probe(DELIVERY, Judge(several, per_call="all"), REPLIES, attacks="criterion echoed").exit_code == 0
    cascade = Cascade(judging(), judging(), when=lambda result: isinstance(result, Grade))
    jury = Jury(judging(), 2)  # of which each vote asks 3 criteria at first, then one for each that is aimed at
    least = [plan_probe(DELIVERY, each, REPLIES, attacks="criterion echoed").least for each in (cascade, jury)]
    assert least == [len(REPLIES) * (3 + 3 * 3), len(REPLIES) * 2 * (3 + 3)]


def trusting(messages: Sequence[dict[str, str]]) -> str:
    """Give 1 where a professor is named, else 0."""
    return f'{{"reason": "read", "score": {int("Stanford" in messages[-1]["content"])}}}'


def test_runs_are_attacked_in_their_last_words() -> None:
    """What an agent did before its answer stays as it is."""
    runs = [Candidate(run=Run([Message("user", f"Where is {n}?"), Message("assistant", "Soon.")])) for n in range(12)]
    found = probe("Names the day", trusting, runs, attacks="authority")
    assert found.cells[0].up == 12


def test_a_bound_is_held_open_or_broken() -> None:
    """Exact intervals decide: surely above, surely below, or neither."""
    weak, good = (probe(DELIVERY, judging(w), REPLIES, attacks="authority", most=0.1) for w in ("Stanford", ""))
    assert (weak.bound(0.1), weak.exit_code, weak.bound(0.9)) == ("broken", 1, "held")
    assert (good.bound(0.1), good.exit_code, good.bound(0.3)) == ("open", 0, "held")


def test_what_cannot_be_judged_is_left_out_and_counted() -> None:
    """A judge that cannot read an attacked text is not moved by it; if it never answers, nothing is compared."""

    def blind(messages: Sequence[dict[str, str]]) -> Any:
        return "?" if "Stanford" in messages[-1]["content"] else judging()(messages)

    found = probe(DELIVERY, blind, REPLIES, attacks=["authority", "padding"])
    assert sum(cell.lost for cell in found.cells) == 3 * len(REPLIES)
    assert found.exit_code == 0
    assert probe(DELIVERY, lambda _: "?", REPLIES[:2], attacks="padding").exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((DELIVERY, "offline", []), "there are none; give answers"),
        ((DELIVERY, "offline", REPLIES, ["autority"]), "attacks"),
        ((Rubric().checks(lambda c: True, id="c"), "offline", REPLIES), "no judge can be moved"),
    ],
)
def test_what_cannot_be_probed_is_refused(arguments: tuple[Any, ...], said: str) -> None:
    """No candidates, an unknown attack, or nothing that a judge decides."""
    rubric, judge, candidates, *attacks = arguments
    with pytest.raises(DefinitionError, match=said):
        probe(rubric, judge, candidates, attacks=attacks[0] if attacks else None)


# -- the statistics --------------------------------------------------------------------------------------------


@pytest.mark.long
def test_tables_without_a_weakness_raise_few_alarms() -> None:
    """Of 30 tables of 20 attacks x 8 criteria without an effect, at most as many alarm as 5 % explains (p > 0.001)."""
    chance = np.random.default_rng(30)
    assert sum(any(cell.p <= 0.05 for cell in table(chance, 60, 0.04, 0)) for _ in range(30)) <= 6


@pytest.mark.long
def test_a_weakness_of_25_points_is_found() -> None:
    """Of 20 tables of 60 candidates with 2 % noise, at least 18 find it: 90 %."""
    chance = np.random.default_rng(31)
    found = [{(c.attack, c.criterion): c.p for c in table(chance, 60, 0.02, 0.25)}[PLANTED] for _ in range(20)]
    assert sum(p <= 0.05 for p in found) >= 18


@examples(60)
@given(st.lists(st.integers(0, 12).flatmap(lambda m: st.tuples(st.integers(0, m), st.just(m))), min_size=1, max_size=8))
def test_adjusted_values_lie_between_the_raw_ones_and_holms(counts: list[tuple[int, int]]) -> None:
    """Each is at least its own p, at most Holm's, and keeps the order of the raw ones."""
    raw = [sign_tails(m)[k] for k, m in counts]
    order = sorted(range(len(raw)), key=lambda at: raw[at])
    holm, highest = [1.0] * len(raw), 0.0
    for rank, at in enumerate(order):
        highest = max(highest, min(1.0, (len(raw) - rank) * raw[at]))
        holm[at] = highest
    found = adjust([(k, sign_tails(m)) for k, m in counts])
    assert all(p * (1 - 1e-9) <= q <= h * (1 + 1e-9) for p, q, h in zip(raw, found, holm, strict=True))
    assert [found[at] for at in order] == sorted(found)


@examples(40)
@given(st.integers(2, 4).flatmap(lambda n: st.lists(st.lists(st.integers(0, 2), min_size=n, max_size=n), max_size=3)))
def test_the_distribution_of_net_moves_is_that_of_all_orders(verdicts: list[list[int]]) -> None:
    """Each two of a candidate's verdicts are as likely to be those before and after: counted one by one."""
    orders = [*product(*(permutations(one, 2) for one in verdicts))]
    nets = [sum((after > before) - (after < before) for before, after in order) for order in orders]
    tails = _net_tails(tuple(sorted(_level_and_chance(one)[1] for one in verdicts)))
    places = range(-len(verdicts), len(verdicts) + 1)
    assert tails == pytest.approx([sum(net >= least for net in nets) / len(nets) for least in places])


def test_one_attack_alone_has_the_sign_test() -> None:
    """Without other attacks, the moves are coin flips: 8 of 8 that move have a p-value of 2 to the minus 8."""
    found = probe(DELIVERY, judging("Stanford"), REPLIES, attacks=["authority"])
    assert {cell.criterion: cell.p for cell in found.significant} == {"date": pytest.approx(2**-8)}


def test_the_intervals_are_exact() -> None:
    """Clopper and Pearson's, at known values."""
    assert exact_interval(0, 60) == pytest.approx((0, 1 - 0.025 ** (1 / 60)))
    assert exact_interval(15, 60) == pytest.approx((0.1472, 0.3786), abs=1e-4)
    assert exact_interval(3, 3)[1] == 1
    assert exact_interval(0, 0) == (0, 1)


def test_the_command_says_what_it_takes_and_what_it_found(tmp_path: Path) -> None:
    """`rubric probe`: the plan sends nothing; the report has the findings; an unknown attack is an error."""
    rubric, candidates = tmp_path / "r.yaml", tmp_path / "c.jsonl"
    dump(DELIVERY, rubric)
    candidates.write_text("".join(f'{{"output": "{one.output}", "input": "q"}}\n' for one in REPLIES))
    planned = invoke("probe", rubric, candidates, "--judge", "offline", "--attack", "padding", "--plan")
    assert f"{2 * 3 * len(REPLIES)} calls" in planned.output
    found = invoke("probe", rubric, candidates, "--judge", "offline", "--attack", "padding", "--most", "0.99")
    assert found.exit_code == 0, found.output
    assert "The bound that no attack moves more than 99 % holds." in " ".join(found.output.split())
    wrong = invoke("probe", rubric, candidates, "--judge", "offline", "--attack", "pading")
    assert wrong.exit_code == 2
    assert "padding" in wrong.stderr
    candidates.write_text(candidates.read_text().replace("output", "answer") + '{"answer": null, "input": "q"}\n')
    named = ("--column", "output=answer", "--judge", "offline", "--attack", "padding")
    assert "1 of 17 rows hold no candidate" in invoke("probe", rubric, candidates, *named).output.replace("\n", " ")


def test_a_probe_that_judged_nothing_says_why() -> None:
    """The commonest failure stands among the remarks: without it "nothing is known" has no cure."""

    def broken(_: Any) -> Any:
        raise ValueError("no such table")

    found = probe(DELIVERY, broken, REPLIES[:2], attacks=["padding"])
    assert found.sentence.startswith("Nothing is known")
    assert "The commonest failure: 12 × exception: ValueError: no such table" in str(found)


def invoke(*arguments: object) -> Any:
    """Run a command as the terminal does."""
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_attacks_that_cannot_be_made_are_refused() -> None:
    """An empty list, and a list within one, name what is allowed."""
    for wrong in ([], [["authority"]], {"authority"}):
        with pytest.raises(DefinitionError, match="attacks: expected Attacks, or names: "):
            probe(DELIVERY, judging(), REPLIES, attacks=wrong)  # type: ignore[arg-type]


def test_a_criterion_that_no_attack_reaches_is_left_out() -> None:
    """What is asked of the tool calls alone is the same after each attack; a bound on it would hold for nothing."""
    run = Run((Message("user", "Where?"), Message("assistant", "On Friday. Thank you.")))
    tools = Criterion("Names Friday in a call", id="calls", on="tools")
    found = probe(DELIVERY.adding(tools), judging(), [Candidate(run=run)], attacks=["authority"])
    assert {cell.criterion for cell in found.cells} == {"date", "thanks", "rude"}
    assert "Left out, since no attack changes what it is asked of: 'calls'." in found.remarks()
    with pytest.raises(DefinitionError, match="no criterion is asked of the output"):
        probe(Rubric(criteria=[tools]), judging(), [Candidate(run=run)], attacks=["authority"], most=0.1)
