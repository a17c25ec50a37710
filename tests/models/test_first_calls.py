"""The first calls of a process, all at once, while LiteLLM is being imported."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.servers import Server

AT_ONCE = """
import asyncio, json, os, sys
from rubric.models.retry import attempt
from rubric.values.requests import Reply
from rubric.models.litellm import LiteLLMModel
from tests.sendables import openai_ask
from tests.servers import Endpoint

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "true"
before = dict(os.environ)

async def main():
    ask = openai_ask(Endpoint(sys.argv[1], ()), timeout=60)
    found = await asyncio.gather(*(attempt(LiteLLMModel(), ask) for _ in range(8)))
    assert all(isinstance(one, Reply) for one in found), found

asyncio.run(main())
print(json.dumps([before, dict(os.environ)]))
"""


@pytest.fixture(scope="module")
def environments(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    """Return the environment before eight first calls at once, which all got a reply in silence, and after them."""
    folder = tmp_path_factory.mktemp("home")
    (folder / ".env").write_text("SMUGGLED=yes\n")
    own = ("LITELLM_", "TIKTOKEN_", "EXPERIMENTAL_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    with Server() as server:
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", AT_ONCE, server.at("ok").root]
        env = {**environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=folder, env=env)
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_first_calls_at_once_take_the_short_way(environments: list[dict[str, str]]) -> None:
    """Several first calls import LiteLLM once: none of them takes the import of another for the user's own."""
    assert environments[1]["EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"] == "True"


def test_the_environment_is_left_alone(environments: list[dict[str, str]]) -> None:
    """A call sets LiteLLM's switches where they are unset, changes no variable that was there and reads no `.env`."""
    before, after = environments
    added = after.keys() - before.keys() - {"TIKTOKEN_CACHE_DIR"}  # LiteLLM's own doing
    switches = {"LITELLM_MODE", "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"}
    assert added - {"EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"} == switches
    assert before.items() <= after.items()


KEYLESS = """
import sys
from rubric import Judge, Rubric, grade_many
result = grade_many(["Good morning!"], Rubric.of("Is polite"), Judge("openai/gpt-5.6")).collect()[0]
print([(failure.kind, "OPENAI_API_KEY" in failure.message) for failure in result.failures], "litellm" in sys.modules)
"""


def test_a_missing_key_is_known_without_litellm() -> None:
    """A run without a key does not wait for LiteLLM's import to be told so."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "LITELLM_"))}
    env = {**environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", KEYLESS], capture_output=True, text=True, timeout=120, check=False, env=env
    )
    assert (done.stdout, done.returncode) == ("[('auth', True)] False\n", 0), done.stderr


IMPORTING = """
import sys, time
print("importing", flush=True)
time.sleep(600)
"""

GRADING = """
from rubric import Judge, Rubric, grade
grade("Good morning!", Rubric.of("Is polite"), Judge("openai/gpt-5.6", params={"api_key": "sk-test"}))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a process there is not sent an interrupt alone")
def test_an_interrupt_does_not_wait_for_the_import_of_litellm(tmp_path: Path) -> None:
    """Ctrl-C while LiteLLM is being imported ends the process, however long the import would take."""
    (tmp_path / "litellm.py").write_text(IMPORTING)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    command = [sys.executable, "-c", GRADING]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert (process.returncode, said.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")
