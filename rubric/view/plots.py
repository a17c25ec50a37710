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


def dots(
    rows: Sequence[dict[str, Any]], title: str, sentence: str, *, colours: dict[str, str] | None = None, **lines: float
) -> Any:
    """Return values (`which`) in each row (`name`) as dots in *colours*, beside vertical *lines* with their names."""
    alt = altair()
    x = alt.X("value:Q", title=title, scale=alt.Scale(zero=False) if lines else alt.Scale(domain=[0, 1]))
    base = alt.Chart(alt.Data(values=list(rows)), title=sentence).encode(y=alt.Y("name:N", sort=None, title=None), x=x)
    scale = alt.Scale() if colours is None else alt.Scale(domain=[*colours], range=[*colours.values()])
    which = alt.Color("which:N", sort=None, title=None, scale=scale)
    marks = [{"value": value, "which": name.replace("_", " ")} for name, value in lines.items()]
    rules = alt.Chart(alt.Data(values=marks)).mark_rule(strokeDash=[4, 4], strokeWidth=2).encode(x=x, color=which)
    chart: Any = alt.layer(
        base.mark_line(color="lightgray").encode(detail="name:N"),
        *([rules] if marks else []),
        base.mark_point(filled=True, size=90, opacity=0.9).encode(color=which),
    )
    return chart


def row_of(name: str, value: float | None, interval: tuple[float, float] | None, **more: float) -> dict[str, Any]:
    """Return a row of a chart: a value, and what it lies between."""
    low, high = interval or (value, value)
    return {"name": name, "value": value, "low": low, "high": high, **more}


def bars(rows: Sequence[dict[str, Any]], title: str, sentence: str, colours: dict[str, str] | None = None) -> Any:
    """Return a bar (`value`) for each `name` and `which`, side by side; with *colours* of each `which`, stacked."""
    alt = altair()
    which = alt.Color("which:N", sort=None, title=None)
    if colours is not None:
        which = alt.Color("which:N", title=None, scale=alt.Scale(domain=[*colours], range=[*colours.values()]))
    chart = alt.Chart(alt.Data(values=list(rows)), title=sentence).mark_bar()
    chart = chart.encode(x=alt.X("value:Q", title=title), y=alt.Y("name:N", sort=None, title=None), color=which)
    beside: Any = chart if colours is not None else chart.encode(yOffset=alt.YOffset("which:N", sort=None))
    return beside
