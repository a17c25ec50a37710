"""Files: what may be read, and how they are written and changed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from rubric import Criterion, DecisionTree, When
from rubric.errors import DumpError, LoadError
from rubric.formats.rubrics import dump, dumps, load, loads
from rubric.values.rubrics import Rubric
from tests.examples import examples
from tests.places import ROOT
from tests.rows import each_row
from tests.strategies import rubrics

EVERYTHING = ROOT / "tests" / "files" / "everything.yaml"
RUBRIC = Rubric("x", criteria=["a", "b"])

posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices are a matter of POSIX")


@pytest.mark.parametrize("name", ["a.yaml", "a.yml", "a.json", "A.YAML"])
def test_round_trip(name: str, tmp_path: Path) -> None:
    """What was written to a file is read from it."""
    dump(RUBRIC, tmp_path / name)
    assert load(tmp_path / name) == RUBRIC
    assert load(str(tmp_path / name)) == RUBRIC


def test_nothing_else_is_left(tmp_path: Path) -> None:
    """Writing leaves no other file behind."""
    dump(RUBRIC, tmp_path / "a.yaml")
    dump(RUBRIC.without("a"), tmp_path / "a.yaml")
    assert [*tmp_path.iterdir()] == [tmp_path / "a.yaml"]


def test_failed_writing_leaves_the_old(tmp_path: Path) -> None:
    """A rubric that cannot be written leaves the file as it was."""
    path = tmp_path / "a.yaml"
    dump(RUBRIC, path)
    with pytest.raises(DumpError):
        dump(RUBRIC.expects("c", when=lambda _: True), path)
    assert load(path) == RUBRIC


def problem_of(path: Path, base: Path | None = None) -> str:
    """Return what is said of the file at *path*."""
    with pytest.raises(LoadError) as caught:
        load(path, base=base)
    (problem,) = caught.value.problems
    assert problem.source == str(path)
    return str(problem).removeprefix(f"{path}:")


def test_missing(tmp_path: Path) -> None:
    """A file that is not there is told so."""
    assert problem_of(tmp_path / "a.yaml") == " this file cannot be read: No such file or directory"


def test_folder(tmp_path: Path) -> None:
    """A folder is not a file."""
    (tmp_path / "a.yaml").mkdir()
    assert problem_of(tmp_path / "a.yaml") == " this is not a file (but a folder, a pipe or a device); name a file"
    for name in ("b.yml", "notes.txt", "a.json"):
        (tmp_path / "a.yaml" / name).touch()
    assert problem_of(tmp_path / "a.yaml") == " this is not a file but a folder; name one in it: a.json, b.yml"


@posix
def test_pipe_does_not_hang(tmp_path: Path) -> None:
    """A pipe that nobody writes to is refused at once."""
    os.mkfifo(tmp_path / "a.yaml")
    assert "a pipe" in problem_of(tmp_path / "a.yaml")
    with pytest.raises(DumpError, match="not a file"):
        dump(RUBRIC, tmp_path / "a.yaml")


@posix
def test_device(tmp_path: Path) -> None:
    """A device without an end is refused at once, also behind a link."""
    (tmp_path / "a.yaml").symlink_to("/dev/zero")
    assert "a device" in problem_of(tmp_path / "a.yaml")


@posix
def test_links_in_a_circle(tmp_path: Path) -> None:
    """A link to itself is refused."""
    (tmp_path / "a.yaml").symlink_to(tmp_path / "a.yaml")
    assert "cannot be read" in problem_of(tmp_path / "a.yaml")


def test_too_large(tmp_path: Path) -> None:
    """A huge file is refused without reading it all, even one with holes."""
    with (tmp_path / "a.yaml").open("wb") as file:
        file.truncate(1 << 30)
    assert problem_of(tmp_path / "a.yaml") == " a file has at most 512 KiB; split it"


def test_unknown_suffix(tmp_path: Path) -> None:
    """The suffix says what is in a file, so an unknown one is refused."""
    assert problem_of(tmp_path / "a.txt") == " the suffix is '.txt'; name the file .yaml, .yml or .json"
    with pytest.raises(DumpError, match="suffix"):
        dump(RUBRIC, tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"text: a\nrubric: \xff", "2:9: the byte 0xff is not UTF-8; save the file as UTF-8"),
        ("text: ü".encode("latin-1"), "1:7: the byte 0xfc is not UTF-8; save the file as UTF-8"),
        ("text: a".encode("utf-16"), "1:1: the byte 0xff is not UTF-8; save the file as UTF-8"),
        ("text: ü\xe9".encode() + b"\x80", "1:9: the byte 0x80 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_not_utf8(data: bytes, problem: str, tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are told at their place."""
    (tmp_path / "a.yaml").write_bytes(data)
    assert problem_of(tmp_path / "a.yaml") == problem


def test_byte_order_mark(tmp_path: Path) -> None:
    """A byte order mark at the start is not a part of the text."""
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbftext: a")
    assert load(tmp_path / "a.yaml") == Rubric.of("a")


def test_json_is_strict(tmp_path: Path) -> None:
    """A file that is called JSON is JSON, and its mistakes are told as such."""
    (tmp_path / "a.json").write_text("{\n  text: a}", encoding="utf-8")
    assert problem_of(tmp_path / "a.json").startswith("2:3: this is not JSON: Expecting property name")


def test_base(tmp_path: Path) -> None:
    """A file within the base folder is read, one outside is not, by whatever way one gets there."""
    base = tmp_path / "base"
    base.mkdir()
    dump(RUBRIC, base / "a.yaml")
    dump(RUBRIC, tmp_path / "b.yaml")
    assert load(base / "a.yaml", base=base) == RUBRIC
    assert "outside of" in problem_of(tmp_path / "b.yaml", base)
    assert "outside of" in problem_of(base / ".." / "b.yaml", base)


@posix
def test_base_and_links(tmp_path: Path) -> None:
    """A link out of the base folder is not followed."""
    (tmp_path / "base").mkdir()
    dump(RUBRIC, tmp_path / "b.yaml")
    (tmp_path / "base" / "a.yaml").symlink_to(tmp_path / "b.yaml")
    assert "outside of" in problem_of(tmp_path / "base" / "a.yaml", tmp_path / "base")


@posix
def test_link_stays_a_link(tmp_path: Path) -> None:
    """Writing to a link writes to the file behind it, and keeps the permissions of that."""
    (tmp_path / "b.yaml").write_text("text: a", encoding="utf-8")
    (tmp_path / "b.yaml").chmod(0o640)
    (tmp_path / "a.yaml").symlink_to(tmp_path / "b.yaml")
    dump(RUBRIC, tmp_path / "a.yaml")
    assert (tmp_path / "a.yaml").is_symlink()
    assert load(tmp_path / "b.yaml") == RUBRIC
    assert (tmp_path / "b.yaml").stat().st_mode & 0o777 == 0o640


# -- changing a file in place ---------------------------------------------------------------------


def edited(before: str, rubric: Rubric, folder: Path) -> str:
    """Return what becomes of a file with the text *before* when *rubric* is written to it."""
    path = folder / "a.yaml"
    path.write_text(before, encoding="utf-8")
    dump(rubric, path)
    assert load(path) == rubric
    return path.read_text("utf-8")


def test_unchanged(tmp_path: Path) -> None:
    """A file that says the rubric already stays as it is, to the byte."""
    before = EVERYTHING.read_text("utf-8")
    assert edited(before, loads(before), tmp_path) == before


def test_one_line_changes(tmp_path: Path) -> None:
    """A change touches its own line; comments, order and quotes elsewhere stay."""
    before = EVERYTHING.read_text("utf-8")
    after = edited(before, loads(before).passing_at(0.9), tmp_path)
    assert after == before.replace("threshold: 0.8  ", "threshold: 0.9  ")


def test_criterion_is_added(tmp_path: Path) -> None:
    """A new criterion stands at the end, and the rest stays."""
    before = "criteria:  # what counts\n  - a  # first\n  - 'b'\n"
    assert edited(before, loads(before).expects("c", weight=2), tmp_path) == before + "  - {text: c, weight: 2}\n"


def test_criterion_is_taken_out(tmp_path: Path) -> None:
    """A criterion goes with its comment, the others keep theirs."""
    before = "criteria:\n  - a  # first\n  - b  # second\n  - c  # third\n"
    assert edited(before, loads(before).without("b"), tmp_path) == before.replace("  - b  # second\n", "")


def test_order_changes(tmp_path: Path) -> None:
    """A criterion takes its comment along."""
    before = "criteria:\n  - a  # first\n  - b  # second\n"
    rubric = loads(before)
    after = edited(before, evolve(rubric, criteria=rubric.criteria[::-1]), tmp_path)
    assert after == "criteria:\n  - b  # second\n  - a  # first\n"


def test_answer_changes(tmp_path: Path) -> None:
    """A new answer takes the place of the old one."""
    before = "criteria:\n  - text: a  # first\n    answer: unit\n"
    rubric = Rubric().rates("a", {0: "low", 1: "high"})
    assert edited(before, rubric, tmp_path) == "criteria:\n  - text: a  # first\n    levels: {0: low, 1: high}\n"


def test_kind_changes(tmp_path: Path) -> None:
    """A text takes the place of criteria."""
    before = "# mine\nrubric: x\ncriteria: [a]\n"
    assert edited(before, Rubric.of("b", name="x"), tmp_path) == "# mine\nrubric: x\ntext: b\n"


def test_indentation_stays(tmp_path: Path) -> None:
    """A list that is not indented stays so."""
    before = "criteria:\n- text: a\n  weight: 2\n- b\n"
    after = edited(before, loads(before).revising("a", weight=3), tmp_path)
    assert after == before.replace("2", "3")


@pytest.mark.parametrize("other", ["criteria: [", "# docker compose\nservices: {}\n"])
def test_what_is_no_rubric_is_not_written_over(other: str, tmp_path: Path) -> None:
    """A file that holds something else, or a rubric with a slip, stays as it is."""
    with pytest.raises(DumpError, match="is not a rubric file"):
        edited(other, RUBRIC, tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == [other]


def test_an_empty_file_is_written(tmp_path: Path) -> None:
    """There is nothing in it to lose."""
    assert edited("\n", RUBRIC, tmp_path) == dumps(RUBRIC)


@examples(50)
@given(before=rubrics(), after=rubrics())
def test_any_change(before: Rubric, after: Rubric, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever a file said, it says what was written to it last."""
    path = tmp_path_factory.mktemp("any") / "a.yaml"
    dump(before, path)
    dump(after, path)
    assert load(path) == after


COMMENTED = """\
# Mine.
rubric: x
criteria:  # what counts
  # The gate.
  - a  # first
  - {text: b, weight: 2}  # second

  # About c.
  - id: c
    text: see
    levels:
      0: none   # nothing
      1: all
  - text: d
    tags: [x, "y"]
"""


@each_row(
    "change",
    [
        {"tags": ("x",)},
        {"weight": 2, "metadata": {"x": 1}},
        {"when": When(contains="a")},
        {"id": "z", "metadata": {"x": "y" * 200}},
        {"text": "Is it so?\nOr not?", "weight": 2},
    ],
)
def test_a_text_with_a_comment_beside_it_becomes_a_mapping_with_the_comment(change: dict[str, Any]) -> None:
    """The file stays as it is around the criterion, whatever it gets."""
    old = loads(COMMENTED)
    new = evolve(old, criteria=[evolve(old.criteria[0], **change), *old.criteria[1:]])
    with TemporaryDirectory() as folder:
        after = edited(COMMENTED, new, Path(folder)).splitlines()
    before = COMMENTED.splitlines()
    assert (after[:4], after[-len(before) + 5 :]) == (before[:4], before[5:])
    assert after[4].endswith("  # first")


def test_a_criterion_with_a_text_may_become_a_tree_with_that_text(tmp_path: Path) -> None:
    """The text is not taken for a rival of the tree, and the comments of the file stay."""
    old = loads(COMMENTED)
    last = evolve(old.criteria[-1], answer=DecisionTree("Is it so?", yes=1, no=0))
    after = edited(COMMENTED, evolve(old, criteria=[*old.criteria[:-1], last]), tmp_path)
    assert after.startswith(COMMENTED.partition("  - text: d")[0])


HEADED = """\
# The file.

# yaml-language-server: $schema=rubric.schema.json
rubric: x
# About the list.
criteria:  # what counts
  # --- a ---
  - id: a         # beside a
    # The text of a.
    text: is it a?
    weight: 2     # weight of a
    # end of a

  # --- b ---

  # More of b.
  - b  # beside b
  # --- c ---
  - {id: c, text: is it c?, choices: {x: 0, y: 1}}  # beside c
# --- d ---
  - id: d
    text: is it d?
    levels:  # of d
      # nothing of d
      0: none
      1: >-
        all
        of it
      # level of d
# The threshold.
threshold: 0.8   # agreed
strict: true
  # - e: perhaps

# end of file
"""

OF_ITEMS = {
    "a": ("  # --- a ---", "# beside a", "    # The text of a.", "# weight of a", "    # end of a"),
    "b": ("  # --- b ---", "  # More of b.", "# beside b"),
    "c": ("  # --- c ---", "# beside c"),
    "d": ("# --- d ---", "# of d", "      # nothing of d", "      # level of d"),
}


def block_of(item: str, text: str) -> str:
    """Return the lines of *text* from the first comment of *item* to its last."""
    first, last = OF_ITEMS[item][0], OF_ITEMS[item][-1]
    return text[text.index(f"{first}\n") : text.index(last) + len(last)]


@examples(60)
@given(
    st.lists(st.sampled_from("abcd"), unique=True, min_size=1),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from([0.5, 3.0])),
    st.booleans(),
)
def test_each_comment_goes_with_its_item(kept: list[str], weights: dict[str, float], adds: bool) -> None:
    """Whatever is taken out, moved, weighed anew and added: comments of the others stay with them, the file's in place."""
    old = loads(HEADED)
    criteria = [evolve(old[id], weight=weights.get(id, old[id].weight)) for id in kept]
    added = [Criterion("Is it new?", weight=2)] if adds and len(kept) < 3 else []  # with as many, one was renamed
    with TemporaryDirectory() as folder:
        after = edited(HEADED, evolve(old, criteria=[*criteria, *added]), Path(folder))
    top, end = HEADED[: HEADED.index("  # --- a")], HEADED[HEADED.index("# The threshold") :]
    assert after.startswith(top)
    assert after.endswith(end)
    body = after[len(top) : -len(end)]
    comments = [line.partition("#")[2] for line in body.splitlines() if "#" in line]
    assert comments == [comment.partition("#")[2] for id in kept for comment in OF_ITEMS[id]]
    for item in kept:
        if item not in weights:
            assert block_of(item, HEADED) in body
    assert not re.search(r"[^ ] #|3\.0", body)


def test_a_comment_below_a_text_stays_a_comment(tmp_path: Path) -> None:
    """A text that gets several lines does not take in the comment below it."""
    before = "criteria:\n  - id: a\n    text: a?\n        # deep\n    weight: 2\n  - b\n    # below b\n"
    after = edited(before, loads(before).revising("a", text="Is it?\nSo?").revising("b", text="Is\nb?"), tmp_path)
    assert after.count("# deep\n    weight: 2\n") == after.count("# below b\n") == 1


@examples(100)
@given(data=st.data())
def test_comments_stay(data: st.DataObject) -> None:
    """Whatever becomes of the criteria, those that stay keep the comment that stands beside them."""
    old = loads(COMMENTED)
    kept = data.draw(st.lists(st.sampled_from(old.criteria), unique_by=lambda c: c.id))
    drawn = data.draw(rubrics()).criteria
    added = [
        c for c in drawn if c.id not in {k.id for k in old.criteria} and c.polarity != "penalty"
    ]  # there are no points
    new = evolve(old, criteria=[*kept, *added])
    with TemporaryDirectory() as folder:
        after = edited(COMMENTED, new, Path(folder))
    beside = {"a": "- a  # first", "b": "- {text: b, weight: 2}  # second", "c": "0: none   # nothing"}
    assert after.startswith("# Mine.\n")
    assert all(beside[c.id] in after for c in kept if c.id in beside)
