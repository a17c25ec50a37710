"""
The check `Similar`: the ask for the embeddings of its texts, and what they say about the output.

The ask goes the way of all asks: it is kept in the store, counted in budgets and limits, and tried again. Its reply is
the list of vectors, as JSON, in the order of its messages.

A rubric may come from a file, and a file chooses nobody to call: a model's name in a check is a proposal, and the judge
of the run says which model makes embeddings (`Judge(embedder=...)`). A function in a check is code, and is called.

The score of a cosine or a dot product is the product itself, between 0 and 1; that of a Euclidean distance *d* is
1 / (1 + d). A distance passes up to the threshold, the others from it, as in promptfoo (`matchers/similarity.ts`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from operator import mul
from typing import Any, cast

from rubric.internals.frozen_map import FrozenMap
from rubric.values.checks import Similar
from rubric.values.criteria import Criterion
from rubric.values.findings import Finding, Scored, Unjudged
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Outgoing, Reply

_EPSILON = 2.0**-52
Vector = Sequence[float]


def embedding_ask(criterion: Criterion, check: Similar, output: str, judge: Judge) -> Ask | Failure:
    """Return the ask for vectors of *output* and the texts of *check*; a failure where nothing embeds them."""
    model = check.model if callable(check.model) else judge.embedder
    if model is None:
        cure = f"Judge(..., embedder={check.model!r}), at a terminal --judge MODEL --embedder {check.model}"
        message = f"a rubric does not choose whom to ask for embeddings; name the model for this run: {cure}"
        return Failure("unsupported", message, criterion=criterion.id)
    return Ask(
        Judge(cast("Any", model), repairs=0, max_tokens=1),
        tuple(Outgoing("user", (text,)) for text in (output, *check.texts)),
        FrozenMap(),
        (criterion,),
        candidate=output,
        max_tokens=1,
        embeds=True,
    )


def compare(ask: Ask, got: Reply | Failure) -> Finding:
    """Return the finding of the criterion of *ask*, whose vectors are *got*."""
    (criterion,) = ask.criteria
    check = criterion.answer
    assert isinstance(check, Similar)  # noqa: S101 - as `embedding_ask` makes them
    if isinstance(got, Failure):
        return Unjudged(criterion.id, Failure(got.kind, got.message, judge=got.judge, criterion=criterion.id))
    vectors = _vectors(got.text or "", 1 + len(check.texts))
    if vectors is None:
        message = f"expected {1 + len(check.texts)} vectors of numbers, of one length"
        return Unjudged(criterion.id, Failure("bad_response", message, criterion=criterion.id))
    is_distance = check.measure == "euclidean"
    found = [_MEASURES[check.measure](vectors[0], vector) for vector in vectors[1:]]
    best = min(found) if is_distance else max(found)
    passed = best <= check.threshold + _EPSILON if is_distance else best >= check.threshold - _EPSILON
    score = 1 / (1 + best) if is_distance else min(max(best, 0.0), 1.0)
    nearest = f" to the nearest of {len(found)} texts" if len(found) > 1 else ""
    what = "distance" if is_distance else "similarity"
    reason = (
        f"{check.measure} {what}{nearest} {best:.2f}, passes {'up to' if is_distance else 'from'} {check.threshold:g}"
    )
    return Scored(criterion.id, score, score, reason, flag=passed)


def _vectors(text: str, count: int) -> list[Vector] | None:
    """Return the vectors that *text* has; None if it has not *count* of them, of one length and of finite numbers."""
    try:
        found = json.loads(text)
        vectors: list[Vector] = [[float(number) for number in vector] for vector in found]
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
    sizes = {len(vector) for vector in vectors}
    if len(vectors) != count or len(sizes) != 1 or 0 in sizes:
        return None
    return vectors if all(map(math.isfinite, (number for vector in vectors for number in vector))) else None


def _dot(one: Vector, other: Vector) -> float:
    return math.fsum(map(mul, one, other))


def _cosine(one: Vector, other: Vector) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return _dot(one, other) / lengths if lengths else 0.0


_MEASURES = {"cosine": _cosine, "dot": _dot, "euclidean": math.dist}
