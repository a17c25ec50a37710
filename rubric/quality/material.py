"""
Gather what a rubric is generated from: a case, sources, and pairs of a preferred and a rejected answer.

Pairs of one task, or with an answer in common, are one unit. The writer is shown the first half of the units, and the
rest is held out to prove the rubric.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from rubric import Anchor, Candidate, DefinitionError
from rubric.embed import fields, read_text
from rubric.grading.prompting import text_of_candidate
from rubric.quality.drafting import Material, material
from rubric.suites.cases import Case
from rubric.trust.pairwise.preference import Pair, pairs_of, text_of_response

Source = str | Path | Candidate | Anchor
"""A text, the `Path` of one, a transcript, or an answer that a person scored."""

_TITLE = re.compile(r"[\w .()-]{1,80}")
"""A name of a source that is written down beside its digest; any other name is untrusted text like the source."""

_MOST_SHOWN = 8
"""Pairs that the writer is shown, as its examples; all others are left to prove the rubric."""


@frozen
class Gathered:
    """What a rubric is generated from: *material* for the writer, *pairs* for the judge, digests of the *sources*."""

    material: Material
    name: str
    sources: Mapping[str, str]
    pairs: Sequence[Pair] = ()
    groups: Sequence[int] = ()
    shared: Mapping[str, str] = field(factory=dict)

    @property
    def sides(self) -> list[Candidate]:
        """The preferred and the rejected answer of each pair in turn, with what the case has for all of them."""
        return [_with_shared(side, self.shared) for pair in self.pairs for side in (pair.a, pair.b)]

    @property
    def answers(self) -> list[Candidate]:
        """The answers to grade, each once."""
        return [*dict.fromkeys(self.sides)]


def gather(
    case: Case | str | None,
    sources: Iterable[Source] = (),
    preferred: Iterable[Any] | Path | None = None,
    *,
    input: str = "",
    references: Iterable[str] = (),
    examples: Iterable[Anchor] = (),
    name: str = "",
) -> Gathered:
    """Return what a rubric is generated from; raise `DefinitionError` if there is nothing, or something is wrong."""
    if isinstance(sources, str | bytes | Path | Candidate | Anchor | Mapping) or not isinstance(sources, Iterable):
        raise fields.refuse("sources", sources, "a list of texts, Paths, Candidates and Anchors")
    if case is not None and not isinstance(case, Case | str):
        raise fields.refuse("case", case, "a description of a good answer, or a Case")
    told = [(f"source {n}", *_read_source(n - 1, source)) for n, source in enumerate(sources, 1)]
    anchors = [one for _, _, one in told if isinstance(one, Anchor)]
    told = [(number, title if _TITLE.fullmatch(title) else "", one) for number, title, one in told]
    titles = [title for _, title, _ in told]
    texts = {
        title if title and titles.count(title) == 1 else f"{number} {title}".strip(): one
        for number, title, one in told
        if isinstance(one, str)
    }
    outcome_, shared = case if isinstance(case, str) else "", {"input": input}
    if isinstance(case, Case):
        asked = case.input or "\n".join(f"{message.role}: {message.content}" for message in case.messages)
        outcome_, name = case.rubric.text, name or case.id
        shared = {"input": input or asked, "reference": case.reference, "context": case.context}
        texts |= {"context": case.context} if case.context.strip() else {}
        references = [*references, *([case.reference] if case.reference.strip() else [])]
    pairs = _pairs(preferred)
    groups = units_of(pairs)
    shown = tuple(_pairs_to_show(pairs, groups))
    more: dict[str, Any] = {"sources": tuple(texts.values()), "pairs": shown}
    one = material(outcome_, shared["input"], references, [*examples, *anchors], **more)
    named = {"outcome": outcome_, "input": shared["input"], **texts}
    named |= {f"reference {n}": text for n, text in enumerate(one.references, 1)}
    digests = {title: digest(text) for title, text in named.items() if text.strip()}
    return Gathered(one, name, digests, pairs, groups, shared)


def digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _read_source(index: int, source: object) -> tuple[str, str | Anchor]:
    """Return the name of a source, if it has one, and its text."""
    match source:
        case str():
            fields.refuse_path(f"sources[{index}]", source, f"give Path({source!r})")
            return "", source
        case Path():
            return source.name, read_text(source)
        case Anchor():
            return "", source
        case Candidate():
            return source.key, text_of_candidate(source)
    raise fields.refuse(f"sources[{index}]", source, "a text, a Path, a Candidate or an Anchor")


def _with_shared(side: Candidate, shared: Mapping[str, str]) -> Candidate:
    """Return an answer with what the case has for all of them."""
    missing: dict[str, Any] = {name: text for name, text in shared.items() if text and not getattr(side, name)}
    return evolve(side, **missing, key="", group="") if missing or side.key or side.group else side


# -- pairs ---------------------------------------------------------------------------------------------------


def _pairs(preferred: Any) -> list[Pair]:
    if preferred is None:
        return []
    found, _ = pairs_of(preferred, field="preferred", row_of=_row)
    for index, pair in enumerate(found):
        if pair.a.output == pair.b.output and pair.a == evolve(pair.b, key=pair.a.key):
            raise DefinitionError(f"preferred[{index}]", "both answers are the same; leave the pair out")
    if not found:
        raise DefinitionError("preferred", "expected a pair at least, got none; leave it out to write criteria untried")
    return found


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the names of a data set of preferences (TRL's `prompt`, `chosen`, `rejected`) as a pair."""
    chosen = next((row[name] for name in ("chosen", "preferred") if row.get(name) is not None), None)
    if chosen is None or row.get("rejected") is None:
        known = ", ".join(map(repr, row)) or "none"
        raise DefinitionError("", f"expected a mapping with chosen and rejected, got the keys {known}")
    asked = row.get("input") or row.get("prompt") or ""
    (before, a), (_, b) = _split_chat(chosen), _split_chat(row["rejected"])
    more = {name: row[name] for name in ("reference", "context", "key", "group") if row.get(name)}
    return {"a": a, "b": b, "input": _split_chat(asked)[1] if not isinstance(asked, str) else asked or before, **more}


def _split_chat(value: Any) -> tuple[str, Any]:
    """Return the first message of a chat, and its last; any other answer by itself."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "content" in one for one in value):
        return (str(value[0]["content"]) if len(value) > 1 else ""), str(value[-1]["content"])
    return "", value


def units_of(pairs: Sequence[Pair]) -> list[int]:
    """
    Return the number of the unit of each pair: those that share a group, a task or an answer are one.

    The group counts instead of the task where there is one; and if all pairs are of one task, new answers to that are
    meant, and the pairs are units of their own.

    Units are numbered by their digests, so that it is by chance which of them the writer is shown.
    """
    parents = [*range(len(pairs))]

    def root(at: int) -> int:
        while parents[at] != at:
            at = parents[at] = parents[parents[at]]
        return at

    first: dict[object, int] = {}
    tasks = {pair.a.input for pair in pairs}
    for index, pair in enumerate(pairs):
        task = pair.a.input if len(tasks) > 1 and not pair.group else ""
        for mark in (("group", pair.group), ("task", task), ("answer", pair.a.output), ("answer", pair.b.output)):
            if mark[1]:
                parents[root(index)] = root(first.setdefault(mark, index))
    texts: dict[int, list[str]] = {}
    for index, pair in enumerate(pairs):
        texts.setdefault(root(index), []).append(digest(f"{pair.a.output}\x1f{pair.b.output}"))
    numbers = {one: number for number, one in enumerate(sorted(texts, key=lambda one: sorted(texts[one])))}
    return [numbers[root(index)] for index in range(len(pairs))]


def count_shown(groups: Sequence[int]) -> int:
    """Return how many units, the first ones, the writer is shown."""
    return min((len({*groups}) + 1) // 2, _MOST_SHOWN)


def _pairs_to_show(pairs: Sequence[Pair], groups: Sequence[int]) -> Iterator[tuple[str, str, str]]:
    """Yield one pair of each unit that the writer is shown; of a single unit, as many as it may see."""
    units = count_shown(groups)
    for unit in range(units):
        inside = [pair for pair, group in zip(pairs, groups, strict=True) if group == unit]
        for pair in inside[: 1 if units > 1 else _MOST_SHOWN]:
            yield pair.a.input, text_of_response(pair.a), text_of_response(pair.b)
