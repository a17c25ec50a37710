"""
The form of a reply: what a judge is asked to write, as text and as a JSON Schema.

What a verdict on each type of answer looks like is in `rubric.grading.reply_parser`, which reads it back.

There are two schemas. Vendors keep what they make of a schema, so theirs is the same for all criteria of a kind. A
server that compiles it for each request (llama.cpp, vLLM, Ollama) can hold a model to more: `Form.exact` has the
labels, the range, the ids and the nonce of one ask, and ends texts and lists that a small model would never end.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import cached_property, lru_cache
from json import dumps
from typing import Any

from attrs import evolve, frozen

from rubric.grading.reply_parser import shape_of
from rubric.internals.frozen_map import FrozenMap, thaw
from rubric.values.answers import Answer, Choices, Unit
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.requests import MOST_TOKENS

NO_SCHEMA = FrozenMap()
"""The schema of a free text: one object, since models keep what they make of a schema by its identity."""

REASON, QUOTE, QUOTES = 400, 300, 3
"""Characters of two sentences, and of a quote; and how many quotes there are, where a server can hold them."""

_WORDS, _WORD = 40, 20
_LETTER = r'[^ "\\\n\r\t]'
# Two sentences as words, where a server can hold them. A small model repeats itself until it may not, and 400
# characters such as `jxjxjx` are 400 tokens; a bound on the word ends that. A pattern and a length would contradict
# each other: llama.cpp drops the length, and vLLM's xgrammar refuses the schema.
_REASON = f"^{_LETTER}{{1,{_WORD}}}( {_LETTER}{{1,{_WORD}}}){{0,{_WORDS - 1}}}$"

_MOST_VALUES, _NONCE_HERE = 101, "\0"
_FRAME, _EACH = 256, 64  # tokens of prose or white space around a verdict, and of its keys, its id and its nonce


@frozen(cache_hash=True)  # its schemas are kept by it
class Form:
    """The form of a reply: its keys, in order. It depends on types alone, so its schema stays the same."""

    key: str
    type: str
    values: str
    sealed: bool
    quoted: bool
    nullable: bool
    flagged: bool
    many: bool
    reasoning: str
    text: str = ""
    """What the prompt says of the form of a free text; empty for JSON."""

    @classmethod
    def of(cls, answers: Sequence[Answer], reasoning: str, kind: tuple[bool, bool, bool]) -> Form:
        """Return the form of the reply on criteria with *answers*; *kind*: whether sealed, quoted and nullable."""
        many, flagged = len(answers) > 1, any(isinstance(each, Unit) and each.flag for each in answers)
        shown = ("verdict", "any", "as each criterion says") if many else shape_of(answers[0])[:3]
        return cls(*shown, *kind, flagged, many=many, reasoning=reasoning)

    def as_text(self, judge: Judge, criterion: Criterion) -> Form:
        """Return the form of a free text that *judge* has a reader for."""
        from rubric.grading.free_text import reply_form  # noqa: PLC0415 - few judges have a reader

        wanted = {"evidence": self.quoted, "abstentions": self.nullable, "the judge's own pass flag": self.flagged}
        unusual = next((name for name, is_wanted in wanted.items() if is_wanted), "")
        return evolve(self, text=reply_form(judge, criterion, self.values, unusual=unusual))

    def keys(self) -> list[str]:
        """Return the keys of one verdict, in the order in which the judge is to write them."""
        reason = ["reason"] if self.reasoning != "none" else []
        value = [*(["evidence"] if self.quoted else []), self.key, *(["pass"] if self.flagged else [])]
        body = [*value, *reason] if self.reasoning == "after" else [*reason, *value]
        # The nonce comes last: a judge that repeats the candidate unescaped ends its object early, before the nonce.
        return [*(["id"] if self.many else []), *body, *(["nonce"] if self.sealed else [])]

    def words(self, nonce: str) -> str:
        """Return the form as the prompt says it, with the *nonce* to copy; without one, as for an unsealed reply."""
        if self.text:
            return self.text
        hints = {
            "id": '"<id of the criterion>"',
            "reason": '"<one or two sentences>"',
            "evidence": '["<exact words>", ...]',
            self.key: f"<{self.values}>",
            "pass": "<true if it passes all in all, else false>",
            "nonce": f'"{nonce}"',
        }
        verdict = ", ".join(f'"{key}": {hints[key]}' for key in self.keys() if nonce or key != "nonce")
        inner = f'"verdicts": [{{{verdict}}}, ...]' if self.many else verdict
        each = " One verdict for each criterion." if self.many else ""
        return f"Answer with one JSON object: {{{inner}}}{each}"

    @cached_property
    def words_around_nonce(self) -> tuple[str, str, str]:
        """The words for it without a nonce, and those before and after a nonce."""
        before, _, after = self.words(_NONCE_HERE).rpartition(_NONCE_HERE)
        return self.words(""), before, after

    @cached_property
    def schema(self) -> FrozenMap:
        """The JSON Schema of the reply, in the form that vendors call strict: every key required, no other."""
        if self.text:
            return NO_SCHEMA
        return _schema(tuple(self.keys()), self.key, self.type, nullable=self.nullable, many=self.many)

    def bounds(
        self, criteria: Sequence[Criterion], quoted: Container[str], abstainable: Container[str]
    ) -> tuple[str, int]:
        """Return the JSON Schema of the list of verdicts on *criteria*, without its nonce, and its most tokens."""
        if self.text:
            return "", MOST_TOKENS
        verdicts = [
            self.exact_verdict(c.answer, c.id, quoted=c.id in quoted, nullable=c.id in abstainable) for c in criteria
        ]
        size = len(verdicts)
        # A place for each criterion, in order: a list of any length is one that a small model never ends.
        listed = {"type": "array", "prefixItems": verdicts, "minItems": size, "maxItems": size}
        return dumps(_strict({"verdicts": listed}), separators=(",", ":")), self.most_tokens(
            [c.answer for c in criteria]
        )

    def bounds_of_one(self, answer: Answer) -> tuple[str, int]:
        """Return the same for a reply on one criterion."""
        verdict = self.exact_verdict(answer, quoted=self.quoted, nullable=self.nullable)
        return dumps(verdict, separators=(",", ":")), self.most_tokens([answer])

    def exact_verdict(self, answer: Any, id_: str = "", *, quoted: bool, nullable: bool) -> dict[str, Any]:
        """Return the schema of the verdict on a criterion with *answer*."""
        quotes = QUOTES if quoted else 0
        values, types = shape_of(answer).each, ["null"] if nullable else []
        known: dict[str, Any] = {
            "id": {"const": id_},
            "reason": {"type": "string", "pattern": _REASON},
            "evidence": {"type": "array", "items": {"type": "string", "maxLength": QUOTE}, "maxItems": quotes},
            "pass": {"type": "boolean"},
            "nonce": {"const": ""},
        }
        if isinstance(values, range) and len(values) > _MOST_VALUES:
            known[self.key] = {"type": ["integer", *types], "minimum": values[0], "maximum": values[-1]}
        else:
            known[self.key] = {"enum": [*values, *[None for _ in types]]}
        return _strict({name: known[name] for name in self.keys()})

    def most_tokens(self, answers: Sequence[Answer]) -> int:
        """Return how many tokens the reply may have: one for every two characters of its texts, and some to spare."""
        texts = (REASON if self.reasoning != "none" else 0) + (QUOTES * QUOTE if self.quoted else 0)
        labels = [len(c.label) for answer in answers if isinstance(answer, Choices) for c in answer.choices]
        return min(MOST_TOKENS, _FRAME + len(answers) * (_EACH + texts // 2 + max(labels, default=0)))


@lru_cache(maxsize=256)
def _schema(keys: tuple[str, ...], key: str, kind: str, *, nullable: bool, many: bool) -> FrozenMap:
    types = ["boolean", "number", "string"] if kind == "any" else [kind]
    types = [*types, "null"] if nullable else types
    known: dict[str, Any] = {
        "id": {"type": "string"},
        "reason": {"type": "string"},
        "evidence": {"type": "array", "items": {"type": "string"}},
        "pass": {"type": "boolean"},
        "nonce": {"type": "string"},
        key: {"type": types if len(types) > 1 else types[0]},
    }
    verdict = _strict({name: known[name] for name in keys})
    return FrozenMap(_strict({"verdicts": {"type": "array", "items": verdict}}) if many else verdict)


def bound_schema(schema: FrozenMap, fewest: int, most: int, known: dict[str, Any], *, inner: int = 0) -> str:
    """Return *schema* as text with *fewest* to *most* items (*inner* within an item), short texts, *known* keys."""

    def bound(part: dict[str, Any], limit: int) -> dict[str, Any]:
        match part.get("type"):
            case "string":
                return part | {"maxLength": QUOTE}
            case "array":
                return part | {"items": bound(part["items"], inner or most), "minItems": fewest, "maxItems": limit}
            case "object":
                keys = part["properties"].items()
                return part | {"properties": {key: known.get(key) or bound(value, limit) for key, value in keys}}
        return part

    return dumps(bound(thaw(schema), most), separators=(",", ":"))


def _strict(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
