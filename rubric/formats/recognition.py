"""
Rules by which the system that a file belongs to is recognised; those of one format stand beside it.

promptfoo and AgentV 2 share most of their words (`prompts`, `tests`, `vars`, `assert`, `llm-rubric`), and mean other
things by them: what passes, what a list of variables is. So no single key decides. Each rule that holds adds its weight
to its format; `registry.recognise` compares the sums.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from attrs import frozen

from rubric.embed import shorten

CASES = ("tests", "evalcases", "eval_cases")
"""Where a file may have its cases."""

GRADERS = ("assert", "assertions", "graders", "evaluators")
"""Where a file, a case or its `execution` may have its graders."""

SURE, STRONG, NEAR, LIKELY, HINT = 8, 4, 3.5, 2, 1
"""
The weight of a rule: only this system has it; others hardly do; what is around the file is this one's; it is this one's
habit; all of them have it.
"""


@frozen
class Seen:
    """The *data* of a file, its *name*, the *schema* that its head names, and the names *around* it in its project."""

    data: Any
    name: str = ""
    schema: str = ""
    around: frozenset[str] = frozenset()

    @property
    def keys(self) -> Mapping[Any, Any]:
        """The keys of the file; none where it is a list."""
        return self.data if isinstance(self.data, Mapping) else {}

    @cached_property
    def tests(self) -> list[Mapping[Any, Any]]:
        """The tests of the file, or the things that it lists; a file without any may be one itself."""
        lists = [self.data] if isinstance(self.data, list) else [self.keys.get(key) for key in CASES]
        found = [test for tests in lists if isinstance(tests, list) for test in tests if isinstance(test, Mapping)]
        return found if found or not isinstance(self.data, Mapping) else [self.data]

    @cached_property
    def graders(self) -> list[Any]:
        """All that is asserted anywhere in the file: texts and mappings."""
        return [*_graders(self.data)]

    def under(self, *keys: str) -> list[Any]:
        """Return the value of the first of *keys* that is given, as a list."""
        value: Any = next((self.keys[key] for key in keys if self.keys.get(key) is not None), [])
        return value if isinstance(value, list) else [value]


_DATA = frozenset({"vars", "metadata", "input", "output", "expected_output", "config"})
"""Where authors keep texts and data of their own, whose keys say nothing."""


def mappings_in(data: Any, beside: frozenset[str] = frozenset()) -> Iterator[Mapping[Any, Any]]:
    """Yield each mapping in *data*, from the top on, without those under the keys *beside*."""
    stack = [data]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += reversed(node)
        elif isinstance(node, Mapping):
            yield node
            stack += [inner for key, inner in node.items() if key not in beside]


def _graders(data: Any) -> Iterator[Any]:
    if isinstance(data, list):
        yield from (item for item in maps(data) if "type" in item)
    for node in mappings_in(data, _DATA):
        for key in GRADERS:
            yield from node[key] if isinstance(node.get(key), list) else ()


def maps(value: Any) -> list[Mapping[Any, Any]]:
    """Return the mappings among the items of a list, or among the values of a mapping; none of anything else."""
    items = value.values() if isinstance(value, Mapping) else value
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, Iterable) else []


# -- rules ---------------------------------------------------------------------------------------------------

Rule = Callable[[Seen], str]
"""Looks at a file, and returns why it speaks for a format; '' where it does not."""

Evidence = tuple[tuple[float, Rule], ...]
"""The rules of a format, each with its weight."""


def finds(why: str, look: Callable[[Seen], Iterable[Any]]) -> Rule:
    """Return the rule that says *why* where *look* yields anything; `{}` in it shows the first that it yields."""

    def rule(seen: Seen) -> str:
        return next((why.format(shorten(str(found), 80)) for found in look(seen)), "")

    return rule


def in_any(where: Callable[[Seen], Iterable[Any]], what: str, keys: tuple[str, ...], kind: Any = object) -> Rule:
    """Look for one of *keys*, with a value of a *kind*, in the mappings that *where* finds; *what* is the reason."""
    return finds(
        f"{what} {{!r}}",
        lambda seen: (
            key for holder in maps(where(seen)) for key in keys if key in holder and isinstance(holder[key], kind)
        ),
    )


def has(*keys: str, kind: type | tuple[type, ...] = object) -> Rule:
    """Look for a key of the file, whose value is of a *kind*."""
    return in_any(lambda seen: [seen.keys], "it has the key", keys, kind)


def holds(outer: str, inner: str) -> Rule:
    """Look for the key *inner* in the mapping under the key *outer*."""
    return in_any(lambda seen: [seen.keys.get(outer)], f"its {outer} has the key", (inner,))


def case_has(*keys: str, kind: type = object) -> Rule:
    """Look for a key of a test."""
    return in_any(lambda seen: seen.tests, "a test has the key", keys, kind)


def option(*keys: str) -> Rule:
    """Look for an option of a test, or of the defaults of tests."""
    defaults = ("defaultTest", "default_test")
    return in_any(
        lambda seen: [one.get("options") for one in maps([*seen.tests, *map(seen.keys.get, defaults)])],
        "it has the option",
        keys,
    )


def asserts(*keys: str) -> Rule:
    """Look for a key of an assertion."""
    return in_any(lambda seen: seen.graders, "an assertion has the key", keys)


def lists(key: str, *wanted: str) -> Rule:
    """Look for one of the keys *wanted* in the list under *key*."""
    return in_any(lambda seen: seen.under(key), f"what it lists under {key!r} has the key", wanted)


def types(seen: Seen) -> list[str]:
    """Return the types of all that is asserted."""
    return [str(grader.get("type")) for grader in maps(seen.graders)]


OF_TYPE = "it has an assertion of the type {!r}"
"""The reason of rules about the types of assertions."""


def uses(fits: Callable[[str], bool]) -> Rule:
    """Look for an assertion of a type that *fits*."""
    return finds(OF_TYPE, lambda seen: filter(fits, (kind.removeprefix("not-") for kind in types(seen))))


def name_fits(*patterns: str) -> Rule:
    """Look for a name of the file that fits one of *patterns*; a suite of ours may have been made of such a file."""

    def names(seen: Seen) -> Iterator[str]:
        is_ours = {"suite", "cases"} <= {*seen.keys}
        yield from (seen.name for one in patterns if not is_ours and fnmatchcase(seen.name.lower(), one))

    return finds("it is called {}", names)


def schema_has(word: str) -> Rule:
    """Look for a *word* in the address of the schema that the file names."""
    return finds(
        "its schema is {}",
        lambda seen: (
            one for one in (seen.schema, seen.keys.get("$schema")) if isinstance(one, str) and word in one.lower()
        ),
    )


def stands_by(*names: str) -> Rule:
    """Look for one of *names* in the folders around a file of promptfoo's words, up to that of its project."""
    why = "it is in a project with {}"
    return finds(why, lambda seen: sorted(seen.around.intersection(names)) if shared_words(seen) else ())


# -- the vocabulary that promptfoo and AgentV share --------------------------------------------------------------

BUILT_IN = "echo|https?|browser|websocket|mcp|manual-input"
NAME = re.compile(rf"(?!(?:{BUILT_IN})\Z)[A-Za-z][\w.-]*")

"""The names of providers that are built in, and a name of the project's own."""


def ids(seen: Seen) -> Iterator[Any]:
    """Yield the ids of the providers that a file lists."""
    for provider in seen.under("providers", "targets"):
        if isinstance(provider, Mapping) and "id" not in provider and len(provider) == 1:
            yield next(iter(provider))
        else:
            yield provider.get("id") if isinstance(provider, Mapping) else provider


def grader_ids(seen: Seen) -> list[Any]:
    """Return the providers of assertions."""
    return [grader.get("provider") for grader in maps(seen.graders)]


def asks(ids: Callable[[Seen], Iterable[Any]], pattern: re.Pattern[str], why: str) -> Rule:
    """Look for a provider among *ids* that the *pattern* fits; `{}` in the reason *why* is its name."""
    return finds(why, lambda seen: (id_ for id_ in ids(seen) if isinstance(id_, str) and pattern.fullmatch(id_)))


def shared_words(seen: Seen) -> str:
    """Look for words of the vocabulary that is promptfoo's; AgentV took it over."""
    words = has("prompts", "providers", "tests", "assert", "vars")(seen)
    return words or (case_has("vars", "assert")(seen) if isinstance(seen.data, list) else "")


def lists_skills(seen: Seen) -> str:
    """Look for the `evals.json` of an agent skill, whose evals have no rubrics and servers and assert texts."""
    evals = seen.keys.get("evals")
    own = {"assertions", "expectations", "expected_output", "files"}
    fits = [one for one in maps(evals) if "prompt" in one and one.keys().isdisjoint(("rubric", "server"))]
    is_skill = isinstance(evals, list) and fits and ("skill_name" in seen.keys or any(own & one.keys() for one in fits))
    return "it lists the evals of an agent skill" if is_skill else ""
