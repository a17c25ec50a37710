"""Drawings for cards and pages: a histogram of scores, bars with intervals, shares, and a decision tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rubric.view.html import Html, band, render, table

_BINS = 20


def histogram(scores: Mapping[str, Sequence[float]], *, mark: float | None = None) -> Html:
    """Return a histogram of *scores* in 0..1, of each kind in its colour, in twenty bins, with a line at *mark*."""
    counts = {kind: Counter(min(int(s * _BINS + 1e-9), _BINS - 1) for s in given) for kind, given in scores.items()}
    tallest = max((sum(c[b] for c in counts.values()) for b in range(_BINS)), default=0)
    bars = []
    for place in range(_BINS):
        top = 100.0
        for kind, count in counts.items():
            if height := count[place] / (tallest or 1) * 100:
                top -= height
                said = f"{place / _BINS:.2f} to {(place + 1) / _BINS:.2f}: {count[place]:,} {kind}"
                bars.append({"kind": kind, "place": place, "top": top, "height": height, "said": said})
    said = "histogram of scores: " + ", ".join(f"{len(given):,} {kind}" for kind, given in scores.items())
    return render("histogram.html", bars=bars, tallest=tallest, mark=mark, said=said)


Measured = tuple[object, float | None, tuple[float, float] | None, str]
"""A name (or `Html`), a value in 0..1, the interval that it lies within, and a remark such as a number of results."""


def intervals(rows: Iterable[Measured]) -> Html:
    """Return a table of values with a bar for the interval of each; a value of None was not measured."""
    lines = []
    for name, value, interval, remark in rows:
        low, high = interval or (value or 0.0, value or 0.0)
        drawn = "" if value is None else band(low, value, high, kind="plain")
        said = "" if interval is None else f"{low:.2f} to {high:.2f}"
        lines.append((name, drawn, "–" if value is None else f"{value:.2f}", said, remark))
    return table(("criterion", "", "mean", "interval", ""), lines, figures=(2, 3))
