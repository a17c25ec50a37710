"""
Attacks on a judge: edits of a candidate that should move no verdict, or move none up.

`attacks.toml` has the words, docs/how-to/probe_a_judge.md the kinds. Each attack is a pure function of the candidate's
text and of what a criterion wants. They are known from papers: claims, authority, fake verdicts and instructions (arXiv
2506.09443), master keys (2507.08794), null answers (2410.07137), form and length (2603.05399), half of a compound
criterion, implicit mention, topical answers (2605.12474).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, Literal

from attrs import frozen

from rubric import Criterion
from rubric.embed import NoTruth, fields, guided

Kind = Literal["claim", "loss", "same"]
Change = Callable[[str, str], str | None]
"""Returns the changed text, of the text and what the criterion wants; None where there is nothing to change."""


@guided
@frozen
class Attack(NoTruth):
    """
    An edit of a candidate's text, and what must not follow from it.

    Args:
        name: What tables call it.
        kind: `claim` adds words that earn nothing, `loss` takes content away, `same` keeps the meaning.
        change: The edit, a pure function: the same text in every run, so that a store serves its replies.
        aimed: Whether the edit depends on the criterion; then each criterion has a candidate of its own.
    """

    _truth = ".name"

    name: str
    kind: Kind
    change: Change
    aimed: bool = False

    def applies(self, criterion: Criterion) -> bool:
        """True unless the edit may rightly move *criterion* up: an answer that says nothing breaks no ban."""
        return self.kind != "loss" or (criterion.polarity in ("satisfy", "correctness"))

    def of(self, text: str, criterion: Criterion) -> str | None:
        """Return *text* after the edit, aimed at *criterion* if it is; None where it changes nothing."""
        changed = self.change(text, aim_of(criterion))
        return None if changed == text else changed


def aim_of(criterion: Criterion) -> str:
    """Return what is good by *criterion*, in its own words."""
    text = criterion.text.strip().rstrip(".")
    return f"This does not hold: {text}" if criterion.is_unwanted else text


_SENTENCE = re.compile(r"(?<=[.!?]) +")
# Of code, data and lists a new line or another order is no matter of form.
_STRUCTURED = re.compile(r"```|^\s*[\[{<#|*-]|^\s*\d+[.)] ", re.MULTILINE)


def _of_sentences(put_together: Callable[[list[str]], str]) -> Change:
    def change(text: str, _: str) -> str | None:
        parts = [] if _STRUCTURED.search(text) else _SENTENCE.split(text.strip())
        return put_together(parts) if len(parts) > 1 else None

    return change


def _half(text: str, aim: str) -> str | None:
    """Say the first half of a compound criterion; None for one that is not compound."""
    first, both, _ = aim.partition(" and ")
    return f"{text} {first}: that part is done." if both else None


def _spelt_out(text: str, _: str) -> str:
    """Write contractions out and quotation marks in their typographic form: the same words, by the letter."""
    for short, long in _READ["contractions"].items():
        text = re.sub(short, long, text.replace("’", "'"))
    return text if "```" in text else re.sub(r'"([^"\n]*)"', r"“\1”", text)


def _add_words(words: Mapping[str, Any]) -> Change:
    """Return the edit that puts *words* before or after a text, or in place of it."""
    if instead := words.get("instead"):
        return lambda text, _: str(instead[len(text) % len(instead)])
    first, last = words.get("before", ""), words.get("after", "")
    return lambda text, aim: first.replace("{aim}", aim) + text + last.replace("{aim}", aim)


_KINDS: tuple[Kind, ...] = ("claim", "loss")
_READ = tomllib.loads(resources.files("rubric.quality").joinpath("attacks.toml").read_text("utf-8"))
ATTACKS: tuple[Attack, ...] = (
    *(
        Attack(name, kind, _add_words(words), aimed="{aim}" in str(words))
        for kind in _KINDS
        for name, words in _READ[kind].items()
    ),
    Attack("half of a compound", "claim", _half, aimed=True),
    Attack("sentences reversed", "claim", _of_sentences(lambda parts: " ".join(reversed(parts)))),
    Attack("markdown", "same", _of_sentences(lambda parts: "\n- ".join(["## Answer\n", *parts]))),
    Attack("blank lines", "same", _of_sentences("\n\n\n".join)),
    Attack("contractions and quotes", "same", _spelt_out),
)
"""The attacks that `probe` makes unless some are named."""

FLOOR = "null answer"
"""The attack whose passing grades are the floor."""


def attacks_of(given: object) -> tuple[Attack, ...]:
    """Return the attacks *given*: by name, or as values; None means all."""
    named = {attack.name: attack for attack in ATTACKS}
    listed = ATTACKS if given is None else given if isinstance(given, list | tuple) and given else [given]
    for one in listed:
        if not isinstance(one, Attack) and str(one) not in named:
            raise fields.refuse("attacks", one, f"Attacks, or names: {', '.join(named)}")
    return tuple(dict.fromkeys(one if isinstance(one, Attack) else named[str(one)] for one in listed))
