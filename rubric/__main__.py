"""
The library at a terminal and in CI: the script `rubric`, and `python -m rubric`.

Each command is one call of the public API. Its exit code states the result:

    0   the candidate, or every case, passed; the files are valid
    1   one failed
    2   something could not be graded, or an input is wrong
"""

from __future__ import annotations

import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    # `python -m` puts the current folder first: a `yaml.py` there would run in place of the library. No script does so.
    sys.path.pop(0)

import gc
import io
import signal
import traceback

import click

from rubric.commands.output import Commands

_MODULES = {
    "files": "convert diff init schema validate",
    "grade": "grade plan",
    "grade_many": "grade-many merge",
    "quality": "align check explain lint probe",
    "trust": "agree compare estimate prefer thresholds",
    "view": "store view",
    **{name: name for name in ("generate", "label")},
}
COMMANDS = {command: module for module, commands in _MODULES.items() for command in commands.split()}
"""The module of each command in `rubric.commands`, imported when it is run or its help is shown."""


@click.group("rubric", cls=Commands, homes=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="rubric-grade")
def main() -> None:
    """
    Grade text against a rubric, with any LLM as the judge.

    Exit codes: 0 passed, 1 failed, 2 could not be graded or bad input.
    """


def run() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets its escape, and not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # A scheduler or a container that ends a run loses no more by it than Ctrl-C does.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        main()
    except Exception:  # noqa: BLE001 - an error of a plug-in or of ours; Python's own exit code says "failed"
        traceback.print_exc()
        sys.exit(2)
    finally:
        gc.freeze()  # else the interpreter looks through all that LiteLLM has loaded: seconds after Ctrl-C


if __name__ == "__main__":
    run()
