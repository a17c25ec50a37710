"""
The proof of a conversion: the stored replies of a run, graded again under the converted file.

Nothing is sent. A case of both suites is graded with the replies that the store has; its candidate is that of the
suite before, since not every format holds one. A case that the converted file would ask about in other words has no
reply there: its verdict is unknown, and it is listed as well.
"""

from __future__ import annotations

from attrs import field, frozen

from rubric import Candidate, DefinitionError, Grade, Store, Ungraded
from rubric.driving import Ask, Failure, Reply
from rubric.embed import Listed, clean, run, shorten
from rubric.suites.assignment import assign, graded
from rubric.suites.cases import Case
from rubric.suites.suite import Suite, paired
from rubric.values import AnyJudge, as_judge


@frozen
class Changed:
    """The case *id*, and its verdicts *before* and *after* the conversion, in a few words."""

    id: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.id}: {self.before} before, {self.after} after"


@frozen(repr=False)
class Proof(Listed[Changed]):
    """
    Where a converted suite grades otherwise.

    Args:
        changes: One for each case whose verdict or score changes, or is unknown now.
        same: How many cases are graded as before.
        unproven: The ids of cases that the store has no replies for, that have no candidate, or that neither grades.
    """

    _kind = "change"
    _items = "changes"

    changes: tuple[Changed, ...] = ()
    same: int = 0
    unproven: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"<Proof: {self.same} cases as before, {len(self.changes)} changed, {len(self.unproven)} not stored>"


def prove(before: Suite, after: Suite, store: Store, judge: AnyJudge | str | None = None) -> Proof:
    """
    Return where *after*, which *before* was converted to, grades the replies in *store* otherwise.

    Args:
        store: That of a run of *before*, opened with `mode="replay"`.
        judge: The judge of that run, if the caller named one.

    Raises:
        DefinitionError: The store could send what it does not have.
    """
    if store.mode != "replay":
        raise DefinitionError(
            "store", f"a proof sends nothing, and this store would; Store({str(store.path)!r}, mode='replay')"
        )
    return run(_proved(before, after, store, None if judge is None else as_judge(judge)))


async def _proved(before: Suite, after: Suite, store: Store, judge: AnyJudge | None) -> Proof:
    changes, unproven, same = [], [], 0
    for old, new in paired(before, after):
        result = None if old.candidate is None else await _replayed(before, old, old.candidate, store, judge)
        if result is None or old.candidate is None or _is_unknown(result):
            unproven.append(old.id)
            continue
        said = "left out" if new is None else _words(await _replayed(after, new, old.candidate, store, judge))
        if said != _words(result):
            changes.append(Changed(clean(old.id), _words(result), said))
        elif isinstance(result, Grade):
            same += 1
        else:  # it was not graded, and is not: nothing is known of either
            unproven.append(old.id)
    return Proof(tuple(changes), same, tuple(unproven))


async def _replayed(
    suite: Suite, case: Case, candidate: Candidate, store: Store, judge: AnyJudge | None
) -> Grade | Ungraded:
    own = Candidate(
        candidate.output,
        **{name: getattr(candidate, name) for name in ("tool_calls", "file_changes", "files", "metrics")},
        **{name: getattr(case, name) for name in ("input", "reference", "messages", "context", "variables", "images")},
    )
    return await graded(own, case.rubric, assign(case, judge, suite.judge), store.transport(_never))


async def _never(_: Ask) -> Reply | Failure:
    raise AssertionError


def _is_unknown(result: Grade | Ungraded) -> bool:
    return isinstance(result, Ungraded) and any(failure.kind == "replay" for failure in result.failures)


def _words(result: Grade | Ungraded) -> str:
    if isinstance(result, Grade):
        return f"{result.verdict} ({result.score:.4g})"
    if _is_unknown(result):
        return "asked in other words, so not known"
    return f"ungraded ({shorten(str(result.failures[0].kind), 40) if result.failures else 'nothing to grade'})"
