"""What people type is graded as they mean it, or refused with the call that works."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, cast

import attrs
import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Anchor,
    Candidate,
    Cascade,
    Case,
    Choices,
    Contains,
    Criterion,
    DefinitionError,
    Grade,
    Grades,
    Holds,
    Judge,
    Jury,
    Levels,
    Limits,
    LoadError,
    Panel,
    Rubric,
    ScoreRange,
    Store,
    Suite,
    Ungraded,
    UngradedError,
    Unit,
    When,
    YesNo,
    agrade,
    ask,
    convert,
    dump,
    dumps,
    grade,
    grade_many,
    load,
    load_suite,
    loads,
    loads_suite,
    plan,
)
from rubric.__main__ import main
from rubric.batches import grade_in_batches
from rubric.engine import Shard, merge_results
from rubric.engine.sources import Placed
from rubric.formats import dumps_suite
from rubric.internals.fields import names_a_file
from rubric.quality import generate
from rubric.results import Evidence, Scored
from rubric.suites import Report
from rubric.suites.baseline import compare
from rubric.testing.scripted_model import ScriptedModel
from rubric.values.answers import Answer
from rubric.values.checks import Check
from tests.command_line import commands
from tests.rows import each_row

POLITE = "The reply is polite"
TREE = ask("Is it polite?").yes(1).no(0)
TWO = Rubric("two").expects("Is polite", id="polite").forbids("Is rude", id="rude")


def refused(call: Callable[[], object]) -> str:
    """Return what the refusal of *call* says."""
    with pytest.raises(DefinitionError) as caught:
        call()
    return str(caught.value)


def good(*_: object) -> str:
    """Judge that everything is as it should be."""
    return '{"reason": "so", "verdict": true, "score": 1}'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dump(Rubric("mine").expects(POLITE), tmp_path / "mine.yaml")
    (tmp_path / "reply.txt").write_text("\ufeffA polite reply.\n", encoding="utf-8")
    (tmp_path / "two.jsonl").write_text('"A polite reply."\n"Go away."\n', encoding="utf-8")
    return tmp_path


# -- paths -----------------------------------------------------------------------------------------------


@each_row(
    "text",
    [
        "mine.yaml",
        "reply.TXT",
        " rubrics/mine.yml\n",
        "./my rubric.yaml",
        "~/my files/reply.md",
        "/data/my files/reply.md",
        "C:\\My Files\\rubric.json",
        "..\\my files\\a.csv",
        "answers.jsonl",
        "scan.pdf",
        "https://example.com/rubric.yaml",
    ],
)
def test_one_line_that_ends_as_files_do_names_a_file(text: str) -> None:
    """Whether there is such a file does not matter: a name that is mistyped is not text either."""
    assert names_a_file(text)


@each_row(
    "text",
    [
        "See notes.txt",
        "Open the file and read config.yaml",
        "Node.js",
        "Yes.",
        ".yaml",
        "",
        "e.g.",
        "3.14",
        "// as in main.py",
        "first line\nnotes.txt",
        f"{'a' * 2_000}.txt",
    ],
)
def test_a_sentence_that_ends_in_the_name_of_a_file_is_a_sentence(text: str) -> None:
    """Prose, numbers, several lines and very long texts are not taken for paths."""
    assert not names_a_file(text)


def test_words_that_are_the_name_of_a_file_that_is_there_name_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with white space in it is looked for where relative paths start."""
    monkeypatch.chdir(folder)
    assert not names_a_file("my reply.txt")
    Path("my reply.txt").write_text("Hello", encoding="utf-8")
    assert names_a_file("my reply.txt")


def test_no_other_machine_is_asked_whether_a_file_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A candidate may be anybody's text; a look at a share would send that machine this one's credentials."""
    monkeypatch.setattr("os.path.isfile", pytest.fail)
    assert names_a_file("\\\\host\\share\\my file.txt")
    assert not names_a_file("//host/share/my file.txt")


PATHS: list[tuple[Callable[[], object], str]] = [
    (lambda: grade("A reply", "mine.yaml", "offline"), "rubric"),
    (lambda: grade("reply.txt", POLITE, "offline"), "candidate"),
    (lambda: asyncio.run(agrade("reply.txt", POLITE, "offline")), "candidate"),
    (lambda: plan("reply.txt", POLITE, "offline"), "candidate"),
    (lambda: grade_many(["A reply"], "mine.yaml", "offline"), "rubric"),
    (lambda: grade_in_batches(["A reply"], "mine.yaml", "openai/gpt-5.6", "batches.json"), "rubric"),
    (lambda: Case("a", "mine.yaml"), "rubric"),
    (lambda: generate("outcome.txt", "openai/gpt-5.6"), "case"),
    (lambda: loads("mine.yaml"), "text"),
    (lambda: loads_suite("mine.yaml"), "text"),
    (lambda: Judge("offline", prompt="judge.md"), "prompt"),
    (lambda: Rubric(guidelines="style.md"), "guidelines"),
]


@each_row(("call", "field"), PATHS, ids=count())
def test_the_path_of_a_file_is_not_graded_as_a_text(call: Callable[[], object], field: str) -> None:
    """Every call that takes a text refuses a bare path and names its argument."""
    said = refused(call)
    assert said.startswith(f"{field}: ")
    assert "looks like the path of a file" in said


def test_the_refusal_of_a_path_names_the_calls_that_work() -> None:
    """The message has the call that reads the file and the one that means the words."""
    assert "load('mine.yaml')" in (said := refused(lambda: grade("x", "mine.yaml", "offline")))
    assert "Rubric.of('mine.yaml')" in said
    assert "Path('reply.txt')" in (said := refused(lambda: grade("reply.txt", POLITE, "offline")))
    assert "Candidate('reply.txt')" in said


def test_words_that_are_meant_as_words_are_graded() -> None:
    """`Candidate`, `Rubric.of` and rows accept "main.py" as plain text."""
    assert grade(Candidate("main.py"), Rubric.of("main.py"), "offline").passed
    assert grade("See main.py", "See main.py", "offline").passed
    assert [r.passed for r in grade_many([{"output": "main.py"}], Rubric.of("main.py"), "offline")] == [True]


def test_files_are_read_where_their_paths_are_given(folder: Path) -> None:
    """A `Path` gives the same result as the file's content in `grade`, `agrade`, `grade_many` and `plan`."""
    reply, rubric = folder / "reply.txt", folder / "mine.yaml"
    whole = grade("A polite reply.\n", load(rubric), "offline")
    assert grade(reply, rubric, "offline") == whole
    assert asyncio.run(agrade(reply, rubric, "offline")) == whole
    assert list(grade_many([reply], rubric, "offline")) == [whole]
    assert (
        plan(reply, rubric, "offline").prompt_tokens == plan("A polite reply.\n", load(rubric), "offline").prompt_tokens
    )
    assert plan(folder / "two.jsonl", rubric, "offline").most == 2


def test_a_path_among_many_candidates_costs_its_own_place_alone(folder: Path) -> None:
    """The texts of a list are looked at one by one, as its items are."""
    items = ["reply.txt", folder / "none.txt", folder / "reply.txt", "Be polite"]
    results = grade_many(items, POLITE, "offline").collect()
    assert [type(result) for result in results] == [Ungraded, Ungraded, Grade, Grade]
    assert "candidates[0]: 'reply.txt' looks like the path of a file" in results[0].failures[0].message
    assert "there is no file" in results[1].failures[0].message


def test_a_file_of_another_machine_is_read_before_it_is_sent_there(folder: Path) -> None:
    """A path becomes its text before it leaves; a missing file becomes a failure of its row."""
    assert Placed(0, folder / "reply.txt").fetch().item == Candidate("A polite reply.\n")
    assert list(grade_many([Placed(0, folder / "none.txt").fetch()], POLITE, "offline"))[0].failures  # noqa: RUF015


def test_a_file_that_cannot_be_a_candidate_says_why(folder: Path) -> None:
    """Missing, binary and tabular files each have their own message."""
    (folder / "image.png").write_bytes(b"\x89PNG\xff")
    assert "there is no file" in refused(lambda: grade(folder / "none.txt", POLITE, "offline"))
    assert "no text in UTF-8" in refused(lambda: grade(folder / "image.png", POLITE, "offline"))
    assert "grade_many(" in refused(lambda: grade(folder / "two.jsonl", POLITE, "offline"))
    with pytest.raises(LoadError):
        grade("x", folder / "none.yaml", "offline")


@each_row(
    "several",
    [["a"], ("a",), {"a"}, (text for text in "a"), pd.Series(["a"]), pd.DataFrame({"output": ["a"]}), np.array(["a"])],
    ids=lambda given: type(given).__name__,
)
def test_many_candidates_are_not_one(several: Any) -> None:
    """Lists, sets, generators, frames and arrays are answered with `grade_many`."""
    assert "grade_many(" in refused(lambda: grade(several, POLITE, "offline"))


@pytest.mark.parametrize("one", [None, 7, b"a", float("nan"), object()], ids=lambda given: type(given).__name__)
def test_what_is_no_candidate_is_none(one: Any) -> None:
    """The message for numbers, bytes, None and other objects names `Candidate(text)`."""
    assert "Candidate(text)" in refused(lambda: grade(one, POLITE, "offline"))


def test_a_mapping_of_its_fields_is_a_candidate() -> None:
    """Known keys make a candidate; unknown keys are refused with an example."""
    assert grade({"output": "polite", "input": "b"}, POLITE, "offline") == grade("polite", POLITE, "offline", input="b")
    assert "'output': row['answer']" in refused(lambda: grade({"answer": "a"}, POLITE, "offline"))


SWAPPED: list[Callable[..., object]] = [
    lambda: grade(TWO, "text", "offline"),  # type: ignore[arg-type]
    lambda: grade("text", Candidate("text"), "offline"),  # type: ignore[arg-type]
    lambda: grade("text", "offline", TWO),
    lambda: plan(TWO, "text", "offline"),
    lambda: grade_many(TWO, "text", "offline"),
]


@pytest.mark.parametrize("call", SWAPPED, ids=count())
def test_arguments_that_are_swapped_are_told_their_order(call: Callable[[], object]) -> None:
    """The message states the order of candidate, rubric and judge."""
    assert "the candidate comes first, then the rubric, then the judge" in refused(call)


def test_a_result_is_neither_candidates_nor_results() -> None:
    """One grade given for many is refused with the type that was found."""
    result: Any = grade("Is polite", TWO, "offline")
    assert "got a Grade" in refused(lambda: grade_many(result, POLITE, "offline"))
    assert "Grades([grade])" in refused(lambda: Grades(result))


def test_what_stands_for_a_rubric_is_told_how_to_become_one() -> None:
    """Lists, mappings and paths each get the call that makes a rubric of them."""
    given: Any = ["Is polite"]
    assert 'Rubric("name", [' in refused(lambda: grade("x", given, "offline"))
    given = {"criteria": ["Is polite"]}
    assert "Rubric.from_dict(data)" in refused(lambda: grade("x", given, "offline"))
    given = Path("mine.yaml")
    assert "load('mine.yaml')" in refused(lambda: Case("a", given))


# -- truth -----------------------------------------------------------------------------------------------


def results() -> list[tuple[object, str]]:
    """Return what says by an attribute whether something holds, with that attribute."""
    passed = grade("Is polite", TWO, "offline")
    with pytest.raises(UngradedError) as caught:
        grade("x", TWO, Judge(lambda _: "nothing", repairs=0))
    report = Suite("s", [Case("a", TWO, output="Is polite")]).run("offline")
    comparison = compare(report, report)
    return [
        (passed, ".passed"),
        (caught.value.result, ".passed"),
        (passed["polite"], ".score"),
        (caught.value.result["polite"], ".failure"),
        (passed.outcome, ".passed"),
        (Evidence("made up"), ".verified"),
        (report, ".passed"),
        (report[0], ".status"),
        (report[0].entries[0], ".contribution"),
        (comparison, ".passed"),
        (comparison[0], ".kind"),
        (Grades([passed]).summary(), ".pass_rate"),
        (Grades([passed]).summary().criteria[0], ".mean"),
        (grade_many(["x"], TWO, "offline"), ".collect()"),
    ]


def test_a_result_is_neither_true_nor_false() -> None:
    """`assert grade(...)` would hold for a fail."""
    for value, attribute in results():
        with pytest.raises(TypeError, match=re.escape(attribute)):
            bool(value)


def test_what_is_no_verdict_is_true() -> None:
    """A rubric without criteria is still one; a list of results is true where there are some."""
    assert Rubric()
    assert Rubric.of(POLITE)
    assert not Grades()
    assert Grades([grade("x", TWO, "offline")])


# -- places ----------------------------------------------------------------------------------------------


def test_a_rubric_is_its_criteria_in_order() -> None:
    """Iteration, length, places, slices, ids and `in` work as on a sequence with names."""
    polite, rude = TWO.criteria
    assert list(TWO) == [polite, rude]
    assert (len(TWO), TWO[0], TWO[-1], TWO["rude"], TWO[np.int64(1)]) == (2, polite, rude, rude, rude)
    assert (TWO[:1], TWO[::-1]) == ((polite,), (rude, polite))
    assert "polite" in TWO
    assert polite in TWO
    assert "warm" not in TWO
    assert 0 not in TWO


@pytest.mark.parametrize("rubric", [Rubric.of(POLITE), Rubric.deciding(TREE)])
def test_a_text_and_a_tree_are_one_criterion(rubric: Rubric) -> None:
    """Rubrics of free text and of a tree hold one criterion with the id "overall"."""
    assert [c.id for c in rubric] == ["overall"]
    assert rubric[0] == rubric["overall"] == rubric.judged[0]


def test_results_are_their_findings_in_order() -> None:
    """Grades and ungraded results are sequences of their findings."""
    graded = grade("Is polite", TWO, "offline")
    assert list(graded) == [graded["polite"], graded["rude"]] == [*graded.findings]
    assert (len(graded), graded[-1], graded[1:]) == (2, graded["rude"], graded.findings[1:])
    assert graded[0] in graded
    with pytest.raises(UngradedError) as caught:
        grade("x", TWO, Judge(lambda _: "nothing", repairs=0))
    assert [f.id for f in caught.value.result] == ["polite", "rude"]


def test_suites_and_reports_have_places_too() -> None:
    """Cases and rows are found by number, also from the end and by slices."""
    suite = Suite("s", [Case("a", TWO, output="x"), Case("b", TWO, output="y")])
    report = suite.run("offline")
    assert (suite[-1].id, report[1].id, [case.id for case in suite[:1]]) == ("b", "b", ["a"])


@pytest.mark.parametrize("held", [TWO, grade("x", TWO, "offline")], ids=["rubric", "grade"])
def test_a_place_that_is_none_is_an_error_of_pythons(held: Any) -> None:
    """An unknown id is a KeyError, a far place an IndexError, another type a TypeError."""
    with pytest.raises(KeyError, match="did you mean 'polite'"):
        held["polit"]
    with pytest.raises(IndexError, match=r"no .* at place 2 among 2"):
        held[2]
    for place in (None, 1.0, True):
        with pytest.raises(TypeError, match="expected an id, a place or a slice"):
            held[place]


# -- options without an effect ----------------------------------------------------------------------------

WITHOUT: list[tuple[Callable[[], object], str]] = [
    (lambda: Rubric().forbids("x", required=False), "required"),
    (lambda: Rubric().forbids("x", required=np.False_), "required"),  # type: ignore[arg-type]  # NumPy's own
    (lambda: Rubric().forbids("x", id="a").revising("a", required=False), "required"),
    (lambda: Rubric().forbids("x", min_score=0.5), "min_score"),
    (lambda: Rubric().checks(Contains("x"), polarity="guard", min_score=0.5), "min_score"),
    (lambda: Rubric().checks(Contains("x"), anchors=[Anchor("x", 1)]), "anchors"),  # type: ignore[call-arg]  # the point of the test
    (lambda: Rubric().checks(Contains("x"), evidence=True), "evidence"),  # type: ignore[call-arg]  # the point of the test
    (lambda: Rubric().checks(Contains("x"), abstain="zero"), "abstain"),  # type: ignore[call-arg]  # the point of the test
    (lambda: Rubric().checks(Contains("x"), abstain=0.0), "abstain"),  # type: ignore[call-arg]  # the point of the test
    (lambda: Rubric().checks(Contains("x"), polarity="contradiction"), "polarity"),
    (lambda: Rubric().decides("x", TREE, anchors=[Anchor("x", 1)]), "anchors"),  # type: ignore[call-arg]  # the point of the test
    (lambda: Rubric().decides("x", TREE, evidence=False), "evidence"),  # type: ignore[call-arg]  # the point of the test
    (lambda: Rubric().decides("x", TREE, polarity="correctness"), "polarity"),
    (lambda: Rubric().includes(TWO, abstain="exclude"), "abstain"),  # type: ignore[call-arg]  # the point of the test
    (lambda: Rubric(tree=TREE, abstain="zero"), "abstain"),
    (lambda: Rubric(tree=TREE, aggregation="min"), "aggregation"),
    (lambda: Rubric(text="x", aggregation="min"), "aggregation"),
    (lambda: Judge(good, temperature=0.5), "temperature"),
    (lambda: Judge(good, seed=0), "seed"),
    (lambda: Judge(good, logprobs=True), "logprobs"),
    (lambda: Judge(good, params={"top_p": 1}), "params"),
    (lambda: Jury(good, 3, one_request=True), "one_request"),
    (lambda: Panel([good, good], tie_break="pass"), "tie_break"),
    (lambda: Panel([good, good], aggregate="median", tie_break="pass"), "tie_break"),
    (lambda: Panel([good, good], level="criterion", early_stop=True), "early_stop"),
    (lambda: Store("replies.db", mode="replay", in_doubt="hold"), "in_doubt"),
]


@each_row(("call", "field"), WITHOUT, ids=count())
def test_an_option_that_would_do_nothing_is_refused(call: Callable[[], object], field: str) -> None:
    """The message begins with the name of the option."""
    assert refused(call).startswith(f"{field}: ")


def test_a_guard_that_should_only_take_points_off_is_told_its_verb() -> None:
    """`required=False` on a guard is answered with `penalizes`, in code and in YAML."""
    assert "penalizes(" in refused(lambda: Rubric().forbids("x", required=False))
    with pytest.raises(LoadError, match=r"criteria\[0\].required: .*penalizes"):
        loads("criteria: [{text: x, polarity: guard, required: false}]")


def test_an_option_that_has_an_effect_stays() -> None:
    """A scored guard has a gate value, a check of a function's may have one, and `required` says what a guard is."""
    scored = Rubric(criteria=[Criterion("x", answer=Unit(), polarity="guard", min_score=0.5)])
    assert loads(dumps(scored)) == scored
    assert Criterion("x", answer=Holds(callable), polarity="guard", min_score=0.5).min_score == 0.5
    assert Rubric().forbids("x", required=True)
    assert Panel([good, good], aggregate="majority", tie_break="pass").tie_break == "pass"
    assert Judge(ScriptedModel([]), temperature=0.5).temperature == 0.5
    assert Judge("offline", temperature=0.5).temperature == 0.5


# -- the command line -------------------------------------------------------------------------------------


def all_of(held: Iterable[click.Command]) -> list[click.Command]:
    """Return every command among those *held*, those of its groups included."""
    return [c for one in held for c in (all_of(one.commands.values()) if isinstance(one, click.Group) else [one])]


ONCE = [
    (command, option)
    for command in all_of(commands().values())
    for option in command.params
    if isinstance(option, click.Option) and not option.multiple and not option.is_flag
]


@each_row(("command", "option"), ONCE, ids=count())
def test_an_option_of_one_value_is_not_given_twice(command: click.Command, option: click.Option) -> None:
    """Every such option of every command reports how often it was given."""
    values = ["1"] * option.nargs
    result = CliRunner().invoke(command, [option.opts[0], *values, option.opts[-1], *values])
    assert result.exit_code == 2
    assert f"{option.opts[0]} is given 2 times" in result.stderr


def test_an_option_of_many_values_is_given_as_often_as_one_likes(folder: Path) -> None:
    """Two `-j` options make a panel."""
    arguments = ["grade", str(folder / "mine.yaml"), str(folder / "reply.txt"), "-j", "offline", "-j", "offline"]
    assert CliRunner().invoke(main, arguments).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["grade", "mine.yaml", "reply.txt", "--env", "HOME"], "--env"),
        (["grade", "mine.yaml", "-", "--input", "-"], "standard input"),
        (["grade", "mine.yaml", "reply.txt", "--base", "elsewhere"], "is outside of elsewhere"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused_at_a_terminal(
    folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """The command ends with 2 and names the option that has no effect."""
    monkeypatch.chdir(folder)
    Path("elsewhere").mkdir()
    result = CliRunner().invoke(main, [*arguments, *(["-j", "offline"] if arguments[0] == "grade" else [])], input="x")
    assert result.exit_code == 2
    assert said in result.stderr


# -- numbers of other libraries ---------------------------------------------------------------------------

NUMBERS = [np.float64(0.5), np.float32(0.5), np.float16(0.5), np.array(0.5), np.longdouble(0.5), Decimal("0.5")]
NUMBERED: list[Callable[[Any], Any]] = [
    lambda n: Rubric(threshold=n).threshold,
    lambda n: Criterion("x", weight=n).weight,
    lambda n: Criterion("x", min_score=n).min_score,
    lambda n: Criterion("x", abstain=n).abstain,
    lambda n: Anchor("x", n).score,
    lambda n: Choices({"a": n, "b": 0}).choices[0].score,
    lambda n: ask("x").yes(n).no(0).yes.score,  # type: ignore[union-attr]
    lambda n: Judge("offline", temperature=n).temperature,
    lambda n: Panel(["offline"], weights=[n]).weights[0],  # type: ignore[index]
    lambda n: Cascade("offline", "offline", (n, 1)).when[0],  # type: ignore[index]
    lambda n: grade("x", Rubric().checks(Holds(lambda _: n)), "offline").score,
]


@each_row("number", NUMBERS, ids=repr)
@each_row("kept", NUMBERED, ids=count())
def test_a_number_of_another_library_is_kept_as_pythons(number: Any, kept: Callable[[Any], Any]) -> None:
    """A decimal number of NumPy and others becomes a float in every field that takes one."""
    assert repr(kept(number)) == "0.5"


WHOLE: list[Callable[[Any], Any]] = [
    lambda n: Jury("offline", n).size,
    lambda n: Judge("offline", per_call=n).per_call,
    lambda n: Judge("offline", max_tokens=n).max_tokens,
    lambda n: ScoreRange(n, 9).low,
    lambda n: Levels({n[()]: "a", 9: "b"}).low,
    lambda n: Limits(rpm=n).rpm,
    lambda n: Criterion("x", weight=n).weight,
    lambda n: Criterion("x", metadata={"a": [n]}).metadata["a"][0],
    lambda n: Judge("offline", params={"top_k": n}).params["top_k"],
]


@each_row("number", [np.int64(3), np.uint8(3), np.array(3)], ids=repr)
@each_row("kept", WHOLE, ids=count())
def test_a_whole_number_of_another_library_is_kept_as_pythons(number: Any, kept: Callable[[Any], Any]) -> None:
    """A NumPy integer becomes an int in every field that takes one."""
    assert repr(kept(number)) == "3"


@each_row("value", [True, np.bool_(1), "0.5", np.str_("0.5"), np.array([0.5]), np.nan, np.inf, 1j], ids=repr)
def test_what_is_no_number_is_refused(value: Any) -> None:
    """Booleans, texts, arrays, NaN and infinity are not weights."""
    assert "expected a finite number" in refused(lambda: Criterion("x", weight=value))


def test_a_boolean_of_numpys_is_one() -> None:
    """A NumPy boolean is kept as True in a field and as a check's result."""
    assert Rubric(strict=np.bool_(1)).strict is True  # type: ignore[arg-type]
    assert grade("x", Rubric().checks(Holds(lambda _: np.bool_(1))), "offline").findings[0].value is True  # type: ignore[arg-type, return-value]


@given(st.integers(0, 100))
def test_a_weight_of_any_library_makes_the_same_rubric(weight: int) -> None:
    """Equal weights of three types give equal rubrics with equal hashes."""
    weights: list[Any] = [weight, np.int64(weight), np.float32(weight)]
    rubrics = {Rubric().expects("x", weight=one) for one in weights}
    assert len(rubrics) == 1


# -- what is not text, no path, no judge -------------------------------------------------------------------

NO_PATH: list[Callable[[Any], object]] = [
    load,
    load_suite,
    Store,
    Report.load,
    lambda path: dump(TWO, path),
    lambda path: grade_in_batches(["x"], TWO, "openai/gpt-5.6", path),
    lambda path: merge_results([path], "out.jsonl"),
    lambda path: merge_results([], path),
]


@each_row("path", [None, 3, b"a.yaml", {}])
@each_row("call", NO_PATH, ids=count())
def test_what_is_no_path_is_refused(call: Callable[[Any], object], path: Any) -> None:
    """Each call that takes a path refuses None, numbers, bytes and mappings."""
    assert "expected the path of a file" in refused(lambda: call(path))


@each_row("call", [loads, loads_suite])
@each_row(
    ("text", "cure"),
    [(None, ""), (3, ""), (b"rubric: x", "decode"), ({"text": "x"}, "json.dumps"), (Path("a.yaml"), "('a.yaml')")],
    ids=count(),
)
def test_what_is_no_text_is_no_document(call: Callable[[Any], object], text: Any, cure: str) -> None:
    """`loads` refuses bytes, data and paths, with the call that fits each."""
    assert cure in (said := refused(lambda: call(text)))
    assert "expected the text of a document" in said


NO_WRITING: list[Callable[[Any], object]] = [dumps, dumps_suite, convert, lambda value: dump(value, "a.yaml")]


@pytest.mark.parametrize("call", NO_WRITING, ids=count())
def test_what_is_neither_rubric_nor_suite_is_not_written(call: Callable[[Any], object]) -> None:
    """Each writer says which type it expected."""
    assert "expected a" in refused(lambda: call(None))


@pytest.mark.parametrize("form", ["toml", "YAML", None])
def test_a_form_that_is_not_known_is_not_written_as_yaml(form: Any) -> None:
    """An unknown format is an error that lists yaml and json."""
    assert "yaml, json" in refused(lambda: dumps(TWO, format=form))
    assert "yaml, json" in refused(lambda: dumps_suite(Suite("s"), language=form))


class Answering:
    """A model of one's own."""

    async def answer(self, ask: object, /) -> Any:
        """Return nothing."""


@each_row("judge", [Judge, Jury, Panel, str, dict, Answering])
def test_a_class_is_no_judge(judge: Any) -> None:
    """A class can be called with a prompt, like a function; what it makes of it is not a reply."""
    for given_ in (judge, [judge]):
        assert f"got the class {judge.__name__}" in refused(lambda: grade("x", POLITE, given_))  # noqa: B023


TAKING: list[Callable[[Any], object]] = [
    Holds,
    lambda given_: When(holds=given_),
    lambda given_: Cascade("offline", "offline", given_),
    lambda given_: grade("x", POLITE, "offline", limits=given_),
    lambda given_: Suite("s", [Case("a", TWO)]).run("offline", target=given_),
]


@pytest.mark.parametrize("call", TAKING, ids=count())
def test_a_class_is_no_function(call: Callable[[Any], object]) -> None:
    """A class in the place of a function is refused by its name."""
    assert "got <class" in refused(lambda: call(Limits))


class Stars(Levels):
    """Levels of one's own."""


class Maybe(YesNo):
    """A yes or no of one's own."""


class Guess(Answer):
    """An answer of one's own."""


class Short(Check):
    """A check of one's own."""

    def __str__(self) -> str:
        return "is short"


class House(Rubric):
    """A rubric of one's own."""


@pytest.mark.parametrize(
    ("answer", "cure"),
    [(Stars(), "Levels(...)"), (Maybe(), "YesNo(...)"), (Guess(), "Choices(...)"), (Short(), "Holds(function)")],
    ids=count(),
)
def test_an_answer_of_ones_own_class_is_refused_where_it_is_given(answer: Any, cure: str) -> None:
    """A subclass of an answer type is answered with the type that can do its work."""
    assert cure in (said := refused(lambda: Criterion("x", answer=answer)))
    assert "a class of your own" in said


def test_a_rubric_of_ones_own_class_is_graded_like_any_other() -> None:
    """A subclass survives the builder's verbs and can be nested."""
    house = House("house").expects("Is polite")
    assert type(house) is House
    assert isinstance(grade("Is polite", Rubric().includes(house), "offline")[0], Scored)


def test_a_shard_that_is_no_text_is_none() -> None:
    """`Shard.parse` says that it expected a shard."""
    nothing: Any = None
    assert "expected a shard" in refused(lambda: Shard.parse(nothing))


@each_row(
    ("call", "args", "named", "cure"),
    [
        (Case, ("a", POLITE), {"response": "x"}, "did you mean 'output'?"),
        (Case, ("a", POLITE), {"expected": "x"}, "did you mean 'reference'?"),
        (Case, ("a",), {}, "write Case('a', rubric"),
        (Suite, ("a",), {"case": []}, "did you mean 'cases'?"),
        (Suite, ("a", ["x"]), {}, "cases[0]: expected a Case, such as Case("),
        (Suite("a", []).matrix, (), {"judges": "offline"}, "judges: expected a list of judges"),
        (Rubric.of(POLITE).tested_by, ("x",), {"fail": True}, "did you mean 'fails'?"),
        (Rubric, ("x",), {"criterion": []}, "a rubric has a list of them"),
        (Criterion, ("a",), {"levels": "1-5"}, "write levels=(1, 5)"),
        (Criterion, ("a",), {"choices": ["cold"]}, "write two labels at least"),
        (Rubric().rates, ("a", [1, 2, 3]), {}, "write rubric.rates('a', (1, 3))"),
        (Contains, ("a",), {"case_sensitive": False}, "unless ignore_case=True"),
        (Contains, (), {}, "write Contains('ticket #')"),
    ],
)
def test_a_wrong_call_is_told_the_one_that_works(
    call: Callable[..., object], args: tuple[Any, ...], named: dict[str, Any], cure: str
) -> None:
    """Each common mistake is answered with the argument or the call to write."""
    with pytest.raises(DefinitionError) as raised:
        call(*args, **named)
    assert cure in str(raised.value)


def test_a_suite_and_its_report_say_how_they_are_read_and_written() -> None:
    """Guessed methods raise an AttributeError with the function to call."""
    suite = Suite("a", [Case("x", POLITE, output="y")])
    for name, cure in (("save", "dump_suite(suite, 'suite.yaml')"), ("tests", "suite.cases")):
        with pytest.raises(AttributeError, match=re.escape(f"write {cure}")):
            getattr(suite, name)
    with pytest.raises(AttributeError, match=re.escape("write load_suite('suite.yaml')")):
        Suite.from_file  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=re.escape("write report.grades.to_pandas()")):
        suite.run("offline").to_pandas  # type: ignore[attr-defined]  # noqa: B018


def test_one_of_a_kind_has_no_plural() -> None:
    """No `repr` speaks of "1 cases" or the like."""
    suite = Suite("a", [Case("x", Rubric("r", ["Is y"]), output="y")])
    shown = f"{suite!r} {suite.run('offline').grades!r} {suite.run('offline').grades[0]!r} {suite.plan('offline')!r}"
    assert not re.search(r"\b1 (cases|calls|criteria|results)\b", shown), shown


@each_row(
    ("typed", "transform", "code"),
    [
        ("summary", "output.summary", "['summary']"),
        ("$.status", "output.status", "['status']"),
        ("output.status", "output.status", "['status']"),
        ("json.summary", "output.summary", "['summary']"),
        ("output['a'][0]", "'output.a[0]'", "['a'][0]"),
        ("$.rows[0].text", "'output.rows[0].text'", "['rows'][0]['text']"),
    ],
)
def test_a_field_of_json_is_answered_with_what_reads_it(typed: str, transform: str, code: str) -> None:
    """In a file it is a transform, in Python a function, and both read the field that was typed."""
    said = {"summary": "Yes", "status": "Yes", "a": ["Yes"], "rows": [{"text": "Yes"}]}
    with pytest.raises(DefinitionError) as error:
        Criterion("Is polite", on=typed)
    line = str(error.value).rpartition("write on=")[2]
    assert code in line
    on = eval(line, {"attrs": attrs, "json": json})  # noqa: S307 - it is printed to be run
    with pytest.raises(LoadError) as problem:
        loads(f"rubric: r\ncriteria: [{{text: Is polite, on: {json.dumps(typed)}}}]")
    assert str(problem.value).endswith(f"such as on: {{transform: {transform}}}")
    (view,) = loads(f"rubric: r\ncriteria: [{{text: Is polite, on: {{transform: {transform}}}}}]")
    for made in (on, cast("Callable[[Candidate], Candidate]", view.on)):
        assert made(Candidate(json.dumps(said))).output == "Yes"


@each_row(
    ("typed", "said"),
    [
        ("output", "did you mean 'conversation'"),
        ("assistant", "'conversation', or of each turn"),
        ("user", "leave it out"),
    ],
)
def test_what_is_asked_of_the_whole_is_no_field(typed: str, said: str) -> None:
    """The names of parts of a conversation are answered as such."""
    with pytest.raises(DefinitionError, match=said):
        Criterion("Is polite", on=typed)


@each_row("word", ["stop_at_gate", "stop_on_fail", "short_circuit", "gate_first", "fail_fast"])
def test_a_judge_is_spared_by_a_condition(word: str) -> None:
    """Each place where it is typed says so, with a condition in the form of that place."""
    given: Any = {word: True}
    for call in (
        lambda: Rubric("r", ["Is polite"], **given),
        lambda: Criterion("Is polite", **given),
        lambda: Rubric("r").requires("Is polite", **given),
    ):
        with pytest.raises(DefinitionError, match=r"when=lambda reply: .*grades\.passed"):
            call()
    for text in (f"criteria: [Is polite]\n{word}: true", f"criteria: [{{text: Is polite, {word}: true}}]"):
        with pytest.raises(LoadError, match=r"when: \{contains: .*grades\.passed"):
            loads(f"rubric: r\n{text}")
