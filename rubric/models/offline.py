"""
A judge without a model: it counts words. For first steps and for tests of plumbing; it knows nothing of meaning.

The score of a criterion is the share of its content words that occur in the candidate, and yes is half of them or
more. That holds for every polarity: a guard is "found" when its words occur, and a fact is "not contradicted" always,
since words alone contradict nothing.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any, cast

from rubric.values.answers import Choices, JudgeAnswer
from rubric.values.requests import Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rubric.values.criteria import Criterion
    from rubric.values.requests import Ask


OFFLINE = "offline"
"""The name by which this judge is asked for."""

_HALF = 0.5
_WORD = re.compile(r"[^\W_]+")
_SENTENCE = re.compile(r"[^.!?\n]*[.!?\n]*")
_SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ied", "ies", "ed", "es", "ly", "s", "e")
_SHORTEST_STEM = 3

_STOP_WORDS = frozenset(files("rubric.models").joinpath("stop_words.txt").read_text("utf-8").split())


class OfflineModel:
    """Answers any ask at once, at no cost, and the same every time."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the JSON that the ask's schema describes, or a text that the judge's reader takes."""
        verdicts = [_verdict(criterion, ask) for criterion in ask.criteria]
        if ask.judge.reader is None:
            body: dict[str, Any] = {"verdicts": verdicts} if ask.many else verdicts[0]
            text = json.dumps(_fit(body, ask.schema), ensure_ascii=False)
        else:
            from rubric.values.readers import write_reply  # noqa: PLC0415 - few judges have a reader

            text = write_reply(ask.judge.reader, verdicts[0]["score"])
        return Reply(text, usage=Usage(calls=1, cost=0.0), unsent=("an image",) if ask.media else ())


def _verdict(criterion: Criterion, ask: Ask) -> dict[str, Any]:
    asked = criterion.text.partition("\nThe candidate is two responses")[0]
    wanted, there = _stems(asked), _stems(ask.candidate)
    found = wanted & there
    share = len(found) / len(wanted) if wanted else 0.0
    if criterion.polarity == "contradiction":
        share = 1.0
    if isinstance(criterion.answer, Choices) and {one.label for one in criterion.answer.choices} == {"1", "2", "tie"}:
        sides = ask.candidate.removeprefix("response").partition("\nresponse 2")[::2]  # of a pair, below their heads
        first, second = (len(_stems(side) & wanted) * (_HALF - ("must NOT hold" in asked)) for side in sides)
        share = _HALF + ((first > second) - (first < second)) / 2
    value: bool | float | str = cast("JudgeAnswer", criterion.answer).nearest(share)
    if isinstance(value, float):
        value = round(value, 4)
    sentences = (sentence.strip() for sentence in _SENTENCE.findall(ask.candidate))
    span = max(sentences, key=lambda sentence: len(_stems(sentence) & wanted), default="")
    return {
        "id": criterion.id,
        "reason": f"{len(found)} of {len(wanted)} words of the criterion occur in the candidate.",
        "evidence": [span] if span and criterion.id in ask.quoted else [],
        "verdict": value,
        "score": value,
        "choice": value,
        "pass": share >= _HALF,
        "nonce": ask.nonce,
    }


def _fit(body: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return *body* in the order of *schema*, with the keys that it asks for and no others."""
    properties, fitted = schema.get("properties") or {key: {} for key in body}, {}
    for key, shape in properties.items():
        if key not in body:
            continue
        items = shape.get("items", {})
        fitted[key] = [_fit(item, items) for item in body[key]] if "properties" in items else body[key]
    return fitted


def _stems(text: str) -> set[str]:
    stems = set()
    for word in map(str.lower, _WORD.findall(text)):
        if word not in _STOP_WORDS:
            ending = next((s for s in _SUFFIXES if word.endswith(s) and len(word) - len(s) >= _SHORTEST_STEM), "")
            stems.add(word.removesuffix(ending))
    return stems
