"""
The rules of `lint`: each one looks at a rubric and yields what is wrong, with its consequence and its cure.

A rule is here only if it was right whenever it was read on files that people published; rules about vague words, "and",
double negation or heavy weights were tried, were wrong more often than right, and are left out. Errors are exact: they
follow from how answers are scored. Warnings read the text. Hints may be wrong, and are shown on request alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import frexp, inf
from typing import Literal

from attrs import Factory, frozen

from rubric import Choices, Criterion, DecisionTree, Levels, Rubric, Unit, YesNo
from rubric.embed import TOLERANCE, Check, Decided, shorten
from rubric.grading.lacking import without
from rubric.quality import lint_texts
from rubric.quality.coalitions import part_at, scores_of
from rubric.quality.lint_code import by_code, length_in
from rubric.quality.lint_conflicts import excluding, finding_of, implications, is_of_text
from rubric.quality.reachable import Reach
from rubric.scoring.outcomes import Rules
from rubric.suites.cases import Case
from rubric.values import Leaf, Unsupported

Level = Literal["error", "warning", "hint"]


@frozen
class Subject:
    """
    A rubric as the rules see it, and the *case* that it grades, if there is one.

    A *nested* one is a criterion, of which the score counts and not the verdict. Of a *turned* one, what meets its
    criteria counts against the candidate: it, or one that it is in, is negated or unwanted.
    """

    rubric: Rubric
    case: Case | None = None
    nested: bool = False
    turned: bool = Factory(lambda self: self.rubric.negate, takes_self=True)

    def below(self, criterion: Criterion, rubric: Rubric) -> Subject:
        """Return the *rubric* that is the answer to *criterion*."""
        return Subject(rubric, self.case, nested=True, turned=self.turned ^ criterion.is_unwanted ^ rubric.negate)


@frozen
class Finding:
    """
    What is wrong with the criterion at *index*, or with the whole rubric (None), and its cure.

    *said* is the text that is wrong, if it is not that of the criterion, such as a question; and what is before it.
    """

    index: int | None
    message: str
    cure: str
    said: tuple[str, ...] = ()


_Look = Callable[[Subject], Iterator[Finding]]


@frozen
class Rule:
    """A rule by its *name*, the *level* of its remarks, and what it looks for."""

    name: str
    level: Level
    look: _Look


RULES: dict[str, Rule] = {}
"""The rules by name, in the order in which they are applied."""

Words = Iterator[tuple[str, ...]]
"""A message, a cure, and perhaps the text that is wrong, as those of a `Finding`."""


OF_CASES = frozenset({"reference-fails", "question-missing", "question-passes"})
"""Rules that look at the case, not only at its rubric."""


def _rule(name: str, level: Level) -> Callable[[_Look], _Look]:
    def register(look: _Look) -> _Look:
        RULES[name] = Rule(name, level, look)
        return look

    return register


def _of_each(name: str, level: Level) -> Callable[[Callable[[Subject, Criterion], Words]], object]:
    """Register a rule that looks at each criterion by itself."""

    def register(look: Callable[[Subject, Criterion], Words]) -> object:
        def look_at_each(subject: Subject) -> Iterator[Finding]:
            for index, criterion in enumerate(subject.rubric.judged):
                for message, cure, *said in look(subject, criterion):
                    yield Finding(index, message, cure, tuple(said))

        return _rule(name, level)(look_at_each)

    return register


# -- errors: they follow from how answers are scored -----------------------------------------------------


@_rule("never-fails", "error")
def _never_fails(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    worst = Rules(rubric).result([part_at(rubric, c, best=rubric.negate) for c in rubric.judged])
    if not subject.nested and worst.passed:
        message = "every candidate passes, even at the worst answer to each criterion"
        yield Finding(None, message, "raise the threshold", ("threshold",))


@_rule("never-passes", "error")
def _never_passes(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    best = Rules(rubric).result([part_at(rubric, c, best=not rubric.negate) for c in rubric.judged])
    if not subject.nested and not best.passed:
        message = f"no candidate passes: the best answers to all criteria score {best.score:.3g}, or fail a gate"
        yield Finding(None, message, "lower the threshold, or give the best answers a higher score", ("threshold",))


@_rule("no-effect", "error")
def _no_effect(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    if subject.nested or any(_never_fails(subject)) or any(_never_passes(subject)):
        return
    reach, whole = Reach(rubric), sum(one.weight for one in rubric.judged)
    for index, criterion in enumerate(subject.rubric.judged):
        if criterion.weight and not reach.decides(index):
            share = criterion.weight / whole
            message = f"it can never change the verdict: {share:.0%} of the weight, whatever the other answers are"
            cure = "raise its weight, make it required, or give it a weight of 0 to show it only"
            yield Finding(index, message, cure)


@_of_each("gate-never-fires", "error")
def _gate_never_fires(subject: Subject, criterion: Criterion) -> Words:
    gates = criterion.required or criterion.min_score is not None
    if gates and not part_at(subject.rubric, criterion, best=False).gated:
        yield "it is a gate that no answer fails", "raise its min_score, or drop required"


@_of_each("gate-always-fires", "error")
def _gate_always_fires(subject: Subject, criterion: Criterion) -> Words:
    part = part_at(subject.rubric, criterion, best=True)
    if part.gated:
        message = f"it is a gate that every answer fails: the best contributes {part.contribution:.3g}"
        yield message, "lower its min_score, or give the best answer a higher score"


@_rule("vacuous-pass", "error")
def _vacuous_pass(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    if rubric.judged and all(criterion.when is not None for criterion in rubric.judged):
        message = "every criterion has a condition, and a candidate that meets none of them passes unjudged"
        yield Finding(None, message, "add a criterion that always applies")


@_of_each("evidence-elsewhere", "warning")
def _evidence_elsewhere(subject: Subject, criterion: Criterion) -> Words:
    if subject.rubric.evidence and isinstance(criterion.answer, Rubric) and not criterion.answer.evidence:
        yield "it asks for no evidence: a rubric in a rubric has settings of its own", "write evidence: true in it too"


@_of_each("same-leaves", "error")
def _same_leaves(_: Subject, criterion: Criterion) -> Words:
    for node in criterion.answer.nodes() if isinstance(criterion.answer, DecisionTree) else ():
        scores = {leaf.score for leaf in node.leaves()}
        if len(scores) == 1:
            message = f"the question {shorten(node.question, 60)!r} scores {scores.pop():g} whatever the answer is"
            yield message, "give its branches different scores, or put the leaf in its place", node.question
            break


@_of_each("asked-twice", "error")
def _asked_twice(_: Subject, criterion: Criterion) -> Words:
    if isinstance(criterion.answer, DecisionTree) and (question := _repeated_question(criterion.answer, frozenset())):
        message = f"a walk down the tree asks {shorten(question, 60)!r} twice, and one branch is never reached"
        yield message, "keep the question once on each way down", question


def _repeated_question(node: DecisionTree | Leaf, above: frozenset[str]) -> str:
    if isinstance(node, Leaf):
        return ""
    words = lint_texts.normal(node.question)
    if words in above:
        return node.question
    return _repeated_question(node.yes, above | {words}) or _repeated_question(node.no, above | {words})


@_rule("checks-exclude", "error")
def _checks_exclude(subject: Subject) -> Iterator[Finding]:
    rubric = subject.rubric
    binding = [
        (index, criterion)
        for index, criterion in enumerate(subject.rubric.judged)
        if isinstance(criterion.answer, Check)
        and criterion.when is None
        and (criterion.required or criterion.polarity == "guard" or rubric.strict or rubric.threshold is None)
        and not subject.turned
    ]
    for (_, first), (index, second) in excluding(binding):
        message = f"no text meets both this check and {first.id!r}: {second.answer} against {first.answer}"
        yield Finding(index, message, "drop one of the two, or let one of them be no gate")


@_of_each("anchor-off-scale", "error")
def _anchor_off_scale(_: Subject, criterion: Criterion) -> Words:
    if not isinstance(criterion.answer, YesNo | Levels | Choices):
        return
    allowed = sorted(set(scores_of(criterion)))
    for anchor in criterion.anchors:
        if min(abs(anchor.score - score) for score in allowed) > 1e-6:  # noqa: PLR2004 - as decimals were rounded
            shown, response = ", ".join(f"{score:.3g}" for score in allowed[:6]), shorten(anchor.response, 40)
            message = f"its example {response!r} has the score {anchor.score:g}, which no answer has"
            yield message, f"give the example one of the scores {shown}", anchor.response


def tests_that_are_anchors(rubric: Rubric) -> Iterator[tuple[int, Criterion]]:
    """Yield the place of each test whose reply is an anchor, and the criteria of that."""
    shown: dict[str, dict[str, Criterion]] = {}
    for criterion in rubric.judged:
        for anchor in criterion.anchors:
            shown.setdefault(folded(anchor.response), {})[criterion.id] = criterion
    for index, test in enumerate(rubric.tests):
        yield from ((index, criterion) for criterion in shown.get(folded(test.candidate.output), {}).values())


def folded(text: str) -> str:
    """Return the words of *text*, to compare replies in any letter case."""
    return " ".join(text.split()).casefold()


@_rule("test-is-anchor", "error")
def _test_is_anchor(subject: Subject) -> Iterator[Finding]:
    for number, criterion in tests_that_are_anchors(subject.rubric):
        message = f"tests[{number}] is an anchor, which the judge is shown, so that it passes and shows nothing"
        reply = subject.rubric.tests[number].candidate.output
        where = subject.rubric.judged.index(criterion)
        yield Finding(where, message, "give the test, or the anchor, another reply", ("tests", reply))


# -- warnings: they read the text ------------------------------------------------------------------------


@_of_each("own-scale", "warning")
def _own_scale(_: Subject, criterion: Criterion) -> Words:
    match criterion.answer:
        case YesNo():
            scale, what = None, "it is answered with yes or no"
        case Unit():
            scale, what = (0.0, 1.0), "its score is a number from 0 to 1"
        case Levels(low=low, high=high):
            scale, what = (float(low), float(high)), f"its scale is {low} to {high}"
        case _:
            return
    found = lint_texts.scale_in(criterion.text)
    if found is not None and found != scale:
        first, last = (f"{end:g}" for end in found)
        levels = f"rates(text, ScoreRange({first}, {last})), in a file levels: {first}..{last}"
        cure = levels if all(map(float.is_integer, found)) else "scores(text), in a file answer: unit"
        yield f"the text asks for a score of {first} to {last}, and {what}", f"take the scale out, or use {cure}"


@_of_each("scale-upside-down", "warning")
def _scale_upside_down(subject: Subject, criterion: Criterion) -> Words:
    if subject.turned:  # what is bad may rightly score high
        return
    match criterion.answer:
        case Levels(ranges=ranges) if ranges:
            texts = [band.text for band in ranges]
        case Choices(choices=choices) if criterion.weight:
            texts = [choice.label for choice in sorted(choices, key=lambda choice: choice.score)]
        case _:
            return
    lowest, highest = texts[0], texts[-1]
    if lint_texts.praises(lowest) is True and lint_texts.praises(highest) is False:
        shown = f"{shorten(lowest, 40)!r} counts least and {shorten(highest, 40)!r} most"
        yield f"its scale seems to be upside down: {shown}", "give the best one the highest number"


@_of_each("own-format", "warning")
def _own_format(_: Subject, criterion: Criterion) -> Words:
    found = lint_texts.format_in(criterion.text)
    if found and isinstance(criterion.answer, YesNo | Unit | Levels | Choices):
        said = shorten(found, 40)
        message = f"the text tells the judge how to reply ({said!r}), and the prompt asks for another form"
        yield message, "say only what is judged; the form of the reply is added"


@_of_each("guard-prescribes", "warning")
def _guard_prescribes(subject: Subject, criterion: Criterion) -> Words:
    unwanted = criterion.is_unwanted != subject.turned
    if unwanted and not isinstance(criterion.answer, Check) and lint_texts.prescribes(criterion.text):
        kinds = {"guard": "fails the grade", "penalty": "takes points off"}
        kind = kinds.get(criterion.polarity, "counts against it")
        message = f"it {kind} where its text holds, and the text says what should not be: a good candidate meets it"
        cure = "state the fault itself, as in 'Mentions a price', or expect its absence: 'Mentions no price'"
        yield message, cure


@_rule("duplicate", "warning")
def _duplicate(subject: Subject) -> Iterator[Finding]:
    seen: dict[object, tuple[int, Criterion]] = {}
    for index, criterion in enumerate(subject.rubric.judged):
        answer = criterion.answer
        if isinstance(answer, Unsupported | Decided | Rubric):
            continue
        asked = answer if isinstance(answer, Check) else lint_texts.normal(criterion.text)
        of_fact = criterion.polarity if criterion.polarity in ("contradiction", "correctness") else ""
        key = asked, of_fact, criterion.when, criterion.on
        if (earlier := seen.setdefault(_hashable(key), (index, criterion)))[0] != index:
            turned = earlier[1].is_unwanted != criterion.is_unwanted
            how = "the other way round, so one of the two always counts against the candidate" if turned else "twice"
            message = f"it asks what {earlier[1].id!r} asks, {how}"
            yield Finding(index, message, "keep one of the two, with the weight of both")
    once = [earlier for earlier in seen.values() if isinstance(earlier[1].answer, Check)]
    wanted = [(n, one) for n, one in once if not one.is_unwanted and one.when is None and one.on == "conversation"]
    for (index, _), weaker in implications(wanted):
        names = shorten(", ".join(repr(one.id) for _, one in weaker), 80)
        message = f"an output that meets it always meets {names} too, which so counts twice"
        yield Finding(index, message, f"keep it, and drop {names}")


def _hashable(key: object) -> object:
    try:
        hash(key)
    except TypeError:  # a check with a schema
        return repr(key)
    return key


@_rule("opposites", "warning")
def _opposites(subject: Subject) -> Iterator[Finding]:
    seen: dict[tuple[object, ...], tuple[str, bool]] = {}
    longest: dict[str, tuple[float, str]] = {}
    shortest: dict[str, tuple[float, str]] = {}
    for index, criterion in enumerate(subject.rubric.judged):
        rubric = subject.rubric
        binds = criterion.required or rubric.strict or rubric.threshold is None
        if not binds or criterion.when is not None or criterion.is_unwanted or not isinstance(criterion.answer, YesNo):
            continue
        if length := length_in(criterion.text):
            low = longest.get(length.unit, (0.0, ""))
            high = shortest.get(length.unit, (inf, ""))
            if length.high < low[0] or length.low > high[0]:
                other = (low if length.high < low[0] else high)[1]
                message = f"no output has both this length and that of {other!r}, and both are required"
                yield Finding(index, message, "keep one of the two")
            longest[length.unit] = max(low, (length.low, criterion.id))
            shortest[length.unit] = min(high, (length.high, criterion.id))
            continue
        words, denies = lint_texts.thing_and_side(criterion.text)
        other, denied = seen.setdefault((words, criterion.polarity, criterion.on), (criterion.id, denies))
        if words and denied != denies:
            message = f"it asks for the opposite of {other!r}, and both are required, so that no candidate passes"
            yield Finding(index, message, "keep one of the two")


@_of_each("left-over", "warning")
def _left_over(_: Subject, criterion: Criterion) -> Words:
    if not isinstance(criterion.answer, Check) and (found := lint_texts.left_over_in(criterion.text)):
        message = f"the text has a place that was to be filled in: {shorten(found, 40)!r}"
        yield message, "write what is judged"


@_rule("weight-left-out", "warning")
def _weight_left_out(subject: Subject) -> Iterator[Finding]:
    given = [(index, criterion.weight) for index, criterion in enumerate(subject.rubric.judged)]
    shares = [weight for _, weight in given if 0 < weight < 1]
    ones = [index for index, weight in given if weight == 1]
    halves = all(frexp(share)[0] == 0.5 for share in shares)  # noqa: PLR2004 - 1, 1/2 and 1/4 are ratios as they are
    is_one_left = len(ones) == 1 and 1 < len(shares) == len(given) - 1
    if is_one_left and sum(shares) < 1 + TOLERANCE and not halves:
        left = 1 - sum(shares)
        message = f"the others have shares that sum to {sum(shares):g}, and this one weighs 1, as without a weight"
        yield Finding(
            ones[0], message, f"give it a weight of {left:.3g}" if left > TOLERANCE else "give it a share too"
        )


@_of_each("reference-fails", "warning")
def _reference_fails(subject: Subject, criterion: Criterion) -> Words:
    reference = subject.case.reference if subject.case is not None else ""
    if not reference or not is_of_text(criterion.answer) or criterion.when is not None:
        return
    found = finding_of(criterion.answer, reference)
    if (found.score == 1) == (criterion.is_unwanted != subject.turned):
        why = found.reason or str(criterion.answer)
        message = f"the case's own reference answer fails this check: {shorten(why, 80)}"
        yield message, "mend the check or the reference"


@_rule("question-missing", "warning")
def _question_missing(subject: Subject) -> Iterator[Finding]:
    case = subject.case
    if case is None or subject.nested or case.input or case.messages or case.turns or case.variables:
        return
    for said in without(subject.rubric, "input"):
        yield Finding(None, said, "give the case an `input`")


# -- hints -----------------------------------------------------------------------------------------------


@_rule("question-passes", "hint")
def _question_passes(subject: Subject) -> Iterator[Finding]:
    case = subject.case
    if case is None or not case.input or subject.nested:
        return
    judged = subject.rubric.judged
    checks = [c.answer for c in judged if is_of_text(c.answer) and c.when is None]
    if judged and len(checks) == len(judged):
        scores = [finding_of(check, case.input).score for check in checks]
        parts = [Rules(subject.rubric).part(criterion, score) for criterion, score in zip(judged, scores, strict=True)]
        if Rules(subject.rubric).result(parts).passed:
            yield Finding(None, "an output that only repeats the question passes", "check for what only an answer has")


@_of_each("says-nothing", "hint")
def _says_nothing(subject: Subject, criterion: Criterion) -> Words:
    bare = isinstance(criterion.answer, YesNo | Unit) and not subject.rubric.guidelines and not criterion.anchors
    if bare and lint_texts.says_nothing(criterion.text):
        message = "its words fit every task, so the judge must guess what is meant"
        yield message, "name what a good answer to this task has"


@_of_each("orders-the-judge", "hint")
def _orders_the_judge(_: Subject, criterion: Criterion) -> Words:
    if isinstance(criterion.answer, YesNo) and lint_texts.PATTERNS["order"].match(criterion.text):
        message = "it tells the judge what to do, and a yes counts for the candidate, also where it means a fault"
        yield (
            message,
            "say what a good answer does, as in 'Has every detail', or forbid what a bad one does: 'Has an error'",
        )


@_of_each("code-decides", "hint")
def _code_decides(_: Subject, criterion: Criterion) -> Words:
    if isinstance(criterion.answer, YesNo) and (code := by_code(criterion.text)):
        message = "code decides this without a call and without error; a judge miscounts"
        message += " (in a file, check: {assertion: {type: word-count, value: {max: 100}}})" * (".split()" in code)
        yield message, f"use {code}" + ("" if "(count_" not in code else ", a function of your own that counts them")


@_of_each("ends-unreached", "hint")
def _ends_unreached(_: Subject, criterion: Criterion) -> Words:
    if not criterion.weight or not isinstance(criterion.answer, Choices | DecisionTree):
        return
    scores = scores_of(criterion)
    told = [f"the best answer scores {max(scores):g}"] if max(scores) < 1 else []
    told += [f"the worst answer scores {min(scores):g}"] if min(scores) > 0 else []
    if told:
        yield f"{' and '.join(told)}, so that it never counts in full", "spread the scores from 0 to 1"


@_of_each("guard-states-absence", "hint")
def _guard_states_absence(subject: Subject, criterion: Criterion) -> Words:
    unwanted = criterion.is_unwanted != subject.turned
    if (
        unwanted
        and not isinstance(criterion.answer, Check)
        and lint_texts.PATTERNS["absent"].search(criterion.text.strip())
    ):
        message = "it counts against the candidate where its text holds, and the text says that something is absent"
        yield message, "make sure that the absence is the fault; else expect the text"
