"""What a rubric speaks of and a candidate lacks: a question, a reference or a context."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rubric.values.candidates import Candidate
from rubric.values.checks import Check
from rubric.values.rubrics import Rubric

_SPOKEN_OF = {
    "input": r"\b(?:the|his|her|their|users?'?s?|customers?'?s?) (?:question|query)\b|was asked|{{\s*input\b",
    "reference": r"\bthe (?:reference|(?:expected|gold(?:en)?|ideal) (?:answer|output))\b|{{\s*reference\b",
    "context": r"\b(?:the|its|given|retrieved) context\b|\bretrieved (?:text|document|passage)s?|{{\s*context\b",
}
"""What a rubric says that speaks of a field of its candidates."""


def without(rubric: Rubric, *fields: str) -> list[str]:
    """Return a remark for each of *fields* that *rubric* or its prompt speaks of, for candidates that have none."""
    spoken_of = rubric.derive(("spoken of",), lambda: _spoken_of(rubric))
    return [remark for wanted, remark in spoken_of.items() if wanted in fields]


def _spoken_of(rubric: Rubric) -> dict[str, str]:
    judged = {c.id: c.text for c in rubric.criteria if not isinstance(c.answer, Check)}
    texts, remarks = {"its prompt": rubric.prompt or "", **judged, "its text": rubric.text}, dict[str, str]()
    for wanted, pattern in _SPOKEN_OF.items():
        word = "question" if wanted == "input" else wanted
        if name := next((name for name, text in texts.items() if re.search(pattern, text, re.IGNORECASE)), ""):
            remarks[wanted] = f"the rubric speaks of the {word} ({name}), and there is none; give it as `{wanted}`"
    return remarks


def fields_without(candidates: Iterable[Candidate]) -> set[str]:
    """Return what none of *candidates* has, also under another name, or in a run: `input`, `context`, `reference`."""
    lacking = {"input", "context", "reference"}
    for one in candidates:
        if one.part:
            return set()
        lacking -= {"input"} if one.input else set()
        lacking -= {"reference"} if one.reference or one.variables else set()
        lacking -= {"context"} if one.context or one.files or one.variables or "context" in one.input.lower() else set()
    return lacking
