"""
OpenAI's batch API: files of requests that are answered within a day, at half the price.

A request in a batch is the one that `Judge(via="http")` would send, and its answer is read the same way. It goes
straight over HTTP too: LiteLLM opens a client for each of these calls and closes none.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any

import aiohttp
from attrs import field, frozen

from rubric.errors import ModelError
from rubric.exchanges import Failure, Reply
from rubric.models.classifying import failure_of, failure_of_status, words_of
from rubric.models.endpoints import endpoint_of, proxy_for
from rubric.models.offline import OFFLINE
from rubric.models.openai_replies import reply_in
from rubric.models.openai_requests import content_of
from rubric.models.sessions import session_here

if TYPE_CHECKING:
    from rubric.exchanges import Ask
    from rubric.judges import Judge
    from rubric.models.endpoints import Endpoint

__all__ = ["BatchState", "Line", "create", "find", "has_batches", "line_of", "replies", "state"]

_MARK = "rubric"
_CALL = "/chat/completions"
_ID = re.compile(r"[\w.-]+", re.ASCII)
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
_PAGE = 100
_SECONDS = 600.0  # for a file of many megabytes; a judge's own timeout is for one reply
_OK, _ERRORS = 200, 300


@frozen
class Line:
    """
    One request of a batch.

    Args:
        key: What it is known by: a hash of all that determines the reply.
        body: The line of the file.
        unsent: Parameters that the model does not take.
    """

    key: str
    body: bytes = field(repr=False)
    unsent: tuple[str, ...] = ()


@frozen
class BatchState:
    """How a batch stands: its *status* in the vendor's word, the *files* that hold answers, and what went *wrong*."""

    status: str
    files: tuple[str, ...] = ()
    wrong: str = ""

    @property
    def is_over(self) -> bool:
        """Whether no further answer will come."""
        return self.status in _OVER


def has_batches(judge: Judge) -> bool:
    """Say whether *judge* names a model of OpenAI's, or of a server of its protocol that code names."""
    if not isinstance(judge.model, str) or judge.model == OFFLINE:
        return False
    return judge.name.startswith("openai/") or "/" not in judge.name or "api_base" in judge.params


def line_of(ask: Ask) -> Line:
    """
    Return *ask* as a line of a batch.

    Raises:
        ModelError: Its judge has no address, no key, or a parameter that is no JSON.
    """
    endpoint = endpoint_of(ask.judge)
    try:
        content, unsent = content_of(ask, endpoint)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"the request cannot be written as JSON: {words_of(str(error), endpoint.secrets)}"
        raise ModelError(Failure("bad_request", message)) from None
    told = f"{endpoint.url}\n{ask.vote}\n{ask.repair}\n".encode()
    key = sha256(told + content).hexdigest()[:40]
    head = json.dumps({"custom_id": key, "method": "POST", "url": "/v1/chat/completions"})
    return Line(key, head[:-1].encode() + b', "body": ' + content + b"}", unsent)


async def create(judge: Judge, lines: Iterable[Line], mark: str) -> str:
    """Create a batch of *lines*, with *mark* to find it by, and return its id; raise `ModelError` if that fails."""
    form = aiohttp.FormData()
    form.add_field("purpose", "batch")
    content = b"\n".join(line.body for line in lines)
    form.add_field("file", BytesIO(content), filename="requests.jsonl", content_type="application/jsonl")
    sent = await _asked(judge, "POST", "/files", data=form)
    order = {
        "input_file_id": sent.get("id"),
        "endpoint": "/v1/chat/completions",
        "completion_window": "24h",
        "metadata": {_MARK: mark},
    }
    return _id((await _asked(judge, "POST", "/batches", json=order)).get("id"))


async def find(judge: Judge, mark: str) -> str:
    """Return the id of the batch with *mark*, if it is among the newest hundred; else an empty text."""
    page = await _asked(judge, "GET", f"/batches?limit={_PAGE}")
    batches = [batch for batch in page.get("data") or () if isinstance(batch, dict)]
    return next((_id(b.get("id")) for b in batches if (b.get("metadata") or {}).get(_MARK) == mark), "")


async def state(judge: Judge, batch: str) -> BatchState:
    """Return how the batch called *batch* stands; raise `ModelError` if nobody says."""
    said = await _asked(judge, "GET", f"/batches/{batch}")
    files = tuple(_id(said[name]) for name in ("output_file_id", "error_file_id") if said.get(name))
    errors = (said.get("errors") or {}).get("data") or ()
    return BatchState(str(said.get("status")), files, "; ".join(str(error.get("message")) for error in errors))


def _id(said: object) -> str:
    """Return *said*, which must be an id: it becomes part of an address."""
    if not isinstance(said, str) or not _ID.fullmatch(said):
        raise ModelError(Failure("bad_response", "what came back has no id"))
    return said


async def replies(judge: Judge, name: str, lines: Mapping[str, Line]) -> dict[str, Reply | Failure]:
    """Return what the file called *name* answers to *lines*, by their keys."""
    secrets = endpoint_of(judge).secrets
    found: dict[str, Reply | Failure] = {}
    for text in (await _content(judge, "GET", f"/files/{name}/content")).splitlines():
        said = _parsed(text)
        line = lines.get(str(said.get("custom_id")))
        if line is not None:
            found[line.key] = _answer(said, line, secrets)
    return found


def _parsed(text: bytes) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _answer(said: Mapping[str, Any], line: Line, secrets: Iterable[str]) -> Reply | Failure:
    response = said.get("response") or {}
    status, body = response.get("status_code"), json.dumps(response.get("body"))
    if not isinstance(status, int):
        return Failure("bad_response", words_of(f"the batch gave no answer: {json.dumps(said.get('error'))}", secrets))
    if not _OK <= status < _ERRORS:
        return failure_of_status(status, words_of(body, secrets))
    try:
        return reply_in(body.encode(), line.unsent, secrets)
    except ModelError as error:
        return error.failure


async def _asked(judge: Judge, method: str, path: str, **given: Any) -> dict[str, Any]:
    return _parsed(await _content(judge, method, path, **given))


async def _content(judge: Judge, method: str, path: str, **given: Any) -> bytes:
    """Return what the vendor answers; it is asked once."""
    endpoint = endpoint_of(judge)
    try:
        async with asyncio.timeout(_SECONDS):
            status, headers, body = await _exchanged(endpoint, method, path, given)
    except TimeoutError:
        message = f"no whole answer within {_SECONDS:g} seconds"
        raise ModelError(Failure("timeout", message, in_doubt=True)) from None
    except (aiohttp.ClientError, OSError) as error:
        raise ModelError(failure_of(error, endpoint.secrets)) from None
    if not _OK <= status < _ERRORS:
        raise ModelError(
            failure_of_status(status, words_of(body.decode("utf-8", "replace"), endpoint.secrets), headers)
        )
    return body


async def _exchanged(
    endpoint: Endpoint, method: str, path: str, given: Mapping[str, Any]
) -> tuple[int, Mapping[str, str], bytes]:
    session = await session_here()
    url = endpoint.url.partition("?")[0].removesuffix(_CALL) + path
    headers = {name: value for name, value in endpoint.headers.items() if name != "Content-Type"}
    asked = session.request(method, url, headers=headers, proxy=proxy_for(url), allow_redirects=False, **given)
    async with asked as response:
        return response.status, response.headers, await response.read()
