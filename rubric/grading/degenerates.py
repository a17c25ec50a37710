"""Candidates that no judge should see: empty ones, and the "master keys" that make judges say yes (arXiv 2507.08794)."""

from __future__ import annotations

import unicodedata

from rubric.candidates import Candidate

MASTER_KEYS = frozenset(
    {
        "answer",
        "final answer",
        "here is the answer",
        "here is the solution",
        "let me solve this problem step by step",
        "let us solve this problem step by step",
        "lets solve this problem step by step",
        "lets solve this step by step",
        "lets think step by step",
        "reasoning",
        "solution",
        "the answer is",
        "thought process",
        "thinking process",
        "denkprozess",
        "lass uns dieses problem schritt fur schritt losen",
        "losung",
        "processus de reflexion",
        "resolvons ce probleme etape par etape",
        "solution finale",
        "proceso de pensamiento",
        "resolvamos este problema paso a paso",
        "solucion",
        "processo di pensiero",
        "risolviamo questo problema passo dopo passo",
        "soluzione",
        "かいせつ",
        "解",
        "解説",
        "解答",
        "思考过程",
        "让我们一步一步地解决这个问题",
        "让我们逐步解决这个问题",
    }
)
"""Openers without content, folded as `_folded` folds them."""


def why_degenerate(candidate: Candidate) -> str:
    """Return why *candidate* says nothing, such as "is empty"; an empty text if it says something."""
    if candidate.tool_calls or candidate.file_changes or candidate.images:
        return ""
    if len(candidate.output) > 500:  # noqa: PLR2004 - the longest key is far shorter; this spares folding whole books
        return "" if any(c.isalnum() for c in candidate.output) else _without_letters(candidate.output)
    words = _folded(candidate.output)
    if not words:
        return _without_letters(candidate.output)
    if words in MASTER_KEYS:
        return "is an opener without content (a master key)"
    return ""


def _without_letters(text: str) -> str:
    """Symbols such as emoji can be an answer; punctuation and white space cannot."""
    if any(unicodedata.category(c)[0] == "S" for c in text):
        return ""
    return "has only punctuation" if any(unicodedata.category(c)[0] == "P" for c in text) else "is empty"


def _folded(text: str) -> str:
    """Return the letters and digits of *text*: no case, accents, punctuation or invisible characters."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    kept = [c if c.isalnum() else " " if unicodedata.category(c)[0] in "ZC" and c.isspace() else "" for c in plain]
    return " ".join("".join(kept).split())
