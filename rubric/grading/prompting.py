"""
From a candidate and a criterion to an `Ask`: the exact messages, and the schema of the reply.

The order is what makes a judge a criterion affordable: the instructions, then all that is the same for every criterion
(the candidate and what belongs to it), then, last, the criterion. All asks for one candidate share all but the tail.

What one call asks about: criteria that go together, or the question at a node of a tree.

A criterion in words: its text, its levels and options, its calibration examples, and how it is meant.
"""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from attrs import frozen

from rubric.grading.response_format import Form, value_words
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.internals.text import as_json, visible
from rubric.prompts import render
from rubric.scoring.outcomes import EVEN, asks_evidence, policy
from rubric.values.answers import Choices, Levels, Unit, YesNo
from rubric.values.candidates import Candidate
from rubric.values.criteria import Anchor, Criterion
from rubric.values.judges import Judge
from rubric.values.requests import Ask, Outgoing
from rubric.values.rubrics import Rubric
from rubric.values.trees import DecisionTree


def grouped(criteria: Sequence[Criterion], judge: Judge) -> list[list[Criterion]]:
    """
    Return what is asked together: trees and nested rubrics alone, others as many a call as the judge takes.

    Criteria that ask for the judge's own pass flag are kept apart: a flag beside a yes or no could contradict it.
    """
    size = len(criteria) if judge.per_call == "all" else judge.per_call
    groups: list[list[Criterion]] = []
    filling: dict[bool, list[Criterion]] = {}
    for criterion in criteria:
        flagged = criterion.answer == Unit(flag=True)
        if isinstance(criterion.answer, DecisionTree | Rubric):
            groups.append([criterion])
        elif len(filling.get(flagged, ())) in (0, size):
            groups.append([criterion])
            filling[flagged] = groups[-1]
        else:
            filling[flagged].append(criterion)
    return groups


def as_question(criterion: Criterion, node: DecisionTree) -> Criterion:
    """Return the question at *node* as a criterion that the judge scores: how surely the answer is yes."""
    return Criterion(node.question, id=criterion.id, answer=Unit(), evidence=False, abstain="forbid")


def body(
    rubric: Rubric, criteria: Sequence[Criterion], form: Form, *, output: str, complaint: str, guidelines: str
) -> str:
    """Return the tail of a prompt: the *criteria*, what helps to judge them, and any *complaint*."""
    parts = [f"Guidelines for this part:\n{guidelines.strip()}"] if guidelines.strip() else []
    for criterion in criteria:
        title = f'Criterion "{criterion.id}":' if form.many else "Criterion:"
        lines = [title, criterion.text.strip(), *_advice(rubric, criterion, output, form)]
        parts.append("\n".join(line for line in lines if line))
    if complaint:
        ours = complaint.partition(", got ")[0]  # what follows is a judge's, and may be the candidate's words
        parts.append(render.fill(render.text("repair"), {"complaint": ours}))
    return "\n\n".join(parts)


def _advice(rubric: Rubric, criterion: Criterion, output: str, form: Form) -> list[str]:
    levels = level_lines(criterion.answer) if isinstance(criterion.answer, Levels) else []
    advice = ["\n".join(levels), _options(criterion.answer), _anchors(criterion, output)]
    if criterion.polarity != "satisfy" or not isinstance(criterion.answer, Choices):
        advice.append(render.text("guard" if criterion.is_unwanted else criterion.polarity))
    if asks_evidence(rubric, criterion):
        advice.append(render.text("evidence"))
    if policy(rubric, criterion) != "forbid":
        advice.append(render.fill(render.text("abstain"), {"key": form.key}))
    if form.many:
        advice.append(f'"verdict" is {value_words(criterion.answer)}.')
    return advice


def level_lines(levels: Levels) -> list[str]:
    """Return what the numbers of *levels* mean, a line each; and that those between anchors are answers too."""
    between = [render.text("between")] if levels.has_between else []
    return [*(f"- {r}: {r.text}" for r in levels.ranges if r.text), *between]


def _options(answer: object) -> str:
    if not isinstance(answer, Choices) or not any(c.text for c in answer.choices):
        return ""
    return "\n".join(f"- {c.label}: {c.text}" for c in answer.choices if c.text)


def _anchors(criterion: Criterion, output: str) -> str:
    """Return the calibration examples, without the graded text itself: it would carry its own verdict."""
    graded = " ".join(output.split()).casefold()
    kept = [a for a in criterion.anchors if " ".join(a.response.split()).casefold() != graded]
    if not kept:
        return ""
    return "\n".join(["Calibration examples:", *(_anchor(criterion, a) for a in kept)])


def _anchor(criterion: Criterion, anchor: Anchor) -> str:
    why = f" ({anchor.reason})" if anchor.reason else ""
    return f"Response: {as_json(anchor.response)} -> {_anchor_value(criterion, anchor.score)}{why}"


def _anchor_value(criterion: Criterion, score: float) -> str:
    match criterion.answer:
        case YesNo():
            return "yes" if score >= EVEN else "no"
        case Levels(low=low, high=high):
            return f"score {round(low + score * (high - low))}"
        case Choices(choices=choices):
            return min(choices, key=lambda c: abs(c.score - score)).label
        case _:
            return f"score {score:.2f}"


_MARK_LENGTH = 16
"""Base-32 digits, 80 bits: whoever writes the candidate would have to find a text that contains its own hash."""


@frozen
class SharedPrompt:
    """What all asks about one candidate share."""

    system: str
    shared: str
    sections: FrozenMap
    variables: FrozenMap
    output: str
    run: str
    images: tuple[str, ...]
    warnings: tuple[str, ...]


def shared_prompt(candidate: Candidate, rubric: Rubric) -> SharedPrompt:
    """Return what all asks about *candidate* under *rubric* share."""
    shown = {title: _shown(text) for title, text in _sections(candidate).items() if text or title == "candidate"}
    named = {name: visible(str(value)) for name, value in candidate.variables.items()}
    texts = {title: text for title, (text, _) in shown.items()}
    variables = {name: text for name, (text, _) in named.items()}
    mark = _mark(texts, variables)
    blocks = [f"{title}, {mark}:\n{text}\n{mark}" for title, text in texts.items()]
    return SharedPrompt(
        system=_system(rubric.guidelines),
        shared=f"The mark is {mark}.\n\n" + "\n\n".join(blocks) + "\n\n",
        sections=FrozenMap(texts),
        variables=FrozenMap(variables),
        output=candidate.output,
        run="\n\n".join(texts[title] for title in ("conversation", "tool calls", "file changes") if title in texts),
        images=candidate.images,
        warnings=tuple(dict.fromkeys(w for _, ws in (*shown.values(), *named.values()) for w in ws)),
    )


_SPACES = str.maketrans("", "", "\t\n\r")


def _shown(text: str) -> tuple[str, tuple[str, ...]]:
    """Return *text* as the judge may see it, and what to warn of: at once where it plainly hides nothing."""
    plain = text.isascii() and text.translate(_SPACES).isprintable() and "<" not in text and "[" not in text
    return (text, ()) if plain else visible(text)


def _system(guidelines: str) -> str:
    return render.text("system") + (f"\n\nGuidelines:\n{guidelines.strip()}" if guidelines.strip() else "")


def _sections(candidate: Candidate) -> dict[str, str]:
    return {
        "task": candidate.input,
        "reference answer": candidate.reference,
        "context": candidate.context,
        "conversation": "\n".join(f"{m.role}: {m.content}" for m in candidate.messages),
        "tool calls": "\n".join(_call_line(c.name, thaw(c.arguments), thaw(c.result)) for c in candidate.tool_calls),
        "file changes": candidate.file_changes,
        "candidate": candidate.output,
    }


def _call_line(name: str, arguments: Any, result: Any) -> str:
    said = "" if result is None else f" -> {result if isinstance(result, str) else as_json(result)}"
    return f"- {name}({as_json(arguments) if arguments else ''}){said}"


def _mark(*texts: dict[str, str]) -> str:
    """Return a mark that occurs in none of *texts*, the same for the same texts."""
    whole, attempt = as_json(texts), 0
    while (mark := _digest(f"{attempt}:{whole}")) in whole:
        attempt += 1
    return mark


def _digest(text: str) -> str:
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return b32encode(digest[: _MARK_LENGTH * 5 // 8]).decode().lower()


def compose(
    about: SharedPrompt,
    rubric: Rubric,
    judge: Judge,
    criteria: Sequence[Criterion],
    *,
    vote: int = 0,
    repair: int = 0,
    complaint: str = "",
    max_tokens: int | None = None,
    guidelines: str = "",
) -> Ask:
    """
    Return the ask for *criteria* (more than one where the judge takes several a call).

    Args:
        about: The shared part.
        rubric: The rubric that the criteria belong to; it may be nested in another.
        complaint: Why the last answer could not be used, for a re-ask; what the judge said in it is left out.
        guidelines: Of a nested rubric; those of the outermost stand in the shared part.
    """
    asked = _asked(rubric, judge, criteria, output=about.output, complaint=complaint, guidelines=guidelines)
    form, reply = asked.form, asked.reply
    said = partial(_messages, judge.prompt or rubric.prompt, about, asked, sealed=form.sealed)
    nonce = _nonce(judge, repair, about.images, said(reply)) if form.sealed else ""
    return Ask(
        judge=judge,
        messages=said(form.words(nonce) if nonce else reply),
        schema=asked.schema,
        criteria=asked.criteria,
        nonce=nonce,
        abstainable=asked.abstainable,
        quoted=asked.quoted,
        candidate=about.output,
        run=about.run,
        max_tokens=max_tokens or judge.max_tokens,
        vote=vote,
        repair=repair,
        images=about.images,
        many=form.many,
        flagless=rubric.threshold is not None,
    )


@frozen
class CriterionPrompt:
    """
    What differs from ask to ask about one candidate, and is the same for many candidates.

    Args:
        tail: The criteria with all that helps to judge them.
        texts: The criteria in the author's words alone.
        guidelines: Those of the rubric.
        reply: The reply form in words, without a nonce.
    """

    form: Form
    criteria: tuple[Criterion, ...]
    tail: str
    texts: str
    guidelines: str
    reply: str
    schema: FrozenMap
    abstainable: frozenset[str]
    quoted: frozenset[str]


def _asked(
    rubric: Rubric, judge: Judge, criteria: Sequence[Criterion], *, output: str, complaint: str, guidelines: str
) -> CriterionPrompt:
    """Return what is asked; it is kept, for the next candidate, where it does not depend on this one."""
    sealed = judge.is_sealed(own_prompt=rubric.prompt is not None)
    worded = partial(_worded, rubric, judge, criteria, sealed=sealed, guidelines=guidelines)
    if complaint or any(criterion.anchors for criterion in criteria):
        return worded(output=output, complaint=complaint)
    # By identity, since to hash a rubric takes longer than to word a criterion. The value holds the criteria, so that
    # no id is used again; and no judge, whose key must not outlive it.
    key = (judge.reasoning, sealed, guidelines, *map(id, criteria))
    return rubric.derive(key, lambda: worded(output="", complaint=""))


def _worded(
    rubric: Rubric,
    judge: Judge,
    criteria: Sequence[Criterion],
    *,
    sealed: bool,
    output: str,
    complaint: str,
    guidelines: str,
) -> CriterionPrompt:
    form = Form.of(rubric, judge, criteria, sealed=sealed)
    return CriterionPrompt(
        form=form,
        criteria=tuple(criteria),
        tail=body(rubric, criteria, form, output=output, complaint=complaint, guidelines=guidelines),
        texts=_plainly(criteria),
        guidelines=rubric.guidelines,
        reply=form.words(""),
        schema=form.schema(),
        abstainable=frozenset(c.id for c in criteria if policy(rubric, c) != "forbid"),
        quoted=frozenset(c.id for c in criteria if asks_evidence(rubric, c)),
    )


def _plainly(criteria: Sequence[Criterion]) -> str:
    if len(criteria) == 1:
        return criteria[0].text.strip()
    return "\n".join(f"{criterion.id}: {criterion.text.strip()}" for criterion in criteria)


def _nonce(judge: Judge, repair: int, images: Sequence[str], messages: Sequence[Outgoing]) -> str:
    """Return the nonce of an ask: it depends on all that a stranger may have written, pictures and variables too."""
    return _digest(as_json([judge.name, repair, images, [(m.role, m.text) for m in messages]]))


def _messages(
    template: str | None, about: SharedPrompt, asked: CriterionPrompt, reply: str, *, sealed: bool
) -> tuple[Outgoing, ...]:
    if template is None:
        return (Outgoing("system", (about.system,)), Outgoing("user", (about.shared, f"{asked.tail}\n\n{reply}")))
    return _own_messages(template, about, asked, reply, sealed=sealed)


def _own_messages(
    template: str, about: SharedPrompt, asked: CriterionPrompt, reply: str, *, sealed: bool
) -> tuple[Outgoing, ...]:
    """Return the messages of the user's own template; if sealed, the reply form stands at the end at the latest."""
    slots = {
        "candidate": about.shared.rstrip(),
        "output": about.sections["candidate"],
        "input": about.sections.get("task", ""),
        "reference": about.sections.get("reference answer", ""),
        "context": about.sections.get("context", ""),
        "conversation": about.sections.get("conversation", ""),
        "tool_calls": about.sections.get("tool calls", ""),
        "file_changes": about.sections.get("file changes", ""),
        "guidelines": asked.guidelines,
        "criterion": asked.tail,
        "rubric": asked.texts,
        "reply": reply,
    }
    messages = render.fill_chat(template, {**about.variables, **slots})
    if sealed and reply not in messages[-1].text:
        messages = (*messages[:-1], Outgoing(messages[-1].role, (*messages[-1].parts, f"\n\n{reply}")))
    return messages
