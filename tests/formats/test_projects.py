"""The project of a file: what it may include by default, where files are looked for, and what stays closed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rubric.commands.files import validate
from rubric.errors import LoadError
from rubric.formats.projects import project_of
from rubric.formats.suites import load_suite
from rubric.suites.suite import Suite
from rubric.values.checks import Unsupported
from rubric.values.rubrics import Rubric
from tests.agentv import written

CANARY = "canary-5f1e"
CONFIG = "prompts: ['file://{}']\ntests: [{{assert: [{{type: contains, value: a}}]}}]\n"


def folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def lacks(suite: Suite) -> bool:
    return any(isinstance(criterion.answer, Unsupported) for case in suite for criterion in case.rubric.criteria)


@pytest.mark.parametrize("mark", [".git", ".agentv", "package.json", "pyproject.toml", "promptfooconfig.js"])
def test_a_file_may_include_from_its_project(mark: str, tmp_path: Path) -> None:
    """`evals/` beside `prompts/` is the commonest layout; a mark of the project above them opens both."""
    folder(tmp_path / "p" / mark) if mark.startswith(".") else written(tmp_path / "p" / mark, "{}")
    written(tmp_path / "p" / "prompts" / "a.txt", "Say a")
    file = written(tmp_path / "p" / "evals" / "promptfooconfig.yaml", CONFIG.format("../prompts/a.txt"))
    (case,) = load_suite(file)
    assert case.input == "Say a"
    assert project_of(file) == tmp_path / "p"


def test_without_a_project_a_file_includes_from_its_own_folder(tmp_path: Path) -> None:
    """The reference that leaves it names the cure; nothing is read."""
    written(tmp_path / "a.txt", CANARY)
    suite = load_suite(written(tmp_path / "in" / "promptfooconfig.yaml", CONFIG.format("../a.txt")))
    assert lacks(suite)
    assert CANARY not in repr(suite)
    assert "base=" in str(suite.warnings[0])


def test_tests_that_leave_the_base_are_refused(tmp_path: Path) -> None:
    """Without them there would be fewer cases than the file says."""
    written(tmp_path / "t.yaml", "- assert: [{type: contains, value: a}]\n")
    with pytest.raises(LoadError, match="base="):
        load_suite(written(tmp_path / "in" / "promptfooconfig.yaml", "tests: file://../t.yaml\n"))


def test_the_repository_is_the_project_though_nearer_folders_have_manifests(tmp_path: Path) -> None:
    """A package within a repository may share its prompts."""
    folder(tmp_path / ".git")
    written(tmp_path / "packages" / "a" / "package.json", "{}")
    assert project_of(tmp_path / "packages" / "a" / "x.yaml") == tmp_path


@pytest.mark.parametrize("installed", ["node_modules", "site-packages"])
def test_an_installed_package_is_a_project_of_its_own(installed: str, tmp_path: Path) -> None:
    """What was downloaded does not see the repository that it was downloaded to."""
    folder(tmp_path / ".git")
    file = written(tmp_path / installed / "evil" / "x.yaml", "{}")
    assert project_of(file) == tmp_path / installed / "evil"


def test_a_home_folder_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stray `package.json`, or a repository of dotfiles, opens no home folder to what was downloaded there."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    for name in ("home", "."):
        written(tmp_path / name / "package.json", "{}")
        folder(tmp_path / name / ".git")
    assert project_of(tmp_path / "home" / "downloads" / "x.yaml") == tmp_path / "home" / "downloads"


@pytest.mark.skipif(os.name == "nt", reason="no such permissions")
def test_a_folder_that_everybody_writes_to_is_no_project(tmp_path: Path) -> None:
    """In a folder of temporary files anybody could make a project around the files of others."""
    shared = folder(tmp_path / "shared")
    shared.chmod(0o1777)
    written(shared / "package.json", "{}")
    assert project_of(shared / "mine" / "x.yaml") == shared / "mine"


@pytest.mark.parametrize(
    "name",
    [".env", ".git/config", ".git-credentials", "deploy.pem", "secrets.yaml", ".npmrc", "terraform.tfstate", "key.ppk"],
)
def test_secrets_of_the_project_stay_closed(name: str, tmp_path: Path) -> None:
    """A wider base opens prompts and cases, and no file whose name says that it holds secrets."""
    folder(tmp_path / ".git")
    written(tmp_path / name, CANARY)
    for value in (f"file://../{name}", f"file://../x/../{name}"):
        text = f"tests: [{{vars: {{a: '{value}'}}, assert: [{{type: llm-rubric, value: '{{{{a}}}}'}}]}}]\n"
        with pytest.raises(LoadError) as caught:
            load_suite(written(tmp_path / "evals" / "promptfooconfig.yaml", text))
        assert CANARY not in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_out_of_the_project_are_not_followed(tmp_path: Path) -> None:
    """A repository may hold a link to anywhere."""
    folder(tmp_path / "p" / ".git")
    written(tmp_path / "outside.txt", CANARY)
    (tmp_path / "p" / "a.txt").symlink_to("../outside.txt")
    suite = load_suite(written(tmp_path / "p" / "evals" / "promptfooconfig.yaml", CONFIG.format("../a.txt")))
    assert lacks(suite)
    assert CANARY not in repr(suite)


# -- where AgentV looks --------------------------------------------------------------------------------------

AGENTV = "tests: [{{id: a, input: Q, assert: [{{type: llm-rubric, value: x, prompt: '{}'}}]}}]\n"


def prompt_of(path: Path, name: str) -> Any:
    (case,) = load_suite(written(path, AGENTV.format(name)))
    return case.rubric.prompt


@pytest.mark.parametrize("name", ["graders/g.md", "/graders/g.md", "file://graders/g.md", "file:///graders/g.md"])
def test_agentv_looks_in_each_folder_up_to_the_projects(name: str, tmp_path: Path) -> None:
    """From the folder of the file; a slash at the front means any of them."""
    folder(tmp_path / ".git")
    written(tmp_path / "graders" / "g.md", "Root {{ output }}")
    assert prompt_of(tmp_path / "a" / "b" / "x.eval.yaml", name).startswith("Root ")
    written(tmp_path / "a" / "graders" / "g.md", "Near {{ output }}")
    assert prompt_of(tmp_path / "a" / "b" / "x.eval.yaml", name).startswith("Near ")


def test_agentv_looks_in_the_working_folder_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where that is in the project."""
    folder(tmp_path / "p" / ".git")
    written(tmp_path / "p" / "work" / "g.md", "Work {{ output }}")
    written(tmp_path / "elsewhere" / "h.md", CANARY)
    monkeypatch.chdir(tmp_path / "p" / "work")
    assert prompt_of(tmp_path / "p" / "evals" / "x.eval.yaml", "file://g.md").startswith("Work ")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert prompt_of(tmp_path / "p" / "evals" / "x.eval.yaml", "file://h.md") is None


def test_agentv_says_where_it_looked(tmp_path: Path) -> None:
    """The folder of the file, and the project's."""
    folder(tmp_path / ".git")
    suite = load_suite(written(tmp_path / "a" / "b" / "x.eval.yaml", AGENTV.format("file://g.md")))
    assert f"looked for in {tmp_path / 'a' / 'b'}, and in each folder above it up to {tmp_path}" in str(
        suite.warnings[0]
    )


def test_the_references_of_a_project_are_found_from_a_sub_folder(tmp_path: Path) -> None:
    """`.agentv/config.yaml` stands above the file; the prompt that the defaults name stands at the project's top."""
    default = "file://{{ env.AGENTV_REPO_ROOT }}/.agentv/default-test.yaml"
    written(tmp_path / ".agentv" / "config.yaml", f"refs: {{global-default: '{default}'}}\n")
    written(tmp_path / ".agentv" / "default-test.yaml", "options: {rubric_prompt: file://graders/judge.txt}\n")
    written(tmp_path / "graders" / "judge.txt", "Judge {{ output }}")
    for value in ("ref://global-default", default):
        text = f"default_test: '{value}'\ntests: [{{id: a, input: Q, assert: [Good]}}]\n"
        (case,) = load_suite(written(tmp_path / "evals" / "deep" / "x.eval.yaml", text))
        assert str(case.rubric.prompt).startswith("Judge ")


def test_a_folder_of_cases_is_read(tmp_path: Path) -> None:
    """One folder a case, called by its id, or files of cases."""
    for name in ("b", "a"):
        written(tmp_path / "cases" / name / "case.yaml", "{input: Q, assert: [Good]}\n")
    written(tmp_path / "more" / "m.yaml", "- {id: m, input: Q, assert: [Good]}\n")
    suite = load_suite(written(tmp_path / "x.eval.yaml", "tests: [file://cases/, file://more]\n"))
    assert [case.id for case in suite] == ["a", "b", "m"]


def test_an_attached_program_is_shown_and_not_run(tmp_path: Path) -> None:
    """It is material; a picture beside it is one of the case's images."""
    written(tmp_path / "fix.py", "raise SystemExit")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    blocks = "[{type: file, value: fix.py}, {type: file, value: a.png}, {type: text, value: Review}]"
    text = f"tests: [{{id: a, input: [{{role: user, content: {blocks}}}], assert: [Good]}}]\n"
    (case,) = load_suite(written(tmp_path / "x.eval.yaml", text))
    assert case.input == "fix.py:\nraise SystemExit\n\nReview"
    assert len(case.images) == 1


# -- files of other shapes ------------------------------------------------------------------------------------


def test_the_evals_of_an_agent_skill_are_a_suite(tmp_path: Path) -> None:
    """Each assertion is judged by itself; without any, the expected output is what is judged by."""
    evals = [
        {
            "id": 1,
            "prompt": "Do it",
            "expected_output": "Done",
            "files": [],
            "assertions": ["It is done", "It is short"],
        },
        {"id": 2, "prompt": "Do it", "expected_output": "Done well"},
    ]
    suite = load_suite(written(tmp_path / "evals.json", json.dumps({"skill_name": "s", "evals": evals})))
    assert [(case.id, case.input, case.reference, len(case.rubric.criteria)) for case in suite] == [
        ("1", "Do it", "Done", 2),
        ("2", "Do it", "Done well", 1),
    ]
    assert suite["1"].metadata["skill_name"] == "s"


def test_assertions_of_a_skill_may_be_mappings_with_a_text(tmp_path: Path) -> None:
    """Authors give them an id or a name; one without any text leaves its case ungraded, and nothing is left out."""
    evals = [
        {"id": 1, "prompt": "Do it", "assertions": [{"id": "short", "text": "It is short"}, {"text": "It is done"}]},
        {"id": 2, "prompt": "Do it", "assertions": [{"name": "done", "description": "It is done"}]},
        {"id": 3, "prompt": "Do it", "assertions": [{"type": "file_exists", "path": "a.txt"}, "It is done"]},
        {"id": 4, "prompt": "Do it", "expected_output": "Done", "must_have": ["a+"], "files": []},
    ]
    suite = load_suite(written(tmp_path / "evals.json", json.dumps({"skill_name": "s", "evals": evals})))
    first = suite["1"].rubric.criteria
    assert [criterion.id for criterion in first] == ["short", "assertion-2"]
    texts = [c.text for one in first if isinstance(one.answer, Rubric) for c in one.answer.criteria]
    assert texts == ["It is short", "It is done"]
    assert [bool(entry.unsupported) for entry in suite.plan("openai/gpt-5")] == [False, False, True, False]
    warnings = "\n".join(map(str, suite.warnings))
    assert "`must_have` is not graded" in warnings
    assert "this assertion has no text for a judge" in warnings


def test_graders_of_generation_1_5_under_assert_are_read_as_such(tmp_path: Path) -> None:
    """`composite` and `llm_judge` without a `value`, which generation 2 brought."""
    inner = "[{type: llm_judge, name: a, prompt: Is good}, {type: llm_judge, name: b, prompt: Is short}]"
    text = f"tests: [{{id: a, input: Q, assert: [{{type: composite, name: c, assert: {inner}}}]}}]\n"
    suite = load_suite(written(tmp_path / "x.yaml", text))
    assert suite.format == "agentv-1.5"
    assert not lacks(suite)


@pytest.mark.parametrize(("mark", "format_"), [("promptfooconfig.yaml", "promptfoo"), (".agentv", "agentv-2")])
def test_the_project_tells_whose_tests_are_in_doubt(mark: str, format_: str, tmp_path: Path) -> None:
    """A list of tests with ids may be of either system; a mark elsewhere in the project decides, and nothing else."""
    folder(tmp_path / ".git")
    folder(tmp_path / mark) if mark == ".agentv" else written(tmp_path / mark, "tests: []\n")
    file = written(tmp_path / "tests" / "t.yaml", "- {id: a, vars: {q: x}, assert: [{type: contains, value: y}]}\n")
    assert load_suite(file).format == format_
    with pytest.raises(LoadError):
        load_suite(written(tmp_path / "tests" / "o.yaml", "name: a workflow\non: push\n"))


@pytest.mark.parametrize("where", ["file://s/*.yaml", "[file://s/*.yaml]", "s/*.yaml", "file://s"])
def test_scenarios_stand_in_files_by_pattern_and_folder(where: str, tmp_path: Path) -> None:
    """Like tests do."""
    for name in "ab":
        text = f"config: [{{vars: {{n: {name}}}}}]\ntests: [{{assert: [{{type: contains, value: x}}]}}]\n"
        written(tmp_path / "s" / f"{name}.yaml", text)
    suite = load_suite(written(tmp_path / "promptfooconfig.yaml", f"prompts: ['{{{{n}}}}']\nscenarios: {where}\n"))
    assert [case.input for case in suite] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "defaultTest: {provider: 'promptfoo:simulated-user'}\n",
        "defaultTest: {provider: {id: 'promptfoo:simulated-user', config: {maxTurns: 3}}}\n",
    ],
)
def test_no_target_is_asked_for_a_simulated_user(text: str, tmp_path: Path) -> None:
    """It is not a judge either; a conversation that was held elsewhere is graded."""
    config = f"{text}prompts: [Be kind]\ntests: [{{vars: {{q: x}}, assert: [{{type: contains, value: x}}]}}]\n"
    suite = load_suite(written(tmp_path / "promptfooconfig.yaml", config))
    assert "simulated user" in suite.warnings[0].message
    (row,) = suite.run("offline", target=lambda _: "x")
    assert (row.status, "--outputs" in row.reason) == ("passed", False)
    (row,) = suite.run("offline", target="openai/gpt-5-mini")
    assert (row.status, "--outputs FILE" in row.reason) == ("deferred", True)


def test_the_filter_load_reads_json(tmp_path: Path) -> None:
    """As promptfoo's does."""
    config = "prompts: ['{{ (data | load).name }}']\ntests: [{vars: {data: '{\"name\": \"x\"}'}, assert: [{type: contains, value: x}]}]\n"
    (case,) = load_suite(written(tmp_path / "promptfooconfig.yaml", config))
    assert case.input == "x"


def test_a_judge_of_a_whole_mcptest_file_judges_its_evals(tmp_path: Path) -> None:
    """A rubric may refer to one that refers to another, and `eval: {rubric: ...}` is `eval.rubric`."""
    text = """
judge: {model: openai/gpt-5-mini}
rubrics:
  strict: {ref: plain, threshold: 0.9}
  plain: {criteria: [{name: a, description: A}]}
evals: [{name: e, prompt: Q, response: R, rubric: {ref: strict}}]
agents: [{name: g, server: s, prompt: Q, expect: [{eval: {rubric: Is kind}}]}]
"""
    suite = load_suite(written(tmp_path / "x.mcptest.yaml", text))
    assert [(case.id, case.rubric.threshold) for case in suite] == [("e", 0.9), ("g", 0.7)]
    assert getattr(suite.judge, "model", "") == "openai/gpt-5-mini"


def test_rubrics_that_refer_to_one_another_in_a_circle_are_refused(tmp_path: Path) -> None:
    """Each at its place."""
    text = "rubrics: {a: {ref: b}, b: {ref: a}}\nevals: [{name: e, prompt: Q, rubric: {ref: a}}]\n"
    with pytest.raises(LoadError, match="in a circle"):
        load_suite(written(tmp_path / "x.mcptest.yaml", text))


def test_validate_says_from_where_files_are_included(tmp_path: Path) -> None:
    """Where that is not the file's own folder."""
    folder(tmp_path / ".git")
    written(tmp_path / "a.txt", "Say a")
    file = written(tmp_path / "evals" / "promptfooconfig.yaml", CONFIG.format("../a.txt"))
    result = CliRunner().invoke(validate, [str(file)])
    assert f"it may include files below {tmp_path}" in result.output
    result = CliRunner().invoke(validate, [str(file), "--format", "json"])
    assert json.loads(result.output)[0]["base"] == str(tmp_path)
