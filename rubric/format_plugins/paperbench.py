"""PaperBench rubrics: trees of tasks with weighted means; docs/how-to/from_autorubric.md maps their keys."""

from __future__ import annotations

from rubric import Case, Criterion, Rubric, Suite
from rubric.embed import SURE, Cursor, Format, Loading, Notes, has
from rubric.format_plugins.signed_weights import examples, warn_of_pass_mark
from rubric.formats.recognition import holds, lists

_NODE = {"text": "requirements", "id": "id", "weight": "weight"}
_CATEGORIES = ("task_category", "finegrained_task_category")
_RESULTS = ("score", "valid_score", "explanation", "judge_metadata")


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*: a case for each tree, which waits for an output."""
    root = Cursor.of(notes, loading)
    cases = [case for tree in examples(root, "a tree of tasks, or a list of them") if (case := _tree(tree)) is not None]
    warn_of_pass_mark(root)
    return Suite(cases=cases, format="paperbench")


def _tree(holder: Cursor) -> Case | None:
    """Return the case of a tree: a root node, or one under `tree`, beside the name of the `paper`."""
    if not holder.mapping("a tree of tasks (a mapping with requirements and sub_tasks)"):
        return None
    tree = holder
    if "tree" in holder:
        holder.only(("tree", "paper"))
        tree = holder["tree"]
    seen: set[str] = set()
    root = _node(tree, seen)
    for key in (result for result in _RESULTS if result in seen):
        tree.warn(f"{key!r} is the result of a grading, and is not read", key=True)
    if root is None:
        return None
    rubric = root.answer if isinstance(root.answer, Rubric) else Rubric(criteria=[root])
    values = {"id": holder.value.get("paper", root.id), "rubric": rubric, "place": tree.place}
    return holder.made(Case, values, {"id": "paper" if "paper" in holder else "id"})


def _node(node: Cursor, seen: set[str]) -> Criterion | None:
    """Return the criterion that *node* is; *seen* takes the keys of results in it."""
    if not node.mapping("a task (a mapping with requirements and weight)"):
        return None
    node.only((*_NODE.values(), "sub_tasks", *_CATEGORIES, *_RESULTS))
    seen.update(key for key in _RESULTS if key in node)
    values = node.given(_NODE)
    values["tags"] = [node.value[key] for key in _CATEGORIES if node.has(key)]
    if node.value.get("sub_tasks"):
        tasks = node["sub_tasks"].listing("a list of tasks")
        criteria = [criterion for task in tasks if (criterion := _node(task, seen)) is not None]
        if len(criteria) < len(tasks) or not criteria:
            return None
        name = node.value.get("requirements")
        inner = {"name": name if isinstance(name, str) else "", "criteria": criteria}
        values["answer"] = node.made(Rubric, inner, {"criteria": "sub_tasks"})
        if values["answer"] is None:
            return None
    return node.made(Criterion, values, {**_NODE, "tags": _CATEGORIES[0]})


# -- recognition --------------------------------------------------------------------------------------------------


_EVIDENCE = ((SURE, has("sub_tasks")), (SURE, holds("tree", "sub_tasks")), (SURE, lists("examples", "tree")))

FORMAT = Format("paperbench", read, evidence=_EVIDENCE)
