"""Judges: one model, the same judge several times, several different judges, or a cheap one before another."""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, get_args, runtime_checkable

from attrs import Attribute, evolve, field, frozen
from attrs import fields as attrs_fields

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.fields import Shown, refuse, shown_fields
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.guided import guided_class
from rubric.internals.secrets import Settings, holds_headers, mask_settings, redact, values_of
from rubric.internals.text import cell, table
from rubric.values.checks import embedder
from rubric.values.clients import CLIENTS, ClientKind, client_identity, client_kind, client_model_name, set_there
from rubric.values.digest import Digested, settings_of
from rubric.values.rubrics import Rubric

if TYPE_CHECKING:
    from rubric.results.result import Grade, Ungraded
    from rubric.values.requests import Ask, Reply


@runtime_checkable
class Model(Protocol):
    """Answers an `Ask`: LiteLLM, a direct client, a script. It raises `ModelError` if it cannot."""

    async def answer(self, ask: Ask, /) -> Reply:
        """Return the reply to *ask*: one attempt, without retries."""
        ...


Function = Callable[[list[dict[str, Any]]], str | Awaitable[str]]
"""
A judge of your own: from chat messages (`{"role": ..., "content": ...}`) to the text of the reply.

A content is a text; with images, that of the last message is a list of OpenAI's blocks: `image_url` for each, and text.
"""

Reader = Callable[[str], Any]
"""Reads a free text: from the text of a reply to the verdict in it. It may raise `ValueError` where there is none."""

Reasoning = Literal["before", "after", "none"]
Aggregate = Literal["mean", "median", "majority"]
Pooled = Literal["rubric", "criterion"]

_OWNERS = {
    "the judge's model": "model",
    "the prompt": "messages",
    "Judge(temperature=...)": "temperature",
    "Judge(max_tokens=...)": "max_tokens max_completion_tokens",
    "Judge(seed=...)": "seed",
    "Judge(timeout=...)": "timeout request_timeout force_timeout stream_timeout",
    "Judge(retries=...)": "max_retries num_retries retry_policy retry_strategy",
    "a Cascade, or a Panel with a quorum": "fallbacks context_window_fallback_dict model_list",
    "grade(..., store=Store(...))": "caching cache",
    "the criterion's answer type": "response_format",
    "nothing: replies are read whole": "stream stream_options",
    "Jury(judge, size)": "n",
    "Judge(logprobs=...)": "logprobs",
    "the environment: HTTPS_PROXY, or HTTP_PROXY": "proxy proxies http_proxy https_proxy",
    "params={'extra_headers': {'X-Team': 'evals'}}": "headers default_headers custom_headers http_headers",
}
"""The parameters that a judge does not take as `params`, by what sets them."""


def is_async(function: object) -> bool:
    """True if *function* is an async function, or an object or a partial that is called as one."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", function)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


def _model(_: Any, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, type):  # a class can be called, but it makes an instance of a prompt, not a reply
        called = f"{value.__name__}; give an instance of it: {value.__name__}(...)"
        raise DefinitionError(attribute.name, f"got the class {called}")
    if isinstance(value, str):
        fields.string(_, attribute, value)
        if not value.strip() or value != value.strip():
            raise refuse(attribute.name, value, "the name of a model, such as 'openai/gpt-5.6' or 'offline'")
        file = re.split("::?|@", value)[0]  # as in judge.py:strict, or of an import, package.judge:strict
        if file.endswith(".py") or (file != value and os.path.isfile(f"{file.replace('.', '/')}.py")):  # noqa: PTH113
            cure = "a judge is the name of a model, as 'openai/gpt-5.6'; yours is judge_function(function), in code"
            raise DefinitionError(attribute.name, f"{value!r} is a file, or a function in one; {cure}")
        if len(value.split()) > 3:  # noqa: PLR2004 - a sentence
            order = "(the candidate comes first, then the rubric, then the judge; yours is judge_function(function))"
            raise refuse(attribute.name, value, f"the name of a model {order}")
    elif client_kind(value):
        if not client_model_name(value):
            cure = f"{type(value).__name__} names no model; rubric.model(client, 'the name of a model') does"
            raise DefinitionError(attribute.name, cure)
    elif isinstance(value, FunctionType):
        _check_function(attribute.name, value)
    elif not callable(value) and not isinstance(value, Model):
        allowed = f"a LiteLLM model name, 'offline', a function from messages to text, or {CLIENTS}"
        raise refuse(attribute.name, value, allowed)


def _check_function(field: str, function: FunctionType) -> None:
    """Refuse a function of a candidate and a criterion, and one whose argument is said to be a text."""
    code, name, kinds = function.__code__, function.__name__, function.__annotations__
    if code.co_argcount - len(function.__defaults__ or ()) == 2:  # noqa: PLR2004
        cure = f"one of the candidate and a criterion is judge_function({name})"
        raise DefinitionError(field, f"a function from messages to text takes one argument; {cure}")
    if any(kinds.get(each) in (str, "str") for each in code.co_varnames[: min(1, code.co_argcount)]):
        text = f"{name}('\\n\\n'.join(m['content'] for m in messages))"
        key = {float: "score", "float": "score", bool: "verdict", "bool": "verdict"}.get(kinds.get("return", ""))
        cure = f"lambda messages: {{'{key}': {text}}}" if key else f"lambda messages: {text}"
        raise DefinitionError(field, f"a judge is given messages, and {name}() takes a text; write {cure}")


def _per_call(_: Any, attribute: Attribute[Any], value: object) -> None:
    if value != "all":
        fields.count(1, " or 'all'")(_, attribute, value)


def _threads(judge: Judge, attribute: Attribute[Any], value: object) -> None:
    fields.count(1)(judge, attribute, value)
    model = judge.model
    if value == 1 or not (isinstance(model, str | Model) or judge.client or is_async(model)):
        return
    kind = "a model name" if isinstance(model, str) else "a model" if isinstance(model, Model) else "an async function"
    message = f"{value} has no effect on {kind}, whose calls run side by side already; leave it out"
    raise DefinitionError(attribute.name, f"{message}, or say how many at once: grade_many(..., concurrency={value})")


def _identity(judge: Judge, attribute: Attribute[Any], value: str | None) -> None:
    if value is None:
        return
    fields.string(judge, attribute, value)
    if not value.strip():
        raise refuse(attribute.name, value, "a text that says which function it is, such as 'v1'")
    if isinstance(judge.model, str) or judge.client:
        raise DefinitionError(attribute.name, "a model that has a name is known by it, so this has no effect")


def _as_reader(value: Any) -> Any:
    if value is None:
        return None
    from rubric.values.readers import as_reader  # noqa: PLC0415 - few judges have a reader

    return as_reader(value)


def _reader(_: Any, attribute: Attribute[Any], value: object) -> None:
    if value is not None:
        from rubric.values.readers import check_reader  # noqa: PLC0415 - likewise

        check_reader(attribute.name, value)
        if is_async(value):
            raise refuse(attribute.name, value, "a function that is not async")


def _as_params(value: Mapping[str, Any]) -> Settings:
    params = fields.as_map("params", value)
    for name in params:
        for owner, owned in _OWNERS.items():
            if name in owned.split():
                raise DefinitionError(f"params.{name}", f"this is set by {owner}")
    return Settings(params)


def _via(judge: Judge, attribute: Attribute[Any], value: str) -> None:
    if not isinstance(value, str) or not (value in ("litellm", "http") or value.startswith(_SCHEMES)):
        raise refuse(attribute.name, value, "'litellm', 'http', or the address of a server: http://..., https://...")
    if value != "litellm" and (judge.model == "offline" or not isinstance(judge.model, str)):
        raise DefinitionError(attribute.name, f"{value!r} is a way to a model that has a name, which this one has not")
    if value.startswith(_SCHEMES) and {"api_base", "base_url"} & {*judge.params}:
        raise DefinitionError(attribute.name, "the address is in params as well; give it once")


def _access(name: str, value: object, params: Mapping[str, Any]) -> str:
    """Return *value*, given as the address or the key of a server; the message of a refusal never has it."""
    if name in params:
        raise DefinitionError(name, "it is in params as well; give it once")
    if not isinstance(value, str) or not value.strip():
        raise DefinitionError(name, f"expected text, got {type(value).__name__ if value else 'an empty one'}")
    return value


_OBJECT = "take it out, or give an object with `async def answer(self, ask)`, which sees `ask.judge`"
_SCHEMES = ("http://", "https://")
_THINKERS = re.compile(
    r"(?<![a-z0-9])(?:o\d|gpt-(?:[5-9]|oss)(?!.*chat)|gemini-(?:2\.5|[3-9])|grok-(?:3-mini|[4-9])|qwen-?3|qwq|r1|"
    r"magistral|glm-(?:4\.[5-9]|[5-9])|kimi-k|minimax-m|nemotron|deepseek-(?:r|v3\.[1-9]|v[4-9]))|reason|think"
)
_THOUGHTS = frozenset(
    {"reasoning_effort", "reasoning", "thinking", "enable_thinking", "chat_template_kwargs", "extra_body"}
)
_WRITTEN_PRECISION = 0.005

_TRANSPORT = frozenset({"timeout", "retries", "threads", "prime", "context", "via", "params", "model"})
_ADDRESSES = frozenset({"api_base", "base_url", "api_version"})


@guided_class
@frozen(repr=False, init=False)
class Judge(Digested):
    """
    One model, and how it is asked.

    Args:
        model: A LiteLLM name (`"openai/gpt-5.6"`), `"offline"`, or a function, sync or async, from chat
            messages to text. A sync function is called one call after another, unless *threads* says otherwise.
        temperature: As the vendor reads it; None sends none.
        max_tokens: The longest reply, thinking included; a reply that is cut there is asked again with twice as many.
            None: by the type of the answer, 520 for a yes or no; a reply that is cut gets 4,096, and so do models that
            think first, free texts and prompts of your own.
        seed: For vendors that take one.
        timeout: Seconds for one attempt, from sending to the last byte.
        retries: How many further attempts a call gets after a transient failure: rate limit, overload, timeout,
            broken connection (a function may raise it). Re-asks share them: at most 1 + retries + repairs requests.
        per_call: How many criteria one call judges: 1, a number, or `"all"`. Trees are always walked alone.
        prompt: A template of your own; it goes before the rubric's.
        repairs: How many times an unreadable reply is asked again, with the complaint.
        sealed: Whether a verdict must carry the nonce of its ask. None: yes for a model name with our own prompt.
        reasoning: Whether the judge gives its reason `before` its verdict, `after` it, or not at all (`none`).
        reader: How a reply is read. None: a JSON object is asked for and read. `rating`: free text that rates: the last
            `Rating: 7`, `[RESULT] 7` or `7/10`, else the only number. A mapping from verdicts to regular expressions
            (RE2): the verdict whose pattern is found. A function from the text to the verdict, for what needs code. The
            verdict is checked as one in JSON is. Not for a sealed judge.
        logprobs: Whether scores are expectations over the likeliest tokens in the verdict's place (G-Eval, arXiv
            2303.16634): of a yes or no, the probability of yes. Where the model gives no probabilities, or they
            cannot be told apart, the sampled score is kept, and a warning says so.
        speculate: Whether all questions of a tree are asked at once, and the walk is taken from the answers: more
            calls, fewer rounds, the same verdict.
        prime: Whether one request goes ahead where more than two share a long prompt prefix, so that the vendor can
            serve the prefix of the others from its cache. False: all go out at once, a round sooner and dearer.
        threads: How many calls of a sync function may run side by side, each in a thread of its own. 1: the function
            need not be thread-safe, and is called in the order of the asks, as a script needs it.
        identity: Which function it is, for a store: `"v1"`, and another text whenever its answers would change. What a
            function calls cannot be known, so a store keeps its replies under this text alone.
        embedder: What makes the embeddings for `Similar` checks: a LiteLLM name, or a function from a list of texts to
            a list of vectors. None: only checks with a function of their own are judged. No file sets it.
        context: How many tokens a prompt may have, of a server of your own or a function. None: as LiteLLM's list has
            it. A prompt that is certain to be longer is not sent, and fails as `context_window`.
        segment_tokens: About how many tokens of a run are shown at once for a criterion that is asked of segments, as
            `Criterion(on="any segment")` is; at most half of what the model reads is a good size. None: all of it.
        params: Further parameters for the vendor, as LiteLLM names them.
        via: How a model name is asked. `litellm`: any vendor, through LiteLLM. `http`: straight over HTTP, for OpenAI
            and for servers of its chat completions protocol, at a fraction of the CPU time. The server's address is
            `params={"api_base": ...}`, or OPENAI_BASE_URL, or OpenAI's own; the name is the server's name of the model,
            after `openai/` if it begins so. The cost is known of models that LiteLLM's price list has. An address
            (`"http://localhost:8000/v1"`) is short for `http` with that `api_base`.
        api_base: Short for `params={"api_base": ...}`: the address of the server, for LiteLLM or over HTTP.
        api_key: Short for `params={"api_key": ...}`. No `repr`, message, file or store ever holds it; without it, the
            environment's key is used.

    Raises:
        DefinitionError: A value that no judge can have.
    """

    model: str | Function | Model = field(validator=_model)
    temperature: float | None = field(default=None, kw_only=True, validator=fields.optional(fields.number(0, 2)))
    max_tokens: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(1)))
    seed: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(-(2**63))))
    timeout: float = field(default=60.0, kw_only=True, validator=fields.number(0, 86_400, above=True))
    retries: int = field(default=2, kw_only=True, validator=fields.count(0))
    per_call: int | Literal["all"] = field(default=1, kw_only=True, validator=_per_call)
    prompt: str | None = field(default=None, kw_only=True, validator=fields.optional(fields.wording))
    repairs: int = field(default=1, kw_only=True, validator=fields.count(0))
    sealed: bool | None = field(default=None, kw_only=True, validator=fields.optional(fields.flag))
    reasoning: Reasoning = field(default="before", kw_only=True, validator=fields.one_of(*get_args(Reasoning)))
    reader: Literal["rating"] | FrozenMap | Reader | None = field(
        default=None, kw_only=True, converter=_as_reader, validator=_reader
    )
    logprobs: bool = field(default=False, kw_only=True, validator=fields.flag)
    speculate: bool = field(default=False, kw_only=True, validator=fields.flag)
    prime: bool = field(default=True, kw_only=True, validator=fields.flag)
    threads: int = field(default=1, kw_only=True, validator=_threads)
    identity: str | None = field(default=None, kw_only=True, validator=_identity)
    embedder: str | Callable[[list[str]], Any] | None = field(
        default=None, kw_only=True, validator=fields.optional(embedder)
    )
    context: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(1)))
    segment_tokens: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(1_000)))
    params: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=_as_params)
    via: str = field(default="litellm", kw_only=True, validator=_via)

    def __init__(
        self,
        model: str | Function | Model,
        *,
        temperature: float | None = None,
        max_tokens: int | None = None,
        seed: int | None = None,
        timeout: float = 60.0,
        retries: int = 2,
        per_call: int | Literal["all"] = 1,
        prompt: str | None = None,
        repairs: int = 1,
        sealed: bool | None = None,
        reasoning: Reasoning = "before",
        reader: Literal["rating"] | Mapping[Any, str] | Reader | None = None,
        logprobs: bool = False,
        speculate: bool = False,
        prime: bool = True,
        threads: int = 1,
        identity: str | None = None,
        embedder: str | Callable[[list[str]], Any] | None = None,
        context: int | None = None,
        segment_tokens: int | None = None,
        params: Mapping[str, Any] = FrozenMap(),
        via: str = "litellm",
        api_base: str | None = None,
        api_key: str | None = None,
    ) -> None:
        for name, value in (("api_base", api_base), ("api_key", api_key)):
            if value is not None:
                params = {**params, name: _access(name, value, params)}
        given = fields.fields_in(Judge, locals())
        self.__attrs_init__(**given)  # pyright: ignore[reportAttributeAccessIssue] - attrs makes it

    def __attrs_post_init__(self) -> None:
        if self.is_function:
            for name in ("temperature", "seed", "logprobs", "params"):
                value = getattr(self, name)
                if value is not None and value is not False and value != FrozenMap():  # a seed of 0 is given
                    message = f"a function is called with the messages alone, so this would do nothing; {_OBJECT}"
                    raise DefinitionError(name, message)
        for name in set_there(getattr(self.model, "client", self.model)):
            if getattr(self, name) != getattr(attrs_fields(Judge), name).default:
                kind = type(getattr(self.model, "client", self.model)).__name__
                cure = f"give it to the client, {kind}({name}=...), where that has it"
                raise DefinitionError(
                    name, f"a {kind} is not given it with a call, so it would do nothing here; {cure}"
                )
        if self.reader is not None:
            from rubric.values.readers import check_judge  # noqa: PLC0415 - few judges have a reader

            check_judge(self)
        if self.via.startswith(_SCHEMES):
            object.__setattr__(self, "params", Settings({**self.params, "api_base": self.via}))
            object.__setattr__(self, "via", "http")

    def __repr__(self) -> str:
        """Return the expression that makes this judge, without the secrets."""
        return redact(Shown.__repr__(self), values_of(getattr(self, "params", {})))

    @cached_property
    def client(self) -> ClientKind | None:
        """The kind of client object that answers; None if a name, a function or another model does."""
        return None if isinstance(self.model, str | FunctionType) else client_kind(self.model)

    @cached_property
    def name(self) -> str:
        """The model's name, or the function's."""
        if isinstance(self.model, str):
            return self.model
        named = getattr(self.model, "__name__", None) or client_model_name(self.model)
        return str(named or type(self.model).__name__)

    def single_judges(self) -> tuple[Judge, ...]:
        """Return the judge itself; of a jury, a panel or a cascade, every single judge in it."""
        return (self,)

    def _settings(self) -> Any:
        known = mask_settings(thaw(self.params)).items()
        params = {name: each for name, each in known if name not in _ADDRESSES and not holds_headers(name)}
        fields = {f.name: settings_of(getattr(self, f.name)) for f in shown_fields(self) if f.name not in _TRANSPORT}
        return {"model": self.name, **fields, **({"params": params} if params else {})}

    def without_early_stop(self) -> Judge:
        """Return the judge itself; of a jury, a panel or a cascade, one that asks for every vote."""
        return self

    @cached_property
    def is_function(self) -> bool:
        """Whether a plain function answers, which is given the messages and nothing else."""
        return not (isinstance(self.model, str | Model) or self.client)

    @property
    def identified_by(self) -> str | None:
        """What tells its replies from those of other judges, beside its name; None: nothing does, see *identity*."""
        if self.identity is not None or isinstance(self.model, str):
            return self.identity or ""
        if self.client:
            return client_identity(self.model, self.name)
        given = getattr(self.model, "identity", None)
        return given if isinstance(given, str) else None

    @cached_property
    def may_think(self) -> bool:
        """Whether its name, or a parameter, says that the model thinks before it answers, in tokens of the reply."""
        return _THINKERS.search(self.name.lower()) is not None or not _THOUGHTS.isdisjoint(self.params)

    def is_sealed(self, *, own_prompt: bool = False) -> bool:
        """True if verdicts must repeat the nonce; *own_prompt*: the rubric has a template."""
        if self.sealed is not None:
            return self.sealed
        is_llm = isinstance(self.model, str) or self.client or getattr(self.model, "is_llm", False)
        return bool(is_llm) and self.prompt is None and not own_prompt

    def _repr_markdown_(self) -> str:
        return table(("judge", "settings"), [(self.name, repr(self))])


@frozen(repr=False, init=False)
class RecordedJudge(Judge):
    """A judge of which results hold the name and the digest alone, such as a function: it cannot be asked."""

    recorded: str = field(default="", kw_only=True)

    def __init__(self, name: str, recorded: str) -> None:
        def ask(_: object) -> str:
            message = f"results were read, and they hold the name of their judge, {name}, alone; give it as judge=..."
            raise DefinitionError("judge", message)

        ask.__name__ = ask.__qualname__ = name
        self.__attrs_init__(ask, recorded=recorded)  # pyright: ignore[reportAttributeAccessIssue]

    def __repr__(self) -> str:
        return f"RecordedJudge({self.name!r}, {self.recorded!r})"

    @property
    def digest(self) -> str:
        return self.recorded


def as_judge(value: AnyJudge | str | Function | Model | Iterable[Any], /) -> AnyJudge:
    """Return *value* as a judge: a model name or a function is one, a list is a panel; a name may be registered."""
    if isinstance(value, str) and "/" not in value and value != "offline":
        from rubric.values.registered_judges import registered_judge  # noqa: PLC0415 - most names have a vendor

        if named := registered_judge(as_judge, value):
            return named
    if isinstance(value, Judge | Jury | Panel | Cascade):
        return value
    if isinstance(value, list | tuple):
        return Panel(value)
    if isinstance(value, Rubric):
        raise DefinitionError("judge", "got a Rubric; the candidate comes first, then the rubric, then the judge")
    return Judge(cast("str | Function | Model", value))


def _as_juror(value: AnyJudge | str | Function | Model) -> AnyJudge:
    if isinstance(value, list | tuple):
        cure = "several judges are a panel: Panel(['openai/gpt-5', 'anthropic/claude-sonnet-5'], aggregate='majority')"
        raise DefinitionError("judge", f"a jury is one judge several times; {cure}")
    return as_judge(value)


class _Rule(Digested):
    """What a jury, a panel and a cascade have in common: they grade by the votes of their members."""

    @property
    def members(self) -> tuple[Judge | Jury | Panel | Cascade, ...]:
        """The judges that cast the votes, in order; a cascade's second is asked only where its first leaves a doubt."""
        raise NotImplementedError

    def single_judges(self) -> tuple[Judge, ...]:
        """Return every single judge within, in order; that of a jury once."""
        return tuple(single for member in self.members for single in member.single_judges())


@guided_class
@frozen(repr=False)
class Jury(_Rule):
    """
    The same judge several times: the whole rubric is graded *size* times.

    It passes when the share of passing votes meets *consensus*; the score is the mean, the cost the sum.

    Args:
        judge: The judge of each vote.
        size: The number of votes.
        consensus: The share of passing votes in (0, 1] that passes. Counts are compared: 2 of 3 meets 0.67.
        early_stop: Stop when the votes that are left cannot change the verdict.
        quorum: The fewest votes that must be graded for a result; None means all.
        one_request: Ask for all votes in one request, as its choices, so that the prompt is paid for once. Votes that
            a model does not give that way are asked for one by one, and a warning says so.
    """

    _positional = ("judge", "size")

    judge: Judge | Panel | Jury | Cascade = field(converter=_as_juror)
    size: int = field(default=3, validator=fields.count(1))
    consensus: float = field(default=0.5, validator=fields.number(0, 1, above=True))
    early_stop: bool = field(default=False, kw_only=True, validator=fields.flag)
    quorum: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(1)))
    one_request: bool = field(default=False, kw_only=True, validator=fields.flag)

    def __attrs_post_init__(self) -> None:
        _check_quorum(self.quorum, self.size)
        if self.one_request and isinstance(self.judge, Judge) and self.judge.is_function:
            raise DefinitionError("one_request", f"a function gives one reply a call; {_OBJECT}")

    @property
    def needed(self) -> int:
        """How many passing votes meet the consensus, of *size* votes."""
        return passes_needed(self.consensus, self.size)

    @property
    def name(self) -> str:
        """The jury in a few words."""
        return f"jury of {self.size}: {self.judge.name}"

    @property
    def members(self) -> tuple[Judge | Jury | Panel | Cascade, ...]:
        """The judge, as often as it votes."""
        return (self.judge,) * self.size

    def single_judges(self) -> tuple[Judge, ...]:
        """Return every single judge within, in order, once."""
        return self.judge.single_judges()

    def without_early_stop(self) -> Jury:
        """Return one that asks for every vote."""
        return evolve(self, judge=self.judge.without_early_stop(), early_stop=False)

    def _repr_markdown_(self) -> str:
        return f"jury of {self.size}, consensus {self.consensus:g}: {cell(repr(self.judge))}"


def passes_needed(consensus: float, votes: int) -> int:
    """
    Return how many of *votes* must pass to meet *consensus*.

    Counts are compared: a consensus within half a hundredth of k of n means k, so 2 of 3 meets 0.67.
    """
    nearest = round(consensus * votes)
    if nearest and abs(nearest / votes - consensus) <= _WRITTEN_PRECISION:
        return nearest
    return max(1, math.ceil(consensus * votes))


def _check_quorum(quorum: int | None, size: int) -> None:
    if quorum is not None and quorum > size:
        raise DefinitionError("quorum", f"expected at most the number of votes, {size}, got {quorum}")


def _as_judges(value: Iterable[AnyJudge | str | Function | Model]) -> tuple[Judge | Jury | Panel | Cascade, ...]:
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        problem = refuse("judges", value, "a list of judges")
        raise DefinitionError("judges", f"{problem.message}; write Panel('...', '...'), or Jury(judge, 3)")
    judges = tuple(as_judge(judge) for judge in value)
    if not judges:
        raise DefinitionError("judges", "a panel has at least one judge, this one has none")
    return judges


def _as_weights(value: Iterable[float] | None) -> tuple[float, ...] | None:
    if value is None:
        return None
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise refuse("weights", value, "a list of numbers, one a judge")
    return tuple(cast("float", fields.plain_number(weight)) for weight in value)


@guided_class
@frozen(repr=False, init=False)
class Panel(_Rule):
    """
    Several different judges; each grades the whole rubric. The reported score is the panel's mean.

    Args:
        judges: The members: judges, juries, panels, or model names; one by one, or in a list.
        aggregate: The rule that decides: the `mean` or the `median` of the scores against the threshold (gates: more
            than half of the members must find them passed), or the `majority` of the members' verdicts.
        tie_break: The verdict of an even split, for a majority: `fail` or `pass`.
        consensus: The share of the members (by weight) that must pass, for a majority; None means more than half.
        quorum: The fewest members that must be graded for a result; None means all.
        weights: One positive number a member; None counts all alike.
        level: `rubric` pools verdicts; `criterion` pools the members' findings one by one, then scores once.
        early_stop: Stop when the members that are left cannot change the verdict; with the level `rubric` alone.
    """

    judges: tuple[Judge | Jury | Panel | Cascade, ...] = field(converter=_as_judges)
    aggregate: Aggregate = field(default="mean", kw_only=True, validator=fields.one_of(*get_args(Aggregate)))
    tie_break: Literal["fail", "pass"] = field(default="fail", kw_only=True, validator=fields.one_of("fail", "pass"))
    consensus: float | None = field(
        default=None, kw_only=True, validator=fields.optional(fields.number(0, 1, above=True))
    )
    quorum: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(1)))
    weights: tuple[float, ...] | None = field(default=None, kw_only=True, converter=_as_weights)
    level: Pooled = field(default="rubric", kw_only=True, validator=fields.one_of(*get_args(Pooled)))
    early_stop: bool = field(default=False, kw_only=True, validator=fields.flag)

    def __init__(
        self,
        *members: AnyJudge | str | Function | Model | Iterable[AnyJudge | str | Function | Model],
        judges: Iterable[AnyJudge | str | Function | Model] | None = None,
        aggregate: Aggregate = "mean",
        tie_break: Literal["fail", "pass"] = "fail",
        consensus: float | None = None,
        quorum: int | None = None,
        weights: Iterable[float] | None = None,
        level: Pooled = "rubric",
        early_stop: bool = False,
    ) -> None:
        if members and judges is not None:
            raise DefinitionError("judges", "they are given twice; write Panel('...', '...') or Panel(judges=[...])")
        for rule in members[1:]:
            if isinstance(rule, str) and rule in get_args(Aggregate):
                raise DefinitionError(
                    "judges", f"{rule!r} would be a model here; write Panel([...], aggregate={rule!r})"
                )
        # One that is not a list is refused below: a panel of one judge is more likely a list that was forgotten.
        given: Any = judges if judges is not None else members[0] if len(members) == 1 else members
        options = {**fields.fields_in(Panel, locals()), "judges": given}
        self.__attrs_init__(**options)  # pyright: ignore[reportAttributeAccessIssue] - attrs makes it

    def __attrs_post_init__(self) -> None:
        _check_quorum(self.quorum, len(self.judges))
        if self.tie_break != "fail" and self.aggregate != "majority":
            raise DefinitionError("tie_break", f"a {self.aggregate} has no ties; it is for aggregate='majority'")
        if self.consensus is not None:
            self._check_consensus()
        if self.early_stop and self.level == "criterion":
            raise DefinitionError("early_stop", "findings are pooled from all members; it is for level='rubric'")
        if self.weights is None:
            return
        if len(self.weights) != len(self.judges):
            raise DefinitionError("weights", f"expected one a judge, {len(self.judges)}, got {len(self.weights)}")
        for weight in self.weights:
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
                raise refuse("weights", weight, "positive finite numbers")

    def _check_consensus(self) -> None:
        if self.aggregate != "majority" or self.level == "criterion":
            message = "it counts the members that pass: it is for aggregate='majority' and level='rubric'"
            raise DefinitionError("consensus", message)
        if self.tie_break != "fail":
            raise DefinitionError("tie_break", "a consensus says how many must pass, so there are no ties; keep one")

    @property
    def name(self) -> str:
        """The panel in a few words."""
        return f"panel: {', '.join(member.name for member in self.judges)}"

    @property
    def members(self) -> tuple[Judge | Jury | Panel | Cascade, ...]:
        """The judges."""
        return self.judges

    def without_early_stop(self) -> Panel:
        """Return one that asks for every vote."""
        return evolve(self, judges=[member.without_early_stop() for member in self.judges], early_stop=False)

    def _repr_markdown_(self) -> str:
        weights = self.weights or (1,) * len(self.judges)
        rows = [(repr(judge), f"{weight:g}") for judge, weight in zip(self.judges, weights, strict=True)]
        needed = "" if self.consensus is None else f", consensus {self.consensus:g}"
        return f"panel, {self.aggregate}{needed}\n\n{table(('judge', 'weight'), rows)}"


_Named = Literal["fails", "borderline", "ungraded", "disagrees"]
_OCCASIONS = get_args(_Named)

Occasion = _Named | tuple[float, float] | Callable[["Grade | Ungraded"], bool]
"""When a cascade goes on: a name, the lowest and the highest doubtful score, or a function of your own."""


def _as_occasion(value: Any) -> Any:
    return tuple(map(fields.plain_number, value)) if isinstance(value, list | tuple) else value


def _occasion(_: Any, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, str):
        fields.one_of(*_OCCASIONS)(_, attribute, value)
    elif isinstance(value, tuple):
        if len(value) != 2:  # noqa: PLR2004 - a pair
            raise refuse(attribute.name, value, "the lowest and the highest score that are in doubt")
        for score in value:
            fields.check_number(attribute.name, score, 0, 1)
        if value[0] > value[1]:
            raise refuse(attribute.name, value, "the lower score first")
    elif not callable(value) or isinstance(value, type):
        raise refuse(attribute.name, value, f"one of {', '.join(_OCCASIONS)}, a pair of scores, or a function")


@guided_class
@frozen(repr=False)
class Cascade(_Rule):
    """
    A cheap judge first; another, only where the first leaves a doubt.

    The result is that of the last judge that was asked; both results are kept as votes, and their usage is summed. If
    the first is ungraded, the other is always asked, unless a function decides.

    Args:
        first: Grades every candidate: a judge, a jury, a panel, or another cascade.
        then: Grades it anew where *when* holds.
        when: `fails`: the first's result does not pass. `borderline`: its verdict is that. `ungraded`: it is no grade.
            `disagrees`: its votes have different verdicts. A pair of scores in 0..1: its score lies between the two,
            both included. Or a function from the first's `Grade | Ungraded` to a bool.

    Raises:
        DefinitionError: A value that cannot be, such as a lone judge whose votes would have to disagree.
    """

    _positional = ("first", "then")

    first: Judge | Jury | Panel | Cascade = field(converter=as_judge)
    then: Judge | Jury | Panel | Cascade = field(converter=as_judge)
    when: Occasion = field(converter=_as_occasion, validator=_occasion)

    def __attrs_post_init__(self) -> None:
        if self.when == "disagrees" and isinstance(self.first, Judge):
            raise DefinitionError("when", "one judge cannot disagree with itself; give a jury or a panel as the first")

    @property
    def name(self) -> str:
        """The cascade in a few words."""
        return f"cascade: {self.first.name}, then {self.then.name}"

    @property
    def members(self) -> tuple[Judge | Jury | Panel | Cascade, ...]:
        """The first judge, and the one that is asked where it leaves a doubt."""
        return self.first, self.then

    def without_early_stop(self) -> Cascade:
        """Return one whose judges ask for every vote."""
        return evolve(self, first=self.first.without_early_stop(), then=self.then.without_early_stop())

    def _repr_markdown_(self) -> str:
        when = self.when if isinstance(self.when, str | tuple) else getattr(self.when, "__name__", repr(self.when))
        return f"cascade: {cell(repr(self.first))}, then ({cell(str(when))}) {cell(repr(self.then))}"


AnyJudge = Judge | Jury | Panel | Cascade
"""Anything that can grade a rubric: one judge, a jury, a panel or a cascade."""
