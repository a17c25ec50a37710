"""Plan a grading without sending anything: its asks, and how many calls it takes at least and at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from attrs import evolve, field, frozen

from rubric.grading.candidate_parts import SEGMENTS, asked_parts, in_segments, no_answer
from rubric.grading.code_checks import decide, forbidden, is_of_view
from rubric.grading.prompting import STEPS, SharedPrompt, as_question, compose, group_criteria, shared_prompt
from rubric.grading.similarity import embedding_ask
from rubric.grading.tool_use import most_of_a_turn, offer_tools
from rubric.internals.guided import Guided
from rubric.internals.notebooks import as_html
from rubric.internals.text import cell, counted, table
from rubric.scoring.votes import Voter, fewest_votes, number_votes
from rubric.values.candidates import Candidate
from rubric.values.checks import Check, Similar, Within
from rubric.values.criteria import Criterion
from rubric.values.findings import Unjudged
from rubric.values.judges import AnyJudge, Cascade, Judge, Jury, Panel
from rubric.values.requests import PROGRAMS, Ask
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree

Range = tuple[int, int]
Count = Callable[[Judge, str], int]
Price = Callable[[Judge], tuple[float, float] | None]
Window = Callable[[Judge], int | None]

Worst = Callable[[Ask, int], float | None]
"""The most that an ask with so many further tokens may cost, in US dollars; None if that is unknown."""


_MOST_UNJUDGED = 3
_WIDE = 10
"""Times the least that the most may cost before a plan says why: a model that thinks has no usual length of a reply."""


@frozen(repr=False)
class Plan(Guided):
    """
    The calls, tokens and cost of a grading that has not been sent.

    Args:
        least: Calls if every tree ends and every jury stops as early as possible, no cascade goes on, every request of
            a jury for several votes gets them all, and every judge with tools answers at once.
        most: Calls if none does, and judges with tools take all their steps. Re-asks of unreadable replies (at most
            `Judge.repairs` an ask) and retries of failed calls come on top; `ceiling` counts the re-asks.
        ceiling: Calls if every reply has to be asked for again as often as the judge allows.
        prompt_tokens: At least and at most, for `least` and `most` calls.
        cost: In US dollars, for `least` and `most` calls: at least (the prompt alone, none of it from a cache), and at
            most (with the framing of a request, its schema, the dearest price, and the longest replies allowed). None
            where a price is unknown.
        asks: Every ask that may be made, in order, with the exact messages.
        free: Criteria that need no call: by code, or because they do not apply.
        remarks: On candidates: texts that no field takes, or a question that the rubric speaks of and none has.
        beyond: The prompts that are longer than the context window of their judge, where that is known: its name, the
            tokens of the prompt, and those of the window.
        unpriced: The judges whose price is unknown.
        priced: In US dollars, as *cost*: what the calls cost whose price is known.
        unjudged: The criteria that are certain to stay unjudged, each with the reason.
    """

    usual_tokens: ClassVar[int] = 150  # of a reply: a verdict, and a sentence or two of reason
    least: int = 0
    most: int = 0
    ceiling: int = 0
    prompt_tokens: Range = (0, 0)
    cost: tuple[float, float] | None = (0.0, 0.0)
    asks: tuple[Ask, ...] = field(default=(), repr=False)
    free: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    beyond: tuple[tuple[str, int, int], ...] = ()
    unpriced: tuple[str, ...] = ()
    priced: tuple[float, float] = (0.0, 0.0)
    unjudged: tuple[str, ...] = ()

    @classmethod
    def total(cls, plans: Iterable[Plan]) -> Plan:
        """Return the sum of *plans*."""
        every = list(plans)
        costs = [plan.cost for plan in every if plan.cost is not None]
        return cls(
            sum(plan.least for plan in every),
            sum(plan.most for plan in every),
            sum(plan.ceiling for plan in every),
            (sum(plan.prompt_tokens[0] for plan in every), sum(plan.prompt_tokens[1] for plan in every)),
            (sum(low for low, _ in costs), sum(high for _, high in costs)) if len(costs) == len(every) else None,
            tuple(ask for plan in every for ask in plan.asks),
            tuple(dict.fromkeys(id_ for plan in every for id_ in plan.free)),
            tuple(dict.fromkeys(remark for plan in every for remark in plan.remarks)),
            tuple(one for plan in every for one in plan.beyond),
            tuple(dict.fromkeys(name for plan in every for name in plan.unpriced)),
            (sum(plan.priced[0] for plan in every), sum(plan.priced[1] for plan in every)),
            tuple(dict.fromkeys(said for plan in every for said in plan.unjudged)),
        )

    def __repr__(self) -> str:
        return f"<{self.line(cures=True)}>"

    def line(self, *, cures: bool = False) -> str:
        """Return all in one line, with *cures* that Python has and the command line has not."""
        why = ""
        if self.unpriced:
            rates = ", ".join(f"{name!r}: (0.1, 0.4)" for name in self.unpriced)
            cure = f"; write prices={{{rates}}}, in dollars for a million tokens sent and back" if cures else ""
            why = f" (no price of {', '.join(self.unpriced)} is known{cure})"
            known = dict.fromkeys(ask.judge.name for ask in self.asks if ask.judge.name not in self.unpriced)
            why += f"; {_extent(*self.priced, '${:.4f}')} of {', '.join(known)}" if known else ""
        cost = f"cost unknown{why}" if self.cost is None else self._dollars(*self.cost)
        calls = counted(1, "call") if self.least == self.most == 1 else f"{_extent(self.least, self.most)} calls"
        ends = (f"certain to stay unjudged: {each}" for each in self.unjudged[:_MOST_UNJUDGED])
        said = "".join(f"; {remark}" for remark in (*self.remarks, *self._overlong(), *ends))
        return f"Plan: {calls}, {_extent(*self.prompt_tokens)} prompt tokens, {cost}{said}"

    def _dollars(self, low: float, high: float) -> str:
        longest = max((ask.max_tokens for ask in self.asks), default=0)
        ends = f" (prompts alone, to replies of {longest:,} tokens each; bound these by Judge(..., max_tokens=...))"
        usual = (
            f", about ${self.cost_at(self.usual_tokens):.4f} at {self.usual_tokens} tokens a reply"
            if longest > self.usual_tokens
            else ""
        )
        return _extent(low, high, "${:.4f}") + (usual + ends if longest and high > _WIDE * low else "")

    def cost_at(self, tokens: int, /) -> float | None:
        """Return about what it costs, in US dollars, with replies of so many *tokens*; None if a price is unknown."""
        longest = max((ask.max_tokens for ask in self.asks), default=0)
        if self.cost is None or not longest:
            return None if self.cost is None else self.cost[1]
        return self.cost[0] + (self.cost[1] - self.cost[0]) * min(1, tokens / longest)

    def _overlong(self) -> Iterable[str]:
        for name, window in dict.fromkeys((name, window) for name, _, window in self.beyond):
            tokens = [tokens for judge, tokens, most in self.beyond if (judge, most) == (name, window)]
            yield f"{counted(len(tokens), 'prompt')} of up to {max(tokens):,} tokens, and {name} reads {window:,}"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain JSON-able data, messages included."""
        return {
            "calls": {"least": self.least, "most": self.most, "ceiling": self.ceiling},
            **{name: list(getattr(self, name)) for name in ("prompt_tokens", "free", "remarks", "unjudged")},
            "cost": None if self.cost is None else list(self.cost),
            "beyond": [{"judge": name, "tokens": tokens, "window": window} for name, tokens, window in self.beyond],
            "asks": [
                {"judge": a.judge.name, "criteria": [c.id for c in a.criteria], "vote": a.vote, "messages": a.chat()}
                for a in self.asks
            ],
        }

    _repr_html_ = as_html

    def _repr_markdown_(self) -> str:
        rows = [(a.judge.name, ", ".join(c.id for c in a.criteria), len(a.messages[-1].text)) for a in self.asks]
        return f"{cell(self.line())}\n\n{table(('judge', 'criteria', 'characters'), rows)}"


def _extent(low: float, high: float, form: str = "{}") -> str:
    return form.format(low) if low == high else f"{form.format(low)} to {form.format(high)}"


def plan_one(
    candidate: Candidate,
    rubric: Rubric,
    judge: AnyJudge,
    *,
    count: Count,
    price: Price,
    worst: Worst | None = None,
    window: Window | None = None,
) -> Plan:
    """Return the plan for grading one *candidate*; without *worst*, its texts and longest replies are added up."""
    if rubric.degenerate != "judge" and candidate.degenerate:
        return Plan(free=tuple(c.id for c in rubric.judged))
    about = shared_prompt(candidate, rubric)
    made: dict[int, Plan] = {}  # a jury's votes differ in nothing but their number

    def plan_votes(voter: Voter) -> Plan:
        judge = voter.judge
        if not isinstance(judge, Judge):
            return _together(rubric, judge, [plan_votes(member) for member in voter.members])
        if id(judge) not in made:
            made[id(judge)] = _Planner(about, judge, count, price, worst, window).of_rubric(rubric, "")
        found = made[id(judge)]
        return evolve(found, asks=tuple(evolve(ask, vote=voter.vote) for ask in found.asks))

    return plan_votes(number_votes(judge))


def _together(rubric: Rubric, rule: Jury | Panel | Cascade, members: Sequence[Plan]) -> Plan:
    if isinstance(rule, Cascade) or (isinstance(rule, Jury) and rule.one_request):
        fewest = 1
    elif not rule.early_stop or (isinstance(rule, Panel) and rule.level == "criterion"):
        fewest = len(rule.members)
    else:
        fewest = fewest_votes(rule, rubric)
    least, most = Plan.total(members[:fewest]), Plan.total(members)
    cost = None if least.cost is None or most.cost is None else (least.cost[0], most.cost[1])
    sent, priced = (least.prompt_tokens[0], most.prompt_tokens[1]), (least.priced[0], most.priced[1])
    return evolve(most, least=least.least, prompt_tokens=sent, cost=cost, priced=priced)


@frozen
class _Planner:
    about: SharedPrompt
    judge: Judge
    count: Count
    price: Price
    worst: Worst | None
    window: Window | None

    def of_rubric(self, rubric: Rubric, guidelines: str) -> Plan:
        turned = [c for c in rubric.judged if c.on != "conversation"]
        if turned:
            rest = [c for c in rubric.judged if c.on == "conversation"]
            plans = [
                self._of_parts(rubric, criterion, guidelines) for criterion in turned if criterion.on not in SEGMENTS
            ]
            if cut := [c for c in turned if c.on in SEGMENTS]:
                parts = in_segments(self.about.candidate, self.judge).values()
                apart = [evolve(self, about=shared_prompt(part, self.about.rubric)) for part in parts]
                plans += [one._of_criteria(rubric, cut, guidelines) for one in apart]  # noqa: SLF001 - of the same class
            return Plan.total([*plans, *([self._of_criteria(rubric, rest, guidelines)] if rest else [])])
        return self._of_criteria(rubric, rubric.judged, guidelines)

    def _of_parts(self, rubric: Rubric, criterion: Criterion, guidelines: str) -> Plan:
        if criterion.when is not None and is_of_view(criterion):
            if not criterion.applies_to(self.about.candidate):
                return Plan(free=(criterion.id,))
            criterion = evolve(criterion, when=None)
        parts = asked_parts(criterion, self.about.candidate)
        if isinstance(parts, Unjudged) and callable(criterion.on):
            parts = {"": self.about.candidate}  # a stand-in may lack what a function looks for
        if isinstance(parts, Unjudged) or no_answer(criterion, self.about.candidate, self.about.rubric) is not None:
            return Plan(free=(criterion.id,))
        apart = [evolve(self, about=shared_prompt(part, self.about.rubric)) for part in parts.values()]
        return Plan.total(one._of_criteria(rubric, [criterion], guidelines) for one in apart)  # noqa: SLF001 - of the same class

    def _of_criteria(self, rubric: Rubric, criteria: Sequence[Criterion], guidelines: str) -> Plan:
        asking = (c for c in criteria if isinstance(c.answer, Similar) or not isinstance(c.answer, Check))
        candidate, outer = self.about.candidate, self.about.rubric
        judged = [c for c in asking if c.applies_to(candidate) and no_answer(c, candidate, outer) is None]
        asked = {c.id for c in judged}
        free = tuple(c.id for c in criteria if c.id not in asked)
        limits = [decide(c, candidate) for c in criteria if isinstance(c.answer, Within)]
        lost = tuple(f"{each.id}: {each.failure.message}" for each in limits if isinstance(each, Unjudged))
        if PROGRAMS.get() is None:
            lost += tuple(f"{c.id}: {forbidden(c, c.programs).message}" for c in criteria if c.programs)
        plans = [self._of_group(rubric, group, guidelines) for group in group_criteria(judged, self.judge)]
        return Plan.total([Plan(free=free, unjudged=lost), *plans])

    def _of_group(self, rubric: Rubric, group: Sequence[Criterion], guidelines: str) -> Plan:
        match group[0].answer:
            case DecisionTree() as tree:
                return self._of_tree(rubric, group[0], tree, guidelines)
            case Rubric() as inner:
                return self.of_rubric(inner, inner.guidelines)
            case Similar() as check:
                ask = embedding_ask(group[0], check, self.about.candidate.output, self.judge)
                if isinstance(ask, Ask):
                    return self._of_ask(ask)
                return Plan(free=(group[0].id,), unjudged=(f"{group[0].id}: {ask.message}",))
            case _:
                return self._of_ask(self._ask(rubric, group, guidelines))

    def _ask(self, rubric: Rubric, criteria: Sequence[Criterion], guidelines: str) -> Ask:
        ask = compose(self.about, rubric, self.judge, criteria, guidelines=guidelines)
        return offer_tools(ask, rubric, steps=STEPS in self.about.sections)

    def _of_tree(self, rubric: Rubric, criterion: Criterion, tree: DecisionTree, guidelines: str) -> Plan:
        """A walk takes from the shortest to the longest branch; asked ahead, it takes all questions."""
        questions = [as_question(rubric, criterion, node) for node in tree.nodes()]
        plans = [self._of_ask(self._ask(rubric, [question], guidelines)) for question in questions]
        if self.judge.speculate:
            return Plan.total({plan.asks[0].criteria[0].text: plan for plan in plans}.values())
        fewest, most = (sorted(plan.prompt_tokens[end] for plan in plans) for end in (0, 1))
        lows, highs = (sorted(plan.cost[end] for plan in plans if plan.cost is not None) for end in (0, 1))
        cost = (sum(lows[: tree.shortest]), sum(highs[-tree.depth :]))
        return Plan(
            tree.shortest,
            tree.depth * plans[0].most,
            tree.depth * plans[0].ceiling,
            (sum(fewest[: tree.shortest]), sum(most[-tree.depth :])),
            cost if len(lows) == len(plans) else None,
            tuple(ask for plan in plans for ask in plan.asks),
            beyond=tuple(one for plan in plans for one in plan.beyond),
            unpriced=plans[0].unpriced,
            priced=cost,
        )

    def _of_ask(self, ask: Ask) -> Plan:
        return plan_ask(ask, count=self.count, price=self.price, worst=self.worst, window=self.window)


def plan_ask(ask: Ask, *, count: Count, price: Price, worst: Worst | None = None, window: Window | None = None) -> Plan:
    """Return the plan of one *ask*: with tools, of an answer at once, or after as many turns as it has steps."""
    tokens = count(ask.judge, "\n".join(m.text for m in ask.messages))
    more = [turn * most_of_a_turn(ask) for turn in range(1, ask.steps + 1)] if ask.tools else []
    prices, cost = price(ask.judge), None
    if prices is not None:
        least = tokens * prices[0]
        if worst is None:
            highest: list[float | None] = [least + n * prices[0] + ask.max_tokens * prices[1] for n in (0, *more)]
        else:
            highest = [worst(ask, n) for n in (0, *more)]
        known = [one for one in highest if one is not None]
        cost = (least, sum(known)) if len(known) == len(highest) else None
    most = 1 + len(more)
    sent, limit = (tokens, most * tokens + sum(more)), None if window is None else window(ask.judge)
    beyond = () if limit is None or tokens <= limit else ((ask.judge.name, tokens, limit),)
    unpriced = () if prices is not None else (ask.judge.name,)
    made = Plan(1, most, most + ask.judge.repairs, sent, cost, (ask,), beyond=beyond, unpriced=unpriced)
    return made if cost is None else evolve(made, priced=cost)
