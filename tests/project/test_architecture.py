"""The page on the architecture names files and packages that exist."""

from __future__ import annotations

import re

from tests.places import ROOT

PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
TABLE = PAGE[PAGE.index("## Where a new line goes") :]
FILE = re.compile(r"`([\w./*-]+\.(?:css|html|js|json|md|py|pyi|toml))`")


def test_each_file_of_the_table_exists() -> None:
    """A name is a path below the package or the project, or a file beside the one named before it."""
    missing = list[str]()
    for row in re.findall(r"^\|.*\|$", TABLE, re.MULTILINE):
        folder = ROOT
        for name in FILE.findall(row):
            found = [path for base in (ROOT / "rubric", ROOT, folder) for path in base.glob(name)]
            missing += [] if found else [name]
            folder = found[0].parent if found else folder
    assert len(FILE.findall(TABLE)) > 50
    assert not missing


def test_each_package_is_listed() -> None:
    """The listing in the order of the contract has every package."""
    listed = {*re.findall(r"\b([a-z_]+)/", PAGE.split("```")[1])}
    assert {path.parent.name for path in (ROOT / "rubric").glob("*/__init__.py")} <= listed
