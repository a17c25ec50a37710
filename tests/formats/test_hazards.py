"""Hostile files are refused at a place, in little memory: each is read in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forks import Forks

if not Path("/proc/self/status").exists():
    pytest.skip("memory is measured where Linux tells it", allow_module_level=True)

MEMORY = 200 * 1024 * 1024

READER = """
import resource
from pathlib import Path
from rubric.errors import LoadError
from rubric.formats.rubrics import load
import jsonschema, re2

def status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

def read(path, memory):
    resource.setrlimit(resource.RLIMIT_AS, (status("VmSize:") + memory,) * 2)
    try:
        load(path)
    except LoadError as error:
        print(len(str(error)), str(error).splitlines()[0])
    print(status("VmHWM:"))
"""


@pytest.fixture(scope="module")
def reader() -> Iterator[Forks]:
    """Yield a process that has imported the readers."""
    with Forks(READER) as forks:
        yield forks


def in_layers(layer: str, count: int = 9) -> str:
    """Return *count* lines, each of which repeats the one before nine times."""
    first = "a0: &a0 {x: 1}\n"
    return first + "".join(layer.format(n=n + 1, inner=", ".join([f"*a{n}"] * 9)) for n in range(count))


HAZARDS = {
    "alias bomb": in_layers("a{n}: &a{n} [{inner}]\n"),
    "merge bomb": in_layers("a{n}: &a{n}\n  <<: [{inner}]\n"),
    "self reference": "&a [*a]",
    "many anchors": "".join(f"k{n}: &a{n} {n}\n" for n in range(100_000)),
    "anchors within the size": "".join(f"k{n}: &a{n} {n}\n" for n in range(25_000)),
    "900 brackets": "[" * 900,
    "50,000 brackets": "[" * 50_000,
    "500,000 brackets": "[" * 500_000,
    "500,000 braces": "{" * 500_000,
    "nested braces": "{a: " * 120_000,
    "nested dashes": "- " * 200_000,
    "nested questions": "? " * 200_000,
    "nested blocks": "".join(" " * n + "a:\n" for n in range(1_000)),
    "nested JSON": '{"a": ' * 80_000,
    "whole nested JSON": '{"text": "a", "b": ' + "[" * 5_000 + "]" * 5_000 + "}",
    "duplicate keys": "text: a\ntext: b",
    "keys that are one": "criteria: [{text: a, levels: {1: a, 2: b, 1.0: c}}]",
    "a key as a number and as text": "criteria: [{text: a, levels: {1: a, '1': b, 2: c}}]",
    "YAML 1.1": "%YAML 1.1\n---\ntext: no",
    "infinity by overflow": "text: a\nthreshold: 1e999",
    "infinity": "text: a\nthreshold: .inf",
    "not a number": "text: a\nthreshold: .nan",
    "5,000 digits": "text: a\nthreshold: " + "9" * 5_000,
    "5,000 digits in JSON": '{"text": "a", "threshold": ' + "9" * 5_000 + "}",
    "100,000 hex digits": "text: a\nthreshold: 0x" + "f" * 100_000,
    "date": "text: 2024-01-01",
    "date as a key": "text: a\n2024-01-01: b",
    "Python object": "text: !!python/object/apply:os.system [ls]",
    "bytes": "text: !!binary aGk=",
    "set": "text: !!set {a, b}",
    "ordered mapping": "text: !!omap [a: b]",
    "tuple as a key": "text: a\n? [1, 2]\n: b",
    "second document": "text: a\n---\ntext: b",
    "many documents": "--- a\n" * 50_000,
    "too many parts": "[" + "a," * 250_000,
    "too many criteria": "criteria:\n" + "- {text: a}\n" * 20_000,
    "too long a text": "text: " + "a" * 300_000,
    "too long a quoted text": 'text: "' + "a" * 300_000 + '"',
    "too long a block": "text: |\n" + "  a\n" * 120_000,
    "too many unknown keys": "text: a\n" + "".join(f"k{n}: 1\n" for n in range(9_000)),
    "too large": "text: a\n" + "# comment\n" * 60_000,
    "only line ends": "\n" * 500_000,
    "directives": "%A\n" * 150_000,
    "character beyond Unicode": 'text: "\\UFFFFFFFF"',
    "control character": "text: a\x00",
    "pattern that backtracks beyond RE2": "criteria: [{check: {matches: '(a+)+\\1'}}]",
    "pattern of many counts": "criteria: [{check: {matches: '((a{1000}){1000}){1000}'}}]",
    "pattern within a schema": "criteria: [{check: {fits_schema: {pattern: '(a+)+\\1'}}}]",
    "draft that is none": "criteria: [{check: {fits_schema: {$schema: [1]}}}]",
}


def read_apart(reader: Forks, path: Path) -> list[str]:
    """Return what a process of its own says of the file at *path*: its first problem, its peak of memory in bytes."""
    done = reader.run(f"read({str(path)!r}, {MEMORY})")
    assert (done.status, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("hazard", HAZARDS)
def test_hazard(hazard: str, tmp_path: Path, reader: Forks) -> None:
    """A hostile file gives a bounded error that names the file, and where it is about one the place, within 200 MiB."""
    path = tmp_path / "hazard.yaml"
    path.write_text(HAZARDS[hazard], encoding="utf-8")
    problem, peak = read_apart(reader, path)
    length, _, message = problem.partition(" ")
    whole = f"{path}: a file has at most"
    assert message.startswith(whole) or re.match(rf"{re.escape(str(path))}:\d+:\d+: ", message)
    assert int(length) < 101 * 1_000
    assert int(peak) < MEMORY


@pytest.mark.parametrize("text", ["\\ud800", "\\ude00 and more"])
def test_lone_surrogate_is_text(text: str, tmp_path: Path, reader: Forks) -> None:
    """Half a surrogate is odd, and harmless: it loads."""
    path = tmp_path / "odd.yaml"
    path.write_text(f'text: "{text}"', encoding="utf-8")
    assert len(read_apart(reader, path)) == 1
