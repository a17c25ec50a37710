"""Draft a rubric from a description of a good answer, a task, good answers or examples: to be read and edited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any

from attrs import evolve, field, frozen

from rubric.engine.budget import Budget
from rubric.engine.grade import JudgeLike, judge_or_default
from rubric.engine.pipeline import Options, StoreLike, adrive
from rubric.errors import DefinitionError, ModelError
from rubric.grading.json_extraction import Ambiguous, find_objects
from rubric.grading.planning import Plan, plan_ask
from rubric.grading.steps import Steps
from rubric.internals import background_loop
from rubric.internals.fields import as_tuple, refuse_path, string, suggest
from rubric.internals.frozen_map import FrozenMap
from rubric.models.pricing import count_tokens, price, worst_cost
from rubric.prompts import render
from rubric.values.criteria import Anchor, Criterion
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Failure, Outgoing, Reply, Transport
from rubric.values.rubrics import Rubric, check_weights

FEWEST, MOST = 3, 7
"""Criteria of a draft, as AgentV's generator has them."""

_MARK = 16
"""Digits of the mark around each text."""

_ITEM: dict[str, Any] = {
    "id": {"type": "string"},
    "text": {"type": "string"},
    "weight": {"type": "number"},
    "required": {"type": "boolean"},
}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_SCHEMA = FrozenMap(_object({"criteria": {"type": "array", "items": _object(_ITEM)}}))


def _as_examples(value: Iterable[Anchor]) -> tuple[Anchor, ...]:
    return as_tuple("examples", value, Anchor, "anchors, such as Anchor('A good answer.', 1)")


def _as_references(value: Iterable[str]) -> tuple[str, ...]:
    return as_tuple("references", value, str, "texts")


@frozen
class Material:
    """
    What criteria are drafted from.

    Args:
        outcome: A description of a good answer.
        task: What is to be answered.
        references: Good answers.
        examples: Answers with the score in 0..1 that a person gives them.
    """

    outcome: str = field(default="", validator=string)
    task: str = field(default="", validator=string)
    references: tuple[str, ...] = field(default=(), converter=_as_references)
    examples: tuple[Anchor, ...] = field(default=(), converter=_as_examples)

    @property
    def is_enough(self) -> bool:
        """True if there is any material."""
        return bool(self.outcome.strip() or self.task.strip() or self.references or self.examples)

    def blocks(self) -> list[tuple[str, str]]:
        """Return each text of the material with its title."""
        found = [("task", self.task), ("expected outcome", self.outcome)]
        found += [("reference answer", text) for text in self.references]
        found += [(f"answer that a person scored {one.score:g} of 1", one.response) for one in self.examples]
        return [(title, text) for title, text in found if text.strip()]


def generate(
    expected_outcome: str = "",
    judge: JudgeLike | None = None,
    *,
    input: str = "",
    references: Iterable[str] = (),
    examples: Iterable[Anchor] = (),
    name: str = "",
    store: StoreLike | None = None,
    budget: Budget | None = None,
) -> Rubric:
    """
    Return a draft: three to seven yes/no criteria that check what the material says of a good answer.

    At least one of *expected_outcome*, *input*, *references* and *examples* is given.

    Args:
        expected_outcome: A description of a good answer.
        judge: The judge that writes it, or a model's name. Left out, the environment's API keys name one.
        input: The task that the answer is for.
        references: Good answers.
        examples: Answers with the score that a person gives them, such as `Anchor("Sure.", 0)`: the criteria tell good
            ones from bad ones.
        name: The name of the rubric.
        store: As for `grade`: the same material is not paid for twice.
        budget: As for `grade`.

    Raises:
        DefinitionError: There is no material, or *judge* cannot write.
        ModelError: The model failed, or wrote no rubric within its repairs.
    """
    given = material(expected_outcome, input, references, examples)
    return background_loop.run(_generate(given, judge, name, Options(store=store, budget=budget)))


async def agenerate(
    expected_outcome: str = "",
    judge: JudgeLike | None = None,
    *,
    input: str = "",
    references: Iterable[str] = (),
    examples: Iterable[Anchor] = (),
    name: str = "",
    store: StoreLike | None = None,
    budget: Budget | None = None,
) -> Rubric:
    """Return a draft like `generate`, without holding up the event loop."""
    given = material(expected_outcome, input, references, examples)
    return await _generate(given, judge, name, Options(store=store, budget=budget))


def material(outcome: str, task: str, references: Iterable[str], examples: Iterable[Anchor]) -> Material:
    """Return the material of a draft; raise `DefinitionError` if there is none, or if it is the path of a file."""
    for field_name, text in (("expected_outcome", outcome), ("input", task)):
        if isinstance(text, str):
            refuse_path(field_name, text, f"give Path({text!r}).read_text()")
    given = Material(outcome, task, references, examples)
    if not given.is_enough:
        message = "expected a description of a good answer, or an input, references or examples; got none of them"
        raise DefinitionError("expected_outcome", message)
    return given


async def _generate(given: Material, judge: JudgeLike | None, name: str, options: Options) -> Rubric:
    (made,) = await draft_all({name: given}, judge, options)
    if isinstance(made, Failure):
        raise ModelError(made)
    return made


async def draft_all(
    given: Mapping[str, Material],
    judge: JudgeLike | None,
    options: Options,
    on_draft: Callable[[], object] = lambda: None,
) -> list[Rubric | Failure]:
    """Return a draft, or why there is none, for each material *given*, by the names of the rubrics."""
    writer = writer_of(judge)
    turns = asyncio.Semaphore(options.concurrency)

    async def draft(name: str, one: Material, send: Transport) -> Rubric | Failure:
        async with turns:
            try:
                return await adrive(_drafting(one, writer, name), send)
            except ModelError as error:
                return error.failure
            finally:
                on_draft()

    with await asyncio.to_thread(options.pipeline, writer) as opened:
        return [*await asyncio.gather(*(draft(name, one, opened.send) for name, one in given.items()))]


def writer_of(judge: JudgeLike | None) -> Judge:
    """Return the judge that writes; raise `DefinitionError` for one that cannot."""
    writer = judge_or_default(judge)
    if not isinstance(writer, Judge) or writer.model == "offline":
        shown = type(writer).__name__ if not isinstance(writer, Judge) else "'offline', which only counts words"
        raise DefinitionError("judge", f"expected one judge that can write, got {shown}; name a model")
    return writer


def plan_drafts(given: Iterable[Material], judge: JudgeLike | None) -> Plan:
    """Plan the drafts of all that is *given*: a call each, and as many again as the judge has repairs."""
    writer = writer_of(judge)
    return Plan.total(plan_ask(_ask(one, writer), count=count_tokens, price=price, worst=worst_cost) for one in given)


def _drafting(given: Material, judge: Judge, name: str) -> Steps[Rubric]:
    """Ask *judge* for a draft, and again with the complaint if it cannot be used; yields asks, like `flow`."""
    complaint, retries = "", judge.retries
    for repair in range(judge.repairs + 1):
        (got,) = yield (evolve(_ask(given, judge, complaint, repair), retries=retries),)
        retries = max(0, retries - max(0, got.usage.calls - 1))
        if isinstance(got, Failure):
            raise ModelError(got)
        try:
            return _read_draft(got, name)
        except DefinitionError as problem:
            complaint = str(problem)
    raise ModelError(Failure("unreadable", complaint, judge=judge.name))


def _ask(given: Material, judge: Judge, complaint: str = "", repair: int = 0) -> Ask:
    blocks = given.blocks()
    # From a hash of the texts: none of them can hold it, and the same material is the same request for the store.
    mark = sha256(
        "\x1f".join(f"{title}\x1e{text}" for title, text in blocks).encode("utf-8", "surrogatepass")
    ).hexdigest()
    mark = mark[:_MARK]
    text = "\n\n".join(f"{title}, {mark}:\n{block}\n{mark}" for title, block in blocks)
    if complaint:
        text += f"\n\nYour last answer could not be used: {complaint}. Write the rubric again."
    slots = {"fewest": str(FEWEST), "most": str(MOST), "mark": mark}
    system = render.fill(render.text("draft"), slots)
    messages = (Outgoing("system", (system,)), Outgoing("user", (text,)))
    return Ask(judge, messages, _SCHEMA, (), max_tokens=judge.max_tokens, repair=repair)


def _read_draft(reply: Reply, name: str) -> Rubric:
    """Return the rubric that *reply* holds; raise `DefinitionError`, which says what is wrong, if it cannot be used."""
    try:
        found = find_objects(reply.text or "", lambda value, _: "criteria" in value)
    except Ambiguous as why:
        raise DefinitionError("", str(why)) from None
    items = found[-1][0]["criteria"] if found else None
    if not isinstance(items, list) or not FEWEST <= len(items) <= MOST:
        got = len(items) if isinstance(items, list) else "none"
        raise DefinitionError("criteria", f"expected a JSON object with {FEWEST} to {MOST} criteria, got {got}")
    rubric = Rubric(name, criteria=[_criterion(index, item) for index, item in enumerate(items)])
    check_weights(rubric)
    return rubric


def _criterion(index: int, item: Any) -> Criterion:
    where = f"criteria[{index}]"
    if not isinstance(item, Mapping) or "text" not in item:
        raise DefinitionError(where, "expected an object with id, text, weight and required")
    for key in item:
        if key not in _ITEM:
            raise DefinitionError(f"{where}.{key}", f"unknown key{suggest(str(key), _ITEM)}")
    try:
        return Criterion(**{key: value for key, value in item.items() if value is not None})
    except DefinitionError as problem:
        raise DefinitionError(f"{where}.{problem.field}", problem.message) from None
