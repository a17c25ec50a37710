"""
ES modules and TypeScript as plain JavaScript: the body of a function, which the embedded engine takes.

tree-sitter (in the extra `javascript`) parses the text. Types become spaces, so that lines stay where they are; imports
and exports become calls of what `javascript_modules` puts around the body. What only a compiler can write, such as an
`enum`, is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from rubric.programs.javascript import EXTRA, JavaScriptError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_OF_MODULES = re.compile(r"^[^\S\n]*(?:import|export)\b|\bimport\s*[(.]", re.MULTILINE)
_REQUIRED = re.compile(r"\brequire\(\s*(['\"])([^'\"\n]+)\1\s*\)")
_AT_ONCE = re.compile(r"^(?:(?:const|let|var)\b[^\n]*=\s*)?require\(\s*(['\"])([^'\"\n]+)\1\s*\)", re.MULTILINE)
"""What a module requires when it starts, unless it is written in a strange way: then it is missed only as it runs."""


@frozen
class Rewritten:
    """
    A module as the *body* of a function of `module`, `exports`, `require`, and of what an ES module needs.

    It names the modules *names* anywhere, and cannot start without those that are *needed*.
    """

    body: str
    names: tuple[str, ...]
    needed: tuple[str, ...]
    is_es: bool = False


@lru_cache(maxsize=64)
def rewritten(text: str, *, typescript: bool) -> Rewritten:
    """Return the module *text*; raises JavaScriptError: it has what is not carried out."""
    text = re.sub(r"\A#!", "//", text)  # a line for the shell, which a function cannot begin with
    named = [match[1] for match in _REQUIRED.findall(text)]
    if not typescript and not _OF_MODULES.search(text):
        return Rewritten(text, tuple(named), tuple(match[1] for match in _AT_ONCE.findall(text)))
    work = _Rewriting(text.encode(), typescript=typescript)
    root = _parser().parse(work.source).root_node
    if root.has_error:
        raise JavaScriptError(f"this is no {'TypeScript' if typescript else 'JavaScript'} that is read here")
    work.walk(root)
    body = work.rewrite()
    if not work.is_es:
        return Rewritten(body, (*named, *work.names), (), is_es=False)
    found = dict.fromkeys(name for name, scope in work.imports if work.is_used(scope))
    scope = {
        own: pair for _, scope in work.imports for own, pair in scope.items() if own in work.used or not typescript
    }
    exports = ", ".join(f"{json.dumps(name)}: () => {value}" for name, value in work.exports)
    every = "".join(f"$all({json.dumps(name)}); " for name in work.every)
    wrapped = (
        f"with ($scope({json.dumps([*found])}, {json.dumps(scope)})) {{ (function () {{ 'use strict'; "
        f"$export({{{exports}}}); {every}{body}\n}}).call(undefined); }}"
    )
    return Rewritten(wrapped, (*found, *named, *work.names), tuple(found), is_es=True)


@cache
def _parser() -> Parser:
    try:
        import tree_sitter_typescript  # noqa: PLC0415 - of an extra
        from tree_sitter import Language, Parser  # noqa: PLC0415 - as above
    except ImportError:
        raise JavaScriptError(f"ES modules and TypeScript need a parser; install it: {EXTRA}") from None
    return Parser(Language(tree_sitter_typescript.language_typescript()))


_NODES = tomllib.loads(files("rubric.formats").joinpath("javascript_nodes.toml").read_text("utf-8"))
_TYPES, _DECLARATIONS, _FUNCTIONS = (frozenset(_NODES[key].split()) for key in ("types", "declarations", "functions"))
_REFUSED: dict[str, str] = _NODES["refused"]
_WORDS: dict[str, tuple[str, ...]] = {node: tuple(words.split()) for node, words in _NODES["words"].items()}
"""Nodes, and the words of TypeScript in them."""


@define
class _Rewriting:
    """
    The changes to one text: its *edits* by bytes (None: white space), imports, exports and names of values.

    *every* has the modules of which it exports everything, *names* those that `import()` names.
    """

    source: bytes
    typescript: bool
    edits: list[tuple[int, int, str | None]] = field(factory=list)
    imports: list[tuple[str, dict[str, tuple[str, str]]]] = field(factory=list)
    exports: list[tuple[str, str]] = field(factory=list)
    every: list[str] = field(factory=list)
    names: list[str] = field(factory=list)
    used: set[str] = field(factory=set)
    is_es: bool = False

    def is_used(self, scope: dict[str, tuple[str, str]]) -> bool:
        """True if an import with *scope* is of more than types; TypeScript leaves out one that is not."""
        return not self.typescript or not scope or bool(self.used & scope.keys())

    def rewrite(self) -> str:
        parts, at = [], 0
        for start, end, text in sorted(self.edits, key=lambda edit: edit[:2]):
            if start < at:  # within a part that is gone
                continue
            gone = re.sub(rb"[^\n]", b" ", self.source[start:end])
            parts += [self.source[at:start], gone if text is None else text.encode() + b"\n" * gone.count(b"\n")]
            at = end
        return b"".join([*parts, self.source[at:]]).decode("utf-8", "replace")

    def erase(self, node: Node, text: str | None = None) -> None:
        self.edits.append((node.start_byte, node.end_byte, text))

    def _erase_type(self, node: Node) -> None:
        """Erase a type. A line may end in it, but not before `=>`, nor between `async` and its parameters."""
        after = node.next_sibling
        while after is not None and after.children:
            after = after.children[0]
        if after is not None and after.type in ("=>", "("):
            self.edits.append((node.start_byte, after.end_byte, f" {after.type}"))
        else:
            self.erase(node)

    def walk(self, root: Node) -> None:
        waiting: list[tuple[Node, bool]] = [(root, False)]
        while waiting:
            node, inside = waiting.pop()
            inside = inside or node.type in _FUNCTIONS
            if node.type in ("await_expression", "for_in_statement") and not inside and _has(node, "await"):
                raise JavaScriptError("it has an `await` outside of functions")
            waiting += [(child, inside) for child in self._take(node)]

    def _take(self, node: Node) -> Iterator[Node]:
        """Note what becomes of *node*, and yield the parts of it that are to be looked at."""
        kind = node.type
        if kind in _REFUSED:
            raise JavaScriptError(f"it has {_REFUSED[kind]}, which only a compiler turns into JavaScript")
        if kind in _TYPES or (kind == "public_field_definition" and _has(node, "declare")):
            self._erase_type(node)
        elif kind in _DECLARATIONS:
            self.erase(node, ";")
        elif kind == "import_statement":
            self._import(node)
        elif kind == "export_statement":
            yield from self._export(node)
        elif kind in ("as_expression", "satisfies_expression"):
            self.edits.append((node.children[0].end_byte, node.end_byte, None))
            yield node.children[0]
        elif kind == "import":  # import() and import.meta; a statement does not come here
            self.erase(node, "$import")
        else:
            self._note_names(node)
            self._leave_words_out(node, _WORDS.get(kind, ()))
            yield from node.children

    def _note_names(self, node: Node) -> None:
        if node.type in ("identifier", "shorthand_property_identifier"):
            self.used.add(_text(node))
        elif node.type == "call_expression" and node.children[0].type == "import":
            name = _string(node.child_by_field_name("arguments"))
            self.names += [name] if name else []

    def _leave_words_out(self, node: Node, words: tuple[str, ...]) -> None:
        for child in node.children:
            if child.type in words:
                self.erase(child)
            if node.type in ("required_parameter", "optional_parameter"):
                if child.type in ("accessibility_modifier", "readonly", "override_modifier"):
                    raise JavaScriptError("it has a parameter that is a property, which only a compiler writes")
                if child.type == "this":
                    after = node.next_sibling
                    end = after.end_byte if after is not None and after.type == "," else node.end_byte
                    self.edits.append((node.start_byte, end, None))

    # -- imports and exports -------------------------------------------------------------------------------

    def _import(self, node: Node) -> None:
        self.is_es = True
        self.erase(node, ";")
        if _has(node, "type", "typeof"):
            return
        for child in node.children:
            if child.type in _REFUSED:
                raise JavaScriptError(f"it has {_REFUSED[child.type]}, which only a compiler turns into JavaScript")
        source = _string(node.child_by_field_name("source"))
        scope: dict[str, tuple[str, str]] = {}
        for clause in _children_of(node, "import_clause"):
            for part in clause.children:
                if part.type == "identifier":
                    scope[_text(part)] = (source, "default")
                elif part.type == "namespace_import":
                    scope[_text(part.children[-1])] = (source, "*")
                for outer, own in _pairs(part, "import_specifier"):
                    scope[own] = (source, outer)
            if not scope:  # all of it are types
                return
        self.imports.append((source, scope))

    def _export(self, node: Node) -> Iterator[Node]:
        self.is_es = True
        kinds = {child.type for child in node.children}
        declaration, value = node.child_by_field_name("declaration"), node.child_by_field_name("value")
        if "type" in kinds or (declaration is not None and declaration.type in _DECLARATIONS):
            self.erase(node, ";")
        elif value is not None:
            self.exports.append(("default", "$default"))
            self.edits.append((node.start_byte, value.start_byte, "const $default = "))
            self.edits.append((value.end_byte, value.end_byte, ";"))
            yield value
        elif declaration is not None:
            self.edits.append((node.start_byte, declaration.start_byte, None))
            for own in _bound_names(declaration):
                self.exports.append(("default" if "default" in kinds else own, own))
            yield declaration
        elif "=" in kinds or "as" in kinds:
            raise JavaScriptError("it has `export =`, which only a compiler turns into JavaScript")
        else:
            self._export_names(node)

    def _export_names(self, node: Node) -> None:
        self.erase(node, ";")
        at = node.child_by_field_name("source")
        source = "" if at is None else _string(at)
        if source:
            self.imports.append((source, {}))
        if _has(node, "*"):
            self.every.append(source)
        for part in _children_of(node, "namespace_export"):
            self.exports.append((_unquote(part.children[-1]), f"$from({json.dumps(source)}, '*')"))
        for part in _children_of(node, "export_clause"):
            for own, outer in _pairs(part, "export_specifier"):
                self.used.add(own)
                value = f"$from({json.dumps(source)}, {json.dumps(own)})" if source else own
                self.exports.append((outer, value))


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _has(node: Node, *kinds: str) -> bool:
    return any(child.type in kinds for child in node.children)


def _unquote(node: Node) -> str:
    return _text(node).strip("'\"")


def _string(node: Node | None) -> str:
    """Return the text of the first plain string in *node*, which may be one; '' where there is none."""
    if node is not None and node.type == "arguments":
        node = next((child for child in node.children if child.type == "string"), None)
    return "" if node is None or node.type != "string" else _unquote(node)


def _children_of(node: Node, kind: str) -> list[Node]:
    return [child for child in node.children if child.type == kind]


def _pairs(node: Node, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the two names of each specifier in a clause: `a as b` is both, `a` twice the same; no types."""
    for one in _children_of(node, kind):
        if not any(child.type in ("type", "typeof") for child in one.children[:1]):
            names = [_unquote(child) for child in one.children if child.type in ("identifier", "string")]
            if not names or _has(one, "default"):
                names = [_unquote(child) for child in one.children if child.type not in ("as", ",")]
            yield names[0], names[-1]


def _bound_names(node: Node) -> Iterator[str]:
    """Yield the names that a declaration gives to something."""
    name = node.child_by_field_name("name")
    if node.type not in ("lexical_declaration", "variable_declaration"):
        if name is not None:
            yield _text(name)
        return
    waiting = [at for part in _children_of(node, "variable_declarator") if (at := part.child_by_field_name("name"))]
    while waiting:
        at = waiting.pop(0)
        if at.type in ("identifier", "shorthand_property_identifier_pattern"):
            yield _text(at)
        elif at.type in ("assignment_pattern", "object_assignment_pattern"):
            waiting.append(at.children[0])
        elif at.type == "pair_pattern":
            waiting.append(at.children[-1])
        elif at.type in ("object_pattern", "array_pattern", "rest_pattern"):
            waiting += at.children
