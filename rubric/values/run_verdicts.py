"""What rules say of runs: each of `values.run_rules` reads the events once, and names those that break it."""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain, count, islice, repeat
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.text import shorten
from rubric.values.matching import json_key, matches_name
from rubric.values.numbered import line_of, shown_result
from rubric.values.runs import LOST_CALL, Event, Message, Run, State, SubRun, ToolCall

if TYPE_CHECKING:
    from rubric.values.run_rules import Matcher, RunRule

Test = Callable[[Event, str], bool]
"""Whether an event of the agent with this name is meant."""

Place = tuple[int, Event, str]
"""The number of an event, it, and the name of the agent in whose run it is."""

Broken = Iterator[tuple[int, str]]
"""The numbers of events that break a rule, and why."""

_ACTS: Final = frozenset({Message, ToolCall})
"""What `within` counts: what somebody said or did."""

_ALL, _END, _LACKING = "arguments", sys.maxsize, object()
"""The name that stands for all arguments; the number of what is missing; the key of a call without the argument."""

_LONGEST, _MOST_SAID = 120, 5
_ROLES: Final = frozenset({"user", "assistant", "system", "developer", "*"})
_MARKS: Final = (".", ":", "/", "__")
"""What stands between a tool and its server: `mcp__bank__refund`, `functions.refund`."""


@frozen
class Breach:
    """
    One breach of a rule.

    Args:
        step: Of the event, or of the one before which something is missing; empty where it is missing at the end.
        event: The event; None at the end.
        why: How it breaks the rule.
    """

    step: str
    event: Event | None
    why: str

    def __str__(self) -> str:
        return f"step {self.text}: {self.why}" if self.event else self.why

    @property
    def text(self) -> str:
        """The step and its event, on a short line."""
        return shorten(line_of(self.event, self.step), _LONGEST) if self.event else ""


@frozen
class Verdict(NoTruth):
    """
    What a rule says of a run.

    Args:
        met: Whether the run keeps it; None if that is unknown.
        reason: Why.
        breaches: Where it is broken, in the order of the events.
        vacuous: Whether it is kept only since nothing happened that it speaks of.
    """

    _truth = ".met"

    met: bool | None
    reason: str
    breaches: tuple[Breach, ...] = ()
    vacuous: bool = False


def both(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on all rules: broken if one is, else unknown if one is."""
    met = [one.met for one in verdicts]
    kept = False if False in met else None if None in met else True
    telling = [one.reason for one in verdicts if one.met is kept]
    breaches = tuple(breach for one in verdicts for breach in one.breaches)
    return Verdict(kept, "; ".join(telling), breaches, all(one.vacuous for one in verdicts))


def _places(run: Run, numbers: Iterator[int], known: dict[str, Any], agent: str = "") -> Iterator[Place]:
    """Yield each event in the order of `Run.steps`; its states are added to those *known* when the next is read."""
    agent = run.agent or agent
    for event in run.events:
        yield next(numbers), event, agent
        if type(event) is SubRun:
            yield from _places(event.run, numbers, known, event.agent)
        elif type(event) is State:
            known |= event.values


def is_complete(run: Run) -> bool:
    """True if neither *run* nor a run in it was cut short, or has a result without its call."""
    whole = all(is_complete(one.run) for one in run.events if type(one) is SubRun)
    return run.complete and whole and not any(map(_is_lost, run.events))


def _is_lost(event: Event) -> bool:
    return type(event) is Message and (event.role in ("tool", "function") or LOST_CALL in event.metadata)


def judge(rule: RunRule, run: Run, since: int, before: str) -> Verdict:
    """Return what *rule* says of *run*, its steps after *before*, without its first events, so many as *since*."""
    complete, known, opened = is_complete(run), dict[str, Any](), 0
    events, earlier = _places(run, count(), known), evolve(run, events=run.events[:since])
    deque(islice(events, sum(1 for _ in earlier.steps())), maxlen=0)
    parts, broken, settled = list[_Part](), list[tuple[int, str]](), False
    for opened, part in enumerate(_parts(rule, events, known), 1):  # noqa: B007 - it is used below
        part.is_cut = not complete
        breaks = [*_KINDS[rule.kind](rule, part)]
        settled = part.ended_by is not None or (part.settled and not breaks)
        if part.ended_by or not rule.must_end:
            parts.append(part)
            broken += breaks
    deque(events, maxlen=0)  # for the states after the last part
    if unknown := next((name for name in rule.states if name not in known), ""):
        return Verdict(met=None, reason=f"{rule}: unknown, since the state {unknown} was not recorded")
    if broken:
        wanted = {at for at, _ in broken}
        if any(type(one) is SubRun for one in run.events):
            steps = [step for number, step in enumerate(run.steps(before)) if number in wanted]
        else:  # most have none, and a run of 100,000 events would have as many steps made
            steps = [(f"{before}{run.first + n}", run.events[n]) for n in sorted(wanted) if n < len(run.events)]
        found = zip(chain(steps, repeat(("", None))), sorted(broken), strict=False)
        breaches = tuple(Breach(*step, why) for step, (_, why) in found)
        more = f"; and {len(breaches) - _MOST_SAID} more" if len(breaches) > _MOST_SAID else ""
        said = "; at ".join(map(str, breaches[:_MOST_SAID]))
        more += _unknown(rule, run) + _unsaid(rule, run) + _unlike(rule, run)
        return Verdict(met=False, reason=f"{rule}: broken at {said}{more}", breaches=breaches)
    if not complete and not (settled and (rule.start is None or rule.end is None)):  # else another part may begin
        lost = "; a result stands with its call, {name: search, result: found}" * any(map(_is_lost, run.events))
        return Verdict(met=None, reason=f"{rule}: unknown, since the log lacks a part of the run{lost}")
    if any(part.is_unrecorded for part in parts):
        return Verdict(met=None, reason=f"{rule}: unknown, since the state was not recorded there")
    lacks = None if parts else rule.end if opened else rule.start
    if parts and rule.is_conditional and not any(part.seen for part in parts):
        lacks = rule.event
    why = "kept" if lacks is None else f"kept vacuously, since there is no {lacks}"
    why += _unknown(rule, run) if rule.kind == "at_most" else ""
    alike = _alike(lacks or rule.event, run) if lacks or rule.kind == "never" else ""
    alike += _unsaid(rule, run) + ("" if lacks is None else _unlike(rule, run))
    return Verdict(met=True, reason=f"{rule}: {why}{alike}", vacuous=lacks is not None)


def _alike(lacks: Matcher, run: Run) -> str:
    """Return a remark on a tool whose name ends with that of *lacks*, as servers and vendors put theirs before it."""
    name = getattr(lacks, "name", "").lower()
    called = (call.name for _, call, _ in _places(run, count(), {}) if isinstance(call, ToolCall))
    other = next((each for each in called if each.lower().endswith(tuple(f"{mark}{name}" for mark in _MARKS))), "")
    return f"; {other} was called, which is another name; write {f'*{name}'!r} for both" if other and name else ""


def _unsaid(rule: RunRule, run: Run) -> str:
    """Return a remark on a role of *rule* that no message has: it may be a text, as in `said("sorry")`."""
    asked = {getattr(side, "role", "*") for side in (rule.event, rule.other, rule.start, rule.end)} - _ROLES
    there = {each.role for _, each, _ in _places(run, count(), {}) if type(each) is Message} if asked else set()
    role = next((repr(role) for role in sorted(asked - there) if not {*"*?"} & {*role}), "")
    return f"; no message has the role {role}; for a text, write said('assistant', {role})" if role else ""


def _unlike(rule: RunRule, run: Run) -> str:
    """Return a remark on calls of a tool of *rule* that have other arguments than the rule says, if none has those."""
    calls = [(call, agent) for _, call, agent in _places(run, count(), {}) if isinstance(call, ToolCall)]
    said, sides = dict[str, None](), tuple[Any, ...]((rule.event, rule.other, rule.start, rule.end))
    for side in () if rule.kind in ("first", "last", "always") else sides:  # they show the event
        wanted = [*side.arguments, *side.matches] if isinstance(getattr(side, "arguments", None), Mapping) else []
        if wanted and not any(evolve(side, result=None, failed=None).fits(call, agent) for call, agent in calls):
            for call in (one for one, _ in calls if matches_name(side.name, one.name)):
                given = {name: shorten(repr(call.arguments[name]), 60) for name in wanted if name in call.arguments}
                words = [f"{name} {given[name]}" if name in given else f"no {name}" for name in wanted]
                said[f"; {call.name} was called with {' and '.join(words)}"] = None
    return "".join(islice(said, _MOST_SAID))


def _unknown(rule: RunRule, run: Run) -> str:
    """Return a remark if no call of a side of *rule* has the argument that it shall share, with the pair that works."""
    one, _, two = rule.same.partition("=")
    if one in ("", _ALL):
        return ""
    sides = ((rule.event, one), (rule.other or rule.event, two or one))
    calls = [(call, agent) for _, call, agent in _places(run, count(), {}) if isinstance(call, ToolCall)]
    given = {side: [call.arguments for call, of in calls if side.fits(call, of)] for side, _ in sides}
    names = {side: dict.fromkeys(name for each in given[side] for name in each) for side, _ in sides}
    lacks = [(side, name) for side, name in dict.fromkeys(sides) if names[side] and name not in names[side]]
    said = [f"; no {side} has the argument {name!r}, but {', '.join(map(repr, names[side]))}" for side, name in lacks]
    values = [{str(each[name]): each[name] for each in given[side] if name in each} for side, name in sides]
    unlike = [(a, values[1][text]) for text, a in values[0].items() if type(values[1].get(text, a)) is not type(a)]
    said += [f"; {shorten(repr(a), 60)} and {shorten(repr(b), 60)} differ: one is a text" for a, b in unlike[:1]]
    works = lacks and two in names[rule.event] and one in names[rule.other or rule.event]
    return (f"; write same='{two}={one}', first the argument of {rule.event}" if works else "") + "".join(said)


@define
class _Part:
    """A part of a run, read once: *settled* if nothing that follows can break the rule; cut runs may go on."""

    events: Iterator[Place]
    ends: Test | None
    known: dict[str, Any]
    is_cut: bool = False
    ended_by: Place | None = None
    seen: int = 0
    settled: bool = False
    is_unrecorded: bool = False

    def __iter__(self) -> Iterator[Place]:
        return self.events if self.ends is None else self._until_end(self.ends)

    def lack(self, what: str) -> tuple[int, str]:
        """Return where *what* is missing: at the event that ends the part, else at the end of the run."""
        return (_END, f"the end, with {what}") if self.ended_by is None else (self.ended_by[0], f"{what} before it")

    def _until_end(self, ends: Test) -> Iterator[Place]:
        for place in self.events:
            if ends(place[1], place[2]):
                self.ended_by, self.is_cut = place, False
                return
            yield place


def _parts(rule: RunRule, events: Iterator[Place], known: dict[str, Any]) -> Iterator[_Part]:
    """Yield the parts of which *rule* speaks (Dwyer's scopes); each is read before the next begins."""
    starts, ends = (None if one is None else one.fits for one in (rule.start, rule.end))
    if starts is None:
        yield _Part(events, ends, known)
        return
    place = next(events, None)
    while place is not None:
        if starts(place[1], place[2]):
            part = _Part(events, ends, known)
            yield part
            place = part.ended_by
            if place is None or starts(place[1], place[2]):
                continue
        place = next(events, None)


def _judge_counts(rule: RunRule, part: _Part) -> Broken:
    """Judge `never`, `at_most` and `at_least`."""
    is_meant, key_of, most = rule.event.fits, _key_of(rule.same), {"never": 0, "at_most": rule.count}.get(rule.kind)
    counts = defaultdict[str, dict[Hashable, int]](dict)  # all arguments are the same for calls of one tool
    is_whole = rule.same == _ALL
    for number, event, agent in part:
        if not is_meant(event, agent):
            continue
        part.seen += 1
        if most is not None and (key := key_of(event)) is not _LACKING:
            alike = counts[event.name if is_whole and type(event) is ToolCall else ""]
            times = alike[key] = alike.get(key, 0) + 1
            if times > most:
                yield number, f"it is number {times}" if most else "it must not be"
    if most is None and rule.count is not None:
        part.settled = part.seen >= rule.count
        if not part.settled and not part.is_cut:
            yield part.lack(f"{part.seen} of at least {rule.count}")


def _judge_edges(rule: RunRule, part: _Part) -> Broken:
    """Judge `first`, `last` and `always`."""
    is_meant, is_kin, why = rule.event.fits, rule.event.is_kin, f"it is no {rule.event}"
    latest: Place | None = None
    for place in part:
        if is_kin(place[1], place[2]):
            part.seen, latest = part.seen + 1, place
            looks = rule.kind == "always" or (rule.kind == "first" and part.seen == 1)
            if looks and not is_meant(place[1], place[2]):
                yield place[0], why
    part.settled, part.is_unrecorded = rule.kind == "first" and part.seen > 0, rule.event.is_state and not part.seen
    if part.is_cut or part.is_unrecorded or rule.kind == "always":
        return
    if latest is None:
        yield part.lack(f"no {rule.event}")
    elif rule.kind == "last" and not is_meant(latest[1], latest[2]):
        yield latest[0], why


def _judge_unchanged(rule: RunRule, part: _Part) -> Broken:
    """Judge `unchanged`: each value is the one before it, which may have been before this part."""
    (name,), is_kin, part.is_unrecorded = rule.states[:1], rule.event.is_kin, True
    for number, event, agent in part:
        if is_kin(event, agent) and isinstance(event, State):
            part.seen += 1
            if name in part.known:
                part.is_unrecorded = False
                if event.values[name] != part.known[name]:
                    yield number, f"{name} was {shorten(shown_result(part.known[name]), _LONGEST)}"


def _how(rule: RunRule) -> str:
    """Return what the other of *rule* must have besides: " with the same order near enough"; '' if nothing."""
    near = "" if rule.within is None else f" near enough (within={rule.within})"
    return (f" with the same {rule.same}" if rule.same else "") + near


def _judge_before(rule: RunRule, part: _Part) -> Broken:
    """Judge `needs` and `needs_one`: the latest of the others counts, which `needs_one` uses up."""
    is_meant, is_other, keys, within = *_tests(rule), rule.within
    latest, acts, why = dict[Hashable, int](), 0, f"no {rule.other}{_how(rule)} before it"
    is_used_up = rule.kind == "needs_one"
    why += " that no other has used" if is_used_up else ""
    for number, event, agent in part:
        if is_meant(event, agent):
            part.seen += 1
            key = keys[0](event)
            at = latest.pop(key, None) if is_used_up else latest.get(key)
            if at is None or (within is not None and acts - at > within):
                yield number, why
        acts += type(event) in _ACTS
        if is_other(event, agent) and (key := keys[1](event)) is not _LACKING:
            latest[key] = acts
            part.settled = not is_used_up and not rule.same and within is None


def _judge_after(rule: RunRule, part: _Part) -> Broken:
    """Judge `then`: each waits for the next of the others."""
    is_meant, is_other, keys, within = *_tests(rule), rule.within
    waiting, acts, why = dict[Hashable, list[tuple[int, int]]](), 0, f"no {rule.other}{_how(rule)} after it"
    for number, event, agent in part:
        if waiting and is_other(event, agent):
            met = waiting.pop(keys[1](event), ())
            yield from ((waits, why) for waits, at in met if within is not None and acts - at > within)
        acts += type(event) in _ACTS
        if is_meant(event, agent):
            part.seen += 1
            key = keys[0](event)
            if key is _LACKING:
                yield number, why
            else:
                waiting.setdefault(key, []).append((number, acts))
    for waits, at in (one for some in waiting.values() for one in some):
        if not part.is_cut or (within is not None and acts - at > within):
            yield waits, why


_KINDS: Final[dict[str, Callable[[RunRule, _Part], Broken]]] = {
    **dict.fromkeys(("never", "at_most", "at_least"), _judge_counts),
    **dict.fromkeys(("first", "last", "always"), _judge_edges),
    **dict.fromkeys(("needs", "needs_one"), _judge_before),
    "then": _judge_after,
    "unchanged": _judge_unchanged,
}


def _tests(rule: RunRule) -> tuple[Test, Test, tuple[Callable[[Any], Hashable], Callable[[Any], Hashable]]]:
    """Return whether an event is meant, whether it is the other one, and the keys by which both are the same."""
    one, _, two = rule.same.partition("=")
    return rule.event.fits, (rule.other or rule.event).fits, (_key_of(one), _key_of(two or one))


def _key_of(same: str) -> Callable[[Any], Hashable]:
    if same == _ALL:
        return lambda one: json_key(one.arguments)
    return (lambda one: json_key(one.arguments.get(same, _LACKING))) if same else lambda _: None
