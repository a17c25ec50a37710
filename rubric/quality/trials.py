"""
Run the tests of a rubric with a judge, or from a store: `check(rubric, judge)`.

A test whose reply could not be judged has neither passed nor failed. The repeats of a test are the votes of a jury, so
a store that has them serves them without a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from rubric import Budget, Criterion, DefinitionError, Grade, Jury, Rubric, Ungraded, grade_many, load
from rubric.driving import Usage
from rubric.embed import (
    CONCURRENCY,
    TOLERANCE,
    JudgeLike,
    Limiter,
    NoTruth,
    Presented,
    StoreLike,
    Table,
    counted,
    fields,
    guided,
    judge_or_default,
    shorten,
)
from rubric.quality.lint_rules import tests_that_are_anchors
from rubric.results import Scored, Unjudged
from rubric.suites.repetition import VERDICT, Flip, Flips, count_flips
from rubric.values import RubricTest

Status = Literal["passed", "failed", "ungraded"]
Result: TypeAlias = Grade | Ungraded

_EVEN = 0.5


@frozen(repr=False)
class Trial(NoTruth):
    """
    One test with what the judge said.

    Args:
        test: The test.
        index: Its place among the tests of the rubric, from 0.
        status: `passed`: all that it expects is so in more than half of the repeats. `failed`: something is not.
            `ungraded`: what could not be judged may decide.
        failures: What is not as expected, a sentence each.
        results: The result of each repeat.
    """

    _truth = ".status"

    test: RubricTest
    index: int
    status: Status
    failures: tuple[str, ...]
    results: tuple[Result, ...] = field(repr=False)

    def __repr__(self) -> str:
        return f"<Trial of tests[{self.index}]: {self.status}{': ' if self.failures else ''}{'; '.join(self.failures)}>"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        scores = [result.score for result in self.results]
        told = {"status": self.status, "failures": [*self.failures], "scores": scores}
        return {"index": self.index, "reply": shorten(self.test.candidate.output, 200), **told}


@frozen(repr=False)
class Trials(Presented, Sequence[Trial]):
    """
    What `check` returns: the trials in the order of the tests.

    Args:
        trials: One for each test.
        flips: How often repeats of a test differ, by criterion, and for the verdict; empty without repeats.
        one_sided: The criteria that were not found both met and unmet in the tests: these do not show that the judge
            tells the two apart.
        usage: The calls, tokens and dollars.
    """

    _truth = ".ok"

    trials: tuple[Trial, ...]
    flips: Flips
    one_sided: tuple[str, ...]
    usage: Usage

    def __getitem__(self, at: Any) -> Any:
        return self.trials[at]

    def __len__(self) -> int:
        return len(self.trials)

    def of(self, status: Status) -> tuple[Trial, ...]:
        """Return the trials with one *status*."""
        return tuple(trial for trial in self.trials if trial.status == status)

    @property
    def ok(self) -> bool:
        """True if every test has passed; an ungraded one has not."""
        return len(self.of("passed")) == len(self)

    @property
    def exit_code(self) -> int:
        """0: every test has passed; 1: one has failed; 2: none has failed, and one is ungraded."""
        return 0 if self.ok else 1 if self.of("failed") else 2

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        passed, failed, lost = (len(self.of(status)) for status in ("passed", "failed", "ungraded"))
        told = [f"{passed} of {counted(len(self), 'test')} passed"]
        told += [f"{failed} failed"] if failed else []
        told += [f"{lost} could not be judged"] if lost else []
        return f"{', '.join(told)}; {counted(self.usage.calls, 'call')}."

    def remarks(self) -> list[str]:
        """What the tests do not show."""
        names, verb = ", ".join(map(repr, self.one_sided)), "are" if len(self.one_sided) > 1 else "is"
        said = f"{names} {verb} not both met and unmet in the tests; add a reply for the other side."
        return [said] if self.one_sided else []

    def tables(self) -> list[Table]:
        """Each test in a row; and how often repeats differ."""
        rows = [
            (f"tests[{t.index}]", shorten(t.test.candidate.output, 40), t.status, "; ".join(t.failures)) for t in self
        ]
        out: list[Table] = [("", ("test", "reply", "result", "not as expected"), rows)]
        if len(self.flips):
            shares = ((f, f"{f.flipped / max(1, f.cases):.1%} ({f.flipped} of {f.cases})") for f in self.flips)
            lines = [(flip.id, f"{flip.rate:.1%}", share) for flip, share in shares]
            out.append(("How often repeats differ", ("criterion", "flip rate", "tests that differ"), lines))
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON-able data."""
        head = {"kind": "trials", "sentence": self.sentence, "ok": self.ok, "exit_code": self.exit_code}
        found = {"tests": [trial.to_dict() for trial in self], **self.flips.to_dict()}
        return {**head, **found, "one_sided": [*self.one_sided], "calls": self.usage.calls}


@guided
def check(
    rubric: Rubric | str | PathLike[str],
    judge: JudgeLike | None = None,
    repeats: int = 1,
    *,
    store: StoreLike | None = None,
    budget: Budget | None = None,
    limits: Limiter | None = None,
    concurrency: int = CONCURRENCY,
    progress: bool | None = False,
) -> Trials:
    """
    Run the tests of *rubric*.

    Args:
        rubric: A rubric with tests, or the path of its file. Those of nested rubrics are checked by themselves.
        judge: As for `grade`.
        repeats: How often each reply is graded; from 2 on, `flips` says how often the answers differ.
        store: Keeps every reply, and serves those that it has: a second check makes no call.
        budget: What may be spent; a test that it refuses is ungraded.
        limits: How fast models may be asked.
        concurrency: How many replies are graded at once.
        progress: As for `grade_many`.

    Raises:
        DefinitionError: The rubric has no tests, one names what the rubric does not have, or one is an anchor, which
            the judge has seen.

    Example:
        >>> from rubric import Contains, Rubric, check
        >>> rubric = Rubric().checks(Contains("ticket #"), id="ticket")
        >>> rubric = rubric.tested_by("It is ticket #12.", passes=True).tested_by("It is done.", fails=["ticket"])
        >>> check(rubric, "offline").sentence
        '2 of 2 tests passed; 0 calls.'
    """
    fields.check_count("repeats", repeats)
    if not isinstance(rubric, Rubric | str | PathLike):
        raise fields.refuse("rubric", rubric, "a Rubric, or the path of its file")
    given = rubric if isinstance(rubric, Rubric) else load(fields.as_path("rubric", rubric))
    if not given.tests:
        cure = "add one: rubric.tested_by('a good reply', passes=True); lint(rubric) says what is wrong without any"
        raise DefinitionError("tests", f"the rubric has none; {cure}")
    for index, test in enumerate(given.tests):
        test.check(given, f"tests[{index}]")
    for index, criterion in tests_that_are_anchors(given):
        message = f"its reply is an anchor of {criterion.id!r}, which the judge is shown; give the test another reply"
        raise DefinitionError(f"tests[{index}]", message)
    voting = judge if repeats == 1 else Jury(judge_or_default(judge), repeats)
    options: dict[str, Any] = {"concurrency": concurrency, "store": store, "budget": budget, "limits": limits}
    texts = [test.candidate for test in given.tests]
    graded = grade_many(texts, given, voting, progress=progress, **options).collect()
    repeated = [(one,) if repeats == 1 else one.votes or (one,) for one in graded]
    trials = [_trial(given, at, test, some) for at, (test, some) in enumerate(zip(given.tests, repeated, strict=True))]
    met = [{c.id: _is_met(given, c, result) for c in given.judged} for some in repeated for result in some]
    one_sided = tuple(id_ for id_ in given.ids if {True, False} > {one[id_] for one in met} - {None})
    found = Flips(tuple(_flips(given, repeated))) if repeats > 1 else Flips()
    return Trials(tuple(trials), found, one_sided, Usage.total(one.usage for one in graded))


# -- what a test expects -----------------------------------------------------------------------------------


def _trial(rubric: Rubric, index: int, test: RubricTest, results: Sequence[Result]) -> Trial:
    failures, unknown = [], False
    for words, look in _expectations(rubric, test):
        seen = [look(result) for result in results]
        met, repeats = seen.count(True), len(seen)
        if 2 * (met + seen.count(None)) <= repeats:
            failures.append(words if repeats == 1 else f"{words} in {met} of {repeats} repeats alone")
        elif 2 * met <= repeats:
            unknown = True
    status: Status = "failed" if failures else "ungraded" if unknown else "passed"
    return Trial(test, index, status, tuple(failures), tuple(results))


_Look = Callable[[Result], bool | None]
"""True if a result is as expected, None if that could not be judged."""


def _expectations(rubric: Rubric, test: RubricTest) -> Iterator[tuple[str, _Look]]:
    if (verdict := test.verdict) is not None:
        yield f"the grade does not {'pass' if verdict else 'fail'}", partial(_verdict, verdict)
    if test.score is not None:
        low, high = test.score
        shown = f"{low:g}" if low == high else f"{low:g}..{high:g}"
        yield f"the score is not {shown}", partial(_within, low, high)
    for wanted, ids in ((True, test.met), (False, test.unmet)):
        for id_ in ids:
            yield f"{id_!r} is not {'met' if wanted else 'unmet'}", partial(_meets, rubric, rubric[id_], wanted)
    for id_, value in test.expects.items():
        yield f"{id_!r} is not {value!r}", partial(_answers, rubric[id_], test)


def _verdict(wanted: bool, result: Result) -> bool | None:  # noqa: FBT001
    if isinstance(result, Grade):
        return result.passed is wanted
    return False if result.passed is (not wanted) else None


def _within(low: float, high: float, result: Result) -> bool | None:
    return None if result.score is None else low - TOLERANCE <= result.score <= high + TOLERANCE


def _meets(rubric: Rubric, criterion: Criterion, wanted: bool, result: Result) -> bool | None:  # noqa: FBT001
    return None if isinstance(result[criterion.id], Unjudged) else _is_met(rubric, criterion, result) is wanted


def _answers(criterion: Criterion, test: RubricTest, result: Result) -> bool | None:
    finding = result[criterion.id]
    if isinstance(finding, Scored):
        return test.fits(criterion, finding)
    return None if isinstance(finding, Unjudged) else False


def _is_met(rubric: Rubric, criterion: Criterion, result: Result) -> bool | None:
    """True if *criterion* contributes what it, else the whole grade, has to reach; None where it has no verdict."""
    contribution = result.contributions.get(criterion.id)
    if contribution is None or isinstance(result[criterion.id], Unjudged):
        return None
    enough = criterion.min_score or (_EVEN if rubric.threshold is None else rubric.threshold)
    return criterion.id not in result.outcome.gates and bool(contribution >= enough - TOLERANCE)


def _flips(rubric: Rubric, repeated: Sequence[Sequence[Result]]) -> Iterator[Flip]:
    graded = [[(r.passed, r.score) for r in some if isinstance(r, Grade)] for some in repeated]
    yield count_flips(rubric.name, VERDICT, graded)
    for id_ in rubric.ids:
        found = [[one for r in some if isinstance(one := r[id_], Scored)] for some in repeated]
        yield count_flips(rubric.name, id_, [[(one.score, one.score) for one in some] for some in found])
