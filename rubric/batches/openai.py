"""
OpenAI's batch API: files of requests that are answered within a day, at half the price.

`Service` sends them, and reads what comes back; here is what OpenAI means by a batch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from io import BytesIO
from typing import Any

import aiohttp
from attrs import evolve, field, frozen

from rubric import Judge, ModelError
from rubric.driving import Ask, Failure, Reply, Usage
from rubric.models.later_replies import Service

_CALL = "/v1/chat/completions"
_MARK = "rubric"
_ID = re.compile(r"[\w.-]+", re.ASCII)
_OVER = frozenset({"completed", "failed", "expired", "cancelled"})
_PAGE, _PAGES = 100, 100
_FULL = "token_limit_exceeded"
_STATUS = re.compile(r"[1-5]\d\d", re.ASCII)
FREE = Usage(calls=1, cost=0.0)
"""The usage of a request that the vendor did not come to, and charges nothing for."""


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

    def failure_of(self, batch: str) -> Failure:
        """Return the failure of a request of *batch* without a response; the vendor charges nothing for it."""
        message = f"the batch {batch} is {self.status}, without an answer to this"
        message = ". ".join([message, self.wrong] if self.wrong else [message])
        if self.status == "failed":
            return Failure("rate_limited" if self.is_refused else "bad_request", message, usage=FREE)
        return Failure("timeout", message, usage=FREE)  # grading does not retry it: that would take another day


def line_of(ask: Ask) -> Line:
    """Return *ask* as a line of a batch; raise `ModelError` for a judge without an address, or a key."""
    key, content, unsent = Service(ask.judge).body_of(ask)
    head = json.dumps({"custom_id": key, "method": "POST", "url": _CALL})
    return Line(key, head[:-1].encode() + b', "body": ' + content + b"}", unsent)


async def create(judge: Judge, lines: Iterable[Line], mark: str) -> str:
    """Create a batch of *lines*, with *mark* to find it by, and return its id; a failure says if there is none."""
    form = aiohttp.FormData()
    form.add_field("purpose", "batch")
    content = b"\n".join(line.body for line in lines)
    form.add_field("file", BytesIO(content), filename="requests.jsonl", content_type="application/jsonl")
    try:
        file = _id((await Service(judge).call("POST", "/files", data=form)).get("id"))
    except ModelError as error:  # a file alone is not a batch
        raise ModelError(evolve(error.failure, in_doubt=False)) from None
    order = {"input_file_id": file, "endpoint": _CALL, "completion_window": "24h", "metadata": {_MARK: mark}}
    try:
        return _id((await Service(judge).call("POST", "/batches", json=order)).get("id"))
    except ModelError as error:  # in doubt: the vendor accepted it, and the id of the new batch could not be read
        doubtful = error.failure.kind == "bad_response" or error.failure.in_doubt
        raise ModelError(evolve(error.failure, in_doubt=doubtful)) from None


async def find(judge: Judge, mark: str) -> str:
    """Return the id of the batch with *mark*; an empty text if it is not among the newest ten thousand."""
    after = ""
    for _ in range(_PAGES):
        page = await Service(judge).call("GET", f"/batches?limit={_PAGE}{after and f'&after={after}'}")
        if not isinstance(page.get("data"), list):  # as an empty page, it would cause all requests to be sent again
            raise ModelError(Failure("bad_response", "what came back is not a list of batches"))
        batches = [batch for batch in page["data"] if isinstance(batch, dict)]
        found = next((_id(b.get("id")) for b in batches if (b.get("metadata") or {}).get(_MARK) == mark), "")
        if found or not batches or not page.get("has_more"):
            return found
        after = _id(batches[-1].get("id"))
    return ""


async def cancel(judge: Judge, batch: str) -> bool:
    """Cancel *batch*; False if it had ended, or is not this judge's; raise `ModelError` if the vendor does not say."""
    try:
        if (await state(judge, batch)).status in _OVER | {"cancelling"}:
            return False
    except ModelError as error:
        if error.failure.status == HTTPStatus.NOT_FOUND:  # it was sent to another address, or with another key
            return False
        raise
    await Service(judge).call("POST", f"/batches/{batch}/cancel")
    return True


async def state(judge: Judge, batch: str) -> BatchState:
    """Return the state of *batch*; raise `ModelError` if the vendor does not say."""
    said = await Service(judge).call("GET", f"/batches/{batch}")
    if not isinstance(said.get("status"), str):  # otherwise its end would be awaited for ever
        raise ModelError(Failure("bad_response", "what came back is not a batch"))
    files = tuple(_id(said[name]) for name in ("output_file_id", "error_file_id") if said.get(name))
    errors = [error for error in (said.get("errors") or {}).get("data") or () if isinstance(error, dict)]
    wrong = Service(judge).words("; ".join(str(error.get("message")) for error in errors))
    is_refused = any(error.get("code") == _FULL for error in errors)
    return BatchState(said["status"], files, wrong, is_refused)


def _id(said: object) -> str:
    """Return *said*, which must be an id: it becomes part of an address."""
    if not isinstance(said, str) or not _ID.fullmatch(said):
        raise ModelError(Failure("bad_response", "what came back has no id"))
    return said


async def replies(judge: Judge, name: str, lines: Mapping[str, Line]) -> dict[str, Reply | Failure]:
    """Return the outcomes of *lines* in the file called *name*, by key, which is read line by line."""
    found: dict[str, Reply | Failure] = {}

    def answer(said: dict[str, Any]) -> None:
        if (line := lines.get(str(said.get("custom_id")))) is not None:
            found[line.key] = _answer(said, line, Service(judge))

    await Service(judge).read_lines(f"/files/{name}/content", answer)
    return found


def _answer(said: Mapping[str, Any], line: Line, service: Service) -> Reply | Failure:
    response = said.get("response")
    answer = response if isinstance(response, dict) else {}
    status, body = str(answer.get("status_code")), answer.get("body")
    if not _STATUS.fullmatch(status):
        error = service.words(json.dumps(said.get("error")))
        return Failure("timeout", f"the batch ended without an answer to this: {error}", usage=FREE)
    return service.outcome(int(status), body, line.unsent)
