"""
OpenAI's batch API: files of requests that are answered within a day, at half the price.

A request in a batch is the one that `Judge(via="http")` sends, and its response is parsed the same way. Batches go
straight over HTTP, too: LiteLLM opens a client for each of these calls and closes none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
from attrs import evolve, field, frozen

from rubric.errors import ModelError
from rubric.models.chat_completions import CALL, content_of, reply_from
from rubric.models.failures import UNSENT_USAGE, error_in, failure_of_status, words_of
from rubric.models.http_bodies import MOST_BYTES, parsed, pour, too_long
from rubric.models.http_client import request, whole
from rubric.models.offline import OFFLINE
from rubric.models.openai_http import destination_of, endpoint_of, exposure_of
from rubric.models.pricing import priced
from rubric.values.requests import Failure, FailureKind, Reply

if TYPE_CHECKING:
    from rubric.values.judges import Judge
    from rubric.values.requests import Ask, Usage


T = TypeVar("T")
_CALL = f"/v1{CALL}"
_MARK = "rubric"
_ID = re.compile(r"[\w.-]+", re.ASCII)
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
_STOPPING = frozenset({"cancelling"})
_PAGE, _PAGES = 100, 100
_FULL = "token_limit_exceeded"
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
_SECONDS = 600.0  # for a file of many megabytes; a judge's own timeout is for one reply
_NOT_FOUND = 404


@frozen
class Line:
    """
    One request of a batch: a line of its file, and the parameters that the model does not take.

    Args:
        key: Its id in the file: a hash of all that determines the reply.
    """

    key: str
    body: bytes = field(repr=False)
    unsent: tuple[str, ...] = ()


@frozen
class BatchState:
    """
    The state of a batch.

    Args:
        status: The vendor's word.
        files: Those with responses.
        wrong: The error of the batch as a whole.
        is_refused: Whether the vendor's queue had no room for it.
    """

    status: str
    files: tuple[str, ...] = ()
    wrong: str = ""
    is_refused: bool = False

    @property
    def is_over(self) -> bool:
        """Whether no further answer will come."""
        return self.status in _OVER

    def lost(self, batch: str) -> Failure:
        """Return the failure of a request of *batch* without a response; the vendor charges nothing for it."""
        kind: FailureKind = "timeout"  # grading does not retry it by itself: that would take another day
        if self.status == "failed":
            kind = "rate_limited" if self.is_refused else "bad_request"
        message = f"the batch {batch} is {self.status}, without an answer to this"
        return Failure(kind, ". ".join([message, self.wrong] if self.wrong else [message]), usage=UNSENT_USAGE)


def is_queue_full(failure: Failure) -> bool:
    """True if it *failed* because the vendor's queue was full; room comes as other batches end."""
    return failure.kind == "rate_limited" and failure.usage == UNSENT_USAGE


def has_batches(judge: Judge) -> bool:
    """True if *judge* is a model of OpenAI's, or of a server of its protocol whose address is given in code."""
    if not isinstance(judge.model, str) or judge.model == OFFLINE:
        return False
    return judge.name.startswith("openai/") or "/" not in judge.name or "api_base" in judge.params


def place_of(judge: Judge) -> tuple[object, ...]:
    """Return a value that is equal for judges with the same batches: address, key and payer."""
    endpoint = endpoint_of(judge)
    return (endpoint.url, *sorted(endpoint.headers.items()))


def line_of(ask: Ask) -> Line:
    """Return *ask* as a line of a batch; raise `ModelError` as `endpoint_of` and `content_of` do."""
    endpoint = endpoint_of(ask.judge)
    content, unsent = content_of(ask, endpoint)
    told = f"{endpoint.url}\n{ask.vote}\n{ask.repair}\n".encode()
    key = sha256(told + content).hexdigest()[:40]
    head = json.dumps({"custom_id": key, "method": "POST", "url": _CALL})
    return Line(key, head[:-1].encode() + b', "body": ' + content + b"}", unsent)


async def create(judge: Judge, lines: Iterable[Line], mark: str) -> str:
    """
    Create a batch of *lines*, with *mark* to find it by, and return its id.

    Raises:
        ModelError: It failed; unless that is in doubt, there is no batch.
    """
    form = aiohttp.FormData()
    form.add_field("purpose", "batch")
    content = b"\n".join(line.body for line in lines)
    form.add_field("file", BytesIO(content), filename="requests.jsonl", content_type="application/jsonl")
    try:
        file = _id((await _said(judge, "POST", "/files", data=form)).get("id"))
    except ModelError as error:  # a file alone is no batch
        raise ModelError(evolve(error.failure, in_doubt=False)) from None
    order = {"input_file_id": file, "endpoint": _CALL, "completion_window": "24h", "metadata": {_MARK: mark}}
    try:
        return _id((await _said(judge, "POST", "/batches", json=order)).get("id"))
    except ModelError as error:  # in doubt: the vendor accepted it, and the id of the new batch could not be read
        doubtful = error.failure.kind == "bad_response" or error.failure.in_doubt
        raise ModelError(evolve(error.failure, in_doubt=doubtful)) from None


async def find(judge: Judge, mark: str) -> str:
    """Return the id of the batch with *mark*; an empty text if it is not among the newest ten thousand."""
    after = ""
    for _ in range(_PAGES):
        page = await _said(judge, "GET", f"/batches?limit={_PAGE}{after and f'&after={after}'}")
        if not isinstance(page.get("data"), list):  # as an empty page, it would cause all requests to be sent again
            raise ModelError(Failure("bad_response", "what came back is no list of batches"))
        batches = [batch for batch in page["data"] if isinstance(batch, dict)]
        found = next((_id(b.get("id")) for b in batches if (b.get("metadata") or {}).get(_MARK) == mark), "")
        if found or not batches or not page.get("has_more"):
            return found
        after = _id(batches[-1].get("id"))
    return ""


async def cancel(judge: Judge, batch: str) -> bool:
    """Cancel *batch*; False if it had ended, or is not this judge's; raise `ModelError` if the vendor does not say."""
    try:
        if (await state(judge, batch)).status in _OVER | _STOPPING:
            return False
    except ModelError as error:
        if error.failure.status == _NOT_FOUND:  # it was sent to another address, or with another key
            return False
        raise
    await _said(judge, "POST", f"/batches/{batch}/cancel")
    return True


async def state(judge: Judge, batch: str) -> BatchState:
    """Return the state of *batch*; raise `ModelError` if the vendor does not say."""
    said = await _said(judge, "GET", f"/batches/{batch}")
    if not isinstance(said.get("status"), str):  # otherwise its end would be awaited for ever
        raise ModelError(Failure("bad_response", "what came back is no batch"))
    files = tuple(_id(said[name]) for name in ("output_file_id", "error_file_id") if said.get(name))
    errors = [error for error in (said.get("errors") or {}).get("data") or () if isinstance(error, dict)]
    wrong = words_of("; ".join(str(error.get("message")) for error in errors), endpoint_of(judge).secrets)
    is_refused = any(error.get("code") == _FULL for error in errors)
    return BatchState(said["status"], files, wrong, is_refused)


def _id(said: object) -> str:
    """Return *said*, which must be an id: it becomes part of an address."""
    if not isinstance(said, str) or not _ID.fullmatch(said):
        raise ModelError(Failure("bad_response", "what came back has no id"))
    return said


async def replies(judge: Judge, name: str, lines: Mapping[str, Line]) -> dict[str, Reply | Failure]:
    """
    Return the outcomes of *lines* in the file called *name*, by key.

    The file is read line by line: it may have fifty thousand responses, of which only the results are kept.
    """
    endpoint, found, rest = endpoint_of(judge), dict[str, Reply | Failure](), bytearray()
    price, remarks = partial(priced, judge, in_batch=True), exposure_of(endpoint)

    def answer(text: bytes) -> None:
        said = _parsed(text)
        if (line := lines.get(str(said.get("custom_id")))) is not None:
            found[line.key] = _answer(said, line, endpoint.secrets, price, remarks)

    def take(piece: bytes) -> None:
        *whole_lines, last = piece.split(b"\n")
        for text in whole_lines:
            answer(bytes(rest + text))
            rest.clear()
        rest.extend(last)
        if len(rest) > MOST_BYTES:
            raise too_long(MOST_BYTES)

    async def pieces(response: aiohttp.ClientResponse) -> None:
        await pour(response.content.iter_any(), response.headers.get("Content-Encoding", ""), take)
        answer(bytes(rest))

    await _request(judge, "GET", f"/files/{name}/content", pieces)
    return found


def _parsed(text: bytes) -> dict[str, Any]:
    """Return the JSON object in *text*; an empty one if it cannot be read."""
    with suppress(ModelError):
        if isinstance(said := parsed(text), dict):
            return said
    return {}


def _answer(
    said: Mapping[str, Any],
    line: Line,
    secrets: Iterable[str],
    price: Callable[[Usage], Usage],
    remarks: tuple[str, ...],
) -> Reply | Failure:
    response = said.get("response")
    answer = response if isinstance(response, dict) else {}
    status, body = str(answer.get("status_code")), answer.get("body")
    if not _STATUS.fullmatch(status):
        error = words_of(json.dumps(said.get("error")), secrets)
        return Failure("timeout", f"the batch ended without an answer to this: {error}", usage=UNSENT_USAGE)
    if not status.startswith("2"):
        return failure_of_status(int(status), json.dumps(body), secrets=secrets)
    try:
        return reply_from(body if isinstance(body, dict) else {}, line.unsent, secrets, price, remarks)
    except ModelError as problem:
        return problem.failure


async def _said(judge: Judge, method: str, path: str, **sent: Any) -> dict[str, Any]:
    """Return the JSON object in the response to one request; raise an error in a 200."""

    async def body(response: aiohttp.ClientResponse) -> bytes:
        return await whole(response.content, response.status, response.headers, MOST_BYTES)

    said = _parsed(await _request(judge, method, path, body, **sent))
    if said.get("error") and "id" not in said:
        raise ModelError(error_in(said["error"], endpoint_of(judge).secrets))
    return said


async def _request(
    judge: Judge, method: str, path: str, read: Callable[[aiohttp.ClientResponse], Awaitable[T]], **sent: Any
) -> T:
    server = destination_of(judge).server
    url = server.url.partition("?")[0].removesuffix(CALL) + path
    headers = {name: value for name, value in server.headers.items() if name != "Content-Type"}
    return await request(server, method, url, _SECONDS, read, headers=headers, **sent)
