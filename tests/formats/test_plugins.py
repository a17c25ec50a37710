"""A package of somebody else's adds a format by an entry point: recognised, read, written, offered."""

from __future__ import annotations

import ast
import json
import os
import re
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
from rubric.formats.assertions import table
from rubric.formats.built_in import OWN
from rubric.formats.suites import convert, load_suite, loads_suite
from rubric.internals.plugins import PluginWarning, entry_points_of
from tests.places import ROOT

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

WHEEL = "checklists-1.0-py3-none-any.whl"
TEXT = "checklist:\n  - say: It costs 5 EUR.\n    expect: [Names the price]\n"


def installed(folder: Path, module: str, name: str = "checklist", group: str = "rubric.formats") -> Path:
    """Install a package with *module* and the entry point *name* into *folder*, as the wheel that pip would take."""
    wheel = folder / WHEEL
    info = "checklists-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("checklists.py", module)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: checklists\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", f"[{group}]\n{name} = checklists:FORMAT\n")
        archive.writestr(f"{info}/RECORD", "")
    target = folder / "site"
    with zipfile.ZipFile(wheel) as archive:  # all that pip does, in half a second, with a wheel of Python alone
        archive.extractall(target)
    return target


def forget() -> None:
    """Let the entry points be looked up anew."""
    registry.formats.cache_clear()
    registry.format_names.cache_clear()
    sys.modules.pop("checklists", None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder into which pip has installed the package."""
    folder = tmp_path_factory.mktemp("plugin")
    installed(folder, MODULE)
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(folder / "pip"),
    ]
    subprocess.run([*pip, str(folder / WHEEL)], check=True, timeout=120)
    return folder / "pip"


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
    assert {*registry.format_names()} == {*OWN, *OURS, "checklist"}


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
        ("FORMAT = 5", "checklist", "is not a new Format of that name; uninstall it"),
        (
            "import nope",
            "checklist",
            "cannot be loaded: ModuleNotFoundError: No module named 'nope'; upgrade that distribution or uninstall it",
        ),
        (MODULE, "promptfoo", "is not a new Format of that name; uninstall it"),
        (MODULE, "other", "is not a new Format of that name; uninstall it"),
    ],
)
def test_a_package_that_registers_nonsense_stops_only_what_needs_it(
    module: str, name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of other formats are read, with one warning that names the package; its own format is refused."""
    monkeypatch.syspath_prepend(installed(tmp_path, module, name))
    forget()
    said = f"format: {name!r} of checklists 1.0 {why}"
    native = "cases: [{id: a, rubric: Is it kind?}]"
    with pytest.warns(PluginWarning, match=f"^{re.escape(said)}$"):
        assert loads_suite(native).format == "native"
    assert loads_suite(native).format == "native"
    if name not in OWN:
        with pytest.raises(DefinitionError, match=f"^{re.escape(said)}$"):
            loads_suite(TEXT, name)
    monkeypatch.undo()
    forget()


def test_a_format_whose_evidence_raises_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of other formats are recognised as before, and its own can still be read by its name."""
    broken = MODULE.replace('has("checklist", kind=list)', "lambda seen: seen.data['nope']")
    monkeypatch.syspath_prepend(installed(tmp_path, broken))
    forget()
    said = "the format 'checklist' is left out: a rule of its evidence raised KeyError('nope')"
    with pytest.warns(PluginWarning, match=f"^{re.escape(said)}$"):
        assert loads_suite("cases: [{id: a, rubric: Is it kind?}]").format == "native"
    assert loads_suite(TEXT, "checklist").format == "checklist"
    monkeypatch.undo()
    forget()


def test_the_command_line_prints_the_warning_as_a_line(tmp_path: Path) -> None:
    """And goes on: only the exit code of what was asked for counts."""
    site = installed(tmp_path, "import nope")
    (tmp_path / "r.yaml").write_text("rubric: kind\ncriteria: [Is kind]\n")
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from rubric.__main__ import main; main()"
    command = [sys.executable, "-c", code, "validate", str(tmp_path / "r.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    why = "ModuleNotFoundError: No module named 'nope'; upgrade that distribution or uninstall it"
    assert done.stderr == f"warning: format: 'checklist' of checklists 1.0 cannot be loaded: {why}\n"


PARSED = MODULE.replace(
    "evidence=", "suffixes=('.check',), translate=lambda file, text, loading: 'checklist:\\n' + text, evidence="
)


def test_a_format_may_have_files_of_its_own_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its function makes YAML of them, and problems have the places in that."""
    monkeypatch.syspath_prepend(installed(tmp_path, PARSED))
    forget()
    (tmp_path / "a.check").write_text("  - say: It costs 5 EUR.\n    expect: [Names the price]\n")
    suite = load_suite(tmp_path / "a.check")
    assert (suite.format, [case.output for case in suite.cases]) == ("checklist", ["It costs 5 EUR."])
    monkeypatch.undo()
    forget()
    with pytest.raises(LoadError, match=r"the suffix is '\.check'"):
        load_suite(tmp_path / "a.check")


OURS = {"adk", "autorubric", "deepeval", "healthbench", "mlflow", "paperbench", "rewardkit"}


def test_our_own_foreign_formats_are_plug_ins() -> None:
    """They are registered by entry points of the project, as any package's are, and by nothing else."""
    points = entry_points_of(registry.GROUP)
    assert {point.name for point in points if point.value.startswith("rubric.format_plugins.")} == OURS
    assert all(callable(registry.find_format(name).reader()) for name in OURS)


def test_a_checkout_without_an_installation_has_them(tmp_path: Path) -> None:
    """By its project file: no metadata is there, and `python -m` has taken the folder off the path."""
    for name in ("rubric", "pyproject.toml"):
        (tmp_path / name).symlink_to(ROOT / name)
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    code = f"import sys; sys.path += {libraries!r}; import runpy; runpy.run_module('rubric', run_name='__main__')"
    (tmp_path / "a.json").write_text('{"name": "a", "criteria": "Is it kind?", "evaluation_params": ["input"]}')
    command = [sys.executable, "-S", "-c", code, "validate", "a.json"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "deepeval" in done.stdout


def test_nothing_but_the_table_of_our_own_names_a_format() -> None:
    """The loader, the registry, recognition and drafting ask fields of a format, and not its name."""
    folder = Path(registry.__file__).parent
    for module in ("suites", "registry", "recognition"):
        code = (folder / f"{module}.py").read_text("utf-8")
        texts = {str(node.value) for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}
        assert not texts & ({*OWN, *OURS} - {"native"}), module


KIND = '''"""The type `distinct-share`: the share of the words that are distinct."""

from attrs import frozen

from rubric.formats.assertions.keys import TEXT, Key, Kind, number
from rubric.values.checks import Decided


@frozen
class DistinctShare:
    """The share of the words that are distinct; it passes from a threshold on."""

    threshold: float = 0.5
    apart: str = " "

    @property
    def __name__(self):
        return "distinct-share"

    def __call__(self, candidate):
        words = candidate.output.split(self.apart)
        share = len({*words}) / len(words)
        return Decided(share, reason=f"{share:g} of the words", passed=share >= self.threshold)


KEYS = (Key("threshold", "threshold", number(0, 1), 0.5), Key("apart", "apart", TEXT, " "))
FORMAT = Kind(DistinctShare, KEYS)
'''


@pytest.fixture
def kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package with an assertion type."""
    monkeypatch.syspath_prepend(installed(tmp_path, KIND, "distinct-share", "rubric.assertions"))
    table._plugin_kinds.cache_clear()
    sys.modules.pop("checklists", None)
    yield
    monkeypatch.undo()
    table._plugin_kinds.cache_clear()
    sys.modules.pop("checklists", None)


@pytest.mark.usefixtures("kind")
def test_a_package_adds_an_assertion_type() -> None:
    """It is read, graded, written, refused with its place, and in the schema, like the types of the library."""
    assertion = {"type": "distinct-share", "threshold": 0.9, "apart": "1"}
    suite = loads_suite(json.dumps({"prompts": ["Q"], "tests": [{"assert": [assertion]}]}), "promptfoo")
    (case,) = suite
    assert [rubric.grade(text, case.rubric, "offline").passed for text in ("a1b1a", "a1b1c")] == [False, True]
    assert rubric.loads(rubric.dumps(case.rubric)) == case.rubric
    (again,) = loads_suite(str(convert(suite, "promptfoo")), "promptfoo")
    assert again.rubric.criteria[0].answer == case.rubric.criteria[0].answer
    with pytest.raises(LoadError, match=r"assert\[0\]\.threshold: expected a number from 0 to 1"):
        loads_suite(json.dumps({"tests": [{"assert": [{**assertion, "threshold": 9}]}]}), "promptfoo")
    forms = table.assertion_schema()["anyOf"]
    assert any("distinct-share" in one["properties"]["type"]["enum"] for one in forms)


def test_an_assertion_type_that_cannot_be_loaded_stops_only_files_that_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema and a type that nobody has are as without it, but for one warning."""
    monkeypatch.syspath_prepend(installed(tmp_path, "import nope", "distinct-share", "rubric.assertions"))
    table._plugin_kinds.cache_clear()
    table._plugin_names.cache_clear()
    said = re.escape("type: 'distinct-share' of checklists 1.0 cannot be loaded")
    with pytest.warns(PluginWarning, match=said):
        assert table.find_kind("no-such-type") is None
    assert table.assertion_schema()["anyOf"]
    with pytest.raises(DefinitionError, match=said):
        table.find_kind("distinct-share")
    monkeypatch.undo()
    table._plugin_kinds.cache_clear()
    table._plugin_names.cache_clear()


@pytest.mark.usefixtures("plugin")
def test_an_error_in_its_reader_names_the_file_and_the_format(tmp_path: Path) -> None:
    """It may be a defect of the package, of which the author of the file knows nothing."""
    path = tmp_path / "a.yaml"
    path.write_text("checklist:\n  - say: 5\n    expect: [Names the price]\n")
    with pytest.raises(LoadError, match=r"a\.yaml: the reader of checklist raised \w+: "):
        load_suite(path)
