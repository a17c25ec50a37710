"""
Read findings from a reply. A reply is untrusted text: an unclear one has no verdict, never a guessed one.

An unreadable reply is `Unjudged`, never a score. The table of replies, and of what each becomes, is
`docs/reference/replies.md`. A type of answer has its verdict here whole: the form in which a judge is asked for it
(`shape_of`), and how it is read.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, assert_never, cast

from attrs import evolve

from rubric.grading.evidence import occurs_in, quote, quote_step
from rubric.grading.json_extraction import Ambiguous, find_object, find_objects, object_spans
from rubric.grading.sealed_replies import LISTS, after_first_thought, sealed_list, sealed_object
from rubric.grading.similarity import compare
from rubric.grading.tool_use import material_for
from rubric.internals.secrets import MASK, redact
from rubric.internals.text import as_json, shorten
from rubric.values.answers import Answer, Choice, Choices, JudgeAnswer, Levels, Unit, YesNo, fold
from rubric.values.artefacts import SEGMENT, Material
from rubric.values.clients import DECIDES
from rubric.values.criteria import UNWANTED, Criterion
from rubric.values.findings import Abstained, Evidence, Finding, Scored, Unjudged
from rubric.values.numbered import chosen_places
from rubric.values.requests import Ask, Failure, FailureKind, Reply

LONGEST_REPLY = 200_000
_LONGEST_NUMBER = 40
_SHORTEST_JSON = 10  # {"score":1}
_MOST_QUOTES = 20
_YES = frozenset({"true", "yes", "pass", "passed", "satisfied", "met", "y", "correct", "present"})
_NO = frozenset(
    {"false", "no", "fail", "failed", "unsatisfied", "not satisfied", "unmet", "not met", "n", "incorrect", "absent"}
)
VERDICT_WORDS = dict.fromkeys(_YES, True) | dict.fromkeys(_NO, False)
_VERDICTS = ("verdict", "pass", "passed", "satisfied", "met", "answer", "criterion_status", "criteria_met")
_OTHERS = frozenset({*_VERDICTS[1:], "score"})
SCORE_KEYS = ("score", "rating", "verdict")
_CHOICES = ("choice", "verdict", "answer", "label", "category")
_REASONS = ("reason", "reasoning", "explanation", "rationale", "justification", "comment")
_QUOTES = ("evidence", "quote", "quotes", "span")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_OUT_OF = re.compile(r"(-?\d+(?:\.\d+)?)\s*/\s*(\d+)", re.ASCII)


class Unreadable(Ambiguous):
    """Why a reply, or one verdict in it, cannot be read."""


def read(ask: Ask, reply: Reply | Failure) -> tuple[Finding, ...]:
    """Return a finding for each of the ask's criteria, in order. No reply raises an error, whatever is in it."""
    if ask.embeds:
        return (compare(ask, reply),)
    if isinstance(reply, Failure):
        return _unjudged_all(ask, reply, "")
    if (finding := _as_asked(ask, reply)) is not None:
        return (finding,)
    problem = _unusable(reply)
    if problem is not None:
        return _unjudged_all(ask, evolve(problem, judge=ask.judge.name), str(reply.text or reply.refusal))
    said = _encodable(reply.text or "")
    text = _after_thinking(said)
    if text is None:
        return _unjudged_all(ask, _failure(ask, "truncated", "the reply ends while still thinking"), said)
    try:
        if ask.judge.reader is not None:
            return (_read_free(ask, text),)
        return _read_many(ask, said, text) if ask.many else (_read_one(ask, said, text),)
    except Ambiguous as why:
        # A function that returns "yes" was meant to decide; one that a model stands behind returns longer texts.
        cure = f"; {_way_to_decide(ask)}" if ask.judge.is_function and len(text) < _SHORTEST_JSON else ""
        return _unjudged_all(ask, _failure(ask, "unreadable", f"{why}{cure}"), text)


def _way_to_decide(ask: Ask) -> str:
    """Return how a function answers *ask*: for itself, or in JSON where an answer is more than yes or no."""
    answer = ask.criteria[0].answer
    if isinstance(answer, YesNo):
        return DECIDES
    shape = shape_of(answer)
    return f"a function answers this in JSON, such as {as_json({shape.key: shape.each[-1]})}"


def holds(ask: Ask, reply: Reply) -> bool:
    """True if *reply* has an object with the keys that the schema of *ask*, which has no criteria, requires."""
    if _unusable(reply) is not None:
        return False
    wanted = {*ask.schema["required"]}
    try:
        return find_object(reply.text or "", lambda value, _: wanted <= value.keys()) is not None
    except Ambiguous:
        return False


def _unusable(reply: Reply) -> Failure | None:
    if reply.refusal or reply.finish in ("refusal", "content_filter"):
        return Failure("refusal", shorten(_encodable(reply.refusal)) or "the model or a filter refused")
    if reply.finish == "length":
        return Failure("truncated", "the reply was cut at the token limit; Judge(..., max_tokens=8192) allows more")
    if not isinstance(reply.text, str) or not reply.text.strip():
        return Failure("bad_response", "the reply has no text")
    if len(reply.text) > LONGEST_REPLY:
        return Failure("bad_response", f"the reply has {len(reply.text)} characters, {LONGEST_REPLY} is the limit")
    return None


def _encodable(text: str) -> str:
    """Return *text* without half surrogates, which no file and no terminal takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


_THINKING = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)


def _after_thinking(text: str) -> str | None:
    """Return the part of *text* after its last thinking, tags in JSON apart; None if that thinking does not end."""
    if "<" not in text:
        return text
    # A thought at the beginning of the reply goes first: half an object in it would hide the tag at its end.
    text = after_first_thought(text)
    tags = list(_THINKING.finditer(text))
    spans = iter(object_spans(text)) if tags else iter(())
    start, end = next(spans, (len(text), len(text)))
    last = None
    for tag in tags:
        while end <= tag.start():
            start, end = next(spans, (len(text), len(text) + 1))
        if tag.start() < start:
            last = tag
    if last is None:
        return text
    return text[last.end() :] if last[1] else None


def _failure(ask: Ask, kind: FailureKind, message: str) -> Failure:
    return Failure(kind, message, judge=ask.judge.name)


def _unjudged_all(ask: Ask, failure: Failure, text: str) -> tuple[Finding, ...]:
    return tuple(_as_unjudged(criterion, failure, text) for criterion in ask.criteria)


def _as_unjudged(criterion: Criterion, failure: Failure, text: str) -> Unjudged:
    low, high = reach(criterion.answer)
    return Unjudged(criterion.id, evolve(failure, criterion=criterion.id), shorten(text), low, high)


def reach(answer: Answer) -> tuple[float, float]:
    """Return the lowest and the highest score that *answer* can have."""
    if isinstance(answer, Choices):
        scores = [c.score for c in answer.choices]
        return min(scores), max(scores)
    return 0.0, 1.0


# -- exactly as asked ------------------------------------------------------------------------------------

_SPACE = r"[ \t\r\n]*+"
_TEXT = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BOOL = "(?:true|false)"
_VALUES: dict[type[Any], tuple[str, str]] = {
    YesNo: ("verdict", _BOOL),
    Unit: ("score", r"[01](?:\.\d{1,20})?"),
    Levels: ("score", r"-?(?:0|[1-9]\d{0,15})"),
    Choices: ("choice", _TEXT),
}
"""The key and the pattern of a verdict; replies to a type of answer that is not here are read strictly."""

_decode = json.JSONDecoder(strict=False).raw_decode


@lru_cache(maxsize=64)
def _pattern(kind: type[Answer], reasoning: str, *, flagged: bool, sealed: bool) -> re.Pattern[str] | None:
    """Return the pattern of a whole reply in the form that was asked for; None for an answer that is read strictly."""
    if kind not in _VALUES:
        return None
    values = [_VALUES[kind], *([("pass", _BOOL)] if flagged else [])]
    reasons = [("reason", _TEXT)] if reasoning != "none" else []
    pairs = [*values, *reasons] if reasoning == "after" else [*reasons, *values]
    pairs += [("nonce", '"[a-z2-7]*"')] if sealed else []
    body = f"{_SPACE},{_SPACE}".join(f'"{key}"{_SPACE}:{_SPACE}{value}' for key, value in pairs)
    return re.compile(rf"\{{{_SPACE}{body}{_SPACE}\}}{_SPACE}", re.DOTALL | re.ASCII)


def _as_asked(ask: Ask, reply: Reply) -> Finding | None:
    """
    Return the finding of a reply in exactly the form that was asked for, as most are; None: it must be read strictly.

    It accepts nothing that the strict reader refuses. The pattern takes the whole reply, so there is one flat object
    with each key once, the nonce last, and nothing around it: the rules of `grading.sealed_replies` hold by shape.
    """
    text = reply.text
    if (
        ask.many
        or ask.quoted
        or ask.judge.reader is not None
        or reply.finish != "stop"
        or reply.refusal
        or not isinstance(text, str)
        or len(text) > LONGEST_REPLY
        # An object in the reply may be one that the judge was shown.
        or (not ask.nonce and ("{" in ask.candidate or "{" in ask.run or ask.turns))
        or (not ask.nonce and ask.about is not None and "{" in ask.about.input)
    ):
        return None
    criterion = ask.criteria[0]
    answer, sealed = criterion.answer, ask.nonce != ""
    flagged = isinstance(answer, Unit) and answer.flag
    pattern = _pattern(type(answer), ask.judge.reasoning, flagged=flagged, sealed=sealed)
    if pattern is None or pattern.fullmatch(text) is None:
        return None
    try:
        said, _ = _decode(_encodable(text))
        return _score(ask, criterion, said) if said.get("nonce", "") == ask.nonce else None
    except (ValueError, Unreadable):  # an escape that JSON does not have, or a value out of its range
        return None


# -- which object --------------------------------------------------------------------------------------


def _objects(ask: Ask, said: str, text: str, wanted: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the objects of *text*, a part of the whole reply *said*, that may be the answer, in order."""

    def accept(value: Mapping[str, Any], raw: str) -> bool:
        if value.keys().isdisjoint(wanted):
            return False
        read = [json.loads(turn).get("content") or "" for turn in ask.turns]  # what the judge had its tools show
        read += [ask.about.input] if ask.about is not None else []
        return not any("{" in graded and occurs_in(raw, graded) for graded in (ask.candidate, ask.run, *read))

    if ask.nonce:
        return sealed_object(said, text, nonce=ask.nonce, asked=frozenset(wanted))
    return [value for value, _ in find_objects(text, accept)]


def _refuse_none(ask: Ask, said: str, found: Sequence[object]) -> None:
    if not found:
        copied = ", other than one copied from the candidate" if "{" in said else ""
        mark = ' and the "nonce" of this request' if ask.nonce else copied
        strict = " (in double quotes, without trailing commas or comments)" if ask.nonce and "{" in said else ""
        raise Unreadable(f"it holds no JSON object{strict} with the keys that were asked for{mark}")


def _read_one(ask: Ask, said: str, text: str) -> Finding:
    criterion = ask.criteria[0]
    found = [_finding(ask, criterion, value) for value in _objects(ask, said, text, keys_of(criterion.answer))]
    _refuse_none(ask, said, found)
    if len({(f.score, f.value, f.flag) if isinstance(f, Scored) else type(f) for f in found}) > 1:
        raise Unreadable("it holds two verdicts that disagree")
    return found[-1]


def _read_many(ask: Ask, said: str, text: str) -> tuple[Finding, ...]:
    lists: list[Any]
    if ask.nonce:
        asked = frozenset(key for criterion in ask.criteria for key in keys_of(criterion.answer))
        lists = [*sealed_list(said, text, nonce=ask.nonce, asked=asked, ids=[c.id for c in ask.criteria])]
    else:
        lists = [o.get("verdicts", o.get("checks")) for o in _objects(ask, said, text, LISTS)]
    _refuse_none(ask, said, lists)
    if not all(isinstance(entries, list) for entries in lists):
        raise Unreadable('it holds no list of "verdicts"')
    if any(entries != lists[0] for entries in lists):
        raise Unreadable("it holds two lists of verdicts that disagree")
    entries = [entry for entry in lists[-1] if isinstance(entry, Mapping)]
    return tuple(_entry(ask, criterion, entries) for criterion in ask.criteria)


def _read_free(ask: Ask, text: str) -> Finding:
    """Return the finding of a free text; its verdict is checked as one in JSON is."""
    from rubric.grading import free_text  # noqa: PLC0415 - few judges have a reader

    criterion = ask.criteria[0]
    value, reason = free_text.read(ask, text)
    key = keys_of(criterion.answer)[0]
    return _score(ask, criterion, {key: value, "reason": reason})


def _entry(ask: Ask, criterion: Criterion, entries: Sequence[Mapping[str, Any]]) -> Finding:
    """Return the finding of one criterion: one bad entry fails that criterion alone."""
    ids = (criterion.id, redact(criterion.id))  # an id may look like a key, which is masked in a reply
    mine = [entry for entry in entries if str(entry.get("id", "")).strip() in ids]
    if len(mine) != 1:
        why = f"expected one verdict for {criterion.id!r}, got {len(mine) or 'none'}"
        return _as_unjudged(criterion, _failure(ask, "unreadable", why), "")
    try:
        return _finding(ask, criterion, mine[0])
    except Unreadable as problem:
        return _as_unjudged(criterion, _failure(ask, "unreadable", str(problem)), _encodable(str(mine[0])))


# -- what it says, for each type of answer -----------------------------------------------------------------


_HUNDREDTHS = [0, *[n / 100 for n in range(1, 100)], 1]
"""The scores from 0 to 1 as values: llama.cpp ignores the bounds of a `number`, and no judge tells finer."""


class Shape(NamedTuple):
    """The key of a verdict, its type in JSON Schema, and the values it may have: as the prompt says it, and each."""

    key: str
    type: str
    values: str
    each: Sequence[bool | float | str] = ()


def shape_of(answer: Answer) -> Shape:
    """Return the key, the type and the values of a verdict on *answer*."""
    match cast("JudgeAnswer", answer):  # other answers are never asked for in a reply
        case YesNo():
            return Shape("verdict", "boolean", "true or false", (True, False))
        case Unit():
            return Shape("score", "number", "a number from 0 to 1", _HUNDREDTHS)
        case Levels(low=low, high=high):
            return Shape("score", "integer", f"a whole number from {low} to {high}", range(low, high + 1))
        case Choices(choices=choices):
            labels = [c.label for c in choices]
            return Shape("choice", "string", "one of " + ", ".join(map(as_json, labels)), labels)
        case never:
            assert_never(never)


def keys_of(answer: Answer) -> Sequence[str]:
    """Return the keys that may hold a verdict on *answer*."""
    match cast("JudgeAnswer", answer):  # other answers are never asked for in a reply
        case YesNo():
            return (*_VERDICTS, "score")
        case Choices():
            return _CHOICES
        case Unit() | Levels():
            return (*SCORE_KEYS, *_VERDICTS)
        case never:
            assert_never(never)


def _finding(ask: Ask, criterion: Criterion, said: Mapping[str, Any]) -> Finding:
    if criterion.polarity in UNWANTED:
        _refuse_synonyms(ask, criterion.answer, said)
    # Null under each of its keys: a null beside a verdict disagrees with it.
    keys = SCORE_KEYS if isinstance(criterion.answer, Unit | Levels) else keys_of(criterion.answer)
    given = [said[key] for key in keys if key in said]
    if given and all(value is None for value in given):
        if criterion.id not in ask.abstainable:
            raise Unreadable("its verdict is null, and the rubric does not allow to abstain")
        return Abstained(criterion.id, _reason(said))
    return _score(ask, criterion, said)


def _refuse_synonyms(ask: Ask, answer: Answer, said: Mapping[str, Any]) -> None:
    """Refuse other keys for what must not hold: `passed: true` may mean that it holds, or that all is well."""
    asked = {"verdict" if ask.many else keys_of(answer)[0]}
    asked |= {"pass"} if isinstance(answer, Unit) and answer.flag else set()
    if others := [key for key in dict.fromkeys((*keys_of(answer), *_VERDICTS)) if key in said and key not in asked]:
        raise _complaint(f'the verdict under "{min(asked - {"pass"})}" alone, as the text must not hold', others)


def _score(ask: Ask, criterion: Criterion, said: Mapping[str, Any]) -> Scored:
    id_, reason = criterion.id, _reason(said)
    evidence = _evidence(ask, said) if id_ in ask.quoted else ()
    match cast("JudgeAnswer", criterion.answer):
        case YesNo():
            holds = _yes_no(said)
            return Scored(id_, float(holds), holds, reason, evidence)
        case Unit() as unit:
            score = _unit(said)
            return Scored(id_, score, score, reason, evidence, flag=_flag(ask, unit, said))
        case Levels() as levels:
            level = _level(levels, said)
            return Scored(id_, levels.place(level), level, reason, evidence, level=levels.band(level))
        case Choices() as choices:
            choice = _choice(choices, said)
            return Scored(id_, choice.score, choice.label, reason, evidence)
        case never:
            assert_never(never)


def _reason(said: Mapping[str, Any]) -> str:
    for key in _REASONS:
        if isinstance(reason := said.get(key), str):
            return " ".join(_encodable(reason).split())
    return ""


def _evidence(ask: Ask, said: Mapping[str, Any]) -> tuple[Evidence, ...]:
    given = next((said[key] for key in _QUOTES if key in said), None)
    if not isinstance(given, str | list | None):
        raise _complaint("a list of quotes as evidence", given)
    words = [given] if isinstance(given, str) else given or []
    return tuple(_span(ask, _encodable(w)) for w in words[:_MOST_QUOTES] if isinstance(w, str) and w.strip())


def _span(ask: Ask, words: str) -> Evidence:
    part = None if ask.about is None else ask.about.part
    if part is not None and part.chosen:  # the steps that are judged, and no others
        found = quote_step(words, ask.candidate, chosen_places(part))
        return Evidence(shorten(words)) if found is None else found
    material = material_for(ask)
    found = None if ask.candidate == SEGMENT else quote(words, ask.candidate)
    if found is None and ask.run:
        found = quote_step(words, ask.run, ask.places)
    if found is None and material:
        found = _in_material(words, material)
    return Evidence(shorten(words)) if found is None else found


def _in_material(words: str, material: Material) -> Evidence | None:
    """Return the span that *words* quote: of the step or file that they name alone; without a name, of any file."""
    if (named := material.find_source(words)) is not None:
        return quote(named[1], material.quotable(named[0]), named[0])
    return next(
        (found for name, text in material.files.items() if (found := quote(words, text, name)) is not None), None
    )


def _as_bool(value: Any) -> bool | None:
    if isinstance(value, str):
        holds = VERDICT_WORDS.get(value)  # nearly all use a word as it was asked for
        return VERDICT_WORDS.get(fold(value).replace("_", " ")) if holds is None else holds
    return value if isinstance(value, bool) else None


def _yes_no(said: Mapping[str, Any]) -> bool:
    if isinstance(holds := said.get("verdict"), bool) and _OTHERS.isdisjoint(said):  # as asked
        return holds
    given = [said[key] for key in _VERDICTS if key in said]
    score = said.get("score")
    verdicts = [_as_bool(value) for value in given]
    if (number := _number(score)) in (0, 1):
        verdicts.append(number == 1)
    elif (holds := _as_bool(score)) is not None:
        verdicts.append(holds)
    if not verdicts or None in verdicts:
        raise _complaint("a verdict of true or false", given or score)
    if len(set(verdicts)) > 1:
        raise _complaint("one verdict", [*given, *([score] if "score" in said else [])])
    return bool(verdicts[0])


def _complaint(allowed: str, found: object) -> Unreadable:
    """Return the complaint; the part after "got" is the judge's own, and is not repeated to a judge."""
    return Unreadable(f"expected {allowed}, got {shorten(repr(found), 80)}")


def _number(value: Any) -> float | None:
    """Return *value* as a finite number, if it is one or is written as one."""
    if isinstance(value, str) and len(value) < _LONGEST_NUMBER and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _one_score(said: Mapping[str, Any]) -> Any:
    given = [said[key] for key in SCORE_KEYS if key in said and _as_bool(said[key]) is None]
    if any(value != given[0] for value in given):
        raise _complaint("one score", given)
    return given[0] if given else None


def _unit(said: Mapping[str, Any]) -> float:
    given = _one_score(said)
    if given is None and "score" not in said:  # a plain yes is 1, a plain no is 0
        verdicts = {_as_bool(said[key]) for key in _VERDICTS if key in said}
        if len(verdicts) == 1 and None not in verdicts:
            return float(verdicts == {True})
    score = _number(given)
    if score is None or not 0 <= score <= 1:
        raise _complaint("a score from 0 to 1", said.get("score") if given is None else given)
    return score


def _level(levels: Levels, said: Mapping[str, Any]) -> int:
    given = _one_score(said)
    match = _OUT_OF.fullmatch(given.strip()) if isinstance(given, str) and len(given) < _LONGEST_NUMBER else None
    value = _number(match[1]) if match and int(match[2]) == levels.high else _number(given)
    if value is None or not value.is_integer() or not levels.low <= value <= levels.high:
        raise _complaint(f"a whole number from {levels.low} to {levels.high}", given)
    return int(value)


def _choice(choices: Choices, said: Mapping[str, Any]) -> Choice:
    given = [said[key] for key in _CHOICES if key in said]
    labels = [str(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in given]
    found = [_find_choice(choices, label) if isinstance(label, str) else None for label in labels]
    if not found or found[0] is None or any(choice != found[0] for choice in found):
        menu = ", ".join(c.label for c in choices.choices)
        raise _complaint(f"one of {menu}", given)
    return found[0]


def _find_choice(choices: Choices, label: str) -> Choice | None:
    """Return the choice called *label*, which is masked if it looks like a key."""
    masked = [choice for choice in choices.choices if redact(choice.label) == label] if MASK in label else []
    return masked[0] if len(masked) == 1 else choices.get(label)


def _flag(ask: Ask, unit: Unit, said: Mapping[str, Any]) -> bool | None:
    if not unit.flag:
        return None
    given = [said[key] for key in _VERDICTS if key in said and _number(said[key]) is None]
    flags = {_as_bool(value) for value in given}
    if len(flags) == 1 and None not in flags:
        return flags.pop()
    if not flags and ask.flagless:
        return None
    raise _complaint('"pass": true or false', given)
