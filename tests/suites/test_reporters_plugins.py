"""Reporters of other distributions: found by entry point, named in errors and in help, never in place of ours."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rubric.__main__ import main
from rubric.errors import DefinitionError
from rubric.suites.reporters.registry import reporter_for, reporter_names
from tests.places import ROOT
from tests.reports import REPORT

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = ROOT / "docs" / "how-to" / "extend.md"
SUITE = """\
suite: s
rubric: {rubric: r, criteria: [{text: Names a day, check: {contains: Friday}}]}
cases: [{id: one, output: We will see.}]
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str, str], None]:
    """Return what puts a distribution into a folder of `sys.path`, with its metadata, as installers do."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def put(name: str, entry_points: str, code: str = "") -> None:
        module = name.replace("-", "_")
        (site / f"{module}.py").write_text(code)
        info = site / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[rubric.reporters]\n{entry_points}\n")

    return put


def test_the_reporter_on_the_page_works_once_it_is_installed(install: Callable[..., None], tmp_path: Path) -> None:
    """The code and the entry point of the page, in a distribution: by name, by file ending, and at a terminal."""
    page = PAGE.read_text("utf-8")
    code = re.findall(r"```python\n(.*?)```", page.partition("## A reporter")[2], re.DOTALL)[0]
    entry = re.findall(r'\[project.entry-points."rubric.reporters"\]\n(.*?)```', page, re.DOTALL)[0]
    install("my-plugins", entry.replace('"', ""), code)
    assert REPORT.render("buildlog") == "late: failed\n"
    assert REPORT.write(tmp_path / "r.buildlog").read_text("utf-8") == REPORT.render("buildlog")
    suite = tmp_path / "s.yaml"
    suite.write_text(SUITE)
    ran = CliRunner().invoke(main, ["grade", str(suite), "-j", "offline", "--reporter", "buildlog"])
    assert (ran.exit_code, ran.stdout) == (1, "one: failed\n")
    assert "|buildlog]" in CliRunner().invoke(main, ["grade", "--help"]).stdout


def test_an_unknown_reporter_is_refused_with_those_that_are_installed(install: Callable[..., None]) -> None:
    """Names and endings of plug-ins stand among ours, and a typing error is recognised."""
    install("extra-one", "special = extra_one:render", "def render(report): return report.suite")
    assert reporter_names()[-1] == "special"
    with pytest.raises(DefinitionError, match=r"unknown reporter 'specal'; did you mean 'special'"):
        REPORT.render("specal")
    with pytest.raises(DefinitionError, match=r"end it in one of .*\.special"):
        reporter_for("report.docx")


def test_a_plug_in_takes_the_place_of_none_of_ours(install: Callable[..., None]) -> None:
    """A baseline that is written as `json` is ours, whatever is installed."""
    install("extra-two", "json = extra_two:render", "def render(report): return 'mine'")
    assert REPORT.render("json") != "mine"
    assert reporter_names().count("json") == 1


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("import a_module_that_is_not_there", r"'own' of extra-3 1.2 cannot be loaded: ModuleNotFoundError"),
        ("other = 1", r"'own' of extra-3 1.2 cannot be loaded: AttributeError"),
        ("render = 1", r"'own' of extra-3 1.2 is int, expected a function"),
        ("def render(report): raise OSError('disk')", r"'own' of extra-3 1.2 failed: OSError: disk"),
        ("def render(report): return 7", r"'own' of extra-3 1.2 returned int, expected text"),
    ],
)
def test_a_broken_plug_in_names_its_distribution(
    code: str, complaint: str, install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with it, the error says whose it is."""
    monkeypatch.delitem(sys.modules, "extra_3", raising=False)
    install("extra-3", "own = extra_3:render", code)
    with pytest.raises(DefinitionError, match=complaint):
        REPORT.render("own")


def test_a_plug_in_that_cannot_be_loaded_is_refused_before_anything_is_paid_for(
    install: Callable[..., None], tmp_path: Path
) -> None:
    """The command line loads the reporter while it reads its options: exit code 2, and no file is written."""
    install("extra-four", "late = extra_four:nothing")
    suite = tmp_path / "s.yaml"
    suite.write_text(SUITE)
    for option in (("--reporter", "late"), ("--out", str(tmp_path / "r.late"))):
        ran = CliRunner().invoke(main, ["grade", str(suite), "-j", "offline", *option])
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "extra-four 1.2 cannot be loaded" in ran.stderr
    assert not (tmp_path / "r.late").exists()


def test_a_name_that_two_distributions_register_is_refused(install: Callable[..., None]) -> None:
    """Which of them would be taken is not for chance to decide."""
    install("extra-five", "twice = extra_five:render")
    install("extra-six", "twice = extra_six:render")
    with pytest.raises(DefinitionError, match=r"'twice' is registered by extra-five 1.2 and extra-six 1.2"):
        REPORT.render("twice")
