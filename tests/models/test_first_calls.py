"""The first calls of a process, all at once, while LiteLLM is being imported."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.servers import Server

AT_ONCE = """
import asyncio, os, sys
from rubric.models.retry import attempt
from rubric.values.requests import Reply
from rubric.models.litellm import LiteLLMModel
from tests.sendables import openai_ask
from tests.servers import Endpoint

async def main():
    ask = openai_ask(Endpoint(sys.argv[1], ()), timeout=60)
    found = await asyncio.gather(*(attempt(LiteLLMModel(), ask) for _ in range(8)))
    assert all(isinstance(one, Reply) for one in found), found

asyncio.run(main())
print(os.environ.get("EXPERIMENTAL_OPENAI_BASE_LLM_HTTP_HANDLER"))
"""


def test_first_calls_at_once_take_the_short_way() -> None:
    """Several first calls import LiteLLM once: none of them takes the import of another for the user's own."""
    own = ("LITELLM_", "TIKTOKEN_", "EXPERIMENTAL_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    with Server() as server:
        command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", AT_ONCE, server.at("ok").root]
        env = {**environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT, env=env)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


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
