"""Refuse a log that is given as a text, which would be graded as the answer, with the lines that read it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from rubric.errors import DefinitionError
from rubric.internals.guided import guided
from rubric.internals.row_files import read_json
from rubric.internals.text import counted, shorten
from rubric.runs.formats import FORMATS, chats_in, format_of
from rubric.values.candidates import is_log
from rubric.values.chats import is_chat


@guided
def refuse_log(field: str, text: str, file: str = "") -> None:
    """
    Refuse *text*, which is to be graded as an answer, if it is the log of a run or a chat.

    Such a text begins as JSON does, and has messages by their roles. A mere text in JSON passes.

    Args:
        field: What it was given as, for the error.
        text: Of a candidate.
        file: The path that it was read from, for the lines of the error; `-` for standard input.

    Raises:
        DefinitionError: It is a log; the message has the line, or the call, that makes it a candidate.
    """
    if not is_log(text):
        return
    named = file if file not in ("", "-") else "it"
    said = f"{named} has messages by their roles, as the log of a run, and is no answer"
    as_text = f"as a text, {_line('-Rs', '{output: .}', file, 'rows.jsonl')}" if file else "as a text, Candidate(text)"
    data, option = None, ""
    try:
        data = read_json(text)
    except (ValueError, RecursionError) as problem:
        with suppress(ValueError, RecursionError):
            data, option = [read_json(line) for line in text.splitlines() if line.strip()], "-s"
        if data is None:
            message = f"{said}; it is no JSON, or cut off: {shorten(str(problem), 80)}; {as_text}"
            raise DefinitionError(field, message) from None
    cure = _known(data, file) if format_of(data) and not option else _chosen([*chats_in(data)], option, file)
    raise DefinitionError(field, f"{said}; {cure}; {as_text}")


def _known(data: Any, file: str) -> str:
    """Return how *data*, a run in a known format, is graded."""
    if not file and is_chat(data):
        return "write grade({'messages': json.loads(text)}, rubric, judge)"
    if not file:
        read = "json.loads(text)" if isinstance(data, Mapping) else "Candidate(run=rubric.runs.read(json.loads(text)))"
        return f"write grade({read}, rubric, judge)"
    path = Path("run.json" if file == "-" else file)
    return f"a log is a file whose name ends in .json, such as {path.with_suffix('.json').name}"


def _chosen(found: list[list[str | int]], option: str, file: str) -> str:
    """Return how the chat at the one path that was *found* is made a candidate."""
    if len(found) != 1 or any(isinstance(step, int) for step in found[0]):
        held = f"it holds {counted(len(found), 'chat')}, and " if found else "it "
        return f"{held}is in none of the formats {', '.join(FORMATS)}; give each as a row such as {{'messages': [...]}}"
    (steps,) = found
    if not file:
        data = "[json.loads(line) for line in text.splitlines()]" if option else "json.loads(text)"
        return f"write grade({{'messages': {data}{''.join(f'[{step!r}]' for step in steps)}}}, rubric, judge)"
    names = [str(step) for step in steps]
    path = "".join(f".{n}" if re.fullmatch(r"(?a)[a-zA-Z]\w*", n) else f".[{json.dumps(n)}]" for n in names) or "."
    return f"its messages become a run by {_line(option, f'{{messages: {path}}}', file, 'run.json')}"


def _line(option: str, program: str, file: str, made: str) -> str:
    read = shlex.quote(file) if file != "-" else "log.json"
    return f"jq {option}{' ' * bool(option)}{shlex.quote(program)} {read} > {made}"
