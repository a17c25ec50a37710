"""
Draft the criteria of the cases of a suite, in its own file.

docs/reference/commands.md has which cases of a format get criteria, from what, and where. The task and the reference
answer of each case are material too. All else in the file keeps every byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

from attrs import frozen

from rubric import DefinitionError, Rubric, load_suite, loads_suite
from rubric.formats.insertion import Page
from rubric.formats.registry import find_format, formats
from rubric.quality.drafting import Material


@frozen
class Slot:
    """A case of a file that gets criteria: its id, its path in the file, and what they are made from."""

    id: str
    path: tuple[Any, ...]
    material: Material
    tags: tuple[str, ...] = ()


@frozen
class Sheet:
    """A suite file; criteria are drafted for *slots*, *kept* cases have theirs, others stand in files *elsewhere*."""

    page: Page
    format: str
    slots: tuple[Slot, ...] = ()
    kept: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.page.path

    def fill(self, rubrics: Mapping[str, Rubric]) -> str:
        """Return the text with *rubrics*, by the ids of their cases; raise `DumpError` if it would say more."""
        how = find_format(self.format).drafts
        if how is None:
            return self.page.text
        values = {slot.path: how.write(rubrics[slot.id]) for slot in self.slots if slot.id in rubrics}
        return self.page.put(how.key, values)

    def check(self, text: str, **options: Any) -> None:
        """Raise `LoadError` if *text*, the filled file, is not a suite of its format; *options* as for `load_suite`."""
        if not self.elsewhere and "file://" not in text:
            loads_suite(text, self.format, source=str(self.path), **options)


def sheet(path: str | Path, format: str | None = None, **options: Any) -> Sheet:
    """Return the suite file at *path* with the cases that get criteria; *format* and *options* as for `load_suite`."""
    file = Path(path)
    page = Page.read(file)
    if page is None:
        cure = "what replies should do is given with --outcome (case= in code), a text to draft from with --source"
        message = f"{file}: criteria are written into YAML and JSON files, not into {file.suffix!r}; {cure}"
        raise DefinitionError("", message)
    data = page.data()
    if format in (None, "native") and isinstance(data, dict) and isinstance(data.get("cases"), list):
        return _native(page, data)
    suite = load_suite(file, format, **options)
    how = find_format(suite.format).drafts
    if how is None:
        known = ", ".join(name for name, one in formats().items() if one.drafts)
        raise DefinitionError("", f"{file}: read as {suite.format}; criteria are written into {known}")
    paths = page.mappings()
    slots: dict[tuple[Any, ...], Slot] = {}
    kept: dict[tuple[Any, ...], str] = {}
    elsewhere: dict[str, None] = {}
    for case in suite:
        if case.place is None or case.place.source != suite.source:
            elsewhere[case.place.source if case.place else ""] = None
            continue
        at = paths.get((case.place.line, case.place.column))
        if at is None or at in slots or at in kept:  # the cells of a matrix share a case of the file
            continue
        raw = reduce(getitem, at, data)
        if not isinstance(raw, dict):
            continue
        said = next((raw[key] for key in how.outcomes if isinstance(raw.get(key), str)), "")
        asked = case.input or "\n".join(f"{message.role}: {message.content}" for message in case.messages)
        references = (case.reference,) if case.reference.strip() else ()
        material = Material(outcome=said, task=asked, references=references, plain=True)
        if material.blocks() and not how.keeps(raw):
            slots[at] = Slot(case.id, at, material, case.tags)
        else:
            kept[at] = case.id
    return Sheet(page, suite.format, tuple(slots.values()), tuple(kept.values()), tuple(elsewhere))


def _native(page: Page, data: Mapping[str, Any]) -> Sheet:
    """Return a native suite; one whose cases still lack rubrics cannot be loaded."""
    slots, kept = [], []
    for index, case in enumerate(data["cases"]):
        if not isinstance(case, dict):
            continue
        id_ = str(case.get("id", f"case-{index + 1}"))
        rubric = case.get("rubric", data.get("rubric", ""))
        texts = {key: case[key] for key in ("input", "reference") if isinstance(case.get(key), str)}
        references = (texts["reference"],) if texts.get("reference") else ()
        outcome = rubric if isinstance(rubric, str) else ""
        material = Material(outcome, texts.get("input", ""), references)
        tags = case.get("tags")
        if isinstance(rubric, str) and material.blocks():
            slots.append(Slot(id_, ("cases", index), material, tuple(map(str, tags)) if isinstance(tags, list) else ()))
        else:
            kept.append(id_)
    return Sheet(page, "native", tuple(slots), tuple(kept))
