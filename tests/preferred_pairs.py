"""Preferred and rejected answers, and a model that writes criteria and judges answers by their marks."""

from __future__ import annotations

import json
import random
from typing import Any

from .servers import nonce_of, prompt_of

# Answers are marked with what is true of them; the scripted judge reads the marks, as a real one reads the answer.
CRITERIA: list[dict[str, Any]] = [
    {"id": "names-date", "text": "Names the day of the refund [d]", "weight": 2},
    {"id": "names-sum", "text": "Names the sum [s]", "weight": 1},
    {"id": "is-polite", "text": "Is written in polite words [p]", "weight": 1},
    {"id": "is-short", "text": "Has two sentences at most [r]", "weight": 1},
    {"id": "same-sum", "text": "names the SUM [s]!", "weight": 1},
]


def pairs_of_marks(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Preferred answers name day and sum, rejected ones are short; all are polite."""
    chance = random.Random(seed)
    some = [(chance.random() < 0.9, chance.random() < 0.1) for _ in range(n)]
    return [
        (f"Answer {i} better [p][d]{'[s]' if good else ''}", f"Answer {i} worse [p][r]{'[s]' if bad else ''}")
        for i, (good, bad) in enumerate(some)
    ]


def write_or_judge(body: dict[str, Any]) -> str:
    prompt = prompt_of(body)
    if "You write rubrics" in prompt:
        return json.dumps({"criteria": CRITERIA[:4]})
    criterion = prompt[prompt.rindex("[") :][:3]
    verdict = {"reason": "r", "verdict": criterion in prompt[: prompt.rindex("[")]}
    return json.dumps(verdict | ({"nonce": nonce_of(body)} if nonce_of(body) else {}))
