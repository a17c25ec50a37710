"""Runs that are killed at random moments: what is lost, what is paid for twice, and what they come to."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.benchmarks.kills import IN_FLIGHT, Killed, failings, killed_run

ITEMS, KILLS = 160, 2


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """Return what a run without kills comes to."""
    return killed_run("retry", ITEMS, 0, tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize(
    ("sign", "in_doubt"), [(signal.SIGKILL, "hold"), (signal.SIGKILL, "retry"), (signal.SIGINT, "hold")]
)
def test_a_stopped_run_loses_nothing_and_pays_no_more_than_it_says(
    whole: Killed, tmp_path: Path, sign: signal.Signals, in_doubt: str
) -> None:
    """With 32 in flight: held, nothing is paid for twice; sent again, at most what was in flight."""
    killed = killed_run(in_doubt, ITEMS, KILLS, tmp_path, longest=0.08, sign=sign)
    assert failings(whole, killed, in_doubt) == []
    assert sum(killed.states.values()) - killed.states.get("resent", 0) == 2 * ITEMS
    assert killed.states.get("resent", 0) + killed.states.get("sent", 0) <= IN_FLIGHT * KILLS
