"""
Scripts that need a process of their own, each in a fork of one process that has imported what they use.

To start an interpreter and to import the library takes longer than most of these scripts; a fork takes milliseconds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from attrs import frozen

from tests.places import ROOT

_PARENT = """
import sys

def _wait_for_script():
    import json, os, signal, tempfile

    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            if not (child := os.fork()):
                signal.alarm(60)
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(out.fileno(), 1)
                os.dup2(err.fileno(), 2)
                return json.loads(line)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said = [(file.seek(0), file.read().decode(errors="replace"))[1] for file in (out, err)]
        print(json.dumps([status, *said]), flush=True)
    sys.exit()

exec(sys.argv[1])
__import__("gc").freeze()  # a collection in a fork, as at its end, would copy all that was imported
sys.argv[1:], _script = _wait_for_script()  # it has names of its own: a script sees those of the setup alone
exec(_script)  # what it raises ends the process as any other, and so does its end
"""


@frozen
class Ended:
    """How a script ended: a status below 0 is the signal that killed it, which after a minute is an alarm."""

    status: int
    stdout: str
    stderr: str


class Forks:
    """A process that has run *setup*, with *warnings* as `-W` has them, and forks for each script that `run` is given."""

    def __init__(self, setup: str, *, warnings: str = "error", environ: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-W", warnings, "-c", _PARENT, setup]
        pipe = subprocess.PIPE
        self._parent = subprocess.Popen(command, cwd=ROOT, env=environ, stdin=pipe, stdout=pipe, text=True)

    def run(self, script: str, *arguments: str) -> Ended:
        """Run *script*, which sees the names of the setup, for a minute at most, with *arguments* in `sys.argv`."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        print(json.dumps([arguments, script]), file=self._parent.stdin, flush=True)
        return Ended(*json.loads(self._parent.stdout.readline()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._parent.communicate()


QUIET = "ignore::DeprecationWarning"
"""The warnings of LiteLLM's own that are none of ours."""


def environ_of_litellm() -> dict[str, str]:
    """Return the environment without what a test before this one may have left behind of LiteLLM's."""
    own = ("LITELLM_", "TIKTOKEN_", "EXPERIMENTAL_")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)} | {"PYTHONPATH": str(ROOT)}
