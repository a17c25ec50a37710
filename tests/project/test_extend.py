"""A package outside of the checkout that holds what the page for plug-ins shows, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

from tests.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "how-to" / "extend.md").read_text()
USE = """
from rubric import Rubric, load_suite, loads_suite
from my_plugins import Scorer

suite = load_suite("list.yaml")
print(suite.format, suite.run("offline").render("buildlog"), end="")
text = "cases: [{id: words, output: a a a a, rubric: {criteria: [{text: x, check: {assertion: {type: distinct-share, threshold: 0.6}}}]}}]"
print(loads_suite(text).run("offline").render("buildlog"), end="")
from rubric import grade
from rubric.formats import dumps_suite
text = "{judge: citations, cases: [{id: cited, output: 'As said [1], and [2].', rubric: Cites two}]}"
suite = loads_suite(text)
print(suite.run().render("buildlog"), grade("See [1].", "Cites two", "citations").findings[0].reason, "judge: citations" in dumps_suite(suite))
print(Scorer("Names the price", "offline")({"question": "What?", "answer": "No."})["label"])
"""


def test_a_package_written_from_the_page_adds_all_five(tmp_path: Path) -> None:
    """Its adapter, format, assertion type, reporter and judge work together, in a process that starts elsewhere."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (table,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    entry_points = table.replace("[project.entry-points.", "[").replace('"', "")
    wheel, info = tmp_path / "my_plugins-1.0-py3-none-any.whl", "my_plugins-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("my_plugins.py", "\n".join(blocks))
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: my-plugins\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", entry_points)
        archive.writestr(f"{info}/RECORD", "")
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(site)]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120)
    (tmp_path / "list.yaml").write_text("checklist:\n  - say: Hello there.\n    expect: [Names the price]\n")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(site), str(ROOT)))}
    done = subprocess.run(
        [sys.executable, "-c", USE], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "checklist case-1: failed\nwords: failed\n 1 citations True\nfail\n")
