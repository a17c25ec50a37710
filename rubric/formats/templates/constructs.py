"""
What a template may hold: a short list of Jinja's constructs, which every tree is held against before anything runs.

There are no calls, no other templates, and no lists of lists that could grow; what is refused is named with its line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from jinja2 import nodes
from jinja2.runtime import Undefined

from rubric.errors import DefinitionError
from rubric.formats.templates.filters import FILTERS
from rubric.validating import suggest

__all__ = ["TESTS", "check", "names"]

MOST_PARTS = 10_000
"""Parts of one template: texts, names, filters."""
DEEPEST = 60
"""Parts of a template within one another."""

_PLAIN: tuple[type[nodes.Node], ...] = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Neg,
    nodes.Pos,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Concat,
    nodes.Const,
    nodes.Getitem,
    nodes.Slice,
    nodes.Keyword,
)
"""What may stand anywhere, whatever it holds."""

_WORDS: dict[type[nodes.Node], str] = {
    nodes.Call: "a call; use a filter, as in {{ names | join }}",
    nodes.Pow: "a power",
    nodes.Import: "import",
    nodes.FromImport: "import",
    nodes.Include: "include",
    nodes.Extends: "extends",
    nodes.Macro: "macro",
    nodes.CallBlock: "call",
    nodes.FilterBlock: "a filter block; use a filter, as in {{ name | upper }}",
    nodes.AssignBlock: "a set block; use {% set name = value %}",
    nodes.Block: "block",
    nodes.Scope: "autoescape; nothing is escaped unless `| escape` says so",
    nodes.With: "with",
}

TESTS: dict[str, Callable[..., bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "defined": lambda value: not isinstance(value, Undefined),
    "mapping": lambda value: isinstance(value, Mapping),
    "none": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "sequence": lambda value: isinstance(value, list | tuple),
    "string": lambda value: isinstance(value, str),
    "undefined": lambda value: isinstance(value, Undefined),
}


def check(root: nodes.Template) -> None:
    """
    Refuse what no template here may hold.

    Raises:
        DefinitionError: It names the first such thing, and its line.
    """
    waiting: list[tuple[nodes.Node, int]] = [(root, 1)]
    parts = 0
    while waiting:
        node, depth = waiting.pop()
        parts += 1
        if parts > MOST_PARTS:
            raise DefinitionError("", f"a template has at most {MOST_PARTS} parts; make it shorter")
        why = f"more than {DEEPEST} parts within one another" if depth > DEEPEST else _refusal(node)
        if why:
            raise DefinitionError("", f"line {node.lineno or 1} of the template: {why}")
        waiting += [(child, depth + 1) for child in reversed([*node.iter_child_nodes()])]


def _refusal(node: nodes.Node) -> str:
    """Say what is wrong with *node* itself; nothing where it may stand."""
    match node:
        case nodes.Name():
            return _private(node.name)
        case nodes.Getattr():
            return _private(node.attr)
        case nodes.Getitem(arg=nodes.Const(value=str(key))):
            return _private(key)
        case nodes.Filter():
            return _unknown("filter", node.name, FILTERS)
        case nodes.Test():
            return _unknown("test", node.name, TESTS)
        case nodes.For() | nodes.Assign():
            return _misshapen(node)
        case nodes.Tuple(ctx="store"):
            return ""
        case nodes.List() | nodes.Dict() | nodes.Tuple() | nodes.Pair():
            return _variable(node)
        case _:
            word = _WORDS.get(type(node), type(node).__name__)
            return "" if isinstance(node, _PLAIN) else f"not allowed here: {word}"


def _misshapen(node: nodes.For | nodes.Assign) -> str:
    if isinstance(node, nodes.For):
        return "a recursive loop is not allowed" if node.recursive else ""
    return "" if isinstance(node.target, nodes.Name) else "`set` takes one name, as in {% set name = value %}"


def _private(name: str) -> str:
    if name == "self":
        return "the name 'self' is Jinja's own; call the variable something else"
    return f"the name {name!r} starts with an underscore; no such name is shown" if name.startswith("_") else ""


def _unknown(kind: str, name: str, known: Iterable[str]) -> str:
    return "" if name in known else f"no {kind} is called {name!r}{suggest(name, known)}"


def _variable(node: nodes.Node) -> str:
    """Say that a list holds more than constants: lists of lists of variables could grow beyond all bounds."""
    parts = (nodes.Const, nodes.List, nodes.Dict, nodes.Tuple, nodes.Pair, nodes.Neg)
    fixed = all(isinstance(child, parts) for child in node.iter_child_nodes())
    return "" if fixed else "a list or mapping made here holds texts and numbers only, no variables"


def names(root: nodes.Template) -> frozenset[str]:
    """Return the names of the variables that a template asks for, those among them that it sets itself."""
    return frozenset(node.name for node in root.find_all(nodes.Name) if node.ctx == "load")
