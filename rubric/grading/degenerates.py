"""Candidates that no judge should see: empty ones, and "master keys" that make judges say yes (arXiv 2507.08794)."""

from __future__ import annotations

import unicodedata
from itertools import islice

from rubric.candidates import Candidate

_OPENERS = (
    # English
    "answer", "final answer", "here is my answer", "here is the answer", "here is the solution", "here's my solution",
    "let me solve this problem step by step", "let me think", "let me think step by step", "let's solve this",
    "let's solve this problem step by step", "let's solve this step by step", "let's think step by step",
    "let us solve this problem step by step", "reasoning", "solution", "the answer is", "the final answer is",
    "the solution is", "thinking process", "thought process",
    # German, French, Spanish, Italian, Portuguese
    "denkprozess", "die antwort lautet", "lass uns dieses problem schritt für schritt lösen", "lösung",
    "processus de réflexion", "résolvons ce problème étape par étape", "réponse", "solution finale",
    "proceso de pensamiento", "resolvamos este problema paso a paso", "respuesta", "solución",
    "processo di pensiero", "risolviamo questo problema passo dopo passo", "risposta", "soluzione",
    "processo de pensamento", "resposta", "solução", "vamos resolver este problema passo a passo",
    # Russian, Japanese, Chinese, Korean, Hindi, Arabic
    "давайте решим эту задачу шаг за шагом", "решение", "ход мыслей",
    "かいせつ", "解", "解説", "解答", "ステップバイステップで考えましょう",
    "思考过程", "答案", "让我们一步一步地解决这个问题", "让我们逐步解决这个问题",
    "풀이", "해설", "समाधान", "الحل",
)  # fmt: skip

_LONGEST_OPENER = 100
"""Letters; whatever has more of them says something."""

_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol, by their category, of which nothing is to be seen."""


def why_degenerate(candidate: Candidate) -> str:
    """Return why *candidate* says nothing, such as "is empty"; an empty text if it says something."""
    if candidate.tool_calls or candidate.file_changes or candidate.images:
        return ""
    words = _letters(candidate.output)
    if not words:
        return _without_letters(candidate.output)
    return "is an opener without content (a master key)" if words in MASTER_KEYS else ""


def _letters(text: str) -> str:
    """Return the first letters and digits of *text*: no case, accents, spaces, punctuation or invisible characters."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(islice((c for c in plain if c.isalnum() and c not in _BLANKS), _LONGEST_OPENER))


MASTER_KEYS = frozenset(map(_letters, _OPENERS))
"""Openers without content, as `_letters` leaves them."""


def _without_letters(text: str) -> str:
    """Symbols such as emoji and + can be an answer; punctuation and white space cannot."""
    seen = [c for c in text if c not in _BLANKS]
    if any(_is_symbol(c) for c in seen):
        return ""
    return "has only punctuation" if any(unicodedata.category(c)[0] in "PS" for c in seen) else "is empty"


def _is_symbol(char: str) -> bool:
    """Emoji count by their place too: a Python does not know those that are younger than itself."""
    drawn = unicodedata.category(char) in ("So", "Sm", "Sc") or "\U0001f000" <= char <= "\U0001faff"
    return drawn and char not in "|~"
