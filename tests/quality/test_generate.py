"""The command `generate`: drafts for one rubric and for whole suites, in place."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import Anchor, Budget, Case, DefinitionError, Judge, ModelError, Rubric, Suite, load_suite, loads
from rubric.errors import DumpError
from rubric.formats.document import FOR_SUITES, plain
from rubric.formats.files import parse
from rubric.formats.insertion import insert_key
from rubric.formats.yaml import to_yaml
from rubric.quality import generate, generate_many
from rubric.quality.suite_drafts import sheet
from rubric.testing.scripted_model import ScriptedModel
from tests.command_line import COMMAND, run
from tests.places import ROOT
from tests.preferred_pairs import pairs_of_marks, write_or_judge
from tests.rows import each_row
from tests.servers import Endpoint, openai_serving, prompt_of

ITEMS: list[dict[str, Any]] = [
    {"id": "names-cause", "text": "Names the off-by-one error", "weight": 3, "required": True},
    {"id": "shows-fix", "text": "Shows the corrected line: 'i < n'", "weight": 1, "required": False},
    {"id": "tells-effect", "text": "Says what is read beyond the end", "weight": 1, "required": False},
]


def write_draft(body: dict[str, Any]) -> str:
    return "no draft" if "UNDRAFTABLE" in prompt_of(body) else json.dumps({"criteria": ITEMS})


@pytest.fixture
def server() -> Iterator[Endpoint]:
    """Serve drafts to `openai/...`, over a real socket."""
    with openai_serving(write_draft) as endpoint:
        yield endpoint


# -- the material -----------------------------------------------------------------------------------------


def test_every_kind_of_material_reaches_the_model() -> None:
    """Outcome, input, reference and scored example stand in the prompt."""
    model = ScriptedModel(lambda _: {"criteria": ITEMS})
    generate(
        "Finds the bug", Judge(model), input="Review this", references=["It is i < n"], examples=[Anchor("No idea.", 0)]
    )
    said = model.asks[0].messages[1].text
    for text in ("Finds the bug", "Review this", "It is i < n", "No idea.", "scored 0 of 1"):
        assert text in said


@pytest.mark.parametrize("material", [{"input": "x y"}, {"references": ["x y"]}, {"examples": [Anchor("x y", 1)]}])
def test_one_kind_of_material_is_enough(material: dict[str, Any]) -> None:
    """An input, a reference or an example alone gives a draft."""
    assert len(generate(judge=Judge(ScriptedModel(lambda _: {"criteria": ITEMS})), **material).kept) == 3


def test_no_material_is_refused() -> None:
    """The error lists what to give."""
    with pytest.raises(DefinitionError, match="a description of a good answer, or an input, references or examples"):
        generate(judge="openai/x")


def test_a_store_pays_for_a_draft_once(server: Endpoint, tmp_path: Path) -> None:
    """The same draft comes from the store, without a request."""
    first = generate("Finds the bug", "openai/gpt-4o", store=tmp_path / "r.db")
    again = generate("Finds the bug", "openai/gpt-4o", store=tmp_path / "r.db")
    assert (first.rubric == again.rubric, len(server.requests), again.usage.calls) == (True, 1, 0)


def test_a_budget_holds_a_draft_back(server: Endpoint) -> None:
    """A draft that may cost more than the budget is never sent."""
    with pytest.raises(ModelError, match="budget"):
        generate("Finds the bug", "openai/gpt-4o", budget=Budget(cost=0.000001))
    assert not server.requests


# -- one rubric -------------------------------------------------------------------------------------------


def test_a_rubric_is_drafted_from_options_and_files(server: Endpoint, tmp_path: Path) -> None:
    """The texts of the named files reach the model, and YAML goes to standard output."""
    for name in ("reference", "good", "bad"):
        (tmp_path / name).write_text(f"the {name} answer")
    files = [text for name in ("reference", "good", "bad") for text in (f"--{name}", str(tmp_path / name))]
    result = run("generate", "--outcome", "Finds it", "--task", "Review", *files, "--name", "r", "-j", "openai/gpt-4o")
    assert result.exit_code == 0
    assert (loads(result.stdout).name, [c.id for c in loads(result.stdout)]) == ("r", [item["id"] for item in ITEMS])
    assert "1 call, at most $" in result.stderr
    for said in ("the reference answer", "the good answer", "the bad answer", "Finds it"):
        assert said in prompt_of(server.requests[0].body)


def test_a_draft_replaces_no_file(server: Endpoint, tmp_path: Path) -> None:
    """A second `--out` to the same file ends with 2 before any request."""
    out = tmp_path / "r.yaml"
    made = run("generate", "--outcome", "Finds it", "-j", "openai/gpt-4o", "--out", str(out))
    assert (made.exit_code, len(loads(out.read_text()))) == (0, 3)
    again = run("generate", "--outcome", "Finds it", "-j", "openai/gpt-4o", "--out", str(out))
    assert (again.exit_code, "exists" in again.stderr, len(server.requests)) == (2, True, 1)


def test_a_plan_sends_nothing(server: Endpoint, tmp_path: Path) -> None:
    """`--plan` prints the calls and the highest cost."""
    planned = run("generate", "--outcome", "Finds it", "-j", "openai/gpt-4o", "--plan")
    assert (planned.exit_code, planned.stdout.startswith("rubric: 1 call, at most $")) == (0, True)
    assert not server.requests


@each_row(
    ("arguments", "message"),
    [
        ((), "there is nothing to draft from"),
        (("--outcome", "x y", "-j", "offline"), "which only counts words"),
        (("--outcome", "x y", "--filter", "a"), "is for suites"),
        (("suite.yaml", "--outcome", "x y"), "write rubric generate --outcome 'x y' --out suite.yaml"),
        (("a.yaml", "b.yaml", "--out", "c.yaml"), "is for one file"),
        (("cases.jsonl",), "YAML and JSON files"),
    ],
)
def test_what_cannot_be_drafted_is_refused(arguments: tuple[str, ...], message: str) -> None:
    """Each impossible combination of arguments is an error without output."""
    result = run("generate", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


# -- suites, in place -------------------------------------------------------------------------------------

AGENTV_1 = """\
# our evals
description: reviews   # of code
evalcases:
  - id: first
    # what we want
    expected_outcome: Finds the off-by-one error
    input_messages:
      - role: user
        content: "Review `for i in range(n + 1)`"

  # the second has its own
  - id: second
    expected_outcome: Finds it
    input_messages: [{role: user, content: hi}]
    rubrics:
      - Mentions the loop
  - {id: third, expected_outcome: Finds it, input_messages: [{role: user, content: hi}]}   # in braces
"""

AGENTV_2 = """\
name: reviews
tests:
  - id: first
    criteria: |
      Finds the off-by-one error

      and shows the fix
    input: hi


  # the next
  - id: second
    input: hi
    criteria: Finds it
    assert:
      - {type: contains, value: x}
  - id: third
    criteria: Says 'x'
    input: hi    # last
"""

PROMPTFOO = """\
prompts: ["Review {{code}}"]
providers: [openai:gpt-4o]
tests:
  - description: finds the bug
    vars:
      code: "for i in range(n + 1)"   # too far
  - description: second
    vars: {code: x}
    assert: [{type: contains, value: x}]
"""

NATIVE = """\
suite: reviews
cases:
  - id: first
    input: Review it
    rubric: >-
      Finds the off-by-one
      error

  # untouched
  - {id: second, input: hi, rubric: [Is polite]}
  - id: third
    input: Review that
    reference: It is i < n.
"""


@pytest.mark.parametrize(
    ("text", "drafted", "format"),
    [
        (AGENTV_1, ["first", "third"], "agentv-1"),
        (AGENTV_2, ["first", "third"], "agentv"),
        (PROMPTFOO, None, "promptfoo"),
        (NATIVE, ["first", "third"], "native"),
    ],
)
def test_a_suite_gets_criteria_and_keeps_all_else(
    server: Endpoint, tmp_path: Path, text: str, drafted: list[str] | None, format: str
) -> None:
    """Drafts are inserted into the cases without criteria, all other lines stay, and a rerun does nothing."""
    file = tmp_path / "s.yaml"
    file.write_text(text)
    result = run("generate", "rubrics", str(file), "-j", "openai/gpt-4o")
    assert (result.exit_code, len(server.requests)) == (0, 2 if drafted else 1)
    new = file.read_text()
    old_lines = [line for line in text.splitlines() if "third, expected" not in line and "rubric: >-" not in line]
    kept = [line for line in old_lines if "off-by-one" not in line and line.strip() != "error"]
    lines = iter(new.splitlines())
    assert all(line in lines for line in kept)  # in order: an iterator goes on where it stopped
    suite = load_suite(file)
    assert suite.format.startswith(format)
    texts = [c.text for case in suite if drafted is None or case.id in drafted for c in _judged(case.rubric)]
    assert texts.count("Shows the corrected line: 'i < n'") == (2 if drafted else 1)
    assert run("validate", str(file)).exit_code == 0
    again = run("generate", str(file), "-j", "openai/gpt-4o")
    assert (again.exit_code, again.stdout) == (0, f"{file}: no case lacks criteria\n")
    assert file.read_text() == new


def _judged(rubric: Any) -> Iterator[Any]:
    for criterion in rubric.judged:
        inner = criterion.answer
        yield from _judged(inner) if hasattr(inner, "judged") else [criterion]


def test_the_gates_and_weights_of_a_draft_are_those_of_the_file(server: Endpoint, tmp_path: Path) -> None:
    """Three formats read back the drafted weights and gates."""
    file = tmp_path / "s.yaml"
    for text in (AGENTV_1, AGENTV_2, NATIVE):
        file.write_text(text)
        assert run("generate", str(file), "-j", "openai/gpt-4o").exit_code == 0
        found = [*_judged(load_suite(file)["first"].rubric)]
        assert [(c.weight, c.required) for c in found] == [(3, True), (1, False), (1, False)]


def test_rubrics_are_put_beside_the_evaluators_of_agentv(server: Endpoint, tmp_path: Path) -> None:
    """An existing evaluator stays a criterion beside the three new ones."""
    file = tmp_path / "s.yaml"
    file.write_text(
        "evalcases:\n- id: a\n  expected_outcome: Finds it\n  input_messages: [{role: user, content: hi}]\n"
        "  execution:\n    evaluators: [{name: syntax, type: code_judge, script: ./check.py}]\n"
    )
    assert run("generate", "rubrics", str(file), "-j", "openai/gpt-4o").exit_code == 0
    suite = load_suite(file)
    assert (suite.format, len([*_judged(suite["a"].rubric)])) == ("agentv-1", 4)


def test_a_json_suite_stays_json(server: Endpoint, tmp_path: Path) -> None:
    """Only the key with the drafted criteria is new."""
    file = tmp_path / "s.json"
    suite = {
        "evalcases": [
            {"id": "a", "expected_outcome": "Finds it", "input_messages": [{"role": "user", "content": "hi"}]}
        ]
    }
    file.write_text(json.dumps(suite, indent=2))
    assert run("generate", str(file), "-j", "openai/gpt-4o").exit_code == 0
    new = json.loads(file.read_text())
    assert [item["id"] for item in new["evalcases"][0].pop("rubrics")] == [item["id"] for item in ITEMS]
    assert new == suite


def test_a_plan_says_that_good_and_bad_answers_test_nothing(tmp_path: Path) -> None:
    """They are material alone; the plan leads to pairs, which the judge grades. Of either side alone it says nothing."""
    (tmp_path / "g.txt").write_text("Good")
    (tmp_path / "b.txt").write_text("Bad")
    given = ["generate", "--outcome", "Finds it", "-j", "openai/gpt-4o", "--plan", "--good", str(tmp_path / "g.txt")]
    assert "--pairs" not in run(*given).stdout
    planned = run(*given, "--bad", str(tmp_path / "b.txt"))
    assert (planned.exit_code, "rows of chosen and rejected test it, as --pairs pairs.jsonl" in planned.stdout) == (
        0,
        True,
    )


def test_a_suite_is_planned_filtered_and_written_elsewhere(server: Endpoint, tmp_path: Path) -> None:
    """`--plan` sends nothing, `--filter` drafts one case, and `--out` leaves the source alone."""
    file, out = tmp_path / "s.yaml", tmp_path / "out.yaml"
    file.write_text(AGENTV_1)
    planned = run("generate", str(file), "-j", "openai/gpt-4o", "--plan")
    assert (planned.exit_code, "2 cases: 2 calls, at most $" in planned.stdout, len(server.requests)) == (0, True, 0)
    run("generate", str(file), "-j", "openai/gpt-4o", "--filter", "third", "--out", str(out))
    assert (file.read_text(), len(server.requests)) == (AGENTV_1, 1)
    assert len([*_judged(load_suite(out)["third"].rubric)]) == 3


def test_a_draft_that_fails_is_told_once_and_the_others_are_written(server: Endpoint, tmp_path: Path) -> None:
    """One message names the three failed cases, and the fourth gets its criteria."""
    file = tmp_path / "s.yaml"
    cases = "".join(f"  - id: c{n}\n    input: hi\n    rubric: UNDRAFTABLE {'' if n else 'not'}\n" for n in range(3))
    file.write_text(f"suite: s\ncases:\n{cases}  - id: last\n    input: hi\n    rubric: Finds it\n")
    result = run("generate", str(file), "-j", "openai/gpt-4o")
    assert result.exit_code == 2
    assert result.stderr.count("nothing was drafted for 3 cases (c0, c1, c2)") == 1
    assert [len(case.rubric.judged) for case in load_suite(file)] == [1, 1, 1, 3]


def test_a_second_run_with_a_store_pays_for_nothing(server: Endpoint, tmp_path: Path) -> None:
    """The same suite generated again sends no request."""
    file, store = tmp_path / "s.yaml", tmp_path / "r.db"
    for _ in range(2):
        file.write_text(AGENTV_1)
        assert run("generate", str(file), "-j", "openai/gpt-4o", "--store", str(store)).exit_code == 0
    assert len(server.requests) == 2


def test_windows_line_ends_stay(server: Endpoint, tmp_path: Path) -> None:
    """Inserted lines end like the others of the file."""
    file = tmp_path / "s.yaml"
    file.write_bytes(AGENTV_2.replace("\n", "\r\n").encode())
    assert run("generate", str(file), "-j", "openai/gpt-4o").exit_code == 0
    data = file.read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n")


def test_a_real_process_generates(server: Endpoint, tmp_path: Path) -> None:
    """`rubric generate`, in a process of its own, prints what it has done."""
    file = tmp_path / "s.yaml"
    file.write_text(PROMPTFOO)
    command = [*COMMAND, "generate", "rubrics", str(file), "-j", "openai/gpt-4o"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{file}: criteria for 1 case, 1 case kept as they are\n")


# -- insertion --------------------------------------------------------------------------------------------


@each_row(
    ("text", "path", "expected"),
    [
        ("a: 1\n", (), "a: 1\nk: v\n"),
        ("a: 1", (), "a: 1\nk: v"),
        ("a: 1 # c\n# d\n", (), "a: 1 # c\nk: v\n# d\n"),
        ("a:\n  b: 1\n\nc: 2\n", ("a",), "a:\n  b: 1\n  k: v\n\nc: 2\n"),
        ("a:\n- b: |\n    x\n\n- c\n", ("a", 0), "a:\n- b: |\n    x\n  k: v\n\n- c\n"),
        ("a: {}\n", ("a",), 'a: {"k": "v"}\n'),
        ("a: {b: [1, 2] }\n", ("a",), 'a: {b: [1, 2], "k": "v" }\n'),
        ('{"a": {\n  "b": 1\n}}', ("a",), '{"a": {\n  "b": 1,\n  "k": "v"\n}}'),
        ("a: {k: 1, b: 2}\n", ("a",), 'a: {"k": "v", b: 2}\n'),
        ("k: >\n  x\n  y\nb: 2\n", (), "k: v\nb: 2\n"),
        ("a: &x\n  b: 1\nc: *x\n", ("a",), "a: &x\n  b: 1\n  k: v\nc: *x\n"),
        ("a:\n  b:\n", ("a",), "a:\n  b:\n  k: v\n"),
    ],
)
def test_a_key_is_put_where_a_person_would_put_it(text: str, path: tuple[Any, ...], expected: str) -> None:
    """Insertion follows indentation, comments, flow style and anchors of the YAML text."""
    assert insert_key(text, "k", {path: "v"}) == expected


def test_a_path_without_a_mapping_is_refused() -> None:
    """A key cannot be inserted into a number."""
    with pytest.raises(DumpError, match="no mapping"):
        insert_key("a: 1\n", "k", {("a",): "v"})


keys = st.text("abcxyz", min_size=1, max_size=4)
leaves = (
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]))
)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(keys, trees, min_size=1, max_size=4), trees, st.sampled_from(["yaml", "json", "indented"]))
def test_an_insertion_changes_the_data_and_nothing_else(data: dict[str, Any], value: Any, form: str) -> None:
    """The new text has the new key, the old data, and every old character in order."""
    text = to_yaml(data) if form == "yaml" else json.dumps(data, indent=None if form == "json" else 2)
    new = insert_key(text, "new", {(): value})
    assert plain(parse(new, "x", "yaml" if form == "yaml" else "json", FOR_SUITES).root, lambda *_: None) == {
        **data,
        "new": value,
    }
    rest = iter(new)
    assert all(char in rest for char in text.rstrip())


def test_a_sheet_names_the_files_that_hold_other_cases(tmp_path: Path) -> None:
    """Cases in a referenced file have no slot; the file is listed."""
    (tmp_path / "cases.yaml").write_text("- {description: a, vars: {x: 1}}\n")
    file = tmp_path / "promptfooconfig.yaml"
    file.write_text("prompts: ['{{x}}']\nproviders: [openai:gpt-4o]\ntests: file://cases.yaml\n")
    found = sheet(file)
    assert (found.slots, [Path(name).name for name in found.elsewhere]) == ((), ["cases.yaml"])


# -- suites in code ---------------------------------------------------------------------------------------


def test_a_suite_gets_rubrics_that_say_that_nobody_has_read_them() -> None:
    """Drafted rubrics are marked unreviewed, and existing ones stay as they were."""
    suite = Suite("s", [Case("a", "Finds it", input="hi"), Case("b", Rubric(criteria=["Is polite"]))])
    made = generate_many(suite, Judge(ScriptedModel(lambda _: {"criteria": ITEMS})))
    assert made.sentence == "Criteria for 1 case, 1 case kept as they are."
    assert made.suite is not None
    assert made.suite["a"].rubric.ids == tuple(item["id"] for item in ITEMS)
    assert (made.suite["a"].rubric.reviewed, made.suite["b"].rubric) == (False, suite["b"].rubric)
    assert (made.usage.calls, made.to_dict()["kept"], "first" in str(made)) == (1, ["b"], False)
    assert made._repr_markdown_().startswith("**Criteria for 1 case")
    with pytest.raises(DefinitionError, match="no file was given"):
        made.save()


def test_a_file_of_a_suite_is_written_with_its_comments(server: Endpoint, tmp_path: Path) -> None:
    """`save` alone changes the file, and adds the provenance of each draft."""
    file = tmp_path / "s.yaml"
    file.write_text(NATIVE)
    made = generate_many(file, "openai/gpt-4o")
    assert file.read_text() == NATIVE
    made.save()
    text = file.read_text()
    assert "  # untouched\n" in text
    rubric = load_suite(file)["first"].rubric
    assert (rubric.reviewed, {*rubric.provenance}) == (False, {"writer", "material", "sources"})
    assert {*rubric.provenance["sources"]} == {"task", "expected outcome"}
    assert text.count("reviewed: false") + text.count('"reviewed": false') == 2


def test_files_that_hold_yes_or_no_alone_ask_for_nothing_else(server: Endpoint, tmp_path: Path) -> None:
    """The prompt offers polarities and levels only for a format that can keep them."""
    file = tmp_path / "s.yaml"
    for text, is_plain in ((AGENTV_1, True), (PROMPTFOO, True), (NATIVE, False)):
        file.write_text(text)
        generate_many(file, "openai/gpt-4o")
        assert ("polarity" not in prompt_of(server.requests[-1].body)) is is_plain


def test_a_case_that_a_budget_refuses_is_a_failure_of_its_own(server: Endpoint, tmp_path: Path) -> None:
    """The drafted case is saved, and the next run drafts the other."""
    file = tmp_path / "s.yaml"
    file.write_text(NATIVE)
    made = generate_many(file, "openai/gpt-4o", budget=Budget(calls=1))
    assert (len(made.made), [failure.kind for failure in made.failures.values()]) == (1, ["budget"])
    made.save()
    assert file.read_text().count("reviewed: false") == 1
    generate_many(file, "openai/gpt-4o").save()
    assert [len(case.rubric) for case in load_suite(file)] == [3, 1, 3]


@pytest.mark.parametrize("suite", [3, ["a"], None])
def test_what_is_no_suite_is_refused(suite: Any) -> None:
    """Numbers, lists and None are definition errors."""
    with pytest.raises(DefinitionError, match="suite"):
        generate_many(suite, "openai/x")


# -- pairs at the command line ----------------------------------------------------------------------------


def test_pairs_at_the_command_line_keep_what_tells_apart(paired: Endpoint, tmp_path: Path) -> None:
    """`--pairs` writes the criteria that stay and reports the held-out accuracy."""
    pairs, out = written_pairs(tmp_path, 10), tmp_path / "r.yaml"
    result = run("generate", "--outcome", "Says when", "--pairs", str(pairs), "-j", "openai/gpt-4o", "--out", str(out))
    assert (result.exit_code, result.stdout) == (0, "")
    assert loads(out.read_text()).ids == ("names-date", "names-sum")
    assert "2 of 4 criteria stay; the rubric ranks 5 held-out pairs right in 100 %" in result.stderr
    shown = run("generate", "--outcome", "Says when", "--pairs", str(pairs), "-j", "openai/gpt-4o", "--format", "json")
    data = json.loads(shown.stdout)
    assert (data["ok"], data["held_out"], [c["kept"] for c in data["criteria"]]) == (
        True,
        5,
        [True, True, False, False],
    )


def test_a_rubric_that_ranks_no_better_than_chance_is_an_exit_code(paired: Endpoint, tmp_path: Path) -> None:
    """Pairs that nothing tells apart end with 1 and print no rubric."""
    alike = tmp_path / "alike.jsonl"
    alike.write_text("".join(json.dumps({"chosen": f"good {n}", "rejected": f"bad {n}"}) + "\n" for n in range(6)))
    result = run("generate", "--outcome", "Says when", "--pairs", str(alike), "-j", "openai/gpt-4o")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "so there is no rubric" in result.stderr


def test_pairs_are_planned_without_a_request(paired: Endpoint, tmp_path: Path) -> None:
    """The plan gives a range of calls for drafts of 3 to 12 criteria."""
    planned = run("generate", "--pairs", str(written_pairs(tmp_path, 4)), "-j", "openai/gpt-4o", "--plan")
    told = "then 8 answers are graded by 3 to 12 criteria: 24 to 96 calls, at most $"
    assert (planned.exit_code, told in " ".join(planned.stdout.split())) == (0, True), planned.stdout
    assert not paired.requests


@pytest.fixture
def paired() -> Iterator[Endpoint]:
    """Serve a writer and a judge."""
    with openai_serving(write_or_judge) as endpoint:
        yield endpoint


def written_pairs(folder: Path, n: int) -> Path:
    file = folder / "pairs.jsonl"
    file.write_text("".join(json.dumps({"chosen": a, "rejected": b}) + "\n" for a, b in pairs_of_marks(n)))
    return file
