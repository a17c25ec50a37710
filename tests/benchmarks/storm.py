"""
Grade through a storm: each request fails with p = 0.3, in a way that chance picks from all ways there are.

    python -m tests.benchmarks.storm [--candidates 5000] [--via litellm http]

A child grades the candidates by four criteria with a store; the server, in the parent, knows the right verdict to each
question and gives it in whole replies alone: whatever fails and carries a verdict carries the wrong one. What must hold:
each result is a grade, or an ungraded that says why by its kind; none is lost and none comes twice; no score comes from
a call that failed; each request is counted; nothing stands on standard output; and on a calm day after it, what is
missing is asked for, and nothing else.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from attrs import field, frozen

from rubric import Grade, Judge, Rubric, Ungraded
from rubric.engine.bulk import grade_many
from rubric.results import Scored, Unjudged
from rubric.store.audit import stats, verify
from rubric.store.store import Store
from rubric.values.requests import FailureKind
from tests.servers import BEHAVIOURS, BODIES, Server, _send, nonce_of, prompt_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from tests.servers import Request

ROOT = Path(__file__).parents[2]
CHANCE = 0.3
CONCURRENCY = 64
TIMEOUT = 6.0
WAYS = ("litellm", "http")

WHOLE = frozenset({"ok", "think", "finish-empty", "finish-weird", "finish-null", "no-usage", "usage-null"})
"""Behaviours with which a reply is whole."""

SLOW = frozenset({"hang", "trickle"})
SAYINGS = ("prose", "another nonce", "both answers", "no verdict")
"""Replies that are whole, and no answer."""

FAULTS = tuple(sorted(set(BEHAVIOURS) - WHOLE - {"surrogate"})) + SAYINGS
QUESTIONS = ("Is it red?", "Is it green?", "Is it blue?", "How warm is it?")
COLOURS = Rubric("colours")
for _text in QUESTIONS[:3]:
    COLOURS = COLOURS.expects(_text, id=_text)
COLOURS = COLOURS.scores(QUESTIONS[3], id=QUESTIONS[3])

Question = tuple[int, str]


def truth(question: Question) -> bool | float:
    """Return the right verdict."""
    number, text = question
    chance = hashlib.sha256(f"{number} {text}".encode()).digest()[0]
    return chance / 255 if text == QUESTIONS[3] else chance % 2 == 0


def text_of(number: int) -> str:
    """Return the candidate of that *number*."""
    return f"Text number {number}: good morning, and thank you for your patience."


class Storm(Server):
    """
    A server at which each request fares as chance says.

    Args:
        seed: Of chance.
        slow: Whether requests may hang until the client has had enough.
    """

    def __init__(self, seed: int, *, slow: bool = True) -> None:
        super().__init__()
        self.requests = 0
        self.faults: Counter[str] = Counter()
        self.told: Counter[Question] = Counter()
        self.calm = False
        self._chance = random.Random(seed)
        self._kinds = [kind for kind in FAULTS if slow or kind not in SLOW]

    def fare(self) -> str:
        """Return how the next request fares."""
        self.requests += 1
        if self.calm or self._chance.random() >= CHANCE:
            return "ok"
        kind = self._chance.choice(self._kinds)
        self.faults[kind] += 1
        return kind

    async def _serve(self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kind = self.fare()
        if kind in BEHAVIOURS and kind not in BODIES:
            endpoint = self.at(kind)
            path = endpoint.openai.removeprefix(f"http://127.0.0.1:{self.port}")
            await super()._serve(type(request)(path, {}, {}), reader, writer)
            return
        await _send(writer, 200, self._body(kind, request.body))

    def _body(self, kind: str, request: dict[str, Any]) -> bytes:
        question = asked(request)
        if kind == "ok":
            self.told[question] += 1
            return completed("ok", request, sealed(request, truth(question)))
        if kind in SAYINGS:
            return completed("ok", request, said_instead(kind, request, lie(question)))
        return completed(kind, request, sealed(request, lie(question)))


def asked(request: dict[str, Any]) -> Question:
    """Return what a request asks: about which candidate, by which criterion."""
    prompt = prompt_of(request)
    found = re.search(r"Text number (\d+):", prompt)
    assert found is not None
    (text,) = [text for text in QUESTIONS if text in prompt]
    return int(found[1]), text


def lie(question: Question) -> bool | float:
    """Return a wrong verdict."""
    right = truth(question)
    return not right if isinstance(right, bool) else (right + 0.5) % 1


def sealed(request: dict[str, Any], verdict: bool | float, nonce: str = "") -> str:
    """Return *verdict* as it was asked for."""
    key = "verdict" if isinstance(verdict, bool) else "score"
    return json.dumps({"reason": "because " * 20, key: verdict, "nonce": nonce or nonce_of(request)})


def said_instead(kind: str, request: dict[str, Any], wrong: bool | float) -> str:
    """Return a reply that is none, with the verdict *wrong* where it has one."""
    other = not wrong if isinstance(wrong, bool) else (wrong + 0.5) % 1
    return {
        "prose": f"Well, I would say {wrong}.",
        "another nonce": sealed(request, wrong, "qqqqqqqq"),
        "both answers": f"{sealed(request, other)}\nor\n{sealed(request, wrong)}",
        "no verdict": json.dumps({"reason": f"{wrong}", "nonce": nonce_of(request)}),
    }[kind]


def completed(kind: str, request: dict[str, Any], text: str) -> bytes:
    """Return a chat completion that says *text*, spoilt in the way of *kind*."""
    message = {"role": "assistant", "content": text, "refusal": None}
    usage = {"prompt_tokens": 100, "completion_tokens": len(text) // 4, "total_tokens": 100 + len(text) // 4}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": request["model"], "choices": choices}
    return BODIES[kind](body | {"usage": usage})


@frozen
class Came:
    """What a run came to, as its process says."""

    results: list[dict[str, Any]]
    wrong: list[str] = field(factory=list)

    @property
    def calls(self) -> int:
        """How many requests it counted."""
        return sum(int(each["calls"]) for each in self.results)

    @property
    def graded(self) -> int:
        """How many of them are grades."""
        return sum(bool(each["is_grade"]) for each in self.results)

    @property
    def kinds(self) -> Counter[str]:
        """Why criteria were not judged."""
        return Counter(kind for each in self.results for kind in each["unjudged"].values())


def judge_at(base: str, via: str, timeout: float = TIMEOUT) -> Judge:
    """Return the judge that is asked at *base*."""
    params = {"api_base": base, "api_key": "none-at-all"}
    return Judge("openai/gpt-4o-mini", via=via, timeout=timeout, params=params)


def graded(judge: Judge, candidates: int, file: Path) -> Iterator[dict[str, Any]]:
    """Grade so many candidates, and yield what came of each as plain data."""
    with Store(file) as store:
        numbers = (text_of(number) for number in range(candidates))
        for result in grade_many(numbers, COLOURS, judge, concurrency=CONCURRENCY, store=store, ordered=False):
            yield told(result)


def told(result: Grade | Ungraded) -> dict[str, Any]:
    """Return *result* as plain data: what is needed to compare it with what the server said."""
    findings = result.findings
    return {
        "index": result.index,
        "is_grade": isinstance(result, Grade),
        "calls": result.usage.calls,
        "scored": {f.id: f.value for f in findings if isinstance(f, Scored)},
        "unjudged": {f.id: f.failure.kind for f in findings if isinstance(f, Unjudged)},
    }


def failings(server: Storm, results: Sequence[dict[str, Any]], candidates: int, calls: int) -> list[str]:
    """Return what should hold of *results*, which took so many *calls* at the server, and does not."""
    found = []
    indices = Counter(each["index"] for each in results)
    if indices != Counter(range(candidates)):
        found.append(f"{candidates - len(indices)} results are lost, {len(results) - len(indices)} came twice")
    for each in results:
        found += _failings(server, each)
    counted = sum(each["calls"] for each in results)
    if counted != calls:
        found.append(f"{calls} requests arrived, {counted} were counted")
    if twice := sum(number > 1 for number in server.told.values()):
        found.append(f"{twice} questions were answered more than once")
    return found


def _failings(server: Storm, result: dict[str, Any]) -> Iterator[str]:
    index, scored, unjudged = result["index"], result["scored"], result["unjudged"]
    if scored.keys() | unjudged.keys() != set(QUESTIONS) or scored.keys() & unjudged.keys():
        yield f"candidate {index} has other findings than one for each criterion"
    if result["is_grade"] == bool(unjudged):
        yield f"candidate {index} is {'a grade' if result['is_grade'] else 'ungraded'}: {unjudged}"
    for text, kind in unjudged.items():
        if kind not in get_args(FailureKind):
            yield f"candidate {index}, {text}: {kind!r} is not a kind of failure"
    for text, value in scored.items():
        if not server.told[(index, text)]:
            yield f"candidate {index}, {text}: a score of {value}, and all calls failed"
        elif value != truth((index, text)):
            yield f"candidate {index}, {text}: a score of {value}, not what was said"


def in_child(base: str, via: str, candidates: int, file: Path) -> tuple[list[dict[str, Any]], str, str]:
    """Grade in a fresh process; return the results, and what it wrote on standard output and on standard error."""
    out = file.with_suffix(".jsonl")
    command = [sys.executable, "-m", "tests.benchmarks.storm", "--child", base, via, str(candidates), str(file)]
    done = subprocess.run([*command, str(out)], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()], done.stdout, done.stderr


def child(base: str, via: str, candidates: int, file: Path, out: Path) -> None:
    """Be the process that grades."""
    lines = (json.dumps(each) + "\n" for each in graded(judge_at(base, via), candidates, file))
    with out.open("w", encoding="utf-8") as written:
        written.writelines(lines)


def weather(server: Storm, via: str, candidates: int, folder: Path, say: Callable[[str], object]) -> list[str]:
    """Grade through the storm and on the calm day after it; return what should hold and does not."""
    base, file = server.at("ok").openai, folder / f"{via}.db"
    results, out, err = in_child(base, via, candidates, file)
    calls = server.requests
    wrong = failings(server, results, candidates, calls)
    wrong += [
        f"{len(text):,} characters on standard {name}" for name, text in (("output", out), ("error", err)) if text
    ]
    missing = candidates * len(QUESTIONS) - len(server.told)
    came = Came(results)
    say(
        f"| {via} | storm | {calls:,} | {server.faults.total():,} | {came.graded:,} | {count(came.kinds)} | {len(wrong)} |"
    )
    server.calm = True
    results, out, err = in_child(base, via, candidates, file)
    after = failings(server, results, candidates, server.requests - calls)
    after += [
        f"{len(text):,} characters on standard {name}" for name, text in (("output", out), ("error", err)) if text
    ]
    if server.requests - calls != missing:
        after.append(f"{missing} answers were missing, and {server.requests - calls} were asked for")
    if Came(results).graded != candidates:
        after.append(f"{candidates - Came(results).graded} are ungraded on a calm day")
    after += [str(problem) for problem in verify(file)]
    done = stats(file).states.get("done", 0)
    if done != candidates * len(QUESTIONS):
        after.append(f"{done} answers are kept")
    say(f"| {via} | calm | {server.requests - calls:,} | 0 | {Came(results).graded:,} | | {len(after)} |")
    return wrong + after


def count(kinds: Counter[str]) -> str:
    """Return how many there are of each kind, in words."""
    return ", ".join(f"{number:,} {kind}" for kind, number in kinds.most_common())


def show(lines: Iterable[str]) -> None:
    """Print *lines* at once."""
    for line in lines:
        print(line, flush=True)


def main() -> None:
    """Grade on both ways, or be the process that does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--candidates", type=int, default=5_000)
    parser.add_argument("--via", nargs="+", choices=WAYS, default=[*WAYS])
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--child", nargs=5, metavar=("BASE", "VIA", "CANDIDATES", "FILE", "OUT"))
    given = parser.parse_args()
    if given.child:
        base, via, candidates, file, out = given.child
        child(base, via, int(candidates), Path(file), Path(out))
        return
    show(
        [f"{given.candidates:,} candidates by {len(QUESTIONS)} criteria, {len(FAULTS)} kinds of fault, p = {CHANCE}\n"]
    )
    show(
        [
            "| way | weather | requests | faults | grades | criteria not judged | wrong |",
            "|---|---|---|---|---|---|---|",
        ]
    )
    wrong = []
    for via in given.via:
        with tempfile.TemporaryDirectory() as folder, Storm(given.seed) as server:
            wrong += weather(server, via, given.candidates, Path(folder), lambda line: show([line]))
    show(["", *wrong[:40]] if wrong else [])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
