"""
Conversations between cases: a case whose input shows the responses of earlier cases of its suite.

promptfoo's prompts do so with `_conversation`: the earlier tests of the same provider and prompt are the turns before.
The responses of a live target are known only as the run goes on, so a case is continued when those before it have
theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from rubric import ModelError
from rubric.driving import Failure
from rubric.embed import shorten
from rubric.suites.cases import Case
from rubric.suites.targets.base import DeferError

if TYPE_CHECKING:
    from rubric.suites.suite import Suite


@frozen(eq=False)
class Conversations:
    """The conversations of a suite as far as they have been held."""

    turns: dict[Any, dict[int, Case | Exception]] = field(factory=dict)

    def take(self, case: Case, response: str | Exception) -> None:
        """Keep the *response* to *case*, or the error in its place."""
        if case.history is not None:
            said = case.answered(response) if isinstance(response, str) else response
            self.turns.setdefault(_key(case), {})[case.history.turn] = said

    def continue_case(self, case: Case) -> Case:
        """
        Return *case* after the earlier ones of its conversation.

        Raises:
            DeferError: One of them was deferred.
            ModelError: One of them has no response.
            DefinitionError: Its input cannot be made of them.
        """
        history = case.history
        if history is None or history.shown is None:
            return case
        known, earlier = self.turns.get(_key(case), {}), list[Case]()
        for turn in range(1, history.turn):
            found = known.get(turn)
            if found is None or isinstance(found, Exception):
                why = "it is not in the run" if found is None else shorten(Failure.of(found).message, 300)
                message = f"it continues a conversation whose turn {turn} has no response: {why}"
                raise (
                    DeferError(message) if isinstance(found, DeferError) else ModelError(Failure("exception", message))
                )
            earlier.append(found)
        return evolve(history.shown(case, earlier), history=evolve(history, shown=None))


def _key(case: Case) -> Any:
    cell = tuple(sorted((name, str(value)) for name, value in case.cell.items()))
    return None if case.history is None else (case.history.conversation, cell)


def settle(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield *cases*, each continued where the earlier ones of its conversation have fixed responses."""
    held = Conversations()
    for case in cases:
        try:
            found = held.continue_case(case)
        except Exception:  # noqa: BLE001 - it is told when the case is run
            found = case
        if found.output is not None and (found is not case or case.history is None or case.history.shown is None):
            held.take(found, found.output)
        yield found


def conclude(suite: Suite) -> Suite:
    """Return *suite* for a file: a case with the responses before it in its input has no `history` any more."""
    if not any(case.history for case in suite.cases):
        return suite
    cases = settle(suite.cases)
    return evolve(suite, cases=[evolve(c, history=None) if c.history and not c.history.shown else c for c in cases])


def chains(cases: Iterable[Case]) -> list[list[int]]:
    """Return the places of *cases*: those of one conversation together and in order, each other one by itself."""
    found: dict[Any, list[int]] = {}
    for index, case in enumerate(cases):
        found.setdefault(index if case.history is None else _key(case), []).append(index)
    return [*found.values()]
