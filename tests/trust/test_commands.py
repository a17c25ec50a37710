"""The commands `agree`, `estimate` and `compare`, over files of results and labels."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner, Result

from rubric import Case, Criterion, Grades, Panel, Rubric, Suite, dump, grade_many, load
from rubric.__main__ import main
from rubric.trust import agreement, compare
from rubric.trust.cutoffs import Aim
from tests.command_line import choices_of
from tests.recorded import grades
from tests.trust.test_trust import BOTH, GRADES, JUDGE, LABEL, PEOPLE


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Return a file of results and one of labels."""
    results, labels = tmp_path / "results.jsonl", tmp_path / "labels.csv"
    GRADES.to_jsonl(results)
    rows = [f"{key},good,{'yes' if PEOPLE[key]['good'] else 'no'}" for key in range(100)]
    labels.write_text("\n".join(["key,criterion,value", *rows]))
    return results, labels


def test_agree_saves_a_baseline_and_notices_drift(files: tuple[Path, Path], tmp_path: Path) -> None:
    """0 where nothing has changed, 1 where it has."""
    results, labels = files
    baseline = tmp_path / "baseline.yaml"
    done = run("agree", results, labels, "--out", baseline)
    assert done.exit_code == 0, done.output
    assert "The judge agrees with people in" in done.output
    assert run("agree", results, labels, "--against", baseline).exit_code == 0
    grades(BOTH, {key: {**said, "good": not said["good"]} for key, said in JUDGE.items()}).to_jsonl(results)
    changed = run("agree", results, labels, "--against", baseline, "--format", "json")
    assert changed.exit_code == 1
    assert json.loads(changed.output)["drift"]["changed"] is True


def test_a_baseline_at_a_terminal_is_yaml_or_json(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Another ending is refused before anything is measured, with the option and the line that keeps what is printed."""
    done = run("agree", *files, "--out", tmp_path / "x.md")
    assert done.exit_code == 2
    assert f"--out {tmp_path / 'x.yaml'}; for people it is printed" in done.output
    assert f"write rubric agree {files[0]} {files[1]} > {tmp_path / 'x.txt'}" in done.output
    assert run("agree", *files, "--out", tmp_path / "x.json").exit_code == 0
    assert run("agree", *files, "--against", tmp_path / "x.json").exit_code == 0


def test_agree_compares_two_judges(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Two files of results are compared criterion by criterion."""
    GRADES.to_jsonl(tmp_path / "other.jsonl")
    done = run("agree", files[0], tmp_path / "other.jsonl", "--format", "json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["criteria"][0]["n"] == 200


def test_agree_compares_people_and_shows_all_on_request(files: tuple[Path, Path], tmp_path: Path) -> None:
    """A file of labels alone is of people; `--all` has the rates of each class."""
    rows = [
        f"{n},{rater},{'yes' if (n + k) % 5 else 'no'}" for n in range(40) for k, rater in enumerate(("ann", "bob"))
    ]
    (tmp_path / "people.csv").write_text("\n".join(["key,rater,value", *rows]))
    done = run("agree", tmp_path / "people.csv")
    assert done.exit_code == 0, done.output
    assert "2 people agree with each other in" in done.output
    (tmp_path / "typed.csv").write_text("\n".join(["key,rater,value", *rows]).replace("4,ann,yes", "4,ann,yess", 1))
    assert "expected yes or no" in (said := run("agree", tmp_path / "typed.csv").output.replace("\n", " "))
    assert "labels.replace({'yess': 'pass'})" in said
    assert "each class" not in run("agree", *files).output
    assert "good: each class" in run("agree", *files, "--all").output


def test_labels_that_results_alone_cannot_read_are_read_by_the_rubric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An option that the judge never chose is refused with the line that names the rubric, which reads it."""
    monkeypatch.chdir(tmp_path)
    dump(LABEL, "m.yaml")
    grades(LABEL, {key: {"label": "hate"} for key in "abc"}).to_jsonl("o.jsonl")
    Path("l.csv").write_text("key,criterion,value\na,label,hate\nb,label,spam\n", encoding="utf-8")
    for line in ("agree o.jsonl l.csv", "estimate o.jsonl l.csv"):
        said = " ".join(run(*line.split()).stderr.split())
        assert "the judge chose hate alone, and 'spam' may be another option" in said, said
        assert f"write rubric {line} --rubric m.yaml;" in said
        assert "leave its cell empty" not in said
    assert "agrees with people in 50 %" in run("agree", "o.jsonl", "l.csv", "--rubric", "m.yaml").output
    assert "expected one of safe, hate, spam, got 'spm'" in _with(Path("l.csv"), "spam", "spm")
    Path("m.yaml").rename("else.yml")
    assert "add --rubric FILE" in " ".join(run("agree", "o.jsonl", "l.csv").stderr.split())
    dump(BOTH, "m.yaml")
    assert "o.jsonl has results of the rubric" in " ".join(
        run("agree", "o.jsonl", "l.csv", "--rubric", "m.yaml").stderr.split()
    )


def _with(labels: Path, word: str, other: str) -> str:
    """Return what `agree` says of *labels* with the *other* word, under the rubric."""
    labels.write_text(labels.read_text("utf-8").replace(word, other), encoding="utf-8")
    said = " ".join(run("agree", "o.jsonl", labels, "--rubric", "m.yaml").stderr.split())
    labels.write_text(labels.read_text("utf-8").replace(other, word), encoding="utf-8")
    return said


def test_results_tell_the_ends_of_a_scale_of_numbers(files: tuple[Path, Path]) -> None:
    """Two values and their scores do, so that a label beyond them is refused without the rubric, too."""
    files[1].write_text("key,criterion,value\n0,clear,1\n1,clear,7\n", encoding="utf-8")
    assert "expected a number in 1..5, got '7'" in run("agree", *files).output
    files[1].write_text("key,criterion,value\n0,clear,1\n1,clear,5\n", encoding="utf-8")
    assert run("agree", *files).exit_code == 0


def test_agree_lists_what_people_say_otherwise(files: tuple[Path, Path], tmp_path: Path) -> None:
    """`--disagreements` is that of Python, as a table and as JSON; a baseline is kept beside it."""
    apart = agreement(GRADES, files[1]).disagreements
    done = run("agree", *files, "--disagreements", "--format", "json", "--out", tmp_path / "base.yaml")
    assert [one["key"] for one in json.loads(done.output)["items"]] == [one.key for one in apart]
    assert apart.sentence in run("agree", *files, "--disagreements", "--against", tmp_path / "base.yaml").output


def test_estimate_fails_below_a_minimum(files: tuple[Path, Path]) -> None:
    """Only where the whole interval is below it."""
    assert run("estimate", *files, "--criterion", "good", "--min", "0.7").exit_code == 0
    done = run("estimate", *files, "--criterion", "good", "--min", "0.95")
    assert done.exit_code == 1
    assert "The rate of good is" in done.output


def test_compare_fails_where_a_drop_is_no_chance(files: tuple[Path, Path], tmp_path: Path) -> None:
    """A significant drop ends with 1; equal and better results end with 0."""
    worse = tmp_path / "worse.jsonl"
    grades(BOTH, {key: {**said, "good": False} for key, said in JUDGE.items()}).to_jsonl(worse)
    assert run("compare", files[0], files[0]).exit_code == 0
    assert run("compare", worse, files[0]).exit_code == 1
    assert run("compare", files[0], "--baseline", worse).exit_code == 0


@pytest.mark.parametrize(("new", "old", "said"), [
    ("main", "pr", "by its name main.json is the older one"),
    ("v9", "v10", "by its name v9.json is the older one"),
    ("a", "b", ""),
    ("b", "a", ""),
    ("pr", "main", ""),
])  # fmt: skip
def test_the_older_run_is_not_taken_for_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: str, old: str, said: str
) -> None:
    """By the names, not by times, which may be those of a download; both lines run, and the output names both files."""
    monkeypatch.chdir(tmp_path)
    for name in ("pr", "v10", "v9", "a", "main", "b"):
        Suite("s", [Case("c", Rubric("r", ["Thank you"]), output="Thank you")]).run("offline").write(f"{name}.json")
    done = run("compare", f"{new}.json", f"{old}.json")
    assert (done.exit_code, said in done.output) == (2 if said else 0, True), done.output
    lines = re.findall(r"rubric (compare [^);]*)", done.stderr)[: 2 * bool(said)] or [f"compare {new}.json {old}.json"]
    shown = [f"new: {new}.json, old: {old}.json", f"new: {old}.json, old: {new}.json"]
    for line, files in zip(lines, shown, strict=False):
        assert files in run(*line.split()).stdout
        assert '"new": "' in run(*line.split(), "--format", "json").stdout


def test_compare_by_a_column_that_the_runs_have_kept(tmp_path: Path) -> None:
    """A topic that falls is told and ends with 1, though all together stay; an older file names what to do."""
    (tmp_path / "kind.yaml").write_text("rubric: kind\ncriteria: [{id: thanks, check: {contains: Thank}}]\n")
    for name, bad in (("old", "odd"), ("new", "even")):
        topics = [(n, "odd" if n % 2 else "even") for n in range(60)]
        rows = [f"{n},{topic},{'No' if topic == bad and n % 3 else 'Thank you'}" for n, topic in topics]
        (tmp_path / f"{name}.csv").write_text("\n".join(["key,topic,output", *rows]))
        for file, more in ((f"{name}.jsonl", ["--by", "topic"]), (f"{name}-older.jsonl", ["--column", "topic="])):
            done = run(*("grade-many", tmp_path / "kind.yaml", tmp_path / f"{name}.csv", "-j", "offline", "--no-keep"),
                       "--quiet", "--out", tmp_path / file, *more)  # fmt: skip
            assert done.exit_code == 0, done.output
    found = run("compare", tmp_path / "new.jsonl", tmp_path / "old.jsonl", "--by", "topic")
    assert found.exit_code == 1
    assert "Of 2 groups by topic, the pass rate of 'even' went down by -0.667" in " ".join(found.stdout.split())
    assert run("compare", tmp_path / "old.jsonl", tmp_path / "old.jsonl", "--by", "topic").exit_code == 0
    as_json = run("compare", tmp_path / "new.jsonl", tmp_path / "old.jsonl", "--by", "topic", "--format", "json")
    assert json.loads(as_json.stdout)["groups"]["odd"]["criteria"][0]["n"] == 30
    older = run("compare", tmp_path / "new-older.jsonl", tmp_path / "old.jsonl", "--by", "topic")
    assert older.exit_code == 2
    assert "such as rubric grade-many rubric.yaml data.csv --by topic" in " ".join(older.output.split())


def test_the_sentence_of_a_comparison_names_what_the_whole_does_not_show() -> None:
    """One criterion falls while another rises, so that as many pass: chance explains neither."""
    made = Rubric("r", [Criterion("a", id="a"), Criterion("b", id="b")], threshold=0.5)
    old = grades(made, {n: {"a": True, "b": n % 2 == 0} for n in range(60)})
    new = grades(made, {n: {"a": n % 2 == 0, "b": True} for n in range(60)})
    said = compare(new, old).sentence
    assert said.startswith("The pass rate is the same over 60 pairs")
    assert "But 'a' went down by -0.500" in said
    assert "'b' went up by +0.500" in said
    assert " But " not in compare(new, new).sentence
    assert " But " not in compare(grades(made, {n: {"a": False, "b": False} for n in range(60)}), old).sentence


def test_results_of_a_panel_are_read_with_its_members(tmp_path: Path) -> None:
    """Beside the results of one judge, which name it themselves."""
    rubric = Rubric("r").expects("Says thank you")
    dump(rubric, tmp_path / "r.yaml")
    texts = ["Thank you", "No"] * 12
    for name, judge in (("one", "offline"), ("two", Panel(["offline", "offline"]))):
        grade_many(texts, rubric, judge).collect().to_jsonl(tmp_path / f"{name}.jsonl")
    (tmp_path / "l.csv").write_text("index,value\n" + "".join(f"{n},{n % 2 == 0}\n" for n in range(24)))
    members = ("-j", "offline", "-j", "offline")
    chosen = run("thresholds", tmp_path / "r.yaml", tmp_path / "two.jsonl", tmp_path / "l.csv", *members)
    assert chosen.exit_code == 0, chosen.output
    files = (tmp_path / "two.jsonl", tmp_path / "one.jsonl")
    done = run("compare", *files, "--rubric", tmp_path / "r.yaml", *members, "--out", tmp_path / "page.html")
    assert (done.exit_code, (tmp_path / "page.html").is_file()) == (0, True), done.output


_WIDE = "id,rater,good,clear\n" + "".join(f"{n},ann,{'' if n == 0 else n % 3 > 0},{n % 5 + 1}\n" for n in range(40))
_PEOPLE = "id,ann,bob\n" + "".join(f"{n},{n % 3 > 0},{n % 4 > 0}\n" for n in range(40))


@pytest.mark.parametrize(
    ("content", "typed", "said"),
    [
        (
            _WIDE,
            "",
            "if 'good' and 'clear' are criteria, write {line} --column key=id --criteria good --criteria clear\n",
        ),
        (_WIDE, "--column key=id", "{line} --column key=id --criteria good --criteria clear\n"),
        (_WIDE, "--criteria good,clear", "{line} --criteria good,clear --column key=id"),
        (_WIDE, "--criteria good,clear --al", "{line} --criteria good,clear --all --column key=id;"),
        (
            _WIDE,
            "--column key=id --column value=good",
            "{line} --column key=id --column value=good --criteria good",
        ),
        (
            _WIDE,
            "--column key=id --column value=good --column value=clear",
            "{line} --column key=id --criteria good --criteria clear;",
        ),
        (_PEOPLE, "", "if they are people, write {line} --column key=id --raters ann --raters bob\n"),
        (_PEOPLE, "", "if one alone is the label of the whole, write {line} --column key=id --column value=ann\n"),
        ("key,criterion,value\n1,good,yes\n2,good,no\n", "--criteria good", "{line};"),
    ],
)
def test_labels_with_a_column_a_criterion_or_a_person_are_cured(
    files: tuple[Path, Path], content: str, typed: str, said: str
) -> None:
    """Each reading has a line of its own, which keeps what was typed and is taken."""
    results, labels = files
    labels.write_text(content)
    done = run("agree", *files, *typed.split())
    said = said.replace("{line}", f"rubric agree {results} {labels}")
    assert (done.exit_code, said in f"{done.output}\n") == (2, True), done.output
    words = said.partition("rubric ")[2].strip("\n;").split()
    assert run(*words).exit_code == 0, run(*words).output


@pytest.mark.parametrize("arguments", [("agree", "nothing.jsonl", "labels.csv"), ("compare", "a.jsonl", "b.jsonl")])
def test_bad_input_is_2(arguments: tuple[str, ...]) -> None:
    """A missing file ends with 2 and is named."""
    done = run(*arguments)
    assert done.exit_code == 2
    assert "there is no such file" in done.output


def test_an_option_without_an_effect_is_refused(files: tuple[Path, Path]) -> None:
    """`agree --risk` without `--against` is a usage error."""
    assert run("agree", *files, "--risk", "0.1").exit_code == 2


def test_thresholds_are_chosen_at_a_terminal(tmp_path: Path) -> None:
    """By the rubric, its results and labels of the whole, for an aim; a wrong one is bad input."""
    rubric = Rubric("replies").scores("How good", id="good")
    grades(rubric, {n: {"good": n / 100} for n in range(100)}).to_jsonl(tmp_path / "results.jsonl")
    dump(rubric, tmp_path / "rubric.yaml")
    (tmp_path / "labels.csv").write_text("\n".join(["key,value", *(f"{n},{n >= 40}" for n in range(100))]))
    files_ = [tmp_path / name for name in ("rubric.yaml", "results.jsonl", "labels.csv")]
    done = run("thresholds", *files_)
    assert done.exit_code == 0, done.output
    assert "Pass from 0.4: the judge then agrees with people in" in done.output
    assert done.stderr.endswith(f"to write the threshold 0.4 into {files_[0]}, add --write\n")
    file = tmp_path / "rubric.yaml"
    file.write_text(f"# agreed in May\n{file.read_text()}")
    said = [run("thresholds", *files_, "--write").stderr for _ in range(2)]
    assert said == [f"wrote the threshold 0.4 into {file}\n"] * 2
    assert (load(file).threshold, file.read_text()[:15]) == (0.4, "# agreed in May")
    assert len(load(file).provenance["labels"]) == 1
    other = tmp_path / "other.csv"
    other.write_text("\n".join(["key,value", *(f"{n},{n >= 60}" for n in range(100))]))
    done = run("thresholds", *files_[:2], other, "--write")
    assert (done.stderr, load(file).threshold) == (f"wrote the threshold 0.6 into {file}\n", 0.6)
    assert "at 0.4, as it is, in 80 %" in done.stdout
    dump(rubric.revising("good", text="How bad"), file)
    done = run("thresholds", *files_)
    assert (
        f"; give that rubric, or grade anew, such as rubric grade-many {file} data.csv --out results.jsonl"
        in done.stderr
    )
    assert "rescore(" not in done.stderr
    dump(rubric, file)
    assert "Chosen for TPR at 0.5" in run("thresholds", *files_, "--for", "TPR", "--at", 0.5).output
    done = run("thresholds", *files_, "--for", "TPR")
    assert done.stderr.startswith("--for: 'TPR' takes a rate in 0..1, such as --at 0.95; write rubric thresholds ")
    assert run("thresholds", *files_, *done.stderr.split()[-4:]).exit_code == 0
    other.write_text("\n".join(["key,value", *(f"{n},{5 if n >= 60 else n % 4}" for n in range(100))]))  # scores
    done = run("thresholds", *files_[:2], other)
    assert "got scores; say from which score a person passes a candidate, such as --passes-from 3.75" in done.stderr
    assert "Pass from 0.6" in run("thresholds", *files_[:2], other, "--passes-from", 3.75).output


def test_groups_that_results_lack_are_cured_at_a_terminal(tmp_path: Path) -> None:
    """The message has the line that keeps the column, and no line of Python."""
    rubric = Rubric("replies").scores("How good", id="good")
    file = tmp_path / "results.jsonl"
    grades(rubric, {n: {"good": n / 40} for n in range(40)}).to_jsonl(file)
    done = run("compare", file, file, "--by", "topic")
    assert done.exit_code == 2
    assert (
        "run again with columns as before, such as rubric grade-many rubric.yaml data.csv --by topic --out new.jsonl; the same --store pays"
        in done.stderr
    )
    assert "compare(" not in done.stderr


def test_labels_that_chose_a_rubric_are_told_from_a_file_of_results(tmp_path: Path) -> None:
    """As in Python: by the lines that are written under the rubric, for the candidates that were labelled; no others."""
    scored = Rubric("replies", threshold=0.9).scores("Thankful words", id="x")
    rubric, candidates, results = (tmp_path / name for name in ("rubric.yaml", "candidates.jsonl", "results.jsonl"))
    dump(scored, rubric)
    texts = ("thankful " * (n % 2) + f"reply {n}" for n in range(60))
    candidates.write_text("".join(json.dumps({"key": f"k{n}", "output": text}) + "\n" for n, text in enumerate(texts)))
    first, mixed, fresh = (tmp_path / f"{name}.csv" for name in ("first", "mixed", "fresh"))
    for file, keys in ((first, range(40)), (mixed, range(30, 60)), (fresh, range(40, 60))):
        file.write_text("\n".join(["key,value", *(f"k{n},{'yes' if n % 2 else 'no'}" for n in keys)]))
    assert run("grade-many", rubric, candidates, "--judge", "offline", "--out", results).exit_code == 0
    assert "chosen_by" not in results.read_text()
    assert run("align", rubric, results, first, "--edit", "threshold", "--write").exit_code == 0
    results.unlink()
    assert run("grade-many", rubric, candidates, "--judge", "offline", "--out", results).exit_code == 0
    told = "labels chose the rubric or the judge: their figures flatter; use others"
    assert f"These 40 {told}" in run("agree", results, first).output
    for command in ("agree", "estimate"):
        assert f"10 of these 30 {told}" in run(command, results, mixed).output
        assert "chose the rubric" not in run(command, results, fresh).output
    again = grades_of(rubric, candidates)
    assert [one["chosen_by"] for one in map(json.loads, results.read_text().splitlines())] == [
        [*one.chosen_by] for one in again
    ]
    assert [":" in each.chosen_by[0] for each in again] == [n < 40 for n in range(60)]


def grades_of(rubric: Path, candidates: Path) -> Grades:
    """Return the grades of the file *candidates* by the file *rubric*."""
    return grade_many(candidates, load(rubric), "offline").collect()


def test_the_aims_at_a_terminal_are_those_of_python() -> None:
    """One list, though the command is known without the extra."""
    assert get_args(Aim) == choices_of("thresholds", "aim")


def test_two_reports_are_compared_as_they_become_a_page(tmp_path: Path) -> None:
    """The sentence is printed, and a worse run ends with 1."""
    for name, output in (("old", "Thank you"), ("new", "No")):
        cases = [Case(f"c{n}", Rubric("r", ["Thank you"]), output=output) for n in range(20)]
        Suite("s", cases).run("offline").write(tmp_path / f"{name}.json")
    done = run("compare", tmp_path / "new.json", tmp_path / "old.json", "--out", tmp_path / "both.html")
    assert (done.exit_code, "Worse than the baseline: 20 worse" in done.stdout) == (1, True), done.output
    assert run("compare", tmp_path / "old.json", tmp_path / "old.json", "--out", tmp_path / "both.html").exit_code == 0
