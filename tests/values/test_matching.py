"""Patterns from strangers: refused when they are built, or fast on any text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric.errors import DefinitionError
from rubric.values.checks import Matches
from rubric.values.criteria import When
from rubric.values.matching import LONGEST_PATTERN, LONGEST_TEXT, matches
from tests.forks import Forks
from tests.rows import each_row

HAZARDS = [
    "(a+)+$", "^(a+)+$", "(a*)*$", "(a|a)*$", "(a|aa)+$", "(a|a?)+$", "(.*a){20}$", "(.*a){10}$", "^(\\w+\\s?)*$", "^(\\w+\\s?)*!$", "(.*)*,(.*)*,(.*)*x",
    "a?" * 30 + "a" * 30, "x*x*x*x*x*y", "(x+x+)+y", "^(([a-z])+.)+[A-Z]([a-z])+$", "([a-zA-Z]+)*$", "^(a?){50}a{50}$", "(a{1,50}){1,19}$",
    "((a{1,10}){1,10}){1,10}$", "(?:(?:a+)+)+$", "(\\s*\\w*)*$", "^\\s+|\\s+$", "(\\d+)*\\.", "^(.+)+@(.+)+\\.com$", "<(.*)*>", "(.+)*\\n", "(\\p{L}+)*$",
    "(a|b|ab)*c$", "(ab|a)(bc|c)*d", "[^x]*[^x]*[^x]*[^x]*x", "(?i)(A+)+$", "(?s).*.*.*.*=", "(\\W*)*q", "(a+){100}", "(aa|aab?)*$", "\\b(a+)+\\b!",
    ".{0,100}z", "(?:a|b){0,90}z", "(?:.{0,9}x){9}y", "refund.{0,100}policy",
]  # fmt: skip

REFUSED = [
    "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(a)\\1", "(?P<n>a)(?P=n)", "(?>a+)", "a++", "a*+", "(?x) a", "\\Z", "a{1001}", "(a{1000}){1000}", "(", ")", "[",
    "*", "a**", "(?", "\\", "[z-a]", "a{2,1}", "\\p{Nope}", "(?(1)a|b)", "(?R)", "", "a" * (LONGEST_PATTERN + 1), "\ud800", "((((a{100}){100}){100}){100})", "(a{100}){10}", ".{0,1000}z", "(?:.?){900}z", "(a?){500}b",
]  # fmt: skip


@pytest.fixture(scope="module")
def searching() -> Iterator[Forks]:
    """Yield a process that can search for patterns."""
    setup = "from rubric.values.checks import Matches\nfrom rubric.values.matching import matches\n"
    with Forks(f"{setup}from rubric.errors import DefinitionError") as forks:
        yield forks


@pytest.mark.parametrize("pattern", HAZARDS)
def test_a_hazard_is_refused_or_harmless(pattern: str, searching: Forks) -> None:
    """Patterns that hang a backtracking engine are searched in a million characters, or refused, in no time."""
    script = f"""
try:
    Matches({pattern!r})
except DefinitionError:
    raise SystemExit
for text in ("a" * 28 + "!", "a" * 1_000_000, "a" * 999_999 + "!", "ab " * 300_000 + "!", "x" * 500_000, " " * 900_000, "," * 500_000):
    matches({pattern!r}, text)
"""
    run = searching.run(script)
    assert (run.status, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("pattern", REFUSED, ids=lambda pattern: ascii(pattern[:40]))
def test_what_re2_does_not_take_is_refused_when_it_is_built(pattern: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Look-around, back-references, counts beyond bounds and broken patterns are errors of the field, and quiet ones."""
    with pytest.raises(DefinitionError, match=r"^pattern: "):
        Matches(pattern)
    with pytest.raises(DefinitionError, match=r"^regex: "):
        When(regex=pattern)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pattern", [None, 5, b"a", True, ["a"]], ids=repr)
def test_a_pattern_is_text(pattern: object) -> None:
    """What is not text is not a pattern."""
    with pytest.raises(DefinitionError, match=r"^pattern: expected a regular expression"):
        Matches(pattern)  # type: ignore[arg-type]  # the point of the test


@each_row(
    ("pattern", "text", "holds"),
    [
        ("b+", "abbc", True), ("^b", "ab", False), ("(?i)AB", "xab", True), ("(?m)^b$", "a\nb\nc", True), (".", "\n", False), ("(?s).", "\n", True),
        ("\\d", "٣", False), ("\\p{N}", "٣", True), ("\\w", "é", False), ("\\p{L}", "é", True), ("^.$", "😀", True), ("é", "é", True), ("a", "", False), ("^$", "", True),
    ],
)  # fmt: skip
def test_a_pattern_is_found_anywhere(pattern: str, text: str, holds: bool) -> None:
    """A pattern is searched, not matched from the start; its letters and digits are ASCII unless it says otherwise."""
    assert matches(pattern, text) is holds


def test_what_people_write_is_taken() -> None:
    """Dates, lists of words, classes of letters and words near each other are patterns like any other."""
    words = "|".join(f"word{n}" for n in range(100))
    for pattern in (
        r"^\d{4}-\d{2}-\d{2}$",
        f"(?i)\\b({words})\\b",
        r"\p{L}{2,20} \p{N}{1,5}",
        r"refund.{0,150}policy",
        r"[A-Z]{2}\d{6,10}",
        r"\{3\}",
    ):
        assert Matches(pattern).pattern == pattern


def test_half_surrogates_are_searched_past() -> None:
    """A text with a half surrogate, which RE2 cannot read, is searched with it replaced."""
    assert matches("b", "a\ud800b")


def test_the_first_million_characters_are_searched() -> None:
    """What stands beyond the first million characters is not looked at."""
    assert matches("b", "a" * (LONGEST_TEXT - 1) + "b")
    assert not matches("b", "a" * LONGEST_TEXT + "b")


@given(st.text(max_size=30))
def test_any_text_is_a_pattern_or_a_definition_error(pattern: str) -> None:
    """Whatever is given for a pattern, it is taken or refused by our own error."""
    try:
        Matches(pattern)
    except DefinitionError:
        return
    matches(pattern, "some text")
