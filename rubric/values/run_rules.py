"""
Rules over runs: what must happen, what must not, and in which order. A rule is a check, and a value.

    call("refund").needs(call("verify"), same="order")
    call("account_*").never().after(call("logout")).until(call("login"))

The words are the patterns and scopes of Dwyer, Avrunin and Corbett (ICSE 1999), over finite runs as in DECLARE (Pesic,
Schonenberg and van der Aalst, EDOC 2007; De Giacomo and Vardi, IJCAI 2013), with data as in MP-DECLARE (Burattin, Maggi
and Sperduti, 2016). Of a run that is cut short, a rule is kept or broken only if nothing that may follow could change
that, and unknown otherwise (LTL3: Bauer, Leucker and Schallhart, 2011). A rule reads the events once, in their order,
those of sub-agents after the event that started them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

from attrs import Attribute, evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.fields import Shown, refuse
from rubric.internals.frozen_map import FrozenMap, freeze, thaw
from rubric.internals.guided import guided_class, guided_methods
from rubric.internals.text import as_json
from rubric.values.answers import Check
from rubric.values.matching import check_pattern, json_key, matches, matches_name, pattern
from rubric.values.runs import Event, Message, Run, State, ToolCall

if TYPE_CHECKING:
    from rubric.values.run_verdicts import Verdict

_pattern = fields.optional(pattern)
_agent = fields.optional(fields.string)


def _as_patterns(value: Mapping[str, str]) -> FrozenMap:
    patterns = fields.as_map("matches", value)
    for name, one in patterns.items():
        check_pattern(f"matches.{name}", one)
    return patterns


_BOUND = re.compile(r"\$?(gte?|lte?|ge|le|min|max|above|below|at_least|at_most|ne|not|in)|[<>]=?|!=")
"""What compares a number in other languages: no argument is so compared."""


def _plain_arguments(_: object, attribute: Attribute[Any], value: Mapping[str, Any]) -> None:
    fields.mapping(_, attribute, value)
    for name, one in value.items():
        words = (
            [*one] if isinstance(one, Mapping) else re.findall(r"^\s*([<>]=?|!=)", one) if isinstance(one, str) else []
        )
        if words and all(_BOUND.fullmatch(str(word)) for word in words):
            cure = "give a pattern of its text in matches, such as '^[5-9][0-9]$' for 50 to 99"
            own = f"for one that is so itself, '^{re.escape(_text(one))}$'"
            raise DefinitionError(
                f"arguments.{name}", f"no argument is compared by a bound, as {one} seems to be; {cure}; {own}"
            )


@lru_cache(maxsize=1_000)
def _is_named(name: str, called: str) -> bool:
    return matches_name(name, called) if name else not called


@guided_methods
class Matcher(Shown):
    """Which events are meant; the parent of `call`, `said` and `state`. Its methods make rules."""

    __slots__ = ()
    is_state: ClassVar[bool] = False

    def fits(self, event: Event, agent: str) -> bool:
        """True if *event*, in the run of *agent*, is meant."""
        raise NotImplementedError

    def is_kin(self, event: Event, agent: str) -> bool:
        """True if *event* is one of those among which `first`, `last` and `always` look."""
        raise NotImplementedError

    def needs(self, other: Matcher | str, *, same: str = "", within: int | None = None) -> RunRule:
        """
        Return the rule that each of these has one of *other* before it (Dwyer's precedence).

        Args:
            other: Events, or the name of a tool.
            same: An argument that both calls share: `"order"`; `"order=id"`, the `order` of these calls and the `id` of
                *other*; `"arguments"`, for all. A call without the argument shares it with none.
            within: The most messages and calls between the two.
        """
        return RunRule("needs", self, other, same=same, within=within)

    def needs_one(self, other: Matcher | str, *, same: str = "", within: int | None = None) -> RunRule:
        """Return the rule that each of these has one of *other* before it for itself (alternate precedence)."""
        return RunRule("needs_one", self, other, same=same, within=within)

    def then(self, other: Matcher | str, *, same: str = "", within: int | None = None) -> RunRule:
        """Return the rule that one of *other* follows each of these (response)."""
        return RunRule("then", self, other, same=same, within=within)

    def never(self) -> RunRule:
        """Return the rule that there are none of these (absence)."""
        return RunRule("never", self)

    def at_most(self, count: int, *, same: str = "") -> RunRule:
        """Return the rule that there are at most *count*, of one tool with the *same* argument (bounded existence)."""
        return RunRule("at_most", self, count=count, same=same)

    def at_least(self, count: int = 1) -> RunRule:
        """Return the rule that there are at least *count* (existence)."""
        return RunRule("at_least", self, count=count)

    def first(self) -> RunRule:
        """Return the rule that the first call is one of these; of messages, the first of their role (init)."""
        return RunRule("first", self)

    def last(self) -> RunRule:
        """Return the rule that the last call is one of these; of messages, the last of their role (end)."""
        return RunRule("last", self)

    def always(self) -> RunRule:
        """Return the rule that all calls are of these; of messages, all of their role (universality)."""
        return RunRule("always", self)


@guided_class
@frozen(repr=False)
class CallMatcher(Matcher):
    """
    Calls of tools, for rules: `call("refund").needs(call("verify"), same="order")`.

    Args:
        name: Of the tool; `*` and `?` match other letters, and case does not matter.
        arguments: Arguments that the call has, with these values.
        matches: A pattern (RE2 syntax) for each of these arguments, found in its text, or in its JSON.
        result: A pattern that is found in what came back.
        failed: Whether it failed; None: either.
        agent: Who called it, with `*` and `?`; `""` is an agent without a name, None is any.
    """

    name: str = field(default="*", validator=fields.text)
    arguments: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=_plain_arguments)
    matches: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=_as_patterns)
    result: str | None = field(default=None, kw_only=True, validator=_pattern)
    failed: bool | None = field(default=None, kw_only=True, validator=fields.optional(fields.flag))
    agent: str | None = field(default=None, kw_only=True, validator=_agent)

    @cached_property
    def _is_bare(self) -> bool:
        return self == CallMatcher(self.name)

    def is_kin(self, event: Event, agent: str) -> bool:
        return type(event) is ToolCall and (self.agent is None or _is_named(self.agent, event.agent or agent))

    def fits(self, event: Event, agent: str) -> bool:
        if type(event) is not ToolCall or not _is_named(self.name, event.name):
            return False
        if self._is_bare:  # as most are
            return True
        given = event.arguments
        return (
            (self.agent is None or _is_named(self.agent, event.agent or agent))
            and self.failed in (None, event.error != "")
            and all(name in given and json_key(given[name]) == json_key(one) for name, one in self.arguments.items())
            and all(name in given and matches(one, _text(given[name])) for name, one in self.matches.items())
            and (self.result is None or (event.result is not None and matches(self.result, _text(event.result))))
        )


_MEANT = {
    **dict.fromkeys(("bot", "ai", "chatbot", "model"), "assistant"),
    **dict.fromkeys(("human", "customer"), "user"),
}


def _role(_: object, attribute: Attribute[str], role: str) -> None:
    fields.text(_, attribute, role)
    if meant := _MEANT.get(role.lower()):
        raise DefinitionError(
            "role", f"a run has the role {meant!r}; write said({meant!r}); if it is so called, '{role}*'"
        )


@guided_class
@frozen(repr=False)
class MessageMatcher(Matcher):
    r"""
    Messages, for rules: `call("refund").needs(said("user", "(?i)yes"))`.

    Args:
        role: Who said it: `user`, `assistant`, or another role of the run.
        matches: A pattern (RE2 syntax) that is found in it.
        agent: As of `call`.
    """

    role: str = field(default="*", validator=_role)
    matches: str | None = field(default=None, validator=_pattern)
    agent: str | None = field(default=None, kw_only=True, validator=_agent)

    def is_kin(self, event: Event, agent: str) -> bool:
        if type(event) is not Message or not _is_named(self.role, event.role):
            return False
        return self.agent is None or _is_named(self.agent, event.name or agent)

    def fits(self, event: Event, agent: str) -> bool:
        if type(event) is not Message or not self.is_kin(event, agent):
            return False
        return self.matches is None or matches(self.matches, event.content)


@guided_class
@frozen(repr=False)
class StateMatcher(Matcher):
    """
    Recorded states, for rules: `state("balance", 20).at_end()`. A rule about one that was not recorded is unknown.

    After the run, `file:NAME` is the text of a file of the candidate, and `file_changes` its diff.

    Args:
        name: Of the value in `State(values)`.
        value: What it is.
        matches: A pattern (RE2 syntax) that is found in its text, or in its JSON.
    """

    is_state = True

    name: str = field(validator=fields.text)
    value: Any = field(default=..., converter=freeze)
    matches: str | None = field(default=None, kw_only=True, validator=_pattern)

    def is_kin(self, event: Event, agent: str) -> bool:  # noqa: ARG002 - a state is of no agent
        return type(event) is State and self.name in event.values

    def fits(self, event: Event, agent: str) -> bool:
        if type(event) is not State or not self.is_kin(event, agent):
            return False
        found = event.values[self.name]
        return self.value in (..., found) and (self.matches is None or matches(self.matches, _text(found)))

    def at_end(self) -> RunRule:
        """Return the rule that the last known value is as said."""
        return self.last()

    def after(self, event: Matcher | str) -> RunRule:
        """Return the rule that each value that is known after *event* is as said; `until` and `before` end it."""
        return self.always().after(event)

    def unchanged(self) -> RunRule:
        """Return the rule that the value stays as it was."""
        return RunRule("unchanged", self)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else as_json(thaw(value))


call, said, state = CallMatcher, MessageMatcher, StateMatcher
call.__name__, said.__name__, state.__name__ = "call", "said", "state"  # what people type, so in reprs and errors too


def _as_matcher(value: Any) -> Any:
    return CallMatcher(value) if isinstance(value, str) else value


_ALLOWED = "call(...), said(...), state(...), or the name of a tool"


Kind = Literal[
    "needs", "needs_one", "then", "never", "at_most", "at_least", "first", "last", "always", "unchanged"
]  # fmt: skip
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
PAIRS: Final = ("needs", "needs_one", "then")
COUNTS: Final = ("at_most", "at_least")


def _matcher(_: Any, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, Matcher):
        raise refuse(attribute.name, value, _ALLOWED)


_optional_matcher = fields.optional(_matcher)


@guided_class
@frozen(repr=False)
class RunRule(Check, Shown):
    """
    A rule over a run, made by `call`, `said` or `state`: `call("search").at_most(3)`. `rule & other` are both.

    It holds of the whole run, or of the parts that these cut out of it (Dwyer's scopes): `before(r)`, up to the first
    r, if there is one; `after(q)`, from the first q on; `after(q).before(r)`, between each q and the next r;
    `after(q).until(r)`, likewise, where the last r may be missing; `until(r)`, from the start. The events that bound a
    part are not in it; an event that is both ends one part and begins the next.

    Args:
        kind: The name of the method that makes it, whose arguments follow.
        start: What begins a part; *end*: what ends it; *must_end*: whether a part without an end is none.
    """

    kind: Kind = field(validator=fields.one_of(*KINDS))
    event: Matcher = field(validator=_matcher)
    other: Matcher | None = field(default=None, converter=_as_matcher, validator=_optional_matcher)
    count: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(0)))
    same: str = field(default="", kw_only=True, validator=fields.string)
    within: int | None = field(default=None, kw_only=True, validator=fields.optional(fields.count(0)))
    start: Matcher | None = field(default=None, kw_only=True, converter=_as_matcher, validator=_optional_matcher)
    end: Matcher | None = field(default=None, kw_only=True, converter=_as_matcher, validator=_optional_matcher)
    must_end: bool = field(default=False, kw_only=True, validator=fields.flag)

    def __attrs_post_init__(self) -> None:
        for name, kinds in (("other", PAIRS), ("count", COUNTS)):
            if (getattr(self, name) is not None) != (self.kind in kinds):
                raise DefinitionError(name, f"it goes with {', '.join(kinds)}, and with no other rule: {self.kind}")
        if self.kind == "at_least" and not self.count:
            raise DefinitionError("count", "at least 0 is always so; give 1 or more")
        for one in (self.event, self.other) if self.same else ():
            if not isinstance(one, CallMatcher | None):
                message = f"only calls have arguments, and {one} is none; take it out, or put the value into a pattern"
                raise DefinitionError("same", message)
        names = self.same.split("=", 1)
        is_named = all(name and name == name.strip() for name in names)
        if self.same and not (is_named and (len(names) == 1 or "arguments" not in names)):
            raise refuse("same", self.same, "the name of an argument, 'a=b' for two names, or 'arguments' for all")
        if len(names) > 1 and self.other is None:
            message = f"'a=b' names an argument of two events, and {self.kind} has one; write the one name"
            raise DefinitionError("same", message)
        is_bare = isinstance(self.event, StateMatcher) and self.event == StateMatcher(self.event.name)
        if isinstance(self.event, StateMatcher) and is_bare and self.kind in ("first", "last", "always"):
            name = self.event.name
            message = f"any {name} would do; say which one: state({name!r}, 20), or state({name!r}).unchanged()"
            raise DefinitionError("event", message)
        if self.kind == "unchanged" and not is_bare:
            raise DefinitionError("event", f"write state('balance').unchanged(), without a value; got {self.event!r}")

    def after(self, event: Matcher | str) -> RunRule:
        """Return the rule for what comes after the first *event*; with an end, after each that begins a part."""
        return self._bound("start", event)

    def until(self, event: Matcher | str) -> RunRule:
        """Return the rule for what comes before *event*, or before the end of the run where there is none."""
        return self._bound("end", event)

    def before(self, event: Matcher | str) -> RunRule:
        """Return the rule for what comes before *event*, where there is one; else there is nothing to keep."""
        return self._bound("end", event, must_end=True)

    def _bound(self, name: str, event: Matcher | str, **more: Any) -> RunRule:
        if (bound := getattr(self, name)) is not None:
            word = "after" if name == "start" else "before" if self.must_end else "until"
            raise DefinitionError(name, f"this rule has {word}({bound!r}) already; a part has one {name}")
        more[name] = event
        return evolve(self, **more)

    def judge(self, run: Run, since: int = 0, before: str = "") -> Verdict:
        """
        Return what the rule says of *run*.

        Args:
            since: The number of its first events that are not judged, so that its last turn is.
            before: What stands before its steps: of the sub-agent that step 3 started, `3.`.
        """
        from rubric.values.run_verdicts import judge  # noqa: PLC0415 - building a rubric needs none

        return judge(self, run, since, before)

    def __and__(self, other: RunRule | RunRules) -> RunRules:
        return RunRules([self, *getattr(other, "rules", [other])])

    def __str__(self) -> str:
        return repr(self)

    @property
    def states(self) -> tuple[str, ...]:
        """The names of the states that it is about."""
        given = (self.event, self.other, self.start, self.end)
        return tuple(one.name for one in given if isinstance(one, StateMatcher))

    @property
    def is_conditional(self) -> bool:
        """True if it says something of each of its events, so that without any it is kept vacuously."""
        return self.kind in (*PAIRS, "at_most", "always")

    def __repr__(self) -> str:
        given = [*map(repr, filter(None, (self.other,)))] + [str(self.count)] * (self.count is not None)
        given += [f"same={self.same!r}"] * bool(self.same) + [f"within={self.within}"] * (self.within is not None)
        after = f".after({self.start!r})" if self.start else ""
        end = f".{'before' if self.must_end else 'until'}({self.end!r})" if self.end else ""
        return f"{self.event!r}.{self.kind}({', '.join(given)}){after}{end}"


def _as_rules(value: Iterable[RunRule]) -> tuple[RunRule, ...]:
    rules = fields.as_tuple("rules", value, RunRule, "rules")
    if not rules:
        raise refuse("rules", value, "at least one rule")
    return rules


@guided_class
@frozen(repr=False)
class RunRules(Check, Shown):
    """Several rules over a run, all of which it must keep: `call("edit").needs("read") & call("submit").last()`."""

    rules: tuple[RunRule, ...] = field(converter=_as_rules)

    def judge(self, run: Run, since: int = 0, before: str = "") -> Verdict:
        """Return what the rules say of *run*, as each alone: it breaks them if it breaks one."""
        from rubric.values.run_verdicts import both  # noqa: PLC0415 - as above

        return both([rule.judge(run, since, before) for rule in self.rules])

    def __and__(self, other: RunRule | RunRules) -> RunRules:
        return RunRules([*self.rules, *getattr(other, "rules", [other])])

    def __str__(self) -> str:
        return "; ".join(map(str, self.rules))
