"""
Stop a run again and again, and count at the server what was paid for.

    python -m tests.benchmarks.kills --runs 10 --kills 20 [--signals SIGKILL SIGINT SIGTERM]

A child grades texts by `grade_many` with 32 requests in flight and a store; the parent stops it by a signal at a random
moment, starts it again, and so on; the last child ends by itself. The server counts a request as paid for when it has
arrived. What must hold: nothing is lost; with `hold` nothing is paid for twice; with `retry` at most what was in flight,
a kill; and what the store then replays is byte for byte what the store of a run without kills does.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import frozen

from rubric import Judge, Rubric, Ungraded
from rubric.engine.bulk import grade_many
from rubric.store.audit import stats, verify
from rubric.store.store import Store
from tests.servers import nonce_of

IN_FLIGHT = 32
ROOT = Path(__file__).parents[2]
INTERRUPTED = 130
"""What a child ends with that was interrupted, as shells have it."""

_BUSY = (0.005, 0.06)
"""Seconds that the server takes for an answer."""

POLITE = Rubric("polite").expects("Is polite").scores("Is warm", id="warm")


class CountingServer:
    """An OpenAI-compatible server in a thread: it counts what arrives, and answers the same to the same."""

    def __init__(self) -> None:
        self.paid: Counter[str] = Counter()
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        assert self._started.wait(10)

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        listening = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
        self.port = listening.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                assert length is not None
                body = await reader.readexactly(int(length[1]))
                self.paid[hashlib.sha256(body).hexdigest()] += 1
                await asyncio.sleep(random.uniform(*_BUSY))
                writer.write(_answer(json.loads(body)))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


def _answer(request: dict[str, Any]) -> bytes:
    prompt = request["messages"][-1]["content"]
    chance = hashlib.sha256(prompt.encode()).digest()[0]
    value: object = chance / 255 if "warm" in prompt else chance % 2 == 0
    key = "score" if "warm" in prompt else "verdict"
    text = json.dumps({"reason": f"because of {chance}", key: value, "nonce": nonce_of(request)})
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": len(text) // 4, "total_tokens": 0}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = json.dumps({"id": "1", "model": request["model"], "choices": choices, "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def judge_at(address: str) -> Judge:
    """Return the judge that is asked at *address*."""
    return Judge("openai/counted", via="http", retries=0, params={"api_base": address, "api_key": "none-at-all"})


def texts(items: int) -> list[str]:
    """Return so many candidates."""
    return [f"Text number {number}: good morning, and thank you for your patience." for number in range(items)]


def grade_all(address: str, path: Path, in_doubt: str, items: int, out: Path) -> None:
    """
    Grade *items* texts with so many requests in flight, and write what came of them, in order.

    What was graded is written as the store replays it, where nothing is paid for: so it does not tell who has paid.
    """
    judge, doubts = judge_at(address), dict[int | None, list[str]]()
    with Store(path, in_doubt=in_doubt) as store:  # type: ignore[arg-type]
        for result in grade_many(texts(items), POLITE, judge, concurrency=IN_FLIGHT, store=store):
            if isinstance(result, Ungraded):
                doubts[result.index] = sorted({failure.kind for failure in result.failures})
    with Store(path, mode="replay") as store:
        replayed = grade_many(texts(items), POLITE, judge, store=store).collect().to_jsonl().splitlines()
    told = (json.dumps({"ungraded": doubts[n]}) if n in doubts else line for n, line in enumerate(replayed))
    out.write_text("".join(f"{line}\n" for line in told), encoding="utf-8")


@frozen
class Killed:
    """What came of a run that was killed."""

    kills: int
    lines: list[str]
    paid: Counter[str]
    states: dict[str, int]
    problems: list[str]

    @property
    def paid_twice(self) -> int:
        """How many requests arrived more than once, each time counted."""
        return sum(self.paid.values()) - len(self.paid)

    @property
    def held(self) -> int:
        """How many candidates were not graded because a request of theirs is in doubt."""
        return sum('"ungraded": ["in_doubt"]' in line for line in self.lines)


def start(address: str, path: Path, in_doubt: str, items: int, out: Path) -> subprocess.Popen[bytes]:
    """Start a child that grades."""
    command = [sys.executable, "-m", "tests.benchmarks.kills", "--child", address, str(path), in_doubt, str(items)]
    return subprocess.Popen([*command, str(out)], cwd=ROOT)


def killed_run(
    in_doubt: str, items: int, kills: int, folder: Path, longest: float = 0.25, *, sign: signal.Signals = signal.SIGKILL
) -> Killed:
    """Grade *items* texts, stopped *kills* times on the way, each time up to *longest* seconds after its first call."""
    server = CountingServer()
    path, out = folder / f"{in_doubt}-{kills}.db", folder / f"{in_doubt}-{kills}.jsonl"
    done = 0
    try:
        while done < kills:
            before = server.paid.total()
            child = start(server.address, path, in_doubt, items, out)
            while server.paid.total() == before and child.poll() is None:
                time.sleep(0.002)
            time.sleep(random.uniform(0, longest))
            if child.poll() is not None:
                raise RuntimeError(f"the child ended after {done} kills; give it more items")
            asked = len(server.paid)
            child.send_signal(sign)
            if (code := child.wait()) != (-sign if sign == signal.SIGKILL else INTERRUPTED):
                figures = f"{asked} of {2 * items} requests before, {len(server.paid)} after"
                raise RuntimeError(f"a child that got {sign.name} ended with {code}: {figures}")
            done += 1
        if start(server.address, path, in_doubt, items, out).wait() != 0:
            raise RuntimeError("the last child failed")
    finally:
        server.close()
    states = {str(name): int(number) for name, number in stats(path).states.items()}
    lines = out.read_text(encoding="utf-8").splitlines()
    return Killed(kills, lines, server.paid, states, [str(problem) for problem in verify(path)])


def failings(whole: Killed, killed: Killed, in_doubt: str) -> list[str]:
    """Return what should hold of *killed*, by comparison with a run that was not, and does not."""
    found = [*killed.problems]
    if len(killed.lines) != len(whole.lines):
        found.append(f"{len(whole.lines) - len(killed.lines)} results are lost")
    pairs = list(zip(whole.lines, killed.lines, strict=False))
    graded = [(one, other) for one, other in pairs if '"ungraded"' not in other]
    if any(one != other for one, other in graded):
        found.append("a result differs from that of a run without kills")
    if in_doubt == "hold" and killed.paid_twice:
        found.append(f"{killed.paid_twice} requests were paid for twice")
    if in_doubt == "hold" and killed.held + len(graded) != len(pairs):
        found.append("something is ungraded for another reason than that it is held")
    if in_doubt == "retry" and (len(graded) != len(pairs) or killed.paid_twice > IN_FLIGHT * killed.kills):
        found.append(f"{len(pairs) - len(graded)} are ungraded, {killed.paid_twice} requests were paid for twice")
    return found


def kill_often(in_doubt: str, whole: Killed, runs: int, kills: int, folder: Path, *, sign: signal.Signals) -> list[str]:
    """Stop *runs* runs *kills* times each, say what came of them, and return what should hold and does not."""
    items, wrong = len(whole.lines), list[str]()
    twice = held = results = most = 0
    for number in range(runs):
        place = folder / f"{sign.name}-{in_doubt}-{number}"
        place.mkdir()
        killed = killed_run(in_doubt, items, kills, place, sign=sign)
        wrong += failings(whole, killed, in_doubt)
        twice, held, results = twice + killed.paid_twice, held + killed.held, results + len(killed.lines)
        most = max(most, killed.paid_twice)
    figures = f"{runs * kills} | {results:,} of {runs * items:,} | {held:,} | {twice:,} | {twice / (runs * kills):.1f}"
    wrongs = "; ".join(wrong) or "none"
    print(f"| {sign.name} | {in_doubt} | {figures} | {most} of {IN_FLIGHT * kills} | {wrongs} |", flush=True)
    return wrong


def main() -> None:
    """Run the child, or the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--child", nargs=5)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--kills", type=int, default=20, help="of each run")
    parser.add_argument("--signals", nargs="+", choices=("SIGKILL", "SIGINT", "SIGTERM"), default=["SIGKILL"])
    parser.add_argument("--in-doubt", nargs="+", choices=("hold", "retry"), default=["hold", "retry"])
    given = parser.parse_args()
    if given.child:
        address, path, in_doubt, items, out = given.child
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell has in the background ignores it
        try:
            grade_all(address, Path(path), in_doubt, int(items), Path(out))
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)
        return
    with tempfile.TemporaryDirectory() as name:
        whole = killed_run("retry", 100 * given.kills, 0, Path(name))
        print(f"{len(whole.lines):,} candidates a run, {len(whole.paid):,} requests, {IN_FLIGHT} in flight\n")
        print("| signal | in doubt | sent | results | held | paid twice | a signal | most in a run | wrong |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        wrong = [
            problem
            for sign in given.signals
            for policy in given.in_doubt
            for problem in kill_often(policy, whole, given.runs, given.kills, Path(name), sign=signal.Signals[sign])
        ]
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
