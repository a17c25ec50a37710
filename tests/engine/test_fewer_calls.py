"""The table of what each way to fewer calls saves, in small: no way changes a verdict."""

from __future__ import annotations

import pytest

from tests.benchmarks.fewer import WAYS, counted


@pytest.mark.parametrize("way", WAYS)
def test_no_way_to_fewer_calls_changes_a_verdict(way: str) -> None:
    """Early stops, choices of one request, cascades and trees asked ahead, with replies that cannot be read."""
    row = counted(way, 20)
    assert (row.cases, row.others) == (20, 0)
    assert (row.fewer_calls <= row.calls) == (way != "a tree asked ahead")
