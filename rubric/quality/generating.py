"""
Generate criteria from a task, a reference, documents, transcripts, or preferred and rejected answers.

Without pairs a draft is only linted. With pairs, the writer is shown some of them, the judge grades all answers, the
criteria that do not tell preferred from rejected answers are dropped, and the pairs that the writer has not seen show
whether the rubric ranks answers right; see `rubric.quality.contrast`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any

from attrs import evolve

from rubric import Anchor, Budget, Candidate, Grade, ModelError, Rubric, Ungraded, agrade_many
from rubric.driving import Failure, Usage
from rubric.embed import (
    CONCURRENCY,
    Check,
    JudgeLike,
    Options,
    Statistic,
    StoreLike,
    counted,
    fields,
    guided,
    judge_or_default,
    mean_interval,
    run,
    share_interval,
)
from rubric.quality.contrast import SHOWN, TIE, Discrimination, Sides, Status, discrimination, held_out, screen
from rubric.quality.drafting import Draft, Material, draft_all, holding, is_plain, writer_of, writing
from rubric.quality.generated_rubric import GeneratedCriterion, Generation, Generations
from rubric.quality.lint import lint
from rubric.quality.material import Gathered, Source, count_shown, digest, gather
from rubric.quality.suite_drafts import Sheet, Slot, sheet
from rubric.scoring.outcomes import Rules
from rubric.suites.cases import Case
from rubric.suites.suite import Suite

_OF_THRESHOLD = ("no-effect", "never-fails", "never-passes")
"""Rules of `lint` about the threshold, which is not the writer's but set when it is known which criteria stay."""

# -- one rubric ----------------------------------------------------------------------------------------------


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
    given = await asyncio.to_thread(gather, case, sources, preferred, **texts)  # type: ignore[arg-type]
    return await generate_from(given, judge, writer, options)


@guided(waits_for=agenerate)
def generate(*args: Any, **named: Any) -> Any:
    """
    Write a rubric, and keep the criteria that tell preferred answers from rejected ones.

    At least one kind of material is given. Criteria are answered by yes or no, levels, a score, options or a tree; they
    may be guards and penalties, have conditions, and be checks where a reference answer shows what is checked. What
    `lint` finds is complained of once, and then dropped. Pairs that the rubric tells apart become its `tests`. All
    texts are untrusted: none can add an address, a template or a script to the rubric.

    Args:
        case: A description of a good answer; or a `Case`, whose task, reference and context are used.
        judge: Writes the criteria and, with *preferred*, grades the answers. Left out, the environment's API keys name
            one.
        sources: Documents, policies and transcripts: each a text, the `Path` of one, a `Candidate` or an `Anchor`.
        preferred: Pairs (preferred, rejected) of candidates; or mappings with `chosen` and `rejected`, and perhaps
            `input` (or `prompt`) and `group`; or the `Path` of a JSONL or CSV file of such rows. Pairs that share an
            answer, a group or one of several tasks count as one. The writer is shown half of them, eight at most.
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
        >>> from rubric import Judge
        >>> from rubric.quality import generate
        >>> from rubric.testing import ScriptedModel
        >>> texts = ["Names the day", "Names the sum", "Thanks the customer"]
        >>> model = ScriptedModel([{"criteria": [{"text": text} for text in texts]}])
        >>> generate("Says on which day which sum comes back, and thanks", Judge(model)).rubric.ids
        ('names-the-day', 'names-the-sum', 'thanks-the-customer')
    """
    return agenerate(*args, **named)


async def generate_from(
    given: Gathered, judge: JudgeLike | None, writer: JudgeLike | None, options: Options
) -> Generation:
    by = writer_of(judge if writer is None else writer)
    (draft,) = await draft_all({given.name: given.material}, by, options, review)
    if isinstance(draft, Failure):
        raise ModelError(draft)
    if not given.pairs:
        return _finish(draft, given, by.name)
    places = {answer: place for place, answer in enumerate(given.answers)}
    more: dict[str, Any] = {name: getattr(options, name) for name in ("concurrency", "store", "budget")}
    graded = agrade_many(given.answers, draft.rubric, judge_or_default(judge), progress=False, **more)
    results = [*await graded.collect()]
    return _contrast(draft, given, by.name, results, [places[side] for side in given.sides])


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


# -- what stays -------------------------------------------------------------------------------------------


def _contrast(
    draft: Draft, given: Gathered, writer: str, results: Sequence[Grade | Ungraded], places: Sequence[int]
) -> Generation:
    ids = draft.rubric.ids

    def by_pair(values: Sequence[float]) -> list[Sides]:
        sides = [values[place] for place in places]
        return [*zip(sides[::2], sides[1::2], strict=True)]

    contributions = [by_pair([one.contributions.get(id_, math.nan) for one in results]) for id_ in ids]

    def scores(kept: Sequence[int]) -> list[Sides]:
        rubric = holding(draft.rubric, [draft.rubric.criteria[index] for index in kept])
        return by_pair([_score(rubric, one, kept) for one in results])

    how = held_out(contributions, given.groups, count_shown(given.groups), scores)
    there = [(right, unit) for right, unit in zip(how, given.groups, strict=True) if not math.isnan(right)]
    told = _finish(draft, given, writer, screen(contributions, given.groups))
    failures = dict.fromkeys(str(failure) for one in results if isinstance(one, Ungraded) for failure in one.failures)
    rubric = told.rubric and _add_tests(told.rubric, ids, given.sides, [results[place] for place in places])
    return evolve(
        told,
        rubric=rubric,
        accuracy=_accuracy(there),
        p=discrimination([right - TIE for right in how], given.groups).p if there else None,
        held_out=len(there),
        ties=how.count(TIE),
        unjudged=sum(any(map(math.isnan, chain(*pair))) for pair in zip(*contributions, strict=True)),
        usage=Usage.total([told.usage, *(one.usage for one in results)]),
        failures=tuple(failures)[:3],
        groups=len(units) if len(units := {unit for _, unit in there}) < len(there) else 0,
    )


def _add_tests(
    rubric: Rubric, ids: Sequence[str], sides: Sequence[Candidate], results: Sequence[Grade | Ungraded]
) -> Rubric:
    """Return *rubric* with a few pairs, the shortest, as tests: the preferred answer passes, the rejected one fails."""
    kept = [ids.index(id_) for id_ in rubric.ids]
    passed = [not r.degenerate and Rules(rubric).outcome([r.findings[k] for k in kept]).passed for r in results]
    pairs = [
        (good, bad)
        for good, bad, won, lost in zip(sides[::2], sides[1::2], passed[::2], passed[1::2], strict=True)
        if won is True and lost is False and is_plain(good.output) and is_plain(bad.output)
    ]
    pairs.sort(key=lambda pair: (len(pair[0].output + pair[1].output), pair[0].output))
    for good, bad in pairs[:3]:
        if {good, bad}.isdisjoint(test.candidate for test in rubric.tests):
            rubric = rubric.tested_by(good, passes=True).tested_by(bad, passes=False)
    return rubric


def _accuracy(found: Sequence[tuple[float, int]]) -> Statistic | None:
    """Return how often pairs of units are ranked right; None without any."""
    if not found:
        return None
    right, units = zip(*found, strict=True)
    if len({*units}) == len(units) and TIE not in right:
        return Statistic("held-out accuracy", fmean(right), share_interval(int(sum(right)), len(right)))
    interval = mean_interval(right, units)
    return Statistic("held-out accuracy", fmean(right), interval, "" if interval else "one unit")


def _score(rubric: Rubric, result: Grade | Ungraded, kept: Sequence[int]) -> float:
    if result.degenerate or not any(criterion.weight for criterion in rubric.criteria):
        return 0.0
    score = Rules(rubric).outcome([result.findings[index] for index in kept]).score
    return math.nan if score is None else score


def _finish(draft: Draft, given: Gathered, writer: str, found: Sequence[Discrimination] = ()) -> Generation:
    """Return what stays, as `lint` passes it; without *found* no pairs were tried."""
    unit = "pair" if len({*given.groups}) == len(given.groups) else "group"
    criteria = {c.id: GeneratedCriterion(c, "refused", why) for c, why in draft.refused}
    for criterion, one in zip_longest(draft.rubric.criteria, found):
        status: Status = "untested" if one is None else one.status
        criteria[criterion.id] = GeneratedCriterion(criterion, status, _why(one, unit), one)
    rubric = holding(draft.rubric, [one.criterion for one in criteria.values() if one.kept])
    if not given.material.plain:  # other formats have thresholds of their own
        rubric = _deciding(rubric)
    allowed = _OF_THRESHOLD if given.material.plain else ()
    while rubric.criteria and (wrong := [r for r in lint(rubric) if r.criterion and r.rule not in allowed]):
        first = wrong[0]
        why = f"{first.message} [{first.rule}]"
        criteria[first.criterion] = evolve(criteria[first.criterion], status="refused", why=why)
        rubric = holding(rubric, [c for c in rubric.criteria if c.id != first.criterion])
    digest = writing(given.material).digest[:16]
    provenance: dict[str, Any] = {"writer": writer, "material": digest, "sources": given.sources}
    provenance |= {"pairs": len(given.pairs)} if given.pairs else {}
    whole = evolve(rubric, reviewed=False, provenance=provenance) if rubric.criteria else None
    units = len({*given.groups})
    return Generation(whole, tuple(criteria.values()), len(given.pairs), usage=draft.usage, units=units)


def _deciding(rubric: Rubric) -> Rubric:
    """Return *rubric* with the threshold nearest to its own at which every criterion can change the verdict."""
    cuts = sorted((n / 20 for n in range(10, 21)), key=lambda cut: abs(cut - 0.7))
    tried = (evolve(rubric, threshold=cut) for cut in cuts)
    return next((one for one in tried if not any(r.rule in _OF_THRESHOLD for r in lint(one))), rubric)


def _why(one: Discrimination | None, unit: str) -> str:
    if one is None:
        return "not tried on pairs"
    told, n = one.wins + one.losses, one.wins + one.losses + one.ties
    of_all = f"of the {counted(told, unit)} that it tells apart"
    apart = f"it prefers the preferred answer in {one.wins} {of_all}"
    match one.status:
        case "untested":
            return "no pair was judged"
        case "alike":
            return f"it answers both alike in {f'the only {unit}' if n == 1 else f'all {n:,} {unit}s'}"
        case "reversed":
            return f"it prefers the rejected answer in {one.losses} {of_all}"
        case "too few":
            return f"it prefers the preferred answer in the only {unit} that it tells apart; that could be chance"
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
    Write a rubric for each case of *suite* without criteria, from its task, reference and description of a good answer.

    Args:
        suite: A `Suite` (its cases whose rubric is one free-form text), or the path of a file of AgentV, promptfoo or
            ours, which `save` then writes the criteria into.
        judge: Writes.
        store: As for `generate`.
        budget: As for `generate`; cases that it refuses are among the failures.
        concurrency: Rubrics in progress at once.
        format: Of a file: its format, as for `load_suite`; so are the *options*.

    Raises:
        DefinitionError: *suite* is not a suite, or the judge cannot write.
        LoadError: The file holds none.
    """
    page = None
    if isinstance(suite, Suite):
        slots = [Slot(case.id, (), gather(case).material, case.tags) for case in suite if case.rubric.text]
        kept = tuple(case.id for case in suite if not case.rubric.text)
    elif isinstance(suite, str | Path):
        page = sheet(suite, format, **options)
        slots, kept = [*page.slots], page.kept
    else:
        raise fields.refuse("suite", suite, "a Suite, or the path of its file")
    found = run(generate_all(slots, judge, Options(concurrency, store, budget)))
    return collect(found, kept, suite if isinstance(suite, Suite) else None, page)


async def generate_all(
    slots: Sequence[Slot], judge: JudgeLike | None, options: Options, on_draft: Any = lambda: None
) -> dict[str, Generation | Failure]:
    """Return what is generated for each of *slots*, or why nothing is."""
    by = writer_of(judge)
    drafts = await draft_all({slot.id: slot.material for slot in slots}, by, options, review, on_draft)
    found: dict[str, Generation | Failure] = {}
    for slot, draft in zip(slots, drafts, strict=True):
        texts: dict[str, str] = {}
        for title, text in slot.material.blocks():
            texts[f"{title} {len(texts) + 1}" if title in texts else title] = digest(text)
        given = Gathered(slot.material, slot.id, texts)
        found[slot.id] = draft if isinstance(draft, Failure) else _finish(draft, given, by.name)
    return found


def collect(
    found: Mapping[str, Generation | Failure], kept: Sequence[str], suite: Suite | None, page: Sheet | None
) -> Generations:
    """Return what was *found* for the cases of a suite or of a file."""
    made = {id_: one for id_, one in found.items() if isinstance(one, Generation)}
    failures = {id_: one for id_, one in found.items() if isinstance(one, Failure)}
    if suite is not None:
        rubrics = {id_: one.rubric for id_, one in made.items()}
        suite = evolve(suite, cases=[evolve(case, rubric=rubrics.get(case.id) or case.rubric) for case in suite])
    return Generations(made, failures, tuple(kept), suite, page)
