"""That the benchmarks still run: in small, and without other libraries."""

from __future__ import annotations

import pytest

from tests.benchmarks import calls, costs, homes, memory, prefixes, trust
from tests.benchmarks.instant import Seen

SHORT = 5_000
"""Characters of a candidate: more than a cache needs, less than the benchmarks have."""


def test_what_is_sent_is_what_the_plan_says_and_a_cache_can_serve_it() -> None:
    """A grade over HTTP sends the tokens that `rubric.plan` counts; all calls but the first find their prefix."""
    row = prefixes.measured(prefixes.OURS, 2, SHORT)
    assert row.calls == 2
    assert 0.4 < row.in_turn / row.tokens < 0.5


def test_a_cache_has_what_was_answered_before() -> None:
    """A prompt that comes while another is under way finds nothing of it; one that comes later finds its blocks."""
    prompt = {"messages": [{"content": " word" * 3_000}]}
    first, beside, later = Seen(0, 2, prompt), Seen(1, 3, prompt), Seen(4, 5, prompt)
    assert prefixes.cached([first, beside]) == 0
    assert prefixes.cached([first, beside, later]) == 2_944  # 23 blocks of 128


def test_a_way_that_fails_says_why() -> None:
    """A server that is not there fails a way, in words."""
    with pytest.raises(homes.Failed, match="connect"):
        homes.run_way("bare aiohttp", base="http://127.0.0.1:9/v1", criteria=1, candidates=1, characters=10)


def test_bars_are_ratios_within_a_round() -> None:
    """What else the machine does falls on both sides of a ratio."""
    runs = {
        "bare aiohttp": [{"ms": 1.0}, {"ms": 10.0}, {"ms": 1.0}],
        "rubric, calls over HTTP": [{"ms": 2.0}, {"ms": 20.0}, {"ms": 9.0}],
        "autorubric": [{"calls/s": 10.0}],
        "rubric, grades over HTTP": [{"calls/s": 49.0}],
    }
    http, rate = calls.bars(runs, 64)
    assert not calls.bars(runs, 16)
    assert http.endswith("2.00 × bare aiohttp, at most 2.5: met")
    assert rate.endswith("4.9 × autorubric, at least 5: MISSED")


def test_each_strategy_costs_what_its_plan_says() -> None:
    """The bills agree with the plans (asserted where they are made); a cached prefix and one request save."""
    found = {strategy.name: strategy.usual.dollars for strategy in costs.strategies(costs.Case.of(3, 1_200))}
    assert found["one call a criterion, prefix cached"] < found["one call a criterion, nothing cached"]
    assert found["jury of 3, one request"] < found["jury of 3"]


def test_the_memory_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """It prints a row for the candidates that were asked for."""
    assert memory.main("200") == 0
    assert "| 200 | " in capsys.readouterr().out


def test_the_benchmark_of_trust_runs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """It prints a row for each of the three calls."""
    monkeypatch.setattr(trust, "MOST_SECONDS", 60)  # a figure of a machine at rest
    assert trust.main("200") == 0
    assert capsys.readouterr().out.count("| `") == 3
