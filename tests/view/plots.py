"""Take pictures of every chart: `python -m tests.view.plots FOLDER VEGA` with the folder of npm's vega and vega-lite."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from rubric.trust import agreement, compare, estimate, thresholds
from tests.browsers import browsing
from tests.view.runs import run, wide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PLOTS: Mapping[str, Callable[[], Any]] = {
    "grade": run(8)[2].plot,
    "scores": lambda: run(200).plot(),
    "scores-1": lambda: wide(1).plot(),
    "scores-40": lambda: wide(40).plot(),
    "compare": lambda: compare(run(200, better=0.05, seed=2), run(200)).plot(),
    "agreement": lambda: agreement(run(120), _labels()).plot(),
    "estimate": lambda: estimate(run(120), _labels(), criterion="cites").plot(),
    "both": lambda: run(120).plot(thresholds(run(120), _labels())),
    "thresholds": lambda: thresholds(run(120), _labels()).plot(),
}


def _labels() -> dict[str, dict[str, Any]]:
    """Return what people said of every second candidate, who see it as another judge does."""
    said = [*run(120, judged=3)][::2]
    return {
        each.key: {"": each.passed, "cites": each.contributions["cites"] == 1, "warm": each["warm"].score}
        for each in said
        if each.score is not None
    }


def main(folder: Path, vega: Path) -> None:
    """Write a picture of each chart on a light page and on a dark one."""
    folder.mkdir(parents=True, exist_ok=True)
    scripts = "".join(
        f"<script>{(vega / name / 'build' / f'{name}.min.js').read_text('utf-8')}</script>"
        for name in ("vega", "vega-lite")
    )
    with TemporaryDirectory() as profile, browsing(Path(profile)) as browser:
        for name, plot in PLOTS.items():
            spec = json.dumps(plot().to_dict()).replace("<", "\\u003c")
            for scheme, ground in (("light", "#ffffff"), ("dark", "#11151b")):
                draw = f"new vega.View(vega.parse(vegaLite.compile({spec}).spec), {{renderer: 'svg', container: '#c'}}).runAsync().then(() => (document.title = 'done'))"
                page = folder / f"{name}.html"
                page.write_text(
                    f"<!DOCTYPE html><meta charset=utf-8><body style='background:{ground}'><div id=c></div>{scripts}<script>{draw}</script>",
                    "utf-8",
                )
                tab = browser.open(page.as_uri(), 800, 1300 if name.endswith("40") else 640)
                tab.until("document.title === 'done'")
                tab.picture(folder / f"{name}-{scheme}.png")
                tab.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
