"""What is wrong with one test leaves that test ungraded; what is wrong with the file refuses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric import Judge, LoadError, load_suite, loads_suite
from rubric.values import Unsupported

SOUND = "  - {providerOutput: hello, assert: [{type: contains, value: hell}]}\n"


def statuses(text: str, folder: Path, **files: str) -> list[str]:
    """Return the outcomes of the cases of a configuration in YAML, with *files* beside it."""
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content, encoding="utf-8")
    file = folder / "promptfooconfig.yaml"
    file.write_text(text, encoding="utf-8")
    return [row.status for row in load_suite(file).run("offline", target=lambda _: "hello")]


@pytest.mark.parametrize(
    "assertion",
    [
        "{type: contains, value: ''}",
        "{type: contains, value: true}",
        "{type: regex, value: '('}",
        "{type: word-count}",
        "{type: word-count, value: {min: 3, max: 1}}",
        "{type: bleu}",
        "{type: bleu, value: x, threshold: far}",
        "{type: contains, value: x, weight: -1}",
        "{type: contains, value: x, weight: 0}",
        "{type: assert-set, assert: []}",
        "{type: is-json, value: 'a: ['}",
        "{type: is-json, value: {type: string, format: colour}}",
        "{type: llm-rubric, value: 7}",
        "{type: llm-rubric, value: x, provider: [a]}",
        "{type: factuality, value: ''}",
        "{type: similar, value: '{{gone}}'}",
        "{type: contains-any, value: '\"open'}",
        "7",
    ],
)
def test_a_fault_of_one_assertion_leaves_its_test_ungraded(assertion: str, tmp_path: Path) -> None:
    """The other tests are graded, whatever the type."""
    faulty = f"  - {{providerOutput: hello, assert: [{assertion}]}}\n"
    assert statuses(f"prompts: [x]\ntests:\n{SOUND}{faulty}", tmp_path) == ["passed", "ungraded"]


@pytest.mark.parametrize(
    "keys", ["vars: {d: !tag x}", "threshold: far", "vars: 7", "options: 7", "metadata: 7", "vars: {a: 1, a: 2}"]
)
def test_a_fault_beside_the_assertions_does_so_too(keys: str, tmp_path: Path) -> None:
    """A tag of YAML and a key that stands twice are among them, which are flaws of the document."""
    faulty = f"  - {{providerOutput: hello, {keys}, assert: [{{type: contains, value: hell}}]}}\n"
    assert statuses(f"prompts: [x]\ntests:\n{faulty}{SOUND}", tmp_path) == ["ungraded", "passed"]


@pytest.mark.parametrize("kind", ["contains", "regex", "icontains-any", "llm-rubric", "factuality", "similar", "bleu"])
def test_an_empty_cell_of_a_table_costs_its_row_alone(kind: str, tmp_path: Path) -> None:
    """The default asserts what the row lacks; the row is named by its id and its place."""
    text = f"prompts: ['{{{{q}}}}']\ndefaultTest: {{assert: [{{type: {kind}, value: '{{{{expected}}}}'}}]}}\ntests: t.csv\n"
    table = "q,expected,__expected2\na,hello,\nb,,contains: hello\nc,hello,\n"
    _, lacking, _ = statuses(text, tmp_path, t_csv=table)
    suite = load_suite(tmp_path / "promptfooconfig.yaml")
    told = [case.id for case in suite.plan("offline") if case.unsupported]
    # A blank reference of BLEU is compared, as in promptfoo.
    assert (lacking, told) == (("failed", []) if kind == "bleu" else ("ungraded", ["b"]))


def test_a_file_all_of_whose_tests_are_faulty_is_refused_with_all_places(tmp_path: Path) -> None:
    """Nothing of it could be graded, so the author is told at once."""
    text = (
        "prompts: [x]\ntests:\n  - {assert: [{type: regex, value: '('}]}\n  - {assert: [{type: contains, value: ''}]}\n"
    )
    with pytest.raises(LoadError) as caught:
        statuses(text, tmp_path)
    assert [problem.path for problem in caught.value.problems] == [
        "tests[0].assert[0].value",
        "tests[1].assert[0].value",
    ]


@pytest.mark.parametrize("slip", ["{type: contians, value: x}", "{type: contains, valeu: x}"])
def test_a_slip_in_a_name_refuses_the_file(slip: str, tmp_path: Path) -> None:
    """Its author meant something else, and can be told what."""
    with pytest.raises(LoadError, match="did you mean"):
        statuses(f"prompts: [x]\ntests:\n{SOUND}  - {{assert: [{slip}]}}\n", tmp_path)


@pytest.mark.parametrize(
    "template", ["{{ q.toUpperCase() }}", "{{ q | truncate(1) }}", "{% if q.trim() %}y{% endif %}", "{{ cycler(q) }}"]
)
def test_a_variable_that_cannot_be_filled_in_is_told(template: str, tmp_path: Path) -> None:
    """promptfoo fills in a variable that is a template of known ones; its text would be graded unrendered."""
    one = f"  - {{vars: {{a: '{template}', q: z}}, assert: [{{type: contains, value: hell}}]}}\n"
    text = f"prompts: ['Say {{{{a}}}}']\nproviders: [echo]\ntests:\n{one}"
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(text, encoding="utf-8")
    suite = load_suite(file)
    (row,) = suite.run("offline", target=lambda _: "hello")
    assert row.status == "ungraded"
    assert any("not allowed here" in str(w) or "no filter" in str(w) for w in suite.warnings)


@pytest.mark.parametrize("template", ["{% set x = 1 %}{{ x }}", "{{ gone.trim() }}"])
def test_a_template_with_a_name_that_is_no_variable_is_shown_as_it_is(template: str, tmp_path: Path) -> None:
    """As in promptfoo."""
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text(f"prompts: ['{{{{a}}}}']\ntests: [{{vars: {{a: '{template}'}}, assert: [{{type: is-json}}]}}]\n")
    assert load_suite(file).cases[0].input == template


@pytest.mark.parametrize(
    ("row", "cell"),
    [('"a, b" ,1', "a, b"), ('"a"" ,""b"  ,1', 'a" ,"b'), ('"x\ny" ,1', "x\ny"), ('"" ,1', ""), ('a" ,1', 'a" ')],
)
def test_blanks_after_a_closing_quote_do_not_count(row: str, cell: str, tmp_path: Path) -> None:
    """As in promptfoo's tables; those within a quoted cell stay, and what else follows the quote is refused."""
    text = "prompts: ['{{q}}']\ntests: t.csv\ndefaultTest: {assert: [{type: contains, value: x}]}\n"
    (tmp_path / "promptfooconfig.yaml").write_text(text)
    (tmp_path / "t.csv").write_text(f"q,n\n{row}\n")
    (case,) = load_suite(tmp_path / "promptfooconfig.yaml")
    assert (case.variables["q"].strip(), case.variables["n"]) == (cell.strip(), "1")
    (tmp_path / "t.csv").write_text('q,n\n"a" b,1\n')
    with pytest.raises(LoadError, match="this is not CSV"):
        load_suite(tmp_path / "promptfooconfig.yaml")


def test_the_reason_of_a_failure_names_what_failed_alone() -> None:
    """Of two judgements with the same score, only one has a threshold of its own."""
    judged = "{type: llm-rubric, value: Is kind}, {type: llm-rubric, value: Is short, threshold: 0.8}"
    suite = loads_suite(f"prompts: [x]\nproviders: [echo]\ntests: [{{assert: [{judged}]}}]")
    (row,) = suite.run(lambda _: '{"reason": "r", "score": 0.67, "pass": true}')
    assert (row.status, row.reason) == ("failed", "'llm-rubric-2' failed it (0.670 is below its threshold 0.8)")


@pytest.mark.parametrize(
    ("provider", "judge"),
    [
        ("perplexity:sonar", "perplexity/sonar"),
        ("openai:chat:gpt-4o-search-preview", "openai/gpt-4o-search-preview"),
        ("openai:gpt-5", None),
    ],
)
def test_a_search_rubric_is_judged_by_a_model_that_searches(provider: str, judge: str | None) -> None:
    """Its grader must search the web by itself; by another, the case is ungraded, and told which would do."""
    asked = f"{{type: search-rubric, value: Names the CEO of today, provider: '{provider}'}}"
    (case,) = loads_suite(f"prompts: [x]\nproviders: [echo]\ntests: [{{assert: [{asked}]}}]")
    if judge is None:
        (check,) = (criterion.answer for criterion in case.rubric.criteria)
        assert isinstance(check, Unsupported)
        assert "perplexity:sonar" in check.cure
    else:
        assert (case.rubric.text, case.judge) == ("Names the CEO of today", Judge(judge))
