"""Draft a rubric from a description of a good answer, a task, good answers or examples: to be read and edited."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any

from attrs import evolve, field, frozen

from rubric import (
    Anchor,
    Candidate,
    Choices,
    Contains,
    Criterion,
    DecisionTree,
    DefinitionError,
    EndsWith,
    Equals,
    IsJSON,
    Judge,
    Levels,
    Rubric,
    StartsWith,
    Unit,
    When,
    YesNo,
    plan,
)
from rubric.driving import Failure, Usage, adrive
from rubric.embed import (
    Answer,
    Check,
    FrozenMap,
    JudgeLike,
    Options,
    Transport,
    Wording,
    fields,
    judge_or_default,
    shorten,
    visible,
)
from rubric.engine import Plan
from rubric.engine.grade import plan_asks
from rubric.grading.writing import Writing
from rubric.values import Leaf

FEWEST, MOST = 3, 7
"""Criteria of a draft, as AgentV's generator has them."""

MOST_OF_PAIRS = 12
"""Criteria of a draft of which those that do not tell pairs apart are dropped."""

_KINDS = "answer", "levels", "options", "questions", "polarity", "check", "value", "when"
"""The keys that a file whose criteria are yes or no has no place for."""

_CHECKS: dict[str, Callable[[str], Check]] = {
    "contains": Contains,
    "equals": Equals,
    "starts-with": StartsWith,
    "ends-with": EndsWith,
    "is-json": lambda _: IsJSON(),
}
"""All the checks that a model may write: none reads a file, runs a script or makes a request."""


def object_of(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with all of *properties*, and no others."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


TEXT = {"type": "string"}
_ITEM: dict[str, Any] = {
    "id": TEXT,
    "text": TEXT,
    "weight": {"type": "number"},
    "required": {"type": "boolean"},
    "answer": {"enum": ["yes-no", "levels", "score", "options", "tree"]},
    "levels": {"type": "array", "items": object_of({"score": {"type": "integer"}, "text": TEXT})},
    "options": {"type": "array", "items": object_of({"label": TEXT, "score": {"type": "number"}})},
    "questions": {"type": "array", "items": object_of({"ask": TEXT, "yes": TEXT, "no": TEXT})},
    "polarity": {"enum": ["satisfy", "guard", "penalty"]},
    "check": {"enum": ["", *_CHECKS]},
    "value": TEXT,
    "when": TEXT,
}
_PLAIN = {key: form for key, form in _ITEM.items() if key not in _KINDS}


def schema_of(item: dict[str, Any]) -> FrozenMap:
    """Return the schema of an object with a list of criteria, each with the properties of *item*."""
    return FrozenMap(object_of({"criteria": {"type": "array", "items": object_of(item)}}))


_SCHEMAS = {False: schema_of(_ITEM), True: schema_of(_PLAIN)}
_SHORT = {"type": "string", "maxLength": 40}
_BAND = object_of({"score": {"enum": [*range(11)]}, "text": _SHORT})
_OPTION = object_of({"label": _SHORT, "score": {"enum": [n / 10 for n in range(11)]}})
_ASKED = {"type": "string", "maxLength": 100}
_HELD: dict[str, Any] = {
    "id": _SHORT,
    "value": _SHORT,
    "text": {"type": "string", "maxLength": 160},
    "weight": {"enum": [1, 2, 3, 4, 5]},
    "levels": {"type": "array", "items": _BAND, "maxItems": 5},
    "options": {"type": "array", "items": _OPTION, "maxItems": 6},
    "questions": {"type": "array", "items": object_of(dict.fromkeys(("ask", "yes", "no"), _ASKED)), "maxItems": 6},
    "when": _SHORT,
}
"""The bounds of a draft, for servers that hold a model to them: a small one never ends its texts and lists."""

_SHOWN_ITEM = '{"id": "...", "text": "...", "weight": 1, "required": false'
_SHOWN_KINDS = (
    ', "answer": "yes-no", "levels": [], "options": [], "questions": [], "polarity": "satisfy"'
    ', "check": "", "value": "", "when": ""'
)


def _as_examples(value: Iterable[Anchor]) -> tuple[Anchor, ...]:
    return fields.as_tuple("examples", value, Anchor, "anchors, such as Anchor('A good answer.', 1)")


@frozen
class Material:
    """
    What criteria are drafted from.

    Args:
        outcome: A description of a good answer; *task*: what is to be answered; *references*: good answers.
        examples: Answers with the score in 0..1 that a person gives them.
        sources: Documents, policies and transcripts.
        pairs: A task (or ''), the answer to it that a person preferred, and the one that was rejected.
        plain: Whether all criteria are yes or no, as a file may have them alone.
    """

    outcome: str = ""
    task: str = ""
    references: tuple[str, ...] = field(default=(), converter=fields.listed, validator=fields.texts)
    examples: tuple[Anchor, ...] = field(default=(), converter=_as_examples)
    sources: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    plain: bool = False

    def blocks(self) -> list[tuple[str, str]]:
        """Return each text of the material with its title; none without material."""
        found = [("task", self.task), ("expected outcome", self.outcome)]
        found += [("reference answer", text) for text in self.references]
        found += [(f"answer that a person scored {one.score:g} of 1", one.response) for one in self.examples]
        found += [("source", text) for text in self.sources]
        for n, (task, preferred, rejected) in enumerate(self.pairs, 1):
            found += [(f"task {n}", task), (f"preferred answer {n}", preferred), (f"rejected answer {n}", rejected)]
        return [(title, text) for title, text in found if text.strip()]


@frozen
class Draft:
    """What a model wrote: the *rubric* of the criteria that can be used, and those *refused*, each with the reason."""

    rubric: Rubric
    refused: tuple[tuple[Criterion, str], ...] = ()
    usage: Usage = Usage()


Review = Callable[[Rubric, Material], Iterable[tuple[str, str]]]
"""Returns what is wrong with a draft: the id of the criterion (or ''), and the complaint."""


def material(outcome: str, task: str, references: Iterable[str], examples: Iterable[Anchor], **more: Any) -> Material:
    """Return the material of a draft; raise `DefinitionError` if there is none, or if it is the path of a file."""
    for field_name, text in (("case", outcome), ("input", task)):
        if not isinstance(text, str):
            raise fields.refuse(field_name, text, "text")
        fields.refuse_path(field_name, text, f"give Path({text!r}).read_text()")
    given = Material(outcome, task, references, examples, **more)
    if not given.blocks():
        allowed = "a description of a good answer, or an input, references or examples, sources or preferred pairs"
        raise DefinitionError("case", f"expected {allowed}; got none of them")
    return given


async def draft_all(
    given: Mapping[str, Material],
    judge: JudgeLike | None,
    options: Options,
    review: Review,
    on_draft: Callable[[], object] = lambda: None,
) -> list[Draft | Failure]:
    """Return a draft, or why there is none, for each material *given*, by the names of the rubrics."""
    writer = writer_of(judge)
    turns = asyncio.Semaphore(options.concurrency)

    async def draft(name: str, one: Material, send: Transport) -> Draft | Failure:
        async with turns:
            try:
                reading = partial(_read_draft, name, one, review)
                found, usage = await adrive(writing(one).steps(writer, reading), send)
            finally:
                on_draft()
        return found if isinstance(found, Failure) else evolve(found, usage=usage)

    with await asyncio.to_thread(options.pipeline, writer) as opened:
        return [*await asyncio.gather(*(draft(name, one, opened.send) for name, one in given.items()))]


def writer_of(judge: JudgeLike | None) -> Judge:
    """Return the judge that writes; raise `DefinitionError` for one that cannot."""
    writer = judge_or_default(judge)
    if not isinstance(writer, Judge) or writer.model == "offline":
        shown = type(writer).__name__ if not isinstance(writer, Judge) else "'offline', which only counts words"
        cure = Wording("; name a model, or give ", writer=None)
        raise DefinitionError("judge", Wording(f"expected one judge that can write, got {shown}", cure))
    return writer


def plan_drafts(given: Iterable[Material], judge: JudgeLike | None) -> Plan:
    """Plan the drafts of all that is *given*: a call each, and as many again as the judge has repairs."""
    writer = writer_of(judge)
    return plan_asks(writing(one).ask(writer) for one in given)


def plan_answers(answers: Sequence[Candidate], judge: JudgeLike | None) -> Plan:
    """
    Plan the grading of *answers* by a draft that is not written: by few short criteria, and by many long ones.

    A long one has five levels with a text each; no draft of a usual size costs more.
    """
    long = Levels(dict.fromkeys(range(1, 6), "word " * (_LONGEST // 5)))
    least = plan(answers, Rubric(criteria=[Criterion(f"criterion {n}") for n in range(FEWEST)]), judge)
    texts = (f"{n} {'word ' * (_LONGEST // 5)}" for n in range(MOST_OF_PAIRS))
    criteria = [Criterion(text, id=f"c{n}", answer=long) for n, text in enumerate(texts)]
    most = plan(answers, Rubric(criteria=criteria), judge)
    cost = None if least.cost is None or most.cost is None else (least.cost[0], most.cost[1])
    tokens = least.prompt_tokens[0], most.prompt_tokens[1]
    return Plan(least.least, most.most, most.ceiling, tokens, cost)


def _without(rubric: Rubric, remarks: Iterable[tuple[str, str]]) -> Draft:
    why: dict[str, str] = {}
    for id_, said in remarks:
        why.setdefault(id_, said)
    kept = [criterion for criterion in rubric.criteria if criterion.id not in why]
    if not kept:
        raise DefinitionError("criteria", next(iter(why.values())))
    refused = tuple((criterion, why[criterion.id]) for criterion in rubric.criteria if criterion.id in why)
    return Draft(holding(rubric, kept), refused)


def holding(rubric: Rubric, criteria: Iterable[Criterion]) -> Rubric:
    """Return *rubric* with *criteria*; penalties beside criteria that earn points are scored by points."""
    held = tuple(criteria)
    penalties = {criterion.polarity == "penalty" for criterion in held if criterion.weight}
    return evolve(rubric, criteria=held, aggregation="points" if len(penalties) > 1 else "weighted_average")


@cache
def prompt(name: str) -> str:
    """Return the text of the file *name* beside this module, a prompt for a writer."""
    return files("rubric.quality").joinpath(f"{name}.md").read_text("utf-8").rstrip("\n")


def writing(given: Material) -> Writing:
    """Return how a draft is asked for; its digest is that of all its material."""
    slots = {
        "fewest": str(FEWEST),
        "most": str(most_of(given)),
        "kinds": "" if given.plain else prompt("draft_kinds") + "\n",
        "item": _SHOWN_ITEM + ("" if given.plain else _SHOWN_KINDS) + "}",
    }
    # Without a reference answer no check can be borne out, so none may be written.
    known = _HELD if given.references else _HELD | {"check": {"enum": [""]}}
    exact = {"fewest": FEWEST, "most": most_of(given), "known": known}
    return Writing(prompt("draft"), slots, tuple(given.blocks()), _SCHEMAS[given.plain], exact)


def most_of(given: Material) -> int:
    """Return how many criteria a draft may have: more where pairs say which of them are dropped."""
    return MOST_OF_PAIRS if given.pairs else MOST


def _read_draft(name: str, given: Material, review: Review, found: Mapping[str, Any], repairs: int) -> Draft:
    """Return the draft that *found* holds; without *repairs* left, drop the criteria that are complained of."""
    items, most = found.get("criteria"), most_of(given)
    if not isinstance(items, list) or not FEWEST <= len(items) <= most:
        got = len(items) if isinstance(items, list) else "none"
        raise DefinitionError("criteria", f"expected a JSON object with {FEWEST} to {most} criteria, got {got}")
    known = _PLAIN if given.plain else _ITEM
    rubric = holding(Rubric(name), [_criterion(f"criteria[{index}]", item, known) for index, item in enumerate(items)])
    rubric.check_weights()
    remarks = [*_unsafe(rubric), *review(rubric, given)]
    if remarks and repairs:
        raise DefinitionError("", "; ".join(f"{id_}: {why}" if id_ else why for id_, why in remarks))
    return _without(rubric, remarks)


def _criterion(where: str, item: Any, known: Mapping[str, Any]) -> Criterion:
    if not isinstance(item, Mapping) or "text" not in item:
        raise DefinitionError(where, f"expected an object with {', '.join(known)}")
    for key in item:
        if key not in known:
            raise DefinitionError(f"{where}.{key}", f"unknown key{fields.suggest(str(key), known)}")
    given = {key: value for key, value in item.items() if value is not None}
    check, value = given.pop("check", "") or "", given.pop("value", "")
    kind = given.pop("answer", "yes-no")
    parts = {name: given.pop(name, ()) for name in ("levels", "options", "questions")}
    when = given.pop("when", "") or None
    try:
        answer = _check(check, value) if check else _answer(kind, parts)
        return Criterion(**given, answer=answer, when=None if when is None else When(contains=when))
    except DefinitionError as problem:
        raise DefinitionError(f"{where}.{problem.field}", problem.message) from None


def _check(name: object, value: object) -> Check:
    if name not in _CHECKS:
        raise DefinitionError("check", f"expected one of {', '.join(_CHECKS)}, got {shorten(repr(name), 40)}")
    return _CHECKS[str(name)](value)  # type: ignore[arg-type]  # a value that is not text is refused


_SHOWN_PARTS = {
    "levels": '{"score": 1, "text": "..."}',
    "options": '{"label": "...", "score": 0.5}',
    "questions": '{"ask": "...", "yes": "1.0", "no": "ask 2"}',
}


def _answer(kind: object, given: Mapping[str, Any]) -> Answer:
    part = {"levels": "levels", "options": "options", "tree": "questions"}.get(str(kind))
    if part is not None:
        keys = json.loads(_SHOWN_PARTS[part]).keys()
        items = given[part]
        if not isinstance(items, list) or not all(isinstance(one, Mapping) and one.keys() == keys for one in items):
            raise DefinitionError(part, f"expected a list of objects such as {_SHOWN_PARTS[part]}")
    match kind:
        case "yes-no":
            return YesNo()
        case "score":
            return Unit()
        case "levels":
            return Levels({one["score"]: one["text"] for one in given["levels"]})
        case "options":
            return Choices({one["label"]: one["score"] for one in given["options"]})
        case "tree":
            return _tree(given["questions"], 1)
    raise DefinitionError("answer", f"expected yes-no, levels, score, options or tree, got {shorten(repr(kind), 40)}")


def _tree(questions: Sequence[Mapping[str, Any]], number: int) -> DecisionTree:
    """Return the tree from a question on; each way is a score, or a later question, so that no walk goes in circles."""
    if number > len(questions):
        why = f"there is no question {number}; write a score, or the number of a later one"
        raise DefinitionError("questions", why)
    one = questions[number - 1]

    def way(said: object) -> DecisionTree | Leaf:
        if found := re.fullmatch(r"ask (\d{1,3})", str(said).strip()):
            if int(found[1]) <= number:
                raise DefinitionError("questions", f"question {number} leads back to {found[1]}; name a later one")
            return _tree(questions, int(found[1]))
        try:
            return Leaf(float(str(said)))
        except ValueError:
            message = f"expected a score from 0 to 1, or 'ask 2', got {shorten(repr(said), 40)}"
            raise DefinitionError("questions", message) from None

    return DecisionTree(one["ask"], way(one["yes"]), way(one["no"]))


_LONGEST = 600
# What some reader of files acts on: templates of promptfoo and AgentV, references to files, and waivers of `lint`.
# A source may be hostile, and so make a model write any of it.
_ACTIVE = re.compile(
    r"(?P<template>\{\{|\{%|\{#|\$\{|<%)|(?P<waiver>\blint\s*:)"
    r"|(?P<reference>\bfile:/|^\s*(?!https?:)[a-z][a-z+.-]*:/|^\s*(?:exec|file|javascript|package|python|ruby):)",
    re.IGNORECASE,
)


def is_plain(text: str) -> bool:
    """True if no reader of files acts on *text*, all of it can be seen, and it is short enough for a file."""
    return len(text) <= 5 * _LONGEST and not _ACTIVE.search(text) and not visible(text)[1]


def _texts_of(answer: object) -> Iterator[str]:
    match answer:
        case Levels(texts=texts):
            yield from texts.values()
        case Choices(choices=choices):
            yield from (choice.label for choice in choices)
        case DecisionTree() as tree:
            yield from (node.question for node in tree.nodes())
        case Contains(text=text) | Equals(text=text) | StartsWith(text=text) | EndsWith(text=text):
            yield text


def _unsafe(rubric: Rubric) -> Iterator[tuple[str, str]]:
    """Yield the criteria with text that is more than text, or too long, or not to be seen."""
    for criterion in rubric.criteria:
        said = [criterion.id, criterion.text, *_texts_of(criterion.answer)]
        said += [] if criterion.when is None else [criterion.when.contains or ""]
        if not criterion.weight:
            yield criterion.id, "a weight of 0 counts nothing; give it one from 1 to 5"
        for text in said:
            if found := _ACTIVE.search(text):
                yield criterion.id, f"a criterion holds no {found.lastgroup} ({found[0].strip()}); use plain words"
            elif visible(text)[1]:
                yield criterion.id, "it has invisible characters or the tokens of a chat template; use plain words"
            elif len(text) > _LONGEST:
                yield criterion.id, f"it has {len(text)} characters, and {_LONGEST} are the most; say it in a sentence"
