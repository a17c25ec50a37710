"""The command line: what it prints, where, and the exit code that says what came of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rubric import dump, grade, load, plan, schema
from rubric.commands import main

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "docs" / "examples"
RUBRIC = str(EXAMPLES / "support_reply.yaml")
REPLY = str(EXAMPLES / "reply.txt")


def run(*arguments: str, stdin: str = "") -> Result:
    """Run the command line in this process."""
    result = CliRunner().invoke(main, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


# -- grade -------------------------------------------------------------------------------------------------


def test_a_candidate_that_passes_exits_with_0() -> None:
    """The table begins with the verdict, and standard error is empty."""
    result = run("grade", RUBRIC, REPLY, "--judge", "offline")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("pass")


def test_a_candidate_that_fails_exits_with_1() -> None:
    """A failed candidate is told apart from one that could not be graded."""
    result = run("grade", RUBRIC, "-", "--judge", "offline", stdin="We will see.")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith("fail")


def test_a_judge_that_fails_exits_with_2() -> None:
    """What is known stands on standard output, what happened on standard error."""
    result = run("grade", RUBRIC, REPLY, "--judge", "no-vendor/no-model")
    assert result.exit_code == 2
    assert result.stdout.startswith("ungraded")
    assert "no-vendor/no-model" in result.stderr


def test_json_is_the_result_as_plain_data() -> None:
    """Machines read what `to_dict` returns."""
    result = run("grade", RUBRIC, REPLY, "--judge", "offline", "--format", "json")
    expected = grade(Path(REPLY).read_text(), load(RUBRIC), "offline").to_dict()
    assert json.loads(result.stdout) == json.loads(json.dumps(expected))


def test_the_keys_of_the_json_are_those_that_the_reference_lists() -> None:
    """Nothing is printed that is not documented, and nothing is documented that is not printed."""
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    documented = re.findall(r"^\| `(\w+)` \|", page.partition("\n## JSON\n")[2], re.MULTILINE)
    assert documented == list(json.loads(run("grade", RUBRIC, REPLY, "-j", "offline", "--format", "json").stdout))


def test_an_ungraded_result_is_json_too() -> None:
    """A machine gets the bounds and the failures of what could not be graded."""
    result = run("grade", RUBRIC, REPLY, "--judge", "no-vendor/no-model", "--format", "json")
    printed = json.loads(result.stdout)
    assert result.exit_code == 2
    assert (printed["score"], printed["verdict"], printed["passed"]) == (None, None, None)
    assert printed["bounds"][0] < printed["bounds"][1]
    assert printed["failures"]


def test_several_judges_are_a_panel() -> None:
    """Each `--judge` is a member."""
    result = run("grade", RUBRIC, REPLY, "-j", "offline", "-j", "offline", "--format", "json")
    assert len(json.loads(result.stdout)["votes"]) == 2


def test_a_threshold_takes_the_place_of_the_rubrics() -> None:
    """The example does not reach a perfect score, so a threshold of 1 fails it."""
    assert run("grade", RUBRIC, REPLY, "-j", "offline", "--threshold", "1").exit_code == 1


def test_a_threshold_outside_its_range_exits_with_2() -> None:
    """The message names the field and what is allowed."""
    result = run("grade", RUBRIC, REPLY, "-j", "offline", "--threshold", "nan")
    assert result.exit_code == 2
    assert result.stderr == "threshold: expected a finite number from 0 to 1, got nan\n"


def test_input_and_reference_reach_the_judge() -> None:
    """Both stand in the messages that a plan shows."""
    question = str(EXAMPLES / "question.txt")
    result = run("plan", RUBRIC, REPLY, "-j", "offline", "--input", question, "--reference", REPLY, "--format", "json")
    said = json.loads(result.stdout)["asks"][0]["messages"][1]["content"]
    assert Path(question).read_text() in said
    assert said.count("ticket #4471") == 2


def test_no_judge_and_no_key_exits_with_2() -> None:
    """The message names the variables to set."""
    result = run("grade", RUBRIC, REPLY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "OPENAI_API_KEY" in result.stderr


@pytest.mark.parametrize("arguments", [("grade",), ("grade", RUBRIC, "missing.txt"), ("nothing",), ("grade", "--x")])
def test_a_wrong_call_exits_with_2(arguments: tuple[str, ...]) -> None:
    """Usage errors say what is wrong on standard error."""
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


def test_a_candidate_that_is_no_text_exits_with_2(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are named, with their place."""
    file = tmp_path / "reply.txt"
    file.write_bytes(b"caf\xe9")
    result = run("grade", RUBRIC, str(file), "-j", "offline")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "not UTF-8" in result.stderr


def test_a_rubric_with_problems_exits_with_2(tmp_path: Path) -> None:
    """All problems are told, in one block."""
    file = tmp_path / "support.yaml"
    file.write_text("rubric: x\nthreshhold: 1\ncriteria: [{text: a, wieght: 2}]\n")
    result = run("grade", str(file), REPLY, "-j", "offline")
    assert (result.exit_code, result.stdout) == (2, "")
    assert [line.partition(": ")[0] for line in result.stderr.splitlines()] == [f"{file}:2:1", f"{file}:3:22"]


def test_a_candidate_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Escape sequences in a quote are shown as escapes."""
    file = tmp_path / "quoting.yaml"
    file.write_text("criteria: [{text: kettle broken, evidence: true}]\n")
    result = run("grade", str(file), "-", "-j", "offline", stdin="The kettle \x1b[2J\x1b]0;owned\x07 is broken.")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\x07" not in result.stdout


# -- validate, plan, schema --------------------------------------------------------------------------------


def test_valid_files_exit_with_0() -> None:
    """Each is named."""
    result = run("validate", RUBRIC, RUBRIC)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"{RUBRIC}: valid\n" * 2


def test_validate_tells_every_problem_of_every_file(tmp_path: Path) -> None:
    """One bad file does not hide another."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("criteria: [{text: a, weight: -1}]\n")
    second.write_text("criteria: [a, a]\n")
    result = run("validate", str(first), RUBRIC, str(second))
    assert result.exit_code == 2
    assert result.stdout == f"{RUBRIC}: valid\n"
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == [str(first), str(second)]


def test_validate_as_json(tmp_path: Path) -> None:
    """A problem has its place, its path and its message."""
    file = tmp_path / "first.yaml"
    file.write_text("criteria: [{text: a, weight: -1}]\n")
    (report,) = json.loads(run("validate", str(file), "--format", "json").stdout)
    (problem,) = report["problems"]
    assert (report["file"], report["valid"]) == (str(file), False)
    assert (problem["source"], problem["line"], problem["path"]) == (str(file), 1, "criteria[0].weight")
    assert problem.keys() == {"source", "line", "column", "path", "message"}


def test_a_plan_counts_without_a_candidate() -> None:
    """A stand-in takes its place, so that calls can be counted before there is anything to grade."""
    result = run("plan", RUBRIC, "-j", "offline", "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["calls"]["least"] == 4


def test_a_plan_is_that_of_the_function() -> None:
    """The same numbers, as JSON and for people."""
    expected = plan(Path(REPLY).read_text(), load(RUBRIC), "offline")
    assert json.loads(run("plan", RUBRIC, REPLY, "-j", "offline", "--format", "json").stdout) == expected.to_dict()
    assert f"{expected.least} calls" in run("plan", RUBRIC, REPLY, "-j", "offline").stdout


def test_the_schema_is_that_of_the_function() -> None:
    """An editor can be pointed at what is printed."""
    assert json.loads(run("schema").stdout) == schema()


# -- the process -------------------------------------------------------------------------------------------


def test_python_m_rubric_is_the_same_command(tmp_path: Path) -> None:
    """A rubric that was dumped from code is graded by a process that knows nothing of it."""
    file = tmp_path / "support.json"
    dump(load(RUBRIC), file)
    command = [sys.executable, "-m", "rubric", "grade", str(file), REPLY, "--judge", "offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_the_characters_gets_escapes() -> None:
    """An ASCII terminal is no reason for a traceback."""
    command = [sys.executable, "-m", "rubric", "grade", RUBRIC, REPLY, "--judge", "offline"]
    env = {"PYTHONIOENCODING": "ascii", "PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
