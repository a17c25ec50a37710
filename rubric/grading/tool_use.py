"""
The turns of a judge with tools: what it is offered, what its calls return, and how much one turn can add to a prompt.

Each bound is one that a plan counts with, so that no run takes more than its plan says: the turns, the calls of a turn
(`MOST_CALLS`), and the bytes of their results.
"""

from __future__ import annotations

import json

from attrs import evolve

from rubric.internals.text import visible
from rubric.values.artefacts import Material, listing, material_of, tools_for
from rubric.values.requests import MOST_CALLS, MOST_TOKENS, Ask
from rubric.values.rubrics import Rubric

MOST_SHOWN = 48_000
"""Bytes of the results of one turn. No tokeniser makes more tokens of a text than it has bytes."""

_A_CALL = 200  # tokens around a call and its result: ids, roles, names of fields
_LONGEST_ERROR = 2_500  # bytes of what a tool says of a call that it cannot carry out
_CUT = b"\n[cut; read on in the next turn]"
NO_ROOM = "error: the context has no room for the result; answer from what you have read"
_FULL = f"error: the results of one turn have at most {MOST_SHOWN:,} bytes; call it again in the next turn".encode()


def offer_tools(ask: Ask, rubric: Rubric, *, steps: bool = False) -> Ask:
    """Return *ask* with the tools and turns that *rubric* allows; *steps*: the run is read by its steps."""
    if not rubric.max_steps or ask.about is None:
        return ask
    files = bool(ask.about.files or ask.about.file_changes) if steps else bool(ask.about.artefacts)
    if not (files or steps):
        return ask
    # A turn that calls tools has no form, so no length either.
    tools, most = tools_for(files=files, steps=steps), ask.judge.max_tokens or MOST_TOKENS
    return evolve(ask, tools=tools, steps=rubric.max_steps, max_tokens=most)


def material_for(ask: Ask) -> Material:
    """Return what the judge of *ask* may read with its tools."""
    if ask.about is None or not ask.tools:
        return Material({})
    return material_of(ask.about, steps='"list_steps"' in ask.tools)


def continue_with_results(ask: Ask, wanted: str) -> Ask | None:
    """Return *ask* after the turn in which its model *wanted* tools, with their results; None if it is no call."""
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
    turns, left, material = [json.dumps(message)], MOST_SHOWN, material_for(ask)
    for id_, name, arguments in calls[:MOST_CALLS]:
        shown = visible(material.look(name, arguments))[0].encode("utf-8", "surrogatepass")
        if len(shown) > left:
            shown = shown[: left - len(_CUT)] + _CUT if left > len(_CUT) else _FULL
        left -= len(shown)
        content = shown.decode("utf-8", "ignore")
        turns.append(json.dumps({"role": "tool", "tool_call_id": id_, "content": content}))
    return evolve(ask, turns=(*ask.turns, *turns), steps=ask.steps - 1)


def answer_now(ask: Ask) -> Ask:
    """Return *ask*, which was too long with the results of its last turn, without them and without further turns."""
    turns = [json.loads(turn) for turn in ask.turns]
    last = max(place for place, turn in enumerate(turns) if turn.get("role") != "tool")
    for turn in turns[last + 1 :]:
        turn["content"] = NO_ROOM
    return evolve(ask, turns=tuple(map(json.dumps, turns)), steps=0)


def most_of_a_turn(ask: Ask) -> int:
    """Return how many tokens one turn can add to the prompt of *ask*: the model's own words, its calls, the results."""
    material = material_for(ask)
    texts = material.files
    found = MOST_SHOWN if material.steps else 0  # steps are read where there is much
    if not found:
        sizes = [_size(text) for text in (*texts.values(), listing(texts))]
        named = max(map(_size, texts), default=0) + 16  # a search names the file and the line before each
        found = sum(sizes) + sum(len(text.splitlines()) for text in texts.values()) * named
    results = min(MOST_SHOWN, MOST_CALLS * max(found, _LONGEST_ERROR)) + MOST_CALLS * len(_FULL)
    return results + 2 * ask.max_tokens + MOST_CALLS * _A_CALL


def _size(text: str) -> int:
    return len(visible(text)[0].encode("utf-8", "surrogatepass"))
