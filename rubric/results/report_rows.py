"""
Results as plain data with all secrets masked: a `Row` a result, an `Entry` a criterion. Reports and cards show them.

A `RowBuilder` makes them of results. It masks every text: no row holds a key, a password or half a surrogate. Quotes
move with the text around them, so that `row.output[start:end]` is the quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from attrs import asdict, evolve, field, frozen

from rubric.internals.containers import NoTruth
from rubric.internals.frozen_map import FrozenMap
from rubric.internals.secrets import clean, map_offsets, whole
from rubric.internals.text import counted, line, shorten
from rubric.results.plain_data import KINDS, UNWRITTEN, Kind, Plain, Record
from rubric.scoring.outcomes import TOLERANCE, Outcome, failing, is_substantiated, outcome
from rubric.values.candidates import Candidate
from rubric.values.checks import Check
from rubric.values.criteria import Criterion, slug
from rubric.values.findings import Evidence, Finding, Scored, Step, Unjudged
from rubric.values.judges import Cascade, Jury, Panel, passes_needed
from rubric.values.numbered import numbered_steps
from rubric.values.places import Place
from rubric.values.requests import Usage
from rubric.values.rubrics import Rubric, describe

if TYPE_CHECKING:
    from rubric.results.result import Grade, Result, Ungraded


Status = Literal["passed", "failed", "ungraded", "deferred"]
WOULD = {True: "would pass", False: "would fail", None: "undecided"}
"""What becomes of an ungraded result whatever the missing verdicts are."""


@frozen
class Entry(NoTruth):
    """
    One criterion of a case.

    Args:
        id: The criterion's.
        text: What was to be judged.
        status: `scored`, `not_applicable`, `abstained` or `unjudged`: the kind of its finding.
        score: The judge's answer in 0..1; None unless scored.
        contribution: What it adds to the mean, in 0..1 with 1 as good; None while it is not known.
        weight: How much it counts.
        answer: A description of its answers: `yes or no`, `0..10, required`.
        value: The answer itself, as text: `yes`, `7`, `warm`; of a guard and a penalty, whether it was found.
        level: What a level means, see `Scored`.
        gated: True if it failed the grade.
        reason: The judge's reason, or why there is no verdict.
        evidence: The quotes.
        path: The walk, for a tree.
        parts: The entries of a nested rubric.
        votes: The entries of the members of a jury or a panel.
        judge: The voter; empty if it is not a vote.
        lack: That it has no quote from the candidate, without which it does not count; empty if it does.
        points_off: What a penalty takes off; None of other criteria.
    """

    _truth = ".contribution"

    id: str
    text: str
    status: Kind
    score: float | None = None
    contribution: float | None = None
    weight: float = 1
    answer: str = ""
    value: str = ""
    level: str = ""
    gated: bool = False
    reason: str = ""
    evidence: tuple[Evidence, ...] = ()
    path: tuple[Step, ...] = ()
    parts: tuple[Entry, ...] = ()
    votes: tuple[Entry, ...] = ()
    judge: str = ""
    lack: str = ""
    points_off: float | None = None

    @property
    def result(self) -> str:
        """The contribution, of a guard also whether it was found, of a penalty its points; else why it is missing."""
        if self.points_off is not None:
            return penalty_words(self.points_off, self.contribution)
        if "guard" in self.answer.split(", ") and self.contribution in (0, 1):
            return f"{self.contribution:.2f} ({'not ' * (self.contribution == 1)}found)"
        return self.status.replace("_", " ") if self.contribution is None else f"{self.contribution:.2f}"

    @property
    def figure(self) -> str:
        """The result in a word or a number, for a column."""
        nothing = self.parts and all(part.status == "not_applicable" for part in self.parts)
        return f"{self.result}, vacuous" if nothing else self.result

    @property
    def verdict(self) -> str:
        """The result, the quote that it lacks, and whether it failed the grade."""
        return ", ".join(filter(None, (self.figure, self.lack, "gate failed" if self.gated else "")))

    @property
    def quotes(self) -> str:
        """The quotes on one line; those that are not in the candidate are marked."""
        return " ".join(f"“{line(e.text, 120)}”{'' if e.verified else ' (not found)'}" for e in self.evidence)

    @property
    def walk(self) -> str:
        """The walk down its tree, on one line."""
        return walk_of(self.path)

    def proof(self, row: Row, limit: int = 600) -> str:
        """Return the quotes and the walk on one line, without a walk that is also that of the whole *row*."""
        steps = self.walk if self.path != row.path else ""
        return " · ".join(line(text, limit) for text in (self.quotes, steps) if text)

    def label(self, limit: int = 160) -> str:
        """Return the id on one line, with the text if the id is not made of that."""
        return label(self.id, self.text, limit)


@frozen
class Vote(NoTruth):
    """The result of one member of a jury or a panel."""

    judge: str
    score: float | None
    passed: bool | None
    verdict: str = ""

    @property
    def figure(self) -> str:
        """The score, or that there is none."""
        return "no score" if self.score is None else f"{self.score:.2f}"


@frozen
class Row(NoTruth, Plain):
    """
    The result of one case, as plain data.

    Args:
        id: The case's, with its cell in a matrix.
        status: `passed`; `failed`; `ungraded` (something could not be judged); `deferred` (it had no candidate or no
            judge).
        score: In 0..1; None without a grade.
        verdict: `pass`, `borderline` or `fail`; empty without a grade.
        shown: The score on the rubric's scale, for people.
        threshold: What the score had to meet; None where the judge's own pass flag decided.
        bounds: The lowest and the highest score that the findings allow.
        reason: Why it failed, is ungraded or deferred, in a sentence or two; empty for a plain pass.
        rubric: The rubric's name.
        judge: The name of the judge.
        input: What the candidate answers.
        output: The candidate's text; empty if there was none.
        run: The steps of the candidate's run, each as a judge is shown it.
        entries: One for each criterion.
        votes: The results of the members of a jury or a panel.
        gates: The ids of the criteria that failed the grade whatever the mean is.
        path: The walk, where the rubric is one tree.
        warnings: For people.
        usage: Of judges, target and scripts.
        cell: The coordinates in a matrix.
        tags: The case's labels.
        place: Where the case was written.
        vacuous: True if no criterion applied.
        needs: What the verdict is measured by: `needs 0.80`, `needs 2 of 3 votes`, `by the judge's own verdict`.
        metrics: What the run of the candidate took, as far as it is known, by the names of `Candidate.metrics`.
        result: The whole result; it is not written to files, and None in a report that was read from one.
    """

    _truth = '.status == "passed"'

    id: str
    status: Status
    score: float | None = None
    verdict: str = ""
    shown: str = ""
    threshold: float | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    reason: str = ""
    rubric: str = ""
    judge: str = ""
    input: str = ""
    output: str = ""
    run: tuple[str, ...] = ()
    entries: tuple[Entry, ...] = ()
    votes: tuple[Vote, ...] = ()
    gates: tuple[str, ...] = ()
    path: tuple[Step, ...] = ()
    warnings: tuple[str, ...] = ()
    usage: Usage = Usage()
    cell: FrozenMap = FrozenMap()
    tags: tuple[str, ...] = ()
    place: Place | None = None
    vacuous: bool = False
    needs: str = ""
    metrics: FrozenMap = field(factory=FrozenMap, eq=False)  # two runs alike do not last equally long
    result: Grade | Ungraded | None = field(default=None, eq=False, repr=False, metadata=UNWRITTEN)

    @property
    def remark(self) -> str:
        """A note on a pass to which no criterion applied, so that it does not look like a judged 1.00; else ''."""
        return "vacuous: nothing applied" if self.vacuous else ""

    @property
    def walk(self) -> str:
        """The walk down the rubric's tree, on one line."""
        return walk_of(self.path)

    def figure(self, between: str) -> str:
        """Return the score on its scale; for an ungraded case, its bounds with *between* in the middle; or nothing."""
        if self.score is not None:
            return line(self.shown, 40) or f"{self.score:.2f}"
        return f"{self.bounds[0]:.2f}{between}{self.bounds[1]:.2f}" if self.status == "ungraded" else ""

    @property
    def would(self) -> str:
        """What an ungraded case would be whatever the missing verdicts are; empty if it is graded or undecided."""
        passed = self.result.outcome.passed if self.result is not None and self.status == "ungraded" else None
        return "" if passed is None else WOULD[passed]

    @property
    def shortfall(self) -> str:
        """The score with as many decimals as show that it is below the threshold; empty if it is not."""
        if self.score is None or self.threshold is None or self.score >= self.threshold:
            return ""
        return below(self.score, self.threshold)

    def all_entries(self) -> Iterator[tuple[str, Entry]]:
        """Yield each entry, then those of its nested rubric, with the ids from the top: `style/greets`."""
        return _flat(self.entries)

    def falls_short(self, entry: Entry) -> bool:
        """True if *entry* failed the grade, or contributes less than the whole grade has to reach."""
        if entry.gated:
            return True
        enough = 1.0 if self.threshold is None else self.threshold
        return entry.contribution is not None and bool(entry.weight) and entry.contribution < enough - TOLERANCE


def below(score: float, mark: float, digits: int = 2) -> str:
    """Format a *score* below *mark* with as many decimals as show that it is below, at least *digits*."""
    texts = (f"{score:.{more}f}" for more in range(digits, 17))
    return next((text for text in texts if float(text) < mark), repr(score))


def label(id: str, text: str, limit: int = 160) -> str:
    """Return the *id* of a criterion on one line, with its *text* if the id is not made of that."""
    name = line(id, 80)
    return name if not text or text == id or slug(text) == id else f"{name}: {line(text, limit)}"


def walk_of(path: Iterable[Step]) -> str:
    """Return the questions of a tree that were asked, each with its answer."""
    return " → ".join(f"{line(step.question, 120)} {'yes' if step.yes else 'no'}" for step in path)


def _flat(entries: Iterable[Entry], within: str = "") -> Iterator[tuple[str, Entry]]:
    for entry in entries:
        name = f"{within}/{line(entry.id, 80)}" if within else line(entry.id, 80)
        yield name, entry
        yield from _flat(entry.parts, name)


# -- words for results, which cards and texts share ------------------------------------------------------------


def needs_of(result: Result) -> str:
    """Return what the verdict of *result* is measured by: votes, a score, or the judge's own verdict."""
    rubric, judge = result.rubric, result.judge
    if isinstance(judge, Cascade) and result.votes:
        judge = result.votes[-1].judge
    if isinstance(judge, Jury) or (isinstance(judge, Panel) and judge.aggregate == "majority"):
        if judge.consensus is None:
            return "needs more than half of the votes"
        if isinstance(judge, Jury) or len({*(judge.weights or [1])}) == 1:
            votes = len(judge.members)
            return f"needs {passes_needed(judge.consensus, votes)} of {votes} votes"
        return f"needs {judge.consensus:.0%} of the votes by weight"
    if rubric.strict:
        return "needs 1.00"
    if rubric.threshold is None:
        return "by the judge's own verdict"
    return f"{'has to stay below' if rubric.negate else 'needs'} {rubric.threshold:.2f}"


def lack_of(rubric: Rubric, criterion: Criterion, finding: Finding) -> str:
    """Return that *finding* lacks the quote without which it does not count; nothing if it does not."""
    if not isinstance(finding, Scored) or is_substantiated(rubric, criterion, finding):
        return ""
    return "its quote is not in the candidate" if finding.evidence else "no quote from the candidate"


def points_off(criterion: Criterion, contribution: float | None) -> float | None:
    """Return what a penalty takes off, in points; None of other criteria, and while it is not known."""
    is_penalty = criterion.polarity == "penalty" and contribution is not None
    return criterion.weight * (1 - contribution) if is_penalty and contribution is not None else None


def penalty_words(points: float, contribution: float | None) -> str:
    """Return whether a penalty was found, and what it takes off."""
    if not points:
        return "not found"
    return f"-{points:.3g}" if contribution else f"found, -{points:g}"


def reason_of(criterion: Criterion, finding: Finding) -> str:
    """Return the reason of *finding*; of a check, without the words that its criterion has said already."""
    reason = getattr(finding, "reason", "")
    return reason.removeprefix(f"{criterion.text}: ") if isinstance(criterion.answer, Check) else reason


# -- from results to rows ---------------------------------------------------------------------------------


@frozen(eq=False)
class RowBuilder:
    """Builds the rows of many results; a text that many of them share, such as a criterion's, is masked once."""

    # Both caches end with the builder. A secret that enters the environment meanwhile is masked in everything that is
    # produced later (outputs, reasons), but not in a text of a rubric that was masked before.
    _labels: dict[str, str] = field(factory=dict, init=False)
    # By `id()`, since hashing a criterion costs more than masking it; the value keeps the criterion alive, or another
    # criterion could get its number.
    _criteria: dict[int, tuple[Criterion, str, str, str]] = field(factory=dict, init=False)

    def of(self, result: Grade | Ungraded, id: str = "", candidate: Candidate | None = None, **more: Any) -> Row:
        """
        Return *result* as a row.

        Args:
            id: The row's; left empty, the candidate's key or the place of the result.
            candidate: The graded candidate; None: the result's own, if it kept one.
            more: Further fields of the row, which replace those that the result gives.
        """
        candidate = candidate or result.candidate or Candidate("")
        output = _Output(candidate.output)
        score, verdict = result.outcome.score, result.outcome.verdict
        where = "" if result.index is None else f"#{result.index}"
        fields: dict[str, Any] = {
            **self.of_candidate(candidate, output),
            "id": clean(id or result.key or where or result.rubric.name or "result"),
            "rubric": self._label(result.rubric.name),
            "threshold": result.rubric.threshold,
            "status": "ungraded" if score is None else "passed" if result.outcome.worst.passed else "failed",
            "score": score,
            "verdict": verdict or "",
            "shown": "" if score is None else result.rubric.scale.show(score, passed=result.outcome.worst.passed),
            "bounds": result.bounds,
            "judge": self._label(result.judge.name) if result.usage.calls else "",  # code alone takes no calls
            "entries": self._entries(result.rubric, result, result.findings, output),
            "votes": tuple(
                Vote(self._label(name), vote.outcome.score, vote.passed, vote.outcome.verdict or "ungraded")
                for name, vote in zip(_names(result.votes), result.votes, strict=True)
            ),
            "gates": tuple(map(self._label, result.outcome.gates)),
            "path": self._steps(result.path),
            "warnings": tuple(map(clean, result.warnings)),
            "usage": result.usage,
            "vacuous": result.outcome.vacuous,
            "needs": needs_of(result),
            "result": result,
            **more,
        }
        if "reason" not in fields:
            has_passed = score is not None and result.outcome.worst.passed
            fields["reason"] = "" if has_passed else clean(_why(result))
        return Row(**fields)

    def of_record(self, data: object, rubric: Rubric) -> Row:
        """Return the result of *rubric* that `to_dict` wrote as *data*, as a row without its candidate."""
        record = Record.from_dict(data, "results")
        found = {finding.id: finding for finding in record.findings}
        judged = [each for each in rubric.judged if each.id in found]
        return Row(
            "",
            "ungraded" if record.score is None else "passed" if record.passed else "failed",
            record.score,
            record.verdict or "",
            shown="" if record.score is None else f"{record.score:.2f}",
            threshold=rubric.threshold,
            bounds=record.bounds,
            entries=tuple(self.entry(each, found[each.id], record, None, rubric) for each in judged),
            gates=record.gates,
            vacuous=record.vacuous,
        )

    def of_candidate(self, candidate: Candidate, output: _Output | None = None) -> dict[str, Any]:
        """Return the fields of a row that show *candidate*."""
        run = numbered_steps(candidate.part) if candidate.part else ()
        text = clean(candidate.output) if output is None else output.text
        took = {name: value for name, value in asdict(candidate.metrics).items() if value not in (None, "")}
        shown = {"input": clean(candidate.input), "output": text, "run": tuple(clean(step.text) for step in run)}
        return {**shown, "metrics": FrozenMap(took)}

    def _label(self, text: str) -> str:
        """Return *text* of the suite or of a judge, masked."""
        if text not in self._labels:
            self._labels[text] = clean(text)
        return self._labels[text]

    def _entries(
        self, rubric: Rubric, result: Grade | Ungraded, findings: Sequence[Finding], output: _Output
    ) -> tuple[Entry, ...]:
        """Return an entry for each criterion, which holds those of the votes; *findings* are the result's."""
        own = self._of_rubric(rubric, findings, result.outcome, output)
        if not result.votes:
            return own
        ballots = [
            (self._label(name), self._entries(rubric, vote, vote.findings, output))
            for name, vote in zip(_names(result.votes), result.votes, strict=True)
        ]
        return tuple(
            evolve(entry, votes=tuple(evolve(ballot[n], judge=name) for name, ballot in ballots))
            for n, entry in enumerate(own)
        )

    def _of_rubric(
        self, rubric: Rubric, findings: Sequence[Finding], result: Outcome, output: _Output
    ) -> tuple[Entry, ...]:
        pairs = zip(rubric.judged, findings, strict=True)
        return tuple(self.entry(criterion, finding, result, output, rubric) for criterion, finding in pairs)

    def entry(
        self,
        criterion: Criterion,
        finding: Finding,
        result: Outcome | Record,
        output: _Output | None = None,
        rubric: Rubric | None = None,
    ) -> Entry:
        """Return the entry of *criterion*; without the *output*, it has no quotes and no parts."""
        id_, text, answer = self._criterion(criterion)
        more: dict[str, Any] = {}
        if isinstance(finding, Scored):
            value = finding.value
            if isinstance(value, bool):
                value = "yes" if value else "no"
            elif isinstance(value, int | float):
                value = f"{value:g}"
            more |= {
                "score": finding.score,
                "value": self._label(value or ""),
                "level": self._label(finding.level),
                "evidence": () if output is None else tuple(map(output.quote, finding.evidence)),
            }
        if isinstance(finding, Scored | Unjudged):
            more["path"] = self._steps(finding.path)
            inner = criterion.answer
            if isinstance(inner, Rubric) and finding.parts and output is not None:
                more["parts"] = self._of_rubric(inner, finding.parts, outcome(inner, finding.parts), output)
        if isinstance(finding, Unjudged):  # the failure, without the name of its own criterion
            own = finding.failure.criterion == finding.id
            reason = clean(str(evolve(finding.failure, criterion="") if own else finding.failure))
        else:
            reason = reason_of(criterion, finding)
            reason = clean(reason) if "parts" in more else reason  # it names criteria
        contribution = result.contributions.get(criterion.id)
        return Entry(
            id_,
            text,
            KINDS[type(finding)],
            contribution=contribution,
            weight=criterion.weight,
            answer=answer,
            gated=criterion.id in result.gates,
            reason="" if reason == more.get("value") else reason,
            lack="" if rubric is None else lack_of(rubric, criterion, finding),
            points_off=points_off(criterion, contribution),
            **more,
        )

    def _criterion(self, criterion: Criterion) -> tuple[str, str, str]:
        known = self._criteria.get(id(criterion))
        if known is None:
            id_, text, answer = map(self._label, (criterion.id, criterion.text, describe(criterion)))
            known = self._criteria[id(criterion)] = (criterion, id_, text, answer)
        return known[1:]

    def _steps(self, path: Iterable[Step]) -> tuple[Step, ...]:
        return tuple(evolve(step, question=self._label(step.question)) for step in path)


class _Output:
    """The text of a candidate, masked, and where quotes lie in it."""

    def __init__(self, text: str) -> None:
        self._unmasked = text
        self.text = clean(text)

    @cached_property
    def _move(self) -> Any:
        return map_offsets(whole(self._unmasked), self.text)

    def quote(self, evidence: Evidence) -> Evidence:
        """Return *evidence* with its text and its place in the masked text."""
        if evidence.start is None or evidence.end is None or evidence.where != "output":
            return evidence
        start, end = self._move(evidence.start)[0], self._move(evidence.end)[1]
        return evolve(evidence, text=self.text[start:end], start=start, end=end)


def _names(votes: Sequence[Grade | Ungraded]) -> list[str]:
    """Return the name of the judge of each vote; equal names are numbered."""
    names = [vote.judge.name for vote in votes]
    return [f"{name} #{names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def count_votes(result: Any) -> str:
    """Return `1 of 2 votes pass`, of those that were given; a tie and judges that gave none are said."""
    given = [vote.passed is True for vote in result.votes if vote.outcome.score is not None]
    by, lack = result.judge, len(result.votes) - len(given)
    is_tie = isinstance(by, Panel) and by.aggregate == "majority" and by.consensus is None
    words = ["a tie"] if is_tie and 2 * sum(given) == len(given) > 0 else []
    words += [f"{counted(lack, 'judge')} gave none"] if lack else []
    return f"{sum(given)} of {counted(len(given), 'vote')} pass" + (f" ({', '.join(words)})" if words else "")


def _why(result: Any) -> str:
    """Return why *result*, which is not a pass, is none."""
    if result.outcome.score is None:
        head, *lines = result.explain().splitlines()
        return shorten(f"{head}: {'; '.join(line.strip() for line in lines)}", 1_000)
    if result.degenerate:
        return f"the candidate {result.degenerate}"
    rubric, score = result.rubric, result.outcome.score
    if rubric.negate:
        return f"it meets {rubric.name or 'the rubric'!r}, which it must not"
    reasons = []
    alone = rubric.threshold is None and not rubric.strict and not result.votes
    for id_ in result.gates or (failing(rubric, result.findings) if alone else ()):
        failed = next((vote for vote in result.votes if id_ in vote.outcome.gates), result)  # who says why it fails
        finding = next(each for each in failed.findings if each.id == id_)
        said = shorten(finding.reason, 300) if isinstance(finding, Scored) else ""
        bar = getattr(rubric[id_].answer, "threshold", None)
        if isinstance(finding, Scored) and bar is not None and finding.score < bar:  # of a rubric in it
            said = f"{below(finding.score, bar, 3)} is below its threshold {bar:g}"
        reasons.append(f"{id_!r} failed it ({said})" if said else f"{id_!r} failed it")
    if result.votes:
        reasons.append(count_votes(result))
    if rubric.strict and score < 1:
        reasons.append(f"the score {below(score, 1, 3)} is not perfect, and the rubric is strict")
    elif rubric.threshold is not None and score < rubric.threshold:
        reasons.append(f"the score {below(score, rubric.threshold, 3)} is below the threshold {rubric.threshold:g}")
    return "; ".join(reasons) or shorten(result.feedback() or "the judge did not pass it", 600)
