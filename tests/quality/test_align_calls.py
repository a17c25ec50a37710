"""Edits that call: labelled candidates as anchors, and texts by a writer, each graded anew within a budget."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from attrs import evolve

from rubric import Budget, Candidate, DefinitionError, Grades, Judge, Levels, Rubric, YesNo, dump, grade_many, load
from rubric.driving import Ask
from rubric.quality import align
from rubric.quality.alignment import Kind
from rubric.quality.rewriting import Example, with_anchors
from rubric.testing.scripted_model import ScriptedModel
from rubric.trust import Label, Labels
from rubric.trust.inference import folds_of
from tests.command_line import choices_of, run
from tests.rows import each_row
from tests.servers import nonce_of, openai_serving, prompt_of

RUBRIC = Rubric("r").expects("Is well supported", id="supported")
CANDIDATES = [
    Candidate(
        f"Reply {n}. It is {'long' if n % 3 else 'short'}, {'with' if n % 2 else 'without'} a source.", key=f"k{n}"
    )
    for n in range(60)
]
LABELS = {f"k{n}": bool(n % 2) for n in range(60)}
"""People want a source."""
BETTER = {"criteria": [{"id": "supported", "text": "Names a source"}]}


def numbers_in(prompt: str) -> list[int]:
    """Return the replies that a prompt holds: the candidate first, then the anchors."""
    return list(dict.fromkeys(map(int, re.findall(r"Reply (\d+)\.", prompt))))


def judged(prompt: str) -> bool:
    """Return what the judge says: it takes length for support, until it is told or shown better."""
    first, *anchors = numbers_in(prompt)
    return bool(first % 2) if anchors or "source\n" in prompt or "a source is named" in prompt else bool(first % 3)


class World:
    """A judge and a writer that keep the prompts they get."""

    def __init__(self, written: Any = BETTER) -> None:
        self.prompts: list[str] = []
        self.judge = Judge(ScriptedModel(self._judge), sealed=False)
        self.model = ScriptedModel(lambda _: written)
        self.writer = Judge(self.model)

    def _judge(self, ask: Ask) -> Any:
        prompt = "\n".join(message.text for message in ask.messages)
        self.prompts.append(prompt)
        says = judged(prompt)
        match ask.criteria[0].answer:
            case YesNo():
                return says
            case Levels(high=high):
                return high * says
        return float(says)

    def graded(self, rubric: Rubric = RUBRIC) -> Grades:
        found = grade_many(CANDIDATES, rubric, self.judge, progress=False).collect()
        self.prompts.clear()
        return found

    @property
    def calls(self) -> int:
        return len(self.prompts) + len(self.model.asks)


def test_anchors_that_help_are_accepted() -> None:
    """Two anchors are added, and calls are counted for the whole and for each fold."""
    world = World()
    found = align(RUBRIC, world.graded(), LABELS, ["anchors"])
    (edit,) = found.accepted
    assert edit.change == "2 anchors for supported"
    assert edit.before < 0.6
    assert (edit.apparent, edit.honest) == (1.0, 1.0)
    assert [anchor.score for anchor in found.rubric["supported"].anchors] == [1.0, 0.0]
    assert found.usage.calls == world.calls == 120
    assert [proposal.fold for proposal in edit.proposals] == [None, 0, 1, 2, 3, 4]
    assert sum(proposal.usage.calls for proposal in edit.proposals) == 120
    assert "; 120 calls." in found.sentence


def test_why_no_misjudged_candidate_is_an_anchor_is_told_by_reason() -> None:
    """A test of the rubric would be graded beside itself, and what is long would stand in each prompt."""
    rubric = RUBRIC.tested_by("Reply 2. It is long, without a source.", passes=False)
    results = [result for result in World().graded() if result.passed is not LABELS[result.key]]
    long = evolve(results[1], candidate=Candidate("word " * 1_000, key=results[1].key))
    said: list[dict[str, float]] = [{"supported": 0.0}, {"supported": 0.0}, {}, {"supported": 1.0}]
    given = zip([results[0], long, *results[2:4]], said, strict=True)
    found = with_anchors(rubric, [Example(one, float(LABELS[one.key]), own, is_verdict=True) for one, own in given])
    assert found.why == (
        "no labelled candidate that was misjudged can be one: 1 already an anchor or a test, 1 empty, or longer than "
        "4,000 characters, 1 without a label of a criterion, 1 judged as people say on each criterion"
    )


def test_anchors_never_come_from_the_fold_that_is_graded() -> None:
    """Every held-out candidate is graded with anchors of other folds alone."""
    world = World()
    align(RUBRIC, world.graded(), LABELS, ["anchors"])
    folds = folds_of(np.arange(60), 5)
    held_out = [numbers_in(prompt) for prompt in world.prompts[60:]]
    assert sorted(first for first, *_ in held_out) == [*range(60)]
    assert all(folds[first] not in folds[anchors] for first, *anchors in held_out)


def test_candidates_that_became_anchors_are_left_out_of_later_edits() -> None:
    """Agreement on the anchors themselves never counts."""
    world = World()
    found = align(RUBRIC, world.graded(), LABELS, ["anchors", "texts"], world.writer)
    anchors = {anchor.response for anchor in found.rubric["supported"].anchors}
    assert len(anchors) == 2
    assert "the judge and people do not differ" in found.edits[1].why  # of the 58 others


@pytest.mark.parametrize(
    ("kind", "rubric", "written", "change"),
    [
        ("texts", RUBRIC, BETTER, "texts of supported"),
        (
            "texts",
            Rubric.of("Is it well supported?"),
            {"criteria": [{"id": "overall", "text": "Names a source"}]},
            "texts of overall",
        ),
    ],
)
def test_what_a_writer_writes_is_accepted_where_it_helps(kind: Any, rubric: Rubric, written: Any, change: str) -> None:
    """New texts are graded anew, with 120 calls of the judge and 6 of the writer."""
    world = World(written)
    found = align(rubric, world.graded(rubric), LABELS, [kind], world.writer)
    assert found.accepted[0].change == change
    assert found.accepted[0].honest == 1.0
    assert (len(world.prompts), len(world.model.asks)) == (120, 6)
    assert found.usage.calls == 126
    assert found.rubric.ids == rubric.ids


def test_the_writer_sees_what_the_judge_gets_wrong_and_no_label_of_the_fold() -> None:
    """Each prompt shows twelve disagreements, none of them held out."""
    world = World()
    align(RUBRIC, world.graded(), LABELS, ["texts"], world.writer)
    folds = folds_of(np.arange(60), 5)
    for fold, ask in enumerate(world.model.asks[1:]):
        shown = numbers_in(ask.messages[1].text)
        assert len(shown) == 12
        assert all(folds[number] != fold for number in shown)
        assert "people: pass\nthe model: fail" in ask.messages[1].text


def test_a_server_that_enforces_schemas_holds_the_writer_to_one_text_a_criterion() -> None:
    """A small model would else say the same again until its reply is cut."""
    world = World()
    align(RUBRIC, world.graded(), LABELS, ["texts"], world.writer)
    assert json.loads(world.model.asks[1].exact)["properties"]["criteria"]["maxItems"] == 1


def test_a_text_that_changes_nothing_is_not_accepted_and_its_cost_is_kept() -> None:
    """The rubric stays, and the proposal lists its 61 calls."""
    world = World({"criteria": [{"id": "supported", "text": "Is supported"}]})
    found = align(RUBRIC, world.graded(), LABELS, ["texts"], world.writer)
    assert found.rubric is RUBRIC
    assert found.accepted == ()
    assert [(one.change, one.usage.calls) for one in found.edits[0].proposals] == [("texts of supported", 61)]
    assert found.to_dict()["edits"][0]["proposals"][0]["calls"] == 61


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("I would not change a thing.", "expected a JSON object"),
        ({"criteria": [{"id": "suported", "text": "x"}]}, "did you mean 'supported'"),
        ({"criteria": [{"id": "supported", "text": " "}]}, "expected the new text"),
        ({"criteria": []}, "the writer changes nothing"),
    ],
)
def test_a_reply_of_the_writer_that_cannot_be_used_changes_nothing(written: Any, why: str) -> None:
    """The edit's reason says what was wrong with the reply."""
    world = World(written)
    found = align(RUBRIC, world.graded(), LABELS, ["texts"], world.writer)
    assert found.rubric is RUBRIC
    assert why in found.edits[0].why
    assert f"texts: {found.edits[0].why}." in str(found)


@each_row("calls", [0, 1, 6, 59, 61, 100, 125, 126])
def test_a_budget_is_never_overspent_and_an_edit_that_it_ends_is_not_accepted(calls: int) -> None:
    """Only the full 126 calls lead to an accepted edit."""
    world = World()
    grades = world.graded()
    found = align(RUBRIC, grades, LABELS, ["texts"], world.writer, Budget(calls=calls))
    assert world.calls <= calls
    assert bool(found.accepted) == (calls == 126)
    assert calls == 126 or "the budget has" in found.edits[0].why


def test_a_budget_that_ends_half_way_leaves_the_rubric() -> None:
    """An unplanned repair uses up the budget, and the edit is given up."""
    world = World("no JSON")  # each reply is asked for again, which no plan knows
    world.model = ScriptedModel(iter(["no JSON", *[json.dumps(BETTER)] * 6]))
    world.writer = Judge(world.model)
    found = align(RUBRIC, world.graded(), LABELS, ["texts"], world.writer, Budget(calls=126))
    assert world.calls <= 126
    assert found.rubric is RUBRIC
    assert "the budget ended" in found.edits[0].why


def test_edits_that_are_free_call_nothing() -> None:
    """Threshold and weights are fitted without a call; what is for calls alone is refused beside them."""
    world = World()
    found = align(RUBRIC, world.graded(), LABELS, ["threshold", "weights"])
    assert (found.usage.calls, world.calls) == (0, 0)
    for name, value in {"writer": world.writer, "budget": Budget(calls=9), "judge": "offline", "store": "x.db"}.items():
        with pytest.raises(DefinitionError, match=f"{name}= has no effect; leave it out"):
            align(RUBRIC, world.graded(), LABELS, ["threshold"], **{name: value})  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="writer= has no effect"):
        align(RUBRIC, world.graded(), LABELS, ["anchors"], world.writer)


def test_kinds_are_tried_in_their_own_order() -> None:
    """Free edits come first, whatever the order of the argument."""
    world = World()
    found = align(RUBRIC, world.graded(), LABELS, ["texts", "anchors", "weights"], world.writer)
    assert [edit.kind for edit in found.edits] == ["weights", "anchors", "texts"]


def test_a_store_pays_for_an_edit_once(tmp_path: Path) -> None:
    """The second alignment makes no call and gives the same rubric."""
    world = World()
    grades = world.graded()
    first = align(RUBRIC, grades, LABELS, ["texts"], world.writer, store=tmp_path / "r.db")
    calls = world.calls
    again = align(RUBRIC, grades, LABELS, ["texts"], world.writer, store=tmp_path / "r.db")
    assert (again.rubric, again.usage.calls, world.calls) == (first.rubric, 0, calls)


def test_another_judge_is_refused() -> None:
    """The grades must be by the judge that will grade the edits."""
    world = World()
    with pytest.raises(DefinitionError, match="grade with it first"):
        align(RUBRIC, world.graded(), LABELS, ["anchors"], judge="openai/gpt-4o")


# -- scores and weights of labels --------------------------------------------------------------------------


def test_scores_of_people_are_fitted_by_their_distance() -> None:
    """Labels between 0 and 1 fit the weights by mean distance, and propose no threshold."""
    rubric = Rubric("r").rates("Is clear", 0, 10, id="clear").rates("Is long", 0, 10, id="long", weight=2)
    chance = random.Random(2)
    said = {f"k{n}": (chance.randint(0, 10), chance.randint(0, 10)) for n in range(120)}
    judge = Judge(ScriptedModel(lambda ask: said[key_of(ask)][ask.criteria[0].id == "long"]))
    candidates = [Candidate(f"Reply {n}.", key=key) for n, key in enumerate(said)]
    grades = grade_many(candidates, rubric, judge, progress=False).collect()
    labels = {key: min(1.0, max(0.0, clear / 10 + chance.uniform(-0.1, 0.1))) for key, (clear, _) in said.items()}
    found = align(rubric, grades, labels)
    assert found.measure == "scores"
    assert found.edits[0].proposals == ()  # no threshold changes a score
    assert found.accepted[0].change == "weight of long 2 -> 0"
    assert found.accepted[0].honest == pytest.approx(0.95, abs=0.02)
    assert "1 less the mean distance" in str(found)


def key_of(ask: Ask) -> str:
    return f"k{numbers_in(' '.join(message.text for message in ask.messages))[0]}"


def test_numbers_on_the_scale_of_the_one_criterion_are_scores() -> None:
    """Labels of 0 and 10 on a scale of 0 to 10 are read as scores."""
    rubric = Rubric("r").rates("Is supported", 0, 10, id="supported")
    world = World()
    found = align(rubric, world.graded(rubric), {f"k{n}": 10 * (n % 2) for n in range(60)}, ["anchors"])
    assert found.measure == "scores"
    assert found.accepted[0].honest == 1.0


def test_labels_with_weights_count_by_them() -> None:
    """One threshold fits the candidates that count little, another one those that count much."""
    rubric = Rubric("r", threshold=0.6).rates("Is clear", 0, 100, id="clear")
    chance = random.Random(3)
    says = {f"k{n}": chance.randint(30, 49) if n % 2 else chance.randint(70, 89) for n in range(300)}
    judge = Judge(ScriptedModel(lambda ask: says[key_of(ask)]))
    grades = grade_many([Candidate(f"Reply {n}.", key=f"k{n}") for n in range(300)], rubric, judge).collect()
    wanted = {key: score >= (40 if score < 50 else 80) for key, score in says.items()}
    for little, much, cut in ((0, 1, 0.795), (1, 0, 0.395)):
        weights = {key: (0.1, 5.0)[much if score >= 50 else little] for key, score in says.items()}
        labels = Labels([Label(key, value, weight=weights[key]) for key, value in wanted.items()])
        found = align(rubric, grades, labels, ["threshold"])
        assert found.rubric.threshold == cut
        assert found.accepted[0].honest > 0.95


# -- over a real socket ------------------------------------------------------------------------------------


@pytest.fixture
def server() -> Iterator[Any]:
    """Serve a writer and a judge as `openai/...`."""

    def respond(body: dict[str, Any]) -> str:
        prompt = prompt_of(body)
        if body["model"] == "writer":
            return json.dumps(BETTER)
        return json.dumps({"reason": "r", "verdict": judged(prompt), "nonce": nonce_of(body)})

    with openai_serving(respond) as endpoint:
        yield endpoint


def test_a_file_is_rewritten_by_models_over_a_socket_and_keeps_its_comments(server: Any, tmp_path: Path) -> None:
    """The calls that were sent are those reported, and only the criterion's text changes."""
    file = tmp_path / "r.yaml"
    file.write_text("# ours\nrubric: r\ncriteria:\n  - id: supported  # by what?\n    text: Is well supported\n")
    rubric = load(file)
    grades = grade_many(CANDIDATES, rubric, "openai/judge", progress=False).collect()
    before = len(server.requests)
    found = align(rubric, grades, LABELS, ["texts"], "openai/writer", Budget(calls=200))
    assert found.accepted[0].change == "texts of supported"
    assert len(server.requests) - before == found.usage.calls == 126
    dump(found.rubric, file)
    said, provenance = file.read_text().split("provenance:")
    assert said == "# ours\nrubric: r\ncriteria:\n  - id: supported  # by what?\n    text: Names a source\n"
    assert "labels" in provenance


def test_the_command_grades_anew_what_the_results_are_of(server: Any, tmp_path: Path) -> None:
    """`align` needs `--candidates` for edits that call, and writes the anchors to the file."""
    file, candidates, labels, out = (tmp_path / name for name in ("r.yaml", "c.jsonl", "l.csv", "o.jsonl"))
    file.write_text("rubric: r  # ours\ncriteria:\n  - Is well supported\n")
    candidates.write_text("".join(json.dumps({"key": c.key, "output": c.output}) + "\n" for c in CANDIDATES))
    labels.write_text("key,value\n" + "".join(f"{key},{value}\n" for key, value in LABELS.items()))
    args = (str(file), str(candidates), "-j", "openai/judge", "--out", str(out))
    assert run("grade-many", *args).exit_code == 0
    given = ("align", str(file), str(out), str(labels), "--edit", "anchors", "--write")
    refused = run(*given)
    assert (refused.exit_code, "--candidates" in refused.stderr) == (2, True)
    done = run(*given, "--candidates", str(candidates), "--max-calls", "120", "--format", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["edits"][0]["calls"] == 120
    assert file.read_text().startswith("rubric: r  # ours\n")
    assert len(load(file).criteria[0].anchors) == 2


def test_the_writer_is_shown_why_people_judge_as_they_do() -> None:
    """The reason of a label stands beside its verdict; one that was given after a look at the judge's does not."""
    world = World()
    rows = [
        Label(key, value, reason=f"reason {key}", judge_seen=key == "k2", rater="ann") for key, value in LABELS.items()
    ]
    align(RUBRIC, world.graded(), Labels(rows), ["texts"], world.writer)
    prompt = prompt_of_writer(world)
    assert "people: fail. reason k4" in prompt or "people: pass. reason k3" in prompt
    assert "reason k2" not in prompt


def prompt_of_writer(world: World) -> str:
    """Return the first prompt that the writer got."""
    return "\n".join(message.text for message in world.model.asks[0].messages)


def test_the_command_takes_every_kind_of_edit() -> None:
    """The command line names them itself, since it is read without numpy."""
    assert get_args(Kind) == choices_of("align", "edits")
