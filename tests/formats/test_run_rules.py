"""Rules over runs in files: the same in Python, in YAML and back; and what is refused, with its place."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rubric import Criterion, LoadError, Rubric, call, dumps, loads, said, state
from rubric.formats.native.run_rules import _rows
from rubric.formats.rubrics import schema
from rubric.values.checks import Check
from rubric.values.run_rules import KINDS, RunRule, RunRules
from tests.rows import each_row
from tests.run_rules import random_rule
from tests.values.test_run_rules import ELEVEN

VALIDATOR = Draft202012Validator(schema())

FORMS: list[tuple[str, Check]] = [
    ("{every: refund, needs: verify, same: order}", call("refund").needs("verify", same="order")),
    ('{every: "edit_*", then: run_tests}', call("edit_*").then("run_tests")),
    ('{never: "delete_*"}', call("delete_*").never()),
    ("{at_most: 3, of: search}", call("search").at_most(3)),
    ('{at_most: 2, of: "*", same: arguments}', call().at_most(2, same="arguments")),
    ('{never: "account_*", after: logout, until: login}', call("account_*").never().after("logout").until("login")),
    ("{never: push, after: edit, before: test}", call("push").never().after("edit").before("test")),
    ("{last: submit}", call("submit").last()),
    ("{first: {said: assistant}}", said("assistant").first()),
    ("{always: {agent: main}}", call(agent="main").always()),
    ("{at_least: 1, of: {call: refund, arguments: {order: 7}, failed: false}}", call("refund", arguments={"order": 7}, failed=False).at_least()),
    (
        '{every: {failed: true}, then: {said: assistant, matches: "sorry|could not"}, within: 2}',
        call(failed=True).then(said("assistant", "sorry|could not"), within=2),
    ),
    ("{every: refund, needs_one: {call: verify, matches: {id: ^A}, result: ok}}", call("refund").needs_one(call("verify", matches={"id": "^A"}, result="ok"))),
    ("{last: {state: balance, is: 20}}", state("balance", 20).at_end()),
    ("{always: {state: balance, matches: ^2}, after: pay}", state("balance", matches="^2").after("pay")),
    ("{unchanged: {state: mail}, until: {said: user}}", state("mail").unchanged().until(said("user"))),
    ("{last: {state: done, is: null}}", state("done", None).at_end()),
    ("[{never: a}, {last: b}]", call("a").never() & call("b").last()),
    ("[{never: a}]", RunRules([call("a").never()])),
]  # fmt: skip


def read(text: str) -> Any:
    """Return the check of a criterion whose `check:` has the rule *text*."""
    return loads(f"criteria:\n  - text: Keeps it\n    check: {{run: {text}}}\n").criteria[0].answer


def test_the_schema_has_each_rule_with_its_keys() -> None:
    """An editor offers what the reader takes."""
    rules = schema()["$defs"]["rule"]["anyOf"]
    assert [{*rule["properties"]} for rule in rules] == [{*_rows(kind)} for kind in KINDS]


@each_row(("text", "check"), FORMS, ids=[text for text, _ in FORMS])
def test_a_rule_in_a_file_is_the_one_in_python(text: str, check: Check) -> None:
    """And it is written as a person would write it."""
    rubric = Rubric(criteria=[Criterion("Keeps it", check=check)])
    assert read(text) == check
    assert loads(dumps(rubric)) == rubric
    VALIDATOR.validate(json.loads(dumps(rubric, format="json")))
    VALIDATOR.validate(
        {
            "criteria": [
                {
                    "text": "Keeps it",
                    "check": {"run": json.loads(dumps(rubric, format="json"))["criteria"][0]["check"]["run"]},
                }
            ]
        }
    )


@pytest.mark.long
def test_every_rule_reads_back_as_itself() -> None:
    """The eleven, and random ones of every kind and scope; the schema takes each."""
    rnd = Random(5)
    for rule in [*ELEVEN.values(), *(random_rule(rnd) for _ in range(300))]:
        rubric = Rubric(criteria=[Criterion("Keeps it", check=rule)])
        written = dumps(rubric, format="json")
        assert loads(written) == rubric
        VALIDATOR.validate(json.loads(written))
    assert isinstance(rule, RunRule)


WRONG = [
    ("{every: a}", "check.run", "every takes one of needs, needs_one, then, got none"),
    ("{every: a, needs: b, then: c}", "check.run", "got needs and then"),
    ("{never: a, last: b}", "check.run", "make two rules of it"),
    ("{nevr: a}", "check.run", "expected a rule with one of every, never"),
    ("{at_most: 3}", "check.run", "write {at_most: 3, of: search}"),
    ('{at_most: "3", of: a}', "check.run.at_most", "check: {run: {at_most: 3, of: a}}"),
    ("{at_least: 0, of: a}", "check.run.at_least", "1 or more"),
    ("{never: a, same: x}", "check.run.same", "unknown key"),
    ("{never: a, afer: b}", "check.run.afer", "did you mean 'after'"),
    ("{never: a, until: b, before: c}", "check.run.before", "keep one"),
    ("{every: a, needs: {said: user}, same: x}", "check.run.same", "only calls have arguments"),
    ("{every: {cal: a}, needs: b}", "check.run.every.cal", "did you mean 'call'"),
    ("{never: {said: user, matches: (}}", "check.run.never.matches", "RE2"),
    ("{never: {}}", "check.run.never", 'write "*" for every call'),
    ("{never: [a, b]}", "check.run.never", "the name of a tool"),
    ("{last: {state: s}}", "check.run.last", "unchanged()"),
    ("[]", "check.run", "at least one rule"),
    ("[{never: a}, {nevr: a}]", "check.run[1]", "expected a rule"),
]


@each_row(("text", "path", "words"), WRONG, ids=[text for text, *_ in WRONG])
def test_a_wrong_rule_is_refused_at_its_place(text: str, path: str, words: str) -> None:
    """With the line, the path, and what works; the schema refuses most of them too."""
    with pytest.raises(LoadError) as caught:
        read(text)
    (problem,) = caught.value.problems
    assert (problem.line, problem.path) == (3, f"criteria[0].{path}"), str(problem)
    assert words in problem.message
