"""What a plan says that grading costs at most holds of what a vendor then bills, whose tokeniser is its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Candidate, Grade, Judge, Jury, Panel, Rubric, ask, grade, plan
from rubric.models.litellm_library import library
from rubric.values.judges import AnyJudge
from tests.examples import examples
from tests.judging import JudgeLike
from tests.sendables import KEY
from tests.servers import Server

SAYS = JudgeLike({"Is polite": True, "Is clear": 7, "Is warm": 0.5, "First?": 0.9, "Second?": 0.2})
WAYS = [("openai/gpt-4o-mini", "litellm"), ("openai/gpt-4o-mini", "http"), ("anthropic/claude-sonnet-4-5", "litellm")]
BENCHES: list[Callable[[Judge], AnyJudge]] = [
    lambda judge: judge,
    lambda judge: evolve(judge, per_call="all"),
    lambda judge: Jury(judge, 2, one_request=True),
    lambda judge: Panel([judge, judge]),
]
TEXTS = st.text(max_size=300) | st.text(st.characters(min_codepoint=0x900, max_codepoint=0x9FFF), max_size=200)


def billed(body: dict[str, Any], _: str) -> tuple[int, int]:
    """Return the tokens that a vendor bills: all that is sent with what frames it, and the longest reply."""
    messages = [{"role": m["role"], "content": _text(m["content"])} for m in body["messages"]]
    there = library().token_counter(model="gpt-4o", messages=messages)
    rest = {name: body[name] for name in ("system", "response_format", "tools", "output_format") if name in body}
    there += library().token_counter(model="gpt-4o", text=json.dumps(rest)) + 20
    if "claude" in body["model"]:
        there = there * 4 // 3 + 346  # its tokens are shorter, and a tool has a prompt of its own
    longest = body.get("max_completion_tokens") or body["max_tokens"]
    return there, longest * body.get("n", 1)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize(("model", "via"), WAYS)
def test_no_pass_costs_more_than_its_plan_says(model: str, via: Any) -> None:
    """Framing, schema and all, if no reply has to be asked for again; nor does one cost less than its prompts."""
    with Server(respond=SAYS, bill=billed) as server:
        endpoint = server.at("ok")
        base = endpoint.anthropic if "claude" in model else endpoint.openai
        judge = Judge(model, params={"api_base": base, "api_key": KEY}, max_tokens=300, repairs=0, via=via)

        @examples(8)
        @given(TEXTS, TEXTS, st.sampled_from(BENCHES))
        def run(text: str, context: str, bench: Callable[[Judge], AnyJudge]) -> None:
            rubric = Rubric().expects("Is polite", id="a").rates("Is clear", id="b").scores("Is warm", id="c")
            rubric = rubric.decides("d", by=ask("First?").yes(ask("Second?").yes(1.0).no(0.5)).no(0.0))
            candidate = Candidate(f"Good morning! {text}", context=context)
            foreseen = plan(candidate, rubric, bench(judge)).cost
            result = grade(candidate, rubric, bench(judge))
            assert isinstance(result, Grade)
            assert foreseen is not None
            assert result.usage.cost is not None
            assert foreseen[0] <= result.usage.cost * 1.0000001
            assert result.usage.cost <= foreseen[1] * 1.0000001

        run()
