"""
Requests to models, their replies and failures.

`rubric.grading.flow` yields `Ask`s and is sent `Reply`s and `Failure`s; a driver takes them to models and back.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.guided import Guided
from rubric.internals.secrets import MASK, describe, redact_value, redact_values
from rubric.internals.text import counted, visible
from rubric.values.runs import Media, part_of

if TYPE_CHECKING:
    from rubric.values.candidates import Candidate
    from rubric.values.checks import Launcher
    from rubric.values.criteria import Criterion
    from rubric.values.judges import Judge


Role = Literal["system", "user", "assistant"]

FailureKind = Literal[
    "auth",  # the key is wrong or may not use the model: fatal for the judge
    "quota",  # the account is empty: fatal for the judge
    "rate_limited",  # 429: tried again
    "overloaded",  # 503, 529: tried again
    "timeout",  # no whole answer within the deadline: tried again, and may have been paid for
    "transport",  # the connection broke: tried again, and may have been paid for
    "bad_response",  # an answer that is not a chat completion, or one without content
    "truncated",  # cut at max_tokens
    "refusal",  # the model or a filter refused
    "context_window",  # the prompt is too long for the model
    "bad_request",  # anything else that the vendor would refuse again
    "unreadable",  # text that holds no verdict
    "exception",  # a function of the user's raised
    "degenerate",  # the candidate is empty or a known master key, and the rubric says that this is an error
    "unsupported",  # a grader that this library does not have, or may not run
    "budget",  # there is no money left for the call: it was not sent
    "in_doubt",  # sent before a crash, and perhaps paid for: it is held, and not sent again
    "replay",  # not in the store that is replayed
    "not_cast",  # a vote that an early stop left out
]

RETRIED: frozenset[FailureKind] = frozenset({"rate_limited", "overloaded", "timeout", "transport", "bad_response"})
"""The kinds that sending the same request again may cure: `Judge.retries`."""

REASKED: frozenset[FailureKind] = frozenset({"unreadable", "truncated"})
"""The kinds that another request may cure, one with the complaint or with more tokens: `Judge.repairs`."""

MOST_TOKENS = 4096
"""Tokens of the longest reply where its type says nothing of its length: free text, thoughts, a re-ask of a cut one."""

UNSENT: frozenset[FailureKind] = frozenset({"budget", "in_doubt", "replay"})
"""The kinds of requests that were not sent: they are not calls, and a store keeps none of them."""


@frozen
class Outgoing:
    """
    One message of an ask: a *role* and its text in parts.

    The first part of the last message is the same for all asks about one candidate; a vendor's prefix cache
    can serve it. Joined without a separator, the parts are the text.

    Args:
        cuts: Places in the first part. Up to each of them, it is the same for many candidates: those that answer one
            task, and those that differ in their output alone.
    """

    role: Role
    parts: tuple[str, ...]
    cuts: tuple[int, ...] = field(default=(), eq=False, repr=False)

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.parts)


@frozen(slots=False)  # attrs fills a dict in half the time that it takes for slots, and each request makes an ask
class Ask:
    """
    One request to a model.

    Args:
        judge: The judge, with its parameters.
        messages: The prompt.
        schema: The JSON Schema of the reply, the same for all criteria of one answer type.
        criteria: The criteria to judge, in order; several if the judge takes several a call.
        nonce: The text that a sealed verdict must repeat; empty for an unsealed one.
        abstainable: The ids of criteria that may be answered with "cannot tell".
        quoted: The ids of criteria that must be answered with evidence.
        candidate: The graded text, for reading the reply against.
        run: The steps of its run and its file changes, as the prompt has them.
        places: What of *run* is its own: a step, where it starts and where it ends; the step of changes is empty.
        max_tokens: The longest reply: the judge's, or that of the answer's type.
        vote: Which vote of a jury this is, from 0.
        repair: Which re-ask this is; 0 is the first ask.
        media: What to attach: images of the candidate, and what its run shows, by its name in the list of steps.
        many: Whether the reply is a list of verdicts, one a criterion.
        flagless: Whether a judge may leave out its own pass flag, since a threshold decides anyway.
        n: How many replies are wanted in one request, as `Reply.choices`; a model may give fewer.
        retries: The further attempts that are left to a re-ask, less those of earlier asks. None: as many as its judge
            has.
        embeds: Whether it asks for the embeddings of its messages' texts; the reply is their vectors as JSON.
        resends: Whether it is tried again after a failure that leaves in doubt whether the model answered.
        tools: The tools that the judge is offered, as JSON; empty for none.
        turns: The turns after the messages, as JSON each: calls of tools, and their results.
        steps: How many times the judge may still call tools; with 0 it has to answer.
        exact: The JSON Schema of this one reply, as text with an empty nonce, for servers that compile it for each
            request; see `exact_schema`.
        about: The candidate itself, for judges that are functions of it and for programs; the messages have all that a
            model sees.
        program: What answers in the place of a model, `made` of the candidate: such an ask has no messages.
    """

    judge: Judge
    messages: tuple[Outgoing, ...]
    schema: FrozenMap = field(repr=False)
    criteria: tuple[Criterion, ...]
    nonce: str = ""
    abstainable: frozenset[str] = frozenset()
    quoted: frozenset[str] = frozenset()
    candidate: str = field(default="", repr=False)
    run: str = field(default="", repr=False)
    places: tuple[tuple[str, int, int], ...] = field(default=(), eq=False, repr=False)
    max_tokens: int = MOST_TOKENS
    vote: int = 0
    repair: int = 0
    media: tuple[tuple[str, Media], ...] = field(default=(), repr=False)
    many: bool = False
    flagless: bool = True
    n: int = 1
    retries: int | None = None
    resends: bool = True
    embeds: bool = False
    tools: str = field(default="", repr=False)
    turns: tuple[str, ...] = field(default=(), repr=False)
    steps: int = 0
    exact: str = field(default="", eq=False, repr=False)
    about: Candidate | None = field(default=None, eq=False, repr=False)
    program: Launcher | None = None

    @property
    def retries_left(self) -> int:
        """How many further attempts it may take."""
        return self.judge.retries if self.retries is None else self.retries

    def response_format(self) -> dict[str, Any]:
        """Return the schema of the reply as OpenAI's `response_format`, in plain data for `json.dumps`."""
        return {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": thaw(self.schema)}}

    def exact_schema(self) -> str:
        """Return the JSON Schema of this one reply, its nonce included, as JSON text; empty if there is none."""
        # No label and no id can hold what is replaced, since quotation marks within a text are escaped.
        return self.exact.replace('"nonce":{"const":""}', f'"nonce":{{"const":"{self.nonce}"}}')

    def chat(self) -> list[dict[str, Any]]:
        """
        Return the messages in the form that chat APIs take.

        Each content is one text; with media, that of the last message is a list of blocks: one for each, with
        those of a run after their names, then the text.
        """
        messages: list[dict[str, Any]] = [{"role": m.role, "content": m.text} for m in self.messages]
        if self.media:
            # They come first: what follows the tail would differ in its place from ask to ask.
            attached = list[Any]()
            for name, media in self.media:
                attached += [*([{"type": "text", "text": f"{name}:"}] if name else []), part_of(media)]
            messages[-1]["content"] = [*attached, {"type": "text", "text": messages[-1]["content"]}]
        return [*messages, *map(json.loads, self.turns)]

    def offered(self) -> dict[str, Any]:
        """Return the tools as parameters of a request; nothing where there are none."""
        if not self.tools:
            return {}
        return {"tools": json.loads(self.tools), **({} if self.steps else {"tool_choice": "none"})}


@frozen
class Usage(Guided):
    """
    The use of a judge: requests, tokens and money.

    Args:
        calls: Requests that left, every attempt counted; one that got no connection is an attempt, at no cost.
        prompt_tokens: Tokens sent, cached ones included.
        cached_tokens: Of these, how many a prefix cache served.
        completion_tokens: Tokens received.
        cost: In US dollars; None when the price of any part is unknown, never 0 for unknown.
        unmetered: Requests without a report of their tokens (a broken reply, a vendor without usage).
    """

    calls: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = 0.0
    unmetered: int = 0

    @classmethod
    def total(cls, usages: Iterable[Usage]) -> Usage:
        """Return the sum of *usages*."""
        several = [*usages]
        if len(several) < 2:  # noqa: PLR2004
            return several[0] if several else cls()
        cost: float | None = 0.0
        for one in several:
            cost = None if cost is None or one.cost is None else cost + one.cost
        calls, prompt, cached, completion, unmetered = map(sum, zip(*map(_counts, several), strict=True))
        return cls(calls, prompt, cached, completion, cost, unmetered)

    def __add__(self, other: Usage) -> Usage:
        return Usage.total((self, other))

    def __str__(self) -> str:
        if self == NOT_KEPT:
            return "unknown"
        cost = "cost unknown" if self.cost is None else f"${self.cost:,.4f}"
        there = f"{self.prompt_tokens:,}{f' ({self.cached_tokens:,} of them cached)' * bool(self.cached_tokens)} in"
        return f"{counted(self.calls, 'call')}, {there}, {self.completion_tokens:,} out tokens, {cost}"


NOT_KEPT = Usage(cost=None)
"""Of a result from a file that does not have its usage, as `grade-many --out` writes it."""

_counts = attrgetter("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "unmetered")

MOST_CALLS = 16
"""Calls of tools in one turn of a judge; further ones are left out."""

TokenLogprob = tuple[str, float, tuple[tuple[str, float], ...]]
"""A token of a reply, its natural logarithm of probability, and the likeliest tokens in its place with theirs."""


@frozen(slots=False)  # as an ask
class Reply:
    """
    The answer of a model, with all that looks like a secret masked: it is stored, shown and logged.

    Args:
        text: The text; None where the reply had none.
        finish: Why it ended: `stop`, `length`, `refusal`, or the vendor's own word.
        refusal: The text of a refusal.
        usage: The usage of all attempts.
        model: The model's name as the vendor reports it.
        unsent: Parameters of the judge that the model does not take, and that were left out.
        logprobs: Of *text*, token by token, where they were asked for; None where the vendor gave none; empty where a
            part of *text* is masked.
        choices: The texts of all choices, in the vendor's order and *text* first, where more than one came; a choice
            without text is an empty one.
        remarks: Remarks for people on how it was sent, such as a key that went over plain HTTP.
        wanted: The message that asks for tools, as JSON, to be sent back with their results; empty in an answer.
        made: What a program made: a `Decided`, or the candidate that is judged.
        id: The vendor's id of the response.
    """

    text: str | None
    finish: str = "stop"
    refusal: str = ""
    usage: Usage = field(factory=lambda: Usage(calls=1, cost=None, unmetered=1))
    model: str = ""
    unsent: tuple[str, ...] = ()
    logprobs: tuple[TokenLogprob, ...] | None = field(default=None, repr=False)
    choices: tuple[str, ...] = field(default=(), repr=False)
    remarks: tuple[str, ...] = ()
    wanted: str = field(default="", repr=False)
    made: Any = None
    id: str = field(default="", repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        # Not by converters: each request makes a reply, and one look at all its texts costs as much as one at each.
        said = (self.text, self.refusal, self.model, self.choices, self.wanted, self.id)
        if (masked := redact_values(said)) is not said:
            for name, value in zip(("text", "refusal", "model", "choices", "wanted", "id"), masked, strict=True):
                object.__setattr__(self, name, value)
        if self.logprobs and self.text and MASK in self.text:  # its tokens spell out what is masked
            object.__setattr__(self, "logprobs", ())


@frozen
class Failure:
    """
    Why there is no verdict.

    Args:
        kind: One of a few kinds, see `FailureKind`.
        message: A description without secrets.
        judge: The name of the judge.
        criterion: The id of the criterion, where there is one.
        usage: The usage of all attempts; a failed call may cost too.
        retry_after: Seconds that the server asked to wait.
        status: The HTTP status, where there was one.
        in_doubt: Whether the model may have answered, and charged for it, all the same.
        again: Whether it is sent again at once, whatever the judge's retries: the server refused the reply's form or
            the number of replies, and takes a simpler or smaller one.
    """

    kind: FailureKind
    message: str = field(converter=redact_value)
    judge: str = ""
    criterion: str = ""
    usage: Usage = field(factory=Usage)
    retry_after: float | None = None
    status: int | None = None
    in_doubt: bool = False
    again: bool = False

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Return *error* as a failure: its type and its text, without secrets."""
        return cls("exception", describe(error))

    def __str__(self) -> str:
        where = [f"criterion {self.criterion!r}"] if self.criterion else []
        where += [f"judge {self.judge!r}"] if self.judge else []
        return visible(f"{', '.join(where)}{': ' if where else ''}{self.kind}: {self.message}")[0]


@frozen
class Exchange:
    """
    One request to a judge, and what it answered.

    Args:
        ask: The request.
        outcome: The reply or the failure, of the last attempt.
    """

    ask: Ask = field(repr=False)
    outcome: Reply | Failure

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The prompt, in the form that chat APIs take."""
        return self.ask.chat()

    @property
    def text(self) -> str | None:
        """The raw text of the reply; None for a failure, and for a reply without text."""
        return self.outcome.text if isinstance(self.outcome, Reply) else None

    @property
    def usage(self) -> Usage:
        """The usage of all attempts."""
        return self.outcome.usage

    @property
    def criteria(self) -> tuple[str, ...]:
        """The ids of the criteria that were asked about."""
        return tuple(criterion.id for criterion in self.ask.criteria)

    @property
    def judge(self) -> str:
        """The name of the judge."""
        return self.ask.judge.name


Commit = Callable[["Reply | Failure | None"], None]
"""Settles a reservation with the result of its request, before the place is freed; None: it was not sent after all."""

Limiter = Callable[["Ask"], AbstractAsyncContextManager[Commit]]
"""
A context manager around each request. It may wait (a rate limit), or raise a `ModelError` (a budget), which is then
the result of the request: that is not tried again, and was not a call. Left without a commit, it must assume that the
request was sent, and may be charged for: a cancelled request is in doubt, never free.
"""


def commit_nothing(_: Reply | Failure | None) -> None:
    """Ignore the result of a request: a `Commit` for limiters without a reservation."""


Transport = Callable[[Ask], Awaitable[Reply | Failure]]
"""Sends an ask and returns the reply or the failure; it raises nothing but cancellations and interrupts."""

PROGRAMS: ContextVar[Transport | None] = ContextVar("rubric_programs", default=None)
"""What runs the program of an ask, where programs are allowed; None where they are not. `rubric.programs` sets it."""
