"""Each block of mcptest's page on rubric scoring, from the file to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rubric import Judge, load_suite
from tests.places import SHARED
from tests.rows import each_row

FILES = sorted((SHARED / "corpus/mcptest").glob("*.yml"))
pytestmark = pytest.mark.skipif(not FILES, reason="the blocks of the page are not beside the project")


def score(messages: list[dict[str, str]]) -> str:
    """Give every criterion a good score, and a quotation that no candidate has."""
    return json.dumps({"score": 0.9, "reason": "so", "evidence": "", "pass": True})


@each_row("path", FILES, ids=lambda path: path.stem)
def test_a_block_runs_to_its_report(path: Path) -> None:
    """Each eval has a row with a verdict, or is deferred or ungraded with a reason; nothing passes without a judge."""
    suite = load_suite(path)
    report = suite.run(Judge(score, identity="page"))
    assert [row.id for row in report] == [case.id for case in suite]
    for row in report:
        assert row.status in ("passed", "failed", "deferred", "ungraded")
        assert row.reason or row.status == "passed"
        assert row.score is not None or row.status in ("deferred", "ungraded")
    for case, row in zip(suite, report, strict=True):
        if case.output is None:
            assert row.status == "deferred"
