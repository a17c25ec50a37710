"""
The result of grading: a `Grade`, complete by construction, or an `Ungraded` that says what is missing.

Both keep the findings that they rest on, so both can be recomputed under another rule without a call.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, assert_never, cast

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.internals.containers import Listed, NoTruth
from rubric.internals.fields import as_map, check_fields
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.guided import guided_methods
from rubric.internals.notebooks import as_html, draw
from rubric.internals.text import counted, shorten
from rubric.scoring.outcomes import TOLERANCE, Extreme, Outcome, Verdict, outcome, skipped_weight, unknown
from rubric.scoring.votes import Pooling, pool, tally
from rubric.values.candidates import UNANSWERED, Candidate
from rubric.values.criteria import Criterion
from rubric.values.digest import labelled_place
from rubric.values.findings import Finding, NotApplicable, Scored, Step, Unjudged
from rubric.values.judges import AnyJudge, Cascade, Judge, Jury, Panel
from rubric.values.requests import Exchange, Failure, Usage
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree

if TYPE_CHECKING:
    from rubric.results.rubric_diff import RubricChange


def _word(how: str, result: Result) -> str:
    """Return *result* as the function *how* of `rubric.results.result_text` words it."""
    from rubric.results import result_text  # noqa: PLC0415 - a result that nobody looks at needs no words

    return str(getattr(result_text, how)(result))


class _Said(str):
    """A verdict that warns where it is compared with a word that no verdict is: `grade.verdict == "failed"`."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and other not in ("pass", "borderline", "fail", "ungraded"):
            from rubric.internals.guesses import table  # noqa: PLC0415 - needed for wrong words alone

            if meant := table()["quantities"]["verdict"].get(other.lower()):
                warnings.warn(f"no verdict is {other!r}; write verdict == {meant!r}", stacklevel=2)
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def goes_on(rule: Cascade, first: Grade | Ungraded) -> bool:
    """True if *rule* asks its second judge after the *first* result: an ungraded one always leaves a doubt."""
    when = rule.when
    if not isinstance(when, str | tuple):
        return bool(when(first))
    score = first.outcome.score
    if score is None:
        return True
    if isinstance(when, tuple):
        low, high = when
        return low - TOLERANCE <= score <= high + TOLERANCE
    match when:
        case "fails":
            return not first.passed
        case "borderline":
            return first.outcome.verdict == "borderline"
        case "disagrees":
            return len({vote.outcome.verdict for vote in first.votes}) > 1
        case "ungraded":  # here the first has a score
            return False
        case never:
            assert_never(never)  # pyright: ignore[reportArgumentType] - it takes the alias for any text


JudgeOf = Judge | Jury | Panel | Cascade | str
"""The judge of a result that is read: itself, or a model name."""


@guided_methods
@frozen(repr=False)
class Result(NoTruth, Listed[Finding]):
    """
    The common part of `Grade` and `Ungraded`.

    Its findings are iterated, counted, and taken by the criterion's id, by place or by slice: `grade["cites"]`,
    `grade[0]`. It is neither true nor false: `.passed` is.

    Args:
        rubric: The rubric that was graded against.
        judge: The judge, jury, panel or cascade.
        findings: One for each criterion, in the rubric's order.
        outcome: Their score, bounds and verdict.
        usage: The requests, tokens and money used, unreadable replies and failed attempts included.
        votes: The results of the members of a jury, a panel or a cascade.
        failures: Why requests gave no verdict, in order, also where asking again did; not what a retry mended.
        warnings: Remarks for people: invisible characters, parameters that were not sent, a pass that contradicts its
            score.
        degenerate: Why the candidate was answered without a call; empty if it was not.
        models: The models that answered, as their vendors report them, each once and sorted; empty where none was
            reported. A vendor may report a dated snapshot, or answer with another model than the judge names.
        index: The place of the candidate among those of `grade_many`, from 0; None for one that was graded alone.
        key: The candidate's, see `Candidate`; empty if it has none.
        group: The candidate's.
        variables: The candidate's, by which `Grades.by` groups; those of a line that was read.
        tags: The labels of its case, in a suite.
        candidate: What was graded; None where that is not kept.
        exchanges: The transcript: every request with its messages, raw reply and usage, in the order of the replies;
            empty unless it was kept (`keep=True`, or a store).
        calibrated: `Calibrated` values by criterion, the whole as `""`; empty where nothing was calibrated.
    """

    _kind = "finding"
    _items = "findings"

    rubric: Rubric
    judge: AnyJudge
    findings: tuple[Finding, ...]
    outcome: Outcome
    usage: Usage = Usage()
    votes: tuple[Grade | Ungraded, ...] = ()
    failures: tuple[Failure, ...] = ()
    warnings: tuple[str, ...] = ()
    degenerate: str = ""
    models: tuple[str, ...] = field(default=(), eq=False, kw_only=True)
    index: int | None = field(default=None, eq=False, kw_only=True)
    key: str = field(default="", eq=False, kw_only=True)
    group: str = field(default="", eq=False, kw_only=True)
    variables: FrozenMap = field(default=FrozenMap(), eq=False, kw_only=True)
    tags: tuple[str, ...] = field(default=(), eq=False, kw_only=True)
    candidate: Candidate | None = field(default=None, eq=False, kw_only=True)
    exchanges: tuple[Exchange, ...] = field(default=(), eq=False, kw_only=True)
    calibrated: FrozenMap = field(default=FrozenMap(), eq=False, kw_only=True)

    def __lt__(self, *_: object) -> NoReturn:
        raise TypeError(f"{type(self).__name__} is no number; compare its .score")

    __le__ = __gt__ = __ge__ = __add__ = __radd__ = __float__ = __round__ = __lt__

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest score that the findings allow; the same number twice for a `Grade`."""
        return self.outcome.bounds

    @property
    def coverage(self) -> float:
        """The share of the weight, in 0..1, that was judged; graders that the caller skipped were not."""
        return self.outcome.coverage * (1 - skipped_weight(self.rubric))

    @property
    def gates(self) -> tuple[str, ...]:
        """The ids of the criteria that fail the grade, whatever the mean or the missing verdicts are."""
        return self.outcome.gates

    @property
    def cluster(self) -> Hashable:
        """What it shares with those that belong together: its group, else its key; None if it has neither."""
        return ("group", self.group) if self.group else ("key", self.key) if self.key else None

    @property
    def chosen_by(self) -> tuple[str, ...]:
        """The labels that chose its rubric or its judge: their digest, and 8 digits of its own where it is labelled."""
        labels = self.rubric.provenance.get("labels", ())
        of_judge = getattr(getattr(self.judge, "when", None), "labels", "")
        marks = [*(labels if isinstance(labels, tuple) else ()), of_judge]
        if not any(marks):
            return ()
        own = {labelled_place(self.key, id_) for id_ in ("", *(finding.id for finding in self.findings))}
        parts = (mark.split(":") for mark in marks if isinstance(mark, str) and mark)
        return tuple(":".join([digest, *sorted(own.intersection(places))]) for digest, *places in parts)

    @property
    def contributions(self) -> FrozenMap:
        """The contribution of each resolved criterion, by id: its place in 0..1, with 1 as good."""
        return self.outcome.contributions

    @property
    def path(self) -> tuple[Step, ...]:
        """The walk, where the rubric is one tree."""
        only = self.findings[0] if self.rubric.tree is not None and self.findings else None
        return only.path if isinstance(only, Scored | Unjudged) else ()

    def rescore(
        self, rubric: Rubric | None = None, *, judge: Jury | Panel | Cascade | None = None, **rule: Any
    ) -> Grade | Ungraded:
        """
        Return the findings under another rule: no calls; usage is what they cost.

        Args:
            rubric: A rubric that asks the judge the same, such as one with other weights: what `diff` finds is for the
                score or for people.
            judge: Another way to combine the same votes; its members that are juries or panels combine theirs. Only a
                cascade replaces a cascade; if its second judge was not asked, but would be under the new rule, the
                result is ungraded.
            rule: Fields of the rubric to change: `threshold`, `aggregation`, `strict`, `abstain`, ...; and `weights`,
                the new weights by the ids of their criteria: `rescore(weights={"clarity": 2})`.

        Raises:
            DefinitionError: A judge would be asked something else (`diff` says what), or the votes do not fit.
        """
        same: dict[str, Any] = {
            name: getattr(self, name)
            for name in ("index", "key", "group", "variables", "tags", "candidate", "exchanges", "models")
        }
        return evolve(self._rescore(rubric, judge, rule), **same)

    def _rescore(
        self, rubric: Rubric | None, judge: Jury | Panel | Cascade | None, rule: Mapping[str, Any]
    ) -> Grade | Ungraded:
        from rubric.results.rubric_diff import changes_between  # noqa: PLC0415 - few results are scored again

        changed = _under(self.rubric if rubric is None else rubric, rule)
        if anew := [c for c in changes_between(self.rubric, changed) if c.affects == "judge" and c.id != "degenerate"]:
            raise DefinitionError("rubric", _asks_anew(anew))
        if isinstance(self.judge, Judge) and judge is not None:
            raise DefinitionError("judge", "one judge gave these findings; there are no votes to combine")
        if self.degenerate and changed.degenerate == "judge":
            raise DefinitionError("rubric", f"no judge was asked, and degenerate='judge' asks one; {_AGAIN}")
        if self.degenerate:
            return degenerate(changed, judge or self.judge, self.degenerate)
        if isinstance(self.judge, Judge):
            usage, failures, warnings = self.usage, self.failures, self.warnings
            walked = [*map(_walk_again, changed.judged, self.findings)]
            return conclude(changed, self.judge, walked, usage=usage, failures=failures, warnings=warnings)
        by = self.judge if judge is None else judge
        if isinstance(by, Cascade) != isinstance(self.judge, Cascade):
            raise DefinitionError("judge", "the results of a cascade are not the votes of a jury or a panel")
        if (given := len(by.members)) != (wanted := len(self.judge.members)):
            raise DefinitionError("judge", f"expected {wanted} votes, got a rule for {given}")
        rules: list[Any] = [None if judge is None or isinstance(each, Judge) else each for each in by.members]
        pairs = zip(self.votes, rules, strict=False)  # an early stop leaves out the last votes
        votes = [vote.rescore(rubric, judge=each, **rule) for vote, each in pairs]
        again = conclude_votes(changed, by, votes)
        usage, warnings = self.usage, self.warnings
        if isinstance(by, Cascade) and isinstance(self.judge, Cascade) and len(votes) == 1:
            was_enough = not goes_on(self.judge, self.votes[0])
            if was_enough and goes_on(by, votes[0]):
                why = Failure("not_cast", "the second judge of the cascade was not asked, and this rule needs it")
                findings, failures = _uncast(again.findings, why), (*again.failures, why)
                return Ungraded(changed, by, findings, unknown(changed), usage, again.votes, failures, warnings)
        return evolve(again, usage=usage, warnings=warnings)

    def explain(self) -> str:
        """Return a line a criterion: a mark, the text, the reason; of what is ungraded, why, and what it could be."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain JSON-able data; `from_dict` reads it."""
        from rubric.results.plain_data import Record  # noqa: PLC0415 - most results are not written

        return Record.of(self).to_dict()

    @staticmethod
    def from_dict(
        data: Mapping[str, Any], rubric: Rubric | Iterable[Rubric], judge: JudgeOf | None = None
    ) -> Grade | Ungraded:
        """
        Return the result in *data*, which `to_dict` made: equal to the one that it was made of.

        The data names the rubric and the judge by their digests, and does not hold them.

        Args:
            data: What `to_dict` returned.
            rubric: The rubric, or several of which one is it.
            judge: The judge; None for the one that is recorded, as `Grades.read_jsonl` has it.

        Raises:
            DefinitionError: The rubric or the judge is another, or *data* is not a result.
        """
        from rubric.results.restoring import restore  # noqa: PLC0415 - it needs this module

        return restore(data, rubric, judge)

    def to_markdown(self) -> str:
        """Return the result as Markdown: a table of the criteria, the votes, the walk down a tree."""
        return _word("as_table", self)

    _repr_markdown_ = to_markdown
    _repr_html_ = as_html

    def plot(self) -> Any:
        """Return the score of each criterion, and the range of its votes, as a chart of Altair (extra `plots`)."""
        return draw("chart_of_one", self)

    def __str__(self) -> str:
        return _word("as_text", self)


@guided_methods
@frozen(repr=False)
class Grade(Result):
    """A whole result: a score in 0..1, a verdict, and a finding for each criterion."""

    @property
    def score(self) -> float:
        """The score, in 0..1."""
        assert self.outcome.score is not None  # noqa: S101 - a Grade is only made of a whole outcome
        return self.outcome.score

    @property
    def passed(self) -> bool:
        """Whether the candidate passes."""
        return self.outcome.worst.passed

    @property
    def verdict(self) -> Verdict:
        """`pass`, `borderline` or `fail`."""
        assert self.outcome.verdict is not None  # noqa: S101 - as above
        return cast("Verdict", _Said(self.outcome.verdict))

    @property
    def vacuous(self) -> bool:
        """Whether no criterion applied."""
        return self.outcome.vacuous

    @property
    def shown(self) -> str:
        """The score on the rubric's scale, for people."""
        return self.rubric.scale.show(self.score, passed=self.passed)

    def explain(self) -> str:
        """Return a line a criterion: a mark, the text, the reason."""
        return _word("explanation_of_grade", self)

    def feedback(self) -> str:
        """Return advice for the candidate's author; empty if every contribution is 1."""
        return _word("advice", self)

    def __repr__(self) -> str:
        return f"<Grade {self.score:.3f} {self.verdict}: {counted(len(self.findings), 'criterion')}, {self.usage}>"


@guided_methods
@frozen(repr=False)
class Ungraded(Result):
    """An incomplete result: something could not be judged. `failures` say why, `bounds` what the score could be."""

    @classmethod
    def of(cls, rubric: Rubric, judge: AnyJudge, failure: Failure, **more: Any) -> Ungraded:
        """Return a result without any judged criterion, because of *failure*; *more* are fields of it."""
        missing = tuple(Unjudged(criterion.id, failure) for criterion in rubric.judged)
        return cls(rubric, judge, missing, unknown(rubric), failure.usage, failures=(failure,), **more)

    @property
    def score(self) -> None:
        """None: there is no score, and `bounds` are what it could be."""
        return

    @property
    def verdict(self) -> Literal["ungraded"]:
        """`ungraded`."""
        return cast("Literal['ungraded']", _Said("ungraded"))

    @property
    def passed(self) -> bool | None:
        """True or False if the missing verdicts cannot change it, else None."""
        return self.outcome.passed

    def explain(self) -> str:
        """Describe what could not be judged, why, and what the score could have been."""
        return _word("explanation", self)

    def __repr__(self) -> str:
        low, high = self.bounds
        judged = f"{self.coverage:.0%} judged"
        return f"<Ungraded {low:.3f}..{high:.3f}: {counted(len(self.findings), 'criterion')}, {judged}, {self.usage}>"


# -- conclusions -----------------------------------------------------------------------------------------


def conclude(
    rubric: Rubric,
    judge: Judge,
    findings: Sequence[Finding],
    *,
    usage: Usage = Usage(),
    failures: Sequence[Failure] = (),
    warnings: Sequence[str] = (),
    models: Sequence[str] = (),
) -> Grade | Ungraded:
    """Return the result of the *findings* of one judge."""
    found = tuple(findings)
    result = outcome(rubric, found)
    made = Grade if result.score is not None else Ungraded
    return made(rubric, judge, found, result, usage, (), tuple(failures), tuple(warnings), models=tuple(models))


def conclude_votes(rubric: Rubric, rule: Jury | Panel | Cascade, votes: Sequence[Grade | Ungraded]) -> Grade | Ungraded:
    """Return the result of *votes*; those missing at the end were not cast. A cascade's is that of its last judge."""
    failures = [failure for vote in votes for failure in vote.failures]
    if isinstance(rule, Cascade):
        findings, combined = votes[-1].findings, votes[-1].outcome
    else:
        missing = len(rule.members) - len(votes)
        not_cast = Failure("not_cast", f"{missing} votes were not cast, and this rule needs them")
        given = [vote.findings for vote in votes]
        if isinstance(rule, Panel) and rule.level == "criterion":
            findings = pool(rubric, given + [_uncast(given[0], not_cast)] * missing, Pooling.of(rule))
            combined = outcome(rubric, findings)
        else:
            findings = pool(rubric, given, Pooling.of(rule))
            combined = tally(rule, rubric, [vote.outcome for vote in votes])
            combined = evolve(combined, contributions=outcome(rubric, findings).contributions)
        if combined.score is None and missing:
            failures.append(not_cast)
    made = Grade if combined.score is not None else Ungraded
    warnings = dict.fromkeys(warning for vote in votes for warning in vote.warnings)
    if combined.score is not None and not isinstance(rule, Cascade):
        lacking = [vote for vote in votes if vote.outcome.score is None]
        warnings |= dict.fromkeys(f"no vote of {vote.judge.name!r}: {_lack(vote)}" for vote in lacking)
    usage = Usage.total(vote.usage for vote in votes)
    degenerate = votes[0].degenerate if votes else ""
    made_of = (findings, combined, usage, tuple(votes), tuple(failures), tuple(warnings), degenerate)
    models = sorted({model for vote in votes for model in vote.models})
    return made(rubric, rule, *made_of, models=tuple(models))


def _lack(vote: Grade | Ungraded) -> str:
    """Return why *vote* has no score: its failures, each once, or what could not be judged."""
    kinds = dict.fromkeys(f"{failure.kind}: {shorten(failure.message, 120)}" for failure in vote.failures)
    return "; ".join(kinds) or "the judge abstained"


def merge(rubric: Rubric, judge: AnyJudge, own: Grade | Ungraded, others: Mapping[str, Finding]) -> Grade | Ungraded:
    """Return *own*, of *judge*, scored anew with the findings *others*, by id, in their places, and in every vote."""
    if not isinstance(judge, Judge):
        pairs = zip(judge.members, own.votes, strict=False)  # a cascade may not have asked its second judge
        return conclude_votes(rubric, judge, [merge(rubric, member, vote, others) for member, vote in pairs])
    found = {**{finding.id: finding for finding in own.findings}, **others}
    findings = [found[criterion.id] for criterion in rubric.judged]
    return conclude(
        rubric, judge, findings, usage=own.usage, failures=own.failures, warnings=own.warnings, models=own.models
    )


def _uncast(findings: Sequence[Finding], why: Failure) -> tuple[Finding, ...]:
    """Return the findings of a vote that was not cast: unjudged, but for what applies to no vote, as in *findings*."""
    return tuple(f if isinstance(f, NotApplicable) else Unjudged(f.id, why) for f in findings)


def degenerate(rubric: Rubric, judge: AnyJudge, why: str) -> Grade | Ungraded:
    """Return the result of a candidate that needs no call: a fail, or an error, as the rubric says and for a chat."""
    if rubric.degenerate == "error" or why == UNANSWERED:
        failure = Failure("degenerate", f"the candidate {why}")
        return Ungraded.of(rubric, judge, failure, degenerate=why)
    findings = tuple(Scored(c.id, float(c.is_unwanted), reason=f"the candidate {why}") for c in rubric.judged)
    nothing = Extreme(0.0, passed=False)
    contributions = FrozenMap({c.id: 0.0 for c in rubric.judged})
    failed = Outcome(nothing, nothing, 0.0, "fail", contributions=contributions)
    return Grade(rubric, judge, findings, failed, degenerate=why)


def _under(rubric: object, rule: Mapping[str, Any]) -> Rubric:
    """Return *rubric* with the fields and the weights of *rule*."""
    if not isinstance(rubric, Rubric):
        cure = f"; write rescore(threshold={rubric!r})" if isinstance(rubric, int | float) else ""
        raise DefinitionError("rubric", f"expected a Rubric, got {shorten(repr(rubric))}{cure}")
    fields = {name: value for name, value in rule.items() if name != "weights"}
    check_fields(Rubric, "a rubric", fields)
    changed = evolve(rubric, **fields) if fields else rubric
    for id_, weight in as_map("weights", rule.get("weights", {})).items():
        changed = changed.revising(id_, weight=weight)
    changed.check_weights()
    return changed


_AGAIN = "grade the candidate again, with the same store: grade(candidate, rubric, judge, store=...)"


def _asks_anew(changes: Sequence[RubricChange]) -> str:
    """Return why *changes* are not for rescoring, and the call that works."""
    named = ", ".join(change.id for change in changes[:3]) + (", ..." if len(changes) > 3 else "")  # noqa: PLR2004
    return f"the judge is asked something else ({named}), and was not; {_AGAIN}"


def _walk_again(criterion: Criterion, finding: Finding) -> Finding:
    """Return *finding* with the scores that the leaves of the tree of *criterion* have now."""
    if not isinstance(finding, Scored | Unjudged):
        return finding
    if isinstance(criterion.answer, Rubric) and finding.parts:
        parts = tuple(map(_walk_again, criterion.answer.judged, finding.parts))
        return finding if parts == finding.parts else evolve(finding, parts=parts)
    if not isinstance(criterion.answer, DecisionTree):
        return finding
    node = cast("Any", criterion.answer)
    for step in finding.path:
        node = node.yes if step.yes else node.no
    if isinstance(finding, Scored):
        return evolve(finding, score=node.score, reason=node.reason or finding.path[-1].reason)
    scores = [leaf.score for leaf in node.leaves()]
    return evolve(finding, low=min(scores), high=max(scores))
