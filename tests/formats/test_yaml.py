"""Both parsers of YAML build the same document, and both writers the same text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.resolver import Resolver
from yaml import YAMLError

from rubric.errors import LoadError
from rubric.formats import editing, yaml
from rubric.formats.document import FOR_RUBRICS, FOR_SUITES, Branch, Limits, Node, Scalar, kind_of, read_scalar
from rubric.formats.native.suite import as_suite_data
from rubric.formats.rubrics import dumps, loads
from rubric.suites.suite import Suite
from rubric.values.rubrics import Rubric
from tests.examples import examples
from tests.places import SHARED
from tests.rows import each_row
from tests.strategies import AWKWARD, any_texts, plain_values, rubrics, suites

FILES = [path for folder in ("corpus", "seeds") for path in sorted((SHARED / folder).rglob("*")) if path.is_file()]

PIECES = [
    *"abc012:-?,[]{}#&*!|>'\"%@` \n~=<.\\/\t\r\ufeff",
    *("\n  ", "\n- ", ": ", "a: ", "- ", "? ", "\n\n", " #", "---", "...", "\n---\n", "<<: ", "&a ", "*a ", "|\n  "),
    *(">-\n ", "\\n", "\\x41", "\\ud800", "\\/", "\\\n", "é", "😀", "\r\n", "''", '""', "{a: b}", "[a, b]", "a:b"),
    *("http://x", "%YAML 1.2\n---\n", "%YAML 1.1\n---\n", "%TAG ! a\n---\n", "!!str ", "0x", "yes", "017", "1e3"),
]

written = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
limits = st.sampled_from([FOR_RUBRICS, FOR_SUITES, Limits(2_000, 6, aliases=True)])


def described(node: Node | None) -> Any:
    """Return all that *node* holds, as data that can be compared."""
    match node:
        case Scalar():
            return node.place, node.flaw, repr(node.value)
        case Branch():
            return type(node), node.place, node.flaw, node.events, node.height, [*map(described, node.parts)]
        case _:
            return node


def outcome(text: str, given_limits: Limits) -> Any:
    """Return the document that is built of *text*, or the error."""
    try:
        return described(yaml.parse_yaml(text, "a.yaml", given_limits))
    except LoadError as error:
        return str(error)


def compare(text: str, given_limits: Limits) -> None:
    """Check that *text* is the same document with libyaml and without."""
    quick = outcome(text, given_limits)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(yaml, "CParser", None)
        assert quick == outcome(text, given_limits)


@given(written, limits)
@example("&a: b", FOR_SUITES)
@example("*a:\n- b", FOR_SUITES)
@example("a: ! b", FOR_SUITES)
@example("|\n---\n", FOR_SUITES)
@example("|\n\n# a", FOR_SUITES)
@example("|\n\n%a", FOR_SUITES)
@example(">-\n \n\n  a", FOR_SUITES)
@example("a: |#", FOR_SUITES)
@example('["a":, b]', FOR_SUITES)
@example("a\t: b", FOR_SUITES)
@example("a: 'b\ufeffc'\nd: *e", FOR_SUITES)
@example("a:\n\n\nb: # c\n", FOR_SUITES)
@example("? a: b", FOR_SUITES)
@example("--- # a", FOR_SUITES)
@example('"\\ud800"', FOR_SUITES)
@example("[openai:gpt-5]", FOR_SUITES)
@example("a: &a {b: c}\nd: {<<: *a, e: 😀}\nf: *a", FOR_SUITES)
def test_pieces(text: str, given_limits: Limits) -> None:
    """Whatever stands in a text, both build one document, places included, or give one error."""
    compare(text, given_limits)


@given(st.data())
def test_mutated_files(data: st.DataObject) -> None:
    """So they do with lines of real files into which something was put."""
    if not FILES:
        pytest.skip("the corpus of real files is not beside the project")
    lines = data.draw(st.sampled_from(FILES)).read_text("utf-8", "replace").split("\n")
    first = data.draw(st.integers(0, len(lines) - 1))
    text = "\n".join(lines[first : first + data.draw(st.integers(1, 12))])
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(text)))
        text = text[:place] + data.draw(st.sampled_from(PIECES)) + text[place + data.draw(st.integers(0, 2)) :]
    compare(text, data.draw(limits))


@each_row("path", FILES[::5], ids=lambda path: str(path.relative_to(SHARED)))
def test_files(path: Path) -> None:
    """So they do with every fifth of the real files; all of them take half a minute."""
    compare(path.read_text("utf-8", "replace"), FOR_SUITES)


@given(st.dictionaries(any_texts(130), plain_values, max_size=3))
def test_one_style(data: dict[str, Any]) -> None:
    """What is written anew looks like what is put into a file that is edited, which ruamel writes."""
    assert yaml.to_yaml(data) == editing._print(editing._editor(), editing._style(data, ()))


@examples(100)
@given(rubrics())
def test_rubrics(rubric: Rubric) -> None:
    """So they do with what the library writes."""
    compare(dumps(rubric), FOR_RUBRICS)


@examples(60)
@given(suites())
def test_rubrics_and_suites_in_one_style(suite: Suite) -> None:
    """So do suites, and the rubrics in them."""
    data = as_suite_data(suite)
    assert yaml.to_yaml(data) == editing._print(editing._editor(), editing._style(data, ()))


def events_of_files() -> Iterator[bool]:
    """Yield for each real file whether libyaml alone reads it."""
    for path in FILES:
        try:
            yield all(True for _ in yaml._quick_events(path.read_text("utf-8", "replace")))
        except YAMLError:
            yield False


@pytest.mark.skipif(not FILES, reason="the corpus of real files is not beside the project")
def test_most_files_are_read_quickly() -> None:
    """The parser in Python is the exception."""
    found = [*events_of_files()]
    assert sum(found) > 0.9 * len(found)


NUMBERS = {
    "1": 1,
    "+1": 1,
    "-1": -1,
    "007": 7,
    "0o17": 15,
    "0x1F": 31,
    "1.": 1.0,
    ".5": 0.5,
    "-.5": -0.5,
    "1e3": 1000.0,
    "1.e3": 1000.0,
    "-2E+05": -200000.0,
    "+12e03": 12000.0,
}
TEXTS = [
    "1_000",
    "1_0.5",
    "0b11",
    "-0b1",
    "12_34",
    "1__0",
    "1_",
    "0x1_F",
    "-0x1F",
    "+0o7",
    "0X1F",
    "0O7",
    "0o8",
    "0x",
    "12:30",
    "1:2:3",
    "1e",
    ".",
    "._",
    "+",
    "--",
    "tRUE",
    "nULL",
    "yes",
    "off",
    "inf",
    "2024-01-02",
    "2024-01-02T10:00:00Z",
    "1990-1-2",
    "685.230_15e+03",
]
"""What js-yaml 5.4 and yaml 2.9, the parsers of promptfoo and AgentV, read as texts; run to find out."""


@each_row("text", [*NUMBERS, *TEXTS])
def test_a_scalar_of_a_suite_is_what_the_parsers_of_its_systems_read(text: str) -> None:
    """Both follow the core schema of YAML 1.2: no underscores, no binary numbers, no dates."""
    found = read_scalar(text, dates=True)
    assert found == (NUMBERS.get(text, text), "")
    assert type(found[0]) is type(NUMBERS.get(text, text))


def test_a_date_in_a_rubric_needs_quotes() -> None:
    """Other parsers of YAML make an object of it."""
    assert "quote it" in read_scalar("2024-01-02")[1]


@given(
    st.one_of(st.sampled_from(AWKWARD), any_texts(), st.from_regex(r"[-+.\d_xobeEinfa~nul:TZ]{1,40}", fullmatch=True))
)
def test_kinds(scalar: str) -> None:
    """What YAML 1.2 takes for text YAML 1.1 may take for a number, and never the other way round."""
    kind = kind_of(scalar)
    older = str(Resolver().resolve(ScalarNode, scalar, (True, False))).rpartition(":")[2]
    assert kind == older or (kind == "str" and older in ("int", "float", "timestamp", "value")) or kind == "date"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("text: a\nweight:\nname: b", "2:8"),
        ("text: a\nweight  :   # later\n\nname: b", "2:10"),
        ("{text: a, weight: }", "1:18"),
        ("{text: a, weight}", "1:11"),
        ("text: a\n? weight\n", "2:3"),
    ],
)
def test_missing_values(text: str, place: str) -> None:
    """A value that was left out is missing behind the colon of its key, not where the next key stands."""
    weight = yaml.parse_yaml(text, "a.yaml")
    assert isinstance(weight, Branch)
    assert "{}:{}".format(*weight.parts[3].place) == place


def test_a_parser_in_python_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where PyYAML was built without libyaml, files are read all the same."""
    monkeypatch.setattr(yaml, "CParser", None)
    assert loads("text: Is it polite?").text == YAML(typ="safe", pure=True).load("Is it polite?")


def test_a_criterion_with_a_short_check_is_one_line() -> None:
    """Levels and long checks are blocks, and so is a check alone, which takes a line as it is."""
    wide = "x" * 50
    text = f"""\
criteria:
  - {{id: says, check: {{contains: x}}, weight: 2}}
  - check: {{contains: x}}
  - id: wide
    check: {{contains: {wide}, ignore_case: true}}
  - text: clarity
    levels: {{0: none, 5: some}}
"""
    data = {
        "criteria": [
            {"id": "says", "check": {"contains": "x"}, "weight": 2},
            {"check": {"contains": "x"}},
            {"id": "wide", "check": {"contains": wide, "ignore_case": True}},
            {"text": "clarity", "levels": {0: "none", 5: "some"}},
        ]
    }
    assert yaml.to_yaml(data) == text
