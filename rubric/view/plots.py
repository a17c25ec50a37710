"""
Charts made with Altair (extra `plots`) from the specifications in `templates/plots.json`; their data are plain.

Colours are of a middle tone and the ground is clear, so that a chart reads on a light page and on a dark one. Green is
better and red is worse; an interval that says neither is blue. Figures stand beside their marks.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from typing import Any

from rubric.view import html

GOOD, BAD, PLAIN = "#2e9e64", "#d8475a", "#5b74d6"
VERDICTS = {"pass": GOOD, "borderline": "#c98a1b", "fail": BAD}


def part(name: str, marks: Sequence[tuple[float, str]] = (), **values: Any) -> dict[str, Any]:
    """Return the specification with this *name* and its *values*; *marks* are dashed lines, each with its words."""
    specs = json.loads(html.file("templates/plots.json"))
    if marks:
        specs[name]["layer"] += specs["line"]
        values["marks"] = [{"at": at, "words": words} for at, words in marks]
    values["title"] = textwrap.wrap(values.get("title", ""), 60)
    return dict(_fill(specs[name], values))


def _fill(spec: Any, values: dict[str, Any]) -> Any:
    if isinstance(spec, dict):
        return {key: _fill(each, values) for key, each in spec.items()}
    if isinstance(spec, list):
        return [_fill(each, values) for each in spec]
    return values[spec[1:]] if isinstance(spec, str) and spec.startswith("$") else spec


def chart(*parts: dict[str, Any], title: str = "", below: Sequence[Any] = ()) -> Any:
    """Return *parts*, and charts *below*, as one chart; an `ImportError` says how to install Altair."""
    try:
        import altair as alt  # noqa: PLC0415 - an extra
    except ImportError as error:
        message = "plot() takes Altair: pip install 'rubric-grade[plots]'"
        raise ImportError(message, name="altair") from error
    whole = json.loads(html.file("templates/plots.json"))["whole"]
    made: Any = alt.VConcatChart.from_dict({**whole, "vconcat": [*parts], "title": textwrap.wrap(title, 68)})
    for each in below:
        each.config = each.background = alt.Undefined  # the whole has them
    made.vconcat += below
    return made


def forest(
    rows: Sequence[dict[str, Any]], axis: str, marks: Sequence[tuple[float, str]] = (), *, whole: bool = False
) -> Any:
    """Return *rows* of `row_of` with their intervals, compared with the first mark; *whole*: on an axis of all 0..1."""
    at = marks[0][0] if marks else None
    ends = [row[end] for row in rows for end in ("low", "high") if row[end] is not None]
    ends = [0.0, 1.0] if whole or not ends else [*ends, *(at for at, _ in marks)]
    side = 0.0 if whole else (max(ends) - min(ends) or 1.0) * 0.04
    for row in rows:
        low, high = (row["low"], row["high"]) if at is not None and row["low"] is not None else (0.0, 0.0)
        row["color"] = GOOD if low > (at or 0.0) else BAD if high < (at or 0.0) else PLAIN
        row["said"] = "" if row["value"] is None else format(row["value"], "+.3f" if at == 0 else ".3f")
    return part("forest", marks, rows=list(rows), axis=axis, domain=[min(ends) - side, max(ends) + side])


def row_of(name: str, value: float | None, interval: tuple[float, float] | None, **more: float) -> dict[str, Any]:
    """Return a row of a chart: a value, and what it lies between."""
    low, high = interval or (value, value)
    return {"name": name, "value": value, "low": low, "high": high, **more}
