"""
Environment variables that a file asks for: only those that the caller declares are ever shown.

`os.environ` is not read here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator

from attrs import field, frozen
from jinja2 import TemplateError

from rubric.errors import DefinitionError
from rubric.formats.documents import Path
from rubric.formats.includes.loading import Loading
from rubric.formats.notes import Notes
from rubric.formats.templates.rendering import is_template, names_in, render
from rubric.formats.templates.sandboxing import Sandbox
from rubric.showing import shorten

__all__ = ["show_environment"]


def show_environment(text: str, loading: Loading, notes: Notes, path: Path, *, known: Collection[str] = ()) -> str:
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
    path: Path
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
