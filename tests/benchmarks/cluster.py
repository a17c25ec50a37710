"""
Grade on a Dask cluster of two processes, kill one in the middle, and count at the server what was paid for.

    python -m tests.benchmarks.cluster --candidates 10000

What must hold: each candidate has a result; with `hold` nothing is paid for twice, and what was in flight is told, and
graded by a second run with `retry`; no window of time holds more requests than the limit, by the server's clock.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen
from distributed import Client, LocalCluster

from rubric import Grades, Judge, Limits, Rubric, Ungraded
from rubric.dask.cluster import grade_on_cluster
from tests.benchmarks import kills
from tests.benchmarks.kills import CountingServer

POLITE = Rubric("polite").expects("Is polite")


class Arrivals(Counter[str]):
    """Counts requests, and remembers when each arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def __setitem__(self, key: str, number: int) -> None:
        self.times.append(time.monotonic())
        super().__setitem__(key, number)

    @property
    def paid_twice(self) -> int:
        """How many requests arrived again."""
        return sum(self.values()) - len(self)

    def most_within(self, seconds: float) -> int:
        """Return the most requests that arrived in any *seconds*."""
        times, first, most = sorted(self.times), 0, 0
        for last, at in enumerate(times):
            while at - times[first] >= seconds:
                first += 1
            most = max(most, last - first + 1)
        return most


@frozen
class Outcome:
    """What came of a run in which a worker was killed, and of the one after it."""

    grades: Grades
    again: Grades
    paid: Arrivals
    paid_twice: int
    seconds: float

    @property
    def in_doubt(self) -> int:
        """How many candidates were not graded by the first run because a request of theirs was in flight."""
        return sum(isinstance(r, Ungraded) and {f.kind for f in r.failures} == {"in_doubt"} for r in self.grades)


@contextmanager
def cluster_of(workers: int) -> Iterator[Client]:
    """Have a cluster of processes on this machine."""
    given: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0", "host": "127.0.0.1"}
    with LocalCluster(n_workers=workers, silence_logs=50, **given) as cluster, Client(cluster) as client:
        yield client


@contextmanager
def server_of(busy: tuple[float, float]) -> Iterator[tuple[str, Arrivals]]:
    """Have a server that takes so many seconds for an answer, and remembers what arrived."""
    before, kills._BUSY = kills._BUSY, busy
    server, paid = CountingServer(), Arrivals()
    server.paid = paid
    try:
        yield server.address, paid
    finally:
        server.close()
        kills._BUSY = before


def killed_run(
    client: Client, served: tuple[str, Arrivals], candidates: int, limits: Limits | None, folder: Path, **given: Any
) -> Outcome:
    """Grade, kill one worker when a third has been paid for, and grade once more with `retry`."""
    address, paid = served
    judge = Judge("openai/counted", via="http", retries=0, params={"api_base": address, "api_key": "none-at-all"})
    texts = [f"Text number {number}: good morning." for number in range(candidates)]
    pids = [*client.run(os.getpid).values()]

    def kill() -> None:
        while len(paid) < candidates // 3:
            time.sleep(0.005)
        os.kill(pids[0], signal.SIGKILL)

    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    given |= {"store_folder": folder, "limits": limits}
    began = time.monotonic()
    grades = grade_on_cluster(client, texts, POLITE, judge, in_doubt="hold", **given)
    seconds = time.monotonic() - began
    killing.join()
    paid_twice = paid.paid_twice
    again = grade_on_cluster(client, texts, POLITE, judge, in_doubt="retry", **given)
    return Outcome(grades, again, paid, paid_twice, seconds)


def failings(outcome: Outcome, candidates: int, most: int, window: float) -> list[str]:
    """Return what should hold of *outcome*, and does not."""
    found = []
    if [result.index for result in outcome.grades] != list(range(candidates)):
        found.append("results are lost, or there are too many")
    if outcome.paid_twice:
        found.append(f"{outcome.paid_twice} requests were paid for twice")
    if len(outcome.grades.ungraded) != outcome.in_doubt:
        found.append("something is ungraded for another reason than that it is in doubt")
    if outcome.again.ungraded or len(outcome.again) != candidates:
        found.append("the second run has not graded all")
    if outcome.paid.paid_twice > outcome.in_doubt:
        found.append("the second run has paid for more than what was in doubt")
    if outcome.paid.most_within(window) > most:
        found.append(f"{outcome.paid.most_within(window)} requests in {window:g} seconds, {most} are the limit")
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--candidates", type=int, default=10_000)
    parser.add_argument("--most", type=int, default=400, help="requests a second")
    given = parser.parse_args()
    limits = Limits(concurrency=64, rpm=given.most, window=1.0)
    with (
        tempfile.TemporaryDirectory() as folder,
        server_of((0.0, 0.0)) as served,
        cluster_of(2) as client,
    ):
        outcome = killed_run(client, served, given.candidates, limits, Path(folder))
    wrong = failings(outcome, given.candidates, given.most, 1.0)
    print(
        "| candidates | results | in doubt | paid twice (hold) | graded by the second run | paid twice (retry) ", end=""
    )
    print("| most requests a second | limit | seconds | grades/s |\n|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    row = (
        given.candidates,
        len(outcome.grades),
        outcome.in_doubt,
        outcome.paid_twice,
        len(outcome.again) - len(outcome.again.ungraded),
        outcome.paid.paid_twice,
        outcome.paid.most_within(1.0),
        given.most,
        f"{outcome.seconds:.1f}",
        f"{given.candidates / outcome.seconds:.0f}",
    )
    print(f"| {' | '.join(map(str, row))} |\n\n{'; '.join(wrong) or 'as it should be'}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
