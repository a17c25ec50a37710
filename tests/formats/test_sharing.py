"""What the cases of a suite share is written once, and read as if each case had it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Case, Choices, Criterion, LoadError, Rubric
from rubric.formats.native.sharing import share, spread
from rubric.formats.suites import convert, dumps_suite, load_suite, loads_suite
from rubric.suites.slots import fill_slots
from rubric.suites.suite import Suite
from tests.places import ROOT
from tests.places import SHARED as BESIDE
from tests.rows import each_row

CORPUS = BESIDE / "corpus"

words = st.sampled_from(["French", "warm", "a", "", "{{ b }}", "x\n", "Fr"])
rubrics = st.sampled_from([
    "Is right",
    {"criteria": ["Is right", "Is {{ a }}"]},
    {"threshold": 0.5, "criteria": [{"text": "Is warm French", "weight": 2}]},
    {"criteria": [{"text": "Which?", "choices": {"French": 1, "warm": 0, "{{ b }}": 0}}]},
])  # fmt: skip


@st.composite
def suites(draw: st.DrawFn) -> dict[str, Any]:
    """Return plain data of a suite whose cases come from a few prompts, providers and rubrics, or are odd ones out."""
    rows = draw(st.lists(st.sampled_from(["one", "two", "three"]), max_size=3, unique=True))
    cases: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 3))):
        variables = draw(st.dictionaries(st.sampled_from(["a", "b", "c d"]), words, max_size=2))
        rubric = draw(rubrics)
        for row in rows or [""]:
            end = draw(st.sampled_from([f" / {row}", f" / {row}", f" [{row}]"])) if row else ""
            said = draw(st.sampled_from([f"{row}: {variables.get('a', '')}", "Hello {{ a }}", variables.get("b", "")]))
            case = {"id": f"case {number}{end}", "input": said, "variables": variables, "rubric": rubric}
            cases.append(case | ({"cell": {"prompt": row}} if row and draw(st.integers(0, 9)) else {}))
    return {"suite": "any", "cases": cases}


@given(suites())
def test_what_is_shared_is_read_as_it_was(data: dict[str, Any]) -> None:
    """Whatever the cases have in common, and whatever only looks so."""
    read, _ = spread(share(data))
    default, named = read.pop("rubric", None), read.pop("rubrics", {})
    for case in read["cases"]:
        rubric = case.setdefault("rubric", default)
        if isinstance(rubric, dict) and [*rubric] == ["ref"]:
            case["rubric"] = fill_slots(named[rubric["ref"]], case.get("variables"))
    assert read == data


SHARED = """
suite: greetings
defaults: {rubric: "Is a {{ tone }} greeting", tags: [smoke]}
matrix:
  - {cell: {prompt: short}, input: "Greet me in {{language}}."}
  - {id: "{{id}} [long]", cell: {prompt: long}, input: "Write in {{ language }} {other}.", tags: [slow]}
cases:
  - {id: french, variables: {language: French, tone: warm}}
  - {id: german, variables: {language: "German\\n", tone: formal}, rubric: Is formal}
  - {id: alone, cell: {}, input: Hi, variables: {tone: dry}}
"""


def test_a_case_is_crossed_with_each_row() -> None:
    """Its own fields count before those of the row, and those before the defaults."""
    found = [(case.id, case.input, case.rubric.text, case.tags) for case in loads_suite(SHARED)]
    assert found == [
        ("french / short", "Greet me in French.", "Is a warm greeting", ("smoke",)),
        ("french [long]", "Write in French {other}.", "Is a warm greeting", ("slow",)),
        ("german / short", "Greet me in German.", "Is formal", ("smoke",)),
        ("german [long]", "Write in German {other}.", "Is formal", ("slow",)),
        ("alone", "Hi", "Is a dry greeting", ("smoke",)),
    ]


def test_the_variables_of_a_case_are_added_to_those_that_it_shares() -> None:
    """Its own count first, then those of its row: with one of its own, a case lost all others in silence."""
    shared = "defaults: {variables: {a: 1, b: 1, c: 1}, rubric: 'Has {{a}} {{b}} {{c}}'}"
    rows = "matrix: [{cell: {x: y}, variables: {b: 2, c: 2}}]"
    suite = loads_suite(
        f"suite: s\n{shared}\n{rows}\ncases: [{{output: o, variables: {{c: 3}}}}, {{output: o, cell: {{}}}}]"
    )
    assert [case.rubric.text for case in suite] == ["Has 1 2 3", "Has 1 1 1"]
    assert dict(suite[0].variables) == {"a": 1, "b": 2, "c": 3}
    assert loads_suite(dumps_suite(suite)).cases[0].variables == suite[0].variables


def test_a_slot_shows_a_variable_of_any_name() -> None:
    """Hyphens, dots and blanks within the braces do not matter."""
    text = "suite: s\ndefaults: {rubric: 'Is {{my-tone}}, {{ a.b }} and {{  c  }}'}\ncases:\n"
    (case,) = loads_suite(text + "  - {output: x, variables: {my-tone: warm, a.b: dry, c: kind}}")
    assert case.rubric.text == "Is warm, dry and kind"


def test_each_case_has_the_place_of_what_it_was_written_as() -> None:
    """Of a row too, so that a report leads to a line that there is."""
    assert [case.place and case.place.line for case in loads_suite(SHARED)] == [8, 8, 9, 9, 10]


def test_the_matrix_of_a_ci_system_is_answered_with_its_rows() -> None:
    """A judge of a row judges it; other values are variables."""
    jobs = "strategy: {matrix: {judge: [offline, o/m], tone: [warm]}}"
    with pytest.raises(LoadError) as caught:
        loads_suite(f"suite: s\n{jobs}\ncases: [{{output: a, rubric: b}}]")
    asked = "{cell: {prompts: Hi}, input: Hi}"  # what an axis of prompts is
    with pytest.raises(LoadError, match=re.escape(asked)):
        loads_suite("suite: s\nmatrix: {prompts: [Hi, Bye]}\ncases: [{output: a, rubric: b}]")
    cells = ", ".join(
        f"{{cell: {each}, variables: {each}}}" for each in ("{a: 1, b: 3}", "{a: 1, b: 4}", "{a: 2, b: 4}")
    )
    of_case = "id: x, parametrize: [{a: 1, b: 3}, {a: 1, b: 4}, {a: 2, b: 4}], "
    for axes, case in (("strategy: {matrix: {a: [1, 2], b: [3, 4], exclude: [{a: 2, b: 3}]}}\n", ""), ("", of_case)):
        with pytest.raises(LoadError, match=re.escape(f"write matrix: [{cells}]")):
            loads_suite(f"suite: s\n{axes}cases: [{{{case}output: a, rubric: b}}]")
    rows = "write matrix: [{cell: {a: 1}, variables: {a: 1}}, {cell: {a: 2}, variables: {a: 2}}]"
    for own, case, more in (
        ("parametrize: {a: [1, 2]}\n", "", ""),
        (
            "strategy: {fail-fast: true, matrix: {a: [1, 2]}}\n",
            "",
            "; fail-fast: it is said when it is run, such as rubric",
        ),
        ("", "variables: {a: [1, 2]}, input: 'Is {{ a }}', ", ", and leave them out of the case"),
        ("matrix: {models: [openai/gpt-5], a: [1, 2]}\n", "", "such as rubric grade suite.yaml --target openai/gpt-5"),
    ):
        with pytest.raises(LoadError, match=re.escape(more if "models" in own else f"{rows}{more}")):
            loads_suite(f"suite: s\n{own}cases: [{{{case}output: a, rubric: b}}]")
    row = "{cell: {judge: offline, tone: warm}, judge: offline, variables: {tone: warm}}"
    assert f"jobs are the rows of a matrix; write matrix: [{row}, " in str(caught.value)


@each_row(
    ("old", "new", "said"),
    [
        ("tags: [smoke]", "tgas: [smoke]", "3:48: defaults.tgas: unknown key; did you mean 'tags'?"),
        ("tags: [smoke]", "id: one", "defaults.id: unknown key"),
        ("tags: [slow]", "inptu: x", "matrix[1].inptu: unknown key; did you mean 'input'?"),
        ("rubric: Is formal", "rubirc: Is formal", "9:67: cases[1].rubirc: unknown key"),
        ("- {cell: {prompt: short}, ", "- x\n  - {cell: {prompt: short}, ", "matrix[0]: expected a mapping"),
        ("variables: {language: French, tone: warm}", "cell: {a: b}, variables: {tone: warm}", ""),
        ("{{language}}", "{{ langauge }}", 'unknown slot {{ langauge }}; write input: "Greet me in {{ language }}."'),
        (
            "{{language}}",
            "{{ other }}",
            "unknown slot {{ other }}; variables of the case: language, tone; for braces in the",
        ),
        ("{{language}}", "{{ language | upper }}", 'a slot is {{ name }}; write input: "Greet me in {{ language }}."'),
        ("{{language}}", "{language}", 'a slot is {{ name }}; write input: "Greet me in {{ language }}."'),
        ("a {{ tone }} gr", "a {{ tune }} gr", 'unknown slot {{ tune }}; write rubric: "Is a {{ tone }} greeting"'),
        ("a {{ tone }} gr", "a ${vars.tone} gr", 'write rubric: "Is a {{ tone }} greeting"'),
        ("a {{ tone }} gr", "a {{ vars.tone }} gr", 'write rubric: "Is a {{ tone }} greeting"'),
        (
            "{language: French",
            "{language: '${env:LANG}'",
            "language: ${env:LANG} would stay as it is: nothing is filled",
        ),
        ("{language: French", "{language: $LANG", "language: $LANG would stay as it is"),
        ("rubric: Is formal", "input: Hello", "counts before the input of its row, which would have no effect"),
    ],
)
def test_what_is_wrong_has_its_place(old: str, new: str, said: str) -> None:
    """A key of no case, in the defaults, in a row, or in a case that stands for several."""
    text = SHARED.replace(old, new)
    if said:
        with pytest.raises(LoadError) as caught:
            loads_suite(text)
        assert said in str(caught.value)
    else:
        assert len(loads_suite(text)) == len(loads_suite(SHARED)) - 1


@pytest.mark.parametrize("rows", ["[]", "[{cell: {prompt: short}}]"])
def test_a_matrix_that_no_case_uses_is_refused(rows: str) -> None:
    """It would have no effect."""
    with pytest.raises(LoadError, match="no case is crossed with it"):
        loads_suite(f"matrix: {rows}\ncases: [{{id: a, cell: {{}}, rubric: Is kind, input: Hi}}]")


def test_a_rubric_of_several_cases_is_named_once() -> None:
    """The most frequent one is that of the suite, the others are named."""
    kind, long = (Rubric(criteria=[Criterion(text), Criterion("Is short")]) for text in ("Is kind", "Is long"))
    suite = Suite("s", [Case(f"c{n}", rubric) for n, rubric in enumerate([kind, kind, kind, long, long])])
    text = dumps_suite(suite)
    assert (text.count("Is short"), text.count("{ref: Is long}")) == (2, 2)
    assert loads_suite(text).cases == suite.cases


def test_rubrics_that_differ_by_variables_alone_are_named_once() -> None:
    """With slots, which a reference fills; a rubric that several have as it stands has none."""
    cases = [
        Case(f"{word} {n}", Rubric(criteria=[f"Says {word}", about]), variables={"word": word})
        for word in ("alpha", "beta")
        for n, about in enumerate(["Is short", "Is long"])
    ]
    text = dumps_suite(Suite("s", cases))
    assert text.count("{{word}}") == 2
    assert "alpha" not in text.partition("cases:")[0]
    assert loads_suite(text).cases == tuple(cases)


SLOTS = """
suite: s
rubrics: {named: {criteria: [{text: "Is {{x}}", choices: {"{{x}}": 1, none: 0}}]}}
defaults: {rubric: {ref: named}, input: "i {{x}}", output: "o {{x}}", reference: "r {{x}}", context: "c {{x}}"}
cases: [{variables: {x: red}}]
"""


@pytest.mark.parametrize("place", ["defaults: {rubric: {ref: named}, ", "rubric: {ref: named}\ndefaults: {"])
def test_slots_are_filled_wherever_defaults_have_text(place: str) -> None:
    """In each text of a candidate, and in a named rubric with the labels of its choices, whoever refers to it."""
    (case,) = loads_suite(SLOTS.replace("defaults: {rubric: {ref: named}, ", place))
    assert (case.input, case.output, case.reference, case.context) == ("i red", "o red", "r red", "c red")
    (criterion,) = case.rubric.criteria
    assert criterion.text == "Is red"
    assert criterion.answer == Choices({"red": 1, "none": 0})


def test_labels_that_become_one_are_refused() -> None:
    """One of two choices would be lost."""
    with pytest.raises(LoadError, match="make the same text of two keys"):
        loads_suite(SLOTS.replace("x: red", "x: none"))


def test_variables_are_put_into_checks_alone() -> None:
    """What metadata say is free, and is written and read as it is."""
    rubric = Rubric(criteria=[Criterion("Is kind", metadata={"variables": "{{variables}}"})])
    suite = Suite("s", [Case("one", rubric, output="x", variables={"a": "b"})])
    assert loads_suite(dumps_suite(suite)).cases == suite.cases


def test_the_rubric_of_all_cases_shows_the_variables_of_each() -> None:
    """As one that they refer to does; what a file has stays as it is, and so does what a suite writes."""
    rubric = "{criteria: ['Names the {{ what }}', {check: {contains: '{{what}}'}}]}"
    suite = loads_suite(f"suite: s\nrubric: {rubric}\ncases:\n" + "".join(
        f"  - {{output: a, variables: {{what: {what}}}}}\n" for what in ("phone", "router")
    ))  # fmt: skip
    assert [[one.text for one in case.rubric] for case in suite] == [
        [f"Names the {what}", f"contains '{what}'"] for what in ("phone", "router")
    ]
    braces = Suite("b", [Case(name, Rubric.of("Has {{ braces }}"), output="a") for name in "ab"])
    assert loads_suite(dumps_suite(braces)).cases == tuple(
        evolve(case, place=again.place) for case, again in zip(braces, loads_suite(dumps_suite(braces)), strict=True)
    )


def test_the_variables_of_a_case_are_written_once() -> None:
    """A check that repeats them all refers to them, so that cases with the same check have the same rubric."""
    tests = "".join(f"  - {{vars: {{q: {q}}}}}\n" for q in ("one", "two"))
    check = "{assert: [{type: javascript, value: 'output === context.vars.q'}]}"
    suite = loads_suite(f"prompts: ['{{{{q}}}}']\nproviders: [echo]\ndefaultTest: {check}\ntests:\n{tests}")
    text = dumps_suite(suite)
    assert text.count("javascript") == text.count('"{{variables}}"') + 1 == 2
    assert loads_suite(text).cases == suite.cases


def test_rubrics_that_stand_for_several_cases_may_have_the_variables_of_each() -> None:
    """The suite's own rubric and a named one are read without any, and a rubric of another case stands beside them."""
    code = {"q": "output === context.vars.q", "r": "output !== context.vars.q"}
    tests = "".join(
        f"  - {{vars: {{q: {q}}}, assert: [{{type: javascript, value: '{code[which]}'}}]}}\n"
        for q, which in (("one", "q"), ("two", "q"), ("three", "q"), ("four", "r"), ("five", "r"))
    )
    suite = loads_suite(
        f"prompts: ['{{{{q}}}}']\nproviders: [echo]\ntests:\n{tests}  - {{assert: [{{type: is-json}}]}}\n"
    )
    text = dumps_suite(suite)
    assert (text.count("type: javascript"), text.count('"{{variables}}"'), text.count("ref: ")) == (2, 2, 2)
    assert loads_suite(text).cases == suite.cases


def test_tests_of_one_name_are_numbered_before_their_columns() -> None:
    """So that scenarios, whose tests stand under each configuration again, are written as a matrix."""
    suite = loads_suite("""
prompts: [one, two]
providers: [echo, openai:gpt-5]
scenarios:
  - config: [{vars: {a: x}}, {vars: {a: y}}]
    tests: [{description: Same, assert: [{type: contains, value: '{{a}}'}]}]
""")
    columns = ("prompt-1 / echo", "prompt-2 / echo", "prompt-1 / openai:gpt-5", "prompt-2 / openai:gpt-5")
    assert [case.id for case in suite] == [f"{name} / {column}" for name in ("Same", "Same #2") for column in columns]
    text = dumps_suite(suite)
    assert text.count("id: ") == text.count("id: contains") + 2
    assert loads_suite(text).cases == suite.cases


@pytest.mark.long
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real files is not beside the project")
def test_a_converted_file_is_about_as_long_as_its_source() -> None:
    """Of every eighth real file of at least 15 lines: in the median at most 1.3 times as long."""
    ratios = []
    for path in sorted(CORPUS.rglob("*.y*ml"))[::8]:
        try:
            text = str(convert(load_suite(path)))
        except LoadError:
            continue
        source = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        if len(source) >= 15:
            ratios.append(text.count("\n") / len(source))
    assert sorted(ratios)[len(ratios) // 2] <= 1.3


def pairs_of_page() -> list[tuple[str, str, str]]:
    """Return the format, the source and the result of each conversion on the page."""
    page = (ROOT / "docs/how-to/converted_suites.md").read_text("utf-8")
    found = re.findall(r"```yaml\n# ([\w.-]+), before\n(.*?)```\n\n```yaml\n# after\n(.*?)```", page, re.DOTALL)
    return [(form, source, after) for form, source, after in found]


@each_row(("form", "source", "after"), pairs_of_page())
def test_the_page_of_converted_suites_shows_what_is_written(form: str, source: str, after: str) -> None:
    """Each result is what `convert` writes today, and is read as the suite that its source is."""
    suite = loads_suite(source, form, source="suite.yaml")
    assert str(convert(suite)) == after
    bare = [evolve(case, place=None, providers=(), unasked="") for case in suite]
    assert [evolve(case, place=None) for case in loads_suite(after)] == bare
    assert len(pairs_of_page()) == 10


def test_a_slot_in_an_id_is_filled_for_each_cell_and_refused_in_one_case() -> None:
    """It stood in the names of rows as it was written."""
    matrix = "matrix: [{cell: {to: Rome}, variables: {to: Rome}}]\n"
    text = matrix + "rubric: Is kind\ncases: [{id: 'to-{{to}}', output: 'To {{to}}.'}]"
    assert [case.id for case in loads_suite(text)] == ["to-Rome / Rome"]
    one = "rubric: Is kind\ncases: [{id: 'to-{{to}}', output: Go., variables: {to: Rome}}]"
    with pytest.raises(LoadError, match=r"a case's own texts have no slots; write id: to-Rome\n"):
        loads_suite(one)
