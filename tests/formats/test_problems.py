"""A file that is wrong is told all that is wrong with it: where, what was found, what is allowed, the cure."""

from __future__ import annotations

import inspect
import sys

import pytest

from rubric.errors import LoadError
from rubric.formats.rubrics import loads
from rubric.formats.suites import loads_suite
from tests.rows import each_row


def problems(text: str) -> list[str]:
    """Return what is said of *text*, a line each."""
    with pytest.raises(LoadError) as caught:
        loads(text, source="support.yaml")
    return str(caught.value).splitlines()


def test_all_at_once_in_order() -> None:
    """Every problem is told, in the order of the file."""
    text = """\
threshold: 2
threshhold: 1
criteria:
  - text: Answers the question
    wieght: 2
    weight: -1
  - {id: cites, text: Cites an article}
  - id: no
    text: false
  - {id: cites, text: Cites another}
"""
    expected = "expected a finite number from 0 to 1, got 2"
    assert problems(text) == [
        f"support.yaml:1:12: threshold: {expected}; 2 of the 3 points of its criteria is threshold: 0.667",
        "support.yaml:2:1: threshhold: unknown key; did you mean 'threshold'?",
        "support.yaml:5:5: criteria[0].wieght: unknown key; did you mean 'weight'?",
        "support.yaml:6:13: criteria[0].weight: expected a finite number from 0, got -1; what takes points off is a penalty, such as {text: Shouts, polarity: penalty, weight: 2}, and in the rubric aggregation: points",
        'support.yaml:9:11: criteria[2].text: expected text, got the boolean False; quote it: "no"',
        "support.yaml:10:10: criteria[3].id: the id 'cites' belongs to criteria[1] already; give one of them another",
    ]


@each_row(
    ("text", "problem"),
    [
        ("", "1:1: there is nothing in it; a rubric has `criteria`, `text` or `tree`"),
        ("# only a comment", "1:1: there is nothing in it; a rubric has `criteria`, `text` or `tree`"),
        (
            "- a",
            "1:1: a rubric is one mapping; write the whole as {criteria: [a]}",
        ),
        (
            "just words",
            "1:1: expected a rubric (a mapping with criteria, text or tree), got 'just words'; such as rubric: reply and criteria: [Is polite]",
        ),
        ("rubric: a", "1:1: a rubric has criteria, text or tree, and here is none; write one"),
        (
            "criteria: [{text: a, levels: 1-5}]",
            "1:30: criteria[0].levels: expected a scale with two dots, got '1-5'; write {text: a, levels: 1..5}",
        ),
        ("text: a\ncriteria: [b]", "2:1: criteria: a rubric has text or criteria, not both; nest one in the other"),
        (
            "criteria:",
            "1:10: criteria: expected a list of criteria, got nothing; such as criteria: [Is polite, Is clear]",
        ),
        (
            "criteria: a",
            "1:11: criteria: expected a list of criteria, got 'a'; such as criteria: [Is polite, Is clear]",
        ),
        ("text: 5", '1:7: text: expected text, got 5; quote it: "5"'),
        ("text: ''", "1:7: text: expected text, got an empty one; write what is to be judged"),
        ("text: a\nrubric: 5", '2:9: rubric: expected text, got 5; quote it: "5"'),
        (
            "text: a\nthreshold: '0.5'",
            "2:12: threshold: expected a finite number from 0 to 1, got '0.5'; take the quotes off",
        ),
        ("text: a\nthreshold: .nan", "2:12: threshold: expected a finite number, got .nan; quote it if it is text"),
        ("text: a\nthreshold: 1e999", "2:12: threshold: expected a finite number, got 1e999; quote it if it is text"),
        (
            "text: a\nborderline: 0.9",
            "2:13: borderline: expected at most the threshold 0.7, got 0.9; such as borderline: 0.5",
        ),
        ("text: a\nstrict: 'true'", "2:9: strict: expected True or False, got 'true'; take the quotes off"),
        (
            "text: a\naggregation: zebra",
            "2:14: aggregation: unknown value 'zebra'; allowed: weighted_average, min, points",
        ),
        (
            "text: a\nscale: likert",
            "2:8: scale: expected unit, boolean, letter or {likert: {min: 1, max: 5}}, got 'likert'; such as scale: {likert: {min: 1, max: 5}}; or, for what the judge says, in a criterion, levels: 1..5",
        ),
        (
            "text: a\nscale: {likert: {min: 5, max: 1}}",
            "2:31: scale.likert.max: a Likert scale runs upwards, not from 5 to 1",
        ),
        ("text: a\ntext: b", "2:1: text: the key 'text' stands in line 1 already; keep one of them"),
        ("text: &a b", "1:7: text: anchors (&a) are not read; take it out, and write out what repeats it"),
        ("text: *a", "1:7: text: aliases (*a) are not read; write it out"),
        ("text: a\n<<: {rubric: b}", "2:1: merge keys (<<) are not read; write out what they stand for"),
        ("text: !!str a", "1:7: text: tags (tag:yaml.org,2002:str) are not read; take it out"),
        ("text: !mine a", "1:7: text: tags (!mine) are not read; take it out"),
        ("text: a\n--- \ntext: b", "2:1: a second document starts here; a file holds one"),
        ("%YAML 1.1\n---\ntext: a", "2:1: %YAML 1.1 is not read, only YAML 1.2; take the line out"),
        ("%TAG ! tag:a,2000:\n---\ntext: a", "2:1: %TAG is not read; take the line out"),
        (
            "text: 2024-01-01",
            '1:7: text: expected text, a number or a boolean, got the date 2024-01-01; quote it: "2024-01-01"',
        ),
        ("text: a\n? [1]\n: b", "2:3: a key is a text or a number, not a list or a mapping"),
        ("text: a\x07", "1:8: the character '\\x07' cannot stand in YAML; escape it in double quotes"),
        ("text: a\u2028b", "1:8: the character '\\u2028' cannot stand in YAML; escape it in double quotes"),
    ],
)
def test_rubric_problems(text: str, problem: str) -> None:
    """Each mistake in a rubric is told once, at its place."""
    assert problems(text) == [f"support.yaml:{problem}"]


@each_row(
    ("criterion", "problem"),
    [
        ("5", "12: criteria[0]: expected a criterion (its text, or a mapping), got 5"),
        ("''", "12: criteria[0]: expected text, got an empty one; write what is to be judged"),
        ("{id: a}", "12: criteria[0]: the key 'text' is missing; add it"),
        (
            "{text: a, evidence: 2}",
            "32: criteria[0].evidence: expected True or False, got 2; write true, or leave it out",
        ),
        (
            "{text: a, levels: [bad, good]}",
            "30: criteria[0].levels: labels alone have no numbers; write {0: 'bad', 1: 'good'} if the last is the best, {0: 'good', 1: 'bad'} if the first is",
        ),
        (
            "{text: a, weight: -0.5}",
            "30: criteria[0].weight: expected a finite number from 0, got -0.5; write {text: a, polarity: penalty, weight: 0.5}, and in the rubric aggregation: points",
        ),
        (
            "{text: a, weight: heavy}",
            "30: criteria[0].weight: expected a finite number from 0, got 'heavy'; such as weight: 2",
        ),
        (
            "{text: a, weight: true}",
            "30: criteria[0].weight: expected a finite number from 0, got True; such as weight: 1",
        ),
        ("{text: a, min_score: 0}", "33: criteria[0].min_score: expected a finite number above 0 to 1, got 0"),
        ("{text: a, polarity: guarded}", "32: criteria[0].polarity: unknown value 'guarded'; did you mean 'guard'?"),
        ("{text: a, levels: {0: a, 1: b}, answer: unit}", None),
        (
            "{text: a, when: {}}",
            "28: criteria[0].when: expected a mapping with one of contains, regex, tool_called, got nothing; for a word of the candidate, such as when: {contains: refund}; what depends on an answer is a tree, such as tree: {ask: Was it asked?, yes: {ask: Is it answered?, yes: 1, no: 0}, no: 1}, which counts as met where the first answer is no; to leave it out there, such as {text: 'Is answered; if nothing was asked, it cannot be told', abstain: exclude}",
        ),
        (
            "{text: a, when: {holds: f}}",
            "29: criteria[0].when.holds: unknown key; allowed: contains, regex, tool_called, negated; what the variables of a case decide is a rubric of its own in that case, such as rubric: [Is polite, Is in German]",
        ),
        ("{text: a, tags: [1]}", "29: criteria[0].tags[0]: expected texts, got 1"),
        ("{text: a, anchors: [{response: b}]}", "32: criteria[0].anchors[0]: the key 'score' is missing; add it"),
        (
            "{text: a, anchors: [{response: b, score: 7}]}",
            "53: criteria[0].anchors[0].score: expected a finite number from 0 to 1, got 7",
        ),
        (
            "{text: a, metadata: {b: {1: c}}}",
            '37: criteria[0].metadata.b[1]: expected text as a key, got 1; quote it: "1"',
        ),
        (
            "{text: a, answer: maybe}",
            "30: criteria[0].answer: expected yes_no, unit or {unit: {flag: true}}, got 'maybe'",
        ),
        (
            "{text: a, levels: {}}",
            "30: criteria[0].levels: expected levels, got none; write 0..10 for a scale without texts",
        ),
        (
            "{text: a, levels: {1: b, '1': c}}",
            "30: criteria[0].levels: two bands start at 1; each score belongs to one",
        ),
        (
            "{text: a, levels: {1: b, 2: c, 1.0: d}}",
            "43: criteria[0].levels[1.0]: the key 1.0 stands in line 1 already; keep one of them",
        ),
        ("{text: a, levels: {1: b, 2: 3}}", '40: criteria[0].levels[2]: expected text, got 3; quote it: "3"'),
        (
            "{text: a, levels: [{score_range: [0], text: b}]}",
            "45: criteria[0].levels[0].score_range: expected the lowest and the highest score, got a list",
        ),
        ("{text: a, choices: {b: 0, c: 2}}", "41: criteria[0].choices.c: expected a finite number from 0 to 1, got 2"),
        (
            "{text: a, choices: {b: 0, B: 1}}",
            "31: criteria[0].choices: the label 'B' stands twice (case does not matter)",
        ),
        (
            "{text: a, choices: {1: 0, b: 1}}",
            '32: criteria[0].choices[1]: expected text as a key, got 1; quote it: "1"',
        ),
        ("{text: a, tree: {ask: b, yes: 1}}", "28: criteria[0].tree: the key 'no' is missing; add it"),
        (
            "{text: a, tree: {ask: b, yes: 1, no: {ask: c, yes: 3, no: 0}}}",
            "63: criteria[0].tree.no.yes: expected a finite number from 0 to 1, got 3",
        ),
        (
            "{text: a, tree: {ask: b, true: 2, false: 0}}",
            "43: criteria[0].tree.yes: expected a finite number from 0 to 1, got 2",
        ),
        ("{text: a, check: {contain: b}}", "30: criteria[0].check.contain: no such check; did you mean 'contains'?"),
        ("{text: a, check: {matches: (}}", None),
        ("{text: a, check: {contains: 5}}", '40: criteria[0].check.contains: expected text, got 5; quote it: "5"'),
        ("{text: a, check: is_yaml}", None),
        (
            "{text: a, rubric: {criteria: [{text: b, weight: -1}]}}",
            "60: criteria[0].rubric.criteria[0].weight: expected a finite number from 0, got -1; write {text: b, polarity: penalty, weight: 1}, and in the rubric aggregation: points",
        ),
    ],
)
def test_criterion_problems(criterion: str, problem: str | None) -> None:
    """Each mistake in a criterion is told once, at its place."""
    found = problems(f"criteria: [{criterion}]")
    assert len(found) == 1
    if problem is not None:
        assert found == [f"support.yaml:1:{problem}"]


def test_problems_carry_their_places() -> None:
    """A program can read the places, too."""
    with pytest.raises(LoadError) as caught:
        loads("text: a\n\nthreshold: 2")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column, problem.path) == (3, 12, "threshold")


def test_places_in_json() -> None:
    """A problem in JSON has its line and its column, too."""
    assert problems('{\n\t"text": "a",\n\t"threshold": 2\n}') == [
        "support.yaml:3:15: threshold: expected a finite number from 0 to 1, got 2"
    ]


def test_json_has_no_nan() -> None:
    """What Python's JSON takes for a number and JSON does not is refused at its place."""
    assert problems('{"text": "a", "threshold": NaN}') == [
        "support.yaml:1:28: threshold: expected a finite number, got NaN"
    ]


def test_errors_are_bounded() -> None:
    """However much is wrong, the error stays readable."""
    found = problems("text: a\n" + "".join(f"k{number}: 1\n" for number in range(3_000)))
    assert len(found) == 101
    assert found[-1] == "support.yaml:102:1: and 2900 more problems from here on"


def test_long_values_are_cut() -> None:
    """A message shows the beginning of what was found, not all of it."""
    (found,) = problems(f"text: a\nthreshold: {'x' * 100_000}")
    assert len(found) < 500


def test_value_of_a_flaw_is_told_once() -> None:
    """What cannot be read is told as that, and not again as something of the wrong kind."""
    assert len(problems("criteria: [{text: a, weight: .inf, tags: !!set {a}}]")) == 2


def _words_on(code: int) -> str:
    """Return what this version of Python says of a character that there is not."""
    with pytest.raises((OverflowError, ValueError)) as found:
        chr(code)
    return str(found.value)


@each_row(
    ("text", "problem"),
    [
        ("[" * 900, "1:129: lists and mappings nest more than 128 deep; make it flatter"),
        # The parser in Python would read each of these brackets anew for each before it.
        ("[" * 50_000, "1:1001: lists and mappings nest more than 128 deep; make it flatter"),
        (
            '{"text": ' + "[" * 5_000 + "]" * 5_000 + "}",
            # From 3.12 on the parser reads on, so that the place is known.
            f"1:{1 if sys.version_info < (3, 12) else 137}: lists and mappings nest more than 128 deep; make it flatter",
        ),
        (
            "criteria:\n" + "- {text: a}\n" * 6_000,
            "5001:4: a document has at most 20000 parts (texts, lists, mappings); split the file",
        ),
        (
            "text: " + "a" * 200_001,
            "1:7: a text has at most 200000 characters, this one 200001; shorten it",
        ),
        (
            "text: a\nthreshold: " + "9" * 401,
            "2:12: threshold: expected a number of at most 400 digits, got 401; quote it if it is text",
        ),
        ('text: "\\UFFFFFFFF"', f"1:1: this is not YAML: {_words_on(0xFFFFFFFF)}"),
    ],
)
def test_limits(text: str, problem: str) -> None:
    """What is beyond a limit is refused with the limit, at the place where it is passed."""
    assert problems(text) == [f"support.yaml:{problem}"]


@pytest.mark.parametrize("check", ["{}", "{contains: a, equals: b}"])
def test_one_check_a_criterion(check: str) -> None:
    """A criterion has one check, not none and not two."""
    assert "check" in problems(f"criteria: [{{text: a, check: {check}}}]")[0]


def test_deep_in_the_stack() -> None:
    """A document for which the stack is too short is refused, too."""
    text = "criteria: [{text: a, tree: " + "{ask: a, no: 0, yes: " * 60 + "1" + "}" * 60 + "}]"

    def call(depth: int) -> None:
        if depth:
            call(depth - 1)
        else:
            loads(text)

    loads(text)
    for left in (60, 120, 200):
        with pytest.raises(LoadError, match="deep"):
            call(sys.getrecursionlimit() - len(inspect.stack(0)) - left)


def test_a_problem_of_the_file_as_a_whole_names_no_line() -> None:
    """A file that is too large is reported with its name, the limit and the cure."""
    assert problems("# " + "a" * 600_000) == ["support.yaml: a file has at most 512 KiB; split it"]


@pytest.mark.parametrize("text", ["Mentions ticket #4471", "Names the channel #help", "Übt Kritik #1"])
def test_a_text_that_a_comment_cuts_is_refused(text: str) -> None:
    """In YAML ` #4471` is a comment, and the judge would be asked for less than was written."""
    with pytest.raises(LoadError, match="cut") as caught:
        loads(f"rubric: r\ncriteria:\n  - Is polite\n  - {text}\n")
    (problem,) = caught.value.problems
    assert (problem.line, problem.column) == (4, 5)
    assert "quote" in problem.message


@each_row(
    ("criterion", "text"),
    [
        ("text: Says what to do next, politely", "Says what to do next, politely"),
        ("id: a, text: Is kind, warm, and short, weight: 2", "Is kind, warm, and short"),
        ("text: Names 3, 4 or 5", "Names 3, 4 or 5"),
    ],
)
def test_a_text_that_a_comma_cuts_is_answered_with_the_quoted_text(criterion: str, text: str) -> None:
    """Within braces a comma begins the next key; the text that is printed is read as it was meant."""
    (said,) = problems(f"criteria: [{{{criterion}}}]")
    assert ": unknown key; within braces a comma ends a text; write text: " in said
    cure = said.partition("; write ")[2]
    assert loads(f"criteria: [{{{cure}}}]").criteria[0].text == text


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("criteria:\n  - Tone: is warm\n", "quote it: 'Tone: is warm'"),
        ("criteria:\n  - Stars: 5\n    weight: 2\n", "quote it: 'Stars: 5'"),
        ("criteria: [a]\nthreshold: 80\n", "; 80% is 0.8"),
        ("criteria: [a]\nthreshold: 80%\n", "; 80% is 0.8"),
    ],
)
def test_what_was_meant_is_said(text: str, cure: str) -> None:
    """A colon makes a mapping of a text, and 80 may be per cent; 5 may be of a scale."""
    assert problems(f"rubric: r\n{text}")[0].endswith(cure)
    assert problems("rubric: r\ncriteria: [a]\nthreshold: 5\n")[0].endswith("got 5")


def test_a_text_that_a_comment_cuts_is_refused_in_suites_of_ours_alone() -> None:
    """Files of other systems are read as they read them."""
    suite = "suite: s\ncases:\n  - input: &a Refund order #5\n    output: Done for #6\n    rubric: Is polite #a\n"
    with pytest.raises(LoadError, match="cut") as caught:
        loads_suite(suite)
    assert [problem.path for problem in caught.value.problems] == [
        "cases[0].input", "cases[0].output", "cases[0].rubric"
    ]  # fmt: skip
    other = "prompts: [p]\ntests:\n  - assert:\n      - type: llm-rubric\n        value: Mentions ticket #5\n"
    assert loads_suite(other).format == "promptfoo"


@each_row("text", ["Is kind # or not", "Is kind   #", "Uses C# well", "'Ticket #5'", '"a b" #5', "Kind #"])
def test_a_comment_behind_a_text_is_one(text: str) -> None:
    """A space behind the mark, or quotes around the text, leave no doubt."""
    assert len(loads(f"rubric: r  #1\nthreshold: 0.5 #half\ncriteria:\n  - {text}\n").criteria) == 1


def test_each_wrong_key_of_a_criterion_is_told_at_once() -> None:
    """The text under another key does not hide the other keys."""
    assert problems("rubric: r\ncriteria: [{name: warm, description: Is warm, weigth: 2}]") == [
        "support.yaml:2:13: criteria[0].name: unknown key; did you mean 'id'?",
        "support.yaml:2:25: criteria[0].description: unknown key; did you mean 'text'?",
        "support.yaml:2:47: criteria[0].weigth: unknown key; did you mean 'weight'?",
    ]


@pytest.mark.parametrize(
    ("criteria", "cure"),
    [
        ("{warm: Is warm, short: Is short}", "write criteria: [{id: warm, text: Is warm}, {id: short"),
        ("[{Is warm: 2}]", "write {text: Is warm, weight: 2}"),
    ],
)
def test_a_form_that_python_explains_is_explained_in_a_file_as_well(criteria: str, cure: str) -> None:
    """The line that is printed is one that a file may have."""
    said = problems(f"rubric: r\ncriteria: {criteria}")[0]
    assert cure in said
    if line := said.partition("write ")[2].partition(";")[0].partition(", or if")[0]:
        line = line.removeprefix("criteria: ")
        loads(f"rubric: r\ncriteria: {line if line.startswith('[') else f'[{line}]'}")


def test_a_wrong_key_at_the_place_of_another_problem_is_told() -> None:
    """A mapping begins where its first key does: both are wrong, and a suite names all of its keys."""
    with pytest.raises(LoadError) as caught:
        loads_suite("suite: s\ncases:\n- vars: {x: y}\n  output: z\nfoo: x\n", format="native")
    said = str(caught.value)
    assert "3:3: cases[0]: the key 'rubric' is missing" in said
    assert "3:3: cases[0].vars: unknown key; did you mean 'variables'?" in said
    assert "allowed: suite, cases, judge, metadata, rubric, rubrics, defaults, matrix" in said
