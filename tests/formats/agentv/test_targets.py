"""Targets of AgentV's projects: names of models and agents, in all the places where its generations have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric import Judge, load_suite, loads_suite
from rubric.formats.agentv.targets import lacking_variables
from rubric.suites.suite import Suite

CATALOGUES = {
    "1": {
        ".agentv/targets.yaml": """
targets:
  - {name: llm, provider: openai, model: gpt-5-mini, temperature: 0, api_key: "${{ KEY }}", judge_target: grader}
  - {name: grader, provider: anthropic, model: claude-sonnet-4-5}
  - {name: coder, provider: codex, grader_target: grader}
  - {name: alias, use_target: llm}
"""
    },
    "2, targets": {
        ".agentv/config.yaml": """
targets:
  - {id: llm, provider: openai, runtime: host, config: {model: gpt-5-mini, temperature: 0, api_key: "{{ env.KEY }}"}}
  - {id: grader, provider: anthropic, config: {model: claude-sonnet-4-5}}
  - {id: coder, provider: codex-app-server, config: {command: [codex, app-server], model: gpt-5-codex}}
  - {id: alias, use_target: llm}
defaults: {target: llm, grader: grader}
"""
    },
    "2, providers": {
        ".agentv/config.yaml": "providers: file://providers.yaml\ndefaults: {provider: llm, grader: grader}\n",
        ".agentv/providers.yaml": """
- {id: openai, label: llm, model: gpt-5-mini, temperature: 0, api_key: "{{ env.KEY }}"}
- {id: "anthropic:messages:claude-sonnet-4-5", label: grader}
- {id: "agentv:codex-cli", label: coder, command: [codex], model: gpt-5-codex}
- {id: alias, label: alias, use_target: llm}
""",
    },
}


def loaded(folder: Path, files: dict[str, str], text: str, **options: object) -> Suite:
    """Return the suite of *text* in `evals/`, below a project with *files*, by the default call."""
    for name, content in {".git/HEAD": "", **files, "evals/it.eval.yaml": text}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return load_suite(folder / "evals/it.eval.yaml", **options)  # type: ignore[arg-type]


def eval_of(providers: str, grader: str = "") -> str:
    """Return a file that asks *providers*, and whose assertion names a *grader*."""
    named = f", provider: {grader}" if grader else ""
    test = f"tests: [{{id: a, vars: {{q: Hi}}, assert: [{{type: llm-rubric, value: Is kind{named}}}]}}]"
    return f'prompts: ["{{{{ q }}}}"]\n{f"providers: {providers}" if providers else ""}\n{test}\n'


@pytest.mark.parametrize("files", CATALOGUES.values(), ids=CATALOGUES)
def test_a_name_becomes_the_model_that_the_project_gives_it(files: dict[str, str], tmp_path: Path) -> None:
    """As the system under test, beside names of vendors, and as the judge of one assertion; keys are not read."""
    suite = loaded(tmp_path, files, eval_of("[llm, alias, 'openai:gpt-5']", "grader"))
    assert (suite.format, suite.warnings) == ("agentv-2", ())
    (case,) = suite
    assert [provider.model for provider in case.providers] == ["openai/gpt-5-mini"] * 2 + ["openai/gpt-5"]
    assert [dict(provider.settings) for provider in case.providers] == [{"temperature": 0}] * 2 + [{}]
    assert case.judge == Judge("anthropic/claude-sonnet-4-5")


@pytest.mark.parametrize("files", CATALOGUES.values(), ids=CATALOGUES)
def test_an_agent_says_that_it_is_a_program(files: dict[str, str], tmp_path: Path) -> None:
    """To be asked, and to judge; then the judge of the run takes its place."""
    suite = loaded(tmp_path, files, eval_of("[coder]", "coder"))
    (case,) = suite
    assert "a program, which is not run; give a function or finished outputs" in case.providers[0].missing
    assert case.judge is None
    assert ["the judge of the run takes its place" in problem.message for problem in suite.warnings] == [True]


@pytest.mark.parametrize("files", CATALOGUES.values(), ids=CATALOGUES)
def test_the_projects_grader_judges_where_nothing_else_is_named(files: dict[str, str], tmp_path: Path) -> None:
    """That of the target in generation 1, that of the project in 2."""
    suite = loaded(tmp_path, files, eval_of("[llm]"))
    assert suite.judge == Judge("anthropic/claude-sonnet-4-5")


def test_a_file_that_names_none_asks_the_default(tmp_path: Path) -> None:
    """`defaults.provider`, or the target that is called default."""
    usual = {".agentv/providers.yaml": "- {id: gemini, label: default, model: gemini-2.5-flash}\n"}
    assert loaded(tmp_path, usual, eval_of("")).cases[0].providers[0].model == "gemini/gemini-2.5-flash"
    named = CATALOGUES["2, providers"]
    assert loaded(tmp_path / "b", named, eval_of("")).cases[0].providers[0].model == "openai/gpt-5-mini"


def test_targets_of_the_file_itself_come_first(tmp_path: Path) -> None:
    """Inline, or in a file that `providers` names."""
    own = '[{id: openai, label: llm, config: {model: gpt-5, base_url: "http://localhost"}}]'
    (case,) = loaded(tmp_path, CATALOGUES["1"], eval_of(own))
    assert (case.providers[0].model, case.providers[0].unsent) == ("openai/gpt-5", ("base_url",))
    files = {"shared/providers.yaml": "- {id: openai, label: x, config: {model: gpt-5}}\n"}
    (case,) = loaded(tmp_path / "b", files, eval_of("file://../shared/providers.yaml"))
    assert (case.providers[0].name, case.providers[0].model) == ("x", "openai/gpt-5")


def test_what_is_lacking_is_said_and_the_file_loads(tmp_path: Path) -> None:
    """A name that nothing defines, a model that an undeclared variable holds, circles of aliases."""
    files = {
        ".agentv/targets.yaml": "targets: [{name: env, provider: azure, model: '${{ MODEL }}'},"
        " {name: one, use_target: two}, {name: two, use_target: one}]\n"
    }
    suite = loaded(tmp_path, files, eval_of("[nobody, env, one]", "env"))
    nobody, env, one = suite.cases[0].providers
    assert "defined neither in the file nor in .agentv/config.yaml" in nobody.missing
    assert "'MODEL'" in env.missing
    assert one.missing
    assert suite.cases[0].judge is None
    declared = loaded(tmp_path, files, eval_of("[env]", "env"), environ={"MODEL": "gpt-5"})
    assert declared.cases[0].providers[0].model == "azure/gpt-5"
    assert declared.cases[0].judge == Judge("azure/gpt-5")


def test_a_target_of_an_undeclared_variable_cannot_be_asked_and_the_file_loads(tmp_path: Path) -> None:
    """Projects name their targets by variables of each person's own."""
    files = {".agentv/targets.yaml": "targets: [{name: default, use_target: '${{ AGENT }}'}]\n"}
    inner = "tests: [{id: a, input: Q, criteria: c}]\nexecution: {targets: [{name: b, use_target: '${{ AGENT }}'}]}\n"
    for text in (eval_of(""), eval_of("[default]"), inner):
        suite = loaded(tmp_path, files, text)
        assert all("AGENT" in provider.missing for case in suite for provider in case.providers)
        assert any("'AGENT' is not declared" in warning.message for warning in suite.warnings)


def test_the_target_of_the_execution_is_used_without_a_warning() -> None:
    """`execution.target` becomes the provider of each case."""
    file = "tests: [{id: a, input: Q, criteria: c}]\nexecution: {target: 'openai:gpt-5-mini'}\n"
    suite = loads_suite(file, "agentv-1.5")
    assert not [str(warning) for warning in suite.warnings if "execution.target" in str(warning)]
    assert [one.name for one in suite.cases[0].providers] == ["openai:gpt-5-mini"]


def test_variables_that_targets_name_are_found_but_for_secrets(tmp_path: Path) -> None:
    """Models and their graders; what prompts show, and what is a key by its name, is left alone."""
    files = {
        ".agentv/targets.yaml": "targets: [{name: a, provider: openai, model: '${{ MODEL }}', judge_target: b},"
        " {name: b, provider: openai, model: '${{ GRADER_MODEL }}'}, {name: c, provider: openai, model: '${{ API_KEY }}'}]\n"
    }
    suite = loaded(tmp_path, files, eval_of("[a, c]", "b"))
    environ = {"MODEL": "gpt-5", "GRADER_MODEL": "gpt-5-mini", "API_KEY": "sk", "OTHER": "x"}
    found, others = lacking_variables(suite, environ)
    assert found == {"MODEL": "gpt-5", "GRADER_MODEL": "gpt-5-mini"}
    assert (others, lacking_variables(suite, {})[1]["MODEL"]) == ({"API_KEY": "--env API_KEY"}, "MODEL=...")
    (case,) = loaded(tmp_path, files, eval_of("[a, c]", "b"), environ=found)
    assert [provider.model for provider in case.providers] == ["openai/gpt-5", ""]
    assert case.judge == Judge("openai/gpt-5-mini")
