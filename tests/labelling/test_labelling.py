"""`rubric label`: what people see, what they press, and the file of labels that comes of it, in a real browser."""

from __future__ import annotations

import http.client
import json
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from rubric import Candidate, Criterion, DecisionTree, DefinitionError, Judge, Rubric, ask, grade_many
from rubric.__main__ import main
from rubric.commands.local_server import LocalServer
from rubric.labelling.drawing import Draw
from rubric.labelling.page import LabelPage
from rubric.labelling.questions import questions_of
from rubric.labelling.sheet import Answer, Sheet, read_answers
from rubric.testing import ScriptedModel
from rubric.trust import Labels
from tests.browsers import Browser, Tab
from tests.reports import PAYLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

RUBRIC = (
    Rubric("replies", guidelines="Be strict.")
    .requires("Answers the question", id="answers")
    .rates("How clear is it?", {0: "no way in", 5: "with effort", 10: "at once"}, id="clarity")
    .chooses("Which tone?", {"hostile": 0, "neutral": 0.6, "warm, or warmer": 1}, id="tone")
    .rates("How long is it?", (0, 100), id="length")
    .forbids("Promises a refund", id="refund")
    .scores("Helps", id="helps")
)
ALL = ("y", "1", "0", "2", "4", "2", "Enter", "n", "7", "p")
"""The keys that answer all of these: yes, 10, neutral, 42, no, 0.7, pass."""

SAID = {
    "answers": "yes",
    "clarity": "10",
    "tone": "neutral",
    "length": "42",
    "refund": "no",
    "helps": "0.7",
    "": "pass",
}


def candidates(count: int = 6) -> list[Candidate]:
    return [Candidate(f"reply {n}", input=f"question {n}", key=f"k{n}") for n in range(count)]


def page_of(count: int = 6, rubric: Rubric = RUBRIC, shown: int | None = None) -> LabelPage:
    texts = candidates(count)
    draw = Draw.of([each.key for each in texts])
    return LabelPage(rubric, draw, [texts[item.place] for item in draw.items[:shown]], title="data.jsonl")


@contextmanager
def served(page: LabelPage, path: Path) -> Iterator[tuple[str, int, str]]:
    """Serve *page*, as the command does, and yield its address, port and token."""
    sheet = Sheet(path, page.draw)

    def save(data: Any) -> None:
        sheet.add([Answer.of(data, page.allowed)])

    server = LocalServer(lambda _: page.html(sheet.read()), save=save)
    with server.bind() as bound:
        threading.Thread(target=bound.serve_forever, daemon=True).start()
        port = int(bound.server_port)
        yield f"http://127.0.0.1:{port}/{server.token}/", port, server.token
        bound.shutdown()


def begun(tab: Tab, rater: str) -> Tab:
    """Give the name of the *rater*."""
    tab.type(rater)
    tab.press("Enter")
    tab.until("!document.getElementById('desk').hidden")
    return tab


def settled(tab: Tab) -> Tab:
    """Wait until all that was answered is kept."""
    tab.until("!queue.length && !isSending")
    return tab


def rated(path: Path, rater: str) -> dict[str, dict[str, str | None]]:
    """Return what *rater* said, by candidate and criterion."""
    found: dict[str, dict[str, str | None]] = {}
    for each in read_answers(path, "key"):
        if each.rater == rater:
            found.setdefault(each.name, {})[each.criterion] = each.value
    return found


# -- in the browser --------------------------------------------------------------------------------------


def test_every_answer_type_is_answered_by_keyboard_and_read_back(browser: Browser, tmp_path: Path) -> None:
    """One key per criterion writes the labels, which `Labels.read` returns with rater and key."""
    page, path = page_of(), tmp_path / "labels.csv"
    with served(page, path) as (address, _, _):
        tab = begun(browser.open(address), "Ann")
        assert tab.run("document.getElementById('stage').innerText").startswith("INPUT")
        tab.press(*ALL)
        settled(tab).press("Enter")
        assert "Candidate 2 of 6" in tab.text
        tab.close()
    first = page.draw.items[0].name
    assert rated(path, "Ann") == {first: SAID}
    labels = Labels.read(path)
    assert {label.criterion: label.value for label in labels} == SAID
    assert (labels.raters, {label.key for label in labels}) == (("Ann",), {first})


def test_two_raters_resume_and_the_judge_is_compared_with_both(browser: Browser, tmp_path: Path) -> None:
    """Each rater goes on at the first open candidate, and both count in the agreement."""
    pytest.importorskip("scipy")
    from rubric.trust import agreement

    rubric = Rubric("r").expects("Good", id="good").rates("Clear", (1, 5), id="clear")
    page, path = page_of(rubric=rubric), tmp_path / "labels.csv"
    with served(page, path) as (address, _, _):
        ann = begun(browser.open(address), "Ann")
        ann.press("y", "4", "p", "Enter", "n", "2", "f", "Enter", "y")
        settled(ann).close()
    with served(page, path) as (address, _, _):  # another run of the command
        again = browser.open(address)
        again.until("document.querySelector('#raters button')?.textContent === 'Ann'")
        begun(again, "Ann")
        assert "Candidate 3 of 6" in again.text
        again.press("3", "p")
        settled(again).close()
        bob = begun(browser.open(address), "Bob")
        assert bob.run("document.querySelectorAll('[aria-checked=true]').length") == 0
        bob.press("n", "4", "p", "Enter", "n", "c", "f", "Enter", "y", "3", "p")
        settled(bob).close()
    names = [item.name for item in page.draw.items[:3]]
    assert [rated(path, "Ann")[name]["clear"] for name in names] == ["4", "2", "3"]
    assert [rated(path, "Bob")[name]["clear"] for name in names] == ["4", "", "3"]
    judge = Judge(ScriptedModel({"good": True, "clear": 4}))
    found = agreement(grade_many(candidates(), rubric, judge).collect(), Labels.read(path))
    assert found["good"]["agreement"].value == 0.5  # a tie on the first counts for neither
    assert found["clear"].n == 3


def test_an_answer_is_changed_taken_back_and_given_a_reason(browser: Browser, tmp_path: Path) -> None:
    """The file holds the last value with its reason, and nothing after a retraction."""
    page, path = page_of(rubric=Rubric("r").expects("Good", id="good")), tmp_path / "labels.csv"
    with served(page, path) as (address, _, _):
        tab = begun(browser.open(address), "Ann")
        tab.press("y", "n", "r")
        tab.type('It says "no", twice')
        tab.press("Enter")
        settled(tab)
        (kept,) = read_answers(path, "key")
        assert (kept.value, kept.reason) == ("no", 'It says "no", twice')
        tab.press("Backspace")
        settled(tab)
        assert read_answers(path, "key") == []
        tab.close()


def test_two_tabs_lose_nothing_of_each_other(browser: Browser, tmp_path: Path) -> None:
    """Two raters who answer in turn both have all their rows in the file."""
    page, path = page_of(rubric=Rubric("r").expects("Good", id="good")), tmp_path / "labels.csv"
    with served(page, path) as (address, _, _):
        one, two = browser.open(address), browser.open(address)
        begun(one, "Ann")
        begun(two, "Bob")
        for _ in range(3):
            one.press("y", "Enter")
            two.press("n", "Enter")
        settled(one).close()
        settled(two).close()
    assert len(rated(path, "Ann")) == len(rated(path, "Bob")) == 3


def test_the_judge_is_hidden_until_asked_and_a_look_is_written_down(browser: Browser, tmp_path: Path) -> None:
    """The verdict appears on a key press, and later answers are marked `judge_seen`."""
    rubric = Rubric("r").expects("Good", id="good")
    judge = Judge(ScriptedModel(lambda _: '{"reason": "because of the moon", "verdict": true}'), sealed=False)
    results = {r.key: [r.to_dict()] for r in grade_many(candidates(2), rubric, judge).collect()}
    draw = Draw.of(["k0", "k1"])
    page = LabelPage(rubric, draw, [candidates(2)[item.place] for item in draw.items], results)
    path = tmp_path / "labels.csv"
    with served(page, path) as (address, _, _):
        tab = begun(browser.open(address), "Ann")
        assert "the moon" not in tab.text
        tab.press("y", "Enter", "j")
        assert "the moon" in tab.text
        tab.press("n")
        settled(tab).close()
    assert [each.judge_seen for each in read_answers(path, "key")] == [False, True]


def test_a_page_of_its_own_keeps_exports_and_resumes(browser: Browser, tmp_path: Path) -> None:
    """A page without a server keeps its answers in the browser and exports the same CSV file."""
    page = page_of(30, shown=10)
    file = tmp_path / "page.html"
    file.write_text(page.html(mode="file"), "utf-8")
    tab = begun(browser.open(file.as_uri()), "Ann")
    tab.press(*ALL, "Enter", "y")
    tab.close()
    again = begun(browser.open(file.as_uri()), "Ann")
    assert "Candidate 2 of 10" in again.text
    exported = tmp_path / "ann.csv"
    exported.write_text(str(again.run("csv()")), "utf-8")
    again.run("localStorage.clear()")
    again.close()
    assert rated(exported, "Ann")[page.draw.items[0].name] == SAID
    sheet = Sheet(tmp_path / "all.csv", page.draw)
    sheet.add(read_answers(exported, "key"))
    assert sheet.path.read_text() == exported.read_text()


def test_hostile_texts_run_nothing(browser: Browser, tmp_path: Path) -> None:
    """Attacks in criteria, names, labels and results add no element and no script to the page."""
    rubric = Rubric("x", guidelines="".join(PAYLOADS)).chooses("t", {PAYLOADS[0][:40]: 0, "b": 1})
    rubric = rubric.adding(*(Criterion(f"x {words}", id=f"a{n}") for n, words in enumerate(PAYLOADS)))
    draw = Draw.of([f"{n} {words}".strip() for n, words in enumerate(PAYLOADS)])
    shown = [PAYLOADS[item.place] for item in draw.items]
    result = {"findings": [], "score": 0.5, "passed": True, "verdict": "pass", "judge": "".join(PAYLOADS)}
    texts = [Candidate(words, input=words, context=words) for words in shown]
    page = LabelPage(rubric, draw, texts, {item.name: [result] for item in draw.items}, "".join(PAYLOADS))
    said = [Answer(item.name, PAYLOADS[item.place], "a0", "yes", PAYLOADS[item.place]) for item in draw.items]
    with served(page, tmp_path / "labels.csv") as (address, _, _):
        Sheet(tmp_path / "labels.csv", draw).add(said)
        tab = begun(browser.open(address), "Ann")
        for _ in shown:
            tab.press("j", "y", "ArrowRight")
        assert tab.run("document.title").startswith("Label")
        assert tab.run("document.querySelectorAll('script').length") == 2
        assert tab.run("document.querySelectorAll('img, iframe, object, embed, link').length") == 0
        settled(tab).close()


def test_a_hostile_candidate_is_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    """Markup of the candidate and of the rater's name appears letter by letter."""
    words = "<script>document.title='pwned'</script><img src=x onerror=\"document.title='pwned'\">"
    page = LabelPage(Rubric("r").expects("Good"), Draw.of(["k"]), [Candidate(words, key="k")])
    file = tmp_path / "page.html"
    file.write_text(page.html(mode="file"), "utf-8")
    tab = begun(browser.open(file.as_uri()), "<b>Ann</b>")
    assert words in tab.text
    assert "labelled by <b>Ann</b>" in tab.text
    assert tab.run("document.title") == "Label Labels"
    tab.run("localStorage.clear()")
    tab.close()


# -- the server ------------------------------------------------------------------------------------------


def posted(port: int, path: str, body: bytes, **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    own = {"Content-Type": "application/json", "Origin": f"http://127.0.0.1:{port}"}
    connection.request("POST", path, body, {**own, **{n.replace("_", "-"): v for n, v in headers.items()}})
    return connection.getresponse().status


def test_only_the_own_page_saves(tmp_path: Path) -> None:
    """Foreign origins, hosts, tokens and malformed bodies are refused, and no file is written."""
    page, path = page_of(), tmp_path / "labels.csv"
    answer = {"name": "k1", "rater": "Ann", "criterion": "answers", "value": "yes", "reason": "", "judge_seen": False}
    body = json.dumps(answer).encode()
    with served(page, path) as (_, port, token):
        assert posted(port, f"/{token}/", body, Origin="http://evil.example") == 403
        assert posted(port, f"/{token}/", body, Origin="null") == 403
        assert posted(port, f"/{token}/", body, Content_Type="text/plain") == 403
        assert posted(port, f"/{token}/", body, Host="evil.example", Origin="http://evil.example") == 403
        assert posted(port, "/wrong/", body) == 404
        assert posted(port, f"/{token}/", b"", Content_Length="2000000") == 413
        for wrong in (b"no", b"[]", json.dumps(answer | {"value": "maybe"}).encode(), b"[" * 100_000):
            assert posted(port, f"/{token}/", wrong) == 400
        for changed in ({"rater": " "}, {"criterion": "none"}, {"name": 3}, {"value": 1}):
            assert posted(port, f"/{token}/", json.dumps(answer | changed).encode()) == 400
        assert not path.exists()
        assert posted(port, f"/{token}/", body) == 200
    assert rated(path, "Ann") == {"k1": {"answers": "yes"}}


# -- questions -------------------------------------------------------------------------------------------


def test_every_value_on_the_page_is_one_that_the_criterion_takes() -> None:
    """Each option can be read as a label of its criterion, and its key is unique."""
    pytest.importorskip("scipy")
    from rubric.trust.ratings import VERDICT, scale_of

    tree: DecisionTree = ask("Polite?").yes(1.0).no(0.0)
    rubric = RUBRIC.adding(
        Criterion("Tree", id="tree", answer=tree),
        Criterion("Inner", id="inner", answer=Rubric("in").expects("a").expects("b")),
        Criterion("Below", id="below", levels=(-2, 2)),
        Criterion("Bands", id="bands", levels={"0-3": "low", "4-5": "high"}),
        Criterion("Fact", id="fact", polarity="contradiction"),
    )
    for question in questions_of(rubric):
        assert question.values
        scale = VERDICT if question.source is None else scale_of(question.source)
        for value in question.values:
            scale.read(value, question.criterion)
        keys = [option.key for option in question.options]
        assert len({*keys}) == len(keys)


def test_checks_are_not_asked_and_one_criterion_needs_no_verdict_on_the_whole() -> None:
    """The page asks for the judged criteria, and for the whole only beside another criterion."""
    assert [each.criterion for each in questions_of(Rubric("r").checks("ticket", id="c").expects("b", id="b"))] == [
        "b",
        "",
    ]
    assert [each.criterion for each in questions_of(Rubric("r").expects("b", id="b"))] == ["b"]
    assert [each.criterion for each in questions_of(Rubric.of("Free-form"))] == ["overall"]


def test_a_criterion_that_does_not_apply_is_not_asked(browser: Browser, tmp_path: Path) -> None:
    """A criterion whose `when` does not hold gets no question and no label."""
    rubric = Rubric("r").expects("Good", id="good").expects("Sorry", id="sorry", when={"contains": "apolog"})
    file = tmp_path / "page.html"
    file.write_text(page_of(1, rubric).html(mode="file"), "utf-8")
    tab = begun(browser.open(file.as_uri()), "Ann")
    tab.press("y", "p")
    assert tab.run("[...answers.values()].map((row) => row[2])") == ["good", ""]
    assert "1 labelled by Ann" in tab.text
    tab.run("localStorage.clear()")
    tab.close()


# -- the draw --------------------------------------------------------------------------------------------


def test_the_first_of_a_draw_are_a_random_sample() -> None:
    """Whatever stands early in the data, or is alike, is not a likelier to be labelled."""
    early = sum(
        item.place < 25 for run in range(200) for item in Draw.of([f"{run}, {n}" for n in range(50)]).items[:10]
    )
    assert early / 2_000 == pytest.approx(0.5, abs=0.04)
    assert Draw.of(["a", "b", "c"]) == Draw.of(["a", "b", "c"])


@pytest.mark.parametrize(("keys", "by"), [(["a", "b"], "key"), (["a", "a"], "index"), (["a", ""], "index")])
def test_candidates_go_by_place_where_keys_do_not_name_them(keys: list[str], by: str) -> None:
    """Repeated or empty keys make labels refer to the row's number."""
    assert Draw.of(keys).by == by


# -- the file --------------------------------------------------------------------------------------------


def test_threads_lose_no_answer_and_the_file_is_always_whole(tmp_path: Path) -> None:
    """Two writers at once leave 40 rows, and no reader sees a partial file."""
    draw = Draw.of([f"k{n}" for n in range(40)])
    sheet = Sheet(tmp_path / "labels.csv", draw)

    def work(rater: str) -> None:
        for n in range(20):
            sheet.add([Answer(f"k{n}", rater, "a", "yes")])
            assert len(sheet.read()) > 0

    threads = [threading.Thread(target=work, args=(name,)) for name in "AB"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(Labels.read(sheet.path)) == 40
    assert [path.name for path in tmp_path.iterdir()] == ["labels.csv"]


def test_rows_of_other_candidates_and_labels_written_by_hand_are_kept(tmp_path: Path) -> None:
    """Adding an answer rewrites no foreign row."""
    path = tmp_path / "labels.csv"
    path.write_text("key,value,criterion\ngone,no,a\nk0,yes,a\n")
    Sheet(path, Draw.of(["k0", "k1"])).add([Answer("k1", "Ann", "a", "no", "said, in short:\n=1+1")])
    found = read_answers(path, "key")
    assert {(each.name, each.rater, each.value) for each in found} == {
        ("gone", "", "no"),
        ("k0", "", "yes"),
        ("k1", "Ann", "no"),
    }
    assert found[0].reason or found[1].reason == "said, in short:\n=1+1"


def test_a_file_with_other_columns_is_refused(tmp_path: Path) -> None:
    """A column that would be lost, or one that is missing, is an error."""
    path = tmp_path / "labels.csv"
    path.write_text("key,value,mood\nk0,yes,fine\n")
    with pytest.raises(DefinitionError, match="its column 'mood' would be lost"):
        Sheet(path, Draw.of(["k0"])).add([])
    path.write_text("key,rater\nk0,Ann\n")
    with pytest.raises(DefinitionError, match="expected the columns key and value"):
        Sheet(path, Draw.of(["k0"])).read()


# -- the command -----------------------------------------------------------------------------------------


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    RUBRIC.save(tmp_path / "rubric.yaml")
    rows = [{"key": each.key, "output": each.output} for each in candidates()]
    (tmp_path / "data.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def called(folder: Path, *more: str) -> Result:
    return CliRunner().invoke(main, ["label", str(folder / "data.jsonl"), str(folder / "rubric.yaml"), *more])


def test_a_row_without_an_answer_is_left_out_and_named(inputs: Path) -> None:
    """There is nothing to label in it; the others keep their names, and the terminal says what is left out."""
    with (inputs / "data.jsonl").open("a") as file:
        file.write('{"key": "empty", "output": null}\n')
    page, count = inputs / "page.html", len(candidates())
    done = called(inputs, "--html", str(page))
    assert (done.exit_code, f"{count} candidates to label" in done.stdout) == (0, True)
    assert f"1 of {count + 1} rows hold no candidate and are left out: candidates[{count}].output" in done.stderr


def test_a_page_is_written_and_what_it_exports_is_added(inputs: Path) -> None:
    """`--html` writes the page and `--add` joins the raters' files, with a warning for gaps."""
    page, out = inputs / "page.html", inputs / "labels.csv"
    done = called(inputs, "--html", str(page), "--count", "3")
    assert (done.exit_code, "3 candidates to label" in done.stdout) == (0, True)
    assert page.read_text().count('<template id="item-') == 3
    names = [item.name for item in Draw.of([each.key for each in candidates()]).items]
    for rater, how_many in (("ann", 4), ("bob", 2)):
        lines = "".join(f"{name},{rater},answers,yes,,\n" for name in names[:how_many])
        (inputs / f"{rater}.csv").write_text(f"key,rater,criterion,value,reason,judge_seen\n{lines}")
    done = called(inputs, "--out", str(out), "--add", str(inputs / "ann.csv"), "--add", str(inputs / "bob.csv"))
    assert "6 answers added, 6 by 2 raters in all" in done.stdout, done.stderr
    (inputs / "gap.csv").write_text(f"key,rater,criterion,value\n{names[5]},ann,answers,yes\n")
    assert "1 candidate before the last" in called(inputs, "--out", str(out), "--add", str(inputs / "gap.csv")).stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ((), "--out FILE, or a page to send with --html FILE"),
        (("--html", "page.html", "--out", "labels.csv"), "name one: the file of labels with --out FILE, or"),
        (("--out", "labels.txt"), "ends in .csv"),
        (("--html", "page.csv"), "ends in .html"),
        (("--html", "page.html", "--port", "8000"), "is for the served page"),
        (("--html", "page.html", "--add", "x.csv"), "--out FILE"),
        (("--out", "labels.csv", "--results", "none.jsonl"), "there is no file"),
        (("--out", "labels.csv", "--add", "none.csv"), "there is no file"),
    ],
)
def test_wrong_calls_are_refused(inputs: Path, more: tuple[str, ...], said: str) -> None:
    """Missing outputs, wrong endings, useless options and missing files end with code 2."""
    done = called(inputs, *more)
    assert (done.exit_code, said in done.stderr) == (2, True), done.stderr


def test_results_of_other_candidates_and_other_files_are_refused(inputs: Path) -> None:
    """Results that match no candidate, and rows that are not results, are errors."""
    other = inputs / "other.jsonl"
    grade_many([Candidate("x", key="z")], RUBRIC, "offline").collect().to_jsonl(other)
    assert "none matches" in called(inputs, "--html", str(inputs / "p.html"), "--results", str(other)).stderr
    data = inputs / "data.jsonl"
    assert "is not a result" in called(inputs, "--html", str(inputs / "p.html"), "--results", str(data)).stderr
