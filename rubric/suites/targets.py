"""Where the candidate of a case comes from when there is no fixed response."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from attrs import field, frozen

from rubric.candidates import Candidate
from rubric.errors import RubricError
from rubric.exchanges import Usage
from rubric.suites.cases import Case

__all__ = ["DeferError", "Response", "Target"]


class DeferError(RubricError):
    """There is no candidate to judge, for a reason that is not the candidate's: no key, no server."""


@frozen
class Response:
    """
    A candidate that a target made, and what making it used.

    Args:
        candidate: What is to be graded.
        usage: Of all requests that the target sent for it; it is part of what the case costs.
        warnings: What a person should know of how it was made; they belong into the row of the case.
    """

    candidate: Candidate
    usage: Usage = field(factory=Usage)
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, made: Candidate | Response, /) -> Response:
        """Return *made* as a response; a bare candidate used nothing that is known of."""
        return made if isinstance(made, Response) else cls(made)


@runtime_checkable
class Target(Protocol):
    """
    What makes candidates.

    It raises `DeferError` where it cannot try, and `ModelError` where it tried and failed; the failure's usage is what
    that used. Whoever runs a suite takes either form of what it returns through `Response.of`.
    """

    async def respond(self, case: Case, /) -> Candidate | Response:
        """Return the candidate for *case*, with its usage where that is known."""
        ...
