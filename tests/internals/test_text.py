"""What a text may hide, and what people write."""

from __future__ import annotations

import random
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from rubric.internals.text import visible
from tests.examples import rounds
from tests.rows import each_row

TAGS = "".join(chr(0xE0000 + ord(c)) for c in "pass")

HIDDEN = {
    "tags": f"ok{TAGS}", "a tag": "ok\U000e0041", "the language tag": "\U000e0001en", "the cancel tag": "ok\U000e007f",
    "tags after a flag": f"🏴{TAGS}\U000e007f", "a flag without its end": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067",
    "a zero-width space": "a\u200bb", "a lone zero-width space": "\u200b", "a zero-width space at the end": "ab\u200b",
    "a non-joiner in Latin": "a\u200cb", "a joiner in Latin": "a\u200db", "a joiner between digits": "1\u200d2",
    "a joiner before nothing": "😀\u200d", "a joiner after nothing": "\u200d😀", "two joiners": "😀\u200d\u200d😀",
    "a joiner between stops": ".\u200d.", "a word joiner": "a\u2060b", "a byte order mark": "a\ufeffb", "one at the start": "\ufeffa",
    "invisible times": "a\u2062b", "left to right": "a\u200eb", "right to left": "a\u200fb", "an Arabic letter mark": "a\u061cb",
    "an embedding": "a\u202ab\u202c", "an override": "a\u202eb\u202c", "an isolate": "a\u2066b\u2069", "a first-strong isolate": "\u2068a\u2069",
    "a soft hyphen": "co\u00adop", "a selector after a letter": "a\ufe0f", "a selector after a stop": ".\ufe0f",
    "a selector after a digit": "1\ufe0f", "two selectors": "❤\ufe0f\ufe0f", "another selector": "❤\ufe00", "a far selector": "a\U000e0101",
    "far selectors after emoji": "😀\U000e0110\U000e0111", "private use": "a\ue000", "far private use": "a\U000f0000",
    "a half surrogate": "a\ud800", "a null": "a\x00b", "a bell": "a\x07", "an escape": "\x1b[2J", "a C1 control": "a\x85b",
    "a delete": "a\x7f", "a Hangul filler": "a\u3164b", "a half-width filler": "\uffa0", "a choseong filler": "\u115f",
    "a grapheme joiner": "a\u034fb", "a Khmer vowel": "a\u17b4", "a Mongolian separator": "a\u180eb", "no character": "a\uffff",
    "an annotation": "a\ufff9b", "a musical beam": "a\U0001d173", "a shorthand format": "a\U0001bca0", "a space in Arabic": "سلا\u200bم",
    "a joiner between spaces": " \u200c ", "a reserved tag": "a\U000e0fff",
}  # fmt: skip


@each_row("name", HIDDEN)
def test_what_is_hidden_is_shown_and_flagged(name: str) -> None:
    """An invisible character is shown as an escape, and a warning names it."""
    shown, warnings = visible(HIDDEN[name])
    assert "\\u{" in shown
    assert len(warnings) == 1
    assert "U+" in warnings[0]


CLEAN = {
    "a family": "👨‍👩‍👧‍👦", "a couple": "👩‍❤️‍💋‍👨", "a profession": "👩‍🚀", "with a skin": "👩🏽‍🚀", "two skins": "👩🏻‍🤝‍👨🏿", "a skin": "👍🏿",
    "with a gender": "🏃‍♀️", "both": "🏃🏽‍♂️", "a pirate": "🏴‍☠️", "a rainbow": "🏳️‍🌈", "trans": "🏳️‍⚧️", "a heart on fire": "❤️‍🔥", "an eye": "👁️‍🗨️",
    "red hair": "🧑‍🦰", "shaking": "🙂‍↔️", "a phoenix": "🐦‍🔥", "flags": "🇬🇧🇺🇳🇯🇵", "England": "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "Scotland": "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "Wales": "🏴󠁧󠁢󠁷󠁬󠁳󠁿",
    "keycaps": "1️⃣2️⃣#️⃣*️⃣", "emoji style": "☺️ ✈️ ©️ ®️ ™️ ‼️ ⁉️ ℹ️ 〰️ 〽️ ㊗️ ㊙️ Ⓜ️ ↔️ ▶️ ◾️", "text style": "☺︎ ✈︎ ❤︎",
    "of a newer Unicode": "\U0001fae8 \U0001fa77 \U0001fae9 \U0001f6dc \U0001face", "flat": "\U0001fae8\u200d\U0001fa77",
    "Persian": "می‌خواهم کتاب‌ها را ببینم؛ نمی‌دانم.", "Persian and Latin": "فایل PDF‌ها و ۱۲‌تایی", "Arabic": "السَّلامُ عَلَيْكُمْ، ٣٫٥٪",
    "a verse": "بِسْمِ ٱللَّهِ ۝١ ؀", "an abbreviation": "سنة ١٤٤٥ ه‍", "Urdu": "آپ کا شکریہ، میں‌نے", "Kurdish": "ئه‌م کتێبه",
    "Hindi": "क्‍या र्‍य हिन्‍दी क‌्ष", "a half letter": "क्‍ और", "Bengali": "র‍্যাব ৎ ক্‌ষ", "Malayalam": "അവന്‍ പറഞ്ഞു", "Sinhala": "ශ්‍රී ලංකා",
    "Kannada": "ರ‍್ಯಾಲಿ", "Tamil": "தமிழ்", "Telugu": "తెలుగు", "Thai": "ภาษาไทยไม่มีช่องว่าง", "Thai with breaks": "ภาษา\u200bไทย",
    "Khmer": "ភាសា\u200bខ្មែរ", "Lao": "ພາສາ\u200bລາວ", "Burmese": "မြန်မာ\u200bစာ", "Hebrew": "שָׁלוֹם עוֹלָם, 3 ש״ח", "Yiddish": "ייִדיש",
    "Chinese": "你好，世界。「引号」……", "Japanese": "日本語のテキスト。ﾊﾝｶｸ　全角", "Korean": "한국어 텍스트", "old Korean letters": "\u1112\u1161\u11ab",
    "accents": "Crème brûlée, Ångström, naïve, cafe\u0301, Việt Nam", "Greek": "Ἐν ἀρχῇ ἦν ὁ λόγος", "Cyrillic": "Съешь ещё этих мягких булок",
    "Georgian": "გამარჯობა", "Ethiopic": "ሰላም", "Armenian": "Բարեւ", "mathematics": "∀x∈ℝ: x²≥0, ∑ᵢ √2 ≈ 1.414 𝔸 ⟨a|b⟩", "code": "if (a && b) {\n\treturn `${x}`;\r\n}",
    "spaces": "10\u00a0000\u2009km\u3000ok", "punctuation": "“Quotes” – dashes — and… ¿?", "money": "€5 £3 ¥2 ₹1", "music": "♩♪♫", "Braille": "⠓⠑⠇⠇⠕",
}  # fmt: skip


@each_row("name", CLEAN)
def test_what_people_write_stays_as_it_is(name: str) -> None:
    """Emoji, scripts that are spelt with joiners, and scripts without spaces are neither changed nor flagged."""
    assert visible(CLEAN[name]) == (CLEAN[name], ())


def test_thousands_of_clean_texts() -> None:
    """Of thousands of texts put together from what people write, none is changed and none is flagged."""
    rng = random.Random(11)
    pieces = [word for text in CLEAN.values() for word in text.split(" ") if word]
    for _ in range(rounds(6_000)):
        text = " ".join(rng.choices(pieces, k=rng.randrange(1, 12)))
        assert visible(text) == (text, ())


SCRIPTS = [(0x0621, 0x064A), (0x0660, 0x0669), (0x06CC, 0x06D2), (0x0904, 0x0939), (0x0E01, 0x0E30), (0x05D0, 0x05EA), (0x4E00, 0x9FFF), (0x3041, 0x3096), (0xAC00, 0xD7A3), (0x00C0, 0x024F), (0x0391, 0x03A1), (0x0410, 0x044F), (0x1F600, 0x1F64F)]  # fmt: skip
LETTERS = st.one_of([st.characters(min_codepoint=low, max_codepoint=high) for low, high in SCRIPTS])


@given(st.text(LETTERS | st.sampled_from(" .,!?\n،।。"), max_size=60))
def test_letters_of_any_script_are_clean(text: str) -> None:
    """Letters, digits and punctuation of any script stay as they are, in any order."""
    assert visible(text) == (text, ())


@given(st.text())
def test_nothing_invisible_is_left(text: str) -> None:
    """What comes out can be encoded, and has none of the characters that have no place in any text."""
    shown, warnings = visible(text)
    shown.encode()
    assert not any(
        unicodedata.category(c) in ("Co", "Cs") or (unicodedata.category(c) == "Cc" and c not in "\t\n\r")
        for c in shown
    )
    assert (shown == text) is not any("invisible" in warning for warning in warnings)


def test_what_was_found_is_counted() -> None:
    """The warning counts what it found, most frequent first, five kinds at most."""
    _, (warning,) = visible("a\u200b\u200b\u202eb" + "".join(map(chr, range(0xE0041, 0xE0061))))
    assert "2 × U+200B, 1 × U+202E, 1 × U+E0041" in warning
    assert warning.count("U+") == 5


@each_row(
    "token",
    [
        "<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|endoftext|>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>",
        "</s>", "<s>", "<|Assistant|>", "<\uff5cUser\uff5c>", "<\uff5cbegin▁of▁sentence\uff5c>", "<start_of_turn>", "<end_of_turn>", "<bos>",
    ],
)  # fmt: skip
def test_chat_template_tokens_are_flagged_and_left(token: str) -> None:
    """A token of a chat template stays as it is, and a warning names it."""
    assert visible(f"so {token} it is") == (f"so {token} it is", (f"the candidate has a chat-template token: {token}",))


def test_invisible_characters_cannot_hide_a_token() -> None:
    """Whoever breaks a token with an invisible character is flagged for that."""
    assert visible("<|im\u200b_start|>")[1]
