"""
Rows as the data of a page: plain JSON without defaults, with each criterion once, which `run_page/*.js` draws.

A large page holds its data compressed; the browser unpacks them itself.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from attrs import define, field, fields, has

from rubric.driving import Exchange
from rubric.embed import TOLERANCE, cut, shown
from rubric.results import Entry, Evidence, Row
from rubric.view import html
from rubric.view.cards import Shown, content_of, reply_of
from rubric.view.html import Html, tag
from rubric.view.quotes import pieces

PACKED = 2_000_000
"""Characters of data from which a page holds them compressed."""

LONGEST = 8_000
"""Characters of a text; an output has a limit of its own."""

NOBODY: Mapping[str, Any] = {}
"""What people say of each row by its name, where they say nothing: else the words by criterion, '' for the whole."""

_KINDS = {"✓": "met", "✕": "unmet", "!": "open", "?": "unsure", "–": "none"}


@define
class RunData:
    """Builds the data of a page from its rows; the criteria of all rubrics are numbered as they come."""

    criteria: list[dict[str, Any]] = field(factory=list)
    people: Mapping[str, Any] = field(default=NOBODY, kw_only=True)
    _numbers: dict[tuple[str, str], int] = field(factory=dict)

    def of(self, row: Row) -> dict[str, Any]:
        """Return *row* as plain data; a key is left out where its value is the default."""
        at = Shown(row, "")
        data = {name: _plain(getattr(row, name)) for name in (*_OF_ROWS, *_OF_MORE)}
        used = row.usage if row.usage.calls else None
        more = {
            "figure": _text(row.figure("–") or "–"),
            "needs": "" if row.status == "deferred" else _text(at.needs),
            "low": row.bounds[0] if row.score is None else None,
            "undecided": row.status == "ungraded" and _is_undecided(row),
            "output": self._output(at),
            "group": _text(getattr(row.result, "group", "")),
            "place": "" if row.place is None else _text(str(row.place)),
            "people": _plain(self.people.get(row.id)),
            "cost": used and used.cost,
            "usage": str(used or ""),
            "path": _plain(at.path),
            "entries": [self._entry(at, entry) for entry in row.entries],
            "costs": [self._number(row.entries[n]) for n in alone(row)],
            "calls": [call_of(one) for one in getattr(row.result, "exchanges", ())],
        }
        return _without_defaults(data | more)

    def _output(self, at: Shown) -> Any:
        """Return the text; with quotes or gaps, its pieces: a text, `[text, numbers]` or the size of a gap."""
        found = pieces(at.row.output, at.marks)
        if all(not piece.quoted and not piece.left_out for piece in found):
            return _text("".join(piece.text for piece in found), None)
        return [
            piece.left_out or ([_text(piece.text, None), piece.numbers] if piece.quoted else _text(piece.text, None))
            for piece in found
        ]

    def _number(self, entry: Entry) -> int:
        key = entry.id, entry.text
        if key not in self._numbers:
            self._numbers[key] = len(self.criteria)
            weight = min(entry.weight, 1e300)  # a browser knows no 10**400
            self.criteria.append({**_plain({n: getattr(entry, n) for n in ("id", "text", "answer")}), "weight": weight})
        return self._numbers[key]

    def _entry(self, at: Shown, entry: Entry, *, is_top: bool = True) -> dict[str, Any]:
        sign, _, word, _ = at.look(entry)
        data = {name: _plain(getattr(entry, name)) for name in (*_OF_ENTRIES, *(() if is_top else ("id", "text")))}
        more = {
            "look": _KINDS.get(sign, "low" if at.row.falls_short(entry) else "part"),
            "word": _text(word) if sign == "–" else "",
            "score": entry.contribution,
            "figure": _text(entry.figure),
            "quotes": [_quote(each, at.marks) for each in entry.evidence],
            "parts": [self._entry(at, each, is_top=False) for each in entry.parts],
            "votes": [self._entry(at, each) for each in entry.votes],
        }
        return _without_defaults(data | more) | ({"of": self._number(entry)} if is_top else {})


_OF_ROWS = ("id", "status", "verdict", "score", "reason", "input", "run", "gates", "warnings", "tags", "cell")
_OF_MORE = ("rubric", "judge", "vacuous", "votes")
_OF_ENTRIES = ("value", "level", "gated", "lack", "reason", "path", "judge")


def _plain(value: Any) -> Any:
    """Return *value* as plain data, its texts cut and with invisible characters written out."""
    if isinstance(value, str):
        return _text(value)
    if has(type(value)):
        return _without_defaults({each.name: _plain(getattr(value, each.name)) for each in fields(type(value))})
    if isinstance(value, Mapping):
        return {_text(str(name)): _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _is_undecided(row: Row) -> bool:
    """True if the missing verdicts decide whether *row* passes."""
    if row.result is not None:
        return row.result.passed is None
    low, high = row.bounds
    return not row.gates and (row.threshold is None or low < row.threshold <= high + TOLERANCE)


def call_of(one: Exchange) -> dict[str, Any]:
    """Return a request and its reply as plain data: the second tab of a candidate."""
    messages = [[str(message["role"]), _text(content_of(message), None)] for message in one.messages]
    reply, end = map(_text, reply_of(one.outcome))
    about = _text(", ".join(one.criteria))
    return _without_defaults(
        {"judge": _text(one.judge), "about": about, "messages": messages, "reply": reply, "end": end}
    )


def _quote(evidence: Evidence, marks: Mapping[Evidence, int]) -> dict[str, Any]:
    where = "" if evidence.where == "output" else _text(evidence.where)
    data = {"text": _text(evidence.text), "mark": marks.get(evidence), "where": where}
    return _without_defaults({**data, "missing": not evidence.verified})


def _without_defaults(data: dict[str, Any]) -> dict[str, Any]:
    return {
        key: value
        for key, value in data.items()
        if value is not None and value is not False and value not in ("", [], {})
    }


def _text(words: str, limit: int | None = LONGEST) -> str:
    """Return untrusted *words* with invisible characters written out."""
    words = words if limit is None else cut(words, limit)
    return words if words.isascii() and words.isprintable() else shown(words)


# -- what a criterion costs ------------------------------------------------------------------------------


def alone(row: Row) -> list[int]:
    """
    Return the places of the entries of which each alone costs *row* its pass: met, with all else as it is, it passes.

    The rule of the score is the rubric's. A report from a file does not name it: then each rule counts that gives this
    score and no pass, and all of them must agree. Where none does, as of some panels, nothing is known.
    """
    if row.status != "failed" or row.score is None or row.threshold is None:
        return []
    if row.needs not in (f"needs {row.threshold:.2f}", "needs 1.00") and (row.needs or row.votes):
        return []  # votes decide, or it has to stay below
    known = [n for n, entry in enumerate(row.entries) if entry.contribution is not None and entry.weight > 0]
    entries = [row.entries[n] for n in known]
    weights, values = [float(e.weight) for e in entries], [e.contribution or 0.0 for e in entries]
    gated = [e.gated for e in entries]
    if not sum(weights) or len(row.gates) != sum(gated):
        return []
    rules = [rule for rule in _rules(row) if abs(_score(rule, weights, values) - row.score) < 1e-6]  # noqa: PLR2004
    rules = [rule for rule in rules if any(gated) or not _reaches(rule, weights, values, row.threshold)]

    def would_pass(place: int) -> bool:
        changed = [*values[:place], 1.0, *values[place + 1 :]]
        return sum(gated) == gated[place] and all(_reaches(rule, weights, changed, row.threshold) for rule in rules)

    short = [n for n, value in enumerate(values) if gated[n] or value < 1 - TOLERANCE]
    return [known[n] for n in short if would_pass(n)] if rules else []


def _rules(row: Row) -> Iterable[str]:
    if row.result is None:
        return ("strict",) if row.needs == "needs 1.00" != f"needs {row.threshold:.2f}" else ("mean", "worst", "strict")
    rubric = row.result.rubric
    if rubric.strict:
        return ("strict",)
    return {"weighted_average": ("mean",), "min": ("worst",)}.get(rubric.aggregation, ())


def _score(rule: str, weights: Sequence[float], values: Sequence[float]) -> float:
    return min(values) if rule == "worst" else fmean(values, weights)


def _reaches(rule: str, weights: Sequence[float], values: Sequence[float], threshold: float | None) -> bool:
    if rule == "strict":
        return min(values) >= 1 - TOLERANCE
    return _score(rule, weights, values) >= (threshold or 0.0) - TOLERANCE


# -- into the page ---------------------------------------------------------------------------------------


def block(data: Mapping[str, Any]) -> Html:
    """Return *data* as an element that holds them as text, which no browser takes for markup or runs."""
    said = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(said) < PACKED:
        return tag("script", Html(said.replace("<", "\\u003c")), type="application/json", id="data")
    packed = base64.b64encode(zlib.compress(said.encode(), 6)).decode()
    return tag("script", Html(packed), type="application/json", id="data", data_packed="deflate")


def script() -> str:
    """Return the script of the page: its files, in their order."""
    return "".join(html.file(f"run_page/{name}.js") for name in ("data", "find", "text", "detail", "table", "page"))
