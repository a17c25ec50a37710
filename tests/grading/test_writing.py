"""Having a model write an object from material: what counts as its own, and what it is asked again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rubric import DefinitionError, Judge
from rubric.driving import Ask, Failure, Reply, Usage, drive
from rubric.grading.writing import Writing
from rubric.internals.frozen_map import FrozenMap

SCHEMA = FrozenMap({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
JUDGE = Judge(lambda _: "", repairs=1)


def writing(*texts: str) -> Writing:
    """Return the writing of an object with `a`, from *texts*."""
    blocks = tuple(("source", text) for text in texts)
    return Writing("Between {{ mark }}.", {}, blocks, SCHEMA, {"fewest": 0, "most": 1, "known": {}})


def answered(given: Writing, *replies: str) -> tuple[Any, Usage, list[Ask]]:
    """Return what is read of *replies*, one after the other; 1 is refused."""
    asks, rest = list[Ask](), iter(replies)

    def read(found: Mapping[str, Any], _: int) -> int:
        if found.get("a") == 1:
            raise DefinitionError("a", "expected another")
        return int(found.get("a", 0))

    def send(ask: Ask) -> Reply:
        asks.append(ask)
        return Reply(next(rest), usage=Usage(calls=1))

    found, usage = drive(given.steps(JUDGE, read), send)
    return found, usage, asks


def test_an_object_of_the_material_is_not_the_models() -> None:
    """What stands in a text word for word was written by its author."""
    assert answered(writing('{"a": 2}'), 'It says {"a": 2}. {"a": 3}')[0] == 3
    assert answered(writing('{"a": 2}'), '{"a": 2}')[0] == 0


def test_what_cannot_be_used_is_asked_for_again_with_the_complaint() -> None:
    """Each repair names the complaint, all calls are counted, and after the last one it is a failure."""
    found, usage, asks = answered(writing("x"), '{"a": 1}', '{"a": 2}')
    assert (found, usage.calls) == (2, 2)
    assert "a: expected another. Write it again." in asks[1].messages[-1].text
    found, usage, _ = answered(writing("x"), '{"a": 1}', '{"a": 1} {"a": 2}')
    assert isinstance(found, Failure)
    assert (found.kind, usage.calls) == ("unreadable", 2)


def test_the_mark_depends_on_all_texts() -> None:
    """So no text can hold it, and the same material is the same request."""
    asks = [writing(*texts).ask(JUDGE) for texts in (("x", "y"), ("x", "y"), ("x", "z"))]
    assert asks[0].messages == asks[1].messages != asks[2].messages
