"""
Read a verdict from free text, for a judge with a `reader`. A text is untrusted: an unclear one has no verdict.

docs/how-to/own_models_and_prompts.md has what each reader takes and refuses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import Any

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.grading.json_extraction import Ambiguous
from rubric.internals.secrets import redact
from rubric.internals.text import as_json, shorten
from rubric.values.answers import Levels, Unit
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.matching import spans
from rubric.values.readers import text_of
from rubric.values.requests import Ask

_NOUNS = "rating|score|grade|result"
_MOST, _NEAR = 100, 300
"""Ratings that a text may hold, and characters around one that are looked at: reading takes linear time."""

_NUMBER = r"(?P<value>-?\d++(?:\.\d++)?)(?:[^\S\n]{0,3}(?:/|out\ of)[^\S\n]{0,3}(?P<high>\d++(?:\.\d++)?))?"
_LABELLED = re.compile(
    rf"""
    (?: (?P<mark> \[result\] [\s:=]{{0,20}} ) | (?P<tag> <(?:{_NOUNS})> \s{{0,20}} ) | (?P<double> \[\[ \s{{0,20}} )
      | (?P<key> "(?:{_NOUNS})" \s{{0,20}} : \s{{0,20}} "? )
      | (?P<noun> \b(?:{_NOUNS}) [^\S\n]{{0,20}} (?:\([^()\n]{{0,40}}?(?P<scale>[\d.]*)\))? \s{{0,20}} [:=]
            \s{{0,20}} ) )
    (?P<rated> {_NUMBER} (?: (?(tag) \s{{0,20}}</ | (?!)) | (?(double) \s{{0,20}}\]\] | (?!))
        | (?(key) "?\s{{0,20}}(?:[,}}\n]|\Z) | (?!)) | [.!;]?[^\S\n]*+(?:\n|\Z) | [.!;]\s ) )?
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_ALONE = re.compile(rf"(?mx) ^[^\S\n]*+ {_NUMBER} [.!]?[^\S\n]*$", re.ASCII)
_MARKUP = str.maketrans("", "", "*_`")
_BOXED = re.compile(r"\\boxed\{([^{}]{0,40})\}")
_BEFORE_LABEL = frozenset(
    """
    final overall total my the a an so therefore thus hence assigned numeric numerical integer single whole quality and
    with is response answer candidate evaluation judge judgement judgment verdict feedback output json
    """.split()  # noqa: SIM905 - a list would take a page
)


class NoVerdict(Ambiguous):
    """Why a free text holds no verdict that can be read."""


# -- what is asked for ---------------------------------------------------------------------------------------


def reply_form(judge: Judge, criterion: Criterion, values: str, *, unusual: str) -> str:
    """Return what the prompt says of the form of the reply; what is *unusual*, such as evidence, is refused."""
    where = f"the criterion {criterion.id!r}"
    if unusual:
        message = f"{where} asks for {unusual}, which a free text has no place for; leave the judge's reader out"
        raise DefinitionError("reader", message)
    if judge.reader == "rating":
        if not isinstance(criterion.answer, Levels | Unit):
            cure = "Judge(..., reader={'yes': r'^Yes', 'no': r'^No'})" if "true" in values else "a mapping, or None"
            raise DefinitionError("reader", f"{where} is answered with {values}, not with a number; use {cure}")
        said = f"Rating: <{values}>"
    elif isinstance(judge.reader, Mapping):
        said = " or ".join(as_json(text_of(label, pattern)) for label, pattern in judge.reader.items())
    else:
        said = f"your verdict: {values}"
    match judge.reasoning:
        case "before":
            return f"Give your reason in one or two sentences. Then write on a line of its own: {said}"
        case "after":
            return f"Write on a line of its own: {said}\nThen give your reason in one or two sentences."
        case "none":
            return f"Answer with one line and nothing else: {said}"


# -- what is read --------------------------------------------------------------------------------------------


def read(ask: Ask, text: str) -> tuple[Any, str]:
    """
    Return the verdict in *text*, unchecked, and the reason beside it.

    Raises:
        NoVerdict: There is none, or none that is clear.
    """
    reader, criterion = ask.judge.reader, ask.criteria[0]
    graded = _Graded.of(ask)
    if reader == "rating":
        return _rating(text, criterion, graded)
    if isinstance(reader, Mapping):
        return _match(text, reader, graded), text
    assert callable(reader)  # noqa: S101 - the validator of the judge
    if graded.holds(text):
        raise NoVerdict("it repeats the candidate")
    try:
        value = reader(text)
    except Exception as error:  # noqa: BLE001 - a reader of the user's own may raise anything
        raise NoVerdict(f"its reader found no verdict, got {type(error).__name__}: {shorten(str(error), 80)}") from None
    if value is None:
        raise NoVerdict("its reader found no verdict")
    return value, text


@frozen
class _Graded:
    """The words that are graded; the judge did not write them."""

    texts: tuple[str, ...]

    @classmethod
    def of(cls, ask: Ask) -> _Graded:
        texts = [text for text in (ask.candidate, ask.run) if text]
        return cls(tuple(map(_fold, dict.fromkeys([*texts, *map(redact, texts)]))))  # keys are masked in a reply

    def holds(self, words: str) -> bool:
        """True if *words*, more than one, are in the candidate, with or without its markup."""
        beginning = _fold(words[:_NEAR])  # a line may be as long as the reply, and is looked up for each match in it
        if not any(beginning in text for text in self.texts):
            return False
        folded = _fold(words)
        if not re.search(r"\w\W+\w", folded):
            return False
        whole = rf"(?<!\w){re.escape(folded)}(?!\w|[.,]\d)"
        return any(folded in text and re.search(whole, text) for text in self.texts)


_IGNORED = str.maketrans("", "", "\"'“”‘’*_`")


def _fold(text: str) -> str:
    return " ".join(text.translate(_IGNORED).casefold().split())


def _match(text: str, reader: Mapping[str, str], graded: _Graded) -> str:
    found = [
        (span, label)
        for label, pattern in reader.items()
        for span in islice(spans(pattern, text), _MOST)
        if span[0] < span[1]
    ]
    own = [
        label
        for (start, end), label in found
        # A verdict that holds another ("not good" holds "good") is the one that is said.
        if not any(s <= start and end <= e and (s, e) != (start, end) for (s, e), other in found if other != label)
        and not graded.holds(_with_its_line(text, start, end))
        and not _is_quoted(text, start, end)
    ]
    if not own:
        raise NoVerdict(f"it says none of {', '.join(reader)}")
    if len({*own}) > 1:
        raise NoVerdict(f"it says {' and '.join(dict.fromkeys(own))}, of which one was asked for")
    return own[0]


def _with_its_line(text: str, start: int, end: int) -> str:
    """Return the match, with its whole line if it is a single word."""
    if re.search(r"\w\W+\w", text[start:end]):
        return text[start:end]
    line_end = text.find("\n", end)
    return text[text.rfind("\n", 0, start) + 1 : line_end if line_end >= 0 else len(text)]


def _is_quoted(text: str, start: int, end: int) -> bool:
    """True if the words from *start* to *end* are in quotation marks, or in a quoted line; a whole text may be."""
    line = text[max(text.rfind("\n", 0, start) + 1, start - 10 * _NEAR) : start]
    if line.lstrip().startswith(">"):
        return True
    if line.count('"') % 2 and '"' in text[end : (text + "\n").find("\n", end)]:
        return re.fullmatch(r'\s*"[^"\n]*"\s*', text) is None
    return line.count("“") > line.count("”") or line.count("«") > line.count("»")


# -- ratings -------------------------------------------------------------------------------------------------


def _rating(text: str, criterion: Criterion, graded: _Graded) -> tuple[str, str]:
    """Return the number that *text* rates with, and the text without it."""
    plain = _BOXED.sub(r"\1", text.translate(_MARKUP))
    known = _BEFORE_LABEL | {*_words(f"{criterion.id} {criterion.text}")}
    labelled = islice(_LABELLED.finditer(plain), _MOST + 1)
    own = [match for match in labelled if not match["noun"] or _begins(plain, match.start(), known)]
    if len(own) > _MOST:
        raise NoVerdict("it holds too many ratings")
    if any(match["rated"] is None for match in own):
        raise NoVerdict("its rating is not one plain number that ends a line or a sentence")
    found = own or [*islice(_ALONE.finditer(plain), _MOST)]
    if not found:
        has_number = re.search(r"\d", plain) is not None
        raise NoVerdict(f"it holds no {'rating with a label such as `Rating:`' if has_number else 'number'}")
    if not own and len({match["value"] for match in found}) > 1:
        raise NoVerdict("it holds two ratings that disagree")
    last, high = found[-1], float(criterion.answer.high) if isinstance(criterion.answer, Levels) else 1.0
    if any(last[end] and graded.holds(plain[last.start() : last.end(end)]) for end in ("value", "high")):
        raise NoVerdict("it repeats the candidate")
    if any(top and float(top) != high for top in (last["high"], last["scale"] if own else "")):
        raise NoVerdict(f"its rating is on another scale than one that ends at {high:g}")
    return last["value"], f"{plain[: last.start()]} {plain[last.end() :]}".strip(" \n\"'()[]{}:.")


def _begins(text: str, start: int, known: frozenset[str]) -> bool:
    """True if the label at *start* begins a sentence or a line, but for *known* words."""
    near = text[max(0, start - _NEAR) : start]
    clause = near[max(map(near.rfind, ".!?;>\n")) + 1 :]
    quoted = text[: start - len(clause)].rpartition("\n")[2].lstrip().startswith(">")
    return (
        not quoted and re.fullmatch(r"[\s#-]*+(?:[\w'’-]++\s++)*+", clause) is not None and {*_words(clause)} <= known
    )


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)?", text.casefold())
