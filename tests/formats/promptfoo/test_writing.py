"""A suite as a promptfoo configuration: it reads back as the suite, and what is dropped is told."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric.errors import LoadError
from rubric.formats.document import Document
from rubric.formats.json import parse_json
from rubric.formats.notes import Loading, Notes
from rubric.formats.promptfoo.reader import read
from rubric.formats.promptfoo.writer import write
from rubric.formats.suites import convert, load_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.values.checks import Contains, Holds
from rubric.values.criteria import Criterion
from rubric.values.judges import Judge, Jury
from rubric.values.rubrics import Rubric
from rubric.values.runs import ToolCall
from tests.examples import examples
from tests.rows import each_row
from tests.strategies import any_texts, rubrics, texts


def loads(config: Any, **loading: Any) -> Suite:
    """Return the suite of a configuration that is given as data."""
    root = parse_json(json.dumps(config), "promptfooconfig.json")
    assert root is not None
    notes = Notes(Document("promptfooconfig.json", root))
    suite = read(notes, Loading(**loading))
    notes.finish()
    return suite


# -- what promptfoo can hold ---------------------------------------------------------------------------------

words = texts(12).filter(
    lambda text: "{" not in text and "endraw" not in text and not text.strip().lower().startswith("file://")
)
scores = st.floats(0, 1).map(lambda value: round(value, 3))
names = st.sampled_from(["topic", "question", "input", "n"])

judged = st.fixed_dictionaries(
    {"type": st.sampled_from(["llm-rubric", "not-llm-rubric"]), "value": words},
    optional={
        "threshold": scores,
        "weight": st.sampled_from([1, 2, 0.5]),
        "metric": st.sampled_from(["tone", "accuracy"]),
        "provider": st.sampled_from(
            ["openai:gpt-5", {"id": "anthropic:messages:claude-x", "config": {"temperature": 0.5}}]
        ),
        "rubricPrompt": st.sampled_from(
            [
                "Grade {{output}} by {{rubric}}",
                [{"role": "user", "content": "{{ topic }} {{output}} {{input}} {% raw %}{{ n }}{% endraw %}"}],
            ]
        ),
    },
)
decided = st.one_of(
    st.builds(
        lambda t, v: {"type": t, "value": v},
        st.sampled_from(["contains", "icontains", "equals", "starts-with", "not-contains"]),
        words,
    ),
    st.builds(
        lambda t, v: {"type": t, "value": v},
        st.sampled_from(["contains-any", "icontains-all"]),
        st.lists(words, min_size=1, max_size=3),
    ),
    st.sampled_from(
        [
            {"type": "is-json"},
            {"type": "not-is-json"},
            {"type": "contains-json"},
            {"type": "is-json", "value": {"type": "object"}},
            {"type": "regex", "value": "a+"},
            {"type": "moderation"},
            {"type": "equals", "value": {"a": 1}},
        ]
    ),
)
single = st.one_of(judged, decided)
sets = st.fixed_dictionaries(
    {
        "type": st.just("assert-set"),
        "assert": st.lists(
            st.one_of(judged.map(lambda a: {k: v for k, v in a.items() if k != "provider"}), decided),
            min_size=1,
            max_size=3,
        ),
    },
    optional={"threshold": scores, "weight": st.sampled_from([1, 3])},
)
tests = st.fixed_dictionaries(
    {"assert": st.lists(st.one_of(single, single, sets), min_size=1, max_size=4)},
    optional={
        "description": words,
        "vars": st.dictionaries(names, words, max_size=3),
        "threshold": scores,
        "providerOutput": any_texts(20),
        "metadata": st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
        "options": st.fixed_dictionaries({}, optional={"provider": st.just("openai:gpt-5-mini")}),
    },
)
configs = st.fixed_dictionaries(
    {"tests": st.lists(tests, min_size=1, max_size=3)},
    optional={
        "description": words,
        "prompts": st.sampled_from(
            [["About {{topic}}"], ["{{question}}"], ['[{"role": "user", "content": "{{question}}"}]']]
        ),
    },
)


@examples(60)
@given(configs)
def test_what_promptfoo_holds_reads_back_as_it_was(config: dict[str, Any]) -> None:
    """A suite that came from promptfoo is written so that it reads back as the same suite."""
    suite = loads(config)
    written, dropped = write(suite)
    assert dropped == []
    assert loads(written) == suite


@examples(40)
@given(rubrics())
def test_whatever_is_dropped_is_told_with_its_case(rubric: Rubric) -> None:
    """Any rubric is written, or said to be dropped; what is written loads."""
    if not rubric.judged:
        return
    suite = Suite("any", [Case("only", rubric)])
    written, dropped = write(suite)
    assert all(sentence.startswith("The case 'only': ") for sentence in dropped)
    if written["tests"]:
        loads(written)
    else:
        assert dropped


def test_what_promptfoo_lacks_is_told_for_each_case() -> None:
    """Juries, functions, gates, reference answers and tool calls are dropped, a sentence each."""
    rubric = (
        Rubric("r", threshold=0.7)
        .requires("Is polite")
        .checks(Holds(callable), id="fn")
        .checks(Contains("a"), id="named")
    )
    case = Case(
        "c", rubric, judge=Jury("openai/gpt-5", 3), reference="ref", tool_calls=[ToolCall("search")], input="Hi"
    )
    written, dropped = write(Suite("s", [case], judge=Judge("openai/gpt-5", temperature=0.1, timeout=5)))
    (test,) = written["tests"]
    assert written["defaultTest"]["options"]["provider"]["config"] == {"temperature": 0.1}
    assert test["vars"] == {"case_input": "Hi"}
    assert [a["type"] for a in test["assert"]] == ["llm-rubric", "contains"]
    said = "\n".join(dropped)
    for what in ("required", "'fn'", "Jury", "reference", "tool_calls", "timeout"):
        assert what in said


@each_row("text", ["{{ a }}", "{% raw %}", "{# a #} b", "file://x.txt", "a\n{{b}}\n", "{% endraw %} {{ a }}"])
def test_texts_that_look_like_templates_stay_texts(text: str) -> None:
    """A rubric's text is shown as it is, whatever it looks like."""
    suite = Suite("s", [Case("c", Rubric.of(text, threshold=None)), Case("d", Rubric.of("x", threshold=None))])
    written, dropped = write(suite)
    assert dropped == []
    assert loads(written).cases[0].rubric.text == text


spoilt: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, "", " ", "x", "file://../x", "{{", "{% raw %}", [], {}, [1], {"a": 1}, [[]], "[{}]"]
)


@examples(60)
@given(configs, st.data())
def test_a_spoilt_configuration_is_read_or_refused(config: dict[str, Any], data: st.DataObject) -> None:
    """Whatever stands in a place, the file loads or is refused as a file."""
    whole = deepcopy(config)  # what is drawn may be drawn again, and is not to be changed
    place: Any = whole
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not place[key] or not isinstance(place[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
            break
        place = place[key]
    place[key] = deepcopy(data.draw(spoilt))
    with suppress(LoadError):
        loads(whole)


def test_a_rubric_that_is_turned_over_is_never_written_as_its_opposite() -> None:
    """Promptfoo turns over one assertion and no set of them, so such a test or criterion is left out, and told."""
    turned = Rubric("r", negate=True).expects("Good").expects("Short")
    data, dropped = write(Suite("s", [Case("c", turned), Case("d", Rubric().expects("Kind").includes(turned))]))
    assert [[a["value"] for a in test["assert"]] for test in data["tests"]] == [["Kind"]]
    assert "The case 'd': the criterion 'r' is dropped; promptfoo turns over no more than one assertion." in dropped
    assert "The case 'c': all of it, since nothing is left to grade it by, is dropped." in dropped


def test_checks_after_a_transform_are_written_or_told_in_words(tmp_path: Path) -> None:
    """A negated one is written, no text is lost, and what is left out is named as its author knows it."""
    (tmp_path / "check.js").write_text("module.exports = (output) => output.length > 1;")
    assertions = [
        {"type": "not-contains", "value": "voucher"},
        {"type": "contains", "value": "a"},
        {"type": "javascript", "value": "file://check.js"},
        {"type": "select-best", "value": "the best"},
    ]
    test = {"providerOutput": "a", "assert": [{**one, "transform": "output.trim()"} for one in assertions]}
    (tmp_path / "promptfooconfig.yaml").write_text(json.dumps({"prompts": ["x"], "tests": [test]}))
    written = convert(load_suite(tmp_path / "promptfooconfig.yaml"), "promptfoo")
    assert written.data["tests"][0]["assert"] == test["assert"][:2]
    by_hand = (
        "its code is in a file; in a configuration beside that, write {type: javascript, value: 'file://check.js'}"
    )
    assert [sentence.partition(": ")[2] for sentence in written.dropped][:2] == [
        f"the criterion 'javascript' is dropped; {by_hand}.",
        "the criterion 'select-best' is dropped; promptfoo has nothing like 'select-best: the best'.",
    ]


def test_the_text_of_a_check_that_is_lost_is_told() -> None:
    """promptfoo's checks have no words of their own."""
    check = Contains("a")
    plain = Criterion(str(check), id="contains", answer=check)
    _, dropped = write(Suite("s", [Case("c", Rubric(criteria=[plain]))]))
    assert not dropped
    _, dropped = write(Suite("s", [Case("c", Rubric(criteria=[evolve(plain, text="Names the city")]))]))
    assert "the text of the criterion 'contains'" in "".join(dropped)
