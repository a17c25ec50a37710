"""Lines of code that errors propose: several for one call become one, and each is checked before it is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from importlib import import_module

from rubric.errors import DefinitionError

_ARGUMENT = "call"  # stands for the call of an argument that is proposed alone
_MADE = frozenset({"Judge", "Jury", "Panel", "Budget", "Limits", "Candidate", "Criterion", "Rubric", "Likert"})
"""The values in such lines that are made to see if they can be: making one reads, sends and changes nothing."""


def merge(line: str, code: str, alike: str, places: Sequence[str]) -> str:
    """
    Return *line*, which calls something, with what *code* changes: `budget=Budget(cost=5)`, or the same call.

    *alike* is another name of the call, and *places* are its arguments without names. What stands around the call in
    one of both, such as `print(...)`, stays. '' if both change one argument, or *code* has no such call.
    """
    outer, call = _call_in(line, "")
    name = ast.unparse(call.func) if call else ""
    code = f"{_ARGUMENT}({code})" if re.match(r"\w+ ?=(?!=)", code) else code
    around, change = _call_in(code, _ARGUMENT, alike, name, name.rpartition(".")[2])
    if call is None or change is None:
        return ""
    old, new = ast.unparse(call), ast.unparse(change)
    is_awaited = outer.startswith("await ")
    if around not in (new, f"await {new}"):  # the call is within something
        if outer not in (old, f"await {old}"):
            return ""
        outer = _call_in(around.replace(new, f"(await {old})" if is_awaited else old, 1), "")[0]
    given, changed = (
        dict(zip(places, each.args, strict=False)) | {each.arg or "": each.value for each in each.keywords}
        for each in (call, change)
    )
    most = max(len(call.args), len(change.args))
    for field, value in changed.items():
        if field not in given or not isinstance(value, ast.Name):
            united = _united(given.get(field), value)
            if united is None:
                return ""
            given[field] = united
    call.args = call.args if not places else [given.pop(each) for each in places[:most] if each in given]
    call.keywords = [ast.keyword(field, value) for field, value in given.items()]
    return outer.replace(old, ast.unparse(call), 1).replace(":\n    ", ": ")


def _call_in(code: str, *names: str) -> tuple[str, ast.Call | None]:
    """Return *code* as `ast` writes it, and the first call in it of one of these *names*; '' is any."""
    try:
        tree = compile(code, "cure", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return code, None
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    found = [each for each in calls if "" in names or ast.unparse(each.func) in names]
    return ast.unparse(tree), found[0] if found else None


def _united(old: ast.expr | None, new: ast.expr) -> ast.expr | None:
    """Return *new* with *old* in the place of `judge` or `candidate`; two calls for one value are one; else None."""
    if isinstance(old, ast.Dict) and isinstance(new, ast.Dict):
        both = {
            ast.unparse(key): (key, value)
            for each in (old, new)
            for key, value in zip(each.keys, each.values, strict=True)
            if key
        }
        return ast.Dict([key for key, _ in both.values()], [value for _, value in both.values()])
    if isinstance(old, ast.List) and isinstance(new, ast.Call) and new.args:  # several judges
        if ast.unparse(new.func) == "Panel":
            new.args = [old]
            return new
        each = [ast.Call(new.func, [judge, *new.args[1:]], new.keywords) for judge in old.elts]
        return ast.List(each)  # type: ignore[arg-type]  # a list is invariant
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
    for node in ast.walk(_call_in(code, "")[1] or ast.Pass()):
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
