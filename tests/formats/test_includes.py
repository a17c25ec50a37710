"""Files that files name: what may be read, and that nothing else ever shows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rubric.errors import LoadError
from rubric.formats.cursor import Cursor
from rubric.formats.document import Document
from rubric.formats.files import TABLES, parse, parse_table
from rubric.formats.includes import (
    DEEPEST,
    expand_at,
    is_reference,
    read_document_at,
    read_text_at,
)
from rubric.formats.notes import Loading, Notes
from rubric.formats.suites import load_suite

CANARY = "canary-7f3a"
posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and devices are a matter of POSIX")


@pytest.fixture(autouse=True)
def canary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a secret into the environment, where no file may find it."""
    monkeypatch.setenv("CANARY", CANARY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with files in it, beside which a secret lies."""
    (tmp_path / "secret.txt").write_text(CANARY)
    (tmp_path / "secret.yaml").write_text(f"- {CANARY}: [")
    (tmp_path / "base-beside").mkdir()
    (tmp_path / "base-beside" / "secret.txt").write_text(CANARY)
    base = tmp_path / "base"
    (base / "evals").mkdir(parents=True)
    (base / "graders").mkdir()
    (base / "graders" / "refusal.md").write_text("Refuses the request.\n")
    (base / "evals" / "a.yaml").write_text("- id: a\n- id: b\n")
    (base / "evals" / "b.yml").write_text("id: c\n")
    return base


def notes() -> Notes:
    """Return the notes of a file that refers to others."""
    return Notes(parse("tests:\n  - value: file://x\n", "suite.yaml"))


def loading(folder: Path, **options: Any) -> Loading:
    """Return how a file in `evals` is read, with the folder above it as the base."""
    return Loading(folder / "evals", folder, **options)


def at(how: Loading, noted: Notes | None = None) -> Cursor:
    """Return where a file refers to others."""
    return Cursor.of(noted or notes(), how)["tests"][0]


def refused(reference: str, how: Loading) -> str:
    """Return the one error of reading *reference* in every way, which never shows the canary."""
    said = set()
    for read in (read_text_at, read_document_at):
        noted = notes()
        assert read(reference, at(how, noted)) is None
        (problem,) = noted.errors
        assert not noted.warnings
        assert CANARY not in str(problem)
        assert str(problem).startswith("suite.yaml:2:5: tests[0]: ")
        said.add(problem.message)
    assert len(said) == 1
    return said.pop()


TRICKS = {
    "/etc/passwd": "outside",
    "file:///etc/passwd": "outside",
    "file:////etc/passwd": "another machine",
    "file://../../secret.txt": "outside",
    "../../secret.txt": "outside",
    "file://./.././../secret.txt": "outside",
    "file://x/../../../secret.txt": "outside",
    "file://../../base-beside/secret.txt": "outside",
    "file://../../BASE/../secret.txt": "outside",
    "file://../../../../../../../../../../etc/passwd": "outside",
    "file://../../missing.txt": "outside",
    "file://..": "names no file",
    "file://../..": "names no file",
    "file://": "names no file",
    "file://.": "names no file",
    "FILE:///etc/passwd": "only files are read",
    "File://a.yaml": "only files are read",
    "file:/etc/passwd": "only files are read",
    "http://localhost/a.yaml": "only files are read",
    "https://example.com/a.yaml": "only files are read",
    "data:text/plain,x": "only files are read",
    "file://a.yaml::$DATA": "declared environment variable",
    "file://a.yaml:stream": "only files are read",
    "C:/Windows/win.ini": "only files are read",
    "file://C:secret.txt": "only files are read",
    "file://file:///etc/passwd": "only files are read",
    "\\\\host\\share\\x": "backslash",
    "//host/share/x": "another machine",
    "file://..\\..\\secret.txt": "backslash",
    "file://a.yaml\0.txt": "control",
    "file://a\n.yaml": "control",
    "file://\u202ea.yaml": "control",
    "file://a\u200b.yaml": "control",
    "file://%2e%2e/%2e%2e/secret.txt": "percent",
    "file://..%2f..%2fsecret.txt": "percent",
    "file://%252e%252e/secret.txt": "percent",
    "file://~/secret.txt": "home folders",
    "file://~root/.profile": "home folders",
    "file://$HOME/secret.txt": "declared environment variable",
    "file://${HOMELESS}/x": "'HOMELESS' is not declared",
    "file://%HOME%/x": "declared environment variable",
    "file://{{ env.CANARY }}/x": "'CANARY' is not declared",
    "file://{{ env.CANARY }}/..": "'CANARY' is not declared",
    "file://{{ name }}.txt": "variables cannot stand",
    "file://{% raw %}a{% endraw %}": "variables cannot stand",
    "file://" + "a/" * 2000 + "x": "at most",
    "file://" + "a" * 400: "no such file",
    "file://*.yaml": "pattern",
    "file://../**": "pattern",
    "file://[a].yaml": "pattern",
    "file://../evals": "not a file",
    "file://missing.yaml": "there is no such file; check its path",
    "file://a.yaml/x": "no such file",
    "file://.env": "hold secrets",
    "file://.ENV.local": "hold secrets",
    "file://../.git/config": "hold secrets",
    "file://id_rsa": "hold secrets",
    "file://server.pem": "hold secrets",
    "file://checks.py": "is not run",
    "file://checks.py:grade": "is not run",
    "file://Checks.JS": "is not run",
    "file://hook.sh": "is not run",
}


@pytest.mark.parametrize("reference", TRICKS)
def test_hostile_references(reference: str, folder: Path) -> None:
    """No trick with a name leads out of the base, runs anything, or shows what is elsewhere."""
    (folder / "evals" / ".env").write_text(f"KEY={CANARY}")
    (folder / "evals" / "checks.py").write_text(f"raise SystemExit('{CANARY}')")
    assert TRICKS[reference] in refused(reference, loading(folder))


def test_existence_elsewhere_is_not_told(folder: Path) -> None:
    """A file outside of the base is refused in the same words whether or not it is there."""
    there, missing = (refused(f"file://../../{name}", loading(folder)) for name in ("secret.txt", "nosuch.txt"))
    assert there.replace("secret", "nosuch") == missing


@posix
@pytest.mark.parametrize("name", ["file", "folder/secret.txt", "chain", "up/secret.txt", "loop", "dangling"])
def test_links_that_lead_out(name: str, folder: Path) -> None:
    """A link is worth what it leads to."""
    evals = folder / "evals"
    (evals / "file").symlink_to("../../secret.txt")
    (evals / "folder").symlink_to(folder.parent)
    (evals / "chain").symlink_to("file")
    (evals / "up").symlink_to("../..")
    (evals / "loop").symlink_to("loop")
    (evals / "dangling").symlink_to("/nonexistent/secret.txt")
    assert refused(f"file://{name}", loading(folder))


@posix
def test_link_to_a_secret_within(folder: Path) -> None:
    """A link with a harmless name does not lead to a file of secrets either."""
    (folder / ".env").write_text(CANARY)
    (folder / "evals" / "notes.txt").symlink_to("../.env")
    assert "hold secrets" in refused("file://notes.txt", loading(folder))


@posix
def test_links_that_stay(folder: Path) -> None:
    """A link within the base is followed."""
    (folder / "evals" / "link.md").symlink_to("../graders/refusal.md")
    assert read_text_at("file://link.md", at(loading(folder))) == "Refuses the request.\n"


@posix
def test_pipe(folder: Path) -> None:
    """A pipe is refused, and nothing waits for it."""
    os.mkfifo(folder / "evals" / "pipe.yaml")
    assert "not a file (but a folder, a pipe or a device)" in refused("file://pipe.yaml", loading(folder))


@posix
@pytest.mark.parametrize("name", ["/proc/self/environ", "/dev/zero", "proc/self/environ", "dev/../proc/self/cmdline"])
def test_machine_files(name: str) -> None:
    """Not even a base that holds the whole machine shows its devices and processes."""
    assert "belongs to the machine" in refused(name, Loading(Path("/"), Path("/")))


def test_too_large(folder: Path) -> None:
    """A file beyond the limit is refused, however much of it is air."""
    with (folder / "evals" / "large.yaml").open("wb") as file:
        file.truncate(1 << 30)
    assert "at most 4096 KiB" in refused("file://large.yaml", loading(folder))


def test_not_utf8(folder: Path) -> None:
    """A file that is not UTF-8 is refused, and of what it holds no more is said than one byte."""
    (folder / "evals" / "a.csv").write_bytes(CANARY.encode() + b"\xff")
    assert "0xff is not UTF-8" in refused("file://a.csv", loading(folder))


@pytest.mark.parametrize("how", [Loading(), Loading(base=Path())])
def test_text_without_a_file(how: Loading) -> None:
    """What was read from a text has no files beside it."""
    assert "stands in no file" in refused("file://a.yaml", how)


def test_base_by_default(folder: Path) -> None:
    """Without a base, the folder of the file is the base."""
    how = Loading(folder / "evals")
    assert "outside" in refused("file://../graders/refusal.md", how)
    assert read_document_at("file://a.yaml", at(how))


@pytest.mark.parametrize(
    "reference",
    [
        "file://../graders/refusal.md",
        "../graders/refusal.md",
        "file://./../graders/../graders/refusal.md",
        "file://../graders/refusal.md\n",
        "file://{{ env.AGENTV_REPO_ROOT }}/graders/refusal.md",
        "{{ env.AGENTV_REPO_ROOT }}/graders/refusal.md",
    ],
)
def test_plain_uses(reference: str, folder: Path) -> None:
    """A file below the base is read, from the folder of the file that names it."""
    noted = notes()
    assert read_text_at(reference, at(loading(folder), noted)) == "Refuses the request.\n"
    assert not noted.errors


def test_declared_variables(folder: Path) -> None:
    """A declared variable may stand in the name of a file, and leads no further than a name that is written out."""
    how = loading(folder, environ={"WHERE": "graders", "OUT": "../.."})
    assert read_text_at("file://../{{ env.WHERE }}/refusal.md", at(how))
    assert "outside" in refused("file://{{ env.OUT }}/secret.txt", how)


def test_relative_folders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders are given as one types them, and messages show them so."""
    monkeypatch.chdir(folder.parent)
    found = read_document_at("file://../evals/a.yaml", at(Loading(Path("base/evals"), Path("base"))))
    assert found
    assert found.place.source == str(Path("base/evals/a.yaml"))
    assert found.loading.folder == Path("base/evals")
    assert read_text_at("{{ env.AGENTV_REPO_ROOT }}/graders/refusal.md", at(found.loading))


def test_code_as_material(folder: Path) -> None:
    """A program may be shown where it is material; it is not run there either."""
    (folder / "evals" / "fix.py").write_text("raise SystemExit")
    assert read_text_at("fix.py", at(loading(folder)), code=True) == "raise SystemExit"


@pytest.mark.parametrize(
    ("value", "expected"),
    [("file://a", True), ("FILE://a", True), (" file://a", True), ("a", False), ("see file://a", False), (3, False)],
)
def test_is_reference(value: object, expected: bool) -> None:
    """A reference is a text that starts with its scheme; one in the wrong case is told apart only to be refused."""
    assert is_reference(value) is expected


def test_documents(folder: Path) -> None:
    """A document has places of its own, and its errors are raised with those of the file that names it."""
    noted = notes()
    found = read_document_at("file://a.yaml", at(loading(folder), noted))
    assert found
    assert found.value == [{"id": "a"}, {"id": "b"}]
    assert found.loading.folder == folder / "evals"
    assert found.loading.base == folder
    found[1]["id"].error("is wrong")
    found[0].warn("is odd")
    assert len(noted.warnings) == 1
    with pytest.raises(LoadError, match=r"a\.yaml:2:7: \[1\]\.id: is wrong"):
        noted.finish()


def test_broken_document(folder: Path) -> None:
    """What is not YAML is told at its own place."""
    (folder / "evals" / "a.yaml").write_text("- a\n- [b\n")
    noted = notes()
    assert read_document_at("file://a.yaml", at(loading(folder), noted)) is None
    assert str(noted.errors[0]).startswith(f"{folder / 'evals' / 'a.yaml'}:3:1: this is not YAML")


@pytest.mark.parametrize(("name", "text"), [("x.yaml", " \n"), ("x.txt", "a: 1"), ("x", "a: 1")])
def test_no_document(name: str, text: str, folder: Path) -> None:
    """An empty file is not a document, nor is one whose name does not say that it is."""
    (folder / "evals" / name).write_text(text)
    noted = notes()
    assert read_document_at(name, at(loading(folder), noted)) is None
    assert len(noted.errors) == 1


def test_one_error_a_place(folder: Path) -> None:
    """What is read again at the same place, for another test, is told once; at another place, again."""
    noted = notes()
    tests = at(loading(folder), noted).parent
    assert tests
    for where in (tests[0], tests[0], tests, tests[0]):
        assert read_text_at("missing.md", where) is None
    assert [problem.path for problem in noted.errors] == ["tests[0]", "tests"]


def test_circle(folder: Path) -> None:
    """A file cannot include itself, by whatever way."""
    first = read_document_at("file://a.yaml", at(loading(folder)))
    assert first
    second = read_document_at("file://b.yml", at(first.loading))
    assert second
    assert "includes itself" in refused_document("file://../evals/./a.yaml", second.loading)


def refused_document(reference: str, how: Loading) -> str:
    """Return what is said of a document that is refused."""
    noted = notes()
    assert read_document_at(reference, at(how, noted)) is None
    return noted.errors[0].message


def test_depth(folder: Path) -> None:
    """Files include one another only so deep."""
    how = loading(folder)
    for n in range(DEEPEST):
        (folder / "evals" / f"{n}.yaml").write_text("a: 1")
        found = read_document_at(f"file://{n}.yaml", at(how))
        assert found
        how = found.loading
    assert "more than 8 deep" in refused_document("file://a.yaml", how)


def test_many_files(folder: Path) -> None:
    """One load reads only so many files."""
    noted, how = notes(), loading(folder)
    for n in range(300):
        (folder / "evals" / f"{n}.md").write_text("x")
        read_text_at(f"{n}.md", at(how, noted))
    assert len(noted.errors) == 300 - 256
    assert "at most 256 files" in noted.errors[0].message


def test_many_readings(folder: Path) -> None:
    """One load takes only so much out of them, however often a file is named; it is read from the disk once."""
    (folder / "evals" / "big.md").write_text("x" * 500_000)
    noted, how = notes(), loading(folder)
    read_text_at("big.md", at(how, noted))
    (folder / "evals" / "big.md").write_text("changed")
    texts = {read_text_at("big.md", at(how, noted)) for _ in range(50)}
    assert texts == {"x" * 500_000, None}
    assert "come" in noted.errors[0].message


def test_patterns(folder: Path) -> None:
    """A pattern stands for the files that it matches, sorted, below the base; links and hidden files are left out."""
    evals = folder / "evals"
    (evals / "deep" / "er").mkdir(parents=True)
    (evals / "deep" / "deep").mkdir()
    for name in ("deep/z.yaml", "deep/er/y.yaml", "deep/deep/x.json", ".hidden.yaml", "x.txt"):
        (evals / name).write_text("a: 1")
    if os.name == "posix":
        (evals / "out").symlink_to(folder.parent)
    noted = notes()

    def found(reference: str) -> list[str]:
        return [one.value for one in expand_at(at(loading(folder), noted).holding(reference))]

    assert found("file://a.yaml") == ["file://a.yaml"]
    assert found("file://*.yaml") == ["file://a.yaml"]
    assert found("*.y*ml") == ["file://a.yaml", "file://b.yml"]
    assert found("file://**/*.yaml") == ["file://a.yaml", "file://deep/er/y.yaml", "file://deep/z.yaml"]
    assert found("file://../*/?.yml") == ["file://b.yml"]
    assert found("file://**/**/*.json") == found("file://deep/deep/*.json") == ["file://deep/deep/x.json"]
    assert found("file://deep/*/y.yaml") == ["file://deep/er/y.yaml"]
    assert not noted.errors


PATTERNS = [
    "file://../../*",
    "/etc/*",
    "file://nothing/*.yaml",
    "file://out/*",
    "file://%2e%2e/*",
    "file://~/*",
    "file://" + "a" * 400 + "/*",
]


@pytest.mark.parametrize("reference", PATTERNS)
def test_hostile_patterns(reference: str, folder: Path) -> None:
    """A pattern leads no further than a name, and one that matches nothing is an error."""
    if os.name == "posix":
        (folder / "evals" / "out").symlink_to(folder.parent)
    noted = notes()
    assert expand_at(at(loading(folder), noted).holding(reference)) == []
    assert len(noted.errors) == 1
    assert "secret" not in str(noted.errors[0])


@posix
def test_pattern_over_a_link(folder: Path) -> None:
    """A file that a pattern matches is held to the same rules as one that is named."""
    (folder / "evals" / "l.yaml").symlink_to("../../secret.yaml")
    (found,) = expand_at(at(loading(folder)).holding("file://l*.yaml"))
    assert "outside" in refused(found.value, loading(folder))


def test_pattern_over_too_much(folder: Path) -> None:
    """A pattern matches only so many files."""
    for n in range(300):
        (folder / "evals" / f"{n}.md").touch()
    noted = notes()
    assert expand_at(at(loading(folder), noted).holding("*.md")) == []
    assert "more than 256 files" in noted.errors[0].message


ROWS = [{"question": "a", "__expected": 'llm-rubric: says "b", twice'}, {"question": "c\nd", "__expected": ""}]
TABLE = '\ufeffquestion, __expected\r\na,"llm-rubric: says ""b"", twice"\r\n\r\n"c\nd",\r\n'


def rows_at(reference: str, at: Cursor) -> list[Cursor]:
    """Return the rows of a table."""
    found = read_document_at(reference, at)
    return [row for row in found.listing("a list of rows") if row.mapping("a row (a mapping)")] if found else []


def test_csv(folder: Path) -> None:
    """A CSV file is a row for each of its records, with the line that it starts in."""
    (folder / "evals" / "t.csv").write_bytes(TABLE.encode())
    rows = rows_at("file://t.csv", at(loading(folder)))
    assert [row.value for row in rows] == ROWS
    assert [row.place.line for row in rows] == [2, 4]


def test_jsonl(folder: Path) -> None:
    """A JSONL file is a row for each line that is not blank."""
    (folder / "evals" / "t.jsonl").write_text('{"a": 1}\n\n{"a": {"b": [2]}}\n')
    rows = rows_at("file://t.jsonl", at(loading(folder)))
    assert [row.value for row in rows] == [{"a": 1}, {"a": {"b": [2]}}]
    assert [(row.place.line, row.place.column) for row in rows] == [(1, 1), (3, 1)]


def test_rows_of_yaml(folder: Path) -> None:
    """A YAML file of a list of mappings is a table too; anything else is not."""
    how = loading(folder)
    assert [row.value for row in rows_at("file://a.yaml", at(how))] == [{"id": "a"}, {"id": "b"}]
    noted = notes()
    assert not rows_at("file://b.yml", at(how, noted))
    assert "expected a list of rows" in noted.errors[0].message


WRONG = {
    ("t.jsonl", '{"a": 1}\n{"a": 2\n'): "2:8: this is not JSON",
    ("t.jsonl", '{"a": 1}\n[1]\n'): "2:1: [1]: expected a row",
    ("t.jsonl", '{"a": 1}\n{"b": 1, "a": NaN}\n'): "2:15: [1].a: expected a finite number",
    ("t.jsonl", '{"a": 1}\n{"a": 1, "a": 2}\n'): "2:10: [1].a: the key 'a' stands in line 2 already",
    ("t.jsonl", '{"a": 1}, {"a": 2}\n'): "1:9: this is not JSON",
    ("t.csv", "a,a\n1,2\n"): "1:1: two columns are called 'a'",
    ("t.csv", "a,b\n1,2,3\n"): "2:1: the cell 3 of this row",
    ("t.csv", 'a\n"b\n'): "2:1: this is not CSV",
    ("t.csv", "a\n" + "b" * 140_000): "2:1: this is not CSV",
    ("t.tsv", "a\tb\n1\t2\t3\n"): "2:1: the cell 3 of this row",
    ("t.csv", "a\n" + "b\n" * 10_001): "10002:1: a table has at most 10000 rows",
}


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_wrong_tables(name: str, text: str, folder: Path) -> None:
    """What is wrong with a table is told at its line."""
    (folder / "evals" / name).write_text(text)
    noted = notes()
    rows_at(f"file://{name}", at(loading(folder), noted))
    assert str(noted.errors[0]).startswith(f"{folder / 'evals' / name}:{WRONG[name, text]}")


@pytest.mark.parametrize("suffix", TABLES)
def test_tables_hold_rows(suffix: str) -> None:
    """Every kind of table is read as a list, even an empty one."""
    assert isinstance(parse_table("\n", "t", suffix), Document)


def test_loading_is_shared(folder: Path) -> None:
    """What a file includes counts with what the file itself reads, and sees no more than it."""
    how = loading(folder, environ={"A": CANARY}, required=True, functions={"f": len})
    assert CANARY not in repr(how)
    found = read_document_at("file://a.yaml", at(how))
    assert found
    inner = found.loading
    assert inner.library is how.library
    assert (inner.environ, inner.required, inner.functions) == (how.environ, True, how.functions)


PROMPTFOO = """\
prompts: ["{{{{ question }}}}"]
providers: [echo]
tests:
  - vars: {{question: {0}}}
    assert:
      - {{type: llm-rubric, value: {0}}}
      - {{type: llm-rubric, value: "x", rubricPrompt: {0}}}
      - {{type: contains, value: {0}}}
"""
AGENTV = """\
tests:
  - id: a
    criteria: x
    input: {0}
    expected_output: {0}
    assert:
      - {0}
      - {{type: llm-rubric, value: {0}}}
      - {{type: llm-rubric, value: x, prompt: {0}}}
"""
WHOLE = [
    *("file://../../secret.txt", "file://../../secret.yaml", "file:///proc/self/environ", "file://link", "$CANARY"),
    *("{{ env.CANARY }}", "{{ env }}", "${CANARY}", "${{ CANARY }}", "{{ env | dump }}", "{{ process.env.CANARY }}"),
    *("{{ self.__init__.__globals__ }}", "{{ cycler.__init__.__globals__.os.environ }}", "file://{{ env.CANARY }}"),
    *("file://checks.py", "file://checks.py:grade", "python:checks.py", "exec:cat ../../secret.txt"),
    *("{{ ''.__class__.__mro__ }}", "{% include '../../secret.txt' %}", "file://*", "file://../../*.txt"),
]


@posix
@pytest.mark.parametrize("text", [PROMPTFOO, AGENTV], ids=["promptfoo", "agentv"])
@pytest.mark.parametrize("trick", WHOLE)
def test_whole_suites(trick: str, text: str, folder: Path) -> None:
    """A hostile suite is refused, or read as a harmless one; nothing of what it was after shows anywhere."""
    (folder / "evals" / "link").symlink_to("../../secret.txt")
    (folder / "evals" / "checks.py").write_text(f"raise SystemExit('{CANARY}')")
    (folder / "evals" / "suite.yaml").write_text(text.format(json.dumps(trick)))
    try:
        suite = load_suite(folder / "evals" / "suite.yaml", base=folder)
    except LoadError as error:
        said = str(error)
    else:
        said = f"{suite!r} {suite.warnings} {[case.candidate for case in suite.cases]}"
    assert CANARY not in said
