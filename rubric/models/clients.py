"""
An HTTP client for LiteLLM that sends a request once.

LiteLLM's own sends it again, unasked and uncounted, when the connection breaks. What we count is what has left, so for
vendors that take a client of that kind, one is given that does not.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["client_for"]

_TAKERS = frozenset({"anthropic"})
_NAME = "rubric-sends-once"


def client_for(litellm: Any, provider: str) -> dict[str, Any]:
    """Return the argument that gives *provider* a client that sends once; nothing where clients are of another kind."""
    if provider not in _TAKERS:
        return {}
    kept = litellm.in_memory_llm_clients_cache  # whoever closes LiteLLM's clients, or forgets them, does so with ours
    client = kept.get_cache(_NAME)
    if client is None:
        client = _kind()()
        kept.set_cache(_NAME, client)
    return {"client": client}


@cache
def _kind() -> type:
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler  # noqa: PLC0415 - after the switches are set

    class SendsOnce(AsyncHTTPHandler):  # type: ignore[misc]  # LiteLLM has no types
        async def single_connection_post_request(self, *_: Any, **__: Any) -> Any:
            """Raise the error over which it would send again."""
            raise  # noqa: PLE0704 - called while that error is handled

    return SendsOnce
