"""
The parts that assertions are made of: what was read of each, checks under a threshold, and the judges that they name.
"""

from __future__ import annotations

import re
from typing import Any

from attrs import frozen

from rubric import Criterion, DefinitionError, Judge, Rubric
from rubric.embed import Check, Cursor, shorten
from rubric.formats.includes import is_code
from rubric.formats.javascript import Transform
from rubric.formats.keys import table_of
from rubric.formats.model_names import SETTINGS, litellm_name
from rubric.formats.promptfoo.texts import items_of, values_in, with_environment
from rubric.internals.secrets import is_secret
from rubric.programs.javascript import EXTRA
from rubric.programs.processes import CURE
from rubric.values import Unsupported


@frozen
class Assertion:
    """One assertion as it was read: a check or a rubric, its *text*, and the transform *on* which it is asked."""

    text: str
    answer: Check | Rubric
    weight: float = 1
    tags: tuple[str, ...] = ()
    kind: str = ""
    judges: frozenset[Judge | None] = frozenset()
    place: Cursor | None = None
    plain: bool = False
    on: Transform | None = None


_GIVEN = "give the judgement as a function of the candidate and the `value`: `functions={type: function}`"
_CURES: dict[str, str] = {
    pattern: cure.replace("{given}", _GIVEN).replace("{allow}", CURE).replace("{extra}", EXTRA)
    for pattern, cure in table_of("promptfoo")["cures"].items()
}
_ANY = f"leave it out (--unsupported skip), or {_GIVEN}"


def cure_of(kind: str) -> str:
    """Return what would make an assertion of a *kind* gradable; '' where the words of *kind* say so themselves."""
    if "pip install" in kind:
        return ""
    return next((cure for pattern, cure in _CURES.items() if re.search(pattern, kind)), _ANY)


def placeholder(kind: str, detail: str, place: Cursor, cure: str | None = None) -> Assertion:
    """Return an assertion in the place of a *kind* that this library lacks; its test stays ungraded."""
    kind, _, need = kind.partition(", which needs ")
    words = f"{kind}: {shorten(detail, 80)}" if detail.strip() else kind
    cure = f"it needs {need}" if need else cure_of(kind) if cure is None else cure
    place.warn(f"assertion type '{kind}' is not supported, so it is not graded{f'; {cure}' if cure else ''}")
    return Assertion(words, Unsupported(kind, cure=cure), kind=kind, place=place)


def lacking(kind: str, lacks: list[str], place: Cursor) -> Assertion:
    """Return an assertion of a *kind* whose test stays ungraded for what the load *lacks*, which has been noted."""
    words = f"{kind} with {lacks[0]}"
    return Assertion(words, Unsupported(words, cure=cure_of(words)), kind=kind, place=place)


def as_assertion(at: Cursor, check: Check, kind: str, bar: float | None = None) -> Assertion | None:
    """Return *check* as the assertion of a *kind*: turned over by a `not-`, and passing from *bar* on, if any."""
    negate = kind.startswith("not-")
    if not negate and bar is None:
        return Assertion(str(check), check, kind=kind)
    criteria = [Criterion(str(check), id="overall", answer=check)]
    rubric = (at.find("threshold") or at).built(
        Rubric, criteria=criteria, threshold=bar, negate=negate, degenerate="judge"
    )
    return None if rubric is None else Assertion(f"{'not ' * negate}{check}", rubric, kind=kind)


_TAKEN = {**{name: name for name in SETTINGS}, "max_completion_tokens": "max_tokens"}

_OTHER_KINDS = frozenset({"text", "embedding", "classification", "moderation"})
"""Kinds of providers beside each other; those that give no text grade nothing here."""

_PLACE = re.compile(r"header|url|host|endpoint|auth|base", re.IGNORECASE)


_NO_MODELS = frozenset({"echo", "http", "https", "websocket", "ws", "wss", "browser", "mcp", "sequence"})
"""The providers of promptfoo that are called by one word, and are not models of a vendor."""


def judge_of(at: Cursor | None) -> Judge | None:
    """Return the judge that the cursor names, or None; a provider that cannot judge is noted."""
    if at is None or at.value is None:
        return None
    if isinstance(at.value, str):
        labelled = _find_provider(at)
        return _judge(at, at.value, {}) if labelled is None else judge_of(labelled)
    if not isinstance(at.value, dict):
        at.error("expected a provider: a text such as openai:gpt-5, or a mapping with an id")
        return None
    if at.has("id"):
        return _with_config(at)
    if at.has("text"):
        return judge_of(at["text"])
    if at.value.keys() <= {"config", "label"} | _OTHER_KINDS:
        at.warn("this provider has no id, so it is not used; write `id: openai:gpt-5`")
        return None
    if len(at.value) == 1:
        ((id_, inner),) = items_of(at)  # openai:gpt-5: {config: ...}
        return judge_of(at.holding({**(inner.value if isinstance(inner.value, dict) else {}), "id": id_}))
    at.error("this provider has no id; write `id: openai:gpt-5`")
    return None


def _find_provider(at: Cursor) -> Cursor | None:
    listed = at.root.find("providers", "targets") if isinstance(at.root.value, dict) else None
    for provider in listed if listed is not None and isinstance(listed.value, list) else ():
        if isinstance(provider.value, dict) and provider.value.get("label") == at.value and provider.has("id"):
            return provider
    return None


def _with_config(at: Cursor) -> Judge | None:
    said = at["id"].text("the id of a provider")
    settings: dict[str, Any] = {}
    for name, setting in values_in(at["config"], "the configuration of a provider (a mapping)").items():
        if name in _TAKEN:
            settings[_TAKEN[name]] = setting.value
        elif is_secret(name) or _PLACE.search(name):
            setting.warn(f"{name} is not used: no file says where a judge is, or with which key; use the environment")
        else:
            known = _TAKEN if name.islower() else ()  # maxTokens is another vendor's own word
            what = f"{name} is not used; of a grader's configuration, temperature, max_tokens and seed are"
            setting.unknown(what, known)
    at.reads(frozenset({"id", "config", "label"}), quiet=_OTHER_KINDS)
    return None if said is None else _judge(at, said, settings)


def _judge(at: Cursor, id_: str, settings: dict[str, Any]) -> Judge | None:
    with at.notes.lacking() as lacks:
        shown = with_environment(at, id_)
    if lacks:
        at.warn(f"the judge of the run takes the place of {shorten(id_, 60)!r}")
        return None
    try:
        return Judge(litellm_name(shown), **settings)
    except DefinitionError as problem:
        message = f"as a grader, {problem}" if problem.field else str(problem)
        named = ":" in id_ or id_ in _NO_MODELS or is_code(id_)
        if problem.field != "provider" or "did you mean" in message or not named:  # a setting, or a slip
            at.error(message)
        else:
            at.warn(f"{message}: the judge of the run takes its place")
        return None
