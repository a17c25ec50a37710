"""
The documentation pages of AgentV, promptfoo and mcptest: every block loads, and grades as its page promises.

No text of theirs stands here. The pages lie beside this checkout; their blocks are found and restored by rules
(`tests/restoring.py`), and what is expected is reckoned from what the block itself says.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from ruamel.yaml.error import YAMLError

from rubric import Judge, Jury, Levels, LoadError, Panel, ToolCall
from rubric.formats.suites import load_suite, loads_suite
from rubric.formats.yaml import to_yaml
from rubric.results.report_rows import Row
from rubric.suites.suite import Suite
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.values.answers import Likert
from rubric.values.checks import Script
from rubric.values.criteria import When
from rubric.values.rubrics import WHOLE, Rubric
from tests.agentv import written
from tests.places import SHARED
from tests.restoring import AGENTV_1, AGENTV_2, MCPTEST, Block, fenced, lined, loaded, squeezed
from tests.rows import each_row

SEEDS = SHARED / "seeds"
CORPUS = SHARED / "corpus"

FORMATS = {"000": "agentv-2", "001": "agentv-1", "002": "promptfoo", "003": "mcptest", "004": "agentv-1"}
"""The format of each page."""

COUNTS = {"000": 12, "001": 4, "002": 10, "003": 15, "004": 18}
"""How many YAML and JSON blocks a person finds on each page."""

ANSWER = "Here is an answer that says a few things."
"""What is graded, where the block has no response and the test does not care."""

pytestmark = pytest.mark.skipif(
    not all(any(SEEDS.glob(f"{number}_*.txt")) for number in FORMATS),
    reason="the documentation pages are not beside this checkout",
)


# -- the blocks -------------------------------------------------------------------------------------------


@cache
def page(number: str) -> str:
    """Return the text of a page; empty if it is not there."""
    return next((file.read_text("utf-8") for file in SEEDS.glob(f"{number}_*.txt")), "")


@cache
def blocks(number: str) -> list[Block]:
    """Return the blocks of a page, restored."""
    text = page(number)
    match FORMATS[number]:
        case "promptfoo":
            return fenced(text)
        case "agentv-1":
            return squeezed(text, AGENTV_1)
        case "agentv-2":
            return lined(text, AGENTV_2)
        case _:
            return lined(text, MCPTEST)


def the(number: str, *keys: str, without: str = "") -> Block:
    """Return the only valid block of a page with all these keys, at any depth, and without another."""
    found = [b for b in blocks(number) if b.language == "yaml" and is_valid(b) and {*keys} <= b.names()]
    (block,) = (b for b in found if not {*without.split()} & b.names())
    return block


def is_valid(block: Block) -> bool:
    """Say whether a block is YAML."""
    try:
        loaded(block.text)
    except YAMLError:
        return False
    return True


def every(*numbers: str, where: Callable[[Block], bool] = lambda _: True) -> list[Any]:
    """Return a parameter for each valid YAML block of these pages for which *where* holds: the page, and the block."""
    found = [(n, block) for n in numbers for block in blocks(n) if block.language == "yaml" and is_valid(block)]
    return [pytest.param(n, block, id=f"{n}:{block.line}") for n, block in found if where(block)]


def _shares_a_rubric(block: Block) -> bool:
    return {"execution", "evalcases"} <= block.names() and "version" not in block.names()


def _shared_alone() -> Block:
    """Return the block whose cases have no rubric but the one of the file."""
    (found,) = (b for b in blocks("004") if _shares_a_rubric(b) and not _own(b))
    return found


def _shared_and_own() -> list[Block]:
    """Return the blocks whose cases have a rubric beside the one of the file: there is one."""
    return [block for block in blocks("004") if _shares_a_rubric(block) and _own(block)]


def _own(block: Block) -> list[Any]:
    return [case for case in block.data["evalcases"] if "rubrics" in case]


@pytest.mark.parametrize("number", COUNTS)
def test_no_block_of_a_page_is_lost(number: str) -> None:
    """As many blocks are found as a person counts."""
    assert len(blocks(number)) == COUNTS[number]


# -- the restorer, against files that people have restored -------------------------------------------------------


def _corpus(pattern: str) -> list[Any]:
    return [loaded(file.read_text("utf-8")) for file in sorted(CORPUS.glob(pattern))]


def test_the_evals_of_mcptest_are_restored_as_in_the_collection() -> None:
    """Each file of the collection that has an eval of the page has the whole block of the page."""
    page_blocks = {block.data["evals"][0]["name"]: block.data for block in blocks("003")}
    files = {file["evals"][0]["name"]: file for file in _corpus("mcptest/*.yml") if file.get("evals")}
    shared = page_blocks.keys() & files.keys()
    assert len(shared) > len(page_blocks) / 2
    assert all(page_blocks[name] == files[name] for name in shared)


def _lists(data: Any, *names: str) -> Iterator[list[Any]]:
    """Yield the lists under these keys, at any depth."""
    if isinstance(data, Mapping):
        yield from (part for key, part in data.items() if key in names and isinstance(part, list))
    if isinstance(data, Mapping | list):
        for part in data.values() if isinstance(data, Mapping) else data:
            yield from _lists(part, *names)


@pytest.mark.parametrize(
    ("number", "files", "key"),
    [("000", "agentv/docs-head/*evaluation_rubrics.*", "assert"), ("001", "agentv/docs-g1/evaluation_*", "rubrics")],
)
def test_the_graders_of_agentv_are_restored_as_in_the_collection(number: str, files: str, key: str) -> None:
    """Every list of graders in the collected parts of the same pages is a list of the page."""
    restored = [found for block in blocks(number) for found in _lists(block.data, key)]
    collected = [found for data in _corpus(files) for found in _lists(data, key)]
    assert collected
    assert all(found in restored for found in collected)


# -- from a block to a suite, and to its row --------------------------------------------------------------------

TEXT = "Says what it should"
"""What an item checks to which the page gives no text."""


def suite_of(number: str, data: Any, **options: Any) -> Suite:
    """Return the suite of plain *data*, in the format of a page; a fragment is completed to a file."""
    return loads_suite(to_yaml(_whole(FORMATS[number], data)), FORMATS[number], **options)


def _whole(format_: str, data: Any) -> Any:
    """Return the content of a whole file in which *data*, a block, stands where a fragment of its kind may."""
    match format_:
        case "agentv-2":
            return _whole_2(data)
        case "agentv-1":
            return _whole_1(data)
        case "promptfoo" if "tests" not in data:
            asserts = {} if "assert" in data else {"assert": [{"type": "llm-rubric", "value": TEXT}]}
            return {"tests": [{"vars": {"question": "Why?"}, **asserts}], **_moved(data)}
        case _:
            return data


def _moved(data: dict[str, Any]) -> dict[str, Any]:
    """Return the assertions of a test as those of all tests, which is where a file may have them."""
    return {"defaultTest": data} if "assert" in data else data


def _whole_2(data: dict[str, Any]) -> dict[str, Any]:
    if "tests" in data:
        return data
    test = {"id": "t1", "input": "Why?", "assert": data.get("assert", [TEXT])}
    shared = {"default_test": data} if "options" in data else data
    return {**{key: part for key, part in shared.items() if key != "assert"}, "tests": [test]}


def _whole_1(data: Any) -> Any:
    case = {"id": "c1", "input": "Why?"}
    if isinstance(data, list):
        return {"evalcases": [{**case, "rubrics": _worded(data)}]}
    if "evalcases" in data:
        return data
    if "execution" in data:
        return {**data, "evalcases": [case]}
    if "evaluators" in data:
        return {"evalcases": [{**case, "execution": data}]}
    if "rubrics" in data:
        return {"evalcases": [{**case, "rubrics": _worded(data["rubrics"])}]}
    return {"evalcases": [{**case, "rubrics": _worded([data])}]}


def _worded(items: list[Any]) -> list[Any]:
    return [item if isinstance(item, str) else {"expected_outcome": TEXT, **item} for item in items]


def row_of(suite: Suite, script: Any, output: str = ANSWER, **options: Any) -> Row:
    """Return the row of the only case of *suite*, judged by a *script*; *output* is graded where there is no response."""
    (case,) = suite
    held = evolve(suite, cases=[case if case.output is not None else case.answered(output)])
    model = script if isinstance(script, ScriptedModel) else ScriptedModel(script)
    (row,) = held.run(Judge(model, repairs=0), **options)
    return row


def outcome(row: Row) -> tuple[Any, Any]:
    """Return the status and the score of a row."""
    return row.status, row.score


def sent(model: ScriptedModel, ask: int = 0) -> str:
    """Return all that *model* was sent in one ask."""
    return "\n".join(message.text for message in model.asks[ask].messages)


def items_of(rubric: Rubric) -> list[Any]:
    """Return what judges answer, nested rubrics included."""
    found = [items_of(c.answer) if isinstance(c.answer, Rubric) else [c] for c in rubric.judged]
    return [item for part in found for item in part if not isinstance(item.answer, Script)]


def _names_a_file(block: Block) -> bool:
    """Say whether a block is about a file that it names: see the tests of `default_test`."""
    return bool(block.names() & {"refs", "rubric_prompt"}) or block.names() == {"default_test"}


_SELF_CONTAINED = every(*FORMATS, where=lambda block: not _names_a_file(block))
_WHOLE = every("000", "001", "003", "004", where=lambda block: bool({"tests", "evals", "evalcases"} & block.names()))


@each_row(("number", "block"), _SELF_CONTAINED)
def test_every_block_loads_in_the_format_of_its_page(number: str, block: Block) -> None:
    """Completed to a file where it is a fragment, it has cases, and every item of theirs says what it asks."""
    suite = suite_of(number, block.data)
    assert len(suite) >= 1
    assert suite.format == FORMATS[number]
    assert all(item.text for case in suite for item in items_of(case.rubric))


@each_row(("number", "block"), _WHOLE)
def test_a_whole_file_is_recognised_without_being_told(number: str, block: Block) -> None:
    """A block with cases is read in the format of its page; a fragment may be anybody's."""
    assert loads_suite(block.text).format == FORMATS[number]


# -- AgentV, both generations: weights and gates -----------------------------------------------------------------


def _said(item: Any, *, good: bool) -> Any:
    return (10 if good else 0) if isinstance(item.answer, Levels) else good


def _is_checklist(block: Block) -> bool:
    """Say whether a block is one grader with items."""
    several = {"command", "script"} & block.names() or block in _shared_and_own()
    return bool({"rubrics", "assert", "id"} & block.names()) and not several


@each_row(("number", "block"), every("000", "001", "004", where=_is_checklist))
def test_an_item_that_is_not_satisfied_costs_its_weight_and_fails_where_required(number: str, block: Block) -> None:
    """The score is the share of the satisfied weight; a required item fails the case, others only through the mean."""
    suite = suite_of(number, block.data)
    rubric = suite.cases[0].rubric
    whole = sum(item.weight for item in rubric.criteria)
    assert row_of(suite, {c.id: _said(c, good=True) for c in rubric.criteria}).score == 1
    for bad in rubric.criteria:
        row = row_of(suite, {c.id: _said(c, good=c is not bad) for c in rubric.criteria})
        assert row.score == pytest.approx(1 - bad.weight / whole)
        assert row.gates == ((bad.id,) if bad.required else ())
        assert outcome(row)[0] == ("passed" if not bad.required and 1 - bad.weight / whole >= 0.8 else "failed")


@pytest.mark.parametrize("number", ["000", "001"])
def test_the_weights_of_the_page_count(number: str) -> None:
    """Everything but the last, lightest item: 3.5 of 4.5."""
    data = the(number, "weight", without="score_ranges").data
    suite = suite_of(number, data)
    criteria = suite.cases[0].rubric.criteria
    row = row_of(suite, {c.id: c is not criteria[-1] for c in criteria})
    assert row.score == pytest.approx(3.5 / 4.5)
    assert row.verdict == ("fail" if number == "000" else "borderline")


def test_an_item_is_required_by_default_in_generation_2_alone() -> None:
    """The pages say so; the loader can be told otherwise."""
    gates = {n: suite_of(n, the(n, "weight", without="score_ranges").data).cases[0].rubric for n in ("000", "001")}
    assert [c.required for c in gates["000"].criteria] == [True, True, True]
    assert [c.required for c in gates["001"].criteria] == [True, False, False]
    told = suite_of("000", the("000", "weight", without="score_ranges").data, required=False).cases[0].rubric
    assert [c.required for c in told.criteria] == [True, False, False]


def _verdicts(number: str) -> dict[str, str]:
    """Return the score from which each verdict holds, as the page's table says."""
    found = re.findall(r"^(pass|borderline|fail)\W*([≥<]) (0\.\d)", page(number), re.MULTILINE)
    return {verdict: bound for verdict, sign, bound in found if sign == "≥"}


@pytest.mark.parametrize("number", ["000", "001"])
def test_an_analytic_item_scores_tenths_and_the_table_gives_the_verdict(number: str) -> None:
    """Of the scores 0 to 10, those at or above a bound of the table get its verdict; the band is told."""
    block = the(number, "score_ranges")
    suite = suite_of(number, block.data)
    (item,) = suite.cases[0].rubric.criteria
    ranges = next(iter(_lists(block.data, "rubrics", "value")))[0]["score_ranges"]
    bounds = sorted(((float(bound), name) for name, bound in _verdicts(number).items()), reverse=True)
    assert bounds[0] == (0.8, "pass")
    for raw in range(11):
        row = row_of(suite, {item.id: raw})
        assert row.score == raw / 10
        assert row.verdict == next((name for bound, name in bounds if raw / 10 >= bound), "fail")
        assert row.entries[0].level == ranges[max(low for low in ranges if low <= raw)]


# -- 000: AgentV, generation 2 -------------------------------------------------------------------------------------


def test_plain_strings_are_one_checklist_of_required_items() -> None:
    """Bare strings and an explicit grader are the same case; one miss fails it whatever the mean."""
    bare = suite_of("000", the("000", "tests", without="type").data)
    explicit = suite_of("000", the("000", "tests", "value", without="command").data)
    assert bare.cases == explicit.cases
    (case,) = bare
    assert all(c.required for c in case.rubric.criteria)
    row = row_of(bare, [True, True, False])
    assert (*outcome(row), len(row.gates)) == ("failed", pytest.approx(2 / 3), 1)


def test_a_case_says_what_is_asked_and_what_is_wanted() -> None:
    """The judge is shown the input and the criteria of the case."""
    data = the("000", "tests", without="type").data
    model = ScriptedModel([True] * 3)
    row_of(suite_of("000", data), model)
    test = data["tests"][0]
    assert {test["input"], test["criteria"], test["assert"][0]} <= {*sent(model).splitlines()}


PROMPT = "Be strict.\n{{ output }}\nJudge it by: {{ criteria }}\n"


def _default_test(form: str) -> str:
    return next(
        b.text for b in blocks("000") if isinstance(b.data, dict) and str(b.data.get("default_test")).startswith(form)
    )


@pytest.mark.parametrize("form", ["{", "file://", "ref://"])
def test_default_test_gives_all_judges_a_prompt(form: str, tmp_path: Path) -> None:
    """Inline, from a file, or by a name of the project's: the judge gets the text of the file it names."""
    options = next(b for b in blocks("000") if b.data.keys() == {"options"})
    prompt = options.data["options"]["rubric_prompt"].removeprefix("file://")
    for folder in (tmp_path, tmp_path / ".agentv"):  # told from the file that names it
        written(folder / prompt, PROMPT)
    written(tmp_path / ".agentv" / "default-test.yaml", options.text)
    written(tmp_path / ".agentv" / "config.yaml", the("000", "refs").text)
    tests = the("000", "tests", "value", without="command")
    file = written(tmp_path / "suite.eval.yaml", _default_test(form) + tests.text)
    model = ScriptedModel([True] * 3)
    suite = load_suite(file)
    assert row_of(suite, model).status == "passed"
    assert sent(model).startswith(f"Be strict.\n{ANSWER}\nJudge it by: {items_of(suite.cases[0].rubric)[0].text}")


def test_a_variable_of_the_environment_must_be_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root of the project is known without being told; any other variable is shown only where it is declared."""
    monkeypatch.setenv("OWN_ROOT", str(tmp_path))
    written(tmp_path / ".agentv" / "default-test.yaml", "threshold: 0.5\n")
    text = _default_test("file://") + the("000", "tests", without="type").text
    file = written(tmp_path / "a.eval.yaml", text.replace("AGENTV_REPO_ROOT", "OWN_ROOT"))
    with pytest.raises(LoadError, match=r"a\.eval\.yaml:1:\d+: .*OWN_ROOT"):
        load_suite(file)
    assert load_suite(file, environ={"OWN_ROOT": str(tmp_path)}).cases[0].rubric.threshold == 0.5


def test_contradiction_passes_on_silence_and_is_not_turned_over() -> None:
    """An answer that never mentions the fact: nothing conflicts, so that item is good; the other one lacks support."""
    block = the("000", "operator")
    suite = suite_of("000", block.data)
    supported, unopposed = suite.cases[0].rubric.criteria
    assert (supported.polarity, unopposed.polarity) == ("correctness", "contradiction")
    row = row_of(suite, {supported.id: False, unopposed.id: True})
    assert (row.gates, row.score) == ((supported.id,), 0.5)
    assert [entry.contribution for entry in row.entries] == [0, 1]
    assert row_of(suite, {supported.id: True, unopposed.id: True}).status == "passed"
    assert row_of(suite, {supported.id: True, unopposed.id: False}).gates == (unopposed.id,)


def test_the_judge_is_told_what_an_operator_means() -> None:
    """Support that is needed and silence that is fine are asked for in other words."""
    model = ScriptedModel([True, True])
    row_of(suite_of("000", the("000", "operator").data), model)
    support, silence = (ask.messages[-1].parts[-1] for ask in model.asks)
    first, second = suite_of("000", the("000", "operator").data).cases[0].rubric.criteria
    assert support.replace(first.text, "") != silence.replace(second.text, "")


def test_items_may_be_about_what_the_agent_did() -> None:
    """Tool calls and file changes are shown to the judge where there are some."""
    suite = suite_of("000", the("000", "assert", without="type tests").data)
    calls = [
        ToolCall("Skill", arguments={"skill": "ship-it"}),
        ToolCall("Read", arguments={"file_path": "config.toml"}),
    ]
    case = evolve(suite.cases[0], tool_calls=calls, file_changes="+++ b/config.toml")
    model = ScriptedModel([True, True])
    assert row_of(evolve(suite, cases=[case]), model).status == "passed"
    assert all(shown in sent(model) for shown in ("ship-it", "config.toml", "Read", "+++ b/"))


def _with_script(number: str, folder: Path, said: str) -> Suite:
    """Return the suite of the page with a program beside its rubric, as a file with that program (*said*: its output)."""
    block = the(number, "command" if number == "000" else "script")
    suite = load_suite(written(folder / "a.eval.yaml", block.text), FORMATS[number])
    (program,) = (c.answer for c in suite.cases[0].rubric.criteria if isinstance(c.answer, Script))
    file = written(folder / program.command[0], f"#!{sys.executable}\nprint({said!r})\n")
    file.chmod(0o755)
    return suite


@pytest.mark.parametrize("number", ["000", "001"])
def test_a_program_beside_a_rubric_runs_with_permission_alone(number: str, tmp_path: Path) -> None:
    """Without it the case is ungraded, never passed; with it both graders count alike."""
    suite = _with_script(number, tmp_path, '{"score": 0.7, "reason": "one warning"}')
    refused = row_of(suite, [True] * 3)
    assert outcome(refused) == ("ungraded", None)
    assert "allow_scripts" in refused.reason
    allowed = row_of(suite, [True] * 3, allow_scripts=True)
    assert outcome(allowed) == ("passed", pytest.approx(0.85))
    missed = row_of(suite, [True, False, True], allow_scripts=True)
    assert missed.status == "failed"


# -- 001 and 004: AgentV, generation 1 ------------------------------------------------------------------------------


def test_messages_of_a_case_are_what_is_asked() -> None:
    """One message of the user's is the input; texts keep what looks like code."""
    for number, key in (("001", "input_messages"), ("004", "name")):
        found = [b for b in blocks(number) if key in b.names() and "content" in b.names() and "script" not in b.names()]
        (case,) = suite_of(number, found[0].data)
        message = next(iter(_lists(found[0].data, "input", "input_messages")))[0]
        assert case.input.strip() == message["content"].strip()


def test_the_worked_example_comes_to_its_figure() -> None:
    """Scores of 0.9, 0.8 and 0.7 at weights of 3, 1 and 2 are 4.9/6, as the page reckons."""
    block = next(b for b in blocks("004") if "# score:" in b.text)
    figures = re.findall(r"- id: (\S+) # score: ([\d.]+), weight: ([\d.]+)", block.text)
    bands = next(b for b in blocks("004") if isinstance(b.data, dict) and b.data.keys() == {"score_ranges"}).data
    items = [{"id": id_, "weight": float(weight), **bands} for id_, _, weight in figures]
    row = row_of(suite_of("004", {"rubrics": items}), {id_: round(float(score) * 10) for id_, score, _ in figures})
    assert row.score == pytest.approx(4.9 / 6)
    assert f"{row.score:.3f}" in page("004")
    assert row.verdict == "pass"


def test_scores_are_placed_as_the_table_says() -> None:
    """Linearly between 0 and 10, and never rounded to a band."""
    table = re.findall(r"^\| (\d+) \| ([\d.]+) \|$", page("004"), re.MULTILINE)
    bands = next(b for b in blocks("004") if isinstance(b.data, dict) and b.data.keys() == {"score_ranges"})
    assert len(table) == 3
    for raw, placed in table:
        assert row_of(suite_of("004", bands.data), [int(raw)]).score == float(placed)


def test_rubrics_of_a_case_those_of_the_file_and_both() -> None:
    """A case is graded by its own, by what all share, or by the mean of the two."""
    inline = suite_of("004", the("004", "evalcases", without="execution").data).cases[0]
    assert [c.required for c in inline.rubric.criteria] == [True, True]
    alone, both = (suite_of("004", block.data).cases[0] for block in (_shared_alone(), *_shared_and_own()))
    assert len(items_of(alone.rubric)) == 2
    own, shared = both.rubric.criteria
    assert isinstance(own.answer, Rubric)
    assert isinstance(shared.answer, Rubric)
    assert (len(items_of(own.answer)), len(items_of(shared.answer))) == (2, 1)


def test_a_combined_case_fails_by_an_item_of_its_own() -> None:
    """Its own strings are required, so one miss fails it; the shared item is not, and takes half of the score."""
    suite = suite_of("004", _shared_and_own()[0].data)
    first, second, shared = (item.id for item in items_of(suite.cases[0].rubric))
    row = row_of(suite, {first: True, second: True, shared: False})
    assert (row.score, row.gates, row.status) == (0.5, (), "failed")
    missed = row_of(suite, {first: True, second: False, shared: True})
    assert (missed.score, missed.status, len(missed.gates)) == (0.75, "failed", 1)


def test_bands_and_yes_or_no_stand_side_by_side() -> None:
    """Each item is judged in its own way; a required one with bands that gets 0 fails the case."""
    suite = suite_of("004", the("004", "name", "version").data)
    criteria = suite.cases[0].rubric.criteria
    banded = [c for c in criteria if isinstance(c.answer, Levels)]
    assert 0 < len(banded) < len(criteria)
    row = row_of(suite, {c.id: 9 if c in banded else True for c in criteria})
    whole = sum(c.weight for c in criteria)
    assert row.score == pytest.approx(sum(c.weight * (0.9 if c in banded else 1) for c in criteria) / whole)
    assert row.status == "passed"


def test_ids_are_kept_and_a_missing_text_is_told_item_by_item() -> None:
    """Lists of ids alone are not a rubric: each lacks its text, at its own line; with texts, the ids are the page's."""
    bare = [b for b in blocks("004") if b.names() - {"rubrics"} <= {"id", "weight"} and "id" in b.names()]
    assert len(bare) == 4
    for block in bare:
        items = block.data if isinstance(block.data, list) else block.data["rubrics"]
        ids = [item["id"] for item in items]
        assert [c.id for c in suite_of("004", block.data).cases[0].rubric.criteria] == ids
        bare_suite = loads_suite(to_yaml({"evalcases": [{"id": "c1", "input": "?", "rubrics": items}]}), "agentv-1")
        told = [warning for warning in bare_suite.warnings if "expected_outcome" in warning.message]
        assert len({warning.line for warning in told}) == len(items)


def test_an_outcome_of_several_words_is_asked_as_it_stands() -> None:
    """The texts of the best practices reach the judge whole."""
    found = [b for b in blocks("004") if b.names() == {"expected_outcome"}]
    assert len(found) == 2
    for block in found:
        model = ScriptedModel([True])
        row_of(suite_of("004", block.data), model)
        assert block.data["expected_outcome"].strip() in sent(model)


# -- 002: promptfoo -----------------------------------------------------------------------------------------------


def _broken() -> list[Block]:
    return [block for block in blocks("002") if block.language == "yaml" and not is_valid(block)]


def quoted(text: str) -> str:
    """Return YAML with quotes around the text that has a colon in it, and what was nested under it beside it."""
    made = re.sub(r"value:\s+(\S.*: \".*)$", r"value: '\1'", text, flags=re.MULTILINE)
    lines = made.splitlines()
    for number, line in enumerate(lines[:-1]):
        column = len(line) - len(line.lstrip("- "))
        after = lines[number + 1]
        if line.endswith("'") and len(after) - len(after.lstrip()) > column:
            lines[number + 1] = " " * column + after.lstrip()
    return "\n".join(lines) + "\n"


def _mended(*keys: str, without: str = "") -> Block:
    found = [Block(quoted(block.text), block.line) for block in _broken()]
    (block,) = (b for b in found if {*keys} <= b.names() and not {*without.split()} & b.names())
    return block


def test_what_is_no_yaml_is_told_with_its_place_and_cure() -> None:
    """Three blocks of the page have a colon in a text without quotes: an error at that line, which says to quote it."""
    assert len(_broken()) == 3
    for block in _broken():
        with pytest.raises(LoadError, match="quote") as caught:
            loads_suite(block.text, "promptfoo")
        (problem,) = caught.value.problems
        line = block.text.splitlines()[problem.line - 1]
        assert problem.column > line.index(': "')


def test_a_text_with_quotes_around_it_shows_the_variables_of_each_test(tmp_path: Path) -> None:
    """Quoted, the first of them has a case for each prompt and each question, and the question is in the rubric."""
    block = _mended("prompts")
    for name in block.data["prompts"]:
        written(tmp_path / name.removeprefix("file://"), f"{name}: {{{{question}}}}")
    suite = load_suite(written(tmp_path / "promptfooconfig.yaml", block.text))
    questions = [test["vars"]["question"] for test in block.data["tests"]]
    assert len(suite) == len(block.data["prompts"]) * len(questions)
    for question in questions:
        cases = [case for case in suite if f'"{question}"' in case.rubric.text]
        assert len(cases) == len(block.data["prompts"])
        assert all(question in case.input for case in cases)


def test_the_grader_may_be_named_by_options_and_by_the_assertion() -> None:
    """Both spellings of the page name the same judge."""
    by_options = loads_suite(_mended("defaultTest", "provider").text, "promptfoo")
    by_assertion = loads_suite(_mended("provider", without="defaultTest").text, "promptfoo")
    judges = {case.judge or by_options.judge for case in by_options} | {case.judge for case in by_assertion}
    assert judges == {Judge("openai/gpt-5-mini")}
    assert len(by_options) == 2


def test_the_judge_own_flag_decides_without_a_threshold() -> None:
    """A low score that the judge passes is a pass; a high one that it fails is a fail."""
    suite = suite_of(
        "002", next(b for b in blocks("002") if b.text.startswith("assert") and len(b.data["assert"]) == 1).data
    )
    assert suite.cases[0].rubric.threshold is None
    assert row_of(suite, {WHOLE: Says(0.1, flag=True)}).status == "passed"
    assert row_of(suite, {WHOLE: Says(0.9, flag=False)}).status == "failed"


def test_the_reply_that_the_page_shows_is_read() -> None:
    """Its object, comments and all, is a pass at a score of a half."""
    (reply,) = (block for block in blocks("002") if block.language == "json")
    suite = suite_of("002", next(b for b in blocks("002") if b.text.startswith("assert")).data)
    row = row_of(suite, [reply.text])
    assert outcome(row) == ("passed", 0.5)


@pytest.mark.parametrize(("number", "block"), every("002", where=lambda block: "assert" in block.names()))
def test_the_text_of_a_rubric_reaches_the_judge_whole(number: str, block: Block) -> None:
    """Several lines, instructions on the scale and on the language included."""
    by_category = "category" in block.text
    model = ScriptedModel(['{"category": "B", "reason": "more"}' if by_category else Says(0.5, flag=True)])
    assert row_of(suite_of(number, block.data), model).score == (1 if by_category else 0.5)
    assert block.data["assert"][0]["value"].strip() in sent(model)


@each_row(
    ("category", "score"), [("A", 1), ("B", 1), ("C", 1), ("D", 0), ("E", 0), ("A=Teilmenge", None), (None, None)]
)
def test_a_prompt_that_asks_for_a_category_is_scored_by_it(category: str | None, score: float | None) -> None:
    """The page calls E irrelevant; a pass flag in the place of the category decides nothing."""
    block = next(b for b in blocks("002") if "category" in b.text)
    reply = {"pass": True} if category is None else {"category": category, "reason": "so"}
    row = row_of(suite_of("002", block.data), [json.dumps(reply)] * 3)
    assert (row.score, row.status) == (score, "ungraded" if score is None else "passed" if score else "failed")


def _messages(template: str, **values: str) -> list[tuple[str, str]]:
    """Return the messages that the JSON of a page stands for, without its comments, with *values* put in."""
    text = re.sub(r"^\s*//.*$", "", template, flags=re.MULTILINE).replace('\\\\"', '\\"')
    return [(m["role"], re.sub(r"\{\{ ?(\w+) ?\}\}", lambda f: values[f[1]], m["content"])) for m in json.loads(text)]


@pytest.mark.parametrize(("number", "block"), every("002", where=lambda block: "rubricPrompt" in block.names()))
def test_messages_of_ones_own_are_sent_word_for_word(number: str, block: Block) -> None:
    """In English and in German, with the output and the rubric filled in, and without the comments."""
    template = re.search(r"rubricPrompt: \|\n((?: +.*\n)+)", block.text)
    assert template is not None
    suite = suite_of(number, block.data)
    reply = '{"reason": "gut", "category": "C"}' if "category" in template[1] else '{"pass": true, "score": 0.9}'
    model = ScriptedModel([reply])
    assert row_of(suite, model).status == "passed"
    value = block.data["assert"][0]["value"] if "assert" in block.data else TEXT
    wanted = _messages(template[1], output=ANSWER, rubric=value)
    assert [(message.role, message.text) for message in model.asks[0].messages] == wanted


# -- 003: mcptest --------------------------------------------------------------------------------------------------


def mcptest(*keys: str, without: str = "") -> Suite:
    """Return the suite of the block of the page with these keys."""
    return suite_of("003", the("003", *keys, without=without).data)


def _first_form() -> Suite:
    (found,) = (
        b for b in blocks("003") if isinstance(b.data["evals"][0]["rubric"], str) and "response" not in b.names()
    )
    return suite_of("003", found.data)


def test_a_free_text_is_one_judgement_with_a_threshold() -> None:
    """At 0.7 it passes, below it fails; one call."""
    suite = _first_form()
    model = ScriptedModel({WHOLE: 0.7})
    assert row_of(suite, model).status == "passed"
    assert len(model.asks) == 1
    assert row_of(suite, {WHOLE: 0.69}).status == "failed"


def test_criteria_are_weighed_and_told_one_by_one() -> None:
    """Two thirds and one third; each has its own reason; below 0.8 it fails."""
    suite = mcptest("weight")
    day, told = suite.cases[0].rubric.criteria
    row = row_of(suite, {day.id: Says(1, "the right day"), told.id: Says(0.4, "only half")})
    assert row.score == pytest.approx(0.8)
    assert row.status == "passed"
    assert [entry.reason for entry in row.entries] == ["the right day", "only half"]
    assert row_of(suite, {day.id: 0.4, told.id: 1}).score == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("walk", "score", "status"), [((0.5, 0.9), 1.0, "passed"), ((1, 0.49), 0.4, "failed"), ((0.2,), 0.0, "failed")]
)
def test_a_tree_is_walked_to_its_leaf(walk: tuple[float, ...], score: float, status: str) -> None:
    """Yes from 0.5; only what is reached is asked; the path and the leaf's reason are told."""
    block = the("003", "tree")
    suite = suite_of("003", block.data)
    model = ScriptedModel(list(walk))
    row = row_of(suite, model)
    assert (row.score, row.status) == (score, status)
    assert [step.yes for step in row.path] == [said >= 0.5 for said in walk]
    assert len(model.asks) == len(walk)
    leaf = block.data["evals"][0]["rubric"]["tree"]
    for step in row.path:
        leaf = leaf["yes" if step.yes else "no"]
    assert leaf["score"] == score
    assert row.entries[0].reason == leaf["reason"]


def test_a_named_rubric_serves_several_evals_and_one_may_raise_its_bar() -> None:
    """The same criteria; 0.8 passes the one and fails the other."""
    suite = mcptest("ref")
    first, second = suite
    assert first.rubric.criteria == second.rubric.criteria
    report = suite.run(Judge(ScriptedModel({c.id: 0.8 for c in first.rubric.criteria})))
    assert [row.status for row in report] == ["passed", "failed"]
    assert [row.threshold for row in report] == [0.7, 0.9]


def test_an_unknown_name_is_told_when_the_file_is_loaded() -> None:
    """Of a rubric, a preset, an aggregation or a scale: an error at its line, with what there is."""
    for key, value in (("ref", "helpfull"), ("preset", "groundednes"), ("aggregation", "mean"), ("scale", "stars")):
        data = deepcopy(the("003", key).data)
        rubric = data["evals"][0]["rubric"]
        rubric[key] = value
        with pytest.raises(LoadError, match=rf"\d+:\d+: .*{key}"):
            suite_of("003", data)


def test_required_and_guard_gate_whatever_the_mean() -> None:
    """A required item below the threshold fails; a guard turns its score over, and fails when the bad thing is there."""
    suite = mcptest("guard")
    total, leak = suite.cases[0].rubric.criteria
    clean = row_of(suite, {total.id: 1, leak.id: 0})
    assert outcome(clean) == ("passed", 1)
    leaking = row_of(suite, {total.id: 1, leak.id: 1})
    assert (leaking.status, leaking.score, leaking.gates) == ("failed", 0.5, (leak.id,))
    wrong = row_of(suite, {total.id: 0.6, leak.id: 0})
    assert (*outcome(wrong), wrong.gates) == ("failed", pytest.approx(0.8), (total.id,))


def test_anchors_are_shown_to_the_judge_of_their_criterion() -> None:
    """Each with its score, in two decimals, under a heading; without a threshold 0.7 is the bar."""
    block = the("003", "examples")
    model = ScriptedModel([0.7])
    row = row_of(suite_of("003", block.data), model)
    assert (row.threshold, row.status) == (0.7, "passed")
    shown = sent(model)
    assert "Calibration examples" in shown
    for anchor in next(iter(_lists(block.data, "examples"))):
        assert f'Response: "{anchor["response"]}" -> score {anchor["score"]:.2f}' in shown


def test_a_verdict_without_a_quote_scores_nothing_and_gates() -> None:
    """What is quoted word for word counts and is shown; no quote, or words that are not there, are a 0 and a gate."""
    suite = mcptest("require_evidence")
    case = suite.cases[0]
    words = " ".join(str(case.output).split()[:2])
    version, change = case.rubric.criteria
    backed = row_of(suite, {version.id: Says(1, evidence=(words,)), change.id: Says(1, evidence=(str(case.output),))})
    assert (backed.status, backed.entries[0].evidence[0].text) == ("passed", words)
    for quote in ((), ("never said",)):
        row = row_of(suite, {version.id: Says(1, evidence=(words,)), change.id: Says(1, evidence=quote)})
        assert (row.score, row.gates) == (0.5, (change.id,))


def test_a_criterion_is_judged_only_when_it_applies() -> None:
    """Its own threshold gates it; where the word is not in the answer it is not asked, and the case passes empty."""
    suite = mcptest("when")
    (only,) = suite.cases[0].rubric.criteria
    assert isinstance(only.when, When)
    assert row_of(suite, {only.id: 0.9}).status == "passed"
    row = row_of(suite, {only.id: 0.85})
    assert (row.score, row.status, row.gates) == (0.85, "failed", (only.id,))
    model = ScriptedModel([])
    calm = row_of(evolve(suite, cases=[suite.cases[0].answered("All is well.")]), model)
    assert (calm.status, calm.vacuous, model.asks) == ("passed", True, [])


def test_the_worst_criterion_is_the_score_and_people_see_a_scale() -> None:
    """0.75 on a scale of 1 to 5 is 4.0/5; the other criterion does not help."""
    suite = mcptest("aggregation")
    best, worst = suite.cases[0].rubric.criteria
    row = row_of(suite, {best.id: 1, worst.id: 0.75})
    assert (row.score, row.shown, row.status) == (0.75, "4.0/5", "passed")
    assert suite.cases[0].rubric.scale == Likert(1, 5)
    assert row_of(suite, {best.id: 1, worst.id: 0.6}).status == "failed"


def _judged(suite: Suite, *scripts: list[Any]) -> Row:
    """Return the row of a suite whose judges are replaced by scripts, one a member, under the rule of its file."""
    (case,) = suite
    judges = [Judge(ScriptedModel(script), repairs=0) for script in scripts]
    bench = case.judge
    assert isinstance(bench, Jury | Panel)
    (row,) = suite.run(evolve(bench, judge=judges[0]) if isinstance(bench, Jury) else evolve(bench, judges=judges))
    return row


def test_two_of_three_votes_pass_a_jury() -> None:
    """The score is the mean, the calls are counted together, and the plan knows them beforehand."""
    suite = mcptest("jury")
    row = _judged(suite, [0.9, 0.2, 0.7])
    assert (*outcome(row), row.usage.calls) == ("passed", pytest.approx(0.6), 3)
    assert _judged(suite, [0.9, 0.2, 0.6]).status == "failed"
    jury = suite.cases[0].judge
    assert isinstance(jury, Jury)
    assert suite.plan(evolve(jury, judge="offline")).calls == 3
    assert jury.judge == Judge(the("003", "jury").data["evals"][0]["judge"]["model"])


def test_an_even_split_of_a_panel_fails_where_the_file_says_so() -> None:
    """One vote each is a tie; the score is the mean of the members all the same."""
    suite = mcptest("panel")
    row = _judged(suite, [0.9], [0.5])
    assert outcome(row) == ("failed", pytest.approx(0.7))
    assert _judged(suite, [0.7], [0.7]).status == "passed"
    panel = suite.cases[0].judge
    assert isinstance(panel, Panel)
    assert panel.judges == tuple(Judge(name) for name in the("003", "panel").data["evals"][0]["judge"]["panel"])


def test_a_preset_takes_further_criteria_and_another_threshold() -> None:
    """Its own come first; 0.8 is the bar."""
    suite = mcptest("preset")
    *own, further = suite.cases[0].rubric.criteria
    assert further.id == the("003", "preset").data["evals"][0]["rubric"]["criteria"][0]["name"]
    scores = dict.fromkeys([criterion.id for criterion in own], 1.0)
    assert len(own) > 1
    assert row_of(suite, {**scores, further.id: 0.0}).score == pytest.approx(0.8)
    assert row_of(suite, {**scores, further.id: 0.0}).status == "passed"
    assert row_of(suite, {**scores, own[0].id: 0.9, further.id: 0.0}).status == "failed"


def test_every_preset_of_the_page_is_there() -> None:
    """Each name in its table is a rubric."""
    table = re.search(r"^\| Preset \|.*\n\|[-|]+\n((?:[\w-]+ \|.*\n)+)", page("003"), re.MULTILINE)
    assert table is not None
    names = re.findall(r"^([\w-]+) \|", table[1], re.MULTILINE)
    assert len(names) == 5
    for name in names:
        (case,) = suite_of("003", {"evals": [{"name": "a", "prompt": "?", "rubric": {"preset": name}}]})
        assert case.rubric.criteria


def test_a_fixed_response_is_graded_as_it_stands() -> None:
    """The judge is shown that very text; the eval's own threshold counts, and no target is asked."""
    (block,) = (b for b in blocks("003") if b.data["evals"][0].keys() >= {"response", "threshold"})
    suite = suite_of("003", block.data)
    model = ScriptedModel({WHOLE: 0.6})
    (row,) = suite.run(Judge(model), target=lambda _: pytest.fail("the target was asked"))
    assert outcome(row) == ("passed", 0.6)
    assert block.data["evals"][0]["response"] in sent(model)
    assert row_of(suite, {WHOLE: 0.59}).status == "failed"


def _live() -> list[Block]:
    return [block for block in blocks("003") if "response" not in block.names()]


def test_a_live_eval_waits_for_a_target() -> None:
    """Without one it is deferred, which is not a pass unless one says so; with one, what the target says is graded."""
    assert len(_live()) == 4
    for block in _live():
        suite = suite_of("003", block.data)
        judge = Judge(ScriptedModel(lambda _: 1.0))
        assert [row.status for row in suite.run(judge)] == ["deferred"]
        assert not suite.run(judge).passed
        assert suite.run(judge, deferred="pass").passed
        (row,) = suite.run(judge, target=lambda case: f"Done: {case.input}")
        assert (row.status, row.output) == ("passed", f"Done: {block.data['evals'][0]['prompt']}")


def test_without_a_key_every_eval_is_deferred_with_a_note() -> None:
    """Nobody to judge is neither a pass nor a fail; one can have it count as a pass."""
    for block in blocks("003"):
        report = suite_of("003", block.data).run()
        assert {row.status for row in report} == {"deferred"}
        assert all(row.reason for row in report)
        assert report.exit_code == 2
        assert evolve(report, deferred="pass").passed


def test_a_matrix_has_a_cell_for_each_model_and_prompt() -> None:
    """Two by two are four rows, each named for its coordinates, under the same rubric."""
    block = the("003", "matrix")
    suite = suite_of("003", block.data)
    axes = block.data["evals"][0]["matrix"]
    wanted = {(model, prompt) for model in axes["models"] for prompt in axes["prompts"]}
    judges = [case.judge for case in suite]
    assert all(isinstance(judge, Judge) for judge in judges)
    assert {
        (judge.name, case.input) for judge, case in zip(judges, suite, strict=True) if isinstance(judge, Judge)
    } == wanted
    assert len({case.rubric for case in suite}) == 1
    assert len({row.id for row in suite.run(deferred="pass")}) == len(suite) == 4


def test_a_plan_counts_the_calls_without_one() -> None:
    """Criteria times votes, for every block: a free text and a walk's first question are one each at least."""
    for block in blocks("003"):
        suite = suite_of("003", block.data)
        for case, planned in zip(suite, suite.plan(Judge("offline")), strict=True):
            most = 2 if case.rubric.tree is not None else len(case.rubric.judged)
            assert planned.plan.most == most
