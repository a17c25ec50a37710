"""
mcptest's external scorers: programs that grade the response of each eval, beside its rubric.

A scorer of the type `exec` reads `{input, output, criteria, metadata}` on standard input, all texts but the last, and
writes `{verdict, score, reasoning, cost_usd}`; its verdict decides. Here it is a `Script`, which runs only where the
caller allows it, behind a few lines of Python that hand it what it knows. It grades a case of its own for each eval.
See "External scorers" in mcptest's documentation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import resources

from attrs import evolve

from rubric import Criterion, DecisionTree, Rubric
from rubric.embed import Check, Cursor, shorten
from rubric.suites.cases import Case
from rubric.values import Script, Unsupported

_KEYS = ("name", "type", "command", "env", "cwd", "timeout_ms")
_MILLISECONDS = 1000
_USUAL = 30_000
"""Milliseconds after which mcptest stops a scorer that says nothing else."""

_HANDS_OVER = resources.files("rubric.formats.mcptest").joinpath("hand_over.txt").read_text("utf-8")
"""The program that runs a scorer in the process of the script, and ends as it ends."""


def read_scorers(at: Cursor) -> dict[str, Check]:
    """Return the check of each scorer of a file, by its name."""
    found: dict[str, Check] = {}
    for item in at.listing("a list of scorers"):
        if not item.mapping("a scorer (a mapping with name, type and command)") or not item.needs("name"):
            continue
        item.only(_KEYS)
        name, kind = item["name"].text(), item.value.get("type", "exec")
        if name is None:
            continue
        if name in found:
            item["name"].error(f"the name {name!r} belongs to another scorer already; give it another")
        elif kind != "exec":
            item["type"].warn(f"scorers of the type {shorten(repr(kind), 40)} are not supported: cases are ungraded")
            found[name] = Unsupported(f"a scorer of the type {shorten(str(kind), 40)}, and not exec,")
        elif (script := _script(item)) is not None:
            found[name] = script
    return found


def _script(at: Cursor) -> Script | None:
    if not at.needs("command"):
        return None
    words = [word.text() for word in at["command"].listing("a list: the program and its arguments")]
    if not words or None in words:
        return None
    if at.has("env"):
        at["env"].warn("these variables are not passed: a program of a file sees none that may hold a key", key=True)
    timeout = at["timeout_ms"].number(0, above=True) if at.has("timeout_ms") else _USUAL
    folder = at["cwd"].text() if at.has("cwd") else ""
    if timeout is None or folder is None:
        return None
    return at.built(Script, ["python", "-c", _HANDS_OVER, *words], folder=folder, timeout=timeout / _MILLISECONDS)


def score_by(cases: Iterable[Case], scorers: Mapping[str, Check]) -> Iterator[Case]:
    """Yield a case for each of *cases* and each of *scorers*, which decides it alone."""
    for case in cases:
        for name, check in scorers.items():
            told = evolve(check, config={"eval": case.id}) if isinstance(check, Script) else check
            criterion = Criterion(_text(case.rubric), id=name, answer=told)
            rubric = Rubric(name, criteria=[criterion], threshold=None)
            yield evolve(case, id=f"{case.id} [{name}]", rubric=rubric, judge=None)


def _text(rubric: Rubric) -> str:
    """Return what *rubric* asks for, as one text: that is the `criteria` of a scorer."""
    asked = rubric.tree.question if isinstance(rubric.tree, DecisionTree) else rubric.name
    return rubric.text or "\n".join(f"- {criterion.text}" for criterion in rubric.criteria) or asked
