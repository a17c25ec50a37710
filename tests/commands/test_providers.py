"""The command line on files that name what answers their cases."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rubric.commands.options import model_called
from tests.command_line import run
from tests.servers import Endpoint, Server, nonce_of, say_yes

FILE = """\
prompts: ['Say {{q}}']
providers: [openai:gpt-5-mini]
tests:
  - {vars: {q: hello}, assert: [{type: icontains, value: hello}, {type: llm-rubric, value: Is polite}]}
  - {vars: {q: bye}, assert: [{type: icontains, value: hello}]}
"""


def answer(body: dict[str, Any]) -> str:
    """Judge if that is asked for, else say hello."""
    return say_yes(body) if nonce_of(body) or "response_format" in body else "Hello there"


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """Take the place of OpenAI, with a key."""
    with Server(respond=answer) as server:
        endpoint = server.at("ok")
        for name, value in {"API_KEY": "sk-test", "BASE_URL": endpoint.openai, "API_BASE": endpoint.openai}.items():
            monkeypatch.setenv(f"OPENAI_{name}", value)
        yield endpoint


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the name of a file that names a provider."""
    path = tmp_path / "promptfooconfig.yaml"
    path.write_text(FILE)
    return str(path)


def rows(*arguments: str) -> tuple[list[dict[str, Any]], str]:
    """Return the rows of a run, and what was printed beside them."""
    result = run("grade", *arguments, "--no-keep", "--format", "json")
    return json.loads(result.stdout)["rows"], result.stderr


@pytest.mark.parametrize("options", [(), ("--target", "providers")])
def test_what_the_file_names_answers_it_where_no_option_does(
    options: tuple[str, ...], openai: Endpoint, file: str
) -> None:
    """The price of the answers and the judgements comes first, with the names of both."""
    found, said = rows(file, *options, "-j", "openai/gpt-5-nano")
    assert [row["status"] for row in found] == ["passed", "passed"]
    assert len(openai.requests) == 3
    assert "2 cases, 3 calls, at most $0.0" in said
    assert said.rstrip().endswith("answered by openai/gpt-5-mini, judged by openai/gpt-5-nano")


@pytest.mark.parametrize("option", ["none", "outputs", "plan"])
def test_nothing_is_asked_for_a_plan_or_where_an_option_says_so(
    option: str, openai: Endpoint, file: str, tmp_path: Path
) -> None:
    """Finished outputs answer what they have; the other cases wait, and say which option asks the file's."""
    (given := tmp_path / "given.jsonl").write_text('{"id": "bye", "output": "Hello"}\n')
    if option == "plan":
        assert "3 calls" in run("plan", file, "-j", "openai/gpt-5-nano").stdout
    else:
        options = ["--target", "none"] if option == "none" else ["--outputs", str(given)]
        found, _ = rows(file, *options, "-j", "openai/gpt-5-nano")
        assert [row["status"] for row in found] == ["deferred", "passed" if option == "outputs" else "deferred"]
        assert "--target providers asks those of its file" in found[0]["reason"]
    assert openai.requests == []


def test_a_missing_key_is_named_and_nothing_else_is_asked(file: str) -> None:
    """In the plan too."""
    found, said = rows(file, "-j", "offline")
    assert {row["reason"] for row in found} == {"no key for the model 'openai/gpt-5-mini': set OPENAI_API_KEY"}
    assert "2 deferred, no calls" in said
    assert "set OPENAI_API_KEY" in run("plan", file, "-j", "offline").stdout


def test_a_cap_holds_for_the_answers_too(openai: Endpoint, file: str) -> None:
    """An answer is not asked for if it may pass the cap, which the plan knows before."""
    most = json.loads(run("plan", file, "-j", "openai/gpt-5-nano", "--format", "json").stdout)
    first, second = (case["cost"][1] for case in most["cases"])
    found, _ = rows(file, "-j", "openai/gpt-5-nano", "--max-cost", f"{second * 1.01:.6f}")
    assert first > second
    assert [row["status"] for row in found] == ["ungraded", "passed"]
    assert "this case may take" in found[0]["reason"]
    assert len(openai.requests) == 1


@pytest.mark.parametrize("name", ["MODEL", "MODEL_TOKEN"])
def test_variables_of_a_projects_targets_are_read_or_the_command_is_told(
    name: str, openai: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that speaks of a secret is shown only by `--env`; a variable that is not set has to be."""
    targets = {
        "targets": [{"name": "default", "provider": "openai", "api_key": "${{ KEY }}", "model": f"${{{{ {name} }}}}"}]
    }
    tests = {
        "tests": [{"id": "a", "input": "Hi", "criteria": "x", "assertions": [{"type": "contains", "value": "Hello"}]}]
    }
    (tmp_path / ".agentv").mkdir()
    (tmp_path / ".agentv/targets.yaml").write_text(json.dumps(targets))
    (file := tmp_path / "any.eval.yaml").write_text(json.dumps(tests))
    monkeypatch.delenv(name, raising=False)
    found, said = rows(str(file))
    assert found[0]["status"] == "deferred"
    assert f"names the variable {name}, such as {name}=... " in said.replace("its targets name", "it names")
    monkeypatch.setenv(name, "gpt-5-mini")
    found, said = rows(str(file))
    if name == "MODEL_TOKEN":
        assert (found[0]["status"], f"grade {file} --env {name}" in said) == ("deferred", True)
        found, _ = rows(str(file), "--env", name)
    assert [row["status"] for row in found] == ["passed"]
    assert os.environ[name] not in said or name == "MODEL"
    assert len(openai.requests) == 1


@pytest.mark.parametrize(("settings", "calls"), [((), 3), (("--per-call", "2"), 2), (("--per-call", "all"), 1)])
def test_several_criteria_may_go_in_one_request(settings: tuple[str, ...], calls: int, tmp_path: Path) -> None:
    """As `Judge(per_call=...)` has it; it belongs to a judge that is named."""
    (rubric := tmp_path / "r.yaml").write_text("criteria: [Is polite, Is short, Is true]\n")
    planned = json.loads(run("plan", str(rubric), "-j", "openai/gpt-5", *settings, "--format", "json").stdout)
    assert planned["calls"]["most"] == calls
    if settings:
        assert "--per-call belongs to the judge of the run" in run("plan", str(rubric), *settings).stderr


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("openai:gpt-5-mini", "openai/gpt-5-mini"),
        ("anthropic:messages:claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("ollama/llama3:8b", "ollama/llama3:8b"),
        ("ft:gpt-4o:mine", "ft:gpt-4o:mine"),
    ],
)
def test_a_model_may_be_named_as_promptfoo_does(name: str, model: str) -> None:
    """So that its price is known, and what is asked is what was planned."""
    assert model_called(name) == model
