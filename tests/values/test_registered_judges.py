"""Judges that a distribution registers by a name: found where a text becomes a judge, and written by that name."""

from __future__ import annotations

from pathlib import Path

import pytest

from rubric import Case, DefinitionError, Judge, Jury, Panel, Suite, grade, judge_function, loads_suite
from rubric.errors import DumpError, LoadError
from rubric.formats import dumps_suite
from rubric.formats.native.judge import read_any_judge
from rubric.values import as_judge

CODE = """
from rubric import Judge, Jury, Panel, judge_function

strict = judge_function(lambda candidate, criterion: "[1]" in candidate.output, identity="1")
remote = Judge("openai/gpt-5.6", params={"api_base": "http://localhost:1/v1"})
votes = Jury(strict, 3)
def chat(messages): return '{"verdict": true}'
def two(one, other): return True
text = "openai/gpt-5.6"
"""
NAMES = "strict remote votes chat two text gone"


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "acme_judges-1.2.dist-info"
    info.mkdir()
    (tmp_path / "acme_judges.py").write_text(CODE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-judges\nVersion: 1.2\n")
    rows = "".join(f"{name} = acme_judges:{name}\n" for name in NAMES.split())
    (info / "entry_points.txt").write_text(f"[rubric.judges]\n{rows}")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("name", ["strict", "votes", "chat"])
def test_a_registered_name_is_that_judge(name: str) -> None:
    """In a call, in a panel and in a file; a name that nobody registers is a model's."""
    assert grade("See [1].", "Cites one", name).passed
    assert loads_suite(f"{{judge: {name}, cases: [{{output: 'See [1].', rubric: Cites one}}]}}").run().passed
    assert Panel([name, "offline"]).judges[0] == as_judge(name) == read_any_judge(name)
    assert as_judge("gpt-5.6") == Judge("gpt-5.6")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("two", "'two' of acme-judges 1.2 is no judge: a function from messages to text takes one argument"),
        ("text", "'text' of acme-judges 1.2 is a text; register Judge('openai/gpt-5.6')"),
        ("gone", "'gone' of acme-judges 1.2 cannot be loaded: AttributeError"),
    ],
)
def test_what_is_registered_and_no_judge_is_refused(name: str, said: str) -> None:
    """The error names the distribution."""
    with pytest.raises(DefinitionError, match=said.replace("(", r"\(").replace(")", r"\)")):
        grade("x", "Is kind", name)


@pytest.mark.filterwarnings("ignore::rubric.internals.plugins.PluginWarning")  # of those that are none
def test_a_judge_that_no_file_can_hold_is_written_as_its_name() -> None:
    """A function, also within a jury, and a judge with an address; one that is not registered is refused."""
    for name in ("strict", "remote"):
        suite = Suite("s", [Case("a", "Is kind", output="x")], judge=Jury(as_judge(name), 3))
        assert f"judge: {{jury: {{judge: {name}}}}}" in dumps_suite(suite)
        assert loads_suite(dumps_suite(suite)) == suite
    own = judge_function(lambda candidate, _: bool(candidate.output))
    with pytest.raises(DumpError, match=r"register it as an entry point of rubric\.judges"):
        dumps_suite(Suite("s", [Case("a", "Is kind", output="x")], judge=own))


def test_a_file_gives_a_registered_judge_no_settings() -> None:
    """They are its package's to set, and would have no effect."""
    with pytest.raises(
        LoadError, match="'strict' is registered with its settings, and retries would have no effect; write"
    ):
        loads_suite("{judge: {model: strict, retries: 3}, cases: [{output: x, rubric: Is kind}]}")
