"""
Grading as a state machine without I/O.

`flow(candidate, rubric, judge)` is a generator: it yields a batch of `Ask`s, is sent a batch of `Reply`s or
`Failure`s in the same order, and returns a `Grade` or an `Ungraded`. Whatever carries the asks is a driver:

    steps = flow(candidate, rubric, judge)
    batch = next(steps)
    while True:
        try:
            batch = steps.send(tuple(carry(ask) for ask in batch))
        except StopIteration as end:
            return end.value
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count

from attrs import evolve, field, frozen

from rubric.errors import DefinitionError
from rubric.grading.code_checks import settled, why_degenerate
from rubric.grading.logprobs import weigh
from rubric.grading.prompting import SharedPrompt, as_question, compose, grouped, shared_prompt
from rubric.grading.reply_parser import read
from rubric.grading.steps import Steps, as_one, leading, together
from rubric.results.result import Grade, Ungraded, conclude, conclude_votes, degenerate, goes_on
from rubric.scoring.outcomes import EVEN, outcome
from rubric.scoring.votes import Voter as Seat
from rubric.scoring.votes import fewest_votes, is_decided
from rubric.scoring.votes import number_votes as seated
from rubric.values.candidates import Candidate
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Finding, NotApplicable, Scored, Step, Unjudged
from rubric.values.judges import AnyJudge, Cascade, Judge, Jury, Panel
from rubric.values.requests import REASKED, Ask, Failure, Reply, Usage
from rubric.values.rubrics import Rubric, check_weights
from rubric.values.trees import DecisionTree, Leaf

Result = Grade | Ungraded


def flow(candidate: Candidate, rubric: Rubric, judge: AnyJudge, *, ahead: bool = True) -> Steps[Result]:
    """
    Grade *candidate* against *rubric*: yield what to ask, be sent what came back, return the result.

    Args:
        ahead: Whether, of several asks with a long prefix, one goes out before the others, so that they find the prefix
            in the vendor's cache. It takes one round more.

    Raises:
        DefinitionError: A rubric without criteria, or a prompt with an unknown slot: before the first ask.
    """
    check(rubric)
    why = why_degenerate(candidate) if rubric.degenerate != "judge" else ""
    if why:
        return degenerate(rubric, judge, why)
    steps = _bench(Case(candidate, rubric, shared_prompt(candidate, rubric)), seated(judge))
    return (yield from leading(steps) if ahead else steps)


def check(rubric: Rubric) -> None:
    """Raise `DefinitionError` if *rubric* has nothing to grade by, or no weight that counts."""
    _refuse_empty(rubric)
    check_weights(rubric)


def _refuse_empty(rubric: Rubric) -> None:
    if not rubric.judged:
        raise DefinitionError("criteria", f"{rubric} has nothing to grade by; give it criteria, a text or a tree")
    for criterion in rubric.judged:
        if isinstance(criterion.answer, Rubric):
            _refuse_empty(criterion.answer)


@frozen
class Case:
    """What stays the same for all judges of one candidate."""

    candidate: Candidate
    rubric: Rubric
    brief: SharedPrompt


def _bench(case: Case, seat: Seat) -> Steps[Result]:
    rule = seat.judge
    match rule:
        case Judge():
            return (yield from _judge(case, rule, seat.vote))
        case Cascade():
            return (yield from _cascade(case, rule, *seat.members))
    members = [_bench(case, member) for member in seat.members]
    notes: list[str] = []
    result = conclude_votes(case.rubric, rule, (yield from _votes(case.rubric, rule, members, notes)))
    return evolve(result, warnings=(*result.warnings, *notes)) if notes else result


def _cascade(case: Case, rule: Cascade, first: Seat, then: Seat) -> Steps[Result]:
    """Ask the first, and the second if that leaves a doubt."""
    votes = [(yield from _bench(case, first))]
    if goes_on(rule, votes[0]):
        votes.append((yield from _bench(case, then)))
    return conclude_votes(case.rubric, rule, votes)


def _votes(
    rubric: Rubric, rule: Jury | Panel, members: Sequence[Steps[Result]], notes: list[str]
) -> Steps[list[Result]]:
    """Cast the votes; with an early stop, only as many at a time as could decide."""

    def cast(some: Sequence[Steps[Result]]) -> Steps[list[Result]]:
        return as_one(some, notes) if isinstance(rule, Jury) and rule.one_request else together(some)

    pooled = isinstance(rule, Panel) and rule.level == "criterion"
    if pooled or not rule.early_stop:
        return (yield from cast(members))
    votes: list[Result] = []
    while not is_decided(rule, rubric, [v.outcome for v in votes]):
        ahead = fewest_votes(rule, rubric, [v.outcome for v in votes])
        votes += yield from cast(members[len(votes) : len(votes) + ahead])
    for member in members[len(votes) :]:
        member.close()
    return votes


# -- one judge -------------------------------------------------------------------------------------------


@frozen
class Log:
    """What one judge's calls used, what went wrong in them, and what a person should know of them."""

    got: list[Reply | Failure] = field(factory=list)
    lost: list[Failure] = field(factory=list)
    notes: list[str] = field(factory=list)

    def usage(self) -> Usage:
        """Return what all calls used."""
        return sum((g.usage for g in self.got), Usage())

    def failures(self) -> list[Failure]:
        """Return what went wrong, unreadable replies included."""
        return self.lost

    def warnings(self) -> Iterator[str]:
        """Yield what a person should know of the calls."""
        for name in dict.fromkeys(n for g in self.got if isinstance(g, Reply) for n in g.unsent):
            yield f"{name} was not sent: the model does not take it"
        yield from dict.fromkeys(remark for g in self.got if isinstance(g, Reply) for remark in g.remarks)
        yield from dict.fromkeys(self.notes)


def _judge(case: Case, judge: Judge, vote: int) -> Steps[Result]:
    log = Log()
    session = Session(case, judge, vote, log)
    findings = yield from session.findings(case.rubric)
    warnings = [*case.brief.warnings, *log.warnings(), *_contradictory(findings)]
    return conclude(case.rubric, judge, findings, usage=log.usage(), failures=log.failures(), warnings=warnings)


def _contradictory(findings: Sequence[Finding]) -> Iterator[str]:
    """A judge may pass what it gives 0, or fail what it gives 1; whoever reads the grade should know."""
    for finding in findings:
        if isinstance(finding, Scored) and finding.flag is not None and finding.score == float(not finding.flag):
            said = "passed" if finding.flag else "failed"
            yield f"contradictory: the judge {said} {finding.id!r} with a score of {finding.score:g}"


@frozen
class Session:
    """One judge's work on one candidate: each method yields asks and returns findings."""

    case: Case
    judge: Judge
    vote: int
    log: Log

    def findings(self, rubric: Rubric, guidelines: str = "") -> Steps[list[Finding]]:
        """Judge the criteria of *rubric*: what code decides at once, the rest together."""
        found = {c.id: f for c in rubric.judged if (f := settled(c, self.case.candidate)) is not None}
        open_ = [c for c in rubric.judged if c.id not in found]
        groups = grouped(open_, self.judge)
        for judged in (yield from together([self._group(rubric, group, guidelines) for group in groups])):
            found |= {finding.id: finding for finding in judged}
        return [found[c.id] for c in rubric.judged]

    def _group(self, rubric: Rubric, group: Sequence[Criterion], guidelines: str) -> Steps[list[Finding]]:
        first = group[0]
        match first.answer:
            case DecisionTree() as tree:
                return [(yield from self._walk(rubric, first, tree, guidelines))]
            case Rubric() as inner:
                return [(yield from self._nested(first, inner))]
            case _:
                return (yield from self._asked(rubric, group, guidelines))

    def _nested(self, criterion: Criterion, inner: Rubric) -> Steps[Finding]:
        """Judge a nested rubric. If nothing in it applies, it does not apply itself."""
        parts = yield from self.findings(inner, inner.guidelines)
        if all(isinstance(part, NotApplicable) for part in parts):
            return NotApplicable(criterion.id, "nothing in it applies")
        came_to = outcome(inner, parts)
        if came_to.score is None:
            failure = next((p.failure for p in parts if isinstance(p, Unjudged)), None)
            failure = failure or Failure("unreadable", "every judge abstained", criterion=criterion.id)
            return Unjudged(criterion.id, failure, "", *came_to.bounds, parts=tuple(parts))
        return Scored(criterion.id, came_to.score, reason=f"{came_to.verdict}", parts=tuple(parts))

    def _walk(self, rubric: Rubric, criterion: Criterion, tree: DecisionTree, guidelines: str) -> Steps[Finding]:
        """Walk down a tree: ask only what is reached, or all at once beforehand."""
        node: DecisionTree | Leaf = tree
        path: list[Step] = []
        ahead = (yield from self._ahead(rubric, criterion, tree, guidelines)) if self.judge.speculate else {}
        while isinstance(node, DecisionTree):
            if node.question in ahead:
                found = self._taken(*ahead[node.question])
            else:
                (found,) = yield from self._asked(rubric, [_question(rubric, criterion, node)], guidelines)
            if not isinstance(found, Scored):
                scores = [leaf.score for leaf in node.leaves()]
                assert isinstance(found, Unjudged)  # noqa: S101 - a question without a score was not judged
                return evolve(found, low=min(scores), high=max(scores), path=tuple(path))
            path.append(Step(node.question, found.score >= EVEN, found.score, found.reason))
            node = node.yes if found.score >= EVEN else node.no
        return Scored(criterion.id, node.score, reason=node.reason or path[-1].reason, path=tuple(path))

    def _ahead(
        self, rubric: Rubric, criterion: Criterion, tree: DecisionTree, guidelines: str
    ) -> Steps[dict[str, tuple[Finding, Log]]]:
        """Ask every question of *tree* at once; return what was found, and what the asking came with, by question."""
        nodes = {node.question: node for node in tree.nodes()}
        apart = [evolve(self, log=Log()) for _ in nodes]
        asked = [
            session._asked(rubric, [_question(rubric, criterion, node)], guidelines)  # noqa: SLF001 - of the same class
            for session, node in zip(apart, nodes.values(), strict=True)
        ]
        found = yield from together(asked)
        for session in apart:
            self.log.got.extend(session.log.got)
        return {q: (f, session.log) for q, (f,), session in zip(nodes, found, apart, strict=True)}

    def _taken(self, found: Finding, log: Log) -> Finding:
        """Return what was *found* ahead at a question that the walk has come to; only now do its failures matter."""
        self.log.lost.extend(log.lost)
        self.log.notes.extend(log.notes)
        return found

    def _asked(self, rubric: Rubric, group: Sequence[Criterion], guidelines: str) -> Steps[list[Finding]]:
        """
        Ask about *group*; ask again, with the complaint, for what could not be read.

        All of it takes at most 1 + retries + repairs requests: a re-ask gets the retries that are left, else the two
        numbers would multiply. A reply without text is a bad response: it takes a retry, and once at most.
        """
        found: dict[str, Finding] = {}
        complaint, max_tokens = "", self.judge.max_tokens
        repairs, retries, was_empty = self.judge.repairs, self.judge.retries, False
        for repair in count():
            missing = [c for c in group if not _is_read(found.get(c.id))]
            ask = compose(
                self.case.brief,
                rubric,
                self.judge,
                missing,
                vote=self.vote,
                repair=repair,
                complaint=complaint,
                max_tokens=max_tokens,
                guidelines=guidelines,
            )
            if retries < self.judge.retries:
                ask = evolve(ask, retries=retries)
            found |= {f.id: f for f in (yield from self._exchange(ask))}
            got = self.log.got[-1]
            retries -= min(retries, max(0, got.usage.calls - 1))
            failures = [f.failure for f in found.values() if isinstance(f, Unjudged)]
            kinds = {failure.kind for failure in failures}
            if kinds & REASKED and repairs:
                repairs -= 1
            elif "bad_response" in kinds and isinstance(got, Reply) and retries and not was_empty:
                retries, was_empty = retries - 1, True
            else:
                break
            max_tokens, complaint = max_tokens * (1 + ("truncated" in kinds)), failures[0].message
        return [found[c.id] for c in group]

    def _exchange(self, ask: Ask) -> Steps[tuple[Finding, ...]]:
        (got,) = yield (ask,)
        self.log.got.append(got)
        findings = read(ask, got)
        if ask.judge.logprobs and isinstance(got, Reply):
            findings, notes = weigh(ask, got, findings)
            self.log.notes.extend(notes)
        self.log.lost.extend(dict.fromkeys(f.failure for f in findings if isinstance(f, Unjudged)))
        return findings


def _question(rubric: Rubric, criterion: Criterion, node: DecisionTree) -> Criterion:
    """Return the question at *node*, the same object for each candidate."""
    return rubric.derive(("question", criterion.id, node.question), partial(as_question, criterion, node))


def _is_read(finding: Finding | None) -> bool:
    return isinstance(finding, Scored | Abstained)
