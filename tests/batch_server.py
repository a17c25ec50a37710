"""A local server that speaks OpenAI's files and batches endpoints, and answers batches after some looks at them."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from attrs import define, field


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
    """

    respond: Callable[[dict[str, Any]], str]
    looks: int = 1
    ends: str = "completed"
    skipped: int = 0
    deaf: bool = False
    files: dict[str, bytes] = field(factory=dict)
    batches: dict[str, dict[str, Any]] = field(factory=dict)
    answered: list[str] = field(factory=list)

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
        self.batches[name] = {
            "id": name, "object": "batch", "endpoint": body["endpoint"], "input_file_id": body["input_file_id"],
            "completion_window": "24h", "status": "validating", "created_at": 1, "metadata": body.get("metadata"),
            "looks": 0,
        }  # fmt: skip
        return self.shown(name)

    def look(self, name: str) -> dict[str, Any]:
        """Return how a batch stands: a little further with each look."""
        batch = self.batches[name]
        batch["looks"] += 1
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


class BatchServer:
    """The server, in threads of its own; leave the `with` block and it is gone."""

    def __init__(self, held: Batching) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(held))
        self.base = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _handler(held: Batching) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path.endswith("/files"):
                self._send(held.upload(body))
                return
            made = held.create(json.loads(body))
            if held.deaf:
                self.close_connection = True
                return
            self._send(made)

        def do_GET(self) -> None:
            if found := re.search(r"/files/([\w-]+)/content", self.path):
                self._write(held.files[found[1]])
            elif found := re.search(r"/batches/(\w+)", self.path):
                self._send(held.look(found[1]))
            else:
                batches = [held.shown(name) for name in reversed(held.batches)]
                self._send({"object": "list", "data": batches, "has_more": False, "first_id": None, "last_id": None})

        def _send(self, data: dict[str, Any]) -> None:
            self._write(json.dumps(data).encode(), "application/json")

        def _write(self, body: bytes, kind: str = "application/octet-stream") -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler
