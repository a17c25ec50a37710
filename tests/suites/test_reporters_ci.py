"""The reporters for CI: each is read back by another library, or held against its published schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve
from hypothesis import given
from jsonschema import Draft7Validator, Draft202012Validator
from junitparser import JUnitXml
from tap.parser import Parser  # type: ignore[import-untyped]  # it does not say what its types are
from xmlschema import XMLSchema

from rubric.suites.report import Deferred, Report
from rubric.suites.reporters.issues import address, issues
from rubric.suites.reporters.junit import outcome
from rubric.values.findings import Evidence, Step
from rubric.values.places import Place
from tests.examples import examples
from tests.places import ROOT
from tests.reports import DEFERRED, FAILED, JUDGED, NASTY, PASSED, REPORT, UNGRADED, VACUOUS, entry, reports
from tests.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Sequence

FILES = ROOT / "tests" / "files" / "reports"
XSD = XMLSchema(str(FILES / "junit.xsd"))
SARIF = Draft7Validator(json.loads((FILES / "sarif.schema.json").read_text()))
GITLAB = Draft202012Validator(json.loads((FILES / "gitlab.schema.json").read_text()))

MANY_NASTY = Report("nasty", tuple(evolve(FAILED, id=text, output=text, reason=text, rubric=text) for text in NASTY))


def kinds(report: Report) -> dict[str, int]:
    """Return how many cases of each kind JUnit should count."""
    found = [outcome(report, row) for row in report]
    return {name: found.count(name) for name in ("failure", "error", "skipped")}


def junit(report: Report) -> dict[str, int]:
    """Return what a reader of JUnit counts, one by one, in a file that fits the schema."""
    text = report.render("junit")
    XSD.validate(text)
    (suite,) = JUnitXml.fromstring(text.encode())
    cases = list(suite)
    assert len(cases) == suite.tests == len(report)
    counted = {
        "failure": sum(case.is_failure for case in cases),
        "error": sum(case.is_error for case in cases),
        "skipped": sum(case.is_skipped for case in cases),
    }
    assert counted == {"failure": suite.failures, "error": suite.errors, "skipped": suite.skipped}
    return counted


# -- JUnit -----------------------------------------------------------------------------------------------


@given(reports)
@examples(25)
def test_junit_fits_the_schema_and_counts_what_the_report_counts(report: Report) -> None:
    """Whatever the texts hold, the file is XML that another library reads."""
    assert junit(report) == kinds(report)


@pytest.mark.parametrize(("deferred", "kind"), [("pass", "skipped"), ("fail", "failure"), ("error", "error")])
def test_what_is_deferred_is_in_junit_what_it_counts_as(deferred: Deferred, kind: str) -> None:
    """A case without a candidate is skipped only where the report lets it pass."""
    assert junit(Report("s", (DEFERRED,), deferred=deferred))[kind] == 1


def test_what_is_ungraded_is_an_error_in_junit_and_not_a_failure() -> None:
    """A judge that failed is never a verdict."""
    assert junit(Report("s", (UNGRADED, FAILED, PASSED))) == {"failure": 1, "error": 1, "skipped": 0}


def test_a_case_in_junit_holds_its_score_its_reasons_and_its_candidate() -> None:
    """Who reads the CI page sees why, without another file."""
    (suite,) = JUnitXml.fromstring(REPORT.render("junit").encode())
    case = next(iter(suite))
    properties = {p.get("name"): p.get("value") for p in case._elem.iterfind("properties/property")}
    assert (properties["score"], properties["threshold"], properties["shown"]) == ("0.62", "0.8", "3.5/5")
    assert case.result[0].message == "'refund' failed it"
    assert "refund: 0.00, gate failed · It promises it all. · “the full price” “x” (not found)" in case.result[0].text
    assert case.system_out == FAILED.output


def test_what_xml_cannot_hold_is_shown_as_an_escape() -> None:
    """Control characters, half surrogates and non-characters are neither dropped nor written raw."""
    row = evolve(PASSED, output="a\x00b\x1b\ud800\ufffe")
    text = Report("s", (row,)).render("junit")
    assert "a\\u{0}b\\u{1b}\\u{d800}\\u{fffe}" in text


# -- TAP -------------------------------------------------------------------------------------------------


def tap(report: Report) -> list[Any]:
    """Return the results that a reader of TAP finds, after a plan of so many."""
    lines = list(Parser().parse_text(report.render("tap")))
    assert [line.expected_tests for line in lines if line.category == "plan"] == [len(report)]
    assert not [line for line in lines if line.category in ("bail", "unknown")]
    return [line for line in lines if line.category == "test"]


@given(reports)
@examples(25)
def test_tap_reads_back_with_every_case_once(report: Report) -> None:
    """No id, reason or candidate makes a line of its own, or turns a result over."""
    fine = [r.status == "passed" or (r.status == "deferred" and report.deferred == "pass") for r in report]
    assert [result.ok for result in tap(report)] == fine


def test_tap_has_a_skip_for_what_is_deferred_and_counts_as_a_pass_only() -> None:
    """A number sign in an id is not a directive."""
    rows = (DEFERRED, evolve(FAILED, id="x # SKIP"), evolve(FAILED, id="y # TODO"))
    results = tap(Report("s", rows, deferred="pass"))
    assert [(result.ok, result.skip, result.todo) for result in results] == [
        (True, True, False),
        (False, False, False),
        (False, False, False),
    ]


def test_the_diagnostics_of_tap_are_yaml_that_holds_the_texts_as_they_are() -> None:
    """The id, the reasons and the figures come back from the block."""
    for row, result in zip(MANY_NASTY, tap(MANY_NASTY), strict=True):
        block = result.yaml_block
        assert (block["id"], block["message"] if row.reason else "", block["score"]) == (row.id, row.reason, 0.62)
        assert [c["id"] for c in block["criteria"]] == [e.id for e in row.entries]


# -- SARIF and GitLab ------------------------------------------------------------------------------------


def sarif(report: Report) -> dict[str, Any]:
    """Return the one run of a SARIF log that fits the schema."""
    log = json.loads(report.render("sarif"))
    SARIF.validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(set(rules)) == len(rules)
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert run["invocations"][0]["exitCode"] == report.exit_code
    found: dict[str, Any] = run
    return found


def prints(found: Sequence[dict[str, Any]]) -> list[str]:
    """Return the fingerprints of a GitLab report."""
    return [str(issue["fingerprint"]) for issue in found]


@given(reports)
@examples(25)
def test_sarif_and_gitlab_fit_their_schemas_with_something_for_each_case_that_was_not_judged_a_pass(
    report: Report,
) -> None:
    """Both say the same: at least one issue for each such case, and none for those that a judge passed."""
    run, quality = sarif(report), json.loads(report.render("gitlab"))
    GITLAB.validate(quality)
    assert len(run["results"]) == len(quality) == len(issues(report))
    assert {id(i.row) for i in issues(report)} == {id(r) for r in report if r.status != "passed" or r.vacuous}
    assert len(set(prints(quality))) == len(quality)


def test_the_results_of_sarif_are_the_criteria_that_fell_short() -> None:
    """What was met is not a result; the place is that of the case."""
    run = sarif(Report("s", (FAILED,)))
    assert [result["ruleId"] for result in run["results"]] == ["support/refund", "support/style"]
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "suites/support.yaml"
    assert place["region"] == {"startLine": 12, "startColumn": 5}


def test_sarif_tells_failed_from_ungraded_and_deferred() -> None:
    """What failed is an error; what could not be judged is a warning, unless the report says otherwise."""
    rows = (FAILED, UNGRADED, DEFERRED)
    levels = [
        [r["level"] for r in sarif(Report("s", rows, deferred=d))["results"][1:]] for d in ("pass", "error", "fail")
    ]
    assert levels == [["error", "warning", "note"], ["error", "warning", "warning"], ["error", "warning", "error"]]


def test_two_criteria_of_one_name_are_two_rules() -> None:
    """Rubrics without a name often share the ids of their criteria."""
    rows = [evolve(FAILED, id=text, rubric="", entries=(entry("c1", 0.0, text),)) for text in ("one", "two")]
    first, second = (result["ruleId"] for result in sarif(Report("s", tuple(rows)))["results"])
    assert first.startswith("c1/")
    assert second.startswith("c1/")
    assert first != second


def test_a_fingerprint_is_the_same_in_the_next_run() -> None:
    """It rests on the suite, the case and the criterion: not on a score, a reason, a line or the order."""
    again = evolve(FAILED, score=0.1, reason="else", place=Place("suites/support.yaml", 99))
    before = prints(json.loads(Report("s", (PASSED, FAILED)).render("gitlab")))
    assert prints(json.loads(Report("s", (again,)).render("gitlab"))) == before


def test_no_two_issues_share_a_fingerprint() -> None:
    """Not even where cases share an id: a reader would show one of them alone."""
    found = prints(json.loads(Report("s", (FAILED, FAILED)).render("gitlab")))
    assert len(set(found)) == len(found) == 4


def test_a_gate_that_failed_is_critical_in_gitlab() -> None:
    """A low score is major, and what could not be judged minor."""
    quality = json.loads(Report("s", (FAILED, UNGRADED)).render("gitlab"))
    assert [issue["severity"] for issue in quality] == ["critical", "major", "minor"]
    assert quality[0]["location"] == {"path": "suites/support.yaml", "lines": {"begin": 12}}


@pytest.mark.parametrize(
    ("source", "uri"),
    [
        ("a b/ü.yaml", "a%20b/%C3%BC.yaml"),
        ("/srv/s.yaml", "file:///srv/s.yaml"),
        ("C:\\x y\\s.yaml", "file:///C:/x%20y/s.yaml"),
        ("javascript:x", "javascript%3Ax"),
        ("<b>?#", "%3Cb%3E%3F%23"),
    ],
)
def test_a_file_name_becomes_an_address(source: str, uri: str) -> None:
    """What is not allowed in one is escaped; a scheme is never taken from a name."""
    assert address(source) == uri


def test_an_absolute_name_within_the_working_folder_becomes_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code scanning and merge requests know files from the folder that was checked out."""
    monkeypatch.chdir(tmp_path)
    row = evolve(FAILED, place=Place(str(tmp_path / "suites" / "a.yaml"), 3))
    report = Report("s", (row,))
    location = sarif(report)["results"][0]["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "suites/a.yaml"
    assert json.loads(report.render("gitlab"))[0]["location"]["path"] == "suites/a.yaml"


# -- all of them -----------------------------------------------------------------------------------------

NAMES = ("pretty", "json", "ndjson", "csv", "junit", "tap", "md", "html", "sarif", "gitlab")


@each_row("name", NAMES)
def test_an_empty_report_renders(name: str) -> None:
    """No cases are not an error of the reporter's."""
    text = Report("").render(name)
    assert text.strip()
    assert text.endswith("\n")


def test_an_empty_report_reads_back() -> None:
    """Each reader finds nothing, and no fault."""
    empty = Report("")
    assert junit(empty) == {"failure": 0, "error": 0, "skipped": 0}
    assert tap(empty) == []
    assert sarif(empty)["results"] == []
    assert json.loads(empty.render("gitlab")) == []


@each_row("name", NAMES)
def test_any_text_renders_as_something_that_can_be_encoded(name: str) -> None:
    """Half surrogates are in no output, and control characters only where JSON escapes them."""
    text = MANY_NASTY.render(name)
    text.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", text)


@each_row("name", NAMES)
def test_a_pass_to_which_nothing_applied_is_told_from_one_that_was_judged(name: str) -> None:
    """A reader who sees no more than 1.00 takes it for a verdict."""
    judged, vacuous = (Report("s", (row,)).render(name) for row in (evolve(VACUOUS, vacuous=False), VACUOUS))
    said = {"json": '"vacuous": true', "ndjson": '"vacuous": true', "html": '"vacuous":true'}.get(name, "vacuous")
    assert said in vacuous
    assert said not in judged


@pytest.mark.parametrize("name", ["junit", "tap", "md", "pretty"])
def test_a_pass_shows_its_path_its_quotes_and_its_reasons(name: str) -> None:
    """Those of its tree, of its criteria, and of the criteria and trees within them."""
    text = Report("s", (JUDGED,)).render(name).replace("\\u201c", "“").replace("\\u201d", "”")
    for words in ("Is it urgent? yes", "It says where.", "“in Oslo”", "Is it required? no", "By name.", "“Hello Ada”"):
        assert words in text


def test_vacuous_passes_and_those_that_show_their_reasons_fit_the_schemas() -> None:
    """The notes of SARIF and GitLab are not errors, and JUnit counts no failure."""
    report = Report("s", (JUDGED, VACUOUS))
    assert junit(report) == {"failure": 0, "error": 0, "skipped": 0}
    assert [(result["level"], result["properties"]["vacuous"]) for result in sarif(report)["results"]] == [
        ("note", True)
    ]
    (issue,) = json.loads(report.render("gitlab"))
    GITLAB.validate([issue])
    assert (issue["severity"], issue["description"]) == ("info", "free: passed, vacuous: nothing applied.")
    assert [result.ok for result in tap(report)] == [True, True]


def test_a_nested_rubric_of_which_nothing_applied_is_vacuous() -> None:
    """Its contribution of 1 is judged by nobody either."""
    row = evolve(JUDGED, entries=(entry("format", 1.0, parts=VACUOUS.entries),))
    assert "1.00, vacuous" in Report("s", (row,)).render("md")


@pytest.mark.parametrize("name", ["pretty", "junit", "tap", "md"])
def test_what_is_shown_of_a_pass_is_bounded(name: str) -> None:
    """However long its path, its reasons and its quotes are."""
    long = "a" * 500_000
    many = (Evidence(long),) * 1_000  # each text is searched for keys once: 26 seconds for a thousand of each
    walked = (Step(long, yes=True, score=1.0, reason=long),) * 1_000
    row = evolve(JUDGED, output="", path=walked, entries=(entry("c", 1.0, reason=long, evidence=many, path=walked),))
    assert len(Report("s", (row,)).render(name)) < 10_000


def test_the_criteria_of_passes_in_markdown_are_bounded_and_the_rest_is_told() -> None:
    """A comment or a job summary that is too long is not shown at all."""
    text = Report("s", (JUDGED,) * 100).render("md")
    assert text.count("It says where.") == 50
    assert "200 criteria of passed cases are left out here." in text


@each_row("name", ["pretty", "junit", "tap", "md", "html", "sarif", "gitlab"])
def test_a_megabyte_is_cut_in_the_middle(name: str) -> None:
    """The page, the log and the comment stay readable."""
    long = "a" * 500_000 + "halfway" + "z" * 500_000
    row = evolve(FAILED, id=long, output=long, reason=long, entries=(entry("c", 0.0, long, reason=long),))
    text = Report(long, (row,)).render(name)
    assert len(text) < 200_000
    assert "halfway" not in text


def test_the_cut_says_how_much_is_left_out() -> None:
    """Nothing is dropped in silence."""
    text = Report("s", (evolve(PASSED, output="x" * 1_000_000),)).render("junit")
    assert "980,000 characters are left out here" in text
