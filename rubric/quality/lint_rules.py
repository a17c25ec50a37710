"""
The rules of `lint`: each one looks at a rubric and yields what is wrong, with its consequence and its cure.

A rule is here only if it was right whenever it was read on files that people published; rules about vague words, "and",
double negation or heavy weights were tried, were wrong more often than right, and are left out. Errors are exact: they
follow from how answers are scored. Warnings read the text. Hints may be wrong, and are shown on request alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Literal, TypeGuard

from attrs import frozen

from rubric.grading.code_checks import decide
from rubric.internals.text import shorten
from rubric.quality import reachable
from rubric.quality.coalitions import exact, part_at, scores_of
from rubric.scoring.aggregation import TOLERANCE, part_of, resolve
from rubric.suites.cases import Case
from rubric.values.answers import Choices, Levels, Unit, YesNo
from rubric.values.candidates import Candidate
from rubric.values.checks import (
    Calls,
    Check,
    Contains,
    ContainsAll,
    Decided,
    EndsWith,
    Equals,
    Holds,
    Script,
    Similar,
    StartsWith,
    Trajectory,
    Unsupported,
    Within,
)
from rubric.values.criteria import Criterion
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree, Leaf

Level = Literal["error", "warning", "hint"]


@frozen
class Subject:
    """
    A rubric as the rules see it.

    Args:
        rubric: The rubric.
        case: The case that it grades; None for a rubric by itself.
        nested: Whether it is a criterion of another rubric, which uses its score and not its verdict.
        turned: Whether what meets its criteria counts against the candidate: it, or one that it is in, is negated or
            unwanted.
    """

    rubric: Rubric
    case: Case | None = None
    nested: bool = False
    turned: bool = False

    @classmethod
    def of(cls, rubric: Rubric, case: Case | None = None) -> Subject:
        """Return *rubric* by itself, or as that of *case*."""
        return cls(rubric, case, turned=rubric.negate)

    def below(self, criterion: Criterion, rubric: Rubric) -> Subject:
        """Return the *rubric* that is the answer to *criterion*."""
        return Subject(rubric, self.case, nested=True, turned=self.turned ^ criterion.is_unwanted ^ rubric.negate)


@frozen
class Finding:
    """What a rule found: the *index* of the criterion (None: the whole rubric), what is wrong, and the cure."""

    index: int | None
    message: str
    cure: str


@frozen
class Rule:
    """A rule by its *name*, the *level* of its remarks, and what it looks for."""

    name: str
    level: Level
    look: Callable[[Subject], Iterator[Finding]]


RULES: dict[str, Rule] = {}
"""The rules by name, in the order in which they are applied."""

_Look = Callable[[Subject], Iterator[Finding]]


def _rule(name: str, level: Level) -> Callable[[_Look], _Look]:
    def register(look: _Look) -> _Look:
        RULES[name] = Rule(name, level, look)
        return look

    return register


def _each(subject: Subject) -> Iterator[tuple[int, Criterion]]:
    return enumerate(subject.rubric.judged)


# -- errors: they follow from how answers are scored -----------------------------------------------------


@_rule("never-fails", "error")
def _never_fails(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    if not subject.nested and resolve(rubric, [part_at(rubric, c, best=rubric.negate) for c in rubric.judged]).passed:
        yield Finding(None, "every candidate passes, even at the worst answer to each criterion", "raise the threshold")


@_rule("never-passes", "error")
def _never_passes(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    best = resolve(rubric, [part_at(rubric, c, best=not rubric.negate) for c in rubric.judged])
    if not subject.nested and not best.passed:
        message = f"no candidate passes: the best answers to all criteria score {best.score:.3g}, or fail a gate"
        yield Finding(None, message, "lower the threshold, or give the best answers a higher score")


@_rule("no-effect", "error")
def _no_effect(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    if subject.nested or any(_never_fails(subject)) or any(_never_passes(subject)):
        return
    others = reachable.Reach.of_others(rubric)
    for index, criterion in _each(subject):
        if criterion.weight and not reachable.decides(rubric, index, others[index]):
            total = sum(exact(one.weight) for one in rubric.judged)
            share = float(exact(criterion.weight) / total)
            message = f"it can never change the verdict: {share:.0%} of the weight, whatever the other answers are"
            cure = "raise its weight, make it a gate with requires(text), or weight=0 to show it only"
            yield Finding(index, message, cure)


@_rule("gate-never-fires", "error")
def _gate_never_fires(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        gates = criterion.required or criterion.min_score is not None
        if gates and not part_at(subject.rubric, criterion, best=False).gated:
            yield Finding(index, "it is a gate that no answer fails", "raise its min_score, or drop required")


@_rule("gate-always-fires", "error")
def _gate_always_fires(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        part = part_at(subject.rubric, criterion, best=True)
        if part.gated:
            message = f"it is a gate that every answer fails: the best contributes {part.contribution:.3g}"
            yield Finding(index, message, "lower its min_score, or give the best answer a higher score")


@_rule("vacuous-pass", "error")
def _vacuous_pass(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    if rubric.judged and all(criterion.when is not None for criterion in rubric.judged):
        message = "every criterion has a condition, and a candidate that meets none of them passes unjudged"
        yield Finding(None, message, "add a criterion that always applies")


@_rule("same-leaves", "error")
def _same_leaves(subject: Subject) -> Iterator[Finding]:
    for index, tree in _trees(subject):
        for node in tree.nodes():
            scores = {leaf.score for leaf in node.leaves()}
            if len(scores) == 1:
                message = f"the question {shorten(node.question, 60)!r} scores {scores.pop():g} whatever the answer is"
                yield Finding(index, message, "give its branches different scores, or put the leaf in its place")
                break


@_rule("asked-twice", "error")
def _asked_twice(subject: Subject) -> Iterator[Finding]:
    for index, tree in _trees(subject):
        if question := _repeated(tree, frozenset()):
            message = f"a walk down the tree asks {shorten(question, 60)!r} twice, and one branch is never reached"
            yield Finding(index, message, "keep the question once on each way down")


def _trees(subject: Subject) -> Iterator[tuple[int, DecisionTree]]:
    for index, criterion in _each(subject):
        if isinstance(criterion.answer, DecisionTree):
            yield index, criterion.answer


def _repeated(node: DecisionTree | Leaf, above: frozenset[str]) -> str:
    if isinstance(node, Leaf):
        return ""
    words = _normal(node.question)
    if words in above:
        return node.question
    return _repeated(node.yes, above | {words}) or _repeated(node.no, above | {words})


@_rule("checks-exclude", "error")
def _checks_exclude(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    binding = [
        (index, criterion)
        for index, criterion in _each(subject)
        if isinstance(criterion.answer, Check)
        and criterion.when is None
        and (criterion.required or criterion.polarity == "guard" or rubric.strict or rubric.threshold is None)
        and not subject.turned
    ]
    for (_, first), (index, second) in combinations(binding, 2):
        if _exclude(first, second) or _exclude(second, first):
            message = f"no text meets both this check and {first.id!r}: {second.answer} against {first.answer}"
            yield Finding(index, message, "drop one of the two, or let one of them be no gate")


def _exclude(one: Criterion, other: Criterion) -> bool:
    """True if a text that meets *one* cannot meet *other*."""
    held, wanted = one.answer, other.answer
    if one.is_unwanted:
        return False
    if isinstance(held, Equals) and not held.ignore_case and _is_of_text(wanted):
        return decide(wanted, Candidate(held.text))[0] == other.is_unwanted
    if other.is_unwanted:  # what must be there holds what must not
        return any(_is_of_text(wanted) and _found_within(wanted, text) for text in _required_texts(held))
    if isinstance(held, StartsWith) and isinstance(wanted, StartsWith) and not (held.ignore_case or wanted.ignore_case):
        return not (held.text.startswith(wanted.text) or wanted.text.startswith(held.text))
    if isinstance(held, EndsWith) and isinstance(wanted, EndsWith) and not (held.ignore_case or wanted.ignore_case):
        return not (held.text.endswith(wanted.text) or wanted.text.endswith(held.text))
    return False


def _is_of_text(answer: object) -> TypeGuard[Check]:
    """True if *answer* is a check of the output's text alone."""
    return isinstance(answer, Check) and not isinstance(
        answer, Holds | Script | Unsupported | Decided | Calls | Trajectory | Within | Similar
    )


def _required_texts(answer: object) -> tuple[str, ...]:
    """Return texts that every output that meets *answer* contains, in the letters that it asks for."""
    match answer:
        case Contains(ignore_case=False) | StartsWith(ignore_case=False) | EndsWith(ignore_case=False):
            return (answer.text,)
        case ContainsAll(ignore_case=False):
            return answer.texts
    return ()


def _found_within(wanted: object, text: str) -> bool:
    """True if a text that contains *text* meets *wanted*, a check for parts of texts."""
    return isinstance(wanted, Contains) and decide(wanted, Candidate(text))[0]


@_rule("anchor-off-scale", "error")
def _anchor_off_scale(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        if not isinstance(criterion.answer, YesNo | Levels | Choices):
            continue
        allowed = sorted(set(scores_of(criterion)))
        for anchor in criterion.anchors:
            if min(abs(anchor.score - score) for score in allowed) > 1e-6:  # noqa: PLR2004 - as decimals were rounded
                shown = ", ".join(f"{score:.3g}" for score in allowed[:6])
                message = (
                    f"its example {shorten(anchor.response, 40)!r} has the score {anchor.score:g}, which no answer has"
                )
                yield Finding(index, message, f"give the example one of the scores {shown}")


def tests_that_are_anchors(rubric: Rubric) -> Iterator[tuple[int, Criterion]]:
    """Yield the place of each test whose reply is an anchor, and the criterion of that."""
    for index, test in enumerate(rubric.tests):
        reply = _folded(test.candidate.output)
        for criterion in rubric.judged:
            if any(_folded(anchor.response) == reply for anchor in criterion.anchors):
                yield index, criterion


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


@_rule("test-is-anchor", "error")
def _test_is_anchor(subject: Subject) -> Iterator[Finding]:
    for number, criterion in tests_that_are_anchors(subject.rubric):
        message = f"tests[{number}] is an anchor, which the judge is shown, so that it passes and shows nothing"
        yield Finding(subject.rubric.judged.index(criterion), message, "give the test, or the anchor, another reply")


# -- warnings: they read the text ------------------------------------------------------------------------

_RANGE = r"(?P<low>\d+(?:\.\d+)?)\s*(?:-|–|—|\bto\b|\.\.|\band\b)\s*(?P<high>\d+(?:\.\d+)?)(?![\d-]|\s*%)"
_OUT_OF = r"\bout\s+of\s+(?P<of>\d+)\b"
_AFTER = (
    r"(?=\s*(?:$|[.,:;!?)\n(]|where\b|based\b|how\b|for\b|with\b|on\b|in\b|according\b|depending\b|by\b|if\b|using\b"
    r"|scale\b|points?\b|stars?\b|the\b|whether\b))"
)
_SENTENCE = r"(?:^|[.!?:;]\s+|\n\s*(?:[-*]\s*)?)(?:please\s+|then\s+|and\s+)?"
_NOUN = r"\b(?:scale|score|rating|points?|stars?|grade|mark)\b[^.\n]{0,24}?"
_SCALES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_SENTENCE}(?:score|rate|grade|mark|rank)\b[^.\n]*?(?:{_RANGE}|{_OUT_OF}){_AFTER}",
        rf"{_SENTENCE}(?:give|assign|award|evaluate|assess|judge|provide|return)\b[^.\n]*?{_NOUN}(?:{_RANGE}|{_OUT_OF}){_AFTER}",
        rf"{_SENTENCE}(?:on|using)\s+a\s+(?:[\w-]+\s+)?scale\s+(?:of|from)\s+{_RANGE}",
        rf"{_SENTENCE}(?:scor(?:e|es|ing)|rating|scale)\b[^.\n\d]{{0,30}}(?:{_RANGE}|{_OUT_OF}){_AFTER}",
    )
)
_LISTED_SCORE = re.compile(r"^\s*[-*]?\s*(\d+)\s*(?:points?)?\s*(?:[:=]|–|—| - )\s*\S", re.MULTILINE)
_LISTED_SCALE = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s.*?\((\d+)\s*(?:-|–|to)\s*(\d+)(?:\s*points?)?\)", re.MULTILINE)
"""A point of a list with a scale of its own, such as "2. Tone (0-10)"."""

_JUDGES = re.compile(r"\s*(?:please\s+)?(?:evaluate|assess|judge|grade|score|rate)\b", re.IGNORECASE)
_OF_SCORES = re.compile(r"\b(?:scor\w+|rat(?:e|es|ing)|grad(?:e|es|ing)|points?|scale)\b", re.IGNORECASE)


@_rule("own-scale", "warning")
def _own_scale(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        match criterion.answer:
            case YesNo():
                scale, what = None, "it is answered with yes or no"
            case Unit():
                scale, what = (0.0, 1.0), "its score is a number from 0 to 1"
            case Levels(low=low, high=high):
                scale, what = (float(low), float(high)), f"its scale is {low} to {high}"
            case _:
                continue
        found = _scale_in(criterion.text)
        if found is not None and found != scale:
            shown = f"{found[0]:g} to {found[1]:g}"
            whole = all(end.is_integer() for end in found)
            cure = f"rates(text, ScoreRange({found[0]:g}, {found[1]:g}))" if whole else "scores(text)"
            yield Finding(
                index, f"the text asks for a score of {shown}, and {what}", f"take the scale out, or use {cure}"
            )


def _scale_in(text: str) -> tuple[float, float] | None:
    """Return the scale that *text* tells the judge to use."""
    for pattern in _SCALES:
        for match in pattern.finditer(text):
            given = match.groupdict()
            low, high = (0.0, float(given["of"])) if given.get("of") else (float(given["low"]), float(given["high"]))
            if low < high <= 1000:  # noqa: PLR2004 - a year is no score
                return low, high
    scales = _LISTED_SCALE.findall(text)
    if len(scales) > 1 and len({*scales}) == 1 and _OF_SCORES.search(text + " scale" * bool(_JUDGES.match(text))):
        low, high = map(float, scales[0])
        if low < high:
            return low, high
    listed = sorted({int(number) for number in _LISTED_SCORE.findall(text)})
    if len(listed) > 1 and listed[-1] > 1 and _OF_SCORES.search(text):
        return float(listed[0]), float(listed[-1])
    return None


_VERDICT = (
    r"(?:PASS(?:ED)?|FAIL(?:ED)?|YES|NO|TRUE|FALSE|[\"'`](?:pass|fail|yes|no|true|false)[\"'`]"
    r"|[\"'`]?(?:pass|passed|verdict|score)[\"'`]?\s*[=:]\s*[\"'`]?(?i:true|false|yes|no|[01]\b)|(?:a\s+|valid\s+)*JSON)"
)
_ASKS_FORMAT = re.compile(
    rf"{_SENTENCE}(?i:output|respond|reply|return|answer|print|say|write)\s+(?:(?i:only|just|with|in|as|either|exactly|a|an|the"
    rf"|single|word|verdict|of|strictly)\s+)*{_VERDICT}(?![\w-])",
    re.MULTILINE,
)
_JSON_KEYS = re.compile(r"[{,]\s*\"(?:pass|passed|score|reason|verdict|reasoning|explanation)\"\s*:")


@_rule("own-format", "warning")
def _own_format(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        if isinstance(criterion.answer, YesNo | Unit | Levels | Choices):
            found = _ASKS_FORMAT.search(criterion.text) or _JSON_KEYS.search(criterion.text)
            if found:
                said = shorten(found[0].strip(" .:;\n"), 40)
                message = f"the text tells the judge how to reply ({said!r}), and the prompt asks for another form"
                yield Finding(index, message, "say only what is judged; the form of the reply is added")


_PRESCRIBES = re.compile(
    r"^(?:(?:the|this|an?|its?|their|your)\s+)?(?:[\w'-]+\s+){0,3}?(?:should|must|shall|may|can)\s*(?:not|n't|never)\b"
    r"|^(?:never|do\s+not|don't|avoid|refrain\s+from|no\s+need\s+to|please\s+(?:do\s+not|don't|avoid))\b",
    re.IGNORECASE,
)
_ABSENT = re.compile(
    r"^(?:no|nothing|none|not|without|lacks?|lacking|missing|omits?|fails?\s+to|absence\s+of)\b"
    r"|^(?:(?:the|this|an?|it|its)\s+)?(?:[\w'-]+\s+){0,3}?(?:does\s+not|doesn't|did\s+not|didn't|is\s+not|isn't"
    r"|are\s+not|aren't|has\s+no|have\s+no|contains?\s+no|lacks?|omits?|fails?\s+to)\b",
    re.IGNORECASE,
)


@_rule("guard-prescribes", "warning")
def _guard_prescribes(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        unwanted = criterion.is_unwanted != subject.turned
        if unwanted and not isinstance(criterion.answer, Check) and _PRESCRIBES.search(criterion.text):
            kind = {"guard": "fails the grade", "penalty": "takes points off"}.get(
                criterion.polarity, "counts against it"
            )
            message = f"it {kind} where its text holds, and the text says what should not be: a good candidate meets it"
            cure = "state the fault itself (forbids('Mentions a price')), or expect it: expects('Mentions no price')"
            yield Finding(index, message, cure)


@_rule("duplicate", "warning")
def _duplicate(subject: Subject) -> Iterator[Finding]:
    seen: dict[object, tuple[int, Criterion]] = {}
    for index, criterion in _each(subject):
        answer = criterion.answer
        if isinstance(answer, Unsupported | Decided | Rubric):
            continue
        key = answer if isinstance(answer, Check) else _normal(criterion.text)
        if (earlier := seen.setdefault(_hashable(key), (index, criterion)))[0] != index:
            turned = earlier[1].is_unwanted != criterion.is_unwanted
            how = "the other way round, so one of the two always counts against the candidate" if turned else "twice"
            message = f"it asks what {earlier[1].id!r} asks, {how}"
            yield Finding(index, message, "keep one of the two, with the weight of both")
    checks = [(i, c) for i, c in _each(subject) if isinstance(c.answer, Check) and not c.is_unwanted and c.when is None]
    for (first, one), (second, other) in combinations(checks, 2):
        for (_, weaker), (index, stronger) in (((first, one), (second, other)), ((second, other), (first, one))):
            if one.answer != other.answer and _implies(stronger.answer, weaker.answer):
                message = f"an output that meets it always meets {weaker.id!r} too, which so counts twice"
                yield Finding(index, message, f"keep it, and drop {weaker.id!r}")
                break


def _implies(stronger: object, weaker: object) -> bool:
    texts = (stronger.text,) if isinstance(stronger, Equals) and not stronger.ignore_case else _required_texts(stronger)
    return isinstance(weaker, Contains) and any(decide(weaker, Candidate(text))[0] for text in texts)


def _hashable(key: object) -> object:
    try:
        hash(key)
    except TypeError:  # a check with a schema
        return repr(key)
    return key


_LEFT_OVER = re.compile(
    r"\b(?:TODO|FIXME|XXX|TBD)\b\s*[:(\[]|^\s*(?:TODO|FIXME|XXX|TBD)\s*$|\blorem ipsum\b"
    r"|[<\[](?:your|insert|add|describe|enter)\s[^>\]]{1,60}[>\]]",
    re.IGNORECASE | re.MULTILINE,
)


@_rule("left-over", "warning")
def _left_over(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        if not isinstance(criterion.answer, Check) and (found := _LEFT_OVER.search(criterion.text)):
            message = f"the text has a place that was to be filled in: {shorten(found[0].strip(), 40)!r}"
            yield Finding(index, message, "write what is judged")


@_rule("weight-left-out", "warning")
def _weight_left_out(subject: Subject) -> Iterator[Finding]:
    given = [(index, criterion.weight) for index, criterion in _each(subject)]
    shares = [weight for _, weight in given if 0 < weight < 1]
    ones = [index for index, weight in given if weight == 1]
    if len(ones) == 1 and len(shares) + 1 == len(given) and len(shares) > 1 and sum(shares) < 1 + TOLERANCE:
        left = 1 - sum(shares)
        message = f"the others have shares that sum to {sum(shares):g}, and this one weighs 1, as without a weight"
        yield Finding(ones[0], message, f"weight={left:.3g}" if left > TOLERANCE else "give it a share too")


@_rule("reference-fails", "warning")
def _reference_fails(subject: Subject) -> Iterator[Finding]:
    reference = subject.case.reference if subject.case is not None else ""
    for index, criterion in _each(subject) if reference else ():
        if not _is_of_text(criterion.answer) or criterion.when is not None:
            continue
        met, why = decide(criterion.answer, Candidate(reference))
        if met == (criterion.is_unwanted != subject.turned):
            message = f"the case's own reference answer fails this check: {shorten(why or str(criterion.answer), 80)}"
            yield Finding(index, message, "mend the check or the reference")


# -- hints -----------------------------------------------------------------------------------------------


@_rule("question-passes", "hint")
def _question_passes(subject: Subject) -> Iterator[Finding]:
    case = subject.case
    if case is None or not case.input or subject.nested:
        return
    judged = subject.rubric.judged
    checks = [c.answer for c in judged if _is_of_text(c.answer) and c.when is None]
    if judged and len(checks) == len(judged):
        scores = [float(decide(check, Candidate(case.input))[0]) for check in checks]
        parts = [part_of(subject.rubric, criterion, score) for criterion, score in zip(judged, scores, strict=True)]
        if resolve(subject.rubric, parts).passed:
            yield Finding(None, "an output that only repeats the question passes", "check for what only an answer has")


_GENERIC_WORDS = """
    a an and are as be been but by for from have has in is it its of on or that the their then there this to
    very was were with answer answers output outputs reply replies response responses result results text
    agent assistant model ai llm it's should must will can does do good great nice fine ok okay correct
    correctly right accurate accurately appropriate appropriately helpful relevant useful quality high well
    proper properly best excellent satisfactory acceptable adequate reasonable suitable valid expected
    desired user user's users question request task prompt input query asked meets meet requirements
    provides provide gives give makes make sense performs perform behaves works work looks sounds seems
    overall generally addresses address
"""
_GENERIC = frozenset(_GENERIC_WORDS.split())


@_rule("says-nothing", "hint")
def _says_nothing(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        if isinstance(criterion.answer, YesNo | Unit) and not subject.rubric.guidelines and not criterion.anchors:
            words = _normal(criterion.text).split()
            if words and _GENERIC.issuperset(words):
                message = "its words fit every task, so the judge must guess what is meant"
                yield Finding(index, message, "name what a good answer to this task has")


@_rule("guard-states-absence", "hint")
def _guard_states_absence(subject: Subject) -> Iterator[Finding]:
    for index, criterion in _each(subject):
        unwanted = criterion.is_unwanted != subject.turned
        if unwanted and not isinstance(criterion.answer, Check) and _ABSENT.search(criterion.text):
            message = "it counts against the candidate where its text holds, and the text says that something is absent"
            yield Finding(index, message, "make sure that the absence is the fault; else expects(text)")


def _normal(text: str) -> str:
    """Return the words of *text* for comparison: without case, punctuation and articles."""
    words = re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.casefold().replace("’", "'"))
    return " ".join(word for word in words if word not in ("a", "an", "the"))
