"""Markup, SQL, words and how a model stopped: promptfoo's checks of an output, with the cases of its own tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric import Candidate, Case, Grade, LoadError, Rubric, Suite, Ungraded
from rubric.engine.grade import evaluate
from rubric.formats.assertions import forms
from rubric.formats.suites import loads_suite
from rubric.values.checks import Unsupported
from tests.rows import each_row


def rubric_of(kind: str, value: Any = None, **keys: Any) -> Rubric:
    assertion = {"type": kind, **({} if value is None else {"value": value}), **keys}
    (case,) = loads_suite(json.dumps({"tests": [{"assert": [assertion]}]}), "promptfoo")
    return case.rubric


def passes(kind: str, output: str, value: Any = None, **keys: Any) -> bool | None:
    found = evaluate(Candidate(output), rubric_of(kind, value, **keys), "offline")
    assert isinstance(found, Grade), found
    return found.passed


# -- XML -----------------------------------------------------------------------------------------------------

XHTML = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">'


@each_row(
    "output",
    [
        "<root><child>Content</child></root>",
        "  <root/>\n",
        "\ufeff<root/>",
        "<!-- before --><root/><!-- after -->",
        "<!DOCTYPE root><root/>",
        '<!DOCTYPE root SYSTEM "weird[name].dtd"><root/>',
        f'{XHTML}<html xmlns="http://www.w3.org/1999/xhtml"><body>&nbsp;</body></html>',
        '<root xmlns:ns="http://example.com"><ns:child>Content</ns:child></root>',
    ],
)
def test_well_formed_documents_are_xml(output: str) -> None:
    """One root element with comments, a document type or namespaces passes `is-xml`."""
    assert passes("is-xml", output)
    assert not passes("not-is-xml", output)


@each_row(
    "output",
    [
        "<root><child>Content</child></root",
        "<a></b>",
        "<a><b></a></b>",
        "<a>text</a><b>more</b>",
        "<a attr=unquoted>x</a>",
        "<a/>trailing",
        '<root attr="1" attr="2"/>',
        "<root>&undefined;</root>",
        "",
        "```xml\n<a/>\n```",
        '<!DOCTYPE root [<!ENTITY writer "Donald">]><root>&writer;</root>',
        '<?xml version="1.0" standalone="yes"?><!DOCTYPE root SYSTEM "e.dtd"><root>&external;</root>',
    ],
)
def test_anything_else_is_no_xml(output: str) -> None:
    """Malformed markup, text around the root, fences and own entities fail `is-xml`."""
    assert not passes("is-xml", output)
    assert passes("not-is-xml", output)


SHIRT = "<analysis><classification>T-shirt</classification><color>Red</color></analysis>"
ITEMS = "<root><item><name>First</name></item><item><name>Second</name></item></root>"


@each_row(
    ("output", "paths", "passed"),
    [
        (SHIRT, ["analysis.classification", "analysis.color"], True),
        (SHIRT.replace("<color>Red</color>", ""), ["analysis.classification", "analysis.color"], False),
        ("<root><parent><child></child></parent></root>", ["root.parent.child.grandchild"], False),
        ("<root><parent><child><grandchild/></child></parent></root>", ["root.parent.child.grandchild"], True),
        (ITEMS, ["root.item.0.name", "root.item.1.name"], True),
        (ITEMS, ["root.item.2.name"], False),
        ("<root><child><![CDATA[<p>text</p>]]></child></root>", ["root.child"], True),
    ],
)
def test_required_elements_are_paths_from_the_root(output: str, paths: list[str], passed: bool) -> None:
    """Each path must exist; a number in it counts elements of one name."""
    assert passes("is-xml", output, {"requiredElements": paths}) is passed


@each_row(
    ("output", "paths", "passed"),
    [
        ("Some text <root><child>Content</child></root> more text", [], True),
        ("This is just plain text", [], False),
        ("Text <root><child>Content</child></root> more", ["root.child"], True),
        ("Text <root><child>Content</child></root> more", ["root.missing"], False),
        ("<root1>Content</root1> text <root2><child>More</child></root2>", ["root2.child"], True),
        ("<xml1>content1</xml1> more text <xml2>content2</xml2>", ["xml1", "xml2"], True),
        ("Text <unclosed><root><child>Content</child></root>", ["root.child"], True),
        ("Text <élément>Content</élément> more", ["élément"], True),
        ("<root><!-- </root> --><child>Content</child></root>", ["root.child"], True),
        ("<root><![CDATA[</root>]]><child>Content</child></root>", ["root.child"], True),
        ("Text <wrapper><root><child>Content</child></root></wrapper>", ["root.child"], False),
        ("Say <b>R & D</b>", ["b"], True),
        ("<a" * 5_000, [], False),
        ("<!--" * 10_000, [], False),
        ("<a>" * 1_000 + "</a>" * 1_000, ["a.missing"], False),
    ],
)
def test_xml_is_found_in_other_text(output: str, paths: list[str], passed: bool) -> None:
    """A well-formed element in prose counts, and hostile input is decided in linear time."""
    assert passes("contains-xml", output, {"requiredElements": paths} if paths else None) is passed


# -- HTML ----------------------------------------------------------------------------------------------------


@each_row(
    "output",
    [
        "<p>paragraph</p>",
        '<img src="image.jpg" />',
        "Some text with <strong>emphasis</strong> in it",
        "<br />",
        '<custom-element attr="value">Web component</custom-element>',
        "<div>&nbsp;</div>",
        "<!-- comment --><span>text</span>",
    ],
)
def test_html_is_found_by_two_signs(output: str) -> None:
    """A common element is enough; weaker signs, such as a closing tag or an entity, must be two."""
    assert passes("contains-html", output)
    assert not passes("not-contains-html", output)


@each_row(
    "output",
    [
        "Just plain text",
        "2 < 3 and 4 > 1",
        "Math: a < b > c",
        "< div >",
        "Generic <example> text",
        "if (a<b) { return c>d; }",
        "The price is <$50",
        "Email me at <john@example.com>",
        "<custom>",
        "&amp;",
        "<!-- comment -->",
    ],
)
def test_one_sign_is_no_html(output: str) -> None:
    """Comparisons, placeholders, addresses and a lone entity or comment are not HTML."""
    assert not passes("contains-html", output)


@each_row(
    ("output", "passed"),
    [
        ("<!DOCTYPE html><html><head><title>T</title></head><body>Text</body></html>", True),
        ("<div>Content</div>", True),
        ("<h1>Title</h1><p>Paragraph</p>", True),
        ('<img src="test.jpg" />', True),
        ("<ul><li>one<li>two</ul>", True),
        ("<my-element>x</my-element>", True),
        ("Just text", False),
        ("Text before <div>HTML</div> text after", False),
        ("<p>one</p> and <p>two</p>", False),
        ('<?xml version="1.0"?><root>...</root>', False),
        ("<root><child>x</child></root>", False),
        ("<div>Unclosed div", False),
        ("<div><span>x</div>", False),
        ("Here is some HTML: <div>test</div>", False),
    ],
)
def test_html_is_known_elements_and_nothing_around_them(output: str, passed: bool) -> None:
    """`is-html` wants known elements that are closed, and no text outside of them."""
    assert passes("is-html", output) is passed


# -- SQL -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "value", "passed"),
    [
        ("SELECT id, name FROM users", None, True),
        ("SELECT DISTINCT name FROM users", None, True),
        ("SELECT * FROM `employees` WHERE `id` = 1", None, True),
        ("SELECT 1 -- select distinct first_name last_name from employees\n", None, True),
        ("SELECT 'select distinct first_name last_name from employees' AS sample", None, True),
        ('SELECT DISTINCT "display name" FROM users', {"databaseType": "PostgreSQL"}, True),
        ("SELECT a b FROM t", None, False),
        ("SELECT DISTINCT first_name last_name FROM employees", None, False),
        ("SELECT col1 col2 col3 FROM table1", None, False),
        ("", None, False),
        ("   ", None, False),
        ("hello world", None, False),
        ("this is not sql", None, False),
        ("SELECT * FROM orders ORDERY BY order_date", None, False),
        ("SELECT * FROM select WHERE id = 1", None, False),
        ("DELETE employees WHERE id = 1", None, False),
        ("SELECT * FROM `employees", None, False),
        ("SELECT `id, `name FROM `users", None, False),
        ("SELECT name FROM employees WHERE name ILIKE 'john%'", {"databaseType": "MySQL"}, False),
        ("SELECT name FROM employees WHERE name ILIKE 'john%'", {"databaseType": "PostgreSQL"}, True),
        ("SELECT * FROM table_name WHERE id IN (SELECT generate_series(1, 5));", {"databaseType": "MySQL"}, False),
        ("SELECT * FROM employees", {"allowedTables": ["(select|update|insert|delete)::null::departments"]}, False),
        ("SELECT * FROM departments", {"allowedTables": ["(select|update|insert|delete)::null::departments"]}, True),
        ("SELECT id FROM t", {"allowedColumns": ["select::null::name", "update::null::id"]}, False),
        ("SELECT id FROM t", {"allowedColumns": ["select::null::id"]}, True),
        ("SELECT * FROM t", {"allowedColumns": ["select::null::id"]}, False),
        ("SELECT * FROM t", {"allowedColumns": ["select::null::.*"]}, True),
        (
            "INSERT INTO department (dept_name, location) VALUES ('Sales', 'New York')",
            {"allowedColumns": ["insert::department::dept_name", "insert::department::location"]},
            True,
        ),
        ("UPDATE a SET id = 1", {"allowedColumns": ["update::a::id"]}, True),
        ("UPDATE a SET id = 1 WHERE name = 'x'", {"allowedColumns": ["update::a::id"]}, False),
    ],
)
def test_sql_is_parsed_and_its_tables_and_columns_are_compared(output: str, value: Any, passed: bool) -> None:
    """The dialect decides what parses; allowed tables and columns cover every clause."""
    pytest.importorskip("sqlglot", reason="the extra sql is not installed")
    assert passes("is-sql", output, value) is passed


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        ("Result:\n```sql\nSELECT DISTINCT name FROM users\n```", True),
        ("```\nSELECT `id` FROM `users`;\n```", True),
        ("SELECT 1", True),
        ("Use SELECT", False),
        ("```sql\nSELEC id FROM t\n```", False),
    ],
)
def test_sql_is_found_in_a_fenced_block(output: str, passed: bool) -> None:
    """The fenced block is parsed alone; without a fence the whole output is."""
    pytest.importorskip("sqlglot", reason="the extra sql is not installed")
    assert passes("contains-sql", output) is passed


def test_sql_that_nobody_here_can_parse_is_ungraded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the library, for another database, and for a statement that the parser passes over."""
    pytest.importorskip("sqlglot", reason="the extra sql is not installed")
    assert isinstance(evaluate("CALL work(1, 2)", rubric_of("is-sql"), "offline"), Ungraded)
    lacking = rubric_of("is-sql", {"databaseType": "FlinkSQL"}).criteria[0].answer
    assert isinstance(lacking, Unsupported)
    monkeypatch.setattr(forms, "find_spec", lambda _: None)
    lacking = rubric_of("is-sql").criteria[0].answer
    assert isinstance(lacking, Unsupported)
    assert "rubric-grade[sql]" in lacking.cure


# -- words -----------------------------------------------------------------------------------------------------


@each_row(
    ("output", "value", "passed"),
    [
        ("one two three", 3, True),
        ("one 2 three", "3", True),
        ("  one\n two\tthree ", 3, True),
        ("one two", 3, False),
        ("", 0, True),
        ("one two", {"min": 1, "max": 2}, True),
        ("one two three", {"max": 2}, False),
        ("one", {"min": 2}, False),
        ("one two", {"min": 2}, True),
    ],
)
def test_words_are_counted(output: str, value: Any, passed: bool) -> None:
    """Words are separated by white space; the value is an exact number or a range."""
    assert passes("word-count", output, value) is passed
    assert passes("not-word-count", output, value) is not passed


@each_row(
    ("kind", "value"),
    [
        ("word-count", {"min": 3, "max": 2}),
        ("word-count", "many"),
        ("is-xml", {"required": ["a"]}),
        ("is-xml", {"requiredElements": "a"}),
        ("is-html", "x"),
        ("is-sql", "MySQL"),
    ],
)
def test_a_value_that_the_type_cannot_have_is_refused(kind: str, value: Any) -> None:
    """A missing, misspelt or impossible value is a load error."""
    with pytest.raises(LoadError):
        rubric_of(kind, value)


# -- how it ended ----------------------------------------------------------------------------------------------


@each_row(
    ("found", "expected", "passed"),
    [
        ("stop", "stop", True),
        ("stop", "STOP", True),
        ("end_turn", "stop", True),
        ("max_tokens", "length", True),
        ("tool_use", "tool_calls", True),
        ("refusal", "content_filter", True),
        ("length", "stop", False),
    ],
)
def test_the_reason_why_a_model_stopped_is_compared(found: str, expected: str, passed: bool) -> None:
    """The vendors' own words are mapped to promptfoo's, in any letter case."""
    candidate = Candidate("x", metrics={"finish_reason": found})
    assert evaluate(candidate, rubric_of("finish-reason", expected), "offline").passed is passed
    assert evaluate(candidate, rubric_of("not-finish-reason", expected), "offline").passed is not passed


def test_figures_that_are_not_known_leave_the_case_ungraded_with_the_cure() -> None:
    """The reason shows the `metrics` that a candidate needs."""
    for kind, value in (("finish-reason", "stop"), ("perplexity-score", None)):
        (row,) = Suite("s", [Case("a", rubric_of(kind, value), output="x")]).run("offline")
        assert (row.status, "metrics: {" in row.reason) == ("ungraded", True)


@pytest.mark.parametrize(("threshold", "passed"), [(None, True), (0.2, True), (0.5, False)])
def test_the_score_by_perplexity_is_higher_for_less(threshold: float | None, passed: bool) -> None:
    """A perplexity of 3 scores 0.25, and the threshold is a least score."""
    keys = {} if threshold is None else {"threshold": threshold}
    candidate = Candidate("x", metrics={"perplexity": 3.0})
    found = evaluate(candidate, rubric_of("perplexity-score", **keys), "offline")
    assert (found.passed, found.outcome.score) == (passed, 0.25)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "output"),
    [
        ("contains-xml", "<" + "a" * 400_000),
        ("contains-sql", "```" + " " * 20_000),
        ("is-html", "<b>" * 100_000 + "</x>" * 100_000),
    ],
)
def test_no_output_takes_more_time_than_its_length(kind: str, output: str) -> None:
    """Each of these took minutes, or hours, where the time grows with the square or the cube of the length."""
    assert passes(kind, output) is False


def test_a_declaration_that_the_parser_does_not_know_is_no_html() -> None:
    """An unknown declaration fails `is-html` and raises no error."""
    assert passes("is-html", "<p>a</p><![x><p>b</p>") is False
    assert passes("not-is-html", "<p>a</p><![x><p>b</p>") is True


@each_row(
    ("statement", "passed"),
    [
        ("SELECT a FROM users", True),
        ("SELECT a FROM users; DROP TABLE users", False),
        ("DROP TABLE users", False),
        ("TRUNCATE TABLE users", False),
        ("ALTER TABLE users ADD COLUMN x INT", False),
        ("CREATE TABLE users (a INT)", False),
        ("WITH x AS (SELECT a FROM users) SELECT a FROM x", True),
        ("WITH x AS (SELECT a FROM users), y AS (SELECT a FROM x) SELECT a FROM y", True),
        ("WITH RECURSIVE x AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM x) SELECT a FROM x", True),
        ("WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets", False),
        ("SELECT * FROM secrets WHERE 1 IN (WITH secrets AS (SELECT 1 AS a) SELECT a FROM secrets)", False),
        ("WITH secrets AS (SELECT 1 AS a) SELECT a FROM own.secrets", False),
    ],
)
def test_tables_that_may_be_read_may_not_be_changed_nor_hidden_behind_a_name(statement: str, passed: bool) -> None:
    """Writing statements fail, and a common table expression never shadows a real table."""
    assert passes("is-sql", statement, {"allowedTables": ["select::null::users"]}) is passed
