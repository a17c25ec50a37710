"""Programs from npm, each in a folder of its own, with a Node.js from there where the machine has none that is new."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

NODE = 22
"""The oldest Node.js that the programs run with."""

_QUIET = ("--no-audit", "--no-fund", "--loglevel=error")


class AbsentError(Exception):
    """A program that cannot be installed here; the text says why."""


def installed(folder: Path, *packages: str) -> Path:
    """
    Install *packages* below *folder*, and return where their programs and `node` are.

    Raises:
        AbsentError: npm is not there, or could not install them.
    """
    if shutil.which("npm") is None:
        raise AbsentError("npm is not there; install Node.js, which brings it")
    folder.mkdir(parents=True, exist_ok=True)
    here = folder / "package.json"
    if not here.exists():
        here.write_text(json.dumps({"private": True}), encoding="utf-8")
    if _major(shutil.which("node")) < NODE and not (folder / "node_modules/.bin/node").exists():
        _npm(folder, "install", f"node@{NODE}")  # whose script takes the binary of this platform
    _npm(folder, "install", "--ignore-scripts", "--omit=optional", *packages)
    return folder / "node_modules/.bin"


def version_in(folder: Path, package: str) -> str:
    """Return the version of *package* that is installed below *folder*."""
    text = (folder / "node_modules" / package / "package.json").read_text(encoding="utf-8")
    return str(json.loads(text)["version"])


def run(programs: Path, *command: str, folder: Path, environ: dict[str, str], timeout: float = 900) -> str:
    """Run a *command* of those in *programs*, in a *folder*; return the end of what it printed."""
    path = os.pathsep.join([str(programs), os.environ.get("PATH", "")])
    environ = {"PATH": path, "HOME": tempfile.gettempdir(), **environ}
    words = [str(programs / command[0]), *command[1:]]
    given: dict[str, Any] = {"cwd": folder, "env": environ, "timeout": timeout}
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, **given)
    except subprocess.TimeoutExpired:  # it waits for another machine
        return f"it took more than {timeout:g} s"
    return f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


def _npm(folder: Path, *words: str) -> None:
    done = subprocess.run(
        ["npm", *words, *_QUIET, "--prefix", str(folder)],
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )
    if done.returncode:
        raise AbsentError(f"npm {' '.join(words)} failed: {done.stderr.strip()[-300:]}")


def _major(node: str | None) -> int:
    if node is None:
        return 0
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.match(r"v(\d+)", said)
    return int(found[1]) if found else 0
