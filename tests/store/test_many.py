"""`grade_many` on a store whose file gives trouble: what has been graded is handed out, and nothing is paid unkept."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from rubric import Grade, Judge, Ungraded
from rubric.engine.bulk import grade_many
from rubric.errors import StoreError
from rubric.store.audit import stats, verify
from rubric.store.database import InDoubt
from rubric.store.store import Store
from tests.benchmarks.kills import CountingServer, judge_at
from tests.places import ROOT
from tests.storing import POLITE, Counted, is_odd, scores

IN_FLIGHT = 8


def texts(n: int) -> list[str]:
    """Return so many candidates, long enough to fill a disk."""
    return [f"{f'Text number {number}. ' * 200}{number}." for number in range(n)]


FULL = """
import resource, sys
from rubric.errors import StoreError
from rubric import Store
from rubric.engine.bulk import grade_many
from tests.benchmarks.kills import judge_at
from tests.storing import POLITE
from tests.store.test_many import IN_FLIGHT, texts

_, address, file, in_doubt = sys.argv
store, handed = Store(file, in_doubt=in_doubt), 0
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
try:
    for result in grade_many(texts(150), POLITE, judge_at(address), concurrency=IN_FLIGHT, store=store):
        handed += 1
except StoreError as problem:
    print(handed, problem)
"""


@pytest.mark.parametrize("in_doubt", get_args(InDoubt))
def test_a_full_disk_ends_the_stream_and_the_next_run_goes_on(file: Path, in_doubt: InDoubt) -> None:
    """What was graded is handed out, then the error comes; with room again, all but what was in flight is paid once."""
    server = CountingServer()
    try:
        command = [sys.executable, "-c", FULL, server.address, str(file), in_doubt]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        handed, _, told = done.stdout.partition(" ")
        assert told.startswith(f"{file}: the disk"), done.stderr
        assert (0 < int(handed) < 150, server.paid.total() < 150, verify(file)) == (True, True, [])
        with Store(file, in_doubt=in_doubt) as store:
            results = list(grade_many(texts(150), POLITE, judge_at(server.address), store=store))
    finally:
        server.close()
    held = [result for result in results if isinstance(result, Ungraded)]
    assert all(failure.kind == "in_doubt" for result in held for failure in result.failures)
    twice = server.paid.total() - len(server.paid)
    assert (
        (len(held), twice <= IN_FLIGHT) == (0, True)
        if in_doubt == "retry"
        else (len(held) <= IN_FLIGHT, twice) == (True, 0)
    )
    assert (len(results), verify(file)) == (150, [])


def test_a_file_that_stays_locked_ends_the_stream_before_anything_is_sent(file: Path) -> None:
    """Another process keeps even readers out; the stream says so, nothing was paid, and the next run goes on."""
    model = Counted(is_odd)
    with Store(file, patience=0.1) as store:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StoreError, match="another process keeps it locked"):
            list(grade_many(texts(5), POLITE, Judge(model), store=store))
        assert not model.asks
        other.execute("ROLLBACK")
        other.close()
        results = list(grade_many(texts(5), POLITE, Judge(model), store=store))
    assert scores(results) == [0.0, 1.0, 0.0, 1.0, 0.0]
    assert (len(model.asks), dict(stats(file).states)) == (5, {"done": 5})


def test_a_lock_that_is_let_go_in_time_is_waited_for(file: Path) -> None:
    """While another process writes, the stream stands still, and nothing fails."""
    with Store(file, patience=30) as store:
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        stream = grade_many(texts(5), POLITE, Judge(Counted(is_odd)), store=store, progress=lambda _: None)
        other.execute("ROLLBACK")
        other.close()
        assert all(isinstance(result, Grade) for result in stream)


def test_a_place_where_no_store_can_be_is_refused_at_once(tmp_path: Path) -> None:
    """A path below a file: the call says so, and no candidate is taken."""
    (tmp_path / "notes.txt").touch()
    with pytest.raises(StoreError, match="does not exist"):
        grade_many(texts(1), POLITE, Judge(Counted()), store=tmp_path / "notes.txt" / "replies.db")
