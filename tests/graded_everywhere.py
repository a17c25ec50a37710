"""Run as a script with two addresses: grades everything in every way there is, and says nothing if all is well."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from math import isclose

from rubric import Grade, Judge, Jury, Panel, agrade, grade
from tests.everything import CALLS, CANDIDATE, EVERYTHING, SCORE


def check(result: Grade, calls: int = CALLS) -> None:
    """Fail unless *result* is what was worked out by hand."""
    assert isclose(result.score, SCORE), (result.score, SCORE, result.to_dict())
    assert result.passed, result.gates
    assert result.usage.calls == calls, result.usage
    assert not result.failures, result.failures
    assert result.shown == "4.4/5", result.shown


async def in_a_loop(judge: Judge) -> None:
    """Grade inside a running loop, awaited and not, as notebooks do."""
    check(grade(CANDIDATE, EVERYTHING, judge))
    check(await agrade(CANDIDATE, EVERYTHING, judge))
    for result in await asyncio.gather(*(agrade(CANDIDATE, EVERYTHING, judge) for _ in range(3))):
        check(result)


def main(openai: str, anthropic: str) -> None:
    """Grade with both vendors: in sync, in loops that come and go, in eight threads, as a jury and as a panel."""
    gpt = Judge("openai/gpt-4o-mini", params={"api_base": openai, "api_key": "sk-test"})
    claude = Judge("anthropic/claude-sonnet-4-5", params={"api_base": anthropic, "api_key": "sk-ant-test"})
    for judge in (gpt, claude):
        check(grade(CANDIDATE, EVERYTHING, judge))
        asyncio.run(in_a_loop(judge))
        with ThreadPoolExecutor(8) as threads:
            for result in threads.map(lambda one: grade(CANDIDATE, EVERYTHING, one), [judge] * 8):
                check(result)
    check(grade(CANDIDATE, EVERYTHING, Jury(gpt, 3)), 3 * CALLS)
    check(grade(CANDIDATE, EVERYTHING, Panel([gpt, Jury(claude, 2)], aggregate="majority")), 3 * CALLS)


if __name__ == "__main__":
    main(*sys.argv[1:])
