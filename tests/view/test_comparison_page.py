"""Two runs as one page: pairs by name, what changed, intervals, and what else differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from attrs import evolve
from click.testing import CliRunner

from rubric import DefinitionError, Grades
from rubric.__main__ import main
from rubric.suites.report import Report
from rubric.trust import Labels, agreement, compare
from rubric.trust.labels import Label
from tests.browsers import Browser, Seen, data_of
from tests.reports import FAILED, PASSED, PAYLOADS, REPORT, hostile
from tests.view.runs import SUPPORT, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def old() -> Grades:
    return run(40)


@pytest.fixture(scope="module")
def new() -> Grades:
    return run(42, better=0.1, seed=2)


@pytest.fixture(scope="module")
def page(old: Grades, new: Grades, tmp_path_factory: pytest.TempPathFactory) -> str:
    return new.report(tmp_path_factory.mktemp("two") / "page.html", against=old).read_text("utf-8")


def test_each_pair_says_what_became_of_its_verdict(page: str, old: Grades, new: Grades) -> None:
    """Broken, fixed, still failing: by key; what one run alone has is marked so."""
    changes = {row["id"]: row["change"] for row in data_of(page)["rows"]}
    words = {
        (True, False): "broken",
        (False, True): "fixed",
        (False, False): "still failing",
        (True, True): "still passing",
    }
    for a, b in zip(new, old, strict=False):
        both = a.score is not None and b.score is not None
        assert changes[a.key] == (words[bool(b.passed), bool(a.passed)] if both else "other")
    assert [changes[each.key] for each in new[40:]] == ["new alone"] * 2


def test_the_page_and_compare_say_the_same(page: str, old: Grades, new: Grades) -> None:
    """The sentence, and the interval of the pass rate, are those of `rubric.trust.compare`."""
    found = compare(new, old)
    text = Seen(page).text
    assert found.sentence in text
    low, high = found.criteria[0].interval
    assert f"{low:+.2f} to {high:+.2f}" in text


def test_another_rubric_and_another_judge_are_said_at_the_top(old: Grades, tmp_path: Path) -> None:
    """A changed threshold is named with both values, and so are two judges."""
    other = Grades(each.rescore(SUPPORT.passing_at(0.9)) for each in old)
    text = Seen(other.report(tmp_path / "a.html", against=old).read_text("utf-8")).text
    assert "The rubric is another: 1 change." in text
    assert "0.9" in text
    judged = run(40, judged=2, seed=2)
    text = Seen(judged.report(tmp_path / "b.html", against=old).read_text("utf-8")).text
    assert "The judge is another" in text
    assert "texts are others than before" in text


def test_two_judges_of_the_same_texts_are_named_and_their_verdicts_counted(old: Grades, tmp_path: Path) -> None:
    """With the same texts the page says on how many verdicts two judges agree."""
    page = run(40, judged=2).report(tmp_path / "page.html", against=old).read_text("utf-8")
    data = data_of(page)
    assert data["judges"]
    same = sum(row["change"] in ("both pass", "both fail") for row in data["rows"])
    split = sum(row["change"] in ("first alone passes", "second alone passes") for row in data["rows"])
    assert f"agree on {same} of {same + split} verdicts" in Seen(page).text


def test_people_stand_beside_two_judges_and_side_with_one(browser: Browser, old: Grades, tmp_path: Path) -> None:
    """Labels of the whole say with which judge people side, where the judges disagree; each is shown with its reason."""
    other = run(40, judged=2)
    said = {each.key: bool(each.passed) for each in old if each.score is not None}
    rows = [Label(key, value, rater="Ann", reason="read twice") for key, value in said.items()]
    labels = Labels([*rows, Label("ticket-00001", value=True, criterion="cites")])
    page = other.report(tmp_path / "page.html", against=old, labels=labels)
    row = next(row for row in data_of(page.read_text("utf-8"))["rows"] if row["id"] == "ticket-00001")
    assert row["people"] == {"": f"{'yes' if said['ticket-00001'] else 'no'} (Ann: read twice)", "cites": "yes"}
    split = sum(
        a.score is not None and b.score is not None and a.passed != b.passed for a, b in zip(other, old, strict=True)
    )
    tab = browser.open(page.as_uri())
    tab.until("document.documentElement.dataset.ready !== undefined")
    shown = tab.run("document.getElementById('flags').innerText")
    assert split > 0
    assert f"people side with the first {split}" in shown
    assert "people side with the second" not in shown
    tab.run("page.change({is: ['people side with the first']}), page.open(0)")
    assert "the whole: " in tab.text


def test_the_page_finds_what_disagreements_list(browser: Browser, old: Grades, tmp_path: Path) -> None:
    """Words of a CSV are the same verdicts to both, and of several people the majority counts."""
    words = [("met", "1", "nok"), ("bad", "unmet", "accepted"), ("good", "rejected", "")]
    rows = [f"{g.key},{who},{word}" for n, g in enumerate(old) for who, word in zip("abc", words[n % 3], strict=True)]
    (tmp_path / "labels.csv").write_text("\n".join(["key,rater,value", *rows]), encoding="utf-8")
    labels = Labels.read(tmp_path / "labels.csv")
    tab = browser.open(old.report(tmp_path / "page.html", labels=labels).as_uri())
    tab.until("document.documentElement.dataset.ready !== undefined")
    apart = agreement(old, labels).disagreements
    assert 0 < len(apart) < len(old)
    assert f"people say otherwise {len(apart)}" in tab.run("document.getElementById('flags').innerText")


def test_labels_of_nobody_here_are_refused(old: Grades, tmp_path: Path) -> None:
    """Labels of other candidates, and what is not a labels, are errors; nothing is written."""
    for wrong in (Labels({"x": True}), {"x": True}):
        with pytest.raises(DefinitionError, match="labels"):
            old.report(tmp_path / "page.html", labels=wrong)
    assert not (tmp_path / "page.html").exists()
    page = old.report(tmp_path / "page.html", labels=Labels({0: "fail", 1: "pass"}, by="index")).read_text("utf-8")
    assert [row["people"] for row in data_of(page)["rows"][:2]] == [{"": "fail"}, {"": "pass"}]


def test_runs_without_a_common_candidate_are_refused(old: Grades, tmp_path: Path) -> None:
    """The error names a candidate of each, and nothing is written."""
    strangers = Grades(evolve(each, key=f"x{n}") for n, each in enumerate(old[:3]))
    with pytest.raises(DefinitionError, match="no candidate is in both runs: 'x0'"):
        strangers.report(tmp_path / "page.html", against=old)
    assert not (tmp_path / "page.html").exists()
    with pytest.raises(DefinitionError, match="against"):
        old.report(tmp_path / "page.html", against=[old[0]])  # type: ignore[arg-type]


def test_reports_of_suites_are_compared_on_a_page_alone(tmp_path: Path) -> None:
    """`write(..., against=)` shows what broke; another form than a page refuses it."""
    later = Report("support", (evolve(FAILED, id="found"), evolve(PASSED, id="late"), *REPORT.rows[2:]))
    page = later.write(tmp_path / "page.html", against=REPORT).read_text("utf-8")
    changes = {row["id"]: row["change"] for row in data_of(page)["rows"]}
    assert changes == {"found": "broken", "late": "fixed", "limited": "other", "serverless": "other"}
    with pytest.raises(DefinitionError, match=r"end it in \.html"):
        later.write(tmp_path / "page.md", against=REPORT)


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    """`rubric compare NEW OLD --out page.html` takes two reports, and options of the page alone are refused without it."""
    REPORT.write(tmp_path / "a.json")
    done = CliRunner().invoke(
        main, ["compare", str(tmp_path / "a.json"), str(tmp_path / "a.json"), "--out", str(tmp_path / "p.html")]
    )
    assert done.exit_code == 0, done.output
    assert "0 broken, 0 fixed, 1 still failing" in (tmp_path / "p.html").read_text("utf-8")
    done = CliRunner().invoke(main, ["compare", *[str(tmp_path / "a.json")] * 2, "--rubric", "r.yaml"])
    assert (done.exit_code, "name its file with --out page.html" in done.stderr) == (2, True)
    done = CliRunner().invoke(main, ["compare", *[str(tmp_path / "a.json")] * 2])
    assert (done.exit_code, "No worse than the baseline" in done.stdout) == (0, True)
    done = CliRunner().invoke(main, ["compare", *[str(tmp_path / "a.json")] * 2, "--by", "tag"])
    assert (done.exit_code, "a.json is a report; groups are of results" in done.stderr) == (2, True)


def test_texts_are_shown_with_their_differences_and_both_reasons(browser: Browser, page: str, tmp_path: Path) -> None:
    """In a browser the panel marks what was taken out and put in, and has both verdicts of what changed."""
    (tmp_path / "page.html").write_text(page, "utf-8")
    tab = browser.open((tmp_path / "page.html").as_uri())
    tab.until("document.documentElement.dataset.ready !== undefined")
    tab.press("n")
    assert tab.run("document.querySelectorAll('#detail del, #detail ins').length") > 1
    assert tab.run("document.querySelectorAll('#detail .beside').length") > 0
    assert tab.run("page.change({show: 'broken'}), page.table.rows.length") == sum(
        row["change"] == "broken" for row in data_of(page)["rows"]
    )


def test_attacks_in_two_runs_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """Hostile texts in every field of both runs leave the page with our own two scripts."""
    rows = tuple(evolve(row, id=f"{n}") for n, words in enumerate(PAYLOADS) for row in hostile(words))
    page = Report(PAYLOADS[2], rows).write(
        tmp_path / "page.html", against=Report("old", tuple(evolve(row, output="x") for row in rows))
    )
    tab = browser.open(page.as_uri())
    tab.until("document.documentElement.dataset.ready !== undefined")
    for number in range(len(rows)):
        tab.run(f"page.open({number})")
        assert tab.run("document.querySelectorAll('script').length") == 2
        assert tab.run("document.querySelectorAll('img, iframe, object').length") == 0
    assert tab.run("document.title").startswith(PAYLOADS[2])
