"""
From a candidate and a criterion to an `Ask`: the exact messages, and the schema of the reply.

The order is what makes a judge a criterion affordable: the instructions, then all that is the same for every criterion
(the candidate and what belongs to it), then, last, the criterion. All asks for one candidate share all but the tail.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections.abc import Sequence
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any

from attrs import frozen

from rubric.answers import Choices, Levels, Unit, YesNo
from rubric.candidates import Candidate
from rubric.criteria import Anchor, Criterion
from rubric.exchanges import Ask, Outgoing
from rubric.grading.scoring import EVEN, asks_evidence, policy
from rubric.judges import Judge
from rubric.mappings import FrozenMap, thaw
from rubric.prompts import rendering
from rubric.prompts.escaping import visible
from rubric.rubrics import Rubric

_MARK_LENGTH = 16
"""Base-32 digits, 80 bits: whoever writes the candidate would have to find a text that contains its own hash."""


@frozen
class Brief:
    """What all asks about one candidate share."""

    system: str
    shared: str
    sections: FrozenMap
    variables: FrozenMap
    output: str
    run: str
    images: tuple[str, ...]
    warnings: tuple[str, ...]


def brief(candidate: Candidate, rubric: Rubric) -> Brief:
    """Return what all asks about *candidate* under *rubric* share."""
    shown = {title: visible(text) for title, text in _sections(candidate).items() if text or title == "candidate"}
    named = {name: visible(str(value)) for name, value in candidate.variables.items()}
    texts = {title: text for title, (text, _) in shown.items()}
    variables = {name: text for name, (text, _) in named.items()}
    mark = _mark(texts, variables)
    blocks = [f"{title}, {mark}:\n{text}\n{mark}" for title, text in texts.items()]
    return Brief(
        system=_system(rubric.guidelines),
        shared=f"The mark is {mark}.\n\n" + "\n\n".join(blocks) + "\n\n",
        sections=FrozenMap(texts),
        variables=FrozenMap(variables),
        output=candidate.output,
        run="\n\n".join(texts[title] for title in ("conversation", "tool calls", "file changes") if title in texts),
        images=candidate.images,
        warnings=tuple(dict.fromkeys(w for _, ws in (*shown.values(), *named.values()) for w in ws)),
    )


def _system(guidelines: str) -> str:
    return rendering.text("system") + (f"\n\nGuidelines:\n{guidelines.strip()}" if guidelines.strip() else "")


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
    said = "" if result is None else f" -> {result if isinstance(result, str) else _json(result)}"
    return f"- {name}({_json(arguments) if arguments else ''}){said}"


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    except (TypeError, ValueError, RecursionError):  # keys that are no text, or that cannot be sorted
        return str(value)


def _mark(*texts: dict[str, str]) -> str:
    """Return a mark that occurs in none of *texts*, the same for the same texts."""
    whole, attempt = _json(texts), 0
    while (mark := _digest(f"{attempt}:{whole}")) in whole:
        attempt += 1
    return mark


def _digest(text: str) -> str:
    digest = sha256(text.encode("utf-8", "surrogatepass")).digest()
    return b32encode(digest).decode()[:_MARK_LENGTH].lower()


def compose(
    about: Brief,
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
    form = Form.of(rubric, judge, criteria, sealed=judge.is_sealed(own_prompt=rubric.prompt is not None))
    body = _body(rubric, about, criteria, form, complaint=complaint, guidelines=guidelines)
    said = partial(_messages, judge.prompt or rubric.prompt, about, rubric, body, sealed=form.sealed)
    nonce = _nonce(judge, repair, about.images, said(form.words(""))) if form.sealed else ""
    return Ask(
        judge=judge,
        messages=said(form.words(nonce)),
        schema=form.schema(),
        criteria=tuple(criteria),
        nonce=nonce,
        abstainable=frozenset(c.id for c in criteria if policy(rubric, c) != "forbid"),
        quoted=frozenset(c.id for c in criteria if asks_evidence(rubric, c)),
        candidate=about.output,
        run=about.run,
        max_tokens=max_tokens or judge.max_tokens,
        vote=vote,
        repair=repair,
        images=about.images,
        many=form.many,
        flagless=rubric.threshold is not None,
    )


def _nonce(judge: Judge, repair: int, images: Sequence[str], messages: Sequence[Outgoing]) -> str:
    """Return the nonce of an ask: it depends on all that a stranger may have written, pictures and variables too."""
    return _digest(_json([judge.name, repair, images, [(m.role, m.text) for m in messages]]))


def _messages(
    template: str | None, about: Brief, rubric: Rubric, body: str, reply: str, *, sealed: bool
) -> tuple[Outgoing, ...]:
    if template is None:
        return (Outgoing("system", (about.system,)), Outgoing("user", (about.shared, f"{body}\n\n{reply}")))
    return _own_messages(template, about, rubric, body, reply, sealed=sealed)


def _own_messages(
    template: str, about: Brief, rubric: Rubric, body: str, reply: str, *, sealed: bool
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
        "guidelines": rubric.guidelines,
        "criterion": body,
        "rubric": body,
        "reply": reply,
    }
    messages = rendering.fill_chat(template, {**about.variables, **slots})
    if sealed and reply not in messages[-1].text:
        messages = (*messages[:-1], Outgoing(messages[-1].role, (*messages[-1].parts, f"\n\n{reply}")))
    return messages


# -- the criterion -----------------------------------------------------------------------------------------


def _body(
    rubric: Rubric, about: Brief, criteria: Sequence[Criterion], form: Form, *, complaint: str, guidelines: str
) -> str:
    parts = [f"Guidelines for this part:\n{guidelines.strip()}"] if guidelines.strip() else []
    for criterion in criteria:
        title = f'Criterion "{criterion.id}":' if form.many else "Criterion:"
        lines = [title, criterion.text.strip(), *_advice(rubric, criterion, about.output, form)]
        parts.append("\n".join(line for line in lines if line))
    if complaint:
        ours = complaint.partition(", got ")[0]  # what follows is a judge's, and may be the candidate's words
        parts.append(rendering.fill(rendering.text("repair"), {"complaint": ours}))
    return "\n\n".join(parts)


def _advice(rubric: Rubric, criterion: Criterion, output: str, form: Form) -> list[str]:
    advice = [_levels(criterion.answer), _options(criterion.answer), _anchors(criterion, output)]
    if criterion.polarity != "satisfy" or not isinstance(criterion.answer, Choices):
        advice.append(rendering.text(criterion.polarity))
    if asks_evidence(rubric, criterion):
        advice.append(rendering.text("evidence"))
    if policy(rubric, criterion) != "forbid":
        advice.append(rendering.fill(rendering.text("abstain"), {"key": form.key}))
    if form.many:
        advice.append(f'"verdict" is {_value_words(criterion.answer)}.')
    return advice


def _levels(answer: object) -> str:
    if not isinstance(answer, Levels) or not answer.ranges:
        return ""
    return "\n".join(f"- {r}: {r.text}" for r in answer.ranges if r.text)


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
    return f"Response: {_json(anchor.response)} -> {_anchor_value(criterion, anchor.score)}{why}"


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


def _value_words(answer: object) -> str:
    match answer:
        case YesNo():
            return "true or false"
        case Levels(low=low, high=high):
            return f"a whole number from {low} to {high}"
        case Choices(choices=choices):
            return "one of " + ", ".join(_json(c.label) for c in choices)
        case _:
            return "a number from 0 to 1"


# -- the reply ---------------------------------------------------------------------------------------------


@frozen
class Form:
    """The form of a reply: its keys, in order. It depends on types alone, so its schema stays the same."""

    key: str
    words_of_value: str
    type: str
    sealed: bool
    quoted: bool
    nullable: bool
    flagged: bool
    many: bool
    reasoning: str

    @classmethod
    def of(cls, rubric: Rubric, judge: Judge, criteria: Sequence[Criterion], *, sealed: bool) -> Form:
        """Return the form of the reply that *judge* is to give to *criteria*."""
        many = len(criteria) > 1
        answer = criteria[0].answer
        key, kind = ("verdict", "any") if many else _KEYS[type(answer)]
        return cls(
            key=key,
            words_of_value=_value_words(answer),
            type=kind,
            sealed=sealed,
            quoted=any(asks_evidence(rubric, c) for c in criteria),
            nullable=any(policy(rubric, c) != "forbid" for c in criteria),
            flagged=any(c.answer == Unit(flag=True) for c in criteria),
            many=many,
            reasoning=judge.reasoning,
        )

    def keys(self) -> list[str]:
        """Return the keys of one verdict, in the order in which the judge is to write them."""
        reason = ["reason"] if self.reasoning != "none" else []
        value = [*(["evidence"] if self.quoted else []), self.key, *(["pass"] if self.flagged else [])]
        body = [*value, *reason] if self.reasoning == "after" else [*reason, *value]
        return [*(["id"] if self.many else []), *body]

    def words(self, nonce: str) -> str:
        """Return the reply form in words, with the *nonce* to copy."""
        value = "<as each criterion says>" if self.many else f"<{self.words_of_value}>"
        hints = {
            "id": '"<id of the criterion>"',
            "reason": '"<one or two sentences>"',
            "evidence": '["<exact words>", ...]',
            self.key: value,
            "pass": "<true if it passes all in all, else false>",
        }
        verdict = ", ".join(f'"{key}": {hints[key]}' for key in self.keys())
        head = f'"nonce": "{nonce}", ' if nonce else ""
        inner = f'"verdicts": [{{{verdict}}}, ...]' if self.many else verdict
        each = " One verdict for each criterion." if self.many else ""
        return f"Answer with one JSON object: {{{head}{inner}}}{each}"

    def schema(self) -> FrozenMap:
        """Return the JSON Schema of the reply, in the form that vendors call strict: every key required, no other."""
        kind = {"nullable": self.nullable, "sealed": self.sealed, "many": self.many}
        return _schema(tuple(self.keys()), self.key, self.type, **kind)


_KEYS = {
    YesNo: ("verdict", "boolean"),
    Unit: ("score", "number"),
    Levels: ("score", "integer"),
    Choices: ("choice", "string"),
}


@lru_cache(maxsize=256)
def _schema(keys: tuple[str, ...], key: str, kind: str, *, nullable: bool, sealed: bool, many: bool) -> FrozenMap:
    types = ["boolean", "number", "string"] if kind == "any" else [kind]
    types = [*types, "null"] if nullable else types
    known: dict[str, Any] = {
        "id": {"type": "string"},
        "reason": {"type": "string"},
        "evidence": {"type": "array", "items": {"type": "string"}},
        "pass": {"type": "boolean"},
        key: {"type": types if len(types) > 1 else types[0]},
    }
    verdict = _strict({name: known[name] for name in keys})
    properties = {"verdicts": {"type": "array", "items": verdict}} if many else verdict["properties"]
    return FrozenMap(_strict({"nonce": {"type": "string"}, **properties} if sealed else properties))


def _strict(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
