"""Draws what strategies cost, so that it can be read on a light and on a dark page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.benchmarks.costs import Strategy

INK, SURE, PERHAPS = "#7a7a7a", "#3f87c9", "#d98b3a"
"""Of middling brightness, since the page behind may be white or black."""


def draw(strategies: Sequence[Strategy], path: Path, title: str) -> None:
    """Write *path*: a bar for each strategy, and beyond it what it takes where judges disagree."""
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "rubric", "font.family": "sans-serif"})
    figure = Figure(figsize=(8, 4))
    axes = figure.add_subplot()
    places = range(len(strategies))
    usual = [1000 * strategy.usual.dollars for strategy in strategies]
    most = [1000 * strategy.most.dollars for strategy in strategies]
    axes.barh(places, most, color=PERHAPS, height=0.35, label="if judges always disagree")
    axes.barh(places, usual, color=SURE, height=0.65, label="usual")
    for place, value in zip(places, usual, strict=True):
        said = f"{value:,.2f}" if value == most[place] else f"{value:,.2f} to {most[place]:,.2f}"
        axes.annotate(said, (most[place], place), (4, 0), textcoords="offset points", va="center", color=INK)
    axes.set_yticks(places, [strategy.name for strategy in strategies])
    axes.invert_yaxis()
    axes.set_xlabel("US dollars for 1,000 grades", color=INK)
    axes.set_title(title, color=INK)
    axes.tick_params(colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.legend(frameon=False, labelcolor=INK, loc="upper right", bbox_to_anchor=(1, 0.88))
    figure.savefig(path, transparent=True, bbox_inches="tight", metadata={"Date": None})
