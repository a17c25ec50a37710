"""From a reply to findings: what is read, and what is never taken for a verdict."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rubric.grading.reply_parser import LONGEST_REPLY, reach, read
from rubric.values.answers import Answer, Choice, Choices, Levels, ScoreRange, Unit, YesNo
from rubric.values.criteria import Criterion
from rubric.values.findings import Abstained, Scored, Unjudged
from rubric.values.requests import Failure, Reply
from tests.asks import SEALED, UNSEALED, ask_about, ask_for, read_one, verdict_of
from tests.rows import each_row

UNREADABLE = "<unreadable>"
TONES = Choices({"hostile": 0, "neutral": 0.6, "warm": 1})
PERCENT = Levels([ScoreRange(0, 100, "per cent")])


# -- the table of the module, row by row -------------------------------------------------------------------


@each_row(
    "reply",
    [
        '{"verdict": true}',
        'I find that it holds.\n\n{"verdict": true}\n\nThat is all.',
        '```json\n{"verdict": true}\n```',
        '```\n{"verdict": true}\n```',
        'Here you are:\n~~~json\n{\n  "verdict": true\n}\n~~~',
        '<think>It may be {"verdict": false}.</think>{"verdict": true}',
        '<thinking>\n{"verdict": false}\n</thinking>\n\n{"verdict": true}',
        '{"verdict": false} was my first thought.\n</think>\n{"verdict": true}',
        '\ufeff{"verdict": true}',
        '{"answer": "yes"}',
        '{{"verdict": true}}',
        'The set {a, b} is fine. {"verdict": true}',
        'A lone { and \\frac{1}{2}. {"verdict": true}',
        'A disk of {5" width}. {"verdict": true}',
        '{"verdict": true, "reason": "It has a <think> tag."}',
        '{"reason": "In it stands </think>.", "verdict": true,}',
    ],
)
def test_json_is_found_wherever_it_stands(reply: str) -> None:
    """JSON alone, in prose, in a fence and after thinking is read."""
    assert verdict_of(ask_for(), reply) is True


@each_row(
    "reply",
    [
        '{"score": 0.8,}',
        "{'score': 0.8}",
        "{'score': 0.8, 'reason': 'it\\'s fine'}",
        "{'reason': 'it's fine', 'score': 0.8}",
        "{'score': 0.8, 'evidence': None, 'sure': True}",
        '{score: 0.8, reason: "good"}',
        '{"score": 0.8 // fairly good\n}',
        '{"score": 0.8 # fairly good\n}',
        '{"score": 0.8 "reason": "no comma"}',
        '{"reason": "a path: \\d+", "score": 0.8}',
        '{"reason": "two\nlines", "score": 0.8}',
        '{"reason": "he said "hi" to me", "score": 0.8}',
        "{“reason”: “curly”, “score”: 0.8}",
        '{"score": .8}',
    ],
)
def test_near_json_is_repaired(reply: str) -> None:
    """Trailing commas, single quotes, Python literals, bare keys, comments, raw line breaks and inner quotes are read."""
    assert verdict_of(ask_for(Unit()), reply) == 0.8


@each_row(
    "reply",
    [
        '{"score": 80%}', '{"score": 0,8}', '{"score": 1_0}', '{"score": 7 8}', '{"score": ~5}', '{"score": 5-7}',
        '{"score": (5)}', '{"score": 5 or 6}', '{"score": ５}', '{"score": five}', '{"score": }', '{"score": "5 or 6"}',
        '{"score": 5; "reason": "x"}', '{"score": !5}', '{"score": =5}', '{"score": <5}',
    ],
)  # fmt: skip
def test_a_guess_is_no_score(reply: str) -> None:
    """Where a repair would have to guess the value, there is none."""
    assert verdict_of(ask_for(PERCENT), reply) == UNREADABLE


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"verdict": true} {"verdict": true, "reason": "again"}', True),
        ('{"note": 1} {"verdict": true} {"other": 2}', True),
        ('{"verdict": true} {"verdict": false}', UNREADABLE),
        ('{"verdict": true} and then {"verdict": false,}', UNREADABLE),
        ('{"verdict": true} {"verdict": fal', UNREADABLE),
    ],
)
def test_several_objects_must_agree(reply: str, verdict: object) -> None:
    """Of several objects those with the right keys count, and all must say the same."""
    assert verdict_of(ask_for(), reply) == verdict


def test_the_last_of_several_objects_is_read() -> None:
    """Where several objects agree, the last one gives the reason."""
    finding = read_one(ask_for(), '{"verdict": true, "reason": "draft"} {"verdict": true, "reason": "final"}')
    assert isinstance(finding, Scored)
    assert finding.reason == "final"


@each_row(
    "reply",
    [
        '{"draft": {"verdict": true}}',
        '[{"note": {"verdict": true}}]',
        '{"draft": {"verdict": true}, "verdict": fal',
        "{'draft': {\"verdict\": true}, 'verdict': Fals",
        '{"reason": "it says {"verdict": true}", "verdict": false}',
        '{"reason": "cut here, {"verdict": true}',
        "{'reason': '} {\"verdict\": true}', 'note': False}",
    ],
)
def test_an_object_within_another_is_no_verdict(reply: str) -> None:
    """What stands in another object, whole or broken, was not said as a verdict."""
    assert verdict_of(ask_for(), reply) == UNREADABLE


@each_row(
    ("kind", "value", "verdict"),
    [
        (Unit(), "0.75", 0.75), (Unit(), " 1 ", 1.0), (Unit(), "0", 0.0), (Unit(), 1, 1.0),
        (Unit(), "8/10", UNREADABLE), (Unit(), "high", UNREADABLE), (Unit(), "1e0", UNREADABLE), (Unit(), "٠", UNREADABLE),
        (Levels(), "7", 7), (Levels(), 7.0, 7), (Levels(), "8/10", 8), (Levels(), " 8 / 10 ", 8), (Levels(), "8.0", 8),
        (Levels(), "8/5", UNREADABLE), (Levels(), "8/100", UNREADABLE), (Levels(), "11/10", UNREADABLE),
        (Levels(), "80%", UNREADABLE), (Levels(), "0,8", UNREADABLE), (Levels(), "３", UNREADABLE), (Levels(), "", UNREADABLE),
        (Levels(), "-0", 0), (Levels(), True, UNREADABLE), (Levels(), [7], UNREADABLE), (Levels(), {"value": 7}, UNREADABLE),
    ],
)  # fmt: skip
def test_numbers_as_text(kind: Answer, value: object, verdict: object) -> None:
    """A number may be written as text, and as `8/10` for a range that ends at 10; nothing else is a number."""
    assert verdict_of(ask_for(kind), json.dumps({"score": value})) == verdict


@each_row("word", ["pass", "Passed", "satisfied", "MET", "yes", "true", "met ", "ｙｅｓ", True])
def test_words_for_yes(word: object) -> None:
    """The words that the documented systems use for yes are yes."""
    assert verdict_of(ask_for(), json.dumps({"verdict": word})) is True


@each_row("word", ["fail", "Failed", "unsatisfied", "UNMET", "not met", "not_met", "no", "false", False])
def test_words_for_no(word: object) -> None:
    """The words that the documented systems use for no are no."""
    assert verdict_of(ask_for(), json.dumps({"verdict": word})) is False


@each_row("word", ["maybe", "yes and no", "not", "", "partially met", "1", 1, 0, 2, 0.5, [True], {}, "tr"], ids=repr)
def test_other_words_are_no_verdict(word: object) -> None:
    """What is neither yes nor no is not rounded to either."""
    assert verdict_of(ask_for(), json.dumps({"verdict": word})) == UNREADABLE


@each_row("key", ["verdict", "pass", "passed", "satisfied", "met", "answer", "criterion_status", "score"])
def test_keys_for_a_verdict(key: str) -> None:
    """The keys that the documented systems use for a verdict are known."""
    assert verdict_of(ask_for(), json.dumps({key: True})) is True


@pytest.mark.parametrize("key", ["reason", "reasoning", "explanation", "rationale", "justification"])
def test_keys_for_a_reason(key: str) -> None:
    """The keys that the documented systems use for a reason are known."""
    finding = read_one(ask_for(), json.dumps({key: "because  of\nthis", "verdict": True}))
    assert isinstance(finding, Scored)
    assert finding.reason == "because of this"


@each_row(
    ("kind", "reply"),
    [
        (YesNo(), '{"verdict": null, "reason": "cannot tell"}'),
        (Unit(), '{"score": null}'),
        (Unit(flag=True), '{"score": null, "pass": false}'),
        (Levels(), '{"score": null}'),
        (TONES, '{"choice": null}'),
        (YesNo(), "{'verdict': None}"),
    ],
)
def test_null_is_abstention_where_that_is_allowed(kind: Answer, reply: str) -> None:
    """A verdict of null abstains if the rubric allows that, and is unreadable if it does not."""
    assert isinstance(read_one(ask_for(kind, abstain="exclude"), reply), Abstained)
    assert verdict_of(ask_for(kind), reply) == UNREADABLE


def test_null_beside_a_verdict_is_no_abstention() -> None:
    """A null beside a verdict disagrees with it."""
    assert verdict_of(ask_for(abstain="exclude"), '{"verdict": null, "pass": false}') == UNREADABLE


@each_row("kind", [YesNo(), Unit(), Levels(), TONES])
@each_row(
    "reply",
    [
        "It is good.", "true", "0.9", "[0.9]", '"warm"', "{}", "{ }", '{"total": 100}', '{"verdict"}', "{verdict}", "```json\n```",
        "I'm sorry, but I can't help with that.", '{"reason": "good"}', "{" * 50, "null", '{"": true}', '{"Verdict ": 0.5}',
    ],
)  # fmt: skip
def test_no_verdict(kind: Answer, reply: str) -> None:
    """A reply without an object, or whose object has no verdict, is unreadable."""
    assert verdict_of(ask_for(kind), reply) == UNREADABLE


@each_row(
    ("kind", "value"),
    [
        (Unit(), "NaN"), (Unit(), "Infinity"), (Unit(), "-Infinity"), (Unit(), "1e999"), (Unit(), "-1e999"), (Unit(), "nan"),
        (Unit(), "1.01"), (Unit(), "-0.01"), (Unit(), "80"), (Unit(), "9" * 5_000), (Unit(), '"NaN"'), (Unit(), '"inf"'),
        (Levels(), "11"), (Levels(), "-1"), (Levels(), "7.5"), (Levels(), '"7.5"'), (Levels(), "1e1000"), (Levels(), "9" * 39),
        (Levels(), "9" * 5_000), (PERCENT, "101"), (PERCENT, "NaN"), (TONES, '"cold"'), (TONES, '"warm, neutral"'),
        (TONES, '""'), (TONES, "1"), (TONES, "true"), (TONES, '["warm"]'), (TONES, '"warm or neutral"'),
    ],
)  # fmt: skip
def test_outside_of_the_range_or_off_the_menu(kind: Answer, value: str) -> None:
    """Nothing is clamped, rounded or matched to the nearest: what the answer does not allow is unreadable."""
    key = "choice" if isinstance(kind, Choices) else "score"
    assert verdict_of(ask_for(kind), f'{{"{key}": {value}}}') == UNREADABLE


@each_row(
    "levels",
    [
        (1, 5),
        range(1, 6),
        {1: "poor", 5: "good"},
        {"1-2": "poor", "3-5": "good"},
        {n: f"level {n}" for n in range(1, 6)},
    ],
)
def test_a_level_is_a_whole_number_in_whatever_form_it_is_written(levels: Any) -> None:
    """A judge is asked for one: 4.5 is asked for again, and 4.0 is 4."""
    for value in ("4.5", '"4.5"', "1.5", "5.5"):
        assert verdict_of(ask_for(Levels(levels)), f'{{"score": {value}}}') == UNREADABLE
    assert read_one(ask_for(Levels(levels)), '{"score": 4.0}').score == 0.75


@each_row(
    ("kind", "reply"),
    [
        (YesNo(), '{"verdict": true, "verdict": false}'),
        (YesNo(), '{"verdict": true, "verdict": true}'),
        (YesNo(), '{"verdict": true, "verdict": false,}'),
        (YesNo(), "{'verdict': True, 'verdict': False}"),
        (YesNo(), '{"verdict": true, "pass": false}'),
        (YesNo(), '{"verdict": "yes", "score": 0}'),
        (YesNo(), '{"verdict": false, "score": true}'),
        (YesNo(), '{"verdict": true false}'),
        (YesNo(), '{"verdict": true || false}'),
        (Unit(), '{"score": 0.2, "rating": 0.3}'),
        (Unit(), '{"score": 0.2, "score": 0.2}'),
        (Levels(), '{"score": 7, "verdict": 8}'),
        (TONES, '{"choice": "warm", "verdict": "hostile"}'),
        (TONES, '{"choice": "warm" "hostile"}'),
    ],
)
def test_two_verdicts_that_disagree(kind: Answer, reply: str) -> None:
    """A key that stands twice, and two verdicts that disagree, are unreadable."""
    assert verdict_of(ask_for(kind), reply) == UNREADABLE


def test_a_doubled_key_in_an_object_of_no_interest_does_no_harm() -> None:
    """Only the object that answers must be free of doubled keys: a candidate that is quoted need not be."""
    assert verdict_of(ask_for(), 'It gave {"a": 1, "a": 2}. {"verdict": true}') is True


@each_row(
    ("reply", "kind"),
    [
        (Reply('{"verdict": true', finish="length"), "truncated"),
        (Reply('{"verdict": true}', finish="length"), "truncated"),
        (Reply('<think>So {"verdict": true} it is'), "truncated"),
        (Reply('Well. <think>So {"verdict": true} it is'), "truncated"),
        (Reply('<think>a</think><think>{"verdict": true}'), "truncated"),
        (Reply(None, refusal="I will not."), "refusal"),
        (Reply('{"verdict": true}', refusal="I will not."), "refusal"),
        (Reply('{"verdict": true}', finish="content_filter"), "refusal"),
        (Reply("", finish="refusal"), "refusal"),
        (Reply(None), "bad_response"),
        (Reply(""), "bad_response"),
        (Reply(" \n\t"), "bad_response"),
        (Reply('{"verdict": true}' + " " * LONGEST_REPLY), "bad_response"),
        (Reply(5), "bad_response"),  # type: ignore[arg-type]  # what a model of one's own may do
        (Reply('{"score": 1'), "unreadable"),
        (Reply('{"verdict": tr'), "unreadable"),
    ],
)
def test_replies_that_cannot_be_read_say_why(reply: Reply, kind: str) -> None:
    """Cut, refused, empty and overlong replies are failures of their own kinds, whatever verdict they hold."""
    finding = read_one(ask_for(), reply)
    assert isinstance(finding, Unjudged)
    assert finding.failure.kind == kind


def test_a_failure_passes_through() -> None:
    """A call that failed leaves the criterion unjudged, with the failure and the names."""
    finding = read_one(ask_for(), Failure("timeout", "60 s"))
    assert isinstance(finding, Unjudged)
    assert finding.failure == Failure("timeout", "60 s", criterion="it")


# -- shapes -----------------------------------------------------------------------------------------------


@each_row("cut", range(len('{"score": 10')))
def test_a_cut_number_is_never_its_beginning(cut: int) -> None:
    """A reply that is cut anywhere before its end gives no score: 1 might have become 10."""
    assert verdict_of(ask_for(Levels()), '{"score": 10}'[: cut + 1]) == UNREADABLE


@each_row("depth", [65, 500, 3_000, 60_000])
@each_row("shape", ['{"score": %s}', '{"reason": %s, "score": 1}', "%s", '{"score": 1,, "x": %s}'])
def test_deep_nesting_is_no_verdict(depth: int, shape: str) -> None:
    """Thousands of brackets neither crash the reader nor hide a verdict."""
    assert verdict_of(ask_for(Levels()), shape % ("[" * depth + "]" * depth)) == UNREADABLE


@pytest.mark.parametrize("text", ["\ud800", "\\ud800"])
def test_half_surrogates_do_not_get_far(text: str) -> None:
    """What a reply holds of half surrogates is replaced, so that the finding can be written and printed."""
    for reply in (
        f'{{"verdict": true, "reason": "{text}", "evidence": ["{text}a"]}}',
        f"{text} nothing",
        f'{{"verdict": "{text}"}}',
    ):
        finding = read_one(ask_for(evidence=True), reply)
        repr(finding).encode()
        getattr(finding, "text", "").encode()
        getattr(finding, "reason", "").encode()
        "".join(e.text for e in getattr(finding, "evidence", ())).encode()


@pytest.mark.parametrize("label", ["warm", "Warm", " WARM ", "ｗａｒｍ"])
def test_labels_are_folded(label: str) -> None:
    """A label is known by its letters: case, outer white space and compatibility forms do not matter."""
    assert verdict_of(ask_for(TONES), json.dumps({"choice": label})) == "warm"


def test_a_label_beyond_ascii() -> None:
    """A label in any script is found, escaped or not."""
    menu = Choices([Choice("тёплый", 1), Choice("холодный", 0)])
    assert verdict_of(ask_for(menu), '{"choice": "ТЁПЛЫЙ"}') == "тёплый"
    assert verdict_of(ask_for(menu), json.dumps({"choice": "холодный"})) == "холодный"


@pytest.mark.parametrize(
    ("levels", "level"),
    [
        ({0: "no way in", 5: "with effort", 10: "at once"}, "between 5 (with effort) and 10 (at once)"),
        ({0: "no way in", 7: "with effort", 10: "at once"}, "with effort"),
        ({"0-4": "no way in", "5-9": "with effort", 10: "at once"}, "with effort"),
        ({"0-4": "no way in", 5: "with effort", 10: "at once"}, "between 5 (with effort) and 10 (at once)"),
        (ScoreRange(0, 10), ""),
    ],
)
def test_a_level_has_its_place_and_its_meaning(levels: Any, level: str) -> None:
    """A level is placed on its range, and the finding names its anchor, its band, or the two that it lies between."""
    assert read_one(ask_for(Levels(levels)), '{"score": 7}') == Scored("it", 0.7, 7, level=level)


def test_a_plain_yes_is_a_full_score() -> None:
    """A judge that says yes or no where a score was wanted has said 1 or 0."""
    assert verdict_of(ask_for(Unit()), '{"verdict": "yes"}') == 1.0
    assert verdict_of(ask_for(Unit()), '{"pass": false}') == 0.0


@pytest.mark.parametrize(
    ("reply", "flag"),
    [('{"score": 0.9, "pass": false}', False), ('{"score": 0.1, "pass": true}', True), ('{"score": 1}', None)],
)
def test_a_flag_is_kept_beside_the_score(reply: str, flag: bool | None) -> None:
    """The judge's own pass flag is kept; where a threshold decides, it may be left out."""
    finding = read_one(ask_for(Unit(flag=True)), reply)
    assert isinstance(finding, Scored)
    assert finding.flag is flag


@pytest.mark.parametrize(
    "reply", ['{"score": 1}', '{"score": 1, "pass": "maybe"}', '{"score": 1, "pass": true, "met": false}']
)
def test_a_flag_that_decides_must_be_there(reply: str) -> None:
    """Without a threshold the pass flag is the verdict: without it, there is none."""
    assert verdict_of(ask_for(Unit(flag=True), threshold=None), reply) == UNREADABLE


def test_the_judge_never_gives_a_total() -> None:
    """A total that a judge adds of its own is not looked at."""
    assert verdict_of(ask_for(Levels()), '{"total": 100, "score": 3, "overall": 10}') == 3


@pytest.mark.parametrize(
    ("kind", "bounds"), [(YesNo(), (0, 1)), (Levels(), (0, 1)), (Choices({"a": 0.2, "b": 0.9}), (0.2, 0.9))]
)
def test_what_is_missing_has_bounds(kind: Answer, bounds: tuple[float, float]) -> None:
    """An unjudged criterion says between which scores its verdict would have been."""
    finding = read_one(ask_for(kind), "nothing")
    assert isinstance(finding, Unjudged)
    assert (finding.low, finding.high) == reach(kind) == bounds


def test_evidence_is_looked_up() -> None:
    """A quote gets the candidate's own words and offsets; one that is not there keeps the judge's words and none."""
    ask = ask_for(candidate="He said “yes”.", evidence=True)
    finding = read_one(ask, '{"verdict": true, "evidence": ["said \\"yes\\"", "said no"]}')
    assert isinstance(finding, Scored)
    assert [(e.text, e.start, e.verified) for e in finding.evidence] == [
        ("said “yes”", 3, True),
        ("said no", None, False),
    ]


def test_evidence_that_was_not_asked_for_is_not_looked_at() -> None:
    """Where the rubric wants no evidence, a quote is nothing."""
    finding = read_one(ask_for(), '{"verdict": true, "evidence": ["text"]}')
    assert isinstance(finding, Scored)
    assert finding.evidence == ()


# -- many in one call ----------------------------------------------------------------------------------------

PAIR = (Criterion("First?", id="a"), Criterion("Second?", id="b", answer=Levels()))


def many(*entries: Any, **more: Any) -> list[object]:
    """Return what two criteria come to, by *entries*."""
    findings = read(ask_about("Some text.", *PAIR), Reply(json.dumps({"verdicts": list(entries), **more})))
    return [f.failure.kind if isinstance(f, Unjudged) else getattr(f, "value", f) for f in findings]


GOOD = ({"id": "a", "verdict": True}, {"id": "b", "verdict": 4})


def test_many_verdicts_go_by_id() -> None:
    """Of many verdicts each belongs to the criterion whose id it has, in any order."""
    assert many(*GOOD) == many(*reversed(GOOD)) == [True, 4]


@each_row(
    "bad",
    [
        {"id": "a"}, {"id": "A", "verdict": True}, {"id": "c", "verdict": True}, {"verdict": True}, {"id": None, "verdict": True},
        {"id": "a", "verdict": 0.5}, {"id": "a", "verdict": None}, {"id": "a", "verdict": True, "pass": False}, "a", None, [], 1,
        {"id": ["a"], "verdict": True},
    ],
)  # fmt: skip
def test_one_bad_entry_fails_its_criterion_alone(bad: object) -> None:
    """An entry that is missing, mistyped, off its range or no object leaves the others as they are."""
    assert many(bad, GOOD[1]) == ["unreadable", 4]


def test_an_id_that_stands_twice_fails() -> None:
    """Two verdicts for one criterion are not a verdict, even if they agree."""
    assert many(GOOD[0], GOOD[0], GOOD[1]) == ["unreadable", 4]


def test_extra_ids_are_ignored() -> None:
    """A verdict that nobody asked for does not matter."""
    assert many(*GOOD, {"id": "c", "verdict": False}) == [True, 4]


@each_row(
    "reply",
    [
        '{"verdicts": {}}', '{"verdicts": "a"}', '{"verdicts": null}', "[]", '[{"id": "a", "verdict": true}]', '{"id": "a", "verdict": true}',
        '{"verdicts": []} {"verdicts": [{"id": "a", "verdict": true}]}', '{"verdicts": [{"id": "a", "verdict": true}',
    ],
)  # fmt: skip
def test_no_list_of_verdicts(reply: str) -> None:
    """A reply to many criteria that holds no single list of verdicts judges none of them."""
    findings = read(ask_about("Some text.", *PAIR), Reply(reply))
    assert [f.id for f in findings if isinstance(f, Unjudged)] == ["a", "b"]


def test_a_doubled_key_in_a_repaired_entry_is_seen() -> None:
    """A repair keeps the last of two equal keys; the reader does not take it."""
    reply = '{"verdicts": [{"id": "a", "verdict": true, "verdict": false}, {"id": "b", "verdict": 4},]}'
    assert all(isinstance(f, Unjudged) for f in read(ask_about("Some text.", *PAIR), Reply(reply)))


def test_ids_that_are_numbers_as_text() -> None:
    """An id that a judge gives back as a number is the same id."""
    criteria = (Criterion("First?", id="1"), Criterion("Second?", id="2"))
    reply = '{"verdicts": [{"id": 1, "verdict": true}, {"id": "2", "verdict": false}]}'
    findings = read(ask_about("Some text.", *criteria), Reply(reply))
    assert [getattr(f, "value", None) for f in findings] == [True, False]


def test_fences_and_empty_content_in_the_way_of_other_libraries() -> None:
    """A fenced verdict is not lost to its fence, and content that is None is a bad response and not an unknown one."""
    ask = ask_for(judge=SEALED)
    assert verdict_of(ask, f'```json\n{{"verdict": true, "nonce": "{ask.nonce}"}}\n```') is True
    finding = read_one(ask, Reply(None))
    assert isinstance(finding, Unjudged)
    assert finding.failure.kind == "bad_response"


@each_row("polarity", ["guard", "penalty"])
@each_row(
    "said",
    [
        {"passed": True}, {"satisfied": True}, {"met": False}, {"pass": "yes"}, {"answer": "no"}, {"score": 1}, {"criteria_met": True},
        {"verdict": False, "passed": True}, {"verdict": False, "score": 0},
    ],
    ids=str,
)  # fmt: skip
@each_row("sealed", [False, True])
def test_what_must_not_hold_is_read_under_the_asked_key_alone(
    polarity: Any, said: dict[str, Any], *, sealed: bool
) -> None:
    """`passed: true` of a guard may mean that it is there, or that all is well: the judge is asked again."""
    for answer_type, key in ((YesNo(), "verdict"), (Unit(), "score")):
        criterion = Criterion("Promises a refund", answer=answer_type, polarity=polarity)
        ask = ask_about("Some text.", criterion, judge=SEALED if sealed else UNSEALED)
        given = {key if name == "verdict" else name: value for name, value in said.items()}
        reply = json.dumps({"reason": "x", **given, **({"nonce": ask.nonce} if sealed else {})})
        assert verdict_of(ask, reply) == (given[key] if [*given] == [key] else "<unreadable>")


@pytest.mark.parametrize("quoted", ['Hello "\\"```json}```{ there', 'a "b": [}{', '"```json', "{'a': \"b}"])
def test_no_reply_raises(quoted: str) -> None:
    """A library that repairs JSON raises errors of its own on what a candidate made a judge repeat."""
    for judge in (UNSEALED, SEALED):
        ask = ask_for(judge=judge)
        assert verdict_of(ask, f'{{"reason": "It says: {quoted}", "verdict": false}}') in ("<unreadable>", False)


@each_row(
    ("said", "label"), [("1", "1"), ('"1"', "1"), ("2", "2"), ("3", None), ("true", None), ("1.0", None), ("[1]", None)]
)
def test_a_number_is_the_choice_that_it_names(said: str, label: str | None) -> None:
    """A label such as 1 is a whole number to many a judge, as of a preference."""
    finding = read_one(ask_for(Choices({"1": 1, "2": 0, "tie": 0.5})), f'{{"choice": {said}}}')
    assert (finding.value if isinstance(finding, Scored) else None) == label
