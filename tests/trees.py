"""
Whole repositories of other systems, end to end: each suite in a folder is loaded and run, and its cases are counted.

    python -m tests.trees ../shared/trees/promptfoo-examples
    python -m tests.trees examples --without ../shared/trees/promptfoo-examples --sample 40 --seed 1 --most 12

A local server is the model that answers and the judge that grades, both through LiteLLM. What is printed is the table
in `docs/reference/compatibility.md`, with the share of the cases that assert anything which were graded. A sample is
of the folders in the tree, without those that another tree has too. With `--install` the packages whose lack is told
are installed from npm into a copy of the folder, as the message says, and its cases are counted then.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from attrs import define, field

from rubric import Judge, load_suite
from rubric.errors import LoadError
from rubric.results.report_rows import Row
from tests.servers import Endpoint, Server, nonce_of, say_yes
from tests.upstream import npm

MODEL = "openai/gpt-5-mini"
JUDGE = Judge(MODEL, embedder="openai/text-embedding-3-large")
_NAMES = re.compile(r"promptfooconfig.*\.(?:ya?ml|json)|.*\.eval\.ya?ml|EVAL\.ya?ml")


@define
class Counted:
    """What became of the files and the cases of a tree."""

    files: int = 0
    refused: dict[str, str] = field(factory=dict)
    cases: Counter[str] = field(factory=Counter)
    reasons: Counter[str] = field(factory=Counter)
    there_too: int = 0
    stand_in: int = 0

    def table(self) -> str:
        """Return the counts as Markdown."""
        rows = [("files that load", self.files - len(self.refused)), ("files that are refused", len(self.refused))]
        graded = self.cases["passed"] + self.cases["failed"]
        rows += [("cases", self.cases.total()), ("cases graded", graded)]
        rows += [("cases deferred or ungraded", self.cases.total() - graded)]
        rows += [(f"because of {why}", count) for why, count in self.reasons.most_common()]
        lines = ["| what | count |", "|---|---|", *(f"| {name} | {count:,} |" for name, count in rows)]
        asserting = self.cases.total() - self.reasons[_NOTHING]
        apart = sum(self.reasons[kind] for kind in (_PROGRAMS, _MODERATION))
        for what, of in (
            ("that assert anything", asserting),
            ("without red teams, moderation and programs", asserting - apart),
            ("of these that promptfoo itself can grade", asserting - apart - self.there_too),
        ):
            lines.append(f"graded, of the cases {what}: {graded:,} of {of:,}, {graded / max(1, of):.1%}")
        both, of = graded + self.stand_in, asserting - apart
        lines.append(
            f"with those that only the stand-in's answer leaves ungraded: {both:,} of {of:,}, {both / max(1, of):.1%}"
        )
        return "\n".join(lines)


def suites_in(root: Path, *, every: bool = False) -> list[Path]:
    """Return the files below *root* that its system takes for suites by their names, or *every* one that holds data."""
    names = re.compile(r".*\.(?:ya?ml|jsonl?)") if every else _NAMES
    return sorted(path for path in root.rglob("*") if names.fullmatch(path.name))


def respond(body: dict[str, Any]) -> str:
    """Give what asks for a verdict the best one that its schema has, and answer all else."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    if schema is None:
        return say_yes(body) if nonce_of(body) else "A short answer: Paris, 42, yes."
    return json.dumps({**_fitting(schema), **({"nonce": nonce} if (nonce := nonce_of(body)) else {})})


def _fitting(schema: dict[str, Any]) -> Any:
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _fitting(schema[key][0])
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        values = [value for value in schema["enum"] if value is not None]
        return max(values) if all(isinstance(value, bool | int | float) for value in values) else values[-1]
    match schema.get("type"):
        case "object":
            return {name: _fitting(inner) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return [_fitting(item) for item in schema.get("prefixItems", ())]
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("maximum", 1)
        case _:
            return "It does."


@contextmanager
def openai_server() -> Iterator[Endpoint]:
    """Take the place of OpenAI: a local server that answers and judges, for models by their LiteLLM names."""
    with Server(respond=respond) as server:
        endpoint = server.at("ok")
        base = endpoint.openai
        given = {"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": base, "OPENAI_API_BASE": base}
        with patch.dict(os.environ, given):
            yield endpoint


def _with_packages(files: Sequence[Path], place: Path) -> Iterator[Path]:
    """Yield *files*; one whose prompts lack packages of npm from a copy of its folder that has them."""
    for file in files:
        try:
            told = " ".join(case.unasked for case in load_suite(file))
        except LoadError:
            told = ""
        packages = sorted({*re.findall(r"npm install ([@\w./-]+), in", told)})
        copy = place / file.parent.name
        if packages:
            shutil.copytree(file.parent, copy, dirs_exist_ok=True)
            npm.installed(copy, *packages)
        yield copy / file.name if packages else file


def counted(files: Iterable[Path], most: int | None = None) -> Counted:
    """Run the suites in *files*, of each *most* cases, and count what became of them."""
    found = Counted()
    with openai_server():
        for file in files:
            found.files += 1
            try:
                suite = load_suite(file)
            except LoadError as problem:
                found.refused[str(file)] = problem.problems[0].message
                continue
            if most is not None:
                suite = suite.only(*[case.id for case in suite.cases[:most]])
            lacking = {case.id: case.unsupported for case in suite.plan(JUDGE, target=MODEL)}
            for row in suite.run(JUDGE, target=MODEL, runs=1, concurrency=16):
                found.cases[row.status] += 1
                if row.status in ("ungraded", "deferred"):
                    kind = _reason(row, lacking.get(row.id, ()))
                    found.reasons[kind] += 1
                    found.stand_in += kind == _STAND_IN
                    said = f"{lacking.get(row.id, ())} {row.reason}"
                    found.there_too += kind not in (_NOTHING, _PROGRAMS, _MODERATION) and bool(_THERE.search(said))
    return found


_NOTHING, _PROGRAMS = "the test asserts nothing", "programs, which run only where scripts are allowed"
_STAND_IN = "a transform that failed on the stand-in answer"
_MODERATION = "moderation (also guardrails, the verdict of a provider's moderation) and red teams"
_KINDS = {
    r"^no grader$": _NOTHING,
    r"\bscript |^(?!.*not within reach).*scripts that are not allowed|'python'|^ruby|^webhook": _PROGRAMS,
    r"is a program of the file|tests that a program makes(?!, which failed)": _PROGRAMS,
    r"^(?:not-)?(?:moderation|guardrails|promptfoo:redteam)": _MODERATION,
    r"^(?:classifier|pi$)|simulated user": "classifiers and simulated users",
    r"without functions=": "a type of the project's own, whose function was not given",
    r"JavaScriptError|ThrownError": _STAND_IN,
    r"with a transform|^transform|^vars$": "transforms before a judge, and of variables",
    r"tests that|not within reach|text of a PDF": "tests, or code, that are elsewhere",
    r"unreadable": "a category or a choice that the stand-in judge does not give",
    r"with the provider": "an embedding model that LiteLLM is not known to have",
    r"^trace-|^is-valid": "graders that are not here (traces), and tools in another form",
}
"""
What leaves a case ungraded, by what is said of it. Left out of the second share are red teams, moderation and programs,
and nothing else. promptfoo's page on `guardrails` says that it reads the "provider's built-in guardrails", such as the
content filters of Azure and Bedrock's guardrails: whether the provider flagged the text.
"""

_THERE = re.compile(
    r"promptfoo has no such type|after a transform raised|transform that failed|which is not installed: npm install"
    r"|\bnot within reach"
)
"""
What is said of a case that promptfoo cannot grade either, with the same files and the same answers: the type is not
promptfoo's, the transform of the answer raises an error, a file of the test is missing, a package is not installed.
"""


def _reason(row: Row, lacking: Sequence[str]) -> str:
    """Return the kind of reason for which *row* is ungraded."""
    said = ", ".join(lacking) or row.reason
    said = row.reason if said == "vars" else said  # the name of a variable's program alone
    return next((kind for pattern, kind in _KINDS.items() if re.search(pattern, said)), "other")


def sampled(root: Path, without: Sequence[Path], count: int, seed: int) -> list[Path]:
    """Return *count* folders of *root* that have suites and no namesake in *without*, drawn with *seed*."""
    known = {one.name for other in without for one in other.iterdir()}
    folders = [one for one in sorted(root.iterdir()) if one.is_dir() and one.name not in known and suites_in(one)]
    return sorted(random.Random(seed).sample(folders, min(count, len(folders))))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.trees")
    parser.add_argument("root", type=Path)
    parser.add_argument("--without", type=Path, action="append", default=[], help="a tree whose folders are left out")
    parser.add_argument("--sample", type=int, help="so many of its folders")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, help="so many cases of each file")
    parser.add_argument("--install", action="store_true", help="install the packages of npm that prompts lack")
    parser.add_argument("--every", action="store_true", help="each YAML and JSON file, whatever it is called")
    given = parser.parse_args()
    folders = [given.root] if given.sample is None else sampled(given.root, given.without, given.sample, given.seed)
    files = [file for folder in folders for file in suites_in(folder, every=given.every)]
    with tempfile.TemporaryDirectory() as place:
        tree = counted(_with_packages(files, Path(place)) if given.install else files, given.most)
    refused = [f"refused: {name}: {why[:160]}\n" for name, why in tree.refused.items()]
    sys.stdout.write("".join([tree.table(), "\n", *refused]))
