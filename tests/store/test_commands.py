"""`rubric store stats | export | verify`."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rubric import Judge
from rubric.__main__ import main
from rubric.driving import Reply, Usage
from rubric.store.audit import stats
from rubric.store.store import Store
from rubric.testing.scripted_model import reply_to
from tests.storing import Counted, graded


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a store with two answers."""
    with Store(tmp_path / "replies.db") as store:
        for text in ("Good morning!", "Good evening!", "Good evening!"):
            graded(store, Judge(Counted()), text)
    return tmp_path / "replies.db"


def command(*arguments: object) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["store", *map(str, arguments)])


def test_stats_counts(file: Path) -> None:
    """Calls by state, what they cost, what was saved; for machines as JSON."""
    told = json.loads(command("stats", file, "--format", "json").output)
    assert told["states"] == {"done": 2}
    assert (told["calls"], told["cost"], told["hits"], told["saved_cost"]) == (2, 0.5, 1, 0.25)
    assert [(each["model"], each["calls"], each["prompt_tokens"]) for each in told["models"]] == [("Counted", 2, 200)]
    shown = command("stats", file).output
    assert "sent: 2 requests, 200 in, 20 out tokens, $0.5000" in shown
    assert "served from the store: 1 times, which saved 1 requests, $0.2500" in shown
    assert "answered: this is what is served" in shown


def test_stats_say_where_a_cost_is_unknown(tmp_path: Path) -> None:
    """What is not known is counted apart, and never as nothing; the line is one for people."""
    with Store(tmp_path / "replies.db") as store:
        graded(store, Judge(Counted(lambda ask: Reply(reply_to(ask, True), usage=Usage(1, 10, 0, 5, None)))))
    found = stats(tmp_path / "replies.db")
    assert str(found) == (
        "1 done; sent: 1 requests, 10 in, 5 out tokens, $0.0000, and 1 of unknown cost; "
        "served from the store: 0 times, which saved 0 requests, $0.0000"
    )
    assert repr(found) == f"<Stats: {found}>"


def test_export_writes_a_line_a_call(file: Path, tmp_path: Path) -> None:
    """To standard output, or to a file."""
    lines = command("export", file).output.splitlines()
    assert [json.loads(line)["state"] for line in lines] == ["done", "done"]
    assert command("export", file, "--out", tmp_path / "calls.jsonl").exit_code == 0
    assert (tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines() == lines


def test_export_does_not_write_over_the_store(file: Path) -> None:
    """A slip of the pen loses nothing."""
    before = file.read_bytes()
    result = command("export", file, "--out", file)
    assert result.exit_code == 2
    assert "this file is read; name another one" in result.output
    assert file.read_bytes() == before


def test_verify_tells_whether_it_is_whole(file: Path) -> None:
    """0 for a whole one; 2, and a line for each problem, for one that is not."""
    assert command("verify", file).output == f"{file}: whole\n"
    connection = sqlite3.connect(file)
    connection.execute("UPDATE calls SET result = 'x' WHERE id = 2")
    connection.commit()
    connection.close()
    result = command("verify", file)
    assert result.exit_code == 2
    assert "call 2: its reply cannot be read" in result.output


@pytest.mark.parametrize("name", ["stats", "export", "verify"])
def test_what_is_no_store_is_refused(tmp_path: Path, name: str) -> None:
    """One line on standard error, and the exit code 2."""
    other = tmp_path / "birds.txt"
    other.write_text("a text " * 1000, encoding="utf-8")
    result = command(name, other)
    assert result.exit_code == 2
    assert "not a reply store" in result.output
