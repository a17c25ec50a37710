"""Several gates as one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from rubric.drivers.attempts import Gate, Settle
from rubric.exchanges import Ask, Failure, Reply

__all__ = ["gates"]


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
