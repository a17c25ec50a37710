"""
A sandbox for untrusted templates: Jinja's own, with an allowlist of constructs, plain data and a budget of work.

Every syntax tree is checked before anything runs: calls, other templates and lists of lists that could grow are
refused, with the line. Each node that runs is charged, more in loops and where texts are long, so that no template can
exhaust the processor or the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

from jinja2 import nodes, pass_environment
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream
from jinja2.runtime import ChainableUndefined, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from rubric import DefinitionError
from rubric.embed import LackingError, fields
from rubric.formats.templates.filters import FILTERS, as_text, check_size, joined

MOST_PARTS = 10_000
"""Parts of one template: texts, names, filters."""

DEEPEST = 60
"""Parts of a template within one another."""

_PLAIN: tuple[type[nodes.Node], ...] = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And,
    nodes.Or, nodes.Not, nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod,
    nodes.Concat, nodes.Const, nodes.Getitem, nodes.Slice, nodes.Keyword,
)  # fmt: skip
"""Nodes that are allowed anywhere, whatever they hold."""

_REFUSED: dict[type[nodes.Node], str] = {
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

_NUNJUCKS = frozenset({
    "batch", "center", "forceescape", "groupby", "nl2br", "random", "reject", "rejectattr", "select", "selectattr",
    "slice", "urlize",
})  # fmt: skip
"""Filters of Nunjucks that are not here."""

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


def check(root: nodes.Template, own: Collection[str] = ()) -> None:
    """
    Refuse a syntax tree with a construct that is not allowed; *own* are the filters that the file brings.

    Raises:
        DefinitionError: It names the first such construct, and its line.
    """
    waiting: list[tuple[nodes.Node, int]] = [(root, 1)]
    filters = {*FILTERS, *own}
    parts = 0
    while waiting:
        node, depth = waiting.pop()
        parts += 1
        if parts > MOST_PARTS:
            raise DefinitionError("", f"a template has at most {MOST_PARTS} parts; make it shorter")
        why = f"more than {DEEPEST} parts within one another" if depth > DEEPEST else _refusal(node, filters)
        beyond = type(node) in _REFUSED or (isinstance(node, nodes.Filter) and node.name in _NUNJUCKS)
        if why and beyond:  # it is no slip: what needs it may be left out
            named = f"the filter {node.name!r}" if isinstance(node, nodes.Filter) else ""
            shown = named or why.partition(";")[0].removeprefix("not allowed here: ")
            lack = f"a template with {shown}, which is not carried out (write what it makes)"
            raise LackingError(lack, f"line {node.lineno or 1} of the template: {why}")
        if isinstance(node, nodes.Filter) and why:
            lack = f"the filter {node.name!r} of nunjucksFilters, which is code (write its result in its place)"
            raise LackingError(lack, f"line {node.lineno or 1} of the template: {why}", filter=node.name)
        if why:
            raise DefinitionError("", f"line {node.lineno or 1} of the template: {why}")
        waiting += [(child, depth + 1) for child in reversed([*node.iter_child_nodes()])]


def _refusal(node: nodes.Node, filters: set[str]) -> str:
    """Return why *node* itself is not allowed, or ''."""
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name) | nodes.Getitem(arg=nodes.Const(value=str(name))):
            if name == "self":
                return "the name 'self' is Jinja's own; call the variable something else"
            return f"the name {name!r} starts with an underscore; no such name is shown" if name.startswith("_") else ""
        case nodes.Filter() | nodes.Test():
            kind, known = ("filter", filters) if isinstance(node, nodes.Filter) else ("test", TESTS)
            if kind == "filter" and node.name in _NUNJUCKS - filters:
                return f"no filter is called {node.name!r} here; it is one of Nunjucks"
            return "" if node.name in known else f"no {kind} is called {node.name!r}{fields.suggest(node.name, known)}"
        case nodes.For():
            return "a recursive loop is not allowed" if node.recursive else ""
        case nodes.Assign():
            return "" if isinstance(node.target, nodes.Name) else "`set` takes one name, as in {% set name = value %}"
        case nodes.Tuple(ctx="store"):
            return ""
        case nodes.List() | nodes.Dict() | nodes.Tuple() | nodes.Pair():
            # Lists of lists of variables could grow beyond all bounds.
            fixed = (nodes.Const, nodes.List, nodes.Dict, nodes.Tuple, nodes.Pair, nodes.Neg)
            if all(isinstance(child, fixed) for child in node.iter_child_nodes()):
                return ""
            return "a list or mapping made here holds texts and numbers only, no variables"
        case _:
            shown = _REFUSED.get(type(node), type(node).__name__)
            return "" if isinstance(node, _PLAIN) else f"not allowed here: {shown}"


MOST_WORK = 20_000_000
"""The cost of one rendering: about one for each character made, and 100 for each node of the template that runs."""

MOST_ROUNDS = 10_000
"""Rounds of all loops of one rendering."""

LARGEST_NUMBER = 2**53


class Dialect(Extension):
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


class Counting(NodeTransformer):
    """Puts our own filters where Jinja would loop or join texts uncounted."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  # Jinja's name
        """Count the rounds of a loop, each with the nodes that run in it."""
        weight = sum(1 for _ in node.find_all(nodes.Node))
        pairs = isinstance(node.target, nodes.Tuple)
        self.generic_visit(node)
        node.iter = _filtered(cast("nodes.Expr", node.iter), "_rounds", nodes.Const(weight), nodes.Const(pairs))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802  # Jinja's name
        """Count the texts that `~` joins."""
        self.generic_visit(node)
        return _filtered(node.nodes[0], "_concat", *node.nodes[1:])


def _filtered(node: nodes.Expr, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


class Kept(ChainableUndefined):
    """A missing variable, left as it was written; one that is not kept is empty, and so are its items."""

    def __str__(self) -> str:
        return f"{{{{ {self._undefined_name} }}}}"


class Sandbox(ImmutableSandboxedEnvironment):
    """The environment of one rendering: plain data, our filters, and the work done so far."""

    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "%"})

    def __init__(self, own: Mapping[str, Callable[..., Any]] = {}, *, keep: bool = False) -> None:
        super().__init__(
            autoescape=False,
            cache_size=0,
            extensions=[Dialect],
            finalize=self._show,
            keep_trailing_newline=True,
            optimized=False,
            undefined=Kept if keep else ChainableUndefined,
        )
        self.globals = {}
        self.filters = {
            name: pass_environment(partial(_apply, function, name in _RAW)) for name, function in FILTERS.items()
        }
        self.filters |= {name: pass_environment(partial(_run_own, function)) for name, function in own.items()}
        self.filters |= {"_rounds": pass_environment(_rounds), "_concat": pass_environment(_concat)}
        self.tests = {**TESTS}
        self.work = self.rounds = self.longest = 0

    def charge(self, work: int) -> None:
        """Count *work*; a `DefinitionError` says that it is too much."""
        self.work += work
        if self.work > MOST_WORK:
            message = "the template does too much work: its loops are too long, or its texts too large; make it smaller"
            raise DefinitionError("", message)

    def charge_parts(self, parts: int) -> None:
        """Count nodes that run; they cost more where texts are long."""
        self.charge(parts * (100 + self.longest // 64))

    def made(self, value: Any) -> Any:
        """Count and return the result of a filter or an operator."""
        check_size(size := len(value) if isinstance(value, str | list | tuple | dict) else 1)
        self.longest = max(self.longest, size)
        self.charge(size)
        return value

    def _show(self, value: Any) -> str:
        text = as_text(value)
        return text if isinstance(value, str) else str(self.made(text))

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return the item called *attribute*: names never lead to attributes of Python objects."""
        if isinstance(obj, LoopContext):
            return getattr(obj, attribute) if attribute in _LOOP else self.undefined(name=attribute)
        if attribute == "length" and isinstance(obj, str | list | tuple):
            return len(obj)
        return self.getitem(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Return the item of a mapping, a list or a text; nothing where there is none."""
        if isinstance(obj, Undefined):
            return self.undefined(name=f"{obj._undefined_name}.{argument}")  # noqa: SLF001  # Jinja keeps it there
        if not isinstance(obj, str | list | tuple | dict):
            return self.undefined(name=str(argument))
        try:
            found = obj[argument]
        except (LookupError, TypeError, ValueError):
            return self.undefined(name=str(argument))
        return self.made(found)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """Apply *operator* to two numbers; `+` takes texts too. Numbers stay within ±2**53."""
        del context
        if operator == "+" and (isinstance(left, str) or isinstance(right, str)):
            return _concat(self, left, right)
        for side in (left, right):
            if isinstance(side, bool) or not isinstance(side, int | float):
                raise DefinitionError("", f"the template has {operator!r} with what is no number ({_kind(side)})")
        if abs(left) > LARGEST_NUMBER or abs(right) > LARGEST_NUMBER:
            raise DefinitionError("", f"the template has {operator!r} with a number beyond ±2**53")
        return self.binop_table[operator](left, right)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse every call; no template that was checked holds one."""
        del args, kwargs
        raise DefinitionError("", "not allowed here: a call")


_RAW = {"d", "default"}
"""Filters that see undefined values."""

_LOOP = {"index", "index0", "revindex", "revindex0", "first", "last", "length"}


def _kind(value: Any) -> str:
    return "nothing" if value is None or isinstance(value, Undefined) else type(value).__name__


def _apply(function: Callable[..., Any], raw: bool, sandbox: Sandbox, value: Any, *args: Any, **named: Any) -> Any:  # noqa: FBT001
    given = value if raw or not isinstance(value, Undefined) else None
    if isinstance(given, str | list | tuple | dict):
        sandbox.charge(len(given))
    return sandbox.made(function(given, *args, **named))


_OWN_WORK = 20_000
"""What a filter that the file brings is charged each time: it is run in a process of its own."""


def _run_own(function: Callable[..., Any], sandbox: Sandbox, value: Any, *args: Any, **named: Any) -> Any:
    sandbox.charge(_OWN_WORK)
    return _apply(function, False, sandbox, value, *args, *([named] if named else []))  # noqa: FBT003


def _concat(sandbox: Sandbox, *parts: Any) -> str:
    return str(sandbox.made(joined(map(as_text, parts))))


def _rounds(sandbox: Sandbox, value: Any, weight: int, pairs: bool) -> Sequence[Any]:  # noqa: FBT001
    if value is None or isinstance(value, Undefined):
        return []
    if not isinstance(value, str | list | tuple | dict):
        raise DefinitionError("", f"the template loops over {_kind(value)}; give it a list")
    sandbox.rounds += len(value)
    if sandbox.rounds > MOST_ROUNDS:
        raise DefinitionError("", f"the loops of the template go more than {MOST_ROUNDS} rounds; shorten the lists")
    sandbox.charge_parts(weight * len(value))
    return [*value.items()] if pairs and isinstance(value, dict) else [*value]
