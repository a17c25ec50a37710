"""Assertions written as one text, as in the `__expected` columns of a CSV file: `contains: hello`."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["KNOWN", "assertion_of"]

KNOWN = frozenset({
    "agent-rubric", "answer-relevance", "bleu", "classifier", "contains", "contains-all", "contains-any",
    "contains-html", "contains-json", "contains-sql", "contains-xml", "context-faithfulness", "context-recall",
    "context-relevance", "conversation-relevance", "cost", "equals", "factuality", "finish-reason", "g-eval", "gleu",
    "guardrails", "icontains", "icontains-all", "icontains-any", "is-html", "is-json", "is-refusal", "is-sql",
    "is-valid-function-call", "is-valid-openai-function-call", "is-valid-openai-tools-call", "is-xml", "javascript",
    "latency", "levenshtein", "llm-rubric", "meteor", "model-graded-closedqa", "model-graded-factuality",
    "moderation", "perplexity", "perplexity-score", "pi", "python", "regex", "rouge-n", "ruby", "search-rubric",
    "similar", "similar:cosine", "similar:dot", "similar:euclidean", "starts-with", "ends-with", "tool-call-f1",
    "trace-error-spans", "trace-span-count", "trace-span-duration", "webhook", "word-count", "select-best",
    "max-score", "human", "assert-set",
})  # fmt: skip
"""The assertion types that promptfoo documents, without `not-`."""

_TYPES = "|".join(sorted(map(re.escape, KNOWN), key=len, reverse=True))
_SHORT = re.compile(rf"(not-)?({_TYPES})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL)
_JUDGED = ("grade:", "llm-rubric:")
_SCRIPTED = ("javascript:", "fn:", "eval:")
_LISTS = frozenset({"contains-all", "contains-any", "icontains-all", "icontains-any"})


def assertion_of(text: str) -> dict[str, Any]:
    """
    Return the assertion that *text* stands for: `type: value`, `type(threshold): value`, or the text to be equal to.

    As in promptfoo, what follows `grade:` and `llm-rubric:` is not trimmed.
    """
    for prefix in _JUDGED:
        if text.startswith(prefix):
            return {"type": "llm-rubric", "value": text[len(prefix) :]}
    for prefix in _SCRIPTED:
        if text.startswith(prefix):
            return {"type": "javascript", "value": text[len(prefix) :]}
    if text.startswith("file://"):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    match = _SHORT.fullmatch(text)
    return _typed(match) if match else {"type": "equals", "value": text}


def _typed(match: re.Match[str]) -> dict[str, Any]:
    negation, kind, threshold, value = match.groups()
    made: dict[str, Any] = {"type": f"{negation or ''}{kind}"}
    if value is not None and value.strip():
        trimmed = value.strip()
        made["value"] = [part.strip() for part in trimmed.split(",")] if kind in _LISTS else trimmed
    if threshold is not None:
        made["threshold"] = float(threshold)
    return made
