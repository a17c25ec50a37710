"""The differences from AgentV that `docs/reference/compatibility.md` names, and the rows that each is about."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.upstream.agentv_gradings import Grading
from tests.upstream.verdicts import Named, Pair


def _about(kinds: str, wanted: Callable[[Grading, Pair], bool]) -> Callable[[Pair], bool]:
    """Return whether a pair is of one of *kinds*, a pattern, and *wanted*."""
    return lambda pair: (
        isinstance(pair.data, Grading) and bool(re.fullmatch(kinds, pair.kind)) and wanted(pair.data, pair)
    )


def _lost(_: Grading, pair: Pair) -> bool:
    """True if AgentV passes a case of which a required part failed."""
    return pair.theirs.passed is True and pair.ours.passed is False and pair.theirs.score == pair.ours.score


NAMED = (
    Named(
        "`starts-with`, `ends-with` of an output with white space at its ends",
        _about("(?:starts|ends)-with", lambda made, _: made.output != made.output.strip()),
    ),
    Named("a free-form judgement before generation 2, `llm-grader`", _about("llm-grader", _lost)),
    Named("a required item that fails", _about("rubrics", _lost)),
    Named(
        "a required grader that fails",
        _about("required", lambda _, pair: pair.theirs.passed is pair.ours.passed is False and pair.theirs.score == 0),
    ),
)
