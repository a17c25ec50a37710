"""What Python and commands make for promptfoo's files: prompts, variables, tests and outputs, where that is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rubric.errors import DumpError
from rubric.formats.suites import convert, dumps_suite, load_suite
from rubric.internals.background_loop import run
from rubric.programs import ProgramError, allowing
from rubric.programs.processes import PythonFunction, run_program
from rubric.results.report_rows import Row
from rubric.suites.suite import Suite

PROMPTS = """
import json, sys

def chat(context):
    print("this is not a part of it")
    user = f"Say {context['vars']['name']} for {context['provider']['id']}"
    return [{"role": "system", "content": context["config"].get("tone", "plain")}, {"role": "user", "content": user}]

def slots(context):
    return {"prompt": "Hello {{ name }}", "config": {}}

def broken(context):
    raise KeyError("nothing")

if __name__ == "__main__":
    print("Script for " + json.loads(sys.argv[1])["vars"]["name"])
"""
OTHERS = """
import os

def get_var(name, prompt, others):
    return {"error": "no such"} if others["name"] == "Nobody" else {"output": f"{name} of {others['name']}, {len(prompt)} "}

def generate_tests(config=None):
    return [{"vars": {"name": f"N{i}"}, "assert": CHECK} for i in range((config or {}).get("count", 2))]

def get_transform(output, context):
    return output.upper() + context["vars"]["name"]

def counted(output, context):
    return {"n": len(output)}

def failing(output, context):
    return {}["absent"]

def get_vars(vars, context):
    return {"made": vars["name"] * 2}

class Bot:
    @staticmethod
    async def answer(prompt, options, context):
        return {"output": [prompt, context["vars"]["tags"], os.environ.get("TOKEN")]}

CHECK = [{"type": "contains", "value": "N"}]

def call_api(prompt, options, context):
    tokens = {"total": 7, "prompt": 3, "completion": 4}
    return {"output": options["config"]["mode"] + " " + prompt, "tokenUsage": tokens, "cost": 0.01}

def erring(prompt, options, context):
    return {"error": "overloaded"}

def nothing(prompt, options, context):
    return "text"

def endless(prompt, options, context):
    while True:
        pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {"p.py": PROMPTS, "o.py": OTHERS, "s.sh": '#!/bin/sh\necho "told: $1"\n'}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "s.sh").chmod(0o755)
    return tmp_path


def suite_of(folder: Path, *, allow: bool = True, environ: dict[str, str] | None = None, **data: Any) -> Suite:
    data = {
        "prompts": ["{{name}}"],
        "tests": [{"vars": {"name": "Ann"}, "assert": [{"type": "contains", "value": "x"}]}],
    } | data
    (folder / "promptfooconfig.yaml").write_text(json.dumps(data))
    return load_suite(folder / "promptfooconfig.yaml", allow_scripts=allow, environ=environ)


def row_of(suite: Suite, *, allow: bool = True) -> Row:
    (row,) = suite.run("offline", target="providers", allow_scripts=allow)
    return row


# -- made while loading ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "asked"),
    [
        ("file://p.py:slots", "Hello Ann"),
        ("file://p.py", "Script for Ann"),
        ("p.py", "Script for Ann"),
        ("exec:./s.sh 'one two'", "told: one two"),
        ("exec:python p.py", "Script for Ann"),
    ],
)
def test_a_program_makes_the_prompt_of_each_case(folder: Path, prompt: str, asked: str) -> None:
    """A function, a script and a command each give the text of the prompt."""
    (case,) = suite_of(folder, prompts=[prompt])
    assert case.input == asked


def test_a_function_may_return_a_chat_and_is_given_provider_and_configuration(folder: Path) -> None:
    """Its messages become the case's, built from `config` and the provider's id."""
    prompt = {"id": "file://p.py:chat", "config": {"tone": "warm"}, "label": "chat"}
    (case,) = suite_of(folder, prompts=[prompt], providers=["openai:gpt-5"])
    assert [(m.role, m.content) for m in case.messages] == [("system", "warm"), ("user", "Say Ann for openai:gpt-5")]


def test_a_program_makes_a_variable_which_prompt_and_assertions_show(folder: Path) -> None:
    """The value is in the prompt, in `variables` and in the assertion's template."""
    tests = [{"vars": {"name": "Ann", "doc": "file://o.py"}, "assert": [{"type": "equals", "value": "{{doc}}"}]}]
    (case,) = suite_of(folder, prompts=["{{doc}}"], tests=tests)
    assert case.input == "doc of Ann, 7"
    assert case.variables["doc"] == case.input
    assert row_of(Suite(cases=[case.answered(case.input)])).status == "passed"


@pytest.mark.parametrize(
    ("tests", "ids"),
    [
        ("file://o.py", ["N0", "N1"]),
        ("file://o.py:generate_tests", ["N0", "N1"]),
        (["file://o.py"], ["N0", "N1"]),
        ({"path": "file://o.py", "config": {"count": 3}}, ["N0", "N1", "N2"]),
        ([{"path": "file://o.py:generate_tests", "config": {"count": 1}}], ["N0"]),
    ],
)
def test_a_program_makes_tests(folder: Path, tests: Any, ids: list[str]) -> None:
    """Each form of reference gives the cases, and `config` reaches the function."""
    assert [case.input for case in suite_of(folder, tests=tests)] == ids


def test_transform_vars_may_be_python(folder: Path) -> None:
    """The returned mapping fills the prompt."""
    tests = [{"vars": {"name": "Ann"}, "options": {"transformVars": "file://o.py:get_vars"}, "assert": []}]
    (case,) = suite_of(folder, prompts=["{{made}}"], tests=tests)
    assert case.input == "AnnAnn"


MADE: dict[str, dict[str, Any]] = {
    "prompt": {"prompts": ["file://p.py:broken"]},
    "vars": {
        "tests": [{"vars": {"name": "Nobody", "doc": "file://o.py"}, "assert": [{"type": "contains", "value": "x"}]}]
    },
    "tests": {"tests": "file://o.py:get_var"},
}


@pytest.mark.parametrize("data", MADE.values(), ids=MADE)
def test_a_program_that_fails_leaves_its_cases_ungraded_and_says_why(folder: Path, data: dict[str, Any]) -> None:
    """The warning has the program's error and the advice to mend it."""
    suite = suite_of(folder, **data, providers=["echo"])
    assert row_of(suite).status in ("ungraded", "deferred")
    assert any("failed (" in str(one) and "mend the program" in str(one) for one in suite.warnings)


@pytest.mark.parametrize(
    "data",
    [
        {"prompts": ["file://p.py:slots"]},
        {"prompts": ["exec:./s.sh"]},
        {"tests": [{"vars": {"name": "A", "doc": "file://o.py"}, "assert": [{"type": "contains", "value": "x"}]}]},
        {"tests": "file://o.py"},
        {
            "tests": [
                {
                    "vars": {"name": "A"},
                    "assert": [{"type": "contains", "value": "x"}],
                    "options": {"transform": "file://o.py"},
                }
            ]
        },
        {"providers": ["file://o.py"]},
        {"providers": ["exec:./s.sh"]},
    ],
)
def test_nothing_runs_unless_the_caller_allows_it(folder: Path, data: dict[str, Any]) -> None:
    """And what is missing says what would allow it."""
    (folder / "p.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    (folder / "o.py").write_text("import pathlib; pathlib.Path('ran').touch()")
    (folder / "s.sh").write_text("#!/bin/sh\ntouch ran\n")
    suite = suite_of(folder, allow=False, **{"providers": ["echo"]} | data)
    row = row_of(suite, allow=False)
    assert row.status in ("ungraded", "deferred")
    assert "allow_scripts=True" in row.reason
    assert not (folder / "ran").exists()


def test_a_file_of_python_that_is_not_there_leaves_its_cases_ungraded(folder: Path) -> None:
    """The suite loads, with a warning that names the file."""
    suite = suite_of(folder, prompts=["file://gone.py:chat"], providers=["echo"])
    assert row_of(suite).status == "deferred"
    assert any("gone.py" in str(one) and "not within reach" in str(one) for one in suite.warnings)


# -- transforms --------------------------------------------------------------------------------------------


def transformed(folder: Path, check: dict[str, Any], **options: Any) -> Suite:
    tests = [{"vars": {"name": "Ann"}, "options": options, "assert": [check], "providerOutput": "ab"}]
    return suite_of(folder, allow=False, tests=tests)


@pytest.mark.parametrize(
    ("check", "options", "passed"),
    [
        ({"type": "equals", "value": "ABAnn"}, {"transform": "file://o.py"}, True),
        ({"type": "equals", "value": "ab"}, {"transform": "file://o.py"}, False),
        ({"type": "equals", "value": '{"n":2}', "transform": "file://o.py:counted"}, {}, True),
        ({"type": "equals", "value": '{"n":5}', "transform": "file://o.py:counted"}, {"transform": "file://o.py"}, True),
        ({"type": "llm-rubric", "value": "ABAnn"}, {"transform": "file://o.py"}, True),
        ({"type": "assert-set", "assert": [{"type": "equals", "value": "ABAnn"}, {"type": "contains", "value": "A"}]},
         {"transform": "file://o.py"}, True),
    ],
)  # fmt: skip
def test_transforms_in_python_change_what_is_graded(
    folder: Path, check: dict[str, Any], options: dict[str, Any], passed: bool
) -> None:
    """Transforms of a test and of an assertion are applied one after the other."""
    row = row_of(transformed(folder, check, **options))
    assert (row.status == "passed") is passed, row.reason
    assert row.status in ("passed", "failed")


def test_a_transform_that_fails_leaves_its_case_ungraded(folder: Path) -> None:
    """The reason has the name of Python's exception."""
    row = row_of(transformed(folder, {"type": "contains", "value": "a"}, transform="file://o.py:failing"))
    assert row.status == "ungraded"
    assert "KeyError" in row.reason


def test_a_suite_with_a_transform_in_python_is_written_nowhere_in_silence(folder: Path) -> None:
    """Our format refuses it, and a conversion reports the loss."""
    suite = transformed(folder, {"type": "llm-rubric", "value": "is short"}, transform="file://o.py")
    with pytest.raises(DumpError, match="on a function"):
        dumps_suite(suite)
    assert any("on" in lost for lost in convert(suite, "promptfoo").dropped)


def test_the_plan_names_the_programs(folder: Path) -> None:
    """`scripts` lists the files that a run would execute."""
    (planned,) = transformed(folder, {"type": "contains", "value": "a"}, transform="file://o.py").plan("offline")
    assert planned.scripts == ("file://o.py",)


# -- providers ---------------------------------------------------------------------------------------------


def test_a_provider_in_python_answers_with_its_usage(folder: Path) -> None:
    """Its tokens and its cost are the row's."""
    row = row_of(suite_of(folder, providers=[{"id": "file://o.py", "config": {"mode": "m"}}]))
    assert row.output == "m Ann"
    assert (row.usage.prompt_tokens, row.usage.completion_tokens, row.usage.cost) == (3, 4, 0.01)


def test_a_method_may_be_async_and_sees_data_and_declared_variables(folder: Path) -> None:
    """No other variable of the environment is seen."""
    tests = [{"vars": {"name": "Ann", "tags": [1, {"a": 2}]}, "assert": [{"type": "contains", "value": "x"}]}]
    suite = suite_of(folder, tests=tests, providers=["python:o.py:Bot.answer"], environ={"TOKEN": "t"})
    assert json.loads(row_of(suite).output) == ["Ann", [1, {"a": 2}], "t"]


def test_a_command_answers_by_what_it_prints(folder: Path) -> None:
    """The output of an `exec:` provider is its standard output."""
    assert row_of(suite_of(folder, providers=["exec:./s.sh"])).output == "told: Ann"


def test_the_transform_of_a_provider_may_be_python(folder: Path) -> None:
    """It changes the output of that provider before the test's assertions see it."""
    suite = suite_of(folder, providers=[{"id": "exec:./s.sh", "transform": "file://o.py"}])
    assert row_of(suite).output == "TOLD: ANNAnn"


@pytest.mark.parametrize(
    ("provider", "why"),
    [
        ("python:o.py:erring", "overloaded"),
        ("python:o.py:nothing", "expected a mapping with output or error"),
        ("python:o.py:absent", "AttributeError"),
        ({"id": "python:o.py:endless", "config": {"timeout": 500}}, "within 0.5 seconds"),
        ("exec:./absent.sh", "could not be started"),
        ("file://gone.py", "there is no such file"),
    ],
)
def test_a_provider_that_does_not_answer_is_no_candidate(folder: Path, provider: Any, why: str) -> None:
    """Errors, wrong results, timeouts and missing files leave the row without a score."""
    row = row_of(suite_of(folder, providers=[provider]))
    assert row.status in ("ungraded", "deferred")
    assert why in row.reason


# -- programs ----------------------------------------------------------------------------------------------


def test_the_gate_is_where_the_process_starts() -> None:
    """No program starts without permission, also when it is called directly."""
    with pytest.raises(ProgramError, match="allow_scripts=True"):
        run(run_program(["python", "-c", "1"]))


def test_a_function_that_leaves_the_process_has_no_result(tmp_path: Path) -> None:
    """`os._exit` is an error; text that is printed beside the result does no harm."""
    (tmp_path / "f.py").write_text("import os\ndef f(): os._exit(0)\ndef g(): print('noise', flush=True); return 1")
    with allowing():
        assert PythonFunction(str(tmp_path / "f.py"), "g").call() == 1
        with pytest.raises(ProgramError, match="without a result"):
            PythonFunction(str(tmp_path / "f.py"), "f").call()
