"""Where the compared libraries are installed, each in an environment of its own, and how a way is run there."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.instant import ROOT
from tests.benchmarks.ways import QUIET, WAYS

PEERS = Path(os.environ.get("RUBRIC_PEERS", ROOT / ".nox" / "peers"))
"""A folder with an environment for each compared library; `nox -s benchmarks` makes it."""

LONGEST = 300  # seconds


class Failed(Exception):  # noqa: N818 - it says what came of a run
    """Why a way could not be measured."""


def python_of(home: str) -> Path | None:
    """Return the Python of *home*, ours if it is empty; None if it is not there."""
    python = PEERS / home / "bin" / "python" if home else Path(sys.executable)
    return python if python.exists() else None


def installed() -> list[str]:
    """Return the ways whose libraries are there; say which are not."""
    missing = [name for name, way in WAYS.items() if python_of(way.home) is None]
    if missing:
        print(f"Not installed, and left out: {', '.join(missing)}. `nox -s benchmarks` installs them.\n")
    return [name for name in WAYS if name not in missing]


def environment(home: str) -> dict[str, str]:
    """Return the environment variables of *home*: this checkout is found in ours alone, which has its name."""
    return {**os.environ, **QUIET, "PYTHONWARNINGS": "ignore", "PYTHONPATH": "" if home else str(ROOT)}


def words_of(said: str) -> str:
    """Return the line of a traceback that names the error, the last there is."""
    errors = [line for line in said.splitlines() if re.match(r"[\w.]+(?:Error|Exception|Exit)\b", line)]
    return (errors or ["it ended without a word"])[-1][:200]


def run_way(way: str, **spec: Any) -> dict[str, Any]:
    """
    Run *way* in a fresh process of its environment.

    Raises:
        Failed: It ended with an error, or did not end.
    """
    home = WAYS[way].home
    given = {"warm": 0, "concurrency": 64, **spec, "way": way}
    command = [str(python_of(home)), "-P", str(ROOT / "tests" / "benchmarks" / "ways.py"), json.dumps(given)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment(home), timeout=LONGEST, check=True
        )
    except subprocess.TimeoutExpired:
        raise Failed(f"no result within {LONGEST} seconds") from None
    except subprocess.CalledProcessError as error:
        raise Failed(words_of(error.stderr)) from None
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
