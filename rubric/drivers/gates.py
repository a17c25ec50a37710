"""Several gates as one; and what is said of a gate that somebody wants to send to another process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from rubric.drivers.attempts import Gate, Settle
from rubric.errors import DefinitionError
from rubric.exchanges import Ask, Failure, Reply

__all__ = ["gates", "of_one_process"]


def gates(*several: Gate | None) -> Gate | None:
    """
    Return one gate that a request passes where it is to pass all of *several*, in order; None for none.

    They are left in the reverse order; each is told what came of the request. Where it gets no further than one of them
    (it is refused there, or cancelled while it waits), those before are told that it has not left.
    """
    present = [gate for gate in several if gate is not None]
    if len(present) < 2:  # noqa: PLR2004
        return present[0] if present else None
    return partial(_passage, present)


@asynccontextmanager
async def _passage(several: Sequence[Gate], ask: Ask) -> AsyncIterator[Settle]:
    async with AsyncExitStack() as stack:
        settles: list[Settle] = []

        def settle(outcome: Reply | Failure | None) -> None:
            for each in settles:
                each(outcome)

        try:
            for gate in several:
                told = await stack.enter_async_context(gate(ask))
                settles.append(told)
        except BaseException:
            settle(None)
            raise
        yield settle


def of_one_process(name: str, example: str) -> DefinitionError:
    """
    Return (not raise) the error for a gate that is pickled or copied: it would count twice what is to count once.

    Args:
        name: What it is given as, `budget` or `limits`.
        example: How one is made, such as `Budget(cost=1.00)`.
    """
    message = (
        "it counts in one process, and can be neither pickled nor copied; give it to "
        f"rubric.clusters.grade_on_cluster(..., {name}={name}), where it holds for all workers together, or make one "
        f"in each process with its share: {example}"
    )
    return DefinitionError(name, message)
