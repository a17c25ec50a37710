"""Quotes: found with the candidate's own words and offsets, or not found."""

from __future__ import annotations

import random
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from rubric.grading.evidence import occurs_in, quote
from rubric.values.findings import Evidence

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


@pytest.mark.parametrize(
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
    ],
)
def test_a_quote_is_found_in_the_candidates_own_words(words: str, text: str, found: str) -> None:
    """Quotes, dashes, white space, invisible characters and accents may be written otherwise; the offsets are the text's."""
    start = text.index(found)
    assert quote(words, text) == Evidence(found, start, start + len(found))


@pytest.mark.parametrize(
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
    ],
)
def test_a_quote_that_is_not_there(words: str, text: str) -> None:
    """Words put in, left out, joined or changed are no quote, and neither is one without a letter or a digit."""
    assert quote(words, text) is None


def test_where_a_quote_stands_is_said() -> None:
    """A quote carries the name of the part that it was looked for in."""
    assert quote("ran", "it ran", "run") == Evidence("ran", 3, 6, "run")


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
    words, wrongs = text.split(), 0
    for _ in range(3_000):
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
    assert wrongs > 2_900


@pytest.mark.parametrize(
    "text",
    [
        "'The quick brown fox jumps.\\n' * 37_000",
        "'中文字符测试。' * 143_000",
        "'السلام عليكم ' * 77_000",
        "'a' + '\\u0301\\u0323' * 500_000",
        "'e\\u0301 ' * 330_000",
        "' \\u200b' * 500_000",
        "'“' * 1_000_000",
        "'a' * 1_000_000",
        "'a\\u0301' * 500_000",
    ],
)
def test_a_megabyte_is_no_trouble(text: str) -> None:
    """A candidate of a million characters is searched within reason, in time and in memory, whatever it is made of."""
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_AS, (768 << 20, 768 << 20))
from rubric.grading.evidence import quote
text = {text}
assert quote('not there at all', text) is None
assert quote('a' * 1000 + 'b', text) is None
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
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
    """An object that the text does not have is no copy."""
    assert not occurs_in('{"verdict": true}', text)
