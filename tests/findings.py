"""Hypothesis strategies for the arithmetic: rubrics of every kind, what judges may find, what is not known yet."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any

from attrs import evolve, field, frozen
from hypothesis import strategies as st

from rubric import Choices, Contains, Criterion, DecisionTree, Levels, Rubric, Unit, When, YesNo
from rubric.driving import Ask, Failure, Reply, Usage
from rubric.grading.reply_parser import reach
from rubric.results import Abstained, Evidence, NotApplicable, Scored, Unjudged
from rubric.scoring.outcomes import abstainable, asks_evidence, outcome
from rubric.testing.scripted_model import Line, Says, reply_to
from rubric.values import Leaf
from rubric.values.answers import Answer
from rubric.values.checks import Check
from rubric.values.findings import Finding
from tests.strategies import built

GONE = Failure("timeout", "nothing came back")
QUOTED = (Evidence("2.3.0", 4, 9),)
INVENTED = (Evidence("9.9.9"),)

weights = st.sampled_from([1, 1, 2, 0.1, 3.5, 1e-300, 1e300])
units = st.one_of(st.sampled_from([0.0, 0.5, 0.7, 1.0]), st.floats(0, 1))
applying = st.sampled_from([None, None, None, When(contains="2.3.0"), When(contains="nothing of the kind")])


# A strategy that is made anew for each draw is also checked anew, which took a third of a property's time.
@lru_cache(maxsize=None, typed=True)
def any_of(*values: Any) -> st.SearchStrategy[Any]:
    """Return one of *values*, which may be there more than once."""
    return st.sampled_from(values)


@cache
@st.composite
def trees(draw: st.DrawFn, path: str, depth: int = 2) -> DecisionTree:
    """Return a tree whose questions differ from all others."""
    branches = [
        draw(trees(f"{path}{side}", depth - 1)) if depth > 1 and draw(st.booleans()) else Leaf(draw(units))
        for side in "yn"
    ]
    return DecisionTree(f"{path}?", yes=branches[0], no=branches[1])


@cache
def _answers(path: str, depth: int, *, flagged: bool) -> st.SearchStrategy[Answer]:
    own: list[st.SearchStrategy[Any]] = [st.just(YesNo()), st.just(Unit(flag=True)), st.just(Contains("2.3.0"))]
    own += [rubrics(path, depth - 1)] if depth else []
    scored: list[st.SearchStrategy[Any]] = [st.just(Unit()), st.just(Levels()), trees(path)]
    scored += [st.just(Choices({"low": 0.5, "high": 0.6}))]
    return st.one_of(*own) if flagged else st.one_of(*own, *scored)


@cache
@st.composite
def criteria(draw: st.DrawFn, path: str, depth: int, *, flagged: bool) -> Criterion:
    """Return a criterion whose text is *path*; *flagged*: it can be decided without a threshold."""
    polarity: Any = draw(any_of("satisfy", "satisfy", "guard", "penalty", "contradiction", "correctness"))
    answer = draw(_answers(path, depth, flagged=flagged))
    if polarity == "penalty" and (flagged or answer == Unit(flag=True)):
        polarity = "guard"
    gates = polarity != "penalty"
    return built(
        Criterion,
        path,
        answer=answer,
        weight=draw(weights),
        polarity=polarity,
        required=gates and draw(st.booleans()),
        min_score=draw(any_of(None, None, 0.3, 0.8, 1)) if gates else None,
        when=draw(applying),
        evidence=draw(any_of(None, None, None, True)),
        abstain=draw(any_of(None, None, "forbid", "exclude", "zero", "fail", 0.4)),
    )


@cache
@st.composite
def rubrics(draw: st.DrawFn, path: str = "r", depth: int = 1) -> Rubric:
    """Return a rubric of one to four criteria, other rubrics among them; every rule of scoring may be set."""
    threshold = draw(any_of(None, 0, 0.3, 0.5, 0.7, 0.8, 1))
    paths = [f"{path}{index}" for index in range(draw(st.integers(1, 4)))]
    held = [draw(criteria(p, depth, flagged=threshold is None)) for p in paths]
    signs = {c.polarity == "penalty" for c in held}
    asks = not all(isinstance(c.answer, Rubric) for c in held)  # else the rubrics in it do
    fitting = ["weighted_average", "weighted_average", "min"] if len(signs) == 1 else []
    fitting += ["points"] if False in signs else []
    return Rubric(
        path,
        criteria=held,
        threshold=threshold,
        borderline=None if threshold is None else draw(any_of(None, None, threshold / 2)),
        strict=draw(any_of(False, False, False, True)),
        aggregation=draw(any_of(*fitting)),
        evidence=draw(any_of(False, False, asks)),
        abstain=draw(any_of("forbid", "forbid", "exclude", "zero", "fail", 0.4)) if asks else "forbid",
        negate=draw(any_of(False, False, False, True)),
    )


# -- findings, and when they become known ------------------------------------------------------------------


@frozen
class Known:
    """What is found of one criterion, and from which *stage* on it is known; a nested rubric has *parts*."""

    criterion: Criterion
    finding: Finding
    stage: int = 0
    parts: tuple[Known, ...] = field(default=())


@st.composite
def known(draw: st.DrawFn, rubric: Rubric) -> tuple[Known, ...]:
    """Return what is found of all criteria of *rubric*, known from the stages 0 to 2 on."""
    return tuple([draw(_known(rubric, criterion)) for criterion in rubric.judged])


@st.composite
def _known(draw: st.DrawFn, rubric: Rubric, criterion: Criterion) -> Known:
    if criterion.when is not None and criterion.when.contains != "2.3.0":
        return Known(criterion, NotApplicable(criterion.id))
    match criterion.answer:
        case Check():
            return Known(criterion, Scored(criterion.id, float(draw(st.booleans()))))
        case Rubric() as inner:
            return Known(criterion, NotApplicable(criterion.id), parts=draw(known(inner)))
        case _:
            return Known(criterion, draw(_found(rubric, criterion)), draw(st.integers(0, 2)))


@st.composite
def _found(draw: st.DrawFn, rubric: Rubric, criterion: Criterion) -> Finding:
    if abstainable(rubric, criterion) and draw(st.integers(0, 3)) == 0:
        return Abstained(criterion.id)
    match criterion.answer:
        case DecisionTree() as tree:
            return Scored(criterion.id, draw(st.sampled_from([leaf.score for leaf in tree.leaves()])))
        case Choices(choices=choices):
            score = draw(st.sampled_from([choice.score for choice in choices]))
        case Levels() as levels:
            score = levels.place(draw(st.integers(levels.low, levels.high)))
        case Unit():
            score = draw(units)
        case _:
            score = float(draw(st.booleans()))
    flag = draw(st.booleans()) if criterion.answer == Unit(flag=True) else None
    evidence = draw(any_of((), QUOTED, INVENTED)) if asks_evidence(rubric, criterion) else ()
    return Scored(criterion.id, score, evidence=evidence, flag=flag)


def at_stage(rubric: Rubric, facts: Sequence[Known], stage: int) -> tuple[Finding, ...]:
    """Return the findings as they stand at *stage*: what is not known yet is unjudged."""
    return tuple(_at_stage(fact, stage) for fact in facts)


def _at_stage(fact: Known, stage: int) -> Finding:
    id_, answer = fact.criterion.id, fact.criterion.answer
    if isinstance(answer, Rubric) and fact.parts:
        parts = at_stage(answer, fact.parts, stage)
        if all(isinstance(part, NotApplicable) for part in parts):
            return NotApplicable(id_)
        came_to = outcome(answer, parts)
        if came_to.score is None:
            return Unjudged(id_, GONE, "", *came_to.bounds, parts=parts)
        return Scored(id_, came_to.score, parts=parts)
    if fact.stage <= stage:
        return fact.finding
    scores = [leaf.score for leaf in answer.leaves()] if isinstance(answer, DecisionTree) else reach(answer)
    return Unjudged(id_, GONE, "", min(scores), max(scores))


@st.composite
def cases(draw: st.DrawFn, depth: int = 1) -> tuple[Rubric, tuple[Known, ...]]:
    """Return a rubric, and what is found of its criteria."""
    rubric = draw(rubrics(depth=depth))
    return rubric, draw(known(rubric))


# -- judges that make up their replies ---------------------------------------------------------------------


def improvised(seed: object, *, failing: float = 0, unreadable: float = 0) -> Callable[[Ask], Line]:
    """Return a script that answers anything: the same ask about the same vote gets the same answer."""

    def say(ask: Ask) -> Line:
        texts = [criterion.text for criterion in ask.criteria]
        chance = _chance(seed, texts, ask.vote, ask.repair)
        if chance.random() < failing:
            return GONE
        if chance.random() < unreadable:
            return "I would rather not."
        return reply_to(ask, *[_said(ask, c, _chance(seed, c.text, ask.vote)) for c in ask.criteria])

    return say


class Sampling:
    """
    A script that answers as vendors do: they know prompts and no votes, and each reply to one prompt is a new sample.

    The first reply to a prompt is what *say* says as vote 0, the second as vote 1, whether they come in one request or
    in several; a request gets at most *most* of them.
    """

    def __init__(self, say: Callable[[Ask], Line], most: int = 100) -> None:
        self.say, self.most = say, most
        self.given = Counter[object]()

    def __call__(self, ask: Ask) -> Line:
        prompt = (ask.messages, ask.repair)
        first, count = self.given[prompt], min(ask.n, self.most)
        self.given[prompt] += count
        texts = tuple([self._text(ask, first + n) for n in range(count)])
        usage = Usage(1, sum(len(m.text) for m in ask.messages) // 4, 0, sum(map(len, texts)) // 4, 0.0)
        return Reply(texts[0], usage=usage, choices=texts if len(texts) > 1 else ())

    def _text(self, ask: Ask, vote: int) -> str:
        line = self.say(evolve(ask, vote=vote, n=1))
        assert isinstance(line, str), "a request fails as a whole, so there is no such thing as a sample that failed"
        return line


def _chance(*parts: object) -> random.Random:
    return random.Random(repr(parts))


def _said(ask: Ask, criterion: Criterion, chance: random.Random) -> Says:
    value: Any
    match criterion.answer:
        case Unit():
            value = chance.choice([0.0, 0.4, 0.5, 0.8, 1.0])
        case Levels(low=low, high=high):
            value = chance.randint(low, high)
        case Choices(choices=choices):
            value = chance.choice(choices).label
        case _:
            value = chance.random() < 0.6
    if criterion.id in ask.abstainable and chance.random() < 0.2:
        value = None
    flag = chance.random() < 0.7 if criterion.answer == Unit(flag=True) else None
    return Says(value, evidence=chance.choice([(), ("2.3.0",), ("9.9.9",)]), flag=flag)
