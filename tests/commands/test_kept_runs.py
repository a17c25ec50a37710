"""Runs that the command line keeps: what is in them, how many there are, and what is done with the last ones."""

from __future__ import annotations

import json
import re
import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rubric import Candidate, DefinitionError, Grades, Judge, evaluate, load
from rubric.commands import kept_runs, view
from rubric.commands.kept_runs import Keeper
from rubric.commands.local_server import LocalServer
from rubric.embed import RowBuilder
from rubric.suites import Report
from rubric.testing import ScriptedModel
from rubric.trust import Labels, agreement
from tests.browsers import Browser, Tab
from tests.command_line import REPLY, RUBRIC, run

SUITE = """
suite: replies
cases:
  - {id: warm, output: Thank you for waiting, rubric: [Says thank you for waiting]}
  - {id: cold, output: No, rubric: [Says thank you for waiting]}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder of its own, where runs are kept by default."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RUBRIC_RUNS")
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "replies.jsonl").write_text('"Thank you for waiting"\n"No"\n')
    (tmp_path / "rubric.yaml").write_text("criteria: [Says thank you for waiting]\n")
    return tmp_path


def kept() -> list[Path]:
    return [each for each, _ in kept_runs.kept_runs(Path(".rubric/runs"))]


def test_each_run_is_kept_with_its_report_its_results_and_what_was_asked(folder: Path) -> None:
    """Of a suite, of many candidates and of one; and version control leaves all of them out."""
    run("grade", "suite.yaml", "-j", "offline")
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    run("grade", RUBRIC, REPLY, "-j", "offline")
    one, many, suite = kept()
    assert (folder / ".rubric" / ".gitignore").read_text() == "*\n"
    assert [len(Report.load(each / "report.json")) for each in (one, many, suite)] == [1, 2, 2]
    about = json.loads((many / "run.json").read_bytes())
    assert (about["files"], about["ended"] >= about["started"]) == (["rubric.yaml", "replies.jsonl"], True)
    results = Grades.read_jsonl(many / "results.jsonl", load("rubric.yaml"))
    assert [result.passed for result in results] == [True, False]
    assert [json.loads(line)["key"] for line in (suite / "results.jsonl").read_text().splitlines()] == ["warm", "cold"]


@pytest.mark.parametrize("how", ["option", "variable"])
def test_nothing_is_kept_where_that_is_asked_for(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option, or by an empty variable of the environment."""
    if how == "variable":
        monkeypatch.setenv("RUBRIC_RUNS", "")
    run("grade", "suite.yaml", "-j", "offline", *(["--no-keep"] if how == "option" else []))
    run("grade", RUBRIC, REPLY, "-j", "offline", *(["--no-keep"] if how == "option" else []))
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline", *(["--no-keep"] if how == "option" else []))
    assert not Path(".rubric").exists()


def test_the_newest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go when a new one begins; what is not a run stays."""
    monkeypatch.setattr(kept_runs, "MOST", 2)
    Path(".rubric/runs/0000-notes").mkdir(parents=True)
    for name in ("a", "b", "c"):
        Keeper.of(name, ["f"]).end()
    assert [about["name"] for _, about in kept_runs.kept_runs(Path(".rubric/runs"))] == ["c", "b"]
    assert Path(".rubric/runs/0000-notes").exists()


def test_a_folder_that_cannot_be_written_to_is_told_and_the_run_goes_on() -> None:
    """A run is worth more than its copy."""
    Path(".rubric").write_text("a file")
    result = run("grade", "suite.yaml", "-j", "offline")
    assert result.exit_code == 1
    assert "1 passed, 1 failed" in result.stdout
    assert "not kept" in result.stderr


def test_no_secret_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What looks like a key is masked in each file of a run, however it came there."""
    key = "sk-proj-" + "a1B2" * 12
    monkeypatch.setenv("MY_API_KEY", key)
    Path("replies.jsonl").write_text(json.dumps(f"Thank you for waiting, {key}") + "\n")
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    for file in kept()[0].iterdir():
        assert key not in file.read_text()


def test_a_run_that_goes_on_can_be_read() -> None:
    """Its report has the rows so far, and says that it has not ended."""
    row = RowBuilder().of(evaluate("Hi", "Says hello", "offline"))
    keeper = Keeper.of("live", ["f"])
    keeper.add(row)
    (folder,) = kept()
    report = Report.load(folder / "report.json")
    assert (len(report), report.warnings) == (1, ("this run has not ended",))
    keeper.end()
    assert not Report.load(folder / "report.json").warnings


def test_the_ungraded_or_failed_of_the_last_run_are_asked_again_alone() -> None:
    """The new rows stand in the places of the old ones, and the others are not graded anew."""
    run("grade", "suite.yaml", "-j", "offline")
    Path("suite.yaml").write_text(SUITE.replace("output: No", "output: Thank you for waiting"))
    again = run("grade", "suite.yaml", "-j", "offline", "--rerun", "failed")
    assert again.stderr.startswith("asked again of replies: 1 case,")
    assert (again.exit_code, "2 passed" in again.stdout) == (0, True)
    assert len(Report.load(kept()[0] / "report.json")) == 2
    lines = (kept()[0] / "results.jsonl").read_text().splitlines()
    assert {(line["key"], line["passed"]) for line in map(json.loads, lines)} == {("warm", True), ("cold", True)}
    nothing = run("grade", "suite.yaml", "-j", "offline", "--rerun", "ungraded")
    assert (nothing.exit_code, "no case of the last run is ungraded" in nothing.stderr) == (2, True)
    groups = run("grade", "suite.yaml", "-j", "offline", "--rerun", "failed", "--by", "verdict")
    assert (groups.exit_code, "--by is for whole runs; leave out --rerun" in groups.stderr) == (2, True)


def test_candidates_that_failed_are_asked_again_alone_and_the_file_has_all() -> None:
    """The new results stand in their places, with those of the last run around them, in the file and in the kept run."""
    Path("replies.jsonl").write_text('"Thank you for waiting"\n"No"\n"Thank you for waiting, Ada"\n')
    many = ("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline", "--out", "graded.jsonl")
    run(*many)
    before = Path("graded.jsonl").read_text().splitlines()
    Path("replies.jsonl").write_text(
        '"Thank you for waiting"\n"Thank you for waiting now"\n"Thank you for waiting, Ada"\n'
    )
    again = run(*many, "--rerun", "failed", "--report", "page.html")
    assert again.stderr.startswith("asked again of replies.jsonl: 1 candidate, 1 call,")
    assert (again.exit_code, "3 of 3 grades pass" in again.stdout) == (0, True)
    lines = Path("graded.jsonl").read_text().splitlines()
    assert [line["passed"] for line in map(json.loads, lines)] == [True] * 3
    assert [lines[0], lines[2]] == [before[0], before[2]]
    report = Report.load(kept()[0] / "report.json")
    assert [row.output for row in report] == [
        json.loads(line) for line in Path("replies.jsonl").read_text().splitlines()
    ]
    assert "waiting, Ada" in Path("page.html").read_text()
    nothing = run(*many, "--rerun", "failed")
    assert (nothing.exit_code, "no candidate of the last run is failed" in nothing.stderr) == (2, True)


def test_candidates_that_moved_are_not_asked_again() -> None:
    """Results of the last run would stand beside candidates of others; another threshold is another rubric."""
    rows = [json.dumps({"key": key, "output": "No"}) for key in ("a", "b")]
    Path("replies.jsonl").write_text("\n".join(rows))
    many = ("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline", "--rerun", "failed")
    run(*many[:5])
    refused = run(*many, "-t", "0.1")
    assert (refused.exit_code, "rubric" in refused.stderr) == (2, True)
    Path("replies.jsonl").write_text("\n".join(rows[::-1]))
    refused = run(*many)
    assert (refused.exit_code, "candidate 0 of the last run, 'a', is not in its place" in refused.stderr) == (2, True)
    refused = run(*many, "--shard", "1/2")
    assert (refused.exit_code, "no effect with --rerun" in refused.stderr) == (2, True)


def test_candidates_that_changed_do_not_keep_old_verdicts() -> None:
    """What is not asked again must be as it was: its verdict would stand beside another text."""
    Path("replies.jsonl").write_text('"Thank you for waiting"\n"No"\n')
    many = ("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    run(*many)
    Path("replies.jsonl").write_text('"Go away"\n"No"\n')
    refused = run(*many, "--rerun", "failed")
    assert (refused.exit_code, "candidate 0 of the last run, '#0', has changed" in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("output: Thank you for waiting", "output: Go away", "'warm' has another output than in the last run"),
        ("{id: warm", "{id: new", "'warm' is not in the files any more"),
        ("cases:", "cases:\n  - {id: new, output: No, rubric: [Says no]}", "'new' was not in the last run"),
        ("[Says thank you for waiting]", "[Says thanks]", "'warm' has another rubric than in the last run"),
        ("rubric: [Says", "rubric: {threshold: 0.9, criteria: [Says", "'warm' has another rubric"),
    ],
)
def test_cases_that_changed_do_not_keep_old_verdicts(old: str, new: str, why: str) -> None:
    """A case that passed, and that is another now, is told; one that is asked again may be another."""
    run("grade", "suite.yaml", "-j", "offline")
    assert old in SUITE
    changed = SUITE.replace(old, new, 1)
    Path("suite.yaml").write_text(changed.replace("waiting]}", "waiting]}}", 1) if "criteria" in new else changed)
    refused = run("grade", "suite.yaml", "-j", "offline", "--rerun", "failed")
    assert (refused.exit_code, why in refused.stderr) == (2, True)


def test_another_judge_or_number_of_runs_is_told() -> None:
    """One report has the verdicts of one judge, and each case as often as before."""
    run("grade", "suite.yaml", "-j", "offline", "--repeat", "2")
    refused = run("grade", "suite.yaml", "-j", "offline", "--rerun", "failed")
    assert (refused.exit_code, "give --repeat 2" in refused.stderr) == (2, True)
    again = run("grade", "suite.yaml", "-j", "offline", "--rerun", "failed", "--repeat", "2")
    assert "2 passed, 2 failed" in again.stdout
    refused = run("grade", "suite.yaml", "-j", "openai/gpt-5.6", "--rerun", "failed", "--repeat", "2")
    assert (refused.exit_code, "'warm' has another judge" in refused.stderr) == (2, True)


def test_a_long_run_is_summed_up_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has the first rows alone, and says so; what they came to counts the others too."""
    monkeypatch.setattr("rubric.commands.kept_runs.LARGEST", 2)
    Path("replies.jsonl").write_text('"Thank you for waiting"\n' * 2 + '"No"\n' * 3)
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    about = json.loads((kept()[0] / "run.json").read_text())["summary"]
    assert (about["passed"], about["exit_code"], about["cases"], about["usage"]["calls"]) == (False, 1, 5, 5)
    assert about["counts"] == {"passed": 2, "failed": 3, "ungraded": 0, "deferred": 0}
    report = Report.load(kept()[0] / "report.json")
    assert report.warnings == ("the first 2 of 5 candidates; results.jsonl has all",)


def test_the_last_two_runs_of_the_same_files_are_compared() -> None:
    """Where no file is named; a run of other files between them is passed over."""
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    alone = run("compare")
    assert (alone.exit_code, "1 kept run of rubric.yaml, replies.jsonl" in alone.stderr) == (2, True)
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline", "-t", "0.1")
    found = run("compare")
    assert found.exit_code == 0
    assert "pass rate" in found.stdout
    assert run("compare", "one.jsonl").exit_code == 2
    lacking = run("compare", "--by", "topic")
    (new, old), which, message = kept(), lacking.stdout.strip(), lacking.stderr
    assert which == f"new: {new / 'results.jsonl'}, old: {old / 'results.jsonl'}, runs of rubric.yaml replies.jsonl"
    assert "grade the new and the old run again" in message


# -- in the browser ----------------------------------------------------------------------------------------


def _server(folder: str = ".rubric/runs") -> LocalServer:
    page, save = view.listing(Path(folder))
    return LocalServer(page, save=save)


def shown(server: LocalServer, query: str = "") -> str:
    status, text = server.answer(f"/{server.token}/{query}", "127.0.0.1:80", 80)
    assert status == 200
    return text


def sent(server: LocalServer, **data: Any) -> tuple[int, str]:
    headers = {"host": "127.0.0.1:80", "origin": "http://127.0.0.1:80", "content-type": "application/json"}
    return server.receive(f"/{server.token}/", 80, headers, json.dumps(data).encode())


def test_kept_runs_are_listed_and_each_is_a_page() -> None:
    """With name, date, pass rate, counts and cost; the link of each shows its page."""
    run("grade", "suite.yaml", "-j", "offline")
    (folder,) = kept()
    text = shown(_server())
    assert f'href="?run={folder.name}"' in text
    for words in ("replies", "50 %", "1 passed, 1 failed", "$0.0000"):
        assert words in text
    assert "Thank you for waiting" in shown(_server(), f"?run={folder.name}")
    assert "no run" not in shown(_server(), "?run=../../etc/passwd")


def test_the_reports_of_a_folder_are_listed_and_what_is_none_is_left_out() -> None:
    """A folder of one's own, with reports under any name."""
    run("grade", "suite.yaml", "-j", "offline", "--no-keep", "--out", "monday.json")
    text = shown(_server("."))
    assert "monday.json" in text
    assert "50 %" in text
    assert "suite.yaml" not in text
    assert "Thank you for waiting" in shown(_server("."), "?run=monday.json")


def is_live(page: str) -> bool:
    """Return what the script of a page of a run is told."""
    (told,) = re.findall(r"const \[RUN, LABELS, DRAW, IS_LIVE, HAS_CALLS\] = (.*);", page)
    return bool(json.loads(told)[3])


def test_a_run_that_goes_on_is_shown_anew() -> None:
    """Its page loads itself again after some seconds; that of a run which has ended does not."""
    keeper = Keeper.of("live", ["f"])
    keeper.add(RowBuilder().of(evaluate("Hi", "Says hello", "offline")))
    assert is_live(shown(_server(), f"?run={kept()[0].name}")) is True
    keeper.end()
    assert is_live(shown(_server(), f"?run={kept()[0].name}")) is False


def test_labels_that_are_given_on_the_page_are_kept_as_labels_that_saw_the_verdict() -> None:
    """They are kept in the run's folder, shown again and taken back; agreement says that they saw the verdict."""
    run("grade", "suite.yaml", "-j", "offline")
    (folder,) = kept()
    server = _server()
    given = {"run": folder.name, "rater": "", "criterion": "", "reason": "late", "judge_seen": True}
    assert sent(server, **given, name="warm", value="pass") == (200, "saved")
    assert sent(server, **given, name="cold", value="pass") == (200, "saved")
    assert '"cold":["pass","late",true]' in shown(server, f"?run={folder.name}").replace(" ", "")
    labels = Labels.read(folder / "labels.csv")
    assert {(label.key, label.value, label.judge_seen) for label in labels} == {
        ("warm", "pass", True),
        ("cold", "pass", True),
    }
    with pytest.raises(DefinitionError, match="given after a look at the judge's verdict"):
        agreement(folder / "results.jsonl", labels)
    found = run("agree", str(folder / "results.jsonl"), str(folder / "labels.csv"), "--with-seen")
    assert "2 labels count although the rater had seen the judge's verdict" in " ".join(found.stdout.split())
    refused = run("agree", str(folder / "results.jsonl"), "--with-seen")
    assert (refused.exit_code, "--with-seen is for labels" in refused.stderr) == (2, True)
    assert sent(server, **given, name="cold", value=None) == (200, "saved")
    assert [label.key for label in Labels.read(folder / "labels.csv")] == ["warm"]


@pytest.mark.parametrize(
    "wrong", [{"run": "x"}, {"name": "nobody"}, {"value": "maybe"}, {"criterion": "c"}, {"run": ["x"]}]
)
def test_a_label_of_nothing_is_refused(wrong: dict[str, Any]) -> None:
    """Another run, another candidate, another value or criterion: nothing is written."""
    run("grade", "suite.yaml", "-j", "offline")
    (folder,) = kept()
    given = {"run": folder.name, "name": "warm", "rater": "", "criterion": "", "value": "pass", "reason": ""}
    assert sent(_server(), **{**given, **wrong})[0] == 400
    assert not (folder / "labels.csv").exists()


@contextmanager
def page_of_a_run(browser: Browser, folder: Path, query: str = "") -> Iterator[Tab]:
    """Yield the page of the kept run in *folder*, which a server shows."""
    server = _server()
    with server.bind() as bound:
        threading.Thread(target=bound.serve_forever, daemon=True).start()
        tab = browser.open(f"http://127.0.0.1:{bound.server_address[1]}/{server.token}/?run={folder.name}{query}")
        tab.until("document.documentElement.dataset.ready !== undefined")
        yield tab
        tab.close()
        bound.shutdown()


def test_a_browser_labels_by_key_what_it_shows(browser: Browser) -> None:
    """The first failure is opened and disagreed with; the page says that this is kept and does not count."""
    run("grade", "suite.yaml", "-j", "offline")
    (folder,) = kept()
    with page_of_a_run(browser, folder) as tab:
        tab.press("n")
        tab.until("document.querySelector('[data-label]') !== null")
        tab.press("d")
        tab.until("document.querySelector('[data-label=pass]').getAttribute('aria-pressed') === 'true'")
        assert "agreement and align leave it out" in tab.run("document.getElementById('label-counts').textContent")
    assert [(each.key, each.value, each.judge_seen) for each in Labels.read(folder / "labels.csv")] == [
        ("cold", "pass", True)
    ]


def test_a_label_that_is_given_blind_counts(browser: Browser) -> None:
    """Without a word of the judge on the page until the label is given; agreement takes such labels as they are."""
    run("grade", "suite.yaml", "-j", "offline")
    (folder,) = kept()
    verdicts = {row.id: row.status for row in Report.load(folder / "report.json")}
    with page_of_a_run(browser, folder, "&blind=1") as tab:
        for _ in range(2):
            before = tab.text
            assert "Thank you for waiting" in before or "No" in before
            assert not [
                word for word in ("passed", "failed", "1.00", "0.00", "judge said:", "words occur") if word in before
            ]
            tab.press("p")
            tab.until("document.getElementById('blind-next') !== null")
            assert "You said: pass; the judge said: " in tab.text
            tab.press("n")
        tab.until("document.body.innerText.includes('Nothing is left to label blind')")
        tab.press("b")
        tab.press("n")
        assert "It was given blind, so it counts." in tab.text
    labels = Labels.read(folder / "labels.csv")
    assert {(each.key, each.value, each.judge_seen) for each in labels} == {(name, "pass", False) for name in verdicts}
    found = agreement(folder / "results.jsonl", labels)
    assert found.overall is not None
    assert found.overall.n == 2


def test_what_was_opened_is_not_labelled_blind(browser: Browser) -> None:
    """A candidate whose verdict was opened is left out of the blind ones, after another load of the page too."""
    run("grade", "suite.yaml", "-j", "offline")
    (folder,) = kept()
    with page_of_a_run(browser, folder) as tab:
        tab.press("n", "Escape", "b")
        assert tab.run("blind.row.id") == "warm"
        tab.reload()
        tab.until("document.documentElement.dataset.ready !== undefined")
        tab.press("b", "s")
        assert "Nothing is left to label blind" in tab.text
        tab.press("Escape")
        assert tab.run("blind.isOn") is False
    assert not (folder / "labels.csv").exists()


def test_a_blind_label_that_is_changed_beside_the_verdict_no_longer_counts(browser: Browser) -> None:
    """What the person says after the verdict is shown is kept as such."""
    run("grade", "suite.yaml", "-j", "offline")
    (folder,) = kept()
    with page_of_a_run(browser, folder, "&blind=1") as tab:
        tab.press("f")
        tab.until("document.getElementById('blind-next') !== null")
        tab.run("document.querySelector('[data-label=pass]').click()")
        tab.until("document.getElementById('label-state')?.textContent === 'saved'")
    assert [(each.value, each.judge_seen) for each in Labels.read(folder / "labels.csv")] == [("pass", True)]


def test_the_calls_of_a_candidate_are_its_second_tab(browser: Browser) -> None:
    """Of a run with a store: `t` shows messages, reply and cost of this candidate's calls alone, and stays open at `j`."""
    keeper, rubric = Keeper.of("replies", ["f"], store=Path("replies.store")), load("rubric.yaml")
    for text in ("Thank you for waiting", "No"):
        judge = Judge(ScriptedModel({rubric.ids[0]: text != "No"}), identity="scripted")
        keeper.add(RowBuilder().of(evaluate(text, rubric, judge, store="replies.store"), text, Candidate(text)))
    keeper.end()
    (folder,) = kept()
    with page_of_a_run(browser, folder) as tab:
        tab.press("n", "t")
        calls = "document.querySelectorAll('.calls details').length"
        tab.until(calls)
        assert tab.run(calls) == 1
        shown = tab.run("document.querySelector('.calls').innerText")
        assert "candidate, " in shown
        assert "\nNo\n" in shown
        assert '"verdict": false' in shown
        assert "tokens in" in shown
        tab.press("j")
        tab.until("document.querySelector('.calls')?.innerText.includes('Thank you for waiting')")
        tab.press("t")
        assert tab.run("document.querySelector('.both') !== null")
    run("grade-many", "rubric.yaml", "replies.jsonl", "-j", "offline")
    with page_of_a_run(browser, kept()[0]) as tab:
        tab.press("n", "t")
        assert tab.run("document.querySelector('.tabs') === null")


def test_a_folder_of_the_users_own_keeps_its_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only `.rubric` is ours to hide from git; a folder that is named keeps the `.gitignore` that it has."""
    monkeypatch.setenv("RUBRIC_RUNS", str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".gitignore").write_text("*.log\n")
    run("grade", "suite.yaml", "-j", "offline")
    assert (tmp_path / "mine" / ".gitignore").read_text() == "*.log\n"


def test_runs_of_two_files_are_compared_by_the_line_that_the_refusal_prints(folder: Path) -> None:
    """To grade the new file again and compare it with itself would be about nothing; folders of runs are taken."""
    (folder / "version 2.jsonl").write_text('"No"\n"Thank you for waiting"\n')
    for file in ("replies.jsonl", "version 2.jsonl"):
        run("grade-many", "rubric.yaml", file, "-j", "offline")
    refused = run("compare")
    assert refused.exit_code == 2
    _, _, line = refused.stderr.partition("to compare with another file's, such as rubric ")
    new, old = kept()
    found = run(*shlex.split(line))
    assert f"new: {new / 'results.jsonl'}, old: {old / 'results.jsonl'}" in found.stdout
    assert found.exit_code == 0
