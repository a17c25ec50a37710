"""Where the tests of AgentV's files come from: scenarios, PROMPT.md, tables, files beside them, and programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric import LoadError, load_suite
from rubric.suites.suite import Suite

SCENARIOS = """
prompts: ["Translate '{{ phrase }}' to {{ language }}."]
default_test: {vars: {tone: plain}}
scenarios:
  - config:
      - {id: spanish, vars: {language: Spanish, hello: hola}, assert: [{type: icontains, value: s}]}
      - {id: french, vars: {language: French, hello: bonjour}}
    tests:
      - {description: a greeting, vars: {phrase: hello}, assert: [{type: equals, value: "{{ hello }}"}]}
      - {id: bye, vars: {phrase: goodbye}, assert: [Says goodbye]}
  - file://more/*.yaml
"""


def loaded(folder: Path, name: str, **files: str) -> Suite:
    """Return the suite in the file *name* of a project with *files* (`__` stands for a slash), by the default call."""
    (folder / ".git").mkdir(exist_ok=True)
    for file, text in files.items():
        path = folder / file.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / path.name.replace("_dot_", ".")).write_text(text)
    return load_suite(folder / name)


def test_scenarios_are_rows_of_settings_times_rows_of_tests(tmp_path: Path) -> None:
    """Variables of the test win, assertions of both hold; files may be a list, or have the key."""
    files = {
        "evals__it_dot_eval_dot_yaml": SCENARIOS,
        "evals__more__one_dot_yaml": "[{tests: [{vars: {phrase: a, language: Thai}, assert: [Is polite]}]}]",
        "evals__more__two_dot_yaml": "scenarios: [{config: [{id: x}], tests: [{id: y, assert: [Is polite]}]}]",
    }
    suite = loaded(tmp_path, "evals/it.eval.yaml", **files)
    assert (suite.format, suite.warnings) == ("agentv-2", ())
    ids = ["test-1 [spanish]", "test-1 [french]", "bye [spanish]", "bye [french]", "test-1 [config-1]", "y [x]"]
    assert [case.id for case in suite] == ids
    first, second, *_ = suite
    assert (first.input, second.input) == ("Translate 'hello' to Spanish.", "Translate 'hello' to French.")
    assert [str(c.answer) for c in first.rubric.criteria] == ["contains 's' in any case", "equals 'hola'"]
    assert [str(c.answer) for c in second.rubric.criteria] == ["equals 'bonjour'"]


@pytest.mark.parametrize(
    ("listed", "task", "asked"),
    [
        ("[./x.log]", "evals__fix__PROMPT.md", "./x.log:\nboom\n\nFix it."),
        ("[./x.log, task/PROMPT.md]", "evals__fix__task__PROMPT.md", "./x.log:\nboom\n\nFix it."),
        ("[./x.log]", "PROMPT.md", ""),
    ],
)
def test_prompt_md_asks_a_test_without_an_input(listed: str, task: str, asked: str, tmp_path: Path) -> None:
    """Among its files, or beside the file itself; one further up is of something else."""
    text = f"tests: [{{id: a, criteria: Fixes it, input_files: {listed}}}]"
    files = {"evals__fix__EVAL.yaml": text, "evals__fix__x.log": "boom", task: "Fix it."}
    (case,) = loaded(tmp_path, "evals/fix/EVAL.yaml", **files)
    assert case.input == asked


def test_columns_of_a_table_say_more_of_its_assertions(tmp_path: Path) -> None:
    """Their name and score, the threshold and the metadata of the test."""
    head = "q,__expected1,__expected2,__metric,__threshold,__metadata:source,__config:__expected2:threshold"
    table = f"{head}\nHi,contains:a,llm-rubric:Is kind,tone,0.5,faq,0.4\n"
    text = 'prompts: ["{{ q }}"]\ntests: file://c.csv\ndefault_test: {}\n'
    suite = loaded(tmp_path, "it.eval.yaml", **{"it.eval.yaml": text, "c.csv": table})
    (case,) = suite
    assert suite.warnings == ()
    assert (case.input, case.rubric.threshold, dict(case.metadata)) == ("Hi", 0.5, {"source": "faq"})
    assert [c.id for c in case.rubric.criteria] == ["tone", "tone-2"]
    assert case.rubric["tone-2"].answer.criteria[0].min_score == 0.4  # type: ignore[union-attr]


def test_the_yaml_file_beside_a_jsonl_file_says_what_its_tests_share(tmp_path: Path) -> None:
    """It has the same name; one with tests of its own is read as ever."""
    rows = '{"id": "a", "criteria": "Is right", "input": "Q"}\n'
    shared = "name: maths\nassert: [{type: contains, value: x}]\nthreshold: 0.6\n"
    suite = loaded(tmp_path, "cases.jsonl", **{"cases.jsonl": rows, "cases.yaml": shared})
    (case,) = suite
    assert (suite.name, case.rubric.threshold) == ("maths", 0.6)
    assert "contains 'x'" in [str(c.answer) for c in case.rubric.criteria]


def test_tests_that_a_program_makes_are_one_ungraded_case(tmp_path: Path) -> None:
    """The others beside them are read."""
    text = 'prompts: ["{{ q }}"]\ntests: ["file://gen.py:create", {id: b, vars: {q: Hi}, assert: [Is kind]}]\n'
    suite = loaded(tmp_path, "it.eval.yaml", **{"it.eval.yaml": text, "gen.py": "raise SystemExit(1)\n"})
    made, other = suite
    assert "tests that a program makes" in str(made.rubric.criteria[0].answer)
    assert other.id == "b"


@pytest.mark.parametrize("name", ["config", "targets", "providers"])
def test_settings_of_a_project_are_no_eval_and_say_so(name: str, tmp_path: Path) -> None:
    """A file of settings has an error that says what it is for, unless it holds tests."""
    file = tmp_path / ".agentv" / f"{name}.yaml"
    file.parent.mkdir()
    file.write_text("required_version: '>=4'\nexecution: {verbose: true}")
    with pytest.raises(LoadError, match="holds no tests; the evals of the project are graded with it"):
        load_suite(file)
    file.write_text("tests: [{id: a, input: hi, criteria: Is polite}]")
    assert len(load_suite(file)) == 1
