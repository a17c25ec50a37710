"""
Render templates: `{{ name }}` and a little more of Jinja, as users of Nunjucks write it.

Nothing is escaped, a missing variable is empty, and lists and mappings are shown as JSON (promptfoo shows `[object
Object]`). `interpreter` has the constructs that are carried out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any, Literal

from attrs import define
from jinja2 import TemplateError, nodes

from rubric import DefinitionError
from rubric.embed import LackingError, shorten
from rubric.formats.templates.filters import join_parts
from rubric.formats.templates.interpreter import Rendering, parse_template

LONGEST = 200_000
"""Characters of one template."""

MOST_DATA = 4_000_000
"""Characters of the variables that one template names; each part of them counts as 40 more."""


def is_template(text: str) -> bool:
    """True if *text* has a tag that `render` would replace."""
    return any(mark in text for mark in ("{{", "{%", "{#"))


def names_in(template: str, filters: Collection[str] = ()) -> frozenset[str]:
    """Return the variables that *template* uses, its own included; *filters* and errors as in `render`."""
    return _parse(template, frozenset(filters))[1]


def render(
    template: str,
    variables: Mapping[str, Any],
    *,
    unknown: Literal["empty", "keep"] = "empty",
    filters: Mapping[str, Callable[..., Any]] = {},
) -> str:
    """
    Return *template* with *variables*, plain data, in their places; their values are not rendered again.

    Args:
        unknown: Whether names that *variables* does not have are empty, or stay as they are.
        filters: Filters besides ours, by name: each is given the value and its arguments, and returns plain data.

    Raises:
        DefinitionError: It is not a template, uses a construct that is not allowed (with the line), or grows too large.
    """
    if not is_template(template):
        return template
    tree, names = _parse(template, frozenset(filters))
    plain = _Plain()
    data = plain.take({name: variables[name] for name in names if name in variables})
    try:
        return join_parts(Rendering(data, filters, keep=unknown == "keep", longest=plain.size).texts(tree.body))
    except DefinitionError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as problem:
        raise DefinitionError("", f"the template cannot be rendered: {shorten(str(problem), 120)}") from None


_REGEX = re.compile(r"\{[{%](?:(?![%}]\}|\{[{%]).)*?[\s(\[,=|~!]r/(?:\\.|[^/\\\n])+/", re.DOTALL)
"""A regular expression of Nunjucks in a tag, `r/.../`; Jinja would divide."""

_NUNJUCKS_TAG = re.compile(r"unknown tag '(switch|asyncEach|asyncAll|ifAsync)'")
"""A tag of Nunjucks that Jinja does not have: no slip of the author."""


@lru_cache(maxsize=64)
def _parse(template: str, filters: frozenset[str]) -> tuple[nodes.Template, frozenset[str]]:
    """Return the tree of *template*, and the names that it uses."""
    if len(template) > LONGEST:
        raise DefinitionError("", f"a template has at most {LONGEST} characters; shorten it")
    if _REGEX.search(template):
        lack = "a template with a regular expression (r/.../), which is not carried out (write what it makes)"
        raise LackingError(lack, lack)
    try:
        root = parse_template(template, filters)
        return root, frozenset(node.name for node in root.find_all(nodes.Name) if node.ctx == "load")
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
                raise DefinitionError("", f"a variable of the template is not plain data but {type(value).__name__}")
