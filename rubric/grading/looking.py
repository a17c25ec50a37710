"""
The turns of a judge with tools: what it is offered, what its calls return, and how much one turn can add to a prompt.

Each bound is one that a plan counts with, so that no run takes more than its plan says: the turns, the calls of a turn
(`MOST_CALLS`), and the bytes of their results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from attrs import evolve

from rubric.internals.text import visible
from rubric.values.artefacts import TOOLS, listing, look
from rubric.values.requests import MOST_CALLS, MOST_TOKENS, Ask
from rubric.values.rubrics import Rubric

MOST_SHOWN = 48_000
"""Bytes of the results of one turn. No tokeniser makes more tokens of a text than it has bytes."""

_A_CALL = 200  # tokens around a call and its result: ids, roles, names of fields
_LONGEST_ERROR = 2_500  # bytes of what a tool says of a call that it cannot carry out
_CUT = b"\n[cut; read on from a later line]"
_FULL = f"error: the results of one turn have at most {MOST_SHOWN:,} bytes; call it again in the next turn".encode()


def offering(ask: Ask, rubric: Rubric) -> Ask:
    """Return *ask* with the tools and the turns that *rubric* allows, if there is anything to read."""
    if not rubric.max_steps or ask.about is None or not ask.about.artefacts:
        return ask
    # A turn that calls tools has no form, so no length either.
    return evolve(ask, tools=TOOLS, steps=rubric.max_steps, max_tokens=ask.judge.max_tokens or MOST_TOKENS)


def continued(ask: Ask, wanted: str, texts: Mapping[str, str]) -> Ask | None:
    """Return *ask* after the turn in which its model *wanted* tools, with their results; None where that is no call."""
    try:
        message = json.loads(wanted)
        calls = [
            (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message["tool_calls"]
        ]
    except (ValueError, TypeError, KeyError, RecursionError):  # of a model of the user's own
        return None
    if not calls or not all(isinstance(part, str) for call in calls for part in call):
        return None
    message["tool_calls"] = message["tool_calls"][:MOST_CALLS]
    turns, left = [json.dumps(message)], MOST_SHOWN
    for id_, name, arguments in calls[:MOST_CALLS]:
        shown = visible(look(texts, name, arguments))[0].encode("utf-8", "surrogatepass")
        if len(shown) > left:
            shown = shown[: left - len(_CUT)] + _CUT if left > len(_CUT) else _FULL
        left -= len(shown)
        content = shown.decode("utf-8", "ignore")
        turns.append(json.dumps({"role": "tool", "tool_call_id": id_, "content": content}))
    return evolve(ask, turns=(*ask.turns, *turns), steps=ask.steps - 1)


def most_of_a_turn(ask: Ask) -> int:
    """Return how many tokens one turn can add to the prompt of *ask*: the model's own words, its calls, the results."""
    texts = ask.about.artefacts if ask.about is not None else {}
    sizes = [_size(text) for text in (*texts.values(), listing(texts))]
    named = max(map(_size, texts), default=0) + 16  # a search names the file and the line before each
    found = sum(sizes) + sum(len(text.splitlines()) for text in texts.values()) * named
    results = min(MOST_SHOWN, MOST_CALLS * max(found, _LONGEST_ERROR)) + MOST_CALLS * len(_FULL)
    return results + 2 * ask.max_tokens + MOST_CALLS * _A_CALL


def _size(text: str) -> int:
    return len(visible(text)[0].encode("utf-8", "surrogatepass"))
