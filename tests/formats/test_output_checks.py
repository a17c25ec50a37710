"""SQL, words and how a model stopped: promptfoo's checks of an output, with the cases of its own tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric import Candidate, Case, Grade, LoadError, Rubric, Suite, Ungraded
from rubric.engine.grade import evaluate
from rubric.formats import output_checks
from rubric.formats.suites import loads_suite
from rubric.values.checks import Unsupported


def rubric_of(kind: str, value: Any = None, **keys: Any) -> Rubric:
    assertion = {"type": kind, **({} if value is None else {"value": value}), **keys}
    (case,) = loads_suite(json.dumps({"tests": [{"assert": [assertion]}]}), "promptfoo")
    return case.rubric


def passes(kind: str, output: str, value: Any = None, **keys: Any) -> bool | None:
    found = evaluate(Candidate(output), rubric_of(kind, value, **keys), "offline")
    assert isinstance(found, Grade), found
    return found.passed


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
    monkeypatch.setattr(output_checks, "find_spec", lambda _: None)
    lacking = rubric_of("is-sql").criteria[0].answer
    assert isinstance(lacking, Unsupported)
    assert "rubric-grade[sql]" in lacking.type


# -- words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("word-count", {"min": 3, "max": 2}),
        ("word-count", "many"),
        ("is-sql", "MySQL"),
        ("is-sql", {"tables": ["a"]}),
        ("is-sql", {"allowedTables": "a"}),
    ],
)
def test_a_value_that_the_type_cannot_have_is_refused(kind: str, value: Any) -> None:
    """A missing, misspelt or impossible value is a load error."""
    with pytest.raises(LoadError):
        rubric_of(kind, value)


# -- how it ended ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
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
    (row,) = Suite("s", [Case("a", rubric_of("finish-reason", "stop"), output="x")]).run("offline")
    assert (row.status, "metrics: {" in row.reason) == ("ungraded", True)


def test_no_output_takes_more_time_than_its_length() -> None:
    """This took minutes, where the time grew with the square of the length."""
    assert passes("contains-sql", "```" + " " * 20_000) is False


@pytest.mark.parametrize(
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
