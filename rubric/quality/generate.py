"""
Generate criteria from a task, a reference, documents, transcripts, or preferred and rejected answers.

Without pairs a draft is only linted. With pairs, the writer is shown some of them, the judge grades all answers, the
criteria that do not tell preferred from rejected answers are dropped, and the pairs that the writer has not seen show
whether the rubric ranks answers right; see `rubric.quality.contrast`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from rubric.engine.budget import Budget
from rubric.engine.bulk import CONCURRENCY, agrade_many
from rubric.engine.drafting import Draft, Material, digest_of, draft_all, holding, material, writer_of
from rubric.engine.grade import JudgeLike, judge_or_default
from rubric.engine.pipeline import Options, StoreLike
from rubric.errors import DefinitionError, ModelError
from rubric.formats.document import FOR_SUITES
from rubric.formats.drafts import Sheet, Slot, sheet
from rubric.formats.files import read_text
from rubric.grading.prompting import shared_prompt
from rubric.internals import background_loop
from rubric.internals.fields import refuse, refuse_path
from rubric.internals.guided import guided
from rubric.internals.text import counted
from rubric.quality.contrast import (
    SHOWN,
    TIE,
    Codes,
    Discrimination,
    Floats,
    Status,
    discrimination,
    held_out,
    screened,
)
from rubric.quality.generation import GeneratedCriterion, Generation, Generations
from rubric.quality.lint import Remark, lint
from rubric.results.result import Grade, Ungraded
from rubric.scoring.aggregation import outcome
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.trust.pairwise import compact, share
from rubric.trust.preference import Pair, pairs_of, rows_of
from rubric.values.candidates import Candidate
from rubric.values.checks import Check
from rubric.values.criteria import Anchor
from rubric.values.requests import Failure, Usage
from rubric.values.rubrics import Rubric

Source = str | Path | Candidate | Anchor
"""A text, the `Path` of one, a transcript, or an answer that a person scored."""

_OF_THRESHOLD = ("no-effect", "never-fails", "never-passes")
"""Rules of `lint` about the threshold, which is not the writer's but set when it is known which criteria stay."""

_TITLE = re.compile(r"[\w .()-]{1,80}")
"""A name of a source that is written down beside its digest; any other name is untrusted text like the source."""

_MOST_SHOWN = 8
"""Pairs that the writer is shown, as its examples; all others are left to prove the rubric."""

# -- one rubric ----------------------------------------------------------------------------------------------


@guided
def generate(
    case: Case | str | None = None,
    judge: JudgeLike | None = None,
    sources: Iterable[Source] = (),
    preferred: Iterable[Any] | Path | None = None,
    *,
    input: str = "",
    references: Iterable[str] = (),
    examples: Iterable[Anchor] = (),
    name: str = "",
    writer: JudgeLike | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    concurrency: int = CONCURRENCY,
) -> Generation:
    """
    Write a rubric, and keep the criteria that tell preferred answers from rejected ones.

    At least one kind of material is given. Criteria are answered by yes or no, by levels or by a score; they may be
    guards and penalties, and checks where a reference answer shows what is checked. What `lint` finds is complained of
    once, and then dropped. All texts are untrusted: none can add an address, a template or a script to the rubric.

    Args:
        case: What a good answer does, in words; or a `Case`, whose task, reference and context are used.
        judge: Writes the criteria and, with *preferred*, grades the answers. Left out, the environment's API keys name
            one.
        sources: Documents, policies and transcripts: each a text, the `Path` of one, a `Candidate` or an `Anchor`.
        preferred: Pairs (preferred, rejected) of candidates; or mappings with `chosen` and `rejected`, and perhaps
            `input` (or `prompt`) and `group`; or the `Path` of a JSONL or CSV file of such rows. Pairs that share an
            answer, or have the same group, belong together. The writer is shown half of them, eight at most.
        input: The task that the answer is for.
        references: Good answers.
        examples: Answers with the score that a person gives them, such as `Anchor("Sure.", 0)`.
        name: The name of the rubric.
        writer: The judge that writes, if it is another than *judge*.
        store: As for `grade`: the same sources are not paid for twice.
        budget: As for `grade`. Pairs that it refuses are unjudged, and the rubric is returned all the same.
        concurrency: As for `grade_many`.

    Raises:
        DefinitionError: There is no material, an argument is none, or the judge cannot write.
        ModelError: The model failed, or wrote no rubric within its repairs.

    Example:
        >>> from rubric import Judge, generate
        >>> from rubric.testing import ScriptedModel
        >>> texts = ["Names the day", "Names the sum", "Thanks the customer"]
        >>> model = ScriptedModel([{"criteria": [{"text": text} for text in texts]}])
        >>> generate("Says on which day which sum comes back, and thanks", Judge(model)).rubric.ids
        ('names-the-day', 'names-the-sum', 'thanks-the-customer')
    """
    options = Options(concurrency, store, budget)
    given = gathered(case, sources, preferred, input=input, references=references, examples=examples, name=name)
    return background_loop.run(generated(given, judge, writer, options))


@guided
async def agenerate(
    case: Case | str | None = None,
    judge: JudgeLike | None = None,
    sources: Iterable[Source] = (),
    preferred: Iterable[Any] | Path | None = None,
    *,
    input: str = "",
    references: Iterable[str] = (),
    examples: Iterable[Anchor] = (),
    name: str = "",
    writer: JudgeLike | None = None,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    concurrency: int = CONCURRENCY,
) -> Generation:
    """Write a rubric like `generate`, without holding up the event loop."""
    options = Options(concurrency, store, budget)
    texts = {"input": input, "references": references, "examples": examples, "name": name}
    given = await asyncio.to_thread(gathered, case, sources, preferred, **texts)  # type: ignore[arg-type]
    return await generated(given, judge, writer, options)


@frozen
class Gathered:
    """
    What a rubric is generated from.

    Args:
        material: For the writer.
        name: The rubric's.
        sources: The digests of the texts, by their names.
        pairs: For the judge.
        groups: The number of the unit of each pair.
        shared: The fields that all answers of the case have.
    """

    material: Material
    name: str
    sources: Mapping[str, str]
    pairs: Sequence[Pair] = ()
    groups: Codes = field(factory=lambda: np.zeros(0, dtype=np.intp))
    shared: Mapping[str, str] = field(factory=dict)

    @property
    def sides(self) -> list[Candidate]:
        """The preferred and the rejected answer of each pair in turn, with what the case has for all of them."""
        return [_sided(side, self.shared) for pair in self.pairs for side in (pair.a, pair.b)]

    @property
    def answers(self) -> list[Candidate]:
        """The answers to grade, each once."""
        return [*dict.fromkeys(self.sides)]


def gathered(
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
        raise refuse("sources", sources, "a list of texts, Paths, Candidates and Anchors")
    if case is not None and not isinstance(case, Case | str):
        raise refuse("case", case, "a description of a good answer, or a Case")
    told = [(f"source {n}", *_told(n - 1, source)) for n, source in enumerate(sources, 1)]
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
    groups = _units(pairs)
    shown = tuple(_shown(pairs, groups))
    one = material(
        outcome_, shared["input"], references, [*examples, *anchors], sources=tuple(texts.values()), pairs=shown
    )
    named = {"outcome": outcome_, "input": shared["input"], **texts}
    named |= {f"reference {n}": text for n, text in enumerate(one.references, 1)}
    digests = {title: _digest(text) for title, text in named.items() if text.strip()}
    return Gathered(one, name, digests, pairs, groups, shared)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _told(index: int, source: object) -> tuple[str, str | Anchor]:
    """Return the name of a source, if it has one, and its text."""
    match source:
        case str():
            refuse_path(f"sources[{index}]", source, f"give Path({source!r})")
            return "", source
        case Path():
            return source.name, read_text(source, None, FOR_SUITES)
        case Anchor():
            return "", source
        case Candidate():
            sections = shared_prompt(source, Rubric()).sections
            return source.key, "\n\n".join(f"{title}:\n{text}" for title, text in sections.items())
    raise refuse(f"sources[{index}]", source, "a text, a Path, a Candidate or an Anchor")


async def generated(given: Gathered, judge: JudgeLike | None, writer: JudgeLike | None, options: Options) -> Generation:
    by = writer_of(judge if writer is None else writer)
    (draft,) = await draft_all({given.name: given.material}, by, options, review)
    if isinstance(draft, Failure):
        raise ModelError(draft)
    if not given.pairs:
        return _finished(draft, given, by.name, [None] * len(draft.rubric.criteria))
    places = {answer: place for place, answer in enumerate(given.answers)}
    graded = agrade_many(
        given.answers,
        draft.rubric,
        judge_or_default(judge),
        concurrency=options.concurrency,
        store=options.store,
        budget=options.budget,
        progress=False,
    )
    results = [*await graded.collect()]
    return _contrasted(draft, given, by.name, results, [places[side] for side in given.sides])


def _sided(side: Candidate, shared: Mapping[str, str]) -> Candidate:
    """Return an answer with what the case has for all of them."""
    missing: dict[str, Any] = {name: text for name, text in shared.items() if text and not getattr(side, name)}
    return evolve(side, **missing, key="", group="") if missing or side.key or side.group else side


def review(rubric: Rubric, given: Material) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a draft: what `lint` says, and checks that no reference answer bears out."""
    for criterion in rubric.criteria:
        if isinstance(criterion.answer, Check) and not given.references:
            yield criterion.id, "there is no reference answer that shows what a check may ask for; answer by yes-no"
    for number, reference in enumerate(given.references or ("",)):
        case = Case("draft", rubric, input=given.task, reference=reference)
        for remark in lint(Suite("draft", [case])):
            if remark.rule not in _OF_THRESHOLD and (number == 0 or remark.rule == "reference-fails"):
                yield remark.criterion, f"{remark.message}; {remark.cure}"


# -- pairs ---------------------------------------------------------------------------------------------------


def _pairs(preferred: Any) -> list[Pair]:
    if preferred is None:
        return []
    rows = rows_of(preferred) if isinstance(preferred, Path) else preferred
    if isinstance(rows, str | bytes | Mapping | Candidate) or not isinstance(rows, Iterable):
        raise refuse("preferred", rows, "pairs [(preferred, rejected), ...], mappings, or the Path of a file of them")
    found = []
    for index, row in enumerate(rows):
        try:
            (pair,) = pairs_of([_row(row) if isinstance(row, Mapping) else row], None)
        except DefinitionError as problem:
            at = problem.field.replace("pairs[0]", f"preferred[{index}]")
            raise DefinitionError(at or f"preferred[{index}]", problem.message) from None
        if pair.a.output == pair.b.output and pair.a == evolve(pair.b, key=pair.a.key):
            raise DefinitionError(f"preferred[{index}]", "both answers are the same; leave the pair out")
        found.append(pair)
    return found


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with the names of a data set of preferences (TRL's `prompt`, `chosen`, `rejected`) as a pair."""
    chosen = next((row[name] for name in ("chosen", "preferred") if row.get(name) is not None), None)
    if chosen is None or row.get("rejected") is None:
        known = ", ".join(map(repr, row)) or "none"
        raise DefinitionError("pairs[0]", f"expected a mapping with chosen and rejected, got the keys {known}")
    asked = row.get("input") or row.get("prompt") or ""
    (before, a), (_, b) = _said(chosen), _said(row["rejected"])
    more = {name: row[name] for name in ("reference", "context", "key", "group") if row.get(name)}
    return {"a": a, "b": b, "input": _said(asked)[1] if not isinstance(asked, str) else asked or before, **more}


def _said(value: Any) -> tuple[str, Any]:
    """Return the first message of a chat, and its last; any other answer by itself."""
    if isinstance(value, list) and value and all(isinstance(one, Mapping) and "content" in one for one in value):
        return (str(value[0]["content"]) if len(value) > 1 else ""), str(value[-1]["content"])
    return "", value


def _units(pairs: Sequence[Pair]) -> Codes:
    """
    Return the number of the unit of each pair: those that share a group or an answer are one.

    Units are numbered by their digests, so that it is by chance which of them the writer is shown.
    """
    parents = [*range(len(pairs))]

    def root(at: int) -> int:
        while parents[at] != at:
            at = parents[at] = parents[parents[at]]
        return at

    first: dict[object, int] = {}
    for index, pair in enumerate(pairs):
        for mark in (("group", pair.group), ("answer", pair.a.output), ("answer", pair.b.output)):
            if mark[1]:
                parents[root(index)] = root(first.setdefault(mark, index))
    texts: dict[int, list[str]] = {}
    for index, pair in enumerate(pairs):
        texts.setdefault(root(index), []).append(_digest(f"{pair.a.output}\x1f{pair.b.output}"))
    numbers = {one: number for number, one in enumerate(sorted(texts, key=lambda one: sorted(texts[one])))}
    return np.array([numbers[root(index)] for index in range(len(pairs))], dtype=np.intp)


def _seen(groups: Codes) -> int:
    """Return how many units, the first ones, the writer is shown."""
    return min((int(groups.max(initial=-1)) + 2) // 2, _MOST_SHOWN)


def _shown(pairs: Sequence[Pair], groups: Codes) -> Iterator[tuple[str, str, str]]:
    """Yield one pair of each unit that the writer is shown; of a single unit, as many as it may see."""
    units = _seen(groups)
    for unit in range(units):
        for index in np.flatnonzero(groups == unit)[: 1 if units > 1 else _MOST_SHOWN]:
            pair = pairs[int(index)]
            yield pair.a.input, _answer(pair.a), _answer(pair.b)


def _answer(side: Candidate) -> str:
    bare = evolve(side, input="", reference="", context="", images=())
    if not (side.messages or side.tool_calls or side.file_changes):
        return side.output
    return _told(0, bare)[1]  # type: ignore[return-value]  # the text of a candidate


def _contrasted(
    draft: Draft, given: Gathered, writer: str, results: Sequence[Grade | Ungraded], places: Sequence[int]
) -> Generation:
    ids = draft.rubric.ids
    table = np.array([[one.contributions.get(id_, np.nan) for one in results] for id_ in ids], dtype=float)
    contributions: Floats = table[:, places].reshape(len(ids), len(given.pairs), 2)

    def scores(kept: Sequence[int]) -> Floats:
        rubric = holding(draft.rubric, [draft.rubric.criteria[index] for index in kept])
        found = [_score(rubric, one, kept) for one in results]
        return np.array(found, dtype=float)[[*places]].reshape(-1, 2)

    how = held_out(contributions, given.groups, _seen(given.groups), scores)
    there = ~np.isnan(how)
    units = compact(given.groups[there])
    grouped = len(np.unique(units)) < len(units)
    accuracy = share("held-out accuracy", how[there], units if grouped else None) if there.any() else None
    told = _finished(draft, given, writer, screened(contributions, given.groups))
    failures = dict.fromkeys(str(failure) for one in results if isinstance(one, Ungraded) for failure in one.failures)
    return evolve(
        told,
        accuracy=accuracy,
        p=discrimination(how - TIE, given.groups).p if there.any() else None,
        held_out=int(there.sum()),
        ties=int((how == TIE).sum()),
        unjudged=int(np.isnan(contributions).any(axis=(0, 2)).sum()),
        usage=Usage.total([told.usage, *(one.usage for one in results)]),
        failures=tuple(failures)[:3],
        groups=len(np.unique(units)) if grouped else 0,
    )


def _score(rubric: Rubric, result: Grade | Ungraded, kept: Sequence[int]) -> float:
    if result.degenerate or not any(criterion.weight for criterion in rubric.criteria):
        return 0.0
    score = outcome(rubric, [result.findings[index] for index in kept]).score
    return np.nan if score is None else score


def _finished(draft: Draft, given: Gathered, writer: str, found: Sequence[Discrimination | None]) -> Generation:
    """Return the criteria that stay as a rubric that `lint` passes."""
    criteria = {c.id: GeneratedCriterion(c, "refused", why) for c, why in draft.refused}
    for criterion, one in zip(draft.rubric.criteria, found, strict=True):
        status: Status = "untested" if one is None else one.status
        criteria[criterion.id] = GeneratedCriterion(criterion, status, _why(one), one)
    rubric = holding(draft.rubric, [one.criterion for one in criteria.values() if one.kept])
    if not given.material.plain:  # other formats have thresholds of their own
        rubric = _deciding(rubric)
    while rubric.criteria and (wrong := _wrong(rubric, given.material)):
        first = wrong[0]
        why = f"{first.message} [{first.rule}]"
        criteria[first.criterion] = evolve(criteria[first.criterion], status="refused", why=why)
        rubric = holding(rubric, [c for c in rubric.criteria if c.id != first.criterion])
    provenance: dict[str, Any] = {
        "writer": writer,
        "material": digest_of(given.material)[:16],
        "sources": given.sources,
    }
    if given.pairs:
        provenance["pairs"] = len(given.pairs)
    whole = evolve(rubric, reviewed=False, provenance=provenance) if rubric.criteria else None
    return Generation(whole, tuple(criteria.values()), len(given.pairs), usage=draft.usage)


def _deciding(rubric: Rubric) -> Rubric:
    """Return *rubric* with the threshold nearest to its own at which every criterion can change the verdict."""
    cuts = sorted((n / 20 for n in range(10, 21)), key=lambda cut: abs(cut - 0.7))
    tried = (evolve(rubric, threshold=cut) for cut in cuts)
    return next((one for one in tried if not any(r.rule in _OF_THRESHOLD for r in lint(one))), rubric)


def _wrong(rubric: Rubric, given: Material) -> list[Remark]:
    return [r for r in lint(rubric) if r.criterion and not (given.plain and r.rule in _OF_THRESHOLD)]


def _why(one: Discrimination | None) -> str:
    if one is None:
        return "not tried on pairs"
    told, n = one.wins + one.losses, one.wins + one.losses + one.ties
    apart = f"it prefers the preferred answer in {one.wins} of the {counted(told, 'pair')} that it tells apart"
    match one.status:
        case "untested":
            return "no pair was judged"
        case "alike":
            return f"it answers both alike in {'the only pair' if n == 1 else f'all {n:,} pairs'}"
        case "reversed":
            return f"it prefers the rejected answer in {one.losses} of the {counted(told, 'pair')} that it tells apart"
        case "too few":
            return f"{apart}; that could be chance"
        case "chance":
            return f"{apart}, no more than chance explains"
        case "duplicate":
            return "it answers as an earlier criterion does, in every answer"
    return apart + ("" if one.p <= SHOWN else "; too few to show it")


# -- suites --------------------------------------------------------------------------------------------------


@guided
def generate_many(
    suite: Suite | str | Path,
    judge: JudgeLike | None = None,
    *,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    concurrency: int = CONCURRENCY,
    format: str | None = None,
    **options: Any,
) -> Generations:
    """
    Write a rubric for each case of *suite* that has no criteria: from what it says of a good answer, task, reference.

    Args:
        suite: A `Suite` (its cases whose rubric is one free-form text), or the path of a file of AgentV, promptfoo or
            ours, which `save` then writes the criteria into.
        judge: Writes.
        store: As for `generate`.
        budget: As for `generate`; cases that it refuses are among the failures.
        concurrency: Rubrics in progress at once.
        format: Of a file: its format, as for `load_suite`; so are the *options*.

    Raises:
        DefinitionError: *suite* is no suite, or the judge cannot write.
        LoadError: The file holds none.
    """
    page = None
    if isinstance(suite, Suite):
        slots = [_slot(case) for case in suite if case.rubric.text]
        kept = tuple(case.id for case in suite if not case.rubric.text)
    elif isinstance(suite, str | Path):
        page = sheet(suite, format, **options)
        slots, kept = [*page.slots], page.kept
    else:
        raise refuse("suite", suite, "a Suite, or the path of its file")
    found = background_loop.run(generated_for(slots, judge, Options(concurrency, store, budget)))
    return collected(found, kept, suite if isinstance(suite, Suite) else None, page)


def _slot(case: Case) -> Slot:
    given = gathered(case)
    return Slot(case.id, (), given.material, case.tags)


async def generated_for(
    slots: Sequence[Slot], judge: JudgeLike | None, options: Options, on_draft: Any = lambda: None
) -> dict[str, Generation | Failure]:
    """Return what is generated for each of *slots*, or why nothing is."""
    by = writer_of(judge)
    drafts = await draft_all({slot.id: slot.material for slot in slots}, by, options, review, on_draft)
    found: dict[str, Generation | Failure] = {}
    for slot, draft in zip(slots, drafts, strict=True):
        texts: dict[str, str] = {}
        for title, text in slot.material.blocks():
            texts[f"{title} {len(texts) + 1}" if title in texts else title] = _digest(text)
        given = Gathered(slot.material, slot.id, texts)
        none = [None] * (0 if isinstance(draft, Failure) else len(draft.rubric.criteria))
        found[slot.id] = draft if isinstance(draft, Failure) else _finished(draft, given, by.name, none)
    return found


def collected(
    found: Mapping[str, Generation | Failure], kept: Sequence[str], suite: Suite | None, page: Sheet | None
) -> Generations:
    """Return what was *found* for the cases of a suite or of a file."""
    made = {id_: one for id_, one in found.items() if isinstance(one, Generation)}
    failures = {id_: one for id_, one in found.items() if isinstance(one, Failure)}
    if suite is not None:
        rubrics = {id_: one.rubric for id_, one in made.items()}
        suite = evolve(suite, cases=[evolve(case, rubric=rubrics.get(case.id) or case.rubric) for case in suite])
    return Generations(made, failures, tuple(kept), suite, page)
