"""
Rules over runs against their definitions, quantified literally, on random runs: `python -m tests.run_rules --count 1000000`.

What is here shares no code with `rubric.values.run_verdicts`: it asks of each place of a run whether there is another one,
as the patterns are written in the papers. Of runs that are cut short it tries all ways in which they may go on.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
import time
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from attrs import evolve

from rubric import Message, ToolCall, call, said, state
from rubric.values.run_rules import CallMatcher, Matcher, MessageMatcher, RunRule, StateMatcher
from rubric.values.runs import Event, Run, State, SubRun

# -- the oracle ----------------------------------------------------------------------------------------------

Flat = list[tuple[str, Event, str]]


def flat(run: Run, before: str = "", agent: str = "") -> Flat:
    """Return the events with their steps and agents, those of sub-agents after what started them."""
    found: Flat = []
    for number, event in enumerate(run.events, 1):
        found.append((f"{before}{number}", event, run.agent or agent))
        if isinstance(event, SubRun):
            found += flat(event.run, f"{before}{number}.", event.agent)
    return found


def _wild(pattern: str, name: str) -> bool:
    return fnmatchcase(name.lower(), pattern.lower())


def _agent(wanted: str | None, agent: str) -> bool:
    return wanted is None or (agent == "" if wanted == "" else _wild(wanted, agent))


def fits(matcher: Matcher | None, event: Event, agent: str, *, kin: bool = False) -> bool:
    """Whether *event* is meant; *kin*: whether it is of the kind."""
    match matcher, event:
        case CallMatcher(), ToolCall():
            return _agent(matcher.agent, event.agent or agent) and (
                kin
                or (
                    _wild(matcher.name, event.name)
                    and (matcher.failed is None or matcher.failed == bool(event.error))
                    and all(event.arguments.get(k, ...) == v for k, v in matcher.arguments.items())
                    and all(
                        k in event.arguments and re.search(v, str(event.arguments[k]))
                        for k, v in matcher.matches.items()
                    )
                    and (
                        matcher.result is None
                        or (event.result is not None and re.search(matcher.result, str(event.result)) is not None)
                    )
                )
            )
        case MessageMatcher(), Message():
            of = _agent(matcher.agent, event.name or agent) and _wild(matcher.role, event.role)
            return of and (kin or matcher.matches is None or re.search(matcher.matches, event.content) is not None)
        case StateMatcher(), State():
            return matcher.name in event.values and (kin or matcher.value in (..., event.values[matcher.name]))
    return False


def parts_of(rule: RunRule, run: Flat) -> Iterator[tuple[int, list[int]]]:
    """Yield the parts of *run* that *rule* speaks of: what begins each (-1: the start of the run), and its places."""
    places = range(len(run))
    begins = [rule.start is not None and fits(rule.start, *run[i][1:]) for i in places]
    ends = [rule.end is not None and fits(rule.end, *run[i][1:]) for i in places]

    def goes_on(after: int, at: int) -> bool:
        return not any(ends[k] for k in range(after + 1, at + 1))

    starts = [-1] if rule.start is None else []
    if rule.start is not None:
        starts = [q for q in places if begins[q] and not any(begins[p] and goes_on(p, q) for p in range(q))]
    for q in starts:
        if not rule.must_end or any(ends[r] for r in range(q + 1, len(run))):
            yield q, [i for i in range(q + 1, len(run)) if goes_on(q, i)]


def _value(rule: RunRule, event: Any, *, other: bool = False) -> Any:
    """The value that must be the same; a new object where there is none, which is equal to no other."""
    if not rule.same:
        return None
    one, _, two = rule.same.partition("=")
    name = (two or one) if other else one
    if name == "arguments":
        return (event.name if rule.kind == "at_most" else "", dict(event.arguments))
    return event.arguments[name] if name in event.arguments else object()


def oracle(rule: RunRule, run: Run) -> tuple[bool | None, list[str], bool]:  # noqa: C901, PLR0912 - a case for each kind
    """Whether *run*, a whole one, keeps *rule*; the steps that break it (`""`: something is missing); if vacuously."""
    events = flat(run)

    def is_a(i: int) -> bool:
        return fits(rule.event, *events[i][1:])

    def is_b(i: int) -> bool:
        return fits(rule.other, *events[i][1:])

    def is_kin(i: int) -> bool:
        return fits(rule.event, *events[i][1:], kin=True)

    def alike(i: int, j: int) -> bool:
        return bool(_value(rule, events[i][1]) == _value(rule, events[j][1], other=True))

    def near(i: int, j: int) -> bool:
        between = [e for _, e, _ in events[min(i, j) + 1 : max(i, j)] if isinstance(e, ToolCall | Message)]
        return rule.within is None or len(between) <= rule.within

    states = [m.name for m in (rule.event, rule.other, rule.start, rule.end) if isinstance(m, StateMatcher)]
    recorded = {name for _, e, _ in events if isinstance(e, State) for name in e.values}
    if not set(states) <= recorded:
        return None, [], False
    parts, broken, missing, unrecorded = [*parts_of(rule, events)], list[int](), list[str](), False
    for q, part in parts:
        ended = q + 1 + len(part)
        lacks = (broken, ended) if ended < len(events) else (missing, "")
        a, kin = [i for i in part if is_a(i)], [i for i in part if is_kin(i)]
        match rule.kind:
            case "never":
                broken += a
            case "at_most":
                same = {
                    i: [j for j in a if j <= i and _value(rule, events[j][1]) == _value(rule, events[i][1])] for i in a
                }
                broken += [i for i in a if len(same[i]) > (rule.count or 0)]
            case "at_least":
                if len(a) < (rule.count or 0):
                    lacks[0].append(lacks[1])  # type: ignore[arg-type]
            case "first" | "last" if kin:
                broken += [i for i in [min(kin) if rule.kind == "first" else max(kin)] if not is_a(i)]
            case "first" | "last" if not isinstance(rule.event, StateMatcher):
                lacks[0].append(lacks[1])  # type: ignore[arg-type]
            case "always":
                broken += [i for i in kin if not is_a(i)]
            case "needs":
                broken += [i for i in a if not any(is_b(j) and alike(i, j) and near(i, j) for j in part if j < i)]
            case "needs_one":
                broken += [
                    i
                    for i in a
                    if not any(
                        is_b(j)
                        and alike(i, j)
                        and near(i, j)
                        and not any(_value(rule, events[k][1]) == _value(rule, events[i][1]) for k in a if j < k < i)
                        for j in part
                        if j < i
                    )
                ]
            case "then":
                broken += [i for i in a if not any(is_b(j) and alike(i, j) and near(i, j) for j in part if j > i)]
            case "unchanged":
                name = states[0]
                before = [i for i in range(q + 1) if is_kin(i)][-1:]
                values = [(i, events[i][1].values[name]) for i in [*before, *kin]]  # type: ignore[union-attr]
                broken += [i for (_, was), (i, now) in itertools.pairwise(values) if was != now]
                unrecorded |= len(values) < 2 or not kin
        unrecorded |= (
            bool(states)
            and rule.kind in ("first", "last", "always")
            and isinstance(rule.event, StateMatcher)
            and not kin
        )
    steps = [events[i][0] for i in sorted(broken)] + missing
    if steps or unrecorded:
        return (False if steps else None), steps, False
    speaks = ("needs", "needs_one", "then", "at_most", "always")
    spoken = [i for _, part in parts for i in part if (is_kin(i) if rule.kind == "always" else is_a(i))]
    return True, [], not parts or (rule.kind in speaks and not spoken)


# -- random rules and runs -----------------------------------------------------------------------------------

_CALLS = [
    ToolCall(name, arguments=arguments, error=error, agent=agent, result=result)
    for name, arguments, error, agent, result in itertools.chain(
        itertools.product("abc", ({"x": 0}, {"x": 1}), [""], [""], [None]),
        [
            ("a", {}, "", "", "ok"),
            ("b", {"y": 1}, "boom", "", "no"),
            ("A", {"x": 0, "y": 1}, "", "two", "ok"),
            ("ab", {"x": 0}, "", "", 1),
        ],
    )
]
_SAID = [
    Message("user", "yes"),
    Message("user", "no"),
    Message("assistant", "sorry"),
    Message("assistant", "ok", name="two"),
]
_STATES: list[Event] = [State({"s": 0}), State({"s": 1}), State({"t": 0})]
_EVENTS: list[Event] = [*_CALLS, *_CALLS[:6], *_SAID, *_STATES]
_CALL_MATCHERS: list[Matcher] = [
    call("a"), call("b"), call("c"), call("a*"), call("?"), call(), call("a", arguments={"x": 0}), call(failed=True),
    call("b", failed=False), call("*", matches={"x": "1"}), call("a", agent=""), call(agent="t*"), call(result="o"),
]  # fmt: skip
_MATCHERS: list[Matcher] = [
    *_CALL_MATCHERS, said("user"), said("user", "y"), said("assistant", "sorry"), said("*", "o"), said(agent="two"), state("s", 0), state("s", 1),
]  # fmt: skip


def random_run(rnd: Random, events: Sequence[Event] = _EVENTS, most: int = 9, depth: int = 1) -> Run:
    """Return a run of at most *most* events, some of them runs of sub-agents."""
    found: list[Event] = rnd.choices(events, k=rnd.randrange(most))
    if depth and found and rnd.random() < 0.2:
        inner = SubRun(rnd.choice(["one", "two"]), random_run(rnd, events, 5, depth - 1))
        found[rnd.randrange(len(found))] = inner
    return Run(found, agent=rnd.choice(["", "", "main"]))


def random_rule(rnd: Random) -> RunRule:
    """Return a rule of any kind, in any scope."""
    kind = rnd.choice(
        ["needs", "needs_one", "then", "never", "at_most", "at_least", "first", "last", "always", "unchanged"]
    )
    given: dict[str, Any] = {}
    if kind in ("needs", "needs_one", "then", "at_most") and rnd.random() < 0.5:
        given["same"] = rnd.choice(["x", "x", "arguments", *(["x=y"] if kind != "at_most" else [])])
    if kind in ("needs", "needs_one", "then"):
        given |= {
            "other": rnd.choice(_CALL_MATCHERS if given else _MATCHERS),
            "within": rnd.choice([None, None, 0, 1, 2]),
        }
    if kind in ("at_most", "at_least"):
        given["count"] = rnd.randrange(kind == "at_least", 3)
    event = state("s") if kind == "unchanged" else rnd.choice(_CALL_MATCHERS if "same" in given else _MATCHERS)
    scope = rnd.choice([(0, 0), (0, 0), (1, 0), (0, 1), (1, 1)])
    start, end = (rnd.choice([*_MATCHERS, call("c"), call("b")]) if one else None for one in scope)
    return RunRule(kind, event, start=start, end=end, must_end=end is not None and rnd.random() < 0.5, **given)  # type: ignore[arg-type]


def differs(rule: RunRule, run: Run) -> str:
    """Say how the verdict of *rule* on *run* differs from the definition; '' if it does not."""
    met, steps, vacuous = oracle(rule, run)
    found = rule.judge(run)
    said_, wanted = (found.met, [one.step for one in found.breaches], found.vacuous), (met, steps, vacuous)
    return "" if said_ == wanted else f"{rule!r} on {run!r}: {said_}, by definition {wanted}"


def cut_short_differs(rule: RunRule, run: Run, alphabet: Sequence[Event], most: int, *, exact: bool) -> str:
    """
    Say how the verdict on *run*, cut short, differs from those on all ways in which it may go on.

    Args:
        alphabet: What may happen next.
        most: So many events.
        exact: Whether "unknown" must have a way to keep the rule, and one to break it.
    """
    met = rule.judge(evolve(run, complete=False)).met
    ways = (
        evolve(run, events=(*run.events, *more))
        for n in range(most + 1)
        for more in itertools.product(alphabet, repeat=n)
    )
    seen = set[bool | None]()
    for way in ways:
        seen.add(oracle(rule, way)[0])
        if len(seen) > 1:
            break
    wrong = seen != {met} if met is not None else exact and len(seen) == 1
    return f"{rule!r} on {run!r}, cut short: {met}, and may become {seen}" if wrong else ""


def main() -> None:
    """Compare, and say how many verdicts differed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rnd, began, wrong, kept = Random(options.seed), time.perf_counter(), 0, dict[Any, int]()
    for number in range(options.count):
        rule, run = random_rule(rnd), random_run(rnd)
        if why := differs(rule, run):
            wrong += 1
            if wrong <= 3:
                sys.stdout.write(f"{why}\n")
        met = oracle(rule, run)[0] if number % 10 == 0 else ...
        kept[met] = kept.get(met, 0) + 1
    kept.pop(..., None)
    sys.stdout.write(
        f"{options.count:,} random runs: {wrong} verdicts differ; of every tenth: {kept}; {time.perf_counter() - began:.0f} s\n"
    )
    raise SystemExit(wrong > 0)


if __name__ == "__main__":
    main()
