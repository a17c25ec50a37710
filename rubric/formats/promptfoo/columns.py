"""The columns of promptfoo's table: prompts and providers, and which of them a test runs in."""

from __future__ import annotations

from fnmatch import fnmatchcase

from attrs import frozen

from rubric.formats.promptfoo.parts import Part, as_text
from rubric.formats.promptfoo.prompts import Prompt
from rubric.formats.promptfoo.tests import Test

__all__ = ["Cell", "cells_for", "cells_of", "providers_of"]


@frozen
class Cell:
    """One column of promptfoo's table: a prompt and a provider, and their names where there are several."""

    prompt: Prompt | None
    provider: str
    names: dict[str, str]


_KEYS = frozenset({"id", "config", "label", "prompts", "transform", "delay", "env", "inputs"})


def providers_of(whole: Part) -> list[Part]:
    """Return the providers (or targets) that a configuration lists."""
    part = whole.find("providers") or whole.find("targets")
    if part is None:
        return []
    found = part.parts() if isinstance(part.value, list) else [part]
    for provider in found:
        if isinstance(provider.value, dict) and "id" in provider.value:
            provider.unknown_keys(_KEYS, frozenset(), {})
    return found


def cells_of(prompts: list[Prompt], providers: list[Part]) -> list[Cell]:
    """Return a cell for each provider and each prompt that it takes; one cell where there are none."""
    found: list[Cell] = []
    rows: list[Prompt | None] = [*prompts] or [None]
    columns: list[Part | None] = [*providers] or [None]
    for provider in columns:
        name, wanted = _named(provider)
        for prompt in rows:
            if prompt is not None and wanted and not _is_among(prompt.label, wanted):
                continue
            names = {"prompt": prompt.label} if prompt is not None and len(prompts) > 1 else {}
            names |= {"provider": name} if len(providers) > 1 else {}
            found.append(Cell(prompt, name, names))
    return found


def _named(provider: Part | None) -> tuple[str, list[str]]:
    """Return what a provider is called, and the prompts that it is limited to."""
    value = None if provider is None else provider.value
    if not isinstance(value, dict):
        return as_text(value), []
    if len(value) == 1 and "id" not in value:
        ((id_, inner),) = value.items()
        value = {"id": id_, **(inner if isinstance(inner, dict) else {})}
    wanted = value.get("prompts")
    name = as_text(value.get("label") or value.get("id"))
    return name, [as_text(label) for label in wanted] if isinstance(wanted, list) else []


def _is_among(name: str, wanted: list[str]) -> bool:
    return any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}:") for pattern in wanted)


def cells_for(test: Test, cells: list[Cell]) -> list[Cell]:
    """Return the cells that *test* runs in."""
    for key in ("providers", "prompts"):
        part = test.fields.get(key)
        if part is not None and isinstance(part.value, list):
            names = [as_text(value) for value in part.value]
            cells = [cell for cell in cells if _is_among(_name_of(cell, key), names)]
    own = test.fields.get("provider")
    if own is None:
        return cells
    name, _ = _named(own)
    kept = {cell.prompt.label if cell.prompt else "": cell for cell in cells}.values()
    return [Cell(cell.prompt, name, {**cell.names, "provider": name}) for cell in kept]


def _name_of(cell: Cell, key: str) -> str:
    return cell.provider if key == "providers" else cell.prompt.label if cell.prompt else ""
