"""What holds for all tests: no key in the environment, no network but this machine's own, and how Hypothesis looks."""

from __future__ import annotations

import gc
import os
import re
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.servers import Server

settings.register_profile(
    "ci",
    max_examples=200,
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

_SLOW = re.compile(
    r"^(?:from|import) (?:distributed|jedi|nbclient|socket|subprocess|sybil)\b"
    r"|^from rubric\.programs\.processes\b|^pytest\.importorskip\(\"quickjs\""  # JavaScript runs in a process too
    r"|^from (?:tests(?:\.| import )|\.)(?:batch_server|benchmarks|browsers|harnesses|mcp_server|proxies|servers|serving|storing|tool_server|trees|vendors)",
    re.MULTILINE,
)
"""What a module of tests imports that talks over sockets, starts processes or runs the documentation."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--quick`: unit and property tests alone."""
    parser.addoption("--quick", action="store_true", help="leave out modules with servers, processes and documentation")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the slow modules where `--quick` says so."""
    if not config.getoption("--quick") or not collection_path.name.startswith("test_"):
        return None
    return bool(_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None


def pytest_collection_finish() -> None:
    """Spare the garbage collector the modules and the collected tests: walking them took a sixth of the time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def stay_at_home(event: str, args: tuple[Any, ...]) -> None:
    """Refuse connections to other machines."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not ip_address(args[1][0]).is_loopback:
        msg = f"a test wanted to connect to {args[1]}"
        raise PermissionError(msg)


sys.addaudithook(stay_at_home)

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
