"""Runs that are killed at random moments: what is lost, what is paid for twice, and what they come to."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rubric.store import Store
from tests.benchmarks.kills import IN_FLIGHT, CountingServer, Killed, failings, grade_all, killed_run

ITEMS, KILLS = 400, 5


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Return what a run without kills comes to."""
    server, folder = CountingServer(), tmp_path_factory.mktemp("whole")
    with Store(folder / "whole.db") as store:
        asyncio.run(grade_all(server.address, store, ITEMS, folder / "whole.jsonl"))
    server.close()
    return Killed(0, (folder / "whole.jsonl").read_text(encoding="utf-8").splitlines(), server.paid, {}, [])


@pytest.mark.parametrize("in_doubt", ["hold", "retry"])
def test_a_killed_run_loses_nothing_and_pays_no_more_than_it_says(whole: Killed, tmp_path: Path, in_doubt: str) -> None:
    """SIGKILL with 32 in flight: held, nothing is paid for twice; sent again, at most what was in flight."""
    killed = killed_run(in_doubt, ITEMS, KILLS, tmp_path, longest=0.1)
    assert failings(whole, killed, in_doubt) == []
    assert sum(killed.states.values()) - killed.states.get("resent", 0) == 2 * ITEMS
    assert killed.states.get("resent", 0) + killed.states.get("sent", 0) <= IN_FLIGHT * KILLS
