"""
Which of two is better? `prefer` shows both texts to a judge in one request, in both orders.

A judge that likes whatever comes first contradicts itself when the order is swapped: then the verdict is
`inconsistent`, and counts as a tie (L. Zheng et al., arXiv 2306.05685, section 3.4). Both orders are the same two
requests whichever text is called `a`, so swapping them negates the result.

A pair is graded like any candidate: its text holds both responses, each between two lines with a mark that occurs in
neither, and a choice of `1`, `2` and `tie` replaces each criterion that a judge decides.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, field, frozen

from rubric import (
    Budget,
    Candidate,
    Choice,
    Choices,
    Criterion,
    DecisionTree,
    DefinitionError,
    Grade,
    Levels,
    Message,
    Rubric,
    Ungraded,
    plan,
)
from rubric.driving import Usage
from rubric.embed import (
    CONCURRENCY,
    Check,
    JudgeLike,
    Limiter,
    Listed,
    NoTruth,
    Options,
    Presented,
    StoreLike,
    Table,
    decide,
    fields,
    guided,
    judge_or_default,
    one_candidate,
    rows_in,
    source_of,
)
from rubric.engine import CandidateLike, PairColumns, Plan
from rubric.engine.bulk import session
from rubric.grading.prompting import text_of_candidate
from rubric.results import NotApplicable, Scored
from rubric.trust.pairwise.win_rates import Preferences, Side
from rubric.values import Event

_SHARED = ("input", "reference", "context", "variables", "images")
Outcome = Literal["a", "b", "tie", "inconsistent", "unjudged"]

VALUES: dict[str, float] = {"a": 1.0, "b": -1.0, "tie": 0.0, "inconsistent": 0.0}
"""What an outcome counts, for `a`."""

_EVEN, _TOLERANCE = 0.5, 1e-9
_QUESTION = (
    "The candidate is two responses, each between two lines with a mark of its own. Which is better by this criterion? "
    "The order in which they are shown does not matter, and a longer one is not better for that."
)


@frozen
class CriterionPreference(NoTruth):
    """
    Which of two is better by one criterion.

    Args:
        id: The criterion's.
        outcome: `a`, `b`, `tie`, `inconsistent` (the orders disagree; it counts as a tie) or `unjudged`.
        orders: The verdict with `a` shown first, then with `b` shown first; None where it is unjudged. One verdict
            where code decides, or where one order was asked for.
        reasons: The judge's reasons, likewise.
        weight: The criterion's.
    """

    _truth = ".outcome"

    id: str
    outcome: Outcome
    orders: tuple[Side | None, ...] = ()
    reasons: tuple[str, ...] = ()
    weight: float = 1.0


@frozen(repr=False)
class Preference(Presented, Listed[CriterionPreference]):
    """
    Which of two is better, by each criterion and on the whole.

    Args:
        criteria: Those that apply to either text.
        key: The name of the pair.
        group: The name of the pairs that belong together, such as those of one prompt.
        names: The names of the systems that wrote `a` and `b`.
        judge: The judge's name.
        lengths: The characters of `a` and of `b`.
        usage: What it took.
        results: The grade with `a` shown first, then with `b` shown first, as `grade` returns it.
    """

    _truth = ".outcome"

    criteria: tuple[CriterionPreference, ...]
    key: str = ""
    group: str = ""
    names: tuple[str, str] = ("a", "b")
    judge: str = ""
    lengths: tuple[int, int] = (0, 0)
    usage: Usage = field(factory=Usage)
    results: tuple[Grade | Ungraded, ...] = field(default=(), eq=False)

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest margin that unjudged criteria could give."""
        total = sum(c.weight for c in self.criteria) or 1.0
        low = sum(c.weight * VALUES.get(c.outcome, -1.0) for c in self.criteria) / total
        high = sum(c.weight * VALUES.get(c.outcome, 1.0) for c in self.criteria) / total
        return low, high

    @property
    def margin(self) -> float | None:
        """The weighted mean over the criteria, from -1 (`b` by all) to 1 (`a` by all); None if one is unjudged."""
        low, high = self.bounds
        return low if low == high else None

    @property
    def outcome(self) -> Outcome:
        """The outcome on the whole: `a` or `b` if the margin says so, whatever the unjudged criteria would give."""
        low, high = self.bounds
        if low > _TOLERANCE:
            return "a"
        if high < -_TOLERANCE:
            return "b"
        if high - low > _TOLERANCE:
            return "unjudged"
        return "inconsistent" if len({*self.orders} - {None}) > 1 else "tie"  # what has no weight may be unjudged

    @property
    def winner(self) -> str | None:
        """The name of the system that is better; None without one."""
        return {"a": self.names[0], "b": self.names[1]}.get(self.outcome)

    @property
    def orders(self) -> tuple[Side | None, ...]:
        """The verdict on the whole by each order, `a` shown first and then `b`; None where it is unjudged."""
        count = max((len(c.orders) for c in self.criteria), default=0)
        return tuple(self._of_order(order) for order in range(count))

    def _of_order(self, order: int) -> Side | None:
        said = [(c.weight, c.orders[min(order, len(c.orders) - 1)]) for c in self.criteria if c.orders]
        if None in [side for _, side in said]:
            return None
        return _better(sum(weight * VALUES[side or "tie"] for weight, side in said))

    @property
    def sentence(self) -> str:
        """A description of the outcome."""
        a, b = self.names
        count = f"{len(self.criteria)} criteri{'on' if len(self.criteria) == 1 else 'a'}"
        match self.outcome:
            case "a" | "b":
                name, other = (a, b) if self.outcome == "a" else (b, a)
                by = "" if self.margin is None else f" by {abs(self.margin):.2f} of 1"
                return f"{name} is better than {other}{by}, over {count}."
            case "tie":
                return f"{a} and {b} are equally good, over {count}."
            case "inconsistent":
                return f"The judge prefers {a} or {b} by their order alone; that counts as a tie."
            case _:
                missing = sum(c.outcome == "unjudged" for c in self.criteria)
                return f"Undecided between {a} and {b}: {missing} of {count} could not be judged."

    def remarks(self) -> list[str]:
        """What went wrong, and warnings."""
        failures = [str(f) for result in self.results if isinstance(result, Ungraded) for f in result.failures]
        return [*dict.fromkeys([*failures, *(w for result in self.results for w in result.warnings)])]

    def tables(self) -> list[Table]:
        """Each criterion in a row."""
        head = ("criterion", "better", "a shown first", "b shown first", "reason")
        rows = []
        for c in self.criteria:
            shown = [side or "unjudged" for side in (*c.orders, *["-"] * (2 - len(c.orders)))]
            rows.append((c.id, c.outcome, *shown, next(filter(None, c.reasons), "")))
        return [("", head, rows)]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        lists = {name: [*getattr(self, name)] for name in ("bounds", "orders", "names", "lengths")}
        kept = {name: value for name, value in super().to_dict().items() if name != "usage"}
        return {**kept, "outcome": self.outcome, "margin": self.margin, **lists, "cost": self.usage.cost}


# -- asking --------------------------------------------------------------------------------------------------


@guided
async def aprefer(
    a: CandidateLike,
    b: CandidateLike,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    both_orders: bool = True,
    concurrency: int = CONCURRENCY,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    keep: bool | None = None,
    input: str = "",
    reference: str = "",
    context: str = "",
) -> Preference:
    """Say which is better like `prefer`, without holding up the event loop."""
    beside = {"input": input, "reference": reference, "context": context}
    pair = Pair(one_candidate(a, "a", **beside), one_candidate(b, "b", **beside))
    options = Options(concurrency, store, budget, limits, keep)
    return (await _prefer([pair], rubric, judge, options, both_orders=both_orders))[0]


@guided(waits_for=aprefer)
def prefer(*args: Any, **named: Any) -> Any:
    """
    Say which of *a* and *b* is better, by each criterion of *rubric*.

    One request holds both texts, between marks and under neutral names; a second one holds them in the other order.
    Checks are decided by code: the text with the higher score is better.

    Args:
        a: One candidate, as for `grade`.
        b: The other. Where both have an input, a reference or a context, it is the same one.
        rubric: As for `grade`; trees are refused, since they score one text.
        judge: As for `grade`: a jury's or a panel's verdict is the mean of its votes. A `reader` that is a mapping
            names `1`, `2` and `tie`.
        both_orders: Whether it is asked in both orders. False takes half the calls, and what the order does is not
            seen.
        concurrency: Requests in flight at once.
        store: As for `grade`; so too *budget*, *limits* and *keep*.
        input: The task of both, for candidates given as texts; so too *reference* and *context*.
        reference: A reference answer.
        context: Material on which both should rest.

    Raises:
        DefinitionError: An argument that cannot be graded with, or two candidates of different tasks.

    Example:
        >>> from rubric import prefer
        >>> prefer("Thanks for waiting!", "Wait.", "Says thank you", lambda messages: '{"choice": "1"}').outcome
        'inconsistent'
    """
    return aprefer(*args, **named)


@guided
async def aprefer_many(
    pairs: Iterable[Any] | str | Path,
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    both_orders: bool = True,
    columns: Mapping[str, str | None] | None = None,
    concurrency: int = CONCURRENCY,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    keep: bool = False,
) -> Preferences:
    """Say which is better of many pairs like `prefer_many`, without holding up the event loop."""
    options = Options(concurrency, store, budget, limits, keep)
    given, remark = await asyncio.to_thread(pairs_of, pairs, columns)
    return Preferences(await _prefer(given, rubric, judge, options, both_orders=both_orders), remark)


@guided(waits_for=aprefer_many)
def prefer_many(*args: Any, **named: Any) -> Any:
    """
    Say which is better of many *pairs*, and return win rates, position bias and strengths.

    Args:
        pairs: Pairs `(a, b)` of candidates; or mappings with `a`, `b` and, if known, `input`, `reference`, `context`,
            `key`, `group`, `model_a` and `model_b`; or a frame, or the path of a file, of such rows. Pairs of one group
            belong together: intervals take them as one draw.
        rubric: As for `prefer`; so too *judge* and *both_orders*.
        columns: The columns of mappings with other names: `{"a": "response1", "b": "response2"}`. As in `grade_many`, a
            column that looks like a field and is not used is refused; `{"question": None}` passes over it.
        concurrency: Pairs in progress at once, and requests in flight.
        store: As for `grade`; so too *budget*, *limits* and *keep*.

    Raises:
        DefinitionError: An argument that cannot be graded with; an item that is not a pair is named by its place.
    """
    return aprefer_many(*args, **named)


@guided
def rank(
    candidates: Iterable[CandidateLike],
    rubric: Rubric | str | Path,
    judge: JudgeLike | None = None,
    *,
    input: str = "",
    both_orders: bool = True,
    concurrency: int = CONCURRENCY,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    keep: bool = False,
) -> Preferences:
    """
    Rank the answers to one prompt: each is compared with each other, and the share of cycles says if an order fits.

    The result's `strengths` are the order, with wins and intervals; `cycles` is the share of triples that none
    fits. The names are the keys of the candidates, else their places: `#0`, `#1`.

    Args:
        candidates: Two or more, of one group; n of them are n * (n - 1) / 2 pairs.
        rubric: As for `prefer`; so too *judge* and *both_orders*.
        input: The task of all, for candidates given as texts.
        concurrency: As for `prefer_many`; so too *store*, *budget*, *limits* and *keep*.

    Raises:
        DefinitionError: There are fewer than two, they are of two groups or tasks, or two have one key.
    """
    if isinstance(candidates, str | bytes | Mapping | Candidate) or not isinstance(candidates, Iterable):
        keyed = "rank([Candidate(text, key=name) for name, text in candidates.items()], rubric, judge)"
        cure = f" (by their names, write {keyed})" if isinstance(candidates, Mapping) else ""
        raise fields.refuse("candidates", candidates, f"an iterable of two candidates or more{cure}")
    texts = [one_candidate(each, f"candidates[{at}]", input=input) for at, each in enumerate(candidates)]
    named = {text.key or f"#{at}": text for at, text in enumerate(texts)}
    if len(named) < max(2, len(texts)):
        raise DefinitionError("candidates", "expected two or more, each with a key of its own or without one")
    if len({text.group for text in texts}) > 1:
        raise DefinitionError("candidates", "are of several groups; rank the candidates of each group by themselves")
    pairs = combinations(named.items(), 2)
    rows = [{"a": a, "b": b, "model_a": one, "model_b": other} for (one, a), (other, b) in pairs]
    run: dict[str, Any] = {"concurrency": concurrency, "store": store, "budget": budget, "limits": limits}
    return prefer_many(rows, rubric, judge, both_orders=both_orders, keep=keep, **run)


@frozen
class Pair:
    """Two candidates, and what they are called."""

    a: Candidate
    b: Candidate
    key: str = ""
    group: str = ""
    names: tuple[str, str] = ("a", "b")

    def __attrs_post_init__(self) -> None:
        for name in _SHARED:
            mine, theirs = getattr(self.a, name), getattr(self.b, name)
            if mine and theirs and mine != theirs and not (name == "input" and self._task()):
                cure = f"a pair answers one task, so give both the same {name}"
                raise DefinitionError(f"b.{name}", f"the {name} of b is not that of a; {cure}")

    def shared(self) -> dict[str, Any]:
        """Return the fields that both have in common."""
        shared = {name: getattr(self.a, name) or getattr(self.b, name) for name in _SHARED}
        is_one = "" in (self.a.input, self.b.input) or self.a.input == self.b.input
        return shared if is_one else {**shared, "input": self._task()}

    def _task(self) -> str:
        """Return what the user said last before the runs part; '' if they part by what the user says: two tasks."""
        task = ""
        for one, other in zip(self.a.run.events, self.b.run.events, strict=False):
            asked = [each.content for each in (one, other) if isinstance(each, Message) and each.role == "user"]
            if len(asked) == 2 and asked[0] != asked[1]:
                return ""
            if len(asked) == 1 or not (asked or _did(one) == _did(other)):
                return task
            task = asked[0] if asked else task
        return task


def _did(event: Event) -> tuple[Any, ...]:
    """Return what is said or called in *event*, without when, and what came of it."""
    return tuple(getattr(event, name, None) for name in ("role", "content", "name", "arguments"))


def pairs_of(pairs: Any, columns: Any = None, field: str = "pairs", row_of: Any = dict) -> tuple[list[Pair], str]:
    """Return *pairs*, the argument *field*, a remark on unused texts; *row_of* makes a row of one with other keys."""
    if isinstance(pairs, str | Path):
        pairs = (row for _, row in rows_in(field, Path(pairs)))
    elif type(pairs).__name__ == "DataFrame" and (head := [*map(str, pairs.columns)]):
        pairs = source_of(pairs, {**dict.fromkeys(head), "output": head[0]}).items  # its rows, whatever they hold
    if isinstance(pairs, bytes | Mapping | Candidate) or not isinstance(pairs, Iterable):
        allowed = "an iterable of pairs, of mappings with both sides, or the path of a file of such rows"
        raise fields.refuse(field, pairs, allowed)
    found, named = [*pairs], PairColumns({} if columns is None else columns)
    rows = [item for item in found if isinstance(item, Mapping)] if row_of is dict else []
    if rows:
        names = dict.fromkeys(str(name) for row in rows for name in row)
        named.check_output(names, rows)
        named.check(names)
    elif columns and found:
        raise DefinitionError("columns", "there are no rows with columns here, but pairs; leave it out")
    for index, item in enumerate(found):
        try:
            found[index] = _pair(row_of(item) if isinstance(item, Mapping) else item, named)
        except DefinitionError as problem:
            raise DefinitionError(f"{field}[{index}].{problem.field}".rstrip("."), problem.message) from None
    return found, named.remark(rows)


def _pair(item: Any, columns: PairColumns) -> Pair:
    if isinstance(item, Mapping):
        row = {name: cell for name, cell in columns.row(item).items() if not fields.is_missing(cell)}
        if lacking := [side for side in "ab" if side not in row]:
            raise DefinitionError(lacking[0], "expected an output, got nothing; leave out the row, or fill the cell")
        shared = {name: str(row.get(name, "")) for name in ("input", "reference", "context")}
        a, b = (one_candidate(row[side], side, **shared) for side in "ab")
        key, group, *names = (str(row.get(name, "")) for name in ("key", "group", "model_a", "model_b"))
        return Pair(a, b, key, group, (names[0] or "a", names[1] or "b"))
    if isinstance(item, Pair):
        return item
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise fields.refuse("", item, "a pair (a, b), or a mapping with a and b")
    a, b = (one_candidate(one, name) for one, name in zip(item, "ab", strict=True))
    return Pair(a, b, a.key or b.key, a.group or b.group)


async def _prefer(
    pairs: Sequence[Pair], given: Rubric | str | Path, by: JudgeLike | None, options: Options, *, both_orders: bool
) -> tuple[Preference, ...]:
    """Ask about *pairs*, and return what is preferred in each, in order."""
    judge = judge_or_default(by).without_early_stop()  # an early stop spares votes that the mean needs
    async with session(given, judge, options) as opened:
        rubric = _check(opened.rubric)

        async def work(_: int, pair: Any) -> Preference:
            return await _of_pair(pair, rubric, judge.name, opened.grade, both_orders=both_orders)

        return tuple(await opened.work(pairs, work))


async def _of_pair(
    pair: Pair, rubric: Rubric, judge: str, graded: Callable[..., Awaitable[Grade | Ungraded]], *, both_orders: bool
) -> Preference:
    applies, of_two, shown = _requests(pair, rubric, both_orders=both_orders)
    results = await asyncio.gather(*(graded(one, of_two) for one in shown))
    found = [_by_code(c, *ab) if isinstance(c.answer, Check) else _by_judge(c, results) for c, ab in applies.items()]
    lengths, usage = (len(pair.a.output), len(pair.b.output)), Usage.total(result.usage for result in results)
    return Preference(tuple(found), pair.key, pair.group, pair.names, judge, lengths, usage, tuple(results))


def _requests(pair: Pair, rubric: Rubric, *, both_orders: bool) -> tuple[dict[Criterion, Any], Rubric, list[Candidate]]:
    """Return the criteria that apply to *pair*, with what code finds of both; and the rubric and candidates to ask."""
    coded = {c.id for c in rubric.judged if c.when is not None or isinstance(c.answer, Check)}
    found = {c: (decide(c, pair.a), decide(c, pair.b)) if c.id in coded else () for c in rubric.judged}
    applies = {c: both for c, both in found.items() if {*map(type, both)} != {NotApplicable}}
    if not (asked := [c for c in applies if not isinstance(c.answer, Check)]):
        return applies, rubric, []
    of_two = rubric.derive(("preference", tuple(c.id for c in asked)), partial(_of_two, rubric, asked))
    a, b = (text_of_response(one) for one in (pair.a, pair.b))
    return applies, of_two, [_together(pair, a, b), *([_together(pair, b, a)] if both_orders else [])]


def plan_pairs(pairs: Iterable[Pair], rubric: Rubric, judge: JudgeLike | None, *, both_orders: bool) -> Plan:
    """Return what `prefer_many` would take, as `plan` says it of candidates. Nothing is sent."""
    of, by = _check(rubric), judge_or_default(judge).without_early_stop()
    asked = (_requests(pair, of, both_orders=both_orders) for pair in pairs)
    return Plan.total(plan(shown, of_two, by) for _, of_two, shown in asked if shown)


def _check(rubric: Rubric) -> Rubric:
    """Return *rubric*; refuse one that cannot compare two texts."""
    if not rubric.judged:
        raise DefinitionError("criteria", f"{rubric} has nothing to judge by; give it criteria or a text")
    for criterion in rubric.judged:
        if isinstance(criterion.answer, DecisionTree):
            cure = "give a criterion that says what is better"
            raise DefinitionError("rubric", f"{criterion.id!r} is a tree, which scores one text; {cure}")
    return rubric


# -- one pair ------------------------------------------------------------------------------------------------


def _of_two(rubric: Rubric, criteria: Sequence[Criterion]) -> Rubric:
    """Return the rubric whose criteria ask which of two responses is better by *criteria*."""
    kept: dict[str, Any] = {"guidelines": rubric.guidelines, "prompt": rubric.prompt}
    return Rubric(rubric.name, criteria=[*map(_choice, criteria)], degenerate="judge", **kept)


def _choice(criterion: Criterion) -> Criterion:
    lines = [criterion.text.strip()]
    if isinstance(criterion.answer, Levels):
        lines += [f"- {band}: {band.text}" for band in criterion.answer.ranges if band.text]
    elif isinstance(criterion.answer, Choices):
        lines += [f"- {c.label} counts {c.score:g}{f': {c.text}' if c.text else ''}" for c in criterion.answer.choices]
    elif isinstance(criterion.answer, Rubric):
        lines += [f"- {inner.text}" for inner in criterion.answer.judged]
    if criterion.is_unwanted:
        lines.append("This must NOT hold: the response of which it holds less is the better one.")
    sides = (("1", 1.0, "response 1"), ("2", 0.0, "response 2"), ("tie", _EVEN, "neither"))
    answer = Choices(*(Choice(label, score, text=f"{which} is better") for label, score, which in sides))
    text = "\n".join([*lines, _QUESTION])
    return Criterion(text, id=criterion.id, answer=answer, evidence=False, abstain="forbid")


def text_of_response(candidate: Candidate) -> str:
    """Return the text of a response, with its conversation, tool calls and file changes, if it has any."""
    if not (candidate.part or candidate.file_changes):
        return candidate.output
    return text_of_candidate(evolve(candidate, input="", reference="", context="", variables={}, images=()))


def _together(pair: Pair, first: str, second: str) -> Candidate:
    """Return one candidate that is both responses, between marks that occur in neither."""
    attempt, mark = 0, ""
    while mark in first or mark in second:  # the empty mark is in both
        mark = sha256(json.dumps([attempt, first, second]).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        attempt += 1
    responses = (f"response {n}, {mark}:\n{text}\n{mark}" for n, text in enumerate((first, second), 1))
    return Candidate("\n\n".join(responses), key=pair.key, group=pair.group, **pair.shared())


def _by_code(criterion: Criterion, a: Any, b: Any) -> CriterionPreference:
    """Return what the findings of a check say; a text that it does not apply to is no better and no worse."""
    side: Side | None = None
    if NotApplicable in (type(a), type(b)):
        side = "tie"
    elif isinstance(a, Scored) and isinstance(b, Scored):
        side = _better((a.score - b.score) * (-1 if criterion.is_unwanted else 1))
    return _preference(criterion, (a, b), [side])


def _by_judge(criterion: Criterion, results: Sequence[Grade | Ungraded]) -> CriterionPreference:
    """Return what the orders say; the second one is shown with `b` first."""
    found = [result[criterion.id] for result in results]
    sides: list[Side | None] = [
        _better((finding.score - _EVEN) * sign) if isinstance(finding, Scored) else None
        for finding, sign in zip(found, (1, -1), strict=False)
    ]
    return _preference(criterion, found, sides)


def _better(more: float) -> Side:
    """Return which is better where `a` has *more* than `b`."""
    return "tie" if abs(more) <= _TOLERANCE else "a" if more > 0 else "b"


def _preference(criterion: Criterion, found: Sequence[Any], sides: Sequence[Side | None]) -> CriterionPreference:
    """Return what all orders say together, with the reasons of their findings."""
    outcome: Outcome = "unjudged" if None in sides else "inconsistent" if len({*sides}) > 1 else sides[0] or "tie"
    reasons = tuple(getattr(finding, "reason", "") for finding in found)
    return CriterionPreference(criterion.id, outcome, tuple(sides), reasons, abs(criterion.weight))
