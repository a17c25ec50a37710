"""A small storm: what each request comes to is chance's choice, and no result is lost, doubled or made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric.store.audit import stats, verify
from tests.benchmarks.storm import QUESTIONS, Came, Storm, failings, graded, judge_at


@pytest.mark.parametrize(("via", "candidates"), [("litellm", 25), ("http", 60)])
def test_a_storm_loses_nothing_and_makes_nothing_up(
    tmp_path: Path, via: str, candidates: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each request fails with p = 0.3: what is graded was said, what is not says why, and the next day asks for that."""
    file = tmp_path / "replies.db"
    with Storm(seed=4, slow=False) as server:
        judge = judge_at(server.at("ok").openai, via, timeout=60)
        results = list(graded(judge, candidates, file))
        assert failings(server, results, candidates, calls := server.requests) == []
        assert server.faults.total() > 20
        assert 0 < Came(results).graded < candidates
        missing, server.calm = candidates * len(QUESTIONS) - len(server.told), True
        results = list(graded(judge, candidates, file))
        assert failings(server, results, candidates, server.requests - calls) == []
    assert (server.requests - calls, Came(results).graded) == (missing, candidates)
    assert (verify(file), stats(file).states["done"]) == ([], candidates * len(QUESTIONS))
    assert capfd.readouterr() == ("", "")
