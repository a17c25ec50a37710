"""
HTML of results: a handful of pieces, in `templates/pieces.html`, that every card, table and page is built from.

A text is escaped unless it is `Html`, which only these functions make: untrusted text cannot become markup. Nothing
here runs or leads out of the page; a page may be given a script of our own. A card opens with a sentence, then shows
figures and tables. `fragment` makes it the output of a notebook's cell (`_repr_html_`), `page` a file of its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import Any, cast

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from rubric.embed import cut, shown

LONGEST = 2_000
"""Characters of a reason or another text that are shown."""

NAME = 300
"""Characters of an id or another name."""

MOST_ROWS = 500
"""Rows of a table that are shown."""


Html = Markup
"""Text that is markup already, as Jinja's macros make it, and is not escaped again."""


def escape(value: object) -> Html:
    """Return *value* as markup: `Html` unchanged, anything else as the text that it is, invisible characters shown."""
    if isinstance(value, Html):
        return value
    text = str(value)
    if not (text.isascii() and text.isprintable()):  # most texts and attributes are, and hide nothing
        text = shown(text)
    for char, entity in _ENTITIES:
        if char in text:
            text = text.replace(char, entity)
    return Html(text)


_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;"))
_EMPTY = frozenset({"img", "input", "meta"})
"""Elements without an end tag; those of SVG need one."""


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """
    Return an element; what is None among its *children* and *attributes* is left out.

    An attribute is written `class_=` where Python knows the word, and `aria_label=` for a dash.
    """
    said = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        label = key.rstrip("_").replace("_", "-")
        said.append(label if value is True else f'{label}="{escape(value)}"')
    opening = f"<{' '.join(said)}>"
    return Html(opening) if name in _EMPTY else Html(f"{opening}{join(children)}</{name}>")


def join(parts: Iterable[object]) -> Html:
    """Return *parts* one after the other, without those that are None."""
    return Html("".join([escape(part) for part in parts if part is not None]))


# -- pieces ----------------------------------------------------------------------------------------------


def _piece(name: str) -> Callable[..., Html]:
    """Return the piece with this *name* of `pieces.html`, which says what it is; it is read on first use."""
    return lambda *values, **named: Html(cast("Any", _environment().globals[name])(*values, **named))


badge, band, bar, candidate = map(_piece, ("badge", "band", "bar", "candidate"))
card, facts, fold, header = map(_piece, ("card", "facts", "fold", "header"))
notice, section, shares = map(_piece, ("notice", "section", "shares"))
table, text, tree = map(_piece, ("table", "text", "tree"))

# -- templates -------------------------------------------------------------------------------------------


def render(template: str, **values: object) -> Html:
    """Return a *template* of ours with *values*, which are escaped unless they are `Html`; None is left out."""
    return Html(_environment().get_template(template).render(values))


@cache
def macros(template: str, *words: Callable[..., object]) -> Any:
    """Return the macros of a *template* of ours; by their names, it knows the functions above, and *words*."""
    named = {each.__name__.strip("_"): each for each in words}
    return _environment().get_template(template, globals=named).module


@cache
def _environment() -> Environment:
    """Return the templates, which escape as `escape` does: Jinja would leave invisible characters as they are."""
    environment = Environment(
        loader=PackageLoader("rubric.view"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: "" if value is None else escape(value),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"cut": cut, "LONGEST": LONGEST, "NAME": NAME, "MOST_ROWS": MOST_ROWS}
    pieces = environment.get_template("pieces.html").module
    environment.globals |= {name: macro for name, macro in vars(pieces).items() if not name.startswith("_")}
    return environment


def text_template(template: str) -> Template:
    """Return a *template* of ours for text that is not HTML; it escapes nothing by itself."""
    return _environment().overlay(autoescape=False, finalize=str).get_template(template)


# -- whole outputs ---------------------------------------------------------------------------------------


STYLE = "style.css"
"""The style sheet of all cards and pages; it styles nothing outside of an element of the class `rubric`."""


@cache
def file(name: str) -> str:
    """Return the text of one of our own files, such as a script."""
    return files("rubric.view").joinpath(name).read_text("utf-8")


def fragment(*body: object) -> str:
    """Return *body* for the output of a notebook's cell, with the style that it needs."""
    return str(tag("div", Html(f"<style>{file(STYLE)}</style>"), *body, class_="rubric"))


def page(
    title: str,
    *body: object,
    more_style: str = "",
    footer: object = None,
    has_form: bool = False,
    script: str = "",
    sources: str = "",
) -> str:
    """
    Return *body* as a page that loads nothing, and runs nothing but our own *script*.

    A Content-Security-Policy is the second line of defence behind the escaping: it allows one style sheet and at most
    one script, by their hashes. *more_style* and *script* are our own: nothing in them is escaped. A form, which a page
    needs that is searched on a server, may lead to that server alone. *sources* are further directives.
    """
    sheet = file(STYLE) + more_style
    to = "'self'" if has_form else "'none'"
    policy = f"default-src 'none'; style-src {_hash(sheet)}; base-uri 'none'; form-action {to}"
    policy += f"; script-src {_hash(script)}" if script else ""
    policy += f"; {sources}" if sources else ""
    drawn = render(
        "page.html",
        policy=Html(policy),
        title=cut(title, NAME),
        sheet=Html(sheet),
        body=join(body),
        footer=footer,
        script=Html(script),
    )
    return str(drawn)  # a plain text: markup would escape what its reader puts into it


def _hash(inside: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'"
