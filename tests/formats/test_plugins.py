"""A package of somebody else's adds a format by an entry point: recognised, read, written, offered."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import rubric
from rubric.__main__ import main
from rubric.errors import DefinitionError, LoadError
from rubric.formats import registry
from rubric.formats.suites import convert, load_suite, loads_suite

MODULE = '''"""Checklists: `checklist: [{say: ..., expect: [...]}]`."""

from rubric import Case, Criterion, Rubric, Suite
from rubric.formats.recognition import SURE, has
from rubric.formats.registry import Format


def read(notes, loading):
    """Return the suite that a checklist says."""
    cases = []
    for index, item in enumerate(notes.data()["checklist"]):
        at = ("checklist", index)
        if not isinstance(item, dict):
            notes.error(at, f"expected a mapping with say and expect, got {item!r}")
        elif not isinstance(item.get("expect"), list):
            notes.error((*at, "expect"), "expected a list of what is expected")
        else:
            criteria = [Criterion(text) for text in item["expect"]]
            cases.append(Case(f"case-{index + 1}", Rubric("", criteria=criteria), output=item["say"]))
    return Suite("", cases, format="checklist")


def write(suite):
    """Return *suite* as a checklist, and what that cannot hold."""
    items = [{"say": case.output, "expect": [c.text for c in case.rubric.criteria]} for case in suite.cases]
    lost = [f"case {case.id!r}: a checklist has no input" for case in suite.cases if case.input]
    return {"checklist": items}, lost


FORMAT = Format("checklist", read, write, evidence=((SURE, has("checklist", kind=list)),))
'''

TEXT = "checklist:\n  - say: It costs 5 EUR.\n    expect: [Names the price]\n"


def installed(folder: Path, module: str, name: str = "checklist") -> Path:
    """Install a package with *module* and the entry point *name* into *folder*, as pip does with any wheel."""
    wheel = folder / "checklists-1.0-py3-none-any.whl"
    info = "checklists-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("checklists.py", module)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: checklists\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", f"[rubric.formats]\n{name} = checklists:FORMAT\n")
        archive.writestr(f"{info}/RECORD", "")
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(target)]
    subprocess.run([*pip, str(wheel)], check=True, timeout=120)
    return target


def forget() -> None:
    """Let the entry points be looked up anew."""
    registry.formats.cache_clear()
    registry._entry_points.cache_clear()
    sys.modules.pop("checklists", None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which the package was installed."""
    return installed(tmp_path_factory.mktemp("plugin"), MODULE)


@pytest.fixture
def plugin(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let Python find the package."""
    monkeypatch.syspath_prepend(site)
    forget()
    yield
    monkeypatch.undo()
    forget()


def test_the_module_is_short() -> None:
    """A format takes at most sixty lines."""
    assert len(MODULE.splitlines()) <= 60


@pytest.mark.usefixtures("plugin")
def test_a_file_is_recognised_and_read(tmp_path: Path) -> None:
    """By the call that reads all other formats."""
    path = tmp_path / "a.yaml"
    path.write_text(TEXT)
    suite = load_suite(path)
    assert (suite.format, suite.name, [case.output for case in suite.cases]) == ("checklist", "a", ["It costs 5 EUR."])


@pytest.mark.usefixtures("plugin")
def test_a_suite_is_written() -> None:
    """With what was lost."""
    suite = rubric.Suite("s", [rubric.Case("a", rubric.Rubric("", criteria=["Is kind"]), input="Hi", output="Hello")])
    converted = convert(suite, "checklist")
    assert converted.dropped == ("case 'a': a checklist has no input", "case 'a': id would be read otherwise")
    assert loads_suite(str(converted)).cases[0].rubric.criteria == suite.cases[0].rubric.criteria


@pytest.mark.usefixtures("plugin")
def test_problems_are_told_like_all_others() -> None:
    """With line and column, and with the format as which the file was read."""
    with pytest.raises(
        LoadError, match=r"s\.yaml:1:13: checklist\[0\]: expected a mapping with say and expect, got 5"
    ) as caught:
        loads_suite("checklist: [5]", source="s.yaml")
    assert caught.value.format == "checklist"


@pytest.mark.usefixtures("plugin")
def test_another_format_is_recognised_as_before() -> None:
    """What another package registers takes no files from the formats of the library."""
    assert loads_suite("cases: [{id: a, rubric: Is it kind?}]").format == "native"
    assert registry.format_names() == (*registry.FORMATS, "checklist")


def test_the_command_line_offers_it(site: Path) -> None:
    """`--from` takes its name, in a process that finds the package."""
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from rubric.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "grade", "--help"], capture_output=True, text=True, timeout=120, check=True
    )
    assert "checklist" in done.stdout
    assert "checklist" not in CliRunner().invoke(main, ["grade", "--help"]).output


@pytest.mark.parametrize(
    ("module", "name", "why"),
    [
        ("FORMAT = 5", "checklist", "is not a rubric.formats.registry.Format"),
        ("import nothing_of_this_name", "checklist", "cannot be imported: No module named 'nothing_of_this_name'"),
        (MODULE, "promptfoo", "is a second 'promptfoo'"),
        (MODULE, "other", "is called 'checklist'"),
    ],
)
def test_a_package_that_registers_nonsense_is_named(
    module: str, name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is passed over in silence."""
    monkeypatch.syspath_prepend(installed(tmp_path, module, name))
    forget()
    with pytest.raises(DefinitionError) as caught:
        loads_suite(TEXT)
    assert str(caught.value) == (
        f"format: checklists:FORMAT, the format {name!r} of checklists, {why}; mend or remove it"
    )
    monkeypatch.undo()
    forget()
