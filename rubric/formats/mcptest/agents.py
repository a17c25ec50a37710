"""
mcptest's `agents:` tests: a `prompt`, `servers`, `runs`, and `expect`, a list of a `target` in the run and a `matcher`.

The matchers that judge are read like those of any other block. Those that code decides, and the blocks that score a
trace by rules of mcptest's own (`BLOCKS`), are not carried out: their cases are ungraded, and name what checks the
calls of a run in our own format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rubric import Criterion
from rubric.embed import Cursor, shorten
from rubric.values import Unsupported

BLOCKS = (
    "trajectory", "trajectory_axes", "golden_path", "equal_function_sets", "distractors", "tool_selection",
    "orchestration", "recovery", "faults",
)  # fmt: skip
"""The blocks of a test that score a run, or change it."""

_READ = ("name", "prompt", "server", "servers", "runs", "expect")
_TARGETS = ("model", "models", "max_turns")
_KNOWN = (*_READ, *_TARGETS, *BLOCKS, "eval", "discovery")

_CURE = "write it in our own format, where trajectory, tool-call-f1 and tool-trajectory check the calls of a run"


def read_expectations(test: Cursor, judged: Iterable[str]) -> list[Criterion]:
    """Return an unsupported criterion for each matcher of *test* but those *judged*, and for each of its blocks."""
    if not isinstance(test.value, dict):
        return []
    for key, part in test.items():
        if key not in _KNOWN:
            part.is_slip(_KNOWN)
    listed = test["expect"].value
    items = [*test["expect"]] if isinstance(listed, list) else [test["expect"]] if isinstance(listed, dict) else []
    lacks = [lack for item in items for lack in _matchers(item, {*judged, "eval"})]
    lacks += [(key, f"{key} of an agents test") for key in BLOCKS if key in test]
    named = [(id_ if id_ in BLOCKS else f"{id_} {number}", text) for number, (id_, text) in enumerate(lacks, 1)]
    return [Criterion(text, id=id_, answer=Unsupported(text, cure=_CURE), required=True) for id_, text in named]


def _matchers(at: Cursor, judged: set[str]) -> Iterator[tuple[str, str]]:
    """Yield the id and the text of each matcher of an expectation that code decides."""
    if isinstance(at.value, dict) and isinstance(at["matcher"].value, dict):
        for key in (key for key in at["matcher"].value if key not in judged):
            yield "expect", f"the matcher {shorten(str(key), 60)} of {shorten(str(at['target'].value), 60)}"


def unread(block: Cursor) -> list[str]:
    """Return the keys of the tests of *block* that nothing here reads: those of the target first."""
    keys = dict.fromkeys(key for test in block if isinstance(test.value, dict) for key in test.value)
    rest = [str(key) for key in keys if key not in _KNOWN]
    return [*(key for key in _TARGETS if key in keys), *rest]
