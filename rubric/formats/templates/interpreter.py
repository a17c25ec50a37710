"""
An interpreter of templates: Jinja's parser, and a walk of the tree that it returns, over plain data.

Nothing is compiled, and names lead to items of the data alone, so a template reaches nothing else. A tree is checked
before it is walked: what is not carried out is named, with its line. Each step is counted, and costs more where texts
are long, so that no template can exhaust the processor or the memory.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, cast

from attrs import define, field
from jinja2 import Environment, nodes
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

from rubric import DefinitionError
from rubric.embed import LackingError, fields
from rubric.formats.templates.filters import FILTERS, NUNJUCKS, Missing, as_text, check_size, join_parts

MOST_PARTS = 10_000
"""Parts of one template: texts, names, filters."""

DEEPEST = 60
"""Parts of a template within one another."""

MOST_WORK = 20_000_000
"""The cost of one rendering: about one for each character made, and 100 for each part of the template that runs."""

MOST_ROUNDS = 10_000
"""Rounds of all loops of one rendering."""

_OWN_WORK = 20_000
"""What a filter that the file brings is charged each time: it is run in a process of its own."""

_CARRIED_OUT: tuple[type[nodes.Node], ...] = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And,
    nodes.Or, nodes.Not, nodes.Add, nodes.Concat, nodes.Const, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Filter,
    nodes.Test, nodes.For, nodes.Assign, nodes.Tuple, nodes.List, nodes.Neg, nodes.Sub, nodes.Mul, nodes.Div,
    nodes.FloorDiv, nodes.Mod, nodes.Pow,
)  # fmt: skip

_COMPUTED: dict[type[nodes.Node], Callable[[float, float], float]] = {
    nodes.Sub: operator.sub,
    nodes.Mul: operator.mul,
    nodes.Div: operator.truediv,
    nodes.FloorDiv: operator.floordiv,
    nodes.Mod: math.fmod,
    nodes.Pow: math.pow,
}

_CURES: dict[type[nodes.Node], str] = {
    nodes.Call: "a call; use a filter, as in {{ names | join }}",
    nodes.FilterBlock: "a filter block; use a filter, as in {{ name | upper }}",
    nodes.AssignBlock: "a set block; use {% set name = value %}",
    nodes.Scope: "autoescape; nothing is escaped unless `| escape` says so",
    nodes.FromImport: "import",
    nodes.CallBlock: "call",
}

_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda one, other: one == other,
    "ne": lambda one, other: one != other,
    "lt": lambda one, other: one < other,
    "lteq": lambda one, other: one <= other,
    "gt": lambda one, other: one > other,
    "gteq": lambda one, other: one >= other,
    "in": lambda one, other: one in (other or ()),
    "notin": lambda one, other: one not in (other or ()),
}

TESTS: dict[str, Callable[..., bool]] = {
    "defined": lambda value: not isinstance(value, Missing),
    "undefined": lambda value: isinstance(value, Missing),
}


class _Dialect(Extension):
    """Nunjucks where it differs from Jinja: `===`, `!==`, `elseif` and `null`."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        """Yield the tokens as Jinja has them."""
        before = ""
        for token in stream:
            kind, value = token.type, token.value
            if kind == "name" and value == "elseif" and before == "block_begin":
                yield Token(token.lineno, "name", "elif")
            elif kind == "name" and value == "null" and before != "dot":
                yield Token(token.lineno, "name", "none")
            elif not (kind == "assign" and before in ("eq", "ne")):
                yield token
            before = kind


_JINJA = Environment(extensions=[_Dialect], keep_trailing_newline=True)  # noqa: S701  # it parses, and makes nothing


def parse_template(template: str, own: Collection[str] = ()) -> nodes.Template:
    """Return the tree of *template*, with *own* filters; what is not carried out is a `LackingError`."""
    root = _JINJA.parse(template)
    waiting: list[tuple[nodes.Node, int]] = [(root, 1)]
    parts = 0
    while waiting:
        node, depth = waiting.pop()
        parts += 1
        line = f"line {getattr(node, 'lineno', 1)} of the template"
        if parts > MOST_PARTS:
            raise DefinitionError("", f"a template has at most {MOST_PARTS} parts; make it shorter")
        if depth > DEEPEST:
            raise DefinitionError("", f"{line}: more than {DEEPEST} parts within one another")
        if isinstance(node, nodes.Filter) and node.name not in {*FILTERS, *own}:
            raise _unknown_filter(node.name, {*FILTERS, *own}, line)
        if lack := _lack(node):
            shown = f"a template with {lack.partition(';')[0]}, which is not carried out (write what it makes)"
            raise LackingError(shown, f"{line}: not allowed here: {lack}")
        waiting += [(child, depth + 1) for child in reversed([*node.iter_child_nodes()])]
    return root


def _lack(node: nodes.Node) -> str:
    """Return the name of a construct that is not carried out, and a cure; '' for all others."""
    match node:
        case nodes.Test(name=name) if name not in TESTS:
            return f"the test {name!r}"
        case nodes.For(recursive=True):
            return "a recursive loop"
        case nodes.Assign(target=target) if not isinstance(target, nodes.Name):
            return "`set` of more than one name; write {% set name = value %}"
        # Lists of lists of variables could grow beyond all bounds.
        case nodes.List(items=items) if not all(isinstance(item, nodes.Const) for item in items):
            return "a list of anything but texts and numbers"
        case nodes.Tuple(ctx="load"):
            return "a tuple"
        case _:
            return "" if isinstance(node, _CARRIED_OUT) else _CURES.get(type(node), type(node).__name__.lower())


def _unknown_filter(name: str, known: set[str], line: str) -> LackingError:
    if name in NUNJUCKS:
        lack = f"a template with the filter {name!r}, which is not carried out (write what it makes)"
        return LackingError(lack, f"{line}: no filter is called {name!r} here; it is one of Nunjucks")
    lack = f"the filter {name!r} of nunjucksFilters, which is code (write its result in its place)"
    return LackingError(lack, f"{line}: no filter is called {name!r}{fields.suggest(name, known)}", filter=name)


@define
class Rendering:
    """One rendering, its work so far, and the *longest* text of a step; *keep* shows missing variables as written."""

    variables: dict[str, Any]
    own: Mapping[str, Callable[..., Any]]
    keep: bool
    longest: int
    work: int = field(default=0, init=False)
    rounds: int = field(default=0, init=False)

    def texts(self, body: Sequence[nodes.Node]) -> Iterator[str]:
        """Yield the texts that the statements *body* make."""
        for node in body:
            match node:
                case nodes.Output(nodes=shown):
                    yield from (self._text(self._value(part)) for part in shown)
                case nodes.If(test=test, body=then, elif_=others, else_=last):
                    branches = [(test, then), *((other.test, other.body) for other in others)]
                    yield from self.texts(next((own for when, own in branches if self._value(when)), last))
                case nodes.For():
                    yield from self._loop(node)
                case nodes.Assign(target=nodes.Name(name=name), node=value):
                    self.variables[name] = self._value(value)

    def _loop(self, node: nodes.For) -> Iterator[str]:
        looped: Any = self._value(node.iter) or ()
        if not isinstance(looped, str | list | tuple | dict):
            raise DefinitionError("", f"the template loops over {type(looped).__name__}; give it a list")
        names = [node.target] if isinstance(node.target, nodes.Name) else cast("nodes.Tuple", node.target).items
        items = [*looped.items()] if isinstance(looped, dict) and len(names) > 1 else [*looped]
        self.rounds += len(items)
        if self.rounds > MOST_ROUNDS:
            raise DefinitionError("", f"the loops of the template go more than {MOST_ROUNDS} rounds; shorten the lists")
        outside = self.variables
        for index, item in enumerate(items):
            values = [item] if len(names) == 1 else [*item] if isinstance(item, list | tuple) else []
            if len(values) != len(names):
                raise DefinitionError("", "the template loops over pairs, and an item is none; give it a mapping")
            bound = {cast("nodes.Name", name).name: value for name, value in zip(names, values, strict=True)}
            self.variables = {**outside, **bound, "loop": _place(index, len(items))}
            if node.test is None or self._value(node.test):
                yield from self.texts(node.body)
        self.variables = outside
        if not items:
            yield from self.texts(node.else_)

    def _charge(self, work: int) -> None:
        self.work += work
        if self.work > MOST_WORK:
            message = "the template does too much work: its loops are too long, or its texts too large; make it smaller"
            raise DefinitionError("", message)

    def _count(self, value: Any) -> Any:
        """Count and return what a step makes."""
        check_size(size := len(value) if isinstance(value, str | list | tuple | dict) else 1)
        self.longest = max(self.longest, size)
        self._charge(size)
        return value

    def _text(self, value: Any) -> str:
        if isinstance(value, Missing):
            return f"{{{{ {value.name} }}}}" if self.keep else ""
        return str(self._count(as_text(value)))

    def _value(self, node: nodes.Node) -> Any:  # noqa: C901, PLR0912 - a case for each expression
        """Return the value of an expression."""
        self._charge(100 + self.longest // 64)
        match node:
            case nodes.Const(value=value) | nodes.TemplateData(data=value):
                return value
            case nodes.Name(name=name):
                return self.variables.get(name, Missing(name))
            case nodes.Getattr(node=inner, attr=name):
                return self._item(self._value(inner), name)
            case nodes.Getitem(node=inner, arg=arg):
                return self._item(self._value(inner), self._value(arg))
            case nodes.Filter(node=nodes.Node() as inner, name=name, args=args, kwargs=named):
                given = {str(one.key): self._value(one.value) for one in named}
                return self._filter(name, self._value(inner), [self._value(one) for one in args], given)
            case nodes.Test(node=inner, name=name):
                return TESTS[name](self._value(inner))
            case nodes.Not(node=inner):
                return not self._value(inner)
            case nodes.And(left=left, right=right):
                return self._value(left) and self._value(right)
            case nodes.Or(left=left, right=right):
                return self._value(left) or self._value(right)
            case nodes.CondExpr(test=test, expr1=then, expr2=other):
                chosen = then if self._value(test) else other
                return "" if chosen is None else self._value(chosen)
            case nodes.Compare(expr=first, ops=operands):
                return self._compare(self._value(first), operands)
            case nodes.Concat(nodes=parts):
                return self._count(join_parts(as_text(self._value(part)) for part in parts))
            case nodes.Add(left=left, right=right):
                return self._add(self._value(left), self._value(right))
            case nodes.Neg(node=inner):
                return self._compute(operator.sub, 0, self._value(inner))
            case nodes.BinExpr(left=left, right=right):
                return self._compute(_COMPUTED[type(node)], self._value(left), self._value(right))
            case nodes.List(items=items):
                return [self._value(item) for item in items]
            case _:  # `parse_template` has refused it
                raise AssertionError(node)

    def _item(self, holder: Any, key: Any) -> Any:
        """Return the item *key* of a mapping, a list or a text."""
        if isinstance(holder, Missing):
            return Missing(f"{holder.name}.{key}")
        if key == "length" and isinstance(holder, str | list | tuple):
            return len(holder)
        try:
            items: Any = holder if isinstance(holder, str | list | tuple | dict) else {}
            return items[key]
        except (LookupError, TypeError):
            return Missing(str(key))

    def _filter(self, name: str, value: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        function = self.own.get(name, FILTERS.get(name))
        if function is None:
            raise AssertionError(name)
        given = value if name in ("d", "default") or not isinstance(value, Missing) else None
        self._charge(len(given) if isinstance(given, str | list | tuple | dict) else 1)
        if name in self.own:
            self._charge(_OWN_WORK)
            return self._count(function(given, *args, *([named] if named else [])))
        return self._count(function(given, *args, **named))

    def _compare(self, left: Any, operands: Sequence[nodes.Operand]) -> bool:
        for operand in operands:
            right = self._value(operand.expr)
            if not _COMPARED[operand.op](left, right):
                return False
            left = right
        return True

    def _add(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) or isinstance(right, str):
            return self._count(join_parts([as_text(left), as_text(right)]))
        if all(isinstance(side, int | float) for side in (left, right)):
            return left + right
        raise DefinitionError("", "the template adds what is neither text nor number")

    def _compute(self, by: Callable[[float, float], float], left: Any, right: Any) -> int | float:
        """Return the number that *by* makes of two, or of texts that hold one; in 64 bits, as in JavaScript."""
        try:
            made = by(float(left), float(right))
            return int(made) if made.is_integer() and abs(made) <= 2**53 else made
        except (ArithmeticError, TypeError, ValueError):
            shown = f"{as_text(left)!r} and {as_text(right)!r}"
            raise DefinitionError("", f"the template computes with {shown}, which makes no number") from None


def _place(index: int, count: int) -> dict[str, Any]:
    """Return what a loop knows of its round."""
    left = count - index
    ends = {"first": not index, "last": left == 1, "length": count}
    return {"index": index + 1, "index0": index, "revindex": left, "revindex0": left - 1, **ends}
