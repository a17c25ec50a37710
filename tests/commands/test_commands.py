"""The command line: what it prints, where, and the exit code that says what came of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rubric import dump, grade, load, loads, plan
from rubric.formats import schema
from rubric.suites import Report
from tests.command_line import COMMAND, EXAMPLES, REPLY, RUBRIC, run
from tests.places import ROOT
from tests.servers import Server

# -- grade -------------------------------------------------------------------------------------------------


def test_a_candidate_that_passes_exits_with_0() -> None:
    """The table begins with the verdict, and standard error is empty."""
    result = run("grade", RUBRIC, REPLY, "--judge", "offline")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("pass")


def test_an_agents_run_is_graded_in_either_order(tmp_path: Path) -> None:
    """A log of a known format is a run, before the rubric or after it; the question beside it is its input."""
    log = str(ROOT / "tests" / "runs" / "data" / "gemini.json")
    results = [run("grade", *files, "-j", "offline", "--format", "json") for files in ((RUBRIC, log), (log, RUBRIC))]
    assert results[0].stdout == results[1].stdout
    assert results[0].exit_code == 1
    assert run("plan", log, RUBRIC, "-j", "offline").exit_code == 0
    many = run("grade", RUBRIC, log.replace("gemini", "adk_cases"), "-j", "offline")
    assert "grade-many grades many candidates; write rubric grade-many " in many.stderr


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
    rows = re.findall(r"^\| `(\w+)` \| (.*)", page.partition("\n## JSON\n")[2], re.MULTILINE)
    always = [name for name, said in rows if not said.startswith("where labels chose")]
    assert always == list(json.loads(run("grade", RUBRIC, REPLY, "-j", "offline", "--format", "json").stdout))


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
    assert result.stderr == "--threshold: expected a finite number from 0 to 1, got nan\n"


def test_input_reference_and_context_reach_the_judge() -> None:
    """All stand in the messages that a plan shows, each as what it is."""
    question = str(EXAMPLES / "question.txt")
    beside = ("--input", question, "--reference", REPLY, "--context", REPLY)
    said = json.loads(run("plan", RUBRIC, REPLY, *beside, "-j", "offline", "--format", "json").stdout)
    message = said["asks"][0]["messages"][1]["content"]
    assert Path(question).read_text() in message
    assert message.count("ticket #4471") == 3
    assert "context" in message.lower()


def test_no_judge_and_no_key_exits_with_2() -> None:
    """The message names the variables to set."""
    result = run("grade", RUBRIC, REPLY)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "OPENAI_API_KEY" in result.stderr


@pytest.mark.parametrize(
    ("variable", "project", "named"),
    [
        ("RUBRIC_JUDGE", "", "RUBRIC_JUDGE"),
        ("", "[tool.rubric]\njudge = 'offline'\n", "[tool.rubric] in pyproject.toml"),
        ("", "[tool.rubric]\nmine = 1\n", ""),
        ("RUBRIC_MINE", "[tool.rubric\n", ""),
    ],
)
def test_settings_that_are_not_read_are_told(
    variable: str, project: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable, or a table of the project, with the name of an option: the option is said to be typed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable or "UNUSED", "offline")
    (tmp_path / "pyproject.toml").write_text(project)
    told = f"not read: {named}; options are typed, such as --judge offline\n" if named else ""
    assert run("grade", RUBRIC, REPLY).stderr.startswith(f"{told}no judge was given")
    assert run("grade", RUBRIC, REPLY, "--judge", "offline").stderr == ""


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
    assert result.stdout == f"{RUBRIC}: valid; read as a rubric\n" * 2


def test_validate_tells_every_problem_of_every_file(tmp_path: Path) -> None:
    """One bad file does not hide another."""
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("criteria: [{text: a, weight: -1}]\n")
    second.write_text("criteria: [a, a]\n")
    result = run("validate", str(first), RUBRIC, str(second))
    assert result.exit_code == 2
    assert result.stdout == f"{RUBRIC}: valid; read as a rubric\n"
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == [str(first), str(second)]


LACKING = """
prompts: ["{{q}}"]
providers: [openai:gpt-4o]
tests:
  - {id: a, vars: {q: hi}, assert: [{type: webhook, value: x}, {type: moderation, value: y}]}
  - {id: b, vars: {q: hi}, assert: [{type: assert-set, assert: [{type: moderation, value: y}, {type: is-json}]}]}
  - {id: c, vars: {q: hi}}
  - {id: d, vars: {q: hi}, assert: [{type: contains, value: y}]}
"""


def test_a_folder_is_read_without_what_is_hidden_in_it(tmp_path: Path) -> None:
    """The library's own kept runs, `.git` and `.venv` are not the user's files; a hidden folder that is named is."""
    for folder in ("suites", ".rubric/runs/1", "deep/.git", ".venv/lib"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "r.yaml").write_text("not: a rubric\n", encoding="utf-8")
    (tmp_path / "suites" / "r.yaml").write_text("criteria: [Says hello]\n", encoding="utf-8")
    for command in ("validate", "lint"):
        result = run(command, str(tmp_path))
        assert (result.exit_code, ".rubric" in result.output) == (0, False)
    assert run("validate", str(tmp_path / ".rubric")).exit_code == 2


def test_validate_says_what_cannot_be_graded_here(tmp_path: Path) -> None:
    """In the verdict, in the exit code and in JSON; and as what the file was read."""
    file = tmp_path / "lacking.yaml"
    file.write_text(LACKING)
    result = run("validate", str(file))
    assert result.exit_code == 2
    assert result.stdout == (
        f"{file}: valid; 2 of 4 cases hold graders that do not run here (webhook, moderation); "
        "1 of 4 cases asserts nothing; read as promptfoo, 4 cases\n"
    )
    (report,) = json.loads(run("validate", str(file), "--format", "json").stdout)
    assert (report["valid"], report["ungradable"], report["empty"]) == (True, 3, 1)
    assert report["lacking"] == ["webhook", "moderation"]


def test_validate_counts_a_case_without_criteria(tmp_path: Path) -> None:
    """Its run ends ungraded, so the file is not sound."""
    file = tmp_path / "suite.yaml"
    file.write_text("cases: [{id: a, output: b, rubric: {criteria: []}}, {id: c, output: d, rubric: {criteria: [e]}}]")
    result = run("validate", str(file))
    assert (result.exit_code, result.stdout) == (
        2, f"{file}: valid; 1 of 2 cases asserts nothing; read as native, 2 cases\n"
    )  # fmt: skip


def test_a_wrong_file_says_as_what_it_was_read(tmp_path: Path) -> None:
    """And names the option that has it read as something else; `grade` says it of a right one too."""
    file = tmp_path / "evals.yaml"
    file.write_text(LACKING.replace("assert:", "asert:"))
    for command in (["validate"], ["grade", "-j", "offline"]):
        result = run(*command, str(file))
        assert result.exit_code == 2
        assert f"{file}:5:28: tests[0].asert: unknown key 'asert'; did you mean 'assert'?" in result.stderr
        assert f"{file}: read as promptfoo, since it asks the provider 'openai:gpt-4o'" in result.stderr
        assert "name one with --from" in result.stderr
    file.write_text(LACKING)
    assert f"{file}: read as promptfoo" in run("grade", str(file), "-j", "offline").stderr


@pytest.mark.parametrize(
    "text", ["suite: x\ncases: []\n", "servers: {main: {command: [x]}}\n", "openapi: 3\nservers: []\n"]
)
def test_a_file_without_cases_is_not_valid(text: str, tmp_path: Path) -> None:
    """A suite of nothing passes nothing."""
    file = tmp_path / "empty.yaml"
    file.write_text(text)
    result = run("validate", str(file))
    assert (result.exit_code, result.stdout) == (2, "")


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


def test_no_module_of_the_current_folder_runs(tmp_path: Path) -> None:
    """A folder that holds a `yaml.py` is graded in without running it, by `python -m rubric` as by the script."""
    for module in ("yaml", "json", "click", "rich", "attrs", "asyncio", "tomllib", "mymodule"):
        (tmp_path / f"{module}.py").write_text(f"open({module!r} + '.ran', 'w').close()\nraise SystemExit(77)\n")
    arguments = ["grade", RUBRIC, REPLY, "--judge", "offline"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for command in ([sys.executable, "-m", "rubric"], [str(Path(sys.executable).parent / "rubric")]):
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr, [*tmp_path.glob("*.ran")]) == (0, "", [])


def test_a_safe_path_keeps_all_its_folders(tmp_path: Path) -> None:
    """With `-P` the current folder is not on the path, so `python -m rubric` takes nothing from it."""
    command = [sys.executable, "-P", "-m", "rubric", "grade", RUBRIC, REPLY, "--judge", "offline"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_the_characters_gets_escapes() -> None:
    """An ASCII terminal is no reason for a traceback."""
    command = [sys.executable, "-m", "rubric", "grade", RUBRIC, REPLY, "--judge", "offline"]
    env = {"PYTHONIOENCODING": "ascii", "PATH": ""}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# -- suites ------------------------------------------------------------------------------------------------

HEAD = "replies: 2 cases, 2 calls, free of charge, judged by offline\n"

SUITE = """\
suite: replies
cases:
  - {id: polite, input: Hi, output: Hello and good morning, rubric: [Says good morning]}
  - {id: rude, input: Hi, output: What, rubric: [Says good morning]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """Return the name of a file with a suite of two cases, one of which fails."""
    file = tmp_path / "replies.yaml"
    file.write_text(SUITE)
    return str(file)


def test_a_suite_is_graded_case_by_case(suite: str) -> None:
    """The summary counts, and one case that fails is a failure."""
    result = run("grade", suite, "-j", "offline")
    assert (result.exit_code, result.stderr) == (1, HEAD)
    assert "polite" in result.stdout
    assert "rude" in result.stdout


def test_a_threshold_is_that_of_every_case(suite: str) -> None:
    """From 0 all pass."""
    assert run("grade", suite, "-j", "offline", "--threshold", "0").exit_code == 0


@pytest.mark.parametrize(
    "reporter", ["pretty", "json", "junit", "md", "html", "sarif", "github", "gitlab", "ndjson", "tap"]
)
def test_every_reporter_can_be_asked_for(suite: str, reporter: str) -> None:
    """The report goes to standard output as the reporter writes it."""
    result = run("grade", suite, "-j", "offline", "--reporter", reporter)
    assert (result.exit_code, result.stderr) == (1, HEAD)
    assert "rude" in result.stdout


def test_a_report_goes_into_a_file_and_is_a_baseline_for_the_next(suite: str, tmp_path: Path) -> None:
    """Nothing got worse; then something does, and the exit code says so."""
    report = tmp_path / "out" / "report.json"
    assert run("grade", suite, "-j", "offline", "--out", str(report)).exit_code == 1
    same = run("grade", suite, "-j", "offline", "-t", "0", "--baseline", str(report), "--largest-drop", "0")
    assert same.exit_code == 0
    Path(suite).write_text(SUITE.replace("Hello and good morning", "What"))
    worse = run("grade", suite, "-j", "offline", "-t", "0", "--baseline", str(report), "--largest-drop", "0.1")
    assert worse.exit_code == 1


def test_several_suites_are_one_report(suite: str, tmp_path: Path) -> None:
    """Each id is led by its file."""
    second = tmp_path / "more.yaml"
    second.write_text(SUITE)
    result = run("grade", suite, str(second), "-j", "offline", "--format", "json")
    ids = [row["id"] for row in json.loads(result.stdout)["rows"]]
    assert ids == ["replies: polite", "replies: rude", "more: polite", "more: rude"]


@pytest.mark.parametrize(("counts_as", "code"), [("error", 2), ("fail", 1), ("pass", 0)])
def test_a_case_without_a_response_waits(tmp_path: Path, counts_as: str, code: int) -> None:
    """What that counts as is the caller's to say; the default is an error."""
    file = tmp_path / "s.yaml"
    file.write_text("suite: x\ncases: [{id: a, input: Hi, rubric: [Is polite]}]\n")
    result = run("grade", str(file), "-j", "offline", "--deferred", counts_as)
    assert result.exit_code == code
    assert "deferred" in result.stdout


def test_a_rubric_alone_wants_a_candidate_or_somebody_who_answers() -> None:
    """The message says which."""
    result = run("grade", RUBRIC, "-j", "offline")
    assert result.exit_code == 2
    assert "--target" in result.stderr


REFUSED = [
    (("--largest-drop", "0.1"), "--baseline FILE"),
    (("--format", "json", "--reporter", "md"), "give one"),
    (("--input", REPLY), "is for one candidate"),
    (("--reference", REPLY), "is for one candidate"),
    (("--out", "report.foo"), "names no reporter"),
    (("--out", "."), "is a folder"),
    (("--baseline", "nowhere.json"), "nowhere.json: this baseline cannot be read"),
    (("--baseline", REPLY), "expected a report in JSON"),
    (("--env", "NO_SUCH_VARIABLE"), "no such variable"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_cannot_come_to_a_report_is_refused_before_the_run(
    suite: str, arguments: tuple[str, ...], message: str
) -> None:
    """Nothing is paid for and then lost, and no option is passed over in silence."""
    result = run("grade", suite, "-j", "offline", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_what_is_for_suites_is_refused_for_one_candidate() -> None:
    """A report that was asked for and not written would be missed too late."""
    for option in (("--out", "r.html"), ("--max-cost", "1"), ("--deferred", "pass"), ("--target", "m")):
        result = run("grade", RUBRIC, REPLY, "-j", "offline", *option)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{option[0]} has no use for one candidate" in result.stderr


def test_all_suites_are_read_before_the_first_is_run(suite: str, tmp_path: Path) -> None:
    """A mistake in the last of them costs nothing."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("suite: x\ncases: [{id: a, inputs: 1, rubric: a}]\n")
    result = run("grade", suite, str(bad), str(tmp_path / "none.yaml"), "-j", "offline")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "bad.yaml:2:17" in result.stderr
    assert "none.yaml: this file cannot be read" in result.stderr


def test_cases_of_files_of_the_same_name_stay_apart(suite: str, tmp_path: Path) -> None:
    """Each is led by its path; the same file twice is refused."""
    (tmp_path / "other").mkdir()
    second = tmp_path / "other" / Path(suite).name
    second.write_text(SUITE)
    rows = json.loads(run("grade", suite, str(second), "-j", "offline", "--format", "json").stdout)["rows"]
    assert len({row["id"] for row in rows}) == len(rows)
    assert "twice" in run("grade", suite, suite, "-j", "offline").stderr


def test_no_cases_are_no_pass(tmp_path: Path) -> None:
    """A run that graded nothing is not a run that passed."""
    file = tmp_path / "empty.yaml"
    file.write_text("suite: x\ncases: []\n")
    assert run("grade", str(file), "-j", "offline").exit_code == 2


def test_a_comparison_leaves_json_what_it_is(suite: str, tmp_path: Path) -> None:
    """People read it on standard error, where standard output is for machines."""
    before = tmp_path / "before.json"
    run("grade", suite, "-j", "offline", "--out", str(before))
    result = run("grade", suite, "-j", "offline", "--baseline", str(before), "--format", "json")
    assert json.loads(result.stdout)["summary"]["cases"] == 2
    assert "No worse than the baseline" in result.stderr


def test_a_report_in_markdown_begins_with_what_changed_since_the_baseline(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A comment on a pull request: in the file, on standard output, and in the summary of a step; it mentions nobody."""
    before, after = tmp_path / "before.json", tmp_path / "after.md"
    Path(suite).write_text(text := SUITE.replace("id: polite", "id: ask @ann"))
    run("grade", suite, "-j", "offline", "--out", str(before))
    Path(suite).write_text(text.replace("Hello and good morning", "What"))
    changed = ("grade", suite, "-j", "offline", "--baseline", str(before))
    run(*changed, "--out", str(after))
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    run(*changed, "--reporter", "github")
    printed = run(*changed, "--reporter", "md")
    for told in (after.read_text("utf-8"), printed.stdout, (tmp_path / "summary.md").read_text("utf-8")):
        assert told.startswith("**Worse than the baseline: 1 worse, 1 same, mean -"), told
        assert told.index("ask @<!-- -->ann | worse") < told.index("## ")
    assert "baseline" not in printed.stderr


def test_what_a_file_includes_may_be_in_a_wider_folder(tmp_path: Path) -> None:
    """As `--base` says, which the warning names; without it nothing outside is read, and the case is ungraded."""
    (tmp_path / "evals").mkdir()
    (tmp_path / "grader.md").write_text("Grade {{ output }}")
    file = tmp_path / "evals" / "x.eval.yaml"
    file.write_text(
        "tests:\n  - {id: a, input: Hi, criteria: Hi, output: Hi, assert: [{type: llm-rubric, prompt: ../grader.md}]}\n"
    )
    refused = run("validate", str(file))
    assert refused.exit_code == 2
    assert "--base" in refused.stderr
    assert "base=" not in refused.stderr
    assert run("validate", str(file), "--base", str(tmp_path)).exit_code == 0
    assert run("plan", str(file), "-j", "offline", "--base", str(tmp_path)).exit_code == 0


def test_an_interrupted_run_tells_what_is_known(tmp_path: Path) -> None:
    """Where a scheduler ends it by SIGTERM, as after Ctrl-C, cases that were finished keep their results."""
    file, out = tmp_path / "s.yaml", tmp_path / "r.json"
    checked = "{id: a, output: Hello, rubric: [{text: Says hello, check: {contains: Hello}}]}"
    file.write_text(f"suite: s\ncases: [{checked}, {{id: b, output: Hi, rubric: Is polite}}]\n")
    with Server() as server:
        endpoint = server.at("hang")
        environ = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": endpoint.openai}
        command = [*COMMAND, "grade", str(file), "-j", "openai/gpt-4o-mini"]
        process = subprocess.Popen(
            [*command, "--out", str(out)], cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        while not endpoint.requests and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, told = process.communicate()
    assert process.returncode == 130, told
    assert b"interrupted: 1 of 2 cases of 's' were finished; 0 calls" in told
    assert b"; 1 request in flight may be charged as well" in told
    report = Report.load(out)
    assert "in flight" in report.warnings[-1]
    assert [row.status for row in report] == ["passed", "ungraded"]
    assert "interrupted" in report["b"].reason
    assert report.duration > 0


def test_one_interrupted_grade_says_so(tmp_path: Path) -> None:
    """Not a word on standard output, and on standard error what it took."""
    with Server() as server:
        endpoint = server.at("hang")
        environ = {**os.environ, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": endpoint.openai}
        (tmp_path / "reply.txt").write_text("Hello")
        (tmp_path / "r.yaml").write_text("rubric: r\ncriteria: [Is polite]\n")
        command = [*COMMAND, "grade", "r.yaml", "reply.txt", "-j", "openai/x", "--no-keep"]
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environ | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        while not endpoint.requests and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate()
    assert process.returncode == 130, told
    assert printed == b""
    last = told.decode().strip().splitlines()[-1]
    assert re.fullmatch(r"interrupted; until then 0 calls, .*; 1 request in flight may be charged as well", last)


def test_a_closed_output_is_bad_usage_and_no_verdict(suite: str) -> None:
    """The exit status is not that of a failed case, and the reason is on standard error."""
    done = subprocess.run(
        ["bash", "-c", '"$0" -m rubric grade "$1" -j offline >&-', sys.executable, suite],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "standard output is closed" in done.stderr


def test_a_server_wants_a_target(suite: str) -> None:
    """And a name."""
    assert "--target" in run("grade", suite, "--server", "a=b").stderr
    assert "NAME=COMMAND" in run("grade", suite, "--target", "m", "--server", "b").stderr


def test_a_suite_is_planned(suite: str) -> None:
    """Two cases of one criterion are two calls."""
    planned = json.loads(run("plan", suite, "-j", "offline", "--format", "json").stdout)
    assert planned["calls"]["most"] == 2
    assert "polite" in run("plan", suite, "-j", "offline").stdout


def test_scripts_need_leave(tmp_path: Path) -> None:
    """Without it nothing runs and the case is ungraded; with it the program decides."""
    witness = tmp_path / "witness"
    program = f"import json,sys,pathlib; pathlib.Path({str(witness)!r}).touch(); print(json.dumps({{'score': 1}}))"
    script = json.dumps([sys.executable, "-c", program])
    suite, rubric, reply = tmp_path / "s.yaml", tmp_path / "r.yaml", tmp_path / "reply.txt"
    suite.write_text(f"suite: x\ncases: [{{id: a, output: Hi, rubric: [{{check: {{script: {script}}}}}]}}]\n")
    rubric.write_text(f"criteria: [{{check: {{script: {script}}}}}]\n")
    reply.write_text("Hi")
    for name, *files in (("grade", suite), ("grade", rubric, reply), ("grade-many", rubric, reply)):
        words = [name, *map(str, files), "-j", "offline"]
        assert run(*words).exit_code == 2
        assert not witness.exists()
        assert run(*words, "--allow-scripts").exit_code == 0
        witness.unlink()


def test_a_suite_is_converted(suite: str, tmp_path: Path) -> None:
    """To standard output or to a file; what cannot be carried is told."""
    out = tmp_path / "promptfoo.yaml"
    assert run("convert", suite, "--to", "native").stdout.startswith("suite: replies\n")
    result = run("convert", suite, "--to", "promptfoo", "--out", str(out))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "llm-rubric" in out.read_text()
    run("convert", suite, "--out", str(tmp_path / "native.json"))
    assert json.loads((tmp_path / "native.json").read_text())["suite"] == "replies"
    unknown = run("convert", suite, "--to", "promtfoo")
    assert "unknown format 'promtfoo'; did you mean 'promptfoo'?" in unknown.stderr


def test_a_rubric_is_converted_to_one(tmp_path: Path) -> None:
    """To the file that is named, YAML or JSON, which holds the same rubric; not to a suite."""
    out = tmp_path / "rubric.json"
    assert run("convert", RUBRIC, "--out", str(out)).exit_code == 0
    assert load(out) == load(RUBRIC) == loads(run("convert", RUBRIC).stdout)


def test_convert_offers_only_formats_that_can_be_written() -> None:
    """A format that is only read is no choice of `--to`."""
    assert "--to [native|promptfoo]" in run("convert", "--help").stdout


def test_a_conversion_that_changes_verdicts_says_so_first(tmp_path: Path) -> None:
    """And one that does not says nothing."""
    gated = tmp_path / "a.yaml"
    gated.write_text("cases:\n- {id: a, input: Hi, rubric: {criteria: [{text: Is kind, required: true}, Is short]}}\n")
    first = run("convert", str(gated), "--to", "promptfoo").stderr.splitlines()[0]
    assert first == "this conversion can change verdicts: 1 of 1 cases are graded by other rules"
    assert run("convert", str(gated), "--to", "native").stderr == ""


def test_the_schema_of_suites_is_printed_too() -> None:
    """For editors."""
    assert "cases" in json.loads(run("schema", "suite").stdout)["properties"]


def test_the_environment_is_shown_by_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that was not declared leaves its case ungraded; it is named, and never its value."""
    monkeypatch.setenv("HOUSE", "Is polite")
    file = tmp_path / "s.yaml"
    file.write_text("prompts: [a]\ntests: [{vars: {q: x}, assert: [{type: llm-rubric, value: '{{ env.HOUSE }}'}]}]\n")
    without = run("validate", str(file))
    assert "1 of 1 case holds graders that do not run here" in without.stdout
    assert "declare it with --env HOUSE" in without.stderr
    assert "polite" not in without.output
    assert "lacks" not in run("validate", str(file), "--env", "HOUSE").stdout


# -- output that cannot be written -------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["closed pipe", "full disk"])
def test_output_that_cannot_be_written_exits_with_2(where: str, tmp_path: Path) -> None:
    """And says so; it is never taken for a verdict."""
    if where == "full disk" and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    script = f"{sys.executable} -m rubric grade {RUBRIC} {REPLY} --judge offline --format json"
    end = "| (exec 0<&-; sleep 0.1)" if where == "closed pipe" else "> /dev/full"
    shell = f"({script} 2> {tmp_path}/err; echo $? > {tmp_path}/code) {end}"
    subprocess.run(["bash", "-c", shell], cwd=ROOT, check=False, capture_output=True)
    assert (tmp_path / "code").read_text().strip() == "2"
    assert "cannot be written" in (tmp_path / "err").read_text()
    assert "Traceback" not in (tmp_path / "err").read_text()


def test_no_judge_is_told_in_terms_of_the_command_line() -> None:
    """As options, not as arguments in code."""
    assert "--judge offline" in run("grade", RUBRIC, REPLY).stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("replies.csv", "id,answer\n1,Hello\n"),
        ("replies.tsv", "id\tanswer\n1\tHello\n"),
        ("replies.jsonl", '{"output": "Hello"}\n'),
        ("replies.json", '[{"output": "Hello"}]'),
    ],
)
def test_a_file_of_many_candidates_is_not_graded_as_one_text(name: str, text: str, tmp_path: Path) -> None:
    """`grade` refuses a table and names `grade-many`; standard input is one text."""
    (tmp_path / name).write_text(text)
    done = run("grade", RUBRIC, str(tmp_path / name), "-j", "offline")
    assert done.exit_code == 2
    assert "grade-many grades many candidates; write rubric grade-many " in done.stderr
    assert run("grade", RUBRIC, "-", "-j", "offline", stdin=text).exit_code < 2


def test_a_plan_of_many_rows_adds_them_up(tmp_path: Path) -> None:
    """In one line, and as JSON with every message; what is for one candidate is refused, and columns are for many."""
    rows = tmp_path / "rows.csv"
    rows.write_text("reply,asked\nHello,Hi\nGoodbye,Bye\n")
    (rubric := tmp_path / "rubric.yaml").write_text("criteria: [Is warm, Is short]\n")
    named = ["--column", "output=reply", "--column", "input=asked"]
    assert "Plan: 4 calls" in run("plan", str(rubric), str(rows), *named, "-j", "offline").stdout
    asks = json.loads(run("plan", str(rubric), str(rows), *named, "-j", "offline", "--format", "json").stdout)["asks"]
    assert len(asks) == 4
    assert "--column is for a file of many candidates" in run("plan", str(rubric), *named, "-j", "offline").stderr
    refused = run("plan", str(rubric), str(rows), *named, "--input", REPLY, "-j", "offline")
    assert "--input is for one candidate" in refused.stderr


def test_a_plan_of_a_suite_heads_a_rubric_without_a_name_by_its_first_case(tmp_path: Path) -> None:
    """The heading is the id of the first case that uses the rubric."""
    file = tmp_path / "suite.yaml"
    file.write_text("cases: [{id: a, rubric: Is warm, output: x}, {id: b, rubric: Is short, output: x}]\n")
    shown = run("plan", str(file), "-j", "offline").stdout
    assert "a (" in shown
    assert "b (" in shown


@pytest.mark.parametrize("text", ["suite: s\ncases: []\n", "rubric: r\ncriteria: [Is kind]\n"])
def test_a_suite_or_a_rubric_is_not_graded_as_a_text(text: str, tmp_path: Path) -> None:
    """`rubric grade *.yaml` in the folder of `init` names both; at standard input it is a text, and so is other YAML."""
    (tmp_path / "suite.yaml").write_text(text)
    for command in ("grade", "plan"):
        done = run(command, RUBRIC, str(tmp_path / "suite.yaml"), "-j", "offline")
        assert done.exit_code == 2
        assert "a suite is graded alone; " in " ".join(done.stderr.split())
        assert (f"alone; write rubric {command} {tmp_path / 'suite.yaml'} -j" in done.stderr) == ("suite" in text)
    assert run("grade", RUBRIC, "-", "-j", "offline", stdin=text).exit_code == 1
    (tmp_path / "answer.yaml").write_text("answer: It arrives on Friday.\n")
    assert run("grade", RUBRIC, str(tmp_path / "answer.yaml"), "-j", "offline").exit_code == 1
