"""An agent with real MCP servers in subprocesses and a model that wants tools: what comes of it, and what stays."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rubric import Calls, Judge, Rubric, ask, grade
from rubric.errors import DefinitionError, ModelError
from rubric.internals import background_loop
from rubric.suites.cases import Case
from rubric.suites.runner import run_suite
from rubric.suites.suite import Suite
from rubric.suites.targets.agents import AgentTarget
from rubric.suites.targets.base import DeferError, Response
from rubric.suites.targets.mcp_servers import HTTPServer, StdioServer
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.runs import Message, ToolCall
from tests.places import ROOT
from tests.rows import each_row
from tests.tool_server import ToolServer, wants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.values.requests import Ask

MODEL = "openai/gpt-4o-mini"
CASE = Case("oslo", "Tells the weather", input="What is the weather in Oslo?", server="weather")
OSLO = wants("get_weather", city="Oslo")
SUNNY = "It is 21 degrees in Oslo."
CALLED = ToolCall("get_weather", arguments={"city": "Oslo"}, result=SUNNY)
WRONG: Any = {"A": 1}
SECRET = "correct-horse-battery"  # noqa: S105 - of nothing


def started(pid: Path | None = None, child: Path | None = None) -> StdioServer:
    """Return the weather server, to be started; it writes its process id to *pid*, and that of a process to *child*."""
    noted = (*(("--pid", str(pid)) if pid else ()), *(("--child", str(child)) if child else ()))
    return StdioServer(sys.executable, ("-m", "tests.mcp_server", "stdio", *noted), {"PYTHONPATH": str(ROOT)})


@contextmanager
def serving() -> Iterator[HTTPServer]:
    """Yield the weather server, reached by HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = (sys.executable, "-m", "tests.mcp_server", "http", "--port", str(port))
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(lambda: is_open(port))
            yield HTTPServer(f"http://127.0.0.1:{port}/mcp", {"Authorization": f"Bearer {SECRET}"})
        finally:
            process.kill()


def is_open(port: int) -> bool:
    """Say whether somebody listens on *port*."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_running(pid: Path) -> bool:
    """Say whether the process that wrote *pid* is there, if only as a zombie."""
    try:
        os.kill(int(pid.read_text()), 0)
    except ProcessLookupError:
        return False
    return True


def is_alive(pid: Path) -> bool:
    """True if the process in *pid* runs; an orphan may stay a zombie where nobody reaps it."""
    try:
        stat = Path("/proc", pid.read_text(encoding="utf-8"), "stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return not Path("/proc/self").exists() and is_running(pid)
    return stat.rpartition(")")[2].split()[0] != "Z"


def wait_for(holds: Any) -> None:
    """Wait until *holds* holds, for 30 seconds at most."""
    for _ in range(3000):
        if holds():
            return
        time.sleep(0.01)
    raise TimeoutError


@pytest.fixture(scope="module")
def weather() -> Iterator[HTTPServer]:
    """Yield a weather server that all tests of the module may share, since each run has its own session."""
    with serving() as server:
        yield server


def agent(model: ToolServer, *servers: StdioServer | HTTPServer, **settings: Any) -> AgentTarget:
    """Return an agent whose model is *model*; its first server is called weather."""
    return AgentTarget(MODEL, dict(zip(("weather", "second"), servers, strict=False)), params=model.params, **settings)


def run(*script: Any, server: StdioServer | HTTPServer, case: Case = CASE, **settings: Any) -> Response:
    """Return what an agent makes of *case* whose model follows *script*."""
    with ToolServer(*script) as model:
        return background_loop.run(agent(model, server, **settings).respond(case))


def failing(*script: Any, server: StdioServer | HTTPServer, **settings: Any) -> ModelError:
    """Return the error that such a run ends with."""
    with pytest.raises(ModelError) as caught:
        run(*script, server=server, **settings)
    return caught.value


def test_a_run_over_stdio_is_recorded_and_nothing_of_it_stays(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The reply, the calls with their results and the usage of all turns; no process, and not a word on our stderr."""
    pid = tmp_path / "pid"
    response = run(OSLO, SUNNY, server=started(pid))
    assert response.candidate == CASE.responding(SUNNY, tool_calls=[CALLED])
    assert (response.usage.calls, response.usage.prompt_tokens) == (2, 20)
    assert not is_running(pid)
    assert "hello" not in "".join(capfd.readouterr())


def test_a_started_server_sees_what_it_was_given_and_none_of_our_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the process is not handed on; when the model fails, the server is gone too."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    pid = tmp_path / "pid"
    with ToolServer(wants("environment"), 400) as model, pytest.raises(ModelError):
        background_loop.run(agent(model, started(pid)).respond(CASE))
    assert "PYTHONPATH" in model.told()[0].split()
    assert "OPENAI_API_KEY" not in model.told()[0]
    assert not is_running(pid)


def test_a_run_over_http_is_recorded_the_same(weather: HTTPServer) -> None:
    """The transport makes no difference to the candidate."""
    assert run(OSLO, SUNNY, server=weather).candidate == CASE.responding(SUNNY, tool_calls=[CALLED])


def test_a_recorded_run_is_graded_by_its_calls(weather: HTTPServer) -> None:
    """The documented tree asks whether the tool was called; so does a check, without a judge."""
    tree = (
        ask("Did the answer call the get_weather tool?")
        .yes(ask("Did it report a temperature?").yes(1.0).no(0.4))
        .no(0.0)
    )
    asked, silent = run(OSLO, SUNNY, server=weather).candidate, run("No idea.", server=weather).candidate
    judge = Judge(ScriptedModel(lambda one: 1.0 if "call get_weather" in one.messages[-1].text else 0.0))
    assert grade(asked, Rubric.deciding(tree), judge).score == 1
    assert grade(silent, Rubric.deciding(tree), judge).score == 0
    check = Rubric().checks(Calls("get_weather", arguments={"city": "Oslo"}))
    assert grade(asked, check, judge).passed
    assert not grade(silent, check, judge).passed


def section(asked: Ask, title: str) -> str:
    """Return what stands below *title* in the prompt of *asked*; empty if it does not occur."""
    prompt = "\n".join(message.text for message in asked.messages)
    found = re.search(rf"{title}[^\n]*\n(.*?)\n\n", prompt, re.DOTALL | re.IGNORECASE)
    return found[1] if found else ""


def test_the_model_is_offered_every_page_of_the_tools_under_names_that_vendors_take(weather: HTTPServer) -> None:
    """A dotted name is changed for the model, and recorded as the server has it."""
    with ToolServer(wants("look_up", word="rain"), "Done.") as model:
        response = background_loop.run(agent(model, weather).respond(CASE))
    offered = {tool["function"]["name"]: tool["function"] for tool in model.requests[0]["tools"]}
    assert [*offered] == ["get_weather", "look_up", "fail", "hang", "long", "picture", "die", "environment"]
    assert offered["get_weather"]["parameters"]["required"] == ["city"]
    assert offered["get_weather"]["description"] == "Tell the weather in a city."
    assert [call.name for call in response.candidate.tool_calls] == ["look.up"]


def test_a_case_that_names_no_server_gets_the_tools_of_all(weather: HTTPServer) -> None:
    """Tools of one name are told apart by their servers, for the model alone."""
    case = Case("both", "x", input="?")
    with ToolServer(wants(("second__get_weather", {"city": "Oslo"})), SUNNY) as model:
        response = background_loop.run(agent(model, weather, weather).respond(case))
    names = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert {"weather__get_weather", "second__get_weather"} < {*names}
    assert len(names) == len({*names}) == 16
    assert response.candidate.tool_calls == (CALLED,)


def test_an_agent_without_servers_is_a_chat() -> None:
    """No tools are offered, and none are needed."""
    with ToolServer("Hello.") as model:
        response = background_loop.run(agent(model).respond(Case("chat", "x", input="Hi.")))
    assert response.candidate.output == "Hello."
    assert "tools" not in model.requests[0]


def test_several_calls_of_one_turn_are_made_in_order_and_what_was_said_is_kept(weather: HTTPServer) -> None:
    """Each result goes back under its call's id; words between calls belong to the conversation."""
    both = wants(("get_weather", {"city": "Oslo"}), ("get_weather", {"city": "Bergen"}), text="Let me look.")
    with ToolServer(both, "Done.") as model:
        candidate = background_loop.run(agent(model, weather, system="Be brief.").respond(CASE)).candidate
    results = [(m["tool_call_id"], m["content"]) for m in model.requests[1]["messages"] if m["role"] == "tool"]
    assert results == [("call_1", SUNNY), ("call_2", "It is 21 degrees in Bergen.")]
    assert [call.arguments["city"] for call in candidate.tool_calls] == ["Oslo", "Bergen"]
    assert candidate.messages == (Message("user", CASE.input), Message("assistant", "Let me look."))
    assert model.requests[1]["messages"][0] == {"role": "system", "content": "Be brief."}


@pytest.mark.parametrize(
    ("wanted", "result"),
    [
        (wants("fail"), "Error executing tool fail: the sensor is broken"),
        (wants("hang"), "error: the tool gave no answer within 0.5 seconds"),
        (wants("get_wether", city="Oslo"), "error: there is no tool 'get_wether'; did you mean 'get_weather'?"),
        (wants(("get_weather", '{"city": ')), "error: the arguments are not a JSON object (Expecting value"),
        (
            wants(("get_weather", "[1]")),
            "error: the arguments are not a JSON object (expected a JSON object, got list)",
        ),
        (wants("get_weather", town="Oslo"), "Error executing tool get_weather: 1 validation error"),
    ],
)
def test_what_goes_wrong_with_a_call_is_its_result_and_the_run_goes_on(
    weather: HTTPServer, wanted: Any, result: str
) -> None:
    """The model is told, and may still come to a reply; the judge sees the same."""
    with ToolServer(wanted, "I could not find out.") as model:
        candidate = background_loop.run(agent(model, weather, tool_timeout=0.5).respond(CASE)).candidate
    assert model.told()[0].startswith(result)
    assert [call.result for call in candidate.tool_calls] == model.told()
    assert candidate.output == "I could not find out."


def test_a_long_result_is_cut_with_a_mark(weather: HTTPServer) -> None:
    """One tool cannot fill the model's context, or the judge's."""
    response = run(wants("long", characters=1000), "Done.", server=weather, longest_result=10)
    assert response.candidate.tool_calls[0].result == "xxxxxxxxxx [cut: 990 more characters]"
    assert response.warnings == ("a result of 'long' was cut to 10 characters",)


def test_what_is_no_text_is_named(weather: HTTPServer) -> None:
    """A picture goes to nobody, but nobody thinks that there was none."""
    assert run(wants("picture"), "Done.", server=weather).candidate.tool_calls[0].result == "[image, image/png]"


def test_an_endless_loop_of_calls_stops_and_is_no_candidate(weather: HTTPServer) -> None:
    """The last turn's calls are not made: nobody would read their results."""
    with ToolServer(OSLO) as model, pytest.raises(ModelError, match="did not end within 3 turns") as caught:
        background_loop.run(agent(model, weather, max_steps=3).respond(CASE))
    failure = caught.value.failure
    assert (failure.kind, failure.usage.calls, len(model.requests)) == ("truncated", 3, 3)


def test_a_run_that_takes_too_long_is_ended(weather: HTTPServer) -> None:
    """The deadline is the run's, however patient its parts are; what had left counts as used."""
    failure = failing(wants("hang"), server=weather, timeout=4).failure
    assert (failure.kind, failure.usage.calls) == ("timeout", 1)
    assert "did not end within 4 seconds" in failure.message


def test_a_server_that_dies_in_the_middle_fails_the_run(tmp_path: Path) -> None:
    """What the model would make of it is not what the case asks about; what was used is kept."""
    pid = tmp_path / "pid"
    failure = failing(OSLO, wants("die"), "Never mind.", server=started(pid)).failure
    assert (failure.kind, failure.usage.calls) == ("transport", 2)
    assert "the MCP server 'weather' went away" in failure.message
    assert not is_running(pid)


def test_a_server_that_dies_over_http_fails_the_run_alike() -> None:
    """A session whose transport breaks down is not mistaken for a cancellation."""
    with serving() as server:
        failure = failing(OSLO, wants("die"), "Never mind.", server=server).failure
    assert (failure.kind, failure.usage.calls) == ("transport", 2)
    assert "the MCP server 'weather' went away" in failure.message
    assert SECRET not in failure.message


def test_a_model_that_fails_in_the_middle_fails_the_run(weather: HTTPServer) -> None:
    """The usage of the turns before it is part of the failure."""
    failure = failing(OSLO, 400, server=weather).failure
    assert (failure.kind, failure.usage.calls, failure.usage.prompt_tokens) == ("bad_request", 2, 10)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (StdioServer(sys.executable, ("-c", "raise SystemExit('no licence')")), "last words on stderr: no licence"),
        (StdioServer(sys.executable, ("-c", "print('hello')")), "is not there: Connection closed"),
        (StdioServer("no-such-program-anywhere"), "FileNotFoundError"),
        (StdioServer(sys.executable, cwd="no-such-folder"), "FileNotFoundError"),
        (HTTPServer("http://127.0.0.1:9/mcp"), "ConnectError"),
    ],
)
def test_a_server_that_cannot_be_started_or_reached_defers(server: StdioServer | HTTPServer, said: str) -> None:
    """Nobody has tried, so there is nothing to grade; the message says what the server said last."""
    with ToolServer("x") as model, pytest.raises(DeferError, match=said):
        background_loop.run(agent(model, server).respond(CASE))
    assert not model.requests


def test_a_server_that_says_nothing_defers_in_time() -> None:
    """Neither a process nor an address that only listens holds up the suite."""
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        server = HTTPServer(f"http://127.0.0.1:{mute.getsockname()[1]}/mcp")
        with pytest.raises(DeferError, match=r"no answer within 0\.3 seconds"):
            run("x", server=server, start_timeout=0.3)


def test_an_address_that_is_no_mcp_server_defers() -> None:
    """Another service answers there, or an error page."""
    with ToolServer("x") as other, pytest.raises(DeferError, match="'weather' is not there"):
        run("x", server=HTTPServer(other.address))


def test_an_unknown_server_defers() -> None:
    """The message names those that are known, and the option that gives it."""
    cure = "names the MCP server 'weather'; known: none; give it with --server weather=COMMAND"
    with ToolServer("x") as model, pytest.raises(DeferError, match=cure):
        background_loop.run(agent(model).respond(CASE))


def test_a_missing_key_defers_before_a_server_is_started(tmp_path: Path) -> None:
    """As for a model without tools."""
    pid = tmp_path / "pid"
    with pytest.raises(DeferError, match="set OPENAI_API_KEY"):
        background_loop.run(AgentTarget(MODEL, {"weather": started(pid)}).respond(CASE))
    assert not pid.exists()


@pytest.mark.parametrize(("script", "times"), [((wants("hang"),), 1), ((OSLO, wants("hang")), 2)])
def test_a_cancelled_run_leaves_no_process(tmp_path: Path, script: tuple[Any, ...], times: int) -> None:
    """Who cancels gets control back when the server has ended, and a second cancellation does not save it."""
    pid, asked = tmp_path / "pid", threading.Event()

    async def cancelled(model: ToolServer) -> None:
        task = asyncio.create_task(agent(model, started(pid)).respond(CASE))
        await asyncio.to_thread(asked.wait, 30)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        await asyncio.wait([task])
        assert task.cancelled()
        assert times > 1 or not is_running(pid)

    with ToolServer(*script, before=lambda number: asked.set() if number == times else None) as model:
        asyncio.run(cancelled(model))
    wait_for(lambda: not is_running(pid))


@pytest.mark.parametrize("after", [SUNNY, wants("die"), wants("hang"), 400], ids=["done", "dead", "late", "failed"])
def test_what_a_server_has_started_ends_with_the_case(tmp_path: Path, after: Any) -> None:
    """Whether the case ends well, its server dies first, a tool takes too long, or the model fails."""
    child = tmp_path / "child"
    with suppress(ModelError):
        run(OSLO, after, SUNNY, server=started(child=child), tool_timeout=1.0)
    wait_for(lambda: not is_alive(child))


def test_what_a_server_has_started_ends_with_a_cancelled_case(tmp_path: Path) -> None:
    """At the latest a moment after the caller has control back."""
    child, asked = tmp_path / "child", threading.Event()

    async def cancelled(model: ToolServer) -> None:
        task = asyncio.create_task(agent(model, started(child=child)).respond(CASE))
        await asyncio.to_thread(asked.wait, 30)
        task.cancel()
        await asyncio.wait([task])

    script = (OSLO, wants("hang"))
    with ToolServer(*script, before=lambda number: asked.set() if number == len(script) else None) as model:
        asyncio.run(cancelled(model))
    wait_for(lambda: not is_alive(child))


def test_runs_side_by_side_leave_no_connection_and_no_task(weather: HTTPServer) -> None:
    """After another round no more files and tasks are open than before it."""

    async def several(target: AgentTarget) -> list[Response]:
        return await asyncio.gather(*(target.respond(CASE) for _ in range(4)))

    with ToolServer(OSLO, OSLO, OSLO, OSLO, SUNNY) as model:
        background_loop.run(several(agent(model, weather)))
        before = still_open()
        model.requests.clear()
        responses = background_loop.run(several(agent(model, weather)))
        assert {response.candidate.output for response in responses} == {SUNNY}
        wait_for(lambda: all(now <= then for now, then in zip(still_open(), before, strict=True)))


def still_open() -> tuple[int, int]:
    """Return how many files this process has open, where that can be told, and how many tasks wait on the loop."""

    async def tasks() -> int:
        return len(asyncio.all_tasks())

    files = Path("/proc/self/fd")
    return len([*files.iterdir()]) if files.exists() else 0, background_loop.run(tasks())


def test_a_suite_tells_graded_runs_from_unfinished_and_impossible_ones(weather: HTTPServer) -> None:
    """A run that was stopped is ungraded, one that could not start is deferred; neither has a score."""
    suite = Suite("weather", [CASE, Case("elsewhere", "x", input="?", server="docs")])
    judge = Judge(ScriptedModel(lambda _: {"reason": "it does", "score": 1.0, "pass": True}))
    with ToolServer(OSLO, SUNNY, OSLO) as model:
        target = agent(model, weather, max_steps=2)
        done, stopped = (background_loop.run(run_suite(suite, judge, target=target)) for _ in range(2))
    assert [row.status for row in done] == ["passed", "deferred"]
    assert [row.status for row in stopped] == ["ungraded", "deferred"]
    assert "did not end within 2 turns" in stopped["oslo"].reason
    assert (done["oslo"].usage.calls, stopped["oslo"].usage.calls) == (3, 2)


def test_servers_show_themselves_without_secrets() -> None:
    """Values of variables and headers, and passwords in addresses and arguments, stay out of reprs."""
    stdio = StdioServer("serve", ["--token", SECRET], {"TOKEN": SECRET})
    http = HTTPServer(f"http://me:{SECRET}@127.0.0.1/mcp?k=short", {"Authorization": SECRET})
    target = AgentTarget(MODEL, {"a": stdio, "b": http}, params={"api_key": SECRET})
    assert SECRET not in repr(target)
    assert repr(http) == "HTTPServer('http://[secret]@127.0.0.1/mcp?***', headers={'Authorization': '***'})"
    assert repr(stdio) == "StdioServer('serve', ('--token', '[secret]'), env={'TOKEN': '***'})"


@each_row(
    ("make", "message"),
    [
        (lambda: StdioServer(" "), "command: expected text"),
        (lambda: StdioServer("x", "y"), "args: expected a list of texts"),
        (lambda: StdioServer("x", env=WRONG), "env.A: expected text, got int"),
        (lambda: HTTPServer("file:///etc/passwd"), "url: expected an address"),
        (lambda: HTTPServer("http://a", WRONG), "headers.A: expected text"),
        (lambda: HTTPServer("http://[a"), "expected an address such as"),
        (lambda: AgentTarget(MODEL, WRONG), "servers.A: expected a StdioServer or an HTTPServer"),
        (lambda: AgentTarget(MODEL, max_steps=0), "max_steps: expected a whole number of at least 1"),
        (lambda: AgentTarget(MODEL, timeout=0), "timeout: expected a finite number above 0"),
        (lambda: AgentTarget("offline"), "model: expected a LiteLLM model name"),
    ],
)
def test_what_no_agent_can_have_is_refused(make: Any, message: str) -> None:
    """With the field, what was found and what is allowed."""
    with pytest.raises(DefinitionError, match=message):
        make()


def test_without_the_sdk_the_cure_is_named() -> None:
    """The module can be imported, an agent with servers cannot be made."""
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from rubric.suites.targets.agents import AgentTarget\n"
        "from rubric.suites.targets.mcp_servers import StdioServer\n"
        "AgentTarget('openai/x')\n"
        "AgentTarget('openai/x', {'a': StdioServer('a')})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("ImportError: an agent with MCP servers needs the MCP SDK")
    assert "pip install 'rubric-grade[mcp]'" in done.stderr
