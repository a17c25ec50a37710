"""The same rubric, candidate and replies give the same grade, however they are handed in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Candidate,
    Cascade,
    Grade,
    Judge,
    Jury,
    Message,
    Panel,
    Rubric,
    ToolCall,
    Ungraded,
    UngradedError,
    aevaluate,
    agrade_many,
    dumps,
    evaluate,
    grade,
    grade_many,
    loads,
)
from rubric.formats import DumpError
from rubric.formats.suites import convert, dumps_suite, loads_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.suites.targets.base import Response
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.judges import AnyJudge
from tests.examples import examples
from tests.findings import improvised, rubrics

SAID = "Version 2.3.0 is out. Thank you."
candidates = st.builds(
    Candidate,
    st.sampled_from([SAID, SAID, "No.", ""]),
    input=st.sampled_from(["", "Which version?"]),
    reference=st.sampled_from(["", "2.3.0"]),
    messages=st.sampled_from([(), (), (Message("user", "Hi"), Message("assistant", "Hello"))]),
    tool_calls=st.sampled_from([(), (), (ToolCall("look", arguments={"for": "version"}),)]),
    key=st.just("c"),
)


@st.composite
def judges(draw: st.DrawFn) -> AnyJudge:
    """Return a judge of any shape, whose models fail and mumble now and then."""
    seed = draw(st.integers(0, 9_999))
    script = improvised(seed, failing=0.05, unreadable=0.05)
    one = Judge(ScriptedModel(script), retries=0, per_call=draw(st.sampled_from([1, 2, "all"])))
    other = Judge(ScriptedModel(improvised(seed + 1)))
    shapes: list[AnyJudge] = [one, Jury(one, 3), Panel([one, other]), Panel([one, other], level="criterion")]
    return draw(st.sampled_from([*shapes, Cascade(one, other, "ungraded"), Jury(one, 3, early_stop=True)]))


def shown(result: Grade | Ungraded) -> dict[str, Any]:
    """Return all that a result says but its place among others."""
    data = result.to_dict()
    return {name: value for name, value in data.items() if name not in ("index", "key")}


def graded(candidate: Candidate, rubric: Rubric, judge: AnyJudge, folder: str) -> Iterator[tuple[str, Any]]:
    """Yield the result from each door, with its name."""
    try:
        yield "grade", grade(candidate, rubric, judge)
    except UngradedError as error:
        yield "grade", error.result
    yield "aevaluate", asyncio.run(aevaluate(candidate, rubric, judge))
    for number, result in enumerate(grade_many([candidate] * 2, rubric, judge, concurrency=1)):
        yield f"grade_many {number}", result
    yield "collect", grade_many(iter([candidate]), rubric, judge).collect()[0]

    async def awaited() -> list[Grade | Ungraded]:
        return [result async for result in agrade_many([candidate], rubric, judge)]

    yield "agrade_many", asyncio.run(awaited())[0]
    store = Path(folder) / "replies.db"
    yield "store", evaluate(candidate, rubric, judge, store=store)
    names = ("input", "reference", "messages", "tool_calls")
    case = Case("c", rubric, output=candidate.output, **{name: getattr(candidate, name) for name in names})
    suite = Suite("s", [case])
    yield "suite", suite.run(judge)["c"].result
    live = Suite("s", [evolve(case, output=None, tool_calls=())])
    yield "target", live.run(judge, target=lambda _: Response(candidate))["c"].result
    try:
        yield "rubric file", evaluate(candidate, loads(dumps(rubric)), judge)
        yield "suite file", loads_suite(dumps_suite(suite)).run(judge)["c"].result
        data = json.loads(json.dumps(convert(suite).data))
        yield "converted", loads_suite(json.dumps(data)).run(judge)["c"].result
    except DumpError:
        pass


@pytest.mark.long
@examples(25)
@given(rubrics(), candidates, judges())
def test_every_door_gives_the_same_grade(rubric: Rubric, candidate: Candidate, judge: AnyJudge) -> None:
    """One at a time or many, awaited or not, from a store, as a suite, live, and from files."""
    first = shown(evaluate(candidate, rubric, judge))
    with TemporaryDirectory() as folder:
        for door, result in graded(candidate, rubric, judge, folder):
            assert shown(result) == first, door
