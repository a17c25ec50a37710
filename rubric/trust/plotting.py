"""Charts of what this package returns, made with Altair (extra `plots`): data first, so that they can be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric.rendering.plots import altair, forest, row_of

if TYPE_CHECKING:
    from rubric.trust.agreement import Agreement
    from rubric.trust.calibration import Calibration
    from rubric.trust.differences import Difference
    from rubric.trust.drift import Drift
    from rubric.trust.estimates import Estimate
    from rubric.trust.selective import Trusted

_MOST_POINTS = 4_000
"""Altair refuses more than 5,000 rows in a chart."""


def of_agreement(found: Agreement) -> Any:
    """Return the confusion of each criterion; judge against people for numbers; flip rates for votes alone."""
    import numpy as np  # `prefer` has charts without it

    alt = altair()
    if not found.criteria:
        rows = [row_of(v.id or "the whole", v.flip_rate.value, v.flip_rate.interval) for v in found.votes]
        return forest(rows, "flip rate", found.sentence)
    charts = []
    for one in found.criteria:
        if one.confusion:
            cells = [
                {"people": person, "judge": said, "count": count}
                for person, counts in zip(one.categories, one.confusion, strict=True)
                for said, count in zip(one.categories, counts, strict=True)
            ]
            base = alt.Chart(alt.Data(values=cells), title=one.title).encode(
                x=alt.X("judge:N", sort=None), y=alt.Y("people:N", sort=None)
            )
            shown = base.mark_rect().encode(color=alt.Color("count:Q", scale=alt.Scale(scheme="blues")))
            charts.append(alt.layer(shown, base.mark_text().encode(text="count:Q")))
            continue
        ratings = next((r for r in found.ratings if r.criterion == one.id), None)
        if ratings is not None:
            both = np.flatnonzero(~np.isnan(ratings.target) & ~np.isnan(ratings.judge))[:_MOST_POINTS]
            points = [{"judge": float(ratings.judge[n]), "people": float(ratings.target[n])} for n in both]
            data = alt.Chart(alt.Data(values=points), title=one.title)
            charts.append(data.mark_circle(opacity=0.4).encode(x="judge:Q", y="people:Q"))
    return alt.vconcat(*charts).properties(title=found.sentence)


def of_calibration(found: Calibration) -> Any:
    """Return the map of each criterion, from what the judge says to what people would say."""
    alt = altair()
    charts = []
    for one in found.criteria:
        points = [
            {"judge": x, "people": y, "low": max(one.low, y - one.margin), "high": min(one.high, y + one.margin)}
            for x, y in one.points
        ]
        base = alt.Chart(alt.Data(values=points), title=one.id or "score").encode(x="judge:Q")
        band = base.mark_area(opacity=0.2).encode(y="low:Q", y2="high:Q")
        charts.append(alt.layer(band, base.mark_line(point=True).encode(y="people:Q")))
    return alt.vconcat(*charts).properties(title=found.sentence)


def of_estimate(found: Estimate) -> Any:
    """Return the estimate beside labels only and the judge only."""
    rows = [
        row_of("corrected", found.value, found.interval),
        row_of("labels only", found.labels_only.value, found.labels_only.interval),
        row_of("judge only", found.judge_only.value, found.judge_only.interval),
    ]
    return forest(rows, found.measure, found.sentence)


def of_difference(found: Difference) -> Any:
    """Return each difference, with the band of those that 80 % of such comparisons would not find."""
    rows = [
        row_of(c.id, c.difference, c.interval, unseen_low=-c.detectable, unseen_high=c.detectable)
        for c in found.criteria
    ]
    return forest(rows, "difference, new less old", found.sentence, zero=True)


def of_trusted(found: Trusted) -> Any:
    """Return how many labelled verdicts are kept, and how many of those are wrong."""
    alt = altair()
    counts = {
        "kept, right": found.kept_labels - found.wrong,
        "kept, wrong": found.wrong,
        "not kept": found.labels - found.kept_labels,
    }
    rows = [{"verdicts": name, "labels": count} for name, count in counts.items()]
    bars = alt.Chart(alt.Data(values=rows), title=found.sentence).mark_bar()
    return bars.encode(x="labels:Q", y=alt.Y("verdicts:N", sort=None))


def of_drift(found: Drift) -> Any:
    """Return each change since the baseline."""
    rows = [
        row_of(f"{c.criterion or 'the whole'}: {c.what}", c.now - c.before, c.interval, unseen_low=0.0, unseen_high=0.0)
        for c in found.changes
    ]
    return forest(rows, "change since the baseline", found.sentence, zero=True)
