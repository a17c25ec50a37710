"""Lines of code that errors propose: several for one call become one, and each is checked before it is printed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib import import_module

from rubric.errors import DefinitionError

_ARGUMENT = "call"  # stands for the call of an argument that is proposed alone
_MADE = frozenset({"Judge", "Jury", "Panel", "Budget", "Limits", "Candidate", "Criterion", "Rubric", "Likert"})
"""The values in such lines that are made to see if they can be: making one reads, sends and changes nothing."""


def merge(line: str, code: str, alike: str, places: Sequence[str]) -> str:
    """
    Return *line*, a call, with what *code* changes: an argument, as in `budget=Budget(cost=5)`, or the same call.

    *alike* is another name of the call, and *places* are its arguments without names. '' if both change one argument,
    or if *code* calls another function.
    """
    awaited = "await " if line.startswith("await ") else ""
    call, change = _call(line.removeprefix(awaited)), _call(code)
    if call is None or change is None or ast.unparse(change.func) not in (_ARGUMENT, alike, ast.unparse(call.func)):
        return ""
    given, changed = (
        dict(zip(places, each.args, strict=False)) | {each.arg or "": each.value for each in each.keywords}
        for each in (call, change)
    )
    for name, new in changed.items():
        if name not in given or not isinstance(new, ast.Name):
            united = _united(given.get(name), new)
            if united is None:
                return ""
            given[name] = united
    call.args = (
        call.args
        if not places
        else [given.pop(name) for name in places[: max(len(call.args), len(change.args))] if name in given]
    )
    call.keywords = [ast.keyword(name, value) for name, value in given.items()]
    return awaited + ast.unparse(call)


def _call(code: str) -> ast.Call | None:
    """Return *code* as a call; an argument alone, such as `n=5`, is one of a call without a name."""
    try:
        tree = ast.parse(f"{_ARGUMENT}({code})" if code.partition("=")[0].isidentifier() else code, mode="eval").body
    except SyntaxError:
        return None
    return tree if isinstance(tree, ast.Call) else None


def _united(old: ast.expr | None, new: ast.expr) -> ast.expr | None:
    """Return *new* with *old* in the place of `judge` or `candidate`; two calls for one value are one; else None."""
    if isinstance(old, ast.Dict) and isinstance(new, ast.Dict):
        return ast.Dict([*old.keys, *new.keys], [*old.values, *new.values])
    if not isinstance(old, ast.Call):
        return new if old is None or isinstance(old, ast.Name) else _Names(old).visit(new)
    if not isinstance(new, ast.Call):
        return None
    for jury, judge in ((old, new), (new, old)):
        if (ast.unparse(jury.func), ast.unparse(judge.func)) == ("Jury", "Judge"):
            jury.args[0] = judge
            return jury
    old.keywords += [each for each in new.keywords if each.arg not in {have.arg for have in old.keywords}]
    return old if ast.unparse(old.func) == ast.unparse(new.func) else None


class _Names(ast.NodeTransformer):
    def __init__(self, given: ast.expr) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._given if node.id in {"judge", "candidate"} else node


def problem_in(code: str) -> str:
    """Return why a value that is made in *code*, of plain values alone, cannot be made; '' if all can."""
    for node in ast.walk(_call(code) or ast.Pass()):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _MADE and "..." not in ast.unparse(node):
            try:
                args = [ast.literal_eval(each) for each in node.args]
                named = {each.arg or "": ast.literal_eval(each.value) for each in node.keywords}
                getattr(import_module("rubric"), ast.unparse(node.func))(*args, **named)
            except DefinitionError as problem:
                return str(problem)
            except ValueError:  # a name, or a call, which is made for itself
                continue
    return ""
