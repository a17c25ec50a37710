"""Grade one candidate: `grade`, `evaluate` and their async forms; and `plan`, which sends nothing."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve

from rubric.engine.pipeline import CONCURRENCY, Dispatcher, Options, StoreLike, adrive, check_loop
from rubric.errors import DefinitionError, UngradedError, UnreviewedWarning
from rubric.grading.flow import check, flow
from rubric.grading.lacking import fields_without, without
from rubric.internals.guided import guided
from rubric.internals.telemetry import TRACES, grade_span, warn_of
from rubric.models.api_keys import default_judge
from rubric.models.pricing import price
from rubric.models.windows import window_of
from rubric.results.result import Grade, Ungraded
from rubric.values.candidates import Candidate, is_log, of_text
from rubric.values.judges import AnyJudge, Cascade, Function, Judge, Jury, Model, Panel, as_judge
from rubric.values.requests import PROGRAMS, Ask, Limiter, Transport
from rubric.values.rubrics import Rubric, rubric_of

if TYPE_CHECKING:
    from rubric.engine.budget import Budget
    from rubric.engine.sources import Candidates
    from rubric.grading.planning import Plan


class Response(Protocol):
    """What the library of a vendor answers with, of which the text or the chat is graded."""

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]: ...


CandidateLike = Candidate | str | Path | Mapping[str, Any] | Response
"""Anything that is one candidate: a `Candidate`, its text, the `Path` of its text, or a mapping of its fields."""

JudgeLike = Judge | Jury | Panel | Cascade | Model | Function | str | Iterable[Any]
"""Anything that can serve as a judge: one, a jury, a panel, a cascade, a model name, a function, a list (a panel)."""

RubricOrEach = Rubric | str | Path | Sequence[Rubric | str | Path]
"""One rubric for all candidates, or a list of them: one for each."""


@guided
async def agrade(
    candidate: CandidateLike,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    concurrency: int = CONCURRENCY,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    keep: bool | None = None,
    input: str = "",
    reference: str = "",
    context: str = "",
) -> Grade:
    """Grade *candidate* like `grade`, without holding up the event loop."""
    beside = {"input": input, "reference": reference, "context": context}
    options = Options(concurrency, store, budget, limits, keep)
    return grade_or_raise(await _run(candidate, beside, rubric, judge, options))


@guided(waits_for=agrade)
def grade(*args: Any, **named: Any) -> Any:
    """
    Grade *candidate* against *rubric* and return a `Grade`, with one finding for each criterion.

    It may be called anywhere: in scripts, in threads, and inside a running event loop (as in Jupyter).

    Args:
        candidate: The text to grade: a text is its output, and so is the text in the file at a `Path`. A mapping has
            the fields of a `Candidate`.
        rubric: The rubric. A text is a free-form rubric; a `Path` is loaded, as by `load`. A text that looks like the
            path of a file ("rubric.yaml") is refused, here and as a candidate.
        judge: The judge. A model name means a judge of that model, a list a panel. Left out, the
            environment's API keys name one.
        concurrency: Requests in flight at once.
        store: Keeps every reply, and serves those that it has: a `Store`, or the path of one.
        budget: What may be spent; grades that are given the same object share it.
        limits: How fast models may be asked: `Limits`, shared like a budget.
        keep: Whether the result keeps its transcript, as `exchanges`; None: with a store.
        input: The question that a candidate given as a text answers; a `Candidate` has its own, and further fields.
        reference: A reference answer, likewise.
        context: Material on which the answer should rest, likewise.

    Raises:
        UngradedError: Something could not be judged; its `result` says what, and how the score could have come out.
            `evaluate` returns that result instead.
        DefinitionError: An argument that cannot be graded with.
        LoadError: The file of the rubric holds none.
        NoJudgeError: No judge was given, and the environment names none.
        StoreError: The store cannot be opened, or not written to.
    """
    return agrade(*args, **named)


@guided
async def aevaluate(
    candidate: CandidateLike,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    concurrency: int = CONCURRENCY,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    keep: bool | None = None,
    input: str = "",
    reference: str = "",
    context: str = "",
) -> Grade | Ungraded:
    """Grade *candidate* like `evaluate`, without holding up the event loop."""
    beside = {"input": input, "reference": reference, "context": context}
    options = Options(concurrency, store, budget, limits, keep)
    return await _run(candidate, beside, rubric, judge, options)


@guided(waits_for=aevaluate)
def evaluate(*args: Any, **named: Any) -> Any:
    """
    Grade *candidate* like `grade`, and return an `Ungraded` where `grade` raises `UngradedError`.

    Example:
        >>> from rubric import Grade, evaluate
        >>> match evaluate("Thank you for waiting.", "Says thank you", "offline"):
        ...     case Grade(score=score):
        ...         print(score)
        ...     case ungraded:
        ...         print(ungraded.bounds, ungraded.failures)
        0.5
    """
    return aevaluate(*args, **named)


async def _run(
    candidate: CandidateLike,
    beside: Mapping[str, str],
    rubric: Rubric | str | Path,
    judge: JudgeLike | None,
    options: Options,
) -> Grade | Ungraded:
    check_loop()
    if isinstance(candidate, Path) or isinstance(rubric, Path):  # a file may be on a slow disk
        candidate, rubric = await asyncio.to_thread(lambda: (one_candidate(candidate, **beside), as_rubric(rubric)))
        beside = {}
    judges = judge_or_default(judge)
    one, by = one_candidate(candidate, **beside), as_rubric(rubric)
    if options.store is None and options.budget is None:  # opening one may touch a disk, or load LiteLLM
        opened = options.pipeline()
        return annotate(await trace(one, by, judges, opened.send, keep=options.keeps), opened.dispatcher)
    with await asyncio.to_thread(options.pipeline, judges) as opened:
        return annotate(await trace(one, by, judges, opened.send, keep=options.keeps), opened.dispatcher)


def trace(
    candidate: Candidate, rubric: Rubric, judge: AnyJudge, send: Transport, *, keep: bool = False
) -> Coroutine[Any, Any, Grade | Ungraded]:
    """Grade *candidate* over *send*, in a span of its own."""
    programs = PROGRAMS.get() is not None
    return in_span(rubric, adrive(flow(candidate, rubric, judge, keep=keep, programs=programs), send))


async def in_span(rubric: Rubric, grading: Awaitable[Grade | Ungraded]) -> Grade | Ungraded:
    """Await *grading* against *rubric* in a span of its own, and log an ungraded result."""
    if TRACES not in sys.modules:  # the usual case, and so without a context manager
        result = await grading
    else:
        with grade_span(rubric) as record:
            result = await grading
            record(result)
    if isinstance(result, Ungraded):
        warn_of(result)
    return result


def annotate(result: Grade | Ungraded, dispatcher: Dispatcher) -> Grade | Ungraded:
    """Return *result* with the remarks of *dispatcher*, and on what its candidate lacks, among its warnings."""
    lacking = fields_without([result.candidate]) & {"context", "reference"} if result.candidate else ()
    remarks = (*without(result.rubric, *lacking), *dispatcher.remarks())
    return evolve(result, warnings=(*result.warnings, *remarks)) if remarks else result


def grade_or_raise(result: Grade | Ungraded) -> Grade:
    """Return *result* if it is a `Grade`; raise `UngradedError` if it is not."""
    if isinstance(result, Ungraded):
        raise UngradedError(result)
    return result


def judge_or_default(judge: JudgeLike | None) -> AnyJudge:
    """Return *judge* as a judge; None leaves it to the environment's API keys."""
    return default_judge() if judge is None else as_judge(judge)


def as_rubric(rubric: Rubric | str | Path) -> Rubric:
    """Return *rubric*, a value, a text or a file, to grade with; warn once if it is unreviewed."""
    given = given_rubric(rubric)
    if not given.is_reviewed:
        _warn_of_unreviewed(given.digest, given.name)
    return given


def checked_rubrics(rubric: RubricOrEach, read: Callable[[Any], Rubric] = as_rubric) -> Rubric | tuple[Rubric, ...]:
    """Return the rubric, or those of all candidates; raise for one that has nothing to grade by."""
    is_each = isinstance(rubric, list | tuple)
    rubrics = tuple(map(read, rubric)) if is_each else (read(rubric),)  # type: ignore[arg-type]
    for each in {id(one): one for one in rubrics}.values():
        check(each)
    return rubrics if is_each else rubrics[0]


def given_rubric(rubric: Rubric | str | Path) -> Rubric:
    """Return *rubric*; a text is a free-form one, a `Path` is loaded."""
    if isinstance(rubric, Path):
        from rubric.formats.rubrics import load  # noqa: PLC0415 - grading without files needs no parser of YAML

        return load(rubric)
    if isinstance(rubric, Candidate):
        raise DefinitionError("rubric", "got a Candidate; the candidate comes first, then the rubric, then the judge")
    return rubric_of(rubric)


@lru_cache(maxsize=4096)  # by the digest: each rubric is told of once a process, whichever line grades with it
def _warn_of_unreviewed(_: str, name: str) -> None:
    warnings.warn(UnreviewedWarning.of([name or "the rubric"]), stacklevel=2)


def one_candidate(value: object, /, field: str = "candidate", **beside: str) -> Candidate:
    """
    Return *value*, given as the argument *field* of a function such as `grade`, as one candidate; a `Path` is read.

    Args:
        beside: Fields of a text or of a file's that are given beside it, such as `input`; '' for those that are not.

    Raises:
        DefinitionError: It can be none: it is several, or a rubric, or the path of a file as a text; or it has fields
            of its own, and some are given beside it.
    """
    given: dict[str, Any] = {name: text for name, text in beside.items() if text != ""}
    if given:
        if not isinstance(value, str | Path):
            raise DefinitionError(field, f"it has its own fields; write Candidate(..., {next(iter(given))}=...)")
        return evolve(one_candidate(value, field), **given)
    if isinstance(value, Candidate):
        return value
    if isinstance(value, str) and not is_log(value):
        return of_text(field, value)
    from rubric.engine import columns, sources  # noqa: PLC0415 - a text needs no reader of rows

    if isinstance(value, str) or (isinstance(value, Path) and not sources.holds_many(value)):
        try:
            return sources.as_candidate(value)
        except DefinitionError as error:
            raise DefinitionError(field, error.message) from None
    sources.refuse_swapped(field, value)
    value = sources.plain(value)
    if isinstance(value, Mapping):
        if sources.has_columns(value):
            columns.OWN_NAMES.check(columns.OWN_NAMES.names_in([value]), one=True)
        return sources.as_candidate(value)
    said = f"expected one text, Candidate or Path, got {sources.name_of_type(value)}"
    raise DefinitionError(field, said + sources.cure_of(value, "candidate"))


@guided
def plan(
    candidates: Candidate | str | Candidates,
    rubric: RubricOrEach,
    judge: JudgeLike | None = None,
    *,
    columns: Mapping[str, str | Sequence[str] | None] | None = None,
    prices: Mapping[str, tuple[float, float]] | None = None,
) -> Plan:
    """
    Return what grading would take: calls, tokens, cost, and the exact messages. Nothing is sent.

    Args:
        candidates: One candidate, or several as for `grade_many`: an iterable (not an async one), a column or a frame,
            or the path of such a file. Any other text, mapping or `Path` is one candidate.
        rubric: As for `grade`; or a list of rubrics, one for each candidate.
        judge: As for `grade`.
        columns: Of several, as for `grade_many`.
        prices: Of models by their names, in place of those that are known, as a `Budget` takes them: US dollars for a
            million tokens that are sent, and for a million that come back.

    Raises:
        DefinitionError: An argument that cannot be graded with, or the price of a model that no judge has. Rows that
            hold no candidate are left out, and named in `remarks`, unless all are such rows.
    """
    from rubric.engine.budget import Budget  # noqa: PLC0415 - a grade without one needs none
    from rubric.engine.sources import holds_many, path_or_text, source_of  # noqa: PLC0415 - a grade plans nothing
    from rubric.grading.planning import Plan, plan_one  # noqa: PLC0415 - as above
    from rubric.models.token_counts import count_tokens, worst_cost  # noqa: PLC0415 - as above

    judges, checked = judge_or_default(judge), checked_rubrics(rubric, given_rubric)
    if isinstance(candidates, str):
        candidates = path_or_text(candidates)
    is_file_of_one = isinstance(candidates, Path) and not holds_many(candidates)
    if is_file_of_one or isinstance(candidates, Candidate | str | Mapping):
        candidates = [one_candidate(candidates)]
    source = source_of(candidates, columns)
    several, left_out = source.read_all()
    if isinstance(checked, tuple):
        source.check_rubrics(len(checked))
    each = checked if isinstance(checked, tuple) else [checked] * (max(several, default=0) + 1)
    rubrics = [each[place] for place in several if place < len(each)]
    plan_each = partial(plan_one, judge=judges, count=count_tokens, price=price, worst=worst_cost, window=window_of)
    with Budget(prices=prices or {}).priced(each.name for each in judges.single_judges()):
        planned = Plan.total(plan_each(one, by) for one, by in zip(several.values(), rubrics, strict=True))
    lacking = without(rubrics[0], *fields_without(several.values())) if several else ()
    remarks = [left_out, source.remark(), *lacking]
    return evolve(planned, remarks=tuple(filter(None, remarks)))


def plan_asks(asks: Iterable[Ask]) -> Plan:
    """Return what *asks* would take, if their replies can be used."""
    from rubric.grading.planning import Plan, plan_ask  # noqa: PLC0415 - as above
    from rubric.models.token_counts import count_tokens, worst_cost  # noqa: PLC0415 - as above

    return Plan.total(plan_ask(ask, count=count_tokens, price=price, worst=worst_cost) for ask in asks)
