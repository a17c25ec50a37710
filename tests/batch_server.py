"""A local server that speaks OpenAI's files and batches endpoints, and answers batches after some looks at them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from typing import Any

from attrs import define, field

from tests.serving import InThreads, Silent


@define
class Batching:
    """
    What the server holds, and how it behaves.

    Args:
        respond: From the body of a request to the text of its reply.
        looks: How many looks at a batch it takes until it is over.
        ends: How batches end.
        skipped: How many requests of each batch get no answer.
        deaf: Whether to create batches and then break the connection, so that nobody hears their ids.
        room: How many batches may be under way at once; one more fails.
        page: How many batches a page of their list has.
    """

    respond: Callable[[dict[str, Any]], str]
    looks: int = 1
    ends: str = "completed"
    skipped: int = 0
    deaf: bool = False
    room: int = 100
    page: int = 100
    files: dict[str, bytes] = field(factory=dict)
    batches: dict[str, dict[str, Any]] = field(factory=dict)
    answered: list[str] = field(factory=list)
    looked: threading.Event = field(factory=threading.Event)

    def upload(self, body: bytes) -> dict[str, Any]:
        """Keep the lines of a multipart *body*, and return the file that they are."""
        lines = [line for line in body.splitlines() if line.startswith(b'{"custom_id"')]
        name = f"file-{len(self.files)}"
        self.files[name] = b"\n".join(lines)
        return {
            "id": name,
            "object": "file",
            "bytes": 1,
            "created_at": 1,
            "filename": "x",
            "purpose": "batch",
            "status": "processed",
        }

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a new batch."""
        name = f"batch_{len(self.batches)}"
        is_full = sum(batch["status"] == "validating" for batch in self.batches.values()) >= self.room
        self.batches[name] = {
            "id": name, "object": "batch", "endpoint": body["endpoint"], "input_file_id": body["input_file_id"],
            "completion_window": "24h", "status": "validating", "created_at": 1, "metadata": body.get("metadata"),
            "looks": 0,
        }  # fmt: skip
        if is_full:
            error = {"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None}
            self.batches[name] |= {"status": "failed", "errors": {"object": "list", "data": [error]}}
        return self.shown(name)

    def cancel(self, name: str) -> dict[str, Any]:
        """Stop a batch; what it has answered by then stays."""
        self.batches[name]["status"] = "cancelled"
        self.batches[name]["output_file_id"] = self._answers(self.batches[name]["input_file_id"])
        return self.shown(name)

    def listed(self, after: str) -> dict[str, Any]:
        """Return a page of all batches, the newest first."""
        names = [*reversed(self.batches)]
        start = names.index(after) + 1 if after else 0
        page = names[start : start + self.page]
        data, more = [self.shown(name) for name in page], start + self.page < len(names)
        return {"object": "list", "data": data, "has_more": more, "first_id": page[0], "last_id": page[-1]}

    def look(self, name: str) -> dict[str, Any]:
        """Return how a batch stands: a little further with each look."""
        batch = self.batches[name]
        batch["looks"] += 1
        self.looked.set()
        if batch["status"] == "validating" and batch["looks"] > self.looks:
            batch["status"] = self.ends
            batch["output_file_id"] = self._answers(batch["input_file_id"])
        return self.shown(name)

    def shown(self, name: str) -> dict[str, Any]:
        """Return a batch as the vendor shows it."""
        return {key: value for key, value in self.batches[name].items() if key != "looks"}

    def _answers(self, name: str) -> str:
        lines = [json.loads(line) for line in self.files[name].splitlines()][self.skipped :]
        self.answered += [line["custom_id"] for line in lines]
        answers = [json.dumps(self._answer(line)) for line in reversed(lines)]  # in any order, as vendors say
        self.files[f"{name}-out"] = "\n".join(answers).encode()
        return f"{name}-out"

    def _answer(self, line: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.respond(line["body"])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        body = {"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        response = {"status_code": 200, "request_id": "r", "body": body}
        return {"id": "b", "custom_id": line["custom_id"], "response": response, "error": None}


class BatchServer(InThreads):
    """The server, in threads of its own; leave the `with` block and it is gone."""

    def __init__(self, held: Batching) -> None:
        self._held = held

    @property
    def base(self) -> str:
        """The base address for clients."""
        return f"{self.root}/v1"

    def handler(self) -> type[Silent]:
        """Return the class of what serves a request."""
        return _handler(self._held)


def _handler(held: Batching) -> type[Silent]:
    class Handler(Silent):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:  # noqa: N802 - http.server's name
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path.endswith("/files"):
                self._send(held.upload(body))
                return
            if found := re.search(r"/batches/(\w+)/cancel", self.path):
                self._send(held.cancel(found[1]))
                return
            made = held.create(json.loads(body))
            self.close_connection = held.deaf
            if not held.deaf:
                self._send(made)

        def do_GET(self) -> None:  # noqa: N802 - http.server's name
            if found := re.search(r"/files/([\w-]+)/content", self.path):
                self.send(200, held.files[found[1]], **{"Content-Type": "application/octet-stream"})
            elif found := re.search(r"/batches/(\w+)", self.path):
                self._send(held.look(found[1]))
            else:
                after = re.search(r"after=(\w+)", self.path)
                self._send(held.listed(after[1] if after else ""))

        def _send(self, data: dict[str, Any]) -> None:
            self.send(200, json.dumps(data).encode())

    return Handler
