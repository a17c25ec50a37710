"""
Render templates: `{{ name }}` and a little more of Jinja, as users of Nunjucks write it.

Nothing is escaped, a missing variable is empty, and lists and mappings are shown as JSON (promptfoo shows `[object
Object]`). `sandbox` has the constructs that are allowed. `show_environment` fills in the environment variables that the
caller declares; `os.environ` is never read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import lru_cache
from types import CodeType
from typing import Any, Literal

from attrs import define, field, frozen
from jinja2 import Template, TemplateError, nodes

from rubric import DefinitionError
from rubric.embed import Cursor, LackingError, Loading, Wording, shorten
from rubric.formats.templates.filters import as_text, joined
from rubric.formats.templates.sandbox import Counting, Sandbox, check

LONGEST = 200_000
"""Characters of one template."""

MOST_DATA = 4_000_000
"""Characters of the variables that one template names; each part of them counts as 40 more."""


def is_template(text: str) -> bool:
    """True if *text* has a tag that `render` would replace."""
    return any(mark in text for mark in ("{{", "{%", "{#"))


def names_in(template: str, filters: Collection[str] = ()) -> frozenset[str]:
    """
    Return the names of the variables that *template* uses, its own included; *filters* as in `render`.

    Raises:
        DefinitionError: It is no template, or uses a construct that is not allowed.
    """
    return _prepared(template, frozenset(filters)).names


def render(
    template: str,
    variables: Mapping[str, Any],
    *,
    unknown: Literal["empty", "keep"] = "empty",
    filters: Mapping[str, Callable[..., Any]] = {},
) -> str:
    """
    Return *template* with *variables* in their places.

    Args:
        template: The text to render; the values of variables are not rendered again.
        variables: Plain data: texts, numbers, booleans, nothing, lists and mappings.
        unknown: Whether names that *variables* does not have are empty, or stay as they are.
        filters: Filters besides ours, by name: each is given the value and its arguments, and returns plain data.

    Raises:
        DefinitionError: It is no template, uses a construct that is not allowed (with the line), or grows too large.
    """
    if not is_template(template):
        return template
    prepared = _prepared(template, frozenset(filters))
    sandbox = Sandbox(filters, keep=unknown == "keep")
    plain = _Plain()
    data = plain.take({name: variables[name] for name in prepared.names if name in variables})
    sandbox.longest = plain.size
    try:
        sandbox.charge_parts(prepared.parts)
        return joined(Template.from_code(sandbox, prepared.code, {}).generate(data))
    except DefinitionError:
        raise
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as problem:
        raise DefinitionError("", f"the template cannot be rendered: {shorten(str(problem), 120)}") from None


@frozen
class _Prepared:
    """A checked template: its code, the names that it uses, and the number of its nodes."""

    code: CodeType
    names: frozenset[str]
    parts: int


_REGEX = re.compile(r"\{[{%](?:(?![%}]\}|\{[{%]).)*?[\s(\[,=|~!]r/(?:\\.|[^/\\\n])+/", re.DOTALL)
"""A regular expression of Nunjucks in a tag, `r/.../`; Jinja would divide."""

_NUNJUCKS_TAG = re.compile(r"unknown tag '(switch|asyncEach|asyncAll|ifAsync)'")
"""A tag of Nunjucks that Jinja does not have: no slip of the author."""


@lru_cache(maxsize=64)
def _prepared(template: str, filters: frozenset[str]) -> _Prepared:
    if len(template) > LONGEST:
        raise DefinitionError("", f"a template has at most {LONGEST} characters; shorten it")
    if _REGEX.search(template):
        lack = "a template with a regular expression (r/.../), which is not carried out (write what it makes)"
        raise LackingError(lack, lack)
    sandbox = Sandbox(dict.fromkeys(filters, as_text))
    try:
        root = sandbox.parse(template)
        check(root, filters)
        parts = sum(1 for _ in root.find_all(nodes.Node))
        used = frozenset(node.name for node in root.find_all(nodes.Name) if node.ctx == "load")
        return _Prepared(sandbox.compile(Counting().visit(root), "rubric"), used, parts)
    except TemplateError as problem:
        why = f"line {getattr(problem, 'lineno', 1)} of the template: {shorten(problem.message or '', 160)}"
        if tag := _NUNJUCKS_TAG.search(problem.message or ""):
            lack = f"a template with {tag[1]}, which is not carried out (write what it makes)"
            raise LackingError(lack, why) from None
        raise DefinitionError("", why) from None
    except DefinitionError:
        raise
    except (RecursionError, SyntaxError, ValueError, MemoryError):
        raise DefinitionError("", "the template nests too deep, or has too long a number; make it simpler") from None


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


def show_environment(text: str, at: Cursor, loading: Loading | None = None, *, known: Collection[str] = ()) -> str:
    """
    Return *text*, found at the cursor, with the environment variables that *loading* declares in their places.

    `{{ env.NAME }}` (also `env["NAME"]` and `process.env.NAME`, in any expression), `${{ NAME }}` and `${NAME}` ask for
    one; the latter two in capitals only, and not where NAME is one of the *known* variables of the case. `$${NAME}` is
    `${NAME}` itself. An undeclared variable is noted as an error, unless `| default(...)` or `or` follows. A
    value that is all `$NAME` or `%NAME%` is an error too; within prose those are prose.
    """
    return _EnvironmentFiller(at, loading or at.loading, frozenset(known)).fill(text)


_BARE = re.compile(r"(?:\$([A-Z_][A-Z0-9_]+)|%([A-Z_][A-Z0-9_]+)%)(?:[/\\]\S*)?")
_DOLLAR = re.compile(r"(\$?)\$\{(?:\{\s*(?:env\.)?([A-Z][A-Z0-9_]+)\s*\}\}|([A-Z][A-Z0-9_]+)(?::?-([^{}]*))?\})")
_MENTION = re.compile(r"\b(?:env|process)\b")
_ROOT = "AGENTV_REPO_ROOT"


@frozen
class _EnvironmentFiller:
    at: Cursor
    loading: Loading
    known: frozenset[str]
    told: set[str] = field(factory=set)

    def fill(self, text: str) -> str:
        if bare := _BARE.fullmatch(text.strip()):
            name = bare[1] or bare[2]
            value = self._value(name)
            if value is None and name not in self.known:
                self._refuse(name)
            return text if value is None else re.sub(rf"\${name}|%{name}%", lambda _: value, text, count=1)
        filled = _DOLLAR.sub(self._dollar, text) if "${" in text else text
        if not (is_template(filled) and _MENTION.search(filled)):
            return filled
        try:
            tokens = [_Token(kind, value) for _, kind, value in Sandbox().lex(filled)]
        except TemplateError as problem:
            self._tell(f"this is no template: {shorten(problem.message or '', 160)}")
            return filled
        return "".join(self._tag(tag) for tag in _split(tokens))

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
            return name  # no text would be a fault of its own
        return default or "" if value is None else value

    def _value(self, name: str) -> str | None:
        if name in self.loading.environ:
            return str(self.loading.environ[name])
        return str(self.loading.root.absolute()) if name == _ROOT and self.loading.root is not None else None

    def _refuse(self, name: str) -> None:
        shown = shorten(name, 60)
        lack = f"the undeclared environment variable {shown!r} (give environ={{{shown!r}: ...}}, or --env {shown})"
        message = f"the environment variable {shown!r} is not declared, and no other is shown to a file"
        cure = Wording("; declare it with ", environ={shown: ...})
        self._tell(LackingError(lack, Wording(message, cure)))

    def _tell(self, message: str | DefinitionError) -> None:
        """Note an error, once for each text."""
        if str(message) not in self.told:
            self.told.add(str(message))
            self.at.error(message)

    def _tag(self, tag: list[_Token]) -> str:
        """Return *tag* with literals for environment variables; rendered, unless it uses variables of the case too."""
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
        filled = "".join(parts)
        if not asked:
            return filled
        try:
            own = filled.startswith("{{") and names_in(filled) <= {"undeclared"}
            return render(filled, {}) if own else filled
        except DefinitionError as problem:
            self._tell(problem)
            return filled

    def _literal(self, name: str, rest: list[_Token]) -> str:
        """Return the literal that replaces the variable *name* in an expression, which *rest* follows."""
        value = self._value(name) if name else None
        if value is not None:
            return json.dumps(value, ensure_ascii=False)
        following = [token.text for token in rest if not token.blank][:2]
        if not name:
            self._tell("the environment is not shown as a whole; write {{ env.NAME }}")
        elif following not in (["|", "default"], ["|", "d"]) and following[:1] != ["or"]:
            self._refuse(name)
            return json.dumps(name)  # no text would be a fault of its own
        return "undeclared"


@frozen
class _Token:
    kind: str
    text: str

    @property
    def blank(self) -> bool:
        return self.kind == "whitespace"


def _split(tokens: list[_Token]) -> Iterator[list[_Token]]:
    """Yield the tokens of each tag together, and those of the text between them."""
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
    """Return the variable that *tokens* start with, and their number; '' is the environment as a whole."""
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
