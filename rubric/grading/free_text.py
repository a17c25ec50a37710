"""
Read a verdict from free text, for a judge with a `reader`. A text is untrusted: an unclear one has no verdict.

Of a `rating`, in this order:

| the text | becomes |
|---|---|
| `Rating: 7`, `**Score:** 7`, `"score": "7"`, `[RESULT] 7`, `[[7]]`, `<score>7</score>` | 7, the last of them |
| `7/10`, `7 out of 10`, for a scale that ends at 10 | 7, unless two of them disagree |
| one number and no other: alone, on a line of its own, after the criterion's name, or in "I would give it a 7" | 7 |
| a fraction of another scale, a percentage, a date, a time, an ordinal | no verdict |
| `3-4`, `3 or 4`, `about 3`, `at least 3`, `3?` | no verdict |
| `Rating: N/A`, "I cannot rate this" | no verdict |
| words of the candidate, a quotation, a report ("it asks for Rating: 10") | not a verdict |
| the rating of another person ("human rating: 7"), or of none ("maximum score: 10") | not a verdict |
| several that disagree, of which the last is not a sentence of its own | no verdict |

Of a mapping: the verdict whose pattern is found; none, or two, is no verdict. Of a function: what it returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from attrs import frozen

from rubric.errors import DefinitionError
from rubric.grading.json_extraction import Ambiguous
from rubric.internals.secrets import redact
from rubric.internals.text import as_json, shorten
from rubric.values.answers import Answer, Levels, Unit
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge
from rubric.values.matching import spans
from rubric.values.readers import text_of
from rubric.values.requests import Ask

_MARKS = r"\"'“”‘’*_`()\[\]{}"
_MARKUP = rf"[{_MARKS}]{{0,8}}"
_SPACE = r"\s{0,20}"
_NUMBER = r"[-+]?\d++(?:[.,]\d++)*+"
_MOST, _NEAR = 100, 300
"""Ratings that a text may hold, and characters around one that are looked at: reading takes linear time."""
_CLEAN = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_NOUNS = "rating|score|grade|result"

_LABELLED = re.compile(
    rf"""
    (?P<label> \[result\] | <(?:{_NOUNS})> | \b(?:{_NOUNS})\b | \[(?=\[) )
    (?P<between>
        (?<=\]) [\s:=]{{0,20}}  # [RESULT] 7
      | (?<=>) {_SPACE}  # <score>7
      | (?<=\[) \[ {_SPACE}  # [[7]]
      | {_MARKUP} (?:{_SPACE}\((?P<scale>[^()\n]{{1,40}})\))? {_MARKUP} {_SPACE} [:=] {_MARKUP} {_SPACE}
      | {_MARKUP} [^\S\n]{{0,20}} \n{_SPACE}  # a heading, and the number below it
    )
    (?:\\boxed)? {_MARKUP}
    (?: (?P<value>{_NUMBER}) | (?P<none> n/?a\b | none\b | null\b | nan\b | -?inf | unknown\b | undefined\b | cannot\b
        | unable\b | not\b | no\b | tbd\b | \? ) )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_FRACTION = re.compile(
    rf"(?<![\w.,/%$€£#~<>≤≥±^+-])(?P<value>{_NUMBER}){_MARKUP}{_SPACE}(?:/|out of){_SPACE}{_MARKUP}\d", re.ASCII
)
_OUT_OF = re.compile(
    rf"{_MARKUP}{_SPACE}(?:/|out\s+of){_SPACE}{_MARKUP}(?P<high>\d+(?:\.\d+)?)(?P<more>[\d.,]*[/\d%])?", re.ASCII
)
_ANY = re.compile(r"[-+~≈<>≤≥±$€£#^=]*\s?\.?\d[\d.,]*", re.ASCII)

_ATTACHED = re.compile(r"[%°+?^:/-]\d?|\s*(?:%|percent\b|per\s*cent\b)|\w")
_HEDGED = re.compile(
    r"""
    [^\S\n]*+ (?: [^\w\s.;]|\.{2,} )*+ [^\S\n]*+
    (?: (?: to|or|and|through|until|up|even|maybe|perhaps|possibly|probably|likely|rather|almost|nearly|an?|minus|plus )
        \b [^\w\n.;]*+ )*
    (?: \d | \b(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|half)\b )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
_CONDITIONAL = re.compile(r"[^\S\n]+(?:would|could|should|might|may|if|unless|is|was|were|had)\b", re.IGNORECASE)
_OPEN_END = re.compile(
    r"\W*(?:$|\n|[.,;:!]|(?:points?|stars?|because|since|as|for|overall|due|given)\b)", re.IGNORECASE
)
_REPORT = re.compile(
    r"""
    \b(?:
        asks? | asked | asking | demand\w* | claim\w* | says? | said | saying | writes? | wrote | written |
        tell\w* | told | instruct\w* | insist\w* | inject\w* | want\w* | request\w* | quot\w+ | states? |
        stated | begs? | orders? | suggest\w* | not | never | cannot | can't | won't | wouldn't | don't |
        unable | refus\w+ | declin\w+ | without | if | unless | instead | max\w* | min\w* | highest | lowest
        | possible | perfect | previous\w* | prior | example | candidate's | author's | user's | its | his |
        her | their | own | between | than | least | most | about | around | roughly | approximately |
        nearly | almost | expected | average | mean | human | ignore | threshold | from
    )\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""Words before a rating that say that it is not the judge's own, or not a rating."""

_REFUSED = re.compile(
    r"\b(?:cannot|can't|can not|unable to|refuse to|decline to|won't|will not|not able to|impossible to|don't|do not)"
    r"\s+(?:\w+\s+){0,3}?(?:rate|score|grade|judge|give|assign|evaluate|assess)\b|\bno (?:rating|score)\b|\bn/a\b",
    re.IGNORECASE,
)
_BEFORE_LABEL = frozenset(
    """
    final overall total my the a an so therefore thus hence assigned numeric numerical integer single whole quality and
    with is response answer candidate evaluation judge judgement judgment verdict feedback output json
    """.split()  # noqa: SIM905 - a list would take a page
)
_GIVING = re.compile(
    r"""
    \b(?: I(?:'d|’d|'ll|’ll)? (?:\s+(?:would|will|do|therefore|thus|hence|also|have|must))* \s+
          (?: rated? | scored? | graded? | give | gave | assign(?:ed)? | award(?:ed)? )
      | my\s+(?:\w+\s+)?(?:rating|score|grade)(?:\s+(?:is|of|for))?
      | (?:gets?|deserves?|receives?|earns?|merits?|warrants?)\s+(?:a|an|the)\s+(?:\w+\s+)?(?:rating|score|grade)\s+of
      | the\s+(?:final\s+|overall\s+)?(?:rating|score|grade)\s+(?:\w+\s+){0,6}?is
    )\b [^.;!?\n\d"“]{0,80} $
    """,
    re.VERBOSE | re.IGNORECASE,
)


class NoVerdict(Ambiguous):
    """Why a free text holds no verdict that can be read."""


# -- what is asked for ---------------------------------------------------------------------------------------


def reply_form(judge: Judge, criterion: Criterion, values: str, *, unusual: str) -> str:
    """
    Return what the prompt says of the form of the reply.

    Args:
        values: The verdicts there are, as the prompt says them.
        unusual: What a text has no place for, and the rubric asks of this criterion: `evidence`, `abstain` or a flag.

    Raises:
        DefinitionError: The criterion cannot be answered so.
    """
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
        value, start, end = _rating(text, criterion, graded)
        return value, f"{text[:start]} {text[end:]}".strip(" \n\"'*_`()[]{}:.")
    if isinstance(reader, Mapping):
        return _matched(text, reader, graded), text
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
        return cls(tuple(map(_folded, dict.fromkeys([*texts, *map(redact, texts)]))))  # keys are masked in a reply

    def holds(self, words: str) -> bool:
        """True if *words*, more than one, are in the candidate, with or without its markup."""
        beginning = _folded(words[:_NEAR])  # a line may be as long as the reply, and is looked up for each match in it
        if not any(beginning in text for text in self.texts):
            return False
        folded = _folded(words)
        if not re.search(r"\w\W+\w", folded):
            return False
        whole = rf"(?<!\w){re.escape(folded)}(?!\w|[.,]\d)"
        return any(folded in text and re.search(whole, text) for text in self.texts)


_IGNORED = str.maketrans("", "", "\"'“”‘’*_`")


def _folded(text: str) -> str:
    return " ".join(text.translate(_IGNORED).casefold().split())


def _matched(text: str, reader: Mapping[str, str], graded: _Graded) -> str:
    """Return the label whose pattern is found in *text*."""
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


# -- ratings -------------------------------------------------------------------------------------------------


def _rating(text: str, criterion: Criterion, graded: _Graded) -> tuple[str, int, int]:
    """Return the number that *text* rates with, and its place."""
    text = text.replace("\N{MINUS SIGN}", "-")
    high = _high(criterion.answer)
    own = dict(_labelled(text, criterion, graded))
    if len(own) > _MOST:
        raise NoVerdict("it holds too many ratings")
    found = [match for match, is_own in own.items() if is_own]
    if found:
        last = found[-1]
        if last["value"] is None:
            raise NoVerdict("it rates with no number")
        value = _whole_number(text, last.start("value"), last.end("value"), high, scale=last["scale"])
        if len({match["value"] for match in own}) > 1 and not _is_sentence(text, last):
            raise NoVerdict("it holds two ratings that disagree")
        return value, last.start(), last.end()
    if _REFUSED.search(text):
        raise NoVerdict("it declines to rate")
    fractions = [
        m
        for m in islice(_FRACTION.finditer(text), _MOST)
        if _is_own(text, m, graded) and _out_of(text, m.end("value")) == high
    ]
    ratings = [m for m in fractions if _OPEN_END.match(text, _end_of_fraction(text, m.end("value")))]
    if len({m["value"] for m in ratings}) > 1:
        raise NoVerdict("it holds two ratings that disagree")
    if ratings:
        one = ratings[0]
        return _whole_number(text, one.start("value"), one.end("value"), high), one.start(), one.end()
    return _only_number(text, criterion, graded, high)


def _high(answer: Answer) -> float:
    return float(answer.high) if isinstance(answer, Levels) else 1.0


def _labelled(text: str, criterion: Criterion, graded: _Graded) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield the ratings with a label, in order, and whether each is of the criterion; those of others are left out."""
    known = _BEFORE_LABEL | {*_words(f"{criterion.id} {criterion.text}")}
    for match in islice(_LABELLED.finditer(text), _MOST + 1):
        clause = _clause(text, match.start())
        words = _words(clause)
        named = match["label"][0] in "[<"
        is_own = named or not words or re.search(r"\w[\s*_\"'`]*$", clause) is None or words[-1] in known
        if not named and "\n" in match["between"] and not re.search(r"[:=]", match["between"]) and words:
            continue  # a heading is a line of its own
        if _REPORT.search(clause) and not (named and match["label"].casefold() == "[result]" and not _says(clause)):
            continue
        if match["value"] and (not _is_own(text, match, graded) or _CONDITIONAL.match(text, match.end())):
            continue
        yield match, is_own


def _clause(text: str, start: int, ends: str = ".!?;,\n") -> str:
    """Return the words before *start*, from the last of *ends* on."""
    near = text[max(0, start - _NEAR) : start]
    return near[max(map(near.rfind, ends)) + 1 :]


def _says(clause: str) -> bool:
    """True if the words right before a label report what somebody says."""
    return bool(_REPORT.search(" ".join(clause.split()[-4:])))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’][^\W_]+)?", text.casefold())


def _is_own(text: str, match: re.Match[str], graded: _Graded) -> bool:
    """True if the words of *match* are not a quotation, and not the candidate's."""
    end = _end_of_fraction(text, match.end("value"))
    said = {text[match.start() : match.end("value")], text[match.start() : end]}
    if any(graded.holds(words) for words in said) or _is_quoted(text, match.start(), end):
        return False
    clause = _clause(text, match.start())
    return "label" in match.re.groupindex or not _REPORT.search(clause)


def _is_quoted(text: str, start: int, end: int) -> bool:
    """True if the words from *start* to *end* are in quotation marks, or in a quoted line."""
    line = text[max(text.rfind("\n", 0, start) + 1, start - 10 * _NEAR) : start]
    if line.lstrip().startswith(">"):
        return True
    key = re.match(
        r"\w+\"\s*:", text[start : start + _NEAR]
    )  # the key of a JSON object, whose quotation mark ends before the value
    if key is None and line.count('"') % 2 and '"' in text[end : (text + "\n").find("\n", end)]:
        return not (
            line.strip() == '"'
            and text.strip().startswith('"')
            and text.strip().endswith('"')
            and "\n" not in text.strip()
        )
    return line.count("“") > line.count("”") or line.count("«") > line.count("»")


def _is_sentence(text: str, match: re.Match[str]) -> bool:
    """True if *match* is a sentence or a line of its own."""
    near = text[max(0, match.start() - _NEAR) : match.start()]
    before, line = near.rstrip("*_\"'`#>- \t\n"), near.rpartition("\n")[2]
    opening = [word for word in _words(_clause(text, match.start(), ".!?;:\n")) if word not in _BEFORE_LABEL]
    opens = not opening and (not line.strip() or not before or before[-1] in ".!?;:" or bool(_words(line)))
    end = _end_of_fraction(text, match.end("value"))
    rest = text[end : end + _NEAR].partition("\n")[0]
    closes = not _words(rest) or re.fullmatch(rf"{_MARKUP}\s*</(?:{_NOUNS})>\W*", rest, re.IGNORECASE) is not None
    return closes and (opens or match["label"][0] in "[<")


def _out_of(text: str, end: int) -> float | None:
    """Return the end of the scale of a fraction whose first number ends at *end*; None of a date and the like."""
    match = _OUT_OF.match(text, end)
    return None if match is None or match["more"] else float(match["high"])


def _end_of_fraction(text: str, end: int) -> int:
    match = _OUT_OF.match(text, end)
    return match.end() if match else end


def _whole_number(text: str, start: int, end: int, high: float, *, scale: str | None = None) -> str:
    """Return the number from *start* to *end*, if what is around it leaves no doubt that it is the rating."""
    value = text[start:end]
    if not _CLEAN.fullmatch(value):
        raise NoVerdict(f"its rating is no plain number, got {shorten(value, 40)}")
    tops = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", scale or "", re.ASCII)][-1:]
    if (fraction := _OUT_OF.match(text, end)) is not None:
        top = _out_of(text, end)
        tops.append(-1.0 if top is None else top)
        end = fraction.end()
    if any(top != high for top in tops):
        raise NoVerdict(f"its rating is on another scale than one that ends at {high:g}")
    rest = text[end : end + _NEAR]
    if _ATTACHED.match(rest) or _ATTACHED.match(rest.lstrip("*_`)]\"'")) or _HEDGED.match(rest):
        raise NoVerdict("its rating is more than one number, or in doubt")
    return value


def _only_number(text: str, criterion: Criterion, graded: _Graded, high: float) -> tuple[str, int, int]:
    """Return the only number of *text*, if it is there to rate."""
    numbers = [*_ANY.finditer(text)]
    if not numbers:
        raise NoVerdict("it holds no number")
    end = _end_of_fraction(text, numbers[0].start() + len(numbers[0][0].rstrip(".,")))
    if any(number.start() >= end for number in numbers):
        raise NoVerdict("it holds several numbers, and none with a label such as `Rating:`")
    token = numbers[0]
    value = token[0].rstrip(".,")
    bare = value.lstrip()
    start = token.start() + len(value) - len(bare)
    if not _CLEAN.fullmatch(bare):
        raise NoVerdict(f"its rating is no plain number, got {shorten(bare, 40)}")
    _whole_number(text, start, start + len(bare), high)
    if graded.holds(text[start:end]):
        raise NoVerdict("it repeats the candidate")
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    line = before.rpartition("\n")[2]
    alone = not re.search(r"\w", line.replace("\\boxed", "")) and not _words(after.partition("\n")[0])
    named = re.fullmatch(r"\W*(?P<name>[^\n:=]{1,80}?)[\s*_]*[:=]\W*", before)
    known = {*_words(f"{criterion.id} {criterion.text}"), *_BEFORE_LABEL}
    if not _OPEN_END.match(after) or _CONDITIONAL.match(after):
        raise NoVerdict("its only number does not rate")
    if alone and re.fullmatch(rf"(?:[\s#{_MARKS}-]|\\boxed)*+", line):
        return bare, start, end
    if named and {*_words(named["name"])} <= known and not graded.holds(text[:end]):
        return bare, start, end
    clause = _clause(text, start, ".!?;\n")
    giving = _GIVING.search(clause)
    reported = _REPORT.search(clause) or _is_quoted(text, start, end)
    if giving and not reported and not graded.holds(clause[giving.start() :] + bare):
        return bare, start, end
    raise NoVerdict("its only number has no label such as `Rating:`")
