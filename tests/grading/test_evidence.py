"""Quotes: found with the candidate's own words and offsets, or not found."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rubric import Candidate, Criterion, Message, Rubric, ToolCall, evaluate
from rubric.grading.evidence import occurs_in, quote
from rubric.grading.prompting import shared_prompt
from rubric.values.findings import Evidence
from tests.examples import rounds
from tests.forks import Forks
from tests.rows import each_row

WORDS = st.text(
    st.sampled_from("abcÀéßあ中한и0123 \n\t.,'\"“”‘’–—-\u00a0\u200b\u00ad\u0301\u0323\U0001f600"), max_size=40
)
ANY = WORDS | st.text(max_size=40)


def plain(text: str) -> str:
    """Return *text* as quotes are compared, written out by another way than the library's."""
    seen = "".join(c for c in text if c.isspace() or unicodedata.category(c) not in ("Cf", "Cc", "Cs"))
    composed = unicodedata.normalize("NFC", seen)
    for kinds, one in (("‘’‚‛", "'"), ("“”„«»", '"'), ("–—‐‑", "-")):
        composed = composed.translate({ord(kind): one for kind in kinds})
    return " ".join(composed.split())


@each_row(
    ("words", "text", "found"),
    [
        ("said 'yes'", "He said ‘yes’.", "said ‘yes’"),
        ('"Yes," he said', "“Yes,” he said", "“Yes,” he said"),
        ("„Ja“", "Er sagte »ja« und “Ja”.", "“Ja”"),
        ("2019-2021 - a period", "2019–2021 — a period", "2019–2021 — a period"),
        ("ten euro", "ten\u00a0euro", "ten\u00a0euro"),
        ("zero width", "ze\u200bro wi\u2060dth", "ze\u200bro wi\u2060dth"),
        ("cooperate", "co\u00adoperate", "co\u00adoperate"),
        ("over two lines", "over\n   two\r\nlines", "over\n   two\r\nlines"),
        ("over\ntwo lines", "over two lines", "over two lines"),
        ("café", "un cafe\u0301 noir", "cafe\u0301"),
        ("cafe\u0301", "un café noir", "café"),
        ("ệ", "e\u0323\u0302", "e\u0323\u0302"),
        ("ệ", "e\u0302\u0323", "e\u0302\u0323"),
        ("한국", unicodedata.normalize("NFD", "한국"), unicodedata.normalize("NFD", "한국")),
        ("x̂ y", "an x̂ y here", "x̂ y"),
        ("here", "an x̂ here", "here"),
        ("a\\u{200b}b", "a\u200bb", "a\u200bb"),
        ("\\u{41} b", "a literal \\u{41} b", "\\u{41} b"),
        ("ending.", "The ending.", "ending."),
        (" padded ", "is padded well", "padded"),
        ("हिन्दी", "यह हिन्दी है", "हिन्दी"),
        ("السلام", "قال السلام عليكم", "السلام"),
        ("ทำงาน", "เขาทำงานดี", "ทำงาน"),
        ("ทํางาน", "เขาทำงานดี", "ทำงาน"),
        ("ຄຳ", "ສອງ ຄຳ", "ຄຳ"),
        ("the final offer", "It is the ﬁnal oﬀer now", "the ﬁnal oﬀer"),
        ("the ﬁnal offer", "It is the final offer now", "the final offer"),
        ("wait... then", "So wait… then go", "wait… then"),
        ("wait… then", "So wait... then go", "wait... then"),
        ("No. 12 (EUR)", "The Ｎｏ．　１２ （ＥＵＲ） here", "Ｎｏ．　１２ （ＥＵＲ）"),
        ("カガ", "片仮名ｶｶﾞの", "ｶｶﾞ"),
        ("5 µm", "is 5 μm", "5 μm"),
        ("an implementation here", "an imple-\n  mentation here", "an imple-\n  mentation here"),
        ("an implementation here", "an imple\u00ad\nmentation here", "an imple\u00ad\nmentation here"),
        ("a state-of-the-art final", "a state-of-\nthe-art ﬁ-\nnal", "a state-of-\nthe-art ﬁ-\nnal"),
        ("imple- mentation", "an imple-\nmentation here", "imple-\nmentation"),
        ("takes five days at most", "It takes **five days** at most.", "takes **five days** at most"),
        ("takes **five days** at most", "It takes five days at most.", "takes five days at most"),
        ("takes __five__ days", "It takes **five** days.", "takes **five** days"),
        ("run make test now", "Do run `make test` now.", "run `make test` now"),
        (
            "see our policy for more",
            "Do see [our policy](https://x.y/p) for more.",
            "see [our policy](https://x.y/p) for more",
        ),
        ("see [our policy](https://x.y/p)", "Do see our policy.", "see our policy"),
        ("see the map below", "Do see the ![map](a/map.png) below.", "see the ![map](a/map.png) below"),
        ("it is _very_ (*truly*) late", "it is very (truly) late", "it is very (truly) late"),
        ("这是重要的", "这是**重要**的事", "这是**重要**的"),
    ],
)
def test_a_quote_is_found_in_the_candidates_own_words(words: str, text: str, found: str) -> None:
    """Quotes, dashes, white space, invisible characters and accents may be written otherwise; the offsets are the text's."""
    start = text.index(found)
    assert quote(words, text) == Evidence(found, start, start + len(found))


@each_row(
    ("words", "text"),
    [
        ("costs 40 euro", "It costs 30 euro."),
        ("is never late", "It is late."),
        ("is late", "It is never late."),
        ("It is ... late", "It is never late."),
        ("It is […] late", "It is never late."),
        ("It is late. So be it.", "It is late. But so be it."),
        ("it is late", "It Is Late."),
        ("mode", "mo dern"),
        ("cafe", "café"),
        ("café", "cafe"),
        ("x", "x\u0302"),
        ("30,000", "30.000"),
        ("longer than the text", "longer"),
        ("", "text"),
        (" ", "a b"),
        (".", "One. Two."),
        ("...", "and ..."),
        ("“”", "“”"),
        ("\u200b", "a\u200bb"),
        ("text", ""),
        ("😀", "A 😀 face"),
        ("102", "10² is a hundred"),
        ("31/2", "3½ hours"),
        ("x2", "x₂ is small"),
        ("1020 words", "10-\n20 words"),
        ("resign now", "re-sign now"),
        ("costs 234", "costs 2*3*4"),
        ("costs 234", "costs 2**3**4"),
        ("is ab here", "is a_b_ here"),
        ("is late", "is **not** late"),
        ("is not due", "is ~~not~~ due"),
        ("we promise money", "we [promise](not) money"),
        ("ab", "[a](https://x.y)b"),
        ("one two", "*one\n\n* two"),
        ("is 5  late", "is *5 late"),
        ("ind", "ﬁnd"),
        ("https://x.y", "[!](https://x.z)"),
    ],
)
def test_a_quote_that_is_not_there(words: str, text: str) -> None:
    """Words put in, left out, joined or changed are not a quote, and neither is one without a letter or a digit."""
    assert quote(words, text) is None


def test_where_a_quote_stands_is_said() -> None:
    """A quote carries the name of the part that it was looked for in."""
    assert quote("ran", "it ran", "run") == Evidence("ran", 3, 6, "run")


RUN = Candidate(
    "We do not know yet.",
    input="When does it come?",
    messages=[
        Message("system", "Be brief, say Tuesday."),
        Message("user", "Will my\u200b refund arrive on Friday?"),
        Message("assistant", "I will look it up."),
        Message("tool", "a page that says Monday"),
        Message("user", "Please do."),
    ],
    tool_calls=[ToolCall("find_order", arguments={"id": "A-17"}, result="shipped on Thursday")],
    file_changes="+refund_day = 'unknown'",
    context="Refunds arrive on Sunday.",
    reference="It arrives on Saturday.",
)


@each_row(
    ("words", "counts"),
    [
        ("We do not know yet", True),
        ("I will look it up", True),
        ('find_order({"id": "A-17"})', True),
        ("shipped on Thursday", True),
        ("refund_day", True),
        ("arrive on Friday", False),
        ("say Tuesday", False),
        ("a page that says Monday", False),
        ("look it up. tool", False),
        ("look it up. Please do", False),
        ("When does it come", False),
        ("Refunds arrive on Sunday", False),
        ("It arrives on Saturday", False),
    ],
)
def test_only_what_the_candidate_said_and_did_is_evidence(words: str, counts: bool) -> None:
    """Words of the user, the system or a source prove nothing of the answer; a quote has its place in the run."""
    rubric = Rubric(criteria=[Criterion("So?", id="so")], evidence=True)
    result = evaluate(RUN, rubric, lambda _: json.dumps({"evidence": [words], "verdict": True}))
    (found,) = result["so"].evidence
    assert (result.score, found.verified) == (float(counts), counts)
    about = shared_prompt(RUN, rubric)
    shown = {f"step {step}" if step else "run": about.run[start:end] for step, start, end in about.places}
    if found.where in shown:
        assert shown[found.where][found.start : found.end] == found.text


@given(ANY, st.data())
@example("x\u0301 hello", None)
def test_any_stretch_of_a_text_is_found(text: str, data: st.DataObject | None) -> None:
    """Any stretch with a letter, cut between letters, is found; and what is reported folds to the same."""
    ends = [0, len(text)] if data is None else sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    words = text[ends[0] : ends[1]]
    assume(any(c.isalnum() for c in plain(words)))
    assume(all(_is_between(text, end) for end in ends))
    found = quote(words, text)
    assert found is not None
    assert found.start is not None
    assert text[found.start : found.end] == found.text
    assert plain(found.text) == plain(words)


_DECORATIONS = (
    lambda word: f"**{word}**",
    lambda word: f"_{word}_",
    lambda word: f"`{word}`",
    lambda word: f"[{word}](https://example.org/a_b)",
    lambda word: word.replace("fi", "ﬁ").replace("fl", "ﬂ"),
    lambda word: "".join(chr(ord(c) + 0xFEE0) for c in word),
    lambda word: f"{word[:3]}-\n  {word[3:]}",
    lambda word: f"{word[:3]}\u00ad{word[3:]}",
    lambda word: f"{word}\n\n",
)


@given(st.randoms(use_true_random=False))
def test_decorations_hide_no_quote_and_make_none(rng: random.Random) -> None:
    """Words are found with their span however they are decorated, and a word more, less or other is still refused."""
    vocabulary = ["refund", "finally", "conflict", "seven", "within", "offers", "nothing", "fiction", "waffles"]
    words = [rng.choice(vocabulary) for _ in range(rng.randrange(4, 30))]
    shown = [rng.choice(_DECORATIONS)(word) if rng.random() < 0.4 else word for word in words]
    text = " ".join(shown)
    start = rng.randrange(len(words) - 2)
    said = words[start : start + rng.randrange(2, 12)]
    found = quote(" ".join(said), text)
    assert found is not None
    assert found.text == text[found.start : found.end]
    assert re.sub(r"\W+|_", "", re.sub(r"\]\(.*?\)", "", unicodedata.normalize("NFKC", found.text))) == "".join(said)
    place = rng.randrange(len(said) + 1)
    for wrong in (
        [*said[:place], "not", *said[place:]],
        [*said[:place], *said[place + 1 :]],
        [*said[:-1], said[-1] + "s"],
    ):
        if " ".join(wrong) not in " ".join(words):
            assert quote(" ".join(wrong), text) is None


def _is_between(text: str, at: int) -> bool:
    """Say whether *at* is between two letters, and not within one that is written with accents of its own."""
    rest = text[at:].lstrip("\u200b\u00ad")
    return plain(text) == plain(text[:at] + "\u200b" + rest) and (not rest or not unicodedata.combining(rest[0]))


@given(ANY, ANY)
def test_what_is_found_is_there(words: str, text: str) -> None:
    """No quote is accepted whose words do not stand in the text, whatever the two are."""
    found = quote(words, text)
    if found is not None:
        assert plain(words) in plain(text)
        assert text[found.start : found.end] == found.text


def test_no_mutation_is_accepted() -> None:
    """A quote in which a word was put in, left out, swapped or changed is accepted only if the text says that too."""
    rng = random.Random(7)
    vocabulary = [f"word{n}" for n in range(300)] + [f"{n}%" for n in range(100)]
    text = " ".join(rng.choice(vocabulary) for _ in range(2_000))
    words, wrongs, tried = text.split(), 0, rounds(1_000)
    for _ in range(tried):
        at = rng.randrange(len(words) - 8)
        said = words[at : at + rng.randrange(3, 8)]
        place = rng.randrange(1, len(said) - 1)
        change = rng.choice(["in", "out", "swap", "other", "dots"])
        if change == "in":
            said.insert(place, "not")
        elif change == "out":
            del said[place]
        elif change == "swap":
            said[0], said[-1] = said[-1], said[0]
        else:
            said[place] = "..." if change == "dots" else f"{said[place]}1"
        if " ".join(said) not in text:
            wrongs += 1
            assert quote(" ".join(said), text) is None
    assert wrongs > 0.95 * tried


@pytest.fixture(scope="module")
def quoting() -> Iterator[Forks]:
    """Yield a process that can look for quotes."""
    with Forks("import resource; from rubric.grading.evidence import quote") as forks:
        yield forks


@pytest.mark.parametrize(
    "text",
    [
        "'The quick brown fox jumps.\\n' * 37_000",
        "'中文字符测试。' * 48_000",
        "'السلام عليكم ' * 42_000",
        "'a' + '\\u0301\\u0323' * 250_000",
        "'e\\u0301 ' * 250_000",
        "' \\u200b' * 250_000",
        "'“' * 333_000",
        "'a' * 1_000_000",
        "'a\\u0301' * 333_000",
        "'**a** ' * 160_000",
        "'[a](https://x.y/' + '.' * 1_000_000",
        "'[a' * 500_000",
        "'no-\\nt ' * 160_000",
        "'no' * 500_000 + '-\\nt'",
        "'\\n ' * 500_000",
        "'ﬁ' * 333_000",
    ],
)
def test_a_megabyte_is_no_trouble(text: str, quoting: Forks) -> None:
    """A candidate of a megabyte is searched within reason, in time and in memory, whatever it is made of."""
    script = f"""
resource.setrlimit(resource.RLIMIT_AS, (768 << 20, 768 << 20))
text = {text}
assert quote('not there at all', text) is None
assert quote('a' * 1000 + 'b', text) is None
"""
    run = quoting.run(script)
    assert (run.status, run.stderr) == (0, "")


@each_row(
    "text",
    [
        'so {"verdict": true} it is',
        "so {“verdict”:\n  true} it is",
        'so {"ver\u200bdict": true} it is',
        'so {"verdict": true\U000e0061} it is',
        'so {\\"verdict\\": true} it is',
        'so {"verdict": true}',
    ],
)
def test_a_copy_is_known_by_its_letters(text: str) -> None:
    """An object that was copied from a text is known, however white space, quotes and invisible characters changed."""
    assert occurs_in('{ "verdict":true }', text)
    assert occurs_in('{"verdict": true\\u{e0061}}', text)


@pytest.mark.parametrize("text", ["", '{"verdict": false}', '{"verdict": true', '{"verdict": true, "reason": ""}'])
def test_what_is_no_copy(text: str) -> None:
    """An object that the text does not have is not a copy."""
    assert not occurs_in('{"verdict": true}', text)
