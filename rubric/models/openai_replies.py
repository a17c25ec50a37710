"""From the body of a chat completion, which a stranger's server wrote, to a reply or a typed failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply
from rubric.models.bodies import parsed
from rubric.models.classifying import words_of
from rubric.models.completions import reply_from

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["reply_in"]


def reply_in(body: bytes, unsent: tuple[str, ...] = (), secrets: Iterable[str] = ()) -> Reply:
    """
    Return the reply that *body*, of an answer with status 200, holds, as `completions` reads it.

    Args:
        unsent: The parameters that were left out of the request.
        secrets: What must not be shown in a failure.

    Raises:
        ModelError: It holds none; the failure keeps the usage.
    """
    data = parsed(body, secrets)
    if not isinstance(data, dict):
        said = words_of(body[:1000].decode("utf-8", "replace"), secrets)
        raise ModelError(Failure("bad_response", f"what came back is no chat completion: {said}"))
    return reply_from(data, unsent, secrets)
