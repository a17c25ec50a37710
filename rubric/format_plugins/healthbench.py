"""HealthBench examples (arXiv 2505.08775): chats and criteria with points; docs/how-to/from_autorubric.md maps them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rubric import Case, Criterion, Message, Rubric, Suite
from rubric.embed import SURE, Cursor, Format, Loading, Notes
from rubric.format_plugins.signed_weights import Ids, as_penalty, by_points, examples, warn_of_pass_mark
from rubric.formats.recognition import Seen, in_any, maps

GUIDELINES = (
    "Judge the last turn of the conversation. A criterion with several parts is met only if all of them are. Where it "
    "lists examples (such as, for example, including), one like them is enough."
)
"""How HealthBench tells its judge to read a criterion, in our words."""

_CASE = {"id": "prompt_id", "output": "completion", "tags": "example_tags"}
_CRITERION = {"text": "criterion", "weight": "points", "tags": "tags"}
_MESSAGE = {"role": "role", "content": "content"}
_WHAT = "a message (a mapping with role and content)"


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*: one example, or a list of them."""
    root = Cursor.of(notes, loading)
    cases: dict[str, Case] = {}
    for example in examples(root, "an example, or a list of examples"):
        case = _example(example)
        if case is not None and cases.setdefault(case.id, case) is not case:
            example["prompt_id"].error(f"the id {case.id!r} stands twice; give one of them another")
    warn_of_pass_mark(root)
    return Suite(cases=[*cases.values()], format="healthbench")


def _example(example: Cursor) -> Case | None:
    if not example.mapping("an example (a mapping with prompt and rubrics)"):
        return None
    values = example.given(_CASE, blank=_CASE.values())
    values.setdefault("id", f"example {example.step + 1}" if isinstance(example.step, int) else "example")
    ids, rubric = Ids(), None
    if example.needs("rubrics"):
        criteria = example["rubrics"].each("a list of criteria", lambda item: _criterion(item, ids))
        if example["rubrics"].value == []:
            example["rubrics"].error("an example has nothing to grade by without criteria; give it some")
        elif criteria:
            rubric = example.made(Rubric, {**by_points(criteria), "guidelines": GUIDELINES}, {"criteria": "rubrics"})
    prompt = example["prompt"]
    messages = [Message("user", prompt.value)] if isinstance(prompt.value, str) else []
    if "prompt" in example and not messages:
        messages = prompt.each("a list of messages (role and content)", lambda at: at.noun(Message, _WHAT, _MESSAGE))
    about = {key: value for key, value in example.value.items() if key not in (*_CASE.values(), "prompt", "rubrics")}
    if rubric is None:
        return None
    values |= {"rubric": rubric, "messages": messages, "place": example.place}
    return example.made(Case, {**values, "metadata": about}, _CASE)


def _criterion(at: Cursor, ids: Ids) -> Criterion | None:
    if not at.mapping("a criterion (a mapping with criterion and points)"):
        return None
    at.only(_CRITERION.values())
    values = at.given(_CRITERION)
    at.needs("points")
    as_penalty(values)
    return at.made(Criterion, values | ids.make(values.get("text")), _CRITERION)


# -- recognition --------------------------------------------------------------------------------------------------


def _rubrics(seen: Seen) -> Iterator[Any]:
    """Yield the items of the `rubrics` of the tests or the examples of a file."""
    listed = (holder.get("rubrics") for holder in (*seen.tests, *maps(seen.under("examples"))))
    return (item for items in listed if isinstance(items, list) for item in items)


FORMAT = Format("healthbench", read, evidence=((SURE, in_any(_rubrics, "a rubric has the key", ("points",))),))
