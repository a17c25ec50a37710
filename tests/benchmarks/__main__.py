"""
All comparisons, side by side in one run, as the Markdown that `docs/explanation/prompts_and_cost.md` shows.

    python -m tests.benchmarks [--quick]

Libraries that are not installed are left out, and said; `nox -s benchmarks` installs them first. It takes half an hour,
with `--quick` a minute. The benchmarks of kills, budgets, storms and clusters are commands of their own.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from importlib.metadata import version

from tests.benchmarks.instant import ROOT

LIBRARIES = ("aiohttp", "attrs", "litellm")

WHOLE = {
    "calls": "",
    "prefixes": "",
    "costs": "",
    "imports": "",
    "memory": "--profile",
    "fewer": "2000",
    "trust": "",
}
QUICK = {
    "calls": "--calls 100 --rounds 1 --concurrency 16",
    "prefixes": "--criteria 2",
    "costs": "--criteria 3",
    "imports": "--runs 1",
    "memory": "2000 --profile",
    "fewer": "20",
    "trust": "500",
}


def machine() -> str:
    """Return what the figures depend on."""
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {libraries}"


def main() -> int:
    """Print all tables, each from a process of its own; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers, to see that all runs")
    given = parser.parse_args()
    print(f"{machine()}\n", flush=True)
    missed = []
    for name, words in (QUICK if given.quick else WHOLE).items():
        print(f"`python -m tests.benchmarks.{name} {words}`\n", flush=True)
        command = [sys.executable, "-m", f"tests.benchmarks.{name}", *words.split()]
        missed += [name] * (subprocess.run(command, check=False, cwd=ROOT).returncode != 0)
    print(f"Missed: {', '.join(missed) or 'nothing'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
