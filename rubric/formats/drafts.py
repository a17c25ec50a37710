"""
Draft the criteria of the cases of a suite, in its own file.

| format | cases that get criteria | made from | written to |
|---|---|---|---|
| native | without a rubric, or whose rubric is a text | that text | `rubric` |
| AgentV, generation 1 | without `rubrics`, whatever else grades them | `expected_outcome` | `rubrics` |
| AgentV, later | without graders of their own | `expected_outcome`, `outcome` or `criteria` | `assert` |
| promptfoo | without an `assert` of their own | `description` | `assert` |

The task and the reference answer of each case are material too. All else in the file keeps every byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from rubric.engine.drafting import Material
from rubric.errors import DefinitionError, DumpError
from rubric.formats.document import FOR_SUITES, KeyPath, plain
from rubric.formats.files import parse, read_text
from rubric.formats.insertion import Insertion, Span, inserted, spans
from rubric.formats.native.rubric import as_data
from rubric.formats.rubrics import LANGUAGES
from rubric.formats.suites import load_suite, loads_suite
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric


@frozen
class Slot:
    """A case of a file that gets criteria: its id, its path in the file, and what they are made from."""

    id: str
    path: KeyPath
    material: Material
    tags: tuple[str, ...] = ()


@frozen
class Sheet:
    """
    A suite file into which criteria are drafted.

    Args:
        format: Its format.
        text: Its text.
        slots: The cases that get criteria.
        kept: The ids of the cases that have their own.
        elsewhere: The files that hold further cases.
    """

    path: Path
    format: str
    text: str = field(repr=False)
    slots: tuple[Slot, ...] = ()
    kept: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    def filled(self, rubrics: Mapping[str, Rubric]) -> str:
        """
        Return the text with *rubrics*, by the ids of their cases.

        Raises:
            DumpError: The file cannot be changed so that it says this and nothing else.
        """
        key, value = _WRITERS[self.format]
        edits = [Insertion(slot.path, key, value(rubrics[slot.id])) for slot in self.slots if slot.id in rubrics]
        text = inserted(self.text, edits)
        language = LANGUAGES[self.path.suffix.lower()]
        wanted = _plain(self.text, language)
        for edit in edits:
            _at(wanted, edit.path)[edit.key] = edit.value
        if _plain(text, language) != wanted:
            raise DumpError(f"{self.path}: criteria cannot be put into this file in place; write them into it by hand")
        return text

    def check(self, text: str, **options: Any) -> None:
        """
        Raise `LoadError` if *text*, the filled file, is no suite of the same format.

        Args:
            options: As for `load_suite`; a file that others are included in is checked when it is loaded.
        """
        if not self.elsewhere and "file://" not in text:
            loads_suite(text, self.format, source=str(self.path), **options)


def sheet(path: str | Path, format: str | None = None, **options: Any) -> Sheet:
    """
    Return the suite file at *path* with the cases that get criteria.

    Args:
        path: A YAML or JSON file of ours, of AgentV's or of promptfoo's.
        format: As for `load_suite`, and so are the *options*.

    Raises:
        DefinitionError: It is a file of another kind.
        LoadError: It is no suite.
    """
    file = Path(path)
    language = LANGUAGES.get(file.suffix.lower())
    if language is None:
        cure = "a text to draft from is given with --source (sources= in code)"
        message = f"{file}: criteria are written into YAML and JSON files, not into {file.suffix!r}; {cure}"
        raise DefinitionError("", message)
    text = read_text(file, None, FOR_SUITES)
    data = _plain(text, language)
    if format in (None, "native") and isinstance(data, dict) and isinstance(data.get("cases"), list):
        return _native(file, text, data)
    suite = load_suite(file, format, **options)
    if suite.format not in _WRITERS:
        known = ", ".join(_WRITERS)
        raise DefinitionError("", f"{file}: read as {suite.format}; criteria are written into {known}")
    paths = _places(spans(text))
    slots: dict[KeyPath, Slot] = {}
    kept: dict[KeyPath, str] = {}
    elsewhere: dict[str, None] = {}
    for case in suite:
        if case.place is None or case.place.source != suite.source:
            elsewhere[case.place.source if case.place else ""] = None
            continue
        at = paths.get((case.place.line, case.place.column))
        if at is None or at in slots or at in kept:  # the cells of a matrix share a case of the file
            continue
        raw = _at(data, at)
        if not isinstance(raw, dict):
            continue
        if _has_criteria(raw, suite.format):
            kept[at] = case.id
            continue
        said = next((raw[key] for key in _OUTCOMES[suite.format] if isinstance(raw.get(key), str)), "")
        asked = case.input or "\n".join(f"{message.role}: {message.content}" for message in case.messages)
        references = (case.reference,) if case.reference.strip() else ()
        material = Material(outcome=said, task=asked, references=references, plain=True)
        if material.is_enough:
            slots[at] = Slot(case.id, at, material, case.tags)
        else:
            kept[at] = case.id
    return Sheet(file, suite.format, text, tuple(slots.values()), tuple(kept.values()), tuple(elsewhere))


def _native(file: Path, text: str, data: Mapping[str, Any]) -> Sheet:
    """Return a native suite; one whose cases still lack rubrics cannot be loaded."""
    slots, kept = [], []
    for index, case in enumerate(data["cases"]):
        if not isinstance(case, dict):
            continue
        id_ = str(case.get("id", f"case-{index + 1}"))
        rubric = case.get("rubric", data.get("rubric", ""))
        texts = {key: case[key] for key in ("input", "reference") if isinstance(case.get(key), str)}
        references = (texts["reference"],) if texts.get("reference") else ()
        material = Material(
            outcome=rubric if isinstance(rubric, str) else "", task=texts.get("input", ""), references=references
        )
        tags = case.get("tags")
        if isinstance(rubric, str) and material.is_enough:
            slots.append(Slot(id_, ("cases", index), material, tuple(map(str, tags)) if isinstance(tags, list) else ()))
        else:
            kept.append(id_)
    return Sheet(file, "native", text, tuple(slots), tuple(kept))


_GRADERS = ("assert", "assertions", "graders", "evaluators", "rubrics")
_AGENTV = ("expected_outcome", "outcome", "criteria")
_OUTCOMES = {"agentv-1": _AGENTV, "agentv-1.5": _AGENTV, "agentv-2": _AGENTV, "promptfoo": ("description",)}


def _has_criteria(case: Mapping[str, Any], format: str) -> bool:
    """
    True if *case* has criteria, or other graders where these are in the key that criteria are written to.

    In AgentV's first generation, `rubrics` work beside the evaluators of a case.
    """
    execution = case.get("execution")
    parts = [case, execution if isinstance(execution, dict) else {}]
    graders = [part[key] for part in parts for key in _GRADERS if part.get(key)]
    if format != "agentv-1" or case.get("rubrics"):
        return bool(graders)
    listed = [one for found in graders if isinstance(found, list) for one in found if isinstance(one, dict)]
    return any("rubric" in str(one.get("type")) for one in listed)


def _item(criterion: Criterion, text: str) -> dict[str, Any]:
    return {"id": criterion.id, text: criterion.text, "weight": criterion.weight, "required": criterion.required}


_WRITERS: dict[str, tuple[str, Callable[[Rubric], Any]]] = {
    "native": ("rubric", lambda rubric: as_data(evolve(rubric, name=""))),
    "agentv-1": ("rubrics", lambda rubric: [_item(c, "expected_outcome") for c in rubric.criteria]),
    "agentv-1.5": (
        "assert",
        lambda rubric: [{"type": "rubrics", "criteria": [_item(c, "outcome") for c in rubric.criteria]}],
    ),
    "agentv-2": (
        "assert",
        lambda rubric: [{"type": "llm-rubric", "value": [_item(c, "outcome") for c in rubric.criteria]}],
    ),
    "promptfoo": (
        "assert",
        lambda rubric: [
            {"type": "llm-rubric", "metric": c.id, "value": c.text} | ({} if c.weight == 1 else {"weight": c.weight})
            for c in rubric.criteria
        ],
    ),
}
"""The key of a case that criteria are written to, and its value; promptfoo has no gates, so all of its must hold."""


def _plain(text: str, language: Any) -> Any:
    return plain(parse(text, "<text>", language, FOR_SUITES).root)


def _at(data: Any, path: KeyPath) -> Any:
    return reduce(getitem, path, data)


def _places(root: Span | None) -> dict[tuple[int, int], KeyPath]:
    """Return the path of each mapping by its line and column; that of the innermost, where several start."""
    found: dict[tuple[int, int], KeyPath] = {}
    waiting: list[tuple[Span, KeyPath]] = [] if root is None else [(root, ())]
    while waiting:
        node, path = waiting.pop()
        if node.is_mapping:
            found[node.line, node.column] = path
            pairs = zip(node.parts[::2], node.parts[1::2], strict=False)
            waiting += [(value, (*path, key.key)) for key, value in pairs if key.key is not None]
        else:
            waiting += [(part, (*path, index)) for index, part in enumerate(node.parts)]
    return found
