"""`Grades`: a sequence, its summary with intervals, its tables, and another rule."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rubric import (
    Candidate,
    Case,
    Criterion,
    DefinitionError,
    Grade,
    Judge,
    Jury,
    Likert,
    Panel,
    Rubric,
    Suite,
    Ungraded,
    evaluate,
    grade,
    judge_function,
)
from rubric.driving import Failure
from rubric.engine.bulk import grade_many
from rubric.results import Counts
from rubric.results.collection import Grades
from rubric.scoring.intervals import mean_interval, share_interval, t_quantile
from rubric.testing.scripted_model import Says, ScriptedModel
from rubric.trust import Labels, agreement
from rubric.values.requests import Ask, Usage
from rubric.values.run_rules import call
from rubric.values.runs import Run, ToolCall
from tests.examples import examples
from tests.rows import each_row

RUBRIC = Rubric("tone").requires("Is polite", id="polite").scores("Is warm", id="warm").passing_at(0.6)
SAID = {"kind": (True, 1.0), "cool": (True, 0.0), "rude": (False, 0.5), "lost": (True, None)}


def say(ask: Ask) -> object:
    value = SAID[ask.candidate.split()[0]][ask.criteria[0].id == "warm"]
    return Failure("refusal", "the model refused") if value is None else value


JUDGE = Judge(ScriptedModel(say), retries=0)  # type: ignore[arg-type]


@pytest.fixture
def grades() -> Grades:
    return grade_many(["kind", "cool", "rude", "lost", None, "kind"], RUBRIC, JUDGE).collect()


def test_they_are_a_sequence(grades: Grades) -> None:
    """They are indexed, sliced, gone through, and told apart."""
    assert len(grades) == 6
    assert isinstance(grades[0], Grade)
    assert [result.index for result in grades[1:3]] == [1, 2]
    assert isinstance(grades[1:3], Grades)
    assert [result.index for result in grades.passed] == [0, 5]
    assert [result.index for result in grades.failed] == [1, 2]
    assert [result.index for result in grades.ungraded] == [3, 4]
    assert [result.index for result in grades.graded] == [0, 1, 2, 5]
    assert [result.index for result in grades.filter(lambda result: "warm" in result and result.usage.calls)] == [
        0,
        1,
        2,
        3,
        5,
    ]


def test_the_summary_counts(grades: Grades) -> None:
    """What is ungraded counts in no rate, and bounds say what it could change."""
    summary = grades.summary()
    assert (summary.results, summary.passed, summary.failed, summary.ungraded) == (6, 2, 2, 2)
    assert summary.pass_rate == 0.5
    assert summary.pass_bounds == (2 / 6, 4 / 6)
    assert summary.mean == pytest.approx((1 + 0.5 + 0.25 + 1) / 4)
    assert summary.failures == {"refusal": 1, "bad_request": 1}
    assert summary.usage.calls == 10
    assert [(c.id, c.scored, c.unjudged, c.gated) for c in summary.criteria] == [("polite", 5, 1, 1), ("warm", 4, 2, 0)]
    assert summary.criteria[1].mean == pytest.approx(2.5 / 4)


@given(st.lists(st.sampled_from([*SAID]), max_size=8))
@examples(20)
def test_the_counts_add_up(kinds: list[str]) -> None:
    """Each result counts once, for every criterion too; the bounds hold whatever the missing verdicts are."""
    grades = grade_many([f"{kind} words" for kind in kinds], RUBRIC, JUDGE).collect()
    summary = grades.summary()
    assert summary.passed + summary.failed + summary.ungraded == summary.results == len(kinds)
    assert all(each.scored + each.unjudged == len(kinds) for each in summary.criteria)
    assert json.loads(json.dumps(summary.to_dict()))["results"] == len(kinds)
    if summary.pass_bounds is not None:
        low, high = summary.pass_bounds
        assert summary.passed / len(kinds) <= low <= high <= (summary.passed + summary.ungraded) / len(kinds)


def test_the_summary_of_nothing() -> None:
    """No results, no rates; and no error."""
    summary = Grades().summary()
    assert (summary.results, summary.pass_rate, summary.mean, summary.mean_interval, summary.usage) == (
        0,
        None,
        None,
        None,
        Usage(),
    )
    assert Grades()._repr_markdown_()
    assert Grades().to_jsonl() == ""


def test_they_show_themselves(grades: Grades) -> None:
    """The repr is one line, the Markdown a table a criterion and a row a result, which says why there is no grade."""
    line = "6 results: 2 of 4 grades pass; pass rate 50.0% (6.8% to 93.2%); mean 0.688 (0.053 to 1.000); ungraded 2"
    assert repr(grades).startswith(
        f"<Grades: {line} (1 refusal, 1 bad_request), left out of the rates: 33.3% to 66.7% of all pass, mean 0.542 to 0.792; "
    )
    assert repr(grades.summary()) == repr(grades).replace("Grades", "Summary", 1)
    shown = grades._repr_markdown_()
    assert "| warm | 4 | 0.625 (0.000 to 1.000); of all 0.417 to 0.750 | 0 | 0 | 2 | 0 |" in shown
    assert "| 3 | ungraded | 0.50 to 1.00, undecided" in shown
    assert "refusal: the model refused |" in shown
    assert "60 more: report(path)" in Grades([*grades] * 20)[:100]._repr_markdown_()


def test_a_warning_of_all_results_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """A judge that is down warns of each result; the list of results says it at the first, and the summary counts."""

    def silent(_: Any) -> str:
        return ""

    found = grade_many(["No.", "No."], Rubric("r").expects("Thank you"), Panel(["offline", silent], quorum=1)).collect()
    found.show()
    shown = capsys.readouterr().out
    assert shown.count("  warning: no vote of 'silent'") == 1
    assert shown.count("✗ Thank you") == 2


def test_printed_they_are_a_table(grades: Grades) -> None:
    """What they come to, a fact a line, a line a criterion, and why some are ungraded; ten at most are listed below it."""
    assert str(grades).startswith(f"{grades.summary()}\n\n#0: tone: pass")
    assert str(Grades([*grades, *grades])) == str(Grades([*grades, *grades]).summary())
    assert str(grades.summary()).splitlines() == [
        "6 results: 2 of 4 grades pass",
        "  pass rate  50.0% (6.8% to 93.2%)",
        "  mean       0.688 (0.053 to 1.000)",
        "  ungraded   2 (1 refusal, 1 bad_request), left out of the rates: 33.3% to 66.7% of all pass, mean 0.542 to 0.792",
        "  used       10 calls, 0 in, 0 out tokens, cost unknown",
        "",
        "  criterion  scored                                           mean  not applicable  abstained  unjudged  gate failed",
        "  polite          5  0.800 (0.284 to 0.995); of all 0.667 to 0.833               0          0         1            1",
        "  warm            4  0.625 (0.000 to 1.000); of all 0.417 to 0.750               0          0         2            0",
        "",
        (
            "2 ungraded: 1 × refusal: the model refused; 1 × bad_request: candidates[4]: expected a text, a Candidate, a "
            "mapping or a Path, got nothing (None)"
        ),
    ]
    assert str(Grades()) == "0 results: 0 of 0 grades pass\n  used       0 calls, 0 in, 0 out tokens, $0.0000"


def test_what_is_missing_counts_where_it_could_change_the_verdict() -> None:
    """A result that lacks a verdict, and fails by a gate all the same, can not pass."""
    says: dict[str, object] = {"polite": False, "warm": Failure("refusal", "no")}
    result = grade_many(["x y"], RUBRIC, Judge(ScriptedModel(says), retries=0)).collect()
    assert result.summary().pass_bounds == (0.0, 0.0)


def test_criteria_have_intervals(grades: Grades) -> None:
    """That of a share for yes and no, Student's for all else; none where there is nothing to go by."""
    polite, warm = grades.summary().criteria
    assert polite.interval == share_interval(4, 5)
    assert warm.interval == mean_interval([1.0, 0.0, 0.5, 1.0])
    assert grades[3:4].summary().criteria[1].interval is None


def test_they_become_frames(grades: Grades) -> None:
    """A row a result, a column a criterion, in pandas and polars alike."""
    pandas, polars = grades.to_pandas(), grades.to_polars()
    assert list(pandas.columns) == polars.columns
    assert polars["index"].to_list() == [0, 1, 2, 3, 4, 5]
    assert polars["output"].to_list()[:1] == ["kind"]
    assert polars["criterion.warm"].to_list() == [1.0, 0.0, 0.5, None, None, 1.0]
    assert polars["failures"].to_list() == [None, None, None, "refusal", "bad_request", None]
    assert list(pandas["passed"])[:3] == [True, False, False]
    assert math.isnan(pandas["score"][3])
    assert polars["gates"].to_list()[2] == "polite"
    assert polars["why"].to_list()[3] == "refusal: the model refused"


def test_frames_have_the_same_types_whatever_is_in_them(grades: Grades) -> None:
    """So that those of several runs can be put below each other, and none has a column that could be anything."""
    alone = grades[:1]
    assert alone.to_polars().schema == grades.to_polars().schema
    assert list(alone.to_pandas().dtypes) == list(grades.to_pandas().dtypes)
    assert str(grades.to_pandas()["passed"].dtype) == "boolean"
    always = [name for name in grades.to_polars().columns if not name.startswith(("criterion.", "reason."))]
    assert Grades().to_polars().columns == [*Grades().to_pandas().columns] == always


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_without_its_library_says_what_to_install(
    grades: Grades, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the extra."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=rf"pip install 'rubric-grade\[{library}\]'"):
        getattr(grades, f"to_{library}")()


def test_they_are_sorted_by_any_column_with_ungraded_ones_last(grades: Grades) -> None:
    """By the score, a criterion or a function, either way; what has no value stands last and keeps its order."""
    order = [result.index for result in grades.sort("score")]
    scores = [result.outcome.best.score for result in grades.sort("score")][:4]
    assert scores == sorted(scores)
    assert order[4:] == [3, 4] == [result.index for result in grades.sort(descending=True)][4:]
    assert [result.index for result in grades.sort("warm")] == [1, 2, 0, 5, 3, 4]
    assert [result.index for result in grades.sort(lambda result: -result.index)] == [5, 4, 3, 2, 1, 0]
    with pytest.raises(DefinitionError, match="did you mean 'warm'"):
        grades.sort("wamr")


def test_the_worst_are_those_that_do_not_pass_then_the_lowest(grades: Grades) -> None:
    """A grade that a gate failed is worse than any pass; ungraded ones are not grades."""
    assert [result.index for result in grades.worst(3)] == [2, 1, 0]
    assert len(grades.worst()) == 4
    with pytest.raises(DefinitionError, match="from 1"):
        grades.worst(0)


def test_a_comparison_with_a_missing_score_keeps_nothing(grades: Grades) -> None:
    """An ungraded result has no score to compare, as a missing cell of a frame; the error of a grade is raised."""
    assert {result.index for result in grades.filter(lambda r: r.score < 2)} == {0, 1, 2, 5}
    with pytest.raises(TypeError):
        grades.filter(lambda r: r.score < "1")


def test_they_are_grouped_by_what_they_share() -> None:
    """By the group, a variable or a function; what no result has is refused."""
    candidates = [Candidate(str(n), group="ab"[n % 2], variables={"lang": "en"}) for n in range(3)]
    grades = grade_many([*candidates, Candidate("3")], "Says a number", "offline").collect()
    found = grades.by("group")
    assert {name: [r.index for r in results] for name, results in found.items()} == {
        "a": [0, 2],
        "b": [1],
        "(none)": [3],
    }
    assert list(grades.by("lang")) == ["en", "(none)"]
    assert list(grades.by(lambda r: r.index > 1)) == ["False", "True"]
    with pytest.raises(AttributeError, match=r"write \{group: each.pass_rate for group, each in grades.by"):
        found.pass_rate  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(DefinitionError, match="no result has 'tag'; allowed: group, judge, key, lang"):
        grades.by("tag")
    with pytest.raises(DefinitionError, match="no result has 'langs'; did you mean 'lang'"):
        grades.by("langs")
    with pytest.raises(DefinitionError, match="a variable of the candidates or a function of a result; no result here"):
        grades[3:].by("tag")


def test_the_cases_of_a_suite_are_grouped_by_tag() -> None:
    """A case with two tags is in both groups."""
    cases = [Case("a", RUBRIC, output="A", tags=["x", "y"]), Case("b", RUBRIC, output="B", tags=["y"])]
    grades = Suite("s", cases=cases).run("offline").grades
    assert {tag: len(results) for tag, results in grades.by("tag").items()} == {"x": 1, "y": 2}


def test_the_votes_of_each_member_are_results_of_the_candidates() -> None:
    """By its name, or with a number where several have it; each has the candidate's place and key, for its labels."""
    rows = [Candidate("kind words", key="a"), None, Candidate("rude", key="b")]
    same = grade_many(rows, "kind", Jury("offline", 2, early_stop=False)).collect().by("member")
    assert [*same] == ["offline 1", "offline 2", "(none)"]
    assert [(vote.index, vote.key, vote.score) for vote in same["offline 2"]] == [(0, "a", 1), (2, "b", 0)]
    assert same["(none)"][0].index == 1
    others = Panel([Judge("offline"), Judge(ScriptedModel(lambda _: 1), identity="m")])
    by = grade_many(rows[2:], "kind", others).collect().by("member")
    assert [votes.summary().usage.calls for votes in by.values()] == [1, 1]
    found = agreement(by["offline"], Labels({"b": False}))
    assert found.overall is not None
    assert found.overall.n == 1
    with pytest.raises(DefinitionError, match="no result here has it"):
        grade_many(["kind"], "kind", "offline").collect().by("member")


def test_the_answers_to_levels_and_choices_are_columns(tmp_path: Path) -> None:
    """Beside what each contributes, in every table: the level with its words, the label; nothing of other answers."""
    levels = {1: "None", 2: "A topic, no thesis", 3: "Clear"}
    rubric = Rubric("essay").rates("Thesis", levels, id="thesis").expects("Cites", id="cites")
    rubric = rubric.rates("Is clear", 1, 5, id="clear").chooses("Tone?", {"cold": 0, "warm": 1}, id="tone")
    said: list[Any] = [
        {"thesis": 2, "cites": True, "clear": 4, "tone": Says("warm")},
        {"thesis": Failure("refusal", "no")},
    ]
    results = [evaluate(f"{n}", rubric, Judge(ScriptedModel(each), retries=0)) for n, each in enumerate(said)]
    grades = Grades(results)
    names = ["value.thesis", "level.thesis", "value.clear", "value.tone"]
    assert [name for name in grades.rows()[0] if name.startswith(("value.", "level."))] == names
    assert [grades.rows()[0][name] for name in names] == ["2", "A topic, no thesis", "4", "warm"]
    assert [grades.rows()[1][name] for name in names] == [None] * 4
    columns = [*grades.to_pandas().columns]
    assert columns[columns.index("criterion.thesis") :][:4] == ["criterion.thesis", *names[:2], "criterion.cites"]
    assert grades.to_polars()["level.thesis"].to_list() == ["A topic, no thesis", None]
    other = grade(
        "x", Rubric().chooses("Thesis?", {"no": 0, "yes": 1}, id="thesis"), Judge(ScriptedModel([Says("yes")]))
    )
    assert Grades([*grades, other]).to_pandas()["value.thesis"].to_list()[::2] == ["2", "yes"]
    assert [result.score for result in grades.sort("value.thesis")] == [result.score for result in grades]
    case = Case("a", rubric, output="A")
    Suite("s", cases=[case]).run(Judge(ScriptedModel(said[0]))).write(tmp_path / "t.csv")
    head, row = csv.reader((tmp_path / "t.csv").read_text("utf-8").splitlines())
    assert [name for name in head if name.startswith(("value.", "level."))] == names
    assert [row[head.index(name)] for name in names] == ["2", "A topic, no thesis", "4", "warm"]


def test_they_are_grouped_by_the_answer_to_a_criterion(grades: Grades) -> None:
    """By its id, where no variable has that name; results without an answer are apart. The counts have a line."""
    assert {name: len(each) for name, each in grades.by("polite").items()} == {"True": 4, "False": 1, "(none)": 1}
    named = grade_many([Candidate("kind", variables={"polite": "en"})], RUBRIC, JUDGE).collect()
    assert list(named.by("polite")) == ["en"]
    line = "from collections import Counter; Counter(g['polite'].value for g in grades)"
    with pytest.raises(AttributeError, match=re.escape(line)):
        grades.value_counts()  # type: ignore[attr-defined]
    assert Counter(g["polite"].value for g in grades) == {True: 4, False: 1, None: 1}


def test_they_become_json_lines(grades: Grades, tmp_path: Path) -> None:
    """Each line is a whole result with its place, in a text and in a file."""
    lines = [json.loads(line) for line in grades.to_jsonl().splitlines()]
    assert [(line["index"], line["verdict"]) for line in lines][:2] == [(0, "pass"), (1, "fail")]
    assert lines[0] == {"index": 0, **grades[0].to_dict()}
    grades.to_jsonl(tmp_path / "grades.jsonl")
    assert [json.loads(line) for line in (tmp_path / "grades.jsonl").read_text().splitlines()] == lines


def test_another_rule_needs_no_call(grades: Grades) -> None:
    """All are rescored, also those that were not candidates, and keep their places."""
    stricter = grades.rescore(threshold=0.4)
    assert [result.index for result in stricter.passed] == [0, 1, 5]
    assert [result.index for result in stricter] == [0, 1, 2, 3, 4, 5]
    assert isinstance(stricter[4], Ungraded)


def test_the_votes_of_many_are_combined_anew() -> None:
    """Another consensus for all results at once; what was not a candidate has no votes, and stays what it is."""
    turns = iter([True, False, False] * 2)
    judge = Jury(Judge(ScriptedModel(lambda _: next(turns))), 3)
    grades = grade_many(["a b", None, "c d"], Rubric().expects("x").passing_at(0.3), judge, concurrency=1).collect()
    assert len(grades.passed) == 0
    lenient = grades.rescore(judge=Jury(judge.judge, 3, consensus=0.33))
    assert [result.index for result in lenient.passed] == [0, 2]
    with pytest.raises(DefinitionError, match="there are no votes to combine"):
        grade_many(["kind"], RUBRIC, JUDGE).collect().rescore(judge=judge)


def test_grades_of_ones_own() -> None:
    """Single results can be put together; their places are those in the sequence."""
    grades = Grades([grade("kind words", RUBRIC, JUDGE), grade("cool words", RUBRIC, JUDGE)])
    assert [row["index"] for row in grades.rows()] == [0, 1]


# -- intervals -------------------------------------------------------------------------------------------


@each_row(
    ("freedom", "expected"),
    [
        (1, 12.7062),
        (2, 4.30265),
        (3, 3.18245),
        (4, 2.77645),
        (9, 2.26216),
        (30, 2.04227),
        (100, 1.98397),
        (1000, 1.96234),
    ],
)
def test_quantiles_are_those_of_the_tables(freedom: int, expected: float) -> None:
    """Student's quantiles, as printed in every textbook."""
    assert t_quantile(freedom) == pytest.approx(expected, abs=5e-5)


def test_quantiles_meet_where_the_methods_change() -> None:
    """The exact series and the expansion agree where one takes over from the other."""
    exact, expanded = t_quantile(200), t_quantile(201)
    assert 0 < exact - expanded < 1e-4
    assert expanded - t_quantile(202) == pytest.approx(exact - expanded, rel=0.02)


def test_shares_are_those_of_agresti_and_coull() -> None:
    """8 of 10: as statsmodels and the literature have it; and the ends are never left."""
    assert share_interval(4, 5) == pytest.approx((0.283582, 0.994949), abs=1e-6)  # exact below ten
    assert share_interval(8, 10) == pytest.approx((0.479368, 0.954113), abs=1e-6)
    assert share_interval(0, 10) == pytest.approx((0.0, 0.320887), abs=1e-6)
    assert share_interval(0, 0) is None


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_share_lies_in_its_interval(counts: tuple[int, int]) -> None:
    """Whatever was counted, the share lies within 0..1 and within its interval."""
    interval = share_interval(*counts)
    assert interval is not None
    assert 0 <= interval[0] <= Fraction(*counts) <= interval[1] <= 1


@given(st.lists(st.floats(0, 1), max_size=40))
def test_a_mean_lies_in_its_interval(values: list[float]) -> None:
    """The mean of scores lies within 0..1 and within its interval; fewer than two have none."""
    interval = mean_interval(values)
    assert (interval is None) == (len(values) < 2)
    if interval is not None:
        assert 0 <= interval[0] <= interval[1] <= 1
        assert interval[0] - 1e-9 <= sum(values) / len(values) <= interval[1] + 1e-9


def test_rules_that_speak_of_nothing_are_counted_and_named() -> None:
    """A tool's name that no run calls passes all of them: the summary says so once, with the tools that they do call."""
    rule = call("search").needs("verify") & call("delet").then("log")
    rubric = Rubric(
        "r", [Criterion("Asks", check=call("serach").needs("verify"), id="o"), Criterion("Logs", check=rule, id="p")]
    )
    rubric = rubric.adding(Criterion("Hides none", check=call(failed=True).then("retry"), id="q"))
    runs = [Run([ToolCall("verify"), ToolCall("search", error="timeout" if n == 2 else "")]) for n in range(3)]
    grades = grade_many([Candidate("Done", run=run) for run in runs], rubric, "offline").collect()
    summary, counts = grades.summary(), Counts()
    assert [(c.vacuous, c.lacks) for c in summary.criteria] == [(3, "call('serach')"), (3, "call('delet')"), (2, "")]
    assert "\n'o' was kept vacuously in 3 of 3, since there is no call('serach'); the runs call search, verify" in str(
        summary
    )
    assert "'q' was" not in str(summary)
    assert "; 2 vacuous" in str(summary)
    for each in grades:
        counts.add(each)
    assert counts.summary() == summary


def test_a_judges_words_are_no_vacuous_rule() -> None:
    """Only rules over runs are counted, whatever a judge's reason says."""
    said = "kept vacuously, since there is no call('x')"
    judge = judge_function(lambda candidate, criterion: (True, said))
    assert [c.vacuous for c in grade_many(["a", "b"], "Is polite", judge).collect().summary().criteria] == [0]


def test_results_carry_what_they_are_grouped_by() -> None:
    """Variables and tags come back from a file, which groups as the results did; a long text is no group."""
    variables = {"topic": "refunds", "tier": 2, "new": True, "gap": float("nan"), "page": "x" * 201, "all": {"a": 1}}
    grades = grade_many([Candidate("1", variables=variables), Candidate("2")], "Says a number", "offline").collect()
    line = json.loads(grades.to_jsonl().splitlines()[0])
    assert line["variables"] == {"topic": "refunds", "tier": 2, "new": True, "gap": "nan"}
    again = Grades.from_dict(grades.to_dict(), grades[0].rubric)
    assert again.by("topic").keys() == grades.by("topic").keys() == {"refunds", "(none)"}
    assert again.by("tier").keys() == {"2", "(none)"}
    assert grades.rescore(threshold=0.1).by("topic")["refunds"][0].index == 0
    assert "variables" not in json.loads(grades.to_jsonl().splitlines()[1])


def test_a_secret_in_a_variable_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name, by its look, and where it is the value of a secret of the environment."""
    monkeypatch.setenv("SHOP_PASSWORD", "orange-lemon-7")
    variables = {"api_key": "abc", "says": "sk-abcdefgh12345678", "note": "it is orange-lemon-7", "topic": "a"}
    grades = grade_many([Candidate("1", variables=variables)], "Says a number", "offline").collect()
    assert json.loads(grades.to_jsonl())["variables"] == {
        "api_key": "***",
        "says": "[secret]",
        "note": "it is [secret]",
        "topic": "a",
    }


def test_frames_have_the_variables_of_the_candidates() -> None:
    """A column each, as text, by which rows are grouped."""
    candidates = [Candidate("1", variables={"topic": "refunds", "tier": 2}), Candidate("2")]
    grades = grade_many(candidates, "Says a number", "offline").collect()
    assert [row["variable.topic"] for row in grades.rows()] == ["refunds", None]
    frame = grades.to_pandas()
    assert frame.groupby("variable.topic")["score"].count().to_dict() == {"refunds": 1}
    assert frame["variable.tier"].dtype == "string"
    assert grades.to_polars()["variable.tier"].to_list() == ["2", None]
    assert "variable.topic" in grades.to_csv().splitlines()[0]
    assert [r.index for r in grades.sort("variable.topic")] == [0, 1]


def test_tables_have_the_score_on_the_scale_of_the_rubric() -> None:
    """A column where a rubric has one; an ungraded result has a gap there, and a score in 0..1 needs none."""
    rated = Rubric("r").rates("Is helpful", (1, 5), id="helpful").shown_as(Likert(1, 5))
    judge = Judge(lambda messages: '{"score": 4}' if "yes" in str(messages) else "?", prompt="{{ output }}")
    grades = grade_many(["yes", "no"], rated, judge).collect()
    assert [(row["shown"], row["score"]) for row in grades.rows()] == [("4.0/5", 0.75), (None, None)]
    assert grades.to_csv().splitlines()[0].startswith("index,shown,input")
    assert grades.to_pandas()["shown"].dtype == "string"
    assert "shown" not in grade_many(["yes"], "Says yes", "offline").collect().rows()[0]
