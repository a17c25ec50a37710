"""Task folders of Harbor's Reward Kit: read with their places, graded, and turned into the rewards that it writes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rubric import DefinitionError, Judge, load_suite
from rubric.errors import LoadError
from rubric.suites import Report
from rubric.values import Unsupported
from tests.command_line import run
from tests.rewardkit_tasks import JUDGE, TASKS, BothWays, Task, toml
from tests.servers import openai_serving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rubric import Suite


def loaded(task: Task | Mapping[str, str], folder: Path, **options: Any) -> Suite:
    """Return the suite of a task, or of the files of its tests, written into *folder*."""
    task = task if isinstance(task, Task) else Task(task, {}, {})
    tests, app = task.write(folder)
    return load_suite(tests, base=folder, environ={"WORKSPACE": str(app)}, **options)


def problems(files: Mapping[str, str], folder: Path) -> list[str]:
    """Return what is wrong with *files*, with the places in them."""
    with pytest.raises(LoadError) as caught:
        loaded(files, folder)
    return [str(problem).replace(f"{folder}/tests/", "") for problem in caught.value.problems]


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if not task.has_programs])
def test_the_rewards_are_those_of_reward_kit(name: str, tmp_path: Path) -> None:
    """Every kind of criterion, every aggregation and every layout gives the number that Reward Kit gives."""
    with openai_serving(BothWays(TASKS[name].answers)):
        report = loaded(TASKS[name], tmp_path).run()
    assert json.loads(report.render("harbor")) == TASKS[name].rewards


@pytest.mark.parametrize("rule", ["all pass", "not all pass", "a threshold that is met", "a threshold that is not met"])
def test_a_grade_passes_where_the_reward_is_1(rule: str, tmp_path: Path) -> None:
    """The verdict of a case agrees with a reward that is 0 or 1."""
    with openai_serving(BothWays(TASKS[rule].answers)):
        (row,) = loaded(TASKS[rule], tmp_path).run()
    assert (row.status == "passed") is (TASKS[rule].rewards["reward"] == 1)


def test_what_is_wrong_is_told_in_its_line(tmp_path: Path) -> None:
    """Keys are located in the TOML itself, behind comments and texts of several lines, in each file of the folder."""
    first = (
        JUDGE + 'timout = 3\n\n# [judge]\n[[criterion]]\ndescription = """\nOne\npoints = 3\n"""\n\n'
        '[[criterion]]\ndescription = "Two"\ntype = "likret"\n'
    )
    second = toml("Three | weight = -1.0", "Four | name = 'a'", "Five | name = 'a'")
    said = problems(
        {"a/judge.toml": first, "b/judge.toml": second, "reward.toml": "[[reward]]\nweights = { c = 1 }\n"}, tmp_path
    )
    assert "a/judge.toml:4:1: judge.timout: unknown key 'timout'; did you mean 'timeout'?" in said
    assert any(one.startswith("a/judge.toml:15:1: criterion[1].type: ") and "'likert'" in one for one in said)
    assert "b/judge.toml:7:1: criterion[0].weight: expected a number from 0, got -1.0" in said
    assert any(one.startswith("b/judge.toml:15:1: criterion[2].name: ") for one in said)
    assert any(one.startswith("reward.toml:1:") and "'name' is missing" in one for one in said)
    assert any(one.startswith("reward.toml:2:") and "there are a, b" in one for one in said)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"judge.toml": "[judge\n"}, "this is not TOML"),
        ({"judge.toml": toml("a"), "reward.toml": "[scoring.checks]\n"}, "there is no checks.py"),
        ({"judge.toml": toml("a"), "judge/x.toml": toml("b")}, "are called 'judge'"),
        ({"judge.toml": toml("a", judge=JUDGE + 'guard = "on"\n')}, "expected off or flag or penalize"),
        ({"x/a.toml": toml("a"), "x/reward.toml": "[[reward]]\n[[reward]]\n"}, "keep one [[reward]]"),
        ({"x/a.toml": toml("a"), "reward.toml": '[[reward]]\nname = "x"\n'}, "'x' belongs to another reward"),
        ({"a.toml": toml("a"), "reward.toml": '[reward]\nname = "x"\n'}, "expected a list of rewards"),
        ({"judge.toml": toml("a", judge=JUDGE.replace("main.py", "../../../other/x"))}, "outside of"),
    ],
)
def test_what_reward_kit_would_refuse_is_refused(files: Mapping[str, str], said: str, tmp_path: Path) -> None:
    """Files that contradict themselves, or leave the base, are not a suite."""
    if "judge.toml" in files and "[[criterion]]" not in "".join(files.values()):
        files = {**files, "other.toml": toml("a")}
    assert any(said in one for one in problems(files, tmp_path))


@pytest.mark.parametrize(
    ("judge", "criterion", "lack"),
    [
        ('[judge]\njudge = "claude-code"\nmodel = "x"\n', "a", "the agent claude-code as the judge"),
        (
            JUDGE + 'atif-trajectory = "a.txt"\n',
            "a",
            "the trajectory a.txt: Expecting value: line 1 column 1 (char 0)",
        ),
        (JUDGE, 'a | type = "numeric"; min = -0.5; max = 1.5', "a number from -0.5 to 1.5"),
        (JUDGE.replace("main.py", "plan.docx"), "a", "the text of plan.docx"),
    ],
)
def test_what_has_no_counterpart_leaves_its_case_ungraded(
    judge: str, criterion: str, lack: str, tmp_path: Path
) -> None:
    """The case says what it lacks, its file has a warning, and no reward is written."""
    app = {"main.py": "print()\n", "plan.docx": "\udcff", "a.txt": "no run"}
    suite = loaded(Task({"judge.toml": toml(criterion, judge=judge)}, {}, {}, app), tmp_path)
    (case,) = suite
    assert case.rubric[0].answer == Unsupported(lack)
    assert any(f"{lack}: what needs it is ungraded" in str(warning) for warning in suite.warnings)
    with pytest.raises(DefinitionError, match="nothing is written: 'judge' is ungraded"):
        suite.run("offline").render("harbor")


def test_no_reward_is_written_for_a_judge_that_failed(tmp_path: Path) -> None:
    """One case of two without a grade is enough; Reward Kit writes 0.0 for each of its criteria after a timeout."""
    folder = {"a/judge.toml": toml("One"), "b/judge.toml": toml("Two")}

    def judge(messages: Any) -> str:
        if "Two" in messages[-1]["content"]:
            raise TimeoutError("too slow")
        return '{"reason": "", "verdict": true}'

    suite = loaded({name: text.replace('judge = "openai/gpt-5-mini"\n', "") for name, text in folder.items()}, tmp_path)
    report = suite.run(Judge(judge))
    assert [row.status for row in report] == ["passed", "ungraded"]
    with pytest.raises(DefinitionError, match=r"reward.json: nothing is written: 'b/judge' is ungraded: .*too slow"):
        report.write(tmp_path / "reward.json")
    assert not (tmp_path / "reward.json").exists()
    with pytest.raises(DefinitionError, match="the case 'b/judge' was not run"):
        Report("tests", report.rows[:1]).render("harbor")


def test_any_other_suite_has_a_reward_for_each_case(tmp_path: Path) -> None:
    """The score of the only case is called `reward`, those of several by their ids; 0 where a gate failed."""
    file = tmp_path / "suite.yaml"
    file.write_text(
        "cases:\n- {id: a, output: yes it is, rubric: {criteria: [{text: x, check: {contains: yes}}]}}\n"
        "- {id: b, output: no, rubric: {criteria: [{text: x, check: {contains: yes}}]}}\n"
        "- {id: c, output: yes, rubric: {criteria: [{text: x, check: {contains: yes}}, "
        "{text: y, check: {contains: no}, required: true}]}}\n"
    )
    report = load_suite(file).run("offline")
    assert json.loads(report.render("harbor")) == {"a": 1.0, "b": 0.0, "c": 0.0}
    assert json.loads(Report("s", report.rows[:1]).render("harbor")) == {"reward": 1.0}


def test_one_judge_file_is_a_suite_by_itself(tmp_path: Path) -> None:
    """Its folder is not looked at."""
    tests, app = Task({"judge.toml": toml("a"), "other.toml": "nothing = true"}, {}, {}).write(tmp_path)
    suite = load_suite(tests / "judge.toml", base=tmp_path, environ={"WORKSPACE": str(app)})
    assert [case.id for case in suite] == ["judge"]
    (tests / "judge.toml").write_text("[tool.other]\nname = 'x'\n")
    with pytest.raises(LoadError, match="nothing in it to grade"):
        load_suite(tests / "judge.toml")


def test_files_are_shown_by_name_and_a_missing_one_is_told(tmp_path: Path) -> None:
    """A folder stands for the files in it; what is not there is shown as such, and warned of."""
    judge = JUDGE.replace('"main.py"', '"src", "gone.txt"')
    app = {"src/a.py": "a = 1", "src/.env": "KEY=1", "src/deep/b.py": "b"}
    suite = loaded(Task({"judge.toml": toml("a", judge=judge)}, {}, {}, app), tmp_path)
    assert suite.cases[0].output == (
        "File src/a.py:\na = 1\n\nFile gone.txt:\n(there is no such file, or no text in it)"
    )
    assert any("gone.txt" in str(warning) for warning in suite.warnings)


def test_a_trajectory_is_the_run_whose_answer_is_graded(tmp_path: Path) -> None:
    """What it did is shown in its order, and what it left behind beside it."""
    (case,) = loaded(TASKS["a trajectory beside the files"], tmp_path)
    assert case.output is not None
    assert case.output.startswith("Done: 20 EUR")
    assert case.context == "File main.py:\nprint()\n"
    assert case.run is not None
    assert [call.name for call in case.responding(case.output).tool_calls] == ["verify", "refund"]


def test_checks_in_python_do_not_run_unasked(tmp_path: Path) -> None:
    """Without leave they are not even imported, and their case says which option runs them."""
    checks = f"open({str(tmp_path / 'ran')!r}, 'w')\nimport rewardkit\n"
    suite = loaded({"checks.py": checks, "helper.py": "import os\n", "judge.toml": toml("a")}, tmp_path)
    assert [case.id for case in suite] == ["checks", "judge"]
    answer = suite.cases[0].rubric[0].answer
    assert isinstance(answer, Unsupported)
    assert "allow_scripts=True" in answer.type
    assert not (tmp_path / "ran").exists()


def test_checks_in_python_need_reward_kit_beside_this_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is missing, or a check fails, the case is ungraded with what the program said."""
    monkeypatch.setattr("rubric.format_plugins.rewardkit._PROGRAM", "raise SystemExit('no module rewardkit')")
    suite = loaded({"checks.py": "import rewardkit\n", "judge.toml": toml("a")}, tmp_path, allow_scripts=True)
    answer = suite.cases[0].rubric[0].answer
    assert isinstance(answer, Unsupported)
    assert "no module rewardkit" in answer.type


def test_the_command_writes_the_rewards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line in a task's `test.sh`: the name of the file selects the reporter, and exit status 2 is not a reward."""
    tests, app = TASKS["folders as rewards, and their mean"].write(tmp_path)
    out = tmp_path / "logs" / "reward.json"
    monkeypatch.setenv("WORKSPACE", str(app))
    line = ["grade", str(tests), "--base", str(tmp_path), "--env", "WORKSPACE", "--out", str(out)]
    with openai_serving(BothWays(TASKS["folders as rewards, and their mean"].answers)):
        assert run(*line).exit_code == 1  # a case failed, and its reward is what it is
    assert json.loads(out.read_text()) == {"style": 0.5, "works": 1.0, "reward": 0.6667}
    out.unlink()
    with openai_serving(lambda _: "I would rather not."):
        done = run(*line)
    assert (done.exit_code, out.exists()) == (2, False)
    assert "reward.json: nothing is written: 'style/judge' is ungraded" in done.stderr


def test_lines_are_those_of_the_toml_whatever_stands_between(tmp_path: Path) -> None:
    """Tables in tables, lists of tables, texts of several lines and lists over several lines."""
    text = (
        "[judge]\nfiles = [\n  'a',\n]\njudge = 'x'\n\n[[criterion]]\ndescription = '''\ntype = 3\n'''\n"
        "[criterion.annotations]\ntype = 'negative'\n[[criterion]]\ndescription = 'Two'\nkind = 1\n[scoring.x]\ny = 1\n"
    )
    said = problems({"judge.toml": text}, tmp_path)
    assert "judge.toml:16:1: scoring.x: unknown key" in [one.partition(";")[0] for one in said]
    assert not any("criterion[0]" in one for one in said)
