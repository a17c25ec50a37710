"""Whatever a file holds: the readers of mcptest and of the peers note what is wrong, and never break down."""

from __future__ import annotations

import copy
import json
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.format_plugins import autorubric, healthbench, paperbench
from rubric.formats.files import parse
from rubric.formats.mcptest import reader as mcptest
from rubric.formats.notes import Loading, Notes
from tests import strategies
from tests.examples import examples

_CRITERION = {
    "name": "a",
    "description": "A",
    "weight": 2,
    "required": True,
    "guard": False,
    "threshold": 0.5,
    "when": {"contains": "x"},
    "examples": [{"response": "r", "score": 1}],
}
_LEAF = {"score": 1, "reason": "r"}
_MCPTEST = {
    "rubrics": {
        "shared": {"criteria": [_CRITERION], "scale": {"likert": {"min": 1, "max": 5}}, "aggregation": "worst"}
    },
    "evals": [
        {"name": "a", "server": "s", "prompt": "P", "rubric": {"ref": "shared", "strict": True}, "threshold": 0.5},
        {"name": "b", "response": "R", "rubric": {"tree": {"ask": "Q", "yes": _LEAF, "no": _LEAF}}},
        {"name": "c", "prompt": "P", "rubric": "T", "judge": {"model": "m", "jury": {"size": 3, "consensus": 0.5}}},
        {
            "name": "d",
            "prompt": "P",
            "rubric": {"preset": "safety", "criteria": [_CRITERION]},
            "judge": {"panel": ["m"]},
        },
        {"name": "e", "rubric": "T", "matrix": {"models": ["m"], "prompts": ["P"]}},
    ],
    "tools": [{"name": "t", "expect": [{"matcher": {"llm-jury": {"rubric": "T", "quorum": 1, "jurors": ["m", "n"]}}}]}],
}
_ITEM = {
    "requirement": "A",
    "weight": -2,
    "name": "n",
    "options": [{"label": "l", "value": 0}, {"label": "m", "value": 1}],
}
_AUTORUBRIC = {
    "name": "x",
    "prompt": "P",
    "rubric": {"guidelines": "G", "sections": [{"name": "S", "criteria": [_ITEM]}]},
    "items": [{"submission": "S", "description": "d", "ground_truth": ["l"], "rubric": [_ITEM]}],
}
_HEALTHBENCH = {
    "prompt_id": "p",
    "prompt": [{"role": "user", "content": "c"}],
    "rubrics": [{"criterion": "A", "points": 3, "tags": ["t"]}],
    "example_tags": ["t"],
    "ideal_completions_data": None,
}
_TASK = {"id": "i", "requirements": "R", "weight": 1, "task_category": "C", "score": 1.0}
_PAPERBENCH = {"paper": "p", "tree": {**_TASK, "sub_tasks": [_TASK, {**_TASK, "id": "j", "sub_tasks": [_TASK]}]}}

FILES = [(mcptest, _MCPTEST), (autorubric, _AUTORUBRIC), (healthbench, _HEALTHBENCH), (paperbench, _PAPERBENCH)]


def _places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(place for key, value in items for place in _places(value, (*path, key)))]


def _changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    whole = copy.deepcopy(data)
    node = whole
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return whole


@pytest.mark.parametrize(("dialect", "data"), FILES, ids=["mcptest", "autorubric", "healthbench", "paperbench"])
@given(source=st.data())
@examples(60)
def test_any_value_in_any_place_is_read_or_noted(dialect: ModuleType, data: Any, source: st.DataObject) -> None:
    """What is noted has a place in the file; nothing else is raised."""
    path = source.draw(st.sampled_from(_places(data)))
    wild: st.SearchStrategy[Any] = st.one_of(
        strategies.plain_values, st.sampled_from([None, True, 0, -1, 1.5, "", " ", [], {}, [[]], [None]])
    )
    notes = Notes(parse(json.dumps(_changed(data, path, source.draw(wild))), "f.json", "json"))
    suite = dialect.read(notes, Loading())
    assert suite.format in dialect.__name__.split(".")
    assert all(problem.line == 1 and problem.column >= 1 for problem in notes.errors)


@pytest.mark.parametrize(("dialect", "data"), FILES, ids=["mcptest", "autorubric", "healthbench", "paperbench"])
def test_the_file_that_is_changed_is_right_as_it_is(dialect: ModuleType, data: Any) -> None:
    """Or the property above would show little."""
    notes = Notes(parse(json.dumps(data), "f.json", "json"))
    assert len(dialect.read(notes, Loading())) >= 1
    assert notes.errors == []
