"""
Run the sides that are named, or all: `python -m tests.upstream [--newest] [--folder FOLDER] [SIDE ...]`.

So many folders of others as `--count` says are run by promptfoo's side too, each configuration whole: those of
`--trees`, by default the collected examples, where they are there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from tests.places import SHARED
from tests.upstream.npm import AbsentError
from tests.upstream.verdicts import report

TREES = SHARED / "trees" / "promptfoo-examples"
SIDES = ("promptfoo", "agentv")
"""The modules here that have a `NAME`, its `PINNED` packages, `NAMED` differences, and `compared`."""


def main() -> int:
    """Print what each side shows; return 1 for a difference that the documentation does not name."""
    parser = argparse.ArgumentParser(prog="python -m tests.upstream")
    parser.add_argument("sides", nargs="*", metavar="SIDE", help=f"of {', '.join(SIDES)}; all, if left out")
    parser.add_argument("--newest", action="store_true", help="the newest release, and not the pinned one")
    parser.add_argument("--folder", type=Path, help="where the programs are installed, or will be")
    parser.add_argument(
        "--trees", type=Path, default=TREES, help="a folder of folders with configurations of promptfoo"
    )
    parser.add_argument("--count", type=int, default=20, help="how many of them are drawn; 0: none")
    given = parser.parse_args()
    failed = 0
    for name in given.sides or SIDES:
        side = import_module(f"tests.upstream.{name}")
        folder = (given.folder or Path(tempfile.gettempdir()) / "rubric-upstream") / name
        try:
            version, pairs = side.compared(folder, newest=given.newest)
            if name == "promptfoo" and given.count and given.trees.is_dir():
                from tests.upstream import promptfoo_trees as trees

                pairs += trees.of_trees(folder / "node_modules/.bin", trees.folders_of(given.trees, given.count))
        except AbsentError as why:
            print(f"{side.NAME}: skipped, since {why}")
            continue
        text, silent = report(side.NAME, pairs, side.NAMED)
        print(f"{side.NAME} {version}: {text}")
        failed += silent
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
