"""Lines of code that errors propose: several for one call become one, and each is checked before it is printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from importlib import import_module
from inspect import signature
from types import FunctionType
from typing import Any

import attrs

from rubric.errors import DefinitionError

_ARGUMENT = "argument"  # stands for the call of an argument that is proposed alone
_VARIABLES = {"rubric", "judge", "grade", "grades", "suite", "candidate", "criterion", "labels"}
_VERBS = {f"rubric.{verb}" for verb in ("passing_at", "expects", "requires", "scores", "rates", "chooses", "penalizes")}
_MADE = _VERBS | {
    *("Judge", "Jury", "Panel", "Budget", "Limits", "Candidate", "Criterion", "Rubric", "Likert"),
    *("ContainsAll", "ContainsAny", "attrs.evolve"),
}
"""The values in such lines that are made to see if they can be: making one reads, sends and changes nothing."""

_MODULES = frozenset({"attrs", "base64", "json", "logging", "numpy", "pandas"})  # whose functions such lines call
OPTION = r"\w+ ?=(?!=)"  # how a line begins that is an argument alone
_LINE = r"(?:; |, |\? |: )(?:(?:or|without|for|from|to|if|with),? [^;]{0,80}?)?(?:[Ww]rite|give) (?=[^;])"  # then code


def merge(line: str, code: str, alike: str, places: Sequence[str]) -> str:
    """
    Return *line*, a call, with what *code* changes: `budget=Budget(cost=5)`, or the call, which is also named *alike*.

    *places* are arguments without names; what is around a call, as `print(...)`, stays. '' if both change one argument.
    """
    outer, call = _call_in(line, alike, f"a{alike}")  # within print(...), say
    outer, call = (outer, call) if call else _call_in(line, "")
    name = ast.unparse(call.func) if call else ""
    code = f"{_ARGUMENT}({code})" if re.match(OPTION, code) else code
    verbs = re.findall(r"(?<![\w'])rubric\.\w+(?=\()", code) if name.startswith("rubric.") else []
    around, change = _call_in(code, _ARGUMENT, alike, f"a{alike}", name, name.rpartition(".")[2], *verbs)
    if call is None or change is None:
        return ""
    old, new = ast.unparse(call), ast.unparse(change)
    is_awaited = outer.startswith("await ")
    call.func = change.func if ast.unparse(change.func) in (*verbs, f"a{alike}") else call.func
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
    if places:
        further = (change.args or call.args)[len(places) :]
        call.args = [given.pop(each) for each in places[:most] if each in given] + further
    call.keywords = [ast.keyword(field, value) for field, value in given.items()]
    return outer.replace(old, ast.unparse(call), 1).replace(":\n    ", ": ").replace("\n", "; ")


def _call_in(code: str, *names: str) -> tuple[str, ast.Call | None]:
    """Return *code* as `ast` writes it, and the first call in it of one of these *names*; '' is any."""
    if (tree := _parsed(code)) is None:
        return code, None
    calls = sorted((n for n in ast.walk(tree) if isinstance(n, ast.Call)), key=lambda n: ast.unparse(n.func) == "print")
    found = [each for each in calls if "" in names or ast.unparse(each.func) in names]
    return ast.unparse(tree), found[0] if found else None


def _parsed(code: str) -> ast.AST | None:
    try:
        return compile(code, "cure", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)  # type: ignore[no-any-return]
    except SyntaxError:
        return None


def _united(old: ast.expr | None, new: ast.expr) -> ast.expr | None:
    """Return *new* with *old* in the place of `judge` or `candidate`; two calls for one value are one; else None."""
    if isinstance(old, ast.Dict) and isinstance(new, ast.Dict):
        pairs = [*zip(old.keys, old.values, strict=True), *zip(new.keys, new.values, strict=True)]
        both = {ast.unparse(key): (key, value) for key, value in pairs if key}
        return ast.Dict([key for key, _ in both.values()], [value for _, value in both.values()])
    if isinstance(old, ast.List) and isinstance(new, ast.Call) and new.args:  # several judges
        if ast.unparse(new.func) == "Panel":
            new.args = [old]
            return new
        each = [ast.Call(new.func, [judge, *new.args[1:]], new.keywords) for judge in old.elts]
        return ast.List(each)  # type: ignore[arg-type]  # a list is invariant
    if isinstance(old, ast.Constant) and isinstance(new, ast.Constant):
        return new if str(old.value) in str(new.value) else old  # what was typed
    if not isinstance(old, ast.Call):
        return new if old is None or isinstance(old, ast.Name) else _Names(old).visit(new)
    if not isinstance(new, ast.Call):  # a text may be within the one that it became
        return old if isinstance(new, ast.Constant) and ast.unparse(new) in ast.unparse(old) else None
    for jury, judge in ((old, new), (new, old)):
        if (ast.unparse(jury.func), ast.unparse(judge.func)) == ("Jury", "Judge"):
            jury.args[0] = judge
            return jury
    old.keywords += [each for each in new.keywords if each.arg not in {have.arg for have in old.keywords}]
    return (old if new.keywords else new) if ast.unparse(old.func) == ast.unparse(new.func) else None


class _Names(ast.NodeTransformer):
    def __init__(self, given: ast.expr) -> None:
        self._given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "rubric" and isinstance(self._given, ast.Constant):
            return ast.Call(ast.parse("Rubric.of", mode="eval").body, [self._given], [])
        return self._given if node.id in {"judge", "candidate"} else node


def sound(text: str, lost_in: Callable[[str], object] | None = None, own: str = "") -> str:
    """
    Return *text*, an error's, without the lines of code that do not fit what they call; prose stays.

    A line becomes an example of what is allowed if *lost_in* is true for it: it lacks a value that was typed. It gets
    the imports that it needs, but for that of the caller's *own* call.
    """
    for found, code in lines_in(text):
        try:
            problem: object = problem_in(code)
            for node in ast.walk(ast.parse(code.replace("await ", ""))):
                _bind(node)
        except (TypeError, AttributeError, ImportError, SyntaxError) as misfit:
            problem = str(misfit)
        if problem:
            mark = found[0].strip(",;: ")  # a question keeps its own
            return sound(text.replace(found + code, mark, 1), lost_in, own)
        if lost_in is not None and not re.match(f"$|{OPTION}", code) and lost_in(code):
            shown = re.sub("(without .*, )?([Ww]rite|give) $", "such as ", found)
            return sound(text.replace(found + code, shown + code, 1), lost_in, own)
    for found, code in lines_in(text):
        tail = ".by_points()" * code.startswith("rubric.penalizes(") * (".by_points()" not in code)  # else none counts
        text = text.replace(found + code, f"{found}{imports_of(code, own)}{code}{tail}", 1)
    return text


def imports_of(code: str, own: str = "", *, whole: bool = False) -> str:
    """Return the statements before *code* that import what it calls and `rubric` lacks; with *whole*, that has too."""
    tree = None if re.match(OPTION, code) else _parsed(code)
    nodes = [*ast.walk(tree)] if tree else []
    there = {each.name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for each in node.names}
    there.add(own.partition(".")[0])
    parts = (f"rubric.{part}" for part in ("values", "formats", "store", "suites", "runs", "quality", "trust"))
    homes = {**_homes(*parts, "rubric"), "takewhile": "itertools", "Path": "pathlib", "SequenceMatcher": "difflib"}
    called = dict.fromkeys(n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name))
    owners = dict.fromkeys(n.value.id for n in nodes if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name))
    lines = [f"import {name}; " for name in owners if name in _MODULES and name not in there]
    kinds = [name for name in owners if name[:1].isupper()]  # a small one is a value, called as its function
    needed = [name for name in (*called, *kinds) if name in homes and name not in there]
    froms = dict[str, list[str]]()
    for name in dict.fromkeys(name for name in needed if whole or homes[name] != "rubric"):
        froms.setdefault(homes[name], []).append(name)
    ours = sorted(froms, key=lambda home: home.startswith("rubric"))  # after the others', as linters sort them
    return "".join([*lines, *(f"from {home} import {', '.join(sorted(froms[home]))}; " for home in ours)])


def lines_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield what stands before each line in *text*, an error's, and its code; '' where it is prose."""
    for found in re.finditer(_LINE, text):
        ends = [found.end() + each.start() for each in re.finditer(r"; |$|, or ", text[found.end() :])]
        codes = [text[found.end() : end] for end in ends]
        yield found[0], next((c for c in codes if _call_in(f"f({c})" if re.match(OPTION, c) else c, "")[1]), "")


def with_argument(code: str, name: str, value: str, word_in: Callable[[str, str, Collection[str]], str]) -> str:
    """Return *code* with one argument more in the innermost call that takes it, by *name* or by what that means."""
    tree = ast.parse(code.replace("await ", ""))
    for call in [each for each in ast.walk(tree) if isinstance(each, ast.Call)][::-1]:
        of = _named(call.func, is_called=True)
        taken = [*signature(of).parameters] if callable(of) else []
        word = name if name in taken else word_in(ast.unparse(call.func).rpartition(".")[2], name, taken)
        more = merge(code, f"{word}={value}", ast.unparse(call.func), ()) if word else ""
        if more and sound(f"; write {more}"):
            return more
    return code


def _bind(node: ast.AST) -> None:
    """Raise a `TypeError` for a call that does not fit what it calls, an `AttributeError` for one that is not there."""
    if isinstance(node, ast.Attribute):
        _named(node)
    if isinstance(node, ast.Call) and callable(called := _named(node.func, is_called=True)):
        is_method = isinstance(called, FunctionType) and "self" in signature(called).parameters
        named = {each.arg: each for each in node.keywords if each.arg}
        if not any(isinstance(each, ast.Starred) for each in node.args) and len(named) == len(node.keywords):
            signature(called).bind(*[None] * is_method, *node.args, **named)


def _named(node: ast.expr, *, is_called: bool = False) -> Any:
    """Return what *node*, a name or an attribute of one, is: of ours, or the class of what we call so; else None."""
    homes = _homes("rubric.trust", "rubric")
    if isinstance(node, ast.Attribute) and not (ast.unparse(node.value) == "rubric" and node.attr in homes):
        owner = _named(node.value)
        fields = [field.name for field in attrs.fields(owner)] if attrs.has(owner) else []
        if isinstance(owner, FunctionType | property | cached_property):  # or a result called as its function
            return None
        if owner is not None and not hasattr(owner, node.attr) and node.attr not in fields:
            raise AttributeError(node.attr)
        return None if node.attr in fields else getattr(owner, node.attr, None)
    name = getattr(node, "id", "") or getattr(node, "attr", "")  # the package's: a rubric is called so as well
    name = name.title() if name in _VARIABLES and not is_called else name
    return getattr(import_module(homes[name]), name) if name in homes else None


def _homes(*modules: str) -> dict[str, str]:
    return {name: module for module in modules for name in import_module(module).__all__}


def problem_in(code: str, **values: Any) -> str:
    """Return why a value that is made in *code*, of plain *values* and those with a name, cannot be; '' if all can."""

    def value(node: ast.expr) -> Any:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return value(node.left) * value(node.right)
        return values[node.id] if isinstance(node, ast.Name) and node.id in values else ast.literal_eval(node)

    for node in ast.walk(_call_in(code, "")[1] or ast.Pass()):
        called = ast.unparse(node.func) if isinstance(node, ast.Call) and "..." not in ast.unparse(node) else ""
        if isinstance(node, ast.Call) and called in _MADE:
            package = import_module("rubric")
            try:
                named = {each.arg or "": value(each.value) for each in node.keywords}
                of = attrs if called == "attrs.evolve" else package.Rubric() if called in _VERBS else package
                getattr(of, called.rpartition(".")[2])(*map(value, node.args), **named)
            except DefinitionError as problem:
                return str(problem)
            except ValueError:  # a name, or a call, which is made for itself
                continue
    return ""
