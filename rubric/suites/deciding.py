"""What scripts decide is put into the rubric before it is graded, nested rubrics included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve, frozen

from rubric.candidates import Candidate
from rubric.checks import Decided, Holds, Script, Unsupported
from rubric.criteria import Criterion
from rubric.exchanges import Usage
from rubric.grades import Grade, Ungraded
from rubric.grading.checking import applies
from rubric.grading.degenerates import why_degenerate
from rubric.rubrics import Rubric
from rubric.suites.cases import Case
from rubric.suites.scripts import ScriptError, run_script

__all__ = ["Settled", "can_be_judged", "restored", "scripts_of", "settled", "unsupported_of"]

Path = tuple[str, ...]
"""The ids from the rubric down to one of its criteria."""


@frozen
class Settled:
    """A rubric in which no script is left to be run, and what the scripts spent."""

    rubric: Rubric
    usage: Usage = Usage()


def scripts_of(rubric: Rubric, path: Path = ()) -> Iterator[tuple[Path, Criterion]]:
    """Yield every criterion of *rubric* that a script decides, with where it stands."""
    for criterion in rubric.criteria:
        here = (*path, criterion.id)
        if isinstance(criterion.answer, Script):
            yield here, criterion
        elif isinstance(criterion.answer, Rubric):
            yield from scripts_of(criterion.answer, here)


def unsupported_of(rubric: Rubric) -> Iterator[Unsupported]:
    """Yield the graders in *rubric* that this library does not have, nested rubrics included."""
    for criterion in rubric.criteria:
        if isinstance(criterion.answer, Unsupported):
            yield criterion.answer
        elif isinstance(criterion.answer, Rubric):
            yield from unsupported_of(criterion.answer)


def can_be_judged(rubric: Rubric, *, allow_scripts: bool) -> bool:
    """Say whether there is anything in *rubric* that could be judged; else a candidate would be made for nothing."""

    def possible(criterion: Criterion) -> bool:
        match criterion.answer:
            case Rubric() as inner:
                return can_be_judged(inner, allow_scripts=allow_scripts)
            case Script():
                return allow_scripts
            case answer:
                return not isinstance(answer, Unsupported)

    return any(possible(criterion) for criterion in rubric.judged)


async def settled(case: Case, candidate: Candidate) -> Settled:
    """
    Run the scripts of the case's rubric that apply to *candidate*, one after another.

    A script that failed leaves its criterion unjudged, with the failure.
    """
    if case.rubric.degenerate != "judge" and why_degenerate(candidate):
        return Settled(case.rubric)
    made: dict[Path, Decided | Holds] = {}
    usage = Usage()
    for path, criterion in scripts_of(case.rubric):
        if not _applies(case.rubric, path, candidate):
            continue
        assert isinstance(criterion.answer, Script)  # noqa: S101 - as scripts_of says
        try:
            said = await run_script(criterion.answer, case, candidate, _criteria(case, criterion))
        except ScriptError as error:
            made[path] = _failing(criterion.answer, error)
        else:
            made[path] = said.verdict
            usage += said.usage
    return Settled(_replaced(case.rubric, made) if made else case.rubric, usage)


def _criteria(case: Case, criterion: Criterion) -> str:
    """Return what is to be judged, in words: what the case says of it (to AgentV, its context), or the criterion."""
    given = case.metadata.get("criteria")
    return given if isinstance(given, str) and given else case.context or criterion.text


def _applies(rubric: Rubric, path: Path, candidate: Candidate) -> bool:
    criterion = rubric[path[0]]
    if not applies(criterion.when, candidate):
        return False
    return len(path) == 1 or not isinstance(criterion.answer, Rubric) or _applies(criterion.answer, path[1:], candidate)


def _failing(script: Script, error: ScriptError) -> Holds:
    def fail(_: Candidate) -> bool:
        raise error

    fail.__name__ = str(script)
    return Holds(fail)


def _replaced(rubric: Rubric, made: Mapping[Path, Decided | Holds], path: Path = ()) -> Rubric:
    def replace(criterion: Criterion) -> Criterion:
        here = (*path, criterion.id)
        if here in made:
            return evolve(criterion, answer=made[here])
        if isinstance(criterion.answer, Rubric):
            return evolve(criterion, answer=_replaced(criterion.answer, made, here))
        return criterion

    return evolve(rubric, criteria=[replace(criterion) for criterion in rubric.criteria])


def restored(result: Grade | Ungraded, rubric: Rubric) -> Grade | Ungraded:
    """Return *result* with *rubric*, as it stands in the suite, so that it can be rescored under it."""
    if result.rubric is rubric:
        return result
    return evolve(result, rubric=rubric, votes=tuple(restored(vote, rubric) for vote in result.votes))
