"""
Rendering templates: `{{ name }}` and a little more of Jinja, as users of Nunjucks write it.

Nothing is escaped, what is not there is empty, and lists and mappings show themselves as JSON (promptfoo shows
`[object Object]`). `rubric.formats.templates.constructs` says what a template may hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import CodeType
from typing import Any, Literal

from attrs import define, frozen
from jinja2 import Template, TemplateError, nodes

from rubric.errors import DefinitionError
from rubric.formats.templates.constructs import check, names
from rubric.formats.templates.filters import LARGEST, too_large
from rubric.formats.templates.sandboxing import Counting, Sandbox
from rubric.showing import shorten

__all__ = ["is_template", "names_in", "render"]

LONGEST = 200_000
"""Characters of one template."""
MOST_DATA = 4_000_000
"""Characters of the variables that one template names; each part of them counts as 40 more."""


def is_template(text: str) -> bool:
    """Tell whether *text* holds anything that `render` would replace."""
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
