"""
Render templates: `{{ name }}` and a little more of Jinja, as users of Nunjucks write it.

Nothing is escaped, a missing variable is empty, and lists and mappings are shown as JSON (promptfoo shows `[object
Object]`). `sandbox` says what a template may hold. `show_environment` puts in the environment variables that a file
asks for: only those that the caller declares; `os.environ` is never read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any, Literal

from attrs import define, field, frozen
from jinja2 import Template, TemplateError, nodes

from rubric.errors import DefinitionError
from rubric.formats.cursor import Loading, Notes
from rubric.formats.document import KeyPath
from rubric.formats.templates.filters import LARGEST, too_large
from rubric.formats.templates.sandbox import Counting, Sandbox, check, names
from rubric.internals.text import shorten

LONGEST = 200_000
"""Characters of one template."""

MOST_DATA = 4_000_000
"""Characters of the variables that one template names; each part of them counts as 40 more."""


def is_template(text: str) -> bool:
    """True if *text* holds anything that `render` would replace."""
    return any(mark in text for mark in ("{{", "{%", "{#"))


def names_in(template: str) -> frozenset[str]:
    """
    Return the names that *template* asks for.

    Raises:
        DefinitionError: It is no template, or uses what templates here may not.
    """
    return _prepared(template).names


def render(template: str, variables: Mapping[str, Any], *, unknown: Literal["empty", "keep"] = "empty") -> str:
    """
    Return *template* with *variables* in their places.

    Args:
        template: What is rendered; what the variables hold is not rendered again.
        variables: Plain data: texts, numbers, booleans, nothing, lists and mappings.
        unknown: What becomes of names that *variables* does not have: nothing, or they stay as they are.

    Raises:
        DefinitionError: It is no template, uses what templates here may not (with the line), or grows beyond bounds.
    """
    if not is_template(template):
        return template
    prepared = _prepared(template)
    sandbox = Sandbox(keep=unknown == "keep")
    plain = _Plain()
    data = plain.take({name: variables[name] for name in prepared.names if name in variables})
    sandbox.longest = plain.size
    try:
        return _run(prepared, sandbox, data)
    except DefinitionError:
        raise
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as problem:
        raise DefinitionError("", f"the template cannot be rendered: {shorten(str(problem), 120)}") from None


@frozen
class _Prepared:
    """A template that was checked: its code, its names, and of how many parts it is."""

    code: CodeType
    names: frozenset[str]
    parts: int


@lru_cache(maxsize=64)
def _prepared(template: str) -> _Prepared:
    if len(template) > LONGEST:
        raise DefinitionError("", f"a template has at most {LONGEST} characters; shorten it")
    sandbox = Sandbox()
    try:
        root = sandbox.parse(template)
        check(root)
        parts = sum(1 for _ in root.find_all(nodes.Node))
        asked = names(root)
        return _Prepared(sandbox.compile(Counting().visit(root), "rubric"), asked, parts)
    except TemplateError as problem:
        line = getattr(problem, "lineno", 1)
        raise DefinitionError("", f"line {line} of the template: {shorten(problem.message or '', 160)}") from None
    except DefinitionError:
        raise
    except (RecursionError, SyntaxError, ValueError, MemoryError):
        raise DefinitionError("", "the template nests too deep, or has too long a number; make it simpler") from None


def _run(prepared: _Prepared, sandbox: Sandbox, data: Mapping[str, Any]) -> str:
    sandbox.charge_parts(prepared.parts)
    template = Template.from_code(sandbox, prepared.code, {})
    parts, size = [], 0
    for part in template.generate(data):
        size += len(part)
        if size > LARGEST:
            raise too_large()
        parts.append(part)
    return "".join(parts)


@define
class _Plain:
    """Copies variables as plain data, within bounds, so that a template meets nothing else."""

    size: int = 0

    def take(self, value: Any, depth: int = 0) -> Any:
        """Return the copy of *value*."""
        self.size += 40 + (len(value) if isinstance(value, str) else 0)
        if self.size > MOST_DATA or depth > 64:  # noqa: PLR2004
            raise DefinitionError("", "the variables of the template hold too much, or nest too deep; give it less")
        match value:
            case None | bool() | int() | float():
                return value
            case str():
                return str(value)
            case Mapping():
                return {str(key): self.take(part, depth + 1) for key, part in value.items()}
            case list() | tuple():
                return [self.take(part, depth + 1) for part in value]
            case _:
                raise DefinitionError("", f"a variable of the template is no plain data but {type(value).__name__}")


def show_environment(text: str, loading: Loading, notes: Notes, path: KeyPath, *, known: Collection[str] = ()) -> str:
    """
    Return *text* with the environment variables that *loading* declares in their places.

    `{{ env.NAME }}` (also `env["NAME"]` and `process.env.NAME`, in any expression), `${{ NAME }}` and `${NAME}` ask for
    one; the latter two in capitals only, and not where NAME is one of the *known* variables of the case. `$${NAME}` is
    `${NAME}` itself. What is not declared is noted as an error at *path*, unless `| default(...)` or `or` follows. A
    value that is all `$NAME` or `%NAME%` is an error too; within prose those are prose.
    """
    return _Showing(loading, notes, path, frozenset(known)).show(text)


_BARE = re.compile(r"(?:\$([A-Z_][A-Z0-9_]+)|%([A-Z_][A-Z0-9_]+)%)(?:[/\\]\S*)?")
_DOLLAR = re.compile(r"(\$?)\$\{(?:\{\s*(?:env\.)?([A-Z][A-Z0-9_]+)\s*\}\}|([A-Z][A-Z0-9_]+)(?::?-([^{}]*))?\})")
_MENTION = re.compile(r"\b(?:env|process)\b")
_ROOT = "AGENTV_REPO_ROOT"


@frozen
class _Showing:
    """Puts declared environment variables into the texts of a file."""

    loading: Loading
    notes: Notes
    path: KeyPath
    known: frozenset[str]
    told: set[str] = field(factory=set)

    def show(self, text: str) -> str:
        if bare := _BARE.fullmatch(text.strip()):
            return self._bare(text, bare[1] or bare[2])
        shown = _DOLLAR.sub(self._dollar, text) if "${" in text else text
        return self._tags(shown) if is_template(shown) and _MENTION.search(shown) else shown

    def _bare(self, text: str, name: str) -> str:
        value = self._value(name)
        if value is None and name not in self.known:
            self._refuse(name)
        return text if value is None else re.sub(rf"\${name}|%{name}%", lambda _: value, text, count=1)

    def _dollar(self, found: re.Match[str]) -> str:
        escaped, doubled, single, default = found.groups()
        name = doubled or single
        if escaped:
            return found[0][1:]
        if name in self.known:
            return found[0]
        value = self._value(name)
        if value is None and default is None:
            self._refuse(name)
        return default or "" if value is None else value

    def _value(self, name: str) -> str | None:
        if name in self.loading.environ:
            return str(self.loading.environ[name])
        return str(self.loading.root.absolute()) if name == _ROOT and self.loading.root is not None else None

    def _refuse(self, name: str) -> None:
        shown = shorten(name, 60)
        self._tell(
            f"the environment variable {shown!r} is not declared, and no other is shown to a file; "
            f"declare it when you load: load_suite(path, environ={{{shown!r}: ...}})",
        )

    def _tell(self, message: str | DefinitionError) -> None:
        """Note an error, once for each text."""
        if str(message) not in self.told:
            self.told.add(str(message))
            self.notes.error(self.path, message)

    def _tags(self, text: str) -> str:
        """Replace what asks for a variable in `{{ }}` and `{% %}`; leave the rest as it stands."""
        try:
            tokens = [_Token(kind, value) for _, kind, value in Sandbox().lex(text)]
        except TemplateError as problem:
            self._tell(f"this is no template: {shorten(problem.message or '', 160)}")
            return text
        return "".join(self._tag(tag) for tag in _split(tokens))

    def _tag(self, tag: list[_Token]) -> str:
        parts: list[str] = []
        asked, start, before = False, 0, ""
        while start < len(tag):
            other = before == "." or tag[start].text in self.known
            name, taken = (None, 0) if other else _asked(tag[start : start + 20])
            if name is None:
                parts.append(tag[start].text)
            else:
                asked = True
                parts.append(self._literal(name, tag[start + taken : start + taken + 10]))
            before = before if tag[start].blank else tag[start].text
            start += taken or 1
        shown = "".join(parts)
        return self._rendered(shown) if asked else shown

    def _literal(self, name: str, rest: list[_Token]) -> str:
        """Return what stands in an expression for the variable *name*, which *rest* follows."""
        value = self._value(name) if name else None
        if value is not None:
            return json.dumps(value, ensure_ascii=False)
        following = [token.text for token in rest if not token.blank][:2]
        if not name:
            self._tell("the environment is not shown as a whole; write {{ env.NAME }}")
        elif following not in (["|", "default"], ["|", "d"]) and following[:1] != ["or"]:
            self._refuse(name)
        return "undeclared"

    def _rendered(self, tag: str) -> str:
        """Return what *tag* comes to, or the tag itself where it asks for variables of the case too."""
        try:
            own = tag.startswith("{{") and names_in(tag) <= {"undeclared"}
            return render(tag, {}) if own else tag
        except DefinitionError as problem:
            self._tell(problem)
            return tag


@frozen
class _Token:
    """A piece of a template, as the lexer has it."""

    kind: str
    text: str

    @property
    def blank(self) -> bool:
        return self.kind == "whitespace"


def _split(tokens: list[_Token]) -> Iterator[list[_Token]]:
    """Yield the pieces of each tag together, and the text between them."""
    tag: list[_Token] = []
    for token in tokens:
        if token.kind in ("variable_begin", "block_begin"):
            yield tag
            tag = []
        tag.append(token)
        if token.kind in ("variable_end", "block_end"):
            yield tag
            tag = []
    yield tag


def _asked(tokens: list[_Token]) -> tuple[str | None, int]:
    """Return the name of the variable that *tokens* start with, and how many they are; "" is the whole environment."""
    places = [index for index, token in enumerate(tokens) if not token.blank][:6]
    texts = [tokens[index].text for index in places]
    if not tokens or tokens[0].kind != "name":
        return None, 0
    before = 0
    if texts[0] == "process" and texts[1:2] in (["."], ["["]):
        if texts[1:3] != [".", "env"]:
            return "", 1
        before = 2
    match texts[before : before + 4]:
        case ["env", ".", name, *_] if name.isidentifier():
            return name, places[before + 2] + 1
        case ["env", "[", name, "]"] if name[0] in "'\"":
            return name[1:-1], places[before + 3] + 1
        case ["env", *_]:
            return "", places[before] + 1
        case _:
            return None, 0
