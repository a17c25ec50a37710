"""Two runs by topic: each group has its difference and interval, and the p-values are corrected for their number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

from rubric import DefinitionError, Grades, Rubric, grade_many
from rubric.internals.frozen_map import FrozenMap
from rubric.trust import Labels, compare
from rubric.trust.inference import holm
from tests.recorded import grades

KIND = Rubric("r", ["Is kind"])
ID = KIND.judged[0].id
TOPICS = {str(n): ("billing", "delivery", "refunds")[n % 3] for n in range(180)}


def run(fails: Any, topics: Mapping[str, str] | None = TOPICS, tags: bool = False) -> Grades:
    """Return a run over 180 candidates, of which those fail that *fails* is true of."""
    made = grades(KIND, {n: {ID: not fails(n)} for n in range(180)})
    if topics is None:
        return made
    kept = (FrozenMap({"topic": topics[r.key]} if r.key in topics else {}) for r in made)
    return Grades(
        evolve(r, variables=own, tags=(own.get("topic", "none"), "all") if tags else ())
        for r, own in zip(made, kept, strict=True)
    )


OLD, NEW = run(lambda n: n % 6 == 0), run(lambda n: n % 6 == 0 or (n % 3 == 1 and n % 4 == 0))


def test_each_group_has_the_figures_of_its_pairs_alone() -> None:
    """The difference, its interval and the counts are those of comparing the parts."""
    found, parts = compare(NEW, OLD, by="topic"), (NEW.by("topic"), OLD.by("topic"))
    assert list(found.groups) == ["billing", "delivery", "refunds"]
    for name, group in found.groups.items():
        alone = compare(parts[0][name], parts[1][name])
        for one in ("pass rate", "score"):
            assert group[one].n == 60
            same = evolve(alone[one], adjusted=group[one].adjusted, worse=group[one].worse)
            assert same == group[one]
    assert found.groups["delivery"].worse[:2] == ("4", "16")
    assert compare(NEW, OLD).criteria == found.criteria


def test_p_values_are_corrected_for_the_number_of_groups() -> None:
    """Holm's correction over the groups, and the sentence says how many were looked at."""
    found = compare(NEW, OLD, by="topic")
    for one in ("pass rate", "score"):
        each = [group[one] for group in found.groups.values()]
        assert [c.adjusted for c in each] == holm([c.p for c in each])
    assert "Of 3 groups by topic, the pass rate of 'delivery' went down by -0.250 (" in found.sentence
    assert found.sentence.endswith("chance does not explain it.")
    assert compare(OLD, OLD, by="topic").sentence.endswith("None of 3 groups by topic shows a difference by itself.")
    title, head, rows = found.tables()[1]
    assert title == "pass rate by topic, 3 groups: p is corrected for their number"
    assert (head[0], [row[0] for row in rows]) == ("topic", [*found.groups])
    assert json.loads(json.dumps(found.to_dict()))["groups"]["delivery"]["criteria"][0]["n"] == 60


def test_files_of_results_hold_what_they_are_grouped_by(tmp_path: Any) -> None:
    """The lines of two runs give the same groups as the runs themselves; so do tags."""
    for name, one in (("new", NEW), ("old", OLD)):
        one.to_jsonl(tmp_path / f"{name}.jsonl")
    read = compare(tmp_path / "new.jsonl", tmp_path / "old.jsonl", by="topic")
    assert read.groups == compare(NEW, OLD, by="topic").groups
    tagged = run(lambda n: n % 6 == 0, tags=True)
    tagged.to_jsonl(tmp_path / "tags.jsonl")
    found = compare(tmp_path / "tags.jsonl", tagged, by="tag")
    assert {name: group["score"].n for name, group in found.groups.items()} == {
        "all": 180,
        "billing": 60,
        "delivery": 60,
        "refunds": 60,
    }


def test_a_mapping_from_keys_names_the_groups() -> None:
    """As `errors_by` takes it: by key, or by place where there are no keys; pairs without a name are counted."""
    plain = run(lambda n: n % 6 == 0, None), run(lambda n: n % 5 == 0, None)
    some = {key: name for key, name in TOPICS.items() if int(key) < 90}
    found = compare(*plain, by=some)
    assert {name: group["score"].n for name, group in found.groups.items()} == dict.fromkeys(
        [*sorted(set(some.values()))], 30
    )
    assert "90 candidates of the new run in no group." in found.remarks()
    assert "Each difference is that of the new run, given first, less the old one." in found.remarks()
    new, old = (Grades(evolve(r, key="") for r in one) for one in plain)
    assert compare(new, old, by={int(key): name for key, name in some.items()}).groups["billing"]["score"].n == 30


def test_runs_without_the_variable_are_refused_with_what_to_do() -> None:
    """The line that grades again, and the one that joins rows by key."""
    plain = run(lambda n: False, None)
    with pytest.raises(DefinitionError) as caught:
        compare(plain, plain, by="topic")
    assert (
        "no result here has it: grade the new and the old run again with columns as before, such as rubric grade-many rubric.yaml data.csv --by topic"
        in caught.value.message
    )
    assert "by={row['key']: row['topic'] for row in rows}" in caught.value.message
    with pytest.raises(DefinitionError, match="grade the old run again"):
        compare(NEW, plain, by="topic")
    with pytest.raises(DefinitionError, match="did you mean 'topic'"):
        compare(NEW, OLD, by="topics")


def test_a_candidate_of_two_groups_is_refused() -> None:
    """Groups are of candidates, so what differs between the runs, such as the verdict, divides nothing."""
    other = run(lambda n: n % 6 == 0, {**TOPICS, "4": "billing"})
    with pytest.raises(DefinitionError, match=r"1 candidate in other groups in the new run than in the old \('4'\)"):
        compare(NEW, other, by="topic")
    with pytest.raises(DefinitionError, match=r"15 candidates in other groups in the new run"):
        compare(NEW, OLD, by="verdict")


def test_groups_of_a_pair_alone_are_told_and_left_out() -> None:
    """A group takes two graded pairs; where no group has them, that is an error."""
    found = compare(NEW, OLD, by={"0": "a", "1": "b", "2": "b", "4": "b"})
    assert list(found.groups) == ["b"]
    assert "Left out, without two graded pairs: 'a'." in found.remarks()
    with pytest.raises(DefinitionError, match="no group has two graded pairs"):
        compare(NEW, OLD, by="key")


def test_labels_correct_the_figures_of_groups_too() -> None:
    """A group with labels of both outputs is corrected; one without any two of them is told and left out."""
    people = Labels({key: True for key in TOPICS if TOPICS[key] != "refunds"})
    found = compare(NEW, OLD, (people, people), by="topic")
    assert list(found.groups) == ["billing", "delivery"]
    assert found.groups["delivery"]["pass rate"].labels == 60
    assert "Left out, without two graded pairs with labels: 'refunds'." in found.remarks()


def test_a_key_that_stands_twice_in_one_run_is_not_called_missing() -> None:
    """Its second result has no partner, and is listed as that."""
    rubric = Rubric("x").checks("thanks")
    new, old = (
        grade_many([{"key": key, "output": "thanks"} for key in keys.split()], rubric, "offline").collect()
        for keys in ("R1 R7 R7 R9", "R1 R7")
    )
    found = compare(new, old)
    assert found.unpaired_new == ("R7, result 2", "R9")
    assert "2 candidates in the new run alone ('R7, result 2', 'R9')" in str(found)
