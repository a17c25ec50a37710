"""Suites as files: the native format, recognising the others, and what an alias may cost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import evolve
from hypothesis import given
from jsonschema import Draft202012Validator

from rubric import Candidate, Criterion, Judge, Jury, Panel, Rubric
from rubric.errors import DefinitionError, DumpError, LoadError
from rubric.formats.promptfoo.writer import _HOLDS
from rubric.formats.registry import format_names, recognise
from rubric.formats.rubrics import schema
from rubric.formats.suites import convert, dump_suite, dumps_suite, load_suite, loads_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from tests.examples import examples
from tests.rows import each_row
from tests.strategies import suites

VALIDATOR = Draft202012Validator(schema("suite"))

EXAMPLE = """\
suite: support replies
judge: {model: openai/gpt-5-mini, per_call: all}
rubrics:
  polite:
    criteria: [Is polite, {text: Leaks a card number, polarity: guard}]
rubric: Answers the question
cases:
  - {id: greeting, input: Hi, output: Hello!, rubric: {ref: polite}}
  - {input: Where is my order?, output: It left on Friday.}
  - {id: short, input: Hi, rubric: [Is brief], judge: {jury: {judge: offline, size: 5}}}
"""


def problems(text: str, format_: str | None = None) -> list[str]:
    """Return what is wrong with the suite that *text* says."""
    with pytest.raises(LoadError) as caught:
        loads_suite(text, format_, source="s.yaml")
    return [str(problem) for problem in caught.value.problems]


def test_a_native_suite_says_what_it_says() -> None:
    """Rubrics by name, one for cases that have none, bare lists of criteria, and judges of all kinds."""
    suite = loads_suite(EXAMPLE)
    polite = Rubric().expects("Is polite").forbids("Leaks a card number")
    assert suite == Suite(
        "support replies",
        [
            Case("greeting", polite, input="Hi", output="Hello!"),
            Case("case-2", "Answers the question", input="Where is my order?", output="It left on Friday."),
            Case("short", Rubric().expects("Is brief"), input="Hi", judge=Jury("offline", 5)),
        ],
        judge=Judge("openai/gpt-5-mini", per_call="all"),
    )
    assert VALIDATOR.is_valid(_plain(EXAMPLE))


def _plain(text: str) -> Any:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True).load(text)


def test_a_case_knows_its_place() -> None:
    """Reports point at the line where it was written."""
    places = [case.place for case in loads_suite(EXAMPLE, source="s.yaml")]
    assert [str(place) for place in places] == ["s.yaml:8:5", "s.yaml:9:5", "s.yaml:10:5"]


@pytest.mark.long
@examples(60)
@given(suites())
def test_any_suite_reads_back_as_itself(suite: Suite) -> None:
    """In YAML and in JSON, and an editor that knows the schema finds nothing wrong."""
    assert loads_suite(dumps_suite(suite)) == suite
    assert loads_suite(dumps_suite(suite, language="json")) == suite
    assert VALIDATOR.is_valid(convert(suite).data)


def test_a_reference_to_nothing_says_nothing_wrong_of_other_cases() -> None:
    """The suite's own rubric still counts for those that have none, and ids may still be left out."""
    text = "suite: x\nrubric: Says hi\ncases:\n  - {output: Hi}\n  - {output: Hi, rubric: {ref: polite}}\n"
    message = "cases[1].rubric.ref: no rubric 'polite' under `rubrics`, which is missing or empty"
    assert [problem.partition(": ")[2] for problem in problems(text)] == [message]


@pytest.mark.parametrize("place", ["rubric: polite\ncases: [{output: Hi}]", "cases: [{output: Hi, rubric: polite}]"])
def test_a_text_that_is_the_name_of_a_rubric_is_refused(place: str) -> None:
    """A forgotten `{ref: name}` would ask the judge the name; each of the two lines of the message reads."""
    text = f"suite: x\nrubrics: {{polite: {{criteria: [Says hi, Thanks]}}}}\n{place}\n"
    (problem,) = problems(text)
    message = "'polite' is a rubric under `rubrics`; write "
    assert "rubric: " + message in problem
    refer, ask = problem.partition(message)[2].split(", or, to ask by this text, ")
    read = [loads_suite(text.replace("rubric: polite", line)).cases[0].rubric for line in (refer, ask)]
    assert [[criterion.text for criterion in each.criteria] for each in read] == [["Says hi", "Thanks"], ["polite"]]


PLACES = ["rubric: {}\ncases: [{{output: Hi}}]", "cases: [{{output: Hi, rubric: {}}}]"]
NAMED = "rubrics: {{polite: {}}}\ncases: [{{output: Hi, rubric: {{ref: polite}}}}]"


@pytest.mark.parametrize("place", [*PLACES, NAMED])
def test_a_rubric_may_be_a_file_beside_the_suite(place: str, tmp_path: Path) -> None:
    """Of YAML or JSON, with the slots of a case; any other file is the text of a free-form rubric."""
    (tmp_path / "polite.yaml").write_text("rubric: polite\ncriteria: ['Says hi to {{ name }}', Thanks]\n", "utf-8")
    (tmp_path / "polite.md").write_text("Is polite.\n", "utf-8")
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite: x\n" + place.format("file://polite.yaml"), "utf-8")
    (case,) = load_suite(suite)
    assert (case.rubric.name, len(case.rubric.criteria)) == ("polite", 2)
    assert loads_suite(dumps_suite(load_suite(suite))).cases[0].rubric == case.rubric
    suite.write_text("suite: x\n" + place.format("file://polite.md"), "utf-8")
    assert load_suite(suite).cases[0].rubric == Rubric.of("Is polite.")


@pytest.mark.parametrize("place", [*PLACES, NAMED])
def test_a_path_in_the_place_of_a_rubric_is_never_asked_as_a_text(place: str, tmp_path: Path) -> None:
    """Each of the two lines of the message reads, and a path without a file, beyond the folder, or broken is told."""
    (tmp_path / "polite.yaml").write_text("criteria: [Says hi]\n", "utf-8")
    (tmp_path / "broken.yaml").write_text("criteria: [Says hi]\nwieght: 1\n", "utf-8")

    def found(rubric: str) -> str:
        (tmp_path / "suite.yaml").write_text("suite: x\n" + place.format(rubric), "utf-8")
        return load_suite(tmp_path / "suite.yaml").cases[0].rubric.digest

    with pytest.raises(LoadError, match=r"looks like the path of a file") as caught:
        found("polite.yaml")
    lines = caught.value.problems[0].message.partition("write rubric: ")[2].split(", or, to ask by this text, rubric: ")
    assert [found(line) for line in lines] == [Rubric(criteria=["Says hi"]).digest, Rubric.of("polite.yaml").digest]
    for path, why in {"none": "no such file", "../none": "outside", "broken": "wieght: unknown key"}.items():
        with pytest.raises(LoadError, match=why):
            found(f"file://{path}.yaml")
    with pytest.raises(LoadError, match=r"beside the suite's file, and there is none"):
        loads_suite("suite: x\n" + place.format("file://polite.yaml"))


def test_what_a_case_shows_may_be_in_files_beside_the_suite(tmp_path: Path) -> None:
    """The texts of a case, and the documents of a context; nothing outside, and nothing for a text without a folder."""
    for name in ("ask", "answer", "wanted", "one", "two"):
        (tmp_path / f"{name}.md").write_text(f"{name}!", "utf-8")
    case = "{input: file://ask.md, output: file://answer.md, reference: file://wanted.md, context: [file://one.md, b]}"
    text = f"suite: x\nrubric: Is polite\ncases: [{case}]\n"
    (tmp_path / "suite.yaml").write_text(text, "utf-8")
    (read,) = load_suite(tmp_path / "suite.yaml")
    assert (read.input, read.output, read.reference) == ("ask!", "answer!", "wanted!")
    assert read.context == Candidate("x", context=["one!", "b"]).context
    (tmp_path / "suite.yaml").write_text(text.replace("ask.md", "../ask.md"), "utf-8")
    with pytest.raises(LoadError, match=r"input: '\.\./ask\.md': this is outside"):
        load_suite(tmp_path / "suite.yaml")
    assert len([each for each in problems(text) if "beside the suite's file" in each]) == 4


@pytest.mark.parametrize("text", ["polite.yaml", "file://polite.yaml"])
def test_a_written_suite_asks_by_a_text_that_looks_like_a_path(text: str) -> None:
    """It was made in code, by `Rubric.of`, and stays a text."""
    suite = Suite("x", [Case("a", Rubric.of(text), output="Hi")])
    assert loads_suite(dumps_suite(suite)) == suite


def test_a_written_suite_names_no_rubric_as_a_text_of_its_own() -> None:
    """A rubric that is the text "polite" stays a text beside shared criteria that would be called so."""
    shared = Rubric("polite", [Criterion("Says hi"), Criterion("Thanks")])
    cases = [Case(id=str(n), output="Hi", rubric=each) for n, each in enumerate([shared, shared, Rubric.of("polite")])]
    suite = Suite("x", cases)
    assert loads_suite(dumps_suite(suite)) == suite


def test_all_that_is_wrong_is_told_with_its_place() -> None:
    """Keys, rubrics, references and judges, in the order of the file."""
    text = """\
suite: x
judgee: 1
rubrics: {p: {criterias: [a]}}
judge: {model: x, params: {api_base: http://stranger}}
cases:
  - {id: a, input: 5, rubric: {ref: polite}}
  - {id: b, rubric: {criteria: [{text: a, weigth: 1}]}, judge: {jury: {judge: x, size: 0}}}
  - {id: a, rubric: a b}
"""
    assert [problem.partition(": ")[2] for problem in problems(text)] == [
        (
            "judgee: unknown key; did you mean 'judge'? There, expected a model's name, or a mapping with model, jury, panel "
            "or cascade, got 1"
        ),
        "rubrics.p.criterias: unknown key; did you mean 'criteria'?",
        "judge.params: a file sets no parameters of the vendor's; give them in code: Judge(params=...)",
        'cases[0].input: expected text, got 5; quote it: "5"',
        "cases[0].rubric.ref: no rubric 'polite' under `rubrics`; allowed: p",
        "cases[1].rubric.criteria[0].weigth: unknown key; did you mean 'weight'?",
        "cases[1].judge.jury.size: expected a whole number of at least 1, got 0",
        "cases[2].id: the id 'a' belongs to cases[0] already; give one of them another",
    ]


def test_what_is_wrong_in_a_rubric_is_told_once_where_it_stands() -> None:
    """In a list of criteria, in the rubric of all cases, and in one that cases refer to."""
    text = """\
suite: x
rubric: [{text: a, wieght: 1}]
rubrics: {p: [{text: a, levels: 3}]}
cases:
  - {id: a, input: x}
  - {id: b, input: x}
  - {id: c, input: x, rubric: {ref: p}}
  - {id: d, input: x, rubric: [a, {text: b, wieght: 2, wait: 3}]}
"""
    said = "expected a mapping from scores to texts, a list of {score_range, text}, or 0..10, got 3; such as levels"
    assert [problem.split(": ")[:3] for problem in problems(text)] == [
        ["s.yaml:2:20", "rubric[0].wieght", "unknown key; did you mean 'weight'?"],
        ["s.yaml:3:33", "rubrics.p[0].levels", said],
        ["s.yaml:8:45", "cases[3].rubric[1].wieght", "unknown key; did you mean 'weight'?"],
        ["s.yaml:8:56", "cases[3].rubric[1].wait", "unknown key; allowed"],
    ]


@each_row(
    ("judge", "problem"),
    [
        ("5", "expected a model's name, or a mapping with model, jury, panel or cascade, got 5"),
        ("{modle: x}", "unknown key; did you mean 'model'?"),
        (
            "{jury: {judge: x}, panel: {judges: [x]}}",
            "expected a judge, a jury, a panel or a cascade, got jury and panel",
        ),
        ("{panel: {judges: []}}", "a panel has at least one judge"),
        ("{panel: {judges: [x, null]}}", "expected a model's name, got nothing"),
        ("{jury: {judge: x, consensus: 2}}", "expected a finite number above 0 to 1, got 2"),
        ("{model: x, api_key: k}", "unknown key"),
        ("{model: x, headers: {a: b}}", "unknown key"),
        ("{model: x, threads: 1}", "unknown key"),
    ],
)
def test_a_judge_in_a_file_is_checked(judge: str, problem: str) -> None:
    """It names a model and how it is asked, and never an address, a key or a header."""
    assert any(problem in told for told in problems(f"suite: x\njudge: {judge}\ncases: [{{rubric: a}}]"))


@each_row(
    ("document", "said"),
    [
        ("rubrics: {tone: [Is kind]}\ncases: [{rubric: tome}]", "rubric: {ref: \"tone\"}, or, to ask by this text, rubric: [\"tome\"]"),
        ("rubric: a b\ncases: [{output: a, threshold: 0.5}]", "write rubric: {threshold: 0.5, text: a b}"),
        ("rubric: a b\nmin_score: 0.5\ncases: [{output: a}]", "write rubric: {threshold: 0.5, text: a b}"),
        ("cases: [{output: a, threshold: 0.5, rubric: [b, c]}]", "write rubric: {threshold: 0.5, criteria: [b, c]}"),
        (
            "rubrics: {tone: [b]}\ncases: [{output: a, threshold: 0.5, rubric: {ref: tone}}]",
            "write rubrics: {tone: {threshold: 0.5, criteria: [b]}}",
        ),
        (
            "rubrics: {tone: {threshold: 0.9, criteria: [b]}}\ncases: [{output: a, threshold: 0.5, rubric: {ref: tone}}]",
            "write rubrics: {tone: {threshold: 0.5, criteria: [b]}}",
        ),
        (
            "rubric: [b c, {text: 'on ${day}', weight: 2}]\ncases: [{output: a, variables: {day: Friday}}]",
            'write rubric: [b c, {text: "on {{ day }}", weight: 2}], which all cases share',
        ),
        ("threshold: 0.5\ncases: [{output: a, rubric: b}]", "such as rubric: {threshold: 0.9, criteria: [Is polite]}"),
        ("cases: [{input: 'To ${{ env.city }}', rubric: a b}]", "no variable of the case is called city; write what it stands"),
        ("cases: [{input: 'To ${{ env.city }}', variables: {city: Rome}, rubric: a b}]", "write input: To Rome"),
        ("rubric: a b\nmodel: m\ncases: [{output: a}]", "such as rubric grade s.yaml --target m"),
        ("rubric: a b\nbudget: 2\ncases: [{output: a}]", "such as rubric grade s.yaml --max-cost 2"),
        ("rubric: a b\nepochs: 3\ncases: [{output: a}]", "--runs 3 for new answers of the target"),
        ("rubric: a b\nbaseline: m.json\ncases: [{output: a}]", "such as rubric grade s.yaml --baseline m.json"),
        (
            "rubric: a b\nmatrix: {order: [7, 8], day: [Friday]}\ncases: [{output: a}]",
            "write matrix: [{cell: {order: 7, day: Friday}, variables: {order: 7, day: Friday}}, {cell: {order: 8",
        ),
        ("rubric: a b\ncases: [{output: 'see {order}', variables: {order: 7}}]", "write output: see 7"),
        (
            "cases: [{output: a, rubric: ['on {{ day }}', {text: b c, weight: 2}], variables: {day: Friday}}]",
            "write rubric: [on Friday, {text: b c, weight: 2}]",
        ),
        ("rubric: 'as {{ reference }}'\ncases: [{output: a, reference: b}]", "variables: {reference: b}}"),
        (
            "rubric: [{check: {contains: '{{ expected }}'}}]\ncases: [{output: a, expected: b, vars: {c: d}}]",
            "variables: {c: d, expected: b}}",
        ),
        (
            "rubric: [{check: {contains: '{{ reference }}'}}]\ncases: [{output: a, reference: b}]",
            "variables: {reference: b}}",
        ),
        ("rubric: 'on {{ dya }}'\ncases: [{output: a, variables: {day: b}}]", 'write rubric: "on {{ day }}"'),
        (
            "rubric: a b\nmatrix: [{variables: {day: Monday}}]\ncases: [{input: '${{ matrix.day }}?'}]",
            'a slot is {{ name }}; write input: "{{ day }}?"',
        ),
        ("rubric: a b\njudge: {model: offline, votes: 3}\ncases: [{output: a}]", "write {jury: {judge: offline, size: 3}}"),
        ("rubric: a b\njudge: {provider: o, model: m}\ncases: [{output: a}]", "judge: provider and model are one name; write {model: o/m}"),
        ("rubric: a b\ntarget: m\ncases: [{output: a}]", "such as rubric grade s.yaml --target m"),
        ("rubrics: {tone: [Is kind]}\ncases: [{rubric: {name: tone}}]", "write rubric: {ref: \"tone\"}"),
        ("rubric: a b\npanel: [o, p]\ncases: [{output: a}]", "such as judge: {panel: {judges: ["),
        (
            "cases: [{output: a, rubric: {thresholds: {s: 1.0, t: 0.6}, criteria: [{text: b c, tags: [s]}]}}]",
            "a rubric within, such as criteria: [{id: s, required: true, rubric: {threshold: 1.0, criteria: [Is polite]}}]",
        ),
        (
            "judges: [offline, offline]\naggregate: median\nrubric: a b\ncases: [{output: a}]",
            "write judge: {panel: {judges: [offline, offline], aggregate: median}}",
        ),
        ("judge: {model: a/b, api_key: c}\nrubric: a b\ncases: [{output: a}]", "the environment has it, as OPENAI_API_KEY"),
        ("rubric: a b\nmatrix: {tone: warm}\ncases: [{output: a}]", "matrix: expected a list of mappings with fields of a case"),
        ("cases: {one: {output: a, rubric: b}}", "write cases: [{id: one, output: a, rubric: b}]"),
        ("defaults: [{rubric: a b}]\ncases: [{output: a}]", "write defaults: {rubric: a b}"),
        ("rubrics: [{name: tone, criteria: [a]}]\ncases: [{output: a, rubric: {ref: tone}}]", "write rubrics: {tone: {criteria: [a]}}"),
        ("cases: [{output: a, rubric: {a b: 2, c d: 1}}]", "write {criteria: [{text: a b, weight: 2}, {text: c d, weight: 1}]}"),
        ("rubrics: {a: x y, b: z}\ncases: [{output: a, rubric: [a, b]}]", "write rubric: {ref: a}, or, for all of them, rubric: [x y, z]"),
        ("rubrics: {a: x y}\ncases: [{output: a, rubric: {criteria: [{rubric: {ref: a}}]}}]", "is that of a case; there, write rubric: {ref: a}"),
        ("cases: [{output: a, rubric: safety}]", "'safety' is the name of a ready rubric; such as rubric init --preset safety"),
        ("cases: [{output: a, rubric: [file://b.yaml]}]", "to ask by this text, write {text: file://b.yaml}"),
        ("cases: [{output: a, rubric: {file: b.yaml}}]", "in a case, write rubric: file://b.yaml"),
        ("rubrics: [{name: c, criteria: [a]}]\ncases: [{output: a, rubric: {use: c}}]", "there, write rubric: {ref: c}"),
        ("cases: [{output: a, rubric: {criteria: [{text: b, on: first turn}]}}]", "'first turn'; did you mean 1?"),
        ("cases: [{output: a, rubric: {criteria: [{text: b, on: all turns}]}}]", "did you mean 'each turn'?"),
        (
            "cases: [{output: a, rubric: {criteria: [{text: b, on: assistant turns}]}}]",
            "allowed: conversation, each turn, worst turn, last turn",
        ),
        ("rubric: a b\nextends: b.yaml\ncases: [{output: a}]", "such as rubric: file://polite.yaml"),
        ("rubric: a b\nproviders: [openai:m]\ncases: [{output: a}]", "such as rubric grade s.yaml --target openai:m"),
        ("cases: [{output: a, rubric: b, matrix: {c: [d]}}]", "a matrix is that of the suite, beside its cases"),
        ("cases: [{rubric: b, trace: run.json}]", "a vendor's log is graded as it is"),
        ("cases: [{output: a, reference: [b, c], rubric: d}]", 'such as "On Friday, or on the 4th."'),
        (
            "rubric: a b\njudges: [offline, offline]\non_tie: fail\nvote: majority\ncases: [{output: a}]",
            "write judge: {panel: {judges: [offline, offline], tie_break: fail, aggregate: majority}}",
        ),
        (
            "rubric: a b\njudges: [offline, {model: offline, weight: 2}]\nquorum: 2\ncases: [{output: a}]",
            "write judge: {panel: {judges: [offline, offline], quorum: 2, weights: [1, 2]}}",
        ),
        (
            "judge: {model: offline, aggregate: median}\ncases: [{output: a, rubric: b}]",
            "a median is that of a panel",
        ),
        ("x-common: {a: 1}\nrubric: a b\ncases: [{output: a}]", "stands under metadata"),
        ("judges: {a: offline, b: offline}\nrubric: a b\ncases: [{output: a}]", "such as judge: [openai/gpt-5, offline]"),
        ("judge: {model: offline, persona: A lawyer}\ncases: [{output: a, rubric: b}]", "a judge has no persona; what all judges"),
        ("pass_if: 2 of 3\nrubric: a b\ncases: [{output: a}]", "no case passes by a share of its repeats"),
        ("fixtures: {day: Friday}\nrubric: a b\ncases: [{output: a}]", "write defaults: {variables: {day: Friday}}"),
        ("cases: [{output: a, rubric: b, pass_rate: 0.8}]", "--runs 3 --min-pass-rate 0.66, or of finished answers"),
        ("cases: [{output: a, rubric: b, votes: 3}]", "{jury: {judge: openai/gpt-5, size: 3}}"),
        ("cases: [{output: a, rubric: b, judges: [offline, o]}]", "such as judge: [openai/gpt-5, offline]"),
        ("cases: [{input: [{role: user, content: a}], foo: b}]", "such as messages: [{role: user, content: Hi}]"),
        ("cases: [{candidate: {output: a, foo: b}, rubric: c}]", "its fields stand in the case itself"),
        ("cases: [{output: a, rubric: b, xfail: flaky}]", "--min-pass-rate 0.9"),
        ("cases: [{output: a, rubric: b, expect: fail}]", "tests: [{reply: Go away, fails: true}]"),
        ("cases: [{output: a, rubric: [{text: b c, if: vars.x == 'd'}]}]", "a rubric of its own in that case"),
        ("cases: [{rubric: b, run: [{user: a}]}]", "cases[0].run[0]: the key 'role' is missing; write {role: user, content: a}"),
        (
            "matrix: {a: [1], include: [b]}\ncases: [{output: a, rubric: b}]",
            "such as matrix: [{cell: {tone: warm}, variables: {tone: warm}}]",
        ),
        (
            f"matrix: {{{', '.join(f'{axis}: {[*range(99)]}' for axis in 'abcdef')}}}\ncases: [{{output: a, rubric: b}}]",
            "such as matrix: [{cell: {tone: warm}, variables: {tone: warm}}]",
        ),
        (
            "cases: [{rubric: b, messages: [{role: user, content: a}, {role: assistant, tool_calls: [{id: c}]}]}]",
            "cases[0].messages[1].tool_calls: unknown key",
        ),
        (
            "judge: {panel: {judges: offline}, vote: mean}\ncases: [{output: a, rubric: b}]",
            "write {panel: {judges: [offline], aggregate: mean}}",
        ),
        ("pass_rate: 0.5\ncases: [{output: a, rubric: b}]", "such as rubric grade s.yaml --min-pass-rate 0.5"),
        ("judge: {model: offline, timeout: 2 minutes}\ncases: [{output: a, rubric: b}]", "write timeout: 120"),
        (
            "rubric: a b\nthresholds: {mean: 0.9, pass_rate: 0.5}\ncases: [{output: a}]",
            "such as rubric grade s.yaml --min-pass-rate 0.5; no option is for mean",
        ),
        (
            "rubric: a b\ncases: {file: a.csv, columns: {input: q}, limit: 2}",
            "such as rubric grade-many rubric.yaml a.csv --column input=q --limit 2, where",
        ),
        ("cases: [{output: a, rubric: b, allow_failure: true}]", "--min-pass-rate 0.9"),
        (
            "jury: {judges: [offline, o], vote: majority, tie: fail}\nrubric: a b\ncases: [{output: a}]",
            "write judge: {panel: {judges: [offline, o], aggregate: majority, tie_break: fail}}",
        ),
        (
            ("judges: {c: offline, s: {model: o, samples: 3}}\n"
            "rubric: [{id: d, text: a, judge: c}, {id: e, text: b, judge: s}]\ncases: [{output: a}]"),
            "write judge: {jury: {judge: o, size: 3}} and defaults: {judges: {d: offline}}, and leave judge out",
        ),
        (
            "judge: {default: offline, panel: {d: o}}\ncases: [{output: a, rubric: b}]",
            "write judge: offline and defaults: {judges: {d: o}}",
        ),
        ("cases: [{output: a, rubric: [{text: b c, when: {lang: de}}]}]", "a rubric of its own in that case"),
        ("rubric: a b\ncases: [{output: a, runs: {min_pass: 2}}]", "--runs 3 --min-pass-rate 0.66"),
        ("rubric: a b\ncases: [{output: a, outputs: [b, c], min_pass: 1}]", "--outputs replies.jsonl, of which a share"),
        ("rubric: a b\ncases: [{output: a, enabled: false}]", "write # before each of its lines"),
        ("rubric: a b\ncases: [{input: a, choices: [b, c], output: b}]", "options stand in the question"),
        ("rubric: match\ncases: [{output: a}]", "write \"Says the same as the reference, word for word\""),
        ("rubric: [Factuality]\ncases: [{output: a}]", "write \"Agrees with the reference"),
        ("cases: [{output: a, rubric: [{id: b, text: c d}], judges: {b: [offline, o]}}]", "such as judge: [openai/gpt-5, offline] and rubric: "),
        ("rubric: a b\ncases: answers.csv", "such as rubric grade-many rubric.yaml answers.csv"),
    ],
)  # fmt: skip
def test_what_belongs_elsewhere_in_a_suite_is_told_its_place(document: str, said: str) -> None:
    """A word beside named rubrics is no text to ask by: it is a name that is not there."""
    assert any(said in told for told in problems(f"suite: x\n{document}"))


@each_row(
    ("document", "rest"),
    [
        (
            ("judges: {c: offline, s: {model: offline, samples: 3}}\n"
            "rubric: [{id: d, text: a, judge: c}, {id: e, text: b, judge: s}]"),
            "rubric: [{id: d, text: a}, {id: e, text: b}]",
        ),
        ("judges: {c: {model: offline, temperature: 0}}\nrubric: [{id: d, text: a, judge: c}]", "rubric: [{id: d, text: a}]"),
        ("judge: {default: offline, panel: {d: offline}}\nrubric: [{id: d, text: a}]", "rubric: [{id: d, text: a}]"),
        ("jury: {judges: [offline, offline], vote: mean}\nrubric: a b", "rubric: a b"),
        ("variables: {day: Friday}\nrubric: ['on {{ day }}']", "rubric: ['on {{ day }}']"),
    ],
)  # fmt: skip
def test_keys_of_a_suite_that_are_printed_grade_in_the_place_of_what_was_typed(document: str, rest: str) -> None:
    """The line is one key or several, and the suite runs with it."""
    (said,) = [told for told in problems(f"suite: x\n{document}\ncases: [{{output: a}}]") if "write" in told]
    keys = re.search(r"write (.*?)(, and leave judge out of the criteria)?$", said)
    assert keys is not None
    lines = re.sub(r" and (?=defaults: )", "\n", keys[1])
    suite = loads_suite(f"suite: x\n{lines}\n{rest}\ncases: [{{output: a}}]")
    named = "judge" in lines.partition("defaults")[0]
    assert not suite.run(*([] if named else ["offline"])).counts["ungraded"]


@each_row(
    ("case", "meant"),
    [
        ("{inputs: {question: Hi}, outputs: Hello}", "{input: Hi, output: Hello}"),
        ("{input: Hi, output: {score: 1, ok: true}}", '{input: Hi, output: "{\\"score\\": 1, \\"ok\\": true}"}'),
        ("{output: true}", '{output: "true"}'),
        ("{input: [{role: user, content: Hi}], output: Hello}", "{messages: [{role: user, content: Hi}], output: Hello}"),
        ("{conversation: [{user: Hi}, {assistant: Hello}]}", "{input: Hi, output: Hello}"),
        ("{chat: [{user: a}, {ai: b}, {user: c}, {ai: d}]}", "content: c}], output: d}"),
        ("{turns: [{role: user, content: Hi}, {user: Bye}]}", "{turns: [Hi, Bye]}"),
        ("{output: a, tool_calls: [search]}", "{output: a, tool_calls: [{name: search}]}"),
        ("{output: a, tools_called: [{name: s, input_parameters: {q: x}, output: z}]}", "[{name: s, arguments: {q: x}, result: z}]}"),
        (
            ("{messages: [{role: user, content: a}, {role: assistant, tool_calls: [{name: f, arguments: {x: 1}}]}],"
            " rubric: [{check: {tool_calls: [f, g], order: strict}}]}"),
            ("{run: [{role: user, content: a}, {name: f, arguments: {x: 1}}], "
            "rubric: [{check: {trajectory: {tools: [f, g], order: exact}}}]}"),
        ),
        (
            "{run: [{role: user, content: a}, {role: assistant, tool_calls: [{name: f, arguments: {x: 1}}]}]}",
            "{run: [{role: user, content: a}, {name: f, arguments: {x: 1}}]}",
        ),
        ("{candidate: {input: a, run: [{call: f}]}, tags: b}", "{tags: [b], input: a, run: [{name: f}]}"),
        ("{turns: [{user: a, expected: b}, {user: c}]}", "{turns: [{input: a, reference: b}, c]}"),
        ("{steps: [{user: a}, {bot: b}]}", "{run: [{role: user, content: a}, {role: assistant, content: b}]}"),
        ("{output: a, context: {doc: b}}", '{output: a, context: ["doc: b"]}'),
        ("{output: a, tags: 'smoke, slow'}", "{output: a, tags: [smoke, slow]}"),
        ("{output: a, description: greets}", "{id: greets, output: a}"),
        ("{id: a, output: b, description: greets}", "{id: a, output: b, metadata: {description: greets}}"),
        ("{output: a, metrics: [Is b]}", "{output: a, rubric: [Is b]}"),
        ("{turns: [{user: Hi, assistant: Hello}, {user: Bye, assistant: Good bye}]}", "{role: user, content: Bye}], output: Good bye}"),
        ("{inputs: {q: a}, epochs: 3, scorer: {ref: tone}}", "{input: a, runs: 3, rubric: {ref: tone}}"),
        (
            "{output: a, assert: [{type: icontains, value: b}, {type: llm-rubric, value: Is kind}]}",
            "{output: a, rubric: [a b, {check: {contains: {text: b, ignore_case: true}}}, Is kind]}",
        ),
        (
            "{output: a, expect: {tool_called: b, response_contains: c, max_tool_calls: 3}}",
            '{output: a, rubric: [a b, {check: {calls: b}}, {check: {contains: c}}, {check: {run: {at_most: 3, of: "*"}}}]}',
        ),
        ("{output: a, scoring: {criteria: [{text: c, points: 2}]}}", "{output: a, rubric: {criteria: [{text: c, weight: 2}]}}"),
        ("{output: a, extra_criteria: [c d]}", "{output: a, rubric: [a b, c d]}"),
        ("{output: a, threshold: 0.9, expects: c d}", "{output: a, rubric: {threshold: 0.9, criteria: [a b, c d]}}"),
    ],
)  # fmt: skip
def test_all_mistakes_of_a_case_are_answered_with_the_case_that_was_meant(case: str, meant: str) -> None:
    """It has all that was typed, and is read."""
    said = "\n".join(problems(f"suite: x\nrubrics: {{tone: [Is kind]}}\nrubric: a b\ncases: [{case}]"))
    line = re.search(r"rite (\{.*\})$", said, re.MULTILINE)
    assert line, said
    assert meant in line[1]
    assert loads_suite(f"suite: x\nrubrics: {{tone: [Is kind]}}\nrubric: a b\ncases: [{line[1]}]", "native").cases


@each_row(
    ("event", "meant"),
    [
        ("{tool: f, args: {x: 1}, result: b}", "{name: f, arguments: {x: 1}, result: b}"),
        ("{call: f, arguments: {x: 1}}", "{name: f, arguments: {x: 1}}"),
        ("{action: f, action_input: {x: 1}, observation: b}", "{name: f, arguments: {x: 1}, result: b}"),
        ("{type: tool_call, name: f, arguments: {x: 1}}", "{name: f, arguments: {x: 1}}"),
        ("{type: tool_use, id: c, name: f, input: {x: 1}}", "{name: f, arguments: {x: 1}, metadata: {id: c}}"),
        ("{tool_call: {name: f, args: {x: 1}}, result: b}", "{name: f, arguments: {x: 1}, result: b}"),
        ("{type: function, function: {name: f, arguments: '{\"x\": 1}'}}", "{name: f, arguments: {x: 1}}"),
        ("{tool_name: f, tool_input: {x: 1}, tool_output: b}", "{name: f, arguments: {x: 1}, result: b}"),
        ("{role: assistant, tool: f, args: {x: 1}}", "{name: f, arguments: {x: 1}}"),
        ("{f: {x: 1}}", "{name: f, arguments: {x: 1}}"),
        ("{user: a}", "{role: user, content: a}"),
        ("{message: user, text: a}", "{role: user, content: a}"),
        ("{from: human, value: a}", "{role: user, content: a}"),
        ("{type: ai, text: a, time: 2026-01-01}", "{role: assistant, content: a, time: "),
        ("{role: human, content: a}", "{role: user, content: a}"),
    ],
)
def test_an_event_of_a_run_is_answered_with_the_event_that_was_meant(event: str, meant: str) -> None:
    """Calls and messages of other systems; the line has all that was typed, and is read."""
    said = "\n".join(problems(f"suite: x\nrubric: a b\ncases: [{{output: c, run: [{event}]}}]"))
    line = re.search(r"write (\{.*\})$", said, re.MULTILINE)
    assert line, said
    assert line[1].startswith(meant.removesuffix("}")), line[1]
    assert loads_suite(f"suite: x\nrubric: a b\ncases: [{{run: [{line[1]}]}}]", "native").cases


@each_row(
    ("document", "said"),
    [
        ("criteria: [a b]\ncases: [{output: a}, {output: b}]", ["criteria: unknown key; did you mean 'rubric'?"]),
        ("rubric: [a b]\ntests: [{output: a}]", ["tests: unknown key; did you mean 'cases'?"]),
        (
            "criteria: [{text: a b, wieght: 2}]\ntests: [{output: a, vars: {x: y}}]",
            [
                "criteria: unknown key; did you mean 'rubric'?",
                "criteria[0].wieght: unknown key; did you mean 'weight'?",
                "tests: unknown key; did you mean 'cases'?",
                "tests[0].vars: unknown key; did you mean 'variables'?",
            ],
        ),
        (
            "vars: {day: Friday}\nrubric: ['on {{ day }}']\ncases: [{output: a}]",
            ["vars: unknown key; variables belong to cases; for all of them, write defaults: {variables: {day: Friday}}"],
        ),
        ("cases: [{output: a, criteria: [a b], foo: 1}]", ["cases[0].criteria: unknown key; did you mean 'rubric'?", "cases[0].foo"]),
        ("defaults: {criteria: [a b]}\ncases: [{output: a}]", ["defaults.criteria: unknown key; did you mean 'rubric'?"]),
    ],
)  # fmt: skip
def test_what_the_meant_key_cures_is_not_told_and_what_it_brings_is(document: str, said: list[str]) -> None:
    """A suite is mended in one round: no case lacks the rubric that stands under another word."""
    told = [each.partition(": ")[2] for each in problems(f"suite: x\n{document}")]
    assert [each[: len(line)] for each, line in zip(told, said, strict=True)] == said


@each_row(
    ("rubric", "case"),
    [
        (
            '[{check: {equals: "{{ reference }}"}}]',
            "{inputs: {question: Capital?}, outputs: {answer: Oslo}, reference_outputs: {answer: Oslo}}",
        ),
        ('[{check: {equals: "{{ expected }}"}}]', "{question: Capital?, actual_output: Oslo, expected_output: Oslo}"),
        ('[{check: {equals: "{{ target }}"}}]', "{input: Capital?, output: Oslo, target: Oslo, metadata: {level: easy}}"),
        ('[{check: {equals: "{{ expected }}"}}]', "{input: Capital?, output: Oslo, reference: Oslo, variables: {a: b}}"),
        ('[{check: {equals: "{{ question }}"}}]', "{question: Oslo, output: Oslo}"),
        ('["{{ ground_truth }}"]', "{user_input: a, response: Oslo, ground_truth: Oslo, retrieved_contexts: [b]}"),
    ],
)  # fmt: skip
def test_a_slot_for_a_field_of_the_case_is_filled_by_the_case_that_is_printed(rubric: str, case: str) -> None:
    """A row of another system is mended in one round, and it is graded as it was meant: here it passes."""
    (said,) = problems(f"suite: x\nrubric: {rubric}\ncases: [{case}]", "native")
    line = re.search(r"write (\{.*\})$", said)
    assert line, said
    suite = loads_suite(f"suite: x\nrubric: {rubric}\ncases: [{line[1]}]", "native")
    assert suite.run("offline").counts["passed"] == 1


@each_row("name", ["reference", "expected"])
def test_a_slot_in_the_rubric_of_a_case_itself_is_answered_with_the_text_of_its_field(name: str) -> None:
    """A case's own texts have no slots, and a check of them would be held to the braces."""
    (said,) = problems(
        f"suite: x\ncases: [{{output: Oslo, reference: Oslo, rubric: [{{check: {{equals: '{{{{ {name} }}}}'}}}}]}}]"
    )
    assert "write rubric: [{check: {equals: Oslo}}]; " in said


def test_criteria_of_a_case_stand_beside_those_of_all_cases_or_in_their_place() -> None:
    """Both lines are told, and the first keeps what is shared."""
    text = "suite: x\nrubric: [Is polite]\ncases:\n  - {output: Hi, criteria: [Is kind]}"
    (said,) = problems(text)
    both, alone = "{output: Hi, rubric: [Is polite, Is kind]}", "rubric: [Is kind]"
    assert said.endswith(f"write {both}, or, in place of what all cases must hold, {alone}")
    (case,) = loads_suite(f"suite: x\ncases: [{both}]").cases
    assert [criterion.text for criterion in case.rubric.criteria] == ["Is polite", "Is kind"]


@each_row(
    ("judge", "written"),
    [
        ("{panel: [offline, o], aggregate: median}", "{panel: {judges: [offline, o], aggregate: median}}"),
        ("{panel: offline}", "{panel: {judges: [offline]}}"),
        ("{judges: [offline, o]}", "{panel: {judges: [offline, o]}}"),
        ("{jury: [offline, o], vote: mean}", "{panel: {judges: [offline, o], aggregate: mean}}"),
        (
            "{panel: [{model: offline, weight: 2}, {model: o, weight: 1}], aggregate: mean}",
            "{panel: {judges: [offline, o], aggregate: mean, weights: [2, 1]}}",
        ),
        ("{models: [offline, o], vote: mean}", "{panel: {judges: [offline, o], aggregate: mean}}"),
        ("{jury: {model: o, seed: 1}, size: 3}", "{jury: {judge: {model: o, seed: 1}, size: 3}}"),
        ("{jury: {judge: offline}, size: 3}", "{jury: {judge: offline, size: 3}}"),
        ("{cascade: [offline, o]}", "{cascade: {first: offline, then: o, when: borderline}}"),
    ],
)
def test_what_is_beside_a_jury_a_panel_or_a_cascade_is_told_its_place(judge: str, written: str) -> None:
    """The mapping that is printed has all that was written, and is read."""
    head, cases = "suite: x\njudge: ", "\ncases: [{rubric: a}]"
    assert any(told.endswith(f"; write {written}") for told in problems(head + judge + cases))
    assert loads_suite(head + written + cases).judge is not None


@each_row(
    "document",
    [
        {"cases": 5},
        {"cases": [{"rubric": "a", "input": 5}]},
        {"cases": [{"rubric": {"criteria": [{"text": "a", "weight": -1}]}}]},
        {"cases": [{"rubric": "a", "judge": {"model": 5}}]},
        {"cases": [{"rubric": "a", "judge": {"jury": {"size": 3}}}]},
        {"cases": [{"rubric": "a"}], "jugde": "x"},
    ],
)
def test_what_the_loader_refuses_an_editor_marks(document: Any) -> None:
    """The schema of suites is about as strict as the loader."""
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(LoadError):
        loads_suite(str(document).replace("'", '"'), "native")


def test_a_list_of_judges_is_a_panel() -> None:
    """As in code."""
    suite = loads_suite("suite: x\njudge: [a, {model: b, temperature: 0}]\ncases: []")
    assert suite.judge == Panel(["a", Judge("b", temperature=0)])


@pytest.mark.parametrize("judge", [Judge(lambda messages: ""), Judge("x", params={"api_base": "http://localhost"})])
def test_a_judge_with_code_or_an_address_is_not_written(judge: Judge) -> None:
    """A function cannot be, and parameters could send a key to a stranger."""
    with pytest.raises(DumpError):
        dumps_suite(Suite("x", judge=judge))


def test_a_rubric_by_itself_is_a_suite_of_one_case(tmp_path: Path) -> None:
    """It is called like the file, and its candidate is to come from a target."""
    file = tmp_path / "polite.yaml"
    file.write_text("criteria: [Is polite]\n")
    (case,) = load_suite(file)
    assert (case.id, case.output, case.rubric) == ("polite", None, Rubric().expects("Is polite"))


def test_a_suite_is_written_as_a_whole(tmp_path: Path) -> None:
    """And reads back, in either language; another suffix is refused."""
    suite = loads_suite(EXAMPLE)
    for name in ("suite.yaml", "suite.json"):
        dump_suite(suite, tmp_path / name)
        assert load_suite(tmp_path / name) == suite
    with pytest.raises(DumpError, match="suffix"):
        dump_suite(suite, tmp_path / "suite.txt")
    with pytest.raises(LoadError, match="suffix"):
        load_suite(tmp_path / "suite.txt") if (tmp_path / "suite.txt").write_text("x") else None


def test_a_file_outside_of_its_base_is_refused(tmp_path: Path) -> None:
    """Links are followed first."""
    (tmp_path / "in").mkdir()
    (tmp_path / "suite.yaml").write_text(EXAMPLE)
    (tmp_path / "in" / "link.yaml").symlink_to(tmp_path / "suite.yaml")
    with pytest.raises(LoadError, match="outside"):
        load_suite(tmp_path / "in" / "link.yaml", base=tmp_path / "in")


@each_row(
    ("text", "format_"),
    [
        ("suite: x\ncases: []", "native"),
        ("criteria: [a]", "native"),
        ("evals: [{name: a, rubric: x}]", "mcptest"),
        ("rubrics: {a: {criteria: []}}", "mcptest"),
        ("evalcases: [{id: a, rubrics: [x]}]", "agentv-1"),
        ("rubrics: [x]", "agentv-1"),
        ("tests: [{id: a, assertions: [{type: rubrics, criteria: [x]}]}]", "agentv-1.5"),
        ("tests: [{id: a, execution: {evaluators: [{type: llm-grader}]}}]", "agentv-1.5"),
        ("tests: [{id: a, input: q, assert: [x]}]", "agentv-2"),
        ("prompts: [a]\ntests: [{vars: {q: x}, assert: [is polite]}]", "agentv-2"),
        ("default_test: {options: {}}\ntests: []", "agentv-2"),
        ("prompts: [a]\ntests: [{vars: {q: x}, assert: [{type: llm-rubric, value: x}]}]", "promptfoo"),
        ("defaultTest: {assert: []}\ntests: []", "promptfoo"),
        ("assert: [{type: llm-rubric, value: x}]", "promptfoo"),
        ("[{requirement: a, weight: 1}]", "autorubric"),
        ("sections: [{criteria: [{requirement: a, weight: 1}]}]", "autorubric"),
        ("rubrics: [{criterion: a, points: 5, tags: []}]", "healthbench"),
        ("[{prompt: [], rubrics: [{criterion: a, points: -5}]}]", "healthbench"),
        ("rubric: {sections: []}", "autorubric"),
        ("paper: a\ntree: {sub_tasks: []}", "paperbench"),
        ("id: a\nrequirements: b\nweight: 1\nsub_tasks: []", "paperbench"),
        ("hello: world", ""),
        ("[1, 2]", ""),
    ],
)
def test_a_format_is_recognised_by_its_keys(text: str, format_: str) -> None:
    """And where none is, it says so."""
    assert recognise(_plain(text)).format == format_


def test_a_file_of_no_known_format_says_why() -> None:
    """And what could be named."""
    (problem,) = problems("hello: world\n")
    assert problem == (
        f"s.yaml:1:1: this is not a suite of a known format: its keys are hello; name one with format=: {', '.join(format_names())}"
    )


def test_an_unknown_format_is_refused() -> None:
    """With what was meant."""
    with pytest.raises(DefinitionError, match="did you mean 'promptfoo'"):
        loads_suite("a: 1", "promptfo")
    with pytest.raises(DefinitionError, match="cannot write 'agentv-3'"):
        convert(Suite(), "agentv-3")


def test_a_suite_of_lines_has_a_case_a_line(tmp_path: Path) -> None:
    """A JSONL file is the tests of a suite, and each knows its line."""
    file = tmp_path / "tests.jsonl"
    file.write_text('{"id": "a", "input": "q", "assert": ["x"]}\n\n{"id": "b", "input": "q", "assert": ["y"]}\n')
    suite = load_suite(file)
    assert [(case.id, case.place.line if case.place else 0) for case in suite] == [("a", 1), ("b", 3)]


# -- anchors, aliases, merge keys --------------------------------------------------------------------------

SHARED = """\
suite: x
metadata: {house: &house {criteria: [Is polite]}, base: &base {input: Hi, rubric: *house}}
cases:
  - {id: a, rubric: *house}
  - {<<: *base, id: b, input: Ho}
  - {id: c, <<: [*base, {context: C}]}
"""


def test_a_suite_may_repeat_itself() -> None:
    """Anchors, aliases and merge keys are read; a key of its own wins over a merged one."""
    polite = Rubric().expects("Is polite")
    assert [evolve(case, place=None) for case in loads_suite(SHARED)] == [
        Case("a", polite),
        Case("b", polite, input="Ho"),
        Case("c", polite, input="Hi", context="C"),
    ]


_BOMB = "suite: x\na0: &a0 [1, 1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
_MERGES = "a0: &a0 {x: 1}\n" + "".join(
    f"a{n}: &a{n} {{<<: *a{n - 1}, p{n}: *a{n - 1}, q{n}: *a{n - 1}}}\n" for n in range(1, 60)
)
_DEEP = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [[[[*a{n - 1}]]]]\n" for n in range(1, 90))


@each_row(
    ("text", "problem"),
    [
        (_BOMB, "has at most"),
        (_MERGES, "has at most"),
        (_DEEP, "nest more than"),
        ("suite: &a {b: *a}", "is within what it repeats"),
        ("suite: *b", "no anchor &b is above"),
        ("suite: x\ncases: [{<<: 5}]", "merge keys"),
        ("suite: !!python/object:os.system x", "tags"),
    ],
    ids=["bomb", "merges", "deep", "itself", "unknown", "no mapping", "tag"],
)
def test_what_repeats_counts_each_time(text: str, problem: str) -> None:
    """Alias bombs, merge bombs and circles end at the limits."""
    assert any(problem in told for told in problems(text, "native"))


def test_converting_to_the_native_format_names_what_the_file_did_not_say_to_us() -> None:
    """What its loader warned of is lost in what is written too."""
    suite = Suite("x", [Case("a", Rubric(criteria=[Criterion("y")]))])
    assert convert(suite).dropped == ()
    assert str(convert(suite)) == dumps_suite(suite)


def test_converting_to_the_native_format_names_the_models_that_no_longer_answer() -> None:
    """A native file asks no provider, so each case would be deferred without a target."""
    text = "prompts: ['{{q}}']\nproviders: [openai:gpt-5-mini]\ntests: [{vars: {q: hi}, assert: [{type: contains, value: a}]}]"
    assert convert(loads_suite(text, "promptfoo")).dropped == (
        "its providers are dropped; name what answers: --target MODEL",
    )


def test_a_writers_table_names_fields_that_there_are() -> None:
    """What promptfoo holds is told of fields of the class; a renamed one shows here."""
    for cls, held in _HOLDS.items():
        assert held <= {field.name for field in attrs.fields(cls)}


def test_braces_of_a_text_itself_stand_in_a_file(tmp_path: Path) -> None:
    """A slot that nothing fills in is refused, but not in what a file holds, as the message says."""
    suite = tmp_path / "suite.yaml"
    suite.write_text("suite: s\ncases: [{output: 'f{n}', variables: {n: 7}, rubric: Shows n}]\n")
    with pytest.raises(LoadError, match=r"write output: f7; for braces in the text itself, .*: output: file://text.md"):
        load_suite(suite)
    (tmp_path / "text.md").write_text("f{n}")
    (tmp_path / "rubric.yaml").write_text("criteria: ['Shows {n}']\n")
    case = "{output: file://text.md, variables: {n: 7}, rubric: file://rubric.yaml}"
    suite.write_text(f"suite: s\ncases: [{case}]\n")
    assert (load_suite(suite)[0].output, load_suite(suite)[0].rubric[0].text) == ("f{n}", "Shows {n}")
    suite.write_text("suite: s\nrubric: file://rubric.yaml\ncases: [{output: a, variables: {n: 7}}]\n")
    assert load_suite(suite)[0].rubric[0].text == "Shows {n}"


def test_a_run_that_ends_with_an_answer_has_an_output() -> None:
    """As at any other door, the answer is graded; one that ends with a call has none, and a target is asked."""
    run = "[{role: user, content: Hi}, {name: search, arguments: {q: x}, result: y}, {role: assistant, content: Hello}]"
    case = loads_suite(f"suite: s\ncases: [{{run: {run}, rubric: a b}}]\n", "native")[0]
    assert (case.output, case.candidate == Candidate("Hello", run=case.run, key="case-1")) == ("Hello", True)
    bare = run.replace(", {role: assistant, content: Hello}", "")
    assert loads_suite(f"suite: s\ncases: [{{run: {bare}, rubric: a b}}]\n", "native")[0].output is None
