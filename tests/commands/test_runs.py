"""The command line on runs: which cases, how often, when to stop, what is printed where, and in which form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Case, Criterion, Judge, Jury, Rubric, Store, Suite
from rubric.errors import DefinitionError
from rubric.suites import Report, flips
from rubric.suites.reporters import github
from rubric.suites.suite import fits
from rubric.testing.scripted_model import ScriptedModel
from tests.command_line import REPLY, RUBRIC, run
from tests.places import ROOT
from tests.rows import each_row

SUITE = """\
suite: replies
cases:
  - {id: polite, input: Hi, output: Good morning, rubric: [Good morning]}
  - {id: rude, tags: [nightly], input: Hi, output: What, rubric: [Good morning]}
  - {id: curt, input: Hi, output: Morning, rubric: [Good morning, {id: name, text: Says a name}]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> str:
    """Return the name of a file with a suite of three cases, two of which fail."""
    file = tmp_path / "replies.yaml"
    file.write_text(SUITE)
    return str(file)


def ids(result: Any) -> list[str]:
    return [row["id"] for row in json.loads(result.stdout)["rows"]]


# -- which cases ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["ol"], ["polite"]),
        (["NIGHTLY"], ["rude"]),
        (["night"], None),
        (["*e"], ["polite", "rude"]),
        (["r?de", "curt"], ["rude", "curt"]),
        (["*"], ["polite", "rude", "curt"]),
    ],
)
def test_a_filter_takes_cases_by_id_or_tag(suite: str, patterns: list[str], expected: list[str] | None) -> None:
    """A pattern matches a whole id or tag, in any letter case; no match is an error that lists the ids."""
    options = [text for pattern in patterns for text in ("--filter", pattern)]
    result = run("grade", suite, "-j", "offline", "--format", "json", *options)
    if expected is None:
        assert (result.exit_code, result.stdout) == (2, "")
        assert "the cases are polite, rude, curt" in result.stderr
    else:
        assert ids(result) == expected


def test_a_plan_counts_the_filtered_cases_alone(suite: str) -> None:
    """`plan --filter` counts no call of the cases that the filter leaves out."""
    planned = json.loads(run("plan", suite, "-j", "offline", "--filter", "curt", "--format", "json").stdout)
    assert planned["calls"]["most"] == 2


def test_a_file_without_a_fitting_case_is_left_out(suite: str, tmp_path: Path) -> None:
    """Among several files, the filter runs the matching case and reports no error for the others."""
    other = tmp_path / "other.yaml"
    other.write_text("suite: x\ncases: [{id: last, output: Hi, rubric: [Hi]}]\n")
    assert ids(run("grade", suite, str(other), "-j", "offline", "--filter", "last", "--format", "json")) == ["last"]


def test_a_filter_is_that_of_the_baseline_too(suite: str, tmp_path: Path) -> None:
    """Cases of the baseline that the filter leaves out are not reported as missing."""
    before = tmp_path / "before.json"
    run("grade", suite, "-j", "offline", "--out", str(before))
    result = run("grade", suite, "-j", "offline", "--filter", "polite", "--baseline", str(before))
    assert result.exit_code == 0
    assert "rude" not in result.stdout


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("--exclude nightly", ["polite", "curt"]),
        ("--exclude nightly --exclude CURT", ["polite"]),
        ("--filter r?de --filter polite --exclude rude", ["polite"]),
        ("--exclude slow", "--exclude: no case fits 'slow'; the cases are polite, rude, curt; the tags are nightly"),
        ("--filter rude --exclude nightly", "--exclude: it leaves no case: each one fits 'nightly'"),
    ],
)
def test_cases_are_left_out_by_id_or_tag(suite: str, options: str, expected: list[str] | str, tmp_path: Path) -> None:
    """`--exclude` follows the rules of `--filter`, in a run, its plan and its baseline; a word that fits none is refused."""
    before = str(tmp_path / "before.json")
    result = run("grade", suite, "-j", "offline", "--format", "json", *options.split())
    if isinstance(expected, str):
        assert (result.exit_code, result.stdout) == (2, "")
        assert expected in result.stderr
        return
    assert ids(result) == expected
    planned = json.loads(run("plan", suite, "-j", "offline", "--format", "json", *options.split()).stdout)
    assert planned["calls"]["least"] == len(expected) + ("curt" in expected)
    run("grade", suite, "-j", "offline", "--out", before)
    compared = run("grade", suite, "-j", "offline", "--baseline", before, *options.split())
    assert compared.exit_code in (0, 1)
    assert "rude" not in compared.stdout


@given(st.text(min_size=1), st.text(), st.text())
def test_an_id_fits_each_part_of_it_and_a_star(part: str, before: str, after: str) -> None:
    """A pattern without wildcards matches every id that contains it; `*` matches all."""
    id_ = before + part + after
    assert fits(["*"], id_)
    if "*" not in part and "?" not in part:
        assert fits([part], id_)
        assert fits([part.upper()], id_.upper())


def test_a_suite_in_code_is_filtered_alike() -> None:
    """`Suite.filter` follows the rules of `--filter`, with the same error."""
    suite = Suite("s", [Case("a", "Is polite", output="x"), Case("b", "Is polite", output="x", tags=["t"])])
    assert [case.id for case in suite.filter("t")] == ["b"]
    with pytest.raises(DefinitionError, match="no case fits 'z'; the cases are a, b"):
        suite.filter("z")
    assert [case.id for case in suite.without("t")] == ["a"]
    assert suite.filter(["t"]) == suite.filter("t") == suite.only(["b"]) == suite.without(["a"])
    with pytest.raises(DefinitionError, match="all cases fit 'a', 'b', so that none is left"):
        suite.without("a", "b")


# -- repetitions ------------------------------------------------------------------------------------------


def flipping(*verdicts: bool, **options: Any) -> Judge:
    """Return a judge that gives *verdicts*, one after another, again and again."""
    answers = cycle(verdicts)
    return Judge(ScriptedModel(lambda _: {"reason": "r", "verdict": next(answers)}), sealed=False, **options)


CASES = Suite("s", [Case("a", Rubric("r", criteria=["Is polite"]), output="Thanks")])


@pytest.mark.parametrize(
    ("verdicts", "rate", "flipped"),
    [((True, True, True, True), 0.0, 0), ((True, False, True, False), 4 / 6, 1), ((True, True, True, False), 0.5, 1)],
)
def test_the_flip_rate_is_the_share_of_pairs_that_differ(verdicts: tuple[bool, ...], rate: float, flipped: int) -> None:
    """Four repetitions are six pairs; the rate is the share of pairs with two different verdicts."""
    report = CASES.run(flipping(*verdicts), repeat=4)
    whole, only = flips(report)
    assert (whole.id, only.id) == ("(verdict)", "is-polite")
    assert only.rate == whole.rate == pytest.approx(rate)
    assert (only.flipped, only.cases, only.pairs) == (flipped, 1, 6)
    assert [row.id for row in report] == [f"a [repeat {n}]" for n in (1, 2, 3, 4)]


def test_flip_rates_survive_a_file(tmp_path: Path) -> None:
    """A report that is read back from its file gives the same flip rates."""
    report = CASES.run(flipping(True, False), repeat=2)
    assert flips(Report.load(report.write(tmp_path / "r.json"))) == flips(report)
    assert flips(report).to_dict()["flips"][0]["rate"] == 1


def test_a_report_without_repetitions_has_no_flip_rates() -> None:
    """One run of a case makes no pair."""
    assert len(flips(CASES.run(flipping(True)))) == 0


def test_a_repetition_that_was_not_judged_is_in_no_pair() -> None:
    """An ungraded repetition is left out; the two others make the only pair."""
    lines: list[Any] = [{"reason": "r", "verdict": True}, "none", "again", {"reason": "r", "verdict": False}]
    report = CASES.run(Judge(ScriptedModel(lines), sealed=False), repeat=3)
    assert [row.status for row in report] == ["passed", "ungraded", "failed"]
    assert (flips(report)["is-polite"].pairs, flips(report)["is-polite"].rate) == (1, 1)


ASKED: list[bool] = []


def alternating(_: Any) -> str:
    """Answer yes, no, yes, no, ...; a function of a module, so that the store can tell it by its name."""
    ASKED.append(len(ASKED) % 2 == 0)
    return json.dumps({"reason": "r", "verdict": ASKED[-1]})


@pytest.mark.parametrize("size", [1, 3])
def test_the_store_keeps_each_repetition_and_serves_all_of_them(tmp_path: Path, size: int) -> None:
    """Each repetition has its own reply in the store, and the second run sends no request."""
    one = Judge(alternating, sealed=False, identity="v1")
    judge = one if size == 1 else Jury(one, size, early_stop=False)
    ASKED.clear()
    with Store(tmp_path / "r.db") as store:
        first = CASES.run(judge, repeat=4, store=store)
        assert len(ASKED) == 4 * size
        again = CASES.run(judge, repeat=4, store=store)
    assert len(ASKED) == 4 * size
    assert [row.score for row in again] == [row.score for row in first]
    assert len({row.score for row in first}) == 2


def test_a_target_is_asked_once_a_case() -> None:
    """Repetitions grade one output again; they do not ask the target for a new one."""
    asked = []

    def target(case: Case) -> str:
        asked.append(case.id)
        return "Thanks"

    live = Suite("s", [Case("a", Rubric(criteria=["Is polite"]), input="Hi")])
    assert len(live.run(flipping(True), target=target, repeat=3)) == 3
    assert asked == ["a"]


def test_the_flip_rates_are_printed_below_the_report(suite: str) -> None:
    """People read them on standard output; with `--format json` they go to standard error."""
    result = run("grade", suite, "-j", "offline", "--repeat", "2")
    assert "polite [repeat 2]" in result.stdout
    assert "flip rate" in result.stdout
    machine = run("grade", suite, "-j", "offline", "--repeat", "2", "--format", "json")
    assert len(json.loads(machine.stdout)["rows"]) == 6
    assert "flip rate" in machine.stderr


# -- when to stop -----------------------------------------------------------------------------------------


def test_fail_fast_starts_no_case_after_the_first_that_fails(suite: str) -> None:
    """The report holds the cases up to the failure, with a warning that counts the others."""
    result = run("grade", suite, "-j", "offline", "--fail-fast", "--concurrency", "1", "--format", "json")
    assert result.exit_code == 1
    assert ids(result) == ["polite", "rude"]
    assert json.loads(result.stdout)["warnings"] == ["the run stopped early: 1 of 3 cases were not run"]


def test_fail_fast_starts_no_further_file(suite: str, tmp_path: Path) -> None:
    """A failure in the first file stops the second, and the report says so."""
    other = tmp_path / "other.yaml"
    other.write_text("suite: x\ncases: [{id: last, output: Hi, rubric: [Hi]}]\n")
    result = run("grade", suite, str(other), "-j", "offline", "--fail-fast", "--concurrency", "1", "--format", "json")
    assert ids(result) == ["replies: polite", "replies: rude"]
    assert "1 of 2 files were not run" in result.stdout


def test_a_run_without_failures_is_whole_with_fail_fast(suite: str) -> None:
    """`--fail-fast` changes nothing when every case passes."""
    assert len(ids(run("grade", suite, "-j", "offline", "-t", "0", "--fail-fast", "--format", "json"))) == 3


# -- forms and files --------------------------------------------------------------------------------------


def test_each_out_is_written_in_the_form_of_its_ending(suite: str, tmp_path: Path) -> None:
    """Three `--out` files become JSON, JUnit XML and HTML."""
    outs = [tmp_path / name for name in ("r.json", "r.xml", "r.html")]
    run("grade", suite, "-j", "offline", *(text for out in outs for text in ("--out", str(out))))
    assert [out.read_text()[:1] for out in outs] == ["{", "<", "<"]
    assert len(Report.load(outs[0])) == 3


@pytest.mark.parametrize(("rate", "code"), [("0", 0), ("0.33", 0), ("0.34", 1), ("1", 1)])
def test_a_suite_fails_only_below_its_smallest_pass_rate(suite: str, tmp_path: Path, rate: str, code: int) -> None:
    """One of three passes; the report for the server of CI is written all the same, with each failure."""
    out = tmp_path / "junit.xml"
    result = run("grade", suite, "--judge", "offline", "--min-pass-rate", rate, "--out", str(out))
    assert (result.exit_code, out.read_text("utf-8").count("<failure")) == (code, 2)


def test_a_pass_rate_that_is_met_is_not_called_missed(tmp_path: Path) -> None:
    """Deferred cases may fail a suite of which enough passes."""
    file = tmp_path / "s.yaml"
    file.write_text(
        "suite: s\nrubric: Hello\ncases: [{id: a, output: Hello}, {id: b, output: Bye}, {id: c, input: Hi}]\n"
    )
    for rate, said in (("0.5", False), ("0.8", True)):
        done = run("grade", str(file), "-j", "offline", "--deferred", "fail", "--min-pass-rate", rate)
        assert (done.exit_code, f"50.0% pass, fewer than --min-pass-rate {rate}" in done.stderr) == (1, said)


def test_a_failed_case_beside_a_baseline_fails_the_run_and_is_told(suite: str, tmp_path: Path) -> None:
    """Two of three fail as before: no drop, so what fails the run is said, and `--min-pass-rate 0` leaves them out."""
    earlier, said = str(tmp_path / "earlier.json"), "2 of 3 graded cases fail"
    run("grade", suite, "-j", "offline", "--out", earlier)
    for more in ([], ["--risk", "0.05"], ["--largest-drop", "0.1"]):
        done = run("grade", suite, "-j", "offline", "--quiet", "--baseline", earlier, *more)
        assert "No worse than the baseline" in done.stdout
        assert (done.exit_code, said in done.stderr, "; --min-pass-rate 0 " in done.stderr) == (1, True, True)
        done = run("grade", suite, "-j", "offline", "--quiet", "--baseline", earlier, *more, "--min-pass-rate", "0")
        assert (done.exit_code, said in done.stderr) == (0, False)


def test_a_case_without_a_grade_is_an_error_at_any_pass_rate() -> None:
    """It may be a pass or a fail; deferred cases count as the suite says."""
    rubric = Rubric("r", ["Is it good?"])
    report = Suite("s", [Case("a", rubric, output="x")]).run(Judge(ScriptedModel([]), retries=0))
    assert [report.exit_code_at(rate) for rate in (0, 1)] == [2, 2]
    waiting = Suite("s", [Case("a", rubric)]).run("offline", deferred="fail")
    assert (waiting.exit_code, waiting.exit_code_at(0)) == (1, 1)


def test_the_quiet_report_is_the_totals_alone(suite: str) -> None:
    """`--quiet` prints one line with the counts, and nothing to standard error."""
    result = run("grade", suite, "-j", "offline", "--quiet")
    assert (result.stderr, len(result.stdout.splitlines())) == ("", 1)
    assert result.stdout.startswith("1 passed, 2 failed")


def test_the_verbose_report_has_the_criteria_that_are_met_too(suite: str) -> None:
    """`--verbose` adds the criteria that were met, and the texts of the criteria."""
    usual, verbose = (run("grade", suite, "-j", "offline", *more).stdout for more in ((), ("--verbose",)))
    assert (usual.count("good-morning"), verbose.count("good-morning")) == (2, 3)
    assert "Says a name" in verbose


def test_a_quiet_grade_is_one_line() -> None:
    """`grade --quiet` of one candidate prints its verdict in one line."""
    (line,) = run("grade", RUBRIC, REPLY, "-j", "offline", "--quiet").stdout.splitlines()
    assert line.startswith("pass")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out", "a.xml", "--out", "b.json", "--reporter", "md"), "leave --reporter out"),
        (("--out", "a.xml", "--out", "./a.xml"), "one file twice"),
        (("--verbose", "--quiet"), "give one"),
        (("--verbose", "--format", "json"), "not for the form 'json'"),
        (("--verbose", "--reporter", "github"), "not for the form 'github'"),
        (("--repeat", "0"), "--repeat"),
        (("--concurrency", "0"), "--concurrency"),
        (("--color", "red"), "--color"),
    ],
)
def test_options_that_contradict_each_other_are_refused(suite: str, arguments: tuple[str, ...], message: str) -> None:
    """Each contradiction is one line on standard error with exit code 2, before anything runs."""
    result = run("grade", suite, "-j", "offline", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("option", [("--filter", "a"), ("--repeat", "2"), ("--fail-fast",), ("--verbose",)])
def test_options_of_suites_are_refused_for_one_candidate(option: tuple[str, ...]) -> None:
    """The error names the option and says that it is for suites."""
    for command in ("grade", "plan") if option[0] == "--filter" else ("grade",):
        result = run(command, RUBRIC, REPLY, "-j", "offline", *option)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{option[0]} has no use for one candidate" in result.stderr


def test_nothing_is_wrapped_or_coloured_in_a_pipe(tmp_path: Path) -> None:
    """A long line stays whole whatever `COLUMNS` says, without escape codes or trailing spaces."""
    long = " ".join(f"word{n}" for n in range(60))
    file = tmp_path / "s.yaml"
    file.write_text(f"suite: s\ncases: [{{id: a, output: x, rubric: [{{id: long, text: {long}}}]}}]\n")
    for command in ("plan", "grade"):
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "rubric",
                command,
                str(file),
                "-j",
                "offline",
                *(["-v"] if command == "grade" else []),
            ],
            cwd=ROOT,
            env={**os.environ, "COLUMNS": "40"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "\x1b" not in done.stdout
        assert any("word0 word1" in line and "word20" in line for line in done.stdout.splitlines())
        assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_colour_is_always_there_where_it_is_asked_for(suite: str) -> None:
    """`--color always` colours output that is not a terminal; `never` does not."""
    assert "\x1b[" in run("grade", suite, "-j", "offline", "--color", "always").stdout
    assert "\x1b[" not in run("grade", suite, "-j", "offline", "--color", "never").stdout


# -- before the first call --------------------------------------------------------------------------------


def test_the_head_says_what_the_run_will_take_before_it_begins(suite: str, tmp_path: Path) -> None:
    """Standard error gets cases, repetitions, calls, cost and judge, and later the store's replies."""
    store = str(tmp_path / "r.db")
    result = run("grade", suite, "-j", "offline", "--repeat", "2", "--store", store)
    assert result.stderr == "replies: 3 cases 2 times, 8 calls, free of charge, judged by offline\n"
    again = run("grade", suite, "-j", "offline", "--repeat", "2", "--store", store)
    assert again.stderr.endswith(f"replies in {store} are not paid for again\n")


def test_the_head_of_a_large_suite_is_projected_from_a_part_of_it(tmp_path: Path) -> None:
    """Above the limit the number of calls is an estimate, marked with "about"."""
    cases = [{"id": f"c{n}", "output": "Hi", "rubric": ["Is polite", "Is short"]} for n in range(451)]
    file = tmp_path / "s.json"
    file.write_text(json.dumps({"suite": "s", "cases": cases}))
    result = run("grade", str(file), "-j", "offline", "--reporter", "tap", "--concurrency", "64")
    assert result.stderr == "s: 451 cases, about 902 calls, free of charge, judged by offline\n"


def test_the_head_counts_what_waits(tmp_path: Path) -> None:
    """A case without an output counts as deferred and adds no calls."""
    file = tmp_path / "s.yaml"
    file.write_text("suite: s\ncases: [{id: a, input: Hi, rubric: [Is polite]}]\n")
    assert run("grade", str(file), "-j", "offline").stderr == "s: 1 case, 1 deferred, no calls, judged by offline\n"


def test_a_plan_shows_the_rubric_with_its_criteria_and_its_threshold(suite: str) -> None:
    """Each rubric of a suite is shown with its criteria's texts and its passing score."""
    shown = run("plan", RUBRIC, "-j", "offline").stdout
    assert "support reply (5 criteria, pass at 0.8)" in shown
    assert "Links the help-centre article on refunds" in shown
    assert run("plan", suite, "-j", "offline").stdout.count("pass at 0.7") == 2


def test_a_plan_shows_the_rules_and_the_conditions(tmp_path: Path) -> None:
    """The plan spells out the evidence rule, the aggregation, the scale and `when`."""
    file = tmp_path / "e.yml"
    file.write_text(
        "evals:\n- name: b\n  prompt: P\n  rubric:\n    aggregation: min\n"
        "    require_evidence: true\n    scale: {likert: {min: 1, max: 5}}\n"
        "    criteria: [{name: c, description: D, when: {contains: error}}]\n"
    )
    shown = run("plan", str(file), "-j", "offline").stdout
    assert "evidence asked for, aggregation: min, shown as Likert" in shown
    assert "only When(contains='error')" in shown


# -- one voice --------------------------------------------------------------------------------------------


def test_a_failure_that_several_criteria_share_is_told_once() -> None:
    """One line names all four criteria and the judge that failed."""
    result = run("grade", RUBRIC, REPLY, "-j", "no-vendor/no-model")
    assert "4 criteria (answers, cites, clarity, gift), judge 'no-vendor/no-model'" in result.stderr
    assert len(result.stderr.splitlines()) == 2


def test_a_reason_that_several_cases_share_is_told_once(suite: str) -> None:
    """The missing judge is reported once, with the number of cases."""
    result = run("grade", suite)
    assert result.stdout.count("OPENAI_API_KEY") == 1
    assert "3 cases: no judge was given" in result.stdout


@pytest.mark.parametrize("arguments", [("--x",), ("nothing",), ("grade", "--bogus"), ("store", "stats", "--x")])
def test_a_wrong_call_is_told_in_one_line_that_names_the_help(arguments: tuple[str, ...]) -> None:
    """Unknown options and commands print one line that ends with the `--help` to read."""
    (line,) = run(*arguments).stderr.splitlines()
    assert line.endswith("--help")


# -- GitHub -----------------------------------------------------------------------------------------------


def test_github_gets_annotations_and_the_summary_of_the_step(
    suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reporter prints `::error` lines and appends the report to the step's summary file."""
    summary, html = tmp_path / "summary", tmp_path / "r.html"
    summary.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    result = run("grade", suite, "-j", "offline", "--reporter", "github", "--out", str(html))
    first, *_, last = result.stdout.splitlines()
    assert first.startswith(f"::error file={suite},line=4,col=5,title=good-morning::rude%3A".replace("%3A", ":"))
    assert last == "1 passed, 2 failed"
    assert summary.read_text().startswith("before\n")
    assert "rude" in summary.read_text()
    assert html.exists()


def test_annotations_that_are_written_into_the_page_are_told_of(suite: str, tmp_path: Path) -> None:
    """As by `>> "$GITHUB_STEP_SUMMARY"`, which has the page already: GitHub reads annotations from the log alone."""
    summary = tmp_path / "summary.md"
    command = [sys.executable, "-m", "rubric", "grade", suite, "-j", "offline", "--reporter", "github"]
    environ = {**os.environ, "GITHUB_STEP_SUMMARY": str(summary), "PYTHONPATH": str(ROOT)}
    with summary.open("a") as page:
        done = subprocess.run(command, env=environ, stdout=page, stderr=subprocess.PIPE, text=True, check=False)
    assert "annotations are not read from $GITHUB_STEP_SUMMARY: the page is written by itself" in done.stderr
    assert done.returncode == 1


HOSTILE = "x\n::error::owned\r\n##[add-mask]100% , : done"


def test_no_text_of_a_candidate_becomes_a_command() -> None:
    """Newlines, commas, colons and percent signs are escaped, so no text starts an annotation."""
    judge = Judge(ScriptedModel(lambda _: {"reason": HOSTILE, "verdict": False}), sealed=False)
    suite = Suite(HOSTILE, [Case("::error::a", Rubric("r,:%", criteria=[Criterion(HOSTILE, id="c")]), output=HOSTILE)])
    lines = github.render(suite.run(judge)).splitlines()
    assert (len(lines), lines[1]) == (2, "1 failed")
    head, _, message = lines[0].removeprefix("::error ").partition("::")
    assert head == "title=r%2C%3A%25/c"
    assert "100%25" in message
    assert "%0A" not in head


@each_row("letter", ["y", "字", "🙂"])
def test_a_summary_that_github_would_not_show_is_cut(letter: str) -> None:
    """A summary stays below GitHub's limit of one megabyte, in whatever script."""
    row = evolve(CASES.run(flipping(False)).rows[0], status="failed", input="x" * 5_000, output=letter * 5_000)
    text = github.render_summary(Report("s", tuple(evolve(row, id=f"{n}") for n in range(3_000))), "**Worse**\n\n")
    assert len(text) > 240_000
    assert len(text.encode()) <= 1_000_000
    assert text.startswith("**Worse**\n\n## s: 3000 failed")
    assert "Left out here" in text


# -- many candidates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "head"),
    [
        (3, "3 candidates, 12 calls, free of charge"),
        (
            40,
            "40 candidates, about 160 calls, free of charge",
        ),
    ],
)
def test_the_head_of_many_projects_from_the_first(tmp_path: Path, count: int, head: str) -> None:
    """A few candidates are counted; for forty the number of calls is an estimate."""
    file = tmp_path / "c.jsonl"
    file.write_text('{"output": "The refund arrives."}\n' * count)
    result = run("grade-many", RUBRIC, str(file), "-j", "offline")
    assert result.stderr.splitlines()[0] == f"{file}: {head}"


def test_a_quiet_run_of_many_prints_one_line(tmp_path: Path) -> None:
    """`grade-many --quiet` prints its totals alone."""
    file = tmp_path / "c.jsonl"
    file.write_text('{"output": "The refund arrives."}\n' * 3)
    result = run("grade-many", RUBRIC, str(file), "-j", "offline", "--quiet")
    assert (result.stderr, len(result.stdout.splitlines())) == ("", 1)
