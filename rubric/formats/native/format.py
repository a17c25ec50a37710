"""Our own format of suites: how a file is recognised, read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from rubric.formats.recognition import LIKELY, STRONG, SURE, Seen, finds, has, maps
from rubric.formats.registry import Drafts, Format
from rubric.values.rubrics import Rubric


def _draft(rubric: Rubric) -> Any:
    from rubric.formats.native.rubric import as_data  # noqa: PLC0415 - the names of formats need no writers

    return as_data(evolve(rubric, name=""))


def _rubrics(seen: Seen) -> Iterator[str]:
    """Yield `rubric` for a suite whose cases are under another key, which its reader names."""
    yield from ("rubric" for one in (seen.keys, *maps(seen.tests)) if "suite" in seen.keys and "rubric" in one)


def _cases(seen: Seen) -> Iterator[str]:
    """Yield the key of the cases of a suite, also where it is a word of systems that call no file a suite."""
    yield from (key for key in ("cases", "examples", "samples", "data", "dataset") if {key, "suite"} <= {*seen.keys})


def _rubric_tests(seen: Seen) -> Iterator[str]:
    """Yield `tests` for a rubric whose tests have replies, as those of no other system have, or our verdicts."""
    told = {"passes", "fails", "expects"}
    yield from ("tests" for one in maps(seen.tests) if ("reply" in one or told & {*one}) and "criteria" in seen.keys)


def _name(seen: Seen) -> Iterator[str]:
    """Yield `rubric` for a rubric by its name whose criteria are under another key, which its reader names."""
    others = {"prompts", "providers", "targets", "tests", "evals", "evalcases", "eval_cases", "cases", "defaultTest"}
    yield from ("rubric" for name in [seen.keys.get("rubric")] if isinstance(name, str) and not others & {*seen.keys})


def _scores(seen: Seen) -> Iterator[str]:
    """Yield `rubrics` for what each score means, as ragas has it; its reader says how that is written."""
    held = seen.keys.get("rubrics")
    is_scale = isinstance(held, Mapping) and all(re.fullmatch(r"score_?\d+\w*", str(key)) for key in held)
    yield from ["rubrics"] * (is_scale and bool(held))


_OWN = 3 * SURE  # no other system has such a name, whatever else stands beside it

NATIVE = Format(
    "native",
    "rubric.formats.native.suite:read",
    "rubric.formats.native.suite:write_suite",
    (
        (STRONG, has("cases")),
        (SURE, finds("it has the keys 'suite' and {!r}", _rubrics)),
        (_OWN, finds("it has the keys 'suite' and {!r}", _cases)),
        (SURE, finds("it has the keys 'criteria' and {!r}", _rubric_tests)),
        (_OWN, finds("it has the key {!r}, and no tests", _name)),
        (SURE, finds("it has the key {!r} with scores", _scores)),
        (LIKELY, has("suite")),
        (LIKELY, has("criteria", kind=list)),
        (LIKELY, has("text", kind=str)),
        (LIKELY, has("tree", kind=Mapping)),
    ),
    own=True,
    drafts=Drafts("rubric", _draft),
)
