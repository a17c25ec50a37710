"""
HTML of results: a handful of pieces that every card, table and page is built from.

A text is escaped unless it is `Html`, which only these functions make: untrusted text cannot become markup. Nothing
here runs or leads out of the page; a page may be given a script of our own. A card opens with a sentence, then shows
figures and tables. `fragment` makes it the output of a notebook's cell (`_repr_html_`), `page` a file of its own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

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


def text(value: str, limit: int = LONGEST, *, class_: str = "") -> Html:
    """Return untrusted text in an element of its own: cut to *limit* characters, and with its own writing direction."""
    return tag("span", cut(value, limit), class_=f"t {class_}".strip())


# -- pieces ----------------------------------------------------------------------------------------------


def badge(words: str, kind: str = "plain") -> Html:
    """Return a pill with a few *words*, in the colour of its *kind*."""
    # Kinds are passed, failed, ungraded (in doubt), deferred (not done), plain, and gate, the outline of a failed one.
    return tag("span", cut(words, NAME), class_=f"badge {kind} t")


def header(sentence: str, *badges: Html, title: str = "") -> Html:
    """Return the head of a card: its *title* in small, the *sentence* that says the result, and badges."""
    above = tag("div", cut(title, NAME), class_="over t") if title else None
    return tag("div", above, tag("div", tag("strong", cut(sentence, LONGEST), class_="t"), *badges, class_="head"))


def facts(*pairs: tuple[str, object]) -> Html:
    """Return figures in a line, each with its name behind it."""
    return tag("div", *(tag("span", tag("b", value), f" {name}") for name, value in pairs), class_="facts num")


def card(head: Html, *body: object, kind: str = "") -> Html:
    """Return a framed card, with an edge in the colour of its *kind*."""
    return tag("article", head, *body, class_=f"card {kind}".strip())


def section(title: str, *body: object) -> Html:
    """Return *body* below a small *title*."""
    return tag("section", tag("h3", title, class_="section"), *body)


def notice(words: str, kind: str = "warning") -> Html:
    """Return a remark of a sentence or two: `failed`, `ungraded`, `deferred` or `warning`."""
    return tag("p", cut(words, LONGEST), class_=f"notice {kind} t")


def fold(summary: object, *body: object, is_open: bool = False, kind: str = "") -> Html:
    """Return *body* behind a line that unfolds it."""
    return tag("details", tag("summary", summary), *body, class_=f"fold {kind}".strip(), open=is_open)


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, figures: Iterable[int] = ()) -> Html:
    """Return a table of the first rows and the count of the others; columns *figures* (from 0) are aligned right."""
    right, rows = frozenset(figures), list(rows)

    def cells(name: str, row: Sequence[object]) -> Html:
        names = ("td" if c == "" else name for c in row)  # a head without words is none to a screen reader
        parts = enumerate(zip(names, row, strict=True))
        return tag("tr", *(tag(each, _cell(c), class_="num r" if n in right else None) for n, (each, c) in parts))

    body = [cells("td", row) for row in rows[:MOST_ROWS]]
    drawn = tag("table", tag("thead", cells("th", head)), tag("tbody", *body), class_="grid")
    more = tag("p", f"and {len(rows) - MOST_ROWS:,} more", class_="soft") if len(rows) > MOST_ROWS else None
    return tag("div", drawn, more, class_="scroll", tabindex="0")


def _cell(value: object) -> Html:
    return value if isinstance(value, Html) else text("" if value is None else str(value))


def candidate(words: object) -> Html:
    """Return a long text as it was written, in a box that scrolls."""
    return tag("pre", words, class_="text", dir="auto")


def bar(score: float, *, mark: float | None = None, kind: str = "passed") -> Html:
    """Return a bar from 0 to *score*, in 0..1; *mark* draws a line at a threshold."""
    return _svg(tag("rect", class_=kind, width=_share(score), height="8"), mark)


def band(low: float, value: float | None, high: float, *, mark: float | None = None, kind: str = "ungraded") -> Html:
    """Return the range from *low* to *high*, in 0..1, with a line at *value* where there is one."""
    start, end = max(0.0, min(low, high)), min(1.0, max(low, high))
    span = tag("rect", class_=f"{kind} may", x=_share(start), width=_share(max(end - start, 0.006)), height="8")
    at = None if value is None else tag("line", class_=f"at {kind}", x1=_share(value), x2=_share(value), y2="8")
    return _svg(join((span, at)), mark)


def _svg(inside: Html, mark: float | None) -> Html:
    lines = None
    if mark is not None:
        at = f"{min(max(100 * mark, 1), 99):.2f}"
        lines = join(tag("line", class_=name, x1=at, x2=at, y2="8") for name in ("edge", "needs"))
    track = tag("rect", class_="track", width="100", height="8")
    view = {"viewBox": "0 0 100 8", "preserveAspectRatio": "none"}
    return tag("svg", track, inside, lines, class_="bar", aria_hidden="true", **view)


def _share(value: float) -> str:
    return f"{min(max(100 * value, 0), 100):.2f}"


# -- templates -------------------------------------------------------------------------------------------


def render(template: str, **values: object) -> Html:
    """Return a *template* of ours with *values*, which are escaped unless they are `Html`; None is left out."""
    return Html(_environment().get_template(template).render(values))


@cache
def macros(template: str, *words: Callable[..., object]) -> Any:
    """Return the macros of a *template* of ours; by their names, it knows the functions above, and *words*."""
    return _environment().get_template(template, globals=_by_name(words)).module


def _by_name(functions: Iterable[Callable[..., object]]) -> dict[str, object]:
    return {each.__name__.strip("_"): each for each in functions}


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
    pieces = (badge, band, bar, candidate, cut, facts, fold, header, notice, section, table, text)
    environment.globals |= _by_name(pieces) | {"LONGEST": LONGEST, "NAME": NAME}
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
