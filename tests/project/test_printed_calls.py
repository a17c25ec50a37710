"""
Every call that a message proposes is one of ours, with options that it has.

`tests/internals/test_cures.py` runs those of the table of guesses.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import attrs
import pytest

import rubric
from rubric.internals.lazy_names import public_names
from tests.places import ROOT

OWNERS: dict[str, Any] = {
    "rubric": rubric.Rubric, "suite": rubric.Suite, "grades": rubric.Grades, "grade": rubric.Grade, "attrs": attrs,
    "Rubric": rubric.Rubric, "Grades": rubric.Grades, "Labels": import_module("rubric.trust").Labels,
}  # fmt: skip
"""What the names before a dot stand for in our messages."""

PROPOSED = re.compile(r"\b(?:[Ww]rite|[Gg]ive|[Cc]all|[Uu]se|[Pp]ass|is|are) (?:await )?(?=[A-Za-z_.]+\()")


def texts_of(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the texts below *node* besides docstrings, with `x` for what an f-string fills in."""
    if isinstance(node, ast.JoinedStr):
        yield node.lineno, "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.lineno, node.value
    else:
        for child in ast.iter_child_nodes(node):
            if not (isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)):
                yield from texts_of(child)


def calls_in(text: str) -> Iterator[ast.Call]:
    """Yield the calls that *text* proposes, each read from its name to the bracket that closes it."""
    for found in PROPOSED.finditer(text):
        rest = text[found.end() :]
        for end, char in enumerate(rest):
            if char == ")":
                try:
                    call = ast.parse(rest[: end + 1], mode="eval").body
                except SyntaxError:
                    continue
                if isinstance(call, ast.Call):
                    yield call
                break


def called(call: ast.Call) -> Any:
    """Return what *call* calls; None if it is a name of the reader's own."""
    match call.func:
        case ast.Name(id=name):
            home = public_names().get(name)
            return None if home is None else getattr(import_module(home), name)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in OWNERS:
            of = rubric if owner == "rubric" and name in dir(rubric) else OWNERS[owner]
            assert hasattr(of, name), f"{owner}.{name}"
            return getattr(of, name)
    return None


def problems_of(where: str, call: ast.Call) -> Iterator[str]:
    """Yield what of *call* cannot be called so."""
    of = called(call)
    if of is None:
        return
    parameters = inspect.signature(of).parameters.values()
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return
    names = {each.name for each in parameters}
    yield from (f"{where}: no {word.arg}" for word in call.keywords if word.arg and word.arg not in {*names, "x"})
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    unbound = isinstance(call.func, ast.Attribute) and inspect.isfunction(of) and "self" in names
    if not any(each.kind is each.VAR_POSITIONAL for each in parameters) and len(call.args) > len(places) - unbound:
        yield f"{where}: too many by place"


@pytest.fixture(scope="module")
def proposed() -> list[tuple[str, ast.Call]]:
    """Return each call that a message proposes, and its place: read by the tests alone, as it takes a second."""
    return [
        (f"{path.relative_to(ROOT)}:{line} {ast.unparse(call)}", call)
        for path in sorted(Path(ROOT, "rubric").rglob("*.py"))
        for line, text in texts_of(ast.parse(path.read_text("utf-8")))
        for call in calls_in(text)
    ]


@pytest.mark.long
def test_a_call_that_is_proposed_has_the_options_that_it_is_given(proposed: list[tuple[str, ast.Call]]) -> None:
    """Each keyword is a parameter, and there are no more arguments by place than it takes."""
    assert not [problem for where, call in proposed for problem in problems_of(where, call)]


def test_calls_are_found(proposed: list[tuple[str, ast.Call]]) -> None:
    """An empty run of this module would be noticed."""
    assert len(proposed) > 40
