"""How Sphinx builds these pages."""

from __future__ import annotations

import gc
import re
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING

from rubric.internals.lazy_names import public_names

if TYPE_CHECKING:
    from docutils.nodes import Element, reference
    from sphinx.addnodes import pending_xref
    from sphinx.application import Sphinx
    from sphinx.environment import BuildEnvironment

gc.set_threshold(100_000, 50, 50)  # walking the trees of all pages again and again took a quarter of the time

project = "rubric"
author = "The rubric authors"
copyright = "2026, the rubric authors"
release = version = version_of("rubric-grade")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "examples", "_static"]

html_theme = "furo"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"
html_static_path = ["_static"]
# Beside the first page, under URLs that editors can name in `# yaml-language-server: $schema=...`.
html_extra_path = ["../rubric/formats/rubric.schema.json", "../rubric/formats/suite.schema.json"]
html_css_files = ["wrap.css"]
html_title = f"rubric {release}"

default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False

# Public names must resolve; what annotations name besides (other packages, inner modules) has no page here.
PUBLIC = {name: f"{module}.{name}" for name, module in public_names().items() if module != "rubric.embed"}
nitpick_ignore_regex = [(r"py:.*", rf"(?!({'|'.join({path.rpartition('.')[0] for path in PUBLIC.values()})})\.\w+$).*")]


def to_public_name(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: Element) -> reference | None:
    """Let a reference to the module that defines a name lead to the public name."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if name not in PUBLIC:
        return None
    domain = env.get_domain("py")
    found: reference | None = domain.resolve_xref(env, node["refdoc"], app.builder, "obj", PUBLIC[name], node, content)
    return found


COLON = "\N{RATIO}"
"""Stands for a colon while napoleon runs, which takes what is before the first one for the type of a property."""


def hide_colons(_app: Sphinx, what: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Hide the colons in the first line of the docstring of a property."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(":", COLON)


def show_colons(_app: Sphinx, what: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Show the colons that were hidden."""
    if what == "property" and lines:
        lines[0] = lines[0].replace(COLON, ":")


def list_members(_app: Sphinx, _page: str, source: list[str]) -> None:
    """Show all members of a class whose members its page does not name; a default option would overrule a list."""
    source[0] = re.sub(r"(\.\. auto(?:class|exception):: .*\n)(?!\s+:(?:no-)?members:)", r"\1   :members:\n", source[0])


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", list_members)
    app.connect("missing-reference", to_public_name)
    app.connect("autodoc-process-docstring", hide_colons, priority=400)
    app.connect("autodoc-process-docstring", show_colons, priority=600)
