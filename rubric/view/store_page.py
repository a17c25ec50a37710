"""The calls of a store as a page for `rubric view`: searched, newest first, with messages and raw replies."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import frozen

from rubric.embed import clean, shorten
from rubric.results import Row
from rubric.store import export, stats
from rubric.view import html
from rubric.view.cards import exchange
from rubric.view.run_data import block

SIZE = 50
"""Calls on a page."""

_STATES = {"done": "passed", "unreadable": "ungraded", "failed": "failed", "in_doubt": "ungraded", "sent": "deferred"}
_ABOUT = re.compile(r"\nCriterion\b[^\n]*:\n+([^\n]+)")
"""The text of a criterion in our prompts; the last one, since a candidate may hold the same words before it."""


@frozen
class Query:
    """A search: calls with all *words*, in any letter case, and this *state*, without the *start* newest of them."""

    words: str = ""
    state: str = ""
    start: int = 0


def search(path: Path, query: Query) -> tuple[list[dict[str, Any]], bool]:
    """Return the calls of one page, newest first, and whether there are more; raise `StoreError` without a store."""
    words = query.words.casefold().split()

    def matches(call: dict[str, Any]) -> bool:
        if query.state and call["state"] != query.state:
            return False
        said = "\n".join((call["model"], *(str(m[1]) for m in _messages(call)), *_reply(call))).casefold()
        return all(word in said for word in words)

    found = [*islice(filter(matches, export(path, newest_first=True)), query.start, query.start + SIZE + 1)]
    return found[:SIZE], len(found) > SIZE


def _messages(call: dict[str, Any]) -> list[Any]:
    return [pair for pair in call["request"].get("messages", []) if isinstance(pair, list) and len(pair) > 1]


def _reply(call: dict[str, Any]) -> tuple[str, str]:
    """Return the raw reply of *call*, and how it ended."""
    reply, failure = call.get("reply") or {}, call.get("failure") or {}
    if failure:
        return str(failure.get("message", "")), str(failure.get("kind", "failed"))
    finish = str(reply.get("finish", "stop"))
    return str(reply.get("text") or reply.get("refusal") or ""), "" if finish == "stop" else finish


def page(path: Path, query: Query) -> str:
    """Return the calls that *query* finds as a page, with a form for the next search; raise as `search` does."""
    found, more = search(path, query)
    turns = [("newer", max(query.start - SIZE, 0))] if query.start else []
    turns += [("older", query.start + SIZE)] if more else []
    counts = stats(path)
    more_of = {"name": path.name, "counts": counts, "query": query, "turns": turns, "kinds": _STATES}
    body = html.render("store_page.html", calls=[(call, *_row_of(call)) for call in found], **more_of)
    return html.page(f"{path.name}: {sum(counts.states.values()):,} calls", body, has_form=True)


def calls_page(path: Path, row: Row) -> str:
    """Return the calls in the store at *path* about the candidate of *row* as data, for the script of another page."""
    said = [words for each in (row.output, row.input) if (words := each.strip())]
    lines = [re.compile(rf"(?:^|\n)\s*{re.escape(words)}\s*(?:\n|$)") for words in said]
    found = []
    for call in export(path):
        messages = [(str(role), str(content)) for role, content, *_ in _messages(call)]
        text = "\n".join(content for _, content in messages)
        if said and all(words in text and line.search(text) for words, line in zip(said, lines, strict=True)):
            about, reply, end, when, usage, _ = _row_of(call)
            cost = "" if usage["cost"] is None else f", ${usage['cost']:.6f}"
            more = f"{when}, {usage['prompt_tokens']:,} tokens in, {usage['completion_tokens']:,} out{cost}"
            told = {"judge": call["model"], "about": about, "reply": reply, "end": end or call["state"], "more": more}
            found.append({**told, "messages": messages})
    return html.page(row.id, block({"calls": found}))


def _row_of(call: dict[str, Any]) -> tuple[Any, ...]:
    """Return what a page shows of *call*: its criterion, reply and end, time, usage, and its messages folded."""
    messages = [{"role": str(pair[0]), "content": str(pair[1])} for pair in _messages(call)]
    last = messages[-1]["content"] if messages else ""
    matches = _ABOUT.findall(last)
    about = shorten(matches[-1] if matches else last[-200:], 160)
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "cost": None}
    usage |= (call.get("reply") or call.get("failure") or {}).get("usage") or {}
    when = call["sent_at"] and datetime.fromtimestamp(call["sent_at"], UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    said, end = _reply(call)
    folded = exchange(f"{len(messages)} messages", "the whole reply", messages, (said, end))
    return about, clean(said), end, when, usage, folded
