"""What holds for all tests: no key in the environment, no network but this machine's own, and how Hypothesis looks."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

from tests import rows
from tests.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from tests.browsers import Browser
    from tests.forks import Forks
    from tests.servers import Server

settings.register_profile(
    "ci",
    max_examples=80,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    max_examples=5_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=10)
settings.load_profile("ci")

_QUICK = {
    *("engine", "formats", "grading", "internals", "laws", "models", "prompts", "results", "runs", "scoring", "store"),
    *("suites", "values"),
}
"""The folders of `--quick`: the kernel, the formats and suites, which a change breaks most often, and the laws."""

_SLOW = re.compile(
    r"^(?:from|import) (?:distributed|jedi|nbclient|socket|subprocess|sybil)\b"
    r"|^from rubric\.programs\.processes\b|^pytest\.importorskip\(\"quickjs\""  # JavaScript runs in a process too
    r"|^from (?:tests(?:\.| import )|\.)(?:batch_server|benchmarks|browsers|forks|harnesses|mcp_server|program_forks|proxies|servers|serving|storing|tool_server|trees|vendors)",
    re.MULTILINE,
)
"""What a module of tests imports that talks over sockets, starts processes or runs the documentation."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`, the short tests of what a change breaks most often, and `--row`."""
    parser.addoption(
        "--quick",
        action="store_true",
        help="run the kernel's, the formats' and the laws' tests alone, without servers, processes and long tests",
    )
    parser.addoption("--row", default="", help="of tables of one test, run the rows alone whose name has this text")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the tables of one test which of their rows are wanted."""
    rows.only = config.getoption("--row")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the other folders and the slow modules where `--quick` says so."""
    if not config.getoption("--quick") or not collection_path.name.startswith("test_"):
        return None
    if collection_path.relative_to(ROOT / "tests").parts[0] not in _QUICK:
        return True
    return bool(_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the pages in a browser; leave out the tests of a second or more where `--quick` says so."""
    # The last tests of a run should be short, or one worker goes on alone; and a worker with all pages starts a
    # browser for each module once.
    items.sort(key=lambda item: "view" not in item.path.parts)
    if not config.getoption("--quick"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


_modules_spared = 0


def spare_the_collector() -> None:
    """Spare the garbage collector what is there: walking modules and collected tests took a sixth of the time."""
    global _modules_spared  # noqa: PLW0603
    _modules_spared = len(sys.modules)
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without collecting garbage: all of it stays, and a sixth of the time went to walking it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Let the garbage collector run seldom, and not over what all tests have in common."""
    spare_the_collector()
    gc.set_threshold(100_000, 50, 50)


def pytest_runtest_teardown() -> None:
    """Spare it LiteLLM and the like once a test has imported them: each `gc.collect()` took a third of a second."""
    if len(sys.modules) > _modules_spared + 300:
        spare_the_collector()


def stay_at_home(event: str, args: tuple[Any, ...]) -> None:
    """Refuse connections to other machines."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not ip_address(args[1][0]).is_loopback:
        msg = f"a test wanted to connect to {args[1]}"
        raise PermissionError(msg)


sys.addaudithook(stay_at_home)

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as a shell leaves it in what it runs in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests interrupt processes, which inherit it

os.environ["RUBRIC_RUNS"] = ""  # commands keep no runs in this folder; the tests of kept runs name their own

for name in [*os.environ]:  # once, as a fixture of each test takes seconds of them all
    if name.endswith(("_API_KEY", "_TOKEN", "_CREDENTIALS")):
        del os.environ[name]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a store may be made."""
    return tmp_path / "replies.db"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Serve endpoints of many behaviours."""
    from tests.servers import Server

    with Server() as running:
        yield running


@pytest.fixture(scope="session")
def importing() -> Iterator[Forks]:
    """Yield a process that has imported LiteLLM as a first call does, and has made no call; it forks for each script."""
    from tests.forks import QUIET, Forks, environ_of_litellm

    if sys.platform == "win32":
        pytest.skip("there is no fork")
    setup = "from rubric.models.litellm_library import library\nlibrary()"
    with Forks(setup, warnings=QUIET, environ=environ_of_litellm()) as forks:
        yield forks


@pytest.fixture(scope="session")
def theirs() -> Iterator[Forks]:
    """Yield a process in which the user has imported LiteLLM, before the library did."""
    from tests.forks import QUIET, Forks, environ_of_litellm

    if sys.platform == "win32":
        pytest.skip("there is no fork")
    switches = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}
    with Forks("import litellm", warnings=QUIET, environ=environ_of_litellm() | switches) as forks:
        yield forks


@pytest.fixture(scope="session")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    from tests.browsers import browsing

    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def browser(_browser: Browser) -> Iterator[Browser]:
    """Yield a browser with a profile for the module; skip its tests where there is none."""
    with _browser.apart() as found:
        yield found
