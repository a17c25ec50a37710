"""
JavaScript from files: run in an embedded engine that has no files, no network and no modules, and within limits.

The engine is QuickJS (the extra `javascript`). It runs in a process of its own: some of its functions cannot be
interrupted, and nothing in a thread can be. The process knows no keys, and is started when the first program runs.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from rubric import RubricError

EXTRA = "pip install 'rubric-grade[javascript]'"

SECONDS = 1.0
"""Processor time of one program."""

MEMORY = 64 << 20
"""Bytes that one program may use."""

_PATIENCE = 30.0
"""Seconds until the process is killed, whatever it does: the machine may be busy, or have no limits of its own."""

# Names that Node 20 has, or that reach out, and the engine may lack: a program that asks for one cannot run as meant.
# `RegExp.$1` is a member of `RegExp`. A name that the engine has is left as it is.
_ABSENT = tuple(files("rubric.programs").joinpath("javascript_absent.txt").read_text("utf-8").split())


class JavaScriptError(RubricError):
    """A program could not be run to its end: it needs what the engine lacks, or more time or memory than allowed."""


class ThrownError(RubricError):
    """A program threw an error; the text is its message."""


@frozen
class Program:
    """
    A program in JavaScript: the *body* of a function of `output` and `context`, or the text of a *module*.

    Of a module, *name* is the exported function; empty for the module's own.
    """

    body: str
    module: bool = False
    name: str = ""

    def run(self, output: Any, context: Mapping[str, Any]) -> Any:
        """Return what the program makes of *output*; `UNDEFINED` for what has no JSON, such as a function."""
        return self.call(output, context)

    def call(self, *arguments: Any) -> Any:
        """Return as `run` what the function of a module makes of *arguments*."""
        return self._run(arguments=arguments)

    def call_or_ask(self, arguments: Sequence[Any], node: Mapping[str, Any], function: str | None) -> Any:
        """
        Return as `call` what the module makes of *arguments*; `Asked` where it must know more of files first.

        Args:
            arguments: Of its function.
            node: What the module is told of its surroundings, with the `answers` to what it asked before: pairs of a
                question, `"read /path"`, and its answer.
            function: The text that takes the place of each function in what it exports, which need not be a function
                then; None: it must be one.
        """
        return self._run(arguments=arguments, node=node, data=None if function is None else {"function": function})

    def _run(self, **given: Any) -> Any:
        if _STOPPED.get(self, 0) >= _MOST_STOPS:  # each further case would wait as long for nothing
            raise JavaScriptError(f"the JavaScript was stopped at its limits {_MOST_STOPS} times, and is not run again")
        given |= {"body": self.body, "module": self.module, "name": self.name}
        request = {"seconds": SECONDS, "memory": MEMORY, "input": {**given, "absent": _ABSENT}}
        reply = _worker().ask(json.dumps(request))
        if "limit" in reply:
            what = _LIMITS.get(reply["limit"], f"{MEMORY >> 20} MiB")
            if self in _STOPPED or len(_STOPPED) < _MOST_STOPPED:
                _STOPPED[self] = _STOPPED.get(self, 0) + 1
            raise JavaScriptError(f"the JavaScript needs more than {what}, and was stopped")
        said = _read(reply["said"])
        if "asks" in said and "node" in given:
            return Asked.of(said["asks"])
        if "lack" in said:
            limits = (
                "may only read files below the base" if "node" in given else "is run without files, network and modules"
            )
            raise JavaScriptError(f"the JavaScript needs {said['lack']}, and {limits}")
        if "thrown" in said:
            raise ThrownError(str(said["thrown"]))
        return said.get("value", UNDEFINED)


@frozen
class Asked:
    """What a program asks about files before it can go on: kinds of questions, each with a path."""

    questions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, asked: Any) -> Asked:
        """Return the questions in *asked*, which a program may have spoilt."""
        pairs = [pair for pair in asked if isinstance(pair, list)] if isinstance(asked, list) else []
        if not pairs or any(len(pair) != 2 or not all(isinstance(part, str) for part in pair) for pair in pairs):  # noqa: PLR2004 - a pair
            raise JavaScriptError("the JavaScript spoilt its own result; it must not change how JSON is written")
        return cls(tuple((kind, path) for kind, path in pairs))


_LIMITS = {"time": f"{SECONDS:g} seconds", "stack": "some ten thousand calls within calls"}

UNDEFINED: Any = object()
"""What a program returned that is not a value of JSON: nothing, a function, NaN."""

_STOPPED: dict[Program, int] = {}
_MOST_STOPS, _MOST_STOPPED = 3, 1_000


def is_installed() -> bool:
    """True if the engine is there."""
    return find_spec("quickjs") is not None


def _read(text: str) -> dict[str, Any]:
    # The program may have replaced what writes its result, and can so spoil it, but nothing else.
    with contextlib.suppress(ValueError, RecursionError):
        said = json.loads(text)
        if isinstance(said, dict):
            return said
    raise JavaScriptError("the JavaScript spoilt its own result; it must not change how JSON is written")


@define(eq=False)
class _Worker:
    """The process, and the lock of the program that runs in it."""

    pid: int = field(factory=os.getpid)
    process: subprocess.Popen[str] | None = None
    lock: threading.Lock = field(factory=threading.Lock)

    def ask(self, request: str) -> dict[str, Any]:
        """Return the reply to *request*; that of a process that was ended is that it met a limit."""
        with self.lock:
            if self.process is None or self.process.poll() is not None:
                self.process = _start()
            process = self.process
            assert process.stdin is not None  # noqa: S101 - they are pipes
            assert process.stdout is not None  # noqa: S101 - as above
            watch = threading.Timer(_PATIENCE, process.kill)
            watch.daemon = True
            watch.start()
            try:
                process.stdin.write(request + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = ""
            finally:
                watch.cancel()
            if not line:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(1)
                code = process.returncode
                self.end()
                if code is not None and code >= 0:  # no signal: it was not stopped, but never ran
                    why = f"the engine of JavaScript ended with the exit code {code}"
                    raise JavaScriptError(f"{why}; reinstall it: {EXTRA}")
                return {"limit": "time"}
            reply: dict[str, Any] = json.loads(line)
            return reply

    def end(self) -> None:
        """Kill the process, if there is one."""
        if self.process is not None:
            with contextlib.suppress(OSError), self.process:  # which closes its pipes, and waits
                self.process.kill()
            self.process = None


def _start() -> subprocess.Popen[str]:
    spec = find_spec("quickjs")
    if spec is None or spec.origin is None:
        raise JavaScriptError(f"JavaScript needs an engine; install it: {EXTRA}")
    script = Path(__file__).with_name("javascript_worker.py")
    kept = {name: os.environ[name] for name in ("SYSTEMROOT", "WINDIR") if name in os.environ}
    return subprocess.Popen(  # noqa: S603 - our own interpreter and our own file
        [sys.executable, "-I", "-S", str(script), str(Path(spec.origin).parents[1])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=kept,
        text=True,
        encoding="utf-8",
    )


_WORKER = _Worker()


def _worker() -> _Worker:
    """Return the worker of this process: a child has the pipes of its parent's, which are not for it to use."""
    global _WORKER  # noqa: PLW0603 - one a process
    if _WORKER.pid != os.getpid():
        _WORKER = _Worker()
    return _WORKER


@atexit.register
def _end() -> None:
    if _WORKER.pid == os.getpid():
        _WORKER.end()
