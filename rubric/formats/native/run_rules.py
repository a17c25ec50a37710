"""Rules over runs in files: `{every: refund, needs: verify, same: order}`, and lists of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from rubric.errors import DefinitionError
from rubric.formats import fields
from rubric.formats.fields import WRITERS, Data
from rubric.values.run_rules import (
    COUNTS,
    KINDS,
    PAIRS,
    CallMatcher,
    Matcher,
    MessageMatcher,
    RunRule,
    RunRules,
    StateMatcher,
)

_MATCHERS: dict[str, Callable[[Any], Matcher]] = {
    "call": fields.reader_of(CallMatcher, {"name": "call"}),
    "said": fields.reader_of(MessageMatcher, {"role": "said"}),
    "state": fields.reader_of(StateMatcher, {"name": "state", "value": "is"}),
}
_HEADS = ("every", *(kind for kind in KINDS if kind not in PAIRS))
_PLAIN = ("count", "within", "same")
"""The fields that are not events."""


def _read_matcher(data: Any) -> Matcher:
    if isinstance(data, str):
        return fields.read_bare(CallMatcher, data)
    given = fields.as_dict(data, "the name of a tool, or a mapping with call, said or state")
    if not given:
        raise DefinitionError("", 'expected which events are meant, got none; write "*" for every call')
    return _MATCHERS[next((name for name in _MATCHERS if name in given), "call")](data)


def _rows(kind: str) -> dict[str, str]:
    """Return the field of each key of a rule of the *kind*."""
    head = {"every": "event", kind: "other"} if kind in PAIRS else {kind: "event"}
    head = {kind: "count", "of": "event"} if kind in COUNTS else head
    bond = {"same": "same", "within": "within"} if kind in PAIRS else {"same": "same"} if kind == "at_most" else {}
    return {**head, **bond, "after": "start", "until": "end", "before": "end"}


def _kind_of(given: Data) -> str:
    heads = [key for key in _HEADS if key in given]
    if len(heads) != 1:
        found = f"{' and '.join(heads)}: make two rules of it" if heads else ", ".join(map(str, given)) or "nothing"
        raise DefinitionError("", f"expected a rule with one of {', '.join(_HEADS)}, got {found}")
    links = [key for key in PAIRS if key in given] if heads == ["every"] else heads
    if len(links) != 1:
        cure = "a rule about one kind of event is written {never: ...}, {at_most: 3, of: ...} or {last: ...}"
        raise DefinitionError("", f"every takes one of {', '.join(PAIRS)}, got {' and '.join(links) or 'none'}; {cure}")
    return links[0]


def _read_rule(data: Any) -> RunRule:
    given = fields.as_dict(data, f"a rule: a mapping with one of {', '.join(_HEADS)}")
    kind = _kind_of(given)
    rows, values, gathering = _rows(kind), dict[str, Any](), fields.Gathering()
    for key, value in given.items():
        with gathering.at(key):
            if key not in rows:
                raise fields.UnknownKeyError(key, rows)
            if rows[key] in values:
                raise fields.WrongKeyError("", "a part ends with until, or with before, where it must end; keep one")
            values[rows[key]] = value if rows[key] in _PLAIN else _read_matcher(value)
    if "of" in rows.keys() - given.keys():
        with gathering.at():
            raise DefinitionError("", f"the key 'of' is missing; write {{{kind}: 3, of: search}}")
    gathering.finish()
    try:
        return RunRule(cast("Any", kind), **values, must_end="before" in given)
    except DefinitionError as problem:
        key = next((key for key, name in rows.items() if name == problem.field and key in given), "")
        raise DefinitionError(key, problem.message + fields.cure(given.get(key), problem.message)) from None


def read_rules(data: Any) -> RunRule | RunRules:
    """Return a rule, or the rules of a list."""
    if isinstance(data, list):
        return fields.read_bare(RunRules, fields.read_all(data, "rule", _read_rule))
    return _read_rule(data)


def _rule_data(rule: RunRule) -> Data:
    given = {key: getattr(rule, name) for key, name in _rows(rule.kind).items()}
    del given["until" if rule.must_end else "before"]
    return {key: fields.write(value) for key, value in given.items() if value not in (None, "")}


def _call_data(matcher: CallMatcher) -> Any:
    found = fields.fields_of(matcher)
    return matcher.name if found.keys() <= {"call"} else found


WRITERS |= {
    CallMatcher: _call_data,
    MessageMatcher: lambda matcher: {"said": matcher.role, **fields.fields_of(matcher)},
    StateMatcher: fields.fields_of,
    RunRule: lambda rule: {"run": _rule_data(rule)},
    RunRules: lambda rules: {"run": [_rule_data(rule) for rule in rules.rules]},
}
