"""
Programs of files: processes of their own with a deadline, started only where the caller allows it.

A file is data that others wrote, so nothing here starts unless the call at hand is within `rubric.programs.allowing()`:
a run with `allow_scripts=True`, or such a load. A program gets a few variables of the environment and those that the
caller declares for the file, so no keys but these. It runs without a shell, in a process group that ends with it.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, cast

from attrs import field, frozen

from rubric import RubricError
from rubric.embed import clean, run, shorten
from rubric.values.requests import PROGRAMS

SECONDS = 60.0
"""The deadline of a program that makes a prompt, variables, tests or an output, where its file sets none."""

LARGEST = 16 << 20
"""Bytes that such a program may write."""

_MAX_STDERR = 1 << 14
"""Bytes that are kept."""

_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT", "PATHEXT")
"""The variables that any program sees: no keys, no home."""

_SECONDS_TO_END = 5.0

CURE = "allow_scripts=True runs it, in load_suite and in run (--allow-scripts)"


class ProgramError(RubricError):
    """A program did not run to its end, or may not be run; the message has no secrets in it."""


def is_allowed() -> bool:
    """True if programs may be started here."""
    return PROGRAMS.get() is not None


def check_allowed() -> None:
    """Refuse a program where none may be started."""
    if not is_allowed():
        raise ProgramError(f"it is a program of the file: {CURE}")


def program_error(message: str) -> ProgramError:
    """Return (not raise) the error, shortened and without secrets."""
    return ProgramError(shorten(clean(message), 400))


# -- a process ---------------------------------------------------------------------------------------------


async def run_program(
    command: Sequence[str],
    given: bytes = b"",
    *,
    folder: str | None = None,
    environ: Mapping[str, str] | None = None,
    seconds: float = SECONDS,
    most: int = LARGEST,
) -> bytes:
    """
    Return what *command* writes to standard output, after it was given *given* at standard input.

    It works in *folder*, sees *environ* beside the usual few variables, and may take *seconds* and write *most* bytes;
    `ProgramError` is raised if it may not or did not start, ran too long, wrote too much, or failed.
    """
    check_allowed()
    shown = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ} | dict(environ or {})
    try:
        _, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Process(most), *_resolve_python(command), cwd=folder, env=shown, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise program_error(f"could not be started: {error}") from None
    try:
        async with asyncio.timeout(seconds):
            process.write(given)
            await process.over.wait()
        await process.drain()
    except TimeoutError:
        raise program_error(f"did not end within {seconds:g} seconds, and was stopped") from None
    finally:
        await process.end()
    if len(process.stdout) > most:
        raise program_error(f"wrote more than {most >> 10} KiB, and was stopped")
    if code := process.code:
        stderr = process.stderr.decode(errors="replace")
        ended = f"ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        raise program_error(f"{ended}{': ' if stderr.strip() else ''}{stderr}")
    return bytes(process.stdout)


def _resolve_python(command: Sequence[str]) -> list[str]:
    """Return *command*; a `python` that is not on the path is the one that runs here."""
    program, *arguments = command
    if program in ("python", "python3") and shutil.which(program) is None:
        program = sys.executable
    return [program, *arguments]


class _Process(asyncio.SubprocessProtocol):
    """The process of a script and its pipes; `over` is set when it has ended or written too much."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.over = asyncio.Event()
        self._open = {1, 2}
        self._killed = False
        self._all_read = asyncio.Event()
        self._closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._stdin = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept, most = (self.stdout, self._most + 1) if fd == 1 else (self.stderr, _MAX_STDERR)
        kept += data[: most - len(kept)]
        if len(self.stdout) > self._most:
            self.over.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - a pipe may break
        self._open.discard(fd)
        if not self._open:
            self._all_read.set()

    def process_exited(self) -> None:
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._closed.set()

    @property
    def code(self) -> int:
        """The exit code; a negative one is the signal that ended the process."""
        code = self._transport.get_returncode()
        return -signal.SIGKILL if code is None else code

    def write(self, given: bytes) -> None:
        """Write *given* to standard input and close it. A script need not read."""
        self._stdin.write(given)
        self._stdin.write_eof()

    async def drain(self) -> None:
        """Read the rest of the pipes, without the processes that the script has left running."""
        self._kill_group()
        await _briefly(self._all_read)

    async def end(self) -> None:
        """End the script and all that it has started, and close the pipes."""
        self._kill_group()
        if self._stdin.get_write_buffer_size():  # else closing waits for a reader, and there may be none any more
            self._stdin.abort()
        self._transport.close()
        await _briefly(self._closed)

    def _kill_group(self) -> None:
        # A grandchild keeps the pipes open and would outlive the run, so the whole group goes, also after a good end.
        # Only once: when the group is empty, its number may belong to another one.
        if hasattr(os, "killpg") and not self._killed:
            self._killed = True
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)


async def _briefly(event: asyncio.Event) -> None:
    """Wait a few seconds for *event*: a grandchild that has left the group may hold the pipes open for ever."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_SECONDS_TO_END):
            await event.wait()


# -- a function of a Python file -----------------------------------------------------------------------------

_ANSI = re.compile(r"\x1b(?:[@-Z\\-_]|\[[0-?]*[ -/]*[@-~])")


@cache  # read for the first program, not by all who import this
def _worker() -> str:
    return files("rubric.programs").joinpath("python_worker.txt").read_text("utf-8")


@frozen
class PythonFunction:
    """
    A *function* (or `Class.method`) in a Python *file*, called in a process of its own that works in *folder*.

    It sees *environ* besides the usual few variables, and is stopped after *timeout* seconds.
    """

    file: str
    function: str
    folder: str | None = None
    environ: Mapping[str, str] = field(factory=dict, repr=False, eq=False)
    timeout: float = SECONDS
    python: str = "python"

    def __str__(self) -> str:
        return f"{os.path.basename(self.file)}:{self.function}"  # noqa: PTH119 - of a text

    async def acall(self, *arguments: Any) -> Any:
        """
        Return what the function makes of *arguments*, which JSON can hold.

        Raises:
            ProgramError: It raised an error, or did not run to its end.
        """
        given = json.dumps({"file": self.file, "function": self.function, "arguments": arguments}, default=str)
        written = await run_program(
            (self.python, "-c", _worker()),
            given.encode("utf-8", "surrogatepass"),
            folder=self.folder,
            environ=self.environ,
            seconds=self.timeout,
        )
        try:
            said = json.loads(written)
        except (ValueError, RecursionError):  # it left by os._exit, or returned what nests without end
            raise ProgramError(f"{self} ended without a result") from None
        if "raised" in said:
            raise program_error(f"{self} raised {said['raised']}")
        return said["value"]

    def call(self, *arguments: Any) -> Any:
        """Return as `acall`; not to be called on the background loop."""
        check_allowed()  # before anything waits: where it is refused, it may be called anywhere
        return run(self.acall(*arguments))


@frozen
class Executable:
    """A command, called with further arguments; what it prints is the result. The fields are as above."""

    command: tuple[str, ...]
    folder: str | None = None
    environ: Mapping[str, str] = field(factory=dict, repr=False, eq=False)
    timeout: float = SECONDS

    def __str__(self) -> str:
        return shorten(" ".join(self.command), 80)

    async def acall(self, *arguments: Any) -> str:
        """
        Return what the command prints, called with *arguments*: texts as they are, all else as JSON.

        Raises:
            ProgramError: It failed, printed nothing, or did not run to its end.
        """
        texts = [one if isinstance(one, str) else json.dumps(one, default=str) for one in arguments]
        written = await run_program(
            (*self.command, *texts), folder=self.folder, environ=self.environ, seconds=self.timeout
        )
        said = _ANSI.sub("", written.decode(errors="replace")).strip()
        if not said:
            raise ProgramError(f"{self} printed nothing")
        return said

    def call(self, *arguments: Any) -> str:
        """Return as `acall`; not to be called on the background loop."""
        check_allowed()  # before anything waits: where it is refused, it may be called anywhere
        return run(self.acall(*arguments))
