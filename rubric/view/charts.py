"""Drawings for cards and pages: a histogram of scores, bars with intervals, shares, and a decision tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from rubric.results import Step
from rubric.view.html import Html, band, join, render, table, tag, text

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


def shares(counts: Mapping[str, int]) -> Html:
    """Return one bar that *counts* divide, each in the colour of its kind."""
    total = sum(counts.values()) or 1
    widths = [100 * count / total for count in counts.values()]
    starts = accumulate(widths, initial=0.0)
    parts = (
        tag("rect", class_=kind, x=f"{start:.2f}", width=f"{width:.2f}", height="10")
        for kind, start, width in zip(counts, starts, widths, strict=False)
    )
    view = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none"}
    return tag("svg", *parts, class_="share", aria_hidden="true", **view)


def tree(root: object, path: Sequence[Step] = ()) -> Html:
    """Return a drawing of the decision tree at *root*; what a walk along *path* did not pass is pale."""
    return tag("ul", _node(root, "", path, walked=bool(path)), class_="tree drawn" if path else "tree")


def _node(node: object, answer: str, path: Sequence[Step], *, walked: bool) -> Html:
    edge = tag("b", answer) if answer else None
    kind = "walked" if walked else None
    question = getattr(node, "question", None)
    if question is None:
        score, reason = getattr(node, "score", 0.0), getattr(node, "reason", "")
        words = text(reason, class_="soft") if reason else None
        return tag("li", tag("span", edge, tag("strong", f"{score:g}"), words, class_="node leaf"), class_=kind)
    taken = path[0].yes if walked and path else None
    below = join(
        _node(getattr(node, name), name, path[1:] if taken is said else (), walked=taken is said)
        for name, said in (("yes", True), ("no", False))
    )
    return tag("li", tag("span", edge, text(question), class_="node"), tag("ul", below), class_=kind)
