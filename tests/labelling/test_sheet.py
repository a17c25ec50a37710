"""The file of labels when several processes fill it at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rubric.labelling.drawing import Draw
from rubric.labelling.sheet import Answer, Sheet, lock

NAMES = [f"c{n}" for n in range(60)]
ADDING = """
import sys
from pathlib import Path
from rubric.labelling.drawing import Draw
from rubric.labelling.sheet import Answer, Sheet

sheet = Sheet(Path(sys.argv[1]), Draw.of([f"c{n}" for n in range(60)]))
for n in range(60):
    sheet.add([Answer(f"c{n}", sys.argv[2], "clear", "yes")])
    print(n, flush=True)
"""
HOLDING = """
import sys, time
from pathlib import Path
from rubric.labelling.sheet import lock

with lock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def started(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


def test_three_processes_on_one_file_lose_no_answer(tmp_path: Path) -> None:
    """What was acknowledged to one is still there after all have ended."""
    path = tmp_path / "labels.csv"
    processes = [started(ADDING, str(path), rater) for rater in ("ann", "bob", "eve")]
    for process in processes:
        process.communicate(timeout=120)
    assert [process.returncode for process in processes] == [0, 0, 0]
    found = {(each.name, each.rater) for each in Sheet(path, Draw.of(NAMES)).read()}
    assert found == {(name, rater) for name in NAMES for rater in ("ann", "bob", "eve")}
    assert [each.name for each in tmp_path.iterdir()] == ["labels.csv"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_a_process_that_is_killed_leaves_no_lock(tmp_path: Path) -> None:
    """The system gives up the lock with the process, though its file stays."""
    path = tmp_path / "labels.csv"
    process = started(HOLDING, str(path))
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    start = time.monotonic()
    assert Sheet(path, Draw.of(["a"])).add([Answer("a", "ann", "clear", "yes")])
    assert time.monotonic() - start < 5


def test_a_second_process_waits_for_the_first(tmp_path: Path) -> None:
    """It goes on as soon as the lock is given up."""
    path = tmp_path / "labels.csv"
    with lock(path):
        process = started(ADDING, str(path), "ann")
        time.sleep(1)
        assert process.poll() is None
        assert not path.exists()
    said, _ = process.communicate(timeout=60)
    assert len(said.splitlines()) == 60
