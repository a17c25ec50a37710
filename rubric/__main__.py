"""`python -m rubric`."""

from __future__ import annotations

import io
import sys

from rubric.commands import main

for stream in (sys.stdout, sys.stderr):
    # A terminal that cannot show a character gets its escape, and not a traceback.
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")

main(prog_name="python -m rubric")
