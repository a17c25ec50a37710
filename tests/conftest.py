"""What holds for all tests: no key in the environment, no network but this machine's own, and how Hypothesis looks."""

from __future__ import annotations

import os
import sys
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

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
settings.load_profile("ci")


def stay_at_home(event: str, args: tuple[Any, ...]) -> None:
    """Refuse connections to other machines."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not ip_address(args[1][0]).is_loopback:
        msg = f"a test wanted to connect to {args[1]}"
        raise PermissionError(msg)


sys.addaudithook(stay_at_home)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.endswith(("_API_KEY", "_TOKEN", "_CREDENTIALS")):
            monkeypatch.delenv(name)
