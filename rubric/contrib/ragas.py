"""
Rubrics of ragas: a text for each score, for all samples or for each, and the definitions of its critics.

| in the file                                  | here                                                            |
|----------------------------------------------|-----------------------------------------------------------------|
| `score1_description` .. `score5_description` | anchors of one criterion; the lowest score is 0, the highest 1  |
| `name`, `definition`                         | a yes/no criterion: an `AspectCritic`                           |
| samples with `rubrics` of their own          | a case each, with `user_input`, `response`, `reference`         |
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rubric import Case, Criterion, Levels, Rubric, Suite
from rubric.contrib.signed_weights import examples, warn_of_pass_mark
from rubric.embed import SURE, Cursor, Format, Loading, Notes
from rubric.formats.recognition import STRONG, Seen, finds, maps

SCORE = re.compile(r"score(\d{1,4})_description", re.ASCII)
_SAMPLE = {"input": "user_input", "output": "response", "reference": "reference"}
_DESCRIPTIONS = tuple(f"score{score}_description" for score in range(11))
_TEXT = "How good is the answer, by the descriptions of the scores?"


def read(notes: Notes, loading: Loading) -> Suite:
    """Return the suite in the document of *notes*."""
    root = Cursor.of(notes, loading)
    holders = examples(root, "a rubric, or a list of samples with rubrics")
    cases = [case for number, at in enumerate(holders, 1) if (case := _case(at, number)) is not None]
    warn_of_pass_mark(root)
    return Suite(cases=cases, format="ragas")


def _case(at: Cursor, number: int) -> Case | None:
    if not at.mapping("a rubric, or a sample (a mapping with rubrics)"):
        return None
    _check_keys(at, ("name", "definition", "rubrics", *_SAMPLE.values()))
    name = at.value.get("name")
    name = name if isinstance(name, str) and name.strip() else ""
    criterion: Criterion | None
    if at.has("definition"):
        text = at["definition"].text("what the critic looks for")
        criterion = at.built(Criterion, text, id=name or "critic") if text else None
    else:
        holder = at["rubrics"] if at.has("rubrics") else at
        criterion = _scored(holder, name)
    if criterion is None:
        return None
    values: dict[str, Any] = {"id": name or f"sample-{number}", **at.given(_SAMPLE, blank=_SAMPLE.values())}
    return at.made(Case, {**values, "rubric": Rubric(criteria=[criterion]), "place": at.place}, _SAMPLE)


def _check_keys(at: Cursor, known: tuple[str, ...] = ()) -> None:
    """Note each key that is neither *known* nor a description; one that begins like a description is an error."""
    for key, part in at.items():
        if str(key).startswith("score") and not SCORE.fullmatch(str(key)):
            part.error(f"unknown key {str(key)!r}; a level is score1_description, score2_description, ...", key=True)
    at.reads((*known, *_DESCRIPTIONS), quiet=[key for key in at.value if str(key).startswith("score")])


def _scored(at: Cursor, name: str) -> Criterion | None:
    if not at.mapping("descriptions of scores (score1_description, ...)"):
        return None
    if at.step == "rubrics":
        _check_keys(at)
    found = {int(match[1]): part for key, part in at.items() if (match := SCORE.fullmatch(str(key)))}
    texts = {score: found[score].text("the description of a score") for score in sorted(found)}
    if len(texts) < 2 or None in texts.values():  # noqa: PLR2004
        if None not in texts.values():
            at.error("a rubric describes two scores at least: score1_description, score2_description, ...")
        return None
    levels = at.built(Levels, texts)
    return None if levels is None else at.built(Criterion, _TEXT, id=name or "quality", answer=levels)


# -- recognition --------------------------------------------------------------------------------------------------


def _scored_rubrics(seen: Seen) -> Iterator[Any]:
    """Yield the keys of the file, of its samples and of their rubrics that describe a score."""
    for holder in (seen.keys, *seen.tests, *maps(seen.under("examples"))):
        rubrics = holder.get("rubrics", holder)
        yield from (key for key in rubrics if SCORE.fullmatch(str(key))) if isinstance(rubrics, Mapping) else ()


_EVIDENCE = (
    (SURE, finds("it describes scores one by one", _scored_rubrics)),
    (STRONG, lambda seen: "it defines a critic" if {"name", "definition"} <= seen.keys.keys() else ""),
)

FORMAT = Format("ragas", read, evidence=_EVIDENCE)
