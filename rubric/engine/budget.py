"""
What runs may spend: money, requests and tokens.

A request reserves the most that it may take before it is sent, and commits what it took when it is through. Amounts
are whole pico-dollars, calls and tokens, so that sums are exact: floats would drift, and a budget of $1 might hold a
request of a hundredth too many or too few.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from functools import partial
from typing import NoReturn

from attrs import define, evolve, field, frozen
from attrs.setters import frozen as fixed

from rubric.engine.rate_limits import FairQueue, of_one_process
from rubric.errors import DefinitionError, ModelError, Wording
from rubric.internals.fields import as_map, check_number, count, number, optional, refuse, suggest
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guided import Guided, guided_init
from rubric.internals.text import counted
from rubric.models.offline import OFFLINE
from rubric.models.pricing import dearest, model_name, price, priced
from rubric.models.retry import is_free
from rubric.values.judges import AnyJudge, Judge
from rubric.values.requests import Ask, Commit, Failure, Reply, Usage

PICO = 10**12
"""Pico-dollars in a dollar: a token costs down to some thousands of them."""


@frozen
class Amount:
    """
    Money, requests and tokens. Without a limit, they are counted as far as they are reported.

    Args:
        cost: In US dollars; None if it is not known, or not limited.
        calls: Requests; None if they are not limited.
        tokens: Of prompts and replies; None if they are not limited.
    """

    cost: float | None = 0.0
    calls: int | None = 0
    tokens: int | None = 0

    def __str__(self) -> str:
        parts = [] if self.cost is None else [f"${self.cost:.4f}"]
        parts += [] if self.calls is None else [counted(self.calls, "call")]
        parts += [] if self.tokens is None else [f"{self.tokens:,} tokens"]
        return ", ".join(parts) or "no limit"


@frozen
class Sum:
    """An exact amount: *pico*-dollars, calls, tokens."""

    pico: int = 0
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.pico + other.pico, self.calls + other.calls, self.tokens + other.tokens)

    def __sub__(self, other: Sum) -> Sum:
        return Sum(self.pico - other.pico, self.calls - other.calls, self.tokens - other.tokens)


def pico(dollars: float) -> int:
    """Return *dollars* in whole pico-dollars."""
    return round(dollars * PICO)


@define
class Reservation:
    """
    The amount that a request is charged: the *most* that was set aside, until more is known.

    Args:
        rates: For replies that report their tokens and not their cost.
        is_agreed: Whether these hold whatever cost is reported.
        outcome: Of the request; None until it is known, and for good after a cancellation: then it may have been
            carried out, so all is charged.
        is_sent: False if the request was not sent after all.
    """

    most: Sum
    rates: tuple[float, float] | None = None
    is_agreed: bool = False
    outcome: Reply | Failure | None = None
    is_sent: bool = True

    def commit(self, outcome: Reply | Failure | None) -> None:
        """Note the outcome; None: the request was not sent."""
        self.outcome, self.is_sent = outcome, outcome is not None

    def count_outcome(self, outcome: Reply | Failure | None) -> Reply | Failure | None:
        """Note the outcome, and return the part of it that is counted, with the cost that follows from the tokens."""
        self.commit(outcome)
        if outcome is None:
            return None
        usage = evolve(outcome.usage, cost=self.cost) if self.is_metered else outcome.usage
        if isinstance(outcome, Reply):
            return Reply(None, usage=usage)
        return Failure(outcome.kind, "", in_doubt=outcome.in_doubt, retry_after=outcome.retry_after, usage=usage)

    @property
    def charged(self) -> Sum:
        """The amount."""
        if self.is_free:
            return Sum()
        usage = self.usage
        cost = self.most.pico if self.cost is None else pico(self.cost)
        if not self.is_metered:
            return Sum(max(cost, self.most.pico), max(self.most.calls, usage.calls), self.most.tokens)
        return Sum(cost, usage.calls, usage.prompt_tokens + usage.completion_tokens)

    @property
    def is_known(self) -> bool:
        """True if it is what the request took, and not only the most that it can have taken."""
        return self.is_free or (self.is_metered and self.cost is not None)

    @property
    def is_free(self) -> bool:
        return not self.is_sent or (isinstance(self.outcome, Failure) and is_free(self.outcome))

    @property
    def usage(self) -> Usage:
        return Usage() if self.outcome is None else self.outcome.usage

    @property
    def is_metered(self) -> bool:
        return self.usage.calls > 0 and not self.usage.unmetered

    @property
    def cost(self) -> float | None:
        """The cost that was reported, or that follows from the tokens; None if neither is known."""
        usage = self.usage
        if self.rates is None or (usage.cost is not None and not self.is_agreed):
            return usage.cost
        return usage.prompt_tokens * self.rates[0] + usage.completion_tokens * self.rates[1]


_MILLION = 10**6


def _as_prices(value: Mapping[str, tuple[float, float]]) -> FrozenMap:
    found = as_map("prices", value)
    for name, pair in found.items():
        if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004 - there and back
            raise refuse(f"prices.{name}", pair, "two prices: of a million tokens sent, and that come back")
        for each in pair:
            check_number(f"prices.{name}", each, 0, math.inf)
    return found


@guided_init
@define(eq=False, repr=False)
class Budget(Guided):
    """
    What may be spent. Every request passes it, retries and re-asks included.

    Before a request is sent, the most that it may take is set aside: the tokens of the prompt and of the longest reply
    at their prices. When it is through, the amount that it took is charged instead. If that is not known (no usage in
    the reply, a timeout, a broken connection, a cancellation in flight), all that was set aside is charged. A request
    that was turned away with an error status, or that another limiter held back, is charged nothing. A request that
    does not fit waits until those in flight are through, then fails with the kind `budget`, unsent. So no more is ever
    spent, as far as the tokens of a prompt can be known beforehand: exactly for OpenAI's models; for others with half
    as much again.

    Runs that are given the same object share it, also across threads. A forked child goes on with a copy, in which all
    that was set aside then is spent.

    Args:
        cost: In US dollars; None for any. A judge without a known price is then refused.
        calls: Requests that may be paid for; None for any.
        tokens: Of prompts and replies; None for any.
        prices: Of models by their names, instead of those that LiteLLM knows: US dollars for a million prompt tokens,
            and for a million of the reply. A cost that a model of your own reports is taken as it is.

    Raises:
        DefinitionError: A value that is not a limit, or no price.

    Example:
        >>> budget = Budget(cost=5.00, calls=10_000)
        >>> budget
        <Budget: $0.0000, 0 calls, 0 tokens spent; $5.0000, 10,000 calls left>
    """

    cost: float | None = field(default=None, kw_only=True, validator=optional(number(0)), on_setattr=fixed)
    calls: int | None = field(default=None, kw_only=True, validator=optional(count(0)), on_setattr=fixed)
    tokens: int | None = field(default=None, kw_only=True, validator=optional(count(0)), on_setattr=fixed)
    prices: FrozenMap = field(factory=FrozenMap, kw_only=True, converter=_as_prices, on_setattr=fixed)
    _spent: Sum = field(factory=Sum, init=False)
    _held: Sum = field(factory=Sum, init=False)
    _is_known: bool = field(default=True, init=False)
    _queue: FairQueue = field(factory=FairQueue, init=False)

    def __attrs_post_init__(self) -> None:
        self._queue.after_fork = self._spend_what_is_held

    def _spend_what_is_held(self) -> None:
        # In a forked child: the parent's requests may have been sent, and nothing here will ever commit them. If they
        # were given back, parent and child together could spend more than the cap.
        self._spent, self._held = self._spent + self._held, Sum()

    def __call__(self, ask: Ask) -> AbstractAsyncContextManager[Commit]:
        """Return what the request *ask* passes: entered when there is enough for it, left when it is through."""
        return self._passing(ask)

    def at_once(self, ask: Ask) -> AbstractAsyncContextManager[Commit]:
        """Return the same for a request that cannot wait for those in flight: it is refused if it does not fit now."""
        return self._passing(ask, waits=False)

    @asynccontextmanager
    async def _passing(self, ask: Ask, *, waits: bool = True) -> AsyncIterator[Commit]:
        async with self.reserve(await self.claim(ask), waits=waits) as commit:
            yield commit

    @asynccontextmanager
    async def reserve(self, claim: Reservation, *, waits: bool = True) -> AsyncIterator[Commit]:
        """Return what a request with this *claim* passes, which another process may send."""
        async with self._setting_aside(claim, "this request", waits=waits):
            try:
                yield claim.commit
            except ModelError:  # from a limiter behind this one: it was not sent
                claim.is_sent = False
                raise

    @property
    def spent(self) -> Amount:
        """The amount charged; its cost is None if some of it is unknown, which takes a budget without a cap."""
        return Amount(self._spent.pico / PICO if self._is_known else None, self._spent.calls, self._spent.tokens)

    @property
    def held(self) -> Amount:
        """The amount set aside for requests in flight; its cost is 0 without a cap."""
        return Amount(self._held.pico / PICO, self._held.calls, self._held.tokens)

    @property
    def left(self) -> Amount:
        """The amount neither spent nor set aside, never below 0; None without a limit."""
        with self._queue.lock:
            return self._remaining()

    def _remaining(self) -> Amount:
        gone = self._spent + self._held
        return Amount(
            None if self.cost is None else max(0, pico(self.cost) - gone.pico) / PICO,
            None if self.calls is None else max(0, self.calls - gone.calls),
            None if self.tokens is None else max(0, self.tokens - gone.tokens),
        )

    def __repr__(self) -> str:
        spent, held = self.spent, self.held
        set_aside = f", {held} set aside" if held.calls else ""
        return f"<Budget: {spent} spent{set_aside}; {self.left} left>"

    def __reduce__(self) -> NoReturn:
        raise of_one_process("budget", "Budget(cost=1.00)")

    def check(self, judges: AnyJudge, *, name: str = "budget") -> None:
        """
        Refuse *judges* before anything is sent, if the cost is limited and the price of one of them is not known.

        It may load LiteLLM, which takes seconds, so on an event loop it belongs into a thread.

        Args:
            name: The argument that the error is about.

        Raises:
            DefinitionError: With the name of the judge, and what helps.
        """
        for judge in judges.single_judges() if self.cost is not None else ():
            if judge.name not in self.prices and price(judge) is None:
                raise DefinitionError(name, _no_price(judge))

    def charge(self, usage: Usage) -> None:
        """Charge what an agent or a script spent, which was not set aside."""
        with self._queue.lock:
            self._add(usage)

    def _add(self, usage: Usage) -> None:
        tokens = usage.prompt_tokens + usage.completion_tokens
        self._spent += Sum(pico(usage.cost or 0.0), usage.calls, tokens)
        self._is_known = self._is_known and usage.cost is not None

    @contextmanager
    def entrusting(self) -> Iterator[tuple[Amount, Callable[[Usage], None]]]:
        """
        Set all that is left aside, for requests that pass another budget of that amount, in another process.

        Yields the amount, and a function that commits what they took. If it is never called, since that process is
        gone, all of it is charged: the part that was sent is unknown, and money that is spent twice does not come back.
        """
        with self._queue.lock:
            left = self._remaining()
            # One call where calls have no limit: other requests then wait until this is committed, and are not refused.
            most = Sum(pico(left.cost or 0.0), 1 if left.calls is None else left.calls, left.tokens or 0)
            self._held += most
        commits: list[Usage] = []
        try:
            yield left, commits.append
        finally:
            with self._queue.lock:
                self._held -= most
                if commits:
                    self._add(commits[-1])
                else:
                    self._spent += most
                    self._is_known = self._is_known and self.cost is not None
                self._queue.wake_first()

    async def charge_for(self, ask: Ask, outcome: Reply | Failure) -> None:
        """Charge *ask*, which an earlier process sent."""
        claim = await self.claim(ask)
        claim.commit(outcome)
        with self._queue.lock:
            self._count(claim)

    def refuse_beyond(self, cost: float = 0.0) -> None:
        """
        Refuse something that may take *cost* US dollars, if less is left once all requests in flight are through.

        Where the cost is not known, it is refused once a limit is reached.

        Raises:
            ModelError: With a failure of the kind `budget`.
        """
        spent = self._spent
        least = Sum(pico(cost) or min(1, spent.pico), min(1, spent.calls), min(1, spent.tokens))
        if why := self._why_not(least, "this case"):
            raise ModelError(Failure("budget", why))

    @asynccontextmanager
    async def holding(self, cost: float) -> AsyncIterator[Callable[[Usage], None]]:
        """
        Set *cost* aside for something that takes several requests, none of which passes this same budget.

        Yields a function that commits the usage; all is charged if that has no cost, or if it is never called.

        Raises:
            ModelError: It does not fit, with a failure of the kind `budget`.
        """
        claim = Reservation(Sum(pico(cost), 1))
        async with self._setting_aside(claim, "this case"):
            # A usage without a call would count as unknown, and be charged in full.
            yield lambda usage: claim.commit(Reply(None, usage=evolve(usage, calls=max(1, usage.calls))))

    @asynccontextmanager
    async def _setting_aside(self, claim: Reservation, what: str, *, waits: bool = True) -> AsyncIterator[None]:
        most = claim.most
        if waits:
            await self._queue.pass_through(partial(self._admit, most, what))
        else:
            with self._queue.lock:
                if self._admit(most, what) > 0:
                    why = self._why_not(self._held + most, "what is in flight, and this,")
                    raise ModelError(Failure("budget", f"not sent: {why}"))
        try:
            yield
        finally:
            with self._queue.lock:
                self._held -= most
                self._count(claim)
                self._queue.wake_first()

    def _count(self, reservation: Reservation) -> None:
        self._spent += reservation.charged
        self._is_known = self._is_known and (reservation.is_known or self.cost is not None)

    async def claim(self, ask: Ask, *, tokens: bool = False) -> Reservation:
        """Return what to set aside for *ask*: amounts with a limit are looked up, and *tokens* if they are wanted."""
        agreed = self._is_agreed(ask.judge)
        if self.cost is None and self.tokens is None and not tokens:
            return Reservation(Sum(calls=1), self._rates(ask.judge, 1), agreed)
        from rubric.models.token_counts import most_tokens  # noqa: PLC0415 - for limits that need it

        sent, back = await most_tokens(ask)
        most, rates = Sum(0, 1, sent + back), self._rates(ask.judge, sent)
        if self.cost is not None and rates is None:
            raise ModelError(Failure("budget", f"not sent: {_no_price(ask.judge)}"))
        if self.cost is not None and rates is not None:
            most = evolve(most, pico=pico(sent * rates[0] + back * rates[1]))
        return Reservation(most, self._rates(ask.judge, most.tokens), agreed)

    def _is_agreed(self, judge: Judge) -> bool:
        # A model of the user's own may report its cost, which is then taken as it is.
        return judge.name in self.prices and (judge.model == OFFLINE or bool(model_name(judge)))

    def price_usage(self, judge: Judge, usage: Usage) -> Usage:
        """Return *usage* of *judge* with the cost by `prices`, where they hold and its tokens are known."""
        if judge.name not in self.prices or usage.unmetered or not usage.calls:
            return usage
        if usage.cost is not None and not self._is_agreed(judge):
            return usage
        there, back = self.prices[judge.name]
        return evolve(usage, cost=(usage.prompt_tokens * there + usage.completion_tokens * back) / _MILLION)

    def priced(self, judges: Iterable[str]) -> AbstractContextManager[None]:
        """Let the `prices` stand in estimates; raise `DefinitionError` for a model that *judges* do not name."""
        names = {*judges}
        for name in self.prices:
            if name not in names:
                raise DefinitionError(f"prices.{name}", f"no judge has this model{suggest(name, sorted(names))}")
        return priced({name: (there / _MILLION, back / _MILLION) for name, (there, back) in self.prices.items()})

    def _rates(self, judge: Judge, sent: int) -> tuple[float, float] | None:
        if judge.name in self.prices:
            there, back = self.prices[judge.name]
            return there / _MILLION, back / _MILLION
        return None if self.cost is None else dearest(judge, sent)

    def _admit(self, most: Sum, what: str) -> float:
        if not self._why_not(self._held + most, what):
            self._held += most
            return 0.0
        if self._held.calls:  # those in flight will give something back
            return math.inf
        raise ModelError(Failure("budget", f"not sent: {self._why_not(most, what)}"))

    def _why_not(self, more: Sum, what: str) -> str:
        """Return why *more* does not fit beside the amount spent, or ''."""
        spent = self._spent
        gone = spent + more
        if self.cost is not None and gone.pico > pico(self.cost) and more.pico > 0:
            paid, may = f"${spent.pico / PICO:.4f}", f"${more.pico / PICO:.4f}"
            return f"over the budget of ${self.cost:g}: {paid} are spent, and {what} may take {may}"
        if self.calls is not None and gone.calls > self.calls and more.calls > 0:
            return f"over the budget of {self.calls:,} calls: {spent.calls:,} are spent"
        if self.tokens is not None and gone.tokens > self.tokens and more.tokens > 0:
            used = f"{spent.tokens:,} are spent, and {what} may take {more.tokens:,}"
            return f"over the budget of {self.tokens:,} tokens: {used}"
        return ""


def _no_price(judge: Judge) -> Wording:
    """Return the message on *judge*, whose price is not known."""
    cures = Wording("give ", calls=None), Wording("give the price: ", prices=None), "leave out the cost"
    return Wording(f"the price of {judge.name!r} is not known, so its cost cannot be capped; ", cures)
