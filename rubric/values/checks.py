"""Checks: criteria that code decides, without a call to a judge."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeGuard, cast, get_args

from attrs import Attribute, field, frozen

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.fields import Shown, refuse
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.guided import guided_class
from rubric.internals.text import shorten
from rubric.values.answers import Check as Check  # noqa: PLC0414 - it belongs here, and rules are checks too
from rubric.values.matching import check_schema, matches, matches_name, misfit, pattern, unknown_formats

if TYPE_CHECKING:
    from rubric.values.candidates import Candidate
    from rubric.values.requests import Failure
    from rubric.values.run_rules import Matcher, RunRule


class Launcher:
    """
    What starts programs: a `Script`, or a function of a candidate for `Holds` or `Criterion.on`.

    `flow` does not call such a function, which would block its thread: it asks for it to be run, as for a `Script`.
    """

    __slots__ = ()

    @property
    def scripts(self) -> Sequence[str]:
        """The names of the programs that it starts: its own, or those that a function says; empty for none."""
        return (str(self),)


def launcher_of(value: object) -> Launcher | None:
    """Return what starts programs in *value*, an answer or what a criterion is asked of; None if nothing does."""
    found = value.function if isinstance(value, Holds) else value
    return found if isinstance(found, Launcher) and found.scripts else None


_described = partial(shorten, limit=60)
_ANY_CASE = " in any case"


@frozen(repr=False)  # its subclasses inherit the methods of attrs; making them anew takes a third of a millisecond each
class _OfText(Check, Shown):
    """The common fields of checks for one text."""

    _verb: ClassVar[str]

    text: str = field(validator=fields.text)
    ignore_case: bool = field(default=False, kw_only=True, validator=fields.flag)

    def __str__(self) -> str:
        return f"{self._verb} {_described(self.text)!r}{_ANY_CASE if self.ignore_case else ''}"


@guided_class
class Contains(_OfText):
    """The output has *text* in it."""

    __slots__ = ()
    _verb = "contains"


@guided_class
class StartsWith(_OfText):
    """The output begins with *text*."""

    __slots__ = ()
    _verb = "starts with"


@guided_class
class EndsWith(_OfText):
    """The output ends with *text*."""

    __slots__ = ()
    _verb = "ends with"


@guided_class
class Equals(_OfText):
    """The output is *text*; white space at the ends does not matter."""

    __slots__ = ()
    _verb = "equals"


def _as_texts(value: Iterable[str]) -> tuple[str, ...]:
    texts = fields.as_tuple("texts", value, str, "texts")
    if not texts or not all(texts):
        raise refuse("texts", value, "a list of texts, none of them empty")
    return texts


@frozen(repr=False)
class _OfTexts(Check, Shown):
    """The common fields of checks for several texts."""

    _verb: ClassVar[str]

    texts: tuple[str, ...] = field(converter=_as_texts)
    ignore_case: bool = field(default=False, kw_only=True, validator=fields.flag)

    def __str__(self) -> str:
        return f"{self._verb} {_described(', '.join(map(repr, self.texts)))}{_ANY_CASE if self.ignore_case else ''}"


@guided_class
class ContainsAny(_OfTexts):
    """The output has at least one of *texts* in it."""

    __slots__ = ()
    _verb = "contains any of"


@guided_class
class ContainsAll(_OfTexts):
    """The output has each of *texts* in it."""

    __slots__ = ()
    _verb = "contains all of"


@guided_class
@frozen(repr=False)
class Matches(Check, Shown):
    """The regular expression *pattern* (RE2 syntax) is found in the output."""

    pattern: str = field(validator=pattern)

    def __str__(self) -> str:
        return f"matches {_described(self.pattern)}"

    def found_in(self, text: str) -> bool:
        """True if the pattern is found in *text*, which takes time linear in it."""
        return matches(self.pattern, text)


@guided_class
@frozen(repr=False)
class IsJSON(Check, Shown):
    """The output is one JSON value and nothing else."""

    def __str__(self) -> str:
        return "is JSON"


def _as_schema(value: Mapping[str, Any]) -> FrozenMap:
    if not isinstance(value, Mapping):
        raise refuse("schema", value, "a JSON Schema (a mapping)")
    schema = FrozenMap(value)
    check_schema("schema", thaw(schema))
    return schema


@guided_class
@frozen(repr=False)
class FitsSchema(Check, Shown):
    """The output is JSON that fits *schema* (JSON Schema; draft 2020-12 unless it names another)."""

    schema: FrozenMap = field(converter=_as_schema)

    def __str__(self) -> str:
        return f"fits the schema {_described(str(self.schema.get('title') or self.schema))}"

    @property
    def unknown_formats(self) -> list[str]:
        """The values of "format" in it that are not known: nothing is checked by them."""
        return unknown_formats(thaw(self.schema))

    def misfit(self, value: Any) -> str:
        """Return where and why *value*, JSON that was read, does not fit the schema; '' if it fits."""
        return misfit(thaw(self.schema), value)


@guided_class
@frozen(repr=False)
class Calls(Check, Shown):
    """
    The candidate's run called the tool *name*, with at least the given *arguments*.

    In the name, as in those of `Trajectory` and `When(tool_called=...)`, `*` and `?` match other letters, and case does
    not matter: a guard against `delete_*` finds `delete_db`.
    """

    name: str = field(validator=fields.text)
    arguments: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)

    @property
    def rule(self) -> RunRule:
        """The check as a rule over runs."""
        from rubric.values.run_rules import call  # noqa: PLC0415 - few rubrics need rules

        return call(self.name, arguments=self.arguments).at_least(1)

    def __str__(self) -> str:
        import json  # noqa: PLC0415 - building a rubric needs none

        with_ = f" with {_described(json.dumps(str(self.arguments)))}" if self.arguments else ""
        return f"calls {self.name}{with_}"


Order = Literal["in_order", "exact"]


def _as_tools(value: Iterable[str]) -> tuple[str, ...]:
    tools = fields.as_tuple("tools", value, str, "names of tools")
    if not tools or not all(tool.strip() for tool in tools):
        raise refuse("tools", value, "a list of names of tools, none of them empty")
    return tools


@guided_class
@frozen(repr=False)
class Trajectory(Check, Shown):
    """
    The candidate's run called *tools*; the score is 1 or 0.

    Args:
        tools: Their names, in which `*` and `?` match other letters, and case does not matter.
        order: `in_order`: in this order, with other calls between them; `exact`: in this order, and no others.
    """

    tools: tuple[str, ...] = field(converter=_as_tools)
    order: Order = field(default="in_order", kw_only=True, validator=fields.one_of(*get_args(Order)))

    def __str__(self) -> str:
        return f"calls {_described(', '.join(self.tools))} {self.order.replace('_', ' ')}"

    def followed_by(self, called: Iterable[str]) -> bool:
        """True if the tools that a run *called* follow it."""
        if self.order == "exact":
            names = [*called]
            return len(names) == len(self.tools) and all(map(matches_name, self.tools, names))
        rest = iter(called)
        return all(any(matches_name(tool, name) for name in rest) for tool in self.tools)


LIMITS = ("latency", "cost", "tokens", "calls", "tool_calls", "perplexity")
"""What `Within` can limit."""

_limit = fields.optional(fields.number(0, float("inf")))


@guided_class
@frozen(repr=False)
class Within(Check, Shown):
    """
    The candidate's run took no more than these limits; the score is the share of them that it kept.

    They are compared with `Candidate.metrics`, and *tool_calls* with the number of its tool calls. A limit on what is
    not known leaves the criterion unjudged: a live target is measured, and a fixed response can come with `metrics`.

    Args:
        latency: Seconds.
        cost: US dollars.
        tokens: Sent and received.
        calls: Requests to models.
        tool_calls: Calls of tools.
        perplexity: Of the output.
    """

    latency: float | None = field(default=None, kw_only=True, validator=_limit)
    cost: float | None = field(default=None, kw_only=True, validator=_limit)
    tokens: float | None = field(default=None, kw_only=True, validator=_limit)
    calls: float | None = field(default=None, kw_only=True, validator=_limit)
    tool_calls: float | None = field(default=None, kw_only=True, validator=_limit)
    perplexity: float | None = field(default=None, kw_only=True, validator=_limit)

    def __attrs_post_init__(self) -> None:
        if not self.limits:
            raise DefinitionError("latency", f"expected at least one limit: {', '.join(LIMITS)}")

    @property
    def limits(self) -> dict[str, float]:
        """The limits that are set, by what they limit."""
        return {name: limit for name in LIMITS if (limit := getattr(self, name)) is not None}

    def __str__(self) -> str:
        return ", ".join(f"{name} at most {with_unit(name, limit)}" for name, limit in self.limits.items())


def with_unit(name: str, value: float, *, shortly: bool = False) -> str:
    """Return the *value* of what `Within` limits under *name* with its unit; *shortly* in three digits."""
    number = f"{value:.3g}" if shortly and value < 1_000 else f"{value:g}"  # noqa: PLR2004
    return f"{number} s" if name == "latency" else f"${number}" if name == "cost" else number


def _as_one_or_more(value: str | Iterable[str]) -> tuple[str, ...]:
    return _as_texts([value] if isinstance(value, str) else value)


Measure = Literal["cosine", "dot", "euclidean"]


def embedder(_: Any, attribute: Attribute[Any], value: object) -> None:
    named = isinstance(value, str) and value.strip() == value and value
    if isinstance(value, type) or not (named or callable(value)):
        allowed = "a LiteLLM model name, such as 'openai/text-embedding-3-small', or a function from texts to vectors"
        raise refuse(attribute.name, value, allowed)


@guided_class
@frozen(repr=False)
class Similar(Check, Shown):
    """
    The output means about the same as one of *texts*, by their embeddings.

    Its score is the similarity. Whether it passes decides where the rubric has no threshold, and where it is required.

    Args:
        texts: One text, or several, of which the nearest counts.
        threshold: The similarity from which it passes; of `euclidean`, the distance up to which.
        measure: `cosine`; `dot`, for vectors of length 1; `euclidean`, whose score is 1 / (1 + distance).
        model: A function from a list of texts to a list of vectors; or a LiteLLM name, which is a proposal: it is the
            judge of the run that names the model to ask, `Judge(..., embedder=...)`, and without one the criterion is
            unjudged. Calls are kept in the store and counted in budgets, as those of judges.
    """

    texts: tuple[str, ...] = field(converter=_as_one_or_more)
    threshold: float = field(default=0.75, kw_only=True, validator=fields.number(-1e9, 1e9))
    measure: Measure = field(default="cosine", kw_only=True, validator=fields.one_of(*get_args(Measure)))
    model: str | Callable[[list[str]], Any] = field(
        default="openai/text-embedding-3-large", kw_only=True, validator=embedder
    )

    def __attrs_post_init__(self) -> None:
        if self.measure == "cosine" and abs(self.threshold) > 1:
            cure = f"; write {self.threshold / 100:g}" if 1 < self.threshold <= 100 else ""  # noqa: PLR2004 - per cent
            raise refuse("threshold", self.threshold, f"a similarity from -1 to 1{cure}")

    def __str__(self) -> str:
        return f"similar to {_described(' or '.join(map(repr, self.texts)))}"


Opinion = bool | float | tuple[bool | float, str]
"""The result of a user's function: yes or no, or a score in 0..1; or a pair of that and a reason."""


def _callable(_: Any, __: Attribute[Any], value: object) -> None:
    if not callable(value) or isinstance(value, type):
        raise refuse("function", value, "a function from a Candidate to a bool or a score in 0..1")
    try:
        inspect.signature(value).bind(None)
    except TypeError as problem:
        line = "Holds(lambda candidate: candidate.output == candidate.reference)"
        said = f"it is called with the candidate alone ({problem}), which has the reference; write {line}"
        raise DefinitionError("function", said) from None
    except ValueError:
        return  # a function of C may have no signature


@guided_class
@frozen(repr=False)
class Holds(Check, Shown):
    """
    A *function* of your own decides: from the `Candidate` to a bool, a score in 0..1, or a pair with a reason.

    It may return a `Decided` too, whose verdict may differ from its score. It cannot be written to a file. A function
    that raises, or returns anything else, leaves the criterion unjudged.
    """

    function: Callable[[Candidate], Opinion | Decided | Failure] = field(validator=_callable)

    def __str__(self) -> str:
        return str(getattr(self.function, "__name__", "a function"))


def _as_command(value: Iterable[str]) -> tuple[str, ...]:
    command = fields.as_tuple("command", value, str, "texts: the program and its arguments")
    if not command or not command[0].strip():
        raise refuse("command", value, "a program and its arguments")
    return command


@guided_class
@frozen(repr=False)
class Script(Check, Launcher, Shown):
    """
    A program decides, given the candidate as JSON on standard input (AgentV's `script` graders).

    It runs only where programs are allowed: in a suite's run with `allow_scripts=True`, or within
    `rubric.programs.allowing()`. Everywhere else the criterion stays unjudged.

    Args:
        command: The program and its arguments. They pass through no shell.
        folder: Its working directory; empty means the folder of the file that names it.
        timeout: Seconds until it is stopped.
        config: Free data for the program.
    """

    command: tuple[str, ...] = field(converter=_as_command)
    folder: str = field(default="", kw_only=True, validator=fields.string)
    timeout: float = field(default=60.0, kw_only=True, validator=fields.number(0, 86_400, above=True))
    config: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)

    def __str__(self) -> str:
        named = self.config.get("file") or self.config.get("code")
        words = [part for part in self.command if "\n" not in part]  # a program of ours is one argument, of many lines
        words += [str(named)] if named and len(words) < len(self.command) else []
        return f"script {_described(' '.join(words))}"


Otherwise = Literal["ungraded", "skip", "fail"]


@frozen(repr=False)
class Unsupported(Check, Shown):
    """
    A grader of another system that this library lacks: its criterion stays unjudged.

    Args:
        type: What that system calls it.
        otherwise: What the caller makes of it: `ungraded`; `skip` (it does not apply, and counts as not judged in
            `coverage`); `fail` (it scores 0). No file of another system sets it: see `Suite.unsupported_as`.
        cure: What would make it gradable, where anything would.
    """

    type: str = field(validator=fields.text)
    otherwise: Otherwise = field(default="ungraded", kw_only=True, validator=fields.one_of(*get_args(Otherwise)))
    cure: str = field(default="", kw_only=True, validator=fields.string, eq=False)

    def __str__(self) -> str:
        return f"unsupported: {_described(self.type)}"


NOTHING = Unsupported("no grader")
"""The check of a case of another system that asserts nothing: such a case is ungraded, and no pass."""


@frozen(repr=False)
class Decided(Check, Shown):
    """
    A decision made elsewhere, such as by a script: a *score* in 0..1, and its *reason*.

    *passed* is its own verdict, where that does not follow from the score: without a threshold it decides.
    """

    score: float = field(validator=fields.number(0, 1))
    reason: str = field(default="", kw_only=True, validator=fields.string)
    passed: bool | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return self.reason or f"decided: {self.score:g}"


_LONGEST_WORDING = 3
"""Words of a text that is looked for; with more it may as well be a statement to judge."""


_PATTERN = re.compile(r"\\[dDwWsSbB]|\.[*+]|\][*+?{]|\(\?[:i=!]|^\^.*\$$|[\w)] ?[<>!]=? ?\d|==| in output|\w\.\w+\(")
"""What texts have that are patterns, or code."""


def is_matcher(value: object) -> TypeGuard[Matcher]:
    """True if *value* means events, as `call(...)` does; told by its method, since few rubrics need rules."""
    return callable(getattr(type(value), "fits", None))


def _of_text(text: str) -> Contains:
    """Return the check that a short *text* occurs; refuse what may be a check by its name, a pattern or a statement."""
    if re.match(r"[\w-]+\s*:", text):
        from rubric.internals.guesses import refuse_named_check  # noqa: PLC0415 - for a text with a colon alone

        name, _, rest = text.partition(":")
        refuse_named_check(name, rest.strip())
    if _PATTERN.search(text):
        cure = f"if it is a pattern, give Matches({text!r}); if code, a function; if a text, Contains({text!r})"
        raise DefinitionError("check", f"{shorten(text, 60)!r} may be a pattern; {cure}")
    if len(text.split()) > _LONGEST_WORDING:
        cure = f"if these words must occur, give Contains({text!r}); if a judge decides, rubric.expects({text!r})"
        raise DefinitionError("check", f"{shorten(text, 60)!r} may be a statement; {cure}")
    return Contains(text)


def as_check(value: object) -> Check:
    """Return *value* as a check: a short text occurs, a function decides, `call(...)` is in the run."""
    if isinstance(value, Check):
        return value
    if is_matcher(value):
        return value.at_least(1)
    if isinstance(value, str) and value.strip():
        return _of_text(value)
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        if value.flags & ~(re.UNICODE | re.IGNORECASE):
            raise DefinitionError("check", "the flags of this pattern have no effect; write them: Matches('(?s)...')")
        return Matches(f"(?i){value.pattern}" if value.flags & re.IGNORECASE else value.pattern)
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        raise DefinitionError("check", f"give ContainsAll({[*value]!r}), or ContainsAny(...) if one of them is enough")
    if callable(value) and not isinstance(value, type):
        return Holds(cast("Callable[[Candidate], Opinion]", value))
    _refuse_mapping(value)
    raise refuse("check", value, "a check such as Contains('...'), a short text that must occur, or a function")


def _refuse_mapping(value: object) -> None:
    """Refuse a check as files have it, `{"contains": "day"}` or `{"type": ..., "value": ...}`, with the one in code."""
    if isinstance(value, Mapping) and value:
        from rubric.internals.guesses import refuse_named_check  # noqa: PLC0415 - needed for errors alone

        first = (value["type"], value["value"]) if value.keys() == {"type", "value"} else next(iter(value.items()))
        refuse_named_check(str(first[0]), first[1])
