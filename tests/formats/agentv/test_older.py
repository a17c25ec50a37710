"""AgentV files of generations 1 and 1.5 that are written: what they hold comes back, what they lack is told."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rubric import Case, Contains, Criterion, Judge, Levels, Rubric, Suite
from rubric.formats.agentv.older import write_between, write_first
from rubric.formats.registry import recognise
from rubric.formats.suites import convert, loads_suite
from tests.agentv import loads
from tests.examples import examples
from tests.formats.agentv.test_writing import cases, conversations

WRITERS = {"agentv-1": write_first, "agentv-1.5": write_between}
GENERATIONS = st.sampled_from([*WRITERS])
_LACKING = ("composite", "borderline", "polarity", "bands have a gate", "names none")
"""What a sentence of these files may say of a suite that generation 2 holds."""


def held(case: Case, generation: str) -> Case:
    """Return *case* as the *generation* may hold it: without variables; in the first one with a borderline."""
    threshold = case.rubric.threshold
    usual = 0.6 if generation == "agentv-1" and threshold is not None and threshold >= 0.6 else None
    return evolve(case, variables={}, rubric=evolve(case.rubric, borderline=usual))


@settings(examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(cases(), min_size=1, max_size=2, unique_by=lambda case: case.id), GENERATIONS)
def test_what_an_older_generation_can_hold_comes_back_as_it_was(made: list[Case], generation: Any) -> None:
    """Where no sentence says otherwise, the suite is equal; and the sentences say what the generation lacks."""
    suite = Suite("s", [held(case, generation) for case in made], format=generation)
    data, dropped = WRITERS[generation](suite)
    again = loads(data, generation)
    told = [case.id for case in suite if any(repr(case.id) in sentence for sentence in dropped)]
    assert [case for case in again if case.id not in told] == [case for case in suite if case.id not in told]
    assert all(any(word in sentence for word in _LACKING) for sentence in dropped), dropped
    assert recognise(data).format == generation


@settings(examples(20), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(conversations())
def test_a_conversation_of_generation_1_5_comes_back_as_it_was(case: Case) -> None:
    suite = Suite("s", [case], format="agentv-1.5")
    data, dropped = write_between(suite)
    assert dropped == []
    assert loads(data, "agentv-1.5") == suite


def test_a_composite_has_the_weights_of_its_graders_by_their_names() -> None:
    """AgentV leaves out graders of a composite without a name, and takes no notice of their own weights."""
    members = [Criterion("contains 'a'", id="contains", weight=3, answer=Contains("a"))]
    members += [Criterion("contains 'b'", id="contains-2", answer=Contains("b"))]
    checks = Rubric("set", criteria=members, threshold=0.5)
    case = Case("t", Rubric(threshold=0.8).includes(checks).checks(Contains("c")), input="Q")
    data, _ = write_between(Suite("s", [case]))
    panel = data["tests"][0]["assertions"][0]
    assert [row["name"] for row in panel["assertions"]] == ["contains", "contains-2"]
    assert panel["aggregator"] == {"type": "weighted_average", "weights": {"contains": 3}}


PLAIN = Rubric(
    "rubric",
    criteria=[
        Criterion("Is polite", id="rubric-1", required=True),
        Criterion("Is short", id="short", weight=2, min_score=0.5),
        Criterion("How well", id="well", answer=Levels({"0-4": "badly", "5-10": "well"})),
    ],
    threshold=0.8,
    borderline=0.6,
)


def test_generation_1_is_written_in_the_words_of_its_pages() -> None:
    data, dropped = write_first(Suite("s", [Case("a", PLAIN, input="Q", context="Helps", reference="A")]))
    assert dropped == []
    assert data["evalcases"] == [
        {
            "id": "a",
            "expected_outcome": "Helps",
            "input": "Q",
            "expected_output": "A",
            "rubrics": [
                "Is polite",
                {
                    "id": "short",
                    "expected_outcome": "Is short",
                    "required": False,
                    "weight": 2,
                    "required_min_score": 5,
                },
                {
                    "id": "well",
                    "expected_outcome": "How well",
                    "required": False,
                    "score_ranges": {0: "badly", 5: "well"},
                },
            ],
        }
    ]


def test_generation_1_5_is_written_in_the_words_of_its_pages() -> None:
    tone = Rubric("tone", criteria=[Criterion("Is polite", id="polite")], threshold=0.9)
    rubric = Rubric(
        criteria=[Criterion("tone", id="tone", answer=tone), Criterion(check=Contains("x"), id="contains")],
        threshold=0.9,
    )
    suite = Suite("s", [Case("a", rubric, input="Q", judges={"tone": Judge("openai/gpt-5")})])
    data, dropped = write_between(suite)
    assert dropped == []
    assert data["tests"] == [
        {
            "id": "a",
            "input": "Q",
            "assertions": [
                {
                    "name": "tone",
                    "type": "rubrics",
                    "target": "openai:gpt-5",
                    "criteria": [{"id": "polite", "outcome": "Is polite", "required": False}],
                },
                {"type": "contains", "value": "x"},
            ],
            "execution": {"threshold": 0.9},
        }
    ]


@pytest.mark.parametrize("generation", [*WRITERS])
def test_a_written_file_loads_by_the_default_call_as_its_generation(generation: str) -> None:
    turns = Rubric(criteria=[Criterion("turn 1", id="turn-1", answer=Rubric("rubrics").requires("Good"), on=1)])
    suite = Suite("s", [Case("a", PLAIN, input="Q")])
    assert loads_suite(str(convert(suite, generation))).format == generation
    if generation == "agentv-1.5":  # a test whose turns alone are graded tells no generation by itself
        suite = Suite("s", [Case("a", turns, turns=["Q"])])
        assert loads_suite(str(convert(suite, generation))).format == generation


@pytest.mark.parametrize(
    ("generation", "case", "lost"),
    [
        ("agentv-1", Case("a", evolve(PLAIN, borderline=None)), "rubric.borderline: generation 1 of AgentV calls"),
        ("agentv-1.5", Case("a", PLAIN), "rubric.borderline: generation 1.5 of AgentV does not have it"),
        ("agentv-1", Case("a", PLAIN, variables={"x": "y"}), "variables: generation 1 of AgentV does not have it"),
        ("agentv-1", Case("a", PLAIN, turns=["Q"]), "turns: generation 1 of AgentV has no conversations"),
        ("agentv-1.5", Case("a", evolve(PLAIN, max_steps=3)), "rubric.max_steps: generation 1.5 of AgentV does not"),
        (
            "agentv-1",
            Case("a", Rubric("r", criteria=[Criterion("Good", id="c", polarity="correctness")], threshold=0.5)),
            "c.polarity: generation 1 of AgentV does not have it",
        ),
        ("agentv-1", Case("a", PLAIN, output="x"), "output: AgentV's tests do not have a fixed response"),
    ],
)
def test_what_an_older_generation_lacks_is_told(generation: str, case: Case, lost: str) -> None:
    _, dropped = WRITERS[generation](Suite("s", [case]))
    assert any(sentence.startswith(f"case 'a': {lost}") for sentence in dropped), dropped
