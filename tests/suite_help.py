"""What the tests of suites share: cases, judges that answer by a table, and targets."""

from __future__ import annotations

from typing import Any

from rubric import Criterion, Judge, Rubric
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import ScriptedModel

GOOD = "The 2.3.0 release added per-tenant rate limits."
"""What is graded, where the test does not care."""

TWO = Rubric("two", criteria=[Criterion("Names a version", id="version"), Criterion("Is warm", id="warm")])


def saying(**verdicts: Any) -> Judge:
    """Return a judge that answers by the ids of criteria."""
    return Judge(ScriptedModel(verdicts))


def asks_of(judge: Judge) -> list[list[str]]:
    """Return the ids of the criteria of each ask that *judge* has had."""
    assert isinstance(judge.model, ScriptedModel)
    return [[criterion.id for criterion in ask.criteria] for ask in judge.model.asks]


def one(rubric: Rubric | str = TWO, **fields: Any) -> Suite:
    """Return a suite of one case, called `a`, with a fixed response."""
    return Suite("one", [Case("a", rubric, **{"output": GOOD, **fields})])


def many(count: int, rubric: Rubric | str = TWO, **fields: Any) -> Suite:
    """Return a suite of so many cases, called `c0`, `c1` and on."""
    return Suite("many", [Case(f"c{n}", rubric, **{"output": GOOD, **fields}) for n in range(count)])
