"""Hypothesis strategies: any suite that can be built and written to a file. They need Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from rubric.candidates import Message, ToolCall
from rubric.judges import Cascade, Judge, Jury, Panel
from rubric.rubrics import Rubric
from rubric.suites.cases import Case
from rubric.suites.suites import Suite
from rubric.testing.strategies import any_texts, free_maps, ids, plain_values, rubrics, texts

__all__ = ["benches", "cases", "suites"]

models = st.sampled_from(["openai/gpt-5-mini", "anthropic/claude-sonnet-4-5", "offline"])
single_judges = st.builds(
    Judge,
    models,
    temperature=st.one_of(st.none(), st.floats(0, 2)),
    seed=st.one_of(st.none(), st.integers(0, 9)),
    per_call=st.sampled_from([1, 3, "all"]),
    reasoning=st.sampled_from(["before", "after", "none"]),
    logprobs=st.booleans(),
    speculate=st.booleans(),
)
benches: st.SearchStrategy[Any] = st.recursive(
    single_judges,
    lambda members: st.one_of(
        st.builds(Jury, members, st.integers(1, 5), st.sampled_from([0.5, 0.67, 1]), one_request=st.booleans()),
        st.builds(Cascade, members, members, st.sampled_from(["fails", "borderline", "ungraded", (0.4, 0.8), (0, 1)])),
        st.builds(Panel, st.lists(members, min_size=1, max_size=3), aggregate=st.sampled_from(["mean", "majority"])),
    ),
    max_leaves=3,
)


calls = st.builds(ToolCall, texts(), arguments=free_maps, result=plain_values)


@st.composite
def cases(draw: st.DrawFn, graded: st.SearchStrategy[Rubric]) -> Case:
    """Return a case that is graded against one of *graded*; most of its fields are as by default."""
    options: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "input": any_texts(),
                "output": any_texts(),
                "reference": any_texts(),
                "messages": st.lists(st.builds(Message, texts(), any_texts()), max_size=2),
                "tool_calls": st.lists(
                    st.builds(ToolCall, texts(), arguments=free_maps, result=plain_values), max_size=2
                ),
                "context": any_texts(),
                "variables": free_maps,
                "judge": benches,
                "server": any_texts(),
                "cell": free_maps,
                "tags": st.lists(any_texts(), max_size=2),
                "metadata": free_maps,
            },
        )
    )
    rubric = draw(graded)
    options["judges"] = {c.id: draw(single_judges) for c in rubric.judged[:1] if draw(st.booleans())}
    return Case(draw(ids), rubric, **options)


def suites(graded: st.SearchStrategy[Rubric] | None = None) -> st.SearchStrategy[Suite]:
    """Return suites of up to three cases, graded against *graded*: any rubrics, if it is not given."""
    held = st.lists(cases(rubrics() if graded is None else graded), max_size=3, unique_by=lambda case: case.id)
    return st.builds(Suite, any_texts(), held, judge=st.one_of(st.none(), benches), metadata=free_maps)
