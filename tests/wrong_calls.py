"""Wrong calls of every public function, type and method: wrong names, synonyms, too many, two mistakes at once."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module, resources
from random import Random
from typing import Any

from rubric.internals.conversions import conversions
from rubric.internals.guesses import variable_of
from rubric.internals.lazy_names import public_names

TABLE: dict[str, dict[str, Any]] = tomllib.loads(
    resources.files("rubric.internals").joinpath("guesses.toml").read_text("utf-8")
)
WORDS = sorted(
    {
        word
        for lines in (*TABLE["arguments"].values(), *TABLE["notes"].values(), TABLE["terms"])
        for words in lines.values()
        for word in words.split()
        if word.isidentifier()
    }
)
PLAIN: dict[str, Any] = {
    "weight": 2.375, "threshold": 0.8125, "min_score": 0.4375, "temperature": 0.6875, "timeout": 37.0, "retries": 7,
    "seed": 1913, "max_tokens": 713, "size": 7, "consensus": 0.5625, "concurrency": 11, "cost": 17.25, "calls": 917,
    "tokens": 91_713, "rpm": 73, "points": 3.25, "repairs": 5, "repeat": 9, "low": 1, "high": 9, "score": 0.3125,
    "count": 13, "id": "q-17", "text": "Names a date", "name": "n-17", "input": "Why 17?", "output": "Out 17.",
    "reference": "Ref 17.", "context": "Con 17.", "guidelines": "Guide 17.", "model": "openai/gpt-17", "key": "k-17",
    "store": "s17.db", "question": "Is it 17?", "label": "l-17", "reason": "r-17", "path": "p17.csv", "by": "verdict",
    "aggregate": "median", "polarity": "guard", "tags": ["t-17"], "metadata": {"m": "17"}, "variables": {"v": "17"},
    "criteria": ["Names a date", "Names a price"], "judges": ["offline", "openai/gpt-17"], "weights": [3, 1],
    "texts": ["a17", "b17"], "columns": {"output": "c17"}, "params": {"top_p": 0.9}, "levels": (1, 9),
    "choices": {"cold": 0, "warm17": 1}, "required": True, "ignore_case": True, "candidates": ["We thank you."],
}  # fmt: skip
"""A value for each argument, which no table or example has."""


def public_calls(values: Mapping[type, object]) -> dict[str, tuple[Callable[..., Any], Callable[..., Any]]]:
    """Return every public call whose wrong arguments are answered: as it is called, and its function."""
    found: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}
    for name, home in public_names().items():
        try:
            value = getattr(import_module(home), name)
        except ImportError:  # an extra
            continue
        if not inspect.isclass(value):
            found |= {name: (value, value)} if inspect.isfunction(value) and hasattr(value, "__wrapped__") else {}
            continue
        if hasattr(value.__init__, "__wrapped__"):
            found[name] = (value, value.__init__)
        for each in (each for each in dir(value) if not each.startswith("_")):
            raw = inspect.getattr_static(value, each)
            function = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
            owner = value if raw is not function else values.get(value)
            if inspect.isfunction(function) and hasattr(function, "__wrapped__") and owner is not None:
                found[f"{name}.{each}"] = (getattr(owner, each), function)
    return found


def wrong_call(
    name: str, function: Callable[..., Any], ours: Mapping[str, object], random: Random
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments of the call *name* of *function* with one or two mistakes; *ours* are values of ours."""
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name not in ("self", "cls")]
    by_name = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    optional = [each for each in by_name if each.default is not each.empty]
    chosen = {*(each.name for each in by_name if each.default is each.empty)}
    chosen |= {each.name for each in random.sample(optional, min(len(optional), random.choice([0, 0, 1, 2])))}
    args, named = [], {}
    is_place = True
    for each in by_name:
        value = ours.get(each.name, PLAIN.get(each.name, random.choice(["w-17", 0.71875, 1713])))
        is_place &= each.name in chosen and each.kind is not each.KEYWORD_ONLY
        if each.name in chosen and (each.kind is each.POSITIONAL_ONLY or (is_place and random.random() < 0.7)):
            args.append(value)
        elif each.name in chosen:
            named[each.name] = value
            is_place = False
    for _ in range(random.choice([1, 1, 2])):
        word = random.choice(WORDS)
        mistake = random.choice(["another name", "another name", "one more", "one more", "too many"])
        if mistake == "another name" and named:
            meant = random.choice([*named])
            owners = (name.rpartition(".")[2], "every")
            words = [w for part in owners for w in TABLE["arguments"].get(part, {}).get(meant, "").split()]
            word = random.choice([*words, f"{meant}{meant[-1]}", f"{meant}_value"])
            named = {word if each == meant else each: value for each, value in named.items()}
        elif mistake == "too many":
            args.append(random.choice(["another", 0.9375, 18]))
        elif word not in named:
            named[word] = random.choice([PLAIN.get(word, "w-17"), 0.71875, True, None])
    return args, named


def lines_in(said: str) -> Iterator[str]:
    """Yield the lines that *said*, a message, tells to write."""
    for found in re.finditer("(?:[Ww]rite|give) (?=[^;])", said):
        rest = re.sub(r"^((from [\w.]+ )?import \w+; )+", "", said[found.end() :])
        yield from [
            rest[: end.start()]
            for end in re.finditer("; |$|, or | or, ", rest)
            if _tree(rest[: end.start()]) is not None
        ][:1]


def _tree(code: str) -> ast.AST | None:
    try:
        tree: ast.AST = compile(code, "line", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError:
        return None
    return tree


def lost_values(said: str, args: list[Any], named: Mapping[str, Any], places: list[str]) -> list[str]:
    """
    Return which of the arguments typed a line of *said*, a message, does not have, though it is not said to lack them.

    A line has a value as it is or converted, or by the name of its argument or type. Switches are said by other words.
    """
    typed = {**{places[n] if n < len(places) else f"+{n}": value for n, value in enumerate(args)}, **named}
    found = []
    for line in lines_in(said):
        tree = _tree(line)
        if tree is None or re.match(r"\w+ ?=(?!=)", line) or not any(isinstance(n, ast.Call) for n in ast.walk(tree)):
            continue
        for name, value in typed.items():
            is_told: object = re.search(
                rf"without [^;]*{re.escape(repr(name))}[^;]*, write|\b{re.escape(name)}: (?:[^;]*; )?[^;]*leave it out",
                said,
            )
            is_told = is_told or f"leave {name!r} out" in said or f"got {value!r}" in said or "..." in line
            is_switch = value is None or isinstance(value, bool)
            if not is_told and not is_switch and not _has(tree, name, value):
                found.append(f"{name} in {line}")
    return found


def _has(tree: ast.AST, name: str, value: object) -> bool:
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if {"new", "old"} <= names and type(value).__name__ == "Grades":  # which of them is which, the line says by names
        return True
    if name in names or (type(value).__module__.startswith("rubric.") and variable_of(value) in names):
        return True
    meant = [value, *conversions(name, value)]
    for node in ast.walk(tree):
        try:
            literal = ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError):
            continue
        for each in meant:
            if isinstance(each, str) and isinstance(literal, str) and each in literal:
                return True
            if isinstance(each, list | tuple) and isinstance(literal, list | tuple) and [*each] == [*literal]:
                return True
            if isinstance(each, bool) is isinstance(literal, bool) and not isinstance(each, str) and each == literal:
                return True
    parts = [*value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else []
    return bool(parts) and all(_has(tree, "", each) for each in parts)
