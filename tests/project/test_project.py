"""The project around the package: what is public, what an import costs, what a wheel holds, what the README says."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from zipfile import ZipFile

import pytest
from ruamel.yaml import YAML

import rubric
from rubric.internals.lazy_names import public_names
from tests.places import ROOT
from tests.rows import each_row

REFERENCE = "\n".join(page.read_text() for page in sorted((ROOT / "docs" / "reference" / "api").glob("*.md")))
HEAVY = ["litellm", "cattrs", "ruamel", "jsonschema", "jinja2", "numpy", "re2", "rich", "click", "asyncio", "socket"]

WATCHED = """
import json, os, sys
opened, connected = [], []

def watch(event, args):
    if event == "open" and isinstance(args[0], str):
        opened.append(os.path.realpath(args[0]))
    elif event.startswith("socket."):
        connected.append(event)

before = set(sys.modules)
sys.addaudithook(watch)
{statement}
print(json.dumps({{"opened": opened, "connected": connected, "modules": sorted(set(sys.modules) - before)}}))
"""


def watched(statement: str) -> dict[str, list[str]]:
    """Return the files, connections and modules that *statement* opens and loads in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.format(statement=statement)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    seen: dict[str, list[str]] = json.loads(done.stdout)
    return seen


def test_the_public_names_are_sorted() -> None:
    """Classes come first, then functions, each in the order of the alphabet."""
    assert sorted(rubric.__all__, key=lambda name: (name[0].islower(), name)) == rubric.__all__


PUBLIC = {name: module for name, module in public_names().items() if module != "rubric.embed"}
MOVED = sorted((name, module) for name, module in public_names().items() if module != "rubric")


@each_row(("name", "module"), sorted(PUBLIC.items()))
def test_a_public_name_is_there_and_says_what_it_is(name: str, module: str) -> None:
    """It can be imported, its docstring is its own, and it has a place in the reference."""
    value = getattr(import_module(module), name)
    assert (inspect.getdoc(value) or "").strip()
    assert "def __init__" not in (value.__doc__ or "")
    assert re.search(rf":: {module}\.{name}$", REFERENCE, re.MULTILINE)


def test_the_reference_names_nothing_that_is_not_public() -> None:
    """What is taken out of the lists of names is taken out of the reference."""
    named = re.findall(rf":: ({'|'.join({*PUBLIC.values()})})\.(\w+)$", REFERENCE, re.MULTILINE)
    assert {name: module for module, name in named} == PUBLIC


def test_the_front_door_is_narrow() -> None:
    """`rubric` has at most 75 names: those that people type."""
    assert len(dir(rubric)) <= 75


@each_row(("name", "module"), MOVED)
def test_a_name_of_another_module_says_where_it_is(name: str, module: str) -> None:
    """Asked of `rubric`, or imported from it, its error has the import that works."""
    with pytest.raises(AttributeError) as missing:
        getattr(rubric, name)
    with pytest.raises(ImportError) as unimported:
        exec(f"from rubric import {name}")  # noqa: S102 - the line that people type
    (line,) = {str(error.value).rpartition(": ")[2] for error in (missing, unimported)}
    found: dict[str, object] = {}
    exec(line, found)  # noqa: S102 - the line that the error proposes
    assert line == f"from {module} import {name}"
    assert found[name] is getattr(import_module(module), name)


def test_each_public_name_is_listed_once() -> None:
    """No two stubs list the same name, and none lists that of a module beside it."""
    stubs = [*(ROOT / "rubric").rglob("*.pyi")]
    listed = [line.split()[3] for stub in stubs for line in stub.read_text().splitlines() if line.startswith("from ")]
    assert sorted(listed) == sorted(public_names())
    beside = {
        module: {name for _, name, _ in iter_modules(import_module(module).__path__)}
        for module in {*PUBLIC.values()} - {"rubric.driving"}
    }
    assert [name for name, module in PUBLIC.items() if name in beside.get(module, ())] == []


@each_row("module", sorted({*public_names().values()}))
def test_dir_lists_what_is_public(module: str) -> None:
    """Completion offers the public names and nothing else."""
    offered = import_module(module)
    assert (
        dir(offered)
        == sorted(offered.__all__)
        == sorted(name for name, home in public_names().items() if home == module)
    )


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as it does in any module."""
    with pytest.raises(AttributeError, match="module 'rubric' has no attribute 'Rubrik'"):
        rubric.Rubrik  # type: ignore[attr-defined]  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    """`rubric.__version__` is what was installed."""
    assert re.fullmatch(r"\d+\.\d+\.\d+", str(rubric.__version__))


def test_an_import_loads_nothing_heavy() -> None:
    """`import rubric` loads none of the libraries that single tasks need."""
    loaded = {module.partition(".")[0] for module in watched("import rubric")["modules"]}
    assert loaded.isdisjoint(HEAVY)


def test_building_a_rubric_loads_attrs_and_no_other_library() -> None:
    """The nouns need attrs and the standard library."""
    modules = watched("from rubric import Rubric, Criterion, Judge, Candidate; Rubric().expects('x')")["modules"]
    others = {module.partition(".")[0] for module in modules} - set(sys.stdlib_module_names)
    assert others <= {"rubric", "attr", "attrs"}


def test_a_grade_without_a_store_loads_neither_sqlite_nor_cattrs() -> None:
    """What keeps replies is loaded by whoever gives a store."""
    given = "from rubric import Judge, Rubric, grade; grade('Hello', Rubric(criteria=['It greets']), Judge('offline'))"
    assert {"sqlite3", "cattrs", "rubric.store.store"}.isdisjoint(watched(given)["modules"])


def test_a_grade_from_code_loads_a_small_kernel() -> None:
    """A grade of a text reads no rows, plans nothing, words no result and asks no vendor: 18,000 lines at most."""
    code = "from rubric import Judge, Rubric, grade; grade('Hello', Rubric(criteria=['It greets']), Judge('offline'))"
    loaded = [name for name in watched(code)["modules"] if name.partition(".")[0] == "rubric"]
    files = [find_spec(name).origin for name in loaded]  # type: ignore[union-attr]
    assert sum(len(Path(file).read_text().splitlines()) for file in files if file) <= 18_000


def test_an_import_touches_nothing_outside_its_own_files() -> None:
    """`import rubric` opens no connection, and no file but Python's own, attrs' and the package's."""
    seen = watched("import rubric; rubric.Rubric")
    ours = str(ROOT / "rubric")
    prefixes = (ours, sys.prefix, sys.base_prefix, "/proc/", "/etc/")
    assert seen["connected"] == []
    assert [path for path in seen["opened"] if not path.startswith(prefixes[:3])] == []


def test_the_top_level_holds_what_the_layout_says() -> None:
    """Whoever opens the folder sees eight things that are not hidden."""
    allowed = {"LICENSE", "README.md", "docs", "notebooks", "noxfile.py", "pyproject.toml", "rubric", "tests"}
    built = {"dist", "build"}
    found = {p.name for p in ROOT.iterdir() if not p.name.startswith((".", "__")) and p.suffix != ".egg-info"}
    assert found - built == allowed


def test_ci_runs_what_the_readme_says() -> None:
    """The second block under `## Start` and `.ci/run` hold the same commands."""
    start = (ROOT / "README.md").read_text().partition("\n## Start\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```bash\n(.*?)^```$", start, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    assert (ROOT / ".ci" / "run").read_text().partition('cd "$(dirname "$0")/.."\n')[2].strip() == blocks[1].strip()


def test_the_workflow_runs_what_ci_runs_on_each_python() -> None:
    """Three systems, each Python that the distribution names, and `nox` without a session, as in `.ci/run`."""
    workflow = YAML(typ="safe").load((ROOT / ".github/workflows/ci.yml").read_text())
    check = workflow["jobs"]["check"]
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    pythons = [each.rpartition(" ")[2] for each in said if each.startswith("Programming Language :: Python :: 3.")]
    assert check["strategy"]["matrix"]["python"] == pythons
    assert [each.partition("-")[0] for each in check["strategy"]["matrix"]["system"]] == ["ubuntu", "macos", "windows"]
    assert check["steps"][-1] == {"run": "nox"}
    assert (ROOT / ".ci/run").read_text().splitlines()[-1].endswith("/nox")


def test_the_first_command_of_the_readme_prints_a_passing_table() -> None:
    """What a newcomer types first grades the example, and passes."""
    readme = (ROOT / "README.md").read_text()
    command = re.search(r"^\.venv/bin/rubric (grade .*)$", readme, re.MULTILINE)
    assert command is not None
    script = Path(sys.executable).parent / "rubric"
    done = subprocess.run([script, *command[1].split()], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("pass")
    assert "clarity" in done.stdout


def test_a_wheel_holds_all_that_the_package_reads(tmp_path: Path) -> None:
    """The types marker, the schemas of files, the prompts and the report's page are in it, and no tests."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("rubric_grade-*.whl")
    names = ZipFile(wheel).namelist()
    prompts = {path.relative_to(ROOT).as_posix() for path in (ROOT / "rubric").rglob("*.md")}
    assert prompts
    schemas = {"rubric/formats/rubric.schema.json", "rubric/formats/suite.schema.json"}
    page = {f"rubric/view/{name}" for name in ("style.css", "label_page.css", "label_page.js")}
    page |= {f"rubric/view/templates/{path.name}" for path in (ROOT / "rubric/view/templates").glob("*.html")}
    presets = {f"rubric/presets/{path.name}" for path in (ROOT / "rubric" / "presets").glob("*.yaml")}
    starters = {"rubric/commands/starters/rubric.yaml", "rubric/commands/starters/suite.yaml"}
    assert {"rubric/py.typed", *schemas, *prompts, *page, *starters, *presets} <= set(names)
    assert {name.partition("/")[0] for name in names} == {
        "rubric",
        "rubric_verifiers.py",
        "rubric_grade-0.1.0.dist-info",
    }
