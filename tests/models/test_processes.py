"""What LiteLLM may not do to a process: print, change its environment, mind threads and loops, break after a fork."""

from __future__ import annotations

import json
import subprocess
import sys

from tests import vendors
from tests.forks import QUIET, Forks, environ_of_litellm
from tests.places import ROOT
from tests.servers import ANTHROPIC_BODIES, BEHAVIOURS, STATUSES, WIRES, Server
from tests.vendors import Answering

START = """
import asyncio, os, sys
from concurrent.futures import ThreadPoolExecutor
from rubric.models.retry import attempt
from rubric.values.requests import Reply
from rubric.models.litellm import LiteLLMModel
from tests.sendables import anthropic_ask, openai_ask
from tests.servers import Endpoint

async def at_once(_):
    pass

def run(root, make=openai_ask, **judge):
    ask = make(Endpoint(root, ()), **{"timeout": 30, **judge})
    return asyncio.run(attempt(LiteLLMModel(), ask, sleep=at_once))
"""


def in_child(script: str, *arguments: str) -> tuple[int, str, str]:
    """Run *script* in a new interpreter; return its exit code, and what it printed on stdout and on stderr."""
    command = [sys.executable, "-W", QUIET, "-c", START + script, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT, env=environ_of_litellm()
    )
    return done.returncode, done.stdout, done.stderr


def in_fork(forks: Forks, script: str, *arguments: str) -> tuple[int, str, str]:
    """Run *script* where LiteLLM is there already, whose import takes seconds; return as `in_child` does."""
    ended = forks.run(START + script, *arguments)
    return ended.status, ended.stdout, ended.stderr


SILENT = """
for make, root, seconds in zip(sys.argv[1::3], sys.argv[2::3], sys.argv[3::3], strict=True):
    run(root, globals()[make], retries=0, timeout=float(seconds))
"""


def test_nothing_is_printed(server: Server, importing: Forks) -> None:
    """All that can go wrong with a call of either dialect, in one process, prints nothing on stdout and on stderr."""
    calls = [("openai_ask", name) for name in BEHAVIOURS]
    calls += [("anthropic_ask", name) for name in [*STATUSES, *ANTHROPIC_BODIES, *WIRES]]
    seconds = {"hang": "0.2", "trickle": "0.2"}
    arguments = [text for make, name in calls for text in (make, server.at(name).root, seconds.get(name, "30"))]
    assert in_fork(importing, SILENT, *arguments) == (0, "", "")


def test_a_first_call_that_times_out_prints_nothing(server: Server, importing: Forks) -> None:
    """Even a deadline that falls into the first call, while LiteLLM loads its parts, leaves no warning."""
    script = "assert run(sys.argv[1], timeout=0.001, retries=0).kind == 'timeout'"
    assert in_fork(importing, script, server.at("hang").root) == (0, "", "")


THREADS = """
def five(root):
    makes = [openai_ask, anthropic_ask, openai_ask, anthropic_ask, openai_ask]
    return [isinstance(run(root, make), Reply) for make in makes]

with ThreadPoolExecutor(8) as threads:
    assert all(all(replies) for replies in threads.map(five, sys.argv[1:] * 8))
"""


def test_eight_threads_with_five_loops_each(server: Server, importing: Forks) -> None:
    """Loops that come and go in eight threads at once all get their replies, in silence."""
    endpoint = server.at("ok")
    assert in_fork(importing, THREADS, endpoint.root) == (0, "", "")
    assert len(endpoint.requests) == 40


FORK = """
import warnings
warnings.simplefilter("ignore")
assert isinstance(run(sys.argv[1]), Reply)
child = os.fork()
reply = run(sys.argv[1])
if child:
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
assert isinstance(reply, Reply), reply
"""


def test_a_fork_in_the_midst(server: Server, importing: Forks) -> None:
    """After a fork both processes go on calling, in silence."""
    endpoint = server.at("ok")
    assert in_fork(importing, FORK, endpoint.root) == (0, "", "")
    assert len(endpoint.requests) == 3


FORK_AND_EXIT = """
from rubric import Judge, Rubric, grade

judge = Judge("openai/gpt-4o-mini", params={"api_base": sys.argv[1], "api_key": "sk-test"}, retries=0, timeout=10)

def score(_=None):
    return grade("Hello.", Rubric("letter").expects("greets"), judge).score

def forked(end):
    child = os.fork()
    if not child:
        sys.exit(end())
    assert os.waitpid(child, 0)[1] == 0

assert score() == 1
forked(lambda: 0)
assert score() == 1
forked(lambda: int(score() != 1))
assert score() == 1
import multiprocessing
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(score, range(4), 1) == [1] * 4
assert score() == 1
"""


def test_a_forked_child_ends_in_silence_and_leaves_the_parents_connections(server: Server, importing: Forks) -> None:
    """
    A child that ends as any program does prints nothing, and the parent goes on after it.

    After an idle child, one that grades, and a pool's workers, in one parent whose connections stay open throughout.
    """
    endpoint = server.at("ok")
    assert in_fork(importing, FORK_AND_EXIT, endpoint.openai) == (0, "", "")
    assert len(endpoint.requests) == 9  # one at the start, and of each kind of child: its own, and the parent's


def test_the_import_is_lazy() -> None:
    """The models come without LiteLLM; a call brings it."""
    assert in_child("assert 'litellm' not in sys.modules") == (0, "", "")


def test_what_the_user_has_registered_with_litellm_counts(server: Server, theirs: Forks) -> None:
    """A callback is called, and before the process ends; a price that LiteLLM's file does not have is charged."""
    script = """
import litellm
from litellm.integrations.custom_logger import CustomLogger
from rubric import Judge, grade

class Printer(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        print("logged")

litellm.callbacks = [Printer()]
prices = {"input_cost_per_token": 1.0, "output_cost_per_token": 2.0}
litellm.register_model({"openai/mine-7b": {**prices, "litellm_provider": "openai", "mode": "chat"}})
run(sys.argv[1])
judge = Judge("openai/mine-7b", params={"api_base": sys.argv[2], "api_key": "sk-t"})
usage = grade("Good morning!", "Is polite", judge).usage
assert usage.cost == usage.prompt_tokens + 2 * usage.completion_tokens, usage
"""
    endpoint = server.at("ok")
    assert in_fork(theirs, script, endpoint.root, endpoint.openai) == (0, "logged\nlogged\n", "")


THEIR_OWN = """
import litellm, sys
from rubric import Judge, grade
judge = Judge("openai/gpt-4o-mini", params={"api_base": sys.argv[1], "api_key": "sk-0123456789"}, retries=0, sealed=False)
assert grade("Good morning!", "Is polite", judge).passed
reply = litellm.completion("hosted_vllm/m", [{"role": "user", "content": "x" * 99}], api_base=sys.argv[2])
assert len(reply.choices[0].message.content) == 3_000_000
"""


def saying(text: str) -> Answering:
    """Return a server that gives everybody the same completion."""
    return Answering(lambda _: (200, {}, json.dumps(vendors.chat(text, "fine")).encode()))


def test_calls_of_the_users_own_to_litellm_go_as_they_always_did(theirs: Forks) -> None:
    """A redirect is followed and a long reply read, where the call is not ours."""
    with saying('{"reason": "It does.", "verdict": true}') as ours, saying("y" * 3_000_000) as there:
        moved = {"Location": f"{there.root}/v1/chat/completions"}
        with Answering(lambda _: (307, moved, b"")) as moving:
            status, _, stderr = in_fork(theirs, THEIR_OWN, f"{ours.root}/v1", f"{moving.root}/v1")
    assert status == 0, stderr
