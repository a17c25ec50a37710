"""Every example of the documentation is run: Python, rubric files, commands with what they print, and docstrings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sybil import Document, Example, Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.myst import CodeBlockParser, PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

from rubric import Rubric, Suite, lint
from rubric.formats.rubrics import loads
from rubric.formats.suites import load_suite, loads_suite
from rubric.models.api_keys import Vendor, vendors
from rubric.values.building import Building
from tests.places import ROOT
from tests.program_forks import ProgramForks
from tests.rows import each_row

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = sorted((ROOT / "rubric").rglob("*.py"))
DOCTEST = ELLIPSIS | NORMALIZE_WHITESPACE


def load_file(example: Example) -> None:
    """Load a file that a page shows: a rubric, or a suite in any format."""
    source = f"{example.path}:{example.line}"
    if re.match(r"(rubric|threshold|criteria|text|tree):", example.parsed):
        found: Rubric | Suite = loads(example.parsed, source=source)
    elif named := re.findall(r"file://(/app/\S+)", example.parsed):  # files that an agent made: `--base /` reads them
        with TemporaryDirectory() as folder:
            for name in named:
                Path(folder + name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder + name).write_text("Sorry for the wait.", "utf-8")
            suite = Path(folder, "suite.yaml")
            suite.write_text(example.parsed.replace("file://", f"file://{folder}"), "utf-8")
            found = load_suite(suite, base="/")
            assert {case.output for case in found} == {"Sorry for the wait."}
    else:
        found = loads_suite(example.parsed, source=source)
    check_quality(example, found)


MEANT = {
    ("docs/how-to/check_a_rubric.md", "no-effect"),  # the page shows how it is found
    ("docs/how-to/write_a_rubric.md", "vacuous-pass"),  # the page says what becomes of it
}
"""The remarks on examples that are bad on purpose: the page and the rule."""


def check_quality(example: Example, value: object) -> None:
    """Refuse a rubric or a suite of an example that has something wrong."""
    if isinstance(value, Suite) or (isinstance(value, Rubric) and value.judged):
        page = str(Path(example.path).relative_to(ROOT))
        wrong = [str(remark) for remark in lint(value) if (page, remark.rule) not in MEANT]
        assert not wrong, f"{page}:{example.line}: {wrong}"


MARK = "-- the next command of this block --"


def run_commands(example: Example) -> str | None:
    """Run the commands of a block in one shell, and compare what follows each with what it prints."""
    blocks = example.parsed.removeprefix("$ ").split("\n$ ")
    commands = [re.split(r"(?<!\\)\n", f"{block}\n", maxsplit=1) for block in blocks]
    printed = output_of(f"\necho {MARK}\n".join(command for command, _ in commands)).split(f"{MARK}\n")
    for (command, expected), found in zip(commands, printed, strict=True):
        if not OutputChecker().check_output(expected.strip(), found.strip(), DOCTEST):
            return f"{command}\nexpected:\n{expected}\nprinted:\n{found}"
    return None


IMPORTS = """
import importlib, importlib.metadata, re2
import rubric.formats.promptfoo.writer, rubric.formats.mcptest.reader, rubric.suites.runner
from rubric.__main__ import COMMANDS, run
for module in {*COMMANDS.values()}:
    importlib.import_module(f"rubric.commands.{module}")
for format in importlib.metadata.entry_points(group="rubric.formats"):
    format.load()
"""
"""What the commands of the pages import; that the installed script runs is shown in `test_project`."""

_forks: list[ProgramForks] = []


@pytest.fixture(scope="module", autouse=True)
def _forks_end() -> Iterator[None]:
    """End the process that runs the commands, where a page had one."""
    yield
    while _forks:
        with _forks.pop():
            pass


def output_of(command: str) -> str:
    """Return all that *command* prints, with this interpreter as `python`, and for `rubric` a fork of one process."""
    if not _forks:
        _forks.append(ProgramForks("rubric", setup=IMPORTS, program="sys.exit(run())"))
    folders = [_forks[0].path.parent, Path(sys.executable).parent]
    path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


PAGE = Sybil(
    parsers=[
        PythonCodeBlockParser(doctest_optionflags=DOCTEST),
        CodeBlockParser(language="yaml", evaluator=load_file),
        CodeBlockParser(language="console", evaluator=run_commands),
    ]
)
DOCSTRINGS = Sybil(parsers=[DocTestParser(DOCTEST)], document_types={".py": PythonDocStringDocument})


def run(document: Document) -> int:
    """Run the examples of *document* in order, in one namespace; return how many there are."""
    examples = list(document.examples())
    seen: dict[int, object] = {}  # the values are kept, so that no other one gets the number of one that is gone
    for example in examples:
        example.evaluate()
        for value in [*document.namespace.values()]:
            if id(value) not in seen and isinstance(value, Rubric | Suite):
                seen[id(value)] = value
                check_quality(example, value)
    return len(examples)


def name(path: Any) -> str:
    """Return how a file is called in the report."""
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_every_example_of_a_page_does_what_the_page_says(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code runs, prints what the page shows; rubric files load; commands print what stands below them."""
    monkeypatch.chdir(ROOT)
    if path.parent.name == "integrations" and path.stem not in (
        "index",
        "clients",
        "harbor",
        "promptfoo",
        "trl",
    ):
        pytest.importorskip(
            {"langchain": "langchain_core", "adk": "google.adk"}.get(path.stem, path.stem),
            reason=f"{path.stem} is not installed; `nox -s integrations` has it",
        )
    run(PAGE.parse(path))


@each_row("path", MODULES, ids=name)
def test_every_example_of_a_docstring_is_true(path: Path) -> None:
    """What a docstring shows after `>>>` is what Python prints."""
    run(DOCSTRINGS.parse(path))


@each_row("vendor", vendors().values(), ids=lambda vendor: vendor.provider)
def test_the_page_on_judges_lists_the_keys_that_name_one(vendor: Vendor) -> None:
    """Each vendor has a row, in the order in which they are looked at, with its variables and its model."""
    page = (ROOT / "docs" / "how-to" / "choose_judges.md").read_text()
    rows = [line for line in page.splitlines() if line.endswith("` |") and "_" in line]
    row = rows[[*vendors()].index(vendor.provider)]
    assert all(f"`{name}`" in row for name in (*vendor.keys, *vendor.deployments, vendor.model))


GUIDES = [
    path for path in PAGES if path.parent.name not in ("reference", "api", "explanation") and path.stem != "changelog"
]

LONGEST_SENTENCE = 35
"""Words; a piece of code counts as one, tables and blocks of code are apart."""


def sentences(page: str) -> list[str]:
    """Return the sentences of *page*."""
    page = re.sub(r"^(`{3,}).*?^\1\s*$|^\|.*?$|^#+ .*?$", "\n", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", page)
    page = re.sub(r"(\{\w+\})?`[^`]*`", "code", page)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*:]|\d+\.)\s)", page)
    return [part for block in blocks for part in re.split(r"(?<=[.!?])[)\"*_]*\s+", " ".join(block.split()))]


@each_row("path", GUIDES, ids=name)
def test_no_sentence_of_a_guide_is_long(path: Path) -> None:
    """Each sentence of the guides has at most the allowed number of words."""
    long = [said for said in sentences(path.read_text()) if len(re.findall(r"\w[\w'’.,/-]*", said)) > LONGEST_SENTENCE]
    assert not long


def test_the_api_page_lists_the_verbs_of_a_rubric() -> None:
    """The page names the members of `Rubric` one by one, so a new verb is added there too."""
    page = (ROOT / "docs" / "reference" / "api" / "rubrics.md").read_text("utf-8")
    (members,) = re.findall(r"autoclass:: rubric\.Rubric\n\s+:members:([^.]+)", page)
    assert {name for name in vars(Building) if not name.startswith("_")} <= set(re.findall(r"\w+", members))


def test_each_relative_link_of_the_readme_leads_somewhere() -> None:
    """Every linked file and heading exists."""
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", (ROOT / "README.md").read_text())
    assert len(links) > 5
    for target, anchor in links:
        page = ROOT / (target or "README.md")
        assert page.exists(), target
        titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]


@each_row(
    "word",
    [
        "install",
        "kappa",
        "agreement",
        "dashboard",
        "pairwise",
        "few-shot",
        "hallucination",
        "colab",
        "load_dataset",
        "transcript",
        "github",
    ],
)
def test_what_people_search_for_is_on_a_guide(word: str) -> None:
    """Each common search word stands on a page besides the glossary."""
    assert any(word in path.read_text().casefold() for path in GUIDES if path.stem != "glossary")


def test_the_examples_are_found() -> None:
    """The README has examples of each kind, so an empty run of this module would be noticed."""
    parsed = PAGE.parse(ROOT / "README.md")
    assert len(list(parsed.examples())) >= 3
