"""
The server of a judge beside the calls that grade: for requests that it answers later, in files.

Such a request is the one that `Judge(via="http")` sends, and its response is parsed the same way. All of it goes
straight over HTTP, for other judges too: LiteLLM opens a client for each of these calls and closes none.
"""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import frozen

from rubric.errors import ModelError
from rubric.models.chat_completions import CALL, body_of, reply_from
from rubric.models.failure_kinds import error_in, failure_of_status, words_of
from rubric.models.http_bodies import MOST_BYTES, parse, pour, too_long
from rubric.models.http_client import request, whole
from rubric.models.offline import OFFLINE
from rubric.models.openai_http import destination_of
from rubric.models.pricing import with_cost
from rubric.models.retry import persist
from rubric.values.requests import Failure, Reply

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import aiohttp

    from rubric.values.judges import Judge
    from rubric.values.requests import Ask


T = TypeVar("T")
_SECONDS = 600.0  # for a file of many megabytes; a judge's own timeout is for one reply


@frozen
class Service:
    """The server that answers for *judge*, at its address and with its key; what goes wrong raises `ModelError`."""

    judge: Judge

    @property
    def speaks_openai(self) -> bool:
        """True if it is OpenAI's, or one of its protocol whose address is given in code."""
        judge = self.judge
        if not isinstance(judge.model, str) or judge.model == OFFLINE:
            return False
        return judge.name.startswith("openai/") or "/" not in judge.name or "api_base" in judge.params

    @property
    def place(self) -> tuple[object, ...]:
        """Address, key and payer, to tell by whether two judges share what is kept there."""
        endpoint = destination_of(self.judge).endpoint
        return (endpoint.url, *sorted(endpoint.headers.items()))

    def body_of(self, ask: Ask) -> tuple[str, bytes, tuple[str, ...]]:
        """Return a key made of all that determines the reply to *ask*, the body, and the parameters left out of it."""
        endpoint = destination_of(self.judge).endpoint
        body = body_of(ask, endpoint)
        told = f"{endpoint.url}\n{ask.vote}\n{ask.repair}\n".encode()
        return sha256(told + body.content).hexdigest()[:40], body.content, body.unsent

    def outcome(self, status: int, body: object, unsent: tuple[str, ...]) -> Reply | Failure:
        """Return the reply, or the failure, in a response from a file: a chat completion, or an error."""
        to = destination_of(self.judge)
        if status // 100 != 2:  # noqa: PLR2004 - a success
            return failure_of_status(status, json.dumps(body), secrets=to.endpoint.secrets)
        try:
            said, price = body if isinstance(body, dict) else {}, partial(with_cost, self.judge, in_batch=True)
            return reply_from(said, unsent, to.endpoint.secrets, price, to.remarks)
        except ModelError as problem:
            return problem.failure

    def words(self, text: str) -> str:
        """Return the vendor's message in *text*, without secrets."""
        return words_of(text, destination_of(self.judge).endpoint.secrets)

    async def call(self, method: str, path: str, **sent: Any) -> dict[str, Any]:
        """Return the JSON object in the response to a request; raise also for an error in a 200."""

        async def body(response: aiohttp.ClientResponse) -> bytes:
            return await whole(response.content, response.status, response.headers, MOST_BYTES)

        said = _object_in(await self._request(method, path, body, **sent))
        if said.get("error") and "id" not in said:
            raise ModelError(error_in(said["error"], destination_of(self.judge).endpoint.secrets))
        return said

    async def read_lines(self, path: str, take: Callable[[dict[str, Any]], None]) -> None:
        """Call *take* with the JSON object of each line at *path*, one by one: all of them may be too large to hold."""
        rest = bytearray()

        def split(piece: bytes) -> None:
            *whole_lines, last = piece.split(b"\n")
            for text in whole_lines:
                take(_object_in(bytes(rest + text)))
                rest.clear()
            rest.extend(last)
            if len(rest) > MOST_BYTES:
                raise too_long(MOST_BYTES)

        async def pieces(response: aiohttp.ClientResponse) -> None:
            await pour(response.content.iter_any(), response.headers.get("Content-Encoding", ""), split)
            take(_object_in(bytes(rest)))

        await self._request("GET", path, pieces)

    async def _request(
        self, method: str, path: str, read: Callable[[aiohttp.ClientResponse], Awaitable[T]], **sent: Any
    ) -> T:
        server = destination_of(self.judge).server
        url = server.url.partition("?")[0].removesuffix(CALL) + path
        headers = {name: value for name, value in server.headers.items() if name != "Content-Type"}
        return await request(server, method, url, _SECONDS, read, headers=headers, **sent)

    async def persist(self, once: Callable[[], Awaitable[T]], *, resends: bool = True) -> T | Failure:
        """Return the result of *once*, or its last failure after the retries of the judge; see `retry.persist`."""

        async def catch() -> T | Failure:
            try:
                return await once()
            except ModelError as error:
                return error.failure

        return (await persist(catch, self.judge.retries, resends=resends))[0]


def _object_in(text: bytes) -> dict[str, Any]:
    """Return the JSON object in *text*; an empty one if it cannot be read."""
    with suppress(ModelError):
        if isinstance(said := parse(text), dict):
            return said
    return {}
