"""A long run in segments: consecutive steps, nothing left out, and one finding of all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Criterion, Rubric
from rubric.errors import DefinitionError
from rubric.grading.candidate_parts import over_parts
from rubric.grading.segments import segments_of
from rubric.values.findings import Abstained, Evidence, Finding, Scored, Unjudged
from rubric.values.numbered import numbered_steps
from rubric.values.requests import Failure
from rubric.values.run_parts import RunPart
from rubric.values.runs import Message, Run, State, SubRun, ToolCall
from tests.examples import examples
from tests.rows import each_row

words = st.builds(lambda text, times: text * times, st.text("ab c\néü", max_size=30), st.sampled_from([1, 9, 200]))
events = st.recursive(
    st.one_of(
        st.builds(Message, st.sampled_from(["user", "assistant"]), words),
        st.builds(lambda name, said: ToolCall(name, arguments={"a": said}, result=said), st.sampled_from(["x"]), words),
        st.builds(lambda said: State({"a": said}), words),
    ),
    lambda inner: st.builds(
        lambda said, task, result: SubRun("s", Run(said), task=task, result=result),
        st.lists(inner, max_size=3),
        words,
        words,
    ),
    max_leaves=8,
)


def shown(run: Run) -> dict[str, str]:
    """Return the texts of the steps."""
    return {one.step: one.text for one in numbered_steps(RunPart(run, None, None))}


def size_of(run: Run) -> int:
    """Return the bytes of all that a judge is shown."""
    return sum(len(text.encode()) for text in shown(run).values())


@pytest.mark.long
@examples(60)
@given(st.lists(events, max_size=30), st.integers(1_000, 3_000))
def test_nothing_is_left_out_and_no_segment_is_too_long(given: list[Any], tokens: int) -> None:
    """Each event is whole in a segment under its own number, or cut into pieces that have all its text."""
    run = Run(given)
    parts = segments_of(run, tokens)
    assert all(size_of(part) <= 3 * tokens for part in parts.values())
    whole = {pair for part in parts.values() for pair in shown(part).items()}
    texts = "\n".join(text for _, text in whole).replace("\\", "")  # a state in pieces is JSON within JSON
    for number, event in enumerate(run.events, 1):
        own = shown(Run([event], first=number))
        if not own.items() <= whole:
            assert size_of(Run([event])) + 64 * len(own) > 3 * tokens
            assert all(word.replace("\\", "")[:20] in texts for text in own.values() for word in text.split()[2:])


def test_a_segment_repeats_the_end_of_the_one_before_it() -> None:
    """So that what one step says of the next is in one segment."""
    run = Run([Message("user", f"message {number} " + "x" * 80) for number in range(1, 1_001)])
    parts = segments_of(run, 10_000)
    spans = [(part.first, part.first + len(part.events)) for part in parts.values()]
    assert spans[0][0] == 1
    assert spans[-1][1] == 1_001
    for (_, end), (start, _) in pairwise(spans):
        assert 5 <= end - start <= 12
    assert next(iter(parts)) == f"steps 1 to {spans[0][1] - 1}"
    assert len(segments_of(run, 100_000)) == 1


def test_a_step_that_is_too_long_is_cut() -> None:
    """Its pieces are segments of their own, with its number, and overlap."""
    run = Run(
        [Message("user", "Go."), ToolCall("read", result=" ".join(map(str, range(10_000)))), Message("user", "?")]
    )
    parts = segments_of(run, 3_000)
    assert [*parts][:2] == ["step 1", "step 2, part 1 of 8"]
    assert [*parts][-1] == "step 3"
    assert [step for step, _ in parts["step 2, part 1 of 8"].steps()] == ["2"]


YES, NO = Scored("c", 1.0, True, "seen", (Evidence("it", 0, 2),)), Scored("c", 0.0, False, "not seen")
LOST = Unjudged("c", Failure("timeout", "late"), low=0.0, high=1.0)


@each_row(
    ("on", "found", "score"),
    [
        ("any segment", [NO, YES, NO], 1.0),
        ("any segment", [NO, NO], 0.0),
        ("any segment", [NO, YES, LOST], 1.0),
        ("any segment", [NO, LOST], (0.0, 1.0)),
        ("all segments", [YES, YES], 1.0),
        ("all segments", [YES, NO, LOST], 0.0),
        ("all segments", [YES, LOST], (0.0, 1.0)),
        ("latest segment", [NO, YES], 1.0),
        ("latest segment", [YES, NO, Abstained("c", "")], 0.0),
        ("latest segment", [LOST, YES], 1.0),
        ("latest segment", [YES, LOST], (0.0, 1.0)),
        ("worst segment", [YES, NO], 0.0),
        ("worst segment", [LOST, NO], 0.0),
        ("each segment", [YES, NO, NO, NO], 0.25),
        ("each segment", [YES, LOST], (0.5, 1.0)),
    ],
)
def test_each_reducer_decides_or_leaves_bounds(on: Any, found: list[Finding], score: Any) -> None:
    """A segment that was not judged leaves a doubt only where it could change the score."""
    criterion = Criterion("It does", id="c", on=on)
    named = {f"steps {number}": one for number, one in enumerate(found)}
    pooled = over_parts(Rubric(criteria=[criterion]), criterion, named)
    if isinstance(score, tuple):
        assert isinstance(pooled, Unjudged)
        assert (pooled.low, pooled.high) == score
        assert "steps" in pooled.failure.message
    else:
        assert isinstance(pooled, Scored)
        assert pooled.score == score
        assert LOST not in found or "not judged" in pooled.reason


def test_the_worst_of_what_should_not_hold_is_the_highest() -> None:
    """A guard that is found in one segment is found."""
    guard = Criterion("It leaks", id="c", on="worst segment", polarity="guard")
    pooled = over_parts(Rubric(criteria=[guard]), guard, {"a": NO, "b": YES})
    assert isinstance(pooled, Scored)
    assert pooled.score == 1.0


def test_a_yes_without_a_citation_is_no_yes() -> None:
    """Where evidence is demanded, a segment counts only with a quote that is there; the quote is the finding's."""
    criterion = Criterion("It does", id="c", on="any segment")
    rubric = Rubric(criteria=[criterion], evidence=True)
    bare = Scored("c", 1.0, True, "I think so", (Evidence("made up"),))
    pooled = over_parts(rubric, criterion, {"a": NO, "b": bare})
    assert isinstance(pooled, Scored)
    assert pooled.score == 0.0
    pooled = over_parts(rubric, criterion, {"a": bare, "b": YES})
    assert isinstance(pooled, Scored)
    assert (pooled.score, pooled.evidence) == (1.0, YES.evidence)


def test_code_and_nested_rubrics_are_asked_of_no_segments() -> None:
    """A check reads all of a run."""
    with pytest.raises(DefinitionError, match="a check reads all of a run"):
        Criterion(check="done", on="any segment")
    with pytest.raises(DefinitionError, match="ask its criteria of segments"):
        Criterion("x", answer=Rubric(criteria=["a"]), on="any segment")
