"""
PaperBench rubrics: a tree of tasks, each the weighted mean of its sub-tasks, with yes or no at the leaves.

| in the file                                    | here                                                       |
|------------------------------------------------|------------------------------------------------------------|
| a node with `sub_tasks`                        | a nested rubric; the root is the rubric itself             |
| a leaf                                         | a yes/no criterion                                         |
| `requirements`, `id`, `weight`                 | `Criterion.text`, `.id`, `.weight`                         |
| `task_category`, `finegrained_task_category`   | tags of the criterion                                      |
| `score`, `valid_score`, `explanation`          | results of a grading; a warning, and not read              |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rubric.formats.benchmarks.signed_weights import tell_scores
from rubric.formats.cursor import given, listing, made, mapping, only
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rubric.formats.cursor import Loading, Notes
    from rubric.formats.document import KeyPath


_NODE = {"text": "requirements", "id": "id", "weight": "weight"}
_CATEGORIES = ("task_category", "finegrained_task_category")
_RESULTS = ("score", "valid_score", "explanation", "judge_metadata")
_KEYS = (*_NODE.values(), "sub_tasks", *_CATEGORIES, *_RESULTS)
_ROOTS = ("tests", "examples")


def read(notes: Notes, loading: Loading) -> Suite:  # noqa: ARG001 - every format is read with both
    """Return the suite in the document of *notes*: a case for each tree, which waits for an output."""
    cases = [case for path, data in _trees(notes, notes.data()) if (case := _read_tree(notes, path, data)) is not None]
    tell_scores(notes, ())
    return Suite(cases=cases, format="paperbench")


def _trees(notes: Notes, data: object) -> Iterator[tuple[KeyPath, object]]:
    """Yield each tree of a file: the root node; or under `tree`, one a row, beside the name of the `paper`."""
    key = next((key for key in _ROOTS if isinstance(data, dict) and key in data), None)
    if key is None and not isinstance(data, list):
        yield (), data
        return
    path: KeyPath = () if key is None else (key,)
    rows = data[key] if key is not None and isinstance(data, dict) else data
    for index, row in enumerate(listing(notes, path, rows, "a list of trees")):
        yield (*path, index), row


def _read_tree(notes: Notes, path: KeyPath, data: object) -> Case | None:
    holder = mapping(notes, path, data, "a tree of tasks (a mapping with requirements and sub_tasks)")
    if holder is None:
        return None
    named = "tree" in holder
    if named:
        only(notes, path, holder, ("tree", "paper"))
    seen: set[str] = set()
    where = (*path, "tree") if named else path
    root = _read_node(notes, where, holder["tree"] if named else holder, seen)
    for key in (result for result in _RESULTS if result in seen):
        notes.warn(where, f"{key!r} is the result of a grading, and is not read", key=True)
    if root is None:
        return None
    rubric = root.answer if isinstance(root.answer, Rubric) else Rubric(criteria=[root])
    values = {"id": holder.get("paper", root.id), "rubric": rubric, "place": notes.place(where)}
    return made(notes, path, Case, values, {"id": "paper" if "paper" in holder else "id"})


def _read_node(notes: Notes, path: KeyPath, data: object, seen: set[str]) -> Criterion | None:
    node = mapping(notes, path, data, "a task (a mapping with requirements and weight)")
    if node is None:
        return None
    only(notes, path, node, _KEYS)
    seen |= {key for key in _RESULTS if key in node}
    values = given(notes, path, node, _NODE)
    values["tags"] = [node[key] for key in _CATEGORIES if node.get(key) is not None]
    if node.get("sub_tasks"):
        inner = _read_sub_tasks(notes, path, node, seen)
        if inner is None:
            return None
        values["answer"] = inner
    return made(notes, path, Criterion, values, {**_NODE, "tags": _CATEGORIES[0]})


def _read_sub_tasks(notes: Notes, path: KeyPath, node: dict[Any, Any], seen: set[str]) -> Rubric | None:
    here = (*path, "sub_tasks")
    tasks = listing(notes, here, node["sub_tasks"], "a list of tasks")
    found = [_read_node(notes, (*here, index), task, seen) for index, task in enumerate(tasks)]
    criteria = [criterion for criterion in found if criterion is not None]
    if len(criteria) < len(tasks) or not criteria:
        return None
    name = node["requirements"] if isinstance(node.get("requirements"), str) else ""
    return made(notes, path, Rubric, {"name": name, "criteria": criteria}, {"criteria": "sub_tasks"})
