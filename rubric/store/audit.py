"""Count, export and verify the contents of a store. Nothing here changes the file."""

from __future__ import annotations

import json
import math
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from attrs import asdict, frozen

from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guided import guided
from rubric.internals.secrets import mask_settings, redact
from rubric.internals.text import cell, table
from rubric.store.cache_key import Request, digest
from rubric.store.database import load, unpack
from rubric.store.schema import PATIENCE, connect_to_read, explain, sql, words


@frozen
class ModelStats:
    """The calls of one model that have ended; its fields are as of `Stats`."""

    model: str
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float
    unknown: int

    @property
    def spent(self) -> str:
        """The cost as text."""
        return _dollars(self.cost, self.unknown)


@frozen(repr=False)
class Stats:
    """
    The contents of a store.

    Args:
        states: The number of calls in each state, such as `done` and `in_doubt`.
        requests: The number of different requests.
        calls: Requests that were sent for calls that have ended, retries included.
        prompt_tokens: Tokens sent with them, as far as they were reported.
        completion_tokens: Tokens received, as far as they were reported.
        cost: Their cost in US dollars, as far as it is known.
        unknown: Ended calls whose cost is not known.
        hits: Replies that were served instead of asked for, up to the last heartbeat of each session.
        saved_calls: Requests that those hits saved.
        saved_cost: The cost of those in US dollars, as far as it is known.
        models: The same for each model, the dearest first.
    """

    states: FrozenMap
    requests: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost: float
    unknown: int
    hits: int
    saved_calls: int
    saved_cost: float
    models: tuple[ModelStats, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        return {**asdict(self), "states": dict(self.states)}

    def __repr__(self) -> str:
        return f"<Stats: {self}>"

    def __str__(self) -> str:
        states = ", ".join(f"{number:,} {state}" for state, number in self.states.items()) or "no calls"
        return f"{states}; {self._requests_line()}; {self._hits_line()}"

    def _repr_markdown_(self) -> str:
        states = [(state, f"{number:,}", words("states").get(state, "")) for state, number in self.states.items()]
        models = [
            (m.model, f"{m.calls:,}", f"{m.prompt_tokens:,}", f"{m.completion_tokens:,}", m.spent) for m in self.models
        ]
        head = ("model", "requests", "tokens sent", "tokens back", "cost")
        parts = [
            f"- {cell(self._requests_line())}\n- {cell(self._hits_line())}",
            table(("calls", "how many", "means"), states),
        ]
        return "\n\n".join([*parts, table(head, models)])

    def _requests_line(self) -> str:
        tokens = f"{self.prompt_tokens:,} in, {self.completion_tokens:,} out tokens"
        return f"sent: {self.calls:,} requests, {tokens}, {_dollars(self.cost, self.unknown)}"

    def _hits_line(self) -> str:
        saved = f"{self.saved_calls:,} requests, ${self.saved_cost:,.4f}"
        return f"served from the store: {self.hits:,} times, which saved {saved}"


def _dollars(cost: float, unknown: int) -> str:
    return f"${cost:,.4f}" + (f", and {unknown:,} of unknown cost" if unknown else "")


@frozen
class Problem:
    """Something in a store that is not as it was written, with the number of its call (0: the file itself)."""

    call: int
    message: str

    def __str__(self) -> str:
        return f"call {self.call}: {self.message}" if self.call else self.message


@guided
def stats(path: str | Path) -> Stats:
    """
    Count the contents of the store at *path*.

    Raises:
        StoreError: There is none.
    """
    with _read(path) as connection:
        states = connection.execute("SELECT state, count(*) FROM calls GROUP BY state ORDER BY state").fetchall()
        (requests,) = connection.execute("SELECT count(DISTINCT key) FROM calls").fetchone()
        models = tuple(ModelStats(*row) for row in connection.execute(sql("sums")))
        served = "SELECT coalesce(sum(hits), 0), coalesce(sum(saved_calls), 0), coalesce(sum(saved_cost), 0.0)"
        hits, saved_calls, saved_cost = connection.execute(f"{served} FROM sessions").fetchone()
    counts = ("calls", "prompt_tokens", "completion_tokens", "unknown")
    sums = {name: sum(getattr(each, name) for each in models) for name in counts}
    saved = {"hits": hits, "saved_calls": saved_calls, "saved_cost": saved_cost}
    cost = math.fsum(each.cost for each in models)
    return Stats(FrozenMap(states), requests, cost=cost, models=models, **sums, **saved)


_ROWS = """
SELECT calls.id, key, model, skeletons.body, shares.body, nonce, state, kind, sent_at, ended_at, result FROM calls
LEFT JOIN texts AS skeletons ON skeletons.id = skeleton LEFT JOIN texts AS shares ON shares.id = shared
ORDER BY calls.id"""


@guided
def export(path: str | Path, *, newest_first: bool = False) -> Iterator[dict[str, Any]]:
    """
    Yield every call in the store at *path* as plain data, oldest first: request, reply and cost.

    Keys, tokens and passwords are masked everywhere.

    Raises:
        StoreError: There is none, or it is damaged.
    """
    with _read(path) as connection:
        for row in connection.execute(f"{_ROWS} DESC" if newest_first else _ROWS):
            id_, key, model, *_, state, kind, sent_at, ended_at, result = row
            request = _mask(json.loads(_text(row)))
            if isinstance(request.get("params"), dict):  # an early version may have stored secret parameters
                request["params"] = mask_settings(request["params"])
            ends = {"sent_at": sent_at, "ended_at": ended_at, "request": request}
            call = {"call": id_, "key": key.hex(), "model": model, "state": state, "kind": kind, **ends}
            yield {**call, **_mask(unpack(result, key.hex()) if result else {})}


@contextmanager
def _read(path: str | Path) -> Iterator[sqlite3.Connection]:
    with explain(Path(path)), closing(connect_to_read(Path(path), PATIENCE)) as connection:
        yield connection


def _text(row: tuple[Any, ...]) -> str:
    _, key, model, *bodies, nonce = row[:6]
    skeleton, shared = (zlib.decompress(body).decode("utf-8", "surrogatepass") if body else "" for body in bodies)
    return Request(key.hex(), model, skeleton, shared, nonce).text


def _mask(value: Any) -> Any:
    if isinstance(value, dict):
        return {redact(name): _mask(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_mask(item) for item in value]
    return redact(value) if isinstance(value, str) else value


@guided
def verify(path: str | Path) -> list[Problem]:
    """
    Return all problems of the store at *path*: damage to the file, changed requests, unreadable replies.

    The list is empty if the store is whole. Calls in doubt are not a problem.

    Raises:
        StoreError: There is none.
    """
    with _read(path) as connection:
        try:
            found = [Problem(0, line) for (line,) in connection.execute("PRAGMA integrity_check") if line != "ok"]
            found += [Problem(row[0], message) for row in connection.execute(_ROWS) if (message := _damage(row))]
        except Exception as error:  # noqa: BLE001 - the bytes of a damaged file can be anything
            found = [Problem(0, f"the file is damaged: {error}")]
    return found


def _damage(row: tuple[Any, ...]) -> str:
    _, key, *_, state, _, _, _, result = row
    try:
        if digest(_text(row)) != key.hex():
            return "the request is not the one of its key"
    except (zlib.error, ValueError, TypeError, AttributeError) as error:
        return f"the request cannot be read: {error}"
    try:
        if state in ("done", "unreadable", "failed", "replaced"):
            load(result or "", key.hex())
    except ValueError as error:
        return f"its reply cannot be read: {error}"
    return ""
