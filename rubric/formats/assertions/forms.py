"""
Graders of the form of an output, and of how it ended: markup, SQL, the number of words, the reason why a model stopped.

docs/how-to/from_promptfoo.md says when each holds. XML is read by Expat, which loads nothing; a document type with
declarations of its own is refused. SQL is parsed by SQLGlot (the extra `sql`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from html.parser import HTMLParser
from importlib.util import find_spec
from typing import Any
from xml.parsers import expat

from attrs import define, field, frozen
from attrs.converters import optional

from rubric import Candidate, DefinitionError, Matches, RubricError
from rubric.driving import Failure
from rubric.embed import Decided, FrozenMap, fields, shorten, thaw
from rubric.formats.keys import keys_of, table_of, words_of

SQL_EXTRA = "pip install 'rubric-grade[sql]'"


class UnknownError(RubricError):
    """What a check asks for is not known of the run, or no library can tell it."""


# -- XML -----------------------------------------------------------------------------------------------------


@define
class _Element:
    name: str
    children: list[_Element] = field(factory=list)

    def has(self, path: list[str]) -> bool:
        """True if elements lie below each other as *path* says; a number picks one of several of a name, from 0."""
        found = [self]
        for step in path:
            if step.isdecimal() and len(found) > 1:
                found = found[int(step) : int(step) + 1]
            else:
                found = [child for one in found for child in one.children if child.name == step]
        return bool(found)


def _xml(text: str) -> _Element:
    """Return a root above the document that *text* is, or raise a `ValueError`, also of its own declarations."""
    root = _Element("")
    stack = [root]
    parser = expat.ParserCreate()

    def begin(name: str, _: Any) -> None:
        stack[-1].children.append(_Element(name))
        stack.append(stack[-1].children[-1])

    def refuse_declarations(_: str, __: Any, ___: Any, has_own: int) -> None:
        if has_own:
            raise ValueError("its document type has declarations of its own")

    parser.StartElementHandler = begin
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = refuse_declarations
    try:
        parser.Parse(text.strip().removeprefix("\ufeff"), True)  # noqa: FBT003 - its only form
    except (expat.ExpatError, UnicodeError) as problem:
        raise ValueError(str(problem)) from None
    return root


_TAG = re.compile(r"<!--|<!\[CDATA\[|<(/?)([^\W\d][\w:.-]*+)((?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*?)(/?)>")
_LOOSE = re.compile(r"&(?!\w+;|#)")
_MOST_TAGS = 20_000


def _fragments(text: str) -> Iterator[str]:
    """Yield the outermost elements in *text*, from their opening to their closing tags."""
    found: list[tuple[int, int]] = []
    open_: list[tuple[str, int]] = []
    position = 0
    for _ in range(_MOST_TAGS):
        tag = _TAG.search(text, position)
        if tag is None:
            break
        closes, name, _attributes, empty = tag.groups()
        position = tag.end()
        if name is None:  # a comment or CDATA, in which no tag is one
            end = text.find("-->" if tag[0] == "<!--" else "]]>", position)
            position = len(text) if end < 0 else end + 3
        elif not closes:
            if empty:
                found.append((tag.start(), tag.end()))
            else:
                open_.append((name, tag.start()))
        elif open_ and open_[-1][0] == name:
            start = open_.pop()[1]
            while found and found[-1][0] > start:
                found.pop()
            found.append((start, tag.end()))
        else:
            open_.clear()
    yield from (text[start:end] for start, end in found)


def _is_xml(text: str, value: Mapping[str, Any]) -> str:
    try:
        return _lacks([_xml(text)], value)
    except ValueError as problem:
        return f"is not well-formed XML: {problem}"


def _contains_xml(text: str, value: Mapping[str, Any]) -> str:
    roots = []
    for fragment in _fragments(text):
        try:
            roots.append(_xml(_LOOSE.sub("&amp;", fragment)))
        except ValueError:
            continue
    return _lacks(roots, value) if roots else "has no well-formed XML in it"


def _lacks(roots: list[_Element], value: Mapping[str, Any]) -> str:
    wanted = value.get("requiredElements") or ()
    missing = [path for path in wanted if not any(root.has(path.split(".")) for root in roots)]
    return f"lacks the elements {', '.join(missing)}" if missing else ""


# -- HTML ----------------------------------------------------------------------------------------------------


_VOID, _UNCLOSED, _CLOSED = (keys_of("assertions", "html", which) for which in ("void", "unclosed", "closed"))
_KNOWN = _VOID | _UNCLOSED | _CLOSED
_SIGNS = {re.compile(sign): weight for sign, weight in table_of("assertions")["html"]["signs"].items()}
"""Signs of HTML, and how much each counts; from 2 on there is some."""


class _Outline(HTMLParser):
    """The elements of a page, and whether they are closed and have text around them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.count = Counter[str]()  # of the open ones
        self.problem, self.known = "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - as the parent's
        self.known = self.known or tag in _KNOWN or "-" in tag
        if tag not in _VOID:
            self.open.append(tag)
            self.count[tag] += 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002 - as above
        self.known = self.known or tag in _KNOWN or "-" in tag

    def handle_endtag(self, tag: str) -> None:
        if not self.count[tag]:
            self.problem = self.problem or f"closes <{tag}>, which is not open"
            return
        while (last := self.open.pop()) != tag:
            self.count[last] -= 1
            if last not in _UNCLOSED:
                self.problem = self.problem or f"does not close <{last}>"
        self.count[tag] -= 1

    def handle_data(self, data: str) -> None:
        if data.strip() and not self.open:
            self.problem = self.problem or "has text outside of its elements"


def _is_html(text: str, _: Mapping[str, Any]) -> str:
    bare = text.strip()
    if not bare.startswith("<") or bare.lower().startswith("<?xml"):
        return "is not HTML from its first sign on"
    outline = _Outline()
    try:
        outline.feed(bare)
        outline.close()
    except AssertionError as problem:  # of a declaration that the parser does not know, such as <![x[
        return f"is not HTML: {shorten(str(problem), 120)}"
    left = next((f"does not close <{tag}>" for tag in outline.open if tag not in _UNCLOSED), "")
    return outline.problem or left or ("" if outline.known else "has no element of HTML")


# -- SQL -----------------------------------------------------------------------------------------------------

DIALECTS = words_of("assertions", "sql", "dialects")
"""The databases of promptfoo that SQLGlot knows, by their names without capitals."""

_FENCED = re.compile(r"```[ \t]*+(?:sql)?[ \t]*+\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_RESERVED = keys_of("assertions", "sql", "reserved")
_PARSED = frozenset({"CREATE", "DROP", "ALTER", "GRANT", "SHOW"})
"""Statements that the parser knows: one of them that it passes over has a slip."""

_ILIKE = frozenset({"athena", "postgres", "redshift", "snowflake"})


def sql_lacks() -> str:
    """Return what must be installed for SQL, or ''."""
    return "" if find_spec("sqlglot") is not None else SQL_EXTRA


def _contains_sql(text: str, value: Mapping[str, Any]) -> str:
    blocks = _FENCED.findall(text)
    problems = [_is_sql(block, value) for block in blocks] or [_is_sql(text, value)]
    return "" if "" in problems else problems[0]


def _is_sql(text: str, value: Mapping[str, Any]) -> str:
    from sqlglot import exp, parse, tokenize  # noqa: PLC0415 - an extra
    from sqlglot.errors import SqlglotError  # noqa: PLC0415 - as above

    dialect = DIALECTS[str(value.get("databaseType") or "mysql").lower()]
    try:
        statements = [one for one in parse(text, dialect=dialect) if one is not None]
        names = [token.token_type.name for token in tokenize(text, dialect=dialect)]
    except (SqlglotError, RecursionError) as problem:
        return f"is not SQL: {shorten(str(problem), 120)}"
    passed_over = {str(one.this).upper() for one in statements if type(one) is exp.Command}
    if passed_over - _PARSED:
        raise UnknownError(f"the parser does not know statements such as {shorten(text, 60)!r}")
    kinds = (exp.Query, exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Copy, exp.DDL,
             exp.Drop, exp.Alter, exp.TruncateTable, exp.Describe, exp.Show, exp.Set,
             exp.Use, exp.Grant, exp.Transaction, exp.Commit, exp.Rollback)  # fmt: skip
    if not statements or not all(isinstance(one, kinds) for one in statements):
        return "is not a statement of SQL"
    if slip := _slip(statements, names, dialect):
        return f"is not SQL: {slip}"
    for key, found in (("allowedTables", _tables), ("allowedColumns", _columns)):
        if (allowed := value.get(key)) is None:
            continue
        patterns = [Matches(f"(?i)^(?:{one})$") for one in allowed]
        others = [one for one in found(statements) if one not in allowed]
        refused = [one for one in others if not any(pattern.found_in(one) for pattern in patterns)]
        if refused:
            return f"uses {', '.join(refused)}, and {key} has only {', '.join(allowed)}"
    return ""


def _slip(statements: list[Any], names: list[str], dialect: str) -> str:
    """Return what is wrong with *statements* that the parser lets pass; *names* are those of their tokens."""
    from sqlglot import exp  # noqa: PLC0415 - an extra

    for one in statements:
        if any(not part.expressions for part in one.find_all(exp.Select, exp.Update)):
            return "a SELECT or an UPDATE names no columns"
        for identifier in one.find_all(exp.Identifier):
            if not identifier.args.get("quoted") and identifier.name.lower() in _RESERVED:
                return f"{identifier.name} is reserved"
        if dialect not in _ILIKE and any(one.find_all(exp.ILike)):
            return f"{dialect} has no ILIKE"
        if dialect == "mysql" and any(one.find_all(exp.GenerateSeries)):
            return "mysql has no generate_series"
    if dialect == "mysql" and names[:1] == ["DELETE"] and "FROM" not in names:
        return "DELETE without FROM"
    return "a comma is missing between columns" if _lacks_comma(names) else ""


def _lacks_comma(names: list[str]) -> bool:
    """True if two names follow each other in a plain list of columns, as where a comma is missing."""
    if names[:1] != ["SELECT"] or "FROM" not in names:
        return False
    listed = names[1 : names.index("FROM")]
    plain = all(name in ("VAR", "IDENTIFIER", "COMMA", "DISTINCT") for name in listed)
    runs = " ".join(name for name in listed if name != "DISTINCT").split("COMMA")
    return plain and any(len(run.split()) > 1 for run in runs)


def _tables(statements: list[Any]) -> Iterator[str]:
    from sqlglot import exp  # noqa: PLC0415 - an extra

    for one in statements:
        own = [*one.find_all(exp.CTE)]
        for table in one.find_all(exp.Table):
            if not any(_names_cte(table, cte) for cte in own):
                yield f"{_verb(table)}::{table.db or 'null'}::{table.name}"


def _names_cte(table: Any, cte: Any) -> bool:
    """True if *table* is the subquery *cte* of a WITH around it, in which only RECURSIVE lets it name itself."""
    if table.db or table.name != cte.alias:
        return False
    above = {id(table)}
    while (node := table.parent) is not None:
        above.add(id(node))
        table = node
    with_ = cte.parent
    return id(with_.parent) in above and (id(cte) not in above or bool(with_.args.get("recursive")))


def _verb(node: Any) -> str:
    """Return the kind of the statement around *node*: select, insert, update, delete, drop, create, ..."""
    from sqlglot import exp  # noqa: PLC0415 - an extra

    changes = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Copy, exp.DDL, exp.Drop, exp.Alter, exp.TruncateTable)
    around = node.find_ancestor(exp.Select, *changes)
    kind = "select" if around is None else type(around).__name__.lower()
    return kind.removesuffix("table")


def _columns(statements: list[Any]) -> Iterator[str]:
    from sqlglot import exp  # noqa: PLC0415 - an extra

    for one in statements:
        tables = {table.alias_or_name: table.name for table in one.find_all(exp.Table)}
        written = one.this if isinstance(one, exp.Insert | exp.Update | exp.Delete) else None
        target = next(iter(written.find_all(exp.Table))).name if written is not None else ""
        if isinstance(one, exp.Insert):
            listed = [column.name for column in one.this.expressions] if isinstance(one.this, exp.Schema) else ["(.*)"]
            yield from (f"insert::{target}::{name}" for name in listed)
        elif isinstance(one, exp.Delete):
            yield f"delete::{target}::(.*)"
        for star in one.find_all(exp.Star):
            if not isinstance(star.parent, exp.Func):  # count(*) is not a column
                yield f"select::{_owner(star.parent, tables)}::(.*)"
        for column in one.find_all(exp.Column):
            if isinstance(column.parent, exp.EQ) and column.arg_key == "this" and column.parent.parent is one:
                yield f"update::{target}::{column.name}"
            elif not isinstance(column.this, exp.Star):
                yield f"select::{_owner(column, tables)}::{column.name}"


def _owner(node: Any, tables: Mapping[str, str]) -> str:
    named = getattr(node, "table", "")
    return tables.get(named, named) or "null"


# -- words ---------------------------------------------------------------------------------------------------


def _word_count(text: str, value: Mapping[str, Any]) -> str:
    words = len(text.split())
    if "count" in value:
        return "" if words == value["count"] else f"has {words} words, and not {value['count']:g}"
    least, most = value.get("min", 0), value.get("max", float("inf"))
    return "" if least <= words <= most else f"has {words} words, and not {least:g} to {most:g}"


_FORMS: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "is-xml": _is_xml,
    "contains-xml": _contains_xml,
    "is-html": _is_html,
    "contains-html": lambda text, _: (
        "" if sum(weight for sign, weight in _SIGNS.items() if sign.search(text)) > 1 else "has no HTML in it"
    ),
    "is-sql": _is_sql,
    "contains-sql": _contains_sql,
    "word-count": _word_count,
}
"""The types by name: each returns what is wrong with an output, and '' if nothing is."""

FORMS = frozenset(_FORMS)


@frozen
class Form:
    """A function for `Holds`: the output has the form that *kind*, one of `FORMS`, and its *value* say."""

    kind: str
    value: FrozenMap | None = field(default=None, converter=optional(FrozenMap))

    @property
    def __name__(self) -> str:
        return self.kind if self.value is None else shorten(f"{self.kind} {thaw(self.value)}", 80)

    def __call__(self, candidate: Candidate) -> Decided:
        """Return the verdict on *candidate*."""
        wrong = _FORMS[self.kind](candidate.output, {} if self.value is None else thaw(self.value))
        reason = f"the output {wrong}" if wrong else f"{self.kind}: yes"
        return Decided(float(not wrong), reason=reason, passed=not wrong)


def form_of(kind: str, value: Any) -> Form:
    """Return the check of the assertion type *kind* with *value*, or refuse the value."""
    if kind == "word-count":
        return Form(kind, _count_limits(value))
    if value is None or (kind.endswith("html") and value == ""):
        return Form(kind)
    if kind.endswith("xml") and isinstance(value, str | list):  # the elements alone
        listed = value.split(",") if isinstance(value, str) else value
        value = {"requiredElements": [str(one).strip() for one in listed]}
    if kind.endswith("html") or not isinstance(value, Mapping):
        allowed = "nothing" if kind.endswith("html") else "nothing, or a mapping"
        raise fields.refuse("value", value, allowed)
    known = ["requiredElements"] if kind.endswith("xml") else ["allowedTables", "allowedColumns", "databaseType"]
    for key, one in value.items():
        if key not in known:
            raise DefinitionError("value", f"{kind} has no {key!r}; it has {', '.join(known)}")
        if key != "databaseType" and not (isinstance(one, list | tuple) and all(isinstance(x, str) for x in one)):
            raise fields.refuse("value", one, f"a list of texts as {key}")
    return Form(kind, value)


def _count_limits(value: Any) -> dict[str, float]:
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"count": value}
    given = dict(value) if isinstance(value, Mapping) else {}
    numbers = all(isinstance(number, int | float) and not isinstance(number, bool) for number in given.values())
    if {*given} == {"count"} and numbers:
        return given
    if not given or not given.keys() <= {"min", "max"} or not numbers:
        raise fields.refuse("value", value, "a number of words, or min, max or both")
    if given.get("min", 0) > given.get("max", float("inf")):
        raise DefinitionError("value", f"expected min up to max, got {given.get('min', 0):g} and {given['max']:g}")
    return given


# -- how it ended ----------------------------------------------------------------------------------------------

_REASONS = words_of("assertions", "finish", "reasons")
"""The words of vendors for the four reasons that promptfoo knows."""


@frozen
class FinishReason:
    """A function for `Holds`: the model stopped for the reason *expected*; case does not matter."""

    expected: str

    @property
    def __name__(self) -> str:
        return f"finish-reason: {self.expected}"

    def __call__(self, candidate: Candidate) -> Decided | Failure:
        """Return the verdict on *candidate*; a failure where it is not known why the model stopped."""
        found = candidate.metrics.finish_reason.lower()
        if not found:
            cure = "let a live target answer, or give the response with `metrics: {finish_reason: stop}`"
            return Failure("unsupported", f"it is not known why the model stopped; {cure}")
        found, wanted = (_REASONS.get(said, said) for said in (found, self.expected.lower()))
        return Decided(float(found == wanted), reason=f"the model stopped for {found!r}", passed=found == wanted)


@frozen
class PerplexityScore:
    """A function for `Holds`: 1 / (1 + perplexity) of the output, which passes from *threshold*, if there is one."""

    threshold: float | None = None

    @property
    def __name__(self) -> str:
        return "perplexity-score"

    def __call__(self, candidate: Candidate) -> Decided | Failure:
        """Return the score of *candidate*; a failure where its perplexity is not known."""
        known = candidate.metrics.perplexity
        if known is None:
            return Failure("unsupported", "the perplexity is not known; give it with `metrics: {perplexity: ...}`")
        score = 1 / (1 + known)
        passed = self.threshold is None or score >= self.threshold
        return Decided(score, reason=f"perplexity {known:.4g}, score {score:.4g}", passed=passed)
