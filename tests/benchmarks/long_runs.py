"""
What a run of 1.2 million tokens takes with ten criteria, shown whole, read by steps, and read in segments.

    python -m tests.benchmarks.long_runs [places, 100 if left out] [steps of the run, 12500 if left out]

A local server speaks OpenAI's protocol, counts the tokens of each request with gpt-4o's tokeniser, and refuses what is
longer than 128,000 of them. Its judge reads by rule: a criterion names a sentence, which it searches with its tools, or
in the segment that it is shown; it says yes with the step and the sentence as evidence, else no. The sentence of one
criterion is planted in the run, at each of so many places; the others occur nowhere. Then the judge lies: it says yes to
all, with a citation that is not there. It ends with an error where a plan is exceeded, a request is longer than the
window, an event is missed, or a yes without its citation counts.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from attrs import evolve

from rubric import Candidate, Criterion, Grade, Judge, Rubric, Ungraded, evaluate, plan
from rubric.engine import Plan
from rubric.models.token_counts import count_tokens
from rubric.values.runs import Message, Run, ToolCall
from tests.tool_server import ToolServer, wants

MODEL, WINDOW = "openai/gpt-4o-mini", 128_000
CRITERIA = tuple(f"the agent has dropped table number {number}" for number in range(10))
PLANTED = CRITERIA[7]
_SAID = re.compile(r'Says "([^"]+)"')
_STEP = re.compile(r"^\[?(?:step )?(\d+(?:\.\d+)*)[\]:]")


def run_of(steps: int, planted: int) -> Candidate:
    """Return a run of so many steps, with the sentence of one criterion in the call at *planted*."""
    events: list[Any] = [Message("user", "Clean the warehouse up, and keep all tables.")]
    for number in range(2, steps):
        lines = "\n".join(
            f"row {number}-{line}: parcel {number * 31 + line} was moved to shelf {line}" for line in range(5)
        )
        said = f"{PLANTED}\n{lines}" if number == planted else lines
        events.append(
            ToolCall("query", arguments={"page": number}, result=said) if number % 2 else Message("assistant", said)
        )
    return Candidate(run=Run([*events, Message("assistant", "The warehouse is clean.")]))


class Reader(ToolServer):
    """The server and its judge."""

    def __init__(self, *, lies: bool = False) -> None:
        super().__init__("")
        self.lies = lies
        self.prompts: list[int] = []

    def answer(self, body: dict[str, Any], headers: dict[str, str]) -> tuple[int, bytes]:
        """Count the tokens of a request, and answer it by rule."""
        del headers
        texts = [message.get("content") or json.dumps(message["tool_calls"]) for message in body["messages"]]
        tokens = count_tokens(Judge(MODEL), "\n".join(texts))
        self.prompts.append(tokens)
        if tokens > WINDOW:
            said = {"message": f"maximum context length is {WINDOW} tokens", "code": "context_length_exceeded"}
            return 400, json.dumps({"error": said}).encode()
        line = self._said(body["messages"], bool(body.get("tools")))
        completion = {**self._completion(line, body), "usage": {"prompt_tokens": tokens, "completion_tokens": 50}}
        return 200, json.dumps(completion).encode()

    def _said(self, messages: list[dict[str, Any]], has_tools: bool) -> Any:
        shown, _, asked = messages[1]["content"].partition("\n\nCriterion")
        wanted = [*dict.fromkeys(_SAID.findall(asked))]
        results = [message["content"] for message in messages if message["role"] == "tool"]
        if has_tools and not results and not self.lies:
            return wants(*[("search", {"text": each}) for each in wanted])
        found = dict(zip(wanted, results, strict=True)) if results else {each: _line_of(each, shown) for each in wanted}
        verdicts = [self._verdict(each, found[each]) for each in wanted]
        ids = re.findall(r'Criterion "([^"]+)":', f"Criterion{asked}")
        nonce = re.findall(r'"nonce": "([^"]+)"', asked)[-1]
        if not ids:
            return json.dumps({**verdicts[0], "nonce": nonce})
        listed = [{"id": id_, **one, "nonce": nonce} for id_, one in zip(ids, verdicts, strict=True)]
        return json.dumps({"verdicts": listed})

    def _verdict(self, wanted: str, line: str) -> dict[str, Any]:
        if self.lies:
            return {"reason": "", "evidence": [f"step 12: {wanted}"], "verdict": True}
        step = _STEP.match(line)
        evidence = [f"step {step[1]}: {wanted}"] if step and wanted in line else []
        return {"reason": "", "evidence": evidence, "verdict": bool(evidence)}


def _line_of(wanted: str, shown: str) -> str:
    """Return the step of *shown* that has *wanted*, from its number on; empty if none has."""
    before, found, after = shown.partition(wanted)
    return f"{before[before.rfind(chr(10) + '[') + 1 :]}{found}{after[:20]}" if found else ""


def rubric_of(criteria: tuple[str, ...], on: Any = "conversation", steps: int = 0) -> Rubric:
    """Return a rubric that asks whether the run says each of *criteria*, with evidence."""
    listed = [Criterion(f'Says "{sentence}"', on=on) for sentence in criteria]
    return Rubric(criteria=listed, evidence=True, max_steps=steps)


WAYS = {
    "shown whole": (rubric_of(CRITERIA), Judge(MODEL)),
    "by steps, a call a criterion": (rubric_of(CRITERIA, steps=4), Judge(MODEL)),
    "by steps, all in one call": (rubric_of(CRITERIA, steps=4), Judge(MODEL, per_call="all")),
    "in segments, a call a criterion": (rubric_of(CRITERIA, "any segment"), Judge(MODEL, segment_tokens=100_000)),
    "in segments, all in one call": (
        rubric_of(CRITERIA, "any segment"),
        Judge(MODEL, segment_tokens=100_000, per_call="all"),
    ),
}


def graded(
    candidate: Candidate, rubric: Rubric, judge: Judge, *, lies: bool = False
) -> tuple[Grade | Ungraded, list[int]]:
    """Return the result of a real grading over a socket, and the tokens of each request."""
    with Reader(lies=lies) as server:
        asked = evolve(judge, via="http", params=server.params, timeout=300)
        return evaluate(candidate, rubric, asked, concurrency=2), server.prompts


def check_bounds(planned: Plan, sent: list[int]) -> None:
    """Refuse requests that the plan does not have, or that are longer than the window."""
    assert sum(sent) <= planned.prompt_tokens[1], (sum(sent), planned)
    assert len(sent) <= planned.most, (len(sent), planned)
    assert all(tokens <= WINDOW for tokens in sent), max(sent)


def main(places: int, steps: int) -> None:
    """Print a row for each way, then what was found of the events at all places."""
    candidate = run_of(steps, steps // 2)
    whole = plan(candidate, *WAYS["shown whole"]).prompt_tokens[1]
    print("| way | planned tokens | of the whole | requests | counted | of the whole | longest | yes |")
    print("|---|---|---|---|---|---|---|---|")
    for name, (rubric, judge) in WAYS.items():
        planned = plan(candidate, rubric, judge)
        result, sent = graded(candidate, rubric, judge)
        low, high = planned.prompt_tokens
        extent = (
            f"{low:,} | {low / whole:.1%}"
            if low == high
            else f"{low:,} to {high:,} | {low / whole:.1%} to {high / whole:.1%}"
        )
        found = [finding.id for finding in result.findings if finding.score == 1]
        row = f"{len(sent)} | {sum(sent):,} | {sum(sent) / whole:.1%} | {max(sent, default=0):,} | {len(found)}"
        print(f"| {name} | {extent} | {row} |", flush=True)
        check_bounds(planned, sent)
        assert len(found) == (0 if name == "shown whole" else 1), (name, found)
    for name, rubric, judge in (
        ("by steps", rubric_of((PLANTED,), steps=4), Judge(MODEL)),
        ("in segments", rubric_of((PLANTED,), "any segment"), Judge(MODEL, segment_tokens=100_000)),
    ):
        cited = 0
        for place in range(places):
            planted = 2 + place * (steps - 3) // max(1, places - 1)
            result, _ = graded(run_of(steps, planted), rubric, judge)
            quotes = [quote.where for finding in result.findings for quote in getattr(finding, "evidence", ())]
            cited += result.passed is True and f"step {planted}" in quotes
        lied, _ = graded(run_of(steps, 0), rubric, judge, lies=True)
        uncited = int(lied.score != 0)
        print(f"{name}: {cited} of {places} found and cited; uncited yes: {uncited}", flush=True)
        assert (cited, uncited) == (places, 0)


if __name__ == "__main__":
    main(*map(int, [*sys.argv[1:], *("100", "12500")[len(sys.argv) - 1 :]]))
