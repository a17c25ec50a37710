"""
Finds the YAML and JSON blocks of a documentation page, and gives them back what they lost: indentation and lines.

A grammar says which keys may stand in which mapping, and what each of them opens. A line goes to the innermost open
mapping that may have its key and has not got it yet; a dash goes to the innermost open list that may have such an item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from textwrap import dedent
from typing import Any

from attrs import define, field, frozen
from ruamel.yaml import YAML

__all__ = ["AGENTV_1", "AGENTV_2", "MCPTEST", "Block", "fenced", "lined", "loaded", "squeezed"]

Grammar = Mapping[str, Mapping[str, str]]
"""For each kind of mapping its keys (or a pattern) and what they open: `""` a value, `x` a mapping, `[x]` a list."""

_ANY = r"[\w-]+"
_NUMBER = r"\d+"

MCPTEST: Grammar = {
    "file": {"evals": "[eval]", "rubrics": "shared"},
    "shared": {_ANY: "rubric"},
    "eval": {
        "name": "", "server": "", "prompt": "", "response": "", "threshold": "",
        "rubric": "rubric", "judge": "judge", "matrix": "matrix",
    },
    "rubric": {
        "ref": "", "preset": "", "threshold": "", "strict": "", "aggregation": "", "require_evidence": "",
        "scale": "scale", "criteria": "[criterion]", "tree": "node",
    },
    "scale": {"likert": ""},
    "criterion": {
        "name": "", "description": "", "weight": "", "required": "", "guard": "", "threshold": "", "when": "",
        "examples": "[anchor]",
    },
    "anchor": {"response": "", "score": ""},
    "node": {"ask": "", "yes": "node", "no": "node", "score": "", "reason": ""},
    "judge": {"model": "", "jury": "jury", "panel": "", "aggregate": "", "tie_break": ""},
    "jury": {"size": "", "consensus": ""},
    "matrix": {"models": "[text]", "prompts": "[text]"},
}  # fmt: skip

AGENTV_2: Grammar = {
    "file": {
        "tests": "[test]", "assert": "[grader]", "default_test": "defaults", "options": "options", "refs": "refs",
    },
    "test": {"id": "", "criteria": "", "input": "", "assert": "[grader]"},
    "grader": {"name": "", "type": "", "command": "", "value": "[item]"},
    "item": {
        "id": "", "outcome": "", "operator": "", "weight": "", "required": "", "min_score": "",
        "score_ranges": "bands",
    },
    "bands": {_NUMBER: ""},
    "defaults": {"options": "options"},
    "options": {"rubric_prompt": ""},
    "refs": {_ANY: ""},
}  # fmt: skip

AGENTV_1: Grammar = {
    "file": {
        "name": "", "version": "", "execution": "execution", "evaluators": "[evaluator]", "evalcases": "[case]",
        "rubrics": "[item]", "score_ranges": "bands", "expected_outcome": "",
    },
    "case": {
        "id": "", "expected_outcome": "", "input": "[message]", "input_messages": "[message]", "rubrics": "[item]",
        "execution": "execution",
    },
    "execution": {"evaluators": "[evaluator]"},
    "evaluator": {"name": "", "type": "", "script": "", "rubrics": "[item]"},
    "item": {"id": "", "expected_outcome": "", "weight": "", "required": "", "score_ranges": "bands"},
    "message": {"role": "", "content": ""},
    "bands": {_NUMBER: ""},
}  # fmt: skip


@cache
def loaded(text: str) -> Any:
    """Return what *text*, YAML 1.2, says."""
    return YAML(typ="safe", pure=True).load(text)


@frozen
class Block:
    """A block of a page: its *text*, the *line* of the page that it starts at, and its *language*."""

    text: str
    line: int
    language: str = "yaml"

    @property
    def data(self) -> Any:
        """The block as plain data, read as YAML 1.2; not to be changed."""
        return loaded(self.text)

    def names(self) -> set[str]:
        """Return all keys of the block, at every depth."""
        return {str(key) for key in _keys(self.data)}


def _keys(data: Any) -> Iterator[Any]:
    if isinstance(data, Mapping):
        yield from data
    if isinstance(data, Mapping | list):
        for part in data.values() if isinstance(data, Mapping) else data:
            yield from _keys(part)


# -- one block --------------------------------------------------------------------------------------------

_KEY = re.compile(r"([\w-]+):(?:\s+(.*))?$")


@define
class _Open:
    """A mapping or a list (`[x]`) that is being filled, with the column of its keys or dashes."""

    kind: str
    column: int
    taken: set[str] = field(factory=set)

    @property
    def item(self) -> str:
        """The kind of its items; empty for a mapping."""
        return self.kind[1:-1] if self.kind.startswith("[") else ""


class Restorer:
    """Writes lines with the indentation that *grammar* gives them."""

    def __init__(self, grammar: Grammar, *, listed: bool = False) -> None:
        self.lines: list[str] = []
        self._grammar = grammar
        self._open = [_Open("[item]" if listed else "file", 0)]

    def add(self, line: str) -> bool:
        """Add *line*; say whether it fits."""
        if line.startswith("#"):
            self.lines.append(line)
            return True
        if line.startswith("- "):
            return self._add_item(line.removeprefix("- "))
        found = _KEY.match(line)
        return found is not None and self._add_key(found[1], found[2] or "")

    def _add_item(self, said: str) -> bool:
        found = _KEY.match(said)
        lists = [one for one in reversed(self._open) if one.item]
        fitting = [one for one in lists if found and self._opens(one.item, found[1]) is not None]
        if not lists:
            return False
        chosen = (fitting or lists)[0]
        self._close(chosen)
        if found and fitting:
            self._open.append(_Open(chosen.item, chosen.column + 2))
            self._write(found[1], found[2] or "", dash=True)
        else:
            self.lines.append(" " * chosen.column + f"- {said}")
        return True

    def _add_key(self, key: str, said: str) -> bool:
        mappings = [one for one in reversed(self._open) if not one.item and key not in one.taken]
        exact = [one for one in mappings if key in self._grammar[one.kind]]
        fitting = exact or [one for one in mappings if self._opens(one.kind, key) is not None]
        if not fitting:
            return False
        self._close(fitting[0])
        self._write(key, said)
        return True

    def _opens(self, kind: str, key: str) -> str | None:
        """Return what *key* opens in a mapping of this kind; None where it may not stand there."""
        keys = self._grammar.get(kind, {})
        return keys.get(key) or next((opens for name, opens in keys.items() if re.fullmatch(name, key)), None)

    def _close(self, last: _Open) -> None:
        while self._open[-1] is not last:
            self._open.pop()

    def _write(self, key: str, said: str, *, dash: bool = False) -> None:
        """Write a key into the mapping that is open, and open what it holds."""
        holder = self._open[-1]
        holder.taken.add(key)
        start = " " * (holder.column - 2) + "- " if dash else " " * holder.column
        if said.startswith("| "):
            self.lines += [f"{start}{key}: |", " " * (holder.column + 2) + said.removeprefix("| ")]
            return
        self.lines.append(f"{start}{key}: {said}".rstrip())
        opens = self._opens(holder.kind, key)
        if opens and (not said or said.startswith("#")):
            self._open.append(_Open(opens, holder.column + 2))


def _starts(line: str, grammar: Grammar) -> bool:
    found = _KEY.match(line)
    return found is not None and found[1] in grammar["file"]


# -- pages that kept their lines ---------------------------------------------------------------------------


def lined(page: str, grammar: Grammar) -> list[Block]:
    """Return the blocks of a page that has kept its lines: each starts with a key of a file, and ends at prose."""
    lines, blocks, number = page.splitlines(), [], 0
    while number < len(lines):
        if not _starts(lines[number], grammar):
            number += 1
            continue
        restorer, first = Restorer(grammar), number
        while number < len(lines) and restorer.add(lines[number].strip()):
            number += 1
        blocks.append(Block("\n".join(restorer.lines) + "\n", first + 1))
    return blocks


# -- pages whose blocks stand on one line -------------------------------------------------------------------

_HEADING = re.compile(r"Section titled “(.*?)”")
_GLUED = re.compile(r"(?<=[a-z0-9.])(?=[A-Z][a-z])")
_LONG = 7


def squeezed(page: str, grammar: Grammar) -> list[Block]:
    """
    Return the blocks of a page that has squeezed each of them, or each of its paragraphs, into one line.

    What comes after a block is glued to its last line: a heading, whose words the next line repeats, or prose, which
    starts with a capital in the middle of a word.
    """
    blocks: list[Block] = []
    for number, tokens in _paragraphs(page, grammar):
        first = next(token for token in tokens if not token.startswith("#"))
        restorer = Restorer(grammar, listed=first.startswith("- "))
        if all(restorer.add(token) for token in tokens):
            blocks.append(Block("\n".join(restorer.lines) + "\n", number))
    return blocks


def _paragraphs(page: str, grammar: Grammar) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each block, and all its tokens."""
    found: list[tuple[int, list[str]]] = []
    over = True
    for number, (line, ends) in enumerate(_unglued(page.splitlines()), 1):
        tokens = list(_tokens(line, grammar))
        plain = [token for token in tokens if not token.startswith("#")]
        if plain and _belongs(plain[0], grammar):
            if over or line.startswith("#"):
                found.append((number, []))
            found[-1][1].extend(tokens)
            over = ends
        else:
            over = True
    yield from found


def _belongs(token: str, grammar: Grammar) -> bool:
    """Say whether a line that starts with *token* is one of a block: a key of a file, or an item with a key."""
    item = _KEY.match(token.removeprefix("- "))
    return item is not None and (token.startswith("- ") or item[1] in grammar["file"])


def _unglued(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line without the heading or the prose that is glued to it, and whether there was some."""
    for line, after in zip(lines, [*lines[1:], ""], strict=False):
        text = _HEADING.sub("", line, count=1) if _HEADING.match(line) else line
        heading = _HEADING.match(after)
        whole = text.removesuffix(heading[1]) if heading else text
        kept = _GLUED.split(whole, maxsplit=1)[0]
        yield kept.strip(), kept != text


def _tokens(line: str, grammar: Grammar) -> Iterator[str]:
    """Yield what stood on a line of its own: an item, a key with its value, a comment by itself."""
    keys = sorted({key for kind in grammar.values() for key in kind if key.isidentifier()}, key=len, reverse=True)
    names = "|".join(keys)
    glued = "|".join(key for key in keys if len(key) >= _LONG)
    for part in re.split(rf"\s+(?=- )|(?<=\w)(?=- (?:{names}): )", line):
        said, comment, rest = _commented(part, glued)
        tokens = re.split(rf"(?<!^-)\s+(?=(?:{names}|\d+):(?:\s|$))|(?<=[a-z])(?=(?:{glued}): )", said)
        tokens[-1] = f"{tokens[-1]} {comment}".strip()
        yield from (token for token in [*tokens, rest] if token)


def _commented(part: str, glued: str) -> tuple[str, str, str]:
    """Return what stands before a comment, the comment, and the key that is glued to its last word."""
    said, mark, comment = part.partition("# ")
    if not mark or (said and not said.endswith(" ")):
        return part, "", ""
    comment, *rest = re.split(rf"(?<=[a-z])(?=(?:{glued}): )", comment, maxsplit=1)
    return said.strip(), f"# {comment}", "".join(rest)


# -- pages that kept their fences ----------------------------------------------------------------------------


def fenced(page: str) -> list[Block]:
    """Return the YAML and JSON blocks of a page that has kept its Markdown."""
    found = re.finditer(r"^( *)```(yaml|json)\n(.*?)^\1```$", page, re.MULTILINE | re.DOTALL)
    return [Block(dedent(f[3]), page.count("\n", 0, f.start()) + 2, f[2]) for f in found]
