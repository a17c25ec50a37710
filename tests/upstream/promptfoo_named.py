"""The differences from promptfoo that `docs/reference/compatibility.md` names, and the rows that each is about."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.upstream.promptfoo_gradings import Data, Grading
from tests.upstream.verdicts import Named, Pair


def _assertions(pair: Pair) -> Iterator[Data]:
    """Yield the assertions of *pair*, those of sets too."""
    rest: list[Any] = [*pair.data.assertions] if isinstance(pair.data, Grading) else []
    while rest:
        one = rest.pop()
        yield one
        rest += one.get("assert", [])


def _about(kinds: str, wanted: Callable[[Data, Pair], bool] = lambda *_: True) -> Callable[[Pair], bool]:
    """Return whether a pair has an assertion whose type is one of *kinds*, a pattern, and that is *wanted*."""
    return lambda pair: any(
        re.fullmatch(kinds, str(one.get("type"))) and wanted(one, pair) for one in _assertions(pair)
    )


def _ungraded(pair: Pair) -> bool:
    return pair.ours.passed is None


def _without_value(one: Data, pair: Pair) -> bool:
    return one.get("value") in (None, "", "{{gone}}") and _ungraded(pair)


_NO_EFFECT = "not-(?:model-graded-)?factuality|not-model-graded-closedqa|not-is-valid-.*"
_ELSEWHERE = {
    "`moderation`, `guardrails`, `promptfoo:redteam:*`": "(?:not-)?(?:moderation|guardrails)",
    "`classifier`, `pi`, `webhook`, `ruby`, `human`": "(?:not-)?(?:classifier|pi|webhook|ruby|human)",
    "`search-rubric`": "(?:not-)?search-rubric",
    "`trace-span-count`, `trace-span-duration`, `trace-error-spans`": "(?:not-)?trace-.*",
    "`meteor`": "(?:not-)?meteor",
}
"""Rows for types that are not graded here."""

NAMED: tuple[Named, ...] = (
    *(Named(row, _about(kinds, lambda _, pair: _ungraded(pair))) for row, kinds in _ELSEWHERE.items()),
    Named("`storeOutputAs`", lambda pair: pair.kind == "live: stored outputs"),
    Named(  # so the numbers of its tests are others, and each is compared with another one
        "files of prompts and tests that a pattern names",
        lambda pair: pair.kind.endswith(": globs of tests") and None not in (pair.ours.passed, pair.theirs.passed),
    ),
    Named(
        "a number as the `value` of `starts-with`",
        _about("(?:not-)?starts-with", lambda one, _: isinstance(one.get("value"), int)),
    ),
    Named("`equals`", _about("(?:not-)?equals", lambda one, pair: pair.data.output.strip() != pair.data.output)),
    Named("no `value`, or an empty one, of `llm-rubric`", _about("(?:not-)?llm-rubric", _without_value)),
    Named("no `value`, where the type needs one", _about(".*", _without_value)),
    Named("a broken pattern", _about("(?:not-)?regex", lambda one, pair: one["value"] == "(" and _ungraded(pair))),
    Named("`(?i)` in a pattern", _about("(?:not-)?regex", lambda one, _: "(?i)" in one["value"])),
    Named(
        "one line of JavaScript that begins with `return`",
        _about("(?:not-)?javascript", lambda one, _: one["value"].startswith("return") and "\n" not in one["value"]),
    ),
    Named(
        "a score of JavaScript outside of 0..1",
        _about("(?:not-)?javascript", lambda _, pair: not 0 <= (pair.theirs.score or 0) <= 1),
    ),
    Named(
        "`{pass: ...}` of JavaScript without a score or a reason",
        _about("(?:not-)?javascript", lambda one, _: "pass:" in one["value"]),
    ),
    Named(
        "`context.provider`, `context.trace`, `context.test` but its `vars`, in JavaScript",
        _about("javascript", lambda one, pair: "context." in one["value"] and _ungraded(pair)),
    ),
    Named(
        "a limit on what the run took (`latency`, `cost`, tokens) where that is not known",
        _about("(?:not-)?(?:latency|cost)", lambda _, pair: _ungraded(pair)),
    ),
    Named(
        "`finish-reason` where it is not known; `length` of a live target",
        _about("(?:not-)?finish-reason", lambda _, pair: _ungraded(pair)),
    ),
    Named("`is-valid-*-call` of a provider without tools", _about("is-valid-.*", lambda _, pair: _ungraded(pair))),
    Named(
        "other errors in one test: a value that its type cannot have, a weight below 0",
        lambda pair: (
            _ungraded(pair)
            and isinstance(pair.data, Grading)
            and (pair.data.assertions[0].get("value") == "zzz" or pair.data.more.get("threshold") == 1.5)
        ),
    ),
    Named(
        "a judge that fails, or whose reply cannot be read",
        lambda pair: _ungraded(pair) and "flaw" in pair.what and "judge" in pair.ours.why,
    ),
    Named(
        "`not-factuality`, `not-model-graded-factuality`, `not-model-graded-closedqa`, `not-is-valid-*-call`",
        _about(_NO_EFFECT),
    ),
    Named("`similar` with a list", _about("similar.*", lambda one, _: isinstance(one["value"], list))),
    Named("`similar:dot`", _about("similar:dot", lambda _, pair: (pair.theirs.score or 0) > 1)),
    Named("`is-refusal`", _about("(?:not-)?is-refusal")),
    Named("`trajectory:*`, `skill-used`", _about("(?:not-)?(?:trajectory:.*|skill-used)")),
    Named("`agent-rubric`", _about("(?:not-)?agent-rubric")),
    Named(
        "all weights 0",
        lambda pair: _ungraded(pair) and all(one.get("weight") == 0 for one in pair.data.assertions),
    ),
    Named(
        "an `assert-set` of weight 0 that fails",
        _about("assert-set", lambda one, pair: one.get("weight") == 0 and pair.theirs.passed is False),
    ),
    Named(
        "`extensions`",
        lambda pair: isinstance(pair.data, str) and re.search("^extensions:", pair.data, re.MULTILINE) is not None,
    ),
    Named("an empty `assert-set`", _about("assert-set", lambda one, pair: not one["assert"] and _ungraded(pair))),
)
