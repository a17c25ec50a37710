"""From text to a document: YAML 1.2 or JSON, by what the text is."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Literal

from rubric.errors import DefinitionError, LoadError
from rubric.formats.documents import Document, Node
from rubric.formats.growing import FOR_RUBRICS, Limits, refused
from rubric.formats.json_parsing import parse_json
from rubric.formats.yaml_parsing import parse_yaml
from rubric.showing import shorten
from rubric.validating import refuse_path

__all__ = ["Language", "given_text", "parse"]

Language = Literal["yaml", "json"]


def parse(text: str, source: str, language: Language = "yaml", limits: Limits = FOR_RUBRICS) -> Document:
    """
    Return *text* as a document.

    JSON within YAML is read as JSON, since the two part where a text is a pair of escaped surrogates.

    Raises:
        LoadError: It is no YAML (or JSON), it holds nothing, or it is beyond the limits.
    """
    if _size(text, limits.largest) > limits.largest:
        raise too_large(source, limits)
    text = text.removeprefix("\ufeff")
    parser = parse_json if language == "json" or _is_json(text) else parse_yaml
    return Document(source, _filled(parser(text, source, limits), source), _schema(text))


_SCHEMA = re.compile(r"^#\s*yaml-language-server:\s*\$schema=(\S+)", re.MULTILINE)
_HEAD = 2_000
"""Characters in which editors look for the schema of a file."""


def _schema(text: str) -> str:
    found = _SCHEMA.search(text[:_HEAD])
    return found[1] if found else ""


def given_text(text: object, load: str) -> str:
    """
    Return *text*, given as the text of a document; *load* names the function that takes a path.

    Raises:
        DefinitionError: It is no text, or the path of a file.
    """
    if isinstance(text, str):
        refuse_path("text", text, f"give {load}({text!r}) to have the file read")
        return text
    match text:
        case bytes() | bytearray():
            cure = "; decode it: data.decode()"
        case PurePath():
            cure = f"; give {load}({str(text)!r})"
        case Mapping() | list():
            cure = "; give json.dumps(data), which is read as well"
        case _:
            cure = ""
    raise DefinitionError("text", f"expected the text of a document, got {shorten(repr(text))}{cure}")


def too_large(source: str, limits: Limits) -> LoadError:
    """Return the error for a file beyond the limit."""
    return refused(source, (1, 1), f"a file has at most {limits.largest // 1024} KiB; split it")


def _size(text: str, largest: int) -> int:
    return len(text) if len(text) > largest else len(text.encode("utf-8", "surrogatepass"))


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
    except RecursionError:
        return True  # whatever it is, JSON is quicker in refusing it
    except ValueError:
        return False
    return True


def _filled(root: Node | None, source: str) -> Node:
    if root is None:
        raise refused(source, (1, 1), "there is nothing in it; a rubric has `criteria`, `text` or `tree`")
    return root
