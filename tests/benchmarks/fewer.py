"""
What early stops and one request a jury save, and that they change no verdict.

    python -m tests.benchmarks.fewer [panels, 10000 if left out]

Each random panel has members of random weights, any aggregate, tie break and quorum, and a random rubric with gates,
guards, nested rubrics and trees.
"""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rubric import Grade, Judge, Jury, Panel, Reply, Rubric, Usage
from rubric.exchanges import Ask, Failure
from rubric.testing import ScriptedModel
from rubric.testing.scripts import reply_to
from tests.drive import drive
from tests.findings import improvised, rubrics

Script = Any


class Priced:
    """A script whose replies cost a token for each four characters; it gives as many choices as are asked for."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def __call__(self, ask: Ask) -> Any:
        lines = [self.script(evolve(ask, vote=ask.vote + n, n=1)) for n in range(ask.n)]
        if isinstance(lines[0], Failure):
            return lines[0]
        texts = tuple(line if isinstance(line, str) else reply_to(ask, line) for line in lines)
        usage = Usage(1, sum(len(m.text) for m in ask.messages) // 4, 0, sum(map(len, texts)) // 4, 0.0)
        return Reply(texts[0], usage=usage, choices=texts if len(texts) > 1 else ())


def judge(seed: object, **options: Any) -> Judge:
    """Return a judge that makes up its replies."""
    return Judge(ScriptedModel(Priced(improvised(seed))), **options)


def count(kept: Counter[str], name: str, whole: Any, less: Any) -> None:
    """Count the calls and the tokens of both, and whether a whole grade has another verdict."""
    kept[f"{name}: panels"] += 1
    for which, result in (("whole", whole), ("less", less)):
        kept[f"{name}: {which} calls"] += result.usage.calls
        kept[f"{name}: {which} tokens"] += result.usage.prompt_tokens + result.usage.completion_tokens
    if isinstance(whole, Grade) and (less.outcome.verdict, less.passed) != (whole.verdict, whole.passed):
        kept[f"{name}: other verdicts"] += 1


def main(panels: int) -> Counter[str]:
    """Grade with and without each saving, and return the counts."""
    kept: Counter[str] = Counter()
    quick = settings(
        max_examples=panels, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[*HealthCheck]
    )

    @quick
    @given(rubrics(), st.integers(), st.integers(2, 5), st.data())
    def early(rubric: Rubric, seed: int, size: int, data: st.DataObject) -> None:
        rule: dict[str, Any] = {
            "aggregate": data.draw(st.sampled_from(["mean", "median", "majority"])),
            "tie_break": data.draw(st.sampled_from(["fail", "pass"])),
            "weights": data.draw(st.none() | st.lists(st.sampled_from([1, 2, 0.5, 7]), min_size=size, max_size=size)),
            "quorum": data.draw(st.none() | st.integers(1, size)),
        }
        whole, less = (
            drive(rubric, Panel([judge((seed, n)) for n in range(size)], early_stop=stop, **rule))
            for stop in (False, True)
        )
        count(kept, "early stop", whole, less)

    @quick
    @given(rubrics(), st.integers(), st.integers(2, 5), st.floats(0.1, 1))
    def shared(rubric: Rubric, seed: int, size: int, consensus: float) -> None:
        whole = drive(rubric, Jury(judge(seed), size, consensus))
        count(kept, "one request", whole, drive(rubric, Jury(judge(seed), size, consensus, one_request=True)))

    for run in (early, shared):
        run()
    return kept


if __name__ == "__main__":
    found = main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
    for name in dict.fromkeys(key.partition(":")[0] for key in found):
        whole, less = (found[f"{name}: {which} calls"] for which in ("whole", "less"))
        tokens, fewer = (found[f"{name}: {which} tokens"] for which in ("whole", "less"))
        sys.stdout.write(
            f"{name:40} {found[f'{name}: panels']:6} panels, {found[f'{name}: other verdicts']} other verdicts, "
            f"calls {whole} -> {less} ({less / whole:.0%}), tokens {tokens} -> {fewer} ({fewer / tokens:.0%})\n"
        )
