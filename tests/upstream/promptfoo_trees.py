"""
Whole folders of others, each configuration by both sides: promptfoo echoes the prompts, and its results are graded here.

A folder is copied, so that nothing is written into it. Where promptfoo itself fails (a package, a key, another machine),
or where this library is told not to run what the file needs (Python), there is nothing to compare.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

from rubric import DefinitionError, load_suite
from rubric.errors import LoadError
from tests.servers import Server
from tests.trees import suites_in
from tests.upstream import promptfoo
from tests.upstream.judge import respond
from tests.upstream.verdicts import Pair, Verdict, verdict_of

MOST = 12
"""The rows of a configuration that are compared, from its first."""


def folders_of(root: Path, count: int, seed: int = 0) -> list[Path]:
    """Return *count* folders of *root* that hold configurations, drawn with *seed*."""
    found = [one for one in sorted(root.iterdir()) if one.is_dir() and suites_in(one)]
    return sorted(random.Random(seed).sample(found, min(count, len(found))))


def of_trees(programs: Path, folders: Sequence[Path]) -> Iterator[Pair]:
    """Yield both sides of the rows of each configuration in *folders*."""
    with tempfile.TemporaryDirectory() as place, Server(respond=respond) as server:
        environ = promptfoo._environment(server.at("ok").openai)
        for folder in folders:
            copy = Path(place) / folder.name
            shutil.copytree(folder, copy)
            for file in suites_in(copy):
                yield from _of_file(programs, file, environ)


def _of_file(programs: Path, file: Path, environ: dict[str, str]) -> Iterator[Pair]:
    try:
        rows = promptfoo.evaluated(programs, file, environ, "--providers", "echo", "--filter-first-n", str(MOST))
    except RuntimeError:  # it cannot run the file here either
        return
    if not any((row.get("response") or {}).get("output") for row in rows):
        return
    name, results = f"tree: {file.parent.name}/{file.name}", file.parent / "results.json"
    try:
        with patch.dict("os.environ", environ), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            suite = load_suite(file).answered(results)
            found = {row.id: row for row in suite.run(promptfoo.JUDGE, concurrency=8)}
    except (LoadError, DefinitionError) as problem:
        yield Pair(name, "all of it", Verdict(True), Verdict(False, -1, f"REFUSES: {problem}"), file.read_text("utf-8"))
        return
    ours: dict[tuple[int, int], Verdict] = {}
    for case in suite.cases:
        graded = next((one for id_, one in found.items() if id_ == case.id or id_.startswith(f"{case.id} [")), None)
        if graded is not None and graded.status != "deferred":
            ours |= dict.fromkeys(case.columns, verdict_of(graded))
    for row in rows:
        place = (row["testIdx"], row["promptIdx"])
        theirs = promptfoo.their_verdict(row)
        failed = "API call error" in theirs.why  # it cannot ask another machine
        if place in ours and ours[place].passed is not None and not failed:  # what is ungraded is told, with its reason
            shown = json.dumps({"assert": row["testCase"].get("assert"), "output": row.get("response")})
            yield Pair(name, shown, theirs, ours[place])
