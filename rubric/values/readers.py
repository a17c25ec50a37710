"""Readers of free text: what `Judge(reader=...)` takes, and texts that a reader takes. Loaded when one is given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rubric.errors import DefinitionError
from rubric.internals.fields import refuse
from rubric.internals.frozen_map import FrozenMap
from rubric.values.matching import check_pattern, matches

if TYPE_CHECKING:
    from rubric.values.judges import Judge

_SPOKEN = {"true": ("true", "yes", "pass", "met"), "false": ("false", "no", "fail", "not met")}


def as_reader(value: Any) -> Any:
    """Return *value*; the labels of a mapping as texts, so that `True` and `3` are found in files and in code alike."""
    if not isinstance(value, Mapping):
        return value
    return FrozenMap({str(label).lower() if isinstance(label, bool) else str(label): p for label, p in value.items()})


def check_reader(name: str, value: Any) -> None:
    """Refuse all but `rating`, a mapping from verdicts to patterns, and a function."""
    if isinstance(value, Mapping):
        if not value:
            raise DefinitionError(name, 'expected a pattern for each verdict, such as {"yes": "^Yes"}, got none')
        for label, pattern in value.items():
            check_pattern(f"{name}.{label}", pattern)
    elif value != "rating" and not callable(value):
        allowed = "'rating', a mapping from verdicts to patterns, or a function from text to verdict"
        raise refuse(name, value, allowed)


def check_judge(judge: Judge) -> None:
    """Refuse what takes a reply in JSON, beside a reader of free text."""
    if judge.is_sealed():
        raise DefinitionError(
            "reader",
            "a sealed verdict repeats a nonce in its JSON object, so that no candidate can forge it; a free text has "
            f"no place for one. Write Judge({judge.name!r}, reader=..., sealed=False), or leave the reader out",
        )
    if judge.per_call != 1:
        raise DefinitionError("per_call", f"a free text holds one verdict, got {judge.per_call!r}; leave it out")
    if judge.logprobs:
        raise DefinitionError(
            "logprobs", "a verdict's tokens are found in JSON alone; leave out logprobs, or the reader"
        )


def text_of(label: str, pattern: str) -> str:
    """Return a text that *pattern* finds: the label, or the pattern without its escapes; else the label."""
    bare = re.sub(r"\\(\W)", r"\1", pattern.removeprefix("(?i)").removeprefix("^").removesuffix("$").replace(r"\b", ""))
    return next((text for text in (label, bare, label.title()) if matches(pattern, text)), label)


def write_reply(reader: Any, value: object, reason: str = "") -> str:
    """Return a reply that *reader* takes for *value*, for models without an LLM."""
    said = str(value).lower() if isinstance(value, bool) else str(value)
    if reader == "rating":
        said = f"Rating: {said}"
    elif isinstance(reader, Mapping):
        known = {said.casefold(), *_SPOKEN.get(said, ())}
        said = next((text_of(label, pattern) for label, pattern in reader.items() if label.casefold() in known), said)
    return said if callable(reader) else f"{reason}\n{said}".strip()
