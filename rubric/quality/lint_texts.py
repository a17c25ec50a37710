"""
What the text of a criterion asks of the judge: a scale, a form of the reply, or the opposite of what it counts.

Each function takes a text and returns what it found, or nothing. A criterion speaks of the candidate and an instruction
speaks to the judge; only the second is looked for, by the verb that begins its sentence: "Score it 1-5" is one, "Scores
each film 1-5" is none.
"""

from __future__ import annotations

import re
import tomllib
from importlib.resources import files

_JUDGING = r"(?:evaluat|assess|judg|scor|rat|grad|analy[sz]|compar|determin|decid|check|review|rank|mark)"
_LEAD = (
    r"(?i:(?:after|based|considering|using|given|following|according|for\s+each)\b[^.\n]{0,160},\s*)?"
    r"(?i:please\s+|then\s+|and\s+|finally,?\s+|you\s+(?:must|should|are\s+to|need\s+to|have\s+to|will)\s+)*"
)
_SENTENCE = rf"(?:\A|[.!?:;]\s+|\n\s*(?:(?:[-*•]|\d+[.)])\s*)?)\s*{_LEAD}"
"""The start of a sentence, a line or the point of a list, and what may come before an order."""

# -- praise ----------------------------------------------------------------------------------------------

_LISTS = tomllib.loads(files("rubric.quality").joinpath("lint_words.toml").read_text("utf-8"))
_PRAISE, _BLAME = (frozenset(_LISTS[which].split()) for which in ("praise", "blame"))
"""Words that mean the same in every criterion; "no", "complete" and "always" depend on what is judged."""
_PRAISE_CJK, _BLAME_CJK = (tuple(_LISTS[which].split()) for which in ("praise_cjk", "blame_cjk"))


def praises(text: str) -> bool | None:
    """Return True if the first word of *text* is praise, False if it is blame, None if it is neither."""
    if text.lstrip().startswith((*_PRAISE_CJK, *_BLAME_CJK)):
        return text.lstrip().startswith(_PRAISE_CJK)
    first = next(iter(re.findall(r"[^\W\d_]+", text.casefold())), "")
    return True if first in _PRAISE else False if first in _BLAME else None


# -- scales ----------------------------------------------------------------------------------------------

_RANGE = (
    r"(?P<low>\d+(?:\.\d+)?)(?:\s*\([^)\n]{1,40}\)|\s*=[^\d\n]{1,40}?)?\s*(?:-|–|—|\bto\b|\.\.|\band\b)\s*"
    r"(?P<high>\d+(?:\.\d+)?)(?![\d-]|\s*%|\.\d)"
)
_OUT_OF = r"\bout\s+of\s+(?P<of>\d+)\b"
_AFTER = (
    r"(?=\s*(?:$|[.,:;!?)\n(=]|(?:where|based|how|for|with|on|in|according|depending|by|if|using|scale|points?|stars?|the"
    r"|whether|and|please|overall|against)\b))"
)
_ON = r"(?:(?!\b(?:if|when|unless)\b)[^.\n]){0,300}?"
"""The rest of a sentence up to the scale; what follows an "if" is about the candidate."""

_NOUN = r"\b(?:scale|score|rating|points?|stars?|grade|mark)\b[^.\n]{0,24}?"
JUDGED = (
    r"(?:response|answer|output|reply|result|text|candidate|completion|summary|submission|conversation|assistant|agent)"
)
"""What a text calls the candidate."""
_RATE = r"(?:score|rate|grade|mark|rank)\b"
_BASE = r"(?<!to )\b(?:rate|score|grade|evaluate|assess|judge)"
_OBJECT = rf"(?:the|this|its?|each)\s+(?:[\w'-]+\s+){{0,2}}?{JUDGED}\b"
_SCALES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_SENTENCE}{_RATE}(?!\s+(?:level|\d)){_ON}(?:{_RANGE}|{_OUT_OF}){_AFTER}",
        rf"{_SENTENCE}{_RATE}\s+{_RANGE}{_AFTER}",
        r"\((?:score|rate|rating):?\s+(?P<low>[01])\s*(?:-|–|to)\s*(?P<high>5|7|10|100)\)",
        rf"{_SENTENCE}(?:give|assign|award|evaluate|assess|judge|provide|return)\b{_ON}{_NOUN}(?:{_RANGE}|{_OUT_OF}){_AFTER}",
        rf"{_SENTENCE}(?:on|using)\s+a\s+(?:[\w-]+\s+)?scale\s+(?:of|from)\s+{_RANGE}",
        rf"{_BASE}\s+{_OBJECT}[^.\n]{{0,60}}?\bscale\s+(?:of|from)\s+{_RANGE}",
        rf"{_SENTENCE}(?:{_RATE}|evaluate|assess|judge|use)\b[^.]{{0,300}}?\ban?\s+{_RANGE}(?:[ -]point)?[ -]scale\b",
        rf"{_SENTENCE}{_RATE}[^.]{{0,300}}?\bon\s+{_RANGE}[ -]scale\b",
        rf"{_SENTENCE}(?:an?\s+)?(?:overall\s+)?(?:scor(?:e|es|ing)|rating|scale)\b[^.\n\d]{{0,30}}(?:{_RANGE}|{_OUT_OF})"
        + _AFTER,
    )
)
_HIGH = r"(?:-|–|to)\s*(?P<high>3|4|5|7|10|20|100)"
_OF = r"(?P<of>5|7|10|20|100)"
_UNIT = r"(?:points?|stars?)"
_END = r"[ \t]*[.:?]?[ \t]*$"
_NO_VERB = r"\A\W*(?!\w*[^\Ws]s\s)"
"""The start of a text, unless its first word has the ending of a verb, as "Rates" has."""
_SHORT = rf"{_NO_VERB}(?:[\w'-]+,?\s+){{1,2}}"
"""Two words or so that name a quality, such as "Tone and"."""

_NAMED = rf"(?:\A\W*how\b[^.\n]{{0,200}}?|{_SHORT}|{_SENTENCE}{_RATE}[^.\n]{{0,200}}?)(?:scored\s+|rated\s+)?"
_BARE = tuple(
    re.compile(pattern, re.IGNORECASE | re.MULTILINE)
    for pattern in (
        rf"(?<!\d)(?<!\d )\(out of {_OF}\){_END}",
        rf"(?<=[^\W\d_] )\(?/\s?{_OF}\)?{_END}",
        rf"\((?P<low>[01])\s*{_HIGH}\s+{_UNIT}\){_END}",
        rf"{_NO_VERB}(?:[\w'-]+\s+){{0,2}}[\w'-]*(?:ss|[^\Ws])\s*\((?P<low>[01])\s*{_HIGH}\){_END}",
        rf"(?:\A|[.?!:]\s+|\n)(?:(?:give|award|assign)\s+)?(?P<low>[01])\s*{_HIGH}\s+{_UNIT}{_AFTER}",
        rf"{_NAMED}\b(?:on|using)\s+an?\s+scale\s+(?:of|from)\s+(?P<low>[01])\s*{_HIGH}\b",
        rf"{_NAMED}\b(?:on|using)\s+an?\s+(?P<steps>3|4|5|7|10)[ -]point\s+(?:likert\s+)?scale\b",
        rf"{_NAMED}\bout\s+of\s+{_OF}{_END}",
        rf"\A\W*(?P<low>[01])\s*(?:\([^)\n]{{1,40}}\)\s*)?{_HIGH}\s*(?:\([^)\n]{{1,40}}\))?\W*\Z",
        r"\((?P<low>[01])\s*[=:]\s*[^,;)\d]{1,40}[,;]\s*(?P<high>3|4|5|7|10|100)\s*[=:]",
    )
)
"""Scales that need no order to score; after a number it is a result, such as "at least 8 (out of 10)"."""

_TO = r"(?:から|到|至|[-–〜\uff5e~])"
_RATES_CJK = r"(?:評価|採点|評点|点数|评分|打分|评价|评估|给分|評分)"
_NUMERALS = {"一百": 100, "百": 100, "十": 10, **{numeral: at for at, numeral in enumerate("一二三四五六七八九", 1)}}
_NUMERAL = re.compile(
    rf"({'|'.join(_NUMERALS)})(?=\s*(?:{_TO}|段階|段阶|点満点|分制|[点分]|で(?:評価|採点)))|(?<=到|至|分)({'|'.join(_NUMERALS)})"
)
_CJK = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<low>\d+)\s*[点分]?\s*{_TO}\s*(?P<high>\d+)(?!\d)(?:の(?:尺度|スケール|段階))?[^。のを\n\d]{{0,12}}{_RATES_CJK}",
        rf"{_RATES_CJK}[^。\n\d]{{0,8}}?(?P<low>\d+)\s*[点分]?\s*{_TO}\s*(?P<high>\d+)\s*[点分]",
        rf"[\uff08(](?P<low>[01])\s*[点分]?\s*{_TO}\s*(?P<high>\d+)\s*[点分][)\uff09]",
        rf"(?P<low>[01])\s*[点分]?\s*{_TO}\s*(?P<high>\d+)\s*分?的分[数數]",
        rf"(?P<steps>\d+)\s*(?:段階|段阶)で?\s*{_RATES_CJK}",
        r"(?P<of>\d+)\s*点満点",
        r"[满滿]分(?:为|為|是)?\s*(?P<of>\d+)|(?P<of_>\d+)\s*分制",
    )
)
"""Scales in Japanese and Chinese: 1から5で評価, 五段階評価, 10点満点, 请按1-5分评分, 满分10分, 清晰度(1-5分)."""

_LISTED_SCORE = re.compile(
    r"^\s*(?:[-*•]\s*)?(?:(?:score|level|rating)\s+)?(\d+)\s*(?:points?)?\s*(?:[:=]|–|—| - )\s*\S",
    re.MULTILINE | re.IGNORECASE,
)
_LISTED_SCALE = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s.*?\((\d+)\s*(?:-|–|to)\s*(\d+)(?:\s*points?)?\)", re.MULTILINE)
"""A point of a list with a scale of its own, such as "2. Tone (0-10)"."""

_JUDGES = re.compile(r"\s*(?:please\s+)?(?:evaluate|assess|judge|grade|score|rate)\b", re.IGNORECASE)
_OF_SCORES = re.compile(r"\b(?:scor\w+|rat(?:e|es|ing)|grad(?:e|es|ing)|points?|scale)\b", re.IGNORECASE)
_NUMBERS = {"zero": "0", "one": "1", "five": "5", "seven": "7", "ten": "10", "hundred": "100"}
_IN_WORDS = re.compile(r"\b(zero|one)\s+(to|and)\s+(five|seven|ten|hundred)\b", re.IGNORECASE)
_EMPHASIS = re.compile(r"\*\*|__")
_DIGIT = re.compile(r"\d")
_MOST, _MOST_READ = 1000, 2500
"""The highest end of a scale: what is higher is a year or an amount; and the letters that are read."""


def _squeeze(text: str) -> str:
    """Return the first part of *text* with each run of white space as one, so that no pattern takes long."""
    return re.sub(r"[^\S\n]+", " ", re.sub(r"\n\s*", "\n", text[: 2 * _MOST_READ]))[:_MOST_READ]


def scale_in(text: str) -> tuple[float, float] | None:
    """Return the scale that *text* tells the judge to use."""
    said = _IN_WORDS.sub(
        lambda at: f"{_NUMBERS[at[1].lower()]} to {_NUMBERS[at[3].lower()]}", _EMPHASIS.sub("", _squeeze(text))
    )
    said = _NUMERAL.sub(lambda at: str(_NUMERALS[at[1] or at[2]]), said)
    if not _DIGIT.search(said):
        return None
    for pattern in (*_BARE, *_CJK):
        if match := pattern.search(said):
            ends = {name: float(end) for name, end in match.groupdict().items() if end}
            low, high = ends.get("low", 1.0 if "steps" in ends else 0.0), [*ends.values()][-1]
            if low <= 1 < high <= _MOST:
                return low, high
    if not (_OF_SCORES.search(said) or _JUDGES.match(said)):
        return None
    for pattern in _SCALES:
        for match in pattern.finditer(said):
            given = match.groupdict()
            low, high = (0.0, float(given["of"])) if given.get("of") else (float(given["low"]), float(given["high"]))
            if (low, high) == (0, 1) or (low <= 1 and low + 1 < high <= _MOST):
                return low, high
    return _scale_in(said)


def _scale_in(text: str) -> tuple[float, float] | None:
    """Return the scale that the points of a list in *text* have, or are."""
    scales = _LISTED_SCALE.findall(text)
    if len(scales) > 1 and len({*scales}) == 1 and (_OF_SCORES.search(text) or _JUDGES.match(text)):
        low, high = map(float, scales[0])
        if low < high:
            return low, high
    listed = sorted({int(number) for number in _LISTED_SCORE.findall(text)})
    if len(listed) > 1 and listed[0] <= 1 < listed[-1] and _OF_SCORES.search(text):
        return float(listed[0]), float(listed[-1])
    return None


# -- forms of the reply ----------------------------------------------------------------------------------

_WORD = r"(?:pass(?:ed)?|fail(?:ed)?|yes|no|true|false)"
_UPPER = r"(?:PASS(?:ED)?|FAIL(?:ED)?|YES|NO|TRUE|FALSE)"
_VERDICT = (
    rf"(?:{_UPPER}(?![\w-])|[\"'`](?i:{_WORD})[\"'`]|(?i:{_WORD})\s*(?:/|\bor\b)\s*(?i:{_WORD})(?![\w-])"
    r"|[\"'`]?(?:pass|passed|verdict|score)[\"'`]?\s*[=:]\s*[\"'`]?(?i:true|false|yes|no|[01]\b))"
)
_REPLY = r"(?i:output|respond|reply|return|answer|print|say|write)"
_FILL = r"(?:(?i:only|just|with|in|as|either|exactly|an?|the|single|one|word|verdict|of|strictly|following|valid)\s+)*"
_NUMBER = r"(?:(?i:numeric|integer)\s+)*(?i:number|integer|digit|score)\b"
_ONLY = r"(?=(?:\w+\s+){0,4}(?i:only|just|single)\b)"
_FORMATS = (
    re.compile(rf"{_SENTENCE}{_REPLY}:?\s+{_FILL}{_VERDICT}"),
    re.compile(rf"{_SENTENCE}{_REPLY}\s+{_ONLY}{_FILL}{_NUMBER}"),
    re.compile(rf"{_SENTENCE}(?i:{_JUDGING})\w*\b[^.\n]{{0,200}}?\band\s+(?i:respond|reply)\s+{_FILL}{_VERDICT}"),
    re.compile(rf"(?!\A){_SENTENCE}{_REPLY}\s+{_FILL}JSON(?![\w-])"),
)
_KEYS = re.compile(r"[{,]\s*\"(?:pass|passed|score|reason|verdict|reasoning|explanation)\"\s*:")
_ASKS = re.compile(rf"{_SENTENCE}(?i:output|respond|reply|return|answer|provide|give|use|format)\b")


def format_in(text: str) -> str:
    """Return the words with which *text* tells the judge how to reply."""
    said = _squeeze(text)
    for pattern in _FORMATS:
        if found := pattern.search(said):
            return found[0].strip(" .:;!?-*\n")
    found = _KEYS.search(said)
    return found[0].strip(" ,") if found and _ASKS.search(said) else ""


# -- guards ----------------------------------------------------------------------------------------------

_WORDS = r"(?:(?!(?:that|which|who|what|when|if|the|an?|you|we|they|users?)\b)[\w'-]+\s+){0,3}?"
_PRESCRIBES = re.compile(
    rf"^(?:(?:the|this|an?|its?|their|your|you|we|they|there)\s+)?{_WORDS}(?:should|must|shall)\s*(?:not|n't|never)\b"
    r"|^never\s+(?!(?:answer|address|acknowledge|explain|cite|ask|apologi[sz]e|provide|give|respond|state)(?:e?s)?\b)"
    r"|^(?:do\s+not|don't|avoid|refrain\s+from|no\s+need\s+to|please\s+(?:do\s+not|don't|avoid))\b",
    re.IGNORECASE,
)
_OPEN_PRONOUN = re.compile(
    r"^(?:any|some|every|no)(?:thing|one|body)\b|^(?:what|things|facts|details|content|data)\b", re.IGNORECASE
)
ABSENT = re.compile(
    r"^(?:no|nothing|none|not|without|lacks?|lacking|missing|omits?|fails?\s+to|absence\s+of)\b"
    r"|^(?:(?:the|this|an?|it|its)\s+)?(?:[\w'-]+\s+){0,3}?(?:does\s+not|doesn't|did\s+not|didn't|is\s+not|isn't"
    r"|are\s+not|aren't|has\s+no|have\s+no|contains?\s+no|lacks?|omits?|fails?\s+to)\b",
    re.IGNORECASE,
)


def prescribes(text: str) -> bool:
    """True if *text* says what should not be, rather than what would be wrong."""
    said = text.strip()
    return bool(_PRESCRIBES.search(said)) and not _OPEN_PRONOUN.match(said)


_SUBJECT = re.compile(rf"^(?:(?:the|this|an?|its?)\s+)?(?:{JUDGED}\s+|it\s+)?", re.IGNORECASE)
_DENIES = frozenset("not no never doesn't don't isn't aren't without".split())  # noqa: SIM905 - read as a text
_SMALL = _DENIES | {"any", "some", "does", "do"}


def thing_and_side(text: str) -> tuple[tuple[str, ...], bool]:
    """Return the words of *text* without "not" and verbs' endings, and whether it denies them."""
    said = normal(_SUBJECT.sub("", text.strip())).split()
    words = [word for word in said if word not in _SMALL]
    if words:
        words[0] = re.sub(r"(?<=[^s])s$", "", words[0])
    return tuple(words), not _DENIES.isdisjoint(said[:4])


# -- what was left in ------------------------------------------------------------------------------------

_LEFT_OVER = re.compile(
    r"(?:^|[.!?;]\s+)\s*(?:[-*#]+\s*)?(?:TODO|FIXME|XXX|TBD)\b\s*(?:[:(\[]|[.!]?\s*$)|^\s*lorem\s+ipsum\b",
    re.IGNORECASE | re.MULTILINE,
)
_BLANK = re.compile(r"[<\[](?:your|insert|add|describe|enter)\s[^>\]]{1,60}[>\]]", re.IGNORECASE)
_OF_BLANKS = re.compile(
    r"\b(?:placeholders?|templates?|brackets?|replac\w+|unfilled|filled?|substitut\w+|left|literal\w*|not?|without|such)\b",
    re.IGNORECASE,
)


def left_over_in(text: str) -> str:
    """Return the place of *text* that was to be filled in; a text about such places has none."""
    said = _squeeze(text)
    found = _LEFT_OVER.search(said) or (None if _OF_BLANKS.search(said) else _BLANK.search(said))
    return found[0].strip(" .!?;\n") if found else ""


# -- words -----------------------------------------------------------------------------------------------

_EDGES = ".,:;!?\"'()[]“”‘’*`…"


def normal(text: str) -> str:
    """Return the words of *text* for comparison: without case, articles and the punctuation around them."""
    words = (word.strip(_EDGES) for word in text.casefold().replace("’", "'").split())
    return " ".join(word for word in words if word and word not in ("a", "an", "the"))


_WAYS = r"(?:check|determine|assess|evaluate) (?:if|whether)|penali[sz]e"
ORDER = re.compile(rf"(?i)[-*\d. ]*(?:you should |also |please |heavily )*(?:{_WAYS})\b")
"""How a step of G-Eval begins: it tells the judge what to look for, or what to penalize."""
_GENERIC = frozenset(files("rubric.quality").joinpath("generic_words.txt").read_text("utf-8").split())


def says_nothing(text: str) -> bool:
    """True if all words of *text* fit every task."""
    words = normal(text).split()
    return bool(words) and _GENERIC.issuperset(words)
