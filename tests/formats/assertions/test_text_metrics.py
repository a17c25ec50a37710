"""Words and letters compared with references: promptfoo's `rouge-n`, `bleu`, `gleu` and `levenshtein`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric import Candidate, Grade
from rubric.engine.grade import evaluate
from rubric.errors import LoadError
from rubric.formats.assertions import text_metrics
from rubric.formats.suites import loads_suite
from rubric.values.checks import Unsupported
from tests.rows import each_row

pytest.importorskip("nltk", reason="the extra metrics is not installed")
pytest.importorskip("rapidfuzz", reason="the extra metrics is not installed")

MAT = "The cat sat on the mat."
MATS = [MAT, "There is a cat on the mat.", "A cat is sitting on the mat."]
GUIDE = "It is a guide to action that ensures that the military will forever heed Party commands"
ACTION = "It is a guide to action which ensures that the military always obeys the commands of the party"


def graded(kind: str, value: Any, output: str, **keys: Any) -> tuple[bool | None, float]:
    """Return whether *output* passes the assertion, and its score."""
    data = {"prompts": ["Q"], "tests": [{"assert": [{"type": kind, "value": value, **keys}]}]}
    (case,) = loads_suite(json.dumps(data), "promptfoo")
    result = evaluate(Candidate(output), case.rubric, "offline")
    assert isinstance(result, Grade), result
    return result.passed, result.score


# The figures are those of the tests of promptfoo, given there as bounds.
@each_row(
    ("kind", "value", "output", "least", "most"),
    [
        ("bleu", MAT, MAT, 0.999, 1),
        ("bleu", MAT, "Dogs run in the park.", 0, 0.001),
        ("bleu", MAT, "The dog sat on the mat.", 0.5, 1),
        ("bleu", MAT, "The cat sat.", 0, 1),
        ("bleu", MATS, "The cat was sitting on the mat.", 0.25, 1),
        ("bleu", ["The cat sat on mat.", "Cat mat.", "A cat is sitting on a mat."], "The cat sat on mat.", 0.999, 1),
        ("gleu", "The cat sat on the mat", MAT, 0.999, 1),
        ("gleu", "The cat sat on the mat", "the the the the the the the", 0.085, 0.095),
        ("gleu", GUIDE, ACTION, 0.35, 0.46),
        ("gleu", "One two three four five", "One two three", 0.428, 0.429),
        ("gleu", "One two three", "One two three four five", 0.428, 0.429),
        ("gleu", "cat", "cat", 1, 1),
        ("gleu", MAT, "The cat sat.", 0.33, 0.34),
        ("gleu", MATS, "The cat was sitting on the mat.", 0.5, 1),
    ],
)
def test_scores_are_within_the_bounds_of_promptfoos_tests(
    kind: str, value: Any, output: str, least: float, most: float
) -> None:
    """Of one reference or several, of which the nearest counts."""
    passed, score = graded(kind, value, output)
    assert least <= score <= most
    assert passed is (score >= 0.5)


def test_bleu_has_the_penalty_of_its_paper_for_short_outputs() -> None:
    """An output of three words, all in a reference of six: exp(1 - 6 / 3), by the smoothed precisions."""
    precisions = (2 / 3) * (1 / 2)  # "sat." is not "sat"; one pair of two; no triple, and there are no fours
    expected = 2.718281828459045 ** (1 - 6 / 3) * (precisions * 1e-7) ** (1 / 3)
    _, score = graded("bleu", MAT, "The cat sat.")
    assert score == pytest.approx(expected)


@each_row(
    ("value", "output", "score"),
    [
        ("the cat sat", "the cat sat", 1),
        ("the cat sat down", "the cat sat, at last", 0.6),
        ("the cat", "the cat sat on the mat", 0.5),
        ("the cat sat on the mat", "The cat sat on the mat", 1),
        ("a a b", "a b b", 2 / 3),
        ("The cat", "the dog", 0.5),
        ("the cat", "", 0),
    ],
)
def test_rouge_n_is_the_f1_of_the_words_in_common(value: str, output: str, score: float) -> None:
    """Each counts as often as it occurs; case does not matter, and punctuation is a word. From 0.75 it passes."""
    passed, found = graded("rouge-n", value, output)
    assert found == pytest.approx(score)
    assert passed is (score >= 0.75)


@each_row(
    ("value", "output", "keys", "passed"),
    [
        ("test", "test", {}, True),
        ("test", "tast", {}, True),
        ("test", "tist", {"threshold": 2}, True),
        ("test", "tast", {"threshold": 0}, False),
        ("test", "completely different", {}, False),
        ("test!@#$", "test!@#$", {"threshold": 0}, True),
        ("ok", "\U0001f642ok", {"threshold": 1}, False),
        ("ok", "\U0001f642ok", {"threshold": 2.5}, True),
        ("ok", "k" * 100_000, {"threshold": 1e300}, True),
    ],
)
def test_levenshtein_counts_letters_as_javascript_does(
    value: str, output: str, keys: dict[str, Any], passed: bool
) -> None:
    """Up to five may differ; an emoji has two."""
    assert graded("levenshtein", value, output, **keys) == (passed, float(passed))
    assert graded("not-levenshtein", value, output, **keys) == (not passed, float(not passed))


@pytest.mark.parametrize("kind", ["rouge-n", "bleu", "gleu"])
def test_thresholds_and_negation(kind: str) -> None:
    """A threshold moves the bar and not the score; `not-` turns both over."""
    dog = "The dog sat on the mat."
    passed, score = graded(kind, MAT, dog, threshold=0.9)
    assert not passed
    assert 0 < score < 0.9
    assert graded(kind, MAT, dog, threshold=0.1) == (True, score)
    turned, rest = graded(f"not-{kind}", MAT, dog, threshold=0.9)
    assert turned
    assert rest == pytest.approx(1 - score)
    assert graded(f"not-{kind}", MAT, dog, threshold=0.1)[0] is False


def test_empty_outputs_are_far_from_every_text() -> None:
    """Nothing is compared, and nothing fails."""
    assert all(graded(kind, MAT, "") == (False, 0) for kind in text_metrics.THRESHOLDS)


def test_an_empty_reference_is_compared_like_any_other() -> None:
    """promptfoo allows one: nothing is near it but nothing; a precision of 0 is 1e-7 in BLEU."""
    assert graded("levenshtein", "", "abc", threshold=3) == (True, 1)
    assert graded("levenshtein", "", "abcdef") == (False, 0)
    assert [graded(kind, "", "abc") for kind in ("rouge-n", "gleu")] == [(False, 0)] * 2
    passed, score = graded("bleu", "", "abc")
    assert not passed
    assert score == pytest.approx(1e-7)
    assert graded("bleu", ["", MAT], MAT)[0]


@pytest.mark.parametrize("kind", ["rouge-n", "meteor"])
def test_what_is_missing_is_said(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, and for METEOR, the case is ungraded, and names the cure."""
    monkeypatch.setattr("rubric.formats.assertions.table.is_installed", lambda: False)
    data = {"prompts": ["Q"], "tests": [{"assert": [{"type": kind, "value": "x"}]}]}
    (case,) = loads_suite(json.dumps(data), "promptfoo")
    check = case.rubric.criteria[0].answer
    assert isinstance(check, Unsupported)
    assert ("rubric-grade[metrics]" if kind == "rouge-n" else "WordNet") in check.cure


@pytest.mark.parametrize("keys", [{"value": []}, {"value": "x", "threshold": -1}, {"value": "x", "threshold": "far"}])
def test_what_cannot_be_compared_is_refused(keys: dict[str, Any]) -> None:
    """A reference without a text, and a threshold that is none."""
    data = {"prompts": ["Q"], "tests": [{"assert": [{"type": "bleu", **keys}]}]}
    with pytest.raises(LoadError):
        loads_suite(json.dumps(data), "promptfoo")
