"""
A circuit breaker: a judge that no request can reach is asked no more.

A wrong key, an empty account or the name of a model that is not there fails every request alike. Where the requests
about three candidates have failed so, further ones are not sent: they fail at once, for a minute. After a reply only an
empty account counts: the same key and name have worked. A panel without a quorum needs each of its members, so none of
them is asked: their votes would be paid for, and graded nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from attrs import define, evolve, field

from rubric.values.judges import AnyJudge, Judge, Jury, Panel
from rubric.values.requests import Ask, Failure, Usage

_CANDIDATES = 3
_SECONDS = 60.0
_NOT_FOUND = 404


@define(eq=False)
class Breaker:
    """
    What is known of the judges that fail, in one run.

    Args:
        judge: The judge of the run, of which some may be needed for every result; None if there are several.
        clock: Returns seconds that never go back.
    """

    judge: AnyJudge | None = None
    clock: Callable[[], float] = time.monotonic
    _failures: dict[int, tuple[object, set[str]]] = field(factory=dict)  # by the judge's id: what, for which candidates
    _until: dict[int, tuple[float, Failure]] = field(factory=dict)

    def note(self, ask: Ask, failure: Failure, *, has_replied: bool) -> None:
        """Note that *ask* failed for good; *has_replied*: whether its judge has answered any request so far."""
        is_general = failure.kind in ("auth", "bad_request") and not has_replied
        if not (failure.kind == "quota" or is_general):
            return
        told = "" if failure.kind != "bad_request" or failure.status == _NOT_FOUND else failure.message
        sign = (failure.kind, failure.status, told)
        last, candidates = self._failures.get(id(ask.judge), (sign, set()))
        if last != sign:
            candidates = set()
        candidates.add(ask.messages[-1].parts[0])  # the same in all asks about one candidate, whatever the criterion
        self._failures[id(ask.judge)] = sign, candidates
        if len(candidates) >= _CANDIDATES:
            self._open(ask, failure)

    def refusal(self, ask: Ask) -> Failure | None:
        """Return why *ask* is not sent; None if it may be."""
        found = self._until.get(id(ask.judge))
        if found is None or self.clock() >= found[0]:
            return None
        return evolve(found[1], judge=ask.judge.name)

    def _open(self, ask: Ask, failure: Failure) -> None:
        name, until = ask.judge.name, self.clock() + _SECONDS
        message = f"not sent, since the requests about {_CANDIDATES} candidates failed alike: {failure.message}"
        self._until[id(ask.judge)] = until, evolve(failure, message=message, criterion="", usage=Usage())
        needed = [] if self.judge is None else [*_needed(self.judge)]
        if id(ask.judge) in needed:
            cure = "Panel([...], quorum=...) grades by the others"
            message = f"not sent, since {name} fails alike for all ({failure.message}), and each vote is needed; {cure}"
            others = until, evolve(failure, message=message, criterion="", usage=Usage())
            for each in needed:
                self._until.setdefault(each, others)


def _needed(judge: AnyJudge) -> Iterator[int]:
    """Yield the ids of the single judges without whose votes *judge* gives no result."""
    if isinstance(judge, Panel | Jury):
        if judge.quorum is None and not judge.early_stop:
            for member in judge.judges if isinstance(judge, Panel) else [judge.judge]:
                yield from _needed(member)
    elif isinstance(judge, Judge):
        yield id(judge)
