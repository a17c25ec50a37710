"""
AgentV's side: `agentv eval run` on a file, and this library on what that run wrote.

A local server stands in the place of OpenAI: it gives back the output that a test's input holds, and as a judge the
verdicts in the marks of the criteria. Our side grades AgentV's own `index.jsonl`, whose answers are in files.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rubric import Judge, load_suite
from tests.upstream import npm
from tests.upstream.agentv_gradings import Grading, gradings
from tests.upstream.agentv_named import NAMED
from tests.upstream.judge import respond, said_in
from tests.upstream.verdicts import Pair, Verdict, verdict_of

__all__ = ["NAME", "NAMED", "PINNED", "compared"]

NAME = "AgentV"
PINNED = ("agentv@4.42.4",)


def compared(folder: Path, *, newest: bool) -> tuple[str, list[Pair]]:
    """Install AgentV below *folder*, and return its version, and both sides of all rows."""
    programs = npm.installed(folder, *(re.sub("(?<=.)@.*", "@latest", each) if newest else each for each in PINNED))
    return npm.version_in(folder, "agentv"), of_gradings(programs, [*gradings()])


def of_gradings(programs: Path, made: Sequence[Grading]) -> list[Pair]:
    """Return both sides of the gradings *made*."""
    tests = [one.test(number) for number, one in enumerate(made)]
    with tempfile.TemporaryDirectory() as place, _server() as address:
        project = Path(place)
        for name, text in (("any.eval.yaml", {"tests": tests}), (".agentv/targets.yaml", _targets(address))):
            (project / name).parent.mkdir(exist_ok=True)
            (project / name).write_text(json.dumps(text), encoding="utf-8")
        words = ["eval", "run", "any.eval.yaml", "--target", "llm", "-o", "out", "--workers", "20"]
        said = npm.run(programs, "agentv", *words, folder=project, environ={"KEY": "sk-test", "MODEL": "m"})
        index = project / "out/index.jsonl"
        if not index.exists():
            raise RuntimeError(f"agentv wrote no results: {said}")
        rows = [json.loads(line) for line in index.read_text(encoding="utf-8").splitlines()]
        theirs = {row["test_id"]: their_verdict(row) for row in rows}
        suite = load_suite(project / "any.eval.yaml").answered(index)
        ours = {row.id: verdict_of(row) for row in suite.run(Judge(_as_judge, identity="upstream"), concurrency=8)}
    absent = Verdict(None, None, "no row")
    return [
        Pair(one.kind, json.dumps(test), theirs.get(test["id"], absent), ours.get(test["id"], absent), one)
        for one, test in zip(made, tests, strict=True)
    ]


def their_verdict(row: dict[str, Any]) -> Verdict:
    """Return the verdict of a row of AgentV's index."""
    if row["execution_status"] == "execution_error":
        return Verdict(None, None, str(row.get("error")))
    return Verdict(row["execution_status"] == "ok", row["score"])


def _targets(address: str) -> dict[str, Any]:
    model = {"provider": "openai", "api_format": "chat", "endpoint": address, "api_key": "${{ KEY }}"}
    model["model"] = "${{ MODEL }}"  # AgentV takes a variable alone
    return {"targets": [{"name": "llm", **model, "grader_target": "judge"}, {"name": "judge", **model}]}


def _as_judge(messages: list[dict[str, Any]], **options: Any) -> str:
    """Answer a judge's question of ours by the marks in it."""
    said = said_in(str(messages))
    if said and "pass" not in said:  # of bands the score is a whole number
        return json.dumps({"reason": "so", "score": round(10 * float(said["score"]))})
    return respond({"messages": messages, **options})


_ITEM = re.compile(r"^(?:- |### Criterion: )\[?([\w-]+)\]?[^\n]*(?:\n(?!- \[|### )[^\n]*)*", re.MULTILINE)


def answer(messages: list[dict[str, Any]]) -> str:
    """Return what AgentV is told: the output in the input, or the verdict in the marks of the criteria."""
    text = messages[-1]["content"]
    text = text if isinstance(text, str) else "".join(part.get("text", "") for part in text)
    if text.startswith("output: "):
        return text.removeprefix("output: ")
    system = str(messages[0]["content"])
    rubrics = text.partition("[[ ## rubrics ## ]]")[2] or text
    if '"checks"' not in system or '"pass"' in system:
        said = said_in(re.sub(r"\[\[ ##.*?## \]\]", "", text))
        passed, score = said.get("pass", "yes") == "yes", float(said.get("score", 1))
        return json.dumps({"score": score, "pass": passed, "reason": "so", "assertions": []})
    checks = []
    for found in _ITEM.finditer(rubrics):
        said = said_in(found[0])
        points = {"score": round(10 * float(said.get("score", 1)))} if '"score"' in system else {}
        checks.append({"id": found[1], "satisfied": said.get("pass", "yes") == "yes", "reasoning": "so", **points})
    return json.dumps({"checks": checks, "overall_reasoning": "so"})


class _Handler(BaseHTTPRequestHandler):
    """Answer the requests of OpenAI's chat API, which AgentV streams."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = {"role": "assistant", "content": answer(body["messages"])}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        chunks: list[dict[str, Any]] = [{"delta": said, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"}]
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for chunk in chunks:
            whole: dict[str, Any] = {
                "id": "x",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "m",
                "usage": usage,
            }
            self.wfile.write(f"data: {json.dumps({**whole, 'choices': [{'index': 0, **chunk}]})}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def _server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
