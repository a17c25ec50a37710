"""Charts made with Altair (extra `plots`): their data are plain, so that they can be changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def altair() -> Any:
    """Return Altair; an `ImportError` says how to install it."""
    try:
        import altair as alt  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "plot() takes Altair: pip install rubric-grade[plots]"
        raise ImportError(message, name="altair") from error
    return alt


def forest(rows: Sequence[dict[str, Any]], title: str, sentence: str, *, zero: bool = False) -> Any:
    """Return values with their intervals, a row each."""
    alt = altair()
    base = alt.Chart(alt.Data(values=list(rows)), title=sentence).encode(y=alt.Y("name:N", sort=None, title=None))
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False))
    lines = base.mark_rule(strokeWidth=2).encode(
        x=alt.X("low:Q", title=title, scale=alt.Scale(zero=False)), x2="high:Q"
    )
    layers = [lines, base.mark_point(filled=True, size=70).encode(x=x)]
    if zero:
        bands = base.mark_bar(opacity=0.15, color="gray").encode(x="unseen_low:Q", x2="unseen_high:Q")
        nothing = alt.Chart(alt.Data(values=[{"at": 0}])).mark_rule(strokeDash=[4, 4]).encode(x="at:Q")
        layers = [bands, nothing, *layers]
    chart: Any = alt.layer(*layers)
    return chart


def row_of(name: str, value: float | None, interval: tuple[float, float] | None, **more: float) -> dict[str, Any]:
    """Return a row of a chart: a value, and what it lies between."""
    low, high = interval or (value, value)
    return {"name": name, "value": value, "low": low, "high": high, **more}
