"""
HealthBench examples (arXiv 2505.08775): a conversation, and criteria with points.

| in the file                                | here                                                           |
|--------------------------------------------|----------------------------------------------------------------|
| `prompt` (messages)                        | `Case.messages`: a live target goes on from there              |
| `rubrics`: `criterion`, `points`, `tags`   | yes/no criteria; negative points make penalties, and the       |
|                                            | rubric one by points                                           |
| `completion`                               | `Case.output`                                                  |
| `prompt_id`, `example_tags`                | `Case.id`, `Case.tags`                                         |
| `ideal_completions_data`, and other keys   | `Case.metadata`: HealthBench's judge does not see them either  |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric.formats.benchmarks.signed_weights import Ids, as_penalty, by_points, tell_scores
from rubric.formats.cursor import given, listing, made, mapping, only
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.candidates import Message
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.formats.cursor import Loading, Notes
    from rubric.formats.document import KeyPath


GUIDELINES = (
    "Judge the last turn of the conversation. A criterion with several parts is met only if all of them are. Where it "
    "lists examples (such as, for example, including), one like them is enough."
)
"""How HealthBench tells its judge to read a criterion, in our words."""

_CASE = {"id": "prompt_id", "output": "completion", "tags": "example_tags"}
_CRITERION = {"text": "criterion", "weight": "points", "tags": "tags"}
_MESSAGE = {"role": "role", "content": "content"}

_ROOTS = ("tests", "examples")
"""The keys under which a file may hold its examples; `tests` is what the rows of a JSONL file come as."""


def read(notes: Notes, loading: Loading) -> Suite:  # noqa: ARG001 - every format is read with both
    """Return the suite in the document of *notes*: one example, or a list of them."""
    data = notes.data()
    cases: list[Case] = []
    taken: set[str] = set()
    for path, item in _examples(notes, data):
        example = mapping(notes, path, item, "an example (a mapping with prompt and rubrics)")
        case = None if example is None else _read_example(notes, path, example)
        if case is not None and case.id in taken:
            notes.error((*path, "prompt_id"), f"the id {case.id!r} stands twice; give one of them another")
        elif case is not None:
            taken.add(case.id)
            cases.append(case)
    tell_scores(notes, ())
    return Suite(cases=cases, format="healthbench")


def _examples(notes: Notes, data: object) -> Iterator[tuple[KeyPath, object]]:
    key = next((key for key in _ROOTS if isinstance(data, dict) and key in data), None)
    items = data[key] if key is not None and isinstance(data, dict) else data
    path: KeyPath = () if key is None else (key,)
    if isinstance(items, dict):
        yield path, items
    else:
        for index, item in enumerate(listing(notes, path, items, "an example, or a list of examples")):
            yield (*path, index), item


def _read_example(notes: Notes, path: KeyPath, data: dict[Any, Any]) -> Case | None:
    values = given(notes, path, {key: value for key, value in data.items() if value is not None}, _CASE)
    values.setdefault("id", f"example {path[-1] + 1}" if path else "example")
    rubric = _read_rubrics(notes, path, data)
    messages = _read_messages(notes, (*path, "prompt"), data.get("prompt", []))
    about = {key: value for key, value in data.items() if key not in (*_CASE.values(), "prompt", "rubrics")}
    if rubric is None:
        return None
    values |= {"rubric": rubric, "messages": messages, "place": notes.place(path)}
    return made(notes, path, Case, {**values, "metadata": about}, _CASE)


def _read_messages(notes: Notes, path: KeyPath, data: object) -> list[Message]:
    if isinstance(data, str):
        return [Message("user", data)]
    found = []
    for index, item in enumerate(listing(notes, path, data, "a list of messages (role and content)")):
        here = (*path, index)
        message = mapping(notes, here, item, "a message (a mapping with role and content)")
        if message is not None:
            only(notes, here, message, _MESSAGE)
            found.append(made(notes, here, Message, given(notes, here, message, _MESSAGE)))
    return [message for message in found if message is not None]


def _read_rubrics(notes: Notes, path: KeyPath, data: dict[Any, Any]) -> Rubric | None:
    if "rubrics" not in data:
        notes.error(path, "the key 'rubrics' is missing; add it")
        return None
    here = (*path, "rubrics")
    ids = Ids()
    items = listing(notes, here, data["rubrics"], "a list of criteria")
    found = [_read_criterion(notes, (*here, index), item, ids) for index, item in enumerate(items)]
    criteria = [criterion for criterion in found if criterion is not None]
    if not criteria:
        notes.error(here, "an example has nothing to grade by without criteria; give it some")
        return None
    return made(notes, path, Rubric, {**by_points(criteria), "guidelines": GUIDELINES}, {"criteria": "rubrics"})


def _read_criterion(notes: Notes, path: KeyPath, data: object, ids: Ids) -> Criterion | None:
    item = mapping(notes, path, data, "a criterion (a mapping with criterion and points)")
    if item is None:
        return None
    only(notes, path, item, _CRITERION.values())
    values = given(notes, path, item, _CRITERION)
    if "points" not in item:
        notes.error(path, "the key 'points' is missing; add it")
    as_penalty(values)
    return made(notes, path, Criterion, values | ids.make(values.get("text")), _CRITERION)
