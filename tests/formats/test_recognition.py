"""As what a file is read: all of its evidence counts, the surer system wins, and a draw is refused."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rubric import convert, load
from rubric.errors import LoadError
from rubric.formats.suites import load_suite, loads_suite
from tests.places import SHARED
from tests.real_files import suite_or_error
from tests.rows import each_row

INDEX = SHARED / "corpus" / "index.csv"
TREES = SHARED / "trees" / "promptfoo-examples"


def _rows() -> list[tuple[str, str]]:
    if not INDEX.is_file():
        return []
    with INDEX.open(encoding="utf-8") as lines:
        return [(row["path"], row["format"]) for row in csv.DictReader(lines)]


def read_as(path: Path) -> str:
    """Return what a file is read as by the default call, whether or not all of it can be read."""
    return suite_or_error(path).format


@pytest.mark.long
@pytest.mark.skipif(not INDEX.is_file(), reason="the collected files are not beside this checkout")
@each_row(("path", "format_"), _rows(), ids=str)
def test_a_real_file_is_recognised_as_what_it_is(path: str, format_: str) -> None:
    """By the default call; the folder that it was collected in says what it is."""
    assert read_as(INDEX.parent / path) == format_


@pytest.mark.long
@pytest.mark.skipif(not TREES.is_dir(), reason="the collected files are not beside this checkout")
@each_row("path", sorted(TREES.rglob("*.yaml")), ids=lambda path: "/".join(path.parts[-2:]))
def test_no_file_of_promptfoo_is_taken_for_another_system_s(path: Path) -> None:
    """Those that are not a suite, such as a provider or variables, are none."""
    assert read_as(path) in ("promptfoo", "")


SHARED_WORDS = "tests: [{id: a, vars: {question: x}, assert: [{type: contains, value: y}]}]\n"


@each_row(
    ("text", "format_"),
    [
        (SHARED_WORDS, "promptfoo"),
        ("rubric: r\nthreshold: 0.7\nassert: [{type: contains, value: y}]\n", "native"),
        ("rubric: r\ncriteria: Is polite\n", "native"),
        ("rubric: r\nevaluators: [{key: a, prompt: Is polite}]\n", "native"),
        ("rubric: r\nmetrics: [{name: a, criteria: b, evaluation_params: [input]}]\n", "native"),
        ("suite: s\nexamples: [{inputs: {a: b}}]\nevaluators: [Is polite]\n", "native"),
        ("name: r\nrubrics: {score1_description: bad, score5_description: good}\n", "native"),
        ("prompts: ['{{question}}']\nproviders: [openai:gpt-4o]\n" + SHARED_WORDS, "promptfoo"),
        (
            "prompts: ['{{input}}']\nproviders: [{id: openai:gpt-4o}]\n" + SHARED_WORDS.replace("question", "input"),
            "promptfoo",
        ),
        ("[{id: a, description: b, vars: {question: x}, assert: [{type: similar, value: y}]}]", "promptfoo"),
        ("providers: [llm]\n" + SHARED_WORDS, "agentv-2"),
        (
            "prompts: ['{{input}}']\nproviders: [{id: 'file://target.py'}]\n"
            + SHARED_WORDS.replace("question", "input"),
            "promptfoo",
        ),
        ("[{id: a, vars: {question: x, expected_output: z}, assert: [{type: llm-rubric, value: y}]}]", "promptfoo"),
        ("tests: [{id: a, vars: {question: [x, z]}, assert: [{type: not-contains, value: y}]}]", "promptfoo"),
        ("tests: [{id: a, input: Q, assert: [{type: contains, value: y}]}]", "agentv-2"),
        (
            (
                "prompts: [Who won?]\nproviders: ['deepseek:deepseek-chat']\ndefaultTest: {assert: []}\n"
                "tests: [{input: Q, assert: [{type: contains, value: y}]}]"
            ),
            "promptfoo",
        ),
        ("prompts: ['{{ input }}']\n" + SHARED_WORDS.replace("question", "input"), "agentv-2"),
        ("tests: [{vars: {q: x}, assert: [{type: llm-rubric, value: [{outcome: y}]}]}]", "agentv-2"),
        (
            "prompts: [a]\nassert: [{metric: m, type: llm-rubric, target: grader, prompt: b}]\ntests: [{vars: {}}]",
            "agentv-2",
        ),
        ("fixtures: [{id: a, assert: [is polite], answer: x}]", "agentv-2"),
        ("tests: [{id: a, criteria: b, input: c, assert: [{type: code_judge, script: d}]}]", "agentv-1.5"),
        ("execution: {evaluators: [{type: llm_judge, name: a, prompt: b}]}", "agentv-1"),
        ("tools: [{name: a, expect: [{matcher: {llm-judge: {rubric: b}}}]}]", "mcptest"),
        ("# yaml-language-server: $schema=https://promptfoo.dev/config-schema.json\n" + SHARED_WORDS, "promptfoo"),
    ],
)
def test_evidence_of_all_kinds_counts(text: str, format_: str) -> None:
    """No single key decides."""
    try:
        found = loads_suite(text).format
    except LoadError as error:
        found = error.format
    assert found == format_


@pytest.mark.parametrize("name", ["cases.yaml", "cases.jsonl"])
@pytest.mark.parametrize("reference", ["./{}", "file://{}", "['file://{}']"])
def test_included_cases_count_too(name: str, reference: str, tmp_path: Path) -> None:
    """A file whose cases stand elsewhere says little itself."""
    case = '{"id": "a", "criteria": "Says hello", "vars": {"input": "hi"}}'
    (tmp_path / name).write_text(case if name.endswith("jsonl") else f"[{case}]")
    (tmp_path / "suite.yaml").write_text(f"prompts: ['{{{{ input }}}}']\ntests: {reference.format(name)}\n")
    suite = load_suite(tmp_path / "suite.yaml")
    assert (suite.format, [case.id for case in suite]) == ("agentv-2", ["a"])
    (tmp_path / name).write_text(case.replace("criteria", "description").replace("input", "question"))
    if name.endswith("jsonl"):
        assert load_suite(tmp_path / "suite.yaml").format == "promptfoo"


@pytest.mark.parametrize("name", ["promptfoo.yaml", "promptfooconfig.ci.yml", "promptfoo.json"])
def test_the_name_of_a_file_tells_what_its_words_leave_open(name: str, tmp_path: Path) -> None:
    """AgentV names its providers by one word, and promptfoo has no such providers."""
    text = '{"prompts": ["Say hello."], "providers": [{"id": "mistral"}]}'
    (tmp_path / name).write_text(text)
    suite = load_suite(tmp_path / name)
    assert (suite.format, [case.input for case in suite]) == ("promptfoo", ["Say hello."])


@pytest.mark.parametrize("name", ["promptfooconfig_native.yaml", "refunds.eval.yaml"])
def test_what_convert_has_written_is_read_as_ours_whatever_its_name(name: str, tmp_path: Path) -> None:
    """People put the new file beside the old one, under nearly the same name."""
    config = "prompts: ['{{ q }}']\nproviders: [openai:gpt-5]\ntests: [{vars: {q: Hi}, assert: [{type: is-json}]}]"
    (tmp_path / name).write_text(str(convert(loads_suite(config, "promptfoo"), "native")))
    assert load_suite(tmp_path / name).format == "native"


def test_a_rubric_with_tests_is_ours_beside_a_config_too(tmp_path: Path) -> None:
    """Its tests have replies, as those of no other system have; a config beside it is about other files."""
    (tmp_path / "promptfooconfig.yaml").write_text("tests: []\nprompts: [x]\nproviders: [echo]\n")
    path = tmp_path / "ok.yaml"
    path.write_text("rubric: r\ncriteria: [Names Oslo]\ntests: [{reply: In Oslo, passes: true}]\n")
    assert len(load(path).tests) == 1
    assert load_suite(path).format == "native"


def test_a_file_of_two_systems_is_refused_with_the_choice() -> None:
    """Each would grade it otherwise; named, it is read as that."""
    text = "defaultTest: {threshold: 0.5}\ngovernance: {owner: a}\ntests: [{assert: [{type: is-json}]}]"
    with pytest.raises(LoadError, match="name one with format='promptfoo' or format='agentv-2'") as caught:
        loads_suite(text)
    assert "'governance'" in str(caught.value)
    assert "'defaultTest'" in str(caught.value)
    assert loads_suite(text, "promptfoo").format == "promptfoo"


def test_an_error_says_as_what_a_file_was_read() -> None:
    """And why; where the caller has said it, there is nothing to say."""
    text = "defaultTest: {asert: []}\ntests: [{vars: {a: b}}]"
    with pytest.raises(LoadError, match=r"read as promptfoo, since it has the key 'defaultTest'; .* format=") as caught:
        loads_suite(text)
    assert caught.value.format == "promptfoo"
    with pytest.raises(LoadError) as caught:
        loads_suite(text, "promptfoo")
    assert "read as" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["servers: {main: {command: [x]}}", "rubrics: {a: {criteria: [{name: a, description: b}]}}"]
)
def test_a_suite_without_cases_is_refused(text: str) -> None:
    """It would pass, whatever was wanted."""
    with pytest.raises(LoadError, match="nothing in it to grade"):
        loads_suite(text)


@pytest.mark.parametrize(
    "text",
    [
        "name: CI\non: [push]\njobs: {test: {runs-on: ubuntu-latest}}",
        '{"name": "x", "version": "1.0.0", "tags": ["a"], "dependencies": {}}',
        "openapi: 3.0.0\ntags: [{name: a}]\nservers: [{url: http://x}]\npaths: {}",
        "[{id: a, name: b}, {id: c}]",
    ],
)
def test_a_name_ids_and_tags_are_no_evidence_by_themselves(text: str) -> None:
    """Workflows, manifests and descriptions of services have them, and are not suites."""
    with pytest.raises(LoadError, match="not a suite of a known format"):
        loads_suite(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("tests: [{id: a, input: b, assert: [{type: llm-rubric, value: [{id: x, outcom: y}]}]}]", "outcom"),
        ("agents: [{name: a, expect: [{llm-judge: {rubric: b}}, {eval.rubic: c}]}]", "eval.rubic"),
    ],
)
def test_a_misspelt_key_is_refused_where_it_would_change_the_kind(text: str, place: str) -> None:
    """The item would be free data for a judge, and the matcher no matcher."""
    with pytest.raises(LoadError, match=f"unknown key '{place}'; did you mean"):
        loads_suite(text)


@pytest.mark.parametrize("key", ["shared", "_shared", ".assert", "x-tests", "x-assert"])
def test_a_key_that_holds_anchors_is_not_refused(key: str) -> None:
    """It resembles a key that changes nothing, or its author has set it aside."""
    text = (
        f"{key}: &a [{{type: contains, value: y}}]\nproviders: [openai:gpt-4o]\ntests: [{{vars: {{q: x}}, assert: *a}}]"
    )
    assert len(loads_suite(text).cases) == 1


def test_the_data_of_a_suite_may_have_any_names() -> None:
    """A matcher of mcptest among them says nothing of the file."""
    text = "metadata: {llm-judge: 1}\ncases: [{id: a, rubric: [Is warm], metadata: {llm-jury: {eval.rubric: 2}}}]"
    assert loads_suite(text).format == "native"


@pytest.mark.parametrize(
    "rubric", ["rubric: Is polite\ntests:\n  - {id: a, input: hi", "tests:\n  - {id: a, input: hi, rubric: x"]
)
def test_a_suite_of_ours_with_its_cases_under_another_key_is_told_the_key(rubric: str) -> None:
    """It is not a file of AgentV, whose cures would not work."""
    with pytest.raises(LoadError, match="tests: unknown key; did you mean 'cases'") as caught:
        loads_suite(f"suite: s\n{rubric}, output: hello}}\n")
    assert caught.value.format == "native"
