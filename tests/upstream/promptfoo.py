"""
promptfoo's side: `promptfoo eval` on a file, and this library on the same one.

Each test of `promptfoo_gradings` has its output in the file (`providerOutput`); the files of `promptfoo_files` are
answered by the local server. A judge is the local server on both sides.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rubric import DefinitionError, Judge, load_suite
from rubric.errors import LoadError
from rubric.results.report_rows import Row
from rubric.suites.suite import Suite
from tests.servers import Server
from tests.upstream import npm
from tests.upstream.judge import respond
from tests.upstream.promptfoo_files import LAYOUTS
from tests.upstream.promptfoo_gradings import Grading, gradings
from tests.upstream.promptfoo_named import NAMED
from tests.upstream.verdicts import Pair, Verdict, verdict_of

__all__ = ["NAME", "NAMED", "PINNED", "compared"]

NAME = "promptfoo"
PINNED = ("promptfoo@0.123.1", "@libsql/linux-x64-gnu@0.5.29", "node-sql-parser@5.4.0")
"""From npm, without its optional parts; of these it needs the driver of its database, which is one a platform."""

JUDGE = Judge("openai/gpt-5-mini", embedder="openai/text-embedding-3-large")
_FAILED = 2  # promptfoo's `failureReason` of a row that has an error


def compared(folder: Path, *, newest: bool) -> tuple[str, list[Pair]]:
    """Install promptfoo below *folder*, and return its version, and both sides of all rows."""
    packages = [re.sub("(?<=.)@.*", "@latest", each) if newest else each for each in PINNED]
    programs = npm.installed(folder, *packages)
    pairs = [*of_layouts(programs), *of_gradings(programs, [*gradings()])]
    return npm.version_in(folder, "promptfoo"), pairs


def of_gradings(programs: Path, made: Sequence[Grading]) -> list[Pair]:
    """Return both sides of the gradings *made*."""
    tests = [one.test(number) for number, one in enumerate(made)]
    whole = {"prompts": ["Say {{n}}"], "providers": ["echo"], "tests": tests}
    with tempfile.TemporaryDirectory() as place, Server(respond=respond) as server:
        file = Path(place) / "promptfooconfig.json"
        file.write_text(json.dumps(whole, indent=1), encoding="utf-8")
        environ = _environment(server.at("ok").openai)
        theirs = _by_number(evaluated(programs, file, environ))
        with patch.dict(os.environ, environ):
            ours = graded(file)
    return [
        Pair(one.kind, json.dumps(test, ensure_ascii=False), theirs[str(n)], ours[str(n)], one)
        for n, (one, test) in enumerate(zip(made, tests, strict=True))
    ]


def of_layouts(programs: Path) -> list[Pair]:
    """Return both sides of the rows of each file, ours by promptfoo's own results, and live."""
    pairs: list[Pair] = []
    for name, files in LAYOUTS.items():
        with tempfile.TemporaryDirectory() as place:
            for beside, text in files.items():
                file = Path(place) / (beside or "promptfooconfig.yaml")
                file.parent.mkdir(exist_ok=True)
                file.write_text(text, encoding="utf-8")
            pairs += of_file(programs, name, Path(place) / "promptfooconfig.yaml")
    return pairs


def of_file(programs: Path, name: str, file: Path) -> list[Pair]:
    """Return both sides of the rows of the configuration *file*."""
    try:
        rows = evaluated(programs, file, {})
    except RuntimeError as problem:
        return [Pair(f"file: {name}", "all of it", Verdict(None, None, str(problem)), Verdict(True))]
    theirs = [their_verdict(row) for row in rows]
    cells = [(row["testIdx"], row["promptIdx"]) for row in rows]
    pairs: list[Pair] = []
    for kind, by_results in (("results", True), ("live", False)):
        try:
            suite = load_suite(file)
            asked = suite.answered(file.parent / "results.json") if by_results else suite
            ours = by_cell(suite, asked.run(JUDGE))
        except (LoadError, DefinitionError) as problem:
            ours = dict.fromkeys(cells, Verdict(False, -1, f"REFUSES: {problem}"))
        absent = Verdict(None, None, "no row of the test, prompt and provider")
        sides = zip(cells, theirs, strict=True)
        pairs += [Pair(f"{kind}: {name}", f"test, column {cell}", one, ours.get(cell, absent)) for cell, one in sides]
    return pairs


def by_cell(suite: Suite, rows: Iterable[Row]) -> dict[tuple[int, int], Verdict]:
    """Return the verdicts of *rows* by the test and the column that promptfoo's results name; a run is for each."""
    found: dict[tuple[int, int], Verdict] = {}
    graded = [(row.id, verdict_of(row)) for row in rows]
    for case in suite.cases:
        own = [verdict for id_, verdict in graded if id_ == case.id or id_.startswith(f"{case.id} [")]
        if own:
            found |= zip(case.columns, own if len(own) > 1 else own * len(case.columns), strict=True)
    return found


def _environment(address: str) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": address, "OPENAI_API_BASE": address,
        "OPENAI_API_BASE_URL": address,
    }  # fmt: skip


_SETTINGS = dict.fromkeys(("PROMPTFOO_DISABLE_TELEMETRY", "PROMPTFOO_DISABLE_UPDATE", "PROMPTFOO_DISABLE_REMOTE_GENERATION", "PROMPTFOO_DISABLE_SHARING"), "1")  # fmt: skip


def evaluated(programs: Path, file: Path, environ: dict[str, str], *options: str) -> list[dict[str, Any]]:
    """Return the rows of `promptfoo eval` of *file*, in the order of its table."""
    results = file.parent / "results.json"
    words = ["eval", "-c", file.name, "-o", results.name, "--no-cache", "--no-write", "--no-table", "--no-progress-bar"]
    settings = {**_SETTINGS, **environ, "PROMPTFOO_CONFIG_DIR": str(file.parent / ".promptfoo")}
    said = npm.run(programs, "promptfoo", *words, *options, folder=file.parent, environ=settings)
    if not results.exists():
        raise RuntimeError(f"promptfoo wrote no results: {said}")
    rows = json.loads(results.read_text(encoding="utf-8"))["results"]["results"]
    return sorted(rows, key=lambda row: (row["testIdx"], row["promptIdx"]))


def their_verdict(row: dict[str, Any]) -> Verdict:
    """Return the verdict of a row of promptfoo's results."""
    why = str(row.get("error") or "").partition("\n")[0]
    if row.get("failureReason") == _FAILED:
        return Verdict(None, None, why)
    return Verdict(row["success"], row["score"], why)


def _by_number(rows: list[dict[str, Any]]) -> dict[str, Verdict]:
    return {str(row["vars"]["n"]): their_verdict(row) for row in rows}


def graded(file: Path) -> dict[str, Verdict]:
    """Return our verdicts by the variable `n`; a test that refuses its file is taken out, and refused."""
    refused: dict[str, Verdict] = {}
    whole = json.loads(file.read_text(encoding="utf-8"))
    while True:
        try:
            suite = load_suite(file)
            break
        except LoadError as problem:
            found = {
                int(n): each.message for each in problem.problems for n in re.findall(r"tests\[(\d+)\]", each.path)
            }
            if not found:
                raise
            for n in sorted(found, reverse=True):
                refused[whole["tests"].pop(n)["vars"]["n"]] = Verdict(False, -1, f"REFUSES THE FILE: {found[n]}")
            file.write_text(json.dumps(whole, indent=1), encoding="utf-8")
    rows = suite.run(JUDGE, concurrency=8)
    numbers = {case.id: str(case.variables["n"]) for case in suite.cases}
    return refused | {numbers[row.id]: verdict_of(row) for row in rows}
