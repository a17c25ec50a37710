"""
What users do, in this checkout and in an older one, side by side: whole grades, sealed, as users run them.

    git worktree add ../older 30a4128
    python -m tests.benchmarks.older ../older [--rounds 5] [--only sealed,tree]

Each measurement runs in a fresh process; the checkouts take turns. Figures are CPU seconds of that process. A ratio is
the median over the rounds of older / this, so 2.0 means that this checkout takes half the time. Bars stand beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[2]

CACHE = Path(tempfile.gettempdir()) / "rubric-benchmark-bytecode"

FACTS = ("the refund", "a date", "the article", "a greeting", "the next step")
_NONCE = re.compile(r'"nonce": "(\w+)"')
Figures = dict[str, float]


# -- what is measured; public names alone, which both checkouts have ------------------------------------


async def instant(messages: list[dict[str, Any]]) -> str:
    """Judge without a model: yes, in the order of keys that the prompt shows."""
    tail = messages[-1]["content"][-500:]
    nonce = _NONCE.search(tail)
    key, value = ("score", "0.9") if '"score"' in tail else ("verdict", "true")
    if nonce is None:
        return f'{{"reason": "because", "{key}": {value}}}'
    if tail.rfind('"nonce"') < tail.rfind('"reason"'):
        return f'{{"nonce": "{nonce[1]}", "reason": "because", "{key}": {value}}}'
    return f'{{"reason": "because", "{key}": {value}, "nonce": "{nonce[1]}"}}'


def instant_judge() -> Any:
    """Return `instant` as a judge: with an identity where a store wants one, which older checkouts do not have."""
    from rubric import Judge

    named: dict[str, Any] = {"identity": "instant"} if hasattr(Judge, "identity") else {}
    return Judge(instant, sealed=True, **named)


def texts(count: int, characters: int) -> list[str]:
    """Return *count* different candidates of so many *characters*."""
    text = "The refund arrives on Friday, five days after the article came back to us. " * (characters // 70 + 1)
    return [f"{number} {text}"[:characters] for number in range(count)]


def criteria(count: int) -> Any:
    """Return a rubric of *count* criteria."""
    from rubric import Criterion, Rubric

    return Rubric("bench", criteria=[Criterion(f"Names {FACTS[n % 5]} ({n})", id=f"c{n}") for n in range(count)])


def grades(rubric: Any, count: int, characters: int, **options: Any) -> Figures:
    """Grade *count* candidates; seconds of CPU, without what the first hundred bring about."""
    from rubric import Grade, agrade_many

    judge = instant_judge()

    async def run(given: list[str]) -> None:
        async for result in agrade_many(given, rubric, judge, progress=False, **options):
            assert isinstance(result, Grade), result

    async def both() -> float:
        await run(texts(100, characters - 1))
        gc.collect()
        begun = time.process_time()
        await run(texts(count, characters))
        return time.process_time() - begun

    return {"seconds": asyncio.run(both())}


def sealed() -> Figures:
    return grades(criteria(5), 600, 8_000)


def free_form() -> Figures:
    from rubric import Rubric

    return grades(Rubric.of("Says when the refund arrives"), 2_000, 8_000)


def tree() -> Figures:
    from rubric import Rubric, ask

    walk = ask("Is it about a refund?").yes(ask("Does it name a day?").yes(1.0).no(0.5)).no(0.0)
    return grades(Rubric.deciding(walk), 1_200, 8_000)


def suite() -> Figures:
    """A thousand cases of a check and a criterion, in an environment such as CI has."""
    from rubric import Case, Contains, Criterion, Rubric, Suite

    os.environ.update({f"CI_SETTING_{n}": f"value-{n}-{'x' * (n % 40)}" for n in range(200)})
    rubric = Rubric(
        "r", criteria=[Criterion("Names Friday", id="day", answer=Contains("Friday")), Criterion("Is kind")]
    )
    cases = [Case(f"c{n}", rubric, output=text) for n, text in enumerate(texts(1_000, 500))]
    whole, judge = Suite("s", cases), instant_judge()
    Suite("s", cases[:20]).run(judge)
    begun = time.process_time()
    report = whole.run(judge)
    seconds = time.process_time() - begun
    assert all(row.status == "passed" for row in report), report
    return {"seconds": seconds}


def pairs_of(judge: Any) -> Figures:
    """
    A rubric of eight criteria for each candidate, as in a step of training; CPU seconds for 2,000, the least of five.

    A checkout that takes no list of rubrics grades each pair by `agrade`, all of them gathered.
    """
    from rubric import Candidate, DefinitionError, Judge, Rubric, agrade, agrade_many

    def seconds(count: int) -> float:
        facts = [[f"Names {FACTS[n % 5]} ({at}.{n})" for n in range(8)] for at in range(count)]
        rubrics = [Rubric(f"own {at}", criteria=texts) for at, texts in enumerate(facts)]
        given = [Candidate(text, input=f"Question {at}") for at, text in enumerate(texts(count, 300))]

        async def run() -> list[Any]:
            asked = Judge(judge)
            try:
                stream = agrade_many(given, rubrics, asked, progress=False)
            except DefinitionError:
                return await asyncio.gather(*[agrade(*pair, asked) for pair in zip(given, rubrics, strict=True)])
            return [result async for result in stream]

        gc.collect()
        begun = time.process_time()
        assert all(result.score == 1 for result in asyncio.run(run()))
        return (time.process_time() - begun) / count

    seconds(20)
    return {"seconds": 2_000 * min(seconds(200) for _ in range(5))}


def pairs() -> Figures:
    async def judge(messages: list[dict[str, Any]]) -> str:
        return '{"reason": "read", "verdict": true}'

    return pairs_of(judge)


def pairs_in_thread() -> Figures:
    return pairs_of(lambda messages: '{"reason": "read", "verdict": true}')


def timed(work: Callable[[], Any]) -> Figures:
    """Return the seconds of CPU of *work*, done once before."""
    work()
    gc.collect()
    begun = time.process_time()
    work()
    return {"seconds": time.process_time() - begun}


def load_rubric() -> Figures:
    from rubric import loads

    lines = [f"  - id: c{n}\n    text: Names {FACTS[n % 5]} ({n})\n    weight: {1 + n % 3}" for n in range(1_000)]
    text = "rubric: bench\ncriteria:\n" + "\n".join(lines) + "\n"
    return timed(lambda: loads(text))


def load_promptfoo() -> Figures:
    from rubric import loads_suite

    tests = [
        f"  - description: case {n}\n    vars:\n      topic: topic {n}\n      answer: yes\n    assert:\n"
        f"      - type: icontains\n        value: refund\n      - type: llm-rubric\n        value: Names {FACTS[n % 5]}"
        for n in range(1_000)
    ]
    text = "prompts: ['Write about {{topic}}']\nproviders: [openai:gpt-4o-mini]\ntests:\n" + "\n".join(tests) + "\n"
    return timed(lambda: loads_suite(text, format="promptfoo"))


def dump() -> Figures:
    from rubric import dumps

    rubric = criteria(1_000)
    return timed(lambda: dumps(rubric))


def store() -> Figures:
    """CPU a reply beyond the same grades without a store; and bytes a reply, at five criteria."""
    count, characters = 300, 2_000
    rubric = criteria(5)
    bare = grades(rubric, count, characters)["seconds"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        written = grades(rubric, count, characters, store=path)["seconds"]
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
        served = grades(rubric, count, characters, store=path)["seconds"]
    return {"written": written - bare, "served": served, "bytes a reply": size / (5 * (count + 100))}


def many_criteria() -> Figures:
    """One grade of 1,000 criteria, and of 500."""
    from rubric import agrade

    judge = instant_judge()

    def once(number: int) -> float:
        rubric = criteria(number)
        asyncio.run(agrade("warm", rubric, judge))
        begun = time.process_time()
        asyncio.run(agrade("The refund arrives on Friday.", rubric, judge))
        return time.process_time() - begun

    few = median(once(500) for _ in range(3))
    return {"1000 criteria / 500": median(once(1_000) for _ in range(3)) / few}


def files_passed() -> Figures:
    """The modules of ours that a warm grade of one criterion passes through."""
    import rubric
    from rubric import agrade

    judge, one = instant_judge(), criteria(1)
    home, seen = str(Path(rubric.__file__).parent), set()

    def look(frame: Any, *_: Any) -> None:
        if frame.f_code.co_filename.startswith(home):
            seen.add(frame.f_code.co_filename)

    async def main() -> None:
        await agrade("warm", one, judge)
        sys.setprofile(look)
        await agrade("The refund arrives on Friday.", one, judge)
        sys.setprofile(None)

    asyncio.run(main())
    if os.environ.get("SHOW_FILES"):
        print("\n".join(sorted(name.removeprefix(home) for name in seen)), file=sys.stderr)
    return {"files": len(seen)}


def import_() -> Figures:
    begun = time.process_time()
    import rubric

    _ = rubric.Rubric
    return {"seconds": time.process_time() - begun}


def whole_grades(via: str | None, concurrency: int, characters: int) -> Figures:
    """Whole grades of five criteria against a local server that answers after 50 ms; ms of CPU a call."""
    from tests.benchmarks.ways import Work, candidates, criteria, ours

    options = {} if via is None else {"via": via}

    async def measure() -> float:
        run = await ours(Work(os.environ["BASE"], criteria(5), concurrency), **options)
        await run(candidates(max(13, concurrency // 2), characters, seed=8))
        begun = time.process_time()
        await run(candidates(120, characters))
        return 1000 * (time.process_time() - begun) / 600

    return {"ms a call": asyncio.run(measure())}


def bare(way: str, concurrency: int, characters: int) -> Figures:
    """The same calls by a bare client."""
    from tests.benchmarks.ways import WAYS, Work, candidates, criteria

    async def measure() -> float:
        run = await WAYS[way].make(Work(os.environ["BASE"], criteria(5), concurrency))
        await run(candidates(max(13, concurrency // 2), characters, seed=8))
        begun = time.process_time()
        await run(candidates(120, characters))
        return 1000 * (time.process_time() - begun) / 600

    return {"ms a call": asyncio.run(measure())}


SCENARIOS: dict[str, Callable[[], Figures]] = {
    "sealed": sealed,
    "free-form": free_form,
    "tree": tree,
    "suite": suite,
    "pairs": pairs,
    "pairs-in-thread": pairs_in_thread,
    "load-rubric": load_rubric,
    "load-promptfoo": load_promptfoo,
    "dumps": dump,
    "store": store,
    "many-criteria": many_criteria,
    "files": files_passed,
    "import": import_,
}
BARS = {
    "sealed": "≥ 2.5",
    "free-form": "≥ 3",
    "tree": "≥ 3",
    "suite": "≥ 4",
    "pairs": "≥ 1.73",
    "pairs-in-thread": "≥ 1",
    "load-rubric": "≥ 4",
    "load-promptfoo": "≥ 2",
    "dumps": "≥ 3",
    "store written": "≥ 2",
    "store served": "≥ 2",
    "store bytes a reply": "≥ 3",
    "many-criteria": "this ≤ 2.1",
    "files": "this ≤ 16",
    "import": "≥ 1",
}
SERVED = {
    "http 500": ("http", 64, 500, "bare aiohttp", "≤ 1.9, or 1.6"),
    "http 2000": ("http", 64, 2_000, "bare aiohttp", "≤ 1.9, or 1.6"),
    "litellm 64": (None, 64, 2_000, "bare LiteLLM", "≤ 0.65"),
    "litellm 256": (None, 256, 2_000, "bare LiteLLM", "≤ 0.70"),
}
"""Against a server: via, concurrency, characters, the bare client that is compared with, the bar for this checkout."""


def in_process(checkout: Path, name: str, base: str = "") -> Figures:
    """Return what scenario *name* measures in a fresh process that imports the library from *checkout*."""
    code = f"import runpy,sys; sys.path.insert(1, {str(ROOT)!r}); sys.argv[1:] = ['--run', {name!r}]; "
    code += f"runpy.run_path({str(Path(__file__).resolve())!r}, run_name='__main__')"
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONWARNINGS": "ignore", "BASE": base}
    environ = {**os.environ, **quiet, "PYTHONPATH": str(checkout), "PYTHONPYCACHEPREFIX": str(CACHE)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled in the first round, as for any user
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-P", "-c", code], env=environ, capture_output=True, text=True, check=False, cwd=folder
        )
    if done.returncode:
        raise SystemExit(f"{name} in {checkout} failed:\n{done.stderr[-3000:]}")
    sys.stderr.write(done.stderr if os.environ.get("SHOW_FILES") else "")
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def side_by_side(older: Path, rounds: int, only: list[str]) -> None:
    """Print the table."""
    print("| what | older | this | older / this | bar |\n|---|---|---|---|---|", flush=True)
    for name in SCENARIOS:
        if only and name not in only:
            continue
        runs = [(in_process(older, name), in_process(ROOT, name)) for _ in range(1 if name == "files" else rounds)]
        for key in runs[0][0]:
            label = name if len(runs[0][0]) == 1 else f"{name} {key}"
            before, now = median(a[key] for a, _ in runs), median(b[key] for _, b in runs)
            ratio = median(a[key] / max(b[key], 1e-9) for a, b in runs)
            print(f"| {label} | {before:.3f} | {now:.3f} | {ratio:.2f} | {BARS[label]} |", flush=True)


def served(older: Path, rounds: int, only: list[str]) -> None:
    """Print the table of whole grades against a server, as ratios to a bare client."""
    from tests.benchmarks.instant import running

    wanted = [name for name in SERVED if not only or name in only]
    if not wanted:
        return
    print("\n| whole grades | older × bare | this × bare | bar |\n|---|---|---|---|", flush=True)
    with running(0.05) as base:
        for name in wanted:
            way, bar = SERVED[name][3:]
            found = []
            for _ in range(rounds):
                floor = in_process(ROOT, f"{name}|bare", base)["ms a call"]
                found.append([in_process(one, name, base)["ms a call"] / floor for one in (older, ROOT)])
            before, now = (median(each) for each in zip(*found, strict=True))
            print(f"| {name} × {way} | {before:.2f} | {now:.2f} | {bar} |", flush=True)


def run_one(name: str) -> Figures:
    """Measure scenario *name* in this process."""
    if name in SCENARIOS:
        return SCENARIOS[name]()
    key, _, floor = name.partition("|")
    via, concurrency, characters, way, _ = SERVED[key]
    return bare(way, concurrency, characters) if floor else whole_grades(via, concurrency, characters)


def main() -> None:
    """Compare, or measure one scenario and print it as a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("older", nargs="?", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="scenarios, with commas between them")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run_one(given.run)))
        return
    only = [name for name in given.only.split(",") if name]
    side_by_side(given.older.resolve(), given.rounds, only)
    served(given.older.resolve(), given.rounds, only)


if __name__ == "__main__":
    main()
