"""Each block of mcptest's page on rubric scoring, from the file to the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from rubric import Judge, load_suite, loads_suite
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


ODD = {
    "deeper lists": "evals:\n    - name: a\n      server: s\n      prompt: p\n      response: r\n      rubric:\n          criteria:\n"
    "          - name: c\n            description: d\n",
    "flow": "evals: [{name: a, server: s, prompt: p, response: r, rubric: {criteria: [{name: c, description: d}]}}]\n",
    "BOM and CRLF": "\ufeffevals:\r\n- name: a\r\n  server: s\r\n  prompt: p\r\n  response: r\r\n  rubric: {criteria: [{name: c, "
    "description: d}]}\r\n",
    "merged keys": "x: &x {server: s, prompt: p, response: r}\nevals:\n- <<: *x\n  name: a\n  rubric: {criteria: [{name: c, "
    "description: d}]}\n",
}  # fmt: skip


@each_row("name", [*ODD])
def test_other_layouts_of_a_file_mean_the_same(name: str) -> None:
    """Indentation, flow style, a byte order mark and merged keys change no case."""
    (case,), (plain,) = loads_suite(ODD[name], "mcptest"), loads_suite(ODD["flow"], "mcptest")
    assert evolve(case, place=None) == evolve(plain, place=None)
