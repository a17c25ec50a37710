"""
Grading as a state machine without I/O.

`flow(candidate, rubric, judge)` yields a batch of `Ask`s, is sent one `Reply` or `Failure` for each, in the same order,
and ends with a `Grade` or an `Ungraded`. A driver, such as `rubric.driving.drive`, carries the asks.

`docs/explanation/flow.md` is its theory of operation: states, rounds, repairs, early stop.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from functools import partial
from itertools import chain, count
from operator import attrgetter
from types import TracebackType
from typing import Any, Literal, get_args

from attrs import define, evolve, field, frozen

from rubric.errors import DefinitionError, ProtocolError
from rubric.grading import prompting
from rubric.grading.candidate_parts import SEGMENTS, asked_parts, in_segments, locate_evidence, no_answer, over_parts
from rubric.grading.code_checks import decide, inapplicable, is_of_view, settle
from rubric.grading.prompting import STEPS, SharedPrompt
from rubric.grading.reply_parser import read
from rubric.grading.similarity import embedding_ask
from rubric.grading.steps import Batch, Got, Steps, answering, as_one, programs_first, together
from rubric.grading.tool_use import NO_ROOM, answer_now, continue_with_results, offer_tools
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.text import shorten
from rubric.results.result import Grade, Ungraded, conclude, conclude_votes, degenerate, goes_on
from rubric.scoring.outcomes import outcome
from rubric.scoring.votes import Voter, fewest_votes, is_decided, number_votes
from rubric.values.answers import EVEN, JudgeAnswer
from rubric.values.candidates import Candidate
from rubric.values.checks import Check, Holds, Launcher, Script, Similar, launcher_of
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Step, Unjudged
from rubric.values.judges import AnyJudge, Cascade, Judge, Jury, Panel
from rubric.values.requests import MOST_TOKENS, REASKED, Ask, Exchange, Failure, Reply, Usage
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree, Leaf

Result = Grade | Ungraded
State = Literal["new", "waiting", "ended", "closed"]

LONG_PREFIX = 4_096
"""Characters, about 1,024 tokens: no vendor caches a shorter prefix."""

_FEW = 2
_OUTCOMES, _ASKED = (Reply, Failure), get_args(JudgeAnswer)
_MODEL, _UNSENT, _REMARKS = map(attrgetter, ("model", "unsent", "remarks"))


def flow(
    candidate: Candidate,
    rubric: Rubric,
    judge: AnyJudge,
    *,
    ahead: bool = True,
    keep: bool = False,
    programs: bool = False,
) -> Flow:
    """
    Grade *candidate* against *rubric*: a generator that yields asks, is sent replies, and returns the result.

    Args:
        ahead: Send one ask ahead where several share a long prefix, so that the others find the prefix in the vendor's
            cache. It takes one more round.
        keep: Keep the requests and their outcomes, as the result's `exchanges`.
        programs: Yield asks to run the rubric's programs too, each in a batch of its own; see `Ask.program`. Else
            what they decide stays unjudged.

    Raises:
        DefinitionError: A rubric without criteria, or a prompt with an unknown slot: from the first `next`.
        ProtocolError: Replies that do not fit the batch, or that no ask waits for: from `send`.
    """
    steps = _grade(candidate, rubric, judge)
    if rubric.starts_programs:
        steps = programs_first(steps, allowed=programs)
    if keep:
        steps = _keep_exchanges(steps)
    return Flow(leading(steps) if ahead and not _asks_one_by_one(rubric, judge) else steps)


@define(eq=False)
class Flow(Generator[Batch, Got, Result]):
    """
    One grading in progress: a generator that checks what it is sent.

    A misuse raises `ProtocolError` and changes nothing: the same batch still waits for its replies.

    Attributes:
        state: `new` before the first `next`, `waiting` for the replies to a batch, `ended` with a result or an error,
            `closed` by `close`.
    """

    state: State = field(default="new", init=False)
    _steps: Steps[Result]
    _batch: Batch = field(default=(), init=False)

    def __next__(self) -> Batch:
        """Return the first batch."""
        if self.state == "new":
            return self._advance(None)
        if self.state == "waiting":
            raise ProtocolError(f"{self._waits('its replies')}; call send() with them", self.state)
        raise StopIteration  # as of any iterator that has come to its end

    def send(self, replies: Iterable[Reply | Failure] | None, /) -> Batch:
        """
        Go on with *replies*, one for each ask of the last batch in its order, and return the next batch.

        Raises:
            StopIteration: There is none; its `value` is the result.
            ProtocolError: *replies* are not what the flow waits for.
        """
        if self.state == "new" and replies is None:
            return self._advance(None)
        if self.state != "waiting":
            why = "nothing has been asked yet; call next() first" if self.state == "new" else "it takes no more replies"
            raise ProtocolError(why, self.state)
        if type(replies) is not tuple and (isinstance(replies, str) or not isinstance(replies, Iterable)):
            raise ProtocolError(f"{self._waits()}, got {type(replies).__name__}", self.state)
        got = tuple(replies)
        if len(got) != len(self._batch):
            raise ProtocolError(f"{self._waits()}, got {len(got)}", self.state)
        for index, reply in enumerate(got):
            if not isinstance(reply, _OUTCOMES):
                raise ProtocolError(f"{self._waits()}, got {type(reply).__name__} at place {index}", self.state)
        return self._advance(got)

    def _waits(self, wanted: str = "one Reply or Failure each") -> str:
        return f"a batch of {len(self._batch)} ask{'s' * (len(self._batch) != 1)} waits for {wanted}"

    def _advance(self, got: Got | None) -> Batch:
        self.state = "ended"  # unless there is another batch: a result ends it, and so does an error
        self._batch = self._steps.send(got)  # type: ignore[arg-type]  # None starts a generator
        self.state = "waiting"
        return self._batch

    def throw(self, kind: Any, value: Any = None, trace: TracebackType | None = None, /) -> Batch:
        """Raise an error where the flow waits; it ends the flow."""
        self.state = "ended"
        return self._steps.throw(kind, value, trace) if value is not None else self._steps.throw(kind)

    def close(self) -> None:
        """End the flow without a result."""
        if self.state != "ended":
            self.state = "closed"
        self._steps.close()


def _keep_exchanges(steps: Steps[Result]) -> Steps[Result]:
    """Run *steps*, and give the result the exchanges that led to it."""
    exchanges: list[Exchange] = []

    def note(batch: Batch) -> Steps[Got]:
        got = yield batch
        exchanges.extend([Exchange(ask, outcome) for ask, outcome in zip(batch, got, strict=True) if not ask.program])
        return got

    result = yield from answering(steps, note)
    object.__setattr__(result, "exchanges", tuple(exchanges))  # no other code has it yet
    return result


def leading(steps: Steps[Result]) -> Steps[Result]:
    """
    Run *steps*; where more than two asks share a long prefix that has not been sent yet, send one of them ahead.

    A vendor serves a prefix from its cache once there is a reply to it; sent all at once, each ask would be billed for
    the whole prompt. A judge with `prime=False` saves the round instead. The shortest goes ahead: if it is too long for
    its model, so are the others, and none of them is sent.
    """
    sent: set[Any] = set()
    alone: list[Ask] = []  # those that were sent by themselves: their prefixes matter once several are sent
    beyond: dict[Any, tuple[int, Failure]] = {}

    def in_order(batch: Batch) -> Steps[Got]:
        first: list[int] = []
        if len(batch) > 1:
            sent.update(map(_prefix, alone))
            alone.clear()
            first = _first_of_each_prefix(batch, sent)
        else:
            alone.extend(ask for ask in batch if not ask.program)
        if not first and not beyond:
            got = yield batch
            _note_overflow(batch, got, beyond)
            return got
        outcomes: dict[int, Reply | Failure] = {}
        for some in (first, range(len(batch))):
            outcomes |= _unsent(batch, beyond, outcomes)
            now = [index for index in some if index not in outcomes]
            if now:
                got = yield (asks := tuple([batch[index] for index in now]))
                _note_overflow(asks, got, beyond)
                outcomes |= dict(zip(now, got, strict=True))
        return tuple([outcomes[index] for index in range(len(batch))])

    return answering(steps, in_order)


def _note_overflow(batch: Batch, got: Got, beyond: dict[Any, tuple[int, Failure]]) -> None:
    """Add to *beyond* the length of each prompt of *batch* that was too long, by its prefix."""
    if Failure not in map(type, got):
        return
    for ask, one in zip(batch, got, strict=True):
        if type(one) is not Failure or one.kind != "context_window" or ask.turns:
            continue  # with turns of its own it says nothing of others
        if (prefix := _prefix(ask)) is not None:
            beyond[id(ask.judge), prefix] = len(ask.messages[-1].text), one


def _unsent(batch: Batch, beyond: dict[Any, tuple[int, Failure]], outcomes: Iterable[int]) -> dict[int, Failure]:
    """Return the failures of those asks of *batch* without an outcome that cannot fit either."""
    found: dict[int, Failure] = {}
    if not beyond:
        return found
    for index, ask in enumerate(batch):
        known = None if index in outcomes or ask.program else beyond.get((id(ask.judge), _prefix(ask)))
        if known is not None and len(ask.messages[-1].text) >= known[0]:
            why = f"not sent, since a shorter prompt was too long: {known[1].message}"
            criterion = ask.criteria[0].id if len(ask.criteria) == 1 else ""
            found[index] = evolve(known[1], message=why, criterion=criterion, usage=Usage())
    return found


def _first_of_each_prefix(batch: Batch, sent: set[Any]) -> list[int]:
    """Return the places of the asks to send ahead, and add the prefixes of *batch* to those that are *sent*."""
    places: dict[Any, list[int]] = {}
    last, prefix = batch[0], _prefix(batch[0])
    for index, ask in enumerate(batch):
        # Nearly all neighbours share the very objects of one candidate's prompt; then the last prefix serves again.
        if (
            ask.messages[-1].parts[0] is not last.messages[-1].parts[0]
            or ask.messages[0] is not last.messages[0]
            or ask.judge is not last.judge
        ):
            last, prefix = ask, _prefix(ask)
        if prefix is not None and prefix not in sent:
            places.setdefault(prefix, []).append(index)
    sent.update(places)
    several = [found for found in places.values() if len(found) > _FEW]
    return [min(found, key=lambda index: len(batch[index].messages[-1].text)) for found in several]


def _prefix(ask: Ask) -> tuple[object, ...] | None:
    """Return what identifies the prefix that *ask* shares with others; None where none is sent ahead."""
    before, parts = ask.messages[:-1], ask.messages[-1].parts
    if not ask.judge.prime or len(parts) == 1:
        return None
    if len(parts[0]) + sum([len(part) for message in before for part in message.parts]) < LONG_PREFIX:
        return None
    return (ask.judge.name, parts[0], *[(message.role, message.parts) for message in before])


def check(rubric: Rubric) -> None:
    """Raise `DefinitionError` if *rubric* has nothing to grade by, or no weight that counts."""

    def check_once() -> bool:
        _refuse_empty(rubric)
        rubric.check_weights()
        return True

    rubric.derive(("checked",), check_once)  # once for a rubric, not for each of its candidates


def _refuse_empty(rubric: Rubric) -> None:
    if not rubric.judged:
        raise DefinitionError("criteria", f"{rubric} has nothing to grade by; give it criteria, a text or a tree")
    for criterion in rubric.judged:
        if isinstance(criterion.answer, Rubric):
            _refuse_empty(criterion.answer)


# -- several judges --------------------------------------------------------------------------------------


def _grade(candidate: Candidate, rubric: Rubric, judge: AnyJudge) -> Steps[Result]:
    check(rubric)
    why = candidate.degenerate if rubric.degenerate != "judge" else ""
    if why:
        result: Result = degenerate(rubric, judge, why)
    else:
        about = prompting.shared_prompt(candidate, rubric)
        steps = _one_judge(about, judge, 0) if isinstance(judge, Judge) else _any_judge(about, number_votes(judge))
        result = yield from steps
    # Set in place, since the result is new and unshared: a copy of all fields costs as much as scoring.
    object.__setattr__(result, "candidate", candidate)
    object.__setattr__(result, "variables", candidate.variables)
    if candidate.key or candidate.group:
        object.__setattr__(result, "key", candidate.key)
        object.__setattr__(result, "group", candidate.group)
    return result


def _any_judge(about: SharedPrompt, voter: Voter) -> Steps[Result]:
    match voter.judge:
        case Judge() as judge:
            return (yield from _one_judge(about, judge, voter.vote))
        case Cascade() as rule:
            first, then = voter.members
            votes = [(yield from _any_judge(about, first))]
            if goes_on(rule, votes[0]):
                votes.append((yield from _any_judge(about, then)))
            return conclude_votes(about.rubric, rule, votes)
        case Jury() | Panel() as rule:
            members = [_any_judge(about, member) for member in voter.members]
            notes: list[str] = []
            result = conclude_votes(about.rubric, rule, (yield from _votes(about.rubric, rule, members, notes)))
            return evolve(result, warnings=(*result.warnings, *notes)) if notes else result


def _votes(
    rubric: Rubric, rule: Jury | Panel, members: Sequence[Steps[Result]], notes: list[str]
) -> Steps[list[Result]]:
    """Cast the votes; with an early stop, as many at a time as could decide."""
    # The stop is exact: it compares the outcome with all missing votes at their worst and at their best, and stops when
    # both come to the same verdict. That holds as long as every aggregation is monotone: a better vote never makes the
    # outcome worse. A rule that rewards, say, agreement among the votes would stop on a verdict that later votes
    # change.

    def cast(some: Sequence[Steps[Result]]) -> Steps[list[Result]]:
        steps = together(some)
        return as_one(steps, notes) if isinstance(rule, Jury) and rule.one_request else steps

    pooled = isinstance(rule, Panel) and rule.level == "criterion"
    if pooled or not rule.early_stop:
        return (yield from cast(members))
    votes: list[Result] = []
    while not is_decided(rule, rubric, [v.outcome for v in votes]):
        fewest = fewest_votes(rule, rubric, [v.outcome for v in votes])
        votes += yield from cast(members[len(votes) : len(votes) + fewest])
    for member in members[len(votes) :]:
        member.close()
    return votes


# -- one judge -------------------------------------------------------------------------------------------


@frozen(eq=False)
class _Log:
    """The replies that one judge gave, what went wrong in them, and notes for the user."""

    replies: list[Reply | Failure] = field(factory=list)
    failures: list[Failure] = field(factory=list)
    notes: list[str] = field(factory=list)


def _one_judge(about: SharedPrompt, judge: Judge, vote: int) -> Steps[Result]:
    log = _Log()
    findings = yield from _Session(about, about.rubric, "", judge, vote, log).findings()
    replies = [reply for reply in log.replies if isinstance(reply, Reply)]
    models = sorted({*map(_MODEL, replies)} - {""})
    unsent = [f"{name} was not sent: the model does not take it" for name in chain.from_iterable(map(_UNSENT, replies))]
    remarks = chain.from_iterable(map(_REMARKS, replies))
    contradictory = [
        f"contradictory: the judge {'passed' if f.flag else 'failed'} {f.id!r} with a score of {f.score:g}"
        for f in findings
        if isinstance(f, Scored) and f.flag is not None and f.score == float(not f.flag)
    ]
    warnings = [*about.warnings, *dict.fromkeys([*unsent, *remarks, *log.notes]), *contradictory]
    usage = Usage.total([reply.usage for reply in log.replies])
    return conclude(about.rubric, judge, findings, usage=usage, failures=log.failures, warnings=warnings, models=models)


@frozen(eq=False)
class _Session:
    """One judge's work on one candidate; *guidelines* are a nested rubric's, *part* is the turn that is judged."""

    about: SharedPrompt
    rubric: Rubric
    guidelines: str
    judge: Judge
    vote: int
    log: _Log
    part: str = ""

    def findings(self) -> Steps[list[Finding]]:
        """Judge the criteria of the rubric: code decides some at once, the judge is asked about the others together."""
        judged = self.rubric.judged
        groups = None if self.about.candidate.unanswered else _plain_groups(self.rubric, self.judge)
        if not groups:
            return (yield from self._of_all(judged))
        asked = yield from self._ask_groups(groups)
        return [*asked[0]] if len(asked) == 1 else _in_order(judged, asked)

    def _of_all(self, criteria: Sequence[Criterion], *, is_part: bool = False) -> Steps[list[Finding]]:
        """Judge *criteria*; those that are asked of parts by themselves, unless this is such a part."""
        found: dict[str, Finding] = {}
        open_: list[Criterion] = []
        turned: list[Criterion] = []
        cut: list[Criterion] = []
        plain = True
        for criterion in criteria:
            lacking = None if is_part else no_answer(criterion, self.about.candidate, self.about.rubric)
            if lacking is not None:
                self.log.failures.append(lacking.failure)
                found[criterion.id] = lacking
                continue
            if criterion.on != "conversation" and not is_part:
                (cut if criterion.on in SEGMENTS else turned).append(criterion)
                continue
            coded = criterion.when is not None or isinstance(criterion.answer, Check)
            if coded and (finding := self._by_code(criterion)) is not None:
                found[criterion.id] = finding
                continue
            open_.append(criterion)
            plain = plain and not isinstance(criterion.answer, prompting.APART)
        groups = prompting.group_criteria(open_, self.judge)
        if turned or cut:
            parts = [self._of_group(group) for group in groups]
            parts += [self._in_segments(cut)] if cut else []
            judged = yield from together([*parts, *[self._of_parts(criterion) for criterion in turned]])
        elif plain:
            judged = (yield from self._ask_groups(groups)) if groups else []
        elif len(groups) == 1:
            judged = [(yield from self._of_group(groups[0]))]
        else:
            judged = yield from together([self._of_group(group) for group in groups])
        return _in_order(criteria, [*judged, found.values()])

    def _in_segments(self, criteria: Sequence[Criterion]) -> Steps[Sequence[Finding]]:
        """Judge *criteria* for each segment of the run: those that one call asks about are asked together."""
        parts = in_segments(self.about.candidate, self.judge)
        apart = [
            evolve(self, about=prompting.shared_prompt(part, self.about.rubric), part=name)
            for name, part in parts.items()
        ]
        found = yield from together([one._of_all(criteria, is_part=True) for one in apart])  # noqa: SLF001 - of the same class
        return [
            over_parts(self.rubric, criterion, dict(zip(parts, each, strict=True)))
            for criterion, each in zip(criteria, zip(*found, strict=True), strict=True)
        ]

    def _of_parts(self, criterion: Criterion) -> Steps[Sequence[Finding]]:
        """Judge *criterion* for each turn that it is asked of, or for the tool calls."""
        whole = self.about.candidate
        if criterion.when is not None and is_of_view(criterion):
            if (finding := inapplicable(criterion, whole)) is not None:
                return [finding]
            # Else it would be asked of the other text too. One for all votes, which share the programs of a criterion.
            criterion = self.rubric.derive(("met", criterion.id), partial(evolve, criterion, when=None))
        if view := launcher_of(criterion.on):
            seen = yield from self._run(criterion, view)
            parts = seen if isinstance(seen, Unjudged) else {", ".join(view.scripts): seen}
        else:
            parts = asked_parts(criterion, whole)
        if isinstance(parts, Unjudged):
            return [parts]
        apart = [
            evolve(
                self,
                about=prompting.shared_prompt(part, self.about.rubric),
                part=self.part if part.output is whole.output else name,
            )
            for name, part in parts.items()
        ]
        self.log.notes.extend(note for one in apart for note in one.about.warnings if note == prompting.GAP)
        found = yield from together([one._alone(criterion) for one in apart])  # noqa: SLF001 - of the same class
        return [over_parts(self.rubric, criterion, dict(zip(parts, found, strict=True)))]

    def _by_code(self, criterion: Criterion) -> Finding | None:
        """Return the finding of *criterion* if code decides it; None if a judge or a program must."""
        find = decide if launcher_of(criterion.answer) is None else inapplicable
        return find(criterion, self.about.candidate)

    def _run(self, criterion: Criterion, program: Launcher) -> Steps[Any]:
        """Return what *program* makes of the candidate; unjudged if it fails."""
        about = self.about.candidate
        (got,) = yield (Ask(self.judge, (), FrozenMap(), (criterion,), about=about, program=program),)
        self.log.replies.append(got)
        if isinstance(got, Reply):
            return got.made
        self.log.failures.append(got)
        return Unjudged(criterion.id, got)

    def _alone(self, criterion: Criterion) -> Steps[Finding]:
        if (finding := self._by_code(criterion)) is not None:
            return finding
        return (yield from self._of_group([criterion]))[0]

    def _of_group(self, group: Sequence[Criterion]) -> Steps[Sequence[Finding]]:
        first = group[0]
        match first.answer:
            case DecisionTree() as tree:
                return [(yield from self._walk(first, tree))]
            case Rubric() as inner:
                return [(yield from self._grade_nested(first, inner))]
            case Similar() as check:
                return [(yield from self._compare(first, check))]
            case (Script() | Holds()) as check if program := launcher_of(check):
                made = yield from self._run(first, program)
                return [made if isinstance(made, Unjudged) else settle(first, made, self.about.candidate)]
            case _:
                return (yield from self._ask_groups([group]))[0]

    def _grade_nested(self, criterion: Criterion, inner: Rubric) -> Steps[Finding]:
        """Judge a nested rubric. If nothing in it applies, it does not apply itself."""
        parts = yield from evolve(self, rubric=inner, guidelines=inner.guidelines).findings()
        if all(isinstance(part, NotApplicable) for part in parts):
            return NotApplicable(criterion.id, "nothing in it applies")
        result = outcome(inner, parts)
        if result.score is None:
            failure = next((p.failure for p in parts if isinstance(p, Unjudged)), None)
            failure = failure or Failure("unreadable", "every judge abstained", criterion=criterion.id)
            return Unjudged(criterion.id, failure, "", *result.bounds, parts=tuple(parts))
        shares = [(one.text, share) for one in inner.judged if (share := result.contributions.get(one.id)) is not None]
        told = [shorten(text, 80) for text, share in shares if (share > 0 if inner.negate else share < 1)]
        count = len(told) if inner.negate else len(shares) - len(told)
        said = f"{result.verdict}, {count} of {len(shares)} {'unwanted met' if inner.negate else 'met in full'}"
        said += f"{': ' if inner.negate else '; not in full: '}{shorten(', '.join(told), 300)}" if told else ""
        return Scored(criterion.id, result.score, reason=said, parts=tuple(parts))

    def _compare(self, criterion: Criterion, check: Similar) -> Steps[Finding]:
        """Ask for the embeddings of the output and of the texts of *check*; all votes share them."""
        ask = embedding_ask(criterion, check, self.about.candidate.output, self.judge)
        if isinstance(ask, Failure):
            return Unjudged(criterion.id, ask)
        (got,) = yield (ask,)
        return self._read(ask, got)[0]

    def _walk(self, criterion: Criterion, tree: DecisionTree) -> Steps[Finding]:
        """Walk down a tree: ask the questions on the path one by one, or all of the tree beforehand."""
        node: DecisionTree | Leaf = tree
        path: list[Step] = []
        ahead = (yield from self._ahead(criterion, tree)) if self.judge.speculate else {}
        while isinstance(node, DecisionTree):
            if node.question in ahead:
                found, log = ahead[node.question]
                self.log.failures.extend(log.failures)  # now only: failures beside the path do not matter
                self.log.notes.extend(log.notes)
            else:
                ((found,),) = yield from self._ask_groups([[prompting.as_question(self.rubric, criterion, node)]])
            if not isinstance(found, Scored):
                scores = [leaf.score for leaf in node.leaves()]
                assert isinstance(found, Unjudged)  # noqa: S101 - a question without a score was not judged
                return evolve(found, low=min(scores), high=max(scores), path=tuple(path))
            path.append(Step(node.question, found.score >= EVEN, found.score, found.reason))
            node = node.yes if found.score >= EVEN else node.no
        return Scored(criterion.id, node.score, reason=node.reason or path[-1].reason, path=tuple(path))

    def _ahead(self, criterion: Criterion, tree: DecisionTree) -> Steps[dict[str, tuple[Finding, _Log]]]:
        """Ask every question of *tree* at once; return each one's finding and log, by question."""
        nodes = {node.question: node for node in tree.nodes()}
        apart = [evolve(self, log=_Log()) for _ in nodes]
        asked = [
            session._ask_groups([[prompting.as_question(self.rubric, criterion, node)]])  # noqa: SLF001 - of the same class
            for session, node in zip(apart, nodes.values(), strict=True)
        ]
        found = yield from together(asked)
        for session in apart:
            self.log.replies.extend(session.log.replies)  # at once: all of them are paid for
        return {q: (f, session.log) for q, ((f,),), session in zip(nodes, found, apart, strict=True)}

    def _ask_groups(self, groups: Sequence[Sequence[Criterion]]) -> Steps[list[Sequence[Finding]]]:
        """Ask about all *groups* in one batch, then again about those with a reply that could not be read."""
        asks = prompting.compose_all(
            self.about, self.rubric, self.judge, groups, vote=self.vote, guidelines=self.guidelines
        )
        if self.judge.prompt or self.rubric.prompt is not None:
            self.log.notes.extend(prompting.remarks_on_template(asks, self.about, self.rubric))
        if self.rubric.max_steps:
            steps = STEPS in self.about.sections
            asks = tuple([offer_tools(ask, self.rubric, steps=steps) for ask in asks])
            if asks[0].tools:
                return (yield from together([self._ask_with_tools(ask) for ask in asks]))
            self.log.notes.append(NOTHING_TO_READ)
        found: list[Sequence[Finding]] = []
        broken: dict[int, Steps[Sequence[Finding]]] = {}
        for ask, got in zip(asks, (yield asks), strict=True):
            findings = self._read(ask, got)
            if Unjudged in map(type, findings):
                broken[len(found)] = self._ask_again(ask, got, findings)
            found.append(findings)
        if broken:
            repaired = yield from together([*broken.values()])
            for index, findings in zip(broken, repaired, strict=True):
                found[index] = findings
        return found

    def _ask_with_tools(self, ask: Ask) -> Steps[Sequence[Finding]]:
        """Ask, and let the judge read what was made, until it answers or has no steps left, or no room for the last."""
        (got,) = yield (ask,)
        while True:
            if isinstance(got, Reply) and got.wanted and ask.steps:
                further = continue_with_results(ask, got.wanted)
            elif (
                isinstance(got, Failure) and got.kind == "context_window" and ask.turns and NO_ROOM not in ask.turns[-1]
            ):
                further = answer_now(ask)
            else:
                break
            if further is None:
                break
            self.log.replies.append(got)
            ask = further
            (got,) = yield (ask,)
        findings = self._read(ask, got)
        if Unjudged in map(type, findings):
            findings = yield from self._ask_again(ask, got, findings)
        return findings

    def _ask_again(self, ask: Ask, got: Reply | Failure, findings: Sequence[Finding]) -> Steps[Sequence[Finding]]:
        """Ask again, with the complaint, for what could not be read in *got*, the reply to *ask*."""
        # One group takes at most 1 + retries + repairs requests: a re-ask gets the retries that are left, else the two
        # numbers would multiply. A reply without text is a bad response: it takes a retry, and once at most.
        found = {finding.id: finding for finding in findings}
        max_tokens, repairs, retries, was_empty = ask.max_tokens, self.judge.repairs, self.judge.retries, False
        for repair in count(1):
            retries -= min(retries, max(0, got.usage.calls - 1))
            failures = [finding.failure for finding in found.values() if isinstance(finding, Unjudged)]
            kinds = {failure.kind for failure in failures}
            if kinds & REASKED and repairs:
                repairs -= 1
            elif "bad_response" in kinds and isinstance(got, Reply) and retries and not was_empty:
                retries, was_empty = retries - 1, True
            else:
                break
            if "truncated" in kinds:
                max_tokens = max(2 * max_tokens, 0 if self.judge.max_tokens else MOST_TOKENS)
            again = prompting.compose(
                self.about,
                self.rubric,
                self.judge,
                [criterion for criterion in ask.criteria if not isinstance(found[criterion.id], Scored | Abstained)],
                vote=self.vote,
                repair=repair,
                complaint=failures[0].message,
                guidelines=self.guidelines,
            )
            again = evolve(again, max_tokens=max_tokens, retries=retries if retries < self.judge.retries else None)
            again = evolve(again, tools=ask.tools, turns=ask.turns) if ask.tools else again
            (got,) = yield (again,)
            found |= {finding.id: finding for finding in self._read(again, got)}
        return [found[criterion.id] for criterion in ask.criteria]

    def _read(self, ask: Ask, got: Reply | Failure) -> Sequence[Finding]:
        self.log.replies.append(got)
        findings = read(ask, got)
        if self.part:
            findings = tuple([locate_evidence(finding, self.part) for finding in findings])
        if ask.judge.logprobs and isinstance(got, Reply):
            from rubric.grading.logprobs import weigh  # noqa: PLC0415 - few judges are asked for them

            findings, notes = weigh(ask, got, findings)
            self.log.notes.extend(notes)
        if unjudged := [finding.failure for finding in findings if isinstance(finding, Unjudged)]:
            self.log.failures.extend(dict.fromkeys(unjudged))
        return findings


def _plain_groups(rubric: Rubric, judge: Judge) -> Sequence[Sequence[Criterion]]:
    """Return the groups in which all criteria are asked about whatever the candidate is; none if some are not."""

    def group() -> Sequence[Sequence[Criterion]]:
        judged = rubric.judged
        plain = [c for c in judged if c.when is None and c.on == "conversation" and isinstance(c.answer, _ASKED)]
        return prompting.group_criteria(judged, judge) if len(plain) == len(judged) else []

    return rubric.derive(("groups", judge.per_call), group)


def _asks_one_by_one(rubric: Rubric, judge: AnyJudge) -> bool:
    """True where no batch can hold two asks: all is asked at once, or a lone tree is walked."""
    if not isinstance(judge, Judge):
        return False

    def look() -> bool:
        if len(rubric.judged) != 1:
            return len(_plain_groups(rubric, judge)) == 1
        (only,) = rubric.judged
        several = isinstance(only.answer, Rubric) or (judge.speculate and isinstance(only.answer, DecisionTree))
        return only.on == "conversation" and not several

    return rubric.derive(("one by one", judge.per_call, judge.speculate), look)


def _in_order(criteria: Sequence[Criterion], findings: Iterable[Iterable[Finding]]) -> list[Finding]:
    found = {finding.id: finding for some in findings for finding in some}
    return [found[criterion.id] for criterion in criteria]


NOTHING_TO_READ = (
    "the rubric lets the judge read what the candidate made, and there is nothing to read (files, file_changes, "
    "results of tools): it was judged by its words alone"
)
