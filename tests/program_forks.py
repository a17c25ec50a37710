"""
Programs of the command line, each run of which is a fork of one process that has imported what they use.

To import LiteLLM takes seconds, a command takes one, and most of what an example at a terminal or a notebook costs is
that. A fork has its own arguments, folder, environment, standard streams, status, and end of the interpreter.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.places import ROOT

_PARENT = """
import gc, os, select, signal, socket, sys

def _next_run(listener):
    import json

    while True:
        ready, _, _ = select.select([listener, 0], [], [])
        if 0 in ready:  # the process of the tests is gone
            os._exit(0)
        client, _ = listener.accept()
        if os.fork():
            client.close()
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        _, streams, _, _ = socket.recv_fds(client, 1, 3)
        with client.makefile("rb") as said:
            arguments, folder, environ = json.load(said)
        if child := os.fork():
            for stream in streams:
                os.close(stream)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            client.sendall(str(status).encode())
            os._exit(0)
        client.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        # The old ones know whether they can seek, and whether they are a terminal.
        sys.stdin = sys.__stdin__ = open(0, closefd=False)
        sys.stdout = sys.__stdout__ = open(1, "w", closefd=False)
        sys.stderr = sys.__stderr__ = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environ)
        return arguments

exec(sys.argv[2])
with socket.socket(socket.AF_UNIX) as _listener:
    _listener.bind(sys.argv[1])
    _listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the client alone asks how a run ended
    print("ready", flush=True)
    gc.freeze()  # a collection in a fork would copy all that was imported
    _program = sys.argv[3]
    sys.argv = _next_run(_listener)
sys.path[0] = os.path.dirname(sys.argv[0])
exec(_program)
"""

_CLIENT = """
import json, os, socket, sys

with socket.socket(socket.AF_UNIX) as parent:
    parent.connect(sys.argv[1])
    socket.send_fds(parent, [b" "], [0, 1, 2])
    parent.sendall(json.dumps([sys.argv[2:], os.getcwd(), dict(os.environ)]).encode())
    parent.shutdown(socket.SHUT_WR)
    status = int(parent.recv(99))
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""


class ProgramForks:
    """
    A process that has run *setup*, and forks for each run of the script `path`, where *program* is then run.

    The script is called *name*, as the one beside the interpreter. Both codes are Python; a run ends after two minutes.
    """

    def __init__(self, name: str, *, setup: str, program: str) -> None:
        self._home = tempfile.TemporaryDirectory()
        client, socket, folder = (Path(self._home.name) / each for each in ("client.py", "socket", "bin"))
        client.write_text(_CLIENT, encoding="utf-8")
        words = [sys.executable, "-IS", str(client), str(socket), str(Path(sys.executable).parent / name)]
        folder.mkdir()
        self.path = folder / name
        self.path.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        self.path.chmod(0o755)
        command = [sys.executable, "-c", _PARENT, str(socket), setup, program]
        pipe = subprocess.PIPE
        self._parent = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        assert self._parent.stdout is not None
        assert self._parent.stdout.readline() == "ready\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        with self._parent:  # closes its standard input, at which it ends
            pass
        self._home.cleanup()
