"""Every cure in the table of guesses is run, as it is printed; and no word of it names what there is already."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import shlex
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import partial
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import click
import openai
import pandas as pd
import pytest

import rubric as package
from rubric import (
    Case,
    Criterion,
    Grades,
    Judge,
    Jury,
    Panel,
    Rubric,
    ScoreRange,
    Suite,
    ask,
    diff,
    evaluate,
    grade,
    grade_many,
    influence,
    lint,
    plan,
    prefer_many,
)
from rubric.formats import dumps_suite
from rubric.internals.cure_lines import imports_of, lines_in
from rubric.internals.guesses import name_cure, word_cure
from rubric.internals.lazy_names import public_names
from rubric.trust import Disagreement, Labels, agreement, calibrate, compare, estimate, thresholds
from tests.command_line import commands
from tests.rows import each_row
from tests.wrong_lines import problem_in

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files("rubric.internals").joinpath("guesses.toml").read_text("utf-8")
)
RUBRIC = (
    Rubric("reply")
    .expects("Thanks the customer", id="id")
    .expects("Is polite", id="polite")
    .tested_by("Thanks", fails=True)
)
REPLIES = ["We thank you, politely.", "No."] * 12
CANDIDATES = [package.Candidate(reply, variables={"topic": "refunds"}) for reply in REPLIES]
LABELS = Labels({place: reply != "No." for place, reply in enumerate(REPLIES)})
PAIRS = [{"a": "We thank you.", "b": "No.", "topic": "refunds"}] * 6
PREFERENCES = prefer_many(PAIRS, RUBRIC, "offline")
TREE = ask("Is it polite?").yes(1.0).no(0.0)


def values() -> dict[str, Any]:
    """Return what the printed lines are about, by the names that they give it."""
    graded = grade_many(CANDIDATES, RUBRIC, "offline").collect()
    suite = Suite("replies", [Case(id_, RUBRIC, output="We thank you.") for id_ in ("refund", "slow")])
    report = suite.run("offline")
    return {
        **{name: getattr(package, name) for name in package.__all__},
        "rubric": RUBRIC, "other": Rubric("other", ["Is warm"]), "house_style": Rubric("house", ["Is short"]),
        "criterion": RUBRIC[0], "criteria": [Criterion("Is warm")], "candidate": package.Candidate("We thank you."),
        "candidates": ["We thank you."], "earlier": graded[:12], "rows": [{"answer": "We thank you."}], "judge": Judge("offline"),
        "outputs": ["We thank you."], "inputs": ["Why?"], "references": ["Thanks."], "contexts": ["Friday."], "ids": ["a"], "messages": [{"role": "assistant", "content": "Thanks."}],
        "budget": package.Budget(cost=5), "jury": Jury("offline", 3), "panel": Panel(["offline", "offline"]), "tree": TREE, "range": ScoreRange(1, 5),
        "grades": graded, "finding": graded[0].findings[0], "summary": graded.summary(), "usage": graded[0].usage,
        "suite": suite, "new": graded, "old": graded, "data": RUBRIC.to_dict(), "report": report, "text": RUBRIC.to_yaml(),
        "labels": LABELS, "others": Labels({99: True}), "calibration": calibrate(graded, LABELS), "client": None, "x": 1, "case": Case("late", RUBRIC, output="No."), "row": report.rows[0], "remarks": lint(RUBRIC), "run": package.Run([package.Message("user", "Why?")]),
        "remark": lint(Rubric("r").expects("Is kind", id="a").expects("Is kind", id="b"))[0],
        "criterion_difference": compare(graded, graded)["pass rate"],
        "result": graded[0], "results": [*graded], "difference": compare(graded, graded),
        "criterion_agreement": agreement(graded, LABELS).overall,
        "frame": pd.DataFrame([
            {"key": n, "value": 1, "topic": "a", "text": f"Is warm {n}", "weight": 1} for n in range(len(graded))
        ]),
        "pairs": PAIRS, "preferences": PREFERENCES, "preference": PREFERENCES[0],
    }  # fmt: skip


VALUES = {**values(), "Counter": Counter}
FUNCTIONS = {
    "Plan": plan("x", RUBRIC, "offline"), "Agreement": agreement(VALUES["grades"], LABELS), "Estimate": estimate(VALUES["grades"], LABELS),
    "Disagreements": agreement(VALUES["grades"], LABELS).disagreements,
    "Drift": agreement(VALUES["grades"], LABELS).against(agreement(VALUES["grades"], LABELS)),
    "Comparison": VALUES["report"].compare(VALUES["report"]),
    "Disagreement": Disagreement("", "0", "yes", "no"),
    "Thresholds": thresholds(VALUES["grades"], LABELS), "Calibration": VALUES["calibration"],
    "RubricDiff": diff(RUBRIC, RUBRIC.passing_at(0.9)), "Influences": influence(RUBRIC),
}  # fmt: skip
"""Results of functions, which have the names of these."""
KINDS: dict[str, Any] = {
    "Suite": VALUES["suite"], "Report": VALUES["report"], "Rubric": RUBRIC, "Criterion": RUBRIC[0],
    "Candidate": VALUES["candidate"], "Judge": VALUES["judge"], "Jury": VALUES["jury"], "Panel": VALUES["panel"],
    "ScoreRange": VALUES["range"], "DecisionTree": TREE, "Result": VALUES["grades"][0], "_Finding": VALUES["finding"],
    "Question": ask("Is it?"), "Labels": LABELS, **FUNCTIONS,
    "Remarks": VALUES["remarks"], "Remark": VALUES["remark"], "CriterionDifference": VALUES["criterion_difference"],
    "Difference": VALUES["difference"], "CriterionAgreement": VALUES["criterion_agreement"],
    "Grading": grade_many([], RUBRIC, "offline"), "Store": package.Store, "Matcher": package.call("search"), "Run": package.Run([package.Message("user", "Why?")]),
    "Budget": VALUES["budget"], "Row": VALUES["row"], "Case": VALUES["suite"].cases[0],
    "Preferences": PREFERENCES, "Preference": PREFERENCES[0],
    "Grades": VALUES["grades"], "Figure": VALUES["grades"].mean, "Summary": VALUES["summary"], "Usage": VALUES["usage"],
}  # fmt: skip
"""An object of each class whose attributes are guessed."""

DATA = {"Judge": {"model": "offline"}, "Criterion": {"text": "Is warm"}, "Candidate": {"output": "Thanks."}}


def lines_of(cure: str) -> Iterator[str]:
    """Yield the code that *cure* has: all of it, or what follows each `write` or `such as`."""
    cure = cure.replace(", such as ", ", write ")
    for part in re.split(r"(?:[.;,] |^)write |; ", cure)[1 if "write " in cure else 0 :]:
        code = part.partition(", from rubric")[0].strip().rstrip(".")
        if "(" in code or "=" in code or "[" in code or "." in code:
            yield code


def run_line(line: str, given: dict[str, Any]) -> object:
    """
    Run *line*, an expression, an assignment, an import or an awaited call; return its value. A rubric must grade.

    It has what a reader has: the names of `rubric`, values by the names of their kinds, and the imports that it prints.
    """
    names = {**VALUES, **given}
    exec(imports_of(line), names)  # noqa: S102 - the lines of our own table
    if line.startswith("await "):
        return asyncio.run(eval(line.removeprefix("await "), names))  # noqa: S307 - the lines of our own table
    try:
        code = compile(line, "cure", "eval")
    except SyntaxError:
        exec(line, names)  # noqa: S102 - as above
        return names
    value = eval(code, names)  # noqa: S307 - as above
    if (
        isinstance(value, Rubric) and value.judged and given.get("owner") != "penalizes"
    ):  # which says so in its own call
        evaluate("We thank you.", value, "offline")
    return value


TO_READ = {
    "rubric.yaml": RUBRIC.to_yaml(),
    "suite.yaml": dumps_suite(VALUES["suite"]),
    "results.jsonl": VALUES["grades"].to_jsonl(),
    "labels.csv": "key,value,id,label\n0,1,0,1\n",
    "results.json": '[{"output": "We thank you."}]',
    "rows.csv": "output\nWe thank you.\n",
    "reply.txt": "We thank you.",
    "run.json": '[{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Thanks."}]',
}
"""What lines read, made once: to make it takes longer than to run a line."""


_base: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def _folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let each row have a folder of its own below one of the module, with a key in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        _base[:] = [tmp_path_factory.mktemp("cures")]
        patch.chdir(_base[0])
        patch.setenv("OPENAI_API_KEY", "k")
        yield


def enter_folder() -> None:
    """Go to a new folder that has the files which lines name."""
    os.chdir(tempfile.mkdtemp(dir=_base[0]))
    for name, text in TO_READ.items():
        Path(name).write_text(text, encoding="utf-8")


ATTRIBUTES = [(kind, cure) for kind, cures in TABLE["attributes"].items() for cure in cures]


@each_row(("kind", "cure"), ATTRIBUTES, ids=[f"{kind}: {cure}" for kind, cure in ATTRIBUTES])
def test_what_is_proposed_for_an_attribute_runs(kind: str, cure: str) -> None:
    """Each expression gives a value for an object of the class."""
    enter_folder()
    given: dict[str, Any] = {"data": DATA.get(kind, RUBRIC.to_dict())}
    if kind == "Store":
        package.Store("replies.db").close()
    if kind in ("Result", "_Finding") and not cure.startswith(("write grade(", "replies are kept")):
        given["grade"] = VALUES["grades"][0]
    if kind in FUNCTIONS and not re.match("write (?!import)", cure):
        given[{"RubricDiff": "diff", "Influences": "influence"}.get(kind, kind.lower())] = FUNCTIONS[kind]
    for line in lines_of(cure):
        if line.startswith("generate("):  # it takes a writer
            assert callable(import_module("rubric.quality").generate)
        elif " and " in line:
            run_line(line.replace(" and ", ", "), given)
        elif line.startswith("assert "):  # the grade here fails
            run_line(line.removeprefix("assert "), given)
        else:
            run_line(line, given)


@each_row("kind", TABLE["attributes"])
def test_no_attribute_that_there_is_counts_as_a_guess(kind: str) -> None:
    """A word in the table would never be looked up if the class had it."""
    guessed = {word for words in TABLE["attributes"][kind].values() for word in words.split()}
    assert not [word for word in guessed if hasattr(KINDS[kind], word)]


NOTES = [(owner, cure) for owners, cures in TABLE["notes"].items() for owner in owners.split() for cure in cures]
EXAMPLES = TABLE["examples"]
TYPED = {
    "schema": "{'type': 'object'}", "sep": "';'", "label": "'short'", "provider": "lambda case: 'Thanks.'", "criteria": "['Is kind']",
    "judge": "'offline'", "llm": "'offline'", "text": "'x'", "pattern": "'x'", "evaluation_steps": "['It greets.', 'It thanks.']", "metadata": "{'lang': 'de'}",
    "not_contains": "'x'", "language": "'German'", "cases": "['refund']", "filter": "'refund'", "exclude": "'slow'", "not_regex": "'x'", "tool_not_called": "'x'", "by": "'length'", "criterion": "0", "group": "'tone'", "regex": "'[0-9]+'", "contains": "'x'", "equals": "'x'", "starts_with": "'x'",
    "cache": "'replies.db'", "output": "'out.html'", "target": "lambda case: 'Thanks.'",
    "voting": "'median'", "aggregate": "'median'",
    "bad": "['No.']", "n": "3", "on": "'each turn'", "system_prompt": "'Be strict.'", "prompt": "'Why?'", "index": "'text'", "api_base": "'http://localhost:8000/v1'", "base_url": "'http://localhost:8000/v1'", "messages": "[]",
    "token_limit": "50_000", "any_of": "['Friday']", "all_of": "['Friday']", "case_insensitive": "True", "temperature": "0", "threshold": "0.5", "timeout": "30", "retries": "3", "tpr": "0.95", "tnr": "0.95", "pass_rate": "0.5", "tpm": "90_000", "description": "'Be strict.'",
}  # fmt: skip
"""What people give for an option, as they type it."""


@each_row(("owner", "cure"), NOTES, ids=[f"{owner}: {cure}" for owner, cure in NOTES])
def test_what_is_proposed_for_an_argument_runs(owner: str, cure: str) -> None:
    """Each call runs; an argument alone runs within the example of its call."""
    enter_folder()
    section = next(cures for owners, cures in TABLE["notes"].items() if owner in owners.split() and cure in cures)
    word = section[cure].split()[0]
    value = TYPED.get(word, "[]" if word == "tool_calls" else "'text'" if "column" in word else "5")
    made = EXAMPLES.get(owner, "")
    for line in lines_of(cure.replace("{value}", value).replace("{name}", word).replace("{call}", made)):
        if line.startswith("text="):
            line = f"Criterion({line})"  # noqa: PLW2901 - which has no other text
        if re.match(r"\w+=", line):
            of = {"run": "arun", "criterion": "Criterion", "adapter": "grade"}.get(owner, owner)
            example = (
                EXAMPLES[of]
                .split(", or ")[0]
                .replace(", points=1", "")
                .replace(", when='borderline'", "")
                .replace(", weight=2", "")
            )
            is_given = line.startswith("rubric=")
            line = example.replace("rubric", line[7:]) if is_given else f"{example[:-1]}, {line})"  # noqa: PLW2901 - the argument in its call
            if "target=" in line:
                line = line.replace("target=5", "target=lambda case: 'Thanks.'")  # noqa: PLW2901 - what answers
        if "openai" in line and line.startswith(("grade", "await", "prefer")):
            line = line.replace("'openai/gpt-5'", "'offline'")  # noqa: PLW2901 - no vendor is asked
        if line.startswith(("rubric.model(", "print(", "generate(")) or "grade_in_batches(" in cure:
            continue  # a client of a vendor's is tested with the clients, a writer with drafts, a batch with its server
        rows: dict[str, Any] = (
            {"candidates": [{"output": "We thank you.", "text": "Why?"}]} if "columns=" in line else {}
        )
        rows |= {"rows": [{"output": "We thank you."}]} if "**row" in line else {}
        rows |= {"owner": owner}
        if "replay" in line:
            package.Store("replies.db").close()  # which is there
        result = run_line(line, rows)
        assert result is not None or re.search(r"\.to_(csv|jsonl)\(", line)


ELSEWHERE = [(owner, kind, line) for owner, lines in TABLE["elsewhere"].items() for kind, line in lines.items()]
OPTIONS: dict[str, dict[str, Any]] = {
    "Panel": {"aggregate": "median"},
    "Judge": {"temperature": 0, "max_tokens": 500}, "Budget": {"cost": 5}, "Limits": {"rpm": 60, "concurrency": 4},
    "Rubric": {"threshold": 0.5, "guidelines": "Be strict."}, "Criterion": {"weight": 2, "required": True},
    "Store": {"in_doubt": "hold"}, "Candidate": {"variables": {"id": 1}}, "Case": {"output": "Thanks."},
}  # fmt: skip
"""Some options of each class, with values that people give."""


@each_row(("owner", "kind", "line"), ELSEWHERE, ids=[f"{o}: {k}" for o, k, _ in ELSEWHERE])
def test_an_argument_of_another_call_is_answered_with_that_call(owner: str, kind: str, line: str) -> None:
    """What is printed for an option of another class gives the option to that class, and runs."""
    enter_folder()
    for name, value in OPTIONS[kind].items():
        said = line.replace("{name}", name).replace("{value}", repr(value))
        for code in lines_of(said):
            assert f"{name}={value!r}" in code
            assert run_line(code.replace("'openai/gpt-5'", "'offline'"), {}) is not None


@each_row("owner", EXAMPLES)
def test_the_example_of_each_call_runs(owner: str) -> None:
    """A call that is missing an argument is answered with one that works."""
    enter_folder()
    for line in EXAMPLES[owner].split(", or ") if owner != "model" else ():  # a client's is tested with the clients
        given = {"owner": owner} | ({"grade": VALUES["grades"][0]} if owner == "rescore" else {})
        result = run_line(line, given)
        assert owner in ("dump", "dump_suite", "save", "to_csv", "to_jsonl") or result is not None


NAMES = TABLE["names"]["every"]


@each_row("cure", NAMES)
def test_what_is_proposed_for_a_name_is_there(cure: str) -> None:
    """A name is one of ours, in the module that is said; a line runs."""
    enter_folder()
    homes = public_names()
    for word in NAMES[cure].split():
        assert name_cure(word, "rubric", homes)
    if cure.replace(".", "_").isidentifier():
        module, _, name = f"{homes.get(cure, 'rubric')}.{cure}".rpartition(".")
        owner = package.Rubric if module == "rubric.Rubric" else import_module(module)
        assert hasattr(owner, name)
        return
    for line in lines_of(cure):
        if line.startswith("python -m"):
            assert shlex.split(line)[3] in {*commands(), "--help"}
        elif line.startswith("from rubric.integrations"):
            assert line.rpartition(" ")[2] in Path(
                str(import_module("rubric.integrations").__path__[0]), f"{line.split()[1].rpartition('.')[2]}.py"
            ).read_text("utf-8")


VARIABLES = {
    **{name: value for name, value in VALUES.items() if name not in package.__all__},
    "grade": VALUES["grades"][0],
    "client": openai.OpenAI(api_key="none"),
}


@each_row(
    "name",
    [words.split()[0] for words in NAMES.values()]
    + ["NotMatches", "FaithfulnessMetric", "RubricJudge", "toxicity_score"],
)
def test_a_line_for_a_name_that_is_not_there_imports_all_that_it_calls(name: str) -> None:
    """Pasted after a failed import, it runs; a reader has variables, and no name of `rubric`."""
    enter_folder()
    said = name_cure(name, "rubric", public_names())
    lines = [code for _, code in lines_in(said) if code]
    assert lines or "write" not in said or not re.search(r"write (?!python)[^;]*\(", said)
    for line in lines:
        code = compile(line, "cure", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, dict(VARIABLES))  # noqa: S307 - the lines of our own table
        if waiting is not None:
            asyncio.run(waiting)


@each_row("name", ["NotContains", "not_contains", "NoMatches", "NotEquals", "NotCalls"])
def test_the_opposite_of_a_check_is_never_answered_with_the_check(name: str) -> None:
    """The line that works forbids what the check finds."""
    assert "polarity='guard'" in name_cure(name, "rubric", public_names())


@each_row("name", ["Zebra", "Batchelor", "Nota", "Llama", "conversion", "Optionals", "Reader"])
def test_a_name_that_means_nothing_here_is_answered_with_no_other(name: str) -> None:
    """Only a slip of the keys is taken for another name."""
    assert "did you mean" not in name_cure(name, "rubric", public_names())


@each_row(
    ("line", "said"),
    [
        ("from rubric import langsmith", "it is rubric.integrations.langsmith"),
        ("from rubric.integrations.inspect import rubric_scorer", "it is rubric.integrations.inspect_ai"),
        ("import rubric.integrations.zebra", "there are braintrust, "),
        ("from rubric.judges import LLMJudge", "write from rubric import Judge; Judge("),
        ("from rubric.runs import from_langchain", "write from rubric.runs import read; read('run.json')"),
        ("from rubric import Zebra", "dir(rubric) lists its names"),
    ],
)
def test_an_import_that_fails_says_where_what_was_meant_is(line: str, said: str) -> None:
    """An adapter by the name of its tool, a name of a module that other libraries have."""
    with pytest.raises(ImportError, match=re.escape(said)):
        exec(line)  # noqa: S102 - the line that people type


KEYS = [(kind, key) for kind, cures in TABLE["keys"].items() for key in cures if kind != "every"]


@each_row(("kind", "key"), KEYS)
def test_a_key_of_another_system_is_answered_with_ours(kind: str, key: str) -> None:
    """Each word is refused with the key that a file of a rubric, a case or the judge of a suite has."""
    for word in TABLE["keys"][kind][key].split():
        test: dict[str, Any] = {"reply": "Thanks", "passes": True}
        data: Any = {"rubric": "r", "criteria": [{"text": "Is polite", "tags": ["tone"]}], "tests": [test]}
        case: Any = {"id": "a", "output": "Thanks", "rubric": "Is polite", "tags": ["tone"]}
        suite: Any = {"suite": "s", "cases": [case], "judge": {"model": "openai/gpt-5"}}
        message = {"role": "user", "content": "Hi"}
        case |= {"messages": [message]} if kind == "Message" else {}
        levels = [{"score_range": [0, 1], "text": "cold"}]
        if kind == "ScoreRange":
            data["criteria"][0]["levels"] = levels
        check: dict[str, Any] = {}
        if kind.partition(".")[0] == "Check":
            data["criteria"][0] = {"check": check}
        similar = {"texts": "Hi", "model": "m"}
        if kind == "Similar":
            data["criteria"][0] = {"check": {"similar": similar}}
        within = {"latency": 2}
        if kind == "Within":
            data["criteria"][0] = {"check": {"within": within}}
        of_suite = {"Message": message, "Case": case, "Suite": suite, "Judge": suite["judge"]}
        when: dict[str, Any] = {}
        own = {"Rubric": data, "Criterion": data["criteria"][0], "RubricTest": test, "ScoreRange": levels[0]}
        own |= {
            "Check": check,
            "DecisionTree": (tree := {"ask": "Is it?", "yes": 1, "no": 0}),
            "When": when,
            "Similar": similar,
            "Within": within,
            "View": (view := {"transform": "output"}),
        }
        if kind == "When":
            data["criteria"][0]["when"] = when
        if kind == "DecisionTree":
            data["criteria"][0]["tree"] = tree
        if kind == "View":
            data["criteria"][0]["on"] = view
        owner, _, of_kind = kind.partition(".")
        at = (own | of_suite)[owner]
        at.pop(key, None)
        values = {
            "": 1,
            "mapping": {"output": "1"},
            "rows": [{"id": "a"}],
            "cases": [case],
            "sentence": "Is polite",
            "offline": "offline",
        }
        at[word] = (values | {"verdict": False, "texts": ["a", "b"], "expression": "vars.lang == 'de'"})[of_kind]
        text = json.dumps(suite if owner in of_suite else data)
        read = partial(package.loads_suite, format="native") if owner in of_suite else package.loads
        said = re.sub(r"\{value\|.*?\}", "1", key) if " " in key else f"did you mean {key!r}?"
        with pytest.raises(package.LoadError) as refused:
            read(text)
        # Or the whole line that was meant, with the value, or the first length that is too long.
        is_line = of_kind != "expression" and re.search(r"write (?:rubric: )?\{.*\b[12]\b.*\}", str(refused.value))
        assert said in str(refused.value) or is_line, (word, str(refused.value))


ONE = "rubric: r\ncriteria: [{text: Is warm, %s}]\n"
FILES = [  # what is written, what the error says, and what is written then
    ("rubric: r\ncriteria: Is warm\n", "such as criteria: [Is polite, Is clear]", "rubric: r\ncriteria: [Is warm]\n"),
    ("rubric: r\nscale: 1-5\ntext: a\n", "scale: {likert: {min: 1, max: 5}}", "scale: {likert: {min: 1, max: 5}}\ntext: a"),
    (ONE % "weight: 60%", "60% is 0.6", ONE % "weight: 0.6"),
    (ONE % "weight: -2", "polarity: penalty, weight: 2}", ONE % "polarity: penalty, weight: 2"),
    (ONE % "scale: [1, 5]", "did you mean 'levels'?", ONE % "levels: [1, 5]"),
    ("criteria: [{text: [Is polite, Is clear]}]\n", 'such as "Is polite.\\n', 'criteria: [{text: "Is polite.\\n\\nIs clear."}]\n'),
    (ONE % "threshold: 0.5", "did you mean 'min_score'?", ONE % "min_score: 0.5"),
    (ONE % "check: contains ticket", "such as check: {contains: ticket}", "criteria: [{check: {contains: ticket}}]"),
    (ONE % "when: contains refund", "such as when: {contains: refund}", ONE % "when: {contains: refund}"),
    (ONE % "anchors: {Hi: 1}", "such as anchors: [{response: Thank you", ONE % "anchors: [{response: Hi, score: 1}]"),
    (ONE % "polarity: negative", "must not hold is a 'guard'", ONE % "polarity: guard"),
    (ONE % "polarity: bad", "takes points off a 'penalty'", ONE % "polarity: penalty"),
    (ONE % "polarity: gate", "and required, a setting beside it", ONE % "required: true"),
    (ONE % "required: 'yes'", "required: true}", ONE % "required: True"),
    ("pass: 80%\ncriteria: [a]\n", "did you mean 'threshold'?", "threshold: 0.8\ncriteria: [a]\n"),
    (
        "evidence: true\ncriteria: [{id: tone, rubric: {criteria: [a]}}]\n",
        "such as criteria: [{id: tone, rubric: {evidence: true",
        "criteria: [{id: tone, rubric: {evidence: true, criteria: [a]}}]\n",
    ),
    ("threshold: B\ncriteria: [a]\n", "B is from 0.8, such as threshold: 0.8", "threshold: 0.8\nscale: letter\ncriteria: [a]\n"),
    ("threshold: ${bar}\ncriteria: [a]\n", "write the value itself", "threshold: 0.8\ncriteria: [a]\n"),
    ("aggregation: median\ncriteria: [a]\n", "is 'min', and what fails it alone is required: true", "aggregation: min\ncriteria: [a]\n"),
    ("aggregation: max\ncriteria: [a]\n", "all_or_nothing: true, criteria: [Has a link", "criteria: [a]\n"),
    (ONE % "answer: letter", "choices: {A: 1, B: 0.75", ONE % "choices: {A: 1, B: 0.75}"),
    ("threshold: 4/5\ncriteria: [a]\n", "4/5 is 0.8", "threshold: 0.8\ncriteria: [a]\n"),
    ("evaluation_steps: [a, b]\n", "such as criteria: [Checks the facts", "criteria: [a, b]\n"),
    ("- rubric: r\n- criteria: [a]\n", "such as rubric: reply and criteria: [Is polite]", "rubric: r\ncriteria: [a]\n"),
    ("criteria:\n\t- Is warm\n", "indent by spaces", "criteria:\n  - Is warm\n"),
    ("criteria:\n  - @dana is greeted\n", "a text that begins so is quoted", "criteria:\n  - '@dana is greeted'\n"),
    ("criteria:\n  - 'Is warm\n", "a quote was opened and not closed", "criteria:\n  - 'Is warm'\n"),
    ("criteria:\n  - text: a\n   weight: 2\n", "in the same column", "criteria:\n  - text: a\n    weight: 2\n"),
]  # fmt: skip


@each_row(("wrong", "said", "right"), FILES, ids=[said for _, said, _ in FILES])
def test_a_file_that_is_wrong_is_answered_with_what_it_may_hold(wrong: str, said: str, right: str) -> None:
    """The error has the place and what to write; written so, the file is read."""
    enter_folder()
    with pytest.raises(package.LoadError, match=re.escape(said)) as refused:
        package.loads(wrong)
    assert all(problem.line and problem.column for problem in refused.value.problems)
    assert package.loads(right).criteria or package.loads(right).text


FRAME = pd.DataFrame({"input": ["Why?", "When?"], "output": ["We thank you, politely.", "No."]})


@each_row(
    "given",
    [
        [("Why?", "Thanks"), ("When?", "No.")], [["Why?", "Thanks"], ["When?", "No."]], FRAME.to_dict(),
        FRAME.to_dict("list"), list(FRAME.itertuples()), {"a": {"output": "Thanks"}, "b": {"output": "No."}},
        {"a": "Thanks", "b": "No."},
    ],
    ids=["pairs", "lists", "frame as a dict", "columns", "named tuples", "rows by key", "texts by key"],
)  # fmt: skip
def test_what_holds_candidates_in_another_form_is_answered_with_the_line_that_grades_them(given: Any) -> None:
    """The line is run as it is printed, and grades each."""
    enter_folder()
    with pytest.raises(package.DefinitionError) as refused:
        grade_many(given, RUBRIC, "offline").collect()
    line = re.search(r"grade_many\(\[.*\], rubric, judge\)", str(refused.value))
    assert line
    made: Any = run_line(line[0], {"candidates": given})
    assert [result.score is not None for result in made.collect()] == [True, True]


def test_words_for_an_argument_are_words_for_an_option() -> None:
    """The command line and Python share one table."""
    command = commands()["grade-many"]
    names = [name for each in command.params if isinstance(each, click.Option) for name in each.opts]
    assert word_cure("options", "grade-many", "--num-workers", names) == "; did you mean '--concurrency'?"


def test_each_command_and_option_that_is_proposed_is_there() -> None:
    """A command is one of ours, an option one that some command has."""
    options = {
        name for command in commands().values() for each in command.params
        if isinstance(each, click.Option) for name in (*each.opts, *each.secondary_opts)
    }  # fmt: skip
    assert not [
        cure
        for cure in TABLE["commands"]["every"]
        if " " not in cure and cure not in (*commands(), "stats", "verify", "export")
    ]
    assert not [cure for cure in TABLE["options"]["every"] if " " not in cure and cure not in options]


SENTENCES = [
    (owner, cure)
    for part in ("commands", "options", "choices")
    for owner, cures in TABLE[part].items()
    for cure in cures
]


@each_row(("owner", "cure"), SENTENCES)
def test_what_a_sentence_at_the_command_line_proposes_is_taken(owner: str, cure: str) -> None:
    """A line by the parser of its command, an option by its owner, and a judge by the reader of suites."""
    cure = re.sub(r"\{(?:value|line)\|(.*?)\}", r"\1", cure)  # what stands for what was typed
    for line in re.findall(r"(?:write|such as) (rubric \w[^;]*)", cure if "--help" not in cure else ""):
        typed = re.sub(r'"\$\(.*\)"', "run", line)  # what a command of its own prints
        assert not problem_in(shlex.split(re.sub(r", where .*| > .*| \|\|? .*", "", typed))), line
    for judge in re.findall(r"such as (judge: .*)", cure.replace("{settings}", "timeout: 60, retries: 3")):
        suite = f"suite: s\n{judge}\nrubric: {{criteria: [a]}}\ncases: [{{id: a, output: b}}]"
        assert package.loads_suite(suite, format="native").judge is not None
    for name in owner.split():
        for option in re.findall(r"such as (--[\w-]+)", cure) if name in commands() else ():
            assert option in {each for one in commands()[name].params for each in one.opts}, option


def test_grades_of_one_more_are_grades() -> None:
    """The sum of results is written as a list of all of them."""
    assert len(Grades([*VALUES["grades"], grade("We thank you.", RUBRIC, "offline")])) == len(REPLIES) + 1


def test_a_suite_of_another_tool_is_told_as_one(tmp_path: Path) -> None:
    """`load` of a configuration names the call that reads it, and not its keys one by one."""
    (tmp_path / "promptfooconfig.yaml").write_text("prompts: [Hi]\nproviders: [openai:gpt-5]\ntests: []\n")
    with pytest.raises(package.LoadError, match=r"the key 'prompts'; load_suite\(path\) reads it"):
        package.load(tmp_path / "promptfooconfig.yaml")
