"""`rubric view`: a store or a report in a real browser, read-only, for this machine and this user alone."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rubric import Candidate, Judge, Rubric, evaluate, grade_many
from rubric.__main__ import main
from rubric.commands.local_server import LocalServer
from rubric.commands.view import page_of
from rubric.driving import Failure
from rubric.formats.suites import dump_suite
from rubric.suites.cases import Case
from rubric.suites.suite import Suite
from rubric.testing import ScriptedModel
from rubric.view.store_page import SIZE
from tests.browsers import Browser, Seen, data_of
from tests.reports import PAYLOADS, REPORT

if TYPE_CHECKING:
    from collections.abc import Iterator

RUBRIC = Rubric("support").expects("Says where the parcel is", id="place").expects("Cites an article", id="cites")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with two replies and a failure."""
    path = tmp_path_factory.mktemp("view") / "replies.store"
    evaluate("It is in Oslo.", RUBRIC, Judge(ScriptedModel({"place": True, "cites": True})), store=path)
    failing = Judge(ScriptedModel({"place": Failure("refusal", "it would not"), "cites": False}), retries=0)
    evaluate("Go away.", RUBRIC, failing, store=path)
    return path


@contextmanager
def served(file: Path, *rubrics: Path) -> Iterator[tuple[str, int, str]]:
    """Serve *file*, and yield its address, port and token."""
    viewer = LocalServer(page_of(file, rubrics))
    with viewer.bind() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = int(server.server_port)
        yield f"http://127.0.0.1:{port}/{viewer.token}/", port, viewer.token
        server.shutdown()


def asked(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, dict[str, str]]:
    """Return the status, the body and the headers of one answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}


def test_a_browser_shows_each_call_of_a_store_with_messages_and_raw_replies(
    browser: Browser, store: Path, tmp_path: Path
) -> None:
    """Every call has a card with its messages, its raw reply or failure, and its state."""
    with served(store) as (address, _, _):
        page = browser.seen(address)
    assert page.title.startswith("replies.store: 4 calls")
    assert len(page.named("card")) == 4
    for words in ("Says where the parcel is", "It is in Oslo.", '"verdict": true', "it would not", "refusal", "failed"):
        assert words in page.text


def test_a_store_is_searched_by_words_and_state(browser: Browser, store: Path, tmp_path: Path) -> None:
    """A search matches words in any letter case; bad parameters give a page and no error."""
    with served(store) as (address, port, token):
        page = browser.seen(f"{address}?q=oslo+ARTICLE")
        assert len(page.named("card")) == 1
        assert {"type": "search", "name": "q", "value": "oslo ARTICLE"}.items() <= next(
            attrs for tag, attrs in page.tags if tag == "input"
        ).items()
        failed = Seen(asked(port, f"/{token}/?state=failed")[1])
        assert len(failed.named("card")) == 1
        assert "No call matches." in asked(port, f"/{token}/?q=nowhere")[1]
        assert "No call matches." in asked(port, f"/{token}/?start=10")[1]
        assert asked(port, f"/{token}/?start=x&state=%00")[0] == 200


def test_a_long_store_is_turned_by_pages(tmp_path: Path) -> None:
    """The first page links to older calls and the last page to newer ones."""
    rubric = Rubric(criteria=[f"Criterion number {n}" for n in range(SIZE + 5)])
    evaluate("x y", rubric, Judge(ScriptedModel(lambda _: True)), store=tmp_path / "s")
    with served(tmp_path / "s") as (_, port, token):
        first, second = (Seen(asked(port, f"/{token}/?start={start}")[1]) for start in (0, SIZE))
    assert (len(first.named("card")), len(second.named("card"))) == (SIZE, 5)
    assert ("older" in first.text, "older" in second.text, "newer" in second.text) == (True, False, True)


def test_a_report_is_shown_and_searched(browser: Browser, tmp_path: Path) -> None:
    """A saved report shows all its cases, and words in the address show the matching ones alone."""
    REPORT.write(tmp_path / "report.json")
    with served(tmp_path / "report.json") as (address, _, _):
        assert len(browser.seen(address).named("case")) == 4
        assert len(browser.seen(f"{address}#q=server").named("case")) == 1
        assert len(browser.seen(f"{address}?q=server").named("case")) == 1


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of three results, with their rubric beside it."""
    folder = tmp_path_factory.mktemp("results")
    RUBRIC.save(folder / "rubric.yaml")
    rows = [Candidate(f"Parcel {n} {word}.", key=f"k{n}") for n, word in enumerate(("Oslo", "Rome", "Oslo"))]
    grades = grade_many(rows, RUBRIC, Judge(ScriptedModel(lambda ask: "Oslo" in ask.candidate))).collect()
    grades.to_jsonl(folder / "results.jsonl")
    return folder / "results.jsonl"


def test_lines_of_results_are_shown_under_their_rubric_and_searched(
    browser: Browser, results: Path, tmp_path: Path
) -> None:
    """The page names the criteria's texts, and its totals stay those of the whole file in a search."""
    with served(results, results.with_name("rubric.yaml")) as (address, _, _):
        page = browser.seen(address)
        assert len(page.named("case")) == 3
        for words in ("results.jsonl", "2 of 3 grades pass", "Says where the parcel is", "k1"):
            assert words in page.text
        found = browser.seen(f"{address}#q=k1")
        assert len(found.named("case")) == 1
        assert "2 of 3 grades pass" in found.text
        assert "Nothing matches these filters." in browser.seen(f"{address}#q=nowhere").text


def test_lines_that_do_not_hold_their_usage_show_no_calls_and_no_cost(results: Path, tmp_path: Path) -> None:
    """Without `usage` the page shows neither a number of calls nor a cost."""
    lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    bare = [{name: value for name, value in line.items() if name != "usage"} for line in lines]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(line) + "\n" for line in bare), "utf-8")
    texts = []
    for file in (results, tmp_path / "r.jsonl"):
        with served(file, results.with_name("rubric.yaml")) as (_, port, token):
            texts.append(Seen(asked(port, f"/{token}/")[1]).text)
    assert ["6 calls" in text for text in texts] == [True, False]
    assert [" cost" in text for text in texts] == [True, False]


def test_results_of_suites_are_shown_under_the_rubrics_of_their_cases(tmp_path: Path) -> None:
    """Results with two rubrics need only the suite's file to be shown."""
    other = Rubric("other").expects("Is short", id="short")
    suite = Suite("s", [Case("a", RUBRIC, output="x y"), Case("b", other, output="z")])
    dump_suite(suite, tmp_path / "s.yaml")
    suite.run(Judge(ScriptedModel(lambda _: True))).grades.to_jsonl(tmp_path / "r.jsonl")
    with served(tmp_path / "r.jsonl", tmp_path / "s.yaml") as (_, port, token):
        assert len(data_of(asked(port, f"/{token}/")[1])["rows"]) == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "add --rubric FILE"),
        (["--rubric", "other.yaml"], "give that rubric"),
        (["--rubric", "rubric.yaml", "--judge", "gpt-4o"], "another judge"),
    ],
)
def test_results_without_their_rubric_or_judge_are_refused(results: Path, options: list[str], said: str) -> None:
    """A missing rubric, another rubric and another judge each have an error with the cure."""
    Rubric("other").expects("Is short").save(results.with_name("other.yaml"))
    paths = [str(results.with_name(each)) if each.endswith(".yaml") else each for each in options]
    done = CliRunner().invoke(main, ["view", str(results), *paths, "--no-browser"])
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_a_rubric_beside_a_store_is_refused(store: Path) -> None:
    """Options for lines of results are errors when the file is a store."""
    done = CliRunner().invoke(main, ["view", str(store), "--judge", "gpt-4o"])
    assert (done.exit_code, "are for lines of results" in done.stderr) == (2, True)


def test_attacks_in_results_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """Markup in names, criteria and outputs is shown as text: the page has no script of theirs and no image."""
    rubric = Rubric(PAYLOADS[0]).expects(PAYLOADS[1], id="a")
    rubric.save(tmp_path / "r.yaml")
    rows = [Candidate(words, key=words) for words in PAYLOADS]
    grade_many(rows, rubric, Judge(ScriptedModel(lambda _: True))).collect().to_jsonl(tmp_path / "r.jsonl")
    with served(tmp_path / "r.jsonl", tmp_path / "r.yaml") as (address, _, _):
        page = browser.seen(address)
    assert page.title.startswith("r.jsonl: ")
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert len([tag for tag, _ in page.tags if tag == "script"]) == 2  # the data, and our own


def test_only_the_own_host_and_the_token_are_answered(store: Path) -> None:
    """A foreign `Host` gets 403 and a wrong token 404, without any content of the store."""
    with served(store) as (_, port, token):
        assert asked(port, f"/{token}/", Host="evil.example")[0] == 403
        assert asked(port, f"/{token}/", Host=f"evil.example:{port}")[0] == 403
        for path in ("/", "/wrong/", f"/{token}", f"/{token}/../", f"/{token}/x", "//", f"/?{token}"):
            status, text, _ = asked(port, path)
            assert status == 404
            assert "Oslo" not in text
        assert asked(port, f"/{token}/", Host=f"localhost:{port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_reading_is_answered(store: Path, method: str) -> None:
    """Every method but GET gets 501, and the file of the store stays as it was."""
    before = store.read_bytes()
    with served(store) as (_, port, token):
        assert asked(port, f"/{token}/", method)[0] == 501
        asked(port, f"/{token}/")
    assert store.read_bytes() == before


def test_pages_allow_no_script_no_frame_and_no_cache(store: Path) -> None:
    """The headers and the content policy forbid scripts, frames, caches and referrers."""
    with served(store) as (_, port, token):
        status, text, headers = asked(port, f"/{token}/")
    assert status == 200
    assert "<script" not in text
    assert "default-src 'none'" in Seen(text).tags[3][1].get("content", "")  # type: ignore[operator]
    assert (headers["x-frame-options"], headers["cache-control"], headers["referrer-policy"]) == (
        "DENY",
        "no-store",
        "no-referrer",
    )
    assert "access-control-allow-origin" not in headers


def test_attacks_in_prompts_and_replies_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """Markup in prompts, replies and the search field is shown as text in a real browser."""
    for words in PAYLOADS:
        rubric = Rubric(words).expects(f"x {words}", id="a")
        evaluate(Candidate(words, input=words), rubric, Judge(ScriptedModel([words]), repairs=0), store=tmp_path / "s")
    with served(tmp_path / "s") as (address, _, _):
        page = browser.seen(f"{address}?q=%3Cscript%3Edocument.title%3D%27pwned%27%3C/script%3E")
        assert page.title.startswith("s: ")
        assert page.named("card")
        assert not [tag for tag, _ in browser.seen(address).tags if tag in ("script", "img")]


@pytest.mark.parametrize(("content", "said"), [("hello", "expected what --store FILE"), ("{}", "rubric-report/4")])
def test_a_file_that_is_neither_is_refused(tmp_path: Path, content: str, said: str) -> None:
    """A file that is not a store and no report has an error that says what was expected."""
    (tmp_path / "x").write_text(content)
    done = CliRunner().invoke(main, ["view", str(tmp_path / "x")])
    assert (done.exit_code, said in done.stderr) == (2, True)
    assert CliRunner().invoke(main, ["view", str(tmp_path / "none")]).exit_code == 2


def test_the_command_prints_its_address_and_ends_at_an_interrupt(store: Path, tmp_path: Path) -> None:
    """Ctrl-C ends the server with exit code 0 and no traceback."""
    import signal

    (tmp_path / "report.json").write_text(json.dumps(REPORT.to_dict()))
    command = [sys.executable, "-m", "rubric", "view", str(store), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        address = next(word for word in line.split() if word.startswith("http"))
        host, _, path = address.removeprefix("http://").partition("/")
        assert "Oslo" in asked(int(host.rpartition(":")[2]), f"/{path}")[1]
        process.send_signal(signal.SIGINT)
        _, problem = process.communicate(timeout=30)
    assert (process.returncode, problem) == (0, "")


def test_what_was_graded_is_written_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report, results or a kept run, in the form of the ending; no page is served, and nothing is graded again."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RUBRIC_RUNS", "runs")
    Path("r.yaml").write_text("rubric: r\ncriteria: [Says thank you]\n")
    Path("rows.jsonl").write_text('{"key": "a", "output": "Thank you"}\n')
    CliRunner().invoke(main, ["grade-many", "r.yaml", "rows.jsonl", "-j", "offline", "--out", "new.jsonl"])
    REPORT.write("report.json")
    for line, held in (
        ("report.json --out page.html", "<html"),
        ("report.json --out table.csv", "found"),
        ("new.jsonl --rubric r.yaml --out results.html", "<html"),
        ("new.jsonl --rubric r.yaml --out results.csv", "0,a,r,"),
        (f"{next(Path('runs').iterdir())} --out junit.xml", "<testsuite"),
        ("--out last.html", "Thank you"),
    ):
        done = CliRunner().invoke(main, ["view", *line.split()])
        assert (done.exit_code, held in Path(line.split()[-1]).read_text()) == (0, True), done.output
    for line, said in (
        ("new.jsonl --out p.html", "write rubric view new.jsonl --out p.html --rubric r.yaml"),
        ("report.json --out p.html --no-browser", "write rubric view report.json --out p.html"),
        ("report.json --out report.json", "this file is read"),
        ("report.json --out page.foo", "names no reporter"),
        ("runs --out p.html", "a folder is that of one run"),
    ):
        done = CliRunner().invoke(main, ["view", *line.split()])
        assert (done.exit_code, said in done.stderr) == (2, True), done.stderr
