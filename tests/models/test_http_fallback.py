"""Where aiohttp lacks the names that calls stand on, they go through its session: with the same outcomes."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.servers import BEHAVIOURS, Server

ROOT = Path(__file__).parent.parent.parent

HIDDEN = {
    "module": "sys.modules['aiohttp.client_proto'] = None",
    "class": "import aiohttp.client_proto as m; del m.ResponseHandler",
    "exceptions": "sys.modules['aiohttp.http_exceptions'] = None",
    "request": "del aiohttp.ClientRequest",
    "nothing": "",
}

SCRIPT = """
import sys, warnings
warnings.simplefilter("error")
import aiohttp
{hide}
from rubric import Judge, Rubric, evaluate
from rubric.models import http_client
assert http_client._IS_WHOLE is {whole}
for base in sys.stdin.read().split():
    judge = Judge("m", via=base, api_key="key-of-the-test-1", retries=0, repairs=0, timeout=1, sealed=False)
    found = evaluate("Good morning to you." + " x" * 40_000, Rubric.of("Is polite"), judge)
    print(found.verdict, [(failure.kind, failure.status, failure.in_doubt) for failure in found.failures], found.usage)
"""


@cache
def outcomes(hide: str) -> list[str]:
    """Return what comes of a call to a server of each behaviour, and that each of them got one request."""
    script = SCRIPT.format(hide=HIDDEN[hide], whole=hide == "nothing")
    with Server() as server:
        endpoints = [server.at(behaviour) for behaviour in BEHAVIOURS]
        bases = "\n".join([*(each.openai for each in endpoints), "http://127.0.0.1:9/v1"])
        command = [sys.executable, "-c", script]
        done = subprocess.run(command, input=bases, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert [len(each.requests) for each in endpoints] == [1] * len(endpoints)
        assert {each.requests[0].headers["authorization"] for each in endpoints} == {"Bearer key-of-the-test-1"}
    return [f"{name}: {line}" for name, line in zip([*BEHAVIOURS, "gone"], done.stdout.splitlines(), strict=True)]


@pytest.mark.parametrize("hide", ["module", "class", "exceptions", "request"])
def test_outcomes_are_the_same_without_private_names(hide: str) -> None:
    """Verdicts, kinds of failures, what is in doubt, one request each: by any behaviour of a server, and without one."""
    assert outcomes(hide) == outcomes("nothing")
