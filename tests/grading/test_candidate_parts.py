"""Criteria of turns: of each, of the worst, of the last, of one by its number, and targets that answer turn by turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from rubric import (
    Calls,
    Candidate,
    Case,
    Criterion,
    DefinitionError,
    Judge,
    Jury,
    Message,
    ModelError,
    Rubric,
    Run,
    Suite,
    ToolCall,
    UngradedError,
    Unit,
    When,
    call,
    dumps,
    grade,
    loads,
    loads_suite,
    plan,
)
from rubric.driving import Failure, Usage
from rubric.formats import dumps_suite, schema
from rubric.grading.candidate_parts import over_parts
from rubric.results.result import Result
from rubric.scoring.outcomes import outcome
from rubric.suites.targets.base import DeferError, Response
from rubric.testing.scripted_model import ScriptedModel
from rubric.values import SubRun
from rubric.values.chats import candidate_of_chat
from rubric.values.checks import Decided, Holds
from rubric.values.findings import NotApplicable, Scored
from tests.rows import each_row
from tests.servers import openai_serving

CHAT = Candidate(
    "Third answer",
    input="Third?",
    messages=[
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "First?"},
        {"role": "assistant", "content": "First answer"},
        {"role": "user", "content": "Second?"},
        {"role": "assistant", "content": "Second answer"},
        {"role": "user", "content": "Third?"},
    ],
)


ONCE = ("each-turn", "worst-turn", "last-turn", "conversation")


class Recording:
    """A judge that says whether the graded answer has *word* in it, and keeps what it was shown."""

    def __init__(self, word: str = "Second") -> None:
        self.word, self.seen = word, list[str]()
        self.model = ScriptedModel(self._verdict)

    def _verdict(self, ask: Any) -> Any:
        self.seen.append(ask.chat()[-1]["content"])
        return {"score": float(self.word in ask.candidate), "reason": f"saw {ask.candidate}"}


def judged(on: Any, polarity: Any = "satisfy", candidate: Candidate = CHAT) -> tuple[float, str]:
    rubric = Rubric(criteria=[Criterion("Is it so?", id="a", on=on, answer="unit", polarity=polarity)])
    finding = grade(candidate, rubric, Judge(Recording().model))["a"]
    assert finding.score is not None
    return finding.score, finding.reason


@each_row(
    ("on", "score"),
    [
        ("each turn", 1 / 3),
        ("worst turn", 0.0),
        ("last turn", 0.0),
        (1, 0.0),
        (2, 1.0),
        (3, 0.0),
        ("conversation", 0.0),
    ],
)
def test_a_criterion_is_asked_of_the_turns_that_it_names(on: Any, score: float) -> None:
    """The score is the mean for "each turn", the least for "worst turn", and one turn's for a number."""
    assert judged(on)[0] == pytest.approx(score)


@each_row(
    ("on", "polarity", "begins"),
    [
        ("each turn", "satisfy", "turn 1 (0.00): saw First answer; turn 2 (1.00): saw Second answer; turn 3"),
        ("worst turn", "satisfy", "worst: turn 1, turn 3; turn 1 (0.00): saw First answer; turn 2 (1.00)"),
        ("worst turn", "guard", "worst: turn 2; turn 1 (0.00): saw First answer; turn 2 (1.00)"),
    ],
)
def test_the_reason_names_each_turn(on: Any, polarity: Any, begins: str) -> None:
    """The reason lists every turn with its score and the judge's words; of the worst turn it begins with which it is."""
    assert judged(on, polarity)[1].startswith(begins)


@each_row(("on", "judge"), [(on, size) for on in ("each turn", "worst turn") for size in (1, 3)])
def test_the_turns_are_parts_of_the_finding(on: Any, judge: int) -> None:
    """Each has its number, its score and its reason, of a jury the pooled ones, and they come back from a file."""
    rubric = Rubric(criteria=[Criterion("Is it so?", id="a", on=on, answer="unit")])
    single = Judge(Recording().model, identity="v1")
    by = single if judge == 1 else Jury(single, judge)
    result = grade(CHAT, rubric, by)
    parts = result["a"].parts
    assert [(part.id, part.score, part.reason) for part in parts] == [
        ("turn 1", 0.0, "saw First answer"), ("turn 2", 1.0, "saw Second answer"), ("turn 3", 0.0, "saw Third answer"),
    ]  # fmt: skip
    assert Result.from_dict(json.loads(json.dumps(result.to_dict())), rubric, by)["a"].parts == parts


def test_a_conversation_of_one_turn_has_one_part_and_other_findings_have_none() -> None:
    """Else a table of turns would lack the short conversations; what is asked of the whole is stored as it was."""
    rubric = Rubric(criteria=[Criterion("Is it so?", id=name, on=name.replace("-", " ")) for name in ONCE])
    found = grade("Yes", rubric, "offline")
    assert {name: [part.id for part in found[name].parts] for name in ONCE} == {
        "each-turn": ["turn 1"], "worst-turn": ["turn 1"], "last-turn": [], "conversation": [],
    }  # fmt: skip


def test_the_worst_turn_of_an_unwanted_criterion_is_where_it_was_found() -> None:
    """For a guard the worst turn has the highest score; the mean stays the mean."""
    assert judged("worst turn", "guard")[0] == 1.0
    assert judged("each turn", "guard")[0] == pytest.approx(1 / 3)


def test_a_judge_of_a_turn_sees_what_came_before_and_nothing_later() -> None:
    """The prompt for turn 2 ends with its answer."""
    recording = Recording()
    grade(CHAT, Rubric(criteria=[Criterion("Is it so?", on=2, answer="unit")]), Judge(recording.model))
    (seen,) = recording.seen
    assert "First answer" in seen
    assert "Second?" in seen
    assert "Third" not in seen


def test_a_turn_that_is_not_there_is_not_judged() -> None:
    """The result is ungraded and says how many turns there are."""
    rubric = Rubric(criteria=[Criterion("Is it so?", id="a", on=4)])
    with pytest.raises(UngradedError, match="has 3 turns, and no turn 4"):
        grade(CHAT, rubric, "offline")


def test_checks_trees_and_nested_rubrics_are_decided_for_turns_too() -> None:
    """A check and a nested rubric see the text of their own turn."""
    inner = Rubric(criteria=[Criterion(check="Second", id="c"), Criterion("Is it so?", answer="unit", id="u")])
    rubric = Rubric(
        criteria=[Criterion(check="answer", id="every", on="worst turn"), Criterion("x", id="n", answer=inner, on=2)]
    )
    result = grade(CHAT, rubric, Judge(Recording().model))
    assert (result["every"].score, result["n"].score) == (1.0, 1.0)


def test_a_criterion_is_asked_of_what_a_function_returns() -> None:
    """A part of the answer, say; a function that fails, or returns no candidate, leaves its criterion unjudged."""

    def first_word(candidate: Candidate) -> Candidate:
        return evolve(candidate, output=candidate.output.split()[0])

    rubric = Rubric(criteria=[Criterion(check="Third", id="third", on=first_word), Criterion("Is it?", on=first_word)])
    model = Recording()
    assert grade(CHAT, rubric, Judge(model.model))["third"].score == 1
    assert "Third answer" not in model.seen[-1]
    assert plan(CHAT, rubric, "offline").most == 1
    for broken in (lambda _: 1 / 0, lambda _: "text"):
        with pytest.raises(UngradedError, match=r"expected a Candidate|ZeroDivisionError"):
            grade(CHAT, Rubric(criteria=[Criterion("A?", on=broken)]), "offline")  # type: ignore[arg-type]


def _fails(candidate: Candidate) -> Candidate:
    raise ValueError(candidate.output)


RUN = Candidate(
    run=Run([
        Message("user", "Pay it."),
        ToolCall("pay", arguments={"sum": 5}, result="done"),
        SubRun("helper", Run([Message("assistant", "I checked.")]), task="Check."),
        Message("assistant", "Paid."),
    ])
)  # fmt: skip


@each_row(
    ("on", "candidate", "when", "asked"),
    [
        (lambda c: evolve(c, output="part"), CHAT, When(contains="Third answer"), 1),
        (lambda c: evolve(c, output="part"), CHAT, When(contains="part"), 0),
        (lambda c: evolve(c, output="part"), CHAT, ~When(contains="part"), 1),
        (_fails, CHAT, When(contains="{"), 0),
        ("tools", RUN, When(contains="Paid."), 1),
        ("tools", RUN, When(contains="done"), 0),
        (call("pay"), RUN, When(contains="Paid."), 1),
        (call("pay"), RUN, When(contains="done"), 0),
        ("sub-agent helper", RUN, When(contains="Paid."), 1),
        ("sub-agent helper", RUN, When(tool_called="pay"), 1),
        ("sub-agent nobody", RUN, When(contains="I checked."), 0),
        ("each turn", CHAT, When(contains="Third"), 1),
        ("worst turn", CHAT, When(contains="answer"), 3),
        ("last turn", CHAT, When(contains="Second"), 0),
        (2, CHAT, When(contains="Second"), 1),
    ],
)
def test_a_condition_sees_the_whole_unless_on_divides_it(on: Any, candidate: Candidate, when: When, asked: int) -> None:
    """A function, calls, steps and a sub-agent make another text; of turns each is asked. The plan counts so too."""
    rubric = Rubric(criteria=[Criterion("Is it so?", id="a", on=on, answer="unit", when=when)])
    recording = Recording()
    found = grade(candidate, rubric, Judge(recording.model))["a"]
    assert len(recording.seen) == plan(candidate, rubric, "offline").most == asked
    assert isinstance(found, Scored if asked else NotApplicable)


def test_the_plan_counts_each_turn() -> None:
    """Three turns and the whole are four calls; a missing turn costs none."""
    rubric = Rubric(criteria=[Criterion("A?", on="each turn"), Criterion("B?"), Criterion("C?", on=9)])
    assert plan(CHAT, rubric, "offline").most == 4


def test_the_turn_is_kept_in_files() -> None:
    """`on` comes back from YAML, and an unknown value is refused."""
    rubric = Rubric("r", criteria=[Criterion("A?", on="worst turn"), Criterion("B?", on=2)])
    assert loads(dumps(rubric)) == rubric
    with pytest.raises(DefinitionError, match="unknown value 'every turn'"):
        Criterion("A?", on="every turn")


# -- live targets ------------------------------------------------------------------------------------------


def test_a_target_answers_turn_by_turn() -> None:
    """Each call has the earlier turns with their answers; the row shows the last turn."""
    seen: list[list[str]] = []

    def target(case: Case) -> str:
        seen.append([*(m.content for m in case.messages), case.input])
        return f"answer {len(seen)}"

    rubric = Rubric(criteria=[Criterion(check="answer 1", id="one", on=1), Criterion(check="answer 2", id="two")])
    case = Case("a", rubric, messages=[{"role": "system", "content": "S"}], turns=["Q1", "Q2"])
    (row,) = Suite("s", [case]).run("offline", target=target)
    assert row.status == "passed"
    assert seen == [["S", "Q1"], ["S", "Q1", "answer 1", "Q2"]]
    assert (row.input, row.output) == ("Q2", "answer 2")


def test_turns_have_no_input_and_no_output_beside_them() -> None:
    """A case with turns and an output is a definition error."""
    with pytest.raises(DefinitionError, match="output has no place beside them"):
        Case("a", "x", turns=["Q"], output="A")


AGENTV = """
prompts: ["{{ input }}"]
tests:
  - id: sums
    mode: conversation
    aggregation: AGGREGATION
    vars: {input: [{role: system, content: Be exact.}]}
    assert: [{type: contains, value: sixty}]
    turns:
      - {input: What is 15% of 200?, assert: [{type: contains, value: "30"}]}
      - {input: Double it., assert: [{type: contains, value: "60"}, {type: contains, value: wrong}]}
      - input: Thanks.
"""


@pytest.mark.parametrize(("aggregation", "score"), [("mean", 0.5), ("min", 0.0)])
def test_agentv_conversations_are_graded_turn_by_turn(aggregation: str, score: float) -> None:
    """Turn 1 is right, turn 2 half right, the whole wrong: the mean of 1, 0.5 and 0."""
    suite = loads_suite(AGENTV.replace("AGGREGATION", aggregation), "agentv-2")
    assert [turn.input for turn in suite["sums"].turns] == ["What is 15% of 200?", "Double it.", "Thanks."]
    answers = iter(["30", "60", "You are welcome"])
    (row,) = suite.run("offline", target=lambda _: next(answers))
    assert row.score == pytest.approx(score)
    assert [entry.id for entry in row.entries] == ["turn-1", "turn-2", "conversation"]


def test_a_model_is_sent_the_turns_before() -> None:
    """The roles of each request grow by one exchange a turn."""
    suite = loads_suite(AGENTV.replace("AGGREGATION", "mean"), "agentv-2")
    with openai_serving(lambda _: "30 and 60") as endpoint:
        suite.run("offline", target="openai/gpt-5-mini")
    assert [[m["role"] for m in request.body["messages"]] for request in endpoint.requests] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        ["system", "user", "assistant", "user", "assistant", "user"],
    ]


# -- evidence ----------------------------------------------------------------------------------------------


class Quoting:
    """A judge that says yes to everything and quotes *words*."""

    def __init__(self, words: str) -> None:
        self.model = ScriptedModel(lambda _: {"verdict": True, "reason": "so it is", "evidence": [words]})


@pytest.mark.parametrize(("on", "where"), [(2, "turn 2"), ("each turn", "turn 2"), ("last turn", "output")])
def test_a_quote_names_the_turn_that_it_is_in(on: Any, where: str) -> None:
    """Its place is one in that turn, so it is not marked in the output."""
    words = "Third answer" if where == "output" else "Second answer"
    finding = grade(CHAT, Rubric(criteria=[Criterion("So?", on=on)], evidence=True), Judge(Quoting(words).model))["so"]
    assert {(e.where, e.text) for e in finding.evidence if e.verified and "step" not in e.where} == {(where, words)}


def test_a_turn_without_the_evidence_that_it_needs_does_not_count_as_met() -> None:
    """The quote is in the conversation of turn 2 and 3; nothing in turn 1 has it."""
    rubric = Rubric(criteria=[Criterion("So?", on="each turn")], evidence=True)
    finding = grade(CHAT, rubric, Judge(Quoting("Second").model))["so"]
    assert finding.score == pytest.approx(2 / 3)
    assert "turn 1 (0.00, without evidence)" in finding.reason


# -- tool calls --------------------------------------------------------------------------------------------

ORDER = {"name": "find_order", "arguments": {"id": 7}, "result": "shipped on Monday"}
RUN = Candidate("It was shipped on Friday.", input="Where is order 7?", reference="On Monday.", tool_calls=[ORDER])


def test_a_judge_of_the_tool_calls_sees_them_and_neither_the_output_nor_the_reference() -> None:
    """The calls and their results appear once, beside the input."""
    recording = Recording("shipped on Monday")
    rubric = Rubric(criteria=[Criterion("Looked it up", on="tools", answer="unit")])
    assert grade(RUN, rubric, Judge(recording.model)).score == 1
    (seen,) = recording.seen
    assert seen.count('[2] call find_order({"id": 7}) -> shipped on Monday') == 1
    assert "Where is order 7?" in seen
    assert "Friday" not in seen
    assert "On Monday." not in seen


@pytest.mark.parametrize(
    ("words", "verified"), [("shipped on Monday", True), ("Friday", False), ("Where is order 7?", False)]
)
def test_quotes_of_tool_calls_are_looked_up_in_them_alone(words: str, verified: bool) -> None:
    """A quote from the output or the input does not count as evidence."""
    asked = Candidate("Friday", messages=[{"role": "user", "content": "Where is order 7?"}], tool_calls=[ORDER])
    rubric = Rubric(criteria=[Criterion("Looked it up", id="a", on="tools")], evidence=True)
    (quote,) = grade(asked, rubric, Judge(Quoting(words).model))["a"].evidence
    assert (quote.verified, quote.where) == (verified, "step 2" if verified else "output")


def test_a_run_without_tool_calls_is_judged_as_such() -> None:
    """The prompt says that no tool was called."""
    recording = Recording("no tool was called")
    rubric = Rubric(criteria=[Criterion("Calls nothing", on="tools", answer="unit")])
    assert grade("Done.", rubric, Judge(recording.model)).score == 1


def test_checks_of_the_tool_calls_look_at_their_texts_and_at_the_calls() -> None:
    """Text checks see the calls' results and not the output."""
    rubric = Rubric(
        criteria=[
            Criterion(check="Monday", id="text", on="tools"),
            Criterion(check="Friday", id="answer", on="tools"),
            Criterion("called", check=Calls("find_order"), on="tools"),
        ]
    )
    result = grade(RUN, rubric, "offline")
    assert [result[id_].score for id_ in ("text", "answer", "called")] == [1, 0, 1]


def test_the_calls_of_a_chat_belong_to_the_turns_that_they_were_made_for() -> None:
    """A call of the first turn is not found in the second."""
    call = {"id": "1", "function": {"name": "find_order", "arguments": "{}"}}
    chat = [
        {"role": "user", "content": "Where is it?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "at sea"},
        {"role": "assistant", "content": "At sea."},
        {"role": "user", "content": "Thanks."},
        {"role": "assistant", "content": "You are welcome."},
    ]
    called = [Criterion("called", id=f"t{n}", check=Calls("find_order"), on=n) for n in (1, 2)]
    result = grade(candidate_of_chat(chat), Rubric(criteria=called), "offline")
    assert (result["t1"].score, result["t2"].score) == (1, 0)


# -- references of turns -----------------------------------------------------------------------------------

REFERENCES = """
suite: s
cases:
  - id: a
    turns: [{input: "What is 15% of 200?", reference: "30"}, {input: Double it., reference: "60"}, Thanks.]
    rubric:
      criteria:
        - {text: Is right, id: first, on: 1}
        - {text: Is right, id: second, on: 2}
        - {text: Is polite, id: last, on: last turn}
"""


def test_the_reference_of_a_turn_is_shown_with_its_criterion_and_to_no_target() -> None:
    """Each turn's judge sees its own reference; the target sees none."""
    suite = loads_suite(REFERENCES)
    assert loads_suite(dumps_suite(suite)) == suite
    Draft202012Validator(schema("suite")).validate(YAML(typ="safe").load(REFERENCES))
    recording, asked = Recording(""), list[Case]()

    def target(case: Case) -> str:
        asked.append(case)
        return f"answer {len(asked)}"

    (row,) = suite.run(Judge(recording.model), target=target)
    assert row.status == "passed"
    shown = {n: seen.partition("reference answer, ")[2].split("\n")[1:2] for n, seen in enumerate(recording.seen)}
    assert shown == {0: ["30"], 1: ["60"], 2: []}
    assert [case.reference for case in asked] == ["", "", ""]


def test_a_finished_conversation_has_references_in_its_messages() -> None:
    """The reference of an assistant's message is in the prompt of its turn."""
    said = [Message("user", "2 + 2?"), Message("assistant", "5", reference="4")]
    recording = Recording()
    rubric = Rubric(criteria=[Criterion("Is right", on=1, answer="unit")])
    grade(Candidate("Yes.", input="Sure?", messages=said), rubric, Judge(recording.model))
    assert "reference answer" in recording.seen[0]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda: Message("user", "x", reference="y"), "only an answer of the assistant"),
        (lambda: Case("a", "x", reference="y", turns=[{"input": "q", "reference": "z"}]), "keep one of them"),
        (lambda: Case("a", "x", turns=[{"input": "q", "answer": "z"}]), r"turns\[0\]"),
        (lambda: Case("a", "x", turns=["q", " "]), r"turns\[1\]"),
        (lambda: Case("a", "x", turns="q"), "a list of what the user says"),
    ],
)
def test_a_reference_without_an_effect_is_refused(build: Any, said: str) -> None:
    """References of other roles, doubled references and unknown keys are definition errors."""
    with pytest.raises(DefinitionError, match=said):
        build()


def test_both_references_of_agentvs_last_turn_are_shown() -> None:
    """The judge of the last turn gets that turn's reference and the case's."""
    text = """
tests:
  - id: a
    mode: conversation
    expected_output: of the whole
    turns: [{input: Q1, expected_output: of turn 1, assert: [Is right]}, {input: Q2, expected_output: of turn 2, assert: [Is right]}]
    assert: [Went well]
"""
    recording = Recording("right")
    loads_suite(text, "agentv-2").run(Judge(recording.model), target=lambda _: "This is right.")
    shown = [[f"of {what}" for what in ("turn 1", "turn 2", "the whole") if f"of {what}" in s] for s in recording.seen]
    assert sorted(shown) == [["of the whole"], ["of turn 1"], ["of turn 2", "of the whole"]]


# -- conversations that break ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error", [ValueError("it broke"), ModelError(Failure("timeout", "it broke")), DeferError("it broke")]
)
def test_a_conversation_that_breaks_is_ungraded_and_keeps_what_was_said(error: Exception) -> None:
    """The row names the turn and keeps the chat, the calls and the usage so far."""

    def target(case: Case) -> Response:
        if len(case.messages) == 2:
            raise error
        called = case.responding("A1", tool_calls=[ORDER])
        return Response(called, Usage(calls=1, prompt_tokens=5))

    case = Case("a", Rubric(criteria=[Criterion("So?", on="each turn")]), turns=["Q1", "Q2", "Q3"])
    (row,) = Suite("s", [case]).run(Judge(Recording().model), target=target)
    assert row.status == "ungraded"
    assert row.reason.startswith("not graded: turn 2: ")
    assert (row.input, row.output) == ("Q2", "")
    steps = ["user: Q1", 'call find_order({"id": 7}) -> shipped on Monday', "assistant: A1", "user: Q2"]
    assert row.run == tuple(f"[{number}] {step}" for number, step in enumerate(steps, 1))
    assert row.usage.prompt_tokens == 5


def test_a_target_that_is_not_there_at_all_defers_the_conversation() -> None:
    """A deferral at the first turn defers the case."""

    def target(case: Case) -> str:
        raise DeferError("no key")

    (row,) = Suite("s", [Case("a", "Is right", turns=["Q1", "Q2"])]).run("offline", target=target)
    assert (row.status, row.reason) == ("deferred", "no key")


def test_an_empty_answer_is_a_turn() -> None:
    """Else the answer to the second question would be graded as that to the first."""
    answers = iter(["", "60"])
    case = Case("a", Rubric(criteria=[Criterion(check="60", id="first", on=1)]), turns=["Q1", "Q2"])
    (row,) = Suite("s", [case]).run("offline", target=lambda _: next(answers))
    assert row.score == 0


def test_the_turns_of_agentv_follow_the_answers_in_its_input() -> None:
    """An example answer in the input is not a turn of the conversation."""
    text = """
tests:
  - id: a
    mode: conversation
    input: [{role: user, content: Hi}, {role: assistant, content: an example}]
    turns: [{input: Q1, assert: [{type: contains, value: live}]}]
"""
    (row,) = loads_suite(text, "agentv-2").run("offline", target=lambda _: "live")
    assert row.score == 1


def test_the_calls_of_a_live_turn_belong_to_it() -> None:
    """Calls that a target reports are found in their turn and in the whole."""

    def target(case: Case) -> Candidate:
        return case.responding("A", tool_calls=[] if case.messages else [ORDER])

    called = [Criterion("called", id=f"t{n}", check=Calls("find_order"), on=n) for n in (1, 2)]
    case = Case(
        "a", Rubric(criteria=[*called, Criterion("all", id="all", check=Calls("find_order"))]), turns=["1", "2"]
    )
    (row,) = Suite("s", [case]).run("offline", target=target)
    assert [entry.score for entry in row.entries] == [1, 0, 1]


@each_row("on", ["conversation", "each turn", "worst turn", "last turn", 1])
@each_row("threshold", [None, 0.5])
def test_a_turn_that_the_judge_itself_fails_fails_the_criterion(on: Any, threshold: float | None) -> None:
    """The judge's own flag counts for every kind of turn, whatever the score."""
    says = ScriptedModel(lambda _: {"reason": "So it is.", "score": 0.9, "pass": False})
    rubric = Rubric(criteria=[Criterion("Is good", answer=Unit(flag=True), on=on)], threshold=threshold)
    assert grade(CHAT, rubric, Judge(says)).passed is False


@each_row("on", ["conversation", "each turn", "worst turn"])
@each_row(
    ("score", "passed", "unwanted"), [(0.4, True, False), (0.9, False, False), (0.4, True, True), (0.4, False, True)]
)
def test_a_check_with_a_verdict_of_its_own_keeps_it_for_turns(
    on: Any, score: float, passed: bool, unwanted: bool
) -> None:
    """The check's verdict decides, and a guard inverts it."""
    check = Holds(lambda _: Decided(score, reason="So it is.", passed=passed))
    criterion = Criterion("Is near", answer=check, on=on)
    if unwanted:
        criterion = evolve(criterion, polarity="guard", min_score=0.01)
    rubric = Rubric(criteria=[criterion], threshold=None)
    assert grade(CHAT, rubric, "offline").passed is (passed is not unwanted)


@pytest.mark.parametrize(("scores", "passed"), [((0.97, 0.98), True), ((0.97, 0.2), False), ((0.99, 0.4), False)])
def test_weighted_answers_of_turns_are_yes_where_each_of_them_is(scores: tuple[float, ...], passed: bool) -> None:
    """One turn below one half fails the criterion, however high the mean."""
    criterion = Criterion("Is good", id="good", on="each turn")
    rubric = Rubric(criteria=[criterion], threshold=None)
    found = {f"turn {n}": Scored("good", score, value=score >= 0.5, weighted=True) for n, score in enumerate(scores, 1)}
    assert outcome(rubric, [over_parts(rubric, criterion, found)]).passed is passed
