"""Environment variables in the texts of a file: those that the caller declares; `os.environ` is never read."""

from __future__ import annotations

import json
import re

from attrs import field, frozen

from rubric import DefinitionError
from rubric.embed import Cursor, LackingError, Wording, shorten
from rubric.formats.templates.render import names_in, render


def show_environment(text: str, at: Cursor) -> str:
    """
    Return *text*, found at the cursor, with the environment variables that its load declares in their places.

    `{{ env.NAME }}` (also `env["NAME"]` and `process.env.NAME`, in any expression), `${{ NAME }}` and `${NAME}` ask for
    one; the latter two in capitals only. `$${NAME}` is `${NAME}` itself. An undeclared variable is noted as an error,
    unless `| default(...)` or `or` follows. A value that is all `$NAME` or `%NAME%` is an error too; within prose those
    are prose.
    """
    return _Environment(at).fill(text)


_BARE = re.compile(r"(?:\$([A-Z_][A-Z0-9_]+)|%([A-Z_][A-Z0-9_]+)%)(?:[/\\]\S*)?")
_DOLLAR = re.compile(r"(\$?)\$\{(?:\{\s*(?:env\.)?([A-Z][A-Z0-9_]+)\s*\}\}|([A-Z][A-Z0-9_]+)(?::?-([^{}]*))?\})")
_TAG = re.compile(r"\{%-?\s*raw\b.*?\bendraw\s*-?%\}|\{#.*?#\}|\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_ASKED = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<![\w.])(?<!\.\ )(?:(?:process\s*\.\s*)?env\b"""
    r"""(?:\s*\.\s*(?P<name>[^\W\d]\w*)|\s*\[\s*(?P<quote>['"])(?P<key>[^'"]*)(?P=quote)\s*\])?|process\b(?=\s*[.\[]))"""
    r"""(?P<minded>(?=\s*\|\s*(?:default|d)\b|\s+or\b))?""",
    re.DOTALL,
)
"""A literal text in a tag, or the environment and its variable; `minded`: what follows is for where there is none."""

_ROOT = "AGENTV_REPO_ROOT"


@frozen
class _Environment:
    at: Cursor
    told: set[str] = field(factory=set)

    def fill(self, text: str) -> str:
        if bare := _BARE.fullmatch(text.strip()):
            name = bare[1] or bare[2]
            value = self._value(name)
            if value is None:
                self._refuse(name)
            return text if value is None else re.sub(rf"\${name}|%{name}%", lambda _: value, text, count=1)
        filled = _DOLLAR.sub(self._dollar, text) if "${" in text else text
        return _TAG.sub(self._tag, filled) if "env" in filled or "process" in filled else filled

    def _dollar(self, found: re.Match[str]) -> str:
        escaped, doubled, single, default = found.groups()
        name = doubled or single
        if escaped:
            return found[0][1:]
        value = self._value(name)
        if value is None and default is None:
            self._refuse(name)
            return name  # no text would be a fault of its own
        return default or "" if value is None else value

    def _value(self, name: str) -> str | None:
        loading = self.at.loading
        if name in loading.environ:
            return str(loading.environ[name])
        return str(loading.root.absolute()) if name == _ROOT and loading.root is not None else None

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

    def _tag(self, tag: re.Match[str]) -> str:
        """Return *tag* with literals for environment variables; rendered, unless it uses variables of the case too."""
        if re.match(r"\{#|\{%-?\s*raw\b", tag[0]):
            return tag[0]
        filled = _ASKED.sub(self._literal, tag[0])
        if filled == tag[0]:
            return filled
        try:
            own = filled.startswith("{{") and names_in(filled) <= {"undeclared"}
            return render(filled, {}) if own else filled
        except DefinitionError as problem:
            self._tell(problem)
            return filled

    def _literal(self, asked: re.Match[str]) -> str:
        """Return the literal that replaces an environment variable in an expression."""
        if asked["text"] is not None:
            return asked[0]
        name = asked["name"] or asked["key"]
        value = self._value(name) if name else None
        if value is not None:
            return json.dumps(value, ensure_ascii=False)
        if not name:
            self._tell("the environment is not shown as a whole; write {{ env.NAME }}")
        elif asked["minded"] is None:
            self._refuse(name)
            return json.dumps(name)  # no text would be a fault of its own
        return "undeclared"
