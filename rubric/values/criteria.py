"""Criteria: each is one thing that is judged, with its polarity, weight, gates, condition and examples."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from attrs import NOTHING, Attribute, Factory, evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.internals import fields
from rubric.internals.fields import Shown, refuse
from rubric.internals.frozen_map import FrozenMap, scalar
from rubric.internals.guided import guided_class
from rubric.internals.text import shorten
from rubric.values.answers import Answer, Bands, Choices, JudgeAnswer, Levels, Menu, ScoreRange, YesNo, as_answer
from rubric.values.checks import (
    Check,
    Decided,
    Holds,
    Script,
    Similar,
    Unsupported,
    Within,
    as_check,
    is_matcher,
    launcher_of,
)
from rubric.values.matching import matches, matches_name, pattern

if TYPE_CHECKING:
    import re as regex

    from rubric.values.candidates import Candidate
    from rubric.values.closed_unions import AnyAnswer
    from rubric.values.run_rules import Matcher
    from rubric.values.trees import DecisionTree
else:  # cattrs resolves the name; the union is complete only after this module, since a rubric is an answer too
    AnyAnswer = Answer


Polarity = Literal["satisfy", "guard", "contradiction", "correctness", "penalty"]
Abstention = Literal["forbid", "exclude", "zero", "fail"]
POLARITIES, ABSTENTIONS, UNWANTED = get_args(Polarity), get_args(Abstention), ("guard", "penalty")


def _anchor_score(anchor: Anchor, attribute: Attribute[Any], value: object) -> None:
    if not isinstance(value, bool):
        fields.number(0, 1)(anchor, attribute, value)


@guided_class
@frozen(repr=False)
class Anchor(Shown):
    """
    A labelled example: a *response*, and the *score* in 0..1 that a person would give it.

    For a guard and a penalty the score is True or False: whether what must not hold is there. For levels write a score
    as a float: `1.0` is the best one, since `1` could be a level. Anchors calibrate the judge; one whose response is
    the graded text itself is left out of the prompt.
    """

    response: str = field(validator=fields.text)
    score: float | bool = field(validator=_anchor_score)
    reason: str = field(default="", kw_only=True, validator=fields.string)


@guided_class
@frozen(repr=False)
class When(Shown):
    """
    The condition under which a criterion applies: exactly one of these, decided by code.

    It sees the whole candidate also where `on` makes another text of that; of turns and segments it sees each.

    Args:
        contains: A text that must occur in the candidate's output (case matters).
        regex: A pattern (RE2 syntax) that must be found in it.
        tool_called: A tool that the candidate's run must have called; a name as in `Calls`.
        holds: A function from the `Candidate` to a bool. It cannot be written to a file.
        negated: Whether the criterion applies where that is not so; `~When(...)` is short for it.
    """

    contains: str | None = field(default=None, kw_only=True, validator=fields.optional(fields.text))
    regex: str | None = field(default=None, kw_only=True, validator=fields.optional(pattern))
    tool_called: str | None = field(default=None, kw_only=True, validator=fields.optional(fields.text))
    holds: Callable[[Candidate], bool] | None = field(default=None, kw_only=True)
    negated: bool = field(default=False, kw_only=True, validator=fields.flag)

    def __invert__(self) -> When:
        return evolve(self, negated=not self.negated)

    def __attrs_post_init__(self) -> None:
        given = [name for name in ("contains", "regex", "tool_called", "holds") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "nothing"
            raise DefinitionError("when", f"expected one of contains, regex, tool_called, holds; got {found}")
        if self.holds is not None and (not callable(self.holds) or isinstance(self.holds, type)):
            raise refuse("when", self.holds, "a function from a candidate to a bool")

    def holds_for(self, candidate: Candidate) -> bool:
        """
        True if the condition holds for *candidate*.

        Raises:
            TypeError: A function of the user's is async, or returned no bool.
            Exception: Any that the function raised.
        """
        return self._is_so(candidate) != self.negated

    def _is_so(self, candidate: Candidate) -> bool:
        if self.contains is not None:
            return self.contains in candidate.output
        if self.regex is not None:
            return matches(self.regex, candidate.output)
        if self.tool_called is not None:
            return any(matches_name(self.tool_called, call.name) for call in candidate.tool_calls)
        assert self.holds is not None  # noqa: S101 - a condition is one of the four
        said, name = self.holds(candidate), getattr(self.holds, "__name__", self.holds)
        if isawaitable(said):
            getattr(said, "close", bool)()  # or Python would warn that it was never awaited
            raise TypeError(f"the condition {name!r} is async; give one that returns a bool")
        if not isinstance(answer := scalar(said), bool):
            raise TypeError(f"the condition {name!r} returned {shorten(repr(said), 60)}; return True or False")
        return answer


def slug(text: str, limit: int = 48) -> str:
    """Return an id made of the words of *text*; the same text always gives the same id."""
    words = re.sub(r"[^\w]+", "-", unicodedata.normalize("NFC", text).lower()).strip("-_")
    if words and len(words) <= limit:
        return words
    from hashlib import sha256  # noqa: PLC0415 - for long texts alone

    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    head = words[: limit - 11].rsplit("-", 1)[0] if words else "criterion"
    return f"{head}-{digest}"


_METRICS = frozenset({  # those of one word in the table of guesses, which is loaded for errors alone
    "bias", "coherence", "conciseness", "correctness", "exact", "factuality", "faithfulness", "fluency", "geval",
    "match", "groundedness", "hallucination", "hallucinations", "harmfulness", "includes", "levenshtein", "relevance",
    "relevancy", "summarization", "toxicity",
})  # fmt: skip


def names_a_metric(text: str) -> bool:
    """True if *text* is a name such as `answer_relevancy` or `AnswerRelevancyMetric`, and asks nothing."""
    name = "(?i:[a-z]+(_[a-z]+)+)|(?=[A-Za-z]+$).*([a-z][A-Z]|[A-Z]{2}[a-z]{2}).*"
    return text.lower() in _METRICS or re.fullmatch(name, text) is not None


def refuse_metric(field: str, text: str, otherwise: str) -> None:
    """Refuse *text* if it names a metric, with what is asked by it; *otherwise* is the code that asks by the name."""
    if names_a_metric(text):
        from rubric.internals.guesses import metric_cure  # noqa: PLC0415 - needed for errors alone

        cures = f"write {metric_cure(text)}; or, to ask by this name, {otherwise}"
        raise DefinitionError(field, f"{text!r} is a name, and asks nothing; {cures}")


def _as_id(value: str) -> str:
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def _as_when(value: When | Callable[[Candidate], bool] | Mapping[str, Any] | None) -> When | None:
    if value is None or isinstance(value, When):
        return value
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return When(**value)
    if not callable(value):
        raise refuse("when", value, "When(contains=...), When(regex=...), When(tool_called=...) or a function")
    return When(holds=value)


def _as_anchors(value: Iterable[Anchor | Mapping[str, Any]]) -> tuple[Anchor, ...]:
    if isinstance(value, list | tuple):
        value = [Anchor(**item) if isinstance(item, Mapping) else item for item in value]
    return fields.as_tuple("anchors", cast("Iterable[Anchor]", value), Anchor, "Anchor")


OfSegments = Literal["any segment", "all segments", "worst segment", "latest segment", "each segment"]
On = Literal["conversation", "each turn", "worst turn", "last turn", "tools"] | OfSegments
_ON = (*get_args(get_args(On)[0]), *get_args(OfSegments))
View = Callable[["Candidate"], "Candidate"]
SUB_AGENT = "sub-agent "
"""Begins the `on` of a criterion that is asked of the run of a sub-agent."""


def _is_turn(_: Any, attribute: Attribute[Any], value: object) -> None:
    if isinstance(value, str) and value.removeprefix(SUB_AGENT) in ("", value):
        turn = r"(first|all|every|any|final|(?:turn )?(\d{1,3})) ?(?:turns?)?|\w+ (?:turns|messages|replies)"
        if value not in _ON and (said := re.fullmatch(turn, value)):  # of which the nearest name means something else
            known: dict[str, object] = {"first": 1, "final": "last turn", "all": "each turn", "every": "each turn"}
            meant = int(said[2]) if said[2] else known.get(said[1])
            cure = f"did you mean {meant!r}?" if meant else f"allowed: {', '.join(_ON)}, and the number of a turn"
            raise DefinitionError(attribute.name, f"unknown value {value!r}; {cure}")
        fields.one_of(*_ON, f"{SUB_AGENT}NAME")(_, attribute, value)
    elif isinstance(value, str) or is_matcher(value):
        return
    elif not callable(value) or isinstance(value, type):
        fields.check_count(attribute.name, value)


PlainAnswer = str | type | range | tuple[int, int] | ScoreRange | Mapping[Any, Any] | Sequence[Any]
"""What may be given for an answer: `"unit"`, `bool`, `range(1, 6)`, `(1, 5)`, and the levels or choices themselves."""


_YES_NO = YesNo()
"""One for all criteria, so that what depends on the answer is looked up by its identity."""


def _as_answer(value: Answer | PlainAnswer) -> AnyAnswer:
    if value is _YES_NO:
        return cast("AnyAnswer", value)
    allowed = "YesNo(), Unit(), Levels(...), Choices(...), a DecisionTree, a check or a Rubric"
    value = value if isinstance(value, Answer) else cast("Answer", as_answer(value))
    if not isinstance(value, Answer):
        problem = refuse("answer", value, allowed)
        cure = "; whole numbers are ScoreRange(1, 5)" if isinstance(value, str | type) else ""
        raise DefinitionError("answer", problem.message + cure)
    if type(value).__module__.startswith("rubric."):
        return cast("AnyAnswer", value)
    ours = next(kind.__name__ for kind in type(value).__mro__ if kind.__module__.startswith("rubric."))
    if ours == "Rubric":  # subclasses of it are asked for alike
        return cast("AnyAnswer", value)
    cures = {"Answer": f"give {allowed}", "Check": "give Holds(function): the function may do the same"}
    what = f"{type(value).__name__} is a class of your own, which no prompt, no reader of replies and no file knows"
    raise DefinitionError("answer", f"{what}; {cures.get(ours, f'give {ours}(...) itself')}")


def abstention(_: Any, attribute: Attribute[Any], value: object) -> None:
    """Refuse all but the names of the policies, and numbers from 0 to 1 (partial credit)."""
    if isinstance(value, str):
        fields.one_of(*ABSTENTIONS)(_, attribute, value)
    else:
        fields.number(0, 1)(_, attribute, value)


def only_answer(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return *given*, fields of a criterion, with its only answer under `answer`; two answers are refused."""
    rest = {name: value for name, value in given.items() if name not in _ANSWERS}
    names = [name for name in _ANSWERS if given.get(name) is not None]
    if len(names) > 1:
        raise DefinitionError(
            names[1], f"a criterion has one answer, and {names[0]} gives it already; keep one of them"
        )
    if names:
        value = given[names[0]]
        try:
            rest["answer"] = _ANSWERS[names[0]](value)
        except DefinitionError as problem:
            raise DefinitionError(names[0], problem.message) from None
    return rest


def _as_tree(value: object) -> Any:
    from rubric.values.trees import DecisionTree  # noqa: PLC0415 - an answer too

    if not isinstance(value, DecisionTree):
        raise refuse("tree", value, "a DecisionTree: ask('...').yes(...).no(...)")
    return value


_ANSWERS: dict[str, Callable[[Any], Any]] = {
    "answer": lambda value: value,
    "levels": lambda value: value if isinstance(value, Levels) else Levels(value),
    "choices": lambda value: value if isinstance(value, Choices) else Choices(value),
    "check": as_check,
    "tree": _as_tree,
}
"""How the answer of a criterion may be given: as itself, or under the key that it has in files."""

ANSWER_KEYS = frozenset(_ANSWERS)

_ASKED = frozenset(get_args(JudgeAnswer))
"""The types of answers that a judge gives."""


@guided_class
@frozen(repr=False, init=False)
class Criterion(Shown):
    """
    One thing that is judged: a *text*, and the type of the answer.

    Args:
        text: The statement to judge. For a guard and a penalty, one that should not hold.
        id: Unique in its rubric; by default made of the words of the text.
        answer: `YesNo()`, `Unit()`, `Levels(...)`, `Choices(...)`; or a `DecisionTree` that is walked, a check that
            code decides, a `Rubric` that is graded as one criterion of this one. Plain forms: `"unit"`,
            `ScoreRange(0, 10)`, `range(1, 6)`, a mapping as for *levels* or *choices*.
        levels: In place of *answer*, as in files: `(1, 5)`, `{0: "no", 5: "in part", 10: "yes"}`; see `Levels`.
        choices: In place of *answer*: `{"cold": 0, "warm": 1}`; see `Choices`.
        check: In place of *answer*: a check, a short text that must occur, or a function from the `Candidate` to a
            bool or a score. The text may be left out.
        tree: In place of *answer*: a `DecisionTree`.
        polarity: `satisfy`; `guard` (the text must not hold: the contribution is 1 - score, and found
            present it fails the grade); `penalty` (the text should not hold: found present it takes off its weight
            and fails nothing; beside other criteria it needs a rubric by points); `contradiction` (the text is a
            fact: passes unless the candidate conflicts with it, silence is fine); `correctness` (the candidate must
            positively support the fact).
        weight: Its share in the mean: finite and at least 0. With 0 it is judged and shown, and only its gate counts.
        required: A gate: below its gate value the grade fails, whatever the mean is.
        min_score: This criterion's own gate value in (0, 1]; given, it gates with or without *required*.
            Without it the rubric's threshold is the gate value. A guard that is answered with yes or no has none.
        when: The condition under which it applies; where it does not hold: no call, no score, no gate.
        anchors: Labelled examples, for calibration. They, *evidence* and *abstain* are for a judge that is asked the
            text: a check, a tree and a nested rubric take none.
        evidence: Whether the judge must quote the candidate; None leaves that to the rubric.
        abstain: How "cannot tell" counts: `forbid` (no such answer), `exclude` (out of the mean, no gate),
            `zero` (a contribution of 0), `fail` (that, and the grade fails), or a partial credit in 0..1;
            None leaves it to the rubric.
        on: What of a conversation it is asked of: `conversation` (the output, with all before it), `each turn` (every
            answer of the assistant; the mean counts), `worst turn` (likewise; the worst counts), `last turn`, the
            number of a turn from 1, `tools` (the tool calls of the run, with arguments and results),
            `sub-agent researcher` (the run of that sub-agent), or the steps that a matcher means, as in
            `on=call("refund_*")`. A judge of one turn sees what came before it and nothing later, and of a long run
            the beginning and the last steps; a judge of calls or of steps does not see the output.
            Quotes count if they are in what is judged. Of a run that is longer than `Judge.segment_tokens`, its
            segments: `any segment` (the highest score of all counts: once is enough), `all segments` (the lowest: it
            must always hold), `worst segment`, `latest segment`, or `each segment` (the mean). Or a function from the
            `Candidate` to the one that it is asked of, such as a part of it, which cannot be written to a file.
        tags: Free labels.
        metadata: Free data of the caller's; the judge never sees it.

    Raises:
        DefinitionError: A value that no criterion can have; the message names the field and the cure.
    """

    text: str = field(validator=fields.text)
    id: str = field(
        default=Factory(lambda self: slug(str(self.text)), takes_self=True),
        kw_only=True,
        converter=_as_id,
        validator=fields.identifier,
    )
    answer: AnyAnswer = field(default=_YES_NO, kw_only=True, converter=_as_answer)
    polarity: Polarity = field(default="satisfy", kw_only=True, validator=fields.one_of(*POLARITIES))
    weight: float = field(default=1, kw_only=True, validator=fields.number(0))
    required: bool = field(default=False, kw_only=True, validator=fields.flag)
    min_score: float | None = field(
        default=None, kw_only=True, validator=fields.optional(fields.number(0, 1, above=True))
    )
    when: When | None = field(default=None, kw_only=True, converter=_as_when)
    anchors: tuple[Anchor, ...] = field(default=(), kw_only=True, converter=_as_anchors)
    evidence: bool | None = field(default=None, kw_only=True, validator=fields.optional(fields.flag))
    abstain: Abstention | float | None = field(default=None, kw_only=True, validator=fields.optional(abstention))
    on: On | str | int | View | Matcher = field(default="conversation", kw_only=True, validator=_is_turn)
    tags: tuple[str, ...] = field(default=(), kw_only=True, converter=fields.listed, validator=fields.texts)
    metadata: FrozenMap = field(default=FrozenMap(), kw_only=True, converter=fields.frozen, validator=fields.mapping)

    def __init__(
        self,
        text: str | None = None,
        *,
        id: str | None = None,
        answer: Answer | PlainAnswer | None = None,
        levels: Levels | Bands | None = None,
        choices: Choices | Menu | None = None,
        check: Check | str | regex.Pattern[str] | Callable[[Candidate], Any] | None = None,
        tree: DecisionTree | None = None,
        polarity: Polarity = "satisfy",
        weight: float = 1,
        required: bool = False,
        min_score: float | None = None,
        when: When | Callable[[Candidate], bool] | Mapping[str, Any] | None = None,
        anchors: Iterable[Anchor | Mapping[str, Any]] = (),
        evidence: bool | None = None,
        abstain: Abstention | float | None = None,
        on: On | str | int | View | Matcher = "conversation",
        tags: Iterable[str] = (),
        metadata: Mapping[str, Any] = FrozenMap(),
    ) -> None:
        # In one mapping where there is more than one: this runs for each criterion of each rubric that is built.
        if levels is not None or choices is not None or check is not None or tree is not None:
            given = {"answer": answer, "levels": levels, "choices": choices, "check": check, "tree": tree}
            answer = only_answer(given)["answer"]
        if text is None:
            if not isinstance(answer, Check):
                raise DefinitionError("text", "a criterion has a text that is judged; write Criterion('Is polite')")
            text = str(answer)
        self.__attrs_init__(  # pyright: ignore[reportAttributeAccessIssue] - attrs makes it
            text,
            id=cast("str", NOTHING) if id is None else id,
            answer=_YES_NO if answer is None else answer,
            polarity=polarity,
            weight=weight,
            required=required,
            min_score=min_score,
            when=when,
            anchors=anchors,
            evidence=evidence,
            abstain=abstain,
            on=on,
            tags=tags,
            metadata=metadata,
        )

    def __attrs_post_init__(self) -> None:
        if self.polarity == "penalty":  # fields that would make it a gate could only be ignored
            gates = {
                "required": self.required,
                "min_score": self.min_score is not None,
                "answer": getattr(self.answer, "flag", False) or getattr(self.answer, "binding", False),
            }
            for name in filter(gates.get, gates):
                message = f"a penalty subtracts and fails nothing, so {name}={getattr(self, name)!r} has no effect"
                raise DefinitionError(name, f"{message}; to forbid it use forbids(text)")
        if not isinstance(self.answer, JudgeAnswer):
            self._refuse_for_judges()
            if self.on in get_args(OfSegments) and (isinstance(self.answer, Check) or hasattr(self.answer, "criteria")):
                whole = (
                    "a check reads all of a run" if isinstance(self.answer, Check) else "ask its criteria of segments"
                )
                raise DefinitionError("on", f"{self.on!r} is for what a judge is asked: {whole}; leave it out")
        if isinstance(self.answer, Choices) and not self.answer.is_scored and (self.weight or self._gates):
            self.answer.check_scores()
        if type(self.min_score) is int and isinstance(self.answer, Levels) and self.answer.low < 1 < self.answer.high:
            said = f"1 could be a level of {self.answer.low} to {self.answer.high}, or the best score of 0..1"
            raise DefinitionError("min_score", f"{said}; for the level give {self.answer.place(1):g}, for the best 1.0")
        if self.anchors:
            self._check_anchors()
        if self.polarity == "guard" and self.min_score is not None:
            # The function or program of a scored check may give a score; any other check says yes or no.
            scored = isinstance(self.answer, Holds | Script | Unsupported | Decided | Within | Similar)
            if isinstance(self.answer, YesNo | Check) and not scored:
                message = (
                    "a yes/no guard is found or it is not, and found it fails the grade; take the min_score out, or "
                    'have it scored: Criterion(text, answer=Unit(), polarity="guard", min_score=...)'
                )
                raise DefinitionError("min_score", message)

    @property
    def _gates(self) -> bool:
        return self.required or self.min_score is not None or self.polarity == "guard"

    def _check_anchors(self) -> None:
        """Refuse an anchor whose number could mean two things: a level, or how good a response with a fault is."""
        for index, anchor in enumerate(self.anchors):
            where, start = f"anchors[{index}].score", f"Anchor({shorten(anchor.response, 30)!r}, "
            if self.is_unwanted and not isinstance(anchor.score, bool):
                message = f"{anchor.score:g} could say how good the response is, or that what must not hold is there"
                cure = f"write {start}True) if it is there, {start}False) if it is not"
                raise DefinitionError(where, f"{message}; {cure}")
            if not isinstance(self.answer, Levels) or type(anchor.score) is not int or self.answer.low == 0:
                continue
            low, high = self.answer.low, self.answer.high
            if low <= anchor.score <= high:
                message = f"{anchor.score} could be a level of {low} to {high}, or the best score of 0..1"
                level = float(round((anchor.score - low) / (high - low), 6))
                raise DefinitionError(
                    where, f"{message}; write {start}{level}) for the level, {start}1.0) for the best"
                )

    @property
    def is_unwanted(self) -> bool:
        """True if the text counts against the candidate: of a guard and a penalty."""
        return self.polarity in UNWANTED

    @property
    def programs(self) -> tuple[str, ...]:
        """The names of the programs that it starts by itself, where they are allowed; not those of a nested rubric."""
        if type(self.answer) in _ASKED and self.on == "conversation":  # as of most criteria
            return ()
        started = [launcher for given in (self.on, self.answer) if (launcher := launcher_of(given)) is not None]
        return tuple([name for launcher in started for name in launcher.scripts])

    def applies_to(self, candidate: Candidate) -> bool:
        """True if its condition holds for *candidate*, or it has none; a function of the user's may raise anything."""
        return self.when is None or self.when.holds_for(candidate)

    def _refuse_for_judges(self) -> None:
        """Refuse fields for the judge of this text, where none is asked: a check, a tree or a rubric decides."""
        kind = type(self.answer).__name__
        for name in ("anchors", "evidence", "abstain"):
            if getattr(self, name) not in ((), None):
                message = f"it would do nothing here: no judge is asked this text, {kind} decides; take it out"
                raise DefinitionError(name, message)
        if self.polarity in ("contradiction", "correctness"):
            message = f"{self.polarity!r} tells a judge how to read the text, and here {kind} decides"
            raise DefinitionError("polarity", f"{message}; 'satisfy' or 'guard'")
