"""
The process in which JavaScript runs: it reads a line of JSON for each program, and writes a line with its result.

It is started as a script, without the library, the environment and the packages of the process that starts it: see
`rubric.programs.javascript`. The engine has no files, no network and no modules; this process has no variables with
keys in it, may write to no file, and is killed where the engine cannot be interrupted (`Array.prototype.join` of a list
of two thousand million holes, for example).
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

_PRELUDE = Path(__file__).with_suffix(".js").read_text("utf-8")

_MOST_JOBS = 100_000
_LONGEST_RESULT = 1_000_000
_STACK = 24 << 20
"""Bytes of the stack, for about as many calls within calls as Node allows: 10,000 of a small function."""


def _run(engine: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the result of *request*: its value, its error, what it lacks, or the limit that it met."""
    context = engine.Context()
    context.set_memory_limit(request["memory"])
    context.set_max_stack_size(_STACK)
    context.set_time_limit(request["seconds"])
    try:
        context.set("$input", json.dumps(request["input"]))
        context.eval(_PRELUDE)
        for _ in range(_MOST_JOBS):
            if not context.execute_pending_job():
                break
        else:
            return {"limit": "time"}
        # A value of the engine is never asked for its JSON: that would run code of the program without a limit.
        found, limit = context.get("$result"), context.get("$limit")
    except Exception as error:  # noqa: BLE001 - the engine raises one kind for everything
        text = str(error)
        return {"limit": "time" if "interrupted" in text else "memory"}
    if isinstance(limit, str):
        return {"limit": limit}
    if not isinstance(found, str):
        return {"limit": "time"}  # a promise that nothing fulfils
    return {"said": found} if len(found) <= _LONGEST_RESULT else {"limit": "memory"}


def main() -> None:
    """Serve programs until the standard input ends, in a thread: only that can be given a larger stack."""
    threading.stack_size(_STACK + (8 << 20))
    serving = threading.Thread(target=_serve)
    serving.start()
    serving.join()


def _serve() -> None:
    sys.path.append(sys.argv[1])
    import quickjs  # noqa: PLC0415 - from the folder that the process was told of

    resource = _limit_process()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if resource is not None:
            # Where the engine cannot be interrupted, the system ends the process a second or two later.
            spent = int(time.process_time())
            _limit(resource, "RLIMIT_CPU", spent + int(request["seconds"]) + 2)
        sys.stdout.write(json.dumps(_run(quickjs, request)) + "\n")
        sys.stdout.flush()


def _limit_process() -> Any:
    """Take from this process what no program needs; return the module that did, None on Windows."""
    try:
        import resource  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return None
    for name, most in (("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", 0), ("RLIMIT_NPROC", 0), ("RLIMIT_AS", 1 << 30)):
        _limit(resource, name, most)
    return resource


def _limit(resource: Any, name: str, most: int) -> None:
    """Set a limit that the system has and allows; where it does not, the time that the other process waits is one."""
    if hasattr(resource, name):
        kind = getattr(resource, name)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
